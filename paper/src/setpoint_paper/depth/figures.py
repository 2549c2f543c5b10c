"""Figures of the depth experiment."""

from collections.abc import Mapping, Sequence
from math import inf, isnan
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from setpoint_paper.datasets import Clip
from setpoint_paper.depth.claims import places
from setpoint_paper.depth.maps import HEURISTICS
from setpoint_paper.depth.report import METHOD_NAMES, NAMES
from setpoint_paper.depth.runs import CENTRE, IMAGE, Row, Series
from setpoint_paper.depth.tapes import Frames
from setpoint_paper.plotting import COLOURS, figure, mark, save

__all__ = ["compare", "over_time", "picture"]

_MEAN = 25
"""Frames in the running means."""

_METRICS = (
    ("coverage", "image coverage", 1.0 - IMAGE),
    ("length", "mean length, m", None),
    ("centre_coverage", "centre coverage", None),
    ("centre_failure", "centre failure", CENTRE),
)


def picture(clip: Clip, frames: Frames, lam: float, path: Path) -> Path:
    """Input, truth, estimate and interval size of one frame, side by side, in metres."""
    _, number, (centre, low, high) = frames.shown
    truth = clip.depth[number]
    full = lam == inf
    sizes = (0.0 if full else max(lam, 0.0)) * (low + high)
    made, panels = figure(2, 2, height=1.9)
    most = float(np.nanpercentile(truth, 99.0))
    shown: tuple[tuple[str, Any, float | None], ...] = (
        (f"input, frame {number + 1}", clip.rgb[number], None),
        ("truth, m", truth, most),
        ("estimate, m", centre, most),
        (
            "interval size: the full set" if full else "interval size, m",
            sizes,
            float(np.nanpercentile(sizes, 99.0)),
        ),
    )
    for panel, (title, values, limit) in zip(panels.ravel(), shown, strict=True):
        panel.set_title(title)
        panel.grid(visible=False)
        panel.set_xticks([])
        panel.set_yticks([])
        panel.set_facecolor("#dddddd")
        drawn = panel.imshow(values, vmin=0.0, vmax=limit or None, cmap="viridis")
        bar = made.colorbar(drawn, ax=panel, shrink=0.8)
        bar.ax.set_visible(limit is not None)  # it keeps its room, so that the panels line up
    return save(made, path, vector=False)


def over_time(
    runs: Mapping[str, Series], validation: int, first: int, title: str, path: Path
) -> Path:
    """Image coverage and mean length of each frame, with running means."""
    made, panels = figure(2, 1, sharex=True, height=2.1)
    mark(panels[0, 0], level=1.0 - IMAGE, at=(first + validation,))
    mark(panels[1, 0], at=(first + validation,))
    for (name, series), colour in zip(runs.items(), ("blue", "vermilion", "green"), strict=False):
        for panel, values in zip(panels[:, 0], (series.coverage, series.length), strict=True):
            finite = np.where(np.isfinite(values), values, np.nan)
            at = first + np.arange(len(finite))
            panel.plot(at, finite, color=COLOURS[colour], linewidth=0.5, alpha=0.4)
            running = _running(finite)
            panel.plot(
                at[len(at) - len(running) :], running, color=COLOURS[colour], linewidth=1.3,
                label=name,
            )  # fmt: skip
    panels[0, 0].set_title(title)
    panels[0, 0].set_ylabel("image coverage")
    panels[1, 0].set_ylabel("mean length, m")
    panels[1, 0].set_xlabel("frame")
    made.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center",
                ncols=3, frameon=False)  # fmt: skip
    return save(made, path)


def _running(values: np.ndarray) -> np.ndarray:
    size = min(_MEAN, len(values))
    known = np.isfinite(values)
    sums, counts = (
        np.convolve(each, np.ones(size), "valid") for each in (np.where(known, values, 0.0), known)
    )
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def compare(
    rows: Sequence[Row], heuristics: Sequence[str], methods: Sequence[str], path: Path
) -> Path:
    """Four measures of the test part, a panel for each clip: dots are seeds, bars their medians.

    Lengths and failures have an axis from 0, coverage one that shows its distance from its level.
    """
    found = places(rows)
    made, panels = figure(len(_METRICS), len(found), width=max(8.0, 2.6 * len(found)), height=1.7)
    groups = [
        (heuristic, method)
        for heuristic in HEURISTICS
        if heuristic in heuristics
        for method in methods
        if any((row.heuristic, row.method) == (heuristic, method) for row in rows)
    ]
    labels = [
        NAMES[heuristic] if len(methods) == 1 else METHOD_NAMES[method]
        for heuristic, method in groups
    ]
    names = list(COLOURS)
    for column, place in enumerate(found):
        for line, (metric, told, level) in enumerate(_METRICS):
            panel = panels[line, column]
            mark(panel, level=level)
            for at, group in enumerate(groups):
                values = [
                    float(getattr(row, metric))
                    for row in rows
                    if (row.clip, row.model) == place and (row.heuristic, row.method) == group
                ]
                known = [value for value in values if not isnan(value)]
                if known:
                    colour = COLOURS[names[at % len(names)]]
                    if metric in _SHARES:  # an axis that shows how far they are from their level
                        panel.hlines(
                            median(known), at - 0.35, at + 0.35, color=colour, linewidth=2.5
                        )
                    else:
                        panel.bar(at, median(known), width=0.7, color=colour, alpha=0.35)
                    panel.plot([at] * len(known), known, "o", color=colour, markersize=3.0)
            if metric not in _SHARES:
                _cut(panel)
            panel.set_xticks(range(len(groups)))
            last = line == len(_METRICS) - 1
            panel.set_xticklabels(labels if last else [""] * len(groups), rotation=30, ha="right")
            if column == 0:
                panel.set_ylabel(told)
            if line == 0:
                panel.set_title(f"{place[0]}, {place[1]}")
    return save(made, path)


_SHARES = ("coverage", "centre_coverage")
"""What has a level to be near to, not a zero."""


def _cut(panel: Any) -> None:
    """Ends the axis above the bars where a dot lies far beyond them, and writes its value there."""
    tallest = max((bar.get_height() for bar in panel.patches), default=0.0)
    most = 2.0 * tallest
    beyond = [
        (float(at), float(value))
        for line in panel.lines
        if line.get_marker() == "o"
        for at, value in zip(*line.get_data(), strict=True)
        if value > most
    ]
    if beyond:
        panel.set_ylim(0.0, most)
        for at, value in beyond:
            panel.annotate(f"↑ {value:.3g}", (at, most), ha="center", va="top", fontsize=7)
