"""`setpoint forecast` beside statsforecast, mlforecast and prophet, 24 steps ahead on public data.

Three hourly series (of ten-minute power each sixth row) are forecast from ORIGINS places (8 unless
ORIGINS says otherwise), each time from the first row on, by everything that is installed. Intervals
are asked at 80 and 90 %: conformal ones of statsforecast and mlforecast, prophet's own. Lines are
the statements of the function, seconds the median of one forecast's processor time. A library
that would take more than MOST seconds on a data set (240 unless MOST says otherwise) is left out
after its first forecast. The data sets are read from the folder that SETPOINT_DATA names; SETS
names some of them.
"""

import ast
import inspect
import json
import logging
import os
import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from textwrap import dedent
from typing import Any

import numpy as np

from benchmarks.ahead import FILES, place_of
from setpoint.tape.rows import read

ORIGINS = int(os.environ.get("ORIGINS", "8"))
MOST = float(os.environ.get("MOST", "240"))
FIRST, APART, STEPS = 1_000, 79, 24
LEVELS = (80, 90)
EVERY = {"traffic": 1, "prices": 1, "power": 6}
"""The data sets, and which of their rows are an hour."""
SETS = os.environ.get("SETS", ",".join(EVERY)).split(",")

Array = np.ndarray[Any, Any]


def setpoint(past: Any) -> Any:
    """Point and ends of the future rows."""
    import setpoint as sp

    return sp.forecast(past, "y", steps=24, coverage=(0.8, 0.9)).to_frame()


def ets(past: Any) -> Any:
    """AutoETS of statsforecast."""
    from statsforecast import StatsForecast
    from statsforecast.models import AutoETS
    from statsforecast.utils import ConformalIntervals

    conformal = ConformalIntervals(h=24, n_windows=10)
    library = StatsForecast(models=[AutoETS(season_length=24)], freq="h")
    data = past.assign(unique_id="y").rename(columns={"time": "ds"})
    return library.forecast(df=data, h=24, level=[80, 90], prediction_intervals=conformal)


def boosting(past: Any) -> Any:
    """Trees of scikit-learn on lags, in mlforecast."""
    from mlforecast import MLForecast
    from mlforecast.utils import PredictionIntervals
    from sklearn.ensemble import HistGradientBoostingRegressor

    conformal = PredictionIntervals(h=24, n_windows=10)
    library = MLForecast(
        {"trees": HistGradientBoostingRegressor()}, freq="h",
        lags=[1, 2, 3, 24, 48, 168], date_features=["hour", "dayofweek"],
    )  # fmt: skip
    data = past.assign(unique_id="y").rename(columns={"time": "ds"})
    library.fit(data, prediction_intervals=conformal)
    return library.predict(24, level=[80, 90])


def prophet(past: Any) -> Any:
    """Prophet, whose intervals are simulated; it has one level a model."""
    from prophet import Prophet

    data = past.rename(columns={"time": "ds"})
    shown = {}
    for level in (80, 90):
        model = Prophet(interval_width=level / 100).fit(data)
        ahead = model.predict(model.make_future_dataframe(24, freq="h", include_history=False))
        shown |= {"point": ahead["yhat"]}
        shown |= {f"lo-{level}": ahead["yhat_lower"], f"hi-{level}": ahead["yhat_upper"]}
    return shown


RIVALS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "setpoint": ("setpoint", setpoint),
    "AutoETS, conformal": ("statsforecast", ets),
    "mlforecast, conformal": ("mlforecast", boosting),
    "prophet": ("prophet", prophet),
}
"""What is compared, and which library it needs."""


def lines(function: Callable[[Any], Any]) -> int:
    """The statements of a function, without its docstring and imports."""
    (made,) = ast.parse(dedent(inspect.getsource(function))).body
    left_out = ast.Import | ast.ImportFrom
    return sum(isinstance(n, ast.stmt) and not isinstance(n, left_out) for n in ast.walk(made)) - 2


def ends_of(shown: Any) -> Array:
    """Lower and upper ends by level and step, however a library calls them."""
    names = list(shown)

    def column(level: int, *words: str) -> Array:
        (name,) = [n for n in names if str(n).endswith(tuple(f"{word}{level}" for word in words))]
        return np.asarray(shown[name], np.float64)

    return np.array([[column(n, "lower_", "lo-"), column(n, "upper_", "hi-")] for n in LEVELS])


def _used() -> float:
    """Processor seconds until now, of this process and of those it began: prophet's work there."""
    return sum(os.times()[:4])


def measure(function: Callable[[Any], Any], y: Array) -> dict[str, Any]:
    """Coverage and Winkler score by horizon, and the time of one forecast."""
    import pandas as pd

    frame = pd.DataFrame({"time": pd.date_range("2020-01-01", periods=len(y), freq="h"), "y": y})
    ends, truth, seconds = [], [], []
    for origin in FIRST + APART * np.arange(ORIGINS):
        begun = _used()
        ends.append(ends_of(function(frame[:origin])))
        seconds.append(_used() - begun)
        if seconds[-1] * ORIGINS > MOST and len(seconds) == 1:
            return {"seconds": seconds[-1]}
        truth.append(y[origin : origin + STEPS])
    shown, actual = np.array(ends), np.array(truth)[:, None]
    lower, upper = shown[:, :, 0], shown[:, :, 1]
    beyond = np.maximum(lower - actual, 0.0) + np.maximum(actual - upper, 0.0)
    level = 1.0 - np.array(LEVELS)[:, None] / 100.0
    return {
        "coverage": ((lower <= actual) & (actual <= upper)).mean(axis=0).tolist(),
        "winkler": (upper - lower + 2.0 / level * beyond).mean(axis=0).tolist(),
        "seconds": float(np.median(seconds)),
    }  # fmt: skip


def main() -> None:
    """Prints a table, and all numbers as JSON."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    numbers: dict[str, Any] = {}
    print(f"{STEPS} steps ahead from {ORIGINS} origins: lines, seconds, coverage of 80 and of 90 %")
    print("at steps 1-8, 9-16 and 17-24, Winkler score at 90 %")
    for name in SETS:
        path, every = place_of(name), EVERY[name]
        if path is None:
            print(f"{name} is not at hand")
            continue
        y = read(path).labels(FILES[name][1])[::every][: FIRST + APART * ORIGINS + STEPS]
        for rival, (library, function) in RIVALS.items():
            if find_spec(library) is None:
                print(f"{rival} is not installed")
                continue
            one = measure(function, y)
            numbers.setdefault(name, {})[rival] = one
            if "coverage" not in one:
                print(f"{name:<9}{rival:<23}left out: one forecast took {one['seconds']:.0f} s")
                continue
            shares = 100.0 * np.array(one["coverage"]).reshape(2, 3, 8).mean(axis=2)
            print(
                f"{name:<9}{rival:<23}{lines(function):>3} lines{one['seconds']:>8.1f} s  "
                + " | ".join(" ".join(f"{share:5.1f}" for share in row) for row in shares)
                + f"{np.mean(one['winkler'][1]):>10.4g}",
                flush=True,
            )
    print(json.dumps(numbers))
