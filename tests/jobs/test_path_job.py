"""`setpoint calibrate --path`: long and wide files give what a live stream gives."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'setpoint[data]'")

from typer.testing import CliRunner

import setpoint as sp
from setpoint import jobs
from setpoint.cli import app
from setpoint.errors import InputError
from setpoint.jobs.inspect import streams

COUNT, STEPS = 60, 4
LONG = sp.Columns("use", point="f", time="made", horizon="ahead")
WIDE = sp.Columns("use*", point="f*", time="made")


def series(every: int) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts and actual values of each path."""
    rng = np.random.default_rng(every)
    world = 20.0 + rng.normal(size=COUNT * every + STEPS).cumsum()
    y = np.stack([world[t * every : t * every + STEPS] for t in range(COUNT)])
    return y + rng.normal(size=y.shape), y


def long_file(path: Path, every: int) -> Path:
    forecast, y = series(every)
    lines = ["made,ahead,f,use"]
    lines += [
        f"{day * every},{h + 1},{float(forecast[day, h])!r},{float(y[day, h])!r}"
        for day in range(COUNT)
        for h in range(STEPS)
    ]
    path.write_text("\n".join(lines))
    return path


def wide_file(path: Path, every: int) -> Path:
    forecast, y = series(every)
    names = [f"f{h + 1}" for h in range(STEPS)] + [f"use{h + 1}" for h in range(STEPS)]
    lines = [",".join(["made", *names])]
    for day in range(COUNT):
        values = [day * every, *forecast[day].tolist(), *y[day].tolist()]
        lines.append(",".join(map(repr, values)))
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("every", [1, 2, STEPS])
@pytest.mark.parametrize("kind", ["long", "wide"])
def test_a_file_of_paths_is_a_live_stream(tmp_path: Path, every: int, kind: str) -> None:
    long = kind == "long"
    file = (long_file if long else wide_file)(tmp_path / "f.csv", every)
    outcome = jobs.calibrate(file, LONG if long else WIDE, totals=[2, STEPS], maximum=True)
    trace, stream = outcome.trace, sp.Stream(outcome.trace.controller)
    assert trace.controller == sp.paths(STEPS, totals=[2, STEPS], maximum=True, every=every)
    forecast, y = series(every)
    for day in range(COUNT):
        for moment in range((day - 1) * every, day * every):
            for made in list(stream.pending):
                step = moment - made * every
                if step < STEPS:
                    stream.update(y[made, step], id=made, step=step + 1)
        shown = stream.predict(forecast[day], id=day)
        assert trace.upper[day].tolist() == shown.upper.tolist()
        assert trace.numbers[0][:, day].tolist() == [part.lower for part in shown.numbers]
    files = outcome.write(tmp_path / "out")
    assert {*files} == {
        "rows.csv", "paths.csv", "metrics.json", "controller.toml", "state.zip", "report.html",
    }  # fmt: skip
    rows = (tmp_path / "out" / "rows.csv").read_text().splitlines()
    assert len(rows) == 1 + COUNT * (STEPS if long else 1)
    name = "upper" if long else "upper_h1"
    last = rows[-STEPS if long else -1].split(",")[rows[0].split(",").index(name)]
    assert float(last) == trace.upper[-1][0]
    paths = (tmp_path / "out" / "paths.csv").read_text().splitlines()
    assert len(paths) == 1 + COUNT
    assert "total_4_upper" in paths[0]
    (ended,) = streams(tmp_path / "out" / "state.zip").values()
    assert ended.state.table == next(iter(trace.states.values())).table
    assert "maximum of 4" in str(outcome)
    again = jobs.calibrate(file, LONG if long else WIDE, controller=trace.controller)
    assert (again.trace.upper == trace.upper).all()


def test_the_command_writes_and_says_it(tmp_path: Path) -> None:
    file, out = long_file(tmp_path / "f.csv", STEPS), str(tmp_path / "out")
    words = ["calibrate", str(file), "--target", "use", "--point", "f", "--horizon", "ahead"]
    words += ["--time", "made", "--out", out]
    shown = CliRunner().invoke(app, [*words, "--path", "--total", "2", "--coverage", "0.5,0.9"])
    assert shown.exit_code == 0, shown.output
    assert "total of 2, coverage 0.9" in shown.output
    numbers = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert [one["asked"] for one in numbers["sets"]] == [0.5, 0.5, 0.9, 0.9]
    assert numbers["paths"] == COUNT
    head = (tmp_path / "out" / "rows.csv").read_text().splitlines()[0]
    assert head.endswith("lower_50,lower_90,upper_50,upper_90,covered")


@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        ({"horizon": None}, {}, "forecasts of several horizons"),
        ({"groups": ("made",)}, {}, "takes no groups"),
        ({}, {"controller": sp.intervals()}, "not for paths"),
        ({}, {"controller": sp.paths(7)}, "paths of 7 steps need"),
    ],
)
def test_what_paths_cannot_take_is_refused(
    tmp_path: Path, changes: dict[str, Any], options: dict[str, Any], words: str
) -> None:
    file = long_file(tmp_path / "f.csv", 1)
    with pytest.raises(InputError, match=words):
        jobs.calibrate(file, replace(LONG, **changes), path=True, **options)
