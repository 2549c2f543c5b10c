"""The rows of a user's file: columns as numbers, times, labels and keys.

Messages name the argument that asks for a column, the cell, and its line in the file.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._check import option
from setpoint.errors import DataError
from setpoint.tape import cells, files
from setpoint.tape.cells import arrow

__all__ = ["Rows", "read"]

Array = np.ndarray[Any, Any]

_LISTED, _HEAD = 15, 1000
_INDEX = re.compile(r"__index_level_\d+__")
"""What Arrow calls an index without a name."""
_OTHERWISE = {
    "target": ": name a column of numbers, or give the probabilities of a classifier by {}"
}
"""What to do about a column that is no column of numbers."""


def _otherwise(role: str) -> str:
    return _OTHERWISE.get(role, "").format(option("probabilities"))


def read(source: Any) -> "Rows":
    """The rows of a CSV, Parquet or JSON Lines file, packed by gzip if it ends in .gz, or of a
    data frame: pandas, polars or Arrow. The index of a frame is a column, unless it counts rows.
    """
    if isinstance(source, str | os.PathLike):
        return Rows(files.read(source))
    pa = arrow()
    try:
        table = pa.table(source)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise DataError(
            f"rows come from a file or a data frame, got {type(source).__name__}: {error}"
        ) from error
    table = table.rename_columns([_INDEX.sub("index", name) for name in table.column_names])
    if not table.num_rows:
        raise DataError("the data frame is empty: it needs a row for each prediction")
    return Rows(files.File(table.replace_schema_metadata(), Path("the data frame"), ".parquet"))


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """The rows of a file as it was read, column by column."""

    file: files.File

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def table(self) -> Any:
        """The Arrow table; the columns of a CSV are text."""
        return self.file.table

    @property
    def path(self) -> Path:
        """Where the rows come from, for messages."""
        return self.file.path

    @property
    def source(self) -> Path | None:
        """The file they come from, None for a data frame."""
        return None if self.path.suffix == "" else self.path

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.table.column_names)

    def place(self, row: int, *, header: bool = True) -> str:
        """Where a row is, as an editor shows the file."""
        return self.file.place(row, header=header)

    def column(self, name: str, role: str) -> Any:
        """A column by its name; `role` is the argument that names it."""
        if name not in self.names:
            bare = {" ".join(known.split()).lower(): known for known in self.names}
            near = get_close_matches(" ".join(name.split()).lower(), bare, 1)
            hint = f"; did you mean {bare[near[0]]!r}" if near else ""
            some = ", ".join(map(repr, self.names[:_LISTED]))
            more = f", … and {len(self.names) - _LISTED} more" if len(self.names) > _LISTED else ""
            raise DataError(
                f"{self.path} has no column {name!r} for {option(role)}; it has {some}{more}{hint}"
            )
        return self.table[name]

    # Numbers

    @cached_property
    def commas(self) -> bool:
        """Whether numbers have decimal commas: then no comma separates the cells of the CSV."""
        if not files.is_csv(self.file.suffix) or self.file.delimiter == ",":
            return False
        heads = [column[:_HEAD] for column in self.table.columns]
        return any(cells.pointed(head, points=self._points) is not head for head in heads)

    @cached_property
    def _points(self) -> bool:
        return any(cells.has_points(column[:_HEAD]) for column in self.table.columns)

    def _text(self, name: str) -> Any:
        """A column, with points where its numbers have decimal commas."""
        column = self.table[name]
        return cells.pointed(column, points=self._points) if self.commas else column

    def is_text(self, name: str) -> bool:
        """Whether a column holds text that is not all numbers."""
        column = self._text(name)
        if not cells.is_text(column):
            return False
        head = cells.numbers(column[:_HEAD])  # most text shows at once that it is text
        return isinstance(head, tuple) or isinstance(cells.numbers(column), tuple)

    def numbers(self, name: str, role: str) -> Array:
        """A column as float64, NaN where there is none; text is an error that shows it."""
        pa, column = arrow(), self.column(name, role)
        if cells.is_text(column):
            values = cells.numbers(self._text(name))
            if isinstance(values, tuple):
                row, text = values
                raise DataError(
                    f"{option(role)} must name a column of numbers, and {name!r} of {self.path} "
                    "holds "
                    f"{text!r} in {self.place(row)}"
                    f"{cells.advice(text) or _otherwise(role)}"
                )
            return values
        try:
            values = column.cast(pa.float64(), safe=not pa.types.is_integer(column.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise DataError(
                f"{option(role)} must name a column of numbers, and {name!r} of {self.path} holds "
                f"{column.type}{_otherwise(role)}"
            ) from None
        return cells.as_floats(values)

    def labels(self, name: str) -> Array:
        """The numbers of the target, finite, or NaN where they are not known."""
        y = self.numbers(name, "target")
        if np.isinf(y).any():
            row = int(np.isinf(y).argmax())
            raise DataError(
                f"{option('target')} must be finite, and {name!r} of {self.path} holds {y[row]} in "
                f"{self.place(row)}: leave the cell empty where the label is not known"
            )
        return y

    # Times

    @cached_property
    def dates(self) -> list[str]:
        """The columns that hold dates."""
        return [name for name in self.names if self.moments(name) is not None]

    def moments(self, name: str) -> Array | None:
        """A column as moments of time, if it holds them."""
        column = self.table[name]
        times = column if cells.is_time(column) else None
        # A long column costs time, so its head is tried first.
        if cells.is_text(column) and cells.parsed(column[:100]) is not None and self.is_text(name):
            times = cells.parsed(column)
        return None if times is None or times.null_count else _micro(times)

    def parts(self, name: str) -> tuple[str, ...]:
        """The columns behind a name: of "date,hour" both, unless a column is called so."""
        parts = tuple(part.strip() for part in name.split(","))
        return parts if len(parts) == 2 and name not in self.names else (name,)

    def _joined(self, date: str, clock: str, role: str) -> Array:
        """Days in one column and, in another, hours as numbers or clock times as text."""
        days, column = self.times(date, role), self.column(clock, role)
        if days.dtype.kind != "M":
            raise DataError(
                f"{option(role)} {date},{clock} must name a column of dates first, and {date!r} of "
                f"{self.path} holds numbers"
            )
        if self.is_text(clock):
            day = arrow().scalar("2000-01-01 ")
            whole_times = arrow("pyarrow.compute").binary_join_element_wise(day, column, "")
            moments = cells.parsed(whole_times)
            if moments is None:
                row, _ = cells.first_odd(whole_times)
                raise DataError(
                    f"{option(role)} {date},{clock} must name hours or times of day second, and "
                    f"{clock!r} "
                    f"of {self.path} {self._cell(clock, row)}: write them like 15 or 15:00"
                )
            return np.asarray(days + (_micro(moments) - np.datetime64("2000-01-01", "us")))
        hours = self.numbers(clock, role)
        self._no_gaps(np.isnan(hours), clock, role)
        odd = (hours < 0.0) | (hours > 24.0)
        if odd.any():
            row = int(odd.argmax())
            raise DataError(
                f"{option(role)} {date},{clock} must name hours from 0 to 24 second, and "
                f"{clock!r} of "
                f"{self.path} holds {hours[row]:g} in {self.place(row)}"
            )
        return np.asarray(days + np.rint(hours * 3.6e9).astype("timedelta64[us]"))

    def times(self, name: str, role: str, *, gaps: bool = False) -> Array:
        """A column as datetime64, or as the numbers it holds if they are no moments.

        "date,hour" are two columns together. `gaps` allows rows without a time.
        """
        date, *clock = self.parts(name)
        if clock:
            return self._joined(date, clock[0], role)
        times = self.column(name, role)
        if self.is_text(name):
            column, times = times, cells.parsed(times)
            if times is None:
                row, _ = cells.first_odd(column)
                raise DataError(
                    f"{option(role)} must name a column of dates or numbers, and {name!r} of "
                    f"{self.path} "
                    f"{self._cell(name, row)}: write dates like 2024-01-31 or 2024-01-31 15:00:00"
                )
        elif not cells.is_time(times):
            numbers = self.numbers(name, role)
            if gaps:
                return numbers
            self._no_gaps(np.isnan(numbers), name, role)
            moments = cells.counted(numbers)
            return numbers if moments is None else moments[0]
        if not gaps:
            self._no_gaps(np.asarray(times.is_null()), name, role)
        return _micro(times)

    def doubt(self, name: str) -> str | None:
        """How times were read, if they could have been read otherwise; to go behind "is read"."""
        name = self.parts(name)[0]
        column = self.table[name]
        if cells.is_time(column) or self.is_text(name):
            return cells.time_doubt(column)
        moments = cells.counted(self.numbers(name, "time"))
        return None if moments is None else f"as {moments[1]}"

    def no_dates(self, name: str) -> str:
        """Which cell keeps a column of text from being one of dates, if most of it is."""
        column = self.table[name]
        if not self.is_text(name) or cells.first_odd(column[:_HEAD])[1] <= 0.5:
            return ""
        row, share = cells.first_odd(column)
        return f"{self._cell(name, row)} and is no column of dates" if share > 0.5 else ""

    def _cell(self, name: str, row: int) -> str:
        """What a cell of text holds, and where, to go on a sentence."""
        text = self.table[name][row].as_py()
        return f"{f'holds {text!r}' if text else 'is empty'} in {self.place(row)}"

    # Keys

    def words(self, name: str, role: str) -> tuple[list[str], Array]:
        """The distinct values of a column as text, and the place of each row's, −1 for none."""
        values, codes = self._encoded(name, role)
        return ["" if value is None else str(value) for value in values], codes

    def keys(self, name: str, role: str) -> Array:
        """A column of ids or groups, as whole numbers or text; there must be one in every row."""
        values, codes = self._encoded(name, role)
        self._no_gaps(codes < 0, name, role)
        integers = all(isinstance(v, int) and not isinstance(v, bool) for v in values)
        if integers:
            return np.array(values, np.int64)[codes]
        return np.array([*map(str, values)], object)[codes]

    def series(self, name: str | tuple[str, ...]) -> Array:
        """The series of each row: a column, or several as tuples."""
        if isinstance(name, str):
            return self.keys(name, "series")
        parts = [self.keys(part, "series").tolist() for part in name]
        return np.fromiter(zip(*parts, strict=True), object, len(self))

    def _encoded(self, name: str, role: str) -> tuple[list[Any], Array]:
        encoded = self.column(name, role).combine_chunks().dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return encoded.dictionary.to_pylist(), codes.astype(np.int64)

    def _no_gaps(self, gaps: Array, name: str, role: str) -> None:
        if gaps.any():
            raise DataError(
                f"{option(role)} must have a value in every row, and {name!r} of {self.path} has "
                "none in "
                f"{self.place(int(gaps.argmax()))}: leave such rows out"
            )

    # Written

    def with_columns(self, columns: Mapping[str, Any], suffix: str) -> Any:
        """The table with columns added behind its own, for a file of the kind of `suffix`.

        Where that kind tells numbers from text and the rows come from a CSV, which does not,
        columns of numbers become numbers, and in a Parquet file dates become times. In a CSV with
        decimal commas the new columns have them too.
        """
        pa, table, source = arrow(), self.table, self.file.suffix
        if source != ".parquet" and not files.is_csv(suffix):
            if self.commas:
                for place, name in enumerate(self.names):
                    table = table.set_column(place, name, self._text(name))
            table = cells.typed(table, numbers=files.is_csv(source), dates=suffix == ".parquet")
        for name, values in columns.items():
            mask = np.ma.getmask(values)
            array = pa.array(np.ma.getdata(values), mask=None if mask is np.ma.nomask else mask)
            if self.commas and files.is_csv(suffix) and pa.types.is_floating(array.type):
                array = arrow("pyarrow.compute").replace_substring(
                    array.cast(pa.string()), ".", ","
                )
            table = table.append_column(name, array)
        return table


def _micro(times: Any) -> Array:
    return np.asarray(times.cast(arrow().timestamp("us"), safe=False).to_numpy())
