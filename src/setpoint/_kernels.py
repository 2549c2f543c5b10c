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

from setpoint import _loops, combine, losses, sets, steps, stretches
from setpoint._layout import Layout

__all__ = ["cache_folder", "compiled", "kernel"]

_MODULES = (combine, losses, sets, steps, stretches)

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
    if key not in _made:
        text = _TEXTS[name](layout, narrow=narrow)
        _made[key] = _compile(layout, text, name) if fast else _plain(layout, text, name)
    return _made[key]


_made: dict[Any, Callable[..., None]] = {}


def _plain(layout: Layout, text: str, name: str) -> Callable[..., None]:
    namespace: dict[str, Any] = {"inf": inf, "nan": nan, "float32": np.float32, **layout.rules}
    exec(compile(text, f"<setpoint {name}>", "exec"), namespace)
    made: Callable[..., None] = namespace[name]
    return made


def _compile(layout: Layout, text: str, name: str) -> Callable[..., None]:
    import numba

    _register()
    module = _module(layout, text)
    if module is not None:
        return cast(Callable[..., None], numba.njit(cache=True)(getattr(module, name)))
    for rule in layout.rules.values():
        numba.extending.register_jitable(rule)
    plain = _plain(layout, text, name)
    loop = numba.njit(plain)

    def run(*arguments: Any) -> None:
        nonlocal loop
        try:
            loop(*arguments)
        except numba.core.errors.NumbaError:  # a user's rule that cannot be compiled
            loop = plain
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

    None where a rule is a user's own, or the folder cannot be written.
    """
    ours = {module.__name__ for module in _MODULES}
    if any(rule.__module__ not in ours for rule in layout.rules.values()):
        return None
    imports = [
        f"from {rule.__module__} import {rule.__name__} as {name}"
        for name, rule in layout.rules.items()
    ]
    whole = "\n".join(
        ["from math import inf, nan", "from numpy import float32", *imports, "", "", text, ""]
    )
    digest = hashlib.sha256((_fingerprint() + whole).encode()).hexdigest()[:24]
    path = cache_folder() / f"kernel_{digest}.py"
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_suffix(f".{os.urandom(6).hex()}")
            beside.write_text(whole, encoding="utf-8")
            os.replace(beside, path)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            return None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
    except OSError:
        return None
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
