"""The page: one HTML file with its figures, its style and its scripts inside."""

import gzip
import json
import os
from base64 import b64encode
from collections.abc import Hashable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from setpoint import spec
from setpoint._files import put
from setpoint._html import named
from setpoint.bulk.trace import Trace
from setpoint.errors import SpecError
from setpoint.report import figures, words
from setpoint.report.figures import NIGHT, library
from setpoint.report.numbers import Numbers, RiskNumbers
from setpoint.report.numbers import metrics as numbers_of

_MOST_VIEWS = 5
"""How many streams of several can be looked at one by one."""


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
    library("plotly")
    numbers = Numbers.read(numbers_of(trace, window=window) if metrics is None else metrics)
    return put(path, _page(trace, numbers, str(title)).encode())


def _page(trace: Trace, numbers: Numbers, title: str) -> str:
    jinja, markup = library("jinja2"), library("markupsafe")
    environment = jinja.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja.StrictUndefined
    )
    views = _views(trace, numbers)
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

    text: str = environment.from_string(asset("page.html")).render(
        n=numbers,
        title=title,
        words=words,
        named=named,
        number=number,
        unbroken=unbroken,
        headline=lambda risk, place: _headline(numbers, risk, place, number, markup),
        asset=lambda name: markup.Markup(asset(name)),
        json=lambda value: markup.Markup(as_json(value)),
        views=views,
        plots=_plots(numbers, views),
        certificate=str(trace.certificate(*([] if worst is None else [_key(worst)]))),
        worst="" if worst is None else f"Of series {named(worst)}, the one with the most trouble.",
        configuration=configuration,
        note=markup.Markup(note),
        figures=squeezed(as_json(packed(views)).encode()),
        plotly=b64encode(
            files("setpoint.report").joinpath("plotly-basic.min.js.gz").read_bytes()
        ).decode(),
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


def _plots(numbers: Numbers, views: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str, Any]]:
    """The id, the heading and the layout of each figure of the first view."""
    plots = []
    for name, text in next(iter(views.values())).items():
        layout = json.loads(text)["layout"]
        heading, (_, _, index) = layout["meta"]["title"], name.partition("-")
        if index and len(numbers.risks) > 1:
            heading += f": {numbers.risks[int(index)].name}"
        plots.append((name, heading, layout))
    return plots
