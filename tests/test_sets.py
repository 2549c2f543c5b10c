"""Families and intervals: values worked by hand, and the fine print of DESIGN.md."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.predictions import Quantiles, Spread
from setpoint.sets import (
    Cumulative,
    Interval,
    Lower,
    Multilabel,
    QuantileScale,
    Scale,
    ScoreWindow,
    Threshold,
    Upper,
    Widen,
)

INF, NAN = math.inf, math.nan
EMPTY, FULL = Interval(INF, -INF), Interval(-INF, INF)

numbers = st.floats(-1e6, 1e6)
scales = st.one_of(st.just(0.0), st.floats(0.0, 1e6))
lams = st.one_of(st.floats(allow_nan=False), st.floats(-10.0, 10.0))


# Intervals


def test_an_interval_holds_its_ends() -> None:
    interval = Interval(1.0, 3.0)
    assert [interval.contains(y) for y in (0.999, 1.0, 2.0, 3.0, 3.001)] == [
        *(False, True, True, True, False)
    ]
    assert 1.0 in interval
    assert 4.0 not in interval
    assert (interval.lower, interval.upper) == tuple(interval) == (1.0, 3.0)


@pytest.mark.parametrize(
    ("lower", "upper", "length", "empty"),
    [
        (1.0, 3.0, 2.0, False),
        (1.0, 1.0, 0.0, False),
        (3.0, 1.0, 0.0, True),
        (INF, -INF, 0.0, True),
        (-INF, INF, INF, False),
        (0.0, INF, INF, False),
        (-INF, 0.0, INF, False),
        (INF, INF, 0.0, False),
        (-INF, -INF, 0.0, False),
    ],
)
def test_the_length_is_never_negative(
    lower: float, upper: float, length: float, empty: bool
) -> None:
    interval = Interval(lower, upper)
    assert interval.length == length
    assert interval.empty is empty


def test_crossed_ends_are_the_one_empty_interval() -> None:
    assert Interval(3.0, 1.0) == Interval(2.0, -5.0) == EMPTY
    assert hash(Interval(3.0, 1.0)) == hash(EMPTY)
    assert (EMPTY.lower, EMPTY.upper) == (INF, -INF)
    assert repr(Interval(3.0, 1.0)) == "Interval(empty)"
    assert repr(Interval(1.0, INF)) == "Interval(1.0, inf)"
    assert not any(y in EMPTY for y in (-INF, -1.0, 0.0, INF))


@pytest.mark.parametrize("ends", [(NAN, 1.0), (1.0, NAN), (NAN, NAN)])
def test_an_interval_with_a_nan_end_does_not_exist(ends: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="the ends of an interval must be numbers"):
        Interval(*ends)


# Widen


@pytest.mark.parametrize(
    ("lam", "wanted"),
    [
        (0.0, Interval(10.0, 14.0)),
        (0.5, Interval(9.5, 14.5)),
        (-1.0, Interval(11.0, 13.0)),
        (-2.0, Interval(12.0, 12.0)),
        (-2.5, EMPTY),
        (INF, FULL),
        (-INF, EMPTY),
    ],
)
def test_widen_moves_both_ends_by_lambda(lam: float, wanted: Interval) -> None:
    assert Widen().at(Quantiles(10.0, 14.0), lam) == wanted


@pytest.mark.parametrize(
    ("y", "wanted"),
    [(16.0, 2.0), (14.0, 0.0), (12.0, -2.0), (11.0, -1.0), (10.0, 0.0), (7.0, 3.0)],
)
def test_the_critical_value_of_widen_is_the_cqr_score(y: float, wanted: float) -> None:
    assert Widen().critical((10.0, 14.0), y) == wanted


# Scale


@pytest.mark.parametrize(
    ("spread", "lam", "wanted"),
    [
        (Spread(12.0, 1.5, 2.0), 2.0, Interval(9.0, 16.0)),
        (Spread(12.0, 1.5, 2.0), 0.0, Interval(12.0, 12.0)),
        (Spread(12.0, 1.5, 2.0), -0.1, EMPTY),
        (Spread(12.0, 0.0, 2.0), 1.0, Interval(12.0, 14.0)),
        (Spread(12.0, 0.0, 2.0), -1.0, EMPTY),
        (Spread(12.0, 0.0, 0.0), 1e300, Interval(12.0, 12.0)),
        (Spread(12.0, 0.0, 0.0), -1e300, Interval(12.0, 12.0)),
        (Spread(12.0, 0.0, 0.0), INF, FULL),
        (Spread(12.0, 0.0, 0.0), -INF, EMPTY),
        (Spread(12.0, 1.0, 0.0), INF, FULL),
    ],
)
def test_scale_moves_each_end_in_its_own_units(spread: Spread, lam: float, wanted: Any) -> None:
    assert Scale().at(spread, lam) == wanted


@pytest.mark.parametrize(
    ("spread", "y", "wanted"),
    [
        ((12.0, 1.5, 2.0), 16.0, 2.0),
        ((12.0, 1.5, 2.0), 9.0, 2.0),
        ((12.0, 1.5, 2.0), 12.0, 0.0),
        ((12.0, 1.5, 0.0), 16.0, INF),
        ((12.0, 0.0, 2.0), 11.0, INF),
        ((12.0, 0.0, 2.0), 12.0, 0.0),
        ((12.0, 0.0, 0.0), 12.0, -INF),
        ((12.0, 0.0, 0.0), 12.5, INF),
    ],
)
def test_the_critical_value_of_scale_counts_nought_by_nought_as_minus_infinity(
    spread: tuple[float, float, float], y: float, wanted: float
) -> None:
    assert Scale().critical(spread, y) == wanted


def test_both_start_where_the_model_is_right() -> None:
    assert (Widen().start(0.1), Scale().start(0.1)) == (0.0, 1.0)
    assert Widen().bounds() is Scale().bounds() is None
    assert Widen().unit((0.0, 1.0)) == 1.0
    assert Scale().unit((0.0, 1.0, 3.0)) == 2.0


# Support


@pytest.mark.parametrize(
    ("support", "lam", "wanted"),
    [
        ((0.0, INF), 3.0, Interval(0.0, 7.0)),
        ((0.0, INF), INF, Interval(0.0, INF)),
        ((0.0, 6.0), 3.0, Interval(0.0, 6.0)),
        ((0.0, 6.0), INF, Interval(0.0, 6.0)),
        ((0.0, 6.0), -INF, EMPTY),
        ((0.0, 6.0), -2.0, EMPTY),
        ((-INF, 2.0), 0.0, Interval(1.0, 2.0)),
        ((5.0, 6.0), 0.0, EMPTY),
    ],
)
def test_sets_are_cut_to_the_support_which_is_the_full_set(
    support: tuple[float, float], lam: float, wanted: Interval
) -> None:
    assert Widen(support).at((1.0, 4.0), lam) == wanted


# One side


@pytest.mark.parametrize(
    ("lam", "lower", "upper"),
    [
        (0.0, Interval(10.0, INF), Interval(-INF, 10.0)),
        (2.5, Interval(7.5, INF), Interval(-INF, 12.5)),
        (-2.5, Interval(12.5, INF), Interval(-INF, 7.5)),
        (INF, FULL, FULL),
        (-INF, EMPTY, EMPTY),
    ],
)
def test_one_side_moves_one_end(lam: float, lower: Interval, upper: Interval) -> None:
    assert Lower().at((10.0,), lam) == lower
    assert Upper().at((10.0,), lam) == upper


def test_the_critical_value_of_one_side_is_the_way_to_its_end() -> None:
    assert [Lower().critical((10.0,), y) for y in (8.0, 10.0, 13.0)] == [2.0, 0.0, -3.0]
    assert [Upper().critical((10.0,), y) for y in (8.0, 10.0, 13.0)] == [-2.0, 0.0, 3.0]


def test_one_side_is_cut_to_the_support() -> None:
    assert Lower((0.0, 20.0)).at((10.0,), 15.0) == Interval(0.0, 20.0)
    assert Lower((0.0, 20.0)).at((10.0,), -15.0) == EMPTY
    assert Upper((0.0, 20.0)).at((10.0,), 5.0) == Interval(0.0, 15.0)
    assert Upper((0.0, 20.0)).at((10.0,), INF) == Interval(0.0, 20.0)
    with pytest.raises(LabelError, match=r"must lie in the support \[0.0, 20.0\], got 21.0"):
        Upper((0.0, 20.0)).label(21.0)


@pytest.mark.parametrize("family", [Lower(), Upper()], ids=repr)
def test_one_side_reads_one_number_in_any_form(family: Any) -> None:
    name = type(family).__name__.lower()
    for prediction in (3, 3.0, np.float32(3.0), np.array(3.0), np.array([3.0]), [3.0], {name: 3.0}):
        assert family.read(prediction) == (3.0,)
    assert family.read(INF) == (INF,)
    for bad in ((1.0, 2.0), "3.0", None, {}, {"other": 3.0}, np.zeros(2), [[]]):
        with pytest.raises(
            PredictionError, match=f"a prediction must be one number, the {name} bound, got"
        ):
            family.read(bad)
    with pytest.raises(PredictionError, match="a prediction must not be NaN, got nan"):
        family.read(NAN)


def test_families_of_shares_start_at_the_level_and_end_at_nought() -> None:
    for family in (Threshold(), Cumulative(), Multilabel(), QuantileScale(), ScoreWindow()):
        assert family.start(0.1) == -0.1
        assert family.bounds() == (-1.0, 0.0)
        assert family.unit(None) == 1.0  # type: ignore[arg-type]
    assert Cumulative(5, penalty=0.25, free=2).bounds() == (-1.0, 0.75)
    assert Cumulative(2, penalty=0.25, free=2).bounds() == (-1.0, 0.0)


def test_a_mapping_is_read_by_its_names_or_not_at_all() -> None:
    assert Widen().read({"upper": 2.5, "lower": 1.5}) == (1.5, 2.5)
    with pytest.raises(PredictionError, match="must have lower, upper, got"):
        Widen().read({0: 1.5, 1: 2.5})


# Laws


@given(st.tuples(numbers, numbers), numbers, lams, lams)
def test_widen_is_nested(prediction: Any, y: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert Widen().at(prediction, low).contains(y) <= Widen().at(prediction, high).contains(y)


@given(st.tuples(numbers, scales, scales), numbers, lams, lams)
def test_scale_is_nested(prediction: Any, y: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert Scale().at(prediction, low).contains(y) <= Scale().at(prediction, high).contains(y)


@given(numbers, numbers, lams)
def test_both_sides_together_are_widen(end: float, y: float, lam: float) -> None:
    held = Lower().at((end,), lam).contains(y) and Upper().at((end + 1.0,), lam).contains(y)
    assert Widen().at((end, end + 1.0), lam).contains(y) == held
    critical = max(Lower().critical((end,), y), Upper().critical((end + 1.0,), y))
    assert Widen().critical((end, end + 1.0), y) == critical


def test_an_interval_has_a_width_a_middle_and_two_ends_for_numpy() -> None:
    interval = Interval(1.0, 4.0)
    assert (interval.width, interval.centre, np.asarray(interval).tolist()) == (
        3.0,
        2.5,
        [1.0, 4.0],
    )
    assert np.array([interval, interval]).shape == (2, 2)
    for odd in (Interval(3.0, 1.0), Interval(0.0, float("inf"))):
        assert np.isnan(odd.centre)
