"""Several levels, whole paths and overlapping groups, beside what the literature does.

Three tables: nineteen quantiles of one number, the band and the totals of the next 24 hours, and
every hour and weekday held at once. Streams are those of `comparison.streams` and forecasts of the
same public data 24 hours ahead.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import setpoint as sp
from comparison import RESULTS, keep
from comparison.streams import Series, hourly, made
from setpoint.correction import paths as path_rules
from setpoint_paper.pages import table
from setpoint_paper.work import each

__all__ = ["levels"]

Floats = NDArray[np.float64]
TAUS = tuple(round(0.05 * place, 2) for place in range(1, 20))
HOURS, DAYS = 24, 360
_ALL, _TWO, _ALONE = "all guarded", "0.05 and 0.95 guarded", "the same, steps learn alone"
_DAILY, _DAY = "one path a day", "a day late"
_ROWS, _FIRST = 2_500, 200
"""Rows of a stream that are played with nineteen quantiles, and those that are not judged."""


def levels(*, jobs: int = 1, out: str | os.PathLike[str] = RESULTS) -> str:
    """Plays all three, prints the tables and stores them.

    Parameters
    ----------
    jobs
        How many processes.
    out
        The folder for `levels.md`.
    """
    parts, asked = list[str](), list[Asked]()
    given = [one for one in made() if one.split == "val"]
    real = [one for one in given if one.kind != "synthetic"]
    late = [replace(one, delay=5) for one in real if not one.delay]
    for title, some in _by_delay([*given, *late]):
        found = each(of_levels, [(_cut(one),) for one in some], jobs, "levels")
        parts += [f"## Nineteen quantiles, {title}, {len(some)} streams", _levels_page(found)]
        asked += _levels_asked(found, title)
    forecasts = list(hourly(HOURS))
    for title, every in ((_DAILY, HOURS), ("a path at every hour", 1)):
        found = each(of_paths, [(one, every) for one in forecasts], jobs, "paths")
        parts += [f"## Paths of {HOURS} hours, {title}, {len(forecasts)} streams"]
        parts += [_paths_page(found), _totals_page(found)]
        asked += _paths_asked(found, title)
    for title, some in _by_delay([*real, *late]):
        found = each(of_groups, [(one,) for one in some], jobs, "groups")
        parts += [f"## Hours and weekdays at once, {title}, {len(some)} streams"]
        parts += [_groups_page(found)]
        asked += _groups_asked(found, title)
    head = [
        "# Levels, paths and groups", "    python -m comparison levels", "## What was asked",
        "Where labels are a day late nothing was asked; the tables below have it.",
        _asked_page(asked),
    ]  # fmt: skip
    return keep("\n\n".join([*head, *parts]) + "\n", out, "levels.md")


def _by_delay(some: list[Series]) -> Iterator[tuple[str, list[Series]]]:
    for title, least, most in (
        ("in time", 0, 0),
        ("5 rows late", 1, 12),
        (_DAY, 13, 10**9),
    ):
        chosen = [one for one in some if least <= one.delay <= most]
        if chosen:
            yield title, chosen


class Asked(NamedTuple):
    """A number that was asked for, between two limits, and what was measured."""

    what: str
    least: float
    most: float
    value: float


def _asked_page(asked: list[Asked]) -> str:
    rows = []
    for what, least, most, value in asked:
        limits = f"at most {most:g}" if least == 0.0 else f"{least:g} to {most:g}"
        rows.append([what, limits, f"{value:.3f}", "yes" if least <= value <= most else "no"])
    return table(["", "asked", "measured", "met"], rows)


def _mean(ratios: Any) -> float:
    """The geometric mean."""
    return float(np.exp(np.log(ratios).mean()))


def _cut(one: Series) -> Series:
    return replace(one, lower=one.lower[:_ROWS], upper=one.upper[:_ROWS], y=one.y[:_ROWS])


def _tape(one: Series, **more: Any) -> sp.Tape:
    return sp.Tape.from_arrays({"lower": one.lower, "upper": one.upper}, one.y, **more)


# Levels


def of_levels(one: Series) -> dict[str, tuple[float, float, float]]:
    """Of every way the mean pinball loss, calibration in points, and the share of rows that cross.

    Pinball losses are in units of the first way, streams of their own.
    """
    ways: dict[str, Callable[[Series], Floats]] = {
        "a stream for each": _separate,
        _ALL: partial(_fan, guarded=None),
        _TWO: partial(_fan, guarded=(0.05, 0.95)),
        "MultiQT, best of 3 η": _best_multi,
        "DtACI for each end": _dtaci,
        "rolling 500": _rolling,
    }
    found = {name: _judged(one, way(one)) for name, way in ways.items()}
    unit = found["a stream for each"][0]
    return {name: (loss / unit, off, cross) for name, (loss, off, cross) in found.items()}


def _judged(one: Series, ends: Floats) -> tuple[float, float, float]:
    y, shown, taus = one.y[_FIRST:, None], ends[_FIRST:], np.array(TAUS)
    seen = np.isfinite(shown).all(axis=1)
    y, shown = y[seen], shown[seen]
    over = shown - y
    loss = np.where(over >= 0.0, (1.0 - taus) * over, -taus * over).mean()
    off = 100.0 * np.abs((y <= shown).mean(axis=0) - taus).mean()
    return float(loss), float(off), 100.0 * float((np.diff(shown, axis=1) < 0.0).any(axis=1).mean())


def _separate(one: Series) -> Floats:
    ends = [sp.replay(sp.quantiles([tau]), _tape(one, delay=one.delay)) for tau in TAUS]
    return np.column_stack([next(iter(trace.ends.values())) for trace in ends])


def _fan(one: Series, guarded: tuple[float, ...] | None) -> Floats:
    trace = sp.replay(sp.quantiles(TAUS, guarded=guarded), _tape(one, delay=one.delay))
    return np.column_stack([*trace.ends.values()])


def _best_multi(one: Series) -> Floats:
    """Of three step sizes the one with the least pinball loss in hindsight."""
    runs = [_multi(one, share) for share in (0.01, 0.03, 0.1)]
    return min(runs, key=lambda ends: _judged(one, ends)[0])


def _multi(one: Series, share: float) -> Floats:
    """MultiQT: hidden quantiles by gradient steps at what was played, their isotonic projection."""
    rest, taus = one.y - one.point, np.array(TAUS)
    eta = share * float(np.ptp(np.quantile(rest[:_FIRST], (0.05, 0.95))))
    hidden, played = np.zeros(len(taus)), np.empty((len(rest), len(taus)))
    for row in range(len(rest)):
        if (known := row - one.delay - 1) >= 0:
            hidden += eta * (taus - (rest[known] <= played[known]))
        played[row] = isotonic(hidden)
    return played + one.point[:, None]


def isotonic(values: Floats) -> Floats:
    """The nearest values that rise: pools of neighbours that do not.

    >>> isotonic(np.array([1.0, 3.0, 2.0, 4.0])).tolist()
    [1.0, 2.5, 2.5, 4.0]
    """
    pools: list[list[float]] = []
    for value in values.tolist():
        pools.append([value, 1.0])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (b, m), (a, n) = pools.pop(), pools.pop()
            pools.append([(a * n + b * m) / (n + m), n + m])
    return np.concatenate([np.full(int(count), value) for value, count in pools])


def _dtaci(one: Series) -> Floats:
    """DtACI for each end, as a bound of its own."""
    rest = (one.y - one.point)[:_FIRST]
    step, ends = sp.published.DtACI(float(np.ptp(rest))), []
    for tau in TAUS:
        upper = tau >= 0.5
        family, side = (sp.sets.Upper(), "upper") if upper else (sp.sets.Lower(), "lower")
        risk = sp.Risk(sp.losses.Miscoverage(), min(tau, round(1.0 - tau, 2)), step)
        tape = sp.Tape.from_arrays({side: one.point}, one.y, delay=one.delay)
        trace = sp.replay(sp.Controller(family, risk), tape)
        ends.append(trace.upper if upper else trace.lower)
    return np.column_stack(ends)


def _rolling(one: Series) -> Floats:
    """The quantiles of the last 500 known errors."""
    rest, ends = one.y - one.point, np.full((len(one.y), len(TAUS)), np.nan)
    for row in range(_FIRST, len(rest)):
        known = rest[max(row - one.delay - 500, 0) : row - one.delay]
        ends[row] = one.point[row] + np.quantile(known, TAUS)
    return ends


def _levels_page(found: list[dict[str, tuple[float, float, float]]]) -> str:
    rows = []
    for name in found[0]:
        loss, off, cross = np.array([one[name] for one in found]).T
        rows.append([name, f"{_mean(loss):.3f}", f"{off.mean():.2f}", f"{cross.mean():.1f}"])
    return table(["", "pinball loss", "calibration, points", "rows that cross, %"], rows)


def _levels_asked(found: list[dict[str, tuple[float, float, float]]], title: str) -> list[Asked]:
    """A day late nothing is asked of pinball losses; rows cross nowhere."""
    losses = {way: _mean([one[way][0] for one in found]) for way in (_TWO, _ALL)}
    crossed = max(one[way][2] for one in found for way in (_TWO, _ALL))
    limits = () if title == _DAY else ((_TWO, 1.0), (_ALL, 1.01))
    return [
        *(Asked(f"quantiles {title}, {w}: pinball loss", 0.0, k, losses[w]) for w, k in limits),
        Asked(f"quantiles {title}: rows that cross, %", 0.0, 0.0, crossed),
    ]


# Paths


def of_paths(one: Any, every: int) -> dict[str, tuple[float, ...]]:
    """Of every way coverage and mean width of paths; of totals Winkler beside a plain stream."""
    _, point, y = one
    count = DAYS if every > 1 else 3_000
    rows = np.arange(0, len(point), every)[:count]
    point, y = point[rows], y[rows]
    first = 50 if every > 1 else 200
    own = _whole(point, y, every)
    with _alone():
        alone = _whole(point, y, every)
    bands = {
        "paths": (own.lower, own.upper),
        _ALONE: (alone.lower, alone.upper),
        "each step at 90 %": _stepwise(point, y, every, 0.9),
        "each step, Bonferroni": _stepwise(point, y, every, 1.0 - 0.1 / HOURS),
        "split max-score": _scored(point, y, every, first, _split),
        "adaptive max-score (CAFHT-like)": _scored(point, y, every, first, _adaptive),
        "linear tracker": _scored(point, y, every, first, _linear),
    }
    found: dict[str, tuple[float, ...]] = {}
    for way, (lower, upper) in bands.items():
        low, high, came = lower[first:], upper[first:], y[first:]
        inside = ((low <= came) & (came <= high)).all(axis=1)
        width = (high - low).mean(axis=1)
        found[way] = float(inside.mean()), float(width[np.isfinite(width)].mean())
    for place, steps in enumerate((6, HOURS)):
        total, came = point[:, :steps].sum(axis=1), y[:, :steps].sum(axis=1)
        tape = sp.Tape.from_arrays({"point": total}, came, delay=-(-steps // every) - 1)
        plain = sp.replay(sp.intervals(), tape)
        ends = own.numbers[0][place], own.numbers[1][place]
        found[f"total of {steps}"] = (
            _winkler(*ends, came, first) / _winkler(plain.lower, plain.upper, came, first),
        )
    return found


def _whole(point: Floats, y: Floats, every: int) -> Any:
    steps = np.tile(np.arange(1, HOURS + 1), len(point))
    tape = sp.Tape.from_arrays({"point": point.ravel()}, y.ravel(), horizon=steps)
    return sp.replay_paths(sp.paths(HOURS, totals=[6, HOURS], every=every), tape)


@contextmanager
def _alone() -> Iterator[None]:
    """Paths whose steps share nothing: the rule that sharing is measured against."""
    usual = path_rules._made

    def made_alone(part: Any, sets: Any) -> Any:
        return usual(part, sets)._replace(shares=False, season=0)

    path_rules._made = made_alone  # type: ignore[assignment]
    try:
        yield
    finally:
        path_rules._made = usual


def _stepwise(point: Floats, y: Floats, every: int, coverage: float) -> tuple[Floats, Floats]:
    """An interval for each step by itself."""
    delay = -(-np.arange(1, HOURS + 1) // every) - 1
    step = np.tile(np.arange(HOURS), len(point))
    tape = sp.Tape.from_arrays({"point": point.ravel()}, y.ravel(), series=step, delay=delay[step])
    trace = sp.replay(sp.intervals(coverage), tape)
    return trace.lower.reshape(point.shape), trace.upper.reshape(point.shape)


def _scored(
    point: Floats, y: Floats, every: int, first: int, rule: Callable[[Floats, int, int], Floats]
) -> tuple[Floats, Floats]:
    """Bands point ± q·size, where one number q for each path is set by the scores of others."""
    errors = np.abs(y - point)
    size = np.array([errors[: max(t - HOURS // every, 1)].mean(axis=0) for t in range(len(y))])
    scores = (errors / (size + 1e-9)).max(axis=1)
    half = rule(scores, HOURS // every, first)[:, None] * size
    return point - half, point + half


def _split(scores: Floats, _late: int, first: int) -> Floats:
    """The quantile of the scores of the first paths, for ever."""
    return np.full(len(scores), float(np.quantile(scores[1:first], 0.9)))


def _adaptive(scores: Floats, late: int, _first: int) -> Floats:
    """The quantile of the last 100 known scores, at a level that ACI moves by 0.01."""
    level, shown = 0.1, np.full(len(scores), np.inf)
    for t in range(len(scores)):
        known = scores[max(t - late - 100, 1) : max(t - late + 1, 1)]
        if len(known) >= 10:
            full = level <= 0.0
            shown[t] = np.inf if full else np.quantile(known, min(max(1.0 - level, 0.0), 1.0))
        if (told := t - late) >= 0:
            level += 0.01 * (0.1 - (scores[told] > shown[told]))
    return shown


def _linear(scores: Floats, late: int, first: int) -> Floats:
    """A threshold that rises at every miss and falls at every hit."""
    eta = 0.1 * float(np.ptp(np.quantile(scores[1:first], (0.05, 0.95))))
    q, shown = float(np.quantile(scores[1:first], 0.9)), np.empty(len(scores))
    for t in range(len(scores)):
        shown[t] = q
        if (told := t - late) >= 0:
            q += eta * ((scores[told] > shown[told]) - 0.1)
    return shown


def _winkler(lower: Floats, upper: Floats, y: Floats, first: int) -> float:
    beyond = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    score = (upper - lower + 20.0 * beyond)[first:]
    return float(score[np.isfinite(score)].mean())


def _paths_page(found: list[dict[str, tuple[float, ...]]]) -> str:
    rows = []
    for name in [name for name, values in found[0].items() if len(values) == 2]:
        share = 100.0 * np.array([one[name][0] for one in found])
        width = [one[name][1] / one[_ALONE][1] for one in found]
        rows.append([name, f"{share.mean():.1f}", f"{share.min():.1f} to {share.max():.1f}",
                     f"{_mean(width):.3f}"])  # fmt: skip
    return table(["", "paths inside, %", "by stream", "width"], rows)


def _paths_asked(found: list[dict[str, tuple[float, ...]]], title: str) -> list[Asked]:
    inside = 100.0 * np.array([one["paths"][0] for one in found])
    asked = [
        Asked(f"{title}: paths inside on average, %", 89.0, 91.0, inside.mean()),
        Asked(f"{title}: on the stream with the fewest, %", 88.0, 92.0, inside.min()),
        Asked(f"{title}: on the stream with the most, %", 88.0, 92.0, inside.max()),
    ]
    if title == _DAILY:
        width = _mean([one["paths"][1] / one[_ALONE][1] for one in found])
        asked.append(Asked(f"{title}: width beside steps that learn alone", 0.0, 0.97, width))
    for name in (name for name, values in found[0].items() if len(values) == 1):
        score = _mean([one[name][0] for one in found])
        asked.append(Asked(f"{title}: {name}, Winkler beside a plain stream", 0.0, 0.97, score))
    return asked


def _totals_page(found: list[dict[str, tuple[float, ...]]]) -> str:
    rows = []
    for name in [name for name, values in found[0].items() if len(values) == 1]:
        ratios = np.array([one[name][0] for one in found])
        rows.append([name, f"{_mean(ratios):.3f}", f"{ratios.max():.3f}"])
    return table(["", "Winkler beside a plain stream", "of the worst stream"], rows)


# Groups


def of_groups(one: Series) -> dict[str, tuple[float, ...]]:
    """Of every way width, Winkler, and by group the mean deviation and the largest shortfall."""
    row = np.arange(len(one.y))
    hour = row % one.period * HOURS // one.period
    groups = {"hour": hour, "day": row // one.period % 7}
    plain, tape = sp.intervals(), _tape(one, delay=one.delay)
    held = sp.replay(plain, replace_extras(tape, groups), groups=tuple(groups))
    apart = sp.replay(plain, _tape(one, delay=one.delay // HOURS, series=hour))
    alone = sp.replay(plain, tape)
    ways = {
        "without groups": (alone.lower, alone.upper),
        "groups": (held.lower, held.upper),
        "a stream for each hour": (apart.lower, apart.upper),
        "linear tracker": _tracked(one, groups),
    }
    found = {name: _by_group(one, ends, groups) for name, ends in ways.items()}
    unit = found["without groups"]
    return {name: (own[0] / unit[0], own[1] / unit[1], *own[2:]) for name, own in found.items()}


def replace_extras(tape: sp.Tape, columns: dict[str, Any]) -> sp.Tape:
    """A tape that carries columns along."""
    return tape.with_extras({name: np.asarray(values) for name, values in columns.items()})


def _by_group(
    one: Series, ends: tuple[Floats, Floats], groups: dict[str, Any]
) -> tuple[float, ...]:
    lower, upper = (np.asarray(end)[_FIRST:] for end in ends)
    y, seen = one.y[_FIRST:], np.isfinite(np.asarray(ends[1]) - np.asarray(ends[0]))[_FIRST:]
    inside, shares = (lower <= y) & (y <= upper), []
    for codes in groups.values():
        own = codes[_FIRST:]
        shares += [inside[own == code].mean() for code in np.unique(own)]
    off = 100.0 * (np.array(shares) - 0.9)
    width = float((upper - lower)[seen].mean())
    score = _winkler(*ends, one.y, _FIRST)
    return width, score, float(np.abs(off).mean()), float(-off.min())


def _tracked(one: Series, groups: dict[str, Any]) -> tuple[Floats, Floats]:
    """A radius that is a sum over the groups of a row, each moved by what it missed."""
    rest = np.abs(one.y - one.point)
    eta = 0.05 * float(np.quantile(rest[:_FIRST], 0.9))
    base = float(np.quantile(rest[:_FIRST], 0.9))
    weights = {name: np.zeros(int(codes.max()) + 1) for name, codes in groups.items()}
    shown = np.empty(len(rest))
    for row in range(len(rest)):
        shown[row] = max(base + sum(w[groups[name][row]] for name, w in weights.items()), 0.0)
        if (told := row - one.delay) >= 0:
            move = eta * ((rest[told] > shown[told]) - 0.1)
            for name, own in weights.items():
                own[groups[name][told]] += move
    return one.point - shown, one.point + shown


def _groups_page(found: list[dict[str, tuple[float, ...]]]) -> str:
    rows = []
    for name in found[0]:
        width, score, off, short = np.array([one[name] for one in found]).T
        means = [f"{_mean(part):.3f}" for part in (width, score)]
        rows.append([name, *means, f"{off.mean():.2f}", f"{short.mean():.1f}"])
    head = ["", "width", "Winkler", "mean deviation, points", "largest shortfall, points"]
    return table(head, rows)


def _groups_asked(found: list[dict[str, tuple[float, ...]]], title: str) -> list[Asked]:
    if title == _DAY:
        return []
    width, _, _, short = np.array([one["groups"] for one in found]).T
    return [
        Asked(f"groups {title}: largest shortfall, points", 0.0, 5.0, float(short.mean())),
        Asked(f"groups {title}: width", 0.0, 1.04, _mean(width)),
    ]
