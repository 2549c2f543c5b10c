"""Video with depth: a clip of frames held in memory, and the two real clips at hand."""

import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from setpoint._check import whole
from setpoint.errors import AbsentFile, DataError
from setpoint_paper.datasets.depth_images import decoded
from setpoint_paper.datasets.files import VARIABLE, Folder, named_folder
from setpoint_paper.datasets.sources import DEPTH_SOURCES, Source

Colours = NDArray[np.uint8]
Depths = NDArray[np.float32]


class Split(NamedTuple):
    """Three ranges of frames that follow one another in time."""

    warm_up: range
    validation: range
    test: range


class Frame(NamedTuple):
    """One frame: colours (height, width, 3), depth (height, width), a stored prediction or None."""

    rgb: Colours
    depth: Depths
    stored: Depths | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Clip:
    """Consecutive frames of video with the depth of each pixel, in metres.

    A slice of it is a clip again, without a copy: `clip[:100]`; one place of it is a `Frame`, and
    so is each turn of a loop over it.

    Parameters
    ----------
    name
        What the clip is called.
    rgb
        Colours, uint8, frames × height × width × 3.
    depth
        Metres along the optical axis, float32, frames × height × width; NaN where it is unknown.
    stored
        Predictions of depth that came with the clip, float32 of the shape of `depth` and of
        arbitrary scale, NaN where unusable; None where there are none.

    Examples
    --------
    >>> from setpoint_paper.datasets import road
    >>> clip = road(50, height=32, width=48, seed=1)
    >>> clip.split().test
    range(30, 50)
    >>> part = clip[30:]
    >>> len(part), part[0].rgb.shape
    (20, (32, 48, 3))
    """

    name: str
    rgb: Colours
    depth: Depths
    stored: Depths | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of a frame."""
        return self.depth.shape[1], self.depth.shape[2]

    def split(self) -> Split:
        """The ranges of frames for warm-up, validation and test: 40 %, 20 % and the rest."""
        first, second = len(self) * 4 // 10, len(self) * 6 // 10
        return Split(range(first), range(first, second), range(second, len(self)))

    def __len__(self) -> int:
        return len(self.depth)

    @overload
    def __getitem__(self, place: int) -> Frame: ...
    @overload
    def __getitem__(self, place: slice) -> "Clip": ...
    def __getitem__(self, place: int | slice) -> "Frame | Clip":
        stored = None if self.stored is None else self.stored[place]
        if isinstance(place, slice):
            return replace(self, rgb=self.rgb[place], depth=self.depth[place], stored=stored)
        return Frame(self.rgb[place], self.depth[place], stored)

    def __iter__(self) -> Iterator[Frame]:
        return (self[place] for place in range(len(self)))


def kitti_clip(*, folder: Folder = None, frames: int | None = None) -> Clip:
    """500 frames of KITTI odometry 00 at 64 × 208, ten a second, with stored predictions.

    The depth is **not LiDAR**: it was computed by semi-global matching of the stereo pairs at full
    size, and has its errors; 30 % of the pixels, sky and half-occluded ones among them, have none.
    `stored` holds the predictions of a monocular network (struct2depth) as they were kept: whole
    numbers of arbitrary scale in 16 bits, which far pixels overran. Where this is seen, by the
    rule of docs/datasets.md, they are NaN. A clip made by `setpoint-paper fetch` has none.
    """
    source = DEPTH_SOURCES["kitti_clip"]
    names = ("rgb", "depth_sgm_m256")
    rgb, depth, *stored = _arrays(source, names, folder, frames, "pred_struct2depth_raw")
    usable = None
    if stored:
        usable = stored[0].astype(np.float32)
        usable[wrapped(stored[0])] = np.nan
    return Clip("kitti_clip", rgb, decoded(depth), usable)


def kitchen_clip(*, folder: Folder = None, frames: int | None = None) -> Clip:
    """1,000 frames of the red kitchen of 7-Scenes at 96 × 128, thirty a second, by a Kinect.

    The depth is the raw one of the Kinect, not registered to the colours, which come from another
    lens beside it; 11 % of the pixels have none.
    """
    source = DEPTH_SOURCES["kitchen_clip"]
    rgb, depth = _arrays(source, ("rgb", "depth_mm"), folder, frames)
    return Clip("kitchen_clip", rgb, decoded(depth, 1000.0))


def _arrays(
    source: Source, names: tuple[str, ...], folder: Folder, frames: int | None, *maybe: str
) -> list[Any]:
    """The arrays of the file of a clip, and some if they are there, cut to the frames asked for."""
    if frames is not None:
        whole(frames, "frames", 1)
    path = _found(source, folder)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            missing = [name for name in names if name not in held.files]
            if missing:
                raise DataError(
                    f"{path} must hold the arrays {', '.join(names)}, "
                    f"got {', '.join(held.files) or 'none'}"
                )
            names += tuple(name for name in maybe if name in held.files)
            arrays = [held[name][:frames] for name in names]
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is damaged: {error}") from None
    for name, array in zip(names[1:], arrays[1:], strict=True):
        if array.dtype != np.uint16 or array.shape != arrays[0].shape[:3]:
            raise DataError(
                f"{name} of {path} must be uint16 of shape {arrays[0].shape[:3]}, got "
                f"{array.dtype} of shape {array.shape}"
            )
    return arrays


_MADE_BY = {
    "kitti_clip": "setpoint-paper fetch --kitti-odometry FOLDER",
    "kitchen_clip": "setpoint-paper fetch --seven-scenes FOLDER",
}


def _found(source: Source, folder: Folder) -> Path:
    place = named_folder(folder)
    (file,) = source.files
    name = file.names[0]
    if place is not None:
        for path in (place / "depth" / name, place / name):
            if path.is_file():
                return path
        why, where = f"is not in {place}", f"in {place / 'depth'}"
    else:
        why = f"cannot be looked for, because {VARIABLE} names no folder"
        where = f"in a folder depth whose parent folder {VARIABLE} names"
    raise AbsentFile(
        f"the file {name!r} of {source.name} {why}: it is a reduced copy that is not served "
        f"anywhere, made from the frames at {source.page} by {_MADE_BY[source.name]}; put it "
        f"{where}"
    )


# Some stored predictions hold 10,000 × depth in unsigned 16 bits. The network's depth ends at 100,
# so its far pixels should read 1,000,000. Stored, they read 1,000,000 mod 65,536 = 16,960, as if
# they were near, and the few pixels between 65,536 and 1,000,000 read like noise. Their neighbours
# do not tell how often such a pixel went round, so it is marked, not put right.

Mask = NDArray[np.bool_]

_MODULUS = 65_536
"""Where 16 bits begin again."""
_PLATEAU = 1_000_000 % _MODULUS
"""What the largest depth of the network reads once it is stored."""
_NEAR_PLATEAU = 16
_JUMP = _MODULUS // 4


def wrapped(raw: Any) -> Mask:
    """Which pixels of stored 16-bit depth went round, for one map (H, W) or several (T, H, W).

    The rule, in this order:

    1. the plateau: a value at most 16 below 16,960 with such a value beside, above or below it;
    2. every pixel that touches the plateau, also by a corner: it is on the way up to it;
    3. both pixels of a jump of more than a quarter of the range (16,384) from one pixel to the
       next: depth maps of this size are smoother than that;
    4. a pixel with at least three of its four neighbours marked, once.

    >>> raw = np.full((4, 6), 30_000, np.uint16)
    >>> raw[:2, :2] = 16_960
    >>> wrapped(raw).astype(int)
    array([[1, 1, 1, 0, 0, 0],
           [1, 1, 1, 0, 0, 0],
           [1, 1, 1, 0, 0, 0],
           [0, 0, 0, 0, 0, 0]])
    """
    values = np.asarray(raw).astype(np.int32)
    near = (values <= _PLATEAU) & (values >= _PLATEAU - _NEAR_PLATEAU)
    plateau = near & _beside(near, _FOUR).any(axis=0)
    marked: Mask = plateau | _beside(plateau, (*_FOUR, *_CORNERS)).any(axis=0)
    for axis in (-1, -2):
        jump = np.abs(np.diff(values, axis=axis)) > _JUMP
        for width in ((1, 0), (0, 1)):  # both pixels of it
            marked |= np.pad(jump, [width if at == values.ndim + axis else (0, 0)
                                    for at in range(values.ndim)])  # fmt: skip
    closed: Mask = _beside(marked, _FOUR).sum(axis=0) >= 3
    return marked | closed


_FOUR = ((0, 1), (2, 1), (1, 0), (1, 2))
_CORNERS = ((0, 0), (0, 2), (2, 0), (2, 2))


def _beside(mask: Mask, places: tuple[tuple[int, int], ...]) -> Mask:
    """Whether some neighbours of each pixel are marked, one map for each."""
    height, width = mask.shape[-2:]
    framed = np.pad(mask, [(0, 0)] * (mask.ndim - 2) + [(1, 1)] * 2)
    found: Mask = np.stack([framed[..., y : y + height, x : x + width] for y, x in places])
    return found
