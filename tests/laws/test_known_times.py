"""A recorded label is taken in when it became known: replayed, swept, in a fleet, live and stored,
the same rows give the same sets and end in the same state, to the bit."""

from math import nan
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.bulk import replay as replaying
from setpoint.bulk.states import Begin
from setpoint.combine import Max
from setpoint.losses import Custom, Miscoverage, MiscoverageCounter
from setpoint.sets import Cumulative, Threshold, Widen
from setpoint.stretches import ErrorAdaptive, ScoreAdaptive
from tests.laws.bulk import (
    FleetRun,
    Run,
    assert_same_fleet,
    assert_same_metrics,
    assert_same_run,
    assert_same_state,
    swept,
)
from tests.laws.parts import Shortfall
from tests.laws.test_bulk import row_of


def widened(step: Any = None, stretch: Any = None, sets: Any = None) -> sp.Controller:
    risk = sp.Risk(Miscoverage(), 0.1, step or sp.steps.Fixed(0.3), bounds=(-3.0, 3.0))
    return sp.Controller(sets or Widen(), risk, stretch)


def two_risks() -> sp.Controller:
    risks = [
        sp.Risk(loss, level, sp.steps.Fixed(gamma), bounds=(-2.0, 2.0))
        for loss, level, gamma in ((Miscoverage(), 0.2, 0.4), (MiscoverageCounter(cap=3), 0.3, 0.2))
    ]
    return sp.Controller(Widen(support=(-40.0, 40.0)), risks, combine=Max(anti_windup=0.5))


SCALAR = {
    "intervals": sp.intervals(0.9),
    "given support": sp.intervals(0.8, support=(-40.0, 40.0)),
    "centred": sp.intervals(0.9, recentre=False),
    "season": sp.intervals(0.9, period=7),
    "tracking": sp.label_sets(0.9, sets=Widen()),
    "fixed": widened(),
    "error adaptive": widened(stretch=ErrorAdaptive(0.1, 0.2, low=-2.0, high=2.0)),
    "score adaptive": widened(stretch=ScoreAdaptive(0.1, low=-2.0, high=2.0)),
    "scale-free": widened(sp.published.SFOGD(2.0)),
    "two risks": two_risks(),
}
"""The first five are told how many others wait; the rest are not."""

ANY = {
    **SCALAR,
    "score window": sp.published.aci(0.9, size=20),
    "loss of a user": sp.intervals(0.9, risk=sp.Risk(Shortfall(), 0.1)),
    "nothing to judge": sp.Controller(
        Widen(), sp.Risk(Custom(lambda s, y: None if y < 0 else float(y > s.upper)), 0.2,
                         sp.steps.Fixed(0.2), bounds=(-5.0, 5.0))
    ),
}  # fmt: skip

TIMES = ("delay 0", "delay 1", "delay 9", "delay 500", "known")


def rows(count: int, seed: int) -> dict[str, Any]:
    """A forecast that wanders, its errors, and now and then no label."""
    rng = np.random.default_rng(seed)
    middle = np.cumsum(rng.normal(size=count)) * 0.3
    y = middle + rng.normal(0.2, 1.0, count) * np.where(np.arange(count) % 60 < 30, 1.0, 3.0)
    y[rng.random(count) < 0.07] = nan
    return {"lower": middle - 1.0, "upper": middle + 1.2, "y": y.clip(-40.0, 40.0)}


def due(count: int, times: str, seed: int) -> np.ndarray:
    """The row before which each label becomes known."""
    if times == "known":
        waits = np.random.default_rng(seed).geometric(0.15, count) * (np.arange(count) % 7)
        return np.arange(count) + 1 + waits
    return np.arange(count) + 1 + int(times.split()[1])


def tape_of(content: dict[str, Any], rows_due: np.ndarray, times: str) -> sp.Tape:
    timing = {"known": rows_due} if times == "known" else {"delay": int(times.split()[1])}
    return sp.Tape.from_arrays(
        {name: content[name] for name in ("lower", "upper")}, content["y"], **timing
    )


def events(rows_due: np.ndarray) -> list[tuple[str, int]]:
    """What happens, one after the other: sets are made, labels become known."""
    count, listed = len(rows_due), []
    order = sorted(range(count), key=lambda row: (rows_due[row], row))
    for row in range(count):
        while order and rows_due[order[0]] <= row:
            listed.append(("label", order.pop(0)))
        listed.append(("set", row))
    return listed + [("label", row) for row in order]


def live(
    controller: sp.Controller, predictions: Any, y: Any, rows_due: np.ndarray, stream: Any = None
) -> Run:
    """A live stream that is told each label under its id when it becomes known."""
    stream = stream or sp.Stream(controller, missing="skip")
    count, risks = len(y), len(controller.risks)
    lower, upper, lam = np.empty(count), np.empty(count), np.empty(count)
    theta, losses = np.empty((risks, count)), np.full((risks, count), nan)
    for what, row in events(rows_due):
        if what == "label":
            value = stream.update(y[row], row)
            losses[:, row] = nan if value is None else value
            continue
        theta[:, row] = stream.theta
        receipt = stream.issue(predictions[row], row)
        lower[row], upper[row], lam[row] = *receipt.shown, receipt.lam
    return Run(lower, upper, lam, theta, losses, stream.state)


def pairs(content: dict[str, Any]) -> list[Any]:
    return list(zip(content["lower"].tolist(), content["upper"].tolist(), strict=True))


def as_run(trace: sp.Trace) -> Run:
    return Run(trace.lower, trace.upper, trace.lam, trace.theta, trace.losses, trace.state)


def hold(controller: sp.Controller, count: int, times: str, seed: int, *, loops: bool) -> None:
    """Live and replayed are the same, and, where there is a loop for it, swept and in a fleet."""
    content, rows_due = rows(count, seed), due(count, times, seed)
    wanted = live(controller, pairs(content), content["y"], rows_due)
    tape = tape_of(content, rows_due, times)
    trace = sp.replay(controller, tape)
    assert_same_run(as_run(trace), wanted, exact=True)
    assert_same_metrics(row_of(sp.sweep([controller], tape).columns), trace)
    if not loops:
        return
    begin = Begin(controller, tape.streams, None)
    assert_same_run(as_run(replaying._scalar(controller, tape, begin)), wanted, exact=True)
    assert_same_metrics(row_of(swept([controller, controller], tape), 1), trace)
    other = rows(count, seed + 1)
    second = live(controller, pairs(other), other["y"], np.arange(count) + 1)
    fleet = sp.Fleet(controller, 2)
    columns = [np.stack([content[k], other[k]], axis=1) for k in ("lower", "upper", "y")]
    if times == "known":
        timing = {"known": np.stack([rows_due, np.arange(count) + 1], axis=1)}
    else:
        timing = {"delay": [int(times.split()[1]), 0]}
    shown = fleet.run(tuple(columns[:2]), columns[2], **timing)
    assert_same_fleet(FleetRun(*shown, None, fleet), [wanted, second], exact=True)


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("name", ANY)
def test_late_labels_give_the_same_sets_replayed_as_live(
    name: str, times: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    hold(ANY[name], 150, times, 3, loops=name in SCALAR)


def test_late_labels_give_the_same_sets_compiled() -> None:
    pytest.importorskip("numba")
    for seed, times in enumerate(TIMES[2:]):
        hold(SCALAR["season"], 600, times, seed, loops=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCALAR)
def test_late_labels_give_the_same_sets_compiled_whatever_the_rules(name: str) -> None:
    pytest.importorskip("numba")
    for seed, times in enumerate(TIMES):
        hold(SCALAR[name], 600, times, seed, loops=True)


@given(st.sampled_from(list(SCALAR)), st.lists(st.integers(0, 12), min_size=1, max_size=40))
def test_in_whatever_order_labels_come_it_is_the_same(name: str, waits: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SETPOINT_PLAIN", "1")
        controller, content = SCALAR[name], rows(len(waits), sum(waits))
        rows_due = np.arange(len(waits)) + 1 + waits
        wanted = live(controller, pairs(content), content["y"], rows_due)
        for tape in (tape_of(content, rows_due, "known"), _by_delays(content, waits)):
            begin = Begin(controller, tape.streams, None)
            assert_same_run(as_run(sp.replay(controller, tape)), wanted, exact=True)
            run = as_run(replaying._scalar(controller, tape, begin))
            assert_same_run(run, wanted, exact=True)


def _by_delays(content: dict[str, Any], waits: list[int]) -> sp.Tape:
    columns = {name: content[name] for name in ("lower", "upper")}
    return sp.Tape.from_arrays(columns, content["y"], delay=waits)


# Label sets, also drawn by chance, and images


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("family", [Threshold(), Cumulative(randomised=True)], ids=repr)
def test_label_sets_are_the_same_live_and_replayed(family: Any, times: str) -> None:
    rng, rows_due = np.random.default_rng(0), due(80, times, 0)
    chances = rng.dirichlet([1.0, 1.0, 1.0], 80)
    labels = np.array([rng.choice(3, p=chance) for chance in chances], dtype=float)
    labels[::11] = nan
    timing = {"known": rows_due} if times == "known" else {"delay": int(times.split()[1])}
    tape = sp.Tape.from_arrays({"probabilities": sp.Ragged.from_rows(chances)}, labels, **timing)
    controller = sp.label_sets(0.8, sets=family)
    trace = sp.replay(controller, tape)
    stream = sp.Stream(controller, missing="skip")
    for what, row in events(rows_due):
        if what == "set":
            shown = stream.predict(chances[row].tolist(), row)
            assert shown == trace.shown[row]
        else:
            stream.update(labels[row] if labels[row] != labels[row] else int(labels[row]), row)
    assert_same_state(trace.state, stream.state, exact=True)
    assert_same_metrics(row_of(sp.sweep([controller], tape).columns), trace)


# Several streams


def test_streams_with_times_of_their_own_are_as_alone() -> None:
    controller, count = sp.intervals(0.9), 90
    contents, times = [rows(count, seed) for seed in range(3)], ("delay 9", "known", "delay 0")
    dues = [due(count, when, 7) for when in times]
    wanted = [
        live(controller, pairs(content), content["y"], each)
        for content, each in zip(contents, dues, strict=True)
    ]
    # The rows of the streams are mixed; a stream's own time is the number of its row.
    mixed = [(stream, row) for stream in range(3) for row in range(count)]
    mixed.sort(key=lambda pair: (pair[1] + Random(pair[0]).random(), pair[0]))
    ids, places = (np.array(column) for column in zip(*mixed, strict=True))
    column = {
        name: np.array([contents[s][name][row] for s, row in mixed])
        for name in ("lower", "upper", "y")
    }
    known = np.array([dues[s][row] for s, row in mixed])
    y = column.pop("y")
    tape = sp.Tape.from_arrays(column, y, series=ids, time=places, known=known)
    trace = sp.replay(controller, tape)
    for stream in range(3):
        at = tape.rows(stream)
        assert np.array_equal(trace.lower[at], wanted[stream].lower)
        assert_same_state(trace.states[stream], wanted[stream].state, exact=True)
    tape = sp.Tape.from_arrays(column, y, series=ids, delay=known - places - 1)
    assert np.array_equal(sp.replay(controller, tape).lower, trace.lower)


def test_every_horizon_is_a_stream_whose_labels_come_that_many_rows_late() -> None:
    controller, count = sp.intervals(0.9), 80
    contents = {h: rows(count, h) for h in (1, 2, 24)}
    column = {
        name: np.stack([contents[h][name] for h in contents], axis=1).ravel()
        for name in ("lower", "upper", "y")
    }
    y, horizon = column.pop("y"), np.tile(list(contents), count)
    tape = sp.Tape.from_arrays(column, y, series=["north"] * len(y), horizon=horizon)
    assert tape.streams == [("north", 1), ("north", 2), ("north", 24)]
    trace = sp.replay(controller, tape)
    for h, content in contents.items():
        wanted = live(controller, pairs(content), content["y"], np.arange(count) + h)
        assert np.array_equal(trace.lower[tape.rows(("north", h))], wanted.lower)
        assert_same_state(trace.states["north", h], wanted.state, exact=True)
    alone = sp.Tape.from_arrays(column, y, horizon=horizon)
    assert alone.streams == [1, 2, 24]
    assert np.array_equal(sp.replay(controller, alone).lower, trace.lower)


def test_a_search_chooses_under_the_delay() -> None:
    """Slow errors: without delay a large γ follows them, 48 rows late it only comes too late."""
    rng = np.random.default_rng(0)
    noise, errors = rng.normal(size=6000), np.zeros(6000)
    for t in range(1, 6000):
        errors[t] = 0.98 * errors[t - 1] + noise[t]
    tape = sp.Tape.from_arrays({"lower": np.full(6000, -1.0), "upper": np.full(6000, 1.0)}, errors)
    risk = sp.Risk(Miscoverage(), 0.1, sp.steps.Fixed(1.0), bounds=(-1000.0, 1000.0))
    controller, gammas, chosen = sp.Controller(Widen(), risk), [0.03, 0.3, 3.0], {}
    for delay in (0, 48):
        tuned = sp.tune(controller, tape, {"gamma": gammas}, delay=delay)
        pinball = [
            sp.replay(tried, tape.late(delay)).summary().pinball
            for tried in tuned.table.controllers
        ]
        assert tuned.table.columns["pinball"] == pytest.approx(pinball)
        chosen[delay] = tuned.best.risks[0].step.gamma
    assert chosen == {0: 3.0, 48: 0.03}
