"""Which column of a file is what, and the tape of them."""

import fnmatch
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, count, takewhile
from typing import Any

import numpy as np

from setpoint import sets
from setpoint._check import option
from setpoint.errors import DataError, InputError
from setpoint.jobs import times
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
    words = {word.strip() for word in rows.words(columns.target, "target")[0]}
    columns_of_signs = takewhile(lambda signs: len(set(signs)) == 1, zip(*names, strict=False))
    prefix = "" if words & set(names) else "".join(signs[0] for signs in columns_of_signs)
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
        return columns, (
            f"the rows are taken in the order of the file; {option('time')} takes {some}",
        )
    if dates:
        hour = _hour_of(rows, columns, dates[0])
        if hour is None:
            return replace(columns, time=dates[0]), ()
        note = f"{dates[0]!r} and {hour!r} are read as one time"
        return replace(columns, time=f"{dates[0]},{hour}"), (note,)
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
            keys = {columns.target, columns.series, columns.time, columns.group}
            found = [other for other in fnmatch.filter(rows.names, name) if other not in keys]
            if len(found) < 2:
                raise DataError(
                    f"{option('probabilities')} {name!r} stands for a column of each of two "
                    "classes or more, "
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
        name: times.several([rows.numbers(at(column, h), name) for h in steps])
        for name, column in columns.form.items()
    }
    for name, values in prediction.items():
        gaps = np.isnan(values)
        if gaps.any():
            raise DataError(
                f"every row needs a prediction, and {columns.form[name]!r} of {rows.path} "
                f"has none in {rows.place(int(gaps.argmax()) % len(rows))}: leave such rows out"
            )
    y = (
        labels_of(rows, columns)
        if columns.probabilities
        else times.several([rows.labels(at(columns.target, h)) for h in steps])
    )
    if np.isnan(y).all():
        raise DataError(
            f"{option('target')} needs labels, and {columns.target!r} of {rows.path} is empty in "
            "all "
            f"{len(rows):,} rows"
        )
    crossed = _sort_crossed(columns, prediction)
    ahead = [step for step in steps if step is not None]
    tape, notes = tape_of(rows, prediction, y, columns, ahead)
    tape = tape if columns.period in (None, "auto") else times.phased(tape)
    if columns.features:
        known = {name: rows.numbers(name, "features") for name in columns.features}
        of_rows = {name: values[tape.places] for name, values in known.items()}
        tape = tape.with_extras({**tape.extras, **of_rows})
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
) -> tuple[Tape, tuple[str, ...]]:
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
        if doubt is not None:
            notes.append(f"{time!r} is read {doubt}")
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
            notes.append(f"the rows are not in the order of {time!r}; they are taken in it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TapeNotice)  # it is noted below
        late: dict[str, Any] = {"delay": columns.delay} if columns.delay else {}
        tape = Tape.from_arrays(prediction, y, **keys, **late, places=places)
        every = times.issued_every(tape)
        if every > 1:
            late["delay"] = -(-np.asarray(tape.horizon) // every) - 1
            tape = Tape.from_arrays(prediction, y, **keys, **late, places=places)
    notes += times.label_notes(tape, columns, every)
    if tape.notice is not None:
        notes += [tape.notice, *_apart(rows, columns, tape)]
    if columns.groups:
        named = {name: rows.keys(name, "groups") for name in columns.groups}
        tape = tape.with_extras({name: values[tape.places] for name, values in named.items()})
    return tape, tuple(notes)


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
            moments = days + clock.astype("timedelta64[us]")
            keys = [] if columns.series is None else rows.series(columns.series).tolist()
            rows_of = [*zip(moments.tolist(), keys, strict=True)] if keys else moments.tolist()
            if len(set(rows_of)) == len(rows_of):
                return name
    return None


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
