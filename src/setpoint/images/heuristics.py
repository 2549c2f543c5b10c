"""Uncertainty heuristics: how far below and above its estimate a model may be, pixel by pixel.

Everything is in the unit of the estimate. Numpy arrays and torch tensors do, on their device; a
pixel that is NaN is not valid, and enters neither a floor nor a mean.

Residuals of past frames can follow moving objects. A flow says where each pixel of the fixed image
is found in the moving one: an array of shape (height, width, 2), rows first, in pixels.
"""

from collections import deque
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from setpoint._check import choice, finite, positive, whole
from setpoint.errors import InputError
from setpoint.models import OnlineModel
from setpoint.parts import Capability
from setpoint.sets.frames import copied, host, image, like, mean, same, space

Array = np.ndarray[Any, Any]

FLOOR = 0.1
"""The least uncertainty of a pixel, as a share of the mean uncertainty of its frame."""


class Heuristic(Protocol):
    """What says how uncertain each pixel is.

    `predict` gives the uncertainty below and above, and changes nothing; `learn` takes in the
    truth, NaN where it is invalid, with the estimate as it was predicted.
    """

    floor: float

    def predict(self, x: Any, estimate: Any) -> tuple[Any, Any]: ...
    def learn(self, x: Any, estimate: Any, truth: Any) -> None: ...


def sides(estimate: Any, truth: Any) -> tuple[Any, Any]:
    """How far the estimate was above the truth and below it; NaN where either is invalid.

    >>> sides(np.array([[3.0, 3.0]]), np.array([[1.0, np.nan]]))
    (array([[ 2., nan]]), array([[ 0., nan]]))
    """
    apart = residual(estimate, truth)
    xp = space(apart)
    return xp.where(apart < 0.0, 0.0, apart), xp.where(apart > 0.0, 0.0, -apart)


def floored(low: Any, high: Any, floor: float, valid: Any = None) -> tuple[Any, Any]:
    """Both sides raised to at least `floor` of the frame's mean uncertainty.

    Without it a pixel with no uncertainty on a side is never covered from that side. Where the
    mean over the valid pixels is 0, both sides are raised to `floor` in the unit of the estimate.

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


def judged_pair(estimate: Any, truth: Any) -> tuple[Any, Any, Any]:
    """The estimate, the truth beside it, and where both are finite."""
    estimate, truth = image(estimate, "the estimate"), image(truth, "the truth")
    if tuple(estimate.shape) != tuple(truth.shape):
        raise InputError(
            f"the truth must have the shape of the estimate, {tuple(estimate.shape)}, got "
            f"{tuple(truth.shape)}"
        )
    xp, truth = space(estimate), like(truth, estimate)
    return estimate, truth, xp.isfinite(estimate) & xp.isfinite(truth)


def residual(estimate: Any, truth: Any) -> Any:
    """Estimate − truth, NaN where either is not finite."""
    estimate, truth, both = judged_pair(estimate, truth)
    return space(estimate).where(both, estimate - truth, float("nan"))


def _share(floor: Any) -> float:
    share = finite(floor, "floor")
    if not 0.0 <= share < 1.0:
        raise InputError(f"floor must be a share of the mean uncertainty in [0, 1), got {share}")
    return share


@runtime_checkable
class Checks(Protocol, metaclass=Capability):
    """A model or heuristic that can tell beforehand whether it would refuse a label."""

    @property
    def check(self) -> Any: ...


class Register(Protocol):
    """What finds the flow from one image to another."""

    def flow(self, moving: Any, fixed: Any) -> Array: ...


@dataclass(frozen=True, slots=True)
class DIS:
    """Dense inverse search, by OpenCV: fast enough for every frame of a video.

    It works on 8 bits: both images are scaled by the same range, from the 1st to the 99th
    percentile of the two together. Colours, last or first, become grey.

    Parameters
    ----------
    preset
        "ultrafast", "fast" or "medium".

    Examples
    --------
    >>> fixed = np.hypot(*np.mgrid[-20:20, -30:30]).astype(np.float32)
    >>> moving = np.roll(fixed, 2, axis=1)
    >>> moved = warp(moving, DIS().flow(moving, fixed))
    >>> bool(np.abs(moved - fixed)[5:-5, 5:-5].mean() < 0.5 * np.abs(moving - fixed).mean())
    True

    References
    ----------
    Kroeger, Timofte, Dai and Van Gool 2016.
    """

    preset: str = "medium"

    _presets: ClassVar[tuple[str, ...]] = ("ultrafast", "fast", "medium")

    def __post_init__(self) -> None:
        choice(self.preset, "preset", self._presets)

    def flow(self, moving: Any, fixed: Any) -> Array:
        """Finds each pixel of `fixed` in `moving`."""
        start, goal = grey(moving, fixed)
        if min(start.shape) < _LEAST:
            raise InputError(
                f"DIS needs images of at least {_LEAST} × {_LEAST} pixels, got {start.shape}"
            )
        cv2 = needed("cv2", "opencv-python-headless")
        search = cv2.DISOpticalFlow_create(self._presets.index(self.preset))
        bits = [np.clip(np.rint(255.0 * each), 0, 255).astype(np.uint8) for each in (goal, start)]
        return np.ascontiguousarray(search.calc(bits[0], bits[1], None)[..., ::-1])


def warp(moving: Any, flow: Array) -> Any:
    """An image, or several of shape (count, height, width), moved by a flow.

    Values between pixels are those of their valid neighbours, weighted by distance; where the
    invalid ones weigh more than half, the result is NaN. Outside, the edge is repeated.

    >>> flow = np.zeros((2, 3, 2), np.float32)
    >>> flow[..., 1] = 1.0  # every pixel is found one column further right
    >>> warp(np.array([[1.0, 2.0, 3.0], [4.0, np.nan, 6.0]], np.float32), flow)
    array([[ 2.,  3.,  3.],
           [nan,  6.,  6.]], dtype=float32)
    """
    source = host(moving)
    if source.shape[-2:] != flow.shape[:2] or source.ndim not in (2, 3):
        raise InputError(
            f"a flow of shape {flow.shape} moves images of shape {flow.shape[:2]}, got "
            f"{source.shape}"
        )
    cv2 = needed("cv2", "opencv-python-headless")
    rows, columns = np.indices(flow.shape[:2], dtype=np.float32)
    places = columns + flow[..., 1], rows + flow[..., 0]

    def moved(values: Array) -> Any:
        return cv2.remap(
            values, *places, interpolation=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        )

    def one(values: Array) -> Array:
        values = np.ascontiguousarray(values, dtype=np.float32)
        valid = np.isfinite(values)
        if valid.all():
            return np.asarray(moved(values))
        weight = moved(valid.astype(np.float32))
        total = moved(np.where(valid, values, np.float32(0.0)))
        out = np.full(weight.shape, np.nan, np.float32)
        return np.asarray(np.divide(total, weight, out=out, where=weight >= 0.5))

    frames = one(source) if source.ndim == 2 else np.stack(list(map(one, source)))
    xp = space(moving)
    if xp is np:
        return frames
    kind = moving.dtype if moving.dtype.is_floating_point else None  # bytes cannot hold NaN
    return xp.as_tensor(frames, device=moving.device, dtype=kind)


_LEAST = 12
"""OpenCV's search needs a few patches of 8 pixels a side."""


def grey(moving: Any, fixed: Any, ends: float = 1.0) -> tuple[Array, Array]:
    """Both images without colours and gaps, scaled to [0, 1] by one range less `ends` percent."""
    start, goal = _plain(moving), _plain(fixed)
    if start.shape != goal.shape:
        raise InputError(
            f"registration needs two images of one shape, got {start.shape} and {goal.shape}"
        )
    seen = np.concatenate([start[np.isfinite(start)], goal[np.isfinite(goal)]])
    low, high = np.percentile(seen, (ends, 100.0 - ends)) if len(seen) else (0.0, 1.0)
    scale = 1.0 / (high - low) if high > low else 1.0

    def scaled(values: Array) -> Array:
        return np.clip((_filled(values) - low) * scale, 0.0, 1.0).astype(np.float32)

    return scaled(start), scaled(goal)


def _plain(values: Any) -> Array:
    """An image of one value a pixel; of colours their mean brightness."""
    try:
        array = host(values)
    except ValueError:  # several arrays of different shapes
        array = np.asarray(None)
    if array.ndim == 3 and array.shape[0] in (3, 4) and array.shape[-1] not in (3, 4):
        array = np.moveaxis(array, 0, -1)
    if array.ndim == 3 and array.shape[-1] in (3, 4):
        return array[..., :3].astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    return np.asarray(image(array, "an image to register"))


def _filled(values: Array) -> Array:
    """Gaps filled with the nearest value; all gaps with 0."""
    gaps = ~np.isfinite(values)
    if not gaps.any():
        return values
    if gaps.all():
        return np.zeros_like(values)
    cv2 = needed("cv2", "opencv-python-headless")
    _, nearest = cv2.distanceTransformWithLabels(
        gaps.astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
    )
    # Every pixel without a gap has a label of its own, and gaps that of the nearest of them.
    value = np.empty(int(nearest.max()) + 1, values.dtype)
    value[nearest[~gaps]] = values[~gaps]
    return np.asarray(value[nearest])


def needed(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"registration needs {package}: pip install 'setpoint[images]'") from error


@dataclass(eq=False)
class Constant:
    """The same uncertainty, `value` in the unit of the estimate, for every pixel and both sides.

    >>> Constant(2.0).predict(None, np.zeros((1, 3)))
    (array([[2., 2., 2.]]), array([[2., 2., 2.]]))
    """

    value: float = 1.0
    floor: float = FLOOR

    def __post_init__(self) -> None:
        self.value, self.floor = positive(self.value, "value"), _share(self.floor)

    def predict(self, x: Any, estimate: Any) -> tuple[Any, Any]:
        """The constant, everywhere."""
        estimate = image(estimate, "the estimate")
        side = space(estimate).full_like(estimate, self.value)
        return side, side

    def learn(self, x: Any, estimate: Any, truth: Any) -> None:
        """Nothing to learn."""


@dataclass(eq=False)
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

    network: OnlineModel
    floor: float = FLOOR

    def __post_init__(self) -> None:
        if not isinstance(self.network, OnlineModel):
            raise InputError(f"network must have predict and learn, got {self.network!r}")
        self.floor = _share(self.floor)

    def predict(self, x: Any, estimate: Any) -> tuple[Any, Any]:
        """The residual the network predicts, at least the floor."""
        size = image(self.network.predict(x), "the residual that the network predicts")
        estimate = image(estimate, "the estimate")
        size, xp = like(size, estimate), space(estimate)
        size = xp.where(xp.isfinite(size) & (size > 0.0), size, 0.0)
        return floored(size, size, self.floor, xp.isfinite(estimate))

    def learn(self, x: Any, estimate: Any, truth: Any) -> None:
        """Lets the network learn the absolute residual."""
        self.network.learn(x, abs(residual(estimate, truth)))

    def check(self, x: Any, estimate: Any, truth: Any) -> None:
        """Raises what the network would refuse to learn, if it can tell beforehand."""
        if isinstance(self.network, Checks):
            self.network.check(x, abs(residual(estimate, truth)))


@dataclass(eq=False)
class PreviousResiduals:
    """The mean residual of the last frames at a pixel, separately below and above.

    The mean is over those frames of the window in which the pixel was valid. A pixel that was
    valid in none of them has the mean of the frame; before the first frame both sides are 1 in the
    unit of the estimate. Another frame size begins anew.

    Parameters
    ----------
    window
        How many frames, the paper's p.
    floor
        The least uncertainty, as a share of the frame's mean; 0 for none.

    Examples
    --------
    >>> heuristic = PreviousResiduals(window=2, floor=0.0)
    >>> for truth in ([[1.0, 5.0]], [[3.0, np.nan]]):
    ...     heuristic.learn(None, np.array([[4.0, 4.0]]), np.array(truth))
    >>> heuristic.predict(None, np.array([[4.0, 4.0]]))
    (array([[2., 0.]]), array([[0., 1.]]))

    References
    ----------
    Feldman et al. 2023, appendix B.2.3: previous residuals.
    """

    window: int = 5
    floor: float = FLOOR

    def __post_init__(self) -> None:
        self.window, self.floor = whole(self.window, "window", 1), _share(self.floor)
        self._residuals: deque[Any] = deque(maxlen=self.window)

    def predict(self, x: Any, estimate: Any) -> tuple[Any, Any]:
        """The mean residual below and above, at least the floor."""
        return mean_sides(self._residuals, estimate, self.floor)

    def learn(self, x: Any, estimate: Any, truth: Any) -> None:
        """Remembers the residual of a frame."""
        newest = residual(estimate, truth)
        if self._residuals and not fits(self._residuals[0], newest):
            self._residuals.clear()
        self._residuals.append(newest)


def mean_sides(residuals: Any, estimate: Any, floor: float) -> tuple[Any, Any]:
    """The mean over the frames in which a pixel was valid, of both sides of their residuals."""
    estimate = image(estimate, "the estimate")
    xp = space(estimate)
    fitting = [like(residual, estimate) for residual in residuals if fits(residual, estimate)]
    if not fitting:
        ones = xp.ones_like(estimate)
        return ones, ones
    frames = xp.stack(fitting)
    # Comparisons with NaN are false: an invalid pixel adds nothing to either side.
    count = xp.isfinite(frames).sum(0)
    known = count > 0

    def average(side: Any) -> Any:
        averages = side.sum(0) / xp.where(known, count, 1)
        filler = mean(averages, known)
        averages = xp.where(known, averages, filler if filler == filler else 1.0)
        return averages.astype(frames.dtype) if xp is np else averages

    low = average(xp.where(frames > 0.0, frames, 0.0))
    high = average(xp.where(frames < 0.0, -frames, 0.0))
    return floored(low, high, floor, xp.isfinite(estimate))


@dataclass(eq=False)
class RegisteredResiduals:
    """The mean residual of the last frames, moved to where their pixels are now.

    The flow of the input images, each of them one image, moves the residuals.

    Parameters
    ----------
    window
        How many frames, the paper's p.
    register
        What finds the flow.
    floor
        The least uncertainty, as a share of the frame's mean; 0 for none.

    References
    ----------
    Feldman et al. 2023, appendix B.2.4: correcting pixel displacements with image registration.
    """

    window: int = 5
    register: Register = DIS()
    floor: float = FLOOR

    def __post_init__(self) -> None:
        self.window, self.floor = whole(self.window, "window", 1), _share(self.floor)
        self._residuals: deque[Any] = deque(maxlen=self.window)
        self._last: Any = None
        self._ahead: tuple[Any, list[Any]] | None = None

    def predict(self, x: Any, estimate: Any) -> tuple[Any, Any]:
        """The mean residual below and above, moved to this frame, at least the floor."""
        residuals: Any = self._residuals
        if residuals and fits(residuals[0], estimate):
            residuals = self._moved(x)
            self._ahead = copied(x), residuals  # the same is asked when this frame is learnt
        return mean_sides(residuals, estimate, self.floor)

    def learn(self, x: Any, estimate: Any, truth: Any) -> None:
        """Moves what is remembered to this frame and remembers the residual of it."""
        newest = residual(estimate, truth)
        if self._residuals and not fits(self._residuals[0], newest):
            self._residuals.clear()
        moved = self._moved(x) if self._residuals else []
        self._last, self._ahead = copied(x), None
        self._residuals.clear()
        self._residuals.extend([*moved, newest])

    def _moved(self, towards: Any) -> list[Any]:
        """The residuals, moved from the last image onto another."""
        if self._ahead is not None and same(self._ahead[0], towards):
            return self._ahead[1]
        flow = self.register.flow(self._last, towards)
        return [warp(residual, flow) for residual in self._residuals]


def fits(residual: Any, other: Any) -> bool:
    return tuple(residual.shape) == tuple(other.shape)
