"""Decisions: a gate beside what people use, on streams of scores and errors.

Those beside it see the label of every request at once, deferred ones too; the gate sees those of
its actions. Each stream is judged after its first rows, which the others are tuned on.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comparison import RESULTS, keep
from setpoint.decisions import Terms, replay
from setpoint.decisions.log import Outcome, outcome
from setpoint.errors import InputError

Floats = NDArray[np.float64]
Rule = Callable[[Floats, Floats, float], NDArray[np.bool_]]
_EVERY, _WINDOW = 500, 2000
GAMMAS = (0.005, 0.02, 0.1, 0.5)
SHARES = (0.01, 0.05)


class Requests(NamedTuple):
    """A stream of requests: its name, the scores, and whether acting would have been wrong."""

    name: str
    score: Floats
    wrong: Floats


def made(rows: int = 20_000, seed: int = 7) -> Iterator[Requests]:
    """Streams whose scores are right, blind, shifted, reversed, rounded, or right for a while."""
    random = np.random.default_rng(seed)
    x, t = random.normal(1.5, 1.5, rows), np.arange(rows)  # x: the log odds of being right
    late, middle = t >= rows // 2, (t >= rows // 3) & (t < 2 * rows // 3)
    wave, blind = x + 2.0 * np.sin(t / 400.0), random.normal(1.5, 1.5, rows)
    chances = {
        "stationary": (x, x), "blind after half": (x, np.where(late, blind, x)),
        "harder for a third": (x, np.where(middle, x - 2.5, x)),
        "scores shift": (np.where(late, x + 2.0, x), x),
        "sure and wrong": (x, np.where(x > 3.0, 0.0, x)),
        "reversed after half": (x, np.where(late, 3.0 - x, x)),
        "hard times, known": (wave, wave), "hard times, unknown": (x, wave),
        "easy": (x, np.full(rows, 5.3)), "all wrong after half": (x, np.where(late, -60.0, x)),
        "five grades": (np.clip(np.round(x), -1, 3), x),
        "drifting": (x, x * np.cos(1.5 * t / rows)),
    }  # fmt: skip
    for name, (score, odds) in chances.items():
        wrong = random.random(rows) < 1.0 / (1.0 + np.exp(odds))
        yield Requests(f"made: {name}", score, wrong.astype(float))


def read(path: str | os.PathLike[str]) -> list[Requests]:
    """The streams of an npz file: arrays with a column of scores and one of errors."""
    with np.load(path) as file:
        arrays = {name: np.asarray(file[name], float) for name in file.files}
    for name, array in arrays.items():
        if array.ndim != 2 or array.shape[1] != 2:
            raise InputError(f"{name} of {path} must have two columns, got shape {array.shape}")
    return [
        Requests(name, array[:, 0].copy(), array[:, 1].copy()) for name, array in arrays.items()
    ]


# What people use


def tuning(rows: int) -> int:
    """How many first rows the others are tuned on."""
    return min(_WINDOW, rows // 4)


def threshold(score: Floats, wrong: Floats, share: float, slack: int = 0) -> float:
    """The least threshold whose errors, and some more, are within a share of these rows."""
    order = np.argsort(-score, kind="stable")
    ends = np.append(np.diff(score[order]) != 0.0, True)
    fits = (np.cumsum(wrong[order]) + slack <= share * (len(score) + slack)) & ends
    return float(score[order][np.flatnonzero(fits)[-1]]) if fits.any() else np.inf


def fixed(score: Floats, wrong: Floats, share: float) -> NDArray[np.bool_]:
    """A threshold tuned once, on the first rows."""
    first = tuning(len(score))
    return score >= threshold(score[:first], wrong[:first], share)


def conformal(score: Floats, wrong: Floats, share: float) -> float:
    """The threshold of a conformal p-value."""
    return threshold(score, wrong, share, 1)


def clopper_pearson(score: Floats, wrong: Floats, share: float) -> float:
    """Learn then test: from strict to loose, until the upper bound of 90 % leaves the share."""
    from scipy.stats import beta

    found, n = np.inf, len(score)
    for candidate in np.quantile(score, np.linspace(0.99, 0.0, 100)):
        errors = wrong[score >= candidate].sum()
        if errors >= n or beta.ppf(0.9, errors + 1, n - errors) > share:
            break
        found = float(candidate)
    return found


def refitted(rule: Callable[[Floats, Floats, float], float]) -> Rule:
    """A threshold made again of the last 2,000 rows, every 500."""

    def run(score: Floats, wrong: Floats, share: float) -> NDArray[np.bool_]:
        act, first = np.zeros(len(score), bool), tuning(len(score))
        for at in range(first, len(score), _EVERY):
            past, now = slice(max(0, at - _WINDOW), at), slice(at, at + _EVERY)
            act[now] = score[now] >= rule(score[past], wrong[past], share)
        return act

    return run


def step(score: Floats, wrong: Floats, share: float) -> NDArray[np.bool_]:
    """A threshold moved by each outcome, with the step that turned out best of four."""
    first, best = tuning(len(score)), (-np.inf, np.zeros(len(score), bool))
    for gamma in np.array(GAMMAS) * score[:first].std():
        at, acts = 0.0, []
        for t, (one, bad) in enumerate(zip(score.tolist(), wrong.tolist(), strict=True)):
            if t < 200:
                at = float(np.median(score[: t + 1]))
            acts.append(one >= at)
            at += gamma * ((bad if acts[-1] else 0.0) - share)
        act = np.array(acts)
        too_many = (act * wrong)[first:].mean() / share - 1.03
        best = max(best, (act[first:].mean() - 5.0 * max(too_many, 0.0), act), key=lambda b: b[0])
    return best[1]


def gate(score: Floats, wrong: Floats, share: float) -> NDArray[np.bool_]:
    """The gate of this library, with labels in time."""
    return replay(Terms(share), score, wrong).act


RULES: dict[str, Rule] = {
    "gate": gate, "a step, best of 4 in hindsight": step,
    "conformal p-value, last 2,000": refitted(conformal),
    "Clopper–Pearson, last 2,000": refitted(clopper_pearson),
    "threshold of the first rows": fixed,
}  # fmt: skip


# The page


def gates(
    *, streams: str | os.PathLike[str] | None = None, out: str | os.PathLike[str] = RESULTS
) -> str:
    """Runs the gate and what people use on every stream, prints the page and stores it.

    The streams are those made here, and the real ones of a file.
    """
    real = [] if streams is None else [one for one in read(streams) if _real(one.name)]
    option = "" if streams is None else f" --streams {Path(streams).name}"
    return keep(page([*real, *made()], option), out, "gates.md")


def page(listed: list[Requests], option: str) -> str:
    """The tables, as Markdown."""
    real = sum(_real(one.name) for one in listed)
    lines = [
        "# Decisions: a gate beside what people use", "",
        f"`python -m comparison gates{option}` prints this page: {real} real streams of requests "
        f"and {len(listed) - real} that are made up so that their law is known. Each rule is asked "
        "to keep errors below a share of all requests. The others see the label of every "
        "request at once and are tuned on the first rows; the gate sees the labels of its actions "
        "and is tuned on nothing. Judged after these first rows.",
        "",
        "*Share acted on* is the mean over the real streams and over the made ones. *Errors* are "
        "those of all requests, divided by what was asked: mean and largest over the streams. "
        "*Too many* is how many errors there were above what was asked, at the worst time of a "
        "stream: mean and largest. *Worst 500* requests in a row: their errors, divided by what "
        "was asked, mean over the streams.",
        "",
    ]  # fmt: skip
    head = (
        "| | share acted on: real, made | errors ÷ asked | too many | worst 500 ÷ asked |\n"
        "|---|--:|--:|--:|--:|"
    )
    single: dict[str, list[Outcome]] = {}
    for share in SHARES:
        lines += [f"## At most {100 * share:g} % of requests", "", head]
        for name, rule in RULES.items():
            single[name] = [_judged(one, rule, share) for one in listed]
            lines.append(_line(name, listed, [[row] for row in single[name]], share))
        lines += ["", f"### Labels late, and for a sample only, at {100 * share:g} %", "", head]
        for name, delay, terms in _LATE:
            rows = [_late(at, one, share, delay, terms) for at, one in enumerate(listed)]
            lines.append(_line(name, listed, rows, share))
        lines += ["", _NOTE, ""]
    lines += [
        f"## Every stream, at most {100 * SHARES[-1]:g} % of requests", "",
        "Share acted on, and errors too many at the worst time.", "",
        "| stream | gate | a step in hindsight | threshold of the first rows |",
        "|---|--:|--:|--:|",
    ]  # fmt: skip
    names = list(RULES)
    for at, one in enumerate(listed):
        cells = (single[name][at] for name in (names[0], names[1], names[-1]))
        texts = (f"{cell.acted:.3f}, {cell.most_above:,.0f}" for cell in cells)
        lines.append(f"| {one.name} | {' | '.join(texts)} |")
    return "\n".join([*lines, ""])


_LATE: tuple[tuple[str, int, dict[str, float]], ...] = (
    ("in time", 0, {}), ("100 late", 100, {}), ("1,000 late", 1000, {}),
    ("audits of 20 %", 0, {"audits": 0.2}), ("audits of 10 %", 0, {"audits": 0.1}),
    ("audits of 20 %, sure of 95 %", 0, {"audits": 0.2, "sure": 0.95}),
    ("audits of 10 %, sure of 95 %", 0, {"audits": 0.1, "sure": 0.95}),
)  # fmt: skip
_COINS = 20
_NOTE = (
    f"The gate alone, judged on all rows; of audits the mean of {_COINS} seeds, each stream with "
    "coins of its own. *Too many* counts true errors. A label that is late, or not looked at, "
    "allows more of them: the certificate of a gate says how many."
)


def _real(name: str) -> bool:
    """Whether a stream was met, not made."""
    return not name.startswith(("made", "syn"))


def _judged(one: Requests, rule: Rule, share: float) -> Outcome:
    first = tuning(len(one.score))
    return outcome(rule(one.score, one.wrong, share)[first:], one.wrong[first:], share)


def _late(
    at: int, one: Requests, share: float, delay: int, terms: dict[str, float]
) -> list[Outcome]:
    seeds = range(_COINS * at, _COINS * (at + 1) if terms else _COINS * at + 1)
    asked = Terms(share, **terms)  # type: ignore[arg-type]
    done = [replay(asked, one.score, one.wrong, seed=seed, delay=delay) for seed in seeds]
    return [outcome(each.act, one.wrong, share) for each in done]


def _line(name: str, listed: list[Requests], rows: list[list[Outcome]], share: float) -> str:
    """A row of a table: what came of a rule, from the outcomes of each stream."""
    acted, errors, above, worst = (
        np.array([[getattr(one, field) for one in row] for row in rows])
        for field in ("acted", "per_request", "most_above", "worst_window")
    )
    real = np.array([_real(one.name) for one in listed])
    shares = [f"{acted[part].mean():.3f}" if part.any() else "–" for part in (real, ~real)]
    return (
        f"| {name} | {', '.join(shares)} | {errors.mean() / share:.2f}, "
        f"{errors.max() / share:.2f} | {above.mean():,.1f}, {above.max():,.0f} | "
        f"{worst.mean() / share:.2f} |"
    )
