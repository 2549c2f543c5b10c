"""Several levels, and groups that overlap, in a report: bands, calibration, what is guaranteed."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from setpoint._html import named
from setpoint.bulk.trace import Trace
from setpoint.certificate import used
from setpoint.sets.fan import Fan

_MOST_GROUPS = 20


class Level(NamedTuple):
    """The ends of one level, and what it is called."""

    name: str
    lower: np.ndarray[Any, Any]
    upper: np.ndarray[Any, Any]


def fan(trace: Trace) -> list[Level]:
    """The intervals of a trace as they are drawn, the outermost first.

    Quantiles are taken in pairs from the outside in; one without a pair is a line.

    >>> import setpoint as sp
    >>> tape = sp.Tape.from_arrays({"point": [0.0] * 4}, [1.0, 2.0, 3.0, 4.0])
    >>> [level.name for level in fan(sp.replay(sp.quantiles([0.1, 0.5, 0.9]), tape))]
    ['10 to 90 %', '50 %']
    """
    sets = trace.controller.sets
    if isinstance(sets, Fan) and not sets.pairs:
        ends = [trace.ends[name] for name in sets.named]
        percent = [f"{100.0 * level:g}" for level in sets.taus]
        last = len(ends) - 1
        names = [
            " to ".join(dict.fromkeys((percent[k], percent[last - k]))) for k in range(len(ends))
        ]
        return [Level(f"{names[k]} %", ends[k], ends[last - k]) for k in range(last // 2 + 1)]
    every = list(zip(*trace.levels, strict=True))
    names = [f"level {place + 1}" for place in range(len(every))]
    if isinstance(sets, Fan):
        names = [f"{100.0 * level:g} %" for level in sets.levels]
    return [Level(name, *ends) for name, ends in zip(names, every, strict=True)][::-1]


def calibration(trace: Trace) -> dict[str, Any] | None:
    """What came out of several quantiles, as `Trace.calibration` has it; None without them."""
    found = trace.calibration()
    if found is None or not found.labels:
        return None
    away = np.subtract(found.shares, found.levels).tolist()
    return {**asdict(found), "away": away, "off": found.off}


def held_groups(trace: Trace) -> dict[str, Any] | None:
    """What is guaranteed in groups, those of all series nearest to their limit first; or None."""
    every = [
        (id, name, risk)
        for id, certificate in zip(trace.states, trace.certificates, strict=True)
        for name, risk in certificate.groups.nearest(_MOST_GROUPS)
    ]
    count = sum(len(certificate.groups) for certificate in trace.certificates)
    if not every:
        return None
    nearest = sorted(every, key=lambda own: -used(own[2]))[:_MOST_GROUPS]
    rows = [
        {
            "series": id,
            "group": name,
            "risk": risk.name,
            "asked": risk.asked,
            "labels": risk.judged,
            "mean": risk.mean if risk.judged else None,
            "coverage": 1.0 - risk.mean if risk.judged and risk.asked is not None else None,
            "excess": risk.excess,
            "most": risk.constant_upper,
            "status": risk.status,
            "verdict": risk.verdict,
        }
        for id, name, risk in nearest
    ]
    return {"count": count, "nearest": rows}


def group_lines(held: Mapping[str, Any] | None, most: int = 5) -> list[str]:
    """A line for each of the groups of several series that are nearest to their limit."""
    if held is None:
        return []
    lines = [f"  of {held['count']:,} groups those nearest to their limit:"]
    for own in held["nearest"][:most]:
        mean = "" if own["mean"] is None else f"mean loss {own['mean']:.4f}, "
        if own["coverage"] is not None:
            mean = f"coverage {100.0 * own['coverage']:.2f} %, "
        limit = "" if own["most"] is None else f", never more than {own['most']:.4g}"
        lines.append(
            f"    {named(own['series'])}, {named(own['group'])}: {mean}"
            f"{own['excess']:+.1f} from what was asked{limit}, {own['labels']:,} labels "
            f"({own['verdict']})"
        )
    return lines
