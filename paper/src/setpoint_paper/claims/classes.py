"""Claims about label sets, about F1 and about cost: single runs, judged without seeds."""

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Any, NamedTuple

from setpoint_paper.claims.engine import Outcome, Verdict
from setpoint_paper.classification.f1 import Held
from setpoint_paper.statistics import Estimate

__all__ = ["Line", "lines"]


class Line(NamedTuple):
    """A claim with its verdict and its numbers in words."""

    id: str
    text: str
    short: str
    verdict: Verdict
    numbers: str


def _exact(margins: Mapping[str, float], judged: bool) -> Verdict:
    """A verdict of numbers that no seed varies: a theorem's bound, a run that locks in."""
    found = {
        place: Outcome("for" if margin > 0.0 else "against", "", Estimate(margin, nan, nan, 1))
        for place, margin in margins.items()
    }
    return Verdict(found, judged)


def lines(
    costs: Mapping[str, Sequence[float]],
    classes: Sequence[Mapping[str, str]],
    held: Sequence[Held],
    *,
    judged: bool = True,
) -> list[Line]:
    """Every claim of this kind for which there are results."""
    ran = [line for line in classes if (line["method"], line["pace"]) == ("controlled", "1")]
    found = [_cost(costs), _false_negatives(ran, judged), _f1(held, judged)]
    return [line for line in (*found, *_balance(ran, judged)) if line is not None]


def _cost(costs: Mapping[str, Sequence[float]]) -> Line | None:
    if not costs:
        return None
    told = "; ".join(
        f"{name} {100.0 * live / model:.2f} % ({1000.0 * live:.1f} µs of {model:.1f} ms)"
        for name, (model, live) in costs.items()
    )
    shares = {name: 1.0 - 100.0 * live / model for name, (model, live) in costs.items()}
    return Line(
        "abstract a", "essentially zero additional computational cost", "no cost",
        _exact(shares, True),
        f"a step of calibration is less than 1 % of a step of the model: {told}",
    )  # fmt: skip


def _false_negatives(ran: Sequence[Mapping[str, str]], judged: bool) -> Line | None:
    several = [line for line in ran if line["family"] == "Multilabel"]
    if not several:
        return None
    margins, told = {}, []
    for line in several:
        risk, level, bound = (100.0 * float(line[name]) for name in ("risk", "level", "bound"))
        if bound < level:
            margins[line["stream"]] = bound - abs(risk - level)
        told.append(f"{line['stream']} {risk:.2f} % of {level:.0f} %, bound ± {bound:.2f} points")
    return Line(
        "abstract b", "the false negative rate can be controlled", "the false negative rate",
        _exact(margins, judged), f"within the theorem's bound: {'; '.join(told)}",
    )  # fmt: skip


def _f1(held: Sequence[Held], judged: bool) -> Line | None:
    if not held:
        return None
    margins, told = {}, []
    for level in dict.fromkeys(each.level for each in held):
        calm, spell = (
            next(each for each in held if (each.level, each.spell) == (level, bad))
            for bad in (False, True)
        )
        margins[f"{level:g}"] = level + 0.05 - spell.after
        told.append(
            f"{level:.2f}, {calm.after:.3f} at the end without a bad spell, {spell.after:.3f} "
            f"after one, {100.0 * spell.full:.0f} % of the sets then hold every label"
        )
    return Line(
        "abstract c", "F1 can be controlled", "F1", _exact(margins, judged),
        "1 − F1 within 0.05 of its level on the last 300 rows, after 300 rows in which the model "
        f"says the opposite; one threshold reaches {held[0].constant:.3f}. Level {'; '.join(told)}",
    )  # fmt: skip


def _balance(ran: Sequence[Mapping[str, str]], judged: bool) -> list[Line]:
    known = {
        (line["stream"], line["family"]): line
        for line in ran
        if line["unbalanced"] and line["family"] in ("Threshold", "Cumulative")
    }
    streams = list(dict.fromkeys(stream for stream, _ in known))
    if not streams:
        return []

    def number(stream: str, family: str, name: str) -> float:
        return 100.0 * float(known[stream, family].get(name) or nan)

    apart = {each: number(each, "Threshold", "unbalanced") for each in streams}
    chance = {each: number(each, "Threshold", "floor") for each in streams}
    uneven = {each: apart[each] - 2.0 * chance[each] for each in streams}
    gains: dict[str, Outcome] = {}
    told: list[str] = []
    for stream in streams:
        line: Any = known[stream, "Threshold"]
        if not line["balance_gain"]:
            continue
        gain, low, high = (float(line[f"balance_{end}"]) for end in ("gain", "low", "high"))
        state = "for" if low > 0.0 else "against" if high < 0.0 else "open"
        gains[stream] = Outcome(state, "", Estimate(gain, low, high, 1))
        told.append(f"{stream} {gains[stream].estimate}")
    first = "; ".join(f"{each} {apart[each]:.1f}, {chance[each]:.1f}" for each in streams)
    lines = []
    if not any(map(isnan, uneven.values())):
        lines.append(
            Line(
                "G.a",
                "threshold sets have unbalanced coverage",
                "threshold sets unbalanced",
                _exact(uneven, judged),
                "points that the coverage of a class is from 90 % in the mean, more than twice "
                f"what independent misses make (second): {first}",
            )
        )
    lines.append(
        Line(
            "G.b",
            "cumulative sets are better balanced",
            "cumulative sets better balanced",
            Verdict(gains, judged),
            "points that the classes are nearer to 90 % with cumulative sets, interval of blocks "
            f"of rows drawn again: {'; '.join(told)}",
        )
    )
    return lines
