"""sktime forecasters wrapped: its own checks pass, and labels count when they are known."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import setpoint as sp
from setpoint.errors import InputError

pytest.importorskip("sktime")
pytestmark = [
    pytest.mark.neighbours,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning"),
]

from sklearn.linear_model import LinearRegression  # noqa: E402
from sktime.datasets import load_airline  # noqa: E402
from sktime.forecasting.compose import make_reduction  # noqa: E402
from sktime.forecasting.model_evaluation import evaluate  # noqa: E402
from sktime.forecasting.naive import NaiveForecaster  # noqa: E402
from sktime.forecasting.trend import TrendForecaster  # noqa: E402
from sktime.performance_metrics.forecasting.probabilistic import (  # noqa: E402
    EmpiricalCoverage,
)
from sktime.split import ExpandingWindowSplitter  # noqa: E402
from sktime.utils.estimator_checks import check_estimator  # noqa: E402

from setpoint.models.sktime import IntervalForecaster  # noqa: E402

H = 3


def walk(count: int = 260) -> Any:
    times = pd.period_range("2004-01", periods=count, freq="M")
    return pd.Series(np.random.default_rng(0).normal(size=count).cumsum(), times, name="y")


def test_the_checks_of_sktime_pass() -> None:
    results = check_estimator(IntervalForecaster, raise_exceptions=False, verbose=False)
    failed = {name: result for name, result in results.items() if result != "PASSED"}
    assert len(results) > 500
    assert failed == {}


def test_intervals_are_those_of_live_streams_to_the_bit() -> None:
    y = walk(80)
    model = IntervalForecaster(NaiveForecaster(), initial_window=20).fit(y[:60], fh=[1, 2, 3])
    streams = {h: sp.Stream(sp.intervals(0.9)) for h in (1, 2, 3)}
    for row in range(20, 80):  # so many rows are known; the forecast is the last of them
        for h, stream in streams.items():
            if row - h >= 20:
                stream.update(y.iloc[row - 1], id=row - h)
        if row >= 60:
            if row > 60:
                model.update(y[row - 1 : row])
            shown = model.predict_interval(coverage=0.9).to_numpy()
            wanted = [stream.peek(y.iloc[row - 1]) for stream in streams.values()]
            np.testing.assert_array_equal(shown, [(each.lower, each.upper) for each in wanted])
        for stream in streams.values():
            stream.predict(y.iloc[row - 1], id=row)


def test_an_update_of_many_rows_judges_what_was_forecast_before_it() -> None:
    y = walk(120)
    model = IntervalForecaster(NaiveForecaster(), initial_window=60).fit(y[:100], fh=[1, 2, 3])
    before = model.certificate(horizon=3).risks[0].judged
    model.update(y[100:110])
    # Of the backtest two were waiting, and one forecast was made at row 100.
    assert model.certificate(horizon=3).risks[0].judged == before + 3
    assert model.cutoff[0] == y.index[109]


def test_rows_are_placed_by_their_index() -> None:
    y = walk(120)
    model = IntervalForecaster(NaiveForecaster(), initial_window=60).fit(y[:100], fh=[1, 2])
    again = model.clone().fit(y[:100], fh=[1, 2])
    for row in range(100, 110):
        model.update(y[row : row + 1])
        again.update(y[row - 20 : row + 1])  # with rows that are known already
    again.update(y[90:110])
    pd.testing.assert_frame_equal(again.predict_interval(), model.predict_interval())
    judged = [model.certificate(horizon=h).risks[0].judged for h in (1, 2)]
    model.update(y[111:113])  # row 110 is left out: one step ahead has no label, two steps has
    assert [model.certificate(horizon=h).risks[0].judged for h in (1, 2)] == [
        judged[0],
        judged[1] + 1,
    ]
    assert model._judged().y[-1] == y.iloc[111]


def test_windows_of_evaluate_are_those_of_an_update_row_by_row() -> None:
    y = walk(130)
    cv = ExpandingWindowSplitter(fh=[1, 2], initial_window=100, step_length=1)
    model = IntervalForecaster(NaiveForecaster(), initial_window=60)
    shown = evaluate(
        model, cv, y, strategy="update", scoring=EmpiricalCoverage(coverage=0.9),
        return_data=True, error_score="raise",
    )  # fmt: skip
    model.fit(y[:100], fh=[1, 2])
    for row, ends in zip(range(100, 129), shown["y_pred_interval"], strict=True):
        pd.testing.assert_frame_equal(ends, model.predict_interval(coverage=[0.9]))
        model.update(y[row : row + 1])


def test_a_window_bounds_what_is_kept() -> None:
    y = walk(140)
    model = IntervalForecaster(NaiveForecaster(), initial_window=60, window=50)
    model.fit(y[:100], fh=[1, 2])
    for row in range(100, 140):
        model.update(y[row : row + 1])
    assert len(model.past_.y) == 49 * 2
    assert np.isfinite(model.predict_interval().to_numpy()).all()


@pytest.mark.parametrize("wrong", [1.5, -0.5, 100, 0])
def test_an_initial_window_leaves_rows_to_forecast(wrong: float) -> None:
    with pytest.raises(InputError, match="initial_window"):
        IntervalForecaster(NaiveForecaster(), initial_window=wrong).fit(walk(100), fh=[1])


def test_every_horizon_holds_its_coverage_as_time_goes_on() -> None:
    y = walk()
    model = IntervalForecaster(NaiveForecaster()).fit(y[:100], fh=[1, 2, 3])
    inside = []
    for row in range(100, 257):
        ends = model.predict_interval(coverage=0.8)["y"][0.8]
        truth = y.loc[ends.index]
        inside.append((ends["lower"] <= truth) & (truth <= ends["upper"]))
        model.update(y[row : row + 1])
    for hits in np.array(inside).T:
        assert hits.mean() == pytest.approx(0.8, abs=0.05)
    assert model.certificate(0, 1, 0.8).risks[0].within


def test_names_levels_and_quantiles_are_sktimes() -> None:
    y = load_airline()
    model = IntervalForecaster(NaiveForecaster(sp=12), initial_window=60)
    model.fit(y[:-12], fh=range(1, 4))
    ends = model.predict_interval(coverage=[0.9, 0.5])
    name = ends.columns[0][0]
    assert ends.columns.to_list() == [
        (name, level, end) for level in (0.9, 0.5) for end in ("lower", "upper")
    ]
    assert (ends[name][0.9]["lower"] <= ends[name][0.5]["lower"]).all()
    quantiles = model.predict_quantiles(alpha=[0.05, 0.5, 0.95])
    assert (np.diff(quantiles.to_numpy(), axis=1) >= 0.0).all()
    alone = model.predict_interval(coverage=[0.9])[name][0.9]
    np.testing.assert_array_equal(quantiles.iloc[:, 0], alone["lower"])


def test_features_reach_the_forecaster() -> None:
    y = walk(120)
    X = pd.DataFrame({"x": y.shift(1).bfill()}, index=y.index)
    inner = make_reduction(LinearRegression(), window_length=4, strategy="recursive")
    model = IntervalForecaster(inner, initial_window=60, step_length=5)
    model.fit(y[:100], X[:100], fh=[1, 2, 3])
    judged = model.certificate(horizon=1).risks[0].judged
    model.update(y[100:101], X[100:103])  # of the future rows, too
    assert model.certificate(horizon=1).risks[0].judged == judged + 1
    assert np.isfinite(model.predict_interval(X=X[101:104]).to_numpy()).all()


def test_forecasts_wait_for_their_features() -> None:
    y = walk(120)
    X = pd.DataFrame({"x": y.shift(1).bfill()}, index=y.index)
    inner = make_reduction(LinearRegression(), window_length=4, strategy="recursive")
    by_row = IntervalForecaster(inner, initial_window=80).fit(y[:100], X[:100], fh=[1, 2, 3])
    ahead = by_row.clone().fit(y[:100], X[:100], fh=[1, 2, 3])
    before = [by_row.certificate(horizon=h).risks[0].judged for h in (1, 2, 3)]
    for row in range(100, 115):
        by_row.update(y[row : row + 1], X[row : row + 1], update_params=False)
        ahead.update(y[row : row + 1], X[row : row + 3], update_params=False)
    judged = [by_row.certificate(horizon=h).risks[0].judged - n for h, n in enumerate(before, 1)]
    assert judged == [13, 13, 13]  # the X of three rows must be there
    shown, later = (model.predict_interval(X=X[115:118]) for model in (ahead, by_row))
    pd.testing.assert_frame_equal(later, shown, rtol=0.1)  # it knows two forecasts less
    with pytest.warns(UserWarning, match="no X for the forecasts"):
        by_row.update(y[115:119])


def test_panels_have_an_instance_for_each_series() -> None:
    parts = {name: scale * walk(60) for name, scale in (("a", 1.0), ("b", 50.0))}
    panel = pd.concat(parts, names=["series", "time"]).to_frame("y")
    model = IntervalForecaster(TrendForecaster(), step_length=2).fit(panel, fh=[1])
    ends = model.predict_interval()
    widths = (ends["y"][0.9]["upper"] - ends["y"][0.9]["lower"]).to_numpy()
    assert widths[1] > 10.0 * widths[0]
    with pytest.raises(InputError, match="forecasters_"):
        model.certificate(horizon=1)
    assert model.forecasters_.iloc[0, 0].certificate(horizon=1).risks[0].judged > 0


def test_features_of_the_controller_are_columns_of_what_the_host_knows() -> None:
    rng = np.random.default_rng(1)
    times = walk().index
    storm = rng.integers(0, 2, len(times)).astype(float)
    y = pd.Series(rng.normal(size=len(times)) * (1.0 + 9.0 * storm), times, name="y")
    X = pd.DataFrame({"storm": storm}, times)
    own = partial(sp.intervals, features=["storm"])
    model = IntervalForecaster(TrendForecaster(), controller=own)
    model.fit(y[:250], X[:250], fh=[1, 2])
    model.update(y[250:252], X[250:252])
    width = []
    for value in (0.0, 1.0):
        ends = model.predict_interval(X=X[252:254].assign(storm=value)).to_numpy()
        width.append(np.ptp(ends, axis=1))
    assert (width[1] > 2.0 * width[0]).all()
    with pytest.raises(InputError, match="X must have the features storm"):
        IntervalForecaster(TrendForecaster(), controller=own).fit(y[:250], fh=[1])


def test_what_is_missing_is_refused_in_a_sentence() -> None:
    y = walk(60)
    with pytest.raises(InputError, match="the rows of initial_window"):
        IntervalForecaster(NaiveForecaster()).fit(y[:0], fh=[1])
    with pytest.raises(
        ValueError, match=r"cannot handle missing data .*y passed contained missing"
    ):
        IntervalForecaster(TrendForecaster()).fit(y.where(y.index != y.index[5]), fh=[1])
