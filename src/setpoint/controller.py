"""`Risk` and `Controller`: what is controlled, and how, as values.

Nothing here knows x, the model or ids; `setpoint.plan` looks up the rules of a controller.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, isfinite
from typing import Any

from setpoint import watch as watching
from setpoint._check import choice, doubt_level, finite, interval, whole
from setpoint.combine import Combine, Max
from setpoint.correction import Correction, Rebases, Rescores
from setpoint.errors import InputError
from setpoint.losses import Counts, Keeps, Misses, declaration, fits
from setpoint.recursion import Memory
from setpoint.sets import Fan
from setpoint.sets.family import (
    Classed,
    Columns,
    Family,
    InParts,
    Members,
    Priced,
    Remembers,
    Scalar,
    Shows,
    Titled,
    member_of,
    members_of,
    whole_of,
)
from setpoint.sets.intervals import Interval
from setpoint.state import State
from setpoint.steps import Measure, Step
from setpoint.steps.claims import Accounts, Grouped, Scored
from setpoint.stretches import Identity, Stretch


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
    member
        Which set it judges where a prediction shows several, counted from 0. `None` gives each
        risk the set in its own place.
    """

    loss: Any
    level: float
    step: Step | None = None
    start: float | None = None
    bounds: tuple[float, float] | None = None
    unjudged: str = "skip"
    member: int | None = None

    def __post_init__(self) -> None:
        promise = declaration(self.loss)
        level = finite(self.level, "level")
        if not promise.low <= level <= promise.high:
            raise InputError(
                f"level must lie in the range of {self.name}, "
                f"[{promise.low:g}, {promise.high:g}], got {level}"
            )
        object.__setattr__(self, "level", level)
        if isinstance(self.loss, Misses) and self.member is None:  # of several, some are small
            doubt_level(self.loss.missed(level))
        if not isinstance(self.step, Step | None):
            raise InputError(
                "step must be a step rule, as steps.Fixed(0.05), with params, rule, init and "
                f"claim, got {self.step!r}"
            )
        if self.bounds is not None:
            object.__setattr__(self, "bounds", interval(self.bounds, "bounds"))
        if self.start is not None:
            object.__setattr__(self, "start", finite(self.start, "start"))
        choice(self.unjudged, "unjudged", ("skip", "zero"))
        if self.unjudged == "zero" and not promise.low <= 0.0 <= promise.high:
            raise InputError(f'unjudged="zero" needs 0 in the range of {self.name}')
        if self.member is not None:
            object.__setattr__(self, "member", whole(self.member, "member", 0))

    @property
    def name(self) -> str:
        """The name of its loss, for people."""
        return type(self.loss).__name__


@dataclass(frozen=True, slots=True, init=False, weakref_slot=True)
class Controller:
    """The full configuration of Rolling RC: which sets, which risks, how θ becomes λ.

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
    correction
        A stage before the controller that learns what is wrong with the forecast. `None` takes
        predictions as they are, the paper's rule.
    watch
        Whether what the sets cost is watched, so that somebody can be called when the model dies:
        `Stream.price`. It never changes a set.

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
    correction: Correction | Rescores | Rebases | None
    watch: bool

    def __init__(
        self,
        sets: Family,
        risks: Risk | Iterable[Risk],
        stretch: Stretch | None = None,
        combine: Combine | None = None,
        correction: Correction | Rescores | Rebases | None = None,
        watch: bool = True,
    ) -> None:
        listed = tuple(risks) if isinstance(risks, Iterable) else (risks,)
        if not listed or not all(isinstance(risk, Risk) for risk in listed):
            raise InputError(f"risks must be a Risk or several of them, got {risks!r}")
        if not isinstance(watch, bool):
            raise InputError(f"watch must be True or False, got {watch!r}")
        for name, value in (
            ("sets", sets), ("risks", listed), ("correction", correction), ("watch", watch),
            ("stretch", Identity() if stretch is None else stretch),
            ("combine", Max() if combine is None else combine),
        ):  # fmt: skip
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        risks = self.risks
        for name, part, kind, wanted in (
            ("sets", self.sets, Family, "read, label, at, critical, start, bounds and unit"),
            ("stretch", self.stretch, Stretch, "params, phi, move, init and inverse"),
            ("combine", self.combine, Combine, "rule, covers_each, anti_windup and empty_if"),
        ):
            if not isinstance(part, kind):
                raise InputError(f"{name} must be a part with {wanted}, got {part!r}")
        growing = [risk.name for risk in risks if declaration(risk.loss).grows]
        if len(risks) > 1 and growing:
            raise InputError(
                f"{', '.join(growing)} grows with the set, so it can be the only risk "
                "or a metric, but cannot be controlled together with other risks"
            )
        for risk, start, (low, high) in zip(risks, self.starts, self.bounds, strict=True):
            if not low <= start <= high:
                raise InputError(
                    f"the start of {risk.name} must lie in its bounds [{low:g}, {high:g}], "
                    f"got {start:g}"
                )
        self._check_members()
        self._check_correction()
        for member, risk in zip(self.owners, risks, strict=True):
            mismatch = fits(member_of(self.sets, member), risk.loss)
            if mismatch is not None:
                raise InputError(mismatch)
            step: Any = risk.step
            if isinstance(step, Scored) and step.scored and self.stretch != Identity():
                raise InputError(
                    f"the step rule {step!r} asks for critical values, which are in units of λ: "
                    f"it runs with stretches.Identity(), got {self.stretch!r}"
                )
        delta, highest = self.combine.anti_windup, max(high for _, high in self.bounds)
        for risk, (_, high) in zip(risks, self.bounds, strict=True):
            if delta is not None and high < highest - delta:
                raise InputError(
                    f"anti_windup={delta:g} would push {risk.name} into saturation: its upper "
                    f"bound must be at least {highest - delta:g}, got {high:g}"
                )
        self._check_accounts()

    def _check_accounts(self) -> None:
        """A rule that shows full sets by itself leaves a combination no choice."""
        held = [risk for risk in self.risks if isinstance(risk.step, Accounts)]
        for risk in held:
            if risk.bounds is not None:
                raise InputError(
                    f"the account of {risk.name} has its own limit: leave out bounds, got "
                    f"{risk.bounds}"
                )
            promise = declaration(risk.loss)
            excess = promise.full - risk.level
            if (-excess if promise.grows else excess) > 0.0:
                raise InputError(
                    f"an account controls nothing if the full set costs too much: {risk.name} is "
                    f"{promise.full:g} there, and the level {risk.level:g}"
                )
            if promise.grows and risk.unjudged == "zero" and risk.level > 0.0:
                raise InputError(
                    f'unjudged="zero" would charge the account of {risk.name} for labels that '
                    'say nothing: use unjudged="skip"'
                )
            if not isfinite(step_params(risk)[-2]):
                raise InputError(
                    f"an account needs a loss with a limit, and {risk.name} has none: give a cap"
                )
        if not held or len(self.risks) == 1:
            return
        combine = self.combine
        if combine.empty_if == "some":
            raise InputError(
                'empty_if="some" is for the bounds of Theorem 3, and an account shows the full set '
                'when it must: no bound would be true; use empty_if="every", or steps.Fixed'
            )
        if not combine.covers_each:
            raise InputError(
                f"{type(combine).__name__} takes the middle of λ's, of which accounts make some "
                "infinite, so that no risk would be controlled: use combine.Max()"
            )
        if combine.anti_windup is not None:
            raise InputError(
                "an account has its own floor, and what anti-windup adds to it would be a loss "
                "that never occurred: leave out anti_windup, or use steps.Fixed"
            )

    def _check_correction(self) -> None:
        """What a correction gives must be what the family reads."""
        if self.correction is None:
            return
        part = self.correction
        if isinstance(part, Rescores | Rebases):
            fitting, family = isinstance(self.sets, InParts), "Paths"
            if isinstance(part, Rescores):
                several = self.sets.several if isinstance(self.sets, Classed) else None
                fitting = several is part.several
                family = "Multilabel" if part.several else "Threshold"
            if not fitting:
                raise InputError(f"{part!r} goes with sets.{family}, got {self.sets!r}")
            return
        if not isinstance(part, Correction):
            raise InputError(
                "correction must be a part with columns, gives, begins, forms, params, base, "
                "annex, sound, init, read, arranged, predict, learn and forecast, such as "
                f"correction.Intervals(), got {part!r}"
            )
        wanted = self.sets.columns if isinstance(self.sets, Columns) else None
        if part.gives != wanted:
            raise InputError(
                f"{type(part).__name__} gives {', '.join(part.gives)}, and "
                f"{type(self.sets).__name__} reads {', '.join(wanted or ('something else',))}: "
                "use a family that reads what the correction gives, as sets.Multiplied() reads "
                "what correction.Intervals() does"
            )

    def _check_members(self) -> None:
        """What a family asks whose sets have a λ each."""
        name, members = type(self.sets).__name__, members_of(self.sets)
        named = [risk.member for risk in self.risks]
        if named != [None] * len(named):
            if None in named or set(named) != set(range(members)):
                raise InputError(
                    f"{name} shows {members} set{'s' * (members > 1)}, each judged by one risk or "
                    f"more: their members must be 0 to {members - 1}, got {named}"
                )
        elif members > 1 and len(named) != members:
            raise InputError(
                f"{name} needs {members} risks, one for each set, got {len(named)}; several for "
                "one set say which by member=…"
            )
        counts = all(isinstance(risk.loss, Counts) for risk in self.risks)
        if isinstance(self.sets, InParts) and not counts:
            raise InputError(
                f"{name} are judged by whether they were missed, as losses.Miscoverage() does, got "
                f"{', '.join(risk.name for risk in self.risks)}"
            )
        if not isinstance(self.sets, Members):
            return
        if self.stretch.move is not None:
            raise InputError(
                f"{name} has a λ for each set, which a stretch with one memory cannot serve: use "
                f"stretches.Identity() or Exponential(), got {self.stretch!r}"
            )
        if self.combine != Max():
            raise InputError(f"{name} combines nothing: leave out combine, got {self.combine!r}")
        for member, risk in zip(self.owners, self.risks, strict=True):
            free, step = self.sets.free[member], risk.step
            account = isinstance(step, Accounts) and not step.two_sided
            if isinstance(self.sets, Fan) and not (free or account):
                raise InputError(
                    f"{name} shows no empty set, so a level that it guards needs steps.Account(), "
                    f"without two_sided; got {step!r}"
                )
            if free is not (risk.step == Measure()):
                needed = "steps.Measure()" if free else "a step rule that controls it"
                raise InputError(
                    f"{name} controls the sets it guards and measures the others: the risk of set "
                    f"{member} needs {needed}, got {risk.step!r}"
                )
        pairs = zip(self.owners, [risk.level for risk in self.risks], strict=True)
        held = sorted(pairs, key=lambda pair: (pair[0], -pair[1]))
        for side in set(self.sets.order):
            levels = [level for place, level in held if self.sets.order[place] == side]
            if any(low < high for low, high in pairwise(levels)):
                raise InputError(
                    f"{name} takes the smallest set first: levels must fall, got {levels}"
                )

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """(m, M) of each risk, in units of θ; infinite where nothing is known yet."""
        default, family = self.sets.bounds(), (-inf, inf)
        if default is not None and not all(isinstance(r.step, Accounts) for r in self.risks):
            memory = self.stretch.init()
            family = (
                self.stretch.inverse(default[0], memory),
                self.stretch.inverse(default[1], memory),
            )
        return tuple(
            (-inf, inf) if isinstance(risk.step, Accounts) else risk.bounds or family
            for risk in self.risks
        )  # an account has a limit instead

    @property
    def owners(self) -> tuple[int, ...]:
        """The member that each risk judges."""
        several = members_of(self.sets) > 1
        return tuple([
            risk.member if risk.member is not None else place if several else 0
            for place, risk in enumerate(self.risks)
        ])  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """The display names of the risks: the loss, and the level if there are several."""
        titles = self.sets.titles if isinstance(self.sets, Titled) else None
        return tuple([
            risk.name if titles is None else f"{risk.name}, {titles[member]}"
            for member, risk in zip(self.owners, self.risks, strict=True)
        ])  # fmt: skip

    @property
    def starts(self) -> tuple[float, ...]:
        """The first θ of each risk."""
        memory = self.stretch.init()

        def start(risk: Risk) -> float:
            if risk.start is not None:
                return risk.start
            if isinstance(risk.step, Accounts):
                return 0.0
            return self.stretch.inverse(self.sets.start(risk.level), memory)

        return tuple(map(start, self.risks))

    @property
    def terms(self) -> tuple[Any, ...]:
        """The settings that define a segment: all that sets and bounds depend on."""
        risks = [
            (
                *(described(risk.loss), *declaration(risk.loss)[:6]),
                *(described(risk.step), () if risk.step is None else tuple(risk.step.params)),
                *(risk.level, *bounds, risk.unjudged),
            )
            for risk, bounds in zip(self.risks, self.bounds, strict=True)
        ]
        stage = self.correction
        return (
            *risks,
            *([(described(self.combine),)] if len(risks) > 1 else []),
            *(described(self.sets), described(self.stretch)),
            *([self.owners] if members_of(self.sets) > 1 else []),
            *(() if stage is None else (type(stage).__name__, *stage.params)),
        )

    def init(self) -> State:
        """The state before the first step."""
        position = _first_risks(self), filled(self.stretch.init())
        window = self.sets.bind() if isinstance(self.sets, Remembers) else None
        state = State(position, self.terms, sets=window)
        stage = self.correction
        if isinstance(stage, Rescores):
            state.learns(tuple(stage.init()), stage.kept(), [])
        elif isinstance(stage, Rebases):
            state.learns(tuple(stage.init()), stage.kept(self.sets), [])
        elif stage is not None:
            memory, table = stage.init()
            size = stage.annex if tuple(memory)[:1] > (0.0,) else 0
            state.learns(tuple(memory), list(table), [0.0] * size)
        if self.watched:
            state.watched = watching.begin()
        begin(self, state)
        state.fresh = True
        return state

    @property
    def watched(self) -> bool:
        """Whether streams track the cost of their sets, as with intervals."""
        sets = whole_of(self.sets)
        intervals = isinstance(sets, Scalar) or (isinstance(sets, Shows) and sets.shows is Interval)
        return self.watch and (intervals or isinstance(sets, Priced))

    @property
    def reader(self) -> Any:
        """The part that parses predictions: a correction of numbers, otherwise the family."""
        return self.correction if isinstance(self.correction, Correction) else whole_of(self.sets)


def _first_risks(controller: Controller) -> tuple[Any, ...]:
    return tuple([
        (start, start, 0.0, 0.0, 0.0, 0.0, 0.0, *map(memory_of, (risk.loss, risk.step)))
        for start, risk in zip(controller.starts, controller.risks, strict=True)
    ])  # fmt: skip


def new_group(controller: Controller) -> tuple[Any, ...]:
    """Where the risks of a group begin."""
    return _begun(controller, _first_risks(controller), group=True)


def step_params(risk: Risk, *, group: bool = False) -> Memory:
    """The numbers of a step rule; of an account also what a label and a full set do to it.

    The most that a label can raise it by, and half of what a full set is sure to lower it by.
    """
    step: Any = risk.step
    params = filled(step.params if step is not None else ())
    if group and isinstance(step, Grouped):
        params = filled(step.group_params)
    if not isinstance(step, Accounts):
        return params
    promise, level = declaration(risk.loss), risk.level
    rise, fall = promise.high - level, level - promise.full
    if promise.grows:
        rise, fall = level - promise.low, promise.full - level
    return (*params, rise, 0.5 * fall if fall > 0.0 else 0.0)


def begin(controller: Controller, state: State, waiting: int = 0) -> None:
    """Begins a segment under a controller: θ and the memories go on, counts and bounds begin."""
    state.begin(waiting, controller.terms)
    if state.watch is not None:  # other sets cost something else
        state.watched = watching.acknowledged(state.watched)
    state.position = _begun(controller, state.position[0]), *state.position[1:]
    for name, risks in state.groups.items():
        state.groups[name] = _begun(controller, risks, group=True)


def _begun(
    controller: Controller, risks: tuple[Any, ...], *, group: bool = False
) -> tuple[Any, ...]:
    """Risks whose accounts begin a segment."""
    return tuple([
        (*own[:8], risk.step.begun(step_params(risk, group=group), own[0], own[8]))
        if isinstance(risk.step, Accounts)
        else own
        for risk, own in zip(controller.risks, risks, strict=True)
    ])  # fmt: skip


def memory_of(part: Any) -> Memory:
    """The first memory of a loss or a step rule."""
    return filled(part.init() if isinstance(part, Step | Keeps) else ())


def filled(numbers: Iterable[float]) -> Memory:
    """Numbers as compiled code takes them: at least one."""
    return tuple(numbers) or (0.0,)


def matching(controller: Controller, state: State) -> State:
    """The state to go on from: a copy, with a new segment if its controller had other terms."""
    terms = controller.terms
    if state.shape != controller.init().shape or _kinds(state.terms) != _kinds(terms):
        raise InputError(
            f"the state does not fit {controller!r}: it was made by another controller"
        )
    copy = state.copy()
    if isinstance(controller.sets, Remembers):
        copy.sets = controller.sets.bind(copy.sets.memory)
    copy.position = given_up(controller, copy.position[0]), *copy.position[1:]
    for name, risks in copy.groups.items():
        copy.groups[name] = given_up(controller, risks)
    if not controller.watched:
        copy.watch = None
    elif copy.watch is None:
        copy.watched = watching.begin()
    if copy.terms != terms:
        begin(controller, copy)
    return copy


def changed(
    controller: Controller, risk: int, level: float | None, step: Any,
    bounds: tuple[float, float] | None, *, waiting: int,
) -> Controller:  # fmt: skip
    """A controller with other terms of a risk, under which a stream of it can go on."""
    risks = list(controller.risks)
    if whole(risk, "risk", 0) >= len(risks):
        raise InputError(f"risk must be an index from 0 to {len(risks) - 1}, got {risk!r}")
    if level is None and step is None and bounds is None:
        raise InputError("change needs a level, a step or bounds")
    old = risks[risk]
    if step is not None and isinstance(step, Accounts) != isinstance(old.step, Accounts):
        raise InputError(
            f"θ of {type(old.step).__name__} and of {type(step).__name__} are different "
            "things, an account of losses and a size: begin another stream"
        )
    sided = [s.two_sided for s in (old.step, step) if isinstance(s, Accounts)]
    if any(sided) and (waiting or (step is not None and not all(sided))):
        raise InputError(
            "a two-sided account is changed while nothing waits, and stays two-sided: answer "
            "or drop what waits, or begin another stream"
        )
    start = controller.starts[risk]
    low, high = controller.bounds[risk] if bounds is None else interval(bounds, "bounds")
    risks[risk] = replace(
        old,
        level=old.level if level is None else level,
        step=old.step if step is None else step,
        bounds=old.bounds if bounds is None else bounds,
        start=old.start if low <= start <= high else min(max(start, low), high),
    )
    return replace(controller, risks=tuple(risks))


def given_up(controller: Controller, risks: tuple[Any, ...]) -> tuple[Any, ...]:
    """Risks in whose accounts nothing waits: what waited elsewhere is given up."""
    return tuple([
        (*own[:8], (0.0, 0.0, *own[8][2:])) if isinstance(risk.step, Accounts) else own
        for risk, own in zip(controller.risks, risks, strict=True)
    ])  # fmt: skip


def _kinds(terms: tuple[Any, ...]) -> list[str]:
    """The names of steps, family, stretch and correction in terms: what θ and memories mean."""
    steps = [term[7] for term in terms if type(term) is tuple and type(term[0]) is str and term[7:]]
    named = [*steps, *(term for term in terms if type(term) is str)]
    return [
        term.partition("(")[0] + (" on two sides" if "two_sided=True" in term else "")
        for term in named
    ]


def described(part: Any) -> str:
    """How a part prints, without the addresses of functions: the same in every process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(part))
