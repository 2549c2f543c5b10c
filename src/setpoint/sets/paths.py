"""Whole paths: a band that holds every step at once, and intervals of totals, maxima and minima.

A path is H forecasts that were made at once. Its band is `centre ± q·half` in every step, with one
q, so that a path is judged by one number: how far the worst of its steps lies out. The labels of
its steps may come one at a time and in any order; what is known of them is `Heard`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite, nan
from typing import Any, NamedTuple

import numpy as np

from setpoint._check import interval, number, whole
from setpoint._html import table
from setpoint.errors import AnsweredReceipt, InputError, LabelError, PredictionError
from setpoint.predictions import Row
from setpoint.sets.family import FromZero, describe, floats, names_of
from setpoint.sets.fan import code, rising
from setpoint.sets.intervals import Interval
from setpoint.sets.multiplied import Multiplied, multiplied, multiplied_critical

Array = np.ndarray[Any, Any]
Floats = tuple[float, ...]
_OPEN = (0.0, 0.0, 0.0, 0.0)
_MOST = 1_000
"""The longest path."""


class Functional(NamedTuple):
    """A number that rises with every step: the total, maximum or minimum of the first steps."""

    kind: str
    steps: int

    def of(self, values: Sequence[float]) -> float:
        """It, of a path; NaN where a step is missing."""
        first = [float(value) for value in values[: self.steps]]
        total = 0.0
        for value in first:  # in order, so that every way to run gives the same bits
            total += value
        if self.kind == "total" or total != total:
            return total
        return max(first) if self.kind == "maximum" else min(first)

    def support(self, support: tuple[float, float]) -> tuple[float, float]:
        """The values it can take, from those that a step can."""
        low, high = support
        count = float(self.steps) if self.kind == "total" else 1.0
        return count * low, count * high

    def __str__(self) -> str:
        return f"{self.kind} of {self.steps}"


class Heard(NamedTuple):
    """What is known of a path: its values, NaN where there is none, and which steps were told.

    `new` has the steps that were told last; a step that was told and is NaN is missing.
    """

    values: Floats
    told: tuple[bool, ...]
    new: tuple[int, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every step was told."""
        return all(self.told)

    def ends(self, steps: int) -> bool:
        """Whether the first steps are all told, one of them last."""
        return all(self.told[:steps]) and any(h < steps for h in self.new)

    def outcomes(self, shown: "Path", lam: Sequence[float]) -> tuple[Any, ...]:
        """Of each set whether it was missed, NaN where too little is known, None to judge later.

        λ is NaN of a set that was judged before.
        """
        outcomes = list[Any]()
        values = [functional.of(self.values) for functional in shown.functionals]
        for path in shown.levels:
            missed: Any = not path.contains(self.values)
            if not missed:
                known = any(y == y for y in self.values)
                missed = None if not self.complete else False if known else nan
            outcomes.append(missed)
            for functional, value, part in zip(
                shown.functionals, values, path.numbers, strict=True
            ):
                missed = nan if value != value else not part.contains(value)
                outcomes.append(missed if all(self.told[: functional.steps]) else None)
        return tuple([None if own != own else o for o, own in zip(outcomes, lam, strict=True)])

    def left(self, shown: "Path", lam: Sequence[float]) -> tuple[float, ...]:
        """λ of each set, NaN once it is judged."""
        pairs = zip(self.outcomes(shown, lam), lam, strict=True)
        return tuple([own if outcome is None else nan for outcome, own in pairs])

    def told_of(self, values: Sequence[float], steps: Iterable[int]) -> "Heard":
        """It with the values of some steps, counted from 0."""
        new = tuple(steps)
        known, told = list(self.values), list(self.told)
        for h in new:
            if told[h]:
                raise AnsweredReceipt(
                    f"step {h + 1} already has its label, which was counted and learnt from: a "
                    "restated value cannot take its place"
                )
            known[h], told[h] = values[h], True
        return Heard(tuple(known), tuple(told), new)


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """The band of a whole path, and the intervals of its totals, its maximum and its minimum.

    `lower` and `upper` have an end for each step; `total` has an interval for each number of first
    steps that a total was asked for. Of several levels of coverage it shows the highest, and
    `path[0.5]` the sets of another.

    >>> sets = Paths(3, totals=[2, 3])
    >>> path = sets.at(sets.read([(0.0, 2.0), (1.0, 3.0), (2.0, 4.0)]), (0.0, 0.0, 0.0))
    >>> path.lower, path.upper
    (array([0., 1., 2.]), array([2., 3., 4.]))
    >>> path.total[3], [1.0, 2.0, 3.0] in path
    (Interval(3.0, 9.0), True)
    """

    lower: Array
    upper: Array
    total: dict[int, Interval] = field(default_factory=dict)
    maximum: Interval | None = None
    minimum: Interval | None = None
    coverage: float = nan
    inner: tuple["Path", ...] = ()

    def __getitem__(self, coverage: float) -> "Path":
        for path in self.levels:
            if abs(path.coverage - coverage) < 1e-9:
                return path
        known = [path.coverage for path in self.levels if path.coverage == path.coverage]
        raise InputError(f"this path has the coverages {known}, got {coverage}")

    @property
    def levels(self) -> tuple["Path", ...]:
        """The sets of each level, the smallest first."""
        return (*self.inner, self)

    @property
    def functionals(self) -> tuple[Functional, ...]:
        """What the intervals are of."""
        kinds = [kind for kind in ("maximum", "minimum") if getattr(self, kind) is not None]
        totals = [Functional("total", steps) for steps in self.total]
        return (*totals, *(Functional(kind, len(self.lower)) for kind in kinds))

    @property
    def numbers(self) -> tuple[Interval, ...]:
        """The intervals of all totals, then of the maximum and the minimum."""
        extremes = [part for part in (self.maximum, self.minimum) if part is not None]
        return (*self.total.values(), *extremes)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The sets that are judged: of each level the band, and the interval of each number."""
        return tuple([part for path in self.levels for part in (path, *path.numbers)])

    @property
    def length(self) -> float:
        """The mean width of the steps."""
        return float(np.mean(np.maximum(self.upper - self.lower, 0.0)))

    @property
    def empty(self) -> bool:
        """Whether no path lies in it."""
        return bool((self.lower > self.upper).any())

    def contains(self, y: Sequence[float]) -> bool:
        """Whether every step that is known lies between its ends; NaN is a step not known."""
        return not bool(((np.asarray(y) < self.lower) | (np.asarray(y) > self.upper)).any())

    __contains__ = contains

    def __len__(self) -> int:
        return len(self.lower)

    def _repr_html_(self) -> str:
        ends = zip(self.lower.tolist(), self.upper.tolist(), strict=True)
        rows = [(f"step {h}", f"{low:.6g} to {high:.6g}") for h, (low, high) in enumerate(ends, 1)]
        pairs = zip(self.functionals, self.numbers, strict=True)
        return table(rows + [(str(f), f"{p.lower:.6g} to {p.upper:.6g}") for f, p in pairs])

    def __repr__(self) -> str:
        low, high = float(self.lower.min()), float(self.upper.max())
        numbers = zip(self.functionals, self.numbers, strict=True)
        said = [f", {f} from {p.lower:.6g} to {p.upper:.6g}" for f, p in numbers]
        return f"<Path of {len(self)} steps between {low:.6g} and {high:.6g}{''.join(said)}>"


@dataclass(frozen=True, slots=True)
class Paths(FromZero):
    """Bands of whole paths of `horizon` steps, with totals, maxima and minima of their own.

    A prediction is a forecast for each step, or a lower and an upper end: H numbers, H pairs, or a
    mapping with `point`, or `lower` and `upper`. Each set has a λ of its own, the band's the first,
    then those of the totals, of the maximum and of the minimum, level after level. With a
    correction λ widens what it has learnt; by itself the band is `centre ± e^λ·half`.

    Parameters
    ----------
    horizon
        H, the steps of a path.
    totals
        Of how many first steps totals are shown, such as (6, 24).
    maximum, minimum
        Whether to show an interval of the path's maximum, of its minimum.
    support
        The values that every step can take: the full set.
    coverage
        Several levels, each with a band and intervals of its own, which lie within each other.
    """

    horizon: int
    totals: tuple[int, ...] = ()
    maximum: bool = False
    minimum: bool = False
    support: tuple[float, float] = (-inf, inf)
    coverage: tuple[float, ...] = ()

    order = ()
    columns = None

    def __post_init__(self) -> None:
        horizon = whole(self.horizon, "horizon", 2)
        if horizon > _MOST:
            raise InputError(f"a path has at most {_MOST:,} steps, got {horizon:,}")
        object.__setattr__(self, "horizon", horizon)
        listed: Any = self.totals
        listed = (listed,) if isinstance(listed, int) else listed
        totals = tuple([whole(steps, "a total", 1) for steps in listed])
        if len(set(totals)) < len(totals) or any(steps > horizon for steps in totals):
            raise InputError(
                f"totals must be different numbers of first steps, at most {horizon}, got "
                f"{list(totals)}"
            )
        object.__setattr__(self, "totals", totals)
        for name in ("maximum", "minimum"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name} must be True or False, got {getattr(self, name)!r}")
        object.__setattr__(self, "support", interval(self.support, "support"))
        object.__setattr__(self, "coverage", rising(self.coverage, "coverage"))

    @property
    def functionals(self) -> tuple[Functional, ...]:
        """The numbers of a path that have sets of their own."""
        extremes = [kind for kind in ("maximum", "minimum") if getattr(self, kind)]
        totals = [Functional("total", steps) for steps in self.totals]
        return (*totals, *(Functional(kind, self.horizon) for kind in extremes))

    @property
    def members(self) -> int:
        """The number of sets of a prediction."""
        return max(len(self.coverage), 1) * (1 + len(self.functionals))

    @property
    def band(self) -> int:
        """The index of the band with the highest coverage."""
        return self.members - 1 - len(self.functionals)

    @property
    def free(self) -> tuple[bool, ...]:
        """Every set is judged."""
        return (False,) * self.members

    @property
    def places(self) -> dict[str, tuple[int, int]]:
        """Of each end in a column its set, and 0 for lower or 1 for upper; the band's own first.

        The band of the highest level has `lower` and `upper`, others have their level behind:
        lower_50, total_24_upper_50.
        """
        words = ["", *(f"{f.kind}_{f.steps}_" for f in self.functionals)]
        found = {}
        for place in (self.band, *range(self.members)):
            level, which = divmod(place, len(words))
            behind = f"_{code(self.coverage[level], True)}" if self.coverage else ""
            behind = "" if place == self.band else behind
            for side, end in enumerate(("lower", "upper")):
                found[f"{words[which]}{end}{behind}"] = place, side
        return found

    def row(self, shown: Path, step: int) -> dict[str, float]:
        """The ends in a row of one step, by the names of `places`."""
        parts = shown.parts
        ends = {
            name: (parts[member].lower, parts[member].upper)[side]
            for name, (member, side) in self.places.items()
        }
        return {n: float(e if np.ndim(e) == 0 else e[step - 1]) for n, e in ends.items()}

    @property
    def titles(self) -> tuple[str, ...]:
        """The display name of each set."""
        names = ("path", *map(str, self.functionals))
        if not self.coverage:
            return names
        return tuple([f"{name}, coverage {own:g}" for own in self.coverage for name in names])

    @property
    def whole(self) -> "Paths":
        """The family itself reads predictions."""
        return self

    def member(self, index: int) -> "_Member":
        """The family of one of the sets."""
        return _Member(self, index)

    def read(self, prediction: Any) -> tuple[Floats, Floats, float]:
        """The forecasts as lower and upper ends of each step, and the origin's place in time."""
        phase = nan
        if type(prediction) is Row:
            if prediction.features is not None:
                raise PredictionError("a path takes no features")
            given = prediction.phase
            phase = nan if given is None else number(given, "a phase", PredictionError)
            prediction = prediction.prediction
        keys = names_of(prediction)
        if "phase" in keys:
            phase, keys = number(prediction["phase"], "a phase", PredictionError), keys - {"phase"}
        if not (phase != phase or (-1e9 < phase < 1e9 and phase % 1.0 == 0.0)):
            raise PredictionError(f"a phase must be a whole number within ±1e9, got {phase}")
        if keys == {"point"}:
            ends = [floats(prediction["point"], "a path")] * 2
        elif keys == {"lower", "upper"}:
            ends = [floats(prediction[name], "a path") for name in ("lower", "upper")]
        elif keys:
            raise PredictionError(
                "a path with names must have point, or lower and upper, and may have phase; got "
                f"{', '.join(map(str, sorted(keys)))}"
            )
        else:
            array = floats(prediction, "a path")
            pairs = array.ndim == 2 and array.shape[1] == 2
            ends = [array[:, 0], array[:, 1]] if pairs else [array] * 2
        steps = self.horizon
        if any(end.shape != (steps,) for end in ends):
            raise PredictionError(
                f"a path must be {steps} numbers, {steps} pairs (lower, upper), or a mapping with "
                f"point, or lower and upper; got {describe(prediction)}"
            )
        if not (np.abs(np.array(ends)) < 1e150).all():
            raise PredictionError("the forecasts of a path must be finite, within ±1e150")
        lower, upper = np.minimum(*ends).tolist(), np.maximum(*ends).tolist()
        return tuple(lower), tuple(upper), phase

    def label(self, y: Any) -> Floats:
        """The labels of all steps, NaN where one is missing."""
        if isinstance(y, list):
            y = [nan if value is None else value for value in y]
        values = floats(y, "labels")
        if values.shape != (self.horizon,):
            raise LabelError(
                f"a path of {self.horizon} steps needs {self.horizon} labels, NaN for those that "
                f"are missing, or one with its step; got {describe(y)}"
            )
        return tuple([self._label(value) for value in values.tolist()])

    def _label(self, y: Any) -> float:
        value = nan if y is None else number(y, "a label", LabelError)
        low, high = self.support
        if isfinite(value) and not low <= value <= high:
            raise LabelError(f"a label must lie in the support {[low, high]}, got {value}")
        if not (isfinite(value) or value != value):
            raise LabelError(f"a label must be finite, or NaN where it is missing, got {value}")
        return value

    def known(self, before: Any = ()) -> Heard:
        """The labels known of a path; none at first."""
        steps = self.horizon
        return Heard(*before) if before else Heard((nan,) * steps, (False,) * steps)

    def heard(self, before: Any, y: Any, step: int | None) -> Heard:
        """What is known of a path once the label of a step came, or those of all others."""
        known = self.known(before)
        if step is None:
            values = self.label(y)
            new = [h for h, value in enumerate(values) if not known.told[h] or value == value]
            return known.told_of(values, new)
        place = whole(step, "step", 1)
        if place > self.horizon:
            raise LabelError(f"step must lie between 1 and {self.horizon}, got {place}")
        return known.told_of((self._label(y),) * place, (place - 1,))

    def at(self, reading: tuple[Any, ...], lam: Sequence[float]) -> Path:
        """The band and the intervals, each at its own λ; those of higher levels lie around."""
        steps, members = self._given(reading)
        count, made = 1 + len(self.functionals), list[Path]()
        for place, coverage in enumerate(self.coverage or (nan,)):
            own = slice(place * count, (place + 1) * count)
            (path, *numbers), (asked, *rest) = members[own], lam[own]
            if path is not None and -inf < asked < inf:  # of the steps it is the end of log M
                asked = min(max(multiplied(path, asked)[1], -FAR), FAR)
            band = Multiplied(self.support).at
            ends = [tuple(band(step, asked)) for step in steps]
            parts = [
                Multiplied(f.support(self.support)).at(base, own)
                for f, base, own in zip(self.functionals, numbers, rest, strict=True)
            ]
            lower, upper = np.array(ends).T
            if made:
                below = made[-1]
                lower, upper = np.minimum(lower, below.lower), np.maximum(upper, below.upper)
                parts = [
                    Interval(min(part.lower, own.lower), max(part.upper, own.upper))
                    for part, own in zip(parts, below.numbers, strict=True)
                ]
            named = list(zip(self.functionals, parts, strict=True))
            totals = {f.steps: part for f, part in named if f.kind == "total"}
            extremes: Any = {f.kind: part for f, part in named if f.kind != "total"}
            made.append(Path(lower, upper, totals, **extremes, coverage=coverage))
        return replace(made[-1], inner=tuple(made[:-1])) if len(made) > 1 else made[0]

    def _given(self, reading: tuple[Any, ...]) -> tuple[Any, Any]:
        """The base of each step, and of log M and each number; without a correction as given."""
        if len(reading) == 2:
            return reading[0][:, :7].tolist(), reading[1]
        lower, upper, _ = reading
        base = [_between(low, high) for low, high in zip(lower, upper, strict=True)]
        numbers = [_between(f.of(lower), f.of(upper)) for f in self.functionals]
        return base, [None, *numbers] * max(len(self.coverage), 1)

    def critical(self, reading: tuple[Any, ...], y: Any) -> float:
        """The smallest λ whose band holds a path."""
        return self.member(0).critical(reading, y)

    def needs(
        self, prediction: tuple[Any, ...], shown: Path, y: Heard
    ) -> tuple[float, float, float] | None:
        """What a path cost once it is known: its mean distance from the middle of what was shown,
        or of forecasts as they were read; the first value of it that is known; the mean width.
        """
        raw = len(prediction) == 3  # as `read` gives it
        lower, upper = np.array(prediction[:2]) if raw else (shown.lower, shown.upper)
        values, width = np.array(y.values), shown.length
        known = values == values
        if not (y.complete and known.any() and 0.0 <= width < inf):
            return None
        with np.errstate(over="ignore"):  # such a cost is cut
            far = np.abs(values - 0.5 * (lower + upper))[known]
        return float(far.mean()), float(values[known][0]), width


@dataclass(frozen=True, slots=True)
class _Member(FromZero):
    """The family of one set of a path: its band, or one of its numbers."""

    paths: Paths
    index: int

    shows = None

    def read(self, prediction: Any) -> Any:
        return self.paths.read(prediction)

    def label(self, y: Any) -> Any:
        return self.paths.label(y)

    def at(self, reading: Any, lam: float) -> Any:
        return self.paths.at(reading, (lam,) * self.paths.members).parts[self.index]

    def critical(self, reading: Any, y: Any) -> float:
        steps, members = self.paths._given(reading)
        base, place = members[self.index], self.index % (1 + len(self.paths.functionals))
        if place:
            return multiplied_critical(base, self.paths.functionals[place - 1].of(y))
        far = worst(steps, y, stuck=inf)
        far = -inf if far != far else far
        return far if base is None else multiplied_critical(base, far)


FAR = 25.0
"""A band has between e^−25 and e^25 of the half-widths that were learnt, or is unlimited."""


def _between(low: float, high: float) -> Floats:
    """A reading of `sets.Multiplied` between two ends."""
    half = 0.5 * (high - low)
    return (0.5 * (low + high), half, half, *_OPEN)


def worst(steps: Any, values: Sequence[float], stuck: float = nan) -> float:
    """log M: the λ at which the band reaches the worst of the steps that are known.

    NaN where none is. Steps without a width are left out, or are `stuck` where they are missed.
    """
    far = nan
    for step, y in zip(steps, values, strict=True):
        if y == y:
            own = multiplied_critical(step, y)
            own = stuck if own == inf else own
            far = own if not far >= own and own == own else far
    return far
