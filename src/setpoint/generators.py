"""Synthetic streams with known distribution shifts, for trying out a controller."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setpoint._check import finite, positive, whole
from setpoint.errors import InputError

__all__ = ["drift", "jump", "variance_switch"]

Floats = NDArray[np.float64]
Seed = int | np.random.Generator


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """A stream whose law is known: y = centre + scale · noise.

    An oracle would know `centre` and `scale` of each row.
    """

    x: Floats  # features, uniform on (0, 1), rows × features
    y: Floats
    centre: Floats
    scale: Floats
    changes: tuple[int, ...]  # rows at which the law changes; none where it does at every row

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        return f"Shift({len(self)} rows × {self.x.shape[1]} features, changes at {self.changes})"


def jump(
    steps: int = 2_000,
    *,
    size: float = 5.0,
    at: Sequence[int] | None = None,
    features: int = 3,
    seed: Seed = 0,
) -> Shift:
    """Normal noise about the sum of the features, which jumps up by `size` at each row of `at`.

    `at` is the middle by default; a negative size jumps down.

    >>> shift = jump(1_000, size=4.0, at=[250])
    >>> shift
    Shift(1000 rows × 3 features, changes at (250,))
    >>> (
    ...     float((shift.centre - shift.x.sum(axis=1))[249]),
    ...     float((shift.centre - shift.x.sum(axis=1))[250]),
    ... )
    (0.0, 4.0)
    """
    size = finite(size, "size")
    rows = (whole(steps, "steps", 1) // 2,) if at is None else tuple(at)
    for row in rows:
        if whole(row, "a row of at", 0) >= steps:
            raise InputError(f"a row of at must be less than steps, {steps}, got {row}")
    moved = np.zeros(whole(steps, "steps", 1))
    for row in rows:
        moved[row:] += size
    return _about(moved, np.ones(steps), features, seed, rows)


def drift(steps: int = 2_000, *, size: float = 5.0, features: int = 3, seed: Seed = 0) -> Shift:
    """Normal noise around the sum of the features; the mean rises steadily by `size`.

    >>> shift = drift(101, size=5.0)
    >>> (shift.centre - shift.x.sum(axis=1))[[0, 50, 100]].round(12)
    array([0. , 2.5, 5. ])
    """
    moved = np.linspace(0.0, finite(size, "size"), whole(steps, "steps", 1))
    return _about(moved, np.ones(steps), features, seed, ())


def variance_switch(
    steps: int = 2_000,
    *,
    factor: float = 3.0,
    every: int = 500,
    features: int = 3,
    seed: Seed = 0,
) -> Shift:
    """Normal noise of scale 1 and `factor` by turns, switching after `every` rows.

    >>> shift = variance_switch(1_000, every=400)
    >>> shift.changes, shift.scale[[0, 399, 400, 799, 800]]
    ((400, 800), array([1., 1., 3., 3., 1.]))
    """
    turn = np.arange(whole(steps, "steps", 1)) // whole(every, "every", 1)
    scale = np.where(turn % 2 == 1, positive(factor, "factor"), 1.0)
    return _about(np.zeros(steps), scale, features, seed, tuple(range(every, steps, every)))


def _about(
    moved: Floats,
    scale: Floats,
    features: int,
    seed: Seed,
    changes: tuple[int, ...],
) -> Shift:
    """A stream about the sum of its features plus `moved`; x is drawn first, then the noise."""
    seeded = isinstance(seed, np.random.Generator)
    generator = np.random.default_rng(seed if seeded else whole(seed, "seed", 0))
    steps = len(moved)
    x = generator.uniform(size=(steps, whole(features, "features", 1)))
    centre = x.sum(axis=1) + moved
    return Shift(x, centre + scale * generator.standard_normal(steps), centre, scale, changes)
