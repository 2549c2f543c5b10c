"""Registration and uncertainty heuristics on real depth: error, time, lengths, frames per second.

`report()` prints what docs/images.md tells; `python -m benchmarks images` calls it. It needs the
clips of `setpoint_paper.datasets.clips` and the extra `images`.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import cv2
import numpy as np

import setpoint as sp
from setpoint.images import (
    DIS,
    PreviousResiduals,
    RegisteredResiduals,
    SpreadModel,
    fit,
)
from setpoint.images.heuristics import Constant, warp
from setpoint.images.model import known_pixels, line, ratio
from setpoint_paper.datasets.clips import Clip, kitchen_clip, kitti_clip
from setpoint_paper.depth.choosing import choose
from setpoint_paper.depth.criticals import FrameTape
from setpoint_paper.depth.registration import TVL1, EachRegistered

PAIRS = 100
"""How many pairs of consecutive frames are registered, spread over a clip."""


@dataclass(frozen=True)
class Cut:
    """Registers what is left of two maps when the ends of their range are cut, as `DIS` cuts them.

    So TV-L1 can see the range that DIS sees, though not its rounding to 8 bits.
    """

    register: Any

    def flow(self, moving: Any, fixed: Any) -> Any:
        pair = np.stack([moving, fixed])
        return self.register.flow(*np.clip(pair, *np.nanpercentile(pair, (1.0, 99.0))))


METHODS: dict[str, Any] = {
    "none": None,
    'DIS("ultrafast")': DIS("ultrafast"),
    'DIS("fast")': DIS("fast"),
    "DIS()": DIS(),
    "TVL1()": TVL1(),
    "TVL1(scale=1)": TVL1(scale=1.0),
    "TVL1(scale=255), cut": Cut(TVL1(scale=255.0)),
}

HEURISTICS: dict[str, tuple[Any, Any]] = {
    "Constant(), rescale=None": (Constant(), None),
    "PreviousResiduals(floor=0), rescale=None": (PreviousResiduals(floor=0.0), None),
    "PreviousResiduals(floor=0.01), rescale=None": (PreviousResiduals(floor=0.01), None),
    "PreviousResiduals(floor=0.05), rescale=None": (PreviousResiduals(floor=0.05), None),
    "PreviousResiduals(floor=0.1), rescale=None": (PreviousResiduals(floor=0.1), None),
    "PreviousResiduals()": (PreviousResiduals(), line),
    "PreviousResiduals(), rescale=ratio": (PreviousResiduals(), ratio),
    "RegisteredResiduals()": (RegisteredResiduals(), line),
    "RegisteredResiduals(register=TVL1())": (RegisteredResiduals(register=TVL1()), line),
    "EachRegistered(register=DIS())": (EachRegistered(register=DIS()), line),
    "EachRegistered(), the paper's": (EachRegistered(), line),
}


class Stored:
    """A clip's stored predictions as a model: the next frame's, whatever x is."""

    def __init__(self, clip: Clip) -> None:
        self.stored, self.place = clip.stored, 0

    def predict(self, x: Any) -> Any:
        return self.stored[self.place]  # type: ignore[index]

    def learn(self, x: Any, y: Any) -> None:
        self.place += 1


def registered(clip: Clip) -> dict[str, tuple[float, float]]:
    """Mean absolute error in metres, over pixels that all methods have, and milliseconds."""
    errors: dict[str, list[float]] = {name: [] for name in METHODS}
    times: dict[str, list[float]] = {name: [] for name in METHODS}
    for place in np.linspace(0, len(clip) - 2, PAIRS).astype(int).tolist():
        moving, fixed = clip.depth[place], clip.depth[place + 1]
        found = {}
        for name, method in METHODS.items():
            began = process_time()
            found[name] = moving if method is None else warp(moving, method.flow(moving, fixed))
            times[name].append(process_time() - began)
        apart = {name: np.abs(moved - fixed) for name, moved in found.items()}
        common = np.all([np.isfinite(each) for each in apart.values()], axis=0)
        for name, each in apart.items():
            errors[name].append(float(each[common].mean()))
    return {name: (float(np.mean(errors[name])), 1e3 * median(times[name])) for name in METHODS}


def controller(gamma: float | None = None) -> sp.Controller:
    """Image miscoverage held at 20 %, as in the paper."""
    step = None if gamma is None else sp.steps.Fixed(gamma)
    risk = sp.Risk(sp.losses.ImageMiscoverage(), 0.2, step, bounds=(-6.0, 6.0))
    return sp.Controller(sp.sets.PixelScale(), risk, sp.stretches.Exponential())


def run(clip: Clip, heuristic: Any, rescale: Any) -> dict[str, float]:
    """Frames reduced to a tape, γ chosen on the validation part, lengths of the test part."""
    model, frames, times = SpreadModel(Stored(clip), heuristic, rescale=rescale), FrameTape(), []
    for rgb, depth, _ in clip:
        began = process_time()
        spread = model.predict(rgb, depth)
        model.learn(rgb, depth)
        times.append(process_time() - began)
        # Lengths are those of the pixels that are judged: nobody knows how far the sky is.
        frames.add(spread._replace(valid=spread.valid & np.isfinite(depth)), depth)
    parts = clip.split()
    chosen = choose(controller(), frames, parts.validation.start, parts.validation.stop)
    trace = sp.replay(frames.controller(chosen.controller), frames.tape())
    test = slice(parts.test.start, parts.test.stop)
    lengths = np.array([shown.length for shown in trace.shown[test]])  # type: ignore[index]
    judged = [frame for frame in frames.tape(5).prediction[0] if len(frame)]
    return {
        "infinite": float(np.mean([np.isinf(frame).mean() for frame in judged])),
        "coverage": 1.0 - float(np.nanmean(trace.losses[0, test])),
        "length": float(lengths[np.isfinite(lengths)].mean()),
        "full": float(np.mean(~np.isfinite(lengths))),
        "gamma": chosen.gammas[0],
        "milliseconds": 1e3 * median(times),
    }


def tuned(clip: Clip) -> tuple[int, int, float]:
    """How many pairs of γ were tried on how many frames, and the seconds it took."""
    model, frames = SpreadModel(Stored(clip), PreviousResiduals()), FrameTape()
    for rgb, depth, _ in clip:
        frames.add(model.predict(rgb, depth), depth)
        model.learn(rgb, depth)
    risks = (
        *controller(0.1).risks,
        sp.Risk(sp.losses.CentreFailure(), 0.1, sp.steps.Fixed(0.1), bounds=(-6.0, 6.0)),
    )
    both = sp.Controller(
        sp.sets.PixelScale(), risks, sp.stretches.Exponential(), sp.combine.Max(anti_windup=2.0)
    )
    began = process_time()
    found = choose(both, frames)
    return len(found.tried.table.columns["length"]), len(frames), process_time() - began


def looped(clip: Clip) -> float:
    """Frames per second of the whole loop: model, heuristic, sets, both losses, both θ."""
    model = SpreadModel(Stored(clip), RegisteredResiduals())
    risks = (
        *controller(0.1).risks,
        sp.Risk(sp.losses.CentreFailure(), 0.1, sp.steps.Fixed(0.1), bounds=(-6.0, 6.0)),
    )
    stream = sp.Stream(sp.Controller(sp.sets.PixelScale(), risks, sp.stretches.Exponential()))
    times = []
    for rgb, depth, _ in clip:
        began = process_time()
        stream.predict(model.predict(rgb, depth))
        stream.update(depth)
        model.learn(rgb, depth)
        times.append(process_time() - began)
    return 1.0 / median(times)


def unwrapped(clip: Clip) -> tuple[float, float, float]:
    """The share of wrapped pixels, and the error in metres of the others after scale and shift,
    with all pixels known to the fit and without the wrapped ones."""
    path = Path(os.environ["SETPOINT_DATA"]) / "depth" / "kitti_odom00_208x64.npz"
    with np.load(path) as file:
        raw = file["pred_struct2depth_raw"].astype(np.float32)
    gone = np.isnan(clip.stored)  # type: ignore[arg-type]
    errors: tuple[list[float], list[float]] = ([], [])
    for place, depth in enumerate(clip.depth):
        known = known_pixels(depth, 200, rng=place)
        for estimate, found in zip((raw[place], clip.stored[place]), errors, strict=True):  # type: ignore[index]
            apart = np.abs(fit(estimate, known)(raw[place]) - depth)
            found.append(float(np.nanmean(apart[~gone[place]])))
    return float(gone.mean()), float(np.mean(errors[0])), float(np.mean(errors[1]))


def report() -> None:
    """Prints the tables; times are those of one thread of the processor."""
    cv2.setNumThreads(1)
    road, kitchen = kitti_clip(), kitchen_clip()
    print(f"Registration of a depth map onto the next one, {PAIRS} pairs of each clip")
    print(f"{'':22}{'KITTI 208 × 64':>22}{'7-Scenes 128 × 96':>22}")
    columns = registered(road), registered(kitchen)
    for name in METHODS:
        cells = "".join(
            f"{error:>12.4f} m {ms:>5.1f} ms" for error, ms in (c[name] for c in columns)
        )
        print(f"{name:22}{cells}")
    print()
    print("Stored predictions of KITTI, 20 % image miscoverage, γ chosen on the validation part:")
    print(
        "share of pixels that no finite λ covers; coverage, mean length, full sets of the test part"
    )
    print(f"{'':54}{'infinite':>9}{'coverage':>9}{'length':>8}{'full':>6}{'γ':>6}{'ms':>6}")
    for name, (heuristic, rescale) in HEURISTICS.items():
        found = run(road, heuristic, rescale)
        print(
            f"{name:54}{found['infinite']:>9.4f}{found['coverage']:>9.4f}{found['length']:>8.2f}"
            f"{found['full']:>6.2f}{found['gamma']:>6g}{found['milliseconds']:>6.1f}",
            flush=True,
        )
    share, before, after = unwrapped(road)
    print()
    print(
        f"Stored predictions of KITTI: {share:.2%} of the pixels wrapped; error of the others "
        f"{before:.3f} m, {after:.3f} m once the fit leaves the wrapped ones out"
    )
    pairs, count, seconds = tuned(road)
    print()
    print(f"{pairs} pairs of γ on {count} frames reduced to critical values: {seconds:.1f} s")
    print(f"The whole loop with registration, two risks, 208 × 64: {looped(road):.0f} frames/s")


if __name__ == "__main__":
    report()
