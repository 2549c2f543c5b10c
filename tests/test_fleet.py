"""Fleets: many streams in one call, each as it would be alone, whatever comes late or wrong."""

import copy
import sys
from dataclasses import dataclass
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.bulk.compile import loops
from setpoint.bulk.layout import layout_of
from setpoint.errors import (
    AmbiguousReceipt,
    AnsweredReceipt,
    InputError,
    LabelError,
    LossError,
    PendingFull,
    PredictionError,
    SpecError,
    StateError,
    UnknownReceipt,
)
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.predictions import Quantiles
from setpoint.sets import Widen
from setpoint.state import State
from tests.laws.bulk import assert_same_state, numbers_of


def risk_of(loss: Any = None, level: float = 0.25, gamma: float = 0.5, **options: Any) -> sp.Risk:
    options.setdefault("bounds", (-1.0, 1.0))
    return sp.Risk(loss or Miscoverage(), level, sp.steps.Fixed(gamma), **options)


ONE = sp.Controller(Widen(), risk_of())
TWO = sp.Controller(Widen(), (risk_of(), risk_of(MiscoverageCounter(cap=2.0), 0.5)))


@pytest.fixture(params=["compiled", "plain"], autouse=True)
def mode(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """With numba and without."""
    monkeypatch.setenv("SETPOINT_PLAIN", "1" if request.param == "plain" else "")
    return request.param


def pair(*lower: float, length: float = 1.0) -> tuple[Any, Any]:
    """A prediction for each stream."""
    ends = np.array(lower)
    return ends, ends + length


def everything(fleet: sp.Fleet) -> list[Any]:
    """All that a fleet knows, to be compared before and after."""
    return [
        fleet.ids,
        fleet.pending,
        [numbers_of(fleet.state(id)) for id in fleet.ids],
        [str(fleet.certificate(id)) for id in fleet.ids],
    ]


# Streams by id


def test_a_fleet_counts_its_streams_or_is_told_their_ids() -> None:
    assert sp.Fleet(ONE, 3).ids == (0, 1, 2)
    assert sp.Fleet(ONE, ["b", "a", 7]).ids == ("b", "a", 7)
    assert len(sp.Fleet(ONE, 0)) == 0
    assert sp.Fleet(ONE, (f"s{i}" for i in range(2))).ids == ("s0", "s1")
    assert sp.Fleet(ONE, 3).controller is ONE
    assert repr(sp.Fleet(ONE, 1_000)).startswith("<Fleet of 1,000 streams of Controller(")


@pytest.mark.parametrize(
    "ids", [["a", "a"], [1.5], [None], [True], [("a", 1.5)], [("a", 1), ("a", 1)]]
)
def test_every_stream_has_an_id_of_its_own(ids: Any) -> None:
    with pytest.raises(InputError):
        sp.Fleet(ONE, ids)


def test_a_controller_that_is_not_made_of_scalar_rules_is_refused() -> None:
    custom = sp.losses.Custom(lambda shown, y: 0.0)
    with pytest.raises(InputError, match="made of scalar rules"):
        sp.Fleet(sp.Controller(Widen(), risk_of(custom)), 3)


def test_a_stream_is_added_in_the_state_of_another() -> None:
    stream = sp.Stream(TWO, missing="skip")
    for y in (5.0, 0.5, nan, 7.0):
        stream.predict((0.0, 1.0))
        stream.update(y)
    fleet = sp.Fleet(TWO, ["a"])
    fleet.add(["b"], [stream.state])
    assert_same_state(fleet.state("b"), stream.state, exact=True)
    assert_same_state(fleet.state("a"), TWO.init(), exact=True)
    assert fleet.certificate("b") == stream.certificate()


def test_the_state_of_a_stream_that_changed_keeps_its_certificate_in_a_fleet() -> None:
    """What waited when its segment began, and what expired, is part of its guarantee."""
    stream = sp.Stream(ONE, max_pending=3, overflow="expire")
    for y in (5.0, 5.0, 5.0):  # θ leaves its bounds
        stream.predict((0.0, 1.0))
        stream.update(y)
    for _ in range(4):
        stream.predict((0.0, 1.0))
    stream.change(bounds=(-1.0, 0.5))
    for id in list(stream.pending):
        stream.update(5.0, id)
    stream.predict((0.0, 1.0))
    stream.drop()
    fleet = sp.Fleet(stream.controller, [])
    fleet.add(["a"], [stream.state])
    assert_same_state(fleet.state("a"), stream.state, exact=True)


def test_states_of_another_controller_or_too_few_are_refused() -> None:
    fleet = sp.Fleet(ONE, ["a"])
    before = everything(fleet)
    for ids, states in (
        (["b"], [TWO.init()]),
        (["b", "c"], [ONE.init()]),
        (["a"], [ONE.init()]),
        (["b", "b"], None),
        (["b", 1.5], None),
    ):
        with pytest.raises(InputError):
            fleet.add(ids, states)
        assert everything(fleet) == before


def test_a_retired_stream_hands_back_its_state_and_the_others_go_on() -> None:
    fleet, twin = sp.Fleet(ONE, ["a", "b", "c"]), sp.Fleet(ONE, ["a", "b", "c"])
    for each in (fleet, twin):
        each.predict(pair(0.0, 0.0, 0.0))
        each.update([5.0, 0.5, nan])
    states = fleet.retire(["b"])
    assert list(states) == ["b"]
    assert_same_state(states["b"], twin.state("b"), exact=True)
    assert fleet.ids == ("a", "c")
    fleet.predict(pair(0.0, 0.0))
    twin.predict(pair(0.0, 0.0), ["a", "c"])
    assert fleet.update([5.0, 5.0]).tolist() == twin.update([5.0, 5.0]).tolist()
    for id in ("a", "c"):
        assert_same_state(fleet.state(id), twin.state(id), exact=True)
    fleet.add(["b"], [states["b"]])
    assert_same_state(fleet.state("b"), twin.state("b"), exact=True)


def test_what_a_retired_stream_awaited_is_given_up_and_counted() -> None:
    fleet = sp.Fleet(ONE, ["a", "b", "c"])
    fleet.predict(pair(0.0, 0.0, 0.0), batch="first")
    fleet.predict(pair(0.0, 0.0), ["c", "b"], batch="second")
    states = fleet.retire(["b"])
    assert fleet.pending == {"first": ("a", "c"), "second": ("c",)}
    assert states["b"].dropped == 2
    assert fleet.update([5.0, nan], batch="second")[0] == 1.0
    assert fleet.update([5.0, nan, 0.5], batch="first").tolist()[::2] == [1.0, 0.0]
    assert fleet.means.tolist() == [1.0, 0.5]


def test_a_batch_of_retired_streams_only_is_gone() -> None:
    fleet = sp.Fleet(ONE, ["a", "b"])
    fleet.predict(pair(0.0), ["b"], batch="b only")
    fleet.retire(["b"])
    assert fleet.pending == {}
    fleet.retire(["a"])
    assert len(fleet) == 0
    assert fleet.predict(pair()).upper.tolist() == []


@pytest.mark.parametrize("ids", [["z"], ["a", "z"], ["a", "a"]])
def test_streams_that_are_not_there_cannot_be_retired(ids: list[str]) -> None:
    fleet = sp.Fleet(ONE, ["a", "b"])
    fleet.predict(pair(0.0, 0.0))
    before = everything(fleet)
    with pytest.raises((UnknownReceipt, InputError)):
        fleet.retire(ids)
    assert everything(fleet) == before


# Predictions and labels


def test_a_step_by_hand() -> None:
    fleet = sp.Fleet(ONE, ["north", "south"])
    shown = fleet.predict(pair(10.0, 20.0, length=4.0))
    assert shown.lower.tolist() == [10.0, 20.0]
    assert shown.upper.tolist() == [14.0, 24.0]
    assert shown.lengths.tolist() == [4.0, 4.0]
    assert np.array_equal(fleet.update([15.0, nan]), [1.0, nan], equal_nan=True)
    assert fleet.theta.tolist() == [0.375, 0.0]
    assert np.array_equal(fleet.means, [1.0, nan], equal_nan=True)
    state = fleet.state("south")
    assert (state.missing, state.risks[0].judged) == (1, 0)


def test_what_is_handed_out_or_given_cannot_be_changed_to_its_harm() -> None:
    fleet = sp.Fleet(ONE, 2)
    lower, upper = pair(0.0, 0.0)
    shown = fleet.predict((lower, upper))
    for array in (lower, upper):
        array[:] = 1e9
    for array in (shown.lower, shown.upper):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 1e9
    assert fleet.update([0.5, 2.0]).tolist() == [0.0, 1.0]
    fleet.theta[:] = 5.0
    fleet.means[:] = 5.0
    fleet.state(0).put(0, theta=5.0)
    assert fleet.theta.tolist() == [-0.125, 0.375]


def test_streams_may_be_taken_in_any_order_and_number() -> None:
    fleet, twin = sp.Fleet(ONE, list("abc")), sp.Fleet(ONE, list("abc"))
    fleet.predict(pair(3.0, 1.0), ["c", "a"])
    fleet.update([3.5, 9.0])
    fleet.predict(pair(2.0), ["b"])
    fleet.update([9.0])
    twin.predict(pair(1.0, 2.0, 3.0))
    twin.update([9.0, 9.0, 3.5])
    assert everything(fleet) == everything(twin)


def test_a_call_without_streams_waits_for_nothing() -> None:
    fleet = sp.Fleet(ONE, list("abc"))
    assert fleet.predict(pair(), []).lower.tolist() == []
    assert fleet.pending == {}
    fleet.run((np.zeros((2, 3)), np.ones((2, 3))), np.zeros((2, 3)))


WRONG_PREDICTIONS = {
    "too few streams": pair(0.0),
    "too many streams": pair(0.0, 0.0, 0.0),
    "an array of three columns": np.zeros((2, 3)),
    "an array of three dimensions": np.zeros((2, 2, 2)),
    "columns of other names": {"low": np.zeros(2), "high": np.ones(2)},
    "an infinite point forecast": np.array([0.0, inf]),
    "a list of lists that are not equally long": ([0.0, [1.0]], np.ones(2)),
    "three arrays": (np.zeros(2),) * 3,
    "arrays of different lengths": (np.zeros(2), np.zeros(1)),
    "a NaN": (np.array([0.0, nan]), np.ones(2)),
    "a NaN beside an infinity": (np.array([0.0, nan]), np.array([1.0, inf])),
    "text": (np.array(["0", "1"]), np.ones(2)),
    "objects": (np.array([None, 1.0]), np.ones(2)),
    "complex numbers": (np.array([1j, 0]), np.ones(2)),
    "nothing": None,
    "a number": 5.0,
}


@pytest.mark.parametrize("prediction", WRONG_PREDICTIONS.values(), ids=WRONG_PREDICTIONS)
def test_a_wrong_prediction_is_refused_and_changes_nothing(prediction: Any) -> None:
    fleet = sp.Fleet(ONE, 2)
    fleet.predict(pair(0.0, 0.0))
    before = everything(fleet)
    with pytest.raises(PredictionError):
        fleet.predict(prediction)
    assert everything(fleet) == before
    fleet.update([5.0, 0.5])
    assert fleet.theta.tolist() == [0.375, -0.125]


def test_the_stream_of_a_wrong_prediction_is_named() -> None:
    fleet = sp.Fleet(ONE, ["a", "b"])
    wrong = (np.array([nan, 0.0]), np.ones(2))
    with pytest.raises(PredictionError, match="stream 'a'"):
        fleet.predict(wrong)
    with pytest.raises(PredictionError, match="stream 'b'"):
        fleet.predict(wrong, ["b", "a"])
    with pytest.raises(PredictionError, match="stream 'b'"):
        fleet.predict((np.array([nan]), np.ones(1)), ["b"])


def test_infinite_and_huge_predictions_are_fine() -> None:
    fleet = sp.Fleet(ONE, 4)
    lower, upper = np.array([-inf, inf, -inf, 1.2e308]), np.array([inf, -inf, -inf, 1.3e308])
    shown = fleet.predict((lower, upper))
    assert shown.lower.tolist() == [-inf, inf, -inf, 1.2e308]
    assert fleet.update([0.0, 0.0, 0.0, 1.25e308]).tolist() == [0.0, 1.0, 1.0, 0.0]


WRONG_LABELS = {
    "too few": np.zeros(1),
    "too many": np.zeros(3),
    "two dimensions": np.zeros((1, 2)),
    "one number": 5.0,
    "infinite": np.array([0.0, inf]),
    "text": np.array(["0", "1"]),
    "None": [None, 1.0],
    "nothing": None,
}


@pytest.mark.parametrize("labels", WRONG_LABELS.values(), ids=WRONG_LABELS)
def test_wrong_labels_are_refused_and_change_nothing(labels: Any) -> None:
    fleet = sp.Fleet(ONE, 2)
    fleet.predict(pair(0.0, 0.0))
    before = everything(fleet)
    with pytest.raises(LabelError):
        fleet.update(labels)
    assert everything(fleet) == before
    assert fleet.update([5.0, 0.5]).tolist() == [1.0, 0.0]


def test_unknown_and_repeated_streams_are_refused() -> None:
    fleet = sp.Fleet(ONE, ["a", "b"])
    with pytest.raises(InputError, match="no stream 'z'"):
        fleet.predict(pair(0.0), ["z"])
    with pytest.raises(InputError, match="each stream once"):
        fleet.predict(pair(0.0, 0.0), ["a", "a"])
    with pytest.raises(InputError, match="no stream 'z'"):
        fleet.state("z")
    with pytest.raises(InputError, match="no stream 'z'"):
        fleet.certificate("z")
    assert fleet.pending == {}


# Batches that wait


def test_dropped_predictions_are_counted_and_move_nothing() -> None:
    fleet = sp.Fleet(ONE, ["a", "b"])
    fleet.predict(pair(0.0, 0.0), batch="x")
    fleet.update([5.0, nan], batch="x", late=True)
    fleet.drop("x")
    assert fleet.pending == {}
    assert [fleet.state(id).dropped for id in "ab"] == [0, 1]
    assert fleet.theta.tolist() == [0.375, 0.0]
    assert fleet.certificate("b").dropped == 1


def test_the_predictions_of_some_streams_are_dropped_alone() -> None:
    fleet = sp.Fleet(ONE, ["a", "b", "c"])
    fleet.predict(pair(0.0, 0.0, 0.0), batch="x")
    twin = copy.copy(fleet)
    fleet.drop("x", ["c", "a"])
    assert fleet.pending == {"x": ("b",)}
    assert [fleet.state(id).dropped for id in "abc"] == [1, 0, 1]
    assert [fleet.certificate(id).pending for id in "abc"] == [0, 1, 0]
    assert twin.pending == {"x": ("a", "b", "c")}
    with pytest.raises(AnsweredReceipt):
        fleet.update({"a": 0.5}, batch="x")


def test_a_batch_without_a_name_is_the_only_one() -> None:
    fleet = sp.Fleet(ONE, 1)
    with pytest.raises(UnknownReceipt, match="call predict first"):
        fleet.update([0.5])
    with pytest.raises(UnknownReceipt, match="call predict first"):
        fleet.drop()
    fleet.predict(pair(0.0))
    fleet.predict(pair(0.0))
    with pytest.raises(AmbiguousReceipt, match="2 batches wait"):
        fleet.update([0.5])
    with pytest.raises(AmbiguousReceipt):
        fleet.drop()
    with pytest.raises(AmbiguousReceipt, match="before run"):
        fleet.run(np.zeros((1, 1)), np.zeros((1, 1)))
    assert list(fleet.pending) == [0, 1]
    fleet.update([0.5], batch=1)
    fleet.update([0.5])
    with pytest.raises(UnknownReceipt, match="may be answered"):
        fleet.update([0.5], batch=1)


def test_names_of_batches_are_whole_numbers_or_strings_and_never_double() -> None:
    fleet = sp.Fleet(ONE, 1)
    fleet.predict(pair(0.0), batch="x")
    with pytest.raises(InputError, match="already waits under the id 'x'"):
        fleet.predict(pair(0.0), batch="x")
    for name in (True, 1.5, ("x", None)):
        with pytest.raises(InputError, match="whole number, a string or a tuple"):
            fleet.predict(pair(0.0), batch=name)
    fleet.update([0.5], batch="x")
    fleet.predict(pair(0.0), batch="x")  # answered names may be used again
    fleet.predict(pair(0.0), batch=7)
    fleet.predict(pair(0.0))
    assert list(fleet.pending) == ["x", 7, 8]


def test_a_generated_name_is_never_one_that_waits() -> None:
    fleet = sp.Fleet(ONE, 1)
    for name in (1, 0, 5, None, 2, None, -4, None):
        fleet.predict(pair(0.0), batch=name)
    assert len(fleet.pending) == 8


def test_no_more_batches_wait_than_allowed() -> None:
    fleet = sp.Fleet(ONE, 1, max_pending=2)
    fleet.predict(pair(0.0))
    fleet.predict(pair(0.0))
    before = everything(fleet)
    with pytest.raises(PendingFull, match="2 batches wait"):
        fleet.predict(pair(0.0))
    assert everything(fleet) == before
    for count in (0, True, 1.5):
        with pytest.raises(InputError):
            sp.Fleet(ONE, 1, max_pending=count)


# Many steps at once


def test_run_takes_no_rows_and_no_streams() -> None:
    fleet = sp.Fleet(ONE, 2)
    before = everything(fleet)
    assert fleet.run((np.zeros((0, 2)), np.ones((0, 2))), np.zeros((0, 2))).lower.shape == (0, 2)
    assert everything(fleet) == before
    nobody = sp.Fleet(ONE, 0)
    assert nobody.run((np.zeros((3, 0)), np.ones((3, 0))), np.zeros((3, 0))).lower.shape == (3, 0)


def test_run_refuses_what_is_wrong_and_changes_nothing() -> None:
    fleet = sp.Fleet(ONE, 2)
    before = everything(fleet)
    good = (np.zeros((3, 2)), np.ones((3, 2)))
    for prediction, y, error in (
        (good, np.zeros((2, 2)), LabelError),
        (good, np.zeros(2), LabelError),
        (good, np.full((3, 2), inf), LabelError),
        ((np.zeros((3, 3)), np.ones((3, 3))), np.zeros((3, 3)), PredictionError),
        ((np.zeros((3, 2)), np.ones((2, 2))), np.zeros((3, 2)), PredictionError),
        ((np.full((3, 2), nan), np.ones((3, 2))), np.zeros((3, 2)), PredictionError),
        ((np.zeros(2), np.ones(2)), np.zeros((1, 2)), PredictionError),
    ):
        with pytest.raises(error):
            fleet.run(prediction, y)
        assert everything(fleet) == before


# Saved and loaded


@pytest.mark.parametrize("controller", [ONE, TWO], ids=["one risk", "two risks"])
def test_a_fleet_that_is_saved_and_loaded_goes_on_to_the_bit(
    controller: sp.Controller, tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    fleet = sp.Fleet(controller, ["a", "b", 3], max_pending=5)
    for _ in range(20):
        lower = rng.normal(size=3)
        fleet.predict((lower, lower + 1.0))
        fleet.update(rng.normal(size=3))
    fleet.predict(pair(0.1, 0.2, 0.3), batch="monday")
    fleet.update([nan, 5.0, nan], batch="monday", late=True)
    fleet.predict(pair(0.3, 0.1), [3, "a"], batch=9)
    fleet.save(tmp_path / "fleet")
    twin = sp.Fleet.load(tmp_path / "fleet")
    assert twin.controller == controller
    assert everything(twin) == everything(fleet)
    for each in (fleet, twin):
        each.predict(pair(0.5, 0.5, 0.5), batch="tuesday")
        each.update([nan, 5.0], batch=9)
        each.update([0.7, 0.1, 5.0], batch="tuesday")
        each.update([0.7, nan, 5.0], batch="monday")
        each.add(["new"])
        each.run((np.zeros((5, 4)), np.ones((5, 4))), np.full((5, 4), 3.0))
    assert everything(twin) == everything(fleet)
    assert np.array_equal(twin.theta, fleet.theta)
    for _ in range(4):
        twin.predict(pair(0.0, 0.0, 0.0, 0.0))
    twin.predict(pair(0.0, 0.0, 0.0, 0.0))
    with pytest.raises(PendingFull):
        twin.predict(pair(0.0, 0.0, 0.0, 0.0))


def test_a_file_that_is_no_fleet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no")
    with pytest.raises(StateError, match="damaged"):
        sp.Fleet.load(tmp_path / "text")
    sp.Stream(ONE).save(tmp_path / "stream")
    with pytest.raises(StateError, match="must hold a setpoint fleet"):
        sp.Fleet.load(tmp_path / "stream")
    sp.Fleet(ONE, 1).save(tmp_path / "fleet")
    with pytest.raises(StateError, match="must hold a setpoint stream"):
        sp.Stream.load(tmp_path / "fleet")


def test_a_fleet_with_a_part_that_spec_does_not_know_says_so_when_saved(tmp_path: Path) -> None:
    class Own(Miscoverage):
        pass

    fleet = sp.Fleet(sp.Controller(Widen(), risk_of(Own())), 1)
    with pytest.raises(SpecError):
        fleet.save(tmp_path / "fleet")
    assert list(tmp_path.iterdir()) == []


# Certificates


def test_each_stream_has_its_own_certificate_with_its_own_delay() -> None:
    """P is the most labels that one stream awaited at once, not the number of batches."""
    fleet = sp.Fleet(ONE, ["slow", "quick"])
    fleet.predict(pair(0.0), ["slow"], batch=0)
    fleet.predict(pair(0.0, 0.0), batch=1)
    fleet.predict(pair(0.0), ["slow"], batch=2)
    for name, labels in ((1, [5.0, 5.0]), (0, [5.0]), (2, [0.5])):
        fleet.update(labels, batch=name)
    slow, quick = fleet.certificate("slow"), fleet.certificate("quick")
    assert (slow.most_pending, quick.most_pending) == (3, 1)
    # (M + Pγ(l_max − r) − θ_1)/γ
    assert slow.risks[0].constant_upper == pytest.approx((1.0 + 3 * 0.5 * 0.75) / 0.5)
    assert quick.risks[0].constant_upper == pytest.approx((1.0 + 0.5 * 0.75) / 0.5)
    assert slow.risks[0].judged == 3
    assert slow.risks[0].identity == pytest.approx(slow.risks[0].mean)


# Without numba


def test_nothing_warns_in_a_saturated_step_of_an_adaptive_stretch() -> None:
    """Plain Python or machine code, infinities cancel in silence (warnings are errors here)."""
    stretch = sp.stretches.ScoreAdaptive(0.3, -0.7, 0.9, reading="authors")
    fleet = sp.Fleet(sp.Controller(Widen(), risk_of(gamma=9.0), stretch), 2)
    for y in (9.0, 9.0, 0.0, 0.0):
        fleet.predict((np.array([-inf, inf]), np.array([inf, inf])))
        fleet.update([y, y])
    assert fleet.state(0).full + fleet.state(1).full > 0
    assert np.isfinite(fleet.theta).all()


class Breaks(RuntimeError):
    """What a rule raises half way."""


@dataclass(frozen=True)
class Fragile:
    """A step rule of a user's own that breaks at θ = 0.5."""

    params = ()

    @staticmethod
    def rule(params: Any, theta: float, memory: Any, excess: float, critical: float) -> Any:
        if theta == 0.5:
            raise Breaks
        return theta + 0.5 * excess, memory

    def init(self) -> tuple[float, ...]:
        return ()

    def claim(self, within: Any, memory: Any, T: int) -> sp.steps.Claim:
        return sp.steps.Claim()


def test_a_rule_that_raises_half_way_changes_nothing() -> None:
    controller = sp.Controller(Widen(), sp.Risk(Miscoverage(), 0.25, Fragile(), bounds=(-1.0, 1.0)))
    states = [controller.init() for _ in range(3)]
    states[1].put(0, theta=0.5)
    fleet = sp.Fleet(controller, [])
    fleet.add(["a", "b", "c"], states)
    fleet.predict(pair(0.0, 0.0, 0.0))
    before = everything(fleet)
    with pytest.raises(Breaks):
        fleet.update([5.0, 5.0, 5.0])
    assert everything(fleet) == before
    fleet.drop()
    before = everything(fleet)
    with pytest.raises(Breaks):
        fleet.run((np.zeros((2, 3)), np.ones((2, 3))), np.full((2, 3), 5.0))
    assert everything(fleet) == before


def breaks_its_promise(params: Any, memory: Any, missed: bool) -> tuple[float, Any]:
    return (2.0 if missed else 0.0), memory


@dataclass(frozen=True)
class Broken:
    """A loss that promises at most 1 and says 2."""

    low, high, params, rule = 0.0, 1.0, (), staticmethod(breaks_its_promise)

    def __call__(self, shown: Any, y: float) -> float:
        return 0.0 if y in shown else 2.0


def test_a_users_own_loss_is_held_to_its_promises_and_nothing_is_changed() -> None:
    fleet = sp.Fleet(sp.Controller(Widen(), risk_of(Broken())), 2)
    assert fleet.run((np.zeros((2, 2)), np.ones((2, 2))), np.full((2, 2), 0.5)).lower.shape == (
        2,
        2,
    )
    before = everything(fleet)
    with pytest.raises(LossError, match="Broken promises a loss in"):
        fleet.run((np.zeros((3, 2)), np.ones((3, 2))), [[0.5, 0.5], [0.5, 9.0], [0.5, 0.5]])
    assert everything(fleet) == before
    fleet.predict(pair(0.0, 0.0))
    before = everything(fleet)
    with pytest.raises(LossError):
        fleet.update([0.5, 9.0])
    assert everything(fleet) == before


# Labels by id


def test_labels_come_by_id_for_some_streams_of_a_batch() -> None:
    fleet, twin = sp.Fleet(TWO, list("abcd")), sp.Fleet(TWO, list("abcd"))
    for each in (fleet, twin):
        each.predict(pair(0.0, 0.0, 0.0, 0.0), batch=1)
        each.predict(pair(0.0, 0.0, 0.0), ["d", "b", "a"], batch=2)
    assert fleet.update([5.0, 0.5], ["c", "a"], batch=1).tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert fleet.pending == {1: ("b", "d"), 2: ("d", "b", "a")}
    assert fleet.update({"a": 9.0}, batch=2).tolist() == [[1.0], [1.0]]
    twin.update([0.5, nan, 5.0, nan], batch=1, late=True)
    twin.update([nan, nan, 9.0], batch=2, late=True)
    assert everything(fleet) == everything(twin)
    assert np.isnan(fleet.update({"b": nan, "d": 0.5}, batch=1)[0, 0])
    assert np.isnan(fleet.update({"b": nan}, batch=2, late=True)).all()
    assert fleet.pending == {2: ("d", "b")}
    assert [fleet.state(id).missing for id in "abcd"] == [0, 1, 0, 0]
    assert fleet.update({}, batch=2).shape == (2, 0)


def test_after_a_stream_is_retired_the_labels_of_the_others_come_by_id() -> None:
    fleet = sp.Fleet(ONE, ["a", "b", "c"])
    fleet.predict(pair(0.0, 0.0, 0.0), batch="x")
    fleet.retire(["a"])
    fleet.add(["d"])
    fleet.retire(["c"])
    before = everything(fleet)
    with pytest.raises(InputError, match="no stream 'a'"):
        fleet.update({"b": 0.5, "a": 0.5})
    for labels in ([0.5, nan, nan], [nan, nan, 0.5]):
        with pytest.raises(UnknownReceipt, match="a stream that was retired awaits no label"):
            fleet.update(labels)
    with pytest.raises(UnknownReceipt, match="stream 'd' has no prediction in batch 'x'"):
        fleet.update({"d": 0.5})
    with pytest.raises(InputError, match="no stream 'z'"):
        fleet.update({"z": 0.5})
    assert everything(fleet) == before
    assert fleet.update({"b": 5.0}).tolist() == [1.0]
    assert fleet.pending == {}
    assert fleet.means.tolist()[0] == 1.0


def test_streams_that_come_and_go_while_batches_wait_keep_their_names() -> None:
    fleet = sp.Fleet(ONE, range(8))
    fleet.predict(np.zeros(8), batch="old")
    for k in range(1, 8):
        fleet.retire([k])
        fleet.add([f"new {k}"])
        if k == 4:
            fleet.predict(np.zeros(8), batch="young")
    assert fleet.pending["old"] == (0,)
    assert fleet.pending["young"] == (0, "new 1", "new 2", "new 3", "new 4")
    for place in range(1, 8):
        labels = np.full(8, nan)
        labels[place] = 0.5
        with pytest.raises(UnknownReceipt, match="that was retired"):
            fleet.update(labels, batch="old", late=True)
    fleet.drop("old")
    fleet.update({"new 4": 5.0, 0: 5.0})
    assert fleet.theta.tolist() == [0.375, 0.0, 0.0, 0.0, 0.375, 0.0, 0.0, 0.0]
    fleet.retire([0, "new 1", "new 2", "new 3"])
    assert fleet.pending == {}


def test_wrong_labels_by_id_change_nothing() -> None:
    fleet = sp.Fleet(ONE, ["a", "b"])
    fleet.predict(pair(0.0, 0.0))
    fleet.update({"a": 0.5})
    before = everything(fleet)
    for error, labels, ids in (
        (AnsweredReceipt, {"b": 0.5, "a": 0.5}, None),
        (LabelError, {"b": inf}, None),
        (LabelError, [0.5, 0.5], ["b"]),
        (InputError, [0.5, 0.5], ["b", "b"]),
        (InputError, {"b": 0.5}, ["b"]),
        (InputError, [0.5], "b"),
    ):
        with pytest.raises(error):
            fleet.update(labels, ids)
        assert everything(fleet) == before


def test_many_batches_that_wait_are_counted_for_each_stream() -> None:
    rng = np.random.default_rng(5)
    fleet, held = sp.Fleet(ONE, range(5)), dict.fromkeys(range(5), 0)
    peak = dict.fromkeys(held, 1)
    for _ in range(60):
        ids = rng.permutation(5)[: rng.integers(1, 6)].tolist()
        fleet.predict(np.zeros(len(ids)), ids)
        for id in ids:
            held[id] += 1
            peak[id] = max(peak[id], held[id])
        name = list(fleet.pending)[rng.integers(len(fleet.pending))]
        some = [id for id in fleet.pending[name] if rng.random() < 0.5]
        if rng.random() < 0.2:
            some = list(fleet.pending[name])
            fleet.drop(name)
        else:
            fleet.update(dict.fromkeys(some, 0.5), batch=name)
        for id in some:
            held[id] -= 1
    assert [fleet.certificate(id).pending for id in range(5)] == list(held.values())
    assert [fleet.state(id).peak for id in range(5)] == list(peak.values())


# What a prediction may come as


def test_predictions_come_by_name_and_by_column() -> None:
    import pandas as pd
    import polars as pl

    lower, upper = np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0])
    columns = {"upper": upper, "lower": lower, "time": np.arange(3)}
    wide = np.stack([lower, upper], axis=1)
    for each in (
        (lower, upper), [lower.tolist(), upper.tolist()], columns, pd.DataFrame(columns),
        pl.DataFrame(columns), wide, np.asfortranarray(wide),
        (pd.Series(lower), pd.Series(upper)), Quantiles(lower, upper),
    ):  # fmt: skip
        shown = sp.Fleet(ONE, 3).predict(each)
        assert shown.lower.tolist() == lower.tolist()
        assert shown.upper.tolist() == upper.tolist()
    rows = sp.Fleet(ONE, 3).run(np.stack([wide, wide]), np.full((2, 3), nan))
    assert rows.upper.tolist() == [upper.tolist()] * 2
    assert sp.Fleet(ONE, 3).predict(pd.Series(lower)).upper.tolist() == lower.tolist()
    with pytest.raises(PredictionError, match=r"lower, upper.* got a DataFrame of a, b"):
        sp.Fleet(ONE, 3).predict(pd.DataFrame({"a": lower, "b": upper}))
    with pytest.raises(PredictionError, match=r"got an array of shape \(3, 3\)"):
        sp.Fleet(ONE, 3).predict(np.zeros((3, 3)))


def test_ids_come_in_arrays_and_never_as_one_string() -> None:
    assert sp.Fleet(ONE, np.int64(3)).ids == (0, 1, 2)
    fleet = sp.Fleet(ONE, np.array(["a", "b", "c"]))
    assert fleet.ids == ("a", "b", "c")
    assert {type(id) for id in fleet.ids} == {str}
    fleet.predict(pair(0.0, 0.0), np.array(["c", "a"]))
    fleet.update([5.0, 0.5])
    assert fleet.theta.tolist() == [-0.125, 0.0, 0.375]
    assert list(fleet.retire(np.array(["a"]))) == ["a"]
    for wrong in ("bc", b"bc", -5, None, np.bool_(True), 2.5):
        with pytest.raises(InputError):
            sp.Fleet(ONE, wrong)
    with pytest.raises(InputError, match="in a list or an array, got 'bc'"):
        fleet.predict(pair(0.0, 0.0), "bc")
    with pytest.raises(InputError, match="in a list or an array, got 'bc'"):
        fleet.retire("bc")


def test_the_first_wrong_number_of_a_run_is_named_and_nothing_is_changed() -> None:
    fleet = sp.Fleet(sp.Controller(Widen(support=(-9.0, 9.0)), risk_of()), ["a", "b", "c"])
    lower, y = np.zeros((6, 3)), np.zeros((6, 3))
    y[1, 1] = nan  # no label: nothing is wrong with it
    before = everything(fleet)
    y[4, 2] = 10.0
    with pytest.raises(LabelError, match=r"got 10\.0 for stream 'c'"):
        fleet.run((lower, lower + 1), y)
    y[3, 1] = -inf
    with pytest.raises(LabelError, match="got -inf for stream 'b'"):
        fleet.run((lower, lower + 1), y)
    lower[2, 0] = nan
    with pytest.raises(PredictionError, match="stream 'a'"):
        fleet.run((lower, np.ones((6, 3))), y)
    assert everything(fleet) == before


def test_one_signature_serves_arrays_of_every_make(mode: str, tmp_path: Path) -> None:
    """A loop that is compiled anew keeps a service waiting for most of a second."""
    import pandas as pd

    if mode == "plain":
        pytest.skip("nothing is compiled")
    fleet = sp.Fleet(ONE, 4)
    made = loops(layout_of(ONE), inf)

    def signatures() -> list[int]:
        return [len(loop.signatures) for loop in (made.along, made.run, made.unsound)]

    wide = np.zeros((4, 2))
    tall = np.zeros((5, 4))
    fixed = np.ones(4)
    fixed.flags.writeable = False
    fleet.predict((np.zeros(4), np.ones(4)))
    fleet.update(np.zeros(4))
    fleet.run((tall, tall), tall)
    counted = signatures()
    for prediction in (
        (wide[:, 0], wide[:, 1]), (np.zeros(4, np.float32), np.ones(4)), (fixed, fixed),
        pd.DataFrame({"lower": np.zeros(4), "upper": np.ones(4)}), np.zeros(4), [[0] * 4, [1] * 4],
        np.asfortranarray(wide), (np.zeros(4, ">f8"), np.ones(4, np.float16)),
    ):  # fmt: skip
        for y in (fixed, wide[:, 0], np.zeros(4, np.float32), [0] * 4):
            fleet.predict(prediction)
            fleet.update(y)
    for rows in (np.asfortranarray(tall), tall.astype(int), np.zeros((5, 8))[:, ::2]):
        fleet.run((rows, tall), rows)
        fleet.run((tall.astype(np.float32), rows), tall.astype(np.float32))
    fleet.predict((np.zeros(4), np.ones(4)))
    fleet.save(tmp_path / "fleet")
    twin = sp.Fleet.load(tmp_path / "fleet")
    twin.update(np.zeros(4))
    twin.run((tall, tall), tall)
    assert signatures() == counted


# States


def test_a_fleet_gives_back_every_number_of_a_state() -> None:
    state = TWO.init()
    others = ("position", "sets", "memory", "own_table", "own_annex", "arrays", "terms", "fresh")
    others = (*others, "groups", "watch")
    names = [name for name in State.__slots__ if name not in others]
    for number, name in enumerate(names, 3):
        setattr(state, name, number)
    state.fresh = False
    for i in range(len(state.risks)):
        state.put(i, lifts=5.0 + i, unjudged=6.0 + i, judged=77.0)
        state.put(i, first=0.125 + i, lifted=0.25 + i, theta=0.375 + i, total=0.5 + i)
    state.groups = {"rain": state.position[0], ("hour", 8): TWO.init().position[0]}
    fleet = sp.Fleet(TWO, ["before"])
    fleet.add(["a"], [state])
    assert numbers_of(fleet.state("a")) == numbers_of(state)
    assert numbers_of(fleet.retire(["a"])["a"]) == numbers_of(state)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_of_a_fleet_shares_nothing(copied: Any) -> None:
    fleet = sp.Fleet(TWO, ["a", "b"])
    fleet.predict(pair(0.0, 0.0), batch="waits")
    twin, before = copied(fleet), everything(fleet)
    twin.update([5.0, 0.5], batch="waits")
    twin.run((np.zeros((3, 2)), np.ones((3, 2))), np.full((3, 2), 9.0))
    twin.add(["c"])
    twin.retire(["a"])
    assert everything(fleet) == before
    after = everything(twin)
    fleet.update([0.5, 5.0], batch="waits")
    fleet.retire(["b"])
    assert everything(twin) == after


def test_a_step_of_one_stream_costs_the_same_whatever_the_others_are() -> None:
    def calls(count: int) -> int:
        fleet, made = sp.Fleet(sp.intervals(), count), [0]
        for turn in range(2):  # at first something may be looked up
            made[0] = 0
            sys.setprofile(lambda *_: made.__setitem__(0, made[0] + 1))
            fleet.predict(pair(float(turn)), [3])
            fleet.update({3: 0.5})
            sys.setprofile(None)
        return made[0]

    assert calls(5_000) < 1.1 * calls(50)
