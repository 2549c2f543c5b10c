"""The command `setpoint`: it parses, calls the library and prints."""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import setpoint
from setpoint.errors import InputError, SetpointError

try:
    import typer
    from typer import Argument, Option

    from setpoint import jobs
    from setpoint._check import commands
    from setpoint._options import (
        Answers,
        ControllerFile,
        Folder,
        History,
        Job,
        NoReport,
        RowsFile,
        Tolerance,
        Window,
        named_numbers,
        options,
        shares,
    )
    from setpoint._store_commands import app as store_app
    from setpoint.jobs.forecast import forecast as forecast_rows
except ImportError as error:
    sys.exit(f"setpoint: the command line needs {error.name}: pip install 'setpoint[cli]'")

SetsName = StrEnum("SetsName", ["intervals", "labels"])

app = typer.Typer(
    help="Keeps the risk of any online model at the level you set.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
"""The commands, as typer has them."""
app.add_typer(store_app, name="store")


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
    json: Answers = False,
) -> None:
    """Shows what it does on a stream that drifts: a table, the certificate and a report.

    Hourly electricity demand, made by formula, and a model that learns as it goes. The stream is
    written too, as demand.csv, to try the other commands on.
    """
    _finish(jobs.demo(), out, False, json)


@app.command()
@options(forecast_rows, "series", "time")
def forecast(
    file: RowsFile,
    asked: Job,
    source: Annotated[
        Path | None,
        Option("--from", help="The folder of a forecast: the file has the rows that came since."),
    ] = None,
    out: Folder = None,
    no_report: NoReport = False,
    json: Answers = False,
) -> None:
    """Forecasts future rows, with intervals for each horizon, and backtests them.

    Every horizon has a model and intervals of its own. A backtest forecasts all past rows at every
    horizon: it is printed next to the seasonal naive forecast, and past.csv has its rows. With
    --from it updates the forecast of a folder with new rows.
    """
    target = asked.pop("target", None)
    with _progress("learning", json) as progress:
        if source is not None:
            asked = {name: value for name, value in asked.items() if value not in (False, "auto")}
            if asked or target is not None:
                raise InputError("--from goes on as its folder says: leave out all other options")
            result = setpoint.Forecast.load(source).update(file, progress=progress)
        elif target is None:
            raise InputError("--target names the column to forecast")
        else:
            result = forecast_rows(file, target, **asked, progress=progress)
    _finish(result, source if out is None else out, no_report, json)


@app.command()
@options(
    jobs.calibrate, "target", "lower", "upper", "point", "probabilities", "series", "time",
    "horizon", "known", "delay", "period", "features", "groups",
)  # fmt: skip
def calibrate(
    file: RowsFile,
    asked: Job,
    out: Folder = None,
    no_report: NoReport = False,
    json: Answers = False,
) -> None:
    """Calibrates predictions that any model made, in any language, as a live stream would.

    Give the ends of intervals, one end alone, point forecasts or class probabilities. Sets are
    judged from the first row on. Writes the rows with their sets, the numbers, a report and the
    controller.
    """
    with _progress("calibrating", json):
        result = jobs.calibrate(file, **asked)
    _finish(result, out, no_report, json)


@app.command()
@options(jobs.gate, "series", "time", "known", "delay")
def gate(
    file: RowsFile,
    asked: Job,
    out: Folder = None,
    no_report: NoReport = False,
    json: Answers = False,
) -> None:
    """Says what a gate would have done on a log of decisions, beside what is done today.

    Without a threshold and without a column of actions, today is a threshold tuned on the first
    rows. Writes the rows with the decisions, the numbers and a report.
    """
    with _progress("deciding", json):
        result = jobs.gate(file, **asked)
    _finish(result, out, no_report, json)


@app.command()
def stream(
    store: Annotated[
        Path, Option(help="The file or folder that holds the streams; a new file is made.")
    ],
    coverage: Annotated[
        str | None,
        Option(metavar="SHARES", help="What to hold, as in 0.8 or 0.5,0.8,0.9; by default 0.9."),
    ] = None,
    sets: Annotated[
        SetsName, Option(help="Of new streams: intervals, or sets of labels.")
    ] = SetsName.intervals,
    controller: ControllerFile = None,
    source: Annotated[
        Path | None,
        Option("--from", help="The folder of a finished calibrate, to go on from its end."),
    ] = None,
    window: Window = None,
    tolerance: Tolerance = None,
    max_pending: Annotated[
        int | None, Option(help="How many may wait for a label; at first 10,000.")
    ] = None,
    history: History = None,
) -> None:
    """Answers JSON Lines: predictions and late labels by id, for one or many streams.

    {"id": "a", "prediction": [10, 14]} is answered with a set, {"id": "a", "y": 12} with its loss.
    {"id": "a", "drop": true} gives a prediction up, and {"certificate": true} is answered with what
    is guaranteed. "stream" names one of many streams. With --window the answer to the label that
    begins an alarm has it in "alarms". What was answered survives kill -9; what was not can be sent
    again. New streams adjust themselves to the coverage, unless a controller or --from is given.
    """
    from setpoint import presets
    from setpoint.store.lines import serve

    given = {"--coverage": coverage, "--controller": controller, "--from": source}
    named = [option for option, value in given.items() if value is not None]
    if len(named) > 1:
        raise InputError(f"{' and '.join(named)} both say what to hold: give one of them")
    held = _controller(controller, "stream")
    if source is not None:
        held = next(iter(jobs.streams(source).values())).controller
    elif held is None and (coverage is not None or not store.exists()):
        preset = presets.label_sets if sets is SetsName.labels else presets.intervals
        held = preset(0.9 if coverage is None else shares(coverage))
    with setpoint.Store(
        store, held, max_pending=max_pending, history=history, window=window,
        tolerance=0.1 if tolerance is None and window is not None else tolerance,
    ) as streams:  # fmt: skip
        if source is not None:
            jobs.hand_over(source, streams)
        serve(streams, sys.stdin.buffer, sys.stdout.buffer)


@app.command()
def serve(
    store: Annotated[
        str, Option(help="A file or folder for SQLite, or an address as postgresql://….")
    ] = "streams.sqlite",
    host: Annotated[str, Option(help="Where to answer; elsewhere than here it needs tokens.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, Option(help="The port; 0 takes a free one.")] = 8000,
    controller: Annotated[
        Path | None,
        Option(metavar="FILE", help="A controller as TOML for streams that nobody created."),
    ] = None,
    tokens: Annotated[Path | None, Option(help="A TOML file of tokens and their scopes.")] = None,
    forecasts: Annotated[
        Path | None, Option(help="A folder of folders that `forecast` wrote, to serve them too.")
    ] = None,
    window: Window = 250,
    tolerance: Tolerance = 0.1,
    history: History = None,
    limits: Annotated[
        str | None,
        Option(
            metavar="NAME=NUMBER",
            help="The most bytes of a request (body, 8388608) and events in it (batch, 10000), "
            "events that wait before more get 429 (waiting, 20000), streams with metrics of their "
            "own (metrics, 200), live pages (pages, 100), bytes of an import (imported).",
        ),
    ] = None,
    log: Annotated[
        str, Option(help="What is logged, as lines of JSON: debug, info, warning or error.")
    ] = "warning",
) -> None:
    """Answers over HTTP: streams in a database, with a live page, metrics and alarms.

    SETPOINT_TOKENS may hold tokens (name:scope:token). See docs/service.md.
    """
    from setpoint.service.app import Limits, Service, serve
    from setpoint.service.tokens import Tokens
    from setpoint.service.watch import log_lines

    log_lines(log)
    held = _controller(controller, "the service")
    service = Service(
        lambda: setpoint.Store(
            store, held, window=window, tolerance=tolerance, history=history,
            takes_back=True,
        ),
        Tokens.read(tokens), Limits.of(named_numbers(limits)), forecasts,
    )  # fmt: skip
    serve(service, host, port, lambda port: typer.echo(f"setpoint answers on {host}:{port}"))


@app.command()
def inspect(
    state: Annotated[
        Path,
        Argument(
            help="A saved stream, fleet or gate, a store, or the folder of a job.",
            show_default=False,
        ),
    ],
    stream: Annotated[str | None, Option(help="One of several streams.")] = None,
    json: Answers = False,
) -> None:
    """Prints what a saved state guarantees: its certificate, or those of its streams.

    Nothing is changed, and a store may be in use meanwhile.
    """
    result = jobs.inspect(state)
    if stream is not None:
        result = result.only(stream)
    _print(str(result), result.as_dict(), {}, json)


@app.command()
def schema() -> None:
    """Prints the JSON schema of a controller file, for editors that complete and check TOML."""
    from setpoint import spec

    print(dumps(spec.schema(), indent=2, ensure_ascii=False))


def _controller(file: Path | None, work: str) -> Any:
    """The controller of a TOML file, where one was named and the command can use it."""
    from setpoint.jobs.job import Config, check_work

    config = Config.read(file)
    if config is None:
        return None
    check_work(config.controller, work)
    return config.controller


# What a person sees


def _finish(result: Any, out: Path | None, no_report: bool, json: bool) -> None:
    """Writes the folder of a job and prints what came out."""
    files = result.write(out, report=not no_report)
    _print(str(result), result.metrics(), files, json)


def _print(text: str, data: Mapping[str, Any], files: Mapping[str, Path], json: bool) -> None:
    """Prints a result: for scripts one JSON object, for people the text and what was written."""
    if json:
        paths = {name: str(path) for name, path in files.items()}
        typer.echo(dumps({**data, "files": paths}, ensure_ascii=False, allow_nan=False))
        return
    typer.echo(f"{text}\n")
    if files:
        typer.echo(f"wrote {next(iter(files.values())).parent}/: {', '.join(files)}")
        if "report.html" in files:
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
    token = commands.set(True)
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
        package = (error.name or "").partition(".")[0]
        extra = next((name for name, packages in _EXTRAS.items() if package in packages), "all")
        sys.exit(f"setpoint: this needs {error.name}: pip install 'setpoint[{extra}]'")
    finally:
        commands.reset(token)


_EXTRAS = {
    "service": ("starlette", "uvicorn", "httptools", "uvloop", "prometheus_client", "httpx"),
    "data": ("pandas", "pyarrow", "narwhals"), "plots": ("plotly", "matplotlib", "jinja2"),
    "sklearn": ("sklearn", "threadpoolctl"), "postgres": ("psycopg",), "fast": ("numba",),
}  # fmt: skip
"""Which extra brings a package."""


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """Says a warning once, as the command says all else, without the place in the source."""
    text = str(message)
    if text not in _said:
        _said.add(text)
        print(f"setpoint: note: {text}", file=sys.stderr)


_said: set[str] = set()


if __name__ == "__main__":
    main()
