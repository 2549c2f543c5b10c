"""Losses that fall and rise again as the set grows, such as 1 − F1: θ stays where they fall."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError
from setpoint.losses import (
    Custom,
    F1Shortfall,
    FalseNegatives,
    Miscoverage,
    miscoverage,
)
from setpoint.sets import Multilabel, ScoreWindow, Threshold, Widen

CLASSES = 12


def world(seed: int, rows: int, spell: tuple[int, int] = (0, 0)) -> list[tuple[Any, Any]]:
    """Probabilities that are right, but in a spell say nothing of y."""
    rng = np.random.default_rng(seed)
    found = []
    for row in range(rows):
        p = rng.beta(0.6, 2.0, CLASSES)
        y = rng.random(CLASSES) < p
        found.append((rng.beta(0.6, 2.0, CLASSES) if spell[0] <= row < spell[1] else p, y))
    return found


PAST, PRESENT = world(9, 500), world(0, 6000, spell=(2000, 2300))


def shortfall(p: Any, y: Any, lam: float) -> float | None:
    """1 − F1 of the labels with p ≥ −λ, by hand."""
    shown = p >= -lam
    total = int(shown.sum() + y.sum())
    return 1.0 - 2.0 * int((shown & y).sum()) / total if total else None


def by_hand(level: float, gamma: float, start: float, top: float) -> tuple[list[float], float]:
    """The losses of a θ that is confined to `top`, and the last λ."""
    theta, losses = start, []
    for p, y in PRESENT:
        loss = shortfall(p, y, np.inf if theta > top == 0.0 else min(theta, top))
        if loss is not None:
            losses.append(loss)
            theta += gamma * (loss - level)
    return losses, min(theta, top)


def burnt_in(level: float, **options: Any) -> sp.Controller:
    risk = sp.Risk(F1Shortfall(), level, **options)
    return sp.burn_in(sp.Controller(Multilabel(), risk), *zip(*PAST, strict=True))


@pytest.mark.parametrize("level", [0.5, 0.55, 0.6])
@pytest.mark.parametrize("gamma", [None, 0.05])
def test_f1_comes_back_to_its_level_after_a_bad_spell_of_300_rows(
    level: float, gamma: float | None
) -> None:
    controller = burnt_in(level, step=None if gamma is None else sp.steps.Fixed(gamma))
    stream, losses = sp.Stream(controller), []
    for p, y in PRESENT:
        stream.predict(p)
        losses.append(stream.update(y))
    judged = [loss for loss in losses if loss is not None]
    (risk,) = controller.risks
    expected, _ = by_hand(level, risk.step.gamma, risk.start, risk.bounds[1])
    assert judged == pytest.approx(expected)
    assert np.mean(judged[-2000:]) == pytest.approx(level, abs=0.02)
    assert np.mean(judged[2000:2250]) > level + 0.05  # the spell was bad
    (claim,) = stream.certificate().risks
    assert claim.verdict == "best effort: bounded from below only"
    # Without the bound the same rule runs to the full set and stays there.
    locked, last = by_hand(level, 0.05, -level, 0.0)
    assert last == 0.0
    assert np.mean(locked[-2000:]) == pytest.approx(0.645, abs=0.01)


def test_a_burn_in_finds_where_f1_is_best() -> None:
    (risk,) = burnt_in(0.5).risks
    grid = np.linspace(-0.9, 0.0, 91)

    def mean(lam: float) -> float:
        losses = [shortfall(p, y, lam) for p, y in PAST]
        return float(np.mean([loss for loss in losses if loss is not None]))

    means = [mean(lam) for lam in grid]
    low, high = risk.bounds
    assert low == -1.0
    assert mean(high) == pytest.approx(min(means), abs=0.003)
    assert risk.start < high
    assert mean(risk.start) == pytest.approx(0.5, abs=0.01)
    assert mean(risk.start) <= 0.5


def test_a_burn_in_ends_below_the_full_set_though_that_was_best() -> None:
    risk = sp.Risk(F1Shortfall(), 0.9)
    labels = [(0, 1, 2, 99)] * 20  # the last one is never named: only the full set holds it
    controller = sp.burn_in(sp.Controller(Multilabel(), risk), [[0.3, 0.2, 0.1]] * 20, labels)
    assert controller.risks[0].bounds == (-1.0, -0.1)
    assert sp.Stream(controller).predict([0.3, 0.2, 0.1]).size <= 3


def test_a_burn_in_keeps_the_bounds_that_are_given() -> None:
    (risk,) = burnt_in(0.6, bounds=(-0.9, -0.4)).risks
    assert risk.bounds == (-0.9, -0.4)
    assert -0.9 <= risk.start <= -0.4


def test_a_level_out_of_reach_is_refused_with_what_can_be_reached() -> None:
    with pytest.raises(InputError, match=r"out of reach: on the past rows it is 0\.46\d* or more"):
        burnt_in(0.4)
    with pytest.raises(InputError, match="depends on the window: give bounds"):
        sp.burn_in(
            sp.Controller(ScoreWindow(Threshold()), sp.Risk(F1Shortfall(), 0.5)),
            [[0.9, 0.1]] * 3,
            [0, 1, 0],
        )


@pytest.mark.parametrize("bounds", [None, (-1.0, 0.0), (-1.0, np.inf)])
def test_f1_is_refused_without_a_bound_below_the_full_set(bounds: Any) -> None:
    risk = sp.Risk(F1Shortfall(), 0.5, sp.steps.Fixed(0.05), bounds=bounds)
    with pytest.raises(InputError, match="θ would run there and stay") as error:
        sp.Stream(sp.Controller(Multilabel(), risk))
    assert "burn_in" in str(error.value)
    assert f"got bounds={bounds}" in str(error.value)


def test_what_would_carry_f1_beyond_its_bound_is_refused() -> None:
    f1 = sp.Risk(F1Shortfall(), 0.5, sp.steps.Fixed(0.05), bounds=(-1.0, -0.2))
    found = sp.Risk(FalseNegatives(), 0.2, sp.steps.Fixed(0.05))
    moving = sp.stretches.ScoreAdaptive(0.1, -1.0, 1.0)
    lifted = sp.combine.Max(anti_windup=1.0)
    for controller in (
        sp.Controller(Multilabel(), f1, moving),
        sp.Controller(Multilabel(), [f1, found], combine=lifted),
    ):
        with pytest.raises(InputError, match="leave these out"):
            sp.Stream(controller)
    with pytest.raises(InputError, match="an account controls nothing if the full set costs"):
        sp.label_sets(sets=Multilabel(), risk=sp.Risk(F1Shortfall(), 0.5))


def test_the_certificate_says_when_a_level_is_out_of_reach() -> None:
    risk = sp.Risk(F1Shortfall(), 0.3, sp.steps.Fixed(0.05), start=-0.5, bounds=(-1.0, -0.25))
    stream = sp.Stream(sp.Controller(Multilabel(), risk))
    for p, y in PRESENT[:1500]:
        shown = stream.predict(p)
        assert set(shown.labels) <= set(np.flatnonzero(p >= 0.25))
        stream.update(y)
    (claim,) = stream.certificate().risks
    assert stream.theta > -0.25
    assert "a premise fails: the level is within reach of sets up to θ = -0.25" in claim.verdict
    assert stream.certificate().full == 0
    assert claim.within


def test_beside_another_risk_f1_asks_for_no_more_than_its_bound() -> None:
    f1 = sp.Risk(F1Shortfall(), 0.3, sp.steps.Fixed(0.05), start=-0.5, bounds=(-1.0, -0.25))
    found = sp.Risk(FalseNegatives(), 0.1, sp.steps.Fixed(0.05))
    stream = sp.Stream(sp.Controller(Multilabel(), [f1, found]))
    for p, y in PRESENT[:1500]:
        stream.predict(p)
        stream.update(y)
    first, second = stream.certificate().risks
    assert first.mean > 0.3
    assert second.mean == pytest.approx(0.1, abs=0.01)  # which needs λ above −0.25 at times
    assert second.status == "guaranteed: not too many misses"


@dataclass(frozen=True)
class Turning:
    """A miss, of a loss that does not promise anything of the full set."""

    low, high, full, monotone = 0.0, 1.0, 1.0, False
    params = ()
    rule = staticmethod(miscoverage)

    def __call__(self, shown: Any, y: Any) -> float:
        return Miscoverage()(shown, y)


@pytest.mark.parametrize("stretch", [sp.stretches.Identity(), sp.stretches.Exponential()])
def test_a_replay_stays_within_the_bound_like_a_live_stream(stretch: Any) -> None:
    rng = np.random.default_rng(3)
    y = rng.normal(size=800) * np.where(np.arange(800) % 200 < 50, 40.0, 1.0)
    risk = sp.Risk(Turning(), 0.1, sp.steps.Fixed(0.2), bounds=(-1.0, 1.5))
    controller = sp.Controller(Widen(), risk, stretch)
    most = stretch.phi(stretch.params, stretch.init(), 1.5)
    tape = sp.Tape.from_arrays({"lower": np.full(800, -1.0), "upper": np.full(800, 1.0)}, y)
    stream, uppers = sp.Stream(controller), []
    for label in y:
        uppers.append(stream.predict((-1.0, 1.0)).upper)
        stream.update(label)
    trace = sp.replay(controller, tape)
    assert max(uppers) == pytest.approx(1.0 + most)
    assert trace.upper.tolist() == uppers
    assert trace.state.risks[0].theta == stream.theta > 1.5


def test_a_loss_that_turns_but_is_good_on_the_full_set_needs_no_bound() -> None:
    odd = Custom(lambda shown, y: 0.0 if shown.contains(y) else 1.0, monotone=False)
    stream = sp.Stream(sp.Controller(Multilabel(), sp.Risk(odd, 0.1, sp.steps.Fixed(0.05))))
    for p, y in PRESENT[:500]:
        stream.predict(p)
        stream.update(y)
    assert stream.certificate().risks[0].status == "guaranteed on both sides"
