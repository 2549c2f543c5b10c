"""The promise of formats: files of each release are read by this one, and go on as they would.

`python -m tests.test_formats` writes those of a release into `tests/data`, once, when it is made.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.spark.work import Work

DATA = Path(__file__).parent / "data"
RELEASES = sorted(DATA.glob("release_*"))

PAPER = sp.Controller(
    sp.sets.Widen(),
    sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-20.0, 20.0)),
    sp.stretches.ErrorAdaptive(score=0.1, loss=0.1, low=-1.0, high=1.0),
)
CONTROLLERS: dict[str, sp.Controller] = {
    "paper": PAPER,
    "intervals": sp.intervals(0.8, features=["hour"], period=24, support=(0.0, float("inf"))),
    "levels": sp.intervals([0.5, 0.9]),
    "quantiles": sp.quantiles([0.05, 0.5, 0.95], guarded=[0.95]),
    "labels": sp.label_sets(never_empty=True),
    "images": sp.label_sets(
        sets=sp.sets.PixelScale(), risk=sp.Risk(sp.losses.ImageMiscoverage(), 0.1)
    ),
    "paths": sp.paths(3, totals=[3], maximum=True),
    "aci": sp.published.aci(0.9),
    "two_risks": sp.Controller(
        sp.sets.Multilabel(("fog", "rain")),
        [
            sp.Risk(sp.losses.FalseNegatives(), 0.1, sp.steps.Fixed(0.05)),
            sp.Risk(sp.losses.MiscoverageCounter(5.0), 0.2, sp.published.Decaying(1.0)),
        ],
        combine=sp.combine.Max(anti_windup=1.0),
    ),
}


def lived(stream: sp.Stream) -> sp.Stream:
    """A stream after 300 rows, some of them in a group, with two that wait."""
    world = random.Random(1)
    for row in range(302):
        groups = ("north",) if row % 3 == 0 and stream.controller is not PAPER else ()
        stream.predict((9.0, 11.0), row, groups=groups)
        if row > 1:
            stream.update(10.0 + world.gauss(0.0, 1.0 + row % 2), row - 2)
    return stream


def fleet() -> sp.Fleet:
    """Three streams after twenty rows, the last of which waits."""
    found, rng = sp.Fleet(sp.intervals(), ["a", "b", 3]), np.random.default_rng(2)
    for row in range(20):
        found.predict((np.full(3, 9.0), np.full(3, 11.0)), batch=row)
        if row < 19:
            found.update(rng.normal(10.0, 2.0, 3), batch=row)
    return found


def tape() -> sp.Tape:
    rng = np.random.default_rng(3)
    columns = {"lower": rng.normal(size=40) - 1.0, "upper": rng.normal(size=40) + 2.0}
    y = np.where(np.arange(40) % 9 == 4, np.nan, rng.normal(size=40))
    return sp.Tape.from_arrays(columns, y, series=np.repeat(["a", "b"], 20), delay=2)


def bucket() -> bytes:
    """The packed states of five keys of a Spark query."""
    rng, rows = np.random.default_rng(4), np.arange(100)
    columns = {
        "key": rows % 5, "time": rows // 5, "lower": np.full(100, 9.0),
        "upper": np.full(100, 11.0), "y": rng.normal(10.0, 2.0, 100),
    }  # fmt: skip
    blob, _ = Work(PAPER).step_many(None, columns)
    return bytes(blob)


def said_of(folder: Path) -> dict[str, Any]:
    """What the files of a release say, as numbers."""
    found: dict[str, Any] = {}
    for name in ("paper", "levels"):
        stream = sp.Stream.load(folder / f"{name}.zip")
        stream.update(14.0, 300)
        found[name] = [np.ravel(stream.theta).tolist(), np.ravel(stream.lam).tolist()]
        shown: Any = stream.predict((9.0, 11.0))
        found[name] += [np.ravel(shown).tolist(), sorted(map(str, stream.pending))]
    many = sp.Fleet.load(folder / "fleet.zip")
    many.update(np.array([10.0, 15.0, 5.0]), batch=19)
    shown = many.predict((np.full(3, 9.0), np.full(3, 11.0)), batch=20)
    found["fleet"] = [many.theta.tolist(), np.ravel(shown).tolist()]
    work = Work(PAPER)
    states = work.unpack((folder / "bucket.bin").read_bytes()).states(PAPER)
    found["bucket"] = {str(key): state.risks[0].theta for key, state in states.items()}
    return found


def write() -> Path:
    """Writes the files of this release."""
    folder = DATA / f"release_{sp.__version__.replace('.', '_')}"
    folder.mkdir(exist_ok=True)
    for name, controller in CONTROLLERS.items():
        (folder / f"{name}.toml").write_text(sp.spec.to_toml(controller), "utf-8")
    lived(sp.Stream(PAPER)).save(folder / "paper.zip")
    lived(sp.Stream(CONTROLLERS["levels"])).save(folder / "levels.zip")
    fleet().save(folder / "fleet.zip")
    for kind in ("npz", "parquet", "csv"):
        tape().write(folder / f"tape.{kind}")
    (folder / "bucket.bin").write_bytes(bucket())
    (folder / "said.json").write_text(json.dumps(said_of(folder), indent=1) + "\n", "utf-8")
    return folder


def close(left: Any, right: Any) -> bool:
    """Whether two values are alike, numbers but for what another machine's exp may do."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(close(left[k], right[k]) for k in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(close, left, right))
    return left == (pytest.approx(right, rel=1e-9) if isinstance(right, float) else right)


@pytest.mark.parametrize("folder", RELEASES, ids=lambda folder: folder.name)
def test_states_and_checkpoints_of_a_release_go_on(folder: Path) -> None:
    said = json.loads((folder / "said.json").read_text("utf-8"))
    found = json.loads(json.dumps(said_of(folder)))
    assert [name for name in said if not close(found[name], said[name])] == []


@pytest.mark.parametrize("folder", RELEASES, ids=lambda folder: folder.name)
def test_controllers_of_a_release_are_read(folder: Path) -> None:
    for path in folder.glob("*.toml"):
        assert sp.spec.from_toml(path.read_text("utf-8")) == CONTROLLERS[path.stem], path.name


@pytest.mark.parametrize("folder", RELEASES, ids=lambda folder: folder.name)
@pytest.mark.parametrize("kind", ["npz", "parquet", "csv"])
def test_tapes_of_a_release_are_read(folder: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    found, wanted = sp.Tape.read(folder / f"tape.{kind}"), tape()
    assert found.names == wanted.names
    for column, other in zip(
        (*found.prediction, found.y), (*wanted.prediction, wanted.y), strict=True
    ):
        np.testing.assert_array_equal(column, other)
    assert list(found.series) == list(wanted.series)


if __name__ == "__main__":
    sys.stdout.write(f"{write()}\n")
