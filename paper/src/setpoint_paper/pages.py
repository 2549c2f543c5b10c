"""What the reports of all experiments share: tables in plain text, and verdicts on claims."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan, sqrt
from pathlib import Path
from statistics import fmean, stdev
from textwrap import fill
from typing import NamedTuple

__all__ = [
    "Interval", "Margin", "Margins", "Verdict", "decided", "fixed", "interval", "linked", "number",
    "percent", "table", "weighed", "word_rule", "wrapped",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over seeds and its 95 % confidence interval; without ends from one value."""

    mean: float
    low: float
    high: float
    count: int

    @property
    def ends(self) -> tuple[float, float]:
        """What decides: the interval, or one value as both of its ends; rounding is no margin."""
        low, high = (self.mean, self.mean) if isnan(self.low) else (self.low, self.high)
        return round(low, 12), round(high, 12)

    def __str__(self) -> str:
        if isnan(self.low):
            return _signed(self.mean)
        return f"{_signed(self.mean)} [{_signed(self.low)}, {_signed(self.high)}]"


def _signed(value: float) -> str:
    """Three digits that count; what is left of a difference of equal numbers is 0, not 4e-16."""
    value = round(value, 12) + 0.0
    return (f"{value:+,.0f}" if abs(value) >= 999.5 else f"{value:+.3g}").replace("-", "−")


def interval(values: Sequence[float], comparisons: int = 1) -> Interval:
    """The mean of some values with Student's 95 % interval; a wider one for several comparisons.

    >>> print(interval([1.0, 2.0, 3.0]))
    +2 [−0.484, +4.48]
    >>> print(interval([0.3 - 0.2 - 0.1]))
    +0
    """
    if not values:
        return Interval(nan, nan, nan, 0)
    mean = fmean(values)
    if len(values) < 2:
        return Interval(mean, nan, nan, len(values))
    from scipy.stats import t

    level = 1.0 - 0.025 / comparisons
    half = float(t.ppf(level, len(values) - 1)) * stdev(values) / sqrt(len(values))
    return Interval(mean, mean - half, mean + half, len(values))


class Margin(NamedTuple):
    """One comparison on a data set: what is compared with, and the interval of the margin.

    `rival` is empty where a claim has one comparison. `against` says that the claim loses it.
    """

    rival: str
    interval: Interval
    against: bool

    def __str__(self) -> str:
        told = str(self.interval).replace("+", "")
        return f"{told} ({self.rival})" if self.rival else told


@dataclass(frozen=True, slots=True)
class Verdict:
    """On which of the data sets a claim holds, in one setting.

    `undecided` are those where the claim neither wins every comparison nor loses one. `margins` has
    the worst comparison on each data set.

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
    margins: Mapping[str, Margin] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many data sets were judged."""
        return len(self.held) + len(self.failed) + len(self.undecided)

    @property
    def word(self) -> str:
        """One of "holds", "holds partly", "undecided", "does not hold here" and "not run".

        The fourth is said where a claim fails on half of the data sets or more, and on more than it
        holds on; the second and the third where it holds on some others, and on none.
        """
        if not self.count:
            return "not run"
        if len(self.held) == self.count:
            return "holds"
        if 2 * len(self.failed) >= self.count and len(self.failed) > len(self.held):
            return "does not hold here"
        return "holds partly" if self.held else "undecided"

    def margin(self, dataset: str) -> str:
        """The worst comparison on a data set as a table has it; a dash if there is none."""
        return str(self.margins.get(dataset, "–"))

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
    be a stronger rival than any of them. A claim that must win all of k comparisons loses one where
    an interval of 1 − 0.05/k lies below 0, so that chance alone does so in 5 % of the data sets at
    most. With one seed the sign decides.
    """
    found: dict[str, list[Margin]] = {}
    for name, seeds in margins.items():
        rivals = dict.fromkeys(rival for each in seeds for rival in each)
        found[name] = []
        for rival in rivals:
            values = [each[rival] for each in seeds if rival in each]
            against = interval(values, len(rivals)).ends[1] < 0.0
            shown = rival if len(rivals) > 1 else ""
            found[name].append(Margin(shown, interval(values), against))
    return weighed(claim, where, rule, setting, found)


def weighed(
    claim: str, where: str, rule: str, setting: str, margins: Mapping[str, Sequence[Margin]]
) -> Verdict:
    """A claim holds on a data set if all intervals lie above 0, and fails if it loses one."""
    held: list[str] = []
    failed: list[str] = []
    undecided: list[str] = []
    worst = {}
    for name, found in margins.items():
        lost = [margin for margin in found if margin.against]
        if lost:
            failed.append(name)
            worst[name] = min(lost, key=lambda margin: margin.interval.ends[1])
        elif found:
            least = worst[name] = min(found, key=lambda margin: margin.interval.ends[0])
            (held if least.interval.ends[0] > 0.0 else undecided).append(name)
    return Verdict(claim, where, rule, setting, tuple(held), tuple(failed), tuple(undecided), worst)


def word_rule(place: str) -> str:
    """What `Verdict.word` says of a claim, for a page: what it is judged on is a `place`."""
    return (
        f"A claim holds where it does on every {place}. It does not hold here if it fails on half "
        "of them or more, and on more than it holds on. Else it holds partly where it holds on "
        "some, and is undecided where on none."
    )


def linked(png: Path, told: str) -> str:
    """A figure in Markdown that lies beside the page, and leads to its vector version if any."""
    shown, vector = f"![{told}]({png.name})", png.with_suffix(".svg")
    return f"[{shown}]({vector.name})" if vector.is_file() else shown


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table with columns of equal width, words to the left and numbers to the right.

    >>> print(table(["a", "b"], [["one", "1.0"]]))
    | a   |   b |
    |-----|----:|
    | one | 1.0 |
    """
    rows = [list(head), *map(list, lines)]
    numeric = [
        all(not row[place] or row[place][0] in "0123456789+−-–" for row in rows[1:])
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


def number(value: float, digits: int = 4) -> str:
    """A number with so many digits that count, or a dash."""
    return "–" if isnan(value) else f"{value:#.{digits}g}".rstrip(".")


def fixed(value: float, places: int) -> str:
    """A number with so many places, or a dash."""
    return "–" if isnan(value) else f"{value:.{places}f}"


def percent(share: float, places: int = 2) -> str:
    """A share in percent, or a dash."""
    return fixed(100.0 * share, places)


def wrapped(text: str, *, point: bool = False) -> str:
    """Prose in lines that a screen shows whole; a point of a list is indented."""
    return fill(
        text, 110, initial_indent="- " if point else "",
        subsequent_indent="  " if point else "", break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
