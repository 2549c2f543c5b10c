"""New series begin with what others had learnt by then, in files and in adapters."""

import numpy as np
import pandas as pd
import pytest

import setpoint as sp
from setpoint.bulk.replay import OTHERS, starts
from setpoint.jobs import calibrate
from setpoint.models.horizons import Forecasts, Horizons

LENGTH, SERIES = 24, 120


def shops(seed: int = 0) -> pd.DataFrame:
    """Short series of unlike size, a new one each day, whose forecasts are too low."""
    rng = np.random.default_rng(seed)
    size = np.repeat(rng.lognormal(3.0, 1.5, SERIES), LENGTH)
    day = np.add.outer(np.arange(SERIES), np.arange(LENGTH)).ravel()
    y = size * (1.0 + 0.2 * rng.standard_t(4, size.size))
    names = np.repeat([f"shop {k}" for k in range(SERIES)], LENGTH)
    return pd.DataFrame({"shop": names, "day": day, "point": 0.8 * size, "y": y})


def early(covered: np.ndarray) -> float:
    """The coverage of rows 2 to 10 of the series that begin late enough to learn from others."""
    late = covered.reshape(SERIES, LENGTH)[OTHERS + LENGTH :]
    return float(late[:, 1:10].mean())


def test_short_series_in_a_file_are_covered_from_their_second_row_on() -> None:
    columns = sp.Columns("y", point="point", series="shop", time="day")
    outcome = calibrate(shops(), columns)
    tape = sp.Tape.from_frame(shops(), columns)
    assert early(sp.replay(sp.intervals(), tape).covered) < 0.83
    assert 0.85 < early(outcome.trace.covered) < 0.95
    assert any("begin with what the others had learnt" in note for note in outcome.notes)
    assert np.isfinite(outcome.trace.lower[-LENGTH:]).all()  # from the first row on
    assert all(certificate.risks[0].within for certificate in outcome.trace.certificates)
    assert outcome.taught > SERIES // 2


def test_a_start_knows_nothing_that_came_later() -> None:
    frame = shops()
    tape = sp.Tape.from_frame(frame, sp.Columns("y", point="point", series="shop", time="day"))
    begun = starts(sp.intervals(), tape)
    first = frame.groupby("shop")["day"].min()
    marks = sorted({first[name] for name in begun})
    assert marks[0] >= OTHERS
    for mark in (OTHERS, 2 * OTHERS):  # what comes from then on changes no earlier start
        changed = frame.assign(y=frame["y"].where(frame["day"] < mark, 1e6))
        other = starts(
            sp.intervals(),
            sp.Tape.from_frame(changed, sp.Columns("y", point="point", series="shop", time="day")),
        )
        for name, state in begun.items():
            if first[name] <= mark:
                assert (state.memory, state.table) == (other[name].memory, other[name].table)


@pytest.mark.parametrize("case", ["no times", "late", "few", "at once"])
def test_without_others_or_times_every_series_begins_alone(case: str) -> None:
    frame = shops()
    if case == "few":
        frame = frame[: OTHERS * LENGTH]
    if case == "at once":
        frame["day"] = np.tile(np.arange(LENGTH), SERIES)
    time = None if case == "no times" else "day"
    delay = 1 if case == "late" else None
    columns = sp.Columns("y", point="point", series="shop", time=time, delay=delay)
    assert starts(sp.intervals(), sp.Tape.from_frame(frame, columns)) == {}


def test_new_series_of_an_adapter_begin_with_what_others_of_their_horizon_learnt() -> None:
    rng, days, count = np.random.default_rng(0), 40, OTHERS + 5
    size = rng.lognormal(3.0, 1.5, count)
    made, name = (grid.ravel() for grid in np.meshgrid(np.arange(days), np.arange(count)))
    y = size[name] * (1.0 + 0.2 * rng.normal(size=name.size))
    past = Forecasts(name, np.ones_like(name), made, made + 1, size[name], size[name], y)
    intervals = Horizons([0.9])
    intervals.fit(past)
    one = np.ones(1)
    new = Forecasts(np.array([99]), np.array([1]), 50 * one, 51 * one, 7 * one, 7 * one, y[:1])
    lower, upper = intervals.predict(new)[0, :, 0]
    assert 0.2 < (upper - lower) / 2.0 / 7.0 < 0.6  # an error of 20 %, at 90 %
    far = new._replace(horizon=np.array([2]))
    assert np.isinf(intervals.predict(far)).all()  # nobody has learnt of this horizon
