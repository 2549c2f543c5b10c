"""sktime forecasters with intervals that hold their coverage (extra `sktime`).

`fit` backtests the forecaster, and `update` judges what was forecast before it learns.
`predict_interval` changes nothing, however often it is called.
"""

# mypy: allow-subclassing-any, allow-untyped-calls

from collections.abc import Callable
from copy import deepcopy
from math import ceil
from typing import Any, ClassVar, Self
from warnings import warn

import numpy as np

from setpoint import presets
from setpoint._check import whole
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.guarantee import Certificate
from setpoint.models.horizons import Floats, Forecasts, replayed, unknown
from setpoint.models.online import known_of

try:
    import pandas as pd
    from sktime.forecasting.base import BaseForecaster, ForecastingHorizon
except ImportError as error:
    raise ImportError("this needs sktime: pip install 'setpoint[sktime]'") from error

__all__ = ["IntervalForecaster"]


class IntervalForecaster(BaseForecaster):
    """Any forecaster, with intervals whose coverage is held online, horizon by horizon.

    Each horizon of `fh` is a stream of its own. sktime names the levels when it asks, so the
    forecasts made so far are kept, a few numbers each, and are replayed at these levels, which
    never cross. Quantiles are the ends of the central intervals, and the median is the forecast.

    `update` places rows by their index. Rows that are known already are passed over, and rows that
    are left out have no label. Where X is used, a forecast is judged once `update` was given the X
    of all rows it is for; X must hold the new rows, and may hold later ones.

    Parameters
    ----------
    forecaster
        The forecaster of points.
    initial_window
        The rows that the backtest of `fit` begins with: a share, or a whole number.
    step_length
        How many rows the backtest moves on between two forecasts.
    controller
        What makes a controller of a coverage or a list of several, by default
        `setpoint.intervals`. The features of `partial(sp.intervals, features=["price"])` are
        columns of X.
    window
        Keep only the forecasts of the last `window` rows; by default all. The cost of an interval
        then stays the same, and its stream begins with the first row kept.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from setpoint.models.sktime import IntervalForecaster
    >>> from sktime.forecasting.naive import NaiveForecaster
    >>> y = pd.Series(np.sin(np.arange(300.0)))
    >>> model = IntervalForecaster(NaiveForecaster()).fit(y[:280], fh=[1, 2])
    >>> model.predict_interval(coverage=0.9).shape
    (2, 2)
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": ["setpoint"],
        "maintainers": ["setpoint"],
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
        "requires-fh-in-fit": True,
        "capability:multivariate": False,
        "capability:missing_values": False,
        "capability:exogenous": True,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:update": True,
    }

    def __init__(
        self,
        forecaster: Any,
        initial_window: float | int = 0.5,
        step_length: int = 1,
        controller: Callable[[Any], Controller] | None = None,
        window: int | None = None,
    ) -> None:
        self.forecaster = forecaster
        self.initial_window = initial_window
        self.step_length = step_length
        self.controller = controller
        self.window = window
        super().__init__()
        tags = ["capability:exogenous", "X-y-must-have-same-index", "enforce_index_type"]
        self.clone_tags(forecaster, [*tags, "capability:missing_values"])
        if self._features:
            self.set_tags(**{"capability:exogenous": True})

    @property
    def _features(self) -> tuple[str, ...]:
        return known_of((self.controller or presets.intervals)(0.9))

    def certificate(self, series: Any = 0, horizon: int = 1, coverage: float = 0.9) -> Certificate:
        """What is guaranteed for one horizon at a coverage, of the labels known so far.

        Each forecaster has one series, 0.
        """
        self.check_is_fitted()
        if self._is_vectorized:
            raise InputError("a certificate is of one series: ask one of `forecasters_`")
        _, trace = replayed(self._judged(), [coverage], self.controller or presets.intervals)
        return trace.certificate((series, horizon))

    # What sktime calls

    def _fit(self, y: Any, X: Any, fh: Any) -> Self:
        self.first_cutoff_ = self.cutoff, len(y)
        self.past_, self.labels_ = self._made(0, np.empty(0, int), np.empty(0), X), unknown(1)
        self.waiting_: list[tuple[int, Any]] = []  # forecasters whose X is still to come
        self.X_ = X
        self._backtest(y, X, self._steps(fh))
        self._learn(y, np.arange(1, len(y) + 1))
        self.forecaster_ = self.forecaster.clone().fit(y, X, fh=fh)
        return self

    def _predict(self, fh: Any, X: Any) -> Any:
        return self.forecaster_.predict(fh=fh, X=X)

    def _predict_interval(self, fh: Any, X: Any, coverage: list[float]) -> Any:
        both = [(each, side) for each in coverage for side in (0, 1)]
        levels = [coverage, ["lower", "upper"]]
        return self._frame(fh, X, both, levels)

    def _predict_quantiles(self, fh: Any, X: Any, alpha: list[float]) -> Any:
        ends = [(round(abs(1.0 - 2.0 * each), 12), int(each > 0.5)) for each in alpha]
        return self._frame(fh, X, ends, [alpha])

    def _update(self, y: Any, X: Any = None, update_params: bool = True) -> Self:
        rows = self._row(y.index)
        if rows.max() > self._rows:
            if self._rows == self._row(self.forecaster_.cutoff)[0]:
                self._forecast(X)
            self._learn(y, rows)
            late = [row for row, model in self.waiting_ if row + self._reach(model) <= rows.max()]
            if late:
                warn(f"no X for the forecasts made at rows {late}: not judged", stacklevel=2)
                self.waiting_ = [each for each in self.waiting_ if each[0] not in late]
        self.forecaster_.update(y, X, update_params=update_params)
        return self

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:  # noqa: ARG003
        """Settings that sktime tests with."""
        from sktime.forecasting.naive import NaiveForecaster
        from sktime.forecasting.trend import TrendForecaster

        return [
            {"forecaster": NaiveForecaster("drift"), "initial_window": 0.7},
            {"forecaster": TrendForecaster(), "step_length": 3},
        ]

    # Forecasts and labels

    def _frame(self, fh: Any, X: Any, ends: list[tuple[float, int]], levels: list[Any]) -> Any:
        """Ends, each by its coverage and side, as a frame with these levels of names."""
        point = self.forecaster_.predict(fh=fh, X=X)
        rising = sorted({coverage for coverage, _ in ends})
        steps, points = self._steps(fh), np.asarray(point, dtype=np.float64)
        X = None if X is None else X[X.index > self.cutoff[0]]
        shown = self._intervals(self._made(self._rows, steps, points, X), rising)
        columns = [shown[:, side, rising.index(coverage)] for coverage, side in ends]
        names = pd.MultiIndex.from_product([self._get_varnames(), *levels])
        return pd.DataFrame(np.column_stack(columns), index=point.index, columns=names)

    def _steps(self, fh: Any, cutoff: Any = None) -> Any:
        """How many steps ahead of a cutoff, by default the last one."""
        return 1 + np.asarray(fh.to_indexer(self.cutoff if cutoff is None else cutoff))

    def _row(self, index: Any) -> Any:
        """How many rows are known at some times, those that were left out among them."""
        cutoff, rows = self.first_cutoff_
        times = ForecastingHorizon(index, is_relative=False, freq=getattr(cutoff, "freq", None))
        return rows + self._steps(times, cutoff)

    @property
    def _rows(self) -> int:
        """How many rows are known, those that were left out among them."""
        return len(self.labels_) - 1

    def _reach(self, model: Any) -> int:
        """How many steps ahead of its own last row a forecaster looks."""
        return int(self._steps(self.fh, model.cutoff).max())

    def _backtest(self, y: Any, X: Any, steps: Any) -> None:
        """Forecasts the rows after the first ones, as `update` goes on through them."""
        first, count, steps = self.initial_window, len(y), steps[steps > 0]
        first = ceil(first * count) if isinstance(first, float) else first
        if whole(first, "the rows of initial_window", 1) >= count:
            raise InputError(
                f"initial_window must be below {count} rows, got {self.initial_window}"
            )
        step, reach = whole(self.step_length, "step_length", 1), int(steps.max(initial=0))
        # Where there are features, a forecast needs those of the rows it is for.
        last = 0 if not reach else count if X is None else count - reach + 1
        parts = (lambda *_: None) if X is None else (lambda start, stop: X[start:stop])
        model = self.forecaster.clone().set_config(warnings="off")
        if first < last:
            model.fit(y[:first], parts(0, first), fh=steps)
        for row in range(first, last, step):
            ahead = parts(row, row + reach)
            self._keep(row, steps, model.predict(X=ahead), ahead)
            model.update(y[row : row + step], parts(row, row + step))

    def _forecast(self, X: Any) -> None:
        """Forecasts from the last row, and from earlier ones where their X has come only now."""
        model = self.forecaster_
        if self.X_ is None:
            self._keep(self._rows, self._steps(self.fh, model.cutoff), model.predict(), None)
            return
        if X is not None:
            self.X_ = pd.concat([self.X_[~self.X_.index.isin(X.index)], X]).sort_index()
        origins, self.waiting_ = [*self.waiting_, (self._rows, model)], []
        self.X_ = self.X_[self.X_.index > origins[0][1].cutoff[0]]
        for row, model in origins:
            X = self.X_[self.X_.index > model.cutoff[0]][: max(self._reach(model), 0)]
            if len(X) and self._row(X.index)[-1] == row + len(X) == row + self._reach(model):
                self._keep(row, self._steps(self.fh, model.cutoff), model.predict(X=X), X)
            elif self._reach(model) > 0:
                self.waiting_.append((row, deepcopy(model)))

    def _keep(self, row: int, steps: Any, points: Any, X: Any) -> None:
        """Forecasts that were made when so many rows were known; their labels are still to come."""
        rows = self._made(row, steps, np.asarray(points, dtype=np.float64), X)
        self.past_ = self.past_.joined(rows.taken(steps > 0))

    def _made(self, row: int, steps: Any, points: Floats, X: Any) -> Forecasts:
        """The forecasts of one time; times are numbers of rows known, X has the rows after it."""
        known, names = None, self._features
        if names:
            if X is None or not {*names} <= {*X.columns}:
                got = [] if X is None else [*X.columns]
                raise InputError(f"X must have the features {', '.join(names)}, got {got}")
            # NaN for rows that X has not, and for steps that are not ahead.
            values = np.vstack(
                [X[[*names]].to_numpy(dtype=np.float64), np.full(len(names), np.nan)]
            )
            known = values[np.where((steps > 0) & (steps < len(values)), steps - 1, -1)]
        made = np.full(len(steps), row)
        return Forecasts(
            np.zeros_like(made), steps, made, row + steps, points, points, unknown(len(made)), known
        )

    def _learn(self, y: Any, rows: Any) -> None:
        """The labels of rows, those that are new; NaN for rows that were left out."""
        new, known = rows > self._rows, len(self.labels_)
        labels = np.full(max(int(rows.max()) + 1, known), np.nan)
        labels[:known], labels[rows[new]] = self.labels_, np.asarray(y, dtype=np.float64)[new]
        self.labels_ = labels
        if self.window is not None:
            first = self._rows - whole(self.window, "window", 1)
            self.past_ = self.past_.taken(self.past_.made > first)

    def _judged(self) -> Forecasts:
        """The forecasts that are kept, with the labels that have come."""
        due = np.minimum(self.past_.due, len(self.labels_))
        return self.past_._replace(y=np.append(self.labels_, np.nan)[due])

    def _intervals(self, now: Forecasts, coverages: list[float]) -> Floats:
        """The intervals now, (n, 2, k): at coverage 0 the forecast, at 1 the whole line."""
        points, ahead = now.lower, now.horizon > 0
        inside = [each for each in coverages if 0.0 < each < 1.0]
        past = self._judged()
        rows = past.joined(now.taken(ahead))
        ends = np.empty((len(points), 2, len(coverages)))
        ends[:, 0], ends[:, 1] = -np.inf, np.inf
        if inside:
            shown, _ = replayed(rows, inside, self.controller or presets.intervals)
            among = [place for place, each in enumerate(coverages) if each in inside]
            ends[np.ix_(ahead, np.arange(2), np.array(among))] = shown[len(past.y) :]
        if 0.0 in coverages:
            narrowest = ends[:, :, 1] if len(coverages) > 1 else np.column_stack([points, points])
            ends[:, :, 0] = np.clip(points, *narrowest.T)[:, None]
        return ends
