"""A controller at work: every rule looked up once, and what a user's own parts give back checked.

`Laws` runs the recursion on a `State`, for live streams and for rows in plain Python. The step of
a single risk is written by hand beside it (`aim_one`, `learn_one`): it is what most streams do, and
in plain Python calls cost more than arithmetic. A law test holds both to the same numbers.
"""

from math import inf, isfinite, nan
from typing import Any

from setpoint import recursion
from setpoint._check import finite, number
from setpoint.controller import Controller, RiskState, State, memory_of, risks_that_score
from setpoint.errors import InputError, LossError
from setpoint.losses import Calms, Counts, Keeps, declaration
from setpoint.parts import trusted
from setpoint.recursion import TORN, Memory, Numbers, Position, Rules
from setpoint.sets.family import Learns, Remembers, Scalar, Shares, Sides, never_empty, seasonal
from setpoint.steps import Floored, Heeds, Scored
from setpoint.stretches import Always

__all__ = [
    "Law", "Laws", "aim_one", "check_thetas", "learn_one", "numbers_of", "prepared", "rules_of",
    "turned",
]  # fmt: skip


class Law:
    """One risk with everything a step asks of it looked up once.

    `sets` is the family its set comes from: the family at work where it has a window, and one side
    where every risk has its own set.
    """

    def __init__(self, controller: Controller, index: int, sets: Any = None) -> None:
        risk = controller.risks[index]
        if risk.step is None:
            raise InputError(
                f"the risk {risk.name} has no step rule yet: give step=steps.Fixed(γ), or let "
                "setpoint.burn_in choose γ from past predictions and labels"
            )
        loss, promise = risk.loss, declaration(risk.loss)
        self.name, self.level, self.promise = risk.name, risk.level, promise
        self.bottom, self.top = controller.bounds[index]
        self.grows = promise.grows
        self.substitute = 0.0 if risk.unjudged == "zero" else None
        self.counts = isinstance(loss, Counts)
        self.rule: Any = loss.rule if isinstance(loss, Counts) else None
        self.params: Memory = loss.params if isinstance(loss, Counts) else ()
        self.update = loss.update if isinstance(loss, Keeps) else _Stateless(loss).update
        self.step, self.step_params = risk.step.rule, risk.step.params
        self.scored = risk in risks_that_score(controller)
        # The library's own parts keep their promises; what a user's give back is checked.
        self.doubted = not (self.counts and trusted(loss))
        self.step_doubted = not trusted(risk.step)
        self.stretch_doubted = not trusted(controller.stretch)
        self.step_name = type(risk.step).__name__
        self.step_size, self.loss_size = len(memory_of(risk.step)), len(memory_of(loss))
        family: Any = controller.sets
        self.remembers = isinstance(family, Remembers)
        if isinstance(family, Remembers):
            family = family.bind() if sets is None else sets
        self.sets: Any = family.side(index) if isinstance(family, Sides) else family
        self.empties = not never_empty(controller.sets)
        self.learns = isinstance(family, Learns)
        self.observe: Any = family.observe if isinstance(family, Learns) else None
        self.family_params: Memory = family.params if isinstance(family, Learns) else ()
        self.prepare: Any = family.prepare if isinstance(family, Learns) else None
        self.seasonal = seasonal(family)
        self.phase: Any = family.phase if self.seasonal else None
        self.turn: Any = family.turn if self.seasonal else None
        self.cell_size = len(family.cell) if self.seasonal else 0
        self.family_size = len(memory_of(family)) + self.cell_size
        self.family_doubted = not trusted(family)
        self.plain_learner = self.learns and not self.seasonal and not self.family_doubted
        # Where y has many critical values, the loss says which of them counts.
        shares = isinstance(loss, Calms) and isinstance(self.sets, Shares)
        self.calm: Any = loss.critical if shares else None
        plain: Any = self.sets if isinstance(self.sets, Scalar) and trusted(self.sets) else None
        self.score: Any = self.critical if plain is None else plain.score
        self.phi, self.phi_params = controller.stretch.phi, controller.stretch.params
        self.move = controller.stretch.move
        self.always = isinstance(controller.stretch, Always) and controller.stretch.always
        self.scores = _scored(controller.stretch)
        self.least: Any = risk.step.least if isinstance(risk.step, Floored) else None

    def judge(self, memory: Memory, shown: Any, y: Any, lam: float) -> tuple[float | None, Memory]:
        """The loss of what was shown, None if there is nothing to judge, and its next memory."""
        value: Any
        if self.counts:
            value, memory = self.rule(self.params, memory, not shown.contains(y))
        else:
            value, memory = self.update(memory, shown, y)
        return self.check(value, memory, lam) if self.doubted else (value, memory)

    def critical(self, reading: Any, y: Any) -> float:
        """The smallest λ that would have kept the loss at its level."""
        if self.calm is not None:
            return float(self.calm(self.sets.criticals(reading, y), self.level))
        return float(self.sets.critical(reading, y))

    def learn_family(self, state: State, reading: Any, y: Any) -> Memory:
        """What the family remembers next, with the cell of the phase behind it."""
        memory = state.family
        if self.seasonal:
            memory += state.cells[int(reading[-1])]
        learnt: Memory = self.observe(self.family_params, memory, reading, y)
        return self._memory(learnt, self.family_size, "sets") if self.family_doubted else learnt

    def keep(self, state: State, reading: Any, learnt: Memory) -> None:
        """Puts what `learn_family` gave into a state."""
        if self.seasonal:
            state.cells[int(reading[-1])] = learnt[-self.cell_size :]
            learnt = learnt[: -self.cell_size]
        state.family = learnt

    def check(self, value: Any, memory: Any, lam: float) -> tuple[float | None, Memory]:
        """A loss and its memory, if they keep the promises made for them."""
        kept = self._memory(memory, self.loss_size, self.name)
        return (None if value is None else self.check_value(value, lam)), kept

    def check_value(self, value: Any, lam: float) -> float:
        """A loss as a float, within its range and within what it promises of full and empty."""
        promise, sign = self.promise, -1.0 if self.grows else 1.0
        loss = number(value, f"the loss {self.name}", LossError)
        if not promise.low <= loss <= promise.high:
            allowed = f"a loss in [{promise.low:g}, {promise.high:g}]"
        elif lam == inf and (loss - promise.full) * sign > 0.0:
            allowed = f"at {'least' if self.grows else 'most'} {promise.full:g} on the full set"
        elif lam == -inf and self.empties and (loss - promise.empty) * sign < 0.0:
            allowed = f"at {'most' if self.grows else 'least'} {promise.empty:g} on the empty set"
        else:
            return loss
        raise LossError(f"{self.name} promises {allowed}, got {loss}")

    def check_step(self, theta: Any, memory: Any) -> tuple[float, Memory]:
        """What a user's step rule gave back, if it is a finite θ and a memory of its size."""
        kept = self._memory(memory, self.step_size, self.step_name)
        return finite(theta, f"the θ of {self.step_name}"), kept

    def check_stretch(self, memory: Any, size: int) -> Memory:
        """What a user's stretch gave back, if it is a memory of its size."""
        return self._memory(memory, size, "the stretch")

    @staticmethod
    def _memory(memory: Any, size: int, whose: str) -> Memory:
        if not isinstance(memory, tuple) or len(memory) != size:
            raise InputError(f"{whose} must keep a memory of {size} floats, got {memory!r}")
        return memory


class _Stateless:
    """A loss without memory in the shape of one with."""

    def __init__(self, loss: Any) -> None:
        self.loss = loss

    def update(self, memory: Memory, shown: Any, y: Any) -> tuple[Any, Memory]:
        return self.loss(shown, y), memory


def check_thetas(controller: Controller, thetas: Any) -> None:
    """Raises the error of a user's step rule whose θ, one row for each risk, is not finite."""
    for risk, row in zip(controller.risks, thetas, strict=True):
        if not trusted(risk.step) and not isfinite(sum(row.tolist())):
            raise InputError(f"the θ of {type(risk.step).__name__} must be finite, got {max(row)}")


def rules_of(controller: Controller) -> Rules:
    """The rules of a controller; those of scalar parts only where every part is one."""
    family, combine, losses = (
        controller.sets,
        controller.combine,
        [r.loss for r in controller.risks],
    )
    several = len(losses) > 1
    scalar = isinstance(family, Scalar) and all(isinstance(loss, Counts) for loss in losses)
    learns = isinstance(family, Learns)
    stretch: Any = controller.stretch
    sets: Any = family
    steps: list[Any] = [risk.step for risk in controller.risks]
    return Rules(
        risks=range(len(losses)),
        columns=range(len(sets.columns)) if scalar else range(0),
        phi=stretch.phi,
        move=stretch.move,
        merge=combine.rule,
        step=tuple(risk.step.rule for risk in controller.risks if risk.step is not None),
        grows=tuple(declaration(loss).grows for loss in losses),
        floor=tuple(step.least if isinstance(step, Floored) else None for step in steps),
        heed_step=tuple(step.heed if isinstance(step, Heeds) else None for step in steps),
        heed_stretch=stretch.heed if isinstance(stretch, Heeds) else None,
        heed_family=sets.heed if learns and isinstance(sets, Heeds) else None,
        judge=tuple(loss.rule for loss in losses) if scalar else None,
        ends=sets.ends if scalar else None,
        score=sets.score if scalar else None,
        sound=sets.sound if scalar else None,
        prepare=sets.prepare if learns else None,
        observe=sets.observe if learns else None,
        phase=sets.phase if seasonal(sets) else None,
        turn=sets.turn if seasonal(sets) else None,
        some=several and combine.empty_if == "some",
        split=isinstance(family, Sides),
        lifts=several and combine.anti_windup is not None,
        floored=any(isinstance(step, Floored) for step in steps),
        heeds=any(isinstance(part, Heeds) for part in (stretch, sets, *steps)),
        turns=seasonal(sets),
        always=isinstance(stretch, Always) and stretch.always,
        scored=_scored(stretch) or bool(risks_that_score(controller)),
        cuts=scalar and sets.support != (-inf, inf),
    )


def _scored(stretch: Any) -> bool:
    """Whether a stretch asks for the critical value of y; one of a user's that moves may."""
    return stretch.scored if isinstance(stretch, Scored) else stretch.move is not None


def numbers_of(controller: Controller) -> Numbers:
    """The numbers of a controller, in the order of its rules."""
    risks, bounds, sets = controller.risks, controller.bounds, controller.sets
    support = sets.support if isinstance(sets, Scalar) else (-inf, inf)
    return Numbers(
        phi=controller.stretch.params,
        level=tuple(risk.level for risk in risks),
        bottom=tuple(low for low, _ in bounds),
        top=tuple(high for _, high in bounds),
        step=tuple(risk.step.params for risk in risks if risk.step is not None),
        judge=tuple(r.loss.params if isinstance(r.loss, Counts) else () for r in risks),
        family=sets.params if isinstance(sets, Learns) else (),
        delta=controller.combine.anti_windup or 0.0,
        support=support,
        outward=support,
    )


class Laws:
    """A controller at work on one state after the other."""

    def __init__(self, controller: Controller, sets: Any = None) -> None:
        risks = range(len(controller.risks))
        self.each = tuple(Law(controller, index, sets) for index in risks)
        self.rules, self.numbers = rules_of(controller), numbers_of(controller)
        self.family: Any = controller.sets

    def aim(self, state: State) -> tuple[Any, int]:
        """θ → λ, and the risk that leads."""
        return recursion.aim(self.rules, self.numbers, state.position)

    def heed(self, state: State, others: int) -> None:
        """Tells the parts that ask for it how many other predictions wait."""
        state.move(recursion.heed(self.rules, self.numbers, state.position, float(others)))

    def learn(
        self, state: State, reading: Any, shown: Any, lam: Any, leader: int, y: Any
    ) -> tuple[float | None, ...]:
        """Losses → θ → φ; nothing is changed before everything is computed."""
        laws, rules, position = self.each, self.rules, state.position
        weighed = laws[0].sets.weigh(reading, y) if laws[0].remembers else None
        values: list[float] = []
        memories: list[Memory] = []
        scores: list[float] = []
        unjudged: list[bool] = []
        for i, law in enumerate(laws):
            part, set_shown, at = reading, shown, lam
            if rules.split:
                part, set_shown, at = self.family.part(reading, i), shown.parts[i], shown.lams[i]
            value, memory = law.judge(position.loss[i], set_shown, y, at)
            unjudged.append(value is None)
            value = law.substitute if value is None else value
            values.append(nan if value is None else value)
            memories.append(memory)
            wanted = value is not None and (law.scored or (law.scores and i == leader))
            scores.append(law.critical(part, y) if wanted else 0.0)
        learnt = laws[0].learn_family(state, reading, y) if laws[0].learns else ()
        position = recursion.learn(
            rules, self.numbers, position, tuple(values), tuple(memories), tuple(scores),
            0.0 if rules.split else lam, leader, position.family,
        )  # fmt: skip
        self._check(position, state)
        lams = shown.lams if rules.split else (lam,) * len(laws)
        judged = [lam for lam, value in zip(lams, values, strict=True) if value == value]
        state.full += inf in judged
        state.empty += -inf in judged
        state.torn += leader == TORN and bool(judged)
        state.move(position)
        if laws[0].learns:
            laws[0].keep(state, reading, learnt)
        for risk, value, nothing in zip(state.risks, values, unjudged, strict=True):
            risk.unjudged += nothing
            risk.judged += value == value
        if laws[0].remembers:
            laws[0].sets.observe(weighed)
        return tuple([None if value != value else value for value in values])

    def _check(self, position: Position, state: State) -> None:
        """Raises the error of a user's step rule or stretch that gave back something else."""
        for law, theta, step in zip(self.each, position.theta, position.step, strict=True):
            if law.step_doubted:
                law.check_step(theta, step)
        if self.each[0].stretch_doubted:
            self.each[0].check_stretch(position.stretch, len(state.stretch))


def prepared(law: Law, state: State, columns: Memory) -> Any:
    """A prediction as its receipt holds it, where the family learns."""
    memory = state.family
    if law.seasonal:
        memory += state.cells[int(law.phase(law.family_params, memory, columns))]
    return law.prepare(law.family_params, memory, columns)


def turned(law: Law, state: State, reading: Any) -> None:
    """The season of a family goes on once a set was shown."""
    state.family = law.turn(law.family_params, state.family, reading)


def aim_one(law: Law, risk: RiskState, stretch: Memory) -> float:
    """`recursion.aim` for a single risk."""
    theta = risk.theta
    if theta > law.top:
        return inf
    if theta < law.bottom:
        return -inf
    lam: float = law.phi(law.phi_params, stretch, theta)
    return lam


def learn_one(
    law: Law, risk: RiskState, state: State, reading: Any, shown: Any, lam: float, y: Any
) -> float | None:
    """`recursion.learn` for a single risk; nothing is changed before everything is computed."""
    if law.remembers:
        weighed = law.sets.weigh(reading, y)
    if law.plain_learner:
        learnt = law.observe(law.family_params, state.family, reading, y)
    else:
        learnt = law.learn_family(state, reading, y) if law.learns else ()
    value: float | None
    if law.counts:
        value, loss = law.rule(law.params, risk.loss, not shown.contains(y))
    else:
        value, loss = law.update(risk.loss, shown, y)
    judged = True
    if law.doubted:
        value, loss = law.check(value, loss, lam)
        if value is None:
            judged, value = False, law.substitute
    if value is not None:
        excess = law.level - value if law.grows else value - law.level
        critical = law.critical(reading, y) if law.scored else 0.0
        theta, step = law.step(law.step_params, risk.theta, risk.step, excess, critical)
        if law.step_doubted:
            theta, step = law.check_step(theta, step)
        calm, stretch, least = -inf < lam < inf, state.stretch, -inf
        if law.move is not None and (calm or law.always):
            score = law.score(reading, y) if law.scores else 0.0
            stretch = law.move(law.phi_params, stretch, excess, score, lam)
            if law.stretch_doubted:
                stretch = law.check_stretch(stretch, len(state.stretch))
        if law.least is not None:
            least = law.least(law.step_params, step)
        if not calm:
            state.saturated(lam)
        if theta < least:
            risk.lifts += 1
            risk.lifted += least - theta
            theta = least
        risk.theta, risk.step, risk.loss, state.stretch = theta, step, loss, stretch
        risk.judged += 1
        risk.total += value
    if not judged:
        risk.unjudged += 1
    if law.plain_learner:
        state.family = learnt
    elif law.learns:
        law.keep(state, reading, learnt)
    if law.remembers:
        law.sets.observe(weighed)
    return value
