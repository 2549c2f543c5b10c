"""What the reports of all experiments share: tables in plain text, and verdicts on claims."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Verdict", "table"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """On which of the data sets a claim holds, in one setting."""

    claim: str
    where: str
    rule: str
    setting: str
    held: tuple[str, ...]
    failed: tuple[str, ...]

    @property
    def word(self) -> str:
        """One of "holds", "holds partly" and "does not hold here"."""
        if not self.failed:
            return "holds"
        return "holds partly" if self.held else "does not hold here"

    def __str__(self) -> str:
        count = len(self.held) + len(self.failed)
        where = f"{len(self.held)} of {count}"
        lacking = f", not {', '.join(self.failed)}" if self.held and self.failed else ""
        return f"{self.word} ({where}{lacking})"


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
