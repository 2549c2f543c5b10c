"""Label sets in loops: probabilities as rows, and labels by their critical values.

A set of labels at λ holds every class whose critical value is at most λ. So loops need one number
of each row, the critical value of its label, and what is shown can be made of λ when it is asked
for.
"""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from setpoint._rules import classes_of, has_several
from setpoint.bulk.arrays import kind_of, numbers
from setpoint.bulk.layout import Layout, layout_of
from setpoint.controller import Controller
from setpoint.correction import Labels
from setpoint.correction.labels import OWN
from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.plan import plan
from setpoint.sets import LabelSet
from setpoint.sets.family import never_empty
from setpoint.state import State
from setpoint.tape import Tape

Array = np.ndarray[Any, Any]
_MOST = float(np.finfo(np.float64).max)


class LabelSets(Sequence[Any]):
    """Sets of labels, one for each prediction, each made when it is asked for.

    Parameters
    ----------
    family
        The family they are of.
    values
        The critical value of each class and, last, that of any other label, along the last axis.
    lam
        λ of each set.
    """

    __slots__ = ("family", "lam", "values")

    def __init__(self, family: Any, values: Array, lam: Array) -> None:
        self.family, self.values, self.lam = family, values, lam

    def __len__(self) -> int:
        return len(self.lam)

    def __getitem__(self, place: Any) -> Any:
        values, lam = self.values[place], self.lam[place]
        if np.ndim(lam):
            return LabelSets(self.family, values, lam)
        scores = values[:-1], names_in(self.family), float(values[-1])
        return self.family.at(scores, float(lam))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(map(LabelSet.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes, in the order of the probabilities."""
        names = names_in(self.family)
        return tuple(range(self.values.shape[-1] - 1) if names is None else names)

    @property
    def mask(self) -> Array:
        """Which classes are in which set, with the classes along the last axis."""
        values, lam = self.values[..., :-1], self.lam[..., None]
        if never_empty(self.family) and values.shape[-1]:
            lam = np.maximum(lam, values.min(axis=-1, keepdims=True))
        mask: Array = np.asarray(values <= lam)
        return mask

    @property
    def sizes(self) -> Array:
        """How many classes are in each set."""
        sizes: Array = np.count_nonzero(self.mask, axis=-1)
        return sizes

    def __repr__(self) -> str:
        return f"<{len(self):,} label sets of {len(self.classes):,} classes>"


def names_in(family: Any) -> dict[Any, int] | None:
    """The places of the classes that a family names."""
    places: dict[Any, int] | None = family._places
    return places


def probabilities(
    controller: Controller, columns: Sequence[Any], name: Any = "row {}".format
) -> Array:
    """Columns of probabilities as rows, each of them sound."""
    p = np.empty((len(columns[0]), len(columns)))
    for place, column in enumerate(columns):
        p[:, place] = column
    return check_classes(controller, p, name)


def class_rows(controller: Controller, prediction: Any, shape: tuple[int, ...]) -> Array:
    """Probabilities with classes along the last axis: an array, or a column for each by name."""
    names = names_in(controller.sets)
    if isinstance(prediction, Mapping) or hasattr(prediction, "columns"):
        listed = list(prediction if isinstance(prediction, Mapping) else prediction.columns)
        if names is not None and set(names) != set(listed):
            raise PredictionError(f"the classes are {list(names)}, got columns {listed}")
        prediction = np.stack([np.asarray(prediction[name]) for name in names or listed], axis=-1)
    p = np.array(numbers(prediction, "probabilities", PredictionError), np.float64, order="C")
    if p.shape[:-1] != shape or not p.ndim:
        wanted = ", ".join(map(str, (*shape, "classes")))
        raise PredictionError(
            f"probabilities must be an array of shape ({wanted}), got {kind_of(prediction)}"
        )
    return p


def check_classes(controller: Controller, p: Array, name: Any) -> Array:
    """Rows of probabilities as the family reads them; the first that is none is refused."""
    known, count = classes_of(controller), p.shape[-1]
    read: Any = controller.sets.read
    with np.errstate(invalid="ignore"):
        odd = ~((p.min(axis=1, initial=0.0) >= 0.0) & (p.max(axis=1, initial=0.0) <= 1.0))
        if not has_several(controller.sets):
            odd |= ~(np.abs(p.sum(axis=1) - 1.0) <= 0.005)
    if known and known != count:
        odd = np.ones(len(p), bool)
    for row in np.flatnonzero(odd).tolist():
        try:
            read(p[row])
        except PredictionError as error:
            raise PredictionError(f"{name(row)}: {error}") from None
        np.minimum(p[row], 1.0, out=p[row])
    return p


def true_labels(controller: Controller, tape: Tape) -> Array:
    """The labels of a tape: numbers of classes, or of several a row of 0 and 1 for each class."""
    if not has_several(controller.sets):
        check_places(controller, tape.y)
        return tape.y
    columns = [tape.extras.get(f"y_{name}") for name in tape.names]
    if not all(isinstance(column, np.ndarray) for column in columns):
        raise LabelError(
            f"{type(controller.sets).__name__} needs a tape that says of each label whether it is "
            "true: Tape.from_arrays(p, y), with a row of 0 and 1 for each row of p"
        )
    y = np.stack(columns, axis=1).astype(np.float64)  # type: ignore[arg-type]
    y[tape.y != tape.y] = np.nan
    check_places(controller, y)
    return y


def unknown(y: Array) -> Array:
    """Where labels are missing."""
    missing: Array = np.isnan(y)
    return missing if y.ndim == 1 else np.asarray(missing.all(axis=-1))


def check_places(controller: Controller, y: Array, name: Any = "row {}".format) -> None:
    """Raises the error of the first label that is not the number of a class, or not 0 or 1."""
    if y.ndim > 1:
        wrong = ~np.isin(y, (0.0, 1.0)).all(axis=1) & ~unknown(y)
        if wrong.any():
            row = int(wrong.argmax())
            raise LabelError(
                f"{name(row)}: several labels must be 0 or 1 for each class, or all NaN where they "
                f"are missing, got {y[row].tolist()}"
            )
        return
    known = classes_of(controller) if names_in(controller.sets) is not None else np.inf
    wrong = (y < 0.0) | (y >= known) | ((y == y) & (y % 1.0 != 0.0))
    if wrong.any():
        row, family = int(wrong.argmax()), controller.sets
        try:
            family.taped(float(y[row]))  # type: ignore[attr-defined]
        except LabelError as error:
            raise LabelError(f"{name(row)}: {error}") from None


def critical_values(controller: Controller, values: Array, y: Array) -> Array:
    """The critical value of each label, NaN where there is none; see `chains.of_several`."""
    if y.ndim > 1:
        each = values[:, :-1]
        if never_empty(controller.sets):
            each = np.where(each <= each.min(axis=1, keepdims=True), -_MOST, each)
        return np.column_stack([np.where(y > 0.0, each, np.nan), y.sum(axis=1)])
    last = values.shape[1] - 1
    places = np.minimum(np.where(y == y, y, last), last).astype(np.int64)
    critical = values[np.arange(len(y)), places]
    if never_empty(controller.sets):
        critical = np.where(critical <= values[:, :-1].min(axis=1), -_MOST, critical)
    return np.where(y == y, critical, np.nan)


def fitting(controller: Controller, count: int, states: Any) -> bool:
    """Whether loops can go on from states: their classes are those of the predictions."""
    if not isinstance(controller.correction, Labels):
        return True
    names = names_in(controller.sets)
    listed = None if names is None else list(names)
    for state in states:
        own = state.table
        empty = len(own) == 0
        same = own.names is None if listed is None else list(own.names or ()) == listed
        if len(own) > count or not (empty or same):
            return False
    return True


def most_classes(controller: Controller, states: Sequence[State]) -> int:
    """How many classes states have, of which each must name its own as the family does."""
    if not isinstance(controller.correction, Labels):
        return 0
    count = max((len(state.table) for state in states), default=0)
    if not fitting(controller, count, states):
        raise InputError(
            "a fleet has its classes in one order, and these states learnt them by name as they "
            "came: name them in sets.Threshold(classes=…)"
        )
    return count


def classes_kept(controller: Controller, state: State) -> State:
    """A state from a vector with its table as live streams keep it."""
    stage: Any = plan(controller).stage
    if stage is None:
        return state
    part: Any = controller.correction
    table, learnt = part.kept(), state.memory[1] > 0.0 and not part.several
    first = 2 * table.size
    names = names_in(controller.sets)
    if learnt:
        table.numbers = array("d", state.table)
        table.names = None if names is None else dict(names)
    else:
        table.numbers = array("d", state.table[:first])
    state.learns(state.memory, table, [])
    return state


def layout_at(controller: Controller, width: int) -> Layout:
    """The layout of vectors of some width."""
    layout = layout_of(controller, 0)
    if layout.classes is None or controller.correction is None:
        return layout
    return layout_of(controller, (width - layout.size) // OWN)


def widened(vectors: Array, layout: Layout) -> Array:
    """Vectors with room for the classes of a layout."""
    missing = layout.size - vectors.shape[1]
    return np.pad(vectors, ((0, 0), (0, missing))) if missing > 0 else vectors
