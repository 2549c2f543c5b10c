"""The folder of a job: whole or as it was, of one job at a time, and enough to do it again."""

import csv
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.errors import InputError, StateError
from setpoint.tape.files import write

pa = pytest.importorskip("pyarrow")

Table = Callable[[Path, dict[str, Any]], Path]
World = Callable[..., dict[str, Any]]

ENDS = sp.Columns("y", lower="low", upper="high")


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def several(world: World, rows: int = 300) -> dict[str, Any]:
    """Three series, row by row in turn, of which the last is short."""
    parts = {name: world(rows, seed) for seed, name in enumerate("abc")}
    lines = [
        (name, *(parts[name][column][i] for column in ("low", "high", "y")))
        for i in range(rows)
        for name in ("abc" if i < 120 else "ab")
    ]
    return dict(zip(("site", "low", "high", "y"), zip(*lines, strict=True), strict=True))


# One job at a time


def test_a_second_job_takes_the_files_of_the_first_away_and_no_others(
    tmp_path: Path, table: Table, world: World
) -> None:
    path, out = table(tmp_path / "a.csv", world(200)), tmp_path / "out"
    as_parquet = write(pa.table(world(200)), tmp_path / "a.parquet")
    found = jobs.calibrate(path, ENDS)
    jobs.calibrate(as_parquet, ENDS).write(out, report=False)
    for mine in ("notes.txt", "rows.old.csv", "rows.jsonl"):
        (out / mine).write_text("mine")
    found.write(out, report=False)
    assert names(out) == [
        "controller.toml", "metrics.json", "notes.txt", "rows.csv", "rows.jsonl", "rows.old.csv",
        "state.zip",
    ]  # fmt: skip
    assert (out / "rows.jsonl").read_text() == "mine"
    listed = json.loads((out / "metrics.json").read_text("utf-8"))["files"]
    assert listed == ["controller.toml", "metrics.json", "rows.csv", "state.zip"]


def test_what_no_job_wrote_is_neither_replaced_nor_taken_away(
    tmp_path: Path, table: Table, world: World
) -> None:
    found = jobs.calibrate(table(tmp_path / "a.csv", world(200)), ENDS)
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    for claimed in (["notes.txt", "../a.csv", 3], "notes.txt", None):
        text = json.dumps({"files": claimed, "job": {}})
        (out / "metrics.json").write_text(text)
        with pytest.raises(InputError, match=r"metrics.json is there already and no job wrote it"):
            found.write(out, report=False)
        assert names(out) == ["metrics.json", "notes.txt"]
        assert (out / "metrics.json").read_text() == text
    (out / "metrics.json").unlink()
    for mine in ("rows.csv", "controller.toml"):
        (out / mine).write_text("mine")
        with pytest.raises(InputError, match=f"{mine} is there already and no job wrote it: name"):
            found.write(out, report=False)
        assert (out / mine).read_text() == "mine"
        (out / mine).unlink()
    found.write(out, report=False)
    found.write(out, report=False)
    assert (out / "notes.txt").read_text() == "mine"
    assert (tmp_path / "a.csv").exists()


def test_the_file_that_was_read_is_neither_replaced_nor_taken_away(tmp_path: Path) -> None:
    """Someone calibrates the stream of the demo into the folder of the demo."""
    made = jobs.demo().write(tmp_path / "demo", report=False)
    text = made["demand.csv"].read_text()
    columns = sp.Columns("demand", lower="lower", upper="upper")
    made = jobs.calibrate(made["demand.csv"], columns).write(tmp_path / "demo", report=False)
    assert (tmp_path / "demo" / "demand.csv").read_text() == text
    rows = made["rows.csv"].read_bytes()
    found = jobs.calibrate(made["rows.csv"], columns)
    with pytest.raises(InputError, match=r"rows.csv is the file that was read"):
        found.write(tmp_path / "demo", report=False)
    assert made["rows.csv"].read_bytes() == rows


def _mounted(folder: Path, size: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command where `out` is a disk of its own, and lists that disk afterwards."""
    mount = f"mount -t tmpfs -o size={size} none out || exit 77"
    script = f'{mount}; "$@" > /dev/null; code=$?; ls -A out; exit $code'
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, "sh", *words],
        cwd=folder, text=True, capture_output=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(("size", "fits"), [("4m", True), ("16k", False)])
def test_the_folder_may_be_a_disk_of_its_own_and_it_may_be_full(
    tmp_path: Path, table: Table, world: World, size: str, fits: bool
) -> None:
    pytest.importorskip("typer")
    table(tmp_path / "a.csv", world(400))
    (tmp_path / "out").mkdir()
    words = [sys.executable, "-m", "setpoint.cli", "calibrate", "a.csv", "--target", "y"]
    words += ["--lower", "low", "--upper", "high", "--no-report", "--out", "out"]
    try:
        found = _mounted(tmp_path, size, words)
    except FileNotFoundError:
        pytest.skip("needs unshare")
    if found.returncode == 77 or "unshare" in found.stderr:
        pytest.skip("needs the right to mount a disk")
    written = found.stdout.split()
    if fits:
        assert (found.returncode, found.stderr) == (0, "")
        assert written == ["controller.toml", "metrics.json", "rows.csv", "state.zip"]
    else:
        assert (found.returncode, written) == (1, [])
        assert found.stderr.startswith("setpoint: out cannot be written: No space left on device")
        assert found.stderr.count("\n") == 1


# Many series


@pytest.mark.parametrize("kind", ["fleet", "streams"])
def test_the_states_of_many_series_are_saved_and_go_on(
    tmp_path: Path, table: Table, world: World, kind: str
) -> None:
    if kind == "fleet":
        held = several(world)
        path = table(tmp_path / "a.csv", held)
        columns = sp.Columns("y", lower="low", upper="high", series="site")
        next_one: Any = (0.0, 1.0)
    else:
        random = np.random.default_rng(2)
        p = random.random(600).round(3)
        y = np.where(random.random(600) < p, "cat", "dog")
        held = {"cat": p, "dog": (1 - p).round(3), "is": y, "site": [7, 8] * 300}
        path = table(tmp_path / "a.csv", held)
        columns = sp.Columns("is", probabilities=("cat", "dog"), series="site")
        next_one = (0.3, 0.7)
    found = jobs.calibrate(path, columns)
    found.write(tmp_path / "out", report=False)
    told = jobs.inspect(tmp_path / "out")
    assert told.kind == kind
    streams = jobs.streams(tmp_path / "out")
    assert list(map(str, streams)) == list(map(str, found.trace.states))
    for name, state in found.trace.states.items():
        alone = sp.Stream(found.trace.controller, state=state)
        again = streams[name]
        assert str(told.only(str(name)).certificates[name]) == str(alone.certificate())
        assert again.theta == alone.theta
        assert repr(again.predict(next_one)) == repr(alone.predict(next_one))


def test_the_state_of_one_series_is_a_stream(tmp_path: Path, table: Table, world: World) -> None:
    found = jobs.calibrate(table(tmp_path / "a.csv", world(200)), ENDS)
    made = found.write(tmp_path / "out", report=False)
    (stream,) = jobs.streams(made["state.zip"]).values()
    assert stream.theta == sp.Stream.load(made["state.zip"]).theta
    made["state.zip"].write_bytes(b"no")
    with pytest.raises(StateError, match="damaged or not a saved state"):
        jobs.streams(tmp_path / "out")


@pytest.mark.parametrize("risk", ["coverage", "mc"])
def test_predictions_as_given_are_judged_series_by_series(
    tmp_path: Path, table: Table, world: World, risk: str
) -> None:
    path = table(tmp_path / "a.csv", several(world))
    columns = sp.Columns("y", lower="low", upper="high", series="site")
    counter = sp.Risk(sp.losses.MiscoverageCounter(cap=20), 0.1 / 0.9)
    held = sp.intervals(risk=counter) if risk == "mc" else None
    found = jobs.calibrate(path, columns, controller=held)
    made = found.write(tmp_path / "out", report=False)
    level = 0.1 if risk == "coverage" else 0.1 / 0.9
    runs, windows, total = [], [], 0
    for site in "abc":
        losses: list[float] = []
        hits: list[bool] = []
        for row in rows_of(made["rows.csv"]):
            if row["site"] == site and row["burn_in"] == "false":
                hits.append(float(row["low"]) <= float(row["y"]) <= float(row["high"]))
                last = losses[-1] if losses else 0.0
                losses.append(0.0 if hits[-1] else (min(last + 1, 20) if risk == "mc" else 1.0))
        runs += [len(list(run)) for hit, run in groupby(hits) if not hit]
        width = min(250, len(losses))
        windows += [
            abs(sum(losses[i : i + width]) / width - level) for i in range(len(losses) - width + 1)
        ]
        total += sum(hits)
    assert found.before is not None
    given = found.before.trace.summary()
    assert given.longest_streak == max(runs)
    assert given.msl == pytest.approx(sum(runs) / len(runs))
    assert given.worst_window == pytest.approx(max(windows))
    assert given.coverage == pytest.approx(total / len(found.trace.lam))


# Full and empty sets


def test_full_and_empty_sets_are_told_apart_in_every_file(
    tmp_path: Path, table: Table, world: World
) -> None:
    held = world(400)
    held["y"] = [1000.0] * 200 + [low + 1.6 for low in held["low"][200:]]
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(2.0), bounds=(-3.0, 3.0))
    controller = sp.Controller(sp.sets.Widen(), risk)
    path = write(pa.table(held), tmp_path / "a.jsonl")
    found = jobs.calibrate(path, ENDS, controller=controller)
    assert found.trace.full.any()
    empty = found.trace.lower > found.trace.upper
    assert empty.any()
    made = found.write(tmp_path / "out", report=False)
    rows = [json.loads(line) for line in made["rows.jsonl"].read_text().splitlines()]
    assert [row["full"] for row in rows] == found.trace.full.tolist()
    assert [row["empty"] for row in rows] == empty.tolist()
    assert all(row["lower"] is None and row["upper"] is None for row in rows if row["full"])
    text = str(found)
    (row,) = [line for line in text.splitlines() if line.startswith("Full intervals")]
    assert row.split()[-4:] == ["0.00", "%", f"{100 * found.trace.full.mean():.2f}", "%"]
    (row,) = [line for line in text.splitlines() if line.startswith("Empty intervals")]
    assert row.split()[-4:] == ["0.00", "%", f"{100 * empty.mean():.2f}", "%"]


# Types


# The same again


SERIES = sp.Columns("y", lower="low", upper="high", series="si,te", time="when")


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (ENDS, {}),
        (SERIES, {"coverage": 0.8, "support": (-1e6, np.inf)}),
        (ENDS, {"controller": "open.toml"}),
    ],
)
def test_the_command_of_a_job_gives_its_numbers_again(
    tmp_path: Path, table: Table, world: World, columns: sp.Columns, options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    pytest.importorskip("typer")
    from setpoint.cli import main

    held = {**world(300), "si,te": ["north east", "south"] * 150}
    held["when"] = [str(np.datetime64("2024-01-01") + i) for i in range(300)][::-1]
    path = table(tmp_path / "my data.csv", held)
    opened = sp.Controller(sp.sets.Widen(), sp.Risk(sp.losses.Miscoverage(), 0.15))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "open.toml").write_text(sp.spec.to_toml(opened))
    found = jobs.calibrate(path, columns, **options)
    first = found.write(tmp_path / "first", report=False)
    words = shlex.split(found.job.repeat)
    monkeypatch.setattr(sys, "argv", [*words, "--out", str(tmp_path / "second"), "--no-report"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    for name in ("metrics.json", "rows.csv", "controller.toml"):
        one, two = (first[name].read_text("utf-8"), (tmp_path / "second" / name).read_text("utf-8"))
        if name == "metrics.json":
            one, two = json.loads(one), json.loads(two)
            for numbers in (one, two):  # each surface has its own words for options
                numbers["notes"] = [
                    note.replace("--", "").replace("-", "_") for note in numbers["notes"]
                ]
        assert one == two, name


def test_a_controller_from_python_is_named_as_the_file_beside_the_page(
    tmp_path: Path, table: Table, world: World
) -> None:
    path = table(tmp_path / "a.csv", world(200))
    found = jobs.calibrate(path, ENDS, controller=sp.intervals(0.85))
    assert found.job.repeat.endswith("--controller controller.toml")
    made = found.write(tmp_path / "out", report=False)
    again = jobs.calibrate(path, ENDS, controller=made["controller.toml"])
    assert np.array_equal(again.trace.lower, found.trace.lower)
    opened = sp.Controller(sp.sets.Widen(), sp.Risk(sp.losses.Miscoverage(), 0.15))
    assert jobs.calibrate(path, ENDS, controller=opened).job.repeat is None
