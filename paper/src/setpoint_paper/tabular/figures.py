"""The paper's figures of its tabular experiments, drawn from stored results."""

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any

from setpoint_paper.plotting import COLOURS, figure, mark, save
from setpoint_paper.tabular.methods import OURS, STRETCHES
from setpoint_paper.tabular.printed import COLUMNS, CURVES, printed
from setpoint_paper.tabular.results import Results
from setpoint_paper.tabular.tables import NAMES, seeds_of

__all__ = [
    "against_cal",
    "against_cal_in_full",
    "as_printed",
    "draw",
    "mc_control",
    "pinball_by_gamma",
    "real_data",
    "step_sizes",
    "stretchings_under_coverage",
    "stretchings_under_mc",
]

_TONES = {
    "cal": COLOURS["grey"],
    "none": COLOURS["orange"],
    "error": COLOURS["green"],
    "exponential": COLOURS["pink"],
    "score": COLOURS["sky"],
    "error_coded": COLOURS["green"],
    "none_coded": COLOURS["orange"],
    "cal_coded": COLOURS["blue"],
    "exponential_coded": COLOURS["pink"],
    "score_coded": COLOURS["sky"],
    OURS: COLOURS["vermilion"],
}

_METRICS: dict[str, tuple[str, float, float | None]] = {
    "coverage": ("coverage in %", 100.0, 90.0),
    "mc": ("MC", 1.0, 1.0 / 9.0),
    "msl": ("MSL", 1.0, 10.0 / 9.0),
    "scaled_length": ("length, scaled", 1.0, None),
    "shared_length": ("length, scaled", 1.0, None),
    "delta": ("ΔCoverage in %", 100.0, None),
}
"""What a panel shows: its label, a factor, and the ideal level."""


_CAL = ("cal", "cal_coded", "none", "error")


def draw(results: Results, out: Path, stem: str = "tabular") -> dict[Path, str]:
    """Every figure as a PNG file in a folder, with a line that tells what it shows."""
    drawn = {
        "real-data": real_data,
        "cal": against_cal,
        "cal-in-full": against_cal_in_full,
        "mc": mc_control,
        "stretchings-coverage": stretchings_under_coverage,
        "stretchings-mc": stretchings_under_mc,
        "pinball-by-gamma": pinball_by_gamma,
    }
    if results.random and any(row.method == "none_coded" for row in results.rows):
        drawn["as-printed"] = as_printed
    if results.study:
        drawn["gamma"] = step_sizes
    told = {}
    for name, make in drawn.items():
        made = make(results)
        made.suptitle(f"{results.about.get('model', '')}; {seeds_of(results)}", fontsize=8.0)
        told[save(made, out / f"{stem}-{name}.png")] = " ".join((make.__doc__ or "").split())
    return told


def real_data(results: Results) -> Any:
    """Rolling RC on real data, coverage at 90 %: none and error adaptive (section 4.1.2)."""
    made, panels = figure(1, 3, width=9.0, height=2.8)
    _boxes(panels[0], results, ("none", "error"), ("coverage", "msl", "scaled_length"))
    return _told(made, panels[0, 0])


def against_cal(results: Results) -> Any:
    """Rolling RC and calibration with cal, length and MSL (section 4.1.3), with ours beside them.

    A full set of calibration with cal counts as long as the range of all labels seen until then;
    the authors' code shows none. Lengths of all methods are over one mean.
    """
    made, panels = figure(1, 2, width=9.5, height=2.8)
    _boxes(panels[0], results, (*_CAL, *_ours(results)), ("shared_length", "msl"))
    return _told(made, panels[0, 0])


def as_printed(results: Results) -> Any:
    """The authors' code with γ by test, and what they printed, drawn as black bars.

    Calibration with cal is theirs too, without full sets. Beside a stand-in nothing is printed.
    """
    made, panels = figure(2, 2, width=9.5, height=2.5)
    methods = tuple(f"{name}_coded" for name in COLUMNS)
    _boxes(panels.ravel()[:3], results, methods, ("scaled_length", "msl", "mc"), by="test")
    width = 0.8 / len(methods)
    for panel, metric in zip(panels.ravel(), ("scaled_length", "msl", "mc"), strict=False):
        for i, dataset in enumerate(results.datasets):
            if results.stands_in(dataset):
                continue
            for place, name in enumerate(COLUMNS):
                at = i - 0.4 + width * (place + 0.5)
                panel.hlines(
                    getattr(printed(dataset, name), metric), at - width / 2, at + width / 2,
                    color=COLOURS["black"], linewidth=1.6, zorder=4,
                    label="printed" if (i, place) == (0, 0) else None,
                )  # fmt: skip
    return _told(made, panels[0, 0], spare=panels[1, 1])


def _ours(results: Results) -> tuple[str, ...]:
    """The self-adjusting method, if it ran."""
    return (OURS,) if any(row.method == OURS for row in results.rows) else ()


def against_cal_in_full(results: Results) -> Any:
    """Rolling RC and calibration with cal by every metric (appendix).

    ΔCoverage can lie below its noise floor, that of independent misses: control makes misses
    anti-correlated.
    """
    made, panels = figure(2, 3, width=9.5, height=2.5)
    _boxes(panels.ravel(), results, _CAL, ("coverage", "mc", "msl", "shared_length", "delta"))
    return _told(made, panels[0, 0], spare=panels[1, 2])


def mc_control(results: Results) -> Any:
    """MC and coverage under control of MC, MC under control of coverage (section 4.1.4).

    An MC of 1/9 leaves a coverage of at least 8/9, which is drawn beside 90 %.
    """
    made, panels = figure(1, 3, width=9.0, height=2.8)
    methods = ("none", "error")
    _boxes(panels[0][:2], results, methods, ("mc", "coverage"), "mc")
    _boxes(panels[0][2:], results, methods, ("mc",), "coverage")
    for panel, title in zip(
        panels[0], ("MC control", "MC control", "coverage control"), strict=True
    ):
        panel.set_title(title)
    return _told(made, panels[0, 0])


def stretchings_under_coverage(results: Results) -> Any:
    """All stretchings by every metric, coverage at 90 % (appendix).

    ΔCoverage can lie below its noise floor, that of independent misses: control makes misses
    anti-correlated.
    """
    return _stretchings(results, "coverage")


def stretchings_under_mc(results: Results) -> Any:
    """All stretchings by every metric, MC at 1/9 (appendix).

    ΔCoverage, the distance from 90 %, is here also that of a coverage that is higher on purpose.
    """
    return _stretchings(results, "mc")


def _stretchings(results: Results, risk: str) -> Any:
    made, panels = figure(2, 3, width=9.5, height=2.5)
    metrics = ("coverage", "mc", "msl", "scaled_length", "delta")
    _boxes(panels.ravel(), results, STRETCHES, metrics, risk)
    return _told(made, panels[0, 0], spare=panels[1, 2])


def step_sizes(results: Results) -> Any:
    """Coverage, MSL and length by γ on the synthetic stream (appendix)."""
    made, panels = figure(1, 3, width=9.0, height=2.6)
    gammas = sorted({row.gamma for row in results.study})
    usual = fmean(row.length for row in results.study)
    told = (("coverage", 100.0), ("msl", 1.0), ("length", 1.0 / usual))
    for panel, (metric, factor) in zip(panels[0], told, strict=True):
        groups = [
            [factor * float(getattr(row, metric)) for row in results.study if row.gamma == gamma]
            for gamma in gammas
        ]
        _box(panel, groups, range(len(gammas)), 0.6, COLOURS["orange"])
        panel.set_xticks(range(len(gammas)), [f"{gamma:g}" for gamma in gammas], rotation=45)
        panel.set_xlabel("γ")
        label, _, ideal = _METRICS["scaled_length" if metric == "length" else metric]
        panel.set_ylabel(label)
        _ideal(panel, ideal)
    panels[0, 2].set_yscale("log")
    return _told(made, panels[0, 0])


def pinball_by_gamma(results: Results) -> Any:
    """The pinball loss of the rows judged by γ, beside the printed curves.

    Printed curves are drawn where their γ lies in the unit of ours: θ is in standard deviations of
    the first 8,000 labels there. Beside a stand-in there is none.
    """
    made, panels = figure(1, max(1, len(results.datasets)), width=10.0, height=2.4)
    for panel, dataset in zip(panels[0], results.datasets, strict=False):
        for method in ("none", "error", "error_coded"):
            rows = [
                row
                for row in results.rows
                if (row.dataset, row.method, row.risk) == (dataset, method, "coverage")
            ]
            gammas = sorted({row.gamma for row in rows})
            means = [fmean(row.pinball for row in rows if row.gamma == each) for each in gammas]
            panel.plot(
                gammas, means, color=_TONES[method], marker="o", markersize=2.5, linewidth=1.2,
                label=NAMES[method],
            )  # fmt: skip
        factor = results.gamma_factor(dataset)
        for method, known in CURVES.get(dataset, {}).items():
            if isnan(factor):
                continue
            panel.plot(
                [factor * gamma for gamma in known], list(known.values()), color=_TONES[method],
                linestyle=":", linewidth=1.2, label=f"{NAMES[method]}, printed",
            )  # fmt: skip
        panel.set_xscale("log")
        panel.set_xticks([0.03, 0.1, 0.3], ["0.03", "0.1", "0.3"])
        panel.minorticks_off()
        panel.set_title(results.called(dataset, unit=True))
        panel.set_xlabel("γ")
    panels[0, 0].set_ylabel("pinball loss")
    return _told(made, panels[0, 0])


def _boxes(
    panels: Sequence[Any],
    results: Results,
    methods: Sequence[str],
    metrics: Sequence[str],
    risk: str = "coverage",
    by: str = "tuned",
) -> None:
    """One panel a metric, one box a method and data set over the seeds."""
    for panel, metric in zip(panels, metrics, strict=False):
        label, factor, ideal = _METRICS[metric]
        for place, method in enumerate(methods):
            groups, floors = [], []
            for dataset in results.datasets:
                found = results.values(dataset, method, metric, risk, by)
                groups.append([factor * value for value in found])
                floors.append(factor * results.median(dataset, method, "floor", risk, by))
            width = 0.8 / len(methods)
            at = [i - 0.4 + width * (place + 0.5) for i in range(len(groups))]
            _box(panel, groups, at, 0.85 * width, _TONES[method], NAMES[method])
            if metric == "delta" and place == 0:
                for i, floor in enumerate(floors):
                    panel.hlines(
                        floor, i - 0.45, i + 0.45, color=COLOURS["black"], linewidth=0.8,
                        linestyle="--", label="noise floor" if i == 0 else None,
                    )  # fmt: skip
        names = [results.called(dataset).replace(" ", "\n") for dataset in results.datasets]
        panel.set_xticks(range(len(names)), names)
        panel.set_ylabel(label)
        _ideal(panel, ideal)
        if metric == "coverage" and risk == "mc":
            panel.axhline(
                800.0 / 9.0, color=COLOURS["black"], linewidth=0.8, linestyle=":", zorder=1,
                label="8/9 = 88.9 %, least under MC control",
            )  # fmt: skip


def _ideal(panel: Any, level: float | None) -> None:
    """The ideal level, with an entry for the legend."""
    mark(panel, level=level)
    if level is not None:
        panel.plot([], [], color=COLOURS["black"], linewidth=0.8, label="ideal level")


def _box(
    panel: Any,
    groups: Sequence[Sequence[float]],
    at: Sequence[float],
    width: float,
    colour: str,
    label: str | None = None,
) -> None:
    kept = [[value for value in group if not isnan(value)] for group in groups]
    panel.boxplot(
        kept, positions=list(at), widths=width, patch_artist=True, manage_ticks=False,
        boxprops={"facecolor": colour, "edgecolor": colour, "alpha": 0.4},
        medianprops={"color": colour, "linewidth": 2.0},
        whiskerprops={"color": colour}, capprops={"color": colour},
        flierprops={"marker": ".", "markersize": 3, "markeredgecolor": colour},
    )  # fmt: skip
    if label is not None:
        panel.plot([], [], color=colour, linewidth=6, alpha=0.7, label=label)


def _told(made: Any, panel: Any, spare: Any = None) -> Any:
    """A legend below the panels, or in the panel that is left over."""
    handles, labels = panel.get_legend_handles_labels()
    for other in made.axes:
        for handle, label in zip(*other.get_legend_handles_labels(), strict=True):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    if spare is None:
        made.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    else:
        spare.axis("off")
        spare.legend(handles, labels, loc="center", frameon=False)
    return made
