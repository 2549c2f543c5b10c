"""The paper's regression experiments: from real data to tables and figures (sections 4.1.1–4.1.4).

data set → online model → tape (`tapes`) → every method (`methods`) tuned and judged (`protocol`,
`measures`) → results on disk (`results`) → `claims` and their `verdicts` → report (`tables`,
`beside`) and figures (`figures`).
"""

import os
import shlex
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._check import choice, whole
from setpoint.errors import DataError, InputError
from setpoint.stream import Stream
from setpoint.tape import Tape
from setpoint_paper.datasets import Dataset, true_quantiles
from setpoint_paper.models.lstm import LSTMSettings, QuantileLSTM
from setpoint_paper.pages import linked
from setpoint_paper.tabular.figures import draw
from setpoint_paper.tabular.measures import Row
from setpoint_paper.tabular.methods import Protocol, controller
from setpoint_paper.tabular.protocol import calibrate, coded, step_sizes
from setpoint_paper.tabular.results import Results, load, store
from setpoint_paper.tabular.tables import brief, report
from setpoint_paper.tabular.tapes import DATASETS, MODELS, Recipe, make_all, read
from setpoint_paper.tabular.training import SWITCHED, TRAININGS, recipe
from setpoint_paper.work import each, folder_of, one_thread, say, screen

__all__ = ["DATASETS", "STUDIED", "cost", "protocol_of", "redraw", "reproduce"]

_AUTHORS_SCALE_ROWS = 8_000
_CHOICES = ("text", "printed")
_JUDGING = 1
"""Raised when a method gives other numbers on the same tape: rows that were stored before are then
not kept."""

STUDIED = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.35, 1.0, 3.5, 10.0)
"""The step sizes of the study of γ, in standard deviations of y: the paper's and far beyond."""


def reproduce(
    *,
    datasets: Sequence[str] = DATASETS,
    seeds: int = 5,
    model: str = "lstm",
    training: str = "text",
    jobs: int = 1,
    quick: bool = False,
    out: str | os.PathLike[str] = "results",
    ready: bool = False,
    cache: str | os.PathLike[str] | None = None,
) -> Results:
    """Runs the experiments, prints their report and stores it with its figures.

    Tapes are kept and found again by their content, so a run that was stopped goes on where it
    was, and a second run only calibrates. Rows that stand in `out` are kept where their tape is
    not at hand and would be the same, so seeds can be added from any machine.

    Parameters
    ----------
    datasets
        Some of `DATASETS`.
    seeds
        How many initialisations of the LSTM, from 0 on; the linear model is not random.
    model
        "lstm" or "linear".
    training
        How the LSTM is trained: "text", as the paper says, or "printed", as behind its numbers; see
        `training.TRAININGS`. Of the second also the tapes that have one step switched are used,
        where they are finished; `setpoint-paper tapes` makes them.
    jobs
        How many processes.
    quick
        The linear model instead, whatever `model` is: minutes.
    out
        The folder for the report, the results and the figures.
    ready
        Use the tapes that are finished and make no others.
    cache
        The folder of tapes; by default the one that `SETPOINT_TAPES` names, else the platform's.
    """
    console = screen()
    if isinstance(datasets, str) or not datasets:
        raise InputError(f"datasets must be some of {', '.join(DATASETS)}, got {datasets!r}")
    for name in datasets:
        choice(name, "a data set", DATASETS)
    model = "linear" if quick else choice(model, "model", MODELS)
    choice(training, "training", _CHOICES)
    count = 1 if model == "linear" else whole(seeds, "seeds", 1)
    whole(jobs, "jobs", 1)
    if model == "linear":
        say(
            console,
            f"{'--quick' if quick else '--model linear'}: the linear model, which is not random, "
            "runs once a data set; --seeds and --training"
            f"{', like --model,' if quick else ''} change nothing.",
        )
    folder, stem = Path(out), _stem(model, training)
    if model == "linear":
        plan = [(Recipe(name, model), "text") for name in (*datasets, "synthetic")]
    else:
        studied = ("synthetic",) if training == "text" else ()
        plan = [
            (recipe(training, name, seed), training)
            for seed in range(count)
            for name in (*datasets, *studied)
        ]
    needed = [one for one, _ in plan]
    if training == "printed" and model == "lstm":
        plan += [
            (recipe(switched, name, seed), switched)
            for switched in SWITCHED
            for seed in range(count)
            for name in datasets
        ]
    earlier, place = _earlier(folder, stem), folder_of(cache)
    if not ready:
        stored = set(earlier.about["tapes"])
        make_all([one for one in needed if one.name not in stored], place, jobs, console)
    results = _gathered(plan, place, earlier, jobs, console)
    results.about["command"] = _command(datasets, count, model, training, quick, folder, ready)
    results.about["asked"] = count if model == "lstm" else None
    store(results, folder, stem)
    return redraw(folder, stem)


def _gathered(
    plan: Sequence[tuple[Recipe, str]], cache: Path, earlier: Results, jobs: int, console: Any
) -> Results:
    """The rows of every tape at hand, judged anew, and earlier ones of those that are not.

    The plan has recipes with their trainings; the training of the first is that of the page.
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
        say(
            console,
            f"Of the tapes whose rows are stored, {len(kept)} are not in {cache} and their rows "
            f"are kept; {gone} are of other seeds, data or settings and their rows go.",
        )
    judged = each(_judge, [(one, cache, name) for one, name in found], jobs, console, "calibrating")
    rows = [row for tape_rows, _ in judged for row in tape_rows]
    rows += [row for one, name in kept for row in earlier.of_tape(one.dataset, one.seed, name)]
    order = {name: number for number, name in enumerate((*datasets, "synthetic"))}
    rows.sort(key=lambda row: (order[row.dataset], row.seed, row.switched))
    chosen, online = TRAININGS[training], first.model == "lstm"
    own = [one for one, name in found if name == training]
    spent = cost(own[0], cache) if online and own else earlier.about["cost"]
    return Results(
        tuple(row for row in rows if row.dataset != "synthetic"),
        tuple(row for row in rows if row.dataset == "synthetic"),
        {
            "model": f"quantile LSTM, batch {chosen.batch}" if online else "linear quantiles",
            "training": _SAID[training] if online else "",
            "scale_rows": chosen.scale_rows,
            "units": {name: data.unit for name, data in used.items()},
            "notes": {
                name: _note(data, protocol_of(training, name).tuned) for name, data in used.items()
            },
            "gamma_factor": {
                name: _factor(data.y, chosen.rows_for(name)) for name, data in used.items()
            },
            "seconds": [
                [round(value, 2) for value in took]
                for (one, name), (_, took) in zip(found, judged, strict=True)
                if name == training and one.dataset != "synthetic"
            ]
            or earlier.about["seconds"],
            "cost": spent,
            "judging": _JUDGING,
            # Tapes of the linear model are made anew, within a minute.
            "tapes": sorted(one.name for one, _ in (*found, *kept)) if online else [],
        },
    )


def _earlier(folder: Path, stem: str) -> Results:
    """The results in a folder whose rows may be kept; none if other code made them."""
    try:
        found = load(folder, stem)
    except DataError:
        found = Results((), ())
    if found.about.get("judging") == _JUDGING:
        return found
    return Results((), (), {"tapes": [], "seconds": [], "cost": None})


_SAID = {
    "text": "The LSTM learns from the last 512 rows, as the text says; x, y and θ are scaled by "
    "5,000 rows, all before those tuned on, where the text has 8,000.",
    "printed": "The LSTM is trained as behind the printed numbers: on the last 256 rows; x, y and "
    "θ are scaled by the first 40 % of the rows, 8,000 or, of energy, 7,894, all those before the "
    "rows judged; and four rows of raw zeros, standardised like all others, stand before the "
    "first and are learnt from while they are in the batch.",
}


def protocol_of(training: str, dataset: str) -> Protocol:
    """Which rows of a data set serve for what under a training."""
    chosen = TRAININGS[training]
    rows = chosen.rows_for(dataset)
    return Protocol(scale_rows=rows, tuned=rows if chosen.split else Protocol().tuned)


def _stem(model: str, training: str) -> str:
    """What the names of the files begin with, so that several models may share a folder."""
    if model == "linear":
        return "tabular-linear"
    return "tabular" if training == "text" else f"tabular-{training}"


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


def _note(data: Dataset, judged: int) -> str:
    """What a reader of the results must know: what the loader says, rows told twice, long gaps."""
    parts = [data.note] if data.note else []
    if data.time is not None:
        again = (np.diff(data.time).astype(int) == 0) & (np.diff(data.y) == 0.0)
        share = float(again[judged - 1 :].mean())
        if share > 0.01:
            parts.append(
                f"{100.0 * share:.1f} % of the rows judged have the time and the label of the row "
                "before, which the model has seen by then"
            )
        hours = np.diff(data.time).astype("timedelta64[h]").astype(int)
        row = int(hours.argmax())
        if hours[row] > 30 * 24:
            parts.append(
                f"between the rows {row + 1:,} and {row + 2:,} lie {int(hours[row]):,} hours"
            )
    return "; ".join(parts)


def redraw(out: str | os.PathLike[str], stem: str = "tabular") -> Results:
    """Writes the report of stored results and the figures anew, and prints what matters most."""
    folder = Path(out)
    results = load(folder, stem)
    text = report(results)
    shown = "\n\n".join(
        f"{told}\n\n{linked(path, told.partition('. ')[0].rstrip('.'))}"
        for path, told in draw(results, folder, stem).items()
    )
    page = folder / f"{stem}.md"
    page.write_text(f"{text}\n## Figures\n\n{shown}\n", encoding="utf-8")
    say(screen(), f"{brief(results)}\n\nEverything, with figures: {page}")
    return results


def _command(
    datasets: Iterable[str],
    seeds: int,
    model: str,
    training: str,
    quick: bool,
    folder: Path,
    ready: bool,
) -> str:
    """What to type to have the same again."""
    words = ["setpoint-paper tabular", f"--datasets {','.join(datasets)}"]
    if quick:
        words.append("--quick")
    elif model == "linear":
        words.append("--model linear")
    else:
        words.append(f"--seeds {seeds} --training {training}")
    if ready:
        words.append("--ready")
    return " ".join([*words, f"--out {shlex.quote(folder.as_posix())}"])


@lru_cache(maxsize=1)
def _ready_to_time() -> None:
    """Compiles the loops, once a process: the seconds of a tape are those of its own work."""
    short = Tape.from_arrays([[-1.0] * 60, [1.0] * 60], [0.0, 2.0] * 30)
    brief = Protocol(begin=20, tuned=40, gammas=(0.1,), budget=1)
    calibrate(short, "", 0, brief)


def _judge(recipe: Recipe, cache: Path, training: str) -> tuple[list[Row], tuple[float, float]]:
    """A tape under every method, or under the studied γ; seconds of processor and clock.

    Where one step of the printed training is switched: their code without stretching and with error
    adaptive alone.
    """
    tape = read(recipe, cache)
    assert tape is not None  # only finished tapes are asked for
    protocol = protocol_of(training, recipe.dataset)
    _ready_to_time()
    worked, began = time.process_time(), time.perf_counter()
    if recipe.dataset == "synthetic":
        truth = true_quantiles(len(tape), seed=recipe.seed)
        rows = step_sizes(tape, STUDIED, recipe.seed, protocol, truth)
    elif training in SWITCHED:
        methods = ("none_coded", "error_coded")
        rows = [
            replace(row, method=f"{row.method}; {training}")
            for row in coded(tape, recipe.dataset, recipe.seed, "coverage", protocol, methods)
        ]
    else:
        rows = calibrate(tape, recipe.dataset, recipe.seed, protocol)
    return rows, (time.process_time() - worked, time.perf_counter() - began)
