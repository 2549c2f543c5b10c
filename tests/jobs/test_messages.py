"""What a file or an option that will not do is answered by: one sentence, with the line."""

import gzip
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.errors import DataError, InputError, PredictionError, SpecError
from setpoint.jobs.job import Config, Job, check_work
from setpoint.tape.files import write
from setpoint.tape.rows import read

pa = pytest.importorskip("pyarrow")

Table = Callable[[Path, dict[str, Any]], Path]
World = Callable[..., dict[str, Any]]

ENDS = sp.Columns("y", lower="low", upper="high")
TIMED = sp.Columns("y", point="low", time="when")


@pytest.mark.parametrize(
    ("change", "columns", "said"),
    [
        ({}, sp.Columns("z", point="low"), "no column 'z' for target; it has 'low', 'high'"),
        ({}, sp.Columns("Y", point="low"), "did you mean 'y'?"),
        ({}, sp.Columns("y", point="lov"), "no column 'lov' for point; .* mean 'low'"),
        (
            {f"lag {i}": [0.0] * 60 for i in range(40)},
            sp.Columns("y", point="lag  39"),
            "'lag 11', … and 28 more; did you mean 'lag 39'?",
        ),
        ({"y": ["a"] * 60}, ENDS, "target must name a column of numbers.* holds 'a' in line 2"),
        ({"y": ["a"] * 60}, ENDS, "`calibrate` takes the probabilities of a classifier"),
        ({"y": ["10,262.00"] * 60}, ENDS, "'10,262.00' .*without signs between the thousands"),
        ({"low": ["0,5"] * 60}, ENDS, "'0,5' in line 2 .*: write numbers .* point, like 0.5"),
        ({"low": [1.0] * 59 + [""]}, ENDS, "every row needs a prediction.* in line 61"),
        ({"y": [1.0] * 59 + ["inf"]}, ENDS, "must be finite, and 'y' .* holds inf in line 61"),
        ({"y": [""] * 60}, ENDS, "target needs labels, and 'y' .* is empty in all 60 rows"),
        (
            {"low": ["-inf"] * 60},
            ENDS,
            "line 2 .*: a prediction must lie within ±1e150",
        ),
        (
            {"when": ["1/31/2024 0:00"] * 30 + ["32/31/2024 0:00"] * 30},
            TIMED,
            r"holds '32/31/2024 0:00' in line 32 \(the header is line 1\)",
        ),
        (
            {"when": ["2024-01-01"] * 59 + ["soon"]},
            TIMED,
            "column of dates or numbers, and 'when' .* holds 'soon' in line 61 .*write dates like",
        ),
        ({"when": ["2024-01-01"] * 59 + [""]}, TIMED, "'when' .* has none in line 61"),
        ({"when": ["2024-01-01T10:00Z"] * 59 + ["1"]}, TIMED, "holds '1' in line 61"),
        ({"when": ["2024-02-28"] * 59 + ["2024-02-30"]}, TIMED, "holds '2024-02-30' in line 61"),
        (
            {"when": ["2024-02-28 10:00:00.5"] * 7 + ["2024-02-30 10:00:00.5"] * 53},
            TIMED,
            "holds '2024-02-30 10:00:00.5' in line 9",
        ),
    ],
)
def test_a_file_that_will_not_do_is_refused_in_a_sentence(
    tmp_path: Path,
    table: Table,
    world: World,
    change: dict[str, Any],
    columns: sp.Columns,
    said: str,
) -> None:
    path = table(tmp_path / "a.csv", {**world(60), **change})
    with pytest.raises((DataError, InputError), match=said):
        jobs.calibrate(path, columns)


def test_the_line_is_the_one_that_an_editor_shows(tmp_path: Path) -> None:
    """Blank lines count, and line breaks within cells; the row that is wrong is the third."""
    path = tmp_path / "a.csv"
    text = 'y,note\n1,"two\nlines"\n\n2,one\nbad,here\n'
    path.write_text(text)
    line = text.split("\n").index("bad,here") + 1
    with pytest.raises(DataError, match=rf"'bad' in line {line} \(the header is line 1\)"):
        read(path).numbers("y", "target")
    packed = tmp_path / "b.csv.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert read(packed).place(2).startswith(f"line {line} ")
    lines = tmp_path / "c.jsonl"
    lines.write_text('{"y": 1}\n\n{"y": 2}\n{"y": "bad"}\n'.replace('"bad"', "null"))
    assert read(lines).place(2) == "line 4"
    rows = write(pa.table({"y": [1, 2, 3]}), tmp_path / "d.parquet")
    assert read(rows).place(2) == "row 3"


def test_a_label_outside_the_support_is_named_by_its_line(
    tmp_path: Path, table: Table, world: World
) -> None:
    held = {**world(200), "when": [str(np.datetime64("2024-01-01") - i) for i in range(200)]}
    held["y"] = [1.0] * 150 + [-2.5] + [1.0] * 49
    path = table(tmp_path / "a.csv", held)
    columns = sp.Columns("y", lower="low", upper="high", time="when")
    with pytest.raises(DataError, match=r"from 0 to inf, and .* has -2.5 in line 152"):
        jobs.calibrate(path, columns, support=(0.0, np.inf))


def test_classes_and_probabilities_that_will_not_do_are_named_by_their_line(
    tmp_path: Path, table: Table
) -> None:
    columns = sp.Columns("y", probabilities=("a", "b"))
    held = {"a": [0.5] * 60, "b": [0.5] * 60, "y": ["a", "b"] * 30}
    path = table(tmp_path / "a.csv", {**held, "y": ["a"] * 59 + ["c"]})
    with pytest.raises(DataError, match=r"the classes a, b, and 'y' .* holds 'c' in line 61"):
        jobs.calibrate(path, columns)
    path = table(tmp_path / "b.csv", {**held, "b": [0.5] * 40 + [0.9] + [0.5] * 19})
    with pytest.raises(PredictionError, match=r"b.csv, line 42 .*: .* must sum to 1, got 1.4"):
        jobs.calibrate(path, columns)


def test_the_cell_that_keeps_a_column_from_being_dates_is_told(
    tmp_path: Path, table: Table, world: World
) -> None:
    days = [str(np.datetime64("2024-01-01") + i) for i in range(200)]
    for odd, said in (("soon", "'when' holds 'soon' in line 102"), ("", "'when' is empty in")):
        held = {**world(200), "when": [*days[:100], odd, *days[101:]]}
        found = sp.forecast(table(tmp_path / "a.csv", held), "y", model="last")
        assert any(said in note and "no column of dates" in note for note in found.notes)
        assert any("no time was named or found" in note for note in found.notes)
    held = {**world(200), "name": [f"w{i}" for i in range(200)]}
    found = sp.forecast(table(tmp_path / "a.csv", held), "y", model="last")
    assert any("'name' holds 200 different words" in note for note in found.notes)


@pytest.mark.parametrize(
    ("content", "suffix", "said"),
    [
        (b"", ".csv", "is empty: its first line must name the columns"),
        (b"a,b\n", ".csv", "is empty: it needs a row"),
        (b"", ".jsonl", "is empty: it needs a row"),
        (b"a,a\n1,2\n", ".csv", "names the column 'a' twice"),
        (b"a,b\n1,2\n\n1,2,3\n", ".csv", "line 4 has 3 cells and the header has 2: put cells"),
        (b"PAR1 no", ".parquet", "is damaged or no .parquet file"),
        (b'{"a": 1}\n{"a": 1, "a": 2}\n', ".jsonl", r"a\) was specified twice in row 1"),
        (b"[" * 100_000, ".jsonl", "line 1 is no JSON object .*: correct it or leave it out"),
        (b"{", ".jsonl", "line 1 is no JSON object .*: correct it or leave it out"),
        (b'{"a": 1}\n\n{"a": 2\n', ".jsonl", r"line 3 is no JSON object \(Expecting ',' delimiter"),
        (b'{"a": 1}\n[1]\n', ".jsonl", "line 2 is no JSON object: write one in each line"),
        (
            b'{"a": 1}\n{"a": null}\n{"a": 2.5}\n{"a": "x"}\n',
            ".jsonl",
            r"Column\(/a\) changed from number to string in row 3",
        ),
        (
            b'{"a": {"b": 1}}\n{"a": {"b": [1]}}\n',
            ".jsonl",
            r"Column\(/a/b\) changed from number to array",
        ),
        (b"a,b\n1,2\n", ".csv.gz", "is damaged or no .csv.gz file"),
        (b"a", ".txt", "a file of rows ends in .csv"),
        (b"a", ".xlsx", "is a spreadsheet: save its sheet as CSV"),
        (b"a", ".json", "call the file .jsonl"),
        (b'a;b\n1;"2\n3"\n1\n', ".csv", "line 4 has 1 cells and the header has 2"),
        (b"a,b\n1,\x81\n", ".csv", "neither UTF-8 nor Windows-1252 text: save it as UTF-8"),
    ],
)
def test_a_damaged_file_is_refused_in_a_sentence(
    tmp_path: Path, content: bytes, suffix: str, said: str
) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=said):
        read(path)


def test_a_controller_file_that_will_not_do_is_named(
    tmp_path: Path, table: Table, world: World
) -> None:
    path = table(tmp_path / "a.csv", world(60))
    for content, said in (
        (b"x = = 1\n", "c.toml: not TOML: Invalid value"),
        (b"nonsense = 1\n", "c.toml: .*nonsense"),
        (b"\xff\xfe", "c.toml is no file of TOML"),
        (None, "c.toml does not exist"),
    ):
        config = tmp_path / "c.toml"
        config.unlink(missing_ok=True)
        if content is not None:
            config.write_bytes(content)
        with pytest.raises(SpecError, match=said):
            jobs.calibrate(path, ENDS, controller=config)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Job("calibrate", coverage=5), "strictly between 0 and 1, got 5"),
        (lambda: Job("calibrate", support=(3.0, 1.0)), "support must have low < high"),
        (lambda: sp.Columns("y", lower="a", point="b"), "give one kind, got 2"),
        (lambda: sp.Columns("y", probabilities=("a",)), "two classes or more"),
    ],
)
def test_options_that_will_not_do_are_refused_in_a_sentence(make: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()


def test_results_are_not_written_where_a_file_is(
    tmp_path: Path, table: Table, world: World
) -> None:
    found = jobs.calibrate(table(tmp_path / "a.csv", world(100)), ENDS)
    (tmp_path / "out").write_text("mine")
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "streams.sqlite").write_text("mine")
    for name, said in (("out", "out is a file, and results need"), ("live", "holds the state of")):
        with pytest.raises(InputError, match=said):
            found.write(tmp_path / name, report=False)
    assert (tmp_path / "out").read_text() == "mine"
    assert len([*tmp_path.rglob("*")]) == 4


# Asked for what cannot be


def risk(loss: Any, level: float = 0.1) -> sp.Risk:
    return sp.Risk(loss, level, sp.steps.Fixed(0.1), bounds=(-20.0, 20.0))


MISSED = sp.losses.Miscoverage()


@pytest.mark.parametrize(
    ("sets", "risks", "said"),
    [
        (sp.sets.PixelScale(), risk(sp.losses.ImageMiscoverage()), "PixelScale is for images"),
    ],
)
def test_a_controller_that_cannot_do_the_work_is_refused_before_it_begins(
    tmp_path: Path, sets: Any, risks: Any, said: str
) -> None:
    controller = sp.Controller(sets, risks)
    with pytest.raises(InputError, match=said):
        jobs.calibrate(tmp_path / "nowhere.csv", ENDS, controller=controller)
    if "one set" not in said:
        with pytest.raises(InputError, match=said):
            check_work(controller, "stream")


def test_the_label_is_no_key_of_its_row(tmp_path: Path, table: Table, world: World) -> None:
    path = table(tmp_path / "a.csv", world(60))
    with pytest.raises(InputError, match=r"target and .* both name 'y'"):
        sp.forecast(path, "y", time="y")
    with pytest.raises(InputError, match=r"target and .* both name 'y'"):
        sp.Columns("y", point="low", series="y")


def test_a_burn_in_that_fills_a_controller_in_needs_labels(
    tmp_path: Path, table: Table, world: World
) -> None:
    chosen, held = sp.Controller(sp.sets.Widen(), sp.Risk(sp.losses.Miscoverage(), 0.1)), world(300)
    held["low"][:40], held["high"][:40] = ["-inf"] * 40, ["inf"] * 40
    path = table(tmp_path / "a.csv", held)
    assert jobs.calibrate(path, ENDS, controller=chosen).trace.coverage > 0.7
    few = table(tmp_path / "b.csv", {**world(60), "y": [""] * 25 + [1.0] * 35})
    said = "at least 10 rows with a label, and the first 30 rows of .*, up to line 31 .*, have 5"
    with pytest.raises(DataError, match=said):
        jobs.calibrate(few, ENDS, controller=chosen)
    assert jobs.calibrate(few, ENDS).trace.certificate().risks[0].judged == 35


def test_a_level_that_looks_like_coverage_is_doubted_wherever_it_is_said(tmp_path: Path) -> None:
    said = "level 0.9 allows 90 % misses; for 90 % coverage say coverage=0.9"
    toml, stream = tmp_path / "a.toml", sp.Stream(sp.intervals())
    ways: list[Callable[[], object]] = [
        lambda: sp.Risk(sp.losses.Miscoverage(), 0.9, sp.steps.Fixed(0.1)),
        lambda: sp.intervals(coverage=0.1),
        lambda: Job("calibrate", coverage=0.1),
        lambda: stream.change(level=0.9),
        lambda: Config.read(toml),
    ]
    low = sp.Risk(sp.losses.Miscoverage(), 0.2, sp.steps.Fixed(0.1), bounds=(-9.0, 9.0))
    text = sp.spec.to_toml(sp.Controller(sp.sets.Widen(), low))
    toml.write_text(text.replace("level = 0.2", "level = 0.9"))
    for way in ways:
        with pytest.warns(UserWarning, match=said) as warned:
            way()
        assert {warning.filename for warning in warned} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.change(level=0.2)
        size = sp.Risk(sp.losses.SetSize(), 0.9, sp.steps.Fixed(0.1))  # no miss rate, no word
        sp.Stream(sp.Controller(sp.sets.Threshold(), size)).change(level=0.8)


def test_what_classes_have_in_common_is_theirs_if_the_labels_have_it(
    tmp_path: Path, table: Table
) -> None:
    held = {"new_york": [0.3] * 60, "new_jersey": [0.7] * 60, "y": ["new_york", "new_jersey"] * 30}
    columns = sp.Columns("y", probabilities=("new_york", "new_jersey"))
    found = jobs.calibrate(table(tmp_path / "a.csv", held), columns)
    assert found.trace.controller.sets.classes == ("new_york", "new_jersey")  # type: ignore[attr-defined]
    held["y"] = ["york", "jersey"] * 30
    found = jobs.calibrate(table(tmp_path / "a.csv", held), columns)
    assert found.trace.controller.sets.classes == ("york", "jersey")  # type: ignore[attr-defined]


def test_an_interval_of_two_sides_is_told_of_as_a_whole(
    tmp_path: Path, table: Table, world: World
) -> None:
    """Each side misses a tenth, so the interval is to hold 80 % and not 90."""
    path = table(tmp_path / "a.csv", {**world(400), "y": [1e6] * 400})
    sides = sp.Controller(sp.sets.TwoSided(), (risk(MISSED), risk(MISSED)))
    text = str(jobs.calibrate(path, ENDS, controller=sides))
    assert "actual values lay inside their intervals; the target is 80 %. Nothing is" in text
    path = table(tmp_path / "b.csv", world(20_000))
    found = jobs.calibrate(path, ENDS, controller=sides)
    assert "the target is 80 %. That is within the guarantee" in str(found)
    path = table(tmp_path / "c.csv", world(400))
    text = str(jobs.calibrate(path, ENDS, coverage=(0.5, 0.8, 0.95)))
    assert "lay inside their intervals; the target is 95 %." in text


# Controllers that are for the predictions named, and the only word on the goal


def controller(family: object, level: float = 0.1) -> sp.Controller:
    risk = sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(0.1), bounds=(-20.0, 20.0))
    return sp.Controller(family, risk)


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    y = np.random.default_rng(0).normal(size=200)
    lines = [f"-1.0,1.0,0.0,{each:.3f}" for each in y]
    path = tmp_path / "numbers.csv"
    path.write_text("\n".join(["lo,hi,p,y", *lines]))
    return path


@pytest.mark.parametrize(
    ("family", "columns", "told"),
    [
        (sp.sets.Lower(), {"upper": "hi"}, "lower bounds alone.*upper bounds alone"),
        (sp.sets.Upper(), {"lower": "lo"}, "upper bounds alone.*lower bounds alone"),
        (sp.sets.Lower(), {"point": "p"}, "lower bounds alone.*both ends or a point"),
        (sp.sets.Widen(), {"lower": "lo"}, "both ends or a point.*lower bounds alone"),
    ],
)
def test_a_controller_of_another_side_is_refused(
    numbers: Path, family: object, columns: dict[str, str], told: str
) -> None:
    asked = sp.Columns("y", **columns)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=told):
        jobs.calibrate(numbers, asked, controller=controller(family))


def test_classes_in_another_order_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "classes.csv"
    path.write_text("\n".join(["p_cat,p_dog,y", *["0.7,0.3,cat", "0.2,0.8,dog"] * 50]))
    held = controller(sp.sets.Threshold(classes=("cat", "dog")))
    asked = sp.Columns("y", probabilities=("p_dog", "p_cat"))
    with pytest.raises(InputError, match=r"cat, dog in this order.*dog, cat"):
        jobs.calibrate(path, asked, controller=held)
    found = jobs.calibrate(path, sp.Columns("y", probabilities=("p_cat", "p_dog")), controller=held)
    assert found.trace.tape.y[:2].tolist() == [0.0, 1.0]


def test_a_goal_beside_a_controller_is_refused_and_the_job_tells_the_controllers(
    numbers: Path,
) -> None:
    columns, held = sp.Columns("y", lower="lo", upper="hi"), controller(sp.sets.Widen(), 0.2)
    with pytest.raises(
        InputError, match="coverage together with controller: the controller already says"
    ):
        jobs.calibrate(numbers, columns, 0.9, controller=held)
    with pytest.raises(InputError, match="coverage and support together with controller"):
        jobs.calibrate(numbers, columns, 0.9, support=(0.0, 1.0), controller=held)
    assert (
        jobs.calibrate(numbers, columns, controller=held).metrics()["job"]["goal"]["level"] == 0.2
    )
