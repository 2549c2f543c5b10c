"""Figures of the depth experiment."""

from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from setpoint_paper.datasets.clips import Frame
from setpoint_paper.depth.maps import HEURISTICS
from setpoint_paper.depth.runs import METHOD_NAMES, NAMES, Row, Series
from setpoint_paper.depth.tapes import CENTRE, IMAGE, Frames
from setpoint_paper.plotting import COLOURS, figure, legend, mark, save, spread, trim

_MEAN = 25
"""Frames in the running means."""

CENTRES = {
    "text": "the text's, 50/448 of each side",
    "authors": "the authors', 50/448 of the width and 50/188 of the height",
}
"""The two windows that are called the centre, as a legend tells them."""

_METRICS = (
    ("coverage", "image coverage, %", 100.0, 100.0 * (1.0 - IMAGE)),
    ("length", "mean length, m", 1.0, None),
    ("centre_coverage", "centre coverage, %", 100.0, None),
    ("centre_failure", "centre failure, %", 100.0, 100.0 * CENTRE),
)
"""What a panel shows: its label, a factor, and the level asked for."""


def draw_run(clip: Any, frames: Frames, runs: Mapping[str, Series], where: str, stem: Path) -> None:
    """One frame of a run and its course in time; `clip[number]` is a `Frame`."""
    place, number, _ = frames.shown
    picture(clip[number], frames, float(runs["single"].lam[place]), _named(stem, ""))
    shown = {METHOD_NAMES[each]: runs[each] for each in ("single", "max_bare")}
    over_time(shown, frames.validation, number - place, where, _named(stem, "-time"))


def _named(stem: Path, end: str) -> Path:
    return stem.with_name(f"{stem.name}{end}.png")


def comparisons(rows: Sequence[Row], stem: Path) -> list[Path]:
    """Every heuristic, one risk against two, Max against Mean: drawn."""
    shown = max((row.heuristic for row in rows), key=HEURISTICS.index)
    compared: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
        ("heuristics", HEURISTICS, ("single",)),
        ("risks", (shown,), ("single", "max_bare", "max")),
        ("max-mean", (shown,), ("max", "mean", "max_bare", "mean_bare")),
    )
    return [
        compare(rows, heuristics, methods, _named(stem, f"-{name}"))
        for name, heuristics, methods in compared
    ]


def picture(frame: Frame, frames: Frames, lam: float, path: Path) -> Path:
    """Input, truth, estimate and interval size of one frame, side by side, in metres."""
    _, number, (centre, low, high) = frames.shown
    truth = frame.depth
    full = lam == inf
    sizes = (0.0 if full else max(lam, 0.0)) * (low + high)
    rows, columns = truth.shape
    made, panels = figure(2, 2, height=0.35 + 3.4 * rows / columns)
    most = float(np.nanpercentile(truth, 99.0))
    shown: tuple[tuple[str, Any, float | None], ...] = (
        (f"input, frame {number + 1}", frame.rgb, None),
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
        panel.spines[:].set_visible(False)
        panel.set_facecolor("#dddddd")
        drawn = panel.imshow(values, vmin=0.0, vmax=limit or None, cmap="viridis")
        # As high as its panel, which `ax=panel` would not keep to.
        bar = made.colorbar(drawn, cax=panel.inset_axes((1.02, 0.0, 0.025, 1.0)))
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=7.5, length=2.0)
        bar.ax.set_visible(limit is not None)
    return save(made, path, vector=False)


def over_time(
    runs: Mapping[str, Series], validation: int, first: int, title: str, path: Path
) -> Path:
    """Image coverage and mean length of each frame, with running means."""
    made, panels = figure(2, 1, sharex=True, height=2.1)
    mark(panels[0, 0], level=100.0 * (1.0 - IMAGE), at=(first + validation,))
    mark(panels[1, 0], at=(first + validation,))
    for (name, series), colour in zip(runs.items(), ("blue", "vermilion", "green"), strict=False):
        shown = (100.0 * np.asarray(series.coverage), np.asarray(series.length))
        for panel, values in zip(panels[:, 0], shown, strict=True):
            finite = np.where(np.isfinite(values), values, np.nan)
            at = first + np.arange(len(finite))
            panel.plot(at, finite, color=COLOURS[colour], linewidth=0.5, alpha=0.4)
            running = _running(finite)
            panel.plot(
                at[len(at) - len(running) :], running, color=COLOURS[colour], linewidth=1.3,
                label=name,
            )  # fmt: skip
    panels[0, 0].set_title(title)
    for panel, (_, told, _, _) in zip(panels[:, 0], _METRICS, strict=False):
        panel.set_ylabel(told)
    panels[1, 0].set_xlabel("frame")
    return save(legend(made), path)


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
    """Four measures of the test part over seeds, a column for each clip.

    What depends on the window that is the centre is drawn for both: first the one of `CENTRES`
    that is filled, then the one that is white. The clips share the axis of image coverage, which
    shows how far it is from its level.
    """
    found = tuple(dict.fromkeys((row.clip, row.model) for row in rows))
    made, panels = figure(len(_METRICS), len(found), width=max(8.0, 2.6 * len(found)), height=1.7)
    groups = [
        (heuristic, method)
        for heuristic in HEURISTICS
        if heuristic in heuristics
        for method in methods
        if any((row.heuristic, row.method) == (heuristic, method) for row in rows)
    ]
    tones = [colour for name, colour in COLOURS.items() if name != "black"]
    for (line, column), panel in np.ndenumerate(panels):
        metric, told, factor, level = _METRICS[line]
        drawn: list[list[float]] = []
        at: list[float] = []
        for place, (heuristic, method) in enumerate(groups):
            # The window changes nothing for the image where no risk is of the centre.
            alike = metric in ("coverage", "length") and method == "single"
            for number, geometry in enumerate(tuple(CENTRES)[: 1 if alike else None]):
                asked = (*found[column], heuristic, method, geometry)
                values = [
                    factor * float(getattr(row, metric))
                    for row in rows
                    if (row.clip, row.model, row.heuristic, row.method, row.geometry) == asked
                ]
                drawn.append(values)
                at.append(place + (0.0 if alike else 0.4 * number - 0.2))
                spread(
                    panel, [values], at[-1:], 0.32, tones[place % len(tones)], hollow=number > 0,
                    label=NAMES[heuristic] if len(methods) == 1 else METHOD_NAMES[method],
                )  # fmt: skip
        if metric == "length":
            trim(panel, drawn, at)
        mark(panel, level=level)
        panel.set_xticks([])
        panel.set_xlim(-0.6, len(groups) - 0.4)
        if metric == "coverage":
            panel.sharey(panels[0, 0])
        if metric == "centre_failure":
            panel.set_ylim(bottom=0.0)
        if column == 0:
            panel.set_ylabel(told)
        if line == 0:
            seeds = len({row.seed for row in rows if (row.clip, row.model) == found[column]})
            panel.set_title(f"{', '.join(found[column])}; seeds: {seeds}")
    for face, name in zip((COLOURS["grey"], "white"), CENTRES.values(), strict=True):
        panels[0, 0].plot(
            [], [], "o", color=COLOURS["grey"], markerfacecolor=face, label=f"centre: {name}"
        )
    return save(legend(made), path)
