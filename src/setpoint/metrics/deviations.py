"""How far coverage strays from nominal in each group, and the risk from its level in each window.

Windows of arrays and of steps one by one cut the stream into blocks as long as the window and add
the suffix sum of one block to the prefix sum of the next. No sum is ever carried further than that,
so nothing drifts. For one stream both do the same additions in the same order: their windows agree
to the bit.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from setpoint._check import whole
from setpoint.errors import InputError
from setpoint.metrics.tally import Flags, Floats, Places, flags, fraction


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
    if isinstance(groups, np.ndarray):
        keys = list(groups) if groups.dtype.kind in "mM" else groups.tolist()
    try:
        keys = list(keys)
    except TypeError:
        raise InputError(f"groups must hold one key a step, got {groups!r}") from None
    if len(keys) != size:
        raise InputError(f"groups must have one key for each of the {size} steps, got {len(keys)}")
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


# Windows


class WindowErrors(NamedTuple):
    """|mean loss − level| over all windows: the largest, the root mean square, where it was worst.

    A stream shorter than the window counts as one window. `start` is the step at which the worst
    window begins (the first one, if several are as bad). Without a step there is no window.
    """

    worst: float = math.nan
    rms: float = math.nan
    start: int | None = None


_BLOCK = 1 << 15


def errors_of(
    losses: Floats | Flags, level: float, width: int, seen: Flags, offsets: Places
) -> WindowErrors:
    """The errors over the losses of the steps that were `seen`; `start` is one of all steps."""
    bounds = np.concatenate([[0], np.cumsum(seen)])[offsets] if len(offsets) > 2 else None
    stops = np.array([len(losses)]) if bounds is None else bounds[1:][np.diff(bounds) > 0]
    if not len(losses):
        return WindowErrors()
    worst, start, squares, windows = -1.0, 0, 0.0, 0
    for errors, starts in _errors(losses, level, width, stops):
        largest = float(errors.max(initial=-1.0))
        if largest >= worst and len(errors):
            first = int(starts[np.argmax(errors)])
            start = first if largest > worst else min(start, first)
            worst = largest
        squares += float(np.square(errors).sum())
        windows += len(errors)
    start = int(np.flatnonzero(seen)[start]) if len(seen) > len(losses) else start
    return WindowErrors(worst, math.sqrt(squares / windows), start)


def _errors(
    losses: Floats | Flags, level: float, width: int, stops: Places
) -> Iterator[tuple[Floats, Places]]:
    """|mean − level| of windows and where they begin, piece by piece in the order of the steps.

    Streams of one window come first. Each stream ends at one of `stops`.
    """
    firsts = np.concatenate([[0], stops[:-1]])
    counts = stops - firsts
    longest = int(counts.max())
    width = min(width, longest)
    several = len(stops) > 1
    short = counts <= width if several and width == longest else counts < width
    if short.any():
        totals = np.add.reduceat(losses, firsts, dtype=np.float64)[short]
        yield np.abs(totals / counts[short] - level), firsts[short]
    if short.all():
        return
    block = max(_BLOCK // width, 1) * width
    for begin in range(0, len(losses) - width + 1, block):
        totals = _sums(losses[begin : begin + block + width - 1], width)
        starts = np.arange(begin, begin + len(totals))
        if several:
            within = stops[np.searchsorted(stops, starts, side="right")] - starts >= width
            totals, starts = totals[within], starts[within]
        yield np.abs(totals / width - level), starts


def _sums(losses: Floats | Flags, width: int) -> Floats:
    """The sum of every window, as a suffix of one block and a prefix of the next."""
    padded = np.zeros(-(-len(losses) // width) * width)
    padded[: len(losses)] = losses
    blocks = padded.reshape(-1, width)
    prefix = np.cumsum(blocks, axis=1).ravel()
    suffix = np.cumsum(blocks[:, ::-1], axis=1)[:, ::-1].copy()
    suffix[:, 0] = 0.0  # a window that starts a block ends it too: the prefix has it all
    count = len(losses) - width + 1
    sums: Floats = suffix.ravel()[:count] + prefix[width - 1 : width - 1 + count]
    return sums
