"""The paper's claims about depth, each with the rule that decides it, and the printed numbers.

A rule speaks of one clip under one model, by medians over seeds. A claim *holds* if its rule does
for every one of them, *holds partly* if for some, and else *does not hold here*.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from statistics import median
from typing import NamedTuple, Protocol

from setpoint_paper.depth.runs import CENTRE, IMAGE, Row
from setpoint_paper.pages import Verdict

__all__ = ["CLAIMS", "PRINTED", "PRINTED_RISKS", "Claim", "Printed", "decide", "places", "typical"]

_NEAR = 0.01
"""How far from its level a mean loss of a short clip may be to be called at it."""

PAPER = ("constant", "magnitude", "previous", "registered")
"""The heuristics of the paper."""


class Printed(NamedTuple):
    """What the authors printed, means over 10 seeds; the length is that of one pixel a frame."""

    coverage: float
    length: float
    centre_coverage: float
    centre_failure: float
    gamma: str


PRINTED = {
    "constant": Printed(0.80002, 24.101, 0.72022, 0.30505, "0.5"),
    "magnitude": Printed(0.79993, 39.06, 0.66681, 0.38265, "0.05"),
    "previous": Printed(0.79996, 21.924, 0.73966, 0.2392, "0.1"),
    "registered": Printed(0.80001, 18.042, 0.7801, 0.168, "0.2"),
}
"""One risk, by heuristic."""

PRINTED_RISKS = {
    "single": Printed(0.79997, 18.189, nan, 0.17035, "0.5"),
    "max": Printed(0.85576, 22.886, nan, 0.09985, "0.01, 0.01"),
    "mean_bare": Printed(0.85655, 22.562, nan, 0.0997, "0.0001, 0.01"),
}
"""The registered heuristic, by method; Max had no anti-windup there."""


class Ask(Protocol):
    """The median over seeds of a metric of a heuristic under a method."""

    def __call__(self, heuristic: str, metric: str, method: str = "single") -> float: ...


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, where it stands, and when it holds for a clip and a model.

    `printed` are the authors' numbers, `evidence` the runs and metrics that stand beside them.
    """

    where: str
    text: str
    rule: str
    holds: Callable[[Ask], bool]
    printed: str
    evidence: tuple[tuple[str, str, str], ...]


def _better(ask: Ask, one: str, other: str) -> bool:
    return ask(one, "length") < ask(other, "length") and ask(one, "centre_coverage") > ask(
        other, "centre_coverage"
    )


def _rising(ask: Ask, order: Sequence[str]) -> bool:
    lengths = [ask(each, "length") for each in order]
    return lengths == sorted(lengths)


def _both(ask: Ask) -> bool:
    return (
        ask("registered", "coverage", "max") >= 1.0 - IMAGE - _NEAR
        and ask("registered", "centre_failure", "max") <= CENTRE + _NEAR
    )


_BOTH = (("registered", "coverage", "max"), ("registered", "centre_failure", "max"))


def _lengths(*heuristics: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((each, "length", "single") for each in heuristics)


def _compared(one: str, other: str) -> tuple[tuple[str, str, str], ...]:
    return (
        *_lengths(one, other),
        (one, "centre_coverage", "single"),
        (other, "centre_coverage", "single"),
    )


CLAIMS = (
    Claim(
        "1.1, fig. 2",
        "the image coverage is 80 %",
        "registered, one risk: within one point",
        lambda ask: abs(ask("registered", "coverage") - (1.0 - IMAGE)) <= _NEAR,
        "80.00 %",
        (("registered", "coverage", "single"),),
    ),
    Claim(
        "app. D.2",
        "every heuristic attains 80 %",
        "all four within one point",
        lambda ask: all(abs(ask(each, "coverage") - (1.0 - IMAGE)) <= _NEAR for each in PAPER),
        "80.00, 79.99, 80.00, 80.00 %",
        tuple((each, "coverage", "single") for each in PAPER),
    ),
    Claim(
        "app. B.2, D.2",
        "registration improves on previous residuals",
        "shorter, and the centre covered better",
        lambda ask: _better(ask, "registered", "previous"),
        "18.04*, 21.92* m, centre 78.01, 73.97 %",
        _compared("registered", "previous"),
    ),
    Claim(
        "app. B.2, D.2",
        "registration in the paper's own way improves on previous residuals",
        "TV-L1, estimates and truths apart: shorter, and the centre covered better",
        lambda ask: _better(ask, "registered_paper", "previous"),
        "18.04*, 21.92* m, centre 78.01, 73.97 %",
        _compared("registered_paper", "previous"),
    ),
    Claim(
        "app. D.2",
        "previous residuals outperform the constant",
        "shorter, and the centre covered better",
        lambda ask: _better(ask, "previous", "constant"),
        "21.92*, 24.10 m, centre 73.97, 72.02 %",
        _compared("previous", "constant"),
    ),
    Claim(
        "app. D.2",
        "the residual network does not outperform the constant",
        "not both shorter and the centre covered better",
        lambda ask: not _better(ask, "magnitude", "constant"),
        "39.06*, 24.10 m, centre 66.68, 72.02 %",
        _compared("magnitude", "constant"),
    ),
    Claim(
        "app. D.2",
        "lengths rise from registered to previous, constant and residual network",
        "the lengths are in this order",
        lambda ask: _rising(ask, ("registered", "previous", "constant", "magnitude")),
        "18.04*, 21.92*, 24.10, 39.06* m; in their later notebook the constant is the shortest",
        _lengths("registered", "previous", "constant", "magnitude"),
    ),
    Claim(
        "4.2, fig. 6",
        "one risk violates the centre failure",
        "registered, one risk: above 10 %",
        lambda ask: ask("registered", "centre_failure") > CENTRE,
        "17.04 %",
        (("registered", "centre_failure", "single"),),
    ),
    Claim(
        "4.2, fig. 6",
        "two risks hold both",
        "registered, Max: each at its level or better, to one point",
        _both,
        "85.58 %, failure 9.985 %",
        _BOTH,
    ),
    Claim(
        "app. D.3",
        "Mean is narrower than Max",
        "registered, both with anti-windup: shorter",
        lambda ask: ask("registered", "length", "mean") < ask("registered", "length", "max"),
        "22.56*, 22.89* m, both without anti-windup",
        (("registered", "length", "mean"), ("registered", "length", "max")),
    ),
    Claim(
        "app. D.3",
        "the bare Mean holds both risks and is narrower than Max",
        "registered, bare Mean: each at its level or better, to one point, and shorter",
        lambda ask: (
            ask("registered", "coverage", "mean_bare") >= 1.0 - IMAGE - _NEAR
            and ask("registered", "centre_failure", "mean_bare") <= CENTRE + _NEAR
            and ask("registered", "length", "mean_bare") < ask("registered", "length", "max")
        ),
        "85.66 %, failure 9.97 %, 22.56*, 22.89* m",
        (
            ("registered", "coverage", "mean_bare"),
            ("registered", "centre_failure", "mean_bare"),
            ("registered", "length", "mean_bare"),
            ("registered", "length", "max"),
        ),
    ),
)


def places(rows: Sequence[Row]) -> tuple[tuple[str, str], ...]:
    """Every clip with its model, in their order."""
    return tuple(dict.fromkeys((row.clip, row.model) for row in rows))


def typical(
    rows: Sequence[Row], place: tuple[str, str], heuristic: str, metric: str, method: str = "single"
) -> float:
    """The median over seeds of a metric."""
    found = [
        float(getattr(row, metric))
        for row in rows
        if (row.clip, row.model) == place and (row.heuristic, row.method) == (heuristic, method)
    ]
    return median(found) if found else nan


def decide(rows: Sequence[Row]) -> dict[Claim, Verdict]:
    """The verdict on each claim whose heuristics all ran; none if one of the paper's did not."""
    ran = {row.heuristic for row in rows}
    verdicts: dict[Claim, Verdict] = {}
    for claim in CLAIMS:
        if not ran >= {*PAPER, *(heuristic for heuristic, _, _ in claim.evidence)}:
            continue
        held: list[str] = []
        failed: list[str] = []
        for place in places(rows):

            def ask(
                heuristic: str,
                metric: str,
                method: str = "single",
                place: tuple[str, str] = place,
            ) -> float:
                return typical(rows, place, heuristic, metric, method)

            (held if claim.holds(ask) else failed).append(f"{place[0]} ({place[1]})")
        verdicts[claim] = Verdict(
            claim.text, claim.where, claim.rule, "ours", tuple(held), tuple(failed)
        )
    return verdicts
