"""The paper's depth experiments on real video: four heuristics, one risk and two.

source (a clip with a model: `maps`, or KITTI: `kitti`) → its maps → heuristic → critical values
(`tapes`) → every method tuned and judged (`runs`) → results and figures (`figures`).
"""

import os
from collections.abc import Sequence
from pathlib import Path

from setpoint._check import choice, whole
from setpoint._files import make_folder
from setpoint.errors import DataError, InputError
from setpoint_paper.depth import figures
from setpoint_paper.depth.maps import CLIPS, HEURISTICS, MODELS, NOT_STORED, Plan, Recipe, clip_of
from setpoint_paper.depth.runs import NAMES, Row, Series, judge_all, read_csv
from setpoint_paper.depth.tapes import Source, make, path_of
from setpoint_paper.rows import written
from setpoint_paper.work import each, folder_of

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

    The parameters are the options of `setpoint-paper depth`; `cache` is the folder of tapes, by
    default the one that `SETPOINT_TAPES` names, else the platform's. A quick run has the first 120
    frames of each clip, one seed and short training.
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
    place = folder_of(cache)
    made = [source for source in sources if source.model != "stored"]
    if len(made) < len(sources) and clip_of("kitti", plan.frames).stored is None:
        sources = made
        if not sources:
            raise DataError(NOT_STORED)
        print(f"Left out: kitti, stored; {NOT_STORED}.")
    stem = make_folder(out) / ("depth-quick" if quick else "depth")
    return run(sources, [name for name in HEURISTICS if name in heuristics], stem, place, jobs)


def run(
    sources: Sequence[Source], heuristics: Sequence[str], stem: Path, place: Path, jobs: int = 1
) -> tuple[Row, ...]:
    """Sources under heuristics, seed by seed: made, judged and stored; then figures.

    Rows of the same tapes that stand at `stem` stay where the tape is not in the folder `place`.
    """
    path = stem.with_name(f"{stem.name}.csv")
    rows: dict[str, list[Row]] = {}
    for row in read_csv(path) if path.is_file() else ():
        rows.setdefault(row.tape, []).append(row)
    plans = [(source, name) for source in sources for name in heuristics]
    best = max(heuristics, key=HEURISTICS.index)  # the paper's registration where it runs
    told: tuple[Row, ...] = ()
    for seed in dict.fromkeys(source.seed for source in sources):
        asked = [one for one in plans if one[0].seed == seed]
        missing = [
            one
            for one in asked
            if one[0].tape_name(one[1]) not in rows and not path_of(*one, place).is_file()
        ]
        models: dict[Source, list[str]] = {}
        for source, name in missing:
            models.setdefault(source, []).append(name)
        each(_prepared, [(*one, place) for one in models.items()], jobs, "models")
        each(_made, [(*one, place) for one in missing], jobs, "heuristics")
        found = [one for one in asked if path_of(*one, place).is_file()]
        judged = each(_judged, [(*one, place) for one in found], jobs, "calibrating")
        for (source, name), (fresh, runs) in zip(found, judged, strict=True):
            rows[source.tape_name(name)] = fresh
            if not seed and name == best:
                where = f"{source.clip}, {source.model}, {NAMES[best]}, seed 0"
                named = stem.with_name(f"{stem.name}-{source.label}")
                frames = make(source, name, place)
                figures.draw_run(source.frames(place), frames, runs, where, named)
        told = tuple(row for one in plans for row in rows.get(one[0].tape_name(one[1]), ()))
        path.write_text(written(Row, told), "utf-8")
    figures.comparisons(told, stem)
    print(f"Results: {path}; `setpoint-paper summary` judges them.")
    return told


def _prepared(source: Source, heuristics: Sequence[str], place: Path) -> None:
    source.prepare(heuristics, place)


def _made(source: Source, heuristic: str, place: Path) -> None:
    make(source, heuristic, place)


def _judged(source: Source, heuristic: str, place: Path) -> tuple[list[Row], dict[str, Series]]:
    return judge_all(source, heuristic, make(source, heuristic, place))
