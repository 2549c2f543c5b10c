"""Files of rows and of tapes, read as they are and written whole or not at all.

A CSV is kept as the text it is, so that columns nobody asks about come out as they went in.
Arrow reads and writes; this module adds the line of a row, and what is wrong with a file in words.
"""

import csv
import gzip
import io
import json
import os
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice, product, starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np

from setpoint._check import plain
from setpoint._files import whole
from setpoint.errors import DataError, TapeError
from setpoint.tape.columns import (
    KEYS,
    Column,
    Columns,
    Ragged,
    encoded,
    frame_columns,
)
from setpoint.tape.text import arrow, is_text

SUFFIXES = (
    ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".jsonl", ".jsonl.gz", ".ndjson",
)  # fmt: skip
"""How the names of files of rows may end."""
_INSTEAD = {
    (".xlsx", ".xls", ".ods"): "a spreadsheet: save its sheet as CSV, or give jobs a data frame",
    (".json",): "JSON: write one object in each line, and call the file .jsonl",
}
_Path = str | os.PathLike[str]
_EMPTY = "is empty: it needs a row for each prediction and its outcome"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BATCH, _SAMPLE = 1 << 16, 200
OF_TAPES = (".csv", ".csv.gz", ".parquet", ".npz")
"""How the names of files of tapes may end."""
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
    delimiter, encoding
        What separates the cells of a CSV, and how its letters are written.
    """

    table: Any
    path: Path
    suffix: str
    delimiter: str = ","
    encoding: str = "utf-8-sig"

    def place(self, row: int, *, header: bool = True) -> str:
        """Where a row is, as an editor shows the file; a Parquet file has rows and no lines.

        `header` says which line of a CSV is counted as the first.
        """
        if self.suffix == ".parquet" or self.path.suffix == "":
            return f"row {row + 1:,}"
        with _text(self.path, self.encoding) as lines:
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
        raise DataError(f"{where} does not exist: give the path of a data file")
    if where.is_dir():
        raise DataError(f"{where} is a folder, and a file of rows is needed")
    try:
        if suffix == ".parquet":
            found = File(arrow("pyarrow.parquet").read_table(where, columns=columns), where, suffix)
        elif is_json(suffix):
            found = File(_read_json(where), where, suffix)
        else:
            found = _read_csv(where, suffix, columns)
    except (pa.ArrowException, gzip.BadGzipFile, EOFError, zlib.error) as error:
        fault = None if isinstance(error, EOFError | zlib.error) else _fault(where, suffix)
        if fault is not None:
            raise DataError(f"{where}: {fault}") from error
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{where} is damaged or no {suffix} file: {reason}") from error
    if not found.table.num_rows and not empty:
        raise DataError(f"{where} {_EMPTY}")
    return found


def names_of(path: _Path) -> list[str]:
    """The names of the columns of a CSV or a Parquet file."""
    if suffix_of(path) == ".parquet":
        with arrow("pyarrow.parquet").ParquetFile(path) as file:
            return list(file.schema_arrow.names)
    return _dialect(Path(path)).names


class _Dialect(NamedTuple):
    """How a CSV is written: its letters, its separator, its columns, the line they begin in."""

    encoding: str
    delimiter: str
    names: list[str]
    skipped: int


def _dialect(path: Path) -> _Dialect:
    """The dialect of a CSV: Excel's UTF-16 and Windows-1252 too, and a first line of sep=;"""
    for encoding in _encodings(path):
        try:
            with _text(path, encoding) as lines:
                sample = "".join(islice(lines, _SAMPLE))
        except UnicodeError:
            continue
        break
    else:
        raise DataError(f"{path} is neither UTF-8 nor Windows-1252 text: save it as UTF-8")
    head = next((line for line in sample.splitlines() if line.strip()), "")
    if not head:
        raise DataError(f"{path} is empty: its first line must name the columns")
    named = re.fullmatch(r"sep=(.)", head.strip(), re.IGNORECASE)
    skipped = sample.splitlines().index(head) + 1 if named else 0
    rows = sample.splitlines(keepends=True)[skipped:]
    delimiter = named[1] if named else _delimiter(rows)
    names = next((row for row in csv.reader(rows, delimiter=delimiter) if row), [])
    return _Dialect(encoding, delimiter, names, skipped)


def _encodings(path: Path) -> tuple[str, ...]:
    with _unpacked(path) as content:
        begin = content.read(4)
    if begin[:2] in _UTF16:
        return ("utf-32",) if begin in (b"\xff\xfe\0\0", b"\0\0\xfe\xff") else ("utf-16",)
    return "utf-8-sig", "cp1252"


def _delimiter(lines: list[str]) -> str:
    """What separates the cells of some lines: what cuts all of them into as many cells.

    Commas come last: they also stand inside numbers and names.

    >>> _delimiter(["Load, MW;Wind, m/s", "1,5;2,5"]), _delimiter(["a b"])
    (';', ',')
    """
    shares = {}
    for sign in ("\t", ";", "|", ","):
        with suppress(csv.Error):
            counts = [len(row) for row in csv.reader(lines, delimiter=sign) if row][:_SAMPLE]
            alike = sum(count == counts[0] for count in counts) / len(counts)
            shares[sign] = alike if counts[0] > 1 else 0.0
    best = max(shares, key=lambda sign: shares[sign], default=",")
    return best if shares.get(best) else ","


def _read_csv(path: Path, suffix: str, columns: Sequence[str] | None) -> File:
    pa, reader = arrow(), arrow("pyarrow.csv")
    encoding, delimiter, names, skipped = _dialect(path)
    wanted = names if columns is None else columns
    twice = [name for name in wanted if names.count(name) > 1]
    if twice:
        raise DataError(f"{path} names the column {twice[0]!r} twice: rename one of them")
    convert = reader.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=False,
        include_columns=list(wanted),
    )
    encodings = (encoding, "cp1252") if encoding == "utf-8-sig" else (encoding,)
    for encoding, newlines in product(encodings, (False, True)):  # line breaks in cells are rare
        source: Any = os.fspath(path)
        if encoding != "utf-8-sig":
            source = pa.BufferReader(_decoded(path, encoding).encode())
        parse = reader.ParseOptions(delimiter=delimiter, newlines_in_values=newlines)
        lines = reader.ReadOptions(skip_rows=skipped)
        try:
            table = reader.read_csv(source, lines, parse, convert)
        except pa.ArrowInvalid as error:
            foreign = encoding == "utf-8-sig" and "UTF8" in str(error)
            if newlines and not foreign:
                raise
        else:
            return File(table, path, suffix, delimiter, encoding)
    raise DataError(f"{path} is no text that can be read: save it as UTF-8")


def _decoded(path: Path, encoding: str) -> str:
    try:
        with _text(path, encoding) as lines:
            return lines.read()
    except UnicodeError as error:
        raise DataError(
            f"{path} is neither UTF-8 nor Windows-1252 text: save it as UTF-8 ({error})"
        ) from error


def _read_json(path: Path) -> Any:
    if path.stat().st_size == 0:
        raise DataError(f"{path} {_EMPTY}")
    pa, reader = arrow(), arrow("pyarrow.json")

    def table(schema: Any = None) -> Any:
        with pa.input_stream(os.fspath(path), compression="detect") as stream:
            return reader.read_json(stream, None, reader.ParseOptions(explicit_schema=schema))

    rows = table()
    kinds = {field.name: field.type for field in rows.schema}
    times = {name: pa.string() for name, kind in kinds.items() if pa.types.is_timestamp(kind)}
    # A time that is made of text is not that text.
    return table(pa.schema(list((kinds | times).items()))) if times else rows


# What is wrong with a text file, and where


def _unpacked(path: Path) -> BinaryIO:
    """The bytes of a file, unpacked if it ends in .gz."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    return cast(BinaryIO, opened(path, "rb"))


def _text(path: Path, encoding: str = "utf-8-sig") -> io.TextIOWrapper:
    return io.TextIOWrapper(_unpacked(path), encoding, newline="")


def _csv_rows(lines: io.TextIOWrapper, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV that are not blank, each with the line that it begins in."""
    reader, before = csv.reader(lines, delimiter=delimiter), 0
    for row in reader:
        if row and not (before == 0 and row[0].lower().startswith("sep=")):
            yield before + 1, row
        before = reader.line_num


def _fault(path: Path, suffix: str) -> str | None:
    """What keeps a text file from being read, and in which line; None if that is not clear."""
    with suppress(OSError, EOFError, UnicodeError, csv.Error):
        if is_json(suffix):
            with _text(path) as lines:
                return next(filter(None, starmap(_json_fault, enumerate(lines, 1))), None)
        if is_csv(suffix):
            dialect = _dialect(path)
            with _text(path, dialect.encoding) as lines:
                for line, row in _csv_rows(lines, dialect.delimiter):
                    if len(row) != len(dialect.names):
                        return (
                            f"line {line:,} has {len(row)} cells and the header has "
                            f"{len(dialect.names)}: put cells that hold the separator in double "
                            "quotes, or correct the line"
                        )
    return None


def _json_fault(number: int, line: str) -> str | None:
    """Why a line is no object; Arrow says what else there may be."""
    try:
        row = json.loads(line) if line.strip() else {}
    except (ValueError, RecursionError) as error:
        reason = str(error).split(": line")[0]
        return f"line {number:,} is no JSON object ({reason}): correct it or leave it out"
    if isinstance(row, dict):
        return None
    return f"line {number:,} is no JSON object: write one in each line"


# Written


def write(table: Any, path: _Path, delimiter: str = ",") -> Path:
    """Writes an Arrow table as its path's suffix says, whole or not at all.

    A column that a CSV cannot hold, such as lists, is written as JSON text.
    """
    suffix = suffix_of(path)
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
    pa, types = arrow(), arrow().types
    for place, field in enumerate(table.schema):
        kind, column = field.type, table[field.name]
        if types.is_timestamp(kind) and kind.tz is not None:
            try:
                pa.lib.string_to_tzinfo(kind.tz)
            except (pa.ArrowInvalid, KeyError, ValueError):  # a zone that nobody knows here
                column = column.cast(pa.timestamp(kind.unit, tz="UTC"))
        elif types.is_nested(kind) or types.is_duration(kind) or "binary" in str(kind):
            words = [None if value is None else _json(value) for value in column.to_pylist()]
            column = column if is_json(suffix) else pa.chunked_array([words], pa.string())
        table = table.set_column(place, field.name, column)
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


def _json(value: Any) -> str:
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)


# Tapes


@contextmanager
def readable(path: _Path) -> Iterator[None]:
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


def write_tape(
    path: _Path,
    keys: Mapping[str, np.ndarray],
    prediction: Mapping[str, Column],
    y: np.ndarray,
    extras: Mapping[str, Column],
) -> None:
    """A file of the columns in this order: keys, prediction, y, extras."""
    try:
        suffix = suffix_of(path, OF_TAPES, "a tape's file")
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


def read_npz(path: _Path, columns: Columns | None) -> dict[str, Any]:
    """What `Tape.from_arrays` takes, from an .npz; by default as `write_tape` lays it out."""
    where = os.fspath(path)
    # numpy leaves a file open that it cannot read, so it is not left to numpy.
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
        if _HEADER not in arrays.files:
            columns = columns or Columns.laid_out(arrays.files, where)
            return columns.arguments(frame_columns(arrays, columns.kinds(), where))
        if columns is not None:
            raise TapeError(f"{where} knows its own columns: read it without names")
        header = json.loads(arrays[_HEADER].tobytes())
        if (header["format"], header["version"]) != (_FORMAT, _VERSION):
            raise TapeError(
                f"{where} is a {header['format']} of version {header['version']}; this setpoint "
                f"reads a {_FORMAT} of version {_VERSION}"
            )
        names, extras = header["names"], header["extras"]
        return {
            "prediction": [_unpacked_column(arrays, f"prediction{i}") for i in range(len(names))],
            "names": names,
            "y": arrays["y"],
            **{name: _unpacked_column(arrays, name) for name in KEYS if name in arrays},
            "extras": {n: _unpacked_column(arrays, f"extra{i}") for i, n in enumerate(extras)},
        }


def _unpacked_column(arrays: Mapping[str, np.ndarray], name: str) -> Any:
    array = arrays[name]
    if f"{name}.offsets" in arrays:
        return Ragged(array, arrays[f"{name}.offsets"])
    if f"{name}.words" in arrays:
        words = json.loads(arrays[f"{name}.words"].tobytes())
        return np.fromiter(words, object, len(words))[array]
    return array


def _write_npz(path: _Path, header: dict[str, Any], columns: Mapping[str, Column]) -> None:
    arrays = {_HEADER: _to_bytes({"format": _FORMAT, "version": _VERSION, **header})}
    for name, column in columns.items():
        if isinstance(column, Ragged):
            arrays[name], arrays[f"{name}.offsets"] = column.values, column.offsets
        elif column.dtype.kind in "OT":
            words, arrays[name] = encoded(column, name)
            arrays[f"{name}.words"] = _to_bytes(words)
        else:
            arrays[name] = column
    with whole(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def _to_bytes(value: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)
