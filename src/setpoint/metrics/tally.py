"""What metrics are given, what is counted of each step, and what follows from the counts.

`measure` reads one interval, `count` takes one step into a tally. Both are scalar rules: plain
Python runs them, and numba can compile them. `measure_rows` and `tally_of` are the same for arrays
of steps. `derived` gives the metrics of one tally, or of many.
"""

from math import inf, isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setpoint._check import number
from setpoint.errors import InputError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.int64]


def column(values: ArrayLike, name: str, size: int | None = None) -> Floats:
    """One number a step as float64; `None` becomes NaN. `size` is the length it must have.

    What is float64 already is not copied, so nothing may be written into a column.
    """
    try:
        raw = np.asarray(values)
        if raw.size and raw.dtype.kind not in "biufO":
            raise InputError(f"{name} must hold numbers, got values of type {raw.dtype}")
        numbers = raw.astype(np.float64, copy=False)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a column of numbers, got {values!r}: {error}") from None
    if numbers.ndim != 1:
        raise InputError(f"{name} must have one dimension, one value a step; got shape {raw.shape}")
    if size is not None and len(numbers) != size:
        raise InputError(f"{name} must have one value for each of the {size} steps, got {len(raw)}")
    return numbers


def refuse(wrong: Flags, values: Floats, name: str, allowed: str) -> None:
    """One error for the first step where `wrong` holds."""
    if wrong.any():
        step = int(np.argmax(wrong))
        raise InputError(f"{name} must be {allowed}, got {float(values[step])} at step {step}")


def ends(lower: ArrayLike, upper: ArrayLike) -> tuple[Floats, Floats]:
    """The two columns of ends, without NaN."""
    low = column(lower, "lower")
    high = column(upper, "upper", len(low))
    refuse(np.isnan(low), low, "lower", "a number or ±inf")
    refuse(np.isnan(high), high, "upper", "a number or ±inf")
    return low, high


def observed(values: ArrayLike, name: str, size: int | None = None) -> Floats:
    """A column of finite numbers, NaN where a step was not observed."""
    numbers = column(values, name, size)
    refuse(np.isinf(numbers), numbers, name, "finite, or NaN where not observed")
    return numbers


def flags(values: ArrayLike, name: str, size: int | None = None) -> Floats:
    """A column of 0 and 1, NaN where a step was not observed."""
    numbers = column(values, name, size)
    wrong = ~(np.isnan(numbers) | (numbers == 0.0) | (numbers == 1.0))
    refuse(wrong, numbers, name, "0, 1, or NaN where not observed")
    return numbers


def marks(values: ArrayLike | None, name: str, missing: Flags) -> Flags:
    """A column of 0 and 1 as flags; `missing` stands for a column that was not given."""
    if values is None:
        return missing
    numbers = column(values, name, len(missing))
    refuse(~((numbers == 0.0) | (numbers == 1.0)), numbers, name, "0 or 1")
    return np.asarray(numbers == 1.0)


def sizes(values: ArrayLike, name: str, size: int | None = None) -> Floats:
    """A column of lengths or set sizes: 0 or more, +inf allowed, NaN not."""
    numbers = column(values, name, size)
    refuse(~(numbers >= 0.0), numbers, name, "0 or more")
    return numbers


def fraction(value: Any, name: str) -> float:
    """A number between 0 and 1, both included."""
    part = number(value, name)
    if not 0.0 <= part <= 1.0:
        raise InputError(f"{name} must lie between 0 and 1, got {part}")
    return part


def mean(values: Floats) -> float:
    """The mean; NaN over nothing, without a warning."""
    with np.errstate(over="ignore"):
        return float(np.mean(values)) if len(values) else nan


def offsets_of(offsets: ArrayLike | None, size: int) -> Places:
    """Where streams begin among `size` steps, and the end of the last one; None for one stream."""
    bounds = np.array([0, size]) if offsets is None else np.asarray(offsets)
    ordered = bounds.ndim == 1 and len(bounds) > 0 and bounds.dtype.kind in "iu"
    if not ordered or bounds[0] != 0 or bounds[-1] != size or (np.diff(bounds) < 0).any():
        raise InputError(
            f"offsets must be whole numbers that rise from 0 to the {size} steps, got {offsets!r}"
        )
    return bounds.astype(np.int64, copy=False)


# Counts


class Tally(NamedTuple):
    """Sums over the steps whose label was observed."""

    observed: float  # steps
    length: float  # the sum of the finite lengths
    finite: float  # steps with a finite length
    full: float
    empty: float
    near: float  # how far labels lay inside finite ends; NaN for a set without ends
    apart: float  # how far labels lay outside the two ends; NaN for a set without ends
    misses: float
    streaks: float  # of misses
    counter: float  # misses in a row until now
    counters: float  # the sum of the counter over all steps
    longest: float  # the longest streak


NOTHING = Tally(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""The tally of no step."""


def measure(
    lo: float, hi: float, y: float, cut_low: float, cut_high: float
) -> tuple[float, bool, bool, float, float]:
    """The length of an interval, whether it is full and empty, and how far y is from its ends.

    The distances are those to the ends that y lies within, and to the ends that it lies beyond.
    """
    length = hi - lo if lo < hi else 0.0
    is_whole = (lo <= cut_low) & (hi >= cut_high)
    is_nothing = (lo > hi) | (lo == inf) | (hi == -inf)
    below, above = lo - y, y - hi
    apart = (below if below > 0.0 else 0.0) + (above if above > 0.0 else 0.0)
    near = (-below if below < 0.0 else 0.0) + (-above if above < 0.0 else 0.0)
    return length, is_whole, is_nothing, near, apart


def count(
    tally: Tally, length: float, is_whole: bool, is_nothing: bool, near: float, apart: float,
    missed: bool,
) -> Tally:  # fmt: skip
    """The tally after one more step. A set without ends has a size for its length."""
    is_finite = length < inf
    counter = tally.counter + 1.0 if missed else 0.0
    return Tally(
        tally.observed + 1.0,
        tally.length + (length if is_finite else 0.0),
        tally.finite + (1.0 if is_finite else 0.0),
        tally.full + (1.0 if is_whole else 0.0),
        tally.empty + (1.0 if is_nothing else 0.0),
        tally.near + (0.0 if near == inf else near),
        tally.apart + apart,
        tally.misses + (1.0 if missed else 0.0),
        tally.streaks + (1.0 if counter == 1.0 else 0.0),
        counter,
        tally.counters + counter,
        counter if counter > tally.longest else tally.longest,
    )


def restarted(tally: Tally) -> Tally:
    """The tally at the beginning of a stream: a streak of misses ends with its stream."""
    return Tally(
        tally.observed, tally.length, tally.finite, tally.full, tally.empty, tally.near,
        tally.apart, tally.misses, tally.streaks, 0.0, tally.counters, tally.longest,
    )  # fmt: skip


class Steps(NamedTuple):
    """What `count` takes of each step, as arrays."""

    length: Floats
    is_whole: Flags
    is_nothing: Flags
    near: Floats
    apart: Floats
    missed: Flags


def measure_rows(
    lo: Floats, hi: Floats, y: Floats, cut_low: float = -inf, cut_high: float = inf
) -> Steps:
    """`measure` for arrays, and which labels were missed; a label of NaN has no distances."""
    with np.errstate(over="ignore", invalid="ignore"):
        below, above = lo - y, y - hi
        return Steps(
            length=np.fmax(hi - lo, 0.0),  # ends of the same infinity differ by NaN
            is_whole=(lo <= cut_low) & (hi >= cut_high),
            is_nothing=(lo > hi) | (lo == inf) | (hi == -inf),
            near=np.maximum(-below, 0.0) + np.maximum(-above, 0.0),
            apart=np.maximum(below, 0.0) + np.maximum(above, 0.0),
            missed=~((lo <= y) & (y <= hi)),
        )


def streaks_of(missed: Flags, begins: Places | None = None) -> Places:
    """The lengths of the streaks of misses, in order. They end where a stream `begins`."""
    misses = np.flatnonzero(missed)
    is_first = np.diff(misses, prepend=-2) > 1
    if begins is not None and len(misses):
        places = np.searchsorted(misses, begins).clip(max=len(misses) - 1)
        is_first[places[misses[places] == begins]] = True
    return np.diff(np.flatnonzero(is_first), append=len(misses))


def tally_of(steps: Steps, begins: Places | None = None) -> Tally:
    """The tally of steps that were all observed. Streaks end where a stream `begins`."""
    is_finite, streaks = steps.length < inf, streaks_of(steps.missed, begins)
    is_missed_last = len(streaks) > 0 and steps.missed[-1]
    with np.errstate(over="ignore"):
        sums = [
            len(is_finite),
            steps.length.sum(where=is_finite),
            is_finite.sum(),
            steps.is_whole.sum(),
            steps.is_nothing.sum(),
            steps.near.sum(where=steps.near != inf),
            steps.apart.sum(),
            streaks.sum(),
            len(streaks),
            streaks[-1] if is_missed_last else 0.0,
            (streaks * (streaks + 1) // 2).sum(),
            streaks.max(initial=0),
        ]
    return Tally(*map(float, sums))


def share(total: ArrayLike, count: ArrayLike) -> Floats:
    """A total over a count, NaN where nothing was counted."""
    counts = np.asarray(count, np.float64)
    quotient = np.full(counts.shape, nan)
    np.divide(total, counts, out=quotient, where=counts > 0.0)
    return quotient


def derived(tally: Tally, tail: ArrayLike) -> dict[str, Floats]:
    """The metrics of `Summary` that follow from a tally, by their names there.

    A tally of arrays is one for each cell. `tail` is the share of labels that may lie beyond each
    end, half of 1 − coverage, for pinball and Winkler.
    """
    arrays: Any = np.broadcast_arrays(*tally)
    t, tails = Tally(*arrays), np.asarray(tail)
    steps, endless = t.observed, np.where(t.finite < t.observed, inf, 0.0)
    length = t.length + endless
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # At tail 0 the near side costs nothing, however far the end, and a miss costs everything.
        inside = np.where(tails > 0.0, tails * t.near, 0.0)
        beyond = (1.0 - tails) * t.apart
        outside = np.where(t.apart == 0.0, 0.0, t.apart / tails)
    return {
        "coverage": share(steps - t.misses, steps),
        "mean_length": share(length, steps),
        "mean_finite_length": share(t.length, t.finite),
        "full": share(t.full, steps),
        "empty": share(t.empty, steps),
        "mc": share(t.counters, steps),
        "msl": np.where(t.streaks > 0.0, share(t.misses, t.streaks), 0.0),
        "longest_streak": np.asarray(t.longest),
        "pinball": share(beyond + inside + np.where(tails > 0.0, endless, 0.0), 2.0 * steps),
        "finite_pinball": share(beyond + inside, 2.0 * t.finite),
        "winkler": share(length + outside, steps),
    }


def by_length(length: Floats, missed: Flags, begins: Any = None, parts: int = 5) -> Floats:
    """The coverage of the shortest finite sets, of the next ones, and so on, as many in each part.

    Of several streams, which begin where `begins` says, a length counts as a share of the stream's
    own mean. NaN where a part has no step.
    """
    finite = length < inf
    if not finite.all():
        first = np.append(0, np.cumsum(finite))
        begins = None if begins is None else first[begins]
        length, missed = length[finite], missed[finite]
    if begins is not None:
        which = np.searchsorted(begins, np.arange(len(length)), side="right") - 1
        sums, counts = np.bincount(which, length), np.bincount(which)
        with np.errstate(invalid="ignore", divide="ignore"):
            length = length / (sums / counts)[which]
    cut = np.array_split(~missed[np.argsort(length, kind="stable")], parts)
    return np.array([part.mean() if len(part) else nan for part in cut])


def correlation(length: Floats, missed: Flags) -> float:
    """Pearson's correlation of coverage and finite length; 0 where either does not vary."""
    finite = length < inf
    length, hits = length[finite], ~missed[finite]
    if not hits.any() or hits.all():
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        away = length - length[0]  # so that equal lengths are exactly constant
        away -= away.mean()
        spread, both = float(np.dot(away, away)), float(away[hits].sum())
    if spread == 0.0:
        return 0.0
    varied = float(hits.sum() * (1.0 - hits.mean()))
    return min(1.0, max(-1.0, both / sqrt(varied * spread))) if isfinite(spread) else nan
