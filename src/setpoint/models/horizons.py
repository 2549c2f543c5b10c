"""Forecasts of many series, several steps ahead: one stream for each series and horizon.

A label h steps ahead is known h steps later. Past forecasts (a backtest) are replayed first; then
forecasts are shown and labels reported, by the time they are for. With `sp.paths` all horizons of
a series are one stream, and the intervals are the band of the whole path. The adapters to
forecasting libraries turn their frames and series into `Forecasts` and back.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from setpoint import presets
from setpoint._check import confidence
from setpoint._files import put
from setpoint.bulk.fleet import Fleet
from setpoint.bulk.paths import replay_paths
from setpoint.bulk.replay import replay, some, start_of_new
from setpoint.bulk.trace import Trace, ends_of
from setpoint.controller import Controller
from setpoint.errors import InputError, StateError
from setpoint.guarantee import Certificate
from setpoint.models.online import known_of
from setpoint.sets import Paths
from setpoint.tape import Tape
from setpoint.tape.columns import frame_columns, numbers, opened, times

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

_MOST = 1000  # how many labels of a stream may be late; a series can end without a word


class Forecasts(NamedTuple):
    """Forecasts and their labels in columns, a row each.

    `series` names the series, `horizon` is how many steps ahead the forecast looks, `made` when it
    was made and `due` the time it is for, on one clock. `lower` and `upper` are its ends, at the
    highest coverage of several; a point forecast is both. `y` is the label. `known` has a column
    for each feature of the controller, NaN where one is missing.
    """

    series: Array
    horizon: Array
    made: Array
    due: Array
    lower: Floats
    upper: Floats
    y: Floats
    known: Floats | None = None

    @property
    def finite(self) -> Array:
        """The rows that say something: both ends are numbers."""
        return np.flatnonzero(np.isfinite(self.lower) & np.isfinite(self.upper))

    def joined(self, *more: "Forecasts") -> "Forecasts":
        """These rows, and then others."""
        every: list[Any] = [*zip(self, *more, strict=True)]
        return Forecasts._make(None if each[0] is None else np.concatenate(each) for each in every)

    def taken(self, rows: Any) -> "Forecasts":
        """Some of the rows, in an order."""
        return Forecasts._make(None if column is None else column[rows] for column in self)

    def features(self, controller: Controller) -> dict[str, Floats]:
        """What the controller asks to know of each row, by name."""
        names = known_of(controller)
        if names and (self.known is None or self.known.shape[1] != len(names)):
            raise InputError(f"forecasts need the features {', '.join(names)}, and have none")
        return {} if self.known is None else dict(zip(names, self.known.T, strict=True))


def replayed(
    forecasts: Forecasts,
    coverages: Iterable[float],
    controller: Callable[[Any], Controller] = presets.intervals,
) -> tuple[Floats, Trace]:
    """Past forecasts with the intervals that would have been shown, and their trace.

    Every label is taken in when its time has come. The intervals are (n, 2, k), for coverages that
    rise. A forecast that is not finite is not judged, and its intervals are the whole line.

    >>> import numpy as np
    >>> made, point = np.arange(4), np.zeros(4)
    >>> rows = Forecasts(np.full(4, "a"), np.full(4, 2), made, made + 2, point, point, point + 1)
    >>> ends, trace = replayed(rows, [0.9])
    >>> ends[:, :, 0].tolist()  # the first label is known when the third forecast is made
    [[-inf, inf], [-inf, inf], [-1.09..., 1.09...], [-1.08..., 1.08...]]
    """
    coverages = list(coverages)
    rows = forecasts.finite
    rows = rows[np.argsort(forecasts.made[rows], kind="stable")]
    past = forecasts.taken(rows)
    shown = _whole_lines(len(forecasts.due), len(coverages))
    held = _of_levels(controller, coverages)
    tape = Tape.from_arrays(
        (past.lower, past.upper), past.y, series=past.series, horizon=past.horizon, time=past.made,
        known=past.due, extras=past.features(held),
    )  # fmt: skip
    trace = replay(held, tape)
    shown[rows] = np.stack(trace.levels).transpose(2, 0, 1)
    return shown, trace


class Horizons:
    """Intervals of many series and horizons, at one coverage or several.

    Parameters
    ----------
    coverages
        The shares of labels that the intervals are to hold.
    controller
        What makes a controller of one coverage, or of a list of several as `sp.intervals` takes
        them. `partial(sp.intervals, support=(0.0, inf))` keeps ends from falling below zero, and
        `partial(sp.intervals, guarded=[0.9])` guarantees one level of several. With
        `partial(sp.paths, 24)` the intervals of 24 steps hold a whole path; `every=1` if there is
        a path at every step.

    Examples
    --------
    >>> import numpy as np
    >>> made, horizon = np.repeat(np.arange(300), 2), np.tile([1, 2], 300)
    >>> y = np.cumsum(np.random.default_rng(0).normal(size=303))  # the forecast is the last label
    >>> rows = Forecasts(np.full(600, "a"), horizon, made, made + horizon, y[made], y[made],
    ...                  y[made + horizon])  # fmt: skip
    >>> intervals = Horizons([0.9])
    >>> lower, upper = intervals.fit(rows.taken(slice(598)))[:, :, 0].T
    >>> round(float(np.mean((lower <= rows.y[:598]) & (rows.y[:598] <= upper))), 2)
    0.9
    >>> one, two = intervals.predict(rows.taken(slice(598, 600)))[:, :, 0]
    >>> bool(two[1] - two[0] > one[1] - one[0])
    True
    >>> intervals.update(["a"], [300], y[[300]])  # the other goes on waiting
    >>> intervals.certificate("a", 2).pending
    1
    """

    def __new__(
        cls,
        coverages: Sequence[float] = (0.9,),
        controller: Callable[[Any], Controller] = presets.intervals,
    ) -> "Horizons":
        sets = _of_levels(controller, _checked(coverages)).sets
        return object.__new__(_WholePaths if isinstance(sets, Paths) else cls)

    def __init__(
        self,
        coverages: Sequence[float] = (0.9,),
        controller: Callable[[Any], Controller] = presets.intervals,
    ) -> None:
        self.coverages = _checked(coverages)
        self._controller = controller
        self._begin()

    def _begin(self) -> None:
        held = _of_levels(self._controller, self.coverages)
        self._fleet = Fleet(held, 0, max_pending=sys.maxsize)
        self._shown: dict[tuple[Any, int], tuple[Any, ...]] = {}
        # What waits, by series, horizon and the time it is for: the batch it is in.
        self._waiting: dict[Any, dict[int, dict[Any, int]]] = {}
        self._serial = 0
        self._known: set[Any] = set()

    def fit(self, past: Forecasts) -> Floats:
        """Begins anew with past forecasts: their intervals, (n, 2, k), as `replayed` has them."""
        self._begin()
        shown, trace = replayed(past, self.coverages, self._controller)
        self._fleet.add(list(trace.states), trace.states)  # type: ignore[arg-type]
        self._known = {*trace.states}
        return shown

    def _begin_streams(self, streams: Iterable[Any]) -> None:
        """Streams that are new begin, with what others of their horizon have learnt."""
        new = [stream for stream in streams if stream not in self._known]
        if not new:
            return
        fleet, others = self._fleet, dict[Any, list[Any]]()
        for stream in fleet.ids:
            others.setdefault(stream[1], []).append(stream)  # type: ignore[index]
        begun = {
            horizon: start_of_new(fleet.controller, map(fleet.state, some(others.get(horizon, []))))
            for horizon in {horizon for _, horizon in new}
        }
        first = fleet.controller.init()
        fleet.add(new, [begun[horizon] or first for _, horizon in new])
        self._known.update(new)

    def predict(self, forecasts: Forecasts) -> Floats:
        """The intervals as they are now, (n, 2, k), which wait for their labels.

        If a stream is asked again about the same time, it is judged by what it showed last. A
        forecast that is not finite is not judged.
        """
        rows = forecasts.finite
        some = forecasts.taken(rows)
        streams, due = list(zip(*(c.tolist() for c in some[:2]), strict=True)), some.due.tolist()
        shown = _whole_lines(len(forecasts.due), len(self.coverages))
        before = [self._shown[stream][0] if stream in self._shown else None for stream in streams]
        if any(old not in (None, new) for old, new in zip(before, due, strict=True)):
            self._open()  # time went on without a label
        self._begin_streams(streams)
        known = some.features(self._fleet.controller)
        pair = some.lower, some.upper
        ends = self._peek(pair, streams, known or None)
        shown[rows] = np.stack(ends).transpose(2, 0, 1)
        columns = (due, *(column.tolist() for column in (*pair, *known.values())))
        self._shown.update(zip(streams, zip(*columns, strict=True), strict=True))
        return shown

    def update(self, series: Any, time: Any, y: Any) -> None:
        """Labels by their series and time; those of which no forecast was shown are passed over.

        NaN says that there is no label: its forecasts are closed without being judged.
        """
        columns = (np.asarray(series).tolist(), np.asarray(time).tolist(), np.asarray(y).tolist())
        self._open()
        answers: dict[int, dict[Any, float]] = {}
        labels = {(name, when): label for name, when, label in zip(*columns, strict=True)}
        for (name, when), label in labels.items():
            for horizon, batches in self._waiting.get(name, {}).items():
                if when in batches:
                    answers.setdefault(batches.pop(when), {})[name, horizon] = label
        for batch in sorted(answers):
            self._answer(batch, answers[batch])

    def _open(self) -> None:
        """What was shown begins to wait, in place of what waits for the same label already."""
        if not self._shown:
            return
        given_up: dict[int, list[Any]] = {}
        for (name, horizon), (when, *_) in self._shown.items():
            batches = self._waiting.setdefault(name, {}).setdefault(horizon, {})
            if when in batches or len(batches) >= _MOST + horizon:
                old = batches.pop(when if when in batches else next(iter(batches)))
                given_up.setdefault(old, []).append((name, horizon))
            batches[when] = self._serial
        for batch, streams in given_up.items():
            self._drop(batch, streams)
        _, lower, upper, *known = map(np.array, zip(*self._shown.values(), strict=True))
        features = dict(zip(self.features, known, strict=True)) or None
        self._ask((lower, upper), list(self._shown), features)
        self._serial += 1
        self._shown = {}

    def _peek(self, pair: tuple[Floats, Floats], streams: list[Any], known: Any) -> list[Floats]:
        """The lower and the upper ends of some streams, a row for each coverage."""
        return [np.atleast_2d(end) for end in self._fleet.peek(pair, streams, features=known)]

    def _ask(self, pair: tuple[Floats, Floats], streams: list[Any], known: Any) -> None:
        self._fleet.predict(pair, streams, batch=self._serial, features=known)

    def _answer(self, batch: int, labels: dict[Any, float]) -> None:
        self._fleet.update(labels, batch=batch)

    def _drop(self, batch: int, streams: list[Any]) -> None:
        self._fleet.drop(batch, streams)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes all streams into a folder, and a file with what waits."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        self._fleet.save(place / "streams.zip")
        waiting = [
            [name, horizon, when, batch]
            for name, horizons in self._waiting.items()
            for horizon, batches in horizons.items()
            for when, batch in batches.items()
        ]
        shown = [[*stream, *row] for stream, row in self._shown.items()]
        header = {"coverages": self.coverages, "serial": self._serial}
        put(place / "waiting.json", json.dumps({**header, "waiting": waiting, "shown": shown}))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Horizons":
        """What `save` wrote."""
        place = Path(folder)
        try:
            header = json.loads((place / "waiting.json").read_text("utf-8"))
            fleet = Fleet.load(place / "streams.zip")
            other = cls(header["coverages"], lambda _: fleet.controller)
            other._fleet, other._serial = fleet, header["serial"]
            other._known = {*fleet.ids}
            for name, horizon, when, batch in header["waiting"]:
                other._waiting.setdefault(name, {}).setdefault(horizon, {})[when] = batch
            for name, horizon, *row in header["shown"]:
                other._shown[name, horizon] = tuple(row)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StateError(f"{place} is no folder of saved intervals: {error}") from error
        return other

    def certificate(self, series: Any, horizon: int) -> Certificate:
        """What is guaranteed for one series at one horizon, of the highest coverage first."""
        return self._fleet.certificate((series, horizon))

    @property
    def features(self) -> tuple[str, ...]:
        """What the controller asks to know of each row."""
        return known_of(self._fleet.controller)

    @property
    def series(self) -> set[Any]:
        """The series that forecasts were given of."""
        return {name for name, _ in self._known}


class _WholePaths(Horizons):
    """A stream of paths for each series, known by the name of the series and 0."""

    @property
    def _steps(self) -> int:
        sets: Any = self._fleet.controller.sets
        return int(sets.horizon)

    def _whole(self, forecasts: Forecasts, made: Array) -> Array:
        """The rows of paths, step after step; a path with a forecast that is not finite is none.

        `made` is when: what is shown now has one path for each series.
        """
        series = np.unique(forecasts.series.astype(str), return_inverse=True)[1]
        order = np.lexsort((forecasts.horizon, series, made))
        few = len(order) % self._steps
        paths = order[: len(order) - few].reshape(-1, self._steps)
        same = [column[paths] == column[paths[:, :1]] for column in (series, made)]
        if few or not (
            np.all(same) and (forecasts.horizon[paths] == np.arange(1, self._steps + 1)).all()
        ):
            raise InputError(
                f"paths of {self._steps} steps need forecasts 1 to {self._steps} steps ahead, of "
                f"each series from each time, got {len(order):,} rows that are up to "
                f"{int(forecasts.horizon.max(initial=0))} steps ahead"
            )
        finite = np.isfinite(forecasts.lower[paths] + forecasts.upper[paths]).all(axis=1)
        return np.asarray(paths[finite].ravel())

    def fit(self, past: Forecasts) -> Floats:
        self._begin()
        shown = _whole_lines(len(past.due), len(self.coverages))
        rows = self._whole(past, past.made)
        some = past.taken(rows)
        tape = Tape.from_arrays(
            (some.lower, some.upper), some.y, series=some.series, horizon=some.horizon,
            time=some.made, known=some.due,
        )  # fmt: skip
        trace = replay_paths(self._fleet.controller, tape)
        bands = trace.ends[:: len(trace.ends) // len(self.coverages)]
        shown[rows[trace.rows]] = np.array(bands).transpose(2, 3, 1, 0)
        streams: list[Any] = [(name, 0) for name in trace.states]
        self._fleet.add(streams, [*trace.states.values()])
        self._known = {*streams}
        return shown

    def predict(self, forecasts: Forecasts) -> Floats:
        shown = _whole_lines(len(forecasts.due), len(self.coverages))
        rows = self._whole(forecasts, np.zeros(len(shown)))
        if len(rows):
            shown[rows] = super().predict(forecasts.taken(rows))
        return shown

    def _begin_streams(self, streams: Iterable[Any]) -> None:
        new = [key for key in {(name, 0): None for name, _ in streams} if key not in self._known]
        self._fleet.add(new)
        self._known.update(new)

    def _paths(self, pair: tuple[Floats, Floats], streams: list[Any]) -> tuple[Any, list[Any]]:
        lower, upper = (end.reshape(-1, self._steps) for end in pair)
        return {"lower": lower, "upper": upper}, [(name, 0) for name, _ in streams[:: self._steps]]

    def _peek(self, pair: tuple[Floats, Floats], streams: list[Any], known: Any) -> list[Floats]:
        shown: Any = self._fleet.peek(*self._paths(pair, streams))
        bands = np.array([[(own.lower, own.upper) for own in path.levels] for path in shown])
        return [*bands.transpose(2, 1, 0, 3).reshape(2, len(self.coverages), -1)]

    def _ask(self, pair: tuple[Floats, Floats], streams: list[Any], known: Any) -> None:
        self._fleet.predict(*self._paths(pair, streams), batch=self._serial)

    def _answer(self, batch: int, labels: dict[Any, float]) -> None:
        for step in sorted({step for _, step in labels}):
            waits: Any = {*self._fleet.pending.get(batch, ())}
            told = {(name, 0): label for (name, own), label in labels.items() if own == step}
            told = {stream: label for stream, label in told.items() if stream in waits}
            if told:
                self._fleet.update(told, batch=batch, step=step)  # type: ignore[call-arg]

    def _drop(self, batch: int, streams: list[Any]) -> None:
        waits: Any = self._fleet.pending.get(batch, ())
        if gone := [key for key in {(name, 0) for name, _ in streams} if key in waits]:
            self._fleet.drop(batch, gone)

    def certificate(self, series: Any, horizon: int) -> Certificate:
        return self._fleet.certificate((series, 0))


class Adapter:
    """What the adapters to forecasting libraries share: the streams of each model, and a folder.

    An adapter lays the frames or series of its library out as `Forecasts`, asks the streams of a
    model (`_of`), and gives back what its library knows. `fit_predict` is its own.
    """

    _options: dict[str, Any]

    def _begin(
        self, coverages: Iterable[float], controller: Callable[[Any], Controller], **options: Any
    ) -> None:
        """Keeps what makes streams, and the options that make the adapter again."""
        self._options, self._made = options, (tuple(coverages), controller)
        self._features = Horizons(*self._made).features
        self._forget()

    def _forget(self) -> None:
        self._streams: dict[str, Horizons] = {}
        self._corrects: dict[str, bool] = {}

    def _of(self, model: str = "", *, corrects: bool = False) -> Horizons:
        """The streams of a model; all its forecasts have ends of their own, or none has."""
        if self._corrects.setdefault(model, corrects) != corrects:
            raise InputError(
                f"past forecasts{model and f' of {model}'} and later ones must both have intervals "
                "that are corrected, or neither: these are not like those before"
            )
        if model not in self._streams:
            self._streams[model] = Horizons(*self._made)
        return self._streams[model]

    def _ends(
        self, rows: Forecasts, frame: Any, names: tuple[str, list[str], list[str]], *, fit: bool
    ) -> dict[str, Floats]:
        """The ends of a model at levels that rise, as columns from the lowest to the highest.

        `names` are the columns of its forecasts, of its lower and of its upper ends. Where the
        frame has ends at the highest level, these are corrected, else the forecasts.
        """
        model, lower, upper = names
        _, there = opened(frame)
        corrects = {lower[-1], upper[-1]} <= {*there}
        if not corrects and {*lower, *upper} & {*there}:
            raise InputError(
                f"a frame must have both ends of {model} at the highest level, {lower[-1]!r} and "
                f"{upper[-1]!r}, or none at any level"
            )
        wanted = [lower[-1], upper[-1]] if corrects else [model]
        sides = [numbers(column, name) for name, column in frame_columns(frame, wanted).items()]
        streams = self._of(model, corrects=corrects)
        rows = rows._replace(lower=sides[0], upper=sides[-1])
        shown = streams.fit(rows) if fit else streams.predict(rows)
        ends = np.concatenate([*shown.transpose(1, 2, 0)])
        columns = dict(zip([*lower, *upper], ends, strict=True))
        return {name: columns[name] for name in (*reversed(lower), *upper)}

    def fit(self, *past: Any, **more: Any) -> Self:
        """Begins anew with past forecasts and their labels, given as to `fit_predict`."""
        self.fit_predict(*past, **more)  # type: ignore[attr-defined]
        return self

    def certificate(self, series: Any = 0, horizon: int = 1, *, model: str = "") -> Certificate:
        """What is guaranteed for one series at one horizon, level by level, the highest first.

        Where there are several models, `model` names one.
        """
        if not model and len(self._streams) == 1:
            (model,) = self._streams
        if model not in self._streams:
            raise InputError(f"model must be one of {[*self._streams]}, got {model!r}")
        return self._streams[model].certificate(series, horizon)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes everything into a folder."""
        place = Path(folder)
        for number, streams in enumerate(self._streams.values()):
            streams.save(place / str(number))
        models = {model: self._corrects[model] for model in self._streams}
        put(place / "intervals.json", json.dumps({"options": self._options, "models": models}))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """What `save` wrote; a controller of one's own is that of the streams."""
        place = Path(folder)
        try:
            header = json.loads((place / "intervals.json").read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise StateError(f"{place} is no folder of saved intervals: {error}") from error
        other = cls(**header["options"])
        other._corrects = header["models"]
        for number, model in enumerate(other._corrects):
            streams = other._streams[model] = Horizons.load(place / str(number))
            other._made = streams.coverages, streams._controller
            other._features = streams.features
        return other


def unknown(count: int) -> Floats:
    """The labels of forecasts that are still to come."""
    return np.full(count, np.nan)


def clock(values: Any) -> Array:
    """Times as numbers that compare: dates in nanoseconds, whole numbers as they are.

    >>> clock(["2024-01-01", "2024-01-02"]).tolist()
    [1704067200000000000, 1704153600000000000]
    """
    column = times(values)
    return column.astype("datetime64[ns]").astype(np.int64) if column.dtype.kind == "M" else column


def steps_ahead(series: Any, due: Array, made: Array | None = None) -> Array:
    """How many steps ahead each row forecasts, by its time and never by its rank.

    `made` is when forecasts were made; without it the first row of a series is one step ahead.
    Where all times lie a whole number of steps apart, as hours and days do, steps that are left
    out are counted. Other times, such as months, are counted by those that some row has.

    >>> day = np.array([2, 3, 5])
    >>> steps_ahead(np.array(["a"] * 3), day, np.zeros(3, int)).tolist()
    [2, 3, 5]
    """
    names, codes = np.unique(np.asarray(series).astype(str), return_inverse=True)
    order = np.lexsort((due, codes) if made is None else (due, made, codes))
    same = codes[order][1:] == codes[order][:-1]
    if made is not None:
        same &= made[order][1:] == made[order][:-1]
    twice = np.flatnonzero(same & (due[order][1:] == due[order][:-1]))
    if len(twice):
        row = int(order[twice[0]])
        raise InputError(
            f"series {str(names[codes[row]])!r} has two forecasts for the same time, row "
            f"{row} and row {int(order[twice[0] + 1])}: give each of them once"
        )
    if made is None:
        first = np.full(len(names), np.iinfo(np.int64).max)
        np.minimum.at(first, codes, due)
        grid, origin, ahead = np.unique(due), first[codes], 1
    else:
        grid, origin, ahead = np.unique(np.concatenate([made, due])), made, 0
    gaps = np.diff(grid)
    step = int(gaps.min(initial=np.iinfo(np.int64).max))
    if len(gaps) and (gaps % step == 0).all():
        steps = (due - origin) // step + ahead
    else:
        steps = np.searchsorted(grid, due) - np.searchsorted(grid, origin) + ahead
    if (steps < 1).any():
        row = int((steps < 1).argmax())
        raise InputError(f"row {row} of series {str(names[codes[row]])!r} is not after its cutoff")
    return np.asarray(steps, np.int64)


def _checked(coverages: Sequence[float]) -> tuple[float, ...]:
    shares = [confidence(each, "coverage") for each in coverages]
    if shares != sorted(set(shares)) or not shares:
        raise InputError(f"coverages must rise, got {coverages}")
    return tuple(shares)


def _of_levels(make: Callable[[Any], Controller], coverages: Sequence[float]) -> Controller:
    """A controller that shows an interval for each coverage."""
    controller = make(coverages[0] if len(coverages) == 1 else coverages)
    sets = controller.sets
    intervals = len(sets.coverage) if isinstance(sets, Paths) else len(ends_of(controller)) // 2
    intervals = intervals or 1
    if intervals != len(coverages):
        raise InputError(
            f"the controller must show an interval for each coverage of {list(coverages)}, as "
            f"sp.intervals does, got one that shows {intervals}"
        )
    return controller


def _whole_lines(rows: int, coverages: int) -> Floats:
    """Intervals that say nothing."""
    ends = np.array([-np.inf, np.inf])[None, :, None]
    return np.tile(ends, (rows, 1, coverages))
