"""The paper's choice of γ: every step size on the validation frames, the narrowest that hold."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from setpoint.bulk.replay import replay
from setpoint.bulk.search import Holding
from setpoint.bulk.tune import tune, with_options
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.state import State

GAMMAS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 10.0)
"""The paper's step sizes for depth with one risk."""
PAIR_GAMMAS = (0.00001, 0.0001, 0.001, 0.005, 0.01, 0.1, 0.5, 2.0)
"""The paper's step sizes for depth with two risks, each of them."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """The step sizes that were chosen.

    `state` is that after the last frame of the validation part. `table` has everything that was
    tried: `gamma0`, `gamma1`, … the step sizes; `risk0`, … the mean losses; `full` the share of
    frames whose sets the safeguard made full; `length` the mean length of the others.
    """

    controller: Controller
    gammas: tuple[float, ...]
    held: bool
    state: State
    table: dict[str, Any] = field(repr=False)


def choose(
    controller: Controller,
    frames: Any,
    start: int = 0,
    stop: int | None = None,
    *,
    gammas: Iterable[float] | None = None,
    excess: Iterable[float] | None = None,
) -> Chosen:
    """The step sizes with the narrowest sets among those that hold every risk (`search.Holding`).

    That is the paper's rule: image coverage above 79.9 % and, with two risks, centre failure below
    11 %, for levels of 20 % and 10 %. Unlike the paper's, it looks first for the fewest sets that
    the safeguard made full, which have no length. If no setting holds, the nearest to it is taken,
    and `held` says so.

    Parameters
    ----------
    controller
        The controller as it is used live; of its risks only the step sizes are chosen.
    frames
        A `criticals.FrameTape` or `tapes.Frames`: those before `start` for warming up, those up to
        `stop` for validation.
    gammas
        The step sizes tried, each with each where there are several risks.
    excess
        How far each risk may be above its level: by default 0.001 for the first, 0.01 for others.

    References
    ----------
    Feldman et al. 2023, appendices C.2.4 and C.2.5: the depth experiments' setup.
    """
    count = len(controller.risks)
    if gammas is None:
        gammas = GAMMAS if count == 1 else PAIR_GAMMAS
    tolerances = (0.001, *(0.01,) * (count - 1)) if excess is None else tuple(excess)
    tape = frames.tape(0, stop)
    if not 0 <= start < len(tape):
        raise InputError(f"the validation part needs frames from start={start} to stop={stop}")
    names = [f"risks.{i}.step.gamma" for i in range(count)]
    tuned = tune(
        frames.controller(controller),
        tape,
        dict.fromkeys(names, tuple(gammas)),
        Holding(tolerances, start),
    )
    best = int(tuned.index or 0)
    steps = {name: float(tuned.options[name][best]) for name in names}
    settings = {f"gamma{i}": tuned.options[name] for i, name in enumerate(names)}
    return Chosen(
        with_options(controller, steps),
        tuple(steps.values()),
        bool(tuned.objective[best, 0] <= 0.0),
        replay(tuned.best, tape).state,
        {**settings, **tuned.table.columns},
    )
