"""From the text of a loop to machine code: kept, found again, made anew, or done without."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from math import inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.bulk import compile as compiling
from setpoint.bulk import loops, vectors
from setpoint.bulk.compile import kernel
from setpoint.bulk.vectors import layout_of, scalar
from tests.laws.bulk import as_run, assert_same_run, live, plain, replayed, swept

ROOT = Path(__file__).resolve().parents[1]


def controller_of(**parts: Any) -> sp.Controller:
    """A controller of one risk; the parts replace its own."""
    loss = parts.pop("loss", sp.losses.Miscoverage())
    step = parts.pop("step", sp.steps.Fixed(0.5))
    risk = sp.Risk(loss, level=0.2, step=step, start=0.0, bounds=(-2.0, 2.0))
    return sp.Controller(**{"sets": sp.sets.Widen(), "risks": risk, **parts})


def tape_of(rows: int = 60, seed: int = 0) -> sp.Tape:
    rng = np.random.default_rng(seed)
    centre, y = rng.normal(size=(2, rows))
    y[rng.random(rows) < 0.1] = np.nan
    return sp.Tape.from_arrays([centre - 0.5, centre + 0.5], y)


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of its own, and nothing compiled yet."""
    monkeypatch.setenv("SETPOINT_CACHE", str(tmp_path / "kernels"))
    compiling._kernel.cache_clear()
    return tmp_path / "kernels"


# Kept and found again

SCRIPT = """
import json, sys
import numpy as np
import setpoint as sp
from setpoint.bulk.compile import kernel
from setpoint.bulk.vectors import layout_of

risk = sp.Risk(sp.losses.Miscoverage(), level=0.2, step=sp.steps.Fixed(0.5))
controller = sp.Controller(sp.sets.Widen(), risk)
tape = sp.Tape.from_arrays([[0.0, 1.0], [1.0, 2.0]], [3.0, 1.5])
upper = sp.replay(controller, tape).upper.tolist()
stats = getattr(kernel(layout_of(controller), "along"), "stats", None)
print(json.dumps({
    "upper": upper,
    "numba": "numba" in sys.modules,
    "hits": sum(stats.cache_hits.values()) if stats else None,
    "misses": sum(stats.cache_misses.values()) if stats else None,
}))
"""


def run_elsewhere(**environment: str) -> dict[str, Any]:
    """Replays two rows in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if name != "SETPOINT_PLAIN"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env={**kept, **environment}, capture_output=True, text=True, cwd=ROOT, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_machine_code_is_kept_and_found_again_by_the_next_process(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    first = run_elsewhere(SETPOINT_CACHE=str(tmp_path))
    kept = files(tmp_path)
    second = run_elsewhere(SETPOINT_CACHE=str(tmp_path))
    assert (first["hits"], first["misses"]) == (0, 1)
    assert (second["hits"], second["misses"]) == (1, 0)
    assert first["upper"] == second["upper"] == [1.0, 2.4]
    assert files(tmp_path) == kept
    assert any(name.endswith(".nbi") for name in kept)
    assert not any(name.endswith(".tmp") for name in kept)
    # As in a container whose files are read-only: the text is there, nothing can be added.
    for path in (tmp_path / "__pycache__").iterdir():
        path.unlink()
    (tmp_path / "__pycache__").rmdir()
    (tmp_path / "__pycache__").write_text("")
    nowhere = str(tmp_path / "__pycache__" / "home")
    third = run_elsewhere(SETPOINT_CACHE=str(tmp_path), HOME=nowhere, XDG_CACHE_HOME=nowhere)
    assert third["upper"] == [1.0, 2.4]


def test_without_numba_the_numbers_are_the_same_and_it_is_not_imported(tmp_path: Path) -> None:
    got = run_elsewhere(SETPOINT_CACHE=str(tmp_path), SETPOINT_PLAIN="1")
    assert got["upper"] == [1.0, 2.4]
    assert got["numba"] is False
    assert files(tmp_path) == []


def module_of(controller: sp.Controller, loop: str = "along") -> Any:
    """The text of a loop as a module in the cache folder, None where it cannot be kept."""
    layout = layout_of(controller)
    known = {"rules": layout.rules, "places": layout, "narrow": False}
    shared = (*compiling._SHARED, getattr(loops, loop))
    return compiling._module(*compiling.specialised(shared, known))


def named(controller: sp.Controller, loop: str = "along") -> str:
    """The file in which the text of a loop is kept."""
    return str(module_of(controller, loop).__file__)


def test_a_cache_folder_that_cannot_be_made_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("SETPOINT_CACHE", str(tmp_path / "a file" / "kernels"))
    assert module_of(controller_of()) is None


def test_without_a_home_folder_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("SETPOINT_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert module_of(controller_of()) is None


def test_without_the_source_of_the_rules_nothing_is_kept(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where only byte code is installed: a change of the rules could not be seen."""

    def sourceless() -> str:
        raise OSError("could not get source code")

    monkeypatch.setattr(compiling, "_fingerprint", sourceless)
    assert module_of(controller_of()) is None
    assert files(fresh) == []


def test_a_kept_text_that_is_not_ours_is_written_anew(fresh: Path) -> None:
    text = Path(named(controller_of()))
    right = text.read_text()
    text.write_text(right + "\nraise SystemExit\n")
    assert named(controller_of()) == str(text)
    assert text.read_text() == right


def test_the_cache_folder_is_the_one_named_or_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETPOINT_CACHE", "/somewhere")
    assert compiling.cache_folder() == Path("/somewhere")
    monkeypatch.delenv("SETPOINT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert compiling.cache_folder() == Path("/cache/setpoint/kernels")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert compiling.cache_folder() == Path("/home/someone/.cache/setpoint/kernels")


def test_only_so_many_layouts_are_kept_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_MOST", 3)
    monkeypatch.setattr(vectors, "_layouts", {})
    for stretch in (sp.stretches.Identity(), sp.stretches.Exponential(), Root(), LookedUp()):
        assert layout_of(controller_of(stretch=stretch)) in vectors._layouts.values()
    assert len(vectors._layouts) == 3


# Named by what it was made from


def test_a_rule_that_changes_changes_the_name_of_the_file(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller, text = controller_of(), compiling._fingerprint()
    before = named(controller)
    assert named(controller) == before
    assert Path(before).parent == fresh
    edited = text.replace("params[0] * excess", "params[0] * excess * 1.0")
    assert edited != text
    monkeypatch.setattr(compiling, "_fingerprint", lambda: edited)
    assert named(controller) != before


def test_other_rules_and_other_loops_have_files_of_their_own(fresh: Path) -> None:
    controllers = [
        controller_of(),
        controller_of(sets=sp.sets.Scale()),
        controller_of(sets=sp.sets.Widen(support=(0.0, inf))),
        controller_of(stretch=sp.stretches.Exponential()),
        controller_of(loss=sp.losses.MiscoverageCounter()),
    ]
    names = {named(each, loop) for each in controllers for loop in ("along", "fleet", "sweep")}
    assert len(names) == 15


def test_other_numbers_share_a_file(fresh: Path) -> None:
    one = controller_of(loss=sp.losses.MiscoverageCounter(), step=sp.steps.Fixed(0.1))
    other = controller_of(loss=sp.losses.MiscoverageCounter(cap=3.0), step=sp.steps.Fixed(7.0))
    assert layout_of(one) is layout_of(other)
    assert named(one) == named(other)


def test_a_loop_is_made_once_for_each_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = layout_of(controller_of())
    fast = kernel(layout, "along")
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    slow = kernel(layout, "along")
    assert slow is not fast
    assert kernel(layout, "along") is slow
    monkeypatch.setenv("SETPOINT_PLAIN", "0")
    assert kernel(layout, "along") is fast


# A user's own rules


def root(params: Any, memory: Any, theta: float) -> float:
    """φ(θ) = sign(θ)·√|θ|."""
    return sqrt(theta) if theta >= 0.0 else -sqrt(-theta)


@dataclass(frozen=True)
class Root:
    """A stretch that compiles, although it is not one of the library's."""

    params = ()
    phi = staticmethod(root)
    move = None

    def init(self) -> tuple[float, ...]:
        return ()

    def inverse(self, lam: float, memory: Any = ()) -> float:
        return lam * abs(lam)


def decaying(
    params: Any, theta: float, memory: Any, excess: float, critical: float
) -> tuple[float, Any]:
    """γ/√n, n the number of steps until now."""
    count = memory[0] + 1.0
    return theta + params[0] / sqrt(count) * excess, (count,)


@dataclass(frozen=True)
class Decaying:
    """A step rule with a memory."""

    gamma: float
    rule = staticmethod(decaying)

    @property
    def params(self) -> tuple[float, ...]:
        return (self.gamma,)

    def init(self) -> tuple[float, ...]:
        return (0.0,)

    def claim(self, within: Any, memory: Any, T: int) -> sp.steps.Claim:
        return sp.steps.Claim()


def streak_share(params: Any, memory: Any, missed: bool) -> tuple[float, Any]:
    """1 − 2^−k after k misses in a row."""
    rest = memory[0] * 0.5 if missed else 1.0
    return 1.0 - rest, (rest,)


@dataclass(frozen=True)
class StreakShare:
    """A loss that only asks whether y was missed."""

    low, high, empty = 0.0, 1.0, 0.5
    params = ()
    rule = staticmethod(streak_share)

    def init(self) -> tuple[float, ...]:
        return (1.0,)

    def update(self, memory: Any, shown: Any, y: Any) -> tuple[float, Any]:
        return streak_share((), memory, not shown.contains(y))


def looked_up(params: Any, memory: Any, theta: float) -> float:
    """φ(θ) = θ by way of a dict of functions, which numba cannot compile."""
    return {"same": lambda value: value}["same"](theta)


@dataclass(frozen=True)
class LookedUp(Root):
    """A stretch that Python runs and numba does not."""

    phi = staticmethod(looked_up)

    def inverse(self, lam: float, memory: Any = ()) -> float:
        return lam


def bent(value: float) -> float:
    return value * 1.5 if value > 0.0 else value * 0.5


def helped(params: Any, memory: Any, theta: float) -> float:
    """φ that calls another function of the user's module."""
    return bent(theta)


@dataclass(frozen=True)
class Helped(Root):
    phi = staticmethod(helped)

    def inverse(self, lam: float, memory: Any = ()) -> float:
        return lam / (1.5 if lam > 0.0 else 0.5)


HARD = {
    "a stretch that numba cannot compile": controller_of(stretch=LookedUp()),
    "a stretch with a function of its own": controller_of(stretch=Helped()),
}


@pytest.mark.parametrize("controller", HARD.values(), ids=HARD)
def test_a_rule_that_numba_cannot_compile_gives_the_numbers_of_a_live_stream(
    controller: sp.Controller,
) -> None:
    tape = tape_of()
    run, _ = live(controller, plain(tape))
    for _ in range(2):  # the second call must not trip over the first
        assert_same_run(as_run(sp.replay(controller, tape)), run, exact=True)


def test_a_users_own_scalar_rules_run_as_machine_code_with_the_numbers_of_a_live_stream(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    controller = controller_of(stretch=Root(), step=Decaying(0.8), loss=StreakShare())
    assert scalar(controller)
    tape = tape_of()
    run, _ = live(controller, plain(tape))
    trace = sp.replay(controller, tape)
    assert_same_run(as_run(trace), run, exact=True)
    fleet = sp.Fleet(controller, 1)
    shown = fleet.run(tuple(column[:, None] for column in tape.prediction), tape.y[:, None])
    assert np.array_equal(shown.lower[:, 0], run.lower)
    assert fleet.theta[0] == run.state.risks[0].theta
    table = sp.sweep([controller, controller], tape)
    assert np.allclose(table.columns["risk"], trace.summary().risk)
    # Whoever wrote a rule may change it: its machine code is not kept.
    assert files(fresh) == []
    # Once compiled, a user's function is not called any more.
    called: list[float] = []
    monkeypatch.setattr(sys.modules[__name__], "sqrt", lambda value: called.append(value) or 0.0)
    assert np.array_equal(sp.replay(controller, tape).upper, trace.upper)
    assert not called


@dataclass(frozen=True)
class Sides:
    """A family of intervals whose columns are called as the user likes."""

    support: tuple[float, float] = (-inf, inf)
    columns = ("below", "above")
    shows = sp.sets.Interval
    ends = staticmethod(sp.sets.Widen.ends)
    score = staticmethod(sp.sets.Widen.score)
    sound = staticmethod(sp.sets.Widen.sound)

    def read(self, prediction: Any) -> tuple[float, float]:
        below, above = prediction
        return float(below), float(above)

    def label(self, y: Any) -> float:
        return float(y)

    def at(self, prediction: Any, lam: float) -> sp.sets.Interval:
        return sp.sets.Widen(self.support).at(prediction, lam)

    def critical(self, prediction: Any, y: float) -> float:
        return sp.sets.Widen.score(prediction, y)

    def start(self, level: float) -> float:
        return 0.0

    def bounds(self) -> None:
        return None

    def unit(self, prediction: Any) -> float:
        return 1.0


NAMES = [("below", "above"), ("lam", "theta0"), ("p", "z"), ("y", "s")]


@pytest.mark.parametrize("columns", NAMES, ids=" ".join)
def test_columns_may_have_any_name(
    columns: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of a loop has names of its own, and they do not get in the way."""
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    family = type("Named", (Sides,), {"columns": columns})()
    stretch = sp.stretches.ScoreAdaptive(0.2, -1.0, 1.0)
    own, usual = controller_of(sets=family, stretch=stretch), controller_of(stretch=stretch)
    rows = tape_of(25)
    named = {"a": rows.prediction[0], "b": rows.prediction[1]}
    tape = sp.Tape.from_arrays(named, rows.y)
    run, _ = live(usual, plain(rows))
    wide = tuple(np.repeat(column[:, None], 2, axis=1) for column in rows.prediction)
    fleet = sp.Fleet(own, 2)
    shown = fleet.run(wide, np.repeat(rows.y[:, None], 2, axis=1))
    assert np.array_equal(shown.lower[:, 1], run.lower)
    fleet.predict(tuple(column[0] for column in wide))
    fleet.update(np.zeros(2))
    assert_same_run(replayed(own, tape), run, exact=True)
    ours, theirs = swept([own, own], tape), swept([usual, usual], rows)
    for name, values in theirs.items():
        assert np.array_equal(ours[name], values, equal_nan=True), name
