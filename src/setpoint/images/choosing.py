"""Choosing step sizes for images by the paper's rule, on frames reduced to critical values."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from setpoint._check import positive
from setpoint.bulk.replay import Trace, replay
from setpoint.bulk.search import DEPTH_GAMMAS, DEPTH_PAIR_GAMMAS
from setpoint.controller import Controller, Risk, State
from setpoint.errors import InputError
from setpoint.images.criticals import FrameTape
from setpoint.steps import Fixed

__all__ = ["Chosen", "choose"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Chosen:
    """What was chosen, and how good a choice there was.

    Parameters
    ----------
    controller
        The controller that was given, with the step sizes chosen.
    gammas
        The step size of each risk.
    held
        Whether every risk was held within its tolerance.
    state
        The state after the last frame of the validation part, to go on from.
    table
        Everything that was tried, one entry for each setting: `gamma0`, `gamma1`, … the step
        sizes; `risk0`, `risk1`, … the mean losses; `full` the share of frames whose sets the
        safeguard made full; `length` the mean length of the others.
    """

    controller: Controller
    gammas: tuple[float, ...]
    held: bool
    state: State
    table: dict[str, Array]

    def __repr__(self) -> str:
        told = "held" if self.held else "not held"
        count = len(self.table["length"])
        return f"<Chosen γ = {self.gammas} of {count} settings, risks {told}>"


def choose(
    controller: Controller,
    frames: FrameTape,
    start: int = 0,
    stop: int | None = None,
    *,
    gammas: Iterable[float] | None = None,
    excess: Iterable[float] | None = None,
) -> Chosen:
    """The step sizes with the narrowest sets among those that hold every risk.

    That is the paper's rule: image coverage above 79.9 % and, with two risks, centre failure below
    11 %, for levels of 20 % and 10 %. Every setting is replayed from the first frame on and judged
    on the frames from `start` to `stop`, so that no setting is judged on how it sets out.

    Frames whose sets the safeguard made full have no finite length, so they are counted apart:
    among the settings that hold, those with the fewest such frames come first, then the least mean
    length of the others. If none holds, the one whose worst excess over its tolerance is least is
    taken, and `held` says so.

    Parameters
    ----------
    controller
        The controller as it is used live; of its risks only the step sizes are chosen.
    frames
        The frames: those before `start` for warming up, those up to `stop` for validation.
    start, stop
        The validation part; by default all frames.
    gammas
        The step sizes tried, each with each where there are several risks. By default the paper's:
        `search.DEPTH_GAMMAS` for one risk, `search.DEPTH_PAIR_GAMMAS` for more.
    excess
        How far each risk may be above its level: by default 0.001 for the first, 0.01 for others.

    References
    ----------
    Feldman et al. 2023, appendix C: the depth experiments' setup.
    """
    risks = controller.risks
    usual = DEPTH_GAMMAS if len(risks) == 1 else DEPTH_PAIR_GAMMAS
    tried = [positive(gamma, "a step size") for gamma in (usual if gammas is None else gammas)]
    allowed = (0.001, *(0.01,) * (len(risks) - 1)) if excess is None else tuple(excess)
    if len(allowed) != len(risks):
        raise InputError(f"excess must be given for each of {len(risks)} risks, got {len(allowed)}")
    tape = frames.tape(0, stop)
    if not 0 <= start < len(tape):
        raise InputError(
            f"the validation part needs frames from start={start} to stop={stop}, the tape has "
            f"{len(frames)}"
        )
    reading = frames.controller(controller)
    settings = list(product(tried, repeat=len(risks)))
    rows, states = [], []
    for setting in settings:
        trace = replay(_with(reading, setting), tape)
        rows.append((*setting, *_measured(trace, start)))
        states.append(trace.state)
    names = [f"{what}{i}" for what in ("gamma", "risk") for i in range(len(risks))]
    table = dict(zip([*names, "full", "length"], np.array(rows).T, strict=True))
    over = [table[f"risk{i}"] - risk.level - allowed[i] for i, risk in enumerate(risks)]
    # A risk that was never judged was never above its level.
    worst = np.max([np.where(np.isnan(each), 0.0, np.maximum(each, 0.0)) for each in over], axis=0)
    best = int(np.lexsort((table["length"], table["full"], worst))[0])
    return Chosen(
        _with(controller, settings[best]),
        settings[best],
        bool(worst[best] <= 0.0),
        states[best],
        table,
    )


def _with(controller: Controller, gammas: tuple[float, ...]) -> Controller:
    """The controller with other step sizes."""
    pairs = zip(controller.risks, gammas, strict=True)
    risks = [replace(risk, step=_step(risk, gamma)) for risk, gamma in pairs]
    return Controller(controller.sets, risks, controller.stretch, controller.combine)


def _step(risk: Risk, gamma: float) -> Any:
    step: Any = risk.step
    if step is None:
        return Fixed(gamma)
    if not hasattr(step, "gamma"):
        raise InputError(f"only a step rule with a gamma can be chosen for, got {step!r}")
    return replace(step, gamma=gamma)


def _measured(trace: Trace, start: int) -> tuple[float, ...]:
    """The mean loss of each risk from a frame on, the share of full sets, the mean length."""
    losses = trace.losses[:, start:]
    judged = ~np.isnan(losses)
    totals = np.where(judged, losses, 0.0).sum(axis=1)
    with np.errstate(invalid="ignore"):
        risks = totals / judged.sum(axis=1)
    lengths = np.array([shown.length for shown in (trace.shown or ())[start:]])[judged.any(axis=0)]
    finite = lengths[np.isfinite(lengths)]
    full = 1.0 - len(finite) / len(lengths) if len(lengths) else 0.0
    return (*risks.tolist(), full, float(finite.mean()) if len(finite) else 0.0)
