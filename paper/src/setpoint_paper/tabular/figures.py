"""The paper's figures of its tabular experiments, drawn from stored results.

On the page of the printed protocol they show the authors' code, as the paper's own do, beside what
was printed; on the others the methods of the text.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import isnan, log10, nan
from pathlib import Path
from statistics import fmean
from typing import Any

from setpoint_paper.plotting import COLOURS, figure, legend, mark, plain_ticks, save, spread, trim
from setpoint_paper.tabular.methods import NAMES, STRETCHES
from setpoint_paper.tabular.printed import CURVES, printed_metric
from setpoint_paper.tabular.results import COLUMNS, Column, Results

_TONES = {
    "none": COLOURS["orange"],
    "error": COLOURS["green"],
    "exponential": COLOURS["pink"],
    "score": COLOURS["sky"],
}
_TONES |= {f"{name}_coded": colour for name, colour in _TONES.items()}
_TONES |= {"cal": COLOURS["grey"], "cal_coded": COLOURS["blue"]}

_METRICS: dict[str, tuple[str, float, float | None]] = {
    "coverage": ("coverage, %", 100.0, 90.0),
    "mc": ("MC", 1.0, 1.0 / 9.0),
    "msl": ("MSL", 1.0, 10.0 / 9.0),
    "length": ("length", 1.0, None),
    "scaled_length": ("length / mean length", 1.0, None),
    "shared_length": ("length / mean length", 1.0, None),
    "delta": ("ΔCoverage by weekday, %", 100.0, None),
    "delta_modulo": ("ΔCoverage by index mod 7, %", 100.0, None),
}
"""What a panel shows: its label, a factor, and the ideal level."""

_LINES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("", {"linestyle": "-", "marker": "o", "markersize": 3.0}),
    ("_coded", {"linestyle": "--", "marker": "s", "markersize": 4.5, "markerfacecolor": "none"}),
)
"""The methods of the text and those of the authors' code, by what ends their names."""


def draw(results: Results, out: Path, stem: str = "tabular") -> list[Path]:
    """Every figure as a PNG file in a folder, and beside it as SVG."""
    setting = _setting(results)
    beside: dict[str, Any] = {"methods": ("cal", "none", "error")}
    if not setting.coded:
        beside = {"methods": ("cal", "cal_coded", "none", "error"), "length": "shared_length"}
    drawn: dict[str, Callable[[Results], Any]] = {
        "real-data": real_data,
        "cal": partial(every_metric, **beside),
        "mc": mc_control,
        "stretchings-coverage": partial(every_metric, methods=STRETCHES),
        "stretchings-mc": partial(every_metric, methods=STRETCHES, risk="mc"),
        "pinball-by-gamma": pinball_by_gamma,
    }
    if results.study:
        drawn["gamma"] = step_sizes
    paths = []
    for name, make in drawn.items():
        made = make(results)
        streams = len({row.seed for row in results.study})
        count = f"seeds: {streams}" if make is step_sizes else _seeds(results)
        made.suptitle(f"{results.about.get('model', '')}; {count}", fontsize=8.0)
        paths.append(save(made, out / f"{stem}-{name}.png"))
    return paths


def _seeds(results: Results) -> str:
    counts = sorted({results.seeds(dataset) for dataset in results.datasets})
    return f"seeds: {' to '.join(map(str, counts))}"


def _setting(results: Results) -> Column:
    """The authors' code on the page that follows their protocol, else the text."""
    return COLUMNS[2] if results.as_printed else COLUMNS[0]


def real_data(results: Results) -> Any:
    """Rolling RC on real data, coverage at 90 %: none and error adaptive (figure 3).

    Lengths are over one mean for each data set.
    """
    made, panels = figure(1, 3, width=9.5, height=2.8)
    _boxes(panels[0], results, ("none", "error"), ("coverage", "msl", "scaled_length"))
    return legend(made)


def mc_control(results: Results) -> Any:
    """MC and coverage under control of MC, MC under control of coverage (figure 5).

    An MC of 1/9 leaves a coverage of at least 8/9, which is drawn beside 90 %.
    """
    made, panels = figure(1, 3, width=9.5, height=2.8)
    methods = ("none", "error")
    _boxes(panels[0][:2], results, methods, ("mc", "coverage"), "mc")
    _boxes(panels[0][2:], results, methods, ("mc",), "coverage")
    for panel, title in zip(
        panels[0], ("MC control", "MC control", "coverage control"), strict=True
    ):
        panel.set_title(title)
    return legend(made)


def step_sizes(results: Results) -> Any:
    """Coverage, MSL and length by γ on the synthetic stream, without stretching (figure 7)."""
    made, panels = figure(1, 3, width=9.5, height=2.6)
    gammas = sorted({row.gamma for row in results.study})
    decades = range(round(log10(gammas[0])), round(log10(gammas[-1])) + 1)
    for panel, metric in zip(panels[0], ("coverage", "msl", "length"), strict=True):
        label, factor, ideal = _METRICS[metric]
        groups = [
            [factor * float(getattr(row, metric)) for row in results.study if row.gamma == gamma]
            for gamma in gammas
        ]
        spread(panel, groups, [log10(gamma) for gamma in gammas], 0.16, _TONES["none"])
        panel.set_xticks(decades, [f"{10.0**decade:g}" for decade in decades])
        panel.set_ylabel(label)
        _ideal(panel, ideal)
    panels[0, 2].set_yscale("log")
    plain_ticks(panels[0, 2].yaxis)
    panels[0, 1].set_xlabel(_GAMMA)
    return legend(made)


_GAMMA = "γ, in standard deviations of y"


def pinball_by_gamma(results: Results) -> Any:
    """The pinball loss of the rows judged by γ, means over seeds, beside the printed curves.

    Solid with dots: the methods of the text. Dashed with squares, where it ran: the authors' code.
    Dotted: what they printed, where their γ lies in the unit of ours; none beside a stand-in.
    """
    made, panels = figure(1, max(1, len(results.datasets)), width=10.0, height=2.4)
    for panel, dataset in zip(panels[0], results.datasets, strict=False):
        for suffix, look in _LINES:
            for name in ("none", "error"):
                method = name + suffix
                rows = [
                    row
                    for row in results.rows
                    if (row.dataset, row.method, row.risk) == (dataset, method, "coverage")
                ]
                gammas = sorted({row.gamma for row in rows})
                means = [fmean(row.pinball for row in rows if row.gamma == each) for each in gammas]
                if rows:
                    panel.plot(
                        gammas, means, color=_TONES[name], linewidth=1.2, label=NAMES[method],
                        **look,
                    )  # fmt: skip
        factor = results.gamma_factor(dataset)
        for name, known in CURVES.get(dataset, {}).items():
            if not isnan(factor):
                panel.plot(
                    [factor * gamma for gamma in known], list(known.values()), color=_TONES[name],
                    linestyle=":", linewidth=1.6, label=f"{NAMES[name]}, printed",
                )  # fmt: skip
        panel.set_xscale("log")
        panel.set_xticks([0.03, 0.1, 0.3], ["0.03", "0.1", "0.3"])
        panel.minorticks_off()
        panel.set_title(results.called(dataset, unit=True))
    panels[0, 0].set_ylabel("pinball loss")
    panels[0, panels.size // 2].set_xlabel(_GAMMA)
    return legend(made)


def every_metric(
    results: Results, methods: Sequence[str], risk: str = "coverage", length: str = "scaled_length"
) -> Any:
    """Methods by every metric: with cal (figures 4 and 10), all stretchings (8 and 9).

    Lengths are over one mean for each data set. ΔCoverage can lie below its noise floor, that of
    independent misses: control makes misses anti-correlated. Under control of MC it is also that
    of a coverage that is higher on purpose.
    """
    made, panels = figure(2, 3, width=9.5, height=2.5)
    metrics = ("coverage", "mc", "msl", length, "delta")
    _boxes(panels.ravel(), results, methods, metrics, risk)
    return legend(made, spare=panels[1, 2])


def _boxes(
    panels: Sequence[Any],
    results: Results,
    methods: Sequence[str],
    metrics: Sequence[str],
    risk: str = "coverage",
) -> None:
    """One panel a metric, one group a method and data set over the seeds."""
    setting = _setting(results)
    width = 0.84 / len(methods)
    for panel, metric in zip(panels, map(setting.metric, metrics), strict=False):
        label, factor, ideal = _METRICS[metric]
        groups: list[list[float]] = []
        at: list[float] = []
        for place, method in enumerate(map(setting.method, methods)):
            here = [i - 0.42 + width * (place + 0.5) for i in range(len(results.datasets))]
            values = [
                [
                    factor * value
                    for value in results.values(dataset, method, metric, risk, setting.by)
                ]
                for dataset in results.datasets
            ]
            spread(panel, values, here, 0.8 * width, _TONES[method], label=NAMES[method])
            groups, at = groups + values, at + here
        if metric.endswith("length"):
            trim(panel, groups, at)
        if setting.coded:
            known = [
                nan if results.stands_in(dataset)
                else factor * printed_metric(dataset, method, metric, risk)
                for method in methods
                for dataset in results.datasets
            ]  # fmt: skip
            panel.plot(  # to the right of the seeds, for they must be seen where both agree
                [place + 0.25 / len(methods) for place in at], known, "D", color=COLOURS["black"],
                markersize=3.4, markeredgecolor="white", markeredgewidth=0.6, zorder=4,
                label=None if all(map(isnan, known)) else "printed",
            )  # fmt: skip
        _ideal(panel, ideal)
        for i, dataset in enumerate(results.datasets if metric.startswith("delta") else ()):
            of = (dataset, setting.method(methods[-1]), "floor", risk, setting.by)
            panel.hlines(
                100.0 * results.median(*of), i - 0.45, i + 0.45, color=COLOURS["black"],
                linewidth=0.8, linestyle="--", label="noise floor" if i == 0 else None,
            )  # fmt: skip
        names = [results.called(dataset).replace(" ", "\n") for dataset in results.datasets]
        panel.set_xticks(range(len(names)), names)
        panel.set_xticks([i + 0.5 for i in range(len(names) - 1)], minor=True)
        panel.tick_params(which="both", axis="x", length=0.0)
        panel.grid(visible=True, axis="x", which="minor", color="#dddddd", linewidth=0.6)
        panel.set_xlim(-0.5, len(names) - 0.5)
        panel.set_ylabel(label)
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
