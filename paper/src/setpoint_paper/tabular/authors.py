"""Rolling RC for intervals as in the authors' older code, which made the printed numbers.

What differs from the library: calibration starts at the rows that are judged, with θ = 0 and
nothing remembered; a miscoverage counter forgets what is more than 39 misses ago; an interval whose
ends have crossed is kept as it is, so it has a pinball loss, and its distance from y is that of the
nearer end. There is no safeguard that anything reaches, and so no certificate.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import exp
from typing import Any

import numpy as np

from setpoint.bulk import search
from setpoint.bulk.compile import compiled
from setpoint.tape import Tape
from setpoint_paper.tabular.methods import CONFIDENCE, LEVELS, Run

_MOST = 39.0
"""Their counter looks at 40 rows, and takes the first of them as no miss."""

_BETA_LOSS = search.Uniform(0.1, 2.0)
"""Their range of β_loss; the paper prints [0.1, 0.2]."""


@dataclass(frozen=True, slots=True)
class Coded:
    """A method of the authors' older code.

    Parameters
    ----------
    adaptive
        "score" or "error" for an adaptive stretching, else "".
    exponential
        Whether θ is stretched exponentially.
    """

    adaptive: str = ""
    exponential: bool = False


CODED = {
    "none_coded": Coded(),
    "exponential_coded": Coded(exponential=True),
    "score_coded": Coded("score"),
    "error_coded": Coded("error"),
    "score_exponential_coded": Coded("score", exponential=True),
    "error_exponential_coded": Coded("error", exponential=True),
}
"""Their six stretchings."""


def _loop(
    lower: Any,
    upper: Any,
    y: Any,
    numbers: tuple[float, float, float, float, float],
    switches: tuple[bool, bool],
    low: Any,
    high: Any,
    covered: Any,
    theta: Any,
) -> None:
    """Fills in the ends, the hits and the path of θ."""
    level, gamma, beta_score, beta_loss, clip = numbers
    counts, exponential = switches
    at, memory, streak = 0.0, 0.0, 0.0
    for t in range(len(y)):
        theta[t] = at
        lam = at
        if exponential:
            grown = exp(min(abs(at), 700.0)) - 1.0
            lam = grown if at > 0.0 else -grown
        lam += memory
        low[t], high[t] = lower[t] - lam, upper[t] + lam
        hit = low[t] <= y[t] <= high[t]
        covered[t] = hit
        streak = 0.0 if hit else min(streak + 1.0, _MOST)
        excess = (streak if counts else min(streak, 1.0)) - level
        at += gamma * excess
        if beta_score > 0.0 and excess != 0.0:
            below, above = low[t] - y[t], y[t] - high[t]
            moved = beta_score * exp(min(beta_loss * abs(excess), 700.0))
            moved *= min(abs(below), abs(above))
            memory = min(max(memory + (moved if excess > 0.0 else -moved), -clip), clip)
    theta[len(y)] = at


@lru_cache(maxsize=2)
def _fast(wanted: bool) -> Any:
    if not wanted:
        return _loop
    from numba import njit

    return njit(_loop)


def run(
    coded: Coded, tape: Tape, risk: str, gamma: float, betas: tuple[float, float], clip: float
) -> Run:
    """The method on a whole tape, from θ = 0, with β_score and β_loss."""
    lower, upper, y = (np.asarray(each, dtype=np.float64) for each in (*tape.prediction, tape.y))
    low, high = np.empty_like(y), np.empty_like(y)
    covered, theta = np.empty(len(y), dtype=bool), np.empty(len(y) + 1)
    _fast(compiled())(
        lower, upper, y, (LEVELS[risk], gamma, *betas, clip),
        (risk == "mc", coded.exponential), low, high, covered, theta,
    )  # fmt: skip
    return Run(tape, gamma, *betas, low, high, covered, theta)


def _pinball(end: np.ndarray, y: np.ndarray, level: float) -> Any:
    """Half of the mean pinball loss of one end."""
    above = y - end
    return np.maximum(level * above, (level - 1.0) * above).mean() / 2.0


def tuned(
    coded: Coded, tape: Tape, risk: str, gamma: float, clip: float, budget: int
) -> tuple[tuple[float, float], float]:
    """The β with the least pinball loss on a tape, of as many as their search tried; that loss.

    They searched by SMAC, here the points of a Halton sequence are tried.
    """
    if not coded.adaptive:
        tried = [(0.0, 0.0)]
    else:
        from scipy.stats import qmc

        points = qmc.Halton(2, seed=0).random(budget).tolist()
        error = coded.adaptive == "error"
        tried = [
            (search.BETA_SCORE.at(one), _BETA_LOSS.at(two) if error else 0.0) for one, two in points
        ]

    def loss(betas: tuple[float, float]) -> float:
        shown = run(coded, tape, risk, gamma, betas, clip)
        return float(_pinball(shown.lower, tape.y, low) + _pinball(shown.upper, tape.y, 1.0 - low))

    low = (1.0 - CONFIDENCE) / 2.0
    losses = [loss(betas) for betas in tried]
    return tried[int(np.argmin(losses))], min(losses)
