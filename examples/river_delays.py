"""River with labels that come late: a taxi ride's length is known when the ride ends.

Rides come one after another; a storm makes them longer and less predictable for a while. The
question is asked when a ride begins and answered `y` minutes later, so that a dozen rides are under
way at once. Both wrappers get the same regressor and are evaluated by River itself: River's own
jackknife, and setpoint's wrapper, which judges each ride on the interval that its passenger saw.

Run it with `python examples/river_delays.py`. It needs the extra `river`.
"""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import numpy as np
from river import compose, conf, evaluate, linear_model, optim, preprocessing

from setpoint.models.river import Coverage, IntervalRegressor

RIDES = 4000
STORM = range(1500, 2500)


def rides(seed: int = 0) -> Iterator[tuple[dict[str, Any], float]]:
    """Features of each ride with the moment it begins, and its minutes."""
    random = np.random.default_rng(seed)
    clock = dt.datetime(2024, 5, 1)
    for ride in range(RIDES):
        clock += dt.timedelta(minutes=float(random.exponential(1.5)))
        distance = float(random.gamma(3.0, 2.0))
        rush = 7 <= clock.hour < 10 or 16 <= clock.hour < 19
        storm = ride in STORM
        minutes = 4.0 + distance * (2.0 + 1.0 * rush + 1.5 * storm)
        minutes *= float(np.exp((0.25 if storm else 0.1) * random.normal()))
        yield {"begins": clock, "distance": distance, "rush": float(rush)}, minutes


def regressor() -> Any:
    return (
        compose.Discard("begins")
        | preprocessing.StandardScaler()
        | linear_model.LinearRegression(optim.SGD(0.02), intercept_lr=0.1)
    )


def main() -> None:
    models = {
        "river.conf.RegressionJackknife": conf.RegressionJackknife(regressor(), 0.9),
        "the same, last 250 rides": conf.RegressionJackknife(regressor(), 0.9, window_size=250),
        "setpoint": IntervalRegressor(regressor(), coverage=0.9),
    }
    print("coverage, asked for: 90 %           all    before     storm     after")
    for name, model in models.items():
        asked = [(x, y, {"with_interval": True}) for x, y in rides()]
        steps = evaluate.iter_progressive_val_score(
            asked,
            model,
            Coverage(),
            moment="begins",
            delay=lambda _, y: dt.timedelta(minutes=y),
            step=500,
        )
        hits = [0.0, *(step["Coverage"].get() * step["Step"] for step in steps)]
        shares = [
            (hits[b] - hits[a]) / (500.0 * (b - a)) for a, b in ((0, 8), (0, 3), (3, 5), (5, 8))
        ]
        print(f"{name:32s}" + "".join(f"{share:10.1%}" for share in shares))
    print()
    print(models["setpoint"].certificate())


if __name__ == "__main__":
    main()
