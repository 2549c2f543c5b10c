"""Clips, models and seeds of the depth experiment, and the maps that models leave, made once.

A map does not depend on what calibrates it, so a model goes through its clip once for each seed.
Files are named by a digest of all that could change them; a model that was stopped goes on where it
was.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._check import choice, whole
from setpoint.errors import DataError, InputError
from setpoint.images import SpreadModel
from setpoint.images.heuristics import Constant
from setpoint_paper.datasets import Clip, Split, kitchen_clip, kitti_clip, road
from setpoint_paper.depth import online
from setpoint_paper.depth.tapes import KNOWN, REACH, step
from setpoint_paper.models import DepthSettings, TorchDepth, small_network
from setpoint_paper.work import one_thread

CLIPS = ("kitti", "kitchen", "road")
MODELS = ("stored", "network")
HEURISTICS = ("constant", "magnitude", "previous", "registered", "registered_paper")
"""The paper's four, and its way of registration beside ours."""

NOT_STORED = (
    "the kitti clip at hand holds no stored predictions: they came with another copy of it and "
    "cannot be made, so only the network runs on it"
)

_ARITHMETIC = 1
"""Raised when the same settings give other numbers: it makes older files unknown."""
_TAPES = 5
"""The same for tapes alone, which the heuristics make of the maps."""
_ROAD_FRAMES = 500
_TAUGHT = 0.75
"""The share of the warm-up that a network is fitted on; the rest it goes through frame by frame."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is the same for all tapes of an experiment.

    Parameters
    ----------
    frames
        How many first frames of a clip, at least 60; None for all.
    epochs
        How often the depth network goes through the frames it is fitted on.
    residual_epochs
        The same for the network of residuals.
    """

    frames: int | None = None
    epochs: int = 12
    residual_epochs: int = 6

    def __post_init__(self) -> None:
        if self.frames is not None:
            whole(self.frames, "frames", 60)
        whole(self.epochs, "epochs", 0)
        whole(self.residual_epochs, "residual_epochs", 0)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One clip, one model, one seed: a source of frames and estimates.

    The seed is that of the networks' first weights and of the known pixels; stored predictions
    have the second alone.
    """

    clip: str
    model: str
    seed: int = 0
    plan: Plan = field(default_factory=Plan)

    def __post_init__(self) -> None:
        choice(self.clip, "a clip", CLIPS)
        choice(self.model, "model", MODELS)
        whole(self.seed, "seed", 0)
        if self.model == "stored" and self.clip != "kitti":
            raise InputError(f"stored predictions come with kitti alone, got {self.clip}")

    def data(self) -> Clip:
        return clip_of(self.clip, self.plan.frames)

    @property
    def settings(self) -> DepthSettings:
        """Shape and training of the depth network."""
        return DepthSettings(seed=self.seed)

    @property
    def residual_settings(self) -> DepthSettings:
        """Shape and training of the network of residuals, which draws from a seed of its own."""
        return DepthSettings(seed=self.seed + 1_000)

    def tape_name(self, heuristic: str) -> str:
        """What a tape is called: by its clip, model, heuristic, seed and digest."""
        own = {"tapes": _TAPES, "heuristic": heuristic, "known": KNOWN, "reach": REACH}
        digest = _digest(self._maps_content() | own | asdict(self.plan))
        return f"depth-{self.clip}-{self.model}-{heuristic}-seed{self.seed}-{digest}"

    @property
    def label(self) -> str:
        return f"{self.clip}-{self.model}"

    def prepare(self, heuristics: Sequence[str], cache: Path) -> None:
        """Makes the maps, which all heuristics share."""
        maps_of(self, cache)

    def frames(self, cache: Path) -> Clip:
        return self.data()

    def parts(self, cache: Path) -> tuple[Split, int]:
        return self.data().split(), self.begin

    def maps(self, heuristic: str, cache: Path) -> np.ndarray:
        """The estimates; every heuristic has the same."""
        return maps_of(self, cache)

    def magnitude(self, model: Callable[[Any], SpreadModel], cache: Path) -> TorchDepth:
        """A network that has learnt the residuals of the end of the warm-up."""
        clip, constant, residuals = self.data(), model(Constant()), []
        warm = range(self.begin, len(clip.split().warm_up))
        for number in warm:
            spread, truth = step(constant, clip, number)
            residuals.append(np.where(spread.valid, spread.centre, np.nan) - truth)
            constant.learn(clip[number].rgb, truth)
        network = small_network(self.residual_settings, residuals=True)
        network.fit(clip.rgb[warm.start : warm.stop], residuals, epochs=self.plan.residual_epochs)
        return network

    def maps_path(self, cache: Path) -> Path:
        """The file of the model's maps; heuristics share it."""
        digest = _digest(self._maps_content())
        return cache / f"depth-{self.clip}-{self.model}-seed{self.seed}-{digest}.npy"

    def _maps_content(self) -> dict[str, Any]:
        return {
            "arithmetic": _ARITHMETIC,
            "clip": _content(self.clip, self.plan.frames),
            "model": self.model,
            "settings": asdict(self.settings),
            "epochs": self.plan.epochs,
        }

    @property
    def begin(self) -> int:
        """The first frame whose map is not one the model was fitted on."""
        if self.model == "stored":
            return 0
        return int(_TAUGHT * len(self.data().split().warm_up))


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


@lru_cache(maxsize=4)
def clip_of(name: str, frames: int | None) -> Clip:
    """A clip by its name, cut to its first frames."""
    if name == "road":
        return road(_ROAD_FRAMES if frames is None else min(frames, _ROAD_FRAMES))
    return (kitti_clip if name == "kitti" else kitchen_clip)(frames=frames)


@lru_cache(maxsize=16)
def _content(name: str, frames: int | None) -> str:
    """A digest of every number of a clip."""
    clip = clip_of(name, frames)
    known = hashlib.sha256()
    for held in (clip.rgb, clip.depth, clip.stored):
        if held is not None:
            known.update(np.ascontiguousarray(held).tobytes())
    return known.hexdigest()


# Maps of a model


def maps_of(recipe: Recipe, cache: Path) -> np.ndarray:
    """The model's map of every frame from `recipe.begin` on, each made before its truth is seen."""
    clip, begin = recipe.data(), recipe.begin
    if recipe.model == "stored":
        if clip.stored is None:
            raise DataError(NOT_STORED)
        return clip.stored
    path = recipe.maps_path(cache)

    def fit(networks: online.Networks, _: int) -> None:
        networks[0].fit(clip.rgb[:begin], clip.depth[:begin], epochs=recipe.plan.epochs)

    def step_on(networks: online.Networks, number: int) -> np.ndarray:
        frame = clip[begin + number]
        shown = networks[0].predict(frame.rgb)
        networks[0].learn(frame.rgb, frame.depth)
        return shown

    if not path.is_file():
        shape = (len(clip) - begin, *clip.shape)
        with one_thread():
            online.run(lambda: [small_network(recipe.settings)], path, shape, 1, fit, step_on)
    return np.asarray(np.load(path, allow_pickle=False))
