"""darts models wrapped: quantiles, historical forecasts, backtests and the state that goes on."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from setpoint.errors import InputError

pytest.importorskip("darts")
pytestmark = pytest.mark.neighbours

from darts import TimeSeries  # noqa: E402
from darts.metrics import mic, miw  # noqa: E402
from darts.models import (  # noqa: E402
    ConformalNaiveModel,
    ExponentialSmoothing,
    LinearRegressionModel,
)

from setpoint.models.darts import IntervalModel  # noqa: E402

LENGTH, H = 300, 3
SHOWN: Any = {"predict_likelihood_parameters": True}
QUANTILES = [0.05, 0.1, 0.5, 0.9, 0.95]


def series(scale: float = 1.0, seed: int = 0) -> Any:
    values = scale * np.random.default_rng(seed).normal(size=LENGTH).cumsum()
    times = pd.date_range("2024-01-01", periods=LENGTH)
    return TimeSeries.from_times_and_values(times, values, columns=["y"])


@pytest.fixture(scope="module")
def line() -> Any:
    return LinearRegressionModel(lags=3).fit(series()[:100])


def test_forecasts_are_quantiles_in_the_manner_of_darts(line: Any) -> None:
    model = IntervalModel(line, QUANTILES, horizon=H).update(series()[:200])
    shown = model.predict(H, **SHOWN)
    host = ConformalNaiveModel(line, QUANTILES)
    wanted = host.predict(H, series()[:200], predict_likelihood_parameters=True)
    assert shown.components.equals(wanted.components)
    assert shown.time_index.equals(wanted.time_index)
    assert (np.diff(shown.values(), axis=1) >= 0.0).all()
    assert np.diff(np.ptp(shown.values(), axis=1)).min() > 0.0  # wider, further ahead


def test_an_update_takes_in_new_steps_and_a_forecast_changes_nothing(line: Any) -> None:
    y = series()
    model = IntervalModel(line, horizon=H).update(y[:200])
    judged = model.certificate(horizon=H).risks[0].judged
    for length in range(201, 211):
        model.update(y[:length])
        first, again = model.predict(H, **SHOWN), model.predict(H, series=y[:length], **SHOWN)
        assert first == again
    assert model.certificate(horizon=H).risks[0].judged == judged + 10
    [shown] = model.historical_forecasts(
        y[:213], forecast_horizon=H, start=210, last_points_only=False, **SHOWN
    )
    np.testing.assert_allclose(shown.values(), first.values())
    at_once = IntervalModel(line, horizon=H).update(y[:200]).update(y[:210])
    assert at_once.predict(H, **SHOWN) == first
    other = model.predict(1, series=series(seed=1)[:150])
    assert other.start_time() == y.time_index[150]
    assert model.predict(H, **SHOWN) == first


def test_historical_forecasts_know_only_the_labels_before_them(line: Any) -> None:
    y = series()
    model = IntervalModel(line, horizon=H)
    values = y.values().copy()
    values[200:] += 100.0
    turned = y.with_values(values)
    options = {"forecast_horizon": H, "last_points_only": False, "start": 150} | SHOWN
    for before, after in zip(
        model.historical_forecasts(y, **options),
        model.historical_forecasts(turned, **options),
        strict=True,
    ):
        same = before.start_time() <= y.time_index[200]
        assert np.array_equal(before.values(), after.values()) == same


def test_coverage_is_held_in_a_backtest_where_the_world_turns(line: Any) -> None:
    values = series().values().copy()
    values[200:] = values[200:] * 4.0
    y = series().with_values(values)
    options: Any = {
        "forecast_horizon": 1, "start": y.time_index[150], "last_points_only": True,
        "metric": [mic, miw], "metric_kwargs": [{"q_interval": (0.05, 0.95)}] * 2,
        "predict_likelihood_parameters": True,
    }  # fmt: skip
    held, width = IntervalModel(line, [0.05, 0.5, 0.95]).backtest(y, **options)
    host, _ = ConformalNaiveModel(line, [0.05, 0.5, 0.95]).backtest(y, **options)
    assert np.isfinite(width)
    assert held == pytest.approx(0.9, abs=0.03)
    assert host < 0.85


def test_starts_strides_and_last_points(line: Any) -> None:
    y = series()
    model = IntervalModel(line)
    every = model.historical_forecasts(y, forecast_horizon=2, **SHOWN)
    assert np.isfinite(every.values()).all()
    some = model.historical_forecasts(y, forecast_horizon=2, start=130, stride=5, **SHOWN)
    assert some.start_time() == y.time_index[131]
    assert (some.time_index[1] - some.time_index[0]).days == 5
    np.testing.assert_array_equal(some.values()[0], every.slice_intersect(some).values()[0])
    last = model.historical_forecasts(y, start=-2, start_format="position")
    assert last.end_time() == y.end_time()
    assert len(last) == 2


def test_several_series_and_components_have_streams_of_their_own(line: Any) -> None:
    one, two = series(), series(50.0, seed=1)
    model = IntervalModel(line, horizon=2).update([one[:200], two[:200]])
    first, second = model.predict(2, **SHOWN)
    assert np.ptp(second.values()[0]) > 10.0 * np.ptp(first.values()[0])
    alone = IntervalModel(line, horizon=2).update(two[:200]).predict(2, **SHOWN)
    assert alone == second
    both = one.with_columns_renamed("y", "a").stack(two.with_columns_renamed("y", "b"))
    fitted = LinearRegressionModel(lags=3).fit(both[:100])
    shown = IntervalModel(fitted, horizon=2).update(both[:200]).predict(2, **SHOWN)
    assert shown.components.to_list()[::3] == ["a_q0.050", "b_q0.050"]
    assert np.ptp(shown.values()[0, 3:]) > 10.0 * np.ptp(shown.values()[0, :3])


def test_covariates_are_passed_on() -> None:
    y, more = series(), series(seed=5)
    fitted = LinearRegressionModel(lags=3, lags_past_covariates=2).fit(y[:100], more[:100])
    model = IntervalModel(fitted)
    model.update(y[:200], past_covariates=more).update(y[:205], past_covariates=more)
    assert np.isfinite(model.predict(1, past_covariates=more).values()).all()


def test_a_model_of_quantiles_is_corrected_at_its_own() -> None:
    y = series()
    fitted = LinearRegressionModel(
        lags=3, likelihood="quantile", quantiles=[0.05, 0.5, 0.95], random_state=0
    ).fit(y[:100])
    past = IntervalModel(fitted).historical_forecasts(y, start=150, **SHOWN)
    lower, _, upper = past.values().T
    truth = y.slice_intersect(past).values()[:, 0]
    assert np.mean((lower <= truth) & (truth <= upper)) == pytest.approx(0.9, abs=0.05)


def test_a_model_that_must_be_fitted_to_its_series_is() -> None:
    y = series()[:40]
    model = IntervalModel(ExponentialSmoothing(), horizon=2).fit(y[:30]).update(y[:35])
    shown = model.update(y[:36]).predict(2, **SHOWN)
    assert shown.start_time() == y.time_index[36]
    assert np.isfinite(shown.values()).all()


def test_a_saved_model_goes_on(line: Any, tmp_path: Any) -> None:
    y = series()
    model = IntervalModel(line, horizon=H).update(y[:200])
    model.save(str(tmp_path / "model.pkl"))
    kept = IntervalModel.load(str(tmp_path / "model.pkl"), trusted=True)
    assert kept.update(y[:205]).predict(H, **SHOWN) == model.update(y[:205]).predict(H, **SHOWN)


def test_quantiles_come_in_pairs_and_horizons_end(line: Any) -> None:
    for wrong in ([0.1, 0.9], [0.05, 0.5, 0.9], [0.5], [0.9, 0.5, 0.1]):
        with pytest.raises(InputError, match="pairs around it"):
            IntervalModel(line, wrong)
    with pytest.raises(InputError, match="at most the horizon, 1, got 2"):
        IntervalModel(line).predict(2, series())
    with pytest.raises(InputError, match="call `update`"):
        IntervalModel(line).predict(1)
    with pytest.raises(InputError, match="num_samples must be 1"):
        IntervalModel(line).predict(1, series(), num_samples=10)
    with pytest.raises(InputError, match="0 series"):
        IntervalModel(line).certificate(horizon=1)
    with pytest.raises(InputError, match="no forecast begins"):
        IntervalModel(line).historical_forecasts(series(), forecast_horizon=3, start=299)


def test_other_values_are_another_series(line: Any) -> None:
    model = IntervalModel(line).update(series())
    fresh = IntervalModel(line).predict(1, series=series(20.0, seed=1), **SHOWN)
    assert model.predict(1, series=series(20.0, seed=1), **SHOWN) == fresh
    for other in (series(20.0, seed=1), series()[20:], series()[:200], [series()] * 2):
        with pytest.raises(InputError, match="the same series"):
            model.update(other)


def test_rows_that_the_model_was_fitted_to_are_not_judged(line: Any) -> None:
    y = series()
    model = IntervalModel(LinearRegressionModel(lags=3)).fit(y[:100]).update(y[:150])
    assert model.certificate(horizon=1).risks[0].judged == 50
    model.fit(y[:180]).update(y[:200])
    assert model.certificate(horizon=1).risks[0].judged == 70
    with pytest.raises(InputError, match="fitted to every row"):
        model.historical_forecasts(y[:180])


def test_a_default_backtest_is_one_of_points(line: Any) -> None:
    y = series()
    assert IntervalModel(line).predict(1, series=y).components.equals(y.components)
    assert IntervalModel(line).residuals(y, start=200).n_components == 1
    assert np.isfinite(IntervalModel(line).backtest(y, start=200))


def test_many_series_and_shifts_lose_no_label() -> None:
    many = [series(seed=seed)[:60] for seed in range(105)]
    wide = LinearRegressionModel(lags=2, output_chunk_length=11)
    model = IntervalModel(wide, horizon=11).fit([each[:30] for each in many])
    for length in (40, 41, 42, 53):
        model.update([each[:length] for each in many])
    assert model.certificate(104, 11).risks[0].judged == 13
    y = series()
    shifted = LinearRegressionModel(lags=3, output_chunk_length=2, output_chunk_shift=2)
    model = IntervalModel(shifted, horizon=2).fit(y[:100]).update(y[:200]).update(y[:210])
    assert model.predict(2) == IntervalModel(model.model, horizon=2).predict(2, series=y[:210])


def test_a_model_that_draws_says_the_same_twice() -> None:
    y = series()
    draws = LinearRegressionModel(lags=3, likelihood="quantile", quantiles=[0.05, 0.5, 0.95])
    model = IntervalModel(draws).fit(y[:100]).update(y[:200])
    assert model.predict(1, **SHOWN) == model.predict(1, **SHOWN)
