"""Families made of other families: two sides, levels within each other, a window of past scores."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil, inf, nan, nextafter
from sys import float_info
from typing import Any, ClassVar, cast

from setpoint._check import interval, whole
from setpoint._window import Window
from setpoint.errors import InputError
from setpoint.sets.family import (
    Columns,
    Draws,
    Family,
    FromZero,
    Members,
    Remembers,
    Scalar,
    ShareOfOne,
    Shows,
    Supports,
    Taped,
    never_empty,
)
from setpoint.sets.intervals import Interval, Lower, Upper, Widen, around

Lams = tuple[float, ...]


@dataclass(slots=True)
class SidedInterval:
    """An interval whose ends move apart from each other: what `TwoSided` shows.

    It reads as an interval; `parts` are the half-lines, which may fail to meet, and then the
    interval is empty.

    >>> shown = TwoSided().at(TwoSided().read((10.0, 14.0)), (1.0, 2.0))
    >>> shown.lower, shown.upper, 9.5 in shown
    (9.0, 16.0, True)
    """

    parts: tuple[Interval, Interval]

    @property
    def interval(self) -> Interval:
        """What both half-lines hold."""
        below, above = self.parts
        if below.empty or above.empty:
            return Interval(inf, -inf)
        return Interval(max(below.lower, above.lower), min(below.upper, above.upper))

    @property
    def lower(self) -> float:
        """The lower end; +inf if it is empty."""
        return self.interval.lower

    @property
    def upper(self) -> float:
        """The upper end; −inf if it is empty."""
        return self.interval.upper

    @property
    def length(self) -> float:
        """As for an interval."""
        return self.interval.length

    @property
    def empty(self) -> bool:
        """Whether nothing lies in it."""
        return self.interval.empty

    def contains(self, y: float) -> bool:
        """Whether y lies in both half-lines."""
        below, above = self.parts
        return below.contains(y) and above.contains(y)

    __contains__ = contains

    def __iter__(self) -> Iterator[float]:
        return iter(self.interval)

    def _repr_html_(self) -> str:
        return self.interval._repr_html_()

    def __repr__(self) -> str:
        return repr(self.interval).replace("Interval", "SidedInterval")


@dataclass(frozen=True, slots=True)
class TwoSided(FromZero):
    """[lower − λ₁, upper + λ₂]: each side with its own risk, its own level and certificate.

    With miscoverage at levels a and b, y lies below the interval a of the time and above it b of
    the time, so it is missed at most a + b of the time.

    Parameters
    ----------
    support
        The values y can take: the full set.

    Examples
    --------
    >>> import setpoint as sp
    >>> def risk(level):
    ...     return sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(1.0), bounds=(-20, 20))
    >>> stream = sp.Stream(sp.Controller(TwoSided(), [risk(0.1), risk(0.01)]))
    >>> stream.predict((10.0, 14.0))
    SidedInterval(10.0, 14.0)
    >>> stream.update(9.0)
    (1.0, 0.0)
    >>> stream.predict((10.0, 14.0))
    SidedInterval(9.1, 13.99)
    """

    support: tuple[float, float] = (-inf, inf)
    _parts: tuple[Lower, Upper, Widen] = field(
        default=(Lower(), Upper(), Widen()), init=False, repr=False, compare=False
    )

    members = 2
    order: ClassVar[tuple[int, ...]] = ()
    free: ClassVar[tuple[bool, ...]] = (False, False)
    columns = ("lower", "upper")

    def __post_init__(self) -> None:
        support = interval(self.support, "support")
        object.__setattr__(self, "support", support)
        object.__setattr__(self, "_parts", (Lower(support), Upper(support), Widen(support)))

    @property
    def whole(self) -> Family:
        """The family that reads the same predictions and moves both sides by one λ."""
        return self._parts[2]

    def member(self, index: int) -> Family:
        """The family of one side."""
        return self._parts[index]

    def read(self, prediction: Any) -> tuple[float, float]:
        """The prediction as a pair of floats, as `Widen` reads it."""
        return self._parts[2].read(prediction)

    def label(self, y: Any) -> float:
        """The label as a finite float within the support."""
        return self._parts[2].label(y)

    def at(self, prediction: tuple[float, float], lam: Lams) -> SidedInterval:
        """The interval whose sides are moved by their own λ."""
        below, above, _ = self._parts
        return SidedInterval((below.at(prediction, lam[0]), above.at(prediction, lam[1])))

    def critical(self, prediction: tuple[float, float], y: float) -> float:
        """The smallest λ that lets y in if both sides move by it."""
        return self._parts[2].critical(prediction, y)


class _Around:
    """What families around another one take from it; abstract: `_inner` is that family."""

    __slots__ = ()

    @property
    def _inner(self) -> Family:
        raise NotImplementedError

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the numbers in a prediction, if the inner family has names."""
        return self._inner.columns if isinstance(self._inner, Columns) else None

    @property
    def support(self) -> tuple[float, float]:
        """The values y can take."""
        return self._inner.support if isinstance(self._inner, Supports) else (-inf, inf)

    @property
    def never_empty(self) -> bool:
        """Whether every set holds something."""
        return never_empty(self._inner)

    @property
    def taped(self) -> Callable[[float], Any]:
        """Turns the number that a tape holds into the label."""
        return self._inner.taped if isinstance(self._inner, Taped) else self._inner.label

    def read(self, prediction: Any) -> Any:
        """The prediction as the inner family reads it."""
        return self._inner.read(prediction)

    def label(self, y: Any) -> Any:
        """The label as the inner family reads it."""
        return self._inner.label(y)


def _check_inner(family: Any, name: str) -> None:
    if not isinstance(family, Family):
        raise InputError(f"{name} must be a family of sets, got {family!r}")
    offers = ((Remembers, "a window"), (Members, "several members"))
    for offer, what in offers:
        if isinstance(family, offer):
            raise InputError(f"{name} must be a family without {what}, got {family!r}")


@dataclass(slots=True)
class Levels:
    """Nested sets, smallest first: what `Nested` shows.

    >>> shown = Nested(Widen(), 2).at((10.0, 14.0), (1.0, 0.5))
    >>> shown[0], shown[1]
    (Interval(9.0, 15.0), Interval(9.0, 15.0))
    """

    parts: tuple[Any, ...]

    def contains(self, y: Any) -> bool:
        """Whether y lies in the largest."""
        return bool(self.parts[-1].contains(y))

    @property
    def length(self) -> float:
        """The length or size of the largest set."""
        largest = self.parts[-1]
        return float(getattr(largest, "length", getattr(largest, "size", nan)))

    __contains__ = contains

    def __getitem__(self, index: int) -> Any:
        return self.parts[index]

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)


@dataclass(frozen=True, slots=True)
class Nested(_Around):
    """Sets at several levels that stay within each other: 80 % inside 95 %.

    There is one risk for each, the one with the highest level first. Each has its own λ, and its
    ends lie at least as far out as those before it. So the first level is held from both sides, the
    others from above. Give all of them the same step.

    Parameters
    ----------
    sets
        The family of all the sets.
    count
        How many there are.

    Examples
    --------
    >>> import setpoint as sp
    >>> def risk(level):
    ...     return sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(1.0), bounds=(-20, 20))
    >>> stream = sp.Stream(sp.Controller(Nested(Widen(), 2), [risk(0.2), risk(0.05)]))
    >>> inner, outer = stream.predict((10.0, 14.0))
    >>> stream.update(15.0)
    (1.0, 1.0)
    >>> stream.predict((10.0, 14.0)).parts
    (Interval(9.2, 14.8), Interval(9.05, 14.95))
    """

    sets: Family = field(default_factory=Widen)
    count: int = 2

    def __post_init__(self) -> None:
        _check_inner(self.sets, "sets")
        object.__setattr__(self, "count", whole(self.count, "count", 2))

    @property
    def members(self) -> int:
        """The number of sets."""
        return self.count

    @property
    def order(self) -> tuple[int, ...]:
        """Each lies beyond those before it."""
        return (0,) * self.count

    @property
    def free(self) -> tuple[bool, ...]:
        """A risk judges each."""
        return (False,) * self.count

    @property
    def whole(self) -> Family:
        """The family of all the sets."""
        return self.sets

    @property
    def _inner(self) -> Family:
        return self.sets

    @property
    def draws(self) -> bool:
        """Whether a prediction is given a chance of its own."""
        return isinstance(self.sets, Draws) and self.sets.draws

    def draw(self, reading: Any, id: int | str) -> Any:
        """The reading with the chance that belongs to its id."""
        return cast(Draws, self.sets).draw(reading, id)

    def member(self, index: int) -> Family:
        """The family of one set."""
        return self.sets

    def at(self, prediction: Any, lam: Lams) -> Levels:
        """The sets, none within the one before it."""
        if isinstance(self.sets, Scalar):
            parts = [self.sets.at(prediction, lam[0])]
            for own in lam[1:]:
                ends = self.sets.at(prediction, own)
                parts.append(Interval(*around((ends.lower, ends.upper), tuple(parts[-1]))))
            return Levels(tuple(parts))
        lams = accumulate(lam, max)
        return Levels(tuple([self.sets.at(prediction, largest) for largest in lams]))

    def critical(self, prediction: Any, y: Any) -> float:
        """The smallest λ whose set contains y."""
        return self.sets.critical(prediction, y)

    def start(self, level: float) -> float:
        """That of the family."""
        return self.sets.start(level)

    def bounds(self) -> tuple[float, float] | None:
        """Those of the family."""
        return self.sets.bounds()

    def unit(self, prediction: Any) -> float:
        """That of the family."""
        return self.sets.unit(prediction)


@dataclass(frozen=True, slots=True)
class ScoreWindow(_Around, ShareOfOne):
    """Every y whose score is at most the ⌈(1 + λ)(n + 1)⌉-th smallest of the n past scores.

    "Calibration with cal" in the paper, and the sets of adaptive conformal inference. The score is
    the critical value of another family: `Widen` gives that of conformalised quantile regression,
    or the absolute residual if the model gives a point; `Scale` the scaled residual; `Cumulative`
    the score of adaptive prediction sets. A set is made of the scores known when it is shown. θ is
    never clipped: from 1 + λ = 1 on, and while there are no scores, the set is full; below 0 it is
    empty.

    Parameters
    ----------
    scores
        The family whose critical values are the scores.
    size
        How many of the last scores are kept.

    Examples
    --------
    >>> family = ScoreWindow(size=3).bind([0.5, -1.0, 2.0])
    >>> family.at((10.0, 14.0), -0.5)
    Interval(9.5, 14.5)
    >>> round(family.critical((10.0, 14.0), 14.2), 12)
    -0.75
    >>> family.at((10.0, 14.0), -0.25), family.at((10.0, 14.0), -0.2)
    (Interval(8.0, 16.0), Interval(-inf, inf))

    References
    ----------
    Feldman et al. 2023, algorithm 2 and section 4.1.3, with "largest" put right; Gibbs and Candès
    2021.
    """

    scores: Family = field(default_factory=Widen)
    size: int = 300

    def __post_init__(self) -> None:
        _check_inner(self.scores, "scores")
        if isinstance(self.scores, Draws) and self.scores.draws:
            raise InputError(f"scores must be a family without chances, got {self.scores!r}")
        object.__setattr__(self, "size", whole(self.size, "size", 1))

    @property
    def shows(self) -> Any:
        """The class of the sets."""
        return self.scores.shows if isinstance(self.scores, Shows) else None

    @property
    def _inner(self) -> Family:
        return self.scores

    def bind(self, memory: Iterable[float] = ()) -> "_Windowed":
        """The family at work: it remembers scores, those given being the past, oldest first."""
        return _Windowed(self, Window(self.size, memory))

    def at(self, prediction: Any, lam: float) -> Any:
        """The set at λ before any score: full above −1."""
        return self.bind().at(prediction, lam)

    def critical(self, prediction: Any, y: Any) -> float:
        """The smallest λ whose set contains y before any score: just above −1."""
        return self.bind().critical(prediction, y)


class _Windowed:
    """A score window at work: the family of its scores at the quantile that λ asks for."""

    __slots__ = ("_window", "bounds", "family", "label", "read", "scores", "start", "unit")

    def __init__(self, family: ScoreWindow, window: Window) -> None:
        self.family, self.scores, self._window = family, family.scores, window
        self.read, self.label = family.scores.read, family.scores.label
        self.start, self.bounds, self.unit = family.start, family.bounds, family.unit

    def at(self, prediction: Any, lam: float) -> Any:
        """The set at λ."""
        return self.scores.at(prediction, self._quantile(lam))

    def critical(self, prediction: Any, y: Any) -> float:
        """The smallest λ whose set contains y."""
        window = self._window
        return _opens(window.below(self.weigh(prediction, y)), len(window))

    def weigh(self, prediction: Any, y: Any) -> float:
        """The score of a label; −inf is taken as the least number, which some set still holds."""
        return max(self.scores.critical(prediction, y), -float_info.max)

    def observe(self, score: float) -> None:
        """Takes in a score; the oldest leaves a full window."""
        self._window.add(score)

    @property
    def memory(self) -> tuple[float, ...]:
        """The scores, oldest first."""
        return tuple(self._window.values)

    def copy(self) -> "_Windowed":
        """One that shares nothing with this one."""
        return self.family.bind(self._window.values)

    def _quantile(self, lam: float) -> float:
        """The score up to which the set at λ reaches."""
        if not -1.0 < lam < 0.0:
            return inf if lam > -1.0 else -inf
        count = len(self._window)
        rank = ceil((1.0 + lam) * (count + 1))
        # Defined by the critical values: rounding may have put the rank one off.
        if rank > 0 and _opens(rank - 1, count) > lam:
            rank -= 1
        elif rank <= count and _opens(rank, count) <= lam:
            rank += 1
        return self._window.smallest(rank)


def _opens(below: int, count: int) -> float:
    """The smallest λ whose set reaches beyond `below` of the scores held."""
    return nextafter(below / (count + 1) - 1.0, inf)
