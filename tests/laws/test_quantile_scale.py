"""QuantileScale against its definition: quantiles by hand, critical values by brute force."""

import math
from fractions import Fraction
from itertools import pairwise
from math import inf, nextafter
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.losses import Miscoverage
from setpoint.predictions import QuantileGrid
from setpoint.sets import Interval, QuantileScale

sixteenths = st.integers(0, 16).map(lambda k: k / 16)
eighths = st.integers(-32, 32).map(lambda k: k / 8)
lams = st.integers(-40, 8).map(lambda k: k / 32) | st.sampled_from([inf, -inf, 0.0, -1.0])
ENDS = ("hold", "open")


@st.composite
def grids(draw: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Levels in sixteenths, and values that differ by powers of two, or not at all.

    Nothing is rounded then: a jump is steep, a flat part is flat, and a tie is a tie.
    """
    levels = sorted(draw(st.sets(sixteenths, min_size=1, max_size=6)))
    while any(math.log2((b - a) * 16) % 1 for a, b in pairwise(levels)):
        levels = levels[:-1]
    value, values = draw(eighths), []
    for _ in levels:
        values.append(value)
        value += draw(st.sampled_from([0.0, 0.0, 0.125, 1.0, 4.0]))
    return tuple(levels), tuple(values)


def quantile(grid: Any, level: Fraction, ends: str) -> Any:
    """q(u) of a grid by its lines, in fractions."""
    points = [(Fraction(u), Fraction(v)) for u, v in zip(*grid, strict=True)]
    (first, least), (last, most) = points[0], points[-1]
    if level < first:
        return -inf if ends == "open" else least
    if level > last:
        return inf if ends == "open" else most
    for (u, v), (above, high) in pairwise(points):
        if u <= level <= above:
            return v + (high - v) * (level - u) / (above - u)
    return most


def interval(grid: Any, lam: float, ends: str) -> Interval:
    """[q(τ/2), q(1 − τ/2)] with τ = −λ; all from τ ≤ 0 on, nothing for τ > 1."""
    if lam >= 0.0:
        return Interval(-inf, inf)
    if lam < -1.0:
        return Interval(inf, -inf)
    half = Fraction(-lam) / 2
    return Interval(float(quantile(grid, half, ends)), float(quantile(grid, 1 - half, ends)))


def shares(grid: Any, y: float, ends: str) -> tuple[Any, Any]:
    """F⁺ = sup{u : q(u) ≤ y} and F⁻ = inf{u : q(u) ≥ y} over u in [0, 1]; None where there is none.

    On every piece of the grid q is a line, so the two are found piece by piece.
    """
    y = Fraction(y)
    points = [(Fraction(u), Fraction(v)) for u, v in zip(*grid, strict=True)]
    pieces = [(*a, *b) for a, b in pairwise(points)]
    below, above = [], []
    for u, v in points:
        below += [u] if v <= y else []
        above += [u] if v >= y else []
    for u, v, right, high in pieces:
        if v < y < high:
            at = u + (right - u) * (y - v) / (high - v)
            below.append(at)
            above.append(at)
    if ends == "hold":
        below += [Fraction(1)] if points[-1][1] <= y else []
        below += [points[0][0]] if points[0][1] <= y else []
        above += [Fraction(0)] if points[0][1] >= y else []
    else:
        below += [points[0][0]]  # −inf before the first level, which is not reached
        above += [points[-1][0]]
    return max(below, default=None), min(above, default=None)


@given(grids(), lams, st.sampled_from(ENDS))
def test_the_interval_lies_between_two_quantiles(grid: Any, lam: float, ends: str) -> None:
    family = QuantileScale(beyond=ends)
    assert family.at(family.read(QuantileGrid(*grid)), lam) == interval(grid, lam, ends)


@given(grids(), eighths, st.sampled_from(ENDS))
def test_the_critical_value_is_the_formula(grid: Any, y: float, ends: str) -> None:
    family = QuantileScale(beyond=ends)
    reading = family.read(QuantileGrid(*grid))
    critical = family.critical(reading, y)
    below, above = shares(grid, y, ends)
    inside = grid[1][0] <= y <= grid[1][-1]
    if inside:
        assert critical == -2 * min(below, 1 - above, Fraction(1, 2))
    elif ends == "hold":
        assert critical == 0.0
    else:  # an open end is passed only beyond its level, the other one on reaching it
        opened, closed = (below, 1 - above) if y < grid[1][0] else (1 - above, below)
        beyond = nextafter(float(-2 * opened), inf) if opened else 0.0
        assert critical == max(beyond, float(-2 * closed), -1.0)


@given(grids(), eighths, lams, st.sampled_from(ENDS))
def test_y_is_in_exactly_from_its_critical_value_on(
    grid: Any, y: float, lam: float, ends: str
) -> None:
    family = QuantileScale(beyond=ends)
    reading = family.read(QuantileGrid(*grid))
    critical = family.critical(reading, y)
    assert -1.0 <= critical <= 0.0
    for at in (lam, critical, critical + 1 / 64, critical - 1 / 64, -inf, inf):
        assert family.at(reading, at).contains(y) == (at >= critical)
    before = nextafter(critical, -inf)
    assert not family.at(reading, critical - 1e-9).contains(y) or before < -1.0


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8, unique=True).map(sorted),
    st.lists(st.floats(-1e6, 1e6), min_size=8, max_size=8),
    st.floats(-1e6, 1e6),
    lams | st.floats(-1.0, 0.0),
    lams | st.floats(-1.0, 0.0),
    st.sampled_from(ENDS),
)
def test_rounding_keeps_the_sets_nested_and_the_critical_value_close(
    levels: list[float], values: list[float], y: float, one: float, other: float, ends: str
) -> None:
    family = QuantileScale(beyond=ends)
    reading = family.read(QuantileGrid(levels, values[: len(levels)]))
    small, large = (family.at(reading, lam) for lam in sorted((one, other)))
    assert small.empty or large.lower <= small.lower <= small.upper <= large.upper
    critical = family.critical(reading, y)
    assert -1.0 <= critical <= 0.0
    if family.at(reading, one).contains(y) != (one >= critical):
        # Only in the last bits: of λ, or of the ends where a line is steep.
        shown = family.at(reading, one)
        near = min(abs(shown.lower - y), abs(shown.upper - y))
        assert abs(one - critical) <= 1e-9 or near <= 1e-9 * max(1.0, abs(y))


# Other predictions


@given(grids(), lams, st.randoms(use_true_random=False), st.sampled_from(ENDS))
def test_a_grid_may_come_in_any_form_and_order(grid: Any, lam: float, rng: Any, ends: str) -> None:
    levels, values = grid
    crossed = list(values)
    rng.shuffle(crossed)  # crossing quantiles are put in order
    wanted = interval(grid, lam, ends)
    own, free = QuantileScale(levels=levels, beyond=ends), QuantileScale(beyond=ends)
    for family, prediction in (
        (own, crossed),
        (own, np.array(crossed)),
        (own, tuple(values)),
        (free, QuantileGrid(levels, crossed)),
        (free, dict(zip(levels, crossed, strict=True))),
        (free, dict(zip(reversed(levels), crossed, strict=True))),
        (own, QuantileGrid(levels, values)),
    ):
        assert family.at(family.read(prediction), lam) == wanted


@settings(max_examples=50)
@given(st.floats(-3.0, 3.0), st.floats(0.01, 5.0), st.floats(-10.0, 10.0), lams)
def test_a_quantile_function_is_asked_for_two_levels(
    centre: float, spread: float, y: float, lam: float
) -> None:
    normal = NormalDist(centre, spread)
    family = QuantileScale()
    reading = family.read(normal.inv_cdf)
    shown = family.at(reading, lam)
    if lam >= 0.0:
        assert shown == Interval(-inf, inf)
    elif lam < -1.0:
        assert shown.empty
    else:
        assert shown == Interval(normal.inv_cdf(-lam / 2), normal.inv_cdf(1 + lam / 2))
    critical = family.critical(reading, y)
    tail = min(normal.cdf(y), 1.0 - normal.cdf(y))
    assert critical == pytest.approx(-2.0 * tail, abs=1e-7)
    assert family.at(reading, critical).contains(y)
    if critical > -1.0:
        assert not family.at(reading, critical - 1e-7).contains(y)


def stairs(level: float) -> float:
    """Jumps at 1/4 and 5/8 and is flat in between; the value at a jump is the lower one."""
    return 0.0 if level <= 0.25 else 2.0 if level <= 0.625 else 5.0


@pytest.mark.parametrize(
    ("y", "wanted"),
    [
        # q(τ/2) ≤ y ≤ q(1 − τ/2), worked by hand.
        (0.0, -0.5),  # q(τ/2) = 0 for τ ≤ 1/2; q(1 − τ/2) ≥ 0 always
        (2.0, -1.0),
        (5.0, -0.75),  # q(1 − τ/2) = 5 for 1 − τ/2 > 5/8: τ < 3/4, open
        (1.0, -0.5),
        (3.0, -0.75),
        (6.0, 0.0),
        (-1.0, 0.0),
    ],
)
def test_a_function_may_jump(y: float, wanted: float) -> None:
    family = QuantileScale()
    critical = family.critical(stairs, y)
    assert critical == pytest.approx(wanted, abs=1e-12)
    assert family.at(stairs, critical).contains(y)
    if critical > -1.0:
        assert not family.at(stairs, nextafter(critical, -inf)).contains(y) or critical == 0.0


def test_the_support_cuts_and_is_the_full_set() -> None:
    family = QuantileScale(levels=(0.0, 0.5, 1.0), support=(0.0, 15.0))
    reading = family.read([-10.0, 12.0, 20.0])
    assert family.at(reading, -0.5) == Interval(1.0, 15.0)
    assert family.at(reading, 0.0) == family.at(reading, inf) == Interval(0.0, 15.0)
    assert family.at(reading, -inf).empty
    with pytest.raises(LabelError, match=r"must lie in the support \[0.0, 15.0\], got 16.0"):
        family.label(16.0)


# The recursion and the guarantee


@settings(max_examples=50)
@given(st.lists(st.tuples(grids(), eighths), min_size=1, max_size=30), st.sampled_from(ENDS))
def test_a_stream_is_the_plain_loop(rows: list[tuple[Any, float]], ends: str) -> None:
    risk = sp.Risk(Miscoverage(), 0.25, sp.steps.Fixed(0.5))
    stream = sp.Stream(sp.Controller(QuantileScale(beyond=ends), risk))
    theta = -0.25
    for grid, y in rows:
        lam = inf if theta > 0.0 else -inf if theta < -1.0 else theta
        shown = stream.predict(QuantileGrid(*grid))
        assert shown == interval(grid, lam, ends)
        loss = stream.update(y)
        assert loss == float(not shown.lower <= y <= shown.upper)
        theta += 0.5 * (loss - 0.25)
        assert stream.theta == theta


def test_a_tape_of_quantiles_is_replayed_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    values, y = np.sort(rng.normal(size=(80, 5)), axis=1), rng.normal(size=80)
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    risk = sp.Risk(Miscoverage(), 0.3, sp.steps.Fixed(0.1))
    stream = sp.Stream(sp.Controller(QuantileScale(levels=levels), risk))
    live = []
    for row, label in zip(values, y, strict=True):
        shown = stream.predict(row)
        live.append((shown.lower, shown.upper, stream.update(label)))
    tape = sp.Tape.from_arrays(values, y, names=[f"q{level}" for level in levels])
    trace = sp.replay(stream.controller, tape)
    assert live == list(
        zip(trace.lower.tolist(), trace.upper.tolist(), trace.losses[0].tolist(), strict=True)
    )


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": (0.5, 0.1)}, r"levels must be numbers that rise in \[0, 1\], got \(0.5, 0.1\)"),
        ({"levels": (0.5, 0.5)}, "must be numbers that rise"),
        ({"levels": ()}, r"must be numbers that rise in \[0, 1\], got \(\)"),
        ({"levels": (5.0,)}, r"must be numbers that rise in \[0, 1\], got \(5.0,\)"),
        ({"levels": 5}, r"must be numbers that rise in \[0, 1\], got 5"),
        ({"levels": (math.nan, 0.5)}, "must be numbers that rise"),
        ({"levels": ("a",)}, "a level must be a number, got 'a'"),
        ({"beyond": "free"}, "beyond must be one of 'hold', 'open', got 'free'"),
        ({"support": (1.0, 0.0)}, r"support must have low < high, got \(1.0, 0.0\)"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        QuantileScale(**options)


@pytest.mark.parametrize(
    ("family", "prediction", "message"),
    [
        (
            QuantileScale(),
            5,
            "QuantileScale takes a function, a QuantileGrid or a mapping .* got 5",
        ),
        (QuantileScale(), [1.0, 2.0], r"takes a function, a QuantileGrid .* got \[1.0, 2.0\]"),
        (QuantileScale(), {}, r"levels must be numbers that rise in \[0, 1\], got \(\)"),
        (QuantileScale(), {5: 1.0}, r"levels must be numbers that rise in \[0, 1\], got \(5.0,\)"),
        (QuantileScale(), QuantileGrid((0.1, 0.9), (1.0,)), "for each of 2 levels, got 1"),
        (QuantileScale(), QuantileGrid((0.9, 0.1), (1.0, 2.0)), "must be numbers that rise"),
        (QuantileScale((0.1, 0.9)), [1.0, 2.0, 3.0], "for each of 2 levels, got 3"),
        (QuantileScale((0.1, 0.9)), [[1.0, 2.0]], r"got an array of shape \(1, 2\)"),
        (QuantileScale((0.1, 0.9)), [1.0, math.nan], r"must not be NaN, got \[1.0, nan\]"),
        (QuantileScale((0.1, 0.9)), ["a", "b"], r"quantiles must be numbers, got \['a', 'b'\]"),
        (QuantileScale((0.1, 0.9)), ["1.0", "2.0"], "quantiles must be numbers"),
    ],
)
def test_wrong_quantiles_are_refused_and_change_nothing(
    family: QuantileScale, prediction: Any, message: str
) -> None:
    risk = sp.Risk(Miscoverage(), 0.25, sp.steps.Fixed(0.5))
    stream = sp.Stream(sp.Controller(family, risk))
    stream.predict(lambda level: level)
    stream.update(0.5)
    theta = stream.theta
    with pytest.raises(PredictionError, match=message):
        stream.predict(prediction)
    assert not stream.pending
    assert stream.theta == theta


def test_a_function_that_gives_no_number_is_refused_and_changes_nothing() -> None:
    risk = sp.Risk(Miscoverage(), 0.25, sp.steps.Fixed(0.5))
    stream = sp.Stream(sp.Controller(QuantileScale(), risk))
    for bad in (lambda level: "a", lambda level: None, lambda level: math.nan):
        with pytest.raises(InputError, match=r"must be a number|must not be NaN"):
            stream.predict(bad)
        assert not stream.pending
    assert stream.predict(lambda level: level) == Interval(0.125, 0.875)
