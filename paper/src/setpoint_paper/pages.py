"""What the reports of all experiments share: tables in plain text, and verdicts on claims."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from statistics import fmean, stdev
from typing import NamedTuple

__all__ = ["Interval", "Margin", "Margins", "Verdict", "decided", "interval", "table", "weighed"]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over seeds and its 95 % confidence interval; without ends from one value."""

    mean: float
    low: float
    high: float
    count: int

    @property
    def ends(self) -> tuple[float, float]:
        """What decides: the interval, or one value as both of its ends."""
        return (self.mean, self.mean) if isnan(self.low) else (self.low, self.high)

    def __str__(self) -> str:
        if isnan(self.low):
            return _signed(self.mean)
        return f"{_signed(self.mean)} [{_signed(self.low)}, {_signed(self.high)}]"


def _signed(value: float) -> str:
    """Three digits that count; what is left of a difference of equal numbers is 0, not 4e-16."""
    value = round(value, 12) + 0.0
    return f"{value:+,.0f}" if abs(value) >= 1000.0 else f"{value:+.3g}"


def interval(values: Sequence[float]) -> Interval:
    """The mean of some values with Student's 95 % interval.

    >>> print(interval([1.0, 2.0, 3.0]))
    +2 [-0.484, +4.48]
    >>> print(interval([0.3 - 0.2 - 0.1]))
    +0
    """
    if not values:
        return Interval(nan, nan, nan, 0)
    mean = fmean(values)
    if len(values) < 2:
        return Interval(mean, nan, nan, len(values))
    from scipy.stats import t

    half = float(t.ppf(0.975, len(values) - 1)) * stdev(values) / sqrt(len(values))
    return Interval(mean, mean - half, mean + half, len(values))


class Margin(NamedTuple):
    """The comparison on a data set that says least for a claim, and the interval of its margin.

    `rival` is what is compared with, nothing where a claim has one comparison.
    """

    dataset: str
    rival: str
    found: Interval

    def __str__(self) -> str:
        told = str(self.found).replace("+", "").replace("-", "−")
        return f"{self.dataset} {told}{f' ({self.rival})' if self.rival else ''}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """On which of the data sets a claim holds, in one setting.

    `undecided` are those where the intervals of the margins neither all lie above 0 nor one of them
    below. `margins` have the least favourable comparison of each data set.

    >>> print(Verdict("", "", "", "", (), ("power",), ("wind",)))
    does not hold here (0 of 2, not power, undecided wind)
    """

    claim: str
    where: str
    rule: str
    setting: str
    held: tuple[str, ...]
    failed: tuple[str, ...]
    undecided: tuple[str, ...] = ()
    margins: tuple[Margin, ...] = ()

    @property
    def count(self) -> int:
        """How many data sets were judged."""
        return len(self.held) + len(self.failed) + len(self.undecided)

    @property
    def word(self) -> str:
        """One of "holds", "holds partly", "undecided", "does not hold here" and "not run"."""
        if not self.count:
            return "not run"
        if len(self.held) == self.count:
            return "holds"
        if self.held:
            return "holds partly"
        return "does not hold here" if self.failed else "undecided"

    def __str__(self) -> str:
        if not self.count:
            return self.word
        lacking = ""
        if self.held or self.undecided:
            lacking += f", not {', '.join(self.failed)}" if self.failed else ""
            lacking += f", undecided {', '.join(self.undecided)}" if self.undecided else ""
        return f"{self.word} ({len(self.held)} of {self.count}{lacking})"


Margins = Mapping[str, Sequence[Mapping[str, float]]]
"""By data set, and for each seed, the margin of every comparison by its name."""


def decided(claim: str, where: str, rule: str, setting: str, margins: Margins) -> Verdict:
    """The verdict of a rule whose margins are positive where it holds.

    Each comparison has an interval of its own, paired by seed: the best rival of each seed would
    be a stronger rival than any of them. With one seed the sign decides.
    """
    found = {}
    for name, seeds in margins.items():
        rivals = dict.fromkeys(rival for each in seeds for rival in each)
        found[name] = [
            Margin(
                name,
                rival if len(rivals) > 1 else "",
                interval([each[rival] for each in seeds if rival in each]),
            )
            for rival in rivals
        ]
    return weighed(claim, where, rule, setting, found)


def weighed(
    claim: str, where: str, rule: str, setting: str, margins: Mapping[str, Sequence[Margin]]
) -> Verdict:
    """A claim holds on a data set if all intervals lie above 0, and fails if one lies below."""
    held: list[str] = []
    failed: list[str] = []
    undecided: list[str] = []
    told = []
    for name, found in margins.items():
        if not found:
            continue
        against = [one for one in found if one.found.ends[1] < 0.0]
        if against:
            failed.append(name)
            told.append(min(against, key=lambda one: one.found.ends[1]))
        else:
            least = min(found, key=lambda one: one.found.ends[0])
            (held if least.found.ends[0] > 0.0 else undecided).append(name)
            told.append(least)
    return Verdict(
        claim, where, rule, setting, tuple(held), tuple(failed), tuple(undecided), tuple(told)
    )


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table with columns of equal width, words to the left and numbers to the right.

    >>> print(table(["a", "b"], [["one", "1.0"]]))
    | a   |   b |
    |-----|----:|
    | one | 1.0 |
    """
    rows = [list(head), *map(list, lines)]
    numeric = [
        all(not row[place] or row[place][0] in "0123456789−-–" for row in rows[1:])
        for place in range(len(head))
    ]
    widths = [max(3, *(len(row[place]) for row in rows)) for place in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    rule = "|".join(
        "-" * (width + 1) + (":" if right else "-")
        for width, right in zip(widths, numeric, strict=True)
    )
    return "\n".join([line(rows[0]), f"|{rule}|", *map(line, rows[1:])])
