"""Frames of Nixtla and skforecast that have gaps, duplicates or no order."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setpoint.errors import InputError
from setpoint.models.nixtla import Intervals as Nixtla

pd = pytest.importorskip("pandas")

from setpoint.models.skforecast import Intervals as Skforecast  # noqa: E402

DAYS = pd.date_range("2024-01-01", periods=120)
Y = np.cumsum(np.random.default_rng(0).normal(size=120))
H = 3


def cv(made: Any = range(20, 110)) -> Any:
    """A naive forecast of three steps, made at each of some days."""
    rows = [(DAYS[row], DAYS[row + h], Y[row + h], Y[row]) for row in made for h in range(1, H + 1)]
    frame = pd.DataFrame(rows, columns=["cutoff", "ds", "y", "Naive"])
    return frame.assign(unique_id="shop")


def test_a_step_that_is_missing_leaves_the_others_at_their_horizon() -> None:
    whole = Nixtla([90]).fit_predict(cv())
    gaps = cv()
    gaps = gaps[~((gaps.cutoff == DAYS[50]) & (gaps.ds == DAYS[51]))]
    part = Nixtla([90]).fit_predict(gaps)
    before = gaps[gaps.cutoff <= DAYS[50]].index
    pd.testing.assert_frame_equal(part.loc[before], whole.loc[before])


def test_a_frame_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match="series 'shop' has two forecasts for the same time"):
        Nixtla([90]).fit(pd.concat([cv(), cv()]))


def test_frames_may_be_unsorted_and_not_empty() -> None:
    whole = Nixtla([90]).fit_predict(cv())
    mixed = Nixtla([90]).fit_predict(cv().sample(frac=1.0, random_state=0))
    pd.testing.assert_frame_equal(mixed.sort_index(), whole)
    with pytest.raises(InputError, match="needs rows"):
        Nixtla([90]).fit(cv()[:0])


def test_nixtla_intervals_are_saved_and_go_on(tmp_path: Path) -> None:
    kept = Nixtla([80, 90]).fit(cv())
    kept.save(tmp_path / "kept")
    loaded = Nixtla.load(tmp_path / "kept")
    for row in range(110, 115):
        new = pd.DataFrame({"unique_id": "shop", "ds": DAYS[row + 1 : row + 4], "Naive": Y[row]})
        label = pd.DataFrame(
            {"unique_id": ["shop"], "ds": DAYS[row : row + 1], "y": Y[row : row + 1]}
        )
        pd.testing.assert_frame_equal(
            kept.update(label).predict(new), loaded.update(label).predict(new)
        )
    assert str(kept.certificate("shop", 1)) == str(loaded.certificate("shop", 1))


def backtest() -> Any:
    rows = [
        (fold, DAYS[20 + H * fold + h], Y[19 + H * fold]) for fold in range(30) for h in range(H)
    ]
    frame = pd.DataFrame(rows, columns=["fold", "time", "pred"])
    return frame.set_index("time")


def test_the_order_of_the_labels_changes_nothing() -> None:
    y = pd.Series(Y, DAYS)
    sorted_ = Skforecast(0.8).fit_predict(backtest(), y)
    mixed = Skforecast(0.8).fit_predict(backtest(), y.sample(frac=1.0, random_state=0))
    pd.testing.assert_frame_equal(mixed, sorted_)
    with pytest.raises(InputError, match="each time once, and it has 2024-01-01 00:00:00 twice"):
        Skforecast(0.8).fit(backtest(), pd.concat([y, y[:1]]))
    with pytest.raises(InputError, match="a backtest needs rows"):
        Skforecast(0.8).fit(backtest()[:0], y)


def test_skforecast_intervals_are_saved_and_go_on(tmp_path: Path) -> None:
    kept = Skforecast(0.8).fit(backtest(), pd.Series(Y, DAYS))
    kept.save(tmp_path / "kept")
    loaded = Skforecast.load(tmp_path / "kept")
    new = pd.Series([0.5] * H, DAYS[-1] + np.arange(1, H + 1) * DAYS.freq, name="pred")
    pd.testing.assert_frame_equal(kept.predict(new), loaded.predict(new))
