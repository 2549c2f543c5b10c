"""One engine for all claims: margins of seeds in, a verdict on every place out.

A claim has margins for one place (a data set, or a clip with its model) and one seed, positive
where it holds. On a place it holds where the 95 % interval of every comparison lies above 0, and
stands against the claim where one of 1 − 0.05/k lies below. `statistics` has the interval.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, log
from typing import Any, NamedTuple

from setpoint_paper.rows import listed
from setpoint_paper.statistics import LEAST, Estimate, estimate

Margins = Mapping[str, float]
"""The margin of each comparison, by its name; NaN where nothing could confirm it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper.

    Parameters
    ----------
    id
        The section and a letter; it never changes.
    text, short
        The claim, and its name in a list.
    rule
        What the margin is.
    margins
        Of one place and seed, from a function that is asked for numbers.
    unit
        Of the margins.
    against
        The margins that decide against it, where these are others: a mean that no bound confirms
        can still be too far off.
    options
        What a table of one kind of claims needs to know besides.
    """

    id: str
    text: str
    short: str
    rule: str
    margins: Callable[[Any], Margins]
    unit: str
    against: Callable[[Any], Margins] | None = None
    options: frozenset[str] = field(default_factory=frozenset)

    @property
    def own(self) -> bool:
        """Whether it is a check of this project, not a claim of the paper."""
        return self.id.startswith("own")


Rule = Callable[[Any], Margins] | tuple[Callable[[Any], Margins], Callable[[Any], Margins]]
"""The margins of a claim; or those for it, and those against it."""


def told(kind: str, rules: Mapping[str, Rule]) -> tuple[Claim, ...]:
    """The claims of one kind: their words from `claims.csv`, their rules by their ids."""
    found = []
    for line in listed("claims/claims.csv"):
        if line.pop("kind") == kind:
            rule = rules[line["id"]]
            margins, against = rule if isinstance(rule, tuple) else (rule, None)
            options = frozenset(line.pop("options").split())
            found.append(Claim(**line, margins=margins, against=against, options=options))
    return tuple(found)


class Outcome(NamedTuple):
    """One place: "for", "against", "open", "untestable" or "few"; and its worst comparison.

    `ran` counts the seeds that ran, of which the estimate may know fewer.
    """

    state: str
    rival: str
    estimate: Estimate
    ran: int = 1

    def __str__(self) -> str:
        if self.state == "untestable":
            return "cannot be tested here"
        count = self.estimate.seeds
        told = f" (not judged, seeds: {count})" if self.state == "few" else ""
        if count < self.ran and not told:
            told = f" ({count} of {self.ran} seeds)"
        return f"{self.estimate}{f' ({self.rival})' if self.rival else ''}{told}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim in one column, on every place; with `one` it says that something can happen."""

    places: Mapping[str, Outcome]
    judged: bool = True
    one: bool = False

    def count(self, state: str) -> int:
        """On how many places it is so."""
        return sum(outcome.state == state for outcome in self.places.values())

    @property
    def word(self) -> str:
        """One of "holds", "partly", "undecided", "not confirmed", "does not hold", and so on."""
        held, lost, unsure = (self.count(state) for state in ("for", "against", "open"))
        if not self.judged or self.count("few"):
            return "not judged"
        if not held + lost + unsure:
            return "untestable" if self.places else "–"
        if held == len(self.places) or (held and self.one):
            return "holds"
        if 2 * lost >= held + lost + unsure and lost > held:
            return "does not hold"
        return "partly" if held else "not confirmed" if lost else "undecided"

    def __str__(self) -> str:
        if self.word in ("–", "not judged", "untestable"):
            return self.word
        lacking = self.count("untestable")
        return (
            f"{self.word} {self.count('for')} : {self.count('against')}"
            f"{f', {lacking} untestable' if lacking else ''}"
        )


def decide(
    claim: Claim, places: Iterable[str], seeds: Callable[[str], Iterable[int]], asked: Any,
    *, judged: bool = True, signs: bool = False,
) -> Verdict:  # fmt: skip
    """A claim on every place where all that it asks for ran.

    `asked(place, seed)` gives what the margins are asked of; it raises a KeyError where a run is
    absent. A place where no number is known for some seed cannot be tested, unless the claim has
    bounds: those that no bound confirms are then left out, and counted.
    """
    found = {}
    for place in places:
        rows = []
        for seed in seeds(place):
            ask = asked(place, seed)
            try:
                margins = claim.margins(ask)
                rows.append((margins, claim.against(ask) if claim.against else margins))
            except KeyError:
                continue
        if rows:
            found[place] = weigh(rows, whole=claim.against is None, signs=signs)
    return Verdict(found, judged, "one" in claim.options)


def weigh(
    rows: Sequence[tuple[Margins, Margins]], *, whole: bool = True, signs: bool = False
) -> Outcome:
    """What the margins of some seeds, for a claim and against it, come to.

    `whole` asks for a number of every seed; with `signs` intervals are those of the sign test.
    """
    rivals = list(rows[0][0])
    many = len(rivals) > 1
    lost = {
        rival: estimate([against[rival] for _, against in rows], len(rivals), signs=signs)
        for rival in rivals
    }
    usual = {
        rival: estimate([margins[rival] for margins, _ in rows], signs=signs) for rival in rivals
    }
    behind = [rival for rival, each in lost.items() if each.known and round(each.high, 12) < 0.0]
    if behind:
        worst = min(behind, key=lambda rival: lost[rival].high)
        shown = usual[worst] if usual[worst].known else lost[worst]
        return Outcome("against", worst if many else "", shown, len(rows))
    enough, lacking = (
        len(rows) >= LEAST,
        whole and any(isnan(margin) for margins, _ in rows for margin in margins.values()),
    )
    if lacking or any(not each.known for each in usual.values()):
        state = "untestable" if enough else "few"
        return Outcome(state, "", next(iter(usual.values())), len(rows))
    worst = min(rivals, key=lambda rival: usual[rival].low)
    state = "for" if round(usual[worst].low, 12) > 0.0 else "open"
    return Outcome(state, worst if many else "", usual[worst], len(rows))


def log_percent(one: float, other: float) -> float:
    """By how much the first is larger: 100 ln of the ratio, near % while it is small.

    >>> round(log_percent(1.05, 1.0), 2)
    4.88
    """
    return 100.0 * log(one / other)
