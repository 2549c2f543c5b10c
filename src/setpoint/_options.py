"""Options of commands, made from the parameters of the jobs and from what their docstrings say."""

import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from setpoint.errors import InputError
from setpoint.jobs.job import unlisted
from setpoint.tape import Columns

RowsFile = Annotated[
    Path,
    Argument(
        help="A .csv, .parquet or .jsonl file, gzipped or not; - reads a CSV from standard input.",
        show_default=False,
    ),
]
Folder = Annotated[
    Path | None,
    Option(help="The folder to write to. Default: one named after the file.", dir_okay=True),
]
NoReport = Annotated[bool, Option("--no-report", help="Do not write the HTML report.")]
Answers = Annotated[bool, Option("--json", help="Print one JSON object and nothing else.")]
Job = Annotated[dict[str, Any], "of a job"]
"""A parameter in whose place stand the options of a job."""
ControllerFile = Annotated[
    Path | None, Option(metavar="FILE", help="A TOML file: what to control, and how.")
]
History = Annotated[
    int | None,
    Option(help="How many closed predictions to keep per stream. A new store keeps 1,000,000."),
]
Window = Annotated[
    int | None, Option(help="Number of latest labels over which alarms average the loss.")
]
Tolerance = Annotated[
    float | None,
    Option(
        help="Raise an alarm if the mean loss is further than this from its level; 0.1 if not set."
    ),
]


def numbers(text: str | None) -> tuple[float, ...]:
    """Numbers with commas between them."""
    try:
        return tuple(int(n) if n.isdecimal() else float(n) for n in unlisted(text))
    except ValueError:
        raise InputError(f"numbers are separated by commas, as in 0.1,0.2; got {text!r}") from None


def named_numbers(text: str | None) -> dict[str, int]:
    """Whole numbers by name, as in batch=500,waiting=50."""
    pairs = [word.partition("=") for word in unlisted(text)]
    if not all(name and number.isdecimal() for name, _, number in pairs):
        raise InputError(f"limits are named numbers, as in batch=500,waiting=50; got {text!r}")
    return {name: int(number) for name, _, number in pairs}


def shares(text: str | None) -> Any:
    """One coverage, or several with commas between them."""
    return _one_of(numbers(text))


def _one_of(listed: tuple[Any, ...]) -> Any:
    return listed if len(listed) > 1 else listed[0] if listed else None


def _pair(text: str) -> tuple[float, ...]:
    ends = numbers(text)
    if len(ends) != 2:
        raise InputError(f"support is a pair of numbers, as in 0,inf; got {text!r}")
    return ends


_NAMES = {"totals": "total"}
"""Options that are not called as their parameters."""
_METAVARS = {
    "support": "LOW,HIGH", "coverage": "SHARES", "errors": "SHARES", "totals": "STEPS",
    "delay": "ROWS", "period": "STEPS", "steps": "ROWS", "controller": "FILE", "model": "NAME",
    "audits": "SHARE", "sure": "SHARE", "threshold": "SCORE", "max_pending": "COUNT",
}  # fmt: skip
_CONVERTED: dict[str, Callable[[str], Any]] = {
    "series": lambda text: _one_of(unlisted(text)), "probabilities": unlisted,
    "features": unlisted, "groups": unlisted, "without": unlisted, "known_ahead": unlisted,
    "wrong": unlisted, "support": _pair, "coverage": shares, "errors": numbers, "totals": numbers,
}  # fmt: skip
"""Options of several words or numbers, with commas between them."""
_PLAIN = (bool, int, float, str, int | None, float | None)


def options(job: Callable[..., Any], *columns: str) -> Callable[..., Callable[..., None]]:
    """Gives a command the parameters of a job as options, and these fields of `Columns`.

    The command has one parameter of the type `Job`. It receives what was given, and nothing else:
    the defaults are those of the job.
    """
    kinds = {field.name: (field.type, None) for field in fields(Columns)}
    described = _described(job) | {name: _described(Columns)[name] for name in columns}
    found: dict[str, tuple[Any, Any]] = {}
    taken = inspect.signature(job).parameters
    for name, parameter in taken.items():
        if name == "columns":
            found |= {column: kinds[column] for column in columns}
        elif name in described and name not in ("source", "progress"):
            found[name] = parameter.annotation, parameter.default

    def made(command: Callable[..., None]) -> Callable[..., None]:
        parameters = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            if parameter.annotation == Job:
                place = parameter.name
                parameters += [
                    _option(name, *held, described[name]) for name, held in found.items()
                ]
            else:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

        @wraps(command)
        def called(**given: Any) -> None:
            asked = {name: given.pop(name) for name in found}
            asked = {
                name: _CONVERTED[name](value) if name in _CONVERTED else value
                for name, value in asked.items()
                if value is not None
            }
            if "columns" in taken:
                named = {name: asked.pop(name) for name in columns if name in asked}
                asked["columns"] = Columns(**named)
            command(**given, **{place: asked})

        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in parameters}
        return called

    return made


def _option(name: str, kind: Any, default: Any, words: str) -> inspect.Parameter:
    """The option of a parameter."""
    plain = kind in _PLAIN and name not in _CONVERTED
    as_path = name == "controller"
    type_: Any = kind if plain else Path | None if as_path else str | None
    if name in ("delay", "period"):
        type_ = int | None
    needed = default is inspect.Parameter.empty and name != "target"
    metavar = _METAVARS.get(name, "COLUMNS" if name in _CONVERTED else "COLUMN")
    flag = f"--{_NAMES.get(name, name).replace('_', '-')}"
    option = Option(flag, help=words, metavar=None if type_ is bool else metavar)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if needed else default if plain else None,
        annotation=Annotated[str if needed else type_, option],
    )


def _described(documented: Any) -> dict[str, str]:
    """The first paragraph that a docstring has for each parameter, in the words of commands.

    What follows it is for Python alone.
    """
    described: dict[str, str] = {}
    _, _, parameters = (inspect.getdoc(documented) or "").partition("Parameters\n----------\n")
    for head, body in re.findall(r"^(\w[\w, ]*)\n((?:    .*\n?|\n)+)", parameters, re.MULTILINE):
        first = " ".join(body.partition("\n\n")[0].split())
        words = re.sub(r"(\w+)=\"([^\"]*)\"", r"--\1 '\2'", first)
        words = re.sub(r"\((\S+), (\S+)\)", r"\1,\2", words)
        words = re.sub(r"`([a-z_]+)`", r"--\1", words).replace('"', "'")
        described |= dict.fromkeys(head.split(", "), words)
    return described
