"""skforecast's predictions with bounds that hold their coverage, of one series or many.

The frame of a backtest goes in first, then predictions and labels in turn. Nothing of skforecast's
is imported: a frame with its columns will do (extra `data`).
"""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np

from setpoint import presets
from setpoint._files import put
from setpoint.controller import Controller
from setpoint.errors import InputError, StateError
from setpoint.guarantee import Certificate
from setpoint.models.horizons import Array, Floats, Forecasts, Horizons, clock, steps_ahead

try:
    import pandas as pd
except ImportError as error:
    raise ImportError("this needs pandas: pip install 'setpoint[skforecast]'") from error

__all__ = ["Intervals"]


class Intervals:
    """Bounds for the predictions of a forecaster, each step ahead by itself.

    `fit` takes the predictions of `backtesting_forecaster`, or of the one for many series, with the
    labels. `predict` adds the columns lower_bound and upper_bound. `update` takes the new labels. A
    label h steps ahead is told h steps after the forecast was made.

    Several coverages come from one stream and never cross: their bounds are the columns q_0.05,
    q_0.95 and so on, as `predict_quantiles` names them.

    Where predictions have the bounds already, of several coverages those of the highest, they are
    corrected; else the bounds go around the point forecast. A backtest and the predictions after it
    must be alike in this.

    Parameters
    ----------
    nominal_coverage
        The share of labels that the bounds are to hold, or several that rise.
    gap
        That of `TimeSeriesFold`: how many steps lie between the last label and the first forecast.
    controller
        What makes a controller of the coverage; see `setpoint.models.horizons.Horizons`.

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
        nominal_coverage: float | Iterable[float] = 0.8,
        *,
        gap: int = 0,
        controller: Callable[[Any], Controller] = presets.intervals,
    ) -> None:
        several = isinstance(nominal_coverage, Iterable)
        coverages = (
            nominal_coverage if isinstance(nominal_coverage, Iterable) else [nominal_coverage]
        )
        self._streams = Horizons(coverages, controller)
        coverages = self._streams.coverages
        self.nominal_coverage = coverages if several else coverages[0]
        self.gap = gap
        tails = [round(0.5 - 0.5 * each, 9) for each in coverages]
        self._bounds = ["lower_bound"], ["upper_bound"]
        if several:
            self._bounds = [f"q_{p}" for p in tails], [f"q_{round(1.0 - p, 9)}" for p in tails]
        self._corrects: bool | None = None
        self._single = True

    def fit(self, predictions: Any, y: Any) -> Self:
        """Begins anew with the predictions of a backtest and the labels of its whole time."""
        self.fit_predict(predictions, y)
        return self

    def fit_predict(self, predictions: Any, y: Any) -> Any:
        """Begins anew, and gives the predictions back with the bounds they would have had."""
        if "fold" not in _frame(predictions):
            raise InputError("a backtest needs the column 'fold', as skforecast 0.17 and later has")
        self._corrects = None
        names = self._names(predictions)
        wide = self._wide(y)
        due, places = wide.index.get_indexer(predictions.index), wide.columns.get_indexer(names)
        for found, wanted in ((due, predictions.index), (places, names)):
            if (found < 0).any():
                missing = wanted[int((found < 0).argmax())]
                raise InputError(f"y must have every time and series of the backtest: no {missing}")
        if not len(predictions):
            raise InputError("a backtest needs rows, and this one has none")
        fold = predictions["fold"].to_numpy()
        first = np.full(fold.max() + 1, len(wide))
        np.minimum.at(first, fold, due)
        labels = wide.to_numpy(dtype=np.float64)[due, places]
        return self._shown(
            predictions, Horizons.fit, due, first[fold] - 1 - self.gap, labels, fitted=True
        )

    def predict(self, predictions: Any) -> Any:
        """Predictions with their bounds.

        The first row of a series is one step ahead, and the others by their times. They wait for
        their labels. If they are asked for again, the last answer counts.
        """
        frame = _frame(predictions)
        due = clock(frame.index)
        return self._shown(frame, Horizons.predict, due, due, np.full(len(due), np.nan))

    def update(self, y: Any) -> Self:
        """New labels with their times: a series, or a frame with a column for each series."""
        wide = self._wide(y)
        for name in wide:
            self._streams.update(np.full(len(wide), name), clock(wide.index), wide[name])
        return self

    def certificate(self, series: Any = 0, horizon: int = 1) -> Certificate:
        """What is guaranteed of one series, named as in the column level, at one horizon."""
        return self._streams.certificate(series, horizon)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes everything into a folder."""
        self._streams.save(folder)
        header: dict[str, Any] = {"nominal_coverage": self.nominal_coverage, "gap": self.gap}
        header |= {"corrects": self._corrects, "single": self._single}
        put(Path(folder) / "intervals.json", json.dumps(header))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Intervals":
        """What `save` wrote; a controller of one's own is that of the streams."""
        try:
            header = json.loads((Path(folder) / "intervals.json").read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise StateError(f"{folder} is no folder of saved intervals: {error}") from error
        other = cls(header["nominal_coverage"], gap=header["gap"])
        other._streams, other._corrects = Horizons.load(folder), header["corrects"]
        other._single = header["single"]
        return other

    def _names(self, frame: Any) -> Array:
        """The series of each row; a single one has no name."""
        self._single = "level" not in frame
        if self._single:
            return np.zeros(len(frame), dtype=np.int64)
        names: Array = frame["level"].to_numpy()
        return names

    def _wide(self, y: Any) -> Any:
        """Labels with a column for each series; a single one is series 0."""
        if not isinstance(y, pd.Series | pd.DataFrame) or isinstance(y.index, pd.MultiIndex):
            raise InputError(
                "y must be a pandas Series, or a wide frame with a column for each series, got a "
                f"{'long frame' if hasattr(y, 'index') else type(y).__name__}"
            )
        if y.index.has_duplicates:
            twice = y.index[y.index.duplicated()][0]
            raise InputError(f"y must have each time once, and it has {twice} twice")
        y = y.sort_index()  # a label is known at its time, wherever its row stands
        if not self._single:
            return y.to_frame() if y.ndim == 1 else y
        if y.ndim == 2 and y.shape[1] != 1:
            raise InputError(
                f"predictions without the column 'level' are of one series, got y of {[*y]}"
            )
        return (y if y.ndim == 1 else y.iloc[:, 0]).to_frame(0)

    def _shown(
        self,
        frame: Any,
        show: Callable[[Horizons, Forecasts], Floats],
        due: Array,
        made: Array,
        y: Floats,
        *,
        fitted: bool = False,
    ) -> Any:
        """The frame with the bounds of its rows."""
        lowers, uppers = self._bounds
        low, high = outer = lowers[-1], uppers[-1]
        corrects = low in frame
        if corrects != (high in frame) or not (corrects or "pred" in frame):
            raise InputError(
                f"predictions need 'pred' or both {low!r} and {high!r}, got the columns {[*frame]}"
            )
        if self._corrects is not None and self._corrects != corrects:
            raise InputError("bounds must be in the backtest and in the predictions, or in neither")
        self._corrects = corrects
        names = self._names(frame)
        horizon = steps_ahead(names, due, made) if fitted else steps_ahead(names, due) + self.gap
        ends = outer if corrects else ("pred", "pred")
        lower, upper = (frame[name].to_numpy(dtype=np.float64) for name in ends)
        shown = show(self._streams, Forecasts(names, horizon, made, due, lower, upper, y))
        columns = dict(zip(lowers, shown[:, 0].T, strict=True))
        columns |= zip(uppers, shown[:, 1].T, strict=True)
        return frame.assign(**{name: columns[name] for name in (*reversed(lowers), *uppers)})


def _frame(predictions: Any) -> Any:
    """Predictions as a frame; a series of them is the column 'pred'."""
    if not isinstance(predictions, pd.Series | pd.DataFrame):
        raise InputError(
            f"predictions must be a pandas Series or DataFrame, got a {type(predictions).__name__}"
        )
    return predictions if predictions.ndim == 2 else predictions.to_frame("pred")
