"""Which parts are the library's own: these keep their promises, a user's are checked at work."""

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

__all__ = ["ours", "trusted"]

C = TypeVar("C", bound=type)

_OURS: set[type] = set()
_PLAIN = (bool, int, float, str, np.ndarray)


def ours(cls: C) -> C:
    """Registers the class of a library part; the outermost decorator of the class."""
    _OURS.add(cls)
    return cls


def trusted(part: Any) -> bool:
    """Whether a part, and every part among its options, is the library's own.

    A subclass is not, nor is a part that holds a function of its user.

    >>> from setpoint.losses import Custom, Miscoverage
    >>> trusted(Miscoverage()), trusted(Custom(lambda shown, y: 0.0))
    (True, False)
    """
    if type(part) not in _OURS:
        return False
    return all(_safe(getattr(part, field.name)) for field in fields(part) if field.init)


def _safe(option: Any) -> bool:
    """Whether an option is a plain value or a trusted part."""
    if isinstance(option, tuple):
        return all(map(_safe, option))
    return option is None or isinstance(option, _PLAIN) or trusted(option)
