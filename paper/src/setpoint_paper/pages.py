"""Tables in plain text, and numbers as they stand in them."""

from collections.abc import Iterable, Sequence
from math import isnan


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
