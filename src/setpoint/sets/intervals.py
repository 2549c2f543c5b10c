"""Intervals, and the families of intervals around what a model says.

The rules of `Widen`, `Scale`, `Lower` and `Upper` are pure functions of floats, which also run
compiled over tapes. `support` is the full set: intervals are cut to it, and a label outside it is
an error.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, nan
from typing import Any, ClassVar

import numpy as np

from setpoint._check import finite, interval, number
from setpoint._html import table
from setpoint.errors import InputError, PredictionError
from setpoint.sets.family import FromZero, by_name, describe, finite_label


class Interval:
    """A closed interval of numbers; crossed ends are the empty interval.

    >>> interval = Interval(1.0, 3.0)
    >>> interval.width, interval.centre
    (2.0, 2.0)
    >>> np.asarray(interval)
    array([1., 3.])
    >>> 3.0 in Interval(1.0, 3.0)
    True
    >>> Interval(3.0, 1.0)
    Interval(empty)
    >>> lower, upper = Interval(1.0, 3.0)
    """

    __slots__ = ("lower", "upper")

    lower: float
    upper: float

    def __init__(self, lower: float, upper: float) -> None:
        if lower <= upper:
            self.lower = lower
            self.upper = upper
        elif lower > upper:
            self.lower = inf
            self.upper = -inf
        else:
            raise InputError(f"the ends of an interval must be numbers, got ({lower}, {upper})")

    def contains(self, y: float) -> bool:
        """Whether y lies between the ends, the ends included."""
        return self.lower <= y <= self.upper

    __contains__ = contains

    @property
    def empty(self) -> bool:
        """Whether nothing lies in it."""
        return self.lower > self.upper

    @property
    def length(self) -> float:
        """upper − lower, 0 for the empty interval, +inf where a side is open."""
        return self.upper - self.lower if self.lower < self.upper else 0.0

    width = length

    @property
    def centre(self) -> float:
        """The middle; NaN where there is none, in an empty or an open interval."""
        return 0.5 * self.lower + 0.5 * self.upper if self.length < inf and not self.empty else nan

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The two ends, for numpy."""
        return np.array((self.lower, self.upper), dtype or np.float64)

    def __iter__(self) -> Iterator[float]:
        yield self.lower
        yield self.upper

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Interval):
            return NotImplemented
        return self.lower == other.lower and self.upper == other.upper

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    def _repr_html_(self) -> str:
        width = "empty" if self.empty else f"{self.width:.6g}"
        return table([("lower", self.lower), ("upper", self.upper), ("width", width)])

    def __repr__(self) -> str:
        return "Interval(empty)" if self.empty else f"Interval({self.lower!r}, {self.upper!r})"


def _extreme(lam: float, support: tuple[float, float]) -> Interval:
    """The full set at λ = +inf, the empty one at −inf."""
    if lam == inf:
        return Interval(*support)
    if lam == -inf:
        return Interval(inf, -inf)
    raise InputError(f"λ must be a number or ±inf, got {lam}")


def _within(ends: tuple[float, float], support: tuple[float, float]) -> Interval:
    """The interval between two ends, cut to the support."""
    (lower, upper), (low, high) = ends, support
    return Interval(low if lower < low else lower, high if upper > high else upper)


def widen(prediction: tuple[float, float], lam: float) -> tuple[float, float]:
    """Ends of [lower − λ, upper + λ]."""
    lower, upper = prediction
    return lower - lam, upper + lam


def widen_critical(prediction: tuple[float, float], y: float) -> float:
    """The CQR score: the signed distance of y to the nearer end, positive outside."""
    lower, upper = prediction
    below = lower - y
    above = y - upper
    return below if below > above else above


def widen_sound(columns: tuple[float, float]) -> bool:
    """Whether both ends are numbers, ±inf among them."""
    lower, upper = columns
    return lower == lower and upper == upper


def scale(prediction: tuple[float, float, float], lam: float) -> tuple[float, float]:
    """Ends of [centre − λ·low, centre + λ·high]."""
    centre, low, high = prediction
    return centre - lam * low, centre + lam * high


def scale_critical(prediction: tuple[float, float, float], y: float) -> float:
    """The larger of the two distances in units of their scales; 0/0 counts as −inf."""
    centre, low, high = prediction
    below = centre - y
    above = y - centre
    below = below / low if low > 0.0 else (inf if below > 0.0 else -inf)
    above = above / high if high > 0.0 else (inf if above > 0.0 else -inf)
    return below if below > above else above


def scale_sound(columns: tuple[float, float, float]) -> bool:
    """Whether the centre is finite, and the scales are finite and at least 0."""
    centre, low, high = columns
    return -inf < centre < inf and 0.0 <= low < inf and 0.0 <= high < inf


def lower_end(prediction: tuple[float, ...], lam: float) -> tuple[float, float]:
    """Ends of [lower − λ, ∞); the lower end is the first number."""
    return prediction[0] - lam, inf


def lower_critical(prediction: tuple[float, ...], y: float) -> float:
    """The distance of y below the end."""
    return prediction[0] - y


def upper_end(prediction: tuple[float, ...], lam: float) -> tuple[float, float]:
    """Ends of (−∞, upper + λ]; the upper end is the last number."""
    return -inf, prediction[-1] + lam


def upper_critical(prediction: tuple[float, ...], y: float) -> float:
    """The distance of y above the end."""
    return y - prediction[-1]


def one_end_sound(columns: tuple[float]) -> bool:
    """Whether the end is a number, ±inf among them."""
    (end,) = columns
    return end == end


def around(ends: tuple[float, float], inner: tuple[float, float]) -> tuple[float, float]:
    """Ends that lie at least as far out as those of an inner set."""
    lower, upper = ends
    return inner[0] if inner[0] < lower else lower, inner[1] if inner[1] > upper else upper


def up_to(base: Any, lam: float) -> tuple[float, float]:
    """The critical values that a set of labels holds at λ."""
    return -inf, lam


def itself(base: Any, y: float) -> float:
    """The critical value where labels are told by it."""
    return y


_LINE = (-inf, inf)
"""The support of a y that may be any number; every family with this support holds this object."""


@dataclass(frozen=True, slots=True)
class _Ends(FromZero):
    """What every family of intervals by pure functions has in common; abstract."""

    support: tuple[float, float] = _LINE

    shows = Interval
    columns: ClassVar[tuple[str, ...]]
    ends: ClassVar[Any]
    score: ClassVar[Any]
    sound: ClassVar[Any]

    def __post_init__(self) -> None:
        support = interval(self.support, "support")
        object.__setattr__(self, "support", _LINE if support == _LINE else support)

    def label(self, y: Any) -> float:
        """The label as a finite float within the support."""
        if type(y) is float and y - y == 0.0 and self.support is _LINE:
            return y
        return finite_label(y, self.support)

    def at(self, prediction: Any, lam: float) -> Interval:
        """The interval at λ."""
        if -inf < lam < inf:
            if self.support is _LINE:
                return Interval(*self.ends(prediction, lam))
            return _within(self.ends(prediction, lam), self.support)
        return _extreme(lam, self.support)

    def critical(self, prediction: Any, y: float) -> float:
        """The smallest λ whose interval contains y; +inf where only the full set does."""
        critical: float = self.score(prediction, y)
        return critical

    def forecast(self, prediction: Any) -> float:
        """The number in the middle of a prediction, as the model gave it."""
        centre: float = prediction[0]
        return centre


def _unpacked(prediction: Any, names: tuple[str, ...]) -> tuple[Any, ...] | None:
    """The parts of a prediction in the order of their names; None if there are not so many."""
    try:
        parts = tuple([part for _, part in zip(names, prediction, strict=True)])
    except (TypeError, ValueError):
        return None
    return parts if type(prediction) is tuple else by_name(prediction, names, parts)


@dataclass(frozen=True, slots=True)
class Widen(_Ends):
    """Both ends moved outwards by λ: [lower − λ, upper + λ].

    The family of conformalised quantile regression and of the paper's regression experiments.
    It takes `Quantiles`, any pair, or a point forecast, which is read as the pair (p, p).

    Parameters
    ----------
    support
        The values y can take: the full set.

    Examples
    --------
    >>> Widen().at((10.0, 14.0), 0.5)
    Interval(9.5, 14.5)
    >>> Widen().critical((10.0, 14.0), 16.0)
    2.0
    >>> Widen(support=(0.0, float("inf"))).at((1.0, 4.0), 3.0)
    Interval(0.0, 7.0)

    References
    ----------
    Feldman et al. 2023, the interval construction of section 3.2; Romano, Patterson and
    Candès 2019.
    """

    columns = ("lower", "upper")
    ends = staticmethod(widen)
    score = staticmethod(widen_critical)
    sound = staticmethod(widen_sound)

    def read(self, prediction: Any) -> tuple[float, float]:
        """The prediction as a pair of floats that nobody else can change."""
        kind = type(prediction)
        if (kind is tuple or kind is list) and len(prediction) == 2:
            lower, upper = pair = prediction if kind is tuple else (prediction[0], prediction[1])
            if type(lower) is float and type(upper) is float and widen_sound(pair):
                return pair
        parts = _unpacked(prediction, self.columns)
        if parts is None:
            point = self._point(prediction)
            return point, point
        lower = number(parts[0], "the lower quantile", PredictionError)
        upper = number(parts[1], "the upper quantile", PredictionError)
        if not widen_sound((lower, upper)):
            raise PredictionError(f"a prediction must not be NaN, got {(lower, upper)}")
        return lower, upper

    def forecast(self, prediction: tuple[float, float]) -> float:
        """The middle of both ends."""
        return 0.5 * (prediction[0] + prediction[1])

    @staticmethod
    def _point(prediction: Any) -> float:
        try:
            point = number(prediction, "a point forecast", PredictionError)
        except PredictionError:
            raise PredictionError(
                "a prediction must be a pair (lower, upper) or one number, got "
                f"{describe(prediction)}"
            ) from None
        return finite(point, "a point forecast", PredictionError)


@dataclass(frozen=True, slots=True)
class Scale(_Ends):
    """Each side in units of its own uncertainty: [centre − λ·low, centre + λ·high].

    It takes `Spread` or any triple (centre, low, high). Where a scale is 0, no finite λ moves
    that side: only the full set covers a label beyond it.

    Parameters
    ----------
    support
        As for `Widen`.

    Examples
    --------
    >>> Scale().at((12.0, 1.5, 2.0), 2.0)
    Interval(9.0, 16.0)
    >>> Scale().critical((12.0, 1.5, 2.0), 16.0)
    2.0
    >>> Scale().critical((12.0, 1.5, 0.0), 16.0)
    inf

    References
    ----------
    Feldman et al. 2023, the image-to-image construction of appendix B.
    """

    columns = ("centre", "low", "high")
    ends = staticmethod(scale)
    score = staticmethod(scale_critical)
    sound = staticmethod(scale_sound)

    def read(self, prediction: Any) -> tuple[float, float, float]:
        """The prediction as three floats that nobody else can change."""
        if type(prediction) is tuple and len(prediction) == 3:
            centre, low, high = prediction
            plain = type(centre) is float and type(low) is float and type(high) is float
            if plain and scale_sound(prediction):
                return prediction
        parts = _unpacked(prediction, self.columns)
        if parts is None:
            raise PredictionError(
                f"a prediction must be a triple (centre, low, high), got {describe(prediction)}"
            )
        spread = (
            number(parts[0], "the centre", PredictionError),
            number(parts[1], "the uncertainty below", PredictionError),
            number(parts[2], "the uncertainty above", PredictionError),
        )
        if not scale_sound(spread):
            raise PredictionError(
                "a spread must have a finite centre and finite uncertainties of at least 0, "
                f"got {spread}"
            )
        return spread

    def start(self, level: float) -> float:
        """λ = 1: the model's own uncertainty."""
        return 1.0

    def unit(self, prediction: tuple[float, float, float]) -> float:
        """The mean of the two scales."""
        return 0.5 * (prediction[1] + prediction[2])


@dataclass(frozen=True, slots=True)
class _OneEnd(_Ends):
    """A family with one end, of which the model gives one number; abstract."""

    sound = staticmethod(one_end_sound)

    def read(self, prediction: Any) -> tuple[float]:
        """The end as a tuple of one float."""
        end, name = prediction, self.columns[0]
        if hasattr(end, "keys") and name in end:
            end = end[name]
        elif isinstance(end, tuple | list) and len(end) == 1:
            end = end[0]
        try:
            end = number(end, name, PredictionError)
        except PredictionError:
            raise PredictionError(
                f"a prediction must be one number, the {name} bound, got {describe(prediction)}"
            ) from None
        if not one_end_sound((end,)):
            raise PredictionError(f"a prediction must not be NaN, got {end}")
        return (end,)


@dataclass(frozen=True, slots=True)
class Lower(_OneEnd):
    """Everything from lower − λ upwards; the model predicts `lower`, one number.

    >>> Lower().at((10.0,), 0.5)
    Interval(9.5, inf)
    >>> Lower().critical((10.0,), 8.0)
    2.0
    """

    columns = ("lower",)
    ends = staticmethod(lower_end)
    score = staticmethod(lower_critical)


@dataclass(frozen=True, slots=True)
class Upper(_OneEnd):
    """Everything up to upper + λ, where the model gives upper, one number.

    >>> Upper().at((14.0,), 0.5)
    Interval(-inf, 14.5)
    >>> Upper().critical((14.0,), 16.0)
    2.0
    """

    columns = ("upper",)
    ends = staticmethod(upper_end)
    score = staticmethod(upper_critical)
