"""A small torch network that learns quantiles as it goes, and the risk of its intervals.

A sensor whose noise depends on its temperature and whose calibration drifts. The network sees one
reading at a time and takes a gradient step on the last 16; its own 90 % intervals are never quite
right. A second risk is held beside coverage: misses in a row, which hurt more than single ones.

Run it with `python examples/torch_quantiles.py`. It needs the extra `torch`.
"""

import numpy as np
import torch
from torch import nn

import setpoint as sp
from setpoint.models.torch import Online, Pinball

STEPS = 3000


def sensor(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Readings (temperature, time of day) and the quantity measured."""
    random = np.random.default_rng(seed)
    time = np.arange(STEPS)
    temperature = np.sin(2 * np.pi * time / 1000) + 0.3 * random.normal(size=STEPS)
    clock = np.sin(2 * np.pi * time / 50)
    drift = np.where(time < 1500, 0.0, (time - 1500) / 400)
    noise = 0.3 + np.maximum(temperature, 0.0)
    y = 2.0 * clock + temperature**2 + drift + noise * random.normal(size=STEPS)
    return np.stack([temperature, clock], axis=1), y


def main() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
    optimiser = torch.optim.Adam(module.parameters(), lr=0.005)
    model = Online(module, optimiser, Pinball(0.05, 0.95), rows=16)

    level = 0.1
    bounds = (-10.0, 10.0)
    controller = sp.Controller(
        sp.sets.Widen(),
        [
            sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(0.1), bounds=bounds),
            sp.Risk(
                sp.losses.MiscoverageCounter(cap=10.0),
                level / (1.0 - level),
                sp.steps.Fixed(0.1),
                bounds=bounds,
            ),
        ],
        combine=sp.combine.Max(anti_windup=1.0),
    )
    stream = sp.Stream(controller)
    X, y = sensor()
    own, held = [], []
    for x, label in zip(X, y, strict=True):
        quantiles = model.predict(x)
        shown = stream.predict(quantiles)
        own.append(quantiles.lower <= label <= quantiles.upper)
        held.append(label in shown)
        stream.update(label)
        model.learn(x, label)

    print("coverage, asked for: 90 %    network alone    held by setpoint")
    for start in range(0, STEPS, 500):
        part = slice(start, start + 500)
        print(
            f"rows {start:4d}–{start + 499:<6d} {np.mean(own[part]):22.1%}"
            f" {np.mean(held[part]):18.1%}"
        )
    print()
    print(stream.certificate())


if __name__ == "__main__":
    main()
