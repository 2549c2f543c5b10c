"""What the figures share: numbers and places for a page, bands, levels, titles."""

from typing import Any

import numpy as np

from setpoint.report._look import LIGHT
from setpoint.report._look import styled as look
from setpoint.report._view import View

__all__ = [
    "add_band",
    "add_level",
    "axis_range",
    "places",
    "plain",
    "stroke",
    "thin",
    "titled",
]

Array = np.ndarray[Any, Any]


def titled(figure: Any, seen: View, title: str, told: str, **axes: Any) -> Any:
    """The figure with its look; the title and the caption say of which stream it is."""
    if seen.name:
        told = f"This is stream {seen.streams[0]}. {told}"
    return look(figure, f"{title}{seen.name}", told, **axes)


def thin(values: Array) -> Array:
    """Numbers for a page: float32 is finer than any screen and half the size."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32)


def places(x: Array) -> Any:
    return np.datetime_as_string(x).tolist() if x.dtype.kind == "M" else x


def plain(x: Any) -> Any:
    return str(x) if isinstance(x, np.datetime64) else x.item()


def axis_range(first: Any, last: Any, *, air: int = 1) -> list[Any]:
    """The range from one place to another, with some air behind the last."""
    return [plain(first), plain(last + air * ((last - first) // 40))]


def stroke(colour: str, width: float = 2.0) -> dict[str, Any]:
    return {"color": LIGHT[colour], "width": width}


def add_band(
    figure: Any,
    x: Any,
    low: Array,
    high: Array,
    name: str,
    *,
    edge: bool = False,
    fill: str = "fill",
) -> None:
    """A band between two curves, one entry in the legend.

    Each piece between NaNs is a band of its own: a fill would go across them.
    """
    line = {"color": LIGHT["line"], "width": 0.8 if edge else 0.0}
    for number, piece in enumerate(_pieces(np.isnan(low) | np.isnan(high))):
        for values, own in ((high, {"fill": None}), (low, {"fill": "tonexty"})):
            told = f"{name} {'from' if own['fill'] else 'to'} %{{y:.5~g}}<extra></extra>"
            figure.add_scatter(
                x=x[piece],
                y=thin(values[piece]),
                mode="lines",
                line=line,
                name=name,
                hovertemplate=told,
                legendgroup=name,
                showlegend=bool(own["fill"]) and not number,
                fillcolor=LIGHT[fill],
                **own,
            )


def _pieces(gaps: Array) -> list[slice]:
    """The runs between gaps; all of it if there is none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], gaps, [True]]))).tolist()
    found = [slice(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
    return found or [slice(None)]


def add_level(figure: Any, level: float) -> None:
    """What was asked for, across the whole plot."""
    figure.add_hline(y=level, line={"color": LIGHT["ink"], "width": 1.3, "dash": "dash"})
