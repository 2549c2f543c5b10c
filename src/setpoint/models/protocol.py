"""What an online model is: it predicts from x, then learns the label that arrived."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from setpoint.errors import InputError
from setpoint.predictions import QuantileGrid

__all__ = ["OnlineModel", "rows_and_labels", "run"]


@runtime_checkable
class OnlineModel(Protocol):
    """A model that learns one row at a time.

    A model is any object with these two methods; nothing needs to be inherited. What `predict`
    returns is handed to `Stream.predict` as it is: for quantile models a
    `setpoint.predictions.Quantiles`.
    """

    def predict(self, x: Any) -> Any:
        """The prediction for features `x`. Pure: however often it is called, nothing moves."""

    def learn(self, x: Any, y: Any) -> None:
        """Takes in a row with its label; rows come in the order of time, each of them once."""


def run(model: OnlineModel, x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """Predicts and then learns every row in turn; the prediction of each row, (n, m).

    The prediction of row t is made before y_t is seen. Of a `QuantileGrid` the values are
    recorded. To survive an interruption, run a stream in pieces and save the model between them:
    the pieces together give what one call would have given.

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
        predictions.append(
            prediction.values if isinstance(prediction, QuantileGrid) else prediction
        )
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
