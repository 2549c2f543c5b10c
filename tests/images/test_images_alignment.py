"""Scale and shift, known pixels and validity, each against a loop over pixels."""

from math import isfinite, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.errors import InputError
from setpoint.images import fit
from setpoint.images.model import Fit, known_pixels, line, ratio

torch = pytest.importorskip("torch")


def looped_fit(estimate: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """The same by the normal equations, pixel by pixel."""
    n = sx = sy = sxx = sxy = 0.0
    for x, y in zip(estimate.ravel().tolist(), truth.ravel().tolist(), strict=True):
        if isfinite(x) and isfinite(y):
            n, sx, sy, sxx, sxy = n + 1, sx + x, sy + y, sxx + x * x, sxy + x * y
    if not n:
        return 1.0, 0.0
    below = n * sxx - sx * sx
    slope = (n * sxy - sx * sy) / below if below > 0 else 0.0
    return (slope, (sy - slope * sx) / n) if slope > 0 else (sy / sx, 0.0)


@given(st.integers(0, 10_000), st.booleans())
def test_a_fit_is_that_of_the_normal_equations(seed: int, falling: bool) -> None:
    random = np.random.default_rng(seed)
    estimate = random.uniform(1.0, 9.0, (6, 7))
    truth = (-1.0 if falling else 1.0) * estimate + random.uniform(12.0, 15.0, (6, 7))
    estimate[random.random((6, 7)) < 0.3] = nan
    truth[random.random((6, 7)) < 0.3] = nan
    found = fit(estimate, truth)
    assert found == pytest.approx(looped_fit(estimate, truth), rel=1e-8)
    assert found.scale > 0.0
    same = fit(torch.tensor(estimate), torch.tensor(truth))
    assert same == pytest.approx(found, rel=1e-9)
    assert type(same.scale) is float


def test_a_fit_without_what_it_needs_is_defined() -> None:
    nothing = np.full((2, 2), nan)
    ones = np.ones((2, 2))
    assert fit(nothing, ones) == Fit(1.0, 0.0)
    assert fit(2.0 * ones, 6.0 * ones) == Fit(3.0, 0.0)  # one value tells no slope
    assert fit(0.0 * ones, 6.0 * ones) == Fit(1.0, 6.0)
    assert fit(-2.0 * ones, 6.0 * ones) == Fit(1.0, 8.0)  # a ratio would turn the image round
    one = nothing.copy()
    one[0, 0] = 4.0
    assert fit(2.0 * ones, one) == Fit(2.0, 0.0)
    assert Fit(2.0, 1.0)(np.array([3.0])).tolist() == [7.0]


def test_images_of_two_shapes_are_one_clear_error() -> None:
    with pytest.raises(InputError, match=r"must have the shape of the estimate, \(2, 2\), got"):
        fit(np.ones((2, 2)), np.ones((2, 3)))
    with pytest.raises(InputError, match="must be a frame with height and width"):
        fit(np.ones(4), np.ones(4))
    with pytest.raises(InputError, match="must be numbers for each pixel"):
        fit(np.array([["a"]]), np.ones((1, 1)))


def test_known_pixels_are_true_valid_and_as_many_as_asked() -> None:
    truth = np.arange(100.0, dtype=np.float32).reshape(10, 10)
    truth[:3] = nan
    found = known_pixels(truth, 20, rng=3)
    there = np.isfinite(found)
    assert there.sum() == 20
    assert not there[:3].any()
    assert np.array_equal(found[there], truth[there])
    assert np.array_equal(found, known_pixels(truth, 20, rng=3), equal_nan=True)
    assert not np.array_equal(found, known_pixels(truth, 20, rng=4), equal_nan=True)
    assert np.array_equal(known_pixels(truth, 200), truth, equal_nan=True)
    assert np.isnan(known_pixels(truth, 0)).all()
    assert np.isnan(known_pixels(np.full((2, 2), nan))).all()
    tensor = known_pixels(torch.tensor(truth), 20, rng=3)
    assert np.array_equal(tensor.numpy(), found, equal_nan=True)


def test_few_pixels_tell_a_ratio_but_no_shift() -> None:
    estimate = np.arange(1.0, 31.0).reshape(5, 6)
    truth = 2.0 * estimate + 5.0
    few = np.where(estimate <= 19.0, truth, nan)
    assert fit(estimate, few) == pytest.approx((2.0, 5.0))
    assert fit(estimate, few, least=20) == pytest.approx((25.0 / 10.0, 0.0))
    assert fit(estimate, few, least=19) == pytest.approx((2.0, 5.0))
    with pytest.raises(InputError, match="least must be a whole number of at least 1, got 0"):
        fit(estimate, few, least=0)


def test_a_ratio_counts_pixels_of_the_other_side_as_zero() -> None:
    side, residual = np.full(40, 2.0), np.zeros(40)
    residual[:10] = 4.0
    assert ratio(side, residual) == Fit(0.5, 0.0)
    assert ratio(side, 0.0 * residual) == Fit(0.001, 0.0)
    assert ratio(side, 0.01 * residual) == Fit(0.005, 0.0)
    assert ratio(side, 10_000.0 * residual) == Fit(1000.0, 0.0)
    assert ratio(side[:19], residual[:19]) == Fit(1.0, 0.0)
    assert ratio(0.0 * side, residual) == Fit(1.0, 0.0)


def test_a_line_goes_through_the_means_and_never_falls() -> None:
    random = np.random.default_rng(1)
    side = random.uniform(0.0, 2.0, 60)
    residual = np.maximum(0.5 + 0.7 * side + random.normal(0.0, 0.2, 60), 0.0)
    scale, shift = line(side, residual)
    slope, level = np.polyfit(side, residual, 1)
    assert (scale, shift) == pytest.approx((slope, level))
    assert line(side, 3.0 - side) == ratio(side, 3.0 - side)
    assert line(np.full(60, 2.0), np.full(60, 1.0)) == Fit(0.5, 0.0)
    steep = line(side, 9000.0 * side)
    assert steep.scale == 1000.0
    assert steep(side.mean()) == pytest.approx(9000.0 * side.mean())
