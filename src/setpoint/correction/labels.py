"""A correction for class probabilities: it learns how far a classifier can be believed.

It works in the space of log p and hands on, for every class, the λ from which on the class is in
the set. λ = 0 is the quantile of recent scores that the level asks for, and λ = log 2 the one for
half as many misses, so that λ has no unit and an account can widen or narrow the set by it.
Five small rules, each made of the past only:

    recalibrate  softmax(β log p + b): β and b follow the gradient of the log loss
    mix          the model, the recalibrated model, how often classes came lately, and nothing at
                 all: weighed by their likelihood
    balance      an offset for each class, so that rare and hard classes are not the ones missed
    lead         how much of the last score's distance from their mean the next one will have
    rank         where a score lies among the last ones; beyond the largest an exponential tail

Several labels at once (`several`) have a probability each: their scores are log odds, with lead and
rank alone. Late labels take smaller steps.

The rules are pure functions of a memory of floats and of `Classes`, arrays with an entry for each
class; `learn` writes into these. They never see θ, a risk or another level.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import exp, log
from sys import float_info
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setpoint._check import positive, whole
from setpoint.correction.rules import habit_of
from setpoint.errors import InputError, StateError
from setpoint.sets.family import Classed
from setpoint.sets.labels import place_of

__all__ = [
    "Base", "Classes", "Labels", "Learnt", "Memory", "balance", "follow", "frequencies", "learn",
    "led", "predict", "rank", "recalibrate", "weigh",
]  # fmt: skip

Array = npt.NDArray[np.float64]
Floats = tuple[float, ...]

_LEAST = 1e-12
"""Probabilities below it count as this much."""
_UNNAMED = -log(_LEAST)
"""The score of a label that a prediction does not name."""
_PRIOR = (1.0 / 2.6, 1.0 / 2.6, 0.5 / 2.6, 0.1 / 2.6)
"""The first weights: the model, the recalibrated model, recent frequencies, a uniform guess."""
_RETURN = 0.01
"""The share of the weights that goes back to the first ones with every label."""


class Memory(NamedTuple):
    """What is remembered besides `Classes`.

    `waiting` is the mean number of other predictions that wait, `labels` counts the labels.
    `sharpness` is β, and `variance` that of log p under the recalibrated model. `model`,
    `recalibrated`, `frequent` and `uniform` are the weights of the mixture. `mean` is that of
    the scores of true labels, `last` the last one; `lead` says how much of `last − mean` the next
    one has, and `spread` is the mean of its square.
    """

    waiting: float = 0.0
    labels: float = 0.0
    sharpness: float = 1.0
    variance: float = 5.0
    model: float = _PRIOR[0]
    recalibrated: float = _PRIOR[1]
    frequent: float = _PRIOR[2]
    uniform: float = _PRIOR[3]
    mean: float = 0.0
    last: float = 0.0
    lead: float = 0.0
    spread: float = 1.0


class Base(NamedTuple):
    """What a family reads of a prediction, and what its label will be learnt against.

    `values` are the critical values of the classes, `unnamed` that of any other label. `scores`
    are what was ranked, `logs` log p, or log odds, `recalibrated` the recalibrated model and
    `frequent` how often classes came, both empty for several labels. `kick` is `last − mean`,
    `lead` as remembered, and `habit` how many others waited.
    """

    values: Array
    names: dict[Any, int] | None
    unnamed: float
    scores: Array
    logs: Array
    recalibrated: Array
    frequent: Array
    kick: float
    lead: float
    habit: float


class Learnt(NamedTuple):
    """What a correction knows now, for people.

    `labels` counts those it has learnt from. `sharpness` is the power to which it takes the
    probabilities: below 1 the model is too sure. `model` is the share of the probabilities as they
    were given. `balance` is how far apart the offsets of classes lie, in log p.
    """

    labels: int
    sharpness: float
    model: float
    balance: float


class Classes:
    """What is remembered of each class, and the scores of the last true labels.

    `names` has the place of each class, None where classes are the numbers from 0. `numbers` has
    three rows: b of the recalibration, the offset, and how often the class came lately, as a share.
    Classes that come later begin at 0.
    """

    __slots__ = ("count", "names", "numbers", "scores")

    def __init__(self, size: int) -> None:
        self.names: dict[Any, int] | None = None
        self.numbers = np.zeros((3, 0))
        self.scores, self.count = np.zeros(size), 0

    def copy(self) -> "Classes":
        """One that shares nothing with this one."""
        return Classes.restored(self.content(), len(self.scores))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Classes):
            return NotImplemented
        arrays = (self.numbers, other.numbers), (self.scores, other.scores)
        same = all(np.array_equal(mine, its) for mine, its in arrays)
        return same and (self.names, self.count) == (other.names, other.count)

    __hash__ = None  # type: ignore[assignment]

    def content(self) -> dict[str, Any]:
        """Everything as plain values, sharing nothing."""
        return {
            "names": None if self.names is None else list(self.names),
            "count": self.count,
            "numbers": self.numbers.copy(),
            "scores": self.scores.copy(),
        }

    @classmethod
    def restored(cls, content: Any, size: int) -> "Classes":
        """The classes whose content was saved."""
        classes = cls(size)
        if not isinstance(content, Mapping) or content.keys() != classes.content().keys():
            raise StateError("the state has no classes that label sets could go on from")
        names, count = content["names"], content["count"]
        numbers, scores = (np.array(content[name], np.float64) for name in ("numbers", "scores"))
        known = len(set(names or ()))
        if type(count) is not int or count < 0 or scores.shape != (size,):
            raise StateError(f"the state must have {size} scores and how many came so far")
        if (
            numbers.ndim != 2
            or len(numbers) != 3
            or not len(names or ()) == known <= numbers.shape[1]
        ):
            raise StateError("the state must have three numbers for each of its classes")
        if not (np.isfinite(numbers).all() and np.isfinite(scores).all()):
            raise StateError("what a state has of its classes must be finite")
        classes.names = None if names is None else {name: at for at, name in enumerate(names)}
        classes.numbers, classes.scores, classes.count = numbers, scores, count
        return classes

    def window(self) -> Array:
        """The last scores in order of size."""
        return np.sort(self.scores[: self.count])

    def add(self, score: float) -> None:
        """Takes in the score of a true label; the oldest goes."""
        self.scores[self.count % len(self.scores)] = score
        self.count += 1

    def of(self, names: dict[Any, int] | None, count: int) -> Array:
        """The numbers of the classes of a prediction, 0 for those never seen."""
        places = self._places(names, count)
        numbers = self.numbers
        if type(places) is slice and count <= numbers.shape[1]:
            return numbers[:, places]
        places = np.arange(count) if type(places) is slice else places
        padded = np.concatenate([numbers, np.zeros((3, 1))], axis=1)
        return padded[:, np.minimum(places, numbers.shape[1])]

    def grown(self, names: dict[Any, int] | None, count: int) -> Any:
        """The places of a prediction's classes, once each of them has one."""
        if names is not None:
            own = self.names = {} if self.names is None else self.names
            for name in names:
                own.setdefault(name, len(own))
            count = len(own)
        missing = count - self.numbers.shape[1]
        if missing > 0:
            self.numbers = np.concatenate([self.numbers, np.zeros((3, missing))], axis=1)
        return self._places(names, count)

    def _places(self, names: dict[Any, int] | None, count: int) -> Any:
        """Where the classes of a prediction are; one never seen is behind the last."""
        own = self.names or {}
        if names is None or list(names) == list(own):
            return slice(0, count)
        last = self.numbers.shape[1]
        return np.array([own.get(name, last) for name in names], dtype=np.int64)


# The rules.


def recalibrate(sharpness: float, bias: Array, logs: Array) -> Array:
    """softmax(β log p + b)."""
    parts = sharpness * logs
    parts += bias
    parts -= np.maximum.reduce(parts)
    parts = np.exp(parts)
    parts /= np.add.reduce(parts)
    return parts


def frequencies(seen: Array) -> Array:
    """How likely classes are by what came lately: a tenth of it a uniform guess."""
    return 0.9 * seen + (0.1 + 0.9 * (1.0 - float(np.add.reduce(seen)))) / len(seen)


def rank(scores: Array, window: Array, level: float) -> Array:
    """The λ from which on each score is in the set, of a window in order of size.

    Of n scores, a = level · (n + 1) · e^−λ lie above the threshold of λ: linear between two of
    them, and beyond the largest as in an exponential tail with the mean excess of the top tenth.
    """
    count, top, excess = len(window), float(window[-1]), 1.0
    if count > 1:
        tail = min(count - 1, count // 10 + 3)
        excess = float(np.add.reduce(window[count - tail :])) / tail
        excess = max(excess - float(window[count - 1 - tail]), 1e-3)
    # From above, so that of equal scores the first one counts.
    above = 1.0 + np.interp(-scores, -window[::-1], np.arange(count))
    beyond = np.maximum(scores - top, 0.0) / excess
    return log(level * (count + 1.0)) - np.log(above) + beyond


def predict(
    params: Floats, memory: Floats, table: Classes, row: tuple[Any, ...], waiting: float
) -> tuple[Floats, tuple[Any, ...]]:
    """The critical value of every class, from −p as the family has read it."""
    known, several = Memory(*memory), params[1] > 0.0
    mean, habit = habit_of(known.waiting, waiting)
    given, names = row[0], row[1]
    count = len(given)
    bias, offset, seen = table.of(names, count)
    p = np.maximum(-given, _LEAST)
    logs, guess, frequent = np.log(p), np.zeros(0), np.zeros(0)
    if several:
        logs -= np.log(np.maximum(1.0 + given, _LEAST))
        scores = -logs - offset
    elif count:
        guess, frequent = recalibrate(known.sharpness, bias, logs), frequencies(seen)
        mixed = known.model * p + known.recalibrated * guess
        mixed += known.frequent * frequent + known.uniform / count
        scores = -np.log(np.maximum(mixed, _LEAST)) - offset
    else:
        scores = np.zeros(0)
    kick = known.last - known.mean
    if table.count:
        ranked = np.append(
            scores, max(_UNNAMED, float(np.maximum.reduce(scores)) if count else 0.0)
        )
        ranked = rank(ranked - known.lead * kick, table.window(), params[0])
        values, unnamed = ranked[:-1].copy(), float(ranked[-1])
    else:  # nothing is known: every label is in
        values, unnamed = np.full(count, -float_info.max), -float_info.max
    base = Base(values, names, unnamed, scores, logs, guess, frequent, kick, known.lead, habit)
    return (mean,) + memory[1:], tuple(base)  # noqa: RUF005


def learn(params: Floats, memory: Floats, table: Classes, base: tuple[Any, ...], y: Any) -> Floats:
    """What is remembered after the true label, or several."""
    made, known = Base(*base), Memory(*memory)
    for label in y if params[1] > 0.0 else (y,):
        place = place_of(base, label)
        if place is not None and params[1] == 0.0:
            balance(params, table, made, place)
            known = follow(params, weigh(known, made, place), table, made, place)
        known = led(known, table, made, _UNNAMED if place is None else float(made.scores[place]))
    return tuple(known)


def balance(params: Floats, table: Classes, made: Base, place: int) -> None:
    """A class whose labels are missed at λ = 0 more often than the level says is let in earlier."""
    at = table.grown(made.names, len(made.values))
    offset = table.numbers[1, at]
    missed = 1.0 if made.values[place] > 0.0 else 0.0
    moved = offset[place] + params[4] / (1.0 + made.habit / 20.0) * (missed - params[0])
    offset[place] = min(max(moved, -3.0), 3.0)
    table.numbers[1, at] = offset


def weigh(known: Memory, made: Base, place: int) -> Memory:
    """Weights by the likelihood of the label, and a little of the first ones again."""
    power, first = 1.0 / (1.0 + made.habit / 30.0), _PRIOR
    model = known.model * exp(power * float(made.logs[place]))
    own = known.recalibrated * max(float(made.recalibrated[place]), _LEAST) ** power
    frequent = known.frequent * max(float(made.frequent[place]), _LEAST) ** power
    uniform = known.uniform * (1.0 / len(made.values)) ** power
    total = (model + own + frequent + uniform) / (1.0 - _RETURN)
    return known._replace(
        model=model / total + _RETURN * first[0],
        recalibrated=own / total + _RETURN * first[1],
        frequent=frequent / total + _RETURN * first[2],
        uniform=uniform / total + _RETURN * first[3],
    )


def follow(params: Floats, known: Memory, table: Classes, made: Base, place: int) -> Memory:
    """β and b by a step down the gradient of the log loss, and how often the class came."""
    logs, guess = made.logs, made.recalibrated
    rate = max(params[3] / (1.0 + made.habit / 3.0), 1.0 / (known.labels + 10.0))
    moment = guess * logs
    mean = float(np.add.reduce(moment))
    variance = float(np.add.reduce(moment * logs)) - mean * mean
    variance = known.variance + 0.2 * rate * (variance - known.variance)
    step = 0.2 * rate * (float(logs[place]) - mean) / (variance + 0.1)
    sharpness = known.sharpness + min(max(step, -0.1), 0.1)
    at = table.grown(made.names, len(guess))
    recent = 0.05 / (1.0 + made.habit)
    table.numbers[2] *= 1.0 - recent
    bias, seen = table.numbers[0, at], table.numbers[2, at]
    bias = bias * (1.0 - 0.02 * rate) - rate * guess
    bias[place] += rate
    seen[place] += recent
    table.numbers[0, at], table.numbers[2, at] = bias, seen
    return known._replace(sharpness=min(max(sharpness, 0.05), 4.0), variance=variance)


def led(known: Memory, table: Classes, made: Base, score: float) -> Memory:
    """The score of a true label joins the last ones, less what was expected of it."""
    expected = made.lead * made.kick
    table.add(score - expected)
    rate = max(0.02, 1.0 / (known.labels + 2.0))
    mean = score if known.labels == 0.0 else known.mean
    spread = known.spread + rate * (made.kick * made.kick - known.spread)
    lead = known.lead + 0.5 * rate * (score - mean - expected) * made.kick / (spread + 0.1)
    return known._replace(
        labels=known.labels + 1.0,
        mean=mean + rate * (score - mean),
        last=score,
        lead=min(max(lead, -1.0), 1.0),
        spread=spread,
    )


@dataclass(frozen=True, slots=True)
class Labels:
    """What past labels teach of a classifier, for `sets.Threshold` and `sets.Multilabel`.

    It needs no past data and no number of classes; new ones may come at any time. A stream keeps
    three numbers for each class and the last scores.

    Parameters
    ----------
    level
        The share of true labels that may be missed at λ = 0.
    several
        Whether a row has any number of true labels, each with a probability of its own.
    size
        How many of the last scores are ranked.
    rate, fair
        How fast the recalibration and the offsets of classes follow, for one true label. A larger
        `fair` misses all classes more alike, with sets that are a little larger.

    Examples
    --------
    >>> import setpoint as sp
    >>> stream = sp.Stream(sp.label_sets(coverage=0.9))
    >>> stream.controller.correction
    Labels(level=0.1, several=False, size=500, rate=0.1, fair=0.15)
    """

    level: float = 0.1
    several: bool = False
    size: int = 500
    rate: float = 0.1
    fair: float = 0.15

    gives = Base._fields[:3]

    def __post_init__(self) -> None:
        for name in ("level", "rate", "fair"):
            value = positive(getattr(self, name), f"Labels.{name}")
            if value >= 1.0:
                raise InputError(f"Labels.{name} must lie between 0 and 1, got {value}")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "size", whole(self.size, "Labels.size", 10))
        if not isinstance(self.several, bool):
            raise InputError(f"Labels.several must be True or False, got {self.several!r}")

    @property
    def params(self) -> Floats:
        """The numbers of the rules."""
        return (self.level, float(self.several), float(self.size), self.rate, self.fair)

    def init(self) -> Floats:
        """Nothing is known: every label is in the set."""
        return tuple(Memory())

    def learnt(self, state: Any) -> Learnt:
        """What is known in a state, such as `stream.state`.

        >>> import setpoint as sp
        >>> stream = sp.Stream(sp.label_sets())
        >>> for y in (0, 1) * 50:  # a model that is sure and right half of the time
        ...     _ = stream.predict([0.99, 0.01]), stream.update(y)
        >>> learnt = stream.controller.correction.learnt(stream.state)
        >>> learnt.labels, learnt.model < 0.1
        (100, True)
        """
        known, table = Memory(*state.memory), state.table
        offsets = table.numbers[1] if table.numbers.shape[1] else np.zeros(1)
        return Learnt(
            labels=int(known.labels),
            sharpness=known.sharpness,
            model=known.model,
            balance=float(offsets.max() - offsets.min()),
        )

    def fits(self, sets: Any) -> str | None:
        """Why it does not go with a family; None if it does."""
        if isinstance(sets, Classed) and sets.several is self.several:
            return None
        name = "Multilabel" if self.several else "Threshold"
        return f"{self!r} goes with sets.{name}, got {sets!r}"

    def rules(self, sets: Any) -> tuple[Any, Any]:
        """`predict` and `learn`."""
        return partial(predict, self.params), partial(learn, self.params)

    def kept(self, sets: Any, content: Any = None) -> Classes:
        """What is remembered of classes: nothing yet, or what was saved."""
        return Classes(self.size) if content is None else Classes.restored(content, self.size)
