"""Several risks on one set: each stays below its bound, with anti-windup on every window too."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log1p
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.combine import Max, Mean
from setpoint.losses import Custom, Miscoverage, MiscoverageCounter
from setpoint.steps import Fixed
from tests.laws.adversary import Adversary, adversaries
from tests.laws.late import Habit, habits, play_late
from tests.laws.ledger import Ledger
from tests.laws.parts import several

PROMPT = Habit(waiting=1, order="any", given_up=0.0, overflow="refuse")


def lowest(ledger: Ledger) -> float:
    """L = min_j(m_j − Pγ_j(r_j − l_min)): the largest θ never falls below it."""
    return min(ledger.reach(index)[0] for index in range(len(ledger.sums)))


def hold_lifts(ledger: Ledger) -> None:
    """What anti-windup keeps true after every label."""
    stream, delta = ledger.stream, ledger.controller.combine.anti_windup
    slack = max(
        ledger.rounding(index) * risk.step.gamma
        for index, risk in enumerate(ledger.controller.risks)
    )
    assert min(stream.theta) >= max(stream.theta) - delta
    assert max(stream.theta) >= lowest(ledger) - slack
    tops = [high for _, high in ledger.controller.bounds]
    saturated = [theta > high for theta, high in zip(stream.theta, tops, strict=True)]
    floor = max(stream.theta) - delta
    for theta, above in zip(stream.theta, saturated, strict=True):
        if above and theta == floor:  # lifted above its bound only where another was above its own
            assert sum(saturated) > 1 or delta == 0.0


def hold_the_theorem(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> Ledger:
    lifts = controller.combine.anti_windup is not None

    def check(ledger: Ledger) -> None:
        ledger.hold_each()
        if lifts:
            hold_lifts(ledger)

    ledger = play_late(controller, adversary, habit, events, check)
    for index, risk in enumerate(ledger.stream.certificate().risks):
        gamma, top = controller.risks[index].step.gamma, ledger.reach(index)[1]
        assert risk.constant_upper == pytest.approx((top - ledger.begin[index]) / gamma, rel=1e-9)
        if lifts:
            constant = (top - lowest(ledger) + controller.combine.anti_windup) / gamma
            assert risk.window == pytest.approx(constant, rel=1e-12)
            assert ledger.extremes(index)[0] <= constant + 2.0 * ledger.rounding(index)
        else:
            assert (risk.lifts, risk.lifted) == (0, 0.0)
    return ledger


@given(several(), adversaries(), st.integers(1, 120))
def test_each_risk_stays_below_its_bound_at_every_time(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    hold_the_theorem(controller, adversary, PROMPT, 2 * steps)


@given(several(), adversaries(), habits(), st.integers(1, 150))
def test_each_risk_stays_below_its_bound_when_labels_are_late(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    hold_the_theorem(controller, adversary, habit, events)


@given(several(anti_windup=True), st.integers(0, 2**32 - 1), st.integers(50, 150))
def test_anti_windup_bounds_every_window_of_a_world_that_turns(
    controller: sp.Controller, seed: int, steps: int
) -> None:
    hold_the_theorem(controller, ("runs", seed), PROMPT, 2 * steps)


@pytest.mark.slow
@given(several(), adversaries(), st.integers(100, 800))
def test_each_risk_stays_below_its_bound_for_long(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    hold_the_theorem(controller, adversary, PROMPT, 2 * steps)


@pytest.mark.slow
@given(several(anti_windup=True), adversaries(), habits(), st.integers(200, 1600))
def test_anti_windup_with_late_labels_bounds_every_window_for_long(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    hold_the_theorem(controller, adversary, habit, events)


@given(several(combines=(Max,)), adversaries(), st.integers(1, 100))
def test_the_largest_set_any_risk_asks_for_is_shown(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    """With Max, λ is that of the risk that asks for most, if it were alone with the same θ."""
    stream = sp.Stream(controller)
    player = Adversary(controller, *adversary)
    sets, stretch = controller.sets, controller.stretch
    memory = stretch.init()
    for _ in range(steps):
        prediction = player.prediction()
        shown = stream.predict(prediction)
        if stretch.move is None and stream.pending[next(iter(stream.pending))].lam != -inf:
            for theta, (_, high) in zip(stream.theta, controller.bounds, strict=True):
                alone = inf if theta > high else stretch.phi(stretch.params, memory, theta)
                asked = sets.at(sets.read(prediction), alone)
                assert asked.empty or shown.lower <= asked.lower <= asked.upper <= shown.upper
        stream.update(player.label(stream, shown))


# Theorem 3: the empty set whenever one θ is below its bound.


@given(several(anti_windup=False, empty_if="some"), adversaries(), st.integers(1, 120))
def test_theorem_three_is_two_sided_while_no_two_risks_ask_for_opposite_ends(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    stream = sp.Stream(controller)
    player, ledger = Adversary(controller, *adversary), Ledger(stream)
    torn = False
    for _ in range(steps):
        ends = list(zip(stream.theta, controller.bounds, strict=True))
        torn |= any(t > high for t, (_, high) in ends) and any(t < low for t, (low, _) in ends)
        shown = stream.predict(player.prediction())
        ledger.note(stream.update(player.label(stream, shown)))
        ledger.hold_each()
        for index, risk in enumerate(stream.certificate().risks):
            gamma, bottom = controller.risks[index].step.gamma, ledger.reach(index)[0]
            assert (risk.constant_lower is None) == torn
            if not torn:
                constant = (bottom - ledger.begin[index]) / gamma
                assert risk.constant_lower == pytest.approx(constant, rel=1e-9)
                assert risk.window_sided == "both"
                ledger.hold_range()
        ledger.hold_windows()


@dataclass(frozen=True)
class Bit:
    """1 if the adversary says so in a bit of y: 1 costs the first risk, 2 the second, 3 both."""

    index: int
    low, high = 0.0, 1.0

    def __call__(self, shown: Any, y: float) -> float:
        if shown.empty:
            return 1.0
        return float((int(y) >> self.index) & 1 and shown.upper < inf)


def opposed(combine: Any, level: float = 0.5) -> sp.Stream:
    """Two risks that y can set against each other, with θ's that are never rounded."""
    held = [sp.Risk(Bit(index), level, Fixed(0.5), 0.0, (-1.0, 1.0)) for index in range(2)]
    return sp.Stream(sp.Controller(sp.sets.Widen(), held, combine=combine))


def answer(stream: sp.Stream, y: float) -> Any:
    stream.predict((-9.0, 9.0))  # not empty within the bounds of θ
    return stream.update(y)


def drive(stream: sp.Stream, going: Callable[[], bool], y: Callable[[], float]) -> Ledger:
    """Answers with y while `going`."""
    ledger = Ledger(stream)
    for _ in range(1000):
        if not going():
            return ledger
        ledger.note(answer(stream, y()))
    return pytest.fail("the stream never got there")


COMBINES = [combine(delta) for combine in (Max, Mean) for delta in (None, 0.0, 0.5, 8.0)]


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("combine", COMBINES, ids=repr)
def test_the_upper_bound_of_each_risk_is_attained(combine: Any, index: int) -> None:
    stream = opposed(combine)
    drive(stream, lambda: stream.theta[index] <= 1.0, lambda: 1 << index)
    risk = stream.certificate().risks[index]
    assert risk.mean - risk.level == risk.upper


@pytest.mark.parametrize("delta", [0.0, 0.5, 1.0, 8.0])
@pytest.mark.parametrize("combine", [Max, Mean])
def test_the_window_constant_of_anti_windup_is_attained(combine: Any, delta: float) -> None:
    """From as far down as anti-windup lets the first risk fall, straight up to its bound."""
    stream = opposed(combine(anti_windup=delta))
    drive(
        stream,
        lambda: stream.theta[1] - stream.theta[0] < delta,
        lambda: 2 if stream.theta[1] <= 0.0 else 0,
    )
    drive(stream, lambda: stream.theta[1] >= -1.0, lambda: 0)
    assert stream.theta == (-1.25 - delta, -1.25)
    ledger = drive(stream, lambda: stream.theta[0] <= 1.0, lambda: 1)
    assert ledger.extremes(0)[0] == stream.certificate().risks[0].window == 2.0 * (2.5 + delta)


def test_theorem_three_attains_the_lower_bound_of_each_risk() -> None:
    stream = opposed(Max(empty_if="some"))
    drive(stream, lambda: stream.theta[0] >= -1.0, lambda: 0)
    assert stream.lam == -inf
    for risk in stream.certificate().risks:
        assert risk.mean - risk.level == risk.lower


def test_a_lift_does_not_hide_the_losses_of_a_slack_risk() -> None:
    stream = opposed(Max(anti_windup=0.25), level=0.25)
    for _ in range(40):
        answer(stream, 1 if stream.theta[0] <= 0.0 else 0)
    slack = stream.certificate().risks[1]
    assert slack.mean == 0.0
    assert slack.lifts > 0
    assert slack.identity == slack.mean  # to the bit: nothing is rounded here


def test_without_anti_windup_a_slack_risk_is_violated_for_long_when_the_world_turns() -> None:
    def worst(stream: sp.Stream) -> float:
        ledger = Ledger(stream)
        for step in range(500):
            first = 1 if stream.theta[0] <= 0.0 else 0
            ledger.note(answer(stream, first if step < 300 else 2))
        return ledger.extremes(1)[0]

    held, drifting = opposed(Max(anti_windup=0.5), level=0.25), opposed(Max(), level=0.25)
    constant = held.certificate().risks[1].window
    assert drifting.certificate().risks[1].window is None
    assert worst(held) <= constant < 0.1 * worst(drifting)


# What must not be claimed.


def test_without_a_cap_the_counter_of_several_risks_claims_nothing() -> None:
    held = [
        sp.Risk(loss, 0.1, Fixed(0.5), 0.0, (-1.0, 1.0))
        for loss in (MiscoverageCounter(), Miscoverage())
    ]
    counter, plain = sp.Stream(sp.Controller(sp.sets.Widen(), held)).certificate().risks
    assert counter.constant_upper is None
    assert plain.constant_upper is not None


def test_mean_without_anti_windup_says_that_it_holds_a_sum_only() -> None:
    for combine in (Mean(), Mean(anti_windup=1.0)):
        (first, _) = opposed(combine).certificate().risks
        warned = any("weighted sum" in premise.text for premise in first.premises)
        assert warned == (combine.anti_windup is None)


@given(
    st.lists(st.tuples(st.floats(0.05, 0.95), st.floats(0.01, 3.0)), min_size=2, max_size=2),
    st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=150),
)
def test_the_bare_mean_of_two_stretched_risks_bounds_their_weighted_sum(
    parts: list[tuple[float, float]], labels: list[float]
) -> None:
    # Both losses are 0 where λ > 2, and 1 where λ < 0; θ begins at 0, as λ does.
    def far(shown: Any, y: float) -> float:
        return float(not 2.0 * abs(y) <= shown.upper)

    losses = (Miscoverage(), Custom(far))
    held = [sp.Risk(loss, r, Fixed(g), 0.0) for loss, (r, g) in zip(losses, parts, strict=True)]
    made = sp.Controller(sp.sets.Widen(), held, sp.stretches.Exponential(), Mean())
    stream = sp.Stream(made)
    above, below = (sum(g * end(r) for r, g in parts) for end in (lambda r: 1.0 - r, lambda r: r))
    for y in labels:
        stream.predict((0.0, 0.0))
        stream.update(y)
        # θ began at 0, so the sum of both is that of γ(l − r) so far.
        assert -below - 1e-9 <= sum(stream.theta) <= 2.0 * log1p(2.0) + above + 1e-9


@given(several(lopsided=True), adversaries(), habits(), st.integers(1, 150))
def test_only_what_the_premises_allow_is_claimed_and_it_is_true(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    play_late(controller, adversary, habit, events)


def stubborn(shown: Any, y: float) -> float:
    """1 if y is positive, otherwise 0.3 on the empty set and 0 elsewhere; 0 on the full set."""
    if shown.upper == inf:
        return 0.0
    return 1.0 if y > 0.0 else 0.3 * shown.empty


def test_no_window_is_promised_where_the_empty_set_may_keep_a_risk_below_its_level() -> None:
    """All θ may then fall for ever, and climb as long when the world turns."""
    risk = sp.Risk(Custom(stubborn, empty=0.3), 0.5, Fixed(1.0), 0.0, (-2.0, 2.0))
    controller = sp.Controller(sp.sets.Widen(), (risk, risk), combine=Max(anti_windup=1.0))
    stream = sp.Stream(controller)
    ledger = Ledger(stream)
    for y in [-1.0] * 200 + [1.0] * 80:
        stream.predict((0.0, 1.0))
        ledger.note(stream.update(y))
        ledger.hold_claims()
    ledger.hold_windows()
