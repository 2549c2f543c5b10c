"""The paper's claims about depth, each with the rule that decides it, and the printed numbers.

A rule has margins, positive where the claim holds, of one clip under one model and one seed, which
decide as in `tabular.claims`. Every claim is decided in two ways: with the paper's registration and
its bare Max and Mean, and with ours. Claims about the centre are decided for both of its
geometries.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log, nan
from statistics import median
from typing import Any, NamedTuple, Protocol

from setpoint_paper.depth.runs import CENTRE, IMAGE, Row
from setpoint_paper.pages import Verdict, decided

__all__ = [
    "CLAIMS",
    "PRINTED",
    "PRINTED_RISKS",
    "WAYS",
    "Claim",
    "Printed",
    "decide",
    "middle",
    "places",
    "runs_of",
    "typical",
]

_NEAR = 0.01
"""How far from its level a mean loss of a short clip may be to be called at it."""

_FOUR = ("constant", "magnitude", "previous", "registered")
"""The heuristics of the paper."""

WAYS: dict[str, dict[str, str]] = {
    "paper": {"registered": "registered_paper", "max": "max_bare", "mean": "mean_bare"},
    "ours": {},
}
"""What stands for the names in the claims: TV-L1 with flows for estimates and truths, and Max and
Mean bare, as in the paper; or DIS on the images, and Max and Mean under anti-windup."""


class Printed(NamedTuple):
    """What the authors printed, means over 10 seeds; the length is that of one pixel a frame."""

    coverage: float
    length: float
    centre_coverage: float
    centre_failure: float


PRINTED = {
    "constant": Printed(0.80002, 24.101, 0.72022, 0.30505),
    "magnitude": Printed(0.79993, 39.06, 0.66681, 0.38265),
    "previous": Printed(0.79996, 21.924, 0.73966, 0.2392),
    "registered_paper": Printed(0.80001, 18.042, 0.7801, 0.168),
}
"""One risk, by heuristic."""

PRINTED_RISKS = {
    "max_bare": Printed(0.85576, 22.886, nan, 0.09985),
    "mean_bare": Printed(0.85655, 22.562, nan, 0.0997),
}
"""The registered heuristic in the paper's way, by method; nothing had anti-windup there."""


class Ask(Protocol):
    """A metric of a heuristic under a method, of one clip, model, geometry and seed."""

    def __call__(self, heuristic: str, metric: str, method: str = "single") -> float: ...


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, where it stands, and by how much it holds.

    `margins` has a margin for each comparison, by its name. `printed` are the authors' numbers,
    `evidence` the heuristics, metrics and methods that stand beside them. A claim about the
    `centre` has a verdict for each geometry.
    """

    where: str
    text: str
    rule: str
    margins: Callable[[Ask], dict[str, float]]
    printed: str
    evidence: tuple[tuple[str, str, str], ...]
    centre: bool = False


def _shorter(ask: Ask, one: str, other: str) -> float:
    """How much shorter the intervals of one heuristic are than those of another, in log %."""
    return 100.0 * log(ask(other, "length") / ask(one, "length"))


def _better(ask: Ask, one: str, other: str) -> dict[str, float]:
    """What is gained in length, in log %, and in coverage of the centre, in points."""
    return {"length": _shorter(ask, one, other), "centre": _covered(ask, one, other)}


def _covered(ask: Ask, one: str, other: str) -> float:
    """How much better one heuristic covers the centre than another, in points."""
    return 100.0 * (ask(one, "centre_coverage") - ask(other, "centre_coverage"))


def _rising(ask: Ask, order: Sequence[str]) -> dict[str, float]:
    """The rise of length from each heuristic to the next, in log %."""
    return {f"{one} to {other}": _shorter(ask, one, other) for one, other in pairwise(order)}


def _both(ask: Ask, method: str) -> dict[str, float]:
    """How many points each of the two risks is below its level and one point."""
    image = ask("registered", "coverage", method) - (1.0 - IMAGE)
    centre = CENTRE - ask("registered", "centre_failure", method)
    return {"image": 100.0 * (image + _NEAR), "centre": 100.0 * (centre + _NEAR)}


def _at_level(ask: Ask, *heuristics: str) -> dict[str, float]:
    """One point less the distance of image coverage from 80 %, in points."""
    away = {each: abs(ask(each, "coverage") - (1.0 - IMAGE)) for each in heuristics}
    return {each: 100.0 * (_NEAR - distance) for each, distance in away.items()}


def _mean_shorter(ask: Ask) -> float:
    """How much shorter intervals under Mean are than those under Max, in log %."""
    mean, most = (ask("registered", "length", each) for each in ("mean", "max"))
    return 100.0 * log(most / mean)


def _lengths(*heuristics: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((each, "length", "single") for each in heuristics)


def _covers(*heuristics: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((each, "centre_coverage", "single") for each in heuristics)


_LOG = "in log % (100 ln of the ratio)"
_GAINED = f"what is gained in length, {_LOG}, and in coverage of the centre, in points"

CLAIMS = (
    Claim(
        "1.1, fig. 2",
        "the image coverage is 80 %",
        "registered, one risk: one point less the distance",
        lambda ask: _at_level(ask, "registered"),
        "80.00 %",
        (("registered", "coverage", "single"),),
    ),
    Claim(
        "D.2",
        "every heuristic attains 80 %",
        "one point less the distance of each of the four",
        lambda ask: _at_level(ask, *_FOUR),
        "80.00, 79.99, 80.00, 80.00 %",
        tuple((each, "coverage", "single") for each in _FOUR),
    ),
    Claim(
        "B.2.4, D.2",
        "registration improves on previous residuals",
        _GAINED,
        lambda ask: _better(ask, "registered", "previous"),
        "18.04*, 21.92* m, centre 78.01, 73.97 %",
        _lengths("registered", "previous") + _covers("registered", "previous"),
        centre=True,
    ),
    Claim(
        "D.2",
        "previous residuals outperform the constant",
        _GAINED,
        lambda ask: _better(ask, "previous", "constant"),
        "21.92*, 24.10 m, centre 73.97, 72.02 %",
        _lengths("previous", "constant") + _covers("previous", "constant"),
        centre=True,
    ),
    Claim(
        "D.2",
        "the residual network does not outperform the constant in length",
        f"how much longer it is, {_LOG}",
        lambda ask: {"": _shorter(ask, "constant", "magnitude")},
        "39.06*, 24.10 m",
        _lengths("magnitude", "constant"),
    ),
    Claim(
        "D.2",
        "the residual network does not outperform the constant in coverage of the centre",
        "what is lost, in points",
        lambda ask: {"": _covered(ask, "constant", "magnitude")},
        "66.68, 72.02 %",
        _covers("magnitude", "constant"),
        centre=True,
    ),
    Claim(
        "D.2",
        "lengths rise from registered to previous, constant and residual network",
        f"the rise from each to the next, {_LOG}",
        lambda ask: _rising(ask, ("registered", "previous", "constant", "magnitude")),
        "18.04*, 21.92*, 24.10, 39.06* m; in their later notebook the constant is the shortest",
        _lengths("registered", "previous", "constant", "magnitude"),
    ),
    Claim(
        "3.3, fig. 11",
        "control of the coverage of the centre does not control its failures",
        "registered, the coverage of the centre held at 80 %: its failures less 10 %, in points",
        lambda ask: {"": 100.0 * (ask("registered", "centre_failure", "centre") - CENTRE)},
        "17 % at a coverage of 78 %, not controlled",
        (
            ("registered", "centre_failure", "centre"),
            ("registered", "centre_coverage", "centre"),
            ("registered", "saturated", "centre"),
        ),
        centre=True,
    ),
    Claim(
        "4.2, fig. 6",
        "one risk violates the centre failure",
        "registered, one risk: centre failure less 10 %, in points",
        lambda ask: {"": 100.0 * (ask("registered", "centre_failure") - CENTRE)},
        "17.04 %",
        (("registered", "centre_failure", "single"),),
        centre=True,
    ),
    Claim(
        "4.2, fig. 6",
        "two risks hold both",
        "registered, Max: how many points each is below its level and one point",
        lambda ask: _both(ask, "max"),
        "85.58 %, failure 9.985 %",
        (("registered", "coverage", "max"), ("registered", "centre_failure", "max")),
        centre=True,
    ),
    Claim(
        "D.3",
        "Max and Mean perform similarly",
        f"registered: 5 less the difference of their lengths, either way, {_LOG}",
        lambda ask: {
            "Mean longer": 5.0 + _mean_shorter(ask),
            "Mean shorter": 5.0 - _mean_shorter(ask),
        },
        "22.56*, 22.89* m",
        (("registered", "length", "mean"), ("registered", "length", "max")),
        centre=True,
    ),
    Claim(
        "D.3",
        "Mean is narrower than Max",
        f"registered: how much shorter, {_LOG}",
        lambda ask: {"": _mean_shorter(ask)},
        "22.56*, 22.89* m",
        (("registered", "length", "mean"), ("registered", "length", "max")),
        centre=True,
    ),
    Claim(
        "D.3",
        "Mean holds both risks",
        "registered: how many points each is below its level and one point",
        lambda ask: _both(ask, "mean"),
        "85.66 %, failure 9.97 %",
        (("registered", "coverage", "mean"), ("registered", "centre_failure", "mean")),
        centre=True,
    ),
)


def places(rows: Sequence[Row]) -> tuple[tuple[str, str], ...]:
    """Every clip with its model, in their order."""
    return tuple(dict.fromkeys((row.clip, row.model) for row in rows))


def runs_of(
    rows: Sequence[Row], place: tuple[str, str], heuristic: str, method: str, geometry: str
) -> list[Row]:
    """The runs of a method on a clip, one a seed."""
    asked = (*place, heuristic, method, geometry)
    return [
        row
        for row in rows
        if (row.clip, row.model, row.heuristic, row.method, row.geometry) == asked
    ]


def middle(found: Sequence[Row], metric: str) -> float:
    """The median of a metric of some runs."""
    return median(float(getattr(row, metric)) for row in found)


def typical(
    rows: Sequence[Row],
    place: tuple[str, str],
    heuristic: str,
    metric: str,
    method: str = "single",
    geometry: str = "text",
) -> float:
    """The median over seeds of a metric."""
    found = runs_of(rows, place, heuristic, method, geometry)
    return middle(found, metric) if found else nan


def decide(rows: Sequence[Row], geometry: str = "text", way: str = "paper") -> dict[Claim, Verdict]:
    """The verdict on each claim in one of the `WAYS`, on the clips where all it asks for ran."""
    named = WAYS[way]
    found = {
        (row.clip, row.model, row.seed, row.heuristic, row.method): row
        for row in rows
        if row.geometry == geometry
    }
    verdicts: dict[Claim, Verdict] = {}
    for claim in CLAIMS:
        margins = {}
        for clip, model in places(rows):
            seeds = dict.fromkeys(key[2] for key in found if key[:2] == (clip, model))
            judged = [_margins(claim, found, (clip, model, seed), named) for seed in seeds]
            if any(judged):
                margins[f"{clip} ({model})"] = [each for each in judged if each]
        if margins:
            verdicts[claim] = decided(claim.text, claim.where, claim.rule, geometry, margins)
    return verdicts


def _margins(
    claim: Claim,
    found: Mapping[tuple[Any, ...], Row],
    place: tuple[str, str, int],
    named: Mapping[str, str],
) -> dict[str, float]:
    """The margins of one clip, model and seed; none where a run that is asked for is not there."""

    def ask(heuristic: str, metric: str, method: str = "single") -> float:
        row = found[(*place, named.get(heuristic, heuristic), named.get(method, method))]
        return float(getattr(row, metric))

    try:
        margins = claim.margins(ask)
    except KeyError:
        return {}
    return margins if all(margin == margin for margin in margins.values()) else {}
