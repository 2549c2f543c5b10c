"""The choice of γ is the paper's rule, by live streams."""

from math import inf, isnan, nan
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError
from setpoint_paper.depth.choosing import GAMMAS, PAIR_GAMMAS, choose
from setpoint_paper.depth.criticals import FrameTape

RISKS = (
    sp.Risk(sp.losses.ImageMiscoverage(), 0.2, sp.steps.Fixed(0.3), bounds=(-6.0, 6.0)),
    sp.Risk(sp.losses.CentreFailure(), 0.1, sp.steps.Fixed(0.1), bounds=(-6.0, 6.0)),
)


def frames(count: int) -> list[tuple[Any, Any]]:
    """Spreads and truths whose errors grow, a fifth of the pixels without a truth."""
    random = np.random.default_rng(8)
    made = []
    for t in range(count):
        centre = random.uniform(5.0, 40.0, (10, 12))
        low, high = random.gamma(2.0, 0.5, (2, 10, 12))
        truth = centre + random.normal(0.0, 1.0 + (t > count // 2), centre.shape) * (0.2 + high)
        truth[random.random(centre.shape) < 0.2] = nan
        made.append((sp.predictions.PixelSpread(centre, low, high, None), truth))
    return made


def kept(seen: list[tuple[Any, Any]]) -> FrameTape:
    tape = FrameTape(dtype="float64")
    for prediction, y in seen:
        tape.add(prediction, y)
    return tape


def rank(controller: sp.Controller, seen: Any, limits: Any, start: int) -> tuple[float, ...]:
    """Worst excess, share of full sets and mean length of the others, of a live stream."""
    stream, losses, lengths = sp.Stream(controller), [], []
    for prediction, y in seen:
        lengths.append(stream.predict(prediction).length)
        losses.append(stream.update(y))
    means = np.nanmean(np.array(losses[start:], float), axis=0)  # None where nothing is judged
    later = np.array(lengths[start:])
    full = np.isinf(later)
    return max(0.0, *(means - limits)), float(full.mean()), float(later[~full].mean())


@pytest.mark.parametrize("start", [0, 25])
@pytest.mark.parametrize("excess", [(0.3, 0.5), (-0.15, -0.09)])
def test_the_choice_is_that_of_the_papers_rule(excess: tuple[float, float], start: int) -> None:
    seen, gammas = frames(60), (0.01, 0.5, 20.0)
    controller = sp.Controller(sp.sets.PixelScale(), RISKS, sp.stretches.Exponential())
    found = choose(controller, kept(seen), start, gammas=gammas, excess=excess)
    best: tuple[Any, ...] = ((inf,), ())
    for pair in [(one, other) for one in gammas for other in gammas]:
        risks = [
            sp.Risk(risk.loss, risk.level, sp.steps.Fixed(gamma), bounds=risk.bounds)
            for risk, gamma in zip(RISKS, pair, strict=True)
        ]
        tried = sp.Controller(controller.sets, risks, controller.stretch, controller.combine)
        best = min(best, (rank(tried, seen, np.add((0.2, 0.1), excess), start), pair))
    assert found.gammas == best[1]
    assert found.held == (best[0][0] == 0.0)
    assert found.controller.sets == sp.sets.PixelScale()


def test_the_papers_grids_are_tried_by_default() -> None:
    tape = kept(frames(20))
    single = sp.Controller(sp.sets.PixelScale(), sp.Risk(RISKS[0].loss, 0.2, bounds=(-6.0, 6.0)))
    assert [*choose(single, tape, 5, 15).tried.options["risks.0.step.gamma"]] == [*GAMMAS]
    both = choose(sp.Controller(sp.sets.PixelScale(), RISKS), tape)
    assert len(both.tried.table.columns["length"]) == 64
    assert {*both.tried.options["risks.1.step.gamma"]} == {*PAIR_GAMMAS}
    assert not isnan(both.tried.table.columns["length"].min())
    with pytest.raises(InputError, match="there are 1 tolerances for 2 risks"):
        choose(sp.Controller(sp.sets.PixelScale(), RISKS), tape, excess=(0.1,))
