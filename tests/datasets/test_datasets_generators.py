"""Streams made by formula: the appendix's, against a plain loop, and the shifts."""

import math
from itertools import pairwise

import numpy as np
import pytest

from setpoint.datasets import Shift, drift, heavy_tails, jump, synthetic, variance_switch
from setpoint.errors import InputError


@pytest.mark.parametrize(("steps", "length", "seed"), [(1_300, 500, 0), (700, 60, 7), (1, 500, 3)])
def test_the_synthetic_stream_is_that_of_the_appendix(steps: int, length: int, seed: int) -> None:
    data = synthetic(steps, length=length, seed=seed)
    draw = np.random.default_rng(seed)
    g: list[int] = []
    while len(g) < steps:
        g += [1 + (g[-1] if g else 0)] * max(1, round(draw.normal(length, 10.0)))
    groups = g[-1]
    beta = []
    for _ in range(groups):
        raw = [draw.uniform() for _ in range(5)]
        beta.append([each / sum(raw) for each in raw])
    omega = [draw.normal(20.0, math.sqrt(10.0)) for _ in range(groups)]
    omega = [w if i % 2 == 0 else 1.0 for i, w in enumerate(omega, 1)]
    x = [[draw.uniform() for _ in range(5)] for _ in range(steps)]
    y = 1.0
    for t in range(steps):
        noise = draw.normal()
        i = g[t] - 1
        dot = sum(b * v for b, v in zip(beta[i], x[t], strict=True))
        y = y / 2 + omega[i] ** 2 * abs(dot) + 2 * math.sin(2 * x[t][0] * noise)
        assert data.y[t] == pytest.approx(y, rel=1e-12)
    assert data.x.tolist() == x
    assert data.group is not None
    assert data.group.tolist() == g[:steps]


def test_the_authors_variant_is_that_of_their_code() -> None:
    steps, length = 900, 200
    data = synthetic(steps, length=length, variant="authors", seed=5)
    draw = np.random.default_rng(5)
    g: list[int] = []
    while len(g) < steps:
        g += [1 + g[-1] if g else 0] * int(draw.normal(length, 10.0))
    groups = g[-1] + 1
    beta = draw.uniform(size=(groups, 5))
    level = [20 + 10 * draw.uniform() for _ in range(groups)]
    x = draw.uniform(size=(steps, 5))
    z0 = draw.normal(size=steps)
    z1 = draw.normal(size=steps)
    y = 1.0
    for t in range(steps):
        weights = beta[g[t]] / beta[g[t]].sum()
        factor = level[g[t]] ** 2 if g[t] % 2 == 0 else 1.0
        y = 0.5 * y + math.sin(2 * x[t, 1] * z0[t]) * 2 + factor * abs(weights @ x[t])
        y += 1000 * abs(z1[t])
        assert data.y[t] == pytest.approx(y, rel=1e-12)
    assert data.note == "the authors' variant"
    assert data.group is not None
    assert data.group[0] == 0


def test_groups_last_about_as_long_as_asked() -> None:
    group = synthetic(50_000, length=500, seed=2).group
    assert group is not None
    starts = np.flatnonzero(np.diff(group)) + 1
    lengths = [b - a for a, b in pairwise([0, *starts.tolist()])]
    assert len(lengths) > 90
    assert abs(np.mean(lengths) - 500) < 5
    assert 7 < np.std(lengths) < 13
    exact = synthetic(1_000, length=100, spread=0.0).group
    assert exact is not None
    assert np.bincount(exact).tolist() == [0, *[100] * 10]


def test_the_authors_spread_shrinks_with_the_length() -> None:
    short = synthetic(2_000, length=19, variant="authors").group  # 19 // 20 is 0
    assert short is not None
    assert set(np.bincount(short)[:-1].tolist()) == {19}


def test_even_groups_are_loud_with_a_variance_of_ten_in_omega() -> None:
    data = synthetic(60_000, length=20, spread=0.0, seed=4)
    assert data.group is not None
    push = data.y[1:] - data.y[:-1] / 2
    even = data.group[1:] % 2 == 0
    # E ω² = 400 + 10, E βᵀX = 1/2.
    assert push[even].mean() == pytest.approx(205.0, rel=0.03)
    assert push[~even].mean() == pytest.approx(0.5, abs=0.05)


def test_a_seed_is_a_whole_number_or_a_generator() -> None:
    one = synthetic(50, seed=9)
    assert np.array_equal(one.y, synthetic(50, seed=np.random.default_rng(9)).y)
    assert not np.array_equal(one.y, synthetic(50, seed=10).y)
    with pytest.raises(InputError, match=r"seed must be a whole number of at least 0, got 1\.5"):
        synthetic(50, seed=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        ({"length": 0.5}, "length must be at least 1, got 0.5"),
        ({"spread": -1.0}, "spread must be 0 or more, got -1.0"),
        ({"variant": "old"}, "variant must be one of 'paper', 'authors', got 'old'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        synthetic(**options)  # type: ignore[arg-type]
    assert str(caught.value) == message


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


def test_heavy_tails_have_the_quantiles_of_student() -> None:
    noise = unexplained(heavy_tails(40_000, freedom=2.0, seed=1))
    # The quantile function of Student's t with two degrees of freedom is closed.
    for level in (0.6, 0.9, 0.99):
        exact = (2 * level - 1) / math.sqrt(2 * level * (1 - level))
        assert np.quantile(noise, level) == pytest.approx(exact, rel=0.08)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: jump(10, at=[10]), "a row of at must be less than steps, 10, got 10"),
        (lambda: jump(10, at=[-1]), "a row of at must be a whole number of at least 0, got -1"),
        (lambda: jump(0), "steps must be a whole number of at least 1, got 0"),
        (lambda: drift(10, size=math.inf), "size must be finite, got inf"),
        (lambda: variance_switch(10, factor=0.0), "factor must be greater than 0, got 0.0"),
        (lambda: variance_switch(10, every=0), "every must be a whole number of at least 1, got 0"),
        (lambda: heavy_tails(10, freedom=-1.0), "freedom must be greater than 0, got -1.0"),
        (lambda: drift(10, features=0), "features must be a whole number of at least 1, got 0"),
    ],
)
def test_wrong_shifts_are_named(make, message: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value) == message


@pytest.mark.parametrize("make", [jump, drift, variance_switch, heavy_tails])
def test_a_shift_is_made_again_by_its_seed(make) -> None:
    first, again, other = make(100, seed=3), make(100, seed=3), make(100, seed=4)
    assert np.array_equal(first.y, again.y)
    assert np.array_equal(first.x, again.x)
    assert not np.array_equal(first.y, other.y)
    assert len(first) == 100
