"""From a layout to loops: machine code with numba where it pays, plain Python elsewhere.

Compiled loops capture the plan's own functions. The key of numba's cache is what they capture, and
with it a digest of every rule, so that a changed rule is never served by old code. A user's own
rules are compiled too and never kept.
"""

import hashlib
import importlib.util
import inspect
import os
from collections.abc import Iterator
from functools import cache, lru_cache
from math import inf
from types import FunctionType
from typing import Any

import numpy as np

from setpoint import combine, losses, published, recursion, stretches, watch
from setpoint import state as states
from setpoint.bulk import chains
from setpoint.bulk import layout as layouts
from setpoint.bulk import loops as loop_texts
from setpoint.bulk.chains import Access, written_out
from setpoint.bulk.layout import Layout
from setpoint.bulk.loops import Loops, loops_of
from setpoint.correction import fans, seasons, tables
from setpoint.correction import labels as label_rules
from setpoint.correction import rules as correction_rules
from setpoint.metrics import tally
from setpoint.sets import fan, fan_arithmetic, intervals, multiplied
from setpoint.steps import account, claims, gate

SMALL = 50_000
"""Below this many steps plain Python is done before machine code is loaded."""

_RULES = (
    *(
        combine,
        losses,
        correction_rules,
        label_rules,
        fan,
        fan_arithmetic,
        intervals,
        multiplied,
        recursion,
    ),
    *(account, claims, fans, gate, published, seasons, stretches, tables, tally),
    watch,
)
"""The modules whose functions compiled loops may call."""


def compiled(steps: float = inf) -> bool:
    """Whether this many steps run as machine code.

    That is where numba is at hand and it pays; SETPOINT_PLAIN=1 turns machine code off, and
    SETPOINT_PLAIN=0 asks for it however few the steps.
    """
    plain = os.environ.get("SETPOINT_PLAIN", "")
    wanted = plain != "1" and (plain == "0" or steps >= SMALL)
    return wanted and importlib.util.find_spec("numba") is not None


def loops(layout: Layout, steps: float) -> Loops:
    """The loops of a layout for this many steps."""
    steps *= 1.0 + 0.05 * (layout.classes or 0)
    return _fast(layout.loops) if compiled(steps) else _plain(layout.loops)


# Plain.


@lru_cache(maxsize=256)
def _plain(layout: Layout) -> Loops:
    steps = recursion.recursion(layout.rules, _as_it_is)
    return loops_of(layout, steps, mark=_as_it_is, jit=_quiet, access=_SLICES, stamp="")


def _as_it_is(function: Any) -> Any:
    return function


def _reader(at: int, size: int) -> Any:
    return lambda z, s: tuple(z[s][at : at + size])


def _writer(at: int, size: int) -> Any:
    def write(row: Any, values: Any) -> None:
        for place in range(size):
            row[at + place] = values[place]

    return write


_SLICES = Access(_reader, _writer)


def _quiet(loop: Any) -> Any:
    """The loop without warnings, on Python's own numbers, which are faster than numpy's.

    `z` and `pool` are tables of all streams, of which a loop takes those that move.
    """
    tables = [name in ("z", "pool") for name in inspect.signature(loop).parameters]

    def run(*arguments: Any) -> None:
        views = zip(tables, arguments, strict=True)
        with np.errstate(all="ignore"):
            loop(*[_Rows(values) if is_table else _views(values) for is_table, values in views])

    return run


def _views(argument: Any) -> Any:
    """An array as views of Python's own numbers, through which loops read and write."""
    if not isinstance(argument, np.ndarray):
        return argument
    if argument.ndim > 1:
        return [_views(row) for row in argument]
    return memoryview(argument)  # type: ignore[arg-type]


class _Rows(dict[int, Any]):
    """Views of the rows of a table, each made when a loop comes to it."""

    def __init__(self, table: np.ndarray) -> None:
        self.table = table

    def __missing__(self, row: int) -> Any:
        view = self[row] = memoryview(self.table[row])
        return view


def plain(text: Any) -> Any:
    """A loop that belongs to no layout, made by `text` of a stamp, in plain Python."""
    return _quiet(text(""))


# Compiled.


def machine(text: Any) -> Any:
    """The same as machine code."""
    _register()
    return _jit(text(_stamp()), cache=True)


@cache
def called(rule: Any) -> Any:
    """A rule of the library as machine code, to be called by itself."""

    def text(stamp: str) -> Any:
        def run(*arguments: Any) -> Any:
            stamp  # noqa: B018
            return rule(*arguments)

        return run

    return machine(text)


@lru_cache(maxsize=256)
def _fast(layout: Layout) -> Loops:
    from numba.core.errors import NumbaError
    from numba.extending import register_jitable

    _register()
    known = all(_is_known(rule) for rule in _functions(layout))
    for rule in _functions(layout):
        if not _is_shared(rule):
            register_jitable(rule)

    def jit(loop: Any) -> Any:
        return _jit(loop, cache=known)

    steps = recursion.recursion(layout.rules, register_jitable)
    fast = loops_of(
        layout, steps, mark=register_jitable, jit=jit,
        access=written_out(register_jitable), stamp=_stamp(),
    )  # fmt: skip
    if known:
        return fast

    def safe(place: int) -> Any:
        """A loop that goes on in plain Python where a user's rule cannot be compiled."""
        broken = False

        def run(*arguments: Any) -> None:
            nonlocal broken
            if not broken:
                try:
                    fast[place](*arguments)
                except NumbaError:
                    broken = True
            if broken:
                _plain(layout)[place](*arguments)

        return run

    return Loops(*(safe(place) for place in range(len(fast))))


def _jit(loop: Any, *, cache: bool) -> Any:
    from numba import njit

    try:
        return njit(cache=cache, error_model="numpy", nogil=True)(loop)
    except RuntimeError:  # numba finds no folder to keep machine code in
        return njit(error_model="numpy", nogil=True)(loop)


def _functions(layout: Layout) -> Iterator[Any]:
    """The rules that a layout's loops call."""
    rules = layout.rules
    called = [rule for link in rules.links for rule in (*link[:3], *(link.book or ()))]
    called += [rules.phi, rules.move, rules.merge, *(rules.ends or ()), rules.sound]
    for rule in (*called, rules.predict, rules.learn):
        if rule is not None:
            yield rule
            if inspect.unwrap(rule) is not rule:
                yield inspect.unwrap(rule)


def _is_known(rule: Any) -> bool:
    """Whether a rule is written in the library's own modules."""
    own = inspect.unwrap(rule)
    return any(own.__module__ == module.__name__ for module in _RULES)


def _is_shared(rule: Any) -> bool:
    """Whether it stands in one of them by name, and so is registered already."""
    return any(vars(module).get(rule.__name__) is rule for module in _RULES)


@lru_cache(maxsize=1)
def _register() -> None:
    """Lets compiled code call the library's rules."""
    from numba.extending import register_jitable

    for module in _RULES:
        for value in vars(module).values():
            if isinstance(value, FunctionType) and value.__module__ == module.__name__:
                register_jitable(value)


@lru_cache(maxsize=1)
def _stamp() -> str:
    """Changes whenever a rule does; numba itself sees changes of the loops' own file only."""
    try:
        modules = (*_RULES, loop_texts, chains, layouts, states)
        sources = [inspect.getsource(module) for module in modules]
    except OSError:  # only byte code is installed: nothing is found again
        return os.urandom(16).hex()
    return hashlib.sha256("".join(sources).encode()).hexdigest()
