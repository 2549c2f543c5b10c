"""Files of rows: CSV, Parquet and JSON Lines, read as they are and written whole or not at all.

A CSV is kept as the text it is, so that columns nobody asks about come out as they went in.
Arrow reads and writes; this module adds the line of a row, and what is wrong with a file in words.
"""

import csv
import gzip
import io
import json
import os
import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, cast

from setpoint._files import whole
from setpoint.errors import DataError
from setpoint.tape.cells import arrow, is_text

__all__ = ["SUFFIXES", "File", "is_csv", "is_json", "read", "suffix_of", "write"]

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".jsonl", ".jsonl.gz", ".ndjson")
_Path = str | os.PathLike[str]
_EMPTY = "is empty: it needs a row for each prediction and its outcome"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BATCH = 1 << 16


def suffix_of(path: _Path) -> str:
    """Which of the known suffixes a path has."""
    name = os.fspath(path).lower()
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if name.endswith(suffix):
            return suffix
    raise DataError(f"a file of rows ends in {', '.join(SUFFIXES)}; got {os.fspath(path)!r}")


def is_csv(suffix: str) -> bool:
    """Whether a suffix is one of cells of text with something between them."""
    return suffix.startswith((".csv", ".tsv"))


def is_json(suffix: str) -> bool:
    """Whether a suffix is one of JSON Lines."""
    return suffix.startswith((".jsonl", ".ndjson"))


@dataclass(frozen=True, slots=True, eq=False)
class File:
    """The rows of a file.

    Parameters
    ----------
    table
        An Arrow table; the columns of a CSV are text.
    path
        Where they come from.
    suffix
        Which kind of file that is, one of `SUFFIXES`.
    delimiter
        What separates the cells of a CSV.
    """

    table: Any
    path: Path
    suffix: str
    delimiter: str = ","

    def place(self, row: int) -> str:
        """Where a row is, as an editor shows the file; a Parquet file has rows and no lines."""
        if self.suffix == ".parquet":
            return f"row {row + 1:,}"
        if is_json(self.suffix):
            with _unpacked(self.path) as lines:
                numbers = (number for number, line in enumerate(lines, 1) if line.strip())
                return f"line {_at(numbers, row, row + 1):,}"
        try:
            with _text(self.path) as lines:
                numbers = (number for number, _ in _csv_rows(lines, self.delimiter))
                line = _at(numbers, row + 1, row + 2)  # the first of them is the header
        except csv.Error:  # a cell longer than the reader takes: then a row is taken to be a line
            line = row + 2
        return f"line {line:,} (the header is line 1)"


def _at(numbers: Iterator[int], place: int, otherwise: int) -> int:
    return next((number for i, number in enumerate(numbers) if i == place), otherwise)


def read(path: _Path, columns: Sequence[str] | None = None, *, empty: bool = False) -> File:
    """The rows of a CSV, Parquet or JSON Lines file; compressed by gzip if it ends in .gz.

    Parameters
    ----------
    path
        The file.
    columns
        The columns to read; by default all.
    empty
        Whether a file without rows will do.
    """
    where, suffix = Path(path), suffix_of(path)
    pa = arrow()
    if not where.exists():
        raise DataError(f"{where} does not exist: name a file of rows")
    if where.is_dir():
        raise DataError(f"{where} is a folder, and a file of rows is needed")
    delimiter = ","
    try:
        if suffix == ".parquet":
            table = arrow("pyarrow.parquet").read_table(where, columns=columns)
        elif is_json(suffix):
            table = _read_json(where)
        else:
            delimiter, table = _read_csv(where, columns)
    except (pa.ArrowException, gzip.BadGzipFile, EOFError, zlib.error) as error:
        if suffix != ".parquet" and "UTF8" in str(error):
            raise _not_utf8(where) from error
        fault = None if isinstance(error, EOFError | zlib.error) else _fault(where, suffix)
        if fault is not None:
            raise DataError(f"{where}: {fault}") from error
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{where} is damaged or no {suffix} file: {reason}") from error
    if not table.num_rows and not empty:
        raise DataError(f"{where} {_EMPTY}")
    return File(table, where, suffix, delimiter)


def header(path: _Path) -> tuple[str, list[str]]:
    """The delimiter of a CSV and the names of its columns."""
    try:
        with _text(Path(path)) as lines:
            first = next((line for line in lines if line.strip()), "")
    except UnicodeDecodeError as error:
        raise _not_utf8(Path(path)) from error
    if not first:
        raise DataError(f"{os.fspath(path)} is empty: its first line must name the columns")
    delimiter = _delimiter(first)
    return delimiter, next(csv.reader([first], delimiter=delimiter))


def _delimiter(line: str) -> str:
    return max((",", ";", "\t"), key=line.count)


def _read_csv(path: Path, columns: Sequence[str] | None) -> tuple[str, Any]:
    pa, reader = arrow(), arrow("pyarrow.csv")
    delimiter, names = header(path)
    wanted = names if columns is None else columns
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise DataError(f"{path} names the column {twice[0]!r} twice: rename one of them")
    convert = reader.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=False,
        include_columns=list(wanted),
    )
    for newlines in (False, True):  # cells with line breaks are rare, and cost time to allow for
        parse = reader.ParseOptions(delimiter=delimiter, newlines_in_values=newlines)
        try:
            table = reader.read_csv(os.fspath(path), parse_options=parse, convert_options=convert)
            break
        except pa.ArrowInvalid:
            if newlines:
                raise
    return delimiter, table


def _read_json(path: Path) -> Any:
    if path.stat().st_size == 0:
        raise DataError(f"{path} {_EMPTY}")
    pa, reader = arrow(), arrow("pyarrow.json")

    def table(parse: Any = None) -> Any:
        with pa.input_stream(os.fspath(path), compression="detect") as stream:
            return reader.read_json(stream, parse_options=parse)

    rows = table()
    schema = pa.schema([(field.name, _without_times(pa, field.type)) for field in rows.schema])
    if schema != rows.schema.remove_metadata():  # a time that is made of text is not that text
        rows = table(reader.ParseOptions(explicit_schema=schema))
    return rows


def _without_times(pa: Any, kind: Any) -> Any:
    """An Arrow type with text in place of times, however deep."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _without_times(pa, field.type)) for field in kind])
    return pa.list_(_without_times(pa, kind.value_type)) if pa.types.is_list(kind) else kind


# What is wrong with a text file, and where


def _unpacked(path: Path) -> BinaryIO:
    """The bytes of a file, unpacked if it ends in .gz."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    return cast(BinaryIO, opened(path, "rb"))


def _text(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(_unpacked(path), "utf-8-sig", newline="")


def _csv_rows(lines: io.TextIOWrapper, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV that are not blank, each with the line that it begins in."""
    reader, before = csv.reader(lines, delimiter=delimiter), 0
    for cells in reader:
        if cells:
            yield before + 1, cells
        before = reader.line_num


def _not_utf8(path: Path) -> DataError:
    """What to do with text of another encoding, and where it shows."""
    where = ""
    with _unpacked(path) as lines:
        if lines.read(2) in _UTF16:
            return DataError(
                f"{path} is UTF-16 text: save it as UTF-8, as by `iconv -f utf-16 -t utf-8`"
            )
        lines.seek(0)
        for number, line in enumerate(lines, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                where = f" (byte 0x{line[error.start]:02x} in line {number:,})"
                break
    return DataError(
        f"{path} is not UTF-8 text{where}: save it as UTF-8, as by "
        "`iconv -f latin1 -t utf-8` if it is Western European"
    )


def _fault(path: Path, suffix: str) -> str | None:
    """What keeps a text file from being read, and in which line; None if that is not clear."""
    if suffix == ".parquet":
        return None
    try:
        return _json_fault(path) if is_json(suffix) else _csv_fault(path)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error):
        return None


def _csv_fault(path: Path) -> str | None:
    """The first row with more or fewer cells than the header."""
    delimiter, names = header(path)
    with _text(path) as lines:
        for line, cells in _csv_rows(lines, delimiter):
            if len(cells) != len(names):
                return (
                    f"line {line:,} has {len(cells)} cells and the header has {len(names)}: put "
                    "cells that hold the separator in double quotes, or correct the line"
                )
    return None


def _json_fault(path: Path) -> str | None:
    """The first line that is no object; Arrow says what else there may be."""
    with _unpacked(path) as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line) if line.strip() else {}
            except (ValueError, RecursionError) as error:
                reason = str(error).split(": line")[0]
                return f"line {number:,} is no JSON object ({reason}): correct it or leave it out"
            if not isinstance(row, dict):
                return f"line {number:,} is no JSON object: write one in each line"
    return None


# Written


def write(table: Any, path: _Path, delimiter: str = ",") -> Path:
    """Writes an Arrow table as its path's suffix says, whole or not at all.

    A column that this kind of file cannot hold, such as lists in a CSV, is written as JSON text,
    and bytes in text as base64.
    """
    suffix = suffix_of(path)
    table = _fitted(table if suffix == ".parquet" else _in_known_zones(table), suffix)
    with whole(path) as file:
        if suffix == ".parquet":
            arrow("pyarrow.parquet").write_table(table, file)
        elif suffix.endswith(".gz"):
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                _write_text(table, cast(BinaryIO, packed), suffix, delimiter)
        else:
            _write_text(table, file, suffix, delimiter)
    return Path(path)


def _write_text(table: Any, file: BinaryIO, suffix: str, delimiter: str) -> None:
    if is_json(suffix):
        for batch in table.to_batches(max_chunksize=_BATCH):
            lines = [_json(row) for row in batch.to_pylist()]
            file.write(("\n".join(lines) + "\n").encode())
        return
    names = io.StringIO()
    csv.writer(names, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
    file.write(names.getvalue().encode())
    writer = arrow("pyarrow.csv")
    # Arrow quotes every text or none.
    style = "needed" if any(_needs_quotes(c, delimiter) for c in table.columns) else "none"
    options = writer.WriteOptions(
        include_header=False, delimiter=delimiter, quoting_style=style, batch_size=_BATCH
    )
    writer.write_csv(table, file, options)


def _needs_quotes(column: Any, delimiter: str) -> bool:
    """Whether some cell of a column of text cannot stand in a CSV as it is."""
    if not is_text(column):
        return False
    signs = [sign.encode() for sign in ('"', delimiter, "\n", "\r")]
    for chunk in column.chunks:
        text = getattr(chunk, "dictionary", chunk).buffers()[-1]
        data = b"" if text is None else text.to_pybytes()
        if any(sign in data for sign in signs):
            return True
    return False


def _in_known_zones(table: Any) -> Any:
    """A table whose times are in zones that can be written as text: UTC in place of others."""
    pa = arrow()
    for place, name in enumerate(table.column_names):
        kind = table[name].type
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            try:
                pa.lib.string_to_tzinfo(kind.tz)
            except pa.ArrowInvalid:
                in_utc = table[name].cast(pa.timestamp(kind.unit, tz="UTC"))
                table = table.set_column(place, name, in_utc)
    return table


def _fitted(table: Any, suffix: str) -> Any:
    """A table of columns that a CSV or a Parquet file can hold; JSON holds any."""
    if is_json(suffix):
        return table
    pa, is_parquet = arrow(), suffix == ".parquet"
    types = pa.types
    for place, name in enumerate(table.column_names):
        column, kind = table[name], table[name].type
        is_bytes = types.is_binary(kind) or types.is_large_binary(kind)
        if is_bytes or types.is_fixed_size_binary(kind) or types.is_duration(kind):
            if is_parquet:
                continue
            texts = [None if value is None else str(_plain(value)) for value in column.to_pylist()]
        elif types.is_nested(kind) and not (is_parquet and _has_leaves(types, kind)):
            texts = [None if value is None else _json(value) for value in column.to_pylist()]
        else:
            continue
        table = table.set_column(place, name, pa.chunked_array([pa.array(texts, pa.string())]))
    return table


def _has_leaves(types: Any, kind: Any) -> bool:
    """Whether every struct in an Arrow type has fields: Parquet holds no other."""
    if types.is_struct(kind):
        return bool(kind.num_fields) and all(_has_leaves(types, field.type) for field in kind)
    return _has_leaves(types, kind.value_type) if types.is_list(kind) else True


def _json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """A value in JSON's own types, however deep.

    An infinite end is null, a time is ISO 8601, a duration is its seconds, bytes are base64.
    """
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, Decimal | float):
        return float(value) if isfinite(value) else None
    return value.isoformat() if isinstance(value, date | time) else value
