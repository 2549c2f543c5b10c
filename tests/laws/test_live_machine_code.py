"""Live streams whose rules run as machine code: the numbers of plain Python, whatever happens."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.correction import compiled
from setpoint.losses import FalseNegatives
from setpoint.sets import Multilabel
from tests.laws.bulk import assert_same_state

pytest.importorskip("numba")
LABELS = ("cat", "dog", "owl", "fox")
SEVERAL = sp.label_sets(sets=Multilabel(classes=LABELS), risk=sp.Risk(FalseNegatives(), 0.2))
CONTROLLERS = {
    "season": sp.intervals(limit=3.0), "features": sp.intervals(features=["rain"], period=7),
    "labels": sp.label_sets(0.8), "names": sp.label_sets(0.8), "several": SEVERAL,
}  # fmt: skip


def rows_of(kind: str, rows: int) -> list[tuple[Any, Any]]:
    rng, pairs = np.random.default_rng(2), []
    for t in range(rows):
        p, y = rng.dirichlet(np.ones(4)), int(rng.integers(4))
        if kind in ("season", "features"):
            middle = 10.0 * np.sin(t / 9.0)
            error = 3.0 * np.sin(2.0 * np.pi * t / 7.0) + rng.normal()
            row: Any = (middle - 1.0, middle + 1.0)
            row = row if kind == "season" else sp.predictions.Row(row, None, {"rain": t % 3})
            pairs.append((row, middle + error))
        elif kind == "names":  # some are left out at times
            known = LABELS[: 2 + t % 3] if t % 50 > 40 else LABELS
            share = p[: len(known)] / p[: len(known)].sum()
            pairs.append((dict(zip(known, share.tolist(), strict=True)), LABELS[y]))
        else:
            pairs.append((p, y if kind == "labels" else rng.random(4) < p))
    return pairs


@pytest.mark.parametrize("late", [0, 5])
@pytest.mark.parametrize("kind", CONTROLLERS)
def test_machine_code_gives_what_plain_python_gives_to_the_bit(
    kind: str, late: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, controller = rows_of(kind, 420), CONTROLLERS[kind]

    def run(*, fast: bool) -> tuple[list[Any], sp.Stream]:
        monkeypatch.setattr(compiled, "MANY", 60 if fast else 10**9)
        monkeypatch.setattr(compiled, "_came", 0)
        stream, shown = sp.Stream(controller), []
        for t, (prediction, _) in enumerate(pairs):
            shown.append(stream.predict(prediction, t))
            if t >= late:
                stream.update(pairs[t - late][1], t - late)
            if t == 80:
                for thread in threading.enumerate():
                    if thread.name == "setpoint compiles":
                        thread.join()
            if t % 100 == 99 and fast:
                before = stream.snapshot()
                stream.predict(prediction, "gone")
                stream.revert(before)
                stream.save(tmp_path / "stream.zip")
                stream = sp.Stream.load(tmp_path / "stream.zip")
        return shown, stream

    wanted, plain = run(fast=False)
    got, stream = run(fast=True)
    assert got == wanted
    assert_same_state(stream.state, plain.state, exact=True)
    own = stream._state
    assert own.arrays is not None or kind not in ("season", "features")
    assert kind != "labels" or own.own_table.fast is not None
    if kind == "season":
        assert len(plain.state.annex) > 0
        assert stream.summary().learnt == plain.summary().learnt
    stream.reset()
    assert stream.state.memory == sp.Stream(controller).state.memory


@pytest.mark.parametrize("every", [1, 6])
def test_paths_as_machine_code_are_those_of_plain_python(
    every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, count = np.random.default_rng(3), 60
    y = np.cumsum(rng.normal(size=(count, 6)), axis=1)
    point, steps = np.zeros(y.size), np.tile(np.arange(1, 7), count)
    tape = sp.Tape.from_arrays({"point": point}, y.ravel(), horizon=steps)
    traces = []
    for many in (10**9, 0):
        monkeypatch.setattr(compiled, "MANY", many)
        if many == 0:
            sp.replay_paths(sp.paths(6, every=every), tape)
            for thread in threading.enumerate():
                if thread.name == "setpoint compiles":
                    thread.join()
            assert compiled._made["paths", 8] is not None
        traces.append(sp.replay_paths(sp.paths(6, totals=[6], every=every), tape))
    for one, other in zip(*(trace.ends for trace in traces), strict=True):
        assert np.array_equal(one, other)
    assert traces[0].states[None].table == traces[1].states[None].table
