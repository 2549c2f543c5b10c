"""Colours and type of every figure, and the libraries that draw them."""

from importlib import import_module
from typing import Any

__all__ = ["DARK", "LIGHT", "library", "styled"]

LIGHT = {
    "paper": "#ffffff",
    "ink": "#1f2328",
    "muted": "#57606a",
    "grid": "#e6e6e1",
    "line": "#0b63a5",
    "fill": "rgba(11,99,165,0.16)",
    "inner": "rgba(11,99,165,0.28)",
    "miss": "#b8390e",
    "second": "#8a6100",
    "third": "#6f42c1",
    "noise": "rgba(87,96,106,0.22)",
    "worst": "rgba(184,57,14,0.14)",
}

DARK = {
    "paper": "#191b1e",
    "ink": "#e8e6e1",
    "muted": "#a9aeb5",
    "grid": "#34373c",
    "line": "#74b9f0",
    "fill": "rgba(116,185,240,0.22)",
    "inner": "rgba(116,185,240,0.34)",
    "miss": "#ff8f63",
    "second": "#e0b44c",
    "third": "#b99bf2",
    "noise": "rgba(169,174,181,0.28)",
    "worst": "rgba(255,143,99,0.2)",
}
"""The same by night: a page replaces each colour of `LIGHT` by the one of the same name."""

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def library(module: str) -> Any:
    """A drawing library, imported where it is used."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ImportError(f"this needs {name}: pip install 'setpoint[plots]'") from error


def styled(figure: Any, title: str, caption: str, *, x: str, y: str, height: int = 340) -> Any:
    """The figure with its look, its title and the caption, kept as `layout.meta["caption"]`."""
    axis: dict[str, Any] = {
        "gridcolor": LIGHT["grid"],
        "linecolor": LIGHT["grid"],
        "zeroline": False,
        "tickfont": {"color": LIGHT["muted"], "size": 12},
        "title": {"font": {"color": LIGHT["muted"], "size": 12}},
        "automargin": True,
    }
    figure.update_layout(
        template="none",
        title={"text": title, "x": 0, "xref": "paper", "font": {"size": 16}},
        meta={"caption": caption},
        height=height,
        margin={"l": 8, "r": 8, "t": 44, "b": 8},
        paper_bgcolor=LIGHT["paper"],
        plot_bgcolor=LIGHT["paper"],
        font={"family": _FONT, "size": 13, "color": LIGHT["ink"]},
        hoverlabel={
            "bgcolor": LIGHT["paper"],
            "bordercolor": LIGHT["grid"],
            "font": {"color": LIGHT["ink"]},
        },
        hovermode="x unified",
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.0,
            "yanchor": "bottom",
            "font": {"color": LIGHT["muted"], "size": 12},
        },
        modebar={
            "bgcolor": "rgba(0,0,0,0)",
            "color": LIGHT["muted"],
            "activecolor": LIGHT["ink"],
        },
        dragmode="zoom",
    )
    figure.update_xaxes(showgrid=False, ticks="outside", tickcolor=LIGHT["grid"], **axis)
    figure.update_yaxes(hoverformat=".5~g", **axis)
    figure.update_xaxes(title_text=x)
    if y:
        figure.update_yaxes(title_text=y)
    return figure
