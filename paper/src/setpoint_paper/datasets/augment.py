"""Views of a frame: the paper's crop for testing, and its random changes for training."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setpoint_paper.datasets.depth_images import opencv

Colours = NDArray[np.uint8]
Depths = NDArray[np.float32]
Image = NDArray[np.float32]

_RATIOS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
"""By one of these the size is multiplied for training."""

# The ranges of LeReS: contrast and saturation are multiplied by 1 ± these; factors of the light,
# and its shift, of 255; the most JPEG compression, 100 less the quality; the chance of a box blur
# of up to 5 × 5, and the same of a motion blur over 9 pixels.
_CONTRAST, _SATURATION, _LIGHT, _SHIFT, _COMPRESSION, _BLUR = 0.3, 0.1, (0.6, 1.25), 20.0, 70, 0.3


def resized(rgb: Colours, depth: Depths, height: int, width: int) -> tuple[Colours, Depths]:
    """Colours and depth at another size: colours by bilinear means, depth by the nearest pixel.

    No depth is ever a mean of two, so none lies in the air between a car and the wall behind it.

    >>> rgb, depth = np.zeros((2, 2, 3), np.uint8), np.array([[1, np.nan], [3, 4]], np.float32)
    >>> resized(rgb, depth, 2, 4)[1]
    array([[ 1.,  1., nan, nan],
           [ 3.,  3.,  4.,  4.]], dtype=float32)
    """
    old_height, old_width = depth.shape
    if (height, width) == (old_height, old_width):
        return rgb, depth
    cv2 = opencv()
    # Halving by bilinear means of two pixels loses nothing; further down, areas are averaged.
    shrinks = min(height / old_height, width / old_width) < 0.5
    how = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    colours = cv2.resize(np.ascontiguousarray(rgb), (width, height), interpolation=how)
    rows = np.arange(height) * old_height // height
    columns = np.arange(width) * old_width // width
    return colours, np.ascontiguousarray(depth[rows[:, None], columns])


@dataclass(frozen=True, slots=True)
class Crop:
    """The paper's view for testing: half the size, the left columns, padded on top to a square.

    A KITTI frame of 375 × 1242 becomes 188 × 621, of which the left 448 columns are taken; 260
    rows are put on top of it. Padding is black and has no depth, so nothing there is judged. The
    paper's text speaks of a re-scaling to 448 × 448; its code does this.

    Parameters
    ----------
    side
        Height and width of the view.
    jitter
        Changed colours, others in each trial and the same on each reading: the paper's experiments
        had them in testing as well.
    """

    side: int = 448
    jitter: bool = False

    def apply(
        self, rgb: Colours, depth: Depths, rng: np.random.Generator
    ) -> tuple[Colours, Depths]:
        """The view of a frame."""
        rgb, depth = resized(rgb, depth, *_scaled(depth.shape, 0.5))
        if self.jitter:
            rgb = jittered(rgb, rng)
        # Of a frame higher than the view, the lower rows are taken: the road, not the sky.
        return _padded(rgb[-self.side :, : self.side], depth[-self.side :, : self.side], self.side)


@dataclass(frozen=True, slots=True)
class Augmentation:
    """The paper's view for training: a random size, crop and flip, and changed colours.

    A square as large as fits, at most the view, is cut at random and scaled up to the view; half of
    the time left and right are exchanged.

    Parameters
    ----------
    side
        Height and width of the view.
    jitter
        Whether colours are changed.
    """

    side: int = 448
    jitter: bool = True

    def apply(
        self, rgb: Colours, depth: Depths, rng: np.random.Generator
    ) -> tuple[Colours, Depths]:
        """A random view of a frame."""
        ratio = _RATIOS[int(rng.integers(len(_RATIOS)))]
        rgb, depth = resized(rgb, depth, *_scaled(depth.shape, ratio))
        size = min(self.side, *depth.shape)
        top = int(rng.integers(depth.shape[0] - size + 1))
        left = int(rng.integers(depth.shape[1] - size + 1))
        window = slice(top, top + size), slice(left, left + size)
        rgb, depth = resized(rgb[window], depth[window], self.side, self.side)
        if rng.random() < 0.5:
            rgb, depth = rgb[:, ::-1], depth[:, ::-1]
        if self.jitter:
            rgb = jittered(rgb, rng)
        return np.ascontiguousarray(rgb), np.ascontiguousarray(depth)


def _scaled(shape: tuple[int, ...], ratio: float) -> tuple[int, int]:
    """Height and width times a ratio, halves rounded up, at least one pixel."""
    height, width = (max(int(size * ratio + 0.5), 1) for size in shape)
    return height, width


def _padded(rgb: Colours, depth: Depths, side: int) -> tuple[Colours, Depths]:
    """A square with the frame in its lower left corner."""
    height, width = depth.shape
    colours = np.zeros((side, side, 3), dtype=np.uint8)
    metres = np.full((side, side), np.nan, dtype=np.float32)
    colours[side - height :, :width] = rgb
    metres[side - height :, :width] = depth
    return colours, metres


def jittered(rgb: Colours, rng: np.random.Generator) -> Colours:
    """Random changes of the colours, in the manner of LeReS: contrast, light, grey, JPEG, blur.

    Contrast and saturation change first; then light, a share of grey and the marks of JPEG
    compression, in random order; and last comes a box blur, a motion blur, or none.
    """
    image = rgb.astype(np.float32)
    level = np.full((1, 1, 1), _greys(image).mean(), np.float32)
    image = _mixed(level, image, 1.0 + _CONTRAST * rng.uniform(-1, 1))
    image = _mixed(_greys(image), image, 1.0 + _SATURATION * rng.uniform(-1, 1))
    for change in rng.permutation(3):
        if change == 0:
            light = np.float32(rng.uniform(*_LIGHT))
            image = np.clip(image * light + np.float32(_SHIFT * rng.uniform(-1, 1)), 0, 255)
        elif change == 1:
            image = _mixed(_greys(image), image, 1.0 - rng.random())
        else:
            image = _compressed(image, int(rng.integers(0, _COMPRESSION + 1)))
    return _bytes(_blurred(image, rng))


def _bytes(image: Image) -> Colours:
    return np.rint(np.clip(image, 0, 255)).astype(np.uint8)


def _greys(image: Image) -> Image:
    made: Image = (image @ np.array([0.299, 0.587, 0.114], dtype=np.float32))[:, :, None]
    return made


def _mixed(first: Image, second: Image, share: float) -> Image:
    made: Image = np.clip(first + (second - first) * np.float32(share), 0, 255)
    return made


def _compressed(image: Image, compression: int) -> Image:
    """An image after a turn as a JPEG file; compression 0 is none."""
    if compression == 0:
        return image
    cv2 = opencv()
    # OpenCV has blue first, and JPEG spares green least.
    options = [cv2.IMWRITE_JPEG_QUALITY, 100 - compression]
    _, packed = cv2.imencode(".jpg", _bytes(image[:, :, ::-1]), options)
    made: Image = cv2.imdecode(packed, cv2.IMREAD_COLOR)[:, :, ::-1].astype(np.float32)
    return made


def _blurred(image: Image, rng: np.random.Generator) -> Image:
    cv2 = opencv()
    drawn = rng.random()
    size, angle = rng.integers(1, 6, 2), rng.uniform(-45, 45)
    made: Image = image
    if drawn < _BLUR:
        made = cv2.blur(image, (int(size[0]), int(size[1])))
    elif drawn > 1 - _BLUR:
        line = np.zeros((9, 9), dtype=np.float32)
        line[:, 4] = 1
        kernel = cv2.warpAffine(line, cv2.getRotationMatrix2D((4, 4), angle, 1.0), (9, 9))
        made = cv2.filter2D(image, -1, kernel / kernel.sum())
    return made
