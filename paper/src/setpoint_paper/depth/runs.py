"""Every controller on a clip's frames: tuned on the validation part, judged on the test part."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, isnan, log1p, nan
from pathlib import Path
from typing import Any

import numpy as np

from setpoint.bulk.replay import Trace, replay
from setpoint.combine import Combine, Max, Mean
from setpoint.controller import Controller, Risk
from setpoint.guarantee import RiskCertificate
from setpoint.images import Chosen, choose
from setpoint.losses import CentreFailure, ImageMiscoverage
from setpoint.presets import label_sets
from setpoint.sets import PixelScale
from setpoint.steps import Fixed
from setpoint.stretches import Exponential
from setpoint_paper.depth.tapes import CENTRE, GEOMETRIES, IMAGE, REGIONS, Frames, Source, risks
from setpoint_paper.rows import parsed, written
from setpoint_paper.statistics import tolerance, two_deviations

__all__ = [
    "ALONE",
    "CENTRE",
    "GEOMETRIES",
    "IMAGE",
    "METHODS",
    "METHOD_NAMES",
    "NAMES",
    "OURS",
    "WINDOW",
    "Row",
    "Series",
    "controller",
    "judge",
    "judge_all",
    "read_csv",
    "write_csv",
]

OURS = "adjusting"
"""The library's self-adjusting default, which the paper does not have."""

METHODS = ("single", "centre", "max", "mean", "max_bare", "mean_bare", OURS)
"""One risk; the coverage of the centre as the one risk; two with Max or Mean under anti-windup; two
with the paper's bare Max and Mean; ours with one risk."""

NAMES = {
    "constant": "constant",
    "magnitude": "residual network",
    "previous": "previous residuals",
    "registered": "registered residuals",
    "registered_paper": "registered, paper's way",
}
"""What the heuristics are called in tables and figures."""

METHOD_NAMES = {
    "single": "one risk",
    "centre": "centre coverage as the risk",
    "max": "two, Max",
    "mean": "two, Mean",
    "max_bare": "two, bare Max (paper)",
    "mean_bare": "two, bare Mean (paper)",
    OURS: "one risk, self-adjusting (ours)",
}
"""What the methods are called."""

ALONE = ("single", "centre", OURS)
"""The methods with one risk."""

_BARE = ("max_bare", "mean_bare")

WINDOW = 50
"""Frames in the windows whose worst is told."""

_DELTA = 1.0
"""Anti-windup: how far a θ may lag behind; under exponential stretching a factor of e in λ."""


@dataclass(frozen=True, slots=True)
class Row:
    """One method on one tape.

    Parameters
    ----------
    clip, model, heuristic, seed, method, geometry
        What ran, and where the centre is: one of `GEOMETRIES`.
    gamma, gamma_centre
        The step sizes that tuning took; the second is NaN with one risk.
    held
        Whether some γ held the risks on the validation part, within the paper's tolerance.
    frames
        How many frames of the test part were judged.
    coverage, length, saturated, centre_coverage, centre_failure, infinite, error
        Of the test part: image coverage; mean length in metres over all judged pixels of the
        frames that are not saturated; the share of frames that are; coverage of the centre; the
        share of frames whose centre is covered to no more than 60 %; the share of pixels that no
        finite λ covers; the mean absolute error of the estimate in metres.
    worst_image, worst_centre
        The worst mean loss of `WINDOW` frames of the test part.
    mean_image, mean_centre
        The mean losses from the first frame that was calibrated.
    bound_image, bound_centre
        How far above its level the certificate lets this mean be; NaN without a bound.
    window_image, window_centre
        How large the certificate lets Σ(l − r) be on any window; NaN without a bound.
    excess_image, excess_centre
        How large Σ(l − r) was on the worst of all windows.
    verdict_image, verdict_centre
        The certificate's verdict; empty where it is not a risk.
    kept
        Whether every window of every risk kept its bound: True where there is none to keep.
    centre_length, other_length, pixel_length
        The mean length of the centre, of all else, and of the one pixel a frame that the authors'
        code takes.
    pixel_delta
        How far the coverage of a pixel over time is from 80 %, the mean over pixels: as in the
        authors' code, over those judged more than 50 times.
    poor_50, poor_70
        The share of frames whose centre is covered to no more than 50 and 70 %.
    tape
        The name of the tape.
    """

    clip: str
    model: str
    heuristic: str
    seed: int
    method: str
    gamma: float
    gamma_centre: float
    held: bool
    frames: int
    coverage: float
    length: float
    saturated: float
    centre_coverage: float
    centre_failure: float
    infinite: float
    error: float
    worst_image: float
    worst_centre: float
    mean_image: float
    mean_centre: float
    bound_image: float
    bound_centre: float
    window_image: float
    window_centre: float
    excess_image: float
    excess_centre: float
    verdict_image: str
    verdict_centre: str
    kept: bool
    geometry: str = "text"
    centre_length: float = nan
    other_length: float = nan
    pixel_length: float = nan
    pixel_delta: float = nan
    poor_50: float = nan
    poor_70: float = nan
    tape: str = ""

    @property
    def place(self) -> str:
        """The clip and what estimated its depth."""
        return f"{self.clip} ({self.model})"

    @property
    def telling(self) -> bool:
        """Whether every bound of the mean losses is below 1."""
        centre = 0.0 if isnan(self.bound_centre) else CENTRE + self.bound_centre
        return max(IMAGE + self.bound_image, centre) < 1.0

    @property
    def excess_of_image(self) -> float:
        """How far the image risk of the frames judged is above its level."""
        return 1.0 - self.coverage - IMAGE

    @property
    def excess_of_centre(self) -> float:
        """The same for the failures of the centre."""
        return self.centre_failure - CENTRE

    @property
    def off(self) -> float:
        """How far image coverage is from its level, either way."""
        return abs(self.excess_of_image)

    @property
    def chance_centre(self) -> float:
        """Two binomial deviations of the failures of so many frames."""
        return two_deviations(CENTRE, self.frames)

    @property
    def tolerance_image(self) -> float:
        """What the image risk may be off by: the theorem's bound for a window of these frames."""
        return _tolerance(self.window_image, IMAGE, self.frames)

    @property
    def tolerance_centre(self) -> float:
        """The same for the failures of the centre."""
        return _tolerance(self.window_centre, CENTRE, self.frames)

    @property
    def limit_image(self) -> float:
        """Beyond this the image risk is off, whatever bounds it."""
        return _limit(self.tolerance_image, IMAGE, self.frames)

    @property
    def limit_centre(self) -> float:
        """The same for the failures of the centre."""
        return _limit(self.tolerance_centre, CENTRE, self.frames)

    @property
    def tolerance(self) -> float:
        """That of one risk, of the image."""
        return self.tolerance_image

    @property
    def limit(self) -> float:
        """That of one risk, of the image."""
        return self.limit_image


def _tolerance(window: float, level: float, frames: int) -> float:
    return tolerance(inf if isnan(window) else window / frames, level, frames)


def _limit(known: float, level: float, frames: int) -> float:
    return max(0.0 if isnan(known) else known, two_deviations(level, frames))


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Image coverage, mean length and λ of each frame from the first calibrated one on."""

    coverage: np.ndarray
    length: np.ndarray
    lam: np.ndarray


def controller(
    method: str, bound: float, starts: tuple[float, ...], geometry: str = "text"
) -> Controller:
    """A controller of pixel intervals, with step sizes yet to be chosen.

    θ starts where the risks would have been held before, all at the largest of these λ. Below
    θ = 0 every interval is empty, so the lower bound is 0; the upper one is that of `bound` in λ.
    The paper's bare combinations have no bounds that they ever reach, so here they have none.
    """
    known = risks(geometry)
    if method == OURS:
        return label_sets(1.0 - IMAGE, sets=PixelScale(), risk=Risk(*known[0]))
    held = {
        "single": known[:1],
        "centre": ((ImageMiscoverage(region=GEOMETRIES[geometry]), IMAGE),),
    }.get(method, known)
    centre = starts[1 + tuple(GEOMETRIES).index(geometry)]
    first = min(log1p(starts[0] if method in ALONE else max(starts[0], centre)), log1p(bound))
    bounds = None if method in _BARE else (0.0, log1p(bound))
    asked = [Risk(loss, level, Fixed(0.1), first, bounds) for loss, level in held]
    ways: dict[str, Combine] = {
        "max": Max(anti_windup=_DELTA),
        "mean": Mean(anti_windup=_DELTA),
        "mean_bare": Mean(),
    }
    return Controller(PixelScale(), asked, Exponential(), ways.get(method, Max()))


def judge(
    frames: Frames, method: str, names: tuple[str, str, str, int], geometry: str = "text"
) -> tuple[Row, Series]:
    """Tunes a method on the validation part and judges it on the test part.

    The chosen controller runs from the first frame of the validation part on, as it did when it
    was chosen.
    """
    made = controller(method, frames.bound, frames.starts, geometry)
    gammas: tuple[float, ...] = (nan, nan)
    held = True
    if method != OURS:
        chosen, held = _tuned(frames, made)
        made, gammas = chosen.controller, (*chosen.gammas, nan)[:2]
    trace = replay(frames.controller(made), frames.tape())
    tested = slice(frames.validation, None)
    image, centre, lengths = _measured(trace, geometry)
    failed = np.where(np.isnan(centre), nan, centre <= CentreFailure().threshold)
    losses = (1.0 - image, failed)
    asked = {"single": (0, None), OURS: (0, None), "centre": (None, None)}.get(method, (0, 1))
    first, second = (
        _told(trace, place, loss, level)
        for place, loss, level in zip(asked, losses, (IMAGE, CENTRE), strict=True)
    )
    first_column = 2 * tuple(GEOMETRIES).index(geometry)
    inside, outside, one_pixel = (
        _mean(_finite(trace.lam * frames.units[:, column])[tested])
        for column in (first_column, first_column + 1, -1)
    )
    clip, model, heuristic, seed = names
    row = Row(
        clip=clip,
        model=model,
        heuristic=heuristic,
        seed=seed,
        method=method,
        gamma=gammas[0],
        gamma_centre=gammas[1],
        held=held,
        frames=int(np.isfinite(image[tested]).sum()),
        coverage=_mean(image[tested]),
        length=_mean(lengths[tested][np.isfinite(lengths[tested])]),
        saturated=float((trace.lam[tested] == inf).mean()),
        centre_coverage=_mean(centre[tested]),
        centre_failure=_mean(failed[tested]),
        infinite=_mean(frames.infinite[tested]),
        error=_mean(frames.error[tested]),
        worst_image=_worst(losses[0][tested]),
        worst_centre=_worst(losses[1][tested]),
        mean_image=_mean(losses[0]),
        mean_centre=_mean(losses[1]),
        bound_image=first.bound,
        bound_centre=second.bound,
        window_image=first.window,
        window_centre=second.window,
        excess_image=first.excess,
        excess_centre=second.excess,
        verdict_image=first.verdict,
        verdict_centre=second.verdict,
        kept=first.kept and second.kept,
        geometry=geometry,
        centre_length=inside,
        other_length=outside,
        pixel_length=one_pixel,
        pixel_delta=_pixel_delta(frames.pixels, trace.lam[tested]),
        poor_50=_mean(np.where(np.isnan(centre), nan, centre <= 0.5)[tested]),
        poor_70=_mean(np.where(np.isnan(centre), nan, centre <= 0.7)[tested]),
    )
    return row, Series(image, lengths, trace.lam)


def judge_all(
    source: Source, heuristic: str, frames: Frames
) -> tuple[list[Row], dict[str, Series]]:
    """Every method with both centres, and the series of every method with the text's centre."""
    rows, runs = [], {}
    for method in METHODS:
        for geometry in GEOMETRIES:
            names = (source.clip, source.model, heuristic, source.seed)
            row, series = judge(frames, method, names, geometry)
            rows.append(replace(row, tape=source.tape_name(heuristic)))
            if geometry == "text":
                runs[method] = series
    return rows, runs


def _tuned(frames: Frames, made: Controller) -> tuple[Chosen, bool]:
    """The paper's choice of γ, and whether it was to be had.

    Where no γ of the grid holds the risks within the paper's tolerance, the tolerance is doubled
    until one does: of a short clip it can be that none does, and by a hair.
    """
    held: Any = frames  # what `choose` asks of a FrameTape
    allowed = [0.001, 0.01][: len(made.risks)]
    chosen = first = choose(made, held, 0, frames.validation, excess=allowed)
    while not chosen.held and max(allowed) < 1.0:
        allowed = [2.0 * each for each in allowed]
        chosen = choose(made, held, 0, frames.validation, excess=allowed)
    return chosen, first.held


def _finite(values: np.ndarray) -> np.ndarray:
    """Lengths that are at least 0, NaN where the safeguard chose the set."""
    return np.where(np.isfinite(values), np.maximum(values, 0.0), nan)


def _pixel_delta(pixels: np.ndarray, lam: np.ndarray) -> float:
    """The mean distance of the coverage of a pixel over time from its nominal one."""
    judged = np.isfinite(pixels)
    hits = (judged & (pixels <= lam[:, None, None])).sum(axis=0)
    counts = judged.sum(axis=0)
    often = counts > min(50, len(pixels) // 2)
    return float(np.abs(hits[often] / counts[often] - (1.0 - IMAGE)).mean()) if often.any() else nan


def _measured(trace: Trace, geometry: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coverage of the image, coverage of its centre, and mean length of every frame."""
    assert trace.shown is not None  # the family does not show single intervals
    found = []
    for shown in trace.shown:
        shares = []
        for region in (REGIONS[0], GEOMETRIES[geometry]):
            missed, judged = shown.count(None, region)
            shares.append(1.0 - missed / judged if judged else nan)
        found.append((*shares, shown.length))
    image, centre, length = np.array(found).T
    return image, centre, length


@dataclass(frozen=True, slots=True)
class _Promise:
    """What is promised of one risk, and its worst window."""

    bound: float
    window: float
    excess: float
    verdict: str
    kept: bool


def _told(trace: Trace, place: int | None, losses: np.ndarray, level: float) -> _Promise:
    """Of the risk at a place of the certificate; nothing is promised of what is no risk."""
    excess, deficit = _extremes(losses - level)
    if place is None:
        return _Promise(nan, nan, excess, "", True)
    risk: RiskCertificate = trace.certificate().risks[place]
    bound, window = (nan if each is None else each for each in (risk.upper, risk.window))
    slack = 1e-9 * len(losses)
    kept = not isfinite(window) or (
        excess <= window + slack and (risk.window_sided == "upper" or deficit <= window + slack)
    )
    return _Promise(bound, window, excess, risk.verdict, kept and risk.within)


def _extremes(excess: np.ndarray) -> tuple[float, float]:
    """The largest Σ(l − r) and the largest −Σ(l − r) over all windows, of whatever length."""
    path = np.concatenate([[0.0], np.cumsum(excess[~np.isnan(excess)])])
    up = float((path - np.minimum.accumulate(path)).max())
    down = float((np.maximum.accumulate(path) - path).max())
    return up, down


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else nan


def _worst(losses: np.ndarray) -> float:
    """The largest mean loss of a window of the test part."""
    known = losses[~np.isnan(losses)]
    if not len(known):
        return nan
    size = min(WINDOW, len(known))
    path = np.concatenate([[0.0], np.cumsum(known)])
    return float((path[size:] - path[:-size]).max() / size)


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Every number, six digits each."""
    path.write_text(written(Row, rows), "utf-8")


def read_csv(path: Path) -> list[Row]:
    """The rows that `write_csv` wrote."""
    return parsed(Row, path.read_text("utf-8"))
