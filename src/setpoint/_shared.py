"""Objects that threads share: the same class, whose calls wait for their turn."""

import os
import threading
import weakref
from functools import wraps
from inspect import getattr_static
from typing import Any

_all: "weakref.WeakSet[Any]" = weakref.WeakSet()


def shared(kind: Any, *names: str) -> Any:
    """A class whose methods and properties of these names lock one another out."""

    class Shared(kind):  # type: ignore[misc]
        """One with a lock around every call."""

        __slots__ = ("_lock",)

        def __init__(self, *arguments: Any, **options: Any) -> None:
            self._lock = threading.RLock()
            _all.add(self)
            super().__init__(*arguments, **options)

    for name in names:
        setattr(Shared, name, _locked(getattr_static(kind, name)))
    return Shared


def _locked(original: Any) -> Any:
    """A method or a property under the lock of its object."""
    call: Any = original.fget if isinstance(original, property) else original

    @wraps(call)
    def turn(self: Any, *arguments: Any, **options: Any) -> Any:
        with self._lock:
            return call(self, *arguments, **options)

    return property(turn) if isinstance(original, property) else turn


def _unlock() -> None:
    """The thread that held a lock does not exist in a forked child."""
    for each in _all:
        each._lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_unlock)
