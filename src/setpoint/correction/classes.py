"""What a live stream remembers of label sets, and the part that says how they learn.

The rules stand in `labels`. Plain Python runs them here by rows of classes: the same sums in the
same order, with each exponential and logarithm asked for alone, so that every number is the same
to the bit.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, log
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setpoint._check import positive, whole
from setpoint.correction import labels as rules
from setpoint.correction.labels import LEAST, MOST, OWN, UNNAMED, Floats, Memory, recent
from setpoint.correction.rules import habit_of
from setpoint.errors import InputError, StateError

Array = npt.NDArray[np.float64]
_NOTHING = np.zeros(1)
FEW = 12
"""Below this many classes one after the other is faster than by rows."""


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
        self.numbers = array("d", bytes(16 * size))

    def copy(self) -> "Classes":
        """One that shares nothing with this one."""
        twin = Classes(self.size)
        twin.names = None if self.names is None else dict(self.names)
        twin.numbers, twin.fast = self.numbers[:], self.fast
        return twin

    def __len__(self) -> int:
        return (len(self.numbers) - 2 * self.size) // OWN

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Classes):
            return NotImplemented
        count = max(len(self), len(other))
        same = np.array_equal(self.padded(count), other.padded(count))
        return same and (self.names, self.size) == (other.names, other.size)

    __hash__ = None  # type: ignore[assignment]

    def padded(self, count: int) -> "array[float]":
        """The table with room for this many classes."""
        return self.numbers + array("d", bytes(8 * OWN * max(count - len(self), 0)))

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
        classes.numbers = array("d", numbers)
        return classes

    def of(self, names: dict[Any, int] | None, count: int) -> "array[float]":
        """The table for the classes of a prediction, 0 for those never seen."""
        if self.straight(names, count):
            return self.numbers
        first, known = 2 * self.size, self.names or {}
        table = self.numbers[:first]
        for place in range(count) if names is None else map(known.get, names):
            at = len(self.numbers) if place is None else first + OWN * place
            table.extend(self.numbers[at : at + OWN] or (0.0,) * OWN)
        return table

    def predict(
        self, params: Floats, memory: Floats, names: dict[Any, int] | None, row: Array,
        waiting: float,
    ) -> tuple[Floats, Array]:  # fmt: skip
        """The next memory, and the base of a row of probabilities."""
        count = len(row)
        table = self.numbers if params[1] else self.of(names, count)
        base = np.zeros(5 * count + 4)
        if self.fast is not None and table is self.numbers:
            view = np.frombuffer(table)
            return (
                self.fast.predict(params, memory, view, _NOTHING, row, float(waiting), base), base
            )  # fmt: skip
        return predict(params, memory, table, row, waiting, base), base

    def learn(
        self, params: Floats, memory: Floats, names: dict[Any, int] | None,
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
            view = np.frombuffer(own)
            after: Floats = self.fast.learn(params, memory, view, _NOTHING, base, float(place))
        else:
            after = learn(params, memory, table, base, place)
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
                known = self.names = dict(self.names or {})
                for name in names:
                    known.setdefault(name, len(known))
                count = len(known)
            self.numbers = self.padded(count)

    def straight(self, names: dict[Any, int] | None, count: int) -> bool:
        """Whether the classes of a prediction lie as in the table."""
        own = self.names
        if count > len(self) or (names is not own and names is not None and own is None):
            return False
        if names is None or names is own:
            return True
        same = list(names) == list(own or ())
        if same:  # seen at once next time; nobody writes into the names of a prediction
            self.names = names
        return same


# The rules as plain Python runs them.


def predict(
    params: Floats, memory: Floats, table: "array[float]", row: Array, waiting: float, base: Array
) -> Floats:  # fmt: skip
    """`labels.predict`."""
    count, view = len(row), np.frombuffer(table)
    usual, habit = habit_of(memory[0], waiting)
    base[5 * count + 1 : 5 * count + 4] = memory[9] - memory[8], memory[10], habit
    if params[1] > 0.0:
        odds, least = base[2 * count + 1 : 3 * count + 1], np.maximum(row, LEAST)
        odds[:] = _each(log, least)
        odds -= _each(log, np.maximum(1.0 - row, LEAST))
        np.negative(odds, out=base[count + 1 : 2 * count + 1])
    elif count < FEW:
        made = base.tolist()
        rules.mix(params, memory, table, row.tolist(), made, count)
        base[:] = made
    else:
        _mix(memory, view[2 * int(params[2]) :], row, base, count)
    _rank_all(params, memory, view, base, count)
    return (usual,) + memory[1:]  # noqa: RUF005


def _mix(memory: Floats, own: Array, row: Array, base: Array, count: int) -> None:
    """`labels.mix`."""
    sharpness, _, model, recalibrated, frequent, uniform = memory[2:8]
    scores, logs, guess, often = base[count + 1 : 5 * count + 1].reshape(4, count)
    slope, offset, share = own[: OWN * count].reshape(count, OWN).T
    p = np.maximum(row, LEAST)
    logs[:] = _each(log, p)
    parts = sharpness * logs
    parts += slope
    parts -= parts.max()
    guess[:] = _each(exp, parts)
    guess /= _total(guess)
    np.multiply(share, 0.9, out=often)
    often += (0.1 + 0.9 * (1.0 - _total(share))) / count
    mixed = model * p
    mixed += recalibrated * guess
    mixed += frequent * often
    mixed += uniform / count
    scores[:] = _each(log, np.maximum(mixed, LEAST))
    np.negative(scores, out=scores)
    scores -= offset


def _rank_all(params: Floats, memory: Floats, table: Array, base: Array, count: int) -> None:
    """`labels.rank_all`."""
    size, labels = int(params[2]), memory[1]
    seen = int(labels) if labels < size else size
    if seen == 0:
        base[: count + 1] = -MOST
        return
    listed = table[size : size + seen]
    excess, last = _excess(listed), float(listed[-1])
    scores = np.empty(count + 1)
    scores[:-1] = base[count + 1 : 2 * count + 1]
    scores[-1] = UNNAMED
    scores[-1] = scores.max()
    scores -= rules.lead_of(memory)
    values, top = base[: count + 1], log(params[0] * (seen + 1.0))
    np.subtract(scores, last, out=values)
    values /= excess
    values += top
    inside = (scores <= last).nonzero()[0]
    if inside.size:
        scores = scores[inside]
        at = listed.searchsorted(scores)
        above, next = (seen - at).astype(float), listed[at]
        gaps = next - listed[at - (at > 0)]
        gaps[at == 0] = inf
        above += (next - scores) / gaps
        values[inside] = top - _each(log, above)


def _excess(listed: Array) -> float:
    """`labels.excess_of`."""
    seen = len(listed)
    if seen < 2:
        return 1.0
    tail = min(seen // 10 + 3, seen - 1)
    return max(_total(listed[seen - tail :]) / tail - float(listed[seen - 1 - tail]), 1e-3)


def learn(
    params: Floats, memory: Floats, table: "array[float]", made: Array, y: float
) -> Floats:  # fmt: skip
    """`labels.learn`."""
    base: Any = made.data
    count, mean, square = len(made) // 5, 0.0, 0.0
    if params[1] == 0.0 and 0.0 <= y < count:
        if count < FEW:
            mean, square = rules.descend(params, memory, table, base, count)
        else:
            own = np.frombuffer(table)[2 * int(params[2]) :]
            mean, square = _descend(memory, own, made, count)
    after, score = rules.advance(params, memory, table, base, y, mean, square)
    _remember(table, int(params[2]), memory[1], score)
    return after


def _descend(memory: Floats, own: Array, base: Array, count: int) -> tuple[float, float]:
    """`labels.descend`."""
    habit = float(base[-1])
    rate = rules.rate_of(memory[1], habit)
    logs, guess = base[2 * count + 1 : 3 * count + 1], base[3 * count + 1 : 4 * count + 1]
    slope, _, share = own[: OWN * count].reshape(count, OWN).T
    moments = guess * logs
    slope *= 1.0 - 0.02 * rate
    slope -= rate * guess
    share *= 1.0 - recent(habit)
    return _total(moments), _total(moments * logs)


def _remember(table: "array[float]", size: int, labels: float, score: float) -> None:
    """`labels.remember`, by slices."""
    came = int(labels)
    count, at = min(came, size), came % size
    end = size + count - (came >= size)
    hole = end if came < size else bisect_left(table, table[at], size, size + count)
    table[at] = score
    if hole > size and table[hole - 1] > score:
        place = bisect_right(table, score, size, hole)
        table[place + 1 : hole + 1] = table[place:hole]
    elif hole < end and table[hole + 1] < score:
        place = bisect_left(table, score, hole + 1, end + 1) - 1
        table[hole:place] = table[hole + 1 : place + 1]
    else:
        place = hole
    table[place] = score


def _each(function: Any, values: Array) -> Array:
    """A function of every number, asked for alone: numpy's own may differ in the last bit."""
    return np.fromiter(map(function, values.tolist()), np.float64, len(values))


def _total(values: Array) -> float:
    """The sum from the first number to the last; numpy's own adds in another order."""
    return float(np.add.accumulate(values)[-1]) + 0.0


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


@dataclass(frozen=True, slots=True)
class Labels:
    """Learns a classifier's errors, for `sets.Threshold` and `sets.Multilabel`.

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

    Examples
    --------
    >>> import setpoint as sp
    >>> stream = sp.Stream(sp.label_sets(coverage=0.9))
    >>> stream.controller.correction
    Labels(level=0.1, several=False, size=500)
    """

    level: float = 0.1
    several: bool = False
    size: int = 500

    gives = ("values", "names", "unnamed")
    predict = staticmethod(rules.predict)
    learn = staticmethod(rules.learn)

    def __post_init__(self) -> None:
        level = positive(self.level, "Labels.level")
        if level >= 1.0:
            raise InputError(f"Labels.level must lie between 0 and 1, got {level}")
        object.__setattr__(self, "level", level)
        object.__setattr__(self, "size", whole(self.size, "Labels.size", 10))
        if not isinstance(self.several, bool):
            raise InputError(f"Labels.several must be True or False, got {self.several!r}")

    @property
    def params(self) -> Floats:
        """The numbers of the rules."""
        return self.level, float(self.several), float(self.size)

    def sizes(self, classes: int) -> tuple[int, int]:
        """The sizes of a table and a base for a number of classes."""
        return 2 * self.size + OWN * classes, 5 * classes + 4

    def init(self) -> Floats:
        """Nothing is known: every label is in the set."""
        return tuple(Memory())

    def learnt(self, state: Any) -> Learnt:
        """Returns what a state has learnt, such as `stream.state`.

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
