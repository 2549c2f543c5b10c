"""Video with depth that stays on disk: pairs of image files, read frame by frame."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from setpoint._check import whole
from setpoint.errors import DataError
from setpoint_paper.datasets.augment import Augmentation, Crop
from setpoint_paper.datasets.clips import Frame
from setpoint_paper.datasets.colorization import fill_depth
from setpoint_paper.datasets.depth_images import (
    decoded,
    encoded,
    read_colours,
    read_depth,
    write_depth,
)
from setpoint_paper.datasets.files import Folder


class Pair(NamedTuple):
    """The two files of a frame, its place in the whole video, and a label for what is cached."""

    place: int
    label: str
    rgb: Path
    depth: Path


@dataclass(frozen=True, slots=True)
class Frames:
    """Consecutive frames of video on disk, read when they are asked for; depth in metres.

    `frames[0]` reads a `Frame`, a slice reads nothing and is `Frames` again, so 10,000 frames need
    the memory of one. `kitti` makes it.

    Parameters
    ----------
    name
        What the video is called.
    pairs
        The files of each frame.
    view
        What is done to each frame once it is read: `Crop`, `Augmentation`, or None.
    fill
        False leaves holes of the depth invalid; True fills them by `fill_depth`.
    cache
        Folder for filled depth maps, which take seconds each; None keeps none.
    seed
        Seed of everything random in the view: one for each trial.
    epoch
        None gives a frame the same view on each reading, 0, 1, … another one in each epoch.
    note
        What a reader of results must know.
    """

    name: str
    pairs: tuple[Pair, ...]
    view: Crop | Augmentation | None = None
    fill: bool = False
    cache: Folder = None
    seed: int = 0
    epoch: int | None = None
    note: str = ""

    def __post_init__(self) -> None:
        whole(self.seed, "seed", 0)
        if self.epoch is not None:
            whole(self.epoch, "epoch", 0)

    def training(self, epoch: int, view: Augmentation) -> "Frames":
        """The same frames under random changes, others in each epoch, the same for equal seeds."""
        return replace(self, view=view, epoch=epoch)

    def __len__(self) -> int:
        return len(self.pairs)

    @overload
    def __getitem__(self, place: int) -> Frame: ...
    @overload
    def __getitem__(self, place: slice) -> "Frames": ...
    def __getitem__(self, place: int | slice) -> "Frame | Frames":
        if isinstance(place, slice):
            return replace(self, pairs=self.pairs[place])
        return self._read(self.pairs[place])

    def _read(self, pair: Pair) -> Frame:
        rgb = read_colours(pair.rgb)
        depth = read_depth(pair.depth)
        if rgb.shape[:2] != depth.shape:
            raise DataError(
                f"{pair.rgb} and {pair.depth} must be of one size, got {rgb.shape[0]} × "
                f"{rgb.shape[1]} and {depth.shape[0]} × {depth.shape[1]}"
            )
        if self.fill:
            depth = self._filled(rgb, depth, pair)
        if self.view is not None:
            turn = 0 if self.epoch is None else self.epoch + 1
            rng = np.random.default_rng((self.seed, turn, pair.place))
            rgb, depth = self.view.apply(rgb, depth, rng)
        return Frame(rgb, depth)

    def _filled(
        self, rgb: NDArray[np.uint8], depth: NDArray[np.float32], pair: Pair
    ) -> NDArray[np.float32]:
        """The depth without holes, rounded as a file holds it, so that a cache changes nothing."""
        kept = None if self.cache is None else Path(self.cache) / f"{pair.label}.png"
        if kept is not None and kept.is_file():
            held = read_depth(kept)
            if held.shape != depth.shape:
                raise DataError(
                    f"{kept} must be {depth.shape[0]} × {depth.shape[1]} as {pair.depth} is, got "
                    f"{held.shape[0]} × {held.shape[1]}: remove it, or use another cache"
                )
            return held
        filled = fill_depth(rgb, depth)
        if kept is not None:
            write_depth(kept, filled)
        return decoded(encoded(filled))
