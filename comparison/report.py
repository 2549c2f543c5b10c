"""The page of the comparison: tables, where the default loses, and the figure."""

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comparison.measures import LEVEL, NEAR, WINDOW, Measures, best, resampled
from comparison.rules import RULES, Rule
from comparison.streams import BURN_IN, Series
from setpoint_paper.pages import table
from setpoint_paper.plotting import COLOURS, figure, legend, plain_ticks, save

__all__ = ["Results", "draw", "page", "read_csv", "write_csv"]

Floats = NDArray[np.float64]

HALVES = {"dev": "development", "val": "validation"}
_TIE = 1.0005
"""A ratio up to this counts as equal."""


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """What every rule gave on every stream.

    `measures` holds an array of rules × streams for each measure, `blocks` the sums over blocks of
    rows of each stream.
    """

    rules: tuple[Rule, ...]
    series: tuple[Series, ...]
    measures: dict[str, Floats]
    blocks: list[Floats]

    def of(self, kind: str) -> list[int]:
        """The places of the rules of a kind."""
        return [place for place, rule in enumerate(self.rules) if rule.kind == kind]

    def groups(self) -> Iterator[tuple[str, list[int]]]:
        """The places of the streams by half, and by whether labels are late."""
        for split, half in HALVES.items():
            for late, when in ((False, "labels at once"), (True, "late labels")):
                places = [
                    place
                    for place, one in enumerate(self.series)
                    if one.split == split and (one.delay > 0) is late
                ]
                if places:
                    yield f"{half}, {when}", places

    def best(self, name: str, *, largest: bool = False) -> Floats:
        """The best of the published rules on each stream, of those near what was asked."""
        published = self.of("published")
        values = self.measures[name][published]
        return best(self.measures["coverage"][published], values, largest=largest)

    def ratios(self, name: str) -> Floats:
        """Each rule over the best published one, rules × streams; NaN where there is none."""
        return self.measures[name] / self.best(name)


def _mean_ratio(ratios: Floats) -> float:
    """The geometric mean; NaN if a set had no width anywhere."""
    known = ratios[~np.isnan(ratios)]
    return float(np.exp(np.log(known).mean())) if len(known) and known.min() > 0.0 else np.nan


def _number(value: Any, places: int = 3) -> str:
    return "–" if np.isnan(value) else f"{value:.{places}f}"


def _percent(value: Any, places: int = 2) -> str:
    return _number(100.0 * value, places)


# Tables


def _headline(results: Results) -> str:
    head = [
        "streams", "rule", "coverage %", "largest deviation", "width / best", "95 %",
        "Winkler / best", "95 %", "≤ best on", "worst window", "best's", "≥ best on",
    ]  # fmt: skip
    lines, measures = [], results.measures
    published = results.of("published")
    width, winkler = results.ratios("width"), results.ratios("winkler")
    worst = results.best("worst", largest=True)
    for name, places in results.groups():
        blocks = [results.blocks[place] for place in places]
        for rule in results.of("ours"):
            spans = resampled(blocks, rule, published)
            coverage = measures["coverage"][rule, places]
            shares = winkler[rule, places][~np.isnan(winkler[rule, places])]
            lines.append([
                f"{name} ({len(places)})", results.rules[rule].name, _percent(coverage.mean()),
                _percent(np.abs(coverage - 1.0 + LEVEL).max()),
                _number(_mean_ratio(width[rule, places])), _span(spans[0]),
                _number(_mean_ratio(winkler[rule, places])), _span(spans[1]),
                _percent((shares <= _TIE).mean(), 0),
                _percent(measures["worst"][rule, places].mean()),
                _percent(np.nanmean(worst[places])),
                _percent((measures["worst"][rule, places] >= worst[places] - 1e-9).mean(), 0),
            ])  # fmt: skip
    return table(head, lines)


def _span(bounds: Floats) -> str:
    return f"{bounds[0]:.3f}–{bounds[1]:.3f}"


def _every_rule(results: Results, places: Sequence[int]) -> str:
    """Every rule on some streams, by its Winkler score."""
    head = ["rule", "coverage %", "mean deviation", "largest", "width / best", "Winkler / best",
            "≤ best on", "worst window", "RMS window", "infinite %", "empty %", "MSL"]  # fmt: skip
    measures, chosen = results.measures, list(places)
    width, winkler = results.ratios("width"), results.ratios("winkler")
    lines = []
    for rule, one in enumerate(results.rules):
        score = _mean_ratio(winkler[rule, chosen])
        off = np.abs(measures["coverage"][rule, chosen] - 1.0 + LEVEL)
        shares = winkler[rule, chosen][~np.isnan(winkler[rule, chosen])]
        cells = [
            one.name, _percent(measures["coverage"][rule, chosen].mean()), _percent(off.mean()),
            _percent(off.max()), _number(_mean_ratio(width[rule, chosen])), _number(score),
            _percent((shares <= _TIE).mean(), 0), _percent(measures["worst"][rule, chosen].mean()),
            _percent(measures["rms"][rule, chosen].mean()),
            _percent(measures["infinite"][rule, chosen].mean()),
            _percent(measures["empty"][rule, chosen].mean()),
            _number(float(np.nanmean(measures["msl"][rule, chosen])), 2),
        ]  # fmt: skip
        lines.append((score, cells))
    return table(head, [cells for _, cells in sorted(lines, key=lambda line: line[0])])


def _by_kind(results: Results) -> str:
    """The default by kind of forecast."""
    head = ["forecast", "labels", "streams", "width / best", "Winkler / best", "≤ best on",
            "worst window", "best's", "most often the best by Winkler"]  # fmt: skip
    width, winkler = results.ratios("width")[0], results.ratios("winkler")[0]
    worst, rivals = results.best("worst", largest=True), _rivals(results)
    lines = []
    keys = dict.fromkeys((one.kind, one.delay > 0) for one in results.series)
    for kind, late in keys:
        places = [
            place
            for place, one in enumerate(results.series)
            if (one.kind, one.delay > 0) == (kind, late)
        ]
        shares = winkler[places][~np.isnan(winkler[places])]
        name, count = Counter(rivals[place] for place in places).most_common(1)[0]
        lines.append([
            kind, "late" if late else "at once", str(len(places)),
            _number(_mean_ratio(width[places])),
            _number(_mean_ratio(winkler[places])), _percent((shares <= _TIE).mean(), 0),
            _percent(results.measures["worst"][0, places].mean()),
            _percent(np.nanmean(worst[places])),
            f"{name} ({count})",
        ])  # fmt: skip
    return table(head, lines)


def _rivals(results: Results) -> list[str]:
    """The published rule with the best Winkler score on each stream."""
    published = results.of("published")
    ratios = results.ratios("winkler")[published]
    near = np.abs(results.measures["coverage"][published] - 1.0 + LEVEL) <= NEAR
    ratios = np.where(near, ratios, np.inf)
    found = ratios.argmin(axis=0)
    return [
        results.rules[published[rule]].name if np.isfinite(ratios[rule, place]) else "none"
        for place, rule in enumerate(found)
    ]


def _each_stream(results: Results) -> str:
    head = ["stream", "half", "late by", "coverage %", "width / best", "Winkler / best",
            "best by Winkler", "worst window", "best's"]  # fmt: skip
    width, winkler = results.ratios("width")[0], results.ratios("winkler")[0]
    worst, rivals = results.best("worst", largest=True), _rivals(results)
    return table(head, [
        [
            one.name, HALVES[one.split], str(one.delay),
            _percent(results.measures["coverage"][0, place]), _number(width[place]),
            _number(winkler[place]), rivals[place],
            _percent(results.measures["worst"][0, place], 1), _percent(worst[place], 1),
        ]
        for place, one in enumerate(results.series)
    ])  # fmt: skip


def _around(results: Results) -> str:
    """The budget around published rules: before and after."""
    head = ["rule", "mean deviation", "with the budget", "worst window", "with the budget",
            "width ×", "Winkler ×"]  # fmt: skip
    names = {rule.name: place for place, rule in enumerate(results.rules)}
    lines, measures = [], results.measures
    for place in results.of("budget"):
        name = results.rules[place].name.removeprefix("budget around ")
        before = names[name]
        off = np.abs(measures["coverage"] - 1.0 + LEVEL).mean(axis=1)
        lines.append([
            name, _percent(off[before]), _percent(off[place]),
            _percent(measures["worst"][before].mean()), _percent(measures["worst"][place].mean()),
            _number(_mean_ratio(measures["width"][place] / measures["width"][before])),
            _number(_mean_ratio(measures["winkler"][place] / measures["winkler"][before])),
        ])  # fmt: skip
    return table(head, lines)


def _step_sizes(results: Results) -> str:
    """The default beside a fixed γ, untuned, tuned and chosen in hindsight."""
    head = ["beside", "width ×", "Winkler ×", "Winkler ≤ on", "worst window", "of the default"]
    measures, lines = results.measures, []
    for place, rule in enumerate(results.rules):
        if not rule.name.startswith("fixed γ"):
            continue
        ratio = measures["winkler"][0] / measures["winkler"][place]
        lines.append([
            rule.name, _number(_mean_ratio(measures["width"][0] / measures["width"][place])),
            _number(_mean_ratio(ratio)), _percent((ratio <= _TIE).mean(), 0),
            _percent(measures["worst"][place].mean()), _percent(measures["worst"][0].mean()),
        ])  # fmt: skip
    return table(head, lines)


# Sentences


def _losses(results: Results) -> list[str]:
    """Where the default is behind the best published rule, each sentence by a rule."""
    width, winkler = results.ratios("width")[0], results.ratios("winkler")[0]
    gap = results.best("worst", largest=True) - results.measures["worst"][0]
    count, rivals = int((~np.isnan(winkler)).sum()), _rivals(results)
    lines = []

    def told(behind: Floats, show: Any) -> str:
        order = sorted(np.flatnonzero(behind > 0.0), key=lambda place: -behind[place])
        return "; ".join(f"{results.series[place].name} ({show(place)})" for place in order[:12])

    behind = np.nan_to_num(winkler - _TIE)
    lines.append(
        f"Winkler score above the best published rule's: {int((behind > 0.0).sum())} of {count} "
        f"streams. Most: {told(behind, lambda p: f'× {winkler[p]:.3f}, {rivals[p]}')}."
    )
    behind = np.nan_to_num(width - 1.05)
    lines.append(
        f"Width more than 5 % above the narrowest: {int((behind > 0.0).sum())} of {count}. "
        f"Most: {told(behind, lambda p: f'× {width[p]:.3f}')}."
    )
    behind = np.nan_to_num(gap - 0.0101)
    lines.append(
        f"Worst window more than one point below the best's: {int((behind > 0.0).sum())} of "
        f"{count}. Most: {told(behind, lambda p: f'{100 * gap[p]:.1f} points')}."
    )
    off = np.abs(results.measures["coverage"][0] - 1.0 + LEVEL)
    lines.append(
        f"Coverage more than half a point from what was asked: {int((off > 0.005).sum())} of "
        f"{len(off)} streams, {100.0 * off.max():.2f} points at the most."
    )
    return lines


def page(results: Results, command: str, picture: str) -> str:
    """The whole page."""
    published = len(results.of("published"))
    rows = sum(len(one.y) for one in results.series)
    without = int(np.isnan(results.best("winkler")).sum())
    parts = [
        "# Every rule beside the default",
        f"    {command}",
        f"{len(results.series)} streams, {rows:,} rows: forecasts of public data and synthetic "
        f"shifts, asked for {100 - 100 * LEVEL:.0f} % coverage. The default is "
        "`sp.intervals(coverage=0.9)`. It has no setting to choose and runs from the first row. "
        f"Published rules take their constants from the first {BURN_IN} rows. All are judged on "
        "the rows after these.",
        f"*Best* is the best of {published} published rules on each stream. It is chosen after "
        "the fact, for each measure by itself, among those whose coverage is within "
        f"{100 * NEAR:.0f} point of what was asked. A ratio below 1 is better than all of them. "
        f"On {without} of the streams no published rule comes that near; they are left out of "
        "ratios. Ratios are geometric means. *Worst window* is the least coverage of "
        f"{WINDOW} rows in a row, in percent. The brackets of 95 % come from drawing streams "
        f"again, and blocks of {WINDOW} rows within them.",
        "## The default beside the best published rule",
        _headline(results),
        "## Where it loses",
        "\n".join(f"- {line}" for line in _losses(results)),
        "## By kind of forecast",
        "*good*: online least squares with a constant width. *quantiles*: online linear "
        "quantiles. *persistence*: the last label. *seasonal*: the label a day before, a point. "
        "*biased*: good plus a slow wave. *stale*: fitted once and never again, a point.",
        _by_kind(results),
        "## The step size",
        "A fixed γ, the paper's rule: untuned (`burn_in`), a share of the range of past scores, "
        "chosen on the burn-in, and chosen in hindsight for the least Winkler score on the very "
        "rows it is judged on. Ratios are the default's over that rule's, on all streams.",
        _step_sizes(results),
        "## The budget around other rules",
        "The account and the barrier of the default, around the sets of a published rule.",
        _around(results),
        "## Every rule",
        "Sorted by Winkler score. *Hindsight* has seen the rows it is judged on.",
    ]
    for name, places in results.groups():
        parts += [f"### {name[0].upper()}{name[1:]}", _every_rule(results, places)]
    parts += [
        "## The figure",
        f"![Every rule by Winkler score, width and worst window]({picture})",
        "Each line is a rule, sorted by its Winkler score on all streams. Winkler score and width "
        "are geometric means over the best published rule's, worst windows are means, in points "
        f"below {100 - 100 * LEVEL:.0f} %. Less is better everywhere. Strong marks are of the "
        "validation half, pale ones of the development half. A cross: coverage is off by more "
        f"than {100 * NEAR:.0f} point on average, so sets are short or long for that reason too.",
        "## Each stream",
        "The default.",
        _each_stream(results),
    ]
    return "\n\n".join(parts) + "\n"


# Files


def write_csv(results: Results, path: Path) -> None:
    """Every measure of every rule on every stream, unrounded."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["stream", "split", "kind", "delay", "period", "rule", "rule_kind",
                       *Measures._fields])  # fmt: skip
        for place, one in enumerate(results.series):
            for number, rule in enumerate(results.rules):
                values = [float(column[number, place]) for column in results.measures.values()]
                rows.writerow([one.name, one.split, one.kind, one.delay, one.period, rule.name,
                               rule.kind, *(f"{value:.8g}" for value in values)])  # fmt: skip


def read_csv(path: Path) -> Results:
    """What `write_csv` wrote, to draw it anew: streams have no rows in it, and no blocks."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    known = {rule.name: rule for rule in RULES}
    rules = tuple(known[name] for name in dict.fromkeys(row["rule"] for row in rows))
    none = np.empty(0)
    series = tuple(
        Series(
            row["stream"], row["split"], row["kind"], none, none, none, int(row["delay"]),
            int(row["period"]),
        )
        for row in rows[:: len(rules)]
    )  # fmt: skip
    columns = {
        name: np.array([float(row[name]) for row in rows]).reshape(len(series), len(rules)).T
        for name in Measures._fields
    }
    return Results(rules, series, columns, [])


_LOOKS = {
    "ours": ("blue", "the default and its options"),
    "published": ("grey", "published"),
    "hindsight": ("orange", "in hindsight"),
    "budget": ("green", "the budget around a published rule"),
}
_HALVES: dict[str, dict[str, float]] = {
    HALVES["val"]: {"markersize": 4.0},
    HALVES["dev"]: {"markersize": 4.0, "alpha": 0.35},
}


def draw(results: Results, path: Path) -> None:
    """Every rule on a line: Winkler score, width and worst window, labels at once and late.

    Less is better in all panels.
    """
    winkler = results.ratios("winkler")
    short = 100.0 * (1.0 - LEVEL - results.measures["worst"])
    # On an axis of logarithms a rule that is never short stands at its end.
    shown: tuple[tuple[str, Floats, Callable[[Floats], float]], ...] = (
        ("Winkler score\n/ best", winkler, _mean_ratio),
        ("width\n/ narrowest", results.ratios("width"), _mean_ratio),
        (
            "worst window,\npoints below 90 %",
            short,
            lambda found: float(np.maximum(0.1, found.mean())),
        ),
    )
    order = sorted(range(len(results.rules)), key=lambda rule: _mean_ratio(winkler[rule]))
    tones = [COLOURS[_LOOKS[results.rules[rule].kind][0]] for rule in order]
    groups = list(results.groups())
    kinds = dict.fromkeys(name.partition(", ")[2] for name, _ in groups)
    columns = [(when, *each) for when in kinds for each in shown]
    made, panels = figure(
        1, len(columns), width=2.4 + 1.4 * len(columns), height=1.4 + 0.16 * len(order),
        sharey=True,
    )  # fmt: skip
    for panel, (when, label, values, mean) in zip(panels[0], columns, strict=True):
        for name, places in groups:
            half, _, late = name.partition(", ")
            for line, rule in enumerate(order if late == when else ()):
                off = np.abs(results.measures["coverage"][rule, places] - 1.0 + LEVEL).mean()
                panel.plot(
                    [mean(values[rule, places])], [line], "x" if off > NEAR else "o",
                    color=tones[line], **_HALVES[half],
                )  # fmt: skip
        panel.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
        panel.tick_params(axis="x", labelsize=6.5)
        panel.set_title(when)
        panel.set_xlabel(label)
        panel.set_xscale("log")
        plain_ticks(panel.xaxis)
        if values is not short:
            panel.axvline(1.0, color=COLOURS["black"], linewidth=0.8, zorder=1)
    first = panels[0, 0]
    first.set_yticks(range(len(order)), [results.rules[rule].name for rule in order])
    first.set_ylim(len(order) - 0.5, -0.5)
    for text, tone in zip(first.get_yticklabels(), tones, strict=True):
        text.set_color(tone)
    for colour, name in _LOOKS.values():
        first.plot([], [], "s", color=COLOURS[colour], markersize=6.0, label=name)
    for half, look in _HALVES.items():
        first.plot([], [], "o", color=COLOURS["black"], label=half, **look)
    crossed = f"coverage off by more than {100.0 * NEAR:g} point"
    first.plot([], [], "x", color=COLOURS["black"], markersize=4.0, label=crossed)
    save(legend(made), path)
