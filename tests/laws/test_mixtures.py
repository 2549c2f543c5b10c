"""Whatever parts are mixed: the mixture is refused, or keeps its certificate in every mode."""

import os
from collections import Counter
from math import inf
from typing import Any

import pytest

from setpoint import plan as plan_module
from setpoint import recursion
from setpoint.controller import Controller
from setpoint.plan import Plan
from setpoint.sets import Interval, Multiplied, Widen
from setpoint.state import State
from setpoint.steps import Account
from tests.laws.mixtures import play

CHUNK = 100


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows, many controllers: nothing is worth compiling."""
    monkeypatch.setenv("SETPOINT_PLAIN", "1")


@pytest.mark.parametrize("chunk", range(6))
def test_a_mixture_is_refused_or_keeps_its_certificate(chunk: int) -> None:
    verdicts = Counter(play(seed) for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK))
    assert verdicts["kept"] > CHUNK // 3
    assert verdicts["refused"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(40))
def test_a_hundred_thousand_mixtures_keep_their_certificates(chunk: int) -> None:
    count = int(os.environ.get("SETPOINT_MIXTURES", "100000")) // 40
    for seed in range(1_000_000 + chunk * count, 1_000_000 + (chunk + 1) * count):
        play(seed)


def test_an_end_at_the_support_does_not_round_beyond_it() -> None:
    assert play(1_055_900) == "kept"  # one in 70,000 mixtures showed it


# That it can fail: faults planted into the library, each of which is found.


def found(seeds: int = 600) -> bool:
    """Whether some mixture breaks."""
    for seed in range(seeds):
        try:
            play(seed)
        except Exception:
            return True
    return False


def test_nothing_is_found_where_no_fault_is_planted() -> None:
    assert not found(50)


def test_a_bound_that_is_too_small_by_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Account.claim

    def wrong(self: Any, *arguments: Any) -> Any:
        claim = right(self, *arguments)
        return claim._replace(upper=None if claim.upper is None else claim.upper - 1.0)

    monkeypatch.setattr(Account, "claim", wrong)
    assert found()


def test_terms_without_the_step_rule_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Any = Controller.__dict__["terms"].fget

    def wrong(self: Controller) -> Any:
        return tuple(
            tuple(part for part in term if not isinstance(part, tuple | str))
            if isinstance(term, tuple)
            else term
            for term in right(self)
        )

    monkeypatch.setattr(Controller, "terms", property(wrong))
    assert found(4_000)


def test_waiting_that_is_not_counted_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(State, "peak", property(lambda self: 1, lambda self, value: None))
    assert found()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("dropped", lambda book, full: (book[0] - 1.0, *book[1:])),
        ("opened", lambda book, full: (book[0] + 1.0, *book[1:])),
    ],
)
def test_a_book_that_is_kept_wrong_is_found(
    name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Account, name, staticmethod(wrong))
    assert found()


def test_a_group_that_does_not_hear_of_drops_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Plan.give_up

    def wrong(self: Plan, position: Any, lam: Any, named: Any, groups: Any) -> Any:
        return right(self, position, lam, (), groups)

    monkeypatch.setattr(Plan, "give_up", wrong)
    assert found()


def test_a_group_that_is_not_asked_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = recursion._widening

    def wrong(split: bool, rest: Any) -> Any:
        widen = right(split, None if rest is None else rest)
        return lambda lams, above, below, others: widen(
            lams, above, below, tuple([min(other, 1e300) for other in others])
        )

    monkeypatch.setattr(recursion, "_widening", wrong)
    plan_module._shared.cache_clear()
    try:
        assert found()
    finally:
        plan_module._shared.cache_clear()


@pytest.mark.parametrize("family", [Widen, Multiplied])
def test_a_clipped_full_set_is_found(family: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = family.at

    def wrong(self: Any, reading: Any, lam: float) -> Any:
        return Interval(-1e3, 1e3) if lam == inf else right(self, reading, lam)

    monkeypatch.setattr(family, "at", wrong)
    assert found()


def test_ends_in_the_wrong_order_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Multiplied.at

    def wrong(self: Any, reading: Any, lam: float) -> Any:
        shown = right(self, reading, lam)
        if not (-inf < shown.lower < shown.upper < inf):
            return shown
        return Interval(shown.upper, shown.lower)

    monkeypatch.setattr(Multiplied, "at", wrong)
    assert found()
