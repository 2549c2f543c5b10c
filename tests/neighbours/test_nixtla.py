"""Frames of StatsForecast and MLForecast, in and out, with the libraries themselves."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import setpoint as sp
from setpoint.errors import InputError
from setpoint.models.nixtla import Intervals

pytest.importorskip("statsforecast")
pytestmark = pytest.mark.neighbours

from statsforecast import StatsForecast  # noqa: E402
from statsforecast.models import Naive, SeasonalNaive  # noqa: E402

DAYS, H = 220, 3
TIMES = pd.date_range("2024-01-01", periods=DAYS)


def frame(rows: Any = slice(None)) -> Any:
    rng = np.random.default_rng(0)
    parts = [
        pd.DataFrame({"unique_id": name, "ds": TIMES, "y": scale * rng.normal(size=DAYS).cumsum()})
        for name, scale in (("shop", 1.0), ("store", 50.0))
    ]
    return pd.concat([part[rows] for part in parts], ignore_index=True)


def naive() -> Any:
    models = [Naive(), SeasonalNaive(7)]
    return StatsForecast(models=models, freq="D")


@pytest.fixture(scope="module")
def cv() -> Any:
    return naive().cross_validation(df=frame(slice(0, 200)), h=H, n_windows=150, step_size=1)


def coverage(shown: Any, model: str, level: int) -> float:
    inside = (shown[f"{model}-lo-{level}"] <= shown.y) & (shown.y <= shown[f"{model}-hi-{level}"])
    return float(inside.mean())


def test_every_model_series_and_horizon_holds_its_level(cv: Any) -> None:
    shown = Intervals(level=[80, 90]).fit_predict(cv)
    assert list(shown.columns) == [
        *cv.columns,
        *("Naive-lo-90", "Naive-lo-80", "Naive-hi-80", "Naive-hi-90"),
        *(f"SeasonalNaive-{end}" for end in ("lo-90", "lo-80", "hi-80", "hi-90")),
    ]
    horizon = shown.groupby(["unique_id", "cutoff"]).ds.rank().astype(int)
    for model in ("Naive", "SeasonalNaive"):
        for level in (80, 90):
            for _, rows in shown.groupby(["unique_id", horizon]):
                assert coverage(rows, model, level) == pytest.approx(level / 100, abs=0.06)


def test_live_forecasts_are_judged_when_their_labels_come(cv: Any) -> None:
    intervals, model = Intervals(level=[80, 90]).fit(cv), naive()
    judged = intervals.certificate("store", H, model="Naive").risks[0].judged
    hits = []
    for day in range(200, DAYS):
        shown = intervals.predict(model.forecast(df=frame(slice(0, day)), h=H))
        new = frame(slice(day, day + 1))
        first = shown.groupby("unique_id").head(1).reset_index(drop=True)
        hits.append((first["Naive-lo-90"] <= new.y) & (new.y <= first["Naive-hi-90"]))
        intervals.update(new)
    certificate = intervals.certificate("store", H, model="Naive")
    assert certificate.risks[0].judged == judged + (DAYS - 200) - (H - 1)
    assert certificate.pending == H - 1
    assert np.mean(hits) > 0.75
    assert (first["Naive-hi-90"] - first["Naive-lo-90"]).iloc[1] > 10.0  # in the units of each


def test_mlforecast_moves_on_without_being_fitted_again() -> None:
    mlforecast = pytest.importorskip("mlforecast")
    from sklearn.linear_model import LinearRegression

    model = mlforecast.MLForecast({"line": LinearRegression()}, freq="D", lags=[1, 7])
    past = frame(slice(0, 200))
    cv = model.cross_validation(past, h=H, n_windows=100, step_size=1, refit=False)
    intervals = Intervals(level=[90]).fit(cv)
    model.fit(past)
    for day in range(200, 205):
        shown = intervals.predict(model.predict(H))
        new = frame(slice(day, day + 1))
        model.update(new)
        intervals.update(new)
    assert np.isfinite(shown["line-lo-90"]).all()
    assert shown.ds.min() == TIMES[204]


@pytest.mark.parametrize("kind", ["polars", "arrow"])
def test_frames_of_every_kind_give_the_same_numbers(cv: Any, kind: str) -> None:
    polars = pytest.importorskip("polars")
    other = polars.from_pandas(cv)
    other = other.to_arrow() if kind == "arrow" else other
    wanted, found = (Intervals(level=[80, 90]).fit_predict(each) for each in (cv, other))
    assert type(found) is type(other)
    for name in wanted.columns[len(cv.columns) :]:
        np.testing.assert_array_equal(np.asarray(found[name]), wanted[name])


def test_polars_goes_all_the_way() -> None:
    polars = pytest.importorskip("polars")
    df = polars.from_pandas(frame())
    model = StatsForecast(models=[Naive()], freq="1d")
    past = df.filter(polars.col("ds") < TIMES[200])
    cv = model.cross_validation(df=past, h=H, n_windows=100, step_size=1)
    intervals = Intervals(level=[90]).fit(cv)
    shown = intervals.predict(model.forecast(df=past, h=H))
    intervals.update(df.filter(polars.col("ds") == TIMES[200]))
    assert isinstance(shown, polars.DataFrame)
    assert shown["Naive-lo-90"].is_finite().all()
    assert intervals.certificate("shop", 2, model="Naive").pending == 1


def test_intervals_of_the_model_are_corrected() -> None:
    model = naive()
    df = frame(slice(0, 150))
    cv = model.cross_validation(df=df, h=2, n_windows=100, step_size=1, level=[80, 90])
    own = cv.assign(**{"Naive-lo-90": cv["Naive"] - 0.1, "Naive-hi-90": cv["Naive"] + 0.1})
    intervals = Intervals(level=[80, 90])
    shown = intervals.fit_predict(own)
    assert list(shown.columns) == list(cv.columns)
    assert coverage(own, "Naive", 90) < 0.2
    assert coverage(shown, "Naive", 90) == pytest.approx(0.9, abs=0.04)
    with pytest.raises(InputError, match="or neither"):
        intervals.predict(model.forecast(df=df, h=2))


def test_frames_without_models_or_columns_are_refused(cv: Any) -> None:
    with pytest.raises(InputError, match="needs the column of a model"):
        Intervals().fit(cv[["unique_id", "ds", "cutoff", "y"]])
    for level in ([0.9], [], [80, 100]):
        with pytest.raises(InputError, match="must hold per cent"):
            Intervals(level)
    with pytest.raises(InputError, match=r"model must be one of .*, got 'Theta'"):
        Intervals().certificate("shop", 1, model="Theta")
    with pytest.raises(InputError, match="no column 'cutoff'"):
        Intervals().fit(cv.drop(columns="cutoff"))


def test_a_forecast_with_several_cutoffs_is_refused(cv: Any) -> None:
    intervals = Intervals(level=[90]).fit(cv)
    with pytest.raises(InputError, match="one cutoff, got 2"):
        intervals.predict(cv[cv.cutoff.isin(cv.cutoff.unique()[:2])])
    shown = intervals.predict(cv[cv.cutoff == cv.cutoff.max()])
    assert np.isfinite(shown["Naive-lo-90"]).all()


def test_only_the_models_named_get_intervals(cv: Any) -> None:
    more = cv.assign(price=1.0, town="x")
    shown = Intervals(level=[90], models=["Naive"]).fit_predict(more)
    assert shown.columns.to_list()[len(more.columns) :] == ["Naive-lo-90", "Naive-hi-90"]
    with pytest.raises(InputError, match="no column 'Theta'"):
        Intervals(models=["Theta"]).fit(cv)


def test_a_median_has_the_intervals_of_its_model(cv: Any) -> None:
    ends = {"NHITS-lo-90": cv.Naive - 0.1, "NHITS-hi-90": cv.Naive + 0.1}
    own = cv[["unique_id", "ds", "cutoff", "y"]].assign(**{"NHITS-median": cv.Naive}, **ends)
    shown = Intervals(level=[90]).fit_predict(own)
    assert list(shown.columns) == list(own.columns)
    assert coverage(own, "NHITS", 90) < 0.3
    assert coverage(shown, "NHITS", 90) == pytest.approx(0.9, abs=0.04)


def test_levels_come_from_one_stream_and_the_widest_ends_of_the_model(cv: Any) -> None:
    wide = cv.assign(**{"Naive-lo-90": cv.Naive - 1.0, "Naive-hi-90": cv.Naive + 1.0})
    intervals = Intervals(level=[50, 80, 90], models=["Naive"])
    shown = intervals.fit_predict(wide)
    ends = shown[[f"Naive-{end}" for end in ("lo-90", "lo-80", "lo-50", "hi-50", "hi-80", "hi-90")]]
    assert (ends.to_numpy()[:, :-1] <= ends.to_numpy()[:, 1:]).all()
    risks = intervals.certificate("store", H).risks
    assert [risk.level for risk in risks] == [0.1, 0.2, 0.5]
    for lone in ({"Naive-lo-90": 0.0}, {"Naive-lo-80": 0.0, "Naive-hi-80": 1.0}):
        with pytest.raises(InputError, match="both ends of Naive at the highest level"):
            Intervals(level=[80, 90]).fit(cv.assign(**lone))


def test_features_are_columns_of_the_frames(cv: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    storm = rng.integers(0, 2, len(cv)).astype(float)
    noisy = cv.assign(storm=storm, Naive=cv.y + rng.normal(size=len(cv)) * (1.0 + 9.0 * storm))
    own: Any = partial(sp.intervals, features=["storm"])
    intervals = Intervals(level=[90], models=["Naive"], controller=own).fit(noisy)
    now = noisy[noisy.cutoff == noisy.cutoff.max()].drop(columns=["cutoff", "y"])
    calm, storms = (intervals.predict(now.assign(storm=value)) for value in (0.0, 1.0))
    width = [shown["Naive-hi-90"] - shown["Naive-lo-90"] for shown in (calm, storms)]
    assert (width[1] != width[0]).all()  # what it learns is tested with the rule
    assert list(calm.columns)[-2:] == ["Naive-lo-90", "Naive-hi-90"]  # a feature is no model
    intervals.save(tmp_path)
    pd.testing.assert_frame_equal(Intervals.load(tmp_path).predict(now), intervals.predict(now))
    with pytest.raises(InputError, match="no column 'storm'"):
        intervals.predict(now.drop(columns="storm"))
