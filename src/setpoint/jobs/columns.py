"""Which column of a file is what, the tape of them, and when its labels become known."""

import fnmatch
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count, takewhile
from typing import Any

import numpy as np

from setpoint import sets
from setpoint._check import option
from setpoint.errors import DataError, InputError
from setpoint.presets import find_period
from setpoint.sets.family import Taped
from setpoint.tape import Columns, Tape, TapeNotice
from setpoint.tape.columns import several
from setpoint.tape.rows import Rows
from setpoint.tape.text import MISSING

Array = np.ndarray[Any, Any]

_HOUR = re.compile(r"(?i)(^|[^a-z])(hour|hr|he|time|hhmm)([^a-z]|$)|ending")
"""What a column of hours is called."""


def family_of(columns: Columns, rows: Rows, support: tuple[float, float] | None = None) -> Any:
    """The family that reads the predictions of these columns, cut to the support."""
    if columns.probabilities:
        if support is not None:
            raise InputError("support is for numbers, and classes have none: leave it out")
        return sets.Threshold(classes=_classes_of(rows, columns))
    kind: Any = sets.Widen if columns.is_pair else sets.Upper if columns.upper else sets.Lower
    return kind() if support is None else kind(support=support)


def unused(
    names: Iterable[str], taken: Sequence[str], prefix: str = "calibrated_"
) -> dict[str, str]:
    """What to call new columns: by their names, or all with a prefix, so that none is taken.

    >>> unused(["lower", "upper"], ["y", "lower", "calibrated_upper"])
    {'lower': 'calibrated_2_lower', 'upper': 'calibrated_2_upper'}
    """
    wanted = list(names)
    for one in chain(("", prefix), (f"{prefix}{number}_" for number in count(2))):
        named = {name: f"{one}{name}" for name in wanted}
        if not set(named.values()) & set(taken):
            break
    return named


# Classes


def _classes_of(rows: Rows, columns: Columns) -> tuple[Any, ...]:
    """The classes behind the columns of probabilities: p_cat, p_dog are cat and dog.

    What the names have in common is part of the classes where the labels have it too.
    """
    names = columns.probabilities
    words = {word.strip() for word in rows.words(columns.target, "target")[0]}
    alike = takewhile(lambda signs: len(set(signs)) == 1, zip(*names, strict=False))
    prefix = "" if words & set(names) else "".join(signs[0] for signs in alike)
    prefix = prefix.rstrip("".join(filter(str.isalnum, prefix)))
    bare = [name[len(prefix) :] for name in names]
    return tuple(int(name) if name.isdigit() and str(int(name)) == name else name for name in bare)


def labels_of(rows: Rows, columns: Columns) -> Array:
    """The place of each row's class, NaN where there is none."""
    classes = {str(name): place for place, name in enumerate(_classes_of(rows, columns))}
    words, codes = rows.words(columns.target, "target")
    places: list[float] = []
    for word in map(str.strip, words):
        bare = word if word in classes else word.removesuffix(".0")
        if bare not in classes and word not in MISSING:
            row = int((codes == len(places)).argmax())
            raise DataError(
                f"{option('target')} must hold one of the classes {', '.join(classes)}, and "
                f"{columns.target!r} of {rows.path} holds {word!r} in {rows.place(row)}"
                ": leave the cell empty where the class is not known"
            )
        places.append(classes.get(bare, np.nan))
    labels: Array = np.array([*places, np.nan])[codes]
    return labels


def _all_classes(rows: Rows, columns: Columns) -> Columns:
    """The columns with those that a pattern of probabilities stands for."""
    names: list[str] = []
    for name in columns.probabilities:
        found = [name]
        if "*" in name and name not in rows.names:
            keys = {columns.target, columns.series, columns.time, columns.group}
            found = [other for other in fnmatch.filter(rows.names, name) if other not in keys]
            if len(found) < 2:
                raise DataError(
                    f"{option('probabilities')} {name!r} stands for a column of each of two "
                    f"classes or more, and {rows.path} has {found or 'none'}; its columns are "
                    f"{', '.join(map(repr, rows.names[:15]))}"
                )
        names += found
    return replace(columns, probabilities=tuple(names))


# The time


def timed(rows: Rows, columns: Columns) -> tuple[Columns, list[str]]:
    """The columns with the only one of dates as the time, if none is named; and notes."""
    columns = _all_classes(rows, columns)
    if columns.time is not None:
        return columns, []
    dates = [name for name in rows.dates if name not in (columns.target, columns.known)]
    if len(dates) > 1:
        some = " or ".join(map(repr, dates))
        return columns, [
            f"the rows are read in the order of the file; {option('time')} could be {some}"
        ]
    if not dates:
        odd = [f"{name!r} {why}" for name in rows.names if (why := rows.no_dates(name))]
        return columns, [
            "no time was named or found: the rows are read in the order of the file", *odd
        ]  # fmt: skip
    hour = _hour_of(rows, columns, dates[0])
    if hour is None:
        return replace(columns, time=dates[0]), []
    note = f"{dates[0]!r} and {hour!r} are read as one time"
    return replace(columns, time=f"{dates[0]},{hour}"), [note]


def _hour_of(rows: Rows, columns: Columns, date: str) -> str | None:
    """The column of hours beside one of days, where the two tell the rows of a series apart."""
    days = rows.times(date, "time")
    if len(np.unique(days)) == len(days) or (days != days.astype("datetime64[D]")).any():
        return None
    taken = {columns.target, columns.group, columns.known, columns.horizon, date}
    taken |= {*several(columns.series or ()), *columns.form.values()}
    for name in rows.names:
        if name in taken or not _HOUR.search(name):
            continue
        try:
            clock = rows.clock(name)
        except DataError:
            continue
        if isinstance(clock, np.ndarray) and len(np.unique(clock)) > 2:
            moments = (days + clock.astype("timedelta64[us]")).tolist()
            keys = moments if columns.series is None else rows.series(columns.series).tolist()
            if len(set(zip(moments, keys, strict=True))) == len(moments):
                return name
    return None


# The tape


def read_tape(rows: Rows, columns: Columns) -> tuple[Tape, list[str]]:
    """The tape of a file in the order of time, and notes."""
    steps = _horizons(rows, columns.patterns) if columns.patterns else [None]

    def of(name: str, read: Any) -> Array:
        """A column, or those of all horizons one behind the other."""
        names = [name if step is None else name.replace("*", str(step)) for step in steps]
        return np.concatenate([np.asarray(read(each)) for each in names])

    prediction = {}
    for name, column in columns.form.items():
        prediction[name] = of(column, lambda each: rows.numbers(each, name))  # noqa: B023
        gaps = np.isnan(prediction[name])
        if gaps.any():
            raise DataError(
                f"every row needs a prediction, and {column!r} of {rows.path} has none in "
                f"{rows.place(int(gaps.argmax()) % len(rows))}: leave such rows out"
            )
    y = labels_of(rows, columns) if columns.probabilities else of(columns.target, rows.labels)
    if np.isnan(y).all():
        raise DataError(
            f"{option('target')} needs labels, and {columns.target!r} of {rows.path} is empty in "
            f"all {len(rows):,} rows"
        )
    crossed = _sort_crossed(columns, prediction)
    tape, notes = tape_of(rows, prediction, y, columns, [step for step in steps if step])
    tape = tape if columns.period is None else phased(tape)
    known = {name: rows.numbers(name, "features")[tape.places] for name in columns.features}
    return tape.with_extras({**tape.extras, **known}) if known else tape, [*crossed, *notes]


def _horizons(rows: Rows, patterns: Mapping[str, str]) -> list[int]:
    """The horizons of a file with several in one row: the numbers in place of * in its names."""
    found: dict[str, set[int]] = {}
    for role, pattern in patterns.items():
        sign = re.compile(re.escape(pattern).replace(r"\*", r"(\d+)"))
        found[role] = {int(m.group(1)) for name in rows.names if (m := sign.fullmatch(name))}
        named = {pattern.replace("*", str(number)) for number in found[role]}
        if not found[role] or not named <= set(rows.names):
            raise DataError(
                f"{option(role)} {pattern!r} stands for columns with the horizon in place of *, "
                f"such as {pattern.replace('*', '1')!r}, and {rows.path} has none; its columns are "
                f"{', '.join(map(repr, rows.names[:15]))}"
            )
    shared = set.intersection(*found.values())
    for role, numbers in found.items():
        if numbers != shared:
            alone = patterns[role].replace("*", str(min(numbers - shared)))
            raise DataError(f"{rows.path} has {alone!r} and no other end of that horizon")
    if min(shared) < 1:
        raise DataError(f"a horizon is a whole number from 1, got {min(shared)} in {rows.path}")
    return sorted(shared)


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
    doubt = ": are the two the wrong way round?" if 2 * crossed > len(lower) else ""
    return [
        f"{rows} had crossed ends, {columns.lower!r} above {columns.upper!r}; they were sorted"
        f"{doubt}"
    ]


def tape_of(
    rows: Rows,
    prediction: dict[str, Array],
    y: Array,
    columns: Columns,
    horizons: Sequence[int] = (),
) -> tuple[Tape, list[str]]:
    """A tape with the keys of these names in a file, sorted by time, and notes.

    Of several horizons in one row the columns come one behind the other.
    """
    keys: dict[str, Any] = {}
    if columns.series is not None:
        keys["series"] = rows.series(columns.series)
    if columns.group is not None:
        keys["group"] = rows.keys(columns.group, "group")
    time, notes = columns.time, []
    if rows.file.encoding == "cp1252":
        notes.append("the file is not UTF-8 and is read as Windows-1252 text")
    if rows.commas:
        notes.append("numbers are read with decimal commas: 1,5 is one and a half")
    if time is not None:
        keys["time"] = rows.times(time, "time")
        doubt = rows.doubt(time)
        notes += [] if doubt is None else [f"{time!r} is read {doubt}"]
    if columns.horizon is not None:
        keys["horizon"] = rows.numbers(columns.horizon, "horizon")
    if columns.known is not None:
        keys["known"] = rows.times(columns.known, "known", gaps=True)
        if time is None and keys["known"].dtype.kind == "M":
            dates = " or ".join(repr(name) for name in rows.dates if name != columns.known)
            raise InputError(
                f"{option('known')} {columns.known!r} holds dates, to be compared with when each "
                f"forecast was made: name that column by {option('time')}"
                f"{dates and f', such as {dates}'}"
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
        if "series" not in keys and not horizons:
            notes.append(f"the rows are not in the order of {time!r}; they were sorted by it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TapeNotice)  # it is noted below
        late: dict[str, Any] = {"delay": columns.delay} if columns.delay else {}
        tape = Tape.from_arrays(prediction, y, **keys, **late, places=places)
        every = _issued_every(tape)
        if every > 1:
            late["delay"] = -(-np.asarray(tape.horizon) // every) - 1
            tape = Tape.from_arrays(prediction, y, **keys, **late, places=places)
    notes.append(label_note(tape, columns, every))
    if columns.known and not _any_late(tape):
        notes.append(
            "no label is later than the next row of its series: is "
            f"{columns.time or 'the number of the row'!r} when a forecast was made, or the time it "
            "is for?"
        )
    if tape.notice is not None:
        notes += [tape.notice, *_apart(rows, columns, tape)]
    if columns.groups:
        named = {name: rows.keys(name, "groups") for name in columns.groups}
        tape = tape.with_extras({name: values[tape.places] for name, values in named.items()})
    return tape, notes


def rows_of(tape: Tape, family: Any) -> tuple[list[Any], list[Any]]:
    """The predictions and labels of a tape, as a live stream is given them."""
    columns = [np.asarray(column).tolist() for column in tape.prediction]
    predictions = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    labels = tape.y.tolist()
    if isinstance(family, Taped):
        labels = [y if y != y else family.taped(y) for y in labels]
    return predictions, labels


def _goes_back(keys: dict[str, Any]) -> bool:
    """Whether time goes back in a file, or within a series where each of them is in one piece.

    Rows that lie series by series stay so: sorting millions of them would only scatter them.
    """
    falls = keys["time"][1:] < keys["time"][:-1]
    if "series" not in keys or "horizon" in keys or not falls.any():
        return bool(falls.any())
    new = np.asarray(keys["series"][1:] != keys["series"][:-1])
    heads = keys["series"][np.flatnonzero(np.concatenate(([True], new)))]
    return len(set(heads.tolist())) < len(heads) or bool((falls & ~new).any())


def _apart(rows: Rows, columns: Columns, tape: Tape) -> list[str]:
    """Which column would tell rows of one time apart: the series that each belongs to."""
    if columns.series or columns.horizon or tape.time is None:
        return []
    taken = {columns.target, columns.group, columns.known, *rows.parts(columns.time or "")}
    _, moments = np.unique(tape.time, return_inverse=True)
    for name in rows.names:
        if name in taken or name in rows.dates or not rows.is_text(name):
            continue
        words, codes = rows.words(name, "series")
        pairs = np.unique(moments * (len(words) + 1) + codes[tape.places])
        if 2 <= len(words) <= len(tape) // 2 and len(pairs) == len(tape):
            return [f"if {name!r} tells series apart, name it by {option('series')}"]
    return []


# When labels become known


def label_note(tape: Tape, columns: Columns, every: int = 1) -> str:
    """When labels are taken to be known, in words; forecasts are made `every` so many steps."""
    if columns.known:
        made = columns.time or "the number of the row"
        return (
            f"each label is used from its time in {columns.known!r} on; each forecast is assumed "
            f"to be made at its time in {made!r}"
        )
    if columns.delay:
        return f"assuming that labels are known {columns.delay:,} rows late, within each series"
    if tape.horizon is None:
        return (
            "assuming that each label is known before the next row of its series; if labels arrive "
            f"later, give {option('delay')}, {option('horizon')} or {option('known')}"
        )
    steps = np.unique(tape.horizon).tolist()
    listed = ", ".join(map(str, steps[:10])) + (", …" if len(steps) > 10 else "")
    late = "h − 1 rows late"
    if every > 1:
        late = f"h steps later, and that forecasts are made every {every} steps"
    return (
        f"each horizon ({listed}) is calibrated separately, assuming that a label h steps ahead is "
        f"known {late}; if not, give {option('known')}, the time at which each label was known"
    )


def _any_late(tape: Tape) -> bool:
    """Whether the label of any row is known after the next row of its series."""
    schedule, offsets = tape.schedule, tape.segments.offsets
    if schedule is None:
        return False
    if not len(schedule.upto):
        return bool(schedule.delays.any())
    within = np.arange(len(tape)) - np.repeat(offsets[:-1], np.diff(offsets))
    return bool((schedule.upto < within).any())


def known_part(tape: Tape, counts: Array) -> Tape:
    """The first rows of each stream, with the labels that are known when the next row comes."""
    past, _ = tape.split(counts)
    schedule, offsets = tape.schedule, tape.segments.offsets
    if schedule is None:
        return past
    early, unknown = np.zeros((2, len(tape)), dtype=bool)
    for stream, count_ in enumerate(counts.tolist()):
        first = int(offsets[stream])
        late = schedule.answers(stream, offsets)[schedule.due(stream, offsets, count_) :]
        unknown[first + np.array(late, dtype=np.int64)] = True
        early[first : first + count_] = True
    early, unknown = tape.by_row(early), tape.by_row(unknown)
    return past.hidden(unknown[early])


# Steps of time and seasons


def _issued_every(tape: Tape) -> int:
    """Of forecasts for several horizons: how many steps of time lie between two of one horizon.

    A step is the usual one between times of the file: one hour for forecasts that are made once a
    day for each hour, if the time is that of the label.
    """
    if tape.horizon is None or tape.known is not None or tape.time is None:
        return 1
    moments = _moments(tape.time)
    steps = np.diff(np.unique(moments))
    usual = float(np.median(steps)) if len(steps) else 0.0
    return max(round(_spacing(tape, moments) / usual), 1) if usual > 0.0 else 1


def phased(tape: Tape) -> Tape:
    """The tape with the number of each row's step of time as its phase, so that gaps count.

    A tape without times stays as it is: its rows are counted.
    """
    if tape.time is None or len(tape) < 2:
        return tape
    columns = dict(zip(tape.names, map(np.asarray, tape.prediction), strict=True))
    return tape.with_prediction({**columns, "phase": _steps(tape)})


def season(tape: Tape) -> int:
    """The season of the errors of a tape in steps of time; 0 if they have none."""
    rows = _longest(tape)
    named = zip(tape.names, map(np.asarray, tape.prediction), strict=True)
    middle = np.mean([column[rows] for name, column in named if name != "phase"], axis=0)
    errors = tape.y[rows] - middle
    steps = np.arange(len(rows)) if tape.time is None else _steps(tape, rows)
    if steps[-1] >= 20 * len(rows):
        return 0  # the times have no step
    steps = steps.astype(np.int64)
    values = np.full(int(steps[-1]) + 1, np.nan)
    values[steps] = np.where(np.isfinite(errors), errors, np.nan)
    return find_period(values)


def _steps(tape: Tape, rows: Any = slice(None)) -> Array:
    """How many steps of time each of the rows is after the first; a step is the usual one."""
    moments = _moments(tape.time)
    some = moments[rows]
    return np.asarray(np.rint((some - some.min()) / _spacing(tape, moments)))


def _moments(time: Any) -> Array:
    """Times as numbers."""
    given = np.asarray(time)
    return given.astype("datetime64[us]").astype(np.int64) if given.dtype.kind == "M" else given


def _spacing(tape: Tape, moments: Array) -> float:
    """The usual distance in time of two rows of the longest stream, 1 if there is none."""
    gaps = np.diff(moments[_longest(tape)])
    gaps = gaps[gaps > 0]
    return float(np.median(gaps)) if len(gaps) else 1.0


def _longest(tape: Tape) -> Array:
    """The rows of the longest stream."""
    return tape.rows(tape.streams[int(np.diff(tape.segments.offsets).argmax())])
