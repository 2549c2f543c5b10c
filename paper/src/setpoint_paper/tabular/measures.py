"""What a method is worth on the rows that are judged, and what is known of its whole run."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isnan, log1p, nan
from typing import Any

import numpy as np

from setpoint import metrics
from setpoint.bulk.replay import Trace
from setpoint.tape import Tape
from setpoint_paper.statistics import tolerance, two_deviations
from setpoint_paper.tabular.methods import CONFIDENCE, LEVELS, OURS, Protocol, Run

__all__ = [
    "WINDOW",
    "Row",
    "Scale",
    "Seen",
    "bare",
    "ends_of",
    "finite_ends",
    "judged",
    "judged_run",
]

WINDOW = 500
"""The rows of the windows whose worst is told."""


@dataclass(frozen=True, slots=True)
class Row:
    """One method with one step size on one tape.

    The first fields say what ran; `tuning` is the pinball loss on the rows that are tuned on, and
    what follows up to `floor` speaks of the rows that are judged. Coverage, shares and ΔCoverage
    are fractions; `length`, `pinball` and `tuning` are in the unit of y, and so is `finite_length`,
    which leaves full sets out. The rest is about the whole run: how far the mean loss of its first
    third of the tuned rows is from the level (`early`), its steps and mean loss, how far that is
    from what the path of θ says (`gap`), the bounds of its distance from the level, whether it
    lies within them, and how often the safeguard acted.

    Then, of the rows judged, the largest distance of the coverage of `WINDOW` rows in a row from
    90 %, the longest streak of misses, and ΔCoverage by index modulo 7, as behind the printed
    figures; and of the whole run the largest |θ|. Of synthetic data, of the rows judged, how far
    the ends are from the true quantiles, the mean over both (`away`). Where β was searched, by
    which share the pinball loss on the rows tuned on is larger with the median of the β tried than
    with the best (`blind`). A method without a step size has γ = 0.
    """

    dataset: str
    seed: int
    risk: str
    method: str
    gamma: float
    beta_score: float
    beta_loss: float
    tuning: float
    pinball: float
    coverage: float
    mc: float
    msl: float
    length: float
    finite_length: float
    full: float
    empty: float
    delta: float
    floor: float
    early: float
    steps: int
    mean: float
    gap: float
    low: float
    high: float
    within: bool
    guarded: int
    worst: float = nan
    longest: float = nan
    delta_modulo: float = nan
    farthest: float = nan
    away: float = nan
    blind: float = nan

    @property
    def level(self) -> float:
        """The level of the risk."""
        return LEVELS[self.risk]

    @property
    def off(self) -> float:
        """How far the mean loss of the whole run is from its level."""
        return abs(self.mean - self.level)

    @property
    def bound(self) -> float:
        """How far it can be by the theorem; infinite where that says nothing.

        The authors' code has no bounds on θ that it ever reaches. A run whose λ stayed within ten
        standard deviations is the run with a safeguard there, and has its bound.
        """
        if not isnan(self.low + self.high):
            return max(-self.low, self.high)
        reach = log1p(10.0) if "exponential" in self.method else 10.0
        if "cal" in self.method or not self.farthest <= reach:
            return inf
        most = 39.0 if self.risk == "mc" else 1.0
        return (2.0 * reach + self.gamma * most) / (self.gamma * self.steps)

    @property
    def tolerance(self) -> float:
        """What the mean may be off by; NaN where that cannot be told."""
        return tolerance(self.bound, self.level, self.steps)

    @property
    def limit(self) -> float:
        """Beyond this the mean is off, whatever bounds it."""
        known = self.tolerance
        return max(0.0 if isnan(known) else known, two_deviations(self.level, self.steps))

    @property
    def reached(self) -> float:
        """The largest |θ|; NaN where the safeguard acted, so that nobody knows."""
        return nan if self.guarded else self.farthest

    @property
    def switched(self) -> str:
        """The training of a tape with one step switched, which `method` names; else nothing."""
        return self.method.partition("; ")[2]


@dataclass(frozen=True, slots=True)
class Scale:
    """The mean and standard deviation of the first labels."""

    centre: float
    spread: float

    @classmethod
    def of(cls, y: np.ndarray) -> "Scale":
        """That of some labels; 1 where they never vary."""
        return cls(float(y.mean()), float(y.std()) or 1.0)

    def standard(self, tape: Tape) -> Tape:
        """A tape in standard deviations from the mean."""
        columns = [(column - self.centre) / self.spread for column in ends_of(tape)]
        return Tape.from_arrays(
            columns, (tape.y - self.centre) / self.spread, names=tape.names, group=tape.group
        )


def ends_of(tape: Tape) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the model's own intervals."""
    lower, upper = tape.prediction
    return np.asarray(lower), np.asarray(upper)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The least and the greatest label before each row."""

    low: np.ndarray
    high: np.ndarray

    @classmethod
    def before(cls, y: np.ndarray, begin: int) -> "Seen":
        """Of the rows from `begin` on, counted from 0."""
        low, high = np.minimum.accumulate(y), np.maximum.accumulate(y)
        return cls(low[begin - 1 : -1], high[begin - 1 : -1])

    def __getitem__(self, rows: slice) -> "Seen":
        return Seen(self.low[rows], self.high[rows])


def judged(
    trace: Trace,
    dataset: str,
    seed: int,
    risk: str,
    method: str,
    protocol: Protocol,
    scale: Scale,
    seen: Seen,
) -> Row:
    """What a trace that began after the model's own rows is worth."""
    certificate = trace.certificate()
    one = certificate.risks[0]
    stretch: Any = trace.controller.stretch
    step: Any = trace.controller.risks[0].step
    ends = finite_ends(trace.lower, trace.upper, trace.tape, seen)
    first = protocol.tuned - protocol.begin
    ours = method == OURS
    return Row(
        dataset=dataset,
        seed=seed,
        risk=risk,
        method=method,
        gamma=0.0 if ours else step.gamma,
        beta_score=getattr(stretch, "score", nan),
        beta_loss=getattr(stretch, "loss", nan),
        tuning=_pinball(ends, trace.tape.y, slice(first), scale),
        **_measured(trace.tape, trace.covered, trace.lower, trace.upper, ends, first, scale),
        early=_early(trace.losses[0], one.level, protocol),
        steps=one.judged,
        mean=one.mean,
        gap=nan if one.identity is None else abs(one.identity - one.mean),
        low=nan if one.lower is None else one.lower,
        high=nan if one.upper is None else one.upper,
        within=one.within and one.upper is not None and (ours or one.lower is not None),
        guarded=certificate.full + certificate.empty,
        farthest=float(np.abs(trace.theta[0]).max()),
    )


def judged_run(
    run: Run,
    dataset: str,
    seed: int,
    risk: str,
    method: str,
    first: int,
    scale: Scale,
    protocol: Protocol,
    tuning: float | None = None,
) -> Row:
    """What a run of the authors' code is worth from its row `first` on; it promises nothing.

    `tuning` is its pinball loss on the rows tuned on, where the run itself began after them.
    """
    level, ends = LEVELS[risk], (run.lower, run.upper)
    losses = 1.0 - run.covered
    if risk == "mc":
        losses = metrics.miscoverage_counter(run.covered)
    mean, steps = float(losses.mean()), len(losses)
    moved = float(run.theta[-1] - run.theta[0]) / (run.gamma * steps)
    before = _pinball(ends, run.tape.y, slice(first), scale) if tuning is None else tuning
    return Row(
        dataset, seed, risk, method, run.gamma, run.beta_score, run.beta_loss, tuning=before,
        **_measured(run.tape, run.covered, *ends, ends, first, scale),
        early=_early(losses, level, protocol), steps=steps, mean=mean,
        gap=abs(level + moved - mean), low=nan, high=nan, within=False, guarded=0,
        farthest=float(np.abs(run.theta).max()),
    )  # fmt: skip


def bare(part: Tape, dataset: str, seed: int, protocol: Protocol, scale: Scale, seen: Seen) -> Row:
    """The model's own intervals."""
    lower, upper = ends_of(part)
    covered = (lower <= part.y) & (part.y <= upper)
    first, ends = protocol.tuned - protocol.begin, finite_ends(lower, upper, part, seen)
    return Row(
        dataset, seed, "none", "uncalibrated", nan, nan, nan,
        tuning=_pinball(ends, part.y, slice(first), scale),
        **_measured(part, covered, lower, upper, ends, first, scale),
        early=nan, steps=len(part), mean=float(1.0 - covered.mean()), gap=nan, low=nan, high=nan,
        within=False, guarded=0,
    )  # fmt: skip


def _early(losses: np.ndarray, level: float, protocol: Protocol) -> float:
    first = losses[: max(1, (protocol.tuned - protocol.begin) // 3)]
    return abs(float(first.mean()) - level)


def _pinball(
    ends: tuple[np.ndarray, np.ndarray], y: np.ndarray, rows: slice, scale: Scale
) -> float:
    low, high = ends
    return scale.spread * metrics.pinball(low[rows], high[rows], y[rows], CONFIDENCE)


def _measured(
    tape: Tape,
    covered: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    ends: tuple[np.ndarray, np.ndarray],
    first: int,
    scale: Scale,
) -> Mapping[str, Any]:
    """Metrics of the rows from `first` on; `ends` are those that have a length."""
    low, high = ends
    hits, last = covered[first:], slice(first, None)
    grouped: tuple[Any, Any] = ((), ()) if tape.group is None else (hits, tape.group[last])
    days = metrics.delta_coverage(grouped[0], grouped[1], CONFIDENCE)
    modulo = metrics.delta_coverage(hits, np.arange(len(hits)) % 7, CONFIDENCE)
    size = min(WINDOW, len(hits))
    sums = np.convolve(hits, np.ones(size), "valid") / size
    misses = metrics.streaks(hits)

    return {
        "pinball": _pinball(ends, tape.y, last, scale),
        "coverage": float(hits.mean()),
        "mc": metrics.mc(hits),
        "msl": metrics.msl(hits),
        "length": scale.spread * metrics.mean_length(metrics.lengths(low[last], high[last])),
        "finite_length": scale.spread
        * metrics.mean_finite_length(metrics.lengths(lower[last], upper[last])),
        "full": float(_is_full(lower, upper)[last].mean()),
        "empty": float((lower > upper)[last].mean()),
        "delta": days.delta,
        "floor": days.noise_floor,
        "worst": float(np.abs(sums - CONFIDENCE).max()),
        "longest": float(misses.max(initial=0)),
        "delta_modulo": modulo.delta,
    }


def _is_full(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return np.asarray((lower == -np.inf) & (upper == np.inf))


def finite_ends(
    lower: np.ndarray, upper: np.ndarray, tape: Tape, seen: Seen
) -> tuple[np.ndarray, np.ndarray]:
    """Ends that have a length and a pinball loss.

    A full set counts as reaching over all labels seen until then, an empty one as the middle of
    the model's own interval. Whether they hold y is not judged by these ends.
    """
    middle = sum(ends_of(tape)) / 2.0
    full, empty = _is_full(lower, upper), lower > upper
    low = np.where(full, seen.low, np.where(empty, middle, lower))
    high = np.where(full, seen.high, np.where(empty, middle, upper))
    return low, high
