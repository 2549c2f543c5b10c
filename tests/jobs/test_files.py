"""Files as people have them: each dialect and form of date gives the tape of the plain file."""

import csv
import datetime as dt
import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.errors import DataError, InputError
from setpoint.jobs.columns import labels_of
from setpoint.tape.files import write
from setpoint.tape.rows import read

pa = pytest.importorskip("pyarrow")


Table = Callable[[Path, dict[str, Any]], Path]
World = Callable[..., dict[str, Any]]
ENDS = sp.Columns("y", lower="low", upper="high")


def rows_of(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def test_json_lines_come_back_as_they_were(tmp_path: Path, world: World) -> None:
    held = world(120)
    given = [
        {
            **{name: held[name][i] for name in held},
            "time": f"2024-01-{1 + i // 24:02d} {i % 24:02d}:00:00",
            "day": "2024-01-31",
            "meta": {"at": "noon", "all": [1, 2], "none": {}},
            "code": "007",
        }
        for i in range(120)
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in given))
    found = jobs.calibrate(path, sp.Columns("y", lower="low", upper="high", time="time"))
    assert found.trace.tape.time is not None
    assert found.trace.tape.time[0] == np.datetime64("2024-01-01T00")
    made = found.write(tmp_path / "out", report=False)
    written = [json.loads(line) for line in made["rows.jsonl"].read_text().splitlines()]
    assert [{name: row[name] for name in given[0]} for row in written] == given


def test_decimal_commas_are_read_and_written(tmp_path: Path, world: World) -> None:
    held = world(200)
    lines = ["low;high;y;note"]
    for low, high, y in zip(*held.values(), strict=True):
        lines.append(";".join(str(v).replace(".", ",") for v in (low, high, y)) + ";a,b")
    lines[5] = lines[5].rsplit(";", 2)[0] + ";NA;a,b"
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines))
    found = jobs.calibrate(path, ENDS)
    y = np.array(held["y"])
    y[4] = np.nan
    later = len(found.trace.lam)
    assert np.array_equal(found.trace.tape.y, y, equal_nan=True)
    assert any("decimal commas" in note for note in found.notes)
    made = found.write(tmp_path / "out", report=False)
    written = rows_of(made["rows.csv"], ";")
    ends = [float(row["lower"].replace(",", ".")) for row in written]
    assert ends[-later:] == found.trace.lower.tolist()
    assert not any("." in row["lower"] for row in written)
    assert {row["note"] for row in written} == {"a,b"}
    assert written[3]["y"] == str(held["y"][3]).replace(".", ",")
    assert found.to_frame()["low"].tolist() == held["low"]


def test_commas_between_thousands_are_no_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("low;high;y\n" + "8.7;11.3;1,013\n9.4;12.1;987\n" * 50)
    with pytest.raises(InputError, match=r"'1,013' in line 2 .*without signs between the thousa"):
        jobs.calibrate(path, ENDS)
    path.write_text("low;high;y\n" + "8.7;11.3;0,125\n9.4;12.1;1,013\n" * 50)
    assert read(path).numbers("y", "target")[:2].tolist() == [0.125, 1.013]
    path.write_text("low;high;y\n" + "8;11;1,013\n9;12;1,125\n" * 50)
    assert read(path).numbers("y", "target")[:2].tolist() == [1.013, 1.125]


def test_words_for_nothing_are_no_classes(tmp_path: Path, table: Table) -> None:
    held = {"p_cat": [0.5] * 100, "p_dog": [0.5] * 100, "y": ["cat", "NA", "dog", "?"] * 25}
    columns = sp.Columns("y", probabilities=("p_cat", "p_dog"))
    rows = read(table(tmp_path / "a.csv", held))
    assert np.array_equal(labels_of(rows, columns)[:4], [0.0, np.nan, 1.0, np.nan], True)
    named = {"p_cat": held["p_cat"], "p_NA": held["p_dog"], "y": ["cat", "NA"] * 50}
    rows = read(table(tmp_path / "a.csv", named))
    columns = sp.Columns("y", probabilities=("p_cat", "p_NA"))
    assert labels_of(rows, columns)[:2].tolist() == [0.0, 1.0]
    rows = read(table(tmp_path / "a.csv", {**named, "y": ["cat", "owl"] * 50}))
    with pytest.raises(InputError, match=r"'owl' in line 3 .*: leave the cell empty where the"):
        labels_of(rows, columns)


def moments(step: str, count: int) -> list[datetime]:
    first = np.datetime64("2024-01-01T00:00")
    size, unit = int(step[:-1]), step[-1]
    return [(first + np.timedelta64(i * size, unit)).astype(datetime) for i in range(count)]


@pytest.mark.parametrize("order", [1, -1, 7])
@pytest.mark.parametrize(
    ("step", "count", "form", "said"),
    [
        ("15m", 500, "%d/%m/%Y %H:%M", "day first: '02/01/2024 00:00' is 2024-01-02"),
        ("15m", 500, "%m/%d/%Y %H:%M", "month first: '01/02/2024 00:00' is 2024-01-02"),
        ("1D", 12, "%d/%m/%Y", "day first"),
        ("15m", 500, "%m-%d-%Y %H:%M", "month first: '01-02-2024 00:00' is 2024-01-02"),
        ("15m", 500, "%d-%m-%Y %H:%M", "day first: '02-01-2024 00:00' is 2024-01-02"),
        ("15m", 500, "%d/%m/%y %H:%M", "day first: '02/01/24 00:00' is 2024-01-02"),
        ("15m", 500, "%m/%d/%y %I:%M %p", "month first: '01/02/24 12:00 AM' is 2024-01-02"),
        ("1D", 200, "%y-%m-%d", "year first"),
    ],
)
def test_dates_in_which_day_and_month_may_change_places_have_even_steps(
    tmp_path: Path, table: Table, step: str, count: int, form: str, said: str, order: int
) -> None:
    """Forward, backward, and shuffled by a stride that no count is a multiple of."""
    when = moments(step, count)
    rows = [when[i * order % count] for i in range(count)]
    found = read(table(tmp_path / "a.csv", {"when": [each.strftime(form) for each in rows]}))
    assert found.times("when", "time").astype("datetime64[s]").tolist() == rows
    assert said.split(":")[0] in (found.doubt("when") or "")
    if order == 1:
        assert said in (found.doubt("when") or "")


@pytest.mark.parametrize(
    "form",
    ["%d.%m.%y", "%m/%d/%Y %I:%M %p", "%m/%d/%Y %I:%M:%S %p", "%d-%b-%Y %H:%M", "%d-%b-%y",
     "%d %B %Y %H:%M:%S", "%m-%d-%Y"],
)  # fmt: skip
def test_ways_of_writing_dates(tmp_path: Path, table: Table, form: str) -> None:
    when = moments("1D", 400) if form.endswith(("y", "Y")) else moments("1h", 800)
    rows = read(table(tmp_path / "a.csv", {"when": [each.strftime(form) for each in when]}))
    assert rows.times("when", "time").astype("datetime64[s]").tolist() == when
    assert rows.doubt("when") is None


def test_days_that_do_not_exist_and_years_of_fewer_digits_than_two_are_no_dates(
    tmp_path: Path, table: Table
) -> None:
    for text in ("1.2.3", "1/2/3", "1-2-345", "1.2.0024", "30.02.2024"):
        rows = read(table(tmp_path / "a.csv", {"when": [text] * 3}))
        with pytest.raises(InputError, match="must name a column of dates"):
            rows.times("when", "time")


@pytest.mark.parametrize(
    ("cell", "said"), [("", "is empty in line 9 "), ("31.01.2024", "holds '31.01.2024' in line 9 ")]
)
def test_dates_that_are_not_understood_are_told_of(
    tmp_path: Path, table: Table, world: World, cell: str, said: str
) -> None:
    held = {**world(300), "when": [str(t) for t in moments("1h", 300)], "word": ["a", "b"] * 150}
    held["when"][7] = cell
    found = jobs.calibrate(table(tmp_path / "a.csv", held), ENDS)
    assert found.trace.tape.time is None
    assert found.notes[0].startswith("no time was named or found: the rows are read in the order")
    assert found.notes[1].startswith(f"'when' {said}")
    assert found.notes[1].endswith("is no column of dates")
    assert not any("'word'" in note for note in found.notes)


def test_times_of_a_zone_are_told_to_be_shown_in_utc(
    tmp_path: Path, table: Table, world: World
) -> None:
    when = moments("1h", 300)
    told = "'when' is read with its zone, and times are shown in UTC: '2024-01-01"
    held = {**world(300), "when": [f"{each.isoformat()}+02:00" for each in when]}
    found = jobs.calibrate(table(tmp_path / "a.csv", held), ENDS)
    assert f"{told}T00:00:00+02:00' is 2023-12-31 22:00" in found.notes
    for end in ("Z", "+00:00"):
        held["when"] = [each.isoformat() + end for each in when]
        (note,) = jobs.calibrate(table(tmp_path / "a.csv", held), ENDS).notes
        assert "known before the next row" in note
    for zone, said in (("+02:00", [f"{told} 02:00 +02:00' is 2024-01-01 00:00"]), ("UTC", [])):
        held["when"] = pa.array(when, pa.timestamp("us", tz=zone))
        path = write(pa.table(held), tmp_path / "a.parquet")
        assert list(jobs.calibrate(path, ENDS).notes)[:-1] == said


def test_dates_that_can_be_read_in_one_way_are_not_doubted(tmp_path: Path, table: Table) -> None:
    for texts in (["31/1/2024", "1/2/2024"], ["2024-02-01"], ["1/1/2024", "2/2/2024"], ["1", "2"]):
        rows = read(table(tmp_path / "a.csv", {"when": texts}))
        assert rows.doubt("when") is None


def test_the_reading_of_doubtful_dates_is_told(tmp_path: Path, table: Table, world: World) -> None:
    held = {**world(500), "when": [t.strftime("%d/%m/%Y %H:%M") for t in moments("15m", 500)]}
    found = jobs.calibrate(table(tmp_path / "a.csv", held), ENDS)
    assert any("'when' is read with the day first" in note for note in found.notes)
    assert "500 rows, 2024-01-01 00:00 to 2024-01-06 04:45" in str(found)


@pytest.mark.parametrize(
    ("step", "form", "said"),
    [
        ("1D", lambda t: f"{t:%Y%m%d}", "days like 20240131"),
        ("1h", lambda t: int(t.timestamp()), "seconds since 1970"),
        ("1h", lambda t: int(t.timestamp() * 1000), "milliseconds since 1970"),
        ("1h", lambda t: int(t.timestamp()) * 10**9, "nanoseconds since 1970"),
    ],
)
def test_numbers_that_are_moments_are_read_as_such(
    tmp_path: Path, table: Table, world: World, step: str, form: Any, said: str
) -> None:
    when = [each.replace(tzinfo=UTC) for each in moments(step, 200)]
    held = {**world(200), "when": [form(each) for each in when]}
    columns = sp.Columns("y", lower="low", upper="high", time="when")
    for suffix in (".csv", ".parquet"):
        path = write(pa.table(held), tmp_path / f"a{suffix}")
        found = jobs.calibrate(path, columns)
        assert found.trace.tape.time is not None
        assert found.trace.tape.time[-1] == np.datetime64(when[-1].replace(tzinfo=None))
        assert f"'when' is read as {said}" in found.notes
    found = sp.forecast(path, sp.Columns("y", time="when"), model="last")
    assert any(note.endswith("when") for note in found.notes)


def test_numbers_that_are_no_moments_are_printed_whole(
    tmp_path: Path, table: Table, world: World
) -> None:
    for first in (123_456_789, 20_240_131):  # the second runs past the end of a month
        held = {**world(200), "when": list(range(first, first + 200))}
        columns = sp.Columns("y", lower="low", upper="high", time="when")
        found = jobs.calibrate(table(tmp_path / "a.csv", held), columns)
        assert f"{first} to {first + 199}" in str(found)
        assert len(found.notes) == 1  # when labels are known


def test_the_only_column_of_dates_is_the_time(tmp_path: Path, table: Table, world: World) -> None:
    held = {**world(300), "when": [str(t) for t in moments("1h", 300)]}
    straight = jobs.calibrate(table(tmp_path / "a.csv", held), ENDS)
    order = np.random.default_rng(0).permutation(300)
    mixed = {name: [column[i] for i in order] for name, column in held.items()}
    path = table(tmp_path / "b.csv", mixed)
    found = jobs.calibrate(path, ENDS)
    assert found.trace.lower.tolist() == straight.trace.lower.tolist()
    assert any("not in the order of 'when'" in note for note in found.notes)
    assert "--time when" in found.job.repeat
    two = table(tmp_path / "c.csv", {**mixed, "made": mixed["when"]})
    found = jobs.calibrate(two, ENDS)
    assert found.trace.tape.time is None
    assert any("order of the file; time could be 'when' or 'made'" in n for n in found.notes)


def test_a_budget_is_promised_in_misses_from_the_first_label_on(
    tmp_path: Path, table: Table, world: World
) -> None:
    text = str(jobs.calibrate(table(tmp_path / "a.csv", world(20)), ENDS))
    assert "the target is 90 %. There can never be more than 10.9 misses beyond" in text
    columns = {**world(20), "site": ["a", "b"] * 10}
    several = sp.Columns("y", lower="low", upper="high", series="site")
    text = str(jobs.calibrate(table(tmp_path / "a.csv", columns), several))
    assert "more than 10.9 misses beyond the 10 % allowed in any one series" in text


POINT = sp.Columns("load", point="fc")
HOURS = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=row) for row in range(96)]
_random = np.random.default_rng(0)
LOAD = [f"{value:.2f}" for value in 50.0 + _random.normal(size=96)]
FORECAST = [f"{value:.2f}" for value in 50.0 + _random.normal(size=96)]


def lines(separator: str = ",", comma: bool = False, form: str = "%Y-%m-%d %H:%M") -> str:
    rows = [
        [when.strftime(form), forecast, load]
        for when, forecast, load in zip(HOURS, FORECAST, LOAD, strict=True)
    ]
    if comma:
        rows = [[when, *(cell.replace(".", ",") for cell in cells)] for when, *cells in rows]
    return "\n".join(separator.join(row) for row in [["when", "fc", "load"], *rows]) + "\n"


DIALECTS: dict[str, bytes] = {
    "semicolons and decimal commas": lines(";", comma=True).encode(),
    "tabs": lines("\t").encode(),
    "bars": lines("|").encode(),
    "a first line of sep": b"sep=;\r\n" + lines(";").replace("\n", "\r\n").encode(),
    "UTF-16 with tabs, Excel's Unicode text": lines("\t").encode("utf-16"),
    "a byte order mark": lines().encode("utf-8-sig"),
    "day first": lines(form="%d/%m/%Y %H:%M").encode(),
    "month first": lines(form="%m/%d/%Y %I:%M %p").encode(),
    "two digits of the year": lines(form="%d.%m.%y %H:%M").encode(),
    "months in words": lines(";", form="%b %d, %Y %H:%M").encode(),
    "midnight ends the day": lines().replace("2024-01-02 00:00", "2024-01-01 24:00").encode(),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_is_read_as_the_plain_file_by_jobs_and_tapes(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(DIALECTS[name])
    outcome = jobs.calibrate(path, POINT)
    tape = sp.Tape.read(path, sp.Columns("load", point="fc", time="when"))
    for read_tape in (outcome.trace.tape, tape):
        assert read_tape.time is not None
        assert read_tape.time.tolist() == HOURS
        assert read_tape.y.tolist() == [float(cell) for cell in LOAD]


def test_commas_in_names_do_not_separate(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Load, MW;Wind, m/s\n" + "1,5;2,5\n" * 30)
    assert read(path).names == ["Load, MW", "Wind, m/s"]
    assert read(path).numbers("Wind, m/s", "point").tolist() == [2.5] * 30


def test_a_western_file_of_excel_is_read_and_said_so(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(lines().replace("when", "Zeit für").encode("cp1252"))
    outcome = jobs.calibrate(path, POINT)
    assert "the file is not UTF-8 and is read as Windows-1252 text" in outcome.notes
    assert outcome.job.columns is not None
    assert outcome.job.columns.time == "Zeit für"


@pytest.mark.parametrize("form", ["ending", "HHMM", "clock"])
def test_a_date_and_its_hour_ending_are_one_time(tmp_path: Path, form: str) -> None:
    cells = {
        "ending": [row % 24 + 1 for row in range(96)],
        "HHMM": [f"{100 * (row % 24 + 1):04d}" for row in range(96)],
        "clock": [f"{row % 24 + 1}:00" for row in range(96)],
    }[form]
    rows = [
        f"{when:%m/%d/%Y},{cell},{forecast},{load}"
        for when, cell, forecast, load in zip(HOURS, cells, FORECAST, LOAD, strict=True)
    ]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["Date,Hour Ending,fc,load", *rows]))
    outcome = jobs.calibrate(path, POINT)
    hour = dt.timedelta(hours=1)
    assert outcome.trace.tape.time is not None
    assert outcome.trace.tape.time.tolist() == [when + hour for when in HOURS]
    assert "'Date' and 'Hour Ending' are read as one time" in outcome.notes
    assert not any("tells series apart" in note for note in outcome.notes)


def test_times_at_which_labels_were_known_may_be_empty(tmp_path: Path) -> None:
    known = [f"{when + dt.timedelta(hours=3):%Y-%m-%d %H:%M}" for when in HOURS[:-2]] + ["", ""]
    text = lines().replace("when,fc,load", "when,fc,load,told").splitlines()
    rows = [text[0], *(f"{line},{cell}" for line, cell in zip(text[1:], known, strict=True))]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    columns = sp.Columns("load", point="fc", time="when", known="told")
    outcome = jobs.calibrate(tmp_path / "a.csv", columns)
    assert outcome.trace.tape.known is not None
    assert np.isnat(outcome.trace.tape.known).tolist() == [False] * 94 + [True] * 2


def test_classes_that_end_in_point_zero_are_classes(tmp_path: Path) -> None:
    rows = ["1.0,2.0,y", *(["0.7,0.3,1.0", "0.4,0.6,2.0"] * 40)]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    outcome = jobs.calibrate(tmp_path / "a.csv", sp.Columns(probabilities=("1.0", "2.0")))
    assert outcome.trace.tape.y[:2].tolist() == [0.0, 1.0]


def test_a_zone_that_nobody_knows_is_read_in_utc(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    times = pa.array(HOURS, pa.timestamp("us")).cast(pa.timestamp("us", tz="Mars/Olympus"))
    columns = {"when": times, "fc": [1.0] * 96, "load": [2.0] * 96}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    outcome = jobs.calibrate(tmp_path / "a.parquet", POINT)
    assert any("its zone 'Mars/Olympus' is not known here" in note for note in outcome.notes)


def test_a_frame_comes_back_as_the_kind_it_was_with_its_index() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns: dict[str, Any] = {"fc": [float(c) for c in FORECAST], "load": [float(c) for c in LOAD]}
    frame = pandas.DataFrame(columns, index=pandas.DatetimeIndex(HOURS, name="when"))
    named = sp.Columns("load", point="fc", time="when")
    found = jobs.calibrate(frame, named).to_frame()
    assert found.index.equals(frame.index)
    assert list(found) == ["fc", "load", "lower", "upper", "covered", "burn_in"]
    given = polars.DataFrame({"when": HOURS, **columns})
    shown = jobs.calibrate(given, POINT).to_frame()
    assert isinstance(shown, polars.DataFrame)
    assert shown["upper"].to_list() == found["upper"].to_list()
    table = jobs.calibrate(given.to_arrow(), POINT).to_frame()
    assert isinstance(table, pa.Table)
    assert table["upper"].to_pylist() == found["upper"].to_list()


DAYS, A_DAY = 12, 24
ROWS = DAYS * A_DAY
_rng = np.random.default_rng(0)
_y = _rng.standard_normal(ROWS).round(3).tolist()
DATES = [f"2026-03-{1 + row // A_DAY:02d}" for row in range(ROWS)]
BASE = {"date": DATES, "p": [0.0] * ROWS, "y": _y}


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
        ("site", [f"s{row % A_DAY}" for row in range(ROWS)], "'site' tells series apart.* series"),
        (
            "hour",
            [row % A_DAY for row in range(ROWS)],
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
