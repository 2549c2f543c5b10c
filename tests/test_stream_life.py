"""The life of a stream: changes in mid-stream, copies, threads, saved and loaded."""

import copy
import math
import os
import random
import signal
import sys
import threading
import time
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import spec
from setpoint.errors import InputError, PendingFull, SpecError, StateError
from setpoint.sets import Interval
from setpoint.steps import Claim

INF, NAN = math.inf, math.nan
PAIR = (0.0, 1.0)


pytestmark = pytest.mark.usefixtures("own_registry")


def controller(
    loss: Any = None, stretch: Any = None, level: float = 0.1, bounds: Any = (-20.0, 20.0)
) -> sp.Controller:
    loss = sp.losses.Miscoverage() if loss is None else loss
    risk = sp.Risk(loss, level, sp.steps.Fixed(0.5), bounds=bounds)
    return sp.Controller(sp.sets.Widen(), risk, stretch)


def make(**options: Any) -> sp.Stream:
    made = {
        key: options.pop(key) for key in ("loss", "stretch", "level", "bounds") if key in options
    }
    return sp.Stream(controller(**made), **options)


def snapshot(stream: sp.Stream) -> Any:
    return deepcopy(stream.content())


def feed(stream: sp.Stream, seed: int, steps: int = 40) -> list[Any]:
    """A seeded mixture of predictions and labels, late ones and given ids included."""
    rng = random.Random(seed)
    out: list[Any] = []
    for step in range(steps):
        id = f"{seed}-{step}" if rng.random() < 0.3 else None
        out.append(stream.predict((rng.gauss(0, 1), rng.gauss(2, 1)), id))
        while stream.pending and rng.random() < 0.6:
            out.append(stream.update(rng.gauss(1, 3), rng.choice(list(stream.pending))))
    return [*out, stream.theta, stream.lam, str(stream.certificate()), stream.info]


ADAPTIVE = sp.stretches.ErrorAdaptive(0.1, 0.1, -1.0, 1.0, sp.stretches.Exponential(), "authors")


# Changes in mid-stream


def test_a_change_goes_on_from_where_theta_is() -> None:
    stream = make(stretch=sp.stretches.ScoreAdaptive(0.1, -1.0, 1.0))
    feed(stream, 1)
    theta, memory, open_ids = stream.theta, stream._state.stretch, list(stream.pending)
    stream.change(level=0.3)
    assert (stream.theta, stream._state.stretch, list(stream.pending)) == (theta, memory, open_ids)
    assert stream.controller.risks[0].level == 0.3


def test_changed_bounds_saturate_from_now_on() -> None:
    stream = make()
    for _ in range(4):
        stream.predict(PAIR)
        stream.update(50.0)
    assert stream.theta == pytest.approx(1.8)
    stream.change(bounds=(-1.0, 1.0))
    assert stream.theta == pytest.approx(1.8)
    assert stream.predict(PAIR) == Interval(-INF, INF)
    assert stream.update(50.0) == 0.0
    assert stream.certificate().full == 1


def test_each_change_begins_a_segment_of_the_certificate() -> None:
    stream = make()
    feed(stream, 1)
    first = stream.certificate().as_dict()
    stream.change(level=0.3)
    second = stream.certificate()
    assert [risk.judged for risk in second.risks] == [0]
    assert second.risks[0].first == stream.theta
    assert second.pending == len(stream.pending) == stream._state.inherited
    (earlier,) = second.earlier
    assert earlier == {key: value for key, value in first.items() if key != "earlier"}
    feed(stream, 2)
    stream.change(step=sp.steps.Fixed(0.2), bounds=(-5.0, 5.0))
    assert len(stream.certificate().earlier) == 2
    assert "segment 3" in str(stream.certificate())


def test_one_of_several_risks_is_changed_by_its_index() -> None:
    risks = [sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(1.0)) for _ in range(2)]
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risks))
    stream.change(risk=1, level=0.4)
    assert [risk.level for risk in stream.controller.risks] == [0.1, 0.4]
    stream.predict(PAIR)
    stream.update(5.0)
    assert stream.theta == pytest.approx((0.9, 0.6))


def test_a_new_step_rule_begins_with_its_own_memory() -> None:
    @dataclass(frozen=True)
    class Shrinking:
        params = ()

        @staticmethod
        def rule(params: Any, theta: float, memory: Any, excess: float, critical: float) -> Any:
            return theta + excess / (memory[0] + 1.0), (memory[0] + 1.0,)

        def init(self) -> tuple[float, ...]:
            return (0.0,)

        def claim(self, within: Any, memory: Any, T: int) -> Claim:
            return Claim()

    stream = make()
    stream.change(step=Shrinking())
    for expected in (0.9, 1.35):
        stream.predict(PAIR)
        stream.update(50.0)
        assert stream.theta == pytest.approx(expected)
    stream.change(step=sp.steps.Fixed(0.5))
    assert stream.state.risks[0].step == (0.0,)  # nothing


def test_two_streams_of_one_controller_share_nothing() -> None:
    shared = controller(stretch=ADAPTIVE)
    one, other = sp.Stream(shared), sp.Stream(shared)
    before = snapshot(other)
    feed(one, 1)
    one.change(level=0.4)
    assert snapshot(other) == before
    assert other.controller.risks[0].level == 0.1
    assert feed(other, 1) == feed(sp.Stream(shared), 1)


# Copies


def test_a_copy_keeps_its_hook_and_its_watch() -> None:
    alarms: list[Any] = []
    stream = make(on_alarm=alarms.append, window=3, tolerance=0.2)
    for _ in range(2):
        stream.predict(PAIR)
        stream.update(50.0)
    twin = copy.copy(stream)
    for each in (stream, twin):
        each.predict(PAIR)
        each.update(50.0)
    assert [(alarm.kind, alarm.step) for alarm in alarms] == [("window", 3)] * 2


def test_a_copy_of_a_shared_stream_has_its_own_lock() -> None:
    stream = make(shared=True)
    twin = deepcopy(stream)
    with stream._lock:
        other = threading.Thread(target=lambda: feed(twin, 1))
        other.start()
        other.join(timeout=30.0)
    assert not other.is_alive()


# Saved and loaded


def test_the_limits_of_a_stream_are_saved(tmp_path: Path) -> None:
    stream = make(max_pending=2, missing="skip")
    stream.predict(PAIR)
    stream.save(tmp_path / "state")
    loaded = sp.Stream.load(tmp_path / "state")
    loaded.predict(PAIR)
    with pytest.raises(PendingFull):
        loaded.predict(PAIR)
    assert loaded.update(NAN, id=0) is None


def test_a_watch_is_saved_and_its_hook_is_given_again(tmp_path: Path) -> None:
    first: list[Any] = []
    stream = make(on_alarm=first.append, window=3, tolerance=0.2)
    for _ in range(2):
        stream.predict(PAIR)
        stream.update(50.0)
    stream.save(tmp_path / "state")
    again: list[Any] = []
    loaded = sp.Stream.load(tmp_path / "state", on_alarm=again.append)
    loaded.predict(PAIR)
    loaded.update(50.0)
    assert [(alarm.kind, alarm.step) for alarm in again] == [("window", 3)]
    silent = sp.Stream.load(tmp_path / "state")
    silent.predict(PAIR)
    assert silent.update(50.0) == 1.0


def test_a_shared_stream_is_asked_for_again(tmp_path: Path) -> None:
    make(shared=True).save(tmp_path / "state")
    assert type(sp.Stream.load(tmp_path / "state")) is sp.Stream
    assert type(sp.Stream.load(tmp_path / "state", shared=True)) is type(make(shared=True))


# Controllers that cannot be written down


def late(shown: Any, y: Any) -> float:
    return float(y > shown.upper)


def test_a_controller_with_a_function_is_given_again(tmp_path: Path) -> None:
    for loss in (sp.losses.Custom(late), sp.losses.Custom(lambda shown, y: float(y > shown.upper))):
        stream = make(loss=loss)
        feed(stream, 1)
        stream.save(tmp_path / "state")
        with pytest.raises(StateError, match=r"give it again by load\(path, controller=…\): Contr"):
            sp.Stream.load(tmp_path / "state")
        loaded = sp.Stream.load(tmp_path / "state", controller=controller(loss=loss))
        assert snapshot(loaded) == snapshot(stream)
        assert feed(loaded, 2) == feed(stream, 2)


def test_a_controller_that_does_not_match_is_refused(tmp_path: Path) -> None:
    stream = make(loss=sp.losses.Custom(late))
    stream.save(tmp_path / "state")
    for other in (
        controller(),
        controller(loss=sp.losses.Custom(late), level=0.2),
        controller(loss=sp.losses.Custom(late, high=2.0)),
        controller(loss=sp.losses.Custom(late), bounds=(-1.0, 1.0)),
        controller(loss=sp.losses.Custom(late), stretch=ADAPTIVE),
    ):
        with pytest.raises(StateError, match=r"the state belongs to Controller.* given is Contro"):
            sp.Stream.load(tmp_path / "state", controller=other)


def test_a_plain_controller_may_be_given_too_if_it_is_the_same(tmp_path: Path) -> None:
    stream = make()
    feed(stream, 1)
    stream.save(tmp_path / "state")
    assert snapshot(sp.Stream.load(tmp_path / "state", controller=controller())) == snapshot(stream)
    with pytest.raises(StateError, match="the state belongs to"):
        sp.Stream.load(tmp_path / "state", controller=controller(level=0.3))


@dataclass(frozen=True)
class Late:
    """A user's loss that can be written down."""

    scale: float = 1.0
    low, high = 0.0, 1.0

    def __call__(self, shown: Any, y: Any) -> float:
        return float(y > shown.upper)


def test_a_users_part_is_saved_once_it_is_registered(tmp_path: Path) -> None:
    stream = make(loss=Late(2.0))
    stream.save(tmp_path / "state")
    with pytest.raises(StateError, match="give it again"):
        sp.Stream.load(tmp_path / "state")
    spec.register("losses", Late)
    stream.save(tmp_path / "state")
    assert sp.Stream.load(tmp_path / "state").controller == stream.controller
    del spec._known["losses"]["Late"]
    with pytest.raises(SpecError, match="'Late'"):
        sp.Stream.load(tmp_path / "state")


@dataclass(frozen=True)
class Crowd:
    """A user's prediction: many samples."""

    samples: Any


@dataclass(frozen=True)
class Samples:
    """A user's family over arrays: the range of the samples, widened by λ."""

    def read(self, prediction: Any) -> Any:
        return Crowd(np.array(prediction, dtype=float))

    def label(self, y: Any) -> float:
        return sp.sets.Widen().label(y)

    def at(self, prediction: Any, lam: float) -> Interval:
        values = prediction.samples
        return sp.sets.Widen().at((float(values.min()), float(values.max())), lam)

    def critical(self, prediction: Any, y: float) -> float:
        values = prediction.samples
        return max(float(values.min()) - y, y - float(values.max()))

    def start(self, level: float) -> float:
        return 0.0

    def bounds(self) -> None:
        return None

    def unit(self, prediction: Any) -> float:
        return 1.0


def test_arrays_in_waiting_predictions_are_saved_as_npy(tmp_path: Path) -> None:
    spec.register("sets", Samples)
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5))
    stream = sp.Stream(sp.Controller(Samples(), risk))
    stream.predict([1.0, 5.0, 3.0], id="a")
    with pytest.raises(StateError, match="a Crowd cannot be saved"):
        stream.save(tmp_path / "state")
    spec.register("values", Crowd)
    stream.save(tmp_path / "state")
    loaded = sp.Stream.load(tmp_path / "state")
    reading = loaded.pending["a"].prediction
    assert isinstance(reading, Crowd)
    assert reading.samples.tolist() == stream.pending["a"].prediction.samples.tolist()
    assert reading.samples.dtype == float
    assert loaded.update(4.0) == 0.0


# Threads


def test_a_stream_shared_by_eight_threads_keeps_every_count() -> None:
    stream = make(shared=True, max_pending=100_000)
    threads, steps = 8, 400
    totals = [0.0] * threads
    failures: list[BaseException] = []

    def work(worker: int) -> None:
        rng = random.Random(worker)
        try:
            for step in range(steps):
                id = f"{worker}-{step}"
                shown = stream.predict((rng.gauss(0, 1), rng.gauss(1, 1)), id)
                assert stream.pending[id].shown == shown
                stream.peek(PAIR)
                if step % 7 == 0:
                    stream.drop(id)
                elif step % 5 == 0:
                    totals[worker] += stream.update_many({id: rng.gauss(0, 3)})[id]
                else:
                    totals[worker] += stream.update(rng.gauss(0, 3), id)
                if step % 50 == 0:
                    risk = stream.certificate().risks[0]
                    assert risk.identity == pytest.approx(risk.mean, nan_ok=True)
                    assert snapshot(copy.copy(stream))["counts"]
        except BaseException as error:
            failures.append(error)

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        workers = [threading.Thread(target=work, args=(worker,)) for worker in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(switch)
    assert not failures
    certificate = stream.certificate()
    dropped = threads * len(range(0, steps, 7))
    judged = threads * steps - dropped
    (risk,) = certificate.risks
    assert (risk.judged, certificate.dropped, certificate.pending) == (judged, dropped, 0)
    assert risk.mean * judged == pytest.approx(sum(totals))
    assert stream.theta == pytest.approx(0.5 * (sum(totals) - 0.1 * judged))
    assert risk.identity == pytest.approx(risk.mean, abs=1e-12)
    assert not stream.pending


@dataclass(frozen=True)
class Still:
    """A step rule that only remembers."""

    params = ()

    @staticmethod
    def rule(params: Any, theta: float, memory: Any, excess: float, critical: float) -> Any:
        return theta, (memory[0] + excess,)

    def init(self) -> tuple[float, ...]:
        return (0.0,)

    def claim(self, within: Any, memory: Any, T: int) -> Claim:
        return Claim()


def test_a_call_that_waits_for_its_turn_obeys_a_new_rule_made_meanwhile() -> None:
    stream = make(shared=True)
    stream.predict(PAIR)
    failures: list[BaseException] = []

    def answer() -> None:
        try:
            stream.update(50.0)
        except BaseException as error:
            failures.append(error)

    with stream._lock:
        late = threading.Thread(target=answer)
        late.start()
        time.sleep(0.1)  # it waits for the lock now
        stream.change(step=Still())
    late.join()
    assert not failures
    assert stream.theta == 0.0
    assert stream.state.risks[0].step == (0.9,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_while_a_thread_holds_the_lock_leaves_the_child_free() -> None:
    stream = make(shared=True)
    locked, done = threading.Event(), threading.Event()

    def hold() -> None:
        with stream._lock:
            locked.set()
            done.wait(60.0)

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait(60.0)
    child = os.fork()
    if child == 0:  # only this thread is here, and the one that held the lock is not
        try:
            stream.predict(PAIR)
            stream.update(50.0)
            os._exit(0 if stream.theta == 0.45 else 2)
        except BaseException:
            os._exit(1)
    done.set()
    holder.join()
    ended, status, patience = 0, 0, time.monotonic() + 30.0
    while not ended and time.monotonic() < patience:
        time.sleep(0.01)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended, "the child waits for a lock that nobody will open"
    assert os.waitstatus_to_exitcode(status) == 0
    assert stream.theta == 0.0


def test_a_hook_may_use_its_shared_stream() -> None:
    told: list[Any] = []
    stream = make(
        shared=True, bounds=(-1.0, 1.0), on_alarm=lambda alarm: told.append(stream.certificate())
    )
    for _ in range(4):
        stream.predict(PAIR)
        stream.update(50.0)
    assert [certificate.full for certificate in told] == [1]


def test_a_stream_says_what_it_runs() -> None:
    stream = make()
    assert repr(stream) == f"<Stream of {stream.controller!r} at θ = 0.0>"
    assert isinstance(stream, sp.Stream)
    assert type(stream).__name__ == "Stream"
    with pytest.raises(InputError, match="a stream runs a Controller"):
        sp.Stream(stream)  # type: ignore[arg-type]
