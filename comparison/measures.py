"""How good the sets of a rule were on a stream, and beside the best published rule."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint.metrics import msl

__all__ = ["BLOCK", "LEVEL", "NEAR", "WINDOW", "Measures", "best", "measure", "resampled"]

Floats = NDArray[np.float64]

LEVEL = 0.1
"""The share of labels that may be missed."""
WINDOW = 250
"""Rows in a window, and in a block of the bootstrap."""
BLOCK = WINDOW
NEAR = 0.01
"""How far from what was asked the coverage of a rule may be for the rule to be a rival."""


class Measures(NamedTuple):
    """What is told of the sets of a stream.

    An end beyond the range of y by more than that range counts as if it lay there, so that
    infinite sets have a width. An empty set counts as the point forecast.
    """

    coverage: float
    width: float
    winkler: float
    worst: float
    rms: float
    infinite: float
    empty: float
    msl: float


def measure(lower: Floats, upper: Floats, y: Floats, point: Floats) -> tuple[Measures, Floats]:
    """The measures, and misses, width, Winkler score and rows summed over blocks of rows."""
    hit = (lower <= y) & (y <= upper)
    empty = upper < lower
    infinite = ~(np.isfinite(lower) & np.isfinite(upper)) & ~empty
    least, most = float(y.min()), float(y.max())
    span = most - least
    low, high = (np.clip(end, least - span, most + span) for end in (lower, upper))
    low, high = np.where(empty, point, low), np.where(empty, point, high)
    width = high - low
    winkler = width + 2.0 / LEVEL * np.maximum(np.maximum(low - y, y - high), 0.0)
    sums = np.concatenate([[0.0], np.cumsum(hit)])
    count = min(WINDOW, len(y))
    windows = (sums[count:] - sums[:-count]) / count
    rows = np.arange(0, len(y), BLOCK)
    blocks = np.add.reduceat(np.array([~hit, width, winkler], np.float64), rows, axis=1)
    blocks = np.vstack([blocks, np.diff([*rows, len(y)])])
    return Measures(
        float(hit.mean()), float(width.mean()), float(winkler.mean()), float(windows.min()),
        float(np.sqrt(np.square(windows - 1.0 + LEVEL).mean())), float(infinite.mean()),
        float(empty.mean()), msl(hit),
    ), blocks  # fmt: skip


def best(coverage: Floats, values: Floats, *, largest: bool = False) -> Floats:
    """The best value of the rules (rows) on each stream (columns); NaN if no rule is a rival.

    Only rules whose coverage is within one point of what was asked are rivals.
    """
    outside = np.abs(coverage - 1.0 + LEVEL) > NEAR
    worst = -np.inf if largest else np.inf
    rivals = np.where(outside, worst, values)
    found: Floats = rivals.max(axis=0) if largest else rivals.min(axis=0)
    return np.where(np.isfinite(found), found, np.nan)


def resampled(
    blocks: list[Floats], ours: int, published: list[int], *, times: int = 500, seed: int = 0
) -> Floats:
    """Bounds of 95 % for the ratios of width and Winkler score: one row of two for each.

    Streams are drawn again, and the blocks of each. The best published rule of a stream is found
    anew each time, among those whose coverage is within one point in the whole stream.

    Parameters
    ----------
    blocks
        For each stream the sums of `measure`: rules × (misses, width, Winkler, rows) × blocks.
    ours, published
        The places of the rules.
    """
    random = np.random.default_rng(seed)
    logs = np.full((len(blocks), times, 2), np.nan)
    for place, sums in enumerate(blocks):
        whole = sums.sum(axis=2)
        near = np.abs(whole[:, 0] / whole[:, 3] - LEVEL) <= NEAR
        rivals = [rule for rule in published if near[rule]]
        if not rivals:
            continue
        drawn = random.integers(sums.shape[2], size=(times, sums.shape[2]))
        totals = sums[:, 1:3][:, :, drawn].sum(axis=3)
        logs[place] = np.log(totals[ours] / totals[rivals].min(axis=0)).T
    logs = logs[~np.isnan(logs[:, 0, 0])]
    chosen = random.integers(len(logs), size=(times, len(logs)))
    means = logs[chosen, np.arange(times)[:, None]].mean(axis=1)
    bounds: Floats = np.exp(np.quantile(means, [0.025, 0.975], axis=0)).T
    return bounds
