"""The numbers of the tabular experiments beside others: the printed ones, and our own default.

Each step of the printed protocol is switched alone, to see how far it moves the numbers.
"""

from collections import Counter
from collections.abc import Sequence
from math import isnan, nan
from statistics import fmean

from setpoint_paper.pages import Interval, fixed, interval, number, percent, table, wrapped
from setpoint_paper.tabular.measures import WINDOW, Row
from setpoint_paper.tabular.methods import NAMES, OURS
from setpoint_paper.tabular.printed import COLUMNS, COVERAGE, CURVES, PRINTED, printed
from setpoint_paper.tabular.results import Results
from setpoint_paper.tabular.verdicts import settings

__all__ = ["adjusting", "beside", "losses_beside", "switches"]

_BESIDE = (
    ("pinball", "coverage", "Pinball loss, control of coverage, means over seeds"),
    ("msl", "coverage", "MSL, control of coverage, medians over seeds (ideal 1.111)"),
    ("mc", "coverage", "MC, control of coverage, medians over seeds (ideal 0.111)"),
    ("scaled_length", "coverage", "Scaled length, control of coverage, medians over seeds"),
    ("coverage", "coverage", "Coverage in %, control of coverage, medians over seeds"),
    ("coverage", "mc", "Coverage in %, control of MC, medians over seeds (at least 88.89)"),
)


def beside(results: Results) -> str:
    """Ours, ours with γ chosen as behind the printed figures, their code, and what they printed."""
    told = (
        "The printed numbers are of the authors' code: 20 seeds, batch 256, x and y scaled by "
        "8,000 rows, raw zeros before the first row, calibration from row 8,001 (that with cal "
        "from 5,001), γ by test."
    )
    if any(map(results.stands_in, results.datasets)):
        told += " Those beside a stand-in are of other data: of another zone, in another size."
    blocks = [
        f"## Beside the printed numbers\n\n{wrapped(told)}",
        _ratios(results),
        *(_table(results, *each) for each in _BESIDE),
        _gammas(results),
        _curves(results),
    ]
    return "\n\n".join(blocks)


def losses_beside(results: Results) -> str:
    """The pinball losses alone."""
    return _table(results, *_BESIDE[0])


def _table(results: Results, metric: str, risk: str, title: str) -> str:
    lines = []
    for dataset in results.datasets:
        called = results.called(dataset, unit=metric == "pinball")
        for setting in settings(results):
            methods = [setting.method(each) for each in COLUMNS]
            cells = [_cell(results, dataset, each, metric, risk, setting.by) for each in methods]
            if set(cells) == {"–"}:
                continue
            lines.append([called, setting.short, *cells])
        cells = [_printed_cell(dataset, each, metric, risk) for each in COLUMNS]
        lines.append([called, _printed_as(results, dataset), *cells])
    return f"{title}\n\n{table(['data set', '', *(NAMES[each] for each in COLUMNS)], lines)}"


def _ratios(results: Results) -> str:
    """How far the pinball losses of their code, run here, are from those printed."""
    lines = []
    for dataset in results.datasets:
        if results.stands_in(dataset):
            continue
        for setting in (each for each in settings(results) if each.coded and each.by != "tuned"):
            cells = []
            for method in COLUMNS:
                known = printed(dataset, method).pinball
                found = results.values(dataset, setting.method(method), "pinball", by=setting.by)
                cells.append(
                    _signed(interval([100.0 * (value / known - 1.0) for value in found]))
                    if found and not isnan(known)
                    else "–"
                )
            lines.append([results.called(dataset), setting.short, *cells])
    if not lines:
        return ""
    told = wrapped(
        "Their code, run here: pinball loss over that printed, less 1, in %; the mean over seeds "
        "and its 95 % interval."
    )
    return f"{told}\n\n{table(['data set', '', *(NAMES[each] for each in COLUMNS)], lines)}"


def _signed(found: Interval) -> str:
    """A change with its interval: one decimal, or two digits that count where that would be 0."""
    mean = f"{found.mean:+.1f}"
    if float(mean) == 0.0 and found.mean:
        mean = f"{found.mean:+.2g}"
    half = "" if isnan(found.low) else f" ± {_small(found.high - found.mean)}"
    return f"{mean}{half}".replace("-", "−")


def _small(value: float) -> str:
    return f"{value:.1f}" if value >= 0.05 or not value else f"{value:.2g}"


_USUAL = ("none", "error")
_STEPS = {
    "batch 512 instead of 256": ("{}_coded; printed, batch 512", "test", _USUAL),
    "x, y and θ scaled by 5,000 rows instead of 8,000": (
        "{}_coded; printed, scaled by 5,000 rows",
        "test",
        _USUAL,
    ),
    "rows of means before the first row instead of raw zeros": (
        "{}_coded; printed, padded by means",
        "test",
        _USUAL,
    ),
    "calibration from row 5,001 instead of 8,001": ("{}_early", "test", _USUAL),
    "crossed ends as empty sets": ("{}_empty", "test", _USUAL),
    "the text's formulas, β and start instead of theirs": ("{}", "test", ("error", "cal")),
    "γ tuned on rows 5,001 to 8,000 instead of by test": ("{}_coded", "tuned", _USUAL),
}
"""Each step by what it is: the form of a method's name, the selection of γ, and the methods."""


def switches(results: Results) -> str:
    """How far each step of the printed protocol, switched alone, moves the pinball loss."""
    if not results.as_printed:
        return ""
    lines = []
    for step, (form, by, methods) in _STEPS.items():
        for method in methods:
            cells = []
            for dataset in results.datasets:
                both = results.changes(
                    dataset, f"{method}_coded", form.format(method), by=("test", by)
                )
                cells.append(f"{_signed(interval(both))} ({len(both)})" if both else "–")
            lines.append([step, NAMES[method], *cells])
    if all(cell == "–" for line in lines for cell in line[2:]) or not results.random:
        return ""
    names = [results.called(dataset) for dataset in results.datasets]
    told = wrapped(
        "Each step of the printed protocol switched alone, to what the text says or, of scaling, "
        "padding and crossed ends, to what is sound: the change of the pinball loss in %, a "
        "positive one where the printed protocol has the lower loss; the mean over seeds, its 95 % "
        "interval, and in brackets the number of seeds, paired. γ by test is chosen anew after "
        "each switch; the line of the text's formulas switches all that its name says at once."
    )
    return (
        f"## What each step of the protocol changes\n\n{told}\n\n"
        f"{table(['step', 'method', *names], lines)}"
    )


def adjusting(results: Results) -> str:
    """The self-adjusting default beside error adaptive, with γ tuned and by test."""
    rivals = (
        ("error", "tuned", "error adaptive, γ tuned"),
        ("error", "test", "error adaptive, γ by test"),
        ("error_coded", "test", "error adaptive, their code, γ by test"),
        (OURS, "tuned", NAMES[OURS]),
    )
    lines = []
    for dataset in results.datasets:
        for method, by, told in rivals:
            if not results.chosen(dataset, method, "coverage", by):
                continue
            change = interval(results.changes(dataset, "error", method, by=("tuned", by)))

            def at(
                metric: str, dataset: str = dataset, method: str = method, by: str = by
            ) -> float:
                return results.median(dataset, method, metric, "coverage", by)

            lines.append(
                [
                    results.called(dataset, unit=True), told, number(at("pinball")),
                    "–" if (method, by) == ("error", "tuned") else _signed(change),
                    number(at("length")), fixed(at("msl"), 3),
                    percent(at("worst")), percent(at("coverage")),
                ]
            )  # fmt: skip
    if not any(line[1] == NAMES[OURS] for line in lines):
        return ""
    head = [
        "data set", "method", "pinball", "change %", "length", "MSL", "worst window, points",
        "coverage %",
    ]  # fmt: skip
    told = wrapped(
        f"Medians over seeds. The change is that of the pinball loss beside error adaptive with γ "
        f"tuned, paired by seed, with its 95 % interval. The worst window is the largest distance "
        f"of the coverage of {WINDOW} rows in a row from 90 %."
    )
    return f"## Beside the self-adjusting default, which is ours\n\n{told}\n\n{table(head, lines)}"


def _printed_as(results: Results, dataset: str) -> str:
    return "printed, other data" if results.stands_in(dataset) else "printed"


def _cell(results: Results, dataset: str, method: str, metric: str, risk: str, by: str) -> str:
    if not results.chosen(dataset, method, risk, by):
        return "–"
    average = results.mean if metric == "pinball" else results.median
    return _shown(average(dataset, method, metric, risk, by), metric)


def _shown(value: float, metric: str) -> str:
    if metric == "coverage":
        return percent(value)
    if metric == "pinball":
        return number(value)
    return fixed(value, 4 if metric == "mc" else 3)


def _printed_cell(dataset: str, method: str, metric: str, risk: str) -> str:
    found = printed(dataset, method)
    if metric != "coverage":
        return _shown(float(getattr(found, metric)), metric)
    if risk == "coverage":
        return COVERAGE if dataset in PRINTED else "–"
    return percent(found.coverage_under_mc)


def _gammas(results: Results) -> str:
    lines = []
    for dataset in results.datasets:
        called, factor = results.called(dataset), results.gamma_factor(dataset)
        for setting in settings(results):
            taken = (
                results.values(dataset, setting.method(each), "gamma", "coverage", setting.by)
                for each in COLUMNS
            )
            lines.append([called, setting.short, *map(_listed, taken)])
        known = {each: printed(dataset, each).gamma for each in COLUMNS}
        cells = [number(gamma, 2) for gamma in known.values()]
        lines.append([called, _printed_as(results, dataset), *cells])
        if not isnan(factor):
            cells = [
                number(gamma * (1.0 if each == "cal" else factor), 2)
                for each, gamma in known.items()
            ]
            lines.append([called, f"printed, × {factor:.3f}", *cells])
    told = wrapped(
        "γ, control of coverage, with the number of seeds that took it where they differ. Behind "
        "the printed numbers θ of Rolling RC is in standard deviations of the first 8,000 labels: "
        "the last line of a data set has the printed γ in the unit of ours, times the ratio of the "
        "two (for exponential that is so near 0 only). Of calibration with cal it is a share of "
        "scores in both."
    )
    return f"{told}\n\n{table(['data set', '', *(NAMES[each] for each in COLUMNS)], lines)}"


def _listed(gammas: Sequence[float]) -> str:
    """Each γ that was taken, the most frequent first, with how often if there are several."""
    counts = Counter(gammas).most_common()
    if not counts:
        return "–"
    if len(counts) == 1:
        return f"{counts[0][0]:g}"
    return ", ".join(f"{gamma:g} ×{count}" for gamma, count in counts)


def _curves(results: Results) -> str:
    """The pinball loss by γ, beside the printed curves."""
    gammas = sorted({row.gamma for row in results.rows if row.gamma > 0.0})
    lines = []
    for dataset in results.datasets:
        called, factor = results.called(dataset, unit=True), results.gamma_factor(dataset)
        for method in ("none", "error", "error_coded"):
            found = [
                row
                for row in results.rows
                if (row.dataset, row.method, row.risk) == (dataset, method, "coverage")
            ]
            lines.append([called, NAMES[method], *(_curve(found, gamma) for gamma in gammas)])
        if isnan(factor):
            continue
        for method, known in CURVES.get(dataset, {}).items():
            cells = [number(known.get(gamma, nan)) for gamma in gammas]
            lines.append([called, f"{NAMES[method]}, printed (γ × {factor:.3f})", *cells])
    head = ["data set", "method", *(f"γ = {gamma:g}" for gamma in gammas)]
    told = wrapped(
        "Pinball loss of the rows judged by γ, control of coverage, means over seeds. A printed "
        "loss stands under the γ it was printed with, which in the unit of ours is the factor in "
        "brackets times as large; beside a stand-in there is none."
    )
    return f"{told}\n\n{table(head, lines)}"


def _curve(rows: Sequence[Row], gamma: float) -> str:
    found = [row.pinball for row in rows if row.gamma == gamma]
    return number(fmean(found) if found else nan)
