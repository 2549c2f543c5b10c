"""What models hand over: plain tuples with names.

A family reads any sequence of the right length, so `(lower, upper)` does as well as
`Quantiles(lower, upper)`; the names are for people.
"""

from typing import NamedTuple

__all__ = ["Quantiles", "Spread"]


class Quantiles(NamedTuple):
    """A lower and an upper quantile of y, for `setpoint.sets.Widen`.

    The ends may cross and may be infinite; they may not be NaN.

    >>> Quantiles(10.0, 14.0)
    Quantiles(lower=10.0, upper=14.0)
    """

    lower: float
    upper: float


class Spread(NamedTuple):
    """A centre with its uncertainty below and above, for `setpoint.sets.Scale`.

    The uncertainties are finite and not negative.

    >>> Spread(12.0, low=1.5, high=2.0)
    Spread(centre=12.0, low=1.5, high=2.0)
    """

    centre: float
    low: float
    high: float
