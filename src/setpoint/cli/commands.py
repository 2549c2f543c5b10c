"""The commands and their options."""

import sys
from pathlib import Path
from typing import Annotated

import typer

import setpoint
from setpoint.cli import work

__all__ = ["app", "options", "stream"]

app = typer.Typer(
    help="Keeps the risk of any online model at the level you set.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _command in (work.demo, work.run, work.calibrate, work.tune):
    app.command()(_command)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"setpoint {setpoint.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Keeps the risk of any online model at the level you set."""


@app.command()
def stream(
    state: Annotated[Path, typer.Option(help="The folder that holds the streams; made if new.")],
    config: Annotated[
        Path | None, typer.Option(help="The controller as TOML; needed for a new folder.")
    ] = None,
    missing: Annotated[
        str | None, typer.Option(help="What a null label does: skip (at first) or raise.")
    ] = None,
    max_pending: Annotated[
        int | None, typer.Option(help="How many may wait for a label; at first 10,000.")
    ] = None,
    overflow: Annotated[
        str | None, typer.Option(help="What one more does: refuse (at first) or expire.")
    ] = None,
    every: Annotated[
        int, typer.Option(help="Write all streams whole after so many events at least.")
    ] = 100_000,
) -> None:
    """Answers JSON Lines: predictions and late labels by id, for one or many streams.

    {"id": "a", "prediction": [10, 14]} is answered with a set, {"id": "a", "y": 12} with its loss.
    What was answered survives kill -9; what was not can be sent again.
    """
    from setpoint.jobs.repeating import read_controller

    controller = read_controller(config)
    options = {"missing": missing, "max_pending": max_pending, "overflow": overflow}
    with setpoint.Ledger(state, controller, every=every, **options) as ledger:  # type: ignore[arg-type]
        ledger.serve(sys.stdin.buffer, sys.stdout.buffer)


app.command()(work.report)
app.command()(work.inspect)
