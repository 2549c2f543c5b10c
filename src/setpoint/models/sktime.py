"""sktime forecasters with intervals that hold their coverage (extra `sktime`).

`fit` backtests the forecaster, and `update` judges what was forecast before it learns.
`predict_interval` changes nothing, however often it is called.
"""

# mypy: allow-subclassing-any, allow-untyped-calls

from collections.abc import Callable
from math import ceil
from typing import Any, ClassVar, Self

import numpy as np

from setpoint import presets
from setpoint._check import whole
from setpoint.controller import Controller
from setpoint.guarantee import Certificate
from setpoint.models.horizons import Floats, Forecasts, replayed

try:
    import pandas as pd
    from sktime.forecasting.base import BaseForecaster
except ImportError as error:
    raise ImportError("this needs sktime: pip install 'setpoint[sktime]'") from error

__all__ = ["IntervalForecaster"]


class IntervalForecaster(BaseForecaster):
    """Any forecaster, with intervals whose coverage is held online, horizon by horizon.

    Each horizon of `fh` is a stream of its own. A label h steps ahead is taken in h steps later, in
    the backtest and in `update` alike. sktime asks for a coverage in `predict_interval`. So the
    forecasts made so far are kept, a few numbers each, and are replayed at that coverage: the
    intervals are those of a stream that was asked for it all along.

    Where X is given, `update` judges the horizons that X reaches: X must hold the new rows.

    Parameters
    ----------
    forecaster
        The forecaster of points.
    initial_window
        The rows that the backtest of `fit` begins with: a share, or a whole number.
    step_length
        How many rows the backtest moves on between two forecasts.
    controller
        What makes a controller of a coverage, by default `setpoint.intervals`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sktime.forecasting.naive import NaiveForecaster
    >>> from setpoint.models.sktime import IntervalForecaster
    >>> y = pd.Series(np.cumsum(np.random.default_rng(0).normal(size=300)))
    >>> model = IntervalForecaster(NaiveForecaster()).fit(y[:250], fh=[1, 2])
    >>> model.predict_interval(coverage=[0.8, 0.9]).shape
    (2, 4)
    >>> int(model.update(y[250:251], update_params=False).cutoff[0])
    250
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
        controller: Callable[[float], Controller] | None = None,
    ) -> None:
        self.forecaster = forecaster
        self.initial_window = initial_window
        self.step_length = step_length
        self.controller = controller
        super().__init__()
        tags = ["capability:exogenous", "X-y-must-have-same-index", "enforce_index_type"]
        self.clone_tags(forecaster, tags)

    def certificate(self, horizon: int, coverage: float = 0.9) -> Certificate:
        """What is guaranteed of one horizon at a coverage, of the labels known so far."""
        self.check_is_fitted()
        _, (trace,) = replayed(self.past_, [coverage], self.controller or presets.intervals)
        return trace.certificate((0, horizon))

    # What sktime calls

    def _fit(self, y: Any, X: Any, fh: Any) -> Self:
        self.past_, self.rows_ = _rows(0, np.empty(0, int), np.empty(0)), 0
        steps = self._steps(fh)
        self._backtest(y, X, steps[steps > 0])
        self._tell(y)
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
        steps = self._steps(self.fh, self.forecaster_.cutoff)
        known = steps if X is None else steps[steps <= len(y)]
        if len(known) == len(steps):
            points = self.forecaster_.predict(X=X)
            self._keep(self.rows_, steps, points)
        elif not self.forecaster_.get_tag("requires-fh-in-fit"):
            self._keep(self.rows_, known, self.forecaster_.predict(fh=known, X=X))
        self._tell(y)
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
        shown = self._intervals(self._steps(fh), np.asarray(point, dtype=np.float64), rising)
        columns = [shown[:, side, rising.index(coverage)] for coverage, side in ends]
        names = pd.MultiIndex.from_product([self._get_varnames(), *levels])
        return pd.DataFrame(np.column_stack(columns), index=point.index, columns=names)

    def _steps(self, fh: Any, cutoff: Any = None) -> Any:
        """How many steps ahead of a cutoff, by default the last one."""
        return 1 + np.asarray(fh.to_indexer(self.cutoff if cutoff is None else cutoff))

    def _backtest(self, y: Any, X: Any, steps: Any) -> None:
        """Forecasts the rows after the first ones, as `update` goes on through them."""
        share, count = self.initial_window, len(y)
        first = (
            ceil(share * count) if isinstance(share, float) else whole(share, "initial_window", 1)
        )
        step, reach = whole(self.step_length, "step_length", 1), int(steps.max(initial=0))
        model, seen = self.forecaster.clone().set_config(warnings="off"), 0
        # Where there are features, a forecast needs those of the rows it is for.
        last = count if X is None else count - reach + 1
        for row in range(first, last if reach else 0, step):
            features, ahead = (None, None) if X is None else (X[seen:row], X[row : row + reach])
            if seen:
                model.update(y[seen:row], features)
            else:
                model.fit(y[:row], features, fh=steps)
            self._keep(row, steps, model.predict(X=ahead))
            seen = row

    def _keep(self, row: int, steps: Any, points: Any) -> None:
        """Forecasts that were made when so many rows were known; their labels are still to come."""
        rows = _rows(row, steps, np.asarray(points, dtype=np.float64))
        self.past_ = self.past_.joined(rows.taken(steps > 0))

    def _tell(self, y: Any) -> None:
        """The labels of the next rows."""
        due = self.past_.due - self.rows_ - 1
        new = (due >= 0) & (due < len(y)) & np.isnan(self.past_.y)
        labels = np.where(new, np.asarray(y, dtype=np.float64)[np.where(new, due, 0)], self.past_.y)
        self.past_ = self.past_._replace(y=labels)
        self.rows_ += len(y)

    def _intervals(self, steps: Any, points: Floats, coverages: list[float]) -> Floats:
        """The intervals now, (n, 2, k): at coverage 0 the forecast, at 1 the whole line."""
        inside = [each for each in coverages if 0.0 < each < 1.0]
        rows = self.past_.joined(_rows(self.rows_, steps, points).taken(steps > 0))
        shown, _ = replayed(rows, inside, self.controller or presets.intervals)
        ends = np.empty((len(points), 2, len(coverages)))
        ends[:, 0], ends[:, 1] = -np.inf, np.inf
        among = [place for place, each in enumerate(coverages) if each in inside]
        ends[np.ix_(steps > 0, [0, 1], among)] = shown[len(self.past_.y) :]
        if 0.0 in coverages:
            narrowest = ends[:, :, 1] if len(coverages) > 1 else np.column_stack([points, points])
            ends[:, :, 0] = np.clip(points, *narrowest.T)[:, None]
        return ends


def _rows(row: int, steps: Any, points: Floats) -> Forecasts:
    """The forecasts of one time; times are numbers of rows known."""
    made = np.full(len(steps), row)
    unknown = np.full(len(steps), np.nan)
    return Forecasts(np.zeros_like(made), steps, made, row + steps, points, points, unknown)
