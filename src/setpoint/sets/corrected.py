"""Intervals that learn from the forecast's own errors.

A forecast gives two ends, or a point. From past labels the family learns, online and without
units, what is wrong with them, and shows centre ∓ half·e^λ. It is made of five rules:

    believe   a wild label counts only as far as the nearer of two expectations allows
    error     a ridge regression of the forecast's error on what was seen of it last
    scale     how large the rest is now, from its recent size, the given width and its movement
    tails     how far the two ends lie from the centre, in units of that scale
    trust     whether the ends as they were given, moved a little, do better

What it learns cannot cost anything in the guarantee, which speaks of the account of losses alone.
"""

from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Any, NamedTuple

from setpoint._check import finite, positive, whole
from setpoint.errors import InputError, PredictionError
from setpoint.parts import ours
from setpoint.sets.intervals import _LINE, Widen, _Ends

__all__ = [
    "Corrected", "Learnt", "Reading", "corrected", "corrected_critical", "ends_sound", "heed",
    "observe", "prepare",
]  # fmt: skip

Floats = tuple[float, ...]


class Learnt(NamedTuple):
    """What the family remembers.

    `labels` counts them; `error` is the last error, `mean` (and, with two means, `slow_mean`) an
    average of past ones, `middle` the last forecast. `a00` … `a33` and `b0` … `b3` are the
    averages the regression rests on, `w0` … `w3` its weights. `size` and `recent_size` are the slow
    and the fast average of what the regression leaves, `width` and `movement` those of the given
    width and of how far forecasts move; `k0`, `k1`, `k2` say how much each of these three counts.
    `low_tail` and `high_tail` are the tails around the corrected centre, `low_shift` and
    `high_shift` how far the given ends are moved, `regret` is how much worse the corrected ends
    did than these, and `waiting` the most other predictions that waited for their label.
    """

    labels: float
    error: float
    mean: float
    slow_mean: float
    middle: float
    a00: float
    a10: float
    a11: float
    a20: float
    a21: float
    a22: float
    a30: float
    a31: float
    a32: float
    a33: float
    b0: float
    b1: float
    b2: float
    b3: float
    w0: float
    w1: float
    w2: float
    w3: float
    size: float
    recent_size: float
    width: float
    movement: float
    k0: float
    k1: float
    k2: float
    low_tail: float
    high_tail: float
    low_shift: float
    high_shift: float
    regret: float
    waiting: float


class Reading(NamedTuple):
    """A prediction as its receipt holds it.

    The interval at λ is [centre − left·e^λ, centre + right·e^λ]. The rest is what the label will be
    judged against: the given `middle` and `half` width, the features of the error (`x0` … `x3`) and
    of the scale (`f0`, `f1`, `f2`), the expected error, `movement`, scale, tails and shifts.
    """

    centre: float
    left: float
    right: float
    middle: float
    half: float
    expected: float
    x0: float
    x1: float
    x2: float
    x3: float
    f0: float
    f1: float
    f2: float
    movement: float
    scale: float
    low_tail: float
    high_tail: float
    low_shift: float
    high_shift: float


def corrected(reading: Floats, lam: float) -> tuple[float, float]:
    """Ends of [centre − left·e^λ, centre + right·e^λ]."""
    centre, left, right = reading[0], reading[1], reading[2]
    factor = exp(lam if lam < 700.0 else 700.0)
    lower = centre - left * factor if left < inf else -inf
    upper = centre + right * factor if right < inf else inf
    return lower, upper


def corrected_critical(reading: Floats, y: float) -> float:
    """The λ at which an end reaches y; −inf at the centre, +inf where no λ reaches it."""
    distance = y - reading[0]
    reach = reading[2] if distance > 0.0 else reading[1]
    distance = distance if distance > 0.0 else -distance
    if distance == 0.0:
        return -inf
    if reach <= 0.0:
        return inf
    ratio = distance / reach
    return log(ratio) if ratio > 0.0 else -inf


def ends_sound(columns: Floats) -> bool:
    """Whether the two ends are numbers whose squares are still numbers."""
    lower, upper = columns
    return (-1e150 < lower < 1e150) & (-1e150 < upper < 1e150)


def _contrast(a: float, b: float) -> float:
    """How much larger a is than b, from −1 to 1."""
    return (a - b) / (a + b) if a + b > 0.0 else 0.0


def _clipped(value: float, most: float) -> float:
    return -most if value < -most else most if value > most else value


def _root(pivot: float, diagonal: float) -> float:
    """The root of a pivot; a direction that rounding has swallowed gets no weight."""
    return sqrt(pivot) if pivot > 1e-13 * diagonal else inf


def prepare(params: Floats, memory: Floats, columns: Floats) -> Floats:
    """The interval to stretch, and all that its label will be judged against."""
    level, two_means, recentre, trust = params[0], params[1], params[2], params[9]
    (
        labels, error, mean, slow_mean, last_middle,
        _, _, _, _, _, _, _, _, _, _, _, _, _, _, w0, w1, w2, w3,
        size, recent_size, width, movement, k0, k1, k2,
        low_tail, high_tail, low_shift, high_shift, regret, _,
    ) = memory  # fmt: skip
    middle = 0.5 * (columns[0] + columns[1])
    half = 0.5 * (columns[1] - columns[0])
    half = half if half > 0.0 else -half
    known = labels > 0.0
    first = half / -log(level)  # before the first label, the given width counts as one
    size = size if known else first
    recent_size = recent_size if known else first
    change = middle - last_middle if known else 0.0
    travelled = (change if change > 0.0 else -change) + size
    x0, x1 = error - mean, change
    x2 = mean - slow_mean if two_means > 0.0 else mean
    x3 = slow_mean if two_means > 0.0 else 0.0
    expected = w0 * x0 + w1 * x1 + w2 * x2 + w3 * x3
    f0 = _contrast(recent_size, size)
    f1 = _contrast(half, width) if known else 0.0
    f2 = _contrast(travelled, movement) if known else 0.0
    scale = size * exp(k0 * f0 + k1 * f1 + k2 * f2)
    # The corrected ends and the ends as given, in the share that trust decides.
    share = 1.0 / (1.0 + exp(trust * regret)) if trust > 0.0 else 1.0
    lower = share * (expected - scale * low_tail) + (1.0 - share) * (-half - scale * low_shift)
    upper = share * (expected + scale * high_tail) + (1.0 - share) * (half + scale * high_shift)
    centre = 0.5 * (lower + upper) if recentre > 0.0 else 0.0
    left = centre - lower if centre > lower else 0.0
    right = upper - centre if upper > centre else 0.0
    # Nothing is known before the first label of a point forecast: the set is everything.
    blind = (not known) & (half == 0.0)
    return (
        middle + centre, inf if blind else left, inf if blind else right,
        middle, half, expected, x0, x1, x2, x3, f0, f1, f2, travelled, scale,
        low_tail, high_tail, low_shift, high_shift,
    )  # fmt: skip


def observe(params: Floats, memory: Floats, reading: Floats, y: float) -> Floats:
    """What is remembered after a label, judged against what was shown."""
    level, two_means, recentre, slow, medium, fast, ridge, wild, step, _, far = params
    (
        labels, last_error, mean, slow_mean, last_middle,
        a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, b0, b1, b2, b3, w0, w1, w2, w3,
        size, recent_size, width, movement, k0, k1, k2,
        low_tail, high_tail, low_shift, high_shift, regret, waiting,
    ) = memory  # fmt: skip
    (
        _, _, _, middle, half, expected, x0, x1, x2, x3, f0, f1, f2, travelled, scale,
        shown_low, shown_high, shown_low_shift, shown_high_shift,
    ) = reading  # fmt: skip
    error = y - middle
    if not (-1e150 < error < 1e150):  # it counts as a loss and teaches nothing
        return (
            labels, last_error, mean, slow_mean, last_middle,
            a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, b0, b1, b2, b3, w0, w1, w2, w3,
            size, recent_size, width, movement, k0, k1, k2,
            low_tail, high_tail, low_shift, high_shift, regret, waiting,
        )  # fmt: skip
    if labels == 0.0:
        size = recent_size = half / -log(level)
        width, movement = half, travelled
        labels = 1.0 if half > 0.0 else 0.0
    labels += 1.0
    share = 1.0 / labels
    pace = 1.0 + 0.2 * waiting  # late labels of one horizon are one event
    calm = slow / pace
    rate = calm if calm > share else share
    tail_rate = slow if slow > share else share
    # Believe.
    rest, jump = error - expected, error - last_error
    most = scale if scale > recent_size else recent_size
    most = wild * (most if most > size else size)
    if most > 0.0:
        nearer = abs(rest) <= abs(jump)
        rest = _clipped(rest, most)
        error = expected + rest if nearer else last_error + _clipped(jump, most)
    weight = 1.0
    if scale > 0.0:
        # Trust: the pinball loss of the corrected ends and of the given ones.
        z, tail = rest / scale, 0.5 * level
        lower, upper = -half - scale * shown_low_shift, half + scale * shown_high_shift
        own_lower, own_upper = expected - scale * shown_low, expected + scale * shown_high
        worse = tail * (own_upper - own_lower - upper + lower)
        worse += _beyond(error, own_lower, own_upper) - _beyond(error, lower, upper)
        regret += calm * (_clipped(worse / scale, 2.0) - regret)
        high_shift += rate * ((1.0 if error > upper else 0.0) - tail)
        low_shift += rate * ((1.0 if error < lower else 0.0) - tail)
        # Tails.
        high_tail += tail_rate * ((1.0 if z > shown_high else 0.0) - tail)
        low_tail += tail_rate * ((1.0 if -z > shown_low else 0.0) - tail)
        # Scale.
        surprise = abs(z)
        pull = step / pace * ((surprise if surprise < wild else wild) - 1.0)
        k0 = _clipped(k0 + pull * f0, 2.0)
        k1 = _clipped(k1 + pull * f1, 2.0)
        k2 = _clipped(k2 + pull * f2, 2.0)
        if rest != 0.0:
            weight = far * scale / abs(rest)
            weight = weight if weight < 1.0 else 1.0
    # Error: a far label weighs less.
    if recentre > 0.0:
        a00 += rate * (weight * x0 * x0 - a00)
        a10 += rate * (weight * x1 * x0 - a10)
        a11 += rate * (weight * x1 * x1 - a11)
        a20 += rate * (weight * x2 * x0 - a20)
        a21 += rate * (weight * x2 * x1 - a21)
        a22 += rate * (weight * x2 * x2 - a22)
        b0 += rate * (weight * x0 * error - b0)
        b1 += rate * (weight * x1 * error - b1)
        b2 += rate * (weight * x2 * error - b2)
        penalty = ridge * size * size
        c00 = _root(a00 + penalty, a00)
        c10, c20 = a10 / c00, a20 / c00
        c11 = _root(a11 + penalty - c10 * c10, a11)
        c21 = (a21 - c20 * c10) / c11
        c22 = _root(a22 + penalty - c20 * c20 - c21 * c21, a22)
        z0 = b0 / c00
        z1 = (b1 - c10 * z0) / c11
        z2 = (b2 - c20 * z0 - c21 * z1) / c22
        w3 = 0.0
        if two_means > 0.0:
            a30 += rate * (weight * x3 * x0 - a30)
            a31 += rate * (weight * x3 * x1 - a31)
            a32 += rate * (weight * x3 * x2 - a32)
            a33 += rate * (weight * x3 * x3 - a33)
            b3 += rate * (weight * x3 * error - b3)
            c30 = a30 / c00
            c31 = (a31 - c30 * c10) / c11
            c32 = (a32 - c30 * c20 - c31 * c21) / c22
            c33 = _root(a33 + penalty - c30 * c30 - c31 * c31 - c32 * c32, a33)
            w3 = (b3 - c30 * z0 - c31 * z1 - c32 * z2) / c33 / c33
            z0, z1, z2 = z0 - c30 * w3, z1 - c31 * w3, z2 - c32 * w3
        w2 = z2 / c22
        w1 = (z1 - c21 * w2) / c11
        w0 = (z0 - c10 * w1 - c20 * w2) / c00
    rest = abs(rest)
    recent_size += (fast if fast > share else share) * (rest - recent_size)
    size += rate * (rest - size)
    width += rate * (half - width)
    movement += rate * (travelled - movement)
    quick = fast if two_means > 0.0 else medium
    mean += (quick if quick > share else share) * (error - mean)
    slower = medium / 3.0
    slow_mean += (slower if slower > share else share) * (error - slow_mean)
    return (
        labels, error, mean, slow_mean, middle,
        a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, b0, b1, b2, b3, w0, w1, w2, w3,
        size, recent_size, width, movement, k0, k1, k2,
        low_tail, high_tail, low_shift, high_shift, regret, waiting,
    )  # fmt: skip


def _beyond(value: float, lower: float, upper: float) -> float:
    """How far a value lies outside two ends."""
    above, below = value - upper, lower - value
    farther = above if above > below else below
    return farther if farther > 0.0 else 0.0


def heed(params: Floats, memory: Floats, others: float) -> Floats:
    """The most other predictions that waited when a set was made."""
    waiting = (others if others > memory[-1] else memory[-1],)
    return memory[:-1] + waiting


@ours
@dataclass(frozen=True, slots=True)
class Corrected(_Ends):
    """Intervals from a forecast and from what its past errors teach: [c − h·e^λ, c + h·e^λ].

    It takes `Quantiles`, any pair (lower, upper), or a point forecast. It needs no past data and
    has no unit: y and the forecast may be in any. The interval may leave the centre that was
    given, because the family forecasts the forecast's error; `recentre=False` forbids that. The
    set is never empty. `Learnt(*state.family)` says what it has learnt.

    Parameters
    ----------
    level
        The share of labels that both ends together may miss at λ = 0.
    recentre
        Whether the centre may move with the expected error. Without it intervals on a biased or
        drifting forecast are much wider.
    means
        How many averages of the error the regression sees, 1 or 2. Two are a little narrower and
        a little slower.
    support
        The values y can take: the full set. Intervals are cut to it, and a label outside it is an
        error.
    slow, medium, fast
        The rates of its averages. All rates begin as 1/n.
    ridge, wild, step, far, trust
        The other numbers of its rules, without unit; see the module.

    Examples
    --------
    >>> family = Corrected()
    >>> reading = family.prepare(family.params, family.init(), (10.0, 14.0))
    >>> family.at(reading, 0.0)
    Interval(10.0, 14.0)
    >>> memory = family.init()
    >>> for y in (15.0, 15.5, 14.5, 15.2):  # the forecast is 3 too low
    ...     reading = family.prepare(family.params, memory, (10.0, 14.0))
    ...     memory = family.observe(family.params, memory, reading, y)
    >>> reading = family.prepare(family.params, memory, (10.0, 14.0))
    >>> round(Reading(*reading).centre, 1)
    14.1
    """

    support: tuple[float, float] = _LINE
    level: float = 0.1
    recentre: bool = True
    means: int = 1
    slow: float = 0.007
    medium: float = 0.15
    fast: float = 0.3
    ridge: float = 0.1
    wild: float = 15.0
    step: float = 0.05
    trust: float = 50.0
    far: float = 4.0

    columns = ("lower", "upper")
    ends = staticmethod(corrected)
    score = staticmethod(corrected_critical)
    sound = staticmethod(ends_sound)
    prepare = staticmethod(prepare)
    observe = staticmethod(observe)
    heed = staticmethod(heed)

    def __post_init__(self) -> None:
        _Ends.__post_init__(self)
        level = positive(self.level, "Corrected.level")
        if level >= 1.0:
            raise InputError(f"Corrected.level must lie between 0 and 1, got {level}")
        object.__setattr__(self, "level", level)
        if whole(self.means, "Corrected.means", 1) > 2:
            raise InputError(f"Corrected.means must be 1 or 2, got {self.means}")
        for name in ("slow", "medium", "fast", "ridge", "wild", "step", "far"):
            object.__setattr__(self, name, positive(getattr(self, name), f"Corrected.{name}"))
        object.__setattr__(self, "trust", finite(self.trust, "Corrected.trust"))

    @property
    def params(self) -> Floats:
        return (
            self.level, float(self.means == 2), float(self.recentre), self.slow, self.medium,
            self.fast, self.ridge, self.wild, self.step, self.trust, self.far,
        )  # fmt: skip

    def init(self) -> Floats:
        """Nothing is known; the tails are those of errors that fall off exponentially."""
        tail = -log(self.level)
        return Learnt(*(0.0,) * len(Learnt._fields))._replace(low_tail=tail, high_tail=tail)[:]

    def read(self, prediction: Any) -> tuple[float, float]:
        """The prediction as a pair of floats within ±1e150."""
        lower, upper = _ENDS.read(prediction)
        if not ends_sound((lower, upper)):
            raise PredictionError(f"a prediction must lie within ±1e150, got ({lower}, {upper})")
        return lower, upper


_ENDS = Widen()
