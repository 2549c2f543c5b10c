"""A published rule that mixes experts: DtACI.

Each expert is a rule with a step size of its own. What anti-windup adds to θ is added to each. A
memory has a fixed size, so the number of experts is fixed: SAOCP (Bhatnagar et al. 2023), whose
number of experts grows with time, is not here.
"""

from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any

from setpoint._check import choice, whole
from setpoint.steps.claims import Claim, Memory, Within, make_positive, nothing
from setpoint.steps.control import LARGEST, known, lift

EXPERTS = 8


def _sum(values: Memory) -> float:
    """The sum of eight numbers, from left to right."""
    a, b, c, d, e, f, g, h = values
    return a + b + c + d + e + f + g + h


def _times(left: Memory, right: Memory) -> Memory:
    """The products of eight numbers and eight others."""
    a, b, c, d, e, f, g, h = left
    i, j, k, m, n, o, p, q = right
    return (a * i, b * j, c * k, d * m, e * n, f * o, g * p, h * q)


def _moved(values: Memory, by: Memory, times: float) -> Memory:
    """Eight numbers, each moved by `times` one of eight others."""
    a, b, c, d, e, f, g, h = values
    i, j, k, m, n, o, p, q = by
    return (
        a + times * i, b + times * j, c + times * k, d + times * m,
        e + times * n, f + times * o, g + times * p, h + times * q,
    )  # fmt: skip


_NONE, _ONES = (0.0,) * EXPERTS, (1.0,) * EXPERTS


def _weighed(params: Memory, weights: Memory, losses: Memory, power: float) -> Memory:
    """w·e^(−η·loss), summing to 1, mixed with equal weights; `power` is Σloss² of the past."""
    heat = sqrt(params[2] / (power if power > 1e-12 else 1e-12)) if power > 0.0 else 0.0
    least = min(losses)
    a, b, c, d, e, f, g, h = losses
    weights = _times(weights, (
        exp(heat * (least - a)), exp(heat * (least - b)), exp(heat * (least - c)),
        exp(heat * (least - d)), exp(heat * (least - e)), exp(heat * (least - f)),
        exp(heat * (least - g)), exp(heat * (least - h)),
    ))  # fmt: skip
    mixed = params[1] / 2.0
    even = mixed / 8.0
    kept = (1.0 - mixed) / _sum(weights)
    return _moved((even, even, even, even, even, even, even, even), weights, kept)


def _remembered(params: Memory, power: float, square: float) -> float:
    """Σloss², of which the older ones are forgotten; one loss never counts for all."""
    return power * (1.0 - params[1]) + (square if square < LARGEST else LARGEST)


def mixture(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """Experts θ_k + γ_k(l(θ_k) − r), weighed by Φ(θ_k) = (l(θ_k) − r)(s − θ_k).

    That is the pinball loss of θ_k at the score s, for a loss of 0 and 1.
    """
    up = excess if excess > 0.0 else 1.0 + excess
    down = up - 1.0
    thetas = _moved(memory[1:9], _ONES, lift(theta, memory[0]))
    weights, power = memory[9:17], memory[17]
    a, b, c, d, e, f, g, h = thetas
    excesses = (
        up if critical > a else down, up if critical > b else down,
        up if critical > c else down, up if critical > d else down,
        up if critical > e else down, up if critical > f else down,
        up if critical > g else down, up if critical > h else down,
    )  # fmt: skip
    if known(critical):
        away = (
            critical - a, critical - b, critical - c, critical - d,
            critical - e, critical - f, critical - g, critical - h,
        )  # fmt: skip
        losses = _moved(_NONE, _times(excesses, away), 1.0 / params[0])
        mean = _sum(_times(weights, losses))
        weights = _weighed(params, weights, losses, power)
        power = _remembered(params, power, mean * mean)
    thetas = _moved(thetas, _times(params[3:11], excesses), 1.0)
    theta = _sum(_times(weights, thetas))
    return theta, (theta, *thetas, *weights, power)


def mixture_linear(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """Experts θ_k + γ_k(l − r), weighed by (r − l)·θ_k: only the loss that was shown is known."""
    thetas = _moved(memory[1:9], _ONES, lift(theta, memory[0]))
    weights, power = memory[9:17], memory[17]
    slope = -excess / params[0]
    losses = _moved(_NONE, _moved(thetas, _ONES, -theta), slope)
    square = _sum(_times(weights, _times(losses, losses)))
    weights = _weighed(params, weights, losses, power)
    power = _remembered(params, power, square)
    thetas = _moved(thetas, params[3:11], excess)
    theta = _sum(_times(weights, thetas))
    return theta, (theta, *thetas, *weights, power)


@dataclass(frozen=True, slots=True)
class DtACI:
    """DtACI in units of λ: eight experts with steps of their own, and the mean of their θ.

    Expert k moves by γ_k(l(θ_k) − r) with γ_k = scale·0.004·2^k. Its weight is multiplied by
    e^(−η·loss_k), and all are mixed with equal weights, 1/(2I) of each. η² is (ln(16·I) + 1)
    over the sum of past squared losses. The paper sums the last I of them; here older ones are
    forgotten at the rate 1/I instead, so that the memory is small. The paper's experts lie in α,
    with a window of scores; these lie in θ, as everywhere here.

    Parameters
    ----------
    scale
        The range of past scores: the unit of steps and losses, in units of λ.
    surrogate
        What experts are judged by. "potential" is Φ(θ) = ∫(r − l), for losses of 0 and 1 only, from
        which the rule learns r and the loss of each expert. "linear" is (r − l)(θ_k − θ), for every
        bounded loss; η then has the mean of loss_k² in place of the square of the mean, which is 0.
    interval
        I, the length of time within which the best expert should be matched.

    Examples
    --------
    >>> step = DtACI(1.0)
    >>> theta, memory = step.rule(step.params, 0.0, step.init(), 0.9, 1.0)
    >>> round(theta, 6)  # 0.9 times the mean of all γ
    0.11475

    References
    ----------
    Gibbs and Candès 2024, Conformal inference for online prediction with arbitrary distribution
    shifts.
    """

    scale: float
    surrogate: str = "potential"
    interval: int = 500

    def __post_init__(self) -> None:
        make_positive(self, "scale")
        choice(self.surrogate, "DtACI.surrogate", ("potential", "linear"))
        object.__setattr__(self, "interval", whole(self.interval, "DtACI.interval", 1))

    @property
    def scored(self) -> bool:
        """Whether it asks for the critical value of y."""
        return self.surrogate == "potential"

    @property
    def rule(self) -> Any:
        return mixture if self.surrogate == "potential" else mixture_linear

    @property
    def params(self) -> Memory:
        sizes = (self.scale * 0.004 * 2.0**k for k in range(EXPERTS))
        heat = log(2.0 * EXPERTS * self.interval) + 1.0
        return (self.scale, 1.0 / self.interval, heat, *sizes)

    def init(self) -> Memory:
        """The θ shown last, each expert's θ, their weights, and Σloss²."""
        return (0.0, *(0.0,) * EXPERTS, *(1.0 / EXPERTS,) * EXPERTS, 0.0)

    def claim(self, within: Within, memory: Memory, T: int) -> Claim:
        """Nothing: the mixture has small regret, of which no bound on the loss follows."""
        return nothing("θ moves with the loss alone (it is a mixture of experts)")
