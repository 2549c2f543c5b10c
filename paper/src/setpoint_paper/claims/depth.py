"""The paper's claims about depth, each with the rule that decides it, and the printed numbers."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import nan
from typing import Any, NamedTuple

from setpoint_paper.claims.engine import Claim, Margins, Verdict, decide
from setpoint_paper.claims.engine import log_percent as log
from setpoint_paper.depth.runs import Row

__all__ = [
    "CLAIMS",
    "COLUMNS",
    "PRINTED",
    "PRINTED_RISKS",
    "Column",
    "Printed",
    "places",
    "verdict",
]

_FOUR = ("constant", "magnitude", "previous", "registered")
_CENTRE = frozenset({"centre"})
_ALIKE = 5.0


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
    "registered": Printed(0.80001, 18.042, 0.7801, 0.168),
}
"""One risk, by heuristic."""

PRINTED_RISKS = {
    "max": Printed(0.85576, 22.886, nan, 0.09985),
    "mean": Printed(0.85655, 22.562, nan, 0.0997),
}
"""The registered heuristic under two risks."""


class Column(NamedTuple):
    """Which window is the centre, and whose registration, Max and Mean.

    The paper's way is TV-L1 with flows of their own for estimates and truths, and Max and Mean
    bare; ours is one DIS flow of the images, and Max and Mean under anti-windup.
    """

    name: str
    geometry: str
    bare: bool

    def named(self, word: str) -> str:
        """The heuristic or method that stands for a name of the paper."""
        if not self.bare:
            return word
        return {"registered": "registered_paper", "max": "max_bare", "mean": "mean_bare"}.get(
            word, word
        )


COLUMNS = (
    Column("the text's centre", "text", True),
    Column("the authors' centre", "authors", True),
    Column("our way, the text's centre", "text", False),
)


def _shorter(one: str, other: str) -> Callable[[Any], Margins]:
    return lambda ask: {"": log(ask(other, "length"), ask(one, "length"))}


def _covers(one: str, other: str) -> Callable[[Any], Margins]:
    return lambda ask: {"": 100.0 * (ask(one, "centre_coverage") - ask(other, "centre_coverage"))}


def _attains(*heuristics: str) -> dict[str, Any]:
    """The image coverage of one risk is 80 %, either way."""

    def margins(name: str) -> Callable[[Any], Margins]:
        return lambda ask: {
            each: 100.0 * (ask(each, f"{name} image") - abs(ask(each, "excess image")))
            for each in heuristics
        }

    return {
        "rule": "the tolerance of the frames judged less the distance of coverage from 80 %",
        "margins": margins("tolerance"), "against": margins("limit"), "unit": "points",
    }  # fmt: skip


def _holds(risk: str, method: str) -> dict[str, Any]:
    """A risk, registered residuals, is no more than its level."""

    def margins(name: str) -> Callable[[Any], Margins]:
        return lambda ask: {
            "": 100.0
            * (
                ask("registered", f"{name} {risk}", method)
                - ask("registered", f"excess {risk}", method)
            )
        }

    return {
        "rule": "the tolerance of the frames judged less what the risk is above its level",
        "margins": margins("tolerance"), "against": margins("limit"), "unit": "points",
        "options": _CENTRE,
    }  # fmt: skip


def _violates(method: str) -> dict[str, Any]:
    """The centre fails more often than asked, beyond two binomial deviations of its frames."""

    def margins(sure: float) -> Callable[[Any], Margins]:
        return lambda ask: {
            "": 100.0
            * (
                ask("registered", "excess centre", method)
                - sure * ask("registered", "chance centre", method)
            )
        }

    return {
        "rule": "its failures less 10 % and two binomial deviations of the frames judged",
        "margins": margins(1.0), "against": margins(0.0), "unit": "points",
        "options": _CENTRE,
    }  # fmt: skip


def _rising(ask: Any) -> Margins:
    order = ("registered", "previous", "constant", "magnitude")
    lengths = {each: ask(each, "length") for each in order}
    return {f"{one} to {two}": log(lengths[two], lengths[one]) for one, two in pairwise(order)}


def _mean_shorter(ask: Any) -> float:
    return log(ask("registered", "length", "max"), ask("registered", "length", "mean"))


CLAIMS = (
    Claim("1.1a", "the image coverage is 80 %", "80 % of an image", **_attains("registered")),
    Claim("3.3a", "control of the coverage of the centre does not control its failures",
          "centre coverage does not hold its failures", **_violates("centre")),
    Claim("4.2a", "one risk violates the centre failure", "one risk fails the centre",
          **_violates("single")),
    Claim("4.2b", "with two risks the image miscoverage is held", "Max holds the image",
          **_holds("image", "max")),
    Claim("4.2c", "with two risks the centre failure is held", "Max holds the centre",
          **_holds("centre", "max")),
    Claim("B.2.4a", "registration improves on previous residuals in length",
          "registration shortens", "how much shorter", _shorter("registered", "previous"), "log %"),
    Claim("B.2.4b", "registration improves on previous residuals in coverage of the centre",
          "registration helps the centre", "what is gained", _covers("registered", "previous"),
          "points",
          options=_CENTRE),
    Claim("D.2a", "every heuristic attains 80 %", "every heuristic attains 80 %",
          **_attains(*_FOUR)),
    Claim("D.2b", "previous residuals outperform the constant in length",
          "previous residuals shorten", "how much shorter", _shorter("previous", "constant"),
          "log %"),
    Claim("D.2c", "previous residuals outperform the constant in coverage of the centre",
          "previous residuals help the centre", "what is gained", _covers("previous", "constant"),
          "points",
          options=_CENTRE),
    Claim("D.2d", "the residual network does not outperform the constant in length",
          "residual network no shorter", "how much longer it is",
          _shorter("constant", "magnitude"), "log %"),
    Claim("D.2e", "the residual network does not outperform the constant in coverage of the centre",
          "residual network no better for the centre", "what is lost",
          _covers("constant", "magnitude"), "points", options=_CENTRE),
    Claim("D.2f", "lengths rise from registered to previous, constant and residual network",
          "the order of lengths", "the rise from each to the next", _rising, "log %"),
    Claim("D.3a", "Max and Mean perform similarly", "Max and Mean alike",
          f"{_ALIKE:g} less the difference of their lengths, either way",
          lambda ask: {"Mean longer": _ALIKE + _mean_shorter(ask),
                       "Mean shorter": _ALIKE - _mean_shorter(ask)},
          "log %", options=_CENTRE),
    Claim("D.3b", "Mean is narrower than Max", "Mean narrower than Max", "how much shorter",
          lambda ask: {"": _mean_shorter(ask)}, "log %", options=_CENTRE),
    Claim("D.3c", "Mean holds the image miscoverage", "Mean holds the image",
          **_holds("image", "mean")),
    Claim("D.3d", "Mean holds the centre failure", "Mean holds the centre",
          **_holds("centre", "mean")),
)  # fmt: skip


def places(rows: Sequence[Row]) -> tuple[str, ...]:
    """Every clip with its model, in their order."""
    return tuple(dict.fromkeys(row.place for row in rows))


def verdict(claim: Claim, column: Column, rows: Sequence[Row], *, judged: bool = True) -> Verdict:
    """A claim in a column, on every clip; no place where the column says nothing new."""
    asked: set[str] = set()

    def note(heuristic: str, _: str, method: str = "single") -> float:
        asked.update((heuristic, method))
        return 1.0

    claim.margins(note)
    same = not any(column._replace(bare=True).named(word) != word for word in asked)
    if (column is COLUMNS[1] and not claim.options) or (not column.bare and same):
        return Verdict({})
    found = {
        (row.place, row.seed, row.heuristic, row.method): row
        for row in rows
        if row.geometry == column.geometry
    }

    def ask_of(place: str, seed: int) -> Callable[..., float]:
        def ask(heuristic: str, metric: str, method: str = "single") -> float:
            row = found[place, seed, column.named(heuristic), column.named(method)]
            what, _, risk = metric.partition(" ")
            return row.told(what, risk) if risk else float(getattr(row, metric))

        return ask

    def seeds(place: str) -> list[int]:
        return sorted({row.seed for row in rows if row.place == place})

    return decide(claim, places(rows), seeds, ask_of, judged=judged)
