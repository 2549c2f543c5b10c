"""`run` as a forecaster: what it sees, what it says, and what it does when a model goes wrong."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.errors import DataError

Table = Callable[[Path, Mapping[str, Sequence[Any]]], Path]


def _stock(size: int) -> dict[str, Sequence[Any]]:
    """Days of a price: the high and the low of a day know its close, the open hardly does."""
    random = np.random.default_rng(0)
    close = 100.0 + np.cumsum(random.normal(size=size))
    first = np.concatenate((close[:1], close[:-1])) + random.normal(0.0, 0.1, size)
    wick = np.abs(random.normal(0.0, 0.4, (2, size)))
    return {
        "": range(size),
        "date": np.datetime64("2020-01-01") + np.arange(size),
        "open": first,
        "high": np.maximum(first, close) + wick[0],
        "low": np.minimum(first, close) - wick[1],
        "close": close,
    }


def _notes(outcome: jobs.Outcome, word: str) -> list[str]:
    return [note for note in outcome.notes if word in note]


def test_columns_that_tell_of_their_own_row_are_taken_from_the_row_before(
    tmp_path: Path, table: Table
) -> None:
    path = table(tmp_path / "a.csv", _stock(500))
    safe = jobs.run(path, "close", model="linear")
    (note,) = _notes(safe, "known_ahead")
    assert "row: high, low;" in note
    (note,) = _notes(safe, "left out")
    assert "left out: a column without a name counts the rows" in note
    leaky = jobs.run(path, "close", model="linear", known_ahead=["high", "low"])
    assert not _notes(leaky, "known_ahead")
    # A random walk cannot be forecast: 90 % intervals have 2 · 1.645 standard deviations.
    length = safe.trace.summary().mean_finite_length
    assert length > 3.0
    assert leaky.trace.summary().mean_finite_length < length


def test_a_late_label_makes_a_lagged_column_late(tmp_path: Path, table: Table) -> None:
    stock = _stock(300)
    path = table(tmp_path / "a.csv", stock)
    changed = {**stock, "high": np.asarray(stock["high"]).copy()}
    changed["high"][200] += 5.0
    ends = [
        np.asarray(
            jobs.run(each, sp.Columns("close", delay=4), model="linear").added["predicted_upper"]
        )
        for each in (path, table(tmp_path / "b.csv", changed))
    ]
    # Of the row before its own a model with labels 4 rows late must not see what row 200 holds.
    assert np.flatnonzero(ends[0] != ends[1])[0] == 205


def test_the_parts_of_a_sum_tell_it_together(tmp_path: Path, table: Table) -> None:
    rng = np.random.default_rng(0)
    parts = rng.normal(size=(6, 800)).cumsum(axis=1)
    columns = {f"part{number}": part for number, part in enumerate(parts)}
    columns |= {"weather": rng.normal(size=800), "total": parts.sum(axis=0)}
    outcome = jobs.run(table(tmp_path / "a.csv", columns), "total", model="linear")
    (note,) = _notes(outcome, "known_ahead")
    named = [f"part{number}" for number in range(6)]
    assert sum(name in note for name in named) >= 5
    assert "weather" not in note
    # What cannot be forecast: six steps of a random walk.
    assert outcome.trace.summary().mean_finite_length > 3.2 * np.sqrt(5.0)


def test_a_count_of_rows_some_of_which_are_gone_is_left_out(tmp_path: Path, table: Table) -> None:
    rng = np.random.default_rng(0)
    kept = np.flatnonzero(rng.random(500) < 0.8)
    path = table(tmp_path / "a.csv", {"": kept, "y": rng.normal(size=len(kept)).cumsum()})
    (note,) = _notes(jobs.run(path, "y", model="last"), "left out")
    assert "left out: a column without a name counts the rows" in note


def test_rows_to_come_are_refused_with_the_command_that_forecasts_them(
    tmp_path: Path, table: Table
) -> None:
    stock = {"y": np.concatenate([np.arange(40.0) % 7, [np.nan] * 7])}
    with pytest.raises(DataError, match=r"last 7 rows .* one step ahead: `setpoint forecast`"):
        jobs.run(table(tmp_path / "a.csv", stock), "y", model="last")
    # One row to come is a step ahead, and with labels seven rows late seven are.
    one = {"y": stock["y"][:41]}
    outcome = jobs.run(table(tmp_path / "b.csv", one), "y", model="last")
    assert np.isfinite(np.asarray(outcome.added["predicted_point"])).all()
    jobs.run(table(tmp_path / "c.csv", stock), sp.Columns("y", delay=6), model="last")


def test_a_mixture_says_who_took_part(tmp_path: Path, table: Table) -> None:
    outcome = jobs.run(table(tmp_path / "a.csv", _stock(300)), "close")
    (note,) = _notes(outcome, "mixture")
    assert note.startswith("the forecast is a mixture, on average of last ")
    assert set(outcome.added) >= {"predicted_lower", "predicted_upper"}


def test_a_model_that_diverges_is_named_with_its_rows(tmp_path: Path, table: Table) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=900)
    y = x + random.normal(0.0, 0.1, 900)
    x[600:700] = 1e12
    path = table(tmp_path / "a.csv", {"x": x, "y": y})
    outcome = jobs.run(path, "y", model="linear", known_ahead=["x"])
    (note,) = _notes(outcome, "diverged")
    assert note.startswith("linear diverged at line 602 (the header is line 1), left out")
    assert np.abs(outcome.added["predicted_upper"]).max() < 50.0


def test_a_column_known_ahead_must_be_there(tmp_path: Path, table: Table) -> None:
    with pytest.raises(DataError, match="no column 'hihg' for known_ahead"):
        jobs.run(table(tmp_path / "a.csv", _stock(100)), "close", known_ahead=["hihg"])


def test_the_command_repeats_what_was_asked(tmp_path: Path, table: Table) -> None:
    path = table(tmp_path / "a.csv", _stock(100))
    outcome = jobs.run(path, "close", model="last", known_ahead=["open"])
    command = outcome.job.repeat(None)
    assert command is not None
    assert "--known-ahead open" in command
