"""The commands `setpoint store …`: streams in a database listed, checked, moved and deleted."""

from json import dumps, loads
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

import setpoint
from setpoint.errors import InputError, StateError

if TYPE_CHECKING:
    from setpoint.state import Id
    from setpoint.store import Store

app = typer.Typer(
    help="Lists, checks, backs up, moves and deletes streams in a store.", no_args_is_help=True
)
Where = Annotated[
    str,
    Argument(
        metavar="STORE",
        help="An SQLite file or its folder, or a URL such as postgresql://….",
        show_default=False,
    ),
]
Name = Annotated[str, Argument(help="The stream.", show_default=False)]
File = Annotated[Path, Argument(help="The file, with lines of JSON.", show_default=False)]


def _opened(where: str) -> "Store":
    """A store that exists."""
    from setpoint.store.sqlite import file_of

    file = file_of(where)
    if file is not None and not file.exists():
        raise InputError(f"there is no store at {file}")
    return setpoint.Store(where)


@app.command("list")
def list_streams(
    store: Where, json: Annotated[bool, Option("--json", help="Print one JSON object.")] = False
) -> None:
    """Lists the streams: predictions, labels, pending predictions and recent coverage."""
    with _opened(store) as opened:
        rows = opened.overviews()
    if json:
        typer.echo(dumps(rows))
        return
    typer.echo(f"{'predictions':>12}{'labels':>12}{'pending':>9}{'last 100':>10}  stream")
    for name, row in rows.items():
        share = row["coverage"][0]
        shown = "–" if share is None else f"{100 * share:.1f} %"
        numbers = f"{row['predictions']:>12,}{int(row['labels']):>12,}{row['pending']:>9,}"
        typer.echo(f"{numbers}{shown:>10}  {name or '(no name)'}")


@app.command()
def check(store: Where) -> None:
    """Reads everything in a store and reports damage; exits with status 1 if it finds any."""
    with _opened(store) as opened:
        names, found = opened.names, opened.check()
    if found:
        listed = "\n  ".join(found)
        raise StateError(f"{store} is damaged:\n  {listed}")
    typer.echo(f"{len(names):,} streams are sound")


@app.command()
def backup(store: Where, file: File) -> None:
    """Writes a consistent snapshot of a store to a file; the store may stay in use."""
    with _opened(store) as opened:
        opened.export_streams(file)
    typer.echo(f"wrote {file}")


@app.command("restore")
def restore_store(store: Where, file: File) -> None:
    """Restores a store from a backup; its current content is replaced.

    Stop the service first. An SQLite file and its log are replaced as a whole, and the old file is
    kept as NAME.before. Send the events since the backup again: their ids prevent double counting.
    """
    kept = setpoint.Store.restore(store, file)
    typer.echo(f"restored {store}" + ("" if kept is None else f"; before it was {kept}"))


@app.command("export")
def export_streams(
    store: Where,
    file: File,
    stream: Annotated[
        list[str] | None, Option(help="A stream to export; repeat for several. Default: all.")
    ] = None,
) -> None:
    """Exports streams to a file that any store can import, whatever its database."""
    with _opened(store) as opened:
        opened.export_streams(file, stream or opened.names)
    typer.echo(f"wrote {file}")


@app.command("import")
def import_streams(
    store: Where,
    file: File,
    name: Annotated[
        str | None, Option(help="A new name, for a file with one stream. Default: its old name.")
    ] = None,
) -> None:
    """Imports exported streams, all or none; creates the store if needed."""
    with setpoint.Store(store) as opened:
        taken = opened.import_streams(file, name)
    typer.echo(f"imported {', '.join(taken)}")


@app.command()
def rename(store: Where, name: Name, to: Annotated[str, Argument(help="Its new name.")]) -> None:
    """Gives a stream another name."""
    with _opened(store) as opened:
        opened.rename(name, to)
    typer.echo(f"{name} is now {to}")


@app.command()
def delete(
    store: Where, name: Name, yes: Annotated[bool, Option("--yes", help="Do not ask.")] = False
) -> None:
    """Deletes a stream and everything stored about it."""
    with _opened(store) as opened:
        if not yes:
            typer.confirm(f"Delete {name} and all of its history?", abort=True)
        opened.delete(name)
    typer.echo(f"deleted {name}")


@app.command()
def forget(
    store: Where,
    name: Name,
    id: Annotated[list[str] | None, Option(help="An id; repeat for several. Default: all.")] = None,
    days: Annotated[
        float | None, Option(min=0, help="Only predictions closed more than this many days ago.")
    ] = None,
) -> None:
    """Deletes closed predictions of a stream; what was learnt from them stays."""
    before = None if days is None else time() - 86_400.0 * days
    ids = None if id is None else [known for text in id for known in _read(text)]
    with _opened(store) as opened:
        count = opened.forget(name, ids, before=before)
    typer.echo(f"forgot {count:,} predictions")


def _read(text: str) -> "list[Id]":
    """The ids that a word can stand for: a text, and a number or a list that it spells."""
    try:
        value = loads(text)
    except ValueError:
        return [text]
    return [text, value] if type(value) in (int, list) else [text]
