"""Paths over a tape of several horizons: every origin with its band, its totals and its labels.

Such a tape has a row for each step of each path, and its horizon says which step a row is. The
rows of the k-th path of a series are the k-th of each of its horizons.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from math import inf, nan
from operator import itemgetter
from typing import Any

import numpy as np

from setpoint._check import whole
from setpoint._html import table
from setpoint.bulk.replay import shown_to
from setpoint.bulk.states import Begin, Start, listed
from setpoint.controller import Controller
from setpoint.correction.paths import Paths as Correction
from setpoint.errors import InputError, SetpointError
from setpoint.guarantee import Certificate, certify
from setpoint.plan import plan
from setpoint.sets import Paths
from setpoint.sets.fan import code
from setpoint.sets.paths import Functional
from setpoint.state import State
from setpoint.tape import Tape

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class PathTrace:
    """The finished record of paths on a tape, one row for each path.

    Parameters
    ----------
    controller, tape
        What ran on what.
    rows
        The row of the tape that has each step of each path.
    series
        The series of each path, None where there is only one.
    ends
        The lower and the upper ends of each set, level after level: those of a band have a column
        for each step, those of a total, maximum or minimum a number for each path.
    lam
        λ of the band and of each number, level after level: +inf is the unlimited set.
    losses
        1 where a set was missed, 0 where not, NaN where too little is known to say.
    states
        The state each series ended in.
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
        sets: Any = self.controller.sets
        return tuple(sets.titles)

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
        """What is guaranteed of one series; it may be left out if there is only one."""
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
        were made. If it says when labels became known, by `known` or by delays of its own, that
        counts; else the label of step h is known h steps after its path was made.
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
    starts = _starts(controller, names, state)
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


def _starts(controller: Controller, names: list[Hashable], state: Start) -> dict[Hashable, State]:
    """The state in which each series begins."""
    return dict(zip(names, Begin(controller, names, state), strict=True))
