"""One live step with sets of labels, beside the same recursion in plain numpy.

The rival is the least one would write without a library: the probabilities compared with the
threshold, or sorted and summed up, the safeguard, θ moved on. It checks no input, keeps no receipt
and can tell nothing afterwards. Both must end at the same θ to the bit, or the benchmark stops.
"""

import gc
import json
import platform
from collections.abc import Callable
from math import inf
from statistics import median
from time import process_time
from typing import Any

import numpy as np

import setpoint as sp

CLASSES = (10, 1000)
STEPS = 4_000
REPEATS = 7

LEVEL, GAMMA, LOW, HIGH = 0.1, 0.01, -1.0, 0.0

Row = tuple[Any, int]


def stream_of_rows(classes: int) -> list[Row]:
    """Probabilities that are a little too sure of themselves, and classes drawn from the truth."""
    random = np.random.default_rng(classes)
    scores = 2.0 * random.standard_normal((STEPS, classes))
    p = np.exp(scores)
    p /= p.sum(axis=1, keepdims=True)
    truth = np.exp(0.8 * scores)
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < random.random((STEPS, 1))).sum(axis=1).clip(max=classes - 1)
    return list(zip(p, y.tolist(), strict=True))


# Plain numpy


def _lam(theta: float) -> float:
    if theta > HIGH:
        return inf
    return -inf if theta < LOW else theta


def plain_threshold(rows: list[Row], listed: bool) -> float:
    theta = -LEVEL
    for p, y in rows:
        mask = p >= -_lam(theta)
        if listed:
            places = np.flatnonzero(mask)
            places[np.argsort(-p[places], kind="stable")].tolist()
        loss = 0.0 if mask[y] else 1.0
        theta += GAMMA * (loss - LEVEL)
    return theta


def plain_cumulative(rows: list[Row], listed: bool) -> float:
    theta = -LEVEL
    for p, y in rows:
        order = np.argsort(-p, kind="stable")
        before = np.cumsum(p[order])
        before[1:] = before[:-1]
        before[0] = 0.0
        ranked = before - 1.0 < _lam(theta)
        mask = np.empty(len(p), dtype=bool)
        mask[order] = ranked
        if listed:
            order[ranked].tolist()
        loss = 0.0 if mask[y] else 1.0
        theta += GAMMA * (loss - LEVEL)
    return theta


# setpoint


def run(family: Any, rows: list[Row], listed: bool) -> float:
    """Every row through a stream, with the labels of each set listed if asked."""
    risk = sp.Risk(sp.losses.Miscoverage(), LEVEL, step=sp.steps.Fixed(GAMMA))
    stream = sp.Stream(sp.Controller(family, risk))
    predict, update = stream.predict, stream.update
    for p, y in rows:
        shown = predict(p)
        if listed:
            _ = shown.labels
        update(y)
    return float(stream.theta)


FAMILIES: dict[str, tuple[Any, Callable[[list[Row], bool], float] | None]] = {
    "Threshold": (sp.sets.Threshold(), plain_threshold),
    "Cumulative": (sp.sets.Cumulative(), plain_cumulative),
    "Cumulative, randomised": (sp.sets.Cumulative(randomised=True), None),
}


def timed(tasks: dict[Any, Callable[[], Any]]) -> tuple[dict[Any, list[float]], dict[Any, Any]]:
    """µs of CPU time a step, all repeats of each task interleaved, and what each returned."""
    times: dict[Any, list[float]] = {name: [] for name in tasks}
    results: dict[Any, Any] = {}
    gc.collect()
    gc.disable()
    try:
        for _ in range(REPEATS):
            for name, task in tasks.items():
                began = process_time()
                results[name] = task()
                times[name].append((process_time() - began) / STEPS * 1e6)
    finally:
        gc.enable()
    return times, results


def steps(classes: int) -> dict[Any, list[float]]:
    """The times of each family, by the name of the family, listed or not, and the form."""
    rows = stream_of_rows(classes)
    tasks: dict[Any, Callable[[], Any]] = {}
    for name, (family, plain) in FAMILIES.items():
        for listed in (False, True):
            tasks[name, listed, "setpoint"] = lambda f=family, each=listed: run(f, rows, each)
            if plain is not None:
                tasks[name, listed, "numpy"] = lambda f=plain, each=listed: f(rows, each)
    times, thetas = timed(tasks)
    for name, (_, plain) in FAMILIES.items():
        if plain is not None:
            found = {thetas[key] for key in thetas if key[0] == name}
            if len(found) > 1:
                raise SystemExit(f"{name}: the forms end at different θ: {sorted(found)}")
    return times


# The report


def main() -> None:
    """Measures, prints the tables, and one JSON object at the end."""
    found = {classes: steps(classes) for classes in CLASSES}
    print(f"setpoint {sp.__version__}, Python {platform.python_version()}, numpy {np.__version__}")
    print()
    print(
        f"One step with label sets, predict + update, probabilities as a numpy array: µs of CPU\n"
        f"time, min (median) of {REPEATS} interleaved repeats of {STEPS:,} steps. Beside it the\n"
        "same recursion in plain numpy, with the safeguard and without checks. Both end at the\n"
        "same θ. Listed: the labels of every set are listed, the likeliest first. Ratios are of\n"
        "the minima."
    )
    for classes, times in found.items():
        print(f"\n{classes:,} classes")
        print(f"{'family':<26}{'labels':<12}{'setpoint':>19}{'numpy':>19}{'÷ numpy':>9}")
        for name, (_, plain) in FAMILIES.items():
            for listed in (False, True):
                mine = times[name, listed, "setpoint"]
                line = f"{name:<26}{'listed' if listed else 'not asked':<12}{_cell(mine):>19}"
                if plain is not None:
                    rival = times[name, listed, "numpy"]
                    line += f"{_cell(rival):>19}{min(mine) / min(rival):>9.2f}"
                print(line)
    print()
    print(json.dumps(_summary(found)))


def _cell(found: list[float]) -> str:
    return f"{min(found):.2f} ({median(found):.2f})"


def _summary(found: dict[int, dict[Any, list[float]]]) -> dict[str, Any]:
    """Everything printed, by name: minima, medians and ratios of minima."""
    table: dict[str, Any] = {}
    for classes, times in found.items():
        own = table[str(classes)] = {}
        for (name, listed, form), held in times.items():
            row = own.setdefault(f"{name}, {'listed' if listed else 'not asked'}", {})
            row[form] = {"min": round(min(held), 4), "median": round(median(held), 4)}
            rival = times.get((name, listed, "numpy"))
            if rival is not None:
                row["times_numpy"] = round(min(times[name, listed, "setpoint"]) / min(rival), 3)
    return {
        "benchmark": "labels",
        "unit": "microseconds of CPU time a step",
        "steps": STEPS,
        "repeats": REPEATS,
        "classes": table,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "setpoint": sp.__version__,
    }
