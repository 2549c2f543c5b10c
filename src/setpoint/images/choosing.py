"""Choosing step sizes for images by the paper's rule, on frames reduced to critical values."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint._check import positive
from setpoint.bulk.replay import replay
from setpoint.bulk.search import DEPTH_GAMMAS, DEPTH_PAIR_GAMMAS, Holding
from setpoint.bulk.tune import tune, with_options
from setpoint.controller import Controller, State
from setpoint.errors import InputError
from setpoint.images.criticals import FrameTape

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
        held = "held" if self.held else "not held"
        count = len(self.table["length"])
        return f"<Chosen γ = {self.gammas} of {count} settings, risks {held}>"


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
    names = [f"risks.{i}.step.gamma" for i in range(len(risks))]
    space = dict.fromkeys(names, tried)
    tuned = tune(
        frames.controller(controller), tape, space, Holding(allowed, start), progress=False
    )
    best = int(tuned.index or 0)
    steps = tuple(float(tuned.options[name][best]) for name in names)
    return Chosen(
        with_options(controller, dict(zip(names, steps, strict=True))),
        steps,
        bool(tuned.objective[best, 0] <= 0.0),
        replay(tuned.best, tape).state,
        {
            **{f"gamma{i}": tuned.options[name] for i, name in enumerate(names)},
            **tuned.table.columns,
        },
    )
