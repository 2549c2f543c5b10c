"""Alarms: told once when something begins, again after it ended, never without reason."""

import math
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.alarms import Alarm, Episodes
from setpoint.errors import InputError

INF = math.inf


def watched(
    level: float = 0.5, gamma: float = 1.0, bounds: Any = (-1.0, 1.0), **options: Any
) -> tuple[sp.Stream, list[Alarm]]:
    alarms: list[Alarm] = []
    risk = sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(gamma), bounds=bounds)
    controller = sp.Controller(sp.sets.Widen(), risk)
    return sp.Stream(controller, on_alarm=alarms.append, **options), alarms


def answer(stream: sp.Stream, miss: bool) -> Any:
    """One step with a miss, where a miss is possible, or a hit, where a hit is."""
    shown = stream.predict((0.0, 0.0))
    return stream.update(shown.upper + 1.0 if miss and math.isfinite(shown.upper) else 0.0)


def seen(watch: Episodes, losses: list[Any], lam: float = 0.0) -> list[Alarm]:
    alarms: list[Alarm] = []
    for loss in losses:
        watch.look(lam, loss if isinstance(loss, tuple) else (loss,), alarms.append)
    return alarms


# The watch by itself


def test_a_window_alarm_is_raised_when_the_window_leaves_its_tolerance() -> None:
    watch = Episodes([0.5], window=4, tolerance=0.3)
    assert seen(watch, [1.0, 1.0, 1.0]) == []  # not a window yet
    assert seen(watch, [1.0]) == [Alarm("window", 4, 0, 0.5, 0.3)]


def test_an_alarm_is_told_once_and_again_after_it_ended() -> None:
    watch = Episodes([0.5], window=2, tolerance=0.3)
    alarms = seen(watch, [1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    assert [alarm.step for alarm in alarms] == [2, 7]


def test_each_risk_has_its_own_window() -> None:
    watch = Episodes([0.5, 0.0], window=2, tolerance=0.3)
    alarms = seen(watch, [(1.0, 0.0), (0.0, 0.0), (1.0, 1.0), (0.0, 1.0)])
    assert [(alarm.risk, alarm.step) for alarm in alarms] == [(1, 3)]


def test_saturation_is_told_when_it_begins() -> None:
    watch = Episodes([0.5], window=None, tolerance=None)
    alarms: list[Alarm] = []
    for lam in (0.0, INF, INF, 0.0, INF, -INF, -INF, 1e300):
        watch.look(lam, (0.0,), alarms.append)
    assert alarms == [Alarm("full", 2), Alarm("empty", 6)]
    quiet = [0.0] * 99
    for lam in (*quiet[:-3], INF, *quiet, INF, *quiet, 0.0, INF):  # full at 105, 205 and 306
        watch.look(lam, (0.0,), alarms.append)
    assert alarms[2:] == [Alarm("full", 306)]


def test_an_episode_ends_after_a_window_of_quiet_labels() -> None:
    def steps(losses: list[float]) -> list[int]:
        return [alarm.step for alarm in seen(Episodes([0.5], window=4, tolerance=0.3), losses)]

    wrong = [1.0] * 4
    assert steps([*wrong, *[0.0] * 4]) == [4]  # the means 0.75, 0.5, 0.25 are quiet, 0.0 is not
    assert steps([*wrong, 0.0, *wrong]) == [4, 9]  # four times 0.75


def test_a_shift_that_flickers_around_the_limit_is_one_alarm() -> None:
    rng = np.random.default_rng(3)
    losses = (rng.random(900) < np.repeat([0.1, 0.3, 0.1], 300)).astype(float)
    means = np.convolve(losses, np.ones(50) / 50, "valid") - 0.1
    beyond = np.abs(means) > 0.21
    begun = int((beyond[1:] & ~beyond[:-1]).sum())
    assert begun > 3  # so often the mean crosses its limit
    alarms = seen(Episodes([0.1], window=50, tolerance=0.21), losses.tolist())
    assert [alarm.step for alarm in alarms] == [50 + int(beyond.argmax())]


def test_the_content_of_a_watch_brings_it_back() -> None:
    rng = np.random.default_rng(0)
    losses = rng.integers(0, 2, 60).astype(float).tolist()
    one = Episodes([0.5], window=5, tolerance=0.35)
    first = seen(one, losses[:23])
    other = Episodes.restore([0.5], deepcopy(one.content()))
    assert seen(one, losses[23:]) == seen(other, losses[23:])
    assert first


def test_a_tolerance_needs_a_window() -> None:
    with pytest.raises(
        InputError, match=r"tolerance needs a window, got tolerance=0.1 without one"
    ):
        Episodes([0.5], None, 0.1)


# In a stream


def test_the_safeguard_is_told_when_it_begins_to_act() -> None:
    stream, alarms = watched()
    for _ in range(3):
        answer(stream, miss=True)  # θ: 0.5, 1.0, 1.5
    assert alarms == []
    answer(stream, miss=True)  # shown at θ = 1.5: full
    assert alarms == [Alarm("full", 4)]
    assert stream.info is not None
    assert stream.info.saturated == "full"


def test_a_window_beyond_its_tolerance_is_told_once() -> None:
    stream, alarms = watched(level=0.1, gamma=0.001, window=10, tolerance=0.2)
    for miss in (True,) * 15 + (False,) * 30 + (True,) * 5:
        answer(stream, miss)
    assert [(alarm.kind, alarm.step) for alarm in alarms] == [("window", 10), ("window", 49)]
    assert alarms[1] == Alarm("window", 49, 0, pytest.approx(0.3), 0.2)


def test_a_hook_that_raises_reaches_the_caller_after_the_label_is_taken_in() -> None:
    def hook(alarm: Alarm) -> None:
        raise RuntimeError(alarm.kind)

    risk = sp.Risk(sp.losses.Miscoverage(), 0.5, sp.steps.Fixed(4.0), bounds=(-1.0, 1.0))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk), on_alarm=hook)
    answer(stream, miss=True)
    stream.predict((0.0, 0.0))
    with pytest.raises(RuntimeError, match="full"):
        stream.update(5.0)
    assert not stream.pending
    assert stream.certificate().risks[0].judged == 2
    assert stream.theta == 0.0
    answer(stream, miss=True)


def test_without_a_hook_nothing_is_watched() -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.5, sp.steps.Fixed(4.0), bounds=(-1.0, 1.0))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    answer(stream, miss=True)
    assert stream._watch is None
    with pytest.raises(InputError, match="need on_alarm"):
        sp.Stream(sp.Controller(sp.sets.Widen(), risk), window=10, tolerance=0.1)


# Without a tolerance the limit is the guarantee's own: only a broken premise can exceed it


def windows(alarms: list[Alarm]) -> list[Alarm]:
    return [alarm for alarm in alarms if alarm.kind == "window"]


@pytest.mark.parametrize("window", [5, 20, 100])
def test_the_guarantees_own_limit_is_never_exceeded(window: int) -> None:
    stream, alarms = watched(window=window)
    rng = np.random.default_rng(window)
    swing = True
    for step in range(600):
        if stream.lam == INF or stream.lam == -INF:
            swing = stream.lam < 0
        answer(stream, swing if step % 300 < 150 else bool(rng.random() < 0.5))
    assert windows(alarms) == []


def test_late_labels_alone_are_no_alarm() -> None:
    stream, alarms = watched(window=50)
    ids = [stream.issue((0.0, 0.0)).id for _ in range(50)]
    for id in ids:
        stream.update(5.0, id)
    assert stream.certificate().risks[0].within
    assert windows(alarms) == []


def test_a_slack_risk_is_no_alarm() -> None:
    alarms: list[Alarm] = []
    risks = [
        sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(1.0), bounds=(-1.0, 1.0))
        for level in (0.5, 0.1)
    ]
    controller = sp.Controller(sp.sets.Widen(), risks, combine=sp.combine.Max(anti_windup=1.0))
    stream = sp.Stream(controller, on_alarm=alarms.append, window=100)
    for step in range(400):
        answer(stream, miss=step % 10 == 0)
    assert [risk.verdict for risk in stream.certificate().risks] == [
        "guaranteed: not too many misses"
    ] * 2
    assert windows(alarms) == []
