"""Metrics of several streams together: streaks and windows that end where their stream does."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from setpoint.metrics import Summary

__all__ = ["streamwise"]

Array = np.ndarray[Any, Any]


def streamwise(found: Summary, hits: Array, losses: Array, offsets: Array) -> Summary:
    """The summary of rows that lie stream after stream, without anything that spans two streams.

    A window holds rows of one stream, and a stream shorter than the window counts as one window,
    so the worst window is that of the worst stream. Its start is a place among these rows.

    Parameters
    ----------
    found
        The summary of the same rows as if they were one stream.
    hits
        1 where the set held its label, 0 where not, NaN where there was none.
    losses
        The loss of each row, NaN where there was none.
    offsets
        Stream number s holds the rows from `offsets[s]` to `offsets[s + 1]`.
    """
    seen = ~(np.isnan(hits) | np.isnan(losses))
    bounds = np.concatenate([[0], np.cumsum(seen)])[offsets]
    filled = np.diff(bounds) > 0
    first, counts = bounds[:-1][filled], np.diff(bounds)[filled]
    if not len(first):
        return found
    counter = _counter(hits[seen] == 1.0, first)
    ended = np.append(counter[1:] <= counter[:-1], True) & (counter > 0)
    runs = counter[ended]
    errors, starts = _windows(losses[seen], first, counts, found.level, found.window)
    worst = errors.max()
    place = int(starts[errors == worst].min())
    return replace(
        found,
        mc=float(counter.mean()),
        msl=float(runs.mean()) if len(runs) else 0.0,
        streaks=len(runs),
        longest_streak=int(runs.max(initial=0)),
        worst_window=float(worst),
        rms_window=math.sqrt(float(np.dot(errors, errors)) / len(errors)),
        worst_window_start=int(np.flatnonzero(seen)[place]),
    )


def _counter(hit: Array, first: Array) -> Array:
    """How many misses in a row there were up to each row, from 0 in each stream."""
    rows = np.arange(len(hit))
    since = np.where(hit, rows + 1, 0)
    since[first] = np.maximum(since[first], first)
    counter: Array = rows + 1 - np.maximum.accumulate(since)
    return counter


def _windows(
    losses: Array, first: Array, counts: Array, level: float, width: int
) -> tuple[Array, Array]:
    """|mean loss − level| of every window, and the row where it begins.

    As in `metrics.window_errors`, each stream is cut into blocks as long as the window, and a
    window is the suffix of a block and the prefix of the next: no sum is carried further.
    """
    short = counts < width
    totals = np.add.reduceat(losses, first)[short]
    errors, starts = [np.abs(totals / counts[short] - level)], [first[short]]
    first, counts = first[~short], counts[~short]
    if len(first):
        blocks = -(-counts // width)
        padding = (np.cumsum(blocks) - blocks) * width - first
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = within + np.repeat(first, counts)
        places = rows + np.repeat(padding, counts)
        padded = np.zeros(int(blocks.sum()) * width)
        padded[places] = losses[rows]
        table = padded.reshape(-1, width)
        prefix = np.cumsum(table, axis=1).ravel()
        suffix = np.cumsum(table[:, ::-1], axis=1)[:, ::-1].copy()
        suffix[:, 0] = 0.0  # a window that starts a block ends it too: the prefix has it all
        begins = within <= np.repeat(counts - width, counts)
        places = places[begins]
        totals = suffix.ravel()[places] + prefix[places + width - 1]
        errors.append(np.abs(totals / width - level))
        starts.append(rows[begins])
    return np.concatenate(errors), np.concatenate(starts)
