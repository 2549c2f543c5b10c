"""Conformance checks: whether a part keeps the promises that the controller relies on.

`check(part)` sees by its names what a part is, and tries what it promises:

    a family       nested in λ, full and empty at ±inf, exact critical values, safe reads; what it
                   draws, remembers or splits into members, if it does
    a loss         in its range, true to its word on the full and empty set, one direction
    a stretch      finite and monotone in θ, inverted by `inverse`, a memory in bounds
    a step rule    moves θ the right way, and its stated bound survives an adversary
    a correction   one base for a row, a memory and a table of fixed size, all finite
    a combination  among the λ's of the risks, whatever their order

Every part is also checked to be a value: equal to its twin, hashable, printed as the call that
makes it, the same before and after use. Each check runs many cases, the same ones every time,
and raises `ConformanceError`: one sentence with the broken promise and the values that broke it.
Plain numpy and Python: call it from any test runner, for the library's parts or your own.
"""

from collections.abc import Iterable
from typing import Any

from setpoint.losses import Keeps
from setpoint.testing.parts import ConformanceError, broken
from setpoint.testing.rules import (
    check_combination,
    check_correction,
    check_loss,
    check_step,
    check_stretch,
)
from setpoint.testing.sets import check_set

__all__ = ["ConformanceError", "check"]

_KINDS = (
    (check_set, "family", ("read", "label", "at", "critical", "start", "bounds", "unit")),
    (check_stretch, "stretch", ("params", "phi", "move", "init", "inverse")),
    (check_correction, "correction", ("init", "predict", "learn", "params")),
    (check_step, "step rule", ("params", "rule", "init", "claim")),
    (check_combination, "combination", ("rule", "anti_windup", "empty_if", "covers_each")),
)


def check(
    part: Any,
    predictions: Iterable[Any] | None = None,
    labels: Iterable[Any] | None = None,
    *,
    sets: Any = None,
    exact: bool | None = None,
) -> None:
    """Checks a part of any kind.

    Parameters
    ----------
    part
        A family, a loss, a stretch, a step rule, a correction or a combination.
    predictions, labels
        What to try a family with, or a loss on its sets. By default `part.examples`, a pair of the
        two, if the part has it; else numbers, pairs, triples, probabilities, quantiles and frames
        of pixels, as far as the family reads them, and labels between −20 and 20, or the classes
        of the prediction and one that it does not name, or frames of the prediction's shape.
    sets
        The family whose sets a loss judges; by default `sets.Widen()`, or `sets.Multilabel()` or
        `sets.PixelScale()` for a loss of sets of labels or of pixels.
    exact
        Whether each set of a family contains y at its critical value to the bit, and not just
        within rounding. By default only without predictions of your own.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from setpoint import losses, steps, stretches
    >>> @dataclass(frozen=True, slots=True)
    ... class Shortfall:
    ...     scale: float
    ...     low, high = 0.0, 1.0
    ...
    ...     def __call__(self, shown, y) -> float:
    ...         return min(max(y - shown.upper, 0.0) / self.scale, 1.0)
    >>> check(Shortfall(10.0))
    >>> check(steps.Fixed(0.05))
    >>> check(losses.Custom(lambda shown, y: max(y - shown.upper, 0.0)))
    Traceback (most recent call last):
    setpoint.testing.ConformanceError: Custom does not keep a promise: it lies in [0, 1], got inf
    on Interval(empty) with y = 0.0
    >>> check(stretches.ErrorAdaptive(score=0.1, loss=0.1))
    Traceback (most recent call last):
    setpoint.testing.ConformanceError: ErrorAdaptive does not keep a promise: it works on what it
    reads, got InputError: ErrorAdaptive has no clip bounds yet: ...
    """
    if predictions is None and labels is None:
        predictions, labels = getattr(part, "examples", (None, None))
    for kind, _, names in _KINDS:
        if not _missing(part, names):
            if kind is check_set:
                check_set(part, predictions, labels, exact=exact)
            else:
                kind(part)
            return
    if not callable(part) and not isinstance(part, Keeps):
        lacks = {what: _missing(part, names) for _, what, names in _KINDS}
        what, missing = min(lacks.items(), key=lambda item: len(item[1]))
        raise broken(
            part,
            "a loss is a callable of (shown, y), or has init() and update(); to be a "
            f"{what} it lacks {', '.join(missing)}",
        )
    check_loss(part, sets, predictions, labels)


def _missing(part: Any, names: Iterable[str]) -> list[str]:
    """The names a part lacks; one whose value raises is there."""
    return [n for n in names if not (hasattr(type(part), n) or hasattr(part, n))]
