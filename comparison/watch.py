"""When somebody is called: the watch on forecasts that are well, and on the same ones once broken.

A fault changes a forecast from one row on. Its errors are made larger by its own errors of another
time, so that nothing can be learnt from them. Beside the watch stand two detectors of `river` with
their own settings, on the size of the forecast's errors. After each alarm everything begins again.
"""

import os
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray
from river import drift

import setpoint as sp
from comparison import RESULTS, command, keep
from comparison.streams import Series, made, read
from setpoint.bulk.watching import Costs, look
from setpoint.watch import BEGAN, KINDS, NOW, SIZE, acknowledged, begin
from setpoint_paper.pages import table

Floats = NDArray[np.float64]
Alarms = Callable[[Series, Floats, int], list[int]]

BROKEN = 3_000
"""The row from which on a forecast is broken."""
FAULTS = (1.25, 1.5, 2.0, 4.0, 20.0)
"""The factors by which errors grow."""
_APART = 997
"""Rows between an error and the one that is added to it."""


def broken(series: Series, times: float) -> Series:
    """The stream with errors multiplied by a factor from `BROKEN` on."""
    error = series.y - series.point
    more = np.sqrt(times**2 - 1.0) * np.roll(error, _APART) * (np.arange(len(error)) >= BROKEN)
    return Series(
        series.name, series.split, series.kind, series.lower + more, series.upper + more, series.y,
        series.delay, series.period,
    )  # fmt: skip


def watched(series: Series, middle: Floats, until: int) -> list[int]:
    """The labels at which the watch calls, each acknowledged; none after the first in `until`."""
    y, memory, first, alarms = series.y, begin(), 0, list[int]()
    costs = Costs(np.abs(y - middle), np.abs(y - series.point), y, np.ones(len(y)))
    places = [NOW + BEGAN + KINDS.index(kind) for kind in ("dearer", "model", "world")]
    while first < len(y):
        z, seen = np.array([memory]), np.empty((len(y) - first, SIZE))
        part, bounds = Costs(*(each[first:] for each in costs)), np.array([0, len(y) - first])
        none, late = np.empty(0, np.int64), np.array([float(series.delay)])
        look(z, 0, np.arange(1), bounds, none, late, part, seen, steps=np.inf)
        called = (seen[:, places] > 0.0).any(axis=1)
        if not called.any():
            break
        place = int(called.argmax())
        alarms.append(first + place)
        if alarms[-1] >= until:
            break
        memory = acknowledged(seen[place].tolist())
        first += place + 1
    return alarms


def detected(make: Callable[[], drift.ADWIN | drift.PageHinkley]) -> Alarms:
    """The labels at which a detector calls, on the sizes of the forecast's errors."""

    def alarms(series: Series, _: Floats, until: int) -> list[int]:
        detector, found = make(), list[int]()
        for row, error in enumerate(np.abs(series.y - series.point).tolist()):
            detector.update(error)  # type: ignore[no-untyped-call]
            if detector.drift_detected:
                found.append(row)
                detector = make()
                if row >= until:
                    break
        return found

    return alarms


WAYS: dict[str, Alarms] = {
    "the watch": watched,
    "ADWIN": detected(drift.ADWIN),
    "Page-Hinkley": detected(drift.PageHinkley),
}


def watch(
    *, streams: str | os.PathLike[str] | None = None, out: str | os.PathLike[str] = RESULTS
) -> str:
    """Measures false alarms and delays on real streams; prints and stores the page.

    Parameters
    ----------
    streams
        A file of streams, as `streams.read` reads it; by default forecasts of public data.
    out
        The folder for `watch.md`.
    """
    given = made() if streams is None else read(streams)
    real = [one for one in given if one.kind != "synth" and len(one.y) >= BROKEN + 2_000]
    real = [one for one in real if not one.kind.startswith("synth")]
    parts = ["# Who is called when a model dies", f"    {command('watch', streams, out)}"]
    for title, chosen in (
        ("Actual values in time", [one for one in real if not one.delay]),
        ("Late", [one for one in real if one.delay]),
    ):
        if chosen:
            rows = sum(len(one.y) for one in chosen)
            parts += [f"## {title}: {len(chosen)} streams, {rows:,} rows", _page(chosen, rows)]
    return keep("\n\n".join(parts) + "\n", out, "watch.md")


def _middles(series: Series) -> Floats:
    """The middle of each shown interval."""
    tape = sp.Tape.from_arrays({"lower": series.lower, "upper": series.upper}, series.y)
    trace = sp.replay(sp.intervals(coverage=0.9), tape, delay=series.delay)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(trace.upper), 0.5 * (trace.lower + trace.upper), series.point)


def _page(chosen: Iterable[Series], rows: int) -> str:
    """False alarms per 10,000 rows; of each fault the share found by the end, and the delay."""
    calm: dict[str, int] = dict.fromkeys(WAYS, 0)
    delays: dict[tuple[str, float], list[float]] = {}
    for series in chosen:
        for times in (1.0, *FAULTS):
            one = broken(series, times)
            middle = _middles(one)
            for name, alarms in WAYS.items():
                if times == 1.0:
                    calm[name] += len(alarms(one, middle, len(one.y)))
                    continue
                after = [row for row in alarms(one, middle, BROKEN) if row >= BROKEN]
                delay = float(after[0] - BROKEN) if after else np.inf
                delays.setdefault((name, times), []).append(delay)
    head = ["", "false per 10,000 rows", *(f"errors × {times:g}" for times in FAULTS)]
    lines = []
    for name in WAYS:
        cells = []
        for times in FAULTS:
            each = np.array(delays[name, times])
            found, middle_delay = 100.0 * np.isfinite(each).mean(), np.median(each)
            shown = f"{middle_delay:.0f}" if np.isfinite(middle_delay) else "–"
            cells.append(f"{found:.0f} %, {shown}")
        lines.append([name, f"{1e4 * calm[name] / rows:.2f}", *cells])
    return table(head, lines)
