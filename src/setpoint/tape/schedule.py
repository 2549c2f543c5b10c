"""When labels become known: in which order, and how many of them before each row."""

from typing import Any, NamedTuple

import numpy as np

from setpoint._check import whole
from setpoint.errors import InputError
from setpoint.tape.columns import wholes

Array = np.ndarray[Any, Any]


class Schedule(NamedTuple):
    """When the labels of each stream become known, for streams that lie one after the other.

    Parameters
    ----------
    delays
        How many rows late every label of a stream is, one number for each stream.
    order
        Where labels are not all equally late: the rows of each stream in the order in which their
        labels become known, numbered within the stream; else empty.
    upto
        Likewise how many labels of its stream are known when the set of a row is made. The others
        become known after the last row.
    slots
        How many rows can lie between one that waits and the newest, both included: a power of two.
    """

    delays: Array
    order: Array
    upto: Array
    slots: int

    def events(self, offsets: Array) -> Array:
        """Questions and answers in order, two for each row: e ≥ 0 asks row e, e < 0 answers ~e.

        Those of a stream lie together, from twice its first row on.
        """
        lengths = np.diff(offsets)
        first = np.repeat(offsets[:-1], lengths)
        within = np.arange(len(first)) - first
        order, upto = self.order, self.upto
        if not len(upto):
            order, upto = within, np.maximum(within - np.repeat(self.delays, lengths), 0)
        asks = 2 * first + within + upto
        events = np.empty(2 * len(first), np.int64)
        answers = np.ones(len(events), bool)
        answers[asks] = False
        events[asks], events[answers] = first + within, ~(first + order)
        return events

    def due(self, stream: int, offsets: Array, t: int) -> int:
        """How many labels of a stream are known when the set of its row t is made."""
        first, length = int(offsets[stream]), int(offsets[stream + 1] - offsets[stream])
        if t == length:
            return length
        return max(t - int(self.delays[stream]), 0) if not len(self.upto) else self.upto[first + t]

    def answers(self, stream: int, offsets: Array) -> Any:
        """The rows of a stream in the order of their labels."""
        first, last = map(int, offsets[stream : stream + 2])
        return range(last - first) if not len(self.order) else self.order[first:last].tolist()


def steady(delays: Array, offsets: Array) -> Schedule:
    """Every label of a stream is as late as the others."""
    none = np.empty(0, np.int64)
    most = int(np.minimum(delays + 1, np.diff(offsets)).max(initial=1))
    return Schedule(np.ascontiguousarray(delays, np.int64), none, none, _power(most))


def scheduled(rows: Array, keys: Array, offsets: Array) -> Schedule:
    """Labels are known before the set of row `rows[r]` of their stream, in the order of `keys`.

    A row beyond the last says that the label becomes known after it. Where keys are equal, the
    order of the rows counts.
    """
    lengths = np.diff(offsets)
    first = np.repeat(offsets[:-1], lengths)
    within = np.arange(len(rows)) - first
    last = np.repeat(lengths, lengths)
    rows = np.clip(rows, within + 1, last)
    stream = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((within, keys, rows, stream)).astype(np.int64)
    inside = rows < last
    counts = np.bincount((first + rows)[inside], minlength=len(rows))
    sums = np.concatenate(([0], np.cumsum(counts)))
    upto = sums[1:] - np.repeat(sums[offsets[:-1]], lengths)
    most = int((rows - within).max(initial=1))
    return Schedule(np.zeros(len(lengths), np.int64), order - first, upto, _power(most))


def timed(delay: Any, known: Any, shape: tuple[int, int]) -> Schedule | None:
    """When the labels of an array with time first become known; None if before the next row."""
    steps, streams = shape
    offsets = np.arange(streams + 1) * steps
    if known is None:
        late = wholes(delay, "delay", 0) if np.ndim(delay) else np.array(whole(delay, "delay", 0))
        if late.ndim and len(late) != streams:
            raise InputError(f"delay must be one number or {streams:,}, got {len(late):,}")
        return steady(np.broadcast_to(late, (streams,)), offsets) if late.any() else None
    rows = np.asarray(known)
    if rows.shape != shape or rows.dtype.kind not in "iu":
        raise InputError(
            f"known must be whole numbers of shape {shape}, got {rows.dtype} of {rows.shape}"
        )
    if np.any(delay):
        raise InputError("labels have a delay or rows before which they are known, not both")
    rows = rows.T.astype(np.int64).ravel()
    return scheduled(rows, rows, offsets)


def _power(count: int) -> int:
    """The smallest power of two that is not below a number."""
    return 1 << max(count - 1, 0).bit_length()
