"""Arrays in and out of a fleet, in the one form for which a loop is compiled."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from setpoint.errors import InputError, PredictionError
from setpoint.sets.family import Arranges, Codes

Array = np.ndarray[Any, Any]
"""Any numpy array."""


class Intervals(NamedTuple):
    """The ends of many intervals; an empty one has lower = +inf and upper = −inf."""

    lower: Array
    upper: Array

    @property
    def lengths(self) -> Array:
        """upper − lower, 0 for an empty interval."""
        with np.errstate(invalid="ignore"):
            return np.where(self.lower < self.upper, self.upper - self.lower, 0.0)


def prediction_columns(
    prediction: Any, features: Mapping[str, Any] | None, sets: Any, streams: int, dimensions: int
) -> tuple[Array, ...]:
    """The columns of a prediction as a loop takes them: of one type, and not to be changed.

    The features of its rows are among them, or come apart by name.
    """
    wanted: tuple[str, ...] = sets.columns
    known: tuple[str, ...] = sets.features if isinstance(sets, Codes) else ()
    if features is not None and set(features) != set(known):
        names = ", ".join(known) or "none"
        raise PredictionError(f"the features are {names}, got {', '.join(map(str, features))}")
    shape = f"({streams:,},)" if dimensions == 1 else f"(steps, {streams:,})"
    form, listed = by_column(prediction, sets, dimensions, ends=features is not None)
    if listed is None:
        raise PredictionError(
            f"a prediction must be the arrays ({', '.join(wanted)}) of shape {shape}, in a "
            f"tuple, by name or as the last axis of one array, got {kind_of(prediction)}"
        )
    if features is not None:
        form, listed = (*form, *known), [*listed, *map(features.__getitem__, known)]
    categories = isinstance(sets, Codes) and sets.coded
    read = [
        np.asarray(column)
        if categories and name in categories
        else numbers(column, f"the column {name}", PredictionError)
        for name, column in zip(form, listed, strict=True)
    ]
    for name, column in zip(form, read, strict=True):
        if (
            column.ndim != dimensions
            or column.shape[-1] != streams
            or column.shape != read[0].shape
        ):
            raise PredictionError(f"the column {name} must have shape {shape}, got {column.shape}")
    values = [
        column for name, column in zip(form, read, strict=True) if name not in ("phase", *known)
    ]
    dtype = np.result_type(*values)
    if form[0] == "point":
        for row in read[0] if dimensions == 2 else read[:1]:
            if not np.isfinite(row).all():
                got = row[int((~np.isfinite(row)).argmax())]
                raise PredictionError(f"a point forecast must be finite, got {got}")
    if isinstance(sets, Codes) and isinstance(sets, Arranges):
        lower, upper, *rest = sets.arranged(form, read)
        return (*inputs((lower, upper), dtype), *inputs(rest, np.dtype(np.float64)))
    if form != wanted and isinstance(sets, Arranges):
        return inputs(sets.arranged(form, read), dtype)
    columns = inputs(read, dtype)
    return columns if len(columns) == len(wanted) else columns * len(wanted)


def by_column(
    prediction: Any, sets: Any, dimensions: int, *, ends: bool = False
) -> tuple[tuple[str, ...], list[Any] | None]:
    """The columns of a prediction and their names, ("point",) for a point forecast.

    `ends` says that its features come apart.
    """
    wanted: tuple[str, ...] = sets.columns
    forms = sets.forms if isinstance(sets, Arranges) else (wanted,)
    if ends:
        forms = tuple(form[: len(form) - len(sets.features)] for form in forms)
    # Without names a pair is the two ends, and else the family's own columns can be meant, the
    # last of which may be left out.
    unnamed = [form for form in forms if form in (wanted[: len(form)], ("lower", "upper"))]
    if isinstance(prediction, Mapping) or hasattr(prediction, "columns"):
        names = set(prediction if isinstance(prediction, Mapping) else prediction.columns)
        form = next((form for form in forms if set(form) <= names), ())
        return form, [prediction[name] for name in form] if form else None
    if isinstance(prediction, list) and not any(map(np.ndim, prediction)):
        prediction = np.asarray(prediction)  # plain numbers, one for each stream
    if isinstance(prediction, tuple | list):
        form = next((form for form in unnamed if len(form) == len(prediction)), ())
        return form, list(prediction) if form else None
    if getattr(prediction, "ndim", None) == dimensions:
        point = wanted[:2] == ("lower", "upper")
        return ("point",), [prediction] if point else None
    if getattr(prediction, "ndim", None) == dimensions + 1:
        array = np.asarray(prediction)
        form = next((form for form in unnamed if len(form) == array.shape[-1]), ())
        return form, list(np.moveaxis(array, -1, 0)) if form else None
    return (), None


def kind_of(value: Any) -> str:
    """What a value is, in a few words."""
    shape = getattr(value, "shape", None)
    if isinstance(value, Mapping) or hasattr(value, "columns"):
        names = list(value) if isinstance(value, Mapping) else list(value.columns)
        return f"a {type(value).__name__} of {', '.join(map(str, names))}"
    if shape is not None:
        return f"an array of shape {tuple(shape)}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return repr(value)


def numbers(values: Any, name: str, error: type[InputError]) -> Array:
    """An array of floats; float32 stays as it is."""
    try:
        array = np.asarray(values)
    except ValueError as wrong:  # a list of lists that are not equally long
        raise error(f"{name} must be numbers: {wrong}") from None
    if array.dtype.kind not in "fiub":
        raise error(f"{name} must be numbers, got an array of {array.dtype}")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def fixed(array: Array) -> Array:
    """A view that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view


def inputs(arrays: Sequence[Array], dtype: np.dtype[Any]) -> tuple[Array, ...]:
    """The arrays in the one form for which a loop is compiled, copied only where they differ."""
    return tuple(fixed(np.require(array, dtype, ("C", "A"))) for array in arrays)
