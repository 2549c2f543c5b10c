"""A step rule states its claim: the certificate prints it, alarms use it, nobody knows the rule."""

from math import sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.errors import InputError
from setpoint.guarantee import Status
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.sets.intervals import widen_critical
from tests.laws.adversary import Adversary, adversaries
from tests.laws.bulk import (
    FLEETS,
    as_run,
    assert_same_fleet,
    assert_same_metrics,
    assert_same_run,
    live,
    plain,
    play,
    replayed,
    swept,
    tape_of,
)
from tests.laws.claims import Shrinking, Toward
from tests.laws.parts import bounded_losses, families, levels, stretches


def shrinking(gamma: float = 0.5, **options: Any) -> sp.Controller:
    risk = sp.Risk(Miscoverage(), 0.1, Shrinking(gamma), bounds=(-1.0, 2.0))
    return sp.Controller(sp.sets.Widen(), risk, **options)


# A claim that grows like √T


def test_the_claim_of_a_rule_is_printed_in_the_certificate() -> None:
    stream = sp.Stream(shrinking())
    for _ in range(16):
        stream.predict((0.0, 1.0))
        stream.update(0.5)
    certificate = stream.certificate()
    (risk,) = certificate.risks
    # θ stays in [m − γr, M + γ(1 − r)], and the 16th step is γ/4.
    most = (3.0 + 0.5 * (0.1 + 0.9)) * 4.0 / 0.5
    assert (risk.constant_lower, risk.constant_upper) == pytest.approx((-most, most))
    assert risk.window == pytest.approx(most)
    assert risk.upper == pytest.approx(most / 16)
    assert risk.identity is None
    assert risk.status is Status.SAYS_NOTHING_YET
    printed = str(certificate)
    assert "✓ steps shrink as 0.5/√t" in printed
    assert f"over any labels in a row is within ±{most:g}" in printed
    assert "identity" not in printed


def test_a_claim_that_grows_like_the_root_says_something_in_time() -> None:
    controller = shrinking(gamma=1.0)
    y = np.where(np.arange(4000) % 10 == 0, 9.0, 0.5)
    trace = sp.replay(controller, tape_of([(0.0, 1.0)] * 4000, y.tolist()))
    (risk,) = trace.certificate().risks
    assert risk.status is Status.HOLDS
    assert risk.upper == pytest.approx((3.0 + 1.0) * sqrt(4000) / 4000)


@given(
    families().flatmap(
        lambda sets: bounded_losses(sets.support).flatmap(
            lambda loss: st.builds(
                lambda level, gamma, stretch: sp.Controller(
                    sets,
                    sp.Risk(loss, level, Shrinking(gamma), start=0.5, bounds=(-0.5, 1.5)),
                    stretch,
                ),
                levels(loss), st.sampled_from([0.1, 0.5, 1.0, 3.0]), stretches(),
            )
        )
    ),
    adversaries(),
    st.integers(1, 150),
)  # fmt: skip
def test_no_adversary_breaks_the_claim_of_a_rule(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    stream, player = sp.Stream(controller), Adversary(controller, *adversary)
    total, low, high = 0.0, 0.0, 0.0
    for _ in range(steps):
        shown = stream.predict(player.prediction())
        total += stream.update(player.label(stream, shown)) - controller.risks[0].level
        low, high = min(low, total), max(high, total)
        (risk,) = stream.certificate().risks
        assert risk.constant_lower - 1e-9 <= total <= risk.constant_upper + 1e-9
        assert max(total - low, high - total) <= risk.window + 1e-9
        assert risk.status is not Status.BROKEN


def test_alarms_use_the_claim_as_it_is_when_they_look() -> None:
    """A limit of the first step would call a window broken that the claim of now allows."""
    alarms: list[sp.Alarm] = []
    stream = sp.Stream(shrinking(), on_alarm=alarms.append, window=12)
    for _ in range(2_000):
        stream.predict((0.0, 1.0))
        stream.update(0.5)
    first = (3.0 + 0.5) / 0.5
    for _ in range(40):  # now θ moves slowly, and more are missed in a row than its first claim
        stream.predict((0.0, 1.0))
        stream.update(50.0)
    lost = 12 * 0.9
    assert lost > first
    assert lost < stream.certificate().risks[0].window
    assert [alarm for alarm in alarms if alarm.kind == "window"] == []


def test_a_window_beyond_its_claim_is_an_alarm() -> None:
    alarms: list[sp.Alarm] = []
    stream = sp.Stream(shrinking(), on_alarm=alarms.append, window=12)
    for k in range(12):
        stream._state.put(0, theta=0.0, step=(0.0,))  # a broken premise: θ leaves its rule
        stream.predict((0.0, 1.0))
        stream.update(50.0)
        assert not alarms or k == 11
    (alarm,) = alarms
    assert alarm.kind == "window"
    assert alarm.value == pytest.approx(0.9)
    assert alarm.limit == pytest.approx((3.0 + 0.5) / 0.5 / 12)


def test_a_rule_that_claims_nothing_has_no_guarantee_and_no_alarm() -> None:
    alarms: list[sp.Alarm] = []
    risk = sp.Risk(Miscoverage(), 0.1, Toward(0.3), bounds=(-1.0, 60.0))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk), on_alarm=alarms.append, window=3)
    for _ in range(20):
        stream.predict((0.0, 1.0))
        stream.update(50.0)
    (certified,) = stream.certificate().risks
    assert certified.status is Status.NO_GUARANTEE
    assert "the step rule Toward states a bound" in certified.verdict
    assert (certified.lower, certified.upper, certified.window) == (None, None, None)
    assert alarms == []


# Critical values

SCORED = sp.Controller(
    sp.sets.Widen(),
    (
        sp.Risk(Miscoverage(), 0.4, Toward(0.4), bounds=(-0.5, 0.6)),
        sp.Risk(MiscoverageCounter(cap=2.0), 0.5, sp.steps.Fixed(0.25), bounds=(-0.4, 0.5)),
    ),
)
ALONE = sp.Controller(sp.sets.Widen(), SCORED.risks[0])


def hold_critical_values(controller: sp.Controller) -> None:
    """In every mode the rule is given the critical value of the label."""
    tapes, runs = zip(*(play(controller, 60, seed) for seed in (1, 2)), strict=True)
    for tape, run in zip(tapes, runs, strict=True):
        rows = [row for row in plain(tape) if row[1] == row[1]]
        assert run.state.risks[0].step == (widen_critical(*rows[-1]),)
        assert_same_run(as_run(sp.replay(controller, tape)), run, exact=True)
        assert_same_run(replayed(controller, tape), run, exact=True)
        assert_same_run(live(controller, plain(tape))[0], run, exact=True)
    for way in FLEETS:
        assert_same_fleet(way(controller, tapes), runs, exact=True)
    table = swept([controller], tapes[0])
    assert_same_metrics(
        {name: float(v[0]) for name, v in table.items()}, sp.replay(controller, tapes[0])
    )


@pytest.mark.parametrize("controller", [ALONE, SCORED], ids=["alone", "beside another"])
def test_a_scored_rule_is_given_critical_values_in_all_four_modes(
    controller: sp.Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    hold_critical_values(controller)


@pytest.mark.slow
def test_a_scored_rule_is_given_critical_values_in_all_four_modes_compiled() -> None:
    pytest.importorskip("numba")
    hold_critical_values(ALONE)


def test_a_rule_that_is_not_scored_is_given_nothing() -> None:
    risk = sp.Risk(Miscoverage(), 0.4, Toward(0.4, scored=False), bounds=(-0.5, 0.6))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk, sp.stretches.Exponential()))
    stream.predict((0.0, 1.0))
    stream.update(4.0)
    assert stream.state.risks[0].step == (0.0,)


@pytest.mark.parametrize(
    "stretch", [sp.stretches.Exponential(), sp.stretches.ScoreAdaptive(0.1, -1.0, 1.0)]
)
def test_a_scored_rule_runs_where_theta_is_lambda(stretch: Any) -> None:
    with pytest.raises(InputError, match=r"critical values, which are in units of λ"):
        sp.Controller(sp.sets.Widen(), SCORED.risks, stretch)
