"""A season: what errors were like at this phase of it, one that is given or one that is found.

A stream that looks for its season keeps four numbers for each candidate, its *scout*: by how much
errors, and their sizes, are larger in one quarter of that period than in the opposite one. Once one
of them stands out, the *annex* comes into being: for every candidate a table with the mean error
and the mean size of each phase. From then on the four numbers say how well each table tells what
comes, and the best one is used as long as it is worth it.
"""

from typing import Any

CANDIDATES = (7, 12, 24, 48, 96, 144, 168)
"""The periods that are looked for, in rows."""
SCOUT = 4
"""How many numbers look for one period."""
_RATE, _LOUD, _MOST, _KEPT = 0.2, 6.0, 640.0, 0.8
_WORTH, _STAY, _LONGER = 0.02, 1.2, 1.1


def phases(period: float) -> int:
    """How many floats the tables of a period take, or of all candidates if it is negative."""
    return 2 * int(period if period >= 0.0 else sum(CANDIDATES))


def season_told(annex: Any, cell: int, size: float) -> tuple[float, float]:
    """What the cell of a phase says: the error, and the size against the usual one."""
    length = annex[cell + 1]
    if length <= 0.0:
        return 0.0, 0.0
    return annex[cell], (length - size) / (length + size)


def season_note(annex: Any, cell: int, visits: float, error: float, distance: float) -> None:
    """Takes in a label: its error beyond the running mean, and the size of what was left."""
    rate = 1.0 / (visits + 1.0)
    annex[cell] += (rate if rate > _RATE else _RATE) * (error - annex[cell])
    length, rate = annex[cell + 1], 1.0 / visits
    rate = (rate if rate > _RATE else _RATE) if length > 0.0 else 1.0
    annex[cell + 1] = length + rate * (distance - length)


def candidates_told(
    annex: Any, time: int, size: float, season: int, base: Any, at: int
) -> tuple[float, float]:
    """Writes what each candidate says into a base; what the one in use says, from 1."""
    start, which, error, contrast = 0, 1, 0.0, 0.0
    for period in CANDIDATES:
        said, against = season_told(annex, start + 2 * (time % period), size)
        base[at], base[at + 1] = said, against
        if which == season:
            error, contrast = said, against
        start, which, at = start + 2 * period, which + 1, at + 2
    return error, contrast


def candidates_note(annex: Any, time: int, labels: int, error: float, distance: float) -> None:
    """Takes a label into the tables of all candidates, the first of them as label 1."""
    start = 0
    for period in CANDIDATES:
        cell = start + 2 * (time % period)
        season_note(annex, cell, (labels - 1) // period + 1.0, error, distance)
        start += 2 * period


def candidates_worth(
    table: Any, at: int, rate: float, base: Any, place: int, size: float, error: float,
    surprise: float, errors: float, surprises: float, season: int, labels: float,
) -> int:  # fmt: skip
    """Moves what is known of each table, and says which is to be used from now on, 0 for none.

    A table is worth the share of errors and of their sizes that it explains. It can be chosen once
    it has seen two periods; the one in use stays unless another is clearly better, and a longer one
    must be better than a shorter one by a tenth: every multiple of a season is one too.
    """
    best, choice, which = 0.0, 0, 1
    for period in CANDIDATES:
        told, contrast = base[place] / size, base[place + 1]
        told = -4.0 if told < -4.0 else 4.0 if told > 4.0 else told
        a = table[at] + rate * (told * error - table[at])
        b = table[at + 1] + rate * (told * told - table[at + 1])
        c = table[at + 2] + rate * (contrast * surprise - table[at + 2])
        d = table[at + 3] + rate * (contrast * contrast - table[at + 3])
        table[at], table[at + 1], table[at + 2], table[at + 3] = a, b, c, d
        if labels > 2.0 * period:
            a, c = a if a > 0.0 else 0.0, c if c > 0.0 else 0.0
            worth = a * a * surprises * (d + 1e-3) + c * c * errors * (b + 1e-3)
            worth /= (b + 1e-3) * (d + 1e-3)
            worth = _STAY * worth if which == season else worth
            if worth > _LONGER * best:
                best, choice = worth, which
        at, place, which = at + SCOUT, place + 2, which + 1
    most = errors * surprises
    if best > _WORTH * most:
        return choice
    return 0 if best < 0.5 * _WORTH * most else season


def stands_out(
    table: Any, at: int, time: int, labels: float, habit: float, error: float, surprise: float,
    errors: float, surprises: float,
) -> bool:  # fmt: skip
    """Moves the scouts; whether one of them has found more than chance would leave.

    `errors` and `surprises` are the mean squares of what the scouts follow. Each label falls into
    one quarter of each period, and is added to, or taken from, the sum of its quarter and the
    opposite one. The number behind the scouts is how many labels count; now and then all are
    lessened, so that old ones are forgotten.
    """
    end = at + SCOUT * len(CANDIDATES)
    weight, scout = table[end] + 1.0, at
    table[end] = weight
    for period in CANDIDATES:
        quarter = 4 * (time % period) // period
        place = scout + (quarter & 1)
        if quarter < 2:
            table[place] += error
            table[place + 2] += surprise
        else:
            table[place] -= error
            table[place + 2] -= surprise
        scout += SCOUT
    if weight >= _MOST:
        for place in range(at, end + 1):
            table[place] *= _KEPT
    if int(labels) % 8 > 0:
        return False
    found, most_errors, most_surprises = False, _LOUD * weight * errors, _LOUD * weight * surprises
    for period in CANDIDATES:
        a, b, c, d = table[at], table[at + 1], table[at + 2], table[at + 3]
        loud = (a * a + b * b > most_errors) | (c * c + d * d > most_surprises)
        found |= loud & (labels > period + habit)
        at += SCOUT
    return found
