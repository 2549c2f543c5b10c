"""How large label sets are on streams that change, beside the rules of others.

Streams are of two halves: one chose the constants of `correction.Labels`, the other checks them.
Three of the real data sets come with River and are left out where it is missing. Several true
labels: yeast.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import setpoint as sp
from comparison import RESULTS, keep
from setpoint.errors import AbsentFile
from setpoint.sets import Multilabel, Threshold
from setpoint.steps import Account, Fixed
from setpoint.stretches import Tracking
from setpoint_paper.datasets import load
from setpoint_paper.pages import table
from setpoint_paper.work import each

DELAYS = (0, 10, 100)
BEGIN, WINDOW, COVERAGE = 200, 250, 0.9
GAMMAS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)

Array = np.ndarray[Any, Any]
Stream = tuple[Array, Array]
"""Probabilities, a row for each prediction, and the places of the true classes."""


# The streams


def softmax(scores: Array) -> Array:
    """Probabilities of scores."""
    parts = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(parts / parts.sum(axis=1, keepdims=True))


def made_up(kind: str, seed: int, classes: int, rows: int = 5000) -> Stream:
    """A model whose frequent classes, sureness, noise or knowledge of classes change."""
    random, t = np.random.default_rng(seed), np.arange(rows)
    size = 2.5 if classes < 100 else 4.0 if classes == 100 else 6.0
    scores, prior = random.normal(size=(rows, classes)) * size, np.zeros((rows, classes))
    if kind == "shift":
        phase = random.uniform(0, 2 * np.pi, classes)
        prior = 2.5 * np.sin(2 * np.pi * t[:, None] / 1700 + phase)
    truth = softmax(scores + prior)
    y = (truth.cumsum(axis=1) > random.uniform(size=(rows, 1))).argmax(axis=1)
    third = np.where(t < rows // 3, 1.0, np.where(t < 2 * rows // 3, 3.0, 0.4))[:, None]
    late = t >= rows // 2
    if kind == "sure":
        p = softmax(scores * third)
    elif kind == "noise":
        noise = random.normal(size=(rows, classes)) * np.where(late, 1.5, 0.5)[:, None]
        p = softmax(scores * np.where(late, 0.6, 1.0)[:, None] + noise)
    elif kind == "new":
        place, came = np.arange(classes), np.minimum(t // 1200, 3)
        known = np.minimum(np.maximum(t - 500, 0) // 1200, 3)
        truth = softmax(np.where(place <= (classes - 4 + came)[:, None], scores, -40))
        y = (truth.cumsum(axis=1) > random.uniform(size=(rows, 1))).argmax(axis=1)
        p = softmax(np.where(place <= (classes - 4 + known)[:, None], scores, -14))
    else:
        p = softmax(scores)
    p = np.maximum(p, 1e-12)
    return p / p.sum(axis=1, keepdims=True), y


def switching(seed: int = 6, classes: int = 6, rows: int = 6000, width: int = 5) -> Stream:
    """Features of classes whose meaning changes twice."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(3, classes, width)) * 1.5
    y, third = random.integers(0, classes, rows), np.minimum(np.arange(rows) * 3 // rows, 2)
    return centres[third, y] + random.normal(size=(rows, width)), y


def moving(seed: int = 5, classes: int = 12, rows: int = 6000, width: int = 4) -> Stream:
    """Features of classes whose centres move, and sometimes change places."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(classes, width)) * 2
    speeds = random.normal(size=(classes, width)) * 0.002
    x, y = np.zeros((rows, width)), random.integers(0, classes, rows)
    for t in range(rows):
        centres += speeds
        if t % 1500 == 1499:
            i, j = random.choice(classes, 2, replace=False)
            centres[[i, j]] = centres[[j, i]]
        x[t] = centres[y[t]] + random.normal(size=width)
    return x, y


def real(name: str) -> Stream:
    """Features and classes of a data set; of the gases every fourth feature."""
    data = load(name, rows=7_000 if name == "power_supply" else None)
    return data.x[:, :: 4 if name == "gas_drift" else 1], np.asarray(data.y)


def of_river(name: str, label: str | None) -> Stream:
    """A data set that comes with River, at most 6,000 rows of it."""
    import pandas as pd
    import river

    frame = pd.read_csv(Path(river.__file__).parent / "datasets" / name)
    label = frame.columns[-1] if label is None else label
    y = pd.factorize(frame[label])[0]
    x = frame.drop(columns=label).select_dtypes("number").to_numpy(float)
    step = max(1, len(y) // 6000)
    return x[::step][:6000], y[::step][:6000]


def modelled(x: Array, y: Array) -> Iterator[tuple[str, Stream]]:
    """Three models: trained once, on the last 1,500 rows every 250, and every 500."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.preprocessing import StandardScaler

    names = np.unique(y)
    y, rows = np.searchsorted(names, y), len(y)
    first = max(200, rows // 15)
    z = np.clip(np.nan_to_num(StandardScaler().fit(x[:first]).transform(x)), -20, 20)

    def asked(model: Any, rows: Array) -> Array:
        p = np.full((len(rows), len(names)), 1e-6)
        known = np.nan_to_num(model.predict_proba(rows), nan=1 / len(names))
        p[:, model.classes_] = np.maximum(known, 1e-6)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    stale = LogisticRegression(max_iter=200).fit(z[:first], y[:first])
    yield "stale", (asked(stale, z[first:]), y[first:])
    bayes, forest = (np.zeros((rows - first, len(names))) for _ in range(2))
    for begin in range(first, rows, 250):
        end, past = min(begin + 250, rows), slice(max(0, begin - 1500), begin)
        model = GaussianNB(var_smoothing=1e-3).fit(z[past], y[past])
        bayes[begin - first : end - first] = asked(model, z[begin:end])
        if (begin - first) % 500 == 0:
            trees = RandomForestClassifier(25, min_samples_leaf=3, random_state=0)
            trees.fit(z[past], y[past])
        forest[begin - first : end - first] = asked(trees, z[begin:end])
    yield "bayes", (bayes, y[first:])
    yield "forest", (forest, y[first:])


def streams(half: str) -> dict[str, Stream]:
    """The streams of a half, as far as their data are at hand."""
    made: dict[str, dict[str, tuple[str, int, int, int]]] = {
        "development": {"shift 8": ("shift", 1, 8, 5000), "sure 10": ("sure", 2, 10, 5000)},
        "validation": {
            "shift 15": ("shift", 3, 15, 5000), "sure 20": ("sure", 4, 20, 5000),
            "noise 100": ("noise", 5, 100, 5000), "noise 1000": ("noise", 6, 1000, 3000),
            "new 10": ("new", 7, 10, 5000),
        },
    }  # fmt: skip
    modelling: dict[str, dict[str, Callable[[], Stream]]] = {
        "development": {
            "gas": lambda: real("gas_drift"), "power": lambda: real("power_supply"),
            "switch": switching,
            "segment": lambda: of_river("segment.csv.zip", "category"),
        },
        "validation": {
            "outdoor": lambda: real("outdoor"), "moving": moving,
            "shuttle": lambda: of_river("shuttle.csv.gz", None),
            "phishing": lambda: of_river("phishing.csv.gz", None),
        },
    }  # fmt: skip
    found = {name: made_up(*options) for name, options in made[half].items()}
    for name, read in modelling[half].items():
        try:
            content = read()
        except (AbsentFile, ModuleNotFoundError):
            continue
        found |= {f"{name}, {model}": stream for model, stream in modelled(*content)}
    return found


# The rules


def before() -> sp.Controller:
    """The rule for sets with one λ, on −p."""
    account = Account(10.0, 0.15, share=2.0, ease=5.0, ahead=2.0, wall=2)
    risk = sp.Risk(sp.losses.Miscoverage(), 1.0 - COVERAGE, account)
    return sp.Controller(Threshold(), risk, Tracking())


def fixed(gamma: float) -> sp.Controller:
    """The paper's rule."""
    return sp.Controller(Threshold(), sp.Risk(sp.losses.Miscoverage(), 0.1, Fixed(gamma)))


_BEFORE = "stretches.Tracking"
RULES: dict[str, Callable[[], sp.Controller]] = {
    _BEFORE: before,
    "sp.label_sets": lambda: sp.label_sets(COVERAGE),
    "the same, never empty": lambda: sp.label_sets(COVERAGE, never_empty=True),
    "ACI, γ = 0.005": lambda: sp.published.aci(COVERAGE, scores=Threshold(), size=300),
    "ACI, γ = 0.05": lambda: sp.published.aci(COVERAGE, scores=Threshold(), gamma=0.05, size=300),
}
HINDSIGHT = "the paper's, γ in hindsight"


def measured(controller: sp.Controller, stream: Stream, delay: int) -> dict[str, float]:
    """Coverage, size, worst window and class, empty and full sets, after the first rows."""
    p, y = stream
    names = [f"p{place}" for place in range(p.shape[1])]
    tape = sp.Tape.from_arrays(p, y.astype(float), names=names, delay=delay)
    trace = sp.replay(controller, tape)
    masks = np.array([shown.mask for shown in trace.shown or ()])[BEGIN:]
    y = y[BEGIN:]
    hits, sizes = masks[np.arange(len(y)), y].astype(float), masks.sum(axis=1)
    sums = np.append(0.0, hits.cumsum())
    classes = [hits[y == k].mean() for k in np.unique(y) if (y == k).sum() >= 30]
    return {
        "coverage": float(hits.mean()),
        "size": float(sizes.mean()),
        "window": float((sums[WINDOW:] - sums[:-WINDOW]).min() / WINDOW),
        "class": float(min(classes, default=hits.mean())),
        "empty": float((sizes == 0).mean()),
        "full": float((sizes == p.shape[1]).mean()),
    }


def compared(stream: Stream, delay: int) -> dict[str, dict[str, float]]:
    """What every rule does on a stream."""
    found = {name: measured(rule(), stream, delay) for name, rule in RULES.items()}
    tried = [measured(fixed(gamma), stream, delay) for gamma in GAMMAS]
    near = [row for row in tried if abs(row["coverage"] - COVERAGE) <= 0.01]
    near = near or [min(tried, key=lambda row: abs(row["coverage"] - COVERAGE))]
    return found | {HINDSIGHT: min(near, key=lambda row: row["size"])}


# Several true labels


def yeast() -> dict[str, dict[str, tuple[float, float, float]]]:
    """Loss, size and full sets of two rules behind three models of 14 labels."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    data = load("yeast")
    x, y = data.x, np.asarray(data.y)
    first, level = 400, 0.1
    risk = sp.Risk(sp.losses.FalseNegatives(), level)
    account = Account(10.0, 0.15, share=2.0, ease=5.0, ahead=2.0, wall=2)
    held = sp.Risk(sp.losses.FalseNegatives(), level, account)
    rules = {
        "stretches.Tracking": sp.Controller(Multilabel(), held, Tracking()),
        "sp.label_sets": sp.label_sets(risk=risk),
    }
    models: dict[str, Callable[[], Any]] = {
        "stale": lambda: LogisticRegression(max_iter=300), "bayes": GaussianNB,
        "forest": lambda: RandomForestClassifier(50, random_state=0),
    }  # fmt: skip
    found: dict[str, dict[str, tuple[float, float, float]]] = {}
    for name, model in models.items():
        p = np.zeros((len(x) - first, 14))
        for k in range(14):
            p[:, k] = model().fit(x[:first], y[:first, k]).predict_proba(x[first:])[:, 1]
        for rule, controller in rules.items():
            stream = sp.Stream(controller)
            sizes, losses = list[int](), list[float]()
            for row, true in zip(np.clip(p, 1e-6, 1.0 - 1e-6), y[first:], strict=True):
                sizes.append(len(stream.predict(row)))
                loss = stream.update(true)
                losses += [] if loss is None else [loss]
            late = np.array(sizes[BEGIN:])
            full = float((late == 14).mean())
            found.setdefault(name, {})[rule] = float(np.mean(losses)), float(late.mean()), full
    return found


# The page


def classes(*, jobs: int = 1, out: str | os.PathLike[str] = RESULTS) -> str:
    """Runs every rule on every stream at hand, prints the tables and stores them.

    Parameters
    ----------
    jobs
        How many processes.
    out
        The folder for `classes.md`.
    """
    parts = [
        "# Label sets",
        "    python -m comparison classes",
        f"Asked for {COVERAGE:.0%}. Sizes are geometric means beside `{_BEFORE}`, the rule for "
        f"other sets; windows have {WINDOW} rows, classes 30 labels or more; in brackets the worst "
        "of all streams. Models are trained once (*stale*) or again and again (*bayes*, *forest*).",
    ]
    for half in ("development", "validation"):
        content = streams(half)
        for delay in DELAYS:
            some = [(stream, delay) for stream in content.values()]
            rows = each(compared, some, jobs, half)
            late = f"labels {delay} rows late" if delay else "labels in time"
            parts += [f"## {half.capitalize()}, {len(rows)} streams, {late}", _summed(rows)]
            if not delay:
                shown = (_BEFORE, "sp.label_sets", HINDSIGHT)
                lines = [
                    [name, *(f"{row[rule]['size']:.2f}" for rule in shown)]
                    for name, row in zip(content, rows, strict=True)
                ]
                parts += ["Mean sizes, stream by stream:", table(["", *shown], lines)]
    lines = [
        [name, rule, f"{loss:.4f}", f"{size:.2f}", f"{full:.1%}"]
        for name, by_rule in yeast().items()
        for rule, (loss, size, full) in by_rule.items()
    ]
    head = ["model", "rule", "left out", "size", "full sets"]
    parts += ["## Several labels, at most 10 % of them left out: yeast", table(head, lines)]
    return keep("\n\n".join(parts) + "\n", out, "classes.md")


def _summed(rows: list[dict[str, dict[str, float]]]) -> str:
    """A line for each rule."""
    lines = []
    for rule in (*RULES, HINDSIGHT):
        own = {name: np.array([row[rule][name] for row in rows]) for name in rows[0][rule]}
        sizes = own["size"] / np.array([row[_BEFORE]["size"] for row in rows])
        far = np.abs(own["coverage"] - COVERAGE).max()
        worst = [f"{own[name].mean():.1%} ({own[name].min():.1%})" for name in ("window", "class")]
        lines.append([
            rule, f"{own['coverage'].mean():.2%}", f"{100.0 * far:.2f}",
            f"{np.exp(np.log(sizes).mean()):.3f}", *worst,
            f"{own['empty'].mean():.1%}", f"{own['full'].mean():.1%}",
        ])  # fmt: skip
    head = ["", "coverage", "furthest, points", "size", "worst window", "worst class", "empty",
            "full"]  # fmt: skip
    return table(head, lines)
