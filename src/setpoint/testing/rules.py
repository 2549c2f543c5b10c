"""Whether a loss, a step rule, a stretching and a correction keep their promises."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import is_dataclass
from itertools import pairwise, product
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from setpoint._check import number
from setpoint.correction import Rescores
from setpoint.errors import InputError, SetpointError
from setpoint.losses import Calms, Counts, Keeps, declaration
from setpoint.sets import Multilabel, PixelScale, Widen
from setpoint.sets.family import Shares, member_of, members_of
from setpoint.steps import Claim, Within
from setpoint.steps.claims import Accounts
from setpoint.stretches import Always
from setpoint.testing.parts import (
    LAMS,
    LEVELS,
    ROUNDING,
    Memory,
    Sample,
    broken,
    check_value,
    first_memory,
    in_use,
    memory_of,
    one_answer,
    readings_of,
    same_values,
    samples_of,
)
from setpoint.testing.sets import contains


def check_loss(
    loss: Any,
    sets: Any = None,
    predictions: Iterable[Any] | None = None,
    labels: Iterable[Any] | None = None,
) -> None:
    """A loss, with or without memory, that shrinks or grows with the set."""
    family = _judged_by(loss) if sets is None else sets
    links = _links(family, samples_of(family, predictions, labels))
    with in_use(loss):
        judge = _Judge(loss)
        first = first_memory(loss) if judge.keeps else ()
        memories = _visited(judge, first, links) if judge.keeps else [first]
        for memory, link in product(memories, links):
            for y in link.labels[:: 1 if len(memories) == 1 else 5]:
                _check_direction(judge, memory, link.chain, y)
        for link in links:
            if isinstance(loss, Calms) and isinstance(link.family, Shares):
                _check_share(loss, link)
    if is_dataclass(loss):
        check_value("losses", loss)


class _Link(NamedTuple):
    """Sets in growing order, the empty one first, the full one last, with labels to judge."""

    family: Any
    reading: Any
    chain: list[tuple[float, Any]]
    labels: list[Any]


def _links(family: Any, samples: Sequence[Sample]) -> list[_Link]:
    """The sets of every prediction, side by side where a family has several."""
    links = []
    for prediction, labels in samples:
        seen = [family.label(y) for y in labels]
        reading = readings_of(family, prediction)[0]
        for one in (member_of(family, index) for index in range(members_of(family))):
            criticals = (float(one.critical(reading, y)) for y in seen[::3])
            lams = {*LAMS[1:-1], *(s for s in criticals if isfinite(s))}
            chain = [(lam, one.at(reading, lam)) for lam in (-inf, *sorted(lams), inf)]
            links.append(_Link(one, reading, chain, seen))
    return links


def _judged_by(loss: Any) -> Any:
    """A family of sets that the loss can judge."""
    keeps = isinstance(loss, Keeps)
    families: tuple[tuple[Any, Any, Any], ...] = (
        (Widen(), (0.5, 1.0), 0.5),
        (Multilabel(), (0.5, 1.0), (0,)),
        (PixelScale(), np.ones((3, 2, 2)), np.ones((2, 2))),
    )
    for family, prediction, y in families:
        shown = family.at(family.read(prediction), -0.5)
        try:
            loss.update(loss.init(), shown, y) if keeps else loss(shown, y)
        except AttributeError:
            continue
        except Exception:
            break
        return family
    return Widen()


class _Judge:
    """A loss at work, with what it promises and offers asked once."""

    def __init__(self, loss: Any) -> None:
        self.loss, self.promise = loss, declaration(loss)
        self.keeps, self.counts = isinstance(loss, Keeps), isinstance(loss, Counts)

    def __call__(self, memory: Memory, shown: Any, y: Any) -> tuple[float | None, Memory]:
        """One loss, if it is the same twice, within its range, and leaves a good memory."""
        loss, promise = self.loss, self.promise

        before = deepcopy(shown)
        comparable = same_values(before, shown)
        got, after = one_answer(loss, "it", self.answer, memory, shown, y)
        if comparable and not same_values(before, shown):
            raise broken(loss, f"it leaves the set as it is, got {shown} of {before}")
        after = memory_of(loss, after, like=memory)
        wrong = None
        if self.counts:
            ruled = tuple(loss.rule(loss.params, memory, not contains(shown, y)))
            if ruled != (got, after):
                wrong = f"rule and call agree, got {ruled} and {(got, after)}"
        try:
            value = None if got is None else number(got, "a loss")
        except SetpointError as error:
            wrong, value = f"it is one number or None: {error}", None
        if value is not None and not promise.low <= value <= promise.high:
            wrong = f"it lies in [{promise.low:g}, {promise.high:g}], got {value}"
        if wrong:
            where = f"on {shown} with y = {y}" + (f" and memory {memory}" if memory else "")
            raise broken(loss, f"{wrong} {where}")
        return value, after

    def answer(self, memory: Memory, shown: Any, y: Any) -> tuple[Any, Any]:
        """What the loss says, and the next memory."""
        if not self.keeps:
            return self.loss(shown, y), memory
        got = self.loss.update(memory, shown, y)
        if not (isinstance(got, tuple) and len(got) == 2):
            raise broken(self.loss, f"update returns (loss, memory), got {got!r}")
        return got


def _visited(judge: _Judge, first: Memory, links: Sequence[_Link]) -> list[Memory]:
    """Memories that a random stream of sets and labels leads to."""
    rng = np.random.default_rng(2)
    memories, memory = [first], first
    for _ in range(60):
        link = links[int(rng.integers(len(links)))]
        chain, labels = link.chain, link.labels
        # Runs of small sets, then of large ones: memories that only grow show where they stop.
        third = len(chain) // 3
        place = int(rng.integers(third)) if rng.random() < 0.8 else -1 - int(rng.integers(third))
        y = labels[int(rng.integers(len(labels)))]
        _, memory = judge(memory, chain[place][1], y)
        memories.append(memory)
    return list(dict.fromkeys(memories))[:12]


def _check_direction(judge: _Judge, memory: Memory, chain: list[tuple[float, Any]], y: Any) -> None:
    """Along growing sets: the promises at both ends, and never a move in the wrong direction."""
    loss, promise = judge.loss, judge.promise
    sign = -1.0 if promise.grows else 1.0
    least, most = ("most", "least") if promise.grows else ("least", "most")
    before: float | None = None
    slack = ROUNDING * (promise.high - promise.low if isfinite(promise.high) else 1.0)
    for lam, shown in chain:
        value, _ = judge(memory, shown, y)
        if value is None:
            continue
        unkept = None
        if lam == inf and (value - promise.full) * sign > 0.0:
            unkept = f"it is at {most} {promise.full:g} on the full set"
        elif lam == -inf and (value - promise.empty) * sign < 0.0:
            unkept = f"it is at {least} {promise.empty:g} on the empty set"
        elif promise.monotone and before is not None and (value - before) * sign > slack:
            unkept = f"it does not {'shrink' if promise.grows else 'grow'} with the set"
        if unkept:
            smaller = "" if before is None else f", {before} on a smaller one"
            raise broken(loss, f"{unkept}, got {value} on {shown} with y = {y}{smaller}")
        before = value


def _check_share(loss: Any, link: _Link) -> None:
    """Whether `critical` is the smallest λ at which the loss is at its level or below."""
    for y, level in product(link.labels, LEVELS):
        values = link.family.criticals(link.reading, y)
        critical = loss.critical(values, level)
        lams = np.asarray(values, dtype=float).ravel().tolist()
        for lam in filter(isfinite, (*lams, *(lam for lam, _ in link.chain))):
            value = loss(link.family.at(link.reading, lam), y)
            if value is not None and (value <= level + ROUNDING) is not (lam >= critical):
                got = f"got {critical} for {values}, level {level} and a loss of {value} at {lam}"
                raise broken(loss, f"critical is the smallest λ that keeps the level, {got}")


def check_combination(part: Any) -> None:
    """A combination: between the smallest and the largest λ, in any order, growing with each."""
    rng = np.random.default_rng(0)
    with in_use(part):
        for count in (1, 2, 5):
            for lams in rng.normal(scale=10.0, size=(20, count)).tolist():
                got = one_answer(part, "rule", part.rule, tuple(lams))
                slack = ROUNDING * max(map(abs, lams))
                if not min(lams) - slack <= got <= max(lams) + slack:
                    raise broken(part, f"λ lies among those of the risks, got {got} for {lams}")
                if abs(part.rule(tuple(reversed(lams))) - got) > slack:
                    raise broken(part, f"the order of the risks is nothing to it, got {lams}")
                if part.covers_each and got < max(lams):
                    raise broken(part, f"it covers each risk, got {got} for {lams}")
                if part.rule(tuple(lam + 1.0 for lam in lams)) < got:
                    raise broken(part, f"larger λ's give a larger one, got {got} for {lams}")
    check_value("combine", part)


def check_stretch(stretch: Any) -> None:
    """A stretching function and, if it adapts, how its memory moves."""
    with in_use(stretch):
        params, first = memory_of(stretch, stretch.params, "params"), first_memory(stretch)
        memories = [first]
        if stretch.move is not None:
            memories += _moved(stretch, params, first)
        for memory in memories:
            _check_phi(stretch, params, memory)
    check_value("stretches", stretch)


def check_correction(correction: Any) -> None:
    """A correction, on rows and labels of every size, with others waiting."""
    if isinstance(correction, Rescores):
        raise InputError(f"a correction of numbers can be checked, got {correction!r}")
    rng, gives = np.random.default_rng(7), correction.gives
    with in_use(correction):
        own, (first, table) = memory_of(correction, correction.params, "params"), correction.init()
        memory, annex = memory_of(correction, first), [0.0] * correction.annex
        params, tried = (*own, -inf, inf), 0

        def based(memory: Memory, row: Any, others: float) -> Any:
            """The memory and the base of a row; tables must stay as they are."""
            base, before = [0.0] * correction.base, (list(table), list(annex))
            after = correction.predict(params, memory, table, annex, row, others, base)
            if (table, annex) != before:
                raise broken(correction, "`predict` writes into the base and nowhere else")
            return after, tuple(base)

        def taught(memory: Memory, base: Any, y: float) -> Any:
            """The memory, the table and the annex after a label; those given stay as they are."""
            tables = list(table), list(annex)
            return correction.learn(params, memory, *tables, base, y), *tables

        for scale in (1.0, 1.0, 1e-6, 1e6) * 50:
            row = tuple(np.abs(scale * rng.normal(size=len(correction.columns))).tolist())
            row = tuple(map(float, np.round(row))) if not correction.sound(row) else row
            if not correction.sound(row):
                continue
            tried += 1
            others, y = float(rng.integers(4)), float(scale * rng.normal())
            after, base = one_answer(correction, "predict", based, memory, row, others)
            memory, read = memory_of(correction, after, like=memory), base[: len(gives)]
            if len(read) < len(gives) or not all(type(n) is float for n in base):
                promise = f"a base has floats, first {', '.join(gives)}, got {base}"
                raise broken(correction, promise)
            if any(n != n for n in read):
                raise broken(correction, f"a base begins with numbers, got {read}")
            got, table, annex = one_answer(correction, "learn", taught, memory, base, y)
            memory = memory_of(correction, got, like=memory)
            if not np.isfinite([*table, *annex]).all():
                raise broken(correction, f"tables hold finite numbers, got {table} and {annex}")
    if not tried:
        raise broken(correction, "`sound` takes some rows of positive numbers, got none")
    check_value("correction", correction)


_THETAS = (
    *(-1e300, -1e6, -710.0, -709.0, -100.0, -10.0, -1.0, -0.25, -1e-6),
    *(0.0, 1e-6, 0.25, 1.0, 10.0, 100.0, 709.0, 710.0, 1e6, 1e300),
)


def _phi(stretch: Any, params: Memory, memory: Memory, theta: float) -> float:
    lam = one_answer(stretch, "φ", stretch.phi, params, memory, theta)
    if not isinstance(lam, float) or not (isfinite(lam) or isinstance(stretch, Always)):
        raise broken(stretch, f"φ(θ) is a finite float, got {lam!r} at θ = {theta}, {memory}")
    return lam


def _check_phi(stretch: Any, params: Memory, memory: Memory) -> None:
    """φ under one memory: finite, monotone, inverted by `inverse`."""
    lams = [_phi(stretch, params, memory, theta) for theta in _THETAS]
    for (theta, lam), (larger, above) in pairwise(zip(_THETAS, lams, strict=True)):
        if above < lam:
            raise broken(
                stretch, f"φ does not fall with θ, got φ({theta}) = {lam} and φ({larger}) = {above}"
            )
    for theta, lam in zip(_THETAS, lams, strict=True):
        back = stretch.inverse(lam, memory)
        if not (isinstance(back, float) and isfinite(back)):
            raise broken(stretch, f"inverse(λ) is a finite float, got {back!r} at λ = {lam}")
        if not isfinite(lam):
            continue
        size = max(1.0, abs(theta), *map(abs, memory))
        near = theta - 1e-6 * size, theta + 1e-6 * size
        low, high = (_phi(stretch, params, memory, beside) for beside in near)
        # Where φ is flat any θ of the same λ will do.
        inverted = near[0] <= back <= near[1] if low < lam < high else low <= lam <= high
        away = abs(_phi(stretch, params, memory, back) - lam)
        if not inverted or away > 1e-6 * max(1.0, abs(lam), *map(abs, memory)):
            where = f"got {back} for θ = {theta} with memory {memory}"
            raise broken(stretch, f"inverse(φ(θ)) = θ, {where}")


def _moved(stretch: Any, params: Memory, first: Memory) -> list[Memory]:
    """Memories that a random stream of excesses and scores leads to, the extreme ones included."""
    rng = np.random.default_rng(3)
    low, high = getattr(stretch, "low", -inf), getattr(stretch, "high", inf)  # it may be clipped
    memories, memory = [], first
    steps = [(float(e), float(s), float(at)) for e, s, at in rng.normal(size=(200, 3))]
    extremes = product((0.9, -0.1, 0.0, 1e6, -1e6), (inf, -inf, 1e300, -1e300, 0.0), (0.0, 1e300))
    for excess, score, lam in (*steps, *extremes):
        moved = one_answer(stretch, "move", stretch.move, params, memory, excess, score, lam)
        where = f"by excess {excess}, score {score}, λ = {lam} from {memory}"
        memory = memory_of(stretch, moved, f"memory, moved {where},", like=memory)
        if not all(low <= number <= high for number in memory):
            raise broken(stretch, f"memory stays in [{low}, {high}], got {memory} {where}")
        memories.append(memory)
    return memories[:: len(memories) // 12]


def check_step(step: Any) -> None:
    """A step rule; an adversary attacks what it claims."""
    rng = np.random.default_rng(1)
    with in_use(step):
        params, first = memory_of(step, step.params, "params"), first_memory(step)
        memory, directed = first, _claims(step, first)
        for theta in (0.0, -3.0, 7.5, 1e6, -1e6):
            for excess in (0.9, -0.1, 0.0, 1e-3, -1.0, 40.0, *rng.normal(size=20).tolist()):
                critical = theta + (abs(float(rng.normal())) if excess > 0.0 else -1.0)
                _, memory = _stepped(step, params, theta, memory, excess, critical, directed)
        worlds = ((-3.0, 5.0, 0.0), (-0.5, 0.5, 0.5), (-40.0, 40.0, -40.0))
        for world, level, pending in product(worlds, (0.1, 0.5), (1, 4)):
            within = Within(*world, -level, 1.0 - level, pending)
            for policy in _POLICIES:
                _check_claim(step, params, first, within, policy, rng, directed)
    check_value("steps", step)


def _claims(step: Any, first: Memory) -> bool:
    """Whether a rule states a bound; one that states none may move θ as it likes."""
    claim = step.claim(Within(-3.0, 5.0, 0.0, -0.1, 0.9), first, 0)
    if not isinstance(claim, Claim):
        raise broken(step, f"claim returns a Claim, got {claim!r}")
    return claim.lower is not None or claim.upper is not None


def _stepped(
    step: Any, params: Memory, theta: float, memory: Memory, excess: float, critical: float,
    directed: bool,
) -> tuple[float, Memory]:  # fmt: skip
    """One step, if it is the same twice and, where it is `directed`, goes the right way."""
    got = one_answer(step, "rule", step.rule, params, theta, memory, excess, critical)
    where = f"from θ = {theta} with excess {excess} and memory {memory}"
    if not (isinstance(got, tuple) and len(got) == 2 and isinstance(got[0], float)):
        raise broken(step, f"rule returns (θ, memory), θ a float, got {got!r} {where}")
    moved, after = got
    astray = (moved - theta) * excess < 0.0 or (excess == 0.0 and moved != theta)
    if not isfinite(moved) or (directed and astray):
        raise broken(step, f"θ moves with the excess or not at all, got {moved} {where}")
    return moved, memory_of(step, after, like=memory)


_POLICIES = ("up", "down", "coin", "any", "swing")


def _push(policy: str, theta: float, within: Within, before: float, draw: float) -> float:
    """The loss an adversary picks."""
    if policy == "swing":  # up until the safeguard stops it, then down until it does, and so on
        return 0.0 if theta > within.high - 1e-3 else 1.0 if theta < within.low + 1e-3 else before
    return {"up": 1.0, "down": 0.0, "coin": float(draw < 0.5), "any": draw}[policy]


def _check_claim(
    step: Any, params: Memory, first: Memory, within: Within, policy: str,
    rng: np.random.Generator, directed: bool,
) -> None:  # fmt: skip
    """Σ(l − r) against what the rule claims, where losses obey the safeguard and nothing else."""
    theta, memory, total, loss = within.start, first, 0.0, 1.0
    lowest = highest = lifted = 0.0
    waiting: list[tuple[float, bool, bool, float]] = []
    book: Any = step if isinstance(step, Accounts) else None
    if book is not None:
        within = within._replace(low=-inf, high=inf, pace=-0.5 * within.fall)
        params = (*params, within.rise, within.pace)
        memory = book.begun(params, theta, memory)
        within = within._replace(pending=1) if book.two_sided else within
    for labels in range(1, 501):
        while len(waiting) < within.pending:
            full, empty, habit = theta > within.high, theta < within.low, 0.0
            if book is not None:
                memory, press, habit = book.ask(params, theta, memory)
                full, empty = press == inf, press == -inf
                memory = book.opened(memory, full)
            waiting.append((theta, full, empty, habit))
        shown, full, empty, habit = waiting.pop(int(rng.integers(len(waiting))))
        draw = float(rng.random())
        loss = _push(policy, theta, within, loss, draw)
        loss = 0.0 if full else 1.0 if empty else loss
        excess = within.fall + loss
        critical = shown + (draw if excess > 0.0 else -draw)
        theta, memory = _stepped(step, params, theta, memory, excess, critical, directed)
        if book is not None:
            memory, least = book.settled(memory, excess, full, habit), book.least(params, habit)
            theta, lifted = max(theta, least), lifted + max(least - theta, 0.0)
        total += excess
        lowest, highest = min(lowest, total), max(highest, total)
        now = within._replace(theta=theta, lifted=lifted)
        claim = step.claim(now, memory, labels)
        if not all(premise.holds or premise.needed == "note" for premise in claim.premises):
            return  # it claims nothing here
        least, most = claim.window
        for what, value, low, high in (
            ("Σ(l − r)", total, claim.lower, claim.upper),
            ("Σ(l − r) on a window", total - lowest, None, most),
            ("Σ(l − r) on a window", total - highest, least, None),
            ("θ", theta, *claim.reach),
            ("Σ(l − r)", total, claim.identity, claim.identity),
        ):
            low, high = -inf if low is None else low, inf if high is None else high
            size = max(abs(end) for end in (low, high, 1.0) if isfinite(end))
            slack = ROUNDING * (1.0 + size) + claim.rounding * labels
            if not low - slack <= value <= high + slack:
                where = f"not in [{low}, {high}], after {labels} labels with {now}"
                raise broken(step, f"its claim holds, got {what} = {value}, {where}")
