"""The methods of the tabular experiments: levels, what is tried of them, controllers."""

from dataclasses import dataclass, replace
from math import floor, nan
from typing import Any

import numpy as np

from setpoint._window import Window
from setpoint.bulk import search
from setpoint.controller import Controller, Risk
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.sets import ScoreWindow, Widen
from setpoint.steps import Fixed
from setpoint.stretches import ErrorAdaptive, Exponential, Identity, ScoreAdaptive
from setpoint.tape import Tape

CONFIDENCE = 0.9
LEVELS = {"coverage": 1.0 - CONFIDENCE, "mc": (1.0 - CONFIDENCE) / CONFIDENCE}
"""The levels of the two risks: 10 % misses, and a miscoverage counter of 1/9."""

CLIPPED = "cal_coded"
"""Calibration with cal as its authors coded it, for coverage alone."""

NAMES = {
    "none": "none",
    "exponential": "exponential",
    "score": "score adaptive",
    "error": "error adaptive",
    "score_exponential": "score adaptive over exponential",
    "error_exponential": "error adaptive over exponential",
    "cal": "calibration with cal",
}
NAMES |= {f"{name}_coded": f"{told}, their code" for name, told in NAMES.items()}
"""What the methods are called in tables and figures."""

STRETCHES = ("none", "exponential", "score", "error")
METHODS = (*STRETCHES, "score_exponential", "error_exponential", "cal")
"""Rolling RC by its stretching, as the paper's text has it; adaptive stretchings over an
exponential one; calibration with cal."""

_PAPER = {"score": search.BETA_SCORE, "loss": search.BETA_LOSS}

SPACES: dict[str, dict[str, Any]] = {
    "score": {"score": search.BETA_SCORE},
    "score_exponential": {"score": search.BETA_SCORE},
    "error": _PAPER,
    "error_exponential": _PAPER,
}
"""The β that are searched, in the paper's ranges."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """Which rows serve for what, and what is tried.

    Parameters
    ----------
    begin
        How many rows the model has for itself; calibration begins after them.
    tuned
        The rows up to this one choose γ and β; those after it are judged.
    gammas
        The step sizes tried.
    budget
        How many β are tried for each step size.
    reach
        The bounds of λ, in the unit of θ. The guarantee's constant is proportional to it: at
        γ = 0.025 and T = 15,000 a reach of 10 bounds the risk's error by 0.027, and the bounds of
        the paper, 9999, by 27.
    window
        How many past scores calibration with cal holds.
    scale_rows
        How many first labels the unit of θ, their standard deviation, is taken from; by default
        those before calibration begins. The authors took 8000, which includes rows tuned on.
    """

    begin: int = 5_000
    tuned: int = 8_000
    gammas: tuple[float, ...] = search.GAMMAS
    budget: int = 40
    reach: float = 10.0
    window: int = 300
    scale_rows: int | None = None

    def __post_init__(self) -> None:
        if self.scale_rows is None:
            object.__setattr__(self, "scale_rows", self.begin)


def controller(method: str, risk: str, gamma: float, protocol: Protocol, clip: float) -> Controller:
    """The controller of a method, with the first β of its ranges.

    `clip` is what the memory of the adaptive stretchings is clipped to, in units of θ. What the
    authors coded is no controller: see `clipped_cal` and `tabular.authors`.
    """
    loss: Any = Miscoverage() if risk == "coverage" else MiscoverageCounter()
    one = Risk(loss, LEVELS[risk], Fixed(gamma))
    if method == "cal":
        return Controller(ScoreWindow(Widen(), protocol.window), one)
    bent, score, loss_low = Exponential(), search.BETA_SCORE.low, search.BETA_LOSS.low
    stretches: dict[str, Any] = {
        "none": Identity(),
        "exponential": bent,
        "score": ScoreAdaptive(score, -clip, clip),
        "error": ErrorAdaptive(score, loss_low, -clip, clip, reading="paper"),
        "score_exponential": ScoreAdaptive(score, -clip, clip, inner=bent),
        "error_exponential": ErrorAdaptive(
            score, loss_low, -clip, clip, inner=bent, reading="paper"
        ),
    }
    stretch = stretches[method]
    far = stretch.inverse(protocol.reach, stretch.init())
    one = replace(one, start=0.0, bounds=(-far, far))
    return Controller(Widen(), one, stretch=stretch)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a method of the authors showed, row for row; `theta` has one more, where it ended."""

    tape: Tape
    gamma: float
    beta_score: float
    beta_loss: float
    lower: np.ndarray
    upper: np.ndarray
    covered: np.ndarray
    theta: np.ndarray


def clipped_cal(tape: Tape, gamma: float, window: int) -> Run:
    """Calibration with cal as the paper's authors coded it, for coverage.

    The share min(1, max(0, 1 + θ + 1/n)) of the n past scores, interpolated, widens the interval;
    without scores nothing does. No set is ever full or empty by θ, so there is no certificate: a
    stream whose scores grow without end is missed for ever.
    """
    level = LEVELS["coverage"]
    lower, upper, y = (np.asarray(each).tolist() for each in (*tape.prediction, tape.y))
    past = Window(window)
    theta, thetas, ends, covered = -level, [-level], [], []
    for low, high, label in zip(lower, upper, y, strict=True):
        held, wider = len(past), 0.0
        if held:
            place = (held - 1) * min(1.0, max(0.0, 1.0 + theta + 1.0 / held))
            below = floor(place)
            wider = past.smallest(below + 1)
            if place > below:
                wider += (place - below) * (past.smallest(below + 2) - wider)
        hit = low - wider <= label <= high + wider
        ends.append((low - wider, high + wider))
        covered.append(hit)
        theta += gamma * (float(not hit) - level)
        thetas.append(theta)
        past.add(max(low - label, label - high))
    left, right = np.array(ends).reshape(-1, 2).T
    hits = np.array(covered, dtype=bool)
    return Run(tape, gamma, nan, nan, left, right, hits, np.array(thetas))
