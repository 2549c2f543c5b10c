"""The one reader of rows: columns of a file or a frame as numbers, times, labels and keys.

Messages name the argument that asks for a column, the cell, and its line in the file.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._check import option
from setpoint.errors import DataError
from setpoint.tape import files, text
from setpoint.tape.columns import Columns, check_columns, frame_columns, with_columns
from setpoint.tape.text import Moments, arrow

Array = np.ndarray[Any, Any]

_LISTED, _HEAD = 15, 1000
_INDEX = re.compile(r"__index_level_\d+__")
"""What Arrow calls an index without a name."""
_WHOLE = re.compile(r"0|-?[1-9]\d{0,18}")
_OTHERWISE = {"target": ": `calibrate` takes the probabilities of a classifier"}
"""What to do about a column that is no column of numbers."""


def read(source: Any, columns: Sequence[str] | None = None, *, empty: bool = False) -> "Rows":
    """The rows of a CSV, Parquet or JSON Lines file, packed by gzip if it ends in .gz, or of a
    data frame: pandas, polars or Arrow. The index of a frame is a column, unless it counts rows.
    """
    if isinstance(source, str | os.PathLike):
        return Rows(files.read(source, columns, empty=empty))
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
    file = files.File(table.replace_schema_metadata(), Path("the data frame"), ".parquet")
    return Rows(file, source)


def read_tape(path: str | os.PathLike[str], columns: Columns | None) -> dict[str, Any]:
    """What `Tape.from_arrays` takes, from a file of a tape.

    Without columns the file is laid out as `Tape.write` does.
    """
    where = os.fspath(path)
    with files.readable(path):
        suffix = files.suffix_of(path, files.OF_TAPES, "a tape's file")
        if suffix == ".npz":
            return files.read_npz(path, columns)
        Path(path).stat()  # the system's own error if there is none
        names, ours = files.names_of(path), columns is None
        columns = columns or Columns.laid_out(names, where)
        kinds = columns.kinds()
        check_columns(kinds, names, where)
        rows = read(path, list(kinds), empty=True)
        if suffix == ".parquet":
            return columns.arguments(frame_columns(rows.table, kinds, where))
        if ours:  # written by us: times are ISO 8601 to the last digit
            kinds = {name: "any" if kind == "time" else kind for name, kind in kinds.items()}
        return columns.arguments({name: rows._of_kind(name, kind) for name, kind in kinds.items()})


def blocks(
    path: str | os.PathLike[str], columns: Columns | None, rows: int
) -> Iterator[dict[str, Any]]:
    """What `Tape.from_arrays` takes for every so many rows of a Parquet file."""
    where = os.fspath(path)
    with files.readable(path):
        files.suffix_of(path, (".parquet",), "a file that is read in blocks")
        names = files.names_of(path)
        columns = columns or Columns.laid_out(names, where)
        kinds = columns.kinds()
        check_columns(kinds, names, where)
        with arrow("pyarrow.parquet").ParquetFile(path) as file:
            for batch in file.iter_batches(rows, columns=list(kinds)):
                table = arrow().Table.from_batches([batch])
                yield columns.arguments(frame_columns(table, kinds, where))


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """The rows of a file as it was read, column by column, or of a frame."""

    file: files.File
    frame: Any = None

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
            hint = f"; did you mean {bare[near[0]]!r}?" if near else ""
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
        return any(text.pointed(head, points=self._points) is not head for head in heads)

    @cached_property
    def _points(self) -> bool:
        return any(text.has_points(column[:_HEAD]) for column in self.table.columns)

    def _text(self, name: str) -> Any:
        """A column, with points where its numbers have decimal commas."""
        column = self.table[name]
        return text.pointed(column, points=self._points) if self.commas else column

    def is_text(self, name: str) -> bool:
        """Whether a column holds text that is not all numbers."""
        column = self._text(name)
        if not text.is_text(column):
            return False
        head = text.numbers(column[:_HEAD])  # most text shows at once that it is text
        return isinstance(head, tuple) or isinstance(text.numbers(column), tuple)

    def numbers(self, name: str, role: str) -> Array:
        """A column as float64, NaN where there is none; text is an error that shows it."""
        pa, column = arrow(), self.column(name, role)
        if text.is_text(column):
            values = text.numbers(self._text(name))
            if isinstance(values, tuple):
                row, cell = values
                raise DataError(
                    f"{option(role)} must name a column of numbers, and {name!r} of {self.path} "
                    "holds "
                    f"{cell!r} in {self.place(row)}"
                    f"{text.advice(cell) or _OTHERWISE.get(role, '')}"
                )
            return values
        try:
            values = column.cast(pa.float64(), safe=not pa.types.is_integer(column.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise DataError(
                f"{option(role)} must name a column of numbers, and {name!r} of {self.path} holds "
                f"{column.type}{_OTHERWISE.get(role, '')}"
            ) from None
        return np.asarray(values, np.float64)

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
        """A column as moments of time, if it holds them in every row."""
        column = self.table[name]
        if text.is_time(column):
            return None if column.null_count else _micro(column)
        # A long column costs time, so its head is tried first.
        if not text.is_text(column) or text.moments(column[:100]).times is None:
            return None
        times = self._moments(name).times if self.is_text(name) else None
        return None if times is None or np.isnat(times).any() else times

    def _moments(self, name: str) -> Moments:
        """A column of text as times, read once."""
        if name not in self._times:
            self._times[name] = text.moments(self.table[name])
        return self._times[name]

    @cached_property
    def _times(self) -> dict[str, Moments]:
        return {}

    def parts(self, name: str) -> tuple[str, ...]:
        """The columns behind a name: of "date,hour" both, unless a column is called so."""
        parts = tuple(part.strip() for part in name.split(","))
        return parts if len(parts) == 2 and name not in self.names else (name,)

    def clock(self, name: str, role: str = "time") -> Array | Moments | None:
        """The times of a day in microseconds: hours, HHMM up to 2400, or clock times in text.

        None if numbers are neither, and how far text was read if it is no clock.
        """
        if self.is_text(name):
            compute, day = arrow("pyarrow.compute"), arrow().scalar("2000-01-01 ")
            column = self.table[name].cast(arrow().string())
            found = text.moments(compute.binary_join_element_wise(day, column, ""))
            if found.times is None:
                return found
            return (found.times - np.datetime64("2000-01-01", "us")).astype(np.float64)
        numbers = self.numbers(name, role)
        self._no_gaps(np.isnan(numbers), name, role)
        return text.hours(numbers)

    def _joined(self, date: str, clock: str, role: str) -> Array:
        """Days in one column and, in another, hours as numbers or clock times as text."""
        days, both = self.times(date, role), f"{option(role)} {date},{clock}"
        self.column(clock, role)
        if days.dtype.kind != "M":
            raise DataError(
                f"{both} must name a column of dates first, and {date!r} of {self.path} holds "
                "numbers"
            )
        micro = self.clock(clock, role)
        if isinstance(micro, Moments):
            raise DataError(
                f"{both} must name hours or times of day second, and {clock!r} of {self.path} "
                f"{self._cell(clock, micro.odd)}: write them like 15 or 15:00"
            )
        if micro is None:
            numbers = self.numbers(clock, role)
            row = int((~((numbers >= 0.0) & (numbers <= 24.0))).argmax())
            raise DataError(
                f"{both} must name hours from 0 to 24, or from 0000 to 2400, second, and {clock!r} "
                f"of {self.path} holds {numbers[row]:g} in {self.place(row)}"
            )
        return np.asarray(days + micro.astype("timedelta64[us]"))

    def times(self, name: str, role: str, *, gaps: bool = False) -> Array:
        """A column as datetime64, or as the numbers it holds if they are no moments.

        "date,hour" are two columns together. `gaps` allows rows without a time.
        """
        date, *clock = self.parts(name)
        if clock:
            return self._joined(date, clock[0], role)
        column = self.column(name, role)
        if self.is_text(name):
            found = self._moments(name)
            if found.times is None:
                raise DataError(
                    f"{option(role)} must name a column of dates or numbers, and {name!r} of "
                    f"{self.path} {self._cell(name, found.odd)}: write dates like 2024-01-31 or "
                    "2024-01-31 15:00:00"
                )
            times = found.times
        elif text.is_time(column):
            times = _micro(column)
        else:
            numbers = self.numbers(name, role)
            if gaps:
                return numbers
            self._no_gaps(np.isnan(numbers), name, role)
            found_moments = text.counted(numbers)
            return numbers if found_moments is None else found_moments[0]
        if not gaps:
            self._no_gaps(np.isnat(times), name, role)
        return times

    def doubt(self, name: str) -> str | None:
        """How times were read, if they could have been read otherwise; to go behind "is read"."""
        name = self.parts(name)[0]
        column = self.table[name]
        if text.is_time(column):
            return _zone_doubt(column)
        if self.is_text(name):
            return self._moments(name).doubt
        moments = text.counted(self.numbers(name, "time"))
        return None if moments is None else f"as {moments[1]}"

    def no_dates(self, name: str) -> str:
        """Which cell keeps a column of text from being one of dates, if most of it is."""
        if not self.is_text(name) or text.moments(self.table[name][:_HEAD]).share <= 0.5:
            return ""
        found = self._moments(name)
        said = f"{self._cell(name, found.odd)} and is no column of dates"
        return said if 0.5 < found.share < 1.0 else ""

    def _cell(self, name: str, row: int) -> str:
        """What a cell of text holds, and where, to go on a sentence."""
        cell = self.table[name][row].as_py()
        return f"{f'holds {cell!r}' if cell else 'is empty'} in {self.place(row)}"

    # Keys

    def words(self, name: str, role: str) -> tuple[list[str], Array]:
        """The distinct values of a column as text, and the place of each row's, −1 for none."""
        values, codes = self._encoded(name, role)
        return ["" if value is None else str(value) for value in values], codes

    def keys(self, name: str, role: str) -> Array:
        """A column of series or groups, as whole numbers or text; there must be one in every row.

        Text is whole numbers if every one of them is written as one; 007 is not.
        """
        values, codes = self._encoded(name, role)
        self._no_gaps(codes < 0, name, role)
        return _keys(values)[codes]

    def values(self, name: str) -> Array:
        """A column as it is: numbers, truths, times or text."""
        column = self.column(name, "extras")
        if not text.is_text(column):
            return np.asarray(column.to_numpy())
        values, codes = self._encoded(name, "extras")
        keys = _keys(values)
        if keys.dtype == object and set(values) <= {"true", "false"}:
            keys = keys == "true"
        elif keys.dtype == object:
            numbers = text.numbers(column)
            if not isinstance(numbers, tuple):
                return numbers
        return keys[codes]

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

    def _of_kind(self, name: str, kind: str) -> Array:
        """A column of a tape: numbers, keys, times, or what its words are taken for."""
        if kind == "number":
            return self.numbers(name, f"column {name!r}")
        if kind == "time":
            return self.times(name, name, gaps=True)
        return self.keys(name, name) if kind == "key" else self.values(name)

    # Written

    def with_columns(self, columns: Mapping[str, Any], suffix: str) -> Any:
        """The table with columns added behind its own, for a file of the kind of `suffix`.

        For Parquet, dates in text become times, and numbers in the text of a CSV numbers. In a CSV
        with decimal commas the new columns have them too.
        """
        pa, table, source = arrow(), self.table, self.file.suffix
        for place, name in enumerate(self.names):
            if suffix == ".parquet" != source and text.is_text(table[name]):
                column = text.typed(self._text(name))
                if files.is_csv(source) or text.is_time(column):
                    table = table.set_column(place, name, column)
        for name, values in columns.items():
            mask = np.ma.getmask(values)
            array = pa.array(np.ma.getdata(values), mask=None if mask is np.ma.nomask else mask)
            if self.commas and files.is_csv(suffix) and pa.types.is_floating(array.type):
                array = arrow("pyarrow.compute").replace_substring(
                    array.cast(pa.string()), ".", ","
                )
            table = table.append_column(name, array)
        return table

    def to_frame(self, columns: Mapping[str, Any]) -> Any:
        """The rows with columns added, as a frame of the kind that came in; of a file pandas."""
        if self.frame is None:
            return self.with_columns(columns, ".parquet").to_pandas()
        plain = {}
        for name, values in columns.items():
            mask, plain[name] = np.ma.getmaskarray(values), np.ma.getdata(values)
            if mask.any():
                plain[name] = plain[name].astype(object)
                plain[name][mask] = None
        return with_columns(self.frame, plain)


def _keys(values: list[Any]) -> Array:
    """Distinct values as whole numbers, where all of them are or are written so, else as text."""
    if all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        return np.array(values, np.int64)
    words = [*map(str, values)]
    if all(isinstance(v, str) and _WHOLE.fullmatch(v) for v in values):
        with suppress(OverflowError):
            return np.array([*map(int, words)], np.int64)
    return np.array(words, object)


def _micro(times: Any) -> Array:
    plain = times.cast(arrow().timestamp("us"), safe=False)
    return np.asarray(plain.to_numpy(), "datetime64[us]")


def _zone_doubt(column: Any) -> str | None:
    """How Arrow's timestamps with a zone were read, if they are not those of UTC."""
    pa, compute = arrow(), arrow("pyarrow.compute")
    if not pa.types.is_timestamp(column.type) or column.type.tz is None:
        return None
    plain = _micro(column)
    try:
        local = _micro(compute.local_timestamp(column))
    except (pa.ArrowInvalid, KeyError, ValueError):
        return f"in UTC: its zone {column.type.tz!r} is not known here"
    differ = local != plain
    if not differ.any():
        return None
    row = int(differ.argmax())
    shown = np.datetime_as_string(local[row], unit="m").replace("T", " ")
    return text.in_utc(f"{shown} {column.type.tz}", plain[row])
