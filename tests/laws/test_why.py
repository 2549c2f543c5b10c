"""Statements of docs/why.md that no other law attacks: shrinking steps, budgets of groups."""

from collections import defaultdict
from math import inf, sqrt
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.losses import Miscoverage
from setpoint.published import SFOGD, Decaying
from setpoint.sets import Widen
from tests.laws.adversary import Adversary, adversaries
from tests.laws.late import Clerk, Habit, delayed, habits

RULES = st.one_of(
    st.builds(
        Decaying,
        st.sampled_from([0.3, 2.0]),
        st.sampled_from([0.5, 0.9]),
        st.sampled_from([0.0, 0.05, 0.5]),
    ),
    st.builds(SFOGD, st.sampled_from([0.3, 2.0])),
)


def moves(step: Any, level: float, excesses: list[float]) -> tuple[float, float, float]:
    """How far one label moves θ down and up at the most, and the last step size, by hand."""
    if isinstance(step, SFOGD):
        most = step.scale / sqrt(3.0)
        return most, most, most / sqrt(sum(c * c for c in excesses))
    last = step.scale * max(len(excesses) ** -step.power, step.floor)
    return step.scale * level, step.scale * (1.0 - level), last


@given(
    RULES, st.sampled_from([0.1, 0.4]), st.sampled_from([None, 0.0, 1.0]), adversaries(), habits(),
    st.integers(1, 150),
)  # fmt: skip
def test_no_adversary_breaks_the_bound_of_shrinking_steps(
    step: Any, level: float, delta: float | None, adversary: tuple[str, int], habit: Habit,
    events: int,
) -> None:  # fmt: skip
    """One risk, or two with lifts, whose labels are late."""
    low, high, start = -1.0, 2.0, 0.5
    held = [sp.Risk(Miscoverage(), level, step, start, (low, high))]
    if delta is not None:
        held.append(sp.Risk(Miscoverage(), level / 2.0, step, start, (low, high)))
    combine = None if delta is None else sp.combine.Max(anti_windup=delta)
    controller = sp.Controller(Widen(), held, combine=combine)
    stream = delayed(controller, habit)
    clerk = Clerk(stream, Adversary(controller, *adversary), habit, adversary[1])
    excesses: list[list[float]] = [[] for _ in held]
    for _ in range(events):
        event = clerk.event()
        if event.what != "update":
            continue
        losses = event.losses if isinstance(event.losses, tuple) else (event.losses,)
        for own, loss, risk in zip(excesses, losses, held, strict=True):
            own.append(loss - risk.level)
        certificate = stream.certificate()
        bottom = min(low - certificate.most_pending * moves(step, r.level, e)[0]
                     for r, e in zip(held, excesses, strict=True))  # fmt: skip
        for own, risk, claim in zip(excesses, held, certificate.risks, strict=True):
            down, up, size = moves(step, risk.level, own)
            top = high + certificate.most_pending * up
            least = low - certificate.most_pending * down
            if delta is not None:
                least = min(bottom - delta, start)
            bound = (top - least) / size
            assert abs(claim.constant_upper - bound) <= 1e-9 * bound
            assert sum(own) <= bound + 1e-9
            assert (claim.constant_lower is None) == (delta is not None)
            if delta is None:
                sums, ways = 0.0, [0.0]
                for excess in own:
                    sums += excess
                    ways.append(sums)
                assert max(abs(ways[-1] - way) for way in ways) <= bound + 1e-9
            assert claim.within


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.booleans(), st.integers(0, 3)), max_size=250),
    st.sampled_from([4.0, 10.0]),
)
def test_an_adversary_cannot_break_the_budget_of_a_group_or_of_all(
    rows: list[tuple[str, bool, int]], limit: float
) -> None:
    """Every row is answered some rows later, by a label that misses whenever one can."""
    stream = sp.Stream(sp.intervals(0.9, limit=limit))
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0])
    waiting: list[tuple[int, str, float]] = []
    for row, (key, miss, late) in enumerate(rows):
        shown = stream.predict((-1.0, 1.0), id=row, groups=(key,))
        inside = 0.0 if shown.contains(0.0) else min(max(0.0, shown.lower), shown.upper)
        waiting.append((row, key, shown.upper + 1.0 if miss and shown.upper < inf else inside))
        while len(waiting) > late:
            id, own, y = waiting.pop(0)
            sums[own].append(sums[own][-1] + float(stream.update(y, id=id)) - 0.1)
        certificate = stream.certificate()
        for name, ways in sums.items():
            (claim,) = certificate.groups[name]
            assert ways[-1] <= claim.bound.since_start + 1e-9
            assert ways[-1] - min(ways) <= claim.bound.window + 1e-9
            assert claim.bound.since_start <= limit + 4.0 * 3.0 + 4.0 * 0.9 + 1e-9
        (together,) = certificate.risks
        assert sum(ways[-1] for ways in sums.values()) <= together.bound.since_start + 1e-9
        assert together.within
