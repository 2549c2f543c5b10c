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


@pytest.mark.parametrize("risk", RISKS)
def test_a_replay_of_the_self_adjusting_default_is_the_live_stream(risk: Any) -> None:
    risk = sp.Risk(risk.loss, risk.level)
    controller = sp.label_sets(sets=sp.sets.PixelScale(), risk=risk)
    seen = frames(60)
    kept = FrameTape(dtype="float64")
    for prediction, y in seen:
        kept.add(prediction, y)
    losses, thetas, _ = live(controller, seen)
    trace = sp.replay(kept.controller(controller), kept.tape())
    assert np.array_equal(trace.losses, losses, equal_nan=True)
    assert np.array_equal(trace.theta, thetas)


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


def test_lengths_of_intervals_cut_to_a_support_are_kept_at_nodes() -> None:
    family = sp.sets.PixelScale(support=(0.0, 60.0))
    kept = FrameTape(family)
    seen = [(p, np.clip(y, 0.0, 60.0)) for p, y in frames(5, seed=5) if p.valid.any()]
    for prediction, y in seen:
        kept.add(prediction, y)
    tape = kept.tape()
    for t, (prediction, _) in enumerate(seen):
        row = kept.family.read([column[t] for column in tape.prediction])
        reading = family.read(prediction)
        for lam in (-1.0, 0.0, 0.3, 1.0, 7.7, 40.0, 999.0, 5000.0, inf):
            exact = family.at(reading, lam).length
            assert kept.family.at(row, lam).length == pytest.approx(exact, rel=0.01, abs=1e-9)
    assert kept.family.at(row, -inf).length == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bounds", [None, (-1.0, 0.0)])
def test_a_replay_is_the_live_stream_of_a_segmentation(dtype: Any, bounds: Any) -> None:
    random = np.random.default_rng(10)
    loss = sp.losses.ImageMiscoverage()
    risk = sp.Risk(loss, 0.1, sp.steps.Fixed(0.2), bounds=bounds)
    controller = sp.Controller(sp.sets.PixelThreshold(), risk)
    kept = FrameTape(sp.sets.PixelThreshold(), (Whole(),), dtype="float64")
    stream = sp.Stream(controller)
    losses, thetas, sizes = [], [], []
    for t in range(60):
        mask = random.random((12, 15)) < (0.0 if t == 20 else 0.3)  # one without the object
        raw = np.where(mask, random.beta(4.0, 2.0, mask.shape), random.beta(1.0, 4.0, mask.shape))
        scores = (np.minimum(1.2 * raw, 1.0) if t < 40 else 0.5 * raw).astype(dtype)
        kept.add(scores, mask)
        thetas.append(stream.theta)
        sizes.append(stream.predict(scores).size)
        found = stream.update(mask)
        losses.append(nan if found is None else found)
    trace = sp.replay(kept.controller(controller), kept.tape())
    assert np.array_equal(trace.losses[0], losses, equal_nan=True)
    assert np.array_equal(trace.theta[0], thetas)
    assert np.isnan(losses).sum() == 1
    assert 0.0 < np.nanmean(losses) < 1.0
    # Sizes are kept at 65 values of λ and drawn as lines between them.
    assert np.allclose([shown.length for shown in trace.shown], sizes, atol=6.0)
    below = kept.family.at(kept.family.read([column[0] for column in kept.tape().prediction]), -1.5)
    assert below.length == 0.0


def test_what_a_frame_tape_cannot_do_is_told() -> None:
    with pytest.raises(InputError, match="sets must have criticals"):
        FrameTape(sp.sets.Widen())
    with pytest.raises(InputError, match="regions must be one or more, all different"):
        CriticalValues((Whole(), Whole()))
    with pytest.raises(InputError, match=r"rising to \+inf"):
        CriticalValues(nodes=(0.0, 1.0, 2.0))
    family = CriticalValues((Whole(),))
    row = family.read(([1.0], [0.0, 2.0, inf]))
    with pytest.raises(InputError, match="the frames were reduced to the regions"):
        family.at(row, 1.0).count(None, Centre())
    with pytest.raises(PredictionError, match="1 regions and 3 lengths, got 2 and 3"):
        family.read(([1.0], [2.0], [0.0, 2.0, inf]))


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("account", [False, True])
def test_false_negatives_of_masks_are_held_live_and_replayed(kind: str, account: bool) -> None:
    rng = np.random.default_rng(4)
    scores = rng.beta(0.7, 1.5, (400, 6, 9)).astype(np.float32)
    masks = (
        rng.random(scores.shape) < scores ** np.where(np.arange(400) < 200, 1.0, 2.0)[:, None, None]
    )
    masks[::17] = False  # nothing to find
    loss = sp.losses.FalseNegatives()
    controller = sp.Controller(
        sp.sets.PixelThreshold(), sp.Risk(loss, 0.1, sp.steps.Fixed(0.05)), sp.stretches.Identity()
    )
    if account:
        controller = sp.label_sets(sets=sp.sets.PixelThreshold(), risk=sp.Risk(loss, 0.1))
    stream, frames = sp.Stream(controller), FrameTape(sp.sets.PixelThreshold())
    made = pytest.importorskip("torch").tensor if kind == "torch" else np.asarray
    losses = []
    for frame, mask in zip(scores, masks, strict=True):
        shown = stream.predict(made(frame))
        left_out = mask & ~(frame >= -shown.lam)
        losses.append(stream.update(made(mask)))
        wanted = None if not mask.any() else left_out.sum() / mask.sum()
        assert losses[-1] == (None if wanted is None else pytest.approx(wanted))
        frames.add(frame, mask)
    (claim,) = stream.certificate().risks
    assert claim.unjudged == 24
    assert claim.mean == pytest.approx(0.1, abs=0.03)
    assert claim.status in ("guaranteed on both sides", "guaranteed: not too many misses")
    trace = sp.replay(frames.controller(controller), frames.tape())
    replayed = trace.state.risks[0]
    assert replayed.theta == pytest.approx(stream.state.risks[0].theta, abs=1e-6)
    assert replayed.total == pytest.approx(stream.state.risks[0].total, abs=1e-6)
