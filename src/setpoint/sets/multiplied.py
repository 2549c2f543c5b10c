"""Sets that another rule made, made longer or shorter by a factor: centre ∓ side·e^λ."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log
from typing import Any

import numpy as np

from setpoint.sets.family import names_of
from setpoint.sets.intervals import Scale, Widen, _Ends, scale_sound

__all__ = ["Multiplied", "multiplied", "multiplied_critical"]

Floats = tuple[float, ...]


def multiplied(reading: Floats, lam: float) -> tuple[float, float]:
    """Ends of [centre − left·e^λ, centre + right·e^λ]."""
    centre, left, right = reading[0], reading[1], reading[2]
    factor = exp(lam if lam < 700.0 else 700.0)
    lower = centre - left * factor if left < inf else -inf
    upper = centre + right * factor if right < inf else inf
    return lower, upper


def multiplied_critical(reading: Floats, y: float) -> float:
    """The λ at which an end reaches y; −inf at the centre, +inf where no λ reaches it."""
    distance = y - reading[0]
    reach = reading[2] if distance > 0.0 else reading[1]
    distance = distance if distance > 0.0 else -distance
    if distance == 0.0:
        return -inf
    if reach <= 0.0:
        return inf
    ratio = distance / reach
    if ratio <= 0.0:
        return -inf
    lam = log(ratio)
    return lam + 1e-15 * (2.0 + abs(lam))  # so that rounding does not leave y outside


@dataclass(frozen=True, slots=True)
class Multiplied(_Ends):
    """Sets that another rule made, made longer or shorter: [centre − low·e^λ, centre + high·e^λ].

    It takes a pair (lower, upper), whose centre is its middle, or `Spread`. With `steps.Account`
    it puts a budget around any other rule; `presets.around` is that.

    Parameters
    ----------
    support
        As for `Widen`.

    Examples
    --------
    >>> Multiplied().at(Multiplied().read((10.0, 14.0)), 0.0)
    Interval(10.0, 14.0)
    """

    columns = ("centre", "low", "high")
    ends = staticmethod(multiplied)
    score = staticmethod(multiplied_critical)
    sound = staticmethod(scale_sound)
    forms = (("lower", "upper"), columns)

    def read(self, prediction: Any) -> Floats:
        """The prediction as its centre and its two sides."""
        three = isinstance(prediction, Sequence | np.ndarray) and np.shape(prediction) == (3,)
        if three or names_of(prediction) == set(_SPREAD.columns):
            return _SPREAD.read(prediction)
        lower, upper = _ENDS.read(prediction)
        half = 0.5 * abs(upper - lower)
        return _SPREAD.read((0.5 * (lower + upper), half, half))

    def arranged(self, names: tuple[str, ...], columns: Sequence[Any]) -> tuple[Any, ...]:
        """Arrays in one of the forms as `columns` names them."""
        if names == self.columns:
            return tuple(columns)
        lower, upper = columns
        half = 0.5 * np.abs(upper - lower)
        return 0.5 * (lower + upper), half, half


_ENDS, _SPREAD = Widen(), Scale()
