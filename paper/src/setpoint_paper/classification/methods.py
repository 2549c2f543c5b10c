"""Label sets under control on recorded probabilities: the paper's families, judged on one run each.

Start and step size come from the calibration rows by `setpoint.burn_in`; nothing is tuned on the
rows that are judged.
"""

from dataclasses import dataclass, replace
from math import ceil, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

import setpoint as sp
from setpoint import metrics
from setpoint_paper.classification.tapes import Recorded
from setpoint_paper.statistics import Estimate

LEVEL = 0.1
"""The miscoverage, or false-negative proportion, that is asked for."""
BLOCK = 100
"""Rows in a block of the bootstrap: misses further apart than that are hardly related, and the
shortest stream of classes still has 30 blocks."""
DRAWS = 2_000
"""How many times the bootstrap draws a stream."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Row:
    """One family of sets on the judged rows of a stream.

    `risk` is the mean loss and `bound` how far from the level it can be by the theorem; `gap` is
    how far it is from what the path of θ says. `unbalanced` is how far the coverage of a class is
    from 90 % in the mean, `floor` what independent misses make of that. In the row of the threshold
    stands what cumulative sets gain in balance, in points, with its interval.
    """

    stream: str
    family: str
    rows: int
    level: float
    risk: float
    mean_size: float
    gamma: float
    bound: float
    gap: float
    within: bool
    unbalanced: float = nan
    floor: float = nan
    balance_gain: float = nan
    balance_low: float = nan
    balance_high: float = nan


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The labels of each set, rows × classes, the loss of each row, and the row of results."""

    masks: NDArray[np.bool_]
    losses: Floats
    row: Row


def judged(recorded: Recorded) -> list[Outcome]:
    """The families of a stream: threshold and cumulative, or that of several labels."""
    if recorded.several:
        return [controlled(recorded, sp.sets.Multilabel())]
    outcomes = [controlled(recorded, each) for each in (sp.sets.Threshold(), sp.sets.Cumulative())]
    first, second = outcomes
    gain = balance(recorded.y[recorded.begin :], 1.0 - first.losses, 1.0 - second.losses)
    told = replace(
        first.row, balance_gain=gain.middle, balance_low=gain.low, balance_high=gain.high
    )
    return [Outcome(first.masks, first.losses, told), second]


def controlled(recorded: Recorded, sets: Any) -> Outcome:
    """Rolling risk control with start and step size from the calibration rows."""
    loss: Any = sp.losses.FalseNegatives() if recorded.several else sp.losses.Miscoverage()
    past = slice(recorded.warm, recorded.begin)
    ready = sp.burn_in(
        sp.Controller(sets, sp.Risk(loss, LEVEL)), list(recorded.p[past]), list(recorded.y[past])
    )
    stream = sp.Stream(ready)
    masks, losses = [], []
    for p, y in zip(recorded.p[recorded.begin :], recorded.y[recorded.begin :], strict=True):
        masks.append(stream.predict(p).mask)
        got = stream.update(y)
        losses.append(nan if got is None else got)
    held, values = stream.certificate().risks[0], np.array(losses)
    apart = floor = nan
    if not recorded.several:
        labels = recorded.y[recorded.begin :].tolist()
        found = metrics.delta_coverage(1.0 - values, labels, 1.0 - LEVEL)
        apart, floor = found.delta, found.noise_floor
    sides = [each for each in (held.lower, held.upper) if each is not None]
    row = Row(
        recorded.name, type(sets).__name__, len(values), LEVEL, metrics.risk(values),
        float(np.sum(masks, axis=1).mean()), ready.risks[0].step.gamma,  # type: ignore[union-attr]
        max(map(abs, sides), default=nan),
        nan if held.identity is None else abs(held.mean - held.identity), held.within, apart, floor,
    )  # fmt: skip
    return Outcome(np.array(masks), values, row)


def balance(y: NDArray[Any], first: Floats, second: Floats, *, block: int = BLOCK) -> Estimate:
    """How much better the second of two coverages is balanced, in points, with a 95 % interval.

    The gain is the difference of the two mean distances of the coverage of a class from what was
    asked. The interval is the basic one of a bootstrap: blocks of consecutive rows, the same for
    both coverages, are drawn until they make a stream. The end of the stream is followed by its
    beginning, so that every row is drawn as often as another.

    Parameters
    ----------
    y
        The class of each row.
    first, second
        1 where the set held the class, else 0.
    block
        Rows in a block; at most a tenth of them all, for one block alone never varies.
    """
    rows = len(y)
    width = max(1, min(block, rows // 10))
    classes, places = np.unique(y, return_inverse=True)
    members = places[:, None] == np.arange(len(classes))
    counts = np.stack([members, members * first[:, None], members * second[:, None]])
    round_again = np.concatenate([counts, counts[:, : width - 1]], axis=1)
    sums = np.pad(round_again.cumsum(axis=1), ((0, 0), (1, 0), (0, 0)))
    blocks = sums[:, width:] - sums[:, :-width]

    def gain(drawn: Floats) -> float:
        count, *covered = drawn[:, drawn[0] > 0.0]  # a draw may lack a class
        distances = [np.abs(each / count - (1.0 - LEVEL)).mean() for each in covered]
        return 100.0 * float(distances[0] - distances[1])

    mean = gain(counts.sum(axis=1))
    random = np.random.default_rng(0)
    gains = [
        gain(blocks[:, random.integers(rows, size=ceil(rows / width))].sum(axis=1))
        for _ in range(DRAWS)
    ]
    # A mean of distances grows with noise, and a draw has the noise of the stream once more.
    # Quantiles of the draws would count it twice; the basic interval takes it off.
    high, low = 2.0 * mean - np.quantile(gains, [0.025, 0.975])
    return Estimate(mean, float(low), float(high), 1)
