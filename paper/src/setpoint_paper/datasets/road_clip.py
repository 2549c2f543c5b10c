"""A road scene made by formula: colours, and a depth that is known, not measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi

import numpy as np
from numpy.typing import NDArray

from setpoint._check import choice, positive, whole
from setpoint.errors import InputError
from setpoint_paper.datasets.canvas import Canvas, Floats, colour
from setpoint_paper.datasets.clips import Clip

__all__ = ["DRIFTS", "road"]

DRIFTS = ("fog", "night", "jump")
_RATE = 10.0  # frames a second
_HEIGHT = 1.65  # of the camera above the road, m
_LANE = 1.75  # from the centre line to the middle of a lane, m
_BLOCK = 12.0  # of road with one house or a gap on each side, m
_BLOCKS = 256  # after which the street repeats
_NEAREST = 2.0  # m: what is nearer is beside or behind the camera
_GAPS = {"town": 0.15, "country": 0.25}  # share of the blocks where nothing stands

_FOG = colour(196, 200, 206)
_SKY = (colour(96, 140, 198), colour(198, 214, 232))
_ROAD, _LINE = colour(92, 92, 96), colour(216, 216, 210)
_VERGES = {"town": colour(140, 136, 130), "country": colour(92, 122, 62)}
_TRUNK, _DARK, _GLASS = colour(84, 64, 46), colour(28, 28, 32), colour(52, 62, 74)


def road(
    frames: int = 500,
    height: int = 64,
    width: int = 96,
    seed: int = 0,
    *,
    drift: str | Sequence[str] = DRIFTS,
    cars: int = 6,
    far: float = 80.0,
) -> Clip:
    """A drive along a road with bends, houses, trees and other cars, at 10 frames a second.

    The camera follows the right lane 1.65 m above it, faster and slower, nods and turns. Depth is
    exact, along the optical axis, and NaN in the sky and beyond `far`. What drifts, so that an
    online model has something to follow, happens at fixed shares of the clip:

    - "fog" comes and goes around 50 % and, thicker, around 90 %;
    - "night" falls from 60 % to 70 % and ends from 80 % to 85 %, with the light of the car's lamps
      and a noisier camera;
    - "jump": at 30 % the town ends and a faster country road begins, at 75 % another town.

    Equal arguments give equal clips.

    Parameters
    ----------
    frames, height, width
        Size of the clip; at least 1 frame of 16 × 16.
    seed
        Seed of the street, the traffic and the noise.
    drift
        Which of "fog", "night" and "jump" happen, "none" or (): nothing changes but the scene.
    cars
        How many cars drive in view; parked ones come on top.
    far
        Metres beyond which no depth is known.

    Examples
    --------
    >>> import numpy as np
    >>> clip = road(20, height=48, width=72, seed=3, drift="none")
    >>> bool(np.nanmax(clip.depth) <= 80)
    True
    >>> road(20, height=48, width=72, seed=3, drift="fog").depth.shape
    (20, 48, 72)
    """
    whole(frames, "frames", 1)
    whole(height, "height", 16)
    whole(width, "width", 16)
    whole(cars, "cars", 0)
    if positive(far, "far") < 10:
        raise InputError(f"far must be at least 10 metres, got {far}")
    wanted = _drifts(drift)
    rng = np.random.default_rng(seed)
    share = np.arange(frames) / frames
    scenes = _scenes(rng, share, "jump" in wanted)
    motion = _motion(rng, frames, scenes)
    traffic = _Traffic(rng, cars, far)
    fog = _bump(share, 0.5, 0.07) * 0.6 + _bump(share, 0.9, 0.07) if "fog" in wanted else share * 0
    night = _ramp(share, 0.6, 0.7) - _ramp(share, 0.8, 0.85) if "night" in wanted else share * 0

    canvas = Canvas(height, width, _HEIGHT)
    rgb = np.empty((frames, height, width, 3), dtype=np.uint8)
    depth = np.empty((frames, height, width), dtype=np.float32)
    for place in range(frames):
        pose, scene = motion[place], scenes[place]
        canvas.begin(pose.bend, pose.heading, pose.offset, pose.nod)
        _draw(canvas, scene, pose, far)
        traffic.move(pose.speed / _RATE, first=place == 0)
        traffic.draw(canvas)
        _light(canvas, rng, float(fog[place]), float(night[place]))
        rgb[place] = canvas.colours
        depth[place] = np.where(canvas.depth <= far, canvas.depth, np.nan)
    note = f"drift: {', '.join(wanted)}" if wanted != DRIFTS else ""
    return Clip("road", rgb, depth, None, _RATE, "computed", note if wanted else "no drift")


def _drifts(drift: str | Sequence[str]) -> tuple[str, ...]:
    asked = (drift,) if isinstance(drift, str) else tuple(drift)
    for each in asked:
        choice(each, "drift", (*DRIFTS, "none"))
    if "none" in asked and len(asked) > 1:
        raise InputError(f"drift must be 'none' alone or without 'none', got {asked}")
    return tuple(each for each in DRIFTS if each in asked)


def _bump(share: Floats, middle: float, half: float) -> Floats:
    """From 0 to 1 and back around a place of the clip."""
    away = np.clip(np.abs(share - middle) / half, 0.0, 1.0)
    return 0.5 + 0.5 * np.cos(pi * away)


def _ramp(share: Floats, start: float, end: float) -> Floats:
    return np.clip((share - start) / (end - start), 0.0, 1.0)


# The street


@dataclass(frozen=True, slots=True, eq=False)
class _Street:
    """What stands on the two sides of a road, block by block; first axis: left, right."""

    kind: str
    tall: Floats  # metres, 0 where nothing stands
    setback: NDArray[np.int64]  # 0 or 1: which of the two lines
    colours: NDArray[np.float32]
    parked: NDArray[np.bool_]
    grain: NDArray[np.float32]  # brightness of the ground, repeated every 64 cells

    @property
    def lines(self) -> tuple[float, float]:
        """Distance of the two lines of houses or trees from the centre of the road."""
        return (7.5, 10.5) if self.kind == "town" else (6.5, 9.5)


def _scenes(rng: np.random.Generator, share: Floats, jumps: bool) -> list[_Street]:
    streets = [_street(rng, kind) for kind in ("town", "country", "town")]
    if not jumps:
        return [streets[0]] * len(share)
    return [streets[int(at >= 0.3) + int(at >= 0.75)] for at in share]


def _street(rng: np.random.Generator, kind: str) -> _Street:
    size = (2, _BLOCKS)
    empty = rng.random(size) < _GAPS[kind]
    if kind == "town":
        tall = rng.uniform(5.0, 14.0, size)
        base = np.array([150.0, 128.0, 108.0])
    else:
        tall = rng.uniform(3.5, 8.0, size)
        base = np.array([58.0, 92.0, 46.0])
    colours = base * rng.uniform(0.7, 1.3, (*size, 1)) + rng.normal(0.0, 14.0, (*size, 3))
    return _Street(
        kind,
        np.where(empty, 0.0, tall),
        rng.integers(0, 2, size),
        np.clip(colours, 20, 235).astype(np.float32),
        rng.random(size) < (0.45 if kind == "town" else 0.04),
        rng.normal(1.0, 0.06, (64, 64)).astype(np.float32),
    )


@dataclass(frozen=True, slots=True)
class _Pose:
    """Where the camera is on its road, how it stands to it, and how the road bends."""

    along: float
    speed: float
    bend: float
    heading: float
    offset: float
    nod: float


def _motion(rng: np.random.Generator, frames: int, scenes: list[_Street]) -> list[_Pose]:
    base = np.array([8.0 if each.kind == "town" else 18.0 for each in scenes])
    speed = base * (1 + 0.3 * _wander(rng, frames, 120))
    along = np.cumsum(speed) / _RATE
    bend = 0.005 * _wander(rng, frames, 90)
    heading = 0.05 * _wander(rng, frames, 60)
    offset = _LANE + 0.4 * _wander(rng, frames, 80)
    nod = 0.006 * _wander(rng, frames, 12)
    every = zip(along, speed, bend, heading, offset, nod, strict=True)
    return [_Pose(*map(float, each)) for each in every]


def _wander(rng: np.random.Generator, frames: int, period: float) -> Floats:
    """A smooth path between −1 and 1: three waves of about this period, in frames."""
    periods = period * rng.uniform(0.6, 1.8, 3)
    phases = rng.uniform(0, 2 * pi, 3)
    steps = np.arange(frames)[:, None]
    made: Floats = np.sin(2 * pi * steps / periods + phases).mean(axis=1)
    return made


def _draw(canvas: Canvas, street: _Street, pose: _Pose, far: float) -> None:
    canvas.sky(*_SKY)
    canvas.ground(
        pose.along, street.grain, _ROAD, _LINE, _VERGES[street.kind], kerb=street.kind == "town"
    )
    blocks = range(int((pose.along + far) // _BLOCK), int(pose.along // _BLOCK) - 1, -1)
    if street.kind == "town":
        canvas.walls(pose.along, street.tall, street.setback, street.colours, street.lines, _BLOCK)
    for block in blocks:
        for side in (0, 1):
            _stand(canvas, street, block, side, block * _BLOCK - pose.along)


def _stand(canvas: Canvas, street: _Street, block: int, side: int, away: float) -> None:
    """What faces the camera in a block: the end of a house, or a tree, and a parked car."""
    at = block % _BLOCKS
    sign = 1.0 if side else -1.0
    tall = float(street.tall[side, at])
    line = street.lines[street.setback[side, at]]
    paint = street.colours[side, at]
    z = away + 1.0
    if tall > 0 and z > _NEAREST:
        if street.kind == "town":
            canvas.box(z, sign * (line + 4.0), 8.0, 0.0, tall, paint * np.float32(0.8))
        else:
            canvas.box(z, sign * line, 0.5, 0.0, 0.5 * tall, _TRUNK)
            canvas.ball(z, sign * line, 0.8 * tall, 0.3 * tall, tall, paint)
    if street.parked[side, at] and away + 5.0 > _NEAREST:
        _car(canvas, away + 5.0, sign * 4.6, paint[::-1], rear=side == 1)


# Other cars


def _car(canvas: Canvas, z: float, lateral: float, paint: NDArray[np.float32], rear: bool) -> None:
    canvas.box(z, lateral, 1.7, 0.0, 0.35, _DARK)
    canvas.box(z, lateral, 1.8, 0.25, 0.95, paint)
    canvas.box(z, lateral, 1.45, 0.95, 1.5, paint * np.float32(0.8))
    canvas.box(z, lateral, 1.2, 1.0, 1.4, _GLASS)
    lamp = colour(190, 30, 28) if rear else colour(246, 240, 210)
    for end in (-0.7, 0.7):
        canvas.box(z, lateral + end, 0.3, 0.6, 0.8, lamp)


class _Traffic:
    """Cars of both directions; one that is passed or lost comes again far ahead."""

    def __init__(self, rng: np.random.Generator, cars: int, far: float) -> None:
        self._rng = rng
        self._far = far
        self._away = rng.uniform(8.0, far, cars)
        self._mine = np.arange(cars) % 2 == 0
        self._speed = np.where(self._mine, rng.uniform(0.85, 1.15, cars), -1.0)
        self._paint = rng.uniform(40, 230, (cars, 3)).astype(np.float32)

    def move(self, step: float, *, first: bool) -> None:
        """One frame further, the camera having driven `step` metres."""
        if not first:
            self._away += (self._speed - 1.0) * step
        gone = (self._away < _NEAREST) | (self._away > 1.2 * self._far)
        # Drawn for every car, so that the traffic of a seed does not depend on who is gone.
        again = self._far * self._rng.uniform(0.6, 1.2, len(gone))
        self._away = np.where(gone, again, self._away)
        # Nobody drives into the car ahead.
        self._away = np.where(self._mine, np.maximum(self._away, 7.0), self._away)

    def draw(self, canvas: Canvas) -> None:
        for each in np.argsort(-self._away):
            mine = bool(self._mine[each])
            lateral = _LANE if mine else -_LANE
            _car(canvas, float(self._away[each]), lateral, self._paint[each], rear=mine)


# Light


def _light(canvas: Canvas, rng: np.random.Generator, fog: float, night: float) -> None:
    """Fog by distance, night with the lamps of the car, and the noise of the camera."""
    if fog > 0:
        canvas.veil(0.06 * fog, _FOG)
    if night > 0:
        canvas.darken(night)
    canvas.noise(rng, 2.0 + 5.0 * night)
