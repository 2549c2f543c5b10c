"""What the commands share: words into values, progress for a person who watches, printing."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from typing import Any

import typer

from setpoint.errors import InputError
from setpoint.jobs.repeating import unlisted

__all__ = ["names", "numbers", "pair", "progress", "told", "working"]


def names(text: str | None) -> tuple[str, ...]:
    """Names separated by commas; one that holds a comma is put in double quotes.

    >>> names('cat, dog,"sea, lion"')
    ('cat', 'dog', 'sea, lion')
    """
    return unlisted(text)


def numbers(text: str | None) -> tuple[float, ...]:
    """Numbers separated by commas."""
    try:
        return tuple(map(float, names(text)))
    except ValueError:
        raise InputError(f"numbers are separated by commas, as in 0.1,0.2; got {text!r}") from None


def pair(text: str | None) -> tuple[float, float] | None:
    """A pair of numbers, of which ends may be inf."""
    if text is None:
        return None
    found = numbers(text)
    if len(found) != 2:
        raise InputError(f"support is a pair of numbers, as in 0,inf; got {text!r}")
    return found[0], found[1]


def told(
    text: str, data: Mapping[str, Any], made: Mapping[str, Path], *, quiet: bool, json: bool
) -> None:
    """Prints a result: for scripts one JSON object, for people the text and what was written."""
    if json:
        paths = {name: str(path) for name, path in made.items()}
        typer.echo(dumps({**data, "files": paths}, ensure_ascii=False, allow_nan=False))
        return
    if quiet:
        return
    if text:
        typer.echo(f"{text}\n")
    if made:
        folders = dict.fromkeys(str(path.parent) for path in made.values())
        together = len(folders) == 1 and len(made) > 1
        shown = [*made] if together else map(str, made.values())
        typer.echo(f"wrote {f'{next(iter(folders))}/: ' if together else ''}{', '.join(shown)}")
        if together and "report.html" in made:
            typer.echo(f"open {made['report.html']} in a browser")


@contextmanager
def progress(title: str, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error for a loop over rows; None where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


@contextmanager
def working(title: str, quiet: bool) -> Iterator[None]:
    """A sign on standard error that something goes on; nothing where nobody watches."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(title):
        yield
