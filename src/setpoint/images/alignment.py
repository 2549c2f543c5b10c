"""Scale and shift: an estimate up to an unknown unit, put into metres by a few known pixels.

Also which pixels count: those with a depth, the others being NaN.
"""

from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, NamedTuple, Protocol

import numpy as np

from setpoint._check import finite, number, whole
from setpoint.errors import InputError
from setpoint.sets.frames import host, image, like, space

__all__ = ["Fit", "Line", "Ratio", "Rescale", "fit", "known_pixels", "only", "valid_depth"]


class Fit(NamedTuple):
    """A scale and a shift: `Fit(2.0, 1.0)(estimate)` is 2·estimate + 1.

    >>> Fit(2.0, 1.0)(3.0)
    7.0
    """

    scale: float
    shift: float

    def __call__(self, estimate: Any) -> Any:
        return self.scale * estimate + self.shift


def fit(estimate: Any, truth: Any, least: int = 2) -> Fit:
    """The scale and shift that bring an estimate nearest to the truth, by least squares.

    Pixels count where both are finite, whatever their value: an invalid pixel must be NaN, so
    that a raw depth map, in which 0 says that there is none, goes through
    `images.only(depth, images.valid_depth(depth))` first.

    The scale is never negative: where the slope is not above 0, or there are fewer than `least`
    pixels or two different values to tell one, it is the ratio of the means without a shift; where
    that is not above 0 either, the estimate is only shifted. With no pixel at all the estimate
    stays as it is.

    Examples
    --------
    >>> truth = np.array([[5.0, 7.0], [np.nan, 9.0]])
    >>> fit(np.array([[2.0, 3.0], [8.0, 4.0]]), truth)
    Fit(scale=2.0, shift=1.0)
    >>> fit(np.array([[14.0, 10.0], [8.0, 4.0]]), truth)  # falling: the ratio of the means
    Fit(scale=0.75, shift=0.0)

    References
    ----------
    Feldman et al. 2023, appendix C: scale and shift, whose symbols it exchanges.
    """
    x, y = _pairs(estimate, truth)
    if not len(x):
        return Fit(1.0, 0.0)
    least = whole(least, "least", 1)
    middle, level = float(x.mean()), float(y.mean())
    apart = x - middle
    spread = float((apart * apart).sum())
    slope = float((apart * (y - level)).sum()) / spread if spread > 0.0 else 0.0
    if len(x) >= least and slope > 0.0 and isfinite(slope):
        return Fit(slope, level - slope * middle)
    ratio = level / middle if middle else 0.0
    return Fit(ratio, 0.0) if ratio > 0.0 and isfinite(ratio) else Fit(1.0, level - middle)


def _pairs(estimate: Any, truth: Any) -> tuple[Any, Any]:
    """The values of two images where both are finite, in float64."""
    estimate, truth = image(estimate, "the estimate"), image(truth, "the truth")
    if tuple(estimate.shape) != tuple(truth.shape):
        raise InputError(
            f"the truth must have the shape of the estimate, {tuple(estimate.shape)}, got "
            f"{tuple(truth.shape)}"
        )
    xp, truth = space(estimate), like(truth, estimate)
    both = xp.isfinite(estimate) & xp.isfinite(truth)
    x, y = estimate[both], truth[both]
    return (x.astype(np.float64), y.astype(np.float64)) if xp is np else (x.double(), y.double())


def known_pixels(truth: Any, count: int = 200, rng: Any = None) -> Any:
    """The truth at some pixels chosen evenly among the valid ones, NaN at all others.

    Pixels are drawn without putting back; where fewer are valid, all of them are known.

    Parameters
    ----------
    truth
        The image of true values, a numpy array or a torch tensor. Invalid pixels must be NaN: a 0
        is taken for a true 0, so that a raw depth map, in which it says that there is none, goes
        through `images.only(depth, images.valid_depth(depth))` first.
    count
        How many pixels are known, 200 in the paper.
    rng
        A numpy generator or a seed.

    Examples
    --------
    >>> truth = np.arange(12.0).reshape(3, 4)
    >>> known_pixels(truth, 2, rng=0)
    array([[nan, nan, nan, nan],
           [nan, nan, nan,  7.],
           [nan,  9., nan, nan]])
    """
    truth, count = image(truth, "the truth"), whole(count, "count", 0)
    valid = np.flatnonzero(np.isfinite(host(truth)))
    if len(valid) > count:
        valid = np.sort(np.random.default_rng(rng).choice(valid, count, replace=False))
    xp = space(truth)
    # In rows whatever the order of the truth in memory: what is written to must be no copy.
    if xp is np:
        known = np.full(truth.shape, np.nan, dtype=truth.dtype)
        known.reshape(-1)[valid] = truth.reshape(-1)[valid]
    else:
        known = xp.full_like(truth, float("nan"), memory_format=xp.contiguous_format)
        places = xp.as_tensor(valid, device=truth.device)
        known.view(-1)[places] = truth.reshape(-1)[places]
    return known


class Rescale(Protocol):
    """What brings one side of a heuristic to the residuals of the frame it is used for."""

    def __call__(self, side: Any, residual: Any) -> Fit:
        """The scale and shift of a side, from its values and the parts of the residuals on that
        side, zeros included, at the known pixels."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """One factor for a side: the mean residual on that side over the mean of the heuristic.

    Every known pixel counts, also those whose truth lies on the other side and whose residual on
    this one is therefore 0: leaving them out, as the paper's authors do, would take the mean over
    the pixels that were wrong in this direction.

    Parameters
    ----------
    limit
        The factor stays between 1/limit and limit. That is wide enough to bring the first frame's
        uncertainty of 1 to residuals in metres or in millimetres, so that what comes out does not
        depend on the unit.
    least
        With fewer known pixels the heuristic stays as it is.
    """

    limit: float = 1000.0
    least: int = 20

    def __post_init__(self) -> None:
        _check(self)

    def __call__(self, side: Any, residual: Any) -> Fit:
        """The factor, without a shift."""
        if len(side) < self.least:
            return Fit(1.0, 0.0)
        size, wanted = float(side.mean()), float(residual.mean())
        if not size > 0.0:
            return Fit(1.0, 0.0)
        return Fit(min(max(wanted / size, 1.0 / self.limit), self.limit), 0.0)


@dataclass(frozen=True, slots=True)
class Line:
    """Scale and shift of a side by least squares over all known pixels, never negative.

    Where the slope is not above 0 it is `Ratio`; what would come out below 0 is cut at 0.

    Parameters
    ----------
    limit
        The scale stays between 1/limit and limit, and the line goes through the means; see
        `Ratio`.
    least
        With fewer known pixels the heuristic stays as it is.
    """

    limit: float = 1000.0
    least: int = 20

    def __post_init__(self) -> None:
        _check(self)

    def __call__(self, side: Any, residual: Any) -> Fit:
        """The line through the means with the least squares."""
        if len(side) < self.least:
            return Fit(1.0, 0.0)
        size, wanted = float(side.mean()), float(residual.mean())
        apart = side - size
        spread = float((apart * apart).sum())
        slope = float((apart * (residual - wanted)).sum()) / spread if spread > 0.0 else 0.0
        if not slope > 0.0:
            return Ratio(self.limit, self.least)(side, residual)
        slope = min(max(slope, 1.0 / self.limit), self.limit)
        return Fit(slope, wanted - slope * size)


def _check(part: Any) -> None:
    limit = finite(part.limit, "limit")
    if limit < 1.0:
        raise InputError(f"limit must be at least 1, got {limit}")
    object.__setattr__(part, "limit", limit)
    object.__setattr__(part, "least", whole(part.least, "least", 1))


def valid_depth(depth: Any, least: float = 1e-8, most: float = inf) -> Any:
    """Which pixels have a depth: finite, at least `least` and at most `most`.

    A depth below 1e-8 is how maps say that there is none, and padding is below it too.

    >>> import numpy as np
    >>> valid_depth(np.array([[0.0, 3.5], [np.nan, -1.0]]))
    array([[False,  True],
           [False, False]])
    """
    low, high = number(least, "least"), number(most, "most")
    if not low <= high:
        raise InputError(f"valid_depth needs least ≤ most, got {low} and {high}")
    xp = space(depth)
    values = xp.asarray(depth)
    return xp.isfinite(values) & (values >= low) & (values <= high)


def only(values: Any, valid: Any) -> Any:
    """The values where they are valid and NaN elsewhere, in floats.

    >>> import numpy as np
    >>> depth = np.array([[0.0, 3.5]])
    >>> only(depth, valid_depth(depth))
    array([[nan, 3.5]])
    """
    xp = space(values)
    numbers = xp.asarray(values)
    if numbers.dtype not in (xp.float16, xp.float32, xp.float64):
        numbers = numbers * xp.asarray(1.0, dtype=xp.float32)
    return xp.where(xp.asarray(valid), numbers, float("nan"))
