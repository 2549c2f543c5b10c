"""Edges where a guarantee, a state or a number was once wrong."""

import json
import weakref
from dataclasses import dataclass
from math import ulp
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError, StateError
from setpoint.guarantee import Status, certify
from setpoint.steps import Claim


def controller(step: Any = None, loss: Any = None, level: float = 0.1, **options: Any) -> Any:
    risk = sp.Risk(
        sp.losses.Miscoverage() if loss is None else loss,
        level,
        sp.steps.Fixed(0.5) if step is None else step,
        bounds=options.pop("bounds", (-2.0, 2.0)),
    )
    return sp.Controller(sp.sets.Widen(), risk, **options)


class Modest:
    """What a step rule without a memory and without a guarantee has besides its rule."""

    params: Any = ()

    def init(self) -> tuple[float, ...]:
        return ()

    def claim(self, within: Any, memory: Any, T: int) -> Claim:
        return Claim()


RULE = """
def rule(params, theta, memory, excess, critical):
    return theta + {factor} * excess, memory
"""


def test_the_code_that_runs_is_the_code_that_was_imported_not_the_file_of_today(
    tmp_path: Path,
) -> None:
    file = tmp_path / "own_rule.py"
    file.write_text(RULE.format(factor="1.0"))
    module = ModuleType("own_rule")
    exec(compile(file.read_text(), str(file), "exec"), module.__dict__)
    file.write_text(RULE.format(factor="100.0"))
    own = type("Own", (Modest,), {"rule": staticmethod(module.rule)})
    stream = sp.Stream(controller(own()))
    stream.predict((0.0, 1.0))
    stream.update(5.0)
    assert stream.theta == 0.9


SCALE = 1.0


def scaled(
    params: Any, theta: float, memory: Any, excess: float, critical: float
) -> tuple[float, Any]:
    return theta + SCALE * excess, memory


@dataclass(frozen=True)
class Scaled(Modest):
    rule = staticmethod(scaled)


def test_a_users_rule_sees_its_module_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = sp.Stream(controller(Scaled()))
    monkeypatch.setitem(scaled.__globals__, "SCALE", 10.0)
    stream.predict((0.0, 1.0))
    stream.update(5.0)
    assert stream.theta == 9.0


def test_the_counter_bound_is_not_denied_by_rounding() -> None:
    loss = sp.losses.MiscoverageCounter()
    assert loss.most(0.1, room=2.72 / 0.1) == 8.0
    stream = sp.Stream(controller(sp.steps.Fixed(0.1), loss, bounds=(0.0, 2.72)))
    for y in [0.5] + [1e9] * 60:
        stream.predict((0.0, 1.0))
        stream.update(y)
        assert "BROKEN" not in stream.certificate().risks[0].verdict


def test_a_state_of_other_terms_begins_a_new_segment() -> None:
    old = sp.Stream(controller(level=0.1))
    for y in (5.0, 5.0, 0.5):
        old.predict((0.0, 1.0))
        old.update(y)
    same = sp.Stream(controller(level=0.1), state=old.state)
    assert same.certificate().risks[0].judged == 3
    other = sp.Stream(controller(level=0.3), state=old.state)
    assert other.theta == old.theta
    assert other.certificate().risks[0].judged == 0
    other.predict((0.0, 1.0))
    other.update(0.5)
    found = other.certificate().risks[0]
    assert found.identity == pytest.approx(found.mean)


def test_one_bound_gives_one_side_of_the_guarantee() -> None:
    above = sp.Stream(controller(bounds=(float("-inf"), 2.0))).certificate().risks[0]
    assert above.constant_upper is not None
    assert above.constant_lower is None
    assert above.window is None
    below = sp.Stream(controller(bounds=(-2.0, float("inf")))).certificate().risks[0]
    assert below.constant_upper is None
    assert below.constant_lower is not None


@dataclass(frozen=True)
class Broken(Modest):
    """A step rule that gives back what it should not."""

    answer: Any
    rule = staticmethod(lambda params, theta, memory, excess, critical: params[0])

    @property
    def params(self) -> tuple[Any, ...]:
        return (self.answer,)


@pytest.mark.parametrize("answer", [(1.0, 3.0), (1.0, (0.0,)), ("a", ())])
def test_a_step_rule_of_the_wrong_shape_is_refused_when_a_stream_is_made(answer: Any) -> None:
    with pytest.raises(InputError):
        sp.Stream(controller(Broken(answer)))


def test_a_theta_that_is_no_number_harms_nothing() -> None:
    stream = sp.Stream(controller(Broken((float("nan"), ()))))
    stream.predict((0.0, 1.0), id="a")
    with pytest.raises(InputError, match="the θ of Broken must be finite, got nan"):
        stream.update(5.0)
    assert stream.theta == 0.0
    assert list(stream.pending) == ["a"]


@dataclass(frozen=True)
class Rude(Modest):
    rule = staticmethod(scaled)

    def init(self) -> Any:
        raise RuntimeError("no")


def test_a_change_that_fails_changes_nothing() -> None:
    stream = sp.Stream(controller())
    before = stream.content()
    with pytest.raises(RuntimeError):
        stream.change(step=Rude())
    assert stream.content() == before
    assert stream.controller == controller()


def test_a_changed_stream_with_a_function_in_it_can_be_loaded(tmp_path: Path) -> None:
    loss = sp.losses.Custom(lambda shown, y: float(y not in shown))
    stream = sp.Stream(controller(loss=loss))
    stream.predict((0.0, 1.0))
    stream.update(5.0)
    stream.change(level=0.2)
    stream.save(tmp_path / "state")
    with pytest.raises(StateError):
        sp.Stream.load(tmp_path / "state", controller=controller(loss=loss))
    again = sp.Stream.load(tmp_path / "state", controller=controller(loss=loss, level=0.2))
    assert again.theta == stream.theta


def test_a_watch_survives_being_loaded_without_a_hook(tmp_path: Path) -> None:
    stream = sp.Stream(controller(), on_alarm=print, window=10, tolerance=0.2)
    stream.save(tmp_path / "state")
    sp.Stream.load(tmp_path / "state").save(tmp_path / "state")
    again = sp.Stream.load(tmp_path / "state", on_alarm=print)
    assert again._watch is not None
    assert (again._watch.window, again._watch.tolerance) == (10, 0.2)


def test_many_changes_keep_the_state_small() -> None:
    stream = sp.Stream(controller())
    for k in range(150):
        stream.change(level=0.1 + k / 1000)
    assert len(stream.certificate().earlier) == 100


def test_clip_bounds_of_a_burn_in_leave_out_steps_over_a_missing_label() -> None:
    stretch = sp.stretches.ScoreAdaptive(0.1)
    y = [0.0, 1.0, float("nan"), 101.0, 102.0]
    ready = sp.burn_in(controller(stretch=stretch), [(0.0, 1.0)] * 5, y)
    assert ready.stretch == sp.stretches.ScoreAdaptive(0.1, -1.0, 1.0)


def test_a_certificate_is_plain_enough_for_json() -> None:
    stream = sp.Stream(controller())
    json.dumps(stream.certificate().as_dict(), allow_nan=False)
    assert "nan" not in str(stream.certificate())
    stream.change(level=0.2)
    json.dumps(stream.certificate().as_dict(), allow_nan=False)


def test_the_row_of_a_frame_is_read_by_its_names() -> None:
    pandas = pytest.importorskip("pandas")
    stream = sp.Stream(controller(), missing="skip")
    row = pandas.Series({"upper": 2.0, "lower": 1.0})
    assert stream.predict(row, id="a") == sp.sets.Interval(1.0, 2.0)
    assert stream.update(pandas.NA, id="a") is None
    stream.predict(row, id="b")
    stream.predict(row, id="c")
    assert stream.update_many(pandas.Series({"b": 1.5, "c": 9.0})) == {"b": 0.0, "c": 1.0}


def test_a_stream_may_be_referred_to_weakly() -> None:
    stream = sp.Stream(controller())
    assert weakref.ref(stream)() is stream


def test_nothing_to_judge_counts_no_saturation_whatever_the_number_of_risks() -> None:
    loss = sp.losses.Custom(lambda shown, y: None)
    for risks in (1, 2):
        risk = sp.Risk(loss, 0.1, sp.steps.Fixed(0.5), start=2.0, bounds=(-2.0, 2.0))
        stream = sp.Stream(sp.Controller(sp.sets.Widen(), [risk] * risks))
        for place in range(risks):
            stream._state.put(place, theta=3.0)
        stream.predict((0.0, 1.0))
        stream.update(0.5)
        assert stream.certificate().full == 0


# A state carried to a controller with other terms


def fed(first: sp.Controller, labels: Any) -> sp.Stream:
    stream = sp.Stream(first)
    for y in labels:
        stream.predict((0.0, 1.0))
        stream.update(y)
    return stream


def carried(stream: sp.Stream, other: sp.Controller) -> list[sp.Certificate]:
    """The certificates of a state that goes on under another controller, in every mode."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SETPOINT_PLAIN", "1")  # nothing here is worth compiling a loop for
        return _carried(stream, other)


def _carried(stream: sp.Stream, other: sp.Controller) -> list[sp.Certificate]:
    tape = sp.Tape.from_arrays([np.zeros(1), np.ones(1)], np.array([np.nan]))
    fleet = sp.Fleet(other, [])
    fleet.add(["a"], [stream.state])
    return [
        sp.Stream(other, state=stream.state).certificate(),
        sp.replay(other, tape, stream.state).certificate(),
        fleet.certificate("a"),
    ]


def test_a_state_of_another_loss_begins_a_new_segment() -> None:
    costly = sp.losses.Custom(lambda shown, y: 0.0 if y in shown else 5.0, high=5.0)
    first = controller(loss=costly, bounds=(-2.0, 20.0))
    stream = fed(first, [1e9] * 9 + [0.5] * 32)
    assert stream.certificate().risks[0].mean == pytest.approx(45.0 / 41.0)
    for certificate in carried(stream, controller(bounds=(-2.0, 20.0))):
        (risk,) = certificate.risks
        assert (risk.judged, risk.first, risk.theta) == (0, stream.theta, stream.theta)
        assert risk.status is Status.NO_LABEL_YET


def test_a_state_of_another_combination_begins_a_new_segment() -> None:
    risks = [
        sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(0.5), bounds=(-20.0, 20.0))
        for level in (0.1, 0.9)
    ]
    slack = sp.Controller(sp.sets.Widen(), risks)
    lifted = sp.Controller(sp.sets.Widen(), risks, combine=sp.combine.Max(anti_windup=1.0))
    stream = fed(slack, [0.5] * 500)
    assert stream.theta[1] < -200.0  # the slack risk drifts down without end
    for certificate in carried(stream, lifted):
        risk = certificate.risks[1]
        assert (risk.judged, risk.first) == (0, stream.theta[1])
        # What θ lost before is no part of this segment, and no window of it is claimed small.
        assert risk.window is None or risk.window >= (20.0 - stream.theta[1]) / 0.5


# Rounding


@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_bounds_far_from_zero_are_not_broken_by_rounding(loss: float) -> None:
    """At θ = 1e9 a step of 0.5·0.1 is rounded to a grain of 1.2e-7, again and again.

    After 2e7 labels that is a mean beyond its bound by 1e-7: allowed for, and no more than that.
    """
    risk = sp.Risk(
        sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), start=1e9, bounds=(1e9, 1e9 + 1.0)
    )
    far = sp.Controller(sp.sets.Widen(), risk)
    state, steps = far.init(), 20_000_000
    claim = sp.Stream(far).certificate().risks[0]
    grain = ulp(1e9)
    # What as many labels can lead to: each step was rounded by half a grain, all the same way.
    beyond = 0.5 * grain * steps / 0.5
    bound = claim.constant_upper if loss else claim.constant_lower
    total = 0.1 * steps + bound + (beyond if loss else -beyond)
    state.put(0, judged=float(steps), total=total)
    (risk_now,) = certify(far, state).risks
    assert abs(risk_now.mean - 0.1) > abs(bound) / steps + 1e-8
    assert risk_now.status is not Status.BROKEN
    state.put(0, total=total + (1.0 if loss else -1.0) * 1e-6 * steps)
    (risk_now,) = certify(far, state).risks
    assert risk_now.status is Status.BROKEN


@pytest.mark.slow
def test_bounds_far_from_zero_hold_over_twenty_million_labels() -> None:
    risk = sp.Risk(
        sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), start=1e9, bounds=(1e9, 1e9 + 1.0)
    )
    ends = np.zeros(20_000_000)
    y = np.where(np.random.default_rng(0).random(len(ends)) < 0.1, 3e9, 0.0)
    trace = sp.replay(sp.Controller(sp.sets.Widen(), risk), sp.Tape.from_arrays([ends, ends], y))
    assert trace.certificate().risks[0].status is not Status.BROKEN
