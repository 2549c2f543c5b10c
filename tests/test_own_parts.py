"""Parts of a user's own: what they may be, and that every way of running treats them alike."""

import copy
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError, StateError
from setpoint.losses import Miscoverage
from setpoint.sets import Interval, Scale, Widen
from setpoint.steps import Claim, Fixed
from setpoint.testing import ConformanceError, check
from tests.laws.learning import Shifted


def widen_twice(prediction: tuple[float, float], lam: float) -> tuple[float, float]:
    lower, upper = prediction
    return lower - 2.0 * lam, upper + 2.0 * lam


@dataclass(frozen=True)
class Optional(Widen):
    """A family whose rule depends on an option."""

    twice: bool = False

    @property
    def ends(self) -> Any:  # type: ignore[override]
        return widen_twice if self.twice else Widen.ends


def controller(sets: Any = None, step: Any = None, loss: Any = None) -> sp.Controller:
    risk = sp.Risk(loss or Miscoverage(), 0.1, step or Fixed(1.0), bounds=(-20.0, 20.0))
    return sp.Controller(sets or Widen(), risk)


def tape(rows: int = 200) -> sp.Tape:
    rng = np.random.default_rng(0)
    columns = {"lower": np.full(rows, -1.0), "upper": np.full(rows, 1.0)}
    return sp.Tape.from_arrays(columns, 3.0 * rng.normal(size=rows))


def live(held: sp.Controller, data: sp.Tape) -> sp.Stream:
    stream = sp.Stream(held)
    for lower, upper, y in zip(
        *(c.tolist() for c in data.prediction), data.y.tolist(), strict=True
    ):
        stream.predict((lower, upper))
        stream.update(y)
    return stream


@pytest.mark.parametrize("twice", [False, True])
def test_a_family_with_an_option_has_its_own_loop(twice: bool) -> None:
    held = controller(Optional(twice=twice))
    assert sp.replay(held, tape()).state.risks[0].theta == live(held, tape()).theta


@dataclass(frozen=True)
class Doubling:
    """A step rule whose θ runs away."""

    params = ()
    rule = staticmethod(lambda params, theta, memory, excess, critical: (theta + inf, memory))

    def init(self) -> tuple[float, ...]:
        return ()

    def claim(self, within: Any, memory: Any, T: int) -> Claim:
        return Claim()


@dataclass(frozen=True)
class Lambda:
    """A step rule that is a lambda."""

    params = (0.5,)
    rule = staticmethod(
        lambda params, theta, memory, excess, critical: (theta + params[0] * excess, memory)
    )

    def init(self) -> tuple[float, ...]:
        return ()

    def claim(self, within: Any, memory: Any, T: int) -> Any:
        return Claim()


def test_a_theta_that_is_not_finite_is_refused_in_every_mode() -> None:
    held = controller(step=Doubling())
    with pytest.raises(InputError, match="θ of Doubling"):
        live(held, tape())
    with pytest.raises(InputError, match="θ of Doubling"):
        sp.replay(held, tape())
    fleet = sp.Fleet(held, 1)
    fleet.predict((np.array([0.0]), np.array([1.0])))
    with pytest.raises(InputError, match="θ of Doubling"):
        fleet.update(np.array([5.0]))
    assert fleet.theta[0] == 0.0


def test_a_claim_must_be_a_claim() -> None:
    class Wrong(Lambda):
        def claim(self, within: Any, memory: Any, T: int) -> Any:
            return 5

    with pytest.raises(InputError, match=r"must be a steps\.Claim"):
        sp.Stream(controller(step=Wrong())).certificate()


def test_a_one_sided_window_is_kept() -> None:
    class OneSided(Lambda):
        def claim(self, within: Any, memory: Any, T: int) -> Any:
            return Claim(lower=-5.0, upper=5.0, window=(None, 20.0), window_needs_lower=False)

    (risk,) = sp.Stream(controller(step=OneSided())).certificate().risks
    assert (risk.window, risk.window_sided) == (20.0, "upper")


class Plain:
    """A loss that prints the same whatever its range is."""

    def __init__(self, high: float) -> None:
        self.low, self.high = 0.0, high

    def __repr__(self) -> str:
        return "Plain()"

    def __call__(self, shown: Interval, y: float) -> float:
        return 0.0 if shown.contains(y) else self.high


def test_a_state_begins_a_new_segment_under_a_loss_with_other_promises() -> None:
    stream = sp.Stream(controller(loss=Plain(5.0)))
    for _ in range(20):
        stream.predict((0.0, 1.0))
        stream.update(30.0)
    carried = sp.Stream(controller(loss=Plain(1.0)), state=stream.state)
    assert carried.certificate().risks[0].judged == 0


def test_a_correction_gives_what_the_family_reads() -> None:
    risk = sp.Risk(Miscoverage(), 0.1, sp.steps.Fixed(0.1))
    with pytest.raises(InputError, match="Shifted gives centre, low, high, and Widen reads lower"):
        sp.Controller(sp.sets.Widen(), risk, correction=Shifted())
    with pytest.raises(InputError, match="correction must be a part with columns"):
        sp.Controller(Scale(), risk, correction=Scale())


@dataclass(frozen=True)
class Growing(Shifted):
    @staticmethod
    def learn(params: Any, memory: Any, table: Any, annex: Any, base: Any, y: float) -> Any:
        return (*memory, 0.0)


@dataclass(frozen=True)
class Late(Shifted):
    """It keeps what it should hand on."""

    calls = [0.0]  # noqa: RUF012

    @staticmethod
    def predict(
        params: Any, memory: Any, table: Any, annex: Any, row: Any, waiting: float, base: Any
    ) -> Any:
        Late.calls[0] += 1.0
        base[0], base[1], base[2], base[3] = row[0] + Late.calls[0], row[1], row[2], row[0]
        return memory


@dataclass(frozen=True)
class Unsure(Shifted):
    @staticmethod
    def predict(
        params: Any, memory: Any, table: Any, annex: Any, row: Any, waiting: float, base: Any
    ) -> Any:
        base[0], base[1] = nan if row[0] == 7.0 else row[0], row[1]
        base[2], base[3] = row[2], row[0]
        return memory


def test_a_correction_is_tried_when_the_plan_is_made() -> None:
    risk = sp.Risk(Miscoverage(), 0.1, sp.steps.Fixed(0.1))
    with pytest.raises(InputError, match="Growing must keep a memory of 2 floats"):
        sp.Stream(sp.Controller(Scale(), risk, correction=Growing()))


def test_a_base_that_is_no_number_is_refused_in_every_mode() -> None:
    risk = sp.Risk(Miscoverage(), 0.1, sp.steps.Fixed(0.1))
    controller = sp.Controller(Scale(), risk, correction=Unsure())
    rows = {"centre": [0.0, 7.0], "low": [1.0, 1.0], "high": [1.0, 1.0]}
    with pytest.raises(InputError, match="row 1: the ends of an interval must be numbers"):
        sp.replay(controller, sp.Tape.from_arrays(rows, [0.0, 0.0]))
    stream, fleet = sp.Stream(controller), sp.Fleet(controller, 1)
    with pytest.raises(InputError, match="the ends of an interval must be numbers"):
        stream.predict((7.0, 1.0, 1.0))
    with pytest.raises(InputError, match="the ends of an interval must be numbers"):
        fleet.predict(tuple(np.array([value]) for value in (7.0, 1.0, 1.0)))
    assert not stream.pending
    assert not fleet.pending


@pytest.mark.parametrize(("stage", "promise"), [(Growing(), "keeps its length"), (Late(), "one")])
def test_a_correction_that_breaks_a_promise_is_found_out(stage: Any, promise: str) -> None:
    with pytest.raises(ConformanceError, match=promise):
        check(stage)


def test_a_burn_in_lets_a_correction_learn() -> None:
    rng = np.random.default_rng(1)
    past = [(0.0, 1.0, 1.0)] * 200
    labels = (5.0 + rng.normal(size=200)).tolist()
    risk = sp.Risk(Miscoverage(), 0.1)
    ready = sp.burn_in(sp.Controller(Scale(), risk, correction=Shifted()), past, labels)
    still = sp.burn_in(sp.Controller(Scale(), risk), past, labels)
    assert ready.risks[0].start < still.risks[0].start


class Around:
    """Hands everything on to another part."""

    def __init__(self, part: Any) -> None:
        self.part = part

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.part, name)


def test_what_a_part_can_do_is_asked_of_each_part() -> None:
    assert isinstance(Around(Widen()), sp.sets.family.Scalar)
    assert not isinstance(Around(sp.sets.Threshold()), sp.sets.family.Scalar)


def test_groups_stay_as_they_were_when_a_step_rule_fails() -> None:
    calls: list[Any] = [0.0]

    @dataclass(frozen=True)
    class Fragile(Lambda):
        @staticmethod
        def rule(params: Any, theta: float, memory: Any, excess: float, critical: float) -> Any:
            calls.append(theta)
            if calls[0] is None and len(calls) == 3:
                raise ValueError("the second call fails")
            return theta + excess, memory

    stream = sp.Stream(controller(step=Fragile()))
    calls[:] = [None]  # the plan has tried it
    stream.predict((0.0, 1.0), id="x", groups=("a",))
    before = stream.state
    with pytest.raises(ValueError, match="second"):
        stream.update(5.0, id="x")
    assert (stream.state.position, stream.state.groups) == (before.position, before.groups)
    assert stream.update(5.0, id="x") == 1.0


def test_an_edited_state_must_fit_its_controller() -> None:
    stream = live(controller(), tape(30))
    edits = [
        lambda content: content["risks"][0].update(total=-5.0),
        lambda content: content["risks"][0].update(judged=3),
        lambda content: content["counts"].update(stretch=(1.0, 2.0)),
        lambda content: content["counts"].update(terms=()),
    ]
    for edit in edits:
        content = copy.deepcopy(stream.content())
        edit(content)
        with pytest.raises(StateError):
            sp.Stream(controller()).restore(content)


def test_a_step_of_numpy_floats_keeps_its_promises() -> None:
    @dataclass(frozen=True, slots=True)
    class Halved:
        """The paper's rule in numpy's numbers."""

        gamma: float = 0.1

        @property
        def params(self) -> tuple[float, ...]:
            return (self.gamma,)

        def init(self) -> tuple[float, ...]:
            return ()

        @staticmethod
        def rule(params: Any, theta: float, memory: Any, excess: float, critical: float) -> Any:
            return np.float64(theta + params[0] * excess), memory

        def claim(self, within: Any, memory: Any, T: int) -> Any:
            return sp.steps.Fixed(self.gamma).claim(within, memory, T)

    sp.testing.check(Halved())
