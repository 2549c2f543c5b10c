"""Verdicts on the paper's claims about depth, in both ways and with both centres."""

from collections.abc import Iterator, Sequence
from math import isfinite
from statistics import fmean
from typing import NamedTuple

from setpoint_paper.depth.claims import CLAIMS, WAYS, Claim, decide, middle, places, runs_of
from setpoint_paper.depth.runs import GEOMETRIES, GEOMETRY_NAMES, WAY_NAMES, Row
from setpoint_paper.pages import Verdict, percent, table

__all__ = ["Case", "cases", "compared", "length_told", "numbers"]


class Case(NamedTuple):
    """A verdict on a claim, in which way and with which centre, if these matter."""

    way: str
    geometry: str
    verdict: Verdict

    def __str__(self) -> str:
        told = filter(None, (WAY_NAMES.get(self.way), GEOMETRY_NAMES.get(self.geometry)))
        return ", ".join(told) or "here"


def cases(rows: Sequence[Row]) -> Iterator[tuple[Claim, list[Case]]]:
    """Every claim with its verdicts, the paper's way first; only those that say something new."""
    settled = {
        (way, geometry): decide(rows, geometry, way) for way in WAYS for geometry in GEOMETRIES
    }
    for claim in CLAIMS:
        asked = {word for heuristic, _, method in claim.evidence for word in (heuristic, method)}
        same = not asked & set(WAYS["paper"])
        found = [
            Case("" if same else way, geometry if claim.centre else "", verdicts[claim])
            for (way, geometry), verdicts in settled.items()
            if claim in verdicts
            and (claim.centre or geometry == "text")
            and (way == "paper" or not same)
        ]
        if found:
            yield claim, found


def compared(rows: Sequence[Row], claim: Claim, found: Sequence[Case]) -> str:
    """The numbers and margins of a claim, for each case and clip."""
    lines = [
        [str(case), name, numbers(rows, claim, case, place), case.verdict.margin(name)]
        for case in found
        for place in places(rows)
        if (name := f"{place[0]} ({place[1]})") in case.verdict.margins
    ]
    return table(["way", "clip", "here", "margin"], lines)


def numbers(rows: Sequence[Row], claim: Claim, case: Case, place: tuple[str, str]) -> str:
    """Our numbers of a clip, in the order of the printed ones; full sets have no length."""
    named, told = WAYS.get(case.way, {}), []
    for heuristic, metric, method in claim.evidence:
        asked = named.get(heuristic, heuristic), named.get(method, method)
        found = runs_of(rows, place, *asked, case.geometry or "text")
        value = middle(found, metric)
        if metric == "length":
            full = fmean(row.saturated for row in found)
            apart = f" ({percent(full)} % full sets)" if full else ""
            told.append(f"{length_told(value)} m{apart}")
        else:
            told.append(f"{percent(value)} %" + " full sets" * (metric == "saturated"))
    return ", ".join(told)


def length_told(value: float) -> str:
    """A length with three digits that count: 10.3, 5.85, 0.184."""
    return "–" if not isfinite(value) else f"{value:#.3g}".rstrip(".")
