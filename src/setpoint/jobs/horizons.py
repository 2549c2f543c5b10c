"""Forecasts of every horizon replayed, with the intervals that would have been shown."""

from itertools import pairwise
from math import isfinite
from statistics import NormalDist
from typing import Any

import numpy as np

from setpoint._html import named
from setpoint.bulk.paths import replay_paths
from setpoint.bulk.replay import replay
from setpoint.jobs.ahead import last_known
from setpoint.metrics.usefulness import rolling_quantile
from setpoint.models.forecast import Mixture
from setpoint.presets import intervals, miss_level, paths
from setpoint.tape import Tape

Array = np.ndarray[Any, Any]

_AT_ONCE = 3_000_000
"""How many forecasts are calibrated at once."""
_FEW = 100
"""Fewer judged forecasts than this say little about coverage."""
_DRAWN = 12
"""How many series are drawn."""
_PATHS, _STEPS_OF_PATHS = 100, 20_000
"""Fewer paths one after the other teach too little: then they overlap, up to so many steps."""
_SIDES = {"lower": 0, "upper": 1}


class Replay:
    """Every forecast of the past with the intervals that would have been shown, by horizon."""

    def __init__(
        self, tape: Tape, learnt: Mixture, levels: tuple[float, ...], middle: float,
        support: tuple[float, float] | None,
    ) -> None:  # fmt: skip
        self.tape, self.learnt, self.levels, self.support = tape, learnt, levels, support
        self.offsets = offsets = tape.segments.offsets
        self.lengths, self.last = np.diff(offsets), last_known(tape)
        self.steps, self.count = len(learnt.point), len(self.lengths)
        self.of = np.repeat(np.arange(self.count), self.lengths)
        self.within = np.arange(len(tape)) - offsets[self.of]
        self.y = np.asarray(tape.by_stream(tape.y))
        start = np.where(np.isnan(self.y), np.iinfo(np.int64).max, self.within)
        self.first = np.minimum.reduceat(start, offsets[:-1])
        self.burn = np.minimum(np.clip(self.last // 10, 50, 1000), self.last // 2)
        shape = (self.steps, self.count, len(levels))
        # Two forecasts are shown: that of now, and that made so many steps before.
        self.shown = np.full((2, 2, *shape), np.nan)
        self.points = np.full((2, *shape[:2]), np.nan)
        self.past: dict[str, Array] = {}
        self.numbers: list[dict[str, Any]] = []
        self.band: Array | None = None
        self.paths_judged = _FEW
        # Whether a path from here lies in the intervals of all its steps, by level.
        self.all_inside = np.ones((len(levels), len(tape)), dtype=bool)
        ratios = [NormalDist().inv_cdf((1.0 + level) / 2.0) for level in (middle, *levels)]
        self.shares = [ratio / ratios[0] for ratio in ratios[1:]]
        at_once = max(int(_AT_ONCE // max(len(tape), 1)), 1)
        for begin in range(0, self.steps, at_once):
            self._horizons(range(begin, min(begin + at_once, self.steps)))

    def _ends(self, step: Array, rows: Array, share: float) -> dict[str, Array]:
        """What the models say of rows, at the level that has this share of their widths."""
        point = self.learnt.point[step, rows]
        low = np.minimum(self.learnt.lower[step, rows], point)
        high = np.maximum(self.learnt.upper[step, rows], point)
        return {"lower": point - share * (point - low), "upper": point + share * (high - point)}

    def _horizons(self, steps: range) -> None:
        rows_of = [self._rows(step + 1) for step in steps]
        counts = [len(rows) for rows in rows_of]
        rows, step = np.concatenate(rows_of), np.repeat(np.array(steps), counts)
        point, y = self.learnt.point[step, rows], self.y[rows]
        stream = step * self.count + self.of[rows]
        begins = np.cumsum([0, *counts])
        ends = np.empty((len(rows), 2, len(self.levels)))
        bounds = []
        support: Any = "learnt" if self.support is None else self.support
        for place, (level, share) in enumerate(zip(self.levels, self.shares, strict=True)):
            tape = Tape.from_arrays(self._ends(step, rows, share), y, series=stream, delay=step)
            trace = replay(intervals(level, support=support), tape)
            ends[:, 0, place], ends[:, 1, place] = trace.lower, trace.upper
            heads = stream[begins[:-1]].tolist()
            bounds.append([trace.certificate(head).risks[0].bound.since_start for head in heads])
        ends[:, 0] = np.minimum.accumulate(ends[:, 0], axis=-1)
        ends[:, 1] = np.maximum.accumulate(ends[:, 1], axis=-1)
        least, most = ends[:, :, 0].T  # the point that is shown lies in all of its intervals
        point = np.where(least <= most, np.clip(point, least, most), point)
        outside = (ends[:, 0] > y[:, None]) | (ends[:, 1] < y[:, None])
        for place, missed in enumerate(outside.T):
            self.all_inside[place, (rows - step - 1)[missed]] = False
        for which, origin in enumerate((self.last, self.last - self.steps)):
            here = self.within[rows] == origin[self.of[rows]] + 1 + step
            self.shown[which, :, step[here], self.of[rows[here]]] = ends[here]
            self.points[which, step[here], self.of[rows[here]]] = point[here]
        base = self._seasonal(rows, step + 1)
        edges = np.arange(steps.start * self.count, steps.stop * self.count + 1)
        offsets, late = np.searchsorted(stream, edges), np.repeat(np.array(steps), self.count)
        rolling = np.stack([
            rolling_quantile(y, base, coverage=level, delay=late, offsets=offsets)
            for level in self.levels
        ], axis=-1)  # fmt: skip
        judged = (self.within[rows] >= self.burn[self.of[rows]]) & ~np.isnan(y)
        for number, (begin, stop) in enumerate(pairwise(begins)):
            ahead, part = steps[number] + 1, slice(begin, stop)
            if ahead in (1, self.steps):
                self._keep(ahead, rows[part], point[part], ends[part])
            some = np.arange(begin, stop)[judged[part]]
            of_rows = rows[some], np.abs(y - point)[some], np.abs(y - base)[some], ends[some]
            before = np.moveaxis(rolling, 1, 0)[some]
            self.numbers.append(self._summed(ahead, *of_rows, before, [b[number] for b in bounds]))

    def _keep(self, ahead: int, rows: Array, point: Array, ends: Array) -> None:
        """What was shown of each row of the file so far ahead, in columns."""
        shown = {f"point_h{ahead}": point} | {
            f"{end}_{100 * level:.6g}_h{ahead}": ends[:, side, place]
            for place, level in enumerate(self.levels)
            for end, side in _SIDES.items()
        }
        where = np.asarray(self.tape.by_stream(self.tape.places))[rows]
        for name, values in shown.items():
            self.past[name] = np.full(len(self.tape), np.nan)
            self.past[name][where] = values

    def _rows(self, ahead: int) -> Array:
        """The rows that are forecast so far ahead, from at least one actual value."""
        origin = self.within - ahead
        return np.flatnonzero((origin >= self.first[self.of]) & (origin <= self.last[self.of]))

    def _seasonal(self, rows: Array, ahead: Array) -> Array:
        """The actual value one season before, or the last one, where it is known."""
        periods = np.array(self.learnt.periods)[self.of[rows]]
        season = np.maximum(periods, 1) * -(-ahead // np.maximum(periods, 1))
        season = np.where((periods > 0) & (self.within[rows] >= season), season, ahead)
        filled = np.maximum.accumulate(np.where(np.isnan(self.y), -1, np.arange(len(self.y))))
        return np.asarray(self.y[np.maximum(filled[np.maximum(rows - season, 0)], 0)])

    def _summed(
        self, ahead: int, rows: Array, off: Array, off_base: Array, ends: Array, rolling: Array,
        bounds: list[float | None],
    ) -> dict[str, Any]:  # fmt: skip
        """The numbers of one horizon."""
        y, levels = self.y[rows], []
        for place, level in enumerate(self.levels):
            lower, upper = ends[:, 0, place], ends[:, 1, place]
            inside, width = (lower <= y) & (y <= upper), upper - lower
            account = np.bincount(self.of[rows], (1.0 - inside) - miss_level(level), self.count)
            levels.append({
                "asked": level, "share": _mean(inside), "width": _mean(width[np.isfinite(width)]),
                "winkler": _score(lower, upper, y, level),
                "winkler_rolling": _score(rolling[:, 0, place], rolling[:, 1, place], y, level),
                "unlimited": _mean(np.isinf(width)),
                "account": float(account.max(initial=0.0)) if len(rows) else None,
                "bound": bounds[place],
            })  # fmt: skip
        return {
            "horizon": ahead, "judged": len(rows), "mae": _mean(off),
            "mae_seasonal": _mean(off_base), "levels": levels,
        }  # fmt: skip

    def paths(self, *, band: bool, totals: tuple[int, ...]) -> tuple[dict[str, Any], list[Any]]:
        """Bands and totals of the future rows, as columns by step and series; and their past."""
        if not (band or totals):
            return {}, []
        steps, ahead = self.steps, np.arange(self.steps)
        count = int((self.last - self.first + 1).sum())
        every = steps
        if count < _PATHS * steps:
            every = min(max(count * steps // _STEPS_OF_PATHS, 1), steps)
        starts = [
            offset + np.arange(last, first - 1, -every)[::-1]
            for offset, first, last in zip(self.offsets, self.first, self.last, strict=False)
        ]
        origins = np.concatenate(starts)
        rows = origins[:, None] + 1 + ahead
        series = np.repeat(self.of[origins], steps) if self.count > 1 else None
        newest = np.cumsum([*map(len, starts)]) - 1
        ready = self.within[origins] >= self.burn[self.of[origins]]
        columns = {f"total_{n}": self._at_step(n, self.points[0, :n].sum(axis=0)) for n in totals}
        numbers: list[dict[str, Any]] = []
        narrower: dict[str, tuple[Array, Array]] = {}
        for place, level in enumerate(self.levels):
            if level <= 0.5:
                continue
            given = self._ends(ahead, rows, self.shares[place])
            tape = Tape.from_arrays(
                {name: end.ravel() for name, end in given.items()}, self.y[rows].ravel(),
                horizon=np.tile(ahead + 1, len(rows)), series=series,
            )  # fmt: skip
            made = paths(steps, level, totals=totals, every=every, support=self.support)
            trace = replay_paths(made, tape)
            sets = [(trace.lower, trace.upper)] if band else []
            sets += zip(*(end[:, :, None] for end in trace.numbers), strict=True)
            shown = list(enumerate(trace.names))[not band :]
            for (number, name), (low, high) in zip(shown, sets, strict=True):
                within = narrower.get(name, (low, high))
                lower, upper = np.minimum(low, within[0]), np.maximum(high, within[1])
                narrower[name] = lower, upper
                for end, side in (("lower", lower), ("upper", upper)):
                    column = side[newest].T
                    if number > 0:
                        column = self._at_step(totals[number - 1], column[0])
                    columns[f"{name.replace(' of ', '_')}_{end}_{100 * level:.6g}"] = column
                judged = ready & ~np.isnan(trace.losses[number])
                widths = (upper - lower).mean(axis=1)[judged]
                known = trace.y if number == 0 else trace.actual[number - 1][:, None]
                missed = np.any((known < lower) | (known > upper), axis=1)
                numbers.append({
                    "set": name, "asked": level, "judged": len(widths),
                    "share": _mean(~missed[judged]),
                    "width": _number(float(np.median(widths))) if len(widths) else None,
                    "apart": None if number else _mean(self.all_inside[place, origins[judged]]),
                })  # fmt: skip
                if number == 0:
                    self.band = np.array([lower[newest].T, upper[newest].T])
                self.paths_judged = min(self.paths_judged, len(widths))
        return columns, numbers

    def _at_step(self, step: int, values: Array) -> Array:
        """A column that has a value for each series in one step, and none in the others."""
        column = np.full((self.steps, self.count), np.nan)
        column[step - 1] = values
        return column

    def doubts(self) -> list[str]:
        """What makes the numbers weak: a forecast that is no better, short series."""
        notes, levels = [], self.levels
        worse = [
            str(one["horizon"])
            for one in self.numbers
            if (one["mae"] or 0.0) > (one["mae_seasonal"] or 0.0)
        ]
        if worse:
            some = ", ".join(worse[:_DRAWN]) + (", …" if len(worse) > _DRAWN else "")
            unit = "step" if worse == ["1"] else "steps"
            notes.append(
                f"{some} {unit} ahead the seasonal naive forecast was off by less than the forecast"
            )
        few = "too few to say much about coverage"
        if self.paths_judged < _FEW:
            notes.append(
                f"the replay could judge {self.paths_judged:,} whole paths of {self.steps} steps: "
                f"{few} of paths and totals; with more rows they become narrower"
            )
        least, usual = int(self.last.min()) + 1, self.numbers[-1]["judged"]
        if usual < _FEW * self.count:
            of = f" of {self.count:,} series" if self.count > 1 else ""
            notes.append(
                f"{self.steps} steps ahead the replay could judge {usual:,} forecasts{of}: {few}; "
                "with more rows intervals become narrower and surer"
            )
        needed = 2.0 / (1.0 - levels[-1])
        if least < needed:
            notes.append(
                f"the shortest series has {least:,} rows, and intervals at {100 * levels[-1]:.6g} "
                f"% need about {round(needed):,}: until then they rest on a guess"
            )
        return notes

    def recent(self) -> list[dict[str, Any]]:
        """To draw: the last actual values of some series, this forecast and the one before."""
        shown = []
        times = None if self.tape.time is None else self.tape.by_stream(self.tape.time)
        for one in range(min(self.count, _DRAWN)):
            last = self.offsets[one] + self.last[one]
            start = max(self.offsets[one], last - max(3 * self.steps, 100))
            rows = np.arange(start, min(last + 1 + self.steps, self.offsets[one + 1]))
            axis = rows - last if times is None else times[rows]
            name = self.tape.streams[one]
            entry: dict[str, Any] = {
                "series": None if name is None else named(name),
                "x": [plain(when) for when in axis.tolist()],
                "y": _listed(self.y[rows]),
            }
            for which, (fan, made) in enumerate((("now", last), ("before", last - self.steps))):
                if made >= start:
                    entry[fan] = {
                        "start": int(made - start) + 1,
                        "point": _listed(self.points[which, :, one]),
                        "ends": _listed(np.moveaxis(self.shown[which, :, :, one], -1, 0)),
                    }
            if self.band is not None:
                entry["now"]["path"] = _listed(self.band[:, :, one])
            shown.append(entry)
        return shown


def _score(lower: Array, upper: Array, y: Array, level: float) -> float | None:
    """The mean interval score, over intervals with limits."""
    beyond = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    score = upper - lower + 2.0 / miss_level(level) * beyond
    return _mean(score[np.isfinite(score)])


def _number(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _listed(values: Array) -> list[Any]:
    """Numbers as lists within each other, None where there is none."""
    return [_listed(part) for part in values] if values.ndim > 1 else [*map(_number, values)]


def _mean(values: Array) -> float | None:
    return _number(float(np.mean(values))) if len(values) else None


def plain(value: Any) -> Any:
    """A cell as JSON has it."""
    if isinstance(value, float):
        return _number(value)
    return value if value is None or isinstance(value, int | str) else str(value)
