"""Families of images: an interval for each pixel, or the pixels of an object.

They work on numpy arrays and on torch tensors alike, tensors on their device; only counts and means
come to the host. A frame has two axes or more, height and width the last.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import inf, prod
from typing import Any

import numpy as np

from setpoint._check import interval
from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.regions import Whole
from setpoint.sets.family import ShareOfOne, by_name
from setpoint.sets.frames import (
    Frame,
    beside,
    chosen,
    is_mask,
    is_tensor,
    label_parts,
    mask_of,
    mean,
    plane,
    same_kind,
    space,
)
from setpoint.sets.pixel_arithmetic import (
    Reading,
    count_missed,
    criticals,
    ends,
    judged_pixels,
    outside_support,
    tally,
    unsound,
)

Scored = tuple[Frame, Frame | None]
"""The scores of pixels, and the mask of valid pixels or None."""


def _check_share(share: Any) -> None:
    if not isinstance(share, bool):
        raise InputError(f"share must be True or False, got {share!r}")


def _needs(criticals: Frame, size: float) -> tuple[float, float, float] | None:
    """The mean critical value of the judged pixels, at least 0, and the size of the set."""
    values = criticals[criticals == criticals]
    need = float(values.clip(min=0.0).mean()) if len(values) else inf
    return (need, 0.0, size) if need < inf and size < inf else None


_MOST = 4096


@lru_cache(maxsize=16)
def _places(count: int) -> Any:
    """Where some pixels of a frame lie, anywhere in it and always the same."""
    if count <= _MOST:
        return slice(None)
    return np.sort(np.random.default_rng(count).choice(count, _MOST, replace=False))


def _some(frames: tuple[Frame | None, ...]) -> tuple[Any, ...]:
    """Some pixels of frames of one shape, in a row: enough for a mean."""
    where = _places(prod(tuple(frames[0].shape)))  # type: ignore[union-attr]
    return tuple(None if frame is None else frame.reshape(1, -1)[:, where] for frame in frames)


def _largest(criticals: Frame) -> float:
    """The largest critical value of the judged pixels; −inf if there are none."""
    values = criticals[criticals == criticals]
    return float(values.max()) if len(values) else -inf


class _Shown:
    """What sets of pixels have in common; abstract."""

    __slots__ = ()
    prediction: Any
    lam: float

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the frame."""
        return tuple(self.prediction[0].shape)

    @property
    def valid(self) -> Frame | None:
        """The mask of the pixels that can be used; None: all of them."""
        mask: Frame | None = self.prediction[-1]
        return mask

    def contains(self, y: Frame) -> bool:
        """Whether every judged pixel, or pixel of the object, is in the set."""
        return self.lam > -inf and self.count(y)[0] == 0  # type: ignore[attr-defined]

    __contains__ = contains


@dataclass(eq=False, repr=False)
class PixelIntervals(_Shown):
    """An interval for each pixel of a frame; a pixel with crossed ends is empty.

    `prediction` is as `PixelScale` reads it; λ = +inf makes every interval full, −inf empty.

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
    def ends(self) -> tuple[Frame, Frame]:
        """Both ends of every pixel, +inf and −inf where it is empty, computed when asked for.

        Numpy arrays are kept, and cannot be written to.
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
        centre, lam = self.prediction[0], self.lam
        if abs(lam) == inf:
            xp, full = space(centre), self.support if lam > 0.0 else (inf, -inf)
            return xp.full_like(centre, full[0]), xp.full_like(centre, full[1])
        lower, upper = ends(self.prediction, lam)
        cuts = self.support != (-inf, inf)
        if cuts:
            lower[lower < self.support[0]] = self.support[0]
            upper[upper > self.support[1]] = self.support[1]
        if cuts or lam < 0.0:
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

    def count(self, y: Frame, region: Any = None) -> tuple[int, int]:
        """How many judged pixels of a region are missed, and how many are judged."""
        y = beside(self.prediction[0], y)
        region = Whole() if region is None else region
        if abs(self.lam) == inf:
            judged = int(chosen(judged_pixels(y, self.valid), region.index(self.shape)).sum())
            return (0 if self.lam == inf else judged), judged
        return count_missed(self.prediction, y, self.lam, region)

    @property
    def lengths(self) -> Frame:
        """upper − lower of every pixel: 0 where it is empty, NaN where it is not valid."""
        widths, valid = self._widths(), self.valid
        return widths if valid is None else space(widths).where(valid, widths, float("nan"))

    @property
    def length(self) -> float:
        """The mean length over the valid pixels, NaN if there are none."""
        widths = self._widths()
        return mean(widths, widths == widths if self.valid is None else self.valid)

    def _widths(self) -> Frame:
        lower, upper = self.ends
        with np.errstate(all="ignore"):
            return space(lower).where(lower < upper, upper - lower, 0.0)

    @property
    def empty(self) -> bool:
        """Whether no valid pixel holds anything."""
        if abs(self.lam) == inf:
            return self.lam < 0.0
        lower, upper = self.ends
        filled = lower <= upper
        return not bool((filled if self.valid is None else filled & self.valid).any())

    def __repr__(self) -> str:
        return f"PixelIntervals({' × '.join(map(str, self.shape))} at λ = {self.lam})"


@dataclass(frozen=True, slots=True)
class PixelScale:
    """Each side of each pixel in units of its own uncertainty: [centre − λ·low, centre + λ·high].

    It takes `PixelSpread` or any (centre, low, high) or (centre, low, high, valid), numpy arrays or
    torch tensors of one shape. y is a frame of that shape, on its device or not; its NaN pixels are
    not judged. A pair (values, valid) and numpy's masked arrays do as well. Where a scale is 0, no
    finite λ moves that side of that pixel: only the full set covers a value beyond it.

    Integers and half precision are read as single precision if that holds them, else as double.

    Parameters
    ----------
    support
        The values y can take: the full set. Intervals are cut to it, and a judged pixel outside it
        is an error.
    share
        True takes arrays as they are, without a copy: whoever hands them over promises not to
        change them until the label came, and not to change the label before the next one.

    Examples
    --------
    >>> import numpy as np
    >>> family = PixelScale()
    >>> depth = np.full((2, 2), 8.0)
    >>> prediction = family.read((depth, 0.5 * np.ones((2, 2)), np.ones((2, 2))))
    >>> y = family.label([[9.0, 10.0], [7.0, np.nan]])
    >>> family.criticals(prediction, y).tolist()
    [[1.0, 2.0], [2.0, nan]]
    >>> family.at(prediction, 1.0).count(y)
    (2, 3)

    References
    ----------
    Feldman et al. 2023, the image-to-image construction of appendix B.
    """

    support: tuple[float, float] = (-inf, inf)
    share: bool = False

    shows = PixelIntervals

    def __post_init__(self) -> None:
        object.__setattr__(self, "support", interval(self.support, "support"))
        _check_share(self.share)

    def read(self, prediction: Any) -> Reading:
        """The prediction as frames of one shape and precision, checked pixel by pixel."""
        centre, low, high, valid = _unpacked(prediction)
        copy = not self.share
        names = {"centre": centre, "low": low, "high": high}
        parts = {
            name: plane(part, f"the {name} of a prediction", PredictionError, copy=copy)
            for name, part in names.items()
        }
        if valid is not None:
            valid = mask_of(valid, "the valid of a prediction", PredictionError, copy=copy)
            parts["valid"] = valid
        same_kind(parts, PredictionError)
        frames = [parts["centre"], parts["low"], parts["high"]]
        if len({frame.dtype for frame in frames}) > 1:
            double = space(frames[0]).float64
            frames = [f.to(double) if is_tensor(f) else f.astype(double) for f in frames]
        centre, low, high = frames
        wrong = unsound(centre, low, high, valid)
        if wrong is not None and bool(wrong.any()):
            first = ", ".join(str(float(frame[wrong][0])) for frame in frames)
            raise PredictionError(
                "a spread must have a finite centre and finite uncertainties of at least 0 at "
                f"every valid pixel, got ({first}) at {int(wrong.sum()):,} of them or more"
            )
        return centre, low, high, valid

    def label(self, y: Any) -> Frame:
        """The label as a frame with NaN where there is nothing to judge."""
        values, valid = label_parts(y)
        frame = plane(values, "a label", LabelError, copy=not self.share or valid is not None)
        if valid is not None:
            valid = mask_of(valid, "the valid of a label", LabelError, copy=False)
            same_kind({"values": frame, "valid": valid}, LabelError)
            frame[~valid] = float("nan")
        wrong = outside_support(frame, self.support)
        if wrong is not None and bool(wrong.any()):
            first = float(frame[wrong][0])
            if abs(first) == inf:
                raise LabelError(
                    f"a label must be finite at every valid pixel, got {first}; NaN is not judged"
                )
            raise LabelError(f"a label must lie in the support {list(self.support)}, got {first}")
        return frame

    def taped(self, y: float) -> Any:
        """An error: a tape has one number for a label."""
        raise LabelError(
            "a tape holds one number for a label, and sets.PixelScale needs a frame: run it live"
        )

    def at(self, prediction: Reading, lam: float) -> PixelIntervals:
        """The intervals at λ."""
        if lam != lam:
            raise InputError(f"λ must be a number or ±inf, got {lam}")
        return PixelIntervals(prediction, lam, self.support)

    def criticals(self, prediction: Reading, y: Frame) -> Frame:
        """The smallest λ that covers each pixel, NaN where it is not judged."""
        return criticals(prediction, beside(prediction[0], y))

    def critical(self, prediction: Reading, y: Frame) -> float:
        """The smallest λ that covers every judged pixel; −inf if there is none."""
        return _largest(self.criticals(prediction, y))

    def needs(
        self, prediction: Reading, shown: PixelIntervals, y: Frame
    ) -> tuple[float, float, float] | None:
        """How far pixels lie from the centre, in units of their own scales; the mean length."""
        *part, y = _some((*prediction, beside(prediction[0], y)))
        few = PixelIntervals((part[0], part[1], part[2], part[3]), shown.lam, shown.support)
        return _needs(self.criticals(few.prediction, y), few.length)

    def start(self, level: float) -> float:
        """λ = 1: the model's own uncertainty."""
        return 1.0

    def bounds(self) -> None:
        """From a burn-in, because λ is in units of the model's own."""

    def unit(self, prediction: Reading) -> float:
        """The mean of the scales over the valid pixels, 0 if there are none."""
        _, low, high, valid = prediction
        if valid is not None:
            low, high = low[valid], high[valid]
        count = low.numel() if is_tensor(low) else low.size
        double = space(low).float64
        total = float(low.sum(dtype=double)) + float(high.sum(dtype=double))
        return 0.5 * total / count if count else 0.0

    def extent(self, y: Frame) -> tuple[float, float] | None:
        """The least and the greatest value of a label, None if it has none: for a burn-in."""
        values = y[y == y]
        return (float(values.min()), float(values.max())) if len(values) else None

    def change(self, before: Frame, after: Frame) -> float:
        """The mean |after − before| over the pixels of both labels, or NaN: for a burn-in."""
        if tuple(before.shape) != tuple(after.shape):
            return float("nan")
        gaps = abs(beside(before, after) - before)
        gaps = gaps[gaps == gaps]
        return float(gaps.mean()) if len(gaps) else float("nan")


def _unpacked(prediction: Any) -> tuple[Any, Any, Any, Any]:
    """The three or four parts of a prediction."""
    parts = prediction
    if hasattr(prediction, "keys"):
        names = ("centre", "low", "high", *(("valid",) if "valid" in prediction else ()))
        parts = by_name(prediction, names, ())
    try:
        count = 0 if isinstance(parts, str | bytes) else len(parts)
    except TypeError:
        count = 0
    if count == 3:
        return (*parts, None)
    if count == 4:
        centre, low, high, valid = parts
        return centre, low, high, valid
    got = f"{count} parts" if count else repr(prediction)
    raise PredictionError(f"PixelScale takes (centre, low, high) or with valid, got {got}")


def _least_score(scores: Frame, lam: float) -> float:
    """The smallest number of the scores' precision that is −λ or more."""
    if scores.dtype.itemsize == 8:
        return -lam
    least = np.float32(min(max(-lam, -2.0), 2.0))  # scores lie in [0, 1]
    short = float(least) < min(-lam, 2.0)
    return float(np.nextafter(least, np.float32(inf)) if short else least)


@dataclass(slots=True, eq=False, repr=False)
class PixelSet(_Shown):
    """The pixels whose score is at least −λ.

    `prediction` is as `PixelThreshold` reads it; λ = +inf makes the set full, −inf empty.

    >>> family = PixelThreshold()
    >>> shown = family.at(family.read([[0.9, 0.4], [0.6, 0.1]]), -0.5)
    >>> shown
    PixelSet(2 of 2 × 2)
    >>> shown.mask.tolist()
    [[True, False], [True, False]]
    >>> shown.count(family.label([[True, True], [True, False]]))
    (1, 3)
    """

    prediction: Scored
    lam: float

    @property
    def mask(self) -> Frame:
        """Which pixels are in the set; one that is not valid never is."""
        scores, valid = self.prediction
        if abs(self.lam) == inf:
            inside = space(scores).full_like(scores, self.lam == inf, dtype=space(scores).bool)
        else:
            inside = scores >= _least_score(scores, self.lam)
        return inside if valid is None else inside & valid

    def count(self, y: Frame, region: Any = None) -> tuple[int, int]:
        """How many pixels of the object are left out in a region, and how many there are."""
        scores, valid = self.prediction
        y = beside(scores, y)
        index = (Whole() if region is None else region).index(self.shape)
        return tally(chosen(y if valid is None else y & valid, index), chosen(self.mask, index))

    left_out = count

    @property
    def size(self) -> int:
        """How many pixels are in the set."""
        return int(self.mask.sum())

    @property
    def empty(self) -> bool:
        """Whether no pixel is in the set."""
        return self.size == 0

    def __repr__(self) -> str:
        return f"PixelSet({self.size:,} of {' × '.join(map(str, self.shape))})"


@dataclass(frozen=True, slots=True)
class PixelThreshold(ShareOfOne):
    """Every pixel whose score is at least −λ, where y is the mask of an object.

    It takes the scores of a segmentation, numbers in [0, 1], or a pair (scores, valid); numpy
    arrays or torch tensors. y is a boolean mask, an array of 0 and 1 with NaN where there is
    nothing to judge, or a pair (mask, valid). `losses.FalseNegatives` is the share of the object's
    pixels that are left out, `losses.ImageMiscoverage(region)` that of a region; a frame without
    the object has nothing to judge.

    Parameters
    ----------
    share
        True takes arrays as they are, without a copy; see `PixelScale`.

    Examples
    --------
    >>> family = PixelThreshold()
    >>> prediction = family.read([[0.9, 0.4], [0.6, 0.1]])
    >>> y = family.label([[True, True], [False, False]])
    >>> family.critical(prediction, y), family.at(prediction, -0.5).count(y)
    (-0.4, (1, 2))
    """

    share: bool = False

    shows = PixelSet

    def __post_init__(self) -> None:
        _check_share(self.share)

    def read(self, prediction: Any) -> Scored:
        """The scores as one frame, with the mask of valid pixels or None."""
        scores, valid = prediction, None
        if isinstance(prediction, tuple):
            if len(prediction) != 2:
                raise PredictionError(
                    "PixelThreshold takes scores or a pair (scores, valid), got "
                    f"{len(prediction)} parts"
                )
            scores, valid = prediction
        copy = not self.share
        frame = plane(scores, "the scores of a prediction", PredictionError, copy=copy)
        if valid is not None:
            valid = mask_of(valid, "the valid of a prediction", PredictionError, copy=copy)
            same_kind({"scores": frame, "valid": valid}, PredictionError)
        wrong = ~((frame >= 0.0) & (frame <= 1.0))
        wrong = wrong if valid is None else wrong & valid
        if bool(wrong.any()):
            raise PredictionError(f"scores must lie in [0, 1], got {float(frame[wrong][0])}")
        return frame, valid

    def label(self, y: Any) -> Frame:
        """The pixels to be found, as a boolean mask."""
        values, valid = label_parts(y)
        wrong: Any = None
        if is_mask(values):
            mask = mask_of(values, "a label", LabelError, copy=not self.share)
        else:
            numbers = plane(values, "a label", LabelError, copy=False)
            mask = numbers == 1.0
            wrong = ~(mask | (numbers == 0.0) | (numbers != numbers))
        if valid is not None:
            valid = mask_of(valid, "the valid of a label", LabelError, copy=False)
            same_kind({"values": mask, "valid": valid}, LabelError)
            mask = mask & valid
            wrong = None if wrong is None else wrong & valid
        if wrong is not None and bool(wrong.any()):
            raise LabelError("a label must be a boolean mask, or 0, 1 and NaN for each pixel")
        return mask

    def taped(self, y: float) -> Any:
        """An error: a tape has one number for a label."""
        raise LabelError(
            "a tape holds one number for a label, and sets.PixelThreshold needs a mask: run it live"
        )

    def at(self, prediction: Scored, lam: float) -> PixelSet:
        """The set at λ."""
        if lam != lam:
            raise InputError(f"λ must be a number or ±inf, got {lam}")
        return PixelSet(prediction, lam)

    def criticals(self, prediction: Scored, y: Frame) -> Frame:
        """−score of every pixel to be found, NaN elsewhere."""
        scores, valid = prediction
        y = beside(scores, y)
        xp = space(scores)
        return xp.where(y if valid is None else y & valid, -scores, xp.nan)

    def needs(
        self, prediction: Scored, shown: PixelSet, y: Frame
    ) -> tuple[float, float, float] | None:
        """How far scores of the pixels to be found lie below 1; how many pixels are shown."""
        scores, valid, y = _some((*prediction, beside(prediction[0], y)))
        few = PixelSet((scores, valid), shown.lam)
        part = prod(prediction[0].shape) / max(prod(scores.shape), 1)
        return _needs(1.0 + self.criticals(few.prediction, y), float(few.size) * part)

    def critical(self, prediction: Scored, y: Frame) -> float:
        """The smallest λ whose set holds every pixel to be found; −inf if there is none."""
        return _largest(self.criticals(prediction, y))
