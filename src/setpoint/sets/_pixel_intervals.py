"""An interval for each pixel of a frame, and which pixels of a label it covers."""

from dataclasses import dataclass
from math import inf, prod
from typing import Any

import numpy as np

from setpoint.regions import Whole
from setpoint.sets._pixel_arrays import beside, chosen, is_tensor, space
from setpoint.sets._pixel_loops import loop, on_host

__all__ = ["Frame", "PixelIntervals", "Reading", "judged_pixels"]

Frame = Any
"""A numpy array or a torch tensor."""

Reading = tuple[Frame, Frame, Frame, Frame | None]
"""Centre, uncertainty below and above, and the mask of valid pixels or None."""

_LARGEST_SINGLE = float(np.finfo(np.float32).max)


def _lam_for(frame: Frame, lam: float) -> Any:
    """λ in the precision of the frame; what single precision cannot hold is its largest number."""
    if frame.dtype.itemsize == 8:
        return np.float64(lam)
    return np.float32(min(max(lam, -_LARGEST_SINGLE), _LARGEST_SINGLE))


def _window(region: Any, shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """The rows and columns of a region in a frame laid out as one image, None if it is no window
    of one."""
    if type(region) is Whole:
        return 0, prod(shape[:-1]), 0, shape[-1]
    index = region.index(shape)
    if len(shape) != 2 or not isinstance(index, tuple) or len(index) != 2:
        return None
    if type(index[0]) is not slice or type(index[1]) is not slice:
        return None
    top, bottom, down = index[0].indices(shape[0])
    left, right, along = index[1].indices(shape[1])
    return (top, bottom, left, right) if down == along == 1 else None


@dataclass(eq=False, repr=False)
class PixelIntervals:
    """An interval for each pixel of a frame; a pixel with crossed ends is empty.

    Parameters
    ----------
    prediction
        A prediction as `PixelScale` reads it.
    lam
        λ: +inf makes every interval full, −inf empty.
    support
        What the full interval is.

    Examples
    --------
    >>> from setpoint.sets import PixelScale
    >>> family = PixelScale()
    >>> prediction = family.read(([[12.0, 9.0]], [[1.5, 1.0]], [[2.0, 1.0]]))
    >>> shown = family.at(prediction, 2.0)
    >>> shown
    PixelIntervals(1 × 2 at λ = 2.0)
    >>> shown.lower.tolist(), shown.upper.tolist(), shown.length
    ([[9.0, 7.0]], [[16.0, 11.0]], 5.5)
    >>> shown.count(family.label([[16.5, 10.0]]))
    (1, 2)
    """

    __slots__ = ("_ends", "lam", "prediction", "support")

    prediction: Reading
    lam: float
    support: tuple[float, float]

    def __post_init__(self) -> None:
        self._ends: tuple[Frame, Frame] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the frame."""
        return tuple(self.prediction[0].shape)

    @property
    def valid(self) -> Frame | None:
        """The mask of the pixels that can be used; None: all of them."""
        return self.prediction[3]

    @property
    def ends(self) -> tuple[Frame, Frame]:
        """Both ends of every pixel; +inf and −inf where it is empty.

        They are computed when first asked for. Numpy arrays are kept, and cannot be written to;
        tensors, which can, are made anew each time.
        """
        if self._ends is not None:
            return self._ends
        lower, upper = self._computed()
        if is_tensor(lower):
            return lower, upper
        lower.flags.writeable = upper.flags.writeable = False
        self._ends = lower, upper
        return self._ends

    def _computed(self) -> tuple[Frame, Frame]:
        centre, low, high, _ = self.prediction
        xp = space(centre)
        if abs(self.lam) == inf:
            full = self.support if self.lam > 0.0 else (inf, -inf)
            return xp.full_like(centre, full[0]), xp.full_like(centre, full[1])
        lam = _lam_for(centre, self.lam)
        lower, upper = xp.empty_like(centre), xp.empty_like(centre)
        run = loop("ends", centre)
        if run is None:
            with np.errstate(all="ignore"):
                lower, upper = centre - low * float(lam), centre + high * float(lam)
        else:
            inputs = (on_host(each) for each in (centre, low, high))
            run(*inputs, lam, on_host(lower), on_host(upper))
        cuts = self.support != (-inf, inf)
        if cuts:
            lower[lower < self.support[0]] = self.support[0]
            upper[upper > self.support[1]] = self.support[1]
        if cuts or self.lam < 0.0:
            crossed = lower > upper
            lower[crossed] = inf
            upper[crossed] = -inf
        return lower, upper

    @property
    def lower(self) -> Frame:
        """The lower end of every pixel."""
        return self.ends[0]

    @property
    def upper(self) -> Frame:
        """The upper end of every pixel."""
        return self.ends[1]

    def contains(self, y: Frame) -> bool:
        """Whether every judged pixel is covered."""
        return self.lam > -inf and self.count(y)[0] == 0

    __contains__ = contains

    def count(self, y: Frame, region: Any = None) -> tuple[int, int]:
        """How many judged pixels of a region are missed, and how many are judged.

        A pixel is judged where it is valid and y is not NaN.
        """
        centre, low, high, valid = self.prediction
        y = beside(centre, y)
        region = Whole() if region is None else region
        found = self._counted(y, region)
        if found is not None:
            return found
        index = region.index(self.shape)
        seen = chosen(judged_pixels(y, valid), index)
        if abs(self.lam) == inf:
            total = int(seen.sum())
            return (0 if self.lam == inf else total), total
        truth = chosen(y, index)
        if self._ends is None:
            centre, low, high = (chosen(each, index) for each in (centre, low, high))
            lam = float(_lam_for(centre, self.lam))
            with np.errstate(all="ignore"):
                inside = (centre - low * lam <= truth) & (truth <= centre + high * lam)
        else:
            lower, upper = (chosen(each, index) for each in self._ends)
            inside = (lower <= truth) & (truth <= upper)
        if is_tensor(seen):
            missed, judged = space(seen).stack([(seen & ~inside).sum(), seen.sum()]).tolist()
            return missed, judged
        return int(np.count_nonzero(seen & ~inside)), int(np.count_nonzero(seen))

    def _counted(self, y: Frame, region: Any) -> tuple[int, int] | None:
        """The same in one compiled pass over a window, None where that is not possible."""
        centre, low, high, valid = self.prediction
        run = loop("count" if self._ends is None else "count_between", centre)
        window = None if run is None or abs(self.lam) == inf else _window(region, self.shape)
        if run is None or window is None:
            return None
        mask, truth = on_host(valid), on_host(y)
        if self._ends is None:
            lam = _lam_for(centre, self.lam)
            frames = on_host(centre), on_host(low), on_host(high)
            missed, judged = run(*frames, mask, truth, lam, *window)
        else:
            lower, upper = self._ends
            missed, judged = run(on_host(lower), on_host(upper), mask, truth, *window)
        return int(missed), int(judged)

    @property
    def lengths(self) -> Frame:
        """upper − lower of every pixel: 0 where it is empty, +inf where a side is open, NaN where
        it is not valid."""
        lower, upper = self.ends
        xp, valid = space(lower), self.valid
        with np.errstate(all="ignore"):
            found = xp.where(lower < upper, upper - lower, 0.0)
        return found if valid is None else xp.where(valid, found, xp.nan)

    @property
    def length(self) -> float:
        """The mean length over the valid pixels, NaN if there are none."""
        lower, upper = self.ends
        run = loop("length", lower)
        if run is not None:
            total, count = run(on_host(lower), on_host(upper), on_host(self.valid))
        else:
            found = self.lengths if self.valid is None else self.lengths[self.valid]
            total = float(found.sum(dtype=space(found).float64))
            count = found.numel() if is_tensor(found) else found.size
        return total / count if count else float("nan")

    @property
    def empty(self) -> bool:
        """Whether no valid pixel holds anything."""
        if abs(self.lam) == inf:
            return self.lam < 0.0
        lower, upper = self.ends
        held = lower <= upper
        return not bool((held if self.valid is None else held & self.valid).any())

    def __repr__(self) -> str:
        return f"PixelIntervals({' × '.join(map(str, self.shape))} at λ = {self.lam})"


def judged_pixels(y: Frame, valid: Frame | None) -> Frame:
    """Which pixels are judged."""
    seen = y == y  # not NaN
    return seen if valid is None else seen & valid
