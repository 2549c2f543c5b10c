"""A road scene made by formula: colours, and a depth that is known, not measured."""

from math import pi

import numpy as np
from numpy.typing import NDArray

from setpoint._check import whole
from setpoint_paper.datasets.clips import Clip

Floats = NDArray[np.float64]
_RATE = 10.0  # frames a second
_ABOVE = 1.65  # of the camera above the road, m
_FAR = 80.0  # m: beyond it no depth is known
_BLOCK = 12.0  # of road with one house or a gap on each side, m
_CARS = 6


def road(frames: int = 500, height: int = 64, width: int = 96, seed: int = 0) -> Clip:
    """A drive between houses with other cars, at 10 frames a second; exact depth up to 80 m.

    The camera drives faster and slower, nods and turns. What drifts, so that an online model has
    something to follow: at 30 % of the clip the town ends and a faster, emptier road begins, until
    75 %; fog comes and goes around 50 % and 90 %; night falls from 60 % to 70 % and ends at 85 %.
    Equal arguments give equal clips.

    Parameters
    ----------
    frames, height, width
        Size of the clip; at least 1 frame of 16 × 16.
    seed
        Of the street, the traffic and the noise.

    Examples
    --------
    >>> clip = road(20, height=48, width=72, seed=3)
    >>> clip.depth.shape, bool(np.nanmax(clip.depth) <= 80.0)
    ((20, 48, 72), True)
    """
    whole(frames, "frames", 1)
    whole(height, "height", 16)
    whole(width, "width", 16)
    rng = np.random.default_rng(seed)
    share = np.arange(frames) / frames
    country = (share >= 0.3) & (share < 0.75)
    fog = 0.03 * _bump(share, 0.5) + 0.06 * _bump(share, 0.9)
    night = np.clip(10.0 * (share - 0.6), 0, 1) - np.clip(20.0 * (share - 0.8), 0, 1)
    speed = np.where(country, 18.0, 8.0) * (1.0 + 0.3 * _wander(rng, frames, 120.0))
    along = np.cumsum(speed) / _RATE
    turn, nod = 0.08 * _wander(rng, frames, 60.0), 0.01 * _wander(rng, frames, 12.0)
    houses = rng.uniform(3.0, 12.0, (2, 256)) * (rng.random((2, 256)) > 0.2)
    paints = rng.uniform(60.0, 200.0, (2, 256, 3))
    grain = rng.normal(1.0, 0.06, (64, 64))
    cars = rng.uniform(8.0, _FAR, _CARS)
    tones, lanes = rng.uniform(40.0, 230.0, (_CARS, 3)), np.where(np.arange(_CARS) % 2, -1.75, 1.75)
    focal = 0.58 * width  # as KITTI's camera has
    across = (np.arange(width) + 0.5 - width / 2) / focal
    down = (np.arange(height) + 0.5 - 0.46 * height) / focal
    rgb, depth = np.empty((frames, height, width, 3), np.uint8), np.empty((frames, height, width))
    for place in range(frames):
        x, y = across + turn[place], (down + nod[place])[:, None]
        far, paint = _street(x, y, along[place], houses * (0.4 if country[place] else 1.0), paints)
        ground = np.where(y > 1e-3, _ABOVE / np.maximum(y, 1e-3), 1e6) + 0.0 * x
        near = ground < np.minimum(far, 1e6)
        lateral, ahead = x * ground, ground + along[place]
        cells = (2.0 * lateral).astype(np.int64) & 63, (2.0 * ahead).astype(np.int64) & 63
        dark = np.where(np.abs(lateral) < 3.5, 92.0, 130.0) * grain[cells]
        marked = (np.abs(lateral) < 0.1 + 0.01 * ground) & (np.mod(ahead, 9.0) < 4.0)
        paint[near] = np.where(marked, 216.0, dark)[near][:, None]
        far = np.where(near, ground, far)
        moved = np.where(lanes > 0, rng.uniform(-0.1, 0.1, _CARS), -2.0) * speed[place] / _RATE
        cars += moved
        gone = (cars < 2.5) | (cars > 1.2 * _FAR)
        cars = np.where(gone, rng.uniform(0.6 * _FAR, _FAR, _CARS), cars)
        for car in np.argsort(-cars):
            inside = (np.abs(x * cars[car] - lanes[car]) < 0.9) & (cars[car] < far)
            level = _ABOVE - y * cars[car]
            inside &= (level > 0.0) & (level < 1.5)
            far[inside] = cars[car]
            shade = np.where(level > 1.0, 0.5, 1.0)[..., None] * tones[car] + np.zeros(3)
            paint[inside] = np.broadcast_to(shade, paint.shape)[inside]
        clear = np.exp(-fog[place] * np.minimum(far, 1e4))[..., None]
        lamps = np.exp(-np.minimum(far, 1e4) / 14.0 - 3.0 * across**2)[..., None]
        light = 1.0 - 0.9 * night[place] + 0.8 * night[place] * lamps
        noise = rng.standard_normal(paint.shape) * (2.0 + 5.0 * night[place])
        rgb[place] = np.clip((paint * clear + 200.0 * (1.0 - clear)) * light + noise, 0, 255)
        depth[place] = np.where(far <= _FAR, far, np.nan)
    return Clip("road", rgb, depth.astype(np.float32))


def _street(
    x: Floats, y: Floats, along: float, houses: Floats, paints: Floats
) -> tuple[Floats, Floats]:
    """The distance and colour of the sky and of the houses, a wall along each side of the road."""
    shape = (len(y), len(x))
    far = np.full(shape, np.inf)
    low = np.clip(1.0 + y / 0.5, 0.0, 1.0)[..., None]
    paint = np.array([96.0, 140.0, 198.0]) * (1.0 - low) + 210.0 * low + np.zeros((*shape, 3))
    z = 7.5 / np.maximum(np.abs(x), 1e-6)
    side, block = (x > 0).astype(int), ((along + z) // _BLOCK).astype(np.int64) % 256
    within = np.mod(along + z, _BLOCK)
    tall = np.where((within > 1.0) & (z > 2.0), houses[side, block], 0.0)
    level = _ABOVE - y * z
    drawn = (level > 0.0) & (level < tall)
    window = (np.mod(within, 3.0) > 1.6) & (np.mod(level, 3.0) > 1.5)
    far[drawn] = np.broadcast_to(z, shape)[drawn]
    shade = np.where(window, 0.45, 1.0)[..., None] * paints[side, block]
    paint[drawn] = shade[drawn]
    return far, paint


def _bump(share: Floats, middle: float) -> Floats:
    """From 0 to 1 and back around a place of the clip."""
    return 0.5 + 0.5 * np.cos(pi * np.clip(np.abs(share - middle) / 0.07, 0.0, 1.0))


def _wander(rng: np.random.Generator, frames: int, period: float) -> Floats:
    """A smooth path between −1 and 1: three waves of about this period, in frames."""
    periods, phases = period * rng.uniform(0.6, 1.8, 3), rng.uniform(0, 2 * pi, 3)
    made: Floats = np.sin(2 * pi * np.arange(frames)[:, None] / periods + phases).mean(axis=1)
    return made
