"""Nested families, sets that grow with one number λ, and the set values they yield.

A family answers two questions, and they agree with each other:

    at(prediction, lam)        the set at λ; +inf gives the full set, −inf the empty one
    critical(prediction, y)    the smallest λ whose set contains y

The module-level functions are the families' arithmetic, pure functions of floats.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

from setpoint._check import finite, interval, number
from setpoint.errors import InputError, LabelError, PredictionError

__all__ = [
    "Family",
    "Interval",
    "Scale",
    "Widen",
    "scale",
    "scale_critical",
    "widen",
    "widen_critical",
]


class Family(Protocol):
    """What the controller asks of a family of nested sets.

    `read` and `label` check what comes from outside once and return it as plain, unshared
    values; `at` and `critical` may rely on that. `start` and `bounds` are the family's defaults
    in units of λ; bounds of `None` mean "from a burn-in", for which `unit` says how far one unit
    of λ moves a set in units of y. A family whose sets are always of one
    class may name it as `shows`, which makes a live step faster. A family of intervals may also
    have `ends(prediction, lam)`, `score(prediction, y)` and `columns`, the names of the numbers
    in a prediction: pure functions of floats, which run compiled over tapes.
    """

    def read(self, prediction: Any) -> Any: ...
    def label(self, y: Any) -> Any: ...
    def at(self, prediction: Any, lam: float) -> Any: ...
    def critical(self, prediction: Any, y: Any) -> float: ...
    def start(self, level: float) -> float: ...
    def bounds(self) -> tuple[float, float] | None: ...
    def unit(self, prediction: Any) -> float: ...


class Interval:
    """A closed interval of numbers; crossed ends are the empty interval.

    >>> Interval(1.0, 3.0).length
    2.0
    >>> 3.0 in Interval(1.0, 3.0)
    True
    >>> Interval(3.0, 1.0)
    Interval(empty)
    >>> lower, upper = Interval(1.0, 3.0)
    """

    __slots__ = ("lower", "upper")

    lower: float
    upper: float

    def __new__(cls, lower: float, upper: float) -> "Interval":
        return _between(lower, upper)

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

    def __iter__(self) -> Iterator[float]:
        yield self.lower
        yield self.upper

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Interval):
            return NotImplemented
        return self.lower == other.lower and self.upper == other.upper

    def __hash__(self) -> int:
        return hash((self.lower, self.upper))

    def __reduce__(self) -> tuple[type, tuple[float, float]]:
        return Interval, (self.lower, self.upper)

    def __repr__(self) -> str:
        return "Interval(empty)" if self.empty else f"Interval({self.lower!r}, {self.upper!r})"


_new = object.__new__


def _between(lower: float, upper: float) -> Interval:
    """`Interval(lower, upper)` in a form that can be written out in place."""
    made = _new(Interval)
    if lower <= upper:
        made.lower = lower
        made.upper = upper
    elif lower > upper:
        made.lower = inf
        made.upper = -inf
    else:
        raise InputError(f"the ends of an interval must be numbers, got ({lower}, {upper})")
    return made


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


def _cut(lower: float, upper: float, support: tuple[float, float]) -> tuple[float, float]:
    """The ends, moved into the support; NaN stays NaN."""
    low, high = support
    return (low if lower < low else lower), (high if upper > high else upper)


def _label(y: Any, support: tuple[float, float], cuts: bool) -> float:
    """The label as a float, finite and within the support."""
    got = y if type(y) is float else number(y, "a label", LabelError)
    if got - got != 0.0:
        raise LabelError(f'a label must be finite, got {got}; Stream(…, missing="skip") skips NaN')
    if cuts and not support[0] <= got <= support[1]:
        raise LabelError(f"a label must lie in the support {list(support)}, got {got}")
    return got


def _by_name(prediction: Any, names: tuple[str, ...], found: tuple[Any, ...]) -> tuple[Any, ...]:
    """The numbers of a prediction that has names of its own: a dict, or the row of a frame."""
    if isinstance(prediction, bytes | bytearray | set | frozenset):
        raise PredictionError(f"a prediction must be numbers in order, got {prediction!r}")
    if not hasattr(prediction, "keys"):
        return found
    keys = list(prediction.keys())
    if set(keys) == set(names):
        return tuple(prediction[name] for name in names)
    if any(isinstance(key, str) for key in keys):
        raise PredictionError(f"a prediction with names must have {', '.join(names)}, got {keys}")
    return found


def _describe(prediction: Any) -> str:
    shape = getattr(prediction, "shape", None)
    return repr(prediction) if shape is None else f"an array of shape {tuple(shape)}"


@dataclass(frozen=True, slots=True)
class Widen:
    """Both ends moved outwards by λ: [lower − λ, upper + λ].

    The family of conformalised quantile regression and of the paper's regression experiments.
    It takes `Quantiles`, any pair, or a point forecast, which is read as the pair (p, p).

    Parameters
    ----------
    support
        The values y can take: the full set. Intervals are cut to it, and a label outside it
        is an error.

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

    support: tuple[float, float] = (-inf, inf)

    shows = Interval
    columns = ("lower", "upper")
    ends = staticmethod(widen)
    score = staticmethod(widen_critical)

    @property
    def _cuts(self) -> bool:
        return self.support != (-inf, inf)

    def __post_init__(self) -> None:
        object.__setattr__(self, "support", interval(self.support, "support"))

    def read(self, prediction: Any) -> tuple[float, float]:
        """The prediction as a pair of floats that nobody else can change."""
        try:
            lower, upper = prediction
        except (TypeError, ValueError):
            lower = upper = self._point(prediction)
        if type(prediction) is not tuple:
            lower, upper = _by_name(prediction, ("lower", "upper"), (lower, upper))
        if type(lower) is not float or type(upper) is not float:
            lower = number(lower, "the lower quantile", PredictionError)
            upper = number(upper, "the upper quantile", PredictionError)
        if lower != lower or upper != upper:
            raise PredictionError(f"a prediction must not be NaN, got ({lower}, {upper})")
        return lower, upper

    @staticmethod
    def _point(prediction: Any) -> float:
        try:
            point = number(prediction, "a point forecast", PredictionError)
        except PredictionError:
            raise PredictionError(
                f"Widen takes a pair (lower, upper) or one number, got {_describe(prediction)}"
            ) from None
        return finite(point, "a point forecast", PredictionError)

    def label(self, y: Any) -> float:
        """The label as a finite float within the support."""
        return _label(y, self.support, self._cuts)

    def at(self, prediction: Any, lam: float) -> Interval:
        """The interval at λ."""
        if -inf < lam < inf:
            lower, upper = widen(prediction, lam)
            if self._cuts:
                lower, upper = _cut(lower, upper, self.support)
            shown = _between(lower, upper)
        else:
            shown = _extreme(lam, self.support)
        return shown

    def critical(self, prediction: Any, y: float) -> float:
        """The smallest λ whose interval contains y."""
        return widen_critical(prediction, y)

    def start(self, level: float) -> float:
        """λ = 0: right for a model whose quantiles are right."""
        return 0.0

    def bounds(self) -> None:
        """From a burn-in, because λ is in units of y."""

    def unit(self, prediction: tuple[float, float]) -> float:
        """1: λ is in units of y."""
        return 1.0


@dataclass(frozen=True, slots=True)
class Scale:
    """Each side in units of its own uncertainty: [centre − λ·low, centre + λ·high].

    It takes `Spread` or any triple (centre, low, high). Where a scale is 0, no finite λ moves
    that side: only the full set covers a label beyond it.

    Parameters
    ----------
    support
        The values y can take: the full set. Intervals are cut to it, and a label outside it
        is an error.

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

    support: tuple[float, float] = (-inf, inf)

    shows = Interval
    columns = ("centre", "low", "high")
    ends = staticmethod(scale)
    score = staticmethod(scale_critical)

    @property
    def _cuts(self) -> bool:
        return self.support != (-inf, inf)

    def __post_init__(self) -> None:
        object.__setattr__(self, "support", interval(self.support, "support"))

    def read(self, prediction: Any) -> tuple[float, float, float]:
        """The prediction as three floats that nobody else can change."""
        try:
            centre, low, high = prediction
        except (TypeError, ValueError):
            raise PredictionError(
                f"Scale takes a triple (centre, low, high), got {_describe(prediction)}"
            ) from None
        if type(prediction) is not tuple:
            names = ("centre", "low", "high")
            centre, low, high = _by_name(prediction, names, (centre, low, high))
        if type(centre) is not float or type(low) is not float or type(high) is not float:
            centre = number(centre, "the centre", PredictionError)
            low = number(low, "the uncertainty below", PredictionError)
            high = number(high, "the uncertainty above", PredictionError)
        if not (-inf < centre < inf and 0.0 <= low < inf and 0.0 <= high < inf):
            raise PredictionError(
                "a spread must have a finite centre and finite uncertainties of at least 0, "
                f"got ({centre}, {low}, {high})"
            )
        return centre, low, high

    def label(self, y: Any) -> float:
        """The label as a finite float within the support."""
        return _label(y, self.support, self._cuts)

    def at(self, prediction: Any, lam: float) -> Interval:
        """The interval at λ."""
        if -inf < lam < inf:
            lower, upper = scale(prediction, lam)
            if self._cuts:
                lower, upper = _cut(lower, upper, self.support)
            shown = _between(lower, upper)
        else:
            shown = _extreme(lam, self.support)
        return shown

    def critical(self, prediction: Any, y: float) -> float:
        """The smallest λ whose interval contains y; +inf where only the full set does."""
        return scale_critical(prediction, y)

    def start(self, level: float) -> float:
        """λ = 1: the model's own uncertainty."""
        return 1.0

    def bounds(self) -> None:
        """From a burn-in, because the scales are the model's own."""

    def unit(self, prediction: tuple[float, float, float]) -> float:
        """The mean of the two scales."""
        return 0.5 * (prediction[1] + prediction[2])


def _extreme(lam: float, support: tuple[float, float]) -> Interval:
    """The full set at λ = +inf, the empty one at −inf."""
    if lam == inf:
        return Interval(*support)
    if lam == -inf:
        return Interval(inf, -inf)
    raise InputError(f"λ must be a number or ±inf, got {lam}")
