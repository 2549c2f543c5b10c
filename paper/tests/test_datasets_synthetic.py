"""The synthetic stream of the appendix, against a plain loop."""

import math

import numpy as np
import pytest

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
