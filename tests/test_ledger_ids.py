"""The closed ids of a ledger: none is forgotten too soon, none is taken for another."""

import random
from typing import Any

import numpy as np
import pytest

from setpoint.ledger import _ids
from setpoint.ledger._ids import ClosedIds

HOWS = ("answered", "missing", "dropped", "expired")


def closed(ids: Any, how: str = "answered") -> ClosedIds:
    made = ClosedIds()
    made.add(dict.fromkeys(ids, how))
    return made


def again(held: ClosedIds) -> ClosedIds:
    """The same after it was written and read."""
    return ClosedIds.unpacked(held.packed())


@pytest.mark.parametrize("seed", range(4))
def test_a_plain_dict_knows_the_same(seed: int) -> None:
    world = random.Random(seed)
    kinds = [
        lambda: world.randrange(300),
        lambda: world.randrange(-(2**63), 2**63),
        lambda: 60 * world.randrange(200),
        lambda: f"p{world.randrange(300)}",
        lambda: world.choice([2**60 - 1, 2**60, -(2**60), 2**70, "", "\ud800", "λ"]),
    ]
    held, known = ClosedIds(), {}
    for _ in range(60):
        fresh = {}
        for _ in range(world.randrange(1, 40)):
            id = world.choice(kinds)()
            if id not in known:
                fresh[id] = world.choice(HOWS) if world.random() < 0.2 else "answered"
        known |= fresh
        for id in fresh:
            held.issue(id)
        held.add(fresh)
        held = again(held) if world.random() < 0.3 else held
    for id, how in known.items():
        assert held.how(id) == how
    others = [kind() for kind in kinds for _ in range(300)]
    assert sum(id not in known for id in others) > 300
    for id in others:
        assert held.how(id) == known.get(id)


def test_numbers_that_follow_one_another_cost_nothing_however_late_some_are() -> None:
    world, held = random.Random(1), ClosedIds()
    waiting: list[int] = []
    for start in range(0, 200_000, 1000):
        waiting += range(start, start + 1000)
        world.shuffle(waiting)
        waiting, done = waiting[:50], waiting[50:]
        held.add(dict.fromkeys(done, "answered"))
    assert len(held.ranges) < 60
    held.add(dict.fromkeys(waiting, "answered"))
    assert held.ranges == [(0, 199_999)]
    assert held.packed().nbytes < 500_000
    assert all(held.how(id) == "answered" for id in range(0, 200_000, 997))


def test_of_other_ids_the_last_generation_is_always_known_and_memory_is_flat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_ids, "_GENERATION", 1000)
    held, most = ClosedIds(), 0
    for start in range(0, 20_000, 100):
        held.add({f"p{n}": "answered" for n in range(start, start + 100)})
        most = max(most, held.packed().nbytes)
        assert all(held.how(f"p{n}") for n in range(max(0, start - 900), start + 100, 50))
    assert held.how("p0") is None
    assert most < 2 * 1000 * 8 + 100


def test_rising_numbers_are_known_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ids, "_GENERATION", 1000)
    held = ClosedIds()
    for start in range(0, 20_000, 100):
        ids = [60 * n for n in range(start, start + 100)]
        for id in ids:
            held.issue(id)
        held.add(dict.fromkeys(ids, "answered"))
        held = again(held)
    assert all(held.how(60 * n) == "answered" for n in range(20_000))
    assert held.how(60 * 20_000) is None
    assert held.how(60 * 19_990 + 1) is None  # between two that are known: it was not used


def test_numbers_in_no_order_never_stand_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ids, "_GENERATION", 1000)
    world, held = random.Random(2), ClosedIds()
    used = world.sample(range(10**9), 20_000)
    for start in range(0, 20_000, 100):
        for id in used[start : start + 100]:
            held.issue(id)
        held.add(dict.fromkeys(used[start : start + 100], "answered"))
    assert all(held.how(id) == "answered" for id in used[-1000:])
    fresh = set(world.sample(range(10**9), 2000)) - set(used)
    assert not any(held.how(id) for id in fresh)


def test_how_an_id_ended_may_be_forgotten_before_the_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ids, "_GENERATION", 100)
    held = closed(range(100), "dropped")
    assert held.how(50) == "dropped"
    for start in range(0, 300, 50):
        held.add({f"p{n}": "answered" for n in range(start, start + 50)})
    assert held.how(50) == "closed"


def test_a_million_take_eight_bytes_each() -> None:
    held = ClosedIds()
    for start in range(0, 1_000_000, 250_000):
        held.add({f"p{n}": "answered" for n in range(start, start + 250_000)})
    assert held.packed().nbytes == pytest.approx(8_000_000, rel=0.001)
    assert all(held.how(f"p{n}") == "answered" for n in range(0, 1_000_000, 9_973))
    assert not any(held.how(f"q{n}") for n in range(1000))
    assert np.array_equal(again(held).packed(), held.packed())


def test_ranges_without_end_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ids, "_MOST_RANGES", 10)
    held = ClosedIds()
    for block in range(50):
        ids = range(100 * block, 100 * block + 20)
        for id in ids:
            held.issue(id)
        held.add(dict.fromkeys(ids, "answered"))
    assert len(held.ranges) == 10
    assert all(held.how(100 * block + 7) == "answered" for block in range(50))
