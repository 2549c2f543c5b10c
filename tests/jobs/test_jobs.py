"""Jobs on files: what is read, chosen, held and written, against loops written out here."""

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.errors import InputError
from setpoint.jobs.features import calendar
from setpoint.jobs.features import features as find
from setpoint.tape.files import write
from setpoint.tape.rows import read

pa = pytest.importorskip("pyarrow")

Table = Callable[[Path, dict[str, Any]], Path]
World = Callable[..., dict[str, Any]]


def rows_of(path: Path) -> list[dict[str, str]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


ENDS = sp.Columns("y", lower="low", upper="high")


# Calibrate


@pytest.mark.parametrize("rule", ["budget", "paper"])
def test_every_calibrated_row_is_what_a_live_stream_would_have_shown(
    tmp_path: Path, table: Table, world: World, rule: str
) -> None:
    held = world(1200)
    opened = (
        sp.Controller(sp.sets.Widen(), sp.Risk(sp.losses.Miscoverage(), 0.1))
        if rule == "paper"
        else None
    )
    path = table(tmp_path / "a.csv", held)
    found = jobs.calibrate(path, ENDS, controller=opened, burn_in=120)
    made = found.write(tmp_path / "out", report=False)
    written = rows_of(made["rows.csv"])
    controller = sp.spec.from_toml(made["controller.toml"].read_text("utf-8"))
    for part, burnt in ((slice(0, 120), "true"), (slice(120, 1200), "false")):
        stream = sp.Stream(controller)
        ends = list(zip(held["low"], held["high"], strict=True))[part]
        for row, prediction, y in zip(written[part], ends, held["y"][part], strict=True):
            shown = stream.predict(prediction)
            assert (float(row["lower"]), float(row["upper"])) == tuple(shown)
            assert row["covered"] == str(stream.update(y) == 0.0).lower()
            assert row["burn_in"] == burnt
    assert str(found.trace.certificate()) == str(stream.certificate())
    assert sp.Stream.load(made["state.zip"]).theta == stream.theta


def test_columns_that_nobody_asked_about_come_out_as_they_went_in(
    tmp_path: Path, table: Table, world: World
) -> None:
    held = world(300)
    strange = {"code": ["007", "1e5", "", 'a "b", c', "line\nbreak", " x "] * 50}
    plain = {"code": ["007", "1e5", "", "2024-01-01", "None", "1.50"] * 50}
    for number, more in enumerate((strange, plain)):
        path = table(tmp_path / f"{number}.csv", {**more, **held})
        made = jobs.calibrate(path, ENDS).write(tmp_path / f"out{number}", report=False)
        before, after = rows_of(path), rows_of(made["rows.csv"])
        assert [{name: row[name] for name in before[0]} for row in after] == before


def test_numbers_written_with_spaces_or_left_out_are_read(
    tmp_path: Path, table: Table, world: World
) -> None:
    held = world(300)
    held["y"] = [" " if i % 50 == 7 else f"  {y} " for i, y in enumerate(held["y"])]
    found = jobs.calibrate(table(tmp_path / "a.csv", held), ENDS)
    assert int(found.trace.certificate().missing) == 6
    made = found.write(tmp_path / "out", report=False)
    written = rows_of(made["rows.csv"])
    assert [row["covered"] == "" for row in written] == [i % 50 == 7 for i in range(300)]


@pytest.mark.parametrize("suffix", [".csv.gz", ".tsv", ".parquet", ".jsonl", ".jsonl.gz"])
def test_every_kind_of_file_gives_the_same_sets(
    tmp_path: Path, suffix: str, table: Table, world: World
) -> None:
    held = world(400)
    reference = jobs.calibrate(table(tmp_path / "a.csv", held), ENDS)
    path = write(pa.table(held), tmp_path / f"b{suffix}", "\t" if "tsv" in suffix else ",")
    found = jobs.calibrate(path, ENDS)
    assert np.array_equal(found.trace.lower, reference.trace.lower)
    made = found.write(tmp_path / "out", report=False)
    again = read(made[f"rows{suffix}"])
    assert np.array_equal(again.numbers("upper", ""), reference.trace.upper)
    assert again.numbers("high", "").tolist() == held["high"]


def test_a_point_is_a_pair_of_equal_ends(tmp_path: Path, table: Table, world: World) -> None:
    held = world(400)
    held["high"] = held["low"]
    path = table(tmp_path / "a.csv", held)
    pair = jobs.calibrate(path, ENDS)
    point = jobs.calibrate(path, sp.Columns("y", point="low"))
    assert np.array_equal(pair.trace.upper, point.trace.upper)
    assert point.given is None


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_one_end_alone_is_held_alone(tmp_path: Path, side: str, table: Table, world: World) -> None:
    path = table(tmp_path / "a.csv", world(3000))
    column = {"lower": "low", "upper": "high"}[side]
    found = jobs.calibrate(path, sp.Columns("y", **{side: column}))
    y = found.trace.tape.y
    ends = getattr(found.trace, side)
    missed = (y < ends) if side == "lower" else (y > ends)
    assert abs(missed.mean() - 0.1) < 0.02
    other = found.trace.upper if side == "lower" else found.trace.lower
    assert np.isinf(other).all()


def test_labels_are_held_from_probabilities_whatever_prefix_they_have(
    tmp_path: Path, table: Table
) -> None:
    random = np.random.default_rng(3)
    p = random.dirichlet([1.0, 1.0, 1.0], 900).round(4)
    p[:, 2] = 1.0 - p[:, 0] - p[:, 1]
    true = [("cat", "dog", "owl")[random.choice(3, p=row)] for row in np.clip(p, 0, 1)]
    true[500] = ""
    names = [f"p_{name}" for name in ("cat", "dog", "owl")]
    path = table(tmp_path / "a.csv", {**dict(zip(names, p.T.tolist(), strict=True)), "is": true})
    found = jobs.calibrate(path, sp.Columns("is", probabilities=tuple(names)))
    assert abs(found.trace.coverage - 0.9) < 0.02
    written = rows_of(found.write(tmp_path / "out", report=False)["rows.csv"])
    for row, label in zip(written, true, strict=True):
        labels = [name for name in row["labels"].split("|") if name]
        assert len(labels) == int(row["size"])
        assert row["covered"] == ("" if not label else str(label in labels).lower())
    assert found.trace.certificate().missing == 1


def test_rows_are_taken_in_the_order_of_time_and_written_in_that_of_the_file(
    tmp_path: Path, table: Table, world: World
) -> None:
    held = world(600)
    held["when"] = [str(np.datetime64("2024-01-01T00") + i) for i in range(600)]
    shuffle = np.random.default_rng(5).permutation(600)
    mixed = {name: [values[i] for i in shuffle] for name, values in held.items()}
    columns = sp.Columns("y", lower="low", upper="high", time="when")
    sorted_ = jobs.calibrate(table(tmp_path / "a.csv", held), columns)
    found = jobs.calibrate(table(tmp_path / "b.csv", mixed), columns)
    assert np.array_equal(found.trace.lower, sorted_.trace.lower)
    assert "not in the order of 'when'" in found.notes[0]
    first = rows_of(sorted_.write(tmp_path / "1", report=False)["rows.csv"])
    second = rows_of(found.write(tmp_path / "2", report=False)["rows.csv"])
    assert [first[i] for i in shuffle] == second


def test_every_series_is_held_by_itself(tmp_path: Path, table: Table, world: World) -> None:
    parts = {name: world(500, seed) for seed, name in enumerate("abc")}
    rows = [
        (name, *(parts[name][column][i] for column in ("low", "high", "y")))
        for i in range(500)
        for name in "abc"
    ]
    columns = dict(zip(("site", "low", "high", "y"), zip(*rows, strict=True), strict=True))
    path = table(tmp_path / "a.csv", columns)
    found = jobs.calibrate(path, sp.Columns("y", lower="low", upper="high", series="site"))
    assert found.burn_in == 0
    for name in "abc":
        stream, held = sp.Stream(found.trace.controller), parts[name]
        shown = []
        for i in range(500):
            shown.append(stream.predict((held["low"][i], held["high"][i])).lower)
            stream.update(held["y"][i])
        assert found.trace.lower[found.trace.tape.rows(name)].tolist() == shown
    assert "all series: guaranteed" in str(found)


def test_a_controller_that_is_given_is_used_from_the_first_row_on(
    tmp_path: Path, table: Table, world: World
) -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.2, sp.steps.Fixed(0.5), bounds=(-30.0, 30.0))
    controller = sp.Controller(sp.sets.Widen(), risk)
    found = jobs.calibrate(table(tmp_path / "a.csv", world(300)), ENDS, controller=controller)
    assert found.trace.controller == controller
    assert len(found.trace.lam) == 300
    opened = sp.Controller(sp.sets.Widen(), sp.Risk(sp.losses.Miscoverage(), 0.2))
    found = jobs.calibrate(table(tmp_path / "a.csv", world(300)), ENDS, controller=opened)
    assert len(found.trace.lam) == 250
    assert found.trace.controller.risks[0].bounds is not None


def test_the_mean_of_misses_in_a_row_can_be_held(
    tmp_path: Path, table: Table, world: World
) -> None:
    held = sp.intervals(risk=sp.Risk(sp.losses.MiscoverageCounter(cap=20), 1.0 / 9.0))
    found = jobs.calibrate(table(tmp_path / "a.csv", world(5000)), ENDS, controller=held)
    streak, total = 0, 0
    for hit in found.trace.covered.tolist():
        streak = 0 if hit else streak + 1
        total += min(streak, 20)
    assert abs(total / len(found.trace.covered) - 1.0 / 9.0) < 0.02


def test_columns_that_are_called_as_the_results_are_kept_apart(
    tmp_path: Path, table: Table, world: World
) -> None:
    held = world(300)
    path = table(tmp_path / "a.csv", {"lower": held["low"], "upper": held["high"], "y": held["y"]})
    found = jobs.calibrate(path, sp.Columns("y", lower="lower", upper="upper"))
    written = rows_of(found.write(tmp_path / "out", report=False)["rows.csv"])
    assert [float(row["lower"]) for row in written] == held["low"]
    assert float(written[-1]["calibrated_lower"]) == found.trace.lower[-1]


def test_what_a_job_wrote_can_be_the_file_of_another(
    tmp_path: Path, table: Table, world: World
) -> None:
    path = table(tmp_path / "a.csv", world(300))
    for number in range(3):
        found = jobs.calibrate(path, ENDS)
        made = found.write(tmp_path / f"out{number}", report=False)
        before, path = path, made["rows.csv"]
        names = list(rows_of(path)[0])
        assert len(set(names)) == len(names)
        assert names[: len(rows_of(before)[0])] == list(rows_of(before)[0])


def test_the_metrics_file_repeats_the_numbers_of_the_trace(
    tmp_path: Path, table: Table, world: World
) -> None:
    opened = sp.Controller(sp.sets.Widen(), sp.Risk(sp.losses.Miscoverage(), 0.1))
    found = jobs.calibrate(table(tmp_path / "a.csv", world(1000)), ENDS, controller=opened)
    made = found.write(tmp_path / "out", report=False)
    told = json.loads(made["metrics.json"].read_text("utf-8"))
    held, y = world(1000), np.array(world(1000)["y"])[100:]
    assert told["coverage"] == found.trace.covered.mean()
    low, high = np.array(held["low"])[100:], np.array(held["high"])[100:]
    assert told["before"]["coverage"] == ((low <= y) & (y <= high)).mean()
    assert told["job"]["columns"] == {"target": "y", "lower": "low", "upper": "high"}


# What a model sees


def test_features_are_numbers_dates_and_few_words(tmp_path: Path, table: Table) -> None:
    size = 60
    path = table(
        tmp_path / "a.csv",
        {
            "when": [f"{1 + i % 12}/{1 + i // 12}/2024 {i % 24}:00" for i in range(size)],
            "n": [37 * i % size if i % 7 else "" for i in range(size)],
            "word": ["a", "b", "c"] * 20,
            "words": [f"w{i}" for i in range(size)],
            "void": [""] * size,
            "y": range(size),
        },
    )
    rows = read(path)
    assert rows.dates == ["when"]
    tape = sp.Tape.from_arrays([np.zeros(size)], np.zeros(size))
    seen = find(rows, tape, sp.Columns("y", time="when"))
    assert seen.columns == ("when", "n", "word")
    assert seen.left_out == {
        "words": "holds 60 different words, and at most 30 become features",
        "void": "is empty",
    }
    numbers = seen.values[:, seen.names.index("n")].tolist()
    # Row 7 is missing: it is as the last.
    assert numbers[:9] == [0.0, 37.0, 14.0, 51.0, 28.0, 5.0, 42.0, 42.0, 56.0]
    assert seen.values[:, seen.names.index("word = b")].tolist() == [0.0, 1.0, 0.0] * 20
    assert np.isfinite(seen.values).all()


def test_the_calendar_runs_round() -> None:
    hours = np.datetime64("2024-01-01T00", "h") + np.arange(24 * 40)
    found = calendar(hours)
    assert np.allclose(found["of day sin"][:24], np.sin(2 * np.pi * np.arange(24) / 24))
    assert found["weekend"].reshape(-1, 24)[:, 0].tolist() == ([0.0] * 5 + [1.0] * 2) * 5 + [0] * 5
    assert "of year sin" not in found


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["2024-01-31", "2024-02-01"], "2024-01-31"),
        (["2024-01-31T15:00:00Z", "2024-02-01T15:00:00Z"], "2024-01-31T15"),
        (["1/31/2024 0:10", "2/1/2024 0:20"], "2024-01-31T00:10"),
        (["31/1/2024", "1/2/2024"], "2024-01-31"),
        (["1/12/2024", "2/12/2024"], "2024-01-12"),
        (["3/12/2023", "3/1/2024"], "2023-03-12"),
        (["12/5/2023", "1/6/2023"], "2023-05-12"),
        (["31.1.2024 15:30", "1.2.2024 15:30"], "2024-01-31T15:30"),
    ],
)
def test_dates_are_read_as_people_write_them(
    tmp_path: Path, texts: list[str], first: str, table: Table
) -> None:
    rows = read(table(tmp_path / "a.csv", {"when": texts}))
    assert rows.times("when", "time")[0] == np.datetime64(first)


# Tune, demo, inspect


def test_the_demo_is_held_where_the_model_alone_is_not() -> None:
    found = jobs.demo()
    held = found.outcome.trace.summary()
    assert found.outcome.given is not None
    assert found.outcome.given.worst_window > 0.4
    assert held.worst_window < 0.1
    assert held.risk == found.outcome.trace.certificate().risks[0].mean
    assert found.outcome.trace.certificate().most_pending == 24


def test_the_stream_of_the_demo_can_be_calibrated(tmp_path: Path) -> None:
    made = jobs.demo().write(tmp_path, report=False)
    columns = sp.Columns("demand", lower="lower", upper="upper", time="time")
    found = jobs.calibrate(made["demand.csv"], columns)
    assert abs(found.trace.coverage - 0.9) < 0.01
    assert found.given is not None
    assert found.trace.summary().worst_window < found.given.worst_window / 3


def test_every_kind_of_saved_state_can_be_inspected(tmp_path: Path) -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-20, 20))
    controller = sp.Controller(sp.sets.Widen(), risk)
    fleet = sp.Fleet(controller, ["north", "south"])
    fleet.predict((np.zeros(2), np.ones(2)))
    fleet.update(np.array([2.0, 0.5]))
    fleet.save(tmp_path / "fleet.zip")
    with sp.Store(tmp_path / "store.sqlite", controller) as store:
        for name, y in (("north", 2.0), ("south", 0.5)):
            store.apply([{"stream": name, "id": "a", "prediction": [0.0, 1.0], "y": y}])
        before = sorted(p.name for p in tmp_path.iterdir())
        kinds = {name: jobs.inspect(tmp_path / name) for name in ("fleet.zip", "store.sqlite")}
        assert sorted(p.name for p in tmp_path.iterdir()) == before
        store.apply([{"stream": "south", "prediction": [0.0, 1.0]}])  # it is still the owner
    for name, found in kinds.items():
        assert found.kind == name.split(".")[0]
        assert {k: c.risks[0].mean for k, c in found.certificates.items()} == {
            "north": 1.0,
            "south": 0.0,
        }
        assert found.only("south").certificates["south"].risks[0].judged == 1
        with pytest.raises(InputError, match="no stream 'west'; there are 'north', 'south'"):
            found.only("west")


def test_groups_of_several_series_are_held_beside_features(
    tmp_path: Path, table: Table, world: World
) -> None:
    rows = np.arange(600)
    held = {**world(600), "shop": ["ab"[i % 2] for i in rows], "hour": (rows // 2 % 3).tolist()}
    path = table(tmp_path / "a.csv", held)
    columns = sp.Columns(
        "y", lower="low", upper="high", features=("hour",), series="shop", groups=("hour",)
    )
    found = jobs.calibrate(path, columns)
    trace = found.trace
    assert {name for each in trace.certificates for name in each.groups} == {
        "hour=0", "hour=1", "hour=2",
    }  # fmt: skip
    where = np.asarray(trace.tape.series) == "b"
    where &= np.asarray(trace.tape.extras["hour"]) == 1
    (own,) = trace.certificate("b").groups["hour=1"]
    assert own.judged == where.sum()
    assert own.coverage == pytest.approx(trace.covered[where].mean())
    assert own.excess <= 10.9
    assert "of 6 groups those nearest to their limit:" in str(found)
