"""Rows of results as a table in text: what the experiments store and read again."""

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any

_MAKERS: dict[Any, Any] = {str: str, int: int, float: float, bool: lambda word: word == "True"}


def written(kind: type[Any], rows: Iterable[Any]) -> str:
    """A table of a dataclass with six digits a number: enough to tell, and to be told twice."""
    buffer = io.StringIO()
    table = csv.DictWriter(buffer, [each.name for each in fields(kind)], lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow(
            {
                name: f"{value:.6g}" if isinstance(value, float) else value
                for name, value in asdict(row).items()
            }
        )
    return buffer.getvalue()


def parsed(kind: type[Any], text: str) -> list[Any]:
    """The rows that `written` wrote."""
    makers = {each.name: _MAKERS[each.type] for each in fields(kind)}
    return [
        kind(**{name: makers[name](word) for name, word in line.items()})
        for line in csv.DictReader(io.StringIO(text))
    ]
