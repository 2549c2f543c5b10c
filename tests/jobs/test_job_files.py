"""What files hold that is neither a plain number nor a plain date: kept, or read and told of."""

import csv
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.errors import InputError
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


# What comes out as it went in


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
    made = found.write(tmp_path / "out", report=False, suffix=".parquet")
    kinds = {field.name: str(field.type) for field in read(made["rows.parquet"]).table.schema}
    assert (kinds["time"], kinds["day"], kinds["code"]) == ("timestamp[us]",) * 2 + ("string",)


ODD = {
    "list": ([[1.5, float("nan")]], "[1.5, null]", [1.5, None]),
    "object": ([{"at": datetime(2024, 1, 1)}], '{"at": "2024-01-01T00:00:00"}',
               {"at": "2024-01-01T00:00:00"}),
    "far": ([[float("-inf")]], "[null]", [None]),
}  # fmt: skip
"""Cells of Parquet, as they stand in a CSV and in JSON."""


def test_what_a_kind_of_file_cannot_hold_is_written_in_words(tmp_path: Path, world: World) -> None:
    columns = {name: pa.array(cell * 60) for name, (cell, _, _) in ODD.items()}
    columns["wait"] = pa.array([timedelta(minutes=1.5)] * 60)
    columns["price"] = pa.array([Decimal("1.50")] * 60)
    columns["day"] = pa.array([date(2024, 1, 31)] * 60)
    path = write(pa.table({**world(60), **columns}), tmp_path / "a.parquet")
    found = jobs.calibrate(path, ENDS)
    made = found.write(tmp_path / "csv", report=False, suffix=".csv")
    row = rows_of(made["rows.csv"])[59]
    for name in ODD:
        assert row[name] == ODD[name][1]
    assert (row["price"], row["day"]) == ("1.50", "2024-01-31")
    made = found.write(tmp_path / "json", report=False, suffix=".jsonl")
    row = json.loads(made["rows.jsonl"].read_text().splitlines()[59])
    for name in ODD:
        assert row[name] == ODD[name][2]
    assert (row["price"], row["day"]) == (1.5, "2024-01-31")
    made = found.write(tmp_path / "same", report=False)
    again = read(made["rows.parquet"]).table
    assert again["wait"].to_pylist() == [timedelta(minutes=1.5)] * 60


def test_an_object_without_fields_goes_into_parquet_as_text(tmp_path: Path, world: World) -> None:
    table = pa.table({**world(60), "nothing": pa.array([{}] * 60)})
    found = jobs.calibrate(write(table, tmp_path / "a.jsonl"), ENDS)
    made = found.write(tmp_path / "out", report=False, suffix=".parquet")
    assert read(made["rows.parquet"]).table["nothing"].to_pylist() == ["{}"] * 60


# Decimal commas


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
    made = found.write(tmp_path / "out", report=False, suffix=".parquet")
    assert read(made["rows.parquet"]).table["low"].to_pylist() == held["low"]


def test_commas_between_thousands_are_no_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("low;high;y\n" + "8.7;11.3;1,013\n9.4;12.1;987\n" * 50)
    with pytest.raises(InputError, match=r"'1,013' in line 2 .*without signs between the thousa"):
        jobs.calibrate(path, ENDS)
    path.write_text("low;high;y\n" + "8.7;11.3;0,125\n9.4;12.1;1,013\n" * 50)
    assert read(path).numbers("y", "target")[:2].tolist() == [0.125, 1.013]
    path.write_text("low;high;y\n" + "8;11;1,013\n9;12;1,125\n" * 50)
    assert read(path).numbers("y", "target")[:2].tolist() == [1.013, 1.125]


# Classes


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


# Dates


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
    assert found.notes[0].startswith("no time was named or found: the rows are taken in the order")
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


def test_whole_numbers_of_any_size_are_features(tmp_path: Path, world: World) -> None:
    held = pa.table({**world(100), "big": [2**60 + i for i in range(100)]})
    found = sp.forecast(write(held, tmp_path / "a.parquet"), "y", model="last", features=["big"])
    assert found.uses["features"] == ["big"]


def test_the_only_column_of_dates_is_the_time(tmp_path: Path, table: Table, world: World) -> None:
    held = {**world(300), "when": [str(t) for t in moments("1h", 300)]}
    straight = jobs.calibrate(table(tmp_path / "a.csv", held), ENDS)
    order = np.random.default_rng(0).permutation(300)
    mixed = {name: [column[i] for i in order] for name, column in held.items()}
    path = table(tmp_path / "b.csv", mixed)
    found = jobs.calibrate(path, ENDS)
    assert found.trace.lower.tolist() == straight.trace.lower.tolist()
    assert any("not in the order of 'when'" in note for note in found.notes)
    assert "--time when" in found.repeat
    two = table(tmp_path / "c.csv", {**mixed, "made": mixed["when"]})
    found = jobs.calibrate(two, ENDS)
    assert found.trace.tape.time is None
    assert any("order of the file; time takes 'when' or 'made'" in n for n in found.notes)


# Results


def test_ends_that_are_the_wrong_way_round_are_asked_about(
    tmp_path: Path, table: Table, world: World
) -> None:
    path = table(tmp_path / "a.csv", world(200))
    found = jobs.calibrate(path, sp.Columns("y", lower="high", upper="low"))
    assert any("200 rows had crossed ends, 'high' above 'low'" in note for note in found.notes)
    assert not any("crossed" in note for note in jobs.calibrate(path, ENDS).notes)


def test_a_short_stream_is_promised_nothing_by_the_papers_rule(
    tmp_path: Path, table: Table, world: World
) -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-9.0, 9.0))
    paper = sp.Controller(sp.sets.Widen(), risk)
    text = str(jobs.calibrate(table(tmp_path / "a.csv", world(20)), ENDS, controller=paper))
    assert "was asked for. Nothing is guaranteed yet: there are too few actual values" in text
    assert "Worst 20 labels: coverage off by" in text
    text = str(jobs.calibrate(table(tmp_path / "a.csv", world(2000)), ENDS, controller=paper))
    assert "That is within the guarantee" in text
    assert "Worst 250 labels: coverage off by" in text


def test_a_budget_is_promised_in_misses_from_the_first_label_on(
    tmp_path: Path, table: Table, world: World
) -> None:
    text = str(jobs.calibrate(table(tmp_path / "a.csv", world(20)), ENDS))
    assert "90 % was asked for. At no time can there be more than 10.9 misses beyond" in text
    columns = {**world(20), "site": ["a", "b"] * 10}
    several = sp.Columns("y", lower="low", upper="high", series="site")
    text = str(jobs.calibrate(table(tmp_path / "a.csv", columns), several))
    assert "more than 10.9 misses beyond the 10 % allowed in any one series" in text


def test_results_do_not_go_into_the_folder_of_a_stream(
    tmp_path: Path, table: Table, world: World
) -> None:
    found = jobs.calibrate(table(tmp_path / "a.csv", world(100)), ENDS)
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "streams.sqlite").write_text("")
    with pytest.raises(InputError, match=r"holds the state of `setpoint stream`.*name another"):
        found.write(folder, report=False)
    assert len(list(folder.iterdir())) == 1
