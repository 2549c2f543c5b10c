"""Options of commands: groups declared once, from the values that the jobs take.

`flat` turns a parameter such as `columns: Annotated[Columns, Fields("target", "time")]` into an
option for each field. Its help is what the docstring of the value says.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

from typer import Argument, Option

from setpoint.errors import InputError
from setpoint.jobs.job import Goal, unlisted
from setpoint.tape import Columns

SetsName = StrEnum("SetsName", ["intervals", "labels"])
ModelName = StrEnum("ModelName", ["auto", "last", "seasonal", "linear", "boosting"])


class Fields(NamedTuple):
    """The fields of a value that become options."""

    names: tuple[str, ...]


class Listed(NamedTuple):
    """An option of several words or numbers, with commas between them."""

    convert: Callable[[str | None], Any]


def _numbers(text: str | None) -> tuple[float, ...]:
    try:
        return tuple(int(n) if n.isdecimal() else float(n) for n in unlisted(text))
    except ValueError:
        raise InputError(f"numbers are separated by commas, as in 0.1,0.2; got {text!r}") from None


def _limits(text: str | None) -> dict[str, int]:
    """Numbers by name, as in batch=500,waiting=50."""
    pairs = [word.partition("=") for word in unlisted(text)]
    if not all(name and number.isdecimal() for name, _, number in pairs):
        raise InputError(f"limits are named numbers, as in batch=500,waiting=50; got {text!r}")
    return {name: int(number) for name, _, number in pairs}


def _pair(text: str | None) -> tuple[float, ...] | None:
    ends = _numbers(text)
    if text is not None and len(ends) != 2:
        raise InputError(f"support is a pair of numbers, as in 0,inf; got {text!r}")
    return ends or None


def shares(text: str | None) -> Any:
    """One coverage, or several with commas between them."""
    levels = _numbers(text)
    return levels if len(levels) > 1 else levels[0] if levels else None


def _series(text: str | None) -> str | tuple[str, ...] | None:
    names = unlisted(text)
    return names if len(names) > 1 else names[0] if names else None


_METAVARS = {
    "series": "COLUMNS", "probabilities": "COLUMNS", "features": "COLUMNS", "delay": "ROWS",
    "period": "STEPS", "groups": "COLUMNS", "support": "LOW,HIGH", "coverage": "SHARES",
}  # fmt: skip
_TYPES: dict[str, Any] = {
    "target": str, "delay": int | None,
}  # fmt: skip
_CONVERTED: dict[str, Callable[[str | None], Any]] = {
    "series": _series, "probabilities": unlisted, "features": unlisted, "support": _pair,
    "coverage": shares, "groups": unlisted,
}  # fmt: skip

_PREDICTION = ("lower", "upper", "point", "probabilities")
_LATE = ("horizon", "known", "delay")
ForecastColumns = Annotated[
    Columns,
    Fields(("target", *_PREDICTION, "series", "time", *_LATE, "period", "features", "groups")),
]
LogColumns = Annotated[Columns, Fields(("series", "time", "known", "delay"))]
"""Of `gate`: whose request it was, when it came, and when its label was known."""
JobGoal = Annotated[Goal, Fields(("coverage", "support"))]

RowsToCome = Annotated[Columns, Fields(("series", "time"))]
"""Of `forecast`: its target is left out where it goes on from a folder."""

Names = Annotated[Any, Listed(unlisted)]
Numbers = Annotated[Any, Listed(_numbers)]
Ends = Annotated[Any, Listed(_pair)]
NamedLimits = Annotated[Any, Listed(_limits)]
RowsFile = Annotated[
    Path,
    Argument(
        help="A .csv, .parquet or .jsonl file; .gz too. - is a CSV on standard input.",
        show_default=False,
    ),
]
BurnIn = Annotated[
    int | None,
    Option(
        metavar="ROWS",
        help="How many first rows of each series are not judged. By default none; with a "
        "controller that they fill in a tenth, from 50 to 1,000.",
    ),
]
ControllerFile = Annotated[
    Path | None, Option(metavar="FILE", help="A controller as TOML: it says what to hold and how.")
]
Folder = Annotated[
    Path | None,
    Option(help="The folder to write to; by default one named after the file.", dir_okay=True),
]
NoReport = Annotated[bool, Option("--no-report", help="Leave the HTML page out.")]
Answers = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]


def flat(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose values are given field by field, and whose lists are given as text."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, tuple[str, ...]]] = {}
    lists: dict[str, Callable[[str | None], Any]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind, *marks = get_args(parameter.annotation) or (parameter.annotation,)
        for mark in marks:
            if isinstance(mark, Fields):
                groups[parameter.name] = kind, mark.names
                parameters += [_option(kind, name) for name in mark.names]
                break
            if isinstance(mark, Listed):
                lists[parameter.name] = mark.convert
                kind = str | None
        else:
            plain = Annotated[kind, *marks] if marks else kind
            parameters.append(
                parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=plain)
            )

    @wraps(command)
    def called(**given: Any) -> None:
        for name, (kind, names) in groups.items():
            fields = {field: given.pop(field) for field in names}
            fields |= {
                field: _CONVERTED[field](fields[field]) for field in names if field in _CONVERTED
            }
            given[name] = kind(**fields)
        for name, convert in lists.items():
            given[name] = convert(given[name])
        command(**given)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def _option(kind: type, name: str) -> inspect.Parameter:
    """The option of a field."""
    type_ = _TYPES.get(name, str | None)
    option = Option(help=_described(kind)[name], metavar=_METAVARS.get(name, "COLUMN"))
    default = inspect.Parameter.empty if type_ is str else None
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[type_, option]
    )


def _described(kind: type) -> Mapping[str, str]:
    """What the docstring of a value says of each parameter, in the words of commands."""
    described: dict[str, str] = {}
    text = inspect.getdoc(kind) or ""
    _, _, parameters = text.partition("Parameters\n----------\n")
    for head, body in re.findall(r"^(\w[\w, ]*)\n((?:    .*\n?|\n)+)", parameters, re.MULTILINE):
        words = re.sub(r"(\w+)=\"([^\"]*)\"", r"--\1 '\2'", " ".join(body.split()))
        words = re.sub(r"`(\w+)`", r"--\1", words).replace('"', "'")
        described |= dict.fromkeys(head.split(", "), words)
    return described
