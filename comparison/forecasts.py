"""Forecasts of the next 24 rows: replayed at every origin, and beside other libraries at some.

`forecasts` replays `sp.forecast` over five data sets, each at its own pace of rows. `rivals` makes
the same forecasts of hourly values by every library that is installed, each time from the first row
on. Both add to the files of what was measured before and leave out what these have, so a run that
was stopped goes on where it was; remove a file to measure anew.
"""

import ast
import csv
import inspect
import logging
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np

import setpoint as sp
from comparison import RESULTS
from setpoint.tape.rows import read
from setpoint_paper.pages import table

Array = np.ndarray[Any, Any]
Line = dict[str, Any]

FILES = {
    "traffic": ("traffic/Metro_Interstate_Traffic_Volume.csv.gz", "traffic_volume", 1),
    "prices": ("prices/Prices_2016_2019_extract.csv.gz", "Spot", 1),
    "power": ("power/tetuan_power.csv.gz", "Zone 1 Power Consumption", 6),
    "energy": ("energy/energydata_complete.csv.gz", "Appliances", 6),
    "wind": ("wind/amprion_wind_15min_2011_2017.csv.gz", "MW", 4),
}
"""The data sets: a file, its target, and which of its rows are an hour. Wind is another zone than
the paper's."""
ROWS = 8_000
"""How many rows of a data set are replayed."""
STEPS, LEVELS = 24, (0.8, 0.9, 0.95)
FIRST, APART, ORIGINS = 1_000, 79, 12
"""The first row that rivals forecast from, the rows between two forecasts, and their number."""
LIMIT = 600.0
"""Seconds of processor time that a rival may take for all origins of a data set."""
_OURS = "setpoint"
_REPLAYED, _BESIDE, _PAGE = "forecasts.csv", "rivals.csv", "forecasts.md"


def place_of(name: str) -> Path | None:
    """Where the file of a data set is, if it is below the folder that SETPOINT_DATA names."""
    path = Path(os.environ.get("SETPOINT_DATA", "")) / FILES[name][0]
    return path if "SETPOINT_DATA" in os.environ and path.exists() else None


# Every origin


def forecasts(
    *, out: str | os.PathLike[str] = RESULTS, rows: int = ROWS, sets: tuple[str, ...] = (*FILES,)
) -> str:
    """Replays every data set that is at hand, prints and stores the page.

    Parameters
    ----------
    out
        The folder for `forecasts.csv` and `forecasts.md`.
    rows
        How many rows of each data set.
    sets
        The names of the data sets.
    """
    file = Path(out) / _REPLAYED
    done = {line["data"] for line in _lines(file)}
    for name in sets:
        path = place_of(name)
        if name not in done and path is not None:
            _add(file, _replayed(name, read(path).table.slice(0, rows)))
    return _written(Path(out))


def _replayed(name: str, rows: Any) -> list[Line]:
    ahead = sp.forecast(rows, FILES[name][1], steps=STEPS, coverage=LEVELS)
    kept = ("share", "width", "winkler", "winkler_rolling")
    return [
        {"data": name, "rows": len(rows), "horizon": one["horizon"], "judged": one["judged"],
         "mae": _short(one["mae"]), "mae_seasonal": _short(one["mae_seasonal"]),
         "asked": level["asked"], **{key: _short(level[key]) for key in kept}}
        for one in ahead.horizons for level in one["levels"]
    ]  # fmt: skip


# Other libraries


def setpoint(past: Any) -> Any:
    """Point and ends of the rows to come."""
    return sp.forecast(past, "y", steps=24, coverage=(0.8, 0.9)).to_frame()


def ets(past: Any) -> Any:
    """AutoETS of statsforecast."""
    from statsforecast import StatsForecast
    from statsforecast.models import AutoETS
    from statsforecast.utils import ConformalIntervals

    conformal = ConformalIntervals(h=24, n_windows=10)
    library = StatsForecast(models=[AutoETS(season_length=24)], freq="h")
    data = past.assign(unique_id="y").rename(columns={"time": "ds"})
    return library.forecast(df=data, h=24, level=[80, 90], prediction_intervals=conformal)


def arima(past: Any) -> Any:
    """AutoARIMA of statsforecast."""
    from statsforecast import StatsForecast
    from statsforecast.models import AutoARIMA
    from statsforecast.utils import ConformalIntervals

    conformal = ConformalIntervals(h=24, n_windows=10)
    library = StatsForecast(models=[AutoARIMA(season_length=24)], freq="h")
    data = past.assign(unique_id="y").rename(columns={"time": "ds"})
    return library.forecast(df=data, h=24, level=[80, 90], prediction_intervals=conformal)


def boosting(past: Any) -> Any:
    """Trees of scikit-learn on lags, in mlforecast."""
    from mlforecast import MLForecast
    from mlforecast.utils import PredictionIntervals
    from sklearn.ensemble import HistGradientBoostingRegressor

    conformal = PredictionIntervals(h=24, n_windows=10)
    library = MLForecast(
        {"trees": HistGradientBoostingRegressor()}, freq="h",
        lags=[1, 2, 3, 24, 48, 168], date_features=["hour", "dayofweek"],
    )  # fmt: skip
    data = past.assign(unique_id="y").rename(columns={"time": "ds"})
    library.fit(data, prediction_intervals=conformal)
    return library.predict(24, level=[80, 90])


def prophet(past: Any) -> Any:
    """Prophet, whose intervals are simulated; it has one level a model."""
    from prophet import Prophet

    data = past.rename(columns={"time": "ds"})
    shown: dict[str, Any] = {}
    for level in (80, 90):
        model = Prophet(interval_width=level / 100).fit(data)
        ahead = model.predict(model.make_future_dataframe(24, freq="h", include_history=False))
        shown |= {f"lo-{level}": ahead["yhat_lower"], f"hi-{level}": ahead["yhat_upper"]}
    return shown


RIVALS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    _OURS: ("setpoint", setpoint),
    "AutoETS, conformal": ("statsforecast", ets),
    "mlforecast, conformal": ("mlforecast", boosting),
    "prophet": ("prophet", prophet),
    "AutoARIMA, conformal": ("statsforecast", arima),
}
"""What is compared, and which library it needs."""


def rivals(
    *,
    out: str | os.PathLike[str] = RESULTS,
    origins: int = ORIGINS,
    sets: tuple[str, ...] = (*FILES,),
    names: tuple[str, ...] = (*RIVALS,),
) -> str:
    """Forecasts by every library that is installed, prints and stores the page.

    A library is given up on a data set where its first forecast takes more than its part of
    `LIMIT`.

    Parameters
    ----------
    out
        The folder for `rivals.csv` and `forecasts.md`.
    origins
        How many forecasts of each data set.
    sets, names
        The data sets, and what is compared.
    """
    import pandas as pd

    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    file = Path(out) / _BESIDE
    before = _lines(file)
    done = {(line["data"], line["library"], int(line["origin"])) for line in before}
    left = {(line["data"], line["library"]) for line in before if not line["asked"]}
    values = {
        name: read(path).labels(FILES[name][1])[:: FILES[name][2]]
        for name in sets if (path := place_of(name)) is not None
    }  # fmt: skip
    for origin in (FIRST + APART * np.arange(origins)).tolist():
        for name, y in values.items():
            times = pd.date_range("2020-01-01", periods=origin, freq="h")
            past = pd.DataFrame({"time": times, "y": y[:origin]})
            for rival in names:
                library, function = RIVALS[rival]
                known = (name, rival, origin) in done or (name, rival) in left
                if known or find_spec(library) is None:
                    continue
                line = {"data": name, "library": rival, "origin": origin}
                began = _used()
                try:
                    with _at_most(LIMIT / ORIGINS):
                        ends = _ends_of(function(past))
                except TimeoutError:
                    left.add((name, rival))
                    _add(file, [line | dict.fromkeys(_JUDGED, "") | {"seconds": _used() - began}])
                    continue
                seconds = round(_used() - began, 2)
                judged = _judged(ends, y[origin : origin + STEPS])
                _add(file, [line | each | {"seconds": seconds} for each in judged])
    return _written(Path(out))


_JUDGED = ("asked", "inside", "winkler")


def _judged(ends: Array, y: Array) -> list[Line]:
    """Of each level which steps were inside, as 1 and 0, and the scores of all steps."""
    lines = []
    for level, (lower, upper) in zip(LEVELS, ends, strict=False):
        inside = (lower <= y) & (y <= upper)
        beyond = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
        score = upper - lower + 2.0 / (1.0 - level) * beyond
        words = "".join(map(str, inside.astype(int).tolist())), " ".join(map(_short, score))
        lines.append(dict(zip(_JUDGED, (level, *words), strict=True)))
    return lines


def _ends_of(shown: Any) -> Array:
    """Lower and upper ends by level and step, however a library calls them."""
    names = list(map(str, shown))

    def column(level: int, *words: str) -> Array:
        (name,) = [n for n in names if n.endswith(tuple(f"{word}{level}" for word in words))]
        return np.asarray(shown[name], np.float64)

    return np.array([[column(n, "lower_", "lo-"), column(n, "upper_", "hi-")] for n in (80, 90)])


def _used() -> float:
    """Processor seconds until now, of this process and of those it began: prophet's work there."""
    return sum(os.times()[:4])


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raises TimeoutError once this process has used `seconds` of processor time."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def statements(function: Callable[[Any], Any]) -> int:
    """The statements of a function, without its docstring and imports."""
    (made,) = ast.parse(dedent(inspect.getsource(function))).body
    left_out = ast.Import | ast.ImportFrom
    return sum(isinstance(n, ast.stmt) and not isinstance(n, left_out) for n in ast.walk(made)) - 2


# The files and the page


def _lines(file: Path) -> list[Line]:
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _add(file: Path, lines: list[Line]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = not file.exists()
    with file.open("a", newline="", encoding="utf-8") as there:
        writer = csv.DictWriter(there, lines[0], lineterminator="\n")
        writer.writerows([dict(zip(lines[0], lines[0], strict=True)), *lines] if fresh else lines)


def _short(value: float) -> str:
    return f"{value:.5g}"


def _written(folder: Path) -> str:
    """The page of what both files have, printed and stored."""
    parts = ["# Forecasts of the next 24 rows", "    python -m comparison forecasts\n"
             "    python -m comparison rivals"]  # fmt: skip
    if replayed := _lines(folder / _REPLAYED):
        parts += _replay_part(replayed)
    if beside := _lines(folder / _BESIDE):
        parts += _rivals_part(beside)
    text = "\n\n".join(parts) + "\n"
    (folder / _PAGE).write_text(text, encoding="utf-8")
    print(text)
    return text


def _replay_part(lines: list[Line]) -> list[str]:
    names = [name for name in FILES if any(line["data"] == name for line in lines)]
    head = ["", "rows", "origins", *(f"error at {100 * level:.0f} %" for level in LEVELS),
            "width, 24 to 1", "narrower", "Winkler", "MAE", "naive is better"]  # fmt: skip
    rows, more = [], []
    for name in names:
        own = [line for line in lines if line["data"] == name]
        first = own[0]
        by_level = [[line for line in own if float(line["asked"]) == level] for level in LEVELS]
        off = [max(abs(100 * (float(line["share"]) - level)) for line in each)
               for level, each in zip(LEVELS, by_level, strict=True)]  # fmt: skip
        nine = by_level[LEVELS.index(0.9)]
        width, ours, theirs, mae, seasonal = (
            np.array([float(line[key]) for line in nine])
            for key in ("width", "winkler", "winkler_rolling", "mae", "mae_seasonal")
        )
        lost = [line["horizon"] for line, a, b in zip(nine, ours, theirs, strict=True) if a > b]
        rows.append([
            name, f"{int(first['rows']):,}", f"{int(nine[-1]['judged']):,}",
            *(f"{each:.2f}" for each in off), f"{width[-1] / width[0]:.1f}",
            str(int((np.diff(width) < 0.0).sum())), f"{_geometric(ours / theirs):.3f}",
            f"{(mae / seasonal).mean():.3f}", _spans(list(map(int, lost))),
        ])  # fmt: skip
        detail = [
            [line["horizon"], *(f"{100 * float(each[place]['share']):.1f}" for each in by_level),
             line["width"], line["winkler"], line["winkler_rolling"], line["mae"],
             line["mae_seasonal"]]
            for place, line in enumerate(nine)
        ]  # fmt: skip
        heads = ["steps ahead", *(f"in {100 * level:.0f} %" for level in LEVELS), "width",
                 "Winkler", "of naive", "MAE", "of naive"]  # fmt: skip
        more += [f"### {name.capitalize()}", table(heads, detail)]
    about = (
        "Every row of the past is forecast at every horizon, as it would have been then. *Error* "
        "is the largest error of coverage at any of the 24 horizons, in points. *Width* is the "
        "width at 90 % 24 steps ahead over the width one step ahead, *narrower* the number of "
        "steps at which it is less than a step before. *Winkler* (at 90 %, the geometric mean over "
        "horizons) and *MAE* are ratios to a seasonal naive forecast with rolling-quantile "
        "intervals, or to plain naive where there is no season; below 1 is better. *Naive is "
        "better* names the steps ahead where it has the smaller Winkler score. Wind is a stand-in "
        "for the paper's file."
    )
    return ["## Every origin", about, table(head, rows), *more]


def _rivals_part(lines: list[Line]) -> list[str]:
    parts = ["## Other libraries", (
        "Hourly values, 24 steps ahead from the same origins, each forecast from the first row "
        "on. *Lines* are the statements of its function in `comparison/forecasts.py`; *seconds* "
        "the median processor time of one forecast; coverage is that of steps 1–8, 9–16 and "
        "17–24, in percent. *Winkler* is its geometric mean over the steps as a share of that of "
        "setpoint: above 1, setpoint is better."
    )]  # fmt: skip
    lost = []
    for name in [name for name in FILES if any(line["data"] == name for line in lines)]:
        own = [line for line in lines if line["data"] == name]
        left = {line["library"]: float(line["seconds"]) for line in own if not line["asked"]}
        there = [each for each in RIVALS if each not in left
                 and any(line["library"] == each for line in own)]  # fmt: skip
        origins = set.intersection(*(
            {line["origin"] for line in own if line["library"] == each} for each in there
        ))  # fmt: skip
        if _OURS not in there or not origins:
            continue
        scores, rows = {}, []
        for each in there:
            made = [one for one in own if one["library"] == each and one["origin"] in origins]
            cells = []
            for level in LEVELS[:2]:
                at = [line for line in made if float(line["asked"]) == level]
                inside = np.array([list(map(int, line["inside"])) for line in at])
                shares = 100.0 * inside.reshape(len(at), 3, -1).mean(axis=(0, 2))
                score = np.array([list(map(float, line["winkler"].split())) for line in at])
                scores[each, level] = score.mean(axis=0)
                ratio = _geometric(scores[each, level] / scores[_OURS, level])
                cells += [" ".join(f"{share:.0f}" for share in shares), f"{ratio:.2f}"]
                if each != _OURS and ratio < 1.0:
                    lost.append(f"{each} on {name} at {100 * level:.0f} % ({ratio:.2f})")
            seconds = float(np.median([float(line["seconds"]) for line in made]))
            rows.append([each, str(statements(RIVALS[each][1])), f"{seconds:.1f}", *cells])
        rows += [[each, str(statements(RIVALS[each][1])), f"> {seconds:.0f}", *["–"] * 4]
                 for each, seconds in left.items()]  # fmt: skip
        heads = ["", "lines", "seconds", "in 80 %", "Winkler", "in 90 %", "Winkler"]
        parts += [
            f"### {name.capitalize()}, {len(origins)} of {ORIGINS} origins",
            table(heads, rows),
        ]
    told = "; ".join(lost) or "nowhere"
    parts += [f"Where another has the smaller Winkler score: {told}.", (
        f"A library that would take more than {LIMIT / 60:.0f} minutes for {ORIGINS} forecasts of "
        "a data set is given up in the first of them, and has dashes. A score from a few origins "
        "is mostly chance: the command goes on to the next ones."
    )]  # fmt: skip
    return parts


def _geometric(values: Array) -> float:
    return float(np.exp(np.log(values).mean()))


def _spans(steps: list[int]) -> str:
    """Whole numbers as spans: 1–3, 7."""
    ends = [step for step in steps if step + 1 not in steps]
    starts = [step for step in steps if step - 1 not in steps]
    spans = [f"{a}–{b}" if b > a else str(a) for a, b in zip(starts, ends, strict=True)]
    return ", ".join(spans) or "–"
