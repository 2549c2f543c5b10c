"""What a method is worth on the rows that are judged, and what is known of its whole run."""

from dataclasses import dataclass
from math import inf, isnan, log1p, nan
from typing import Any

import numpy as np

from setpoint import metrics
from setpoint.bulk.trace import Trace
from setpoint.tape import Tape
from setpoint_paper.statistics import tolerance, two_deviations
from setpoint_paper.tabular.methods import CONFIDENCE, LEVELS, Protocol, Run


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

    Then, of the rows judged, the longest streak of misses, and ΔCoverage by index modulo 7, as
    behind the printed figures; and of the whole run the largest |θ|.
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
    longest: float = nan
    delta_modulo: float = nan
    farthest: float = nan

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
        counter = self.risk == "mc"
        return tolerance(self.bound, self.level, self.steps, counter=counter)

    @property
    def limit(self) -> float:
        """Beyond this the mean is off, whatever bounds it."""
        chance = two_deviations(self.level, self.steps, counter=self.risk == "mc")
        return max(0.0 if isnan(self.tolerance) else self.tolerance, chance)

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


class Judge:
    """What runs on the rows of a tape after the model's own are worth.

    `standard` is the whole tape in standard deviations of the first labels, `part` its rows after
    the model's own; the first `tuned` of these are tuned on, the rest is judged.
    """

    def __init__(self, tape: Tape, dataset: str, seed: int, protocol: Protocol) -> None:
        self.dataset, self.seed, self.protocol = dataset, seed, protocol
        self.scale = Scale.of(tape.y[: protocol.scale_rows])
        self.standard = self.scale.standard(tape)
        self.part = self.standard[protocol.begin :]
        self.tuned = protocol.tuned - protocol.begin
        # The least and the greatest label before each row
        self.seen = tuple(
            extreme.accumulate(self.standard.y)[protocol.begin - 1 : -1]
            for extreme in (np.minimum, np.maximum)
        )

    def finite(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ends that have a length and a pinball loss.

        A full set counts as reaching over all labels seen until then, an empty one as the middle of
        the model's own interval. Whether they hold y is not judged by these ends.
        """
        count = len(lower)
        middle = sum(ends_of(self.part[:count])) / 2.0
        full, empty = _is_full(lower, upper), lower > upper
        low, high = (
            np.where(full, seen[:count], np.where(empty, middle, end))
            for seen, end in zip(self.seen, (lower, upper), strict=True)
        )
        return low, high

    def pinball(
        self, ends: tuple[np.ndarray, np.ndarray], y: np.ndarray, rows: slice = slice(None)
    ) -> float:
        """The pinball loss of finite ends on some rows, in the unit of y."""
        low, high = ends
        return self.scale.spread * metrics.pinball(low[rows], high[rows], y[rows], CONFIDENCE)

    def trace(self, trace: Trace, risk: str, method: str) -> Row:
        """What a trace of `part` is worth."""
        certificate = trace.certificate()
        one = certificate.risks[0]
        stretch: Any = trace.controller.stretch
        step: Any = trace.controller.risks[0].step
        ends = self.finite(trace.lower, trace.upper)
        return Row(
            self.dataset, self.seed, risk, method,
            gamma=step.gamma,
            beta_score=getattr(stretch, "score", nan),
            beta_loss=getattr(stretch, "loss", nan),
            tuning=self.pinball(ends, trace.tape.y, slice(self.tuned)),
            **self._measured(trace.tape, trace.covered, trace.lower, trace.upper, ends, self.tuned),
            early=self._early(trace.losses[0], one.level),
            steps=one.judged,
            mean=one.mean,
            gap=nan if one.identity is None else abs(one.identity - one.mean),
            low=nan if one.lower is None else one.lower,
            high=nan if one.upper is None else one.upper,
            within=one.within and None not in (one.lower, one.upper),
            guarded=certificate.full + certificate.empty,
            farthest=float(np.abs(trace.theta[0]).max()),
        )  # fmt: skip

    def run(self, run: Run, risk: str, method: str, first: int, tuning: float | None = None) -> Row:
        """What a run of the authors' code is worth from its row `first` on; it promises nothing.

        `tuning` is its pinball loss on the rows tuned on, where the run itself began after them.
        """
        level, ends = LEVELS[risk], (run.lower, run.upper)
        losses = 1.0 - run.covered
        if risk == "mc":
            losses = metrics.miscoverage_counter(run.covered)
        mean, steps = float(losses.mean()), len(losses)
        moved = float(run.theta[-1] - run.theta[0]) / (run.gamma * steps)
        if tuning is None:
            tuning = self.pinball(ends, run.tape.y, slice(first))
        return Row(
            self.dataset, self.seed, risk, method, run.gamma, run.beta_score, run.beta_loss, tuning,
            **self._measured(run.tape, run.covered, *ends, ends, first),
            early=self._early(losses, level), steps=steps, mean=mean,
            gap=abs(level + moved - mean), low=nan, high=nan, within=False, guarded=0,
            farthest=float(np.abs(run.theta).max()),
        )  # fmt: skip

    def _early(self, losses: np.ndarray, level: float) -> float:
        return abs(float(losses[: max(1, self.tuned // 3)].mean()) - level)

    def _measured(
        self,
        tape: Tape,
        covered: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        ends: tuple[np.ndarray, np.ndarray],
        first: int,
    ) -> dict[str, Any]:
        """Metrics of the rows from `first` on; `ends` are those that have a length."""
        spread, last = self.scale.spread, slice(first, None)
        (low, high), hits = ends, covered[last]
        grouped: tuple[Any, Any] = ((), ()) if tape.group is None else (hits, tape.group[last])
        days = metrics.delta_coverage(*grouped, CONFIDENCE)
        modulo = metrics.delta_coverage(hits, np.arange(len(hits)) % 7, CONFIDENCE)
        finite = metrics.lengths(lower[last], upper[last])
        return {
            "pinball": self.pinball(ends, tape.y, last),
            "coverage": float(hits.mean()),
            "mc": metrics.mc(hits),
            "msl": metrics.msl(hits),
            "length": spread * float(metrics.lengths(low[last], high[last]).mean()),
            "finite_length": spread * float(finite[np.isfinite(finite)].mean()),
            "full": float(_is_full(lower, upper)[last].mean()),
            "delta": days.delta,
            "floor": days.noise_floor,
            "longest": float(metrics.streaks(hits).max(initial=0)),
            "delta_modulo": modulo.delta,
        }


def _is_full(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return np.asarray((lower == -np.inf) & (upper == np.inf))
