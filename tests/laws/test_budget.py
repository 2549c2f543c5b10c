"""The budget: at no time more than K + σh + (h + 1)(l_max − r) is lost beyond what was asked.

The sums are kept here by hand, from what `update` returns, and held against the bound written out.
"""

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.correction import Intervals, Labels
from setpoint.losses import Custom, FalseNegatives, Miscoverage, MiscoverageCounter, declaration
from setpoint.sets import (
    Cumulative,
    Multilabel,
    Multiplied,
    Nested,
    Scale,
    Threshold,
    TwoSided,
    Widen,
)
from setpoint.steps import Account
from setpoint.stretches import Identity, Tracking
from tests.laws.adversary import Adversary, adversaries
from tests.laws.late import Clerk, Habit, delayed, habits
from tests.laws.parts import Shortfall


def risks(*losses: Any) -> st.SearchStrategy[tuple[sp.Risk, ...]]:
    """One risk or two, with an account each."""
    risk = st.builds(
        sp.Risk,
        st.sampled_from(losses),
        st.sampled_from([0.05, 0.1, 0.3]),
        st.builds(
            Account,
            st.sampled_from([10.0, 4.0]),
            share=st.sampled_from([4.0, 2.0, 0.0]),
            wall=st.sampled_from([2, 4, 8]),
            floor=st.sampled_from([None, 3.0, inf]),
        ),
    )
    return st.lists(risk, min_size=1, max_size=2).map(tuple)


@st.composite
def budgets(draw: Any) -> sp.Controller:
    """Controllers that keep a budget, on intervals, label sets and several labels."""
    on_intervals = (Miscoverage(), MiscoverageCounter(cap=4.0), Custom(Shortfall()))
    barrier, tracking = Identity(), Tracking()
    (sets, stage), stretch, losses = draw(
        st.sampled_from(
            [
                ((Multiplied(), Intervals()), barrier, on_intervals),
                ((Multiplied(), Intervals(recentre=False)), barrier, on_intervals),
                ((Multiplied((0.0, inf)), Intervals()), barrier, on_intervals),
                ((Multiplied(), Intervals(period=3)), barrier, on_intervals),
                ((Multiplied(), None), barrier, on_intervals),
                ((Widen(), None), tracking, on_intervals),
                ((Scale(), None), tracking, on_intervals),
                ((Threshold(), None), tracking, (Miscoverage(),)),
                ((Cumulative(), None), tracking, (Miscoverage(),)),
                ((Multilabel(), None), tracking, (FalseNegatives(),)),
                ((Threshold(), Labels()), barrier, (Miscoverage(),)),
                ((Threshold(never_empty=True), Labels(size=20)), barrier, (Miscoverage(),)),
                ((Multilabel(), Labels(several=True)), barrier, (FalseNegatives(),)),
            ]
        )
    )
    return sp.Controller(sets, draw(risks(*losses)), stretch, correction=stage)


@st.composite
def joined_budgets(draw: Any) -> sp.Controller:
    """Controllers with a set and an account for each risk."""
    limit, gain = draw(st.sampled_from([10.0, 4.0])), draw(st.sampled_from([0.15, 2.0]))
    levels = draw(st.sampled_from([(0.3, 0.1), (0.05, 0.05)]))
    floor = draw(st.sampled_from([None, 3.0, inf]))
    sets, losses = draw(
        st.sampled_from(
            [
                (TwoSided(), (Miscoverage(), Miscoverage())),
                (TwoSided((0.0, inf)), (MiscoverageCounter(cap=4.0), Miscoverage())),
                (Nested(Widen(), 2), (Miscoverage(), Miscoverage())),
                (Nested(Threshold(), 2), (Miscoverage(), Miscoverage())),
            ]
        )
    )
    held = [
        sp.Risk(loss, level, Account(limit, gain, floor=floor))
        for loss, level in zip(losses, levels, strict=True)
    ]
    return sp.Controller(sets, held)


def two_sided() -> st.SearchStrategy[sp.Controller]:
    """Budgets in both directions, for labels that come at once."""
    return st.builds(
        lambda level, limit: sp.intervals(1.0 - level, limit=limit, two_sided=True),
        st.sampled_from([0.05, 0.1, 0.3]),
        st.sampled_from([10.0, 4.0]),
    )


def hold_the_budget(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> sp.Stream:
    """Plays a stream of late labels, and asserts the bound after every one of them."""
    stream = delayed(controller, habit)
    clerk = Clerk(stream, Adversary(controller, *adversary), habit, adversary[1])
    sums = [[0.0] for _ in controller.risks]
    mean, widest = 0.0, 0.0
    for number in range(events):
        others = len(stream.pending)
        if number % 37 == 36:
            stream.restore(stream.content())  # as a saved stream goes on
        event = clerk.event()
        if event.what == "predict":
            others = min(others, habit.waiting - 1)
            mean += 0.01 * (others - mean)
            widest = max(widest, others, mean)
        if event.what != "update":
            continue
        losses = event.losses if isinstance(event.losses, tuple) else (event.losses,)
        for total, loss, risk in zip(sums, losses, controller.risks, strict=True):
            if loss is None:
                continue
            step: Any = risk.step
            total.append(total[-1] + loss - risk.level)
            rise = declaration(risk.loss).high - risk.level
            most = step.limit + step.share * widest + (widest + 1) * rise
            assert total[-1] <= most + 1e-9
            if step.two_sided:
                assert total[-1] >= -(step.limit + risk.level) - 1e-9
            elif step.floor != inf:
                floor = (step.limit if step.floor is None else step.floor) + widest
                assert total[-1] - min(total) <= most + floor + 1e-9
    both = any(risk.step.two_sided for risk in controller.risks)  # type: ignore[union-attr]
    for total, risk, certificate in zip(
        sums, controller.risks, stream.certificate().risks, strict=True
    ):
        held = "guaranteed on both sides" if both else "guaranteed: not too many misses"
        assert certificate.status.value in (held, "says nothing yet", "no label yet")
        if len(total) > 1:
            assert certificate.identity == pytest.approx(
                risk.level + total[-1] / certificate.judged, abs=1e-9
            )
    return stream


@given(budgets(), adversaries(), st.integers(1, 150))
def test_the_budget_holds_at_every_time_and_on_every_window(
    controller: sp.Controller, adversary: tuple[str, int], events: int
) -> None:
    hold_the_budget(controller, adversary, Habit(1, "oldest", 0.0, "refuse"), 2 * events)


@given(two_sided(), adversaries(), st.integers(1, 150))
def test_a_budget_in_both_directions_holds_where_labels_come_at_once(
    controller: sp.Controller, adversary: tuple[str, int], events: int
) -> None:
    hold_the_budget(controller, adversary, Habit(1, "oldest", 0.0, "refuse"), 2 * events)


@given(joined_budgets(), adversaries(), habits(), st.integers(1, 150))
def test_every_set_of_several_keeps_a_budget_of_its_own(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    hold_the_budget(controller, adversary, habit, events)


@given(budgets(), adversaries(), habits(), st.integers(1, 200))
def test_the_budget_holds_with_late_missing_and_expired_labels(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    hold_the_budget(controller, adversary, habit, events)


@pytest.mark.slow
@settings(max_examples=20_000)
@given(budgets(), adversaries(), habits(), st.integers(1, 400))
def test_twenty_thousand_adversaries_do_not_break_the_budget(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    hold_the_budget(controller, adversary, habit, events)


def budget(**options: Any) -> sp.Controller:
    return sp.intervals(0.9, **options)


def test_the_constants_are_those_that_people_are_told() -> None:
    (risk,) = sp.Stream(budget()).certificate().risks
    assert (risk.constant_upper, risk.window) == pytest.approx((10.9, 20.9))
    (risk,) = sp.Stream(sp.intervals(0.9, two_sided=True)).certificate().risks
    assert (risk.constant_lower, risk.constant_upper) == pytest.approx((-10.1, 10.9))


def world(seed: int, rows: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forecasts with a bias that jumps, errors whose size changes, and y."""
    rng = np.random.default_rng(seed)
    middle = np.cumsum(rng.normal(size=rows))
    bias = np.where(np.arange(rows) // 150 % 2, 3.0, -1.0)
    y = middle + bias + rng.standard_t(4, rows) * (1.0 + np.arange(rows) // 100 % 3)
    half = np.exp(rng.normal(size=rows) * 0.3)
    return middle - half, middle + half, y


@pytest.mark.parametrize(("unit", "shift"), [(1e-9, 0.0), (1e9, 0.0), (2.0**-20, 0.0), (1.0, 1e6)])
def test_sets_do_not_depend_on_the_unit(unit: float, shift: float) -> None:
    lower, upper, y = world(5)

    def sets(scale: float, offset: float) -> tuple[np.ndarray, np.ndarray]:
        columns = [column * scale + offset for column in (lower, upper, y)]
        tape = sp.Tape.from_arrays({"lower": columns[0], "upper": columns[1]}, columns[2])
        trace = sp.replay(budget(), tape)
        return (trace.lower - offset) / scale, (trace.upper - offset) / scale

    plain, other = sets(1.0, 0.0), sets(unit, shift)
    width = float(np.mean(plain[1] - plain[0]))
    for one, two in zip(plain, other, strict=True):
        assert np.abs(one - two).max() <= 1e-6 * width


def test_rows_of_which_a_forecast_is_sure_keep_a_width_beside_those_of_which_it_is_not() -> None:
    rng = np.random.default_rng(4)
    rows = 6_000  # hourly values written down every quarter of an hour: three of four are known
    new = np.arange(rows) % 4 == 0
    y = np.cumsum(np.where(new, rng.normal(size=rows) * 60.0, 0.0))
    half = np.where(new, 130.0, 0.8)
    middle = np.where(new, y - rng.normal(size=rows) * 60.0, y)
    tape = sp.Tape.from_arrays({"lower": middle - half, "upper": middle + half}, y)
    trace = sp.replay(budget(), tape)
    assert trace.coverage >= 0.9 - 10.9 / rows
    assert not trace.full.any()
    assert (trace.upper - trace.lower).min() > 0.0
    assert np.mean(trace.upper - trace.lower) < np.mean(2.0 * half)


@pytest.mark.parametrize(
    "name", ["constant", "constant forecast", "counts", "wild", "stuck", "point"]
)
def test_odd_streams_are_covered(name: str) -> None:
    rng = np.random.default_rng(1)
    rows = 2_000
    noise = rng.normal(size=rows)
    middle, half, y = np.zeros(rows), np.ones(rows), noise
    if name == "constant":
        y = np.full(rows, 5.0)
    elif name == "constant forecast":
        half = np.zeros(rows)
    elif name == "counts":
        y = rng.poisson(2.0, rows).astype(float)
    elif name == "wild":
        y = np.where(rng.random(rows) < 0.01, 1e9 * noise, noise)
    elif name == "stuck":
        y = np.where(np.arange(rows) // 500 == 1, 3.0, noise)
    elif name == "point":
        middle, half = np.cumsum(noise), np.zeros(rows)
        y = middle + rng.normal(size=rows)
    tape = sp.Tape.from_arrays({"lower": middle - half, "upper": middle + half}, y)
    trace = sp.replay(budget(), tape)
    # One-sided: the losses never exceed the budget, and the sets are not needlessly wide either.
    assert trace.coverage >= 0.9 - 10.9 / rows
    assert not np.isnan(trace.lower).any()
    assert (trace.lower <= trace.upper).all()
    if name not in ("constant", "stuck", "counts"):
        assert trace.coverage <= 0.92
