"""One accumulator: the scalar rules in plain Python, compiled, and beside the table from arrays."""

import math

import numpy as np
import pytest

from setpoint import metrics
from setpoint.metrics.tally import NOTHING, Tally, count, derived, measure, measure_rows, tally_of

INF = math.inf


def _rows(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Intervals of every kind, some of them infinite, crossed or empty; some labels missing."""
    random = np.random.default_rng(size)
    lower = random.normal(-1.0, 1.0, size)
    upper = lower + random.normal(2.0, 1.0, size)
    y = random.normal(0.0, 1.0, size)
    for step, (low, high) in enumerate([(-INF, INF), (INF, -INF), (INF, INF), (0.0, INF)]):
        lower[step::29], upper[step::29] = low, high
    y[::7] = np.nan
    return lower, upper, y


def _tallied(lower: np.ndarray, upper: np.ndarray, y: np.ndarray, tally: Tally) -> Tally:
    for step in range(len(y)):
        lo, hi, label = lower[step], upper[step], y[step]
        if label == label:
            length, is_whole, is_nothing, near, apart = measure(lo, hi, label, -INF, INF)
            missed = not ((lo <= label) & (label <= hi))
            tally = count(tally, length, is_whole, is_nothing, near, apart, missed)
    return tally


def test_steps_counted_by_machine_code_are_those_counted_by_python() -> None:
    numba = pytest.importorskip("numba")
    extending = pytest.importorskip("numba.extending")
    for rule in (measure, count):
        extending.register_jitable(rule)
    rows = _rows(500)
    assert numba.njit(_tallied)(*rows, NOTHING) == _tallied(*rows, NOTHING)


@pytest.mark.parametrize("nominal", [0.8, 1.0])
@pytest.mark.parametrize("first", [0, 4])
def test_the_metrics_of_a_tally_are_those_of_the_table(first: int, nominal: float) -> None:
    """From the row `first` on; the last rows have finite ends only."""
    lower, upper, y = (column[first : first + (500 if first == 0 else 20)] for column in _rows(500))
    tally = _tallied(lower, upper, y, NOTHING)
    table = metrics.summary(lower, upper, y, 0.2, coverage=nominal).as_dict()
    for name, value in derived(tally, (1.0 - nominal) / 2.0).items():
        assert float(value) == pytest.approx(table[name], rel=1e-12), name


def test_many_tallies_are_read_at_once() -> None:
    tallies = [_tallied(*_rows(size), NOTHING) for size in (0, 1, 2, 40)]
    tails = [0.0, 0.05, 0.1, 0.2]
    together = derived(Tally(*np.array(tallies).T), tails)
    for place, (tally, tail) in enumerate(zip(tallies, tails, strict=True)):
        for name, value in derived(tally, tail).items():
            np.testing.assert_equal(together[name][place], float(value))


def test_steps_counted_as_arrays_are_those_counted_one_by_one() -> None:
    lower, upper, y = _rows(500)
    finite = np.isfinite(lower) & np.isfinite(upper)
    for kept in (~np.isnan(y), ~np.isnan(y) & finite):
        rows = lower[kept], upper[kept], y[kept]
        tally = tally_of(measure_rows(*rows, -INF, INF))
        assert tally == pytest.approx(_tallied(*rows, NOTHING), rel=1e-12)
