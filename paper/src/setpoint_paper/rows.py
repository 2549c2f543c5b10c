"""Tables in text: rows that the experiments store and read again, and those in this package."""

import csv
import io
from collections.abc import Iterable
from dataclasses import asdict, fields
from importlib.resources import files
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


def listed(place: str) -> list[dict[str, str]]:
    """The lines of a table of this package, named by its place in it."""
    text = files("setpoint_paper").joinpath(place).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))
