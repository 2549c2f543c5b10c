"""From the text of a bulk loop to a function: machine code with numba, plain Python without.

The machine code is kept in a cache folder beside the text it was made from, under a name that
changes whenever the text or one of the rules does.
"""

import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from inspect import getsource
from math import inf, nan
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

import numpy as np

from setpoint import combine, losses, steps, stretches
from setpoint.bulk import loops as _loops
from setpoint.bulk.vectors import Layout
from setpoint.sets import intervals

__all__ = ["cache_folder", "compiled", "kernel", "tally"]

_MODULES = (combine, losses, intervals, steps, stretches)

_TEXTS: dict[str, Callable[..., str]] = {
    "along": _loops.along,
    "fleet": _loops.fleet,
    "sweep": _loops.sweep,
    "aim": _loops.aim,
    "aim_rows": partial(_loops.aim, rows=True),
    "learn": _loops.learn,
    "learn_rows": partial(_loops.learn, rows=True),
}


def compiled() -> bool:
    """Whether numba is at hand, and not turned off by SETPOINT_PLAIN=1."""
    return os.environ.get("SETPOINT_PLAIN", "") != "1" and (
        importlib.util.find_spec("numba") is not None
    )


def kernel(layout: Layout, name: str, *, narrow: bool = False) -> Callable[..., None]:
    """A loop for controllers of this layout: machine code with numba, else plain Python.

    `narrow` says that the data, and so the ends that are shown, are float32.
    """
    fast = compiled()
    key = (layout.key, name, narrow, fast)
    made = _made.get(key)
    if made is None:
        text = _TEXTS[name](layout, narrow=narrow)
        made = _compile(layout, text, name) if fast else _quiet(_plain(layout.rules, text, name))
        while len(_made) >= _MOST:
            _made.pop(next(iter(_made)), None)
        _made[key] = made
    return made


_made: dict[Any, Callable[..., None]] = {}
_MOST = 256
"""How many loops are kept ready; the oldest is forgotten."""


@lru_cache(maxsize=1)
def tally() -> Callable[..., None]:
    """Counts one step of a sweep in plain Python."""
    return _plain({}, _loops.tally(), "tally")


def _plain(
    rules: dict[str, Any], text: str, name: str, float64: type = float
) -> Callable[..., None]:
    """The text as a Python function.

    There float64 is Python's own float, which is faster than numpy's; compiled it must be
    numpy's, because a float of a float32 is a float32 to numba.
    """
    namespace: dict[str, Any] = {"inf": inf, "nan": nan, "float32": np.float32, **rules}
    namespace["float64"] = float64
    exec(compile(text, f"<setpoint {name}>", "exec"), namespace)
    made: Callable[..., None] = namespace[name]
    return made


def _quiet(loop: Callable[..., None]) -> Callable[..., None]:
    """The loop without warnings: where it has choices, it also computes what it does not take."""

    def run(*arguments: Any) -> None:
        with np.errstate(all="ignore"):
            loop(*map(_floats, arguments))

    return run


class _Table:
    """An array of two dimensions whose entries are Python's own numbers, which are faster."""

    def __init__(self, array: np.ndarray) -> None:
        self.shape = array.shape
        self._rows: list[Any] = [memoryview(row) for row in array]

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, tuple):
            row, rest = place
            return self._rows[row][rest]
        return self._rows[place]

    def __setitem__(self, place: tuple[int, int], value: float) -> None:
        row, column = place
        self._rows[row][column] = value


def _floats(argument: Any) -> Any:
    """The argument of a loop, with Python's own numbers instead of numpy's if it is an array."""
    if not isinstance(argument, np.ndarray):
        return argument
    return _Table(argument) if argument.ndim == 2 else memoryview(argument)  # type: ignore[arg-type]


def _compile(layout: Layout, text: str, name: str) -> Callable[..., None]:
    import numba

    _register()
    module = _module(layout, text)
    if module is not None:
        try:
            return cast(Callable[..., None], numba.njit(cache=True)(getattr(module, name)))
        except RuntimeError:  # the text can be read there, but no machine code written beside it
            return cast(Callable[..., None], numba.njit(getattr(module, name)))
    for rule in layout.rules.values():
        numba.extending.register_jitable(rule)
    plain = _plain(layout.rules, text, name)
    loop = numba.njit(_plain(layout.rules, text, name, np.float64))

    def run(*arguments: Any) -> None:
        nonlocal loop
        try:
            loop(*arguments)
        except numba.core.errors.NumbaError:  # a user's rule that cannot be compiled
            loop = _quiet(plain)
            loop(*arguments)

    return run


@lru_cache(maxsize=1)
def _register() -> None:
    """Lets compiled code call the library's rules."""
    from numba.extending import register_jitable

    for module in _MODULES:
        for value in vars(module).values():
            if isinstance(value, FunctionType) and value.__module__ == module.__name__:
                register_jitable(value)


def _module(layout: Layout, text: str) -> ModuleType | None:
    """The text as a module in the cache folder, where numba can keep its machine code beside it.

    None where a rule is a user's own, the folder cannot be written, or the source of the rules,
    by which machine code is told from that of other versions, is not at hand.
    """
    ours = {module.__name__ for module in _MODULES}
    if any(rule.__module__ not in ours for rule in layout.rules.values()):
        return None
    imports = [
        f"from {rule.__module__} import {rule.__name__} as {name}"
        for name, rule in layout.rules.items()
    ]
    whole = "\n".join(
        [
            "from math import inf, nan",
            "from numpy import float32, float64",
            *imports,
            "",
            "",
            text,
            "",
        ]
    )
    try:
        digest = hashlib.sha256((_fingerprint() + whole).encode()).hexdigest()[:24]
        path = cache_folder() / f"kernel_{digest}.py"
        if not path.exists() or path.read_bytes() != whole.encode():
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_suffix(f".{os.urandom(6).hex()}")
            beside.write_bytes(whole.encode())
            os.replace(beside, path)
    except (OSError, RuntimeError):  # RuntimeError: there is no home folder
        return None
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module  # where numba looks for it
    exec(compile(whole, path, "exec"), vars(module))
    return module


@lru_cache(maxsize=1)
def _fingerprint() -> str:
    """Changes whenever a rule does: machine code is kept by the text of the loop alone."""
    return "".join(getsource(module) for module in _MODULES)


def cache_folder() -> Path:
    """Where compiled loops are kept: SETPOINT_CACHE, or the user's cache folder."""
    chosen = os.environ.get("SETPOINT_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "setpoint" / "kernels"
