"""Files of rows and of tapes, read as they are and written whole or not at all.

A CSV is kept as the text it is, so that columns nobody asks about come out as they went in.
Arrow reads and writes; this module adds the line of a row, and what is wrong with a file in words.
"""

import csv
import gzip
import io
import json
import os
import shutil
import sys
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import islice
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy

from setpoint._files import whole
from setpoint.errors import DataError, TapeError
from setpoint.tape import cells
from setpoint.tape.cells import arrow, is_text
from setpoint.tape.columns import (
    KEYS,
    Column,
    Columns,
    Ragged,
    check_columns,
    encoded,
    frame_columns,
)

__all__ = [
    "SUFFIXES", "File", "is_csv", "is_json", "read", "read_tape", "suffix_of", "write",
    "write_tape",
]  # fmt: skip

SUFFIXES = (
    ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".feather", ".jsonl", ".jsonl.gz", ".ndjson",
)  # fmt: skip
"""How the names of files of rows may end."""
_INSTEAD = {
    (".xlsx", ".xls", ".ods"): "a spreadsheet: save its sheet as CSV, or give jobs a data frame",
    (".json",): "JSON: write one object in each line, and call the file .jsonl",
}
_Path = str | os.PathLike[str]
_EMPTY = "is empty: it needs a row for each prediction and its outcome"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BATCH = 1 << 16
_OF_TAPES = (".csv", ".csv.gz", ".parquet", ".npz")
_FORMAT, _VERSION, _HEADER = "setpoint tape", 1, "setpoint"
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, TypeError, ValueError)


def suffix_of(path: _Path, known: Sequence[str] = SUFFIXES, what: str = "a file of rows") -> str:
    """Which of the known suffixes a path has."""
    for suffix in known:
        if os.fspath(path).lower().endswith(suffix):
            return suffix
    for endings, why in _INSTEAD.items():
        if os.fspath(path).lower().endswith(endings):
            raise DataError(f"{os.fspath(path)} is {why}")
    raise DataError(f"{what} ends in {', '.join(known)}; got {os.fspath(path)!r}")


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

    def place(self, row: int, *, header: bool = True) -> str:
        """Where a row is, as an editor shows the file; a Parquet file has rows and no lines.

        `header` says which line of a CSV is counted as the first.
        """
        if self.suffix == ".parquet" or self.path.suffix == "":
            return f"row {row + 1:,}"
        with _text(self.path) as lines:
            numbers: Iterator[int]
            if is_json(self.suffix):
                numbers = (number for number, line in enumerate(lines, 1) if line.strip())
                return f"line {next(islice(numbers, row, None), row + 1):,}"
            numbers = (number for number, _ in _csv_rows(lines, self.delimiter))
            line = row + 2
            with suppress(csv.Error):  # a cell may be longer than the reader takes
                line = next(islice(numbers, row + 1, None), line)
        return f"line {line:,}{' (the header is line 1)' if header else ''}"


def read(path: _Path, columns: Sequence[str] | None = None, *, empty: bool = False) -> File:
    """The rows of a CSV, Parquet or JSON Lines file; compressed by gzip if it ends in .gz.

    "-" is a CSV on standard input. `columns` are those to read, by default all; `empty` allows a
    file without rows.
    """
    if os.fspath(path) == "-":
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "stdin.csv"
            with copy.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            return replace(read(copy, columns, empty=empty), path=Path("standard input"))
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
        elif suffix == ".feather":
            table = arrow("pyarrow.feather").read_table(where, columns=columns)
            suffix = ".parquet"  # results are written as Parquet
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


def _header(path: _Path) -> tuple[str, list[str]]:
    """The delimiter of a CSV and the names of its columns."""
    try:
        with _text(Path(path)) as lines:
            first = next((line for line in lines if line.strip()), "")
    except UnicodeDecodeError as error:
        raise _not_utf8(Path(path)) from error
    if not first:
        raise DataError(f"{os.fspath(path)} is empty: its first line must name the columns")
    delimiter = max((",", ";", "\t"), key=first.count)
    return delimiter, next(csv.reader([first], delimiter=delimiter))


def _read_csv(path: Path, columns: Sequence[str] | None) -> tuple[str, Any]:
    pa, reader = arrow(), arrow("pyarrow.csv")
    delimiter, names = _header(path)
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
    for row in reader:
        if row:
            yield before + 1, row
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
    with suppress(OSError, EOFError, UnicodeDecodeError, csv.Error), _text(path) as lines:
        return _json_fault(lines) if is_json(suffix) else _csv_fault(lines, *_header(path))
    return None


def _csv_fault(lines: io.TextIOWrapper, delimiter: str, names: list[str]) -> str | None:
    """The first row with more or fewer cells than the header."""
    for line, row in _csv_rows(lines, delimiter):
        if len(row) != len(names):
            return (
                f"line {line:,} has {len(row)} cells and the header has {len(names)}: put "
                "cells that hold the separator in double quotes, or correct the line"
            )
    return None


def _json_fault(lines: io.TextIOWrapper) -> str | None:
    """The first line that is no object; Arrow says what else there may be."""
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
    table = _fitted(table, suffix)
    with whole(path) as file:
        if suffix == ".parquet":
            arrow("pyarrow.parquet").write_table(table, file)
        elif suffix == ".feather":
            arrow("pyarrow.feather").write_feather(table, file)
        elif suffix.endswith(".gz"):
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                _write_text(table, cast(BinaryIO, packed), suffix, delimiter)
        else:
            _write_text(table, file, suffix, delimiter)
    return Path(path)


def _write_text(table: Any, file: BinaryIO, suffix: str, delimiter: str) -> None:
    if is_json(suffix):
        for batch in table.to_batches(max_chunksize=_BATCH):
            file.write("".join(f"{_json(row)}\n" for row in batch.to_pylist()).encode())
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
    texts = (getattr(chunk, "dictionary", chunk).buffers()[-1] for chunk in column.chunks)
    parts = (text[at : at + _BATCH] for text in texts if text for at in range(0, len(text), _BATCH))
    return any(sign in part.to_pybytes() for part in parts for sign in signs)


def _fitted(table: Any, suffix: str) -> Any:
    """A table of columns that this kind of file can hold."""
    pa, is_parquet = arrow(), suffix == ".parquet"
    types = pa.types
    for place, name in enumerate(table.column_names):
        column, kind = table[name], table[name].type
        is_bytes = types.is_binary(kind) or types.is_large_binary(kind)
        if types.is_timestamp(kind) and kind.tz is not None and not is_parquet:
            try:
                pa.lib.string_to_tzinfo(kind.tz)
                continue
            except pa.ArrowInvalid:  # a zone that cannot be written as text
                column = column.cast(pa.timestamp(kind.unit, tz="UTC"))
        elif is_json(suffix):
            continue
        elif is_bytes or types.is_fixed_size_binary(kind) or types.is_duration(kind):
            if is_parquet:
                continue
            column = _texts(column, lambda value: str(_plain(value)))
        elif types.is_nested(kind) and not (is_parquet and _has_leaves(types, kind)):
            column = _texts(column, _json)
        else:
            continue
        table = table.set_column(place, name, column)
    return table


def _texts(column: Any, text: Callable[[Any], str]) -> Any:
    words = [None if value is None else text(value) for value in column.to_pylist()]
    return arrow().chunked_array([words], arrow().string())


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


# Tapes


@contextmanager
def _readable(path: _Path) -> Iterator[None]:
    """Turns what a damaged file makes its reader raise into one error."""
    try:
        yield
    except TapeError:
        raise
    except DataError as error:
        raise TapeError(str(error)) from error
    except (*_DAMAGE, OSError) as error:
        if getattr(error, "errno", None) is not None:  # the system's own: no such file, no right
            raise
        raise TapeError(f"{os.fspath(path)} is damaged or not a tape: {error}") from error


def read_tape(path: _Path, columns: Columns | None) -> dict[str, Any]:
    """What `Tape.from_arrays` takes. Without columns the file is laid out as `write_tape` does."""
    where = os.fspath(path)
    with _readable(path):
        suffix = suffix_of(path, _OF_TAPES, "a tape's file")
        if suffix == ".npz":
            return _read_npz(path, columns)
        Path(path).stat()  # the system's own error if there is none
        if suffix == ".parquet":
            with arrow("pyarrow.parquet").ParquetFile(path) as file:
                names = file.schema_arrow.names
        else:
            _, names = _header(path)
        columns = columns or Columns.laid_out(names, where)
        kinds = columns.kinds()
        check_columns(kinds, names, where)
        file = read(path, list(kinds), empty=True)
        if suffix == ".parquet":
            return columns.arguments(frame_columns(file.table, kinds, where))
        return columns.arguments({name: _decoded(file, name, kind) for name, kind in kinds.items()})


def _decoded(file: File, name: str, kind: str) -> np.ndarray:
    """A column of a CSV: numbers, or what its words are taken for."""
    if kind == "number":
        numbers = cells.numbers(file.table[name])
        if isinstance(numbers, tuple):
            row, text = numbers
            raise TapeError(
                f"column {name!r} must hold numbers, got {text!r} in {file.place(row)}"
                f"{cells.advice(text)}"
            )
        return numbers
    pa, column = arrow(), file.table[name].combine_chunks().dictionary_encode()
    words = column.dictionary
    values: np.ndarray = np.asarray(words.to_numpy(zero_copy_only=False), object)
    with suppress(pa.ArrowInvalid):
        integers = words.cast(pa.int64())
        if integers.cast(pa.string()).equals(words):  # "007" is a name
            values = integers.to_numpy()
    if kind == "any" and values.dtype == object:
        numbers = cells.numbers(words)
        if set(words.to_pylist()) <= {"true", "false"}:
            values = values == "true"
        elif not isinstance(numbers, tuple):
            values = numbers
    return cast(np.ndarray, values[column.indices.to_numpy(zero_copy_only=False)])


def write_tape(
    path: _Path,
    keys: Mapping[str, np.ndarray],
    prediction: Mapping[str, Column],
    y: np.ndarray,
    extras: Mapping[str, Column],
) -> None:
    """A file of the columns in this order: keys, prediction, y, extras."""
    try:
        suffix = suffix_of(path, _OF_TAPES, "a tape's file")
        if suffix == ".npz":
            names = {"names": list(prediction), "extras": list(extras)}
            numbered = {f"prediction{i}": column for i, column in enumerate(prediction.values())}
            more = {f"extra{i}": column for i, column in enumerate(extras.values())}
            _write_npz(path, names, {**keys, **numbered, "y": y, **more})
            return
        columns = {**keys, **prediction, "y": y, **extras}
        several = [n for n, c in columns.items() if isinstance(c, Ragged) or c.ndim != 1]
        if several:
            raise TapeError(
                f"a table has one value a cell, column {several[0]!r} has several: write an .npz"
            )
        pa, exact = arrow(), suffix != ".parquet"
        arrays = {name: _arrow(pa, column, name, exact) for name, column in columns.items()}
        write(pa.table(arrays), path)
    except DataError as error:
        raise TapeError(str(error)) from error


def _arrow(pa: Any, column: Any, name: str, exact: bool) -> Any:
    """A column in the types that tables have, or an error; `exact` makes every float a double."""
    kind = column.dtype.kind
    if kind in "OT":
        words, codes = encoded(column, name)
        if exact:
            words = [None if word is None else str(word) for word in words]
        column = np.fromiter(words, object, len(words))[codes]
    elif kind not in "biufUM" or column.dtype.str[1:] == "f16":
        raise TapeError(
            f"column {name!r} holds {column.dtype}, which a table cannot: write an .npz"
        )
    elif kind == "M":
        unit = np.datetime_data(column.dtype)[0]
        plain = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}.get(unit, unit)
        column = column.astype(f"datetime64[{plain}]")
        if exact:
            column = np.datetime_as_string(column)
    elif exact and kind == "f":
        column = column.astype(np.float64)
    else:
        column = column.astype(column.dtype.newbyteorder("="), copy=False)
    try:
        return pa.array(column, pa.string() if exact and column.dtype == object else None)
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise TapeError(f"a table cannot hold column {name!r}: {error}") from None


# npz: plain arrays and a header of JSON. Nothing in the file can be executed.


def _write_npz(path: _Path, names: dict[str, list[str]], columns: Mapping[str, Column]) -> None:
    arrays = {_HEADER: _to_bytes({"format": _FORMAT, "version": _VERSION, **names})}
    for name, column in columns.items():
        if isinstance(column, Ragged):
            arrays[name], arrays[f"{name}.offsets"] = column.values, column.offsets
        elif column.dtype.kind in "OT":
            words, arrays[name] = encoded(column, name)
            arrays[f"{name}.words"] = _to_bytes(words)
        elif column.dtype.hasobject:
            raise TapeError(f"{name} holds objects inside {column.dtype}, which no file can")
        else:
            arrays[name] = column
    with whole(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(cast(BinaryIO, member), array, allow_pickle=False)


def _read_npz(path: _Path, columns: Columns | None) -> dict[str, Any]:
    where = os.fspath(path)
    # numpy leaves a file open that it cannot read, so it is not left to numpy.
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
        if _HEADER not in arrays.files:
            columns = columns or Columns.laid_out(arrays.files, where)
            return columns.arguments(frame_columns(arrays, columns.kinds(), where))
        if columns is not None:
            raise TapeError(f"{where} knows its own columns: read it without names")
        return _unpacked_tape(arrays, where)


def _unpacked_tape(arrays: Mapping[str, np.ndarray], where: str) -> dict[str, Any]:
    header = json.loads(arrays[_HEADER].tobytes())
    if header["format"] != _FORMAT or header["version"] != _VERSION:
        raise TapeError(
            f"{where} is a {header['format']} of version {header['version']}; this setpoint reads "
            f"a {_FORMAT} of version {_VERSION}"
        )

    def column(name: str) -> Any:
        array = arrays[name]
        if f"{name}.offsets" in arrays:
            return Ragged(array, arrays[f"{name}.offsets"])
        if f"{name}.words" in arrays:
            words = json.loads(arrays[f"{name}.words"].tobytes())
            return np.fromiter(words, object, len(words))[array]
        return array

    return {
        "prediction": [column(f"prediction{i}") for i in range(len(header["names"]))],
        "names": header["names"],
        "y": column("y"),
        **{name: column(name) for name in KEYS if name in arrays},
        "extras": {name: column(f"extra{i}") for i, name in enumerate(header["extras"])},
    }


def _to_bytes(value: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)
