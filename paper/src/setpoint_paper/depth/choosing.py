"""The paper's choice of γ: every step size on the validation frames, the narrowest that hold."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from setpoint.bulk.search import Holding
from setpoint.bulk.tune import Tuned, tune, with_options
from setpoint.controller import Controller
from setpoint.tape import Tape

GAMMAS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 10.0)
"""The paper's step sizes for depth with one risk."""
PAIR_GAMMAS = (0.00001, 0.0001, 0.001, 0.005, 0.01, 0.1, 0.5, 2.0)
"""The paper's step sizes for depth with two risks, each of them."""
EXCESS = (0.001, 0.01)
"""How far the paper lets the image's and the centre's risk be above their levels."""


class Chosen(NamedTuple):
    """The step sizes that were chosen, whether they hold the risks, and all that was tried."""

    controller: Controller
    gammas: tuple[float, ...]
    held: bool
    tried: Tuned


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
    the safeguard made full, which have no length. If no setting holds, the nearest to it is taken.

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
        How far each risk may be above its level, by default `EXCESS`.

    References
    ----------
    Feldman et al. 2023, appendices C.2.4 and C.2.5: the depth experiments' setup.
    """
    count = len(controller.risks)
    if gammas is None:
        gammas = GAMMAS if count == 1 else PAIR_GAMMAS
    names = [f"risks.{i}.step.gamma" for i in range(count)]
    tape: Tape = frames.tape(0, stop)
    tuned = tune(
        frames.controller(controller), tape, dict.fromkeys(names, tuple(gammas)),
        Holding(EXCESS[:count] if excess is None else tuple(excess), start),
    )  # fmt: skip
    best = int(tuned.index or 0)
    steps = {name: float(tuned.options[name][best]) for name in names}
    held = bool(tuned.objective[best, 0] <= 0.0)
    return Chosen(with_options(controller, steps), tuple(steps.values()), held, tuned)
