"""No silent flattery: what is said of a file was tried on it first."""

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.metrics import Use, coverage_by_width, usefulness

pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

ROWS = 1500


def frame(point: np.ndarray, y: np.ndarray) -> object:
    import pandas

    times = pandas.date_range("2024-01-01", periods=len(y), freq="h")
    return pandas.DataFrame({"when": times, "fc": point, "load": y})


def ahead(horizon: int) -> object:
    """A random walk, and the forecast that is the last value known so many steps before."""
    y = np.cumsum(np.random.default_rng(0).normal(size=ROWS + horizon))
    return frame(y[:-horizon], y[horizon:])


def test_forecasts_of_a_day_ahead_taken_as_one_step_are_warned_of_on_the_second_line() -> None:
    outcome = jobs.calibrate(ahead(24), sp.Columns("load", point="fc"))
    second = str(outcome).splitlines()[1]
    assert second.startswith("warning: errors of neighbouring rows go together (correlation 0.9")
    assert outcome.metrics()["warning"] is not None
    words = second.split()
    delay = int(words[words.index("delay") + 1])
    assert 10 <= delay <= 40
    named = jobs.calibrate(ahead(24), sp.Columns("load", point="fc", delay=delay))
    wider = np.median(named.trace.upper - named.trace.lower)
    plain = np.median((outcome.trace.upper - outcome.trace.lower)[5:])
    assert f"{wider / plain:.2g} times as wide" in second
    assert wider / plain > 2.0
    assert named.warning is None


@pytest.mark.parametrize("delay", [None, 0])
def test_one_step_forecasts_and_a_delay_that_was_named_are_not_warned_of(delay: int | None) -> None:
    columns = sp.Columns("load", point="fc", delay=delay)
    assert jobs.calibrate(ahead(1 if delay is None else 24), columns).warning is None


def test_a_limit_that_intervals_ignore_is_named_with_what_it_saves() -> None:
    random = np.random.default_rng(1)
    y = np.exp(random.normal(size=ROWS))
    given = frame(np.full(ROWS, 1.5), y)
    outcome = jobs.calibrate(given, sp.Columns("load", point="fc"))
    (note,) = [note for note in outcome.notes if "no actual value is below 0" in note]
    assert "support 0,inf would make intervals" in note
    cut = jobs.calibrate(given, sp.Columns("load", point="fc"), support=(0.0, np.inf))
    assert not any("no actual value is below 0" in note for note in cut.notes)


def test_a_period_is_only_advised_where_it_makes_the_score_better() -> None:
    random = np.random.default_rng(2)
    hours = np.arange(ROWS)
    noise = random.normal(size=ROWS)
    seasonal = frame(np.zeros(ROWS), 5.0 * np.sin(hours / 24 * 2 * np.pi) + noise)
    notes = " ".join(jobs.calibrate(seasonal, sp.Columns("load", point="fc", delay=0)).notes)
    assert "a season of 24 steps: period 24 would improve the interval score" in notes
    notes = " ".join(
        jobs.calibrate(frame(np.zeros(ROWS), noise), sp.Columns("load", point="fc")).notes
    )
    assert "season" not in notes


def test_useful_means_better_than_the_baseline_that_is_named() -> None:
    y = np.random.default_rng(3).normal(size=2000)
    for half, use in ((1.64, Use.USEFUL), (2.0, Use.EVEN), (3.0, Use.POOR)):
        verdict = usefulness(np.full(2000, -half), np.full(2000, half), y, np.zeros(2000))
        assert (verdict.score <= 1.005) == (use is Use.USEFUL)
        assert verdict.use is use


def test_narrow_intervals_that_hold_less_are_told_of_with_both_shares() -> None:
    rng = np.random.default_rng(0)
    size = rng.choice([1.0, 3.0], ROWS)  # the forecast knows it, and makes too much of it
    y = size * rng.normal(size=ROWS)
    uneven = sp.Controller(
        sp.sets.Widen(), sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.02), bounds=(-9, 9))
    )
    ends = {"low": -(size**2) * 0.8, "high": size**2 * 0.8, "y": y}
    columns = sp.Columns("y", lower="low", upper="high")
    import pandas

    outcome = jobs.calibrate(pandas.DataFrame(ends), columns, controller=uneven)
    trace = outcome.trace
    told = coverage_by_width(trace.lower, trace.upper, y)
    order = np.argsort(trace.upper - trace.lower, kind="stable")
    assert told.tolist() == [trace.covered[part].mean() for part in np.array_split(order, 5)]
    summary = trace.summary()
    assert [summary.narrow_coverage, summary.wide_coverage] == [told[0], told[-1]]
    (row,) = [line for line in str(outcome).splitlines() if "narrowest fifth" in line]
    assert f"{100 * told[0]:.2f} %" in row


def test_widths_of_several_series_count_as_shares_of_their_own_mean() -> None:
    lower, upper = np.zeros(4), np.array([1.0, 3.0, 100.0, 300.0])
    told = coverage_by_width(lower, upper, [2.0, 2.0, 200.0, 200.0], 2, [0, 2, 4])
    assert told.tolist() == [0.0, 1.0]
    empty = coverage_by_width([0.0], [np.inf], [1.0])
    assert np.isnan(empty).all()
