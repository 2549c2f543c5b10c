"""The controller: Rolling Risk Control as a description, a state and a recursion.

    λ   = combine(φ(θ_i) for each risk i)      full set if some θ_i > M_i, empty if every θ_i < m_i
    set = sets.at(prediction, λ)               shown, kept until y arrives
    l_i = loss_i(set, y)
    θ_i = step_i(θ_i, l_i − r_i)               the paper: θ_i + γ_i (l_i − r_i)
    φ   = move(φ)                              adaptive stretching only, once a step

`Controller` and `Risk` say what is to be held and how, by value; `State` is all that survives a
step; the functions at the end run the lines above. None of them knows x, the model or ids.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any

from setpoint._check import choice, finite, interval, number
from setpoint.combine import Combine, Max
from setpoint.errors import InputError, LossError
from setpoint.losses import declaration
from setpoint.sets import Family
from setpoint.steps import Step
from setpoint.stretches import Identity, Stretch

__all__ = [
    "Controller",
    "Law",
    "Risk",
    "RiskState",
    "State",
    "aim",
    "aim_each",
    "aim_several",
    "excess_of",
    "judge",
    "laws_of",
    "learn",
    "learn_each",
    "learn_several",
    "lift",
    "matching",
    "step_of",
    "stretch_of",
]

Memory = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Risk:
    """One risk to hold: a loss, the level its mean is driven to, and how fast.

    Parameters
    ----------
    loss
        From `setpoint.losses`, or any callable of (shown, y) that declares its range.
    level
        The paper's r, within the range of the loss.
    step
        The step rule, `steps.Fixed(γ)` in the paper. `None` leaves it to `setpoint.burn_in`.
    start
        The first θ. `None` takes the family's default.
    bounds
        (m, M), in units of θ: above M the full set is shown, below m the empty one. `None` takes
        the family's default, or a burn-in's; without either there is no safeguard, and the
        certificate says so.
    unjudged
        What a step with nothing to judge (no positive label, no valid pixel) counts as: "skip"
        leaves it out, "zero" counts a loss of 0, which keeps the upper bound only.
    """

    loss: Any
    level: float
    step: Step | None = None
    start: float | None = None
    bounds: tuple[float, float] | None = None
    unjudged: str = "skip"

    def __post_init__(self) -> None:
        promise = declaration(self.loss)
        level = finite(self.level, "level")
        if not promise.low <= level <= promise.high:
            raise InputError(
                f"level must lie in the range of {self.name}, "
                f"[{promise.low:g}, {promise.high:g}], got {level}"
            )
        object.__setattr__(self, "level", level)
        step: Any = self.step
        wanted = ("rule", "params", "needs")
        if isinstance(step, type) or not (step is None or all(hasattr(step, w) for w in wanted)):
            raise InputError(
                f"step must be a step rule, as steps.Fixed(0.05), with {', '.join(wanted)}, "
                f"got {step!r}"
            )
        if self.bounds is not None:
            object.__setattr__(self, "bounds", interval(self.bounds, "bounds"))
        if self.start is not None:
            object.__setattr__(self, "start", finite(self.start, "start"))
        choice(self.unjudged, "unjudged", ("skip", "zero"))
        if self.unjudged == "zero" and not promise.low <= 0.0 <= promise.high:
            raise InputError(f'unjudged="zero" needs 0 in the range of {self.name}')

    @property
    def name(self) -> str:
        """The name of its loss, for people."""
        return type(self.loss).__name__


@dataclass(frozen=True, slots=True, init=False)
class Controller:
    """Everything Rolling RC is told: which sets, which risks, how θ becomes λ.

    Parameters
    ----------
    sets
        A family of nested sets, such as `sets.Widen()`.
    risks
        One `Risk` or several.
    stretch
        How θ becomes λ.
    combine
        How the λ's of several risks become one.

    Examples
    --------
    >>> import setpoint as sp
    >>> controller = sp.Controller(
    ...     sets=sp.sets.Widen(),
    ...     risks=sp.Risk(sp.losses.Miscoverage(), level=0.1, step=sp.steps.Fixed(0.05)),
    ... )
    >>> controller.starts
    (0.0,)

    References
    ----------
    Feldman, Ringel, Bates and Romano, "Achieving Risk Control in Online Learning Settings",
    TMLR 2023: sections 3.1 to 3.3.
    """

    sets: Family
    risks: tuple[Risk, ...]
    stretch: Stretch
    combine: Combine

    def __init__(
        self,
        sets: Family,
        risks: Risk | Iterable[Risk],
        stretch: Stretch | None = None,
        combine: Combine | None = None,
    ) -> None:
        several = isinstance(risks, Iterable) and not isinstance(risks, str)
        held = tuple(risks) if several else (risks,)  # type: ignore[arg-type]
        if not held or not all(isinstance(risk, Risk) for risk in held):
            raise InputError(f"risks must be a Risk or several of them, got {risks!r}")
        object.__setattr__(self, "sets", sets)
        object.__setattr__(self, "risks", held)
        object.__setattr__(self, "stretch", Identity() if stretch is None else stretch)
        object.__setattr__(self, "combine", Max() if combine is None else combine)
        self._check()

    def _check(self) -> None:
        risks = self.risks
        for name, part, wanted in (
            ("sets", self.sets, ("at", "critical")),
            ("stretch", self.stretch, ("phi", "inverse")),
            ("combine", self.combine, ("rule", "anti_windup")),
        ):
            if isinstance(part, type) or not all(hasattr(part, method) for method in wanted):
                raise InputError(f"{name} must be a part with {' and '.join(wanted)}, got {part!r}")
        if len(risks) > 1 and any(declaration(risk.loss).grows for risk in risks):
            growing = [risk.name for risk in risks if declaration(risk.loss).grows]
            raise InputError(
                f"{', '.join(growing)} grows with the set, so it can be held as the only risk "
                "or watched as a metric, but not together with other risks"
            )
        for risk, start, (low, high) in zip(risks, self.starts, self.bounds, strict=True):
            if not low <= start <= high:
                raise InputError(
                    f"the start of {risk.name} must lie in its bounds [{low:g}, {high:g}], "
                    f"got {start:g}"
                )
        self._check_sides()
        self._check_anti_windup()

    def _check_sides(self) -> None:
        """What a family asks whose sets have a λ each."""
        sides = getattr(self.sets, "sides", None)
        if sides is None:
            return
        name, levels = type(self.sets).__name__, [risk.level for risk in self.risks]
        if len(levels) != sides:
            raise InputError(f"{name} needs {sides} risks, one for each set, got {len(levels)}")
        if self.stretch.move is not None:
            raise InputError(
                f"{name} has a λ for each set, which a stretch with one memory cannot serve: use "
                f"stretches.Identity() or stretches.Exponential(), got {self.stretch!r}"
            )
        if self.combine != Max():
            raise InputError(f"{name} combines nothing: leave out combine, got {self.combine!r}")
        rising = any(low < high for low, high in pairwise(levels))
        if rising and not all(self.sets.alone(i) for i in range(sides)):  # type: ignore[attr-defined]
            raise InputError(f"{name} takes the smallest set first: levels must fall, got {levels}")

    def _check_anti_windup(self) -> None:
        delta = self.combine.anti_windup
        if delta is None:
            return
        highest = max(high for _, high in self.bounds)
        for risk, (_, high) in zip(self.risks, self.bounds, strict=True):
            if high < highest - delta:
                raise InputError(
                    f"anti_windup={delta:g} would push {risk.name} into saturation: its upper "
                    f"bound must be at least {highest - delta:g}, got {high:g}"
                )

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """(m, M) of each risk, in units of θ; infinite where nothing is known yet."""
        default = self.sets.bounds()
        memory = self.stretch.init()
        if default is None:
            family = (-inf, inf)
        else:
            low, high = (self.stretch.inverse(lam, memory) for lam in default)
            family = (low, high)
        return tuple(family if risk.bounds is None else risk.bounds for risk in self.risks)

    @property
    def starts(self) -> tuple[float, ...]:
        """The first θ of each risk."""
        memory = self.stretch.init()
        return tuple(
            self.stretch.inverse(self.sets.start(risk.level), memory)
            if risk.start is None
            else risk.start
            for risk in self.risks
        )

    @property
    def terms(self) -> tuple[Any, ...]:
        """What a certificate's segment is about: each risk's level, step and bounds."""
        steps = [
            (type(risk.step).__name__, getattr(risk.step, "params", ())) for risk in self.risks
        ]
        return tuple(
            (risk.level, *step, *bounds)
            for risk, step, bounds in zip(self.risks, steps, self.bounds, strict=True)
        )

    def init(self) -> "State":
        """The state before the first step."""
        state = State(
            [
                RiskState(start, _init(risk.step), _init(risk.loss))
                for risk, start in zip(self.risks, self.starts, strict=True)
            ],
            self.stretch.init(),
            self.terms,
            self.sets.bind() if hasattr(self.sets, "bind") else None,
        )
        state.fresh = True
        return state


def _init(part: Any) -> Memory:
    """The first memory of a part, () for one that keeps none."""
    return tuple(part.init()) if hasattr(part, "init") else ()


class RiskState:
    """What survives a step of one risk.

    `theta`, the memories of its step rule and its loss; then, since the segment began: `first`,
    the θ it began with; `judged`, `total` and `unjudged`, the number of losses, their sum and
    how often there was nothing to judge; `lifts` and `lifted`, how often and how far anti-windup
    raised θ.
    """

    __slots__ = ("first", "judged", "lifted", "lifts", "loss", "step", "theta", "total", "unjudged")

    def __init__(self, theta: float, step: Memory, loss: Memory) -> None:
        self.theta = theta
        self.step = step
        self.loss = loss
        self.begin()

    def begin(self) -> None:
        """Begins a segment here."""
        self.first = self.theta
        self.judged = self.unjudged = self.lifts = 0
        self.total = self.lifted = 0.0


class State:
    """What survives a step: each risk's own, the memories of stretch and family, and counts.

    `sets` is the family at work, if it is one that remembers, else None. Since the segment began:
    `full` and `empty` count the labels whose set the safeguard chose, `torn` those where one risk
    asked for the full set while another was below its lower bound; `missing`, `dropped` and
    `expired` count the predictions that were never judged; `peak` is the most that waited for a
    label at once, and `inherited` how many waited when it began. `terms` are those of the
    controller in force, and `fresh` says that the segment is the first.
    """

    __slots__ = (
        "dropped", "empty", "expired", "fresh", "full", "inherited", "missing", "peak", "risks",
        "sets", "stretch", "terms", "torn",
    )  # fmt: skip

    def __init__(
        self, risks: list[RiskState], stretch: Memory, terms: tuple[Any, ...], sets: Any = None
    ) -> None:
        self.risks = risks
        self.stretch = stretch
        self.sets = sets
        self.begin(0, terms)

    def begin(self, waiting: int, terms: tuple[Any, ...]) -> None:
        """Begins a segment: θ and the memories go on, the counts start again."""
        self.terms = terms
        self.fresh = False
        self.full = self.empty = self.torn = 0
        self.missing = self.dropped = self.expired = 0
        self.inherited = waiting
        self.peak = max(waiting, 1)
        for own in self.risks:
            own.begin()

    def copy(self) -> "State":
        """A state that shares nothing with this one."""
        risks = [RiskState(own.theta, own.step, own.loss) for own in self.risks]
        made = State(risks, self.stretch, self.terms)
        for name in State.__slots__:
            if name != "risks":
                setattr(made, name, getattr(self, name))
        if self.sets is not None:
            made.sets = self.sets.copy()
        for mine, own in zip(made.risks, self.risks, strict=True):
            for name in RiskState.__slots__:
                setattr(mine, name, getattr(own, name))
        return made

    def saturated(self, lam: float) -> None:
        """Counts a label whose set the safeguard chose."""
        if lam > 0.0:
            self.full += 1
        else:
            self.empty += 1


def matching(controller: Controller, state: State) -> State:
    """The state to go on from: a copy, with a new segment if its controller had other terms."""
    ours = controller.init()
    shapes = [
        (
            len(each.stretch),
            each.sets is None,
            [(len(own.step), len(own.loss)) for own in each.risks],
        )
        for each in (state, ours)
    ]
    if shapes[0] != shapes[1]:
        raise InputError(
            f"the state does not fit {controller!r}: it was made by another controller"
        )
    taken = state.copy()
    if taken.sets is not None:
        taken.sets = controller.sets.bind(taken.sets.memory)  # type: ignore[attr-defined]
    if taken.terms != controller.terms:
        taken.begin(0, controller.terms)
    return taken


class Law:
    """One risk with everything a step asks of it looked up once.

    `sets` is the family at work, where it is one that remembers.
    """

    def __init__(self, controller: Controller, index: int, sets: Any = None) -> None:
        risk = controller.risks[index]
        if risk.step is None:
            raise InputError(
                f"the risk {risk.name} has no step rule yet: give step=steps.Fixed(γ), or let "
                "setpoint.burn_in choose γ from past predictions and labels"
            )
        loss, promise = risk.loss, declaration(risk.loss)
        self.risk, self.name = risk, risk.name
        self.level = risk.level
        self.bottom, self.top = controller.bounds[index]
        self.promise = promise
        self.grows = promise.grows
        self.substitute = 0.0 if risk.unjudged == "zero" else None
        # A loss with a rule only asks whether y was missed; the library's own need no checking.
        self.counts = hasattr(loss, "rule")
        self.doubted = not (self.counts and type(loss).__module__ == declaration.__module__)
        self.rule: Any = loss.rule if self.counts else None
        self.params = loss.params if self.counts else ()
        self.judge = loss.update if hasattr(loss, "init") else _Stateless(loss).update
        self.step, self.step_params = risk.step.rule, risk.step.params
        self.step_remembers, self.loss_remembers = bool(_init(risk.step)), bool(_init(loss))
        self.simple = risk.step.needs == "excess"
        # The library's own parts keep their promises; what a user's give back is checked.
        ours = __name__.split(".")[0]
        self.step_name, self.step_size = type(risk.step).__name__, len(_init(risk.step))
        self.loss_size = len(_init(loss))
        self.step_doubted = type(risk.step).__module__.split(".")[0] != ours
        self.stretch_doubted = type(controller.stretch).__module__.split(".")[0] != ours
        family: Any = controller.sets
        self.remembers = hasattr(family, "bind")
        if self.remembers:
            family = family.bind() if sets is None else sets
        self.sets = family.side(index) if hasattr(family, "sides") else family
        # Where y has many critical values, the loss says which of them the stretch is told.
        self.shares = hasattr(loss, "critical") and hasattr(self.sets, "criticals")
        self.needed: Any = loss.critical if self.shares else None
        self.stretch = controller.stretch
        self.phi, self.phi_params = controller.stretch.phi, controller.stretch.params
        self.move = controller.stretch.move
        self.moves = controller.stretch.move is not None

    def check(self, got: Any, lam: float) -> float | None:
        """The loss as a float, if it keeps the promises made for it."""
        if got is None:
            return None
        promise, sign = self.promise, -1.0 if self.grows else 1.0
        value = number(got, f"the loss {self.name}", LossError)
        if not promise.low <= value <= promise.high:
            allowed = f"a loss in [{promise.low:g}, {promise.high:g}]"
        elif lam == inf and (value - promise.full) * sign > 0.0:
            allowed = f"at {'least' if self.grows else 'most'} {promise.full:g} on the full set"
        elif lam == -inf and (value - promise.empty) * sign < 0.0:
            allowed = f"at {'most' if self.grows else 'least'} {promise.empty:g} on the empty set"
        else:
            return value
        raise LossError(f"{self.name} promises {allowed}, got {value}")

    def first_step_memory(self) -> Memory:
        """What the step rule remembers at first."""
        return _init(self.risk.step)

    def check_memory(self, memory: Any, size: int, whose: str) -> Memory:
        """A memory a user's part gave back, if it has the size it declared."""
        if not isinstance(memory, tuple) or len(memory) != size:
            raise InputError(f"{whose} must keep a memory of {size} floats, got {memory!r}")
        return memory

    def check_step(self, theta: Any, memory: Any) -> tuple[float, Memory]:
        """What a user's step rule gave back, if it is a finite θ and a memory of its size."""
        return finite(theta, f"the θ of {self.step_name}"), self.check_memory(
            memory, self.step_size, self.step_name
        )

    def feedback(
        self, own: RiskState, memory: Memory, prediction: Any, y: Any
    ) -> tuple[float, Callable[[float], float]]:
        """What adaptive step rules ask for, under φ as it is now: the smallest θ whose set would
        have kept the loss at its level, and the excess as a function of θ."""

        def curve(theta: float) -> float:
            if theta > self.top:
                lam = inf
            elif theta < self.bottom:
                lam = -inf
            else:
                lam = self.phi(self.phi_params, memory, theta)
            value, _ = judge(self, own, self.sets.at(prediction, lam), y, 0.0)
            value = self.substitute if value is None else value
            return 0.0 if value is None else excess_of(self, value)

        covering = self.stretch.inverse(self.sets.critical(prediction, y), memory)
        if self.counts and not self.grows:
            miss, _ = self.rule(self.params, own.loss, True)
            hit, _ = self.rule(self.params, own.loss, False)
            if hit <= self.level < miss:
                return covering, curve
        return _first_calm(curve, self.bottom, self.top, covering), curve


def _first_calm(curve: Callable[[float], float], low: float, high: float, near: float) -> float:
    """The smallest θ at which a curve that does not rise is 0 or below, ±inf if there is none."""
    near = near if -inf < near < inf else 0.0
    reach = 1.0
    while low == -inf or high == inf:
        left = near - reach if low == -inf else low
        right = near + reach if high == inf else high
        if (curve(left) > 0.0 >= curve(right)) or reach > 1e300:
            low, high = left, right
        reach *= 2.0
    if curve(low) <= 0.0:
        return -inf
    if curve(high) > 0.0:
        return inf
    while low < (middle := low + 0.5 * (high - low)) < high:
        if curve(middle) <= 0.0:
            high = middle
        else:
            low = middle
    return high


def laws_of(controller: Controller, state: State) -> tuple[Law, ...]:
    """The law of each risk, for one stream with this state."""
    return tuple(Law(controller, index, state.sets) for index in range(len(controller.risks)))


class _Stateless:
    """A loss without memory in the shape of one with."""

    def __init__(self, loss: Any) -> None:
        self.loss = loss

    def update(self, memory: Memory, shown: Any, y: Any) -> tuple[Any, Memory]:
        return self.loss(shown, y), memory


# The recursion. Each function ends in its only return, so that a live step can have it written
# out in place (see _inline); nothing is assigned to the state before everything is computed.


def aim(law: Law, own: RiskState, memory: Memory) -> float:
    """θ → λ for one risk; +inf asks for the full set, −inf for the empty one."""
    theta = own.theta
    if theta > law.top:
        lam = inf
    elif theta < law.bottom:
        lam = -inf
    else:
        lam = law.phi(law.phi_params, memory, theta)
    return lam


def judge(law: Law, own: RiskState, shown: Any, y: Any, lam: float) -> tuple[Any, Memory]:
    """The loss of what was shown, None if there is nothing to judge, and its next memory."""
    if law.counts:
        covered = shown.contains(y)
        missed = not covered
        value, memory = law.rule(law.params, own.loss, missed)
    else:
        value, memory = law.judge(own.loss, shown, y)
    if law.doubted:
        value = law.check(value, lam)
        memory = law.check_memory(memory, law.loss_size, law.name)
    return value, memory


def excess_of(law: Law, value: float) -> float:
    """How far a loss is above its level; a loss that grows with the set counts the other way."""
    if law.grows:
        excess = law.level - value
    else:
        excess = value - law.level
    return excess


def step_of(
    law: Law, own: RiskState, excess: float, memory: Memory, prediction: Any, y: Any
) -> tuple[float, Memory]:
    """The next θ and the next memory of the step rule."""
    if law.simple:
        theta, step = law.step(law.step_params, own.theta, own.step, excess, 0.0, None)
    else:
        critical, curve = law.feedback(own, memory, prediction, y)
        theta, step = law.step(law.step_params, own.theta, own.step, excess, critical, curve)
    if law.step_doubted:
        theta, step = law.check_step(theta, step)
    return theta, step


def stretch_of(
    law: Law, memory: Memory, excess: float, prediction: Any, y: Any, lam: float
) -> Memory:
    """The next memory of the stretch."""
    if law.shares:
        score = law.needed(law.sets.criticals(prediction, y), law.level)
    else:
        score = law.sets.critical(prediction, y)
    moved: Memory = law.move(law.phi_params, memory, excess, score, lam)
    if law.stretch_doubted:
        moved = law.check_memory(moved, len(memory), "the stretch")
    return moved


def learn(
    law: Law, own: RiskState, state: State, prediction: Any, shown: Any, lam: float, y: Any
) -> float | None:
    """Loss → θ → φ for the only risk."""
    if law.remembers:
        seen = law.sets.weigh(prediction, y)
    value: float | None
    value, loss = judge(law, own, shown, y, lam)
    unjudged = 0
    if law.doubted and value is None:
        unjudged = 1
        value = law.substitute
    if value is None:
        own.unjudged += 1
    else:
        excess = excess_of(law, value)
        theta, step = step_of(law, own, excess, state.stretch, prediction, y)
        if -inf < lam < inf:
            if law.moves:
                moved = stretch_of(law, state.stretch, excess, prediction, y, lam)
                state.stretch = moved
        else:
            state.saturated(lam)
        own.theta = theta
        if law.step_remembers:
            own.step = step
        if law.loss_remembers:
            own.loss = loss
        own.judged += 1
        own.total += value
        if law.doubted:
            own.unjudged += unjudged
    if law.remembers:
        law.sets.observe(seen)
    return value


TORN = -1
"""In place of the leading risk: one asked for the full set, another was below its bound."""


def aim_several(laws: Sequence[Law], combine: Combine, state: State) -> tuple[float, int]:
    """θ's → λ for several risks, and the index of the one that asks for the largest set."""
    risks = state.risks
    above = below = 0
    for law, own in zip(laws, risks, strict=True):
        if own.theta > law.top:
            above += 1
        elif own.theta < law.bottom:
            below += 1
    if above:
        return inf, TORN if below else 0
    if below == len(laws) or (below and combine.empty_if == "some"):
        return -inf, 0
    phi, params, memory = laws[0].phi, laws[0].phi_params, state.stretch
    lams = tuple([phi(params, memory, own.theta) for own in risks])
    return combine.rule(lams), lams.index(max(lams))


def learn_several(
    laws: Sequence[Law],
    combine: Combine,
    state: State,
    prediction: Any,
    shown: Any,
    lam: float,
    leader: int,
    y: Any,
) -> tuple[float | None, ...]:
    """Losses → θ's → φ for several risks; φ moves once, by the excess of the leading risk."""
    seen = laws[0].sets.weigh(prediction, y) if laws[0].remembers else None
    moves: list[tuple[RiskState, Any, float | None, float, float, Memory, Memory]] = []
    for law, own in zip(laws, state.risks, strict=True):
        found, loss = judge(law, own, shown, y, lam)
        value = law.substitute if found is None else found
        if value is None:
            moves.append((own, found, None, 0.0, own.theta, own.step, own.loss))
        else:
            excess = excess_of(law, value)
            theta, step = step_of(law, own, excess, state.stretch, prediction, y)
            moves.append((own, found, value, excess, theta, step, loss))
    stretch = state.stretch
    if -inf < lam < inf:
        if laws[0].moves and moves[leader][2] is not None:
            stretch = stretch_of(laws[leader], stretch, moves[leader][3], prediction, y, lam)
    elif any(value is not None for _, _, value, *_ in moves):
        state.saturated(lam)
        state.torn += leader == TORN
    state.stretch = stretch
    for own, found, value, _, theta, step, loss in moves:
        own.theta, own.step, own.loss = theta, step, loss
        if found is None:
            own.unjudged += 1
        if value is not None:
            own.judged += 1
            own.total += value
    if combine.anti_windup is not None:
        lift(state, combine.anti_windup)
    if laws[0].remembers:
        laws[0].sets.observe(seen)
    return tuple([move[2] for move in moves])


def aim_each(laws: Sequence[Law], state: State) -> tuple[float, ...]:
    """θ's → λ's, where every risk has a set of its own."""
    pairs = zip(laws, state.risks, strict=True)
    return tuple([aim(law, own, state.stretch) for law, own in pairs])


def learn_each(
    laws: Sequence[Law], sets: Any, state: State, prediction: Any, shown: Any, y: Any
) -> tuple[float | None, ...]:
    """Losses → θ's, where every risk is judged on a set of its own."""
    moves: list[tuple[Any, float | None, float, Memory, Memory]] = []
    for index, (law, own) in enumerate(zip(laws, state.risks, strict=True)):
        found, loss = judge(law, own, shown.parts[index], y, shown.lams[index])
        value = law.substitute if found is None else found
        theta, step = own.theta, own.step
        if value is not None:
            excess, part = excess_of(law, value), sets.part(prediction, index)
            theta, step = step_of(law, own, excess, state.stretch, part, y)
        moves.append((found, value, theta, step, own.loss if value is None else loss))
    chosen = [lam for lam, move in zip(shown.lams, moves, strict=True) if move[1] is not None]
    state.full += inf in chosen
    state.empty += -inf in chosen
    for own, (found, value, theta, step, loss) in zip(state.risks, moves, strict=True):
        own.theta, own.step, own.loss = theta, step, loss
        if found is None:
            own.unjudged += 1
        if value is not None:
            own.judged += 1
            own.total += value
    return tuple([move[1] for move in moves])


def lift(state: State, delta: float) -> None:
    """Anti-windup: no θ stays further than δ below the largest one."""
    floor = max(own.theta for own in state.risks) - delta
    for own in state.risks:
        if own.theta < floor:
            own.lifts += 1
            own.lifted += floor - own.theta
            own.theta = floor
