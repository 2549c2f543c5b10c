"""What once failed without a word behind a green verdict: each is right now, or is told.

Forecasts of several steps, series of unlike scale, a model that diverged.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

AHEAD = 144


def day_ahead(rows: int = 700) -> dict[str, np.ndarray]:
    """A wave of a day in steps of ten minutes, with slow errors, forecast a day ahead."""
    random = np.random.default_rng(4)
    wave = np.sin(2.0 * np.pi * np.arange(rows) / 144.0)
    drift = np.cumsum(random.normal(0.0, 0.03, rows))
    y = np.round(wave + drift + random.normal(0.0, 0.05, rows), 6)
    point = np.concatenate([wave[:AHEAD], y[:-AHEAD]])
    return {"low": np.round(point - 0.2, 6), "high": np.round(point + 0.2, 6), "y": y}


def written(path: Path, columns: dict[str, Any]) -> Path:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(np.asarray(c).tolist() for c in columns.values()), strict=True))
    return path


def command(*words: object, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "setpoint.cli", *map(str, words)],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def read(path: Path) -> dict[str, list[str]]:
    with open(path, newline="", encoding="utf-8") as file:
        names, *lines = csv.reader(file)
    return dict(zip(names, map(list, zip(*lines, strict=True)), strict=True))


def test_calibrate_with_a_delay_writes_what_a_live_stream_shows_to_the_bit(tmp_path: Path) -> None:
    columns = day_ahead()
    written(tmp_path / "a.csv", columns)
    names = ("--target", "y", "--lower", "low", "--upper", "high")
    said = command("calibrate", "a.csv", *names, "--delay", AHEAD, "--out", "late", folder=tmp_path)
    assert f"each label is taken to be known {AHEAD} rows late" in said
    rows, stream = read(tmp_path / "late" / "rows.csv"), sp.Stream(sp.intervals(0.9))
    for row in range(len(columns["y"])):
        if row > AHEAD:
            stream.update(columns["y"][row - 1 - AHEAD], row - 1 - AHEAD)
        shown = stream.predict((columns["low"][row], columns["high"][row]), row)
        assert tuple(shown) == (float(rows["lower"][row]), float(rows["upper"][row]))


def test_several_steps_ahead_without_a_delay_are_told_what_was_assumed(tmp_path: Path) -> None:
    columns = day_ahead()
    path = written(tmp_path / "a.csv", columns)
    at_once = jobs.calibrate(path, sp.Columns("y", "low", "high"))
    late = jobs.calibrate(path, sp.Columns("y", "low", "high", delay=AHEAD))
    assert "note: each label is taken to be known before the next row" in str(at_once)
    assert "delay, horizon or known" in str(at_once)
    assert f"note: each label is taken to be known {AHEAD} rows late" in str(late)
    # The assumption matters: without it the sets look several times narrower than they can be.
    lengths = [outcome.trace.summary().mean_finite_length for outcome in (at_once, late)]
    assert lengths[1] > 3.0 * lengths[0]


@pytest.mark.parametrize("delay", [0, 5])
def test_every_series_of_a_panel_gets_what_it_would_get_alone(tmp_path: Path, delay: int) -> None:
    parts, rows = {}, 250
    noise = np.random.default_rng(1).normal(0.1, 0.4, rows)
    for name, scale in (("grams", 1e3), ("kilos", 1.0), ("tonnes", 1e-3)):
        middle = scale * np.sin(np.arange(rows) / 9.0)
        y = middle + scale * noise
        parts[name] = {"low": middle - 0.3 * scale, "high": middle + 0.3 * scale, "y": y}
    together: dict[str, Any] = {"series": [name for _ in range(rows) for name in parts]}
    for column in ("low", "high", "y"):
        together[column] = np.stack([part[column] for part in parts.values()], axis=1).ravel()
    columns = sp.Columns("y", "low", "high", series="series", delay=delay)
    panel = jobs.calibrate(written(tmp_path / "panel.csv", together), columns)
    tape = panel.trace.tape
    shares = []
    for name, part in parts.items():
        path = written(tmp_path / f"{name}.csv", part)
        alone = jobs.calibrate(path, sp.Columns("y", "low", "high", delay=delay)).trace
        places = np.asarray(tape.rows(name))
        assert np.array_equal(panel.trace.lower[places], alone.lower)
        assert np.array_equal(panel.trace.upper[places], alone.upper)
        assert panel.trace.certificate(name) == alone.certificate()
        shares.append(alone.uses.share[0] if alone.uses is not None else np.nan)
    assert max(shares) == pytest.approx(min(shares), rel=0.02), "the unit makes no difference"
    folder = panel.write(tmp_path / "out", report=False)
    numbers = json.loads(folder["metrics.json"].read_text("utf-8"))
    assert {row["id"] for row in numbers["worst_streams"]} == set(parts)
    assert all(row["verdict"] and row["usefulness"]["use"] for row in numbers["worst_streams"])
    assert numbers["bound_upper"] is not None, "the series have a bound together"
    # One step size for all of them is warned of, wherever it comes from.
    warned = "one step size in units of the target serves all series, and their ranges differ by a "
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(1.0), bounds=(-1e4, 1e4))
    paper = sp.Controller(sp.sets.Widen(), risk)
    told = jobs.calibrate(tmp_path / "panel.csv", columns, controller=paper)
    assert f"{warned}factor of 1,000,000" in str(told)
    assert warned not in str(panel)


def test_a_model_that_diverged_is_named_and_nothing_is_green(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    y = random.random(600)
    point = y + np.where(np.arange(600) < 200, 0.1, 1e9) * random.normal(size=600)
    outcome = jobs.calibrate(
        written(tmp_path / "a.csv", {"point": point, "y": y}), sp.Columns("y", point="point")
    )
    said = str(outcome)
    assert "the model diverged: from about row " in said
    assert outcome.metrics()["usefulness"]["use"] in ("poor", "useless")
    page = outcome.write(tmp_path / "out")["report.html"].read_text("utf-8")
    assert "the model diverged: from about row " in page
    assert "verdict good" not in page
