"""The rules of `correction.Intervals` for several levels: pure functions, which also run compiled.

One correction serves all ends. What is learnt for each end is its tail (how far it lies from the
centre, in units of the scale), its shift (how far the given end is moved towards its level), and
its regret (how much worse the tail did than the shift). They lie at the end of the table.

A base begins as that of `setpoint.correction.rules`; then come the numbers that `sets.Fan` reads,
and the tail and the shift of each end as shown.
"""

from math import exp, inf
from typing import Any

from setpoint.correction import rules
from setpoint.sets.fan_arithmetic import COMMON

Floats = tuple[float, ...]
Numbers = Any
_SLOW, _CALM, _WILD, _TRUST = 0.007, 3.0, 15.0, 50.0
_ROUND = 4e-16
"""A little more than the last bit of a number."""
_OWN, _COMMON = rules.OWN, len(COMMON)


def size_of(members: int, pairs: bool) -> int:
    """How many numbers a base has beside that of the rules."""
    return _COMMON + 3 * members + 2 * (2 * members if pairs else members)


def spread(params: Floats) -> tuple[int, int, int, bool]:
    """Where in params the tails begin; how many members and ends there are; whether in pairs."""
    at = _OWN + int(params[5])
    members, pairs = int(params[at]), params[at + 1] > 0.0
    return at + 2, members, 2 * members if pairs else members, pairs


def predict(
    params: Floats, memory: Floats, table: Numbers, annex: Numbers, row: Numbers, waiting: float,
    base: Numbers,
) -> Floats:  # fmt: skip
    """Makes the base of a row; what is remembered once it is shown."""
    tails, members, ends, pairs = spread(params)
    memory = rules.predict(params, memory, table, annex, row, waiting, base)
    held, then = len(table) - 3 * ends, len(base) - 2 * ends
    begin = then - 3 * members
    middle, half, expected, scale = base[7], base[8], base[9], base[10]
    nothing, recentre, cut = base[1] == inf, params[1] > 0.0, base[5]
    first, final = params[-2], params[-1]
    first = base[3] if ((cut == 1.0) | (cut == 3.0)) & (base[3] > first) else first
    final = base[4] if (cut > 1.0) & (base[4] < final) else final
    for i in range(4):
        base[begin - _COMMON + i] = base[3 + i]
    base[begin - 1] = scale
    for k in range(members):
        tail, at = params[tails + k], begin + 3 * k
        below, above = 0.0, 0.0
        for side in range(2):
            if pairs | ((tail > 0.0) == (side == 1)):
                e = 2 * k + side if pairs else k
                q, shift, regret = (
                    table[held + e],
                    table[held + ends + e],
                    table[held + 2 * ends + e],
                )
                base[then + e], base[then + ends + e] = q, shift
                share = 1.0 / (1.0 + exp(_TRUST * regret))
                given = _given(half, scale, shift)
                sign = 1.0 if side == 1 else -1.0
                place = share * (expected + sign * scale * q) + (1.0 - share) * sign * given
                if side == 1:
                    above = place
                else:
                    below = place
        if pairs:
            centre = 0.5 * (below + above) if recentre else 0.0
            low, high = centre - below, above - centre
            centre = middle + centre
            low, high = low if low > 0.0 else 0.0, high if high > 0.0 else 0.0
            if centre < first:  # the far end stays where it was
                kept, centre = centre + high - first, first
                high = kept if kept > 0.5 * high else 0.5 * high
            elif centre > final:
                kept, centre = final - centre + low, final
                low = kept if kept > 0.5 * low else 0.5 * low
        else:
            centre, end = middle + (expected if recentre else 0.0), middle + below + above
            centre = first if centre < first else final if centre > final else centre
            end = first if end < first else final if end > final else end
            low, high = centre - end, end - centre
            # What rounds beyond the support would be shown as empty.
            low = low - _ROUND * low if centre - low > final else low
            high = high - _ROUND * high if centre + high < first else high
        if nothing:
            low, high = inf, inf
        base[at], base[at + 1], base[at + 2] = centre, low, high
    return memory


def _given(half: float, scale: float, shift: float) -> float:
    """How far a given end lies from the middle once it is moved, not beyond it."""
    moved = half + scale * shift
    return moved if moved > 0.0 else 0.0


def learn(
    params: Floats, memory: Floats, table: Numbers, annex: Numbers, base: Numbers, y: float
) -> Floats:
    """What is remembered after a label, judged against what was shown."""
    tails, members, ends, pairs = spread(params)
    held, then = len(table) - 3 * ends, len(base) - 2 * ends
    half, expected, scale, habit = base[8], base[9], base[10], base[14]
    error, labels, head, size, recent_size = y - base[7], memory[3], memory[4], memory[8], memory[9]
    if (-1e150 < error < 1e150) & (scale > 0.0):
        first = 1.0 / (labels + 1.0 + (head if labels > 0.0 else 1.0))
        calm = _SLOW / (1.0 + habit / _CALM)
        rate, slow = _SLOW if first < _SLOW else first, calm if calm > first else first
        most = scale
        if labels > 0.0:  # before that the memory has another unit
            most = recent_size if recent_size > most else most
            most = size if size > most else most
        most *= _WILD
        rest = error - expected
        believed = expected + (-most if rest < -most else most if rest > most else rest)
        for k in range(members):
            tail = params[tails + k]
            for side in range(2):
                if pairs | ((tail > 0.0) == (side == 1)):
                    e = 2 * k + side if pairs else k
                    p, sign = (tail if tail > 0.0 else -tail), (1.0 if side == 1 else -1.0)
                    q, shift = base[then + e], base[then + ends + e]
                    mine, at = sign * expected + scale * q, sign * believed
                    given = _given(half, scale, shift)
                    worse = p * (mine - given)
                    worse += at - mine if at > mine else 0.0
                    worse -= at - given if at > given else 0.0
                    worse = 2.0 * worse / scale
                    worse = -2.0 if worse < -2.0 else 2.0 if worse > 2.0 else worse
                    table[held + 2 * ends + e] += calm * (worse - table[held + 2 * ends + e])
                    table[held + e] += rate * ((1.0 if sign * rest > scale * q else 0.0) - p)
                    beyond = 1.0 if sign * error > half + scale * shift else 0.0
                    table[held + ends + e] += slow * (beyond - p)
    return rules.learn(params, memory, table, annex, base, y)
