"""What the reports of all experiments share: tables in plain text, and verdicts on claims."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan, sqrt
from statistics import fmean, stdev

__all__ = ["Interval", "Verdict", "decided", "interval", "table"]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over seeds and its 95 % confidence interval; without ends from one value."""

    mean: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        # What is left of a difference of equal numbers is 0, not 4e-16.
        mean, low, high = (round(each, 12) + 0.0 for each in (self.mean, self.low, self.high))
        return f"{mean:+.3g}" if isnan(low) else f"{mean:+.3g} [{low:+.3g}, {high:+.3g}]"


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


@dataclass(frozen=True, slots=True)
class Verdict:
    """On which of the data sets a claim holds, in one setting.

    `undecided` are those where the confidence interval of the rule's margin holds 0. `margins`
    are these intervals, by data set.

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
    margins: tuple[tuple[str, Interval], ...] = ()

    @property
    def word(self) -> str:
        """One of "holds", "holds partly", "undecided" and "does not hold here"."""
        if not self.failed and not self.undecided:
            return "holds"
        if self.held:
            return "holds partly"
        return "does not hold here" if self.failed else "undecided"

    def __str__(self) -> str:
        count = len(self.held) + len(self.failed) + len(self.undecided)
        lacking = ""
        if self.held or self.undecided:
            lacking += f", not {', '.join(self.failed)}" if self.failed else ""
            lacking += f", undecided {', '.join(self.undecided)}" if self.undecided else ""
        return f"{self.word} ({len(self.held)} of {count}{lacking})"


def decided(
    claim: str, where: str, rule: str, setting: str, margins: Mapping[str, Sequence[float]]
) -> Verdict:
    """The verdict of a rule whose margin is positive where it holds, one margin a seed.

    A data set is decided where the 95 % interval of its mean margin lies on one side of 0; with one
    seed the sign decides.
    """
    held: list[str] = []
    failed: list[str] = []
    undecided: list[str] = []
    told = []
    for name, values in margins.items():
        found = interval(values)
        told.append((name, found))
        low, high = (found.mean, found.mean) if isnan(found.low) else (found.low, found.high)
        (held if low > 0.0 else failed if high <= 0.0 else undecided).append(name)
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
