"""Which ids a stream has closed, a million of them and more in little memory.

Whole numbers that follow one another become ranges, which cost nothing and are kept for ever. Every
other id is one number of 64 bits in a sorted array: 61 bits of the id, or of its check sum if it is
text, and two for how it ended. Arrays are filled in turn, and there are two of them: the last
million are surely known, two million at most, in 16 MB.
"""

from bisect import bisect_left, bisect_right
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from setpoint.receipts import Id

__all__ = ["ClosedIds"]

_HOW = ("answered", "missing", "dropped", "expired")
_GENERATION = 1 << 20
"""How many ids an array holds before it becomes the older one."""
_LEAST_BATCH = 1024
_MOST_RANGES = 1 << 16
_LONG = 16
"""How many numbers in a row are worth a range of their own."""
_SPAN = 1 << 60
_TEXT = 1 << 63
_NONE = -_SPAN
"""Below every whole number that is told apart from text."""

_Keys = npt.NDArray[np.uint64]
_NO_KEYS: _Keys = np.empty(0, np.uint64)


class ClosedIds:
    """A growing set of ids, each with how it ended: "answered", "missing", "dropped", "expired".

    Whole numbers that were always given in rising order are known even when their array is gone:
    from then on whatever is not above them counts as closed.

    Parameters
    ----------
    top
        No whole number above it has been used before; by default none has been used at all.

    Examples
    --------
    >>> closed = ClosedIds()
    >>> closed.add({number: "answered" for number in range(1000)} | {"monday": "dropped"})
    >>> closed.how(999), closed.how("monday"), closed.how(1000), closed.how("tuesday")
    ('answered', 'dropped', None, None)
    >>> closed.ranges
    [(0, 999)]
    """

    __slots__ = (
        "_ends",
        "_floor",
        "_new",
        "_old",
        "_rising",
        "_starts",
        "_top",
        "_vague",
        "_views",
        "batch",
    )

    def __init__(self, top: int | None = None) -> None:
        self._new, self._old = _NO_KEYS, _NO_KEYS
        self._views: tuple[Any, ...] = ()
        self.batch = _LEAST_BATCH
        """How many ids are worth adding at once: the array is copied when something is added."""
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._top, self._floor = _NONE if top is None else min(top, _SPAN - 1), _NONE
        self._rising, self._vague = top is None, False

    def issue(self, id: Id) -> None:
        """Notes that a prediction was made under an id."""
        if isinstance(id, int) and abs(id) < _SPAN:
            if id > self._top:
                self._top = id
            else:
                self._rising = False

    def how(self, id: Id) -> str | None:
        """How an id ended; "closed" if that is forgotten, None if it is not known to have ended."""
        if isinstance(id, int) and self._top < id < _SPAN:
            return None
        code = self._in_arrays(id)
        if code is not None:
            return _HOW[code]
        if isinstance(id, int) and abs(id) < _SPAN and (id <= self._floor or self._in_range(id)):
            return "closed" if self._vague else "answered"
        return None

    def add(self, closed: dict[Id, str]) -> None:
        """Adds ids with how each ended."""
        numbers = sorted(id for id in closed if isinstance(id, int) and abs(id) < _SPAN)
        self._top = max(self._top, numbers[-1] if numbers else _NONE)
        alone = self._add_ranges(numbers)
        keys = [
            _key(id) | _HOW.index(how)
            for id, how in closed.items()
            if how != "answered" or id in alone or not (isinstance(id, int) and abs(id) < _SPAN)
        ]
        if keys:
            fresh = np.sort(np.array(keys, np.uint64))
            self._new = np.insert(self._new, np.searchsorted(self._new, fresh), fresh)
            if len(self._new) >= _GENERATION:
                self._turn()
            self._look()

    def _turn(self) -> None:
        """Lets the older array go, and what it knew with it."""
        gone = self._old
        self._vague |= bool((gone & np.uint64(3)).any())
        numbers = int(np.searchsorted(gone, np.uint64(_TEXT)))
        if numbers and self._rising:
            self._floor = max(self._floor, (int(gone[numbers - 1]) >> 2) - _SPAN)
        self._new, self._old = _NO_KEYS, self._new

    def _in_arrays(self, id: Id) -> int | None:
        if not self._views:
            return None
        key = _key(id)
        for held in self._views:
            place = bisect_left(held, key)
            if place < len(held) and held[place] >> 2 == key >> 2:
                return int(held[place] & 3)
        return None

    def _look(self) -> None:
        self._views = tuple(held.data for held in (self._new, self._old) if len(held))
        self.batch = max(_LEAST_BATCH, len(self._new) // 64)

    # Ranges

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The first and the last number of every range."""
        return list(zip(self._starts, self._ends, strict=True))

    def _in_range(self, id: int) -> bool:
        place = bisect_left(self._ends, id)
        return place < len(self._ends) and self._starts[place] <= id

    def _add_ranges(self, numbers: list[int]) -> set[int]:
        """Adds runs of sorted numbers to the ranges; those that belong to none are returned."""
        alone: set[int] = set()
        for first, last in _runs(numbers):
            low, high = first, last
            while self._in_arrays(low - 1) is not None:  # a number that was alone until now
                low -= 1
            while self._in_arrays(high + 1) is not None:
                high += 1
            begin, end = bisect_left(self._ends, low - 1), bisect_right(self._starts, high + 1)
            if begin < end:
                low, high = min(low, self._starts[begin]), max(high, self._ends[end - 1])
            elif high - low + 1 < _LONG:
                alone.update(range(first, last + 1))
                continue
            self._starts[begin:end], self._ends[begin:end] = [low], [high]
        extra = len(self._starts) - _MOST_RANGES
        if extra > 0:
            if self._rising:
                self._floor = max(self._floor, self._ends[extra - 1])
            del self._starts[:extra], self._ends[:extra]
        return alone

    # As one array

    def packed(self) -> npt.NDArray[np.uint64]:
        """Everything it knows in one array."""
        counts = (len(self._starts), len(self._new), len(self._old))
        signs = (self._top, self._floor, self._rising, self._vague, *counts)
        whole = np.array([*signs, *self._starts, *self._ends], np.int64)
        return np.concatenate([whole.view(np.uint64), self._new, self._old])

    @classmethod
    def unpacked(cls, held: npt.NDArray[np.uint64]) -> "ClosedIds":
        """What `packed` gave."""
        made = cls()
        top, floor, rising, vague, ranges, new, _ = held[:7].view(np.int64).tolist()
        made._top, made._floor = top, floor
        made._rising, made._vague = bool(rising), bool(vague)
        ends = held[7 : 7 + 2 * ranges].view(np.int64).tolist()
        made._starts, made._ends = ends[:ranges], ends[ranges:]
        keys = held[7 + 2 * ranges :]
        made._new, made._old = keys[:new].copy(), keys[new:].copy()
        made._look()
        return made


def _key(id: Id) -> int:
    """An id as a number of 64 bits with room for how it ended; whole numbers in their order."""
    if isinstance(id, int) and abs(id) < _SPAN:
        return (id + _SPAN) << 2
    text = id.encode(errors="surrogatepass") if isinstance(id, str) else b"%d" % id
    digest = int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
    return _TEXT | (digest & ~3 & (_TEXT - 1))


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """The first and the last of numbers that follow one another, in a sorted list."""
    runs: list[tuple[int, int]] = []
    first = last = None
    for number in numbers:
        if last is None or number != last + 1:
            if first is not None and last is not None:
                runs.append((first, last))
            first = number
        last = number
    if first is not None and last is not None:
        runs.append((first, last))
    return runs
