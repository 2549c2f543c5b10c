"""How every figure looks: colours, type, bands and levels, and text that plotly shows as it is."""

from html import escape
from importlib import import_module
from typing import Any

import numpy as np

from setpoint.report.view import Array, View

__all__ = [
    "LIGHT", "NIGHT", "SERIES", "add_band", "add_level", "axis_range", "library", "line_of",
    "places", "plain", "plotly_text", "thin", "titled",
]  # fmt: skip

_COLOURS = {
    # By day, and by night: a page replaces each colour of the day by its neighbour here.
    "paper": ("#ffffff", "#191b1e"),
    "ink": ("#1f2328", "#e8e6e1"),
    "muted": ("#57606a", "#a9aeb5"),
    "grid": ("#e6e6e1", "#34373c"),
    "line": ("#0b63a5", "#74b9f0"),
    "fill": ("rgba(11,99,165,0.16)", "rgba(116,185,240,0.22)"),
    "inner": ("rgba(11,99,165,0.28)", "rgba(116,185,240,0.34)"),
    "miss": ("#b8390e", "#ff8f63"),
    "second": ("#8a6100", "#e0b44c"),
    "third": ("#6f42c1", "#b99bf2"),
    "noise": ("rgba(87,96,106,0.22)", "rgba(169,174,181,0.28)"),
    "worst": ("rgba(184,57,14,0.14)", "rgba(255,143,99,0.2)"),
}
LIGHT = {name: day for name, (day, _) in _COLOURS.items()}
NIGHT = dict(_COLOURS.values())
SERIES = ("line", "second", "third", "miss")
"""The colours of several curves in one plot."""

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def library(module: str) -> Any:
    """A drawing library, imported where it is used."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(f"this needs {name}: pip install 'setpoint[plots]'") from error


def plotly_text(text: str) -> str:
    """Text that plotly shows letter for letter: no tags, no formulas, no templates.

    >>> plotly_text('<a href="https://a.b">$x$ %{meta.caption}</a>')
    '&lt;a href="https://a.b"&gt;&#36;x&#36; %&#123;meta.caption}&lt;/a&gt;'
    """
    return escape(text, quote=False).replace("$", "&#36;").replace("%{", "%&#123;")


def titled(
    figure: Any, view: View, title: str, caption: str, *, x: str, y: str, height: int = 340
) -> Any:
    """The figure with its look and its title; `layout.meta` keeps the caption and the bare title.

    The title and the caption say of which stream it is.
    """
    if view.name:
        caption = f"This is stream {view.streams[0]}. {caption}"
    muted = {"color": LIGHT["muted"], "size": 12}
    axis: dict[str, Any] = {
        "gridcolor": LIGHT["grid"],
        "linecolor": LIGHT["grid"],
        "zeroline": False,
        "tickfont": muted,
        "title": {"font": muted},
        "automargin": True,
    }
    hover = {"bgcolor": LIGHT["paper"], "bordercolor": LIGHT["grid"], "font_color": LIGHT["ink"]}
    bar = {"bgcolor": "rgba(0,0,0,0)", "color": LIGHT["muted"], "activecolor": LIGHT["ink"]}
    legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.0, "yanchor": "bottom"}
    text = plotly_text(f"{title}{view.name}")
    figure.update_layout(
        template="none",
        title={"text": text, "x": 0, "xref": "paper", "font": {"size": 16}},
        meta={"caption": caption, "title": title},
        height=height,
        margin={"l": 8, "r": 8, "t": 44, "b": 8},
        paper_bgcolor=LIGHT["paper"],
        plot_bgcolor=LIGHT["paper"],
        font={"family": _FONT, "size": 13, "color": LIGHT["ink"]},
        hoverlabel=hover,
        hovermode="x unified",
        legend={**legend, "font": muted},
        modebar=bar,
        dragmode="zoom",
    )
    figure.update_xaxes(showgrid=False, ticks="outside", tickcolor=LIGHT["grid"], **axis)
    figure.update_yaxes(hoverformat=".5~g", **axis)
    figure.update_xaxes(title_text=x)
    if y:
        figure.update_yaxes(title_text=y)
    return figure


def thin(values: Array) -> Array:
    """Numbers for a page: float32 is finer than any screen and half the size."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32)


def places(x: Array) -> Any:
    """Places on the horizontal axis as plotly takes them."""
    return np.datetime_as_string(x).tolist() if x.dtype.kind == "M" else x


def plain(x: Any) -> Any:
    """One place on the horizontal axis."""
    return str(x) if isinstance(x, np.datetime64) else x.item()


def axis_range(first: Any, last: Any, *, air: int = 1) -> list[Any]:
    """The range from one place to another, with some air behind the last."""
    return [plain(first), plain(last + air * ((last - first) // 40))]


def line_of(colour: str, width: float = 2.0) -> dict[str, Any]:
    """A line in one of the colours."""
    return {"color": LIGHT[colour], "width": width}


def add_band(
    figure: Any,
    x: Any,
    low: Array,
    high: Array,
    name: str,
    *,
    edge: float = 0.0,
    fill: str = "fill",
) -> None:
    """A band between two curves, one entry in the legend.

    Each piece between NaNs is a band of its own: a fill would go across them.
    """
    for number, piece in enumerate(_pieces(np.isnan(low) | np.isnan(high))):
        for values, to, word in ((high, None, "to"), (low, "tonexty", "from")):
            figure.add_scatter(
                x=x[piece],
                y=thin(values[piece]),
                mode="lines",
                line=line_of("line", edge),
                name=name,
                hovertemplate=f"{name} {word} %{{y:.5~g}}<extra></extra>",
                legendgroup=name,
                showlegend=to is not None and not number,
                fill=to,
                fillcolor=LIGHT[fill],
            )


def _pieces(gaps: Array) -> list[slice]:
    """The runs between gaps; all of it if there is none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], gaps, [True]]))).tolist()
    pieces = [slice(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
    return pieces or [slice(None)]


def add_level(figure: Any, level: float) -> None:
    """What was asked for, across the whole plot."""
    figure.add_hline(y=level, line={"color": LIGHT["ink"], "width": 1.3, "dash": "dash"})
