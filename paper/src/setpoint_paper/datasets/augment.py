"""Views of a frame: the paper's crop for testing, and its random changes for training."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from setpoint._check import positive, whole
from setpoint.errors import InputError
from setpoint_paper.datasets.depth_images import opencv

__all__ = ["Augmentation", "Crop", "Jitter", "View", "resized"]

Colours = NDArray[np.uint8]
Depths = NDArray[np.float32]
_RATIOS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)


class View(Protocol):
    """What makes the frame a model sees out of the frame that was read; depth stays in metres."""

    def apply(
        self, rgb: Colours, depth: Depths, rng: np.random.Generator
    ) -> tuple[Colours, Depths]:
        """The new colours and depth of one size; NaN where there is no depth."""
        ...


def resized(rgb: Colours, depth: Depths, height: int, width: int) -> tuple[Colours, Depths]:
    """Colours and depth at another size: colours by bilinear means, depth by the nearest pixel.

    No depth is ever a mean of two, so none lies in the air between a car and the wall behind it.

    >>> rgb, depth = np.zeros((2, 2, 3), np.uint8), np.array([[1, np.nan], [3, 4]], np.float32)
    >>> resized(rgb, depth, 2, 4)[1]
    array([[ 1.,  1., nan, nan],
           [ 3.,  3.,  4.,  4.]], dtype=float32)
    """
    whole(height, "height", 1)
    whole(width, "width", 1)
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
class Jitter:
    """Random changes of the colours, in the manner of LeReS: contrast, light, grey, JPEG, blur.

    Contrast and saturation change first; then light, a share of grey and the marks of JPEG
    compression, in random order; and last comes a box blur, a motion blur, or none.

    Parameters
    ----------
    contrast, saturation
        The factor is drawn within 1 ± this.
    light
        Least and largest factor of the brightness.
    shift
        The brightness is shifted by at most this, of 255.
    grey
        Largest share of grey mixed in.
    compression
        Largest JPEG compression, 0 to 99; the quality is 100 less the compression drawn.
    blur
        The chance of a box blur of up to 5 × 5, and the same of a motion blur over 9 pixels.
    """

    contrast: float = 0.3
    saturation: float = 0.1
    light: tuple[float, float] = (0.6, 1.25)
    shift: float = 20.0
    grey: float = 1.0
    compression: int = 70
    blur: float = 0.3

    def apply(self, rgb: Colours, rng: np.random.Generator) -> Colours:
        """The changed colours."""
        image = rgb.astype(np.float32)
        factor = np.float32(1 + self.contrast * rng.uniform(-1, 1))
        level = np.float32(_greys(image).mean())
        image = _clipped(level + (image - level) * factor)
        factor = np.float32(1 + self.saturation * rng.uniform(-1, 1))
        image = _clipped(_mixed(_greys(image), image, factor))
        for change in rng.permutation(3):
            if change == 0:
                light, shift = rng.uniform(*self.light), self.shift * rng.uniform(-1, 1)
                image = _clipped(image * np.float32(light) + np.float32(shift))
            elif change == 1:
                share = np.float32(1 - self.grey * rng.random())
                image = _mixed(_greys(image), image, share)
            else:
                image = _compressed(image, int(rng.integers(0, self.compression + 1)))
        return _rounded(_blurred(image, self.blur, rng))


@dataclass(frozen=True, slots=True)
class Crop:
    """The paper's view for testing: half the size, the left columns, padded on top to a square.

    A KITTI frame of 375 × 1242 becomes 188 × 621, of which the left 448 columns are taken; 260
    rows are put on top of it. Padding is black and has no depth, so nothing there is judged. The
    paper's text speaks of a re-scaling to 448 × 448; its code does this.

    Parameters
    ----------
    ratio
        Factor of the size.
    side
        Height and width of the view.
    jitter
        Changes of the colours, drawn anew for each trial and the same on each reading; None: none.
        The paper's experiments had them in testing as well.

    Examples
    --------
    >>> Crop().padding(375, 1242).sum(axis=0)[:3]
    array([260, 260, 260])
    """

    ratio: float = 0.5
    side: int = 448
    jitter: Jitter | None = None

    def __post_init__(self) -> None:
        positive(self.ratio, "ratio")
        whole(self.side, "side", 1)

    def apply(
        self, rgb: Colours, depth: Depths, rng: np.random.Generator
    ) -> tuple[Colours, Depths]:
        """The view of a frame."""
        rgb, depth = resized(rgb, depth, *_scaled(depth.shape, self.ratio))
        if self.jitter is not None:
            rgb = self.jitter.apply(rgb, rng)
        # Of a frame higher than the view, the lower rows are taken: the road, not the sky.
        return _padded(rgb[-self.side :, : self.side], depth[-self.side :, : self.side], self.side)

    def padding(self, height: int, width: int) -> NDArray[np.bool_]:
        """Where the view of a frame of this size is padding."""
        high, wide = _scaled((height, width), self.ratio)
        made = np.ones((self.side, self.side), dtype=np.bool_)
        made[self.side - min(high, self.side) :, : min(wide, self.side)] = False
        return made


@dataclass(frozen=True, slots=True)
class Augmentation:
    """The paper's view for training: a random size, crop and flip, and changed colours.

    A square as large as fits, at most the view, is cut at random and scaled up to the view.

    Parameters
    ----------
    ratios
        The size is multiplied by one of these, each as likely as the others.
    side
        Height and width of the view.
    flip
        The chance of left and right being exchanged.
    jitter
        Changes of the colours; None: none.
    """

    ratios: tuple[float, ...] = _RATIOS
    side: int = 448
    flip: float = 0.5
    jitter: Jitter | None = field(default_factory=Jitter)

    def __post_init__(self) -> None:
        if not self.ratios:
            raise InputError("ratios must hold at least one factor, got ()")
        for ratio in self.ratios:
            positive(ratio, "each of ratios")
        whole(self.side, "side", 1)

    def apply(
        self, rgb: Colours, depth: Depths, rng: np.random.Generator
    ) -> tuple[Colours, Depths]:
        """A random view of a frame."""
        ratio = self.ratios[int(rng.integers(len(self.ratios)))]
        rgb, depth = resized(rgb, depth, *_scaled(depth.shape, ratio))
        size = min(self.side, *depth.shape)
        top = int(rng.integers(depth.shape[0] - size + 1))
        left = int(rng.integers(depth.shape[1] - size + 1))
        window = slice(top, top + size), slice(left, left + size)
        rgb, depth = resized(rgb[window], depth[window], self.side, self.side)
        if rng.random() < self.flip:
            rgb, depth = rgb[:, ::-1], depth[:, ::-1]
        if self.jitter is not None:
            rgb = self.jitter.apply(rgb, rng)
        return _padded(rgb, depth, self.side)


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


# Colours, as float32 between 0 and 255

Image = NDArray[np.float32]


def _clipped(image: Image) -> Image:
    return np.clip(image, 0, 255)


def _rounded(image: Image) -> Colours:
    return np.rint(_clipped(image)).astype(np.uint8)


def _greys(image: Image) -> Image:
    weights = np.array([0.299, 0.587, 0.114], dtype=np.float32)
    made: Image = (image @ weights)[:, :, None]
    return made


def _mixed(first: Image, second: Image, share: np.float32) -> Image:
    made: Image = first + (second - first) * share
    return made


def _compressed(image: Image, compression: int) -> Image:
    """An image after a turn as a JPEG file; compression 0 is none."""
    if compression == 0:
        return image
    cv2 = opencv()
    options = [cv2.IMWRITE_JPEG_QUALITY, 100 - compression]
    # OpenCV has blue first, and JPEG spares green least.
    _, packed = cv2.imencode(".jpg", _rounded(image[:, :, ::-1]), options)
    made: Image = cv2.imdecode(packed, cv2.IMREAD_COLOR)[:, :, ::-1].astype(np.float32)
    return made


def _blurred(image: Image, chance: float, rng: np.random.Generator) -> Image:
    cv2 = opencv()
    drawn = rng.random()
    size, angle = rng.integers(1, 6, 2), rng.uniform(-45, 45)
    made: Image = image
    if drawn < chance:
        made = cv2.blur(image, (int(size[0]), int(size[1])))
    elif drawn > 1 - chance:
        line = np.zeros((9, 9), dtype=np.float32)
        line[:, 4] = 1
        turned = cv2.getRotationMatrix2D((4, 4), angle, 1.0)
        kernel = cv2.warpAffine(line, turned, (9, 9))
        made = cv2.filter2D(image, -1, kernel / kernel.sum())
    return made
