"""Calibrating a file of predictions that any model made: a burn-in, then every row in turn."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from setpoint import sets
from setpoint.burn_in import burn_in as filled
from setpoint.controller import Controller
from setpoint.errors import DataError, InputError, SetpointError
from setpoint.jobs import files
from setpoint.jobs.choosing import Choice, Goal, choose
from setpoint.jobs.outcome import Outcome
from setpoint.replaying import Trace, replay
from setpoint.tape import Tape

__all__ = ["Columns", "calibrate", "calibrated", "early_rows", "read", "split", "taped"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column of a file is what.

    Parameters
    ----------
    target
        What came out; empty where it is not known.
    lower, upper
        The ends of intervals. One alone is a bound on one side, and only that side is held.
    point
        A forecast that is one number.
    probabilities
        A probability for each class, in columns called as the classes are, before which all of
        them may have the same letters, as in p_cat, p_dog.
    id
        Which series a row belongs to; each is held by itself.
    time
        When it was; rows are taken in the order of time, without it in that of the file.
    group
        A key for coverage by group in the report.
    """

    target: str
    lower: str | None = None
    upper: str | None = None
    point: str | None = None
    probabilities: tuple[str, ...] = ()
    id: str | None = None
    time: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        ends = self.lower is not None or self.upper is not None
        kinds = [ends, self.point is not None, bool(self.probabilities)]
        if sum(kinds) != 1:
            raise InputError(
                "predictions are lower and upper (or one of them), or point, or probabilities: "
                f"give one kind, got {sum(kinds)}"
            )
        if len(self.probabilities) == 1:
            raise InputError(
                "probabilities need a column for each of two classes or more, got "
                f"{self.probabilities[0]!r} alone"
            )

    @property
    def prediction(self) -> dict[str, str]:
        """The columns of the prediction by the names a family knows them by."""
        if self.probabilities:
            return {name: name for name in self.probabilities}
        named = {"lower": self.lower, "upper": self.upper, "prediction": self.point}
        return {name: column for name, column in named.items() if column is not None}

    def family(self, goal: Goal) -> Any:
        """The family that reads such predictions."""
        if self.probabilities:
            if goal.support is not None:
                raise InputError("support is for numbers, and classes have none: leave it out")
            return sets.Threshold(classes=_classes(self.probabilities))
        one_sided = (self.lower is None) != (self.upper is None) and self.point is None
        if not one_sided:
            return goal.family(sets.Widen)
        return goal.family(sets.Upper if self.lower is None else sets.Lower)

    def plain(self) -> dict[str, Any]:
        """The columns that there are, as plain values."""
        held = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in held.items() if value}


def calibrate(
    path: str | os.PathLike[str],
    columns: Columns,
    goal: Goal | None = None,
    *,
    burn_in: int | None = None,
    controller: Controller | None = None,
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
        What to use instead of choosing; it is filled in from the burn-in if it leaves anything
        open, and used from the first row on if not.

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
    rows = files.read(path)
    tape, order, notes = read(rows, columns)
    name = Path(path).name
    job = {
        "command": "calibrate",
        "name": name[: -len(rows.suffix)],
        "file": name,
        "columns": columns.plain(),
        "prediction": columns.prediction,
    }
    return calibrated(
        rows, tape, order, columns.family(goal), goal, job, burn_in, controller, notes=notes
    )


def read(rows: files.Rows, columns: Columns) -> tuple[Tape, Array | None, tuple[str, ...]]:
    """The tape of a file in the order of time, that order (None for the file's), and notes."""
    prediction = {
        name: rows.numbers(column, f"--{name if not columns.probabilities else 'probabilities'}")
        for name, column in columns.prediction.items()
    }
    for name, values in prediction.items():
        gaps = np.isnan(values)
        if gaps.any():
            raise DataError(
                f"every row needs a prediction, and {columns.prediction[name]!r} of {rows.path} "
                f"has none in {rows.place(int(gaps.argmax()))}: leave such rows out"
            )
    if columns.probabilities:
        y = _class_places(rows, columns)
    else:
        y = rows.numbers(columns.target, "--target")
        if np.isinf(y).any():
            row = int(np.isinf(y).argmax())
            raise DataError(f"--target must be finite, and {rows.place(row)} holds {y[row]}")
    return taped(rows, prediction, y, columns.id, columns.time, columns.group)


def taped(
    rows: files.Rows,
    prediction: dict[str, Array],
    y: Array,
    id: str | None,
    time: str | None,
    group: str | None,
) -> tuple[Tape, Array | None, tuple[str, ...]]:
    """A tape with the keys of a file, sorted by time."""
    keys: dict[str, Any] = {}
    for role, name in (("id", id), ("group", group)):
        if name is not None:
            words, codes = rows.keys(name, f"--{role}")
            keys[role] = _named(words)[codes]
    order, notes = None, []
    if time is not None:
        keys["time"] = rows.times(time, "--time")
        if (keys["time"][1:] < keys["time"][:-1]).any():
            order = np.argsort(keys["time"], kind="stable")
            prediction = {name: held[order] for name, held in prediction.items()}
            keys = {name: held[order] for name, held in keys.items()}
            y = y[order]
            if id is None:
                notes.append(f"the rows are not in the order of {time!r}; they are taken in it")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        tape = Tape.from_arrays(prediction, y, **keys)
    notes += [str(each.message).split(" (strict")[0] for each in said]
    return tape, order, tuple(notes)


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
    try:
        ready = controller is not None and _is_full(controller)
        early, length = _early(tape, 0 if ready and burn_in is None else burn_in)
        past, later = split(tape, early)
        choice = _chosen(family, goal, controller, past, later, warm_up)
        trace = replay(choice.controller, later)
        before = replay(choice.controller, past) if len(past) else None
    except SetpointError as error:
        where = f"{rows.path}: " if rows is not None else ""
        raise type(error)(f"{where}{error}") from error
    job = {**job, "goal": _asked(goal), "burn_in": int(early.sum()), "burn_in_each": length}
    added = _added(trace, before, early, order, [] if rows is None else rows.names)
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


def _asked(goal: Goal) -> dict[str, Any]:
    held = {name: getattr(goal, name) for name in goal.__slots__}
    if goal.support is not None:
        held["support"] = [end if abs(end) < inf else str(end) for end in goal.support]
    return held


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


def _added(
    trace: Trace, before: Trace | None, early: Array, order: Array | None, taken: Sequence[str]
) -> dict[str, Any]:
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
    clash = any(name in taken for name in held)
    return {
        f"calibrated_{name}" if clash else name: _unsorted(values, order)
        for name, values in held.items()
    }


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


# Classes


def _prefix(names: Sequence[str]) -> str:
    """What all names begin with, up to the last sign that is no letter or digit."""
    first, last = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    return first[:same].rstrip("".join(filter(str.isalnum, first[:same])))


def _classes(names: Sequence[str]) -> tuple[Any, ...]:
    """The classes behind the names of columns: p_cat, p_dog are cat and dog."""
    bare = [name[len(_prefix(names)) :] for name in names]
    return tuple(int(name) if name.isdigit() and str(int(name)) == name else name for name in bare)


def _class_places(rows: files.Rows, columns: Columns) -> Array:
    """The place of each row's class, NaN where there is none."""
    classes = {str(name): place for place, name in enumerate(_classes(columns.probabilities))}
    held = rows.column(columns.target, "--target").combine_chunks().dictionary_encode()
    places = []
    for word in held.dictionary.to_pylist():
        text = "" if word is None else str(word).strip()
        bare = text[:-2] if text.endswith(".0") else text
        if bare not in classes and text:
            raise DataError(
                f"--target must hold one of the classes {', '.join(classes)}, and "
                f"{columns.target!r} of {rows.path} holds {text!r}"
            )
        places.append(classes.get(bare, np.nan))
    codes = held.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)
    found: Array = np.array([*places, np.nan])[codes]
    return found


def _named(words: Sequence[Any]) -> Array:
    """Ids as text or whole numbers."""
    if all(isinstance(word, int) and not isinstance(word, bool) for word in words):
        return np.array(words, dtype=np.int64)
    return np.fromiter(map(str, words), object, len(words))
