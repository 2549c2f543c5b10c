"""Claims about label sets, about F1 and about cost: single runs, judged without seeds."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import NamedTuple

from setpoint_paper.claims.engine import Outcome, Verdict
from setpoint_paper.classification.f1 import Held
from setpoint_paper.classification.methods import Row
from setpoint_paper.statistics import Estimate


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
    ran: Sequence[Row],
    held: Sequence[Held],
    *,
    judged: bool = True,
) -> list[Line]:
    """Every claim of this kind for which there are results."""
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


def _false_negatives(ran: Sequence[Row], judged: bool) -> Line | None:
    several = [row for row in ran if row.family == "Multilabel"]
    if not several:
        return None
    margins, told = {}, []
    for row in several:
        risk, level, bound = (100.0 * each for each in (row.risk, row.level, row.bound))
        if bound < level:
            margins[row.stream] = bound - abs(risk - level)
        told.append(f"{row.stream} {risk:.2f} %, level {level:.0f} %, bound ± {bound:.2f} points")
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
        f"says the opposite; one threshold reaches {held[0].constant:.3f}. The abstract promises "
        f"it for all data, so one stream refutes it; counts are levels. Level {'; '.join(told)}",
    )  # fmt: skip


def _balance(ran: Sequence[Row], judged: bool) -> list[Line]:
    known = [row for row in ran if row.family == "Threshold"]
    if not known:
        return []
    uneven = {}
    for row in known:
        apart, floor = 100.0 * row.unbalanced, 100.0 * row.floor
        state = "for" if apart > 2.0 * floor else "against" if apart < floor else "open"
        uneven[row.stream] = Outcome(state, "", Estimate(apart - 2.0 * floor, nan, nan, 1))
    first = "; ".join(
        f"{row.stream} {100.0 * row.unbalanced:.1f}, {100.0 * row.floor:.1f}" for row in known
    )
    gains = {}
    for row in known:
        low, high = row.balance_low, row.balance_high
        state = "for" if low > 0.0 else "against" if high < 0.0 else "open"
        gains[row.stream] = Outcome(state, "", Estimate(row.balance_gain, low, high, 1))
    told = "; ".join(f"{stream} {each.estimate}" for stream, each in gains.items())
    return [
        Line(
            "G.a", "threshold sets have unbalanced coverage", "threshold sets unbalanced",
            Verdict(uneven, judged, one=True),
            "points that the coverage of a class is from 90 % in the mean, and what independent "
            f"misses make of it; for beyond twice that, against below it: {first}",
        ),
        Line(
            "G.b", "cumulative sets are better balanced", "cumulative sets better balanced",
            Verdict(gains, judged),
            "points that the classes are nearer to 90 % with cumulative sets, interval of blocks "
            f"of rows drawn again: {told}",
        ),
    ]  # fmt: skip
