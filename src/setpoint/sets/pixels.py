"""Families of images: an interval for each pixel, or the pixels of an object.

They work on numpy arrays and on torch tensors alike, tensors on their device; only counts and means
come to the host. A frame has two axes or more, height and width the last.
"""

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from setpoint._check import interval
from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.parts import ours
from setpoint.sets._interval import by_name
from setpoint.sets._pixel_arrays import (
    beside,
    is_tensor,
    label_parts,
    mask_of,
    plane,
    same_kind,
    space,
)
from setpoint.sets._pixel_intervals import Frame, PixelIntervals, Reading, judged_pixels
from setpoint.sets._pixel_loops import loop, on_host
from setpoint.sets._pixel_scores import PixelSet, PixelThreshold

__all__ = ["PixelIntervals", "PixelScale", "PixelSet", "PixelThreshold"]


@ours
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
        if not isinstance(self.share, bool):
            raise InputError(f"share must be True or False, got {self.share!r}")

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
        if not _sound(centre, low, high, valid):
            raise PredictionError(_unsound(centre, low, high, valid))
        return centre, low, high, valid

    def label(self, y: Any) -> Frame:
        """The label as a frame with NaN where there is nothing to judge."""
        values, valid = label_parts(y)
        found = plane(values, "a label", LabelError, copy=not self.share or valid is not None)
        if valid is not None:
            valid = mask_of(valid, "the valid of a label", LabelError, copy=False)
            same_kind({"values": found, "valid": valid}, LabelError)
            found[~valid] = float("nan")
        if not _label_sound(found, self.support):
            first = float(found[_outside(found, self.support)][0])
            if abs(first) == inf:
                raise LabelError(
                    f"a label must be finite at every valid pixel, got {first}; NaN is not judged"
                )
            raise LabelError(f"a label must lie in the support {list(self.support)}, got {first}")
        return found

    def taped(self, y: float) -> Any:
        """None: a tape has one number for a label."""
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
        centre, low, high, valid = prediction
        y = beside(centre, y)
        xp = space(centre)
        run = loop("criticals", centre)
        if run is not None:
            double = xp.float64 in (centre.dtype, y.dtype)
            out = xp.empty_like(centre, dtype=xp.float64 if double else xp.float32)
            held = on_host(out)
            frames = (on_host(each) for each in (centre, low, high, valid, y))
            run(*frames, held.dtype.type(inf), held)
            return out
        with np.errstate(all="ignore"):
            under, over = (centre - y) / abs(low), (y - centre) / abs(high)
            found = xp.where((under > over) | (over != over), under, over)
            found[found != found] = -inf  # 0/0 on both sides
            return xp.where(judged_pixels(y, valid), found, xp.nan)

    def critical(self, prediction: Reading, y: Frame) -> float:
        """The smallest λ that covers every judged pixel; −inf if there is none."""
        values = self.criticals(prediction, y)
        values = values[values == values]
        return float(values.max()) if len(values) else -inf

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
        """The mean |after − before| over the pixels that both labels have; NaN if there are none,
        or the size of the frame changed: for a burn-in."""
        if tuple(before.shape) != tuple(after.shape):
            return float("nan")
        gaps = abs(beside(before, after) - before)
        gaps = gaps[gaps == gaps]
        return float(gaps.mean()) if len(gaps) else float("nan")


def _unpacked(prediction: Any) -> tuple[Any, Any, Any, Any]:
    """The three or four parts of a prediction."""
    given = prediction
    if hasattr(prediction, "keys"):
        names = ("centre", "low", "high", *(("valid",) if "valid" in prediction else ()))
        given = by_name(prediction, names, ())
    try:
        count = 0 if isinstance(given, str | bytes) else len(given)
    except TypeError:
        count = 0
    if count == 3:
        return (*given, None)
    if count == 4:
        centre, low, high, valid = given
        return centre, low, high, valid
    got = f"{count} parts" if count else repr(prediction)
    raise PredictionError(f"PixelScale takes (centre, low, high) or with valid, got {got}")


def _sound(centre: Frame, low: Frame, high: Frame, valid: Frame | None) -> bool:
    """Whether every valid pixel has a finite centre and finite scales of at least 0."""
    run = loop("sound", centre)
    if run is not None:
        return bool(run(*(on_host(each) for each in (centre, low, high, valid))))
    return not bool(_wrong(centre, low, high, valid).any())


def _wrong(centre: Frame, low: Frame, high: Frame, valid: Frame | None) -> Frame:
    xp = space(centre)
    fine = xp.isfinite(centre) & (low >= 0.0) & (low < inf) & (high >= 0.0) & (high < inf)
    return ~fine if valid is None else valid & ~fine


def _unsound(centre: Frame, low: Frame, high: Frame, valid: Frame | None) -> str:
    wrong = _wrong(centre, low, high, valid)
    found = ", ".join(str(float(frame[wrong][0])) for frame in (centre, low, high))
    return (
        "a spread must have a finite centre and finite uncertainties of at least 0 at every valid "
        f"pixel, got ({found}) at {int(wrong.sum()):,} of them or more"
    )


def _label_sound(y: Frame, support: tuple[float, float]) -> bool:
    """Whether every pixel of a label is NaN, or finite and within the support."""
    run = loop("label_sound", y)
    if run is not None:
        return bool(run(on_host(y), support != (-inf, inf), *support))
    return not bool(_outside(y, support).any())


def _outside(y: Frame, support: tuple[float, float]) -> Frame:
    double = y.double() if is_tensor(y) else y.astype(np.float64)
    return space(y).isinf(y) | (double < support[0]) | (double > support[1])
