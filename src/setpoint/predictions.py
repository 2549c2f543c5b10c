"""The prediction types that models return: named tuples.

A family reads any sequence of the right length, so `(lower, upper)` does as well as
`Quantiles(lower, upper)`; the names are for people.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["PixelSpread", "Probabilities", "QuantileGrid", "Quantiles", "Spread"]


class Quantiles(NamedTuple):
    """A lower and an upper quantile of y, for `setpoint.sets.Widen`.

    The ends may cross and may be infinite, not NaN. `correction.Intervals` and the commands sort
    crossed ends, `sets.Widen` leaves them as they are, as the paper does.

    >>> Quantiles(10.0, 14.0)
    Quantiles(lower=10.0, upper=14.0)
    """

    lower: float
    upper: float


class Spread(NamedTuple):
    """A centre with its uncertainty below and above, for `sets.Scale` and `correction.Intervals`.

    The uncertainties are finite and not negative.

    >>> Spread(12.0, low=1.5, high=2.0)
    Spread(centre=12.0, low=1.5, high=2.0)
    """

    centre: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """A prediction and what is known of its row, for `correction.Intervals`.

    `phase` is the place of the row in time, a whole number of steps, needed where rows can be
    missing. `features` are by name, or in the order in which the controller names them.

    >>> Row((10.0, 14.0), phase=23)
    Row(prediction=(10.0, 14.0), phase=23, features=None)
    """

    prediction: Any
    phase: float | None = None
    features: Any = None


class PixelSpread(NamedTuple):
    """A centre and its uncertainty below and above for each pixel, for `setpoint.sets.PixelScale`.

    Numpy arrays or torch tensors of one shape. `valid` is a boolean mask of the pixels that can be
    used; without it all can, and where it is False the others may hold anything.

    >>> PixelSpread([[12.0, 9.0]], low=[[1.5, 1.0]], high=[[2.0, 1.0]]).valid is None
    True
    """

    centre: Any
    low: Any
    high: Any
    valid: Any = None


class Probabilities(NamedTuple):
    """A probability for each class, for `setpoint.sets.Threshold` and `setpoint.sets.Cumulative`.

    A plain sequence, its labels being the numbers from 0, or a mapping of labels to probabilities
    does as well. `u` in [0, 1] is the chance of a randomised family, which else draws one.

    >>> Probabilities([0.9, 0.1], classes=("no", "yes")).classes
    ('no', 'yes')
    """

    p: Sequence[float]
    classes: Sequence[Any] | None = None
    u: float | None = None


class QuantileGrid(NamedTuple):
    """Quantiles of y at several levels, for `setpoint.sets.QuantileScale`.

    >>> QuantileGrid((0.05, 0.5, 0.95), (10.0, 12.0, 15.0)).values
    (10.0, 12.0, 15.0)
    """

    levels: Sequence[float]
    values: Sequence[float]
