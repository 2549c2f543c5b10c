"""Sets with a λ each: two sides and nested levels against single streams, and each certificate."""

from itertools import pairwise
from math import inf
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.errors import InputError
from setpoint.losses import Miscoverage, MiscoverageCounter, SetSize
from setpoint.sets import (
    Interval,
    Levels,
    Lower,
    Nested,
    ScoreWindow,
    Threshold,
    TwoSided,
    Upper,
    Widen,
)
from tests.laws.parts import SUPPORTS, Outside

eighths = st.integers(-40, 40).map(lambda k: k / 8)
ends = eighths | st.sampled_from([inf, -inf])
lams = eighths | st.sampled_from([inf, -inf])


def risk(level: float, **options: Any) -> sp.Risk:
    given = {"step": sp.steps.Fixed(0.5), "bounds": (-3.0, 3.0), **options}
    return sp.Risk(Miscoverage(), level, **given)


# The sets


@given(st.sampled_from(SUPPORTS), st.tuples(ends, ends), lams, lams, eighths)
def test_each_side_is_a_half_line_and_both_make_the_interval(
    support: Any, prediction: Any, below: float, above: float, y: float
) -> None:
    family, (lower, upper) = TwoSided(support), prediction
    shown = family.at(family.read(prediction), (below, above))
    first, second = shown.parts
    assert first == Lower(support).at((lower,), below)
    assert second == Upper(support).at((upper,), above)
    y = min(max(y, support[0]), support[1])
    low = -inf if below == inf else inf if below == -inf else lower - below
    high = inf if above == inf else -inf if above == -inf else upper + above
    held = low <= y <= high and -inf not in (below, above)
    assert shown.contains(y) == (y in shown) == held
    assert shown.interval.contains(y) == held
    assert tuple(shown) == (shown.lower, shown.upper)
    assert shown.length == shown.interval.length
    assert shown.empty == shown.interval.empty


@given(st.sampled_from(SUPPORTS), st.tuples(ends, ends), lams, eighths)
def test_sides_at_one_lambda_are_widen(support: Any, prediction: Any, lam: float, y: float) -> None:
    family = TwoSided(support)
    y = min(max(y, support[0]), support[1])
    shown = family.at(family.read(prediction), (lam, lam))
    assert shown.interval == Widen(support).at(prediction, lam)
    assert family.critical(prediction, y) == Widen(support).critical(prediction, y)


@given(st.lists(lams, min_size=2, max_size=5), st.tuples(eighths, eighths))
def test_nested_sets_never_leave_each_other(wanted: list[float], prediction: Any) -> None:
    family = Nested(Widen(), len(wanted))
    shown = family.at(prediction, tuple(wanted))
    assert len(shown) == len(wanted)
    assert list(shown) == [Widen().at(prediction, max(wanted[: i + 1])) for i in range(len(wanted))]
    hold_nested(shown)
    assert shown[0] == Widen().at(prediction, wanted[0])


def hold_nested(shown: Levels) -> None:
    for small, large in pairwise(shown.parts):
        if isinstance(small, Interval):
            assert small.empty or large.lower <= small.lower <= small.upper <= large.upper
        else:
            assert set(small.labels) <= set(large.labels)
            assert large.full or not small.full


# Each side is a stream of its own


@settings(max_examples=60)
@given(
    st.sampled_from(SUPPORTS),
    st.lists(st.tuples(ends, ends, eighths), min_size=1, max_size=40),
    st.sampled_from([0.0, 0.05, 0.4]),
    st.sampled_from([0.01, 0.3]),
    st.sampled_from([sp.stretches.Identity(), sp.stretches.Exponential()]),
    st.sampled_from([Miscoverage(), MiscoverageCounter(), Outside()]),
)
def test_each_side_is_its_own_stream_to_the_bit(
    support: Any, rows: Any, first: float, second: float, stretch: Any, loss: Any
) -> None:
    held = [
        sp.Risk(loss, level, sp.steps.Fixed(gamma), bounds=(-2.0, 3.0))
        for level, gamma in ((first, 0.3), (second, 0.7))
    ]
    both = sp.Stream(sp.Controller(TwoSided(support), held, stretch))
    alone = [
        sp.Stream(sp.Controller(family(support), each, stretch))
        for family, each in zip((Lower, Upper), held, strict=True)
    ]
    for lower, upper, label in rows:
        y = min(max(label, support[0]), support[1])
        shown = both.predict((lower, upper))
        assert list(shown.parts) == [
            stream.predict(end) for stream, end in zip(alone, (lower, upper), strict=True)
        ]
        assert both.update(y) == tuple(stream.update(y) for stream in alone)
        assert both.theta == tuple(stream.theta for stream in alone)
        assert both.lam == tuple(stream.lam for stream in alone)
    for mine, own in zip(
        both.certificate().risks, (each.certificate().risks[0] for each in alone), strict=True
    ):
        assert mine == own


@settings(max_examples=60)
@given(
    st.lists(st.tuples(eighths, eighths, eighths), min_size=1, max_size=40),
    st.sampled_from([2, 3]),
    st.sampled_from([Widen(), Widen((-3.0, 3.0))]),
)
def test_the_smallest_of_nested_sets_is_its_own_stream_to_the_bit(
    rows: Any, count: int, family: Any
) -> None:
    levels = (0.4, 0.2, 0.05)[:count]
    stream = sp.Stream(sp.Controller(Nested(family, count), [risk(level) for level in levels]))
    alone = sp.Stream(sp.Controller(family, risk(levels[0])))
    thetas = [0.0] * count
    for lower, upper, label in rows:
        y = min(max(label, family.support[0]), family.support[1])
        own = [inf if t > 3.0 else -inf if t < -3.0 else t for t in thetas]
        shown = stream.predict((lower, upper))
        largest = [max(own[: i + 1]) for i in range(count)]
        assert list(shown) == [family.at((lower, upper), lam) for lam in largest]
        assert shown[0] == alone.predict((lower, upper))
        hold_nested(shown)
        losses = stream.update(y)
        assert losses[0] == alone.update(y)
        assert losses == tuple(float(not part.lower <= y <= part.upper) for part in shown.parts)
        assert all(small >= large for small, large in pairwise(losses))
        thetas = [t + 0.5 * (loss - r) for t, loss, r in zip(thetas, losses, levels, strict=True)]
        assert stream.theta == tuple(thetas)
    assert stream.certificate().risks[0] == alone.certificate().risks[0]


# The guarantee


def test_miscoverage_of_both_sides_is_at_most_their_sum() -> None:
    rng = Random(3)
    stream = sp.Stream(
        sp.Controller(TwoSided(), [risk(0.1), risk(0.05)]),
    )
    missed = [0, 0]
    for _ in range(4000):
        stream.predict((-0.5, 0.5))
        losses = stream.update(rng.gauss(0.0, 1.0) * rng.choice([1.0, 1.0, 2.0]))
        missed = [count + loss for count, loss in zip(missed, losses, strict=True)]
    below, above = (risk.upper for risk in stream.certificate().risks)
    assert missed[0] / 4000 <= 0.1 + below
    assert missed[1] / 4000 <= 0.05 + above
    assert abs(missed[0] / 4000 - 0.1) < 0.02
    assert abs(missed[1] / 4000 - 0.05) < 0.02


def test_the_info_says_when_a_safeguard_chose_a_side() -> None:
    stream = sp.Stream(sp.Controller(TwoSided(), [risk(0.5, start=3.0), risk(0.5, start=-3.0)]))
    stream.predict((0.0, 1.0))
    stream.update(-9.0)  # missed below: up and out; not missed above: down and out
    assert stream.lam == (inf, -inf)
    shown = stream.predict((0.0, 1.0))
    assert shown.parts == (Interval(-inf, inf), Interval(inf, -inf))
    assert shown.empty
    assert stream.update(0.5) == (0.0, 1.0)
    assert stream.info is not None
    assert stream.info.saturated == "full"
    assert (stream.certificate().full, stream.certificate().empty) == (1, 1)


# What is refused


@pytest.mark.parametrize(
    ("family", "held", "options", "message"),
    [
        (TwoSided(), [risk(0.1)], {}, "TwoSided needs 2 risks, one for each set, got 1"),
        (TwoSided(), [risk(0.1)] * 3, {}, "TwoSided needs 2 risks, one for each set, got 3"),
        (Nested(count=3), [risk(0.1)] * 2, {}, "Nested needs 3 risks, one for each set, got 2"),
        (
            Nested(),
            [risk(0.1), risk(0.2)],
            {},
            r"Nested takes the smallest set first: levels must fall, got \[0.1, 0.2\]",
        ),
        (
            TwoSided(),
            [risk(0.1)] * 2,
            {"stretch": sp.stretches.ScoreAdaptive(0.1, -1.0, 1.0)},
            r"a stretch with one memory cannot serve: use stretches.Identity\(\)",
        ),
        (
            Nested(),
            [risk(0.1)] * 2,
            {"combine": sp.combine.Mean()},
            "Nested combines nothing: leave out combine, got Mean",
        ),
        (
            Nested(),
            [risk(0.1)] * 2,
            {"combine": sp.combine.Max(anti_windup=1.0)},
            "Nested combines nothing: leave out combine, got Max",
        ),
        (
            Nested(Threshold()),
            [sp.Risk(SetSize(), 0.1)] * 2,
            {},
            "SetSize grows with the set, so it can be the only risk",
        ),
    ],
)
def test_a_controller_that_cannot_serve_them_is_refused(
    family: Any, held: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        sp.Controller(family, held, **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Nested(count=1), "count must be a whole number of at least 2, got 1"),
        (lambda: Nested(Widen), "sets must be a family of sets, got <class"),
        (lambda: Nested(ScoreWindow()), "sets must be a family without a window, got ScoreWindow"),
        (lambda: Nested(TwoSided()), "sets must be a family without several members, got TwoSided"),
        (lambda: Nested(Nested()), "sets must be a family without several members, got Nested"),
        (lambda: TwoSided((1.0, 1.0)), r"support must have low < high, got \(1.0, 1.0\)"),
    ],
)
def test_a_wrong_family_is_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
