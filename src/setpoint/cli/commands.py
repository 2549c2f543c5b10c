"""The commands and their options."""

from pathlib import Path
from typing import Annotated

import typer

import setpoint

__all__ = ["app"]

app = typer.Typer(
    help="Keeps the risk of any online model at the level you set.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
reproduce = typer.Typer(
    help="Runs the experiments of the paper, and others like them, on real data.",
    no_args_is_help=True,
)
app.add_typer(reproduce, name="reproduce")


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


Out = Annotated[Path, typer.Option("--out", help="The folder for tables and figures.")]
Quick = Annotated[bool, typer.Option("--quick", help="A light model, one seed: minutes.")]


@reproduce.command()
def tabular(
    datasets: Annotated[
        str, typer.Option(help="Names separated by commas.")
    ] = "power,energy,traffic,prices,wind",
    seeds: Annotated[int, typer.Option(help="How many initialisations of the model.")] = 5,
    model: Annotated[str, typer.Option(help="lstm or linear.")] = "lstm",
    batch: Annotated[int, typer.Option(help="The most recent rows the LSTM learns from.")] = 512,
    jobs: Annotated[int, typer.Option(help="How many processes.")] = 1,
    quick: Quick = False,
    out: Out = Path("results"),
) -> None:
    """The regression experiments: coverage, streaks and lengths of every stretching function."""
    from setpoint.experiments import tabular as experiment

    experiment.reproduce(
        datasets=tuple(name for name in datasets.split(",") if name),
        seeds=seeds,
        model=model,
        batch=batch,
        jobs=jobs,
        quick=quick,
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

    experiment.reproduce(
        streams=tuple(name for name in streams.split(",") if name), quick=quick, out=out
    )
