"""The commands and their options."""

import sys
from pathlib import Path
from typing import Annotated

import typer

import setpoint
from setpoint.cli import screen, work

__all__ = ["app", "classification", "depth", "options", "stream", "tabular"]

app = typer.Typer(
    help="Keeps the risk of any online model at the level you set.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
reproduce = typer.Typer(
    help="Runs the experiments of the paper, and others like them, on real data.",
    no_args_is_help=True,
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
app.add_typer(reproduce, name="reproduce")

Out = Annotated[Path, typer.Option("--out", help="The folder for tables and figures.")]
Quick = Annotated[bool, typer.Option("--quick", help="Something smaller, in a minute or two.")]


@reproduce.command()
def tabular(
    datasets: Annotated[
        str, typer.Option(help="Names separated by commas.")
    ] = "power,energy,traffic,prices,wind",
    seeds: Annotated[int, typer.Option(help="How many initialisations of the model.")] = 5,
    model: Annotated[str, typer.Option(help="lstm or linear.")] = "lstm",
    batch: Annotated[int, typer.Option(help="The most recent rows the LSTM learns from.")] = 512,
    scale_rows: Annotated[
        int,
        typer.Option(help="The first rows that x, y and θ are scaled by; the authors took 8000."),
    ] = 5000,
    jobs: Annotated[int, typer.Option(help="How many processes.")] = 1,
    quick: Quick = False,
    ready: Annotated[
        bool, typer.Option("--ready", help="Use the tapes that are finished and make no others.")
    ] = False,
    out: Out = Path("results"),
) -> None:
    """The regression experiments: coverage, streaks and lengths of every stretching function."""
    from setpoint.experiments import tabular as experiment

    experiment.reproduce(
        datasets=screen.names(datasets),
        seeds=seeds,
        model=model,
        batch=batch,
        scale_rows=scale_rows,
        jobs=jobs,
        quick=quick,
        ready=ready,
        out=out,
    )


@reproduce.command()
def classification(
    streams: Annotated[
        str, typer.Option(help="Names separated by commas.")
    ] = "gas_drift,outdoor,power_supply,yeast",
    quick: Quick = False,
    out: Out = Path("results"),
) -> None:
    """Label sets on streams that drift, beside the bare classifier and a fixed threshold."""
    from setpoint.experiments import classification as experiment

    experiment.reproduce(streams=screen.names(streams), quick=quick, out=out)


@reproduce.command()
def depth(
    clip: Annotated[
        str, typer.Option(metavar="NAMES", help="kitti, kitchen, road; separated by commas.")
    ] = "kitti,kitchen,road",
    model: Annotated[
        str,
        typer.Option(metavar="NAMES", help="stored, network; stored ones come with kitti alone."),
    ] = "stored,network",
    heuristics: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="The paper's four, and registered_paper, its way of the last."
        ),
    ] = "constant,magnitude,previous,registered",
    seeds: Annotated[int, typer.Option(help="How many initialisations of the model.")] = 3,
    frames: Annotated[
        int | None, typer.Option(help="How many first frames of each clip; by default all.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="How many processes.")] = 1,
    quick: Quick = False,
    out: Out = Path("results"),
) -> None:
    """The image experiments: depth maps, pixel by pixel, with the failures of their centre held."""
    from setpoint.experiments import depth as experiment

    experiment.reproduce(
        clips=screen.names(clip),
        models=screen.names(model),
        heuristics=screen.names(heuristics),
        seeds=seeds,
        frames=frames,
        jobs=jobs,
        quick=quick,
        out=out,
    )
