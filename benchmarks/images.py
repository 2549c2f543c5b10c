"""Intervals of a frame and both losses, beside plain numpy and a straightforward torch version.

Every form does the same work on the same frames: both ends of 448 × 448 intervals, the image
miscoverage over the valid pixels that the label has, and the centre failure of the middlemost
50 × 50. The rivals check no input, keep no receipt and can tell nothing afterwards. All forms must
count the same pixels, or the benchmark stops. Then registration, heuristics and the whole loop on
real depth.
"""

import gc
import json
import platform
from collections.abc import Callable
from statistics import median
from time import process_time
from typing import Any

import numpy as np

import setpoint as sp
from setpoint.errors import AbsentFile
from setpoint.losses import CentreFailure, ImageMiscoverage
from setpoint.sets import PixelScale

SIDE = 448
FRAMES = 20
DIFFERENT = 2
REPEATS = 25
LAM = 1.3
THRESHOLD = 0.6
MIDDLE = slice(199, 249)

Frames = list[tuple[Any, Any, Any, Any, Any]]


def clip() -> Frames:
    """Frames in single precision, padded above, with labels that have holes.

    Two of them in turn: a frame is still in the cache when a model has just made it.
    """
    random = np.random.default_rng(0)
    frames = []
    for _ in range(DIFFERENT):
        shape = (SIDE, SIDE)
        centre = random.uniform(1.0, 80.0, shape).astype(np.float32)
        low, high = (random.uniform(0.1, 2.0, shape).astype(np.float32) for _ in range(2))
        y = (centre + random.normal(0.0, 1.5, shape)).astype(np.float32)
        y[random.random(shape) < 0.1] = np.nan
        valid = np.ones(shape, dtype=bool)
        valid[:100] = False
        frames.append((centre, low, high, valid, y))
    return [frames[number % DIFFERENT] for number in range(FRAMES)]


# The rivals


def plain(frames: Frames) -> list[tuple[float, float]]:
    """As one would write it with numpy."""
    found = []
    for centre, low, high, valid, y in frames:
        lower, upper = centre - LAM * low, centre + LAM * high
        judged = valid & ~np.isnan(y)
        missed = judged & ~((lower <= y) & (y <= upper))
        miscoverage = np.count_nonzero(missed) / np.count_nonzero(judged)
        centred = np.count_nonzero(judged[MIDDLE, MIDDLE])
        covered = centred - np.count_nonzero(missed[MIDDLE, MIDDLE])
        found.append((miscoverage, float(covered / centred <= THRESHOLD)))
    return found


def with_torch(frames: Frames) -> list[tuple[float, float]]:
    """As one would write it with torch, on the host."""
    found = []
    for centre, low, high, valid, y in frames:
        lower, upper = centre - LAM * low, centre + LAM * high
        judged = valid & ~y.isnan()
        missed = judged & ~((lower <= y) & (y <= upper))
        miscoverage = missed.sum().item() / judged.sum().item()
        centred = judged[MIDDLE, MIDDLE].sum().item()
        covered = centred - missed[MIDDLE, MIDDLE].sum().item()
        found.append((miscoverage, float(covered / centred <= THRESHOLD)))
    return found


# setpoint


def parts(frames: Frames, ends: bool = True) -> Callable[[], list[tuple[float, float]]]:
    """The family and the losses by themselves, on frames that are read already."""
    family, image, middle = PixelScale(share=True), ImageMiscoverage(), CentreFailure(THRESHOLD)
    read = [(family.read(each[:4]), family.label(each[4])) for each in frames]

    def run() -> list[tuple[float, float]]:
        found = []
        for prediction, y in read:
            shown = family.at(prediction, LAM)
            if ends:
                _ = shown.ends
            found.append((image(shown, y), middle(shown, y)))
        return found

    return run  # type: ignore[return-value]


def stream(frames: Frames, share: bool) -> Callable[[], list[tuple[float, float]]]:
    """A whole step: predict, look at both ends, update, with everything checked."""
    risks = [
        sp.Risk(ImageMiscoverage(), 0.2, sp.steps.Fixed(1e-9), start=LAM, bounds=(-9.0, 9.0)),
        sp.Risk(CentreFailure(THRESHOLD), 0.1, sp.steps.Fixed(1e-9), start=LAM, bounds=(-9.0, 9.0)),
    ]
    working = sp.Stream(sp.Controller(PixelScale(share=share), risks))

    def run() -> list[tuple[float, float]]:
        found = []
        for centre, low, high, valid, y in frames:
            _ = working.predict((centre, low, high, valid)).ends
            found.append(working.update(y))
        return found

    return run


def timed(tasks: dict[str, Callable[[], Any]]) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """µs of CPU time a frame, all repeats of each task interleaved, and what each returned."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    results = {name: task() for name, task in tasks.items()}  # compiled before it counts
    gc.collect()
    gc.disable()
    try:
        for _ in range(REPEATS):
            for name, task in tasks.items():
                began = process_time()
                task()
                times[name].append((process_time() - began) / FRAMES * 1e6)
    finally:
        gc.enable()
    return times, results


def real() -> None:
    """Registration, heuristics and the whole loop on real depth, where it is at hand."""
    try:
        from benchmarks._registration import report

        report()
    except ModuleNotFoundError as absent:
        print(f"left out, {absent.name} is not installed: registration and the whole loop")
    except AbsentFile as absent:
        print(f"left out: registration and the whole loop; {absent}")


def main() -> None:
    """Measures, prints the tables, and one JSON object at the end."""
    frames = clip()
    tasks: dict[str, Callable[[], Any]] = {
        "plain numpy": lambda: plain(frames),
        "at + both losses": parts(frames),
        "at + both losses, ends not asked for": parts(frames, ends=False),
        "Stream, share=True": stream(frames, share=True),
        "Stream, copies": stream(frames, share=False),
    }
    try:
        import torch
    except ModuleNotFoundError:
        print("torch is not installed: its lines are left out\n")
    else:
        torch.set_num_threads(1)
        tensors: Frames = [tuple(map(torch.from_numpy, each)) for each in frames]  # type: ignore[misc]
        tasks["plain torch"] = lambda: with_torch(tensors)
        tasks["at + both losses, tensors"] = parts(tensors)
    times, results = timed(tasks)
    for name, found in results.items():
        if found != results["plain numpy"]:
            raise SystemExit(f"{name} counts other pixels than plain numpy")
    rival = min(times["plain numpy"])
    print(f"setpoint {sp.__version__}, Python {platform.python_version()}, numpy {np.__version__}")
    print()
    print(
        f"Both ends of {SIDE} × {SIDE} intervals, image miscoverage and centre failure, single\n"
        f"precision: µs of CPU time a frame, min (median) of {REPEATS} interleaved repeats of\n"
        f"{FRAMES} frames. All forms count the same pixels. Ratios are of the minima: how many\n"
        "times as fast as plain numpy. A stream also reads, checks and keeps every frame."
    )
    print()
    print(f"{'form':<40}{'µs a frame':>19}{'× numpy':>10}")
    for name, held in times.items():
        cell = f"{min(held):.0f} ({median(held):.0f})"
        print(f"{name:<40}{cell:>19}{rival / min(held):>10.2f}")
    print()
    real()
    print()
    summary = {
        name: {
            "min": round(min(held), 2),
            "median": round(median(held), 2),
            "times_as_fast_as_numpy": round(rival / min(held), 3),
        }
        for name, held in times.items()
    }
    told = {
        "benchmark": "images",
        "unit": "microseconds of CPU time a frame",
        "side": SIDE,
        "frames": FRAMES,
        "repeats": REPEATS,
        "forms": summary,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "setpoint": sp.__version__,
    }
    print(json.dumps(told, ensure_ascii=False))
