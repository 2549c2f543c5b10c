"""Several quantiles of one prediction that never cross: `Fan` shows `Bands`.

A member is a central interval, or one quantile: the half-line up to it, or from it on. Guarded
members, which a risk judges, are pushed outwards until none lies within another; free ones, which
no risk judges, keep between the guarded ones. So ends never cross, and a guarded set only grows.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from sys import float_info
from typing import Any

import numpy as np

from setpoint._check import confidence, interval, number
from setpoint._html import table
from setpoint.errors import InputError, PredictionError
from setpoint.sets.distribution import cdf, quantiles
from setpoint.sets.family import FromZero, by_name, describe, finite_label, outermost
from setpoint.sets.fan_arithmetic import COMMON, Floats, apart, distance, lone, pair
from setpoint.sets.intervals import _LINE, Interval, _Ends


@dataclass(slots=True)
class Bands:
    """Quantiles of one prediction: what `Fan` shows.

    `bands[0.9]` is the interval with a coverage of 90 %; of single quantiles it is the number at
    0.9. Between these ends the distribution is linear, outside them it falls off exponentially, at
    the rate at which they lie apart.

    >>> fan = Fan(coverage=(0.5, 0.9))
    >>> shown = fan.at(fan.read([8, 9, 11, 12]), (0.0, 0.0))
    >>> shown[0.5], shown.lower, shown.upper
    (Interval(9.0, 11.0), 8.0, 12.0)
    >>> shown.cdf(11.0), shown.quantile(0.25)
    (0.75, 9.0)
    """

    parts: tuple[Interval, ...]
    levels: Floats
    pairs: bool

    def __getitem__(self, level: float) -> Any:
        for own, part in zip(self.levels, self.parts, strict=True):
            if abs(own - level) < 1e-9:
                return part if self.pairs else part.upper if own >= 0.5 else part.lower
        what = "coverages" if self.pairs else "quantiles"
        raise InputError(f"these bands have the {what} {list(self.levels)}, got {level}")

    def __iter__(self) -> Iterator[float]:
        return iter(sorted(self.levels))

    def __len__(self) -> int:
        return len(self.levels)

    @property
    def lower(self) -> float:
        """The lowest end; −inf if no quantile below the median is shown."""
        return self.parts[outermost(_order(self.levels, self.pairs))[0]].lower

    @property
    def upper(self) -> float:
        """The highest end; +inf if no quantile from the median on is shown."""
        return self.parts[outermost(_order(self.levels, self.pairs))[1]].upper

    @property
    def interval(self) -> Interval:
        """Everything between the lowest and the highest end."""
        return Interval(self.lower, self.upper)

    @property
    def length(self) -> float:
        """upper − lower."""
        return self.interval.length

    @property
    def empty(self) -> bool:
        """Whether nothing lies between the ends."""
        return self.lower > self.upper

    def contains(self, y: float) -> bool:
        """Whether y lies between the lowest and the highest end."""
        return self.lower <= y <= self.upper

    __contains__ = contains

    def cdf(self, y: float) -> float:
        """The probability of at most y; NaN where no end is finite."""
        return float(cdf(*self._distribution, np.array([number(y, "y")]))[0])

    def quantile(self, level: float) -> float:
        """The quantile at a level, one that is shown or any other."""
        wanted = np.array([confidence(level, "level")])
        return float(quantiles(*self._distribution, wanted)[0, 0])

    def sample(self, size: int, seed: Any = None) -> Any:
        """Values drawn from the distribution, as an array; `seed` may be a numpy generator."""
        chances = np.random.default_rng(seed).random(size)
        return quantiles(*self._distribution, chances)[0]

    @property
    def quantiles(self) -> dict[float, float]:
        """The quantiles by their levels, which rise."""
        found = {}
        for level, (lower, upper) in zip(self.levels, self.parts, strict=True):
            if self.pairs:
                found[round(0.5 - 0.5 * level, 12)] = lower
                found[round(0.5 + 0.5 * level, 12)] = upper
            else:
                found[level] = upper if level >= 0.5 else lower
        return dict(sorted(found.items()))

    @property
    def ends(self) -> tuple[float, ...]:
        """The quantiles in rising order."""
        return tuple(self.quantiles.values())

    @property
    def _distribution(self) -> tuple[Any, Any]:
        return np.array(list(self.quantiles)), np.array([self.ends])

    def _repr_html_(self) -> str:
        ends = [(level, self[level]) for level in self]
        return table([
            (f"{100.0 * p:g} %", f"{e.lower:.6g} to {e.upper:.6g}" if self.pairs else f"{e:.6g}")
            for p, e in ends
        ])  # fmt: skip

    def __repr__(self) -> str:
        ends = [(level, self[level]) for level in self]
        shown = [f"{level}: {tuple(end) if self.pairs else end}" for level, end in ends]
        return f"Bands({', '.join(shown)})"


def _order(levels: Floats, pairs: bool) -> tuple[int, ...]:
    """The side on which each member lies; 0 is both."""
    return tuple([0 if pairs else 1 if level >= 0.5 else -1 for level in levels])


@dataclass(frozen=True, slots=True)
class Fan(FromZero):
    """Several quantiles of y that never cross: central intervals, or single quantiles.

    It shows `Bands`. Every guarded level has a risk of its own and a λ of its own; the others are
    shown as they are predicted, cut where they would lie beyond a guarded one. A prediction is all
    quantiles in rising order, or what `correction.Intervals` makes with the same levels.

    Parameters
    ----------
    coverage
        The levels of central intervals, from the smallest on; or
    quantile
        the levels of single quantiles. Those from 0.5 on are half-lines (−∞, q], others [q, ∞).
    guarded
        The levels that a risk judges, in the same order; all by default.
    support
        The values y can take: the full set.

    Examples
    --------
    >>> fan = Fan(coverage=(0.5, 0.9))
    >>> fan.at(fan.read([8.0, 9.0, 11.0, 12.0]), (0.0, 0.0))
    Bands(0.5: (9.0, 11.0), 0.9: (8.0, 12.0))
    >>> fan = Fan(quantile=(0.5, 0.95), guarded=(0.95,))
    >>> fan.at(fan.read([5.0, 3.0]), (0.0, 1.0))[0.5]
    3.0
    """

    coverage: tuple[float, ...] = ()
    quantile: tuple[float, ...] = ()
    guarded: tuple[float, ...] = ()
    support: tuple[float, float] = _LINE
    _rules: tuple[Any, ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("coverage", "quantile", "guarded"):
            object.__setattr__(self, name, rising(getattr(self, name), name))
        if bool(self.coverage) is bool(self.quantile):
            raise InputError(
                "a Fan has levels of coverage or of quantiles, one of the two, got "
                f"coverage={self.coverage} and quantile={self.quantile}"
            )
        strange = [level for level in self.guarded if level not in self.levels]
        if strange:
            raise InputError(
                f"guarded levels must be among {sorted(self.levels)}, got {sorted(strange)}"
            )
        object.__setattr__(self, "guarded", self.guarded or rising(self.levels, "levels"))
        support = interval(self.support, "support")
        object.__setattr__(self, "support", _LINE if support == _LINE else support)
        members = tuple([Member(self, place) for place in range(self.members)])
        object.__setattr__(self, "_rules", (members, apart(self.order, self.free)))

    @property
    def pairs(self) -> bool:
        """Whether members are central intervals."""
        return bool(self.coverage)

    @property
    def levels(self) -> Floats:
        """The level of each member, inner ones first."""
        return self.coverage or tuple(
            sorted(self.quantile, key=lambda p: (abs(round(p - 0.5, 9)), p < 0.5))
        )

    @property
    def tails(self) -> Floats:
        """The share of labels beyond the end, or each end, of a member."""
        if self.pairs:
            return tuple([round(0.5 - 0.5 * level, 12) for level in self.levels])
        return tuple([round(min(level, 1.0 - level), 12) for level in self.levels])

    @property
    def widest(self) -> float:
        """The share of labels beyond the widest central interval there is, or would be."""
        return min(2.0 * min(self.tails), 0.98)

    @property
    def order(self) -> tuple[int, ...]:
        """The side on which each member lies beyond those before it; 0 is both."""
        return _order(self.levels, self.pairs)

    @property
    def members(self) -> int:
        """The number of sets."""
        return len(self.levels)

    @property
    def free(self) -> tuple[bool, ...]:
        """The members that no risk judges."""
        return tuple([level not in self.guarded for level in self.levels])

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the numbers in a prediction."""
        codes = [code(level, self.pairs) for level in self.levels]
        return (*COMMON, *(f"{name}_{own}" for own in codes for name in ("centre", "low", "high")))

    @property
    def forms(self) -> tuple[tuple[str, ...], ...]:
        """The names of the columns in which predictions come: the quantiles that rise."""
        return self.named, self.columns

    @property
    def named(self) -> tuple[str, ...]:
        """The column names of the ends, in rising order."""
        return tuple([name for _, name, _ in sorted(self._ends())])

    def _ends(self) -> Iterator[tuple[float, str, tuple[int, int]]]:
        """Level, name and place of each end: the member, and 0 or 1 for its lower or upper end."""
        for place, level in enumerate(self.levels):
            name = code(level, self.pairs)
            if self.pairs:
                yield 0.5 - 0.5 * level, f"lower_{name}", (place, 0)
                yield 0.5 + 0.5 * level, f"upper_{name}", (place, 1)
            else:
                yield level, name, (place, int(level >= 0.5))

    @property
    def places(self) -> dict[str, tuple[int, int]]:
        """Of each name the member it belongs to, and 0 for its lower end or 1 for its upper one."""
        ends = self._ends() if self.pairs else sorted(self._ends())
        return {name: place for _, name, place in ends}

    @property
    def titles(self) -> tuple[str, ...]:
        """The display name of each member."""
        kind = "coverage" if self.pairs else "quantile"
        return tuple([f"{kind} {level:g}" for level in self.levels])

    @property
    def hull(self) -> float:
        """The share of labels between the lowest and the highest end."""
        low, high = self.taus[0], self.taus[-1]
        return round((high if high >= 0.5 else 1.0) - (low if low < 0.5 else 0.0), 12)

    @property
    def taus(self) -> Floats:
        """The levels of the ends, which rise."""
        return tuple([round(level, 12) for level, _, _ in sorted(self._ends())])

    @property
    def whole(self) -> "Member":
        """The family of the outermost set."""
        return self.member(self.members - 1)

    def member(self, index: int) -> "Member":
        """The family of one set."""
        member: Member = self._rules[0][index]
        return member

    def read(self, prediction: Any) -> Floats:
        """The numbers of all members, from quantiles that rise or from their own numbers."""
        names, columns = self.named, self.columns
        values = by_name(prediction, names, prediction)
        try:
            listed = [number(value, "a quantile", PredictionError) for value in values]
        except TypeError:
            listed = []
        if len(listed) == len(columns):
            return tuple(listed)
        if len(listed) != len(names):
            raise PredictionError(
                f"Fan takes {', '.join(names)}, {len(names)} numbers, got {describe(prediction)}"
            )
        if not fan_sound(tuple(listed)):
            raise PredictionError(f"quantiles must be finite, got {listed}")
        made = self.arranged(names, [np.array([value]) for value in listed])
        return tuple([float(column[0]) for column in made])

    def arranged(self, names: tuple[str, ...], columns: Sequence[Any]) -> tuple[Any, ...]:
        """Arrays in one of the forms as `columns` names them; quantiles are sorted."""
        if names == self.columns:
            return tuple(columns)
        ends = np.sort(np.stack([np.asarray(column, float) for column in columns]), axis=0)
        nothing = np.zeros_like(ends[0])
        made = [*[nothing] * (len(COMMON) - 1), 0.5 * (ends[-1] - ends[0])]
        places = [place for _, _, place in sorted(self._ends())]
        by_place = dict(zip(places, ends, strict=True))
        for place in range(self.members):
            low, high = by_place.get((place, 0)), by_place.get((place, 1))
            if low is None or high is None:  # one quantile: its distance from the middle one
                centre = ends[len(ends) // 2]
                low = nothing if low is None else centre - low
                high = nothing if high is None else high - centre
            else:
                centre = 0.5 * low + 0.5 * high
                low, high = centre - low, high - centre
            made += [centre, low, high]
        return tuple(made)

    def label(self, y: Any) -> float:
        """The label as a finite float within the support."""
        return finite_label(y, self.support)

    def at(self, prediction: Floats, lam: Any) -> Bands:
        """The bands whose members have a λ each."""
        members, ordered = self._rules
        lam = self._joined(lam if isinstance(lam, tuple) else (lam,))
        ends = [tuple(m.at(prediction, own)) for m, own in zip(members, lam, strict=True)]
        lowers, uppers = ordered(tuple([e[0] for e in ends]), tuple([e[1] for e in ends]))
        parts = tuple([Interval(*own) for own in zip(lowers, uppers, strict=True)])
        return Bands(parts, self.levels, self.pairs)

    def _joined(self, lam: Floats) -> Floats:
        """λ's of which none is empty, or short of full, where one inside it is not."""
        if all(-inf < own < inf for own in lam):
            return lam
        inside, made = {-1: -inf, 1: -inf}, []
        for side, own in zip(self.order, lam, strict=True):
            largest = inside[side or 1]
            own = inf if largest == inf else own
            made.append(-float_info.max if own == -inf < largest else own)
            inside |= dict.fromkeys((side,) if side else (-1, 1), made[-1])
        return tuple(made)

    def __reduce__(self) -> tuple[Any, ...]:
        return Fan, (self.coverage, self.quantile, self.guarded, self.support)

    def critical(self, prediction: Floats, y: float) -> float:
        """The smallest λ of all members at which y lies between the lowest and the highest end."""
        order, free, near = self.order, self.free, prediction[4]
        needed = [-inf]
        for side, first in ((-1, 0), (1, 1)):
            places = [place for place, own in enumerate(order) if own in (0, side)]
            walls = [place for place in places if not free[place]]
            outer = [place for place in places if not free[place] or place > max(walls, default=-1)]
            reached = []
            for place in outer:
                centre, *sides = prediction[len(COMMON) + 3 * place : len(COMMON) + 3 * place + 3]
                reached.append(distance(sides[first], near, side * (y - centre)))
            needed.append(min(reached, default=-inf))
        return max(needed)

    def forecast(self, prediction: Floats) -> float:
        """The centre of the innermost member."""
        return prediction[len(COMMON)]


def rising(levels: Any, name: str) -> Floats:
    """Levels in rising order, each once."""
    if isinstance(levels, str) or not isinstance(levels, Iterable):
        raise InputError(f"{name} must be a list of levels, such as [0.5, 0.9], got {levels!r}")
    found = sorted(round(confidence(level, name), 9) for level in levels)
    if len(set(found)) < len(found):
        raise InputError(f"{name} must name each level once, got {found}")
    return tuple(found)


def code(level: float, pairs: bool) -> str:
    """A level in the name of a column: 80 for the coverage 0.8, q05 for the quantile 0.05.

    >>> code(0.8, True), code(0.05, False), code(0.975, False)
    ('80', 'q05', 'q97_5')
    """
    percent = f"{100.0 * level:g}"
    name = (percent if pairs else percent.zfill(2)).replace(".", "_")
    return name if pairs else f"q{name}"


def fan_sound(columns: Floats) -> bool:
    """Whether all numbers are finite."""
    sound = True
    for value in columns:
        sound = sound & (-inf < value < inf)
    return sound


class Member(FromZero):
    """One member of a fan by itself."""

    __slots__ = ("columns", "ends", "label", "read", "score", "support")

    shows = Interval
    sound = staticmethod(fan_sound)
    at, critical = _Ends.at, _Ends.critical

    def __init__(self, fan: Fan, place: int) -> None:
        at = len(COMMON) + 3 * place
        rules = pair(at) if fan.pairs else lone(at, fan.levels[place] >= 0.5)
        self.ends, self.score = rules
        self.columns, self.support = fan.columns, fan.support
        self.read, self.label = fan.read, fan.label
