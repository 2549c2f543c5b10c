"""skforecast's predictions with bounds that hold their coverage, of one series or many.

Nothing of skforecast's is imported: a pandas frame with its columns will do (extra `data`).
"""

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from setpoint import presets
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.models.horizons import Adapter, Array, Forecasts, clock, steps_ahead, unknown

try:
    import pandas as pd
except ImportError as error:
    raise ImportError("this needs pandas: pip install 'setpoint[skforecast]'") from error

__all__ = ["Intervals"]


class Intervals(Adapter):
    """Bounds for the predictions of a forecaster, each step ahead by itself.

    `fit` takes the predictions of `backtesting_forecaster`, or of the one for many series, with the
    labels; `predict` adds the columns lower_bound and upper_bound; `update` takes the new labels.
    Several coverages never cross: their bounds are the columns q_0.05, q_0.95 and so on, as
    `predict_quantiles` names them. Where predictions have the bounds already, of several coverages
    those of the highest, they are corrected; else the bounds go around the point forecast.

    Parameters
    ----------
    nominal_coverage
        The share of labels that the bounds are to hold, or several that rise.
    gap
        That of `TimeSeriesFold`: how many steps lie between the last label and the first forecast.
    controller
        What makes a controller of the coverage. The features of
        `partial(sp.intervals, features=["price"])` are columns of `exog`.
    """

    def __init__(
        self,
        nominal_coverage: float | Iterable[float] = 0.8,
        *,
        gap: int = 0,
        controller: Callable[[Any], Controller] = presets.intervals,
    ) -> None:
        given: Any = nominal_coverage
        several = isinstance(given, Iterable)
        coverages = [*given] if several else [given]
        self.nominal_coverage, self.gap = coverages if several else given, gap
        self._begin(coverages, controller, nominal_coverage=self.nominal_coverage, gap=gap)
        tails = [round(0.5 - 0.5 * each, 9) for each in coverages]
        self._bounds = ["lower_bound"], ["upper_bound"]
        if several:
            self._bounds = [f"q_{p}" for p in tails], [f"q_{round(1.0 - p, 9)}" for p in tails]

    def fit_predict(self, predictions: Any, y: Any, exog: Any = None) -> Any:
        """Begins anew with a backtest and its labels; the bounds that it would have had."""
        frame = _frame(predictions)
        if "fold" not in frame or not len(frame):
            raise InputError(
                "a backtest needs rows and the column 'fold', as skforecast 0.17 and later has, "
                f"got {len(frame)} rows of {[*frame]}"
            )
        self._forget()
        names, wide = _names(frame), _wide(y, single="level" not in frame)
        due, places = wide.index.get_indexer(frame.index), wide.columns.get_indexer(names)
        for found, wanted in ((due, frame.index), (places, names)):
            if (found < 0).any():
                missing = wanted[int((found < 0).argmax())]
                raise InputError(f"y must have every time and series of the backtest: no {missing}")
        made = pd.Series(due).groupby(frame["fold"].to_numpy()).transform("min").to_numpy()
        made = made - 1 - self.gap
        labels = wide.to_numpy(dtype=np.float64)[due, places]
        return self._shown(frame, (steps_ahead(names, due, made), made, due), exog, labels)

    def predict(self, predictions: Any, exog: Any = None) -> Any:
        """Predictions with their bounds; they wait for their labels.

        The first row of a series is one step ahead, and the others by their times. If they are
        asked for again, the last answer counts.
        """
        frame = _frame(predictions)
        due = clock(frame.index)
        return self._shown(frame, (steps_ahead(_names(frame), due) + self.gap, due, due), exog)

    def update(self, y: Any) -> Self:
        """New labels with their times: a series, or a frame with a column for each series."""
        for streams in self._streams.values():
            wide = _wide(y, single=streams.series <= {0})
            for name in wide:
                streams.update(np.full(len(wide), name), clock(wide.index), wide[name])
        return self

    def _shown(
        self, frame: Any, times: tuple[Array, Array, Array], exog: Any, y: Any = None
    ) -> Any:
        """The frame with the bounds of its rows, which are so many steps ahead, made and due."""
        known = None
        if self._features:
            exog = exog.to_frame() if isinstance(exog, pd.Series) else exog
            if not isinstance(exog, pd.DataFrame) or not {*self._features} <= {*exog}:
                wanted = ", ".join(self._features)
                raise InputError(f"exog must be a pandas frame with {wanted}, by time")
            known = exog[[*self._features]].reindex(frame.index).to_numpy(dtype=np.float64)
        labels, none = unknown(len(frame)) if y is None else y, unknown(len(frame))
        rows = Forecasts(_names(frame), *times, none, none, labels, known)
        return frame.assign(**self._ends(rows, frame, ("pred", *self._bounds), fit=y is not None))


def _frame(predictions: Any) -> Any:
    """Predictions as a frame; a series of them is the column 'pred'."""
    if not isinstance(predictions, pd.Series | pd.DataFrame):
        raise InputError(
            f"predictions must be a pandas Series or DataFrame, got a {type(predictions).__name__}"
        )
    return predictions if predictions.ndim == 2 else predictions.to_frame("pred")


def _names(frame: Any) -> Array:
    """The series of each row; a single one has no name."""
    names: Array = np.zeros(len(frame), int) if "level" not in frame else frame["level"].to_numpy()
    return names


def _wide(y: Any, *, single: bool) -> Any:
    """Labels with a column for each series; a single one is series 0."""
    if not isinstance(y, pd.Series | pd.DataFrame) or isinstance(y.index, pd.MultiIndex):
        raise InputError(
            "y must be a pandas Series, or a wide frame with a column for each series, got a "
            f"{'long frame' if hasattr(y, 'index') else type(y).__name__}"
        )
    if y.index.has_duplicates:
        twice = y.index[y.index.duplicated()][0]
        raise InputError(f"y must have each time once, and it has {twice} twice")
    wide = (y.to_frame() if y.ndim == 1 else y).sort_index()  # a label is known at its time
    if single and wide.shape[1] != 1:
        raise InputError(
            f"predictions without the column 'level' are of one series, got y of {[*y]}"
        )
    return wide.set_axis([0], axis=1) if single else wide
