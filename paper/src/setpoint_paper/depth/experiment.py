"""The paper's depth experiments on real video: four heuristics, one risk and two.

clip → model → its maps (`maps`) → heuristic → critical values (`tapes`) → every method tuned and
judged (`runs`) → claims, tables and figures (`claims`, `report`, `figures`).
"""

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from setpoint._check import choice, whole
from setpoint._files import make_folder, put
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
from setpoint_paper.depth.report import brief, report
from setpoint_paper.depth.runs import (
    GEOMETRIES,
    METHODS,
    NAMES,
    Row,
    Series,
    judge,
    read_csv,
    write_csv,
)
from setpoint_paper.depth.tapes import Frames, make, read
from setpoint_paper.work import each, folder_of, say, screen

__all__ = ["CLIPS", "HEURISTICS", "MODELS", "reproduce"]

_QUICK_FRAMES = 160


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
    ready: bool = False,
    cache: str | os.PathLike[str] | None = None,
) -> tuple[Row, ...]:
    """Runs the experiment, prints what matters and stores its report with figures.

    Models and heuristics run once and leave their results in the folder of tapes, by content; a
    run that was stopped goes on where it was, and a second run only calibrates. Rows that stand in
    `out` are kept where their tape is not at hand and would be the same, so seeds can be added from
    any machine. Writes `depth.md`, `depth.csv` and figures whose names begin with `depth`.

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
        The first 160 frames of each clip, one seed and short training: a minute or two.
    frames
        How many first frames of each clip, at least 60, instead of all, or of those of a quick run.
    out
        The folder for the report and the figures.
    ready
        Use the tapes that are finished and make no others.
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
    recipes = [
        Recipe(clip, model, heuristic, seed, plan)
        for seed in range(count)
        for clip in CLIPS
        for model in MODELS
        for heuristic in HEURISTICS
        if clip in clips and model in models and heuristic in heuristics
        if model == "network" or clip == "kitti"
    ]
    if not recipes:
        raise InputError("stored predictions come with kitti alone: ask for kitti or the network")
    place, console = folder_of(cache), screen()
    if any(recipe.model == "stored" for recipe in recipes) and not _has_stored(plan):
        recipes = [recipe for recipe in recipes if recipe.model != "stored"]
        if not recipes:
            raise DataError(NOT_STORED)
        say(console, f"Left out: kitti, stored; {NOT_STORED}.")
    folder = make_folder(out)
    stored = read_csv(folder / "depth.csv") if (folder / "depth.csv").is_file() else []
    kept = {row.tape: [one for one in stored if one.tape == row.tape] for row in stored}
    if not ready:
        _made([recipe for recipe in recipes if recipe.name not in kept], place, jobs, console)
    found = [recipe for recipe in recipes if recipe.path(place).is_file()]
    judged = each(_judged, [(recipe, place) for recipe in found], jobs, console, "calibrating")
    fresh = dict(zip(found, judged, strict=True))
    rows = tuple(
        row
        for recipe in recipes
        for row in (
            [row for row, _ in fresh[recipe]] if recipe in fresh else kept.get(recipe.name, ())
        )
    )
    if not rows:
        raise InputError(f"no tape that is asked for is finished in {place}")
    recipes = [recipe for recipe in recipes if any(row.tape == recipe.name for row in rows)]
    series = {
        recipe: {row.method: run for row, run in fresh.get(recipe, ()) if row.geometry == "text"}
        for recipe in recipes
    }
    write_csv(rows, folder / "depth.csv")
    notes = {recipe.clip: repr(recipe.data()) for recipe in recipes}
    stages = " – ".join(map(str, recipes[0].settings.channels))
    notes["networks"] = (
        f"stages of {stages} channels; {plan.epochs} epochs on the frames fitted on, for residuals "
        f"{plan.residual_epochs}; then one step a frame, on it and one of the past"
    )
    command = _command(clips, models, heuristics, count, quick, frames, folder, ready)
    text = report(rows, command, notes, quick)
    shown = figures.page(_draw(rows, series, place, folder))
    page = put(folder / "depth.md", f"{text}\n{shown}")
    say(console, f"{brief(rows)}\n\nEverything, with figures: {page}")
    return rows


def _has_stored(plan: Plan) -> bool:
    return clip_of("kitti", plan.frames).stored is not None


def _made(recipes: Sequence[Recipe], place: Path, jobs: int, console: Any) -> None:
    """Every file that is not there yet: the maps of models first, which heuristics share."""
    missing = [recipe for recipe in recipes if not recipe.path(place).is_file()]
    models = {recipe.maps_path(place): recipe for recipe in missing if recipe.model != "stored"}
    fresh = [recipe for path, recipe in models.items() if not path.is_file()]
    each(_maps, [(recipe, place) for recipe in fresh], jobs, console, "models")
    each(_frames, [(recipe, place) for recipe in missing], jobs, console, "heuristics")


def _maps(recipe: Recipe, place: Path) -> None:
    maps_of(recipe, place)


def _frames(recipe: Recipe, place: Path) -> None:
    make(recipe, place)


def _judged(recipe: Recipe, place: Path) -> list[tuple[Row, Series]]:
    frames = _ready(recipe, place)
    names = (recipe.clip, recipe.model, recipe.heuristic, recipe.seed)
    return [
        (replace(row, tape=recipe.name), run)
        for method in METHODS
        for geometry in GEOMETRIES
        for row, run in [judge(frames, method, names, geometry)]
    ]


def _ready(recipe: Recipe, place: Path) -> Frames:
    found = read(recipe, place)
    assert found is not None  # only finished ones are asked for
    return found


def _draw(
    rows: Sequence[Row],
    series: dict[Recipe, dict[str, Series]],
    place: Path,
    folder: Path,
) -> Iterable[tuple[Path, str]]:
    """Every figure, with what it shows; where rows were kept, so were their figures."""
    best = figures.best(row.heuristic for row in rows)
    for recipe, runs in series.items():
        if recipe.seed or recipe.heuristic != best:
            continue
        stem = folder / f"depth-{recipe.clip}-{recipe.model}"
        where = f"{recipe.clip}, {recipe.model}, {NAMES[best]}, seed 0"
        if runs:
            figures.draw_run(recipe.data(), _ready(recipe, place), runs, where, stem)
        yield from figures.run_figures(where, stem)
    yield from figures.comparisons(rows, folder / "depth")


def _command(
    clips: Sequence[str],
    models: Sequence[str],
    heuristics: Sequence[str],
    seeds: int,
    quick: bool,
    frames: int | None,
    folder: Path,
    ready: bool,
) -> str:
    """What to type to have the same again."""
    words = ["setpoint-paper depth"]
    if tuple(clips) != CLIPS:
        words.append(f"--clip {','.join(clips)}")
    if tuple(models) != MODELS:
        words.append(f"--model {','.join(models)}")
    if tuple(heuristics) != HEURISTICS:
        words.append(f"--heuristics {','.join(heuristics)}")
    words.append("--quick" if quick else f"--seeds {seeds}")
    if frames is not None:
        words.append(f"--frames {frames}")
    if ready:
        words.append("--ready")
    return " ".join([*words, f"--out {shlex.quote(folder.as_posix())}"])
