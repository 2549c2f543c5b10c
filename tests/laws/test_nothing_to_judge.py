"""Steps with nothing to judge: left out, or counted as zero with a guarantee on one side."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.combine import Max
from setpoint.losses import Custom
from setpoint.steps import Fixed
from tests.laws.adversary import adversaries
from tests.laws.late import play
from tests.laws.ledger import Ledger
from tests.laws.parts import Dial, dials, families, risks, stretches


@dataclass(frozen=True)
class Partial:
    """A loss that has nothing to judge on some labels, negative ones unless `empties` is set:
    then it has nothing to judge on every empty set.
    """

    loss: Dial
    empties: bool = False

    def __getattr__(self, name: str) -> Any:
        if name in ("low", "high", "full", "empty", "grows"):
            return getattr(self.loss, name)
        raise AttributeError(name)

    def __call__(self, shown: Any, y: float) -> float | None:
        nothing = shown.empty if self.empties else y < 0.0
        return None if nothing else self.loss(shown, y)


@st.composite
def partial(draw: Any, unjudged: str) -> sp.Controller:
    sets = draw(families())
    loss = draw(dials(sets.support, may_grow=True).filter(lambda loss: loss.low <= 0 <= loss.high))
    risk = draw(risks(Partial(loss, draw(st.booleans()))))
    return sp.Controller(sets, replace(risk, unjudged=unjudged), draw(stretches()))


@given(partial("skip"), adversaries(), st.integers(1, 100))
def test_steps_left_out_keep_every_bound(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    ledger = play(controller, adversary, steps)
    ledger.hold_range()
    (risk,) = ledger.stream.certificate().risks
    assert risk.judged + risk.unjudged == steps
    assert None not in (risk.constant_lower, risk.constant_upper, risk.window)


@given(partial("zero"), adversaries(), st.integers(1, 100))
def test_steps_counted_as_zero_keep_what_the_certificate_claims(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    ledger = play(controller, adversary, steps)
    (risk,), (held,) = ledger.stream.certificate().risks, controller.risks
    assert risk.judged == steps
    # Zeros only lower the mean of a level above 0, and only raise that of a level below.
    if held.level >= 0.0:
        assert risk.upper is not None
    if held.level <= 0.0:
        assert risk.lower is not None


def none_if_empty(shown: Any, y: float) -> float | None:
    """Nothing to judge on the empty set, and no loss anywhere else."""
    return None if shown.empty else 0.0


def none_if_full(shown: Any, y: float) -> float | None:
    """Nothing to judge on the full set, and no loss anywhere else."""
    return None if shown.upper == float("inf") else 0.0


def test_zeros_on_the_empty_set_cost_the_lower_bound() -> None:
    risk = sp.Risk(Custom(none_if_empty), 0.5, Fixed(1.0), 0.0, (-2.0, 2.0), unjudged="zero")
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    for _ in range(20):
        stream.predict((0.0, 1.0))
        stream.update(0.5)
    (claim,) = stream.certificate().risks
    assert claim.upper is not None
    assert (claim.lower, claim.window) == (None, None)
    assert claim.verdict != "guaranteed on both sides"
    assert "BROKEN" not in claim.verdict


def test_zeros_on_the_full_set_cost_the_bound_that_a_growing_loss_has_there() -> None:
    loss = Custom(none_if_full, grows=True)
    risk = sp.Risk(loss, 0.5, Fixed(1.0), 0.0, (-2.0, 2.0), unjudged="zero")
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    for _ in range(20):
        stream.predict((0.0, 1.0))
        stream.update(0.5)
    (claim,) = stream.certificate().risks
    assert claim.mean == 0.0
    assert (claim.lower, claim.window) == (None, None)
    assert "BROKEN" not in claim.verdict


@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_zeros_on_the_empty_set_cost_the_windows_of_anti_windup(delta: float) -> None:
    def after_a_while(shown: Any, y: float) -> float | None:
        return None if shown.empty and y < 0.0 else float(y > 0.0 and shown.upper < float("inf"))

    risk = sp.Risk(Custom(after_a_while), 0.5, Fixed(1.0), 0.0, (-2.0, 2.0), unjudged="zero")
    controller = sp.Controller(sp.sets.Widen(), (risk, risk), combine=Max(anti_windup=delta))
    stream = sp.Stream(controller)
    ledger = Ledger(stream)
    for y in [-1.0] * 100 + [1.0] * 150:
        stream.predict((0.0, 1.0))
        ledger.note(stream.update(y))
        ledger.hold_claims()
    ledger.hold_windows()
