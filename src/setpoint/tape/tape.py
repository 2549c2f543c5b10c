"""Tapes: a model's predictions with their labels in columns, for one stream or many."""

import os
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from setpoint._check import whole
from setpoint.errors import TapeError
from setpoint.tape.columns import (
    KEYS,
    Column,
    Columns,
    Ragged,
    checked_names,
    column,
    floats,
    frame_columns,
    is_id,
    number_keys,
    numbers,
    opened,
    refuse,
    repeated_times,
    segment,
    several_labels,
    times,
    wholes,
)
from setpoint.tape.files import write_tape
from setpoint.tape.schedule import Schedule, scheduled, steady

USUAL = {1: ("point",), 2: ("lower", "upper"), 3: ("centre", "low", "high")}
"""The names of columns that came without names, by how many there are."""


class TapeNotice(UserWarning):
    """Something in a tape is unusual but allowed."""


class Segments(NamedTuple):
    """Where each stream is, once a permutation has made the streams contiguous.

    Stream number s holds the rows `order[offsets[s]:offsets[s + 1]]`. `order` is None where the
    rows already lie so: use the columns as they are.
    """

    order: np.ndarray | None
    offsets: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Tape:
    """Predictions and labels in columns, one row a step, in the order the steps happened.

    Arrays are taken as they are, without a copy: whoever changes them changes the tape. Make a
    tape by `from_arrays`, `from_frame`, `read` or a `Recorder`.

    Parameters
    ----------
    prediction
        The columns of the prediction, float64 or float32, of equal length; a column may be
        `Ragged`. ±inf is allowed, NaN is not.
    names
        Their names.
    y
        The labels; NaN where a label was not observed.
    series
        The stream of each row, whole numbers, strings or tuples of them; None for a single stream.
    time
        Numbers or datetime64 that never fall within a stream: when the set of each row is made.
        Where some repeat, the order of the rows counts, and one `TapeNotice` says how many.
    group
        A key for each row, for metrics by group.
    horizon
        How many steps ahead each row forecasts, from 1. Every horizon of a series is a stream,
        under the key (series, horizon), or the horizon alone where there is no series. Unless
        `delay` or `known` says otherwise, a label comes horizon − 1 rows late.
    delay
        How many rows late labels become known, one number or a column: when the set of row t of a
        stream is made, the label of row s is known if s + delay < t. 0 by default: each label is
        known before the next row. A column may have fractions, such as 2.5: labels that become
        known before the same row are taken in by the fraction of their delay, then by row.
    known
        When each label became known: in units of `time`, or as numbers of rows where there is no
        time. It counts for the rows of its stream that are made then or later. NaN or NaT says
        after the last row, which is when all labels come that are not known before.
    extras
        Whatever else is to be carried along, by name: arrays with one entry a row, or `Ragged`.

    Attributes
    ----------
    notice
        What is unusual but allowed, in a sentence; None if there is nothing.

    Examples
    --------
    >>> tape = Tape.from_arrays(
    ...     {"lower": [1.0, 5.0, 2.0], "upper": [3.0, 9.0, 4.0]},
    ...     y=[2.5, 7.0, float("nan")],
    ...     series=["north", "south", "north"],
    ... )
    >>> tape
    Tape(3 rows, 2 streams: lower, upper; y, 1 missing; series)
    >>> tape.streams
    ['north', 'south']
    >>> tape.stream("north").prediction[0]
    array([1., 2.])
    >>> tape.segments
    Segments(order=array([0, 2, 1]), offsets=array([0, 2, 3]))
    """

    prediction: tuple[Column, ...]
    names: tuple[str, ...]
    y: np.ndarray
    series: np.ndarray | None = None
    time: np.ndarray | None = None
    group: np.ndarray | None = None
    extras: dict[str, Column] = field(default_factory=dict)
    horizon: np.ndarray | None = None
    delay: int | np.ndarray | None = None
    known: np.ndarray | None = None
    notice: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        names, given = checked_names(self.names, len(self.prediction), self.extras), self.delay
        _fill(
            self,
            prediction=tuple(map(floats, self.prediction, names)),
            names=names,
            y=numbers(self.y, "y"),
            series=None if self.series is None else column(self.series, "series"),
            time=None if self.time is None else times(self.time),
            horizon=None if self.horizon is None else wholes(self.horizon, "horizon", 1),
            delay=0 if self.delay is None else _delay(self.delay),
            known=None if self.known is None else times(self.known, "known", open=True),
            group=None if self.group is None else column(self.group, "group"),
            extras={
                name: values if isinstance(values, Ragged) else column(values, f"column {name!r}")
                for name, values in self.extras.items()
            },
        )
        if self.known is not None and self.time is None:
            _fill(self, time=np.arange(len(self.y)))
        if self.horizon is not None and self.known is None and given is None:
            _fill(self, delay=self.horizon - 1)
        self._check()
        refuse(np.isinf, self.y, "y", "finite, or NaN where not observed")
        self._check_series()
        self._check_known()
        if self.time is not None:
            repeats = repeated_times(self.time, self.series, *self.segments)
            if repeats:
                notice = (
                    f"{repeats:,} of {len(self):,} rows repeat the time of the row before in their "
                    "stream; the order of the rows is kept"
                )
                _fill(self, notice=notice)
                warnings.warn(notice, TapeNotice, stacklevel=4)

    # Made

    @classmethod
    def from_arrays(
        cls,
        prediction: Any,
        y: Any,
        *,
        names: Sequence[str] | None = None,
        series: Any = None,
        time: Any = None,
        group: Any = None,
        extras: Mapping[str, Any] | None = None,
        horizon: Any = None,
        delay: Any = None,
        known: Any = None,
        places: np.ndarray | None = None,
    ) -> "Tape":
        """A tape from arrays, series or lists.

        Parameters
        ----------
        prediction
            A mapping from names to columns, `Quantiles` or `Spread` of columns, any sequence of
            columns, or an array of shape (n, k); one array or `Ragged` is one column.
        names
            The names, where the prediction does not bring its own. Two columns are lower and
            upper and three are centre, low and high, unless they are named.
        y
            The labels. Of several labels a row of 0 and 1 for each row, one for each column of the
            prediction, or of NaN where they are missing: `y` is then how many are true, and
            which, the extras `y_NAME` say, as in a tape that was read.
        places
            Where each row stood, if the rows were sorted.
        """
        if isinstance(prediction, Mapping):
            columns, usual = list(prediction.values()), tuple(prediction)
        else:
            columns = _columns(prediction)
            usual = getattr(prediction, "_fields", USUAL.get(len(columns), ()))
            usual = getattr(prediction, "columns", usual)  # a frame's
        names = tuple(usual if names is None else names)
        if columns and not names:
            raise TapeError(f"names must be given for a prediction of {len(columns)} columns")
        if np.ndim(y) == 2:
            y, truth = several_labels(y, names)
            extras = {**(extras or {}), **truth}
        tape = cls(
            tuple(columns), names, y, series, time, group, dict(extras or {}), horizon, delay,
            known,
        )  # fmt: skip
        if places is not None:
            _fill(tape, places=places)
        return tape

    @classmethod
    def from_frame(cls, frame: Any, columns: Columns | None = None) -> "Tape":
        """A tape from columns of a data frame: pandas, polars, Arrow or a mapping of arrays.

        By default the target is y and a prediction lower and upper, or point.
        """
        columns = Columns() if columns is None else columns
        named = columns.time is not None and getattr(frame, "index", None) is not None
        if named and frame.index.name == columns.time and columns.time not in frame:
            frame = frame.reset_index()  # pandas: the index is named as a column is
        columns = columns.usual(opened(frame)[1], "the frame")
        found = frame_columns(frame, columns.kinds())
        return cls.from_arrays(**columns.arguments(found))

    @classmethod
    def read(cls, path: str | os.PathLike[str], columns: Columns | None = None) -> "Tape":
        """A tape from a .csv, .csv.gz, .parquet or .npz file.

        Without columns the file must be laid out as `write` does: series, horizon, time, known,
        delay and group where there are any, the prediction, y, extras.

        A CSV has no types. There a series or group is a whole number if every one of them is
        written as one (007 is not), else text; an empty label, or NaN, NA, null and None, is not
        observed.
        """
        from setpoint.tape.rows import read_tape

        return cls.from_arrays(**read_tape(path, columns))

    @classmethod
    def blocks(
        cls,
        path: str | os.PathLike[str],
        columns: Columns | None = None,
        *,
        rows: int = 1_000_000,
    ) -> Iterator["Tape"]:
        """Reads a Parquet file as tapes of `rows` rows, for files larger than memory.

        A replay of each goes on from the states of the one before, and gives the same sets as one
        of the whole file. Every label must be known before the next row.
        """
        from setpoint.tape.rows import blocks

        for part in blocks(path, columns, whole(rows, "rows", 1)):
            tape = cls.from_arrays(**part)
            if tape.schedule is not None:
                raise TapeError("a tape with late labels cannot be cut into blocks: read it whole")
            yield tape

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes a .csv, .csv.gz, .parquet or .npz file, whole or not at all.

        Every number comes back to the bit; from a CSV, which has no types, as float64. An .npz
        keeps everything; the others have one value a cell and take no `Ragged` column.
        """
        prediction = dict(zip(self.names, self.prediction, strict=True))
        write_tape(path, self._keys(), prediction, self.y, self.extras)

    def _keys(self) -> dict[str, np.ndarray]:
        """Those of `KEYS` that there are."""
        keys = {name: getattr(self, name) for name in KEYS}
        if not isinstance(self.delay, np.ndarray):
            keys["delay"] = np.full(len(self), self.delay) if self.delay else None
        return {name: values for name, values in keys.items() if values is not None}

    # Looked at

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        missing = int(np.isnan(self.y).sum())
        parts = [", ".join(self.names), f"y, {missing:,} missing" if missing else "y"]
        parts += self._keys()
        parts += [", ".join(self.extras)] if self.extras else []
        count = len(self.streams)
        streams = f"{count:,} stream{'' if count == 1 else 's'}"
        return f"Tape({len(self):,} rows, {streams}: {'; '.join(parts)})"

    @cached_property
    def _segmented(self) -> tuple[dict[Any, int], np.ndarray | None, np.ndarray]:
        if self.horizon is None:
            whole_tape = {None: 0}, None, np.array([0, len(self)])
            return whole_tape if self.series is None else segment(self.series)
        if self.series is None:
            return segment(self.horizon)
        pairs = zip(self.series.tolist(), self.horizon.tolist(), strict=True)
        return segment(np.fromiter(pairs, object, len(self)))

    @cached_property
    def schedule(self) -> Schedule | None:
        """When labels become known, in the order of `segments`; None if always before the next row.

        >>> tape = Tape.from_arrays([[0.0] * 3, [1.0] * 3], [0.5] * 3, known=[3, 2, 2])
        >>> tape.schedule.order, tape.schedule.upto
        (array([1, 2, 0]), array([0, 0, 1]))
        """
        offsets = self.segments.offsets
        lengths = np.diff(offsets)
        if self.known is not None and self.time is not None:
            known, time = self.by_stream(self.known), self.by_stream(self.time)
            rows = np.empty(len(self), np.int64)
            for first, last in pairwise(offsets.tolist()):
                rows[first:last] = np.searchsorted(time[first:last], known[first:last])
            return scheduled(rows, known, offsets)
        if not isinstance(self.delay, np.ndarray):
            return steady(np.full(len(lengths), self.delay), offsets) if self.delay else None
        delay = self.by_stream(self.delay)
        if not delay.any():
            return None
        whole_rows = delay.astype(np.int64)
        first = whole_rows[offsets[:-1]] if len(delay) else whole_rows
        if (delay == np.repeat(first, lengths)).all():
            return steady(first, offsets)
        rows = np.arange(len(self)) - np.repeat(offsets[:-1], lengths) + 1 + whole_rows
        return scheduled(rows, rows + (delay - whole_rows), offsets)

    def late(self, delay: Any) -> "Tape":
        """The same rows with labels that are known `delay` rows late, one number or a column."""
        return self._with(delay=_delay(delay), known=None)

    @cached_property
    def places(self) -> np.ndarray:
        """The place of each row in the original data, before sorting or splitting."""
        return np.arange(len(self))

    @property
    def streams(self) -> list[Any]:
        """The streams in order of first appearance; [None] for a single one without a name."""
        return list(self._segmented[0])

    @property
    def segments(self) -> Segments:
        """Where each of `streams` is: an order of the rows that makes them contiguous, offsets."""
        return Segments(*self._segmented[1:])

    def by_stream(self, column: np.ndarray) -> np.ndarray:
        """A column, one entry a row along its last axis, in the order of `segments`."""
        order = self.segments.order
        return column if order is None else np.asarray(column)[..., order]

    def by_row(self, column: np.ndarray) -> np.ndarray:
        """Reorders values from the order of `segments` back to row order.

        >>> tape = Tape.from_arrays([[0.0] * 3, [1.0] * 3], [0.5] * 3, series=["a", "b", "a"])
        >>> tape.by_stream(np.array([1, 2, 3])), tape.by_row(np.array([1, 3, 2]))
        (array([1, 3, 2]), array([1, 2, 3]))
        """
        order = self.segments.order
        if order is None:
            return column
        back = np.empty_like(column)
        back[..., order] = column
        return back

    def split(self, counts: Any) -> tuple["Tape", "Tape"]:
        """Splits each stream into its first rows and the rest; views for one stream.

        `counts` is one number for all streams, or one for each of `streams`.
        """
        offsets = self.segments.offsets
        lengths = np.diff(offsets)
        counts = np.minimum(np.broadcast_to(counts, lengths.shape), lengths)
        if len(lengths) == 1 or not counts.any():
            count = int(counts.max(initial=0))
            return self[:count], self[count:]
        within = np.arange(len(self)) - np.repeat(offsets[:-1], lengths)
        early = self.by_row(within < np.repeat(counts, lengths))
        return self._take(np.flatnonzero(early)), self._take(np.flatnonzero(~early))

    def rows(self, stream: Hashable = None) -> np.ndarray:
        """The row numbers of a stream, in order."""
        rows = self._rows(stream)
        return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows

    def _rows(self, stream: Hashable) -> slice | np.ndarray:
        places, order, offsets = self._segmented
        if stream not in places:
            shown = ", ".join(map(repr, self.streams[:5])) + (", …" if len(places) > 5 else "")
            raise TapeError(f"no stream {stream!r}; the tape has {shown or 'none'}")
        start, stop = map(int, offsets[places[stream] : places[stream] + 2])
        return slice(start, stop) if order is None else order[start:stop]

    def stream(self, id: Hashable = None) -> "Tape":
        """The tape of one stream; a view if its rows are contiguous."""
        return self._take(self._rows(id))

    def __getitem__(self, rows: slice) -> "Tape":
        """The rows from start to stop, as views."""
        step = getattr(rows, "step", 0)
        if step is not None and step < 1:
            raise TapeError(f"rows of a tape are taken by a slice that goes forward, got {rows!r}")
        return self._take(rows)

    def between(self, start: Any = None, stop: Any = None) -> "Tape":
        """The rows with start ≤ time < stop; None leaves an end open.

        >>> tape = Tape.from_arrays([[0.0] * 3, [1.0] * 3], [0.5] * 3, time=[1, 2, 3])
        >>> len(tape.between(2))
        2
        """
        if self.time is None:
            raise TapeError("between needs a tape with times, this one has none")
        rows = np.arange(len(self))
        for end, sign in ((start, np.greater_equal), (stop, np.less)):
            if end is not None:
                bound = times([end])
                if (bound.dtype.kind == "M") != (self.time.dtype.kind == "M"):
                    raise TapeError(f"times are {self.time.dtype} in this tape, got {end!r}")
                rows = rows[sign(self.time[rows], bound[0])]
        together = len(rows) and rows[-1] - rows[0] + 1 == len(rows)
        return self._take(slice(rows[0], rows[-1] + 1) if together else rows)

    def _take(self, rows: slice | np.ndarray) -> "Tape":
        """Some of the rows; what was checked once is not checked again."""
        part = object.__new__(Tape)
        keys = self._keys()
        _fill(
            part,
            places=self.places[rows],
            notice=None,
            prediction=tuple(values[rows] for values in self.prediction),
            names=self.names,
            y=self.y[rows],
            extras={name: values[rows] for name, values in self.extras.items()},
            **{name: keys[name][rows] if name in keys else None for name in KEYS},
        )
        if not isinstance(self.delay, np.ndarray):
            _fill(part, delay=self.delay)
        return part

    def hidden(self, rows: np.ndarray) -> "Tape":
        """A copy with some labels removed."""
        return self._with(y=np.where(rows, np.nan, self.y))

    def with_prediction(self, prediction: Mapping[str, np.ndarray]) -> "Tape":
        """The same rows with other predictions."""
        names = checked_names(tuple(prediction), len(prediction), self.extras)
        columns = tuple(map(floats, prediction.values(), names))
        return self._with(prediction=columns, names=names)

    def with_extras(self, extras: Mapping[str, Any]) -> "Tape":
        """The same rows with other columns beside the predictions, such as features."""
        checked_names(self.names, len(self.names), extras)
        return self._with(extras={name: np.asarray(values) for name, values in extras.items()})

    def _with(self, **fields: Any) -> "Tape":
        """The same rows with other fields, checked."""
        tape = self._take(slice(None))
        _fill(tape, **fields)
        tape._check()
        return tape

    # Checked

    def _check(self) -> None:
        """One entry a row in every column, and a number in every prediction."""
        sizes = dict(zip(self.names, map(len, self.prediction), strict=True)) | {"y": len(self.y)}
        keys = self._keys()
        for name, values in {**keys, **self.extras}.items():
            shape = (len(values),) if isinstance(values, Ragged) else values.shape
            if not shape or (name in keys and len(shape) != 1):
                raise TapeError(f"{name} must have one value a row, got shape {shape}")
            sizes[name] = len(values)
        if len(set(sizes.values())) > 1:
            lengths = ", ".join(f"{name} has {size:,}" for name, size in sizes.items())
            raise TapeError(f"columns must be of equal length: {lengths} rows")
        for name, values in zip(self.names, self.prediction, strict=True):
            refuse(np.isnan, values, f"column {name!r}", "a number or ±inf")

    def _check_series(self) -> None:
        if self.series is None or self.series.dtype.kind in "iuUT" or not len(self.series):
            return
        strange = str(self.series.dtype)
        if self.series.dtype == object:
            odd = [key for key in number_keys(self.series, "series")[0] if not is_id(key)]
            if not odd:
                return
            strange = f"{odd[0]!r} at row {self.series.tolist().index(odd[0])}"
        raise TapeError(f"series must hold whole numbers, strings or tuples of them, got {strange}")

    def _check_known(self) -> None:
        """When a label became known is said once, in the units of time, and not before its set."""
        if self.known is None or self.time is None:
            return
        if isinstance(self.delay, np.ndarray) or self.delay:
            raise TapeError("a tape has a delay or times at which labels became known, not both")
        if (self.known.dtype.kind == "M") != (self.time.dtype.kind == "M"):
            raise TapeError(
                f"known must be in units of time, {self.time.dtype} here, got {self.known.dtype}"
            )
        early = self.known < self.time
        if early.any():
            row = int(early.argmax())
            raise TapeError(
                f"a label cannot be known before its set is made: known is {self.known[row]} and "
                f"time is {self.time[row]} at row {row}"
            )


_LATEST = 1e15


def _delay(values: Any) -> int | np.ndarray:
    """A delay of all rows, or one for each, which may have fractions."""
    if np.ndim(values) == 0:
        return whole(values, "delay", 0)
    given = np.asarray(values)
    if given.dtype.kind != "f":
        return wholes(values, "delay", 0)
    refuse(lambda late: ~((late >= 0.0) & (late < _LATEST)), given, "delay", "from 0 to 1e15 rows")
    return given.astype(np.float64 if (given % 1.0).any() else np.int64)


def _fill(tape: Any, **fields: Any) -> None:
    """Sets the fields of a frozen dataclass."""
    for name, value in fields.items():
        object.__setattr__(tape, name, value)


def _columns(prediction: Any) -> list[Any]:
    """The columns of a prediction that is not a mapping."""
    axes = 1 if isinstance(prediction, Ragged) else getattr(prediction, "ndim", 0)
    if axes == 2:
        return list(np.asarray(prediction).T)
    try:
        return [prediction] if axes == 1 else list(prediction)
    except TypeError:
        raise TapeError(
            f"a prediction must be columns with one row a step, got {prediction!r}"
        ) from None
