"""Traces: the finished record of a controller on a tape, and what can be read from it."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from math import inf, nan
from typing import Any

import numpy as np

from setpoint import metrics
from setpoint._html import table
from setpoint._rules import has_several, support_of
from setpoint.bulk.arrays import Intervals
from setpoint.bulk.labels import (
    LabelSets,
)
from setpoint.bulk.states import (
    Array,
    States,
    columns_of,
    listed,
)
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.guarantee import Certificate, certify
from setpoint.losses import Misses
from setpoint.metrics.arrays import Calibration
from setpoint.metrics.summaries import size_summary
from setpoint.metrics.usefulness import Streams, of_streams, rolling_quantile
from setpoint.sets import Fan, LabelSet
from setpoint.sets.family import Columns as NamedColumns
from setpoint.sets.family import Members, order_of, size_of
from setpoint.state import State
from setpoint.tape import Tape

_OF_SIZES = (
    "mean_length", "mean_finite_length", "median_length", "correlation", "narrow_coverage",
    "wide_coverage",
)  # fmt: skip
"""The metrics that nothing is known of where a set does not tell how large it is."""


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The finished record of a controller on a tape, row for row.

    Parameters
    ----------
    controller, tape
        What ran on what.
    lower, upper
        The ends of the sets shown, in float32 if the predictions were; NaN where a family shows
        something else than intervals. Of several nested ones those of the largest, of two sides
        what both hold.
    shown
        The sets themselves for such a family, else None.
    lam
        The λ of each set: ±inf where the safeguard chose it; the largest one of several sets.
    covered
        Whether the set held its label; for sets that cannot tell, whether the first risk's loss
        was at its level. It means something where `observed` does.
    theta
        The θ behind each set, one row for each risk.
    losses
        The loss of each label, one row for each risk; NaN where there was none to judge.
    states
        The state each stream ended in, by its id.
    members
        Where a prediction shows several intervals, the lower and the upper ends of all of them,
        one row for each; else None.
    """

    controller: Controller
    tape: Tape
    lower: Array
    upper: Array
    shown: Sequence[Any] | None
    lam: Array
    covered: Array
    theta: Array
    losses: Array
    states: Mapping[Hashable, State]
    members: Intervals | None = None

    def __repr__(self) -> str:
        return f"<Trace of {len(self.lam):,} rows, {len(self.states):,} streams>"

    @property
    def state(self) -> State:
        """The final state of the only stream."""
        if len(self.states) != 1:
            raise InputError(f"the trace has {len(self.states):,} streams: use states[id]")
        return next(iter(self.states.values()))

    @property
    def levels(self) -> Intervals:
        """The ends of the intervals: one row per level, innermost first."""
        if self.members is not None and order_of(self.controller.sets):
            return self.members
        return Intervals(self.lower[None], self.upper[None])

    @property
    def ends(self) -> dict[str, Array]:
        """The ends of several nested sets or quantiles, by the names of their columns."""
        if self.shown is not None:
            return {}
        places = ends_of(self.controller).items()
        ends = self.levels
        return {name: ends[side][member] for name, (member, side) in places}

    def calibration(self) -> Calibration | None:
        """Calibration, PIT, CRPS and WQL of several quantiles.

        None where the controller does not show `Bands`.
        """
        sets = self.controller.sets
        if not isinstance(sets, Fan) or self.shown is not None:
            return None
        ends = [self.ends[name] for name in sets.named]
        return metrics.calibration(sets.taus, np.stack(ends, axis=1), self.tape.y)

    @property
    def observed(self) -> Array:
        """Which rows have a label."""
        return np.asarray(~np.isnan(self.tape.y))

    @property
    def coverage(self) -> float:
        """The share of the labels that their sets held; NaN without labels."""
        return metrics.risk(np.where(self.observed, self.covered, nan))

    @property
    def full(self) -> Array:
        """The rows at which the safeguard chose the full set."""
        return np.asarray(self.lam == inf)

    @property
    def whole(self) -> Array:
        """The rows whose label set contains every class, by the safeguard or not."""
        if isinstance(self.shown, LabelSets):
            return np.asarray(self.shown.mask.all(axis=-1))
        if not self.shown:
            return np.zeros(len(self.lam), dtype=bool)
        return np.array([isinstance(shown, LabelSet) and shown.whole for shown in self.shown])

    @property
    def empty(self) -> Array:
        """The rows at which the safeguard chose the empty set."""
        return np.asarray(self.lam == -inf)

    def summary(
        self, risk: int = 0, *, window: int = 250, coverage: float | None = None
    ) -> metrics.Summary:
        """Every metric of `setpoint.metrics`, with the losses of one risk.

        Of several streams, streaks and windows are those within a stream, however the rows lie
        in the tape; a stream shorter than the window counts as one window.
        """
        tape, (order, offsets) = self.tape, self.tape.segments
        options: Any = {
            "level": self.controller.risks[risk].level,
            "losses": tape.by_stream(self.losses[risk]),
            "groups": None if tape.group is None else tape.by_stream(tape.group),
            "window": window,
            "offsets": offsets,
            "coverage": nominal(self.controller) if coverage is None else coverage,
        }
        if self.shown is None:
            lower, upper, y = map(tape.by_stream, (self.lower, self.upper, tape.y))
            support = support_of(self.controller)
            summary = metrics.summary(lower, upper, y, support=support, **options)
        else:
            summary = self._size_summary(self.shown, options)
        start = summary.worst_window_start
        if order is not None and start is not None:
            summary = replace(summary, worst_window_start=int(order[start]))
        return summary

    @cached_property
    def uses(self) -> Streams | None:
        """How useful the intervals of each stream were, in the order of `tape.streams`."""
        if self.shown is not None:
            return None
        tape = self.tape
        middle = middle_of(self.controller, tape)
        lower, upper, y = map(tape.by_stream, (self.lower, self.upper, tape.y))
        return of_streams(
            lower, upper, y, None if middle is None else tape.by_stream(middle),
            coverage=nominal(self.controller), support=support_of(self.controller),
            offsets=tape.segments.offsets, delay=delays_of(tape),
        )  # fmt: skip

    def usefulness(self) -> metrics.Usefulness | None:
        """Whether the sets were of use, a verdict beside the guarantee.

        Intervals are held against the forecast and its latest errors, sets of labels against the
        frequent labels; of other sets nothing can be said, None.

        Examples
        --------
        >>> import setpoint as sp
        >>> y = np.sin(np.arange(500.0))
        >>> tape = sp.Tape.from_arrays({"point": 0.9 * y}, y)
        >>> str(sp.replay(sp.intervals(coverage=0.9), tape).usefulness().use)
        'useful'
        """
        if self.uses is not None:
            return self.uses.together()
        several = has_several(self.controller.sets)
        if self.shown and isinstance(self.shown[0], LabelSet) and not several:
            ragged = not isinstance(self.shown, LabelSets)
            classes = max(len(labels.classes) for labels in self.shown[: None if ragged else 1])
            return metrics.label_usefulness(
                sizes_of(self.shown), self.tape.y, classes,
                coverage=nominal(self.controller),
            )  # fmt: skip
        return None

    def baseline(self) -> tuple[Array, Array] | None:
        """The ends that a spreadsheet would give: `setpoint.metrics.usefulness.rolling_quantile`.

        None where there is no forecast of one number, or the sets are no intervals.
        """
        tape, middle = self.tape, None if self.shown else middle_of(self.controller, self.tape)
        if middle is None:
            return None
        ends = rolling_quantile(
            *map(tape.by_stream, (tape.y, middle)), offsets=tape.segments.offsets,
            coverage=nominal(self.controller), delay=delays_of(tape),
        )  # fmt: skip
        return tape.by_row(ends[0]), tape.by_row(ends[1])

    def _size_summary(self, shown: Sequence[Any], options: Any) -> metrics.Summary:
        sizes = np.array(sizes_of(shown), np.float64)
        sizes, lam = map(self.tape.by_stream, (sizes, self.lam))
        hits = self.tape.by_stream(np.where(self.observed, self.covered, nan))
        unknown = np.isnan(sizes)
        known = np.where(unknown, 0.0, sizes)
        summary = size_summary(
            known, hits, full=np.isinf(known) | (lam == inf) | self.tape.by_stream(self.whole),
            empty=np.where(unknown, lam == -inf, known == 0.0), **options,
        )  # fmt: skip
        if not unknown.any():
            return summary
        return replace(
            summary,
            **dict.fromkeys(_OF_SIZES, nan),  # type: ignore[arg-type]
        )

    def to_frame(self) -> Any:
        """A pandas frame: keys, label, set, whether the set contains the label, and λ.

        >>> import setpoint as sp
        >>> tape = sp.Tape.from_arrays({"lower": [10.0], "upper": [14.0]}, [12.0])
        >>> sp.replay(sp.intervals(coverage=0.9), tape).to_frame()
              y  lower  upper  covered  lam
        0  12.0   10.0   14.0     True  0.0
        """
        pandas, tape = import_module("pandas"), self.tape
        keys = {name: getattr(tape, name) for name in ("series", "horizon", "time", "group")}
        ends: dict[str, Any] = {"lower": self.lower, "upper": self.upper}
        ends |= self.ends
        columns: dict[str, Any] = {name: key for name, key in keys.items() if key is not None}
        columns["y"] = tape.y
        columns |= ends if self.shown is None else {"shown": list(self.shown)}
        return pandas.DataFrame(columns | {"covered": self.covered, "lam": self.lam})

    def plot(self) -> Any:
        """A plotly figure of the sets and the labels; it needs the extra `plots`."""
        from setpoint.report import plot

        return plot(self)

    def _repr_html_(self) -> str:
        width = self.summary().mean_finite_length
        name = "mean width" if self.shown is None else "mean size"
        return table([
            ("rows", f"{len(self.lam):,}"), ("streams", f"{len(self.states):,}"),
            ("coverage", f"{100.0 * self.coverage:.2f} %"), (name, f"{width:.4g}"),
        ])  # fmt: skip

    def certificate(self, stream: Hashable = None) -> Certificate:
        """The certificate of one stream; `stream` can be omitted if there is only one."""
        if stream is None and len(self.states) == 1:
            return certify(self.controller, self.state)
        if stream not in self.states:
            raise InputError(
                f"the trace has {len(self.states):,} streams, {listed(self.states)}: "
                f"a certificate is about one of them, got {stream!r}; setpoint.guarantee.pooled "
                "sums up those of trace.certificates"
            )
        return certify(self.controller, self.states[stream])

    @cached_property
    def certificates(self) -> list[Certificate]:
        """What is guaranteed for each stream, in the order of `states`."""
        if not isinstance(self.states, States):
            return [certify(self.controller, state) for state in self.states.values()]
        ids, (first, which) = list(self.states), self.states.alike()
        told = [certify(self.controller, self.states[ids[place]]) for place in first.tolist()]
        return [told[place] for place in which.tolist()]


def sizes_of(shown: Sequence[Any]) -> Sequence[float]:
    """How large sets are."""
    if isinstance(shown, LabelSets):
        return shown.sizes  # type: ignore[return-value]
    return [size_of(set_shown) for set_shown in shown]


def middle_of(controller: Controller, tape: Tape) -> Array | None:
    """The forecast of each row as it was given; None where there is no single one."""
    columns = columns_of(controller, tape)
    sets = controller.reader
    names = sets.columns if isinstance(sets, NamedColumns) else None
    arrays = [column for column in columns if isinstance(column, np.ndarray)]
    if len(columns) == 1 and arrays:
        return arrays[0]
    if names is None or len(arrays) < len(columns):
        return None
    by_name = dict(zip(names, arrays, strict=True))
    if "centre" in by_name:
        return by_name["centre"]
    return 0.5 * (by_name["lower"] + by_name["upper"]) if "lower" in by_name else None


def delays_of(tape: Tape) -> Array:
    """The most rows by which a label of each stream is late."""
    schedule, offsets = tape.schedule, tape.segments.offsets
    lengths = np.diff(offsets)
    if schedule is None:
        return np.zeros(len(lengths), np.int64)
    if not len(schedule.upto):
        return schedule.delays
    late = np.arange(len(tape)) - np.repeat(offsets[:-1], lengths) - schedule.upto
    delays = np.zeros(len(lengths), np.int64)
    delays[lengths > 0] = np.maximum.reduceat(late, offsets[:-1][lengths > 0])
    return delays


def nominal(controller: Controller) -> float:
    """The coverage a controller aims at, as far as its risks tell: 0.9 if they do not.

    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.MiscoverageCounter(), level=1 / 9)
    >>> round(nominal(sp.Controller(sp.sets.Widen(), risk)), 12)
    0.9
    """
    missed = [
        risk.loss.missed(risk.level) if isinstance(risk.loss, Misses) else 0.1
        for risk in controller.risks
    ]
    sets: Any = controller.sets
    if not isinstance(sets, Members):
        return 1.0 - missed[0]
    if isinstance(sets, Fan):
        return sets.hull
    # Two sides miss y together, and of nested sets it is the largest that is compared with y.
    owners = controller.owners
    first = [missed[owners.index(member)] for member in range(sets.members)]
    return 1.0 - first[-1] if sets.order else max(1.0 - sum(first), 0.0)


def ends_of(controller: Controller) -> dict[str, tuple[int, int]]:
    """What the ends of several sets are called in columns: lower_80, upper_80, or q05.

    Of each the member it belongs to, and 0 for its lower end or 1 for its upper one.
    """
    sets = controller.sets
    if isinstance(sets, Fan):
        return sets.places
    if not (isinstance(sets, Members) and sets.order):
        return {}
    owners, risks = controller.owners, controller.risks
    first = [risks[owners.index(member)] for member in range(sets.members)]
    names = [
        f"{100.0 * (1.0 - risk.loss.missed(risk.level)):g}" for risk in first
        if isinstance(risk.loss, Misses)
    ]  # fmt: skip
    names = names if len(set(names)) == len(first) else list(map(str, range(len(first))))
    return {
        f"{end}_{name}": (place, side)
        for place, name in enumerate(names)
        for side, end in enumerate(("lower", "upper"))
    }
