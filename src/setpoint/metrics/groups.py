"""ΔCoverage: how far coverage strays from nominal in each group, beside what noise alone gives."""

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setpoint._check import whole
from setpoint.errors import InputError
from setpoint.metrics.columns import Flags, Places, flags, fraction

__all__ = [
    "GroupCoverage", "coded", "counts_by_group", "coverage_by_group", "delta_coverage",
    "group_key", "noise_floor",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class GroupCoverage:
    """Coverage by group, and its mean distance from the nominal level.

    `delta` and `noise_floor` are fractions, NaN without a group; the paper prints them times 100.
    """

    delta: float
    noise_floor: float
    coverage: Mapping[Hashable, float]
    sizes: Mapping[Hashable, int]


def delta_coverage(covered: ArrayLike, groups: Iterable[Any], nominal: float) -> GroupCoverage:
    """ΔCoverage: the mean over groups of |coverage in the group − nominal|.

    Parameters
    ----------
    covered
        1 (or True) where the label lay in its set, 0 where not, NaN where not observed.
    groups
        One key a step: a weekday, a site, a season, anything hashable. A step whose key is `None`
        or NaN belongs to no group.
    nominal
        The coverage that was asked for.

    Examples
    --------
    >>> got = delta_coverage([1, 1, 0, 1], ["mon", "mon", "tue", "tue"], nominal=0.9)
    >>> dict(got.coverage)
    {'mon': 1.0, 'tue': 0.5}
    >>> round(got.delta, 6), round(got.noise_floor, 6)
    (0.25, 0.162)

    References
    ----------
    Feldman et al., Achieving risk control in online learning settings, TMLR 2023: ΔCoverage.
    """
    hits = flags(covered, "covered")
    codes, keys = coded(groups, len(hits))
    seen = ~np.isnan(hits)
    counts = counts_by_group(codes[seen], keys, hits[seen] == 0.0)
    return coverage_by_group(counts, fraction(nominal, "nominal"))


def counts_by_group(
    codes: Places, keys: list[Hashable], missed: Flags
) -> dict[Hashable, list[int]]:
    """[steps, misses] of each group that has a step; `codes` and `keys` are those of `coded`."""
    steps, misses = (
        np.bincount(places + 1, minlength=len(keys) + 1)[1:].tolist()
        for places in (codes, codes[missed])
    )
    return {key: [n, m] for key, n, m in zip(keys, steps, misses, strict=True) if n}


def coverage_by_group(counts: Mapping[Hashable, list[int]], nominal: float) -> GroupCoverage:
    """Coverage from [steps, misses] of each group."""
    shares = {key: (steps - misses) / steps for key, (steps, misses) in counts.items()}
    sizes = {key: steps for key, (steps, _) in counts.items()}
    distances = [abs(share - nominal) for share in shares.values()]
    delta = math.fsum(distances) / len(distances) if distances else math.nan
    return GroupCoverage(delta, noise_floor(list(sizes.values()), nominal), shares, sizes)


def noise_floor(sizes: ArrayLike, nominal: float) -> float:
    """The ΔCoverage expected from independent hits of probability `nominal`: noise alone.

    The mean over groups of E|B/n − nominal| for a binomial B of the group's size n, exact by
    De Moivre's formula E|B − np| = 2ν C(n, ν) p^ν (1 − p)^(n − ν + 1), ν = ⌊np⌋ + 1. A controller
    makes hits less random than that, so a ΔCoverage below the floor is possible and no flaw.

    Examples
    --------
    Seven weekdays of 1714 steps at 90 %: a reported "0.58 %" says nothing about the weekdays.

    >>> round(noise_floor([1714] * 7, 0.9), 4)
    0.0058

    References
    ----------
    Diaconis and Zabell, Closed form summation for classical distributions, Statistical Science 6
    (1991).
    """
    p = fraction(nominal, "nominal")
    if np.ndim(sizes) != 1:
        raise InputError(f"sizes must be a column of group sizes, got {sizes!r}")
    noise = [_deviation(whole(n, "a group size", 1), p) for n in np.asarray(sizes).tolist()]
    return math.fsum(noise) / len(noise) if noise else math.nan


def _deviation(n: int, p: float) -> float:
    """E|B/n − p|, in logarithms because the binomial coefficient overflows."""
    if p in (0.0, 1.0):
        return 0.0
    v = min(math.floor(n * p) + 1, n)
    log = math.lgamma(n + 1) - math.lgamma(v + 1) - math.lgamma(n - v + 1)
    log += v * math.log(p) + (n - v + 1) * math.log1p(-p)
    return 2.0 * (v / n) * math.exp(log)


def group_key(group: Any) -> Hashable | None:
    """The key itself; `None` for a key that equals nothing (NaN, NaT): such a step has no group."""
    try:
        hash(group)
        return group if group == group else None
    except TypeError:
        raise InputError(f"a group must be hashable (a name, a number), got {group!r}") from None


def coded(groups: Iterable[Any], size: int) -> tuple[Places, list[Hashable]]:
    """The place of each step's key in the list of keys, −1 for none, and that list.

    Keys come in order of first appearance. Numbers in arrays become plain Python ones, dates stay
    as they are.
    """
    keys: Any = groups
    try:
        keys = groups if isinstance(groups, np.ndarray) else list(groups)
        count = len(keys)
    except TypeError:
        raise InputError(f"groups must hold one key a step, got {groups!r}") from None
    if count != size:
        raise InputError(f"groups must have one key for each of the {size} steps, got {count}")
    distinct: list[Any]
    if isinstance(groups, np.ndarray) and groups.ndim == 1 and groups.dtype.kind in "biufmM":
        values, first, codes = np.unique(groups, return_index=True, return_inverse=True)
        values, codes = values[np.argsort(first)], np.argsort(np.argsort(first))[codes]
        distinct = list(values) if groups.dtype.kind in "mM" else values.tolist()
    else:
        keys = groups.tolist() if isinstance(groups, np.ndarray) else keys
        try:
            places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        except TypeError:
            for key in keys:
                group_key(key)  # says which one
            raise
        distinct, codes = list(places), np.fromiter(map(places.__getitem__, keys), np.int64, size)
    has_group = np.array([group_key(key) is not None for key in distinct], bool)
    renumbered = np.where(has_group, np.cumsum(has_group) - 1, -1)
    return renumbered[codes], [key for key, has in zip(distinct, has_group, strict=True) if has]
