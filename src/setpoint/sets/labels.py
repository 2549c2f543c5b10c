"""Sets of labels from class probabilities.

A label family turns the probabilities of a prediction into the critical values of all its classes
once, and is defined by them: the set at λ holds every class whose critical value is at most λ.

A label that a prediction does not name, such as a class seen for the first time, counts as one of
probability 0 that comes after all the others.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from math import inf, nextafter
from sys import float_info
from typing import Any

import numpy as np
import numpy.typing as npt

from setpoint._check import finite, whole
from setpoint.errors import InputError, LabelError
from setpoint.parts import ours
from setpoint.sets.family import ShareOfOne
from setpoint.sets.reading import (
    Array,
    Names,
    Place,
    Scores,
    kept_classes,
    one_label,
    places_of,
    probabilities_of,
    several_labels,
    taped_label,
)

__all__ = ["Cumulative", "LabelSet", "Multilabel", "Threshold"]


def _critical(scores: Scores, label: Any) -> float:
    """The critical value of one label."""
    values, names, unnamed = scores[0], scores[1], scores[2]
    place: int | None
    if isinstance(label, Place):
        if label.among != len(values):
            raise LabelError(
                f"an array of labels must have an entry for each of {len(values)} classes, got "
                f"{label.among}"
            )
        place = label
    elif names is not None:
        place = names.get(label)
    elif isinstance(label, int) and label >= 0:
        place = int(label) if label < len(values) else None
    else:
        raise LabelError(
            f"without names for the classes a label must be a number from 0, got {label!r}"
        )
    return unnamed if place is None else float(values[place])


@dataclass(slots=True, eq=False, repr=False)
class LabelSet:
    """The labels whose critical value is at most λ.

    Parameters
    ----------
    scores
        The critical values of a prediction's classes, as a label family reads them.
    lam
        λ: +inf makes the set full, −inf empty.

    Examples
    --------
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
        """How many of several labels are in the set."""
        scores, lam = self.scores, self.lam
        return sum([_critical(scores, label) <= lam for label in y])

    def names(self, label: Any) -> bool:
        """Whether the prediction names a label."""
        values, names = self.scores[0], self.scores[1]
        if names is None or isinstance(label, Place):
            return isinstance(label, int) and 0 <= label < len(values)
        return label in names

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels the prediction names, in its order."""
        values, names = self.scores[0], self.scores[1]
        return tuple(range(len(values)) if names is None else names)

    @property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Which of `classes` are in the set."""
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
        """How many of `classes` are in the set."""
        return int(np.count_nonzero(self.mask))

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

    def __repr__(self) -> str:
        if self.full:
            return "LabelSet(full)"
        return f"LabelSet({', '.join(map(repr, self.labels)) or 'empty'})"


@dataclass(frozen=True, slots=True)
class _Classes(ShareOfOne):
    """What every family of label sets has in common; abstract: `read` is not here.

    Parameters
    ----------
    classes
        The names of the classes in the order of the probabilities. Without them the labels of an
        array are the numbers from 0; a prediction given as a mapping brings its own names.
    """

    classes: tuple[Any, ...] | int | None = None
    _places: Names | None = field(default=None, init=False, repr=False, compare=False)

    shows = LabelSet

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", kept_classes(self.classes))
        object.__setattr__(self, "_places", places_of(self.classes))

    def label(self, y: Any) -> Any:
        """The label as a plain value."""
        return one_label(y)

    def taped(self, y: float) -> Any:
        """The label that a tape holds as a number: the place of its class."""
        return taped_label(y, self.classes)

    def at(self, prediction: Scores, lam: float) -> LabelSet:
        """The set at λ."""
        return LabelSet(prediction, lam)

    def critical(self, prediction: Scores, y: Any) -> float:
        """The smallest λ whose set contains y."""
        return _critical(prediction, y)


@ours
@dataclass(frozen=True, slots=True)
class Threshold(_Classes):
    """Every class whose probability is at least −λ.

    θ lives in [−1, 0]: at 0 every class is in, at −1 only one that is certain.

    Parameters
    ----------
    classes
        The names of the classes in the order of the probabilities. Without them the labels of an
        array are the numbers from 0; a prediction given as a mapping brings its own names.

    Examples
    --------
    >>> family = Threshold(classes=("cat", "dog", "owl"))
    >>> family.at(family.read([0.7, 0.2, 0.1]), -0.2)
    LabelSet('cat', 'dog')
    >>> family.critical(family.read([0.7, 0.2, 0.1]), "owl")
    -0.1

    References
    ----------
    Feldman et al. 2023, appendix E, with the direction of θ put right; Sadinle, Lei and
    Wasserman 2019.
    """

    classes: tuple[Any, ...] | None = None

    def read(self, prediction: Any) -> Scores:
        """The critical value of every class, −p."""
        p, names, _ = probabilities_of(prediction, self._places, None, sums_to_one=True)
        return np.negative(p, out=p), names, 0.0


@ours
@dataclass(frozen=True, slots=True)
class Cumulative(_Classes):
    """The most likely classes until their probabilities exceed 1 + λ.

    Classes of equal probability come in the order of the prediction. θ lives in [−1, 0]: at −1
    the set is empty, at 0 it holds every class of which the prediction thinks at all.

    Parameters
    ----------
    classes
        The names of the classes in the order of the probabilities; see `Threshold`. Their number,
        where the labels are numbers.
    randomised
        Whether the last class is let in with a chance, so that the sets can be as small as the
        level allows. The chance is drawn from `seed` and the id of the prediction, and kept with
        it: asking twice gives the same set. On a tape it is the number of the row in its stream
        that counts as the id, unless the tape has the chances in an extra column `u`.
    seed
        Where the chances come from.
    penalty, free
        The regularised variant: every class after the first `free` is put off by `penalty` of
        probability for each place, which keeps out the long tail of unlikely classes. It needs
        `classes`, because θ then goes up to penalty · (classes − free).

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
    Feldman et al. 2023, appendix E, with the direction of θ put right; Romano, Sesia and Candès
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
        """The critical value of every class.

        A randomised family needs the prediction's chance first: `draw` makes them then.
        """
        count = self.classes if isinstance(self.classes, int) else None
        p, places, u = probabilities_of(prediction, self._places, count, sums_to_one=True)
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

    def _scores(self, p: Array, names: Names | None, u: float | None) -> Scores:
        order = np.argsort(-p, kind="stable")
        ranked = p[order]
        before = np.cumsum(ranked)
        total = float(before[-1]) if len(p) else 0.0
        before[1:] = before[:-1]
        before[:1] = 0.0
        if u is not None:
            before += u * ranked
        before -= 1.0
        if self.penalty:
            places = np.arange(1, len(p) + 1) - self.free
            before += self.penalty * np.maximum(places, 0)
            total += self.penalty * max(len(p) + 1 - self.free, 0)
        values = np.empty_like(before)
        # Open: a class is in only above the mass before it. With a chance it is in from there on.
        values[order] = before if u is not None else np.nextafter(before, inf)
        unnamed = nextafter(total - 1.0, inf)
        return (values, names, unnamed) if u is None else (values, names, unnamed, u)

    def start(self, level: float) -> float:
        """−level; with a penalty as far below the upper bound, so that no set is too small."""
        return self.bounds()[1] - level

    def bounds(self) -> tuple[float, float]:
        """(−1, 0), and further up by the largest penalty."""
        if not self.penalty:
            return -1.0, 0.0
        known = self.classes if isinstance(self.classes, int) else len(self.classes or ())
        return -1.0, self.penalty * max(known - self.free, 0)


@ours
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

    def read(self, prediction: Any) -> Scores:
        """The critical value of every label, −p."""
        p, names, _ = probabilities_of(prediction, self._places, None, sums_to_one=False)
        return np.negative(p, out=p), names, 0.0

    def label(self, y: Any) -> tuple[Any, ...]:
        """The labels that are true, as a tuple."""
        return several_labels(y, self.classes)

    def taped(self, y: float) -> Any:
        """None: a tape has one number for a label."""
        raise LabelError(
            "a tape holds one number for a label, and sets.Multilabel needs many: run it live"
        )

    def critical(self, prediction: Scores, y: tuple[Any, ...]) -> float:
        """The smallest λ whose set contains every label of y."""
        return max([_critical(prediction, label) for label in y], default=-float_info.max)

    def criticals(self, prediction: Scores, y: tuple[Any, ...]) -> list[float]:
        """The smallest λ for each label of y."""
        return [_critical(prediction, label) for label in y]
