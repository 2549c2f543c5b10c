"""The rules that a controller is made of, looked up and tried once."""

from functools import lru_cache, wraps
from math import inf, isfinite, nan
from types import FunctionType
from typing import Any, NamedTuple, cast

from setpoint._check import number
from setpoint.controller import Controller, Risk, filled, step_params
from setpoint.correction import Correction, Rescores
from setpoint.errors import InputError, LossError
from setpoint.losses import Calms, Counts, CountsEach, Keeps, declaration, if_any, turns
from setpoint.recursion import Ledger, Link, Memory
from setpoint.sets.family import (
    ByClass,
    Classed,
    Draws,
    InParts,
    Members,
    Remembers,
    Scalar,
    Shares,
    Supports,
    member_of,
    members_of,
    never_empty,
    order_of,
    whole_of,
)
from setpoint.sets.intervals import itself, up_to
from setpoint.steps.claims import Accounts, Scored
from setpoint.stretches import Always


class Rules(NamedTuple):
    """What controllers of one kind share: pure functions, and facts that never change.

    `some` is `combine.empty_if == "some"`, `near` that there is anti-windup; `scored` says that the
    stretch asks for the critical value of y, `always` that it also moves where the safeguard chose
    the set. `partly`: members may be judged at different times; `several`: loops judge label sets
    by how many of several labels they missed. What only scalar families have is None of others.
    """

    links: tuple[Link, ...]
    phi: Any
    move: Any
    merge: Any
    scored: bool
    always: bool
    some: bool
    near: bool
    members: int
    order: tuple[int, ...]
    free: tuple[bool, ...]
    ends: Any
    sound: Any
    predict: Any
    learn: Any
    partly: bool
    several: bool = False

    @property
    def split(self) -> bool:
        """Whether λ is a tuple, one for each member."""
        return self.members > 1 or self.partly


def scalar(controller: Controller) -> bool:
    """Whether a controller is made of scalar rules only, and so runs in compiled loops."""
    stretch, stage, whole = controller.stretch, controller.correction, whole_of(controller.sets)
    families = [whole, *(member_of(controller.sets, i) for i in controller.owners)]
    if not all(isinstance(family, Scalar) for family in families):
        return False
    rules = [whole.sound, stretch.phi, controller.combine.rule]
    rules += [rule for family in families for rule in (family.ends, family.score)]
    rules += [] if stretch.move is None else [stretch.move]
    if isinstance(stage, Correction):
        rules += [stage.predict, stage.learn, stage.sound]
    for risk in controller.risks:
        if risk.step is None or not isinstance(risk.loss, Counts):
            return False
        rules += [risk.step.rule, risk.loss.rule, *(_ledger(risk.step) or ())]
    return all(isinstance(rule, FunctionType) for rule in rules)


def by_class(controller: Controller) -> bool:
    """Whether a controller shows label sets that loops can run: each judged by critical values.

    Loops see a label by its critical value; its set holds all labels up to λ.
    """
    sets, stage, held = controller.sets, controller.correction, controller.risks
    if not isinstance(sets, ByClass) or (isinstance(sets, Draws) and sets.draws):
        return False
    several = has_several(sets)
    counts = all(
        isinstance(r.loss, Counts) or (several and isinstance(r.loss, CountsEach)) for r in held
    )
    steps: Any = [risk.step for risk in held]
    scored = any(isinstance(step, Scored) and step.scored for step in steps)
    # Which of several labels counts, the loss would have to say.
    if several and (scored or controller.stretch.move is not None):
        return False
    # A set that is never empty holds more than what lies up to λ: only where that does not show.
    full = [isinstance(risk.step, Accounts) and not risk.step.two_sided for risk in held]
    if never_empty(sets) and not (isinstance(stage, Rescores) and all(full)):
        return False
    rules = [controller.stretch.phi, controller.stretch.move, controller.combine.rule]
    for risk in held:
        if risk.step is None or not counts:
            return False
        rules += [risk.step.rule, _counted(risk.loss), *(_ledger(risk.step) or ())]
    rules += [stage.predict, stage.learn] if isinstance(stage, Rescores) else []
    return all(isinstance(rule, FunctionType) for rule in rules if rule is not None)


def has_several(sets: Any) -> bool:
    """Whether a row has several true labels."""
    return isinstance(sets, Classed) and sets.several


def _counted(loss: Any) -> Any:
    """The rule of a loss that asks only what was missed."""
    return loss.rule if isinstance(loss, Counts) else loss.each


def classes_of(controller: Controller) -> int:
    """How many classes a family names, 0 if it names none."""
    sets: Any = controller.sets
    classes = sets.classes if isinstance(sets, ByClass) else None
    return classes if isinstance(classes, int) else len(classes or ())


def class_rules(controller: Controller) -> Rules:
    """The rules of label sets as loops run them."""
    several = has_several(controller.sets)
    rules = rules_of(controller, counts=not several)
    links = [link._replace(score=itself) for link in rules.links]
    if several:
        links = [
            link._replace(judge=if_any(loss.rule) if isinstance(loss, Counts) else _counted(loss))
            for link, loss in zip(links, [risk.loss for risk in controller.risks], strict=True)
        ]
    return rules._replace(links=tuple(links), ends=(up_to,), several=several)


def support_of(controller: Controller) -> tuple[float, float]:
    """The values y can take."""
    sets = controller.sets
    return sets.support if isinstance(sets, Supports) else (-inf, inf)


def rules_of(controller: Controller, counts: bool) -> Rules:
    """The rules of a controller."""
    sets, stage, combine = controller.sets, controller.correction, controller.combine
    stretch: Any = controller.stretch
    several, members = len(controller.risks) > 1, members_of(sets)
    families = [member_of(sets, index) for index in range(members)]
    pure = all(isinstance(family, Scalar) for family in families)
    moving = stretch.move is not None
    return Rules(
        links=tuple(_link(controller, place, counts) for place in range(len(controller.risks))),
        phi=stretch.phi,
        move=stretch.move,
        merge=combine.rule,
        # One of a user's that moves may ask for the critical value.
        scored=stretch.scored if isinstance(stretch, Scored) else moving,
        always=isinstance(stretch, Always) and stretch.always,
        some=several and combine.empty_if == "some",
        near=several and combine.anti_windup is not None,
        members=members,
        order=order_of(sets),
        free=sets.free if isinstance(sets, Members) else (False,),
        ends=tuple([family.ends for family in families]) if pure else None,
        sound=controller.reader.sound if pure else None,
        predict=stage.predict if isinstance(stage, Correction | Rescores) else None,
        learn=stage.learn if isinstance(stage, Correction | Rescores) else None,
        partly=isinstance(sets, InParts),
    )


def numbers_of(controller: Controller, *, group: bool = False) -> Any:
    """The numbers of a controller, as `aim` and `learn` take them, or of its risks in a group."""
    risks = tuple([
        (
            *(risk.level, *bounds),
            filled(risk.loss.params if isinstance(risk.loss, Counts) else ()),
            step_params(risk, group=group),
        )
        for risk, bounds in zip(controller.risks, controller.bounds, strict=True)
    ])  # fmt: skip
    return risks, filled(controller.stretch.params), controller.combine.anti_windup or 0.0


def _link(controller: Controller, place: int, counts: bool) -> Link:
    """The rules of one risk."""
    risk, member = controller.risks[place], controller.owners[place]
    step: Any = risk.step
    family = member_of(controller.sets, member)
    return Link(
        _known(risk.loss.rule)
        if isinstance(controller.sets, InParts)
        else risk.loss.rule
        if counts
        else _judged(risk),
        _forgetful(step.rule) if _forgets(step, _missed(risk)) else step.rule,
        family.score if isinstance(family, Scalar) else _critical(risk, family),
        _ledger(step),
        declaration(risk.loss).grows,
        isinstance(step, Scored) and step.scored,
        risk.unjudged == "zero",
        member,
        turns(risk.loss, risk.level),
    )


def _known(rule: Any) -> Any:
    """The loss of what may not be known: NaN there."""

    def judge(params: Memory, memory: Memory, missed: float) -> tuple[float, Memory]:
        return (nan, memory) if missed != missed else rule(params, memory, missed)

    return judge


def _ledger(step: Any) -> Ledger | None:
    """The rules of a step rule that keeps a book of what waits."""
    if not isinstance(step, Accounts):
        return None
    return Ledger(step.ask, step.opened, step.settled, step.dropped, step.least)


def _judged(risk: Risk) -> Any:
    """The loss of a shown set and y."""
    loss, name, declared = risk.loss, risk.name, declaration(risk.loss)
    update = loss.update if isinstance(loss, Keeps) else None
    rule = loss.rule if isinstance(loss, Counts) else None
    size = len(loss.init()) if isinstance(loss, Keeps) else 0

    def judge(params: Memory, memory: Memory, evidence: Any) -> tuple[float, Memory]:
        shown, y = evidence
        if rule is not None:
            value, memory = rule(params, memory, not shown.contains(y))
        elif update is not None:
            value, memory = update(memory if size else (), shown, y)
            check_memory(memory, size, name)
            memory = filled(memory)
        else:
            value = loss(shown, y)
        if value is None:
            return nan, memory
        loss_value = number(value, f"the loss {name}", LossError)
        if loss_value != loss_value:
            low, high = declared[:2]
            raise LossError(f"{name} promises a loss in [{low:g}, {high:g}], got {value}")
        return loss_value, memory

    return judge


def _critical(risk: Risk, sets: Any) -> Any:
    """The smallest λ that would have kept the loss at its level.

    A reading of a family with a window is the pair of the family at work and the reading.
    """
    # Where y has many critical values, the loss says which of them counts.
    calm = risk.loss.critical if isinstance(risk.loss, Calms) and isinstance(sets, Shares) else None
    level, windowed = risk.level, isinstance(sets, Remembers)

    def critical(reading: Any, y: Any) -> float:
        if windowed:
            at_work, reading = reading
            return float(at_work.critical(reading, y))
        if calm is not None:
            return float(calm(sets.criticals(reading, y), level))
        return float(sets.critical(reading, y))

    return critical


# What a part gives back is of the right shape: tried once, when the plan is made.


def try_out(controller: Controller) -> None:
    """Raises the error of a rule whose memory is not what its part declares."""
    stretch: Any = controller.stretch
    memory = filled(stretch.init())
    for risk, start in zip(controller.risks, controller.starts, strict=True):
        step, missed = cast(Any, risk.step), _missed(risk)
        kept = tuple(step.init())
        params = step_params(risk) if step.params else ()
        theta, after = tried(step, step.rule, params, start, kept, missed, 0.0)
        check_memory(after, len(kept), type(step).__name__)
        number(theta, f"the θ of {type(step).__name__}")
        if stretch.move is not None:
            moved = tried(stretch, stretch.move, filled(stretch.params), memory, missed, 1.0, 0.0)
            check_memory(moved, len(memory), type(stretch).__name__)
        if isinstance(risk.loss, Counts) and isinstance(risk.loss, Keeps):
            first = filled(risk.loss.init())
            _, after = tried(risk.loss, risk.loss.rule, filled(risk.loss.params), first, True)
            check_memory(after, len(first), risk.name)
        if isinstance(step, Accounts):
            _try_book(step, params, start, kept, missed)


def _try_book(step: Any, params: Memory, theta: float, book: Memory, missed: float) -> None:
    """Raises the error of a book whose pages differ in size."""
    asked, press, habit = tried(step, step.ask, params, theta, book)
    number(press, f"the press of {type(step).__name__}")
    pages = [asked, tried(step, step.opened, asked, False), tried(step, step.opened, asked, True)]
    pages += [tried(step, step.settled, pages[1], missed, False, habit)]
    pages += [tried(step, step.dropped, pages[2], True), step.begun(params, theta, book)]
    for page in pages:
        check_memory(page, len(book), type(step).__name__)
    for opened, full in ((pages[1], False), (pages[2], True)):
        gone = (opened[0] - 1.0, opened[1] - (not full), *opened[2:])
        if tried(step, step.dropped, opened, full) != gone:
            raise InputError(
                f"dropped of {type(step).__name__} must lower what waits by one, and what can miss "
                "by one if the set was not full, and nothing else"
            )


def _missed(risk: Risk) -> float:
    """The excess of a miss."""
    excess = declaration(risk.loss).high - risk.level
    return excess if isfinite(excess) else 1.0


def tried(part: Any, rule: Any, *arguments: Any) -> Any:
    try:
        return rule(*arguments)
    except Exception as error:
        name = f"{type(part).__name__}, tried on {arguments}"
        raise InputError(f"{name}, raised {type(error).__name__}: {error}") from error


def _forgets(step: Any, missed: float) -> bool:
    """Whether a rule without a memory gives back none, whatever it was given."""
    if step.init():
        return False
    _, after = tried(step, step.rule, filled(step.params), 0.0, (0.0,), missed, 0.0)
    return bool(after == ())


@lru_cache(maxsize=256)
def _forgetful(rule: Any) -> Any:
    """Such a rule in the shape of one that hands its memory on."""

    @wraps(rule)
    def step(params: Any, theta: float, memory: Any, excess: float, critical: float) -> Any:
        return rule(params, theta, memory, excess, critical)[0], memory

    return step


def check_memory(memory: Any, size: int, whose: str) -> None:
    if not isinstance(memory, tuple) or len(memory) != size:
        raise InputError(f"{whose} must keep a memory of {size} floats, got {memory!r}")
