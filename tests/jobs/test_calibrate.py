"""`calibrate`: what is read, chosen, held and written, against loops written out here."""

import csv
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.errors import InputError
from setpoint.jobs.model import calendar
from setpoint.jobs.model import features_of as find
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
    found = jobs.calibrate(path, ENDS, controller=opened)
    made = found.write(tmp_path / "out", report=False)
    written = rows_of(made["rows.csv"])
    controller = sp.spec.from_toml(made["controller.toml"].read_text("utf-8"))
    first = found.burn_in
    assert first == (120 if rule == "paper" else 0)
    for part, burnt in ((slice(0, first), "true"), (slice(first, 1200), "false")):
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


def test_the_demo_is_held_where_the_model_alone_is_not() -> None:
    found = jobs.demo()
    held = found.outcome.trace.summary()
    assert found.outcome.before is not None
    assert found.outcome.before.trace.summary().worst_window > 0.4
    assert held.worst_window < 0.1
    assert held.risk == found.outcome.trace.certificate().risks[0].mean
    assert found.outcome.trace.certificate().most_pending == 24


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


NAMES = ("cat", "dog", "owl", "yak")


def _world(size: int) -> dict[str, Sequence[Any]]:
    """A classifier that is far too sure of itself, and more so in some rows than in others."""
    random = np.random.default_rng(0)
    scores = random.normal(0.0, 1.0, (size, 4))
    truth = np.exp(scores)
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < random.random((size, 1))).sum(axis=1).clip(max=3)
    sure = np.exp(scores * random.choice([1.0, 6.0], (size, 1)))
    sure /= sure.sum(axis=1, keepdims=True)
    columns = {f"p_{name}": sure[:, place] for place, name in enumerate(NAMES)}
    return {**columns, "y": [NAMES[place] for place in y]}


def test_label_sets_of_a_file_are_those_of_the_preset_on_every_row(
    tmp_path: Path, table: Table
) -> None:
    world = _world(1500)
    columns = sp.Columns("y", probabilities=tuple(f"p_{name}" for name in NAMES))
    outcome = jobs.calibrate(table(tmp_path / "a.csv", world), columns)
    controller = sp.label_sets(0.9, sets=sp.sets.Threshold(classes=NAMES))
    assert outcome.trace.controller == controller
    stream = sp.Stream(controller)
    rows = np.array([world[f"p_{name}"] for name in NAMES]).T
    for row, y, shown in zip(rows, world["y"], outcome.trace.shown or (), strict=True):
        assert stream.predict(row) == shown
        stream.update(y)
    assert "Mean size" in str(outcome)
    assert "length" not in str(outcome)


ROWS = 300
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


def written(path: Path, columns: dict[str, Any]) -> Path:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(np.asarray(c).tolist() for c in columns.values()), strict=True))
    return path


def read_rows(path: Path) -> dict[str, list[str]]:
    with open(path, newline="", encoding="utf-8") as file:
        names, *lines = csv.reader(file)
    return dict(zip(names, map(list, zip(*lines, strict=True)), strict=True))


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
