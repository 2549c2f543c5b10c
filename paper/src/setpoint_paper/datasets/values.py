"""What a loader gives: rows in time order with a number, a class or a set of labels to predict."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import InputError

_FIELDS = ("day", "month", "year", "hour", "minute", "day_of_week")
"""The calendar fields that the paper adds to every tabular stream."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dataset:
    """Features and what is to be predicted, one row a step, in the order of the source.

    A slice of it is a data set again: `data[:20_000]`.

    Parameters
    ----------
    name
        The name `load` knows it by.
    x
        Features, float64, rows × features; never NaN.
    y
        A number in each row; or its class as a place in `classes`; or, rows × classes, which labels
        it has.
    features
        Names of the columns of x.
    target
        Name of y.
    unit
        Unit of y.
    time
        The time of the features of each row, datetime64[s], or None. In a set with a one-step
        shift, y belongs to the row after.
    group
        A whole number for each row where the source has groups, else None.
    note
        What a reader of results must know, such as that the set is a stand-in.
    classes
        Names of the classes, or of the labels; none where y is a number.

    Examples
    --------
    >>> from setpoint_paper.datasets import synthetic
    >>> synthetic(1_000)[:100].y.shape
    (100,)
    """

    name: str
    x: NDArray[np.float64]
    y: NDArray[Any]
    features: tuple[str, ...]
    target: str = ""
    unit: str = ""
    time: NDArray[np.datetime64] | None = None
    group: NDArray[np.int64] | None = None
    note: str = ""
    classes: tuple[str, ...] = ()

    @property
    def several(self) -> bool:
        """Whether a row may have several labels."""
        return self.y.dtype == np.bool_

    @property
    def weekday(self) -> NDArray[np.int64]:
        """The day of the week of each row's time, Monday 0 to Sunday 6."""
        if self.time is None:
            raise InputError(f"the data set {self.name} has no times, so its rows have no weekday")
        return weekdays(self.time)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: slice) -> "Dataset":
        if not isinstance(rows, slice):
            raise InputError(f"a data set is cut by a slice, such as data[:100], got {rows!r}")
        columns = {each.name: getattr(self, each.name) for each in fields(self)}
        cut: Any = {k: held[rows] for k, held in columns.items() if isinstance(held, np.ndarray)}
        return replace(self, **cut)


def weekdays(time: NDArray[np.datetime64]) -> NDArray[np.int64]:
    """The day of the week of each time, Monday 0 to Sunday 6."""
    days = time.astype("datetime64[D]").astype(np.int64)
    return (days + 3) % 7  # 1970-01-01 was a Thursday


def calendar(
    time: NDArray[np.datetime64], without: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """The paper's calendar fields with their names, save those named in `without`."""
    year, month, day, hour, minute = (time.astype(f"datetime64[{unit}]") for unit in "YMDhm")
    columns = (
        (day - month).astype(np.int64) + 1,
        (month - year).astype(np.int64) + 1,
        year.astype(np.int64) + 1970,
        (hour - day).astype(np.int64),
        (minute - hour).astype(np.int64),
        weekdays(time),
    )
    kept = [pair for pair in zip(_FIELDS, columns, strict=True) if pair[0] not in without]
    names = tuple(name for name, _ in kept)
    return names, np.column_stack([column for _, column in kept]).astype(np.float64)
