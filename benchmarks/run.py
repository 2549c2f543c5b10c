"""`setpoint run` beside the simplest forecasts, on five tabular data sets and two files of River.

Every forecast gets the same self-adjusting intervals on top, so coverage is about equal, and the
interval score (width plus 2/level times what is missed by) says which is best. Seconds are those of
processor time for all candidates. The data sets are read from the folder that SETPOINT_DATA names.
"""

import json
import os
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import setpoint as sp
from setpoint.jobs.columns import tape_of
from setpoint.jobs.features import features
from setpoint.jobs.rows import read
from setpoint.jobs.run import clock_of
from setpoint.models.forecast import AUTO, forecast

Array = np.ndarray[Any, Any]

ROWS = int(os.environ.get("ROWS", "50000"))
BURN_IN = 1_000
SIMPLE = ("last", "seasonal", "linear")

FILES = {
    "energy": ("energy/energydata_complete.csv.gz", "Appliances"),
    "power": ("power/tetuan_power.csv.gz", "Zone 1 Power Consumption"),
    "traffic": ("traffic/Metro_Interstate_Traffic_Volume.csv.gz", "traffic_volume"),
    "prices": ("prices/Prices_2016_2019_extract.csv.gz", "Spot"),
    "wind": ("wind/amprion_wind_15min_2011_2017.csv.gz", "MW"),
    "water": ("water-flow.csv", "Water flow [l/s]"),
    "sp500": ("sp500.csv.gz", "AAPL"),
}


def place_of(name: str) -> Path | None:
    """Where a file is, if it is there."""
    if name in ("water", "sp500"):
        spec = find_spec("river")
        folder = None if spec is None else Path(str(spec.origin)).parent / "datasets"
    else:
        folder = Path(os.environ["SETPOINT_DATA"]) if "SETPOINT_DATA" in os.environ else None
    path = None if folder is None else folder / FILES[name][0]
    return path if path is not None and path.exists() else None


def score(lower: Array, upper: Array, y: Array) -> dict[str, float]:
    """The mean interval score, width and coverage of self-adjusting intervals around two ends."""
    tape = sp.Tape.from_arrays({"lower": lower, "upper": upper}, y)
    trace = sp.replay(sp.intervals(coverage=0.9), tape)
    low, high = np.asarray(trace.lower), np.asarray(trace.upper)
    beyond = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    winkler = float(np.mean(high - low + 20.0 * beyond))
    return {
        "winkler": winkler,
        "width": float(np.mean(high - low)),
        "coverage": float(np.mean((low <= y) & (y <= high))),
    }


def measure(name: str, path: Path) -> dict[str, Any]:
    """What each candidate and their mixture come to on one file."""
    rows, target = read(path), FILES[name][1]
    y = rows.labels(target)
    time = next(column for column in rows.dates if column != target)
    tape, _ = tape_of(rows, {"prediction": np.zeros(len(y))}, y, {"time": time})
    seen = features(rows, tape, target, time=time)
    x, y, clock = seen.values[:ROWS], tape.y[:ROWS], clock_of(tape.time[:ROWS])
    begun, results = process_time(), {}
    mixture = forecast(x, y, clock=clock, seconds=40.0)
    seconds = process_time() - begun
    begin = min(BURN_IN, len(y) // 10)
    for model in SIMPLE:
        alone = forecast(x, y, clock=clock, models=(model,))
        results[model] = score(alone.lower[begin:], alone.upper[begin:], y[begin:])
    results["auto"] = score(mixture.lower[begin:], mixture.upper[begin:], y[begin:])
    best = min(results[model]["winkler"] for model in SIMPLE)
    return {
        "rows": len(y),
        "seconds": seconds,
        "lagged": list(seen.lagged),
        "ratio": results["auto"]["winkler"] / best,
        "weights": dict(zip(mixture.names, mixture.weights.mean(axis=0).round(3), strict=True)),
        **results,
    }


def main() -> None:
    """Prints a table, and all numbers as JSON."""
    print(f"interval score at 90 % of {', '.join(AUTO)}, mixed, beside each alone")
    print(f"{'file':<10}{'rows':>8}{'last':>10}{'seasonal':>10}{'linear':>10}{'auto':>10}", end="")
    print(f"{'to best':>9}{'width':>10}{'coverage':>10}{'seconds':>9}")
    numbers = {}
    for name in FILES:
        path = place_of(name)
        if path is None:
            print(f"{name:<10}is not at hand")
            continue
        numbers[name] = result = measure(name, path)
        print(f"{name:<10}{result['rows']:>8,}", end="")
        for model in (*SIMPLE, "auto"):
            print(f"{result[model]['winkler']:>10.4g}", end="")
        print(f"{result['ratio']:>9.3f}{result['auto']['width']:>10.4g}", end="")
        print(f"{result['auto']['coverage']:>10.4f}{result['seconds']:>9.1f}", flush=True)
    print(json.dumps(numbers))
