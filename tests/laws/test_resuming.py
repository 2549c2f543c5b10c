"""Saving and loading in mid-stream changes nothing; many labels at once are as many one by one."""

import copy
import pickle
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.errors import LabelError, SetpointError
from tests.laws.adversary import Adversary, adversaries
from tests.laws.late import Habit, delayed, habits
from tests.laws.parts import families, risks, several, single, stretches
from tests.laws.record import everything, record, repeat

controllers = st.one_of(single(), several())


class Told(list[Any]):
    """A hook that keeps what it is told."""

    def __call__(self, alarm: sp.Alarm) -> None:
        self.append(alarm)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved")


def resume_anywhere(
    folder: Path,
    controller: sp.Controller,
    adversary: tuple[str, int],
    habit: Habit,
    events: int,
    cuts: int,
) -> None:
    calls = record(controller, adversary, habit, events)
    whole = delayed(controller, habit)
    expected = repeat(whole, calls)
    places = sorted(Random(adversary[1]).randint(0, events) for _ in range(cuts))
    answers, stream, before = [], delayed(controller, habit), 0
    for place in [*places, events]:
        answers += repeat(stream, calls[before:place])
        seen = everything(stream)
        stream.save(folder / "stream.zip")
        stream = sp.Stream.load(folder / "stream.zip", controller=controller)
        assert everything(stream) == seen
        before = place
    assert answers == expected
    assert everything(stream) == everything(whole)


@given(controllers, adversaries(), habits(), st.integers(1, 80))
def test_a_stream_resumes_to_the_bit_wherever_it_was_saved(
    folder: Path,
    controller: sp.Controller,
    adversary: tuple[str, int],
    habit: Habit,
    events: int,
) -> None:
    resume_anywhere(folder, controller, adversary, habit, events, cuts=2)


@pytest.mark.slow
@given(controllers, adversaries(), habits(), st.integers(80, 800))
def test_a_long_stream_resumes_to_the_bit_wherever_it_was_saved(
    folder: Path,
    controller: sp.Controller,
    adversary: tuple[str, int],
    habit: Habit,
    events: int,
) -> None:
    resume_anywhere(folder, controller, adversary, habit, events, cuts=8)


@settings(max_examples=40)
@given(
    controllers,
    adversaries(),
    habits(),
    st.integers(1, 60),
    st.sampled_from([copy.copy, copy.deepcopy, lambda stream: pickle.loads(pickle.dumps(stream))]),
)
def test_a_copy_goes_on_by_itself(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int, copied: Any
) -> None:
    calls = record(controller, adversary, habit, events)
    half = events // 2
    stream = delayed(controller, habit)
    repeat(stream, calls[:half])
    twin, seen = copied(stream), everything(stream)
    answers = repeat(twin, calls[half:])
    assert everything(stream) == seen
    assert repeat(stream, calls[half:]) == answers
    assert everything(stream) == everything(twin)


@st.composite
def batches(draw: Any, controllers: Any = controllers) -> Any:
    """Two streams at one place with the same predictions open, labels for some, and their hooks."""
    controller = draw(controllers)
    hooks = [Told(), Told()]
    policy, seed = draw(adversaries())
    player = Adversary(controller, policy, seed)
    streams = [sp.Stream(controller, on_alarm=hook, window=3, tolerance=0.1) for hook in hooks]
    labels = {}
    for step in range(draw(st.integers(1, 25))):
        prediction = player.prediction()
        one, other = (stream.issue(prediction) for stream in streams)
        assert one == other
        labels[one.id] = player.label(streams[0], one.shown)
        if step % 3 == 0:
            for stream in streams:
                stream.update(labels[one.id], one.id)
            del labels[one.id]
    pairs = draw(st.permutations(list(labels.items())))
    return (*streams, pairs[: draw(st.integers(0, len(pairs)))], hooks)


BOOM = 1.0625


@dataclass(frozen=True)
class Fragile:
    """A counter of misses that breaks down at one label, as a user's own loss may."""

    low, high, empty = 0.0, 3.0, 1.0

    def init(self) -> tuple[float, ...]:
        return (0.0,)

    def update(self, memory: Any, shown: Any, y: float) -> tuple[float, tuple[float, ...]]:
        if y == BOOM:
            raise ZeroDivisionError("the loss broke down")
        count = 0.0 if shown.contains(y) else min(memory[0] + 1.0, 3.0)
        return count, (count,)


@settings(max_examples=60)
@given(batches(), st.booleans())
def test_many_labels_at_once_are_as_many_one_by_one(batch: Any, as_mapping: bool) -> None:
    together, apart, pairs, hooks = batch
    costs = together.update_many(dict(pairs) if as_mapping else iter(pairs))
    assert costs == {id: apart.update(y, id) for id, y in pairs}
    assert everything(together) == everything(apart)
    assert hooks[0] == hooks[1]


@settings(max_examples=60)
@given(batches(), st.data())
def test_many_labels_are_taken_in_together_or_not_at_all(batch: Any, data: st.DataObject) -> None:
    stream, twin, pairs, _ = batch
    place = data.draw(st.integers(0, len(pairs)))
    wrong = data.draw(st.sampled_from([("never issued", 1.0), (0, 1.0), *pairs[:1]]))
    broken = [*pairs[:place], wrong, *pairs[place:]]
    if wrong in pairs:  # a second label for one id
        assert len(broken) > len(pairs)
    with pytest.raises(SetpointError):
        stream.update_many(broken)
    if pairs:
        id, _ = pairs[-1]
        with pytest.raises(LabelError):
            stream.update_many([*pairs[:-1], (id, float("nan"))])
    assert everything(stream) == everything(twin)
    assert stream.update_many(pairs) == twin.update_many(pairs)
    assert everything(stream) == everything(twin)


@st.composite
def fragile(draw: Any) -> sp.Controller:
    """One risk or several, all of which break down at one label."""
    sets, stretch = draw(families()), draw(stretches())
    held = draw(st.lists(risks(Fragile()), min_size=1, max_size=3))
    tops = [risk.bounds[1] for risk in held]
    delta = draw(st.sampled_from([None, 1.0]))
    combine = sp.combine.Max(None if delta is None else delta + max(tops) - min(tops))
    return sp.Controller(sets, held, stretch, combine)


@settings(max_examples=60)
@given(batches(fragile()), st.data())
def test_a_loss_that_breaks_down_in_the_middle_leaves_the_stream_as_it_was(
    batch: Any, data: st.DataObject
) -> None:
    stream, twin, pairs, hooks = batch
    if pairs:
        place = data.draw(st.integers(0, len(pairs) - 1))
        broken = [*pairs[:place], (pairs[place][0], BOOM), *pairs[place + 1 :]]
        with pytest.raises(ZeroDivisionError):
            stream.update_many(broken)
        with pytest.raises(ZeroDivisionError):
            stream.update(BOOM, pairs[place][0])
    assert everything(stream) == everything(twin)
    for hook in hooks:
        hook.clear()
    assert stream.update_many(pairs) == twin.update_many(pairs)
    assert everything(stream) == everything(twin)
    assert hooks[0] == hooks[1]  # the alarms that follow
