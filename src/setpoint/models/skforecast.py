"""skforecast's predictions with bounds that hold their coverage, of one series or many.

The frame of a backtest goes in first, then predictions and labels in turn. Nothing of skforecast's
is imported: a frame with its columns will do (extra `data`).
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from setpoint import presets
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.guarantee import Certificate
from setpoint.models.horizons import Array, Floats, Forecasts, Horizons, clock, ranks

__all__ = ["Intervals"]


class Intervals:
    """Bounds for the predictions of a forecaster, each step ahead by itself.

    `fit` takes the predictions of `backtesting_forecaster`, or of the one for many series, with the
    labels. `predict` adds the columns lower_bound and upper_bound. `update` takes the new labels. A
    label h steps ahead is told h steps after the forecast was made.

    Where predictions have the two columns already, they are corrected; else the bounds go around
    the point forecast. A backtest and the predictions after it must be alike in this.

    Parameters
    ----------
    nominal_coverage
        The share of labels that the bounds are to hold.
    gap
        That of `TimeSeriesFold`: how many steps lie between the last label and the first forecast.
    controller
        What makes a controller of a coverage; see `setpoint.models.horizons.Horizons`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> y = pd.Series(np.sin(np.arange(101.0)), pd.date_range("2024-01-01", periods=101))
    >>> backtest = pd.DataFrame({"fold": range(100), "pred": y.to_numpy()[:-1]}, y.index[1:])
    >>> intervals = Intervals(nominal_coverage=0.8).fit(backtest, y)
    >>> tomorrow = pd.Series([0.5], y.index[-1:] + y.index.freq, name="pred")
    >>> intervals.predict(tomorrow).columns.to_list()
    ['pred', 'lower_bound', 'upper_bound']
    """

    def __init__(
        self,
        nominal_coverage: float = 0.8,
        *,
        gap: int = 0,
        controller: Callable[[float], Controller] = presets.intervals,
    ) -> None:
        self.nominal_coverage = nominal_coverage
        self.gap = gap
        self._streams = Horizons([nominal_coverage], controller)
        self._corrects: bool | None = None

    def fit(self, predictions: Any, y: Any) -> Self:
        """Begins anew with the predictions of a backtest and the labels of its whole time."""
        self.fit_predict(predictions, y)
        return self

    def fit_predict(self, predictions: Any, y: Any) -> Any:
        """Begins anew, and gives the predictions back with the bounds they would have had."""
        if "fold" not in predictions:
            raise InputError("a backtest needs the column 'fold', as skforecast 0.17 and later has")
        self._corrects = None
        due = y.index.get_indexer(predictions.index)
        fold = predictions["fold"].to_numpy()
        first = np.full(fold.max() + 1, len(y))
        np.minimum.at(first, fold, due)
        wide = y.to_frame(0) if y.ndim == 1 else y
        places = wide.columns.get_indexer(self._names(predictions))
        labels = wide.to_numpy(dtype=np.float64)[due, places]
        return self._shown(
            predictions, Horizons.fit, due, first[fold] - 1 - self.gap, labels, groups=(fold,)
        )

    def predict(self, predictions: Any) -> Any:
        """Predictions with their bounds.

        They wait for their labels from the next `update` on; asked again before it, the last answer
        counts.
        """
        frame = predictions.to_frame() if predictions.ndim == 1 else predictions
        due = clock(frame.index)
        return self._shown(frame, Horizons.predict, due, due, np.full(len(due), np.nan))

    def update(self, y: Any) -> Self:
        """New labels with their times: a series, or a frame with a column for each series."""
        wide = y.to_frame(0) if y.ndim == 1 else y
        for name in wide:
            self._streams.update(np.full(len(y), name), clock(wide.index), wide[name])
        return self

    def certificate(self, horizon: int, level: Any = 0) -> Certificate:
        """What is guaranteed of one series, named as in `level`, at one horizon."""
        return self._streams.certificate(level, horizon)

    def _names(self, frame: Any) -> Array:
        """The series of each row; a single one has no name."""
        if "level" not in frame:
            return np.zeros(len(frame), dtype=np.int64)
        names: Array = frame["level"].to_numpy()
        return names

    def _shown(
        self,
        frame: Any,
        show: Callable[[Horizons, Forecasts], Floats],
        due: Array,
        made: Array,
        y: Floats,
        groups: tuple[Array, ...] = (),
    ) -> Any:
        """The frame with the bounds of its rows."""
        corrects = "lower_bound" in frame
        if self._corrects is not None and self._corrects != corrects:
            raise InputError("bounds must be in the backtest and in the predictions, or in neither")
        self._corrects = corrects
        names = self._names(frame)
        horizon = ranks(due, names, *groups) + self.gap
        ends = ("lower_bound", "upper_bound") if corrects else ("pred", "pred")
        lower, upper = (frame[name].to_numpy(dtype=np.float64) for name in ends)
        rows = Forecasts(names, horizon, made, due, lower, upper, y)
        lower, upper = show(self._streams, rows)[:, :, 0].T
        return frame.assign(lower_bound=lower, upper_bound=upper)
