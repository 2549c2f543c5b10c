"""Files of rows: CSV, Parquet and JSON Lines, read as they are and written whole or not at all.

A CSV is kept as the text it is, so that columns nobody asks about come out as they went in; numbers
and times are made of the columns that are asked for.
"""

import csv
import gzip
import io
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from setpoint.errors import DataError
from setpoint.jobs.cells import (
    SUFFIXES,
    advice,
    arrow,
    as_floats,
    blanked,
    cast,
    first_wrong,
    has_points,
    is_csv,
    is_json,
    pointed,
    suffix_of,
    textual,
    typed,
)
from setpoint.jobs.places import csv_line, delimiter_of, fault, line, not_utf8, unpacked
from setpoint.jobs.times import counted, doubt, first_odd, in_utc, parsed
from setpoint.jobs.writing import write

__all__ = ["SUFFIXES", "Rows", "arrow", "is_json", "read", "suffix_of", "write"]

Array = np.ndarray[Any, Any]

_LISTED, _HEAD = 15, 1000
_OTHERWISE = {
    "--target": ": name a column of numbers, or give the probabilities of a classifier by "
    "--probabilities"
}
"""What to do about a column that is no column of numbers."""


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

    @cached_property
    def commas(self) -> bool:
        """Whether numbers have decimal commas: then no comma separates the cells of the CSV."""
        if not is_csv(self.suffix) or self.delimiter == ",":
            return False
        heads = [column[:_HEAD] for column in self.table.columns]
        return any(pointed(head, points=self._points) is not head for head in heads)

    @cached_property
    def _points(self) -> bool:
        return any(has_points(column[:_HEAD]) for column in self.table.columns)

    def _text(self, name: str) -> Any:
        """A column, with points where its numbers have decimal commas."""
        held = self.table[name]
        return pointed(held, points=self._points) if self.commas else held

    def is_text(self, name: str) -> bool:
        """Whether a column holds text that is not all numbers."""
        pa = arrow()
        held = self._text(name)
        if not textual(pa, held.type):
            return False
        if first_wrong(held[:_HEAD]) is not None:  # most text shows at once that it is text
            return True
        with suppress(pa.ArrowInvalid):
            cast(held)
            return False
        return first_wrong(held) is not None

    def numbers(self, name: str, role: str) -> Array:
        """A column as float64, NaN where there is none; text is an error that shows it."""
        pa, held = arrow(), self.column(name, role)
        if textual(pa, held.type):
            held = self._text(name)
            try:
                made = cast(held)
            except pa.ArrowInvalid:
                wrong = first_wrong(held)
                if wrong is None:
                    made = cast(blanked(held))
                else:
                    row, text = wrong
                    raise DataError(
                        f"{role} must name a column of numbers, and {name!r} of {self.path} holds "
                        f"{text!r} in {self.place(row)}{advice(text) or _OTHERWISE.get(role, '')}"
                    ) from None
        else:
            try:
                made = held.cast(pa.float64(), safe=not pa.types.is_integer(held.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise DataError(
                    f"{role} must name a column of numbers, and {name!r} of {self.path} holds "
                    f"{held.type}{_OTHERWISE.get(role, '')}"
                ) from None
        return as_floats(made)

    def times(self, name: str, role: str) -> Array:
        """A column as datetime64, or as the numbers it holds if they are no moments."""
        pa, held = arrow(), self.column(name, role)
        if pa.types.is_timestamp(held.type) or pa.types.is_date(held.type):
            found = held
        elif textual(pa, held.type) and self.is_text(name):
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
            moments = counted(numbers)
            return numbers if moments is None else moments[0]
        self._no_gaps(np.asarray(found.is_null()), name, role)
        return np.asarray(found.cast(pa.timestamp("us"), safe=False).to_numpy())

    def doubt(self, name: str) -> str | None:
        """How times were read, if they could have been read otherwise; to go behind "is read"."""
        pa, held = arrow(), self.table[name]
        if textual(pa, held.type) and self.is_text(name):
            return doubt(held)
        if pa.types.is_timestamp(held.type) or pa.types.is_date(held.type):
            return _moved(held)
        moments = counted(self.numbers(name, "--time"))
        return None if moments is None else f"as {moments[1]}"

    def no_dates(self, name: str) -> str:
        """Which cell keeps a column of text from being one of dates, if most of it is."""
        held = self.table[name]
        if not self.is_text(name) or first_odd(held[:_HEAD])[1] <= 0.5:
            return ""
        row, share = first_odd(held)
        return f"{self.holds(name, row)} and is no column of dates" if share > 0.5 else ""

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
        columns of numbers become numbers, and in a Parquet file dates become times. In a CSV with
        decimal commas the new columns have them too.
        """
        pa, table, kind = arrow(), self.table, suffix or self.suffix
        if self.suffix != ".parquet" and not is_csv(kind):
            if self.commas:
                for place, name in enumerate(self.names):
                    table = table.set_column(place, name, self._text(name))
            table = typed(table, numbers=is_csv(self.suffix), dates=kind == ".parquet")
        for name, held in columns.items():
            mask = np.ma.getmask(held)
            made = pa.array(np.ma.getdata(held), mask=None if mask is np.ma.nomask else mask)
            if self.commas and is_csv(kind) and pa.types.is_floating(made.type):
                made = arrow("pyarrow.compute").replace_substring(made.cast(pa.string()), ".", ",")
            table = table.append_column(name, made)
        return table


def _moved(column: Any) -> str | None:
    """How times of Arrow with a zone were read, if they are not those of UTC."""
    pa = arrow()
    if not pa.types.is_timestamp(column.type) or column.type.tz is None or not len(column):
        return None
    local = arrow("pyarrow.compute").local_timestamp(column).cast(pa.timestamp("us"), safe=False)
    plain = column.cast(pa.timestamp("us"), safe=False)
    away = np.flatnonzero(local.to_numpy() != plain.to_numpy())
    if not len(away):
        return None
    row = int(away[0])
    return in_utc(f"{local[row].as_py():%Y-%m-%d %H:%M} {column.type.tz}", plain[row].as_py())


# Read


def read(path: str | os.PathLike[str]) -> Rows:
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
        said = None if isinstance(error, EOFError | zlib.error) else fault(where, suffix)
        if said is not None:
            raise DataError(f"{where}: {said}") from error
        said = str(error).splitlines()[0]
        raise DataError(f"{where} is damaged or no {suffix} file: {said}") from error
    if not len(found):
        raise DataError(f"{where} is empty: it needs a row for each prediction and its outcome")
    return found


def _read_json(path: Path, suffix: str) -> Rows:
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty: it needs a row for each prediction and its outcome")
    pa, reader = arrow(), arrow("pyarrow.json")

    def table(parse: Any = None) -> Any:
        with pa.input_stream(os.fspath(path), compression="detect") as stream:
            return reader.read_json(stream, parse_options=parse)

    found = table()
    schema = pa.schema([(field.name, _as_text(pa, field.type)) for field in found.schema])
    if schema != found.schema.remove_metadata():  # a time that is made of text is not that text
        found = table(reader.ParseOptions(explicit_schema=schema))
    return Rows(found, path, suffix)


def _as_text(pa: Any, kind: Any) -> Any:
    """An Arrow type with text in place of times, however deep."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _as_text(pa, field.type)) for field in kind])
    return pa.list_(_as_text(pa, kind.value_type)) if pa.types.is_list(kind) else kind


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
    delimiter = delimiter_of(first)
    names = next(csv.reader([first], delimiter=delimiter))
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"{path} names the column {twice[0]!r} twice: rename one of them")
    return delimiter, names
