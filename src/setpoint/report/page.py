"""The pages of a report and of a forecast: one HTML file with figures, style and scripts inside."""

import gzip
import json
import os
from base64 import b64encode
from collections.abc import Hashable, Iterable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from setpoint import spec
from setpoint._files import put
from setpoint._html import amount, named
from setpoint.bulk.trace import Trace
from setpoint.errors import SpecError
from setpoint.report import figures, words
from setpoint.report.curves import Band
from setpoint.report.figures import NIGHT, SERIES, band, draw, library, line
from setpoint.report.groups import grouped
from setpoint.report.numbers import Numbers, RiskNumbers
from setpoint.report.numbers import metrics as numbers_of

_MOST_VIEWS = 6
"""How many series of several are drawn, one by one."""
_POINTS = 600
"""How many points a line over a log has."""
_ROWS = 60
"""How many future rows the page of a forecast lists."""


def write(
    trace: Trace,
    path: str | os.PathLike[str],
    *,
    title: str = "Report",
    metrics: Mapping[str, Any] | None = None,
    window: int = 250,
) -> Path:
    """Writes the report of a trace as one HTML file, whole or not at all.

    The file holds everything it needs and asks no network for anything. Its numbers are those of
    `metrics`: each one on the page carries the name it has there.

    Parameters
    ----------
    trace
        What `setpoint.replay` returned.
    path
        Where to write it, such as `report.html`.
    title
        The heading of the page.
    metrics
        What `report.metrics(trace)` returned, where it is at hand already.
    window
        Labels in a sliding window; where `metrics` are given, those they were made with.
    """
    numbers = Numbers.read(numbers_of(trace, window=window) if metrics is None else metrics)
    return put(path, _page(trace, numbers, str(title)).encode())


def _page(trace: Trace, numbers: Numbers, title: str) -> str:
    views, markup = _views(trace, numbers), library("markupsafe")
    worst = numbers.worst_streams[0].id if numbers.worst_streams else None
    configuration, note = _configuration(trace)

    def number(name: str, form: str = "") -> Any:
        """A number by its name in the metrics, marked with that and its full value."""
        value = words.value(numbers.plain, name)
        if isinstance(value, str):
            return markup.Markup('<span data-metric="{}">{}</span>').format(name, value)
        text = "unknown" if value is None else words.written(value, form)
        full = markup.Markup(json.dumps(value))
        return markup.Markup('<data data-metric="{}" value="{}">{}</data>').format(name, full, text)

    def unbroken(text: str) -> Any:
        """Text in which no line begins with a sign of percent."""
        return markup.escape(text).replace(" %", markup.Markup("&nbsp;%"))

    return _rendered(
        "page.html",
        title,
        numbers.plain,
        views,
        n=numbers,
        words=words,
        named=named,
        number=number,
        unbroken=unbroken,
        headline=lambda risk, place: _headline(numbers, risk, place, number, markup),
        plots=_plots(views, [risk.name for risk in numbers.risks]),
        certificate=str(trace.certificate(*([] if worst is None else [_key(worst)]))),
        worst="" if worst is None else f"Of series {named(worst)}, the one with the most trouble.",
        configuration=configuration,
        note=markup.Markup(note),
    )


def _rendered(
    template: str,
    title: str,
    metrics: Mapping[str, Any],
    views: Mapping[str, Mapping[str, str]],
    **values: Any,
) -> str:
    """A page from its template; `views` are its figures as JSON, by view and place."""
    jinja, markup = library("jinja2"), library("markupsafe")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("setpoint.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja.StrictUndefined,
    )
    plotly = files("setpoint.report").joinpath("plotly-basic.min.js.gz").read_bytes()
    text: str = environment.get_template(template).render(
        title=title,
        version=version("setpoint"),
        metrics=markup.Markup(as_json(metrics)),
        asset=lambda name: markup.Markup(asset(name)),
        views=views,
        figures=squeezed(as_json(packed(views)).encode()),
        plotly=b64encode(plotly).decode(),
        **values,
    )
    return text


def asset(name: str) -> str:
    return files("setpoint.report").joinpath(name).read_text(encoding="utf-8")


def as_json(value: Any) -> str:
    """JSON that may stand inside a script element, where `</script` and `<!--` would end it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


def squeezed(content: bytes) -> str:
    """Bytes packed by gzip, as text: a browser unpacks them without another library."""
    return b64encode(gzip.compress(content, 9, mtime=0)).decode()


def _headline(
    numbers: Numbers, risk: RiskNumbers, place: str, number: Any, markup: Any
) -> list[tuple[str, Any, str | None]]:
    """What was asked of one risk, what came out and what is guaranteed: names, values, classes."""
    shares = risk.asked is not None
    form = ".2%" if shares else ""
    names = ("coverage_low", "coverage_high") if shares else ("bound_lower", "bound_upper")
    low, high = (number(f"{place}.{name}", form) for name in names)
    at_least, at_most = (getattr(risk, name) is not None for name in names)
    parts = [
        markup.escape("at least {}" if not at_most else "{} to {}").format(low, high)
        if at_least
        else markup.escape("at most {1}" if at_most else "none").format(low, high)
    ]
    if risk.bound is not None:
        most, every = (number(f"{place}.{name}") for name in ("bound", "bound_all"))
        several = " in a series, and {2} in all" if numbers.streams > 1 else ""
        text = f"; never more than {{0}} {{1}} too many{several}"
        parts.append(markup.Markup(text).format(most, risk.unit, every))
    verdict = [number(f"{place}.verdict")]
    mood, use = words.both(risk.status, numbers.usefulness), numbers.usefulness
    if use is not None and mood != words.mood(risk.status):  # what made it another colour
        verdict.append(f", but the {numbers.sets} are {use['use']}")
    nothing = markup.Markup("")
    return [
        ("Coverage", number(f"{place}.coverage", form), None)
        if shares
        else ("Mean loss", number(f"{place}.risk"), None),
        ("Asked", number(f"{place}.asked", "whole") if shares else number(f"{place}.level"), None),
        ("Guaranteed, whatever the data", nothing.join(parts), ""),
        ("The guarantee", nothing.join(verdict), f"verdict {mood}"),
    ]


def _configuration(trace: Trace) -> tuple[str, str]:
    """The controller as a file, or as Python prints it; and which of them it is."""
    try:
        return spec.to_toml(trace.controller), (
            "Save this as a file, read it by <code>setpoint.spec.from_toml</code>, and replay the "
            "same predictions with it: every number is the same."
        )
    except SpecError:
        told = "Some parts of the controller are not registered: this is how Python prints it."
        return repr(trace.controller), told


# Figures


def _views(trace: Trace, numbers: Numbers) -> dict[str, dict[str, str]]:
    """The figures of each series that is drawn, by its label: those with the most trouble first."""
    shared = {
        f"groups-{table.by}": bare(figures.groups(trace, by=table.by)) for table in grouped(trace)
    }
    worst = [_key(one.id) for one in numbers.worst_streams[:_MOST_VIEWS]] or [None]
    labels = ["" if id is None else f"series {named(id)}" for id in worst]
    return {
        label: _drawn(trace, id, numbers) | shared for label, id in zip(labels, worst, strict=True)
    }


def _key(id: Any) -> Any:
    """The key of a stream from what the numbers have of it: a tuple is a list there."""
    return tuple(id) if isinstance(id, list) else id


def _drawn(trace: Trace, stream: Hashable, numbers: Numbers) -> dict[str, str]:
    """The figures of one series as JSON, by the id of their place; empty ones are left out."""
    risks, window = range(len(numbers.risks)), numbers.scores["window"]
    drawn = {"intervals": figures.intervals(trace, stream, target=numbers.target, window=window)}
    for risk in risks:
        drawn[f"windows-{risk}"] = figures.windows(trace, stream, risk=risk, window=window)
    drawn |= {"lengths": figures.lengths(trace, stream), "price": figures.price(trace, stream)}
    return {name: bare(figure) for name, figure in drawn.items() if _has_points(figure)}


def _has_points(figure: Any) -> bool:
    """Whether anything would be seen: a curve with a number that is no gap."""
    return any(np.isfinite(np.asarray(curve.y, np.float64)).any() for curve in figure.data)


def bare(figure: Any) -> str:
    """A figure as JSON without its title: on the page it stands under a heading."""
    figure.update_layout(title=None, margin={"t": 36})
    return str(figure.to_json())


def packed(views: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """What the script draws: every figure once, and which view shows which."""
    places: dict[str, int] = {}
    views_of = [
        {
            "label": label,
            "plots": {name: places.setdefault(text, len(places)) for name, text in plots.items()},
        }
        for label, plots in views.items()
    ]
    return {"views": views_of, "figures": list(places), "night": NIGHT}


def _plots(
    views: Mapping[str, Mapping[str, str]], risks: Sequence[str] = ()
) -> list[tuple[str, str, Any]]:
    """The id, the heading and the layout of each figure of the first view."""
    plots = []
    for name, text in next(iter(views.values())).items():
        layout = json.loads(text)["layout"]
        heading, (_, _, index) = layout["meta"]["title"], name.partition("-")
        if index.isdigit() and len(risks) > 1:
            heading += f": {risks[int(index)]}"
        plots.append((name, heading, layout))
    return plots


# A forecast


def ahead(about: Mapping[str, Any], numbers: Mapping[str, Any]) -> str:
    """A self-contained HTML page of a forecast.

    Parameters
    ----------
    about
        The title, the target, the future rows, the notes and the command that does it again.
    numbers
        What `Forecast.metrics` returned.
    """
    horizons = numbers["horizons"]
    shared = _by_horizon(horizons)
    views = {}
    for one in numbers["recent"]:
        label = "" if one["series"] is None else f"series {one['series']}"
        views[label] = {"fan": bare(fan(one, about["coverages"], about["target"])), **shared}
    first, last = horizons[0], horizons[-1]
    sentence = f"{len(about['rows']):,} future rows, up to {last['horizon']} steps ahead."
    if last["mae"] is not None and last["mae_seasonal"] is not None:
        sentence += (
            f" In the past the forecast was off by {amount(first['mae'])} on average one step "
            f"ahead and, {last['horizon']} steps ahead, by {amount(last['mae'])}; the seasonal "
            f"naive forecast by {amount(last['mae_seasonal'])}."
        )
    levels = [f"{100 * level['asked']:.6g} %" for level in first["levels"]]
    return _rendered(
        "ahead.html",
        about["title"],
        numbers,
        views,
        about=about,
        sentence=sentence,
        rows=about["rows"][:_ROWS],
        cell=_cell,
        horizons=horizons,
        levels=levels,
        inside=[f"In {level}" for level in levels],
        path_heads=[f"{head[:1].upper()}{head[1:]}" for head in (about["paths"] or [[]])[0]],
        facts=_facts(numbers["uses"], numbers["notes"]),
        plots=_plots(views),
    )


def fan(one: Mapping[str, Any], coverages: Sequence[float], target: str) -> Any:
    """The future rows of one series after its recent past, and the forecast made before."""
    x, y = np.array(one["x"]), np.array(one["y"], np.float64)
    names = [f"{100 * coverage:.6g} %" for coverage in coverages]
    before, drawn = one.get("before"), []
    start, point, ends = _made(one["now"])
    known, steps = y[start - 1], len(x) - start
    shown = x[start - 1 :]  # the fan begins at the last actual value

    def from_known(side: Any) -> Any:
        return np.concatenate([[known], side])[: len(shown)]

    if before is not None:
        first, past, sides = _made(before)
        grey = Band(f"{names[-1]}, made before", *sides[-1])
        drawn += band(grey, x[first : first + len(past)], fill="noise")
    for name, (low, high) in zip(reversed(names), reversed([*ends]), strict=True):
        drawn += band(Band(name, from_known(low), from_known(high)), shown)
    for number, side in enumerate(one["now"].get("path", ())):
        path = line(f"{names[-1]} of whole paths", x[start:], np.array(side, np.float64),
                    colour="second", width=1.3, dash="dash")  # fmt: skip
        drawn.append({**path[0], "legendgroup": "path", "showlegend": number == 0})
    drawn += line("forecast", shown, from_known(point))
    drawn += line("actual", x, y, colour="ink", width=1.3)
    caption = f"The next {steps} rows, with intervals at {', '.join(names)}."
    if before is not None:
        caption += (
            f" Grey is the widest interval of the forecast made {steps} rows before, to compare "
            "with the actual values."
        )
    if "path" in one["now"]:
        caption += " The dashed lines are the band of the whole path."
    target = figures.plotly_text(target)
    return draw(drawn, None, "The forecast", caption, y=target, height=420)


def _made(made: Mapping[str, Any]) -> tuple[int, Any, Any]:
    """Where a forecast begins, its point, and its ends: level, side, step."""
    return made["start"], np.array(made["point"], np.float64), np.array(made["ends"], np.float64)


def _by_horizon(horizons: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Error, coverage and width of each horizon, as JSON of figures."""
    steps = np.array([horizon["horizon"] for horizon in horizons])
    asked = {f"{100 * one['asked']:.6g} %": one["asked"] for one in horizons[0]["levels"]}
    errors = {"forecast": "mae", "seasonal naive": "mae_seasonal"}
    told = (
        ("error", {name: [h[key] for h in horizons] for name, key in errors.items()},
         "mean absolute error",
         "How far the forecast was off on average, compared with the seasonal naive forecast."),
        ("coverage", _of_levels(horizons, asked, "share"), "share inside",
         "The share of actual values inside, with the target dotted."),
        ("width", _of_levels(horizons, asked, "width"), "mean width",
         "The mean width of the intervals."),
    )  # fmt: skip
    drawn = {}
    for name, values, axis, caption in told:
        curves, shares = [], name == "coverage"
        for colour, (label, numbers) in zip(cycle(SERIES), values.items(), strict=False):
            y = np.array(numbers, np.float64)
            curves += line(label, steps, y, colour=colour, mode="lines+markers")
            if shares:
                level = np.full(len(steps), asked[label])
                curves += line(f"{label} asked", steps, level, colour=colour, width=1, dash="dot")
        figure = draw(
            curves, None, f"{name.capitalize()} by horizon", caption,
            x="steps ahead", y=axis, share=shares,
        )  # fmt: skip
        drawn[name] = bare(figure if shares else figure.update_yaxes(rangemode="tozero"))
    return drawn


def _of_levels(
    horizons: Sequence[Mapping[str, Any]], names: Iterable[str], key: str
) -> dict[str, list[float | None]]:
    """A number of each level at every horizon, by the names of the levels."""
    levels = zip(*(horizon["levels"] for horizon in horizons), strict=True)
    return {name: [one[key] for one in each] for name, each in zip(names, levels, strict=True)}


def _cell(value: Any) -> str:
    return "–" if value is None else amount(value) if isinstance(value, float) else str(value)


def _facts(uses: Mapping[str, Any], notes: Sequence[str]) -> list[str]:
    """How much each candidate weighs, the seasons, and the notes."""
    weights = sorted(uses["weights"].items(), key=lambda pair: -pair[1])
    mixed = ", ".join(f"{name} {100 * share:.0f} %" for name, share in weights)
    facts = [f"The forecast mixes {mixed}."]
    seasons = [str(season) for season in uses["seasons"] if season]
    facts.append(f"Season found: {', '.join(seasons)} rows." if seasons else "No season was found.")
    return [*facts, *(f"{note[:1].upper()}{note[1:]}." for note in notes)]


# A gate


def of_gate(gated: Any, lines: Mapping[str, tuple[Any, Any]]) -> str:
    """A self-contained HTML page of a gate over a log; `lines` are of the gate and of today."""
    captions = {
        "Share acted on": "Of the last requests. Where it falls, the score has become worth less, "
        "or labels are awaited."
    }
    drawn = {}
    for place, (title, pair) in enumerate(lines.items()):
        curves = []
        for name, values, colour in zip(("the gate", "today"), pair, ("line", "miss"), strict=True):
            rows = np.unique(np.linspace(0, max(len(values) - 1, 0), _POINTS).astype(int))
            rows = rows[: len(values)]
            curves += line(name, rows, values[rows], colour=colour)
        caption = captions.get(title, "Above 0 there were more errors than asked so far.")
        share = title in captions
        drawn[f"lines-{place}"] = bare(
            draw(curves, None, title, caption, x="request", y="", share=share)
        )
    views = {"": drawn}
    title = f"A gate on {gated.source}"
    return _rendered("gate.html", title, gated.metrics(), views, gated=gated, plots=_plots(views))
