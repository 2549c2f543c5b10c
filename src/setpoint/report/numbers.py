"""The numbers of a report: as values to read, and as the dicts of a metrics file."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from math import isfinite, nan
from typing import Any, NamedTuple

import numpy as np

from setpoint import _check
from setpoint import metrics as measures
from setpoint.bulk.states import columns_of
from setpoint.bulk.trace import Trace, nominal
from setpoint.correction import Intervals
from setpoint.guarantee import RiskCertificate, Status, asked_of
from setpoint.losses import Counts, Misses, declaration
from setpoint.metrics import Summary, tally
from setpoint.metrics.arrays import coded
from setpoint.predictions import Row
from setpoint.report import curves
from setpoint.report.curves import (
    Array,
    View,
    by_stream,
    shows_intervals,
    stream_numbers,
    summary_of,
    view_of,
)
from setpoint.report.levels import calibration, held_groups
from setpoint.stream import Stream
from setpoint.summary import learnt_in
from setpoint.tape.text import weekday

_MOST_STREAMS = 50
_HEADLINE = ("level", "risk", "bound_lower", "bound_upper", "status", "verdict")
_OF_RISKS = ("level", "risk", "worst_window", "rms_window", "worst_window_start")
_OF_GROUPS = ("delta_coverage", "noise_floor", "groups")
_WEAKEST_FIRST = (
    Status.BROKEN, Status.NO_GUARANTEE, Status.NO_LABEL_YET, Status.SAYS_NOTHING_YET,
    Status.BEST_EFFORT, Status.HOLDS_FROM_ABOVE, Status.HOLDS, Status.MEASURED,
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


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
    budget: float | None
    budget_all: float | None
    unit: str
    worst_window: float | None
    rms_window: float | None
    worst_window_start: int | None
    windows: tuple[Window, ...]


@dataclass(frozen=True, slots=True)
class SeriesNumbers:
    """One of several series: what came out, and what is guaranteed of its first risk."""

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
        risks = tuple(
            RiskNumbers(**{**risk, "windows": tuple(map(_window, risk["windows"]))})
            for risk in plain["risks"]
        )
        same = {name: plain[name] for name in _AS_THEY_ARE}
        return cls(
            plain=plain,
            scores={name: value for name, value in plain.items() if name not in same},
            risks=risks,
            worst_streams=tuple(SeriesNumbers(**one) for one in plain["worst_streams"]),
            before=plain.get("before"),
            forecast_error=plain.get("forecast_error"),
            warning=plain.get("warning"),
            notes=tuple(plain.get("notes") or ()),
            job=plain.get("job") or {},
            **same,
        )

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
        return str((self.job.get("columns") or {}).get("target", "label"))


_AS_THEY_ARE = (
    "setpoint", "sets", "rows", "streams", "first_time", "last_time", "usefulness", "groups",
    "calibration", "held_groups", "learnt", "why",
)  # fmt: skip


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
        Among others it has:

        - `level`, `risk`, `bound_lower`, `bound_upper`, `status`, `verdict`: what was asked of the
          first risk, what came out, between what the guarantee says it lies, and whether that
          holds: a word of `guarantee.Status`, of several streams the weakest, and a sentence;
        - `risks`: the same for each risk, with its worst windows in `windows`; if it is about
          coverage, what was `asked`, the `coverage`, and between what it is guaranteed to lie,
          `coverage_low` and `coverage_high`; in `budget` the most that any stream can lose too
          much, in its `unit`, and in `budget_all` the most that all can together; where a trace
          goes on from a saved state, the guarantee is about `certified_risk`, with `earlier_labels`
          in it;
        - `coverage`, `mean_length`, `msl`, …: as in `setpoint.metrics.Summary`; one full set makes
          `mean_length`, `winkler` and `pinball` None, and `mean_finite_length`,
          `mean_finite_winkler` and `mean_finite_pinball` are those of the intervals with two ends;
        - `groups`: coverage and risk by group or weekday, or None;
        - `calibration`: of several levels the share of labels at or below each quantile, the PIT
          in tenths, CRPS and WQL, as in `Trace.calibration`, or None;
        - `held_groups`: where risks are held in groups too, how many groups there are in all
          series, and those `nearest` to their limit, or None;
        - `usefulness`: whether the sets were of use, as in `setpoint.metrics.Usefulness`, or None;
        - `streams`: how many there are, and in `worst_streams` up to fifty, those with useless or
          poor sets first, then the highest risk;
        - `before`: the numbers of the sets that there were before, and in `lengths` the mean finite
          length of each of `worst_streams`, or None;
        - `learnt`: what the correction has learnt on the only stream, or None;
        - `why`: the interval that the last forecast would have now, explained, or None;
        - `certificate`: that of the only stream, or None.

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
    every = view_of(trace)
    risks_held = range(len(trace.controller.risks))
    summaries = [summary_of(trace, i, window) for i in risks_held]
    certificates = trace.certificates
    many = Counter(map(id, certificates))  # streams whose states are alike share one
    distinct = {id(certificate): certificate for certificate in certificates}
    risks = [
        _risk(every, i, summary, [(distinct[key].risks[i], many[key]) for key in many])
        for i, summary in enumerate(summaries)
    ]
    of_the_first, use = summaries[0].as_dict(), trace.usefulness()
    numbers = {
        "setpoint": version("setpoint"),
        **{name: getattr(risks[0], name) for name in _HEADLINE},
        "sets": "intervals" if shows_intervals(trace) else "sets",
        "rows": len(trace.lam),
        "streams": len(trace.states),
        "first_time": _time(every, 0),
        "last_time": _time(every, -1),
        "risks": [asdict(risk) for risk in risks],
        **{name: of_the_first[name] for name in of_the_first if name not in _OF_RISKS + _OF_GROUPS},
        **_finite_scores(trace, summaries[0]),
        "before": None if before is None else _before(trace, before, window),
        "groups": _groups(every),
        "calibration": calibration(trace),
        "held_groups": held_groups(trace),
        "worst_streams": [asdict(one) for one in _streams(trace)] if every.several else [],
        "usefulness": None if use is None else use.as_dict(),
        "learnt": None if every.several else learnt_in(trace.controller, trace.state) or None,
        "why": None if every.several else _why(trace),
        "certificate": None if every.several else certificates[0].as_dict(),
    }
    return {name: _plain(value) for name, value in numbers.items()}


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
    view: View, index: int, summary: Summary, certificates: list[tuple[RiskCertificate, int]]
) -> RiskNumbers:
    """The numbers of one risk.

    Each certificate stands beside the number of streams that it is of.
    """
    first, curve = certificates[0][0], curves.risks(view, index)
    promise = declaration(view.trace.controller.risks[index].loss)

    def last(side: Array | None) -> float | None:
        return float(side[-1]) if side is not None and len(side) else None

    low, high = last(curve.low), last(curve.high)
    return RiskNumbers(
        name=first.name,
        level=summary.level,
        risk=summary.risk,
        bound_lower=low,
        bound_upper=high,
        status=min((c.status for c, _ in certificates), key=_WEAKEST_FIRST.index),
        verdict=_verdict(certificates),
        low=promise.low,
        high=promise.high,
        labels=curve.labels,
        earlier_labels=curve.earlier,
        certified_risk=last(curve.risk),
        asked=first.asked,
        coverage=_held(first, summary.risk),
        coverage_low=_held(first, high),
        coverage_high=_held(first, low),
        budget=_budget(certificates),
        budget_all=_budget(certificates, together=True),
        unit=first.unit[1],
        worst_window=summary.worst_window,
        rms_window=summary.rms_window,
        worst_window_start=summary.worst_window_start,
        windows=tuple(_windows(view.trace, index, summary)),
    )


def _held(risk: RiskCertificate, mean: float | None) -> float | None:
    """The coverage that a mean loss is, where it is the share of labels missed."""
    return None if mean is None or risk.asked is None else 1.0 - mean


def _budget(
    certificates: list[tuple[RiskCertificate, int]], *, together: bool = False
) -> float | None:
    """The most that any stream can lose beyond what was asked, where that is told as a count.

    What all of them can lose together is the sum.
    """
    ends = [(risk.constant_upper if risk.counted else None, many) for risk, many in certificates]
    known = [end * (many if together else 1) for end, many in ends if end is not None]
    if len(known) < len(ends):
        return None
    return sum(known) if together else max(known)


def _before(trace: Trace, before: Trace, window: int) -> dict[str, Any]:
    """The numbers of the sets that there were before."""
    summary = before.summary(window=window)
    scores: dict[str, Any] = {**summary.as_dict(), **_finite_scores(before, summary)}
    use = before.usefulness() if trace.shown is None else None
    several = len(trace.states) > 1
    if use is None:  # the sets of `trace` have no ends
        scores |= {name: None for name in scores if name.endswith(("winkler", "pinball"))}
    ids = [trace.tape.streams[place] for place in _by_trouble(trace)] if several else []
    sizes = [view_of(before, id).sizes for id in ids]
    lengths = [tally.mean(each[np.isfinite(each)]) for each in sizes]
    return {**scores, "usefulness": None if use is None else use.as_dict(), "lengths": lengths}


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


def _windows(trace: Trace, index: int, summary: Summary) -> list[Window]:
    """The worst windows that do not overlap, of the stream that has the worst of all."""
    if summary.worst_window_start is None:
        return []
    stream = worst_window_stream(trace, summary)
    view = view_of(trace, stream, alone=True)
    rolling = curves.rolling(view, index, summary.window)
    asked = asked_of(trace.controller.risks[index])
    return [
        Window(
            stream,
            int(view.rows[window.start]),
            int(view.rows[window.stop]),
            _time(view, window.start),
            _time(view, window.stop),
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
        largest = Miss(int(rows[place]), _time(part, int(missed[place])), *ends)
    return len(missed), streak, int(above.sum()), int(below.sum()), largest


def _by_trouble(trace: Trace) -> list[int]:
    """The places of the streams with the most trouble."""
    uses = trace.uses
    return by_stream(trace).worst_first(None if uses is None else uses.trouble)[:_MOST_STREAMS]


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


class Group(NamedTuple):
    """One group: its labels, coverage and mean loss."""

    key: Any
    labels: int
    coverage: float
    risk: float


class Grouped(NamedTuple):
    """The groups of a view, by what they are made, and which of their numbers to judge.

    `coverage` says whether coverage is what the first risk is about; else it is the mean loss.
    """

    by: str
    groups: list[Group]
    coverage: bool
    goal: float
    delta: float
    noise_floor: float


def grouped(view: View) -> Grouped | None:
    """What came out by group or day of the week; None where rows have neither."""
    tape, risk = view.trace.tape, view.trace.controller.risks[0]
    if tape.group is not None:
        by = "group"
        codes, keys = coded(tape.group[view.rows], len(view.rows))
        if tape.group.dtype.kind in "mM":
            keys = [str(key) for key in keys]
    elif tape.time is not None and tape.time.dtype.kind == "M":
        by, keys = "weekday", list(_WEEKDAYS)
        codes = weekday(tape.time[view.rows])
    else:
        return None
    goal = nominal(view.trace.controller)
    hits, losses = view.hits, view.losses(0)
    cover = measures.delta_coverage(np.where(codes < 0, nan, hits), codes, goal)
    judged = (codes >= 0) & ~np.isnan(losses)
    counts = np.bincount(codes[judged], minlength=len(keys))
    totals = np.bincount(codes[judged], weights=losses[judged], minlength=len(keys))
    groups = [
        Group(
            key,
            cover.sizes[place],
            cover.coverage[place],
            float(totals[place] / counts[place]) if counts[place] else nan,
        )
        for place, key in enumerate(keys)
        if place in cover.sizes
    ]
    groups.sort(key=_rank)
    # `nominal` knows what coverage the library's own losses that count misses ask for.
    about_misses = isinstance(risk.loss, Counts) and isinstance(risk.loss, Misses)
    goal = goal if about_misses else risk.level
    return Grouped(by, groups, about_misses, goal, cover.delta, cover.noise_floor)


def _rank(group: Group) -> tuple[int, float, str]:
    """Weekdays as in the week, numbers by size, then words."""
    key = group.key
    if key in _WEEKDAYS:
        return 0, _WEEKDAYS.index(key), ""
    return (1, float(key), "") if isinstance(key, int | float) else (2, 0.0, str(key))


def _groups(view: View) -> dict[str, Any] | None:
    groups = grouped(view)
    if groups is None:
        return None
    return {
        "by": groups.by,
        "delta_coverage": groups.delta,
        "noise_floor": groups.noise_floor,
        "rows": [group._asdict() for group in groups.groups],
    }


def _time(view: View, place: int) -> str | float | None:
    if view.trace.tape.time is None:
        return None
    time = view.x[place]
    return str(time) if isinstance(time, np.datetime64) else float(time)


def _plain(value: Any) -> Any:
    """The value in JSON's own types."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if isfinite(value) else None
    return value if value is None else str(value)
