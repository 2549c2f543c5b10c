"""The paper's protocol for one tape: tune on rows 5001–8000, calibrate from 5001, judge from 8001.

θ lives in standard deviations of the first 5000 labels, as behind the printed numbers; lengths and
pinball losses are told in the unit of y.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Any

import numpy as np

from setpoint import metrics, search
from setpoint._check import positive, whole
from setpoint.controller import Controller, Risk
from setpoint.errors import InputError
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.metrics.groups import _from_counts
from setpoint.replaying import Trace, replay
from setpoint.sets import ScoreWindow, Widen
from setpoint.steps import Fixed
from setpoint.stretches import (
    ErrorAdaptive,
    Exponential,
    Identity,
    ScoreAdaptive,
    clip_bounds,
)
from setpoint.tape import Tape
from setpoint.tuning import tune

__all__ = [
    "CONFIDENCE",
    "LEVELS",
    "METHODS",
    "STRETCHES",
    "Protocol",
    "Row",
    "Scale",
    "Seen",
    "calibrate",
    "controller",
    "judged",
    "step_sizes",
]

CONFIDENCE = 0.9
LEVELS = {"coverage": 1.0 - CONFIDENCE, "mc": (1.0 - CONFIDENCE) / CONFIDENCE}
"""The levels of the two risks: 10 % misses, and a miscoverage counter of 1/9."""

STRETCHES = ("none", "exponential", "score", "error")
METHODS = (*STRETCHES, "score_coded", "error_coded", "cal")
"""Rolling RC by its stretching, the adaptive ones also as their authors' code has them, and
calibration with cal."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """Which rows serve for what, and what is tried.

    Parameters
    ----------
    begin
        How many rows the model has for itself; calibration begins after them.
    tuned
        The rows up to this one choose γ and β; those after it are judged.
    gammas
        The step sizes tried.
    budget
        How many β are tried for each step size.
    reach
        The bounds of λ, in standard deviations of the first labels. The guarantee's constant is
        proportional to it: at γ = 0.025 and T = 15,000 a reach of 10 bounds the risk's error by
        0.027, and the bounds of the paper, 9999, by 27.
    window
        How many past scores calibration with cal holds.
    """

    begin: int = 5_000
    tuned: int = 8_000
    gammas: tuple[float, ...] = search.GAMMAS
    budget: int = 40
    reach: float = 10.0
    window: int = 300

    def __post_init__(self) -> None:
        whole(self.begin, "begin", 2)
        whole(self.budget, "budget", 1)
        whole(self.window, "window", 1)
        positive(self.reach, "reach")
        if whole(self.tuned, "tuned", 1) <= self.begin + 1:
            raise InputError(
                f"tuned must be at least begin + 2, {self.begin + 2}, got {self.tuned}"
            )
        for gamma in self.gammas:
            positive(gamma, "a step size")
        if not self.gammas:
            raise InputError("gammas must hold at least one step size, got ()")


@dataclass(frozen=True, slots=True)
class Scale:
    """The mean and standard deviation of the labels before calibration begins."""

    centre: float
    spread: float

    @classmethod
    def of(cls, y: np.ndarray) -> "Scale":
        """That of some labels; 1 where they never vary."""
        return cls(float(y.mean()), float(y.std()) or 1.0)

    def standard(self, tape: Tape) -> Tape:
        """A tape in standard deviations from the mean."""
        columns = [(column - self.centre) / self.spread for column in _columns(tape)]
        return Tape.from_arrays(
            columns, (tape.y - self.centre) / self.spread, names=tape.names, group=tape.group
        )


def _columns(tape: Tape) -> tuple[np.ndarray, ...]:
    lower, upper = tape.prediction
    return np.asarray(lower), np.asarray(upper)


@dataclass(frozen=True, slots=True)
class Row:
    """One method with one step size on one tape.

    The first fields say what ran; `tuning` is the pinball loss on the rows that are tuned on, and
    what follows up to `floor` speaks of the rows that are judged. Coverage, shares and ΔCoverage
    are fractions; `length`, `pinball` and `tuning` are in the unit of y, and so is `finite_length`,
    which leaves full sets out. The rest is about the
    whole run: how far the mean loss of its first third of the tuned rows is from the level
    (`early`), its steps and mean loss, how far that is from what the path of θ says (`gap`), the
    bounds of its distance from the level, whether it lies within them, and how often the
    safeguard acted.
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


def controller(method: str, risk: str, gamma: float, protocol: Protocol, clip: float) -> Controller:
    """The controller of a method, with the first β of the paper's ranges.

    `clip` is what the memory of the adaptive stretchings is clipped to, in units of θ.
    """
    if risk not in LEVELS:
        raise InputError(f"risk must be one of {', '.join(LEVELS)}, got {risk!r}")
    loss: Any = Miscoverage() if risk == "coverage" else MiscoverageCounter()
    one = Risk(loss, LEVELS[risk], Fixed(gamma))
    if method == "cal":
        return Controller(ScoreWindow(Widen(), protocol.window), one)
    kind, _, coded = method.partition("_")
    reading = "authors" if coded else "paper"
    stretches: dict[str, Any] = {
        "none": Identity(),
        "exponential": Exponential(),
        "score": ScoreAdaptive(search.BETA_SCORE.low, -clip, clip, reading=reading),
        "error": ErrorAdaptive(
            search.BETA_SCORE.low, search.BETA_LOSS.low, -clip, clip, reading=reading
        ),
    }
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    stretch = stretches[kind]
    far = stretch.inverse(protocol.reach, stretch.init())
    one = replace(one, start=0.0, bounds=(-far, far))
    return Controller(Widen(), one, stretch=stretch)


@dataclass(frozen=True, slots=True, eq=False)
class _Pinball:
    """The pinball loss, also of controllers that showed a full or an empty set on the way."""

    tape: Tape
    seen: "Seen"

    def __call__(self, made: Controller, found: Mapping[str, float]) -> float:
        if found["pinball"] < inf:
            return found["pinball"]
        trace = replay(made, self.tape)
        low, high = _finite(trace.lower, trace.upper, self.tape, self.seen)
        return metrics.pinball(low, high, self.tape.y, CONFIDENCE)


_SPACES: dict[str, dict[str, Any]] = {
    "score": {"score": search.BETA_SCORE},
    "error": {"score": search.BETA_SCORE, "loss": search.BETA_LOSS},
}


def calibrate(tape: Tape, dataset: str, seed: int, protocol: Protocol | None = None) -> list[Row]:
    """Every method with every step size on one tape, for both risks, and the bare model.

    The β of the adaptive stretchings are those with the least pinball loss on the rows that are
    tuned on, for each step size. Nothing of the rows that are judged is used to choose anything.
    """
    told = Protocol() if protocol is None else protocol
    if len(tape) <= told.tuned:
        raise InputError(f"the protocol judges rows after {told.tuned}, the tape has {len(tape)}")
    scale = Scale.of(tape.y[: told.begin])
    standard = scale.standard(tape)
    part, chosen = standard[told.begin :], standard[told.begin : told.tuned]
    seen = Seen.before(standard.y, told.begin)
    clip = clip_bounds(chosen.y.tolist())[1]
    rows = [_bare(part, dataset, seed, told, scale, seen)]
    for risk in LEVELS:
        for method in METHODS:
            for gamma in told.gammas:
                made = controller(method, risk, gamma, told, clip)
                space = _SPACES.get(method.partition("_")[0])
                if space is not None:
                    made = tune(
                        made, chosen, space, _Pinball(chosen, seen[: len(chosen)]),
                        budget=told.budget, confidence_level=CONFIDENCE, progress=False,
                    ).best  # fmt: skip
                trace = replay(made, part)
                rows.append(judged(trace, dataset, seed, risk, method, told, scale, seen))
    return rows


def step_sizes(
    tape: Tape, gammas: tuple[float, ...], seed: int, protocol: Protocol | None = None
) -> list[Row]:
    """Rolling RC without stretching under many step sizes: the appendix's study of γ."""
    told = Protocol() if protocol is None else protocol
    scale = Scale.of(tape.y[: told.begin])
    standard = scale.standard(tape)
    part, seen = standard[told.begin :], Seen.before(standard.y, told.begin)
    return [
        judged(
            replay(controller("none", "coverage", gamma, told, 1.0), part),
            "synthetic", seed, "coverage", "none", told, scale, seen,
        )
        for gamma in gammas
    ]  # fmt: skip


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
    early = trace.losses[0][: max(1, (protocol.tuned - protocol.begin) // 3)]
    return Row(
        dataset=dataset,
        seed=seed,
        risk=risk,
        method=method,
        gamma=step.gamma,
        beta_score=getattr(stretch, "score", nan),
        beta_loss=getattr(stretch, "loss", nan),
        **_measured(trace.tape, trace.covered, trace.lower, trace.upper, protocol, scale, seen),
        early=abs(float(early.mean()) - one.level),
        steps=one.judged,
        mean=one.mean,
        gap=nan if one.identity is None else abs(one.identity - one.mean),
        low=nan if one.lower is None else one.lower,
        high=nan if one.upper is None else one.upper,
        within=one.within and one.lower is not None and one.upper is not None,
        guarded=certificate.full + certificate.empty,
    )


def _bare(
    part: Tape,
    dataset: str,
    seed: int,
    protocol: Protocol,
    scale: Scale,
    seen: Seen,
) -> Row:
    """The model's own intervals."""
    lower, upper = _columns(part)
    covered = (lower <= part.y) & (part.y <= upper)
    return Row(
        dataset, seed, "none", "uncalibrated", nan, nan, nan,
        **_measured(part, covered, lower, upper, protocol, scale, seen),
        early=nan, steps=len(part), mean=float(1.0 - covered.mean()), gap=nan, low=nan, high=nan,
        within=False, guarded=0,
    )  # fmt: skip


def _measured(
    tape: Tape,
    covered: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    protocol: Protocol,
    scale: Scale,
    seen: Seen,
) -> Mapping[str, Any]:
    """Metrics of the rows tuned on and of those judged."""
    low, high = _finite(lower, upper, tape, seen)
    first = protocol.tuned - protocol.begin
    hits, last = covered[first:], slice(first, None)
    days = _by_group(hits, np.empty(0) if tape.group is None else tape.group[last])

    def pinball(rows: slice) -> float:
        return scale.spread * metrics.pinball(low[rows], high[rows], tape.y[rows], CONFIDENCE)

    return {
        "tuning": pinball(slice(first)),
        "pinball": pinball(last),
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
    }


def _by_group(hits: np.ndarray, groups: np.ndarray) -> metrics.GroupCoverage:
    """`metrics.delta_coverage`, which walks over rows of any kind, from counts of whole arrays."""
    if not len(groups):
        return _from_counts({}, CONFIDENCE)
    keys, places, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    held = np.bincount(places, hits, len(keys)).astype(int)
    counts = zip(keys.tolist(), sizes.tolist(), held.tolist(), strict=True)
    return _from_counts({key: [size, hit] for key, size, hit in counts}, CONFIDENCE)


def _is_full(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return np.asarray((lower == -np.inf) & (upper == np.inf))


def _finite(
    lower: np.ndarray, upper: np.ndarray, tape: Tape, seen: Seen
) -> tuple[np.ndarray, np.ndarray]:
    """Ends that have a length and a pinball loss.

    A full set counts as reaching over all labels seen until then, an empty one as the middle of
    the model's own interval. Whether they hold y is not judged by these ends.
    """
    middle = sum(_columns(tape)) / 2.0
    full, empty = _is_full(lower, upper), lower > upper
    low = np.where(full, seen.low, np.where(empty, middle, lower))
    high = np.where(full, seen.high, np.where(empty, middle, upper))
    return low, high
