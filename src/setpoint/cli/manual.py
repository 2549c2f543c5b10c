"""The page of the command line, made from the commands themselves.

`python -m setpoint.cli.manual > docs/cli.md` writes it; a test holds the page to it.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, get_args, get_type_hints

import typer

from setpoint.cli.commands import app

__all__ = ["text"]

_INTRODUCTION = """\
# The command line

`pip install 'setpoint[cli,data,plots,fast]'` brings `setpoint`. The [tutorial](tutorial.md) goes
through it; this page is made from `--help` and holds every option.

- A command ends with 0 if all is well, with 1 and one sentence on standard error if something in
  the data or the options is wrong, with 2 if the command itself is not understood.
- `--json` prints one JSON object for scripts, `--quiet` nothing. Progress is shown on standard
  error, and only where a person watches.
- Files are written aside and moved to their place when all of them are whole. Where a job has
  written to the folder before, its files that the new job does not write are taken away then.
  A file that no job wrote is neither replaced nor taken away, and never the file that was read.
- Names separated by commas may be put in double quotes where they hold commas themselves, as in
  `--without '"price, EUR",volume'`.
- `setpoint --install-completion` teaches your shell the commands and options.

`run` and `calibrate` write a folder:

| file | what |
|---|---|
| `rows.csv` (`.parquet`, `.jsonl`) | your rows, with `lower`, `upper`, `covered` and `burn_in` \
behind them; `labels` and `size` for classes; `predicted_…` is what the model of `run` said. Names \
that your file has already get `calibrated_` before them. A full interval ends in ±inf, an empty \
one has its ends crossed; in JSON Lines, where the ends of either are null, `full` and `empty` \
tell which it is. Where a CSV becomes Parquet or JSON Lines, columns of numbers become numbers |
| `metrics.json` | every number of the report, the job, the command that repeats it, and the \
`files` of the job |
| `report.html` | the report, one page that needs no network |
| `controller.toml` | the controller, for `--config` and for `setpoint stream` |
| `state.zip` | the stream where it ended, or all of them, for `setpoint inspect` and \
`setpoint.jobs.streams` |
"""


def text() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for name, command in _commands(typer.main.get_command(app), "setpoint"):
        parts += [f"## {name}", *_paragraphs(command.help or ""), *_table(command)]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with its whole name."""
    for own, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} {own}")
        else:
            yield f"{name} {own}", command


def _paragraphs(words: str) -> list[str]:
    return [" ".join(part.split()) for part in words.split("\n\n")]


def _table(command: Any) -> list[str]:
    lines = ["| argument or option | what | default |", "|---|---|---|"]
    kinds = get_type_hints(command.callback)
    for each in command.params:
        if each.name == "help":
            continue
        is_option = each.opts[0].startswith("-")
        name = ", ".join(f"`{opt}`" for opt in each.opts) if is_option else f"`{each.name.upper()}`"
        words = [
            word
            for kind in (kinds.get(each.name), *get_args(kinds.get(each.name)))
            if isinstance(kind, type) and issubclass(kind, StrEnum)
            for word in kind
        ]
        listed = f" One of {', '.join(f'`{word}`' for word in words)}." if words else ""
        lines.append(f"| {name} | {each.help or ''}{listed} | {_default(each)} |")
    return ["\n".join(lines)]


def _default(option: Any) -> str:
    if option.required:
        return "needed"
    value = getattr(option.default, "value", option.default)
    if value is None or isinstance(value, bool):
        return ""
    return f"`{value}`"


if __name__ == "__main__":
    print(text(), end="")
