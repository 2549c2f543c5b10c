"""What the adapters share: their default controllers, and what passes between model and family."""

from dataclasses import dataclass
from math import inf
from statistics import NormalDist
from typing import Any

from setpoint import losses, sets, steps
from setpoint._check import confidence
from setpoint.controller import Controller, Risk
from setpoint.errors import InputError
from setpoint.models.residual import Residuals
from setpoint.predictions import Quantiles, Spread
from setpoint.stream import Stream

__all__ = [
    "Handover",
    "checked_level",
    "handover",
    "interval_controller",
    "judged",
    "label_count",
    "set_controller",
]

_LARGEST = 20.0
"""Mean absolute residuals beyond which an interval counts as the whole line.

Small, because the guarantee's constant is proportional to it; large against what a λ ever needs,
because the scale itself follows the residuals.
"""


def checked_level(confidence_level: float) -> float:
    """The risk's level, 1 − confidence_level, as people write it: 0.1, not 0.09999999999999998."""
    level = confidence(confidence_level)
    rounded = round(1.0 - level, 12)
    return rounded if 0.0 < rounded < 1.0 else 1.0 - level


def interval_controller(confidence_level: float, unit: float | None = None) -> Controller:
    """Intervals in units of a tracked scale, held at a coverage.

    The first λ is `unit`, or the one that is right for normal residuals measured by their mean
    absolute value.
    """
    level = checked_level(confidence_level)
    normal = NormalDist()
    mean_absolute = 2.0 * normal.pdf(0.0)
    start = normal.inv_cdf(1.0 - level / 2.0) / mean_absolute if unit is None else unit
    risk = Risk(
        losses.Miscoverage(),
        level=level,
        step=steps.Fixed(0.1),
        start=min(start, _LARGEST),
        bounds=(0.0, _LARGEST),
    )
    return Controller(sets.Scale(), risk)


def set_controller(confidence_level: float) -> Controller:
    """Label sets by a threshold on the probabilities, held at a coverage."""
    risk = Risk(losses.Miscoverage(), level=checked_level(confidence_level), step=steps.Fixed(0.05))
    return Controller(sets.Threshold(), risk)


_SPREAD = ("centre", "low", "high")
_PAIR = ("lower", "upper")
_ENDS = (("lower",), ("upper",))


@dataclass(frozen=True, slots=True)
class Handover:
    """What a family of intervals takes of a model of points, and how its sets are told by ends.

    `columns` are the numbers it reads, `support` is its full set, `count` how many sets it shows
    within each other, None if it shows a single one.
    """

    columns: tuple[str, ...]
    support: tuple[float, float]
    count: int | None

    def prediction(self, point: float, ends: tuple[float, ...], residuals: Residuals) -> Any:
        """What the family reads, of a point and perhaps two quantiles; None while it has no scale.

        Quantile forecasts may cross: a side of a spread is never narrower than the residuals allow.
        """
        if self.columns == _PAIR:
            return Quantiles(*(ends or (point, point)))
        if self.columns in _ENDS:
            return (ends or (point, point))[_ENDS.index(self.columns)]
        if not ends:
            return residuals.spread(point) if residuals.count else None
        least = residuals.floor * residuals.scales[0] if residuals.count else 0.0
        return Spread(point, max(point - ends[0], least), max(ends[1] - point, least))

    def ends(self, shown: Any) -> tuple[Any, Any]:
        """The lower and the upper end; of nested sets all lower and all upper ends."""
        if self.count is None:
            return shown.lower, shown.upper
        return tuple([part.lower for part in shown]), tuple([part.upper for part in shown])

    @property
    def everything(self) -> tuple[Any, Any]:
        """The ends of the full set, as `ends` tells them."""
        low, high = self.support
        return (low, high) if self.count is None else ((low,) * self.count, (high,) * self.count)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the ends of one set, or of all nested ones."""
        return (2,) if self.count is None else (2, self.count)


def handover(controller: Controller) -> Handover:
    """What passes between a model of points and a controller's family of intervals."""
    family, count = _inner(controller)
    columns = family.columns if isinstance(family, sets.Columns) else None
    if columns not in (_SPREAD, _PAIR, *_ENDS):
        raise InputError(
            "an IntervalRegressor needs a family that reads a spread (sets.Scale), two quantiles "
            "or a point (sets.Widen, sets.TwoSided) or one end (sets.Lower, sets.Upper), alone or "
            f"in sets.Nested or sets.ScoreWindow, got {controller.sets!r}"
        )
    support = family.support if isinstance(family, sets.Supports) else (-inf, inf)
    return Handover(columns, support, count)


def _inner(controller: Controller) -> tuple[Any, int | None]:
    """The family of nested sets and their number, or the family itself and None."""
    family = controller.sets
    return (family.sets, family.count) if isinstance(family, sets.Nested) else (family, None)


def label_count(controller: Controller) -> int | None:
    """How many label sets within each other a controller shows, None if a single one."""
    family, count = _inner(controller)
    scores = family.scores if isinstance(family, sets.ScoreWindow) else family
    shows = scores.shows if isinstance(scores, sets.Shows) else None
    if shows is not sets.LabelSet or isinstance(scores, sets.Multilabel):
        raise InputError(
            "a SetClassifier needs a family of label sets for one label (sets.Threshold, "
            "sets.Cumulative, or one of your own with shows = LabelSet), alone or in sets.Nested "
            f"or sets.ScoreWindow, got {controller.sets!r}"
        )
    return count


def judged(stream: Stream, prediction: Any, y: Any) -> Any:
    """The set shown for a prediction whose label is known: no receipt of it is left, come what may.

    Others may wait in the stream meanwhile.
    """
    stream.controller.sets.label(y)  # what is refused here has opened nothing
    receipt = stream.issue(prediction)
    try:
        stream.update(y, id=receipt.id)
    except BaseException:
        if receipt.id in stream.pending:
            stream.drop(receipt.id)
        raise
    return receipt.shown
