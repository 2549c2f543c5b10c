"""The paper's claims about depth, each with the rule that decides it, and the printed numbers."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import nan
from typing import Any, NamedTuple

from setpoint_paper.claims.engine import Claim, Margins, Rule, Verdict, decide, told
from setpoint_paper.claims.engine import log_percent as log
from setpoint_paper.depth.runs import Row

_FOUR = ("constant", "magnitude", "previous", "registered")


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


def _attains(*heuristics: str) -> Rule:
    """The image coverage of one risk is 80 %, either way."""

    def margins(name: str) -> Callable[[Any], Margins]:
        return lambda ask: {
            each: 100.0 * (ask(each, f"{name} image") - abs(ask(each, "excess image")))
            for each in heuristics
        }

    return margins("tolerance"), margins("limit")


def _holds(risk: str, method: str) -> Rule:
    """A risk, registered residuals, is no more than its level."""

    def margins(name: str) -> Callable[[Any], Margins]:
        return lambda ask: {
            "": 100.0
            * (
                ask("registered", f"{name} {risk}", method)
                - ask("registered", f"excess {risk}", method)
            )
        }

    return margins("tolerance"), margins("limit")


def _violates(method: str) -> Rule:
    """The centre fails more often than asked, beyond two binomial deviations of its frames."""

    def margins(sure: float) -> Callable[[Any], Margins]:
        return lambda ask: {
            "": 100.0
            * (
                ask("registered", "excess centre", method)
                - sure * ask("registered", "chance centre", method)
            )
        }

    return margins(1.0), margins(0.0)


def _rising(ask: Any) -> Margins:
    order = ("registered", "previous", "constant", "magnitude")
    lengths = {each: ask(each, "length") for each in order}
    return {f"{one} to {two}": log(lengths[two], lengths[one]) for one, two in pairwise(order)}


def _mean_shorter(ask: Any) -> float:
    return log(ask("registered", "length", "max"), ask("registered", "length", "mean"))


CLAIMS = told("depth", {
    "1.1a": _attains("registered"),
    "3.3a": _violates("centre"),
    "4.2a": _violates("single"),
    "4.2b": _holds("image", "max"),
    "4.2c": _holds("centre", "max"),
    "B.2.4a": _shorter("registered", "previous"),
    "B.2.4b": _covers("registered", "previous"),
    "D.2a": _attains(*_FOUR),
    "D.2b": _shorter("previous", "constant"),
    "D.2c": _covers("previous", "constant"),
    "D.2d": _shorter("constant", "magnitude"),
    "D.2e": _covers("constant", "magnitude"),
    "D.2f": _rising,
    "D.3a": lambda ask: {"Mean longer": 5.0 + _mean_shorter(ask),
                         "Mean shorter": 5.0 - _mean_shorter(ask)},
    "D.3b": lambda ask: {"": _mean_shorter(ask)},
    "D.3c": _holds("image", "mean"),
    "D.3d": _holds("centre", "mean"),
})  # fmt: skip


def places(rows: Sequence[Row]) -> tuple[str, ...]:
    """Every clip with its model, in their order."""
    return tuple(dict.fromkeys(row.place for row in rows))


def verdict(claim: Claim, column: Column, rows: Sequence[Row], **options: bool) -> Verdict:
    """A claim in a column, on every clip; no place where the column says nothing new."""
    asked: set[str] = set()

    def note(heuristic: str, _: str, method: str = "single") -> float:
        asked.update((heuristic, method))
        return 1.0

    claim.margins(note)
    same = not any(column._replace(bare=True).named(word) != word for word in asked)
    if (column is COLUMNS[1] and "centre" not in claim.options) or (not column.bare and same):
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

    return decide(claim, places(rows), seeds, ask_of, **options)
