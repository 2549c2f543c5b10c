"""The paper's protocol for one tape: tune on rows 5001–8000, calibrate from 5001, judge from 8001.

θ lives in standard deviations of the first labels, as behind the printed numbers; lengths and
pinball losses are told in the unit of y.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan

import numpy as np

from setpoint import metrics
from setpoint.bulk.replay import replay
from setpoint.bulk.tune import tune
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.stretches import clip_bounds
from setpoint.tape import Tape
from setpoint_paper.tabular import authors
from setpoint_paper.tabular.measures import (
    Row,
    Scale,
    Seen,
    bare,
    finite_ends,
    judged,
    judged_run,
)
from setpoint_paper.tabular.methods import (
    CLIPPED,
    CONFIDENCE,
    LEVELS,
    METHODS,
    OURS,
    SPACES,
    Protocol,
    clipped_cal,
    controller,
)

__all__ = ["calibrate", "coded", "step_sizes"]


@dataclass(frozen=True, slots=True, eq=False)
class _Pinball:
    """The pinball loss, also of controllers that showed a full or an empty set on the way."""

    tape: Tape
    seen: Seen

    def __call__(self, made: Controller, found: Mapping[str, float]) -> float:
        if found["pinball"] < inf:
            return found["pinball"]
        trace = replay(made, self.tape)
        low, high = finite_ends(trace.lower, trace.upper, self.tape, self.seen)
        return metrics.pinball(low, high, self.tape.y, CONFIDENCE)


def calibrate(tape: Tape, dataset: str, seed: int, protocol: Protocol | None = None) -> list[Row]:
    """Every method with every step size on one tape, for both risks, and the bare model.

    The β of the adaptive stretchings are those with the least pinball loss on the rows that are
    tuned on, for each step size. Nothing of the rows that are judged is used to choose anything.
    """
    told = Protocol() if protocol is None else protocol
    if len(tape) <= told.tuned:
        raise InputError(f"the protocol judges rows after {told.tuned}, the tape has {len(tape)}")
    scale = Scale.of(tape.y[: told.scale_rows])
    standard = scale.standard(tape)
    part, chosen = standard[told.begin :], standard[told.begin : told.tuned]
    seen = Seen.before(standard.y, told.begin)
    clip = clip_bounds(chosen.y.tolist())[1]
    rows = [bare(part, dataset, seed, told, scale, seen)]
    for risk in LEVELS:
        for method in METHODS:
            for gamma in told.gammas if method != OURS else told.gammas[:1]:
                made, blind = controller(method, risk, gamma, told, clip), nan
                if method in SPACES:
                    tried = tune(
                        made, chosen, SPACES[method], _Pinball(chosen, seen[: len(chosen)]),
                        budget=told.budget, confidence_level=CONFIDENCE, progress=False,
                    )  # fmt: skip
                    made, blind = tried.best, _blind(tried.objective)
                row = judged(replay(made, part), dataset, seed, risk, method, told, scale, seen)
                rows.append(replace(row, blind=blind))
    rows += [row for risk in LEVELS for row in coded(tape, dataset, seed, risk, told)]
    rows += [
        judged_run(
            clipped_cal(part, gamma, told.window), dataset, seed, "coverage", CLIPPED,
            told.tuned - told.begin, scale, told,
        )
        for gamma in told.gammas
    ]  # fmt: skip
    return rows


def _blind(losses: Sequence[float] | np.ndarray) -> float:
    """By which share the median of some losses is larger than the least; NaN of a single one."""
    return float(np.median(losses) / np.min(losses)) - 1.0 if len(losses) > 1 else nan


def coded(
    tape: Tape,
    dataset: str,
    seed: int,
    risk: str,
    protocol: Protocol,
    methods: tuple[str, ...] = tuple(authors.CODED),
) -> list[Row]:
    """Methods of the authors' older code with every step size; the switched ones for coverage."""
    scale = Scale.of(tape.y[: protocol.scale_rows])
    standard = scale.standard(tape)
    chosen = standard[protocol.begin : protocol.tuned]
    clip = clip_bounds(chosen.y.tolist())[1]
    rows = []
    for method in methods:
        options = authors.CODED[method]
        if risk == "mc" and not method.endswith("_coded"):
            continue
        begin = protocol.begin if options.early else protocol.tuned
        for gamma in protocol.gammas:
            betas, losses = authors.tuned(options, chosen, risk, gamma, clip, protocol.budget)
            shown = authors.run(options, standard[begin:], risk, gamma, betas, clip)
            row = judged_run(
                shown, dataset, seed, risk, method, protocol.tuned - begin, scale, protocol,
                tuning=scale.spread * min(losses),
            )  # fmt: skip
            rows.append(replace(row, blind=_blind(losses)))
    return rows


def step_sizes(
    tape: Tape,
    gammas: tuple[float, ...],
    seed: int,
    protocol: Protocol | None = None,
    truth: np.ndarray | None = None,
) -> list[Row]:
    """Rolling RC without stretching under many step sizes: the appendix's study of γ.

    `truth` are the true quantiles of each row, where they are known: ends are compared with them.
    """
    told = Protocol() if protocol is None else protocol
    scale = Scale.of(tape.y[: told.scale_rows])
    standard = scale.standard(tape)
    part, seen = standard[told.begin :], Seen.before(standard.y, told.begin)

    def away(lower: np.ndarray, upper: np.ndarray) -> float:
        if truth is None:
            return nan
        low, high = finite_ends(lower, upper, part, seen)
        ends = scale.centre + scale.spread * np.column_stack([low, high])
        judged_rows = slice(told.tuned - told.begin, None)
        return float(np.abs(ends - truth[told.begin :])[judged_rows].mean())

    rows = []
    for gamma in gammas:
        trace = replay(controller("none", "coverage", gamma, told, 1.0), part)
        row = judged(trace, "synthetic", seed, "coverage", "none", told, scale, seen)
        rows.append(replace(row, away=away(trace.lower, trace.upper)))
    return rows
