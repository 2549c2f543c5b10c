"""The report of the tabular experiments: tables in plain text that is Markdown too."""

from collections import Counter
from collections.abc import Sequence
from math import isnan, nan
from statistics import fmean, median
from textwrap import fill

from setpoint_paper.pages import Verdict, table
from setpoint_paper.tabular.claims import SETTINGS, decide, so_far, study_verdicts
from setpoint_paper.tabular.measures import Row
from setpoint_paper.tabular.methods import CLIPPED, LEVELS, METHODS, Protocol
from setpoint_paper.tabular.printed import COLUMNS, CURVES, PRINTED, printed
from setpoint_paper.tabular.results import Results

__all__ = ["NAMES", "brief", "report", "seeds_of"]

NAMES = {
    "uncalibrated": "uncalibrated",
    "none": "none",
    "exponential": "exponential",
    "score": "score adaptive",
    "error": "error adaptive",
    "score_coded": "score adaptive, authors' code",
    "error_coded": "error adaptive, authors' code",
    "cal": "calibration with cal",
    "cal_coded": "calibration with cal, authors' code",
}
"""What the methods are called in tables and figures."""

_EXACT = 1e-9
"""Rounding that an identity may show over 15,000 steps."""

_WIDTH = 110


def report(results: Results) -> str:
    """Everything: what is guaranteed, the claims, ours beside the printed numbers, ours in full."""
    medians = (
        "Medians over seeds, and the γ that most of them took. Length and pinball loss are in the "
        "unit that follows the data set."
    )
    parts = [
        _head(results),
        _method(results),
        _guarantees(results),
        _claims(results),
        _beside(results),
        f"## Control of coverage at 90 %\n\n{_wrapped(medians)}\n\n{_ours(results, 'coverage')}",
        _NOISE,
        "## Control of the miscoverage counter at 1/9\n\n"
        f"{_wrapped(medians)}\n\n{_ours(results, 'mc')}",
        _study(results),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def brief(results: Results) -> str:
    """What fits on a screen: what ran, what is guaranteed, a line a claim, the pinball losses."""
    ours, standing = decide(results, SETTINGS[0]), so_far(results)
    every = [*ours, *study_verdicts(results.study)]
    lines = [f"{each.where:<9} {each.word:<19} {_count(each)}  {each.claim}" for each in every]
    return "\n\n".join(
        filter(
            None,
            [
                _head(results),
                _guarantees(results),
                f"## The paper's claims{f', {standing}' if standing else ''}\n\n"
                + "\n".join(lines),
                _table_beside(results, *_BESIDE[0]),
            ],
        )
    )


def _count(verdict: Verdict) -> str:
    return f"{len(verdict.held)} of {len(verdict.held) + len(verdict.failed)}"


def _number(value: float, digits: int = 4) -> str:
    """A number with so many digits that count, or a dash."""
    return "–" if isnan(value) else f"{value:#.{digits}g}".rstrip(".")


def _fixed(value: float, places: int) -> str:
    return "–" if isnan(value) else f"{value:.{places}f}"


def _percent(share: float, places: int = 2) -> str:
    return _fixed(100.0 * share, places)


def _wrapped(text: str, *, point: bool = False) -> str:
    """Prose in lines that a screen shows whole; a point of a list is indented."""
    return fill(
        text, _WIDTH, initial_indent="- " if point else "",
        subsequent_indent="  " if point else "", break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


# What ran


def seeds_of(results: Results) -> str:
    """How many seeds there are of each data set, and of how many."""
    if not results.random:
        return "one run a data set, for this model is not random"
    seeds = {results.called(dataset): results.seeds(dataset) for dataset in results.datasets}
    even = len(set(seeds.values())) == 1
    told = (
        f"{next(iter(seeds.values()))} on each data set"
        if even and seeds
        else ", ".join(f"{dataset} {count}" for dataset, count in seeds.items())
    )
    asked = results.about.get("asked")
    return f"seeds: {told}" + (
        f", of {asked} asked" if asked and any(count < asked for count in seeds.values()) else ""
    )


def _head(results: Results) -> str:
    about = results.about
    notes = [
        _wrapped(f"Note on {name}: {note}.")
        for name, note in about.get("notes", {}).items()
        if note
    ]
    lines = [
        "# The paper's tabular experiments",
        "",
        f"    {about.get('command', '')}",
        "",
        f"Model: {about.get('model', '')}; {seeds_of(results)}.",
        *(part for note in notes for part in ("", note)),
    ]
    return "\n".join(lines)


def _method(results: Results) -> str:
    told = Protocol(scale_rows=results.about.get("scale_rows"))
    return "\n\n".join(
        map(
            _wrapped,
            (
                f"Calibration begins at row {told.begin + 1:,}; rows {told.begin + 1:,} to "
                f"{told.tuned:,} choose γ and β by their pinball loss, for each seed; rows from "
                f"{told.tuned + 1:,} on are judged. θ is in standard deviations of the first "
                f"{told.scale_rows:,} labels, its bounds are where λ is ±{told.reach:g} of them. "
                "A full set counts as long as the range of all labels seen until then, an empty "
                "one as 0.",
                '"γ by test" is the selection behind the printed figures: the γ with the least '
                "pinball loss on the rows that are judged, over all seeds.",
                "Score and error adaptive follow the paper's text with the sign put right, and "
                'calibration with cal is unclipped, with full and empty sets. "Authors\' code" is '
                "the form behind the printed numbers: the score is the distance to the nearer end "
                "of the calibrated interval, β_loss is searched in [0.1, 2.0] instead of "
                "[0.1, 0.2], and calibration with cal clips its share of the scores to [0, 1] and "
                "interpolates, so that no set is full and no certificate holds. What still "
                "differs: their Rolling RC starts at row 8,001 with θ = 0, ours at 5,001.",
                "Scaled length is length over one mean for each data set, risk and selection of "
                "γ: that over seeds of none, exponential, score adaptive, error adaptive and, "
                "where coverage is controlled, calibration with cal. The authors' mean has two "
                "more variants in it, their adaptive stretchings over an exponential one.",
            ),
        )
    )


# What is guaranteed


def _guarantees(results: Results) -> str:
    tuned = [row for row in results.rows if row.method not in ("uncalibrated", CLIPPED)]
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
    points = [
        f"Runs: {len(ran):,}, every method with every step size on every tape"
        + (f", {len(results.study):,} of them in the study of γ" if results.study else "")
        + "; the authors' form of calibration with cal, which promises nothing, apart.",
        f"The identity mean loss − level = (θ at the end − θ at the beginning)/(γT): exact on "
        f"{exact:,}, largest gap {max(row.gap for row in ran):.1g}. "
        f"{'HOLDS' if exact == len(ran) else 'BROKEN'}.",
        f"The risk within the certificate's two bounds: on {within:,}. "
        f"{'HOLDS' if within == len(ran) else 'BROKEN'}. The widest bound is ±{bound:.4f} "
        f"(γ = {widest.gamma:g}, T = {widest.steps:,}; the study of γ apart).",
        f"The safeguard acted {guarded['rolling']:,} times in the runs of Rolling RC and "
        f"{guarded['cal']:,} times in those of calibration with cal.",
    ]
    if held:
        points.append(
            f"MC under control, γ tuned: {min(row.mc for row in held):.4f} to "
            f"{max(row.mc for row in held):.4f} on the rows judged (1/9 = {1 / 9:.4f}); coverage "
            f"at least 8/9 on {enough:,} of {len(held):,} runs, least "
            f"{100.0 * min(row.coverage for row in held):.2f} %."
        )
    seconds = results.about.get("seconds", [])
    if seconds:
        worked, took = (sorted(column) for column in zip(*seconds, strict=True))
        points.append(
            "A tape calibrated with all methods and both risks, tuning included, loops compiled: "
            f"{median(worked):.1f} s of one processor ({worked[0]:.1f} to {worked[-1]:.1f} s over "
            f"{len(seconds)} tapes), {median(took):.1f} s by the clock ({took[0]:.1f} to "
            f"{took[-1]:.1f} s)."
        )
    lines = "\n".join(_wrapped(point, point=True) for point in points)
    return f"## What is guaranteed, on every run\n\n{lines}"


# The claims


def _claims(results: Results) -> str:
    settled = zip(*(decide(results, setting) for setting in SETTINGS), strict=True)
    few = so_far(results)
    sentences = [
        f"**{ours.where}** {ours.claim}: **{f'{few}: ' if few else ''}{ours}**. "
        + " ".join(f"{other.setting}: {other}." for other in others)
        + f" *Rule: {ours.rule}.*"
        for ours, *others in settled
    ]
    few = so_far(results, results.study)
    sentences += [
        f"**{each.where}** {each.claim}: **{f'{few}: ' if few else ''}{each.word}**. "
        f"*Rule: {each.rule}.*"
        for each in study_verdicts(results.study)
    ]
    told = _wrapped(
        "A rule speaks of one data set, by medians over seeds. A claim holds if its rule does on "
        "every data set, holds partly if on some, and else does not hold here. The first verdict "
        "is with γ tuned on rows apart from those judged."
    )
    lines = "\n".join(_wrapped(sentence, point=True) for sentence in sentences)
    return f"## The paper's claims\n\n{told}\n\n{lines}"


# Beside the printed numbers

_BESIDE = (
    ("pinball", "coverage", "Pinball loss, control of coverage, means over seeds"),
    ("msl", "coverage", "MSL, control of coverage, medians over seeds (ideal 1.111)"),
    ("mc", "coverage", "MC, control of coverage, medians over seeds (ideal 0.111)"),
    ("scaled_length", "coverage", "Scaled length, control of coverage, medians over seeds"),
    ("coverage", "coverage", "Coverage in %, control of coverage, medians over seeds"),
    ("coverage", "mc", "Coverage in %, control of MC, medians over seeds (at least 88.89)"),
)


def _beside(results: Results) -> str:
    """Ours, ours with γ chosen as behind the printed figures, their code, and what they printed."""
    told = (
        "The printed numbers are of the authors' code: 20 seeds, batch 256, x and y scaled by "
        "8,000 rows, calibration from row 8,001 (that with cal from 5,001), γ by test."
    )
    if any(map(results.stands_in, results.datasets)):
        told += " Those beside a stand-in are of other data: of another zone, in another size."
    blocks = [
        f"## Beside the printed numbers\n\n{_wrapped(told)}",
        *(_table_beside(results, *each) for each in _BESIDE),
        _gammas(results),
        _curves(results),
    ]
    return "\n\n".join(blocks)


def _table_beside(results: Results, metric: str, risk: str, title: str) -> str:
    lines = []
    for dataset in results.datasets:
        called = results.called(dataset, unit=metric == "pinball")
        for setting in SETTINGS:
            methods = [setting.method(each) for each in COLUMNS]
            cells = [_cell(results, dataset, each, metric, risk, setting.by) for each in methods]
            lines.append([called, setting.short, *cells])
        cells = [_printed_cell(dataset, each, metric, risk) for each in COLUMNS]
        lines.append([called, _printed_as(results, dataset), *cells])
    return f"{title}\n\n{table(['data set', '', *(NAMES[each] for each in COLUMNS)], lines)}"


def _printed_as(results: Results, dataset: str) -> str:
    return "printed, other data" if results.stands_in(dataset) else "printed"


def _cell(results: Results, dataset: str, method: str, metric: str, risk: str, by: str) -> str:
    if not results.chosen(dataset, method, risk, by):
        return "–"
    average = results.mean if metric == "pinball" else results.median
    return _shown(average(dataset, method, metric, risk, by), metric)


def _shown(value: float, metric: str) -> str:
    if metric == "coverage":
        return _percent(value)
    if metric == "pinball":
        return _number(value)
    return _fixed(value, 4 if metric == "mc" else 3)


def _printed_cell(dataset: str, method: str, metric: str, risk: str) -> str:
    found = printed(dataset, method)
    if metric != "coverage":
        return _shown(float(getattr(found, metric)), metric)
    if risk == "coverage":
        return "89.90–90.01" if dataset in PRINTED else "–"
    return _percent(found.coverage_under_mc)


def _gammas(results: Results) -> str:
    lines = []
    for dataset in results.datasets:
        called, factor = results.called(dataset), results.gamma_factor(dataset)
        for setting in SETTINGS:
            taken = (
                results.values(dataset, setting.method(each), "gamma", "coverage", setting.by)
                for each in COLUMNS
            )
            lines.append([called, setting.short, *map(_listed, taken)])
        known = {each: printed(dataset, each).gamma for each in COLUMNS}
        cells = [_number(gamma, 2) for gamma in known.values()]
        lines.append([called, _printed_as(results, dataset), *cells])
        if not isnan(factor):
            cells = [
                _number(gamma * (1.0 if each == "cal" else factor), 2)
                for each, gamma in known.items()
            ]
            lines.append([called, f"printed, × {factor:.3f}", *cells])
    told = _wrapped(
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
    if len(counts) == 1:
        return f"{counts[0][0]:g}"
    return ", ".join(f"{gamma:g} ×{count}" for gamma, count in counts)


def _usual(gammas: Sequence[float]) -> str:
    """The γ that was taken most often, and by how many if not by all."""
    ((gamma, count),) = Counter(gammas).most_common(1)
    if isnan(gamma):
        return "–"
    return f"{gamma:g}" if count == len(gammas) else f"{gamma:g} ({count} of {len(gammas)})"


def _curves(results: Results) -> str:
    """The pinball loss by γ, beside the printed curves."""
    gammas = sorted({row.gamma for row in results.rows if not isnan(row.gamma)})
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
            cells = [_number(known.get(gamma, nan)) for gamma in gammas]
            lines.append([called, f"{NAMES[method]}, printed (γ × {factor:.3f})", *cells])
    head = ["data set", "method", *(f"γ = {gamma:g}" for gamma in gammas)]
    told = _wrapped(
        "Pinball loss of the rows judged by γ, control of coverage, means over seeds. A printed "
        "loss stands under the γ it was printed with, which in the unit of ours is the factor in "
        "brackets times as large; beside a stand-in there is none."
    )
    return f"{told}\n\n{table(head, lines)}"


def _curve(rows: Sequence[Row], gamma: float) -> str:
    found = [row.pinball for row in rows if row.gamma == gamma]
    return _number(fmean(found) if found else nan)


# Ours in full

_NOISE = _wrapped(
    "The noise floor is the ΔCoverage expected of independent misses. Control makes misses "
    "anti-correlated, for after each one the sets grow, so that coverage of a weekday varies less "
    "than that: a ΔCoverage below the floor is no flaw, and no merit beyond control."
)


def _ours(results: Results, risk: str) -> str:
    head = [
        "data set", "method", "γ", "coverage %", "MC", "MSL", "length", "without full sets",
        "scaled length", "ΔCoverage %", "its noise floor", "pinball", "full sets %",
    ]  # fmt: skip
    lines = []
    for dataset in results.datasets:
        for method in ("uncalibrated", *METHODS):
            if not results.chosen(dataset, method, risk):
                continue

            def at(metric: str, dataset: str = dataset, method: str = method) -> float:
                return results.median(dataset, method, metric, risk)

            lines.append(
                [
                    results.called(dataset, unit=True), NAMES[method],
                    _usual(results.values(dataset, method, "gamma", risk)),
                    _percent(at("coverage")), _fixed(at("mc"), 4), _fixed(at("msl"), 3),
                    _number(at("length")), _number(at("finite_length")),
                    _fixed(at("scaled_length"), 3), _percent(at("delta")), _percent(at("floor")),
                    _number(at("pinball")), _percent(at("full")),
                ]
            )  # fmt: skip
    return table(head, lines)


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
    told = _wrapped(
        f"Rolling RC without stretching, groups of 500 steps, coverage at "
        f"{100 - 100 * LEVELS['coverage']:g} %; medians over {seeds} "
        f"stream{'' if seeds == 1 else 's'}. The synthetic y has no unit."
    )
    return f"## The step size, on the synthetic stream\n\n{told}\n\n{table(head, lines)}"
