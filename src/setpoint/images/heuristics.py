"""Uncertainty heuristics: how far below and above its estimate a model may be, pixel by pixel.

A heuristic has two methods. `predict(x, estimate)` gives the uncertainty below and above, and
changes nothing; `learn(x, estimate, truth)` takes in the truth, NaN where it is invalid, together
with the estimate as it was predicted, before the model learnt from this truth. Both are in the unit
of the estimate: metres, where the estimate was put into metres. Numpy arrays and torch tensors do,
on their device. Where the estimate is NaN a pixel is not valid, and enters neither a floor nor a
mean.
"""

from collections import deque
from typing import Any, Protocol

from setpoint._check import choice, finite, positive, whole
from setpoint.errors import InputError
from setpoint.images.registration import DIS, Register, warp
from setpoint.sets.frames import copied, image, is_tensor, like, mean, same, space

__all__ = [
    "FLOOR",
    "Constant",
    "Heuristic",
    "PreviousResiduals",
    "RegisteredResiduals",
    "ResidualMagnitude",
    "floored",
    "sides",
]

FLOOR = 0.1
"""The least uncertainty of a pixel, as a share of the mean uncertainty of its frame."""


class Heuristic(Protocol):
    """What says how uncertain each pixel is; see the module's description."""

    floor: float

    def predict(self, x: Any, estimate: Any) -> tuple[Any, Any]:
        """The uncertainty below and above the estimate."""

    def learn(self, x: Any, estimate: Any, truth: Any) -> None:
        """Takes in the truth of a frame and the estimate that was made of it."""


def sides(estimate: Any, truth: Any) -> tuple[Any, Any]:
    """How far the estimate was above the truth and below it; NaN where either is invalid.

    The first is the residual below, (estimate − truth)⁺: the truth lay under the estimate.

    >>> import numpy as np
    >>> below, above = sides(np.array([[3.0, 3.0]]), np.array([[1.0, np.nan]]))
    >>> below, above
    (array([[ 2., nan]]), array([[ 0., nan]]))
    """
    residual = _residual(estimate, truth)
    xp = space(residual)
    return xp.where(residual < 0.0, 0.0, residual), xp.where(residual > 0.0, 0.0, -residual)


def floored(low: Any, high: Any, floor: float, valid: Any = None) -> tuple[Any, Any]:
    """Both sides raised to at least `floor` of the frame's mean uncertainty.

    Without it a pixel with no uncertainty on a side is never covered from that side. The mean is
    over the pixels that are valid, by default all that are finite; where it is 0, as after a few
    perfect frames, both sides are raised to `floor` in the unit of the estimate.

    >>> import numpy as np
    >>> floored(np.array([[0.0, 4.0]]), np.array([[2.0, 2.0]]), 0.1)
    (array([[0.2, 4. ]]), array([[2., 2.]]))
    """
    if not floor:
        return low, high
    xp = space(low)
    there = xp.isfinite(low) & xp.isfinite(high)
    there = there if valid is None else there & valid
    size = 0.5 * (mean(low, there) + mean(high, there))
    if size != size:
        return low, high
    least = floor * (size or 1.0)
    return xp.where(low < least, least, low), xp.where(high < least, least, high)


def _residual(estimate: Any, truth: Any) -> Any:
    """Estimate − truth, NaN where either is not finite."""
    estimate, truth = image(estimate, "the estimate"), image(truth, "the truth")
    if tuple(estimate.shape) != tuple(truth.shape):
        raise InputError(
            f"the truth must have the shape of the estimate, {tuple(estimate.shape)}, got "
            f"{tuple(truth.shape)}"
        )
    xp, truth = space(estimate), like(truth, estimate)
    both = xp.isfinite(estimate) & xp.isfinite(truth)
    return xp.where(both, estimate - truth, float("nan"))


def _share(floor: Any) -> float:
    share = finite(floor, "floor")
    if not 0.0 <= share < 1.0:
        raise InputError(f"floor must be a share of the mean uncertainty in [0, 1), got {share}")
    return share


class Constant:
    """The same uncertainty for every pixel and both sides.

    Parameters
    ----------
    value
        In the unit of the estimate.
    floor
        Taken for the sake of the protocol; a constant is above every share of itself.

    Examples
    --------
    >>> import numpy as np
    >>> Constant(2.0).predict(None, np.zeros((1, 3)))
    (array([[2., 2., 2.]]), array([[2., 2., 2.]]))
    """

    def __init__(self, value: float = 1.0, floor: float = FLOOR) -> None:
        self.value, self.floor = positive(value, "value"), _share(floor)

    def predict(self, x: Any, estimate: Any) -> tuple[Any, Any]:
        """The constant, everywhere."""
        estimate = image(estimate, "the estimate")
        constant = space(estimate).full_like(estimate, self.value)
        return constant, constant

    def learn(self, x: Any, estimate: Any, truth: Any) -> None:
        """Nothing to learn."""

    def __repr__(self) -> str:
        return f"Constant(value={self.value}, floor={self.floor})"


class ResidualMagnitude:
    """The size of the residual as a network expects it, for both sides alike.

    Parameters
    ----------
    network
        Any online model: `predict(x)` gives an image, `learn(x, y)` takes the absolute residual
        of a frame, NaN where invalid. What it says below 0 counts as 0.
    floor
        The least uncertainty, as a share of the frame's mean.
    """

    def __init__(self, network: Any, floor: float = FLOOR) -> None:
        if not (hasattr(network, "predict") and hasattr(network, "learn")):
            raise InputError(f"network must have predict and learn, got {network!r}")
        self.network, self.floor = network, _share(floor)

    def predict(self, x: Any, estimate: Any) -> tuple[Any, Any]:
        """What the network expects, at least the floor."""
        size = image(self.network.predict(x), "the residual that the network predicts")
        estimate = image(estimate, "the estimate")
        size = like(size, estimate)
        xp = space(size)
        size = xp.where(xp.isfinite(size) & (size > 0.0), size, 0.0)
        return floored(size, size, self.floor, xp.isfinite(estimate))

    def learn(self, x: Any, estimate: Any, truth: Any) -> None:
        """Lets the network learn the absolute residual."""
        residual = _residual(estimate, truth)
        self.network.learn(x, abs(residual))

    def __repr__(self) -> str:
        return f"ResidualMagnitude({self.network!r}, floor={self.floor})"


class PreviousResiduals:
    """The mean residual of the last frames at the same pixel, below and above apart.

    The mean is over those frames of the window in which the pixel was valid, zeros of the other
    side included. A pixel that was valid in none of them has the mean of the frame; before the
    first frame, and where none was valid, both sides are 1 in the unit of the estimate. Another
    frame size begins anew.

    Parameters
    ----------
    window
        How many frames, the paper's p.
    floor
        The least uncertainty, as a share of the frame's mean; 0 for none.

    Examples
    --------
    >>> import numpy as np
    >>> heuristic = PreviousResiduals(window=2, floor=0.0)
    >>> for truth in ([[1.0, 5.0]], [[3.0, np.nan]]):
    ...     heuristic.learn(None, np.array([[4.0, 4.0]]), np.array(truth))
    >>> heuristic.predict(None, np.array([[4.0, 4.0]]))
    (array([[2., 0.]]), array([[0., 1.]]))

    References
    ----------
    Feldman et al. 2023, appendix B: previous residuals.
    """

    def __init__(self, window: int = 5, floor: float = FLOOR) -> None:
        self.window, self.floor = whole(window, "window", 1), _share(floor)
        self._residuals: deque[Any] = deque(maxlen=self.window)

    def predict(self, x: Any, estimate: Any) -> tuple[Any, Any]:
        """The mean residual below and above, at least the floor."""
        return _mean_sides(self._residuals, estimate, self.floor)

    def learn(self, x: Any, estimate: Any, truth: Any) -> None:
        """Remembers the residual of a frame."""
        residual = _residual(estimate, truth)
        if self._residuals and self._residuals[0].shape != residual.shape:
            self._residuals.clear()
        self._residuals.append(residual)

    def __repr__(self) -> str:
        return f"PreviousResiduals(window={self.window}, floor={self.floor})"


def _mean_sides(residuals: Any, estimate: Any, floor: float) -> tuple[Any, Any]:
    """The mean over the frames in which a pixel was valid, of both sides of their residuals."""
    estimate = image(estimate, "the estimate")
    xp = space(estimate)
    fitting = [each for each in residuals if tuple(each.shape) == tuple(estimate.shape)]
    if not fitting:
        ones = xp.ones_like(estimate)
        return ones, ones
    stack = xp.stack([like(each, estimate) for each in fitting])
    # Comparisons with NaN are false: an invalid pixel adds nothing to either side.
    count = xp.isfinite(stack).sum(0)
    known = count > 0
    share = xp.where(known, count, 1)
    means = []
    for side in (xp.where(stack > 0.0, stack, 0.0), xp.where(stack < 0.0, -stack, 0.0)):
        average = side.sum(0) / share
        filler = mean(average, known)
        means.append(xp.where(known, average, filler if filler == filler else 1.0))
    low, high = (side if is_tensor(side) else side.astype(stack.dtype) for side in means)
    return floored(low, high, floor, xp.isfinite(estimate))


class RegisteredResiduals:
    """The mean residual of the last frames, moved to where their pixels are now.

    Parameters
    ----------
    window
        How many frames, the paper's p.
    register
        What finds the flow: `DIS()` or `TVL1()`.
    follow
        Which flow moves the residuals. "image" takes that of the input images, which reaches the
        frame to be predicted, and needs an input that is one image; "truth" that of the true maps,
        which ends at the frame before it; "each", the paper's way, moves estimates and truths by
        flows of their own, each time anew and to the frame before it, and takes their residuals
        afterwards.
    floor
        The least uncertainty, as a share of the frame's mean; 0 for none.

    References
    ----------
    Feldman et al. 2023, appendix B: correcting pixel displacements with image registration.
    """

    def __init__(
        self,
        window: int = 5,
        register: Register | None = None,
        follow: str = "image",
        floor: float = FLOOR,
    ) -> None:
        self.window, self.floor = whole(window, "window", 1), _share(floor)
        self.register: Register = DIS() if register is None else register
        self.follow = choice(follow, "follow", ("image", "truth", "each"))
        self._residuals: deque[Any] = deque(maxlen=self.window)
        self._pairs: deque[Any] = deque(maxlen=self.window)
        self._last: Any = None
        self._ahead: tuple[Any, list[Any]] | None = None

    def predict(self, x: Any, estimate: Any) -> tuple[Any, Any]:
        """The mean residual below and above, moved to this frame, at least the floor."""
        residuals: Any = self._residuals
        if self.follow == "image" and residuals and _fits(residuals[0], estimate):
            residuals = self._moved(x)
            self._ahead = copied(x), residuals  # the same is asked when this frame is learnt
        return _mean_sides(residuals, estimate, self.floor)

    def learn(self, x: Any, estimate: Any, truth: Any) -> None:
        """Moves what is remembered to this frame and remembers the residual of it."""
        residual = _residual(estimate, truth)
        if self._residuals and not _fits(self._residuals[0], residual):
            self._residuals.clear()
            self._pairs.clear()
        if self.follow == "each":
            pairs = [
                (self.register.register(old, estimate), self.register.register(seen, truth))
                for old, seen in list(self._pairs)[max(len(self._pairs) - self.window + 1, 0) :]
            ]
            newest = (image(estimate, "the estimate"), image(truth, "the truth"))
            self._pairs.clear()
            self._pairs.extend([*pairs, newest])
            moved = [_residual(old, seen) for old, seen in pairs]
        else:
            towards = x if self.follow == "image" else image(truth, "the truth")
            moved = self._moved(towards) if self._residuals else []
            self._last, self._ahead = copied(towards), None
        self._residuals.clear()
        self._residuals.extend([*moved, residual])

    def _moved(self, towards: Any) -> list[Any]:
        """The residuals, moved from the last image onto another."""
        if self._ahead is not None and same(self._ahead[0], towards):
            return self._ahead[1]
        flow = self.register.flow(self._last, towards)
        return [warp(each, flow) for each in self._residuals]

    def __repr__(self) -> str:
        return (
            f"RegisteredResiduals(window={self.window}, register={self.register!r}, "
            f"follow={self.follow!r}, floor={self.floor})"
        )


def _fits(one: Any, other: Any) -> bool:
    return tuple(one.shape) == tuple(other.shape)
