"""Stretching functions φ: how far a step of θ moves λ.

A stretch has `params` and a memory (`init()`, a tuple of floats); `phi(params, memory, theta)`
is a pure function. One that adapts also has `move(params, memory, excess, score, lam)`, called
once a step with the excess l − r, the critical value of y and the λ that was shown; it returns
the next memory. Saturation is decided on θ, so no stretch can break the guarantee.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import exp, inf, log1p
from typing import Any, Protocol, runtime_checkable

from setpoint._check import choice, finite, number, positive
from setpoint.errors import InputError
from setpoint.parts import Capability, ours

__all__ = [
    "ErrorAdaptive", "Exponential", "Identity", "ScoreAdaptive", "Stretch", "clip_bounds",
    "error_authors", "error_paper", "exponential", "identity",
    "shifted_exponential", "shifted_identity",
]  # fmt: skip

Memory = tuple[float, ...]

LARGEST_EXPONENT = 709.0
"""e to a larger power overflows: plain Python raises, compiled code gives inf."""


@runtime_checkable
class Stretch(Protocol, metaclass=Capability):
    """What the controller asks of a stretch."""

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
    grown = exp(size if size < LARGEST_EXPONENT else LARGEST_EXPONENT) - 1.0
    return grown if theta >= 0.0 else -grown


def shifted_identity(params: Memory, memory: Memory, theta: float) -> float:
    """φ(θ) = θ + memory."""
    return theta + memory[0]


def shifted_exponential(params: Memory, memory: Memory, theta: float) -> float:
    """φ(θ) = sign(θ)(e^|θ| − 1) + memory."""
    grown = exponential(params, memory, theta)
    return grown + memory[0]


def _clip(value: float, low: float, high: float) -> float:
    return low if value < low else high if value > high else value


def _growth(beta: float, excess: float) -> float:
    """exp(β|l − r|), with the exponent clamped."""
    power = beta * (excess if excess >= 0.0 else -excess)
    return exp(power if power < LARGEST_EXPONENT else LARGEST_EXPONENT)


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
    beta_score, beta_loss, low, high = params
    moved = memory[0]
    if excess != 0.0:
        growth = _growth(beta_loss, excess)
        distance = beta_score * abs(score - lam) * growth
        moved = _clip(moved + (distance if excess > 0.0 else -distance), low, high)
    return (moved,)


@ours
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


@ours
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
        size = min(log1p(abs(lam)), LARGEST_EXPONENT)
        return size if lam >= 0.0 else -size


Inner = Identity | Exponential


class _Adaptive:
    """What score and error adaptive stretching share; abstract: the options are not here."""

    __slots__ = ()

    score: float
    low: float | None
    high: float | None
    inner: Inner
    reading: str

    def _check(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "score", positive(self.score, f"{name}.score"))
        if (self.low is None) != (self.high is None):
            raise InputError(
                f"{name} takes both low and high or neither, got {self.low}, {self.high}"
            )
        if self.low is not None:
            low, high = finite(self.low, f"{name}.low"), finite(self.high, f"{name}.high")
            if not low <= 0.0 <= high:
                raise InputError(f"{name} must have low ≤ 0 ≤ high, got ({low}, {high})")
            object.__setattr__(self, "low", low)
            object.__setattr__(self, "high", high)
        choice(self.reading, f"{name}.reading", ("paper", "authors"))
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
        return error_paper if self.reading == "paper" else error_authors

    def init(self) -> Memory:
        """No offset."""
        return (0.0,)

    def inverse(self, lam: float, memory: Memory = (0.0,)) -> float:
        """The θ whose λ is `lam` under this memory."""
        return self.inner.inverse(lam - memory[0])


@ours
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
        What the memory is clipped to; `clip_bounds(y)` gives the paper's choice. `None` leaves
        the choice to `setpoint.burn_in`.
    inner
        `Identity()` or `Exponential()`.
    reading
        "paper", with the sign that follows from its own argument (the printed minus shrinks the
        set after a miss), or "authors": β·sign(l − r)·|s − λ|, as in the code behind the
        printed figures.
    """

    score: float
    low: float | None = None
    high: float | None = None
    inner: Inner = Identity()
    reading: str = "paper"

    def __post_init__(self) -> None:
        self._check()

    @property
    def params(self) -> Memory:
        return (self.score, 0.0, *self._clips())


@ours
@dataclass(frozen=True, slots=True)
class ErrorAdaptive(_Adaptive):
    """An offset that follows the scores, more so after a loss far from its level.

    As `ScoreAdaptive`, with the score's part multiplied by exp(β_loss·|l − r|).

    Parameters
    ----------
    score, loss
        The paper's β_score and β_loss.
    low, high, inner, reading
        As for `ScoreAdaptive`.

    Examples
    --------
    >>> stretch = ErrorAdaptive(score=0.1, loss=0.1, low=-1.0, high=1.0)
    >>> memory = stretch.move(stretch.params, stretch.init(), 0.9, 2.0, 0.0)
    >>> round(stretch.phi(stretch.params, memory, 0.5), 6)
    0.718835
    """

    score: float
    loss: float
    low: float | None = None
    high: float | None = None
    inner: Inner = Identity()
    reading: str = "paper"

    def __post_init__(self) -> None:
        self._check()
        loss = finite(self.loss, "ErrorAdaptive.loss")
        if loss < 0.0:
            raise InputError(f"ErrorAdaptive.loss must be at least 0, got {loss}")
        object.__setattr__(self, "loss", loss)

    @property
    def params(self) -> Memory:
        return (self.score, self.loss, *self._clips())


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
