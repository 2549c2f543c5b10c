"""Paths over a tape of several horizons: every origin with its band, its totals and its labels.

Such a tape has a row for each step of each path, and its horizon says which step a row is. The
rows of the k-th path of a series are the k-th of each of its horizons.
"""

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from math import inf, nan
from operator import itemgetter
from typing import Any

import numpy as np

from setpoint import _state_file, spec
from setpoint._check import whole
from setpoint._html import table
from setpoint.bulk.fleet import Fleet
from setpoint.bulk.replay import shown_to
from setpoint.bulk.states import Begin, Start, States, listed
from setpoint.controller import Controller
from setpoint.correction.paths import Paths as Correction
from setpoint.errors import AmbiguousReceipt, InputError, SetpointError, UnknownReceipt
from setpoint.guarantee import Certificate, certify
from setpoint.plan import plan
from setpoint.receipts import checked_id, checked_ids
from setpoint.recursion import RiskState
from setpoint.sets import Paths
from setpoint.sets.fan import code
from setpoint.sets.paths import Functional
from setpoint.state import Id, State
from setpoint.stream import Stream
from setpoint.tape import Tape

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class PathTrace:
    """The finished record of paths on a tape, one row for each path.

    `rows` has the row of the tape of each step of each path, `series` the series of each path.
    `ends` has the lower and upper ends of each set, level after level: of a band a column for each
    step, of a total, maximum or minimum a number for each path; `lam` and `losses` go with them, a
    loss is NaN where too little is known to say. `states` is what each series ended in.
    """

    controller: Controller
    tape: Tape
    rows: Array
    series: tuple[Hashable, ...]
    ends: tuple[tuple[Array, Array], ...]
    lam: Array
    losses: Array
    states: Mapping[Hashable, State]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        steps = self.rows.shape[1]
        return f"<PathTrace of {len(self):,} paths of {steps} steps, {len(self.states):,} series>"

    @property
    def _outer(self) -> tuple[tuple[Array, Array], ...]:
        """The ends of the sets of the highest level."""
        sets: Any = self.controller.sets
        return self.ends[sets.band :]

    @property
    def lower(self) -> Array:
        """The lower ends of the band, that of the highest level."""
        return self._outer[0][0]

    @property
    def upper(self) -> Array:
        """The upper ends of the band, that of the highest level."""
        return self._outer[0][1]

    @property
    def numbers(self) -> tuple[Array, Array]:
        """The lower and the upper ends of each total, maximum and minimum of the highest level."""
        shape = -1, len(self)
        lower, upper = (np.array([own[side] for own in self._outer[1:]]) for side in (0, 1))
        return lower.reshape(shape), upper.reshape(shape)

    @property
    def names(self) -> tuple[str, ...]:
        """What each set is of: path, total of 24."""
        return tuple(self.controller.sets.titles)  # type: ignore[attr-defined]

    @property
    def y(self) -> Array:
        """The actual values, one row for each path; NaN where one is missing."""
        return np.asarray(self.tape.y[self.rows])

    @property
    def actual(self) -> Array:
        """The actual value of each total, maximum and minimum; NaN where a step is missing."""
        sets: Any = self.controller.sets
        return np.array([[f.of(y) for y in self.y.tolist()] for f in sets.functionals])

    @property
    def coverage(self) -> dict[str, float]:
        """The share of paths that lay wholly inside, and of each number; NaN without any."""
        with np.errstate(invalid="ignore"):
            shares = 1.0 - np.array([np.mean(own[own == own]) if (own == own).any() else nan
                                     for own in self.losses])  # fmt: skip
        return dict(zip(self.names, shares.tolist(), strict=True))

    def measures(self) -> dict[str, dict[str, Any]]:
        """Of the band and of each number: how many were judged, coverage, width, what was missed.

        Widths are means over the sets with ends; `winkler` is their interval score, and `steps` the
        share of single steps inside the band.
        """
        measures: dict[str, dict[str, Any]] = {}
        values = [self.y, *self.actual]
        for place, (name, share) in enumerate(self.coverage.items()):
            (lower, upper), known = self.ends[place], values[place % len(values)]
            with np.errstate(invalid="ignore"):
                width = upper - lower
            ends, level = np.isfinite(width), self.controller.risks[place].level
            seen = ends & ~np.isnan(known)
            outside = np.maximum(lower - known, 0.0) + np.maximum(known - upper, 0.0)
            inside = (known >= lower) & (known <= upper)
            measures[name] = {
                "judged": int((self.losses[place] == self.losses[place]).sum()),
                "coverage": share,
                "asked": round(1.0 - level, 12),
                "width": float(width[ends].mean()) if ends.any() else inf,
                "full": float((self.lam[place] == inf).mean()),
            }
            if lower.ndim > 1:
                some = ~np.isnan(known)
                measures[name]["steps"] = float(inside[some].mean()) if some.any() else nan
            else:
                scores = width[seen] + 2.0 / level * outside[seen]
                measures[name]["winkler"] = float(scores.mean()) if seen.any() else nan
        return measures

    def certificate(self, series: Hashable = None) -> Certificate:
        """What is guaranteed for one series; it may be left out if there is only one."""
        if series is None and len(self.states) == 1:
            series = next(iter(self.states))
        if series not in self.states:
            raise InputError(
                f"the trace has {len(self.states):,} series, {listed(self.states)}: a certificate "
                f"is about one of them, got {series!r}"
            )
        return certify(self.controller, self.states[series])

    def frame(self, *, paths: bool = False) -> dict[str, Any]:
        """Columns with a row for each step; with `paths` a row for each path and its numbers.

        Of several levels the columns are called lower_50, upper_50 and so on.
        """
        tape, count, steps = self.tape, len(self), self.rows.shape[1]
        sets: Any = self.controller.sets
        rows = self.rows[:, 0] if paths else self.rows.ravel()
        keys = {"series": tape.series, "time": tape.time}
        columns = {name: np.asarray(key)[rows] for name, key in keys.items() if key is not None}
        columns["path"] = np.arange(count) if paths else np.repeat(np.arange(count), steps)
        inside = np.ma.array(self.losses != 1.0, mask=self.losses != self.losses)
        if not paths:
            columns |= {"step": np.tile(np.arange(1, steps + 1), count), "y": tape.y[rows]}
        else:
            columns |= zip(map(_word, sets.functionals), self.actual, strict=True)
        for place, (lower, upper) in enumerate(self.ends):
            level, which = divmod(place, 1 + len(sets.functionals))
            behind = f"_{code(sets.coverage[level], True)}" if sets.coverage else ""
            if paths:
                word = "" if which == 0 else f"{_word(sets.functionals[which - 1])}_"
                if word:
                    columns |= {f"{word}lower{behind}": lower, f"{word}upper{behind}": upper}
                columns[f"{word}covered{behind}"] = inside[place]
            elif which == 0:
                columns |= {f"lower{behind}": lower.ravel(), f"upper{behind}": upper.ravel()}
        if not paths:
            lower, upper, y = self.lower.ravel(), self.upper.ravel(), columns["y"]
            columns["covered"] = np.ma.array((y >= lower) & (y <= upper), mask=np.isnan(y))
        return columns

    def to_frame(self, *, paths: bool = False) -> Any:
        """`frame` as a pandas frame."""
        columns = self.frame(paths=paths)
        plain = {
            name: np.ma.filled(column.astype(object), None) if np.ma.isMA(column) else column
            for name, column in columns.items()
        }
        return import_module("pandas").DataFrame(plain)

    def _repr_html_(self) -> str:
        rows = [("paths", f"{len(self):,}"), ("series", f"{len(self.states):,}")]
        shares = self.coverage.items()
        return table(rows + [(name, f"{100.0 * share:.2f} % inside") for name, share in shares])


def replay_paths(
    controller: Controller,
    tape: Tape,
    *,
    state: Start = None,
    delay: int = 0,
) -> PathTrace:
    """Runs paths over a tape of several horizons, as live streams would, one for each series.

    Parameters
    ----------
    controller
        One of paths, such as `setpoint.paths(24)`.
    tape
        Rows with a `horizon` from 1 to that of the controller, in the order in which their paths
        were made. The label of step h is known h steps after that, if the tape does not say when.
    state
        Where each series begins, by its key, or one state for all.
    delay
        How many steps later than that labels become known.

    Examples
    --------
    >>> import setpoint as sp
    >>> hours, days = np.tile([1, 2, 3], 50), np.repeat(np.arange(50), 3)
    >>> y = 10.0 + hours + np.sin(np.arange(150.0))
    >>> tape = sp.Tape.from_arrays({"point": 10.0 + hours}, y, horizon=hours, time=days)
    >>> trace = sp.replay_paths(sp.paths(3, totals=[3]), tape)
    >>> trace, round(trace.coverage["path"], 2)
    (<PathTrace of 50 paths of 3 steps, 1 series>, 0.92)
    """
    sets, stage, made = controller.sets, controller.correction, plan(controller)
    if not isinstance(sets, Paths):
        raise InputError(f"replay_paths is for controllers of paths, got {controller!r}")
    every = (stage.every if isinstance(stage, Correction) else None) or sets.horizon
    rows, series = _paths_of(tape, sets.horizon)
    lower, upper, phase = _ends(tape)
    known = _known(tape, rows, every, whole(delay, "delay", 0))
    names = list(dict.fromkeys(series))
    starts = dict(zip(names, Begin(controller, names, state), strict=True))
    count, members = len(rows), sets.members
    shapes = [(count, sets.horizon), *[(count,)] * len(sets.functionals)]
    ends = tuple([
        (np.empty(shape), np.empty(shape))
        for shape in shapes * (members // len(shapes))
    ])  # fmt: skip
    lam, losses = np.empty((members, count)), np.full((members, count), nan)
    codes = {key: place for place, key in enumerate(names)}
    which = np.array([codes[key] for key in series])
    for key, place in codes.items():
        paths = np.flatnonzero(which == place)
        own = rows[paths]
        state, waiting = starts[key], dict[int, Any]()
        labels = [sets.label(y) for y in tape.y[own]]
        for told in _events(known[paths], every):
            path = told[0]
            row = int(paths[path])
            try:
                if len(told) == 1:
                    given = own[path]
                    at = float(phase[given[0]]) if phase is not None else nan
                    columns = {"lower": lower[given], "upper": upper[given], "phase": at}
                    reading: Any = sets.read(columns)
                    receipt = shown_to(made, state, sets, reading, path, len(waiting))
                    waiting[path] = receipt
                    lam[:, row] = receipt[3]
                    for (low, high), part in zip(ends, receipt[2].parts, strict=True):
                        low[row], high[row] = part.lower, part.upper
                    continue
                _, reading, shown, lams, leader, habits, _, before = waiting[path]
                heard = sets.known(before).told_of(labels[path], told[1])
                values = np.array(made.take_in(state, reading, shown, heard, lams, leader, habits))
                if heard.complete:
                    del waiting[path]
                else:
                    left = heard.left(shown, lams)
                    waiting[path] = *waiting[path][:3], left, leader, habits, (), heard[:2]
            except SetpointError as error:
                raise type(error)(f"path {row}: {error}") from None
            seen = ~np.isnan(values)
            losses[seen, row] = values[seen]
    return PathTrace(controller, tape, rows, tuple(series), ends, lam, losses, starts)


def _word(functional: Functional) -> str:
    """A number of paths in the name of a column: total_24."""
    return str(functional).replace(" of ", "_")


def _paths_of(tape: Tape, horizon: int) -> tuple[Array, list[Hashable]]:
    """The row of each step of each path, and the series of each path, in the order of origins."""
    if tape.horizon is None:
        raise InputError("paths need a tape with a horizon for each row: which step it is")
    steps = np.asarray(tape.horizon)
    given = np.unique(steps)
    if len(given) != horizon or (given != np.arange(1, horizon + 1)).any():
        some = ", ".join(f"{step:g}" for step in given[:5]) + (", …" if len(given) > 5 else "")
        raise InputError(
            f"paths of {horizon} steps need the horizons 1 to {horizon}, the tape has {some} "
            f"({len(given):,} of them)"
        )
    series = np.zeros(len(tape), np.int64) if tape.series is None else np.asarray(tape.series)
    names, codes = np.unique(series, return_inverse=True)
    order = np.lexsort((np.arange(len(tape)), steps, codes))
    counts = np.zeros((len(names), horizon), np.int64)
    np.add.at(counts, (codes, steps.astype(np.int64) - 1), 1)
    uneven = np.flatnonzero((counts != counts[:, :1]).any(1))
    if len(uneven):
        few = counts[uneven[0]]
        where = "" if tape.series is None else f" of the series {names[uneven[0]]!r}"
        raise InputError(
            f"every path needs a forecast for each step: horizon {int(few.argmin()) + 1}{where} "
            f"has {few.min():,} rows, and horizon {int(few.argmax()) + 1} has {few.max():,}"
        )
    blocks, keys, at = [], [], 0
    for name, count in zip(names.tolist(), counts[:, 0].tolist(), strict=True):
        blocks.append(order[at : at + count * horizon].reshape(horizon, count).T)
        keys += [None if tape.series is None else name] * count
        at += count * horizon
    rows = np.concatenate(blocks)
    if tape.time is not None:
        _check_times(np.asarray(tape.time)[rows])
    arranged = np.argsort(rows[:, 0], kind="stable")
    return rows[arranged], [keys[place] for place in arranged.tolist()]


def _check_times(times: Array) -> None:
    """Raises where the rows of a path cannot belong together."""
    gaps = np.diff(times, axis=1)
    nothing = np.zeros(1, gaps.dtype)[0]
    wrong = np.flatnonzero(~((gaps == nothing).all(1) | (gaps > nothing).all(1)))
    if len(wrong):
        raise InputError(
            "the rows of a path must have one time, when it was made, or times that rise with the "
            f"horizon; those of path {wrong[0]:,} begin {times[wrong[0], 0]}, {times[wrong[0], 1]}"
        )


def _ends(tape: Tape) -> tuple[Array, Array, Array | None]:
    """The forecasts of each row as two ends, and its place in time if the tape says it."""
    columns = dict(zip(tape.names, map(np.asarray, tape.prediction), strict=True))
    phase = columns.pop("phase", None)
    if columns.keys() == {"point"}:
        return columns["point"], columns["point"], phase
    if columns.keys() != {"lower", "upper"}:
        raise InputError(
            f"paths need forecasts, point or lower and upper, and the tape has {', '.join(columns)}"
        )
    return columns["lower"], columns["upper"], phase


def _known(tape: Tape, rows: Array, every: int, delay: int) -> Array:
    """Before which path of its series the label of each step of each path is known."""
    offsets, schedule = tape.segments.offsets, tape.schedule
    within = np.arange(len(tape)) - np.repeat(offsets[:-1], np.diff(offsets))
    place = np.asarray(tape.by_row(within))[rows]
    usual = tape.known is None and np.array_equal(tape.delay, np.asarray(tape.horizon) - 1)  # type: ignore[arg-type]
    if usual:
        steps = np.arange(1, rows.shape[1] + 1)
        return np.asarray(place - (-(steps + delay) // every))
    if delay:
        raise InputError("the tape says when labels became known: leave out the delay")
    if schedule is None:
        return place + 1
    events = schedule.events(offsets)
    first = np.repeat(np.arange(len(offsets) - 1), 2 * np.diff(offsets))
    asked, answers = np.cumsum(events >= 0) - offsets[:-1][first], events < 0
    known = np.empty(len(tape), np.int64)
    known[~events[answers]] = asked[answers]
    return np.asarray(tape.by_row(known)[rows])


def _events(known: Array, every: int) -> list[tuple[Any, ...]]:
    """Events in order: (path,) asks for a path, (path, steps) reports its steps."""
    count, horizon = known.shape
    paths, steps = np.repeat(np.arange(count), horizon), np.tile(np.arange(horizon), count)
    order = np.lexsort((steps, paths, paths * every + steps, known.ravel()))
    told = zip(known.ravel()[order].tolist(), paths[order].tolist(), steps[order].tolist(),
               strict=True)  # fmt: skip
    events: list[tuple[Any, ...]] = []
    asked = 0
    for (before, path), group in groupby(told, key=itemgetter(0, 1)):
        while asked < min(before, count):
            events.append((asked,))
            asked += 1
        events.append((path, tuple([step for *_, step in group])))
    events += [(path,) for path in range(asked, count)]
    return events


class PathFleet(Fleet):
    """What `Fleet` makes of a controller of paths: a `Stream` for each series."""

    def __init__(
        self, controller: Controller, streams: int | Iterable[Id], *, max_pending: int = 1_000
    ) -> None:
        self._controller = controller
        self._limit = whole(max_pending, "max_pending", 1)
        self._by_id: dict[Id, Stream] = {}
        self._serial = 0
        several = isinstance(streams, Iterable)
        self.add(streams if several else range(whole(streams, "streams", 0)))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the streams, in the order of the arrays."""
        return tuple(self._by_id)

    def add(self, ids: Iterable[Id], states: Sequence[State] | States | None = None) -> None:
        """Adds streams at the end, at the beginning of their lives or in given states."""
        new = checked_ids(ids)
        if len({*new, *self._by_id}) < len(new) + len(self):
            raise InputError(f"every stream needs an id of its own, got {new!r} beside {self.ids}")
        begun: Any = [None] * len(new) if states is None else states
        begun = [begun[id] for id in new] if isinstance(begun, Mapping) else begun
        options: Any = {"max_pending": self._limit, "missing": "skip"}
        made = [
            Stream(self._controller, state=state, **options)
            for _, state in zip(new, begun, strict=True)
        ]
        self._by_id |= zip(new, made, strict=True)

    def retire(self, ids: Iterable[Id]) -> Mapping[Hashable, State]:
        """Takes streams out and hands back their states; what they awaited is given up."""
        gone = dict(self._chosen(ids))
        for id, stream in gone.items():
            for waits in list(stream.pending):
                stream.drop(waits)
            del self._by_id[id]
        return {id: stream.state for id, stream in gone.items()}

    def _chosen(self, ids: Iterable[Id] | None) -> list[tuple[Id, Stream]]:
        """Streams by their ids, all of them by default."""
        listed = list(self._by_id) if ids is None else checked_ids(ids)
        if strange := [id for id in listed if id not in self._by_id]:
            raise InputError(f"the fleet has no stream {strange[0]!r}")
        if len(set(listed)) < len(listed):
            raise InputError("a call takes each stream once, and some id came twice")
        return [(id, self._by_id[id]) for id in listed]

    def predict(
        self,
        prediction: Any,
        ids: Iterable[Id] | None = None,
        *,
        batch: Id | None = None,
        groups: Iterable[Iterable[Id] | None] | None = None,
        features: Any = None,
    ) -> Any:
        """The sets for a row of forecasts of each stream, or for `lower` and `upper` by name."""
        streams, rows = self._chosen(ids), _rows_of(prediction, features)
        name = self._serial if batch is None else checked_id(batch, "the id of a batch")
        if name in self.pending:
            raise InputError(f"a batch already waits under the id {name!r}")
        given = [None] * len(streams) if groups is None else list(groups)
        for what, values in (("predictions", rows), ("tuples of groups", given)):
            if len(values) != len(streams):
                raise InputError(f"got {len(streams):,} streams and {len(values):,} {what}")
        before = [stream.snapshot() for _, stream in streams]
        try:
            shown = [
                stream.predict(row, id=name, groups=own)
                for (_, stream), row, own in zip(streams, rows, given, strict=True)
            ]
        except BaseException:
            for (_, stream), past in zip(streams, before, strict=True):
                stream.revert(past)
            raise
        if isinstance(name, int):
            self._serial = max(self._serial, name + 1)
        return shown

    def peek(self, prediction: Any, ids: Iterable[Id], *, features: Any = None) -> Any:
        """The sets that `predict` would show; nothing waits for a label, and nothing changes."""
        pairs = zip(self._chosen(ids), _rows_of(prediction, features), strict=True)
        return [stream.peek(row) for (_, stream), row in pairs]

    def update(
        self,
        y: Any,
        ids: Iterable[Id] | None = None,
        *,
        batch: Id | None = None,
        late: bool = False,
        step: int | None = None,
    ) -> Array:
        """Takes in the label of a `step` for each stream that waits, or a row of those of all."""
        if isinstance(y, Mapping):
            if ids is not None:
                raise InputError("labels by id need no ids beside them")
            ids, y = list(y), list(y.values())
        name, labels = self._batch(batch), list(y)
        streams = self._chosen(self.pending[name] if ids is None else ids)
        sets: Any = self._controller.sets
        if len(labels) != len(streams):
            raise InputError(f"got {len(labels):,} labels for {len(streams):,} streams that wait")
        answers = []
        for place, ((id, stream), label) in enumerate(zip(streams, labels, strict=True)):
            if name not in stream.pending:
                raise UnknownReceipt(f"stream {id!r} awaits no label in batch {name!r}")
            heard = sets.heard(stream.receipt(name).heard, label, step)  # refuses bad ones
            if not late or any(heard.values[h] == heard.values[h] for h in heard.new):
                answers.append((place, stream, np.nan if label is None else label))
        losses = np.full((len(self._controller.risks), len(streams)), np.nan)
        for place, stream, label in answers:
            losses[:, place] = stream.update(label, id=name, step=step)  # None is NaN
        return _by_risk(losses)

    def run(self, *_: Any, **__: Any) -> Any:
        """Paths over a tape are run by `setpoint.replay_paths`."""
        raise InputError("a fleet of paths runs no arrays: use setpoint.replay_paths")

    def drop(self, batch: Id | None = None, ids: Iterable[Id] | None = None) -> None:
        """Gives up what still waits in a batch, or what the streams in `ids` await in it."""
        name = self._batch(batch)
        for _, stream in self._chosen(self.pending[name] if ids is None else ids):
            if name in stream.pending:
                stream.drop(name)

    def _batch(self, batch: Id | None) -> Id:
        """The batch that is meant: the only one where none is named."""
        waiting = self.pending
        if batch is None:
            if len(waiting) != 1:
                kind = AmbiguousReceipt if waiting else UnknownReceipt
                raise kind(f"{len(waiting):,} batches wait for labels: say which by batch=…")
            return next(iter(waiting))
        name = checked_id(batch, "the id of a batch")
        if name not in waiting:
            raise UnknownReceipt(f"no batch waits under the id {name!r}; it may be answered")
        return name

    @property
    def pending(self) -> dict[Id, tuple[Id, ...]]:
        """The ids of the streams that await a label, by batch."""
        waiting: dict[Id, list[Id]] = {}
        for id, stream in self._by_id.items():
            for name in stream.pending:
                waiting.setdefault(name, []).append(id)
        return {name: tuple(ids) for name, ids in waiting.items()}

    @property
    def theta(self) -> Array:
        """θ of each stream; one row for each risk if there are several."""
        return self._of_risks(lambda risk: risk.theta)

    @property
    def means(self) -> Array:
        """The mean loss of each stream, NaN without labels; one row for each risk."""
        return self._of_risks(lambda risk: risk.total / risk.judged if risk.judged else np.nan)

    def _of_risks(self, number: Callable[[RiskState], float]) -> Array:
        risks = [map(number, stream.state.risks) for stream in self._by_id.values()]
        return _by_risk(np.array([*map(list, risks)]).T)

    def state(self, id: Id) -> State:
        """The state of one stream, as a `Stream` can go on from."""
        return self._chosen([id])[0][1].state

    def certificate(self, id: Id) -> Certificate:
        """The certificate of one stream."""
        return self._chosen([id])[0][1].certificate()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything the fleet needs to go on to one file, whole or not at all."""
        content = {
            "controller": spec.to_dict(self._controller), "max_pending": self._limit,
            "serial": self._serial, "ids": list(self._by_id),
            "paths": [stream.content() for stream in self._by_id.values()],
        }  # fmt: skip
        _state_file.write(path, "fleet", content)

    def restored(self, content: Mapping[str, Any]) -> "PathFleet":
        """The fleet with the streams that were saved."""
        self._serial = content["serial"]
        for stream, saved in zip(self._by_id.values(), content["paths"], strict=True):
            stream.restore(saved)
        return self

    def __copy__(self) -> "PathFleet":
        return deepcopy(self)


def _rows_of(prediction: Any, features: Any) -> list[Any]:
    """A prediction for each stream."""
    if features is not None:
        raise InputError("a path takes no features")
    if not isinstance(prediction, Mapping):
        return list(prediction)
    columns = zip(*prediction.values(), strict=True)
    return [dict(zip(prediction, values, strict=True)) for values in columns]


def _by_risk(numbers: Array) -> Array:
    return numbers if len(numbers) != 1 else numbers[0]
