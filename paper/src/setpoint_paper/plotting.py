"""How the figures of the experiments look: one size of type, few lines, colours for every eye."""

import os
from collections.abc import Sequence
from math import isnan
from pathlib import Path
from statistics import median
from typing import Any

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

_ENOUGH = 5
"""Values from which on a box tells more than they do."""

_ROW = 5
"""The most names in a line of a legend."""

_LINES = 2
"""Lines of the values that are written above an axis."""

_DPI = 140
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

    `width` is that of the whole figure, `height` that of one row of panels, in inches.
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
        panel.ticklabel_format(useOffset=False)
    return made, panels


def mark(panel: Any, *, level: float | None = None, at: Any = ()) -> None:
    """Draws a level as a thin black line, and moments of drift as grey ones from top to bottom."""
    if level is not None:
        panel.axhline(level, color=COLOURS["black"], linewidth=0.8, zorder=1)
    for moment in at:
        panel.axvline(moment, color="#bbbbbb", linewidth=0.8, linestyle=":", zorder=1)


def spread(
    panel: Any,
    groups: Sequence[Sequence[float]],
    at: Sequence[float],
    width: float,
    colour: str,
    *,
    label: str | None = None,
    hollow: bool = False,
) -> None:
    """Draws a group of values at each place: dots and their median, or a box from five on.

    NaN are left out. `at` has the place of each group on the axis, `width` is that of a group, and
    `label` their name in the legend; `hollow` leaves them white, for a second kind of a colour.
    """
    face = "white" if hollow else colour
    for group, place in zip(groups, at, strict=True):
        known = [value for value in group if not isnan(value)]
        if len(known) >= _ENOUGH:
            panel.boxplot(
                [known], positions=[place], widths=width, patch_artist=True, manage_ticks=False,
                boxprops={"facecolor": "none" if hollow else f"{colour}66", "edgecolor": colour},
                medianprops={"color": colour, "linewidth": 2.0},
                whiskerprops={"color": colour}, capprops={"color": colour},
                flierprops={"marker": "o", "markersize": 2.0, "markeredgecolor": colour,
                            "markerfacecolor": face},
            )  # fmt: skip
        elif known:
            panel.hlines(
                median(known), place - width / 2, place + width / 2, color=colour, linewidth=1.8
            )
            panel.plot(
                [place] * len(known), known, "o", color=colour, markersize=3.2,
                markerfacecolor=face, markeredgewidth=0.8,
            )  # fmt: skip
    if label is not None:
        panel.plot([], [], "s", color=colour, markersize=7.0, label=label)


def trim(panel: Any, groups: Sequence[Sequence[float]], at: Sequence[float]) -> None:
    """Ends the axis below values far above all medians, which hide the rest; writes them there.

    Of several in a group the largest is written, and how many there are. Groups side by side are
    written on lines of their own.
    """
    groups = [[value for value in group if not isnan(value)] for group in groups]
    most = 1.5 * max((median(group) for group in groups if group), default=0.0)
    beyond = [[value for value in group if value > most] for group in groups]
    if not any(beyond):
        return
    kept = [value for group in groups for value in group if value <= most]
    lines, line = 1, -1
    for group, place in zip(beyond, at, strict=True):
        line = (line + 1) % _LINES if group else -1
        lines = max(lines, line + 1)
        if group:
            count = f" ({len(group)})" * (len(group) > 1)
            panel.annotate(
                f"↑ {_plain(max(group))}{count}", (place, 1.0),
                xytext=(0.0, -line * _TYPE), textcoords="offset points",
                xycoords=("data", "axes fraction"), ha="center", va="top", fontsize=_TYPE - 2.0,
            )  # fmt: skip
    room = 0.08 * (max(kept) - min(kept))
    panel.set_ylim(min(kept) - room, max(kept) + (1.0 + lines) * room)


def _plain(value: float) -> str:
    """Three digits that count, and all digits before the point: 2,878, 31.1, 2.29."""
    return f"{value:,.0f}" if value >= 100.0 else f"{value:.3g}"


def plain_ticks(axis: Any) -> None:
    """Numbers as they are, at 1, 2, 3 and 5 of each decade."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(NullLocator())


def legend(made: Any, *, spare: Any = None) -> Any:
    """One legend for all panels, each name once: below them, or in the panel that is left over."""
    handles: dict[str, Any] = {}
    for panel in made.axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if spare is None:
        count = len(handles)
        columns = count if count <= _ROW else (count + 1) // 2
        while True:
            below = made.legend(
                handles.values(), handles, loc="outside lower center", frameon=False,
                ncols=columns, fontsize=_TYPE - 1.0,
            )  # fmt: skip
            if columns <= 1 or below.get_window_extent().width <= made.bbox.width:
                break
            below.remove()
            columns -= 1
    else:
        spare.axis("off")
        spare.legend(handles.values(), handles, loc="center", frameon=False)
    return made


def save(made: Any, path: str | os.PathLike[str], *, vector: bool = True) -> Path:
    """Writes a small PNG, and beside it the same as SVG: equal bytes for equal figures.

    Pictures, which are pixels anyway, need no `vector` version. The folder is made if need be.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    made.align_ylabels()
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
