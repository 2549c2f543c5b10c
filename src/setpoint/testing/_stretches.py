"""Whether a stretching keeps its promises."""

from itertools import pairwise, product
from math import inf, isfinite
from typing import Any

import numpy as np

from setpoint.testing._parts import (
    Memory,
    broken,
    check_value,
    first_memory,
    in_use,
    memory_of,
    same_values,
)

__all__ = ["check_stretch"]


def check_stretch(stretch: Any) -> None:
    """Checks a stretching function and, if it adapts, how its memory moves.

    Parameters
    ----------
    stretch
        See `setpoint.stretches`; one that adapts needs its clip bounds.

    Examples
    --------
    >>> from setpoint.stretches import ErrorAdaptive
    >>> check_stretch(ErrorAdaptive(score=0.1, loss=0.1, low=-1.0, high=1.0))
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Cube:
    ...     params, move = (), None
    ...
    ...     def phi(self, params, memory, theta):
    ...         return theta**3
    ...
    ...     def init(self):
    ...         return ()
    ...
    ...     def inverse(self, lam, memory=()):
    ...         return math.cbrt(lam)
    >>> check_stretch(Cube())
    Traceback (most recent call last):
    setpoint.testing.ConformanceError: Cube does not keep a promise: it works on what it reads,
    got OverflowError: ...
    """
    with in_use(stretch):
        params, first = memory_of(stretch, stretch.params, "params"), first_memory(stretch)
        memories = [first]
        if stretch.move is not None:
            memories += _moved(stretch, params, first)
        for memory in memories:
            _check_phi(stretch, params, memory)
    check_value("stretches", stretch)


_THETAS = (
    *(-1e300, -1e6, -710.0, -709.0, -100.0, -10.0, -1.0, -0.25, -1e-6),
    *(0.0, 1e-6, 0.25, 1.0, 10.0, 100.0, 709.0, 710.0, 1e6, 1e300),
)


def _phi(stretch: Any, params: Memory, memory: Memory, theta: float) -> float:
    lam = stretch.phi(params, memory, theta)
    if type(lam) is not float or not isfinite(lam):
        raise broken(stretch, f"φ(θ) is a finite float, got {lam!r} at θ = {theta}, {memory}")
    if stretch.phi(params, memory, theta) != lam:
        raise broken(stretch, f"φ gives one answer, got {lam} first at θ = {theta}, {memory}")
    return lam


def _check_phi(stretch: Any, params: Memory, memory: Memory) -> None:
    """φ under one memory: finite, monotone, inverted by `inverse`."""
    lams = [_phi(stretch, params, memory, theta) for theta in _THETAS]
    for (theta, lam), (larger, above) in pairwise(zip(_THETAS, lams, strict=True)):
        if above < lam:
            raise broken(
                stretch, f"φ does not fall with θ, got φ({theta}) = {lam} and φ({larger}) = {above}"
            )
    for theta, lam in zip(_THETAS, lams, strict=True):
        back = stretch.inverse(lam, memory)
        if not (isinstance(back, float) and isfinite(back)):
            raise broken(stretch, f"inverse(λ) is a finite float, got {back!r} at λ = {lam}")
        size = max(1.0, abs(theta), *map(abs, memory))
        near = theta - 1e-6 * size, theta + 1e-6 * size
        low, high = (_phi(stretch, params, memory, each) for each in near)
        # Where φ is flat any θ of the same λ will do.
        held = near[0] <= back <= near[1] if low < lam < high else low <= lam <= high
        again = _phi(stretch, params, memory, back)
        if not held or abs(again - lam) > 1e-6 * max(1.0, abs(lam), *map(abs, memory)):
            raise broken(
                stretch, f"inverse(φ(θ)) = θ, got {back} for θ = {theta} with memory {memory}"
            )


def _moved(stretch: Any, params: Memory, first: Memory) -> list[Memory]:
    """Memories that a random stream of excesses and scores leads to, the extreme ones included."""
    rng = np.random.default_rng(3)
    low, high = getattr(stretch, "low", None), getattr(stretch, "high", None)
    low, high = -inf if low is None else low, inf if high is None else high
    memories, memory = [], first
    steps = [(float(e), float(s), float(at)) for e, s, at in rng.normal(size=(200, 3))]
    extremes = product((0.9, -0.1, 0.0, 1e6, -1e6), (inf, -inf, 1e300, -1e300, 0.0), (0.0, 1e300))
    for excess, score, lam in (*steps, *extremes):
        moved = stretch.move(params, memory, excess, score, lam)
        where = f"by excess {excess}, score {score}, λ = {lam} from {memory}"
        if not same_values(stretch.move(params, memory, excess, score, lam), moved):
            raise broken(stretch, f"move gives one answer, got {moved} first {where}")
        memory = memory_of(stretch, moved, f"memory, moved {where},", like=memory)
        if not all(low <= each <= high for each in memory):
            raise broken(stretch, f"memory stays in [{low}, {high}], got {memory} {where}")
        memories.append(memory)
    return memories[:: len(memories) // 12]
