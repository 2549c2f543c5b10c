"""Late labels: with at most P awaited at once, every bound holds with Pγ in place of γ."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.losses import Miscoverage, MiscoverageCounter, declaration
from tests.laws.adversary import Adversary, adversaries
from tests.laws.late import Clerk, Habit, delayed, habits, play_late
from tests.laws.ledger import Ledger
from tests.laws.parts import of_shares, several, single


def hold_the_theorem(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    ledger = play_late(controller, adversary, habit, events, Ledger.hold_one)
    (risk,) = ledger.stream.certificate().risks
    (low, high), gamma = ledger.reach(0), controller.risks[0].step.gamma
    below, above = (low - ledger.begin[0]) / gamma, (high - ledger.begin[0]) / gamma
    if declaration(controller.risks[0].loss).grows:
        below, above = -above, -below
    assert ledger.most_waiting <= habit.waiting
    assert risk.constant_lower == pytest.approx(below, rel=1e-12)
    assert risk.constant_upper == pytest.approx(above, rel=1e-12)
    assert risk.window == pytest.approx((high - low) / gamma, rel=1e-12)


@given(single(uncapped=False), adversaries(), habits(), st.integers(1, 200))
def test_late_labels_in_any_order_keep_every_bound(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    hold_the_theorem(controller, adversary, habit, events)


@settings(max_examples=100)
@given(of_shares(), adversaries(), habits(), st.integers(2, 60))
def test_late_labels_keep_the_guarantee_of_labels_quantiles_and_windows(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    play_late(controller, adversary, habit, events)


@pytest.mark.slow
@given(single(uncapped=False), adversaries(), habits(), st.integers(200, 2000))
def test_late_labels_in_any_order_keep_every_bound_for_long(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    hold_the_theorem(controller, adversary, habit, events)


@given(single(), adversaries(), habits(), st.integers(1, 150))
def test_every_prediction_is_accounted_for(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    stream = delayed(controller, habit)
    clerk = Clerk(stream, Adversary(controller, *adversary), habit, adversary[1])
    counts: Counter[str] = Counter()
    for _ in range(events):
        counts[clerk.event().what] += 1
        assert set(stream.pending) == set(clerk.shown)
    certificate = stream.certificate()
    (risk,) = certificate.risks
    assert (risk.judged, certificate.missing) == (counts["update"], counts["missing"])
    assert (certificate.dropped, certificate.pending) == (counts["drop"], len(stream.pending))
    known = risk.judged + certificate.missing + certificate.dropped + certificate.pending
    assert certificate.expired == counts["predict"] - known
    assert certificate.expired == 0 or habit.overflow == "expire"


@given(single(), adversaries(), habits(), st.integers(1, 150))
def test_predicting_dropping_and_expiring_never_move_theta(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    stream = delayed(controller, habit)
    clerk = Clerk(stream, Adversary(controller, *adversary), habit, adversary[1])
    for _ in range(events):
        before = (stream.theta, stream.lam)
        if clerk.event().what != "update":
            assert (stream.theta, stream.lam) == before


@given(single(uncapped=False), adversaries(), habits(), st.integers(1, 150))
def test_every_loss_is_the_loss_on_the_set_that_was_shown(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> None:
    (risk,) = controller.risks
    stream = delayed(controller, habit)
    clerk = Clerk(stream, Adversary(controller, *adversary), habit, adversary[1])
    memory = risk.loss.init() if hasattr(risk.loss, "init") else ()
    for _ in range(events):
        event = clerk.event()
        if event.what == "update":
            if hasattr(risk.loss, "init"):
                loss, memory = risk.loss.update(memory, event.shown, event.y)
            else:
                loss = risk.loss(event.shown, event.y)
            assert event.losses == loss
            assert stream.info == (event.id, event.shown, stream.info.lam, event.y, (loss,))


def forgetful(controller: sp.Controller) -> bool:
    """Whether no loss remembers, and nothing but the losses moves θ."""
    remembers = any(hasattr(risk.loss, "init") for risk in controller.risks)
    return not remembers and controller.combine.anti_windup is None


@given(
    (single() | several(anti_windup=False)).filter(forgetful),
    adversaries(),
    st.integers(1, 30),
    st.randoms(use_true_random=False),
)
def test_the_order_in_which_shown_predictions_are_answered_does_not_matter(
    controller: sp.Controller, adversary: tuple[str, int], number: int, chance: Random
) -> None:
    one, other = sp.Stream(controller), sp.Stream(controller)
    player, labels = Adversary(controller, *adversary), {}
    for _ in range(number):
        receipt = one.issue(player.prediction())
        assert other.issue(receipt.prediction) == receipt
        labels[receipt.id] = player.label(one, receipt.shown)
    shuffled = list(labels.items())
    chance.shuffle(shuffled)
    costs = {id: one.update(y, id) for id, y in labels.items()}
    assert {id: other.update(y, id) for id, y in shuffled} == costs
    assert other.theta == pytest.approx(one.theta, rel=1e-12, abs=1e-12)
    total, again = (stream.certificate().risks[0].mean for stream in (one, other))
    assert again == pytest.approx(total, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("waiting", [1, 2, 5])
def test_the_bound_with_late_labels_is_attained(waiting: int) -> None:
    risk = sp.Risk(Miscoverage(), 0.25, sp.steps.Fixed(0.5), 0.0, (-3.0, 3.0))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    for _ in range(8):
        stream.predict((0.0, 1.0))
        stream.update(1e300)
    assert stream.theta == 3.0  # not above M: what is shown now can be missed
    late = [stream.issue((0.0, 1.0)).id for _ in range(waiting)]
    stream.update_many((id, 1e300) for id in late)
    certificate = stream.certificate()
    assert certificate.most_pending == waiting
    assert stream.theta == 3.0 + waiting * 0.5 * 0.75
    assert certificate.risks[0].mean - 0.25 == certificate.risks[0].upper


@given(st.integers(2, 5))
def test_an_uncapped_counter_claims_nothing_once_labels_are_late(waiting: int) -> None:
    risk = sp.Risk(MiscoverageCounter(), 0.1, sp.steps.Fixed(0.5), 0.0, (-3.0, 3.0))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    assert stream.certificate().risks[0].constant_upper is not None
    for _ in range(waiting):
        stream.predict((0.0, 1.0))
    (claim,) = stream.certificate().risks
    assert (claim.lower, claim.upper, claim.window) == (None, None, None)
    assert "cap" in claim.verdict
