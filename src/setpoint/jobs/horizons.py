"""Forecasts of every horizon replayed, with the intervals that would have been shown."""

from math import isfinite
from statistics import NormalDist
from typing import Any

import numpy as np

from setpoint._html import named
from setpoint.bulk.replay import replay
from setpoint.jobs.job import Goal
from setpoint.jobs.run import last_known
from setpoint.metrics.usefulness import rolling_quantile
from setpoint.models.forecast import Mixture
from setpoint.presets import intervals, miss_level
from setpoint.tape import Tape

Array = np.ndarray[Any, Any]

_AT_ONCE = 3_000_000
"""How many forecasts are calibrated at once."""
_FEW = 100
"""Fewer judged forecasts than this say little about coverage."""
_DRAWN = 12
"""How many series are drawn."""


class Replay:
    """Every forecast of the past with the intervals that would have been shown, by horizon."""

    def __init__(
        self, tape: Tape, learnt: Mixture, levels: tuple[float, ...], middle: float, goal: Goal
    ) -> None:
        self.tape, self.learnt, self.levels = tape, learnt, levels
        self.offsets = offsets = tape.segments.offsets
        self.lengths, self.last = np.diff(offsets), last_known(tape)
        self.steps, self.count = len(learnt.point), len(self.lengths)
        self.of = np.repeat(np.arange(self.count), self.lengths)
        self.within = np.arange(len(tape)) - offsets[self.of]
        self.y = np.asarray(tape.by_stream(tape.y))
        known = ~np.isnan(self.y)
        start = np.where(known, self.within, np.iinfo(np.int64).max)
        self.first = np.minimum.reduceat(start, offsets[:-1])
        usual = np.clip(self.last // 10, 50, 1000)
        self.burn = np.minimum(usual, self.last // 2)
        shape = (self.steps, self.count, len(levels))
        # Two forecasts are shown: that of now, and that made so many steps before.
        self.shown = np.full((2, 2, *shape), np.nan)
        self.points = np.full((2, *shape[:2]), np.nan)
        self.numbers: list[dict[str, Any]] = []
        at_once = max(int(_AT_ONCE // max(len(tape), 1)), 1)
        ratios = [NormalDist().inv_cdf((1.0 + level) / 2.0) for level in (middle, *levels)]
        for begin in range(0, self.steps, at_once):
            self._horizons(range(begin, min(begin + at_once, self.steps)), ratios, goal)

    def _horizons(self, steps: range, ratios: list[float], goal: Goal) -> None:
        rows_of = [self._rows(step + 1) for step in steps]
        counts = [len(rows) for rows in rows_of]
        rows, step = np.concatenate(rows_of), np.repeat(np.array(steps), counts)
        point, y = self.learnt.point[step, rows], self.y[rows]
        low = np.minimum(self.learnt.lower[step, rows], point)
        high = np.maximum(self.learnt.upper[step, rows], point)
        stream = step * self.count + self.of[rows]
        ends = np.empty((len(rows), 2, len(self.levels)))
        bounds = []
        for place, (level, ratio) in enumerate(zip(self.levels, ratios[1:], strict=True)):
            share = ratio / ratios[0]
            tape = Tape.from_arrays(
                {"lower": point - share * (point - low), "upper": point + share * (high - point)},
                y, series=stream, delay=step,
            )  # fmt: skip
            support: Any = "learnt" if goal.support is None else goal.support
            trace = replay(intervals(level, support=support), tape)
            ends[:, 0, place], ends[:, 1, place] = trace.lower, trace.upper
            heads = [int(stream[first]) for first in np.cumsum([0, *counts[:-1]])]
            bounds.append([trace.certificate(head).risks[0].bound.since_start for head in heads])
        ends[:, 0] = np.minimum.accumulate(ends[:, 0], axis=-1)
        ends[:, 1] = np.maximum.accumulate(ends[:, 1], axis=-1)
        for which, origin in enumerate((self.last, self.last - self.steps)):
            target = self.offsets[:-1] + origin
            here = rows == target[self.of[rows]] + 1 + step
            self.shown[which, :, step[here], self.of[rows[here]]] = ends[here]
            self.points[which, step[here], self.of[rows[here]]] = point[here]
        base = self._seasonal(rows, step + 1)
        offsets = np.searchsorted(
            stream, np.arange(steps.start * self.count, steps.stop * self.count + 1)
        )
        late = np.repeat(np.array(steps), self.count)
        rolling = np.stack(
            [
                rolling_quantile(y, base, confidence_level=level, delay=late, offsets=offsets)
                for level in self.levels
            ]
        )
        judged = (self.within[rows] >= self.burn[self.of[rows]]) & ~np.isnan(y)
        for number, place in enumerate(np.cumsum([0, *counts[:-1]])):
            part = slice(place, place + counts[number])
            some = judged[part]
            self.numbers.append(
                self._summed(steps[number] + 1, rows[part][some], point[part][some],
                             base[part][some], ends[part][some],
                             rolling[:, :, part][:, :, some],
                             [bound[number] for bound in bounds])
            )  # fmt: skip

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
        self, ahead: int, rows: Array, point: Array, base: Array, ends: Array,
        rolling: Array, bounds: list[float | None],
    ) -> dict[str, Any]:  # fmt: skip
        """The numbers of one horizon."""
        y, of = self.y[rows], self.of[rows]
        off, off_base = np.abs(y - point), np.abs(y - base)
        sums = [np.bincount(of, values, self.count) for values in (off, off_base)]
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = sums[0] / sums[1]
        ratios = ratios[np.isfinite(ratios)]
        levels = []
        for place, level in enumerate(self.levels):
            lower, upper = ends[:, 0, place], ends[:, 1, place]
            inside = (lower <= y) & (y <= upper)
            width = (upper - lower)[np.isfinite(upper - lower)]
            account = np.bincount(of, (1.0 - inside) - miss_level(level), self.count)
            levels.append({
                "asked": level, "share": _mean(inside), "width": _mean(width),
                "winkler": self._score(lower, upper, y, level),
                "winkler_rolling": self._score(rolling[place, 0], rolling[place, 1], y, level),
                "unlimited": _mean(np.isinf(upper - lower)),
                "account": float(account.max(initial=0.0)) if len(of) else None,
                "bound": bounds[place],
            })  # fmt: skip
        return {
            "horizon": ahead, "judged": len(rows), "mae": _mean(off),
            "mae_seasonal": _mean(off_base), "mae_ratio": _mean(ratios),
            "levels": levels,
        }  # fmt: skip

    @staticmethod
    def _score(lower: Array, upper: Array, y: Array, level: float) -> float | None:
        """The mean interval score, over intervals with limits."""
        beyond = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
        score = upper - lower + 2.0 / miss_level(level) * beyond
        return _mean(score[np.isfinite(score)])

    def horizons(self) -> list[dict[str, Any]]:
        """The numbers of each horizon."""
        return self.numbers

    def doubts(self) -> list[str]:
        """What makes the numbers weak: short series, unlimited intervals."""
        notes = []
        least, usual = int(self.last.min()) + 1, self.numbers[-1]["judged"]
        if usual < _FEW * self.count:
            notes.append(
                f"{self.steps} steps ahead the replay could judge {usual:,} forecasts"
                f"{f' of {self.count:,} series' if self.count > 1 else ''}: too few to say much "
                "about coverage; with more rows intervals become narrower and surer"
            )
        widest = self.levels[-1]
        if least < 2.0 / (1.0 - widest):
            notes.append(
                f"the shortest series has {least:,} rows, and intervals at {100 * widest:.6g} % "
                f"need about {round(2.0 / (1.0 - widest)):,}: until then they rest on a guess"
            )
        return notes

    def recent(self) -> list[dict[str, Any]]:
        """To draw: the last actual values of some series, this forecast and the one before."""
        shown = []
        times = None if self.tape.time is None else self.tape.by_stream(self.tape.time)
        for one in range(min(self.count, _DRAWN)):
            last = self.offsets[one] + self.last[one]
            start = max(self.offsets[one], last - max(3 * self.steps, 100))
            stop = min(last + 1 + self.steps, self.offsets[one + 1])
            rows = np.arange(start, stop)
            axis = rows - last if times is None else times[rows]
            name = self.tape.streams[one]
            entry: dict[str, Any] = {
                "series": None if name is None else named(name),
                "x": [plain(when) for when in axis.tolist()],
                "y": [_number(value) for value in self.y[rows]],
            }
            for place_of, (which, made) in enumerate(
                (("now", last), ("before", last - self.steps))
            ):
                fan = {
                    "start": int(made - start) + 1,
                    "point": [*map(_number, self.points[place_of, :, one])],
                }
                ends = self.shown[place_of, :, :, one]
                fan["ends"] = [[[*map(_number, side)] for side in ends[..., place]]
                               for place in range(len(self.levels))]  # fmt: skip
                if made - start >= 0:
                    entry[which] = fan
            shown.append(entry)
        return shown


def _number(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _mean(values: Array) -> float | None:
    return _number(float(np.mean(values))) if len(values) else None


def plain(value: Any) -> Any:
    """A cell as JSON has it."""
    if isinstance(value, float):
        return _number(value)
    return value if value is None or isinstance(value, int | str) else str(value)
