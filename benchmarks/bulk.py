"""Bulk work: replay, fleets, sweeps and rolling windows, each beside a rival in the same run.

What is judged is the public call with all that it costs. Replay is compared with the same loop in
C, compiled here by `cc -O3`, which also makes and writes the same arrays; a fleet with a plain
pass of one thread over the very same arrays, three read and two written; a sweep with the budget
of a tenth of a second; the rolling window with `numpy.quantile` on the same numbers. CPU time of
this process, the smallest of several runs, taken by turns with the rival's. A verdict stands under
each table, and the targets are those of the issue that asked for this.
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
from setpoint._window import Window
from setpoint.bulk.compile import compiled, loops
from setpoint.bulk.layout import layout_of, params_of

STEPS = 1_000_000
STREAMS, ROWS = 100_000, 200
CONFIGURATIONS, VALIDATION = 1_000, 3_000

LEVEL, GAMMA, LOW, HIGH = 0.1, 0.05, -20.0, 20.0
SCORE, LOSS, CLIP = 0.1, 0.2, 1.0

STRETCHES: dict[str, Any] = {
    "identity": sp.stretches.Identity(),
    "exponential": sp.stretches.Exponential(),
    "error adaptive": sp.stretches.ErrorAdaptive(SCORE, LOSS, -CLIP, CLIP, reading="paper"),
}

C_LOOP = r"""
#include <math.h>
#include <stdint.h>

/* stretch: 0 identity, 1 exponential, 2 error adaptive */
double replay(int stretch, int64_t n, double level, double gamma, double bottom, double top,
              double beta_score, double beta_loss, double clip, const double *lower,
              const double *upper, const double *y, double *out_lower, double *out_upper,
              double *out_lam, double *out_theta, double *out_loss, uint8_t *out_covered) {
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
        out_covered[t] = !missed;
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
    return by_turns(run, repeats=repeats)[0]


def by_turns(*runs: Callable[[], Any], repeats: int = 9) -> list[float]:
    """The same for several rivals, which take turns so that a busy machine is so for all."""
    best = [float("inf")] * len(runs)
    for turn in range(repeats + 1):
        for place, run in enumerate(runs):
            began = process_time()
            run()
            if turn:
                best[place] = min(best[place], process_time() - began)
    return best


VERDICTS: list[dict[str, Any]] = []


def judge(
    name: str, value: float, target: float, unit: str = "", *, at_least: bool = False
) -> None:
    """Prints whether a number meets its target, and keeps that for the last line."""
    met = value >= target if at_least else value <= target
    sign = "≥" if at_least else "≤"
    print(
        f"  {name}: {value:.3g}{unit}, target {sign} {target:g}{unit}: {'met' if met else 'missed'}"
    )
    VERDICTS.append({"name": name, "value": value, "target": f"{sign} {target:g}", "met": met})


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
    tape = sp.Tape.from_arrays({"lower": lower, "upper": upper}, y)
    found: dict[str, Any] = {}
    print(f"\nreplay of {STEPS:,} steps, ns a step; judged: sp.replay, which makes its arrays,")
    print("beside a C loop that does (loop: the loops alone, into arrays that are there)")
    heads = ("sp.replay", "C", "ratio", "loop", "C loop", "ratio")
    print(" " * 16 + "".join(f"{head:>11}" for head in heads))
    with TemporaryDirectory() as folder:
        library = c_library(folder)
        if library is None:
            print("no C compiler found: the comparison with C is left out")
        for number, (name, stretch) in enumerate(STRETCHES.items()):
            controller = controller_of(stretch)
            layout = layout_of(controller)
            loop = loops(layout, STEPS).along
            params, rows = params_of(controller)[0], np.stack([lower, upper], axis=1)
            offsets, start = np.array([0, STEPS]), np.array([layout.pack(controller.init())])

            def arrays() -> list[np.ndarray]:
                return [*(np.empty(STEPS) for _ in range(5)), np.ones(STEPS, dtype=bool)]

            mine, theirs = arrays(), arrays()

            def alone(loop: Any = loop, params: Any = params, start: Any = start) -> None:
                lows, highs, lam, theta, loss, covered = mine  # noqa: B023
                covered.fill(True)
                loop(
                    params, start.copy(), offsets, rows, tape.y, False, lows, highs, lam, covered,  # noqa: B023
                    theta[None], loss[None],
                )  # fmt: skip

            def in_c(out: list[np.ndarray], number: int = number) -> None:
                pointers = [ctypes.c_void_p(each.ctypes.data) for each in (lower, upper, y, *out)]
                numbers = map(ctypes.c_double, (LEVEL, GAMMA, LOW, HIGH, SCORE, LOSS, CLIP))
                library.replay(  # type: ignore[union-attr]
                    ctypes.c_int(number), ctypes.c_int64(STEPS), *numbers, *pointers
                )

            runs: list[Callable[[], Any]] = [lambda c=controller: sp.replay(c, tape), alone]
            if library is not None:
                runs += [lambda: in_c(arrays()), lambda: in_c(theirs)]  # noqa: B023
            times = [each / STEPS * 1e9 for each in by_turns(*runs)]
            row = {"setpoint_ns": times[0], "loop_ns": times[1]}
            shown = f"{times[0]:11.2f}{'':22}{times[1]:11.2f}"
            if library is not None:
                agree = [
                    np.allclose(a, b, rtol=1e-9, atol=1e-9, equal_nan=True)
                    for a, b in zip(mine, theirs, strict=True)
                ]
                if not all(agree):
                    raise SystemExit(f"the C loop and setpoint disagree for {name}")
                row |= {"c_ns": times[2], "c_loop_ns": times[3]}
                row |= {"ratio": times[0] / times[2], "loop_ratio": times[1] / times[3]}
                shown = f"{times[0]:11.2f}{times[2]:11.2f}{row['ratio']:11.2f}"
                shown += f"{times[1]:11.2f}{times[3]:11.2f}{row['loop_ratio']:11.2f}"
            print(f"{name:16}{shown}")
            found[name.replace(" ", "_")] = row
    for name, row in found.items():
        if "ratio" in row:
            judge(f"sp.replay / C, {name.replace('_', ' ')}", row["ratio"], 1.3)
    return found


Ends = tuple[np.ndarray, np.ndarray]


def one_pass(rows: tuple[np.ndarray, ...], _: Ends) -> tuple[int, Callable[[], Any]]:
    """The bytes and the run of a fleet's whole tape in one call."""
    fleet = sp.Fleet(controller_of(sp.stretches.Identity()), STREAMS)
    lower, upper, y = rows
    size = lower.nbytes * 5  # lower, upper and y are read, lower and upper written
    return size, lambda: fleet.run((lower, upper), y)


def pairs(rows: tuple[np.ndarray, ...], out: Ends) -> tuple[int, Callable[[], Any]]:
    """The bytes and the run of a fleet that predicts and updates row after row."""
    fleet = sp.Fleet(controller_of(sp.stretches.Identity()), STREAMS)
    lower, upper, y = rows

    def run() -> None:
        for t in range(ROWS):
            out[0][t], out[1][t] = fleet.predict((lower[t], upper[t]))
            fleet.update(y[t])

    return rows[0].nbytes * 10, run  # beside these five, the ends and λ wait, losses are written


def copies(rows: tuple[np.ndarray, ...], out: Ends) -> Callable[[], Any]:
    """A plain pass over the arrays of a fleet, row after row as it goes: three in, two out."""
    lower, upper, y = rows

    def run() -> None:
        for t in range(ROWS):
            np.copyto(out[0][t], lower[t])
            np.add(upper[t], y[t], out=out[1][t])

    return run


def fleets() -> dict[str, Any]:
    """A fleet as one fused tape and as pairs of calls, beside a copy of the same arrays."""
    found: dict[str, Any] = {}
    print(f"\nfleet of {STREAMS:,} streams x {ROWS} steps, identity, intervals written")
    print(f"{'':24}{'ns a step':>10}{'GB/s':>8}{'copy GB/s':>11}{'share':>8}")
    cases = (("run, float64", np.float64, True), ("run, float32", np.float32, True),
             ("predict + update", np.float64, False))  # fmt: skip
    for name, dtype, fused in cases:
        rows = data((ROWS, STREAMS), dtype)
        out = np.zeros_like(rows[0]), np.zeros_like(rows[0])
        size, run = (one_pass if fused else pairs)(rows, out)
        seconds, copied = by_turns(run, copies(rows, out), repeats=25 if fused else 9)
        rate, copy_rate = size / seconds / 1e9, rows[0].nbytes * 5 / copied / 1e9
        step = seconds / ROWS / STREAMS * 1e9
        print(f"{name:24}{step:10.2f}{rate:8.1f}{copy_rate:11.1f}{rate / copy_rate:8.0%}")
        found[name.replace(",", "").replace(" + ", "_").replace(" ", "_")] = {
            "ns": step, "gb_per_s": rate, "share_of_copy": rate / copy_rate,
        }  # fmt: skip
    return found


def self_adjusting() -> dict[str, Any]:
    """The self-adjusting default, without and with a season, beside error adaptive stretching."""
    lower, upper, y = data(STEPS)
    tape = sp.Tape.from_arrays({"lower": lower, "upper": upper}, y)
    rows = data((5, STREAMS))
    controllers = {
        "error adaptive": controller_of(STRETCHES["error adaptive"]),
        "self-adjusting": sp.intervals(),
        "self-adjusting, season of 24": sp.intervals(period=24),
    }
    found: dict[str, Any] = {}
    print(f"\nself-adjusting: ns a step, replayed {STEPS:,}, and a fleet of {STREAMS:,}")
    print(f"{'':32}{'replay':>8}{'ratio':>7}{'fleet':>8}{'ratio':>7}")
    for name, controller in controllers.items():
        fleet = sp.Fleet(controller, STREAMS)
        replayed = quickest(lambda held=controller: sp.replay(held, tape), 3)  # type: ignore[misc]
        run = quickest(lambda held=fleet: held.run(rows[:2], rows[2]), 3)  # type: ignore[misc]
        times = replayed / STEPS * 1e9, run / rows[2].size * 1e9
        found[name] = dict(zip(("replay_ns", "fleet_ns"), times, strict=True))
        first = found["error adaptive"]
        ratios = times[0] / first["replay_ns"], times[1] / first["fleet_ns"]
        print(f"{name:32}{times[0]:8.0f}{ratios[0]:7.1f}{times[1]:8.0f}{ratios[1]:7.1f}")
    judge("the default replayed", found["self-adjusting"]["replay_ns"], 200.0, " ns")
    judge("the default in a fleet", found["self-adjusting"]["fleet_ns"], 250.0, " ns")
    return found


def sweeps() -> dict[str, Any]:
    """A thousand configurations on a validation tape, and one of them in plain Python."""
    lower, upper, y = data(VALIDATION)
    tape = sp.Tape.from_arrays({"lower": lower, "upper": upper}, y)
    gammas = np.geomspace(0.01, 1.0, CONFIGURATIONS)
    tried = [controller_of(STRETCHES["error adaptive"], float(gamma)) for gamma in gammas]
    seconds = quickest(lambda: sp.sweep(tried, tape))
    os.environ["SETPOINT_PLAIN"] = "1"
    plain = quickest(lambda: sp.sweep(tried[:1], tape), 3)
    del os.environ["SETPOINT_PLAIN"]
    print(f"\n{CONFIGURATIONS:,} error adaptive configurations x {VALIDATION:,} steps, CPU seconds")
    print(f"  sweep {seconds:.4f}")
    print(f"  one configuration in plain Python {plain:.4f}")
    space = {"gamma": sp.search.GAMMAS, "score": sp.search.BETA_SCORE, "loss": sp.search.BETA_LOSS}
    tuned = quickest(lambda: sp.tune(tried[0], tape, space, trials=CONFIGURATIONS), 3)
    print(f"  tune with a budget of {CONFIGURATIONS:,}: {tuned:.4f}")
    judge("sp.sweep", seconds, 0.1, " s")
    return {"sweep_s": seconds, "one_plain_s": plain, "tune_s": tuned}


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
                window.smallest(int(0.9 * len(window)))  # noqa: B023

        ours = quickest(roll, 5) / len(numbers) * 1e6
        held = np.array(numbers[:size])
        rival = quickest(lambda: [np.quantile(held, 0.9) for _ in range(500)], 5) / 500 * 1e6  # noqa: B023
        print(f"n = {size:<6,}{ours:10.3f}{rival:10.2f}{rival / ours:8.1f}")
        found[str(size)] = {"us": ours, "numpy_us": rival, "ratio": rival / ours}
    for size, least in (("300", 50.0), ("10000", 40.0)):
        name = f"rolling window, n = {size}, times faster than numpy.quantile"
        judge(name, found[size]["ratio"], least, at_least=True)
    return found


def peak(run: Callable[[], Any]) -> int:
    """The most memory a run holds at once beside what was there, in bytes."""
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def memory() -> dict[str, Any]:
    """What replay and sweep need beside the tape."""
    lower, upper, y = data(STEPS)
    tape = sp.Tape.from_arrays({"lower": lower, "upper": upper}, y)
    controller = controller_of(STRETCHES["error adaptive"])
    held = lower.nbytes + upper.nbytes + y.nbytes
    sp.replay(controller, tape[:10])
    replayed = peak(lambda: sp.replay(controller, tape)) / held
    tried = [controller_of(STRETCHES["error adaptive"], 0.01 * (k + 1)) for k in range(100)]
    sp.sweep(tried, tape[:10])
    short, long = (peak(lambda n=n: sp.sweep(tried, tape[:n])) for n in (10_000, STEPS))
    print(f"\nmemory: replay needs {replayed:.2f} x its tape; a sweep of 100 configurations")
    print(f"  {short / 1e6:.2f} MB on 10,000 steps, {long / 1e6:.2f} MB on {STEPS:,} steps")
    judge("memory of sp.replay", replayed, 3.0, " x its tape")
    judge("memory of sp.sweep, 100 configurations", long / held, 1.0, " x its tape")
    return {"replay_x_tape": replayed, "sweep_mb_short": short / 1e6, "sweep_mb_long": long / 1e6}


LONG = 10_000_000


def inputs() -> dict[str, Any]:
    """Tapes that are empty, odd or very long: that they run, for how long, and in how much."""
    controller = controller_of(STRETCHES["error adaptive"])
    random = np.random.default_rng(3)
    some, unequal = random.standard_normal(1_000), np.repeat(np.arange(10), [9_991] + [1] * 9)

    def tape(y: np.ndarray, id: np.ndarray | None = None) -> sp.Tape:
        columns = {"lower": np.full(len(y), -1.0), "upper": np.full(len(y), 1.0)}
        return sp.Tape.from_arrays(columns, y, series=id)

    tapes = {
        "no rows": tape(np.empty(0)),
        "one row": tape(np.zeros(1)),
        "all labels missing": tape(np.full(1_000, np.nan)),
        "constant predictions": tape(some),
        "one stream of 9,991 rows, nine of one": tape(random.standard_normal(10_000), unequal),
        f"{LONG:,} rows": sp.Tape.from_arrays(
            dict(zip(("lower", "upper"), (found := data(LONG))[:2], strict=True)), found[2]
        ),
    }
    told: dict[str, Any] = {}
    print("\ninputs tried, error adaptive: one sp.replay, CPU seconds and memory")
    for name, each in tapes.items():
        began = process_time()
        trace = sp.replay(controller, each)
        seconds = process_time() - began
        judged = sum(state.risks[0].judged for state in trace.states.values())
        del trace
        most = peak(lambda t=each: sp.replay(controller, t))
        print(f"  {name:40}{judged:>11,} judged{seconds:9.4f} s{most / 1e6:10.2f} MB")
        told[name] = {"judged": judged, "seconds": seconds, "mb": most / 1e6}
    return told


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
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "SETPOINT_PLAIN": "0"}
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
    if not compiled():
        print("numba is not installed: everything below runs in plain Python")
    began = perf_counter()
    found = {
        "replay": against_c(),
        "fleet": fleets(),
        "self_adjusting": self_adjusting(),
        "sweep": sweeps(),
        "window": windows(),
        "memory": memory(),
        "inputs": inputs(),
        "first_call": first_call(),
    }
    missed = [each["name"] for each in VERDICTS if not each["met"]]
    print(f"\n{len(VERDICTS) - len(missed)} of {len(VERDICTS)} targets met", end="")
    print(f"; missed: {', '.join(missed)}" if missed else "")
    print(f"{perf_counter() - began:.0f} s in all")
    print(json.dumps({"benchmark": "bulk", "numpy": np.__version__, "targets": VERDICTS, **found}))


if __name__ == "__main__":
    main()
