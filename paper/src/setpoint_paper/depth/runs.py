"""Every controller on a clip's frames: tuned on the validation part, judged on the test part."""

from dataclasses import dataclass, replace
from math import inf, isfinite, isnan, log1p, nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from setpoint.bulk.replay import replay
from setpoint.bulk.trace import Trace
from setpoint.combine import Combine, Max, Mean
from setpoint.controller import Controller, Risk
from setpoint.guarantee import RiskCertificate
from setpoint.losses import CentreFailure, ImageMiscoverage
from setpoint.sets import PixelScale
from setpoint.steps import Fixed
from setpoint.stretches import Exponential
from setpoint_paper.depth.choosing import EXCESS, Chosen, choose
from setpoint_paper.depth.tapes import CENTRE, GEOMETRIES, IMAGE, REGIONS, Frames, Source, risks
from setpoint_paper.rows import parsed
from setpoint_paper.statistics import tolerance, two_deviations

METHODS = ("single", "centre", "max", "mean", "max_bare", "mean_bare")
"""One risk; the coverage of the centre as the one risk; two with Max or Mean under anti-windup; two
with the paper's bare Max and Mean."""

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
}
"""What the methods are called."""

ALONE = ("single", "centre")
"""The methods with one risk."""

_BARE = ("max_bare", "mean_bare")

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
    frames
        How many frames of the test part were judged.
    coverage, length, centre_coverage, centre_failure
        Of the test part: image coverage; mean length in metres over all judged pixels of the
        frames that are not saturated; coverage of the centre; the share of frames whose centre is
        covered to no more than 60 %.
    bound_image, bound_centre
        How far above its level the certificate lets the mean loss from the first calibrated frame
        on be; NaN without a bound.
    window_image, window_centre
        How large the certificate lets Σ(l − r) be on any window; NaN without a bound.
    kept
        Whether every window of every risk kept its bound: True where there is none to keep.
    pixel_length
        The mean length of the one pixel a frame that the authors' code takes.
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
    frames: int
    coverage: float
    length: float
    centre_coverage: float
    centre_failure: float
    bound_image: float
    bound_centre: float
    window_image: float
    window_centre: float
    kept: bool
    geometry: str = "text"
    pixel_length: float = nan
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

    def told(self, what: str, risk: str) -> float:
        """A number of the risk "image" or "centre" on the frames judged.

        Its `excess` over its level; what that may be, by the theorem's bound for a window of these
        frames or by chance (`tolerance`); beyond what it is off, whatever bounds it (`limit`); and
        two binomial deviations (`chance`).
        """
        level, window, mean = {
            "image": (IMAGE, self.window_image, 1.0 - self.coverage),
            "centre": (CENTRE, self.window_centre, self.centre_failure),
        }[risk]
        chance = two_deviations(level, self.frames)
        known = tolerance(inf if isnan(window) else window / self.frames, level, self.frames)
        limit = max(0.0 if isnan(known) else known, chance)
        found = {"excess": mean - level, "tolerance": known, "limit": limit, "chance": chance}
        return found[what]


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
    chosen = _tuned(frames, controller(method, frames.bound, frames.starts, geometry))
    gammas = (*chosen.gammas, nan)[:2]
    trace = replay(frames.controller(chosen.controller), frames.tape())
    tested = slice(frames.validation, None)
    image, centre, lengths = _measured(trace, geometry)
    failed = np.where(np.isnan(centre), nan, centre <= CentreFailure().threshold)
    asked = {"single": (0, None), "centre": (None, None)}.get(method, (0, 1))
    first, second = (
        _promised(trace, place, losses - level)
        for place, losses, level in zip(asked, (1.0 - image, failed), (IMAGE, CENTRE), strict=True)
    )
    one_pixel = trace.lam * frames.pixel
    clip, model, heuristic, seed = names
    row = Row(
        clip, model, heuristic, seed, method, gammas[0], gammas[1],
        frames=int(np.isfinite(image[tested]).sum()),
        coverage=_mean(image[tested]),
        length=_mean(lengths[tested][np.isfinite(lengths[tested])]),
        centre_coverage=_mean(centre[tested]),
        centre_failure=_mean(failed[tested]),
        bound_image=first.bound,
        bound_centre=second.bound,
        window_image=first.window,
        window_centre=second.window,
        kept=first.kept and second.kept,
        geometry=geometry,
        # NaN where the safeguard chose the set.
        pixel_length=_mean(np.maximum(one_pixel[np.isfinite(one_pixel)], 0.0)),
    )  # fmt: skip
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


def _tuned(frames: Frames, made: Controller) -> Chosen:
    """The paper's choice of γ.

    Where no γ of the grid holds the risks within the paper's tolerance, the tolerance is doubled
    until one does: of a short clip it can be that none does, and by a hair.
    """
    allowed = EXCESS[: len(made.risks)]
    while True:
        chosen = choose(made, frames, 0, frames.validation, excess=allowed)
        if chosen.held or max(allowed) >= 1.0:
            return chosen
        allowed = tuple(2.0 * each for each in allowed)


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


class _Promise(NamedTuple):
    """What is promised of a risk: above its level, on any window; whether it was kept."""

    bound: float = nan
    window: float = nan
    kept: bool = True


def _promised(trace: Trace, place: int | None, excess: np.ndarray) -> _Promise:
    """Of the risk at a place of the certificate; nothing is promised of what is no risk."""
    if place is None:
        return _Promise()
    up, down = _extremes(excess)
    risk: RiskCertificate = trace.certificate().risks[place]
    bound, window = (nan if each is None else each for each in (risk.upper, risk.window))
    most = window + 1e-9 * len(excess)
    kept = not isfinite(window) or (up <= most and (risk.window_sided == "upper" or down <= most))
    return _Promise(bound, window, kept and risk.within)


def _extremes(excess: np.ndarray) -> tuple[float, float]:
    """The largest Σ(l − r) and the largest −Σ(l − r) over all windows, of whatever length."""
    path = np.concatenate([[0.0], np.cumsum(excess[~np.isnan(excess)])])
    up = float((path - np.minimum.accumulate(path)).max())
    down = float((np.maximum.accumulate(path) - path).max())
    return up, down


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else nan


def read_csv(path: Path) -> list[Row]:
    """The rows of a file of results."""
    return parsed(Row, path.read_text("utf-8"))
