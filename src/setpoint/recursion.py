"""Algorithm 1 of the paper, written once: θ → λ → set, then loss → θ.

    λ   = combine(φ(θ_i) for each risk i)      full set if some θ_i > M_i, empty if every θ_i < m_i
    set = ends(base, λ)                        shown, kept until y arrives
    l_i = loss_i(set, y)
    θ_i = step_i(θ_i, l_i − r_i)               the paper: θ_i + γ_i (l_i − r_i)
    φ   = move(φ)                              adaptive stretching only, once a step

`recursion` makes `aim`, `learn` and `drop` of the rules of a controller, closures over plain
functions that live streams call as they stand and compiled loops capture. Several risks are a
chain: each link handles its own risk, `risks[0]`, and hands `risks[1:]` on, because compiled code
cannot look a rule up by a number. λ of a prediction with several sets is a tuple, one a member.

A position is (risks, memory of the stretch), a risk the tuple of `RiskState`. `numbers` are (risks,
params of the stretch, δ), a risk (level, m, M, params of loss, params of step). What cannot be
judged is NaN. A step rule that keeps a book (`steps.Accounts`) says what φ takes in place of θ, and
the habits it names wait with the set.

In each group of its row the same risks are held again: `glance` looks at them, `aim` takes the λ
they ask for, `enter` notes what was shown, `judge` and `leave` are `learn` and `drop` of one group.
"""

from collections.abc import Callable
from math import inf, nan
from sys import float_info
from typing import Any, NamedTuple

Memory = tuple[float, ...]
"""What a part remembers."""
Mark = Callable[[Any], Any]

_MOST = float_info.max
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


class Ledger(NamedTuple):
    """The rules of `steps.Accounts`."""

    ask: Any
    opened: Any
    settled: Any
    dropped: Any
    least: Any


class Link(NamedTuple):
    """The rules of one risk.

    `judge(params, memory, evidence)` gives the loss and next memory; `zero` says that nothing to
    judge counts as a loss of 0. `score(base, y)` is the critical value of y, for a step rule that
    asks for it (`scored`) and for the stretch. `turns`: the loss rises again where sets are too
    large, so above M the set at M is shown, not the full one.
    """

    judge: Any
    step: Any
    score: Any
    book: Ledger | None = None
    grows: bool = False
    scored: bool = False
    zero: bool = False
    member: int = 0
    turns: bool = False


class Recursion(NamedTuple):
    """The closures of a controller; `drop` and `leave` are None where no rule keeps a book."""

    aim: Any
    learn: Any
    drop: Any
    glance: Any
    enter: Any
    judge: Any
    leave: Any


def recursion(rules: Any, mark: Mark) -> Recursion:
    """The closures of the `Rules` of a controller; `mark` is what a compiler wants done with each.

    Where members may be judged at different times (`partly`), evidence of None leaves a risk as it
    is, and λ is NaN of a member that was judged before.
    """
    links, phi, move, merge = rules.links, rules.phi, rules.move, rules.merge
    scored, always, some, near = rules.scored, rules.always, rules.some, rules.near
    members, order, partly = rules.members, rules.order, rules.partly
    several, booked = len(links) > 1, any(link.book for link in links)
    split = members > 1 or partly
    owners = tuple([link.member for link in links])
    first_of, nobody = mark(_leading), len(links)
    gather: Any = None
    for place in reversed(range(members)):
        side = order[place] if order else None
        gather = mark(_gathering(place, owners, side, gather))
    look: Any = None
    enter: Any = None
    answer: Any = None
    leave: Any = None
    lift: Any = None
    glance: Any = None
    widen: Any = None
    for place in reversed(range(len(links))):
        link = links[place]
        alone = mark(_looking(link, phi, 0, False, True, None))
        glance = mark(_glancing(alone, glance))
        widen = mark(_widening(split, widen))
        look = mark(_looking(link, phi, place, split, owners.count(link.member) == 1, look))
        judging = _partly(_judging(link, scored)) if partly else mark(_judging(link, scored))
        enter, leave = mark(_entering(link, split, enter)), mark(_leaving(link, split, leave))
        answer = mark(_answering(link, judging, place, split, answer))
        lift = mark(_lifting(lift))

    def aim(numbers: Any, position: Any, others: Any = None) -> Any:
        """θ → λ, ±inf where the safeguard chooses; the risk that asks for the largest set; habits.

        A set of this λ then counts as shown. `others` has the λ of each risk that groups ask for.
        """
        risks, memory = position
        books, above, low, below, leader, _, lams, habits = look(
            numbers[0], numbers[1], risks, memory
        )
        if others is not None:
            if split:
                lams, above, low = widen(lams, above, low, others)
            else:
                lams, above, below = widen(lams, above, below, others)
                leader = first_of(lams)
        if split:
            lams = gather(lams, above, low, -inf, -inf)
            if booked:
                risks = enter(risks, books, lams)
            return (risks, memory), lams, 0, habits
        below = low if some else below
        lam = merge(lams) if several else lams[0]
        lam = inf if above else (-inf if below else lam)
        if booked:
            risks = enter(risks, books, lam)
        return (risks, memory), lam, TORN if above & low else leader, habits

    def learn(
        numbers: Any, position: Any, base: Any, evidence: Any, y: Any, lam: Any, leader: int,
        habits: Any,
    ) -> Any:  # fmt: skip
        """Losses → θ → φ: the next position, and the loss of each risk."""
        risks, memory = position
        risks, values, heard, highest, pull, score, calm = answer(
            numbers[0], risks, base, evidence, y, lam, leader, habits
        )
        if move is not None:  # noqa: SIM102 (a compiler leaves it out by this alone)
            if calm & (always | ((lam < inf) & (lam > -inf))):
                memory = move(numbers[1], memory, pull, score, lam)
        if near:
            risks = lift(risks, heard, highest - numbers[2])
        return (risks, memory), values

    def drop(position: Any, lam: Any) -> Any:
        """The position once a set is given up whose label will not come."""
        risks, memory = position
        return leave(risks, lam), memory

    def judge(
        each: Any, risks: Any, base: Any, evidence: Any, y: Any, lam: Any, habits: Any
    ) -> Any:
        """The risks of a group after a label, and their losses."""
        after = answer(each, risks, base, evidence, y, lam, nobody, habits)
        return after[0], after[1]

    return Recursion(
        mark(aim), mark(learn), mark(drop) if booked else None, glance, enter, mark(judge),
        leave if booked else None,
    )  # fmt: skip


# The links: one risk, then the others.


def _looking(link: Link, phi: Any, place: int, split: bool, alone: bool, rest: Any) -> Any:
    """Of each risk its book, whether θ is beyond its bounds, and λ; and who asks for most.

    Where there are several members, what is above and what is below are told of each risk.
    """
    ask, turns = link.book.ask if link.book is not None else None, link.turns

    def look(each: Any, params: Any, risks: Any, memory: Memory) -> Any:
        _, bottom, top, _, step_params = each[0]
        risk, habit = risks[0], 0.0
        press, book = risk[0], risk[8]
        press = top if turns & (press > top) else press
        above, below = press > top, press < bottom
        if ask is not None:
            book, press, habit = ask(step_params, press, book)
            above, below = above | (press == inf), below | (press == -inf)
        if ((ask is not None) | alone) & (above | below):
            lam = inf if above else -inf  # φ is asked within the bounds only
        else:
            lam = phi(params, memory, press)
        if rest is None:
            if split:
                return (book,), (above,), (below,), False, 0, lam, (lam,), (habit,)
            return (book,), above, below, below, place, lam, (lam,), (habit,)
        others, full, low, empty, leader, largest, lams, habits = rest(
            each[1:], params, risks[1:], memory
        )
        books, lams, habits = (book,) + others, (lam,) + lams, (habit,) + habits  # noqa: RUF005
        if split:
            full, low = (above,) + full, (below,) + low  # noqa: RUF005
            return books, full, low, False, 0, lam, lams, habits
        leads = lam >= largest
        leader, largest = place if leads else leader, lam if leads else largest
        full, low, empty = full | above, low | below, empty & below
        return books, full, low, empty, leader, largest, lams, habits

    return look


def _glancing(alone: Any, rest: Any) -> Any:
    """The books and habits of the risks of a group, and the λ of each, or another's if larger."""

    def glance(each: Any, params: Any, risks: Any, memory: Memory, wide: Any) -> Any:
        books, _, _, _, _, lam, _, habits = alone(each, params, risks, memory)
        lam = wide[0] if (wide[0] > lam) | (wide[0] != wide[0]) else lam
        if rest is None:
            return books, habits, (lam,)
        more, others, lams = rest(each[1:], params, risks[1:], memory, wide[1:])
        return books + more, habits + others, (lam,) + lams  # noqa: RUF005

    return glance


def _widening(split: bool, rest: Any) -> Any:
    """What risks ask for and what they ask for in groups, as one."""

    def widen(lams: Any, above: Any, below: Any, others: Any) -> Any:
        lam, other = lams[0], others[0]
        lam = other if (other > lam) | (other != other) else lam
        full, empty = other == inf, other == -inf
        if split:
            high, low = (above[0] | full,), (below[0] & empty,)
            if rest is None:
                return (lam,), high, low
            lams, above, below = rest(lams[1:], above[1:], below[1:], others[1:])
            return (lam,) + lams, high + above, low + below  # noqa: RUF005
        above, below = above | full, below & empty
        if rest is None:
            return (lam,), above, below
        lams, above, below = rest(lams[1:], above, below, others[1:])
        return (lam,) + lams, above, below  # noqa: RUF005

    return widen


def _leading(lams: Any) -> int:
    """The first risk with the largest λ."""
    leader = 0
    for place in range(len(lams)):
        leader = place if lams[place] > lams[leader] else leader
    return leader


def _gathering(place: int, owners: tuple[int, ...], side: int | None, rest: Any) -> Any:
    """λ of each member: the largest of the risks that judge it.

    One that lies beyond others on its side, both sides being 0, is full where one of them is, and
    never empty where one of them is not. `below` and `above` are the λ's inside it on each side.
    """
    low, high = side is not None, side is not None
    if side is not None:
        low, high = side <= 0, side >= 0

    def gather(lams: Any, full: Any, empty: Any, below: float, above: float) -> Any:
        lam, whole, nothing = -inf, False, True
        for i in range(len(owners)):
            if owners[i] == place:
                lam = lams[i] if (lams[i] > lam) | (lams[i] != lams[i]) else lam
                whole, nothing = whole | full[i], nothing & empty[i]
        lam = inf if whole else (-inf if nothing else lam)
        inside = below if low else (above if high else -inf)
        lam = inf if inside == inf else lam
        lam = -_MOST if (lam == -inf) & (inside > -inf) else lam
        below, above = lam if low else below, lam if high else above
        if rest is None:
            return (lam,)
        return (lam,) + rest(lams, full, empty, below, above)  # noqa: RUF005

    return gather


def _entering(link: Link, split: bool, rest: Any) -> Any:
    """Risks once a set is shown."""
    opened = link.book.opened if link.book is not None else None
    member = link.member

    def enter(risks: Any, books: Any, lam: Any) -> Any:
        risk = risks[0]
        if opened is not None:
            own = lam[member] if split else lam
            risk = risk[:8] + (opened(books[0], own == inf),)  # noqa: RUF005
        if rest is None:
            return (risk,)
        return (risk,) + rest(risks[1:], books[1:], lam)  # noqa: RUF005

    return enter


def _leaving(link: Link, split: bool, rest: Any) -> Any:
    """Risks once a set is given up."""
    dropped = link.book.dropped if link.book is not None else None
    member = link.member

    def leave(risks: Any, lam: Any) -> Any:
        risk = risks[0]
        own = lam[member] if split else lam
        if dropped is not None and own == own:
            risk = risk[:8] + (dropped(risk[8], own == inf),)  # noqa: RUF005
        if rest is None:
            return (risk,)
        return (risk,) + rest(risks[1:], lam)  # noqa: RUF005

    return leave


def _judging(link: Link, stretch_scored: bool) -> Any:
    """The loss of one risk, and where the risk stands after it."""
    judge, step, score, book, grows, scored, zero, *_ = link
    settled = book.settled if book is not None else None
    dropped = book.dropped if book is not None else None
    least = book.least if book is not None else None

    def judging(
        numbers: Any, risk: Any, base: Any, evidence: Any, y: Any, full: bool, leads: bool,
        habit: float,
    ) -> Any:  # fmt: skip
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
            if settled is not None:
                kept = settled(kept, excess, full, habit)
            if least is not None:
                floor = least(step_params, habit)
                if theta < floor:
                    lifts, lifted, theta = lifts + 1.0, lifted + (floor - theta), floor
        elif dropped is not None:
            kept = dropped(kept, full)
        risk = (theta, first, judged, unjudged, total, lifts, lifted, loss, kept)
        return risk, value, excess, critical

    return judging


def _partly(judging: Any) -> Any:
    """As `judging`, but a risk that this label does not judge stays as it is."""

    def partly(
        numbers: Any, risk: Any, base: Any, evidence: Any, y: Any, full: bool, leads: bool,
        habit: float,
    ) -> Any:  # fmt: skip
        if evidence is None:
            return risk, nan, 0.0, 0.0
        return judging(numbers, risk, base, evidence, y, full, leads, habit)

    return partly


def _answering(link: Link, judging: Any, place: int, split: bool, rest: Any) -> Any:
    """Every risk after a label, and what the stretch learns from: the leading risk's excess."""
    member = link.member

    def answer(
        each: Any, risks: Any, base: Any, evidence: Any, y: Any, lam: Any, leader: int,
        habits: Any,
    ) -> Any:  # fmt: skip
        leads = (leader == place) | ((leader < 0) & (place == 0))
        full = (lam[member] if split else lam) == inf
        own = evidence[member] if split else evidence
        risk, value, excess, critical = judging(
            each[0], risks[0], base, own, y, full, leads, habits[0]
        )
        seen = value == value
        excess = excess if seen else 0.0
        if rest is None:
            return (risk,), (value,), seen, risk[0], excess, critical, seen
        others, values, heard, highest, pull, score, calm = rest(
            each[1:], risks[1:], base, evidence, y, lam, leader, habits[1:]
        )
        heard, highest = heard | seen, risk[0] if risk[0] > highest else highest
        if leads:
            pull, score, calm = excess, critical, seen
        return (risk,) + others, (value,) + values, heard, highest, pull, score, calm  # noqa: RUF005

    return answer


def _lifting(rest: Any) -> Any:
    """Risks whose θ is lifted where it fell too far below the largest θ."""

    def lift(risks: Any, heard: bool, floor: float) -> Any:
        theta, first, judged, unjudged, total, lifts, lifted, loss, kept = risks[0]
        if heard & (theta < floor):
            lifts, lifted, theta = lifts + 1.0, lifted + (floor - theta), floor
        risk = (theta, first, judged, unjudged, total, lifts, lifted, loss, kept)
        if rest is None:
            return (risk,)
        return (risk,) + rest(risks[1:], heard, floor)  # noqa: RUF005

    return lift


def show(ends: tuple[float, float], lam: float, low: float, high: float) -> tuple[float, float]:
    """Ends as they are shown: cut to the support; crossed ends are the empty interval."""
    lower, upper = ends
    lower, upper = low if lower < low else lower, high if upper > high else upper
    empty = (lam == -inf) | ((lam < inf) & (lower > upper))
    lower = low if lam == inf else (inf if empty else lower)
    upper = high if lam == inf else (-inf if empty else upper)
    return lower, upper
