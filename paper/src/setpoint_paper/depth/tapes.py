"""Depth clips reduced to critical values, made once: by clip, model, heuristic and seed.

A heuristic goes through the maps of a model once, and leaves the sorted critical values of each
frame, from which every controller is tuned and judged in seconds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from setpoint._files import make_folder
from setpoint._files import whole as whole_file
from setpoint.controller import Controller
from setpoint.images import (
    PreviousResiduals,
    RegisteredResiduals,
    ResidualMagnitude,
    SpreadModel,
)
from setpoint.images.heuristics import Constant
from setpoint.images.model import line
from setpoint.losses import CentreFailure, ImageMiscoverage
from setpoint.predictions import PixelSpread
from setpoint.regions import Centre, Whole
from setpoint.sets import PixelScale
from setpoint.tape import Tape
from setpoint_paper.datasets.clips import Split
from setpoint_paper.depth.criticals import CriticalValues, FrameTape
from setpoint_paper.depth.registration import EachRegistered
from setpoint_paper.models import StoredPredictions
from setpoint_paper.work import one_thread

IMAGE, CENTRE = 0.2, 0.1
"""The levels of image miscoverage and centre failure."""

GEOMETRIES = {"text": Centre(), "authors": Centre(height=50 / 188)}
"""The centre: 50 of 448 pixels of each side, as the text has it; and as in the authors' code, where
the same window lies in the 188 of 448 rows that are not padding."""

REGIONS = (Whole(), *GEOMETRIES.values())

KNOWN, REACH = 200, 2.0
"""Pixels of each frame that give scale and shift; the upper bound of λ, in ranges of depth."""


def risks(geometry: str) -> tuple[tuple[Any, float], ...]:
    """The losses and their levels, by the geometry of the centre."""
    region = GEOMETRIES[geometry]
    return (ImageMiscoverage(), IMAGE), (CentreFailure(region=region), CENTRE)


_SETTLED = 5
"""The first frames of the warm-up, in which heuristics fill their windows, start nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """The validation and test part of a clip under one heuristic, reduced to critical values.

    Parameters
    ----------
    rows
        The tape.
    validation
        How many of its first frames are to tune on.
    bound
        The largest λ before the safeguard.
    starts
        The λ that would have held the image risk on the end of the warm-up, then that of the
        centre in each geometry.
    pixel
        What λ is multiplied by to be what the authors' code has as the length: that of judged pixel
        i of frame i of the test part; NaN before it.
    shown
        Of one frame of the test part: its place in the tape, its place in the clip, and centre,
        low and high.
    """

    rows: Tape
    validation: int
    bound: float
    starts: tuple[float, ...]
    pixel: np.ndarray
    shown: tuple[int, int, np.ndarray]

    def tape(self, start: int | None = None, stop: int | None = None) -> Tape:
        """Its frames from start to stop, as `FrameTape` has them."""
        return self.rows[start:stop]

    def controller(self, controller: Controller) -> Controller:
        """The controller with a family that reads the tape, as `FrameTape` has it."""
        sets = CriticalValues(REGIONS)
        return Controller(sets, controller.risks, controller.stretch, controller.combine)


def _extra(path: Path) -> Path:
    return path.with_suffix(".beside.npz")


def stored(path: Path) -> Frames | None:
    """The frames in a file, None if it is not there."""
    if not (path.is_file() and _extra(path).is_file()):
        return None
    with np.load(_extra(path), allow_pickle=False) as held:
        place, number = held["place"].tolist()
        return Frames(
            Tape.read(path),
            int(held["validation"]),
            float(held["bound"]),
            tuple(held["starts"].tolist()),
            held["pixel"],
            (place, number, held["maps"]),
        )


class Source(Protocol):
    """Where frames and their estimates come from: a clip with a model, or KITTI with a network.

    Parameters
    ----------
    clip, model, seed
        What a row of results calls it.
    label
        What ends the names of figures of one run.
    """

    @property
    def clip(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def label(self) -> str: ...

    def prepare(self, heuristics: Sequence[str], cache: Path) -> None:
        """Makes what some heuristics share and is slow: the maps of networks."""

    def tape_name(self, heuristic: str) -> str:
        """What the tape of a heuristic is called, after all that could change it."""

    def frames(self, cache: Path) -> Any:
        """The frames that are judged: `frames[number]` is a `Frame`."""

    def parts(self, cache: Path) -> tuple[Split, int]:
        """The parts of the video, and the first frame that has an estimate."""

    def maps(self, heuristic: str, cache: Path) -> np.ndarray:
        """The estimate of every frame from there on, made before its truth is seen."""

    def magnitude(self, model: Callable[[Any], SpreadModel], cache: Path) -> Any:
        """What says how large residuals will be: a network of them, which has learnt."""


_HEURISTICS: dict[str, Callable[[], Any]] = {
    "constant": Constant,
    "previous": PreviousResiduals,
    "registered": RegisteredResiduals,
    "registered_paper": EachRegistered,
}


def path_of(source: Source, heuristic: str, cache: Path) -> Path:
    """The file of the finished tape."""
    return cache / f"{source.tape_name(heuristic)}.npz"


def make(source: Source, heuristic: str, cache: Path) -> Frames:
    """The frames of a source under a heuristic: read if they are finished, else made."""
    path = path_of(source, heuristic, make_folder(cache))
    found = stored(path)
    if found is not None:
        return found
    maps = source.maps(heuristic, cache)

    def model(part: Any) -> SpreadModel:
        # The constant is the paper's, the same for every frame; the others are brought to the known
        # pixels, as residuals are in the paper.
        rescale = None if isinstance(part, Constant) else line
        return SpreadModel(StoredPredictions(maps), part, KNOWN, source.seed, rescale=rescale)

    with one_thread():
        if heuristic == "magnitude":
            part = ResidualMagnitude(source.magnitude(model, cache))
        else:
            part = _HEURISTICS[heuristic]()
        parts, begin = source.parts(cache)
        kept, extra = reduced(source.frames(cache), parts, begin, model(part))
    with whole_file(_extra(path)) as file:
        np.savez_compressed(file, **extra)
    kept.tape().write(path)
    found = stored(path)
    assert found is not None
    return found


def reduced(
    clip: Any, parts: Split, begin: int, model: SpreadModel
) -> tuple[FrameTape, dict[str, Any]]:
    """The validation and test part as critical values, and what else `Frames` holds.

    The heuristic warms up on the frames from `begin` to the end of the warm-up. `clip[number]` is
    a `Frame`.
    """
    sets = PixelScale()
    units, past = [], FrameTape(REGIONS)
    least, most = np.inf, -np.inf
    for number in range(begin, parts.warm_up.stop):
        spread, truth = step(model, clip, number)
        if number >= begin + _SETTLED:
            units.append(sets.unit(sets.read(spread)))
            past.add(spread, truth)
        if np.isfinite(truth).any():
            least, most = min(least, np.nanmin(truth)), max(most, np.nanmax(truth))
        model.learn(clip[number].rgb, truth)
    bound = REACH * float(most - least) / (float(np.mean(units)) or 1.0)
    kept = FrameTape(REGIONS)
    pixel = []
    first = parts.validation.start
    chosen = parts.test.start + min(20, len(parts.test) // 2)
    for number in range(first, parts.test.stop):
        spread, truth = step(model, clip, number)
        judged = np.asarray(spread.valid) & np.isfinite(truth)
        # Lengths are those of the pixels that are judged: nobody knows how far the sky is.
        kept.add(PixelSpread(spread.centre, spread.low, spread.high, judged), truth)
        pixel.append(_one_pixel(spread, judged, number - parts.test.start))
        if number == chosen:
            shown = np.stack([np.where(judged, each, np.nan) for each in spread[:3]])
        model.learn(clip[number].rgb, truth)
    extra = {
        "place": np.array([chosen - first, chosen]),
        "maps": shown.astype(np.float32),
        "validation": np.array(len(parts.validation)),
        "bound": np.array(bound),
        "starts": np.array(
            [
                _calm(past, loss, level, bound)
                for loss, level in (risks("text")[0], *(risks(each)[1] for each in GEOMETRIES))
            ]
        ),
        "pixel": np.array(pixel),
    }
    return kept, extra


def _one_pixel(spread: PixelSpread, judged: np.ndarray, number: int) -> float:
    """The sum of both scales at the judged pixel of a number, NaN where there is none."""
    both = np.asarray(spread.low) + np.asarray(spread.high)
    return float(both[judged][number]) if 0 <= number < int(judged.sum()) else np.nan


def _calm(frames: FrameTape, loss: Any, level: float, bound: float) -> float:
    """The smallest λ up to a bound that would have kept the mean loss of frames at its level."""
    readings = [frames.family.read(row) for row in zip(*frames.tape().prediction, strict=True)]
    low, high = 0.0, bound
    for _ in range(60):
        middle = 0.5 * (low + high)
        losses = [loss(frames.family.at(reading, middle), None) for reading in readings]
        judged = [each for each in losses if each is not None]
        if judged and sum(judged) / len(judged) > level:
            low = middle
        else:
            high = middle
    return high


def step(model: SpreadModel, clip: Any, number: int) -> tuple[PixelSpread, np.ndarray]:
    """What a model says of a frame, and its truth."""
    frame = clip[number]
    return model.predict(frame.rgb, frame.depth), frame.depth
