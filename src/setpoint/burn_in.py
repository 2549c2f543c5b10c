"""A burn-in: bounds, start, step size and clip bounds from past predictions and labels."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from setpoint._check import is_missing, positive
from setpoint.controller import Controller, Risk
from setpoint.errors import InputError
from setpoint.losses import declaration
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
    sets = controller.sets
    past, outcomes = list(predictions), list(y)
    if len(past) != len(outcomes):
        raise InputError(f"got {len(past):,} predictions and {len(outcomes):,} labels")
    rows = [
        (sets.read(prediction), sets.label(label))
        for prediction, label in zip(past, outcomes, strict=True)
        if not is_missing(label)
    ]
    if len(rows) < 2:
        raise InputError(f"a burn-in needs at least 2 labelled steps, got {len(rows)}")
    labels = [label for _, label in rows]
    unit = sum(sets.unit(prediction) for prediction, _ in rows) / len(rows) or 1.0
    criticals = sorted(s for s in (sets.critical(*row) for row in rows) if isfinite(s))
    span = (max(labels) - min(labels)) / unit or max(map(abs, criticals), default=0.0) or 1.0

    stretch = controller.stretch
    if isinstance(stretch, ScoreAdaptive | ErrorAdaptive) and stretch.low is None:
        low, high = clip_bounds(
            [float("nan") if is_missing(label) else label for label in outcomes]
        )
        stretch = replace(stretch, low=low / unit, high=high / unit)

    def fill(risk: Risk) -> Risk:
        bounds = risk.bounds
        if bounds is None and sets.bounds() is None:
            bounds = (_theta(-reach * span), _theta(reach * span))
        lam = _calm(sets, risk, rows, criticals)
        start = _theta(lam) if risk.start is None else risk.start
        if risk.start is None and bounds is not None:
            start = min(max(start, bounds[0]), bounds[1])
        step = risk.step
        if step is None:
            move = follow * (_spread(criticals) or span)
            step = Fixed(_theta(lam + move) - _theta(lam))
        return replace(risk, start=start, bounds=bounds, step=step)

    def _theta(lam: float) -> float:
        return stretch.inverse(lam, stretch.init())

    return replace(controller, stretch=stretch, risks=tuple(map(fill, controller.risks)))


def _spread(criticals: Sequence[float]) -> float:
    """The interquartile range."""
    last = len(criticals) - 1
    return criticals[(3 * last) // 4] - criticals[last // 4] if criticals else 0.0


def _calm(
    sets: Any, risk: Risk, rows: Sequence[tuple[Any, Any]], criticals: Sequence[float]
) -> float:
    """The smallest λ that would have kept the mean loss at its level (largest, if it grows)."""
    if not criticals:
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
    loss, memory, values = risk.loss, (), []
    if hasattr(loss, "init"):
        memory = loss.init()
    for prediction, label in rows:
        shown = sets.at(prediction, lam)
        if hasattr(loss, "init"):
            value, memory = loss.update(memory, shown, label)
        else:
            value = loss(shown, label)
        if value is not None:
            values.append(value)
    return sum(values) / len(values) if values else risk.level
