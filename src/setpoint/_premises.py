"""What the bounds of a certificate rest on, and whether it holds here."""

from math import inf, isfinite
from typing import Any

from setpoint.controller import Controller, Risk
from setpoint.losses import Declaration, turns
from setpoint.sets.family import never_empty, order_of
from setpoint.state import State
from setpoint.steps import Claim, Within
from setpoint.steps.claims import Premise


def alone(controller: Controller, index: int, state: State) -> bool:
    """Whether nothing but its own θ moves the set that a risk is judged on."""
    member = controller.owners[index]
    single = controller.owners.count(member) == 1 and not state.groups
    return single and not _within_another(controller, index)


def _within_another(controller: Controller, index: int) -> bool:
    """Whether the set that a risk is judged on is at least as large as one inside it."""
    return bool(order_of(controller.sets)) and controller.owners[index] > min(controller.owners)


def premises_of(
    controller: Controller,
    index: int,
    promise: Declaration,
    state: State,
    within: Within,
    claim: Claim,
) -> tuple[Premise, ...]:
    """The premises of a claim, and whether each holds here."""
    risk, values, combine = controller.risks[index], state.risks[index], controller.combine
    stated = claim.lower is not None or claim.upper is not None
    premises = [*claim.premises]
    if not stated:
        text = f"the step rule {type(risk.step).__name__} states a bound"
        premises.append(Premise(text, False))
    premises += [
        *_bounds(within, claim),
        Premise(
            f"every loss lies in [{promise.low:g}, {promise.high:g}]"
            if isfinite(promise.high)
            else f"no loss can exceed {within.rise + risk.level:g}, by the rule itself"
            if isfinite(within.rise)
            else "the loss has a limit (give a cap: labels are late, sets never empty, risks "
            "several, or there was a change)",
            isfinite(within.rise) and isfinite(within.fall),
        ),
        *_ends(risk, promise),
    ]
    if never_empty(controller.sets):
        text = (
            "there is an empty set (there is none: the likeliest label is always in, so the risk "
            "may stay below its level)"
        )
        premises.append(Premise(text, False, "lower"))
    if turns(risk.loss, risk.level):
        premises.append(_turn(within))
    if not alone(controller, index, state):
        if state.groups:
            text = (
                "this risk alone decides the set (the groups of a row do too, so it may stay below "
                "its level)"
            )
            premises.append(Premise(text, False, "lower"))
        elif _within_another(controller, index):
            text = (
                "this risk alone decides its set (the set before it does too, so it may stay below)"
            )
            premises.append(Premise(text, False, "lower"))
        else:
            premises.append(_lower_side(combine, state))
            if not combine.covers_each and combine.anti_windup is None:
                text = (
                    f"{type(combine).__name__} without anti-windup holds a weighted sum of the "
                    "risks; each by itself is held only by its safeguard"
                )
                premises.append(Premise(text, False, "note"))
    excess = risk.level if promise.grows else -risk.level
    if values.unjudged and risk.unjudged == "zero" and excess != 0.0:
        side = "lower" if excess < 0.0 else "upper"
        text = "no label without anything to judge was counted as a loss of 0"
        premises.append(Premise(text, False, side))
    return tuple(premises)


def _bounds(within: Within, claim: Claim) -> list[Premise]:
    """Where θ began, and what keeps it from running away, as far as the claim rests on it."""
    if claim.bounded:
        return []
    bounds = f"[{within.low:g}, {within.high:g}]"
    if within.low == -inf and within.high == inf:
        return [Premise("θ has bounds (it has none: give bounds, or use burn_in)", False)]
    inside = within.low <= within.start <= within.high
    found = [
        Premise(
            f"θ begins at {within.start:g}, within its bounds {bounds}"
            if inside
            else f"θ began at {within.start:g}, outside {bounds}: the bound allows for it",
            True,
        )
    ]
    if within.high == inf:
        found.append(
            Premise("θ has an upper bound, above which the full set is shown", False, "upper")
        )
    one_sided = claim.lower is None and not (claim.window_needs_lower or claim.joint)
    if within.low == -inf and not one_sided:
        found.append(
            Premise("θ has a lower bound, below which the empty set is shown", False, "lower")
        )
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
        "are as large as they may be; if that lasts, find the bound anew)"
    )
    return Premise(text, False, "note")


def _lower_side(combine: Any, state: State) -> Premise:
    """With several risks a slack one may stay below its level."""
    if combine.empty_if == "some" and combine.anti_windup is None:
        return Premise(
            "the empty set is shown whenever one θ is below its bound "
            f"({state.torn:,} times another risk asked for the full set)",
            state.torn == 0,
            "lower",
        )
    return Premise(
        "this risk alone decides the set (others do too, so it may stay below its level)",
        False,
        "lower",
    )
