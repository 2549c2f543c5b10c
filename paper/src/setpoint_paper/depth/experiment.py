"""The paper's depth experiments on real video: four heuristics, one risk and two.

clip → model → its maps (`maps`) → heuristic → critical values (`tapes`) → every method tuned and
judged (`runs`) → results and figures (`figures`).
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from setpoint._check import choice, whole
from setpoint._files import make_folder
from setpoint.errors import DataError, InputError
from setpoint_paper.depth import figures
from setpoint_paper.depth.maps import (
    CLIPS,
    HEURISTICS,
    MODELS,
    NOT_STORED,
    Plan,
    Recipe,
    clip_of,
    maps_of,
)
from setpoint_paper.depth.runs import NAMES, Row, Series, judge_all, read_csv, write_csv
from setpoint_paper.depth.tapes import make, path_of
from setpoint_paper.work import each, folder_of, say, screen

__all__ = ["CLIPS", "HEURISTICS", "MODELS", "reproduce"]

_QUICK_FRAMES = 120


def reproduce(
    *,
    clips: Sequence[str] = CLIPS,
    models: Sequence[str] = MODELS,
    heuristics: Sequence[str] = HEURISTICS,
    seeds: int = 10,
    jobs: int = 1,
    quick: bool = False,
    frames: int | None = None,
    out: str | os.PathLike[str] = "results",
    cache: str | os.PathLike[str] | None = None,
) -> tuple[Row, ...]:
    """Runs the experiment and stores its results and figures.

    Models and heuristics run once and leave their results in the folder of tapes, by content; a
    run that was stopped goes on where it was, and a second run only calibrates. Rows that stand in
    `out` are kept where their tape is not at hand and would be the same, so seeds can be added from
    any machine. Writes `depth.csv` and figures whose names begin with `depth`; of a quick run,
    with `depth-quick`.

    Parameters
    ----------
    clips
        Some of `CLIPS`.
    models
        Some of `MODELS`; stored predictions come with kitti alone.
    heuristics
        Some of `HEURISTICS`: the paper's four, and its own way of registration.
    seeds
        How many seeds, from 0 on: of the networks' first weights and of the known pixels.
    jobs
        How many processes.
    quick
        The first 120 frames of each clip, one seed and short training: half a minute.
    frames
        How many first frames of each clip, at least 60, instead of all, or of those of a quick run.
    out
        The folder for the report and the figures.
    cache
        The folder of tapes; by default the one that `SETPOINT_TAPES` names, else the platform's.
    """
    for name, asked, known in (
        ("clips", clips, CLIPS),
        ("models", models, MODELS),
        ("heuristics", heuristics, HEURISTICS),
    ):
        if isinstance(asked, str) or not asked:
            raise InputError(f"{name} must be some of {', '.join(known)}, got {asked!r}")
        for word in asked:
            choice(word, f"one of {name}", known)
    whole(jobs, "jobs", 1)
    count = 1 if quick else whole(seeds, "seeds", 1)
    plan = Plan(frames)
    if quick:
        plan = Plan(_QUICK_FRAMES if frames is None else frames, epochs=3, residual_epochs=2)
    sources = [
        Recipe(clip, model, seed, plan)
        for seed in range(count)
        for clip in CLIPS
        for model in MODELS
        if clip in clips and model in models
        if model == "network" or clip == "kitti"
    ]
    if not sources:
        raise InputError("stored predictions come with kitti alone: ask for kitti or the network")
    place, console = folder_of(cache), screen()
    made = [source for source in sources if source.model != "stored"]
    if len(made) < len(sources) and clip_of("kitti", plan.frames).stored is None:
        sources = made
        if not sources:
            raise DataError(NOT_STORED)
        say(console, f"Left out: kitti, stored; {NOT_STORED}.")
    folder, stem = make_folder(out), "depth-quick" if quick else "depth"
    kept: dict[str, list[Row]] = {}
    for row in stored(folder / stem):
        kept.setdefault(row.tape, []).append(row)
    plans = [(source, name) for source in sources for name in HEURISTICS if name in heuristics]
    _made([each for each in plans if each[0].tape_name(each[1]) not in kept], place, jobs, console)
    found = [each_ for each_ in plans if path_of(*each_, place).is_file()]
    judged = each(_judged, [(*one, place) for one in found], jobs, console, "calibrating")
    fresh = dict(zip(found, judged, strict=True))
    rows = tuple(
        row
        for one in plans
        for row in (fresh[one][0] if one in fresh else kept.get(one[0].tape_name(one[1]), ()))
    )
    best = figures.best(row.heuristic for row in rows)
    for (source, heuristic), (_, runs) in fresh.items():
        if not source.seed and heuristic == best:
            where = f"{source.clip}, {source.model}, {NAMES[best]}, seed 0"
            named = folder / f"{stem}-{source.clip}-{source.model}"
            figures.draw_run(source.data(), make(source, heuristic, place), runs, where, named)
    record(rows, folder / stem)
    say(console, f"Results: {folder / f'{stem}.csv'}; `setpoint-paper summary` judges them.")
    return rows


def record(rows: Sequence[Row], stem: Path) -> None:
    """Writes rows and the figures that compare them."""
    write_csv(rows, stem.with_name(f"{stem.name}.csv"))
    figures.comparisons(rows, stem)


def stored(stem: Path) -> list[Row]:
    """The rows that stand there."""
    path = stem.with_name(f"{stem.name}.csv")
    return read_csv(path) if path.is_file() else []


def _made(plans: Sequence[tuple[Recipe, str]], place: Path, jobs: int, console: Any) -> None:
    """Every file that is not there yet: the maps of models first, which heuristics share."""
    missing = [each_ for each_ in plans if not path_of(*each_, place).is_file()]
    models = {source.maps_path(place): source for source, _ in missing if source.model != "stored"}
    fresh = [(source, place) for path, source in models.items() if not path.is_file()]
    each(_maps, fresh, jobs, console, "models")
    each(_frames, [(*one, place) for one in missing], jobs, console, "heuristics")


def _maps(source: Recipe, place: Path) -> None:
    maps_of(source, place)


def _frames(source: Recipe, heuristic: str, place: Path) -> None:
    make(source, heuristic, place)


def _judged(source: Recipe, heuristic: str, place: Path) -> tuple[list[Row], dict[str, Series]]:
    return judge_all(source, heuristic, make(source, heuristic, place))
