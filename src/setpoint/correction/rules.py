"""The rules of `correction.Intervals`: pure functions of floats, which also run compiled.

A forecast gives two ends, or a point. From past labels these rules learn, online and without
units, what is wrong with them:

    believe   a wild label counts only as far as the nearer of two expectations allows
    error     a ridge regression of the forecast's error on what was seen of it last, and on what
              the tables of its features and of its season say
    scale     how large the rest is now: its recent size, the given width, the forecast's movement,
              and what the tables say
    tails     how far the two ends lie from the centre, in units of that scale
    trust     whether the ends as they were given, moved a little, do better
    support   an end that labels hit and none passed

`predict` makes the base of a row and `learn` learns from its label. The tables are those of
`setpoint.correction.tables` and `setpoint.correction.seasons`.
"""

from math import exp, inf, sqrt
from typing import Any, NamedTuple

from setpoint.correction.seasons import (
    CANDIDATES,
    SCOUT,
    candidates_note,
    candidates_told,
    candidates_worth,
    season_note,
    season_told,
    stands_out,
)
from setpoint.correction.tables import TABLE, note, position, told

Floats = tuple[float, ...]
Numbers = Any
"""Floats that can be written to: a list in plain Python, an array in compiled code."""

OWN = 6
"""The numbers of the rules before what kind each feature is of: level, recentre, support, grid,
period and how many features there are."""
HITS = 5.0
"""How many labels must hit an end before it counts as the end of the support."""
_SLOW, _MEDIUM, _FAST = 0.007, 0.15, 0.3
_RIDGE, _SHY, _WILD, _FAR, _STEP, _TRUST = 0.1, 2.0, 15.0, 4.0, 0.05, 50.0
_CALM, _TAME = 3.0, 5.0
"""Late labels of one horizon are one event: rates fall by 1 + habit/3, steps by 1 + habit/5."""


class Memory(NamedTuple):
    """What the correction remembers besides its tables.

    `born` counts the labels since the annex came into being, from 1; 0 before that. `waiting` is
    the mean number of other predictions that wait, `time` that of the next row. `labels` counts the
    labels, and `head` is how many more what was known before counts: 1 for the width given first.
    Before the first label lengths are in units of `size`, which the given width then tells. `error`
    is the last error, `mean` an average of past ones, `middle` the last forecast. `size` and
    `recent_size` are the slow and the fast average of what the regression leaves, `width` and
    `movement` those of the given width and of how far forecasts move. `low_tail` and `high_tail`
    are the tails around the corrected centre, `low_shift` and `high_shift` how far the given ends
    are moved, and `regret` is how much worse the corrected ends did than these. `season` says which
    candidate is in use, from 1, and `errors` and `surprises` are the mean squares of what seasons
    are to explain. `low_hits` labels were equal to the `lowest`, `high_hits` to the `highest`.
    `relative` is the size of errors against that of forecasts, as others have it: what a first
    forecast without a width is worth.
    """

    born: float = 0.0
    waiting: float = 0.0
    time: float = 0.0
    labels: float = 0.0
    head: float = 1.0
    error: float = 0.0
    mean: float = 0.0
    middle: float = 0.0
    size: float = 1.0
    recent_size: float = 1.0
    width: float = 0.0
    movement: float = 1.0
    low_tail: float = 0.0
    high_tail: float = 0.0
    low_shift: float = 0.0
    high_shift: float = 0.0
    regret: float = 0.0
    season: float = 0.0
    errors: float = 1.0
    surprises: float = 1.0
    lowest: float = 0.0
    highest: float = 0.0
    low_hits: float = 0.0
    high_hits: float = 0.0
    relative: float = 0.0


class Base(NamedTuple):
    """The first numbers of a prediction as its receipt holds it.

    The interval at λ is [centre − low·e^λ, centre + high·e^λ], cut at `least`, `most` or both if
    `cut` is 1, 2 or 3, its ends on multiples of `grid` if that is not 0. The rest is what the label
    will be judged against: the given `middle` and `half` width, the `expected` error, the `scale`
    of the rest, how far the forecast `travelled`, the mean error, the time and the habit of waiting
    then, and the tails and shifts as shown.

    After them come what the regression and then what the scale looked at, 5 numbers each and one
    for each feature, the season being the last; the values of the features; and what the table of
    each season said of the error and of its size.
    """

    centre: float
    low: float
    high: float
    least: float
    most: float
    cut: float
    grid: float
    middle: float
    half: float
    expected: float
    scale: float
    travelled: float
    mean: float
    time: float
    habit: float
    low_tail: float
    high_tail: float
    low_shift: float
    high_shift: float


_X = len(Base._fields)


def _seasons_of(period: float) -> int:
    """How many seasons are compared: all candidates if the period is to be found."""
    return len(CANDIDATES) if period < 0.0 else 0


def base_size(features: int, period: float) -> int:
    """The number of values in a base."""
    return _X + 2 * (5 + features) + features + 2 * _seasons_of(period)


def table_at(features: int) -> tuple[int, int, int, int, int]:
    """Where the regression's sums with the error, its weights, those of the scale, the tables of
    the features and the scouts of seasons begin; first come the sums of products.
    """
    n = 5 + features
    sums = n * (n + 1) // 2
    tables = sums + 3 * n
    return sums, sums + n, sums + 2 * n, tables, tables + TABLE * (features + 1)


def sound(row: Floats) -> bool:
    """Whether numbers are a prediction: finite ends, a whole number or NaN as time."""
    ends = (-1e150 < row[0] < 1e150) & (-1e150 < row[1] < 1e150)
    time = row[2]
    return ends & ((time != time) | ((-1e9 < time < 1e9) & (time % 1.0 == 0.0)))


def habit_of(mean: float, waiting: float) -> tuple[float, float]:
    """The mean number of others that wait, and the habit: that, or how many wait now."""
    mean += 0.01 * (waiting - mean)
    return mean, waiting if waiting > mean else mean


def predict(
    params: Floats, memory: Floats, table: Numbers, annex: Numbers, row: Numbers, waiting: float,
    base: Numbers,
) -> Floats:  # fmt: skip
    """Makes the base of a row; what is remembered once it is shown."""
    (
        born, usual, time, labels, _, last_error, mean, last_middle, size, recent_size, width,
        movement, low_tail, high_tail, low_shift, high_shift, regret, season, _, _, lowest, highest,
        low_hits, high_hits, relative,
    ) = memory  # fmt: skip
    period, count = params[4], int(params[5])
    n = 5 + count
    _, weights, scales, tables, _ = table_at(count)
    usual, habit = habit_of(usual, waiting)
    lower, upper = row[0], row[1]
    time = row[2] if row[2] == row[2] else time
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    half = half if half > 0.0 else -half
    move, f1, f2 = 0.0, 0.0, 0.0
    if labels > 0.0:
        move = middle - last_middle
        travelled = (move if move > 0.0 else -move) + size
        f1 = (half - width) / (half + width) if half + width > 0.0 else 0.0
        f2 = (travelled - movement) / (travelled + movement) if travelled + movement > 0.0 else 0.0
        known = 1.0
    else:  # the memory is in units of the size of errors, which the given width tells
        unit = _unit(half, width, middle, relative)
        size, recent_size, last_error, mean = (
            unit * size, unit * recent_size, unit * last_error, unit * mean,
        )  # fmt: skip
        travelled, known = size, unit
    f0 = (recent_size - size) / (recent_size + size) if recent_size + size > 0.0 else 0.0
    at, looks = _X, _X + n
    base[at], base[at + 1], base[at + 2] = last_error - mean, move, mean
    base[looks], base[looks + 1], base[looks + 2] = f0, f1, f2
    expected = table[weights] * (last_error - mean) + table[weights + 1] * move
    expected += table[weights + 2] * mean
    press = table[scales] * f0 + table[scales + 1] * f1 + table[scales + 2] * f2
    # The tables: of the forecast itself, then of each feature.
    for i in range(count + 1):
        value, category = middle, 0.0
        if i > 0:
            value, category = row[2 + i], params[OWN + i - 1]
            base[looks + n + i - 1] = value
        place = tables + TABLE * i
        error, contrast = told(table, place, position(table, place, category, value), size)
        base[at + 3 + i], base[looks + 3 + i] = error, contrast
        expected += table[weights + 3 + i] * error
        press += table[scales + 3 + i] * contrast
    # The season.
    error, contrast, place = 0.0, 0.0, looks + n + count
    if period > 0.0:
        error, contrast = season_told(annex, 2 * (int(time) % int(period)), size)
    elif born > 0.0:
        error, contrast = candidates_told(annex, int(time), size, int(season), base, place)
    elif period < 0.0:
        for i in range(place, place + 2 * len(CANDIDATES)):
            base[i] = 0.0
    base[at + n - 1], base[looks + n - 1] = error, contrast
    expected += table[weights + n - 1] * error
    press += table[scales + n - 1] * contrast
    scale = size * exp(-20.0 if press < -20.0 else 20.0 if press > 20.0 else press)
    # The corrected ends and the ends as given, in the share that trust decides.
    share = 1.0 / (1.0 + exp(_TRUST * regret))
    given = 1.0 - share
    # However wide rows were, a narrow one keeps a share of its width: it can be that sure.
    narrow = 0.1 * half
    low, high = half + scale * low_shift, half + scale * high_shift
    low, high = low if low > narrow else narrow, high if high > narrow else narrow
    below = share * (expected - scale * low_tail) - given * low
    above = share * (expected + scale * high_tail) + given * high
    centre = 0.5 * (below + above) if params[1] > 0.0 else 0.0
    low, high = centre - below, above - centre
    centre = middle + centre
    low, high = low if low > 0.0 else 0.0, high if high > 0.0 else 0.0
    # The centre lies in the support, so that no set is empty; the far end stays where it was.
    cut, first, final = 0.0, params[-2], params[-1]
    if params[2] > 0.0:
        if low_hits >= HITS:
            cut, first = 1.0, lowest if lowest > first else first
        if high_hits >= HITS:
            cut, final = cut + 2.0, highest if highest < final else final
    if centre < first:
        kept, centre = centre + high - first, first
        high = kept if kept > 0.5 * high else 0.5 * high
    elif centre > final:
        kept, centre = final - centre + low, final
        low = kept if kept > 0.5 * low else 0.5 * low
    if known <= 0.0:  # nothing is known of a point forecast: the set is everything
        low, high = inf, inf
    base[0], base[1], base[2], base[3], base[4] = centre, low, high, lowest, highest
    base[5], base[6] = cut, params[3]
    base[7], base[8], base[9], base[10], base[11] = middle, half, expected, scale, travelled
    base[12], base[13], base[14] = mean, time, habit
    base[15], base[16], base[17], base[18] = low_tail, high_tail, low_shift, high_shift
    return (born, usual, time + 1.0) + memory[3:]  # noqa: RUF005


def _unit(half: float, width: float, middle: float, relative: float) -> float:
    """The size of errors before the first label: from the given width, or from the forecast."""
    return half / width if half > 0.0 else relative * (middle if middle > 0.0 else -middle)


def learn(
    params: Floats, memory: Floats, table: Numbers, annex: Numbers, base: Numbers, y: float
) -> Floats:
    """What is remembered after a label, judged against what was shown."""
    (
        born, waiting, time, labels, head, last_error, mean, _, size, recent_size, width,
        movement, low_tail, high_tail, low_shift, high_shift, regret, season, errors, surprises,
        lowest, highest, low_hits, high_hits, relative,
    ) = memory  # fmt: skip
    middle, half, expected, scale = base[7], base[8], base[9], base[10]
    habit = base[14]
    error = y - middle
    if not (-1e150 < error < 1e150):  # it counts as a loss and teaches nothing
        return memory
    level, period, count = params[0], params[4], int(params[5])
    n = 5 + count
    products, weights, scales, tables, scouts = table_at(count)
    if labels == 0.0:  # from here on lengths are in the unit of y
        unit = _unit(half, width, middle, relative)
        last_error, mean, size, recent_size = (
            unit * last_error, unit * mean, unit * size, unit * recent_size,
        )  # fmt: skip
        for i in range(weights):
            table[i] *= unit * unit
        width, movement, head = half, unit * movement, head if unit > 0.0 else 0.0
    labels += 1.0
    first = 1.0 / (labels + head)
    calm = _SLOW / (1.0 + habit / _CALM)
    rate = calm if calm > first else first
    # Believe.
    rest, jump = error - expected, error - last_error
    distance = rest if rest > 0.0 else -rest
    most = scale if scale > recent_size else recent_size
    most = _WILD * (most if most > size else size)
    if most > 0.0:
        leap = jump if jump > 0.0 else -jump
        nearer = distance <= leap
        if distance > most:
            rest, distance = (most if rest > 0.0 else -most), most
        jump = jump if leap <= most else most if jump > 0.0 else -most
        error = expected + rest if nearer else last_error + jump
        error = -1e150 if error < -1e150 else 1e150 if error > 1e150 else error
    weight = 1.0
    if scale > 0.0:
        tail = 0.5 * level
        # Trust: the pinball loss of the corrected ends and of the given ones.
        narrow = 0.1 * half
        lower, upper = half + scale * base[17], half + scale * base[18]
        lower, upper = -(lower if lower > narrow else narrow), upper if upper > narrow else narrow
        own_lower, own_upper = expected - scale * base[15], expected + scale * base[16]
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
        tail_rate = _SLOW if first < _SLOW else first
        z = rest / scale
        high_tail += tail_rate * (1.0 - tail if z > base[16] else -tail)
        low_tail += tail_rate * (1.0 - tail if -z > base[15] else -tail)
        # Scale.
        surprise = distance / scale
        pull = (surprise if surprise < _WILD else _WILD) - 1.0
        pull *= _STEP / (1.0 + habit / _TAME)
        for i in range(n):
            look = base[_X + n + i]
            if look != 0.0:
                k = table[scales + i] + pull * look
                table[scales + i] = -2.0 if k < -2.0 else 2.0 if k > 2.0 else k
        if distance > _FAR * scale:
            weight = _FAR * scale / distance
    if params[1] > 0.0:
        _regress(table, base, n, products, weights, rate, weight, error, _RIDGE * size * size)
    # The season: scouts until one stands out, then tables, of which the best is used.
    beyond_mean, grown = error - base[12], 0.0
    if period < 0.0:
        if (scale > 0.0) & (size > 0.0):
            ratio, surprise = beyond_mean / size, distance / size - 1.0
            ratio = -4.0 if ratio < -4.0 else 4.0 if ratio > 4.0 else ratio
            surprise = surprise if surprise < 3.0 else 3.0
            errors += rate * (ratio * ratio - errors)
            surprises += rate * (surprise * surprise - surprises)
            if born == 0.0:
                if stands_out(
                    table, scouts, int(base[13]), labels, habit, ratio, surprise, errors, surprises
                ):
                    grown = 1.0
                    for i in range(scouts, scouts + SCOUT * len(CANDIDATES) + 1):
                        table[i] = 0.0
            else:
                season = float(candidates_worth(
                    table, scouts, rate, base, _X + 2 * n + count, size, ratio, surprise, errors,
                    surprises, int(season), born - habit,
                ))  # fmt: skip
        if born > 0.0:
            candidates_note(annex, int(base[13]), int(born), beyond_mean, distance)
            grown = born + 1.0
        born = grown
    elif period > 0.0:
        length = int(period)
        visits = (int(labels) - 1) // length + 1.0
        season_note(annex, 2 * (int(base[13]) % length), visits, beyond_mean, distance)
    recent_size += (_FAST if first < _FAST else first) * (distance - recent_size)
    size += rate * (distance - size)
    width += rate * (half - width)
    movement += rate * (base[11] - movement)
    # The tables.
    for i in range(count + 1):
        value, category = middle, 0.0
        if i > 0:
            value, category = base[_X + 2 * n + i - 1], params[OWN + i - 1]
        own = rest + table[weights + 3 + i] * base[_X + 3 + i]
        note(table, tables + TABLE * i, category, value, own, distance, size)
    mean += (_MEDIUM if first < _MEDIUM else first) * (error - mean)
    # The support.
    if (low_hits == 0.0) | (y < lowest):
        lowest, low_hits = y, 1.0
    elif y == lowest:
        low_hits += 1.0
    if (high_hits == 0.0) | (y > highest):
        highest, high_hits = y, 1.0
    elif y == highest:
        high_hits += 1.0
    return (
        born, waiting, time, labels, head, error, mean, middle, size, recent_size, width,
        movement, low_tail, high_tail, low_shift, high_shift, regret, season, errors, surprises,
        lowest, highest, low_hits, high_hits, relative,
    )  # fmt: skip


def _regress(
    table: Numbers, base: Numbers, n: int, products: int, weights: int, rate: float, weight: float,
    error: float, penalty: float,
) -> None:  # fmt: skip
    """Error: moves the averages, in which a far label weighs less, and the weights after them.

    A round of Gauss and Seidel from where the weights were, the first three of them together: they
    follow the solution of the ridge regression, which moves little with a label, and need no room
    of their own.
    """
    at = 0
    for i in range(n):
        look = weight * base[_X + i]
        for j in range(i + 1):
            table[at] += rate * (look * base[_X + j] - table[at])
            at += 1
        table[products + i] += rate * (look * error - table[products + i])
    # A season that has said nothing yet comes last, and is left out.
    n = n if table[at - 1] > 0.0 else n - 1
    # Cholesky of the first three: a direction that rounding has swallowed gets no weight.
    c00 = _root(table[0] + penalty, table[0])
    c10, c20 = table[1] / c00, table[3] / c00
    c11 = _root(table[2] + penalty - c10 * c10, table[2])
    c21 = (table[4] - c20 * c10) / c11
    c22 = _root(table[5] + penalty - c20 * c20 - c21 * c21, table[5])
    z0, z1, z2, at = table[products], table[products + 1], table[products + 2], 6
    for j in range(3, n):
        w = table[weights + j]
        z0, z1, z2 = z0 - table[at] * w, z1 - table[at + 1] * w, z2 - table[at + 2] * w
        at += j + 1
    z0 /= c00
    z1 = (z1 - c10 * z0) / c11
    z2 = (z2 - c20 * z0 - c21 * z1) / c22 / c22
    z1 = (z1 - c21 * z2) / c11
    z0 = (z0 - c10 * z1 - c20 * z2) / c00
    table[weights], table[weights + 1], table[weights + 2] = _sane(z0), _sane(z1), _sane(z2)
    at = 6
    for i in range(3, n):
        left = table[products + i]
        for j in range(i):
            left -= table[at + j] * table[weights + j]
        below = at + i
        for j in range(i + 1, n):
            below += j
            left -= table[below] * table[weights + j]
        at += i + 1
        pivot = table[at - 1] + _SHY * penalty
        table[weights + i] = _sane(left / pivot) if pivot > 0.0 else 0.0


def _sane(weight: float) -> float:
    """A weight within ±100: it has no unit, and a sound one is near 1."""
    return weight if -100.0 < weight < 100.0 else 0.0


def _root(pivot: float, diagonal: float) -> float:
    """The root of a pivot, infinite where rounding has swallowed it."""
    return sqrt(pivot) if pivot > 1e-13 * diagonal else inf
