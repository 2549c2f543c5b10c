"""Forecasts of rows to come: intervals that were held at every horizon over all of the past."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from setpoint import metrics
from setpoint._check import confidence, option, whole
from setpoint._html import amount, named, preformatted
from setpoint.bulk.replay import replay
from setpoint.errors import DataError, InputError, StateError
from setpoint.jobs.columns import tape_of, unused
from setpoint.jobs.features import features as features_of
from setpoint.jobs.folders import LIST, folder_for, results
from setpoint.jobs.job import Goal, command
from setpoint.jobs.run import Progress, last_known, mixture_of, seen_notes, target_of
from setpoint.models.forecast import Mixture
from setpoint.models.horizons import nested
from setpoint.presets import intervals, miss_level
from setpoint.tape import Columns, Tape
from setpoint.tape.columns import several
from setpoint.tape.files import File, write
from setpoint.tape.rows import Rows, read
from setpoint.tape.text import arrow

__all__ = ["Forecast", "forecast"]

Array = np.ndarray[Any, Any]

_COVERAGES = (0.5, 0.8, 0.9)
_AT_ONCE = 3_000_000
"""How many forecasts are calibrated at once."""
_FEW = 100
"""Fewer judged forecasts than this say little about coverage."""
_SHOWN = 12
"""How many rows of a table a terminal shows."""
_HISTORY, _ROWS = "history.parquet", "forecast"


def forecast(
    source: Any,
    target: str | Columns,
    *,
    steps: int | None = None,
    coverage: float | Sequence[float] = _COVERAGES,
    series: str | Sequence[str] | None = None,
    time: str | None = None,
    known_ahead: Sequence[str] = (),
    features: Sequence[str] = (),
    without: Sequence[str] = (),
    model: str = "auto",
    support: tuple[float, float] | None = None,
    progress: Progress | None = None,
) -> "Forecast":
    """Forecasts the rows to come, each with intervals that were held at its own horizon.

    Every horizon has a model of its own and intervals of its own. All rows of the past are
    forecast at every horizon first, with what was known so many steps before; the intervals have
    learnt from these errors, and the replay says how good they were.

    Parameters
    ----------
    source
        A .csv, .parquet or .jsonl file, or a data frame. Rows behind the last actual value of
        their series are rows to come.
    target
        The column to forecast.
    steps
        How many rows to come of each series; those that the file has need not be counted.
    coverage
        The share of actual values that the intervals are to hold, or several.
    series, time
        The columns that tell series apart, and the time. Times to come go on as those before did.
    known_ahead
        Columns whose values of rows to come are known, such as holidays. The model sees all others
        as they were in the last known row.
    features, without, model
        As for `run`.
    support
        Where the target can lie, as in (0, inf).
    progress
        Called with the rows done and their number.

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
        "steps": steps, "coverage": coverage, "series": columns.series, "time": columns.time,
        "known_ahead": tuple(known_ahead), "features": tuple(features),
        "without": tuple(without), "model": model, "support": support,
    }  # fmt: skip
    return _forecast(read(source), columns.target, asked, progress)


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """The rows to come with their intervals, and how such intervals did in the past.

    Parameters
    ----------
    target, asked
        What was forecast, and the options.
    rows
        The rows it rests on, without those to come.
    table
        The rows to come: their keys, how many steps ahead, the point, and two ends for each level.
    horizons
        How each horizon did in the replay: errors, coverage, widths and scores.
    recent
        The last actual values of each series, and what was shown one forecast before: to draw.
    uses
        How much each candidate weighed, the season of each series, and what the model sees.
    notes
        What someone should know.
    """

    target: str
    asked: Mapping[str, Any]
    rows: Rows
    table: Any
    horizons: Sequence[Mapping[str, Any]]
    recent: Sequence[Mapping[str, Any]]
    uses: Mapping[str, Any]
    notes: tuple[str, ...]

    @property
    def coverages(self) -> tuple[float, ...]:
        """The levels, from the narrowest intervals to the widest."""
        return tuple(level["asked"] for level in self.horizons[0]["levels"])

    def to_frame(self) -> Any:
        """The rows to come, as a frame of the kind that came in; of a file pandas."""
        if self.rows.frame is None:
            return self.table.to_pandas()
        nw = arrow("narwhals")
        kind = nw.from_native(self.rows.frame, eager_only=True).implementation
        return nw.DataFrame.from_arrow(self.table, backend=kind).to_native()

    def update(self, source: Any, *, progress: Progress | None = None) -> "Forecast":
        """The next forecast, once rows have come: a file or a frame of those that are new.

        Model, correction and account take them in. All is as if the whole file had been there at
        once; it takes as long, too.
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
        _check_new(rows, len(old), self.asked, new)
        return _forecast(rows, self.target, self.asked, progress)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Forecast":
        """The forecast that `write` left in a folder, to go on from by `update`."""
        place = Path(folder)
        try:
            content = json.loads((place / LIST).read_text("utf-8"))
            job = content["job"]
            if job["command"] != "forecast":
                raise KeyError(f"the folder is one of `setpoint {job['command']}`")
            asked, kind = dict(job["asked"]), job["file"]
            for name in ("series", "known_ahead", "features", "without", "coverage", "support"):
                asked[name] = tuple(asked[name]) if isinstance(asked[name], list) else asked[name]
            if asked["support"] is not None:
                asked["support"] = tuple(map(float, asked["support"]))
            path = Path(kind["path"])
            history = read(place / _HISTORY).table
            table = read(place / kind["forecast"]).table
            rows = Rows(File(history, path, kind["suffix"], kind["delimiter"]))
            return cls(
                job["target"], asked, rows, table, content["horizons"], content["recent"],
                content["uses"], tuple(content["notes"]),
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(
                f"{place} must hold what `setpoint forecast` wrote: "
                f"{error.args[-1] if error.args else error}"
            ) from error

    def metrics(self) -> dict[str, Any]:
        """All numbers as plain values."""
        return {
            "horizons": [dict(horizon) for horizon in self.horizons],
            "recent": [dict(one) for one in self.recent],
            "uses": dict(self.uses),
            "notes": list(self.notes),
        }

    @property
    def repeat(self) -> str | None:
        """The command that does it again; None for a frame."""
        if self.rows.source is None:
            return None
        options = {"target": self.target} | {
            name: (value,) if isinstance(value, str) and name == "series" else value
            for name, value in self.asked.items()
        }
        return command("forecast", self.rows.source, options)

    def write(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        report: bool = True,
        suffix: str | None = None,
    ) -> dict[str, Path]:
        """Writes the rows to come, every number, a report, and what `load` goes on from.

        Parameters
        ----------
        folder
            Made if there is none; by default one called as the file, in the present folder.
        report
            Whether to write the page too.
        suffix
            The kind of the file of rows to come, by default as that of the file they came from.
        """
        source, file = self.rows.source, self.rows.file
        if folder is None:
            if source is None:
                raise InputError(
                    f"a job without a file needs a folder to write to: name it by {option('out')}"
                )
            folder = folder_for(source)
        kind = file.suffix if suffix is None else suffix
        with results(folder, source) as stage:
            write(self.table, stage / f"{_ROWS}{kind}", file.delimiter)
            write(self.rows.table, stage / _HISTORY)
            if report:
                from setpoint.report.ahead import page

                (stage / "report.html").write_text(page(self.about(), self.metrics()), "utf-8")
            support = self.asked["support"]
            asked = {**self.asked, "support": support and [str(end) for end in support]}
            job = {
                "command": "forecast", "target": self.target, "asked": asked,
                "repeat": self.repeat,
                "file": {
                    "path": str(file.path), "suffix": file.suffix, "delimiter": file.delimiter,
                    "forecast": f"{_ROWS}{kind}",
                },
            }  # fmt: skip
            listed = {**self.metrics(), "job": job, "files": sorted([*stage.names(), LIST])}
            text = json.dumps(listed, indent=2, ensure_ascii=False, allow_nan=False)
            (stage / LIST).write_text(f"{text}\n", encoding="utf-8")
        return dict(sorted(stage.moved.items()))

    def about(self) -> dict[str, Any]:
        """What a page says of it in words: title, target, the rows to come, the command."""
        plain = self.table.to_pylist()
        return {
            "title": f"{self.target}: {len(self.horizons)} steps ahead",
            "target": self.target,
            "file": self.rows.path.name if self.rows.source else "a data frame",
            "coverages": self.coverages,
            "repeat": self.repeat,
            "columns": self.table.column_names,
            "rows": [[_plain(row[name]) for name in self.table.column_names] for row in plain],
        }

    def __str__(self) -> str:
        many = len(self.recent)
        lines = [f"{self.rows.path.name}: {self.target!r}, {len(self.horizons)} steps ahead"
                 + (f", {many:,} series" if many > 1 else ""), ""]  # fmt: skip
        names = self.table.column_names
        rows = [[_cell(row[name]) for name in names] for row in self.table[:_SHOWN].to_pylist()]
        lines += _aligned([names, *rows])
        if len(self.table) > _SHOWN:
            lines.append(f"… and {len(self.table) - _SHOWN:,} more rows")
        heads = ["steps ahead", "MAE", "of seasonal last"]
        heads += [f"in {100 * level:.6g} %" for level in self.coverages]
        heads += [f"width {100 * self.coverages[-1]:.6g} %", "judged"]
        table = [heads]
        every = max(-(-len(self.horizons) // _SHOWN), 1)
        for horizon in self.horizons[::-1][::every][::-1]:
            levels = horizon["levels"]
            table.append([
                str(horizon["horizon"]), _cell(horizon["mae"]), _cell(horizon["mae_seasonal"]),
                *("–" if level["share"] is None else f"{100 * level['share']:.1f} %"
                  for level in levels),
                _cell(levels[-1]["width"]), f"{horizon['judged']:,}",
            ])  # fmt: skip
        lines += ["", "the same forecasts over the past:", *_aligned(table)]
        return "\n".join([*lines, "", *(f"note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        return f"<Forecast of {self.target!r}: {len(self.table):,} rows to come>"

    def _repr_html_(self) -> str:
        return preformatted(self)

    @cached_property
    def figure(self) -> Any:
        """The fan of the first series behind its recent past, as a plotly figure."""
        from setpoint.report.ahead import fan

        return fan(self.recent[0], self.coverages, self.target)


# The work


def _forecast(
    rows: Rows, target: str, asked: Mapping[str, Any], progress: Progress | None
) -> Forecast:
    levels = _levels(asked["coverage"])
    goal = Goal(levels[-1], asked["support"])
    columns = Columns(target, series=asked["series"], time=asked["time"])
    y, columns = target_of(rows, columns, "forecast")
    tape, notes = tape_of(rows, {"point": np.zeros(len(y))}, y, columns)
    history = rows.table.filter(arrow().array(~_to_come(tape)))
    before = Rows(replace(rows.file, table=history), rows.frame)
    if progress is not None:
        progress(0, len(rows))
    rows, columns, made = _extended(rows, tape, columns, asked["steps"])
    y = rows.labels(target)
    tape, _ = tape_of(rows, {"point": np.zeros(len(y))}, y, columns)
    _check_known(rows, tape, asked["known_ahead"])
    seen = features_of(
        rows, tape, columns, only=asked["features"], without=asked["without"],
        known_ahead=asked["known_ahead"], ahead=True,
    )  # fmt: skip
    steps = int((np.diff(tape.segments.offsets) - 1 - last_known(tape)).max())
    middle = levels[np.abs(np.array(levels) - 0.9).argmin()]
    learnt, told = mixture_of(
        asked["model"], seen, tape, miss_level(middle), range(1, steps + 1), rows, progress
    )
    if goal.support is not None:
        np.clip(learnt.point, *goal.support, out=learnt.point)
    replayed = _Replay(tape, learnt, levels, middle, goal)
    table = _table(rows, columns, tape, replayed)
    held = [note for note in notes if "label" not in note]
    notes = (*made, *seen_notes(seen, columns.time, ahead=True), *told, *held, *replayed.doubts())
    uses = {
        "model": asked["model"],
        "weights": dict(zip(learnt.names, learnt.weights.mean(axis=(0, 1)).tolist(), strict=True)),
        "seasons": sorted(set(learnt.periods)),
        "features": list(seen.names),
        "known_ahead": [name for name in seen.names if name not in seen.lagged],
        "horizon_weights": np.round(learnt.weights.mean(axis=1), 4).tolist(),
        "names": list(learnt.names),
    }
    return Forecast(
        target, asked, before, table, replayed.horizons(), replayed.recent(), uses, tuple(notes)
    )


def _levels(coverage: float | Sequence[float]) -> tuple[float, ...]:
    given = (coverage,) if isinstance(coverage, int | float) else tuple(coverage)
    if not given:
        raise InputError("coverage must be a share or several, got none")
    return tuple(sorted({confidence(level, "coverage") for level in given}))


def _to_come(tape: Tape) -> Array:
    """Which rows of the file lie behind the last actual value of their series."""
    offsets = tape.segments.offsets
    lengths = np.diff(offsets)
    within = np.arange(len(tape)) - np.repeat(offsets[:-1], lengths)
    flags = np.zeros(len(tape), dtype=bool)
    flags[tape.by_stream(tape.places)] = within > np.repeat(last_known(tape), lengths)
    return flags


def _extended(
    rows: Rows, tape: Tape, columns: Columns, steps: int | None
) -> tuple[Rows, Columns, list[str]]:
    """The rows with as many to come in each series as were asked for, and notes."""
    offsets, last = tape.segments.offsets, last_known(tape)
    if (last < 0).any():
        name = tape.streams[int((last < 0).argmax())]
        raise DataError(
            f"{rows.path} has no actual value of {columns.target!r} for series {named(name)}: "
            "leave its rows out"
        )
    come = np.diff(offsets) - 1 - last
    if steps is None and not come.any():
        raise InputError(
            f"there is nothing to forecast: say how many rows are to come by {option('steps')}, or "
            f"add rows with an empty {columns.target!r} to {rows.path}"
        )
    wanted = 0 if steps is None else whole(steps, "steps", 1)
    needed = np.maximum(wanted - come, 0)
    notes = []
    if tape.time is not None and len(last) > 1:
        ends = tape.by_stream(tape.time)[offsets[:-1] + last]
        early = int((ends < ends.max()).sum())
        if early:
            notes.append(
                f"{early:,} of {len(last):,} series end before the others: each is forecast from "
                "its own last actual value"
            )
    if not needed.any():
        return rows, columns, notes
    pa, table = arrow(), rows.table
    ends = tape.by_stream(tape.places)[offsets[1:] - 1]
    behind = table.take(pa.array(np.repeat(ends, needed)))
    keys, time = several(columns.series or ()), columns.time
    if tape.time is not None and time is not None:
        moments = np.empty(len(rows), tape.time.dtype)
        moments[tape.places] = tape.time
        streams = np.split(tape.by_stream(tape.time), offsets[1:-1])
        usual = _usual(tape.time)
        later = [_times_to_come(*pair, usual) for pair in zip(streams, needed, strict=True)]
        name, *clock = rows.parts(time)
        table = table.drop_columns(clock).set_column(
            table.column_names.index(name), name, pa.array(moments)
        )
        behind = behind.drop_columns(clock).set_column(
            behind.column_names.index(name), name, pa.array(np.concatenate(later))
        )
        columns, keys = replace(columns, time=name), (*keys, name)
    for place, name in enumerate(behind.column_names):
        if name not in keys:
            behind = behind.set_column(place, name, pa.nulls(len(behind), behind[name].type))
    table = pa.concat_tables([table, behind])
    return Rows(replace(rows.file, table=table), rows.frame), columns, notes


def _usual(times: Array) -> Any:
    """The usual distance of two times, one where there is none."""
    gaps = np.diff(np.unique(times))
    return np.median(gaps.astype(np.int64 if gaps.dtype.kind == "m" else float)) if len(gaps) else 1


def _times_to_come(times: Array, count: int, usual: Any) -> Array:
    """The times after these: the same distance apart, by months or without weekends where so."""
    step = _usual(times) if len(times) > 1 else usual
    ahead = np.arange(1, count + 1)
    if times.dtype.kind != "M":
        return np.asarray(times[-1] + ahead * step, np.float64)
    day = 86_400_000_000
    last = times[-1]
    if step >= 28 * day and (np.diff(times.astype("datetime64[M]")).astype(int) > 0).all():
        months = times.astype("datetime64[M]")
        apart = round(float(np.median(np.diff(months).astype(int))))
        at_end = ((times.astype("datetime64[D]") + 1).astype("datetime64[M]") > months).all()
        then = months[-1] + ahead * apart
        lengths = (then + 1).astype("datetime64[D]") - then.astype("datetime64[D]")
        within = (times - months.astype(times.dtype)).max() if not at_end else lengths * day
        room = lengths.astype("timedelta64[D]").astype("timedelta64[us]") - np.timedelta64(day)
        clock = last - last.astype("datetime64[D]").astype(times.dtype)
        return np.asarray(then.astype(times.dtype) + np.minimum(within, room + clock))
    days = (times.astype("datetime64[D]").view("int64") + 3) % 7
    if step == day and len(times) >= 10 and (days < 5).all():
        date = last.astype("datetime64[D]")
        later = np.busday_offset(date, ahead)
        return np.asarray(later.astype(times.dtype) + (last - date.astype(times.dtype)))
    return np.asarray(last + (ahead * step).astype("timedelta64[us]"))


def _check_known(rows: Rows, tape: Tape, known_ahead: Sequence[str]) -> None:
    """Raises an error where a column that is known ahead is empty in rows to come."""
    come = _to_come(tape)
    for name in known_ahead:
        column = rows.column(name, "known_ahead")
        gaps = np.asarray(column.is_null()) & come
        if rows.table.schema.field(name).type == arrow().string():
            gaps |= np.array([not str(cell or "").strip() for cell in column.to_pylist()]) & come
        if gaps.any():
            raise DataError(
                f"{option('known_ahead')} names {name!r}, and {int(gaps.sum()):,} rows to come "
                f"have no value of it: add rows with it and an empty target to {rows.path}, or "
                "leave it out"
            )


def _check_new(rows: Rows, old: int, asked: Mapping[str, Any], new: Rows) -> None:
    """Raises an error if new rows are not later than those before."""
    dates = [asked["time"]] if asked["time"] is not None else rows.dates
    if len(dates) != 1 or dates[0] is None:
        return
    times = rows.times(dates[0], "time")
    keys = [""] * len(rows) if asked["series"] is None else rows.series(asked["series"]).tolist()
    latest: dict[Any, Any] = {}
    for key, when in zip(keys[:old], times[:old].tolist(), strict=True):
        latest[key] = max(latest.get(key, when), when)
    for row, (key, when) in enumerate(zip(keys[old:], times[old:].tolist(), strict=True)):
        if key in latest and when <= latest[key]:
            raise DataError(
                f"{new.path} has {when} in {new.place(row)}, and the forecast knows the rows up to "
                f"{latest[key]}: give only rows that came since"
            )


class _Replay:
    """Every forecast of the past with the intervals that would have been shown, by horizon."""

    def __init__(
        self, tape: Tape, learnt: Mixture, levels: tuple[float, ...], middle: float, goal: Goal
    ) -> None:
        self.tape, self.learnt, self.levels = tape, learnt, levels
        self.offsets = offsets = tape.segments.offsets
        self.lengths, self.last = np.diff(offsets), last_known(tape)
        self.steps, self.count = len(learnt.point), len(self.lengths)
        self.of = np.repeat(np.arange(self.count), self.lengths)
        self.within = np.arange(len(tape)) - offsets[self.of]
        self.y = np.asarray(tape.by_stream(tape.y))
        known = ~np.isnan(self.y)
        start = np.where(known, self.within, np.iinfo(np.int64).max)
        self.first = np.minimum.reduceat(start, offsets[:-1])
        usual = np.clip(self.last // 10, 50, 1000)
        self.burn = np.minimum(usual, self.last // 2)
        shape = (self.steps, self.count, len(levels))
        # Two forecasts are shown: that of now, and that made so many steps before.
        self.shown = np.full((2, 2, *shape), np.nan)
        self.points = np.full((2, *shape[:2]), np.nan)
        self.numbers: list[dict[str, Any]] = []
        at_once = max(int(_AT_ONCE // max(len(tape), 1)), 1)
        ratios = [NormalDist().inv_cdf((1.0 + level) / 2.0) for level in (middle, *levels)]
        for begin in range(0, self.steps, at_once):
            self._horizons(range(begin, min(begin + at_once, self.steps)), ratios, goal)

    def _horizons(self, steps: range, ratios: list[float], goal: Goal) -> None:
        rows_of = [self._rows(step + 1) for step in steps]
        counts = [len(rows) for rows in rows_of]
        rows, step = np.concatenate(rows_of), np.repeat(np.array(steps), counts)
        point, y = self.learnt.point[step, rows], self.y[rows]
        low = np.minimum(self.learnt.lower[step, rows], point)
        high = np.maximum(self.learnt.upper[step, rows], point)
        stream = step * self.count + self.of[rows]
        ends = np.empty((len(rows), 2, len(self.levels)))
        bounds = []
        for place, (level, ratio) in enumerate(zip(self.levels, ratios[1:], strict=True)):
            share = ratio / ratios[0]
            tape = Tape.from_arrays(
                {"lower": point - share * (point - low), "upper": point + share * (high - point)},
                y, series=stream, delay=step,
            )  # fmt: skip
            support: Any = "learnt" if goal.support is None else goal.support
            trace = replay(intervals(level, support=support), tape)
            ends[:, 0, place], ends[:, 1, place] = trace.lower, trace.upper
            heads = [int(stream[first]) for first in np.cumsum([0, *counts[:-1]])]
            bounds.append([trace.certificate(head).risks[0].bound.since_start for head in heads])
        ends = nested(ends)
        for which, origin in enumerate((self.last, self.last - self.steps)):
            target = self.offsets[:-1] + origin
            here = rows == target[self.of[rows]] + 1 + step
            self.shown[which, :, step[here], self.of[rows[here]]] = ends[here]
            self.points[which, step[here], self.of[rows[here]]] = point[here]
        base = self._seasonal(rows, step + 1)
        lower, upper = metrics.rolling_quantile(
            y, base, confidence_level=self.levels[-1], delay=np.repeat(np.array(steps), self.count),
            offsets=np.searchsorted(stream, np.arange(
                steps.start * self.count, steps.stop * self.count + 1)),
        )  # fmt: skip
        judged = (self.within[rows] >= self.burn[self.of[rows]]) & ~np.isnan(y)
        for number, place in enumerate(np.cumsum([0, *counts[:-1]])):
            part = slice(place, place + counts[number])
            some = judged[part]
            self.numbers.append(
                self._summed(steps[number] + 1, rows[part][some], point[part][some],
                             base[part][some], ends[part][some],
                             (lower[part][some], upper[part][some]),
                             [bound[number] for bound in bounds])
            )  # fmt: skip

    def _rows(self, ahead: int) -> Array:
        """The rows that are forecast so far ahead: an actual value is known, and none is made up."""
        origin = self.within - ahead
        return np.flatnonzero((origin >= self.first[self.of]) & (origin <= self.last[self.of]))

    def _seasonal(self, rows: Array, ahead: Array) -> Array:
        """The actual value one season before, or the last one, where it is known."""
        periods = np.array(self.learnt.periods)[self.of[rows]]
        season = np.maximum(periods, 1) * -(-ahead // np.maximum(periods, 1))
        season = np.where((periods > 0) & (self.within[rows] >= season), season, ahead)
        filled = np.maximum.accumulate(np.where(np.isnan(self.y), -1, np.arange(len(self.y))))
        return np.asarray(self.y[np.maximum(filled[np.maximum(rows - season, 0)], 0)])

    def _summed(
        self, ahead: int, rows: Array, point: Array, base: Array, ends: Array,
        rolling: tuple[Array, Array], bounds: list[float | None],
    ) -> dict[str, Any]:  # fmt: skip
        """The numbers of one horizon."""
        y, of = self.y[rows], self.of[rows]
        off, off_base = np.abs(y - point), np.abs(y - base)
        sums = [np.bincount(of, values, self.count) for values in (off, off_base)]
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = sums[0] / sums[1]
        ratios = ratios[np.isfinite(ratios)]
        plain = self._score(*rolling, y, self.levels[-1])
        levels = []
        for place, level in enumerate(self.levels):
            lower, upper = ends[:, 0, place], ends[:, 1, place]
            inside = (lower <= y) & (y <= upper)
            width = (upper - lower)[np.isfinite(upper - lower)]
            account = np.bincount(of, (1.0 - inside) - miss_level(level), self.count)
            levels.append({
                "asked": level, "share": _mean(inside), "width": _mean(width),
                "winkler": self._score(lower, upper, y, level),
                "unlimited": _mean(np.isinf(upper - lower)),
                "account": float(account.max(initial=0.0)) if len(of) else None,
                "bound": bounds[place],
            })  # fmt: skip
        return {
            "horizon": ahead, "judged": len(rows), "mae": _mean(off),
            "mae_seasonal": _mean(off_base), "mae_ratio": _mean(ratios),
            "winkler_rolling": plain, "levels": levels,
        }  # fmt: skip

    @staticmethod
    def _score(lower: Array, upper: Array, y: Array, level: float) -> float | None:
        """The mean interval score, over intervals with limits."""
        beyond = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
        score = upper - lower + 2.0 / miss_level(level) * beyond
        return _mean(score[np.isfinite(score)])

    def horizons(self) -> list[dict[str, Any]]:
        """The numbers of each horizon."""
        return self.numbers

    def doubts(self) -> list[str]:
        """What makes the numbers weak: short series, unlimited intervals."""
        notes = []
        least, usual = int(self.last.min()) + 1, self.numbers[-1]["judged"]
        if usual < _FEW * self.count:
            notes.append(
                f"{self.steps} steps ahead the replay could judge {usual:,} forecasts"
                f"{f' of {self.count:,} series' if self.count > 1 else ''}: too few to say much "
                "about coverage; with more rows intervals become narrower and surer"
            )
        widest = self.levels[-1]
        if least < 2.0 / (1.0 - widest):
            notes.append(
                f"the shortest series has {least:,} rows, and intervals at {100 * widest:.6g} % "
                f"need about {round(2.0 / (1.0 - widest)):,}: until then they rest on a guess"
            )
        return notes

    def recent(self) -> list[dict[str, Any]]:
        """To draw: the last actual values of some series, this forecast and the one before."""
        shown = []
        times = None if self.tape.time is None else self.tape.by_stream(self.tape.time)
        for one in range(min(self.count, _SHOWN)):
            last = self.offsets[one] + self.last[one]
            start = max(self.offsets[one], last - max(3 * self.steps, 100))
            stop = min(last + 1 + self.steps, self.offsets[one + 1])
            rows = np.arange(start, stop)
            axis = rows - last if times is None else times[rows]
            name = self.tape.streams[one]
            entry: dict[str, Any] = {
                "series": None if name is None else named(name),
                "x": [_plain(when) for when in axis.tolist()],
                "y": [_number(value) for value in self.y[rows]],
            }
            for place_of, (which, made) in enumerate(
                (("now", last), ("before", last - self.steps))
            ):
                fan = {
                    "start": int(made - start) + 1,
                    "point": [*map(_number, self.points[place_of, :, one])],
                }
                ends = self.shown[place_of, :, :, one]
                fan["ends"] = [[[*map(_number, side)] for side in ends[..., place]]
                               for place in range(len(self.levels))]  # fmt: skip
                if made - start >= 0:
                    entry[which] = fan
            shown.append(entry)
        return shown


def _table(rows: Rows, columns: Columns, tape: Tape, replayed: _Replay) -> Any:
    """The rows to come: keys, steps ahead, the point, the ends of each level."""
    pa = arrow()
    come = replayed.within > replayed.last[replayed.of]
    of, place = replayed.of[come], np.asarray(tape.by_stream(tape.places))[come]
    step = replayed.within[come] - replayed.last[of]
    made: dict[str, Any] = {"step": step, "point": replayed.points[0, step - 1, of]}
    for number, level in enumerate(replayed.levels):
        for side, end in enumerate(("lower", "upper")):
            ends = replayed.shown[0, side, step - 1, of, number]
            made[f"{end}_{100 * level:.6g}"] = ends
    keys = [*several(columns.series or ())]
    keys += [] if columns.time is None else [*rows.parts(columns.time)]
    table = rows.table.select(keys).take(pa.array(place))
    for old, new in unused(made, keys, ("", "forecast_")).items():
        table = table.append_column(new, pa.array(made[old]))
    return table


# Cells


def _number(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _mean(values: Array) -> float | None:
    return _number(float(np.mean(values))) if len(values) else None


def _plain(value: Any) -> Any:
    """A cell as JSON has it."""
    if isinstance(value, float):
        return _number(value)
    return value if value is None or isinstance(value, int | str) else str(value)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return amount(value) if isinstance(value, float) else str(value)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Cells in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
