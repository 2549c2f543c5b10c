"""From loops to machine code: kept, found again, compiled again, or done without."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint._rules import scalar
from setpoint.bulk import compile as compiling
from tests.laws.bulk import as_run, assert_same_run, live, plain

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
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setenv("SETPOINT_PLAIN", "0")
    compiling._fast.cache_clear()
    return tmp_path / "kernels"


# Kept and found again

SCRIPT = """
import json, sys
import numpy as np
import setpoint as sp
from setpoint.bulk.compile import loops
from setpoint.bulk.layout import layout_of

def hits(loop):
    stats = getattr(loop, "stats", None)
    found = stats and (sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
    return list(found) if found else None

tape = sp.Tape.from_arrays([[0.0, 1.0], [1.0, 2.0]], [3.0, 1.5])
risk = sp.Risk(sp.losses.Miscoverage(), level=0.2, step=sp.steps.Fixed(0.5))
answers = {}
for name, controller in {
    "paper": sp.Controller(sp.sets.Widen(), risk),
    "two risks": sp.Controller(sp.sets.Widen(), [risk, risk]),
    "default": sp.intervals(),
}.items():
    upper = sp.replay(controller, tape).upper.tolist()
    late = sp.replay(controller, tape, delay=1).upper.tolist()
    made = loops(layout_of(controller), 0)
    stage = hits(made.correct) if name == "default" else None
    answers[name] = [upper, late, hits(made.along), hits(made.run), stage]
print(json.dumps({"answers": answers, "numba": "numba" in sys.modules}))
"""


def run_elsewhere(folder: Path, **environment: str) -> dict[str, Any]:
    """Replays two rows in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if name != "SETPOINT_PLAIN"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env={**kept, "NUMBA_CACHE_DIR": str(folder), **environment},
        capture_output=True, text=True, cwd=ROOT, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def sets(got: dict[str, Any]) -> dict[str, Any]:
    return {name: answer[:2] for name, answer in got["answers"].items()}


def test_machine_code_is_kept_and_found_again_by_the_next_process(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    first = run_elsewhere(tmp_path, SETPOINT_PLAIN="0")
    kept = files(tmp_path)
    second = run_elsewhere(tmp_path, SETPOINT_PLAIN="0")
    assert sets(first) == sets(second)
    for name in first["answers"]:
        assert first["answers"][name][2:4] == [[0, 1], [0, 1]], name
        assert second["answers"][name][2:4] == [[1, 0], [1, 0]], name
    assert (first["answers"]["default"][4], second["answers"]["default"][4]) == ([0, 1], [1, 0])
    assert files(tmp_path) == kept
    assert any(name.endswith(".nbi") for name in kept)
    # Nowhere to keep anything: it compiles and gives the same.
    (tmp_path / "a file").write_text("")
    nowhere = tmp_path / "a file" / "home"
    third = run_elsewhere(
        nowhere, SETPOINT_PLAIN="0", HOME=str(nowhere), XDG_CACHE_HOME=str(nowhere)
    )
    assert sets(third) == sets(first)


def test_few_rows_need_no_compiler_and_give_the_same_numbers(tmp_path: Path) -> None:
    plain = run_elsewhere(tmp_path, SETPOINT_PLAIN="1")
    assert run_elsewhere(tmp_path)["answers"] == plain["answers"]
    assert plain["numba"] is False
    assert files(tmp_path) == []


def test_a_rule_that_changes_makes_other_machine_code(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller, tape = controller_of(), tape_of(3)
    sp.replay(controller, tape)
    kept = files(fresh)
    compiling._fast.cache_clear()
    sp.replay(controller, tape)
    assert files(fresh) == kept
    monkeypatch.setattr(compiling, "_stamp", lambda: "another text of the rules")
    compiling._fast.cache_clear()
    sp.replay(controller, tape)
    assert len(files(fresh)) > len(kept)


def test_the_size_of_the_work_decides_unless_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.delenv("SETPOINT_PLAIN")
    assert [compiling.compiled(n) for n in (1, compiling.SMALL)] == [False, True]
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    assert not compiling.compiled(compiling.SMALL)
    monkeypatch.setenv("SETPOINT_PLAIN", "0")
    assert compiling.compiled(1)


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
