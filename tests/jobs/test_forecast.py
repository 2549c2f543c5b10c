"""`forecast`: future rows, intervals held at each horizon, and going on from a folder."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.errors import DataError, InputError, StateError

pd = pytest.importorskip("pandas")

Array = np.ndarray[Any, Any]
Table = Callable[[Path, Mapping[str, Sequence[Any]]], Path]

SIMPLE = "seasonal"
"""A candidate that needs no fit, where the forecast itself does not matter."""


def _demand(size: int, seed: int = 0) -> Any:
    """Hours of demand with a day in them, a level that wanders, and a column that says nothing."""
    rng, hours = np.random.default_rng(seed), np.arange(size)
    y = 50 + 10 * np.sin(hours / 24 * 2 * np.pi) + np.cumsum(rng.normal(0, 0.3, size))
    times = np.datetime64("2024-01-01", "us") + hours * np.timedelta64(3600, "s")
    noise = rng.normal(size=size)
    return pd.DataFrame({"time": times, "noise": noise, "demand": y + rng.normal(0, 1, size)})


def test_coverage_holds_at_every_horizon_and_widths_grow() -> None:
    frame = _demand(1500)
    ahead = sp.forecast(frame, "demand", steps=12, coverage=(0.8, 0.9), model="linear")
    assert ahead.coverages == (0.8, 0.9)
    for horizon in ahead.horizons:
        assert horizon["judged"] > 1300
        for level in horizon["levels"]:
            assert level["share"] == pytest.approx(level["asked"], abs=0.02)
            assert level["account"] <= level["bound"]
    widths = np.array([[level["width"] for level in h["levels"]] for h in ahead.horizons])
    assert (widths[:, 1] > widths[:, 0]).all()
    assert (np.diff(widths, axis=0) > -0.03 * widths[1:]).all()
    assert (widths[-1] > 1.3 * widths[0]).all()
    shown = ahead.to_frame()
    assert (shown["lower_90"] <= shown["lower_80"]).all()
    assert (shown["lower_80"] <= shown["upper_80"]).all()
    assert (shown["upper_80"] <= shown["upper_90"]).all()
    assert ahead.horizons[0]["mae"] < 0.8 * ahead.horizons[0]["mae_seasonal"]


def test_the_replay_is_what_would_have_been_forecast_then() -> None:
    """The first forecast of a shorter file is the one that a longer file shows in its replay."""
    frame = _demand(300)
    steps = 6
    whole = sp.forecast(frame, "demand", steps=steps, model="linear", coverage=0.9)
    early = sp.forecast(frame[: 300 - steps], "demand", steps=steps, model="linear", coverage=0.9)
    now, before = early.recent[0]["now"], whole.recent[0]["before"]
    assert now["point"] == pytest.approx(before["point"], rel=1e-9)
    assert np.array(now["ends"]) == pytest.approx(np.array(before["ends"]), rel=1e-9)


def test_a_path_and_its_totals_are_held_as_wholes(tmp_path: Path) -> None:
    whole = _demand(960)
    asked: dict[str, Any] = {"steps": 4, "coverage": (0.5, 0.8, 0.9), "model": SIMPLE}
    asked |= {"path": True, "totals": [2, 4]}
    ahead = sp.forecast(whole[:900], "demand", **asked)
    assert [(one["set"], one["asked"]) for one in ahead.paths] == [
        (name, level) for level in (0.8, 0.9) for name in ("path", "total of 2", "total of 4")
    ]  # fmt: skip
    for one in ahead.paths:
        assert one["judged"] >= 200
        assert one["share"] == pytest.approx(one["asked"], abs=0.04)
    band = next(one for one in ahead.paths if one["set"] == "path" and one["asked"] == 0.9)
    assert band["apart"] < band["share"] - 0.05  # intervals of single steps do not hold a path
    shown = ahead.to_frame()
    assert (shown["path_lower_90"] <= shown["path_lower_80"]).all()
    assert (shown["path_upper_80"] <= shown["path_upper_90"]).all()
    for total in (2, 4):
        own = shown[f"total_{total}"].dropna()
        assert own.index.tolist() == [total - 1]
        assert own.iloc[0] == pytest.approx(shown["point"][:total].sum())
        ends = (shown[f"total_{total}_{end}_90"][total - 1] for end in ("lower", "upper"))
        assert 0.0 < np.subtract(*reversed([*ends])) < (
            shown["path_upper_90"] - shown["path_lower_90"])[:total].sum()  # fmt: skip
    assert "the total of 4 steps:" in str(ahead)
    assert not any("whole paths" in note for note in ahead.notes)
    ahead.write(tmp_path, report=False)
    again = sp.Forecast.load(tmp_path)
    assert again.paths == ahead.paths
    later = again.update(whole[900:])
    assert later.table.equals(sp.forecast(whole, "demand", **asked).table)


def test_labels_to_come_change_nothing_and_rows_to_come_are_their_horizons() -> None:
    frame = _demand(200)
    come = frame.copy()
    come.loc[195:, "demand"] = np.nan
    named = sp.forecast(come, "demand", model=SIMPLE).to_frame()
    asked = sp.forecast(frame[:195], "demand", steps=5, model=SIMPLE).to_frame()
    assert named["step"].tolist() == [1, 2, 3, 4, 5]
    pd.testing.assert_frame_equal(named, asked)
    more = sp.forecast(come, "demand", steps=8, model=SIMPLE).to_frame()
    assert more["time"].tolist() == (frame["time"][194] + pd.to_timedelta(
        np.arange(1, 9), "h")).tolist()  # fmt: skip


@pytest.mark.parametrize(
    ("times", "after"),
    [
        (pd.date_range("2020-01-31", periods=30, freq="ME"), ["2022-07-31", "2022-08-31"]),
        (pd.date_range("2020-01-01", periods=30, freq="MS"), ["2022-07-01", "2022-08-01"]),
        (pd.date_range("2020-01-15", periods=30, freq="QS"), ["2027-10-01", "2028-01-01"]),
        (pd.bdate_range("2024-01-01", periods=30), ["2024-02-12", "2024-02-13"]),
        (pd.date_range("2024-01-01", periods=30), ["2024-01-31", "2024-02-01"]),
    ],
)
def test_times_to_come_go_on_as_those_before(times: Any, after: list[str]) -> None:
    frame = pd.DataFrame({"when": times, "y": np.arange(30.0) % 5})
    shown = sp.forecast(frame, "y", steps=2, model="last").to_frame()
    assert shown["when"].astype(str).str[:10].tolist() == after


def test_many_series_are_each_forecast_from_their_own_end() -> None:
    parts = [_demand(size, seed).assign(shop=name) for size, seed, name in
             ((150, 1, "a"), (150, 2, "b"), (120, 3, "c"))]  # fmt: skip
    frame = pd.concat(parts).sort_values("time", kind="stable")
    ahead = sp.forecast(frame, "demand", series="shop", time="time", steps=4, model="linear")
    shown = ahead.to_frame()
    assert shown.groupby("shop")["step"].agg(list).tolist() == [[1, 2, 3, 4]] * 3
    assert any("1 of 3 series end before the others" in note for note in ahead.notes)
    for part in parts:
        alone = sp.forecast(part.drop(columns="shop"), "demand", steps=4, model="linear")
        one = shown[shown["shop"] == part["shop"].iloc[0]].reset_index(drop=True)
        assert one["time"].tolist() == alone.to_frame()["time"].tolist()
        assert one["point"].to_numpy() == pytest.approx(alone.to_frame()["point"].to_numpy())


def test_what_is_known_ahead_is_seen_in_rows_to_come_and_nothing_else_is() -> None:
    frame = _demand(400)
    sale = (np.arange(400) * 7919 % 10 < 3).astype(float)
    frame["sale"] = sale
    frame["demand"] += 25.0 * sale
    frame["late"] = frame["demand"]  # it tells all, and too late
    frame.loc[396:, ["demand", "late"]] = np.nan
    told = sp.forecast(frame, "demand", known_ahead=["sale"], model="linear")
    plain = sp.forecast(frame, "demand", model="linear")
    assert told.horizons[0]["mae"] < 0.5 * plain.horizons[0]["mae"]
    assert any("known_ahead" in note for note in plain.notes)
    frame.loc[398, "sale"] = np.nan
    with pytest.raises(DataError, match="known_ahead names 'sale', which is empty in 1 of"):
        sp.forecast(frame, "demand", known_ahead=["sale"], model="linear")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_saved_forecast_goes_on_as_one_run_over_the_whole_file(
    tmp_path: Path, suffix: str
) -> None:
    frame = _demand(260)
    parts = {"old": frame[:200], "new": frame[200:230], "newer": frame[230:], "all": frame}
    paths = {name: tmp_path / f"{name}{suffix}" for name in parts}
    for name, part in parts.items():
        part.to_csv(paths[name], index=False) if suffix == ".csv" else part.to_parquet(paths[name])
    first = sp.forecast(paths["old"], "demand", steps=5, model="linear", support=(0.0, np.inf))
    first.write(tmp_path / "folder", report=False)
    second = sp.Forecast.load(tmp_path / "folder").update(paths["new"])
    second.write(tmp_path / "folder", report=False)
    last = sp.Forecast.load(tmp_path / "folder").update(paths["newer"])
    whole = sp.forecast(paths["all"], "demand", steps=5, model="linear", support=(0.0, np.inf))
    assert last.table.equals(whole.table)
    assert list(last.horizons) == list(whole.horizons)
    if suffix == ".csv":
        with pytest.raises(DataError, match="give only newer rows"):
            last.update(paths["newer"])


_UNEVEN = {"s": ["a"] * 33 + ["b"] * 32, "y": [*np.arange(30.0), *[np.nan] * 3] * 2}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"steps": 0}, "steps must be a whole number"),
        ({"coverage": (0.5, 1.5)}, "coverage"),
        ({"steps": 2, "totals": 3}, r"at most 2, got \[3\]"),
        ({"path": True}, "at least 2 future rows, got 1: say how many by steps"),
        ({"steps": 1_000_000}, "at every step, 1,000,060,000,000 times"),
        ({"support": (0.0, 40.0)}, r"in row 1, and must lie from 0 to 40 as support says"),
        ({"steps": 2, "path": True, "coverage": 0.5}, r"a coverage above 0\.5, got 0\.5"),
        ({"model": "lstm"}, "model must be one of"),
    ],
)
def test_what_is_asked_in_vain_is_said(asked: dict[str, Any], said: str) -> None:
    with pytest.raises((InputError, DataError), match=said):
        sp.forecast(_demand(60), "demand", **asked)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"y": [1e300] * 30}, r"and must lie from -1e\+100 to 1e\+100"),
        ({"y": ["1.5"] * 7 + ["n/a?"] * 30}, r"'y' .* holds 'n/a\?' in row 8"),
        ({"y": [1.0] * 19 + [None]}, "at least 20 actual values, .* has 19 in 20 rows"),
        ({"y": [*range(30), *[None] * 5], "s": ["a"] * 30 + ["b"] * 5}, "for series b"),
        ({name: each[:65] for name, each in _UNEVEN.items()}, "3 steps, and a series has 2: say"),
    ],
)
def test_what_is_wrong_with_rows_is_said(columns: dict[str, Any], said: str) -> None:
    path, series = columns["y"][0] == 0.0, "s" if "s" in columns else None
    with pytest.raises((InputError, DataError), match=said):
        sp.forecast(pd.DataFrame(columns), "y", series=series, path=path)


def test_a_folder_of_another_command_is_refused(tmp_path: Path, table: Table) -> None:
    held = table(tmp_path / "a.csv", {"point": [0.0] * 40, "y": np.arange(40.0)})
    jobs.calibrate(held).write(tmp_path / "held", report=False)
    with pytest.raises(StateError, match="must hold what `setpoint forecast` wrote"):
        sp.Forecast.load(tmp_path / "held")


def test_the_past_is_what_was_shown_and_can_be_calibrated_on(tmp_path: Path) -> None:
    frame = _demand(300)
    ahead = sp.forecast(frame, "demand", steps=6, coverage=(0.8, 0.9), model="linear")
    past = ahead.past_frame()
    assert len(past) == 300 - 6
    names = [f"{end}_{level}" for level in (80, 90) for end in ("lower", "upper")]
    assert list(past.columns) == [
        *frame.columns, *(f"{name}_h{h}" for h in (1, 6) for name in ("point", *names))
    ]  # fmt: skip
    for horizon in (1, 6):
        then = sp.forecast(
            frame[: 300 - horizon], "demand", steps=6, coverage=(0.8, 0.9), model="linear"
        ).to_frame()
        last = past.iloc[-1][[f"{name}_h{horizon}" for name in ("point", *names)]]
        assert last.to_numpy(float) == pytest.approx(
            then.iloc[horizon - 1][["point", *names]].to_numpy(float), rel=1e-9
        )
    off = (past["point_h6"] - past["demand"])[54 - 6 :].abs().mean()
    assert 0.5 * off < ahead.horizons[5]["mae"] < 2.0 * off
    held = jobs.calibrate(past, sp.Columns("demand", point="point_h*", time="time"))
    assert len(held.trace.states) == 2
    ahead.write(tmp_path, report=False)
    pd.testing.assert_frame_equal(sp.Forecast.load(tmp_path).past_frame(), past)


def test_without_a_number_of_steps_the_next_row_is_forecast_or_those_of_the_total() -> None:
    frame = _demand(100)
    ahead = sp.forecast(frame, "demand", model=SIMPLE)
    assert ahead.to_frame()["step"].tolist() == [1]
    assert "the next row is forecast; for more, give steps" in ahead.notes
    week = sp.forecast(frame, "demand", model=SIMPLE, totals=(2, 3), coverage=0.9)
    assert week.to_frame()["step"].tolist() == [1, 2, 3]


def test_the_point_lies_in_every_interval_also_where_the_model_is_off_in_one_way() -> None:
    ahead = sp.forecast(_demand(300), "demand", steps=6, model="last")  # the day is unknown to it
    shown, past = ahead.to_frame(), ahead.past_frame()[30:]
    for level in (50, 80, 90):
        assert shown["point"].between(shown[f"lower_{level}"], shown[f"upper_{level}"]).all()
        ends = past[f"lower_{level}_h6"], past[f"upper_{level}_h6"]
        assert past["point_h6"].between(*ends).all()


def test_a_calendar_that_stands_still_at_first_does_not_ruin_the_regression() -> None:
    """From a Thursday to a Friday the cosine of the week moves by rounding alone."""
    frame = _demand(200)
    frame["time"] = pd.date_range("2026-01-01", periods=200, freq="h")
    still = frame.assign(still=np.where(frame.index < 60, 0.3 + 1e-17 * frame["noise"], 1.0))
    still.loc[::2, "still"] = np.nextafter(still["still"][::2], 9.0)
    for rows in (frame, still):
        ahead = sp.forecast(rows, "demand", model="linear", coverage=0.9)
        assert not any("diverged" in note for note in ahead.notes)
        assert ahead.horizons[0]["mae"] < 1.6


def test_one_value_far_from_all_others_spoils_no_forecast_of_later_rows() -> None:
    frame = _demand(400)
    spoilt = frame.assign(demand=frame["demand"].where(frame.index != 250, 1e9))
    ends = ["lower_90", "upper_90"]
    plain, told = (
        sp.forecast(rows, "demand", steps=2, model="linear", coverage=0.9)
        for rows in (frame, spoilt)
    )
    width, wider = (np.ptp(each.to_frame()[ends].to_numpy(), axis=1) for each in (plain, told))
    assert (wider < 3.0 * width).all()
    assert (told.to_frame()["point"] - plain.to_frame()["point"]).abs().max() < width.max()
    (note,) = set(told.notes) - set(plain.notes)
    assert note.startswith("the value in row 251 is far from all before it: the model learns")
    moved = frame.assign(demand=frame["demand"].where(frame.index < 250, frame["demand"] + 1e9))
    point = sp.forecast(moved, "demand", model="last").to_frame()["point"]
    assert abs(point[0] / 1e9 - 1.0) < 0.01  # a level that has moved is believed


def test_days_and_hours_in_two_columns_are_one_time_and_years_stay_whole() -> None:
    frame = _demand(150)
    split = pd.DataFrame({
        "day": frame["time"].dt.date.astype(str), "hour": frame["time"].dt.hour,
        "demand": frame["demand"],
    })  # fmt: skip
    ahead = sp.forecast(split[:125], "demand", steps=20, model=SIMPLE)
    assert ahead.to_frame()["day"].tolist() == frame["time"][125:145].tolist()
    later = ahead.update(split[125:])  # the first of them belong to a day that began before
    assert later.to_frame()["day"][0] == frame["time"][149] + pd.Timedelta("1h")
    with pytest.raises(DataError, match="give only newer rows"):
        later.update(split[149:])
    years = pd.DataFrame({"year": range(1980, 2020), "y": np.arange(40.0)})
    shown = sp.forecast(years, "y", time="year", steps=2, model="last").to_frame()
    assert shown["year"].tolist() == [2020, 2021]
    assert shown["year"].dtype.kind == "i"


def test_what_the_model_is_and_sees_is_said(tmp_path: Path, table: Table) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=900)
    y = x + rng.normal(0.0, 0.1, 900)
    x[600:700] = 1e12
    kept = np.flatnonzero(rng.random(1200) < 0.8)[:900]  # a count of rows, some of them gone
    held = {"": [*kept, kept[-1] + 1], "x": [*x, 0.0], "y": [*y, ""]}
    path = table(tmp_path / "a.csv", held)
    notes = sp.forecast(path, "y", model="linear", known_ahead=["x"]).notes
    assert "left out: a column without a name counts the rows" in notes
    (note,) = [note for note in notes if "diverged" in note]
    assert note.startswith("linear diverged at line 602 (the header is line 1), left out")
    notes = sp.forecast(path, "y", features=["x"]).notes
    assert any(note.startswith("the forecast is a mixture, on average of ") for note in notes)
    with pytest.raises(DataError, match="no column 'hihg' for known_ahead"):
        sp.forecast(path, "y", known_ahead=["hihg"])


def test_twenty_rows_are_enough_and_the_words_are_honest() -> None:
    frame = pd.DataFrame({"y": np.random.default_rng(0).normal(10.0, 1.0, 20)})
    ahead = sp.forecast(frame, "y", steps=3, path=True)
    shown = ahead.to_frame()
    assert np.isfinite(shown["point"]).all()
    assert any("whole paths of 3 steps: too few" in note for note in ahead.notes)
    assert any("too few to say much about coverage" in note for note in ahead.notes)


def test_gaps_in_the_actual_values_do_no_harm() -> None:
    frame = _demand(400)
    frame.loc[::7, "demand"] = np.nan
    frame.loc[200:230, "demand"] = np.nan
    ahead = sp.forecast(frame[:397], "demand", steps=3, model="linear", coverage=0.9)
    assert np.isfinite(ahead.to_frame()["lower_90"]).all()
    assert ahead.horizons[0]["levels"][0]["share"] == pytest.approx(0.9, abs=0.04)


def test_the_folder_has_the_rows_the_numbers_and_a_page(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    path = tmp_path / "demand.csv"
    _demand(200).assign(place="</script><b>").to_csv(path, index=False)
    ahead = sp.forecast(path, "demand", series="place", steps=6, model=SIMPLE)
    files = ahead.write(tmp_path / "out")
    assert [*files] == [
        "forecast.csv", "history.parquet", "metrics.json", "past.csv", "report.html",
    ]  # fmt: skip
    assert len(pd.read_csv(files["forecast.csv"])) == 6
    content = json.loads(files["metrics.json"].read_text())
    assert [horizon["horizon"] for horizon in content["horizons"]] == [1, 2, 3, 4, 5, 6]
    assert "--steps 6" in content["job"]["repeat"]
    page = files["report.html"].read_text("utf-8")
    assert "Future rows" in page
    assert "<b>" not in page
    assert ahead.figure.layout.meta["title"] == "The forecast"
