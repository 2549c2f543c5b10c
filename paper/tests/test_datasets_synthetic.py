"""The synthetic stream of the appendix, against a plain loop."""

import math
from itertools import pairwise

import numpy as np
import pytest

from setpoint.errors import InputError
from setpoint_paper.datasets import synthetic


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


def test_even_groups_are_loud_with_a_variance_of_ten_in_omega() -> None:
    data = synthetic(60_000, length=20, spread=0.0, seed=4)
    assert data.group is not None
    push = data.y[1:] - data.y[:-1] / 2
    even = data.group[1:] % 2 == 0
    # E ω² = 400 + 10, E βᵀX = 1/2.
    assert push[even].mean() == pytest.approx(205.0, rel=0.03)
    assert push[~even].mean() == pytest.approx(0.5, abs=0.05)


def test_a_seed_is_a_whole_number() -> None:
    assert not np.array_equal(synthetic(50, seed=9).y, synthetic(50, seed=10).y)
    with pytest.raises(InputError, match=r"seed must be a whole number of at least 0, got 1\.5"):
        synthetic(50, seed=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        ({"length": 0.5}, "length must be at least 1, got 0.5"),
        ({"spread": -1.0}, "spread must be 0 or more, got -1.0"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        synthetic(**options)  # type: ignore[arg-type]
    assert str(caught.value) == message
