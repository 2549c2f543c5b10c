"""Conformance checks: whether a part keeps the promises that the controller relies on.

    check_set(family)        nested in λ, full and empty at ±inf, exact critical values, safe reads;
                             what it draws, remembers or splits into sides, if it does
    check_loss(loss)         in its range, true to its word on the full and empty set, one direction
    check_stretch(stretch)   finite and monotone in θ, inverted by `inverse`, a memory in bounds
    check_step(step)         moves θ the right way, and its stated bound survives an adversary
    check_correction(part)   one base for a row, a memory and a table of fixed size, all finite

Every part is also checked to be a value: equal to its twin, hashable, printed as the call that
makes it, the same before and after use. Each check runs many cases, the same ones every time,
and raises `ConformanceError`: one sentence with the broken promise and the values that broke it.
Plain numpy and Python: call them from any test runner, for the library's parts or your own.
"""

from setpoint.testing.parts import ConformanceError
from setpoint.testing.rules import check_correction, check_loss, check_step, check_stretch
from setpoint.testing.sets import check_set

__all__ = [
    "ConformanceError", "check_correction", "check_loss", "check_set", "check_step",
    "check_stretch",
]  # fmt: skip
