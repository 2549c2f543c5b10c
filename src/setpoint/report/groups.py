"""What came out in groups of rows, such as hours or widths, and what is guaranteed in groups."""

from collections.abc import Hashable, Iterator
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from setpoint import metrics
from setpoint.bulk.trace import Trace, nominal
from setpoint.certificate import used
from setpoint.losses import Counts, Misses
from setpoint.metrics.arrays import coded
from setpoint.report import curves
from setpoint.report.curves import Array, by_stream, once, stream_numbers
from setpoint.tape.text import weekday

_MOST_GROUPS, _MOST_SIZES, _LEAST = 20, 24, 50
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FIFTHS = ("narrowest", "2nd fifth", "3rd fifth", "4th fifth", "widest")


class Group(NamedTuple):
    """One group: its labels, coverage and mean loss."""

    key: Any
    labels: int
    coverage: float
    risk: float


class Grouped(NamedTuple):
    """What came out in groups of rows, by what they are made.

    `coverage` says whether coverage is what the first risk is about; else it is the mean loss.
    """

    by: str
    rows: list[Group]
    coverage: bool
    goal: float
    delta: float
    noise_floor: float

    def as_dict(self) -> dict[str, Any]:
        """The numbers, as a metrics file has them."""
        return {
            "delta_coverage": self.delta,
            "noise_floor": self.noise_floor,
            "rows": [row._asdict() for row in self.rows],
        }


def grouped(trace: Trace, stream: Hashable = None) -> list[Grouped]:
    """What came out by group, day of the week, hour and size, as far as rows have them."""
    key = ("grouped", stream)
    found: list[Grouped] = once(trace, key, lambda: [*_grouped(trace, stream)])
    return found


def _grouped(trace: Trace, stream: Hashable) -> Iterator[Grouped]:
    tape, risk = trace.tape, trace.controller.risks[0]
    rows = slice(None) if stream is None else tape.rows(stream)
    hits, losses = curves.hits_of(trace)[rows], np.asarray(trace.losses[0])[rows]
    # `nominal` knows what coverage the library's own losses that count misses ask for.
    shares = isinstance(risk.loss, Counts) and isinstance(risk.loss, Misses)
    asked = nominal(trace.controller)
    for by, codes, keys in _codes(trace, rows):
        cover = metrics.delta_coverage(np.where(codes < 0, nan, hits), codes, asked)
        judged = (codes >= 0) & ~np.isnan(losses)
        counts = np.bincount(codes[judged], minlength=len(keys))
        totals = np.bincount(codes[judged], weights=losses[judged], minlength=len(keys))
        groups = [
            Group(
                keys[place],
                cover.sizes[place],
                cover.coverage[place],
                float(totals[place] / counts[place]) if counts[place] else nan,
            )
            for place in range(len(keys))
            if place in cover.sizes
        ]
        if groups:
            goal = asked if shares else risk.level
            yield Grouped(by, groups, shares, goal, cover.delta, cover.noise_floor)


def _codes(trace: Trace, rows: Any) -> Iterator[tuple[str, Array, list[Any]]]:
    """By what rows are grouped, the group of each (−1 for none), and the keys in order."""
    tape = trace.tape
    if tape.group is not None:
        keys: list[Any]
        codes, keys = coded(tape.group[rows], len(tape.group[rows]))
        keys = list(map(str, keys)) if tape.group.dtype.kind in "mM" else keys
        order = sorted(range(len(keys)), key=lambda place: _rank(keys[place]))
        places = np.append(np.argsort(order), -1)
        yield "group", places[codes], [keys[place] for place in order]
    if tape.time is not None and tape.time.dtype.kind == "M":
        time = tape.time[rows]
        yield "weekday", weekday(time), list(_WEEKDAYS)
        hours = (time - time.astype("datetime64[D]")).astype("timedelta64[h]").astype(np.int64)
        if hours.any():
            yield "hour", hours, list(range(24))
    sizes = curves.sizes_of(trace)[rows]
    if trace.shown is not None:
        found, codes = np.unique(sizes, return_inverse=True)
        if 1 < len(found) <= _MOST_SIZES and not np.isnan(found).any():
            yield "size", codes, [int(size) if size < inf else "full" for size in found.tolist()]
        return
    usual = by_stream(trace).length[stream_numbers(trace)[rows]]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = sizes / usual  # series may have unlike units
    finite = np.isfinite(ratios)
    if finite.sum() >= _LEAST:
        edges = np.quantile(ratios[finite], (0.2, 0.4, 0.6, 0.8))
        codes = np.where(finite, np.searchsorted(edges, ratios), -1)
        if len(np.unique(codes[finite])) > 1:
            yield "size", codes, list(_FIFTHS)


def _rank(key: Any) -> tuple[int, float, str]:
    """Numbers by size, then words."""
    return (1, float(key), "") if isinstance(key, int | float) else (2, 0.0, str(key))


def held_groups(trace: Trace) -> dict[str, Any] | None:
    """What is guaranteed in groups, those of all series nearest to their limit first; or None."""
    every = [
        (id, name, risk)
        for id, certificate in zip(trace.states, trace.certificates, strict=True)
        for name, risk in certificate.groups.nearest(_MOST_GROUPS)
    ]
    if not every:
        return None
    every.sort(key=lambda own: -used(own[2]))
    rows = [
        {
            "series": id,
            "group": name,
            "risk": risk.name,
            "asked": risk.asked,
            "labels": risk.judged,
            "mean": risk.mean if risk.judged else None,
            "coverage": 1.0 - risk.mean if risk.judged and risk.asked is not None else None,
            "account": risk.excess,
            "bound": risk.constant_upper,
            "status": risk.status,
            "verdict": risk.verdict,
        }
        for id, name, risk in every[:_MOST_GROUPS]
    ]
    count = sum(len(certificate.groups) for certificate in trace.certificates)
    return {"count": count, "nearest": rows}
