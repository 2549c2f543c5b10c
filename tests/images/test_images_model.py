"""A model of images with its uncertainty, run live in a stream."""

import gc
import sys
from math import isnan, nan
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError
from setpoint.images import PreviousResiduals, RegisteredResiduals, SpreadModel, fit
from setpoint.images.heuristics import Constant, floored, sides
from setpoint.images.model import known_pixels, line, ratio

torch = pytest.importorskip("torch")
pytest.importorskip("cv2")


class Steps:
    """A model whose prediction moves with every frame it learns."""

    def __init__(self, gap: bool = False) -> None:
        self.learnt, self.gap = 0, gap

    def predict(self, x: Any) -> Any:
        made = 0.5 * x + 1.0 + 0.1 * self.learnt * x**2
        if self.gap:
            made[2, 3] = nan
        return made

    def learn(self, x: Any, y: Any) -> None:
        self.learnt += 1


def clip(count: int, shape: tuple[int, int], seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        x = random.uniform(1.0, 9.0, shape)
        y = 2.0 * x + random.normal(0.0, 0.5, shape)
        y[random.random(shape) < 0.2] = nan
        made.append((x, y))
    return made


@pytest.mark.parametrize("rescale", [None, ratio, line])
def test_a_prediction_is_aligned_and_rescaled_by_the_known_pixels(rescale: Any) -> None:
    model = SpreadModel(Steps(gap=True), PreviousResiduals(3, 0.05), 60, seed=7, rescale=rescale)
    base, heuristic = Steps(gap=True), PreviousResiduals(3, 0.05)
    for t, (x, y) in enumerate(clip(6, (12, 15), seed=0)):
        raw = base.predict(x)
        known = known_pixels(y, 60, np.random.default_rng((7, t)))
        expected = fit(raw, known)
        centre = expected(raw)
        low, high = heuristic.predict(x, centre)
        if rescale is not None:
            below, above = sides(centre, known)
            there = np.isfinite(below)
            first, second = rescale(low[there], below[there]), rescale(high[there], above[there])
            low, high = np.maximum(first(low), 0.0), np.maximum(second(high), 0.0)
            low, high = floored(low, high, 0.05, np.isfinite(centre))
        spread = model.predict(x, y)
        assert model.facts.fit == expected
        assert np.allclose(spread.centre, centre, equal_nan=True)
        assert np.allclose(spread.low, low)
        assert np.allclose(spread.high, high)
        assert spread.valid.sum() == 12 * 15 - 1
        assert not spread.valid[2, 3]
        model.learn(x, y)
        heuristic.learn(x, centre, y)  # as it was predicted, before the model learnt
        base.learn(x, y)
        assert model.facts.judged == np.isfinite(centre + y).sum()
    assert model.frames == 6


def test_few_known_pixels_are_not_trusted_with_a_shift() -> None:
    seen = clip(4, (12, 15), seed=10)
    model = SpreadModel(Steps(), Constant())
    x, y = seen[0]
    few = known_pixels(y, 2, rng=0)
    there = np.isfinite(few)
    raw = Steps().predict(x)
    model.predict(x, few)
    ratio = few[there].mean() / raw[there].mean()
    assert model.facts.fit == pytest.approx((ratio, 0.0))
    model.learn(x, y)
    model.predict(seen[1][0])  # none: the ratio, as long as there is nothing better
    assert model.facts.fit == pytest.approx((ratio, 0.0))
    again = known_pixels(seen[1][1], 2, rng=0)
    model.predict(seen[1][0], again)  # a ratio is not kept where there can be a newer one
    raw, there = model.model.predict(seen[1][0]), np.isfinite(again)
    assert model.facts.fit == pytest.approx((again[there].mean() / raw[there].mean(), 0.0))
    x, y = seen[2]
    model.predict(x, y)
    sure = model.facts.fit
    assert sure.shift != 0.0
    model.learn(x, y)
    model.predict(seen[3][0], known_pixels(seen[3][1], 19, rng=0))
    assert (model.facts.fit, model.facts.known) == (sure, 19)
    model.predict(seen[3][0], known_pixels(seen[3][1], 20, rng=0))
    assert model.facts.fit != sure
    asked = SpreadModel(Steps(), Constant(), known=5)
    asked.predict(*seen[0])  # no more than five are asked for
    assert asked.facts.fit.shift != 0.0


class Metres:
    """A model that speaks in a unit of its own; residuals of 5 cm in metres."""

    def __init__(self, unit: float) -> None:
        self.unit = unit

    def predict(self, x: Any) -> Any:
        return x * self.unit

    def learn(self, x: Any, y: Any) -> None: ...


@pytest.mark.parametrize("rescale", [ratio, line])
@pytest.mark.parametrize("kind", [Constant, PreviousResiduals])
def test_results_scale_with_the_unit(rescale: Any, kind: Any) -> None:
    random = np.random.default_rng(11)
    models = [SpreadModel(Metres(unit), kind(), rescale=rescale) for unit in (1.0, 1000.0)]
    for _ in range(5):
        x = random.uniform(1.0, 4.0, (16, 20))
        y = x + random.normal(0.0, 0.05, x.shape)
        near, far = (
            model.predict(x, y * unit) for model, unit in zip(models, (1.0, 1000.0), strict=True)
        )
        for one, other in zip(near[:3], far[:3], strict=True):
            assert np.allclose(1000.0 * one, other, rtol=1e-6)
        assert near.low.mean() == pytest.approx(0.02, rel=0.5)  # 0.05/√(2π)
        for model, unit in zip(models, (1.0, 1000.0), strict=True):
            model.learn(x, y * unit)


def test_a_frame_that_was_not_predicted_last_is_predicted_when_it_is_learnt() -> None:
    made = []
    for asked in (True, False):
        model = SpreadModel(Steps(), PreviousResiduals())
        for x, y in clip(4, (12, 15), seed=4):
            if asked:
                model.predict(x, y)
            model.learn(x, y)
        made.append(np.stack(model.predict(x, y)[:3]))
    assert np.array_equal(*made)


def test_the_infinite_share_is_that_of_sides_without_uncertainty() -> None:
    model = SpreadModel(Steps(), PreviousResiduals(2, floor=0.0), rescale=None)
    for x, y in clip(4, (12, 15), seed=5):
        spread = model.predict(x, y)
        model.learn(x, y)
    missed = judged = 0
    for c, lo, hi, truth in zip(*(np.ravel(each) for each in (*spread[:3], y)), strict=True):
        if truth == truth:
            judged += 1
            missed += (c > truth and lo == 0.0) or (c < truth and hi == 0.0)
    assert 0 < missed < judged
    assert model.facts.infinite == missed / judged
    critical = sp.sets.PixelScale().criticals(sp.sets.PixelScale().read(spread), y)
    assert model.facts.infinite == np.mean(critical[~np.isnan(critical)] == np.inf)


def test_a_frame_without_a_valid_pixel_passes() -> None:
    model = SpreadModel(Steps(), PreviousResiduals())
    risk = sp.Risk(sp.losses.ImageMiscoverage(), 0.2, sp.steps.Fixed(0.1), bounds=(-9.0, 9.0))
    stream = sp.Stream(sp.Controller(sp.sets.PixelScale(), risk, sp.stretches.Exponential()))
    for t, (x, y) in enumerate(clip(6, (12, 15), seed=6)):
        truth = np.full_like(y, nan) if t == 3 else y
        before = stream.theta
        stream.predict(model.predict(x, truth))
        loss = stream.update(truth)
        model.learn(x, truth)
        if t == 3:
            assert stream.theta == before
            assert isnan(model.facts.infinite)
            assert model.facts.known == model.facts.judged == 0
        else:
            assert loss is not None
    assert stream.state.risks[0].unjudged == 1


def test_tensors_give_the_numbers_of_arrays() -> None:
    here = SpreadModel(Steps(), PreviousResiduals(), known=60)
    there = SpreadModel(Steps(), PreviousResiduals(), known=60)
    for x, y in clip(4, (12, 15), seed=8):
        arrays = here.predict(x, y)
        tensors = there.predict(torch.tensor(x), torch.tensor(y))
        assert all(isinstance(part, torch.Tensor) for part in tensors)
        for one, other in zip(arrays, tensors, strict=True):
            assert np.allclose(one, other.numpy(), rtol=1e-9)
        here.learn(x, y)
        there.learn(torch.tensor(x), torch.tensor(y))
        assert there.facts.infinite == here.facts.infinite


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(InputError, match="model must have predict and learn, got 3"):
        SpreadModel(3, Constant())
    with pytest.raises(InputError, match="heuristic must have predict and learn"):
        SpreadModel(Steps(), None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no facts before the first frame"):
        _ = SpreadModel(Steps(), Constant()).facts


@pytest.mark.parametrize(
    ("heuristic", "count"), [(PreviousResiduals(2), 10_000), (RegisteredResiduals(2), 600)]
)
def test_memory_stays_flat(heuristic: Any, count: int) -> None:
    random = np.random.default_rng(9)
    pictures = random.integers(0, 255, (7, 12, 12, 3), dtype=np.uint8)
    depths = random.uniform(2.0, 9.0, (7, 12, 12)).astype(np.float32)

    class Stored:
        def predict(self, x: Any) -> Any:
            return x[..., 0].astype(np.float32)

        def learn(self, x: Any, y: Any) -> None: ...

    model = SpreadModel(Stored(), heuristic, known=20, rescale=None)
    risks = (
        sp.Risk(sp.losses.ImageMiscoverage(), 0.2, sp.steps.Fixed(0.1), bounds=(-9.0, 9.0)),
        sp.Risk(sp.losses.CentreFailure(), 0.1, sp.steps.Fixed(0.1), bounds=(-9.0, 9.0)),
    )
    stream = sp.Stream(sp.Controller(sp.sets.PixelScale(), risks, sp.stretches.Exponential()))

    def held_after(frames: int) -> int:
        for t in range(frames):
            stream.predict(model.predict(pictures[t % 7], depths[t % 7]))
            stream.update(depths[t % 7])
            model.learn(pictures[t % 7], depths[t % 7])
        gc.collect()  # which also empties the free lists
        return sys.getallocatedblocks()

    first = held_after(max(count // 5, 260))  # a summary looks back on the last 250 labels
    later = held_after(count - count // 5)
    # Anything kept of each frame, be it one number, is a block for each.
    assert later - first < (count - count // 5) // 4
