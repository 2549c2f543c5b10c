"""Calibrating a file of predictions that any model made: a burn-in, then every row in turn."""

import os
import warnings
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from setpoint.bulk.replay import Trace, replay
from setpoint.burn_in import burn_in as filled
from setpoint.controller import Controller
from setpoint.errors import DataError, InputError, LabelError, PredictionError, SetpointError
from setpoint.jobs import files
from setpoint.jobs.choosing import Choice, Goal, choose
from setpoint.jobs.columns import Columns, unused
from setpoint.jobs.outcome import Outcome
from setpoint.jobs.repeating import Given, again, beside, read_controller
from setpoint.jobs.taping import read, timed
from setpoint.tape import Tape

__all__ = [
    "calibrate",
    "calibrated",
    "check_controller",
    "check_goal",
    "early_rows",
    "read",
    "split",
]

Array = np.ndarray[Any, Any]


def calibrate(
    path: str | os.PathLike[str],
    columns: Columns,
    goal: Goal | None = None,
    *,
    burn_in: int | None = None,
    controller: Given = None,
) -> Outcome:
    """Calibrates every row of a file as a live stream would have.

    Parameters
    ----------
    path
        A .csv, .parquet or .jsonl file, or one of these packed by gzip.
    columns
        Which column is what.
    goal
        What to hold; coverage of 90 % by default.
    burn_in
        How many rows of each series choose the controller; by default a tenth, from 50 to 1,000.
    controller
        What to use instead of choosing, or the TOML file that holds it; it is filled in from the
        burn-in if it leaves anything open, and used from the first row on if not.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> random = np.random.default_rng(0)
    >>> lines = [f"-1,1,{y:.4f}" for y in random.normal(0.0, 2.0, 2000)]
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "forecast.csv"
    ...     _ = file.write_text("\\n".join(["low,high,demand", *lines]))
    ...     found = calibrate(file, Columns("demand", lower="low", upper="high"))
    >>> round(found.given.coverage, 2), round(found.trace.coverage, 2)
    (0.38, 0.9)
    """
    goal = Goal() if goal is None else goal
    held = read_controller(controller)
    if held is not None:
        check_controller(held, columns.family(goal))
        check_goal(goal, ("risk", "level", "support", "gamma"))
    rows = files.read(path)
    columns, told = timed(rows, columns)
    tape, order, notes = read(rows, columns)
    name = Path(path).name
    job = {
        "command": "calibrate",
        "name": name[: -len(rows.suffix)],
        "file": name,
        "columns": columns.plain(),
        "prediction": columns.prediction,
        "asked": {**columns.plain(), **goal.plain(), "config": beside(controller)},
    }
    return calibrated(
        rows, tape, order, columns.family(goal), goal, job, burn_in, held, notes=(*told, *notes)
    )


def check_controller(controller: Controller, family: Any) -> None:
    """Raises an error if a controller is for other predictions than those that were named."""
    own: Any = controller.sets
    held, given = (getattr(each, "columns", None) for each in (own, family))
    if held and given and held != given and 1 in (len(held), len(given)):
        raise InputError(
            f"the controller given is for {_ends(held)}, and the columns named are {_ends(given)}: "
            "name the columns it was made for, or leave it out"
        )
    known, classes = getattr(own, "classes", None), getattr(family, "classes", None)
    if isinstance(known, tuple) and classes is not None and known != classes:
        raise InputError(
            f"the controller given has the classes {', '.join(map(str, known))} in this order, and "
            f"the probabilities named are those of {', '.join(map(str, classes))}: name the "
            "columns in its order"
        )


def _ends(columns: Sequence[str]) -> str:
    """What predictions of these columns are called."""
    return f"{columns[0]} bounds alone" if len(columns) == 1 else "both ends or a point"


def check_goal(goal: Goal, names: Sequence[str]) -> None:
    """Raises an error if a goal says what the controller given says already."""
    usual = Goal()
    said = [name for name in names if getattr(goal, name) != getattr(usual, name)]
    if said:
        raise InputError(
            f"a controller says already what to hold and how: leave out {', '.join(said)}, or the "
            "controller (--config)"
        )


def calibrated(
    rows: files.Rows | None,
    tape: Tape,
    order: Array | None,
    family: Any,
    goal: Goal,
    job: dict[str, Any],
    burn_in: int | None = None,
    controller: Controller | None = None,
    *,
    warm_up: float = 0.0,
    more: dict[str, Array] | None = None,
    notes: Sequence[str] = (),
) -> Outcome:
    """A tape calibrated: the burn-in chooses, the rest is replayed, everything is kept.

    `warm_up` is the share of the burn-in that a model learns in, left out of the choice.
    """
    _check_support(family if controller is None else controller.sets, tape, order, rows)
    ready = controller is not None and _is_full(controller)
    early, length = _early(tape, 0 if ready and burn_in is None else burn_in)
    past, later = split(tape, early)
    if not ready:
        _check_burn_in(past, early, order, rows)
    try:
        choice = _chosen(family, goal, controller, past, later, warm_up)
        trace = replay(choice.controller, later)
        before = replay(choice.controller, past) if len(past) else None
    except SetpointError as error:
        if rows is None:
            raise
        by_row = isinstance(error, PredictionError | LabelError)
        where = _refused(family, tape, order, rows) if by_row else ""
        raise type(error)(f"{rows.path}{where}: {error}") from error
    if burn_in is None and not ready and len(tape.streams) == 1:
        burn_in = length
    asked = _asked(goal) if controller is None else _held(controller)
    job = {**job, "goal": asked, "burn_in": int(early.sum()), "burn_in_each": length}
    job["repeat"] = _repeat(job, rows, burn_in, ready)
    added = _added(trace, before, early, order)
    wanted = [*added, "full", "empty"]  # the last two are for JSON Lines
    names = unused(wanted, [] if rows is None else rows.names, ("", "calibrated_"))
    job["added"] = {name: names[name] for name in added}
    added = {names[name]: values for name, values in added.items()}
    if more:
        added = {**{name: _unsorted(held, order) for name, held in more.items()}, **added}
    return Outcome(job, trace, choice, _as_given(trace), rows, added, tuple(notes))


def _check_support(family: Any, tape: Tape, order: Array | None, rows: files.Rows | None) -> None:
    """Raises the error of the first label outside the support, by its row of the file."""
    low, high = getattr(family, "support", (-inf, inf))
    outside = (tape.y < low) | (tape.y > high)
    if outside.any() and rows is not None:
        row = int((np.flatnonzero(outside) if order is None else order[outside]).min())
        value = tape.y[row if order is None else int(np.flatnonzero(order == row)[0])]
        raise DataError(
            f"--support says that the target lies from {low:g} to {high:g}, and {rows.path} has "
            f"{value:g} in {rows.place(row)}: widen the support or leave it out"
        )


_LEAST = 10
"""How many labels a burn-in needs."""


def _check_burn_in(past: Tape, early: Array, order: Array | None, rows: files.Rows | None) -> None:
    """Raises an error if the burn-in has too few labels to choose from."""
    known = int((~np.isnan(past.y)).sum())
    if known >= _LEAST:
        return
    last = np.flatnonzero(early if order is None else _unsorted(early, order))
    until = f" of {rows.path}, up to {rows.place(int(last[-1]))}," if rows and len(last) else ""
    raise DataError(
        f"a burn-in needs at least {_LEAST} rows with a label, and the {len(past):,} rows of "
        f"it{until} have {known}: give a larger --burn-in, a longer file, or a controller by "
        "--config"
    )


def _refused(family: Any, tape: Tape, order: Array | None, rows: files.Rows) -> str:
    """Where the first row is that a family cannot read, if there is one."""
    taped = getattr(family, "taped", None)
    columns = [np.asarray(held).tolist() for held in tape.prediction]
    for place, (prediction, y) in enumerate(
        zip(zip(*columns, strict=True), tape.y.tolist(), strict=True)
    ):
        try:
            family.read(prediction if len(columns) > 1 else prediction[0])
            if y == y:
                family.label(y if taped is None else taped(y))
        except SetpointError:
            return f", {rows.place(place if order is None else int(order[place]))}"
    return ""


def _repeat(
    job: dict[str, Any], rows: files.Rows | None, burn_in: int | None, ready: bool
) -> str | None:
    """The command that does the job again; None where no command can.

    A controller that left something open and came from Python is written down filled in, and
    that does not say which rows of several series filled it in.
    """
    asked = job.pop("asked", {})
    written = asked.get("config") == "controller.toml"
    if rows is None or (written and not ready and burn_in is None):
        return None
    return again(job["command"], rows.path, {**asked, "burn_in": burn_in})


def _asked(goal: Goal) -> dict[str, Any]:
    held = goal.plain()
    if goal.support is not None:
        held["support"] = [end if abs(end) < inf else str(end) for end in goal.support]
    return held


def _held(controller: Controller) -> dict[str, Any]:
    """What a controller that was given holds."""
    first = controller.risks[0]
    return {"risk": first.name, "level": first.level}


def _is_full(controller: Controller) -> bool:
    """Whether a controller leaves nothing open."""
    own = controller.sets.bounds() is not None
    adaptive = getattr(controller.stretch, "low", 0.0) is not None
    return adaptive and all(
        risk.step is not None and (own or risk.bounds is not None) for risk in controller.risks
    )


def early_rows(lengths: Array, asked: int | None) -> Array:
    """How many rows of each series are its burn-in."""
    if asked is None:
        found: Array = np.minimum(np.clip(lengths // 10, 50, 1000), lengths // 2)
        return found
    if asked < 0:
        raise InputError(f"a burn-in has 0 rows or more, got {asked}")
    if asked >= lengths.max():
        raise InputError(
            f"a burn-in must leave rows to calibrate: it is {asked:,} rows, and the longest "
            f"series has {lengths.max():,}"
        )
    return np.minimum(asked, lengths)


def _early(tape: Tape, asked: int | None) -> tuple[Array, int]:
    """Which rows are the burn-in: the first of each series; and the most of any one."""
    order, offsets = tape.segments
    lengths = np.diff(offsets)
    each = early_rows(lengths, asked)
    place = np.arange(len(tape)) - np.repeat(offsets[:-1], lengths)
    early = place < np.repeat(each, lengths)
    if order is not None:
        early[order] = early.copy()
    return early, int(each.max())


def split(tape: Tape, early: Array) -> tuple[Tape, Tape]:
    """The rows of a tape that are early, and the others."""
    if len(tape.streams) == 1:
        count = int(early.sum())
        return tape[:count], tape[count:]
    return _some(tape, early), _some(tape, ~early)


def _some(tape: Tape, keep: Array) -> Tape:
    keys = {name: getattr(tape, name) for name in ("id", "time", "group")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # repeated times were told of once
        return Tape.from_arrays(
            {
                name: np.asarray(held)[keep]
                for name, held in zip(tape.names, tape.prediction, strict=True)
            },
            tape.y[keep],
            **{name: held[keep] for name, held in keys.items() if held is not None},
        )


def _chosen(
    family: Any,
    goal: Goal,
    controller: Controller | None,
    past: Tape,
    later: Tape,
    warm_up: float,
) -> Choice:
    if controller is not None:
        if _is_full(controller):
            return Choice(controller)
        columns = [np.asarray(held).tolist() for held in past.prediction]
        given = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        return Choice(filled(controller, given, past.y.tolist()), (), len(past))
    labels = np.diff(later.segments.offsets)
    if len(past.streams) == 1:
        past = past[int(warm_up * len(past)) :]
    return choose(family, goal, past, int(np.median(labels)))


# What is written behind the rows


def _added(trace: Trace, before: Trace | None, early: Array, order: Array | None) -> dict[str, Any]:
    """The sets of every row in the order of the file."""
    covered = _joined(before, trace, early, "covered")
    observed = np.empty(len(early), bool)
    observed[~early] = trace.observed
    if before is not None:
        observed[early] = before.observed
    held: dict[str, Any] = {}
    if trace.shown is None:
        held["lower"] = _joined(before, trace, early, "lower")
        held["upper"] = _joined(before, trace, early, "upper")
    else:
        shown = np.empty(len(early), object)
        shown[~early] = np.fromiter(trace.shown, object, len(trace.shown))
        if before is not None and before.shown is not None:
            shown[early] = np.fromiter(before.shown, object, len(before.shown))
        held["labels"] = np.fromiter(
            ("|".join(map(str, each.labels)) for each in shown), object, len(shown)
        )
        held["size"] = np.fromiter((each.size for each in shown), np.int64, len(shown))
    held["covered"] = covered if observed.all() else np.ma.array(covered, mask=~observed)
    held["burn_in"] = early
    return {name: _unsorted(values, order) for name, values in held.items()}


def _joined(before: Trace | None, after: Trace, early: Array, name: str) -> Array:
    late = getattr(after, name)
    if before is None:
        return np.asarray(late)
    made = np.empty(len(early), late.dtype)
    made[early], made[~early] = getattr(before, name), late
    return made


def _unsorted(values: Array, order: Array | None) -> Array:
    return values if order is None else values[np.argsort(order)]


def _as_given(trace: Trace) -> tuple[Array, Array] | None:
    """The predictions themselves as sets, where they are intervals or bounds."""
    tape = trace.tape
    columns = dict(zip(tape.names, (np.asarray(each) for each in tape.prediction), strict=True))
    if not {"lower", "upper"} & set(columns) or set(columns) - {"lower", "upper"}:
        return None
    open_end = np.broadcast_to(inf, len(tape))
    return columns.get("lower", -open_end), columns.get("upper", open_end)
