"""What a family is tried on: predictions, labels and λ; and how it is read and put to work."""

from collections.abc import Callable, Iterable, Sequence
from math import inf, nan
from typing import Any

import numpy as np

from setpoint.predictions import Probabilities, QuantileGrid
from setpoint.sets import Draws, LabelSet, PixelIntervals, PixelSet, Remembers, Shows, Sides
from setpoint.testing.parts import broken, same_values

__all__ = [
    "FORMS",
    "IDS",
    "LABELS",
    "LAMS",
    "LEVELS",
    "PREDICTIONS",
    "ROUNDING",
    "Sample",
    "at_work",
    "check_draws",
    "draws",
    "is_number",
    "readings_of",
    "refuses",
    "samples_of",
]


def _line(level: float) -> float:
    """A quantile function: y is anything from −8 to 8 alike."""
    return 16.0 * level - 8.0


def _stairs(level: float) -> float:
    """A quantile function that jumps and is flat in between: y is 0, 2 or 5."""
    return 0.0 if level <= 0.25 else 2.0 if level <= 0.625 else 5.0


# Eighths and powers of two: the arithmetic of the library's own families is exact on them.
PREDICTIONS: tuple[Any, ...] = (
    3.0,
    -2.5,
    inf,
    -inf,
    (10.0, 14.0),
    (-3.5, 2.25),
    (0.0, 0.0),
    (4.0, 1.0),
    (-inf, 2.0),
    (0.5, inf),
    (-inf, inf),
    (12.0, 2.0, 4.0),
    (0.0, 0.25, 0.5),
    (5.0, 0.0, 1.0),
    (5.0, 1.0, 0.0),
    (-2.0, 0.0, 0.0),
    (0.5, 0.25, 0.25),
    [0.25, 0.25, 0.25, 0.25],
    (0.0, 1.0, 0.0),
    np.array([0.125, 0.5, 0.0, 0.25, 0.125]),
    (0.75, 0.0, 0.75, 1.0),
    {"cat": 0.25, "dog": 0.5, "owl": 0.25},
    {},
    Probabilities((0.25, 0.625, 0.125), classes=("owl", "cat", "dog"), u=0.5),
    QuantileGrid((0.125, 0.25, 0.5, 0.75, 0.875), (-4.0, 0.0, 2.0, 4.0, 12.0)),
    QuantileGrid((0.25, 0.5, 0.625, 0.75), (2.0, 2.0, -2.0, 4.0)),
    QuantileGrid((0.0, 0.5, 1.0), (-inf, 0.0, inf)),
    {0.125: 0.0, 0.25: 4.0, 0.375: 4.0, 0.75: 5.0},
    _line,
    _stairs,
    (np.array([[2.0, 4.5], [0.0, -8.0]]), np.full((2, 2), 0.5), np.array([[1.0, 2.0], [0.0, 4.0]])),
    (
        np.array([[2.0, 4.5, 12.0]], np.float32),
        np.array([[0.5, 0.0, 8.0]], np.float32),
        np.array([[1.0, 0.0, 0.25]], np.float32),
        np.array([[True, True, False]]),
    ),
    (np.zeros((2, 1)), np.ones((2, 1)), np.ones((2, 1)), np.zeros((2, 1), dtype=bool)),
    np.array([[0.25, 0.5, 1.0], [0.0, 0.125, 0.5]]),
    (np.array([[0.25, 0.5, 0.75]], np.float32), np.array([[True, True, False]])),
)

LABELS = (0.0, 2.0, 4.5, 5.0, 10.0, 12.0, 14.0, *(k / 8 for k in range(-160, 161, 13)))

LAMS = (
    *(-1e300, -1e6, -30.0, -8.0, -2.0, -1.0, -0.99, -0.75, -0.5, -0.25, -0.1, -1e-6),
    *(0.0, 0.5, 1.0, 2.0, 8.0, 30.0, 1e6, 1e300),
)

IDS = (0, 7, "tomorrow")

LEVELS = (0.0, 0.05, 0.5, 0.95, 1.0)

ROUNDING = 1e-9

Sample = tuple[Any, Sequence[Any]]
"""A prediction, and the labels to try with it."""


def samples_of(
    family: Any, predictions: Iterable[Any] | None, labels: Iterable[Any] | None
) -> list[Sample]:
    """What to try: what is given, or the usual examples that the family takes."""
    readable = _taken(family.read, PREDICTIONS) if predictions is None else list(predictions)
    if not readable:
        raise broken(
            family, "it takes one of the usual predictions, or is given its own predictions"
        )
    one = family.side(0) if isinstance(family, Sides) else family
    shows = one.shows if isinstance(one, Shows) else None
    if labels is None and shows in (LabelSet, PixelIntervals, PixelSet):
        of = _classes_of if shows is LabelSet else _frames_of
        return [(prediction, of(family, one, prediction)) for prediction in readable]
    truths = _taken(family.label, LABELS) if labels is None else list(labels)
    if not truths:
        raise broken(family, "it takes one of the usual labels, or is given its own labels")
    return [(prediction, truths) for prediction in readable]


def _frames_of(family: Any, one: Any, prediction: Any) -> list[Any]:
    """Labels for a prediction of pixels: frames of its shape, also with nothing to judge."""
    shown = one.at(readings_of(family, prediction)[0], inf)
    shape = shown.shape
    size = int(np.prod(shape))
    if isinstance(shown, PixelSet):
        some = (np.arange(size) % 2 == 0).reshape(shape)
        return [some, ~some, np.ones(shape, bool), np.zeros(shape, bool), (~some, some)]
    steps = np.arange(size).reshape(shape)
    frames: list[Any] = [np.full(shape, each) for each in (0.0, 2.0, 4.5, 5.0, nan)]
    frames += [steps / 2.0, np.where(steps % 2 == 0, 2.5 - steps, nan)]
    frames += [np.ma.masked_less(4.0 - steps, 3.0), (8.0 - 4.0 * steps, steps > 0)]
    return _taken(family.label, frames)


def _classes_of(family: Any, one: Any, prediction: Any) -> list[Any]:
    """The labels a prediction names and one it does not, or several at once if y may be."""
    classes = one.at(readings_of(family, prediction)[0], inf).classes
    unnamed = "zebra" if any(isinstance(name, str) for name in classes) else len(classes) + 1
    every = [*classes, unnamed]
    try:
        family.label(())
    except (TypeError, ValueError):
        return every
    return [(), *((label,) for label in every), tuple(every[:2]), tuple(every)]


def readings_of(family: Any, prediction: Any) -> list[Any]:
    """A prediction as the family reads it, with the chances of several ids if it draws any."""
    if not draws(family):
        return [family.read(prediction)]
    return [family.draw(family.read(prediction), id) for id in IDS]


def draws(family: Any) -> bool:
    """Whether a family gives each prediction a chance."""
    return isinstance(family, Draws) and family.draws


def at_work(family: Any, samples: Sequence[Sample]) -> list[Any]:
    """A family as it is and, if it remembers, with several memories."""
    remembers = isinstance(family, Remembers)
    if not remembers:
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
