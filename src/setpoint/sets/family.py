"""What the controller asks of a family of nested sets, and what a family may offer besides.

Every offer is a protocol: ask for it with `isinstance`, once, when something is built. Below the
protocols is what families share: how they read numbers.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import nan
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from setpoint._check import number
from setpoint.errors import LabelError, PredictionError
from setpoint.parts import Capability
from setpoint.predictions import Row

Floats = tuple[float, ...]


@runtime_checkable
class Family(Protocol, metaclass=Capability):
    """A family of nested sets.

    `read` and `label` check what comes from outside once and return it as plain, unshared
    values; `at` and `critical` may rely on that. `start` and `bounds` are the family's defaults
    in units of λ; bounds of `None` mean "from a burn-in", for which `unit` says how far one unit
    of λ moves a set in units of y.
    """

    def read(self, prediction: Any) -> Any: ...
    def label(self, y: Any) -> Any: ...
    def at(self, prediction: Any, lam: Any) -> Any: ...
    def critical(self, prediction: Any, y: Any) -> float: ...
    def start(self, level: float) -> float: ...
    def bounds(self) -> tuple[float, float] | None: ...
    def unit(self, prediction: Any) -> float: ...


class FromZero:
    """The defaults of families that are right for a model whose own sets are: at λ = 0."""

    __slots__ = ()

    def start(self, level: float) -> float:
        """Where λ starts: at 0."""
        return 0.0

    def bounds(self) -> Any:
        """From a burn-in."""

    def unit(self, prediction: Any) -> float:
        """How far one unit of λ moves a set, in units of y: 1."""
        return 1.0


class ShareOfOne:
    """The defaults of families whose −λ is a probability or a share: θ lives in [−1, 0]."""

    __slots__ = ()

    def start(self, level: float) -> float:
        """Where λ starts: at −level."""
        return -level

    def bounds(self) -> tuple[float, float]:
        """The bounds of θ: (−1, 0)."""
        return -1.0, 0.0

    def unit(self, prediction: Any) -> float:
        """How far one unit of λ moves a set: 1, because λ is a share."""
        return 1.0


@runtime_checkable
class Scalar(Family, Protocol, metaclass=Capability):
    """A family of intervals made of pure functions of floats, the same live and compiled.

    `sound` says whether the numbers of `columns` are a prediction, `ends` gives the interval at λ
    and `score` the critical value; `support` is the full set.
    """

    columns: tuple[str, ...]
    support: tuple[float, float]
    ends: Any
    score: Any
    sound: Any


@runtime_checkable
class Arranges(Protocol, metaclass=Capability):
    """A family that takes columns of predictions in several forms.

    `forms` has the names of each form, and `arranged(names, columns)` makes of one of them what the
    family's own `columns` name.
    """

    forms: tuple[tuple[str, ...], ...]

    def arranged(self, names: tuple[str, ...], columns: Any) -> tuple[Any, ...]: ...


@runtime_checkable
class Codes(Protocol, metaclass=Capability):
    """A correction that takes features; `coded` has the number of each value of a category."""

    features: tuple[str, ...]
    coded: Mapping[str, Mapping[Any, int]]


@runtime_checkable
class Forecasts(Protocol, metaclass=Capability):
    """A family whose predictions say one number: `forecast(prediction)`, as the model gave it."""

    def forecast(self, prediction: Any) -> float: ...


@runtime_checkable
class Priced(Protocol, metaclass=Capability):
    """A family whose sets are no intervals, and that says what a label cost.

    `needs` gives what y needed of the prediction, at least 0; y, or 0 where labels are no numbers;
    and how large the set was. Or None where nothing can be said, as of a set without limits.
    """

    def needs(self, prediction: Any, shown: Any, y: Any) -> tuple[float, float, float] | None: ...


@runtime_checkable
class Remembers(Protocol, metaclass=Capability):
    """A family whose sets depend on past labels, in a memory of any size.

    `bind(memory)` is the family at work. It also has `weigh(prediction, y)`, what it would
    remember of a label, `observe(weighed)`, `memory` and `copy()`.
    """

    def bind(self, memory: Iterable[float] = ()) -> Any: ...


@runtime_checkable
class Draws(Protocol, metaclass=Capability):
    """A family that may give each prediction a chance, if `draws` is true.

    `draw(reading, id)` gives a reading the chance that belongs to the id of its prediction.
    """

    draws: bool

    def draw(self, reading: Any, id: int | str) -> Any: ...


@runtime_checkable
class NeverEmpty(Protocol, metaclass=Capability):
    """A family that may keep something in every set, at λ = −inf too, if `never_empty` is true."""

    never_empty: bool


def never_empty(family: Any) -> bool:
    """Whether every set of a family holds something."""
    return isinstance(family, NeverEmpty) and family.never_empty


@runtime_checkable
class Members(Protocol, metaclass=Capability):
    """A family that shows several sets of one prediction, each with a λ of its own.

    `at` takes one λ for each member and shows a value with `parts`, the sets. `member(index)` is
    the family of one of them and `whole` that of all in one, both for the same predictions.
    `order` is empty where members have nothing to do with each other. Else each member lies beyond
    those before it, whatever their λ's are: on both sides (0), below (−1) or above (1). Members
    that are `free` are measured and not held: their λ is 0, and they never push others.
    """

    @property
    def members(self) -> int: ...
    @property
    def order(self) -> tuple[int, ...]: ...
    @property
    def free(self) -> tuple[bool, ...]: ...
    @property
    def whole(self) -> Family: ...

    def member(self, index: int) -> Family: ...


@runtime_checkable
class Titled(Members, Protocol, metaclass=Capability):
    """A family whose members have names for people, such as their levels."""

    @property
    def titles(self) -> tuple[str, ...]: ...


@runtime_checkable
class InParts(Protocol, metaclass=Capability):
    """A family of paths, whose labels come step by step: `sets.Paths`.

    `heard(before, y, step)` is what is known of a path once a label came. `band` is the member that
    holds whole paths, that of the highest level.
    """

    band: int

    def heard(self, before: Any, y: Any, step: int | None) -> Any: ...


def members_of(family: Any) -> int:
    """How many sets a family shows of one prediction."""
    return family.members if isinstance(family, Members) else 1


def order_of(family: Any) -> tuple[int, ...]:
    """On which side each member lies beyond those before it; empty if they are apart."""
    return family.order if isinstance(family, Members) else ()


def outermost(order: tuple[int, ...]) -> tuple[int, int]:
    """The members whose lower and upper ends are the outermost; the last has both if one lacks.

    >>> outermost((0, 0)), outermost((1, -1, 1, -1)), outermost((1, 1))
    ((1, 1), (3, 2), (1, 1))
    """
    lows = [place for place, side in enumerate(order) if side <= 0]
    highs = [place for place, side in enumerate(order) if side >= 0]
    last = len(order) - 1
    return (lows or [last])[-1], (highs or [last])[-1]


def whole_of(family: Any) -> Any:
    """The family in which a prediction has one set."""
    return family.whole if isinstance(family, Members) else family


def member_of(family: Any, index: int) -> Any:
    """The family of one set of a prediction."""
    return family.member(index) if isinstance(family, Members) else family


@runtime_checkable
class Shares(Protocol, metaclass=Capability):
    """A family with many critical values in one label, for losses that are a share of them."""

    def criticals(self, prediction: Any, y: Any) -> Any: ...


@runtime_checkable
class Taped(Protocol, metaclass=Capability):
    """A family whose labels are written on a tape as a number, which `taped` turns back."""

    def taped(self, y: float) -> Any: ...


@runtime_checkable
class Measured(Protocol, metaclass=Capability):
    """A family whose labels are not one number: a burn-in asks for their size and change."""

    def extent(self, y: Any) -> tuple[float, float] | None: ...
    def change(self, before: Any, after: Any) -> float: ...


@runtime_checkable
class Shows(Protocol, metaclass=Capability):
    """A family that says the class of its sets; `None` if it does not know."""

    shows: type | None


@runtime_checkable
class Classed(Protocol, metaclass=Capability):
    """A family of label sets whose critical values are −p, of several true labels or of one."""

    several: bool


@runtime_checkable
class ByClass(Protocol, metaclass=Capability):
    """A family of label sets that are defined by their critical values, for many rows at once.

    `classes` are the names of the classes, or None. `by_class(p)` makes of probabilities, one row
    for each prediction, the critical value of every class and, last, that of any other label.
    """

    classes: Any

    def by_class(self, p: Any) -> Any: ...


@runtime_checkable
class Columns(Protocol, metaclass=Capability):
    """A family that names the numbers of a prediction; `None` if they have no names."""

    columns: tuple[str, ...] | None


@runtime_checkable
class Supports(Protocol, metaclass=Capability):
    """A family that says which values y can take."""

    support: tuple[float, float]


@runtime_checkable
class Pixels(Protocol, metaclass=Capability):
    """A shown set that counts the pixels of a region: those it misses, and those it judges."""

    def contains(self, y: Any) -> bool: ...
    def count(self, y: Any, region: Any = None) -> tuple[int, int]: ...


@runtime_checkable
class Selection(Protocol, metaclass=Capability):
    """A shown set that is to hold several things: labels, or the pixels of an object.

    `left_out(y)` is how many of them it does not hold, and how many there are."""

    def left_out(self, y: Any) -> tuple[int, int]: ...


# Reading numbers


def finite_label(y: Any, support: tuple[float, float]) -> float:
    """The label as a float, finite and within the support."""
    label = y if type(y) is float else number(y, "a label", LabelError)
    if label - label != 0.0:
        raise LabelError(
            f'a label must be finite, got {label}; Stream(…, missing="skip") skips NaN'
        )
    if not support[0] <= label <= support[1]:
        raise LabelError(f"a label must lie in the support {list(support)}, got {label}")
    return label


def by_name(prediction: Any, names: tuple[str, ...], parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The numbers of a prediction that has names of its own: a dict, or the row of a frame."""
    if isinstance(prediction, bytes | bytearray | set | frozenset):
        raise PredictionError(f"a prediction must be numbers in order, got {prediction!r}")
    if not hasattr(prediction, "keys"):
        return parts
    keys = list(prediction.keys())
    if set(keys) == set(names):
        return tuple(prediction[name] for name in names)
    if isinstance(prediction, Mapping) or any(isinstance(key, str) for key in keys):
        raise PredictionError(f"a prediction with names must have {', '.join(names)}, got {keys}")
    return parts


def names_of(prediction: Any) -> set[Any]:
    """The names in a prediction that is a mapping or the row of a frame."""
    return set(prediction.keys()) if hasattr(prediction, "keys") else set()


def named(prediction: Any, features: Mapping[str, Any]) -> dict[str, Any]:
    """A prediction and the features of its row in one mapping, as stores keep it.

    >>> named([10, 14], {"hour": 7})
    {'lower': 10, 'upper': 14, 'hour': 7}
    """
    if not isinstance(features, Mapping):
        raise PredictionError(f'features must be named, as in {{"hour": 7}}, got {features!r}')
    if isinstance(prediction, Mapping):
        parts = dict(prediction)
    elif isinstance(prediction, Sequence) and not isinstance(prediction, str):
        if len(prediction) != 2:
            raise PredictionError(f"a prediction with features has two ends, got {prediction!r}")
        parts = dict(zip(("lower", "upper"), prediction, strict=True))
    else:
        parts = {"point": prediction}
    if twice := parts.keys() & features.keys():
        raise PredictionError(f"a feature must not be called {sorted(twice)[0]!r}")
    return {**parts, **features}


def with_features(prediction: Any, features: Any) -> Row:
    """A prediction with the features of its row."""
    if type(prediction) is not Row:
        return Row(prediction, features=features)
    return Row(prediction.prediction, prediction.phase, features)


def describe(prediction: Any) -> str:
    """A prediction in a message."""
    shape = getattr(prediction, "shape", None)
    return repr(prediction) if shape is None else f"an array of shape {tuple(shape)}"


def floats(values: Any, what: str) -> npt.NDArray[np.float64]:
    """Numbers as an array that nobody else holds; text is refused even if it spells a number."""
    try:
        array = np.array(np.asarray(values.detach().cpu() if hasattr(values, "detach") else values))
        if array.dtype.kind == "O" and array.ndim == 1:
            array = np.array([number(value, what, PredictionError) for value in array])
        if array.dtype.kind not in "biuf" and array.size:
            raise TypeError
    except (TypeError, ValueError):
        raise PredictionError(f"{what} must be numbers, got {values!r}") from None
    return array.astype(np.float64, copy=False)


def size_of(shown: Any) -> float:
    """How large a set is, or how long; NaN if it does not tell."""
    return float(getattr(shown, "size", getattr(shown, "length", nan)))
