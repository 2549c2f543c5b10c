"""The smallest case of each fault that readers of the core found, so that none comes back."""

import gc
import pickle
import random
import threading
import weakref
from dataclasses import dataclass
from math import expm1, inf, log, nan
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.bulk.compile import loops
from setpoint.errors import InputError, LossError
from setpoint.sets import Widen
from setpoint.stretches import Exponential, Identity, Tracking


def paper(**options: Any) -> sp.Controller:
    risk = sp.Risk(sp.losses.Miscoverage(), level=0.1, step=sp.steps.Fixed(0.5))
    return sp.Controller(Widen(), risk, **options)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("series", [1, 2])
def test_a_recorded_tape_replays_what_was_shown_in_whatever_order_labels_came(
    seed: int, series: int
) -> None:
    draw, recorder = random.Random(seed), sp.Recorder()
    streams = [sp.Stream(sp.intervals()) for _ in range(series)]
    shown: list[Any] = []
    waiting: list[tuple[int, int]] = []
    for t in range(300):
        place = t % series
        name = None if series == 1 else place
        prediction = (0.0, 1.0 + draw.random())
        shown.append(streams[place].predict(prediction, id=t))
        recorder.predicted(t, prediction, series=name)
        waiting.append((t, place))
        draw.shuffle(waiting)
        while waiting and draw.random() < 0.6:
            id, place = waiting.pop()
            y = draw.gauss(0.5, 1.0)
            streams[place].update(y, id=id)
            recorder.observed(id, y, series=None if series == 1 else place)
    trace = sp.replay(sp.intervals(), recorder.tape())
    assert trace.lower.tolist() == [interval.lower for interval in shown]
    assert trace.upper.tolist() == [interval.upper for interval in shown]


def test_fractions_of_a_delay_order_the_labels_of_one_gap() -> None:
    late = sp.Tape.from_arrays([[0.0] * 4, [1.0] * 4], [0.5] * 4, delay=[2.5, 1.0, 0.0, 0.0])
    assert late.schedule is not None
    assert late.schedule.order.tolist() == [1, 2, 0, 3]
    with pytest.raises(sp.errors.TapeError, match=r"delay must be from 0 .*, got -0\.5 at row 1"):
        sp.Tape.from_arrays([[0.0] * 2, [1.0] * 2], [0.5] * 2, delay=[0.0, -0.5])


def test_usefulness_counts_the_classes_of_ragged_predictions() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.dirichlet(np.ones(count)) for count in rng.integers(3, 6, 200)]
    labels = [float(rng.integers(len(row))) for row in rows]
    ragged = sp.Ragged(np.concatenate(rows), np.cumsum([0, *map(len, rows)]))
    tape = sp.Tape.from_arrays(ragged, labels, names=["p"])
    use = sp.replay(sp.label_sets(coverage=0.9), tape).usefulness()
    assert use is not None
    assert "of 5 classes" in str(use)


def test_every_call_that_reads_a_shared_stream_waits_for_its_lock(tmp_path: Any) -> None:
    stream: Any = sp.Stream(paper(), shared=True)
    calls = [lambda: stream.save(tmp_path / "s"), stream.header, stream.__reduce__]
    for call in calls:
        done = threading.Event()

        def work(call: Any = call, done: Any = done) -> None:
            call()
            done.set()

        with stream._lock:
            thread = threading.Thread(target=work)
            thread.start()
            assert not done.wait(0.05)
        thread.join(10.0)
        assert done.is_set()


def test_tuning_the_default_on_point_forecasts_chooses_by_its_finite_sets() -> None:
    rng = np.random.default_rng(1)
    tape = sp.Tape.from_arrays({"prediction": np.zeros(300)}, rng.normal(size=300))
    tuned = sp.tune(sp.intervals(), tape, {"risks.*.step.gain": [0.01, 0.15, 5.0]})
    assert tuned.index is not None
    losses = tuned.table.columns["finite_pinball"]
    assert losses[tuned.index] == losses.min()
    assert np.isinf(tuned.table.columns["pinball"]).all()


def test_a_state_under_another_stretch_or_family_is_refused() -> None:
    stream = sp.Stream(paper())
    for _ in range(10):
        stream.predict((0.0, 1.0))
        stream.update(9.0)
    assert sp.Stream(paper(stretch=Identity()), state=stream.state).theta == stream.theta
    with pytest.raises(InputError, match="made by another controller"):
        sp.Stream(paper(stretch=Exponential()), state=stream.state)
    with pytest.raises(InputError, match="made by another controller"):
        sp.Stream(sp.Controller(sp.sets.Scale(), paper().risks[0]), state=stream.state)


def test_coverage_does_not_ask_for_the_whole_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = sp.Stream(sp.intervals())
    for y in (0.0, 1.0, 2.0):
        stream.predict(0.0)
        stream.update(y)
    wanted = stream.summary().coverage
    monkeypatch.setattr("setpoint.summary.summarise", None)
    assert stream.coverage == wanted


def test_info_is_never_about_a_label_before_the_last() -> None:
    stream = sp.Stream(paper(), missing="skip")
    stream.predict((0.0, 1.0), id="a")
    stream.update(5.0)
    stream.predict((0.0, 1.0), id="b")
    stream.update(nan)
    assert stream.info is None


def test_the_steps_of_alarms_go_on_while_nobody_listens(tmp_path: Any) -> None:
    heard: list[sp.Alarm] = []
    stream = sp.Stream(paper(), on_alarm=heard.append, window=5, tolerance=0.5)
    stream.save(tmp_path / "s")
    stream = sp.Stream.load(tmp_path / "s")
    for _ in range(3):
        stream.predict((0.0, 1.0))
        stream.update(0.5)
    stream.save(tmp_path / "s")
    stream = sp.Stream.load(tmp_path / "s", on_alarm=heard.append)
    for t in range(5):
        stream.predict((0.0, 1.0))
        stream.update(100.0 + 50.0 * t)
    assert [(alarm.kind, alarm.step) for alarm in heard] == [("window", 7)]


def test_classes_that_were_asked_what_they_can_do_are_not_kept_alive() -> None:
    def asked() -> Any:
        kind = type("Throwaway", (), {"critical": 1})
        assert not isinstance(kind(), sp.sets.family.Scalar)
        return weakref.ref(kind)

    kept = asked()
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("stretch", [Identity(), Exponential(), Tracking()])
@pytest.mark.parametrize(
    ("combine", "reason"),
    [
        (sp.combine.Mean(), "so that no risk would be controlled: use combine.Max"),
        (sp.combine.Mean(anti_windup=1.0), "so that no risk would be controlled"),
        (sp.combine.Max(empty_if="some"), 'empty_if="some" is for the bounds of Theorem 3'),
        (sp.combine.Max(anti_windup=1.0), "an account has its own floor"),
    ],
)
def test_mixtures_whose_certificate_would_be_false_are_refused(
    stretch: Any, combine: Any, reason: str
) -> None:
    risks = [sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Account()) for level in (0.1, 0.2)]
    with pytest.raises(InputError, match=reason):
        sp.Controller(sp.sets.Multiplied(), risks, stretch, combine)
    assert sp.Controller(sp.sets.Multiplied(), risks[:1], stretch, combine).risks == (risks[0],)


def used_up(limit: float) -> sp.Stream:
    """A stream whose account stands near its limit."""
    stream = sp.Stream(sp.intervals(0.9, two_sided=True, limit=limit))
    for _ in range(60):
        shown = stream.predict((0.0, 1.0))
        stream.update(shown.upper + 1.0 if shown.upper < inf else 0.5)
    return stream


def test_a_state_carried_to_another_limit_begins_a_segment_in_every_mode(tmp_path: Any) -> None:
    state, other = used_up(40.0).state, sp.intervals(0.9, two_sided=True, limit=5.0)
    assert state.risks[0].judged == 60
    stream = sp.Stream(other, state=state)
    fleet = sp.Fleet(other, 1)
    fleet.add(["late"], states=[state])
    with sp.Store(tmp_path / "store.sqlite") as store:
        stored = store.stream("a", other, state=state).certificate()
    for certificate in (stream.certificate(), fleet.certificate("late"), stored):
        assert certificate.risks[0].judged == 0
    tape = sp.Tape.from_arrays({"lower": [0.0], "upper": [1.0]}, [0.5])
    assert sp.replay(other, tape, state).certificate().risks[0].judged == 1


def test_a_state_of_many_levels_is_carried_too() -> None:
    controller = sp.intervals([place / 10 for place in range(1, 10)])
    stream = sp.Stream(controller)
    stream.predict((0.0, 1.0))
    stream.update(9.0)
    carried = sp.Stream(controller, state=stream.state)
    assert [risk.judged for risk in carried.certificate().risks] == [1] * 9


def test_a_sweep_tells_corrections_with_other_first_memories_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "0")
    rng, plain = np.random.default_rng(0), sp.intervals()
    ends = {"lower": -np.ones(200), "upper": np.ones(200)}
    tape = sp.Tape.from_arrays(ends, rng.normal(size=200))
    taught = sp.start_from(plain, sp.replay(plain, tape).states)
    both = sp.sweep([plain, taught], tape).columns["mean_finite_length"]
    for place, controller in enumerate((plain, taught)):
        assert both[place] == sp.sweep([controller], tape).columns["mean_finite_length"][0]
    assert both[0] != both[1]


@dataclass(frozen=True)
class Odd:
    """A scalar loss that gives `value` at its third label."""

    value: float = nan
    low, high, empty = 0.0, 1.0, 1.0

    params = ()

    @staticmethod
    def rule(params: Any, memory: Any, missed: bool) -> Any:
        return (nan if memory[0] == 2.0 else float(missed)), (memory[0] + 1.0,)

    def init(self) -> tuple[float, ...]:
        return (0.0,)

    def update(self, memory: Any, shown: Any, y: float) -> Any:
        return self.rule((), memory, not shown.contains(y))


def test_a_scalar_loss_that_is_no_number_is_refused_in_every_mode() -> None:
    risk = sp.Risk(Odd(), level=0.1, step=sp.steps.Fixed(0.5))
    controller = sp.Controller(Widen(), risk)
    stream, fleet = sp.Stream(controller), sp.Fleet(controller, 1)
    rows = {"lower": np.zeros(4), "upper": np.ones(4)}
    for _ in range(2):
        stream.predict((0.0, 1.0))
        stream.update(5.0)
        fleet.predict((np.zeros(1), np.ones(1)))
        fleet.update(np.full(1, 5.0))
    stream.predict((0.0, 1.0))
    fleet.predict((np.zeros(1), np.ones(1)))
    tape = sp.Tape.from_arrays(rows, np.full(4, 5.0))
    for call in (
        lambda: stream.update(5.0),
        lambda: fleet.update(np.full(1, 5.0)),
        lambda: sp.replay(controller, tape),
        lambda: sp.sweep([controller], tape),
    ):
        with pytest.raises(LossError, match="Odd promises a number, got nan"):
            call()


def test_a_step_counted_as_zero_does_not_hide_a_broken_promise() -> None:
    def never(shown: Any, y: float) -> float:
        return 0.0

    loss = sp.losses.Custom(never, low=0.0, high=1.0, empty=1.0)
    risk = sp.Risk(loss, 0.5, sp.steps.Fixed(0.5), bounds=(-0.3, 5.0), unjudged="zero")
    stream = sp.Stream(sp.Controller(Widen(), risk))
    for _ in range(2):
        stream.predict((0.0, 1.0))
        stream.update(0.5)
    assert stream.predict((0.0, 1.0)).empty
    with pytest.raises(LossError, match="at least 1 on the empty set"):
        stream.update(0.5)


def test_a_stretch_is_asked_within_the_bounds_only() -> None:
    stretch = Logarithm()
    risk = sp.Risk(sp.losses.Miscoverage(), 0.9, sp.steps.Fixed(2.0), bounds=(-0.9, 5.0))
    stream = sp.Stream(sp.Controller(Widen(), risk, stretch))
    for _ in range(4):
        stream.predict((0.0, 1.0))
        stream.update(0.5)
    assert stream.certificate().empty > 0


@dataclass(frozen=True)
class Logarithm:
    """φ(θ) = log(1 + θ)."""

    params = ()
    move = None

    @staticmethod
    def phi(params: Any, memory: Any, theta: float) -> float:
        return log(1.0 + theta)

    def init(self) -> tuple[float, ...]:
        return ()

    def inverse(self, lam: float, memory: Any) -> float:
        return expm1(lam)


def test_a_fleet_from_a_pickle_has_the_loops_of_the_first() -> None:
    fleet = sp.Fleet(paper(), 3)
    again = pickle.loads(pickle.dumps(fleet))
    assert loops(again._layout, 1) is loops(fleet._layout, 1)


@pytest.mark.parametrize("delay", [[0.5, 1e300, 0.0], [0.5, nan, 0.0], [0.5, inf, 0.0]])
def test_a_delay_that_is_no_number_of_rows_is_named(delay: list[float]) -> None:
    with pytest.raises(
        sp.errors.TapeError, match=r"delay must be from 0 to 1e15 rows, got .* row 1"
    ):
        sp.Tape.from_arrays([[0.0] * 3, [1.0] * 3], [0.5] * 3, delay=delay)


def test_a_rule_that_fails_when_it_is_tried_is_named() -> None:
    class Fragile(Logarithm):
        @staticmethod
        def move(params: Any, memory: Any, excess: float, score: float, lam: float) -> Any:
            raise ValueError("no")

    with pytest.raises(InputError, match=r"Fragile, tried on .*, raised ValueError: no"):
        sp.Stream(paper(stretch=Fragile()))


def test_an_outage_of_labels_heals() -> None:
    rng = np.random.default_rng(0)
    rows, out = 13_000, range(500, 1_000)
    scale = np.where(np.arange(rows) // 2_000 % 2, 3.0, 1.0)
    y = scale * rng.normal(size=rows)
    known = np.arange(1, rows + 1)
    known[out.start : out.stop] = out.stop
    tape = sp.Tape.from_arrays({"lower": np.full(rows, -1.6), "upper": np.full(rows, 1.6)}, y)
    late = sp.Tape.from_arrays(
        {"lower": np.full(rows, -1.6), "upper": np.full(rows, 1.6)}, y, known=known
    )
    for each in (tape, late):
        covered = sp.replay(sp.intervals(), each).covered[1_000:].reshape(-1, 2_000).mean(axis=1)
        assert (covered >= 0.885).all()
        assert (covered <= 0.915).all()
    (risk,) = sp.replay(sp.intervals(), late).certificate().risks
    assert risk.bound.since_start > 2_000.0  # all of them could have missed
    assert risk.bound.from_now == pytest.approx(10.9, abs=0.5)


def test_a_new_group_has_a_budget_of_its_own() -> None:
    stream = sp.Stream(sp.intervals())
    for id in range(60):
        stream.predict((0.0, 1.0), id=id, groups=("north",))
    for id in range(60):
        stream.update(5.0, id=id)
    stream.predict((0.0, 1.0), groups=("south",))
    (north,), (south,) = (stream.certificate().groups[name] for name in ("north", "south"))
    assert south.bound.since_start == pytest.approx(10.9)
    assert south.account == 0.0
    assert north.bound.since_start > 200.0
