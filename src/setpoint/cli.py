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
    wanted = "service" if sys.argv[1:2] == ["serve"] else "cli"
    sys.exit(f"setpoint: the command line needs {error.name}: pip install 'setpoint[{wanted}]'")

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
        bool,
        Option("--version", callback=_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Keeps the risk of any online model at the level you set."""


@app.command()
def demo(
    out: Annotated[Path, Option(help="The folder to write to.")] = Path("demo-setpoint"),
    json: Answers = False,
) -> None:
    """Shows setpoint at work on a drifting stream: a table, the certificate and a report.

    The stream is synthetic hourly electricity demand, with a model that keeps learning. It is also
    written to demand.csv, for trying the other commands.
    """
    _finish(jobs.demo(), out, False, json)


@app.command()
@options(forecast_rows, "series", "time")
def forecast(
    file: RowsFile,
    asked: Job,
    source: Annotated[
        Path | None,
        Option(
            "--from",
            help="Continue from the folder of an earlier forecast; FILE then has only new rows.",
        ),
    ] = None,
    out: Folder = None,
    no_report: NoReport = False,
    json: Answers = False,
) -> None:
    """Forecasts future rows, with intervals for each horizon, and backtests them.

    Every horizon has its own model and intervals. A backtest forecasts all past rows at every
    horizon: it is printed next to the seasonal naive forecast, and past.csv has its rows. With
    --from it updates the forecast of a folder with new rows.
    """
    target = asked.pop("target", None)
    with _progress("learning", json) as progress:
        if source is not None:
            asked = {name: value for name, value in asked.items() if value not in (False, "auto")}
            if asked or target is not None:
                raise InputError("--from continues with the settings in its folder: give no others")
            result = setpoint.Forecast.load(source).update(file, progress=progress)
        elif target is None:
            raise InputError("--target is required: name the column to forecast")
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
    """Calibrates the predictions of any model, row by row as a live stream would.

    Give the ends of intervals, one end alone, point forecasts or class probabilities. Every row
    counts, from the first one on. Writes the rows with their sets, all numbers as JSON, a report
    and the controller.
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
    """Shows what a gate would have done on a log of decisions, compared with what you do today.

    Without --threshold and --acted, the gate is compared with a threshold tuned on the first rows.
    Writes the rows with the decisions, all numbers as JSON and a report.
    """
    with _progress("deciding", json):
        result = jobs.gate(file, **asked)
    _finish(result, out, no_report, json)


@app.command()
def stream(
    store: Annotated[Path, Option(help="The file or folder of the streams; created if missing.")],
    coverage: Annotated[
        str | None,
        Option(
            metavar="SHARES",
            help="The coverage of new streams, as in 0.8 or 0.5,0.8,0.9. Default: 0.9.",
        ),
    ] = None,
    sets: Annotated[
        SetsName, Option(help="What new streams show: intervals or label sets.")
    ] = SetsName.intervals,
    controller: ControllerFile = None,
    source: Annotated[
        Path | None,
        Option("--from", help="Continue where `calibrate` ended, from the folder it wrote."),
    ] = None,
    window: Window = None,
    tolerance: Tolerance = None,
    max_pending: Annotated[
        int | None,
        Option(help="How many predictions may wait for a label. A new store allows 10,000."),
    ] = None,
    history: History = None,
) -> None:
    """Answers JSON Lines: predictions and late labels by id, for one or many streams.

    {"id": "a", "prediction": [10, 14]} is answered with a set, {"id": "a", "y": 12} with its loss.
    {"id": "a", "drop": true} gives a prediction up, and {"certificate": true} is answered with the
    certificate. Add "stream" to name one of several streams. With --window, the answer to the label
    that triggers an alarm contains it under "alarms". Everything answered survives kill -9; send
    again what was not answered. New streams adjust themselves to --coverage, unless --controller or
    --from is given.
    """
    from setpoint import presets
    from setpoint.store.lines import serve

    given = {"--coverage": coverage, "--controller": controller, "--from": source}
    named = [option for option, value in given.items() if value is not None]
    if len(named) > 1:
        raise InputError(f"{' and '.join(named)} both say what to control: give one of them")
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
        str, Option(help="An SQLite file or its folder, or a URL such as postgresql://….")
    ] = "streams.sqlite",
    host: Annotated[
        str, Option(help="The address to listen on; any but this machine's own needs tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, Option(help="The port; 0 picks a free one.")] = 8000,
    controller: Annotated[
        Path | None,
        Option(metavar="FILE", help="A TOML file: the controller of streams nobody created."),
    ] = None,
    tokens: Annotated[Path | None, Option(help="A TOML file of tokens and their scopes.")] = None,
    forecasts: Annotated[
        Path | None, Option(help="A folder of `forecast` folders; these are served too.")
    ] = None,
    window: Window = 250,
    tolerance: Tolerance = 0.1,
    history: History = None,
    limits: Annotated[
        str | None,
        Option(
            metavar="NAME=NUMBER",
            help="Limits, as in batch=500,waiting=50. body: bytes of a request (8388608); batch: "
            "events in it (10000); waiting: queued events before the next get 429 (20000); "
            "metrics: streams with their own metrics (200); pages: open live pages (100); "
            "imported: bytes of an imported stream (268435456).",
        ),
    ] = None,
    log: Annotated[
        str, Option(help="What to log, as lines of JSON: debug, info, warning or error.")
    ] = "warning",
) -> None:
    """Serves streams over HTTP, with a live page, metrics and alarms.

    SETPOINT_TOKENS may contain tokens (name:scope:token). See docs/service.md.
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
    stream: Annotated[str | None, Option(help="Show only this stream.")] = None,
    json: Answers = False,
) -> None:
    """Prints what a saved state guarantees: its certificate, or one for each of its streams.

    Changes nothing; safe while a store is in use.
    """
    result = jobs.inspect(state)
    if stream is not None:
        result = result.only(stream)
    _print(str(result), result.as_dict(), {}, json)


@app.command()
def schema() -> None:
    """Prints the JSON schema of controller files, for editors that complete and check TOML."""
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
    "cli": ("typer", "rich", "msgspec"),
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
