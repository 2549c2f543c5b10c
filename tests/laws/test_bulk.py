"""Live, replay, fleet and sweep are four ways to run one definition: they give the same numbers.

Every pair of rules meets: in plain Python in every loop, bit for bit; as machine code, which takes
seconds to make, in replays, and every rule once in every loop. There numbers that come from an
exponential may differ in their last bits. `make slow` tries the rest of them.
"""

from dataclasses import replace
from math import inf, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint import combine
from setpoint.bulk.layout import layout_of
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.sets import Widen
from setpoint.stretches import ErrorAdaptive, Identity
from tests.laws.bulk import (
    CUT,
    FLEETS,
    LOSSES,
    REAL,
    ROWS,
    Row,
    Run,
    as_run,
    assert_same_fleet,
    assert_same_metrics,
    assert_same_run,
    assert_same_state,
    controller_of,
    covering,
    cuts,
    fleet_at_once,
    has_exp,
    live,
    plain,
    play,
    replayed,
    side_by_side,
    slower,
    swept,
    tape_of,
)
from tests.laws.parts import between, families, stretches


@pytest.fixture
def without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bulk loops run as the text they are."""
    monkeypatch.setenv("SETPOINT_PLAIN", "1")


def hold_every_way(
    controller: sp.Controller,
    ways: Any = FLEETS,
    *,
    rows: int,
    seed: int,
    streams: int,
    exact: bool,
    ties: bool,
    sweeps: bool = True,
) -> list[Run]:
    """All ways to run a controller agree with a live stream, on rows made to be hard."""
    played = [play(controller, rows, seed + i, ties=ties) for i in range(streams)]
    tapes, runs = [tape for tape, _ in played], [run for _, run in played]
    trace = sp.replay(controller, tapes[0])
    assert_same_run(as_run(trace), runs[0], exact=exact)
    for tape, run in played:
        assert_same_run(replayed(controller, tape), run, exact=exact)
    for way in ways:
        assert_same_fleet(way(controller, tapes), runs, exact=exact)
    if sweeps:
        hold_sweep([trace, sp.replay(slower(controller), tapes[0])])
    return runs


def row_of(columns: dict[str, Any], place: int = 0) -> dict[str, float]:
    """What a sweep says of one controller."""
    return {name: values[place] for name, values in columns.items()}


def hold_sweep(traces: list[sp.Trace]) -> None:
    """Side by side, controllers do what they do alone: their metrics say the same."""
    found = swept([trace.controller for trace in traces], traces[0].tape)
    for i, trace in enumerate(traces):
        assert_same_metrics(row_of(found, i), trace)


def assert_wide_awake(runs: list[Run]) -> None:
    """The rows did what they were made for: saturation both ways, misses, hits, missing labels."""
    assert any(run.state.full for run in runs)
    assert any(run.state.empty for run in runs)
    assert any(run.state.missing for run in runs)
    assert any((run.losses == 0.0).any() for run in runs)
    assert any((run.losses >= 1.0).any() for run in runs)


# Any numbers, in plain Python


@st.composite
def scalar_controllers(draw: Any) -> sp.Controller:
    """Controllers of scalar rules with any numbers in them."""
    sets, count = draw(families()), draw(st.integers(1, 3))
    delta = draw(st.sampled_from([None, 0.0, 0.5]) | st.floats(0.0, 4.0))
    top, risks = draw(st.floats(-2.0, 5.0)), []
    for _ in range(count):
        loss = draw(st.sampled_from([*LOSSES.values(), MiscoverageCounter(cap=1.0)]))
        low = top - draw(st.sampled_from([0.1, 1.0, 6.0]) | st.floats(0.01, 20.0))
        risks.append(
            sp.Risk(
                loss,
                level=draw(between(0.0, 1.0)),
                step=sp.steps.Fixed(draw(st.sampled_from([0.05, 0.5, 1.0, 40.0]))),
                start=draw(between(low, top)),
                bounds=(low, top),
            )
        )
    kind = draw(st.sampled_from([combine.Max, combine.Mean]))
    empty_if = draw(st.sampled_from(["every", "some"]))
    return sp.Controller(sets, risks, draw(stretches()), kind(anti_windup=delta, empty_if=empty_if))


@given(scalar_controllers(), st.integers(0, 2**16))
def test_whatever_the_numbers_every_way_is_the_same(controller: sp.Controller, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SETPOINT_PLAIN", "1")
        played = [play(controller, 20, seed + i) for i in range(2)]
        tapes, runs = [tape for tape, _ in played], [run for _, run in played]
        assert_same_run(replayed(controller, tapes[0]), runs[0], exact=True)
        for way in FLEETS:
            assert_same_fleet(way(controller, tapes), runs, exact=True)
        hold_sweep([sp.replay(controller, tapes[0])])


# Every pair of rules, as machine code

PAIRS = covering(ROWS, 2)
ONCE = covering(PAIRS, 1)


def test_every_pair_of_rules_meets_in_the_compiled_rows() -> None:
    for count, rows in ((2, PAIRS), (1, ONCE)):
        met = set().union(*(row.meetings(count) for row in rows))
        assert met == set().union(*(row.meetings(count) for row in ROWS))
    assert len(PAIRS) <= 20


def compiled_controllers(row: Row) -> list[sp.Controller]:
    """The controller of a row, and others that share its machine code.

    A cap is a number like others; so is β_loss = 0, for which e^0 = 1 leaves no last bit open.
    """
    first = row.controller()
    capped = [
        replace(risk, loss=LOSSES["K"]) if risk.loss == LOSSES["C"] else risk
        for risk in first.risks
    ]
    found = [first]
    if tuple(capped) != first.risks:
        found.append(replace(first, risks=tuple(capped)))
    if isinstance(first.stretch, ErrorAdaptive) and first.stretch.inner == Identity():
        found.append(replace(first, stretch=replace(first.stretch, loss=0.0)))
    return found


def hold_row(row: Row, ways: Any, *, sweeps: bool) -> None:
    pytest.importorskip("numba")
    controllers = compiled_controllers(row)
    assert len({layout_of(each) for each in controllers}) == 1
    runs = []
    for seed, controller in enumerate(controllers):
        sure = not has_exp(controller.stretch)
        runs += hold_every_way(
            controller, ways, rows=150, seed=seed, streams=3, exact=sure, ties=sure, sweeps=sweeps
        )
    assert_wide_awake(runs)


@pytest.mark.usefixtures("without_numba")
@pytest.mark.parametrize("row", PAIRS, ids=str)
def test_every_pair_of_rules_runs_the_same_four_ways(row: Row) -> None:
    runs = []
    for seed, controller in enumerate(compiled_controllers(row)):
        runs += hold_every_way(controller, rows=60, seed=seed, streams=2, exact=True, ties=True)
    assert_wide_awake(runs)


@pytest.mark.parametrize("row", ONCE, ids=str)
def test_every_rule_runs_the_same_four_ways_compiled(row: Row) -> None:
    hold_row(row, FLEETS, sweeps=True)


def rest() -> list[Row]:
    """All pairs, then each stretch with each list of losses, the other parts taking turns."""
    kept = {}
    for turn, row in enumerate(ROWS):
        key = (row.inner, row.move, row.count, row.first, row.lifts if row.count > 1 else "")
        if key not in kept or turn % 7 == 0:
            kept[key] = row
    return [row for row in dict.fromkeys([*PAIRS, *kept.values()]) if row not in ONCE]


@pytest.mark.slow
@pytest.mark.parametrize("row", rest(), ids=str)
def test_the_rest_of_the_rules_run_the_same_four_ways_compiled(row: Row) -> None:
    hold_row(row, FLEETS, sweeps=True)


# Going on from a state

CONTINUED = {
    "one risk": controller_of(Widen, REAL, Identity(), "M"),
    "several that are lifted": next(
        row.controller() for row in ONCE if row.lifts == "lifts" and row.inner == "identity"
    ),
}


@pytest.mark.parametrize("controller", CONTINUED.values(), ids=CONTINUED)
@pytest.mark.parametrize("mode", ["plain", "compiled"])
def test_a_replay_in_pieces_is_the_replay_of_the_whole(
    controller: sp.Controller, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1" if mode == "plain" else "")
    tape, run = play(controller, 60, seed=3)
    traces, state = [], None
    for start, stop in cuts(len(tape)):
        before = None if state is None else state.copy()
        traces.append(sp.replay(controller, tape[start:stop], state))
        if before is not None:
            assert_same_state(state, before, exact=True)  # what was given is left as it was
        state = traces[-1].state
    told = [
        np.concatenate([getattr(trace, name) for trace in traces], axis=-1)
        for name in ("lower", "upper", "lam", "theta", "losses")
    ]
    assert_same_run(Run(*told, state), run, exact=True)


@pytest.mark.parametrize("controller", CONTINUED.values(), ids=CONTINUED)
@pytest.mark.parametrize("mode", ["plain", "compiled"])
def test_a_stream_goes_on_from_the_state_of_a_replay_and_of_a_fleet(
    controller: sp.Controller, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1" if mode == "plain" else "")
    tapes, runs = zip(*(play(controller, 60, seed=seed) for seed in (5, 6)), strict=True)
    heads = [tape[:25] for tape in tapes]
    fleet = fleet_at_once(controller, heads).fleet
    for i, (tape, run) in enumerate(zip(tapes, runs, strict=True)):
        rest = tape[25:]
        for state in (sp.replay(controller, heads[i]).state, fleet.state(i)):
            went_on, _ = live(controller, plain(rest), state)
            whole = live(controller, plain(heads[i]))[0].state
            assert_same_state(state, whole, exact=True)
            assert_same_state(went_on.state, run.state, exact=True)
            assert np.array_equal(went_on.lower, run.lower[25:])
    # And a fleet goes on from the states of streams.
    joined = sp.Fleet(controller, [])
    joined.add(["a", "b"], [live(controller, plain(head))[0].state for head in heads])
    columns, y = side_by_side([tape[25:] for tape in tapes])
    joined.run(columns, y)
    for id, run in zip(joined.ids, runs, strict=True):
        assert_same_state(joined.state(id), run.state, exact=True)


# Numbers at the edge


def assert_same_four_ways(controller: sp.Controller, rows: list[Any]) -> Run:
    """A live run of given rows, equal to every other way to run them."""
    run, labels = live(controller, rows)
    tape = tape_of([prediction for prediction, _ in rows], labels)
    assert_same_run(as_run(sp.replay(controller, tape)), run, exact=True)
    assert_same_run(replayed(controller, tape), run, exact=True)
    for way in FLEETS:
        assert_same_fleet(way(controller, [tape, tape]), [run, run], exact=True)
    assert_same_metrics(row_of(swept([controller], tape)), sp.replay(controller, tape))
    return run


@pytest.mark.parametrize("mode", ["plain", "compiled"])
def test_a_label_on_a_shown_end_is_covered_and_one_ulp_outside_is_missed(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1" if mode == "plain" else "")
    controller = sp.Controller(
        Widen(), sp.Risk(Miscoverage(), 0.1, sp.steps.Fixed(0.3), bounds=(-5.0, 5.0))
    )
    picks = [
        lambda stream, shown: shown.upper,
        lambda stream, shown: nextafter(shown.upper, inf),
        lambda stream, shown: shown.lower,
        lambda stream, shown: nextafter(shown.lower, -inf),
    ]
    rows = [((0.1 * i, 0.1 * i + 1.7), picks[i % 4]) for i in range(40)]
    run = assert_same_four_ways(controller, rows)
    assert run.losses[0].tolist() == [0.0, 1.0, 0.0, 1.0] * 10


# Data in float32


def in_float32(rows: int, seed: int, controller: sp.Controller) -> tuple[sp.Tape, Run]:
    """A float32 tape with labels on the float32 ends, and the run it must give.

    Written out for one risk and λ = θ: predictions are read as float64, the ends are rounded to
    float32 because that is what is shown, and θ stays float64.
    """
    rng = np.random.default_rng(seed)
    risk = controller.risks[0]
    (bottom, top), (low, high) = risk.bounds, controller.sets.support
    columns = np.sort(rng.normal(size=(2, rows)), axis=0).astype(np.float32)
    theta, state, told = risk.start, controller.init(), []
    for lower, upper in columns.T.tolist():
        lam = inf if theta > top else -inf if theta < bottom else theta
        first, last = max(lower - lam, low), min(upper + lam, high)
        if first > last:
            first, last = inf, -inf
        first, last = float(np.float32(first)), float(np.float32(last))
        if lam == inf:
            first, last = controller.sets.support
        y = rng.choice([first, last, nextafter(last, inf), nextafter(first, -inf), 0.1])
        y = float(min(max(y if np.isfinite(y) else 0.3, low), high))
        missed = not first <= y <= last
        told.append((first, last, lam, theta, y, float(missed)))
        state.full += lam == inf
        state.empty += lam == -inf
        theta += risk.step.gamma * (missed - risk.level)
    lowers, uppers, lams, thetas, labels, losses = np.array(told).T
    state.put(0, theta=theta, judged=float(rows), total=float(losses.sum()))
    run = Run(lowers, uppers, lams, thetas[None], losses[None], state)
    return sp.Tape.from_arrays(list(columns), labels), run


@pytest.mark.parametrize(("mode", "support"), [("plain", REAL), ("plain", CUT), ("compiled", REAL)])
def test_float32_data_are_decided_by_the_float32_ends_that_were_shown(
    mode: str, support: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1" if mode == "plain" else "")
    controller = controller_of(Widen, support, Identity(), "M")
    tapes, runs = zip(*(in_float32(80, seed, controller) for seed in (1, 2)), strict=True)
    for tape, run in zip(tapes, runs, strict=True):
        trace = sp.replay(controller, tape)
        assert trace.lower.dtype == trace.upper.dtype == np.float32
        assert trace.theta.dtype == np.float64
        assert_same_run(as_run(trace), run, exact=True)
        assert_same_run(replayed(controller, tape), run, exact=True)
        hold_sweep([trace, sp.replay(slower(controller), tape)])
    for way in FLEETS:
        got = way(controller, tapes)
        assert got.lower.dtype == np.float32
        assert got.fleet.theta.dtype == np.float64
        assert_same_fleet(got, runs, exact=True)
    assert any(run.state.full and run.state.empty for run in runs)


@pytest.mark.parametrize("mode", ["plain", "compiled"])
def test_the_full_set_holds_the_whole_support_in_float32_too(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """float32(0.7) < 0.7 and float32(0.1) > 0.1: rounded ends would lose labels there."""
    monkeypatch.setenv("SETPOINT_PLAIN", "1" if mode == "plain" else "")
    support = (0.1, 0.7)
    assert support[0] < float(np.float32(support[0]))
    assert support[1] > float(np.float32(support[1]))
    risk = sp.Risk(Miscoverage(), 0.1, sp.steps.Fixed(1.0), start=0.5, bounds=(-1.0, 0.5))
    controller = sp.Controller(Widen(support=support), risk)
    rows = np.full(6, 0.4, dtype=np.float32)
    labels = np.array([0.1, 0.7] * 3)
    tape = sp.Tape.from_arrays([rows, rows], labels)
    state = controller.init()
    state.put(0, theta=5.0)
    trace = sp.replay(controller, tape, state)
    assert trace.full.all()
    assert not trace.losses.any()
    fleet = sp.Fleet(controller, 0)
    fleet.add(["a"], [state])
    fleet.run((rows[:, None], rows[:, None]), labels[:, None])
    assert fleet.state("a").risks[0].total == 0.0
    fleet.add(["b"], [state])
    for t in range(6):
        fleet.predict((rows[t : t + 1], rows[t : t + 1]), ["b"])
        assert fleet.update(labels[t : t + 1]) == 0.0
