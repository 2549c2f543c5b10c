"""The annexes of many streams: room that a correction takes only for streams that need it.

A stream takes a row of the pool once the first number of its correction's memory is positive, see
`setpoint.correction`. The pool is zeros that no page of memory backs until they are written to.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Annexes:
    """Rows of a pool, and which of them belongs to which stream: −1 for none."""

    __slots__ = ("pool", "slots", "used")

    def __init__(self, streams: int, size: int) -> None:
        self.pool = np.zeros((1, max(size, 1)))
        self.slots = np.full(streams, -1)
        self.used = np.zeros(1, np.int64)

    def room(self, streams: int) -> None:
        """Makes sure that this many streams more can take a row."""
        if self.pool.shape[1] == 1:
            return
        needed = int(self.used[0]) + streams
        if needed > len(self.pool):
            pool = np.zeros((max(needed, len(self.pool) * 2), self.pool.shape[1]))
            pool[: self.used[0]] = self.pool[: self.used[0]]
            self.pool = pool

    def put(self, place: int, values: Sequence[float]) -> None:
        """Gives a stream these numbers; nothing if there are none."""
        if len(values):
            self.room(1)
            self.slots[place] = self.used[0]
            self.pool[self.used[0]] = values
            self.used[0] += 1

    def of(self, place: int) -> list[float]:
        """The numbers of a stream, none if it has not needed any."""
        slot = self.slots[place]
        numbers: list[float] = [] if slot < 0 else self.pool[slot].tolist()
        return numbers

    def begin(self, born: Array, places: Array | None = None) -> None:
        """Gives an empty row to each new stream that needs one from its start."""
        new = np.flatnonzero(born) if places is None else places[np.flatnonzero(born)]
        self.room(len(new))
        self.slots[new] = np.arange(self.used[0], self.used[0] + len(new))
        self.used[0] += len(new)

    def taken(self, places: Array) -> "Annexes":
        """Those of some streams, in this order, sharing nothing; −1 is a stream without one."""
        twin = Annexes(len(places), self.pool.shape[1])
        slots = np.where(places >= 0, self.slots[places], -1) if len(self.slots) else twin.slots
        there = np.flatnonzero(slots >= 0)
        twin.room(len(there))
        twin.slots[there] = np.arange(len(there))
        twin.pool[: len(there)] = self.pool[slots[there]] if len(there) else 0.0
        twin.used[0] = len(there)
        return twin

    def joined(self, other: "Annexes") -> "Annexes":
        """Those of two groups of streams, the second behind the first."""
        twin = self.taken(np.arange(len(self.slots)))
        there = np.flatnonzero(other.slots >= 0)
        twin.room(len(there))
        first = int(twin.used[0])
        twin.pool[first : first + len(there)] = other.pool[other.slots[there]]
        slots = np.full(len(other.slots), -1)
        slots[there] = first + np.arange(len(there))
        twin.slots = np.concatenate([twin.slots, slots])
        twin.used[0] += len(there)
        return twin

    def part(self, streams: slice) -> "Annexes":
        """Those of streams beside one another, in the same pool."""
        twin = Annexes(0, 0)
        twin.pool, twin.slots, twin.used = self.pool, self.slots[streams], self.used
        return twin

    @classmethod
    def restored(cls, pool: Array, slots: Array, streams: int, size: int) -> "Annexes":
        """What was saved, if it can be that of so many streams."""
        annexes = cls(streams, size)
        wide = pool.ndim == 2 and pool.shape[1] == annexes.pool.shape[1]
        own = np.sort(slots[slots >= 0]) if slots.shape == (streams,) else None
        if not wide or own is None or not np.array_equal(own, np.arange(len(pool))):
            raise ValueError("annexes do not fit their streams")
        annexes.room(len(pool))
        annexes.pool[: len(pool)] = pool
        annexes.slots[:], annexes.used[0] = slots, len(pool)
        return annexes

    def copy(self) -> "Annexes":
        """The same, sharing nothing."""
        return self.taken(np.arange(len(self.slots)))
