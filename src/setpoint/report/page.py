"""The pages of a report and of a forecast: one HTML file with figures, style and scripts inside."""

import gzip
import json
import os
from base64 import b64encode
from collections.abc import Hashable, Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from setpoint import spec
from setpoint._files import put
from setpoint._html import amount, named
from setpoint.bulk.trace import Trace
from setpoint.errors import SpecError
from setpoint.report import figures, words
from setpoint.report.figures import (
    NIGHT,
    SERIES,
    add_band,
    blank,
    library,
    line_of,
    titled,
)
from setpoint.report.numbers import Numbers, RiskNumbers
from setpoint.report.numbers import metrics as numbers_of

_MOST_VIEWS = 5
"""How many streams of several can be looked at one by one."""
_ROWS = 60
"""How many rows to come the page of a forecast lists."""


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
    if risk.budget is not None:
        most, every = (number(f"{place}.{name}") for name in ("budget", "budget_all"))
        several = " in a series, and {2} in all" if numbers.streams > 1 else ""
        text = f"; never more than {{0}} {{1}} too many{several}"
        parts.append(markup.Markup(text).format(most, risk.unit, every))
    verdict = [number(f"{place}.verdict")]
    mood, use = words.both(risk.status, numbers.usefulness), numbers.usefulness
    if use is not None and mood != words.mood(risk.status):  # what made it another colour
        verdict.append(f", but the {words.of_sets(numbers)} are {use['use']}")
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
            "same predictions with it: every number comes out again."
        )
    except SpecError:
        told = "Some parts of the controller are not registered: this is how Python prints it."
        return repr(trace.controller), told


# Figures


def _views(trace: Trace, numbers: Numbers) -> dict[str, dict[str, str]]:
    """The figures of each view, by its label: all streams together, and the worst by themselves."""
    if numbers.streams == 1:
        return {"": _drawn(trace, None, numbers)}
    views = {"all series together": _drawn(trace, None, numbers)}
    for one in numbers.worst_streams[:_MOST_VIEWS]:
        views[f"series {named(one.id)}"] = _drawn(trace, _key(one.id), numbers)
    return views


def _key(id: Any) -> Any:
    """The key of a stream from what the numbers have of it: a tuple is a list there."""
    return tuple(id) if isinstance(id, list) else id


def _drawn(trace: Trace, stream: Hashable, numbers: Numbers) -> dict[str, str]:
    """The figures of one view as JSON, by the id of their place; empty ones are left out."""
    risks, window = range(len(numbers.risks)), numbers.scores["window"]
    drawn: dict[str, Any] = {}
    drawn["intervals"] = figures.intervals(trace, stream, target=numbers.target)
    for index in risks:
        drawn[f"windows-{index}"] = figures.windows(trace, stream, risk=index, window=window)
    drawn["lengths"] = figures.lengths(trace, stream)
    drawn["price"] = figures.price(trace, stream)
    for index in risks:
        drawn[f"risk-{index}"] = figures.risk_over_time(trace, stream, risk=index)
    by_group = figures.draw_groups(trace, stream)
    if by_group is not None:
        drawn["groups"] = by_group
    return {name: bare(figure) for name, figure in drawn.items() if _has_points(figure)}


def _has_points(figure: Any) -> bool:
    """Whether anything would be seen: a curve or a bar with a number that is no gap and no zero."""
    for curve in figure.data:
        values = np.asarray(curve.y if curve.y is not None else (), dtype=np.float64)
        values = values[~np.isnan(values)]
        if len(values) and (curve.type != "bar" or values.any()):
            return True
    return False


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
        if index and len(risks) > 1:
            heading += f": {risks[int(index)]}"
        plots.append((name, heading, layout))
    return plots


# A forecast


def ahead(about: Mapping[str, Any], numbers: Mapping[str, Any]) -> str:
    """A self-contained HTML page of a forecast.

    Parameters
    ----------
    about
        The title, the target, the rows to come, the notes and the command that does it again.
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
    sentence = f"{len(about['rows']):,} rows to come, up to {last['horizon']} steps ahead."
    if last["mae"] is not None and last["mae_seasonal"] is not None:
        sentence += (
            f" In the past the forecast was off by {amount(first['mae'])} on average one step "
            f"ahead and, {last['horizon']} steps ahead, by {amount(last['mae'])}; the value one "
            f"season before by {amount(last['mae_seasonal'])}."
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
    """The rows to come of one series behind its recent past, and the forecast made before."""
    figure, x = blank(), np.array(one["x"])
    y = np.array(one["y"], np.float64)
    names = [f"{100 * coverage:.6g} %" for coverage in coverages]
    before, now = one.get("before"), one["now"]
    if before is not None:
        start, point, ends = _made(before)
        stop = start + len(point)
        add_band(
            figure,
            x[start:stop],
            ends[-1, 0],
            ends[-1, 1],
            f"{names[-1]}, made before",
            fill="noise",
        )
    start, point, ends = _made(now)
    # The fan begins at the last actual value.
    stop = len(x)
    known = y[start - 1]
    point = np.concatenate([[known], point])[: stop - start + 1]
    for name, (low, high) in zip(reversed(names), reversed([*ends]), strict=True):
        low, high = (np.concatenate([[known], side])[: len(point)] for side in (low, high))
        add_band(figure, x[start - 1 : stop], low, high, name)
    for side in now.get("path", ()):
        figure.add_scatter(
            x=x[start:stop].tolist(),
            y=np.array(side, np.float64),
            mode="lines",
            name=f"{names[-1]} of whole paths",
            legendgroup="path",
            showlegend=side is now["path"][0],
            line={**line_of("second", 1.3), "dash": "dash"},
        )
    figure.add_scatter(
        x=x[start - 1 : stop].tolist(), y=point, mode="lines", name="forecast", line=line_of("line")
    )
    figure.add_scatter(x=x.tolist(), y=y, mode="lines", name="actual", line=line_of("ink", 1.3))
    steps = len(point) - 1
    caption = (
        f"The next {steps} rows, with intervals at {', '.join(names)}. Grey is the widest interval "
        f"of the forecast made {steps} rows before, to be compared with what came."
        if before is not None
        else f"The next {steps} rows, with intervals at {', '.join(names)}."
    )
    if "path" in now:
        caption += " All steps lie between the dashed lines at once, where a path is held."
    return titled(figure, None, "What is to come", caption, x="", y=target, height=420)


def _made(made: Mapping[str, Any]) -> tuple[int, Any, Any]:
    """Where a forecast begins, its point, and its ends: level, side, step."""
    return made["start"], np.array(made["point"], np.float64), np.array(made["ends"], np.float64)


def _by_horizon(horizons: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Error, coverage and width of each horizon, as JSON of figures."""
    steps = [horizon["horizon"] for horizon in horizons]
    error, coverage, width = blank(), blank(), blank()
    for name, key, colour in (
        ("forecast", "mae", "line"),
        ("seasonal last", "mae_seasonal", "miss"),
    ):
        values = [horizon[key] for horizon in horizons]
        error.add_scatter(x=steps, y=values, mode="lines+markers", name=name, line=line_of(colour))
    for place, level in enumerate(horizons[0]["levels"]):
        name = f"{100 * level['asked']:.6g} %"
        levels = [horizon["levels"][place] for horizon in horizons]
        line = line_of(SERIES[place % len(SERIES)])
        for figure, key in ((coverage, "share"), (width, "width")):
            values = [each[key] for each in levels]
            figure.add_scatter(x=steps, y=values, mode="lines+markers", name=name, line=line)
        coverage.add_hline(y=level["asked"], line={**line, "dash": "dot", "width": 1})
    coverage.update_yaxes(tickformat=".4~%", hoverformat=".2%")
    for figure in (error, width):
        figure.update_yaxes(rangemode="tozero")
    ahead = "steps ahead"
    told = (
        (
            "error",
            error,
            "Error by horizon",
            "mean absolute error",
            "How far the forecast was off on average, beside the value one season before.",
        ),
        (
            "coverage",
            coverage,
            "Coverage by horizon",
            "share inside",
            "How many actual values lay inside, beside what was asked (dotted).",
        ),
        (
            "width",
            width,
            "Width by horizon",
            "mean width",
            "How wide the intervals were on average.",
        ),
    )
    return {
        name: bare(titled(figure, None, title, caption, x=ahead, y=axis))
        for name, figure, title, axis, caption in told
    }


def _cell(value: Any) -> str:
    return "–" if value is None else amount(value) if isinstance(value, float) else str(value)


def _facts(uses: Mapping[str, Any], notes: Sequence[str]) -> list[str]:
    """How much each candidate weighs, the seasons, and the notes."""
    weights = sorted(uses["weights"].items(), key=lambda pair: -pair[1])
    facts = [f"The forecast mixes {', '.join(f'{name} {share:.0%}' for name, share in weights)}."]
    seasons = [str(season) for season in uses["seasons"] if season]
    facts.append(f"Season found: {', '.join(seasons)} rows." if seasons else "No season was found.")
    return [*facts, *(f"{note[:1].upper()}{note[1:]}." for note in notes)]
