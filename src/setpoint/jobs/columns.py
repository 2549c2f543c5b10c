"""Which column of a file is what: the prediction, the label, and the keys of a row."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np

from setpoint import sets
from setpoint.errors import DataError, InputError
from setpoint.jobs import files
from setpoint.jobs.cells import MISSING
from setpoint.jobs.choosing import Goal

__all__ = ["Columns", "class_places", "unused"]

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
        When it was; rows are taken in the order of time. By default the only column of dates;
        without one, rows are taken in the order of the file.
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

    def option(self, name: str) -> str:
        """The option that names a column of the prediction."""
        if self.probabilities:
            return "--probabilities"
        return "--point" if name == "prediction" else f"--{name}"

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


def unused(names: Iterable[str], taken: Sequence[str], prefixes: Sequence[str]) -> dict[str, str]:
    """What to call new columns: all with the first prefix that makes none of them a taken name.

    >>> unused(["lower", "upper"], ["y", "lower", "calibrated_upper"], ("", "calibrated_"))
    {'lower': 'calibrated_2_lower', 'upper': 'calibrated_2_upper'}
    """
    wanted = list(names)
    for prefix in chain(prefixes, (f"{prefixes[-1]}{number}_" for number in count(2))):
        made = {name: f"{prefix}{name}" for name in wanted}
        if not set(made.values()) & set(taken):
            break
    return made


def _prefix(names: Sequence[str]) -> str:
    """What all names begin with, up to the last sign that is no letter or digit."""
    first, last = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    return first[:same].rstrip("".join(filter(str.isalnum, first[:same])))


def _classes(names: Sequence[str]) -> tuple[Any, ...]:
    """The classes behind the names of columns: p_cat, p_dog are cat and dog."""
    bare = [name[len(_prefix(names)) :] for name in names]
    return tuple(int(name) if name.isdigit() and str(int(name)) == name else name for name in bare)


def class_places(rows: files.Rows, columns: Columns) -> Array:
    """The place of each row's class, NaN where there is none."""
    classes = {str(name): place for place, name in enumerate(_classes(columns.probabilities))}
    held = rows.column(columns.target, "--target").combine_chunks().dictionary_encode()
    places: list[float] = []
    for word in held.dictionary.to_pylist():
        text = "" if word is None else str(word).strip()
        bare = text[:-2] if text.endswith(".0") else text
        if bare not in classes and text not in MISSING:
            row = int((held.indices.to_numpy(zero_copy_only=False) == len(places)).argmax())
            raise DataError(
                f"--target must hold one of the classes {', '.join(classes)}, and "
                f"{columns.target!r} of {rows.path} holds {text!r} in {rows.place(row)}"
                ": leave the cell empty where the class is not known"
            )
        places.append(classes.get(bare, np.nan))
    codes = held.indices.fill_null(len(places)).to_numpy(zero_copy_only=False)
    found: Array = np.array([*places, np.nan])[codes]
    return found
