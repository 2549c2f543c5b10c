"""`setpoint run` beside the simplest forecasts, on five tabular data sets and two files of River.

Every forecast is a whole job, `setpoint run --model NAME`, with the same self-adjusting intervals
on top, so coverage is about equal. The width of `auto` is told as a share of the narrowest of the
three simple ones, and so is its interval score (width plus 2/level times what is missed by).
Seconds are those of processor time for the whole job, from the table to the calibrated rows. The
data sets are read from the folder that SETPOINT_DATA names.
"""

import json
import os
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any

from setpoint.jobs import run
from setpoint.tape.rows import read

ROWS = int(os.environ.get("ROWS", "50000"))
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


def measure(name: str, path: Path) -> dict[str, Any]:
    """What the mixture and each simple forecast come to on one file."""
    table, target = read(path).table.slice(0, ROWS), FILES[name][1]
    result: dict[str, Any] = {"rows": len(table)}
    for model in ("auto", *SIMPLE):
        begun = process_time()
        outcome = run(table, target, model=model)
        numbers = outcome.metrics()
        result[model] = {
            "width": numbers["mean_finite_length"],
            "winkler": numbers["mean_finite_winkler"],
            "coverage": numbers["coverage"],
            "full": numbers["full"],
            "seconds": process_time() - begun,
            "notes": list(outcome.notes),
        }
    for number in ("width", "winkler"):
        best = min(SIMPLE, key=lambda model: result[model][number])
        result[f"{number}_ratio"] = result["auto"][number] / result[best][number]
        result[f"{number}_best"] = best
    return result


def main() -> None:
    """Prints a table, and all numbers as JSON."""
    print("auto beside the best of last, seasonal and linear, 90 % asked for")
    heads = ("width", "best", "to best", "score to best", "coverage", "its", "seconds")
    print(f"{'file':<9}{'rows':>7}{''.join(f'{head:>15}' for head in heads)}")
    numbers = {}
    for name in FILES:
        path = place_of(name)
        if path is None:
            print(f"{name:<9}is not at hand")
            continue
        numbers[name] = result = measure(name, path)
        auto, best = result["auto"], result[result["width_best"]]
        cells = (
            f"{auto['width']:.5g}", f"{result['width_best']} {best['width']:.5g}",
            f"{result['width_ratio']:.3f}", f"{result['winkler_ratio']:.3f}",
            f"{auto['coverage']:.2%}", f"{best['coverage']:.2%}", f"{auto['seconds']:.1f}",
        )  # fmt: skip
        print(f"{name:<9}{result['rows']:>7,}{''.join(f'{c:>15}' for c in cells)}", flush=True)
    print(json.dumps(numbers))
