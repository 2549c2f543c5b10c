"""Files as people have them: days and hours apart, repeated dates, patterns, other kinds."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.errors import DataError, InputError

pa = pytest.importorskip("pyarrow")

Table = Callable[[Path, dict[str, Any]], Path]
DAYS, HOURS = 12, 24
ROWS = DAYS * HOURS

_rng = np.random.default_rng(0)
_y = _rng.standard_normal(ROWS).round(3).tolist()
DATES = [f"2026-03-{1 + row // HOURS:02d}" for row in range(ROWS)]
BASE = {"date": DATES, "p": [0.0] * ROWS, "y": _y}
STAMPS = np.datetime64("2026-03-01T00", "h") + np.arange(ROWS)


@pytest.mark.parametrize("clock", ["hour", "text"])
def test_days_and_hours_in_two_columns_are_one_time(
    tmp_path: Path, table: Table, clock: str
) -> None:
    hours = [row % HOURS for row in range(ROWS)]
    column = hours if clock == "hour" else [f"{hour:02d}:00" for hour in hours]
    shuffled = _rng.permutation(ROWS)
    rows = {**BASE, "hour": column}
    file = table(tmp_path / "two.csv", {n: [c[i] for i in shuffled] for n, c in rows.items()})
    outcome = jobs.calibrate(file, sp.Columns("y", point="p", time="date,hour"))
    times = np.asarray(outcome.trace.tape.time)
    np.testing.assert_array_equal(times, STAMPS.astype(times.dtype))
    assert outcome.trace.tape.y.tolist() == _y


@pytest.mark.parametrize(
    ("hours", "time", "said"),
    [
        ([25] * ROWS, "date,hour", "or from 0000 to 2400, second, and 'hour' .* 25 in line 2"),
        (["noon"] * ROWS, "date,hour", "holds 'noon' in line 2 .*: write them like 15 or 15:00"),
        ([1] * ROWS, "hour,date", "a column of dates first, and 'hour' .* holds numbers"),
        ([1] * ROWS, "date,our", "no column 'our' for time"),
    ],
)
def test_days_and_hours_that_will_not_do_are_refused(
    tmp_path: Path, table: Table, hours: list[Any], time: str, said: str
) -> None:
    file = table(tmp_path / "two.csv", {**BASE, "hour": hours})
    with pytest.raises(DataError, match=said):
        jobs.calibrate(file, sp.Columns("y", point="p", time=time))


@pytest.mark.parametrize(
    ("name", "values", "hint"),
    [
        ("site", [f"s{row % HOURS}" for row in range(ROWS)], "'site' tells series apart.* series"),
        (
            "hour",
            [row % HOURS for row in range(ROWS)],
            "'date' and 'hour' are read as one time",
        ),
    ],
)
def test_what_tells_rows_of_one_date_apart_is_suggested(
    tmp_path: Path, table: Table, name: str, values: list[Any], hint: str
) -> None:
    file = table(tmp_path / "a.csv", {**BASE, name: values})
    notes = " ".join(jobs.calibrate(file, sp.Columns("y", point="p")).notes)
    assert re.search(hint, notes)
    named = {"series": name} if name == "site" else {"time": "date,hour"}
    notes = " ".join(jobs.calibrate(file, sp.Columns("y", point="p", **named)).notes)
    assert "tells series apart" not in notes


def test_a_column_that_does_not_tell_them_apart_is_not_suggested(
    tmp_path: Path, table: Table
) -> None:
    words = ["a" if row % 3 else "b" for row in range(ROWS)]
    file = table(tmp_path / "a.csv", {**BASE, "word": words})
    notes = " ".join(jobs.calibrate(file, sp.Columns("y", point="p")).notes)
    assert "tells series apart" not in notes


def test_probabilities_may_be_a_pattern(tmp_path: Path, table: Table) -> None:
    p = _rng.dirichlet([1.0, 1.0, 1.0], ROWS)
    labels = [("cat", "dog", "owl")[int(_rng.choice(3, p=row))] for row in p]
    columns = {f"p_{name}": p[:, i].tolist() for i, name in enumerate(("cat", "dog", "owl"))}
    file = table(tmp_path / "a.csv", {**columns, "y": labels})
    named = jobs.calibrate(file, sp.Columns("y", probabilities=("p_cat", "p_dog", "p_owl")))
    pattern = jobs.calibrate(file, sp.Columns("y", probabilities=("p_*",)))
    assert pattern.trace.shown == named.trace.shown
    assert pattern.job.as_dict() == named.job.as_dict()
    with pytest.raises(DataError, match=r"'q_\*' stands for .* has none; its columns are 'p_cat'"):
        jobs.calibrate(file, sp.Columns("y", probabilities=("q_*",)))
    with pytest.raises(InputError, match="two classes or more, got 'p_cat' alone"):
        sp.Columns("y", probabilities=("p_cat",))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.xlsx", "a.xlsx is a spreadsheet: save its sheet as CSV"),
        ("a.json", "call the file .jsonl"),
        ("a.doc", "a file of rows ends in .csv"),
    ],
)
def test_another_kind_of_file_is_refused_with_what_to_do(name: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        jobs.calibrate(name, sp.Columns("y", point="p"))


def test_rows_come_from_standard_input(
    tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = sp.Columns("y", point="p")
    file = table(tmp_path / "a.csv", BASE)
    wanted = jobs.calibrate(file, columns)
    with file.open() as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        outcome = jobs.calibrate("-", columns)
    np.testing.assert_array_equal(outcome.trace.upper, wanted.trace.upper)
    with pytest.raises(InputError, match="needs a folder to write to: name it by out"):
        outcome.write()
    written = outcome.write(tmp_path / "out", report=False)
    same = wanted.write(tmp_path / "same", report=False)
    assert written["rows.csv"].read_text() == same["rows.csv"].read_text()
    odd = tmp_path / "odd.csv"
    odd.write_text("p,y\n1,2\nx,2\n")
    with odd.open() as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        with pytest.raises(DataError, match="of standard input holds 'x' in row 2"):
            jobs.calibrate("-", columns)


def test_a_mistyped_option_is_refused_before_anything_heavy_is_loaded() -> None:
    pytest.importorskip("typer")
    script = (
        "import sys; sys.argv = ['setpoint', 'calibrate', 'a.csv', '--tagret', 'y']\n"
        "import setpoint.cli\n"
        "try:\n    setpoint.cli.main()\n"
        "except SystemExit as end:\n    print(end.code, bool({'pyarrow', 'numba'} & "
        "{*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["2", "False"]
    assert "target" in done.stderr


def test_many_short_series_are_told_of_a_start_learnt_from_others(
    tmp_path: Path, table: Table
) -> None:
    count, rows = 12, 20
    y = np.random.default_rng(0).normal(size=count * rows)
    series = np.repeat(np.arange(count), rows)
    file = table(tmp_path / "a.csv", {"low": y * 0 - 1, "high": y * 0 + 1, "y": y, "id": series})
    short = jobs.calibrate(file, sp.Columns("y", "low", "high", series="id"))
    note = "half of the series have 20 rows or fewer: setpoint.start_from lets new series begin"
    assert note in str(short)
    begun = sp.start_from(short.trace.controller, short.trace.states)
    for columns, options in (
        (sp.Columns("y", "low", "high"), {}),
        (sp.Columns("y", point="low", series="id"), {}),
        (sp.Columns("y", "low", "high", series="id"), {"controller": begun}),
    ):
        assert "start_from" not in str(jobs.calibrate(file, columns, **options))


def test_numbers_too_small_to_square_are_forecast(tmp_path: Path, table: Table) -> None:
    y = _rng.choice([0.0, 5e-324, 1e-323], ROWS)
    ahead = sp.forecast(table(tmp_path / "a.csv", {"x": y[::-1], "y": y}), "y", model="linear")
    assert np.isfinite(ahead.to_frame()["point"]).all()


def test_an_outcome_is_one_line_where_it_is_not_printed(tmp_path: Path, table: Table) -> None:
    outcome = jobs.calibrate(table(tmp_path / "a.csv", BASE), sp.Columns("y", point="p"))
    assert re.fullmatch(r"<Outcome of calibrate: 288 rows, coverage [\d.]+ %>", repr(outcome))


def test_the_index_of_a_frame_may_be_the_time_of_a_tape() -> None:
    pandas = pytest.importorskip("pandas")
    times = pandas.date_range("2024-01-01", periods=3, name="when")
    frame = pandas.DataFrame({"p": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0]}, times)
    tape = sp.Tape.from_frame(frame, sp.Columns("y", point="p", time="when"))
    assert tape.time is not None
    assert str(tape.time[2])[:10] == "2024-01-03"
