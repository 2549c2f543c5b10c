"""Tables by feature: what errors were like where a feature had about this value.

A numeric feature is placed by its own running mean and spread, from −2 to 2 spreads, between 17
knots; a category has a cell of its own. The forecast's middle is always one feature more. A cell
holds the mean of the error that everything else leaves and the mean size of what is left over. A
table only proposes: how much its words count is learnt by `rules`, from nothing.
"""

from typing import Any

KNOTS = 17
"""How many cells a table has; a category can have at most this many values."""
CELL = 3
"""A cell: its mean error, its mean size, and how many labels it has seen."""
TABLE = 3 + CELL * KNOTS
"""A table: the mean and the spread of its feature, how many values it has seen, and its cells."""
_REACH, _STEP = 1.999, 4.0
_DRIFT, _RATE = 0.002, 0.02


def position(table: Any, at: int, category: float, value: float) -> float:
    """Where a value lies among the knots of the table that begins at `at`; −1 if it is missing."""
    if not (-1e150 < value < 1e150):
        return -1.0
    if category > 0.0:
        return value
    spread = table[at + 1]
    place = (value - table[at]) / spread if spread > 0.0 else 0.0
    place = -_REACH if place < -_REACH else _REACH if place > _REACH else place
    return (place + 2.0) * _STEP


def told(table: Any, at: int, place: float, size: float) -> tuple[float, float]:
    """What a table says of a place: the error it expects, and the size against the usual one."""
    if place < 0.0:
        return 0.0, 0.0
    knot = int(place)
    part = place - knot
    cell = at + 3 + CELL * knot
    error, length = 0.0, size
    if table[cell + 2] > 0.0:
        error, length = table[cell], table[cell + 1]
    error, length = (1.0 - part) * error, (1.0 - part) * length
    if part > 0.0:
        cell += CELL
        known = table[cell + 2] > 0.0
        error += part * table[cell] if known else 0.0
        length += part * (table[cell + 1] if known else size)
    both = length + size
    return error, (length - size) / both if both > 0.0 else 0.0


def note(
    table: Any, at: int, category: float, value: float, rest: float, distance: float, size: float
) -> None:
    """Takes in a label: where its feature lay, the error to explain, and the size of the rest."""
    if not (-1e150 < value < 1e150):
        return
    seen = table[at + 2] + 1.0
    table[at + 2] = seen
    if category <= 0.0:
        rate = _DRIFT if seen * _DRIFT > 1.0 else 1.0 / seen
        mean = table[at] + rate * (value - table[at])
        away = value - mean
        table[at] = mean
        table[at + 1] += rate * ((away if away > 0.0 else -away) - table[at + 1])
    place = position(table, at, category, value)
    knot = int(place)
    part = place - knot
    cell = at + 3 + CELL * knot
    _learn(table, cell, 1.0 - part, rest, distance, size)
    if part > 0.0:
        _learn(table, cell + CELL, part, rest, distance, size)


def _learn(table: Any, cell: int, part: float, rest: float, distance: float, size: float) -> None:
    """Moves a cell by its part of a label; a new one begins at the usual size."""
    if table[cell + 2] == 0.0:
        table[cell], table[cell + 1] = 0.0, size
    visits = table[cell + 2] + part
    table[cell + 2] = visits
    pace = part * (_RATE if _RATE * (visits + 1.0) > 1.0 else 1.0 / (visits + 1.0))
    table[cell] += pace * (rest - table[cell])
    table[cell + 1] += pace * (distance - table[cell + 1])
