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

The rules are pure functions of floats, the same live and compiled. A table has the last scores as
they came, the same in order of size, and then three numbers for each class: b of the recalibration,
the offset, and how often the class came lately, as a share. `learn` writes into it. The rules never
see θ, a risk or another level.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, log
from sys import float_info
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setpoint._check import positive, whole
from setpoint.correction.rules import habit_of
from setpoint.errors import InputError, StateError

Array = npt.NDArray[np.float64]
Floats = tuple[float, ...]
Numbers = Any
"""Floats that can be written to: a list in plain Python, an array in compiled code."""

OWN = 3
"""How many numbers a table has of each class."""
_LEAST = 1e-12
"""Probabilities below it count as this much."""
_UNNAMED = -log(_LEAST)
"""The score of a label that a prediction does not name."""
_FIRST = 1.0 / 2.6, 1.0 / 2.6, 0.5 / 2.6, 0.1 / 2.6
"""The first weights: the model, the recalibrated model, recent frequencies, a uniform guess."""
_RETURN = 0.01
"""The share of the weights that goes back to the first ones with every label."""
_MOST = float_info.max
_NOTHING = np.zeros(1)


class Memory(NamedTuple):
    """What is remembered besides the table.

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
    model: float = _FIRST[0]
    recalibrated: float = _FIRST[1]
    frequent: float = _FIRST[2]
    uniform: float = _FIRST[3]
    mean: float = 0.0
    last: float = 0.0
    lead: float = 0.0
    spread: float = 1.0


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
    """The table of a live stream, and the place of each class in it.

    `names` has the places, None where classes are the numbers from 0. Classes that come later
    begin at 0.
    """

    __slots__ = ("fast", "names", "numbers", "size")

    def __init__(self, size: int) -> None:
        self.names: dict[Any, int] | None = None
        self.fast: Any = None
        self.size = size
        self.numbers: Numbers = [0.0] * (2 * size)

    def copy(self) -> "Classes":
        """One that shares nothing with this one."""
        twin = Classes(self.size)
        twin.names = None if self.names is None else dict(self.names)
        twin.numbers, twin.fast = self.numbers.copy(), self.fast
        return twin

    def speed_up(self, fast: Any) -> None:
        """Lets rules run as machine code, on an array, once they are there."""
        if fast is not None:
            self.fast, self.numbers = fast, np.array(self.numbers)

    def __len__(self) -> int:
        return (len(self.numbers) - 2 * self.size) // OWN

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Classes):
            return NotImplemented
        count = max(len(self), len(other))
        same = np.array_equal(self.padded(count), other.padded(count))
        return same and (self.names, self.size) == (other.names, other.size)

    __hash__ = None  # type: ignore[assignment]

    def padded(self, count: int) -> Numbers:
        """The table with room for this many classes."""
        more = [0.0] * (OWN * (count - len(self)))
        return np.append(self.numbers, more) if self.fast is not None else self.numbers + more

    def content(self) -> dict[str, Any]:
        """Everything as plain values, sharing nothing."""
        names = None if self.names is None else list(self.names)
        return {"names": names, "numbers": np.array(self.numbers)}

    @classmethod
    def restored(cls, content: Any, size: int) -> "Classes":
        """The classes whose content was saved."""
        classes = cls(size)
        if not isinstance(content, Mapping) or content.keys() != classes.content().keys():
            raise StateError("the state has no classes that label sets could go on from")
        names, numbers = content["names"], np.asarray(content["numbers"], np.float64)
        rest = numbers.size - 2 * size
        if numbers.ndim != 1 or rest < 0 or rest % OWN or not np.isfinite(numbers).all():
            raise StateError(
                f"the state must have {2 * size} finite scores and {OWN} finite numbers for each "
                "of its classes"
            )
        listed = numbers[size : 2 * size]
        if names is not None and not len(names) == len(set(names)) <= rest // OWN:
            raise StateError("the state must name each of its classes once")
        if not np.array_equal(np.sort(listed), np.sort(numbers[:size])):
            raise StateError("the scores of the state must be the same in both orders")
        classes.names = None if names is None else {name: at for at, name in enumerate(names)}
        classes.numbers = numbers.tolist()
        return classes

    def of(self, names: dict[Any, int] | None, count: int) -> Numbers:
        """The table for the classes of a prediction, 0 for those never seen."""
        if self.straight(names, count):
            return self.numbers
        if self.fast is not None:  # of classes that come and go a list is faster
            self.fast, self.numbers = None, self.numbers.tolist()
        first, known, listed = 2 * self.size, self.names or {}, self.numbers
        table = listed[:first]
        for place in range(count) if names is None else map(known.get, names):
            at = len(listed) if place is None else first + OWN * place
            table += listed[at : at + OWN] or [0.0] * OWN
        return table

    def learn(
        self, rule: Any, params: Floats, memory: Floats, names: dict[Any, int] | None,
        base: Array, place: int,
    ) -> Floats:  # fmt: skip
        """Lets a rule learn from a label: the next memory."""
        count, first = len(base) // 5, 2 * self.size
        if place >= 0 and not params[1]:
            self._grow(names, count)
        # Of several labels nothing is kept by class.
        table = self.numbers if params[1] else self.of(names, count)
        own = self.numbers
        if self.fast is not None and table is own:
            after: Floats = self.fast.learn(params, memory, own, _NOTHING, base, float(place))
        else:
            after = rule(params, memory, table, (), base.tolist(), float(place))
        if place >= 0 and count < len(self) and not params[1]:  # the others did not come
            named = set(range(count) if names is None else map((self.names or {}).get, names))
            for other in set(range(len(self))) - named:
                own[first + OWN * other + 2] *= 1.0 - recent(float(base[-1]))
        if table is not own:
            own[:first] = table[:first]
            known = self.names or {}
            for i, name in enumerate(names if names is not None else range(count)):
                at = first + OWN * (known.get(name, len(self)) if names is not None else i)
                if at < len(own):
                    own[at : at + OWN] = table[first + OWN * i : first + OWN * (i + 1)]
        return after

    def _grow(self, names: dict[Any, int] | None, count: int) -> None:
        """Gives each class of a prediction a place."""
        if not self.straight(names, count):
            if names is not None:
                known = self.names = {} if self.names is None else self.names
                for name in names:
                    known.setdefault(name, len(known))
                count = len(known)
            self.numbers = self.padded(count)

    def straight(self, names: dict[Any, int] | None, count: int) -> bool:
        """Whether the classes of a prediction lie as in the table."""
        own = self.names
        return count <= len(self) and (
            names is None or (own is not None and list(names) == list(own))
        )


# The rules.


def recent(habit: float) -> float:
    """How fast the shares of classes follow."""
    return 0.05 / (1.0 + habit)


def place_above(table: Numbers, first: int, count: int, score: float) -> int:
    """The place of the first of `count` numbers in order of size that is not below a score."""
    low, high = first, first + count
    while low < high:
        middle = (low + high) // 2
        if table[middle] < score:
            low = middle + 1
        else:
            high = middle
    return low


def remember(table: Numbers, size: int, labels: float, score: float) -> None:
    """The score of a true label joins the last ones; the oldest goes."""
    came = int(labels)
    count, at = came if came < size else size, came % size
    end = size + count - (came >= size)
    hole = end if came < size else place_above(table, size, count, table[at])
    table[at] = score
    while (hole > size) and (table[hole - 1] > score):
        table[hole] = table[hole - 1]
        hole -= 1
    while (hole < end) and (table[hole + 1] < score):
        table[hole] = table[hole + 1]
        hole += 1
    table[hole] = score


def rank(table: Numbers, size: int, count: int, level: float, excess: float, score: float) -> float:
    """The λ from which on a score is in the set, by the last scores.

    Of n scores, a = level · (n + 1) · e^−λ lie above the threshold of λ: linear between two of
    them, and beyond the largest as in an exponential tail of this mean excess.
    """
    at, end = place_above(table, size, count, score), size + count
    beyond, above = 0.0, float(end - at)
    if at == end:
        beyond, above = (score - table[end - 1]) / excess, 1.0
    elif at > size:
        above += (table[at] - score) / (table[at] - table[at - 1])
    return log(level * (count + 1.0)) - log(above) + beyond


def _excess(table: Numbers, size: int, count: int) -> float:
    """By how much the top tenth of the last scores lie above the others, on the mean."""
    if count < 2:
        return 1.0
    tail, total = count // 10 + 3, 0.0
    tail = tail if tail < count - 1 else count - 1
    for i in range(size + count - tail, size + count):
        total += table[i]
    excess = total / tail - table[size + count - 1 - tail]
    return excess if excess > 1e-3 else 1e-3


def recalibrate(
    sharpness: float, table: Numbers, first: int, base: Numbers, logs: int, guess: int, count: int
) -> None:
    """softmax(β log p + b)."""
    top, total = 0.0, 0.0
    for k in range(count):
        part = sharpness * base[logs + k] + table[first + OWN * k]
        base[guess + k] = part
        top = part if (k == 0) | (part > top) else top
    for k in range(count):
        part = exp(base[guess + k] - top)
        base[guess + k] = part
        total += part
    for k in range(count):
        base[guess + k] /= total


def predict(
    params: Floats, memory: Floats, table: Numbers, annex: Any, row: Numbers, waiting: float,
    base: Numbers,
) -> Floats:  # fmt: skip
    """The critical value of every class, then that of any other label, from probabilities.

    The rest of a base is what the label will be learnt against: the scores that were ranked,
    log p or log odds, the recalibrated model, how often classes came; the distance of the last
    score from the mean, how much of it leads, and how many others waited.
    """
    usual, labels, sharpness, _, model, own, frequent, uniform, mean, last, lead, _ = memory
    size, count = int(params[2]), len(row)
    scores, logs, guess, often = count + 1, 2 * count + 1, 3 * count + 1, 4 * count + 1
    first, end = 2 * size, 5 * count + 1
    usual, habit = habit_of(usual, waiting)
    kick = last - mean
    base[end], base[end + 1], base[end + 2] = kick, lead, habit
    for k in range(count):
        p = row[k] if row[k] > _LEAST else _LEAST
        base[logs + k] = log(p)
    if params[1] > 0.0:
        for k in range(count):
            p = 1.0 - row[k]
            base[logs + k] -= log(p if p > _LEAST else _LEAST)
            base[scores + k] = -base[logs + k]
    else:
        recalibrate(sharpness, table, first, base, logs, guess, count)
        known = 0.0
        for k in range(count):
            known += table[first + OWN * k + 2]
        for k in range(count):
            p = row[k] if row[k] > _LEAST else _LEAST
            share = 0.9 * table[first + OWN * k + 2] + (0.1 + 0.9 * (1.0 - known)) / count
            base[often + k] = share
            mixed = model * p + own * base[guess + k] + frequent * share + uniform / count
            mixed = mixed if mixed > _LEAST else _LEAST
            base[scores + k] = -log(mixed) - table[first + OWN * k + 1]
    seen = int(labels) if labels < size else size
    if seen == 0:  # nothing is known: every label is in
        for k in range(count + 1):
            base[k] = -_MOST
    else:
        excess, unnamed = _excess(table, size, seen), _UNNAMED
        for k in range(count):
            score = base[scores + k]
            unnamed = score if score > unnamed else unnamed
            base[k] = rank(table, size, seen, params[0], excess, score - lead * kick)
        base[count] = rank(table, size, seen, params[0], excess, unnamed - lead * kick)
    return (usual,) + memory[1:]  # noqa: RUF005


def learn(
    params: Floats, memory: Floats, table: Numbers, annex: Any, base: Numbers, y: float
) -> Floats:
    """What is remembered after a true label, by its place among the classes."""
    (
        usual, labels, sharpness, variance, model, own, frequent, uniform, mean, _, lead, spread,
    ) = memory  # fmt: skip
    size, count, score = int(params[2]), len(base) // 5, _UNNAMED
    kick, led, habit = base[5 * count + 1], base[5 * count + 2], base[5 * count + 3]
    if (y >= 0.0) & (y < count):
        place = int(y)
        score = base[count + 1 + place]
        if params[1] == 0.0:
            at = 2 * size + OWN * place + 1
            table[at] = balance(params, table[at], base[place], habit)
            model, own, frequent, uniform = weigh(
                model, own, frequent, uniform, base, count, place, habit
            )
            rate = params[3] / (1.0 + habit / 3.0)
            first = 1.0 / (labels + 10.0)
            rate = rate if rate > first else first
            sharpness, variance = follow(
                sharpness, variance, rate, table, 2 * size, base, count, place, habit
            )
    expected = led * kick
    remember(table, size, labels, score - expected)
    rate = 1.0 / (labels + 2.0)
    rate = rate if rate > 0.02 else 0.02
    mean = score if labels == 0.0 else mean
    spread += rate * (kick * kick - spread)
    lead += 0.5 * rate * (score - mean - expected) * kick / (spread + 0.1)
    lead = -1.0 if lead < -1.0 else 1.0 if lead > 1.0 else lead
    mean += rate * (score - mean)
    return (
        usual, labels + 1.0, sharpness, variance, model, own, frequent, uniform, mean, score, lead,
        spread,
    )  # fmt: skip


def balance(params: Floats, offset: float, critical: float, habit: float) -> float:
    """A class whose labels are missed at λ = 0 more often than the level says is let in earlier."""
    missed = 1.0 if critical > 0.0 else 0.0
    offset += params[4] / (1.0 + habit / 20.0) * (missed - params[0])
    return -3.0 if offset < -3.0 else 3.0 if offset > 3.0 else offset


def weigh(
    model: float, own: float, frequent: float, uniform: float, base: Numbers, count: int,
    place: int, habit: float,
) -> Floats:  # fmt: skip
    """Weights by the likelihood of the label, and a little of the first ones again."""
    power = 1.0 / (1.0 + habit / 30.0)
    guess, often = base[3 * count + 1 + place], base[4 * count + 1 + place]
    model *= exp(power * base[2 * count + 1 + place])
    own *= exp(power * log(guess if guess > _LEAST else _LEAST))
    frequent *= exp(power * log(often if often > _LEAST else _LEAST))
    uniform *= exp(-power * log(float(count)))
    total = (model + own + frequent + uniform) / (1.0 - _RETURN)
    return (
        model / total + _RETURN * _FIRST[0],
        own / total + _RETURN * _FIRST[1],
        frequent / total + _RETURN * _FIRST[2],
        uniform / total + _RETURN * _FIRST[3],
    )


def follow(
    sharpness: float, variance: float, rate: float, table: Numbers, first: int, base: Numbers,
    count: int, place: int, habit: float,
) -> tuple[float, float]:  # fmt: skip
    """β and b by a step down the gradient of the log loss, and how often the class came."""
    logs, guess, mean, square = 2 * count + 1, 3 * count + 1, 0.0, 0.0
    rest, shrink = 1.0 - recent(habit), 1.0 - 0.02 * rate
    for k in range(count):
        moment = base[guess + k] * base[logs + k]
        mean += moment
        square += moment * base[logs + k]
        at = first + OWN * k
        table[at] = table[at] * shrink - rate * base[guess + k]
        table[at + 2] *= rest
    table[first + OWN * place] += rate
    table[first + OWN * place + 2] += recent(habit)
    variance += 0.2 * rate * (square - mean * mean - variance)
    step = 0.2 * rate * (base[logs + place] - mean) / (variance + 0.1)
    sharpness += -0.1 if step < -0.1 else 0.1 if step > 0.1 else step
    return (0.05 if sharpness < 0.05 else 4.0 if sharpness > 4.0 else sharpness), variance


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

    gives = ("values", "names", "unnamed")
    predict = staticmethod(predict)
    learn = staticmethod(learn)

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

    def sizes(self, classes: int) -> tuple[int, int]:
        """How many numbers a table and a base have where there are so many classes."""
        return 2 * self.size + OWN * classes, 5 * classes + 4

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
        known = Memory(*state.memory)
        offsets = list(state.table.numbers[2 * self.size + 1 :: OWN]) or [0.0]
        return Learnt(
            labels=int(known.labels),
            sharpness=known.sharpness,
            model=known.model,
            balance=float(max(offsets) - min(offsets)),
        )

    def given(self, base: tuple[Any, ...]) -> tuple[Any, ...]:
        """The critical values without a correction: −log p, or −log odds."""
        values, names, _, made = base
        logs = 2 * len(values) + 1
        return -made[logs : logs + len(values)], names, inf

    def kept(self, content: Any = None) -> Classes:
        """What is remembered of classes: nothing yet, or what was saved."""
        return Classes(self.size) if content is None else Classes.restored(content, self.size)
