"""The numbers of a report: as values to read, and as the dicts of a metrics file."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from math import isfinite, nan
from typing import Any

import numpy as np

from setpoint import _check
from setpoint import metrics as measures
from setpoint.bulk.states import columns_of
from setpoint.bulk.trace import Trace, nominal
from setpoint.correction import Intervals
from setpoint.errors import InputError
from setpoint.guarantee import RiskCertificate, Status, asked_of
from setpoint.losses import declaration
from setpoint.metrics import Summary, tally
from setpoint.predictions import Row
from setpoint.report import curves
from setpoint.report.curves import (
    View,
    by_stream,
    coarse,
    stream_numbers,
    summary_of,
    view_of,
)
from setpoint.report.groups import grouped, held_groups
from setpoint.stream import Stream
from setpoint.summary import learnt_in

_MOST_STREAMS = 50
_HEADLINE = ("level", "risk", "bound_lower", "bound_upper", "status", "verdict")
_OF_RISKS = ("level", "risk", "worst_window", "rms_window", "worst_window_start")
_OF_GROUPS = ("delta_coverage", "noise_floor", "groups")
_WEAKEST_FIRST = (
    Status.BROKEN, Status.NO_GUARANTEE, Status.NO_LABEL_YET, Status.SAYS_NOTHING_YET,
    Status.BEST_EFFORT, Status.HOLDS_FROM_ABOVE, Status.HOLDS, Status.MEASURED,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Miss:
    """The furthest miss of a window."""

    row: int
    time: str | float | None
    y: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Window:
    """A run of labels far from the level: where it lies, and what happened there.

    `above` and `below` count the misses on each side, None where sets have no ends.
    """

    series: Any
    start: int
    stop: int
    first_time: str | float | None
    last_time: str | float | None
    labels: int
    risk: float
    coverage: float | None
    misses: int
    longest_streak: int
    above: int | None
    below: int | None
    largest: Miss | None


@dataclass(frozen=True, slots=True)
class RiskNumbers:
    """What was asked of one risk, what came out, and what is guaranteed."""

    name: str
    level: float
    risk: float | None
    bound_lower: float | None
    bound_upper: float | None
    status: str
    verdict: str
    low: float | None
    high: float | None
    labels: int
    earlier_labels: int
    certified_risk: float | None
    asked: float | None
    coverage: float | None
    coverage_low: float | None
    coverage_high: float | None
    bound: float | None
    bound_all: float | None
    unit: str
    worst_window: float | None
    rms_window: float | None
    worst_window_start: int | None
    windows: tuple[Window, ...]


@dataclass(frozen=True, slots=True)
class SeriesNumbers:
    """One of several series: what came out, and what is guaranteed for its first risk."""

    id: Any
    labels: int
    risk: float | None
    excess: float | None
    coverage: float | None
    mean_finite_length: float | None
    status: str
    verdict: str
    usefulness: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Numbers:
    """Every number of a report; `plain` are the same as a metrics file has them.

    `scores` are those of `setpoint.metrics.Summary`. The last four are of a job on a file: what
    there was before, how far the forecast is off, what to know of it, and what was asked.
    """

    plain: Mapping[str, Any]
    scores: Mapping[str, Any]
    setpoint: str
    sets: str
    rows: int
    streams: int
    first_time: str | float | None
    last_time: str | float | None
    risks: tuple[RiskNumbers, ...]
    worst_streams: tuple[SeriesNumbers, ...]
    usefulness: Mapping[str, Any] | None
    groups: Mapping[str, Any] | None
    calibration: Mapping[str, Any] | None
    held_groups: Mapping[str, Any] | None
    learnt: Mapping[str, Any] | None
    why: tuple[tuple[str, str], ...] | None
    before: Mapping[str, Any] | None
    forecast_error: float | None
    warning: str | None
    notes: tuple[str, ...]
    job: Mapping[str, Any]

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> "Numbers":
        """The numbers of a metrics file, or of `metrics`."""
        risks = (
            RiskNumbers(**{**risk, "windows": tuple(map(_window, risk["windows"]))})
            for risk in plain["risks"]
        )
        own = {field.name: plain.get(field.name) for field in fields(cls)}
        own["scores"] = {name: value for name, value in plain.items() if name not in own}
        return cls(**own | {
            "plain": plain,
            "risks": tuple(risks),
            "worst_streams": tuple(SeriesNumbers(**one) for one in plain["worst_streams"]),
            "notes": tuple(plain.get("notes") or ()),
            "job": plain.get("job") or {},
        })  # fmt: skip

    @property
    def asked(self) -> float | None:
        """The coverage asked of the first risk, None where it is about something else."""
        return self.risks[0].asked

    @property
    def measure(self) -> str:
        """What the size of a set is called."""
        return "width" if self.sets == "intervals" else "size"

    @property
    def target(self) -> str:
        """What the label is called: its column, if a file has one."""
        return str((self.job.get("columns") or {}).get("target", "actual value"))


def _window(plain: Mapping[str, Any]) -> Window:
    largest = plain["largest"]
    return Window(**{**plain, "largest": None if largest is None else Miss(**largest)})


def metrics(trace: Trace, *, window: int = 250, before: Trace | None = None) -> dict[str, Any]:
    """Every number of a report, as dicts, lists, words and finite numbers.

    What is not a finite number, such as a mean over nothing or an infinite length, is None: JSON
    has no other word.

    Parameters
    ----------
    trace
        What `setpoint.replay` returned.
    window
        Labels in a sliding window.
    before
        The same rows with the sets that there were before, to be judged in the same way.

    Returns
    -------
    dict
        `level`, `risk`, `bound_lower`, `bound_upper`, `status` and `verdict` of the first risk, the
        same and more for each of `risks`, the fields of `setpoint.metrics.Summary`, and what
        docs/report.md lists: `groups`, `calibration`, `usefulness`, `worst_streams`, `before`, ….

    Examples
    --------
    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-5, 5))
    >>> tape = sp.Tape.from_arrays({"lower": [10.0] * 4, "upper": [14.0] * 4}, [15, 12, 12, 12])
    >>> numbers = metrics(sp.replay(sp.Controller(sp.sets.Widen(), risk), tape))
    >>> numbers["level"], numbers["risk"], numbers["coverage"], numbers["longest_streak"]
    (0.1, 0.25, 0.75, 1)
    >>> numbers["status"], numbers["verdict"]
    ('says nothing yet', 'says nothing yet; within 0.01 after 1,090 labels')
    """
    _check.whole(window, "window", 1)
    if not len(trace.lam):
        raise InputError("a report needs rows, the trace has none")
    several = len(trace.states) > 1
    summaries = [summary_of(trace, i, window) for i in range(len(trace.controller.risks))]
    certificates = trace.certificates
    many = Counter(map(id, certificates))  # streams whose states are alike share one
    distinct = {id(certificate): certificate for certificate in certificates}
    risks = [
        _risk(trace, i, summary, [(distinct[key].risks[i], many[key]) for key in many])
        for i, summary in enumerate(summaries)
    ]
    of_the_first, use, time = summaries[0].as_dict(), trace.usefulness(), trace.tape.time
    numbers = {
        "setpoint": version("setpoint"),
        **{name: getattr(risks[0], name) for name in _HEADLINE},
        "sets": "intervals" if trace.shown is None else "sets",
        "rows": len(trace.lam),
        "streams": len(trace.states),
        "first_time": None if time is None else plain_time(time.min()),
        "last_time": None if time is None else plain_time(time.max()),
        "risks": [asdict(risk) for risk in risks],
        **{name: of_the_first[name] for name in of_the_first if name not in _OF_RISKS + _OF_GROUPS},
        **_finite_scores(trace, summaries[0]),
        "before": None if before is None else _before(trace, before, window),
        "groups": {table.by: table.as_dict() for table in grouped(trace)},
        "calibration": _calibration(trace),
        "held_groups": held_groups(trace),
        "worst_streams": [asdict(one) for one in _streams(trace)] if several else [],
        "usefulness": None if use is None else use.as_dict(),
        "learnt": None if several else learnt_in(trace.controller, trace.state) or None,
        "why": None if several else _why(trace),
        "certificate": None if several else certificates[0].as_dict(),
    }
    values: dict[str, Any] = _check.plain(numbers)
    return values


def _why(trace: Trace) -> list[tuple[str, str]] | None:
    """What the interval of the last forecast would be now, and why, in lines."""
    controller, stage = trace.controller, trace.controller.correction
    if not isinstance(stage, Intervals) or stage.coverage or stage.quantile or not len(trace.lam):
        return None
    last = [float(column[-1]) for column in columns_of(controller, trace.tape)]
    lower, upper, phase, *known = last if len(last) > 2 else (last[0], last[-1], nan)
    words = {name: options for name, *options in stage.categories}
    features = {
        name: words[name][int(value)] if name in words and value == value else value
        for name, value in zip(stage.features, known, strict=True)
    }
    stream = Stream(controller, state=trace.state)
    stream.predict(Row((lower, upper), phase, features or None))
    return stream.explain().lines()


def _risk(
    trace: Trace, index: int, summary: Summary, certificates: list[tuple[RiskCertificate, int]]
) -> RiskNumbers:
    """The numbers of one risk. Each certificate stands beside the number of streams it is of.

    Σ(l − r) of a stream stays within constants; over several streams the constants add up.
    """
    first, promise = certificates[0][0], declaration(trace.controller.risks[index].loss)
    told = [(risk, streams) for risk, streams in certificates if risk.judged]
    judged = sum(risk.judged * streams for risk, streams in told)
    labels = int((~np.isnan(trace.losses[index])).sum())

    def edge(name: str) -> float | None:
        total = _total(told, name)
        if total is None or not judged:
            return None
        return min(max(summary.level + total / judged, promise.low), promise.high)

    low, high = edge("constant_lower"), edge("constant_upper")
    lost = sum(risk.mean * risk.judged * streams for risk, streams in told)
    counted = all(risk.counted and risk.constant_upper is not None for risk, _ in certificates)
    most = [risk.constant_upper or 0.0 for risk, _ in certificates]
    return RiskNumbers(
        name=first.name,
        level=summary.level,
        risk=summary.risk,
        bound_lower=low,
        bound_upper=high,
        status=min((risk.status for risk, _ in certificates), key=_WEAKEST_FIRST.index),
        verdict=_verdict(certificates),
        low=promise.low,
        high=promise.high,
        labels=labels,
        earlier_labels=max(judged - labels, 0),
        certified_risk=lost / judged if judged else None,
        asked=first.asked,
        coverage=_held(first, summary.risk),
        coverage_low=_held(first, high),
        coverage_high=_held(first, low),
        bound=max(most) if counted else None,
        bound_all=_total(certificates, "constant_upper") if counted else None,
        unit=first.unit[1],
        worst_window=summary.worst_window,
        rms_window=summary.rms_window,
        worst_window_start=summary.worst_window_start,
        windows=tuple(_windows(trace, index, summary)),
    )


def _held(risk: RiskCertificate, mean: float | None) -> float | None:
    """The coverage that a mean loss is, where it is the share of labels missed."""
    return None if mean is None or risk.asked is None else 1.0 - mean


def _total(certificates: list[tuple[RiskCertificate, int]], name: str) -> float | None:
    """A constant of all streams together; None where one has none."""
    ends = [(getattr(risk, name), streams) for risk, streams in certificates]
    return None if None in [end for end, _ in ends] else sum(end * many for end, many in ends)


def _before(trace: Trace, before: Trace, window: int) -> dict[str, Any]:
    """The numbers of the sets that there were before."""
    summary = before.summary(window=window)
    scores: dict[str, Any] = {**summary.as_dict(), **_finite_scores(before, summary)}
    use = before.usefulness() if trace.shown is None else None
    several = len(trace.states) > 1
    if use is None:  # the sets of `trace` have no ends
        scores |= {name: None for name in scores if name.endswith(("winkler", "pinball"))}
    ids = [trace.tape.streams[place] for place in _by_trouble(trace)] if several else []
    lengths = dict(zip(before.tape.streams, by_stream(before).length.tolist(), strict=True))
    return {
        **scores,
        "usefulness": None if use is None else use.as_dict(),
        "lengths": [lengths[id] for id in ids],
    }


def _finite_scores(trace: Trace, summary: Summary) -> dict[str, float]:
    """The scores of the intervals that have two finite ends: one without makes a mean infinite."""
    scores: Mapping[str, Any] = summary.as_dict()
    if not (isfinite(summary.mean_length) and summary.empty == 0.0):
        kept = np.zeros(0, dtype=np.int64)
        if trace.shown is None:
            finite = np.isfinite(trace.lower) & np.isfinite(trace.upper)
            kept = np.flatnonzero(finite & trace.observed)
        steps = tally.measure_rows(trace.lower[kept], trace.upper[kept], trace.tape.y[kept])
        scores = tally.derived(tally.tally_of(steps), (1.0 - nominal(trace.controller)) / 2.0)
    return {f"mean_finite_{name}": float(scores[name]) for name in ("winkler", "pinball")}


def _verdict(certificates: list[tuple[RiskCertificate, int]]) -> str:
    """One sentence for all streams: the verdict they share, or how many have which status."""
    sentences = {certificate.verdict for certificate, _ in certificates}
    if len(sentences) == 1:
        return sentences.pop()
    counts: Counter[Status] = Counter()
    for certificate, streams in certificates:
        counts[certificate.status] += streams
    if len(counts) == 1:
        return str(next(iter(counts)))
    return "; ".join(
        f"{status} for {counts[status]:,} of {counts.total():,} series"
        for status in _WEAKEST_FIRST
        if status in counts
    )


def worst_window_stream(trace: Trace, summary: Summary) -> Any:
    """The id of the stream with the worst window of all; None without labels."""
    if summary.worst_window_start is None:
        return None
    return trace.tape.streams[int(stream_numbers(trace)[summary.worst_window_start])]


def _calibration(trace: Trace) -> dict[str, Any] | None:
    """What came out of several quantiles, as `Trace.calibration` has it; None without them."""
    found = trace.calibration()
    if found is None or not found.labels:
        return None
    away = np.subtract(found.shares, found.levels).tolist()
    return {**asdict(found), "away": away, "off": found.off}


def _windows(trace: Trace, index: int, summary: Summary) -> list[Window]:
    """The worst windows that do not overlap, of the stream that has the worst of all."""
    if summary.worst_window_start is None:
        return []
    stream = worst_window_stream(trace, summary)
    view = view_of(trace, stream)
    rolling = curves.rolling(view, index, summary.window)
    asked = asked_of(trace.controller.risks[index])
    return [
        Window(
            stream,
            int(view.rows[window.start]),
            int(view.rows[window.stop]),
            _time_of(view, window.start),
            _time_of(view, window.stop),
            rolling.window,
            window.risk,
            None if asked is None else 1.0 - window.risk,
            *_happened(view.part(slice(window.start, window.stop + 1))),
        )
        for window in rolling.worst
    ]


def _happened(part: View) -> tuple[int, int, int | None, int | None, Miss | None]:
    """How many misses, how many in a row, on which side they lay, and the furthest."""
    trace, missed = part.trace, np.flatnonzero(part.hits == 0.0)
    streak = int(measures.streaks(part.hits).max(initial=0))
    if trace.shown is not None:
        return len(missed), streak, None, None, None
    rows = part.rows[missed]
    lower, upper, y = trace.lower[rows], trace.upper[rows], trace.tape.y[rows]
    above, below = y > upper, (y < lower) & ~(y > upper)  # of an empty set y is both
    away = np.where(above, y - upper, lower - y)
    away = np.where(np.isfinite(away), away, -1.0)
    largest = None
    if len(away) and away.max() >= 0.0:
        place = int(away.argmax())
        ends = (float(values[place]) for values in (y, lower, upper))
        largest = Miss(int(rows[place]), _time_of(part, int(missed[place])), *ends)
    return len(missed), streak, int(above.sum()), int(below.sum()), largest


def _by_trouble(trace: Trace) -> list[int]:
    """The places of the streams with the most trouble."""
    return by_stream(trace).worst_first(trace)[:_MOST_STREAMS]


def _streams(trace: Trace) -> list[SeriesNumbers]:
    streams, uses = by_stream(trace), trace.uses
    level = trace.controller.risks[0].level
    rows = []
    for place in _by_trouble(trace):
        certificate = trace.certificate(streams.ids[place]).risks[0]
        risk = float(streams.risk[place])
        rows.append(
            SeriesNumbers(
                streams.ids[place],
                int(streams.labels[place]),
                risk,
                risk - level,
                float(streams.coverage[place]),
                float(streams.length[place]),
                certificate.status,
                certificate.verdict,
                None if uses is None else uses.verdict(place).as_dict(),
            )
        )
    return rows


def _time_of(view: View, place: int) -> str | float | None:
    return None if view.trace.tape.time is None else plain_time(view.x[place])


def plain_time(time: Any) -> str | float:
    """A time in JSON's own types."""
    return str(coarse(np.array([time]))[0]) if isinstance(time, np.datetime64) else float(time)
