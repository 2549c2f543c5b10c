"""The report of the tabular experiments: tables in plain text that is Markdown too."""

from collections import Counter
from collections.abc import Sequence
from math import isnan, nan
from statistics import fmean, median
from textwrap import fill

from setpoint_paper.pages import Interval, interval, table
from setpoint_paper.tabular.claims import CLAIMS, SETTINGS, decide, so_far, study_verdicts
from setpoint_paper.tabular.measures import WINDOW, Row
from setpoint_paper.tabular.methods import LEVELS, METHODS, OURS, Protocol
from setpoint_paper.tabular.printed import COLUMNS, COVERAGE, CURVES, PRINTED, printed
from setpoint_paper.tabular.results import Results

__all__ = ["NAMES", "brief", "report", "seeds_of"]

NAMES = {
    "uncalibrated": "uncalibrated",
    "none": "none",
    "exponential": "exponential",
    "score": "score adaptive",
    "error": "error adaptive",
    "score_exponential": "score adaptive over exponential",
    "error_exponential": "error adaptive over exponential",
    "error_later": "error adaptive, authors' later code",
    "cal": "calibration with cal",
    OURS: "self-adjusting (ours)",
}
NAMES |= {f"{name}_coded": f"{told}, their code" for name, told in NAMES.items()}
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
        _switches(results),
        _adjusting(results),
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
                _table_beside(results, *_BESIDE[0]),
            ],
        )
    )


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
    training = results.about.get("training", "")
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
                *((training,) if training else ()),
                '"γ by test" is the selection behind the printed figures: the γ with the least '
                "pinball loss on the rows that are judged, over all seeds.",
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
    promised = [row for row in results.rows if row.method in METHODS]
    tuned = [row for row in promised if row.method != OURS]
    ran = [*promised, *results.study]
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
    adjusted = [row for row in promised if row.method == OURS]
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
    lines = "\n".join(_wrapped(point, point=True) for point in points)
    return f"## What is guaranteed, on every run\n\n{lines}"


# The claims


def _claims(results: Results) -> str:
    settled = list(zip(*(decide(results, setting) for setting in SETTINGS), strict=True))
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
    told = _wrapped(
        "A rule compares methods on one data set and one seed, so on the same tape: a margin for "
        "each comparison, positive where the claim holds. A claim holds on a data set where the "
        "95 % confidence interval of every mean margin lies above 0, and fails where one lies "
        "below, of k comparisons an interval of 1 − 0.05/k. They speak of the model's "
        "initialisations: another stretch of data may say something else. A claim holds if it does "
        "on every data set, and partly if on some. The first verdict is by the methods of the text "
        "with γ tuned on rows apart from those judged."
    )
    lines = "\n".join(_wrapped(sentence, point=True) for sentence in sentences)
    names = [results.called(dataset) for dataset in results.datasets]
    margins = [
        [
            verdict.claim,
            setting.short,
            f"{claim.rule}, {claim.unit}",
            *map(verdict.margin, names),
        ]
        for verdicts, claim in zip(settled, CLAIMS, strict=True)
        for verdict, setting in zip(verdicts, SETTINGS, strict=True)
        if verdict.count and setting in (SETTINGS[0], SETTINGS[2])
    ]
    said = table(["claim", "setting", "margin", *names], margins)
    return (
        f"## The paper's claims\n\n{told}\n\n{lines}\n\nThe margins with their 95 % intervals "
        "over seeds; of several comparisons the worst is shown, with its rival in brackets"
        f"\n\n{said}"
    )


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
        "8,000 rows, raw zeros before the first row, calibration from row 8,001 (that with cal "
        "from 5,001), γ by test."
    )
    if any(map(results.stands_in, results.datasets)):
        told += " Those beside a stand-in are of other data: of another zone, in another size."
    blocks = [
        f"## Beside the printed numbers\n\n{_wrapped(told)}",
        _ratios(results),
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
        cells = []
        for method in COLUMNS:
            known = printed(dataset, method).pinball
            found = results.values(dataset, f"{method}_coded", "pinball", by="test")
            cells.append(
                _signed(interval([100.0 * (value / known - 1.0) for value in found]))
                if found and not isnan(known)
                else "–"
            )
        lines.append([results.called(dataset), *cells])
    if not lines:
        return ""
    told = _wrapped(
        "Their code with γ by test, run here: pinball loss over that printed, less 1, in %; the "
        "mean over seeds and its 95 % interval."
    )
    return f"{told}\n\n{table(['data set', *(NAMES[each] for each in COLUMNS)], lines)}"


def _signed(found: Interval) -> str:
    if isnan(found.low):
        return f"{found.mean:+.1f}"
    return f"{found.mean:+.1f} ± {found.high - found.mean:.1f}"


# What each step of the protocol changes

_STEPS = {
    "batch 512 instead of 256": ("{}_coded; printed, batch 512", "test"),
    "x, y and θ scaled by 5,000 rows instead of 8,000": (
        "{}_coded; printed, scaled by 5,000 rows",
        "test",
    ),
    "rows of means before the first row instead of raw zeros": (
        "{}_coded; printed, padded by means",
        "test",
    ),
    "calibration from row 5,001 instead of 8,001": ("{}_early", "test"),
    "crossed ends as empty sets": ("{}_empty", "test"),
    "γ tuned on rows 5,001 to 8,000 instead of by test": ("{}_coded", "tuned"),
}


def _switches(results: Results) -> str:
    """How far each step of the printed protocol, switched alone, moves the pinball loss."""
    lines = []
    for step, (form, by) in _STEPS.items():
        for method in ("none", "error"):
            cells = []
            for dataset in results.datasets:
                usual = results.by_seed(dataset, f"{method}_coded", "pinball", by="test")
                other = results.by_seed(dataset, form.format(method), "pinball", by=by)
                both = [
                    100.0 * (other[seed] / usual[seed] - 1.0) for seed in other if seed in usual
                ]
                cells.append(f"{_signed(interval(both))} ({len(both)})" if both else "–")
            lines.append([step, NAMES[method], *cells])
    if all(cell == "–" for line in lines for cell in line[2:]) or not results.random:
        return ""
    names = [results.called(dataset) for dataset in results.datasets]
    told = _wrapped(
        "Each step of the printed protocol switched alone, to what the text says or, of scaling, "
        "padding and crossed ends, to what is sound: the change of the pinball loss in %, a "
        "positive one where the printed protocol has the lower loss; the mean over seeds, its 95 % "
        "interval, and in brackets the number of seeds, paired."
    )
    return (
        f"## What each step of the protocol changes\n\n{told}\n\n"
        f"{table(['step', 'method', *names], lines)}"
    )


# Ours beside the paper's


def _adjusting(results: Results) -> str:
    """The self-adjusting default beside error adaptive, with γ tuned and by test."""
    rivals = (
        ("error", "tuned", "error adaptive, γ tuned"),
        ("error", "test", "error adaptive, γ by test"),
        ("error_coded", "test", "error adaptive, their code, γ by test"),
        (OURS, "tuned", NAMES[OURS]),
    )
    lines = []
    for dataset in results.datasets:
        base = results.by_seed(dataset, "error", "pinball")
        for method, by, told in rivals:
            if not results.chosen(dataset, method, "coverage", by):
                continue
            ours = results.by_seed(dataset, method, "pinball", by=by)
            change = interval([100.0 * (ours[s] / base[s] - 1.0) for s in ours if s in base])

            def at(
                metric: str, dataset: str = dataset, method: str = method, by: str = by
            ) -> float:
                return results.median(dataset, method, metric, "coverage", by)

            lines.append(
                [
                    results.called(dataset, unit=True), told, _number(at("pinball")),
                    _signed(change), _number(at("length")), _fixed(at("msl"), 3),
                    _percent(at("worst")), _percent(at("coverage")),
                ]
            )  # fmt: skip
    if not any(line[1] == NAMES[OURS] for line in lines):
        return ""
    head = [
        "data set", "method", "pinball", "change %", "length", "MSL", "worst window, points",
        "coverage %",
    ]  # fmt: skip
    told = _wrapped(
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
        return _percent(value)
    if metric == "pinball":
        return _number(value)
    return _fixed(value, 4 if metric == "mc" else 3)


def _printed_cell(dataset: str, method: str, metric: str, risk: str) -> str:
    found = printed(dataset, method)
    if metric != "coverage":
        return _shown(float(getattr(found, metric)), metric)
    if risk == "coverage":
        return COVERAGE if dataset in PRINTED else "–"
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
    if not counts:
        return "–"
    if len(counts) == 1:
        return f"{counts[0][0]:g}"
    return ", ".join(f"{gamma:g} ×{count}" for gamma, count in counts)


def _usual(gammas: Sequence[float]) -> str:
    """The γ that was taken most often, and by how many if not by all."""
    ((gamma, count),) = Counter(gammas).most_common(1)
    if isnan(gamma) or gamma == 0.0:
        return "–"
    return f"{gamma:g}" if count == len(gammas) else f"{gamma:g} ({count} of {len(gammas)})"


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
                    _percent(at("coverage")), _fixed(at("mc"), 4), _fixed(at("msl"), 3),
                    _number(at("length")), _number(at("finite_length")),
                    _fixed(at("scaled_length"), 3), _percent(at("delta")), _percent(at("floor")),
                    _percent(at("delta_modulo")), _percent(at("worst")), _fixed(at("longest"), 0),
                    _number(at("pinball")), _percent(at("full")),
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
                f"{gamma:g}", _percent(at("coverage")), _fixed(at("mc"), 4), _fixed(at("msl"), 3),
                _number(at("length")), _number(at("pinball")), *[_number(at("away"))] * known,
                _fixed(max(at("high"), -at("low")), 4),
            ]
        )  # fmt: skip
    if not lines:
        return ""
    head = [
        "γ", "coverage %", "MC", "MSL", "length", "pinball", *["from the true quantiles"] * known,
        "the certificate's bound",
    ]  # fmt: skip
    seeds = len({row.seed for row in results.study})
    told = _wrapped(
        f"Rolling RC without stretching, groups of 500 steps, coverage at "
        f"{100 - 100 * LEVELS['coverage']:g} %; medians over {seeds} "
        f"stream{'' if seeds == 1 else 's'}. The synthetic y has no unit."
        + " The distance from the true quantiles is that of both ends, in the mean over the rows "
        "judged." * known
    )
    return f"## The step size, on the synthetic stream\n\n{told}\n\n{table(head, lines)}"
