"""ΔCoverage: how far coverage strays from nominal in each group, beside what noise alone gives."""

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setpoint.errors import InputError
from setpoint.metrics._input import coded, flags, fraction, whole

__all__ = ["GroupCoverage", "delta_coverage", "noise_floor"]


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
    places = codes + 1
    places[np.isnan(hits)] = 0
    sizes = np.bincount(places, minlength=len(keys) + 1)[1:].tolist()
    held = np.bincount(places[hits == 1.0], minlength=len(keys) + 1)[1:].tolist()
    counts: dict[Hashable, list[int]] = {
        key: [steps, hit] for key, steps, hit in zip(keys, sizes, held, strict=True) if steps
    }
    return _from_counts(counts, fraction(nominal, "nominal"))


def _from_counts(counts: Mapping[Hashable, list[int]], nominal: float) -> GroupCoverage:
    """The result from [steps, hits] of each group."""
    shares = {key: hits / steps for key, (steps, hits) in counts.items()}
    sizes = {key: steps for key, (steps, _) in counts.items()}
    away = [abs(share - nominal) for share in shares.values()]
    delta = math.fsum(away) / len(away) if away else math.nan
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
    noise = [_deviation(whole(n, "a group size"), p) for n in np.asarray(sizes).tolist()]
    return math.fsum(noise) / len(noise) if noise else math.nan


def _deviation(n: int, p: float) -> float:
    """E|B/n − p|, in logarithms because the binomial coefficient overflows."""
    if p in (0.0, 1.0):
        return 0.0
    v = min(math.floor(n * p) + 1, n)
    log = math.lgamma(n + 1) - math.lgamma(v + 1) - math.lgamma(n - v + 1)
    log += v * math.log(p) + (n - v + 1) * math.log1p(-p)
    return 2.0 * (v / n) * math.exp(log)
