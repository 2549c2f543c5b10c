"""Algorithm 1 of the paper, written once: θ → λ → set, then loss → θ.

    λ   = combine(φ(θ_i) for each risk i)      full set if some θ_i > M_i, empty if every θ_i < m_i
    set = ends(base, λ)                        shown, kept until y arrives
    l_i = loss_i(set, y)
    θ_i = step_i(θ_i, l_i − r_i)               the paper: θ_i + γ_i (l_i − r_i)
    φ   = move(φ)                              adaptive stretching only, once a step

`recursion` makes `aim` and `learn` of the rules of a controller, closures over plain functions.
Live streams call them as they stand; compiled loops capture the same objects. Several risks are a
chain: each link handles its own risk, `risks[0]`, and hands `risks[1:]` on, because compiled code
cannot look a rule up by a number.

A position is (risks, memory of the stretch, waited), a risk the tuple of `RiskState`; `waited` is
the most other predictions that ever waited when a set was made. `numbers` are (risks, params of the
stretch, δ), a risk (level, m, M, params of loss, params of step). What cannot be judged is NaN.
"""

from collections.abc import Callable
from math import inf, nan
from typing import Any, NamedTuple

__all__ = ["TORN", "Link", "Memory", "RiskState", "recursion", "show"]

Memory = tuple[float, ...]
"""What a part remembers."""
Mark = Callable[[Any], Any]

TORN = -1
"""In place of the leading risk: one asked for the full set, another was below its bound."""


class RiskState(NamedTuple):
    """Where one risk stands: θ, and the memories of its loss and its step rule.

    Since its segment began: `first`, the θ it began with; `judged` and `total`, the number of
    losses and their sum; `unjudged`, how often there was nothing to judge; `lifts` and `lifted`,
    how often and how far θ was raised to its floor or by anti-windup.
    """

    theta: float
    first: float
    judged: float
    unjudged: float
    total: float
    lifts: float
    lifted: float
    loss: Memory
    step: Memory


class Link(NamedTuple):
    """The rules of one risk.

    `judge(params, memory, evidence)` gives the loss, NaN if there is nothing to judge, and the next
    memory; `zero` says that such a step counts as a loss of 0. `score(base, y)` is the critical
    value of y, for a step rule that asks for it (`scored`) and for the stretch.
    """

    judge: Any
    step: Any
    score: Any
    least: Any = None
    grows: bool = False
    scored: bool = False
    zero: bool = False


def recursion(
    links: tuple[Link, ...],
    phi: Any,
    move: Any,
    merge: Any,
    *,
    scored: bool,
    always: bool,
    some: bool,
    near: bool,
    split: bool,
    mark: Mark,
) -> tuple[Any, Any]:
    """`aim` and `learn` of a controller; `mark` is what a compiler wants done with each closure."""
    several, floored = len(links) > 1, near or any(link.least for link in links)
    look: Any = None
    answer: Any = None
    lift: Any = None
    for place in reversed(range(len(links))):
        look = mark(_looking(phi, place, split, not several, look))
        answer = mark(_answering(mark(_judging(links[place], scored)), place, split, answer))
        lift = mark(_lifting(links[place].least, mark, lift))

    def aim(numbers: Any, position: Any, others: float) -> Any:
        """θ → λ, ±inf where the safeguard chooses; and the risk that asks for the largest set."""
        risks, memory, waited = position
        waited = others if others > waited else waited
        above, low, below, leader, _, lams = look(numbers[0], numbers[1], risks, memory, waited)
        if split:  # every risk has its own set
            return (risks, memory, waited), lams, 0
        below = low if some else below
        lam = merge(lams) if several else lams[0]
        lam = inf if above else (-inf if below else lam)
        return (risks, memory, waited), lam, TORN if above & low else leader

    def learn(
        numbers: Any, position: Any, base: Any, evidence: Any, y: Any, lam: Any, leader: int
    ) -> Any:
        """Losses → θ → φ: the next position, and the loss of each risk."""
        risks, memory, waited = position
        risks, values, heard, highest, pull, score, calm = answer(
            numbers[0], risks, base, evidence, y, leader, 0.0
        )
        if move is not None:
            at = 0.0 if split else lam
            pull = pull / len(values) if split else pull
            if calm & (always | ((at < inf) & (at > -inf))):
                memory = move(numbers[1], memory, pull, score, at, waited)
        if floored:
            floor = highest - numbers[2] if near else -inf
            risks = lift(numbers[0], risks, heard, floor, waited)
        return (risks, memory, waited), values

    return mark(aim), mark(learn)


# The links: one risk, then the others.


def _looking(phi: Any, place: int, split: bool, alone: bool, rest: Any) -> Any:
    """Of each risk whether θ is above or below its bounds, and λ; and who asks for the largest."""

    def look(each: Any, params: Any, risks: Any, memory: Memory, waited: float) -> Any:
        _, bottom, top, _, _ = each[0]
        theta = risks[0][0]
        above, below = theta > top, theta < bottom
        if (split | alone) & (above | below):  # φ is asked within the bounds only
            lam = inf if above else -inf
        else:
            lam = phi(params, memory, theta, waited)
        if rest is None:
            return above, below, below, place, lam, (lam,)
        full, low, empty, leader, largest, lams = rest(each[1:], params, risks[1:], memory, waited)
        leads = lam >= largest
        leader, largest = place if leads else leader, lam if leads else largest
        return full | above, low | below, empty & below, leader, largest, (lam,) + lams  # noqa: RUF005

    return look


def _judging(link: Link, stretch_scored: bool) -> Any:
    """The loss of one risk, and where the risk stands after it."""
    judge, step, score, _, grows, scored, zero = link

    def judging(numbers: Any, risk: Any, base: Any, evidence: Any, y: Any, leads: bool) -> Any:
        level, _, _, judge_params, step_params = numbers
        theta, first, judged, unjudged, total, lifts, lifted, loss, kept = risk
        value, remembered = judge(judge_params, loss, evidence)
        if value != value:
            unjudged, value = unjudged + 1.0, 0.0 if zero else nan
        excess, critical = level - value if grows else value - level, 0.0
        if value == value:
            if scored | (stretch_scored & leads):
                critical = score(base, y)
            theta, kept = step(step_params, theta, kept, excess, critical)
            judged, total, loss = judged + 1.0, total + value, remembered
        risk = (theta, first, judged, unjudged, total, lifts, lifted, loss, kept)
        return risk, value, excess, critical

    return judging


def _answering(judging: Any, place: int, split: bool, rest: Any) -> Any:
    """Every risk after a label, and what the stretch learns from: the leading risk's excess."""

    def answer(
        each: Any, risks: Any, base: Any, evidence: Any, y: Any, leader: int, pulled: float
    ) -> Any:
        leads = (leader == place) | ((leader < 0) & (place == 0))
        risk, value, excess, critical = judging(each[0], risks[0], base, evidence, y, leads)
        seen = value == value
        excess = excess if seen else 0.0
        pulled = pulled + excess if split else excess  # no set leads: all of them count
        if rest is None:
            return (risk,), (value,), seen, risk[0], pulled, critical, seen
        others, values, heard, highest, pull, score, calm = rest(
            each[1:], risks[1:], base, evidence, y, leader, pulled
        )
        heard, highest = heard | seen, risk[0] if risk[0] > highest else highest
        if split:
            calm = heard
        elif leads:
            pull, score, calm = excess, critical, seen
        return (risk,) + others, (value,) + values, heard, highest, pull, score, calm  # noqa: RUF005

    return answer


def _lifting(least: Any, mark: Mark, rest: Any) -> Any:
    """Risks whose θ is lifted where it fell below its floor, or too far below the largest θ."""
    floor_of = mark(_bottomless) if least is None else least

    def lift(each: Any, risks: Any, heard: bool, near: float, waited: float) -> Any:
        theta, first, judged, unjudged, total, lifts, lifted, loss, kept = risks[0]
        floor = floor_of(each[0][4], waited)
        floor = near if near > floor else floor
        if heard & (theta < floor):
            lifts, lifted, theta = lifts + 1.0, lifted + (floor - theta), floor
        risk = (theta, first, judged, unjudged, total, lifts, lifted, loss, kept)
        if rest is None:
            return (risk,)
        return (risk,) + rest(each[1:], risks[1:], heard, near, waited)  # noqa: RUF005

    return lift


def _bottomless(_params: Memory, _waited: float) -> float:
    return -inf


def show(ends: tuple[float, float], lam: float, low: float, high: float) -> tuple[float, float]:
    """Ends as they are shown: cut to the support; crossed ends are the empty interval."""
    lower, upper = ends
    lower, upper = low if lower < low else lower, high if upper > high else upper
    empty = (lam == -inf) | ((lam < inf) & (lower > upper))
    lower = low if lam == inf else (inf if empty else lower)
    upper = high if lam == inf else (-inf if empty else upper)
    return lower, upper
