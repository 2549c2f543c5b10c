"""The live step of one risk, written by hand, is the recursion: the same numbers to the bit."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.laws import Laws, aim_one, learn_one
from setpoint.losses import Custom, Miscoverage, MiscoverageCounter
from tests.laws.adversary import Adversary, adversaries
from tests.laws.bulk import numbers_of
from tests.laws.claims import Toward
from tests.laws.learning import Shifted
from tests.laws.parts import risks, single, stretches


def hold_both_steps(controller: sp.Controller, adversary: tuple[str, int], steps: int) -> None:
    """One state moved by the live step, another by the recursion."""
    by_hand, general = controller.init(), controller.init()
    one, laws = Laws(controller, by_hand.sets), Laws(controller, general.sets)
    law, player = one.each[0], Adversary(controller, *adversary)
    family: Any = controller.sets
    for _ in range(steps):
        sets = family if by_hand.sets is None else by_hand.sets
        reading = sets.read(player.prediction())
        if law.learns:
            reading = sets.prepare(sets.params, by_hand.family, reading)
        lam = aim_one(law, by_hand.risks[0], by_hand.stretch)
        assert laws.aim(general) == (lam, 0)
        shown = sets.at(reading, lam)
        y = player.label(SimpleNamespace(theta=by_hand.risks[0].theta), shown)
        value = learn_one(law, by_hand.risks[0], by_hand, reading, shown, lam, y)
        assert laws.learn(general, reading, shown, lam, 0, y) == (value,)
        assert numbers_of(by_hand) == numbers_of(general)


@given(single(), adversaries(), st.integers(1, 80))
def test_the_live_step_is_the_recursion(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    hold_both_steps(controller, adversary, steps)


def mostly(shown: Any, y: float) -> float | None:
    """Nothing to judge where y is negative."""
    return None if y < 0.0 else float(not shown.contains(y))


RISK = sp.Risk(Miscoverage(), 0.2, sp.steps.Fixed(0.3), bounds=(-1.5, 1.5))
OTHERS = {
    "a rule that asks for critical values": sp.Controller(
        sp.sets.Widen(), sp.Risk(Miscoverage(), 0.2, Toward(0.3), bounds=(-1.5, 1.5))
    ),
    "a score window": sp.Controller(
        sp.sets.ScoreWindow(sp.sets.Widen(), 7), sp.Risk(Miscoverage(), 0.2, sp.steps.Fixed(0.1))
    ),
    "nothing to judge": sp.Controller(
        sp.sets.Widen(), sp.Risk(Custom(mostly), 0.2, sp.steps.Fixed(0.3), bounds=(-1.5, 1.5))
    ),
    "nothing to judge counts as 0": sp.Controller(
        sp.sets.Widen(),
        sp.Risk(Custom(mostly), 0.2, sp.steps.Fixed(0.3), bounds=(-1.5, 1.5), unjudged="zero"),
    ),
    "label sets": sp.Controller(
        sp.sets.Threshold(), sp.Risk(MiscoverageCounter(), 0.2, sp.steps.Fixed(0.1))
    ),
}


@pytest.mark.parametrize("controller", OTHERS.values(), ids=OTHERS)
@given(adversary=adversaries(), steps=st.integers(1, 80))
def test_the_live_step_is_the_recursion_whatever_the_parts(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    hold_both_steps(controller, adversary, steps)


@given(risks(Miscoverage()) | risks(MiscoverageCounter()), stretches(), adversaries())
def test_the_live_step_of_a_family_that_learns_is_the_recursion(
    risk: sp.Risk, stretch: Any, adversary: tuple[str, int]
) -> None:
    hold_both_steps(sp.Controller(Shifted(), risk, stretch), adversary, 60)
