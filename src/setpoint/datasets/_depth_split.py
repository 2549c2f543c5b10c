"""Ranges of frames: warm-up, validation and test, one after the other in time."""

from typing import NamedTuple

from setpoint._check import finite, whole
from setpoint.errors import InputError

__all__ = ["Split", "slice_of", "split"]


class Split(NamedTuple):
    """Three ranges of frames that follow one another in time."""

    warm_up: range
    validation: range
    test: range


def split(frames: int, *, warm_up: float = 0.4, validation: float = 0.2) -> Split:
    """The ranges for warm-up, validation and test: 40 %, 20 % and the rest, rounded down.

    >>> split(500)
    Split(warm_up=range(0, 200), validation=range(200, 300), test=range(300, 500))
    """
    whole(frames, "frames", 0)
    for name, share in (("warm_up", warm_up), ("validation", validation)):
        if finite(share, name) < 0:
            raise InputError(f"{name} must be at least 0, got {share}")
    if warm_up + validation > 1:
        raise InputError(
            f"warm_up and validation must be at most 1 together, got {warm_up} and {validation}"
        )
    # 0.1 + 0.2 is more than 0.3 in binary, and 0.29 · 100 less than 29: shares are decimal.
    first = int(frames * warm_up + 1e-9)
    second = int(frames * (warm_up + validation) + 1e-9)
    return Split(range(first), range(first, second), range(second, frames))


def slice_of(place: range) -> slice:
    """The slice that picks what a range of whole steps forward picks."""
    if place.step < 1 or place.start < 0:
        raise InputError(f"a range of frames must go forward from at least 0, got {place}")
    return slice(place.start, place.stop, place.step)
