"""The form of label sets is chosen by their size in the burn-in, which is not judged."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.errors import InputError

Table = Callable[[Path, Mapping[str, Sequence[Any]]], Path]
NAMES = ("cat", "dog", "owl", "yak")


def _world(size: int) -> dict[str, Sequence[Any]]:
    """A classifier that is far too sure of itself, and more so in some rows than in others."""
    random = np.random.default_rng(0)
    scores = random.normal(0.0, 1.0, (size, 4))
    truth = np.exp(scores)
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < random.random((size, 1))).sum(axis=1).clip(max=3)
    sure = np.exp(scores * random.choice([1.0, 6.0], (size, 1)))
    sure /= sure.sum(axis=1, keepdims=True)
    columns = {f"p_{name}": sure[:, place] for place, name in enumerate(NAMES)}
    return {**columns, "y": [NAMES[place] for place in y]}


def test_the_form_with_the_smallest_sets_is_taken_and_all_are_told(
    tmp_path: Path, table: Table
) -> None:
    world = _world(1500)
    path = table(tmp_path / "a.csv", world)
    columns = jobs.Columns("y", probabilities=tuple(f"p_{name}" for name in NAMES))
    outcome = jobs.calibrate(path, columns)
    (note,) = [note for note in outcome.notes if note.startswith("label sets by ")]
    forms = {
        "threshold": sp.sets.Threshold(classes=NAMES),
        "cumulative": sp.sets.Cumulative(classes=NAMES),
        "score window": sp.sets.ScoreWindow(sp.sets.Threshold(classes=NAMES)),
    }
    prediction = {name: np.array(world[f"p_{name}"])[:150] for name in NAMES}
    y = np.array([float(NAMES.index(name)) for name in world["y"]])[:150]
    tape = sp.Tape.from_arrays(prediction, y)
    sizes = {
        name: sp.replay(sp.label_sets(0.9, sets=form), tape).summary().mean_length
        for name, form in forms.items()
    }
    best = min(sizes, key=lambda name: sizes[name])
    told = ", ".join(f"{name} {size:.2f}" for name, size in sizes.items())
    assert note == f"label sets by {best}; labels in a set, on the first 150 rows: {told}"
    assert outcome.trace.controller.sets == forms[best]
    assert len(outcome.trace.tape) == 1350
    assert "Mean size" in str(outcome)
    assert "length" not in str(outcome)


def test_few_rows_keep_the_threshold(tmp_path: Path, table: Table) -> None:
    columns = jobs.Columns("y", probabilities=tuple(f"p_{name}" for name in NAMES))
    outcome = jobs.calibrate(table(tmp_path / "a.csv", _world(60)), columns)
    assert outcome.trace.controller.sets == sp.sets.Threshold(classes=NAMES)


def test_no_set_is_empty_where_none_may_be(tmp_path: Path, table: Table) -> None:
    path = table(tmp_path / "a.csv", _world(1500))
    columns = jobs.Columns("y", probabilities=tuple(f"p_{name}" for name in NAMES))
    outcome = jobs.calibrate(path, columns, 0.5, never_empty=True)
    sizes = [len(shown) for shown in outcome.trace.shown or ()]
    assert min(sizes) == 1
    plain = jobs.calibrate(path, columns, 0.5)
    assert min(len(shown) for shown in plain.trace.shown or ()) == 0
    assert (outcome.job.repeat(None) or "").endswith("--never-empty")
    ends = table(tmp_path / "b.csv", {"low": [0.0] * 50, "high": [1.0] * 50, "y": [0.5] * 50})
    with pytest.raises(InputError, match="never empty is for sets of classes"):
        jobs.calibrate(ends, jobs.Columns("y", "low", "high"), never_empty=True)
