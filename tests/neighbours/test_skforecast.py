"""Backtests and predictions of skforecast, with the library itself."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import setpoint as sp
from setpoint.errors import InputError
from setpoint.models.skforecast import Intervals

pytest.importorskip("skforecast")
pytestmark = pytest.mark.neighbours

from skforecast.model_selection import (  # noqa: E402
    TimeSeriesFold,
    backtesting_forecaster,
    backtesting_forecaster_multiseries,
)
from skforecast.recursive import (  # noqa: E402
    ForecasterRecursive,
    ForecasterRecursiveMultiSeries,
)
from sklearn.linear_model import LinearRegression  # noqa: E402

H = 3
QUIET: Any = {"metric": "mean_absolute_error", "show_progress": False}


def labels(scale: float = 1.0) -> Any:
    times = pd.date_range("2024-01-01", periods=300, freq="D")
    values = scale * np.random.default_rng(0).normal(size=300).cumsum()
    return pd.Series(values, times, name="y")


def folds(**options: Any) -> Any:
    options = {"fold_stride": 1, "allow_incomplete_fold": False, **options}
    return TimeSeriesFold(steps=H, initial_train_size=60, refit=False, **options)


def forecaster() -> Any:
    return ForecasterRecursive(LinearRegression(), lags=5)


@pytest.fixture(scope="module")
def backtest() -> Any:
    return backtesting_forecaster(forecaster(), labels()[:250], folds(), **QUIET)[1]


def test_every_step_ahead_holds_its_coverage(backtest: Any) -> None:
    y = labels()[:250]
    shown = Intervals(nominal_coverage=0.8).fit_predict(backtest, y)
    assert shown.columns.to_list() == ["fold", "pred", "lower_bound", "upper_bound"]
    truth = y.reindex(shown.index)
    inside = (shown.lower_bound <= truth) & (truth <= shown.upper_bound)
    step = shown.groupby("fold").cumcount()
    for _, hits in inside.groupby(step.to_numpy()):
        assert hits.mean() == pytest.approx(0.8, abs=0.05)


def test_a_fold_knows_only_labels_from_before_it(backtest: Any) -> None:
    y = labels()[:250]
    turned = y.where(y.index < y.index[150], y + 100.0)
    before, after = (Intervals(0.8).fit_predict(backtest, each) for each in (y, turned))
    early = backtest.groupby("fold").transform(lambda _: 0).index  # a row for each row
    first = pd.Series(early, index=backtest.fold.to_numpy()).groupby(level=0).min()
    same = (first.reindex(backtest.fold) <= y.index[150]).to_numpy()
    np.testing.assert_array_equal(before.lower_bound[same], after.lower_bound[same])
    assert (before.lower_bound[~same] != after.lower_bound[~same]).any()


def test_predictions_are_judged_when_their_labels_come(backtest: Any) -> None:
    y = labels()
    intervals, model = Intervals(0.8).fit(backtest, y[:250]), forecaster()
    model.fit(y[:250])
    judged = intervals.certificate(horizon=H).risks[0].judged
    for row in range(250, 270):
        shown = intervals.predict(model.predict(H, last_window=y[:row]))
        intervals.update(y[row : row + 1])
    assert shown.columns.to_list() == ["pred", "lower_bound", "upper_bound"]
    assert shown.index[0] == y.index[269]
    assert intervals.certificate(horizon=H).risks[0].judged == judged + 20 - (H - 1)
    assert intervals.certificate(horizon=H).pending == H - 1


def test_many_series_have_streams_of_their_own() -> None:
    wide = pd.DataFrame({"shop": labels(), "store": labels(50.0)})
    model = ForecasterRecursiveMultiSeries(LinearRegression(), lags=5)
    _, past = backtesting_forecaster_multiseries(model, series=wide[:250], cv=folds(), **QUIET)
    intervals = Intervals(0.8).fit(past, wide[:250])
    model.fit(wide[:250])
    shown = intervals.predict(model.predict(H))
    assert shown.columns.to_list() == ["level", "pred", "lower_bound", "upper_bound"]
    widths = (shown.upper_bound - shown.lower_bound).groupby(shown.level).mean()
    assert widths["store"] > 10.0 * widths["shop"]
    intervals.update(wide[250:251])
    assert intervals.certificate("store", 1).pending == 0
    assert intervals.certificate("store", 2).pending == 1


def test_bounds_of_the_forecaster_are_corrected() -> None:
    y = labels()[:250]
    options = {"interval": [0.45, 0.55], "interval_method": "conformal"}
    _, past = backtesting_forecaster(forecaster(), y, folds(), **options, **QUIET)
    truth = y.reindex(past.index)
    assert ((past.lower_bound <= truth) & (truth <= past.upper_bound)).mean() < 0.3
    intervals = Intervals(0.8)
    shown = intervals.fit_predict(past, y)
    inside = (shown.lower_bound <= truth) & (truth <= shown.upper_bound)
    assert inside.mean() == pytest.approx(0.8, abs=0.04)
    model = forecaster()
    model.fit(y)
    with pytest.raises(InputError, match="or neither"):
        intervals.predict(model.predict(H))


def test_a_gap_makes_labels_later() -> None:
    y = labels()[:250]
    _, past = backtesting_forecaster(forecaster(), y, folds(gap=2), **QUIET)
    intervals = Intervals(0.8, gap=2).fit(past, y)
    assert intervals.certificate(horizon=H + 2).risks[0].judged > 100
    assert intervals.certificate(horizon=H + 2).most_pending == H + 2


def test_a_frame_without_folds_is_refused(backtest: Any) -> None:
    with pytest.raises(InputError, match="column 'fold'"):
        Intervals().fit(backtest[["pred"]], labels())


def test_y_must_have_every_time_and_series(backtest: Any) -> None:
    y = labels()[:250]
    many = pd.concat([backtest.assign(level=name) for name in ("shop", "store")])
    wide = pd.DataFrame({"shop": y, "store": y})
    for past, truth, match in (
        (backtest, y[:200], "no 2024-07-19"),
        (backtest, y.reset_index(drop=True), "every time"),
        (many, wide[["store"]], "no shop"),
        (backtest, wide, r"one series, got y of \['shop', 'store'\]"),
        (many, {"shop": y, "store": y}, "got a dict"),
        (many, wide.stack().to_frame("value"), "got a long frame"),
    ):
        with pytest.raises(InputError, match=match):
            Intervals().fit(past, truth)


def test_a_frame_of_one_column_is_the_single_series(backtest: Any) -> None:
    y = labels().to_frame()
    intervals = Intervals().fit(backtest, y[:250])
    intervals.predict(pd.Series([0.0], y.index[250:251]))  # without a name, too
    intervals.update(y[250:251])
    assert intervals.certificate(horizon=1).pending == 0


def test_predictions_that_are_none_are_refused(backtest: Any) -> None:
    y = labels()[:250]
    with pytest.raises(InputError, match=r"both ends of pred .* 'lower_bound' and 'upper_bound'"):
        Intervals().fit(backtest.assign(lower_bound=0.0), y)
    polars = pytest.importorskip("polars")
    with pytest.raises(InputError, match="must be a pandas"):
        Intervals().fit(polars.from_pandas(backtest), y)


def test_several_coverages_are_quantiles_of_one_stream(backtest: Any, tmp_path: Path) -> None:
    y = labels()
    intervals = Intervals([0.5, 0.9])
    shown = intervals.fit_predict(backtest, y[:250])
    names = ["q_0.05", "q_0.25", "q_0.75", "q_0.95"]
    assert shown.columns.to_list() == ["fold", "pred", *names]
    ends, truth = shown[names].to_numpy(), y.reindex(shown.index)
    assert (ends[:, :-1] <= ends[:, 1:]).all()
    assert ((shown["q_0.25"] <= truth) & (truth <= shown["q_0.75"])).mean() == pytest.approx(
        0.5, abs=0.05
    )
    model = forecaster()
    model.fit(y[:250], store_in_sample_residuals=True)
    own = model.predict_quantiles(steps=H, quantiles=[0.05, 0.25, 0.75, 0.95])
    assert own.columns.to_list() == names  # as skforecast names them
    intervals.save(tmp_path)
    tomorrow = model.predict(steps=H)
    again = Intervals.load(tmp_path).predict(tomorrow)
    pd.testing.assert_frame_equal(again, intervals.predict(tomorrow))


def test_features_are_columns_of_exog(backtest: Any, tmp_path: Path) -> None:
    y = labels()
    rng = np.random.default_rng(1)
    exog = pd.DataFrame({"storm": rng.integers(0, 2, len(y)).astype(float), "town": "x"}, y.index)
    storm = exog.storm.reindex(backtest.index).to_numpy()
    noise = rng.normal(size=len(backtest)) * (1.0 + 9.0 * storm)
    noisy = backtest.assign(pred=y.reindex(backtest.index) + noise)
    own: Any = partial(sp.intervals, features=["storm"])
    intervals = Intervals(0.9, controller=own).fit(noisy, y[:250], exog)
    tomorrow = pd.Series(0.0, y.index[250 : 250 + H], name="pred")
    width = [
        np.ptp(intervals.predict(tomorrow, exog.assign(storm=value)).to_numpy()[:, 1:], axis=1)
        for value in (0.0, 1.0)
    ]
    assert (width[1] != width[0]).all()  # what it learns is tested with the rule
    intervals.save(tmp_path)
    again = Intervals.load(tmp_path).predict(tomorrow, exog)
    pd.testing.assert_frame_equal(again, intervals.predict(tomorrow, exog))
    with pytest.raises(InputError, match="exog must be a pandas frame with storm"):
        intervals.predict(tomorrow)
