"""Sets of labels from class probabilities.

A label family turns the probabilities of a prediction into the critical values of all its classes
once, and is defined by them: the set at λ holds every class whose critical value is at most λ.

A label that a prediction does not name, such as a class seen for the first time, counts as one of
probability 0 that comes after all the others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf, nan
from sys import float_info
from typing import Any

import numpy as np
import numpy.typing as npt

from setpoint._check import finite, is_missing, whole
from setpoint._html import table
from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.predictions import Probabilities
from setpoint.sets.family import ShareOfOne, floats

Array = npt.NDArray[np.float64]
Names = dict[Any, int]
Scores = tuple[Any, ...]
"""The critical value of every class; the place of each label, None where the labels are the
numbers from 0; the critical value of any label that the prediction does not name; and, in a
randomised family, the chance of the prediction."""
_LEAST = -1.0
"""The least λ of label families."""


def place_of(scores: Scores, label: Any) -> int | None:
    """The place of a label among the classes that a prediction names, if it is one of them."""
    values, names = scores[0], scores[1]
    place: int | None
    if isinstance(label, _Place):
        if label.among != len(values):
            raise LabelError(
                f"an array of labels must have an entry for each of {len(values)} classes, got "
                f"{label.among}"
            )
        return int(label)
    if names is not None:
        place = names.get(label)
        return place
    if isinstance(label, int) and label >= 0:
        return int(label) if label < len(values) else None
    raise LabelError(
        f"without names for the classes a label must be a number from 0, got {label!r}"
    )


def _critical(scores: Scores, label: Any) -> float:
    """The critical value of one label."""
    place = place_of(scores, label)
    return scores[2] if place is None else float(scores[0][place])


@dataclass(slots=True, eq=False, repr=False)
class LabelSet:
    """The labels whose critical value is at most λ; `scores` are what a label family reads.

    >>> shown = Threshold().at(Threshold().read({"cat": 0.7, "dog": 0.2, "owl": 0.1}), -0.15)
    >>> shown
    LabelSet('cat', 'dog')
    >>> "owl" in shown, shown.size, shown.mask.tolist()
    (False, 2, [True, True, False])
    """

    scores: Scores
    lam: float

    def contains(self, y: Any) -> bool:
        """Whether the label is in the set; of several labels, as a tuple, whether all are."""
        if type(y) is tuple:
            return self.lam > -inf and self.hits(y) == len(y)
        return _critical(self.scores, y) <= self.lam

    __contains__ = contains

    def hits(self, y: tuple[Any, ...]) -> int:
        """Counts how many of several labels are in the set."""
        scores, lam = self.scores, self.lam
        return sum([_critical(scores, label) <= lam for label in y])

    def left_out(self, y: Any) -> tuple[int, int]:
        """How many of y's labels, or of one label, are not in the set, and how many there are."""
        labels = y if type(y) is tuple else (y,)
        return len(labels) - self.hits(labels), len(labels)

    def names(self, label: Any) -> bool:
        """Whether the prediction names a label."""
        values, names = self.scores[0], self.scores[1]
        if names is None or isinstance(label, _Place):
            return isinstance(label, int) and 0 <= label < len(values)
        return label in names

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels the prediction names, in its order."""
        values, names = self.scores[0], self.scores[1]
        return tuple(range(len(values)) if names is None else names)

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """A mask over `classes`: true if in the set."""
        mask: npt.NDArray[np.bool_] = self.scores[0] <= self.lam
        return mask

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels in the set, those with the smallest critical values first."""
        values, names = self.scores[0], self.scores[1]
        inside = np.flatnonzero(values <= self.lam)
        places = inside[np.argsort(values[inside], kind="stable")].tolist()
        if names is None:
            return tuple(places)
        classes = tuple(names)
        return tuple([classes[place] for place in places])

    @property
    def size(self) -> int:
        """The number of `classes` in the set."""
        return int(np.count_nonzero(self.mask))

    @property
    def whole(self) -> bool:
        """Whether all of `classes` are in the set."""
        return bool(self.mask.all())

    @property
    def full(self) -> bool:
        """Whether every label is in it, named or not."""
        return bool(self.lam >= self.scores[2]) and self.size == len(self.scores[0])

    @property
    def empty(self) -> bool:
        """Whether no label is in it."""
        return bool(self.lam < self.scores[2]) and self.size == 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels)

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        return not self.empty

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSet):
            return NotImplemented
        return (
            self.classes == other.classes
            and np.array_equal(self.mask, other.mask)
            and self.full == other.full
        )

    def __hash__(self) -> int:
        return hash((self.classes, frozenset(self.labels)))

    def _repr_html_(self) -> str:
        return table([("labels", ", ".join(map(str, self.labels))), ("size", self.size)])

    def __repr__(self) -> str:
        if self.full:
            return "LabelSet(full)"
        return f"LabelSet({', '.join(map(repr, self.labels)) or 'empty'})"


@dataclass(frozen=True, slots=True)
class _Classes(ShareOfOne):
    """What every family of label sets has in common; abstract: `read` is not here."""

    classes: tuple[Any, ...] | int | None = None
    _places: Names | None = field(default=None, init=False, repr=False, compare=False)
    never_empty: bool = field(default=False, kw_only=True)

    shows = LabelSet

    def __post_init__(self) -> None:
        if not isinstance(self.never_empty, bool):
            raise InputError(f"never_empty must be True or False, got {self.never_empty!r}")
        object.__setattr__(self, "classes", _kept_classes(self.classes))
        object.__setattr__(self, "_places", _places_of(self.classes))

    def label(self, y: Any) -> Any:
        """The label as a plain value."""
        return _one_label(y)

    def taped(self, y: float) -> Any:
        """The label that a tape holds as a number: the place of its class."""
        return _taped_label(y, self.classes)

    def needs(
        self, prediction: Scores, shown: LabelSet, y: Any
    ) -> tuple[float, float, float] | None:
        """How many wrong classes come before the last true one, and a tenth; the set's size."""
        values, true = prediction[0], y if isinstance(y, tuple) else (y,)
        last = max([_critical(prediction, label) for label in true], default=-inf)
        before = int(np.count_nonzero(values <= last)) - len(true)
        return 0.1 + max(before, 0), 0.0, float(shown.size)

    def at(self, prediction: Scores, lam: float) -> LabelSet:
        """The set at λ; one that is never empty is not smaller than where its first class is in."""
        if self.never_empty and len(prediction[0]):
            lam = max(lam, float(prediction[0].min()))
        return LabelSet(prediction, lam)

    def critical(self, prediction: Scores, y: Any) -> float:
        """The smallest λ whose set contains y; −1 or less if every set does."""
        value = _critical(prediction, y)
        if self.never_empty and len(prediction[0]) and value <= float(prediction[0].min()):
            return min(value, _LEAST)
        return value


@dataclass(frozen=True, slots=True)
class Threshold(_Classes):
    """Every class whose probability is at least −λ; θ lives in [−1, 0].

    Parameters
    ----------
    classes
        The names of the classes in the order of the probabilities. Without them the labels of an
        array are the numbers from 0; a prediction given as a mapping brings its own names.
    never_empty
        Whether the likeliest class is in every set, at λ = −inf too. More labels never make a loss
        of missing larger, so what is guaranteed from above stays; the risk may lie below its level.

    Examples
    --------
    >>> family = Threshold(classes=("cat", "dog", "owl"))
    >>> family.at(family.read([0.7, 0.2, 0.1]), -0.2)
    LabelSet('cat', 'dog')
    >>> family.critical(family.read([0.7, 0.2, 0.1]), "owl")
    -0.1

    References
    ----------
    Feldman et al. 2023, appendix G, with the direction of θ put right; Sadinle, Lei and
    Wasserman 2019.
    """

    classes: tuple[Any, ...] | None = None

    several = False

    def read(self, prediction: Any) -> Scores:
        """The critical value of every class, −p."""
        p, names, _ = _probabilities_of(prediction, self._places, None, sums_to_one=True)
        return np.negative(p, out=p), names, 0.0

    def by_class(self, p: Array) -> Array:
        """The critical values of many rows."""
        return np.concatenate([-p, np.zeros((len(p), 1))], axis=1)


@dataclass(frozen=True, slots=True)
class Cumulative(_Classes):
    """The most likely classes until their probabilities exceed 1 + λ.

    Classes of equal probability come in the order of the prediction. θ lives in [−1, 0]: at −1
    the set is empty, at 0 it holds every class of which the prediction thinks at all.

    Parameters
    ----------
    classes
        The names of the classes in the order of the probabilities; see `Threshold`, also for
        `never_empty`. Their number, where the labels are numbers.
    randomised
        Whether the last class is let in with a chance, so that the sets can be as small as the
        level allows. The chance is drawn from `seed` and the id of the prediction; on a tape from
        the number of the row, unless an extra column `u` has it.
    seed
        Where the chances come from.
    penalty, free
        The regularised variant: every class after the first `free` is put off by `penalty` of
        probability for each place. It needs `classes`: θ goes up to penalty · (classes − free).

    Examples
    --------
    >>> family = Cumulative(classes=("cat", "dog", "owl"))
    >>> prediction = family.read([0.7, 0.1, 0.2])
    >>> family.at(prediction, -0.2)
    LabelSet('cat', 'owl')
    >>> family.at(prediction, -0.31)
    LabelSet('cat')
    >>> round(family.critical(prediction, "owl"), 6)
    -0.3

    References
    ----------
    Feldman et al. 2023, appendix G, with the direction of θ put right; Romano, Sesia and Candès
    2020; Angelopoulos, Bates, Malik and Jordan 2021 for the regularised variant.
    """

    randomised: bool = False
    seed: int = 0
    penalty: float = 0.0
    free: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.classes, int | np.integer):
            object.__setattr__(self, "classes", whole(self.classes, "classes", 1))
        else:
            _Classes.__post_init__(self)  # super() is lost where a class is made anew with slots
        if not isinstance(self.randomised, bool):
            raise InputError(f"randomised must be True or False, got {self.randomised!r}")
        object.__setattr__(self, "seed", whole(self.seed, "seed", 0))
        object.__setattr__(self, "free", whole(self.free, "free", 0))
        penalty = finite(self.penalty, "penalty")
        if penalty < 0.0:
            raise InputError(f"penalty must be at least 0, got {penalty}")
        object.__setattr__(self, "penalty", penalty)
        if penalty and self.classes is None:
            raise InputError(
                "a penalty needs classes, their names or their number: θ goes up to "
                "penalty · (classes − free)"
            )

    @property
    def draws(self) -> bool:
        """Whether a prediction is given a chance of its own."""
        return self.randomised

    def read(self, prediction: Any) -> Any:
        """The critical value of every class; a randomised family needs a chance first: `draw`."""
        count = self.classes if isinstance(self.classes, int) else None
        p, places, u = _probabilities_of(prediction, self._places, count, sums_to_one=True)
        if not self.randomised:
            return self._scores(p, places, None)
        return (p, places) if u is None else self._scores(p, places, u)

    def draw(self, reading: Any, id: int | str) -> Scores:
        """The reading with the chance that belongs to its id, unless it brought its own."""
        if len(reading) == 4:
            scores: Scores = reading
            return scores
        p, names = reading
        return self._scores(p, names, self.chance(id))

    def chance(self, id: int | str) -> float:
        """The chance that belongs to an id: a number in [0, 1), the same whenever it is asked."""
        digest = blake2b(f"{self.seed} {id!r}".encode(), digest_size=8).digest()
        return (int.from_bytes(digest, "big") >> 11) * 2.0**-53

    def by_class(self, p: Array) -> Array:
        """The critical values of many rows, without chances."""
        return np.concatenate(self._ranked(p, None), axis=1)

    def _scores(self, p: Array, names: Names | None, u: float | None) -> Scores:
        values, unnamed = self._ranked(p, u)
        scores = values, names, float(unnamed[0])
        return scores if u is None else (*scores, u)

    def _ranked(self, p: Array, u: float | None) -> tuple[Array, Array]:
        """The critical values of rows of probabilities, and those of labels they do not name."""
        order = np.argsort(-p, axis=-1, kind="stable")
        ranked = np.take_along_axis(p, order, -1)
        before = np.cumsum(ranked, axis=-1)
        count = p.shape[-1]
        total = before[..., -1:].copy() if count else np.zeros((*p.shape[:-1], 1))
        before[..., 1:] = before[..., :-1]
        before[..., :1] = 0.0
        if u is not None:
            before += u * ranked
        before -= 1.0
        if self.penalty:
            before += self.penalty * np.maximum(np.arange(1, count + 1) - self.free, 0)
            total += self.penalty * max(count + 1 - self.free, 0)
        values = np.empty_like(before)
        # Open: a class is in only above the mass before it. With a chance it is in from there on.
        opened = before if u is not None else np.nextafter(before, inf)
        np.put_along_axis(values, order, opened, -1)
        return values, np.nextafter(total - 1.0, inf)

    def start(self, level: float) -> float:
        """−level; with a penalty as far below the upper bound, so that no set is too small."""
        return self.bounds()[1] - level

    def bounds(self) -> tuple[float, float]:
        """(−1, 0), and further up by the largest penalty."""
        if not self.penalty:
            return -1.0, 0.0
        known = self.classes if isinstance(self.classes, int) else len(self.classes or ())
        return -1.0, self.penalty * max(known - self.free, 0)


@dataclass(frozen=True, slots=True)
class Multilabel(_Classes):
    """Every label whose own probability is at least −λ, where y is any number of labels.

    The probabilities need not sum to 1. y is a collection of labels, a mapping of labels to
    true or false, or an array of 0 and 1 (or of booleans) with one entry for each class.

    Parameters
    ----------
    classes
        The names of the labels in the order of the probabilities; see `Threshold`.

    Examples
    --------
    >>> family = Multilabel(classes=("fog", "rain", "wind"))
    >>> prediction = family.read([0.9, 0.2, 0.6])
    >>> shown = family.at(prediction, -0.5)
    >>> shown
    LabelSet('fog', 'wind')
    >>> y = family.label({"rain", "fog"})
    >>> shown.contains(y), family.critical(prediction, y)
    (False, -0.2)
    """

    classes: tuple[Any, ...] | None = None

    several = True

    def read(self, prediction: Any) -> Scores:
        """The critical value of every label, −p."""
        p, names, _ = _probabilities_of(prediction, self._places, None, sums_to_one=False)
        return np.negative(p, out=p), names, 0.0

    by_class = Threshold.by_class

    def label(self, y: Any) -> tuple[Any, ...]:
        """The labels that are true, as a tuple."""
        return _several_labels(y, self.classes)

    def critical(self, prediction: Scores, y: tuple[Any, ...]) -> float:
        """The smallest λ whose set contains every label of y."""
        return max(self.criticals(prediction, y), default=-float_info.max)

    def criticals(self, prediction: Scores, y: tuple[Any, ...]) -> list[float]:
        """The smallest λ for each label of y."""
        return [_Classes.critical(self, prediction, label) for label in y]


# Reading probabilities and labels

_TOLERANCE = 0.01
"""How far from 1 the sum of the probabilities may be: models in half precision are not exact."""


class _Place(int):
    """A label told by its place among `among` classes: an entry of an array of 0 and 1."""

    among: int


def _taped_label(y: float, classes: Any) -> Any:
    """The label a tape has as the number of its class."""
    if y != int(y) or y < 0:
        raise LabelError(f"on a tape a label must be the number of its class from 0, got {y}")
    named = isinstance(classes, tuple)
    if named and y >= len(classes):
        raise LabelError(f"on a tape a label must be below {len(classes)} classes, got {y}")
    return classes[int(y)] if named else int(y)


def _kept_classes(classes: Any) -> tuple[Any, ...] | None:
    """The option `classes` as it is kept."""
    if classes is None:
        return None
    unordered = isinstance(classes, str | set | frozenset)
    if unordered or not hasattr(classes, "__len__"):
        raise InputError(f"classes must be the names of the classes in order, got {classes!r}")
    names = tuple([_plain(name) for name in classes])
    _places_of(names)
    return names


def _places_of(classes: Any) -> Names | None:
    if classes is None:
        return None
    try:
        names = {name: place for place, name in enumerate(classes)}
    except TypeError:
        raise InputError(f"the names of classes must be hashable, got {classes!r}") from None
    if len(names) != len(classes):
        raise InputError(f"the names of classes must differ, got {tuple(classes)!r}")
    return names


def _probabilities_of(
    prediction: Any, known: Names | None, count: int | None, *, sums_to_one: bool
) -> tuple[Array, Names | None, float | None]:
    """The probabilities as an array of their own, the places of their labels, and a chance."""
    values, named, u = prediction, known, None
    if type(prediction) is np.ndarray:
        pass
    elif isinstance(prediction, Probabilities):
        values, u = prediction.p, prediction.u
        if prediction.classes is not None:
            named = _places_of(_kept_classes(prediction.classes))
        if u is not None and not 0.0 <= finite(u, "u", PredictionError) <= 1.0:
            raise PredictionError(f"the chance u of a prediction must lie in [0, 1], got {u}")
    elif isinstance(prediction, Mapping) or hasattr(prediction, "keys"):
        by_label = {_plain(name): value for name, value in prediction.items()}
        first = [name for name in known or () if name in by_label]
        named = _places_of((*first, *(name for name in by_label if name not in (known or ()))))
        values = list(map(by_label.__getitem__, named or ()))
    p = floats(values, "probabilities")
    if p.ndim != 1:
        raise PredictionError(
            f"a prediction must be one row of probabilities, got an array of shape {p.shape}"
        )
    count = count if named is None else len(named)
    if count is not None and count != len(p):
        raise PredictionError(f"a prediction must name {count} classes, got {len(p)} numbers")
    if len(p):
        total = float(np.add.reduce(p)) if np.minimum.reduce(p) >= 0.0 else nan
        if not (total <= 1.0 or np.maximum.reduce(p) <= 1.0) or total != total:
            np.minimum(p, 1.0, out=p, where=p <= 1.0 + 1e-6)  # single precision rounds above 1
            outside = p[~((p >= 0.0) & (p <= 1.0))]
            if len(outside):
                raise PredictionError(f"probabilities must lie in [0, 1], got {outside[0]}")
        if sums_to_one and abs(total - 1.0) > _TOLERANCE:
            raise PredictionError(f"the probabilities of the classes must sum to 1, got {total:g}")
    return p, named, u


def _plain(value: Any) -> Any:
    """A numpy or torch scalar, or an array of one, as the Python value it is."""
    shape = getattr(value, "shape", None)
    return value if shape is None or any(length != 1 for length in shape) else value.item()


def _one_label(y: Any) -> Any:
    """One label as a plain value."""
    if type(y) is int or type(y) is str:
        return y
    label = _plain(y)
    if is_missing(label):
        raise LabelError(
            f'a label must not be missing, got {y!r}; Stream(…, missing="skip") skips such labels'
        )
    if isinstance(label, float) and label.is_integer():
        return int(label)
    try:
        hash(label)
    except TypeError:
        label = ()
    if isinstance(label, tuple):
        raise LabelError(f"a label must be one class, got {y!r}; for several: sets.Multilabel")
    return label


def _several_labels(y: Any, classes: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """Several labels as a tuple of plain values."""
    if hasattr(y, "keys"):
        truths = {_plain(name): true for name, true in y.items()}
        # The places of a data frame's row are not names, if the names are known to be others.
        placed = list(truths) == list(range(len(truths)))
        if classes is None or not placed or all(name in classes for name in truths):
            return tuple([_one_label(name) for name, true in truths.items() if true])
        y = np.asarray(list(truths.values()))
    listed = isinstance(y, list | tuple) and len(y) > 0
    if hasattr(y, "dtype") or (listed and all(isinstance(entry, bool | np.bool_) for entry in y)):
        mask = np.asarray(y)
        if mask.ndim != 1 or not np.isin(mask, (0, 1)).all():
            raise LabelError(f"an array of labels must hold 0 and 1 for each class, got {y!r}")
        if classes is not None and len(mask) != len(classes):
            raise LabelError(f"got {len(mask)} entries for {len(classes)} classes")
        places = np.flatnonzero(mask).tolist()
        if classes is not None:
            return tuple([classes[place] for place in places])
        true_places = tuple([_Place(place) for place in places])
        for place in true_places:
            place.among = len(mask)
        return true_places
    if isinstance(y, str | bytes) or not hasattr(y, "__iter__"):
        raise LabelError(f"y must be a collection of labels, or an array of 0 and 1, got {y!r}")
    labels = tuple([_one_label(entry) for entry in y])
    looks_like_bits = len(labels) == len(classes or ()) and set(labels) <= {0, 1}
    if classes is not None and looks_like_bits and not any(entry in classes for entry in labels):
        raise LabelError(
            f"y must hold some of the names {classes}, or 0 and 1 in an array, got {y!r}"
        )
    if len(set(labels)) != len(labels):
        raise LabelError(f"labels must not repeat, got {y!r}; 0 and 1 for each class: an array")
    return labels
