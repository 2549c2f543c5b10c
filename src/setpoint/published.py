"""Published rules, under their usual names, as baselines.

`RULES` makes a controller of each, by its name in tables, of a coverage and a scale: how far apart
scores lie, such as the range of the scores of a burn-in. The step rules themselves go into any
`Risk`. `Decaying` and `SFOGD` have a bound that grows like a power of T; the others guarantee
nothing, and their certificates say so. What anti-windup adds to θ stays in it.

    >>> import numpy as np
    >>> import setpoint as sp
    >>> y = np.cumsum(np.random.default_rng(0).normal(size=500))
    >>> tape = sp.Tape.from_arrays({"lower": y[:-1], "upper": y[:-1]}, y[1:])
    >>> for name in ("ACI", "DtACI"):
    ...     print(name, round(sp.replay(sp.published.RULES[name](0.9, 4.0), tape).coverage, 2))
    ACI 0.9
    DtACI 0.89
"""

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from math import exp, inf, log, pi, sqrt, tan

from setpoint._check import finite, whole
from setpoint.controller import Controller, Risk
from setpoint.errors import InputError
from setpoint.losses import Miscoverage
from setpoint.presets import miss_level
from setpoint.sets import ScoreWindow, Widen
from setpoint.sets.family import Family
from setpoint.steps import Claim, Fixed, Premise, Step, Within
from setpoint.steps.claims import Memory, bound, make_positive, nothing, swallowed

__all__ = ["ECI", "PI", "RULES", "SFOGD", "CoinBetting", "Decaying", "DtACI", "aci"]


class _Published:
    """What these rules share: their options as numbers, a memory of zeros, and no claim."""

    __slots__ = ()

    size = 1
    lacks = "a bound with numbers is known"

    @property
    def params(self) -> Memory:
        return astuple(self)  # type: ignore[call-overload,no-any-return]

    def init(self) -> Memory:
        """Zeros."""
        return (0.0,) * self.size

    def claim(self, within: Within, memory: Memory, T: int) -> Claim:
        """Nothing."""
        return nothing(self.lacks)


# Steps that shrink


def _shrinking(within: Within, fall: float, rise: float, size: float) -> Claim:
    """The claim of a rule whose step sizes η_1 ≥ η_2 ≥ … never grow; η_T is `size`.

    For every a, Σ(l − r) = Σ(θ_{t+1} − θ_t)/η_t is

        (θ_{T+1} − a)/η_T − (θ_1 − a)/η_1 − Σ(θ_t − a)(1/η_t − 1/η_{t−1}),

    so with a the least θ at most (high − low)/η_T, with a the greatest at least that negated, and
    the same on any window that ends at T. One label moves θ by `fall` to `rise`.
    """
    low, high = within.reach(fall, rise)
    falls = within.floor == -inf
    least = low if falls else min(within.floor, within.start)
    return Claim(
        lower=bound((low - high) / size),
        upper=bound((high - least) / size),
        window_needs_lower=falls,
        reach=(low, high),
        joint=falls,
        rounding=within.grain / size,
        premises=(Premise("step sizes never grow", True), *swallowed(within, size)),
    )


def decaying(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """θ + scale·max(k^−power, floor)·(l − r)."""
    scale, power, floor = params
    labels = memory[0] + 1.0
    share = labels**-power
    return theta + scale * (share if share > floor else floor) * excess, (labels,)


@dataclass(frozen=True, slots=True)
class Decaying(_Published):
    """Steps that shrink with time: θ ← θ + scale·max(k^−power, floor)·(l − r) at the k-th label.

    |Σ(l − r)| is at most (M − m + scale)/η_T after T labels, where η_T is the last step size; with
    a floor on every window. From Angelopoulos, Barber and Bates 2024, Online conformal prediction
    with decaying step sizes.

    Parameters
    ----------
    scale
        The first step size, in units of θ; the range of past scores is usual.
    power
        How fast steps shrink. Above one half, θ converges where the data do not change.
    floor
        The least step size, as a share of `scale`. The paper's is 0, which follows no late change.
    """

    scale: float
    power: float = 0.6
    floor: float = 0.01

    rule = staticmethod(decaying)

    def __post_init__(self) -> None:
        make_positive(self, "scale", "power")
        floor = finite(self.floor, "Decaying.floor")
        if not 0.0 <= floor <= 1.0:
            raise InputError(f"Decaying.floor must lie between 0 and 1, got {floor}")
        object.__setattr__(self, "floor", floor)

    def claim(self, within: Within, memory: Memory, T: int) -> Claim:
        """(high − low)/η_T, which grows like T^power until the floor is reached."""
        share = max(memory[0], 1.0) ** -self.power
        size = self.scale * max(share, self.floor)
        claim = _shrinking(within, self.scale * within.fall, self.scale * within.rise, size)
        growth = self.power if share > self.floor else 0.0
        if self.floor == 0.0 or claim.lower is None or claim.upper is None:
            return claim._replace(growth=growth)
        longest = size / (self.scale * self.floor)
        window = claim.lower * longest, claim.upper * longest
        return claim._replace(window=window, growth=growth)


def scale_free(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """θ + η·c/√Σc², with c = l − r."""
    squares = memory[0] + excess * excess
    move = params[0] * excess / sqrt(squares) if squares > 0.0 else 0.0
    return theta + move, (squares,)


@dataclass(frozen=True, slots=True)
class SFOGD(_Published):
    """SF-OGD: θ ← θ + η·c/√Σc² with c = l − r and η = scale/√3.

    No label moves θ by more than η, so |Σc| is at most ((M − m + 2η)/η)·√Σc² after T labels, of the
    order of √T. `scale` is the largest score to be expected, in units of θ. From Orabona and Pál
    2018 and Bhatnagar et al. 2023, whose code projects θ to θ ≥ 0 and loses one side of the bound.
    """

    scale: float

    rule = staticmethod(scale_free)

    def __post_init__(self) -> None:
        make_positive(self, "scale")

    @property
    def params(self) -> Memory:
        return (self.scale / sqrt(3.0),)

    def claim(self, within: Within, memory: Memory, T: int) -> Claim:
        """(high − low)·√Σc²/η."""
        most, root = self.params[0], sqrt(memory[0])
        size = most / root if root > 0.0 else inf
        fall, rise = (-most if within.fall < 0.0 else 0.0), (most if within.rise > 0.0 else 0.0)
        return _shrinking(within, fall, rise, size)._replace(growth=0.5)


def betting(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """origin + (Σc/(k + 1))·W, with W ← W + c·(θ − origin)."""
    origin, shown, total, labels, gain = memory
    origin += theta - shown
    gain += excess * (theta - origin)
    gain = gain if gain > -params[0] else -params[0]
    total, labels = total + excess, labels + 1.0
    theta = origin + total / (labels + 1.0) * (params[0] + gain)
    return theta, (origin, theta, total, labels, gain)


@dataclass(frozen=True, slots=True)
class CoinBetting(_Published):
    """Coin betting (Krichevsky and Trofimov): a rule without step size.

    θ is the first θ plus a share of the wealth W, Σc/(k + 1) with c = l − r. W begins at `scale`,
    the size of a typical score, and grows by c times what was bet; it stays above 0. From Orabona
    and Pál 2016, and Podkopaev, Xu and Lee 2024, Adaptive conformal inference by betting.
    """

    scale: float

    size = 5
    lacks = "a bound with numbers is known (the mean comes to its level in the end)"
    rule = staticmethod(betting)

    def __post_init__(self) -> None:
        make_positive(self, "scale")


# Steps as long as the range of the scores. Late labels are compared with the θ of now.

_LARGEST = 1e300
"""Stands for infinity in θ and in memories, which are finite; a larger score teaches nothing."""
_SCORES = 100
"""How many of the last scores count, and lie in the memory."""


def known(score: float) -> bool:
    """Whether a score can be counted with: there is one, and it is no overflow."""
    return (score > -_LARGEST) & (score < _LARGEST)


def _with(scores: Memory, score: float, count: float) -> Memory:
    """The last hundred scores and one more; the first of all stands for those before it."""
    if not known(score):
        return scores
    if count > 0.0:
        return (*scores[1:], score)
    ten = (score, score, score, score, score, score, score, score, score, score)
    return (*ten, *ten, *ten, *ten, *ten, *ten, *ten, *ten, *ten, *ten)


def lift(theta: float, shown: float) -> float:
    """What was added to θ since it was shown; nothing that counts where it stood for infinity."""
    return theta - shown if known(shown) else 0.0


def proportional_integral(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """v + K·tan(Σc·ln(k + 1)/(C·(k + 1))), with v ← v + rate·range·c and c = l − r."""
    gain, rate, saturation = params
    base, shown, total, labels, count = memory[:5]
    scores = _with(memory[5:], critical, count)
    count += known(critical)
    base += lift(theta, shown) + rate * (max(scores) - min(scores)) * excess
    total, labels = total + excess, labels + 1.0
    angle = total * log(labels + 1.0) / (saturation * (labels + 1.0))
    if (angle >= pi / 2.0) | (angle <= -pi / 2.0):
        theta = base + gain * (_LARGEST if angle > 0.0 else -_LARGEST)
    else:
        theta = base + gain * tan(angle)
    theta = -_LARGEST if theta < -_LARGEST else _LARGEST if theta > _LARGEST else theta
    return theta, (base, theta, total, labels, count, *scores)


@dataclass(frozen=True, slots=True)
class PI(_Published):
    """Conformal PI control: quantile tracking with a saturating integrator.

    θ = v + K·tan(Σc·ln(k + 1)/(C·(k + 1))) with c = l − r after k labels, where v ← v + rate·R·c
    and R is the range of the last 100 scores. Where the tangent has no end θ is ±1e300. A
    scorecaster belongs to the prediction: move its ends by the score that is expected. From
    Angelopoulos, Candès and Tibshirani 2023, Conformal PID control for time series prediction.

    Parameters
    ----------
    integral
        K, in units of λ: twice the range of past scores is usual, 0 leaves the integrator out.
    rate
        The step size as a share of the range of the last scores.
    saturation
        C: the integrator has no end where Σc reaches (π/2)·C·k/ln k.
    """

    integral: float
    rate: float = 0.1
    saturation: float = 5.0

    size = 5 + _SCORES
    lacks = "step sizes never grow (they follow the range of the last 100 scores)"
    scored = True
    rule = staticmethod(proportional_integral)

    def __post_init__(self) -> None:
        make_positive(self, "rate", "saturation")
        make_positive(self, "integral", zero=True)


def error_quantified(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """v + η·x·c·σ'(c·x) with x = s − θ, where v ← v + η(l − r) and η = rate·range."""
    rate, sharpness = params
    base, shown, count, typical = memory[:4]
    scores = _with(memory[4:], critical, count)
    size = rate * (max(scores) - min(scores))
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
class ECI(_Published):
    """ECI: quantile tracking plus a push by the last score's distance from θ.

    θ = v + η·x·c·σ'(c·x), where x is the last score less θ, σ the logistic function,
    v ← v + η(l − r), and η a share of the range of the last 100 scores. The push is not summed up,
    as in the authors' code; the paper's formula does, and misses its level where errors are skewed.

    Parameters
    ----------
    rate
        η as a share of the range of the last scores.
    sharpness
        c, the paper has 1. `None` takes 1.157 over the recent mean of |x|, which has no unit.
    """

    rate: float = 0.1
    sharpness: float | None = None

    size = 4 + _SCORES
    lacks = PI.lacks
    scored = True
    rule = staticmethod(error_quantified)

    def __post_init__(self) -> None:
        make_positive(self, "rate", *(() if self.sharpness is None else ("sharpness",)))

    @property
    def params(self) -> Memory:
        return (self.rate, 0.0 if self.sharpness is None else self.sharpness)


# A mixture of eight experts. Compiled code takes tuples by name, so what is done to each is written
# out; SAOCP, whose number of experts grows with time, has no memory of a fixed size.


def _sum(values: Memory) -> float:
    a, b, c, d, e, f, g, h = values
    return a + b + c + d + e + f + g + h


def _times(left: Memory, right: Memory) -> Memory:
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


_NONE, _ONES = (0.0,) * 8, (1.0,) * 8


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
        square = mean * mean  # older ones are forgotten, and one never counts for all
        power = power * (1.0 - params[1]) + (square if square < _LARGEST else _LARGEST)
    thetas = _moved(thetas, _times(params[3:11], excesses), 1.0)
    theta = _sum(_times(weights, thetas))
    return theta, (theta, *thetas, *weights, power)


@dataclass(frozen=True, slots=True)
class DtACI(_Published):
    """DtACI in units of λ: eight experts with steps of their own, and the mean of their θ.

    Expert k moves by γ_k(l(θ_k) − r) with γ_k = scale·0.004·2^k, for losses of 0 and 1. Its weight
    is multiplied by e^(−η·loss_k), and all are mixed with equal weights, 1/(2I) of each. η² is
    (ln(16·I) + 1) over the sum of past squared losses, forgotten at the rate 1/I; the paper sums
    the last I of them. From Gibbs and Candès 2024, Conformal inference for online prediction with
    arbitrary distribution shifts, whose experts lie in α.

    Parameters
    ----------
    scale
        The range of past scores, in units of λ.
    interval
        I, the length of time within which the best expert should be matched.
    """

    scale: float
    interval: int = 500

    lacks = "θ moves with the loss alone (it is a mixture of experts)"
    scored = True
    rule = staticmethod(mixture)

    def __post_init__(self) -> None:
        make_positive(self, "scale")
        object.__setattr__(self, "interval", whole(self.interval, "DtACI.interval", 1))

    @property
    def params(self) -> Memory:
        sizes = (self.scale * 0.004 * 2.0**k for k in range(8))
        return (self.scale, 1.0 / self.interval, log(16.0 * self.interval) + 1.0, *sizes)

    def init(self) -> Memory:
        """The θ shown last, each expert's θ, their weights, and Σloss²."""
        return (0.0,) * 9 + (0.125,) * 8 + (0.0,)


# Whole controllers


def aci(
    coverage: float = 0.9, *, scores: Family | None = None, gamma: float = 0.005, size: int = 500
) -> Controller:
    """Adaptive conformal inference, with the defaults of its authors.

    Their α_t is −θ. It is not clipped, which would lose the guarantee: α_t ≤ 0 shows the full set
    and α_t ≥ 1 the empty one. From Gibbs and Candès, "Adaptive Conformal Inference Under
    Distribution Shift", NeurIPS 2021.

    Parameters
    ----------
    coverage
        The share of labels to cover.
    scores
        The family whose critical values are the conformity scores, `sets.Widen()` by default.
    gamma
        The step size.
    size
        How many of the last scores are the calibration set.

    Examples
    --------
    >>> import setpoint as sp
    >>> stream = sp.Stream(sp.published.aci(0.9))
    >>> stream.predict(12.0)  # a point forecast; no scores yet
    Interval(-inf, inf)
    >>> stream.update(12.5)
    0.0
    """
    family = ScoreWindow(Widen() if scores is None else scores, size)
    return Controller(family, Risk(Miscoverage(), miss_level(coverage), Fixed(gamma)))


def _held(step: Callable[[float], Step]) -> Callable[[float, float], Controller]:
    """The controller that widens given ends by a step rule made of a scale."""

    def controller(coverage: float, scale: float) -> Controller:
        return Controller(Widen(), Risk(Miscoverage(), miss_level(coverage), step(scale)))

    return controller


RULES: Mapping[str, Callable[[float, float], Controller]] = {
    "ACI": lambda coverage, _: aci(coverage),
    "fixed step": _held(lambda scale: Fixed(0.05 * scale)),
    "decaying step": _held(Decaying),
    "SF-OGD": _held(SFOGD),
    "coin betting": _held(CoinBetting),
    "DtACI": _held(DtACI),
    "ECI": _held(lambda _: ECI()),
    "PI": _held(lambda scale: PI(2.0 * scale)),
}
"""What makes a controller of a coverage and a scale, by the name of its rule."""
