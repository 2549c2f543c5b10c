"""What every part promises, to be a value with a plain memory, and what a family is tried on."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from math import inf, isfinite, isnan, nan
from typing import Any

import numpy as np

from setpoint import spec
from setpoint.errors import SetpointError
from setpoint.predictions import Probabilities, QuantileGrid
from setpoint.sets import LabelSet
from setpoint.sets.family import Draws, Shows, member_of
from setpoint.sets.pixels import PixelIntervals, PixelSet

Memory = tuple[float, ...]
"""What a part remembers from one step to the next."""


class ConformanceError(SetpointError, AssertionError):
    """A part breaks a promise that the controller relies on."""

    __module__ = "setpoint.testing"  # where its users find it


def broken(part: Any, promise: str) -> ConformanceError:
    """The error that names a promise and what broke it."""
    return ConformanceError(f"{type(part).__name__} does not keep a promise: {promise}")


@contextmanager
def in_use(part: Any) -> Iterator[None]:
    """A part at work: whatever it raises is a promise broken, and it is the same afterwards."""
    before = repr(part)
    try:
        yield
    except ConformanceError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise broken(part, f"it works on what it reads, got {what}") from error
    if repr(part) != before:
        raise broken(part, f"it stays the same in use, got {part!r} after {before}")


def one_answer(part: Any, name: str, call: Callable[..., Any], *args: Any) -> Any:
    """What a function of a part returns, if it is the same twice."""
    answer, again = call(*args), call(*args)
    if not same_values(answer, again):
        raise broken(part, f"{name} gives one answer, got {answer} and {again} for {args}")
    return answer


def first_memory(part: Any) -> Memory:
    """The memory a part begins with."""
    first = memory_of(part, part.init())
    if not same_values(part.init(), first):
        raise broken(part, f"it begins with one memory, got {first} and {part.init()}")
    return first


def same_values(left: Any, right: Any) -> bool:
    """Whether two values are equal and of one type, through tuples and arrays."""
    if type(left) is not type(right):
        return False
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(same_values, left, right))
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right, equal_nan=True)
    if isinstance(left, float) and isnan(left):
        return isnan(right)
    return bool(left == right)


def memory_of(part: Any, got: Any, what: str = "memory", like: Memory | None = None) -> Memory:
    """A memory, if it is a tuple of finite floats of constant length."""
    plain = type(got) is tuple and all(isinstance(number, float) for number in got)
    if not plain or not (what == "params" or all(map(isfinite, got))):
        raise broken(part, f"{what} is a tuple of finite floats, got {got!r}")
    if like is not None and len(got) != len(like):
        raise broken(part, f"{what} keeps its length, got {got!r} after {like!r}")
    memory: Memory = got
    return memory


def check_value(role: str, part: Any) -> None:
    """Whether a part is a value: what it is made of says all of it."""
    cls: Any = type(part)
    options_of = getattr(cls, "__dataclass_params__", None)
    if options_of is None or not options_of.frozen:
        raise broken(part, f"it is a frozen dataclass, compared and printed by value, got {part}")
    options = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
    twin = cls(**options)
    if twin != part:
        raise broken(part, f"it equals its twin with the same options, got {part} and {twin}")
    try:
        agree = hash(twin) == hash(part)
    except TypeError as error:
        raise broken(part, f"it can be hashed: {error}") from error
    if not agree:
        raise broken(part, f"its hash is that of its twin, got {hash(part)} and {hash(twin)}")
    if not all(map(_plain, options.values())):
        return
    names: dict[str, Any] = {"inf": inf, "nan": nan, "np": np}
    text = repr(part)
    for kind in _classes(part):
        names[kind.__name__] = kind
        text = text.replace(kind.__qualname__, kind.__name__)
    try:
        printed = eval(text, names)
    except Exception as error:
        raise broken(part, f"it prints as the call that makes it, got {part!r}") from error
    if printed != part:
        raise broken(part, f"it prints as the call that makes it, got {printed!r} from {part!r}")
    if all(spec.known(role, kind) or spec.known("regions", kind) for kind in _classes(part)):
        table = spec.described(role, part)
        if spec.part_of(role, table) != part:
            raise broken(part, f"its spec describes it, got {spec.part_of(role, table)}")


def _plain(option: Any) -> bool:
    """Whether an option can be written down."""
    if isinstance(option, tuple):
        return all(map(_plain, option))
    if is_dataclass(option):
        return all(_plain(getattr(option, field.name)) for field in fields(option))
    return option is None or isinstance(option, bool | int | float | str)


def _classes(part: Any) -> Iterator[type]:
    """The class of a part, and of the parts within it."""
    if is_dataclass(part):
        yield type(part)
        for field in fields(part):
            yield from _classes(getattr(part, field.name))


def _line(level: float) -> float:
    """A quantile function: y is anything from −8 to 8 alike."""
    return 16.0 * level - 8.0


def _stairs(level: float) -> float:
    """A quantile function that jumps and is flat in between: y is 0, 2 or 5."""
    return 0.0 if level <= 0.25 else 2.0 if level <= 0.625 else 5.0


# Eighths and powers of two: the arithmetic of the library's own families is exact on them.
_PREDICTIONS: tuple[Any, ...] = (
    *(3.0, -2.5, inf, -inf),
    *((10.0, 14.0), (-3.5, 2.25), (0.0, 0.0), (4.0, 1.0), (-inf, 2.0), (0.5, inf), (-inf, inf)),
    *((12.0, 2.0, 4.0), (0.0, 0.25, 0.5), (5.0, 0.0, 1.0), (5.0, 1.0, 0.0), (-2.0, 0.0, 0.0)),
    *((0.5, 0.25, 0.25), [0.25, 0.25, 0.25, 0.25], (0.0, 1.0, 0.0)),
    *(np.array([0.125, 0.5, 0.0, 0.25, 0.125]), (0.75, 0.0, 0.75, 1.0)),
    *({"cat": 0.25, "dog": 0.5, "owl": 0.25}, {}),
    Probabilities((0.25, 0.625, 0.125), classes=("owl", "cat", "dog"), u=0.5),
    QuantileGrid((0.125, 0.25, 0.5, 0.75, 0.875), (-4.0, 0.0, 2.0, 4.0, 12.0)),
    QuantileGrid((0.25, 0.5, 0.625, 0.75), (2.0, 2.0, -2.0, 4.0)),
    QuantileGrid((0.0, 0.5, 1.0), (-inf, 0.0, inf)),
    *({0.125: 0.0, 0.25: 4.0, 0.375: 4.0, 0.75: 5.0}, _line, _stairs),
    (np.array([[2.0, 4.5], [0.0, -8.0]]), np.full((2, 2), 0.5), np.array([[1.0, 2.0], [0.0, 4.0]])),
    (
        *np.array([[[2.0, 4.5, 12.0]], [[0.5, 0.0, 8.0]], [[1.0, 0.0, 0.25]]], np.float32),
        np.array([[True, True, False]]),
    ),
    (np.zeros((2, 1)), np.ones((2, 1)), np.ones((2, 1)), np.zeros((2, 1), dtype=bool)),
    np.array([[0.25, 0.5, 1.0], [0.0, 0.125, 0.5]]),
    (np.array([[0.25, 0.5, 0.75]], np.float32), np.array([[True, True, False]])),
)

_LABELS = (
    *(0.0, 2.0, 4.5, 5.0, 10.0, 12.0, 14.0, *(k / 8 for k in range(-160, 161, 13))),
    *((0.0, 2.0, 4.5), (12.0, -2.0, 4.0), (10.0, 1.0, 2.25)),
)

LAMS = (
    *(-1e300, -1e6, -30.0, -8.0, -2.0, -1.0, -0.99, -0.75, -0.5, -0.25, -0.1, -1e-6),
    *(0.0, 0.5, 1.0, 2.0, 8.0, 30.0, 1e6, 1e300),
)
IDS = (0, 7, "tomorrow")
LEVELS = (0.0, 0.05, 0.5, 0.95, 1.0)
ROUNDING = 1e-9  # how far two numbers may be apart that should be equal
Sample = tuple[Any, Sequence[Any]]  # a prediction, and the labels to try with it


def samples_of(
    family: Any, predictions: Iterable[Any] | None, labels: Iterable[Any] | None
) -> list[Sample]:
    """What to try: what is given, or the usual examples that the family takes."""
    chosen = _taken(family.read, _PREDICTIONS) if predictions is None else list(predictions)
    if not chosen:
        raise broken(
            family, "it takes one of the usual predictions, or is given its own predictions"
        )
    one = member_of(family, 0)
    shows = one.shows if isinstance(one, Shows) else None
    if labels is None and shows in (LabelSet, PixelIntervals, PixelSet):
        of = _classes_of if shows is LabelSet else _frames_of
        return [(prediction, of(family, one, prediction)) for prediction in chosen]
    seen = _taken(family.label, _LABELS) if labels is None else list(labels)
    if not seen:
        raise broken(family, "it takes one of the usual labels, or is given its own labels")
    return [(prediction, seen) for prediction in chosen]


def _frames_of(family: Any, one: Any, prediction: Any) -> list[Any]:
    """Labels for a prediction of pixels: frames of its shape, also with nothing to judge."""
    shown = one.at(readings_of(family, prediction)[0], inf)
    shape = shown.shape
    size = int(np.prod(shape))
    if isinstance(shown, PixelSet):
        some = (np.arange(size) % 2 == 0).reshape(shape)
        return [some, ~some, np.ones(shape, bool), np.zeros(shape, bool), (~some, some)]
    steps = np.arange(size).reshape(shape)
    frames: list[Any] = [np.full(shape, value) for value in (0.0, 2.0, 4.5, 5.0, nan)]
    frames += [steps / 2.0, np.where(steps % 2 == 0, 2.5 - steps, nan)]
    frames += [np.ma.masked_less(4.0 - steps, 3.0), (8.0 - 4.0 * steps, steps > 0)]
    return _taken(family.label, frames)


def _classes_of(family: Any, one: Any, prediction: Any) -> list[Any]:
    """The labels a prediction names and one it does not, or several at once if y may be."""
    classes = one.at(readings_of(family, prediction)[0], inf).classes
    unnamed = "zebra" if any(isinstance(name, str) for name in classes) else len(classes) + 1
    every = [*classes, unnamed]
    if not takes(family.label, ()):
        return every
    return [(), *((label,) for label in every), tuple(every[:2]), tuple(every)]


def readings_of(family: Any, prediction: Any) -> list[Any]:
    """A prediction as the family reads it.

    With the chances of several ids if it draws any.
    """
    if not draws(family):
        return [family.read(prediction)]
    return [family.draw(family.read(prediction), id) for id in IDS]


def draws(family: Any) -> bool:
    """Whether a family gives each prediction a chance."""
    return isinstance(family, Draws) and family.draws


def takes(read: Callable[[Any], Any], example: Any) -> bool:
    """Whether a family reads a prediction or a label, or refuses it."""
    try:
        read(example)
    except (TypeError, ValueError):
        return False
    return True


def _taken(read: Callable[[Any], Any], examples: Iterable[Any]) -> list[Any]:
    return [example for example in examples if takes(read, example)]
