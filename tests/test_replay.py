"""Replay and sweep: what a trace tells, which controllers and tapes they take, what they cost."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.bulk.sweep import Sweep
from setpoint.errors import (
    InputError,
    LabelError,
    LossError,
    SetpointError,
    TapeError,
)
from setpoint.losses import Custom, Miscoverage, MiscoverageCounter
from setpoint.metrics import summary
from setpoint.sets import Scale, Widen
from setpoint.tape import Ragged
from tests.laws.bulk import (
    as_run,
    assert_same_metrics,
    assert_same_run,
    assert_same_state,
    live,
    plain,
)

ROOT = Path(__file__).resolve().parents[1]


def risk_of(loss: Any = None, level: float = 0.2, gamma: float = 0.3, **options: Any) -> sp.Risk:
    options.setdefault("bounds", (-1.0, 1.0))
    return sp.Risk(loss or Miscoverage(), level, sp.steps.Fixed(gamma), **options)


ONE = sp.Controller(Widen(), risk_of())
TWO = sp.Controller(Widen(), (risk_of(), risk_of(MiscoverageCounter(cap=3.0), 0.3, 0.2)))


def tape_of(rows: int, seed: int = 0, **columns: Any) -> sp.Tape:
    """Quantiles that are too narrow, labels of which some are missing, groups."""
    rng = np.random.default_rng(seed)
    centre = np.cumsum(rng.normal(size=rows))
    y = centre + rng.normal(size=rows)
    y[rng.random(rows) < 0.1] = nan
    columns.setdefault("group", rng.integers(0, 4, rows))
    return sp.Tape.from_arrays([centre - 0.8, centre + 0.8], y, **columns)


def small(y: list[float], **columns: Any) -> sp.Tape:
    """Predictions that never change."""
    return sp.Tape.from_arrays([[0.0] * len(y), [1.0] * len(y)], y, **columns)


@pytest.fixture(params=["compiled", "plain"])
def mode(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """With numba and without."""
    monkeypatch.setenv("SETPOINT_PLAIN", "1" if request.param == "plain" else "")
    return request.param


# What a trace tells


def test_a_trace_by_hand(mode: str) -> None:
    controller = sp.Controller(Widen(), risk_of(level=0.25, gamma=2.0, start=0.0))
    trace = sp.replay(controller, small([1.5, 0.5, nan, 3.0, 2.5, 2.0]))
    # θ: 0, 1.5 (full: above 1), 1, 1, 2.5 (full), 2 (full)
    assert trace.theta.tolist() == [[0.0, 1.5, 1.0, 1.0, 2.5, 2.0]]
    assert trace.lam.tolist() == [0.0, inf, 1.0, 1.0, inf, inf]
    assert trace.lower.tolist() == [0.0, -inf, -1.0, -1.0, -inf, -inf]
    assert trace.upper.tolist() == [1.0, inf, 2.0, 2.0, inf, inf]
    assert np.array_equal(trace.losses, [[1.0, 0.0, nan, 1.0, 0.0, 0.0]], equal_nan=True)
    assert trace.covered.tolist() == [False, True, False, False, True, True]
    assert trace.full.tolist() == [False, True, False, False, True, True]
    assert not trace.empty.any()
    assert trace.shown is None
    own, state = trace.state.risks[0], trace.state
    assert (own.theta, own.first, own.judged, own.total) == (1.5, 0.0, 5, 2.0)
    assert (state.full, state.empty, state.missing) == (3, 0, 1)
    assert repr(trace) == "<Trace of 6 rows, 1 streams>"
    assert trace.controller is controller


def test_a_trace_knows_where_the_safeguard_chose_the_empty_set(mode: str) -> None:
    controller = sp.Controller(Widen(), risk_of(level=0.5, gamma=1.0, bounds=(-0.4, 1.0)))
    trace = sp.replay(controller, small([0.5, 0.5, 0.5]))
    assert trace.lam.tolist() == [0.0, -inf, 0.0]
    assert trace.empty.tolist() == [False, True, False]
    assert (trace.lower[1], trace.upper[1]) == (inf, -inf)
    assert trace.losses[0].tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("risk", [0, 1])
@pytest.mark.parametrize("support", [(-inf, inf), (-100.0, inf)])
def test_the_summary_of_a_trace_is_what_a_live_stream_would_have_counted(
    risk: int, support: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "" if support == (-inf, inf) else "1")
    controller = replace(TWO, sets=Widen(support=support))
    tape = tape_of(400)
    got = sp.replay(controller, tape).summary(risk, window=50)
    level = controller.risks[risk].level
    stream = sp.Stream(controller, missing="skip")
    rows = []
    for prediction, y in plain(tape):
        shown = stream.predict(prediction)
        losses = stream.update(y)
        rows.append((*shown, y, nan if losses is None else losses[risk]))
    lower, upper, y, loss = zip(*rows, strict=True)
    wanted = summary(
        lower, upper, y, level, losses=loss, window=50, coverage=0.8, support=support,
        groups=tape.group,
    )  # fmt: skip
    for name, value in wanted.as_dict().items():
        assert getattr(got, name) == pytest.approx(value, rel=1e-9, nan_ok=True), name
    assert got.missing == int(np.isnan(tape.y).sum())


def test_a_trace_has_the_certificate_of_a_live_stream(mode: str) -> None:
    tape = tape_of(300)
    stream = sp.Stream(TWO, missing="skip")
    for prediction, y in plain(tape):
        stream.predict(prediction)
        stream.update(y)
    certificate = sp.replay(TWO, tape).certificate()
    assert certificate == stream.certificate()
    assert all(risk.within for risk in certificate.risks)


# Several streams in one tape


def interleaved(mode: str) -> tuple[sp.Tape, dict[Any, sp.Tape]]:
    """Three streams of different lengths whose rows come in any order."""
    parts = {"north": tape_of(120, 1), "south": tape_of(7, 2), "west": tape_of(60, 3)}
    rng = np.random.default_rng(4)
    ids = np.repeat(list(parts), [len(part) for part in parts.values()])
    rng.shuffle(ids)
    rows = {name: iter(range(len(part))) for name, part in parts.items()}
    taken = [(name, next(rows[name])) for name in ids.tolist()]

    def column(pick: Any) -> Any:
        return np.array([pick(parts[name])[row] for name, row in taken])

    tape = sp.Tape.from_arrays(
        [column(lambda part: part.prediction[0]), column(lambda part: part.prediction[1])],
        column(lambda part: part.y),
        series=ids.tolist(), group=column(lambda part: part.group),
    )  # fmt: skip
    return tape, parts


@pytest.mark.parametrize("controller", [ONE, TWO], ids=["one risk", "two risks"])
def test_streams_that_share_a_tape_are_as_they_are_alone(
    controller: sp.Controller, mode: str
) -> None:
    tape, parts = interleaved(mode)
    trace = sp.replay(controller, tape)
    assert set(trace.states) == set(parts)
    for name, part in parts.items():
        alone, rows = sp.replay(controller, part), tape.rows(name)
        for field in ("lower", "upper", "lam", "covered", "theta", "losses"):
            together = getattr(trace, field)[..., rows]
            assert np.array_equal(together, getattr(alone, field), equal_nan=True), field
        assert_same_state(trace.states[name], alone.state, exact=True)
        assert trace.certificate(name) == alone.certificate()


def test_streaks_end_where_their_stream_does(mode: str) -> None:
    tape = small([9.0, 9.0, 9.0, 0.5, 0.5, 9.0], series=list("abaabb"))
    still = sp.Controller(Widen(), risk_of(level=0.2, gamma=1e-9))
    got = sp.replay(still, tape).summary()
    # a: 9, 9, 0.5: a streak of two; b: 9, 0.5, 9: two of one
    assert (got.streaks, got.longest_streak) == (3, 2)
    assert got.msl == pytest.approx(4 / 3)
    assert got.mc == pytest.approx((1 + 2 + 0 + 1 + 0 + 1) / 6)
    assert got.coverage == pytest.approx(2 / 6)


def test_one_state_of_several_is_asked_for_by_its_id(mode: str) -> None:
    trace = sp.replay(ONE, small([0.5, 0.5], series=["a", "b"]))
    with pytest.raises(InputError, match="the trace has 2 streams"):
        _ = trace.state
    with pytest.raises(SetpointError, match=r"a, b|'a', 'b'|2 streams"):
        trace.certificate()
    with pytest.raises(SetpointError, match="c"):
        trace.certificate("c")
    assert trace.certificate("b").risks[0].judged == 1


def test_each_stream_goes_on_from_its_own_state(mode: str) -> None:
    tape, parts = interleaved(mode)
    whole = sp.replay(TWO, tape)
    first = sp.replay(TWO, tape[:90])
    second = sp.replay(TWO, tape[90:], first.states)
    for name in parts:
        ended = second.states.get(name, first.states[name])
        assert_same_state(ended, whole.states[name], exact=True)
    assert np.array_equal(second.upper, whole.upper[90:])


def test_one_state_serves_every_stream_and_stays_as_it_was(mode: str) -> None:
    state = sp.replay(ONE, small([9.0])).state
    before = state.copy()
    trace = sp.replay(ONE, small([9.0, 9.0], series=["a", "b"]), state)
    assert trace.theta.tolist() == [[state.risks[0].theta] * 2]
    assert_same_state(state, before, exact=True)
    assert trace.states["a"] is not trace.states["b"]


def test_the_state_of_another_controller_is_refused(mode: str) -> None:
    with pytest.raises(InputError, match="made by another controller"):
        sp.replay(TWO, tape_of(5), ONE.init())
    with pytest.raises(InputError, match="made by another controller"):
        sp.replay(TWO, tape_of(5), {None: ONE.init()})


# Parts that are no scalar rules


@dataclass(frozen=True)
class Labels:
    """A set of whole numbers."""

    held: frozenset[int]

    def contains(self, y: int) -> bool:
        return y in self.held

    @property
    def size(self) -> int:
        return len(self.held)


@dataclass(frozen=True)
class Threshold:
    """Classes whose probability is at least −λ."""

    classes: int = 3

    def read(self, prediction: Any) -> tuple[float, ...]:
        return tuple(float(each) for each in prediction)

    def label(self, y: Any) -> int:
        return int(y)

    def at(self, prediction: Any, lam: float) -> Labels:
        return Labels(frozenset(k for k, p in enumerate(prediction) if -p <= lam))

    def critical(self, prediction: Any, y: int) -> float:
        return -prediction[y]

    def start(self, level: float) -> float:
        return -level

    def bounds(self) -> tuple[float, float]:
        return -1.0, 0.0

    def unit(self, prediction: Any) -> float:
        return 1.0


def classes_tape(rows: int = 60, seed: int = 0, **columns: Any) -> sp.Tape:
    """Probabilities of three classes, one ragged row each."""
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet([1.0, 1.0, 1.0], rows)
    labels = np.array([rng.choice(3, p=chance) for chance in chances], dtype=float)
    labels[::11] = nan
    column = Ragged(chances.ravel(), np.arange(0, 3 * rows + 1, 3))
    return sp.Tape.from_arrays({"probabilities": column}, labels, **columns)


def shortfall(shown: Any, y: float) -> float:
    return min(max(y - shown.upper, 0.0) / 2.0, 1.0)


def mostly(shown: Any, y: float) -> float | None:
    """Nothing to judge where y is negative."""
    return None if y < 0.0 else shortfall(shown, y)


@dataclass(frozen=True)
class Toward:
    """A step rule that asks for the critical value, by a method that cannot be compiled."""

    share: float = 0.3
    scored = True

    @property
    def params(self) -> tuple[float, ...]:
        return (self.share,)

    def init(self) -> tuple[float, ...]:
        return ()

    def rule(
        self, params: Any, theta: float, memory: Any, excess: float, critical: float
    ) -> tuple[float, Any]:
        return theta + params[0] * excess * abs(critical - theta), memory

    def claim(self, within: Any, memory: Any, T: int) -> sp.steps.Claim:
        return sp.steps.Claim()


OTHERS = {
    "a callable loss": sp.Controller(Widen(), risk_of(Custom(shortfall))),
    "a loss with nothing to judge": sp.Controller(Widen(), risk_of(Custom(mostly))),
    "two risks, one a callable": sp.Controller(
        Widen(), (risk_of(), risk_of(Custom(shortfall), 0.1)), combine=sp.combine.Max(0.5)
    ),
    "a step rule that asks for more": sp.Controller(
        Widen(), sp.Risk(Miscoverage(), 0.2, Toward(), bounds=(-1.0, 1.0))
    ),
}


@pytest.mark.parametrize("controller", OTHERS.values(), ids=OTHERS)
def test_parts_that_are_no_scalar_rules_run_step_by_step_like_a_live_stream(
    controller: sp.Controller,
) -> None:
    tape = tape_of(80)
    run, _ = live(controller, plain(tape))
    trace = sp.replay(controller, tape)
    run = run._replace(losses=np.where(np.isnan(run.losses), nan, run.losses))
    assert_same_run(as_run(trace), run, exact=True)
    assert str(trace.certificate()) == str(sp.guarantee.certify(controller, run.state))
    table = sp.sweep([controller, controller], tape)
    for index in range(2):
        assert_same_metrics(table.row(index), trace)


def test_a_family_of_label_sets_keeps_the_sets_it_showed() -> None:
    controller = sp.Controller(Threshold(), sp.Risk(Miscoverage(), 0.3, sp.steps.Fixed(0.05)))
    tape = classes_tape()
    trace = sp.replay(controller, tape)
    stream = sp.Stream(controller, missing="skip")
    for row, y in enumerate(tape.y.tolist()):
        shown = stream.predict(tape.prediction[0][row])
        assert trace.shown[row] == shown
        loss = stream.update(y)
        assert loss is None if isnan(y) else trace.losses[0, row] == loss
        assert trace.covered[row] == (not isnan(y) and shown.contains(int(y)))
    assert np.isnan(trace.lower).all()
    assert np.isnan(trace.upper).all()
    assert_same_state(trace.state, stream.state, exact=True)
    got = trace.summary()
    seen = ~np.isnan(tape.y)
    sizes = np.array([shown.size for shown in trace.shown])
    assert got.steps == int(seen.sum())
    assert got.mean_length == pytest.approx(sizes[seen].mean())
    assert got.coverage == pytest.approx(1.0 - np.nanmean(trace.losses))
    assert isnan(got.pinball)
    assert sp.sweep([controller], tape).row(0)["coverage"] == pytest.approx(got.coverage)


# Sweeps


def gammas(*values: float, base: sp.Controller = ONE) -> list[sp.Controller]:
    return [
        replace(
            base,
            risks=tuple(replace(risk, step=sp.steps.Fixed(gamma)) for risk in base.risks),
        )
        for gamma in values
    ]


@pytest.mark.parametrize("base", [ONE, TWO], ids=["one risk", "two risks"])
def test_a_sweep_says_of_each_controller_what_its_replay_says(
    base: sp.Controller, mode: str
) -> None:
    controllers, tape = gammas(0.01, 0.2, 1.0, 7.0, base=base), tape_of(300)
    table = sp.sweep(controllers, tape)
    for index, controller in enumerate(controllers):
        assert_same_metrics(table.row(index), sp.replay(controller, tape))


def test_controllers_of_any_kind_share_a_sweep_and_keep_their_places(mode: str) -> None:
    tape = tape_of(120)
    mixed = [
        *gammas(0.1), OTHERS["a callable loss"], *gammas(0.2, base=TWO), *gammas(0.4),
        sp.Controller(Widen(), risk_of(), sp.stretches.ScoreAdaptive(0.1, -1.0, 1.0)),
    ]  # fmt: skip
    table = sp.sweep(mixed, tape)
    assert table.controllers == tuple(mixed)
    assert len(table) == 5
    for index, controller in enumerate(mixed):
        row, alone = table.row(index), sp.sweep([controller], tape).row(0)
        assert_same_metrics(row, sp.replay(controller, tape))
        for name, value in alone.items():
            assert row[name] == pytest.approx(value, nan_ok=True), name
    assert np.isnan(table.columns["risk1"]).tolist() == [True, True, False, True, True]


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_a_level_at_the_end_of_its_range_can_be_swept(level: float, mode: str) -> None:
    """At a nominal coverage of 1 a miss costs an infinite Winkler score, and nothing raises."""
    controller = sp.Controller(Widen(), risk_of(level=level))
    tape = tape_of(60)
    table = sp.sweep([controller], tape)
    assert_same_metrics(table.row(0), sp.replay(controller, tape))


def test_intervals_that_hold_no_number_are_empty_in_a_sweep_too(mode: str) -> None:
    tape = sp.Tape.from_arrays([[inf, -inf, 0.0, 2.0], [inf, -inf, 1.0, 1.0]], [0.5] * 4)
    still = sp.Controller(Widen(), risk_of(gamma=1e-9, bounds=None))
    assert sp.replay(still, tape).summary().empty == 0.75
    assert sp.sweep([still], tape).row(0)["empty"] == 0.75


def test_a_sweep_of_nothing_is_empty(mode: str) -> None:
    table = sp.sweep([], tape_of(5))
    assert len(table) == 0
    assert table.columns == {}


# Odd tapes


@pytest.mark.parametrize("controller", [ONE, TWO, OTHERS["a callable loss"]])
def test_an_empty_tape_gives_an_empty_trace(controller: sp.Controller, mode: str) -> None:
    tape = sp.Tape.from_arrays([[], []], [])
    trace = sp.replay(controller, tape)
    assert len(trace.lower) == 0
    assert trace.theta.shape == (len(controller.risks), 0)
    assert_same_state(trace.state, controller.init(), exact=True)
    got = trace.summary()
    assert got.steps == 0
    assert isnan(got.risk)
    assert trace.certificate().risks[0].judged == 0
    row = sp.sweep([controller], tape).row(0)
    assert row["steps"] == 0
    assert isnan(row["risk"])
    assert row["msl"] == 0.0


@pytest.mark.parametrize("controller", [ONE, TWO, OTHERS["a callable loss"]])
def test_without_a_label_nothing_moves_and_nothing_is_judged(
    controller: sp.Controller, mode: str
) -> None:
    tape = small([nan] * 4)
    trace = sp.replay(controller, tape)
    wanted = controller.init()
    wanted.missing = 4
    assert_same_state(trace.state, wanted, exact=True)
    assert np.isnan(trace.losses).all()
    assert not trace.covered.any()
    assert (trace.lower == trace.lower[0]).all()
    assert isnan(trace.summary().coverage)
    assert trace.summary().missing == 4
    row = sp.sweep([controller], tape).row(0)
    assert isnan(row["risk"])
    assert isnan(row["mean_length"])


def test_a_label_outside_the_support_is_refused(mode: str) -> None:
    controller = sp.Controller(Widen(support=(0.0, 5.0)), risk_of())
    with pytest.raises(LabelError, match=r"support \[0.0, 5.0\].*got -1.0"):
        sp.replay(controller, small([1.0, nan, -1.0]))
    with pytest.raises(LabelError, match=r"support \[0.0, 5.0\].*got 6.0"):
        sp.sweep([controller], small([6.0]))


def test_columns_that_a_family_cannot_read_are_refused(mode: str) -> None:
    three = sp.Tape.from_arrays([[0.0], [1.0], [1.0]], [0.5])
    with pytest.raises(InputError):
        sp.replay(ONE, three)
    with pytest.raises(InputError):
        sp.replay(replace(ONE, sets=Scale()), small([0.5]))
    with pytest.raises(InputError):
        sp.sweep([ONE], three)


def test_columns_are_told_by_their_names(mode: str) -> None:
    """A tape whose columns are called upper and lower, in this order, is not read crosswise."""
    right = sp.Tape.from_arrays({"lower": [0.0, 0.0], "upper": [1.0, 1.0]}, [0.5, 0.7])
    turned = sp.Tape.from_arrays({"upper": [1.0, 1.0], "lower": [0.0, 0.0]}, [0.5, 0.7])
    assert sp.replay(ONE, turned).upper.tolist() == sp.replay(ONE, right).upper.tolist()
    assert sp.sweep([ONE], turned).row(0) == sp.sweep([ONE], right).row(0)


def test_one_column_is_a_point_forecast(mode: str) -> None:
    point = sp.Tape.from_arrays(np.array([1.0, 2.0]), [1.5, 5.0])
    pair = sp.Tape.from_arrays([[1.0, 2.0], [1.0, 2.0]], [1.5, 5.0])
    assert_same_run(as_run(sp.replay(ONE, point)), as_run(sp.replay(ONE, pair)), exact=True)
    assert sp.sweep([ONE], point).row(0) == sp.sweep([ONE], pair).row(0)


def test_replaying_changes_no_tape(mode: str) -> None:
    tape, _ = interleaved(mode)
    before = [column.copy() for column in (*tape.prediction, tape.y)]
    for column in (*tape.prediction, tape.y):
        column.flags.writeable = False
    sp.replay(TWO, tape)
    sp.sweep([TWO], tape)
    for column, kept in zip((*tape.prediction, tape.y), before, strict=True):
        assert np.array_equal(column, kept, equal_nan=True)


# What it costs

MEMORY = """
import json, resource, sys
import numpy as np
import setpoint as sp

rows, configurations = int(sys.argv[1]), int(sys.argv[2])

def used():
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024

def controller(gamma):
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(gamma), bounds=(-9.0, 9.0))
    return sp.Controller(sp.sets.Widen(), risk)

def tape(rows):
    rng = np.random.default_rng(0)
    y = rng.normal(size=rows)
    return sp.Tape.from_arrays([np.full(rows, -1.0), np.full(rows, 1.0)], y)

small, long = tape(100), tape(rows)
many = [controller(0.001 * (1 + i)) for i in range(configurations)]
sp.replay(many[0], small), sp.sweep(many, small)
before = used()
if configurations == 1:
    trace = sp.replay(many[0], long)
    judged = trace.state.risks[0].judged
    right = trace.certificate().risks[0].within
else:
    table = sp.sweep(many, long)
    judged, right = int(table.columns["steps"][0]), bool((table.columns["risk"] < 0.11).all())
print(json.dumps({"more": used() - before, "tape": 24 * rows, "judged": judged, "right": right}))
"""


def measured(rows: int, configurations: int) -> dict[str, Any]:
    """The memory that a replay or a sweep needs beyond its tape, in a process of its own."""
    pytest.importorskip("numba")
    pytest.importorskip("resource")
    kept = {name: value for name, value in os.environ.items() if name != "SETPOINT_PLAIN"}
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(rows), str(configurations)],
        env=kept, capture_output=True, text=True, cwd=ROOT, timeout=900, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_a_replay_needs_a_small_constant_times_its_tape() -> None:
    got = measured(1_000_000, 1)
    assert got["judged"] == 1_000_000
    assert got["more"] < 3 * got["tape"]


def test_a_sweep_needs_no_memory_for_steps_times_configurations() -> None:
    got = measured(300_000, 100)
    assert got["judged"] == 300_000
    assert got["more"] < got["tape"] + 20_000_000  # all λ's alone would be 240 MB


@pytest.mark.slow
def test_ten_million_rows_are_replayed_within_a_small_constant_times_the_tape() -> None:
    got = measured(10_000_000, 1)
    assert got["judged"] == 10_000_000
    assert got["right"]
    assert got["more"] < 3 * got["tape"]


@pytest.mark.slow
def test_a_thousand_configurations_on_a_long_tape_need_little_memory() -> None:
    got = measured(1_000_000, 1_000)
    assert got["right"]
    assert got["more"] < 2 * got["tape"] + 50_000_000


# Several streams as one table


def test_the_worst_window_is_that_of_the_worst_stream_however_the_rows_lie(mode: str) -> None:
    tape, parts = interleaved(mode)
    after_each_other = sp.Tape.from_arrays(
        [np.concatenate([part.prediction[i] for part in parts.values()]) for i in range(2)],
        np.concatenate([part.y for part in parts.values()]),
        series=np.repeat(list(parts), [len(part) for part in parts.values()]).tolist(),
    )
    for window in (1, 5, 30, 250):
        alone = {name: sp.replay(ONE, part).summary(window=window) for name, part in parts.items()}
        worst = max(found.worst_window for found in alone.values())
        for each in (tape, after_each_other):
            got = sp.replay(ONE, each).summary(window=window)
            assert got.worst_window == pytest.approx(worst, rel=1e-12)
            assert got.worst_window_start in [
                each.rows(name)[found.worst_window_start]
                for name, found in alone.items()
                if found.worst_window == pytest.approx(worst, rel=1e-12)
            ]
            counts = {name: max(found.steps - window + 1, 1) for name, found in alone.items()}
            squares = sum(counts[name] * alone[name].rms_window ** 2 for name in alone)
            assert got.rms_window == pytest.approx((squares / sum(counts.values())) ** 0.5)


# Going on


@pytest.mark.parametrize("base", [ONE, TWO], ids=["one risk", "two risks"])
def test_a_sweep_goes_on_from_states(base: sp.Controller, mode: str) -> None:
    tape, _ = interleaved(mode)
    states = dict(sp.replay(base, tape[:90]).states)
    rest = tape[90:]
    states = {id: state for id, state in states.items() if id in rest.streams}
    controllers = gammas(0.05, 0.5, base=base)
    some = dict(list(states.items())[:1])
    for state in (states, some, next(iter(states.values()))):
        table = sp.sweep(controllers, rest, state=state)
        for index, controller in enumerate(controllers):
            assert_same_metrics(table.row(index), sp.replay(controller, rest, state))


def test_a_state_that_is_none_is_refused(mode: str) -> None:
    tape, state = small([0.5, 0.5], series=["a", "b"]), ONE.init()

    def swept(controller: sp.Controller, tape: sp.Tape, state: Any) -> Sweep:
        return sp.sweep([controller], tape, state=state)

    for run in (sp.replay, swept):
        with pytest.raises(InputError, match="state must be a State or a mapping"):
            run(ONE, tape, 3.0)
        with pytest.raises(InputError, match=r"no stream 'c', .* it has 'a', 'b'"):
            run(ONE, tape, {"a": state, "c": state})
        with pytest.raises(InputError, match="the state of 'a' must be a State"):
            run(ONE, tape, {"a": None})


def test_what_a_state_counted_before_goes_on_in_a_replay(mode: str) -> None:
    stream = sp.Stream(ONE)
    for step in range(4):
        stream.predict((0.0, 1.0), id=step)
    stream.drop(0)
    for step in range(1, 4):
        stream.update(0.5, id=step)
    trace = sp.replay(ONE, small([0.5, 2.0]), stream.state)
    live_on = sp.Stream(ONE, state=stream.state)
    for y in (0.5, 2.0):
        live_on.predict((0.0, 1.0))
        live_on.update(y)
    assert_same_state(trace.state, live_on.state, exact=True)
    assert trace.state.peak == 4
    assert trace.state.dropped == 1


# A user's own loss must keep its promises


def breaking(params: Any, memory: Any, missed: bool) -> tuple[float, Any]:
    """Grows with every miss, beyond its range; what a covered label costs, even on the full set."""
    count = memory[0] + 1.0 if missed else memory[0]
    return (count if missed else params[0]), (count,)


@dataclass(frozen=True)
class Own:
    """A loss of the user's with a rule."""

    cost: float = 0.0
    low, high = 0.0, 2.0
    empty = 1.0
    rule = staticmethod(breaking)

    @property
    def params(self) -> tuple[float, ...]:
        return (self.cost,)

    def init(self) -> tuple[float, ...]:
        return (0.0,)

    def update(self, memory: Any, shown: Any, y: Any) -> tuple[float, Any]:
        return breaking(self.params, memory, not shown.contains(y))


def test_a_users_loss_with_a_rule_is_held_to_its_promises(mode: str) -> None:
    still = sp.Controller(Widen(), risk_of(Own(), gamma=1e-9))
    fine, wrong = small([9.0, 0.5, 9.0, nan]), small([9.0, 0.5, 9.0, nan, 9.0])
    assert sp.replay(still, fine).losses[0, :3].tolist() == [1.0, 0.0, 2.0]
    assert sp.sweep([still], fine).row(0)["risk"] == 1.0
    for run in (lambda: sp.replay(still, wrong), lambda: sp.sweep([still], wrong)):
        with pytest.raises(LossError, match=r"Own promises a loss in \[0, 2\], got 3.0"):
            run()
    # Too large on the full set.
    up = sp.Controller(Widen(), risk_of(Own(0.5), level=0.2, gamma=2.0))
    assert sp.replay(up, small([0.5])).losses.tolist() == [[0.5]]
    wrong = small([9.0, 0.5])
    for run in (lambda: sp.replay(up, wrong), lambda: sp.sweep([up], wrong)):
        with pytest.raises(LossError, match=r"at most 0 on the full set, got 0\.5"):
            run()


# Which labels were seen


def test_coverage_is_the_share_of_the_labels_that_were_seen(mode: str) -> None:
    trace = sp.replay(ONE, small([0.5, nan, 9.0, nan]))
    assert trace.observed.tolist() == [True, False, True, False]
    assert trace.coverage == 0.5
    assert isnan(sp.replay(ONE, small([nan])).coverage)


# Names of columns


def test_columns_whose_names_contradict_their_places_are_refused(mode: str) -> None:
    for names in (("upper", "q05"), ("q95", "lower")):
        tape = sp.Tape.from_arrays({name: [0.0] for name in names}, [0.5])
        with pytest.raises(InputError, match="needs the columns lower, upper, the tape has"):
            sp.replay(ONE, tape)
    with pytest.raises(InputError, match="needs the columns lower, upper"):
        sp.replay(ONE, sp.Tape.from_arrays({"lower": [0.0]}, [0.5]))


# Images: ragged rows of critical values


@dataclass(frozen=True)
class Pixels:
    """What is shown of an image: the λ of its intervals, and how wide they are on average."""

    lam: float
    scale: float
    critical: Any

    @property
    def size(self) -> float:
        return max(2.0 * self.lam * self.scale, 0.0)


@dataclass(frozen=True)
class Images:
    """Predictions are the critical values of an image's pixels and their mean scale."""

    def read(self, prediction: Any) -> Any:
        critical, scale = prediction
        return np.asarray(critical), float(scale)

    def label(self, y: Any) -> float:
        return float(y)

    def at(self, prediction: Any, lam: float) -> Any:
        return Pixels(lam, prediction[1], prediction[0])

    def critical(self, prediction: Any, y: Any) -> float:
        return float(np.max(prediction[0]))

    def start(self, level: float) -> float:
        return 1.0

    def bounds(self) -> tuple[float, float]:
        return -10.0, 10.0

    def unit(self, prediction: Any) -> float:
        return 2.0 * prediction[1]


def share(shown: Any, y: Any) -> float | None:
    """The share of the pixels outside their intervals, None without a pixel."""
    return float(np.mean(shown.critical > shown.lam)) if len(shown.critical) else None


def test_images_are_replayed_swept_and_tuned_from_ragged_rows() -> None:
    rng = np.random.default_rng(0)
    rows = [np.abs(rng.normal(size=rng.integers(0, 40))) for _ in range(300)]
    scale = rng.uniform(0.5, 1.0, 300)
    tape = sp.Tape.from_arrays(
        {"critical": Ragged.from_rows(rows), "scale": scale}, np.zeros(300),
        extras={"image": np.arange(300)}, series=np.arange(300) % 3,
    )  # fmt: skip
    risk = sp.Risk(Custom(share), level=0.2, step=sp.steps.Fixed(0.1))
    controller = sp.Controller(Images(), risk)
    trace = sp.replay(controller, tape)
    judged = ~np.isnan(trace.losses[0])
    assert judged.tolist() == [len(row) > 0 for row in rows]
    assert all(each.within for k in range(3) for each in trace.certificate(k).risks)
    table = sp.sweep([controller], tape)
    assert_same_metrics(table.row(0), trace)
    tuned = sp.tune(controller, tape, {"gamma": [0.01, 0.1, 1.0]}, sp.search.Narrowest(0.01))
    assert tuned.index is not None


def test_streams_that_have_ended_since_are_no_obstacle_to_going_on() -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-5.0, 5.0))
    made = sp.Controller(sp.sets.Widen(), risk)
    columns = {"lower": [0.0] * 4, "upper": [1.0] * 4}
    first = sp.replay(made, sp.Tape.from_arrays(columns, [5.0] * 4, series=["a", "b", "a", "b"]))
    second = sp.Tape.from_arrays(columns, [0.5] * 4, series=["b", "c", "b", "c"])
    for going_on in (made, sp.Controller(sp.sets.Widen(), replace(risk, level=0.2))):
        found = sp.replay(going_on, second, first.states)
        assert found.theta[0, 0] == first.states["b"].risks[0].theta
        assert found.theta[0, 1] == 0.0


def test_a_frame_with_the_usual_columns_is_a_tape_and_a_trace_is_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(3)
    frame = pandas.DataFrame({"lower": -1.0, "upper": 1.0, "y": random.normal(0.0, 2.0, 60)})
    trace = sp.replay(sp.intervals(coverage=0.9), frame)
    tape = sp.Tape.from_arrays({"lower": frame.lower, "upper": frame.upper}, frame.y)
    np.testing.assert_array_equal(trace.lower, sp.replay(sp.intervals(coverage=0.9), tape).lower)
    renamed = frame.rename(columns={"lower": "low", "upper": "high", "y": "demand"})
    named = sp.Columns("demand", "low", "high")
    np.testing.assert_array_equal(
        trace.lower, sp.replay(sp.intervals(coverage=0.9), renamed, columns=named).lower
    )
    pytest.importorskip("pyarrow")
    from setpoint import jobs

    np.testing.assert_array_equal(trace.lower, jobs.calibrate(frame).trace.lower)
    points = sp.replay(sp.intervals(coverage=0.9), pandas.DataFrame({"point": 0.0, "y": frame.y}))
    assert points.tape.names == ("point",)
    with pytest.raises(TapeError, match=r"neither 'lower' and 'upper' nor 'point'.*'low', 'hi"):
        sp.replay(sp.intervals(coverage=0.9), renamed)
    with pytest.raises(InputError, match="a tape has its own"):
        sp.replay(sp.intervals(coverage=0.9), tape, columns=named)
    back = trace.to_frame()
    assert list(back) == ["y", "lower", "upper", "covered", "lam"]
    inside = (back.lower <= back.y) & (back.y <= back.upper)
    assert back.covered.equals(inside)
    assert back.covered.mean() == trace.coverage


def test_the_frame_of_label_sets_holds_the_sets_and_the_keys() -> None:
    pytest.importorskip("pandas")
    columns = {"cat": [0.7, 0.2], "dog": [0.3, 0.8]}
    tape = sp.Tape.from_arrays(columns, [0.0, 1.0], series=["a", "b"])
    back = sp.replay(sp.label_sets(coverage=0.9), tape).to_frame()
    assert list(back) == ["series", "y", "shown", "covered", "lam"]
    assert back.shown[0].full


def test_certificates_of_streams_that_are_alike_are_those_of_each() -> None:
    random = np.random.default_rng(0)
    y = random.normal(size=600)
    ends = {"lower": np.full(600, -1.0), "upper": np.full(600, 1.0)}
    tape = sp.Tape.from_arrays(ends, y, series=np.arange(600) % 60)
    paper = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.3), bounds=(-3.0, 3.0))
    for controller in (sp.intervals(0.9), sp.Controller(sp.sets.Widen(), paper)):
        trace = sp.replay(controller, tape)
        assert trace.certificates == [trace.certificate(stream) for stream in trace.states]
        assert len({id(certificate) for certificate in trace.certificates}) < 60
