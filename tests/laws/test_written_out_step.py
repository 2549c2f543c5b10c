"""The step written out for a controller is the plain one, to the last bit."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from tests.laws.adversary import adversaries
from tests.laws.late import Habit, habits
from tests.laws.parts import several, single
from tests.laws.record import everything, record, repeat
from tests.laws.test_nothing_to_judge import partial

controllers = st.one_of(single(), several(), partial("skip"), partial("zero"))


class Told(list[Any]):
    """A hook that keeps what it is told."""

    def __call__(self, alarm: sp.Alarm) -> None:
        self.append(alarm)


def runs_alike(
    controller: sp.Controller,
    adversary: tuple[str, int],
    habit: Habit,
    events: int,
    *,
    shared: bool,
    window: int | None,
) -> None:
    calls = record(controller, adversary, habit, events)
    told: list[Told | None] = [None, None] if window == 0 else [Told(), Told()]
    written, plain = (
        sp.Stream(
            controller,
            max_pending=habit.waiting,
            overflow=habit.overflow,
            missing="skip",
            on_alarm=hook,
            window=window or None,
            tolerance=0.2 if window else None,
            shared=shared,
        )
        for hook in told
    )
    plain.__class__ = sp.Stream
    assert type(written).update is not sp.Stream.update
    assert type(plain).update is sp.Stream.update
    assert repeat(written, calls) == repeat(plain, calls)
    assert everything(written) == everything(plain)
    assert repr(told[0]) == repr(told[1])


@given(
    controllers,
    adversaries(),
    habits(),
    st.integers(1, 100),
    st.booleans(),
    st.sampled_from([0, 0, None, 5]),
)
def test_the_written_out_step_is_the_plain_one(
    controller: sp.Controller,
    adversary: tuple[str, int],
    habit: Habit,
    events: int,
    shared: bool,
    window: int | None,
) -> None:
    runs_alike(controller, adversary, habit, events, shared=shared, window=window)


@pytest.mark.slow
@given(controllers, adversaries(), habits(), st.integers(100, 1000), st.booleans())
def test_the_written_out_step_is_the_plain_one_for_long(
    controller: sp.Controller,
    adversary: tuple[str, int],
    habit: Habit,
    events: int,
    shared: bool,
) -> None:
    runs_alike(controller, adversary, habit, events, shared=shared, window=0)
