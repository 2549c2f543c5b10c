"""Losses made for the laws, and strategies for random controllers that the theorems cover."""

from dataclasses import dataclass
from math import inf
from typing import Any

from hypothesis import strategies as st

from setpoint import Controller, Risk
from setpoint.combine import Max, Mean
from setpoint.losses import (
    Custom,
    FalseNegatives,
    FalsePositives,
    Miscoverage,
    MiscoverageCounter,
    SetSize,
    declaration,
)
from setpoint.sets import (
    Cumulative,
    Lower,
    Multilabel,
    QuantileScale,
    Scale,
    ScoreWindow,
    Threshold,
    Widen,
)
from setpoint.steps import Fixed
from setpoint.stretches import ErrorAdaptive, Exponential, Identity, ScoreAdaptive

REAL = (-inf, inf)
SUPPORTS = (REAL, REAL, (0.0, inf), (-inf, 2.0), (-5.0, 5.0))  # 0 and 0.9 lie in each


def dial(y: float) -> float:
    """A number in [0, 1] that y spells: a quarter of all y give 0, a quarter give 1."""
    return min(max((y % 1.0) * 2.0 - 0.5, 0.0), 1.0)


@dataclass(frozen=True)
class Shortfall:
    """How far y lies above the set, as a share of `scale`, at most 1."""

    scale: float = 2.0
    low, high = 0.0, 1.0

    def __call__(self, shown: Any, y: float) -> float:
        return min(max(y - shown.upper, 0.0) / self.scale, 1.0)


@dataclass(frozen=True)
class Outside:
    """How far y lies from the set, squared, at most 1: a distance of √½ is half a miss."""

    low, high = 0.0, 1.0

    def __call__(self, shown: Any, y: float) -> float:
        away = min(max(shown.lower - y, y - shown.upper, 0.0), 1.0)
        return away * away


@dataclass(frozen=True)
class Dial:
    """Whatever the adversary spells with y, as far as the promises allow: the hardest loss.

    `shift` makes the same y spell something else, so that two risks can be set against each other.
    """

    low: float
    high: float
    full: float
    empty: float
    grows: bool = False
    shift: float = 0.0
    support: tuple[float, float] = REAL

    def __call__(self, shown: Any, y: float) -> float:
        least, most = self.low, self.high
        if shown.empty:
            least, most = (least, self.empty) if self.grows else (self.empty, most)
        elif (shown.lower, shown.upper) == self.support:
            least, most = (self.full, most) if self.grows else (least, self.full)
        return min(max(least + dial(y + self.shift) * (most - least), least), most)


@dataclass(frozen=True)
class Relapse:
    """A loss with memory: half for a miss, 1 for a miss right after another one."""

    low, high = 0.0, 1.0
    empty = 0.5

    def init(self) -> tuple[float, ...]:
        return (0.0,)

    def update(self, memory: Any, shown: Any, y: float) -> tuple[float, tuple[float, ...]]:
        missed = 0.0 if shown.contains(y) else 1.0
        return missed * (1.0 if memory[0] else 0.5), (missed,)


@dataclass(frozen=True)
class Size:
    """The length of the set as a share of `scale`, at most 1: it grows with the set."""

    scale: float
    full: float
    low, high, grows = 0.0, 1.0, True

    def __call__(self, shown: Any, y: float) -> float:
        return min(shown.length / self.scale, 1.0)


def reaches_above(shown: Any, y: float) -> float:
    """1 when the set ends below y. A plain function, to be wrapped as a `Custom` loss."""
    return 0.0 if shown.upper >= y else 1.0


# Strategies. Dyadic and decimal numbers are both drawn often, ends of ranges included: there
# rounding is nil or unavoidable, and ties are real.


@st.composite
def between(draw: Any, low: float, high: float) -> float:
    """A number in [low, high], often an end of it or a round share."""
    share = draw(st.sampled_from([0.0, 0.5, 1.0, 0.1, 0.9, 0.25]) | st.floats(0.0, 1.0))
    return min(max(low + share * (high - low), low), high)


@st.composite
def families(draw: Any) -> Any:
    """`Widen` or `Scale`, with a support or without."""
    return draw(st.sampled_from([Widen, Scale]))(support=draw(st.sampled_from(SUPPORTS)))


@st.composite
def stretches(draw: Any) -> Any:
    """Every stretch, with both readings and both inners."""
    kind = draw(st.sampled_from([Identity, Exponential, ScoreAdaptive, ErrorAdaptive]))
    if kind in (Identity, Exponential):
        return kind()
    options = {
        "score": draw(st.sampled_from([0.01, 0.3, 5.0])),
        "low": draw(st.sampled_from([-3.0, -0.5, 0.0])),
        "high": draw(st.sampled_from([0.0, 0.5, 3.0])),
        "inner": draw(st.sampled_from([Identity(), Exponential()])),
        "reading": draw(st.sampled_from(["paper", "authors"])),
    }
    if kind is ErrorAdaptive:
        options["loss"] = draw(st.sampled_from([0.0, 0.1, 2.0, 1000.0]))
        options["reading"] = draw(st.sampled_from(["paper", "authors", "later"]))
    return kind(**options)


@st.composite
def dials(draw: Any, support: tuple[float, float], *, may_grow: bool) -> Dial:
    """A `Dial` with room for a level between what it promises at its ends."""
    low = draw(st.sampled_from([0.0, -1.0, -0.25]))
    high = low + draw(st.sampled_from([1.0, 0.25, 3.0]))
    near, far = sorted((draw(between(low, high)), draw(between(low, high))))
    grows = may_grow and draw(st.booleans())
    full, empty = (far, near) if grows else (near, far)
    return Dial(low, high, full, empty, grows, draw(st.sampled_from([0.0, 0.5, 0.3])), support)


@st.composite
def bounded_losses(draw: Any, support: tuple[float, float], *, may_grow: bool = False) -> Any:
    """A loss whose range is known beforehand."""
    choices: list[Any] = [
        Miscoverage(),
        MiscoverageCounter(cap=draw(st.sampled_from([1.0, 2.5, 4.0]))),
        Shortfall(),
        Outside(),
        Relapse(),
        Custom(reaches_above),
    ]
    if may_grow:
        room = support[1] - support[0]
        choices += [Size(3.0, min(room / 3.0, 1.0)), Size(20.0, min(room / 20.0, 1.0))]
    if draw(st.booleans()):
        return draw(dials(support, may_grow=may_grow))
    return draw(st.sampled_from(choices))


@st.composite
def levels(draw: Any, loss: Any) -> float:
    """A level that both ends of the family allow."""
    promise = declaration(loss)
    low, high = sorted((promise.full, promise.empty))
    return draw(between(low, high))


@st.composite
def anywhere(draw: Any, loss: Any) -> float:
    """Any level in the range of the loss."""
    promise = declaration(loss)
    return draw(between(promise.low, promise.high))


@st.composite
def risks(
    draw: Any,
    loss: Any,
    bounds: tuple[float, float] | None = None,
    level: float | None = None,
) -> Risk:
    """A risk with the loss, whose θ can cross its bounds within a few dozen steps."""
    if bounds is None:
        low = draw(st.sampled_from([-3.0, -0.5, 0.0, 1.0]) | st.floats(-10.0, 10.0))
        bounds = (low, low + draw(st.sampled_from([1.0, 6.0, 0.1]) | st.floats(0.01, 20.0)))
    span = bounds[1] - bounds[0]
    gamma = draw(st.sampled_from([0.05, 0.25, 0.5, 1.0]) | st.floats(0.02, 3.0).map(span.__mul__))
    return Risk(
        loss,
        level=draw(levels(loss)) if level is None else level,
        step=Fixed(gamma),
        start=draw(between(*bounds)),
        bounds=bounds,
    )


@st.composite
def single(draw: Any, *, uncapped: bool = True, may_grow: bool = True) -> Controller:
    """A controller of one risk that satisfies every premise of the theorem."""
    sets = draw(families())
    loss = draw(bounded_losses(sets.support, may_grow=may_grow))
    if uncapped and draw(st.sampled_from([True, False, False, False])):
        loss = MiscoverageCounter()
    return Controller(sets, draw(risks(loss)), draw(stretches()))


LABELS = [
    Threshold(),
    Threshold(("class 0", "class 1", "class 2")),
    Cumulative(),
    Cumulative(randomised=True, seed=1),
    Cumulative(4, penalty=0.1, free=1),
    Multilabel(),
]
QUANTILES = [
    QuantileScale(),
    QuantileScale(beyond="open"),
    QuantileScale(levels=(0.1, 0.5, 0.9)),
    QuantileScale(levels=(0.25, 0.75), beyond="open", support=(-3.0, 3.0)),
]
SCORES = [
    *(Widen(), Widen((-5.0, 5.0)), Scale((0.0, inf)), Lower(), Threshold(), Cumulative()),
    *(Multilabel(), QuantileScale(beyond="open")),
]


@st.composite
def of_shares(draw: Any) -> Controller:
    """One risk of a family whose λ is a share: label sets, quantiles, windows of scores."""
    windows = st.builds(ScoreWindow, st.sampled_from(SCORES), st.sampled_from([1, 5, 300]))
    family = draw(st.sampled_from(LABELS) | st.sampled_from(QUANTILES) | windows)
    losses = [Miscoverage(), MiscoverageCounter(), MiscoverageCounter(cap=2.0)]
    losses += [FalseNegatives(), FalsePositives(), SetSize()] if family in LABELS else []
    bounds = draw(st.sampled_from([(-1.0, 0.0), None]))
    loss = draw(st.sampled_from(losses))
    return Controller(family, draw(risks(loss, bounds)), draw(stretches()))


@st.composite
def several(
    draw: Any,
    *,
    combines: tuple[Any, ...] = (Max, Mean),
    anti_windup: bool | None = None,
    empty_if: str | None = None,
    lopsided: bool = False,
) -> Controller:
    """A controller of two or three risks that satisfies every premise of the theorem.

    With `lopsided`, a level may lie beyond what its loss promises at an end of the family.
    """
    sets = draw(families())
    delta = None
    if anti_windup or (anti_windup is None and draw(st.booleans())):
        delta = draw(st.sampled_from([0.0, 0.5, 2.0]) | st.floats(0.0, 10.0))
    held, top = [], draw(st.floats(-2.0, 5.0))
    for _ in range(draw(st.integers(2, 3))):
        # Anti-windup asks that no upper bound lies further than δ below the highest one.
        high = top if delta is None else top - draw(st.sampled_from([0.0, 0.5])) * delta
        low = high - draw(st.sampled_from([1.0, 6.0]) | st.floats(0.01, 20.0))
        loss = draw(bounded_losses(sets.support))
        level = draw(anywhere(loss)) if lopsided else None
        held.append(draw(risks(loss, (low, high), level)))
    combine = draw(st.sampled_from(combines))(
        anti_windup=delta, empty_if=empty_if or draw(st.sampled_from(["every", "some"]))
    )
    return Controller(sets, held, draw(stretches()), combine)
