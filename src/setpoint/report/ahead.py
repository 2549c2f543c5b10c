"""The page of a forecast: a fan of the rows to come, and how such forecasts did in the past."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from json import loads
from typing import Any

import numpy as np

from setpoint._html import amount
from setpoint.report.figures import SERIES, add_band, blank, library, line_of, titled
from setpoint.report.page import as_json, asset, bare, packed, squeezed

_ROWS = 60
"""How many rows to come a page lists."""


def page(about: Mapping[str, Any], numbers: Mapping[str, Any]) -> str:
    """A self-contained HTML page of a forecast.

    Parameters
    ----------
    about
        The title, the target, the rows to come, the notes and the command that does it again.
    numbers
        What `Forecast.metrics` returned.
    """
    library("plotly")
    jinja, markup = library("jinja2"), library("markupsafe")
    horizons = numbers["horizons"]
    shared = _by_horizon(horizons)
    views = {}
    for one in numbers["recent"]:
        label = "" if one["series"] is None else f"series {one['series']}"
        views[label] = {"fan": bare(fan(one, about["coverages"], about["target"])), **shared}
    plots = {name: loads(text)["layout"] for name, text in next(iter(views.values())).items()}
    first, last = horizons[0], horizons[-1]
    sentence = f"{len(about['rows']):,} rows to come, up to {last['horizon']} steps ahead."
    if last["mae"] is not None and last["mae_seasonal"] is not None:
        sentence += (
            f" In the past the forecast was off by {amount(first['mae'])} on average one step "
            f"ahead and, {last['horizon']} steps ahead, by {amount(last['mae'])}; the value one "
            f"season before by {amount(last['mae_seasonal'])}."
        )
    environment = jinja.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja.StrictUndefined
    )
    text: str = environment.from_string(asset("ahead.html")).render(
        about=about,
        version=version("setpoint"),
        sentence=sentence,
        rows=about["rows"][:_ROWS],
        cell=_cell,
        horizons=horizons,
        levels=[f"{100 * level['asked']:.6g} %" for level in first["levels"]],
        facts=_facts(numbers["uses"], numbers["notes"]),
        views=views,
        plots=plots,
        asset=lambda name: markup.Markup(asset(name)),
        numbers=markup.Markup(as_json(numbers)),
        figures=squeezed(as_json(packed(views)).encode()),
        plotly=b64encode(
            files("setpoint.report").joinpath("plotly-basic.min.js.gz").read_bytes()
        ).decode(),
    )
    return text


def fan(one: Mapping[str, Any], coverages: Sequence[float], target: str) -> Any:
    """The rows to come of one series behind its recent past, and the forecast made before."""
    figure, x = blank(), np.array(one["x"])
    y = np.array(one["y"], np.float64)
    names = [f"{100 * coverage:.6g} %" for coverage in coverages]
    before, now = one.get("before"), one["now"]
    if before is not None:
        start, point, ends = _made(before)
        stop = start + len(point)
        add_band(figure, x[start:stop], ends[-1, 0], ends[-1, 1], f"{names[-1]}, made before",
                 fill="noise")  # fmt: skip
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
            x=x[start:stop].tolist(), y=np.array(side, np.float64), mode="lines",
            name=f"{names[-1]} of whole paths", legendgroup="path",
            showlegend=side is now["path"][0], line={**line_of("second", 1.3), "dash": "dash"},
        )  # fmt: skip
    figure.add_scatter(x=x[start - 1 : stop].tolist(), y=point, mode="lines", name="forecast",
                       line=line_of("line"))  # fmt: skip
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
        ("error", error, "Error by horizon", "mean absolute error",
         "How far the forecast was off on average, beside the value one season before."),
        ("coverage", coverage, "Coverage by horizon", "share inside",
         "How many actual values lay inside, beside what was asked (dotted)."),
        ("width", width, "Width by horizon", "mean width",
         "How wide the intervals were on average."),
    )  # fmt: skip
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
