"""`setpoint forecast` 24 steps ahead on five tabular data sets, and how long large files take.

Of each data set the first ROWS rows (12,000 unless ROWS says otherwise) are forecast at every
origin behind the burn-in. Coverage is the largest deviation of any horizon from what was asked.
The Winkler score (its geometric mean over the horizons, at 90 %) stands beside that of the value
one season before with a rolling quantile of its errors. The data sets are read from the folder
that SETPOINT_DATA names. ROWS=0 measures time alone, of one series of 50,000 rows and 500 of 500.
"""

import json
import os
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from setpoint import forecast
from setpoint.tape.rows import read

ROWS = int(os.environ.get("ROWS", "12000"))
STEPS = 24
LEVELS = (0.8, 0.9, 0.95)
FILES = {
    "energy": ("energy/energydata_complete.csv.gz", "Appliances"),
    "power": ("power/tetuan_power.csv.gz", "Zone 1 Power Consumption"),
    "traffic": ("traffic/Metro_Interstate_Traffic_Volume.csv.gz", "traffic_volume"),
    "prices": ("prices/Prices_2016_2019_extract.csv.gz", "Spot"),
    "wind": ("wind/amprion_wind_15min_2011_2017.csv.gz", "MW"),
}
"""The data sets: a file and its target. Wind is another zone than the paper's."""


def place_of(name: str) -> Path | None:
    """Where a file is, if it is there."""
    path = Path(os.environ.get("SETPOINT_DATA", "")) / FILES[name][0]
    return path if "SETPOINT_DATA" in os.environ and path.exists() else None


def measure(name: str, rows: int) -> dict[str, Any]:
    """The numbers of one data set."""
    path = place_of(name)
    if path is None:
        return {}
    begun = process_time()
    table = read(path).table.slice(0, rows)
    ahead = forecast(table, FILES[name][1], steps=STEPS, coverage=LEVELS)
    horizons = ahead.horizons
    off = [[level["share"] - level["asked"] for level in horizon["levels"]] for horizon in horizons]
    widths = np.array([horizon["levels"][1]["width"] for horizon in horizons])
    scores = np.array(
        [[h["levels"][1][key] for key in ("winkler", "winkler_rolling")] for h in horizons]
    )
    return {
        "rows": len(table), "judged": horizons[-1]["judged"],
        "coverage_off": np.abs(100.0 * np.array(off)).max(axis=0).round(2).tolist(),
        "width_24": float(widths[-1] / widths[0]),
        "narrower_steps": int((np.diff(widths) < 0.0).sum()),
        "winkler": float(np.exp(np.log(scores[:, 0] / scores[:, 1]).mean())),
        "lost_at": [h["horizon"] for h, s in zip(horizons, scores, strict=True) if s[0] > s[1]],
        "mae": float(np.mean([h["mae"] / h["mae_seasonal"] for h in horizons])),
        "unlimited": max(level["unlimited"] for h in horizons for level in h["levels"]),
        "seconds": process_time() - begun, "uses": ahead.uses["weights"],
    }  # fmt: skip


def timed() -> dict[str, float]:
    """Seconds for one long series and for many short ones."""
    rng, seconds = np.random.default_rng(0), {}
    hours = np.arange(50_000)
    y = np.sin(hours / 24 * 2 * np.pi) * 10 + rng.normal(size=50_000).cumsum() * 0.1
    short = rng.normal(size=(500, 500)).cumsum(axis=1) + np.sin(np.arange(500) / 7 * 2 * np.pi)
    import pandas as pd

    names = np.repeat(np.arange(500), 500)
    frames = {
        "50,000 rows, 24 steps": (pd.DataFrame({"y": y + rng.normal(size=50_000)}), {}),
        "500 series of 500 rows, 24 steps": (
            pd.DataFrame({"s": names, "y": short.ravel()}), {"series": "s"}),
    }  # fmt: skip
    for name, (frame, options) in frames.items():
        begun, used = perf_counter(), process_time()
        forecast(frame, "y", steps=STEPS, **options)
        seconds[name] = perf_counter() - begun
        print(f"{name}: {seconds[name]:.1f} s, {process_time() - used:.1f} s of processor time",
              flush=True)  # fmt: skip
    return seconds


def main() -> None:
    """Prints a table, and all numbers as JSON."""
    if not ROWS:
        timed()
        return
    numbers = {}
    print(f"{STEPS} steps ahead; off: largest deviation of coverage at 80, 90, 95 %, in points")
    print(f"{'file':<9}{'rows':>8}{'judged':>8}{'off':>20}{'width ×':>9}{'Winkler':>9}{'MAE':>7}"
          f"{'seconds':>9}")  # fmt: skip
    for name in FILES:
        numbers[name] = one = measure(name, ROWS)
        if not one:
            print(f"{name:<9}is not at hand")
            continue
        off = " ".join(f"{value:.2f}" for value in one["coverage_off"])
        cells = (
            f"{one['rows']:>8,}{one['judged']:>8,}{off:>20}", f"{one['width_24']:>9.2f}",
            f"{one['winkler']:>9.3f}{one['mae']:>7.3f}{one['seconds']:>9.1f}",
        )  # fmt: skip
        print(f"{name:<9}{''.join(cells)}", flush=True)
    print(json.dumps(numbers))
