"""What a family is tried on, and how it is read, drawn from and put to work."""

from collections.abc import Callable, Iterable, Sequence
from math import inf, nan
from typing import Any

import numpy as np

from setpoint.sets import LabelSet, PixelIntervals, PixelSet
from setpoint.testing._examples import IDS, LABELS, PREDICTIONS
from setpoint.testing._parts import broken, same_values

__all__ = [
    "FORMS",
    "Sample",
    "at_work",
    "check_draws",
    "is_number",
    "readings_of",
    "refuses",
    "samples_of",
]

Sample = tuple[Any, Sequence[Any]]
"""A prediction, and the labels to try with it."""


def samples_of(
    family: Any, predictions: Iterable[Any] | None, labels: Iterable[Any] | None
) -> list[Sample]:
    """What to try: what is given, or the usual examples that the family takes."""
    given = _taken(family.read, PREDICTIONS) if predictions is None else list(predictions)
    if not given:
        raise broken(
            family, "it takes one of the usual predictions, or is given its own predictions"
        )
    if labels is None and _shows_labels(family):
        return [(prediction, _classes_of(family, prediction)) for prediction in given]
    if labels is None and _shows(family) in (PixelIntervals, PixelSet):
        return [(prediction, _frames_of(family, prediction)) for prediction in given]
    seen = _taken(family.label, LABELS) if labels is None else list(labels)
    if not seen:
        raise broken(family, "it takes one of the usual labels, or is given its own labels")
    return [(prediction, seen) for prediction in given]


def _shows(family: Any) -> Any:
    """The class of the sets of a family, or of its sides, if it is always the same."""
    one = family.side(0) if hasattr(family, "sides") else family
    return getattr(one, "shows", None)


def _shows_labels(family: Any) -> bool:
    return _shows(family) is LabelSet


def _frames_of(family: Any, prediction: Any) -> list[Any]:
    """Labels for a prediction of pixels: frames of its shape, also with nothing to judge."""
    one = family.side(0) if hasattr(family, "sides") else family
    shape = one.at(readings_of(family, prediction)[0], inf).shape
    size = int(np.prod(shape))
    if _shows(family) is PixelSet:
        some = (np.arange(size) % 2 == 0).reshape(shape)
        return [some, ~some, np.ones(shape, bool), np.zeros(shape, bool), (~some, some)]
    steps = np.arange(size).reshape(shape)
    frames: list[Any] = [np.full(shape, each) for each in (0.0, 2.0, 4.5, 5.0, nan)]
    frames += [steps / 2.0, np.where(steps % 2 == 0, 2.5 - steps, nan)]
    frames += [np.ma.masked_less(4.0 - steps, 3.0), (8.0 - 4.0 * steps, steps > 0)]
    return _taken(family.label, frames)


def _classes_of(family: Any, prediction: Any) -> list[Any]:
    """The labels a prediction names and one it does not, or several at once if y may be."""
    reading = readings_of(family, prediction)[0]
    one = family.side(0) if hasattr(family, "sides") else family
    classes = one.at(reading, inf).classes
    unnamed = "zebra" if any(isinstance(name, str) for name in classes) else len(classes) + 1
    every = [*classes, unnamed]
    try:
        family.label(())
    except (TypeError, ValueError):
        return every
    return [(), *((label,) for label in every), tuple(every[:2]), tuple(every)]


def readings_of(family: Any, prediction: Any) -> list[Any]:
    """A prediction as the family reads it, with the chances of several ids if it draws any."""
    if not getattr(family, "draws", False):
        return [family.read(prediction)]
    return [family.draw(family.read(prediction), id) for id in IDS]


def at_work(family: Any, samples: Sequence[Sample]) -> list[Any]:
    """A family as it is and, if it remembers, with several memories."""
    if not hasattr(family, "bind"):
        return [family]
    rows = [
        (reading, family.label(y))
        for prediction, labels in samples
        for reading in readings_of(family, prediction)
        for y in labels
    ]
    bound = [family.bind()]
    for past in (rows[:1], [*rows[:3], *rows[:3]], (rows * 40)[::7][:500]):
        working = family.bind()
        for row in past:
            working.observe(working.weigh(*row))
        _check_memory(family, working, rows)
        bound.append(working)
    return [family, *bound]


def _check_memory(family: Any, working: Any, rows: Sequence[tuple[Any, Any]]) -> None:
    """Whether a family at work is its memory, and a copy has one of its own."""

    def answers(bound: Any) -> list[float]:
        return [bound.critical(*row) for row in rows[::5]]

    memory, wanted = tuple(working.memory), answers(working)
    if not all(type(each) is float for each in memory):
        raise broken(family, f"its memory is floats, got {memory!r}")
    if not same_values(answers(family.bind(memory)), wanted):
        raise broken(family, f"bind(memory) is the family it was, got another from {memory}")
    copy = working.copy()
    if not same_values(answers(copy), wanted) or tuple(copy.memory) != memory:
        raise broken(family, f"a copy is the family it was, got another from {memory}")
    for row in rows:
        copy.observe(copy.weigh(*row))
    if tuple(working.memory) != memory or not same_values(answers(working), wanted):
        raise broken(family, f"a copy shares nothing, got {working.memory} after {memory}")


def check_draws(family: Any, predictions: Sequence[Any]) -> None:
    """Whether the chance of a reading is that of its id, and another for another id."""
    drawn = [readings_of(family, prediction) for prediction in predictions]
    for prediction, readings in zip(predictions, drawn, strict=True):
        if not same_values(readings_of(family, prediction), readings):
            raise broken(
                family, f"an id always draws the same chance, got another for {prediction!r}"
            )
    if all(same_values(readings[0], each) for readings in drawn for each in readings[1:]):
        raise broken(family, f"ids draw chances of their own, got the same for {IDS}")


def _taken(read: Callable[[Any], Any], examples: Sequence[Any]) -> list[Any]:
    taken = []
    for example in examples:
        try:
            read(example)
        except (TypeError, ValueError):
            continue
        taken.append(example)
    return taken


class _Scalar:
    """A number in the manner of a torch scalar."""

    shape = ()

    def __init__(self, value: float) -> None:
        self.value = value

    def item(self) -> float:
        return self.value

    __float__ = item


FORMS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("numpy scalars", lambda value: np.asarray(value)[()]),
    ("0-d arrays", np.asarray),
    ("objects with item()", _Scalar),
)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def refuses(part: Any, read: Callable[[Any], Any], what: str, value: Any) -> None:
    try:
        got = read(value)
    except (TypeError, ValueError):
        return
    raise broken(part, f"{what} {value!r} is refused with an InputError, got {got!r}")
