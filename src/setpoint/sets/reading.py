"""What families are given, checked once: numbers, probabilities, names of classes, labels."""

from collections.abc import Mapping
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt

from setpoint._check import finite, is_missing, number
from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.predictions import Probabilities

__all__ = [
    "Array",
    "Names",
    "Place",
    "Scores",
    "by_name",
    "describe",
    "finite_label",
    "floats",
    "kept_classes",
    "one_label",
    "places_of",
    "probabilities_of",
    "several_labels",
    "taped_label",
]

Array = npt.NDArray[np.float64]
Names = dict[Any, int]
Scores = tuple[Any, ...]
"""The critical value of every class; the place of each label, None where the labels are the
numbers from 0; the critical value of any label that the prediction does not name; and, in a
randomised family, the chance of the prediction."""


def finite_label(y: Any, support: tuple[float, float]) -> float:
    """The label as a float, finite and within the support."""
    label = y if type(y) is float else number(y, "a label", LabelError)
    if label - label != 0.0:
        raise LabelError(
            f'a label must be finite, got {label}; Stream(…, missing="skip") skips NaN'
        )
    if not support[0] <= label <= support[1]:
        raise LabelError(f"a label must lie in the support {list(support)}, got {label}")
    return label


def by_name(prediction: Any, names: tuple[str, ...], parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The numbers of a prediction that has names of its own: a dict, or the row of a frame."""
    if isinstance(prediction, bytes | bytearray | set | frozenset):
        raise PredictionError(f"a prediction must be numbers in order, got {prediction!r}")
    if not hasattr(prediction, "keys"):
        return parts
    keys = list(prediction.keys())
    if set(keys) == set(names):
        return tuple(prediction[name] for name in names)
    if isinstance(prediction, Mapping) or any(isinstance(key, str) for key in keys):
        raise PredictionError(f"a prediction with names must have {', '.join(names)}, got {keys}")
    return parts


def describe(prediction: Any) -> str:
    """A prediction in a message."""
    shape = getattr(prediction, "shape", None)
    return repr(prediction) if shape is None else f"an array of shape {tuple(shape)}"


def floats(values: Any, what: str) -> npt.NDArray[np.float64]:
    """Numbers as an array that nobody else holds; text is refused even if it spells a number."""
    try:
        array = np.array(np.asarray(values.detach().cpu() if hasattr(values, "detach") else values))
        if array.dtype.kind == "O" and array.ndim == 1:
            array = np.array([number(value, what, PredictionError) for value in array])
        if array.dtype.kind not in "biuf" and array.size:
            raise TypeError
    except (TypeError, ValueError):
        raise PredictionError(f"{what} must be numbers, got {values!r}") from None
    return array.astype(np.float64, copy=False)


_TOLERANCE = 0.01
"""How far from 1 the sum of the probabilities may be: models in half precision are not exact."""


class Place(int):
    """A label told by its place among `among` classes: an entry of an array of 0 and 1."""

    among: int


def taped_label(y: float, classes: Any) -> Any:
    """The label a tape has as the number of its class."""
    if y != int(y) or y < 0:
        raise LabelError(f"on a tape a label must be the number of its class from 0, got {y}")
    named = isinstance(classes, tuple)
    if named and y >= len(classes):
        raise LabelError(f"on a tape a label must be below {len(classes)} classes, got {y}")
    return classes[int(y)] if named else int(y)


def kept_classes(classes: Any) -> tuple[Any, ...] | None:
    """The option `classes` as it is kept."""
    if classes is None:
        return None
    unordered = isinstance(classes, str | set | frozenset)
    if unordered or not hasattr(classes, "__len__"):
        raise InputError(f"classes must be the names of the classes in order, got {classes!r}")
    names = tuple([plain(name) for name in classes])
    places_of(names)
    return names


def places_of(classes: Any) -> Names | None:
    """The place of each class."""
    if classes is None:
        return None
    try:
        names = {name: place for place, name in enumerate(classes)}
    except TypeError:
        raise InputError(f"the names of classes must be hashable, got {classes!r}") from None
    if len(names) != len(classes):
        raise InputError(f"the names of classes must differ, got {tuple(classes)!r}")
    return names


def probabilities_of(
    prediction: Any, known: Names | None, count: int | None, *, sums_to_one: bool
) -> tuple[Array, Names | None, float | None]:
    """The probabilities as an array of their own, the places of their labels, and a chance."""
    values, named, u = prediction, known, None
    if type(prediction) is np.ndarray:
        pass
    elif isinstance(prediction, Probabilities):
        values, u = prediction.p, prediction.u
        named = known if prediction.classes is None else places_of(kept_classes(prediction.classes))
        if u is not None and not 0.0 <= finite(u, "u", PredictionError) <= 1.0:
            raise PredictionError(f"the chance u of a prediction must lie in [0, 1], got {u}")
    elif isinstance(prediction, Mapping) or hasattr(prediction, "keys"):
        by_label = {plain(name): value for name, value in prediction.items()}
        first = [name for name in known or () if name in by_label]
        named = places_of((*first, *(name for name in by_label if name not in (known or ()))))
        values = list(map(by_label.__getitem__, named or ()))
    p = floats(values, "probabilities")
    if p.ndim != 1:
        raise PredictionError(
            f"a prediction must be one row of probabilities, got an array of shape {p.shape}"
        )
    count = count if named is None else len(named)
    if count is not None and count != len(p):
        raise PredictionError(f"a prediction must name {count} classes, got {len(p)} numbers")
    if len(p):
        total = float(np.add.reduce(p)) if np.minimum.reduce(p) >= 0.0 else nan
        if not (total <= 1.0 or np.maximum.reduce(p) <= 1.0) or total != total:
            np.minimum(p, 1.0, out=p, where=p <= 1.0 + 1e-6)  # single precision rounds above 1
            outside = p[~((p >= 0.0) & (p <= 1.0))]
            if len(outside):
                raise PredictionError(f"probabilities must lie in [0, 1], got {outside[0]}")
        if sums_to_one and abs(total - 1.0) > _TOLERANCE:
            raise PredictionError(f"the probabilities of the classes must sum to 1, got {total:g}")
    return p, named, u


def plain(value: Any) -> Any:
    """A numpy or torch scalar, or an array of one, as the Python value it is."""
    shape = getattr(value, "shape", None)
    return value if shape is None or any(length != 1 for length in shape) else value.item()


def one_label(y: Any) -> Any:
    """One label as a plain value."""
    if type(y) is int or type(y) is str:
        return y
    label = plain(y)
    if is_missing(label):
        raise LabelError(
            f'a label must not be missing, got {y!r}; Stream(…, missing="skip") skips such labels'
        )
    if isinstance(label, float) and label.is_integer():
        return int(label)
    try:
        hash(label)
    except TypeError:
        label = ()
    if isinstance(label, tuple):
        raise LabelError(f"a label must be one class, got {y!r}; for several: sets.Multilabel")
    return label


def several_labels(y: Any, classes: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """Several labels as a tuple of plain values."""
    if hasattr(y, "keys"):
        truths = {plain(name): true for name, true in y.items()}
        # The places of a data frame's row are not names, if the names are known to be others.
        placed = list(truths) == list(range(len(truths)))
        if classes is None or not placed or all(name in classes for name in truths):
            return tuple([one_label(name) for name, true in truths.items() if true])
        y = np.asarray(list(truths.values()))
    listed = isinstance(y, list | tuple) and len(y) > 0
    if hasattr(y, "dtype") or (listed and all(isinstance(entry, bool | np.bool_) for entry in y)):
        mask = np.asarray(y)
        if mask.ndim != 1 or not np.isin(mask, (0, 1)).all():
            raise LabelError(f"an array of labels must hold 0 and 1 for each class, got {y!r}")
        if classes is not None and len(mask) != len(classes):
            raise LabelError(f"got {len(mask)} entries for {len(classes)} classes")
        places = np.flatnonzero(mask).tolist()
        if classes is not None:
            return tuple([classes[place] for place in places])
        true_places = tuple([Place(place) for place in places])
        for place in true_places:
            place.among = len(mask)
        return true_places
    if isinstance(y, str | bytes) or not hasattr(y, "__iter__"):
        raise LabelError(f"y must be a collection of labels, or an array of 0 and 1, got {y!r}")
    labels = tuple([one_label(entry) for entry in y])
    looks_like_bits = len(labels) == len(classes or ()) and set(labels) <= {0, 1}
    if classes is not None and looks_like_bits and not any(entry in classes for entry in labels):
        raise LabelError(
            f"y must hold some of the names {classes}, or 0 and 1 in an array, got {y!r}"
        )
    if len(set(labels)) != len(labels):
        raise LabelError(f"labels must not repeat, got {y!r}; 0 and 1 for each class: an array")
    return labels
