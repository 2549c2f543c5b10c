"""From a finished job to a live stream: state and controller are handed over, alarms are told."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

ROWS, HALF = 300, 200


def setpoint(*words: object, lines: list[Any] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "setpoint.cli", *map(str, words)],
        input=None if lines is None else "".join(f"{json.dumps(line)}\n" for line in lines),
        capture_output=True, text=True, env={**os.environ, "SETPOINT_PLAIN": "1"}, check=False,
    )  # fmt: skip


def written(path: Path, rows: list[tuple[Any, ...]]) -> Path:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("site", "low", "high", "y"), *rows])
    return path


@pytest.fixture
def rows() -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    y = (rng.standard_normal(ROWS) * np.linspace(1.0, 3.0, ROWS)).round(3).tolist()
    return [("north" if i % 3 else "south", -1.0, 1.0, label) for i, label in enumerate(y)]


@pytest.mark.parametrize("several", [False, True])
def test_a_stream_goes_on_where_calibrate_ended(
    tmp_path: Path, rows: list[tuple[Any, ...]], several: bool
) -> None:
    columns = sp.Columns("y", lower="low", upper="high", series="site" if several else None)
    whole = jobs.calibrate(written(tmp_path / "whole.csv", rows), columns).trace
    jobs.calibrate(written(tmp_path / "half.csv", rows[:HALF]), columns).write(tmp_path / "job")
    lines = []
    for number, (site, low, high, y) in enumerate(rows[HALF:]):
        name = {"stream": site} if several else {}
        lines.append({**name, "id": number, "prediction": [low, high]})
        lines.append({**name, "id": number, "y": y})
    state = tmp_path / "live.sqlite"
    result = setpoint("stream", "--store", state, "--from", tmp_path / "job", lines=lines)
    assert result.returncode == 0, result.stderr
    answers = list(map(json.loads, result.stdout.splitlines()))
    assert [answer["lower"] for answer in answers[::2]] == whole.lower[HALF:].tolist()
    assert [answer["upper"] for answer in answers[::2]] == whole.upper[HALF:].tolist()
    with sp.Store(state) as store:
        assert sorted(store.names) == (["north", "south"] if several else [""])
        id = "north" if several else None
        assert store.read(id or "").certificate().risks == whole.certificate(id).risks
    # the streams are there now, and --from changes nothing of them
    asked = [{"stream": "north", "certificate": True} if several else {"certificate": True}]
    again = setpoint("stream", "--store", state, "--from", tmp_path / "job", lines=asked)
    (answer,) = map(json.loads, again.stdout.splitlines())
    assert answer["certificate"]["risks"][0]["judged"] == whole.certificate(id).risks[0].judged


def test_a_season_is_handed_over(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    controller = sp.intervals(period=6)
    stream, live = sp.Stream(controller), sp.Stream(controller)
    y = (5.0 * np.sin(np.arange(120)) + rng.standard_normal(120)).tolist()
    for label in y[:90]:
        for one in (stream, live):
            one.predict((-1.0, 1.0))
            one.update(label)
    with sp.Store(tmp_path / "a.sqlite", controller) as store:
        stored = store.stream("a", state=stream.state)
        for label in y[90:]:
            assert stored.predict((-1.0, 1.0)) == live.predict((-1.0, 1.0))
            assert stored.update(label) == live.update(label)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "nowhere"), "nowhere does not exist"),
        (("--from", "job", "--coverage", 0.9), "--coverage and --from both say what to control"),
    ],
)
def test_what_cannot_be_handed_over_is_said(tmp_path: Path, words: Any, said: str) -> None:
    result = setpoint("stream", "--store", tmp_path / "a.sqlite", *words, lines=[])
    assert result.returncode == 1
    assert said in result.stderr
    assert not (tmp_path / "a.sqlite").exists()


def test_the_label_that_begins_an_alarm_is_answered_with_it(tmp_path: Path) -> None:
    lines = [{"id": n, "prediction": [0, 1], "y": 10.0**n} for n in range(1, 31)]
    words = ("stream", "--store", tmp_path / "a.sqlite", "--window", 5)
    answers = [json.loads(line) for line in setpoint(*words, lines=lines).stdout.splitlines()]
    told = [
        (place, alarm["kind"]) for place, a in enumerate(answers) for alarm in a.get("alarms", [])
    ]
    assert [kind for _, kind in told].count("window") == 1
    place = next(place for place, kind in told if kind == "window")
    assert place >= 4  # not before there is a window
    losses = [answer["loss"] for answer in answers[: place + 1]]
    assert abs(np.mean(losses[-5:]) - 0.1) > 0.1
