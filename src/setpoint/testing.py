"""Conformance checks: whether a part keeps the promises that the controller relies on.

    check_set(family)        nested in λ, full and empty at ±inf, exact critical values, safe reads;
                             what it draws, remembers or splits into sides, if it does
    check_loss(loss)         in its range, true to its word on the full and empty set, one direction
    check_stretch(stretch)   finite and monotone in θ, inverted by `inverse`, a memory in bounds
    check_step(step)         moves θ the right way, and its stated bound survives an adversary

Every part is also checked to be a value: equal to its twin, hashable, printed as the call that
makes it, the same before and after use. Each check runs many cases, the same ones every time,
and raises `ConformanceError`: one sentence with the broken promise and the values that broke it.
Plain numpy and Python: call them from any test runner, for the library's parts or your own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import fields, is_dataclass
from itertools import pairwise, product
from math import inf, isfinite, isnan, nan
from typing import Any, NamedTuple

import numpy as np

from setpoint import spec
from setpoint._check import number
from setpoint.controller import Controller, Risk
from setpoint.errors import SetpointError
from setpoint.losses import Declaration, Miscoverage, declaration
from setpoint.predictions import Probabilities, QuantileGrid
from setpoint.sets import LabelSet, Multilabel, PixelIntervals, PixelScale, PixelSet, Widen
from setpoint.steps import Fixed, Range

__all__ = ["ConformanceError", "check_loss", "check_set", "check_step", "check_stretch"]

Memory = tuple[float, ...]


def _line(level: float) -> float:
    """A quantile function: y is anything from −8 to 8 alike."""
    return 16.0 * level - 8.0


def _stairs(level: float) -> float:
    """A quantile function that jumps and is flat in between: y is 0, 2 or 5."""
    return 0.0 if level <= 0.25 else 2.0 if level <= 0.625 else 5.0


# Eighths and powers of two: the arithmetic of the library's own families is exact on them.
_PREDICTIONS: tuple[Any, ...] = (
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
_LABELS = (0.0, 2.0, 4.5, 5.0, 10.0, 12.0, 14.0, *(k / 8 for k in range(-160, 161, 13)))
_LAMS = (
    *(-1e300, -1e6, -30.0, -8.0, -2.0, -1.0, -0.99, -0.75, -0.5, -0.25, -0.1, -1e-6),
    *(0.0, 0.5, 1.0, 2.0, 8.0, 30.0, 1e6, 1e300),
)
_IDS = (0, 7, "tomorrow")
_LEVELS = (0.0, 0.05, 0.5, 0.95, 1.0)
_ROUNDING = 1e-9


class ConformanceError(SetpointError, AssertionError):
    """A part breaks a promise that the controller relies on."""


def check_set(
    family: Any,
    predictions: Iterable[Any] | None = None,
    labels: Iterable[Any] | None = None,
    *,
    exact: bool | None = None,
) -> None:
    """Checks a family of nested sets.

    Parameters
    ----------
    family
        See `setpoint.sets.Family`.
    predictions, labels
        What to try. By default numbers, pairs, triples, probabilities, quantiles and frames of
        pixels, those that the family reads, zero scales, infinite ends and ties among them; and
        labels between −20 and 20, or the classes of the prediction and one that it does not name,
        or frames of the prediction's shape.
    exact
        Whether each set contains y at its critical value to the bit, and not just within
        rounding: for families defined by their critical values, and where the arithmetic is
        exact on the predictions given. By default only without predictions of your own.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from math import inf
    >>> from setpoint.sets import Interval, Widen
    >>> @dataclass(frozen=True)
    ... class Above:
    ...     inner: Widen = Widen()
    ...
    ...     def read(self, prediction):
    ...         return self.inner.read(prediction)
    ...
    ...     def label(self, y):
    ...         return self.inner.label(y)
    ...
    ...     def at(self, prediction, lam):
    ...         return Interval(prediction[0] - lam, inf)
    ...
    ...     def critical(self, prediction, y):
    ...         return prediction[0] - y
    ...
    ...     def start(self, level):
    ...         return 0.0
    ...
    ...     def bounds(self):
    ...         return None
    ...
    ...     def unit(self, prediction):
    ...         return 1.0
    >>> check_set(Above(), predictions=[(10.0, 14.0), (-3.0, 3.0)])
    >>> check_set(Above(), predictions=[(-inf, 14.0)])
    Traceback (most recent call last):
    setpoint.testing.ConformanceError: Above does not keep a promise: it works on what it reads,
    got InputError: the ends of an interval must be numbers, got (nan, inf)
    """
    exact = predictions is None if exact is None else exact
    with _in_use(family):
        samples = _samples(family, predictions, labels)
        for prediction, seen in samples:
            _check_read(family, prediction)
            for y in seen:
                _check_label(family, y)
        held: list[bool] = []
        for working in _at_work(family, samples):
            for prediction, seen in samples:
                kept = deepcopy(prediction)
                few = seen[:: 1 if working is family or len(seen) < 10 else 3]
                for reading in _readings(family, prediction):
                    if hasattr(family, "sides"):
                        _check_sides(family, reading, few, exact)
                    held += _check_nested(family, reading, few, exact, working)
                if not _same(kept, prediction):
                    raise _broken(family, f"it leaves a prediction as it is, got {prediction!r}")
        if held and not any(held):
            raise _broken(
                family,
                "y is in its set at the critical value of y, and never is; where the set is open "
                "there, `critical` returns the next float up",
            )
        if getattr(family, "draws", False):
            _check_draws(family, [prediction for prediction, _ in samples])
        readings = [each for prediction, _ in samples for each in _readings(family, prediction)]
        _check_defaults(family, readings)
    _check_value("sets", family)


def check_loss(
    loss: Any,
    sets: Any = None,
    predictions: Iterable[Any] | None = None,
    labels: Iterable[Any] | None = None,
) -> None:
    """Checks a loss, with or without memory, that shrinks or grows with the set.

    Parameters
    ----------
    loss
        See `setpoint.losses`.
    sets
        The family whose sets it judges; by default `sets.Widen()`, or `sets.Multilabel()` or
        `sets.PixelScale()` if it asks of a set what only sets of labels, or of pixels, have.
    predictions, labels
        What the family reads and what is judged; by default as for `check_set`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True)
    ... class Shortfall:
    ...     scale: float
    ...     low, high = 0.0, 1.0
    ...
    ...     def __call__(self, shown, y) -> float:
    ...         return min(max(y - shown.upper, 0.0) / self.scale, 1.0)
    >>> check_loss(Shortfall(10.0))
    >>> from setpoint.losses import Custom
    >>> check_loss(Custom(lambda shown, y: max(y - shown.upper, 0.0)))
    Traceback (most recent call last):
    setpoint.testing.ConformanceError: Custom does not keep a promise: it lies in [0, 1], got inf
    on Interval(empty) with y = 0.0
    """
    family = _judged_by(loss) if sets is None else sets
    links = _links(family, _samples(family, predictions, labels))
    with _in_use(loss):
        promise = declaration(loss)
        remembers = hasattr(loss, "init")
        if not remembers and not callable(loss):
            raise _broken(loss, "it has `init` beside `update`, or is callable with (shown, y)")
        first = _first(loss) if remembers else ()
        memories = _visited(loss, promise, first, links) if remembers else [first]
        for memory, link in product(memories, links):
            for y in link.labels[:: 1 if len(memories) == 1 else 5]:
                _check_direction(loss, promise, memory, link.chain, y)
        for link in links:
            if hasattr(loss, "critical") and hasattr(link.family, "criticals"):
                _check_share(loss, link)
    if is_dataclass(loss):
        _check_value("losses", loss)


def check_stretch(stretch: Any) -> None:
    """Checks a stretching function and, if it adapts, how its memory moves.

    Parameters
    ----------
    stretch
        See `setpoint.stretches`; one that adapts needs its clip bounds.

    Examples
    --------
    >>> from setpoint.stretches import ErrorAdaptive
    >>> check_stretch(ErrorAdaptive(score=0.1, loss=0.1, low=-1.0, high=1.0))
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Cube:
    ...     params, move = (), None
    ...
    ...     def phi(self, params, memory, theta):
    ...         return theta**3
    ...
    ...     def init(self):
    ...         return ()
    ...
    ...     def inverse(self, lam, memory=()):
    ...         return math.cbrt(lam)
    >>> check_stretch(Cube())
    Traceback (most recent call last):
    setpoint.testing.ConformanceError: Cube does not keep a promise: it works on what it reads,
    got OverflowError: ...
    """
    with _in_use(stretch):
        params, first = _memory(stretch, stretch.params, "params"), _first(stretch)
        memories = [first]
        if stretch.move is not None:
            memories += _moved(stretch, params, first)
        for memory in memories:
            _check_phi(stretch, params, memory)
    _check_value("stretches", stretch)


def check_step(step: Any) -> None:
    """Checks a step rule; what it guarantees, if anything, is tried by an adversary.

    Parameters
    ----------
    step
        See `setpoint.steps`. One with `bound` (and `reach` and `window`) is run on thousands of
        losses, with and without delay, that push θ as far as they can.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from setpoint.steps import Fixed
    >>> check_step(Fixed(0.05))
    >>> @dataclass(frozen=True)
    ... class Hopeful:
    ...     params, needs = (0.5,), "excess"
    ...
    ...     def rule(self, params, theta, memory, excess, critical, curve):
    ...         return theta + params[0] * excess, memory
    ...
    ...     def init(self):
    ...         return ()
    ...
    ...     def bound(self, within):
    ...         return -1.0, 1.0
    >>> check_step(Hopeful())
    Traceback (most recent call last):
    setpoint.testing.ConformanceError: Hopeful does not keep a promise: its bound holds,
    got Σ(l − r) = 1.8 outside [-1.0, 1.0] after 2 labels with Range(low=-3.0, ...)
    """
    rng = np.random.default_rng(1)
    with _in_use(step):
        params, first = _memory(step, step.params, "params"), _first(step)
        if step.needs not in ("excess", "critical", "curve"):
            raise _broken(step, f'`needs` is "excess", "critical" or "curve", got {step.needs!r}')
        memory = first
        for theta in (0.0, -3.0, 7.5, 1e6, -1e6):
            for excess in (0.9, -0.1, 0.0, 1e-3, -1.0, 40.0, *rng.normal(size=20).tolist()):
                critical = theta + (abs(float(rng.normal())) if excess > 0.0 else -1.0)
                _, memory = _stepped(step, params, theta, memory, excess, critical)
        if hasattr(step, "bound"):
            worlds = ((-3.0, 5.0, 0.0), (-0.5, 0.5, 0.5), (-40.0, 40.0, -40.0))
            for world, level, pending in product(worlds, (0.1, 0.5), (1, 4)):
                within = Range(*world, -level, 1.0 - level, pending)
                for policy in _POLICIES:
                    _check_bound(step, params, first, within, policy, rng)
    _check_value("steps", step)


# What every part promises


def _broken(part: Any, promise: str) -> ConformanceError:
    return ConformanceError(f"{type(part).__name__} does not keep a promise: {promise}")


@contextmanager
def _in_use(part: Any) -> Iterator[None]:
    """A part at work: whatever it raises is a promise broken, and it is the same afterwards."""
    before = repr(part)
    try:
        yield
    except ConformanceError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise _broken(part, f"it works on what it reads, got {what}") from error
    if repr(part) != before:
        raise _broken(part, f"it stays the same in use, got {part!r} after {before}")


def _first(part: Any) -> Memory:
    """The memory a part begins with."""
    first = _memory(part, part.init())
    if not _same(part.init(), first):
        raise _broken(part, f"it begins with one memory, got {first} and {part.init()}")
    return first


def _same(left: Any, right: Any) -> bool:
    """Whether two values are equal and of one type, through tuples and arrays."""
    if type(left) is not type(right):
        return False
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right, equal_nan=True)
    if isinstance(left, float) and isnan(left):
        return isnan(right)
    return bool(left == right)


def _memory(part: Any, got: Any, what: str = "memory", like: Memory | None = None) -> Memory:
    """A memory, if it is a tuple of finite floats of constant length."""
    plain = type(got) is tuple and all(type(each) is float for each in got)
    if not plain or not all(isfinite(each) or what == "params" for each in got):
        raise _broken(part, f"{what} is a tuple of finite floats, got {got!r}")
    if like is not None and len(got) != len(like):
        raise _broken(part, f"{what} keeps its length, got {got!r} after {like!r}")
    memory: Memory = got
    return memory


def _check_value(role: str, part: Any) -> None:
    """Whether a part is a value: what it is made of says all of it."""
    cls: Any = type(part)
    if not getattr(getattr(cls, "__dataclass_params__", None), "frozen", False):
        raise _broken(part, f"it is a frozen dataclass, compared and printed by value, got {part}")
    options = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
    twin = cls(**options)
    if twin != part:
        raise _broken(part, f"it equals its twin with the same options, got {part} and {twin}")
    try:
        agree = hash(twin) == hash(part)
    except TypeError as error:
        raise _broken(part, f"it can be hashed: {error}") from error
    if not agree:
        raise _broken(part, f"its hash is that of its twin, got {hash(part)} and {hash(twin)}")
    if not all(map(_plain, options.values())):
        return
    names: dict[str, Any] = {"inf": inf, "nan": nan, "np": np}
    text = repr(part)
    for each in _classes(part):
        names[each.__name__] = each
        text = text.replace(each.__qualname__, each.__name__)
    try:
        printed = eval(text, names)
    except Exception as error:
        raise _broken(part, f"it prints as the call that makes it, got {part!r}") from error
    if printed != part:
        raise _broken(part, f"it prints as the call that makes it, got {printed!r} from {part!r}")
    if all(spec.known(role, each) or spec.known("regions", each) for each in _classes(part)):
        _check_spec(role, part)


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


def _check_spec(role: str, part: Any) -> None:
    """Whether a known part comes back from TOML."""
    loss = part if role == "losses" else Miscoverage()
    promise = declaration(loss)
    level = (promise.low + min(promise.high, promise.low + 1.0)) / 2.0
    risk = Risk(loss, level, part if role == "steps" else Fixed(0.1))
    risks = [risk] * getattr(part, "sides", 1) if role == "sets" else [risk]
    controller = Controller(
        part if role == "sets" else Widen(), risks, part if role == "stretches" else None
    )
    text = spec.to_toml(controller)
    if spec.from_toml(text) != controller:
        raise _broken(part, f"its spec describes it, got {spec.from_toml(text)} from\n{text}")


# Sets


Sample = tuple[Any, Sequence[Any]]
"""A prediction, and the labels to try with it."""


def _samples(
    family: Any, predictions: Iterable[Any] | None, labels: Iterable[Any] | None
) -> list[Sample]:
    """What to try: what is given, or the usual examples that the family takes."""
    given = _taken(family.read, _PREDICTIONS) if predictions is None else list(predictions)
    if not given:
        raise _broken(
            family, "it takes one of the usual predictions, or is given its own predictions"
        )
    if labels is None and _shows_labels(family):
        return [(prediction, _classes_of(family, prediction)) for prediction in given]
    if labels is None and _shows(family) in (PixelIntervals, PixelSet):
        return [(prediction, _frames_of(family, prediction)) for prediction in given]
    seen = _taken(family.label, _LABELS) if labels is None else list(labels)
    if not seen:
        raise _broken(family, "it takes one of the usual labels, or is given its own labels")
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
    shape = one.at(_readings(family, prediction)[0], inf).shape
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
    reading = _readings(family, prediction)[0]
    one = family.side(0) if hasattr(family, "sides") else family
    classes = one.at(reading, inf).classes
    unnamed = "zebra" if any(isinstance(name, str) for name in classes) else len(classes) + 1
    every = [*classes, unnamed]
    try:
        family.label(())
    except (TypeError, ValueError):
        return every
    return [(), *((label,) for label in every), tuple(every[:2]), tuple(every)]


def _readings(family: Any, prediction: Any) -> list[Any]:
    """A prediction as the family reads it, with the chances of several ids if it draws any."""
    if not getattr(family, "draws", False):
        return [family.read(prediction)]
    return [family.draw(family.read(prediction), id) for id in _IDS]


def _at_work(family: Any, samples: Sequence[Sample]) -> list[Any]:
    """A family as it is and, if it remembers, with several memories."""
    if not hasattr(family, "bind"):
        return [family]
    rows = [
        (reading, family.label(y))
        for prediction, labels in samples
        for reading in _readings(family, prediction)
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
        raise _broken(family, f"its memory is floats, got {memory!r}")
    if not _same(answers(family.bind(memory)), wanted):
        raise _broken(family, f"bind(memory) is the family it was, got another from {memory}")
    copy = working.copy()
    if not _same(answers(copy), wanted) or tuple(copy.memory) != memory:
        raise _broken(family, f"a copy is the family it was, got another from {memory}")
    for row in rows:
        copy.observe(copy.weigh(*row))
    if tuple(working.memory) != memory or not _same(answers(working), wanted):
        raise _broken(family, f"a copy shares nothing, got {working.memory} after {memory}")


def _check_draws(family: Any, predictions: Sequence[Any]) -> None:
    """Whether the chance of a reading is that of its id, and another for another id."""
    drawn = [_readings(family, prediction) for prediction in predictions]
    for prediction, readings in zip(predictions, drawn, strict=True):
        if not _same(_readings(family, prediction), readings):
            raise _broken(
                family, f"an id always draws the same chance, got another for {prediction!r}"
            )
    if all(_same(readings[0], each) for readings in drawn for each in readings[1:]):
        raise _broken(family, f"ids draw chances of their own, got the same for {_IDS}")


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


_FORMS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("numpy scalars", lambda value: np.asarray(value)[()]),
    ("0-d arrays", np.asarray),
    ("objects with item()", _Scalar),
)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refuses(part: Any, read: Callable[[Any], Any], what: str, value: Any) -> None:
    try:
        got = read(value)
    except (TypeError, ValueError):
        return
    raise _broken(part, f"{what} {value!r} is refused with an InputError, got {got!r}")


def _check_read(family: Any, prediction: Any) -> None:
    """Reading: the same from every kind of number, unshared, and closed to NaN and text."""
    reading = family.read(prediction)
    if not _same(reading, family.read(prediction)):
        raise _broken(family, f"it reads a prediction twice alike, got {reading} first")
    for bad in (None, "text", nan):
        _refuses(family, family.read, "the prediction", bad)
    mutable: Any = None
    if isinstance(prediction, np.ndarray):
        shares = bool(getattr(family, "share", False))
        mutable = prediction.copy() if prediction.size and not shares else None
        if prediction.dtype.kind == "f" and prediction.size:
            spoilt = prediction.copy()
            spoilt.flat[0] = nan
            _refuses(family, family.read, "the prediction", spoilt)
    elif _is_number(prediction):
        for name, form in _FORMS:
            _check_form(family, reading, family.read(form(prediction)), name)
    elif isinstance(prediction, tuple | list) and prediction and all(map(_is_number, prediction)):
        mutable = list(prediction)
        for name, form in _FORMS:
            _check_form(family, reading, family.read(tuple(map(form, prediction))), name)
        for place, value in enumerate(prediction):
            for bad in (nan, "3.5", str(value), None):
                spoilt_list = [bad if at == place else v for at, v in enumerate(prediction)]
                _refuses(family, family.read, "the prediction", spoilt_list)
    elif isinstance(prediction, tuple) and prediction and isinstance(prediction[0], np.ndarray):
        _check_frames(family, prediction)
    elif isinstance(prediction, Mapping):
        for name, bad in product(prediction, (nan, "3.5", None)):
            _refuses(family, family.read, "the prediction", {**prediction, name: bad})
    if mutable is not None:
        shared = family.read(mutable)
        kept = deepcopy(shared)
        mutable[0] = mutable[0] + 1
        if not _same(shared, kept):
            raise _broken(
                family, f"a reading shares nothing with the prediction, got {shared} after {kept}"
            )


def _check_frames(family: Any, prediction: tuple[Any, ...]) -> None:
    """Reading arrays for each pixel: closed to NaN where a pixel is valid, unshared if so told."""
    numbers = [place for place, part in enumerate(prediction) if part.dtype.kind == "f"]
    masks = [part for part in prediction if part.dtype.kind == "b"]
    if all(mask.any() for mask in masks):
        for place in numbers:
            spoilt = [part * nan if at == place else part for at, part in enumerate(prediction)]
            _refuses(family, family.read, "the prediction", tuple(spoilt))
    if not getattr(family, "share", False):
        mutable = deepcopy(prediction)
        shared = family.read(mutable)
        kept = deepcopy(shared)
        for place in numbers:
            mutable[place][...] += 1.0
        if not _same(shared, kept):
            raise _broken(
                family, f"a reading shares nothing with the prediction, got {shared} after {kept}"
            )


def _check_form(family: Any, wanted: Any, got: Any, name: str) -> None:
    if not _same(wanted, got):
        raise _broken(family, f"it reads {name} as plain numbers, got {got!r} for {wanted!r}")


def _check_label(family: Any, y: Any) -> None:
    """Labels: the same from every kind of number, closed to NaN and None, numbers to text."""
    label = family.label(y)
    for missing in (None, nan, np.float64(nan)):
        _refuses(family, family.label, "the label", missing)
    if not _is_number(y):
        return
    for name, form in _FORMS:
        _check_form(family, label, family.label(form(y)), f"{name} as labels")
    if isinstance(label, float):
        _refuses(family, family.label, "the label", "3.5")


def _contains(shown: Any, y: Any) -> bool | None:
    """Whether a set holds y; None for what is no set, a decision or a threshold."""
    if hasattr(shown, "contains"):
        return bool(shown.contains(y))
    return bool(y in shown) if hasattr(shown, "__contains__") else None


def _critical(family: Any, bound: Any, reading: Any, y: Any) -> float:
    got = bound.critical(reading, y)
    critical = float(got)
    if isnan(critical) or not isinstance(got, float):
        raise _broken(family, f"a critical value is a float, got {got!r} for {reading}, y = {y}")
    again = bound.critical(reading, y)
    if again != critical:
        raise _broken(family, f"critical gives one answer, got {critical} and {again}")
    return critical


def _check_nested(
    family: Any, reading: Any, labels: Sequence[Any], exact: bool, working: Any = None
) -> list[bool]:
    """Sets and critical values of one prediction; whether each y is in at its critical value.

    `working` is the family with a memory, if it has one.
    """
    bound = family if working is None else working
    seen = [family.label(y) for y in labels]
    criticals = [_critical(family, bound, reading, y) for y in seen]
    sides = getattr(family, "sides", None)  # then all of them at the same λ
    near = {s + shift for s in criticals if isfinite(s) for shift in (-1e-3, 0.0, 1e-3)}
    before: list[bool | None] = [False] * len(seen)
    touched = []
    for lam in (-inf, *sorted({*_LAMS, *near}), inf):
        asked = lam if sides is None else (lam,) * sides
        shown = bound.at(reading, asked)
        kind = getattr(family, "shows", None)
        if kind is not None and type(shown) is not kind:
            raise _broken(family, f"it shows {kind.__name__}, got {shown!r}")
        held = [_contains(shown, y) for y in seen]
        again = bound.at(reading, asked)
        if held != [_contains(again, y) for y in seen]:
            raise _broken(family, f"`at` gives one answer, got another at λ = {lam} for {reading}")
        for y, s, now, then in zip(seen, criticals, held, before, strict=True):
            if now is None:
                continue
            promise = _unkept(lam, s, now, bool(then), exact)
            if promise:
                where = f"got {shown} at λ = {lam} for {reading} and y = {y}"
                raise _broken(family, f"{promise}, {where}")
            if lam == s and isfinite(s):
                touched.append(now)
        before = held
    return touched


def _unkept(lam: float, critical: float, now: bool, then: bool, exact: bool) -> str | None:
    """What is wrong if y is in the set at λ or is not, `then` for a smaller λ."""
    if lam == inf and not now:
        return "λ = +inf gives the full set"
    if lam == -inf and now:
        return "λ = −inf gives the empty set"
    if then and not now:
        return "a larger λ gives a larger set"
    if isfinite(lam) and now is not (lam >= critical) and not _rounded(lam, critical, exact):
        return f"y is in from its critical value {critical} on"
    return None


def _check_sides(family: Any, reading: Any, labels: Sequence[Any], exact: bool) -> None:
    """Sets with a λ each: what every side is by itself, and what the others make of it."""
    count, seen = family.sides, [family.label(y) for y in labels]
    for index in range(count):
        _check_nested(family.side(index), family.part(reading, index), labels, exact)
    few = (-inf, -0.5, 0.0, 3.0, inf)
    for lams in product(few, repeat=count):
        shown = family.at(reading, lams)
        promise = _unkept_side(family, reading, seen, lams, shown)
        if promise:
            raise _broken(family, f"{promise}, got {shown} at λ = {lams} for {reading}")


def _unkept_side(
    family: Any, reading: Any, seen: Sequence[Any], lams: tuple[float, ...], shown: Any
) -> str | None:
    """What is wrong with several sets at the λ's that were asked for."""
    if len(shown.parts) != len(lams) or len(shown.lams) != len(lams):
        return f"it shows {len(lams)} parts, each with its λ"
    for index, (part, lam) in enumerate(zip(shown.parts, shown.lams, strict=True)):
        if lam < lams[index] or (family.alone(index) and lam != lams[index]):
            return f"part {index} is at its λ, or above if not alone"
        own = family.side(index).at(family.part(reading, index), lam)
        if [_contains(part, y) for y in seen] != [_contains(own, y) for y in seen]:
            return f"part {index} is the set of its side at its λ"
        larger = family.at(reading, (*lams[:index], lams[index] + 1.0, *lams[index + 1 :]))
        if any(_contains(shown, y) and not _contains(larger, y) for y in seen):
            return f"a larger λ of part {index} gives a larger set"
    return None


def _rounded(lam: float, critical: float, exact: bool) -> bool:
    """Whether rounding may decide if y is in."""
    near = isfinite(critical) and abs(lam - critical) <= _ROUNDING * max(1.0, abs(critical))
    return near and not (exact and lam >= critical)


def _check_defaults(family: Any, readings: Sequence[Any]) -> None:
    bounds = family.bounds()
    if bounds is not None and not (len(bounds) == 2 and bounds[0] < bounds[1]):
        raise _broken(family, f"bounds are None or a pair with low < high, got {bounds}")
    low, high = (-inf, inf) if bounds is None else bounds
    for level in _LEVELS:
        start = family.start(level)
        if not (isinstance(start, float) and isfinite(start) and low <= start <= high):
            raise _broken(family, f"it starts in [{low}, {high}] at level {level}, got {start!r}")
    for reading in readings:
        unit = family.unit(reading)
        if not 0.0 <= unit < inf:
            raise _broken(family, f"a unit is finite and not negative, got {unit} for {reading}")


# Losses


Chain = list[tuple[float, Any]]


class _Link(NamedTuple):
    """Sets in growing order, the empty one first, the full one last, with labels to judge."""

    family: Any
    reading: Any
    chain: Chain
    labels: list[Any]


def _links(family: Any, samples: Sequence[Sample]) -> list[_Link]:
    """The sets of every prediction, side by side where a family has several."""
    links = []
    for prediction, labels in samples:
        seen = [family.label(y) for y in labels]
        for reading in _readings(family, prediction)[:1]:
            for index in range(getattr(family, "sides", 1)):
                one, own = family, reading
                if hasattr(family, "sides"):
                    one, own = family.side(index), family.part(reading, index)
                links.append(_Link(one, own, _chain(one, own, seen), seen))
    return links


def _chain(family: Any, reading: Any, labels: Sequence[Any]) -> Chain:
    criticals = (float(family.critical(reading, y)) for y in labels[::3])
    lams = {*_LAMS[1:-1], *(s for s in criticals if isfinite(s))}
    return [(lam, family.at(reading, lam)) for lam in (-inf, *sorted(lams), inf)]


def _judged_by(loss: Any) -> Any:
    """A family of sets that the loss can judge."""
    remembers = hasattr(loss, "init")
    families: tuple[tuple[Any, Any, Any], ...] = (
        (Widen(), (0.5, 1.0), 0.5),
        (Multilabel(), (0.5, 1.0), (0,)),
        (PixelScale(), np.ones((3, 2, 2)), np.ones((2, 2))),
    )
    for family, prediction, y in families:
        shown = family.at(family.read(prediction), -0.5)
        try:
            loss.update(loss.init(), shown, y) if remembers else loss(shown, y)
        except AttributeError:
            continue
        except Exception:
            break
        return family
    return Widen()


def _judged(
    loss: Any, promise: Declaration, memory: Memory, shown: Any, y: Any
) -> tuple[float | None, Memory]:
    """One loss, if it is the same twice, a number within the range, and leaves a good memory."""

    def where() -> str:
        return f"on {shown} with y = {y}" + (f" and memory {memory}" if memory else "")

    kept = deepcopy(shown)
    untouched = _same(kept, shown)
    got, after = _called(loss, memory, shown, y)
    again = _called(loss, memory, shown, y)
    if not (_same(again[1], after) and (again[0] is got or again[0] == got or got != got)):
        raise _broken(loss, f"it gives one answer, got {(got, after)} and {again} {where()}")
    if untouched and not _same(kept, shown):
        raise _broken(loss, f"it leaves the set as it is, got {shown} of {kept}")
    after = _memory(loss, after, like=memory)
    if hasattr(loss, "rule"):
        ruled = loss.rule(loss.params, memory, not _contains(shown, y))
        if tuple(ruled) != (got, after):
            raise _broken(loss, f"rule and call agree, got {ruled} and {(got, after)} {where()}")
    if got is None:
        return None, after
    try:
        value = number(got, "a loss")
    except SetpointError as error:
        raise _broken(loss, f"it is one number or None: {error} {where()}") from error
    if not promise.low <= value <= promise.high:
        raise _broken(
            loss, f"it lies in [{promise.low:g}, {promise.high:g}], got {value} {where()}"
        )
    return value, after


def _called(loss: Any, memory: Memory, shown: Any, y: Any) -> tuple[Any, Any]:
    if not hasattr(loss, "init"):
        return loss(shown, y), memory
    got = loss.update(memory, shown, y)
    if not (isinstance(got, tuple) and len(got) == 2):
        raise _broken(loss, f"update returns (loss, memory), got {got!r}")
    return got


def _visited(
    loss: Any, promise: Declaration, first: Memory, links: Sequence[_Link]
) -> list[Memory]:
    """Memories that a random stream of sets and labels leads to."""
    rng = np.random.default_rng(2)
    memories, memory = [first], first
    for _ in range(60):
        link = links[int(rng.integers(len(links)))]
        chain, labels = link.chain, link.labels
        # Runs of small sets, then of large ones: memories that only grow show where they stop.
        third = len(chain) // 3
        place = int(rng.integers(third)) if rng.random() < 0.8 else -1 - int(rng.integers(third))
        y = labels[int(rng.integers(len(labels)))]
        _, memory = _judged(loss, promise, memory, chain[place][1], y)
        memories.append(memory)
    return list(dict.fromkeys(memories))[:12]


def _check_direction(loss: Any, promise: Declaration, memory: Memory, chain: Chain, y: Any) -> None:
    """Along growing sets: the promises at both ends, and never a move in the wrong direction."""
    sign = -1.0 if promise.grows else 1.0
    least, most = ("most", "least") if promise.grows else ("least", "most")
    before: float | None = None
    slack = _ROUNDING * (promise.high - promise.low if isfinite(promise.high) else 1.0)
    for lam, shown in chain:
        value, _ = _judged(loss, promise, memory, shown, y)
        if value is None:
            continue
        unkept = None
        if lam == inf and (value - promise.full) * sign > 0.0:
            unkept = f"it is at {most} {promise.full:g} on the full set"
        elif lam == -inf and (value - promise.empty) * sign < 0.0:
            unkept = f"it is at {least} {promise.empty:g} on the empty set"
        elif promise.monotone and before is not None and (value - before) * sign > slack:
            unkept = f"it does not {'shrink' if promise.grows else 'grow'} with the set"
        if unkept:
            smaller = "" if before is None else f", {before} on a smaller one"
            raise _broken(loss, f"{unkept}, got {value} on {shown} with y = {y}{smaller}")
        before = value


def _check_share(loss: Any, link: _Link) -> None:
    """Whether `critical` is the smallest λ at which the loss is at its level or below."""
    for y, level in product(link.labels, _LEVELS):
        values = link.family.criticals(link.reading, y)
        critical = loss.critical(values, level)
        told = np.asarray(values, dtype=float).ravel().tolist()
        for lam in filter(isfinite, (*told, *(each for each, _ in link.chain))):
            value = loss(link.family.at(link.reading, lam), y)
            if value is not None and (value <= level + _ROUNDING) is not (lam >= critical):
                raise _broken(
                    loss,
                    f"critical is the smallest λ that keeps the level, got {critical} for {values} "
                    f"and level {level}, and a loss of {value} at λ = {lam}",
                )


# Stretches


_THETAS = (
    *(-1e300, -1e6, -710.0, -709.0, -100.0, -10.0, -1.0, -0.25, -1e-6),
    *(0.0, 1e-6, 0.25, 1.0, 10.0, 100.0, 709.0, 710.0, 1e6, 1e300),
)


def _phi(stretch: Any, params: Memory, memory: Memory, theta: float) -> float:
    lam = stretch.phi(params, memory, theta)
    if type(lam) is not float or not isfinite(lam):
        raise _broken(stretch, f"φ(θ) is a finite float, got {lam!r} at θ = {theta}, {memory}")
    if stretch.phi(params, memory, theta) != lam:
        raise _broken(stretch, f"φ gives one answer, got {lam} first at θ = {theta}, {memory}")
    return lam


def _check_phi(stretch: Any, params: Memory, memory: Memory) -> None:
    """φ under one memory: finite, monotone, inverted by `inverse`."""
    lams = [_phi(stretch, params, memory, theta) for theta in _THETAS]
    for (theta, lam), (larger, above) in pairwise(zip(_THETAS, lams, strict=True)):
        if above < lam:
            raise _broken(
                stretch, f"φ does not fall with θ, got φ({theta}) = {lam} and φ({larger}) = {above}"
            )
    for theta, lam in zip(_THETAS, lams, strict=True):
        back = stretch.inverse(lam, memory)
        if not (isinstance(back, float) and isfinite(back)):
            raise _broken(stretch, f"inverse(λ) is a finite float, got {back!r} at λ = {lam}")
        size = max(1.0, abs(theta), *map(abs, memory))
        near = theta - 1e-6 * size, theta + 1e-6 * size
        low, high = (_phi(stretch, params, memory, each) for each in near)
        # Where φ is flat any θ of the same λ will do.
        held = near[0] <= back <= near[1] if low < lam < high else low <= lam <= high
        again = _phi(stretch, params, memory, back)
        if not held or abs(again - lam) > 1e-6 * max(1.0, abs(lam), *map(abs, memory)):
            raise _broken(
                stretch, f"inverse(φ(θ)) = θ, got {back} for θ = {theta} with memory {memory}"
            )


def _moved(stretch: Any, params: Memory, first: Memory) -> list[Memory]:
    """Memories that a random stream of excesses and scores leads to, the extreme ones included."""
    rng = np.random.default_rng(3)
    low, high = getattr(stretch, "low", None), getattr(stretch, "high", None)
    low, high = -inf if low is None else low, inf if high is None else high
    memories, memory = [], first
    steps = [(float(e), float(s), float(at)) for e, s, at in rng.normal(size=(200, 3))]
    extremes = product((0.9, -0.1, 0.0, 1e6, -1e6), (inf, -inf, 1e300, -1e300, 0.0), (0.0, 1e300))
    for excess, score, lam in (*steps, *extremes):
        moved = stretch.move(params, memory, excess, score, lam)
        where = f"by excess {excess}, score {score}, λ = {lam} from {memory}"
        if not _same(stretch.move(params, memory, excess, score, lam), moved):
            raise _broken(stretch, f"move gives one answer, got {moved} first {where}")
        memory = _memory(stretch, moved, f"memory, moved {where},", like=memory)
        if not all(low <= each <= high for each in memory):
            raise _broken(stretch, f"memory stays in [{low}, {high}], got {memory} {where}")
        memories.append(memory)
    return memories[:: len(memories) // 12]


# Step rules


def _stepped(
    step: Any, params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """One step, if it goes the right way and is the same twice."""

    def curve(at: float) -> float:
        return 1.0 if at < critical else 0.0

    got = step.rule(params, theta, memory, excess, critical, curve)
    where = f"from θ = {theta} with excess {excess} and memory {memory}"
    if not (isinstance(got, tuple) and len(got) == 2 and type(got[0]) is float):
        raise _broken(step, f"rule returns (θ, memory), θ a float, got {got!r} {where}")
    if not _same(step.rule(params, theta, memory, excess, critical, curve), got):
        raise _broken(step, f"rule gives one answer, got {got} first {where}")
    if hasattr(step, "update") and not _same(
        step.update(theta, memory, excess, critical, curve), got
    ):
        raise _broken(step, f"rule and update agree, got {got} by the rule {where}")
    moved, after = got
    if not isfinite(moved) or (moved - theta) * excess < 0.0 or (excess == 0.0 and moved != theta):
        raise _broken(step, f"θ moves with the excess or not at all, got {moved} {where}")
    return moved, _memory(step, after, like=memory)


_POLICIES = ("up", "down", "coin", "any", "swing")


def _push(policy: str, theta: float, within: Range, before: float, draw: float) -> float:
    """The loss an adversary picks."""
    match policy:
        case "up":
            return 1.0
        case "down":
            return 0.0
        case "coin":
            return float(draw < 0.5)
        case "any":
            return draw
    # Up until the safeguard stops it, then down until it does, and so on.
    return 0.0 if theta > within.high - 1e-3 else 1.0 if theta < within.low + 1e-3 else before


def _check_bound(
    step: Any, params: Memory, first: Memory, within: Range, policy: str, rng: np.random.Generator
) -> None:
    """Σ(l − r) against what the rule states, where losses obey the safeguard and nothing else."""
    least, most = step.bound(within)
    slack = _ROUNDING * (1.0 + abs(least) + abs(most))
    theta, memory, total, loss = within.start, first, 0.0, 1.0
    lowest = highest = 0.0
    waiting: list[float] = []
    for labels in range(1, 501):
        while len(waiting) < within.pending:
            waiting.append(theta)
        shown = waiting.pop(int(rng.integers(len(waiting))))
        draw = float(rng.random())
        loss = _push(policy, theta, within, loss, draw)
        loss = 0.0 if shown > within.high else 1.0 if shown < within.low else loss
        excess = within.fall + loss
        critical = shown + (draw if excess > 0.0 else -draw)
        theta, memory = _stepped(step, params, theta, memory, excess, critical)
        total += excess
        if not least - slack <= total <= most + slack:
            raise _broken(
                step,
                f"its bound holds, got Σ(l − r) = {total} outside [{least}, {most}] after "
                f"{labels} labels with {within}",
            )
        lowest, highest = min(lowest, total), max(highest, total)
        _check_reach(step, within, theta, highest - lowest, slack)


def _check_reach(step: Any, within: Range, theta: float, widest: float, slack: float) -> None:
    """θ against `reach` and the widest window against `window`, where the rule states them."""
    if hasattr(step, "reach"):
        low, high = step.reach(within)
        if not low - slack <= theta <= high + slack:
            raise _broken(
                step, f"θ stays in its reach, got {theta} outside [{low}, {high}], {within}"
            )
    if hasattr(step, "window") and widest > step.window(within) + slack:
        raise _broken(
            step,
            f"its window bound holds, got {widest} beyond {step.window(within)} with {within}",
        )
