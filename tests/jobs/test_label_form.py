"""Label sets of a file are those of the preset, on every row."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import setpoint as sp
from setpoint import jobs

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


def test_label_sets_of_a_file_are_those_of_the_preset_on_every_row(
    tmp_path: Path, table: Table
) -> None:
    world = _world(1500)
    columns = sp.Columns("y", probabilities=tuple(f"p_{name}" for name in NAMES))
    outcome = jobs.calibrate(table(tmp_path / "a.csv", world), columns)
    controller = sp.label_sets(0.9, sets=sp.sets.Threshold(classes=NAMES))
    assert outcome.trace.controller == controller
    stream = sp.Stream(controller)
    rows = np.array([world[f"p_{name}"] for name in NAMES]).T
    for row, y, shown in zip(rows, world["y"], outcome.trace.shown or (), strict=True):
        assert stream.predict(row) == shown
        stream.update(y)
    assert "Mean size" in str(outcome)
    assert "length" not in str(outcome)


def test_no_set_is_empty_where_none_may_be(tmp_path: Path, table: Table) -> None:
    path = table(tmp_path / "a.csv", _world(1500))
    columns = sp.Columns("y", probabilities=tuple(f"p_{name}" for name in NAMES))
    controller = sp.label_sets(0.5, sets=sp.sets.Threshold(classes=NAMES), never_empty=True)
    outcome = jobs.calibrate(path, columns, controller=controller)
    sizes = [len(shown) for shown in outcome.trace.shown or ()]
    assert min(sizes) == 1
    plain = jobs.calibrate(path, columns, 0.5)
    assert min(len(shown) for shown in plain.trace.shown or ()) == 0
