"""Pixels by their score: the segmentation of an object that grows with λ."""

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.parts import ours
from setpoint.regions import Whole
from setpoint.sets._pixel_arrays import (
    beside,
    chosen,
    is_tensor,
    label_parts,
    mask_of,
    plane,
    same_kind,
    space,
)

__all__ = ["PixelSet", "PixelThreshold"]

Frame = Any
"""A numpy array or a torch tensor."""

Reading = tuple[Frame, Frame | None]
"""The scores, and the mask of valid pixels or None."""


def _least_score(scores: Frame, lam: float) -> float:
    """The smallest number of the scores' precision that is −λ or more."""
    if scores.dtype.itemsize == 8:
        return -lam
    least = np.float32(min(max(-lam, -2.0), 2.0))  # scores lie in [0, 1]
    short = float(least) < min(-lam, 2.0)
    return float(np.nextafter(least, np.float32(inf)) if short else least)


@dataclass(slots=True, eq=False, repr=False)
class PixelSet:
    """The pixels whose score is at least −λ.

    Parameters
    ----------
    prediction
        A prediction as `PixelThreshold` reads it.
    lam
        λ: +inf makes the set full, −inf empty.

    Examples
    --------
    >>> family = PixelThreshold()
    >>> shown = family.at(family.read([[0.9, 0.4], [0.6, 0.1]]), -0.5)
    >>> shown
    PixelSet(2 of 2 × 2)
    >>> shown.mask.tolist()
    [[True, False], [True, False]]
    >>> shown.count(family.label([[True, True], [True, False]]))
    (1, 3)
    """

    prediction: Reading
    lam: float

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the frame."""
        return tuple(self.prediction[0].shape)

    @property
    def valid(self) -> Frame | None:
        """The mask of the pixels that can be used; None: all of them."""
        return self.prediction[1]

    @property
    def mask(self) -> Frame:
        """Which pixels are in the set; one that is not valid never is."""
        scores, valid = self.prediction
        if abs(self.lam) == inf:
            held = space(scores).full_like(scores, self.lam == inf, dtype=space(scores).bool)
        else:
            held = scores >= _least_score(scores, self.lam)
        return held if valid is None else held & valid

    def contains(self, y: Frame) -> bool:
        """Whether every pixel of the object is in the set."""
        return self.lam > -inf and self.count(y)[0] == 0

    __contains__ = contains

    def count(self, y: Frame, region: Any = None) -> tuple[int, int]:
        """How many pixels of the object are left out in a region, and how many there are."""
        scores, valid = self.prediction
        y = beside(scores, y)
        index = (Whole() if region is None else region).index(self.shape)
        seen = chosen(y if valid is None else y & valid, index)
        held = chosen(self.mask, index)
        if is_tensor(seen):
            missed, judged = space(seen).stack([(seen & ~held).sum(), seen.sum()]).tolist()
            return missed, judged
        return int(np.count_nonzero(seen & ~held)), int(np.count_nonzero(seen))

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


@ours
@dataclass(frozen=True, slots=True)
class PixelThreshold:
    """Every pixel whose score is at least −λ, where y is the mask of an object.

    It takes the scores of a segmentation, numbers in [0, 1], or a pair (scores, valid); numpy
    arrays or torch tensors. y is a boolean mask, an array of 0 and 1 with NaN where there is
    nothing to judge, or a pair (mask, valid). `losses.ImageMiscoverage` is the share of the
    object's pixels that are left out; a frame without the object has nothing to judge.

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
        if not isinstance(self.share, bool):
            raise InputError(f"share must be True or False, got {self.share!r}")

    def read(self, prediction: Any) -> Reading:
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
        found = plane(scores, "the scores of a prediction", PredictionError, copy=copy)
        if valid is not None:
            valid = mask_of(valid, "the valid of a prediction", PredictionError, copy=copy)
            same_kind({"scores": found, "valid": valid}, PredictionError)
        wrong = ~((found >= 0.0) & (found <= 1.0))
        wrong = wrong if valid is None else wrong & valid
        if bool(wrong.any()):
            raise PredictionError(f"scores must lie in [0, 1], got {float(found[wrong][0])}")
        return found, valid

    def label(self, y: Any) -> Frame:
        """The pixels to be found, as a boolean mask."""
        values, valid = label_parts(y)
        held = values if is_tensor(values) else np.asarray(values)
        boolean = held.dtype == space(held).bool
        wrong: Any = None
        if boolean and held.ndim >= 2:
            found = mask_of(held, "a label", LabelError, copy=not self.share)
        else:
            numbers = plane(values, "a label", LabelError, copy=False)
            found = numbers == 1.0
            wrong = ~(found | (numbers == 0.0) | (numbers != numbers))
        if valid is not None:
            valid = mask_of(valid, "the valid of a label", LabelError, copy=False)
            same_kind({"values": found, "valid": valid}, LabelError)
            found = found & valid
            wrong = None if wrong is None else wrong & valid
        if wrong is not None and bool(wrong.any()):
            raise LabelError("a label must be a boolean mask, or 0, 1 and NaN for each pixel")
        return found

    def taped(self, y: float) -> Any:
        """None: a tape has one number for a label."""
        raise LabelError(
            "a tape holds one number for a label, and sets.PixelThreshold needs a mask: run it live"
        )

    def at(self, prediction: Reading, lam: float) -> PixelSet:
        """The set at λ."""
        if lam != lam:
            raise InputError(f"λ must be a number or ±inf, got {lam}")
        return PixelSet(prediction, lam)

    def criticals(self, prediction: Reading, y: Frame) -> Frame:
        """−score of every pixel to be found, NaN elsewhere."""
        scores, valid = prediction
        y = beside(scores, y)
        xp = space(scores)
        return xp.where(y if valid is None else y & valid, -scores, xp.nan)

    def critical(self, prediction: Reading, y: Frame) -> float:
        """The smallest λ whose set holds every pixel to be found; −inf if there is none."""
        values = self.criticals(prediction, y)
        values = values[values == values]
        return float(values.max()) if len(values) else -inf

    def start(self, level: float) -> float:
        """−level."""
        return -level

    def bounds(self) -> tuple[float, float]:
        """(−1, 0): scores lie in [0, 1]."""
        return -1.0, 0.0

    def unit(self, prediction: Reading) -> float:
        """1: λ is a score."""
        return 1.0
