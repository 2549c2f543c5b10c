"""The one page of the reproduction: every claim of the paper in its order, with its verdict.

It is made from the results that the experiments stored, and says what each line rests on.
"""

import csv
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import NamedTuple

from setpoint._files import put
from setpoint.errors import DataError
from setpoint_paper.depth.claims import decide as decide_depth
from setpoint_paper.depth.report import read_csv
from setpoint_paper.depth.runs import GEOMETRIES
from setpoint_paper.pages import Verdict, interval, table
from setpoint_paper.tabular.claims import CLAIMS, SETTINGS, decide, so_far, study_verdicts
from setpoint_paper.tabular.printed import COLUMNS, printed
from setpoint_paper.tabular.results import Results, load

__all__ = ["ORDER", "summary", "write_summary"]

ORDER = (
    "abstract", "1.1", "3.3", "4.1.2", "4.1.3", "4.1.4", "4.2", "app. B", "C.3.1", "C.3.3", "D.1.1",
    "D.1.2", "app. D.2", "app. D.3", "E.2", "G",
)  # fmt: skip
"""The sections of the paper that claim something which an experiment can show."""

_COST = {
    "tabular-printed": ("`setpoint-paper tabular --training printed --seeds 20`", "5 to 8 h"),
    "tabular": ("`setpoint-paper tabular --seeds 5`", "2 to 4 h"),
    "tabular-linear": ("`setpoint-paper tabular --model linear`", "2 min"),
    "depth": (
        "`setpoint-paper depth --heuristics constant,magnitude,previous,registered,"
        "registered_paper`",
        "1 to 2 h",
    ),
    "classification": ("`setpoint-paper classification`", "5 min"),
}
"""What to type for a page, and how long one processor works on it; calibration alone takes some
ten seconds a tape."""


class Line(NamedTuple):
    """One claim as the page has it."""

    where: str
    claim: str
    verdict: str
    numbers: str
    page: str


def write_summary(folder: Path) -> Path:
    """Writes README.md beside the folder of results."""
    return put(folder.parent / "README.md", summary(folder))


def summary(folder: Path) -> str:
    """The page, from whatever results there are in the folder."""
    lines = [*_tabular(folder), *_depth(folder), *_classes(folder)]
    if not lines:
        raise DataError(f"{folder} holds no results: run an experiment with --out {folder}")
    lines.sort(key=lambda line: _place(line.where))
    cells = [
        [
            line.where,
            line.claim,
            line.verdict,
            line.numbers,
            f"[{line.page}](results/{line.page}.md)",
        ]
        for line in lines
    ]
    pages = sorted({line.page for line in lines})
    parts = [
        "# What the paper claims, and what came out here",
        _wrapped(
            "Every claim of the paper that an experiment can show, in the paper's order, with its "
            "verdict and the margin that decides it: positive where the claim holds, a mean over "
            "seeds with its 95 % confidence interval, paired by seed. A claim holds where it does "
            "on every data set, and partly where on some; a data set is undecided where the "
            "interval holds 0. A theorem is not listed: its bounds are checked on every run, and "
            "the pages say how many kept them (all)."
        ),
        table(["section", "claim", "verdict", "margins", "page"], cells),
        "## What to type, and what it costs",
        table(
            ["page", "command", "one processor"],
            [[page, *_COST[page]] for page in pages if page in _COST],
        ),
        _wrapped(
            "`setpoint-paper all --quick` runs something small of everything in a few minutes, and "
            "`setpoint-paper summary` makes this page anew. `setpoint-paper tapes` makes every "
            "recording that the tabular pages use, in the order of their use, and goes on where it "
            "was stopped; the pages can be made from what there is at any time (`--ready`)."
        ),
        "## What the printed numbers hide",
        "\n".join(_hidden(folder)),
    ]
    return "\n\n".join(parts) + "\n"


def _wrapped(text: str, *, point: bool = False) -> str:
    return fill(
        text, 110, initial_indent="- " if point else "", subsequent_indent="  " if point else "",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _place(where: str) -> int:
    first = where.partition(",")[0]
    for place, name in enumerate(ORDER):
        if first.startswith(name):
            return place
    return len(ORDER)


def _margins(verdict: Verdict, unit: str) -> str:
    told = "; ".join(
        f"{name} {str(margin).replace('+', '').replace('-', '−')}"
        for name, margin in verdict.margins
    )
    return f"{told} ({unit})" if unit else told


def _found(folder: Path, stem: str) -> Results | None:
    return load(folder, stem) if (folder / f"{stem}.json").is_file() else None


def _tabular(folder: Path) -> Iterator[Line]:
    known = {
        stem: results
        for stem in ("tabular", "tabular-printed")
        if (results := _found(folder, stem)) is not None
    }
    if known:
        text, code = next(iter(known)), list(known)[-1]
        used = [(setting, code if setting.coded else text) for setting in SETTINGS]
        settled = [decide(known[stem], setting) for setting, stem in used]
        for claim, verdicts in zip(CLAIMS, zip(*settled, strict=True), strict=True):
            told: list[str] = []
            stems: dict[str, Verdict] = {}
            for (setting, stem), verdict in zip(used, verdicts, strict=True):
                if verdict.margins:
                    few = so_far(known[stem])
                    told.append(f"{setting.short}: {verdict}{f' ({few})' if few else ''}")
                    stems.setdefault(stem, verdict)
            if told:
                numbers = "; ".join(
                    ("" if stem == text else "their code, γ by test: ")
                    + _margins(verdict, claim.unit)
                    for stem, verdict in stems.items()
                )
                yield Line(claim.where, claim.text, "; ".join(told), numbers, next(iter(stems)))
    for stem, results in known.items():
        spent = results.about.get("cost")
        if spent:
            model, live = spent
            yield Line(
                "abstract", "essentially zero additional computational cost",
                "holds" if live < 0.01 * model else "does not hold here",
                f"{100.0 * live / model:.2f} % of a step of the model ({1000.0 * live:.1f} µs of "
                f"{model:.1f} ms)",
                stem,
            )  # fmt: skip
            break
    for stem in ("tabular", "tabular-linear"):
        results_of = _found(folder, stem)
        verdicts_of = study_verdicts(results_of.study) if results_of is not None else []
        for verdict in verdicts_of:
            yield Line(
                verdict.where, verdict.claim, verdict.word, _margins(verdict, verdict.rule), stem
            )
        if verdicts_of:
            return


def _depth(folder: Path) -> Iterator[Line]:
    if not (folder / "depth.csv").is_file():
        return
    rows = read_csv(folder / "depth.csv")
    seeds = len({row.seed for row in rows})
    settled = {each: decide_depth(rows, each) for each in GEOMETRIES}
    for claim, verdict in settled["text"].items():
        told = f"with {seeds} seeds: {verdict}"
        other = settled["authors"].get(claim)
        if claim.centre and other is not None:
            told = f"with {seeds} seeds, the text's centre: {verdict}; the authors' centre: {other}"
        yield Line(claim.where, claim.text, told, _margins(verdict, claim.rule), "depth")


def _classes(folder: Path) -> Iterator[Line]:
    path = folder / "classification.csv"
    if not path.is_file():
        return
    with path.open(newline="", encoding="utf-8") as file:
        lines = [line for line in csv.DictReader(file) if line.get("unbalanced")]
    held, numbers = [], []
    for stream in dict.fromkeys(line["stream"] for line in lines):
        found = {
            line["family"]: 100.0 * float(line["unbalanced"])
            for line in lines
            if (line["stream"], line["method"], line["pace"]) == (stream, "controlled", "1")
        }
        if {"Threshold", "Cumulative"} <= set(found):
            held.append(found["Threshold"] > found["Cumulative"])
            numbers.append(f"{stream} {found['Threshold']:.1f}, {found['Cumulative']:.1f}")
    if held:
        word = "holds" if all(held) else "holds partly" if any(held) else "does not hold here"
        yield Line(
            "G", "threshold sets have unbalanced coverage, cumulative sets are better",
            f"{word} ({sum(held)} of {len(held)}), one run each",
            f"points of a class from 90 %, threshold and cumulative: {'; '.join(numbers)}",
            "classification",
        )  # fmt: skip


def _hidden(folder: Path) -> list[str]:
    """What is in the printed numbers that the text does not tell, and how much each matters."""
    points = [
        _wrapped(
            "**γ by the test part.** The notebook behind the figures chooses γ by the pinball loss "
            f"of the rows that are judged. {_gamma(folder)}",
            point=True,
        ),
        _wrapped(
            "**Weekdays by index modulo 7.** The printed ΔCoverage groups rows by their index "
            "modulo 7, whatever the sampling: it measures noise. "
            f"{_weekdays(folder)}",
            point=True,
        ),
        _wrapped(
            "**Raw zeros before the data.** Four rows of zeros are standardised like data: a year "
            "of 0 is thousands of standard deviations from its mean, and the network learns from "
            "it while it is in the batch. The table of steps on the page says what each step of "
            "the protocol changes.",
            point=True,
        ),
        _wrapped(
            "**Lengths of one pixel.** The printed lengths of depth intervals index pixel i of "
            "frame i: one pixel a frame, mostly of the top rows. Only that of the constant "
            "heuristic is a length. Lengths here are means over all judged pixels; the authors' "
            "18.04, 21.92 and 39.06 m cannot be compared with anything.",
            point=True,
        ),
        _wrapped(
            "**The centre.** A window of 50 × 50 pixels is 11 % of the padded height and 27 % of "
            "the height that is seen. `setpoint-paper depth` judges both.",
            point=True,
        ),
    ]
    results = _found(folder, "tabular-printed")
    if results is not None:
        near = []
        for dataset in results.datasets:
            if results.stands_in(dataset):
                continue
            found = {
                method: results.values(dataset, f"{method}_coded", "pinball", by="test")
                for method in COLUMNS
            }
            away = [
                100.0 * (fmean(values) / printed(dataset, method).pinball - 1.0)
                for method, values in found.items()
                if values and not isnan(printed(dataset, method).pinball)
            ]
            if away:
                near.append(f"{dataset} {min(away):+.1f} to {max(away):+.1f} %")
        points.append(
            _wrapped(
                "**With all of it repeated,** the authors' code and protocol give pinball losses "
                f"beside the printed ones of: {'; '.join(near)} (five methods each). Wind is "
                "another zone here, because the paper's file needs an account; "
                "`setpoint-paper fetch wind` gets it from beside the authors' code.",
                point=True,
            )
        )
    return points


def _gamma(folder: Path) -> str:
    results = _found(folder, "tabular-printed")
    if results is None:
        return ""
    told = []
    for dataset in results.datasets:
        test = results.by_seed(dataset, "error_coded", "pinball", by="test")
        tuned = results.by_seed(dataset, "error_coded", "pinball", by="tuned")
        if test:
            change = interval([100.0 * (tuned[s] / test[s] - 1.0) for s in test])
            told.append(f"{results.called(dataset)} {change}")
    return (
        "With γ tuned on rows 5,001 to 8,000 instead, the loss of error adaptive changes by, in "
        f"%: {'; '.join(told)}."
    )


def _weekdays(folder: Path) -> str:
    results = _found(folder, "tabular-printed")
    if results is None:
        return ""
    told = []
    for dataset in results.datasets:
        row = [
            100.0 * results.median(dataset, "none_coded", metric, by="test")
            for metric in ("delta", "delta_modulo", "floor")
        ]
        if not any(map(isnan, row)):
            told.append(f"{results.called(dataset)} {row[0]:.2f}, {row[1]:.2f}, {row[2]:.2f}")
    return (
        "By weekday, by index modulo 7, and what independent misses would give, in points: "
        f"{'; '.join(told)}."
    )
