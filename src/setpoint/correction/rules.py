"""The rules of `correction.Intervals`: pure functions of floats, which also run compiled.

A forecast gives two ends, or a point. From past labels these rules learn, online and without
units, what is wrong with them. There are five:

    believe   a wild label counts only as far as the nearer of two expectations allows
    error     a ridge regression of the forecast's error on what was seen of it last
    scale     how large the rest is now, from its recent size, the given width and its movement
    tails     how far the two ends lie from the centre, in units of that scale
    trust     whether the ends as they were given, moved a little, do better

`predict` makes the base of a row and `learn` learns from its label. `predict_further` and
`learn_further` add a second, slower mean of the error, `predict_seasonal` and `learn_seasonal` a
season besides: a table with a cell for each phase, of which a row uses its own.
"""

from math import exp, inf, sqrt
from typing import Any, NamedTuple

__all__ = [
    "Base", "Further", "Memory", "ends_sound", "habit_of", "learn", "learn_further",
    "learn_seasonal", "predict", "predict_further", "predict_seasonal", "row_sound",
]  # fmt: skip

Floats = tuple[float, ...]
Table = Any
"""Rows of floats: lists in plain Python, an array of two dimensions in compiled code."""


class Memory(NamedTuple):
    """What the correction remembers.

    `waiting` is the mean number of other predictions that wait. `labels` counts the labels, and
    `head` is how many more what was known before counts: 1 for the width given first. Before the
    first label lengths are in units of `size`, which the given width then tells. `error` is the
    last error, `mean` an average of past ones, `middle` the last forecast. `a00` … `a22` and `b0` …
    `b2` are the averages the regression rests on, `w0` … `w2` its weights. `size` and `recent_size`
    are the slow and the fast average of what the regression leaves, `width` and `movement` those of
    the given width and of how far forecasts move; `k0`, `k1`, `k2` say how much each of these three
    counts. `low_tail` and `high_tail` are the tails around the corrected centre, `low_shift` and
    `high_shift` how far the given ends are moved, and `regret` is how much worse the corrected ends
    did than these.
    """

    waiting: float = 0.0
    labels: float = 0.0
    head: float = 1.0
    error: float = 0.0
    mean: float = 0.0
    middle: float = 0.0
    a00: float = 0.0
    a10: float = 0.0
    a11: float = 0.0
    a20: float = 0.0
    a21: float = 0.0
    a22: float = 0.0
    b0: float = 0.0
    b1: float = 0.0
    b2: float = 0.0
    w0: float = 0.0
    w1: float = 0.0
    w2: float = 0.0
    size: float = 1.0
    recent_size: float = 1.0
    width: float = 0.0
    movement: float = 1.0
    k0: float = 0.0
    k1: float = 0.0
    k2: float = 0.0
    low_tail: float = 0.0
    high_tail: float = 0.0
    low_shift: float = 0.0
    high_shift: float = 0.0
    regret: float = 0.0


class Further(NamedTuple):
    """What is remembered besides with two means of the error or a season.

    `slow_mean` is the second mean; `a30` … `w4` are the regression's for two more features, `k3`
    says how much the size of errors in this phase counts. `next_phase` is that of the next row.
    The last three are the cell of a phase: mean error, mean size of the rest, and their number.
    """

    slow_mean: float = 0.0
    a30: float = 0.0
    a31: float = 0.0
    a32: float = 0.0
    a33: float = 0.0
    b3: float = 0.0
    w3: float = 0.0
    a40: float = 0.0
    a41: float = 0.0
    a42: float = 0.0
    a43: float = 0.0
    a44: float = 0.0
    b4: float = 0.0
    w4: float = 0.0
    k3: float = 0.0
    next_phase: float = 0.0
    cell_error: float = 0.0
    cell_size: float = 0.0
    cell_labels: float = 0.0


class Base(NamedTuple):
    """A prediction as its receipt holds it.

    The interval at λ is [centre − left·e^λ, centre + right·e^λ]. The rest is what the label will be
    judged against: the given `middle` and `half` width, the features of the error (`x0`, `x1`,
    `x2`) and of the scale (`f0`, `f1`, `f2`), the expected error, `movement`, scale, tails and
    shifts, and the `habit` of how many others wait. `x3`, `x4`, `f3` and `phase` are there with two
    means or a season.
    """

    centre: float
    left: float
    right: float
    middle: float
    half: float
    expected: float
    x0: float
    x1: float
    x2: float
    f0: float
    f1: float
    f2: float
    movement: float
    scale: float
    low_tail: float
    high_tail: float
    low_shift: float
    high_shift: float
    habit: float
    x3: float = 0.0
    x4: float = 0.0
    f3: float = 0.0
    phase: float = 0.0


def ends_sound(columns: Floats) -> bool:
    """Whether the two ends are numbers whose squares are still numbers."""
    return (-1e150 < columns[0] < 1e150) & (-1e150 < columns[1] < 1e150)


def row_sound(columns: Floats) -> bool:
    """Whether the ends are such numbers and the phase is a whole number, or NaN for the next."""
    phase = columns[2]
    return ends_sound(columns) & ((phase != phase) | ((-1e9 < phase < 1e9) & (phase % 1.0 == 0.0)))


def predict(
    params: Floats, memory: Floats, table: Table, row: Floats, waiting: float
) -> tuple[Floats, Floats]:
    """The memory once a set is made beside `waiting` others, and the base of a row."""
    mean, habit = habit_of(memory[0], waiting)
    base = _base(params, memory, row, habit, 0.0, 0.0, 0.0)
    return (mean,) + memory[1:], base  # noqa: RUF005


def habit_of(mean: float, waiting: float) -> tuple[float, float]:
    """The mean number of others that wait, and the habit: that, or how many wait now."""
    mean += 0.01 * (waiting - mean)
    return mean, waiting if waiting > mean else mean


def _base(
    params: Floats, memory: Floats, row: Floats, habit: float, slow_mean: float, more: float,
    press: float,
) -> Floats:  # fmt: skip
    """The interval to stretch, and all that its label will be judged against.

    `more` and `press` are what further features add to the expected error and to the logarithm of
    the scale. Small helpers are written out: in plain Python a call costs more than its arithmetic.
    """
    (
        _, labels, _, error, mean, last_middle, _, _, _, _, _, _, _, _, _, w0, w1, w2,
        size, recent_size, width, movement, k0, k1, k2,
        low_tail, high_tail, low_shift, high_shift, regret,
    ) = memory  # fmt: skip
    lower, upper = row[0], row[1]
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    half = half if half > 0.0 else -half
    x0, x1, x2, f1, f2 = error - mean, 0.0, mean - slow_mean, 0.0, 0.0
    reach = 1.0
    if labels > 0.0:
        x1 = middle - last_middle
        travelled = (x1 if x1 > 0.0 else -x1) + size
        f1 = (half - width) / (half + width) if half + width > 0.0 else 0.0
        f2 = (travelled - movement) / (travelled + movement) if travelled + movement > 0.0 else 0.0
    else:  # the memory is in units of the size of errors, which the given width tells
        unit = half / width
        size, recent_size, x0, x2 = unit * size, unit * recent_size, unit * x0, unit * x2
        travelled = size
        # Nothing is known of a point forecast: the set is everything.
        reach = 1.0 if half > 0.0 else inf
    expected = w0 * x0 + w1 * x1 + w2 * x2 + more
    f0 = (recent_size - size) / (recent_size + size) if recent_size + size > 0.0 else 0.0
    scale = size * exp(k0 * f0 + k1 * f1 + k2 * f2 + press)
    # The corrected ends and the ends as given, in the share that trust decides.
    share = 1.0 / (1.0 + exp(params[9] * regret)) if params[9] > 0.0 else 1.0
    rest = 1.0 - share
    # However wide rows were, a narrow one keeps a share of its width: it can be that sure.
    least = 0.1 * half
    low, high = half + scale * low_shift, half + scale * high_shift
    low, high = low if low > least else least, high if high > least else least
    below = share * (expected - scale * low_tail) - rest * low
    above = share * (expected + scale * high_tail) + rest * high
    centre = 0.5 * (below + above) if params[2] > 0.0 else 0.0
    left, right = centre - below, above - centre
    centre = middle + centre
    # The centre lies in the support, so that no set is empty; the far end stays where it was.
    if centre < params[12]:
        kept, centre = centre + right - params[12], params[12]
        right = kept if kept > 0.5 * right else 0.5 * right
    elif centre > params[13]:
        kept, centre = params[13] - centre + left, params[13]
        left = kept if kept > 0.5 * left else 0.5 * left
    return (
        centre,
        reach if reach == inf else left if left > 0.0 else 0.0,
        reach if reach == inf else right if right > 0.0 else 0.0,
        middle, half, expected, x0, x1, x2, f0, f1, f2, travelled, scale,
        low_tail, high_tail, low_shift, high_shift, habit,
    )  # fmt: skip


def learn(params: Floats, memory: Floats, table: Table, base: Floats, y: float) -> Floats:
    """What is remembered after a label, judged against what was shown."""
    return _learnt(params, memory, base, y)


def _learnt(params: Floats, memory: Floats, base: Floats, y: float) -> Floats:
    level, two_means, recentre, slow, medium, fast, ridge, wild, step, _, far, _, _, _ = params
    (
        waiting, labels, head, last_error, mean, _,
        a00, a10, a11, a20, a21, a22, b0, b1, b2, w0, w1, w2,
        size, recent_size, width, movement, k0, k1, k2,
        low_tail, high_tail, low_shift, high_shift, regret,
    ) = memory  # fmt: skip
    (
        _, _, _, middle, half, expected, x0, x1, x2, f0, f1, f2, travelled, scale,
        shown_low, shown_high, shown_low_shift, shown_high_shift, habit,
    ) = base  # fmt: skip
    error = y - middle
    if not (-1e150 < error < 1e150):  # it counts as a loss and teaches nothing
        return memory
    if labels == 0.0:  # from here on lengths are in the unit of y
        unit = half / width
        square = unit * unit
        last_error, mean, size, recent_size = (
            unit * last_error,
            unit * mean,
            unit * size,
            unit * recent_size,
        )
        a00, a10, a11, a20, a21, a22 = (
            square * a00,
            square * a10,
            square * a11,
            square * a20,
            square * a21,
            square * a22,
        )
        b0, b1, b2 = square * b0, square * b1, square * b2
        width, movement = half, unit * movement
        head = head if half > 0.0 else 0.0
    labels += 1.0
    share = 1.0 / (labels + head)
    pace = 1.0 + 0.2 * habit  # late labels of one horizon are one event
    calm = slow / pace
    rate = calm if calm > share else share
    # Believe.
    rest, jump = error - expected, error - last_error
    distance = rest if rest > 0.0 else -rest
    most = scale if scale > recent_size else recent_size
    most = wild * (most if most > size else size)
    if most > 0.0:
        leap = jump if jump > 0.0 else -jump
        nearer = distance <= leap
        if distance > most:
            rest, distance = (most if rest > 0.0 else -most), most
        jump = jump if leap <= most else most if jump > 0.0 else -most
        error = expected + rest if nearer else last_error + jump
    weight = 1.0
    if scale > 0.0:
        # Trust: the pinball loss of the corrected ends and of the given ones.
        tail = 0.5 * level
        least = 0.1 * half
        lower, upper = half + scale * shown_low_shift, half + scale * shown_high_shift
        lower, upper = -(lower if lower > least else least), upper if upper > least else least
        own_lower, own_upper = expected - scale * shown_low, expected + scale * shown_high
        worse = tail * (own_upper - own_lower - upper + lower)
        if error > own_upper:
            worse += error - own_upper
        elif error < own_lower:
            worse += own_lower - error
        beyond, short = error > upper, error < lower
        if beyond:
            worse -= error - upper
        elif short:
            worse -= lower - error
        worse = worse / scale
        worse = -2.0 if worse < -2.0 else 2.0 if worse > 2.0 else worse
        regret += calm * (worse - regret)
        high_shift += rate * (1.0 - tail if beyond else -tail)
        low_shift += rate * (1.0 - tail if short else -tail)
        # Tails.
        tail_rate = slow if slow > share else share
        z = rest / scale
        high_tail += tail_rate * (1.0 - tail if z > shown_high else -tail)
        low_tail += tail_rate * (1.0 - tail if -z > shown_low else -tail)
        # Scale.
        surprise = distance / scale
        pull = step / pace * ((surprise if surprise < wild else wild) - 1.0)
        k0 += pull * f0
        k1 += pull * f1
        k2 += pull * f2
        k0 = -2.0 if k0 < -2.0 else 2.0 if k0 > 2.0 else k0
        k1 = -2.0 if k1 < -2.0 else 2.0 if k1 > 2.0 else k1
        k2 = -2.0 if k2 < -2.0 else 2.0 if k2 > 2.0 else k2
        if distance > far * scale:
            weight = far * scale / distance
    # Error: a far label weighs less.
    if recentre > 0.0:
        y0, y1, y2 = weight * x0, weight * x1, weight * x2
        a00 += rate * (y0 * x0 - a00)
        a10 += rate * (y1 * x0 - a10)
        a11 += rate * (y1 * x1 - a11)
        a20 += rate * (y2 * x0 - a20)
        a21 += rate * (y2 * x1 - a21)
        a22 += rate * (y2 * x2 - a22)
        b0 += rate * (y0 * error - b0)
        b1 += rate * (y1 * error - b1)
        b2 += rate * (y2 * error - b2)
        # Cholesky: a direction that rounding has swallowed gets no weight.
        penalty = ridge * size * size
        pivot = a00 + penalty
        c00 = sqrt(pivot) if pivot > 1e-13 * a00 else inf
        c10, c20 = a10 / c00, a20 / c00
        pivot = a11 + penalty - c10 * c10
        c11 = sqrt(pivot) if pivot > 1e-13 * a11 else inf
        c21 = (a21 - c20 * c10) / c11
        pivot = a22 + penalty - c20 * c20 - c21 * c21
        c22 = sqrt(pivot) if pivot > 1e-13 * a22 else inf
        z0 = b0 / c00
        z1 = (b1 - c10 * z0) / c11
        w2 = (b2 - c20 * z0 - c21 * z1) / c22 / c22
        w1 = (z1 - c21 * w2) / c11
        w0 = (z0 - c10 * w1 - c20 * w2) / c00
    recent_size += (fast if fast > share else share) * (distance - recent_size)
    size += rate * (distance - size)
    width += rate * (half - width)
    movement += rate * (travelled - movement)
    quick = fast if two_means > 0.0 else medium
    mean += (quick if quick > share else share) * (error - mean)
    return (
        waiting, labels, head, error, mean, middle,
        a00, a10, a11, a20, a21, a22, b0, b1, b2, w0, w1, w2,
        size, recent_size, width, movement, k0, k1, k2,
        low_tail, high_tail, low_shift, high_shift, regret,
    )  # fmt: skip


# Two means, and a season. The first 30 numbers of a memory are those of `Memory`, the first 19 of a
# base those of the rules above. Tuples are joined as numba knows it.


def predict_further(
    params: Floats, memory: Floats, table: Table, row: Floats, waiting: float
) -> tuple[Floats, Floats]:
    """As `predict`, with two means of the error."""
    mean, habit = habit_of(memory[0], waiting)
    return (mean,) + memory[1:], _further(params, memory, row, habit, 0.0)  # noqa: RUF005


def predict_seasonal(
    params: Floats, memory: Floats, table: Table, row: Floats, waiting: float
) -> tuple[Floats, Floats]:
    """As `predict`, with one or two means of the error and a season.

    The phase of a row is as given, or the one after that of the last row.
    """
    phase = (row[2] if row[2] == row[2] else memory[45]) % params[11]
    cell = table[int(phase)]
    mean, habit = habit_of(memory[0], waiting)
    known = memory + (cell[0], cell[1], cell[2])  # noqa: RUF005
    base = _further(params, known, row, habit, phase)
    return (mean,) + memory[1:45] + ((phase + 1.0) % params[11],), base  # noqa: RUF005


def learn_seasonal(params: Floats, memory: Floats, table: Table, base: Floats, y: float) -> Floats:
    """As `learn_further`, with the cell of the row's phase, which is written in place."""
    cell = table[int(base[22])]
    known = memory + (cell[0], cell[1], cell[2])  # noqa: RUF005
    after = learn_further(params, known, table, base, y)
    cell[0], cell[1], cell[2] = after[46], after[47], after[48]
    return after[:46]


def _further(params: Floats, memory: Floats, row: Floats, habit: float, phase: float) -> Floats:
    two_means, period = params[1], params[11]
    mean, size = memory[4], memory[18]
    slow_mean, w3, w4, k3 = memory[30], memory[36], memory[43], memory[44]
    cell_error, cell_size, cell_labels = memory[46], memory[47], memory[48]
    slow_mean = slow_mean if two_means > 0.0 else 0.0
    season = cell_error - (slow_mean if two_means > 0.0 else mean) if period > 0.0 else 0.0
    x3 = slow_mean if two_means > 0.0 else season
    x4 = season if two_means > 0.0 else 0.0
    known = (cell_labels > 0.0) & (cell_size + size > 0.0)
    f3 = (cell_size - size) / (cell_size + size) if known else 0.0
    more = w3 * x3 + w4 * x4
    first = _base(params, memory[:30], row, habit, slow_mean, more, k3 * f3)
    return first + (x3, x4, f3, phase)  # noqa: RUF005


def learn_further(params: Floats, memory: Floats, table: Table, base: Floats, y: float) -> Floats:
    """As `learn`, and what two more features and a cell of the season learn."""
    _, _, recentre, slow, medium, _, ridge, wild, step, _, far, period, _, _ = params
    core = _learnt(params, memory[:30], base[:19], y)
    if core[1] == memory[1]:
        return memory
    (
        slow_mean, a30, a31, a32, a33, b3, w3, a40, a41, a42, a43, a44, b4, w4, k3, next_phase,
        cell_error, cell_size, cell_labels,
    ) = memory[30:]  # fmt: skip
    x3, x4, f3 = base[19], base[20], base[21]
    labels, head, error = core[1], core[2], core[3]
    share, pace = 1.0 / (labels + head), 1.0 + 0.2 * base[18]
    rate = slow / pace if slow / pace > share else share
    size, recent_size, scale = memory[18], memory[19], base[13]
    if labels == 1.0:
        unit = base[4] / memory[20]
        size, recent_size = unit * size, unit * recent_size
    distance = abs(y - base[3] - base[5])
    most = scale if scale > recent_size else recent_size
    most = wild * (most if most > size else size)
    distance = most if (distance > most) & (most > 0.0) else distance
    weight = 1.0
    if scale > 0.0:
        surprise = distance / scale
        k3 += step / pace * ((surprise if surprise < wild else wild) - 1.0) * f3
        k3 = -2.0 if k3 < -2.0 else 2.0 if k3 > 2.0 else k3
        weight = far * scale / distance if distance > far * scale else 1.0
    w0, w1, w2 = core[15], core[16], core[17]
    if recentre > 0.0:
        a00, a10, a11, a20, a21, a22, b0, b1, b2 = core[6:15]
        x0, x1, x2, y3, y4 = base[6], base[7], base[8], weight * x3, weight * x4
        a30 += rate * (y3 * x0 - a30)
        a31 += rate * (y3 * x1 - a31)
        a32 += rate * (y3 * x2 - a32)
        a33 += rate * (y3 * x3 - a33)
        a40 += rate * (y4 * x0 - a40)
        a41 += rate * (y4 * x1 - a41)
        a42 += rate * (y4 * x2 - a42)
        a43 += rate * (y4 * x3 - a43)
        a44 += rate * (y4 * x4 - a44)
        b3 += rate * (y3 * error - b3)
        b4 += rate * (y4 * error - b4)
        # A feature that is always 0 gets weight 0 and changes no other.
        penalty = ridge * size * size
        c00 = _root(a00 + penalty, a00)
        c10, c20, c30, c40 = a10 / c00, a20 / c00, a30 / c00, a40 / c00
        c11 = _root(a11 + penalty - c10 * c10, a11)
        c21, c31 = (a21 - c20 * c10) / c11, (a31 - c30 * c10) / c11
        c41 = (a41 - c40 * c10) / c11
        c22 = _root(a22 + penalty - c20 * c20 - c21 * c21, a22)
        c32 = (a32 - c30 * c20 - c31 * c21) / c22
        c42 = (a42 - c40 * c20 - c41 * c21) / c22
        c33 = _root(a33 + penalty - c30 * c30 - c31 * c31 - c32 * c32, a33)
        c43 = (a43 - c40 * c30 - c41 * c31 - c42 * c32) / c33
        c44 = _root(a44 + penalty - c40 * c40 - c41 * c41 - c42 * c42 - c43 * c43, a44)
        z0 = b0 / c00
        z1 = (b1 - c10 * z0) / c11
        z2 = (b2 - c20 * z0 - c21 * z1) / c22
        z3 = (b3 - c30 * z0 - c31 * z1 - c32 * z2) / c33
        w4 = (b4 - c40 * z0 - c41 * z1 - c42 * z2 - c43 * z3) / c44 / c44
        w3 = (z3 - c43 * w4) / c33
        w2 = (z2 - c32 * w3 - c42 * w4) / c22
        w1 = (z1 - c21 * w2 - c31 * w3 - c41 * w4) / c11
        w0 = (z0 - c10 * w1 - c20 * w2 - c30 * w3 - c40 * w4) / c00
    slower = medium / 3.0
    slow_mean += (slower if slower > share else share) * (error - slow_mean)
    if period > 0.0:
        cell_labels += 1.0
        cell_error += _cell_rate(cell_labels + 1.0) * (error - cell_error)
        cell_size += _cell_rate(cell_labels) * (distance - cell_size)
    further = (
        slow_mean, a30, a31, a32, a33, b3, w3, a40, a41, a42, a43, a44, b4, w4, k3, next_phase,
        cell_error, cell_size, cell_labels,
    )  # fmt: skip
    return core[:15] + (w0, w1, w2) + core[18:] + further  # noqa: RUF005


def _cell_rate(labels: float) -> float:
    return 0.2 if labels > 5.0 else 1.0 / labels


def _root(pivot: float, diagonal: float) -> float:
    """The root of a pivot; a direction that rounding has swallowed gets no weight."""
    return sqrt(pivot) if pivot > 1e-13 * diagonal else inf
