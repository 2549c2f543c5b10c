"""The model of `forecast`: what it sees and what it is, in words, and what it says of each row."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from setpoint._check import option
from setpoint.errors import InputError
from setpoint.jobs.features import Features
from setpoint.models.candidates import AUTO, CANDIDATES, fits
from setpoint.models.forecast import Mixture, forecast
from setpoint.tape import Tape
from setpoint.tape.rows import Rows

Array = np.ndarray[Any, Any]
Progress = Callable[[int, int], None]

MODELS = {
    "auto": f"{', '.join(AUTO)}, mixed by how well each of them lately did",
    **CANDIDATES,
}
"""The models that can be called by name."""

_FITS, _TREES = 60, 2_000_000
"""How often boosting may be fitted where nobody asked for it, and for how many forecasts."""
_LISTED = 12
_TOLD = 3
"""How many times a model's absence is told."""


def seen_notes(seen: Features, time: str | None) -> list[str]:
    """What the model sees, in words."""
    names = [name or "a column without a name" for name in seen.columns]
    if len(names) > _LISTED:
        names = [*names[: _LISTED - 1], f"… and {len(names) - _LISTED + 1} more"]
    notes = [f"the model sees {', '.join(names) or 'the last labels only'}"]
    if seen.lagged:
        notes.append(
            "all columns but the time are taken from the last row with an actual value; name those "
            f"that are known for rows to come by {option('known_ahead')}"
        )
    if time is None:
        notes.append("no time was named or found: the rows are taken in the order of the file")
    if seen.left_out:
        reasons = [
            f"{repr(name) if name else 'a column without a name'} {why}"
            for name, why in seen.left_out.items()
        ]
        notes.append(f"left out: {'; '.join(reasons)}")
    return notes


def mixture_of(
    model: str,
    seen: Features,
    tape: Tape,
    level: float,
    horizons: Sequence[int],
    rows: Rows,
    progress: Progress | None,
) -> tuple[Mixture, list[str]]:
    """What a model forecasts of every row of a tape, in the order of its streams; and notes."""
    if model not in MODELS:
        raise InputError(f"model must be one of {', '.join(MODELS)}, got {model!r}")
    models, notes = AUTO if model == "auto" else (model,), []
    offsets = tape.segments.offsets
    many = sum(map(fits, np.diff(offsets).tolist())) > _FITS
    if model == "auto" and (many or len(horizons) * len(tape) > _TREES):
        models = tuple(name for name in AUTO if name != "boosting")
        notes.append("boosting is left out, to save time: it can be named as the model")
    clock = None
    if tape.time is not None:
        times = np.split(tape.by_stream(tape.time), offsets[1:-1])
        clocks = [part for part in map(clock_of, times) if part is not None]
        if len(clocks) == len(times):
            clock = np.concatenate(clocks)
    learnt = forecast(
        tape.by_stream(seen.values.T).T, tape.by_stream(tape.y), horizons=horizons,
        offsets=offsets, late=seen.late, clock=clock, models=models, level=level, progress=progress,
    )  # fmt: skip
    return learnt, [*notes, *_told(model, learnt, tape, rows)]


def clock_of(time: Array) -> Array | None:
    """Times in units of the usual distance of two rows, if there is one."""
    moments = time.astype("datetime64[us]").astype(np.float64) if time.dtype.kind == "M" else time
    steps = np.diff(moments.astype(np.float64))
    usual = float(np.median(steps)) if len(steps) else 0.0
    return (moments - moments[0]) / usual if usual > 0.0 else None


def _told(model: str, learnt: Mixture, tape: Tape, rows: Rows) -> list[str]:
    """What there is to say of the models; few rows, for finding one reads the file."""
    notes, header = [], iter([True])  # which line is the first is said once

    def place(row: int) -> str:
        return rows.place(row, header=next(header, False))

    weights = dict(zip(learnt.names, learnt.weights.mean(axis=(0, 1)).tolist(), strict=True))
    in_file, ends = tape.by_stream(tape.places), set(tape.segments.offsets.tolist())
    absences: dict[str, list[tuple[int, int | None]]] = {}
    for name, start, stop in learnt.absences:
        until = None if stop in ends else int(in_file[stop])
        absences.setdefault(name, []).append((int(in_file[start]), until))
    share = weights.get(model, 1.0)
    if model == "seasonal" and share < 0.5:
        notes.append(
            f"no season was found for {1.0 - share:.0%} of the rows: there the forecast is the "
            "last label"
        )
    if model == "auto":
        shares = sorted(weights.items(), key=lambda item: -item[1])
        parts = [f"{name} {share:.0%}" for name, share in shares if share >= 0.005]
        notes.append(f"the forecast is a mixture, on average of {', '.join(parts)}")
    for name, times in absences.items():
        some = [
            f"at {place(start)}, left out" + ("" if stop is None else f" until {place(stop)}")
            for start, stop in times[:_TOLD]
        ]
        more = f"; and {len(times) - _TOLD:,} more times" if len(times) > _TOLD else ""
        notes.append(f"{name} diverged {'; '.join(some)}{more}")
    return notes
