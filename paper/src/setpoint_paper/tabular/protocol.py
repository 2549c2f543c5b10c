"""The paper's protocol for one tape: tune on rows 5001–8000, calibrate from 5001, judge from 8001.

θ lives in standard deviations of the first labels, as behind the printed numbers; lengths and
pinball losses are told in the unit of y.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from setpoint import metrics
from setpoint.bulk.replay import replay
from setpoint.bulk.tune import tune
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.stretches import clip_bounds
from setpoint.tape import Tape
from setpoint_paper.tabular import authors
from setpoint_paper.tabular.measures import Judge, Row
from setpoint_paper.tabular.methods import (
    CLIPPED,
    CONFIDENCE,
    LEVELS,
    METHODS,
    SPACES,
    Protocol,
    clipped_cal,
    controller,
)


@dataclass(frozen=True, slots=True, eq=False)
class _Pinball:
    """The pinball loss, also of controllers that showed a full or an empty set on the way."""

    tape: Tape
    judge: Judge

    def __call__(self, made: Controller, found: Mapping[str, float]) -> float:
        if found["pinball"] < inf:
            return found["pinball"]
        trace = replay(made, self.tape)
        ends = self.judge.finite(trace.lower, trace.upper)
        return metrics.pinball(*ends, self.tape.y, CONFIDENCE)


def calibrate(tape: Tape, dataset: str, seed: int, protocol: Protocol | None = None) -> list[Row]:
    """Every method with every step size on one tape, for both risks.

    The β of the adaptive stretchings are those with the least pinball loss on the rows that are
    tuned on, for each step size. Nothing of the rows that are judged is used to choose anything.
    """
    told = Protocol() if protocol is None else protocol
    if len(tape) <= told.tuned:
        raise InputError(f"the protocol judges rows after {told.tuned}, the tape has {len(tape)}")
    judge = Judge(tape, dataset, seed, told)
    chosen = judge.part[: judge.tuned]
    clip, objective = clip_bounds(chosen.y.tolist())[1], _Pinball(chosen, judge)
    rows = []
    for risk in LEVELS:
        for method in METHODS:
            for gamma in told.gammas:
                made = controller(method, risk, gamma, told, clip)
                if method in SPACES:
                    made = tune(
                        made, chosen, SPACES[method], objective, trials=told.budget,
                        coverage=CONFIDENCE,
                    ).best  # fmt: skip
                rows.append(judge.trace(replay(made, judge.part), risk, method))
    rows += [row for risk in LEVELS for row in coded(judge, risk)]
    for gamma in told.gammas:
        shown = clipped_cal(judge.part, gamma, told.window)
        rows.append(judge.run(shown, "coverage", CLIPPED, judge.tuned))
    return rows


def coded(judge: Judge, risk: str, methods: tuple[str, ...] = tuple(authors.CODED)) -> list[Row]:
    """Methods of the authors' older code with every step size, from the rows judged on."""
    told, rows = judge.protocol, []
    chosen = judge.part[: judge.tuned]
    clip = clip_bounds(chosen.y.tolist())[1]
    for method in methods:
        options = authors.CODED[method]
        for gamma in told.gammas:
            betas, loss = authors.tuned(options, chosen, risk, gamma, clip, told.budget)
            shown = authors.run(options, judge.part[judge.tuned :], risk, gamma, betas, clip)
            rows.append(judge.run(shown, risk, method, 0, judge.scale.spread * loss))
    return rows


def step_sizes(
    tape: Tape, gammas: tuple[float, ...], seed: int, protocol: Protocol | None = None
) -> list[Row]:
    """Rolling RC without stretching under many step sizes: the appendix's study of γ."""
    told = Protocol() if protocol is None else protocol
    judge = Judge(tape, "synthetic", seed, told)
    made = (controller("none", "coverage", gamma, told, 1.0) for gamma in gammas)
    return [judge.trace(replay(each, judge.part), "coverage", "none") for each in made]
