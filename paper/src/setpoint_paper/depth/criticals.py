"""Frames reduced to their critical values, so that calibration can be tuned in seconds.

Of a frame a controller asks only how many pixels of a region are missed at λ: the number of
critical values above it. Sorted, a search answers that, without the frame itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from setpoint._check import is_missing
from setpoint.controller import Controller
from setpoint.errors import InputError, PredictionError
from setpoint.regions import Centre, Whole
from setpoint.sets import PixelScale
from setpoint.sets.frames import host
from setpoint.tape import Ragged, Tape

Array = np.ndarray[Any, Any]
_LIVE = PixelScale()
"""The family that is used live."""
_NODES = (0.0, 1.0, inf)
"""Where mean lengths are kept: they lie on a line between the first two, and on from there."""
Reading = tuple[Any, ...]
"""The sorted critical values of each region, and the mean lengths at the nodes."""


@dataclass(eq=False, slots=True)
class CriticalSet:
    """What a frame's pixel intervals were at λ, as far as losses and lengths ask."""

    reading: Reading
    lam: float
    regions: tuple[Any, ...]

    def count(self, y: Any, region: Any = None) -> tuple[int, int]:
        """How many pixels of a region, by default the first, are missed, and how many judged."""
        values = self.of(self.regions[0] if region is None else region)
        judged = len(values)
        if self.lam == -inf:
            return judged, judged
        return judged - int(values.searchsorted(self.lam, "right")), judged

    def of(self, region: Any) -> Any:
        """The critical values of a region."""
        if region not in self.regions:
            raise InputError(f"the frames were reduced to {self.regions}, got {region!r}")
        return self.reading[self.regions.index(region)]

    def contains(self, y: Any) -> bool:
        """Whether every judged pixel of the first region is covered."""
        return self.lam > -inf and self.count(y)[0] == 0

    @property
    def length(self) -> float:
        """The mean length over the valid pixels."""
        none, one, most = map(float, self.reading[-1])
        return most if self.lam == inf else min(none + max(self.lam, 0.0) * (one - none), most)

    @property
    def empty(self) -> bool:
        """Whether λ is −inf."""
        return self.lam == -inf


@dataclass(frozen=True, slots=True)
class CriticalValues:
    """The family of frames of which only the critical values of some regions are left.

    It stands in for `sets.PixelScale()` in a controller that is replayed over a `FrameTape`.

    Examples
    --------
    >>> family = CriticalValues((Whole(),))
    >>> shown = family.at(family.read(([0.1, 0.5, 2.0], [0.0, 3.0, float("inf")])), 1.5)
    >>> shown.count(None, Whole()), shown.length
    ((1, 3), 4.5)
    """

    regions: tuple[Any, ...]

    shows = CriticalSet

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of a tape's columns: region0, region1, …, lengths."""
        return (*(f"region{place}" for place in range(len(self.regions))), "lengths")

    def read(self, prediction: Any) -> Reading:
        """The critical values of each region and the lengths at the nodes, as arrays."""
        *values, lengths = prediction
        if len(values) != len(self.regions) or len(lengths) != len(_NODES):
            raise PredictionError(
                f"a row must hold the critical values of {len(self.regions)} regions and "
                f"{len(_NODES)} lengths, got {len(values)} and {len(lengths)}"
            )
        return tuple(map(np.asarray, (*values, lengths)))

    def label(self, y: Any) -> float:
        """Any number: the frame was seen."""
        return 0.0

    def at(self, prediction: Reading, lam: float) -> CriticalSet:
        """The set at λ."""
        return CriticalSet(prediction, lam, self.regions)

    def criticals(self, prediction: Reading, y: Any) -> CriticalSet:
        """The critical values of every region."""
        return self.at(prediction, inf)

    def critical(self, prediction: Reading, y: Any) -> float:
        """The largest critical value of the first region; −inf if it has none."""
        return float(prediction[0][-1]) if len(prediction[0]) else -inf

    def start(self, level: float) -> float:
        """Where the family that was used live starts."""
        return _LIVE.start(level)

    def bounds(self) -> None:
        """None, as the family that was used live has."""

    def unit(self, prediction: Reading) -> float:
        """Half of what a set is longer at λ = 1 than at λ = 0."""
        return 0.5 * float(prediction[-1][1] - prediction[-1][0])


class FrameTape:
    """Frames, each reduced to the sorted critical values of its regions and its mean lengths.

    In the usual float32 a pixel whose critical value agrees with λ to seven digits may be counted
    otherwise than live; `dtype` "float64" tells them apart.
    """

    def __init__(
        self, regions: Iterable[Any] = (Whole(), Centre()), dtype: str = "float32"
    ) -> None:
        self.family, self.dtype = CriticalValues(tuple(regions)), dtype
        self._values: list[list[Array]] = [[] for _ in self.family.regions]
        self._lengths: list[list[float]] = []

    def add(self, prediction: Any, y: Any) -> None:
        """Keeps what is needed of a frame: its prediction, with the truth that came.

        A truth of None, or without a valid pixel, leaves a frame with nothing to judge.
        """
        reading, criticals = _LIVE.read(prediction), None
        if not is_missing(y):
            criticals = host(_LIVE.criticals(reading, _LIVE.label(y)))
        for kept, region in zip(self._values, self.family.regions, strict=True):
            values = np.empty(0, self.dtype)
            if criticals is not None:
                part = criticals[region.index(criticals.shape)].ravel()
                values = np.sort(part[~np.isnan(part)]).astype(self.dtype)
            kept.append(values)
        # Without a valid pixel there is no length, and a tape takes no NaN.
        lengths = np.array([_LIVE.at(reading, lam).length for lam in _NODES])
        self._lengths.append(np.where(np.isnan(lengths), 0.0, lengths).tolist())

    def __len__(self) -> int:
        return len(self._lengths)

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
