"""Whether a step rule and a stretching keep their promises."""

from itertools import pairwise, product
from math import inf, isfinite
from typing import Any, Protocol, runtime_checkable

import numpy as np

from setpoint.steps import Claim, Within
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
        inverted = near[0] <= back <= near[1] if low < lam < high else low <= lam <= high
        again = _phi(stretch, params, memory, back)
        if not inverted or abs(again - lam) > 1e-6 * max(1.0, abs(lam), *map(abs, memory)):
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
    """Checks a step rule; what it claims is tried by an adversary.

    Parameters
    ----------
    step
        See `setpoint.steps`. Its claim is compared with thousands of losses, with and without
        delay, that push θ as far as they can.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from setpoint.steps import Claim, Fixed
    >>> check_step(Fixed(0.05))
    >>> @dataclass(frozen=True)
    ... class Hopeful:
    ...     params = (0.5,)
    ...
    ...     def rule(self, params, theta, memory, excess, critical):
    ...         return theta + params[0] * excess, memory
    ...
    ...     def init(self):
    ...         return ()
    ...
    ...     def claim(self, within, memory, T):
    ...         return Claim(lower=-1.0, upper=1.0)
    >>> check_step(Hopeful())
    Traceback (most recent call last):
    setpoint.testing.ConformanceError: Hopeful does not keep a promise: its claim holds,
    got Σ(l − r) = 1.8, not in [-1.0, 1.0], after 2 labels with Within(low=-3.0, ...)
    """
    rng = np.random.default_rng(1)
    with in_use(step):
        params, first = memory_of(step, step.params, "params"), first_memory(step)
        memory, directed = first, _claims(step, first)
        for theta in (0.0, -3.0, 7.5, 1e6, -1e6):
            for excess in (0.9, -0.1, 0.0, 1e-3, -1.0, 40.0, *rng.normal(size=20).tolist()):
                critical = theta + (abs(float(rng.normal())) if excess > 0.0 else -1.0)
                _, memory = _stepped(step, params, theta, memory, excess, critical, directed)
        worlds = ((-3.0, 5.0, 0.0), (-0.5, 0.5, 0.5), (-40.0, 40.0, -40.0))
        for world, level, pending in product(worlds, (0.1, 0.5), (1, 4)):
            within = Within(*world, -level, 1.0 - level, pending)
            for policy in _POLICIES:
                _check_claim(step, params, first, within, policy, rng, directed)
    check_value("steps", step)


def _claims(step: Any, first: Memory) -> bool:
    """Whether a rule states a bound; one that states none may move θ as it likes."""
    claim = step.claim(Within(-3.0, 5.0, 0.0, -0.1, 0.9), first, 0)
    if not isinstance(claim, Claim):
        raise broken(step, f"claim returns a Claim, got {claim!r}")
    return claim.lower is not None or claim.upper is not None


def _stepped(
    step: Any,
    params: Memory,
    theta: float,
    memory: Memory,
    excess: float,
    critical: float,
    directed: bool,
) -> tuple[float, Memory]:
    """One step, if it is the same twice and, where it is `directed`, goes the right way."""
    answer = step.rule(params, theta, memory, excess, critical)
    where = f"from θ = {theta} with excess {excess} and memory {memory}"
    if not (isinstance(answer, tuple) and len(answer) == 2 and type(answer[0]) is float):
        raise broken(step, f"rule returns (θ, memory), θ a float, got {answer!r} {where}")
    if not same_values(step.rule(params, theta, memory, excess, critical), answer):
        raise broken(step, f"rule gives one answer, got {answer} first {where}")
    moved, after = answer
    astray = (moved - theta) * excess < 0.0 or (excess == 0.0 and moved != theta)
    if not isfinite(moved) or (directed and astray):
        raise broken(step, f"θ moves with the excess or not at all, got {moved} {where}")
    return moved, memory_of(step, after, like=memory)


_POLICIES = ("up", "down", "coin", "any", "swing")


def _push(policy: str, theta: float, within: Within, before: float, draw: float) -> float:
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


def _check_claim(
    step: Any,
    params: Memory,
    first: Memory,
    within: Within,
    policy: str,
    rng: np.random.Generator,
    directed: bool,
) -> None:
    """Σ(l − r) against what the rule claims, where losses obey the safeguard and nothing else."""
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
        theta, memory = _stepped(step, params, theta, memory, excess, critical, directed)
        total += excess
        lowest, highest = min(lowest, total), max(highest, total)
        now = within._replace(theta=theta)
        claim = step.claim(now, memory, labels)
        if not all(premise.holds or premise.needed == "note" for premise in claim.premises):
            return  # it claims nothing here
        least, most = claim.window
        for what, value, low, high in (
            ("Σ(l − r)", total, claim.lower, claim.upper),
            ("Σ(l − r) on a window", total - lowest, None, most),
            ("Σ(l − r) on a window", total - highest, least, None),
            ("θ", theta, *claim.reach),
            ("Σ(l − r)", total, claim.identity, claim.identity),
        ):
            low, high = -inf if low is None else low, inf if high is None else high
            size = max(abs(end) for end in (low, high, 1.0) if isfinite(end))
            slack = ROUNDING * (1.0 + size) + claim.rounding * labels
            if not low - slack <= value <= high + slack:
                raise broken(
                    step,
                    f"its claim holds, got {what} = {value}, not in [{low}, {high}], after "
                    f"{labels} labels with {now}",
                )
