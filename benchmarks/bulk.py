"""Bulk work: replay, fleets, sweeps and rolling windows, each beside a rival in the same run.

Replay is compared with the same loop in C, compiled here by `cc -O3`, writing the same arrays;
a fleet with a one-thread copy of as many bytes as it must read and write; a sweep with the budget
of a tenth of a second; the rolling window with `numpy.quantile` on the same numbers. CPU time of
this process, the smallest of several runs.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np

import setpoint as sp
from setpoint import _kernels
from setpoint._layout import layout_of
from setpoint._window import Window

STEPS = 1_000_000
STREAMS, ROWS = 100_000, 200
CONFIGURATIONS, VALIDATION = 1_000, 3_000

LEVEL, GAMMA, LOW, HIGH = 0.1, 0.05, -20.0, 20.0
SCORE, LOSS, CLIP = 0.1, 0.2, 1.0

STRETCHES: dict[str, Any] = {
    "identity": sp.stretches.Identity(),
    "exponential": sp.stretches.Exponential(),
    "error adaptive": sp.stretches.ErrorAdaptive(SCORE, LOSS, -CLIP, CLIP),
}

C_LOOP = r"""
#include <math.h>
#include <stdint.h>

/* stretch: 0 identity, 1 exponential, 2 error adaptive */
double replay(int stretch, int64_t n, double level, double gamma, double bottom, double top,
              double beta_score, double beta_loss, double clip, const double *lower,
              const double *upper, const double *y, double *out_lower, double *out_upper,
              double *out_lam, double *out_theta, double *out_loss) {
    double theta = 0.0, memory = 0.0;
    for (int64_t t = 0; t < n; t++) {
        double lam = theta;
        if (stretch == 1)
            lam = theta >= 0.0 ? exp(theta < 709.0 ? theta : 709.0) - 1.0
                               : 1.0 - exp(-theta < 709.0 ? -theta : 709.0);
        if (stretch == 2)
            lam = theta + memory;
        int full = theta > top, empty = theta < bottom;
        lam = full ? INFINITY : empty ? -INFINITY : lam;
        double lo = lower[t] - lam, hi = upper[t] + lam;
        if (full) { lo = -INFINITY; hi = INFINITY; }
        else if (empty || lo > hi) { lo = INFINITY; hi = -INFINITY; }
        int missed = !(lo <= y[t] && y[t] <= hi);
        double loss = missed ? 1.0 : 0.0, excess = loss - level;
        out_lower[t] = lo; out_upper[t] = hi; out_lam[t] = lam; out_theta[t] = theta;
        out_loss[t] = y[t] == y[t] ? loss : NAN;
        if (y[t] == y[t]) {
            if (stretch == 2 && !full && !empty) {
                double below = lower[t] - y[t], above = y[t] - upper[t];
                double score = below > above ? below : above;
                double power = beta_loss * fabs(excess);
                memory += beta_score * score * exp(power < 709.0 ? power : 709.0);
                memory = memory < -clip ? -clip : memory > clip ? clip : memory;
            }
            theta += gamma * excess;
        }
    }
    return theta;
}
"""


def controller_of(stretch: Any, gamma: float = GAMMA) -> sp.Controller:
    """One risk at 0.1, as in every comparison here."""
    risk = sp.Risk(sp.losses.Miscoverage(), LEVEL, sp.steps.Fixed(gamma), bounds=(LOW, HIGH))
    return sp.Controller(sp.sets.Widen(), risk, stretch)


def quickest(run: Callable[[], Any], repeats: int = 7) -> float:
    """CPU seconds of the quickest of several runs, after one that does not count."""
    run()
    times = []
    for _ in range(repeats):
        began = process_time()
        run()
        times.append(process_time() - began)
    return min(times)


def data(shape: int | tuple[int, int], dtype: Any = np.float64) -> tuple[np.ndarray, ...]:
    """Quantiles of a model that does not know that the spread of y changes, and y."""
    random = np.random.default_rng(0)
    length = shape if isinstance(shape, int) else shape[0]
    spread = np.where(np.arange(length) // 500 % 2, 2.0, 1.0)
    centre = np.sin(np.arange(length) / 50.0)
    if not isinstance(shape, int):
        spread, centre = spread[:, None], centre[:, None]
    y = centre + spread * random.standard_normal(shape)
    lower, upper = y * 0.0 + centre - 1.6, y * 0.0 + centre + 1.6
    return tuple(np.ascontiguousarray(each, dtype) for each in (lower, upper, y))


def c_library(folder: str) -> ctypes.CDLL | None:
    """The loop in C, or None where there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    source, library = Path(folder) / "loop.c", Path(folder) / "loop.so"
    source.write_text(C_LOOP)
    flags = ["-O3", "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
    subprocess.run([compiler, *flags], check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.replay.restype = ctypes.c_double
    return loaded


def against_c() -> dict[str, Any]:
    """Replay of a long tape beside the same loop in C."""
    lower, upper, y = data(STEPS)
    out = [np.empty(STEPS) for _ in range(5)]
    found: dict[str, Any] = {}
    print(f"\nreplay of {STEPS:,} steps, ns a step (loop: the compiled loop alone)")
    print(f"{'':16}{'setpoint':>10}{'loop':>10}{'C -O3':>10}{'loop / C':>10}")
    with TemporaryDirectory() as folder:
        library = c_library(folder)
        if library is None:
            print("no C compiler found: the comparison with C is left out")
        for number, (name, stretch) in enumerate(STRETCHES.items()):
            controller = controller_of(stretch)
            tape = sp.Tape.from_arrays({"lower": lower, "upper": upper}, y)
            whole = quickest(lambda c=controller, t=tape: sp.replay(c, t)) / STEPS * 1e9
            layout = layout_of(controller)
            loop = _kernels.kernel(layout, "along")
            params = np.array(layout.params_of(controller))
            offsets, start = np.array([0, STEPS]), np.array(layout.pack(controller.init()))[:, None]
            held = np.ones(STEPS, dtype=bool)
            columns = (*out[:3], held, out[3][None], out[4][None])
            alone = quickest(
                lambda: loop(params, start.copy(), offsets, lower, upper, y, *columns)  # noqa: B023
            )
            alone = alone / STEPS * 1e9
            row = {"setpoint_ns": whole, "loop_ns": alone}
            beside = ""
            if library is not None:
                mine = [each.copy() for each in out]
                pointers = [ctypes.c_void_p(each.ctypes.data) for each in (lower, upper, y, *out)]
                numbers = map(ctypes.c_double, (LEVEL, GAMMA, LOW, HIGH, SCORE, LOSS, CLIP))
                arguments = [ctypes.c_int(number), ctypes.c_int64(STEPS), *numbers, *pointers]
                rival = quickest(lambda: library.replay(*arguments)) / STEPS * 1e9  # noqa: B023
                agree = all(
                    np.allclose(a, b, rtol=1e-9, atol=1e-9) for a, b in zip(mine, out, strict=True)
                )
                if not agree:
                    raise SystemExit(f"the C loop and setpoint disagree for {name}")
                row |= {"c_ns": rival, "ratio": alone / rival}
                beside = f"{rival:10.2f}{alone / rival:10.2f}"
            print(f"{name:16}{whole:10.2f}{alone:10.2f}{beside}")
            found[name.replace(" ", "_")] = row
    return found


def copy_seconds(size: int) -> float:
    """How long one thread takes to move `size` bytes, half read and half written."""
    source = np.random.default_rng(1).random(size // 16)
    target = np.empty_like(source)
    return quickest(lambda: np.copyto(target, source))


def one_pass(rows: tuple[np.ndarray, ...]) -> tuple[int, Callable[[], Any]]:
    """The bytes and the run of a fleet's whole tape in one compiled pass."""
    fleet = sp.Fleet(controller_of(sp.stretches.Identity()), STREAMS)
    narrow = rows[0].dtype == np.float32
    loop = _kernels.kernel(fleet._layout, "fleet", narrow=narrow)
    ends = np.empty_like(rows[0]), np.empty_like(rows[0])
    size = rows[0].nbytes * 5  # lower, upper and y are read, lower and upper written
    return size, lambda: loop(fleet._params, fleet._vectors, *rows, *ends)


def pairs(rows: tuple[np.ndarray, ...]) -> tuple[int, Callable[[], Any]]:
    """The bytes and the run of a fleet that predicts and updates row after row."""
    fleet = sp.Fleet(controller_of(sp.stretches.Identity()), STREAMS)
    lower, upper, y = rows

    def run() -> None:
        for t in range(ROWS):
            fleet.predict((lower[t], upper[t]))
            fleet.update(y[t])

    return rows[0].nbytes * 10, run  # beside these five, the ends and λ wait, losses are written


def fleets() -> dict[str, Any]:
    """A fleet as one fused tape and as pairs of calls, beside a copy of its bytes."""
    found: dict[str, Any] = {}
    print(f"\nfleet of {STREAMS:,} streams x {ROWS} steps, identity, intervals written")
    print(f"{'':24}{'ns a step':>10}{'GB/s':>8}{'copy GB/s':>11}{'share':>8}")
    cases = (("fused, float64", np.float64, True), ("fused, float32", np.float32, True),
             ("predict + update", np.float64, False))  # fmt: skip
    for name, dtype, fused in cases:
        rows = data((ROWS, STREAMS), dtype)
        size, run = (one_pass if fused else pairs)(rows)
        seconds, copied = quickest(run, 5), copy_seconds(size)
        step = seconds / ROWS / STREAMS * 1e9
        print(
            f"{name:24}{step:10.2f}{size / seconds / 1e9:8.1f}{size / copied / 1e9:11.1f}"
            f"{copied / seconds:8.0%}"
        )
        found[name.replace(",", "").replace(" + ", "_").replace(" ", "_")] = {
            "ns": step, "gb_per_s": size / seconds / 1e9, "share_of_copy": copied / seconds,
        }  # fmt: skip
    return found


def sweeps() -> dict[str, Any]:
    """A thousand configurations on a validation tape, and one of them in plain Python."""
    lower, upper, y = data(VALIDATION)
    tape = sp.Tape.from_arrays({"lower": lower, "upper": upper}, y)
    gammas = np.geomspace(0.01, 1.0, CONFIGURATIONS)
    tried = [controller_of(STRETCHES["error adaptive"], float(gamma)) for gamma in gammas]
    seconds = quickest(lambda: sp.sweep(tried, tape))
    layout = layout_of(tried[0])
    params = np.array([layout.params_of(each) for each in tried]).T.copy()
    start = np.array([layout.pack(each.init()) for each in tried]).T.copy()
    from setpoint._loops import TALLIES

    loop = _kernels.kernel(layout, "sweep")
    tails = np.full(CONFIGURATIONS, 0.05)
    alone = quickest(
        lambda: loop(
            params, start.copy(), lower, upper, y, np.zeros((len(TALLIES), CONFIGURATIONS)), tails
        )
    )
    os.environ["SETPOINT_PLAIN"] = "1"
    plain = quickest(lambda: sp.sweep(tried[:1], tape), 3)
    del os.environ["SETPOINT_PLAIN"]
    print(f"\n{CONFIGURATIONS:,} error adaptive configurations x {VALIDATION:,} steps, CPU seconds")
    print(f"  sweep {seconds:.4f}, of which the compiled loop {alone:.4f}")
    print(f"  one configuration in plain Python {plain:.4f}")
    space = {"gamma": sp.search.GAMMAS, "score": sp.search.BETA_SCORE, "loss": sp.search.BETA_LOSS}
    tuned = quickest(lambda: sp.tune(tried[0], tape, space, budget=CONFIGURATIONS), 3)
    print(f"  tune with a budget of {CONFIGURATIONS:,}: {tuned:.4f}")
    return {"sweep_s": seconds, "loop_s": alone, "one_plain_s": plain, "tune_s": tuned}


def windows() -> dict[str, Any]:
    """Add a number and take a quantile, beside numpy on an array of the same numbers."""
    found: dict[str, Any] = {}
    print("\nrolling window: add and quantile, µs a step")
    print(f"{'':10}{'Window':>10}{'numpy':>10}{'ratio':>8}")
    for size in (300, 10_000):
        numbers = np.random.default_rng(2).standard_normal(30_000).tolist()
        window = Window(size, numbers[:size])

        def roll() -> None:
            for number in numbers:  # noqa: B023
                window.add(number)  # noqa: B023
                window.quantile(0.9)  # noqa: B023

        ours = quickest(roll, 5) / len(numbers) * 1e6
        held = np.array(numbers[:size])
        rival = quickest(lambda: [np.quantile(held, 0.9) for _ in range(500)], 5) / 500 * 1e6  # noqa: B023
        print(f"n = {size:<6,}{ours:10.3f}{rival:10.2f}{rival / ours:8.1f}")
        found[str(size)] = {"us": ours, "numpy_us": rival, "ratio": rival / ours}
    return found


def memory() -> dict[str, Any]:
    """What replay and sweep need beside the tape."""
    lower, upper, y = data(STEPS)
    tape = sp.Tape.from_arrays({"lower": lower, "upper": upper}, y)
    controller = controller_of(STRETCHES["error adaptive"])
    held = lower.nbytes + upper.nbytes + y.nbytes

    def peak(run: Callable[[], Any]) -> int:
        run()
        tracemalloc.start()
        run()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    replayed = peak(lambda: sp.replay(controller, tape)) / held
    tried = [controller_of(STRETCHES["error adaptive"], 0.01 * (k + 1)) for k in range(100)]
    short, long = (peak(lambda n=n: sp.sweep(tried, tape[:n])) for n in (10_000, STEPS))
    print(f"\nmemory: replay needs {replayed:.2f} x its tape; a sweep of 100 configurations")
    print(f"  {short / 1e6:.2f} MB on 10,000 steps, {long / 1e6:.2f} MB on {STEPS:,} steps")
    return {"replay_x_tape": replayed, "sweep_mb_short": short / 1e6, "sweep_mb_long": long / 1e6}


FIRST_CALL = """
import time, numpy as np, setpoint as sp
risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-20.0, 20.0))
stretch = sp.stretches.ErrorAdaptive(0.1, 0.2, -1.0, 1.0)
controller = sp.Controller(sp.sets.Widen(), risk, stretch)
tape = sp.Tape.from_arrays({"lower": np.zeros(10), "upper": np.ones(10)}, np.zeros(10))
began = time.perf_counter()
sp.replay(controller, tape)
print(time.perf_counter() - began)
"""


def first_call() -> dict[str, Any]:
    """The first replay of a process: numba's import and the machine code, made or read."""
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "SETPOINT_CACHE": folder}
        times = [
            float(
                subprocess.run(
                    [sys.executable, "-c", FIRST_CALL],
                    env=environment, capture_output=True, text=True, check=True,
                ).stdout
            )
            for _ in range(3)
        ]  # fmt: skip
    print("\nfirst replay in a process, wall seconds, with numba's import")
    print(f"  {times[0]:.2f} cold, {min(times[1:]):.2f} with the machine code cached")
    return {"cold_s": times[0], "cached_s": min(times[1:])}


def main() -> None:
    """Prints every table, and everything as one JSON object in the last line."""
    if not _kernels.compiled():
        print("numba is not installed: everything below runs in plain Python")
    began = perf_counter()
    found = {
        "replay": against_c(),
        "fleet": fleets(),
        "sweep": sweeps(),
        "window": windows(),
        "memory": memory(),
        "first_call": first_call(),
    }
    print(f"\n{perf_counter() - began:.0f} s in all")
    print(json.dumps({"benchmark": "bulk", "numpy": np.__version__, **found}))


if __name__ == "__main__":
    main()
