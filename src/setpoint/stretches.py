"""Stretching functions φ: how far a step of θ moves λ.

A stretch has `params` and a memory (`init()`, a tuple of floats); `phi(params, memory, theta)` is a
pure function. One that adapts also has `move(params, memory, excess, score, lam)`, called once a
step with the excess l − r, the critical value of y and the λ that was shown; it returns the next
memory. Saturation is decided on θ, so no stretch can break the guarantee. A step rule with a book
(`steps.Account`) hands over how hard its account presses in place of θ.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, log1p
from typing import Any, Protocol, runtime_checkable

from setpoint._check import choice, finite, not_negative, number, positive
from setpoint.errors import InputError
from setpoint.parts import Capability

__all__ = [
    "ErrorAdaptive", "Exponential", "Identity", "ScoreAdaptive", "Tracking",
    "clip_bounds",
]  # fmt: skip

Memory = tuple[float, ...]

_MOST = 709.0
"""e to a larger power overflows: plain Python raises, compiled code gives inf."""


@runtime_checkable
class Always(Protocol, metaclass=Capability):
    """A stretch that moves after every label, if `always` is true; else not where the safeguard
    chose the set."""

    @property
    def always(self) -> bool: ...


@runtime_checkable
class Stretch(Protocol, metaclass=Capability):
    """The interface of a stretch."""

    @property
    def params(self) -> Memory: ...
    @property
    def phi(self) -> Any: ...
    @property
    def move(self) -> Any: ...
    def init(self) -> Memory: ...
    def inverse(self, lam: float, memory: Memory) -> float: ...


def identity(params: Memory, memory: Memory, theta: float) -> float:
    """φ(θ) = θ."""
    return theta


def exponential(params: Memory, memory: Memory, theta: float) -> float:
    """φ(θ) = sign(θ)(e^|θ| − 1)."""
    size = theta if theta >= 0.0 else -theta
    grown = exp(size if size < _MOST else _MOST) - 1.0
    return grown if theta >= 0.0 else -grown


def shifted_identity(params: Memory, memory: Memory, theta: float) -> float:
    """φ(θ) = θ + memory."""
    return theta + memory[0]


def shifted_exponential(params: Memory, memory: Memory, theta: float) -> float:
    """φ(θ) = sign(θ)(e^|θ| − 1) + memory."""
    return exponential(params, memory, theta) + memory[0]


def _clip(value: float, low: float, high: float) -> float:
    return low if value < low else high if value > high else value


def _growth(beta: float, excess: float) -> float:
    """exp(β|l − r|), with the exponent clamped."""
    power = beta * (excess if excess >= 0.0 else -excess)
    return exp(power if power < _MOST else _MOST)


def error_paper(params: Memory, memory: Memory, excess: float, score: float, lam: float) -> Memory:
    """memory + β_score·s·exp(β_loss|l − r|), clipped; β_loss = 0 follows the score alone."""
    beta_score, beta_loss, low, high = params
    growth = _growth(beta_loss, excess)
    moved = _clip(memory[0] + beta_score * score * growth, low, high)
    return (moved,)


def error_authors(
    params: Memory, memory: Memory, excess: float, score: float, lam: float
) -> Memory:
    """memory + β_score·exp(β_loss|l − r|)·sign(l − r)·|s − λ|, clipped."""
    return (_towards(params, memory[0], excess, score, lam, _growth(params[1], excess)),)


def error_later(params: Memory, memory: Memory, excess: float, score: float, lam: float) -> Memory:
    """memory + β_score·(exp(β_loss|l − r|) − 1)·sign(l − r)·|s − λ|, clipped."""
    return (_towards(params, memory[0], excess, score, lam, _growth(params[1], excess) - 1.0),)


def _towards(
    params: Memory, offset: float, excess: float, score: float, lam: float, growth: float
) -> float:
    """The offset after a step of β_score·growth·|s − λ| in the direction of the excess."""
    if excess == 0.0 or growth <= 0.0:
        return offset
    distance = params[0] * abs(score - lam) * growth
    return _clip(offset + (distance if excess > 0.0 else -distance), params[2], params[3])


@dataclass(frozen=True, slots=True)
class Identity:
    """No stretching: λ = θ.

    >>> stretch = Identity()
    >>> stretch.phi(stretch.params, stretch.init(), 2.0)
    2.0
    """

    params = ()
    phi = staticmethod(identity)
    move = None

    def init(self) -> Memory:
        """Nothing to remember."""
        return ()

    def inverse(self, lam: float, memory: Memory = ()) -> float:
        """The θ whose λ is `lam`."""
        return lam


@dataclass(frozen=True, slots=True)
class Exponential:
    """Gentle near zero, fast away from it: λ = sign(θ)(e^|θ| − 1).

    >>> stretch = Exponential()
    >>> round(stretch.phi(stretch.params, stretch.init(), -2.0), 4)
    -6.3891
    >>> round(stretch.inverse(-6.3890561), 4)
    -2.0
    """

    params = ()
    phi = staticmethod(exponential)
    move = None

    def init(self) -> Memory:
        """Nothing to remember."""
        return ()

    def inverse(self, lam: float, memory: Memory = ()) -> float:
        """The θ whose λ is `lam`, at most 709 in size: beyond it φ would overflow."""
        size = min(log1p(abs(lam)), _MOST)
        return size if lam >= 0.0 else -size


Inner = Identity | Exponential


_READINGS = {"paper": error_paper, "authors": error_authors, "later": error_later}


class _Adaptive:
    """What score and error adaptive stretching share; abstract: the options are not here."""

    __slots__ = ()

    score: float
    low: float | None
    high: float | None
    inner: Inner
    reading: str

    def _check(self, *others: str) -> None:
        name = type(self).__name__
        object.__setattr__(self, "score", positive(self.score, f"{name}.score"))
        if (self.low is None) != (self.high is None):
            ends = f"got {self.low}, {self.high}"
            raise InputError(f"{name} takes both low and high or neither, {ends}")
        if self.low is not None:
            low, high = finite(self.low, f"{name}.low"), finite(self.high, f"{name}.high")
            if not low <= 0.0 <= high:
                raise InputError(f"{name} must have low ≤ 0 ≤ high, got ({low}, {high})")
            object.__setattr__(self, "low", low)
            object.__setattr__(self, "high", high)
        choice(self.reading, f"{name}.reading", ("paper", "authors", *others))
        if not isinstance(self.inner, Inner):
            raise InputError(
                f"{name}.inner must be Identity() or Exponential(), got {self.inner!r}"
            )

    def _clips(self) -> tuple[float, float]:
        if self.low is None or self.high is None:
            raise InputError(
                f"{type(self).__name__} has no clip bounds yet: give low and high, for example by "
                "stretches.clip_bounds(y), or let setpoint.burn_in choose them"
            )
        return self.low, self.high

    @property
    def phi(self) -> Any:
        return shifted_identity if self.inner == Identity() else shifted_exponential

    @property
    def move(self) -> Any:
        return _READINGS[self.reading]

    def init(self) -> Memory:
        """No offset."""
        return (0.0,)

    def inverse(self, lam: float, memory: Memory = (0.0,)) -> float:
        """The θ whose λ is `lam` under this memory."""
        return self.inner.inverse(lam - memory[0])


@dataclass(frozen=True, slots=True)
class ScoreAdaptive(_Adaptive):
    """An offset that follows the scores: λ = inner(θ) + memory.

    After each step, memory ← clip(memory + β·s, low, high), where s is the signed distance of y
    from the nearer end of the uncalibrated interval, positive outside.

    Parameters
    ----------
    score
        The paper's β_score.
    low, high
        What the memory is clipped to, as `clip_bounds(y)`. `None` leaves it to `setpoint.burn_in`.
    inner
        `Identity()` or `Exponential()`.
    reading
        "paper", with the sign that follows from its own argument, or "authors":
        β·sign(l − r)·|s − λ|, as in the code behind the printed figures.
    """

    score: float
    low: float | None = None
    high: float | None = None
    inner: Inner = Identity()
    reading: str = "paper"

    scored = True

    def __post_init__(self) -> None:
        self._check()

    @property
    def params(self) -> Memory:
        return (self.score, 0.0, *self._clips())


@dataclass(frozen=True, slots=True)
class ErrorAdaptive(_Adaptive):
    """An offset that follows the scores, faster after a loss far from its level.

    After each step, memory ← clip(memory + β_score·exp(β_loss·|l − r|)·sign(l − r)·|s − λ|, low,
    high), where s is the signed distance of y from the nearer end of the uncalibrated interval.

    Parameters
    ----------
    score, loss
        The paper's β_score and β_loss.
    low, high, inner
        As for `ScoreAdaptive`.
    reading
        "authors", as in the code behind the printed figures; "paper", with the score s in place of
        sign(l − r)·|s − λ|, which is worse on all of its data sets; "later", with exp(…) − 1 in
        place of exp(…), as in the authors' later code.

    Examples
    --------
    >>> stretch = ErrorAdaptive(score=0.1, loss=0.1, low=-1.0, high=1.0)
    >>> memory = stretch.move(stretch.params, stretch.init(), 0.9, 2.0, 0.0)
    >>> round(stretch.phi(stretch.params, memory, 0.5), 6)
    0.718835
    >>> shrunk = stretch.move(stretch.params, memory, -0.1, 0.5, 0.7)
    >>> shrunk < memory
    True
    """

    score: float
    loss: float
    low: float | None = None
    high: float | None = None
    inner: Inner = Identity()
    reading: str = "authors"

    scored = True

    def __post_init__(self) -> None:
        self._check("later")
        object.__setattr__(self, "loss", not_negative(self.loss, "ErrorAdaptive.loss"))

    @property
    def params(self) -> Memory:
        return (self.score, self.loss, *self._clips())


def tracking(params: Memory, memory: Memory, theta: float) -> float:
    """c + s·(q + θ): the λ that is expected, its scale and quantile, and what the account adds."""
    labels, mean, pull, _, scale, quantile, last, _ = memory
    centre = mean + pull * (last - mean)
    return centre + scale * (quantile + theta) if labels > 0.0 else inf


def tracking_move(
    params: Memory, memory: Memory, excess: float, score: float, lam: float
) -> Memory:
    """What the λ that would have kept the loss at its level teaches about the next one."""
    labels, mean, pull, spread, scale, quantile, last, jump = memory
    if not (-1e150 < score < 1e150):  # no λ, or every λ, would have done: nothing to learn but this
        rate = 2.0 / (labels + 9.0)
        quantile += (rate if rate > params[0] else params[0]) * excess
        return labels, mean, pull, spread, scale, quantile, last, jump
    labels += 1.0
    share = 1.0 / (labels + 1.0)
    if labels == 1.0:
        return labels, score, pull, spread, scale, quantile, score, jump
    shift = last - mean
    centre = mean + pull * shift
    rest = score - centre
    size = rest if rest > 0.0 else -rest
    if labels > 20.0:  # one odd label is not believed, two are
        most = 6.0 * (scale if scale > jump else jump)
        score = centre + _clip(rest, -most, most)
    jump = size
    if scale > 0.0:
        rate = 2.0 / (labels + 8.0)
        quantile += (rate if rate > params[0] else params[0]) * excess
        rate = 1.0 / (labels + 10.0)
        step = _clip(rest / scale, -6.0, 6.0) * (rate if rate > 0.01 else 0.01)
        part = _clip(shift / scale, -1e9, 1e9)
        square = part * part
        most = 100.0 * spread + 100.0
        rate = share if share > 0.01 else 0.01
        spread += rate * ((square if square < most else most) - spread)
        least = 0.02 * square
        pull += step * part / ((spread if spread > least else least) + 0.1)
        rate = share if share > 0.05 else 0.05
        scale += rate * (abs(score - centre) - scale)
    else:
        scale = size
    rate = share if share > 0.2 else 0.2
    mean += rate * (score - mean)
    return labels, mean, pull, spread, scale, quantile, score, jump


@dataclass(frozen=True, slots=True)
class Tracking:
    """The budget for sets with one λ: label sets, several labels, images, and any bounded loss.

    It follows the λ that would have kept the loss at its level: where the next one is expected, on
    what scale it varies, which quantile of it is right. The account then widens or narrows the set,
    in units of that scale. Before the first label the set is full. For `steps.Account`. `rate` is
    how fast the quantile follows the losses, at the least.

    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Account())
    >>> stream = sp.Stream(sp.Controller(sp.sets.Threshold(), risk, Tracking()))
    >>> len(stream.predict([0.7, 0.2, 0.1]))
    3
    """

    rate: float = 0.05

    phi = staticmethod(tracking)
    move = staticmethod(tracking_move)
    always = True
    scored = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive(self.rate, "Tracking.rate"))

    @property
    def params(self) -> Memory:
        return (self.rate,)

    def init(self) -> Memory:
        """Nothing was seen: the next λ is expected halfway between the last one and their mean."""
        return (0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0, 0.0)

    def inverse(self, lam: float, memory: Memory) -> float:
        """The θ whose λ is `lam`; 0 before the first label, when every λ is infinite."""
        labels, mean, pull, _, scale, quantile, last, _ = memory
        if labels == 0.0 or scale == 0.0:
            return 0.0
        return (lam - mean - pull * (last - mean)) / scale - quantile


def clip_bounds(y: Iterable[float]) -> tuple[float, float]:
    """The paper's clip bounds, ±mean |y_t − y_{t−1}|; steps over a NaN label are left out.

    >>> clip_bounds([1.0, 2.0, 4.0])
    (-1.5, 1.5)
    """
    values = [number(value, "a label") for value in y]
    if any(value in (inf, -inf) for value in values):
        raise InputError("labels for clip bounds must be finite or NaN, got an infinite one")
    gaps = [abs(after - before) for before, after in pairwise(values)]
    gaps = [gap for gap in gaps if gap == gap]
    if not gaps:
        raise InputError(f"clip bounds need two consecutive labels, got {len(values)} values")
    mean = sum(gaps) / len(gaps)
    return -mean, mean
