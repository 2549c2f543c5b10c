"""The report of the classification experiment: tables, sentences that follow rules, figures."""

import csv
from collections.abc import Sequence
from functools import cached_property
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np

from setpoint.metrics import set_sizes
from setpoint_paper.classification.methods import (
    BLOCK,
    DRAWS,
    LEVEL,
    OURS,
    WINDOW,
    Outcome,
    balance,
    rolling,
)
from setpoint_paper.classification.tapes import Recorded
from setpoint_paper.pages import Interval, Margin, linked, percent, table, weighed
from setpoint_paper.plotting import COLOURS, figure, legend, mark, save

__all__ = ["Result", "draw", "findings", "report", "write_csv"]

NEAR = 0.01
"""How far from its level a mean loss may be to be called near it."""

_LINES = (
    ("uncalibrated", None, "uncalibrated", "grey", ":"),
    ("fixed threshold", "Threshold", "fixed threshold", "orange", "-."),
    ("fixed threshold", "Multilabel", "fixed threshold", "orange", "-."),
    ("controlled", "Threshold", "controlled, Threshold", "blue", "-"),
    ("controlled", "Cumulative", "controlled, Cumulative", "vermilion", "--"),
    ("controlled", "Multilabel", "controlled, Multilabel", "blue", "-"),
    (OURS, "Threshold", "self-adjusting (ours), Threshold", "green", "-"),
    (OURS, "Multilabel", "self-adjusting (ours), Multilabel", "green", "-"),
)
"""What a figure shows: method, family, name, colour, stroke."""


class Result:
    """One stream: what its classifier said, what every method made of it, and the step sizes."""

    def __init__(
        self, recorded: Recorded, outcomes: list[Outcome], paces: list[tuple[float, Outcome]]
    ) -> None:
        self.recorded, self.outcomes, self.paces = recorded, outcomes, paces

    def named(self, kind: str) -> list[Outcome]:
        """The outcomes of one kind: "bare", "fixed" or "controlled"."""
        return [each for each in self.outcomes if each.kind == kind]

    def controlled(self, family: str) -> Outcome | None:
        """The paper's method with a family of sets; None where a row may have several labels."""
        wanted = ("controlled", family)
        return next((each for each in self.outcomes if (each.method, each.family) == wanted), None)

    @cached_property
    def gain(self) -> Interval | None:
        """How much better cumulative sets are balanced than threshold sets, in points."""
        threshold, cumulative = self.controlled("Threshold"), self.controlled("Cumulative")
        if threshold is None or cumulative is None:
            return None
        labels = self.recorded.y[self.recorded.begin :]
        return balance(labels, 1.0 - threshold.losses, 1.0 - cumulative.losses)


# Tables


def _held(outcome: Outcome, several: bool) -> tuple[str, str, str]:
    """The mean, the worst window and the other end: of coverage, or of false negatives."""
    found = (outcome.risk, outcome.worst, outcome.calmest)
    mean, worst, best = found if several else (1.0 - each for each in found)
    return percent(mean, 2), percent(worst, 1), percent(best, 1)


def _main_table(result: Result) -> str:
    several = result.recorded.several
    what = "FNP %" if several else "coverage %"
    head = ["method", "family", what, "worst window", "best window", "mean size", "empty %",
            "full %", "Δ by class %", "MSL", "γ", "bound", "certificate"]  # fmt: skip
    lines = []
    for each in result.outcomes:
        mean, worst, best = _held(each, several)
        lines.append(
            [
                each.method,
                each.family,
                mean,
                worst,
                best,
                f"{each.mean_size:.2f}",
                percent(each.empty, 1),
                percent(each.full, 1),
                percent(each.unbalanced, 1),
                "–" if isnan(each.msl) else f"{each.msl:.2f}",
                "–" if isnan(each.gamma) else f"{each.gamma:.4f}",
                _limit(each),
                "none" if each.certificate is None else each.certificate.verdict,
            ]
        )
    return table(head, lines)


def _limit(each: Outcome) -> str:
    """The bound, with its sides."""
    if isnan(each.bound):
        return "–"
    held = each.certificate
    sides = "≤ +" if held is not None and held.lower is None else "± "
    return f"{sides}{percent(each.bound, 2)}"


def _pace_table(result: Result) -> str:
    several = result.recorded.several
    head = ["family", "γ", "of the chosen", "FNP %" if several else "coverage %", "worst window",
            "mean size", "empty %", "full %", "bound"]  # fmt: skip
    lines = []
    for pace, each in result.paces:
        mean, worst, _ = _held(each, several)
        lines.append(
            [
                each.family,
                f"{each.gamma:.4f}",
                f"{pace:g} ×",
                mean,
                worst,
                f"{each.mean_size:.2f}",
                percent(each.empty, 1),
                percent(each.full, 1),
                f"± {percent(each.bound, 2)}",
            ]
        )
    return table(head, lines)


def write_csv(results: Sequence[Result], path: Path) -> None:
    """Every number of the tables, unrounded.

    What cumulative sets gain in balance, and the ends of its interval, are in points and stand in
    the row of the threshold: controlled, with the step size chosen.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(
            ["stream", "method", "family", "kind", "pace", "rows", "level", "risk", "worst_window",
             "best_window", "mean_size", "empty", "full", "msl", "gamma", "bound", "identity_gap",
             "unbalanced", "balance_gain", "balance_low", "balance_high",
             "chosen_by_the_safeguard", "certificate"]
        )  # fmt: skip
        for result in results:
            every = [(1.0, each) for each in result.outcomes]
            every += [(pace, each) for pace, each in result.paces if pace != 1.0]
            for pace, each in every:
                verdict = "" if each.certificate is None else each.certificate.verdict
                gain = Interval(nan, nan, nan, 0)
                if each is result.controlled("Threshold") and result.gain is not None:
                    gain = result.gain
                numbers = (each.risk, each.worst, each.calmest, each.mean_size, each.empty,
                           each.full, each.msl, each.gamma, each.bound, each.gap,
                           each.unbalanced, gain.mean, gain.low, gain.high)  # fmt: skip
                cells = ["" if isnan(value) else repr(float(value)) for value in numbers]
                rows.writerow(
                    [each.stream, each.method, each.family, each.kind, f"{pace:g}",
                     len(each.losses), LEVEL, *cells, each.chosen, verdict]
                )  # fmt: skip


# Sentences


def _side(risk: float) -> str:
    if abs(risk - LEVEL) <= NEAR:
        return "near what was asked"
    return "less than was asked" if risk < LEVEL else "more than was asked"


def findings(result: Result) -> list[str]:
    """What came out, each sentence by a rule; near means within one point."""
    ours, fixed, bare = (result.named(kind) for kind in ("controlled", "fixed", "bare"))
    what = "labels left out" if result.recorded.several else "labels missed"
    target = f"asked: {percent(LEVEL, 0)} % of {what}"
    within = sum(each.certificate is not None and each.certificate.within for each in ours)
    near = [each for each in ours if abs(each.risk - LEVEL) <= NEAR]
    reached = f"{percent(min(each.risk for each in ours), 2)} %"
    if len(ours) > 1:
        reached = f"from {reached} to {percent(max(each.risk for each in ours), 2)} %"
    lines = [
        f"Controlled ({target}): {len(near)} of {len(ours)} near what was asked, {reached}; "
        f"{within} of {len(ours)} within the bound of the certificate; the identity is exact to "
        f"{max(each.gap for each in ours):.0e}."
    ]
    lines += [
        f"{_name(each, first=True)}: {percent(each.risk, 2)} % of {what}, {_side(each.risk)}, and "
        f"{percent(each.worst, 1)} % in the worst {WINDOW} rows, with {each.mean_size:.2f} labels "
        "in a set."
        for each in [*bare, *fixed]
    ]
    best, worst = (pick(ours, key=lambda each: each.worst) for pick in (min, max))
    rivals = [each for each in [*bare, *fixed] if each.worst < best.worst]
    told = "no other method has a better one"
    if rivals:
        told = "better than the best of them: " + "; ".join(
            f"{_name(each)} ({percent(each.worst, 1)} %, {each.mean_size:.2f} labels in a set)"
            for each in rivals
        )
    spread = f"{percent(best.worst, 1)} % of {what} ({_name(best)})"
    if len(ours) > 1:
        spread = f"from {spread} to {percent(worst.worst, 1)} % ({_name(worst)})"
    lines.append(f"Worst {WINDOW} rows of the controlled sets: {spread}; {told}.")
    every = [each for each in result.outcomes if abs(each.risk - LEVEL) <= NEAR]
    if every:
        least = min(every, key=lambda each: each.mean_size)
        lines.append(
            f"Smallest sets of those near what was asked ({len(every)} of "
            f"{len(result.outcomes)} methods): {least.mean_size:.2f} labels, {_name(least)}."
        )
    lines += _balanced(result)
    accuracy = result.recorded.accuracy
    if accuracy > 1.0 - LEVEL:
        lines.append(
            f"The classifier alone is right in {percent(accuracy, 1)} % of the rows, more than the "
            f"{percent(1.0 - LEVEL, 0)} % asked for: to cover no more than that, sets must now and "
            "then be empty, and a stream like this one deserves a higher level of confidence."
        )
    elif not result.recorded.several:
        lines.append(f"The classifier alone is right in {percent(accuracy, 1)} % of the rows.")
    return lines


def _balanced(result: Result) -> list[str]:
    """Whether the claim of appendix G holds: where its interval lies on one side of 0."""
    threshold, cumulative = result.controlled("Threshold"), result.controlled("Cumulative")
    gain = result.gain
    if threshold is None or cumulative is None or gain is None:
        return []
    margin = Margin("", gain, against=gain.high < 0.0)
    verdict = weighed("", "G", "", "", {result.recorded.name: [margin]}).word
    mean, low, high = (
        f"{each:+.2f}".replace("-", "−") for each in (gain.mean, gain.low, gain.high)
    )
    return [
        "The paper's claim that threshold sets are unbalanced and cumulative ones less so "
        f"(appendix G): **{verdict}**. The coverage of a class is "
        f"{percent(threshold.unbalanced, 1)} points from {percent(1.0 - LEVEL, 0)} % on average "
        "with the threshold, "
        f"{percent(cumulative.unbalanced, 1)} with cumulative mass. Cumulative mass gains {mean} "
        f"points, 95 % interval [{low}, {high}]."
    ]


def _name(each: Outcome, first: bool = False) -> str:
    """The method with its family, as the first words of a sentence or within one."""
    name = each.method if each.kind == "bare" else f"{each.method}, {each.family}"
    return name[0].upper() + name[1:] if first else name


def report(results: Sequence[Result], command: str, quick: bool, folder: Path) -> str:
    """The page: what was done, and for each stream its table, what came out and its figure."""
    parts = [
        "# Label sets on streams that drift",
        f"    {command}",
        _introduction(quick),
    ]
    for result in results:
        recorded = result.recorded
        rows = len(recorded.y)
        note = f" {recorded.note}" if recorded.note else ""
        drift = (
            "Dotted lines: "
            + ", ".join(
                f"{name} at {row:,}" for row, name in recorded.marks if row > recorded.begin
            )
            + "."
            if recorded.marks
            else "The moments of its drift are not known."
        )
        if recorded.several:
            drift = "It is no stream in time and has no drift; the model's learning is what moves."
        parts += [
            f"## {recorded.name}",
            f"{rows:,} rows, {recorded.p.shape[1]} classes. Classifier: {recorded.classifier}. "
            f"Rows 1–{recorded.warm:,} only teach it, {recorded.warm + 1:,}–{recorded.begin:,} "
            f"calibrate, the other {rows - recorded.begin:,} are judged.{note}",
            _main_table(result),
            "\n".join(f"- {line}" for line in findings(result)),
            linked(
                folder / f"classification_{recorded.name}.png", "Coverage and set size over time"
            ),
            f"Means over the last {WINDOW} rows. {drift}",
            "What the step size does:",
            _pace_table(result),
        ]
    return "\n\n".join(parts) + "\n"


def _introduction(quick: bool) -> str:
    cut = " A quick run: only the first rows of each stream." if quick else ""
    return (
        "A classifier learns online: each row is predicted, then learnt. Its probabilities are "
        "recorded once, and every method is judged on the same ones, on the rows after the "
        f"calibration part.{cut}\n\n"
        "- *Uncalibrated*: the fewest likeliest classes that have 90 % of the probability (of "
        "several labels: 90 % of the expected number), the probabilities taken at their word.\n"
        "- *Fixed threshold*: split conformal prediction, the ⌈0.9(n + 1)⌉-th smallest score of "
        "the calibration rows, never changed (of several labels: conformal risk control).\n"
        "- *Controlled*: rolling risk control. Start and step size come from the calibration rows "
        "by `setpoint.burn_in` with its defaults: γ is 5 % of the interquartile range of their "
        "critical values (of their largest, where that range is 0). Nothing of it was tuned on the "
        "rows that are judged; the classifiers and their rates were picked, before any "
        "calibration, by their accuracy over whole streams, which serves all methods alike.\n"
        "- *Self-adjusting (ours)*: `sp.label_sets()`, which takes nothing from the calibration "
        "rows and is not in the paper.\n"
        "- *Controlled, ACI*: adaptive conformal inference, γ = 0.005 and the last 500 scores, "
        "filled from the calibration rows.\n\n"
        f"Windows have {WINDOW} rows: of all of them, the one with the worst and the one with the "
        "best mean. MSL is the mean length of a streak of misses. The bound is how far, in "
        "points, the mean can be from what was asked, whatever the stream does.\n\n"
        "*Δ by class* is how far the coverage of a class is from 90 %, the mean over classes. The "
        "interval of the gain in balance (appendix G) is the basic one of a bootstrap of this one "
        f"run: {DRAWS:,} draws of blocks of {BLOCK} consecutive rows, the same blocks for both "
        "families. A claim holds or fails where its interval does not contain 0. The interval "
        "takes the stream for one whose parts are alike, and can be too narrow where one family "
        "misses in long streaks."
    )


# Figures


def draw(result: Result, path: Path) -> Path:
    """Coverage (or false negatives) in % and set size, over windows, one panel each."""
    recorded = result.recorded
    made, panels = figure(2, 1, sharex=True, height=2.1)
    upper, lower = panels[:, 0]
    moments = [row for row, _ in recorded.marks if row > recorded.begin]
    mark(upper, level=100.0 * (LEVEL if recorded.several else 1.0 - LEVEL), at=moments)
    mark(lower, at=moments)
    for method, family, name, colour, stroke in _LINES:
        for each in result.outcomes:
            if each.method == method and family in (None, each.family):
                look: Any = {"color": COLOURS[colour], "linestyle": stroke, "linewidth": 1.1}
                losses = rolling(each.losses)
                held = losses if recorded.several else 1.0 - losses
                rows = recorded.begin + len(each.losses) - np.arange(len(held))[::-1]
                upper.plot(rows, 100.0 * held, label=name, **look)
                lower.plot(rows, rolling(set_sizes(each.masks).astype(float)), **look)
    upper.set_title(recorded.name)
    upper.set_ylabel("false negatives, %" if recorded.several else "coverage, %")
    lower.set_ylabel("labels in a set")
    lower.set_xlabel("row")
    return save(legend(made), path)
