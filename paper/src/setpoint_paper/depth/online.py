"""Networks that go through video frame by frame and leave their maps, resumed if stopped."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._files import make_folder
from setpoint.errors import SetpointError
from setpoint_paper.models import TorchDepth
from setpoint_paper.work import Checkpoints

STRIDE = 200
"""Frames between two checkpoints of the networks."""

Networks = Sequence[TorchDepth]


def run(
    make: Callable[[], Networks],
    path: Path,
    shape: tuple[int, ...],
    epochs: int,
    offline: Callable[[Networks, int], None],
    online: Callable[[Networks, int], Any],
) -> None:
    """Leaves the maps of all frames in a file, as an array (…, frames, height, width).

    `make` gives networks as they begin, `offline` teaches them for an epoch, and `online` gives
    their maps of a frame, which it then teaches them.
    """
    reached, unfinished = Checkpoints(path), make_folder(path.parent) / f"{path.stem}.part.npy"
    networks, taught, done = resumed(make, reached, unfinished.is_file())
    maps: Any = np.lib.format.open_memmap(unfinished, "r+" if done else "w+", np.float32, shape)
    for epoch in range(taught, epochs):
        offline(networks, epoch)
        keep(networks, reached, epoch + 1, 0)
    for number in range(done, shape[-3]):
        maps[..., number, :, :] = online(networks, number)
        if (number + 1) % STRIDE == 0:
            maps.flush()
            keep(networks, reached, epochs, number + 1)
    maps.flush()
    del maps  # some systems move no file that is mapped
    os.replace(unfinished, path)
    reached.clear()


def resumed(
    make: Callable[[], Networks], reached: Checkpoints, begun: bool
) -> tuple[Networks, int, int]:
    """The networks of the latest checkpoint, and the epochs and frames they have learnt."""
    for step in reached:
        networks, (epochs, frames) = make(), map(int, step.name.split("-"))
        if frames and not begun:
            continue  # the maps of these frames are gone
        try:
            for number, network in enumerate(networks):
                network.load(step / f"{number}.model")
        except (OSError, SetpointError):
            continue  # damaged: an older one, or the beginning, will do
        return networks, epochs, frames
    return make(), 0, 0


def keep(networks: Networks, reached: Checkpoints, epochs: int, frames: int) -> None:
    """Puts the networks aside."""
    with reached.put(epochs, frames) as step:
        for number, network in enumerate(networks):
            network.save(step / f"{number}.model")
