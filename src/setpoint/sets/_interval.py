"""The closed interval, and what families do with the numbers, ends and labels they are given."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from setpoint._check import number
from setpoint.errors import InputError, LabelError, PredictionError

__all__ = ["Interval", "between", "by_name", "cut", "describe", "extreme", "floats", "label_of"]


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
        return between(lower, upper)

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


def between(lower: float, upper: float) -> Interval:
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


def cut(lower: float, upper: float, support: tuple[float, float]) -> tuple[float, float]:
    """The ends, moved into the support; NaN stays NaN."""
    low, high = support
    return (low if lower < low else lower), (high if upper > high else upper)


def label_of(y: Any, support: tuple[float, float]) -> float:
    """The label as a float, finite and within the support."""
    got = y if type(y) is float else number(y, "a label", LabelError)
    if got - got != 0.0:
        raise LabelError(f'a label must be finite, got {got}; Stream(…, missing="skip") skips NaN')
    if not support[0] <= got <= support[1]:
        raise LabelError(f"a label must lie in the support {list(support)}, got {got}")
    return got


def by_name(prediction: Any, names: tuple[str, ...], found: tuple[Any, ...]) -> tuple[Any, ...]:
    """The numbers of a prediction that has names of its own: a dict, or the row of a frame."""
    if isinstance(prediction, bytes | bytearray | set | frozenset):
        raise PredictionError(f"a prediction must be numbers in order, got {prediction!r}")
    if not hasattr(prediction, "keys"):
        return found
    keys = list(prediction.keys())
    if set(keys) == set(names):
        return tuple(prediction[name] for name in names)
    if isinstance(prediction, Mapping) or any(isinstance(key, str) for key in keys):
        raise PredictionError(f"a prediction with names must have {', '.join(names)}, got {keys}")
    return found


def describe(prediction: Any) -> str:
    shape = getattr(prediction, "shape", None)
    return repr(prediction) if shape is None else f"an array of shape {tuple(shape)}"


def extreme(lam: float, support: tuple[float, float]) -> Interval:
    """The full set at λ = +inf, the empty one at −inf."""
    if lam == inf:
        return Interval(*support)
    if lam == -inf:
        return Interval(inf, -inf)
    raise InputError(f"λ must be a number or ±inf, got {lam}")


def floats(values: Any, what: str) -> npt.NDArray[np.float64]:
    """Numbers as an array that nobody else holds; text is refused even if it spells a number."""
    held = values.detach().cpu() if hasattr(values, "detach") else values
    try:
        found = np.array(np.asarray(held))
        if found.dtype.kind == "O" and found.ndim == 1:
            found = np.array([number(each, what, PredictionError) for each in found])
        if found.dtype.kind not in "biuf" and found.size:
            raise TypeError
    except (TypeError, ValueError):
        raise PredictionError(f"{what} must be numbers, got {values!r}") from None
    return found.astype(np.float64, copy=False)
