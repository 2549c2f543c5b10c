"""Calendar fields of times: the ones the paper adds to every tabular stream."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["calendar", "weekdays"]

_FIELDS = ("day", "month", "year", "hour", "minute", "day_of_week")


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
