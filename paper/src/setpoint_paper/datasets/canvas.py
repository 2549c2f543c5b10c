"""The drawing of a road scene: each surface into the colours and, where nearest, the depth."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Canvas", "Floats", "colour"]

Floats = NDArray[np.float64]
Paint = NDArray[np.float32]
_FOCAL = 0.58  # of the width, as KITTI's camera has
_HORIZON = 0.46  # of the height
_SKY_DISTANCE = np.float32(1e4)


def colour(red: float, green: float, blue: float) -> Paint:
    """A colour, 0 to 255 each."""
    return np.array([red, green, blue], dtype=np.float32)


class Canvas:
    """One frame in the making, seen from a camera above a road that bends.

    `depth` is the distance along the optical axis, infinite in the sky; `paint` the colours. A
    point at distance z and `lateral` metres right of the centre line of the road is seen
    lateral − offset + heading · z + ½ bend · z² metres right of the optical axis.
    """

    def __init__(self, height: int, width: int, above: float) -> None:
        self._above = np.float32(above)
        self._focal = _FOCAL * width
        self._middle = _HORIZON * height
        self._across = ((np.arange(width) + 0.5 - width / 2) / self._focal).astype(np.float32)
        self._rows = np.arange(height) + 0.5
        self._down = np.zeros(height, dtype=np.float32)
        self.depth = np.empty((height, width), dtype=np.float32)
        self.paint = np.empty((height, width, 3), dtype=np.float32)
        self.begin(0.0, 0.0, 0.0, 0.0)

    def begin(self, bend: float, heading: float, offset: float, nod: float) -> None:
        """A new frame from a new place."""
        self._bend, self._heading, self._offset = bend, heading, offset
        self._centre = self._middle + nod * self._focal
        self._down = ((self._rows - self._centre) / self._focal).astype(np.float32)
        self.depth.fill(np.inf)

    @property
    def colours(self) -> NDArray[np.uint8]:
        """The colours as whole numbers."""
        return np.clip(self.paint, 0, 255).astype(np.uint8)

    def sky(self, top: Paint, bottom: Paint) -> None:
        """A sky that is brighter towards the horizon."""
        low = np.clip(self._rows / self._centre, 0, 1).astype(np.float32)[:, None]
        self.paint[:] = (top + (bottom - top) * low)[:, None, :]

    def ground(
        self, along: float, grain: Paint, road: Paint, line: Paint, verge: Paint, *, kerb: bool
    ) -> None:
        """The plane the camera drives on: road, markings, and what is beside it."""
        first = int(np.searchsorted(self._down, np.float32(1e-3)))
        z = (self._above / self._down[first:])[:, None]
        centre = self._offset - self._heading * z - 0.5 * self._bend * z * z
        lateral = self._across * z + centre.astype(np.float32)
        ahead = np.float32(along % 3600.0) + z
        beside = np.abs(lateral)
        # A marking narrower than a pixel still shows: a camera would see it blurred.
        half = np.float32(0.09) + z * np.float32(0.35 / self._focal)
        dashed = (beside < half) & (np.mod(ahead, 9.0) < 4.0)
        marked = dashed | (np.abs(beside - np.float32(3.3)) < half)
        paint = self.paint[first:]
        paint[:] = verge
        paint[beside < 3.5] = road
        if kerb:
            paint[np.abs(beside - np.float32(3.6)) < 0.1] = verge * np.float32(1.25)
        paint[marked] = line
        cells = (lateral * 2).astype(np.int64) & 63, (ahead * 2).astype(np.int64) & 63
        paint *= grain[cells][:, :, None]
        self.depth[first:] = z

    def walls(
        self,
        along: float,
        tall: Floats,
        setback: NDArray[np.int64],
        colours: Paint,
        lines: tuple[float, float],
        block: float,
    ) -> None:
        """The sides of houses that run along the road: every column sees at most the nearest."""
        wide = len(self._across)
        nearest = np.full(wide, np.inf, dtype=np.float32)
        top = np.zeros(wide, dtype=np.float32)
        paint = np.zeros((wide, 3), dtype=np.float32)
        spots = np.zeros(wide, dtype=np.float32)
        blocks = tall.shape[1]
        for side, sign in ((0, -1.0), (1, 1.0)):
            for place, line in enumerate(lines):
                z = self._met(sign * line)
                with np.errstate(invalid="ignore"):
                    reach = np.where(np.isfinite(z), along + z, -1.0)
                at = (reach // block).astype(np.int64) % blocks
                within = np.mod(reach, block)
                stands = (tall[side, at] > 0) & (setback[side, at] == place)
                hit = stands & (within > 1) & (within < block - 1) & (z < nearest) & (z > 1)
                nearest[hit] = z[hit]
                top[hit] = tall[side, at[hit]]
                paint[hit] = colours[side, at[hit]]
                spots[hit] = within[hit]
        seen = np.flatnonzero(np.isfinite(nearest))
        if not len(seen):
            return
        near = nearest[seen]
        level = self._above - self._down[:, None] * near
        drawn = (level > 0) & (level < top[seen]) & (near < self.depth[:, seen])
        window = (np.mod(spots[seen], 3.0) > 1.6) & (np.mod(level, 3.0) > 1.5)
        shade = np.where(window, np.float32(0.45), np.float32(1.0))
        mixed = paint[seen] * shade[:, :, None]
        self.depth[:, seen] = np.where(drawn, near, self.depth[:, seen])
        self.paint[:, seen] = np.where(drawn[:, :, None], mixed, self.paint[:, seen])

    def _met(self, lateral: float) -> Floats:
        """The distance at which the ray of each column meets a line along the road, or inf."""
        half = 0.5 * self._bend
        slope = self._heading - self._across.astype(np.float64)
        start = lateral - self._offset
        under = slope * slope - 4 * half * start
        with np.errstate(invalid="ignore", divide="ignore"):
            root = np.sqrt(under)
            found = np.stack([2 * start / (-slope + root), 2 * start / (-slope - root)])
        found[~(found > 0)] = np.inf
        met: Floats = found.min(axis=0)
        return met

    def box(
        self, z: float, lateral: float, wide: float, low: float, high: float, paint: Paint
    ) -> None:
        """An upright rectangle that faces the camera, from `low` to `high` metres of height."""
        rows, columns = self._window(z, lateral, wide, low, high)
        depth = self.depth[rows, columns]
        if depth.size:
            nearer = depth >= z
            depth[nearer] = z
            self.paint[rows, columns][nearer] = paint

    def ball(
        self, z: float, lateral: float, wide: float, low: float, high: float, paint: Paint
    ) -> None:
        """An upright ellipse that faces the camera."""
        rows, columns = self._window(z, lateral, wide, low, high)
        depth = self.depth[rows, columns]
        if depth.size:
            away = self._across[columns] * z - self._seen(z, lateral)
            level = self._above - self._down[rows] * z - 0.5 * (low + high)
            round_ = (2 * away / wide) ** 2 + ((2 * level / (high - low)) ** 2)[:, None]
            drawn = (round_ < 1) & (depth >= z)
            depth[drawn] = z
            bright = (0.75 + 0.35 * np.clip(level / (high - low) + 0.5, 0, 1))[:, None, None]
            shaded = (paint * bright.astype(np.float32)) + np.zeros((*depth.shape, 1), np.float32)
            self.paint[rows, columns][drawn] = shaded[drawn]

    def _seen(self, z: float, lateral: float) -> float:
        return lateral - self._offset + self._heading * z + 0.5 * self._bend * z * z

    def _window(
        self, z: float, lateral: float, wide: float, low: float, high: float
    ) -> tuple[slice, slice]:
        """The rows and columns whose middles an upright rectangle covers."""
        per_metre = self._focal / z
        height, width = self.depth.shape
        middle = width / 2 + self._seen(z, lateral) * per_metre
        reach = 0.5 * wide * per_metre
        top = self._centre + (float(self._above) - high) * per_metre
        foot = self._centre + (float(self._above) - low) * per_metre
        return _covered(top, foot, height), _covered(middle - reach, middle + reach, width)

    def veil(self, density: float, veil: Paint) -> None:
        """Fog: the farther, the more of its colour."""
        clear = np.exp(-np.float32(density) * np.minimum(self.depth, _SKY_DISTANCE))[:, :, None]
        self.paint *= clear
        self.paint += veil * (1 - clear)

    def darken(self, night: float) -> None:
        """Night: what is left is the light of the car's own lamps, ahead and near."""
        near = np.exp(-np.minimum(self.depth, _SKY_DISTANCE) / np.float32(14.0))
        lamps = near * np.exp(-3 * self._across * self._across)
        light = np.float32(1 - 0.9 * night) + np.float32(0.8 * night) * lamps
        self.paint *= light[:, :, None]

    def noise(self, rng: np.random.Generator, spread: float) -> None:
        """The noise of the camera."""
        drawn = rng.standard_normal(self.paint.shape, dtype=np.float32)
        drawn *= np.float32(spread)
        self.paint += drawn


def _covered(start: float, end: float, size: int) -> slice:
    """The pixels of 0 … size − 1 whose middles lie between two places."""
    first = min(max(int(np.ceil(start - 0.5)), 0), size)
    last = min(max(int(np.ceil(end - 0.5)), first), size)
    return slice(first, last)
