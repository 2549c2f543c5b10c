"""Tapes of the online models: kept by content, resumed to the bit, never looking ahead."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from setpoint.errors import InputError
from setpoint.models import LinearQuantiles
from setpoint_paper.datasets import synthetic
from setpoint_paper.models import LSTMSettings
from setpoint_paper.models.lstm import CHOSEN
from setpoint_paper.tabular import tapes
from setpoint_paper.tabular.tapes import Recipe, make, make_all, read
from setpoint_paper.work import Checkpoints, folder_of, one_thread

SMALL = LSTMSettings(hidden=8, before=(8,), after=(8,))


def rows_done(path):
    """How many rows are safe on disk."""
    return max((int(step.name) for step in Checkpoints(path)), default=0)


def same(one, other) -> bool:
    columns = zip(one.prediction, other.prediction, strict=True)
    return np.array_equal(one.y, other.y) and all(np.array_equal(a, b) for a, b in columns)


def test_a_tape_holds_what_the_model_said_before_each_label(tmp_path):
    tape = make(Recipe("synthetic", "linear", seed=3, rows=150), tmp_path, stride=40)
    data, model = synthetic(150, seed=3), LinearQuantiles()
    for row, (x, y) in enumerate(zip(data.x, data.y, strict=True)):
        assert tuple(model.predict(x)) == (tape.prediction[0][row], tape.prediction[1][row])
        model.learn(x, y)
    assert np.array_equal(tape.y, data.y)
    assert np.array_equal(tape.group, data.group)


def test_weekdays_of_real_rows_are_the_groups(shared_data, tmp_path):
    tape = make(Recipe("wind", "linear", rows=300), tmp_path)
    days = [int(moment.astype(object).weekday()) for moment in Recipe("wind", rows=300).data().time]
    assert tape.group.tolist() == days


def test_a_killed_run_goes_on_to_the_bit(tmp_path):
    recipe = Recipe("synthetic", "linear", rows=4_000)
    code = (
        "from pathlib import Path\n"
        "from setpoint_paper.tabular.tapes import Recipe, make\n"
        f"make({recipe!r}, Path({str(tmp_path)!r}), stride=25)\n"
    )
    path = recipe.path(tmp_path)
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        give_up = time.monotonic() + 600
        while rows_done(path) < 50 and time.monotonic() < give_up:
            time.sleep(0.002)
        process.kill()
    assert 50 <= rows_done(path) < 4_000
    assert same(make(recipe, tmp_path), make(recipe, tmp_path / "fresh"))


def test_a_resumed_lstm_gives_what_an_uninterrupted_one_gives(tmp_path):
    recipe = Recipe("synthetic", "lstm", batch=16, rows=120, settings=SMALL)
    whole = make(recipe, tmp_path / "whole", stride=120)
    reached = Checkpoints(recipe.path(tmp_path / "cut"))
    model, done = tapes._resumed(recipe, reached)
    with one_thread():
        first = tapes.run(model, recipe.data().x[:50], recipe.data().y[:50])
    with reached.put(50) as step:
        model.save(step / "model")
        np.save(step / "done.npy", np.concatenate([done, first]))
    assert rows_done(recipe.path(tmp_path / "cut")) == 50
    assert same(make(recipe, tmp_path / "cut", stride=30), whole)
    assert [path.suffix for path in (tmp_path / "cut").iterdir()] == [".npz"]


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    recipe = Recipe("synthetic", "linear", rows=90)
    with Checkpoints(recipe.path(tmp_path)).put(60) as step:
        (step / "model").write_bytes(b"no model")
    assert same(make(recipe, tmp_path), make(recipe, tmp_path / "fresh"))


def test_a_finished_tape_is_read_not_made(tmp_path):
    recipe = Recipe("synthetic", "linear", rows=60)
    assert read(recipe, tmp_path) is None
    made = make(recipe, tmp_path)
    before = recipe.path(tmp_path).stat().st_mtime_ns
    assert same(make(recipe, tmp_path), made)
    assert recipe.path(tmp_path).stat().st_mtime_ns == before


def test_whatever_changes_a_tape_changes_its_name():
    base = Recipe("synthetic", "lstm", rows=60)
    others = [
        replace(base, seed=1),
        replace(base, batch=256),
        replace(base, rows=61),
        replace(base, model="linear"),
        replace(base, settings=SMALL),
        replace(base, scale_rows=8_000),
    ]
    digests = [each.digest() for each in (base, *others)]
    assert len(set(digests)) == len(digests)
    assert Recipe("synthetic", "lstm", rows=60).digest() == base.digest()


def test_the_rows_that_scale_are_settings_of_the_model_and_5000_by_default():
    base = Recipe("synthetic", "lstm", rows=60)
    assert base.model_settings() == replace(CHOSEN["synthetic"], batch=512)
    assert replace(base, scale_rows=8_000).model_settings().scale_rows == 8_000
    linear = Recipe("synthetic", "linear", rows=60)
    assert replace(linear, scale_rows=8_000).digest() == linear.digest()


def test_several_processes_make_the_same_tapes(tmp_path, capsys):
    recipes = [Recipe("synthetic", "linear", seed=seed, rows=80) for seed in range(3)]
    make_all(recipes, tmp_path / "many", jobs=2)
    for recipe in recipes:
        alone = make(recipe, tmp_path / "one")
        assert same(read(recipe, tmp_path / "many"), alone)


def test_the_folder_of_tapes_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("SETPOINT_TAPES", str(tmp_path))
    assert folder_of() == tmp_path
    assert folder_of(tmp_path / "here") == tmp_path / "here"
    monkeypatch.delenv("SETPOINT_TAPES")
    assert folder_of().parts[-2:] == ("setpoint", "tapes")
    assert os.environ.get("SETPOINT_TAPES") is None
    assert isinstance(folder_of(), Path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "wine"}, "a data set must be one of 'power', .*, got 'wine'"),
        ({"dataset": "wind", "model": "gru"}, "model must be one of 'lstm', 'linear', got 'gru'"),
        ({"dataset": "wind", "batch": 0}, "batch must be a whole number of at least 1, got 0"),
    ],
)
def test_a_recipe_says_what_it_takes(options, message):
    with pytest.raises(InputError, match=message):
        Recipe(**options)
