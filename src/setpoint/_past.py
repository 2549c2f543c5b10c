"""What past rows choose: all that a controller leaves open, and a season."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf, nan, sqrt
from sys import float_info
from typing import Any

import numpy as np

from setpoint._check import is_missing, number, one_by_one, positive, whole
from setpoint.controller import Controller, Risk
from setpoint.errors import InputError
from setpoint.losses import Calms, Keeps, declaration, turns
from setpoint.plan import staged
from setpoint.sets.family import Draws, Measured, Remembers, Shares, member_of
from setpoint.sets.frames import host
from setpoint.steps import Fixed
from setpoint.steps.claims import Accounts
from setpoint.stretches import ErrorAdaptive, ScoreAdaptive, clip_bounds

_SEASONS = (4, 5, 7, 12, 24, 48, 52, 96, 144, 168, 288, 336, 365, 672, 1008, 1440, 2016)
"""Periods that calendars have: of quarters, weeks, days and hours, in rows of any of them."""

_LOOKED_AT = 200_000
"""So many of the last values tell a season."""


def find_period(values: Iterable[float], candidates: Iterable[int] = _SEASONS) -> int:
    """The season of past errors or labels in rows, for `intervals(period=…)`; 0 if they have none.

    A season makes values a period apart more alike than values half a period nearer and half a
    period farther. A trend and a random walk do not. A period needs four of them in the values,
    which may have NaN where one is missing; of a period and its multiples the shortest counts that
    does nearly as well. Of more than 200,000 values the last ones are looked at.

    >>> import numpy as np
    >>> hours = np.arange(24 * 20)
    >>> noise = np.random.default_rng(0).normal(size=hours.size)
    >>> find_period(np.sin(2 * np.pi * hours / 24) + 0.5 * noise), find_period(noise)
    (24, 0)
    """
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fiu":
        values = [number(value, "a value") for value in values]
    past = np.asarray(values, np.float64)[-_LOOKED_AT:]
    if np.isinf(past).any():
        raise InputError("values for a period must be finite or NaN, got an infinite one")
    listed = sorted({whole(period, "a candidate", 2) for period in candidates})
    strengths = {
        period: strength
        for period in listed
        if 4 * period <= len(past)
        and (strength := _seasonality(past, period)) > sqrt(period / len(past))
    }
    if not strengths:
        return 0
    best = max(strengths, key=lambda period: strengths[period])
    near = 0.85 * strengths[best]
    return min(p for p, strength in strengths.items() if best % p == 0 and strength >= near)


def _seasonality(past: np.ndarray[Any, Any], period: int) -> float:
    """How much nearer values a period apart are than those half a period nearer and farther."""

    def apart(rows: int) -> float:
        gaps = np.abs(past[rows:] - past[:-rows])
        return float(np.mean(gaps[gaps == gaps])) if (gaps == gaps).any() else nan

    around = 0.5 * (apart(period // 2) + apart(period + period // 2))
    return 1.0 - apart(period) / around if around > 0.0 else 0.0


def burn_in(
    controller: Controller,
    predictions: Iterable[Any],
    y: Iterable[Any],
    *,
    reach: float = 100.0,
    follow: float = 0.05,
) -> Controller:
    """Returns the controller with its unset options chosen from the past.

    What a risk or a stretch states is kept. The data should be older than what the stream will
    see; NaN labels are left out.

    Parameters
    ----------
    controller
        Its risks may lack `step`, `start` and `bounds`, its stretch `low` and `high`.
    predictions, y
        One prediction and one label for each past step, in order of time. Predictions may be the
        rows of a data frame, or columns, such as a pair (lower, upper) of arrays.
    reach
        The bounds of θ correspond to sets widened by `reach` times the range of y; the paper
        suggests 100.
    follow
        The step size moves λ by this share of the interquartile range of the critical values,
        for one unit of loss.

    Examples
    --------
    >>> import setpoint as sp
    >>> controller = sp.Controller(sp.sets.Widen(), sp.Risk(sp.losses.Miscoverage(), level=0.25))
    >>> ready = sp.burn_in(controller, [(0.0, 0.0)] * 5, [1.0, -2.0, 3.0, -4.0, 5.0])
    >>> ready.risks[0].bounds, ready.risks[0].start, round(ready.risks[0].step.gamma, 6)
    ((-900.0, 900.0), 4.0, 0.1)

    References
    ----------
    Feldman et al. 2023, appendices C.3.1, C.3.2 and C.4, on the bounds m and M, the initial θ and
    the clip bounds.
    """
    reach, follow = positive(reach, "reach"), positive(follow, "follow")
    labels = list(y)
    forecasts = one_by_one(predictions, len(labels))
    if len(forecasts) != len(labels):
        raise InputError(f"got {len(forecasts):,} predictions and {len(labels):,} labels")
    sets = controller.sets
    rows = _rows(controller, forecasts, labels)
    if len(rows) < 2:
        raise InputError(f"a burn-in needs at least 2 labelled steps, got {len(rows)}")
    unit = sum(sets.unit(prediction) for prediction, _ in rows) / len(rows) or 1.0
    stretch = controller.stretch
    if isinstance(stretch, ScoreAdaptive | ErrorAdaptive) and stretch.low is None:
        low, high = _clip_bounds(sets, labels, rows)
        stretch = replace(stretch, low=low / unit, high=high / unit)

    def fill(risk: Risk, family: Any, past: list[tuple[Any, Any]]) -> Risk:
        if isinstance(risk.step, Accounts):  # it needs neither bounds nor a step size
            return risk
        criticals = sorted(_criticals(family, past, risk))
        span = max(map(abs, criticals), default=0.0) or 1.0
        if sets.bounds() is None:
            span = _range(family, [label for _, label in past]) / unit or span
        bounds = risk.bounds
        if bounds is None and sets.bounds() is None:
            bounds = (_theta(-reach * span), _theta(reach * span))
        if turns(risk.loss, risk.level):
            most = inf if risk.bounds is None else _lam(risk.bounds[1])
            least, lam = _turning(family, risk, past, most)
            if risk.bounds is None:
                low = _theta(family.bounds()[0]) if bounds is None else bounds[0]
                bounds = low, _theta(least)
        else:
            lam = _calm(family, risk, past, criticals)
        start = _theta(lam) if risk.start is None else risk.start
        if risk.start is None and bounds is not None:
            start = min(max(start, bounds[0]), bounds[1])
        step = risk.step
        if step is None:
            # Critical values that differ by rounding alone tell no step size.
            spread = _spread(criticals)
            move = follow * (spread if spread > 1e-9 * span else span)
            step = Fixed(_theta(lam + move) - _theta(lam))
        return replace(risk, start=start, bounds=bounds, step=step)

    def _theta(lam: float) -> float:
        return stretch.inverse(lam, stretch.init())

    def _lam(theta: float) -> float:
        return float(stretch.phi(stretch.params, stretch.init(), theta))

    judged = zip(controller.owners, controller.risks, strict=True)
    filled = [fill(risk, member_of(sets, member), rows) for member, risk in judged]
    return replace(controller, stretch=stretch, risks=tuple(filled))


def _rows(
    controller: Controller, past: Sequence[Any], outcomes: Sequence[Any]
) -> list[tuple[Any, Any]]:
    """Every labelled step as the family reads it, corrected where there is a correction."""
    sets: Any = controller.sets
    rows, draws = [], isinstance(sets, Draws) and sets.draws
    reader, begun = controller.reader, controller.init()
    stage = controller.correction
    steps = None if stage is None else staged(controller, stage)
    for serial, (prediction, label) in enumerate(zip(past, outcomes, strict=True)):
        if is_missing(label):
            continue
        reading, y = reader.read(prediction), sets.label(label)
        if draws:
            reading = sets.draw(reading, serial)
        if steps is not None:
            begun.memory, reading = steps.based(begun, reading, 0.0)
            steps.taught(begun, reading, y)
            reading = reading[steps.begins : steps.ends]
        rows.append((reading, y))
    return rows


def _clip_bounds(
    sets: Any, outcomes: Sequence[Any], rows: Sequence[tuple[Any, Any]]
) -> tuple[float, float]:
    """± the mean change of y, or of the critical values if λ is in units of those."""
    if sets.bounds() is not None:
        return clip_bounds(_criticals(sets, rows))
    if not isinstance(sets, Measured):
        return clip_bounds([nan if is_missing(label) else label for label in outcomes])
    gaps = [sets.change(before, after) for (_, before), (_, after) in pairwise(rows)]
    gaps = [gap for gap in gaps if gap == gap]
    if not gaps:
        raise InputError("clip bounds need two consecutive frames of one size, got none")
    mean = sum(gaps) / len(gaps)
    return -mean, mean


def _range(sets: Any, labels: Sequence[Any]) -> float:
    """How far apart the least and the greatest y are."""
    if not isinstance(sets, Measured):
        return float(max(labels) - min(labels))
    ends = [ends for label in labels if (ends := sets.extent(label)) is not None]
    return max(high for _, high in ends) - min(low for low, _ in ends) if ends else 0.0


def _criticals(sets: Any, rows: Sequence[tuple[Any, Any]], risk: Risk | None = None) -> list[float]:
    """The finite critical values, row by row as a family that remembers would find them.

    Where y has many and a risk is a share of them, the one that keeps the risk at its level.
    """
    remembers, loss = isinstance(sets, Remembers), None if risk is None else risk.loss
    shares = isinstance(sets, Shares) and isinstance(loss, Calms)
    family = sets.bind() if remembers else sets
    criticals = []
    for row in rows:
        if shares and risk is not None:
            criticals.append(risk.loss.critical(family.criticals(*row), risk.level))
        else:
            criticals.append(family.critical(*row))
        if remembers:
            family.observe(family.weigh(*row))
    # At the ends of the floats only the full set, or any set, contains y.
    return [critical for critical in criticals if abs(critical) < float_info.max]


def _spread(criticals: Sequence[float]) -> float:
    """The interquartile range."""
    last = len(criticals) - 1
    return criticals[(3 * last) // 4] - criticals[last // 4] if criticals else 0.0


def _calm(
    sets: Any, risk: Risk, rows: Sequence[tuple[Any, Any]], criticals: Sequence[float]
) -> float:
    """The smallest λ that would have kept the mean loss at its level (largest, if it grows)."""
    if not criticals or isinstance(sets, Remembers):  # with a window λ is a share: the level itself
        return float(sets.start(risk.level))
    grows = declaration(risk.loss).grows

    def beyond(lam: float) -> bool:
        return (_mean_loss(sets, risk, rows, lam) <= risk.level) is not grows

    place = bisect_left(criticals, True, key=beyond)
    return criticals[min(max(place - grows, 0), len(criticals) - 1)]


def _turning(
    sets: Any, risk: Risk, rows: Sequence[tuple[Any, Any]], most: float
) -> tuple[float, float]:
    """The λ at which the mean loss was least, and the smallest that kept it at its level."""
    if isinstance(sets, Remembers):
        raise InputError(
            f"where {risk.name} is least under a window of scores depends on the window: give "
            "bounds=(m, M)"
        )
    found = _every_critical(sets, rows)
    _, full = sets.bounds() or (-inf, inf)
    found = found[(abs(found) < float_info.max) & (found <= most) & (found < full)]
    if not len(found):
        raise InputError(f"no past row tells where {risk.name} is least: give more of them")
    lams = np.unique(np.quantile(found, np.linspace(0.0, 1.0, 101), method="lower")).tolist()
    means = [_mean_loss(sets, risk, rows, lam) for lam in lams]
    place = int(np.argmin(means))
    if means[place] > risk.level:
        raise InputError(
            f"the level of {risk.name} is out of reach: on the past rows it is {means[place]:.4g} "
            f"or more, and the level must not be below that, got {risk.level:g}"
        )
    first = next(lam for lam, mean in zip(lams, means, strict=True) if mean <= risk.level)
    return lams[place], first


def _every_critical(sets: Any, rows: Sequence[tuple[Any, Any]]) -> np.ndarray[Any, Any]:
    """The critical values of all rows; of each part of y, where it has several."""
    if not isinstance(sets, Shares):
        return np.array(_criticals(sets, rows))
    parts = (np.ravel(host(sets.criticals(*row))).astype(np.float64) for row in rows)
    known = (np.sort(part[part == part]) for part in parts)
    return np.concatenate([part[:: len(part) // 1000 + 1] for part in known])  # a frame has many


def _mean_loss(sets: Any, risk: Risk, rows: Sequence[tuple[Any, Any]], lam: float) -> float:
    """The mean loss over the rows at a fixed λ."""
    loss, values = risk.loss, []
    keeps = isinstance(loss, Keeps)
    memory = loss.init() if keeps else ()
    for prediction, label in rows:
        shown = sets.at(prediction, lam)
        if keeps:
            value, memory = loss.update(memory, shown, label)
        else:
            value = loss(shown, label)
        if value is not None:
            values.append(value)
    return sum(values) / len(values) if values else risk.level
