"""The paper's regression experiments: from real data to tables and figures (sections 4.1.1–4.1.4).

data set → online model → tape (`tapes`) → every method (`methods`) tuned and judged (`protocol`,
`measures`) → results on disk (`results`) → report (`tables`, `claims`) and figures (`figures`).
"""

import os
import shlex
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from setpoint._check import choice, whole
from setpoint.errors import InputError
from setpoint.tape import Tape
from setpoint_paper.datasets import Dataset
from setpoint_paper.tabular.figures import draw
from setpoint_paper.tabular.measures import Row
from setpoint_paper.tabular.methods import Protocol
from setpoint_paper.tabular.protocol import calibrate, step_sizes
from setpoint_paper.tabular.results import Results, load, store
from setpoint_paper.tabular.tables import brief, report
from setpoint_paper.tabular.tapes import DATASETS, MODELS, Recipe, make_all, read
from setpoint_paper.work import each, folder_of, say, screen

__all__ = ["DATASETS", "STUDIED", "redraw", "reproduce"]

_BATCH = 512
_SCALE_ROWS = 5_000
_AUTHORS_SCALE_ROWS = 8_000

STUDIED = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.35, 1.0, 3.5, 10.0)
"""The step sizes of the study of γ, in standard deviations of y: the paper's and far beyond."""


def reproduce(
    *,
    datasets: Sequence[str] = DATASETS,
    seeds: int = 5,
    model: str = "lstm",
    batch: int = _BATCH,
    scale_rows: int = _SCALE_ROWS,
    jobs: int = 1,
    quick: bool = False,
    out: str | os.PathLike[str] = "results",
    ready: bool = False,
    cache: str | os.PathLike[str] | None = None,
) -> Results:
    """Runs the experiments, prints their report and stores it with its figures.

    Tapes are kept and found again by their content, so a run that was stopped goes on where it
    was, and a second run only calibrates.

    Parameters
    ----------
    datasets
        Some of `DATASETS`.
    seeds
        How many initialisations of the LSTM, from 0 on; the linear model is not random.
    model
        "lstm" or "linear".
    batch
        The most recent rows the LSTM learns from at each step.
    scale_rows
        How many first rows standardise x and y, and give θ its unit. The authors took 8000, which
        includes rows that are tuned on; more than that would be rows that are judged.
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
    count = 1 if model == "linear" else whole(seeds, "seeds", 1)
    whole(jobs, "jobs", 1)
    protocol = Protocol(scale_rows=scale_rows)
    if model == "linear":
        say(
            console,
            f"{'--quick' if quick else '--model linear'}: the linear model, which is not random, "
            "runs once a data set; --seeds and --batch"
            f"{', like --model,' if quick else ''} change nothing.",
        )
    place, folder = folder_of(cache), Path(out)
    recipes = [
        Recipe(name, model, seed, batch, scale_rows=scale_rows)
        for seed in range(count)
        for name in (*datasets, "synthetic")
    ]
    if not ready:
        make_all(recipes, place, jobs, console)
    found = [recipe for recipe in recipes if recipe.path(place).is_file()]
    if not any(recipe.dataset != "synthetic" for recipe in found):
        raise InputError(f"no tape of {', '.join(datasets)} is finished in {place}")
    judged = each(
        _judge, [(recipe, place, protocol) for recipe in found], jobs, console, "calibrating"
    )
    rows, study, seconds = [], [], []
    for recipe, (tape_rows, took) in zip(found, judged, strict=True):
        if recipe.dataset == "synthetic":
            study += tape_rows
        else:
            rows += tape_rows
            seconds.append(took)
    order = {name: number for number, name in enumerate(datasets)}
    rows.sort(key=lambda row: (order[row.dataset], row.seed))
    study.sort(key=lambda row: (row.seed, row.gamma))
    used = {recipe.dataset: recipe.data() for recipe in found if recipe.dataset in order}
    results = Results(
        tuple(rows),
        tuple(study),
        {
            "command": _command(datasets, count, model, batch, scale_rows, quick, folder, ready),
            "model": f"quantile LSTM, batch {batch}" if model == "lstm" else "linear quantiles",
            "asked": count if model == "lstm" else None,
            "scale_rows": scale_rows,
            "units": {name: data.unit for name, data in used.items()},
            "notes": {name: _note(data, protocol.tuned) for name, data in used.items()},
            "gamma_factor": {name: _factor(data.y, scale_rows) for name, data in used.items()},
            "seconds": [[round(value, 2) for value in pair] for pair in seconds],
        },
    )
    stem = _stem(model, batch, scale_rows)
    store(results, folder, stem)
    return redraw(folder, stem)


def _stem(model: str, batch: int, scale_rows: int) -> str:
    """What the names of the files begin with, so that several models may share a folder."""
    words = ["tabular"]
    if model == "linear":
        words.append("linear")
    elif batch != _BATCH:
        words.append(f"batch{batch}")
    if scale_rows != _SCALE_ROWS:
        words.append(f"scale{scale_rows}")
    return "-".join(words)


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
        f"{told}\n\n![{told.partition('. ')[0].rstrip('.')}]({path.name})"
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
    batch: int,
    scale_rows: int,
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
        words.append(f"--seeds {seeds} --model lstm --batch {batch}")
    if scale_rows != _SCALE_ROWS:
        words.append(f"--scale-rows {scale_rows}")
    if ready:
        words.append("--ready")
    return " ".join([*words, f"--out {shlex.quote(folder.as_posix())}"])


@lru_cache(maxsize=1)
def _ready_to_time() -> None:
    """Compiles the loops, once a process: the seconds of a tape are those of its own work."""
    short = Tape.from_arrays([[-1.0] * 60, [1.0] * 60], [0.0, 2.0] * 30)
    brief = Protocol(begin=20, tuned=40, gammas=(0.1,), budget=1)
    calibrate(short, "", 0, brief)


def _judge(
    recipe: Recipe, cache: Path, protocol: Protocol
) -> tuple[list[Row], tuple[float, float]]:
    """A tape under every method, or under the studied γ; seconds of processor and clock."""
    tape = read(recipe, cache)
    assert tape is not None  # only finished tapes are asked for
    _ready_to_time()
    worked, began = time.process_time(), time.perf_counter()
    if recipe.dataset == "synthetic":
        rows = step_sizes(tape, STUDIED, recipe.seed, protocol)
    else:
        rows = calibrate(tape, recipe.dataset, recipe.seed, protocol)
    return rows, (time.process_time() - worked, time.perf_counter() - began)
