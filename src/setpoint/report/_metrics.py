"""The numbers of a report as plain dicts and lists: what a metrics file holds."""

import json
import os
import re
from collections import Counter
from collections.abc import Hashable, Mapping
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from setpoint import _check
from setpoint._files import put
from setpoint.bulk.replay import Trace
from setpoint.guarantee import RiskCertificate
from setpoint.losses import declaration
from setpoint.metrics import Summary
from setpoint.report import _curves as curves
from setpoint.report._by_group import grouped
from setpoint.report._view import View, by_stream, shows_intervals, stream_at, view

__all__ = ["metrics", "write_metrics"]

_MOST_STREAMS = 20
_HEADLINE = ("level", "risk", "bound_lower", "bound_upper", "verdict")
_OF_RISKS = ("level", "risk", "worst_window", "rms_window", "worst_window_start")
_OF_GROUPS = ("delta_coverage", "noise_floor", "groups")


def metrics(trace: Trace, *, window: int = 250) -> dict[str, Any]:
    """Every number of a report, as dicts, lists, words and finite numbers.

    What is not a finite number, such as a mean over nothing or an infinite length, is None: JSON
    has no other word.

    Parameters
    ----------
    trace
        What `setpoint.replay` returned.
    window
        Labels in a sliding window.

    Returns
    -------
    A dict with, among others,

    - `level`, `risk`, `bound_lower`, `bound_upper`, `verdict`: what was asked of the first risk,
      what came out, between what the guarantee says it lies, and whether that holds;
    - `risks`: the same for each risk, with its worst windows in `windows`; where a trace goes on
      from a saved state, the guarantee is about `certified_risk`, with `earlier_labels` in it;
    - `coverage`, `mean_length`, `msl`, …: as in `setpoint.metrics.Summary`;
    - `groups`: coverage and risk by group or weekday, or None;
    - `streams`: how many there are, and in `worst_streams` up to twenty, the highest risk first;
    - `certificate`: that of the only stream, or None.

    Examples
    --------
    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-5, 5))
    >>> tape = sp.Tape.from_arrays({"lower": [10.0] * 4, "upper": [14.0] * 4}, [15, 12, 12, 12])
    >>> found = metrics(sp.replay(sp.Controller(sp.sets.Widen(), risk), tape))
    >>> found["level"], found["risk"], found["coverage"], found["longest_streak"]
    (0.1, 0.25, 0.75, 1)
    >>> found["verdict"]
    'says nothing yet; within 0.01 after T = 1,090'
    """
    _check.whole(window, "window", 1)
    every = view(trace)
    summaries = [trace.summary(i, window=window) for i in range(len(trace.controller.risks))]
    certificates = [trace.certificate(stream) for stream in trace.states]
    risks = [
        _risk(trace, i, summary, [each.risks[i] for each in certificates])
        for i, summary in enumerate(summaries)
    ]
    found = {
        "setpoint": version("setpoint"),
        **{name: risks[0][name] for name in _HEADLINE},
        "sets": "intervals" if shows_intervals(trace) else "sets",
        "rows": len(trace.lam),
        "streams": len(trace.states),
        "first_time": _time(trace, every, 0),
        "last_time": _time(trace, every, -1),
        "risks": risks,
        **{
            name: value
            for name, value in summaries[0].as_dict().items()
            if name not in (*_OF_RISKS, *_OF_GROUPS)
        },
        "groups": _groups(every),
        "worst_streams": _streams(trace) if every.several else [],
        "certificate": None if every.several else certificates[0].as_dict(),
    }
    return {name: _plain(value) for name, value in found.items()}


def write_metrics(found: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Writes what `metrics` returned as a JSON file, whole or not at all."""
    text = json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False)
    return put(path, f"{text}\n".encode())


def _risk(
    trace: Trace, index: int, summary: Summary, held: list[RiskCertificate]
) -> dict[str, Any]:
    """What was asked of one risk, what came out, and what is guaranteed."""
    lower, upper = _bound(trace, index, held)
    judged = int((~np.isnan(trace.losses[index])).sum())
    counted = sum(each.judged for each in held)
    total = sum(each.mean * each.judged for each in held if each.judged)
    return {
        "name": held[0].name,
        "level": summary.level,
        "risk": summary.risk,
        "bound_lower": lower,
        "bound_upper": upper,
        "verdict": _verdict([each.verdict for each in held]),
        "labels": judged,
        "earlier_labels": counted - judged,
        "certified_risk": total / counted if counted else None,
        "worst_window": summary.worst_window,
        "rms_window": summary.rms_window,
        "worst_window_start": summary.worst_window_start,
        "windows": _windows(trace, index, summary),
    }


def _bound(
    trace: Trace, index: int, held: list[RiskCertificate]
) -> tuple[float | None, float | None]:
    """Where the guarantee says that the mean loss of all labels lies.

    Σ(l − r) of each stream lies within its constants, so over several streams these add up. A
    loss never leaves its range, so neither does the bound.
    """
    labels = sum(each.judged for each in held)
    risk = trace.controller.risks[index]
    promise = declaration(risk.loss)
    counted = [each for each in held if each.judged]
    ends: list[float | None] = []
    for constants in (
        [each.constant_lower for each in counted],
        [each.constant_upper for each in counted],
    ):
        known = [constant for constant in constants if constant is not None]
        if not labels or len(known) < len(constants):
            ends.append(None)
        else:
            ends.append(min(max(risk.level + sum(known) / labels, promise.low), promise.high))
    return ends[0], ends[1]


def _verdict(verdicts: list[str]) -> str:
    """One sentence for all streams: the verdict they share, or how many have which."""
    if len(set(verdicts)) == 1:
        return verdicts[0]
    counts = Counter(re.split("[;,:]", each, maxsplit=1)[0] for each in verdicts)
    if len(counts) == 1:
        return next(iter(counts))
    order = sorted(counts.items(), key=lambda pair: (not pair[0].startswith("BROKEN"), -pair[1]))
    return "; ".join(
        f"{words} for {count:,} of {len(verdicts):,} streams" for words, count in order
    )


def _windows(trace: Trace, index: int, summary: Summary) -> list[dict[str, Any]]:
    """The worst windows that do not overlap, of the stream that has the worst of all."""
    if summary.worst_window_start is None:
        return []
    stream = stream_at(trace, summary.worst_window_start)
    seen = view(trace, stream if len(trace.states) > 1 else None, alone=True)
    found = curves.rolling(seen, index, summary.window)
    return [
        {
            "stream": stream,
            "start": int(seen.rows[each.start]),
            "stop": int(seen.rows[each.stop]),
            "from": _time(trace, seen, each.start),
            "to": _time(trace, seen, each.stop),
            "labels": found.window,
            "risk": each.risk,
        }
        for each in found.worst
    ]


def _groups(every: View) -> dict[str, Any] | None:
    found = grouped(every)
    if found is None:
        return None
    return {
        "by": found.by,
        "delta_coverage": found.delta,
        "noise_floor": found.noise_floor,
        "rows": [group._asdict() for group in found.groups],
    }


def _streams(trace: Trace) -> list[dict[str, Any]]:
    found = by_stream(trace)
    level = trace.controller.risks[0].level
    made = []
    for place in found.worst_first()[:_MOST_STREAMS]:
        id: Hashable = found.ids[place]
        held = trace.certificate(id)
        made.append(
            {
                "id": id,
                "labels": int(found.labels[place]),
                "risk": float(found.risk[place]),
                "excess": float(found.risk[place]) - level,
                "coverage": float(found.coverage[place]),
                "mean_finite_length": float(found.length[place]),
                "verdict": held.risks[0].verdict,
            }
        )
    return made


def _time(trace: Trace, seen: View, place: int) -> str | float | None:
    if trace.tape.time is None:
        return None
    time = seen.x[place]
    return str(time) if isinstance(time, np.datetime64) else float(time)


def _plain(value: Any) -> Any:
    """The value in JSON's own types."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if isfinite(value) else None
    return value if value is None else str(value)
