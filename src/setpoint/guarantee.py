"""Certificates: what Rolling RC guarantees for a stream, and whether its premises hold there.

One risk with a fixed step γ, θ_1 in [m, M], losses in [l_min, l_max], L(full) ≤ r ≤ L(empty),
and at most P labels awaited at once:

    identity   mean(l) − r = (θ_{T+1} − θ_1)/(γT)
    bound      −(θ_1 − m + Pγ(r − l_min))/(γT) ≤ mean(l) − r ≤ (M + Pγ(l_max − r) − θ_1)/(γT)
    window     |Σ(l − r)| ≤ (M − m + Pγ(l_max − l_min))/γ on every window

for every stream, adversarial or not, where T counts the labels that were observed. Several risks
have the upper bound each; with anti-windup also on every window. `docs/why.md` has the proofs.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from math import ceil, floor, inf, isfinite, sqrt, ulp
from typing import Any

from setpoint.combine import Mean
from setpoint.controller import Controller, Risk, RiskState, State
from setpoint.losses import Declaration, MiscoverageCounter, declaration
from setpoint.steps import Fixed, Range

__all__ = ["Certificate", "Premise", "RiskCertificate", "Status", "certify", "counter_bound"]


class Status(StrEnum):
    """The state of a guarantee. Code decides on it; `RiskCertificate.verdict` is for people."""

    HOLDS = "holds"
    HOLDS_FROM_ABOVE = "holds from above"
    BEST_EFFORT = "best effort"
    SAYS_NOTHING_YET = "says nothing yet"
    NO_LABEL_YET = "no label yet"
    NO_GUARANTEE = "no guarantee"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Premise:
    """One condition of the guarantee, and whether it holds here.

    `needed` says for what: for θ to stay within "both" ends of its range, the "upper" or the
    "lower" one, or for nothing ("note"). The upper end of θ keeps a loss down; one that grows with
    the set, it keeps up.
    """

    text: str
    holds: bool
    needed: str = "both"


@dataclass(frozen=True, slots=True)
class RiskCertificate:
    """What is guaranteed of one risk, and what came out.

    Parameters
    ----------
    name, level
        The loss and the level its mean is driven to.
    judged, unjudged
        How many labels were judged, and at how many there was nothing to judge.
    mean
        The mean loss; NaN before the first label.
    identity
        What the mean must be by the path of θ alone, r ± (θ_{T+1} − θ_1 − lifts)/(γT); None for a
        step rule without such an identity.
    lower, upper
        Bounds on mean − level at this T, for every stream; None where there is none.
    constant_lower, constant_upper
        The same bounds times T.
    window
        A constant C such that Σ(l − r) stays within ±C on every window; None where there is none.
    window_sided
        "both" if it holds in both directions, "upper" if only excess is bounded.
    spread
        The range of the loss, l_max − l_min: a wider bound says nothing.
    theta, first
        θ now and when the segment began.
    lifts, lifted
        How often and how far anti-windup raised θ.
    premises
        What the bounds rest on.
    """

    name: str
    level: float
    judged: int
    unjudged: int
    mean: float
    identity: float | None
    lower: float | None
    upper: float | None
    constant_lower: float | None
    constant_upper: float | None
    window: float | None
    window_sided: str
    spread: float
    theta: float
    first: float
    lifts: int
    lifted: float
    premises: tuple[Premise, ...]

    @property
    def within(self) -> bool:
        """Whether the mean lies within its bounds, up to rounding."""
        slack = 1e-9 * max(1.0, self.spread if isfinite(self.spread) else 1.0)
        excess = self.mean - self.level
        return not self.judged or (
            (self.upper is None or excess <= self.upper + slack)
            and (self.lower is None or excess >= self.lower - slack)
        )

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists and finite numbers, with the verdict."""
        return {
            **{name: _jsonable(value) for name, value in asdict(self).items()},
            "premises": [asdict(premise) for premise in self.premises],
            "status": self.status.value,
            "verdict": self.verdict,
        }

    def steps_until(self, tolerance: float) -> int | None:
        """The number of labels after which the guarantee is within `tolerance` of the level."""
        constants = [c for c in (self.constant_lower, self.constant_upper) if c is not None]
        if not constants:
            return None
        steps = max(abs(c) for c in constants) / tolerance
        return max(1, ceil(steps)) if isfinite(steps) else None

    @property
    def status(self) -> Status:
        """The state of the guarantee."""
        if self.constant_lower is None and self.constant_upper is None:
            return Status.NO_GUARANTEE
        decisive = self.lower if self.upper is None else self.upper
        if decisive is None:
            return Status.NO_LABEL_YET
        if not self.within:
            return Status.BROKEN
        if abs(decisive) >= self.spread:
            return Status.SAYS_NOTHING_YET
        if self.upper is None:
            return Status.BEST_EFFORT
        return Status.HOLDS if self.lower is not None else Status.HOLDS_FROM_ABOVE

    @property
    def verdict(self) -> str:
        """The state of the guarantee in a sentence."""
        status = self.status
        if status is Status.NO_GUARANTEE:
            failed = [p.text for p in self.premises if not p.holds and p.needed != "note"]
            return "no guarantee, because this does not hold: " + "; ".join(failed)
        if status in (Status.NO_LABEL_YET, Status.SAYS_NOTHING_YET):
            steps = self.steps_until(0.01)
            return str(status) if steps is None else f"{status}; within 0.01 after T = {steps:,}"
        if status is Status.BROKEN:
            return "BROKEN: the mean is outside its bound, so some premise is not true"
        return "best effort: bounded from below only" if status is Status.BEST_EFFORT else str(status)


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is guaranteed of a stream; print it, or take it as a plain dict.

    Parameters
    ----------
    risks
        One certificate for each risk.
    full, empty
        How many labels were judged on a full or empty set that the safeguard chose, or of which one
        set of several was such.
    missing, dropped, expired, waiting
        Predictions without a label: it was missing, given up, dropped as the oldest, or is still
        awaited. The guarantee speaks of the observed labels only.
    pending
        The most labels awaited at once (P).
    earlier
        The certificates of the segments before the last change, as plain dicts.
    """

    risks: tuple[RiskCertificate, ...]
    full: int
    empty: int
    missing: int
    dropped: int
    expired: int
    waiting: int
    pending: int
    earlier: tuple[dict[str, Any], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists and finite numbers, with the verdicts.

        What is not a finite number, such as a mean of nothing, is None: JSON has no other word.
        """
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        plain["earlier"] = list(self.earlier)
        plain["risks"] = [risk.as_dict() for risk in self.risks]
        return plain

    def __str__(self) -> str:
        lines = [f"certificate: {_counted(len(self.risks), 'risk')}"]
        if self.earlier:
            lines[0] += f", segment {len(self.earlier) + 1} (the last change began it)"
        for number, risk in enumerate(self.risks, 1):
            lines += ["", *_risk_lines(number, risk)]
        lines += ["", f"  safeguard   full set {self.full:,} times, empty set {self.empty:,} times"]
        unseen = self.missing + self.dropped + self.expired + self.waiting
        lines.append(
            f"  labels      at most {self.pending:,} awaited at once; {unseen:,} not observed "
            f"({self.missing:,} missing, {self.dropped:,} dropped, {self.expired:,} expired, "
            f"{self.waiting:,} awaited)"
        )
        if unseen:
            lines.append("              the guarantee speaks of the observed labels only")
        return "\n".join(lines)


def _jsonable(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _risk_lines(number: int, risk: RiskCertificate) -> list[str]:
    lines = [
        f"  {number}. {risk.name} at level {risk.level:g}: {risk.verdict}",
    ]
    if risk.judged:
        lines.append(
            f"     mean loss   {risk.mean:.6g} over {_counted(risk.judged, 'label')}"
            f" ({risk.mean - risk.level:+.2g} from the level)"
        )
    if risk.unjudged:
        lines.append(f"     unjudged    {risk.unjudged:,} labels had nothing to judge")
    if risk.identity is not None and risk.judged:
        gap = abs(risk.identity - risk.mean)
        lines.append(f"     identity    the path of θ says {risk.identity:.6g}, {gap:.1g} away")
    if risk.judged and (risk.lower is not None or risk.upper is not None):
        low = "" if risk.lower is None else f"{risk.lower:+.4g} ≤ "
        high = "" if risk.upper is None else f" ≤ {risk.upper:+.4g}"
        lines.append(f"     bound       {low}mean − level{high}, for every stream")
    if risk.window is not None:
        total = "|Σ(loss − level)|" if risk.window_sided == "both" else "Σ(loss − level)"
        lines.append(f"     any window  {total} ≤ {risk.window:.6g}")
    if risk.lifts:
        lines.append(f"     anti-windup raised θ {risk.lifts:,} times, by {risk.lifted:.4g} in all")
    lines.append(f"     θ           {risk.first:.6g} → {risk.theta:.6g}")
    lines += [f"     {'✓' if p.holds else '✗'} {p.text}" for p in risk.premises]
    return lines


def counter_bound(level: float, span: float, gamma: float) -> float:
    """The most an uncapped miscoverage counter can be, for one risk without delay.

    A streak of k misses raises θ by γ(k(k + 1)/2 − kr), and ends at the latest above M.

    >>> counter_bound(1 / 9, span=40.0, gamma=0.05)
    40.0
    """
    half = 0.5 + level
    most = half + sqrt(half * half + 2.0 * span / gamma)
    slack = 1e-9 * (1.0 + most)  # a streak may end on the very bound, and rounding must not deny it
    return float(floor(most + slack)) if isfinite(most) else inf


def certify(
    controller: Controller,
    state: State,
    *,
    waiting: int = 0,
    earlier: Sequence[dict[str, Any]] = (),
) -> Certificate:
    """The certificate of a state."""
    ranges = [_range(controller, index, state) for index in range(len(controller.risks))]
    return Certificate(
        tuple(_certify(controller, index, state, ranges) for index in range(len(ranges))),
        state.full,
        state.empty,
        state.missing,
        state.dropped,
        state.expired,
        waiting,
        state.peak,
        tuple(earlier),
    )


def _alone(controller: Controller, index: int) -> bool:
    """Whether nothing but its own θ moves the set that a risk is judged on."""
    family: Any = controller.sets
    if hasattr(family, "sides"):
        return bool(family.alone(index))
    return len(controller.risks) == 1


def _range(controller: Controller, index: int, state: State) -> Range:
    """The surroundings of one risk, in terms of its excess."""
    risk, own = controller.risks[index], state.risks[index]
    promise = declaration(risk.loss)
    low, high = controller.bounds[index]
    most = promise.high
    if (
        isinstance(risk.loss, MiscoverageCounter)
        and isinstance(risk.step, Fixed)
        and _alone(controller, index)
        and state.peak == 1
        and state.fresh
    ):
        most = min(most, counter_bound(risk.level, high - low, risk.step.gamma))
    fall, rise = promise.low - risk.level, most - risk.level
    if promise.grows:
        fall, rise = -rise, -fall
    return Range(low, high, own.first, fall, rise, state.peak, state.inherited)


def _certify(
    controller: Controller, index: int, state: State, ranges: Sequence[Range]
) -> RiskCertificate:
    risk, own, within = controller.risks[index], state.risks[index], ranges[index]
    promise = declaration(risk.loss)
    premises = _premises(controller, index, promise, state, within)
    sides = {
        side: all(p.holds for p in premises if p.needed in ("both", side))
        for side in ("upper", "lower")
    }
    least: float | None = None
    most: float | None = None
    window: float | None = None
    step: Any = risk.step
    if hasattr(step, "bound"):
        low, high = step.bound(within)
        least, most = (low if sides["lower"] else None), (high if sides["upper"] else None)
        if sides["upper"]:
            window = _window(controller, index, state, ranges, two_sided=sides["lower"])
    sided = "both" if sides["lower"] else "upper"
    mean = own.total / own.judged if own.judged else float("nan")
    if promise.grows:
        least, most = (None if most is None else -most), (None if least is None else -least)
    return RiskCertificate(
        name=risk.name,
        level=risk.level,
        judged=own.judged,
        unjudged=own.unjudged,
        mean=mean,
        identity=_identity(risk, own, promise),
        lower=_over(least, own.judged),
        upper=_over(most, own.judged),
        constant_lower=least,
        constant_upper=most,
        window=window,
        window_sided=sided,
        spread=within.rise - within.fall,
        theta=own.theta,
        first=own.first,
        lifts=own.lifts,
        lifted=own.lifted,
        premises=premises,
    )


def _over(constant: float | None, steps: int) -> float | None:
    return constant / steps if constant is not None and steps else None


def _identity(risk: Risk, own: RiskState, promise: Declaration) -> float | None:
    """The mean that the path of θ implies, for a fixed step."""
    if not isinstance(risk.step, Fixed):
        return None
    if not own.judged:
        return float("nan")
    moved = (own.theta - own.first - own.lifted) / (risk.step.gamma * own.judged)
    return risk.level - moved if promise.grows else risk.level + moved


def _window(
    controller: Controller,
    index: int,
    state: State,
    ranges: Sequence[Range],
    *,
    two_sided: bool,
) -> float | None:
    """The most |Σ(l − r)|, or Σ(l − r), can be on a window."""
    step, within = controller.risks[index].step, ranges[index]
    if not isinstance(step, Fixed):
        return None
    if two_sided:
        constant = step.window(within)
        return constant if isfinite(constant) else None
    delta = controller.combine.anti_windup
    if len(ranges) == 1 or delta is None:
        return None
    # Anti-windup holds θ near the largest one, and that stays up only if on the empty set every
    # loss is at its level or above, which a step counted as 0 is not.
    lowest = inf
    for risk, own, other in zip(controller.risks, state.risks, ranges, strict=True):
        sinks = declaration(risk.loss).empty < risk.level or (
            risk.unjudged == "zero" and own.unjudged > 0 and risk.level > 0.0
        )
        if not isinstance(risk.step, Fixed) or sinks:
            return None
        lowest = min(lowest, risk.step.reach(other)[0])
    constant = (step.reach(within)[1] - lowest + delta) / step.gamma
    return constant if isfinite(constant) else None


def _premises(
    controller: Controller, index: int, promise: Declaration, state: State, within: Range
) -> tuple[Premise, ...]:
    risk, own, combine = controller.risks[index], state.risks[index], controller.combine
    found = [
        Premise(
            f"step size fixed at γ = {risk.step.gamma:g}"
            if isinstance(risk.step, Fixed)
            else f"the step rule {type(risk.step).__name__} states a bound",
            hasattr(risk.step, "bound"),
        ),
        *_bounds(within),
        *_rounding(risk, within),
        Premise(
            f"losses in [{promise.low:g}, {promise.high:g}]"
            if isfinite(promise.high)
            else f"losses at most {within.rise + risk.level:g}, by the rule itself"
            if isfinite(within.rise)
            else "losses are bounded (with delay, several risks or a change: give a cap)",
            isfinite(within.rise) and isfinite(within.fall),
        ),
        *_ends(risk, promise),
    ]
    if not promise.monotone:
        text = "the loss moves one way with the set (it does not: the level is a best effort)"
        found.append(Premise(text, False, "note"))
    if hasattr(controller.sets, "sides") and not _alone(controller, index):
        text = "its set is never smaller than the one before, and may so stay below its level"
        found.append(Premise(text, False, "lower"))
    elif not _alone(controller, index):
        found.append(_lower_side(combine, state))
        if isinstance(combine, Mean) and combine.anti_windup is None:
            found.append(
                Premise(
                    "Mean without anti-windup holds a weighted sum of the risks; each by itself "
                    "is held only by its safeguard",
                    False,
                    "note",
                )
            )
    excess = risk.level if promise.grows else -risk.level
    if own.unjudged and risk.unjudged == "zero" and excess != 0.0:
        side = "lower" if excess < 0.0 else "upper"
        found.append(Premise("no step with nothing to judge counted as a loss of 0", False, side))
    return tuple(found)


def _bounds(within: Range) -> list[Premise]:
    """Where θ began, and what keeps it from running away."""
    bounds = f"[{within.low:g}, {within.high:g}]"
    if within.low == -inf and within.high == inf:
        return [Premise("bounds of θ are set (there are none: give bounds or a burn-in)", False)]
    inside = within.low <= within.start <= within.high
    found = [
        Premise(
            f"θ_1 = {within.start:g} in its bounds {bounds}"
            if inside
            else f"the segment began at θ = {within.start:g}, outside {bounds}: accounted for",
            True,
        )
    ]
    if within.high == inf:
        found.append(Premise("θ has an upper bound, beyond which the set is full", False, "upper"))
    if within.low == -inf:
        found.append(Premise("θ has a lower bound, beyond which the set is empty", False, "lower"))
    return found


def _rounding(risk: Risk, within: Range) -> list[Premise]:
    """A step must not be lost to rounding where θ is largest."""
    ends = [abs(end) for end in (within.low, within.high, within.start) if isfinite(end)]
    if not isinstance(risk.step, Fixed) or ulp(max(ends)) <= 1e-6 * risk.step.gamma:
        return []
    text = (
        f"θ moves by γ = {risk.step.gamma:g} wherever it is (at {max(ends):g} rounding swallows it)"
    )
    return [Premise(text, False)]


def _ends(risk: Risk, promise: Declaration) -> tuple[Premise, Premise]:
    """Where the loss must lie at the ends of the family."""
    level = risk.level
    if promise.grows:
        return (
            Premise(
                f"loss on the full set at least {promise.full:g}, not below the level {level:g}",
                promise.full >= level,
                "upper",
            ),
            Premise(
                f"loss on the empty set at most {promise.empty:g}, not above the level {level:g}",
                promise.empty <= level,
                "lower",
            ),
        )
    return (
        Premise(
            f"loss on the full set at most {promise.full:g}, not above the level {level:g}",
            promise.full <= level,
            "upper",
        ),
        Premise(
            f"loss on the empty set at least {promise.empty:g}, not below the level {level:g}",
            promise.empty >= level,
            "lower",
        ),
    )


def _lower_side(combine: Any, state: State) -> Premise:
    """With several risks a slack one may stay below its level."""
    if combine.empty_if == "some" and combine.anti_windup is None:
        return Premise(
            f"the empty set whenever one θ is below its bound (not possible {state.torn:,} times, "
            "when another risk asked for the full set)",
            state.torn == 0,
            "lower",
        )
    return Premise("several risks: nothing keeps one from staying below its level", False, "lower")
