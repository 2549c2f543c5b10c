"""Published rules whose steps shrink with time, or that need no step size, for any bounded loss.

`Decaying` and `SFOGD` have a bound of the order of a power of T. `CoinBetting` has none.
"""

from dataclasses import dataclass
from math import inf, sqrt

from setpoint._check import finite
from setpoint.errors import InputError
from setpoint.steps.claims import (
    Claim,
    Memory,
    Premise,
    Within,
    bound,
    make_positive,
    nothing,
    swallowed,
)


def _shrinking(within: Within, fall: float, rise: float, size: float) -> Claim:
    """The claim of a rule whose step sizes η_1 ≥ η_2 ≥ … never grow; η_T is `size`.

    For every a, Σ(l − r) = Σ(θ_{t+1} − θ_t)/η_t is

        (θ_{T+1} − a)/η_T − (θ_1 − a)/η_1 − Σ(θ_t − a)(1/η_t − 1/η_{t−1}).

    With a the least θ only the first term is positive, and at most (high − low)/η_T. With a the
    greatest θ it is the other way round. Any window that ends at T may take the place of 1 … T.
    One label moves θ by `fall` to `rise`.
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
class Decaying:
    """Steps that shrink with time: θ ← θ + scale·max(k^−power, floor)·(l − r) at the k-th label.

    |Σ(l − r)| is at most (M − m + scale)/η_T after T labels, where η_T is the last step size (the
    proof is in two lines: `1/η` is summed by parts). With a floor it holds on every window.

    Parameters
    ----------
    scale
        The first step size, in units of θ; the range of past scores is usual.
    power
        How fast steps shrink. Above one half, θ converges where the data do not change.
    floor
        The least step size, as a share of `scale`. The paper has none: 0 is its rule, which no
        longer follows late changes.

    Examples
    --------
    >>> step = Decaying(2.0, power=0.5)
    >>> theta, memory = step.rule(step.params, 0.0, (3.0,), 0.9, 0.0)
    >>> theta, memory
    (0.9, (4.0,))

    References
    ----------
    Angelopoulos, Barber and Bates 2024, Online conformal prediction with decaying step sizes.
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

    @property
    def params(self) -> Memory:
        return (self.scale, self.power, self.floor)

    def init(self) -> Memory:
        """No label yet."""
        return (0.0,)

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
class SFOGD:
    """SF-OGD: θ ← θ + η·c/√Σc² with c = l − r and η = scale/√3.

    No label moves θ by more than η, so |Σc| is at most ((M − m + 2η)/η)·√Σc² after T labels, of the
    order of √T. (The published bound is of the order of T^¾ log T.) Steps shrink like 1/√T: late
    changes are followed slowly. Published code projects θ to θ ≥ 0, which costs one side of the
    bound; here θ is free.

    Parameters
    ----------
    scale
        The largest score to be expected in size, from past data; in units of θ.

    Examples
    --------
    >>> step = SFOGD(3.0**0.5)
    >>> theta, memory = step.rule(step.params, 0.0, step.init(), 0.9, 0.0)
    >>> round(theta, 9), round(memory[0], 9)
    (1.0, 0.81)

    References
    ----------
    Orabona and Pál 2018; Bhatnagar et al. 2023, Improved online conformal prediction via strongly
    adaptive online learning.
    """

    scale: float

    rule = staticmethod(scale_free)

    def __post_init__(self) -> None:
        make_positive(self, "scale")

    @property
    def params(self) -> Memory:
        return (self.scale / sqrt(3.0),)

    def init(self) -> Memory:
        """Σc² of no label."""
        return (0.0,)

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
class CoinBetting:
    """Coin betting (Krichevsky and Trofimov): a rule without step size.

    θ is the first θ plus a share of the wealth W, Σc/(k + 1) with c = l − r. W begins at `scale`
    and grows by c times what was bet. It is kept from falling below 0, which for losses in [0, 1]
    it does not. The whole past has the same weight, so changes are followed slowly.

    Parameters
    ----------
    scale
        The first wealth, in units of θ: the size of a typical score.

    Examples
    --------
    >>> step = CoinBetting(1.0)
    >>> theta, memory = step.rule(step.params, 0.0, step.init(), 0.9, 0.0)
    >>> theta
    0.45
    >>> step.rule(step.params, theta, memory, 0.9, 0.0)[0]
    0.843

    References
    ----------
    Orabona and Pál 2016; Podkopaev, Xu and Lee 2024, Adaptive conformal inference by betting.
    """

    scale: float

    rule = staticmethod(betting)

    def __post_init__(self) -> None:
        make_positive(self, "scale")

    @property
    def params(self) -> Memory:
        return (self.scale,)

    def init(self) -> Memory:
        """The origin of θ, the θ shown last, Σc, the number of labels, and the gain."""
        return (0.0, 0.0, 0.0, 0.0, 0.0)

    def claim(self, within: Within, memory: Memory, T: int) -> Claim:
        """Nothing: the sum is only known to grow more slowly than T."""
        return nothing("a bound with numbers is known (the mean comes to its level in the end)")
