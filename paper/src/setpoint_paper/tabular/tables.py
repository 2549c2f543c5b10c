"""The report of the tabular experiments: tables in plain text that is Markdown too."""

from collections import Counter
from collections.abc import Sequence
from math import isnan
from statistics import median

from setpoint_paper.pages import fixed, number, percent, table, word_rule, wrapped
from setpoint_paper.tabular.beside import adjusting, beside, losses_beside, switches
from setpoint_paper.tabular.claims import CLAIMS
from setpoint_paper.tabular.measures import Row
from setpoint_paper.tabular.methods import LEVELS, METHODS, NAMES, OURS, Protocol
from setpoint_paper.tabular.results import Results
from setpoint_paper.tabular.verdicts import TEXT, decide, judged_by, so_far, study_verdicts

__all__ = ["brief", "report", "seeds_of"]

_EXACT = 1e-9
"""Rounding that an identity may show over 15,000 steps."""


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
        beside(results),
        switches(results),
        adjusting(results),
        f"## Control of coverage at 90 %\n\n{wrapped(medians)}\n\n{_ours(results, 'coverage')}",
        _NOISE,
        "## Control of the miscoverage counter at 1/9\n\n"
        f"{wrapped(medians)}\n\n{_ours(results, 'mc')}",
        _study(results),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def brief(results: Results) -> str:
    """What fits on a screen: what ran, what is guaranteed, a line a claim, the pinball losses."""
    ours, standing = decide(results, TEXT), so_far(results)
    every = [*ours, *study_verdicts(results.study)]
    lines = [
        f"{each.where:<12} {each.word:<19} {len(each.held)} of {each.count}  {each.claim}"
        for each in every
        if each.count
    ]
    return "\n\n".join(
        filter(
            None,
            [
                _head(results),
                _guarantees(results),
                f"## The paper's claims{f', {standing}' if standing else ''}\n\n"
                + "\n".join(lines),
                losses_beside(results),
            ],
        )
    )


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
        wrapped(f"Note on {name}: {note}.") for name, note in about.get("notes", {}).items() if note
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
    training = results.about.get("training", "")
    return "\n\n".join(
        map(
            wrapped,
            (
                f"Calibration begins at row {told.begin + 1:,}; rows {told.begin + 1:,} to "
                f"{told.tuned:,} choose γ and β by their pinball loss, for each seed; rows from "
                f"{told.tuned + 1:,} on are judged. θ is in standard deviations of the first "
                f"{told.scale_rows:,} labels, its bounds are where λ is ±{told.reach:g} of them. "
                "A full set counts as long as the range of all labels seen until then, an empty "
                "one as 0.",
                *((training,) if training else ()),
                '"γ by test" is the selection behind the printed figures: the γ with the least '
                "pinball loss on the rows that are judged, over all seeds."
                + (
                    ' "By their code" alone has the printed γ; under control of MC and for a '
                    "stand-in, where there is none, γ by test. Two that differ little in loss can "
                    "differ much in MSL and MC."
                    if results.as_printed
                    else ' "Their code here" is the authors\' code on the model of this page, '
                    "which is trained otherwise than theirs was."
                ),
                "Score and error adaptive follow the paper's text with the sign put right, and "
                'calibration with cal is unclipped, with full and empty sets. "Their code" is '
                "the authors' older one, behind the printed numbers: Rolling RC starts where the "
                "rows judged start, with θ = 0; the score is the distance to the nearer end of the "
                "calibrated interval, also where its ends have crossed, and such ends are kept; "
                "β_loss is searched in [0.1, 2.0] instead of [0.1, 0.2]; and calibration with cal, "
                "from row 5,001, clips its share of the scores to [0, 1] and interpolates, so that "
                "no set is full and no certificate holds. Where they searched β with SMAC, here "
                "as many points of a sequence that fills the range are tried.",
                *(
                    (
                        "The self-adjusting method is the library's default, `sp.intervals()`, and "
                        "not in the paper. It has no γ, and nothing is tuned for it.",
                    )
                    if any(row.method == OURS for row in results.rows)
                    else ()
                ),
                "Scaled length is length over one mean for each data set, risk and selection of "
                "γ: that over seeds of the four stretchings, of the two adaptive ones over an "
                "exponential and, where coverage is controlled, of calibration with cal.",
            ),
        )
    )


# What is guaranteed


def _guarantees(results: Results) -> str:
    ran = results.promised
    tuned = [row for row in ran if row.method != OURS and row.dataset != "synthetic"]
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
    adjusted = [row for row in ran if row.method == OURS]
    guarded = {
        name: sum(row.guarded for row in tuned if (row.method == "cal") is (name == "cal"))
        for name in ("rolling", "cal")
    }
    points = [
        f"Runs: {len(ran):,}, every method with every step size on every tape"
        + (f", {len(results.study):,} of them in the study of γ" if results.study else "")
        + "; the authors' code, which promises nothing, apart.",
        f"The identity mean loss − level = (θ at the end − θ at the beginning)/(γT): exact on "
        f"{exact:,}, largest gap {max(row.gap for row in ran):.1g}. "
        f"{'HOLDS' if exact == len(ran) else 'BROKEN'}.",
        f"The risk within the certificate's two bounds: on {within:,}. "
        f"{'HOLDS' if within == len(ran) else 'BROKEN'}. The widest bound is ±{bound:.4f} "
        f"(γ = {widest.gamma:g}, T = {widest.steps:,}; the study of γ apart).",
        f"The safeguard acted {guarded['rolling']:,} times in the runs of Rolling RC and "
        f"{guarded['cal']:,} times in those of calibration with cal.",
    ]
    if adjusted:
        points.append(
            f"Of the {len(adjusted):,} runs of the self-adjusting method, whose bound is on misses "
            f"beyond those asked for, {sum(row.within for row in adjusted):,} are within it."
        )
    if held:
        points.append(
            f"MC under control, γ tuned: {min(row.mc for row in held):.4f} to "
            f"{max(row.mc for row in held):.4f} on the rows judged (1/9 = {1 / 9:.4f}); coverage "
            f"at least 8/9 on {enough:,} of {len(held):,} runs, least "
            f"{100.0 * min(row.coverage for row in held):.2f} %."
        )
    spent = results.about.get("cost")
    if spent:
        model, live = spent
        points.append(
            f"Cost: a step of the model, prediction and learning, takes {model:.2f} ms of one "
            f"processor; a live step of error adaptive calibration {1000.0 * live:.1f} µs, "
            f"{100.0 * live / model:.2f} % of it."
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
    lines = "\n".join(wrapped(point, point=True) for point in points)
    return f"## What is guaranteed, on every run\n\n{lines}"


# The claims


def _claims(results: Results) -> str:
    ways = judged_by(results)
    settled = list(zip(*(decide(results, setting) for setting in ways), strict=True))
    few = so_far(results)
    sentences = [
        f"**{ours.where}** {ours.claim}: **{f'{few}: ' if few else ''}{ours}**. "
        + " ".join(f"{other.setting}: {other}." for other in others if other.count)
        for ours, *others in settled
        if any(verdict.count for verdict in (ours, *others))
    ]
    studied = study_verdicts(results.study)
    few = so_far(results, results.study)
    sentences += [
        f"**{each.where}** {each.claim}: **{f'{few}: ' if few else ''}{each.word}**. "
        f"*The margin: {each.rule}; {each.margin('synthetic')}.*"
        for each in studied
        if each.count
    ]
    told = wrapped(
        "A rule compares methods on one data set and one seed, so on the same tape: a margin for "
        "each comparison, positive where the claim holds. A claim holds on a data set where the "
        "95 % confidence interval of every mean margin lies above 0, and fails where one lies "
        "below, of k comparisons an interval of 1 − 0.05/k. They speak of the model's "
        "initialisations: another stretch of data may say something else. "
        f"{word_rule('data set')} The first verdict is by the methods of the text with γ tuned on "
        "rows apart from those judged."
    )
    lines = "\n".join(wrapped(sentence, point=True) for sentence in sentences)
    names = [results.called(dataset) for dataset in results.datasets]
    margins = [
        [
            verdict.claim,
            setting.short,
            f"{claim.rule}, {claim.unit}",
            *map(verdict.margin, names),
        ]
        for verdicts, claim in zip(settled, CLAIMS, strict=True)
        for verdict, setting in zip(verdicts, ways, strict=True)
        if verdict.count and setting.main
    ]
    said = table(["claim", "setting", "margin", *names], margins)
    return (
        f"## The paper's claims\n\n{told}\n\n{lines}\n\nThe margins with their 95 % intervals "
        "over seeds; of several comparisons the worst is shown, with its rival in brackets"
        f"\n\n{said}"
    )


# Ours in full

_NOISE = wrapped(
    "The noise floor is the ΔCoverage expected of independent misses. Control makes misses "
    "anti-correlated, for after each one the sets grow, so that coverage of a weekday varies less "
    "than that: a ΔCoverage below the floor is no flaw, and no merit beyond control."
)


def _usual(gammas: Sequence[float]) -> str:
    """The γ that was taken most often, and by how many if not by all."""
    ((gamma, count),) = Counter(gammas).most_common(1)
    if isnan(gamma) or gamma == 0.0:
        return "–"
    return f"{gamma:g}" if count == len(gammas) else f"{gamma:g} ({count} of {len(gammas)})"


def _ours(results: Results, risk: str) -> str:
    head = [
        "data set", "method", "γ", "coverage %", "MC", "MSL", "length", "without full sets",
        "scaled length", "ΔCoverage %", "its noise floor", "by index mod 7", "worst window %",
        "longest streak", "pinball", "full sets %",
    ]  # fmt: skip
    lines = []
    for dataset in results.datasets:
        for method in NAMES:
            if not results.chosen(dataset, method, risk):
                continue

            def at(metric: str, dataset: str = dataset, method: str = method) -> float:
                return results.median(dataset, method, metric, risk)

            lines.append(
                [
                    results.called(dataset, unit=True), NAMES[method],
                    _usual(results.values(dataset, method, "gamma", risk)),
                    percent(at("coverage")), fixed(at("mc"), 4), fixed(at("msl"), 3),
                    number(at("length")), number(at("finite_length")),
                    fixed(at("scaled_length"), 3), percent(at("delta")), percent(at("floor")),
                    percent(at("delta_modulo")), percent(at("worst")), fixed(at("longest"), 0),
                    number(at("pinball")), percent(at("full")),
                ]
            )  # fmt: skip
    return table(head, lines)


def _study(results: Results) -> str:
    gammas = sorted({row.gamma for row in results.study})
    known = not any(isnan(row.away) for row in results.study)
    lines = []
    for gamma in gammas:
        rows = [row for row in results.study if row.gamma == gamma]

        def at(metric: str, rows: list[Row] = rows) -> float:
            return median(float(getattr(row, metric)) for row in rows)

        lines.append(
            [
                f"{gamma:g}", percent(at("coverage")), fixed(at("mc"), 4), fixed(at("msl"), 3),
                number(at("length")), number(at("pinball")), *[number(at("away"))] * known,
                fixed(max(at("high"), -at("low")), 4),
            ]
        )  # fmt: skip
    if not lines:
        return ""
    head = [
        "γ", "coverage %", "MC", "MSL", "length", "pinball", *["from the true quantiles"] * known,
        "the certificate's bound",
    ]  # fmt: skip
    seeds = len({row.seed for row in results.study})
    told = wrapped(
        f"Rolling RC without stretching, groups of 500 steps, coverage at "
        f"{100 - 100 * LEVELS['coverage']:g} %; medians over {seeds} "
        f"stream{'' if seeds == 1 else 's'}. The synthetic y has no unit."
        + " The distance from the true quantiles is that of both ends, in the mean over the rows "
        "judged." * known
    )
    return f"## The step size, on the synthetic stream\n\n{told}\n\n{table(head, lines)}"
