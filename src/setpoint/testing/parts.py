"""What every part promises: to be a value, to keep its memory, to be written as a spec."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from math import inf, isfinite, isnan, nan
from typing import Any

import numpy as np

from setpoint import spec
from setpoint.controller import Controller, Risk
from setpoint.errors import SetpointError
from setpoint.losses import Miscoverage, declaration, fits
from setpoint.sets import Multilabel, PixelScale, Sides, Widen
from setpoint.steps import Fixed

__all__ = [
    "ConformanceError",
    "Memory",
    "broken",
    "check_value",
    "first_memory",
    "in_use",
    "memory_of",
    "same_values",
]

Memory = tuple[float, ...]


class ConformanceError(SetpointError, AssertionError):
    """A part breaks a promise that the controller relies on."""

    __module__ = "setpoint.testing"  # where its users find it


def broken(part: Any, promise: str) -> ConformanceError:
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
    plain = type(got) is tuple and all(type(each) is float for each in got)
    if not plain or not all(isfinite(each) or what == "params" for each in got):
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
    for each in _classes(part):
        names[each.__name__] = each
        text = text.replace(each.__qualname__, each.__name__)
    try:
        printed = eval(text, names)
    except Exception as error:
        raise broken(part, f"it prints as the call that makes it, got {part!r}") from error
    if printed != part:
        raise broken(part, f"it prints as the call that makes it, got {printed!r} from {part!r}")
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
    risks = [risk] * (part.sides if isinstance(part, Sides) else 1)
    families = (part,) if role == "sets" else (Widen(), Multilabel(), PixelScale())
    family = next(family for family in families if fits(family, loss) is None)
    controller = Controller(family, risks, part if role == "stretches" else None)
    text = spec.to_toml(controller)
    if spec.from_toml(text) != controller:
        raise broken(part, f"its spec describes it, got {spec.from_toml(text)} from\n{text}")
