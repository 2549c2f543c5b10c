"""Streams whose law is known and shifts: each shifts as it says."""

import math

import numpy as np
import pytest

from setpoint.errors import InputError
from setpoint.generators import Shift, drift, jump, variance_switch


def unexplained(made: Shift) -> np.ndarray:
    """What the oracle's scale leaves: noise of one law."""
    return (made.y - made.centre) / made.scale


def test_a_jump_moves_the_centre_at_the_rows_named() -> None:
    made = jump(3_000, size=-2.0, at=[1_000, 2_000], features=2, seed=1)
    moved = made.centre - made.x.sum(axis=1)
    assert made.x.shape == (3_000, 2)
    assert moved[:1_000] == pytest.approx(0.0)
    assert moved[1_000:2_000] == pytest.approx(-2.0)
    assert moved[2_000:] == pytest.approx(-4.0)
    assert np.array_equal(made.scale, np.ones(3_000))
    assert abs(unexplained(made).mean()) < 0.06
    assert unexplained(made).std() == pytest.approx(1.0, abs=0.05)
    assert jump(10).changes == (5,)


def test_a_drift_moves_the_centre_evenly() -> None:
    made = drift(500, size=3.0, seed=1)
    moved = made.centre - made.x.sum(axis=1)
    assert moved == pytest.approx([3.0 * t / 499 for t in range(500)], abs=1e-12)
    assert made.changes == ()


def test_a_variance_switch_changes_the_size_of_the_noise() -> None:
    made = variance_switch(4_000, factor=5.0, every=1_000, seed=1)
    assert made.changes == (1_000, 2_000, 3_000)
    for start, scale in ((0, 1.0), (1_000, 5.0), (2_000, 1.0), (3_000, 5.0)):
        rows = slice(start, start + 1_000)
        assert set(made.scale[rows]) == {scale}
        assert (made.y - made.centre)[rows].std() == pytest.approx(scale, rel=0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: jump(10, at=[10]), "a row of at must be less than steps, 10, got 10"),
        (lambda: jump(10, at=[-1]), "a row of at must be a whole number of at least 0, got -1"),
        (lambda: jump(0), "steps must be a whole number of at least 1, got 0"),
        (lambda: drift(10, size=math.inf), "size must be finite, got inf"),
        (lambda: variance_switch(10, factor=0.0), "factor must be greater than 0, got 0.0"),
        (lambda: variance_switch(10, every=0), "every must be a whole number of at least 1, got 0"),
        (lambda: drift(10, features=0), "features must be a whole number of at least 1, got 0"),
    ],
)
def test_wrong_shifts_are_named(make, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value) == message


@pytest.mark.parametrize("make", [jump, drift, variance_switch])
def test_a_shift_is_made_again_by_its_seed(make) -> None:
    first, again, other = make(100, seed=3), make(100, seed=3), make(100, seed=4)
    assert np.array_equal(first.y, again.y)
    assert np.array_equal(first.x, again.x)
    assert not np.array_equal(first.y, other.y)
    assert len(first) == 100
