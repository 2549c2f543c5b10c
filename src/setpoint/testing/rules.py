"""Whether a step rule and a stretching keep their promises."""

from itertools import pairwise, product
from math import inf, isfinite
from typing import Any, Protocol, runtime_checkable

import numpy as np

from setpoint.steps import Range
from setpoint.testing.parts import (
    Memory,
    broken,
    check_value,
    first_memory,
    in_use,
    memory_of,
    same_values,
)
from setpoint.testing.samples import ROUNDING

__all__ = ["check_step", "check_stretch"]


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


@runtime_checkable
class _Clips(Protocol):
    """A stretching whose memory is clipped."""

    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def _moved(stretch: Any, params: Memory, first: Memory) -> list[Memory]:
    """Memories that a random stream of excesses and scores leads to, the extreme ones included."""
    rng = np.random.default_rng(3)
    low, high = (stretch.low, stretch.high) if isinstance(stretch, _Clips) else (-inf, inf)
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


def check_step(step: Any) -> None:
    """Checks a step rule; what it guarantees, if anything, is tried by an adversary.

    Parameters
    ----------
    step
        See `setpoint.steps`. One with `bound` (and `reach` and `window`) is run on thousands of
        losses, with and without delay, that push θ as far as they can.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from setpoint.steps import Fixed
    >>> check_step(Fixed(0.05))
    >>> @dataclass(frozen=True)
    ... class Hopeful:
    ...     params, needs = (0.5,), "excess"
    ...
    ...     def rule(self, params, theta, memory, excess, critical, curve):
    ...         return theta + params[0] * excess, memory
    ...
    ...     def init(self):
    ...         return ()
    ...
    ...     def bound(self, within):
    ...         return -1.0, 1.0
    >>> check_step(Hopeful())
    Traceback (most recent call last):
    setpoint.testing.ConformanceError: Hopeful does not keep a promise: its bound holds,
    got Σ(l − r) = 1.8 outside [-1.0, 1.0] after 2 labels with Range(low=-3.0, ...)
    """
    rng = np.random.default_rng(1)
    with in_use(step):
        params, first = memory_of(step, step.params, "params"), first_memory(step)
        if step.needs not in ("excess", "critical", "curve"):
            raise broken(step, f'`needs` is "excess", "critical" or "curve", got {step.needs!r}')
        memory = first
        for theta in (0.0, -3.0, 7.5, 1e6, -1e6):
            for excess in (0.9, -0.1, 0.0, 1e-3, -1.0, 40.0, *rng.normal(size=20).tolist()):
                critical = theta + (abs(float(rng.normal())) if excess > 0.0 else -1.0)
                _, memory = _stepped(step, params, theta, memory, excess, critical)
        if hasattr(step, "bound"):
            worlds = ((-3.0, 5.0, 0.0), (-0.5, 0.5, 0.5), (-40.0, 40.0, -40.0))
            for world, level, pending in product(worlds, (0.1, 0.5), (1, 4)):
                within = Range(*world, -level, 1.0 - level, pending)
                for policy in _POLICIES:
                    _check_bound(step, params, first, within, policy, rng)
    check_value("steps", step)


def _stepped(
    step: Any, params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """One step, if it goes the right way and is the same twice."""

    def curve(at: float) -> float:
        return 1.0 if at < critical else 0.0

    got = step.rule(params, theta, memory, excess, critical, curve)
    where = f"from θ = {theta} with excess {excess} and memory {memory}"
    if not (isinstance(got, tuple) and len(got) == 2 and type(got[0]) is float):
        raise broken(step, f"rule returns (θ, memory), θ a float, got {got!r} {where}")
    if not same_values(step.rule(params, theta, memory, excess, critical, curve), got):
        raise broken(step, f"rule gives one answer, got {got} first {where}")
    if hasattr(step, "update") and not same_values(
        step.update(theta, memory, excess, critical, curve), got
    ):
        raise broken(step, f"rule and update agree, got {got} by the rule {where}")
    moved, after = got
    if not isfinite(moved) or (moved - theta) * excess < 0.0 or (excess == 0.0 and moved != theta):
        raise broken(step, f"θ moves with the excess or not at all, got {moved} {where}")
    return moved, memory_of(step, after, like=memory)


_POLICIES = ("up", "down", "coin", "any", "swing")


def _push(policy: str, theta: float, within: Range, before: float, draw: float) -> float:
    """The loss an adversary picks."""
    match policy:
        case "up":
            return 1.0
        case "down":
            return 0.0
        case "coin":
            return float(draw < 0.5)
        case "any":
            return draw
    # Up until the safeguard stops it, then down until it does, and so on.
    return 0.0 if theta > within.high - 1e-3 else 1.0 if theta < within.low + 1e-3 else before


def _check_bound(
    step: Any, params: Memory, first: Memory, within: Range, policy: str, rng: np.random.Generator
) -> None:
    """Σ(l − r) against what the rule states, where losses obey the safeguard and nothing else."""
    least, most = step.bound(within)
    slack = ROUNDING * (1.0 + abs(least) + abs(most))
    theta, memory, total, loss = within.start, first, 0.0, 1.0
    lowest = highest = 0.0
    waiting: list[float] = []
    for labels in range(1, 501):
        while len(waiting) < within.pending:
            waiting.append(theta)
        shown = waiting.pop(int(rng.integers(len(waiting))))
        draw = float(rng.random())
        loss = _push(policy, theta, within, loss, draw)
        loss = 0.0 if shown > within.high else 1.0 if shown < within.low else loss
        excess = within.fall + loss
        critical = shown + (draw if excess > 0.0 else -draw)
        theta, memory = _stepped(step, params, theta, memory, excess, critical)
        total += excess
        if not least - slack <= total <= most + slack:
            raise broken(
                step,
                f"its bound holds, got Σ(l − r) = {total} outside [{least}, {most}] after "
                f"{labels} labels with {within}",
            )
        lowest, highest = min(lowest, total), max(highest, total)
        _check_reach(step, within, theta, highest - lowest, slack)


def _check_reach(step: Any, within: Range, theta: float, widest: float, slack: float) -> None:
    """θ against `reach` and the widest window against `window`, where the rule states them."""
    if hasattr(step, "reach"):
        low, high = step.reach(within)
        if not low - slack <= theta <= high + slack:
            raise broken(
                step, f"θ stays in its reach, got {theta} outside [{low}, {high}], {within}"
            )
    if hasattr(step, "window") and widest > step.window(within) + slack:
        raise broken(
            step,
            f"its window bound holds, got {widest} beyond {step.window(within)} with {within}",
        )
