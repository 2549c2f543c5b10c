"""Uncertainty heuristics and registration, each against a loop over pixels."""

from math import isfinite, nan
from typing import Any

import numpy as np
import pytest

from setpoint.errors import InputError
from setpoint.images import DIS, PreviousResiduals, RegisteredResiduals, ResidualMagnitude
from setpoint.images.heuristics import FLOOR, Constant, floored, warp

torch = pytest.importorskip("torch")
pytest.importorskip("cv2")
pytest.importorskip("skimage")


def frames(count: int, shape: tuple[int, int], seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Estimates and truths; a third of the truths and a tenth of the estimates invalid."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        estimate, truth = random.uniform(1.0, 9.0, (2, *shape))
        truth[random.random(shape) < 0.33] = nan
        estimate[random.random(shape) < 0.1] = nan
        truth[0, 0] = nan  # one that is never valid
        made.append((estimate, truth))
    return made


def looped(seen: list[tuple[np.ndarray, np.ndarray]], window: int, floor: float) -> Any:
    """Previous residuals, pixel by pixel."""
    shape = seen[-1][0].shape
    found = np.full((2, *shape), nan)
    for r in range(shape[0]):
        for c in range(shape[1]):
            pairs = [(float(e[r, c]), float(y[r, c])) for e, y in seen[-window:]]
            valid = [e - y for e, y in pairs if isfinite(e) and isfinite(y)]
            if valid:
                found[0, r, c] = sum(max(each, 0.0) for each in valid) / len(valid)
                found[1, r, c] = sum(max(-each, 0.0) for each in valid) / len(valid)
    for side in found:
        side[np.isnan(side)] = np.nanmean(side)
    valid = [place for place in np.ndindex(shape) if isfinite(seen[-1][0][place])]
    total = sum(float(side[place]) for side in found for place in valid)
    return np.maximum(found, floor * total / (2 * len(valid)))


@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_previous_residuals_are_the_means_over_valid_frames(floor: float) -> None:
    seen = frames(8, (5, 7), seed=0)
    here, there = PreviousResiduals(3, floor), PreviousResiduals(3, floor)
    for t, (estimate, truth) in enumerate(seen):
        here.learn(None, estimate, truth)
        there.learn(None, torch.tensor(estimate), torch.tensor(truth))
        expected = looped(seen[: t + 1], 3, floor)
        assert np.allclose(here.predict(None, estimate), expected, rtol=1e-12)
        tensors = there.predict(None, torch.tensor(estimate))
        assert all(isinstance(side, torch.Tensor) for side in tensors)
        assert np.allclose(torch.stack(tensors).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("heuristic", [PreviousResiduals(), RegisteredResiduals()])
def test_the_first_frame_and_one_without_truth_have_one(heuristic: Any) -> None:
    estimate = np.full((16, 20), 5.0)
    x = np.zeros((16, 20, 3), np.uint8)
    assert np.array_equal(heuristic.predict(x, estimate), np.ones((2, 16, 20)))
    heuristic.learn(x, estimate, np.full((16, 20), nan))
    assert np.array_equal(heuristic.predict(x, estimate), np.ones((2, 16, 20)))


@pytest.mark.parametrize("heuristic", [PreviousResiduals(), RegisteredResiduals()])
def test_another_frame_size_begins_anew(heuristic: Any) -> None:
    random = np.random.default_rng(2)
    for shape in ((16, 20), (24, 18), (16, 20)):
        x = random.integers(0, 255, (*shape, 3), dtype=np.uint8)
        estimate = random.uniform(1.0, 9.0, shape)
        assert np.array_equal(heuristic.predict(x, estimate), np.ones((2, *shape)))
        for _ in range(2):
            heuristic.learn(x, estimate, estimate - 2.0)
        low, high = heuristic.predict(x, estimate)
        assert low == pytest.approx(2.0, rel=1e-5)
        assert high == pytest.approx(0.1, rel=1e-5)  # a tenth of the mean of 2 and 0


def test_the_floor_is_a_share_of_the_mean() -> None:
    low, high = np.array([[0.0, 4.0]]), np.array([[2.0, 2.0]])
    assert [side.tolist() for side in floored(low, high, 0.1)] == [[[0.2, 4.0]], [[2.0, 2.0]]]
    assert floored(low, high, 0.0)[0] is low
    nothing = np.zeros((1, 2))
    assert [side.tolist() for side in floored(nothing, nothing, 0.5)] == [[[0.5, 0.5]]] * 2
    assert floored(nothing, nothing, 0.0)[0] is nothing
    unknown = np.full((1, 2), nan)
    assert np.isnan(floored(unknown, unknown, 0.5)).all()
    only_first = floored(low, high, 0.1, np.array([[True, False]]))
    assert [side.tolist() for side in only_first] == [[[0.1, 4.0]], [[2.0, 2.0]]]
    for wrong in (-0.1, 1.0, nan):
        with pytest.raises(InputError, match="floor must be"):
            PreviousResiduals(floor=wrong)


def test_a_heuristic_that_follows_images_needs_one() -> None:
    estimate, x = np.full((16, 20), 5.0), (np.zeros((16, 20)), np.zeros((4, 5)))
    heuristic = RegisteredResiduals()
    heuristic.learn(x, estimate, estimate)
    with pytest.raises(InputError, match="an image to register must be numbers"):
        heuristic.predict(x, estimate)


class Halfway:
    """A network that moves halfway to what it is told, for all pixels alike."""

    def __init__(self) -> None:
        self.value = -1.0

    def predict(self, x: Any) -> np.ndarray:
        return np.full(x.shape[:2], self.value)

    def learn(self, x: Any, y: np.ndarray) -> None:
        self.value += 0.5 * (float(np.nanmean(y)) - self.value)


def test_residual_magnitude_is_symmetric_and_never_negative() -> None:
    heuristic = ResidualMagnitude(Halfway())
    x, estimate = np.zeros((3, 4, 3)), np.full((3, 4), 5.0)
    assert np.array_equal(heuristic.predict(x, estimate), np.full((2, 3, 4), FLOOR))
    truth = np.full((3, 4), 8.0)
    truth[0] = nan
    heuristic.learn(x, estimate, truth)
    assert np.array_equal(heuristic.predict(x, estimate), np.full((2, 3, 4), 1.0))
    heuristic.learn(x, estimate, truth)
    assert np.array_equal(heuristic.predict(x, estimate), np.full((2, 3, 4), 2.0))
    with pytest.raises(InputError, match="network must have predict and learn"):
        ResidualMagnitude("network")


def test_a_constant_is_constant() -> None:
    heuristic = Constant(2.5)
    heuristic.learn(None, np.ones((2, 2)), np.zeros((2, 2)))
    assert np.array_equal(heuristic.predict(None, np.ones((2, 2))), np.full((2, 2, 2), 2.5))
    assert torch.equal(heuristic.predict(None, torch.ones(2, 2))[0], torch.full((2, 2), 2.5))
    with pytest.raises(InputError, match="value must be greater than 0"):
        Constant(0.0)


# Registration


def looped_warp(moving: np.ndarray, flow: np.ndarray) -> np.ndarray:
    """Valid neighbours weighted by distance, pixel by pixel; the edge repeated."""
    height, width = moving.shape
    made = np.full((height, width), nan)
    for r in range(height):
        for c in range(width):
            y, x = r + float(flow[r, c, 0]), c + float(flow[r, c, 1])
            top, left = int(np.floor(y)), int(np.floor(x))
            total = weight = 0.0
            for i, by_row in ((top, 1 - (y - top)), (top + 1, y - top)):
                for j, by_column in ((left, 1 - (x - left)), (left + 1, x - left)):
                    value = moving[min(max(i, 0), height - 1), min(max(j, 0), width - 1)]
                    if isfinite(value):
                        total += by_row * by_column * value
                        weight += by_row * by_column
            if weight >= 0.5:
                made[r, c] = total / weight
    return made


def test_a_warp_is_the_weighted_mean_of_valid_neighbours() -> None:
    random = np.random.default_rng(3)
    moving = random.uniform(1.0, 9.0, (9, 11)).astype(np.float32)
    moving[random.random((9, 11)) < 0.2] = nan
    # OpenCV places pixels to 1/32; these shifts it holds exactly.
    flow = (random.integers(-96, 97, (9, 11, 2)) / 32.0).astype(np.float32)
    expected = looped_warp(moving, flow)
    found = warp(moving, flow)
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    assert np.allclose(found, expected, rtol=1e-4, equal_nan=True)
    assert np.array_equal(warp(np.stack([moving, moving]), flow)[1], found, equal_nan=True)
    tensor = warp(torch.tensor(moving), flow)
    assert np.array_equal(tensor.numpy(), found, equal_nan=True)
    with pytest.raises(InputError, match="a flow of shape"):
        warp(moving[:5], flow)


def scene(shift: float) -> np.ndarray:
    """A smooth relief in metres, seen `shift` pixels further right."""
    rows, columns = np.mgrid[0:48, 0:64].astype(np.float64)
    waves = np.sin((columns - shift) / 5.0) * np.cos(rows / 6.0)
    return (20.0 + 8.0 * waves + 0.1 * rows).astype(np.float32)


def _registered(method: Any, moving: Any, fixed: Any) -> Any:
    return warp(moving, method.flow(moving, fixed))


@pytest.mark.parametrize("method", [DIS(), DIS("fast"), DIS("ultrafast")])
def test_registration_finds_a_shift(method: Any) -> None:
    moving, fixed = scene(0.0), scene(2.0)
    moving[10:14, 20:26] = nan
    flow = method.flow(moving, fixed)
    inside = np.s_[8:-8, 10:-10]
    assert np.median(flow[inside][..., 1]) == pytest.approx(-2.0, abs=0.35)
    assert np.median(flow[inside][..., 0]) == pytest.approx(0.0, abs=0.35)
    moved = _registered(method, moving, fixed)
    before, after = (np.nanmean(np.abs(each - fixed)[inside]) for each in (moving, moved))
    assert after < 0.4 * before
    assert np.isnan(moved[12, 24])  # the gap moved along
    assert np.isnan(moved).sum() < 60


def test_registration_of_odd_images_is_defined() -> None:
    nothing, flat = np.full((20, 24), nan, np.float32), np.full((20, 24), 3.0, np.float32)
    for method in (DIS(), DIS("fast")):
        assert np.isnan(_registered(method, nothing, nothing)).all()
        assert np.isnan(_registered(method, nothing, flat)).all()
        assert np.array_equal(_registered(method, flat, flat), flat)
        assert np.array_equal(_registered(method, flat, nothing), flat)
        with pytest.raises(InputError, match="two images of one shape"):
            _registered(method, flat, flat[:15])
    with pytest.raises(InputError, match="at least 12 × 12"):
        DIS().flow(flat[:6], flat[:6])
    with pytest.raises(InputError, match="preset must be one of"):
        DIS("slow")


def test_one_flow_moves_every_residual() -> None:
    method, window = DIS(), 3
    heuristic = RegisteredResiduals(window, method, floor=0.0)
    truths = [scene(1.5 * t) for t in range(5)]
    images = [np.repeat((each * 8.0).astype(np.uint8)[..., None], 3, axis=2) for each in truths]
    kept: list[np.ndarray] = []
    random = np.random.default_rng(4)
    for t in range(4):
        estimate = truths[t] + random.normal(0.0, 1.0, truths[t].shape).astype(np.float32)
        if t:
            flow = method.flow(images[t - 1], images[t])
            kept = [warp(each, flow) for each in kept]
        kept = [*kept, estimate - truths[t]][-window:]
        if t % 2:
            heuristic.predict(images[t], estimate)  # whether it was asked before or not
        heuristic.learn(images[t], estimate, truths[t])
    flow = method.flow(images[3], images[4])  # and on to the frame that is predicted
    kept = [warp(each, flow) for each in kept]
    low, high = heuristic.predict(images[4], estimate)
    assert np.allclose(low, np.mean([np.maximum(each, 0.0) for each in kept], axis=0), atol=1e-5)
    assert np.allclose(high, np.mean([np.maximum(-each, 0.0) for each in kept], axis=0), atol=1e-5)
