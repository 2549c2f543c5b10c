"""Families that learn: one definition in four modes, and nothing they learn costs a guarantee."""

import re
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint import spec
from setpoint.errors import PredictionError
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.stretches import ErrorAdaptive
from tests.laws.adversary import adversaries
from tests.laws.bulk import (
    FLEETS,
    as_run,
    assert_same_fleet,
    assert_same_metrics,
    assert_same_run,
    assert_same_state,
    live,
    plain,
    play,
    replayed,
    side_by_side,
    slower,
    swept,
)
from tests.laws.late import habits, play_late
from tests.laws.learning import MOST, Shifted, shifted
from tests.laws.parts import SUPPORTS, bounded_losses, risks, stretches
from tests.laws.test_one_risk import hold_the_theorem


def risk(loss: Any = None, gamma: float = 0.4) -> sp.Risk:
    return sp.Risk(loss or Miscoverage(), 0.4, sp.steps.Fixed(gamma), bounds=(0.25, 1.5))


ONE = shifted(risk())
ADAPTIVE = ErrorAdaptive(0.3, 0.0, -0.7, 0.9)
SEVERAL = sp.Controller(
    sp.sets.Scale((-5.0, 5.0)),
    (risk(), risk(MiscoverageCounter(cap=2.0), 0.25)),
    ADAPTIVE,
    sp.combine.Max(anti_windup=0.3),
    Shifted(),
)


def hold_every_way(controller: sp.Controller) -> None:
    """Live, replayed, in a fleet both ways, in a sweep: the same numbers, learning included."""
    tapes, runs = zip(*(play(controller, 80, seed) for seed in (1, 2)), strict=True)
    for tape, run in zip(tapes, runs, strict=True):
        assert run.state.memory[1] == np.isfinite(tape.y).sum()
        assert_same_run(as_run(sp.replay(controller, tape)), run, exact=True)
        assert_same_run(replayed(controller, tape), run, exact=True)
    for way in FLEETS:
        assert_same_fleet(way(controller, tapes), runs, exact=True)
    controllers = [controller, slower(controller)]
    table = swept(controllers, tapes[0])
    for i, other in enumerate(controllers):
        numbers = {name: float(values[i]) for name, values in table.items()}
        assert_same_metrics(numbers, sp.replay(other, tapes[0]))
    # A replay in two pieces, and a stream that goes on from either.
    head, tail = tapes[0][:33], tapes[0][33:]
    for state in (sp.replay(controller, head).state, FLEETS[0](controller, [head]).fleet.state(0)):
        assert_same_state(sp.replay(controller, tail, state).state, runs[0].state, exact=True)
        assert_same_state(live(controller, plain(tail), state)[0].state, runs[0].state, exact=True)


@pytest.mark.parametrize("controller", [ONE, SEVERAL], ids=["one risk", "several"])
def test_a_family_that_learns_runs_the_same_four_ways(
    controller: sp.Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    hold_every_way(controller)


def test_a_family_that_learns_runs_the_same_four_ways_compiled(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    hold_every_way(ONE)
    hold_late_labels()
    hold_refusals()


@given(
    st.sampled_from(SUPPORTS).flatmap(
        lambda support: st.builds(
            shifted,
            bounded_losses(support, may_grow=True).flatmap(risks),
            stretches(),
            st.just(support),
            st.sampled_from([0.0, 0.3, 1.0, 1.9]),
        )
    ),
    adversaries(),
    st.integers(1, 120),
)
def test_whatever_a_family_learns_the_theorem_holds(
    controller: sp.Controller, adversary: tuple[str, int], steps: int
) -> None:
    hold_the_theorem(controller, adversary, steps)


@given(adversaries(), habits(), st.integers(1, 120))
def test_whatever_a_family_learns_from_late_labels_the_bounds_hold(
    adversary: tuple[str, int], habit: Any, events: int
) -> None:
    play_late(ONE, adversary, habit, events)


# Late labels


def hold_late_labels() -> None:
    """A label is judged on the set that was shown, and learnt from by the reading in the receipt.

    Written out: each of three predictions waits while others are answered.
    """
    rate = ONE.correction.rate
    stream, fleet = sp.Stream(ONE), sp.Fleet(ONE, 1)
    error = 0.0
    centres, labels, order = (0.0, 10.0, -10.0), (2.0, 9.0, -13.0), (2, 0, 1)
    shown = []
    for place, centre in enumerate(centres):
        prediction = (centre, 1.0, 1.0)
        shown.append(stream.predict(prediction, place))
        row = fleet.predict(tuple(np.array([number]) for number in prediction), batch=place)
        assert (row.lower[0], row.upper[0]) == tuple(shown[-1])
        assert tuple(shown[-1]) == (centre - 1.0, centre + 1.0)  # nothing was learnt yet
    for place in order:
        loss = stream.update(labels[place], place)
        assert fleet.update([labels[place]], batch=place)[0] == loss
        assert loss == float(not shown[place].contains(labels[place]))
        error += rate * ((labels[place] - centres[place]) - error)
        assert stream.state.memory == pytest.approx((error, order.index(place) + 1.0))
        assert_same_state(fleet.state(0), stream.state, exact=True)


def test_late_labels_are_learnt_from_by_the_reading_in_the_receipt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    hold_late_labels()


# Saved and resumed


@pytest.mark.usefixtures("own_registry")
@pytest.mark.parametrize("controller", [ONE, SEVERAL], ids=["one risk", "several"])
def test_a_family_that_learns_is_resumed_in_mid_stream_to_the_bit(
    controller: sp.Controller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    spec.register("correction", Shifted)
    (tape, run), cut = play(controller, 50, seed=4), 20
    columns, y = side_by_side([tape, tape])
    stream = sp.Stream(controller, missing="skip")
    fleet = sp.Fleet(controller, 2)
    fleet.run(tuple(column[:cut] for column in columns), y[:cut])
    for prediction, label in plain(tape)[:cut]:
        stream.predict(prediction)
        stream.update(label)
    # Saved while a prediction waits.
    stream.predict(plain(tape)[cut][0])
    fleet.predict(tuple(column[cut] for column in columns))
    stream.save(tmp_path / "stream")
    fleet.save(tmp_path / "fleet")
    stream, fleet = sp.Stream.load(tmp_path / "stream"), sp.Fleet.load(tmp_path / "fleet")
    stream.update(tape.y[cut])
    fleet.update(y[cut])
    for prediction, label in plain(tape)[cut + 1 :]:
        stream.predict(prediction)
        stream.update(label)
    fleet.run(tuple(column[cut + 1 :] for column in columns), y[cut + 1 :])
    for state in (stream.state, fleet.state(0), fleet.state(1)):
        assert_same_state(state, run.state, exact=True)


# What is no prediction


def hold_refusals() -> None:
    """What the family refuses live it refuses in every mode, and the row or stream is named."""
    wrong = 2.0 * MOST
    centre = np.array([0.0, 1.0, wrong, 0.0])
    scales, y = np.ones(4), np.zeros(4)
    tape = sp.Tape.from_arrays([centre, scales, scales], y)
    told = re.escape(f"a forecast must be within ±{MOST:g}, got {(wrong, 1.0, 1.0)}")
    stream = sp.Stream(ONE)
    with pytest.raises(PredictionError, match=told):
        stream.predict((wrong, 1.0, 1.0))
    with pytest.raises(PredictionError, match=told):
        stream.peek((wrong, 1.0, 1.0))
    for run in (lambda: sp.replay(ONE, tape), lambda: sp.sweep([ONE], tape)):
        with pytest.raises(PredictionError, match=f"row 2: {told}"):
            run()
    fleet = sp.Fleet(ONE, ["a", "b", "c", "d"])
    before = fleet.theta.copy()
    with pytest.raises(PredictionError, match=f"{told} for stream 'c'"):
        fleet.predict((centre, scales, scales))
    assert not fleet.pending
    rows = np.zeros((3, 4))
    rows[1, 3] = wrong
    with pytest.raises(PredictionError, match=f"{told} for stream 'd'"):
        fleet.run((rows, np.ones((3, 4)), np.ones((3, 4))), np.full((3, 4), nan))
    assert np.array_equal(fleet.theta, before)
    assert fleet.state("a").missing == 0


def test_what_a_family_refuses_live_it_refuses_in_every_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    hold_refusals()
