"""A burn-in: bounds, start, step size and clip bounds from past predictions and labels."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from sys import float_info
from typing import Any

from setpoint._check import is_missing, positive
from setpoint.controller import Controller, Risk
from setpoint.errors import InputError
from setpoint.losses import Calms, Keeps, declaration
from setpoint.sets import Draws, Measured, Remembers, Shares, Sides
from setpoint.steps import Fixed
from setpoint.stretches import ErrorAdaptive, ScoreAdaptive, clip_bounds

__all__ = ["burn_in"]


def burn_in(
    controller: Controller,
    predictions: Iterable[Any],
    y: Iterable[Any],
    *,
    reach: float = 100.0,
    follow: float = 0.05,
) -> Controller:
    """The controller with everything it leaves open chosen from past predictions and labels.

    What a risk or a stretch states is kept. The data should be older than what the stream will
    see; NaN labels are left out.

    Parameters
    ----------
    controller
        Its risks may lack `step`, `start` and `bounds`, its stretch `low` and `high`.
    predictions, y
        One prediction and one label for each past step, in order of time.
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
    Feldman et al. 2023, appendix C, on the bounds m and M, the initial θ and the clip bounds.
    """
    reach, follow = positive(reach, "reach"), positive(follow, "follow")
    past, outcomes = list(predictions), list(y)
    if len(past) != len(outcomes):
        raise InputError(f"got {len(past):,} predictions and {len(outcomes):,} labels")
    sets = controller.sets
    rows = _rows(sets, past, outcomes)
    if len(rows) < 2:
        raise InputError(f"a burn-in needs at least 2 labelled steps, got {len(rows)}")
    unit = sum(sets.unit(prediction) for prediction, _ in rows) / len(rows) or 1.0
    stretch = controller.stretch
    if isinstance(stretch, ScoreAdaptive | ErrorAdaptive) and stretch.low is None:
        low, high = _clip_bounds(sets, outcomes, rows)
        stretch = replace(stretch, low=low / unit, high=high / unit)

    def fill(risk: Risk, family: Any, part_rows: list[tuple[Any, Any]]) -> Risk:
        criticals = sorted(_criticals(family, part_rows, risk))
        span = max(map(abs, criticals), default=0.0) or 1.0
        if sets.bounds() is None:
            span = _range(family, [label for _, label in part_rows]) / unit or span
        bounds = risk.bounds
        if bounds is None and sets.bounds() is None:
            bounds = (_theta(-reach * span), _theta(reach * span))
        lam = _calm(family, risk, part_rows, criticals)
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

    filled = [fill(risk, *_side(sets, i, rows)) for i, risk in enumerate(controller.risks)]
    return replace(controller, stretch=stretch, risks=tuple(filled))


def _rows(sets: Any, past: Sequence[Any], outcomes: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Every labelled step as the family reads it."""
    rows, draws = [], isinstance(sets, Draws) and sets.draws
    for serial, (prediction, label) in enumerate(zip(past, outcomes, strict=True)):
        if not is_missing(label):
            reading = sets.read(prediction)
            rows.append((sets.draw(reading, serial) if draws else reading, sets.label(label)))
    return rows


def _side(sets: Any, index: int, rows: list[tuple[Any, Any]]) -> tuple[Any, list[tuple[Any, Any]]]:
    """The family and the rows that one risk is judged on."""
    if not isinstance(sets, Sides):
        return sets, rows
    return sets.side(index), [(sets.part(prediction, index), label) for prediction, label in rows]


def _clip_bounds(
    sets: Any, outcomes: Sequence[Any], rows: Sequence[tuple[Any, Any]]
) -> tuple[float, float]:
    """± the mean change of y, or of the critical values if λ is in units of those."""
    if sets.bounds() is not None:
        return clip_bounds(_criticals(sets, rows))
    if not isinstance(sets, Measured):
        nan = float("nan")
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
    low, high = 0, len(criticals)
    while low < high:
        middle = (low + high) // 2
        if (_mean_loss(sets, risk, rows, criticals[middle]) <= risk.level) is grows:
            low = middle + 1
        else:
            high = middle
    index = low - 1 if grows else low
    return criticals[min(max(index, 0), len(criticals) - 1)]


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
