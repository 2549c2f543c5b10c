"""The commands that do whole jobs: demo, run, calibrate, tune, report, inspect."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from setpoint.cli import screen

__all__ = [
    "FileKind",
    "ModelName",
    "RiskName",
    "calibrate",
    "demo",
    "inspect",
    "report",
    "run",
    "tune",
]


class RiskName(StrEnum):
    """What can be held by name."""

    coverage = "coverage"
    mc = "mc"


class ModelName(StrEnum):
    """The models of `run`."""

    linear = "linear"
    last = "last"
    river = "river"
    forest = "forest"


class FileKind(StrEnum):
    """The kinds of files of rows."""

    csv = "csv"
    parquet = "parquet"
    jsonl = "jsonl"


File = Annotated[
    Path, typer.Argument(help="A .csv, .parquet or .jsonl file; .gz too.", show_default=False)
]
Target = Annotated[
    str, typer.Option(help="The column of what came out; empty where it is not known.")
]
Lower = Annotated[
    str | None, typer.Option(help="The column of lower ends; alone, only that side is held.")
]
Upper = Annotated[
    str | None, typer.Option(help="The column of upper ends; alone, only that side is held.")
]
Point = Annotated[str | None, typer.Option(help="The column of forecasts that are one number.")]
Probabilities = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        help="The columns of class probabilities, separated by commas; they are called as the "
        "classes are, as in cat,dog or p_cat,p_dog.",
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        help="The column of times; rows are taken in their order; by default the only one of dates."
    ),
]
Id = Annotated[
    str | None, typer.Option(help="The column that tells series apart; each is held by itself.")
]
Group = Annotated[
    str | None, typer.Option(help="A column for coverage by group; by default the weekday.")
]
Risk = Annotated[
    RiskName, typer.Option(help="coverage: the share missed; mc: the mean of misses in a row.")
]
Level = Annotated[float, typer.Option(help="The share of labels that may be missed.")]
Gamma = Annotated[
    float | None, typer.Option(help="The step size; by default the burn-in chooses it.")
]
Support = Annotated[
    str | None,
    typer.Option(metavar="LOW,HIGH", help="Where the target can lie, as in 0,inf."),
]
BurnIn = Annotated[
    int | None,
    typer.Option(
        metavar="ROWS",
        help="Rows of each series to choose from; by default a tenth, from 50 to 1,000.",
    ),
]
Config = Annotated[Path | None, typer.Option(help="A controller as TOML, instead of choosing one.")]
Out = Annotated[
    Path | None,
    typer.Option(help="The folder to write to; by default one called as the file.", dir_okay=True),
]
Format = Annotated[
    FileKind | None, typer.Option("--format", help="The kind of the rows; by default the file's.")
]
NoReport = Annotated[bool, typer.Option("--no-report", help="Leave the HTML page out.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def demo(
    out: Annotated[Path, typer.Option(help="The folder to write to.")] = Path("demo-setpoint"),
    seed: Annotated[int, typer.Option(help="Another world of the same kind.")] = 0,
    no_report: NoReport = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Shows what it does on a stream that drifts: a table, the certificate and a report.

    Hourly electricity demand, made by formula, and a model that learns as it goes. The stream is
    written too, as demand.csv, to try the other commands on.
    """
    from setpoint import jobs

    found = jobs.demo(seed)
    made = found.write(out, report=not no_report)
    screen.told(str(found), found.outcome.metrics(), made, quiet=quiet, json=json)


def run(
    file: File,
    target: Annotated[str, typer.Option(help="The column to forecast.")],
    time: Annotated[
        str | None, typer.Option(help="The column of times; by default the only one of dates.")
    ] = None,
    id: Id = None,
    group: Group = None,
    model: Annotated[
        ModelName, typer.Option(help="The model that learns online.")
    ] = ModelName.linear,
    features: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="What the model sees; by default all it can use."),
    ] = None,
    without: Annotated[
        str | None,
        typer.Option(metavar="COLUMNS", help="What it must not see: what is known too late."),
    ] = None,
    risk: Risk = RiskName.coverage,
    level: Level = 0.1,
    gamma: Gamma = None,
    support: Support = None,
    burn_in: BurnIn = None,
    config: Config = None,
    out: Out = None,
    format: Format = None,
    no_report: NoReport = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Forecasts a column of your file, row by row, with intervals whose risk is held.

    Numbers, dates and words with few values are features. Every row is predicted before it is
    learnt. Writes the rows with their intervals, the numbers, a report and the controller.
    """
    from setpoint import jobs

    goal = jobs.Goal(risk, level, screen.pair(support), gamma)
    with screen.progress("learning", quiet or json) as progress:
        found = jobs.run(
            file, target, goal, model=model, time=time, id=id, group=group,
            features=screen.names(features), without=screen.names(without),
            burn_in=burn_in, controller=config, progress=progress,
        )  # fmt: skip
    kind = None if format is None else f".{format}"
    made = found.write(out, report=not no_report, suffix=kind)
    screen.told(str(found), found.metrics(), made, quiet=quiet, json=json)


def calibrate(
    file: File,
    target: Target,
    lower: Lower = None,
    upper: Upper = None,
    point: Point = None,
    probabilities: Probabilities = None,
    time: Time = None,
    id: Id = None,
    group: Group = None,
    risk: Risk = RiskName.coverage,
    level: Level = 0.1,
    gamma: Gamma = None,
    support: Support = None,
    burn_in: BurnIn = None,
    config: Config = None,
    out: Out = None,
    format: Format = None,
    no_report: NoReport = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Calibrates predictions that any model made, in any language, as a live stream would.

    Give the ends of intervals, one end alone, point forecasts or class probabilities. The first
    rows choose the controller; the others are judged. Writes what `run` writes.
    """
    from setpoint import jobs

    goal = jobs.Goal(risk, level, screen.pair(support), gamma)
    columns = jobs.Columns(
        target, lower, upper, point, screen.names(probabilities), id, time, group
    )
    with screen.working("calibrating", quiet or json):
        found = jobs.calibrate(file, columns, goal, burn_in=burn_in, controller=config)
        kind = None if format is None else f".{format}"
        made = found.write(out, report=not no_report, suffix=kind)
        data = found.metrics()
    screen.told(str(found), data, made, quiet=quiet, json=json)


def tune(
    file: File,
    target: Target,
    lower: Lower = None,
    upper: Upper = None,
    point: Point = None,
    probabilities: Probabilities = None,
    time: Time = None,
    id: Id = None,
    risk: Risk = RiskName.coverage,
    level: Level = 0.1,
    gammas: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="The step sizes to try, with commas.")
    ] = None,
    support: Support = None,
    share: Annotated[
        float, typer.Option(help="How much of the file to choose on; the rest judges.")
    ] = 0.5,
    out: Annotated[Path | None, typer.Option(help="A file for the controller, as TOML.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Tries step sizes and stretchings on your predictions, and prints the controller to use.

    The first part of the file chooses, the rest says how well the choice does. The controller is
    TOML for `--config` of the other commands.
    """
    from setpoint import jobs

    goal = jobs.Goal(risk, level, screen.pair(support))
    columns = jobs.Columns(target, lower, upper, point, screen.names(probabilities), id, time)
    with screen.working("trying", quiet or json):
        found = jobs.tune(file, columns, goal, share=share, gammas=screen.numbers(gammas))
    made = {} if out is None else {out.name: found.write(out)}
    screen.told(str(found), found.as_dict(), made, quiet=quiet, json=json)


def report(
    source: Annotated[
        Path,
        typer.Argument(
            help="A folder that run or calibrate wrote, or a file of predictions.",
            show_default=False,
        ),
    ],
    target: Annotated[str | None, typer.Option(help="Of a file: what came out.")] = None,
    lower: Lower = None,
    upper: Upper = None,
    point: Point = None,
    probabilities: Probabilities = None,
    time: Time = None,
    id: Id = None,
    group: Group = None,
    config: Annotated[Path | None, typer.Option(help="Of a file: the controller as TOML.")] = None,
    title: Annotated[str | None, typer.Option(help="What the page is called.")] = None,
    out: Annotated[Path | None, typer.Option(help="The page; by default report.html.")] = None,
    png: Annotated[Path | None, typer.Option(help="A picture to write as well.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Writes the report again, as a page or a picture, from what a job left behind.

    A folder of run or calibrate knows everything. A file needs its columns and a controller that
    leaves nothing open, such as tune prints.
    """
    from setpoint import jobs

    columns = None
    if target is not None:
        columns = jobs.Columns(
            target, lower, upper, point, screen.names(probabilities), id, time, group
        )
    with screen.working("replaying", quiet or json):
        found = jobs.report(source, columns, config, title=title, out=out, png=png)
    screen.told("", found.metrics, found.files, quiet=quiet, json=json)


def inspect(
    state: Annotated[
        Path,
        typer.Argument(
            help="A saved stream, groups or fleet, a ledger's folder, or that of a job.",
            show_default=False,
        ),
    ],
    stream: Annotated[str | None, typer.Option(help="One of several streams.")] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing: the exit code tells.")
    ] = False,
    json: Json = False,
) -> None:
    """Prints what a saved state guarantees: its certificate, or those of its streams.

    Nothing is changed, and a ledger may be in use meanwhile.
    """
    from setpoint import jobs

    found = jobs.inspect(state)
    if stream is not None:
        found = found.only(stream)
    screen.told(str(found), found.as_dict(), {}, quiet=quiet, json=json)
