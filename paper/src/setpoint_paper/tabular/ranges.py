"""What the four hyper-parameters of error adaptive stretching and its printed sign are worth.

The loss is the pinball loss of the rows judged, with the γ that a seed tuned. Each parameter goes
over a stated range while the others stay at what was tuned: β_score and β_loss over the paper's
own ranges, each clip bound from a tenth to ten times the paper's choice. The printed minus is the
update as the paper prints it, which shrinks the sets after a miss.
"""

from dataclasses import dataclass, replace
from math import exp
from typing import Any

import numpy as np

from setpoint.bulk import search
from setpoint.bulk.replay import replay
from setpoint.stretches import clip_bounds
from setpoint.tape import Tape
from setpoint_paper.tabular.measures import Judge, Row, ends_of
from setpoint_paper.tabular.methods import LEVELS, Protocol, controller

_POINTS = (0.0, 0.25, 0.5, 0.75, 1.0)
_FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True, slots=True)
class Range:
    """The pinball loss of one seed as one thing varies: the least and the most over its range.

    Of the printed minus, `least` is the loss with the plus and `most` that with the minus.
    """

    dataset: str
    seed: int
    what: str
    least: float
    most: float


def ranges(tape: Tape, chosen: Row, protocol: Protocol) -> list[Range]:
    """Every range of one tape, around the γ and β that a row of error adaptive took."""
    judge = Judge(tape, chosen.dataset, chosen.seed, protocol)
    part, first = judge.part, judge.tuned
    clip = clip_bounds(part[:first].y.tolist())[1]
    made = controller("error", "coverage", chosen.gamma, protocol, clip)
    usual: Any = replace(made.stretch, score=chosen.beta_score, loss=chosen.beta_loss)  # type: ignore[type-var]

    def loss(lower: np.ndarray, upper: np.ndarray) -> float:
        return judge.pinball(judge.finite(lower, upper), part.y, slice(first, None))

    def at(**options: float) -> float:
        trace = replay(replace(made, stretch=replace(usual, **options)), part)
        return loss(trace.lower, trace.upper)

    tried = {
        "beta_score": [at(score=search.BETA_SCORE.at(point)) for point in _POINTS],
        "beta_loss": [at(loss=search.BETA_LOSS.at(point)) for point in _POINTS],
        "beta_low": [at(low=-clip * factor) for factor in _FACTORS],
        "beta_high": [at(high=clip * factor) for factor in _FACTORS],
    }
    name, seed = chosen.dataset, chosen.seed
    found = [Range(name, seed, what, min(each), max(each)) for what, each in tried.items()]
    signs = [printed_minus(part, chosen, clip, sign) for sign in (1.0, -1.0)]
    plus, minus = (loss(lower, upper) for lower, upper, _ in signs)
    return [*found, Range(name, seed, "minus", plus, minus)]


def printed_minus(
    tape: Tape, chosen: Row, clip: float, sign: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Error adaptive stretching by hand with a sign of its update: −1 is the one printed.

    Below −10 and above 10 standard deviations the safeguard shows the empty and the full set.
    """
    gamma, score, weight, level = (
        chosen.gamma, chosen.beta_score, chosen.beta_loss, LEVELS["coverage"],
    )  # fmt: skip
    lower, upper = ends_of(tape)
    lows, highs = np.empty_like(lower), np.empty_like(upper)
    covered = np.empty(len(lower), dtype=bool)
    theta = memory = 0.0
    for row, (low, high, y) in enumerate(zip(lower, upper, tape.y, strict=True)):
        inside = -10.0 <= theta <= 10.0
        lam = theta + memory if inside else np.copysign(np.inf, theta)
        lows[row], highs[row] = low - lam, high + lam
        hit = covered[row] = lows[row] <= y <= highs[row]
        excess = (not hit) - level
        if inside:
            distance = max(low - y, y - high)
            moved = sign * score * distance * exp(weight * abs(excess))
            memory = min(max(memory + moved, -clip), clip)
        theta += gamma * excess
    return lows, highs, covered
