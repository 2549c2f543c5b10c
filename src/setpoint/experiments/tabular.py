"""The paper's regression experiments: from real data to tables and figures (sections 4.1.1–4.1.4).

data set → online model → tape (`_tapes`) → every method tuned and judged (`_protocol`) → results
on disk (`_results`) → report (`_tables`, `_claims`) and figures (`_tabular_figures`).
"""

import os
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from setpoint._check import choice, whole
from setpoint.errors import InputError
from setpoint.experiments import _protocol
from setpoint.experiments._protocol import Protocol, Row
from setpoint.experiments._results import Results, load, store
from setpoint.experiments._tables import report
from setpoint.experiments._tapes import (
    MODELS,
    Recipe,
    folder_of,
    make_all,
    one_thread,
    read,
)
from setpoint.models import LSTMSettings
from setpoint.tape import Tape

__all__ = ["DATASETS", "STUDIED", "redraw", "reproduce", "search_settings"]

DATASETS = ("power", "energy", "traffic", "prices", "wind")

_BATCH = 512

STUDIED = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.35, 1.0, 3.5, 10.0)
"""The step sizes of the study of γ, in standard deviations of y: the paper's and far beyond."""


def reproduce(
    *,
    datasets: Sequence[str] = DATASETS,
    seeds: int = 5,
    model: str = "lstm",
    batch: int = _BATCH,
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
        How many initialisations of the LSTM, from 0 on; the linear model has none.
    model
        "lstm" or "linear".
    batch
        The most recent rows the LSTM learns from at each step.
    jobs
        How many processes.
    quick
        The linear model instead: minutes.
    out
        The folder for the report, the results and the figures.
    ready
        Use the tapes that are finished and make no others.
    cache
        The folder of tapes; by default the one that `SETPOINT_TAPES` names, else the platform's.
    """
    console = _console()
    if isinstance(datasets, str) or not datasets:
        raise InputError(f"datasets must be some of {', '.join(DATASETS)}, got {datasets!r}")
    for name in datasets:
        choice(name, "a data set", DATASETS)
    model = "linear" if quick else choice(model, "model", MODELS)
    count = 1 if model == "linear" else whole(seeds, "seeds", 1)
    whole(jobs, "jobs", 1)
    place, folder = folder_of(cache), Path(out)
    recipes = [
        Recipe(name, model, seed, batch)
        for seed in range(count)
        for name in (*datasets, "synthetic")
    ]
    if not ready:
        make_all(recipes, place, jobs, console)
    found = [recipe for recipe in recipes if recipe.path(place).is_file()]
    if not any(recipe.dataset != "synthetic" for recipe in found):
        raise InputError(f"no tape of {', '.join(datasets)} is finished in {place}")
    rows, study, seconds = _calibrated(found, place, jobs, console)
    order = {name: number for number, name in enumerate(datasets)}
    rows.sort(key=lambda row: (order[row.dataset], row.seed))
    used = {recipe.dataset: recipe.data() for recipe in found if recipe.dataset in order}
    results = Results(
        tuple(rows),
        tuple(study),
        {
            "command": _command(datasets, count, model, batch, quick, folder, ready),
            "model": f"quantile LSTM, batch {batch}" if model == "lstm" else "linear quantiles",
            "units": {name: data.unit for name, data in used.items()},
            "notes": {name: data.note for name, data in used.items()},
            "seconds": [[round(each, 2) for each in pair] for pair in seconds],
        },
    )
    stem = _stem(model, batch)
    store(results, folder, stem)
    return redraw(folder, stem)


def _stem(model: str, batch: int) -> str:
    """What the names of the files begin with, so that several models may share a folder."""
    if model == "linear":
        return "tabular-linear"
    return "tabular" if batch == _BATCH else f"tabular-batch{batch}"


def redraw(out: str | os.PathLike[str], stem: str = "tabular") -> Results:
    """Prints the report of stored results again, and writes it and the figures anew."""
    from setpoint.experiments._tabular_figures import draw

    folder = Path(out)
    results = load(folder, stem)
    text = report(results)
    shown = "\n\n".join(
        f"{told}\n\n![{told}]({path.name})" for path, told in draw(results, folder, stem).items()
    )
    (folder / f"{stem}.md").write_text(f"{text}\n## Figures\n\n{shown}\n", encoding="utf-8")
    _console().print(text, markup=False, highlight=False, soft_wrap=True)
    return results


def search_settings(
    dataset: str,
    candidates: Sequence[LSTMSettings] | None = None,
    *,
    jobs: int = 1,
    rows: tuple[int, int] = (6000, 8000),
) -> list[tuple[LSTMSettings, float]]:
    """The paper's search for the LSTM's shape: all 24 combinations of its table, best first.

    Each is one initialisation, run from the first row and judged by its pinball loss on `rows`.
    """
    from joblib import Parallel, delayed

    from setpoint.models.lstm import combinations

    data = Recipe(dataset).data()
    tried = combinations() if candidates is None else tuple(candidates)
    losses = Parallel(n_jobs=whole(jobs, "jobs", 1))(
        delayed(_validated)(each, data.x, data.y, rows) for each in tried
    )
    return sorted(zip(tried, losses, strict=True), key=lambda pair: pair[1])


def _validated(settings: LSTMSettings, x: Any, y: Any, rows: tuple[int, int]) -> float:
    from setpoint.models.lstm import validation_pinball

    with one_thread():
        return validation_pinball(settings, x, y, rows)


def _console() -> Any:
    try:
        from rich.console import Console
    except ImportError as error:
        raise ImportError("this needs rich: pip install 'setpoint[experiments]'") from error
    return Console()


def _command(
    datasets: Iterable[str],
    seeds: int,
    model: str,
    batch: int,
    quick: bool,
    folder: Path,
    ready: bool,
) -> str:
    """What to type to have the same again."""
    words = ["setpoint reproduce tabular", f"--datasets {','.join(datasets)}"]
    if quick:
        words.append("--quick")
    elif model == "linear":
        words.append("--model linear")
    else:
        words.append(f"--seeds {seeds} --model lstm --batch {batch}")
    if ready:
        words.append("--ready")
    return " ".join([*words, f"--out {folder}"])


def _calibrated(
    recipes: Sequence[Recipe], cache: Path, jobs: int, console: Any
) -> tuple[list[Row], list[Row], list[tuple[float, float]]]:
    """Every tape under every method, and the study of γ; seconds of processor and clock."""
    from joblib import Parallel, delayed
    from rich.progress import Progress

    rows: list[Row] = []
    study: list[Row] = []
    seconds: list[tuple[float, float]] = []
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
    with Progress(console=console) as bar:
        task = bar.add_task("calibrating", total=len(recipes))
        for recipe, found, took in parallel(delayed(_judge)(each, cache) for each in recipes):
            if recipe.dataset == "synthetic":
                study += found
            else:
                rows += found
                seconds.append(took)
            bar.advance(task)
    return rows, sorted(study, key=lambda row: (row.seed, row.gamma)), seconds


@lru_cache(maxsize=1)
def _ready_to_time() -> None:
    """Compiles the loops, once a process: the seconds of a tape are those of its own work."""
    short = Tape.from_arrays([[-1.0] * 60, [1.0] * 60], [0.0, 2.0] * 30)
    brief = Protocol(begin=20, tuned=40, gammas=(0.1,), budget=1)
    _protocol.calibrate(short, "", 0, brief)


def _judge(recipe: Recipe, cache: Path) -> tuple[Recipe, list[Row], tuple[float, float]]:
    tape = read(recipe, cache)
    assert tape is not None  # only finished tapes are asked for
    _ready_to_time()
    worked, began = time.process_time(), time.perf_counter()
    if recipe.dataset == "synthetic":
        rows = _protocol.step_sizes(tape, STUDIED, recipe.seed, Protocol())
    else:
        rows = _protocol.calibrate(tape, recipe.dataset, recipe.seed, Protocol())
    return recipe, rows, (time.process_time() - worked, time.perf_counter() - began)
