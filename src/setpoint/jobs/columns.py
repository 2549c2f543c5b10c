"""Which column of a file is what, and the tape of them."""

import fnmatch
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, takewhile
from typing import Any

import numpy as np

from setpoint import sets
from setpoint._check import whole
from setpoint.errors import DataError, InputError
from setpoint.jobs import times
from setpoint.jobs.rows import Rows
from setpoint.tape import Tape, TapeNotice
from setpoint.tape.cells import MISSING

__all__ = [
    "Columns",
    "check_keys",
    "labels_of",
    "read_tape",
    "tape_of",
    "timed",
    "unused",
]

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
        them may have the same letters, as in p_cat, p_dog; "p_*" are all that begin so.
    id
        Which series a row belongs to; each is held by itself.
    time
        When it was; rows are taken in the order of time. By default the only column of dates;
        without one, rows are taken in the order of the file. "date,hour" are two columns: days,
        and hours or times of day.
    group
        A key for coverage by group in the report.
    horizon
        How many steps ahead a row forecasts; each horizon of a series is held by itself, and its
        labels come horizon − 1 rows late, or less where forecasts are made every few steps of
        time. Where one row has several horizons, write * in place of
        the number instead: lower="lower_h*", upper="upper_h*", or point="h*". The target of a row
        is then that of all its forecasts, unless it has a * too.
    known
        When each label became known, in the units of the time; empty if after the last row. The
        time of a row is then that at which its forecast was made.
    delay
        How many rows late labels become known, 0 by default.
    period
        How many steps of time a season has, or "auto": it is found from the errors of the burn-in.
        Sets that adjust themselves then learn the season; gaps in the times do not shift it.
        Without one they count rows, and find the season by themselves.
    features
        Columns of numbers that are known of a row when it is forecast, such as the hour; empty
        where one is missing. Sets that adjust themselves learn how errors depend on them.
    """

    target: str
    lower: str | None = None
    upper: str | None = None
    point: str | None = None
    probabilities: tuple[str, ...] = ()
    id: str | None = None
    time: str | None = None
    group: str | None = None
    horizon: str | None = None
    known: str | None = None
    delay: int = 0
    period: int | str | None = None
    features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ends = self.lower is not None or self.upper is not None
        kinds = [ends, self.point is not None, bool(self.probabilities)]
        if sum(kinds) != 1:
            raise InputError(
                "predictions are lower and upper (or one of them), or point, or probabilities: "
                f"give one kind, got {sum(kinds)}"
            )
        if len(self.probabilities) == 1 and "*" not in self.probabilities[0]:
            raise InputError(
                "probabilities need a column for each of two classes or more, got "
                f"{self.probabilities[0]!r} alone"
            )
        check_keys(self.target, self.id, self.time)
        if self.delay and (self.known or self.horizon or self.patterns):
            raise InputError(
                "labels come late by a delay, or by horizons or times: leave out the delay"
            )
        object.__setattr__(self, "delay", whole(self.delay, "delay", 0))
        if self.period is not None and self.period != "auto":
            try:
                object.__setattr__(self, "period", whole(int(self.period), "period", 2))
            except ValueError:
                raise InputError(
                    f"a period is a whole number from 2, or auto; got {self.period!r}"
                ) from None
        if self.period is not None and not self.is_pair:
            raise InputError("a period is for intervals and point forecasts: leave it out")
        object.__setattr__(self, "features", tuple(self.features))
        if self.features and not self.is_pair:
            raise InputError("features are for intervals and point forecasts: leave them out")

    @property
    def patterns(self) -> dict[str, str]:
        """The options whose columns have the horizon in place of *."""
        named = {f"--{name}": getattr(self, name) for name in ("lower", "upper", "point")}
        return {option: name for option, name in named.items() if name and "*" in name}

    @property
    def prediction(self) -> dict[str, str]:
        """The columns of the prediction by the names a family knows them by."""
        if self.probabilities:
            return {name: name for name in self.probabilities}
        named = {"lower": self.lower, "upper": self.upper, "prediction": self.point}
        return {name: column for name, column in named.items() if column is not None}

    @property
    def is_pair(self) -> bool:
        """Whether predictions are both ends of an interval, or a point."""
        return self.point is not None or (self.lower is not None and self.upper is not None)

    def option(self, name: str) -> str:
        """The option that names a column of the prediction."""
        if self.probabilities:
            return "--probabilities"
        return "--point" if name == "prediction" else f"--{name}"

    def family(self, rows: Rows, support: tuple[float, float] | None = None) -> Any:
        """The family that reads such predictions, cut to the support."""
        if self.probabilities:
            if support is not None:
                raise InputError("support is for numbers, and classes have none: leave it out")
            return sets.Threshold(classes=_classes_of(rows, self))
        kind: Any = sets.Widen if self.is_pair else sets.Upper if self.upper else sets.Lower
        return kind() if support is None else kind(support=support)

    def keys(self) -> dict[str, str]:
        """The columns beside the prediction that there are."""
        names = ("target", "time", "id", "group", "horizon", "known", "delay", "period")
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    def plain(self) -> dict[str, Any]:
        """The columns that there are, as plain values."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value}


def check_keys(target: str, id: str | None, time: str | None) -> None:
    """Raises an error if the label is to be a key of its own row."""
    for name, column in (("id", id), ("time", time)):
        if column == target:
            raise InputError(
                f"--target and --{name} both name {target!r}, and the label of a row is not known "
                f"before the row is taken: name another column for --{name}"
            )


def unused(names: Iterable[str], taken: Sequence[str], prefixes: Sequence[str]) -> dict[str, str]:
    """What to call new columns: all with the first prefix that makes none of them a taken name.

    >>> unused(["lower", "upper"], ["y", "lower", "calibrated_upper"], ("", "calibrated_"))
    {'lower': 'calibrated_2_lower', 'upper': 'calibrated_2_upper'}
    """
    wanted = list(names)
    for prefix in chain(prefixes, (f"{prefixes[-1]}{number}_" for number in count(2))):
        named = {name: f"{prefix}{name}" for name in wanted}
        if not set(named.values()) & set(taken):
            break
    return named


# Classes


def _classes_of(rows: Rows, columns: Columns) -> tuple[Any, ...]:
    """The classes behind the columns of probabilities: p_cat, p_dog are cat and dog.

    What the names have in common is part of the classes where the labels have it too.
    """
    names = columns.probabilities
    words = {word.strip() for word in rows.words(columns.target, "--target")[0]}
    columns_of_signs = takewhile(lambda signs: len(set(signs)) == 1, zip(*names, strict=False))
    prefix = "" if words & set(names) else "".join(signs[0] for signs in columns_of_signs)
    prefix = prefix.rstrip("".join(filter(str.isalnum, prefix)))
    bare = [name[len(prefix) :] for name in names]
    return tuple(int(name) if name.isdigit() and str(int(name)) == name else name for name in bare)


def labels_of(rows: Rows, columns: Columns) -> Array:
    """The place of each row's class, NaN where there is none."""
    classes = {str(name): place for place, name in enumerate(_classes_of(rows, columns))}
    words, codes = rows.words(columns.target, "--target")
    places: list[float] = []
    for word in map(str.strip, words):
        bare = word.removesuffix(".0")
        if bare not in classes and word not in MISSING:
            row = int((codes == len(places)).argmax())
            raise DataError(
                f"--target must hold one of the classes {', '.join(classes)}, and "
                f"{columns.target!r} of {rows.path} holds {word!r} in {rows.place(row)}"
                ": leave the cell empty where the class is not known"
            )
        places.append(classes.get(bare, np.nan))
    labels: Array = np.array([*places, np.nan])[codes]
    return labels


# The tape


def timed(rows: Rows, columns: Columns) -> tuple[Columns, tuple[str, ...]]:
    """The columns with the only one of dates as the time, if none is named; and notes.

    Rows that are not in its order are noted where they are sorted.
    """
    columns = _all_classes(rows, columns)
    if columns.time is not None:
        return columns, ()
    dates = [name for name in rows.dates if name not in (columns.target, columns.known)]
    if len(dates) > 1:
        some = " or ".join(map(repr, dates))
        return columns, (f"the rows are taken in the order of the file; --time takes {some}",)
    if dates:
        return replace(columns, time=dates[0]), ()
    odd = [f"{name!r} {why}" for name in rows.names if (why := rows.no_dates(name))]
    return columns, (
        "no time was named or found: the rows are taken in the order of the file",
        *odd,
    )


def _all_classes(rows: Rows, columns: Columns) -> Columns:
    """The columns with those that a pattern of probabilities stands for."""
    names: list[str] = []
    for name in columns.probabilities:
        found = [name]
        if "*" in name and name not in rows.names:
            keys = {columns.target, columns.id, columns.time, columns.group}
            found = [other for other in fnmatch.filter(rows.names, name) if other not in keys]
            if len(found) < 2:
                raise DataError(
                    f"--probabilities {name!r} stands for a column of each of two classes or more, "
                    f"and {rows.path} has {found or 'none'}; its columns are "
                    f"{', '.join(map(repr, rows.names[:15]))}"
                )
        names += found
    same = tuple(names) == columns.probabilities
    return columns if same else replace(columns, probabilities=tuple(names))


def read_tape(rows: Rows, columns: Columns) -> tuple[Tape, tuple[str, ...]]:
    """The tape of a file in the order of time, and notes."""
    steps = times.horizons(rows, columns.patterns) if columns.patterns else [None]

    def at(name: str, step: int | None) -> str:
        return name if step is None else name.replace("*", str(step))

    prediction = {
        name: times.several([rows.numbers(at(column, h), columns.option(name)) for h in steps])
        for name, column in columns.prediction.items()
    }
    for name, values in prediction.items():
        gaps = np.isnan(values)
        if gaps.any():
            raise DataError(
                f"every row needs a prediction, and {columns.prediction[name]!r} of {rows.path} "
                f"has none in {rows.place(int(gaps.argmax()) % len(rows))}: leave such rows out"
            )
    y = (
        labels_of(rows, columns)
        if columns.probabilities
        else times.several([rows.labels(at(columns.target, h)) for h in steps])
    )
    if np.isnan(y).all():
        raise DataError(
            f"--target needs labels, and {columns.target!r} of {rows.path} is empty in all "
            f"{len(rows):,} rows"
        )
    crossed = _sort_crossed(columns, prediction)
    ahead = [step for step in steps if step is not None]
    tape, notes = tape_of(rows, prediction, y, columns.keys(), ahead)
    tape = tape if columns.period in (None, "auto") else times.phased(tape)
    if columns.features:
        known = {name: rows.numbers(name, "--features") for name in columns.features}
        tape = tape.with_extras({name: values[tape.places] for name, values in known.items()})
    return tape, (*crossed, *notes)


def _sort_crossed(columns: Columns, prediction: dict[str, Array]) -> list[str]:
    """Puts lower ends that are above their upper ones in order, and notes it."""
    if columns.lower is None or columns.upper is None:
        return []
    lower, upper = prediction["lower"], prediction["upper"]
    crossed = int((lower > upper).sum())
    if not crossed:
        return []
    prediction |= {"lower": np.minimum(lower, upper), "upper": np.maximum(lower, upper)}
    rows = "1 row" if crossed == 1 else f"{crossed:,} rows"
    doubt = ": are --lower and --upper the wrong way round?" if 2 * crossed > len(lower) else ""
    return [
        f"{rows} had crossed ends, {columns.lower!r} above {columns.upper!r}; they were sorted"
        f"{doubt}"
    ]


def tape_of(
    rows: Rows,
    prediction: dict[str, Array],
    y: Array,
    names: Mapping[str, Any],
    horizons: Sequence[int] = (),
) -> tuple[Tape, tuple[str, ...]]:
    """A tape with the keys of these names in a file, sorted by time, and notes.

    Of several horizons in one row the columns come one behind the other.
    """
    columns = {role: name for role in ("id", "group") if (name := names.get(role))}
    keys: dict[str, Any] = {role: rows.keys(name, f"--{role}") for role, name in columns.items()}
    time, notes = names.get("time"), []
    if rows.commas:
        notes.append("numbers are read with decimal commas: 1,5 is one and a half")
    if time is not None:
        keys["time"] = rows.times(time, "--time")
        doubt = rows.doubt(time)
        if doubt is not None:
            notes.append(f"{time!r} is read {doubt}")
    if names.get("horizon"):
        keys["horizon"] = rows.numbers(names["horizon"], "--horizon")
    if names.get("known"):
        keys["known"] = rows.times(names["known"], "--known", gaps=True)
        if time is None and keys["known"].dtype.kind == "M":
            dates = " or ".join(repr(name) for name in rows.dates if name != names["known"])
            raise InputError(
                f"--known {names['known']!r} holds dates, to be compared with when each forecast "
                f"was made: name that column by --time{dates and f', such as {dates}'}"
            )
    places = None
    if horizons:
        keys = {name: np.tile(column, len(horizons)) for name, column in keys.items()}
        keys["horizon"] = np.repeat(np.array(horizons), len(rows))
        places = np.tile(np.arange(len(rows)), len(horizons))
    if time is not None and _goes_back(keys):
        order = np.argsort(keys["time"], kind="stable")
        prediction = {name: column[order] for name, column in prediction.items()}
        keys = {name: column[order] for name, column in keys.items()}
        y, places = y[order], order if places is None else places[order]
        if "id" not in keys and not horizons:
            notes.append(f"the rows are not in the order of {time!r}; they are taken in it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TapeNotice)  # it is noted below
        late = {"delay": names["delay"]} if names.get("delay") else {}
        tape = Tape.from_arrays(prediction, y, **keys, **late, places=places)
        every = times.issued_every(tape)
        if every > 1:
            late["delay"] = -(-np.asarray(tape.horizon) // every) - 1
            tape = Tape.from_arrays(prediction, y, **keys, **late, places=places)
    notes += times.label_notes(tape, names, every)
    if tape.notice is not None:
        notes += [tape.notice, *_apart(rows, names, tape)]
    return tape, tuple(notes)


def _goes_back(keys: Mapping[str, Array]) -> bool:
    """Whether time goes back in a file, or within a series where each of them is in one piece.

    Rows that lie series by series stay so: sorting millions of them would only scatter them.
    """
    falls = keys["time"][1:] < keys["time"][:-1]
    if "id" not in keys or "horizon" in keys or not falls.any():
        return bool(falls.any())
    new = np.asarray(keys["id"][1:] != keys["id"][:-1])
    heads = keys["id"][np.flatnonzero(np.concatenate(([True], new)))]
    return len(set(heads.tolist())) < len(heads) or bool((falls & ~new).any())


def _apart(rows: Rows, names: Mapping[str, Any], tape: Tape) -> list[str]:
    """Which column would tell rows of one time apart: a series of text, or the hour of a day."""
    if names.get("id") or names.get("horizon") or tape.time is None:
        return []
    taken = {names.get(role) for role in ("target", "group", "known", "time")}
    free = [name for name in rows.names if name not in taken and name not in rows.dates]
    _, moments = np.unique(tape.time, return_inverse=True)
    for name in free:
        if rows.is_text(name):
            words, codes = rows.words(name, "--id")
            kinds = len(words)
            hint = f"if {name!r} tells series apart, name it by --id"
            least = 2
        else:
            try:
                numbers = rows.numbers(name, "--time")
            except DataError:
                continue
            if not ((numbers >= 0.0) & (numbers <= 24.0) & (numbers % 1.0 == 0.0)).all():
                continue
            distinct, codes = np.unique(numbers, return_inverse=True)
            kinds = len(distinct)
            hint = f"if {name!r} is the hour, say --time '{names.get('time')},{name}'"
            least = 3
        pairs = np.unique(moments * (kinds + 1) + codes[tape.places])
        if least <= kinds <= len(tape) // 2 and len(pairs) == len(tape):
            return [hint]
    return []
