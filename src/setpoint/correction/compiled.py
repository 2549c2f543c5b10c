"""The rules of a correction as machine code for live streams, where a process takes many steps.

Below `MANY` labels plain Python is done before machine code is even loaded. From then on a thread
makes or loads it; when it is there, streams keep what the rules write into as arrays, and call the
same functions compiled: the numbers are the same to the bit.
"""

import hashlib
import importlib.util
import inspect
import os
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from threading import Thread
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from setpoint.correction import labels, rules, seasons, tables

MODULES = (rules, seasons, tables, labels)
"""The modules whose functions the rules call."""
MANY = 0 if os.environ.get("SETPOINT_PLAIN") == "0" else 50_000
"""From this many labels in a process on, live rules run as machine code."""
_KNOWN = {rules.predict: rules.learn, labels.predict: labels.learn}
_NOTHING = np.zeros(1)
_came = 0.0


class Fast(NamedTuple):
    """`predict` and `learn` as machine code."""

    predict: Any
    learn: Any


_made: dict[Any, Fast | None] = {}


class Arrays:
    """What a stream's rules write into, as arrays: its table, its annex, the base made last.

    That base is kept as `made` too, the tuple that a receipt holds.
    """

    __slots__ = ("annex", "base", "learn", "made", "predict", "table")

    def __init__(self, fast: Fast, table: list[float], annex: list[float]) -> None:
        self.predict, self.learn = fast
        self.table, self.annex = np.array(table), np.array(annex) if annex else _NOTHING
        self.made: Any = None
        self.base = _NOTHING

    @property
    def listed(self) -> list[float]:
        """The annex, empty before there is one."""
        numbers: list[float] = [] if self.annex is _NOTHING else self.annex.tolist()
        return numbers

    def begin(self, annex: int) -> None:
        """Makes an annex, if there is none."""
        if self.annex is _NOTHING:
            self.annex = np.zeros(annex)


def one_more(key: Any, make: Callable[[], Fast], work: float = 1.0) -> Fast | None:
    """Counts a label that rules learnt from; what `make` compiles, once it is there."""
    global _came
    _came += work
    if _came < MANY:
        return None
    if key not in _made:
        _made[key] = None
        if os.environ.get("SETPOINT_PLAIN") != "1" and importlib.util.find_spec("numba"):
            Thread(target=_make, args=(key, make), name="setpoint compiles", daemon=True).start()
    return _made[key]


def _make(key: Any, make: Callable[[], Fast]) -> None:
    from numba.core.errors import NumbaError

    with suppress(NumbaError):
        _made[key] = make()


def rules_once_many(
    predict: Any, params: Any, memory: Any, table: Any, annex: Any, base: Any, work: float = 1.0
) -> Fast | None:
    """Counts a label; the rules of a correction as machine code, once they are there.

    `work` is how many times as much as that of an interval it took.
    """
    if predict not in _KNOWN:
        return None

    def make() -> Fast:
        """Makes machine code for arguments like these, or loads it, by running it on them."""
        fast, made = _compiled(predict), np.array(base)
        own, more = np.array(table), np.array(annex or [0.0])
        count, labelled = len(made) // 5, predict is labels.predict
        row: Any = np.full(count, 1.0 / count) if labelled else (0.0,) * (3 + int(params[5]))
        fast.predict(params, memory, own, more, row, 0.0, made)
        fast.learn(params, memory, own, more, made, 0.0)
        return fast

    return one_more((predict, len(params)), make, work)


@lru_cache(maxsize=8)
def _compiled(predict: Any) -> Fast:
    return machine_code(*(_calling(rule, digest()) for rule in (predict, _KNOWN[predict])))


def machine_code(predict: Any, learn: Any) -> Fast:
    """Two functions that call the rules, as machine code that is kept on disk where it can be."""
    from numba import njit

    register()
    compiled = []
    for whole in (predict, learn):
        try:
            compiled.append(njit(cache=True, error_model="numpy")(whole))
        except RuntimeError:  # numba finds no folder to keep machine code in
            compiled.append(njit(error_model="numpy")(whole))
    return Fast(*compiled)


def _calling(rule: Any, stamp: str) -> Any:
    """A rule that compiles anew whenever some rule changes, as the stamp says."""
    if rule in _KNOWN:

        def predict(p: Any, m: Any, table: Any, annex: Any, row: Any, w: float, base: Any) -> Any:
            stamp  # noqa: B018
            return rule(p, m, table, annex, row, w, base)

        return predict

    def learn(p: Any, m: Any, table: Any, annex: Any, base: Any, y: float) -> Any:
        stamp  # noqa: B018
        return rule(p, m, table, annex, base, y)

    return learn


@lru_cache(maxsize=1)
def register() -> None:
    """Lets compiled code call the rules."""
    for module in MODULES:
        callable_by_machine_code(
            *(v for v in vars(module).values() if getattr(v, "__module__", 0) == module.__name__)
        )


def callable_by_machine_code(*functions: Any) -> None:
    """Lets compiled code call some functions."""
    from numba.extending import register_jitable

    for value in functions:
        if isinstance(value, FunctionType):
            register_jitable(value)


@lru_cache(maxsize=1)
def digest() -> str:
    """Changes whenever a rule does."""
    try:
        sources = [inspect.getsource(module) for module in MODULES]
    except OSError:  # only byte code is installed: nothing is found again
        return os.urandom(16).hex()
    return hashlib.sha256("".join(sources).encode()).hexdigest()
