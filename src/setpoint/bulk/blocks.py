"""A time-major tape, stream after stream: some streams at a time are turned to rows."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

import numpy as np

from setpoint._check import whole
from setpoint.bulk.arrays import Array
from setpoint.bulk.compile import kernel
from setpoint.bulk.vectors import Layout, waiting
from setpoint.errors import InputError
from setpoint.laws import Law
from setpoint.tape.columns import wholes
from setpoint.tape.schedule import Schedule, scheduled, steady

__all__ = ["Block", "blocks", "check_losses", "schedule_of"]

_CELLS = 1 << 14
"""How many cells of an array are turned at once, so that they stay in the cache."""


class Block(NamedTuple):
    """What came of some streams: the ends, one row for each stream, the λ and the losses."""

    lower: Array
    upper: Array
    lam: Array
    losses: Array


def blocks(
    layout: Layout,
    params: Array,
    vectors: Array,
    peaks: Array,
    columns: tuple[Array, ...],
    labels: Array,
    schedule: Schedule | None,
) -> Iterator[tuple[slice, Block]]:
    """Runs the streams of a time-major tape, some at a time; `vectors` and `peaks` change."""
    steps, streams = labels.shape
    size = max(1, _CELLS // max(steps, 1))
    for start in range(0, streams, size):
        part = slice(start, min(start + size, streams))
        yield part, _block(layout, params, vectors, peaks, columns, labels, schedule, part)


def _block(
    layout: Layout,
    params: Array,
    vectors: Array,
    peaks: Array,
    columns: tuple[Array, ...],
    labels: Array,
    schedule: Schedule | None,
    part: slice,
) -> Block:
    steps, count = len(labels), part.stop - part.start
    *inputs, y = (np.ascontiguousarray(array[:, part].T).ravel() for array in (*columns, labels))
    dtype = columns[0].dtype
    lower, upper = np.empty(len(y), dtype), np.empty(len(y), dtype)
    lam, covered = np.empty(len(y)), np.ones(len(y), dtype=bool)
    theta, losses = np.empty((layout.risks, len(y))), np.empty((layout.risks, len(y)))
    delays, order, upto, ring = waiting(layout, schedule)
    flat = slice(part.start * steps, part.stop * steps)
    states, most = np.ascontiguousarray(vectors[:, part]), np.ascontiguousarray(peaks[part])
    run = kernel(layout, "along", narrow=dtype == np.float32, late=schedule is not None)
    run(
        params, states, np.arange(count + 1) * steps, delays[part], order[flat], upto[flat], ring,
        most, tuple(inputs), y, lower, upper, lam, covered, theta, losses,
    )  # fmt: skip
    vectors[:, part], peaks[part] = states, most
    shape = count, steps
    return Block(lower.reshape(shape), upper.reshape(shape), lam[y == y], losses[:, y == y])


def check_losses(laws: Mapping[int, Law], losses: Array, lam: Array) -> None:
    """Raises the error of a user's own loss that broke its promises; `laws` are those losses'."""
    for place, law in laws.items():
        values = losses[place]
        for at, where in ((inf, lam == inf), (-inf, lam == -inf), (0.0, np.isfinite(lam))):
            if where.any():
                law.check_value(float(values[where].min()), at)
                law.check_value(float(values[where].max()), at)


def schedule_of(delay: Any, known: Any, shape: tuple[int, int]) -> Schedule | None:
    """When the labels of a time-major tape become known; None if always before the next row."""
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
