"""Files of rows: CSV, Parquet and JSON Lines, read as they are and written whole or not at all.

A CSV is kept as the text it is, so that columns nobody asks about come out as they went in; numbers
and times are made of the columns that are asked for.
"""

import csv
import gzip
import io
import json
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from setpoint._files import whole
from setpoint.errors import DataError
from setpoint.jobs.places import csv_line, line, not_utf8, unpacked
from setpoint.jobs.times import first_odd, parsed

__all__ = ["SUFFIXES", "Rows", "arrow", "is_json", "read", "suffix_of", "write"]

Array = np.ndarray[Any, Any]
_Path = str | os.PathLike[str]

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".jsonl", ".jsonl.gz", ".ndjson")
_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "none", "?")
"""Cells that stand for no number where a number is due."""
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity|nan)$"
_FRACTION = r"[.eEnN]"
"""In a number: it is not a whole one."""
_CODE = r"^[+-]?0\d+$"
_BATCH = 1 << 16
_LISTED, _HEAD = 15, 1000


def arrow(module: str = "pyarrow") -> Any:
    """A module of Arrow, imported where it is used."""
    try:
        return import_module(module)
    except ImportError as error:
        raise DataError(
            "reading files of rows needs pyarrow: pip install 'setpoint[data]'"
        ) from error


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
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

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        return f"<Rows of {self.path}: {len(self):,}, {', '.join(self.names)}>"

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.table.column_names)

    def column(self, name: str, role: str) -> Any:
        """A column by its name; `role` is the option that asks for it."""
        if name not in self.names:
            bare = {" ".join(known.split()).lower(): known for known in self.names}
            near = get_close_matches(" ".join(name.split()).lower(), bare, 1)
            hint = f"; did you mean {bare[near[0]]!r}" if near else ""
            some = ", ".join(map(repr, self.names[:_LISTED]))
            more = f", … and {len(self.names) - _LISTED} more" if len(self.names) > _LISTED else ""
            raise DataError(
                f"{self.path} has no column {name!r} for {role}; it has {some}{more}{hint}"
            )
        return self.table[name]

    def is_text(self, name: str) -> bool:
        """Whether a column holds text that is not all numbers."""
        pa = arrow()
        held = self.table[name]
        if not _textual(pa, held.type):
            return False
        if _first_wrong(held[:_HEAD]) is not None:  # most text shows at once that it is text
            return True
        with suppress(pa.ArrowInvalid):
            _cast(held)
            return False
        return _first_wrong(held) is not None

    def numbers(self, name: str, role: str) -> Array:
        """A column as float64, NaN where there is none; text is an error that shows it."""
        pa, held = arrow(), self.column(name, role)
        if _textual(pa, held.type):
            try:
                made = _cast(held)
            except pa.ArrowInvalid:
                wrong = _first_wrong(held)
                if wrong is None:
                    made = _cast(_blanked(held))
                else:
                    row, text = wrong
                    raise DataError(
                        f"{role} must name a column of numbers, and {name!r} of {self.path} holds "
                        f"{text!r} in {self.place(row)}"
                    ) from None
        else:
            try:
                made = held.cast(pa.float64())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise DataError(
                    f"{role} must name a column of numbers, and {name!r} of {self.path} holds "
                    f"{held.type}"
                ) from None
        return _floats(made)

    def times(self, name: str, role: str) -> Array:
        """A column as datetime64, or as the numbers it holds."""
        pa, held = arrow(), self.column(name, role)
        if pa.types.is_timestamp(held.type) or pa.types.is_date(held.type):
            found = held
        elif _textual(pa, held.type) and self.is_text(name):
            found = parsed(held)
            if found is None:
                row, _ = first_odd(held)
                raise DataError(
                    f"{role} must name a column of dates or numbers, and {name!r} of {self.path} "
                    f"{self.holds(name, row)}: write dates like 2024-01-31 or 2024-01-31 15:00:00"
                )
        else:
            numbers = self.numbers(name, role)
            self._no_gaps(np.isnan(numbers), name, role)
            return numbers
        self._no_gaps(np.asarray(found.is_null()), name, role)
        return np.asarray(found.cast(pa.timestamp("us"), safe=False).to_numpy())

    def _no_gaps(self, gaps: Array, name: str, role: str) -> None:
        if gaps.any():
            raise DataError(
                f"{role} must have a value in every row, and {name!r} of {self.path} has none in "
                f"{self.place(int(gaps.argmax()))}: leave such rows out"
            )

    def keys(self, name: str, role: str) -> tuple[list[Any], Array]:
        """The distinct values of a column in order of appearance, and the place of each row's."""
        held = self.column(name, role).combine_chunks().dictionary_encode()
        codes = held.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        self._no_gaps(codes < 0, name, role)
        return held.dictionary.to_pylist(), codes

    def holds(self, name: str, row: int) -> str:
        """What a cell of text holds, and where, to go on a sentence."""
        text = self.table[name][row].as_py()
        return f"{f'holds {text!r}' if text else 'is empty'} in {self.place(row)}"

    def place(self, row: int) -> str:
        """Where a row is, as an editor shows the file; a Parquet file has rows and no lines."""
        if self.suffix == ".parquet":
            return f"row {row + 1:,}"
        if is_json(self.suffix):
            return f"line {line(self.path, row):,}"
        return f"line {csv_line(self.path, row, self.delimiter):,} (the header is line 1)"

    def with_columns(self, columns: Mapping[str, Any], suffix: str | None = None) -> Any:
        """The table with columns added behind its own, for a file of the kind of `suffix`.

        Where that kind tells numbers from text and the rows come from a CSV, which does not,
        columns of numbers become numbers, and in a Parquet file dates become times.
        """
        table, kind = self.table, suffix or self.suffix
        if _is_csv(self.suffix) and not _is_csv(kind):
            table = _typed(table, dates=kind == ".parquet")
        for name, held in columns.items():
            mask = np.ma.getmask(held)
            gaps = None if mask is np.ma.nomask else mask
            table = table.append_column(name, arrow().array(np.ma.getdata(held), mask=gaps))
        return table


def _is_csv(suffix: str) -> bool:
    return suffix.startswith((".csv", ".tsv"))


def is_json(suffix: str) -> bool:
    """Whether a suffix is one of JSON Lines."""
    return suffix.startswith((".jsonl", ".ndjson"))


def _textual(pa: Any, kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _floats(column: Any) -> Array:
    return np.asarray(column.to_numpy(zero_copy_only=False) if column.num_chunks == 1
                      else column.to_numpy(), dtype=np.float64)  # fmt: skip


def _cast(column: Any) -> Any:
    return column.cast(arrow().float64())


def _blanked(column: Any) -> Any:
    """Text without the spaces around it, and null where it stands for nothing."""
    pa, compute = arrow(), arrow("pyarrow.compute")
    bare = compute.utf8_trim_whitespace(column.cast(pa.string()))
    nothing = compute.is_in(bare, value_set=pa.array(_MISSING))
    return compute.if_else(nothing, pa.scalar(None, pa.string()), bare)


def _typed(table: Any, *, dates: bool) -> Any:
    """A table whose columns of text that are all numbers are numbers; `dates` too become times.

    Whole numbers with zeros before them are codes and stay text.
    """
    pa, compute = arrow(), arrow("pyarrow.compute")
    for place, name in enumerate(table.column_names):
        held = table[name]
        if not _textual(pa, held.type):
            continue
        bare = _blanked(held)
        made = None
        if bare.null_count == len(bare) or _any(compute, bare, _CODE):
            continue
        if _any(compute, bare, _NUMBER, fits=False):
            made = parsed(held) if dates else None
        else:
            with suppress(pa.ArrowInvalid):
                made = bare.cast(pa.int64() if not _any(compute, bare, _FRACTION) else pa.float64())
        if made is not None:
            table = table.set_column(place, name, made)
    return table


def _any(compute: Any, column: Any, pattern: str, *, fits: bool = True) -> bool:
    """Whether some cell fits a pattern, or some does not."""
    found = compute.match_substring_regex(column, pattern)
    return bool(compute.any(found if fits else compute.invert(found)).as_py())


def _first_wrong(column: Any) -> tuple[int, str] | None:
    """The first cell that is no number and does not stand for none."""
    compute = arrow("pyarrow.compute")
    bare = _blanked(column)
    fits = compute.match_substring_regex(bare, _NUMBER).fill_null(True)
    place = compute.index(fits, False).as_py()
    return None if place < 0 else (place, column[place].as_py())


# Read


def suffix_of(path: _Path) -> str:
    """Which of the known suffixes a path has."""
    name = os.fspath(path).lower()
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if name.endswith(suffix):
            return suffix
    raise DataError(f"a file of rows ends in {', '.join(SUFFIXES)}; got {os.fspath(path)!r}")


def read(path: _Path) -> Rows:
    """The rows of a CSV, Parquet or JSON Lines file; compressed by gzip if it ends in .gz."""
    where, suffix = Path(path), suffix_of(path)
    pa = arrow()
    if not where.exists():
        raise DataError(f"{where} does not exist: name a file of rows")
    if where.is_dir():
        raise DataError(f"{where} is a folder, and a file of rows is needed")
    try:
        if suffix == ".parquet":
            found = Rows(arrow("pyarrow.parquet").read_table(where), where, suffix)
        elif is_json(suffix):
            found = _read_json(where, suffix)
        else:
            found = _read_csv(where, suffix)
    except (pa.ArrowException, gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError) as error:
        if suffix != ".parquet" and (isinstance(error, UnicodeDecodeError) or "UTF8" in str(error)):
            raise not_utf8(where) from error
        said = str(error).splitlines()[0]
        raise DataError(f"{where} is damaged or no {suffix} file: {said}") from error
    if not len(found):
        raise DataError(f"{where} is empty: it needs a row for each prediction and its outcome")
    return found


def _read_json(path: Path, suffix: str) -> Rows:
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty: it needs a row for each prediction and its outcome")
    with arrow().input_stream(os.fspath(path), compression="detect") as stream:
        return Rows(arrow("pyarrow.json").read_json(stream), path, suffix)


def _read_csv(path: Path, suffix: str) -> Rows:
    pa, reader = arrow(), arrow("pyarrow.csv")
    delimiter, names = _header(path)
    convert = reader.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )
    table = None
    for newlines in (False, True):  # cells with line breaks are rare, and cost time to allow for
        parse = reader.ParseOptions(delimiter=delimiter, newlines_in_values=newlines)
        try:
            table = reader.read_csv(os.fspath(path), parse_options=parse, convert_options=convert)
            break
        except pa.ArrowInvalid:
            if newlines:
                raise
    return Rows(table, path, suffix, delimiter)


def _header(path: Path) -> tuple[str, list[str]]:
    """The delimiter and the names of the columns."""
    with io.TextIOWrapper(unpacked(path), "utf-8-sig", newline="") as lines:
        first = next((line for line in lines if line.strip()), "")
    if not first:
        raise DataError(f"{path} is empty: its first line must name the columns")
    delimiter = max((",", ";", "\t"), key=first.count)
    names = next(csv.reader([first], delimiter=delimiter))
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"{path} names the column {twice[0]!r} twice: rename one of them")
    return delimiter, names


# Write


def write(table: Any, path: _Path, delimiter: str = ",") -> Path:
    """Writes an Arrow table as its path's suffix says, whole or not at all."""
    suffix = suffix_of(path)
    with whole(path) as file:
        if suffix == ".parquet":
            arrow("pyarrow.parquet").write_table(table, file)
            return Path(path)
        if suffix.endswith(".gz"):
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                _write_text(table, cast(BinaryIO, packed), suffix, delimiter)
        else:
            _write_text(table, file, suffix, delimiter)
    return Path(path)


def _write_text(table: Any, file: BinaryIO, suffix: str, delimiter: str) -> None:
    if is_json(suffix):
        for batch in table.to_batches(max_chunksize=_BATCH):
            lines = [json.dumps(_plain(row), ensure_ascii=False) for row in batch.to_pylist()]
            file.write(("\n".join(lines) + "\n").encode())
        return
    writer = arrow("pyarrow.csv")
    names = io.StringIO()
    csv.writer(names, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
    file.write(names.getvalue().encode())
    # Arrow quotes every text or none.
    style = "needed" if any(_needs_quotes(c, delimiter) for c in table.columns) else "none"
    options = writer.WriteOptions(
        include_header=False, delimiter=delimiter, quoting_style=style, batch_size=_BATCH
    )
    writer.write_csv(table, file, options)


def _needs_quotes(column: Any, delimiter: str) -> bool:
    """Whether some cell of a column of text cannot stand in a CSV as it is."""
    if not _textual(arrow(), column.type):
        return False
    signs = ('"', delimiter, "\n", "\r")
    for chunk in column.chunks:
        text = getattr(chunk, "dictionary", chunk).buffers()[-1]
        held = b"" if text is None else text.to_pybytes()
        if any(sign.encode() in held for sign in signs):
            return True
    return False


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row in JSON's own types: an infinite end is null, a time is written as ISO 8601."""
    made: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, float) and not np.isfinite(value):
            value = None
        elif hasattr(value, "isoformat"):
            value = value.isoformat()
        made[name] = value
    return made
