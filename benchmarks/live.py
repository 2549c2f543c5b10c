"""One live step: predict and update, beside the same recursion written by hand.

The rivals are the least one would write without a library, in natural Python and with the
safeguard: a bare loop, which keeps no receipt, takes no late label, checks no input and can tell
nothing afterwards; and a class with `predict` and `update` on top of it. All three must end at the
same θ to the bit, or the benchmark stops.
"""

import gc
import json
import platform
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from math import exp, expm1, inf
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np

import setpoint as sp
from setpoint.correction import compiled

STEPS = 20_000
REPEATS = 9
STARTS = 9
DEFAULT_TARGETS = {"self-adjusting": 8.0, "self-adjusting, plain": 25.0}
"""µs a step of the self-adjusting default, with the extra `fast` and without."""

LEVEL, GAMMA, LOW, HIGH = 0.1, 0.05, -20.0, 20.0
SCORE, LOSS, CLIP = 0.1, 0.2, 1.0

Row = tuple[tuple[float, float], float]


def stream_of_rows() -> list[Row]:
    """Quantiles of a model that does not know that the spread of y changes, and y."""
    random = np.random.default_rng(0)
    spread = np.where(np.arange(STEPS) // 500 % 2, 2.0, 1.0)
    centre = np.sin(np.arange(STEPS) / 50.0)
    y = centre + spread * random.standard_normal(STEPS)
    ends = zip((centre - 1.6).tolist(), (centre + 1.6).tolist(), strict=True)
    return list(zip(ends, y.tolist(), strict=True))


# (a) The bare loop


def loop_identity(rows: list[Row]) -> float:
    theta = 0.0
    for (lower, upper), y in rows:
        if theta > HIGH:
            lam = inf
        elif theta < LOW:
            lam = -inf
        else:
            lam = theta
        loss = 0.0 if lower - lam <= y <= upper + lam else 1.0
        theta += GAMMA * (loss - LEVEL)
    return theta


def loop_exponential(rows: list[Row]) -> float:
    theta = 0.0
    for (lower, upper), y in rows:
        if theta > HIGH:
            lam = inf
        elif theta < LOW:
            lam = -inf
        else:
            lam = expm1(theta) if theta >= 0.0 else -expm1(-theta)
        loss = 0.0 if lower - lam <= y <= upper + lam else 1.0
        theta += GAMMA * (loss - LEVEL)
    return theta


def loop_score_adaptive(rows: list[Row]) -> float:
    theta = offset = 0.0
    for (lower, upper), y in rows:
        if theta > HIGH:
            lam = inf
        elif theta < LOW:
            lam = -inf
        else:
            lam = theta + offset
        loss = 0.0 if lower - lam <= y <= upper + lam else 1.0
        if LOW <= theta <= HIGH:
            score = max(lower - y, y - upper)
            offset = min(max(offset + SCORE * score, -CLIP), CLIP)
        theta += GAMMA * (loss - LEVEL)
    return theta


def loop_error_adaptive(rows: list[Row]) -> float:
    theta = offset = 0.0
    for (lower, upper), y in rows:
        if theta > HIGH:
            lam = inf
        elif theta < LOW:
            lam = -inf
        else:
            lam = theta + offset
        loss = 0.0 if lower - lam <= y <= upper + lam else 1.0
        excess = loss - LEVEL
        if LOW <= theta <= HIGH:
            score = max(lower - y, y - upper)
            moved = offset + SCORE * score * exp(LOSS * abs(excess))
            offset = min(max(moved, -CLIP), CLIP)
        theta += GAMMA * excess
    return theta


# (b) The class: each stretching written out, without a call that the arithmetic does not need


class Identity:
    def __init__(self) -> None:
        self.theta = 0.0
        self.shown = (0.0, 0.0)

    def predict(self, prediction: tuple[float, float]) -> tuple[float, float]:
        lower, upper = prediction
        if self.theta > HIGH:
            lam = inf
        elif self.theta < LOW:
            lam = -inf
        else:
            lam = self.theta
        self.shown = (lower - lam, upper + lam)
        return self.shown

    def update(self, y: float) -> float:
        lower, upper = self.shown
        loss = 0.0 if lower <= y <= upper else 1.0
        self.theta += GAMMA * (loss - LEVEL)
        return loss


class Exponential:
    def __init__(self) -> None:
        self.theta = 0.0
        self.shown = (0.0, 0.0)

    def predict(self, prediction: tuple[float, float]) -> tuple[float, float]:
        lower, upper = prediction
        theta = self.theta
        if theta > HIGH:
            lam = inf
        elif theta < LOW:
            lam = -inf
        else:
            lam = expm1(theta) if theta >= 0.0 else -expm1(-theta)
        self.shown = (lower - lam, upper + lam)
        return self.shown

    def update(self, y: float) -> float:
        lower, upper = self.shown
        loss = 0.0 if lower <= y <= upper else 1.0
        self.theta += GAMMA * (loss - LEVEL)
        return loss


class ScoreAdaptive:
    def __init__(self) -> None:
        self.theta = self.offset = 0.0
        self.shown = self.prediction = (0.0, 0.0)

    def predict(self, prediction: tuple[float, float]) -> tuple[float, float]:
        lower, upper = self.prediction = prediction
        if self.theta > HIGH:
            lam = inf
        elif self.theta < LOW:
            lam = -inf
        else:
            lam = self.theta + self.offset
        self.shown = (lower - lam, upper + lam)
        return self.shown

    def update(self, y: float) -> float:
        lower, upper = self.shown
        loss = 0.0 if lower <= y <= upper else 1.0
        if LOW <= self.theta <= HIGH:
            lower, upper = self.prediction
            score = max(lower - y, y - upper)
            self.offset = min(max(self.offset + SCORE * score, -CLIP), CLIP)
        self.theta += GAMMA * (loss - LEVEL)
        return loss


class ErrorAdaptive:
    def __init__(self) -> None:
        self.theta = self.offset = 0.0
        self.shown = self.prediction = (0.0, 0.0)

    def predict(self, prediction: tuple[float, float]) -> tuple[float, float]:
        lower, upper = self.prediction = prediction
        if self.theta > HIGH:
            lam = inf
        elif self.theta < LOW:
            lam = -inf
        else:
            lam = self.theta + self.offset
        self.shown = (lower - lam, upper + lam)
        return self.shown

    def update(self, y: float) -> float:
        lower, upper = self.shown
        loss = 0.0 if lower <= y <= upper else 1.0
        excess = loss - LEVEL
        if LOW <= self.theta <= HIGH:
            lower, upper = self.prediction
            score = max(lower - y, y - upper)
            moved = self.offset + SCORE * score * exp(LOSS * abs(excess))
            self.offset = min(max(moved, -CLIP), CLIP)
        self.theta += GAMMA * excess
        return loss


# setpoint


def controller(stretch: Any, *losses: Any, gamma: float = GAMMA) -> sp.Controller:
    """The controller that the loops above repeat."""
    held = losses or (sp.losses.Miscoverage(),)
    risks = [
        sp.Risk(loss, LEVEL, step=sp.steps.Fixed(gamma), bounds=(LOW, HIGH), start=0.0)
        for loss in held
    ]
    return sp.Controller(sp.sets.Widen(), risks, stretch)


def run(thing: Any, rows: list[Row]) -> Any:
    """Every row through the predict and update of a stream, or of a class by hand."""
    predict, update = thing.predict, thing.update
    for prediction, y in rows:
        predict(prediction)
        update(y)
    return thing.theta


def run_with_ids(stream: sp.Stream, rows: list[Row]) -> Any:
    """As `run`, with an id given to every prediction."""
    predict, update = stream.predict, stream.update
    for place, (prediction, y) in enumerate(rows):
        predict(prediction, f"order {place}")
        update(y, f"order {place}")
    return stream.theta


ERROR_ADAPTIVE = sp.stretches.ErrorAdaptive(SCORE, LOSS, -CLIP, CLIP, reading="paper")

RIVALS: dict[str, tuple[Any, Callable[[list[Row]], float], type]] = {
    "identity": (sp.stretches.Identity(), loop_identity, Identity),
    "exponential": (sp.stretches.Exponential(), loop_exponential, Exponential),
    "score adaptive": (
        sp.stretches.ScoreAdaptive(SCORE, -CLIP, CLIP),
        loop_score_adaptive,
        ScoreAdaptive,
    ),
    "error adaptive": (ERROR_ADAPTIVE, loop_error_adaptive, ErrorAdaptive),
}


def timed(tasks: dict[Any, Callable[[], Any]]) -> tuple[dict[Any, list[float]], dict[Any, Any]]:
    """µs of CPU time a step, all repeats of each task, and what each returned.

    The repeats are interleaved, so that a busy moment of the machine hits every task alike; the
    garbage collector rests, as in `timeit`.
    """
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


def steps(rows: list[Row]) -> dict[Any, list[float]]:
    """The times of each stretching in its three forms, which must agree on θ."""
    tasks: dict[Any, Callable[[], Any]] = {}
    for name, (stretch, loop, by_hand) in RIVALS.items():
        held = controller(stretch)
        tasks[name, "setpoint"] = lambda held=held: run(sp.Stream(held), rows)
        tasks[name, "loop"] = lambda loop=loop: loop(rows)
        tasks[name, "class"] = lambda by_hand=by_hand: run(by_hand(), rows)
    times, thetas = timed(tasks)
    for name in RIVALS:
        found = {thetas[name, form] for form in ("setpoint", "loop", "class")}
        if len(found) > 1:
            raise SystemExit(f"{name}: the three forms end at different θ: {sorted(found)}")
    return times


def variants(rows: list[Row]) -> dict[str, list[float]]:
    """The times of other inputs and risks with error adaptive stretching, and of the default."""
    numpy_rows: Any = [
        ((np.float64(lower), np.float64(upper)), np.float64(y)) for (lower, upper), y in rows
    ]
    one = controller(ERROR_ADAPTIVE)
    counter = controller(ERROR_ADAPTIVE, sp.losses.MiscoverageCounter())
    shortfall = sp.losses.Custom(_shortfall)
    own = controller(ERROR_ADAPTIVE, shortfall)
    two = controller(ERROR_ADAPTIVE, sp.losses.Miscoverage(), shortfall)
    tasks: dict[str, Callable[[], Any]] = {
        "float inputs": lambda: run(sp.Stream(one), rows),
        "numpy scalars": lambda: run(sp.Stream(one), numpy_rows),
        "given ids": lambda: run_with_ids(sp.Stream(one), rows),
        "shared by threads": lambda: run(sp.Stream(one, shared=True), rows),
        "miscoverage counter": lambda: run(sp.Stream(counter), rows),
        "a loss of one's own": lambda: run(sp.Stream(own), rows),
        "two risks": lambda: run(sp.Stream(two), rows),
        "self-adjusting": lambda: adjusting(rows, fast=True),
        "self-adjusting, season": lambda: adjusting(rows, period=24, fast=True),
        "self-adjusting, plain": lambda: adjusting(rows, fast=False),
        "its season, plain": lambda: adjusting(rows, period=24, fast=False),
        "float inputs, not watched": lambda: run(sp.Stream(replace(one, watch=False)), rows),
        "self-adjusting, not watched": lambda: adjusting(rows, fast=True, watch=False),
        "self-adjusting, plain, not watched": lambda: adjusting(rows, fast=False, watch=False),
    }
    return timed(tasks)[0]


def adjusting(
    rows: list[Row], *, fast: bool, period: int | None = None, watch: bool = True
) -> float:
    """The self-adjusting default, whose rules run as machine code if they may."""
    many, compiled.MANY = compiled.MANY, 0 if fast else sys.maxsize
    try:
        controller = replace(sp.intervals(period=period), watch=watch)
        run(sp.Stream(controller), rows[:2])
        for thread in threading.enumerate():
            if thread.name == "setpoint compiles":
                thread.join()
        return run(sp.Stream(controller), rows)
    finally:
        compiled.MANY = many


def _shortfall(shown: sp.sets.Interval, y: float) -> float:
    """How far y lies above the upper end, at most 1."""
    return min(max(y - shown.upper, 0.0), 1.0)


# What a start costs


_IMPORT = """
import numpy, time
began = time.perf_counter()
import setpoint
print(time.perf_counter() - began)
"""

_FIRST_STREAM = """
import time
import setpoint as sp
risk = sp.Risk(sp.losses.Miscoverage(), 0.1, step=sp.steps.Fixed(0.05), bounds=(-20.0, 20.0))
controller = sp.Controller(sp.sets.Widen(), risk, sp.stretches.ErrorAdaptive(0.1, 0.2, -1.0, 1.0))
began = time.perf_counter()
sp.Stream(controller)
print(time.perf_counter() - began)
"""


def fresh(program: str) -> list[float]:
    """What a program prints, in milliseconds, each time in a new interpreter."""
    with TemporaryDirectory() as elsewhere:
        path = Path(elsewhere) / "program.py"
        path.write_text(program)
        command = [sys.executable, str(path)]
        printed = [
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
            for _ in range(STARTS + 1)
        ]
    return [1e3 * float(text) for text in printed[1:]]  # the first may compile


def streams() -> tuple[list[float], list[float]]:
    """Milliseconds to make a Stream: the first of its kind, and one that is like another."""
    first: list[float] = []
    again: list[float] = []
    for number in range(STARTS):
        held = controller(ERROR_ADAPTIVE, gamma=GAMMA * (2.0 + number))
        for found in (first, again):
            began = process_time()
            sp.Stream(held)
            found.append(1e3 * (process_time() - began))
    return first, again


# The report


def main() -> None:
    """Measures, prints the tables, and one JSON object at the end."""
    rows = stream_of_rows()
    times = steps(rows)
    others = variants(rows)
    start = {
        "import setpoint, numpy already imported": fresh(_IMPORT),
        "the first Stream of a process": fresh(_FIRST_STREAM),
    }
    start["a Stream, first of its kind"], start["a Stream like an earlier one"] = streams()

    print(f"setpoint {sp.__version__}, Python {platform.python_version()}, numpy {np.__version__}")
    print()
    print(
        f"One step, predict + update, float inputs, Widen + Miscoverage + Fixed: µs of CPU time,\n"
        f"min (median) of {REPEATS} interleaved repeats of {STEPS:,} steps. Beside it the same\n"
        f"recursion by hand, with the safeguard: a bare loop, and a class with predict and\n"
        f"update. All three end at the same θ. Ratios are of the minima.\n"
    )
    print(f"{'stretching':<16}{'setpoint':>15}{'loop':>15}{'class':>15}{'÷ loop':>9}{'÷ class':>9}")
    for name in RIVALS:
        mine, loop, by_hand = (times[name, form] for form in ("setpoint", "loop", "class"))
        cells = "".join(f"{_cell(found):>15}" for found in (mine, loop, by_hand))
        ratios = f"{min(mine) / min(loop):>9.2f}{min(mine) / min(by_hand):>9.2f}"
        print(f"{name:<16}{cells}{ratios}")
    print()
    print("Other inputs and risks, error adaptive stretching, and the self-adjusting default:")
    print("µs, and times the first row.\n")
    base = min(others["float inputs"])
    for name, found in others.items():
        print(f"{name:<36}{_cell(found):>15}{min(found) / base:>9.2f}")
    print("\nThe watch of the price, in µs and as a share of the step that has it:\n")
    for name in ("float inputs", "self-adjusting", "self-adjusting, plain"):
        step, without = min(others[name]), min(others[f"{name}, not watched"])
        print(f"{name:<36}{step - without:>15.2f}{100 * (step - without) / step:>8.0f}%")
    print()
    for name, target in DEFAULT_TARGETS.items():
        step = min(others[name])
        verdict = "met" if step <= target else "missed"
        print(f"{name}: {step:.2f} µs, target ≤ {target:g} µs: {verdict}")
    print()
    print(
        f"To start: ms, min (median) of {STARTS}; the first two in new interpreters, wall time.\n"
    )
    for name, found in start.items():
        print(f"{name:<44}{_cell(found):>17}")
    print()
    print(json.dumps(_summary(times, others, start)))


def _cell(found: list[float]) -> str:
    return f"{min(found):.3f} ({median(found):.3f})"


def _summary(
    times: dict[Any, list[float]], others: dict[str, list[float]], start: dict[str, list[float]]
) -> dict[str, Any]:
    """Everything printed, by name: minima, medians and ratios of minima."""

    def both(found: list[float]) -> dict[str, float]:
        return {"min": round(min(found), 5), "median": round(median(found), 5)}

    return {
        "benchmark": "live",
        "unit": "microseconds of CPU time a step",
        "steps": STEPS,
        "repeats": REPEATS,
        "stretching": {
            name: {
                **{form: both(times[name, form]) for form in ("setpoint", "loop", "class")},
                "times_loop": round(min(times[name, "setpoint"]) / min(times[name, "loop"]), 3),
                "times_class": round(min(times[name, "setpoint"]) / min(times[name, "class"]), 3),
            }
            for name in RIVALS
        },
        "variants": {name: both(found) for name, found in others.items()},
        "start_ms": {name: both(found) for name, found in start.items()},
        "python": platform.python_version(),
        "numpy": np.__version__,
        "setpoint": sp.__version__,
    }
