"""Point models as interval models: the scale of the residuals, tracked online.

A regressor that gives one number says nothing about its error. Its past residuals do: their mean
absolute value, over a memory that fades or a window, is the unit in which `setpoint.sets.Scale`
widens the forecast.
"""

from collections import deque
from dataclasses import dataclass
from math import exp2, fsum, isfinite
from typing import Any

from setpoint._check import finite, is_missing, positive, whole
from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.models.protocol import OnlineModel
from setpoint.predictions import Spread

__all__ = ["Fading", "Recent", "ResidualScale", "Residuals"]


@dataclass(frozen=True, slots=True)
class Fading:
    """A memory in which a residual counts half as much after every `half_life` labels.

    >>> Fading(half_life=50.0)
    Fading(half_life=50.0)
    """

    half_life: float = 100.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "half_life", positive(self.half_life, "half_life"))


@dataclass(frozen=True, slots=True)
class Recent:
    """A memory of the last `size` residuals, each counting the same.

    >>> Recent(size=200)
    Recent(size=200)
    """

    size: int = 200

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, "size", 1))


class Residuals:
    """How large residuals have lately been, below and above the forecast.

    The scale is the mean absolute residual. With `sides=2` there is one scale for labels below
    the forecast and one for labels above, each twice the mean of the residuals on its side, so
    that the two average to the mean absolute residual.

    Parameters
    ----------
    memory
        `Fading(half_life)` or `Recent(size)`.
    sides
        1 for one scale, 2 for one on each side.
    start
        The scale, in units of y, until a residual differs from 0.
    floor
        The scale never falls below this share of the mean absolute residual of all time, so
        that a calm stretch cannot make every later label infinitely surprising.

    Examples
    --------
    >>> residuals = Residuals(Recent(3))
    >>> residuals.spread(10.0)
    Spread(centre=10.0, low=1.0, high=1.0)
    >>> for residual in (-1.0, 2.0, 6.0):
    ...     residuals.add(residual)
    >>> residuals.spread(10.0)
    Spread(centre=10.0, low=3.0, high=3.0)
    """

    __slots__ = ("_above", "_below", "_past", "_total", "_weight", "count", "floor", "memory",
                 "sides", "start")  # fmt: skip

    def __init__(
        self,
        memory: Fading | Recent | None = None,
        *,
        sides: int = 1,
        start: float = 1.0,
        floor: float = 0.01,
    ) -> None:
        memory = Fading() if memory is None else memory
        if not isinstance(memory, Fading | Recent):
            raise InputError(f"memory must be Fading(half_life) or Recent(size), got {memory!r}")
        if isinstance(sides, bool) or sides not in (1, 2):
            raise InputError(f"sides must be 1 or 2, got {sides!r}")
        self.memory = memory
        self.sides = int(sides)
        self.start = positive(start, "start")
        self.floor = finite(floor, "floor")
        if not 0.0 <= self.floor <= 1.0:
            raise InputError(f"floor must be a share from 0 to 1, got {floor}")
        self.count = 0
        self._total = 0.0
        self._below = self._above = self._weight = 0.0
        self._past: deque[float] = deque(maxlen=memory.size if isinstance(memory, Recent) else 0)

    def add(self, residual: float) -> None:
        """Takes in y − forecast."""
        residual = finite(residual, "a residual")
        self.count += 1
        self._total += abs(residual)
        if isinstance(self.memory, Fading):
            keep = exp2(-1.0 / self.memory.half_life)
            self._weight = keep * self._weight + 1.0
            self._below = keep * self._below + max(-residual, 0.0)
            self._above = keep * self._above + max(residual, 0.0)
        else:
            # Summed anew: a running sum would keep the rounding of an outlier that has left.
            self._past.append(residual)
            self._weight = float(len(self._past))
            self._below = fsum(-each for each in self._past if each < 0.0)
            self._above = fsum(each for each in self._past if each > 0.0)

    @property
    def scales(self) -> tuple[float, float]:
        """The scale below and the scale above."""
        if self._total == 0.0:
            return self.start, self.start
        least = self.floor * self._total / self.count
        below, above = self._below / self._weight, self._above / self._weight
        if self.sides == 1:
            below = above = 0.5 * (below + above)
        return max(2.0 * below, least), max(2.0 * above, least)

    def spread(self, centre: float) -> Spread:
        """A point forecast with the scales, as `setpoint.sets.Scale` reads it."""
        return Spread(centre, *self.scales)

    def __repr__(self) -> str:
        options = f"{self.memory!r}, sides={self.sides}, start={self.start}, floor={self.floor}"
        return f"Residuals({options})"


class ResidualScale:
    """An online model of points as one of spreads, for `setpoint.sets.Scale`.

    The residual of a label is that of the model as it is when the label arrives, before it learns
    it. A label that is missing is not learnt.

    Parameters
    ----------
    model
        An online model whose `predict(x)` is one number: any object with `predict(x)` and
        `learn(x, y)`.
    memory, sides, start, floor
        See `Residuals`.

    Examples
    --------
    >>> class Last:
    ...     level = 0.0
    ...
    ...     def predict(self, x):
    ...         return self.level
    ...
    ...     def learn(self, x, y):
    ...         self.level = y
    >>> model = ResidualScale(Last(), Fading(half_life=1.0))
    >>> for y in (2.0, 6.0):
    ...     model.learn(None, y)
    >>> model.predict(None)
    Spread(centre=6.0, low=3.33..., high=3.33...)
    """

    __slots__ = ("model", "residuals")

    def __init__(
        self,
        model: Any,
        memory: Fading | Recent | None = None,
        *,
        sides: int = 1,
        start: float = 1.0,
        floor: float = 0.01,
    ) -> None:
        if not isinstance(model, OnlineModel):
            raise InputError(f"a model must have predict(x) and learn(x, y), got {model!r}")
        self.model = model
        self.residuals = Residuals(memory, sides=sides, start=start, floor=floor)

    def predict(self, x: Any) -> Spread:
        """The model's point with the scale of its residuals."""
        point = finite(self.model.predict(x), "a point forecast", PredictionError)
        return self.residuals.spread(point)

    def learn(self, x: Any, y: Any) -> None:
        """Takes in a label and its residual; if the model refuses it, neither."""
        if is_missing(y):
            return
        label = finite(y, "a label", LabelError)
        residual = label - finite(self.model.predict(x), "a point forecast", PredictionError)
        self.model.learn(x, y)
        if isfinite(residual):
            self.residuals.add(residual)

    def __repr__(self) -> str:
        return f"ResidualScale({self.model!r}, {self.residuals!r})"
