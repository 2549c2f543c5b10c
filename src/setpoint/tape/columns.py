"""Columns of a tape, from arrays, lists, series, data frames, dates or text."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import nan
from operator import index
from typing import Any, overload

import numpy as np

from setpoint._check import commands, is_missing, option, whole
from setpoint.errors import InputError, TapeError
from setpoint.tape.text import arrow, iso

KEYS = ("series", "horizon", "time", "known", "delay", "group")
"""The columns of a tape that say what a row is about."""
CHUNK = 1 << 17
"""How many rows become Python values at once."""


def column(values: Any, name: str) -> np.ndarray:
    """One value a row as an array, without a copy where that can be."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.where(np.ma.getmaskarray(values), np.array(None), values.data.astype(object))
    if hasattr(getattr(values, "type", None), "index_type"):
        values = values.cast(values.type.value_type)  # numpy would get words for Arrow's nulls
    try:
        if hasattr(values, "__array__"):
            return np.asarray(values)
        listed = list(values)
        plain = (int, float, np.number, np.datetime64)
        if all(issubclass(kind, plain) for kind in set(map(type, listed))):
            return np.asarray(listed)
        # numpy would turn [1.0, "a"] into text, and a list of pairs into a matrix.
        return np.fromiter(listed, object, len(listed))
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise TapeError(f"{name} must hold one value a row, got {values!r}: {error}") from None


def numbers(values: Any, name: str) -> np.ndarray:
    """A column of floats: float32 stays, the rest becomes float64, a missing value NaN."""
    raw = column(values, name)
    if raw.ndim != 1:
        raise TapeError(f"{name} must have one number a row, got shape {raw.shape}")
    if raw.dtype.kind in "biuf":
        single = raw.dtype.kind == "f" and raw.dtype.itemsize == 4
        return raw.astype(np.float32 if single else np.float64, copy=False)
    if len(raw) and raw.dtype.kind not in "OUST":
        raise TapeError(f"{name} must hold numbers, got values of type {raw.dtype}")
    reals = np.empty(len(raw))
    for row, value in enumerate(raw.tolist()):
        try:
            if isinstance(value, str | bytes):
                raise TypeError
            reals[row] = np.nan if is_missing(value) else float(value)
        except (TypeError, ValueError, OverflowError):
            raise TapeError(f"{name} must hold numbers, got {value!r} at row {row}") from None
    return reals


def times(values: Any, name: str = "time", *, open: bool = False) -> np.ndarray:
    """A column of numbers or datetime64. Dates and ISO text are read; offsets go to UTC.

    `open` allows rows without a time.
    """
    raw = column(values, name)
    if raw.ndim != 1:
        raise TapeError(f"{name} must have one value a row, got shape {raw.shape}")
    if raw.dtype.kind in "OUT":
        listed = raw.tolist()
        if open:
            listed = [
                None if value in ("", "NaT") or is_missing(value) else value for value in listed
            ]
        first = next((value for value in listed if value is not None), nan)
        if isinstance(first, int | float):
            raw = numbers(np.fromiter(listed, object, len(listed)), name)
        elif open:
            raw = np.full(len(listed), "NaT", "datetime64[us]")
            there = [row for row, value in enumerate(listed) if value is not None]
            raw[there] = iso([listed[row] for row in there])
        else:
            raw = iso(listed)
    if raw.dtype.kind not in "iufM":
        raise TapeError(f"{name} must hold numbers or dates, got values of type {raw.dtype}")
    unknown = np.isnat(raw) if raw.dtype.kind == "M" else raw != raw
    if unknown.any() and not open:
        row = int(unknown.argmax())
        raise TapeError(f"{name} must be known in every row, got {raw[row]} at row {row}")
    return raw


def wholes(values: Any, name: str, least: int) -> np.ndarray:
    """A column of whole numbers that are not too small."""
    raw = numbers(values, name)
    wrong = ~((raw >= least) & (raw < 1 << 31) & (raw == np.floor(raw)))
    if wrong.any():
        row = int(wrong.argmax())
        raise TapeError(
            f"{name} must hold whole numbers from {least}, got {raw[row]:g} at row {row}"
        )
    return raw.astype(np.int64)


def number_keys(keys: np.ndarray, name: str) -> tuple[dict[Any, int], np.ndarray, np.ndarray]:
    """The keys numbered as they first appear; where each run of equal keys starts; its number."""
    seen: defaultdict[Any, int] = defaultdict()
    seen.default_factory = seen.__len__
    try:
        starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))[: len(keys)]
        heads = keys if len(starts) == len(keys) else keys[starts]
        pieces = (heads[i : i + CHUNK].tolist() for i in range(0, len(heads), CHUNK))
        numbered = map(seen.__getitem__, chain.from_iterable(pieces))
        codes = np.fromiter(numbered, np.int64, len(heads))
    except (TypeError, ValueError) as error:
        raise TapeError(f"{name} must hold plain keys, known in every row: {error}") from None
    return dict(seen), starts, codes


def is_id(value: Any) -> bool:
    """Whether a value can name a stream: a whole number, text, or a tuple of them.

    >>> is_id((3, "north")), is_id(()), is_id(True), is_id(1.5)
    (True, False, False, False)
    """
    if isinstance(value, tuple):
        return bool(value) and all(is_id(part) and type(part) is not tuple for part in value)
    return isinstance(value, str | int | np.integer) and not isinstance(value, bool)


def encoded(column: np.ndarray, name: str) -> tuple[list[Any], np.ndarray]:
    """Text and other objects as the distinct ones, None if missing, and the place of each row's."""
    objects = np.fromiter(column.tolist(), object, len(column))
    seen, starts, codes = number_keys(objects, f"column {name!r}")
    plain = [word.item() if isinstance(word, np.generic) else word for word in seen]
    for word in plain:
        if not isinstance(word, str | int | float) and not is_missing(word):
            raise TapeError(
                f"column {name!r} must hold text or numbers to be written, got {word!r}"
            )
    words = [None if is_missing(word) else word for word in plain]
    return words, np.repeat(codes, np.diff(starts, append=len(column)))


def segment(keys: np.ndarray) -> tuple[dict[Any, int], np.ndarray | None, np.ndarray]:
    """The keys numbered as they first appear, a stable order that groups them, and offsets.

    The order is None where equal keys already follow each other.
    """
    places, starts, codes = number_keys(keys, "id")
    if len(starts) == len(places):
        return places, None, np.append(starts, len(keys))
    codes = np.repeat(codes, np.diff(starts, append=len(keys)))
    small = codes.astype(np.uint16) if len(places) <= 1 << 16 else codes  # sorted by radix
    offsets = np.concatenate(([0], np.cumsum(np.bincount(codes))))
    return places, np.argsort(small, kind="stable"), offsets


def repeated_times(
    time: np.ndarray, id: np.ndarray | None, order: np.ndarray | None, offsets: np.ndarray
) -> int:
    """How many rows have the time of the row before in their stream; that it falls is an error."""
    if order is not None:
        time = time[order]
    inside = np.ones(max(len(time) - 1, 0), bool)
    inside[offsets[1:-1] - 1] = False  # the step from one stream to the next
    falls = inside & (time[1:] < time[:-1])
    if falls.any():
        at = int(falls.argmax())
        before, after = (at, at + 1) if order is None else map(int, order[at : at + 2])
        of = "" if id is None else f" of stream {id[after : after + 1].tolist()[0]!r}"
        raise TapeError(
            f"time must not go back within a stream: row {after}{of} has {time[at + 1]}, row "
            f"{before} before it has {time[at]}"
        )
    return int((inside & (time[1:] == time[:-1])).sum())


def refuse(test: Any, column: "np.ndarray | Ragged", name: str, allowed: str) -> None:
    """One error for the first row that has a value it must not have."""
    values = column.values if isinstance(column, Ragged) else column
    wrong = test(values)
    if wrong.any():
        row = at = int(wrong.argmax())
        if isinstance(column, Ragged):
            row = int(np.searchsorted(column.offsets, at, "right")) - 1
        raise TapeError(f"{name} must be {allowed}, got {values[at]} at row {row}")


def frame_columns(
    frame: Any, wanted: Iterable[Any], where: str = "the frame"
) -> dict[Any, np.ndarray]:
    """Columns of a data frame of any make, or of a mapping from names to arrays."""
    frame, names = opened(frame)
    check_columns(wanted, names, where)
    return {name: column(frame[name], f"column {name!r}") for name in wanted}


def opened(frame: Any) -> tuple[Any, list[Any]]:
    """A frame whose columns can be taken by name, and these names."""
    names: Any = frame if isinstance(frame, Mapping) else None
    if names is None and not hasattr(frame, "__len__") and hasattr(frame, "__arrow_c_stream__"):
        frame = arrow().table(frame)
    if names is None and hasattr(frame, "__len__"):  # a lazy frame has none
        names = getattr(frame, "column_names", getattr(frame, "columns", None))
    if names is None:
        raise TapeError(
            "a frame must be a data frame (pandas, polars, Arrow) or a mapping from names to "
            f"arrays, got a {type(frame).__name__}"
        )
    return frame, list(names)


def with_columns(frame: Any, columns: Mapping[str, Any]) -> Any:
    """A frame, or a mapping, with columns added, of the kind that it was."""
    if isinstance(frame, Mapping):
        return {**frame, **columns}
    nw = arrow("narwhals")
    table = nw.from_native(frame, eager_only=True)
    added = [
        nw.new_series(name, values, backend=table.implementation)
        for name, values in columns.items()
    ]
    return table.with_columns(*added).to_native()


def check_columns(wanted: Iterable[Any], names: Sequence[Any], where: str) -> None:
    """An error for the first column that is not there, or there twice."""
    for name in wanted:
        if names.count(name) != 1:
            count = "more than one column" if name in names else "no column"
            shown = ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
            raise TapeError(f"{where} has {count} {name!r}; its columns are {shown or 'none'}")


@dataclass(frozen=True, eq=False, repr=False)
class Ragged:
    """A column whose rows have different lengths, such as the critical values of label sets.

    Parameters
    ----------
    values
        The numbers of all rows, one row after the other.
    offsets
        Row i is `values[offsets[i]:offsets[i + 1]]`: whole numbers from 0 to `len(values)` that
        never fall, one more than there are rows.

    Examples
    --------
    >>> ragged = Ragged.from_rows([[0.5, 0.2], [], [0.9]])
    >>> ragged
    Ragged(3 rows, 3 values)
    >>> ragged[0]
    array([0.5, 0.2])
    >>> ragged[1:].offsets
    array([0, 0, 1])
    """

    values: np.ndarray
    offsets: np.ndarray

    def __post_init__(self) -> None:
        values, offsets = column(self.values, "values"), column(self.offsets, "offsets")
        if values.ndim != 1 or values.dtype.kind not in "biuf":
            raise TapeError(
                f"values must be numbers in one dimension, got {values.dtype} in {values.shape}"
            )
        if offsets.ndim != 1 or offsets.dtype.kind not in "iu" or not len(offsets):
            raise TapeError(
                "offsets must be whole numbers in one dimension, one more than there are rows; "
                f"got {offsets.dtype} in {offsets.shape}"
            )
        offsets = offsets.astype(np.int64, copy=False)
        if offsets[0] != 0 or offsets[-1] != len(values) or (offsets[1:] < offsets[:-1]).any():
            raise TapeError(
                f"offsets must go from 0 to {len(values)} and never fall, got "
                f"{offsets[0]} to {offsets[-1]}"
            )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "offsets", offsets)

    @classmethod
    def from_rows(cls, rows: Iterable[Any]) -> "Ragged":
        """A column from its rows, each of which is a sequence of numbers."""
        columns = [column(row, f"row {i}") for i, row in enumerate(rows)]
        for i, row in enumerate(columns):
            if row.ndim != 1:
                raise TapeError(f"row {i} must have one dimension, got shape {row.shape}")
        filled = [row for row in columns if len(row)]  # an empty list has no type of its own
        values = np.concatenate(filled) if filled else np.empty(0)
        return cls(values, np.cumsum([0, *map(len, columns)]))

    @property
    def lengths(self) -> np.ndarray:
        """The number of values in each row."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[row] for row in range(len(self)))

    @overload
    def __getitem__(self, rows: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, rows: slice | np.ndarray) -> "Ragged": ...
    def __getitem__(self, rows: int | slice | np.ndarray) -> "np.ndarray | Ragged":
        """A row, as a view; several, as a view if they follow each other."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                offsets = self.offsets[start : max(start, stop) + 1]
                return Ragged(self.values[offsets[0] : offsets[-1]], offsets - offsets[0])
            rows = np.arange(start, stop, step)
        if isinstance(rows, np.ndarray):
            first, lengths = self.offsets[:-1][rows], self.lengths[rows]
            offsets = np.concatenate(([0], np.cumsum(lengths)))
            inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
            return Ragged(self.values[np.repeat(first, lengths) + inside], offsets)
        row = range(len(self))[index(rows)]
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def __repr__(self) -> str:
        return f"Ragged({len(self):,} rows, {len(self.values):,} values)"


Column = np.ndarray | Ragged
"""A column of a tape: an array, or rows of unequal length."""


def several(names: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several, as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names)


def checked_names(names: Any, size: int, extras: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the prediction: one a column, and no name twice in the tape."""
    checked = several(names)
    if len(checked) != size or not checked:
        raise TapeError(f"names must name the {size} columns of the prediction, got {checked}")
    every: list[Any] = [*checked, "y", *KEYS, *extras]
    for name in every:
        if not isinstance(name, str) or every.count(name) > 1:
            raise TapeError(
                f"names must be strings, all different and none of y, {', '.join(KEYS)}; "
                f"got {name!r}"
            )
    return checked


def floats(values: Any, name: str) -> Column:
    """A column of a prediction, in floats."""
    if isinstance(values, Ragged):
        reals = numbers(values.values, f"column {name!r}")
        return values if reals is values.values else Ragged(reals, values.offsets)
    return numbers(values, f"column {name!r}")


def several_labels(y: Any, names: tuple[str, ...]) -> tuple[np.ndarray, dict[str, Any]]:
    """How many labels of each row are true, and a column for each label that says where it is."""
    given = np.asarray(y)
    if given.dtype.kind not in "biuf" or given.shape[1] != len(names):
        raise TapeError(
            f"several labels must be 0 or 1 in {len(names)} columns, one for each of "
            f"{', '.join(names)}; got {given.dtype} of shape {given.shape}"
        )
    truth = given.astype(np.float64)
    return truth.sum(axis=1), {f"y_{n}": column for n, column in zip(names, truth.T, strict=True)}


_KINDS = {"series": "key", "group": "key", "time": "time", "known": "time"}


@dataclass(frozen=True, slots=True)
class Columns:
    """The roles of the columns of a file or a data frame.

    Parameters
    ----------
    target
        Column with the actual values; empty cells are values not known yet.
    lower
        Column with the lower ends of the intervals. Without `upper` it is a one-sided bound, and
        only that side is calibrated.
    upper
        Column with the upper ends of the intervals. Without `lower` it is a one-sided bound, and
        only that side is calibrated.
    point
        Column with point forecasts.
    probabilities
        Columns with a probability for each class, named after the classes: cat,dog or p_cat,p_dog.
        "p_*" stands for all columns whose names begin with p_.
    prediction
        Any other prediction: its columns in the order in which a family reads them.
    series
        Column that says which series a row belongs to; each series is calibrated separately.
        Several columns are combined into one key.
    time
        Column with the time of each row; rows are processed in this order. Default: the only
        column of dates. "date,hour" are two columns: days, and hours or times of day.
    group
        A key by which the report shows coverage, by default the weekday. It is only shown.
    horizon
        Column that says how many steps ahead a row forecasts; each horizon is calibrated
        separately, and its actual values arrive horizon − 1 rows late. If one row has several
        horizons, write * in place of the number instead, as in point="h*".
    known
        Column with the time at which each actual value became known, in the units of `time`, which
        is then the time at which a forecast was made. Empty if that was after the last row.
    delay
        How many rows late actual values become known. Default: 0, or with `horizon` the horizon
        less 1.

        For a data frame it may be the name of a column.
    period
        Length of the season in time steps; errors are then also learnt by their place in it.
    id
        Column that says which prediction a row is about, in a stream of Spark.
    phase
        Column with the place of each row in time, in time steps, if rows of a season can be
        missing.
    groups
        Columns that define groups; the coverage is also guaranteed within each group. 8 in the
        column hour puts a row into the group "hour=8", true in the column rain into "rain"; an
        empty cell puts it into none.

        A tape has these columns among its extras.
    features
        Numeric columns that are known when a row is forecast, such as the hour; cells may be empty.
        Intervals that adjust themselves learn how errors depend on them.
    extras
        Columns that a tape carries along.
    """

    target: str = "y"
    lower: str | None = None
    upper: str | None = None
    point: str | None = None
    probabilities: tuple[str, ...] = ()
    prediction: tuple[str, ...] = ()
    series: str | tuple[str, ...] | None = None
    time: str | None = None
    group: str | None = None
    horizon: str | None = None
    known: str | None = None
    delay: int | str | None = None
    period: int | None = None
    id: str | None = None
    phase: str | None = None
    groups: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("probabilities", "prediction", "groups", "features", "extras"):
            object.__setattr__(self, name, several(getattr(self, name)))
        if self.series is not None and not isinstance(self.series, str):
            object.__setattr__(self, "series", tuple(self.series))
        ends = self.lower is not None or self.upper is not None
        kinds = [ends, self.point is not None, bool(self.probabilities), bool(self.prediction)]
        if sum(kinds) > 1:
            raise InputError(
                "predictions are lower and upper (or one of them), or point, or probabilities: "
                f"give one kind, got {sum(kinds)}"
            )
        if len(self.probabilities) == 1 and "*" not in self.probabilities[0]:
            raise InputError(
                "probabilities need a column for each of two classes or more, got "
                f"{self.probabilities[0]!r} alone"
            )
        for name in ("series", "time"):
            if self.target in several(getattr(self, name) or ()):
                raise InputError(
                    f"{option('target')} and {option(name)} both name {self.target!r}, and the "
                    "actual value of a row is not known before the row is taken: name another "
                    f"column for {option(name)}"
                )
        if (
            isinstance(self.delay, int)
            and self.delay
            and (self.known or self.horizon or self.patterns)
        ):
            raise InputError(
                "actual values come late by a delay, or by horizons or times: leave out the delay"
            )
        if self.delay is not None and not isinstance(self.delay, str):
            object.__setattr__(self, "delay", whole(self.delay, "delay", 0))
        if self.period is not None:
            object.__setattr__(self, "period", whole(self.period, "period", 2))
        for name in ("period", "features"):
            if getattr(self, name) and self.form and not self.is_pair:
                raise InputError(
                    f"{option(name)} is for intervals and point forecasts: leave it out"
                )

    @classmethod
    def laid_out(cls, names: list[str], where: str) -> "Columns":
        """The columns by place, as `Tape.write` lays them out: keys, prediction, y, extras."""
        check_columns(["y"], names, where)
        first, last = names[: names.index("y")], names[names.index("y") + 1 :]
        keys: dict[str, Any] = {name: name for name in KEYS if name in first}
        prediction = tuple(name for name in first if name not in KEYS)
        return cls("y", prediction=prediction, extras=tuple(last), **keys)

    @property
    def form(self) -> dict[str, str]:
        """The prediction columns by the family's names for them; {} for the default ones."""
        if self.probabilities or self.prediction:
            return {name: name for name in self.probabilities or self.prediction}
        named = {"lower": self.lower, "upper": self.upper, "point": self.point}
        return {name: column for name, column in named.items() if column is not None}

    @property
    def patterns(self) -> dict[str, str]:
        """The roles whose columns have the horizon in place of *."""
        named = {name: getattr(self, name) for name in ("lower", "upper", "point")}
        return {role: name for role, name in named.items() if name and "*" in name}

    @property
    def is_pair(self) -> bool:
        """Whether predictions are both ends of an interval, or a point."""
        return self.point is not None or (self.lower is not None and self.upper is not None)

    def usual(self, names: Sequence[str], where: str) -> "Columns":
        """A copy with the prediction columns that a file has by name, if none was given."""
        if self.form:
            return self
        if {"lower", "upper"} <= set(names):
            return replace(self, lower="lower", upper="upper")
        if "point" in names:
            return replace(self, point="point")
        shown = ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
        how = "by --lower and --upper, by --point or by --probabilities"
        if not commands.get():
            how = "as in Columns(lower='…', upper='…')"
        raise TapeError(
            f"{where} has neither 'lower' and 'upper' nor 'point': name the columns of the "
            f"predictions, {how}; its columns are {shown or 'none'}"
        )

    def keys(self) -> dict[str, Any]:
        """The columns that say what a row is about, by the names a tape has for them."""
        named = {name: getattr(self, name) for name in KEYS}
        return {name: column for name, column in named.items() if isinstance(column, str | tuple)}

    def kinds(self) -> dict[str, str]:
        """The columns a tape needs, each with how its text is parsed."""
        kinds = dict.fromkeys((*self.extras, *self.groups), "any")
        for key, name in self.keys().items():
            kinds |= dict.fromkeys(several(name), _KINDS.get(key, "any"))
        kinds[self.target] = "number"
        kinds |= dict.fromkeys(() if self.phase is None else (self.phase,), "number")
        return kinds | dict.fromkeys(self.form.values(), "number")

    def arguments(self, columns: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """The arguments of `Tape.from_arrays`."""
        form = dict(self.form) | ({} if self.phase is None else {"phase": self.phase})
        keys = {key: _joined(columns, name) for key, name in self.keys().items()}
        return {
            "prediction": [columns[name] for name in form.values()],
            "names": list(form),
            "y": columns[self.target],
            **({"delay": self.delay} if isinstance(self.delay, int) else {}),
            **keys,
            "extras": {name: columns[name] for name in (*self.extras, *self.groups)},
        }

    def plain(self) -> dict[str, Any]:
        """The columns that were named, as plain values."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value}


def _joined(columns: Mapping[str, np.ndarray], name: str | tuple[str, ...]) -> np.ndarray:
    """A column, or several as one of tuples."""
    if isinstance(name, str):
        return columns[name]
    rows = zip(*(columns[part].tolist() for part in name), strict=True)
    return np.fromiter(rows, object, len(columns[name[0]]))
