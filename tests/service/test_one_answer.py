"""One file, five ways: replayed, live, stored, as lines of a command and over HTTP, to the bit."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs

pytest.importorskip("httpx", reason="needs httpx: pip install 'setpoint[service]'")
pytest.importorskip("starlette", reason="needs starlette: pip install 'setpoint[service]'")
pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'setpoint[data]'")

from tests.serving import Serving

pytestmark = pytest.mark.service
ROWS = 300


def events(forecast: np.ndarray, y: np.ndarray, delay: int) -> list[dict[str, Any]]:
    """Predictions and labels in the order in which they come."""
    sent: list[dict[str, Any]] = []
    for row, point in enumerate(forecast.tolist()):
        if row > delay:
            sent.append({"id": row - delay - 1, "y": float(y[row - delay - 1])})
        sent.append({"id": row, "prediction": point})
    return sent


def ends(answers: list[dict[str, Any]]) -> np.ndarray:
    """The sets among the answers; the first is the whole line, which JSON has no number for."""
    sets = [(answer["lower"], answer["upper"]) for answer in answers if "lower" in answer]
    open_ends = np.array([-np.inf, np.inf])
    return np.where(np.equal(sets, None), open_ends, np.array(sets, np.float64))


@pytest.mark.parametrize("delay", [0, 23])
@pytest.mark.parametrize("period", [None, 24])
def test_every_way_shows_the_same_sets(tmp_path: Path, delay: int, period: int | None) -> None:
    rng = np.random.default_rng(delay)
    hours = np.arange(ROWS)
    forecast = np.round(5.0 * np.sin(hours / 4.0), 3)
    y = np.round(forecast + np.cos(hours * 2.0 * np.pi / 24.0) + rng.normal(size=ROWS), 3)
    path = tmp_path / "a.csv"
    lines = [f"{point},{label}" for point, label in zip(forecast, y, strict=True)]
    path.write_text("\n".join(["point,y", *lines]))
    columns = sp.Columns("y", point="point", delay=delay, period=period)
    outcome = jobs.calibrate(path, columns)
    trace, controller = outcome.trace, outcome.trace.controller
    shown = np.stack([trace.lower, trace.upper], axis=1)
    sent = events(forecast, y, delay)

    stream = sp.Stream(controller)
    live = [
        stream.predict(event["prediction"], event["id"]) if "prediction" in event
        else stream.update(event["y"], event["id"])
        for event in sent
    ]  # fmt: skip
    assert np.array_equal(np.array([s for s in live if isinstance(s, sp.sets.Interval)]), shown)

    with sp.Store(tmp_path / "a.sqlite", controller) as store:
        assert np.array_equal(ends(store.apply(sent, "a")), shown)

    toml = tmp_path / "controller.toml"
    toml.write_text(sp.spec.to_toml(controller))
    told = subprocess.run(
        [sys.executable, "-m", "setpoint.cli", "stream", "--controller", str(toml), "--store",
         str(tmp_path / "b.sqlite")],
        input="\n".join(map(json.dumps, sent)), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert np.array_equal(ends([json.loads(line) for line in told.stdout.splitlines()]), shown)

    with Serving("--store", str(tmp_path / "c.sqlite")) as serving, serving.client() as client:
        client.create("a", controller=toml.read_text())
        assert np.array_equal(ends(client.events(sent, "a")), shown)
        assert client.certificate("a")["risks"][0]["judged"] == ROWS - delay - 1
