"""Frames reduced to their critical values, so that calibration can be tuned in seconds.

Of a frame a controller asks only how many pixels of a region are missed at λ: the number of
critical values above it. Sorted, a search answers that, without the frame itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import inf, nan
from typing import Any

import numpy as np

from setpoint._check import choice, is_missing, number
from setpoint.controller import Controller
from setpoint.errors import InputError, PredictionError
from setpoint.regions import Centre, Whole
from setpoint.sets import PixelScale
from setpoint.sets.family import Shares, Supports, size_of
from setpoint.sets.frames import host
from setpoint.tape import Ragged, Tape

Array = np.ndarray[Any, Any]
_SCALE = PixelScale()
Reading = tuple[Any, ...]
"""The sorted critical values of each region, and the mean lengths at the nodes of the family."""

_NODES = (0.0, *(float(node) for node in np.geomspace(0.01, 1e5, 78)), inf)
"""Where lengths are kept of intervals that are cut to a support."""


@dataclass(eq=False, slots=True)
class CriticalSet:
    """What a frame's pixel intervals were at λ, as far as losses and lengths ask."""

    reading: Reading
    lam: float
    family: "CriticalValues"

    def count(self, y: Any, region: Any = None) -> tuple[int, int]:
        """How many pixels of a region, by default the first, are missed, and how many judged."""
        values = self.of(self.family.regions[0] if region is None else region)
        judged = len(values)
        if self.lam == -inf:
            return judged, judged
        return judged - int(values.searchsorted(self.lam, "right")), judged

    def left_out(self, y: Any) -> tuple[int, int]:
        """How many of all pixels to be found are missed, and how many there are."""
        return self.count(y, Whole())

    def of(self, region: Any) -> Any:
        """The critical values of a region."""
        regions = self.family.regions
        if region not in regions:
            raise InputError(f"the frames were reduced to the regions {regions}, got {region!r}")
        return self.reading[regions.index(region)]

    def contains(self, y: Any) -> bool:
        """Whether every judged pixel of the first region is covered."""
        return self.lam > -inf and self.count(y)[0] == 0

    @property
    def length(self) -> float:
        """The mean length over the valid pixels, or how many pixels of a segmentation are in.

        It is drawn as a line between the two nodes around λ.
        """
        lam, nodes, lengths = self.lam, self.family.nodes, self.reading[-1]
        if lam == inf:
            return float(lengths[-1])
        if lam <= nodes[-2]:
            return float(np.interp(lam, nodes[:-1], lengths[:-1])) if lam > -inf else 0.0
        slope = (lengths[-2] - lengths[-3]) / (nodes[-2] - nodes[-3])
        return float(min(lengths[-2] + slope * (lam - nodes[-2]), lengths[-1]))

    @property
    def empty(self) -> bool:
        """Whether λ is −inf."""
        return self.lam == -inf


@dataclass(frozen=True, slots=True)
class CriticalValues:
    """The family of frames of which only the critical values are left.

    It stands in for `sets.PixelScale` or `sets.PixelThreshold` in a controller that is replayed
    over a `FrameTape`.

    Parameters
    ----------
    regions
        The regions whose critical values a row holds, in the order of its columns.
    nodes
        The values of λ, rising and ending in +inf, at which a row holds the mean length.
    sets
        The family that was used live: where λ starts, and its bounds.

    Examples
    --------
    >>> family = CriticalValues((Whole(),))
    >>> shown = family.at(family.read(([0.1, 0.5, 2.0], [0.0, 3.0, float("inf")])), 1.5)
    >>> shown.count(None, Whole()), shown.length
    ((1, 3), 4.5)
    """

    regions: tuple[Any, ...] = (Whole(), Centre())
    nodes: tuple[float, ...] = (0.0, 1.0, inf)
    sets: Any = _SCALE

    shows = CriticalSet

    def __post_init__(self) -> None:
        regions = tuple(self.regions)
        if not regions or len(set(regions)) < len(regions):
            raise InputError(f"regions must be one or more, all different, got {regions}")
        object.__setattr__(self, "regions", regions)
        nodes = tuple(number(node, "a node") for node in self.nodes)
        if len(nodes) < 3 or nodes[-1] != inf or not all(a < b for a, b in pairwise(nodes)):
            raise InputError(f"nodes must be three or more, rising to +inf, got {nodes}")
        object.__setattr__(self, "nodes", nodes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of a tape's columns: region0, region1, …, lengths."""
        return (*(f"region{place}" for place in range(len(self.regions))), "lengths")

    def read(self, prediction: Any) -> Reading:
        """The critical values of each region and the lengths at the nodes, as arrays."""
        *values, lengths = prediction
        if len(values) != len(self.regions) or len(lengths) != len(self.nodes):
            raise PredictionError(
                f"a row must hold the critical values of {len(self.regions)} regions and "
                f"{len(self.nodes)} lengths, got {len(values)} and {len(lengths)}"
            )
        return tuple(map(np.asarray, (*values, lengths)))

    def label(self, y: Any) -> float:
        """Any number: the frame was seen."""
        return 0.0

    def at(self, prediction: Reading, lam: float) -> CriticalSet:
        """The set at λ."""
        return CriticalSet(prediction, lam, self)

    def criticals(self, prediction: Reading, y: Any) -> CriticalSet:
        """The critical values of every region."""
        return CriticalSet(prediction, inf, self)

    def critical(self, prediction: Reading, y: Any) -> float:
        """The largest critical value of the first region; −inf if it has none."""
        return float(prediction[0][-1]) if len(prediction[0]) else -inf

    def start(self, level: float) -> float:
        """Where the family that was used live starts."""
        return float(self.sets.start(level))

    def bounds(self) -> tuple[float, float] | None:
        """Those of the family that was used live."""
        bounds: tuple[float, float] | None = self.sets.bounds()
        return bounds

    def unit(self, prediction: Reading) -> float:
        """Half of what a set is longer at λ = 1 than at λ = 0; 1 where λ has bounds of its own."""
        if self.bounds() is not None:
            return 1.0
        return 0.5 * (self.at(prediction, 1.0).length - self.at(prediction, 0.0).length)


class FrameTape:
    """Frames, each reduced to the sorted critical values of its regions and its mean lengths.

    Parameters
    ----------
    sets
        The family that is used live, `sets.PixelScale()` or `sets.PixelThreshold()`.
    regions
        The regions that losses ask for.
    dtype
        "float32" or "float64". In float32 a pixel whose critical value agrees with λ to seven
        digits may be counted otherwise than live.
    """

    def __init__(
        self,
        sets: Any = None,
        regions: Iterable[Any] = (Whole(), Centre()),
        dtype: str = "float32",
    ) -> None:
        self.sets = PixelScale() if sets is None else sets
        if not isinstance(self.sets, Shares):
            raise InputError(f"sets must have criticals, as sets.PixelScale(), got {self.sets!r}")
        line = isinstance(self.sets, Supports) and self.sets.support == (-inf, inf)
        nodes = (0.0, 1.0, inf) if line else _nodes(self.sets)
        self.family = CriticalValues(tuple(regions), nodes, self.sets)
        self.dtype = choice(dtype, "dtype", ("float32", "float64"))
        self._values: list[list[Array]] = [[] for _ in self.family.regions]
        self._lengths: list[list[float]] = []
        self._infinite: list[float] = []

    def add(self, prediction: Any, y: Any) -> None:
        """Keeps what is needed of a frame: its prediction, with the truth that came.

        A truth of None, or without a valid pixel, leaves a frame with nothing to judge.
        """
        reading = self.sets.read(prediction)
        criticals = None
        if not is_missing(y):
            criticals = host(self.sets.criticals(reading, self.sets.label(y)))
        for place, region in enumerate(self.family.regions):
            values = np.empty(0, self.dtype)
            if criticals is not None:
                part = criticals[region.index(criticals.shape)].ravel()
                values = np.sort(part[~np.isnan(part)]).astype(self.dtype)
            if place == 0:
                self._infinite.append(float(np.mean(values == inf)) if len(values) else nan)
            self._values[place].append(values)
        lengths = [size_of(self.sets.at(reading, lam)) for lam in self.family.nodes]
        # Without a valid pixel there is no length, and a tape takes no NaN.
        self._lengths.append([0.0 if length != length else length for length in lengths])

    def __len__(self) -> int:
        return len(self._lengths)

    @property
    def infinite(self) -> Array:
        """The share of each frame's judged pixels that no finite λ covers; NaN if none is judged.

        It is that of the first region.
        """
        return np.array(self._infinite)

    def tape(self, start: int | None = None, stop: int | None = None) -> Tape:
        """The frames from start to stop as a tape, for `setpoint.replay`, `sweep` and `tune`."""
        part = slice(start, stop)
        frames: list[list[Any]] = [*self._values, self._lengths]
        columns: dict[str, Any] = {
            name: Ragged.from_rows(rows[part])
            for name, rows in zip(self.family.columns, frames, strict=True)
        }
        return Tape.from_arrays(columns, np.zeros(len(self._lengths[part])))

    def controller(self, controller: Controller) -> Controller:
        """The controller with its family exchanged for one that reads this tape."""
        return Controller(self.family, controller.risks, controller.stretch, controller.combine)


def _nodes(sets: Any) -> tuple[float, ...]:
    """Where the lengths of a family are kept, if they are no line."""
    bounds = sets.bounds()
    if bounds is None:
        return _NODES
    low, high = bounds
    # Just below its bounds a set is empty, at them it may hold what is certain.
    return (float(np.nextafter(low, -inf)), *np.linspace(low, high, 65).tolist(), inf)
