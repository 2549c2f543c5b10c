"""Candidates that forecast a series, and their mixture."""

from typing import Any

import numpy as np
import pytest

from setpoint.errors import InputError
from setpoint.models.candidates import AUTO, CANDIDATES
from setpoint.models.forecast import forecast

Array = np.ndarray[Any, Any]

NUMPY = ("last", "seasonal", "linear")


def _season(size: int, seed: int = 0) -> Array:
    """Hours with a daily curve, a weekly one, and a level that wanders."""
    random, hours = np.random.default_rng(seed), np.arange(size)
    day = np.sin(2 * np.pi * hours / 24) + 0.5 * np.cos(4 * np.pi * hours / 24)
    week = 1.0 + 0.5 * (hours // 24 % 7 >= 5)
    return 50.0 + 10.0 * week * day + np.cumsum(random.normal(0.0, 0.2, size))


def _score(lower: Array, upper: Array, y: Array) -> float:
    """The mean interval score at level 0.1."""
    beyond = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return float(np.mean(upper - lower + 20.0 * beyond))


@pytest.mark.parametrize("delay", [0, 9])
@pytest.mark.parametrize("name", [*CANDIDATES, "auto"])
def test_a_row_is_forecast_from_the_labels_known_before_it(name: str, delay: int) -> None:
    """Labels from row 400 on are changed: the forecasts up to row 400 + delay are the same."""
    if name in ("boosting", "auto"):
        pytest.importorskip("sklearn")
    y = _season(480)
    x = np.random.default_rng(1).normal(size=(480, 2))
    changed = np.where(np.arange(480) < 400, y, 1000.0 - y)
    models = AUTO if name == "auto" else (name,)
    horizons = (1, 1 + delay) if delay else (1,)
    first = forecast(x, y, models=models, horizons=horizons, late=[1])
    second = forecast(x, changed, models=models, horizons=horizons, late=[1])
    for place, ahead in enumerate(horizons):
        until = 400 + ahead
        for end in ("lower", "point", "upper"):
            one, other = getattr(first, end)[place], getattr(second, end)[place]
            assert np.array_equal(one[:until], other[:until])
            assert not np.array_equal(one[until:], other[until:])


def test_a_column_known_late_is_seen_as_it_was_in_the_last_known_row() -> None:
    x = np.random.default_rng(0).normal(size=(300, 1))
    y = np.where(np.arange(300) > 0, np.roll(x[:, 0], 3), 0.0)
    result = forecast(x, y, horizons=(2, 3, 4), late=[0], models=("linear",))
    errors = np.abs(result.point - y)[:, 150:].mean(axis=1)
    assert errors[1] < 0.2 * errors[0]  # three steps ahead, the last known row tells all
    assert errors[1] < 0.2 * errors[2]
    changed = x.copy()
    changed[200] += 5.0
    moved = forecast(changed, y, horizons=(2, 4), late=[0], models=("linear",))
    for place, ahead in enumerate((2, 4)):
        rows = [0, 2][place]
        same = moved.lower[place] == result.lower[rows]
        assert same[: 200 + ahead].all()
        assert not same[200 + ahead]


@pytest.mark.parametrize("columns", [0, 70])
def test_boosting_shares_trees_over_horizons_beyond_a_season(columns: int) -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    y = _season(700)
    x = rng.normal(size=(700, columns))
    result = forecast(x, y, horizons=(1, 30), late=range(columns), models=("boosting",))
    errors = np.abs(result.point - y)[:, 500:].mean(axis=1)
    assert errors[0] < errors[1] < np.abs(y[30:] - y[:-30]).mean()


def test_series_side_by_side_are_forecast_as_each_alone() -> None:
    rng = np.random.default_rng(2)
    parts = [_season(120, 1), 5.0 * _season(300, 2), np.cumsum(rng.normal(size=60)), _season(1)]
    offsets = np.cumsum([0, *map(len, parts)])
    y = np.concatenate(parts)
    x = rng.normal(size=(len(y), 2))
    together = forecast(x, y, horizons=(1, 3), offsets=offsets, models=NUMPY)
    for part, start, stop in zip(parts, offsets, offsets[1:], strict=False):
        alone = forecast(x[start:stop], part, horizons=(1, 3), models=NUMPY)
        for end in ("lower", "point", "upper"):
            np.testing.assert_allclose(
                getattr(together, end)[:, start:stop], getattr(alone, end), rtol=1e-6, atol=1e-6
            )


def test_a_delay_is_a_forecast_so_many_rows_ahead() -> None:
    """The last label known is 1 + delay rows old, and a random walk moves as the root of that."""
    y = np.cumsum(np.random.default_rng(0).normal(size=4000))
    widths = []
    for delay in (0, 8):
        result = forecast(np.zeros((4000, 0)), y, models=("last",), horizons=(1 + delay,))
        assert (result.upper[0, : 1 + delay] == 0.0).all()
        widths.append((result.upper - result.lower)[0, 1000:].mean())
    assert widths[0] == pytest.approx(2 * 1.645, rel=0.05)
    assert widths[1] == pytest.approx(3 * widths[0], rel=0.1)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e9])
def test_the_mixture_is_about_as_good_as_its_best_candidate(unit: float) -> None:
    wandering = np.cumsum(np.random.default_rng(3).normal(size=1500))
    for y in (unit * _season(1500), unit * wandering):
        x = np.zeros((1500, 0))
        alone = {}
        for name in NUMPY:
            result = forecast(x, y, models=(name,))
            alone[name] = _score(result.lower[0, 500:], result.upper[0, 500:], y[500:])
        result = forecast(x, y, models=NUMPY)
        assert _score(result.lower[0, 500:], result.upper[0, 500:], y[500:]) < 1.05 * min(
            alone.values()
        )


def test_a_season_is_found_and_gaps_in_time_do_not_shift_it() -> None:
    """Without some rows, the label a day ago is found by its time."""
    hours = np.arange(2000)
    y = 10.0 * np.sin(2 * np.pi * hours / 24) + np.random.default_rng(0).normal(0, 0.1, 2000)
    rows = np.flatnonzero((hours < 1500) | (hours % 10 > 0))
    late = hours[rows] >= 1530
    x = np.zeros((len(rows), 0))
    by_time = forecast(x, y[rows], models=("seasonal",), clock=hours[rows])
    by_row = forecast(x, y[rows], models=("seasonal",))
    width = (by_time.upper - by_time.lower)[0, late].mean()
    assert width < 2.0 < 0.2 * (by_row.upper - by_row.lower)[0, late].mean()


def test_a_candidate_that_diverges_is_left_out_and_named() -> None:
    """Linear has learnt y = x, and x explodes: the mixture goes on with the last label."""
    random = np.random.default_rng(0)
    x = random.normal(size=(900, 1))
    y = x[:, 0] + random.normal(0.0, 0.1, 900)
    x[600:700] = 1e12
    for models in (("linear",), ("last", "linear")):
        result = forecast(x, y, models=models)
        assert np.isfinite(result.lower).all()
        assert np.isfinite(result.upper).all()
        assert np.abs(result.upper[0, 600:700]).max() < 20.0
        (absence,) = result.absences
        assert (absence.name, absence.start) == ("linear", 600)
        assert absence.stop > 610  # by then it has learnt that x says nothing
        left_out = slice(absence.start, absence.stop)
        assert (result.weights[0, left_out, result.names.index("linear")] == 0.0).all()


def test_missing_and_constant_labels_do_no_harm() -> None:
    gaps = np.where(np.random.default_rng(0).random(400) < 0.3, np.nan, _season(400))
    for y in (gaps, np.full(400, np.nan), np.full(400, 7.0), np.zeros(3), np.zeros(0)):
        result = forecast(np.zeros((len(y), 1)), y, models=NUMPY)
        assert np.isfinite(result.lower).all()
        assert (result.lower <= result.upper).all()
        assert not result.absences


def test_of_many_features_those_that_matter_are_used() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(1200, 600))
    y = 5.0 * x[:, 417] + random.normal(0.0, 0.1, 1200)
    result = forecast(x, y, models=("linear",))
    assert (result.upper - result.lower)[0, 600:].mean() < 1.5


def test_an_unknown_candidate_is_refused() -> None:
    with pytest.raises(InputError, match=r"models must be of last, .*, got 'lstm'"):
        forecast(np.zeros((5, 0)), np.zeros(5), models=("lstm",))
