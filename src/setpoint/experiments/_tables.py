"""The report of the tabular experiments: tables in plain text that is Markdown too."""

from collections.abc import Iterable, Sequence
from math import isnan, nan
from statistics import median

from setpoint.experiments._claims import SETTINGS, decide, study_verdicts
from setpoint.experiments._protocol import LEVELS, METHODS, Protocol, Row
from setpoint.experiments._reference import COLUMNS, CURVES, printed
from setpoint.experiments._results import Results

__all__ = ["NAMES", "report", "table"]

NAMES = {
    "uncalibrated": "uncalibrated",
    "none": "none",
    "exponential": "exponential",
    "score": "score adaptive",
    "error": "error adaptive",
    "score_coded": "score adaptive, authors' code",
    "error_coded": "error adaptive, authors' code",
    "cal": "calibration with cal",
}
"""What the methods are called in tables and figures."""

_EXACT = 1e-9
"""Rounding that an identity may show over 15,000 steps."""


def report(results: Results) -> str:
    """Everything: what is guaranteed, the claims, ours beside the printed numbers, ours in full."""
    parts = [
        _head(results),
        _guarantees(results),
        _claims(results),
        _beside(results),
        "## Control of coverage at 90 %\n\nMedians over seeds.\n\n" + _ours(results, "coverage"),
        "## Control of the miscoverage counter at 1/9\n\nMedians over seeds.\n\n"
        + _ours(results, "mc"),
        _study(results),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table with columns of equal width, words to the left and numbers to the right.

    >>> print(table(["a", "b"], [["one", "1.0"]]))
    | a   |   b |
    |-----|----:|
    | one | 1.0 |
    """
    rows = [list(head), *map(list, lines)]
    numeric = [
        all(not row[place] or row[place][0] in "0123456789−-–" for row in rows[1:])
        for place in range(len(head))
    ]
    widths = [max(3, *(len(row[place]) for row in rows)) for place in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    rule = "|".join(
        "-" * (width + 1) + (":" if right else "-")
        for width, right in zip(widths, numeric, strict=True)
    )
    return "\n".join([line(rows[0]), f"|{rule}|", *map(line, rows[1:])])


def _number(value: float, digits: int = 4) -> str:
    """A number with so many digits that count, or a dash."""
    return "–" if isnan(value) else f"{value:#.{digits}g}".rstrip(".")


def _fixed(value: float, places: int) -> str:
    return "–" if isnan(value) else f"{value:.{places}f}"


def _percent(share: float, places: int = 2) -> str:
    return _fixed(100.0 * share, places)


def _head(results: Results) -> str:
    about = results.about
    seeds = {dataset: results.seeds(dataset) for dataset in results.datasets}
    even = len(set(seeds.values())) == 1
    told = (
        f"{next(iter(seeds.values()))} on each data set"
        if even and seeds
        else ", ".join(f"{dataset} {count}" for dataset, count in seeds.items())
    )
    model = about.get("model", "")
    lines = [
        "# The paper's tabular experiments",
        "",
        f"    {about.get('command', '')}",
        "",
        f"Model: {model}. Seeds: {told}.",
    ]
    notes = [f"{name}: {note}" for name, note in about.get("notes", {}).items() if note]
    lines += ["", *(f"Note on {note}." for note in notes)] if notes else []
    told_by = Protocol()
    lines += [
        "",
        f"Calibration begins at row {told_by.begin + 1:,}; rows {told_by.begin + 1:,} to "
        f"{told_by.tuned:,} choose γ and β by their pinball loss, for each seed; rows from "
        f"{told_by.tuned + 1:,} on are judged. θ is in standard deviations of the first "
        f"{told_by.begin:,} labels, its bounds are where λ is ±{told_by.reach:g} of them. "
        "\"γ by test\" is the selection behind the printed figures: the γ with the least pinball "
        "loss on the rows that are judged, over all seeds. A full set counts as long as the range "
        "of all labels seen until then, an empty one as 0. Score and error adaptive follow the "
        "paper's text with the sign put right; \"authors' code\" is the form behind the printed "
        "numbers.",
    ]  # fmt: skip
    return "\n".join(lines)


def _guarantees(results: Results) -> str:
    tuned = [row for row in results.rows if row.method != "uncalibrated"]
    ran = [*tuned, *results.study]
    if not tuned:
        return ""
    exact = sum(row.gap <= _EXACT for row in ran)
    within = sum(row.within for row in ran)
    widest = max(tuned, key=lambda row: max(-row.low, row.high))
    bound = max(-widest.low, widest.high)
    held = [
        row
        for dataset in results.datasets
        for method in METHODS
        for row in results.chosen(dataset, method, "mc")
    ]
    enough = sum(row.coverage >= 8.0 / 9.0 for row in held)
    guarded = {
        name: sum(row.guarded for row in tuned if (row.method == "cal") is (name == "cal"))
        for name in ("rolling", "cal")
    }
    lines = [
        "## What is guaranteed, on every run",
        "",
        f"- Runs: {len(ran):,}, every method with every step size on every tape"
        + (f", {len(results.study):,} of them in the study of γ." if results.study else "."),
        f"- The identity mean loss − level = (θ at the end − θ at the beginning)/(γT): exact on "
        f"{exact:,}, largest gap {max(row.gap for row in ran):.1g}. "
        f"{'HOLDS' if exact == len(ran) else 'BROKEN'}.",
        f"- The risk within the certificate's two bounds: on {within:,}. "
        f"{'HOLDS' if within == len(ran) else 'BROKEN'}. The widest bound is ±{bound:.4f} "
        f"(γ = {widest.gamma:g}, T = {widest.steps:,}; the study of γ apart).",
        f"- The safeguard acted {guarded['rolling']:,} times in the runs of Rolling RC and "
        f"{guarded['cal']:,} times in those of calibration with cal.",
    ]
    if held:
        lines.append(
            f"- MC under control, γ tuned: {min(row.mc for row in held):.4f} to "
            f"{max(row.mc for row in held):.4f} on the rows judged (1/9 = {1 / 9:.4f}); coverage "
            f"at least 8/9 on {enough:,} of {len(held):,} runs, least "
            f"{100.0 * min(row.coverage for row in held):.2f} %."
        )
    seconds = results.about.get("seconds", [])
    if seconds:
        worked, took = (sorted(column) for column in zip(*seconds, strict=True))
        lines.append(
            "- A tape calibrated with all methods and both risks, tuning included, loops compiled: "
            f"{median(worked):.1f} s of one processor ({worked[0]:.1f} to {worked[-1]:.1f} s over "
            f"{len(seconds)} tapes), {median(took):.1f} s by the clock ({took[0]:.1f} to "
            f"{took[-1]:.1f} s)."
        )
    return "\n".join(lines)


def _ours(results: Results, risk: str) -> str:
    head = [
        "data set", "method", "γ", "coverage %", "MC", "MSL", "length", "without full sets",
        "scaled length", "ΔCoverage %", "its noise floor", "pinball", "full sets %",
    ]  # fmt: skip
    lines = []
    for dataset in results.datasets:
        for method in ("uncalibrated", *METHODS):

            def at(metric: str, dataset: str = dataset, method: str = method) -> float:
                return results.median(dataset, method, metric, risk)

            lines.append(
                [
                    dataset, NAMES[method], _number(at("gamma"), 3), _percent(at("coverage")),
                    _fixed(at("mc"), 4), _fixed(at("msl"), 3), _number(at("length")),
                    _number(at("finite_length")), _fixed(at("scaled_length"), 3),
                    _percent(at("delta")), _percent(at("floor")), _number(at("pinball")),
                    _percent(at("full")),
                ]
            )  # fmt: skip
    return table(head, lines)


def _beside(results: Results) -> str:
    """Ours, ours with γ chosen as behind the printed figures, and the printed ones."""
    blocks = [
        "## Beside the printed numbers\n\nThe printed numbers are of the authors' code: 20 seeds, "
        "batch 256, x and y scaled by 8,000 rows, calibration from row 8,001, γ by test. Those of "
        "wind are of another zone than the stand-in's."
    ]
    columns = (*COLUMNS, "score_coded", "error_coded")
    told = (
        ("pinball", "coverage", "Pinball loss, control of coverage, means over seeds"),
        ("msl", "coverage", "MSL, control of coverage, medians over seeds (ideal 1.111)"),
        ("mc", "coverage", "MC, control of coverage, medians over seeds (ideal 0.111)"),
        (
            "scaled_length",
            "coverage",
            "Scaled length, control of coverage, medians over seeds; the four stretchings over "
            "their mean, calibration with cal over the mean of itself, none and error adaptive",
        ),
        (
            "coverage",
            "coverage",
            "Coverage in %, control of coverage, medians over seeds (printed: 89.90 to 90.01)",
        ),
        ("coverage", "mc", "Coverage in %, control of MC, medians over seeds"),
    )
    for metric, risk, title in told:
        lines = []
        for dataset in results.datasets:
            for who, by in (("ours", "tuned"), ("ours, γ by test", "test"), ("printed", "")):
                cells = [_cell(results, dataset, each, metric, risk, by) for each in columns]
                lines.append([dataset, who, *cells])
        blocks.append(f"{title}\n\n{table(['data set', '', *map(NAMES.get, columns)], lines)}")  # type: ignore[list-item]
    blocks.append(_gammas(results, columns))
    curves = _curves(results)
    return "\n\n".join([*blocks, curves])


def _cell(results: Results, dataset: str, method: str, metric: str, risk: str, by: str) -> str:
    if by:
        average = results.mean if metric == "pinball" else results.median
        value = average(dataset, method, metric, risk, by)
    else:
        value = _printed_value(dataset, method, metric, risk)
    if metric == "coverage":
        return (
            "89.9–90.0" if not by and risk == "coverage" and not isnan(value) else _percent(value)
        )
    if metric == "pinball":
        return _number(value)
    return _fixed(value, 4 if metric == "mc" else 3)


def _printed_value(dataset: str, method: str, metric: str, risk: str) -> float:
    """The printed numbers are of the authors' code: they stand in its columns too."""
    found = printed(dataset, method)
    if metric != "coverage":
        return float(getattr(found, metric))
    return found.coverage_under_mc if risk == "mc" else nan


def _gammas(results: Results, columns: Sequence[str]) -> str:
    lines = []
    for dataset in results.datasets:
        for who, by in (("ours", "tuned"), ("ours, γ by test", "test"), ("printed", "")):
            cells = []
            for method in columns:
                if by:
                    taken = sorted(results.values(dataset, method, "gamma", "coverage", by))
                    ends = dict.fromkeys(f"{gamma:g}" for gamma in (taken[0], taken[-1]))
                    cells.append("–".join(ends))
                else:
                    cells.append(_number(printed(dataset, method).gamma, 2))
            lines.append([dataset, who, *cells])
    head = ["data set", "", *(NAMES[each] for each in columns)]
    return f"γ, control of coverage (least and greatest over seeds)\n\n{table(head, lines)}"


def _curves(results: Results) -> str:
    """The pinball loss by γ, beside the printed curves."""
    gammas = sorted({row.gamma for row in results.rows if not isnan(row.gamma)})
    lines = []
    for dataset in results.datasets:
        for method in ("none", "error", "error_coded"):
            found = [
                row
                for row in results.rows
                if (row.dataset, row.method, row.risk) == (dataset, method, "coverage")
            ]
            lines.append([dataset, NAMES[method], *(_curve(found, gamma) for gamma in gammas)])
        for method in ("none", "error"):
            known = CURVES.get(dataset, {}).get(method, {})
            cells = [_number(known.get(gamma, nan)) for gamma in gammas]
            lines.append([dataset, f"{NAMES[method]}, printed", *cells])
    head = ["data set", "method", *(f"γ = {gamma:g}" for gamma in gammas)]
    return (
        "Pinball loss of the rows judged by γ, control of coverage, means over seeds\n\n"
        f"{table(head, lines)}"
    )


def _curve(rows: Sequence[Row], gamma: float) -> str:
    found = [row.pinball for row in rows if row.gamma == gamma]
    return _number(sum(found) / len(found) if found else nan)


def _claims(results: Results) -> str:
    settled = zip(*(decide(results, setting) for setting in SETTINGS), strict=True)
    sentences = [
        f"- **{ours.where}** {ours.claim}: **{ours}**. "
        + " ".join(f"{other.setting}: {other}." for other in others)
        + f" *Rule: {ours.rule}.*"
        for ours, *others in settled
    ]
    sentences += [
        f"- **{each.where}** {each.claim}: **{each.word}**. *Rule: {each.rule}.*"
        for each in study_verdicts(results.study)
    ]
    return (
        "## The paper's claims\n\nA rule speaks of one data set, by medians over seeds. A claim "
        "holds if its rule does on every data set, holds partly if on some, and else does not "
        "hold here. The first verdict is with γ tuned on rows apart from those judged.\n\n"
    ) + "\n".join(sentences)


def _study(results: Results) -> str:
    gammas = sorted({row.gamma for row in results.study})
    lines = []
    for gamma in gammas:
        rows = [row for row in results.study if row.gamma == gamma]

        def at(metric: str, rows: list[Row] = rows) -> float:
            return median(float(getattr(row, metric)) for row in rows)

        lines.append(
            [
                f"{gamma:g}", _percent(at("coverage")), _fixed(at("mc"), 4), _fixed(at("msl"), 3),
                _number(at("length")), _number(at("pinball")),
                _fixed(max(at("high"), -at("low")), 4),
            ]
        )  # fmt: skip
    if not lines:
        return ""
    head = ["γ", "coverage %", "MC", "MSL", "length", "pinball", "the certificate's bound"]
    seeds = len({row.seed for row in results.study})
    return (
        f"## The step size, on the synthetic stream\n\nRolling RC without stretching, groups of "
        f"500 steps, coverage at {100 - 100 * LEVELS['coverage']:g} %; medians over {seeds} "
        f"stream{'' if seeds == 1 else 's'}.\n\n{table(head, lines)}"
    )
