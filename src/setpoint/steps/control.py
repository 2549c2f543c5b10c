"""Published rules that track the scores, by steps as long as their range: PI control and ECI.

The θ they show is a base and something added to it. Both lie in the memory: what anti-windup adds
to θ is added to the base. A late label is compared with the θ of now, not with the one it was
shown. Neither rule has a bound, because its steps grow and shrink.
"""

from dataclasses import dataclass
from math import exp, log, pi, tan

from setpoint._check import finite
from setpoint.errors import InputError
from setpoint.steps.claims import Claim, Memory, Within, make_positive, nothing

LARGEST = 1e300
"""Stands for infinity in θ and in memories, which are finite; a larger score teaches nothing."""

SCORES = 100
"""How many of the last scores count, and lie in the memory."""


def known(score: float) -> bool:
    """Whether a score can be counted with: there is one, and it is no overflow."""
    return (score > -LARGEST) & (score < LARGEST)


def _with(scores: Memory, score: float, count: float) -> Memory:
    """The last hundred scores and one more; the first of all stands for those before it."""
    if not known(score):
        return scores
    if count > 0.0:
        return (*scores[1:], score)
    ten = (score, score, score, score, score, score, score, score, score, score)
    return (*ten, *ten, *ten, *ten, *ten, *ten, *ten, *ten, *ten, *ten)


def _range(scores: Memory) -> float:
    """The greatest of the last scores less the least."""
    return max(scores) - min(scores)


def lift(theta: float, shown: float) -> float:
    """What was added to θ since it was shown; nothing that counts where it stood for infinity."""
    return theta - shown if known(shown) else 0.0


_UNEVEN = "step sizes never grow (they follow the range of the last 100 scores)"


def proportional_integral(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """v + K·tan(Σc·ln(k + 1)/(C·(k + 1))), with v ← v + rate·range·c and c = l − r."""
    rate, gain, saturation = params
    base, shown, total, labels, count = memory[:5]
    scores = _with(memory[5:], critical, count)
    count += known(critical)
    base += lift(theta, shown) + rate * _range(scores) * excess
    total, labels = total + excess, labels + 1.0
    angle = total * log(labels + 1.0) / (saturation * (labels + 1.0))
    theta = base + gain * _saturating(angle)
    theta = -LARGEST if theta < -LARGEST else LARGEST if theta > LARGEST else theta
    return theta, (base, theta, total, labels, count, *scores)


def _saturating(angle: float) -> float:
    """The tangent, without end from a quarter turn on."""
    if angle >= pi / 2.0:
        return LARGEST
    return -LARGEST if angle <= -pi / 2.0 else tan(angle)


@dataclass(frozen=True, slots=True)
class PI:
    """Conformal PI control: quantile tracking with a saturating integrator.

    θ = v + K·tan(Σc·ln(k + 1)/(C·(k + 1))) with c = l − r after k labels, where v ← v + rate·R·c
    and R is the range of the last 100 scores. As in the paper the newest label counts in Σc; the
    authors' code leaves it out. Where the tangent has no end θ is ±1e300.

    For intervals whose sides move by themselves use `sets.TwoSided` with half the level on each
    side. A scorecaster belongs to the prediction: move its ends by the score that is expected, and
    the rule works on what is left of the scores.

    Parameters
    ----------
    integral
        K, in units of λ: twice the range of past scores is usual, 0 leaves the integrator out.
    rate
        The step size as a share of the range of the last scores.
    saturation
        C: the integrator has no end where Σc reaches (π/2)·C·k/ln k.

    Examples
    --------
    >>> step = PI(integral=0.0)
    >>> theta, memory = step.rule(step.params, 0.0, step.init(), 0.9, 1.0)
    >>> theta  # one score has no range
    0.0
    >>> round(step.rule(step.params, theta, memory, 0.9, 3.0)[0], 9)
    0.18

    References
    ----------
    Angelopoulos, Candès and Tibshirani 2023, Conformal PID control for time series prediction.
    """

    integral: float
    rate: float = 0.1
    saturation: float = 5.0

    scored = True
    rule = staticmethod(proportional_integral)

    def __post_init__(self) -> None:
        make_positive(self, "rate", "saturation")
        integral = finite(self.integral, "PI.integral")
        if integral < 0.0:
            raise InputError(f"PI.integral must be at least 0, got {integral}")
        object.__setattr__(self, "integral", integral)

    @property
    def params(self) -> Memory:
        return (self.rate, self.integral, self.saturation)

    def init(self) -> Memory:
        """v, the θ shown last, Σc, the number of labels and that of scores, and the last scores."""
        return (0.0,) * (5 + SCORES)

    def claim(self, within: Within, memory: Memory, T: int) -> Claim:
        """Nothing: the published bound of the integrator, about 1.6·C/ln T, says nothing."""
        return nothing(_UNEVEN)


def error_quantified(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """v + η·x·c·σ'(c·x) with x = s − θ, where v ← v + η(l − r) and η = rate·range."""
    rate, sharpness = params
    base, shown, count, typical = memory[:4]
    scores = _with(memory[4:], critical, count)
    size = rate * _range(scores)
    base += lift(theta, shown) + size * excess
    push = 0.0
    if known(critical):
        error = critical - theta
        usual = 1.157 / typical if typical > 1e-300 else 0.0
        push = _swing(error * (sharpness if sharpness > 0.0 else usual))
        count += 1.0
        share = 1.0 / count
        typical += (share if share > 0.02 else 0.02) * (abs(error) - typical)
    theta = base + size * push
    return theta, (base, theta, count, typical, *scores)


def _swing(error: float) -> float:
    """x·σ'(x), at most 0.224 in size."""
    size = abs(error)
    if size > 700.0:
        return 0.0
    small = exp(-size)
    return error * small / ((1.0 + small) * (1.0 + small))


@dataclass(frozen=True, slots=True)
class ECI:
    """ECI: quantile tracking, and a push by how far the last score lay from θ.

    θ = v + η·x·c·σ'(c·x), where x is the last score less θ, σ the logistic function,
    v ← v + η(l − r), and η a share of the range of the last 100 scores. The push is not summed up,
    as in the authors' code. The paper's formula sums it up, and so misses its level where errors
    are skewed.

    Parameters
    ----------
    rate
        η as a share of the range of the last scores.
    sharpness
        c, the paper has 1; it is not free of units. `None` takes 1.157 over the recent mean of |x|:
        each label has a weight of 1/50, more among the first fifty.

    Examples
    --------
    >>> step = ECI()
    >>> theta, memory = step.rule(step.params, 0.0, step.init(), -0.1, -1.0)
    >>> theta, memory = step.rule(step.params, theta, memory, 0.9, 1.0)
    >>> round(memory[0], 9), round(theta, 6)
    (0.18, 0.222112)

    References
    ----------
    Wu et al. 2025, Error-quantified conformal inference for time series.
    """

    rate: float = 0.1
    sharpness: float | None = None

    scored = True
    rule = staticmethod(error_quantified)

    def __post_init__(self) -> None:
        make_positive(self, "rate", *(() if self.sharpness is None else ("sharpness",)))

    @property
    def params(self) -> Memory:
        return (self.rate, 0.0 if self.sharpness is None else self.sharpness)

    def init(self) -> Memory:
        """v, the θ shown last, the number of scores, their usual distance, and the last scores."""
        return (0.0,) * (4 + SCORES)

    def claim(self, within: Within, memory: Memory, T: int) -> Claim:
        """Nothing, unlike the rule with a fixed step size."""
        return nothing(_UNEVEN)
