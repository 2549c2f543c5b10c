"""How the figures of the experiments look: one size of type, few lines, colours for every eye."""

import os
from pathlib import Path
from typing import Any

__all__ = ["COLOURS", "DASHES", "figure", "mark", "save"]

COLOURS = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "pink": "#CC79A7",
    "vermilion": "#D55E00",
    "sky": "#56B4E9",
    "grey": "#777777",
    "black": "#000000",
}
"""Okabe and Ito's colours, which are told apart with any kind of colour vision."""

DASHES = ("-", "--", "-.", ":")
"""Strokes, for lines that must be told apart without colour too."""

_DPI = 110
_TYPE = 8.5


def figure(
    rows: int = 1,
    columns: int = 1,
    *,
    width: float = 8.0,
    height: float = 2.4,
    sharex: Any = False,
    sharey: Any = False,
) -> tuple[Any, Any]:
    """A figure and its panels, an array of shape (rows, columns).

    It belongs to no window and to no global state of matplotlib: nothing has to be closed.

    Parameters
    ----------
    rows, columns
        The grid of panels.
    width
        The width of the whole figure, in inches.
    height
        The height of one row of panels, in inches.
    sharex, sharey
        As in matplotlib: True, False, "row" or "col".
    """
    from cycler import cycler
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height * rows), dpi=_DPI, layout="constrained")
    panels = made.subplots(rows, columns, sharex=sharex, sharey=sharey, squeeze=False)
    cycle = cycler(color=[colour for name, colour in COLOURS.items() if name != "black"])
    for panel in panels.ravel():
        panel.set_prop_cycle(cycle)
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(visible=True, axis="y", color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.tick_params(labelsize=_TYPE - 1.0)
    return made, panels


def mark(panel: Any, *, level: float | None = None, at: Any = ()) -> None:
    """Draws a level as a thin black line, and moments of drift as grey ones from top to bottom."""
    if level is not None:
        panel.axhline(level, color=COLOURS["black"], linewidth=0.8, zorder=1)
    for moment in at:
        panel.axvline(moment, color="#bbbbbb", linewidth=0.8, linestyle=":", zorder=1)


def save(made: Any, path: str | os.PathLike[str], *, vector: bool = True) -> Path:
    """Writes a small PNG, and beside it the same as SVG: equal bytes for equal figures.

    Pictures, which are pixels anyway, need no `vector` version. The folder is made if need be.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    for panel in made.axes:
        for text in (panel.xaxis.label, panel.yaxis.label, panel.title):
            text.set_size(_TYPE)
    for legend in [*made.legends, *filter(None, (panel.get_legend() for panel in made.axes))]:
        for text in legend.get_texts():
            text.set_size(_TYPE - 1.0)
    # matplotlib signs its files with its version, which would change them from one to the next.
    made.savefig(target, format="png", dpi=_DPI, metadata={"Software": None})
    if vector:
        from matplotlib import rc_context

        with rc_context({"svg.hashsalt": target.stem, "svg.fonttype": "none"}):
            made.savefig(target.with_suffix(".svg"), format="svg", metadata={"Date": None})
    return target
