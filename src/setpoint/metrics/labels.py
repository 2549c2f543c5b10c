"""Metrics of sets of labels: sizes, hits, false negatives and positives, share of classes, F1.

`masks` says which classes each set holds, one row a step and one column a class. `labels` is the
class of each step as its place among the columns, NaN where it was not observed; or, where a step
may have several labels, a matrix of 0 and 1 like `masks`, a row of NaN where not observed. A class
beyond the last column is one that the sets do not know, and is in none of them.

Each function gives one number a step, NaN where there is nothing to judge: `metrics.risk` is the
mean over the others. They are the losses of the same name, so that `risk(false_negatives(…))` is
what a controller of `losses.FalseNegatives` holds.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setpoint.errors import InputError
from setpoint.metrics.columns import Flags, Floats, column, refuse

__all__ = [
    "f1", "false_negatives", "false_positives", "labels_covered", "set_sizes", "size_share",
]  # fmt: skip


def set_sizes(masks: ArrayLike) -> NDArray[np.int64]:
    """How many classes each set holds.

    >>> set_sizes([[1, 1, 0], [0, 0, 0]])
    array([2, 0])
    """
    found: NDArray[np.int64] = np.count_nonzero(_masks(masks), axis=1)
    return found


def size_share(masks: ArrayLike) -> Floats:
    """The share of all classes that each set holds; NaN where there is no class.

    >>> size_share([[1, 1, 0, 0], [0, 0, 0, 0]])
    array([0.5, 0. ])
    """
    held = _masks(masks)
    return _divided(np.count_nonzero(held, axis=1), np.full(len(held), held.shape[1]))


def labels_covered(masks: ArrayLike, labels: ArrayLike) -> Floats:
    """1.0 where a set holds every label of its step, 0.0 where not, NaN where not observed.

    >>> labels_covered([[1, 1, 0], [0, 1, 0], [1, 0, 0]], [1, 2, float("nan")])
    array([ 1.,  0., nan])
    >>> labels_covered([[1, 1, 0], [0, 1, 0]], [[1, 1, 0], [1, 1, 0]])
    array([1., 0.])
    """
    found = _judged(masks, labels)
    return np.where(found.seen, found.hits == found.positives, np.nan)


def false_negatives(masks: ArrayLike, labels: ArrayLike) -> Floats:
    """The share of a step's labels that its set leaves out; NaN where it has none.

    >>> false_negatives([[1, 0, 1], [1, 0, 0]], [[1, 1, 0], [0, 0, 0]])
    array([0.5, nan])
    """
    found = _judged(masks, labels)
    return 1.0 - _divided(found.hits, np.where(found.seen, found.positives, 0))


def false_positives(masks: ArrayLike, labels: ArrayLike) -> Floats:
    """The share of the classes that are no label of a step and yet in its set; NaN without any.

    >>> false_positives([[1, 0, 1], [1, 1, 1]], [[1, 0, 0], [1, 1, 1]])
    array([0.5, nan])
    """
    found = _judged(masks, labels)
    wrong = found.classes - found.known
    return _divided(found.sizes - found.hits, np.where(found.seen, wrong, 0))


def f1(masks: ArrayLike, labels: ArrayLike) -> Floats:
    """The harmonic mean of precision and recall of each set; NaN where set and labels are empty.

    >>> f1([[1, 1, 0], [1, 0, 0]], [[1, 0, 0], [0, 1, 0]])
    array([0.66666667, 0.        ])
    """
    found = _judged(masks, labels)
    total = found.sizes + found.positives
    return _divided(2.0 * found.hits, np.where(found.seen, total, 0))


class _Judged(NamedTuple):
    """Counts of each step: classes in its set, its labels, those it knows, those in the set."""

    seen: Flags
    sizes: NDArray[np.int64]
    positives: NDArray[np.int64]
    known: NDArray[np.int64]
    hits: NDArray[np.int64]
    classes: int


def _judged(masks: ArrayLike, labels: ArrayLike) -> _Judged:
    held = _masks(masks)
    steps, classes = held.shape
    if np.ndim(labels) == 2:
        truth, seen = _several(np.asarray(labels), held.shape)
        known = positives = np.count_nonzero(truth, axis=1)
    else:
        place = column(labels, "labels", steps)
        seen = ~np.isnan(place)
        wrong = seen & ~((place >= 0.0) & (place == np.floor(place)) & np.isfinite(place))
        refuse(wrong, place, "labels", "the number of a class from 0, or NaN where not observed")
        truth = place[:, None] == np.arange(classes)
        known, positives = np.count_nonzero(truth, axis=1), seen.astype(np.int64)
    hits = np.count_nonzero(truth & held, axis=1)
    return _Judged(seen, np.count_nonzero(held, axis=1), positives, known, hits, classes)


def _several(labels: NDArray[Any], shape: tuple[int, ...]) -> tuple[Flags, Flags]:
    """Which labels each step has, and which steps were observed."""
    if labels.shape != shape:
        raise InputError(
            f"labels must have the shape {shape} of masks where a step may have several, "
            f"got {labels.shape}"
        )
    numbers = _numbers(labels, "labels")
    missing = np.isnan(numbers).all(axis=1) & (shape[1] > 0)
    wrong = ~((numbers == 0.0) | (numbers == 1.0)).all(axis=1) & ~missing
    if wrong.any():
        step = int(np.argmax(wrong))
        raise InputError(
            "labels must be 0 or 1 for each class, or NaN for all where not observed, "
            f"got {numbers[step].tolist()} at step {step}"
        )
    return np.asarray(numbers == 1.0), np.asarray(~missing)


def _masks(masks: ArrayLike) -> Flags:
    held = np.asarray(masks)
    if held.ndim != 2:
        raise InputError(
            f"masks must have one row a step and one column a class, got shape {held.shape}"
        )
    if held.dtype == np.bool_:
        return held
    numbers = _numbers(held, "masks")
    wrong = ~((numbers == 0.0) | (numbers == 1.0))
    if wrong.any():
        raise InputError(f"masks must hold 0 and 1, got {float(numbers[wrong][0])}")
    return np.asarray(numbers == 1.0)


def _numbers(values: NDArray[Any], name: str) -> Floats:
    if values.size and values.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold numbers or booleans, got values of type {values.dtype}")
    return values.astype(np.float64)


def _divided(top: ArrayLike, bottom: NDArray[np.int64]) -> Floats:
    """A quotient a step, NaN where there is nothing to divide by."""
    counts = np.asarray(top, dtype=np.float64)
    found = np.full(len(counts), np.nan)
    np.divide(counts, bottom, out=found, where=bottom > 0)
    return found
