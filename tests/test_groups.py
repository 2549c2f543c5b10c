"""Groups: a θ for each key beside a marginal one, and what is guaranteed of each."""

import copy
import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.errors import (
    AmbiguousReceipt,
    AnsweredReceipt,
    ExpiredReceipt,
    InputError,
    LabelError,
    PendingFull,
    PredictionError,
    StateError,
    UnknownReceipt,
)

LEVEL, GAMMA, BOUND = 0.1, 0.5, 4.0


def controller(loss: Any = None, **options: Any) -> sp.Controller:
    made = loss or sp.losses.Miscoverage()
    risk = sp.Risk(made, LEVEL, sp.steps.Fixed(GAMMA), bounds=(-BOUND, BOUND))
    return sp.Controller(options.pop("sets", sp.sets.Widen()), risk, **options)


def snapshot(groups: sp.Groups) -> tuple[Any, ...]:
    streams = {key: (stream.theta, list(stream.pending)) for key, stream in groups.streams.items()}
    return groups.marginal.theta, streams, groups.pending, str(groups.certificate())


def test_every_group_follows_the_rule_on_its_own_labels_from_the_marginal_theta() -> None:
    world = random.Random(3)
    groups = sp.Groups(controller())
    marginal, thetas = 0.0, {}
    for _ in range(400):
        key = world.choice("abc")
        y = world.gauss(0.0, {"a": 1.0, "b": 2.0, "c": 4.0}[key])
        theta = thetas.setdefault(key, marginal)

        def step(theta: float, y: float = y) -> float:
            reach = {True: float("inf"), False: 1.0 + theta}[theta > BOUND]
            missed = theta < -BOUND or abs(y) > reach
            return theta + GAMMA * (missed - LEVEL)

        shown = groups.predict((-1.0, 1.0), key)
        assert (shown.upper == float("inf")) == (theta > BOUND)
        groups.update(y)
        thetas[key], marginal = step(theta), step(marginal)
        assert groups.streams[key].theta == pytest.approx(thetas[key], abs=1e-12)
        assert groups.marginal.theta == pytest.approx(marginal, abs=1e-12)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), min_size=1, max_size=300))
def test_an_adversary_cannot_break_the_bound_of_a_group_or_of_all(
    moves: list[tuple[str, bool]],
) -> None:
    groups = sp.Groups(controller())
    losses = defaultdict(list)
    for key, miss in moves:
        shown = groups.predict((-1.0, 1.0), key)
        inside = 0.0 if shown.contains(0.0) else shown.lower
        y = shown.upper + 1.0 if miss and shown.upper < float("inf") else inside
        losses[key].append(groups.update(y if abs(y) < float("inf") else 0.0))
        certificate = groups.certificate()
        for each, held in certificate.groups.items():
            own = held.risks[0]
            assert own.mean == pytest.approx(sum(losses[each]) / len(losses[each]))
            assert own.identity == pytest.approx(own.mean, abs=1e-9)
            assert own.within
            assert own.verdict.startswith(("holds", "says nothing"))
        (together,) = certificate.together
        count = sum(map(len, losses.values()))
        assert together.mean == pytest.approx(sum(map(sum, losses.values())) / count)
        assert together.identity == pytest.approx(together.mean, abs=1e-9)
        assert together.within
        assert together.constant_upper == pytest.approx(
            sum(held.risks[0].constant_upper for held in certificate.groups.values())
        )


def test_late_labels_are_matched_by_id_and_judged_on_the_set_of_their_group() -> None:
    groups = sp.Groups(controller())
    groups.predict((-1.0, 1.0), "a", id="first")
    groups.update(9.0)
    shown = groups.predict((-1.0, 1.0), "a", id="second")
    groups.predict((-1.0, 1.0), "b", id=7)
    with pytest.raises(AmbiguousReceipt, match="2 predictions wait"):
        groups.update(0.0)
    assert groups.pending == {"second": "a", 7: "b"}
    assert groups.update(shown.upper, id="second") == 0.0
    with pytest.raises(AnsweredReceipt, match="'second' already has its label"):
        groups.update(0.0, id="second")
    with pytest.raises(UnknownReceipt, match="'never'"):
        groups.update(0.0, id="never")
    groups.drop(7)
    with pytest.raises(ExpiredReceipt, match="given up"):
        groups.update(0.0, id=7)
    with pytest.raises(UnknownReceipt, match="call predict first"):
        groups.update(0.0)
    assert groups.predict((-1.0, 1.0), "b") is not None
    assert list(groups.pending) == [8]  # generated ids go on above given ones


def test_bad_input_changes_nothing() -> None:
    groups = sp.Groups(controller(), most=2, max_pending=2)
    groups.predict((-1.0, 1.0), "a", id="x")
    before = snapshot(groups)
    for wrong, error, message in (
        (lambda: groups.predict("text", "a"), PredictionError, "text"),
        (lambda: groups.predict((0.0, float("nan")), "new"), PredictionError, "NaN"),
        (lambda: groups.predict((0.0, 1.0), 1.5), InputError, "a group must be .* got 1.5"),
        (lambda: groups.predict((0.0, 1.0), "a", id="x"), InputError, "already waits"),
        (lambda: groups.update(float("nan")), LabelError, "finite"),
        (lambda: groups.update("text", id="x"), LabelError, "text"),
    ):
        with pytest.raises(error, match=message):
            wrong()
        assert snapshot(groups) == before
    groups.predict((-1.0, 1.0), "b", id="y")
    before = snapshot(groups)
    with pytest.raises(PendingFull, match="2 predictions wait"):
        groups.predict((-1.0, 1.0), "b")
    groups.drop("y")
    with pytest.raises(InputError, match="at most 2 groups, 'c' is one more"):
        groups.predict((-1.0, 1.0), "c")
    assert list(groups.streams) == ["a", "b"]


@dataclass(frozen=True, slots=True)
class Brittle:
    """A loss that fails on wide sets."""

    low, high = 0.0, 1.0

    def __call__(self, shown: Any, y: float) -> float:
        if shown.length > 3.5:
            raise RuntimeError("too wide for me")
        return 0.0 if shown.contains(y) else 1.0


def test_a_loss_that_fails_on_one_of_the_two_sets_leaves_both_as_they_were() -> None:
    groups = sp.Groups(controller(Brittle()))
    groups.predict((-1.0, 1.0), "a")
    groups.update(0.0)
    for key in ("b", "b"):  # raises the marginal θ, not that of group a
        groups.predict((-1.0, 1.0), key)
        groups.update(9.0)
    groups.predict((-1.0, 1.0), "a")
    before = snapshot(groups)
    with pytest.raises(RuntimeError, match="too wide"):
        groups.update(0.0)
    assert snapshot(groups) == before


def test_a_missing_label_is_skipped_if_asked_even_after_loading(tmp_path: Path) -> None:
    groups = sp.Groups(controller(), missing="skip")
    groups.predict((-1.0, 1.0), "a")
    groups.save(tmp_path / "groups.zip")
    groups = sp.Groups.load(tmp_path / "groups.zip")
    assert groups.update(None) is None
    assert groups.certificate().groups["a"].missing == 1
    assert groups.pending == {}


@pytest.mark.parametrize("family", [sp.sets.Widen(), sp.sets.ScoreWindow(size=5)], ids=str)
def test_saved_groups_go_on_to_the_bit(family: Any, tmp_path: Path) -> None:
    world = random.Random(5)
    risk = sp.Risk(sp.losses.Miscoverage(), LEVEL, sp.steps.Fixed(0.05))
    groups = sp.Groups(sp.Controller(family, risk))
    for _ in range(60):
        groups.predict((-1.0, 1.0), world.choice(["a", "b", 3]))
        groups.update(world.gauss(0.0, 2.0))
    groups.predict((-1.0, 1.0), "a", id="late")
    groups.save(tmp_path / "groups.zip")
    again = sp.Groups.load(tmp_path / "groups.zip")
    assert snapshot(again) == snapshot(groups)
    for each in (groups, again):
        each.update(5.0, id="late")
    for step in range(40):
        key, y = ("a", "b", 3, "new")[step % 4], world.gauss(0.0, 2.0)
        shown = [each.predict((-1.0, 1.0), key) for each in (groups, again)]
        assert shown[0] == shown[1]
        assert groups.update(y) == again.update(y)
    assert snapshot(again) == snapshot(groups)


def test_a_new_group_begins_with_no_memory_of_the_losses_of_others() -> None:
    groups = sp.Groups(controller(sp.losses.MiscoverageCounter()))
    for _ in range(3):
        groups.predict((0.0, 1.0), "a")
        groups.update(50.0)
    groups.predict((0.0, 1.0), "new")
    assert groups.update(50.0) == 1.0
    risk = groups.certificate().groups["new"].risks[0]
    assert risk.constant_upper is not None  # the counter is bounded by the rule itself


def test_peeking_opens_nothing_and_several_labels_come_together() -> None:
    groups = sp.Groups(controller())
    assert groups.peek((0.0, 1.0), "a") == sp.sets.Interval(0.0, 1.0)
    assert not groups.streams
    groups.predict((0.0, 1.0), "a", id=1)
    groups.predict((0.0, 1.0), "b", id=2)
    assert groups.update_many({2: 5.0, 1: 0.5}) == {2: 1.0, 1: 0.0}
    assert groups.peek((0.0, 1.0), "b") == groups.predict((0.0, 1.0), "b")


def test_a_file_of_something_else_is_told(tmp_path: Path) -> None:
    sp.Stream(controller()).save(tmp_path / "stream.zip")
    with pytest.raises(StateError, match="must hold a setpoint groups, it holds 'setpoint stream'"):
        sp.Groups.load(tmp_path / "stream.zip")


def test_the_certificate_is_printed_and_becomes_plain() -> None:
    groups = sp.Groups(controller())
    assert "0 groups" in str(groups.certificate())
    groups.predict((-1.0, 1.0), "a")
    groups.update(9.0)
    text, plain = str(groups.certificate()), groups.certificate().as_dict()
    assert "'a': 1 over 1 labels" in text
    assert plain["together"][0]["judged"] == 1
    assert set(plain["groups"]) == {"a"}
    assert plain["marginal"]["risks"][0]["mean"] == 1.0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_of_groups_shares_nothing(copied: Any) -> None:
    def numbers(groups: sp.Groups) -> Any:
        contents = {key: stream.content() for key, stream in groups.streams.items()}
        return repr((contents, groups.marginal.content(), groups.pending))

    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-20.0, 20.0))
    groups = sp.Groups(sp.Controller(sp.sets.Widen(), risk))
    groups.predict((0.0, 1.0), "north", id="waits")
    twin, before = copied(groups), numbers(groups)
    twin.update(9.0, id="waits")
    twin.predict((0.0, 1.0), "south")
    assert numbers(groups) == before
    after = numbers(twin)
    groups.update(0.5, id="waits")
    assert numbers(twin) == after
