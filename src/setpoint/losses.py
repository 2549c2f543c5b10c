"""Losses: how bad a shown set was, once y is known.

A loss is any callable of `(shown, y)` that declares what it promises:

    low, high     its range
    full          the most it can be on the full set    (default: low)
    empty         the least it can be on the empty set  (default: high)
    grows         True if it grows with the set; then `full` is the least it can be on the full
                  set (default: high) and `empty` the most on the empty one (default: low)
    monotone      False if it falls and rises again as the set grows (default: True)
    judges        the class or protocol of the sets it judges (default: None, any)
    noun          what people call one of it and several, as in "miss", "misses" (default: points)

A loss may return None where there is nothing to judge. What else it may offer is a protocol:

    Keeps    a memory, with `init` and `update` instead of a call
    Counts   a rule that only asks whether y was missed, and so runs compiled
    CountsEach  one that asks how many of y's labels were
    Calms    the smallest λ that keeps it at a level, where y has many critical values
    Limits   the most it can be, where its range has no end
    Misses   the share of labels missed at a level
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import wraps
from math import floor, inf, isfinite, nan, sqrt
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from setpoint._check import finite, number, positive
from setpoint.errors import InputError
from setpoint.parts import Capability
from setpoint.regions import Centre, Region, Whole
from setpoint.sets.family import Pixels, Selection, Shows
from setpoint.sets.frames import chosen, is_tensor
from setpoint.sets.labels import LabelSet

__all__ = [
    "CentreFailure", "Custom", "F1Shortfall", "FalseNegatives", "FalsePositives",
    "ImageMiscoverage", "Limits", "Miscoverage", "MiscoverageCounter", "SetSize",
]  # fmt: skip

Memory = tuple[float, ...]


@runtime_checkable
class Keeps(Protocol, metaclass=Capability):
    """A loss with memory: `update` returns the loss and the next memory."""

    def init(self) -> Memory: ...
    def update(self, memory: Memory, shown: Any, y: Any) -> tuple[float | None, Memory]: ...


@runtime_checkable
class Counts(Protocol, metaclass=Capability):
    """A loss that only asks if y was missed: `rule` returns it and the next memory."""

    @property
    def params(self) -> Memory: ...
    @property
    def rule(self) -> Any: ...


@runtime_checkable
class CountsEach(Protocol, metaclass=Capability):
    """A loss that asks how many of y's labels were: `each` is a `rule` of (missed, all)."""

    @property
    def each(self) -> Any: ...


def if_any(rule: Any) -> Any:
    """The rule of a loss that asks whether y was missed, for y of several labels."""
    if rule not in _IF_ANY:

        @wraps(rule)
        def judge(params: Memory, memory: Memory, missed: Any) -> Any:
            return rule(params, memory, missed[0] > 0.0)

        _IF_ANY[rule] = judge
    return _IF_ANY[rule]


_IF_ANY: dict[Any, Any] = {}


@runtime_checkable
class Calms(Protocol, metaclass=Capability):
    """A loss of many critical values, of which `critical` is the least λ that keeps the level."""

    def critical(self, criticals: Any, level: float) -> float: ...


@runtime_checkable
class ByRegion(Protocol, metaclass=Capability):
    """Critical values of a frame that are kept by region, not by pixel."""

    def of(self, region: Any) -> Any: ...


@runtime_checkable
class Limits(Protocol, metaclass=Capability):
    """A loss without a largest value that a single risk without delay still bounds.

    `most(level, room)` is the most it can be if Σ(loss − level) can climb by `room`.
    """

    def most(self, level: float, room: float) -> float: ...


@runtime_checkable
class Misses(Protocol, metaclass=Capability):
    """A loss that a share of missed labels stands behind: `missed(level)` is that share."""

    def missed(self, level: float) -> float: ...


class Declaration(NamedTuple):
    """What a loss promises; see the module's description."""

    low: float
    high: float
    full: float
    empty: float
    grows: bool
    monotone: bool = True
    judges: Any = None
    noun: tuple[str, str] = ("point of loss", "points of loss")


def declaration(loss: Any) -> Declaration:
    """The promises of a loss, with the defaults filled in.

    >>> declaration(Miscoverage()).noun
    ('miss', 'misses')
    """
    name = type(loss).__name__
    if isinstance(loss, type) or not (callable(loss) or isinstance(loss, Keeps)):
        raise InputError(
            f"a loss must be a callable of (shown, y), or have init() and update(), got {loss!r}"
        )
    declared = {option: getattr(loss, option, None) for option in Declaration._fields}
    if declared["low"] is None or declared["high"] is None:
        raise InputError(
            f"a loss must declare its range as `low` and `high`, and {name} does not; "
            "wrap a plain function as losses.Custom(function, low=…, high=…)"
        )
    low, high = (number(declared[end], f"{name}.{end}") for end in ("low", "high"))
    if not (isfinite(low) and low < high):
        raise InputError(f"{name} must have a finite low < high, got ({low}, {high})")
    grows, judges = bool(declared["grows"]), declared["judges"]
    full, empty = (high, low) if grows else (low, high)
    if declared["full"] is not None:
        full = number(declared["full"], f"{name}.full")
    if declared["empty"] is not None:
        empty = number(declared["empty"], f"{name}.empty")
    if not (low <= full <= high and low <= empty <= high):
        raise InputError(
            f"{name} must keep full and empty within [{low}, {high}], got {full} and {empty}"
        )
    if judges is not None and not isinstance(judges, type):
        raise InputError(f"{name}.judges must be a class of sets, got {judges!r}")
    noun = declared["noun"] or Declaration._field_defaults["noun"]
    if not (isinstance(noun, tuple) and [type(word) for word in noun] == [str, str]):
        raise InputError(f"{name}.noun must be two words, for one and for several, got {noun!r}")
    monotone = declared["monotone"] is not False
    if grows and not monotone:
        raise InputError(f"{name} cannot both grow with the set and not be monotone")
    return Declaration(low, high, full, empty, grows, monotone, judges, noun)


def turns(loss: Any, level: float) -> bool:
    """Whether a loss is above its level again where the set is too large.

    Such a loss is held only up to the set where it is least: the upper bound of its risk.

    >>> turns(F1Shortfall(), 0.4), turns(Miscoverage(), 0.1)
    (True, False)
    """
    promise = declaration(loss)
    return not promise.monotone and promise.full > level


def fits(family: Any, loss: Any) -> str | None:
    """Why a loss cannot judge the sets of a family, in one sentence; None if it can.

    >>> from setpoint.sets import Widen
    >>> fits(Widen(), SetSize())
    'SetSize judges LabelSet, and Widen shows Interval'
    """
    judges = declaration(loss).judges
    shows = family.shows if isinstance(family, Shows) else None
    if judges is None or shows is None or issubclass(shows, judges):
        return None
    names = type(loss).__name__, judges.__name__, type(family).__name__, shows.__name__
    return "{} judges {}, and {} shows {}".format(*names)


def miscoverage(params: Memory, memory: Memory, missed: bool) -> tuple[float, Memory]:
    """1 for a miss, 0 otherwise."""
    return (1.0 if missed else 0.0), memory


def miscoverage_counter(params: Memory, memory: Memory, missed: bool) -> tuple[float, Memory]:
    """The number of misses in a row until now, at most the cap."""
    count = memory[0] + 1.0 if missed else 0.0
    if count > params[0]:
        count = params[0]
    return count, (count,)


@dataclass(frozen=True, slots=True)
class Miscoverage:
    """The 0-1 loss: 1 when y is not in the shown set.

    >>> from setpoint.sets import Interval
    >>> Miscoverage()(Interval(1.0, 3.0), 4.0)
    1.0
    """

    low, high = 0.0, 1.0
    noun = ("miss", "misses")
    params = ()
    rule = staticmethod(miscoverage)

    def __call__(self, shown: Any, y: Any) -> float:
        return 0.0 if shown.contains(y) else 1.0

    def missed(self, level: float) -> float:
        """The level itself."""
        return level


@dataclass(frozen=True, slots=True)
class MiscoverageCounter:
    """Counts consecutive misses so far; its mean is the paper's MC risk.

    For a model that covers 1 − α of the time, independently, the right level is α/(1 − α).

    Parameters
    ----------
    cap
        The largest value it takes. Without one a bound is derived for one risk without delay;
        elsewhere nothing is guaranteed.

    Examples
    --------
    >>> from setpoint.sets import Interval
    >>> counter = MiscoverageCounter()
    >>> loss, memory = counter.update(counter.init(), Interval(1.0, 3.0), 4.0)
    >>> loss, memory = counter.update(memory, Interval(1.0, 3.0), 5.0)
    >>> loss
    2.0
    """

    cap: float | None = None

    low = 0.0
    empty = 1.0
    rule = staticmethod(miscoverage_counter)

    def __post_init__(self) -> None:
        if self.cap is not None:
            cap = positive(self.cap, "cap")
            if cap < 1.0:
                raise InputError(f"cap must be at least 1, got {cap}")
            object.__setattr__(self, "cap", cap)

    @property
    def high(self) -> float:
        """The cap, or infinity."""
        return inf if self.cap is None else self.cap

    @property
    def params(self) -> Memory:
        return (self.high,)

    def init(self) -> Memory:
        """No miss yet."""
        return (0.0,)

    def update(self, memory: Memory, shown: Any, y: Any) -> tuple[float, Memory]:
        """The counter after this outcome, and what to remember."""
        return miscoverage_counter(self.params, memory, not shown.contains(y))

    def missed(self, level: float) -> float:
        """The share of misses of an independent model whose mean counter is `level`."""
        return level / (1.0 + level)

    def most(self, level: float, room: float) -> float:
        """The most it can be, for one risk without delay.

        A streak of k misses lifts the sum of (loss − level) by k(k + 1)/2 − k·level.

        >>> MiscoverageCounter().most(1 / 9, room=800.0)
        40.0
        """
        half = 0.5 + level
        streak = half + sqrt(half * half + 2.0 * room)
        streak += 1e-9 * (1.0 + streak)  # it may end on the very bound: rounding must not deny it
        return min(float(floor(streak)) if isfinite(streak) else inf, self.high)


@dataclass(frozen=True, slots=True)
class Custom:
    """Any function of (shown, y), with the promises it makes.

    Its options are what every loss declares: its range, outside which a value is an error; the most
    it is on the full set and the least on the empty one, by default `low` and `high`; whether it
    grows with the set; whether it is monotone in it.

    >>> from setpoint.sets import Interval
    >>> shortfall = Custom(lambda shown, y: min(max(y - shown.upper, 0.0) / 10.0, 1.0))
    >>> shortfall(Interval(1.0, 3.0), 5.0)
    0.2
    """

    function: Callable[[Any, Any], float | None]
    low: float = 0.0
    high: float = 1.0
    full: float | None = None
    empty: float | None = None
    grows: bool = False
    monotone: bool = True

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"function must be callable, got {self.function!r}")
        declaration(self)

    def __call__(self, shown: Any, y: Any) -> float | None:
        return self.function(shown, y)


# Sets of labels. y is a tuple of labels, as `sets.Multilabel` reads it, or one label.


def _several(y: Any) -> tuple[Any, ...]:
    return y if type(y) is tuple else (y,)


def _share_left_out(params: Memory, memory: Memory, missed: Any) -> tuple[float, Memory]:
    out, wanted = missed
    return (1.0 - (wanted - out) / wanted if wanted > 0 else nan), memory


@dataclass(frozen=True, slots=True)
class FalseNegatives:
    """The share of y's labels, or of an object's pixels, that the set leaves out.

    There is nothing to judge if y has none.

    >>> from setpoint.sets import Multilabel
    >>> shown = Multilabel().at(Multilabel().read([0.9, 0.2, 0.6]), -0.5)
    >>> FalseNegatives()(shown, (0, 1))
    0.5
    >>> from setpoint.sets import PixelThreshold
    >>> family = PixelThreshold()
    >>> shown = family.at(family.read([[0.9, 0.2, 0.6]]), -0.5)
    >>> FalseNegatives()(shown, family.label([[True, True, False]]))
    0.5
    """

    low, high = 0.0, 1.0
    judges = Selection
    each = staticmethod(_share_left_out)

    def __call__(self, shown: Any, y: Any) -> float | None:
        share, _ = _share_left_out((), (), shown.left_out(y))
        return share if share == share else None

    def critical(self, criticals: Any, level: float) -> float:
        """The smallest λ that leaves out at most `level` of the labels or pixels."""
        if isinstance(criticals, Sequence):
            criticals = np.array(criticals, float)
        return _smallest(criticals, Whole(), _covering(level))


@dataclass(frozen=True, slots=True)
class FalsePositives:
    """The share of wrong labels included in the set; it grows with the set.

    Nothing to judge if no label is wrong. Held as a risk it is the only one.

    >>> from setpoint.sets import Multilabel
    >>> shown = Multilabel().at(Multilabel().read([0.9, 0.2, 0.6]), -0.5)
    >>> FalsePositives()(shown, (0,))
    0.5
    """

    low, high = 0.0, 1.0
    judges = LabelSet
    grows = True

    def __call__(self, shown: Any, y: Any) -> float | None:
        right = tuple([label for label in _several(y) if shown.names(label)])
        wrong = len(shown.classes) - len(right)
        return (shown.size - shown.hits(right)) / wrong if wrong else None


@dataclass(frozen=True, slots=True)
class SetSize:
    """The share of all classes that are in the set; it grows with the set.

    Nothing to judge where a prediction names no class. Held as a risk it is the only one.

    >>> from setpoint.sets import Threshold
    >>> SetSize()(Threshold().at(Threshold().read([0.7, 0.2, 0.1, 0.0]), -0.2), 0)
    0.5
    """

    low, high = 0.0, 1.0
    judges = LabelSet
    grows = True

    def __call__(self, shown: Any, y: Any) -> float | None:
        classes = len(shown.classes)
        return shown.size / classes if classes else None


@dataclass(frozen=True, slots=True)
class F1Shortfall:
    """1 − F1 of the set against y's labels; nothing to judge if both are empty.

    It falls as the set grows and then rises again, so nothing guarantees that it can be kept at a
    level. Its risk needs an upper bound, the θ at which it is least, as `setpoint.burn_in` finds it
    from past rows; larger sets are never shown for it.

    >>> from setpoint.sets import Multilabel
    >>> shown = Multilabel().at(Multilabel().read([0.9, 0.2, 0.6]), -0.5)
    >>> round(F1Shortfall()(shown, (0,)), 6)
    0.333333
    """

    low, high = 0.0, 1.0
    judges = LabelSet
    full = 1.0
    monotone = False

    def __call__(self, shown: Any, y: Any) -> float | None:
        labels = _several(y)
        unnamed = tuple([label for label in labels if not shown.names(label)])
        total = shown.size + shown.hits(unnamed) + len(labels)
        return 1.0 - 2.0 * shown.hits(labels) / total if total else None


# Images. The shown set counts its pixels; critical values are an array or tensor of the frame.


def _smallest(criticals: Any, region: Region, wanted: Callable[[int], int]) -> float:
    """The k-th smallest critical value of a region, k = wanted(number of them); −inf for 0."""
    if isinstance(criticals, ByRegion):
        values = criticals.of(region)
    else:
        values = chosen(criticals, region.index(tuple(criticals.shape))).reshape(-1)
    values = values[values == values]  # not NaN
    k = wanted(len(values))
    if k <= 0:
        return -inf
    if is_tensor(values):
        return float(values.kthvalue(k).values)
    return float(np.partition(values, k - 1)[k - 1])


def _covering(level: float) -> Callable[[int], int]:
    """How many of a number of things must be covered, so that at most `level` of them is not."""

    def covered(count: int) -> int:
        missed = min(int(level * count) + 1, count)
        while missed > 0 and missed / count > level:
            missed -= 1
        return count - missed

    return covered


def _check_region(region: Any) -> None:
    if isinstance(region, type) or not (is_dataclass(region) and isinstance(region, Region)):
        raise InputError(f"region must be one of setpoint.regions, as Whole(), got {region!r}")


@dataclass(frozen=True, slots=True)
class ImageMiscoverage:
    """The share of the judged pixels that the set misses; nothing to judge if there are none.

    Parameters
    ----------
    region
        Which pixels count: `regions.Whole()`, `Centre(…)`, `Mask(…)`.

    Examples
    --------
    >>> from setpoint.sets import PixelScale
    >>> family = PixelScale()
    >>> shown = family.at(family.read(([[8.0, 9.0]], [[1.0, 1.0]], [[1.0, 1.0]])), 1.0)
    >>> ImageMiscoverage()(shown, family.label([[8.5, 12.0]]))
    0.5
    """

    region: Region = field(default_factory=Whole)

    low, high = 0.0, 1.0
    judges = Pixels

    def __post_init__(self) -> None:
        _check_region(self.region)

    def __call__(self, shown: Any, y: Any) -> float | None:
        missed, judged = shown.count(y, self.region)
        return missed / judged if judged else None

    def critical(self, criticals: Any, level: float) -> float:
        """The smallest λ that misses at most `level` of the pixels."""
        return _smallest(criticals, self.region, _covering(level))


@dataclass(frozen=True, slots=True)
class CentreFailure:
    """1 when no more than a share of the region's judged pixels is covered, else 0.

    Nothing to judge if no pixel of the region is.

    Parameters
    ----------
    threshold
        The share, at least 0 and below 1: the paper's 60 %.
    region
        Which pixels count: by default the paper's centre.

    Examples
    --------
    >>> import numpy as np
    >>> CentreFailure(region=Whole()).critical(np.array([[1.0, 2.0], [3.0, 4.0]]), 0.1)
    3.0
    """

    threshold: float = 0.6
    region: Region = field(default_factory=Centre)

    low, high = 0.0, 1.0
    judges = Pixels

    def __post_init__(self) -> None:
        _check_region(self.region)
        threshold = finite(self.threshold, "threshold")
        if not 0.0 <= threshold < 1.0:
            raise InputError(f"threshold must be at least 0 and below 1, got {threshold}")
        object.__setattr__(self, "threshold", threshold)

    def __call__(self, shown: Any, y: Any) -> float | None:
        missed, judged = shown.count(y, self.region)
        if not judged:
            return None
        return 1.0 if (judged - missed) / judged <= self.threshold else 0.0

    def critical(self, criticals: Any, level: float) -> float:
        """The smallest λ that covers enough; −inf if a failure is within the level."""

        def covered(count: int) -> int:
            if level >= 1.0 or not count:
                return 0
            enough = max(int(self.threshold * count) - 1, 0)
            while enough / count <= self.threshold:
                enough += 1
            return enough

        return _smallest(criticals, self.region, covered)
