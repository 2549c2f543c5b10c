"""A change in mid-stream: each segment keeps its own bounds, with what was awaited then."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.errors import InputError
from setpoint.losses import Miscoverage, MiscoverageCounter, declaration
from setpoint.steps import Fixed
from tests.laws.adversary import Adversary, adversaries
from tests.laws.late import Clerk, Habit, delayed, habits
from tests.laws.ledger import Ledger
from tests.laws.parts import several, single
from tests.laws.record import everything

# A large level of misses is doubted, and held all the same.


def a_change(controller: sp.Controller, rng: Random) -> dict[str, Any]:
    """A new level, step size or bounds for one of the risks, or all of it."""
    index = rng.randrange(len(controller.risks))
    risk, (low, high) = controller.risks[index], controller.bounds[index]
    promise = declaration(risk.loss)
    near, far = sorted((promise.full, promise.empty))
    span = high - low
    options: dict[str, Any] = {
        "level": near + rng.random() * (far - near),
        "step": Fixed(risk.step.gamma * rng.choice([0.3, 1.0, 4.0])),
        "bounds": (low + span * rng.uniform(-0.5, 0.4), high + span * rng.uniform(-0.4, 0.5)),
    }
    chosen = rng.sample(list(options), rng.randint(1, 3))
    return {"risk": index, **{name: options[name] for name in chosen}}


def hold_the_past(ledger: Ledger, past: dict[str, Any]) -> None:
    """What the certificate keeps of a segment is what was true of it."""
    for index, (risk, sums) in enumerate(zip(past["risks"], ledger.sums, strict=True)):
        slack, (rise, fall) = ledger.rounding(index), ledger.extremes(index)
        assert risk["judged"] == len(sums) - 1
        assert "BROKEN" not in risk["verdict"]
        if risk["judged"]:
            assert risk["mean"] - risk["level"] == pytest.approx(
                sums[-1] / risk["judged"], abs=slack + 1e-12
            )
        assert max(sums) <= risk["constant_upper"] + slack
        if risk["constant_lower"] is not None:
            assert min(sums) >= risk["constant_lower"] - slack
        if risk["window"] is not None:
            worst = max(rise, fall) if risk["window_sided"] == "both" else rise
            assert worst <= risk["window"] + 2.0 * slack


def hold_every_segment(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    stream = delayed(controller, habit)
    player, rng = Adversary(controller, *adversary), Random(adversary[1])
    clerk, ledger = Clerk(stream, player, habit, adversary[1]), Ledger(stream)
    ledgers = []
    for _ in range(events):
        if rng.random() < 0.05:
            ledger.hold_windows()
            thetas, waiting, seen = stream.theta, stream.pending, everything(stream)
            terms = a_change(stream.controller, rng)
            try:
                stream.change(**terms)
            except InputError:  # anti-windup refuses bounds that it would push a risk beyond
                assert everything(stream) == seen
                continue
            assert (stream.theta, stream.pending) == (thetas, waiting)
            changed = stream.controller.risks[terms.pop("risk")]
            assert {name: getattr(changed, name) for name in terms} == terms
            ledgers.append(ledger)
            ledger, player.controller = Ledger(stream), stream.controller
            assert ledger.inherited == len(waiting)
        event = clerk.event()
        ledger.waited()
        if event.what == "update":
            ledger.note(event.losses)
            (Ledger.hold_one if len(ledger.sums) == 1 else Ledger.hold_each)(ledger)
    ledger.hold_windows()
    earlier = stream.certificate().earlier
    assert len(earlier) == len(ledgers)
    for past, told in zip(ledgers, earlier, strict=True):
        hold_the_past(past, told)


@given(single(uncapped=False), adversaries(), habits(), st.integers(1, 200))
def test_every_segment_keeps_its_own_bounds(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    hold_every_segment(controller, adversary, habit, events)


@given(several(), adversaries(), habits(), st.integers(1, 150))
def test_every_segment_of_several_risks_keeps_its_own_bounds(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    hold_every_segment(controller, adversary, habit, events)


@pytest.mark.slow
@given(single(uncapped=False) | several(), adversaries(), habits(), st.integers(200, 1500))
def test_every_segment_of_a_long_stream_keeps_its_own_bounds(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    hold_every_segment(controller, adversary, habit, events)


def awaiting(waiting: int, start: float) -> tuple[sp.Stream, list[Any]]:
    """A stream that a change leaves outside its bounds, with labels awaited since before."""
    risk = sp.Risk(Miscoverage(), 0.25, Fixed(0.5), start, (-4.0, 4.0))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    late = [stream.issue((-9.0, 9.0)).id for _ in range(waiting)]
    stream.change(bounds=(-1.0, 1.0))
    assert stream.theta == start
    return stream, late


@pytest.mark.parametrize("waiting", [0, 1, 3])
def test_what_was_awaited_at_a_change_pushes_theta_further_up_and_nothing_else_does(
    waiting: int,
) -> None:
    stream, late = awaiting(waiting, 3.0)
    stream.update_many((id, 1e300) for id in late)
    (claim,) = stream.certificate().risks
    assert stream.theta == 3.0 + waiting * 0.375
    assert claim.constant_upper == waiting * 0.75
    stream.predict((0.0, 0.0))
    assert stream.update(1e300) == 0.0
    assert stream.certificate().risks[0].within


@pytest.mark.parametrize("waiting", [0, 1, 3])
def test_what_was_awaited_at_a_change_pushes_theta_further_down_and_nothing_else_does(
    waiting: int,
) -> None:
    stream, late = awaiting(waiting, -3.0)
    stream.update_many((id, 0.0) for id in late)
    (claim,) = stream.certificate().risks
    assert stream.theta == -3.0 - waiting * 0.125
    assert claim.constant_lower == -waiting * 0.25
    stream.predict((-9.0, 9.0))
    assert stream.update(0.0) == 1.0
    assert stream.certificate().risks[0].within


def test_a_streak_that_runs_on_through_a_change_is_not_bounded_by_the_new_terms() -> None:
    risk = sp.Risk(MiscoverageCounter(), 0.25, Fixed(0.125), -4.0, (-4.0, 4.0))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    for _ in range(7):
        stream.predict((0.0, 0.0))
        stream.update(1e300)
    assert stream.theta == -0.71875
    stream.change(bounds=(-1.0, 0.0))
    assert MiscoverageCounter().most(0.25, room=8.0) == 4.0
    ledger = Ledger(stream)
    stream.predict((0.0, 0.0))
    ledger.note(stream.update(1e300))
    assert stream.info.losses == (8.0,)
    ledger.hold_claims()
    assert stream.certificate().risks[0].upper is None
