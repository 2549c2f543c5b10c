"""The paper's regression experiments: from real data to results and figures (sections 4.1.1–4.1.4).

data set → online model → tape (`tapes`) → every method (`methods`) tuned and judged (`protocol`,
`measures`, `ranges`) → results on disk (`results`) and figures (`figures`).
"""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from setpoint._check import choice, whole
from setpoint.errors import DataError, InputError
from setpoint.stream import Stream
from setpoint_paper.models.lstm import LSTMSettings, QuantileLSTM
from setpoint_paper.tabular.figures import draw
from setpoint_paper.tabular.measures import Judge, Row
from setpoint_paper.tabular.methods import Protocol, controller
from setpoint_paper.tabular.protocol import calibrate, coded, step_sizes
from setpoint_paper.tabular.ranges import Range, ranges
from setpoint_paper.tabular.results import Results, load, store
from setpoint_paper.tabular.tapes import DATASETS, Recipe, make_all, read
from setpoint_paper.tabular.training import SWITCHED, TRAININGS, recipe
from setpoint_paper.work import each, folder_of, one_thread

_AUTHORS_SCALE_ROWS = 8_000
_CHOICES = ("text", "printed")
_JUDGING = 1
"""Raised when a method gives other numbers on the same tape: rows that were stored before are then
not kept."""

_SWITCHED_SEEDS = 3
"""Seeds of the printed training with one step switched."""

_QUICK_ROWS, _QUICK = 10_000, {"gammas": (0.025, 0.1, 0.35), "budget": 4}
"""What a quick run has: rows of each data set, and what is tried."""

STUDIED = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.35, 1.0, 3.5, 10.0)
"""The step sizes of the study of γ, in standard deviations of y: the paper's and far beyond."""


def reproduce(
    *,
    datasets: Sequence[str] = DATASETS,
    seeds: int = 5,
    training: str = "text",
    jobs: int = 1,
    quick: bool = False,
    out: str | os.PathLike[str] = "results",
    cache: str | os.PathLike[str] | None = None,
) -> Results:
    """Runs the experiments and stores their results and figures.

    Tapes are kept and found again by their content, so a run that was stopped goes on where it
    was, and a second run only calibrates. Rows that stand in `out` are kept where their tape is
    not at hand and would be the same, so seeds can be added from any machine.

    The parameters are the options of `setpoint-paper tabular`; `cache` is the folder of tapes, by
    default the one that `SETPOINT_TAPES` names, else the platform's. Of the printed training come
    three seeds with each step switched, too. A quick run is a linear model once, on 10,000 rows
    with a few γ and β: seconds, and nothing to judge.
    """
    if isinstance(datasets, str) or not datasets:
        raise InputError(f"datasets must be some of {', '.join(DATASETS)}, got {datasets!r}")
    for name in datasets:
        choice(name, "a data set", DATASETS)
    choice(training, "training", _CHOICES)
    count = whole(seeds, "seeds", 1)
    whole(jobs, "jobs", 1)
    folder, stem = Path(out), {"text": "tabular", "printed": "tabular-printed"}[training]
    if quick:
        training, stem = "text", "tabular-quick"
        plan = [
            (Recipe(name, "linear", rows=_QUICK_ROWS), "text") for name in (*datasets, "synthetic")
        ]
    else:
        studied = ("synthetic",) if training == "text" else ()
        plan = [
            (recipe(training, name, seed), training)
            for seed in range(count)
            for name in (*datasets, *studied)
        ]
    if training == "printed":
        plan += [
            (recipe(switched, name, seed), switched)
            for switched in SWITCHED
            for seed in range(min(count, _SWITCHED_SEEDS))
            for name in datasets
        ]
    earlier, place = _earlier(folder, stem), folder_of(cache)
    stored = set(earlier.about["tapes"])
    make_all([one for one, _ in plan if one.name not in stored], place, jobs)
    results = _gathered(plan, place, earlier, jobs)
    store(results, folder, stem)
    draw(results, folder, stem)
    print(f"Results and figures: {folder / stem}*; `setpoint-paper summary` judges them.")
    return results


def _gathered(
    plan: Sequence[tuple[Recipe, str]], cache: Path, earlier: Results, jobs: int
) -> Results:
    """The rows of every tape at hand, judged anew, and earlier ones of those that are not.

    The plan has recipes with their trainings; the training of the first is that of the results.
    """
    (first, training), stored = plan[0], set(earlier.about["tapes"])
    found = [(one, name) for one, name in plan if one.path(cache).is_file()]
    kept = [(one, name) for one, name in plan if one.name in stored and (one, name) not in found]
    datasets = dict.fromkeys(one.dataset for one, _ in plan if one.dataset != "synthetic")
    used = {one.dataset: one.data() for one, name in (*found, *kept) if name == training}
    used.pop("synthetic", None)
    if not used:
        raise InputError(f"no tape of {', '.join(datasets)} is finished in {cache}")
    if stored:
        gone = len(stored - {one.name for one, _ in plan})
        print(
            f"Of the tapes whose rows are stored, {len(kept)} are not in {cache} and their rows "
            f"are kept; {gone} are of other seeds, data or settings and their rows go.",
        )
    judged = each(_judge, [(one, cache, name) for one, name in found], jobs, "calibrating")
    rows = [row for tape_rows, _ in judged for row in tape_rows]
    rows += [row for one, name in kept for row in earlier.of_tape(one.dataset, one.seed, name)]
    seeds = {(one.dataset, one.seed) for one, _ in kept}
    ranged = [one for one in earlier.ranged if (one.dataset, one.seed) in seeds]
    ranged += [one for _, tape_ranges in judged for one in tape_ranges]
    order = {name: number for number, name in enumerate((*datasets, "synthetic"))}
    rows.sort(key=lambda row: (order[row.dataset], row.seed, row.switched))
    ranged.sort(key=lambda one: (order[one.dataset], one.seed))
    chosen, online = TRAININGS[training], first.model == "lstm"
    own = [one for one, name in found if name == training]
    return Results(
        tuple(row for row in rows if row.dataset != "synthetic"),
        tuple(row for row in rows if row.dataset == "synthetic"),
        {
            "model": f"quantile LSTM, batch {chosen.batch}" if online else "linear quantiles",
            "scale_rows": chosen.scale_rows,
            "units": {name: data.unit for name, data in used.items()},
            "notes": {name: data.note for name, data in used.items()},
            "gamma_factor": {
                name: _factor(data.y, chosen.rows_for(name)) for name, data in used.items()
            },
            "cost": cost(own[0], cache) if online and own else earlier.about["cost"],
            "judging": _JUDGING,
            # Tapes of the linear model are made anew, within a minute.
            "tapes": sorted(one.name for one, _ in (*found, *kept)) if online else [],
        },
        tuple(ranged),
    )


def _earlier(folder: Path, stem: str) -> Results:
    """The results in a folder whose rows may be kept; none if other code made them."""
    try:
        found = load(folder, stem)
    except DataError:
        found = Results((), ())
    known = found.about.get("judging") == _JUDGING
    return found if known else Results((), (), {"tapes": [], "cost": None})


def protocol_of(training: str, dataset: str) -> Protocol:
    """Which rows of a data set serve for what under a training."""
    chosen = TRAININGS[training]
    rows = chosen.rows_for(dataset)
    return Protocol(scale_rows=rows, tuned=rows if chosen.split else Protocol().tuned)


def cost(recipe: Recipe, cache: Path, steps: int = 300) -> list[float]:
    """The milliseconds of a step of the model, and of a step of live calibration."""
    data, tape = recipe.data(), read(recipe, cache)
    assert tape is not None  # only finished tapes are asked for
    settings = recipe.model_settings()
    assert isinstance(settings, LSTMSettings)  # the linear model is not timed
    model = QuantileLSTM(data.x.shape[1], settings)
    model.fit_scale(data.x, data.y)
    lower, upper = tape.prediction
    # From the second run on there is nothing left to compile or to allocate.
    with one_thread():
        for row in range(recipe.batch):
            model.learn(data.x[row], data.y[row])
        marks = [time.process_time()]
        for row in range(recipe.batch, recipe.batch + steps):
            model.predict(data.x[row])
            model.learn(data.x[row], data.y[row])
        marks.append(time.process_time())
    stream = Stream(controller("error", "coverage", 0.05, Protocol(), 1.0))
    for first in (0, 10 * steps):
        if first:
            marks.append(time.process_time())
        for row in range(first, first + 10 * steps):
            stream.predict((lower[row], upper[row]))
            stream.update(tape.y[row])
    marks.append(time.process_time())
    spans = [after - before for before, after in pairwise(marks)]
    return [round(1e3 * spans[0] / steps, 4), round(1e3 * spans[-1] / (10 * steps), 5)]


def _factor(y: np.ndarray, scale_rows: int) -> float:
    """What a γ of the authors, who scaled by 8000 rows, is multiplied by to be in our unit."""
    return round(float(y[:_AUTHORS_SCALE_ROWS].std() / y[:scale_rows].std()), 4)


def _judge(recipe: Recipe, cache: Path, training: str) -> tuple[list[Row], list[Range]]:
    """A tape under every method, or under the studied γ.

    Where one step of the printed training is switched: their code without stretching and with error
    adaptive alone. The ranges of β are those of the text's training.
    """
    tape = read(recipe, cache)
    assert tape is not None  # only finished tapes are asked for
    name, seed, protocol = recipe.dataset, recipe.seed, protocol_of(training, recipe.dataset)
    if name == "synthetic":
        return step_sizes(tape, STUDIED, seed, protocol), []
    if training in SWITCHED:
        methods = ("none_coded", "error_coded")
        rows = coded(Judge(tape, name, seed, protocol), "coverage", methods)
        return [replace(row, method=f"{row.method}; {training}") for row in rows], []
    if recipe.model == "linear":
        return calibrate(tape, name, seed, replace(protocol, **_QUICK)), []  # type: ignore[arg-type]
    rows = calibrate(tape, name, seed, protocol)
    if training != "text":
        return rows, []
    adaptive = [row for row in rows if (row.method, row.risk) == ("error", "coverage")]
    return rows, ranges(tape, min(adaptive, key=lambda row: row.tuning), protocol)
