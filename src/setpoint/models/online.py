"""Online models: what one is, how one runs over a stream, and what the adapters share."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from setpoint import sets
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.predictions import Quantiles, Spread
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

    The prediction of row t is made before y_t is seen, and the model is left as the last row made
    it. `x` are the features, (n, d), or (n,) for a single one; `y` are the labels, (n,).

    >>> from setpoint.models import LinearQuantiles
    >>> y = np.sin(np.arange(200.0))
    >>> ends = run(LinearQuantiles(), np.zeros((200, 0)), y)
    >>> ends.shape
    (200, 2)
    """
    rows, labels = rows_and_labels(x, y)
    predictions = []
    for row, label in zip(rows, labels.tolist(), strict=True):
        predictions.append(model.predict(row))
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


# What the adapters share

_PAIR, _SPREAD = ("lower", "upper"), ("centre", "low", "high")
_LOWER, _UPPER = ("lower",), ("upper",)


@dataclass(frozen=True, slots=True)
class Handover:
    """What a family of intervals reads of a model of points, and the ends of its sets.

    `columns` are the numbers it reads, `support` is its full set, `count` how many sets it shows
    within each other, None if it shows a single one.
    """

    columns: tuple[str, ...]
    support: tuple[float, float]
    count: int | None

    def prediction(self, output: Sequence[float]) -> Any:
        """What the family reads of a point and perhaps two quantiles; None if one is not finite."""
        if not all(map(isfinite, output)):
            return None
        point, *ends = output
        lower, upper = ends or (point, point)
        if self.columns == _SPREAD:  # quantile forecasts may cross
            return Spread(point, max(point - lower, 0.0), max(upper - point, 0.0))
        if self.columns == _PAIR:
            return Quantiles(lower, upper)
        return lower if self.columns == _LOWER else upper

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


def handover(controller: Controller, quantiles: bool = False) -> Handover:
    """What passes between a model of points, perhaps with quantiles, and a family of intervals."""
    family, count = _inner(controller)
    reader = family if controller.correction is None else controller.correction
    columns = reader.columns if isinstance(reader, Columns) else None
    forms: Any = reader.forms if isinstance(reader, Arranges) else (columns,)
    if known := known_of(controller):  # which come from x
        forms = tuple([form[: -len(known)] for form in forms])
    readable = (_PAIR, *([_SPREAD] if quantiles else []), _LOWER, _UPPER)
    columns = next((form for form in readable if form in forms), None)
    if columns is None:
        raise InputError(
            "an IntervalRegressor needs a family that reads a point or two quantiles (intervals(), "
            "sets.Widen, sets.TwoSided; sets.Scale where quantiles are given) or one end "
            f"(sets.Lower, sets.Upper), alone or in sets.Nested or sets.ScoreWindow, got "
            f"{controller.sets!r}"
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
