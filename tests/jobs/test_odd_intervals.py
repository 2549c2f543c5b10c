"""Odd predictions through calibrate: crossed ends, points, supports; no interval is empty."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs

pytest.importorskip("pyarrow")

Table = Callable[[Path, dict[str, Any]], Path]
ROWS = 300
ENDS = sp.Columns("y", lower="low", upper="high")

_rng = np.random.default_rng(0)
_y, _few = _rng.standard_normal(ROWS), _rng.random(ROWS) < 0.04
_one, _turn = np.ones(ROWS), np.arange(ROWS) % 2 == 0
ODD: dict[str, tuple[Any, Any, Any, Any]] = {
    "all crossed": (_one, -_one, _y, None),
    "a few crossed": (np.where(_few, 1.0, -1.0), np.where(_few, -1.0, 1.0), _y, None),
    "in turn": (np.where(_turn, 99.0, -1.0), np.where(_turn, -99.0, 1.0), _y, None),
    "points": (0.0 * _one, 0.0 * _one, _y, None),
    "constant": (0.0 * _one, 0.0 * _one, 0.0 * _y, None),
    "below the support": (-5.0 * _one, -4.0 * _one, abs(_y), (0.0, np.inf)),
    "above the support": (4.0 * _one, 5.0 * _one, -abs(_y), (-np.inf, 0.0)),
    "beside the support": (_y - 3.0, _y + 1.0, np.clip(_y, 0.0, 1.0), (0.0, 1.0)),
    "far too wide": (-1e6 * _one, 1e6 * _one, _y, None),
    "a jump": (-_one, _one, np.where(np.arange(ROWS) < ROWS // 2, _y, 1e9), None),
    "falling to a constant": (-_one, _one, np.where(np.arange(ROWS) < ROWS // 2, _y, 0.0), None),
    "little asked": (-_one, _one, _y, 0.05),
}


@pytest.mark.parametrize("name", ODD)
def test_no_interval_is_empty_whatever_the_predictions(
    tmp_path: Path, table: Table, name: str
) -> None:
    lower, upper, y, asked = ODD[name]
    file = table(tmp_path / "odd.csv", {"low": lower, "high": upper, "y": y})
    support = asked if isinstance(asked, tuple) else None
    coverage = asked if isinstance(asked, float) else 0.9
    outcome = jobs.calibrate(file, ENDS, coverage, support=support)
    trace = outcome.trace
    assert (trace.lower <= trace.upper).all()
    low, high = support or (-np.inf, np.inf)
    assert ((trace.lower >= low) & (trace.upper <= high)).all()
    assert trace.certificate().risks[0].within
    notes = [note for note in outcome.notes if "crossed" in note]
    assert len(notes) == int((lower > upper).any())


def test_crossed_ends_are_sorted_counted_and_noted(tmp_path: Path, table: Table) -> None:
    lower, upper, y, _ = ODD["a few crossed"]
    file = table(tmp_path / "crossed.csv", {"low": lower, "high": upper, "y": y})
    sorted_ = {"low": np.minimum(lower, upper), "high": np.maximum(lower, upper), "y": y}
    for held in (None, sp.Controller(sp.sets.Widen(), sp.Risk(sp.losses.Miscoverage(), 0.1))):
        outcome = jobs.calibrate(file, ENDS, controller=held)
        wanted = jobs.calibrate(table(tmp_path / "sorted.csv", sorted_), ENDS, controller=held)
        np.testing.assert_array_equal(outcome.trace.lower, wanted.trace.lower)
        np.testing.assert_array_equal(outcome.trace.upper, wanted.trace.upper)
        count = int(_few.sum())
        note = f"{count} rows had crossed ends, 'low' above 'high'; they were sorted"
        assert note in outcome.notes
        assert not any("crossed" in note for note in wanted.notes)


def test_ends_that_mostly_cross_are_asked_about(tmp_path: Path, table: Table) -> None:
    lower, upper, y, _ = ODD["all crossed"]
    file = table(tmp_path / "crossed.csv", {"low": lower, "high": upper, "y": y})
    (note,) = [note for note in jobs.calibrate(file, ENDS).notes if "crossed" in note]
    assert note.endswith("they were sorted: are the two the wrong way round?")


def test_a_live_stream_shows_the_same_for_ends_that_cross() -> None:
    ahead, back = sp.Stream(sp.intervals()), sp.Stream(sp.intervals())
    for y in _y.tolist():
        assert ahead.predict((-1.0, 1.0)) == back.predict((1.0, -1.0))
        assert ahead.update(y) == back.update(y)


def test_a_centre_outside_the_support_moves_to_its_end_and_the_far_end_stays() -> None:
    def first(lower: float, upper: float) -> sp.sets.Interval:
        return sp.Stream(sp.intervals(support=(0.0, 10.0))).predict((lower, upper))

    assert first(2.0, 4.0) == sp.sets.Interval(2.0, 4.0)
    assert first(-3.0, 2.0) == sp.sets.Interval(0.0, 2.0)
    assert first(8.0, 13.0) == sp.sets.Interval(8.0, 10.0)
    assert first(-9.0, -5.0) == sp.sets.Interval(0.0, 1.0)  # half of its half is left
    assert first(15.0, 19.0) == sp.sets.Interval(9.0, 10.0)
