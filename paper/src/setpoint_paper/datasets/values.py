"""What a loader gives: rows in time order with a number, a class or a set of labels to predict."""

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import InputError

__all__ = ["Dataset", "LabelDataset", "calendar", "weekdays"]

Floats = NDArray[np.float64]
_Value = TypeVar("_Value", "Dataset", "LabelDataset")
_FIELDS = ("day", "month", "year", "hour", "minute", "day_of_week")
"""The calendar fields that the paper adds to every tabular stream."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dataset:
    """Features and a number to predict, one row a step, in the order of the source.

    A slice of it is a data set again: `data[:20_000]`.

    Parameters
    ----------
    name
        The name `load` knows it by.
    x
        Features, float64, rows × features; never NaN.
    y
        What is to be predicted, float64.
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

    Examples
    --------
    >>> from setpoint_paper.datasets import synthetic
    >>> data = synthetic(1_000)
    >>> data
    Dataset(synthetic: 1000 rows × 5 features, target Y)
    >>> data[:100].y.shape
    (100,)
    """

    name: str
    x: Floats
    y: Floats
    features: tuple[str, ...]
    target: str
    unit: str = ""
    time: NDArray[np.datetime64] | None = None
    group: NDArray[np.int64] | None = None
    note: str = ""

    def __post_init__(self) -> None:
        _check_rows(self, y_dimensions=1)

    @property
    def weekday(self) -> NDArray[np.int64]:
        """The day of the week of each row's time, Monday 0 to Sunday 6."""
        if self.time is None:
            raise InputError(f"the data set {self.name} has no times, so its rows have no weekday")
        return weekdays(self.time)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: slice) -> "Dataset":
        return _sliced(self, rows)

    def __repr__(self) -> str:
        unit = f" in {self.unit}" if self.unit else ""
        span = ""
        if self.time is not None and len(self.time):
            first, last = self.time[[0, -1]].astype("datetime64[D]")
            span = f", {first} to {last}"
        return f"Dataset({_size(self)}, target {self.target}{unit}{span}{_noted(self)})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LabelDataset:
    """Features and a class, or a set of labels, to predict, in the order of the source.

    Parameters
    ----------
    name
        The name `load` knows it by.
    x
        Features, float64, rows × features; never NaN.
    y
        The class of each row as its place in `classes`; or, rows × classes, which labels it has.
    features
        Names of the columns of x.
    classes
        Names of the classes, or of the labels.
    group
        The batch of each row where the source has batches, else None.
    note
        What a reader of results must know.
    """

    name: str
    x: Floats
    y: NDArray[Any]
    features: tuple[str, ...]
    classes: tuple[str, ...]
    group: NDArray[np.int64] | None = None
    note: str = ""

    def __post_init__(self) -> None:
        _check_rows(self, y_dimensions=1 + self.several)

    @property
    def several(self) -> bool:
        """Whether a row may have several labels."""
        return self.y.dtype == np.bool_

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: slice) -> "LabelDataset":
        return _sliced(self, rows)

    def __repr__(self) -> str:
        kind = "labels" if self.several else "classes"
        return f"LabelDataset({_size(self)}, {len(self.classes)} {kind}{_noted(self)})"


def _size(data: Dataset | LabelDataset) -> str:
    rows, wide = data.x.shape
    return f"{data.name}: {rows} rows × {wide} features"


def _noted(data: Dataset | LabelDataset) -> str:
    return f"; {data.note}" if data.note else ""


def _check_rows(data: Any, y_dimensions: int) -> None:
    """One error where arrays do not fit together or hold what no model can take."""
    if data.x.ndim != 2 or data.x.shape[1] != len(data.features):
        raise InputError(
            f"x must have one column for each of the {len(data.features)} features, "
            f"got shape {data.x.shape}"
        )
    if data.y.ndim != y_dimensions:
        raise InputError(f"y must have {y_dimensions} dimension(s), got shape {data.y.shape}")
    for name in ("y", "time", "group"):
        held = getattr(data, name, None)
        if held is not None and len(held) != len(data.x):
            raise InputError(f"{name} must have {len(data.x)} rows as x has, got {len(held)}")
    for name in ("x", "y"):
        held = getattr(data, name)
        if held.dtype.kind == "f" and not np.isfinite(held).all():
            row = int(np.argwhere(~np.isfinite(held))[0][0])
            raise InputError(f"{name} must be finite, got {held[row]} in row {row}")


def _sliced(data: _Value, rows: slice) -> _Value:
    if not isinstance(rows, slice):
        raise InputError(f"a data set is cut by a slice, such as data[:100], got {rows!r}")
    arrays = {
        each.name: getattr(data, each.name)[rows]
        for each in fields(data)
        if isinstance(getattr(data, each.name), np.ndarray)
    }
    return replace(data, **arrays)


def weekdays(time: NDArray[np.datetime64]) -> NDArray[np.int64]:
    """The day of the week of each time, Monday 0 to Sunday 6."""
    days = time.astype("datetime64[D]").astype(np.int64)
    return (days + 3) % 7  # 1970-01-01 was a Thursday


def calendar(
    time: NDArray[np.datetime64], without: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """The paper's calendar fields with their names, save those named in `without`."""
    year, month, day, hour, minute = (time.astype(f"datetime64[{unit}]") for unit in "YMDhm")
    fields = (
        (day - month).astype(np.int64) + 1,
        (month - year).astype(np.int64) + 1,
        year.astype(np.int64) + 1970,
        (hour - day).astype(np.int64),
        (minute - hour).astype(np.int64),
        weekdays(time),
    )
    kept = [pair for pair in zip(_FIELDS, fields, strict=True) if pair[0] not in without]
    names = tuple(name for name, _ in kept)
    return names, np.column_stack([field for _, field in kept]).astype(np.float64)
