"""Online models: what one is, the scale of a point model's residuals, and what adapters share.

A regressor that gives one number says nothing about its error. Its past residuals do: their mean
absolute value, over a memory that fades or a window, is the unit in which `setpoint.sets.Scale`
widens the forecast.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from math import exp2, fsum, inf, isfinite
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from setpoint import sets
from setpoint._check import finite, is_missing, positive, whole
from setpoint.controller import Controller
from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.predictions import QuantileGrid, Quantiles, Spread
from setpoint.sets.family import Arranges, Codes, Columns, Shows, Supports
from setpoint.stream import Stream


@runtime_checkable
class OnlineModel(Protocol):
    """A model that learns one row at a time.

    A model is any object with these two methods. What `predict` returns is handed to
    `Stream.predict` as it is.
    """

    def predict(self, x: Any) -> Any:
        """The prediction for features `x`. Pure: however often it is called, nothing moves."""

    def learn(self, x: Any, y: Any) -> None:
        """Takes in a row with its label; rows come in the order of time, each of them once."""


def run(model: OnlineModel, x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """Predicts and then learns every row in turn; the prediction of each row, (n, m).

    The prediction of row t is made before y_t is seen. Of a `QuantileGrid` the values are
    recorded. Pieces of a stream together give what one call would have given.

    Parameters
    ----------
    model
        The model; it is left as the last row made it.
    x
        The features, (n, d), or (n,) for a single feature.
    y
        The labels, (n,).

    Examples
    --------
    >>> from setpoint.models import LinearQuantiles
    >>> y = np.sin(np.arange(200.0))
    >>> ends = run(LinearQuantiles(), np.zeros((200, 0)), y)
    >>> ends.shape
    (200, 2)
    """
    rows, labels = rows_and_labels(x, y)
    predictions = []
    for row, label in zip(rows, labels.tolist(), strict=True):
        prediction = model.predict(row)
        grid = isinstance(prediction, QuantileGrid)
        predictions.append(prediction.values if grid else prediction)
        model.learn(row, label)
    return np.array(predictions, dtype=np.float64)


def rows_and_labels(x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """`x` as (n, d) and `y` as (n,), in float64; one error if they do not match."""
    rows, labels = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or labels.shape != rows.shape[:1]:
        raise InputError(
            f"x must have the shape (n, d) and y the shape (n,), got {rows.shape} and "
            f"{labels.shape}"
        )
    return rows, labels


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


@dataclass(eq=False)
class Residuals:
    """How large residuals have lately been, below and above the forecast.

    The scale is the mean absolute residual. With `sides=2` there is one for labels below the
    forecast and one for labels above, which average to it.

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

    memory: Fading | Recent | None = None
    _: KW_ONLY
    sides: int = 1
    start: float = 1.0
    floor: float = 0.01

    def __post_init__(self) -> None:
        self.memory = memory = Fading() if self.memory is None else self.memory
        if not isinstance(memory, Fading | Recent):
            raise InputError(f"memory must be Fading(half_life) or Recent(size), got {memory!r}")
        if isinstance(self.sides, bool) or self.sides not in (1, 2):
            raise InputError(f"sides must be 1 or 2, got {self.sides!r}")
        self.start, self.floor = positive(self.start, "start"), finite(self.floor, "floor")
        if not 0.0 <= self.floor <= 1.0:
            raise InputError(f"floor must be a share from 0 to 1, got {self.floor}")
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
        else:  # summed anew: a running sum would keep the rounding of an outlier that has left
            self._past.append(residual)
            self._weight = float(len(self._past))
            self._below = fsum(-r for r in self._past if r < 0.0)
            self._above = fsum(r for r in self._past if r > 0.0)

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
        return self.residuals.spread(self._point(x))

    def _point(self, x: Any) -> float:
        return finite(self.model.predict(x), "a point forecast", PredictionError)

    def learn(self, x: Any, y: Any) -> None:
        """Takes in a label and its residual; if the model refuses it, neither."""
        if is_missing(y):
            return
        residual = finite(y, "a label", LabelError) - self._point(x)
        self.model.learn(x, y)
        if isfinite(residual):
            self.residuals.add(residual)

    def __repr__(self) -> str:
        return f"ResidualScale({self.model!r}, {self.residuals!r})"


_SPREAD = ("centre", "low", "high")
_PAIR = ("lower", "upper")
_ENDS = (("lower",), ("upper",))


@dataclass(frozen=True, slots=True)
class Handover:
    """What a family of intervals reads of a model of points, and the ends of its sets.

    `columns` are the numbers it reads, `support` is its full set, `count` how many sets it shows
    within each other, None if it shows a single one.
    """

    columns: tuple[str, ...]
    support: tuple[float, float]
    count: int | None

    def prediction(self, output: Sequence[float], residuals: Residuals) -> Any:
        """What the family reads, of a point and perhaps two quantiles.

        None where a number is not finite, and while there is no scale. Quantile forecasts may
        cross: a side of a spread is never narrower than the residuals allow.
        """
        if not all(map(isfinite, output)):
            return None
        point, *ends = output
        if self.columns == _PAIR:
            return Quantiles(*(ends or (point, point)))
        if self.columns in _ENDS:
            return (ends or (point, point))[_ENDS.index(self.columns)]
        if not ends:
            return residuals.spread(point) if residuals.count else None
        least = residuals.floor * residuals.scales[0] if residuals.count else 0.0
        return Spread(point, max(point - ends[0], least), max(ends[1] - point, least))

    def ends(self, shown: Any) -> tuple[Any, Any]:
        """The lower and the upper end of a set, the full one for None; of nested sets all ends."""
        low, high = self.support
        if self.count is None:
            return (low, high) if shown is None else (shown.lower, shown.upper)
        if shown is None:
            return (low,) * self.count, (high,) * self.count
        return tuple([part.lower for part in shown]), tuple([part.upper for part in shown])

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the ends of one set, or of all nested ones."""
        return (2,) if self.count is None else (2, self.count)


def handover(controller: Controller) -> Handover:
    """What passes between a model of points and a controller's family of intervals."""
    family, count = _inner(controller)
    reader = family if controller.correction is None else controller.correction
    columns = reader.columns if isinstance(reader, Columns) else None
    forms: Any = reader.forms if isinstance(reader, Arranges) else (columns,)
    if known := known_of(controller):  # which come from x
        forms = tuple([form[: -len(known)] for form in forms])
    columns = next((form for form in (_PAIR, _SPREAD, *_ENDS) if form in forms), None)
    if columns is None:
        raise InputError(
            "an IntervalRegressor needs a family that reads a spread (sets.Scale), two quantiles "
            "or a point (sets.Widen, sets.TwoSided) or one end (sets.Lower, sets.Upper), alone or "
            f"in sets.Nested or sets.ScoreWindow, got {controller.sets!r}"
        )
    support = family.support if isinstance(family, Supports) else (-inf, inf)
    return Handover(columns, support, count)


def _inner(controller: Controller) -> tuple[Any, int | None]:
    """The family of nested sets and their number, or the family itself and None."""
    family = controller.sets
    return (family.sets, family.count) if isinstance(family, sets.Nested) else (family, None)


def label_count(controller: Controller) -> int | None:
    """How many label sets within each other a controller shows, None if a single one."""
    family, count = _inner(controller)
    scores = family.scores if isinstance(family, sets.ScoreWindow) else family
    shows = scores.shows if isinstance(scores, Shows) else None
    if shows is not sets.LabelSet or isinstance(scores, sets.Multilabel):
        raise InputError(
            "a SetClassifier needs a family of label sets for one label (sets.Threshold, "
            "sets.Cumulative, or one of your own with shows = LabelSet), alone or in sets.Nested "
            f"or sets.ScoreWindow, got {controller.sets!r}"
        )
    return count


def known_of(controller: Controller) -> tuple[str, ...]:
    """The features that a controller asks for with each row."""
    stage: Any = controller.correction
    return stage.features if isinstance(stage, Codes) else ()


def judged(stream: Stream, prediction: Any, y: Any) -> Any:
    """The set shown for a prediction whose label is known: no receipt of it is left, come what may.

    Others may wait in the stream meanwhile.
    """
    stream.controller.sets.label(y)  # what is refused here has opened nothing
    receipt = stream.issue(prediction)
    try:
        stream.update(y, id=receipt.id)
    except BaseException:
        if receipt.id in stream.pending:
            stream.drop(receipt.id)
        raise
    return receipt.shown
