"""The command `setpoint`: it parses, calls the library and prints."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import setpoint
from setpoint.errors import InputError, SetpointError

try:
    import typer
    from typer import Argument, Option

    from setpoint._options import (
        BurnIn,
        Config,
        Coverage,
        Delay,
        File,
        Format,
        Gamma,
        Group,
        Horizon,
        Id,
        Json,
        Known,
        Level,
        Lower,
        ModelName,
        NoReport,
        Out,
        Period,
        Point,
        Probabilities,
        Quiet,
        Risk,
        RiskName,
        Rule,
        SetsName,
        Support,
        Target,
        Time,
        Upper,
    )
except ImportError as error:
    sys.exit(f"setpoint: the command line needs {error.name}: pip install 'setpoint[cli]'")

__all__ = [
    "app",
    "calibrate",
    "demo",
    "inspect",
    "main",
    "report",
    "run",
    "serve",
    "stream",
    "tune",
]

app = typer.Typer(
    help="Keeps the risk of any online model at the level you set.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
"""The commands, as typer has them."""


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"setpoint {setpoint.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Keeps the risk of any online model at the level you set."""


@app.command()
def demo(
    out: Annotated[Path, Option(help="The folder to write to.")] = Path("demo-setpoint"),
    seed: Annotated[int, Option(help="Another world of the same kind.")] = 0,
    no_report: NoReport = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Shows what it does on a stream that drifts: a table, the certificate and a report.

    Hourly electricity demand, made by formula, and a model that learns as it goes. The stream is
    written too, as demand.csv, to try the other commands on.
    """
    from setpoint import jobs

    result = jobs.demo(seed)
    files = result.write(out, report=not no_report)
    _print(str(result), result.outcome.metrics(), files, quiet, json)


@app.command()
def run(
    file: File,
    target: Annotated[str, Option(help="The column to forecast.")],
    time: Annotated[
        str | None,
        Option(help="The column of times, or two as date,hour; by default the only one of dates."),
    ] = None,
    id: Id = None,
    group: Group = None,
    model: Annotated[
        ModelName, Option(help="The model that learns online; auto mixes the first five others.")
    ] = ModelName.auto,
    features: Annotated[
        str | None,
        Option(metavar="COLUMNS", help="What the model sees; by default all it can use."),
    ] = None,
    without: Annotated[
        str | None,
        Option(metavar="COLUMNS", help="What it must not see: what is known too late."),
    ] = None,
    delay: Delay = 0,
    period: Period = None,
    known_ahead: Annotated[
        str | None,
        Option(
            metavar="COLUMNS",
            help="Columns that are known before the label. Others that tell much of it are taken "
            "from an earlier row.",
        ),
    ] = None,
    budget: Annotated[
        float | None, Option(help="How many seconds models may learn; by default 40.")
    ] = None,
    coverage: Coverage = None,
    level: Level = None,
    risk: Risk = RiskName.coverage,
    rule: Rule = None,
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

    goal = _goal(risk, coverage, level, support, gamma, rule)
    with _progress("learning", quiet or json) as progress:
        result = jobs.run(
            file, target, goal, model=model, time=time, id=id, group=group, delay=delay,
            period=period, features=_names(features), without=_names(without),
            known_ahead=_names(known_ahead), budget=budget, burn_in=burn_in, controller=config,
            progress=progress,
        )  # fmt: skip
    kind = None if format is None else f".{format}"
    files = result.write(out, report=not no_report, suffix=kind)
    _print(str(result), result.metrics(), files, quiet, json)


@app.command()
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
    delay: Delay = 0,
    horizon: Horizon = None,
    known: Known = None,
    period: Period = None,
    coverage: Coverage = None,
    level: Level = None,
    risk: Risk = RiskName.coverage,
    rule: Rule = None,
    gamma: Gamma = None,
    support: Support = None,
    never_empty: Annotated[
        bool, Option("--never-empty", help="Of classes: the likeliest is in every set.")
    ] = False,
    burn_in: BurnIn = None,
    config: Config = None,
    out: Out = None,
    format: Format = None,
    no_report: NoReport = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Calibrates predictions that any model made, in any language, as a live stream would.

    Give the ends of intervals, one end alone, point forecasts or class probabilities. Intervals are
    judged from the first row on; for classes the first rows choose the form of the sets. Writes
    what `run` writes.
    """
    from setpoint import jobs

    goal = _goal(risk, coverage, level, support, gamma, rule, never_empty)
    columns = jobs.Columns(
        target, lower, upper, point, _names(probabilities), id, time, group, horizon, known, delay,
        period,
    )  # fmt: skip
    with _progress("calibrating", quiet or json):
        result = jobs.calibrate(file, columns, goal, burn_in=burn_in, controller=config)
        kind = None if format is None else f".{format}"
        files = result.write(out, report=not no_report, suffix=kind)
        numbers = result.metrics()
    _print(str(result), numbers, files, quiet, json)


@app.command()
def tune(
    file: File,
    target: Target,
    lower: Lower = None,
    upper: Upper = None,
    point: Point = None,
    probabilities: Probabilities = None,
    time: Time = None,
    id: Id = None,
    delay: Delay = 0,
    horizon: Horizon = None,
    known: Known = None,
    coverage: Coverage = None,
    level: Level = None,
    risk: Risk = RiskName.coverage,
    gammas: Annotated[
        str | None, Option(metavar="NUMBERS", help="The step sizes to try, with commas.")
    ] = None,
    support: Support = None,
    share: Annotated[
        float, Option(help="How much of the file to choose on; the rest judges.")
    ] = 0.5,
    out: Annotated[Path | None, Option(help="A file for the controller, as TOML.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Tries step sizes and stretchings on your predictions, and prints the controller to use.

    The first part of the file chooses, the rest says how well the choice does. The controller is
    TOML for `--config` of the other commands.
    """
    from setpoint import jobs

    goal = _goal(risk, coverage, level, support, None, "paper")
    columns = jobs.Columns(
        target, lower, upper, point, _names(probabilities), id, time, None, horizon, known, delay
    )
    with _progress("trying", quiet or json):
        result = jobs.tune(file, columns, goal, share=share, gammas=_numbers(gammas))
    files = {} if out is None else {out.name: result.write(out)}
    _print(str(result), result.as_dict(), files, quiet, json)


@app.command()
def stream(
    state: Annotated[
        Path, Option(help="The file or folder that holds the streams; a new file is made.")
    ],
    coverage: Coverage = None,
    sets: Annotated[
        SetsName, Option(help="Of new streams: intervals, or sets of labels.")
    ] = SetsName.intervals,
    config: Annotated[
        Path | None, Option(help="A controller as TOML, instead of the coverage.")
    ] = None,
    source: Annotated[
        Path | None,
        Option("--from", help="The folder of a finished calibrate or run, to go on from its end."),
    ] = None,
    window: Annotated[
        int | None, Option(help="Alarms look at the mean loss of so many last labels.")
    ] = None,
    tolerance: Annotated[
        float | None,
        Option(help="An alarm begins where it is so far from its level; at first 0.1."),
    ] = None,
    missing: Annotated[
        str | None, Option(help="What a null label does: skip (at first) or raise.")
    ] = None,
    max_pending: Annotated[
        int | None, Option(help="How many may wait for a label; at first 10,000.")
    ] = None,
    overflow: Annotated[
        str | None, Option(help="What one more does: refuse (at first) or expire.")
    ] = None,
    history: Annotated[
        int | None,
        Option(help="How many closed predictions of a stream are kept; at first 1,000,000."),
    ] = None,
) -> None:
    """Answers JSON Lines: predictions and late labels by id, for one or many streams.

    {"id": "a", "prediction": [10, 14]} is answered with a set, {"id": "a", "y": 12} with its loss.
    {"id": "a", "drop": true} gives a prediction up, and {"certificate": true} is answered with what
    is guaranteed. "stream" names one of many streams. With --window the answer to the label that
    begins an alarm has it in "alarms". What was answered survives kill -9; what was not can be sent
    again. New streams adjust themselves to the coverage, unless a controller or --from is given.
    """
    from setpoint import jobs, presets
    from setpoint.jobs.job import Config, check_work
    from setpoint.store.lines import serve

    given = {"--coverage": coverage, "--config": config, "--from": source}
    named = [option for option, value in given.items() if value is not None]
    if len(named) > 1:
        raise InputError(f"{' and '.join(named)} both say what to hold: give one of them")
    controller = None
    if config is not None and (read := Config.read(config)) is not None:
        controller = read.controller
    elif source is not None:
        controller = next(iter(jobs.streams(source).values())).controller
    if controller is not None:
        check_work(controller, "stream")
    elif coverage is not None or not state.exists():
        preset = presets.label_sets if sets is SetsName.labels else presets.intervals
        controller = preset(0.9 if coverage is None else coverage)
    usual = 0.1 if window is not None and tolerance is None else tolerance
    with setpoint.Store(
        state, controller, missing=missing, max_pending=max_pending, overflow=overflow,
        history=history, window=window, tolerance=usual,
    ) as store:  # fmt: skip
        if source is not None:
            jobs.hand_over(source, store)
        serve(store, sys.stdin.buffer, sys.stdout.buffer)


@app.command()
def serve(
    store: Annotated[
        str, Option(help="A file or folder for SQLite, or an address as postgresql://….")
    ] = "streams.sqlite",
    host: Annotated[str, Option(help="Where to answer; elsewhere than here it needs tokens.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, Option(help="The port; 0 takes a free one.")] = 8000,
    config: Annotated[
        Path | None, Option(help="A controller as TOML for streams that nobody created.")
    ] = None,
    tokens: Annotated[Path | None, Option(help="A TOML file of tokens and their scopes.")] = None,
    webhook: Annotated[
        list[str] | None, Option(help="An address to tell of alarms; may be given again.")
    ] = None,
    window: Annotated[
        int, Option(help="Alarms look at the mean loss of so many last labels.")
    ] = 250,
    tolerance: Annotated[
        float, Option(help="An alarm begins where it is so far from its level.")
    ] = 0.1,
    history: Annotated[
        int | None,
        Option(help="How many closed predictions of a stream are kept; at first 1,000,000."),
    ] = None,
    max_body: Annotated[int, Option(help="The most bytes of a request.")] = 8 << 20,
    max_batch: Annotated[int, Option(help="The most events of a request.")] = 10_000,
    max_waiting: Annotated[int, Option(help="With so many events waiting, more get 429.")] = 20_000,
    metric_streams: Annotated[
        int, Option(help="So many streams, the worst off, have metrics of their own.")
    ] = 200,
) -> None:
    """Answers over HTTP: streams in a database, with a live page, metrics and alarms.

    SETPOINT_TOKENS may hold tokens (name:scope:token), SETPOINT_WEBHOOK_SECRET the key that signs
    alarms. See docs/service.md.
    """
    from setpoint.service.app import Limits, Service, serve
    from setpoint.service.tokens import Tokens
    from setpoint.service.watch import Webhooks, check_addresses

    controller, secret = None, os.environ.get("SETPOINT_WEBHOOK_SECRET", "")
    if webhook and not secret:
        raise InputError("--webhook needs SETPOINT_WEBHOOK_SECRET, the key that signs alarms")
    if webhook:
        check_addresses(webhook)
    if config is not None:
        from setpoint.jobs.job import Config, check_work

        source = Config.read(config)
        controller = None if source is None else source.controller
        if controller is not None:
            check_work(controller, "the service")
    service = Service(
        lambda: setpoint.Store(
            store, controller, window=window, tolerance=tolerance, history=history,
            takes_back=True,
        ),
        Tokens.read(tokens), Limits(max_body, max_batch, max_waiting, metric_streams),
        lambda streams: Webhooks(streams, webhook, secret) if webhook else None,
    )  # fmt: skip
    serve(service, host, port, lambda port: typer.echo(f"setpoint answers on {host}:{port}"))


@app.command()
def report(
    source: Annotated[
        Path,
        Argument(
            help="A folder that run or calibrate wrote, or a file of predictions.",
            show_default=False,
        ),
    ],
    target: Annotated[str | None, Option(help="Of a file: what came out.")] = None,
    lower: Lower = None,
    upper: Upper = None,
    point: Point = None,
    probabilities: Probabilities = None,
    time: Time = None,
    id: Id = None,
    group: Group = None,
    delay: Delay = 0,
    horizon: Horizon = None,
    known: Known = None,
    config: Annotated[Path | None, Option(help="Of a file: the controller as TOML.")] = None,
    title: Annotated[str | None, Option(help="What the page is called.")] = None,
    out: Annotated[Path | None, Option(help="The page; by default report.html.")] = None,
    picture: Annotated[
        Path | None, Option(help="A summary for a slide to write as well, .png or .pdf.")
    ] = None,
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
            target, lower, upper, point, _names(probabilities), id, time, group, horizon, known,
            delay,
        )  # fmt: skip
    with _progress("replaying", quiet or json):
        result = jobs.report(source, columns, config, title=title, out=out, picture=picture)
    _print("", result.metrics, result.files, quiet, json)


@app.command()
def inspect(
    state: Annotated[
        Path,
        Argument(
            help="A saved stream or fleet, a store, or the folder of a job.",
            show_default=False,
        ),
    ],
    stream: Annotated[str | None, Option(help="One of several streams.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Prints what a saved state guarantees: its certificate, or those of its streams.

    Nothing is changed, and a store may be in use meanwhile.
    """
    from setpoint import jobs

    result = jobs.inspect(state)
    if stream is not None:
        result = result.only(stream)
    _print(str(result), result.as_dict(), {}, quiet, json)


# Words into values


def _names(text: str | None) -> tuple[str, ...]:
    from setpoint.jobs.job import unlisted

    return unlisted(text)


def _numbers(text: str | None) -> tuple[float, ...]:
    try:
        return tuple(map(float, _names(text)))
    except ValueError:
        raise InputError(f"numbers are separated by commas, as in 0.1,0.2; got {text!r}") from None


def _goal(
    risk: str,
    coverage: float | None,
    level: float | None,
    support: str | None,
    gamma: float | None,
    rule: str | None,
    never_empty: bool = False,
) -> Any:
    from setpoint import jobs

    if coverage is not None and level is not None:
        raise InputError("--coverage and --level say the same thing: give one of the two")
    level = 0.1 if level is None else level
    return jobs.Goal(risk, level, _pair(support), gamma, coverage, rule, never_empty)


def _pair(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    ends = _numbers(text)
    if len(ends) != 2:
        raise InputError(f"support is a pair of numbers, as in 0,inf; got {text!r}")
    return ends[0], ends[1]


# What a person sees


def _print(
    text: str, data: Mapping[str, Any], files: Mapping[str, Path], quiet: bool, json: bool
) -> None:
    """Prints a result: for scripts one JSON object, for people the text and what was written."""
    if json:
        paths = {name: str(path) for name, path in files.items()}
        typer.echo(dumps({**data, "files": paths}, ensure_ascii=False, allow_nan=False))
        return
    if quiet:
        return
    if text:
        typer.echo(f"{text}\n")
    if files:
        folders = dict.fromkeys(str(path.parent) for path in files.values())
        together = len(folders) == 1 and len(files) > 1
        shown = [*files] if together else map(str, files.values())
        typer.echo(f"wrote {f'{next(iter(folders))}/: ' if together else ''}{', '.join(shown)}")
        if together and "report.html" in files:
            typer.echo(f"open {files['report.html']} in a browser")


@contextmanager
def _progress(title: str, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error; None where nobody watches. It runs until rows are counted."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


# How it runs


def main() -> None:
    """Runs the command line.

    It ends with 0 if all is well, with 1 and one sentence on standard error if something in the
    data or the options is wrong, and with 2 if the command itself is not understood.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            app(prog_name="setpoint")
    except SetpointError as error:
        sys.exit(f"setpoint: {error}")
    except OSError as error:
        reason = error.strerror or str(error)
        sys.exit(f"setpoint: {f'{error.filename}: {reason}' if error.filename else reason}")
    except ImportError as error:
        if (error.name or "setpoint").startswith("setpoint"):
            raise
        sys.exit(f"setpoint: this needs {error.name}: pip install 'setpoint[all]'")


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """Says a warning once, as the command says all else, without the place in the source."""
    text = str(message).replace("say coverage=", "say --coverage ")
    if text not in _said:
        _said.add(text)
        print(f"setpoint: note: {text}", file=sys.stderr)


_said: set[str] = set()


if __name__ == "__main__":
    main()
