"""The tables of the command line's page, made from the commands themselves.

`python docs/cli.py` writes them into docs/cli.md, below its introduction; a test compares.
"""

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

from setpoint.cli import app

PAGE = Path(__file__).with_suffix(".md")


def text() -> str:
    """The whole page: its introduction as it is, then every command."""
    introduction = PAGE.read_text("utf-8").partition("\n## ")[0]
    parts = [introduction.rstrip()]
    for name, command in commands():
        paragraphs = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
        parts += [f"## {name}", *paragraphs, _table(command)]
    return "\n\n".join(parts) + "\n"


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its whole name."""
    group: Any = typer.main.get_command(app)
    for name, command in group.commands.items():
        inner = getattr(command, "commands", None)
        for word, part in {"": command}.items() if inner is None else inner.items():
            yield f"setpoint {name} {word}".rstrip(), part


def _table(command: Any) -> str:
    lines = ["| argument or option | what | default |", "|---|---|---|"]
    kinds = get_type_hints(command.callback)
    for option in command.params:
        if option.name == "help":
            continue
        name = f"`{option.name.upper()}`"
        if option.opts[0].startswith("-"):
            name = ", ".join(f"`{opt}`" for opt in option.opts)
        words = [
            word
            for kind in (kinds.get(option.name), *get_args(kinds.get(option.name)))
            if isinstance(kind, type) and issubclass(kind, StrEnum)
            for word in kind
        ]
        listed = f" One of {', '.join(f'`{word}`' for word in words)}." if words else ""
        lines.append(f"| {name} | {option.help or ''}{listed} | {_default(option)} |")
    return "\n".join(lines)


def _default(option: Any) -> str:
    if option.required:
        return "needed"
    value = getattr(option.default, "value", option.default)
    return "" if value is None or isinstance(value, bool) else f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(text(), "utf-8")
