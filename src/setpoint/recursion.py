"""Algorithm 1 of the paper, written once: θ → λ → set, then loss → θ.

    λ   = combine(φ(θ_i) for each risk i)      full set if some θ_i > M_i, empty if every θ_i < m_i
    set = ends(reading, λ)                     shown, kept until y arrives
    l_i = loss_i(set, y)
    θ_i = step_i(θ_i, l_i − r_i)               the paper: θ_i + γ_i (l_i − r_i)
    φ   = move(φ)                              adaptive stretching only, once a step

One text serves one risk, several risks that share a set, and risks with a set each. Live streams
call it as it stands. `bulk.compile` makes machine code from it, so it keeps to what a compiler can
unroll: `rules` is known before anything runs, loops go over `rules.risks`, and a choice is a
conditional expression. A label that is not there, or has nothing to judge, is NaN: nothing moves.
"""

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

__all__ = ["TORN", "Numbers", "Position", "Rules", "aim", "heed", "judge", "learn", "show", "turn"]

Memory = tuple[float, ...]
Memories = tuple[Memory, ...]

TORN = -1
"""In place of the leading risk: one asked for the full set, another was below its bound."""


class Rules(NamedTuple):
    """What the parts of a controller do: pure functions, and facts that never change.

    `risks` is `range(number of risks)`. `judge` and `step` have one rule for each risk, and `grows`
    says which loss grows with the set. `some` is `combine.empty_if == "some"`, `split` that every
    risk has its own set, `lifts` that there is anti-windup, `scored` that some rule asks for the
    critical value of y, `cuts` that the support is bounded. `move`, `prepare` and `observe` are
    None where the stretch does not adapt and the family does not learn; `phase` and `turn` where it
    has no season. `always` says that the
    stretch also moves where the safeguard chose the set. `floor` has, for each risk, what θ may not
    fall below, and `heed_step`, `heed_stretch` and `heed_family` tell parts how many other
    predictions wait; None where a part does not ask. `judge`, `ends`, `score` and `sound` are those
    of scalar parts, else None.
    """

    risks: Sequence[int]
    columns: Sequence[int]
    phi: Any
    move: Any
    merge: Any
    step: tuple[Any, ...]
    grows: tuple[bool, ...]
    floor: tuple[Any, ...]
    heed_step: tuple[Any, ...]
    heed_stretch: Any = None
    heed_family: Any = None
    judge: tuple[Any, ...] | None = None
    ends: Any = None
    score: Any = None
    sound: Any = None
    prepare: Any = None
    observe: Any = None
    phase: Any = None
    turn: Any = None
    some: bool = False
    split: bool = False
    lifts: bool = False
    floored: bool = False
    heeds: bool = False
    turns: bool = False
    always: bool = False
    scored: bool = False
    cuts: bool = False


class Numbers(NamedTuple):
    """The numbers of a controller: parameters of its rules, levels, bounds, δ, the support."""

    phi: Memory
    level: Memory
    bottom: Memory
    top: Memory
    step: Memories
    judge: Memories
    family: Memory
    delta: float
    support: tuple[float, float]
    outward: tuple[float, float]


class Position(NamedTuple):
    """Where a controller stands: each risk's θ and memories, and what its parts remember.

    `total` is the sum of each risk's losses; `lifts` and `lifted` say how often and how far
    anti-windup raised its θ.
    """

    theta: Memory
    step: Memories
    loss: Memories
    stretch: Memory
    family: Memory
    total: Memory
    lifts: Memory
    lifted: Memory


def aim(rules: Rules, numbers: Numbers, position: Position) -> tuple[Any, int]:
    """θ → λ, ±inf where the safeguard chooses; and the risk that asks for the largest set.

    Where every risk has its own set there is a λ for each.
    """
    theta = position.theta
    above = tuple([theta[i] > numbers.top[i] for i in rules.risks])
    below = tuple([theta[i] < numbers.bottom[i] for i in rules.risks])
    lams = tuple([rules.phi(numbers.phi, position.stretch, theta[i]) for i in rules.risks])
    if rules.split:
        return tuple([
            inf if above[i] else (-inf if below[i] else lams[i]) for i in rules.risks
        ]), 0  # fmt: skip
    full, low, empty = above[0], below[0], below[0]
    leader, largest = 0, lams[0]
    for i in rules.risks:
        full = full | above[i]
        low = low | below[i]
        empty = empty & below[i]
        leader = i if lams[i] > largest else leader
        largest = lams[i] if lams[i] > largest else largest
    empty = low if rules.some else empty
    lam = inf if full else (-inf if empty else rules.merge(lams))
    return lam, TORN if full & low else leader


def heed(rules: Rules, numbers: Numbers, position: Position, others: float) -> Position:
    """What parts that ask for it are told when a set is made: how many other predictions wait."""
    stretch, family = position.stretch, position.family
    if rules.heed_stretch is not None:
        stretch = rules.heed_stretch(numbers.phi, stretch, others)
    if rules.heed_family is not None:
        family = rules.heed_family(numbers.family, family, others)
    steps = tuple([
        rules.heed_step[i](numbers.step[i], position.step[i], others)
        if rules.heed_step[i] is not None else position.step[i]
        for i in rules.risks
    ])  # fmt: skip
    return Position(
        position.theta, steps, position.loss, stretch, family,
        position.total, position.lifts, position.lifted,
    )  # fmt: skip


def turn(rules: Rules, numbers: Numbers, position: Position, reading: Memory) -> Position:
    """The position once a set was shown: the season of a family goes on."""
    if rules.turn is not None:
        return Position(
            position.theta, position.step, position.loss, position.stretch,
            rules.turn(numbers.family, position.family, reading),
            position.total, position.lifts, position.lifted,
        )  # fmt: skip
    return position


def show(
    rules: Rules, numbers: Numbers, reading: tuple[float, ...], lam: float
) -> tuple[float, float]:
    """λ → the ends of the interval, cut to the support; crossed ends are the empty interval."""
    lower, upper = rules.ends(reading, lam)
    if rules.cuts:
        lower = numbers.support[0] if lower < numbers.support[0] else lower
        upper = numbers.support[1] if upper > numbers.support[1] else upper
    empty = (lam == -inf) | ((lam < inf) & (lower > upper))
    lower = numbers.support[0] if lam == inf else (inf if empty else lower)
    upper = numbers.support[1] if lam == inf else (-inf if empty else upper)
    return lower, upper


def judge(
    rules: Rules, numbers: Numbers, position: Position, missed: bool
) -> tuple[tuple[float, ...], Memories]:
    """Whether y was missed → the loss of each risk, and what each loss remembers next."""
    assert rules.judge is not None
    pairs = tuple([rules.judge[i](numbers.judge[i], position.loss[i], missed) for i in rules.risks])
    return tuple([pairs[i][0] for i in rules.risks]), tuple([pairs[i][1] for i in rules.risks])


def learn(
    rules: Rules,
    numbers: Numbers,
    position: Position,
    values: tuple[float, ...],
    losses: Memories,
    scores: tuple[float, ...],
    lam: float,
    leader: int,
    family: Memory,
) -> Position:
    """Losses → θ → φ.

    `values` are the losses, NaN where there is nothing to judge, and `losses` what the losses
    remember next; `scores` are the critical values of y, where a rule asks for them; `family` is
    what the family remembers next.
    """
    theta = position.theta
    seen = tuple([values[i] == values[i] for i in rules.risks])
    excess = tuple([
        numbers.level[i] - values[i] if rules.grows[i] else values[i] - numbers.level[i]
        for i in rules.risks
    ])  # fmt: skip
    moves = tuple([
        rules.step[i](numbers.step[i], theta[i], position.step[i], excess[i], scores[i])
        if seen[i] else (theta[i], position.step[i])
        for i in rules.risks
    ])  # fmt: skip
    stretch = position.stretch
    if rules.move is not None:
        calm, pull, score = seen[0], excess[0], scores[0]
        for i in rules.risks:
            calm = seen[i] if leader == i else calm
            pull = excess[i] if leader == i else pull
            score = scores[i] if leader == i else score
        if rules.split:  # no set leads: their mean
            calm, pull = seen[0], 0.0
            for i in rules.risks:
                calm = calm | seen[i]
                pull = pull + (excess[i] if seen[i] else 0.0)
            pull = pull / len(rules.risks)
        calm = calm & (rules.always | ((lam < inf) & (lam > -inf)))
        stretch = rules.move(numbers.phi, stretch, pull, score, lam) if calm else stretch
    theta = tuple([moves[i][0] for i in rules.risks])
    lifts, lifted = position.lifts, position.lifted
    if rules.lifts | rules.floored:
        heard, highest = seen[0], theta[0]
        for i in rules.risks:
            heard = heard | seen[i]
            highest = theta[i] if theta[i] > highest else highest
        near = highest - numbers.delta if rules.lifts else -inf
        floors = tuple([
            rules.floor[i](numbers.step[i], moves[i][1]) if rules.floor[i] is not None else -inf
            for i in rules.risks
        ])  # fmt: skip
        floors = tuple([near if near > floors[i] else floors[i] for i in rules.risks])
        slack = tuple([heard & (theta[i] < floors[i]) for i in rules.risks])
        lifts = tuple([lifts[i] + 1.0 if slack[i] else lifts[i] for i in rules.risks])
        lifted = tuple([
            lifted[i] + (floors[i] - theta[i]) if slack[i] else lifted[i] for i in rules.risks
        ])  # fmt: skip
        theta = tuple([floors[i] if slack[i] else theta[i] for i in rules.risks])
    return Position(
        theta,
        tuple([moves[i][1] for i in rules.risks]),
        tuple([losses[i] if seen[i] else position.loss[i] for i in rules.risks]),
        stretch,
        family,
        tuple([
            position.total[i] + values[i] if seen[i] else position.total[i] for i in rules.risks
        ]),
        lifts,
        lifted,
    )  # fmt: skip
