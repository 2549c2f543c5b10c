"""The command `setpoint-paper`: it parses and runs an experiment."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from setpoint.errors import SetpointError

__all__ = ["app", "classification", "comparison", "depth", "main", "names", "tabular", "tapes"]

app = typer.Typer(
    help="Runs the experiments of the paper, and others like them, on real data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Out = Annotated[Path, typer.Option("--out", help="The folder for tables and figures.")]
Quick = Annotated[bool, typer.Option("--quick", help="Something smaller, in a minute or two.")]


def main() -> None:
    """Runs the command line: 0 if all is well, 1 and one sentence if something is wrong."""
    try:
        app(prog_name="setpoint-paper")
    except (SetpointError, OSError) as error:
        sys.exit(f"setpoint-paper: {error}")


def names(text: str) -> tuple[str, ...]:
    """Names separated by commas.

    >>> names("power, wind")
    ('power', 'wind')
    """
    return tuple(filter(None, map(str.strip, text.split(","))))


@app.command()
def tabular(
    datasets: Annotated[
        str, typer.Option(help="Names separated by commas.")
    ] = "power,energy,traffic,prices,wind",
    seeds: Annotated[int, typer.Option(help="How many initialisations of the model.")] = 5,
    model: Annotated[str, typer.Option(help="lstm or linear.")] = "lstm",
    training: Annotated[
        str,
        typer.Option(help="text, as the paper says, or printed, as behind its numbers."),
    ] = "text",
    jobs: Annotated[int, typer.Option(help="How many processes.")] = 1,
    quick: Quick = False,
    ready: Annotated[
        bool, typer.Option("--ready", help="Use the tapes that are finished and make no others.")
    ] = False,
    out: Out = Path("results"),
) -> None:
    """The regression experiments: coverage, streaks and lengths of every stretching function."""
    from setpoint_paper.tabular import reproduce

    reproduce(
        datasets=names(datasets),
        seeds=seeds,
        model=model,
        training=training,
        jobs=jobs,
        quick=quick,
        ready=ready,
        out=out,
    )


@app.command()
def tapes(
    seeds: Annotated[int, typer.Option(help="How many initialisations of the model.")] = 20,
) -> None:
    """Makes the tapes of all pages, in the order of their use; goes on where it was stopped."""
    import time

    from setpoint_paper.tabular.tapes import make
    from setpoint_paper.tabular.training import schedule
    from setpoint_paper.work import folder_of

    place, plan = folder_of(), list(schedule(seeds))
    for number, recipe in enumerate(plan, 1):
        began, ready = time.perf_counter(), recipe.path(place).is_file()
        if not ready:
            make(recipe, place)
        took = "was there" if ready else f"made in {time.perf_counter() - began:.0f} s"
        typer.echo(f"{number} of {len(plan)}: {recipe}, {took}")


@app.command()
def classification(
    streams: Annotated[
        str, typer.Option(help="Names separated by commas.")
    ] = "gas_drift,outdoor,power_supply,yeast",
    quick: Quick = False,
    out: Out = Path("results"),
) -> None:
    """Label sets on streams that drift, beside the bare classifier and a fixed threshold."""
    from setpoint_paper.classification import reproduce

    reproduce(streams=names(streams), quick=quick, out=out)


@app.command()
def comparison(
    streams: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An npz file of streams to compare on.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="How many processes.")] = 1,
    quick: Quick = False,
    out: Out = Path("results"),
) -> None:
    """Every rule of the library beside the default, on public data and synthetic shifts."""
    from setpoint_paper.comparison import reproduce

    reproduce(streams=streams, jobs=jobs, quick=quick, out=out)


@app.command()
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
    from setpoint_paper.depth import reproduce

    reproduce(
        clips=names(clip),
        models=names(model),
        heuristics=names(heuristics),
        seeds=seeds,
        frames=frames,
        jobs=jobs,
        quick=quick,
        out=out,
    )


if __name__ == "__main__":
    main()
