"""Ways to turn recorded probabilities into sets of labels, each judged on the same rows.

The controlled ones take their start and step size from the calibration rows by `setpoint.burn_in`;
the fixed ones take a threshold from the same rows and keep it; the bare classifier takes its own
probabilities at their word.
"""

from dataclasses import dataclass, replace
from math import ceil, inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

import setpoint as sp
from setpoint import metrics
from setpoint.controller import Controller
from setpoint.guarantee import RiskCertificate
from setpoint.metrics import false_negatives, labels_covered, set_sizes
from setpoint_paper.classification.tapes import Recorded
from setpoint_paper.statistics import Estimate

__all__ = [
    "BLOCK", "DRAWS", "LEVEL", "OURS", "PACES", "WINDOW", "Outcome", "balance", "methods",
    "paces", "rolling",
]  # fmt: skip

LEVEL = 0.1
"""The miscoverage, or false-negative proportion, that is asked for."""
WINDOW = 250
"""Rows in a window."""
PACES = (0.25, 1.0, 4.0)
"""Multiples of the step size, for the table that shows what it does."""
BLOCK = 100
"""Rows in a block of the bootstrap: misses further apart than that are hardly related, and the
shortest stream of classes still has 30 blocks."""
DRAWS = 2_000
"""How many times the bootstrap draws a stream."""
OURS = "self-adjusting (ours)"
"""The library's self-adjusting default, which the paper does not have."""

Floats = NDArray[np.float64]
Masks = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What one method showed on the judged rows of a stream.

    Parameters
    ----------
    stream, method, family
        Which; the family is what its sets are made by.
    kind
        "bare", "fixed" or "controlled".
    masks
        Which labels each set held, rows × classes.
    losses
        Miscoverage, or the false-negative proportion, of each row.
    certificate
        Of a controlled method.
    gamma
        Its step size, else NaN.
    chosen
        How many sets the safeguard chose, full or empty.
    unbalanced
        How far the coverage of a class is from 90 %, the mean over classes; NaN where a row may
        have several labels.
    floor
        What independent misses would make of that.
    """

    stream: str
    method: str
    family: str
    kind: str
    masks: Masks
    losses: Floats
    certificate: RiskCertificate | None = None
    gamma: float = nan
    chosen: int = 0
    unbalanced: float = nan
    floor: float = nan

    @property
    def risk(self) -> float:
        """The mean loss."""
        return metrics.risk(self.losses)

    @property
    def mean_size(self) -> float:
        """Labels in a set."""
        return float(set_sizes(self.masks).mean())

    @property
    def empty(self) -> float:
        """The share of sets without a label."""
        return float((~self.masks.any(axis=1)).mean())

    @property
    def full(self) -> float:
        """The share of sets that hold every label."""
        return float(self.masks.all(axis=1).mean())

    @property
    def worst(self) -> float:
        """The largest mean loss of a window."""
        return float(rolling(self.losses).max())

    @property
    def calmest(self) -> float:
        """The smallest mean loss of a window."""
        return float(rolling(self.losses).min())

    @property
    def msl(self) -> float:
        """The mean length of a streak of misses; NaN where a loss is not 0 or 1."""
        hits = 1.0 - self.losses
        return metrics.msl(hits) if set(np.unique(hits)) <= {0.0, 1.0} else nan

    @property
    def gap(self) -> float:
        """How far the mean loss is from what the path of θ says it must be."""
        held = self.certificate
        return nan if held is None or held.identity is None else abs(held.mean - held.identity)

    @property
    def bound(self) -> float:
        """How far from the level the mean loss can be at the most, whatever the stream.

        From above alone, where nothing is promised from below.
        """
        held = self.certificate
        if held is None or held.upper is None:
            return nan
        return held.upper if held.lower is None else max(-held.lower, held.upper)


def rolling(values: Floats, window: int = WINDOW) -> Floats:
    """The mean of every run of `window` values; of all, where there are fewer."""
    values = values[~np.isnan(values)]
    width = min(window, len(values))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    means: Floats = (sums[width:] - sums[:-width]) / width
    return means


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


def methods(recorded: Recorded) -> list[Outcome]:
    """Every method on one stream."""
    if recorded.several:
        return [_claimed(recorded), _half(recorded), _fixed(recorded), _controlled(recorded)]
    threshold, cumulative = sp.sets.Threshold(), sp.sets.Cumulative()
    return [
        _claimed(recorded),
        _fixed(recorded, threshold),
        _fixed(recorded, cumulative),
        _controlled(recorded, threshold),
        _controlled(recorded, cumulative),
        _controlled(recorded, sp.sets.Cumulative(randomised=True)),
        _windowed(recorded),
        _adjusting(recorded, threshold),
        _adjusting(recorded, cumulative),
    ]


def paces(recorded: Recorded) -> list[tuple[float, Outcome]]:
    """The two families with other step sizes: multiples of the one chosen."""
    if recorded.several:
        return [(pace, _controlled(recorded, pace=pace)) for pace in PACES]
    return [
        (pace, _controlled(recorded, family, pace=pace))
        for family in (sp.sets.Threshold(), sp.sets.Cumulative())
        for pace in PACES
    ]


def _judged(recorded: Recorded, masks: Masks) -> Floats:
    labels = recorded.y[recorded.begin :]
    if recorded.several:
        return false_negatives(masks, labels)
    return 1.0 - labels_covered(masks, labels)


def _outcome(recorded: Recorded, method: str, family: str, kind: str, masks: Masks) -> Outcome:
    losses = _judged(recorded, masks)
    apart, floor = _unbalanced(recorded, losses)
    return Outcome(
        recorded.name, method, family, kind, masks, losses, unbalanced=apart, floor=floor
    )


def _unbalanced(recorded: Recorded, losses: Floats) -> tuple[float, float]:
    """The mean distance of the coverage of a class from what was asked, and what chance makes."""
    if recorded.several:
        return nan, nan
    labels = recorded.y[recorded.begin :].tolist()
    found = metrics.delta_coverage(1.0 - losses, labels, 1.0 - LEVEL)
    return found.delta, found.noise_floor


# The bare classifier


def _claimed(recorded: Recorded) -> Outcome:
    """The fewest likeliest labels that have 1 − level of the probability by the model's word.

    Of several labels: of the number of labels that it expects.
    """
    masks = []
    for p in recorded.p[recorded.begin :]:
        order = np.argsort(-p, kind="stable")
        before = np.concatenate([[0.0], np.cumsum(p[order])[:-1]])
        mask = np.zeros(len(p), dtype=np.bool_)
        mask[order] = before < (1.0 - LEVEL) * p.sum()
        masks.append(mask)
    return _outcome(recorded, "uncalibrated", "probabilities", "bare", np.array(masks))


def _half(recorded: Recorded) -> Outcome:
    """Every label that is more likely than not."""
    masks = recorded.p[recorded.begin :] >= 0.5
    return _outcome(recorded, "uncalibrated, p ≥ 1/2", "probabilities", "bare", masks)


# A threshold that is set once


def _fixed(recorded: Recorded, family: Any = None) -> Outcome:
    """Split conformal prediction; for several labels, conformal risk control."""
    sets = sp.sets.Multilabel() if family is None else family
    past = slice(recorded.warm, recorded.begin)
    rows = [
        (sets.read(p), sets.label(y))
        for p, y in zip(recorded.p[past], recorded.y[past], strict=True)
    ]
    lam = _crc(sets, rows) if recorded.several else _split([sets.critical(*row) for row in rows])
    masks = np.array([sets.at(sets.read(p), lam).mask for p in recorded.p[recorded.begin :]])
    return _outcome(recorded, "fixed threshold", type(sets).__name__, "fixed", masks)


def _split(scores: list[float]) -> float:
    """The ⌈(1 − level)(n + 1)⌉-th smallest score, +inf if there are not so many."""
    rank = ceil((1.0 - LEVEL) * (len(scores) + 1))
    return sorted(scores)[rank - 1] if rank <= len(scores) else inf


def _crc(sets: Any, rows: list[tuple[Any, Any]]) -> float:
    """The smallest λ with (n·mean loss + 1)/(n + 1) at most the level, +inf if there is none."""
    loss = sp.losses.FalseNegatives()
    judged = [row for row in rows if row[1]]
    steps = sorted({s for row in judged for s in sets.criticals(*row)})
    low, high = 0, len(steps)
    while low < high:
        middle = (low + high) // 2
        values = [loss(sets.at(p, steps[middle]), y) or 0.0 for p, y in judged]
        if (sum(values) + 1.0) / (len(judged) + 1) <= LEVEL:
            high = middle
        else:
            low = middle + 1
    return steps[low] if low < len(steps) else inf


# Controlled


def _controlled(recorded: Recorded, family: Any = None, *, pace: float = 1.0) -> Outcome:
    """Rolling risk control with start and step size from the calibration rows."""
    several = recorded.several
    sets: Any = sp.sets.Multilabel() if family is None else family
    loss: Any = sp.losses.FalseNegatives() if several else sp.losses.Miscoverage()
    past = slice(recorded.warm, recorded.begin)
    ready = sp.burn_in(
        Controller(sets, sp.Risk(loss, LEVEL)), list(recorded.p[past]), list(recorded.y[past])
    )
    risk = ready.risks[0]
    gamma = pace * risk.step.gamma  # type: ignore[union-attr]
    ready = replace(ready, risks=(replace(risk, step=sp.steps.Fixed(gamma)),))
    name = type(sets).__name__
    name += ", randomised" if getattr(sets, "randomised", False) else ""
    return _run(recorded, ready, "controlled", name)


def _windowed(recorded: Recorded) -> Outcome:
    """Adaptive conformal inference with its usual defaults, its window filled beforehand."""
    scores = sp.sets.Cumulative()
    ready = sp.presets.aci(1.0 - LEVEL, scores=scores)
    past = slice(recorded.warm, recorded.begin)
    filled = [
        scores.critical(scores.read(p), scores.label(y))
        for p, y in zip(recorded.p[past], recorded.y[past], strict=True)
    ]
    return _run(recorded, ready, "controlled, ACI", "Cumulative", filled)


def _adjusting(recorded: Recorded, family: Any) -> Outcome:
    """The library's self-adjusting default, which asks for no calibration rows and no step size."""
    ready = sp.label_sets(1.0 - LEVEL, sets=family)
    return _run(recorded, ready, OURS, type(family).__name__)


def _run(
    recorded: Recorded, ready: Controller, method: str, family: str, memory: Any = None
) -> Outcome:
    """A controller on the judged rows, from its beginning."""
    step = ready.risks[0].step
    if recorded.several:
        masks, losses, held = _live(recorded, ready)
    else:
        masks, losses, held = _replayed(recorded, ready, memory)
    return Outcome(
        recorded.name,
        method,
        family,
        "controlled",
        masks,
        losses,
        held.risks[0],
        step.gamma if isinstance(step, sp.steps.Fixed) else nan,
        held.full + held.empty,
        *_unbalanced(recorded, losses),
    )


def _replayed(
    recorded: Recorded, ready: Controller, memory: Any
) -> tuple[Masks, Floats, sp.Certificate]:
    begin = ready.init()
    if memory is not None:
        begin.sets = ready.sets.bind(memory)  # type: ignore[attr-defined]
    p, y = recorded.p[recorded.begin :], recorded.y[recorded.begin :]
    tape = sp.Tape.from_arrays({f"p{place}": column for place, column in enumerate(p.T)}, y)
    trace = sp.replay(ready, tape, begin)
    masks = np.array([shown.mask for shown in trace.shown or ()])
    return masks, trace.losses[0], trace.certificate()


def _live(recorded: Recorded, ready: Controller) -> tuple[Masks, Floats, sp.Certificate]:
    """Several labels do not fit into a tape's column of labels."""
    stream = sp.Stream(ready)
    masks, losses = [], []
    for p, y in zip(recorded.p[recorded.begin :], recorded.y[recorded.begin :], strict=True):
        masks.append(stream.predict(p).mask)
        loss = stream.update(y)
        losses.append(nan if loss is None else loss)
    return np.array(masks), np.array(losses), stream.certificate()
