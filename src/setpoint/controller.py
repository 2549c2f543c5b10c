"""What is held, as values: `Risk` and `Controller` say what and how, `State` survives a step.

The recursion itself is in `setpoint.recursion`. Nothing here knows x, the model or ids.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Any

from setpoint._check import choice, doubt_level, finite, interval
from setpoint.combine import Combine, Max
from setpoint.errors import InputError
from setpoint.losses import Keeps, Misses, declaration, fits
from setpoint.recursion import Memory, Position
from setpoint.sets.family import Family, Learns, Remembers, Sides, seasonal
from setpoint.steps import Scored, Step
from setpoint.stretches import Identity, Saturates, Stretch

__all__ = [
    "Controller", "Risk", "RiskState", "State", "cells_of", "described", "matching", "memory_of",
    "risks_that_score", "shape_of",
]  # fmt: skip


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
        if isinstance(self.loss, Misses):
            doubt_level(self.loss.missed(level))
        step: Any = self.step
        if isinstance(step, type) or not isinstance(step, Step | None):
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
        listed = tuple(risks) if isinstance(risks, Iterable) else (risks,)
        if not listed or not all(isinstance(risk, Risk) for risk in listed):
            raise InputError(f"risks must be a Risk or several of them, got {risks!r}")
        object.__setattr__(self, "sets", sets)
        object.__setattr__(self, "risks", listed)
        object.__setattr__(self, "stretch", Identity() if stretch is None else stretch)
        object.__setattr__(self, "combine", Max() if combine is None else combine)
        self._check()

    def _check(self) -> None:
        risks = self.risks
        for name, part, kind, wanted in (
            ("sets", self.sets, Family, "read, label, at, critical, start, bounds and unit"),
            ("stretch", self.stretch, Stretch, "params, phi, move, init and inverse"),
            ("combine", self.combine, Combine, "rule, covers_each, anti_windup and empty_if"),
        ):
            if isinstance(part, type) or not isinstance(part, kind):
                raise InputError(f"{name} must be a part with {wanted}, got {part!r}")
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
        for index, risk in enumerate(risks):
            family = self.sets.side(index) if isinstance(self.sets, Sides) else self.sets
            mismatch = fits(family, risk.loss)
            if mismatch is not None:
                raise InputError(mismatch)
        self._check_anti_windup()
        self._check_steps()

    def _check_steps(self) -> None:
        """A rule that asks for critical values works in units of λ."""
        for risk in risks_that_score(self):
            if self.stretch != Identity():
                raise InputError(
                    f"the step rule {risk.step!r} asks for critical values, which are in units of "
                    f"λ: it runs with stretches.Identity(), got {self.stretch!r}"
                )

    def _check_sides(self) -> None:
        """What a family asks whose sets have a λ each."""
        if not isinstance(self.sets, Sides):
            return
        name, sides = type(self.sets).__name__, self.sets.sides
        levels = [risk.level for risk in self.risks]
        if len(levels) != sides:
            raise InputError(f"{name} needs {sides} risks, one for each set, got {len(levels)}")
        # The memory of a barrier is about late labels alone, and serves all sets.
        stretch: Any = self.stretch
        shared = isinstance(stretch, Saturates) and isinstance(stretch, Scored)
        if stretch.move is not None and not (shared and not stretch.scored):
            raise InputError(
                f"{name} has a λ for each set, which a stretch with one memory cannot serve: use "
                f"stretches.Identity(), Exponential() or Barrier(), got {self.stretch!r}"
            )
        if self.combine != Max():
            raise InputError(f"{name} combines nothing: leave out combine, got {self.combine!r}")
        rising = any(low < high for low, high in pairwise(levels))
        if rising and not all(self.sets.alone(i) for i in range(sides)):
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
        if default is None or isinstance(self.stretch, Saturates):  # then the stretch says where
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
        """What a certificate's segment is about: losses, levels, steps, bounds and combination."""
        risks = [
            (
                *(described(risk.loss), *declaration(risk.loss)[:6], memory_of(risk.loss)),
                *(described(risk.step), () if risk.step is None else tuple(risk.step.params)),
                *(risk.level, *bounds, risk.unjudged),
            )
            for risk, bounds in zip(self.risks, self.bounds, strict=True)
        ]
        return (*risks, described(self.combine)) if len(risks) > 1 else tuple(risks)

    def init(self) -> "State":
        """The state before the first step."""
        first = self.position
        state = State(
            [RiskState(*memories) for memories in zip(*first[:3], strict=True)],
            first.stretch,
            self.terms,
            first.family,
            self.sets.bind() if isinstance(self.sets, Remembers) else None,
        )
        state.cells = cells_of(self.sets)
        state.fresh = True
        return state

    @property
    def position(self) -> Position:
        """θ and the memories before the first step."""
        nothing = (0.0,) * len(self.risks)
        return Position(
            self.starts,
            tuple([memory_of(risk.step) for risk in self.risks]),
            tuple([memory_of(risk.loss) for risk in self.risks]),
            self.stretch.init(),
            memory_of(self.sets),
            nothing,
            nothing,
            nothing,
        )


def risks_that_score(controller: Controller) -> list[Risk]:
    """The risks whose step rule asks for the critical value of y."""
    steps: list[tuple[Risk, Any]] = [(risk, risk.step) for risk in controller.risks]
    return [risk for risk, step in steps if isinstance(step, Scored) and step.scored]


def memory_of(part: Any) -> Memory:
    """The first memory of a part, () for one that keeps none."""
    keeps = isinstance(part, Step | Keeps | Learns)
    return tuple(part.init()) if keeps else ()


def cells_of(sets: Any) -> list[Memory]:
    """The cells of a season before the first label, one for each phase; none without a season."""
    return [tuple(sets.cell)] * sets.period if seasonal(sets) else []


def described(part: Any) -> str:
    """How a part prints, without the addresses of functions: the same in every process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(part))


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

    `family` is what a learning family remembers, `cells` its table of a season, a cell for each
    phase; `sets` is the family at work, if it is one with a window, else None. Since the segment
    began: `full` and `empty` count the labels whose set the safeguard chose, `torn` those where one
    risk asked for the full set while another was below its lower bound; `missing`, `dropped` and
    `expired` count the predictions that were never judged; `peak` is the most that waited for a
    label at once, and `inherited` how many waited when it began. `terms` are those of the
    controller in force, and `fresh` says that the segment is the first.
    """

    __slots__ = (
        "cells", "dropped", "empty", "expired", "family", "fresh", "full", "inherited", "missing",
        "peak", "risks", "sets", "stretch", "terms", "torn",
    )  # fmt: skip

    def __init__(
        self,
        risks: list[RiskState],
        stretch: Memory,
        terms: tuple[Any, ...],
        family: Memory = (),
        sets: Any = None,
    ) -> None:
        self.risks = risks
        self.stretch = stretch
        self.family = family
        self.cells: list[Memory] = []
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
        for risk in self.risks:
            risk.begin()

    def copy(self) -> "State":
        """A state that shares nothing with this one."""
        risks = [RiskState(risk.theta, risk.step, risk.loss) for risk in self.risks]
        copy = State(risks, self.stretch, self.terms)
        for name in State.__slots__:
            if name != "risks":
                setattr(copy, name, getattr(self, name))
        copy.cells = list(self.cells)
        if self.sets is not None:
            copy.sets = self.sets.copy()
        for mine, risk in zip(risks, self.risks, strict=True):
            for name in RiskState.__slots__:
                setattr(mine, name, getattr(risk, name))
        return copy

    @property
    def position(self) -> Position:
        """θ and the memories, as the recursion takes them."""
        risks = self.risks
        return Position(
            tuple([risk.theta for risk in risks]),
            tuple([risk.step for risk in risks]),
            tuple([risk.loss for risk in risks]),
            self.stretch,
            self.family,
            tuple([risk.total for risk in risks]),
            tuple([float(risk.lifts) for risk in risks]),
            tuple([risk.lifted for risk in risks]),
        )

    def move(self, position: Position) -> None:
        """Takes over a position."""
        self.stretch, self.family = position.stretch, position.family
        for i, risk in enumerate(self.risks):
            risk.theta, risk.step, risk.loss = position.theta[i], position.step[i], position.loss[i]
            risk.total, risk.lifted = position.total[i], position.lifted[i]
            risk.lifts = int(position.lifts[i])

    def saturated(self, lam: float) -> None:
        """Counts a label whose set the safeguard chose."""
        if lam > 0.0:
            self.full += 1
        else:
            self.empty += 1


def matching(controller: Controller, state: State) -> State:
    """The state to go on from: a copy, with a new segment if its controller had other terms."""
    if shape_of(state) != shape_of(controller.init()):
        raise InputError(
            f"the state does not fit {controller!r}: it was made by another controller"
        )
    copy = state.copy()
    if isinstance(controller.sets, Remembers):
        copy.sets = controller.sets.bind(copy.sets.memory)
    if copy.terms != controller.terms:
        copy.begin(0, controller.terms)
    return copy


def shape_of(state: State) -> tuple[Any, ...]:
    """How many numbers a state has where."""
    memories = [(len(risk.step), len(risk.loss)) for risk in state.risks]
    family = len(state.family), [len(cell) for cell in state.cells]
    return len(state.stretch), family, state.sets is None, memories
