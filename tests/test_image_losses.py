"""Losses of images against a loop over the pixels, and streams of frames through their life."""

import tracemalloc
from copy import deepcopy
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.combine import Max, Mean
from setpoint.errors import InputError
from setpoint.losses import CentreFailure, ImageMiscoverage, Miscoverage
from setpoint.regions import Centre, Mask, Whole
from setpoint.sets import PixelScale, PixelThreshold, Scale
from setpoint.stretches import ErrorAdaptive, Exponential, Identity, ScoreAdaptive

torch = pytest.importorskip("torch")

KINDS = (np.array, torch.tensor)
REGIONS = (Whole(), Centre(0.5, 0.5), Centre(), Mask(np.tri(4, 6, dtype=bool)))


def frame(rng: np.random.Generator, shape: tuple[int, int] = (4, 6)) -> Any:
    """A prediction with some scales of zero, and a label with holes."""
    centre = rng.normal(size=shape)
    low, high = (rng.choice([0.0, 0.5, 1.0, 2.0], shape, p=[0.1, 0.3, 0.3, 0.3]) for _ in range(2))
    y = centre + rng.normal(size=shape)
    y[rng.random(shape) < 0.15] = nan
    return (centre, low, high, rng.random(shape) < 0.9), y


def covered_share(prediction: Any, y: Any, lam: float, region: Any) -> tuple[int, int]:
    """How many judged pixels of a region lie in the interval of `sets.Scale`, and how many are
    judged, pixel by pixel."""
    centre, low, high, valid = prediction
    chosen = np.zeros(y.shape, dtype=bool)
    chosen[region.index(y.shape)] = True
    covered = judged = 0
    for place in np.ndindex(y.shape):
        if chosen[place] and valid[place] and not isnan(y[place]):
            one = (float(centre[place]), float(low[place]), float(high[place]))
            judged += 1
            covered += Scale().at(one, lam).contains(float(y[place]))
    return covered, judged


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("region", REGIONS)
def test_both_losses_are_what_a_loop_over_the_pixels_says(kind: Any, region: Any) -> None:
    rng = np.random.default_rng(3)
    family = PixelScale()
    seen: set[float | None] = set()
    for _ in range(40):
        prediction, y = frame(rng)
        lam = float(rng.choice([-inf, -1.0, 0.0, 0.5, 1.0, 2.0, inf]))
        shown = family.at(family.read(tuple(map(kind, prediction))), lam)
        label = family.label(kind(y))
        covered, judged = covered_share(prediction, y, lam, region)
        missed = None if judged == 0 else (judged - covered) / judged
        assert ImageMiscoverage(region)(shown, label) == missed
        for threshold in (0.0, 0.25, 0.6):
            failed = None if judged == 0 else float(covered / judged <= threshold)
            assert CentreFailure(threshold, region)(shown, label) == failed
            seen.add(failed)
    assert {0.0, 1.0} <= seen


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", [ImageMiscoverage, CentreFailure])
def test_nothing_to_judge_is_none(kind: Any, loss: Any) -> None:
    prediction, y = frame(np.random.default_rng(0))
    family = PixelScale()
    reading = family.read(tuple(map(kind, prediction)))
    nowhere = Mask(np.zeros(y.shape, dtype=bool))
    for lam in (-inf, 1.0, inf):
        shown = family.at(reading, lam)
        assert loss(region=nowhere)(shown, family.label(kind(y))) is None
        assert loss()(shown, family.label(kind(np.full(y.shape, nan)))) is None


def smallest_lam(loss: Any, values: Any, level: float) -> float:
    """The smallest critical value of the region that keeps the level, by trying each of them."""
    family, ones = PixelScale(), np.ones(values.shape)
    reading = family.read((0.0 * ones, ones, ones))  # then y is its own critical value
    chosen = values[loss.region.index(values.shape)]
    for lam in sorted(chosen[chosen == chosen].tolist()):
        if loss(family.at(reading, lam), family.label(values)) <= level:
            return float(lam)
    return -inf


@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, nan]), min_size=24, max_size=24),
    st.one_of(st.floats(0.0, 0.99), st.sampled_from([0.0, 1 / 3, 0.2, 0.5, 0.1])),
    st.sampled_from(REGIONS),
    st.sampled_from([0.0, 0.2, 1 / 3, 0.6, 0.9]),
)
def test_critical_is_the_smallest_lambda_that_keeps_the_level(
    values: list[float], level: float, region: Any, threshold: float
) -> None:
    held = np.array(values).reshape(4, 6)
    for loss in (ImageMiscoverage(region), CentreFailure(threshold, region)):
        wanted = smallest_lam(loss, held, level)
        assert loss.critical(held, level) == loss.critical(torch.tensor(held), level) == wanted


def test_a_level_that_allows_everything_asks_for_nothing() -> None:
    values = np.array([[1.0, 2.0], [nan, 3.0]])
    assert ImageMiscoverage().critical(values, 1.0) == -inf
    assert CentreFailure(region=Whole()).critical(values, 1.0) == -inf
    assert ImageMiscoverage().critical(values, 0.0) == 3.0
    assert ImageMiscoverage().critical(values, 1 / 3) == 2.0
    assert CentreFailure(0.6, Whole()).critical(values, 0.1) == 2.0
    assert CentreFailure(2 / 3, Whole()).critical(values, 0.1) == 3.0
    assert ImageMiscoverage().critical(np.full((2, 2), nan), 0.2) == -inf


def test_losses_refuse_what_they_cannot_be() -> None:
    for wrong in (-0.1, 1.0, nan, "most"):
        with pytest.raises(InputError, match="threshold"):
            CentreFailure(wrong)
    for wrong in (Whole, "centre", None):
        with pytest.raises(InputError, match=r"region must be one of setpoint\.regions"):
            ImageMiscoverage(wrong)


# Streams


STRETCHES = (
    Identity(),
    Exponential(),
    ScoreAdaptive(0.1, -1.0, 1.0, Exponential()),
    ErrorAdaptive(0.1, 0.1, -1.0, 1.0),
)
COMBINES = (Max(), Max(anti_windup=0.5), Mean(anti_windup=0.5), Mean())


def two_risks(stretch: Any, combine: Any = None, share: bool = False) -> sp.Controller:
    return sp.Controller(
        PixelScale(share=share),
        [
            sp.Risk(ImageMiscoverage(), 0.2, sp.steps.Fixed(0.3), bounds=(-3.0, 3.0)),
            sp.Risk(
                CentreFailure(region=Centre(0.5, 0.5)), 0.1, sp.steps.Fixed(0.2), bounds=(-3.0, 3.0)
            ),
        ],
        stretch,
        combine,
    )


def one_risk(stretch: Any = None, loss: Any = None, **options: Any) -> sp.Controller:
    risk = sp.Risk(
        loss or ImageMiscoverage(), 0.2, sp.steps.Fixed(0.3), **{"bounds": (-3.0, 3.0), **options}
    )
    return sp.Controller(PixelScale(), risk, stretch)


class ByHand:
    """The recursion of two risks with losses and critical values from loops over the pixels."""

    def __init__(self, stretch: Any, combine: Any) -> None:
        self.stretch, self.combine = stretch, combine
        self.memory = stretch.init()
        self.theta = [stretch.inverse(1.0, self.memory)] * 2
        self.terms = ((0.2, 0.3), (0.1, 0.2))

    def lam(self) -> tuple[float, int]:
        if any(theta > 3.0 for theta in self.theta):
            return inf, 0
        if all(theta < -3.0 for theta in self.theta):
            return -inf, 0
        lams = [self.stretch.phi(self.stretch.params, self.memory, t) for t in self.theta]
        lam = max(lams) if isinstance(self.combine, Max) else sum(lams) / 2
        return lam, lams.index(max(lams))

    def learn(self, prediction: Any, y: Any) -> tuple[float | None, float | None]:
        lam, leader = self.lam()
        whole = covered_share(prediction, y, lam, Whole())
        middle = covered_share(prediction, y, lam, Centre(0.5, 0.5))
        losses = (
            1.0 - whole[0] / whole[1] if whole[1] else None,
            float(middle[0] / middle[1] <= 0.6) if middle[1] else None,
        )
        excess = losses[leader]
        if abs(lam) < inf and self.stretch.move is not None and excess is not None:
            score = self.score(prediction, y, leader)
            excess -= self.terms[leader][0]
            self.memory = self.stretch.move(self.stretch.params, self.memory, excess, score, lam)
        for place, (loss, (level, gamma)) in enumerate(zip(losses, self.terms, strict=True)):
            if loss is not None:
                self.theta[place] += gamma * (loss - level)
        if self.combine.anti_windup is not None:
            floor = max(self.theta) - self.combine.anti_windup
            self.theta = [max(theta, floor) for theta in self.theta]
        return losses

    def score(self, prediction: Any, y: Any, leader: int) -> float:
        centre, low, high, valid = prediction
        region = (Whole(), Centre(0.5, 0.5))[leader]
        chosen = np.zeros(y.shape, dtype=bool)
        chosen[region.index(y.shape)] = True
        values = sorted(
            Scale().critical((float(centre[p]), float(low[p]), float(high[p])), float(y[p]))
            for p in np.ndindex(y.shape)
            if chosen[p] and valid[p] and not isnan(y[p])
        )
        count = len(values)
        if leader == 0:
            return next(v for k, v in enumerate(values) if (count - k - 1) / count <= 0.2)
        return next(v for k, v in enumerate(values) if (k + 1) / count > 0.6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("combine", COMBINES)
@pytest.mark.parametrize("stretch", STRETCHES)
def test_a_stream_of_frames_is_the_recursion_by_hand(kind: Any, combine: Any, stretch: Any) -> None:
    rng = np.random.default_rng(11)
    stream, hand = sp.Stream(two_risks(stretch, combine)), ByHand(stretch, combine)
    for step in range(60):
        prediction, y = frame(rng, (4, 6) if step % 7 else (3, 5))  # the size may change
        if step % 20 == 19:
            y[...] = nan
        stream.predict(tuple(map(kind, prediction)))
        got, wanted = stream.update(kind(y)), hand.learn(prediction, y)
        assert got == pytest.approx(wanted, abs=1e-12)
        assert stream.theta == pytest.approx(tuple(hand.theta), abs=1e-9)
    (image, middle) = stream.certificate().risks
    assert image.unjudged == 3
    assert middle.unjudged >= 3
    assert image.judged == 57


@pytest.mark.parametrize("kind", KINDS)
def test_late_frames_are_judged_on_what_was_shown_and_saved(kind: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    stream = sp.Stream(two_risks(Exponential(), Max(anti_windup=1.0)))
    frames = {f"frame {n}": frame(rng) for n in range(4)}
    seen = {}
    for name, (prediction, _) in frames.items():
        arrays = tuple(map(kind, prediction))
        seen[name] = stream.predict(arrays, id=name)
        for each in arrays:
            each[...] = 0  # the caller's own arrays
        now = stream.issue(tuple(map(kind, prediction)))
        stream.update(kind(frames[name][1]), id=now.id)
    lams = {id: receipt.lam for id, receipt in stream.pending.items()}
    path = tmp_path / "stream"
    stream.save(path)
    loaded, copied = sp.Stream.load(path), deepcopy(stream)
    for id, receipt in loaded.pending.items():
        assert repr(receipt.shown) == repr(seen[str(id)])
        held = (receipt.shown.prediction[0], receipt.prediction[0])
        assert np.shares_memory(*map(np.asarray, held))
    for name in ("frame 2", "frame 0", "frame 3", "frame 1"):
        prediction, y = frames[name]
        wanted = covered_share(prediction, y, lams[name], Whole())
        got = stream.update(kind(y), id=name)
        assert got[0] == pytest.approx(1.0 - wanted[0] / wanted[1])
        assert loaded.update(kind(y), id=name) == copied.update(y, id=name) == got
        assert loaded.theta == copied.theta == stream.theta
        assert loaded.info is not None
        assert loaded.info.losses == got
        assert loaded.info.shown.length == pytest.approx(seen[name].length)


def test_a_saved_stream_holds_the_arrays_of_a_frame_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    stream = sp.Stream(one_risk())
    centre, low = rng.normal(size=(64, 64)), rng.random((64, 64))
    stream.predict((centre, low, low))
    stream.save(tmp_path / "state")
    assert (tmp_path / "state").stat().st_size < 3 * centre.nbytes + 10_000


def test_a_mask_of_another_shape_is_one_clear_error() -> None:
    prediction, y = frame(np.random.default_rng(1))
    stream = sp.Stream(one_risk(loss=ImageMiscoverage(Mask(np.eye(3, dtype=bool)))))
    stream.predict(prediction)
    with pytest.raises(InputError, match=r"mask of shape \(3, 3\) .* frame of shape \(4, 6\)"):
        stream.update(y)
    assert len(stream.pending) == 1


def test_miscoverage_of_a_frame_is_a_miss_at_any_pixel() -> None:
    family, one = PixelScale(), np.ones((1, 2))
    shown = family.at(family.read((0.0 * one, one, one)), 1.0)
    assert Miscoverage()(shown, family.label([[0.5, 1.0]])) == 0.0
    assert Miscoverage()(shown, family.label([[0.5, 1.5]])) == 1.0
    assert Miscoverage()(shown, family.label([[nan, nan]])) == 0.0


def test_a_segmentation_keeps_its_share_of_the_object() -> None:
    rng = np.random.default_rng(4)
    risk = sp.Risk(ImageMiscoverage(), 0.1, sp.steps.Fixed(0.05))
    stream = sp.Stream(sp.Controller(PixelThreshold(), risk))
    assert stream.theta == -0.1
    misses: list[float] = []
    for step in range(400):
        truth = rng.random((8, 8)) < (0.3 if step % 10 else 0.0)
        scores = np.clip(0.5 * truth + rng.random((8, 8)) * 0.5, 0.0, 1.0)
        shown = stream.predict(scores)
        got = stream.update(truth)
        positives = int(truth.sum())
        missed = sum(1 for p in np.ndindex(8, 8) if truth[p] and not shown.mask[p])
        assert got == (missed / positives if positives else None)
        if got is not None:
            misses.append(got)
    assert abs(float(np.mean(misses)) - 0.1) <= (1.0 + 0.05) / (0.05 * 360)
    assert stream.certificate().risks[0].unjudged == 40


def test_memory_stays_flat_over_thousands_of_frames() -> None:
    rng = np.random.default_rng(0)
    few = [frame(rng, (16, 16)) for _ in range(5)]
    stream = sp.Stream(two_risks(Exponential(), Max(anti_windup=1.0)))

    def run(count: int) -> None:
        for step in range(count):
            prediction, y = few[step % len(few)]
            late = stream.issue(prediction)
            shown = stream.predict(prediction, id="now")
            _ = shown.ends
            stream.update(y, id="now")
            stream.update(y, id=late.id)

    run(200)
    tracemalloc.start()
    try:
        run(200)
        before = tracemalloc.get_traced_memory()[0]
        run(4_000)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # Ids that were closed are remembered, at most 10,000 of them; frames are not.
    assert grown < 8_000 * 200
    assert grown / (4_000 * few[0][1].nbytes) < 0.2


def test_copies_of_frames_and_shared_ones_agree() -> None:
    rng = np.random.default_rng(9)
    shared, copied = (sp.Stream(two_risks(Exponential(), share=share)) for share in (True, False))
    for _ in range(30):
        prediction, y = frame(rng)
        for stream in (shared, copied):
            stream.predict(prediction)
        assert shared.update(y) == copied.update(y)
    assert shared.theta == copied.theta
