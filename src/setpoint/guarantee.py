"""The guarantee: what Rolling RC promises of a stream, and whether its premises hold there.

One risk with a fixed step γ, θ_1 in [m, M], losses in [l_min, l_max], L(full) ≤ r ≤ L(empty),
and at most P labels awaited at once:

    identity   mean(l) − r = (θ_{T+1} − θ_1)/(γT)
    bound      −(θ_1 − m + Pγ(r − l_min))/(γT) ≤ mean(l) − r ≤ (M + Pγ(l_max − r) − θ_1)/(γT)
    window     |Σ(l − r)| ≤ (M − m + Pγ(l_max − l_min))/γ on every window

for every stream, adversarial or not, where T counts the labels that were observed. Several risks
have the upper bound each; with anti-windup also on every window. `docs/why.md` has the proofs.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite, nan
from typing import Any

from setpoint.certificate import Certificate, GroupCertificates, RiskCertificate, Status
from setpoint.controller import Controller, Risk, step_params
from setpoint.errors import InputError
from setpoint.losses import Declaration, Limits, Misses, declaration, turns
from setpoint.sets.family import never_empty, order_of
from setpoint.state import State
from setpoint.steps import Claim, Within
from setpoint.steps.claims import Accounts, Premise

__all__ = ["Certificate", "RiskCertificate", "Status", "certify"]


def certify(
    controller: Controller,
    state: State,
    *,
    waiting: int = 0,
    earlier: Sequence[dict[str, Any]] = (),
) -> Certificate:
    """The certificate of a state."""
    now = state.placed(state.position[0])  # the state itself goes on
    return Certificate(
        _risks(controller, state),
        state.full,
        state.empty,
        state.missing,
        state.dropped,
        state.expired,
        waiting,
        state.peak,
        tuple(earlier),
        GroupCertificates(now.groups, lambda risks: _risks(controller, now.placed(risks))),
    )


def _risks(controller: Controller, state: State) -> tuple[RiskCertificate, ...]:
    """The certificate of each risk of a state."""
    risks = range(len(controller.risks))
    withins = [_within(controller, index, state) for index in risks]
    claims = [_claim(controller, index, state, withins[index]) for index in risks]
    floor = _floor(controller, state, claims)
    if floor > -inf:
        withins = [within._replace(floor=floor) for within in withins]
        claims = [_claim(controller, index, state, withins[index]) for index in risks]
    return tuple(_certify(controller, i, state, withins[i], claims[i]) for i in risks)


def _claim(controller: Controller, index: int, state: State, within: Within) -> Claim:
    step, risk = controller.risks[index].step, state.risks[index]
    claim: Any = Claim() if step is None else step.claim(within, risk.step, int(risk.judged))
    if not isinstance(claim, Claim):
        raise InputError(f"the claim of {step!r} must be a steps.Claim, got {claim!r}")
    return claim


def _within(controller: Controller, index: int, state: State) -> Within:
    """The surroundings of one risk, in terms of its excess."""
    risk, values = controller.risks[index], state.risks[index]
    promise = declaration(risk.loss)
    low, high = controller.bounds[index]

    def surroundings(most: float) -> Within:
        fall, rise = promise.low - risk.level, most - risk.level
        if promise.grows:
            fall, rise = -rise, -fall
        return Within(
            low, high, values.first, fall, rise, state.peak, state.inherited,
            values.theta, values.lifted,
            pace=step_params(risk)[-1] if isinstance(risk.step, Accounts) else 0.0,
        )  # fmt: skip

    within = surroundings(promise.high)
    undisturbed = _alone(controller, index, state) and state.peak == 1 and state.fresh
    booked = isinstance(risk.step, Accounts)  # its room is kept for the most a label can cost
    if booked or not (isinstance(risk.loss, Limits) and undisturbed):
        return within
    claim = _claim(controller, index, state, within)
    premises = _premises(controller, index, promise, state, within, claim)
    if any(p.needed == "lower" and not p.holds for p in premises):
        return within  # θ may fall without end, and then as long a streak follows
    return surroundings(min(promise.high, risk.loss.most(risk.level, claim.room)))


def _floor(controller: Controller, state: State, claims: Sequence[Claim]) -> float:
    """The value below which anti-windup lets no θ stay; −inf where there is none.

    It holds θ near the largest one, and that stays up only if on the empty set every loss is at
    its level or above, which a step counted as 0 is not.
    """
    delta = controller.combine.anti_windup
    if len(claims) == 1 or delta is None:
        return -inf
    for risk, values in zip(controller.risks, state.risks, strict=True):
        zeros = risk.unjudged == "zero" and values.unjudged > 0 and risk.level > 0.0
        if zeros or declaration(risk.loss).empty < risk.level:
            return -inf
    return min(claim.reach[0] for claim in claims) - delta


def _certify(
    controller: Controller, index: int, state: State, within: Within, claim: Claim
) -> RiskCertificate:
    risk, values = controller.risks[index], state.risks[index]
    promise = declaration(risk.loss)
    premises = _premises(controller, index, promise, state, within, claim)
    premises = () if claim.measured else premises
    lower, upper = (
        all(p.holds for p in premises if p.needed in ("both", side)) for side in ("lower", "upper")
    )
    if claim.joint:
        lower = upper = lower and upper
    least, most = (claim.lower if lower else None), (claim.upper if upper else None)
    below, above = claim.window
    both = lower and upper and below is not None
    window = above if upper and (both or not claim.window_needs_lower) else None
    if both and below is not None and window is not None:
        window = max(-below, window)
    mean = values.total / values.judged if values.judged else nan
    if promise.grows:
        least, most = (None if most is None else -most), (None if least is None else -least)
    return RiskCertificate(
        name=controller.names[index],
        level=risk.level,
        judged=int(values.judged),
        unjudged=int(values.unjudged),
        mean=mean,
        identity=_identity(risk, int(values.judged), claim, promise),
        lower=_over(least, int(values.judged)),
        upper=_over(most, int(values.judged)),
        constant_lower=least,
        constant_upper=most,
        window=window,
        window_sided="both" if both else "lower" if promise.grows else "upper",
        growth=claim.growth,
        spread=within.rise - within.fall,
        theta=values.theta,
        first=values.first,
        lifts=int(values.lifts),
        lifted=values.lifted,
        rounding=claim.rounding,
        premises=premises,
        unit=promise.noun,
        counted=claim.counted,
        asked=asked_of(risk),
        from_now=claim.now if upper and not promise.grows else None,
        habit=claim.habit,
        worst=None if promise.grows else claim.worst,
        measured=claim.measured,
    )


def asked_of(risk: Risk) -> float | None:
    """The coverage asked for, where the mean loss is the share of labels missed."""
    shares = isinstance(risk.loss, Misses) and risk.loss.missed(risk.level) == risk.level
    return round(1.0 - risk.level, 12) if shares else None


def _over(constant: float | None, steps: int) -> float | None:
    return constant / steps if constant is not None and steps else None


def _identity(risk: Risk, judged: int, claim: Claim, promise: Declaration) -> float | None:
    """The mean loss, computed from where θ began and where it is."""
    if claim.identity is None:
        return None
    if not judged:
        return nan
    excess = claim.identity / judged
    return risk.level - excess if promise.grows else risk.level + excess


def pooled(certificates: Sequence[RiskCertificate]) -> RiskCertificate:
    """One risk over several streams: the excess of all is the sum of each, and so is its bound."""
    first, judged = certificates[0], sum(risk.judged for risk in certificates)
    seen = [risk for risk in certificates if risk.judged]

    def summed(constants: list[float | None]) -> float | None:
        known = [constant for constant in constants if constant is not None]
        return sum(known) if len(known) == len(constants) else None

    def weighted(values: list[float | None]) -> float | None:
        totals = summed([v and v * risk.judged for v, risk in zip(values, seen, strict=True)])
        return None if totals is None else totals / judged if judged else nan

    least = summed([risk.constant_lower for risk in certificates])
    most = summed([risk.constant_upper for risk in certificates])
    mean = weighted([risk.mean for risk in seen])
    sided = {risk.window_sided for risk in certificates} == {first.window_sided}
    streams = f"the premises hold on each of {len(certificates):,} streams"
    return replace(
        first,
        judged=judged,
        unjudged=sum(risk.unjudged for risk in certificates),
        mean=nan if mean is None else mean,
        identity=weighted([risk.identity for risk in seen]),
        lower=_over(least, judged),
        upper=_over(most, judged),
        constant_lower=least,
        constant_upper=most,
        window=summed([risk.window for risk in certificates]),
        window_sided=first.window_sided if sided else "upper",
        growth=max(risk.growth for risk in certificates),
        spread=max(risk.spread for risk in certificates),
        theta=nan,
        first=nan,
        lifts=sum(risk.lifts for risk in certificates),
        lifted=sum(risk.lifted for risk in certificates),
        rounding=max(risk.rounding for risk in certificates),
        premises=(Premise(streams, least is not None or most is not None),),
        counted=all(risk.counted for risk in certificates),
        from_now=summed([risk.bound.from_now for risk in certificates]),
        habit=0.0,
        worst=None,
    )


# Premises


def _alone(controller: Controller, index: int, state: State) -> bool:
    """Whether nothing but its own θ moves the set that a risk is judged on."""
    member = controller.owners[index]
    single = controller.owners.count(member) == 1 and not state.groups
    return single and not _within_another(controller, index)


def _within_another(controller: Controller, index: int) -> bool:
    """Whether the set that a risk is judged on is at least as large as one inside it."""
    return bool(order_of(controller.sets)) and controller.owners[index] > min(controller.owners)


def _premises(
    controller: Controller,
    index: int,
    promise: Declaration,
    state: State,
    within: Within,
    claim: Claim,
) -> tuple[Premise, ...]:
    """The premises of a claim, and whether each holds here."""
    risk, values, combine = controller.risks[index], state.risks[index], controller.combine
    premises = [*claim.premises]

    def fails(text: str, needed: str = "lower") -> None:
        premises.append(Premise(text, False, needed))

    if claim.lower is None and claim.upper is None:
        fails(f"the step rule {type(risk.step).__name__} states a bound", "both")
    text = f"every loss lies in [{promise.low:g}, {promise.high:g}]"
    if not isfinite(promise.high):
        text = f"no loss can exceed {within.rise + risk.level:g}, by the rule itself"
    if not isfinite(within.rise):
        text = (
            "the loss has a limit (give a cap: labels are late, sets never empty, risks several, "
            "or there was a change)"
        )
    premises += _bounds(within, claim)
    premises.append(Premise(text, isfinite(within.rise) and isfinite(within.fall)))
    premises += _ends(risk, promise)
    if never_empty(controller.sets):
        fails(
            "there is an empty set (there is none: the likeliest label is always in, so the risk "
            "may stay below its level)"
        )
    if turns(risk.loss, risk.level):
        premises.append(_turn(within))
    if state.groups:
        fails(
            "this risk alone decides the set (the groups of a row do too, so it may stay below "
            "its level)"
        )
    elif _within_another(controller, index):
        fails("this risk alone decides its set (the set before it does too, so it may stay below)")
    elif not _alone(controller, index, state):
        premises.append(_lower_side(combine, state))
        if not combine.covers_each and combine.anti_windup is None:
            fails(
                f"{type(combine).__name__} without anti-windup controls a weighted sum of the "
                "risks; each separately is controlled by its safeguard alone",
                "note",
            )
    excess = risk.level if promise.grows else -risk.level
    if values.unjudged and risk.unjudged == "zero" and excess != 0.0:
        side = "lower" if excess < 0.0 else "upper"
        fails("no label without anything to judge was counted as a loss of 0", side)
    return tuple(premises)


def _bounds(within: Within, claim: Claim) -> list[Premise]:
    """Where θ began, and what keeps it from running away, as far as the claim rests on it."""
    if claim.bounded:
        return []
    bounds = f"[{within.low:g}, {within.high:g}]"
    if within.low == -inf and within.high == inf:
        return [Premise("θ has bounds (it has none: give bounds, or use burn_in)", False)]
    text = f"θ begins at {within.start:g}, within its bounds {bounds}"
    if not within.low <= within.start <= within.high:
        text = f"θ began at {within.start:g}, outside {bounds}: the bound allows for it"
    found = [Premise(text, True)]
    if within.high == inf:
        text = "θ has an upper bound, above which the full set is shown"
        found.append(Premise(text, False, "upper"))
    one_sided = claim.lower is None and not (claim.window_needs_lower or claim.joint)
    if within.low == -inf and not one_sided:
        text = "θ has a lower bound, below which the empty set is shown"
        found.append(Premise(text, False, "lower"))
    return found


def _ends(risk: Risk, promise: Declaration) -> tuple[Premise, Premise]:
    """Where the loss must lie at the ends of the family."""

    def end(name: str, loss: float, most: bool, needed: str) -> Premise:
        size, side = ("at most", "above") if most else ("at least", "below")
        text = f"the loss of the {name} set is {size} {loss:g}, not {side} the level {risk.level:g}"
        return Premise(text, loss <= risk.level if most else loss >= risk.level, needed)

    return (
        end("full", promise.full, not promise.grows, "upper"),
        end("empty", promise.empty, promise.grows, "lower"),
    )


def _turn(within: Within) -> Premise:
    """Whether a loss that turns is where it can still be brought down."""
    if within.theta <= within.high:
        text = f"sets stay where the loss falls, θ at most {within.high:g}: θ is {within.theta:g}"
        return Premise(text, True, "note")
    text = (
        f"the level is within reach of sets up to θ = {within.high:g} (θ is {within.theta:g}: sets "
        "are as large as they may be; if that lasts, find the bound again)"
    )
    return Premise(text, False, "note")


def _lower_side(combine: Any, state: State) -> Premise:
    """With several risks a slack one may stay below its level."""
    if combine.empty_if == "some" and combine.anti_windup is None:
        text = (
            "the empty set is shown whenever one θ is below its bound "
            f"({state.torn:,} times another risk asked for the full set)"
        )
        return Premise(text, state.torn == 0, "lower")
    text = "this risk alone decides the set (others do too, so it may stay below its level)"
    return Premise(text, False, "lower")
