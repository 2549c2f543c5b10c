"""The command `setpoint-paper`: it parses and runs an experiment."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from setpoint._check import whole
from setpoint.errors import AbsentFile, InputError, SetpointError

INCOMPLETE = 3
"""The exit status of `all` where some data were missing."""

app = typer.Typer(
    help="Runs the experiments of the paper, and others like them, on real data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Out = Annotated[Path, typer.Option("--out", help="The folder for results and figures.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="Something smaller, in seconds; nothing of it is judged.")
]
Heuristics = Annotated[
    str,
    typer.Option(
        metavar="NAMES", help="The paper's four, and registered_paper, its way of the last."
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", help="How many processes.")]


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
    training: Annotated[
        str, typer.Option(help="text, as the paper says, or printed, as behind its numbers.")
    ] = "text",
    jobs: Jobs = 1,
    quick: Quick = False,
    out: Out = Path("results"),
) -> None:
    """The regression experiments: coverage, streaks and lengths of every stretching function."""
    from setpoint_paper.tabular import reproduce

    reproduce(
        datasets=names(datasets), seeds=seeds, training=training, jobs=jobs, quick=quick,
        out=out,
    )  # fmt: skip


@app.command()
def fetch(
    sets: Annotated[
        str, typer.Argument(metavar="NAMES", help="Data sets separated by commas; all if none.")
    ] = "",
    to: Annotated[Path, typer.Option(help="The folder for SETPOINT_DATA to name.")] = Path("data"),
    kitti_odometry: Annotated[
        Path | None, typer.Option(help="A sequence of KITTI odometry, to make the KITTI clip of.")
    ] = None,
    seven_scenes: Annotated[
        Path | None, typer.Option(help="A sequence of 7-Scenes, to make the kitchen clip of.")
    ] = None,
    frames: Annotated[int | None, typer.Option(help="How many frames of the clips.")] = None,
) -> None:
    """Puts the data of every experiment into one folder: downloads, checked, and clips.

    With a folder of frames alone, only its clip is made.
    """
    from setpoint_paper.datasets import builders
    from setpoint_paper.datasets.files import fetch as fetched
    from setpoint_paper.datasets.sources import SOURCES

    wanted = names(sets) or (() if kitti_odometry or seven_scenes else tuple(SOURCES))
    missing = []
    for name in wanted:
        if name not in SOURCES:
            raise InputError(f"a data set must be one of {', '.join(SOURCES)}, got {name!r}")
        try:
            for path in fetched(SOURCES[name], to):
                typer.echo(str(path))
        except AbsentFile as error:
            typer.echo(f"Missing: {error}.", err=True)
            missing.append(name)
    for made, clip in (
        (builders.build_kitti_clip, kitti_odometry),
        (builders.build_kitchen_clip, seven_scenes),
    ):
        if clip is not None:
            size = {} if frames is None else {"frames": frames}
            typer.echo(str(made(clip, to, **size)))
    _close(len(wanted), missing)


@app.command()
def classification(
    streams: Annotated[
        str, typer.Option(help="Names separated by commas.")
    ] = "gas_drift,outdoor,power_supply,yeast",
    quick: Quick = False,
    out: Out = Path("results"),
) -> None:
    """Label sets on streams that drift, and what becomes of F1."""
    from setpoint_paper.classification import reproduce

    reproduce(streams=names(streams), quick=quick, out=out)


@app.command()
def summary(
    results: Annotated[Path, typer.Option(help="The folder of results.")] = Path("results"),
    page: Annotated[
        Path | None, typer.Option(help="The page to write; by default README.md in that folder.")
    ] = None,
) -> None:
    """The one page: every claim of the paper with its verdict, from stored results."""
    from setpoint_paper.claims import write_page

    typer.echo(f"Every claim on one page: {write_page(results, page)}")


@app.command("all")
def everything(quick: Quick = False, jobs: Jobs = 1, out: Out = Path("results")) -> None:
    """Every experiment and the one page: in hours, with --quick in under two minutes.

    What has no data at hand is left out and named at the end; the exit status is then 3.
    """
    from setpoint_paper import classification as labels
    from setpoint_paper import depth as images
    from setpoint_paper import tabular as rows
    from setpoint_paper.classification.experiment import STREAMS
    from setpoint_paper.datasets import load
    from setpoint_paper.depth.maps import CLIPS, clip_of
    from setpoint_paper.tabular.tapes import DATASETS

    whole(jobs, "jobs", 1)
    missing: list[str] = []
    datasets, streams = _at_hand(DATASETS, load, missing), _at_hand(STREAMS, load, missing)
    wanted = ("road",) if quick else CLIPS
    clips = _at_hand(wanted, lambda name: clip_of(name, None), missing)
    if datasets and quick:
        rows.reproduce(datasets=datasets, quick=True, jobs=jobs, out=out)
    elif datasets:
        rows.reproduce(datasets=datasets, seeds=20, training="printed", jobs=jobs, out=out)
        rows.reproduce(datasets=datasets, seeds=20, jobs=jobs, out=out)
    if streams:
        labels.reproduce(streams=streams, quick=quick, out=out)
    models = ("network",) if quick else ("stored", "network")
    images.reproduce(clips=clips, models=models, quick=quick, jobs=jobs, out=out)
    summary(out)
    _close(len(DATASETS) + len(STREAMS) + len(wanted), missing)


def _close(wanted: int, missing: Sequence[str]) -> None:
    """The closing line where something was missing, and the exit status that says so."""
    if missing:
        typer.echo(f"{len(missing)} of {wanted} sources missing: {', '.join(missing)}.", err=True)
        raise typer.Exit(INCOMPLETE)


def _at_hand(
    wanted: Sequence[str], load: Callable[[str], object], missing: list[str]
) -> tuple[str, ...]:
    """Those of some data sets that can be read; the others are told and noted as missing."""
    found = []
    for name in wanted:
        try:
            load(name)
        except AbsentFile as error:
            typer.echo(f"Left out: {name}; {error}.", err=True)
            missing.append(name)
        else:
            found.append(name)
    return tuple(found)


@app.command()
def depth(
    clip: Annotated[
        str, typer.Option(metavar="NAMES", help="kitti, kitchen, road; separated by commas.")
    ] = "kitti,kitchen,road",
    model: Annotated[
        str,
        typer.Option(metavar="NAMES", help="stored, network; stored ones come with kitti alone."),
    ] = "stored,network",
    heuristics: Heuristics = "constant,magnitude,previous,registered,registered_paper",
    seeds: Annotated[int, typer.Option(help="How many initialisations of the model.")] = 10,
    frames: Annotated[
        int | None, typer.Option(help="How many first frames of each clip; by default all.")
    ] = None,
    jobs: Jobs = 1,
    quick: Quick = False,
    out: Out = Path("results"),
) -> None:
    """The image experiments: depth maps, pixel by pixel, with the failures of their centre held."""
    from setpoint_paper.depth import reproduce

    reproduce(
        clips=names(clip), models=names(model), heuristics=names(heuristics), seeds=seeds,
        frames=frames, jobs=jobs, quick=quick, out=out,
    )  # fmt: skip


@app.command()
def kitti(
    folder: Annotated[
        Path, typer.Argument(help="Where KITTI's drives are.", exists=True, file_okay=False)
    ],
    model: Annotated[str, typer.Option(metavar="MODULE:FUNCTION", help="What makes the network.")],
    annotated: Annotated[
        str | None, typer.Option(help="Where the annotated depth maps are, if elsewhere.")
    ] = None,
    weights: Annotated[str | None, typer.Option(help="A file of weights for the network.")] = None,
    key: Annotated[
        str | None, typer.Option(help="Where the weights are in it, as depth_model.")
    ] = None,
    fresh: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Beginnings of the names of weights that are random at first in the network of "
            "residuals.",
        ),
    ] = "",
    heuristics: Heuristics = "constant,magnitude,previous,registered,registered_paper",
    seeds: Annotated[int, typer.Option(help="How many initialisations of the network.")] = 10,
    epochs: Annotated[int, typer.Option(help="Epochs before frame 6,001.")] = 60,
    out: Out = Path("results"),
) -> None:
    """The paper's own depth protocol, on KITTI with a network of yours such as LeReS."""
    from setpoint_paper.depth.kitti import Trial, reproduce_kitti

    trial = Trial(str(folder), annotated, model, weights, key, names(fresh), epochs=epochs)
    reproduce_kitti(trial, heuristics=names(heuristics), seeds=seeds, out=out)


if __name__ == "__main__":
    main()
