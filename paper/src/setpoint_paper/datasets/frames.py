"""Video with depth that stays on disk: pairs of image files, read frame by frame."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from setpoint._check import choice, whole
from setpoint.errors import DataError, InputError
from setpoint_paper.datasets.augment import Augmentation, View
from setpoint_paper.datasets.clips import Clip, Frame, Split, slice_of, split
from setpoint_paper.datasets.colorization import fill_depth
from setpoint_paper.datasets.depth_images import (
    Coding,
    opencv,
    read_colours,
    read_depth,
    write_depth,
)
from setpoint_paper.datasets.files import Folder

__all__ = ["Frames", "Pair", "paired"]

_UNITS = {"metres": 1.0, "paper": 10.0 / 80.0}


class Pair(NamedTuple):
    """The two files of a frame, its place in the whole video, and a label for what is cached."""

    place: int
    label: str
    rgb: Path
    depth: Path


def paired(files: list[tuple[str, Path, Path]]) -> tuple[Pair, ...]:
    """Pairs in the order given, numbered from 0."""
    return tuple(Pair(place, *each) for place, each in zip(count(), files, strict=False))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frames:
    """Consecutive frames of video with depth, read from their files when they are asked for.

    It is asked as a `Clip` is: `frames[3]` and each turn of a loop is a `Frame`, `frames[10:20]`
    is again of this kind, `split()` gives the ranges. Nothing is kept: a loop over 10,000 frames
    needs the memory of one. `kitti` and `rgbd_folder` make it.

    Parameters
    ----------
    name
        What the video is called.
    pairs
        The files of each frame.
    coding
        How the files hold depth.
    view
        What is done to each frame once it is read: `Crop`, `Augmentation`, or None.
    fill
        False leaves holes of the depth invalid; True fills them by `fill_depth`.
    cache
        Folder for filled depth maps, which take seconds each; None keeps none.
    unit
        "metres", or "paper": 10 for 80 metres, the same in every frame.
    fit_colours
        True scales an image of another size than its depth map to that of the depth map.
    seed
        Seed of everything random in the view: one for each trial.
    epoch
        None gives a frame the same view on each reading, 0, 1, … another one in each epoch.
    rate
        Frames a second, None where unknown.
    sensor, note
        What the depth was measured with, and what a reader of results must know.
    """

    name: str
    pairs: tuple[Pair, ...]
    coding: Coding
    view: View | None = None
    fill: bool = False
    cache: Folder = None
    unit: str = "metres"
    fit_colours: bool = False
    seed: int = 0
    epoch: int | None = None
    rate: float | None = None
    sensor: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        choice(self.unit, "unit", tuple(_UNITS))
        whole(self.seed, "seed", 0)
        if self.epoch is not None:
            whole(self.epoch, "epoch", 0)

    def split(self, *, warm_up: float = 0.4, validation: float = 0.2) -> Split:
        """The ranges of frames for warm-up, validation and test: 40 %, 20 % and the rest."""
        return split(len(self), warm_up=warm_up, validation=validation)

    def training(self, epoch: int, view: View | None = None) -> "Frames":
        """The same frames under random changes, others in each epoch, the same for equal seeds."""
        return replace(self, view=Augmentation() if view is None else view, epoch=epoch)

    def clip(self) -> Clip:
        """All frames read into memory; they must be of one size."""
        if not self.pairs:
            raise InputError(f"{self.name} has no frame to make a clip of")
        rgb: list[NDArray[np.uint8]] = []
        depth: list[NDArray[np.float32]] = []
        for pair, frame in zip(self.pairs, self, strict=True):
            if depth and frame.depth.shape != depth[0].shape:
                raise InputError(
                    f"frames of a clip must be of one size, got {frame.depth.shape} in "
                    f"{pair.label} and {depth[0].shape} before: a view such as Crop makes them so"
                )
            rgb.append(frame.rgb)
            depth.append(frame.depth)
        return Clip(
            self.name, np.stack(rgb), np.stack(depth), None, self.rate, self.sensor, self._said
        )

    @property
    def _said(self) -> str:
        unit = "depth in units of 8 m" if self.unit == "paper" else ""
        filled = "holes filled by colourisation" if self.fill else ""
        return "; ".join(filter(None, (self.note, filled, unit)))

    def __len__(self) -> int:
        return len(self.pairs)

    @overload
    def __getitem__(self, place: int) -> Frame: ...
    @overload
    def __getitem__(self, place: slice | range) -> "Frames": ...
    def __getitem__(self, place: int | slice | range) -> "Frame | Frames":
        if isinstance(place, range):
            place = slice_of(place)
        if isinstance(place, slice):
            return replace(self, pairs=self.pairs[place])
        return self._read(self.pairs[place])

    def __iter__(self) -> Iterator[Frame]:
        return (self._read(pair) for pair in self.pairs)

    def __repr__(self) -> str:
        rate = "" if self.rate is None else f", {self.rate:g} a second"
        sensor = f", depth {self.sensor}" if self.sensor else ""
        note = f"; {self._said}" if self._said else ""
        return f"Frames({self.name}: {len(self)} frames on disk{rate}{sensor}{note})"

    def _read(self, pair: Pair) -> Frame:
        rgb = read_colours(pair.rgb)
        depth = read_depth(pair.depth, self.coding)
        if rgb.shape[:2] != depth.shape:
            rgb = self._fitted(rgb, depth, pair)
        if self.fill:
            depth = self._filled(rgb, depth, pair)
        if self.view is not None:
            turn = 0 if self.epoch is None else self.epoch + 1
            rng = np.random.default_rng((self.seed, turn, pair.place))
            rgb, depth = self.view.apply(rgb, depth, rng)
        if self.unit != "metres":
            depth = depth * np.float32(_UNITS[self.unit])
        return Frame(rgb, depth)

    def _fitted(
        self, rgb: NDArray[np.uint8], depth: NDArray[np.float32], pair: Pair
    ) -> NDArray[np.uint8]:
        height, width = depth.shape
        if not self.fit_colours:
            raise DataError(
                f"{pair.rgb} and {pair.depth} must be of one size, got {rgb.shape[0]} × "
                f"{rgb.shape[1]} and {height} × {width}: fit_colours=True scales the first"
            )
        cv2 = opencv()
        made: NDArray[np.uint8] = cv2.resize(rgb, (width, height), interpolation=cv2.INTER_AREA)
        return made

    def _filled(
        self, rgb: NDArray[np.uint8], depth: NDArray[np.float32], pair: Pair
    ) -> NDArray[np.float32]:
        """The depth without holes, rounded as a file holds it, so that a cache changes nothing."""
        kept = None if self.cache is None else Path(self.cache) / f"{pair.label}.png"
        coding = Coding(self.coding.per_metre)
        if kept is not None and kept.is_file():
            held = read_depth(kept, coding)
            if held.shape != depth.shape:
                raise DataError(
                    f"{kept} must be {depth.shape[0]} × {depth.shape[1]} as {pair.depth} is, got "
                    f"{held.shape[0]} × {held.shape[1]}: remove it, or use another cache"
                )
            return held
        filled = fill_depth(rgb, depth)
        if kept is not None:
            write_depth(kept, filled, coding)
        return coding.decoded(coding.encoded(filled))
