"""Beside a hand-written loop: the same λ, sets, losses and θ, for every stretch and reading."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.combine import Max, Mean
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.stretches import ErrorAdaptive, Exponential, Identity, ScoreAdaptive
from tests.laws.adversary import adversaries
from tests.laws.late import Habit, delayed, habits
from tests.laws.parts import families, risks
from tests.laws.record import Call, record
from tests.laws.reference import Loop

ADAPTIVE = [
    kind(0.3, *beta_loss, -0.8, 1.5, inner=inner, reading=reading)
    for (kind, beta_loss), inner, reading in product(
        [(ScoreAdaptive, ()), (ErrorAdaptive, (0.7,))],
        [Identity(), Exponential()],
        ["paper", "authors"],
    )
]
LATER = ErrorAdaptive(0.3, 0.7, -0.8, 1.5, inner=Exponential(), reading="later")
STRETCHES = [Identity(), Exponential(), *ADAPTIVE, LATER]

losses = st.sampled_from([Miscoverage(), MiscoverageCounter(), MiscoverageCounter(cap=2.0)])
levels = st.sampled_from([0.1, 0.25, 0.5]) | st.floats(0.0, 1.0)
one_risk = st.tuples(losses, levels).flatmap(lambda both: risks(both[0], level=both[1]))


def runs_alike(stream: sp.Stream, calls: list[Call]) -> None:
    """The library and the loop on the same calls: equal, not nearly equal."""
    loop = Loop(stream.controller)
    for method, given_, id in calls:
        lam, _ = loop.lam()
        assert stream.lam == lam
        if method == "predict":
            receipt = stream.issue(given_, id)
            assert tuple(receipt.shown) == loop.predict(receipt.id, given_)
            assert receipt.lam == lam
            for expired in set(loop.waiting) - set(stream.pending):
                del loop.waiting[expired]
        else:
            id = next(iter(stream.pending)) if id is None else id
            if method == "drop" or given_ != given_:
                del loop.waiting[id]
                stream.drop(id)
            else:
                stream.update(given_, id)
                assert list(stream.info.losses) == loop.update(id, given_)
        theta = stream.theta if isinstance(stream.theta, tuple) else (stream.theta,)
        assert list(theta) == loop.thetas


@pytest.mark.parametrize("stretch", STRETCHES, ids=repr)
@settings(max_examples=25)
@given(families(), one_risk, adversaries(), st.integers(1, 100))
def test_a_stream_is_the_loop_of_the_paper(
    stretch: Any, sets: Any, risk: sp.Risk, adversary: tuple[str, int], steps: int
) -> None:
    controller = sp.Controller(sets, risk, stretch)
    prompt = Habit(1, "any", 0.0, "refuse")
    runs_alike(sp.Stream(controller), record(controller, adversary, prompt, 2 * steps))


@settings(max_examples=60)
@given(
    families(),
    one_risk,
    st.sampled_from(STRETCHES),
    adversaries(),
    habits(),
    st.integers(1, 100),
)
def test_a_stream_of_late_labels_is_the_loop_of_the_paper(
    sets: Any,
    risk: sp.Risk,
    stretch: Any,
    adversary: tuple[str, int],
    habit: Habit,
    events: int,
) -> None:
    controller = sp.Controller(sets, risk, stretch)
    runs_alike(delayed(controller, habit), record(controller, adversary, habit, events))


@settings(max_examples=60)
@given(
    families(),
    st.lists(one_risk, min_size=2, max_size=3),
    st.sampled_from(STRETCHES),
    st.sampled_from([Max, Mean]),
    st.sampled_from([None, 0.001, 3.0]),
    st.sampled_from(["every", "some"]),
    adversaries(),
    st.integers(1, 100),
)
def test_several_risks_are_the_loop_of_the_paper(
    sets: Any,
    held: list[sp.Risk],
    stretch: Any,
    combine: Any,
    delta: float | None,
    empty_if: str,
    adversary: tuple[str, int],
    steps: int,
) -> None:
    if delta is not None:
        tops = [risk.bounds[1] for risk in held]
        delta += max(tops) - min(tops)
    controller = sp.Controller(sets, held, stretch, combine(delta, empty_if))
    prompt = Habit(1, "any", 0.0, "refuse")
    runs_alike(sp.Stream(controller), record(controller, adversary, prompt, 2 * steps))


@pytest.mark.parametrize("stretch", [s for s in STRETCHES if "Exponential" in repr(s)], ids=repr)
def test_the_exponent_is_clamped_where_the_exponential_would_overflow(stretch: Any) -> None:
    risk = sp.Risk(Miscoverage(), 0.5, sp.steps.Fixed(300.0), 0.0, (-2000.0, 2000.0))
    controller = sp.Controller(sp.sets.Scale(), risk, stretch)
    for policy in ("up", "down", "swing"):
        calls = record(controller, (policy, 1), Habit(1, "any", 0.0, "refuse"), 100)
        runs_alike(sp.Stream(controller), calls)
