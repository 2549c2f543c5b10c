"""The account at its seams: segments, carried states, two sides, growing losses, groups."""

from dataclasses import dataclass, replace
from math import inf, nan
from random import Random
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError
from setpoint.sets import Widen
from setpoint.steps import Account


def held(step: Any, level: float = 0.1, loss: Any = None) -> sp.Controller:
    return sp.Controller(Widen(), sp.Risk(loss or sp.losses.Miscoverage(), level, step))


def late(stream: sp.Stream, rows: int, delay: int, miss: bool, first: int = 0) -> float:
    """Rows whose labels come late, all misses or none, but where the set is full: Σ(l − r)."""
    total = 0.0
    for row in range(first, first + rows):
        stream.predict((0.0, 1.0), id=row)
        if row - delay in stream.pending:
            shown = stream.pending[row - delay].shown
            full = shown.upper == inf
            y = 0.5 if full or not miss else 1e9
            total += stream.update(y, id=row - delay) - 0.1
    return total


def test_what_is_promised_after_a_change_holds_as_long_as_labels_wait_as_before() -> None:
    stream = sp.Stream(held(Account()))
    late(stream, 400, 24, miss=False)
    stream.change(step=Account(gain=0.2))
    (risk,) = stream.certificate().risks
    total = late(stream, 400, 24, miss=True, first=400)
    assert total <= risk.bound.from_now
    assert risk.habit == pytest.approx(24.0, abs=0.5)


def test_what_is_promised_of_a_carried_state_holds_too() -> None:
    stream = sp.Stream(held(Account()))
    late(stream, 800, 24, miss=False)
    carried = sp.Stream(held(Account(gain=0.2)), state=stream.state)
    (risk,) = carried.certificate().risks
    assert late(carried, 600, 0, miss=True) <= risk.bound.from_now


def test_one_side_and_two_sides_are_different_things() -> None:
    one, two = sp.intervals(), sp.intervals(two_sided=True)
    stream = sp.Stream(one)
    late(stream, 100, 24, miss=False)
    with pytest.raises(InputError, match="it was made by another controller"):
        sp.Stream(two, state=stream.state)
    with pytest.raises(InputError, match="stays two-sided"):
        stream.change(step=Account(two_sided=True))
    stream = sp.Stream(two)
    stream.predict((0.0, 1.0))
    with pytest.raises(InputError, match="changed while nothing waits"):
        stream.change(level=0.2)
    with pytest.raises(InputError, match="every label before the next prediction"):
        stream.predict((0.0, 1.0))
    stream.update(0.5)
    stream.change(level=0.2)
    with pytest.raises(InputError, match="a two-sided account promises not too few"):
        sp.Stream(two).predict((0.0, 1.0), groups=("north",))
    tape = sp.Tape.from_arrays({"lower": [0.0] * 9, "upper": [1.0] * 9}, [0.5] * 9, delay=2)
    for run in (sp.replay, lambda c, t: sp.sweep([c], t)):
        with pytest.raises(InputError, match="every label before the next prediction"):
            run(two, tape)
    fleet = sp.Fleet(two, 2)
    fleet.predict((np.zeros(2), np.ones(2)))
    with pytest.raises(InputError, match="every label before the next prediction"):
        fleet.predict((np.zeros(2), np.ones(2)))
    with pytest.raises(InputError, match="every label before the next prediction"):
        sp.Fleet(two, 1).run((np.zeros((5, 1)), np.ones((5, 1))), np.zeros((5, 1)), delay=1)


@dataclass(frozen=True)
class Held:
    """A loss that grows with the set: whether it holds y."""

    low, high, full, empty, grows = 0.0, 1.0, 1.0, 0.0, True

    def __call__(self, shown: Any, y: float) -> float:
        return float(shown.contains(y))


def test_of_a_loss_that_grows_the_window_is_bounded_from_below() -> None:
    stream = sp.Stream(held(Account(), 0.5, Held()))
    for _ in range(200):
        stream.predict((-10.0, 10.0))
        stream.update(0.0)
    (risk,) = stream.certificate().risks
    assert (risk.window_sided, risk.constant_upper) == ("lower", None)
    assert risk.excess == pytest.approx(100.0)
    assert "below 0.5 a label" in risk.words()["any window"]


@dataclass(frozen=True)
class Dear:
    """A loss that the full set does not bring down to 0."""

    low, high, full, empty = 0.0, 1.0, 0.2, 1.0

    def __call__(self, shown: Any, y: float) -> float:
        return 0.2 if shown.contains(y) else 1.0


def test_an_account_that_can_hold_nothing_is_refused() -> None:
    with pytest.raises(InputError, match=r"is 0.2 there, and the level 0.1"):
        held(Account(), loss=Dear())
    with pytest.raises(InputError, match="would charge the account"):
        sp.Controller(Widen(), sp.Risk(Held(), 0.5, Account(), unjudged="zero"))
    with pytest.raises(InputError, match="has its own limit: leave out bounds"):
        sp.Controller(Widen(), sp.Risk(sp.losses.Miscoverage(), 0.1, Account(), bounds=(-9, 9)))
    with pytest.raises(InputError, match="a loss with a limit"):
        held(Account(), loss=sp.losses.MiscoverageCounter())


def test_a_step_rule_of_another_kind_does_not_take_a_memory_over() -> None:
    stream = sp.Stream(held(sp.published.SFOGD(0.5)))
    stream.predict((0.0, 1.0))
    stream.update(5.0)
    with pytest.raises(InputError, match="it was made by another controller"):
        sp.Stream(held(sp.published.Decaying(0.5)), state=stream.state)


def test_after_a_reset_an_id_may_come_again_and_teach() -> None:
    stream = sp.Stream(sp.intervals())
    stream.predict((0.0, 1.0))
    stream.reset()
    stream.update(0.5)
    stream.predict((0.0, 1.0), id=0)
    before = stream.state.memory
    stream.update(0.5, id=0)
    assert stream.state.memory != before


@dataclass(frozen=True)
class Lost:
    """A stretch that loses its way."""

    params = ()
    move = None

    @staticmethod
    def phi(params: Any, memory: Any, theta: float) -> float:
        return nan if theta > 0.05 else theta

    def init(self) -> tuple[float, ...]:
        return ()

    def inverse(self, lam: float, memory: Any) -> float:
        return lam


def test_a_size_that_is_no_number_is_refused_in_bulk_as_it_is_live() -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5))
    controller = sp.Controller(Widen(), risk, Lost())
    stream, fleet = sp.Stream(controller), sp.Fleet(controller, 1)
    stream.predict((0.0, 1.0))
    stream.update(5.0)
    fleet.predict((np.zeros(1), np.ones(1)))
    fleet.update(np.array([5.0]))
    with pytest.raises(InputError, match="must be a number"):
        stream.predict((0.0, 1.0))
    with pytest.raises(InputError, match="must be a number"):
        fleet.predict((np.zeros(1), np.ones(1)))
    tape = sp.Tape.from_arrays({"lower": np.zeros(3), "upper": np.ones(3)}, np.full(3, 5.0))
    with pytest.raises(InputError, match="must be a number"):
        sp.replay(controller, tape)


def test_a_certificate_says_since_when() -> None:
    stream = sp.Stream(sp.intervals())
    for _ in range(30):
        stream.predict((0.0, 1.0))
        stream.update(0.5)
    stream.change(level=0.2)
    stream.predict((0.0, 1.0))
    stream.update(0.5)
    told = stream.certificate()
    assert "since the last change" in " ".join(told.as_dict()["risks"][0]["words"])
    assert "since the start" not in str(told)


def test_a_lowered_limit_is_reached_by_paying_and_not_by_full_sets() -> None:
    """An account beyond a new limit owes the excess, and what is guaranteed says so."""
    rng = Random(4)
    stream = sp.Stream(held(Account(limit=40.0)))
    while stream.theta < 30.0:
        shown = stream.predict((-1.0, 1.0))
        stream.update(shown.upper + 1.0)
    before = stream.theta
    stream.change(step=replace(stream.controller.risks[0].step, limit=5.0))
    assert stream.certificate().risks[0].bound.from_now < 40.0 + 0.9 - 5.0
    lengths = []
    for _ in range(1500):
        shown = stream.predict((-1.0, 1.0))
        lengths.append(shown.length)
        stream.update(rng.gauss(0.0, 1.0))
    assert lengths[:10].count(inf) == 0
    assert lengths.count(inf) < 128  # it would be 256 in a row
    risk = stream.certificate().risks[0]
    assert risk.account < 6.0 < before
    assert risk.bound.from_now + risk.first == pytest.approx(5.9)
