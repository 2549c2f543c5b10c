"""What a part can do, and which parts are the library's own: a user's are checked at work."""

from dataclasses import fields
from typing import Any, TypeVar, _ProtocolMeta

import numpy as np

__all__ = ["Capability", "is_ours", "ours", "trusted"]

C = TypeVar("C", bound=type)

_OURS: set[type] = set()
_PLAIN = (bool, int, float, str, np.ndarray)


class Capability(_ProtocolMeta):
    """The kind of protocols that say what a part can do.

    A part can do it if it has the names of the protocol. Each class is looked at once, without
    running any of its properties: Python itself takes longer than a hundred steps for it, and asks
    for values that a part may not have yet. A class in place of a part can do nothing.
    """

    def __instancecheck__(cls, part: Any) -> bool:  # noqa: N805
        if isinstance(part, type):
            return False
        key = cls, type(part)
        missing = _MISSING.get(key)
        if missing is None:  # what the class itself does not have; an instance still may
            asked = {n for base in cls.__mro__ for n in vars(base) if n[0] != "_"} or {"__call__"}
            bases = type(part).__mro__
            missing = {n for n in asked if not any(n in vars(base) for base in bases)}
            _MISSING[key] = missing
        return not missing or all(hasattr(part, name) for name in missing)


_MISSING: dict[tuple[type, type], set[str]] = {}


def ours(cls: C) -> C:
    """Registers the class of a library part; the outermost decorator of the class."""
    _OURS.add(cls)
    return cls


def is_ours(cls: type) -> bool:
    """Whether a class is a library part."""
    return cls in _OURS


def trusted(part: Any) -> bool:
    """Whether a part, and every part among its options, is the library's own.

    A subclass is not, nor is a part that holds a function of its user.

    >>> from setpoint.losses import Custom, Miscoverage
    >>> trusted(Miscoverage()), trusted(Custom(lambda shown, y: 0.0))
    (True, False)
    """
    if not is_ours(type(part)):
        return False
    return all(_safe(getattr(part, field.name)) for field in fields(part) if field.init)


def _safe(option: Any) -> bool:
    """Whether an option is a plain value or a trusted part."""
    if isinstance(option, tuple):
        return all(map(_safe, option))
    return option is None or isinstance(option, _PLAIN) or trusted(option)
