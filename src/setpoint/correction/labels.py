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

from math import exp, log
from sys import float_info
from typing import Any, NamedTuple

from setpoint.correction.rules import habit_of

Floats = tuple[float, ...]
Numbers = Any
"""Floats that can be written to: a list or an array."""

OWN = 3
"""How many numbers a table has of each class."""
LEAST = 1e-12
"""Probabilities below it count as this much."""
UNNAMED = -log(LEAST)
"""The score of a label that a prediction does not name."""
_FIRST = 1.0 / 2.6, 1.0 / 2.6, 0.5 / 2.6, 0.1 / 2.6
"""The first weights: the model, the recalibrated model, recent frequencies, a uniform guess."""
_RATE, _FAIR = 0.1, 0.15
"""How fast the recalibration and the offsets of classes follow."""
_RETURN = 0.01
"""The share of the weights that goes back to the first ones with every label."""
MOST = float_info.max


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


def excess_of(table: Numbers, size: int, count: int) -> float:
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


def mix(
    params: Floats, memory: Floats, table: Numbers, row: Numbers, base: Numbers, count: int
) -> None:  # fmt: skip
    """Scores from probabilities: of the mixture less the offsets, and what they were made of."""
    sharpness, _, model, own, frequent, uniform = memory[2:8]
    scores, logs, guess, often = count + 1, 2 * count + 1, 3 * count + 1, 4 * count + 1
    first, known = 2 * int(params[2]), 0.0
    for k in range(count):
        base[logs + k] = log(row[k] if row[k] > LEAST else LEAST)
        known += table[first + OWN * k + 2]
    recalibrate(sharpness, table, first, base, logs, guess, count)
    for k in range(count):
        p = row[k] if row[k] > LEAST else LEAST
        share = 0.9 * table[first + OWN * k + 2] + (0.1 + 0.9 * (1.0 - known)) / count
        base[often + k] = share
        mixed = model * p + own * base[guess + k] + frequent * share + uniform / count
        mixed = mixed if mixed > LEAST else LEAST
        base[scores + k] = -log(mixed) - table[first + OWN * k + 1]


def log_odds(row: Numbers, base: Numbers, count: int) -> None:
    """Scores from the probabilities of several labels."""
    for k in range(count):
        p, q = row[k], 1.0 - row[k]
        odds = log(p if p > LEAST else LEAST) - log(q if q > LEAST else LEAST)
        base[2 * count + 1 + k], base[count + 1 + k] = odds, -odds


def rank_all(params: Floats, memory: Floats, table: Numbers, base: Numbers, count: int) -> None:
    """The critical value of every class, then that of any other label, from scores."""
    size, labels, ahead = int(params[2]), memory[1], lead_of(memory)
    seen = int(labels) if labels < size else size
    if seen == 0:  # nothing is known: every label is in
        for k in range(count + 1):
            base[k] = -MOST
        return
    excess, unnamed = excess_of(table, size, seen), UNNAMED
    for k in range(count):
        score = base[count + 1 + k]
        unnamed = score if score > unnamed else unnamed
        base[k] = rank(table, size, seen, params[0], excess, score - ahead)
    base[count] = rank(table, size, seen, params[0], excess, unnamed - ahead)


def lead_of(memory: Floats) -> float:
    """How far the next score will probably lie from the mean."""
    return memory[10] * (memory[9] - memory[8])


def predict(
    params: Floats, memory: Floats, table: Numbers, annex: Any, row: Numbers, waiting: float,
    base: Numbers,
) -> Floats:  # fmt: skip
    """The critical value of every class, then that of any other label, from probabilities.

    The rest of a base is what the label will be learnt against: the scores that were ranked,
    log p or log odds, the recalibrated model, how often classes came; the distance of the last
    score from the mean, how much of it leads, and how many others waited.
    """
    count = len(row)
    usual, habit = habit_of(memory[0], waiting)
    end = 5 * count + 1
    base[end], base[end + 1], base[end + 2] = memory[9] - memory[8], memory[10], habit
    if params[1] > 0.0:
        log_odds(row, base, count)
    else:
        mix(params, memory, table, row, base, count)
    rank_all(params, memory, table, base, count)
    return (usual,) + memory[1:]  # noqa: RUF005


def learn(
    params: Floats, memory: Floats, table: Numbers, annex: Any, base: Numbers, y: float
) -> Floats:
    """What is remembered after a true label, by its place among the classes."""
    count, mean, square = len(base) // 5, 0.0, 0.0
    if (params[1] == 0.0) & (y >= 0.0) & (y < count):
        mean, square = descend(params, memory, table, base, count)
    after, score = advance(params, memory, table, base, y, mean, square)
    remember(table, int(params[2]), memory[1], score)
    return after


def advance(
    params: Floats, memory: Floats, table: Numbers, base: Numbers, y: float, mean_log: float,
    square: float,
) -> tuple[Floats, float]:  # fmt: skip
    """The next memory, and the score to rank others by; of classes it moves only that of the label.

    Where there is one it is given the mean of log p under the recalibrated model, and of its
    square.
    """
    (
        usual, labels, sharpness, variance, model, own, frequent, uniform, mean, _, lead, spread,
    ) = memory  # fmt: skip
    count, score = len(base) // 5, UNNAMED
    kick, led, habit = base[5 * count + 1], base[5 * count + 2], base[5 * count + 3]
    if (y >= 0.0) & (y < count):
        place = int(y)
        score = base[count + 1 + place]
        if params[1] == 0.0:
            at, rate = 2 * int(params[2]) + OWN * place, rate_of(labels, habit)
            table[at] += rate
            table[at + 1] = balance(params, table[at + 1], base[place], habit)
            table[at + 2] += recent(habit)
            model, own, frequent, uniform = weigh(
                model, own, frequent, uniform, base, count, place, habit
            )
            variance += 0.2 * rate * (square - mean_log * mean_log - variance)
            step = 0.2 * rate * (base[2 * count + 1 + place] - mean_log) / (variance + 0.1)
            sharpness += -0.1 if step < -0.1 else 0.1 if step > 0.1 else step
            sharpness = 0.05 if sharpness < 0.05 else 4.0 if sharpness > 4.0 else sharpness
    expected = led * kick
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
    ), score - expected  # fmt: skip


def balance(params: Floats, offset: float, critical: float, habit: float) -> float:
    """A class whose labels are missed at λ = 0 more often than the level says is let in earlier."""
    missed = 1.0 if critical > 0.0 else 0.0
    offset += _FAIR / (1.0 + habit / 20.0) * (missed - params[0])
    return -3.0 if offset < -3.0 else 3.0 if offset > 3.0 else offset


def weigh(
    model: float, own: float, frequent: float, uniform: float, base: Numbers, count: int,
    place: int, habit: float,
) -> Floats:  # fmt: skip
    """Weights by the likelihood of the label, and a little of the first ones again."""
    power = 1.0 / (1.0 + habit / 30.0)
    guess, often = base[3 * count + 1 + place], base[4 * count + 1 + place]
    model *= exp(power * base[2 * count + 1 + place])
    own *= exp(power * log(guess if guess > LEAST else LEAST))
    frequent *= exp(power * log(often if often > LEAST else LEAST))
    uniform *= exp(-power * log(float(count)))
    total = (model + own + frequent + uniform) / (1.0 - _RETURN)
    return (
        model / total + _RETURN * _FIRST[0],
        own / total + _RETURN * _FIRST[1],
        frequent / total + _RETURN * _FIRST[2],
        uniform / total + _RETURN * _FIRST[3],
    )


def rate_of(labels: float, habit: float) -> float:
    """How fast the recalibration follows: faster at first, slower where labels are late."""
    rate, first = _RATE / (1.0 + habit / 3.0), 1.0 / (labels + 10.0)
    return rate if rate > first else first


def descend(
    params: Floats, memory: Floats, table: Numbers, base: Numbers, count: int
) -> tuple[float, float]:
    """What a label changes of every class: b goes down the gradient, recent ones count more.

    Returns the mean of log p under the recalibrated model, and of its square.
    """
    habit, first = base[5 * count + 3], 2 * int(params[2])
    rate = rate_of(memory[1], habit)
    logs, guess, mean, square = 2 * count + 1, 3 * count + 1, 0.0, 0.0
    rest, shrink = 1.0 - recent(habit), 1.0 - 0.02 * rate
    for k in range(count):
        moment = base[guess + k] * base[logs + k]
        mean += moment
        square += moment * base[logs + k]
        at = first + OWN * k
        table[at] = table[at] * shrink - rate * base[guess + k]
        table[at + 2] *= rest
    return mean, square
