"""Files whose labels come late: delays, horizons long and wide, times, seasons."""

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.errors import DataError, InputError

COUNT = 400


def made(seed: int = 0) -> dict[str, Any]:
    """Hourly forecasts with a few hours missing, whose errors have a season of a day."""
    rng = np.random.default_rng(seed)
    hours = np.flatnonzero(rng.random(COUNT) > 0.05)
    wave = np.sin(2.0 * np.pi * hours / 24)
    return {
        "time": np.datetime64("2024-01-01T00", "h") + hours,
        "low": wave - 1.0,
        "high": wave + 1.0,
        "load": wave + 3.0 * np.cos(2.0 * np.pi * hours / 24) + rng.normal(0.0, 0.3, len(hours)),
    }


def written(folder: Path, columns: dict[str, Any]) -> Path:
    path = folder / "load.csv"
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines))
    return path


def shown_live(columns: dict[str, Any], known: np.ndarray) -> np.ndarray:
    """The ends that a live stream shows, told each label before the row that `known` names."""
    stream, shown = sp.Stream(sp.intervals(0.9)), []
    for row in range(len(known)):
        for earlier in np.flatnonzero(known == row).tolist():
            stream.update(columns["load"][earlier], earlier)
        shown.append(stream.predict((columns["low"][row], columns["high"][row]), row))
    return np.array(shown)


def ends(outcome: Any) -> np.ndarray:
    return np.stack([outcome.trace.lower, outcome.trace.upper], axis=1)


def test_calibrate_under_a_delay_shows_what_a_live_stream_shows(tmp_path: Path) -> None:
    columns = made()
    path = written(tmp_path, columns)
    rows = np.arange(len(columns["load"]))
    for delay in (0, 24):
        outcome = jobs.calibrate(path, sp.Columns("load", "low", "high", delay=delay))
        assert np.array_equal(ends(outcome), shown_live(columns, rows + 1 + delay))
        assert outcome.trace.state.peak == delay + 1
        said = "before the next row" if not delay else "24 rows late"
        assert any(said in note for note in outcome.notes)
    assert "--delay 24" in (outcome.job.repeat or "")


def test_day_ahead_forecasts_of_real_demand_are_as_live(tmp_path: Path, shared_data: Path) -> None:
    """Every ten minutes; each row has the demand of a day and of a quarter of a day before."""
    with gzip.open(shared_data / "power" / "tetuan_power.csv.gz", "rt") as file:
        load = np.array([float(row["Zone 1 Power Consumption"]) for row in csv.DictReader(file)])
    last = np.arange(144, 3_000)
    columns = {"load": load[last], "h36": load[last - 36], "h144": load[last - 144]}
    path = written(tmp_path, columns)
    rows = np.arange(len(last))
    both = jobs.calibrate(path, sp.Columns("load", point="h*"))
    late = jobs.calibrate(path, sp.Columns("load", point="h144", delay=144))
    for h, known, lower in (
        (36, rows + 36, both.added["lower_h36"]),
        (144, rows + 144, both.added["lower_h144"]),
        (144, rows + 145, late.trace.lower),
    ):
        point = {"load": columns["load"], "low": columns[f"h{h}"], "high": columns[f"h{h}"]}
        assert np.array_equal(lower, shown_live(point, known)[:, 0])


def test_times_at_which_labels_became_known(tmp_path: Path) -> None:
    columns = made()
    wait = np.random.default_rng(1).integers(1, 40, len(columns["load"]))
    columns["told"] = columns["time"] + wait
    path = written(tmp_path, columns)
    outcome = jobs.calibrate(path, sp.Columns("load", "low", "high", known="told"))
    tape = outcome.trace.tape
    assert (tape.schedule.order[:-1] > tape.schedule.order[1:]).any()  # not in their order
    direct = sp.Tape.from_arrays(
        {"lower": columns["low"], "upper": columns["high"]}, columns["load"],
        time=columns["time"], known=columns["told"],
    )  # fmt: skip
    assert np.array_equal(outcome.trace.lower, sp.replay(sp.intervals(0.9), direct).lower)


def test_horizons_in_long_and_wide_files_are_the_same_series(tmp_path: Path) -> None:
    columns = made()
    rows = np.arange(len(columns["load"]))
    wide = {"time": columns["time"], "load": columns["load"]}
    for h in (1, 24):
        wide |= {f"low_h{h}": columns["low"] - h / 24, f"high_h{h}": columns["high"] + h / 24}
    outcome = jobs.calibrate(written(tmp_path, wide), sp.Columns("load", "low_h*", "high_h*"))
    assert list(outcome.trace.states) == [1, 24]
    for h in (1, 24):
        one = {**columns, "low": columns["low"] - h / 24, "high": columns["high"] + h / 24}
        alone = shown_live(one, rows + h)
        assert np.array_equal(outcome.added[f"lower_h{h}"], alone[:, 0])
    long = {
        "time": np.repeat(columns["time"], 2), "ahead": np.tile([1, 24], len(rows)),
        "load": np.repeat(columns["load"], 2),
        "low": np.stack([columns["low"] - h / 24 for h in (1, 24)], axis=1).ravel(),
        "high": np.stack([columns["high"] + h / 24 for h in (1, 24)], axis=1).ravel(),
    }  # fmt: skip
    path = written(tmp_path, long)
    same = jobs.calibrate(path, sp.Columns("load", "low", "high", horizon="ahead"))
    assert list(same.trace.states) == [1, 24]
    assert np.array_equal(same.added["lower"][1::2], outcome.added["lower_h24"])


def test_a_panel_of_several_horizons_has_names_from_the_file_to_the_live_stream(
    tmp_path: Path,
) -> None:
    columns = made()
    count = len(columns["load"])
    panel = {name: np.tile(np.repeat(values, 2), 2) for name, values in columns.items()}
    panel |= {"ahead": np.tile([1, 3], 2 * count), "site": np.repeat(["north", "south"], 2 * count)}
    path = written(tmp_path, panel)
    named = sp.Columns("load", "low", "high", series="site", horizon="ahead")
    outcome = jobs.calibrate(path, named)
    alone = shown_live(columns, np.arange(count) + 3)
    assert np.array_equal(outcome.added["lower"][2 * count + 1 :: 2], alone[:, 0])
    files = outcome.write(tmp_path / "out")
    assert "    south/3 " in str(outcome)
    page = files["report.html"].read_text(encoding="utf-8")
    assert all(f"<td>{site}/{h}</td>" in page for site in ("north", "south") for h in (1, 3))
    told = jobs.inspect(tmp_path / "out")
    assert told.only("south/3").certificates == {
        ("south", 3): outcome.trace.certificate(("south", 3))
    }
    with sp.Store(tmp_path / "live.sqlite") as store:
        assert jobs.hand_over(tmp_path / "out", store) == [
            "north/1",
            "north/3",
            "south/1",
            "south/3",
        ]


def test_gaps_do_not_shift_a_season(tmp_path: Path) -> None:
    path = written(tmp_path, made())
    known = jobs.calibrate(path, sp.Columns("load", "low", "high", period=24, delay=23))
    plain = jobs.calibrate(path, sp.Columns("load", "low", "high", delay=23))
    phases = dict(zip(known.trace.tape.names, known.trace.tape.prediction, strict=True))["phase"]
    assert phases[-1] == (made()["time"][-1] - made()["time"][0]).astype(int)
    later = slice(200, None)
    width = [float(np.mean(np.diff(ends(each))[later])) for each in (known, plain)]
    assert width[0] < 1.02 * width[1]  # which finds the season by itself


def test_forecasts_made_once_a_day_are_late_by_days(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    days, ahead = np.repeat(np.arange(60), 24), np.tile(np.arange(1, 25), 60)
    issued = np.datetime64("2024-01-01T00", "h") + 24 * days
    columns = {
        "issued": issued, "for": issued + ahead, "told": issued + ahead + 30, "h": ahead,
        "soon": issued + ahead + 1,
        "point": np.zeros(len(days)), "load": rng.normal(size=len(days)),
    }  # fmt: skip
    path = written(tmp_path, columns)

    def late(**options: Any) -> tuple[list[int], str]:
        outcome = jobs.calibrate(path, sp.Columns("load", point="point", **options))
        notes = " ".join(outcome.notes)
        return [state.peak - 1 for state in outcome.trace.states.values()], notes

    # Before the next day's forecast of an hour the label of today's is known.
    waits, notes = late(horizon="h", time="for")
    assert waits == [0] * 24
    assert "forecasts are made every 24 steps" in notes
    # Nothing in the file says how long a step is: one row.
    waits, notes = late(horizon="h", time="issued")
    assert waits == list(range(24))
    assert "h − 1 rows late; if not, give known" in notes
    # Published 30 hours after: 31 to 54 hours after the forecast, so two or three days.
    waits, notes = late(horizon="h", time="issued", known="told")
    assert waits == [1] * 18 + [2] * 6
    assert "made at its time in 'issued'" in notes
    _, notes = late(id="h", time="for", known="soon")
    assert "is 'for' when a forecast was made" in notes


def test_what_is_chosen_is_chosen_under_the_delay_and_from_labels_known_by_then(
    tmp_path: Path,
) -> None:
    columns = made()
    opened = sp.Controller(sp.sets.Widen(), sp.Risk(sp.losses.Miscoverage(), 0.1))
    options: dict[str, Any] = {"controller": opened}
    late = sp.Columns("load", "low", "high", delay=24)  # the burn-in has 50 rows
    first = jobs.calibrate(written(tmp_path, columns), late, **options)
    columns["load"][26:50] += 100.0  # what is not known when the burn-in ends
    second = jobs.calibrate(written(tmp_path, columns), late, **options)
    assert first.trace.controller == second.trace.controller
    columns["load"][25] += 100.0
    third = jobs.calibrate(written(tmp_path, columns), late, **options)
    assert third.trace.controller != first.trace.controller


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delay": -1}, "delay must be a whole number of at least 0, got -1"),
        ({"delay": 2, "known": "told"}, "leave out the delay"),
        ({"period": "day"}, "period must be a whole number"),
        ({"lower": "low_h*", "upper": "high_h*"}, "stands for columns with the horizon"),
        ({"horizon": "low"}, "horizon must hold whole numbers from 1"),
    ],
)
def test_wrong_times_are_refused_in_words(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    path = written(tmp_path, made())
    with pytest.raises((InputError, DataError), match=words):
        jobs.calibrate(path, sp.Columns("load", **{"lower": "low", "upper": "high", **options}))


def test_dates_at_which_labels_became_known_need_the_dates_of_the_forecasts(tmp_path: Path) -> None:
    columns = made()
    columns |= {"issued": columns["time"] - 24, "told": columns["time"] + 1}
    path = written(tmp_path, columns)
    with pytest.raises(InputError, match="name that column by time, such as 'time' or 'issued'"):
        jobs.calibrate(path, sp.Columns("load", "low", "high", known="told"))
