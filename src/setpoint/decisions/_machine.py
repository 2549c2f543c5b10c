"""The rule of a gate as machine code, and when it pays."""

import importlib.util
import os
from collections.abc import Callable
from functools import cache
from math import inf
from types import FunctionType
from typing import Any, NamedTuple

from setpoint.decisions import _rule as rule

SMALL = 50_000
"""Below this many decisions plain Python is done before machine code is loaded."""


class Rules(NamedTuple):
    """The functions of the rule that others call."""

    begin: Callable[..., None]
    decide: Callable[..., int]
    answer: Callable[..., None]
    lose: Callable[..., None]
    teach: Callable[..., None]
    play: Callable[..., None]


PLAIN = Rules(*(getattr(rule, name) for name in Rules._fields))
"""The rule in plain Python."""


def compiled(steps: float = inf) -> bool:
    """Whether this many decisions run as machine code; SETPOINT_PLAIN is 1 for never, 0 always."""
    plain = os.environ.get("SETPOINT_PLAIN", "")
    wanted = plain != "1" and (plain == "0" or steps >= SMALL)
    return wanted and importlib.util.find_spec("numba") is not None


@cache
def rules() -> Rules:
    """The rule as machine code."""
    from numba import njit
    from numba.extending import register_jitable

    for value in vars(rule).values():
        if isinstance(value, FunctionType) and value.__module__ == rule.__name__:
            register_jitable(value)

    def jit(function: Any) -> Any:
        try:
            return njit(cache=True, error_model="numpy", nogil=True)(function)
        except RuntimeError:  # numba finds no folder to keep machine code in
            return njit(error_model="numpy", nogil=True)(function)

    return Rules(*map(jit, PLAIN))
