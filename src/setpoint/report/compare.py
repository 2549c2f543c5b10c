"""Rules side by side on one tape: a table and a figure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint import published
from setpoint._check import confidence, whole
from setpoint._html import preformatted
from setpoint.bulk.replay import replay
from setpoint.bulk.states import columns_of
from setpoint.bulk.trace import Trace
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.metrics import Summary, summary
from setpoint.presets import intervals
from setpoint.report.figures import LIGHT, draw
from setpoint.tape import Tape

COLUMNS = {
    "coverage": "coverage",
    "worst window": "worst_window",
    "width": "mean_finite_length",
    "Winkler": "winkler",
    "unlimited": "full",
}
"""What the table shows of each rule, and the field of `metrics.Summary` it comes from."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The metrics of several rules on the same rows.

    Parameters
    ----------
    coverage
        The share of actual values that each rule was asked to hold.
    summaries
        The metrics of each rule, by its name.
    """

    coverage: float
    summaries: Mapping[str, Summary]

    def rows(self) -> list[tuple[str, list[float]]]:
        """The table: each rule with the numbers of `COLUMNS`, lowest Winkler score first."""
        ranked = sorted(self.summaries.items(), key=lambda item: item[1].winkler)
        return [(name, [getattr(s, field) for field in COLUMNS.values()]) for name, s in ranked]

    def to_frame(self) -> Any:
        """The table as a pandas frame with a row for each rule (extra `data`)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("this needs pandas: pip install 'setpoint[data]'") from error
        rows = self.rows()
        index = pd.Index([name for name, _ in rows], name="rule")
        return pd.DataFrame([numbers for _, numbers in rows], columns=list(COLUMNS), index=index)

    def plot(self) -> Any:
        """A plotly figure: Winkler score against the worst window (extra `plots`)."""
        rows = self.rows()
        drawn = [
            {
                "type": "scatter", "x": [numbers[3] for _, numbers in group],
                "y": [numbers[1] for _, numbers in group], "text": [name for name, _ in group],
                "mode": "markers+text", "textposition": "top center", "showlegend": False,
                "marker": {"size": 10, "color": LIGHT[colour]},
            }
            for colour, group in (("line", rows[:1]), ("muted", rows[1:]))
        ]  # fmt: skip
        caption = (
            f"The target is {100 * self.coverage:.4g} %. Left is better: narrow intervals, few "
            "misses. Low is better: the worst stretch of rows is close to the target."
        )
        axis = "worst window, distance from the target"
        return draw(drawn, None, "Rules compared", caption, x="Winkler score", y=axis)

    def __str__(self) -> str:
        wide = max(len(name) for name in self.summaries)
        lines = [" " * wide + "".join(f"  {column:>12}" for column in COLUMNS)]
        for name, numbers in self.rows():
            lines.append(f"{name:<{wide}}" + "".join(f"  {number:>12.4g}" for number in numbers))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return preformatted(self)


def compare(
    tape: Tape,
    rules: Mapping[str, Controller | Trace] | None = None,
    *,
    coverage: float = 0.9,
    skip: int = 200,
) -> Comparison:
    """Runs several rules over one tape and compares them.

    The default, the published rules and, where the tape has two ends, the ends as they were given
    are judged on the same rows. An end further outside the range of the actual values than that
    range counts as if it lay there, so that rules with unlimited intervals have a score too.

    Parameters
    ----------
    tape
        Forecasts with their actual values: `lower` and `upper`, or one number for each row.
    rules
        Controllers, or traces of this tape, by the name to show. By default
        `setpoint.intervals` as "setpoint" and all of `setpoint.published.RULES`, whose step sizes
        come from the errors of the rows that are skipped.
    coverage
        The share of actual values to hold.
    skip
        How many rows of each series only warm the rules up and are not judged.

    Examples
    --------
    >>> import numpy as np
    >>> import setpoint as sp
    >>> noise = np.random.default_rng(0).normal(size=2000) * np.repeat([1.0, 3.0], 1000)
    >>> ends = np.tile([-1.6, 1.6], (2000, 1))  # right at first, then the world turns
    >>> tape = sp.Tape.from_arrays(ends, noise)
    >>> both = sp.compare(tape, {"setpoint": sp.intervals(), "ACI": sp.published.aci()})
    >>> [(name, round(summary.coverage, 2)) for name, summary in both.summaries.items()]
    [('given', 0.62), ('setpoint', 0.9), ('ACI', 0.9)]
    """
    coverage, skip = confidence(coverage, "coverage"), whole(skip, "skip", least=0)
    offsets = tape.segments.offsets
    place = np.arange(len(tape)) - np.repeat(offsets[:-1], np.diff(offsets))
    y = tape.by_stream(tape.y)
    judged = (place >= skip) & (y == y)
    if not judged.any():
        raise InputError(
            f"nothing is left to judge: skip={skip}, and the longest series has "
            f"{int(np.diff(offsets).max(initial=0))} rows"
        )
    default = intervals(coverage)
    given: Any = columns_of(default, tape)[:2]
    lower, upper = given
    if rules is None:
        errors = np.abs(y - tape.by_stream(0.5 * (lower + upper)))[(place < skip) & (y == y)]
        scale = float(np.mean(errors)) if len(errors) else 0.0
        made = {name: rule(coverage, scale or 1.0) for name, rule in published.RULES.items()}
        rules = {"setpoint": default, **made}
    ends: dict[str, Any] = {}
    if np.any(lower != upper):
        ends["given"] = given
    for name, rule in rules.items():
        trace = rule if isinstance(rule, Trace) else replay(rule, tape)
        if trace.shown is not None or len(trace.lower) != len(tape):
            raise InputError(f"the rule {name!r} must show an interval for each row of this tape")
        ends[name] = trace.lower, trace.upper
    parts = np.concatenate([[0], np.cumsum(np.add.reduceat(judged, offsets[:-1]))])
    low, high = float(y[judged].min()), float(y[judged].max())
    most = high - low
    counted: dict[str, Summary] = {}
    for name, both in ends.items():
        lower, upper = (
            np.clip(tape.by_stream(end)[judged], low - most, high + most) for end in both
        )
        counted[name] = summary(
            lower,
            upper,
            y[judged],
            1.0 - coverage,
            support=(low - most, high + most),
            offsets=parts,
        )
    return Comparison(coverage, counted)
