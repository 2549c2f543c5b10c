"""darts forecasts as quantiles that hold their coverage: a backtest, then forecasts one by one."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import setpoint as sp
from setpoint.errors import InputError, StateError

pytest.importorskip("darts")
pytestmark = pytest.mark.neighbours

from darts import TimeSeries  # noqa: E402
from darts.metrics import mic  # noqa: E402
from darts.models import LinearRegressionModel  # noqa: E402

from setpoint.models.darts import Intervals  # noqa: E402

LENGTH, H = 300, 3
QUANTILES = [0.05, 0.1, 0.5, 0.9, 0.95]


def series(scale: float = 1.0, seed: int = 0) -> Any:
    values = scale * np.random.default_rng(seed).normal(size=LENGTH).cumsum()
    times = pd.date_range("2024-01-01", periods=LENGTH)
    return TimeSeries.from_times_and_values(times, values, columns=["y"])


@pytest.fixture(scope="module")
def line() -> Any:
    return LinearRegressionModel(lags=3).fit(series()[:100])


def past(model: Any, y: Any, start: int = 100, horizon: int = H, **more: Any) -> Any:
    return model.historical_forecasts(
        y, forecast_horizon=horizon, start=start, retrain=False, last_points_only=False, **more
    )


def test_forecasts_are_quantiles_in_the_manner_of_darts(line: Any) -> None:
    y = series()[:200]
    intervals = Intervals(QUANTILES).fit(past(line, y), y)
    shown = intervals.predict(line.predict(H, y))
    assert shown.components.to_list() == [f"y_q{each:.3f}" for each in QUANTILES]
    assert shown.time_index.equals(line.predict(H, y).time_index)
    assert (np.diff(shown.values(), axis=1) >= 0.0).all()
    assert np.diff(np.ptp(shown.values(), axis=1)).min() > 0.0  # wider, further ahead


@pytest.mark.parametrize("numbered", [False, True])
def test_live_is_a_backtest_to_the_bit(line: Any, numbered: bool) -> None:
    y = TimeSeries.from_values(series().values(), columns=["y"]) if numbered else series()
    forecasts, live = past(line, y[:150]), Intervals()
    whole = Intervals().fit_predict(forecasts, y[:150])
    for row, (one, wanted) in enumerate(zip(forecasts, whole, strict=True), 100):
        shown = live.predict(one)
        assert shown == live.predict(one)  # asked again, nothing changes
        assert np.array_equal(shown.values(), wanted.values())
        live.update(y[: row + 1])
    assert live.certificate("y", H).risks[0].judged == len(forecasts) - H + 1


def test_past_forecasts_know_only_the_labels_before_them(line: Any) -> None:
    y = series()
    values = y.values().copy()
    values[200:] += 100.0
    forecasts = past(line, y)
    both = [Intervals().fit_predict(forecasts, each) for each in (y, y.with_values(values))]
    for before, after in zip(*both, strict=True):
        same = before.start_time() <= y.time_index[200]
        assert np.array_equal(before.values(), after.values()) == same


def test_coverage_is_held_where_the_world_turns(line: Any) -> None:
    values = series().values().copy()
    values[200:] = values[200:] * 4.0
    y = series().with_values(values)
    forecasts = past(line, y, 101, 1)
    shown = Intervals().fit_predict(forecasts, y)[50:]
    inside = [mic(y, one, q_interval=(0.05, 0.95)) for one in shown]
    assert np.mean(inside) == pytest.approx(0.9, abs=0.03)


def test_several_series_components_and_samples_have_streams_of_their_own(line: Any) -> None:
    one, two = series()[:200], series(50.0, seed=1)[:200]
    intervals = Intervals().fit([past(line, one), past(line, two)], [one, two])
    first, second = intervals.predict([line.predict(H, one), line.predict(H, two)])
    assert np.ptp(second.values()[0]) > 10.0 * np.ptp(first.values()[0])
    alone = Intervals().fit(past(line, two), two).predict(line.predict(H, two))
    assert np.array_equal(alone.values(), second.values())
    assert intervals.certificate("1/y", 2).risks[0].judged == 98
    draws = LinearRegressionModel(lags=3, likelihood="quantile", quantiles=[0.05, 0.5, 0.95])
    both = one.with_columns_renamed("y", "a").stack(two.with_columns_renamed("y", "b"))
    draws.fit(both[:100])
    shown = Intervals().fit_predict(past(draws, both, num_samples=50, random_state=0), both)[-1]
    assert shown.components.to_list()[::3] == ["a_q0.050", "b_q0.050"]


def test_gaps_are_passed_over_and_a_shift_counts_as_steps(line: Any) -> None:
    y = series()
    values = y.values().copy()
    values[150:160] = np.nan
    gaps = Intervals().fit(past(line, y), y.with_values(values))
    whole = Intervals().fit(past(line, y), y)
    judged = [each.certificate("y", 1).risks[0].judged for each in (whole, gaps)]
    assert judged[0] - judged[1] == 10
    shifted = LinearRegressionModel(lags=3, output_chunk_length=2, output_chunk_shift=2)
    shifted.fit(y[:100])
    intervals = Intervals(gap=2).fit(past(shifted, y, 102, 2), y)
    assert intervals.certificate("y", 4).risks[0].judged > 100


def test_a_saved_state_goes_on(line: Any, tmp_path: Path) -> None:
    y = series()
    intervals = Intervals(QUANTILES).fit(past(line, y[:200]), y[:200])
    intervals.predict(line.predict(H, y[:200]))
    intervals.save(tmp_path / "state")
    again = Intervals.load(tmp_path / "state").update(y[:203])
    intervals.update(y[:203])
    assert again.predict(line.predict(H, y[:203])) == intervals.predict(line.predict(H, y[:203]))
    with pytest.raises(StateError, match="no folder of saved intervals"):
        Intervals.load(tmp_path)


def test_what_cannot_be_is_refused_in_a_sentence(line: Any) -> None:
    y = series()
    for wrong in ([0.1, 0.9], [0.05, 0.5, 0.9], [0.5], [0.9, 0.5, 0.1]):
        with pytest.raises(InputError, match="pairs around it"):
            Intervals(wrong)
    with pytest.raises(InputError, match="not empty"):
        Intervals().fit([], y)
    with pytest.raises(InputError, match="a forecast must be a TimeSeries with steps, got "):
        Intervals().fit([[]], y)
    with pytest.raises(InputError, match="2 series need as many lists"):
        Intervals().fit([past(line, y)], [y, y])
    with pytest.raises(InputError, match="a TimeSeries of darts"):
        Intervals().predict(1.0)
    for wrong in (None, 3):
        with pytest.raises(InputError, match="a TimeSeries of darts, or a list of them"):
            Intervals().fit(wrong, y)
    nothing = y.with_values(np.full((LENGTH, 1), np.nan))
    shown = Intervals().predict(nothing[:2])
    assert np.isinf(shown.values()[:, [0, 2]]).all()  # a forecast that says nothing


def test_features_are_components_of_covariates() -> None:
    rng = np.random.default_rng(1)
    y, storm = series(), rng.integers(0, 2, LENGTH).astype(float)
    covariates = y.with_values(storm[:, None]).with_columns_renamed("y", "storm")
    noise = rng.normal(size=LENGTH) * (1.0 + 9.0 * storm)
    made = y.with_values(y.values() + noise[:, None])
    own: Any = partial(sp.intervals, features=["storm"])
    intervals = Intervals(controller=own)
    intervals.fit([made[row : row + 1] for row in range(100, 299)], y, covariates)
    width = []
    for value in (0.0, 1.0):
        beside = covariates.with_values(np.full((LENGTH, 1), value))
        width.append(float(np.ptp(intervals.predict(made[299:], beside).values())))
    assert width[1] != width[0]  # what it learns is tested with the rule
    with pytest.raises(InputError, match="covariates must have storm, got"):
        intervals.predict(made[299:])
