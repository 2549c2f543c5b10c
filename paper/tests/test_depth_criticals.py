"""Frames reduced to critical values: they replay, tune and choose as the live stream does."""

from math import inf, nan
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError, PredictionError
from setpoint.regions import Centre, Mask, Whole
from setpoint_paper.depth.criticals import CriticalValues, FrameTape

RISKS = (
    sp.Risk(sp.losses.ImageMiscoverage(), 0.2, sp.steps.Fixed(0.3), bounds=(-6.0, 6.0)),
    sp.Risk(sp.losses.CentreFailure(), 0.1, sp.steps.Fixed(0.1), bounds=(-6.0, 6.0)),
)


def frames(count: int, shape: tuple[int, int] = (18, 24), seed: int = 0) -> list[tuple[Any, Any]]:
    """Spreads and truths with gaps, zero sides, a frame without a truth, one without a pixel."""
    random = np.random.default_rng(seed)
    made = []
    for t in range(count):
        centre = random.uniform(5.0, 40.0, shape)
        low, high = random.gamma(2.0, 0.5, (2, *shape))
        low[random.random(shape) < 0.1] = 0.0
        high[random.random(shape) < 0.1] = 0.0
        noise = random.normal(0.0, 1.0 + (t > count // 2), shape)
        truth = centre + noise * np.where(noise > 0, 0.2 + high, 0.2 + low)
        truth[random.random(shape) < 0.02] = centre[0, 0]
        exact = random.random(shape) < 0.02
        truth[exact] = centre[exact]
        truth[random.random(shape) < 0.2] = nan
        valid = random.random(shape) < 0.95
        if t == count // 3:
            truth[:] = nan
        if t == count // 4:
            valid[:] = False
        made.append((sp.predictions.PixelSpread(centre, low, high, valid), truth))
    return made


def live(controller: sp.Controller, seen: list[tuple[Any, Any]]) -> tuple[Any, ...]:
    """Losses, θ and lengths of every step of a stream."""
    stream = sp.Stream(controller)
    losses, thetas, lengths = [], [], []
    for prediction, y in seen:
        thetas.append([own.theta for own in stream.state.risks])
        lengths.append(stream.predict(prediction).length)
        found = stream.update(y)
        found = found if isinstance(found, tuple) else (found,)
        losses.append([nan if each is None else each for each in found])
    return np.array(losses).T, np.array(thetas).T, np.array(lengths)


@pytest.mark.parametrize("risks", [RISKS[:1], RISKS[1:], RISKS])
@pytest.mark.parametrize("combine", [sp.combine.Max(), sp.combine.Max(anti_windup=1.0)])
@pytest.mark.parametrize(
    "stretch",
    [sp.stretches.Exponential(), sp.stretches.ErrorAdaptive(0.1, 0.2, -0.5, 0.5)],
    ids=["exponential", "error adaptive"],
)
def test_a_replay_is_the_live_stream(risks: Any, combine: Any, stretch: Any) -> None:
    controller = sp.Controller(sp.sets.PixelScale(), risks, stretch, combine)
    seen = frames(60)
    kept = FrameTape(dtype="float64")
    for prediction, y in seen:
        kept.add(prediction, y)
    losses, thetas, lengths = live(controller, seen)
    trace = sp.replay(kept.controller(controller), kept.tape())
    assert np.array_equal(trace.losses, losses, equal_nan=True)
    assert np.array_equal(trace.theta, thetas)
    found = np.array([shown.length for shown in trace.shown])
    there = ~np.isnan(lengths)
    assert (~there).sum() == 1  # the frame without a valid pixel
    assert np.allclose(found[there], lengths[there], rtol=1e-12)
    assert trace.state.risks[0].theta == trace.states[None].risks[0].theta


def looped_counts(prediction: Any, y: Any, lam: float, region: Any) -> tuple[int, int]:
    missed = judged = 0
    parts = [each[region.index(y.shape)].ravel() for each in (*prediction, y)]
    for centre, low, high, valid, truth in zip(*parts, strict=True):
        if valid and truth == truth:
            judged += 1
            missed += not centre - lam * low <= truth <= centre + lam * high
    return missed, judged


def test_counts_are_those_of_a_loop_over_pixels() -> None:
    mask = Mask(np.random.default_rng(2).random((18, 24)) < 0.3)
    regions = (Whole(), Centre(0.3, 0.5), mask)
    kept = FrameTape(regions=regions, dtype="float64")
    seen = frames(4, seed=3)
    for prediction, y in seen:
        kept.add(prediction, y)
    family, tape = kept.family, kept.tape()
    for t, (prediction, y) in enumerate(seen):
        row = family.read([column[t] for column in tape.prediction])
        for lam in (-0.5, 0.0, 0.7, 1.3, 8.0):
            for region in regions:
                shown = family.at(row, lam)
                assert shown.count(None, region) == looped_counts(prediction, y, lam, region)
        everything, nothing = family.at(row, inf), family.at(row, -inf)
        judged = everything.count(None)[1]
        assert everything.count(None) == (0, judged)
        assert nothing.count(None) == (judged, judged)
        assert nothing.empty
        assert nothing.length == 0.0
        assert everything.contains(None)
        assert not nothing.contains(None)


def test_what_a_frame_tape_cannot_do_is_told() -> None:
    family = CriticalValues((Whole(),))
    row = family.read(([1.0], [0.0, 2.0, inf]))
    with pytest.raises(InputError, match="the frames were reduced to"):
        family.at(row, 1.0).count(None, Centre())
    with pytest.raises(PredictionError, match="1 regions and 3 lengths, got 2 and 3"):
        family.read(([1.0], [2.0], [0.0, 2.0, inf]))
