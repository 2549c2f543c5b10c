"""Registration: an image moved onto another by optical flow, so that its pixels follow objects.

A flow says where each pixel of the fixed image is found in the moving one: an array of shape
(height, width, 2), rows first, in pixels. It is looked for in images without gaps; the moved image
keeps the gaps of its source. Tensors go through the memory of the host.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Protocol

import numpy as np

from setpoint._check import choice, whole
from setpoint.errors import InputError
from setpoint.sets.frames import host, image, space

__all__ = ["DIS", "TVL1", "Register", "warp"]

Array = np.ndarray[Any, Any]


class Register(Protocol):
    """What finds a flow and moves images by it."""

    def flow(self, moving: Any, fixed: Any) -> Array:
        """Where each pixel of `fixed` is found in `moving`."""

    def register(self, moving: Any, fixed: Any) -> Any:
        """`moving`, moved onto `fixed`."""


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
    >>> moved = DIS().register(moving, fixed)
    >>> error = lambda found: float(np.abs(found - fixed)[5:-5, 5:-5].mean())
    >>> error(moved) < 0.5 * error(moving)
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
        """Where each pixel of `fixed` is found in `moving`."""
        start, goal = _grey(moving, fixed)
        if min(start.shape) < _LEAST:
            raise InputError(
                f"DIS needs images of at least {_LEAST} × {_LEAST} pixels, got {start.shape}"
            )
        cv2 = _needed("cv2", "opencv-python-headless")
        search = cv2.DISOpticalFlow_create(self._presets.index(self.preset))
        bits = [np.clip(np.rint(255.0 * each), 0, 255).astype(np.uint8) for each in (goal, start)]
        return np.ascontiguousarray(search.calc(bits[0], bits[1], None)[..., ::-1])

    def register(self, moving: Any, fixed: Any) -> Any:
        """`moving`, moved onto `fixed`; NaN where its source is."""
        return warp(moving, self.flow(moving, fixed))


@dataclass(frozen=True, slots=True)
class TVL1:
    """Total variation with L1, by scikit-image: what the paper used.

    Parameters
    ----------
    num_iter, num_warp
        As scikit-image has them; the paper's authors took 2 and 1, far below its defaults.

    References
    ----------
    Zach, Pock and Bischof 2007; Feldman et al. 2023, appendix B.
    """

    num_iter: int = 2
    num_warp: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_iter", whole(self.num_iter, "num_iter", 1))
        object.__setattr__(self, "num_warp", whole(self.num_warp, "num_warp", 1))

    def flow(self, moving: Any, fixed: Any) -> Array:
        """Where each pixel of `fixed` is found in `moving`."""
        start, goal = _grey(moving, fixed)
        tvl1 = _needed("skimage.registration", "scikit-image").optical_flow_tvl1
        flow = tvl1(goal, start, num_iter=self.num_iter, num_warp=self.num_warp)
        return np.ascontiguousarray(np.moveaxis(flow, 0, -1), dtype=np.float32)

    def register(self, moving: Any, fixed: Any) -> Any:
        """`moving`, moved onto `fixed`; NaN where its source is."""
        return warp(moving, self.flow(moving, fixed))


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
    images = host(moving)
    if images.shape[-2:] != flow.shape[:2] or images.ndim not in (2, 3):
        raise InputError(
            f"a flow of shape {flow.shape} moves images of shape {flow.shape[:2]}, got "
            f"{images.shape}"
        )
    cv2 = _needed("cv2", "opencv-python-headless")
    rows, columns = np.indices(flow.shape[:2], dtype=np.float32)
    places = columns + flow[..., 1], rows + flow[..., 0]

    def moved(values: Array) -> Array:
        made: Array = cv2.remap(
            values, *places, interpolation=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        )
        return made

    def one(values: Array) -> Array:
        values = np.ascontiguousarray(values, dtype=np.float32)
        valid = np.isfinite(values)
        if valid.all():
            return moved(values)
        weight = moved(valid.astype(np.float32))
        total = moved(np.where(valid, values, np.float32(0.0)))
        out = np.full(weight.shape, np.nan, np.float32)
        return np.divide(total, weight, out=out, where=weight >= 0.5)

    warped = one(images) if images.ndim == 2 else np.stack([one(single) for single in images])
    xp = space(moving)
    if xp is np:
        return warped
    kind = moving.dtype if moving.dtype.is_floating_point else None  # bytes cannot hold NaN
    return xp.as_tensor(warped, device=moving.device, dtype=kind)


_LEAST = 12
"""OpenCV's search needs a few patches of 8 pixels a side."""


def _grey(moving: Any, fixed: Any) -> tuple[Array, Array]:
    """Both images without colours and gaps, scaled to [0, 1] by the same robust range."""
    pair = [_plain(each) for each in (moving, fixed)]
    if pair[0].shape != pair[1].shape:
        raise InputError(
            f"registration needs two images of one shape, got {pair[0].shape} and {pair[1].shape}"
        )
    finite_values = np.concatenate([each[np.isfinite(each)] for each in pair])
    if not len(finite_values):
        blank = np.zeros(pair[0].shape, np.float32)
        return blank, blank
    low, high = np.percentile(finite_values, (1.0, 99.0))
    scale = 1.0 / (high - low) if high > low else 1.0
    first, second = (
        np.clip((_filled(each) - low) * scale, 0.0, 1.0).astype(np.float32) for each in pair
    )
    return first, second


def _plain(values: Any) -> Array:
    """An image of one value a pixel; of colours their mean brightness."""
    try:
        pixels = host(values)
    except ValueError:  # several arrays of different shapes
        pixels = np.asarray(None)
    if pixels.ndim == 3 and pixels.shape[0] in (3, 4) and pixels.shape[-1] not in (3, 4):
        pixels = np.moveaxis(pixels, 0, -1)
    if pixels.ndim == 3 and pixels.shape[-1] in (3, 4):
        return pixels[..., :3].astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    return np.asarray(image(pixels, "an image to register"))


def _filled(values: Array) -> Array:
    """Gaps filled with the nearest value; all gaps with 0."""
    gaps = ~np.isfinite(values)
    if not gaps.any():
        return values
    if gaps.all():
        return np.zeros_like(values)
    cv2 = _needed("cv2", "opencv-python-headless")
    _, nearest = cv2.distanceTransformWithLabels(
        gaps.astype(np.uint8), cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL
    )
    # Every pixel without a gap has a label of its own, and gaps that of the nearest of them.
    value = np.empty(int(nearest.max()) + 1, values.dtype)
    value[nearest[~gaps]] = values[~gaps]
    return np.asarray(value[nearest])


def _needed(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"registration needs {package}: pip install 'setpoint[images]'") from error
