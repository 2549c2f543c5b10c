"""The numbers printed by the paper's authors, to lay ours beside.

Pinball losses are exact means over 20 seeds, with the γ that was least on the rows they are told
of; everything else is the median of a box plot, read off it to about 1 % of its axis. All are for
the authors' own code: batch 256, their forms of the adaptive stretchings and of calibration with
cal, calibration from row 8001 (that with cal from 5001), θ in standard deviations of the first 8000
labels, and wind power of another zone than the stand-in's.
"""

from math import nan
from typing import NamedTuple

from setpoint_paper.rows import listed

COLUMNS = ("none", "exponential", "score", "error", "cal")
"""The methods the numbers below are in the order of."""


class Printed(NamedTuple):
    """One method on one data set; NaN where nothing was printed."""

    pinball: float
    gamma: float
    msl: float
    mc: float
    scaled_length: float
    coverage_under_mc: float


PRINTED: dict[str, dict[str, Printed]] = {}
"""By data set and method."""

COVERAGE = "89.90 to 90.01"
"""Under control of coverage, in %, the same of every method on every data set."""

_READ = {"msl": 0.005, "mc": 0.0005, "scaled_length": 0.002, "coverage": 0.0003}
"""How far off a median can be that is read off a figure: about 1 % of its axis."""

CURVES: dict[str, dict[str, dict[float, float]]] = {}
"""The pinball loss of the rows judged, by γ."""

for _told in listed("tabular/printed.csv"):
    _of, _by, *_numbers = _told.values()
    PRINTED.setdefault(_of, {})[_by] = Printed(*map(float, _numbers))
for _told in listed("tabular/printed-by-gamma.csv"):
    _of, _by = _told.pop("dataset"), _told.pop("method")
    CURVES.setdefault(_of, {})[_by] = {float(gamma): float(loss) for gamma, loss in _told.items()}


def printed(dataset: str, method: str) -> Printed:
    """What was printed of a method on a data set; NaN throughout if nothing was.

    >>> printed("energy", "error").pinball
    6.626
    """
    nothing = Printed(nan, nan, nan, nan, nan, nan)
    return PRINTED.get(dataset, {}).get(method.removesuffix("_coded"), nothing)


def printed_metric(dataset: str, method: str, metric: str, risk: str = "coverage") -> float:
    """What was printed of a metric under control of a risk; NaN if nothing was.

    >>> printed_metric("wind", "none", "msl"), printed_metric("wind", "none", "coverage", "mc")
    (1.178, 0.9035)
    """
    found = printed(dataset, method)
    if risk == "coverage":
        return float(getattr(found, metric, nan))
    return found.coverage_under_mc if (metric, risk) == ("coverage", "mc") else nan


def printed_reading(
    dataset: str, method: str, metric: str, risk: str = "coverage", by: str | None = None
) -> tuple[float, float]:
    """What was printed of a metric, and how far off it can be; NaN if nothing was.

    Where γ is chosen by the smallest or the largest tried, it is off the printed curve.

    >>> printed_reading("power", "none", "pinball", by="largest")
    (88.19, 0.0)
    >>> printed_reading("power", "none", "msl")
    (1.256, 0.005)
    """
    if by in ("smallest", "largest") and (metric, risk) == ("pinball", "coverage"):
        curve = CURVES.get(dataset, {}).get(method, {nan: nan})
        return curve[min(curve) if by == "smallest" else max(curve)], 0.0
    if by not in (None, "test"):
        return nan, 0.0
    if (metric, risk) == ("coverage", "coverage"):
        low, high = (float(end) / 100.0 for end in COVERAGE.split(" to "))
        return (low + high) / 2.0, (high - low) / 2.0
    return printed_metric(dataset, method, metric, risk), _READ.get(metric, 0.0)
