"""Streams made by formula: the paper's synthetic one, and four kinds of shift for tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from setpoint._check import choice, finite, positive, whole
from setpoint.datasets.values import Dataset
from setpoint.errors import InputError

__all__ = ["Shift", "drift", "heavy_tails", "jump", "synthetic", "variance_switch"]

Floats = NDArray[np.float64]
Seed = int | np.random.Generator


def synthetic(
    steps: int = 20_000,
    *,
    length: float = 500.0,
    spread: float | None = None,
    variant: str = "paper",
    seed: Seed = 0,
) -> Dataset:
    """The synthetic stream of the paper's appendix: groups that are quiet and loud by turns.

    Group i lasts mᵢ ~ N(length, spread²) steps and has its own weights βᵢ, uniform and summing to
    one, and its own ωᵢ: 1 in the odd groups, N(20, 10) in the even ones, 10 being the variance.
    With X_t uniform on (0, 1)⁵ and ε_t standard normal,

        Y_t = ½ Y_{t−1} + ω²|βᵀX_t| + 2 sin(2 X_{t,1} ε_t),   Y_0 = 1.

    Random numbers are drawn in this order: the lengths one by one, then β, ω, X, ε, and last ζ.

    Parameters
    ----------
    steps
        How many rows.
    length, spread
        Mean and standard deviation of the length of a group. The spread is 10 by default; for the
        authors' variant the smaller of 10 and a twentieth of the length, rounded down.
    variant
        "paper" is the text's stream. "authors" is that of their code: ω uniform on (20, 30), the
        second feature in the sine, groups counted from 0, so that the first is loud, lengths cut
        instead of rounded, and 1000 |ζ_t| added to Y_t, with ζ_t standard normal.
    seed
        A whole number or a numpy Generator. The authors' runs all share one seed.

    Examples
    --------
    >>> data = synthetic(2_000, length=400, seed=1)
    >>> data.group[0], data.group[-1]
    (np.int64(1), np.int64(5))
    >>> quiet, loud = data.y[data.group == 1], data.y[data.group == 2]
    >>> bool(quiet.max() < 10 < loud.mean())
    True

    References
    ----------
    Feldman et al., Achieving risk control in online learning settings, TMLR 2023: appendix.
    """
    whole(steps, "steps", 1)
    authors = choice(variant, "variant", ("paper", "authors")) == "authors"
    mean = finite(length, "length")
    if mean < 1.0:
        raise InputError(f"length must be at least 1, got {length!r}")
    usual = min(10.0, mean // 20) if authors else 10.0
    deviation = usual if spread is None else finite(spread, "spread")
    if deviation < 0.0:
        raise InputError(f"spread must be 0 or more, got {spread!r}")
    generator = _generator(seed)

    lengths: list[int] = []
    while sum(lengths) < steps:
        drawn = generator.normal(mean, deviation)
        lengths.append(max(1, int(drawn) if authors else round(drawn)))
    first = 0 if authors else 1
    group = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)[:steps]
    weights = generator.uniform(size=(len(lengths), 5))
    weights /= weights.sum(axis=1, keepdims=True)
    loud = (
        generator.uniform(20.0, 30.0, len(lengths))
        if authors
        else generator.normal(20.0, sqrt(10.0), len(lengths))
    )
    omega = np.where((np.arange(len(lengths)) + first) % 2 == 0, loud, 1.0)
    x = generator.uniform(size=(steps, 5))
    noise = generator.standard_normal(steps)
    pushed = omega[group] ** 2 * np.abs(np.einsum("ij,ij->i", weights[group], x))
    pushed += 2.0 * np.sin(2.0 * x[:, 1 if authors else 0] * noise)
    if authors:
        pushed += 1000.0 * np.abs(generator.standard_normal(steps))

    y = np.empty(steps)
    last = 1.0
    for step, push in enumerate(pushed.tolist()):
        last = 0.5 * last + push
        y[step] = last
    return Dataset(
        "synthetic",
        x,
        y,
        tuple(f"X{place}" for place in range(1, 6)),
        "Y",
        group=group + first,
        note="the authors' variant" if authors else "",
    )


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """A stream whose law is known: y = centre + scale · noise.

    Parameters
    ----------
    x
        Features, uniform on (0, 1), rows × features.
    y
        The labels.
    centre, scale
        What an oracle would know of each row: the middle of y and the size of its noise.
    changes
        The rows at which the law changes; empty where it changes at every row or never.
    """

    x: Floats
    y: Floats
    centre: Floats
    scale: Floats
    changes: tuple[int, ...]

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

    Examples
    --------
    >>> made = jump(1_000, size=4.0, at=[250])
    >>> made
    Shift(1000 rows × 3 features, changes at (250,))
    >>> (
    ...     float((made.centre - made.x.sum(axis=1))[249]),
    ...     float((made.centre - made.x.sum(axis=1))[250]),
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
    """Normal noise about the sum of the features, which rises evenly by `size` in all.

    Examples
    --------
    >>> made = drift(101, size=5.0)
    >>> (made.centre - made.x.sum(axis=1))[[0, 50, 100]].round(12)
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

    Examples
    --------
    >>> made = variance_switch(1_000, every=400)
    >>> made.changes, made.scale[[0, 399, 400, 799, 800]]
    ((400, 800), array([1., 1., 3., 3., 1.]))
    """
    turn = np.arange(whole(steps, "steps", 1)) // whole(every, "every", 1)
    scale = np.where(turn % 2 == 1, positive(factor, "factor"), 1.0)
    return _about(np.zeros(steps), scale, features, seed, tuple(range(every, steps, every)))


def heavy_tails(
    steps: int = 2_000, *, freedom: float = 2.0, features: int = 3, seed: Seed = 0
) -> Shift:
    """Student's t noise about the sum of the features: no variance at 2 degrees of freedom or less.

    Examples
    --------
    >>> made = heavy_tails(10_000, freedom=2.0)
    >>> bool(np.abs(made.y - made.centre).max() > 30)
    True
    """
    degrees = positive(freedom, "freedom")
    return _about(
        np.zeros(whole(steps, "steps", 1)), np.ones(steps), features, seed, (), freedom=degrees
    )


def _about(
    moved: Floats,
    scale: Floats,
    features: int,
    seed: Seed,
    changes: tuple[int, ...],
    freedom: float | None = None,
) -> Shift:
    """A stream about the sum of its features plus `moved`; x is drawn first, then the noise."""
    generator = _generator(seed)
    steps = len(moved)
    x = generator.uniform(size=(steps, whole(features, "features", 1)))
    centre = x.sum(axis=1) + moved
    if freedom is None:
        noise = generator.standard_normal(steps)
    else:
        noise = generator.standard_t(freedom, steps)
    return Shift(x, centre + scale * noise, centre, scale, changes)


def _generator(seed: Seed) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(whole(seed, "seed", 0))
