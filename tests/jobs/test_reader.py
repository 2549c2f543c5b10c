"""Files as people have them: each dialect gives the same tape as the plain file."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.errors import InputError
from setpoint.tape.rows import read

pa = pytest.importorskip("pyarrow")

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
    outcome = jobs.calibrate(
        tmp_path / "a.csv", sp.Columns(probabilities=("1.0", "2.0")), burn_in=0
    )
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


def test_a_prediction_is_of_one_kind() -> None:
    with pytest.raises(InputError, match="give one kind, got 2"):
        sp.Columns("y", lower="low", point="fc")
