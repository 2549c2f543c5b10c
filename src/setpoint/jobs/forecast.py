"""Forecasts of future rows, with intervals that were backtested at every horizon."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from setpoint._check import confidence, option
from setpoint._files import staged
from setpoint._html import amount
from setpoint.errors import DataError, InputError, StateError
from setpoint.jobs.ahead import check_known, check_new, extended, last_known, target_of, to_come
from setpoint.jobs.columns import label_note, tape_of, timed, unused
from setpoint.jobs.horizons import Replay, plain
from setpoint.jobs.job import Job, command
from setpoint.jobs.model import Progress, features_of, mixture_of
from setpoint.jobs.result import LIST, Result, aligned
from setpoint.presets import miss_level, paths
from setpoint.tape import Columns, Tape
from setpoint.tape.columns import several
from setpoint.tape.files import File, write
from setpoint.tape.rows import Rows, read
from setpoint.tape.text import arrow

Array = np.ndarray[Any, Any]

_COVERAGES = (0.5, 0.8, 0.9)
_SHOWN = 12
"""How many rows of a table a terminal shows."""
_HISTORY = "history.parquet"
_NUMBERS = ("horizons", "paths", "recent", "uses")


def forecast(
    source: Any,
    target: str | Columns,
    *,
    steps: int | None = None,
    coverage: float | Sequence[float] = _COVERAGES,
    path: bool = False,
    totals: int | Sequence[int] = (),
    series: str | Sequence[str] | None = None,
    time: str | None = None,
    known_ahead: Sequence[str] = (),
    features: Sequence[str] = (),
    without: Sequence[str] = (),
    model: str = "auto",
    support: tuple[float, float] | None = None,
    progress: Progress | None = None,
) -> "Forecast":
    """Forecasts future rows, each with intervals that were backtested at its horizon.

    Every horizon has its own model and its own intervals. Past rows are forecast first, at every
    horizon, with what was known that far ahead; the intervals learn from these errors, and the
    replay shows how good they were.

    Parameters
    ----------
    source
        A .csv, .parquet or .jsonl file, or a data frame. Rows after the last actual value of
        their series are forecast.
    target
        The column to forecast.
    steps
        How many rows to forecast for each series. Default: the rows with an empty target, or one.
    coverage
        The share of actual values that the intervals should contain; one or several. Default:
        0.5,0.8,0.9.
    path
        Also give a band that contains the whole path, for coverages above 0.5.
    totals
        Also forecast the total of the first N steps, at the same coverages; 7, or (7, 24) for two
        totals.
    series, time
        The columns that tell series apart, and the time. Future times continue its pattern.
    known_ahead
        Columns whose future values you know, such as holidays. All others keep their last known
        value.
    features
        The columns the model may use. Default: all it can use.
    without
        The columns the model must not use.
    model
        The model: last, seasonal, linear or boosting; auto mixes all of them.
    support
        The range of possible values of the target, as in (0, inf).
    progress
        Called with the number of rows done and of all rows.

    Examples
    --------
    >>> hours = np.arange(500)
    >>> rng = np.random.default_rng(0)
    >>> y = 10 + 3 * np.sin(hours / 24 * 2 * np.pi) + rng.normal(0, 0.3, 500)
    >>> import pandas as pd
    >>> ahead = forecast(pd.DataFrame({"y": y}), "y", steps=24, coverage=0.9, model="linear")
    >>> frame = ahead.to_frame()
    >>> list(frame.columns), len(frame)
    (['step', 'point', 'lower_90', 'upper_90'], 24)
    >>> truth = 10 + 3 * np.sin((500 + hours[:24]) / 24 * 2 * np.pi)
    >>> bool((abs(frame["point"] - truth) < 0.5).all())
    True
    """
    names = series if series is None or isinstance(series, str) else tuple(series)
    columns = target if isinstance(target, Columns) else Columns(target, series=names, time=time)
    asked = {
        "steps": steps, "coverage": coverage, "path": path or None,
        "totals": (totals,) if isinstance(totals, int) else tuple(totals),
        "series": columns.series, "time": columns.time, "known_ahead": tuple(known_ahead),
        "features": tuple(features), "without": tuple(without), "model": model, "support": support,
    }  # fmt: skip
    return _forecast(read(source), columns.target, asked, progress)


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(Result):
    """The future rows with their intervals, and how such intervals did in the past.

    Parameters
    ----------
    target, asked
        What was forecast, and the options.
    rows, past
        The past rows; and the point and the intervals of each, as they would have been shown one
        step ahead and the most steps ahead.
    table
        The future rows: their keys, how many steps ahead, the point, and two ends for each level;
        then the band of the path, and each total in the row of its last step.
    horizons
        How each horizon did in the replay: errors, coverage, widths and scores.
    paths
        The same of whole paths and of totals, if they were asked for.
    recent
        The last actual values of each series, and what was shown one forecast before: to draw.
    uses
        The weight of each candidate model, the season of each series, and the model's inputs.
    notes
        Remarks for the user.
    """

    target: str
    asked: Mapping[str, Any]
    rows: Rows
    past: Mapping[str, Any]
    table: Any
    horizons: Sequence[Mapping[str, Any]]
    paths: Sequence[Mapping[str, Any]]
    recent: Sequence[Mapping[str, Any]]
    uses: Mapping[str, Any]
    notes: tuple[str, ...]
    folder: ClassVar[str] = "forecast"

    @property
    def coverages(self) -> tuple[float, ...]:
        """The levels, from the narrowest intervals to the widest."""
        return tuple(level["asked"] for level in self.horizons[0]["levels"])

    def to_frame(self) -> Any:
        """The future rows, as a frame of the input's kind; pandas if that was a file."""
        return self._native(self.table)

    def past_frame(self) -> Any:
        """The past rows with their forecasts, as a frame of the input's kind."""
        return self._native(self._forecast_before(".parquet"))

    def _native(self, table: Any) -> Any:
        if self.rows.frame is None:
            return table.to_pandas()
        nw = arrow("narwhals")
        kind = nw.from_native(self.rows.frame, eager_only=True).implementation
        return nw.DataFrame.from_arrow(table, backend=kind).to_native()

    def _forecast_before(self, suffix: str) -> Any:
        """The rows that were forecast at both horizons: the first ones of a series were not."""
        there = ~np.isnan([*self.past.values()]).any(axis=0)
        return self.rows.with_columns(self.past, suffix).filter(arrow().array(there))

    def update(self, source: Any, *, progress: Progress | None = None) -> "Forecast":
        """Makes the next forecast from new rows, given as a file or a frame.

        Model, correction and account learn from them. The result is as if all rows had been in one
        file; it takes as long, too.
        """
        new = read(source)
        old, pa = self.rows.table, arrow()
        missing = [name for name in old.column_names if name not in new.names]
        if missing:
            raise DataError(
                f"new rows need the columns of those before: {new.path} has no "
                f"{', '.join(map(repr, missing))}"
            )
        try:
            table = pa.concat_tables([old, new.table.select(old.column_names).cast(old.schema)])
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(f"{new.path} holds other kinds of values: {error}") from error
        rows = Rows(replace(self.rows.file, table=table), new.frame)
        columns = Columns(self.target, series=self.asked["series"], time=self.asked["time"])
        check_new(rows, len(old), columns, new)
        return _forecast(rows, self.target, self.asked, progress)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Forecast":
        """Loads the forecast that `write` saved in a folder; continue with `update`."""
        place = Path(folder)
        try:
            content = json.loads((place / LIST).read_text("utf-8"))
            job = content["job"]
            if job["command"] != "forecast":
                raise KeyError(f"the folder is one of `setpoint {job['command']}`")
            kind = job["file"]
            asked = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in job["asked"].items()
            }
            asked["support"] = asked["support"] and tuple(map(float, asked["support"]))
            history = read(place / _HISTORY).table
            past = {name: np.asarray(history[name], np.float64) for name in job["past"]}
            history = history.drop_columns(job["past"])
            table = read(place / f"forecast{kind['suffix']}").with_columns({}, ".parquet")
            rows = Rows(File(history, Path(kind["path"]), kind["suffix"], kind["delimiter"]))
            told = {name: content[name] for name in _NUMBERS}
            notes = tuple(content["notes"])
            return cls(job["target"], asked, rows, past, table, notes=notes, **told)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(
                f"{place} must hold what `setpoint forecast` wrote: "
                f"{error.args[-1] if error.args else error}"
            ) from error

    def metrics(self) -> dict[str, Any]:
        """All numbers as plain values, and what was asked."""
        file, support = self.rows.file, self.asked["support"]
        job = {
            "command": "forecast", "target": self.target, "repeat": self.repeat,
            "asked": {**self.asked, "support": support and [str(end) for end in support]},
            "past": [*self.past],
            "file": {"path": str(file.path), "suffix": file.suffix, "delimiter": file.delimiter},
        }  # fmt: skip
        told = {name: getattr(self, name) for name in _NUMBERS}
        return {**told, "notes": list(self.notes), "job": job}

    @property
    def repeat(self) -> str | None:
        """The command that repeats this forecast; None for a frame."""
        if self.rows.source is None:
            return None
        options = {"target": self.target, **self.asked}
        options["total"] = options.pop("totals")
        if isinstance(self.asked["series"], str):
            options["series"] = (self.asked["series"],)  # it may hold a comma
        return command("forecast", self.rows.source, options)

    def _put(self, stage: staged, report: bool) -> None:
        """Writes the future rows, the past ones with their forecasts, and what `load` needs."""
        self._table(stage, "forecast", self.table)
        self._table(stage, "past", self._forecast_before(self.rows.file.suffix))
        history = self.rows.table  # as it was read: text stays text
        for name, column in self.past.items():
            history = history.append_column(name, arrow().array(column))
        write(history, stage / _HISTORY)
        if report:
            from setpoint.report.page import ahead

            (stage / "report.html").write_text(ahead(self.about(), self.metrics()), "utf-8")

    def about(self) -> dict[str, Any]:
        """The texts of the report: title, target, future rows, command."""
        names = self.table.column_names
        return {
            "title": f"{self.target}: {steps_ahead(len(self.horizons))}",
            "target": self.target,
            "file": self.rows.path.name if self.rows.source else "a data frame",
            "coverages": self.coverages,
            "repeat": self.repeat,
            "paths": path_rows(self.paths) if self.paths else [],
            "columns": names,
            "rows": [[plain(row[name]) for name in names] for row in self.table.to_pylist()],
        }

    def __str__(self) -> str:
        many = self.uses["series"]
        lines = [f"{self.rows.path.name}: {self.target!r}, {steps_ahead(len(self.horizons))}"
                 + (f", {many:,} series" if many > 1 else ""), ""]  # fmt: skip
        names, totals = self.table.column_names, self.asked["totals"]
        more = names[len(names) - len(totals) - 2 * len(self.paths) :]
        known = names[: len(names) - len(more)]
        bands = [name for name in more if "path_" in name][-2:]
        lines += _table_of([*known, *bands], self.table[:_SHOWN])
        if len(self.table) > _SHOWN:
            lines.append(f"… and {len(self.table) - _SHOWN:,} more rows")
        keys = known[: -2 - 2 * len(self.coverages)]
        for total in totals:
            held = [name for name in more if f"total_{total}_" in f"{name}_"]
            some = self.table.filter(self.table[held[0]].is_valid())[:_SHOWN]
            lines += ["", f"the total of {total} steps:", *_table_of([*keys, *held], some)]
        heads = ["steps ahead", "MAE", "seasonal naive"]
        heads += [f"in {100 * level:.6g} %" for level in self.coverages]
        table = [[*heads, f"width {100 * self.coverages[-1]:.6g} %", "rows"]]
        some = np.linspace(0, len(self.horizons) - 1, min(_SHOWN, len(self.horizons)))
        for horizon in [self.horizons[place] for place in np.rint(some).astype(int)]:
            levels = horizon["levels"]
            numbers = horizon["horizon"], horizon["mae"], horizon["mae_seasonal"]
            table.append([
                *map(_cell, numbers), *(_share(level["share"]) for level in levels),
                _cell(levels[-1]["width"]), f"{horizon['judged']:,}",
            ])  # fmt: skip
        lines += ["", "backtest (MAE: mean absolute error):", *aligned(table)]
        if self.paths:
            lines += ["", "backtest of whole paths and totals:", *aligned(path_rows(self.paths))]
        return "\n".join([*lines, "", *(f"note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        return f"<Forecast of {self.target!r}: {len(self.table):,} future rows>"

    @cached_property
    def figure(self) -> Any:
        """The fan of the first series behind its recent past, as a plotly figure."""
        from setpoint.report.page import fan

        return fan(self.recent[0], self.coverages, self.target)


# The work


def _forecast(
    rows: Rows, target: str, asked: Mapping[str, Any], progress: Progress | None
) -> Forecast:
    levels = _levels(asked["coverage"])
    support = Job("forecast", coverage=levels, support=asked["support"]).support
    columns = Columns(target, series=asked["series"], time=asked["time"])
    y, (columns, timely) = target_of(rows, target, support), timed(rows, columns)
    tape, notes = tape_of(rows, {"point": np.zeros(len(y))}, y, columns)
    held = [*timely[:1], *(note for note in notes if note != label_note(tape, columns))]
    known = ~to_come(tape)
    history = rows.table.filter(arrow().array(known))
    before = Rows(replace(rows.file, table=history), rows.frame)
    if progress is not None:
        progress(0, len(rows))
    rows, columns, made = extended(rows, tape, columns, asked["steps"], asked["totals"])
    y = rows.labels(target)
    tape, _ = tape_of(rows, {"point": np.zeros(len(y))}, y, columns)
    check_known(rows, tape, asked["known_ahead"])
    seen = features_of(
        rows, tape, columns, only=asked["features"], without=asked["without"],
        known_ahead=asked["known_ahead"],
    )  # fmt: skip
    counts = np.diff(tape.segments.offsets) - 1 - last_known(tape)
    steps = int(counts.max())
    if asked["path"] or asked["totals"]:
        _check_path(steps, int(counts.min()), asked["totals"], levels[-1])
    middle = levels[np.abs(np.array(levels) - 0.9).argmin()]
    learnt, told = mixture_of(
        asked["model"], seen, tape, miss_level(middle), range(1, steps + 1), rows, progress
    )
    if support is not None:
        np.clip(learnt.point, *support, out=learnt.point)
    replayed = Replay(tape, learnt, levels, middle, support)
    more, whole = replayed.paths(band=bool(asked["path"]), totals=asked["totals"])
    table = _table(rows, columns, tape, replayed, more)
    notes = [*made, *seen.notes(), *told, *held, *replayed.doubts()]
    uses = {
        "model": asked["model"],
        "weights": dict(zip(learnt.names, learnt.weights.mean(axis=(0, 1)).tolist(), strict=True)),
        "seasons": sorted(set(learnt.periods)),
        "features": list(seen.names),
        "series": replayed.count,
    }
    past = {name: column[: len(known)][known] for name, column in replayed.past.items()}
    named = unused(past, before.names, "forecast_")
    past = {named[name]: column for name, column in past.items()}
    return Forecast(
        target, asked, before, past, table, replayed.numbers, whole, replayed.recent(), uses,
        tuple(notes),
    )  # fmt: skip


def _check_path(steps: int, fewest: int, totals: tuple[int, ...], level: float) -> None:
    """Raises an error where a path cannot be made of the future rows."""
    if steps < 2:
        raise InputError(
            f"a path and its totals need at least 2 future rows, got {steps}: say how many by "
            f"{option('steps')}"
        )
    if fewest < steps:
        raise InputError(
            f"a path needs a future row for each of its {steps} steps, and a series has {fewest}: "
            f"say how many by {option('steps')}"
        )
    if level <= 0.5:
        raise InputError(f"a path and its totals need a coverage above 0.5, got {level}")
    paths(steps, totals=totals)


def _levels(coverage: float | Sequence[float]) -> tuple[float, ...]:
    given = (coverage,) if isinstance(coverage, int | float) else tuple(coverage)
    if not given:
        raise InputError("coverage must be a share or several, got none")
    return tuple(sorted({confidence(level, "coverage") for level in given}))


def _table(
    rows: Rows, columns: Columns, tape: Tape, replayed: Replay, more: Mapping[str, Array]
) -> Any:
    """The future rows: keys, steps ahead, the point, the ends of each level, and more columns."""
    pa = arrow()
    come = replayed.within > replayed.last[replayed.of]
    of, place = replayed.of[come], np.asarray(tape.by_stream(tape.places))[come]
    step = replayed.within[come] - replayed.last[of]
    made: dict[str, Any] = {"step": step, "point": replayed.points[0, step - 1, of]}
    for number, level in enumerate(replayed.levels):
        for side, end in enumerate(("lower", "upper")):
            ends = replayed.shown[0, side, step - 1, of, number]
            made[f"{end}_{100 * level:.6g}"] = ends
    made |= {name: column[step - 1, of] for name, column in more.items()}
    keys = [*several(columns.series or ())]
    keys += [] if columns.time is None else [*rows.parts(columns.time)]
    shown = {name: rows.table[name].take(pa.array(place)) for name in keys}
    named = unused(made, keys, "forecast_")
    found = {named[name]: pa.array(each, from_pandas=True) for name, each in made.items()}
    return pa.table(shown | found)


# Cells


def steps_ahead(steps: int) -> str:
    return "1 step ahead" if steps == 1 else f"{steps:,} steps ahead"


def path_rows(paths: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """How paths and totals did in the past: a head and a row each, as text."""
    heads = ["what", "asked", "inside", "in all their own intervals", "usual width", "paths"]
    return [heads, *(
        [one["set"], _share(one["asked"]), _share(one["share"]), _share(one["apart"]),
         _cell(one["width"]), f"{one['judged']:,}"]
        for one in paths
    )]  # fmt: skip


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _cell(value: Any) -> str:
    return "–" if value is None else amount(value) if isinstance(value, float) else str(value)


def _table_of(names: Sequence[str], table: Any) -> list[str]:
    """Some columns of a table, as text."""
    rows = [[_cell(row[name]) for name in names] for row in table.to_pylist()]
    return aligned([names, *rows])
