"""Two risks on one interval, by the self-adjusting default and by the paper's rule.

On five tabular data sets, 10,000 rows each (ROWS says otherwise), the forecast is the value one
season before. 90 % must be covered, and what is short of y, in units of the mean absolute error and
at most 1, must cost half of what intervals that hold coverage alone leave. The paper's rule has
anti-windup and, of five γ, the one with the shortest intervals of those that hold both levels to
5 %: nobody could know it beforehand. Lengths leave unlimited intervals out (`full`). The data sets
are read from the folder that SETPOINT_DATA names.
"""

import json
import os
from typing import Any

import numpy as np
import pandas as pd

import setpoint as sp
from comparison.forecasts import FILES, place_of

ROWS = int(os.environ.get("ROWS", "10000"))
SEASONS = {"energy": 144, "power": 144, "traffic": 24, "prices": 24, "wind": 96}
DELAYS = (0, 24)
GAMMAS = (0.01, 0.03, 0.1, 0.3, 1.0)
WINDOW, JUDGED = 250, 500

Array = np.ndarray[Any, Any]


def tape_of(name: str) -> sp.Tape | None:
    """Forecasts and labels in mean absolute errors of the forecast, None if not at hand."""
    path = place_of(name)
    if path is None:
        return None
    season = SEASONS[name]
    y = pd.read_csv(path, nrows=ROWS + season)[FILES[name][1]].to_numpy(float)
    y = y / np.abs(y[season:] - y[:-season])[:JUDGED].mean()
    return sp.Tape.from_arrays({"point": y[:-season]}, y[season:])


def shortage(shown: Any, y: float) -> float:
    """What is short of y at the upper end, at most 1."""
    return min(max(y - shown.upper, 0.0), 1.0)


def paper(gamma: float, *risks: sp.Risk) -> sp.Controller:
    """The paper's rule: a step for each risk, larger where less loss is asked for."""
    held = [
        sp.Risk(risk.loss, risk.level, sp.steps.Fixed(gamma * 0.1 / risk.level), 1.0, (-99.0, 99.0))
        for risk in risks
    ]
    return sp.Controller(sp.sets.Widen(), held, combine=sp.combine.Max(anti_windup=10.0 * gamma))


def measure(controller: sp.Controller, tape: sp.Tape, delay: int) -> dict[str, float]:
    """What a controller comes to: both losses, in the mean and at worst, and how long it is."""
    trace = sp.replay(controller, tape, delay=delay)
    low, high, y = (each[JUDGED:] for each in (trace.lower, trace.upper, tape.y))
    losses = {"missed": 1.0 - ((low <= y) & (y <= high)), "short": np.clip(y - high, 0.0, 1.0)}
    finite = np.isfinite(low) & np.isfinite(high)
    found = {name: float(each.mean()) for name, each in losses.items()}
    for name, each in losses.items():
        found[f"{name}_worst"] = float(np.convolve(each, np.ones(WINDOW) / WINDOW, "valid").max())
    found["length"] = float((high - low)[finite].mean())
    found["unlimited"] = 1.0 - float(finite.mean())
    found["kept"] = float(all(risk.within for risk in trace.certificate().risks))
    return found


def compared(tape: sp.Tape, delay: int) -> dict[str, dict[str, float]]:
    """Coverage alone, and both risks in both ways; the level of the second stands with each."""
    covered = sp.Risk(sp.losses.Miscoverage(), 0.1)
    alone = measure(sp.intervals(risk=covered), tape, delay)
    level = alone["short"] / 2.0
    both = covered, sp.Risk(sp.losses.Custom(shortage), level)

    def unlike(one: dict[str, float]) -> tuple[float, float]:
        beyond = max(one["missed"] / 0.1, one["short"] / level) - 1.05
        return max(beyond, 0.0), one["length"]

    tried = [measure(paper(gamma, *both), tape, delay) for gamma in GAMMAS]
    found = {
        "coverage alone": alone,
        "both, default": measure(sp.intervals(risk=both), tape, delay),
        "both, paper": min(tried, key=unlike),
    }
    return {name: {**each, "level": level} for name, each in found.items()}


def main() -> None:
    """Prints a table, and all numbers as JSON."""
    numbers: dict[str, Any] = {}
    print(f"missed in % and short of its level, in the mean and the worst {WINDOW} rows")
    print(f"{'file':<9}{'late':>5}  {'held':<16}{'missed':>13}{'short':>14}{'length':>8}{'full':>7}"
          f"{'kept':>6}")  # fmt: skip
    for name in SEASONS:
        tape = tape_of(name)
        if tape is None:
            print(f"{name:<9}is not at hand")
            continue
        for delay in DELAYS:
            numbers[f"{name}, {delay} late"] = found = compared(tape, delay)
            for way, one in found.items():
                missed = f"{100.0 * one['missed']:.1f}, {100.0 * one['missed_worst']:.1f}"
                short = (
                    f"{one['short'] / one['level']:.2f}, {one['short_worst'] / one['level']:.2f}"
                )
                length = one["length"] / found["coverage alone"]["length"]
                print(f"{name:<9}{delay:>5}  {way:<16}{missed:>13}{short:>14}{length:>8.2f}"
                      f"{100.0 * one['unlimited']:>7.2f}{'yes' if one['kept'] else 'NO':>6}",
                      flush=True)  # fmt: skip
    print(json.dumps(numbers))
