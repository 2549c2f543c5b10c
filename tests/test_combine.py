"""Several risks on one set: the largest, the mean, the safeguards and anti-windup, by hand."""

import math
from typing import Any

import pytest

import setpoint as sp
from setpoint.combine import Max, Mean
from setpoint.sets import Interval

INF = math.inf


def several(
    combine: Any,
    starts: tuple[float, ...] = (0.0, 1.0),
    levels: tuple[float, ...] = (0.1, 0.5),
    bounds: Any = (-2.0, 2.0),
    gamma: float = 1.0,
) -> sp.Stream:
    risks = [
        sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(gamma), start, bounds)
        for start, level in zip(starts, levels, strict=True)
    ]
    return sp.Stream(sp.Controller(sp.sets.Widen(), risks, combine=combine))


def test_max_is_the_largest_and_mean_is_the_mean() -> None:
    assert Max().rule((0.5, 2.0, -1.0)) == 2.0
    assert Mean().rule((0.5, 2.0, -1.0)) == 0.5
    assert Max().rule((-3.0,)) == Mean().rule((-3.0,)) == -3.0


def test_each_risk_moves_by_its_own_excess() -> None:
    stream = several(Max())
    assert stream.theta == (0.0, 1.0)
    assert stream.predict((0.0, 1.0)) == Interval(-1.0, 2.0)
    assert stream.update(3.0) == (1.0, 1.0)
    assert stream.theta == pytest.approx((0.9, 1.5))
    mean = several(Mean())
    assert mean.predict((0.0, 1.0)) == Interval(-0.5, 1.5)


@pytest.mark.parametrize(
    ("starts", "empty_if", "lam"),
    [
        ((2.5, 0.0), "every", INF),
        ((2.5, -2.5), "every", INF),
        ((2.5, -2.5), "some", INF),
        ((-2.5, -2.5), "every", -INF),
        ((-2.5, -2.5), "some", -INF),
        ((-2.5, 1.0), "every", 1.0),
        ((-2.5, 1.0), "some", -INF),
        ((2.0, -2.0), "some", 2.0),
    ],
)
def test_the_safeguard_is_full_if_any_and_empty_if_every(
    starts: tuple[float, float], empty_if: str, lam: float
) -> None:
    stream = several(Max(empty_if=empty_if))
    for place, theta in enumerate(starts):
        stream._state.put(place, theta=theta)
    assert stream.lam == lam


def test_a_torn_step_is_counted_and_shows_the_full_set() -> None:
    stream = several(Max(empty_if="some"))
    for place, theta in enumerate((2.5, -2.5)):
        stream._state.put(place, theta=theta)
    assert stream.predict((0.0, 1.0)) == Interval(-INF, INF)
    assert stream.update(50.0) == (0.0, 0.0)
    assert (stream._state.torn, stream._state.full) == (1, 1)


def test_without_anti_windup_a_slack_risk_drifts_down_without_end() -> None:
    stream = several(Max(), starts=(0.0, 0.0), levels=(0.1, 0.5), bounds=None)
    for i in range(100):
        stream.predict((0.0, 1.0))
        stream.update(50.0 if i % 10 == 0 else 0.5)
    assert stream.theta == (pytest.approx(0.0), pytest.approx(-40.0))


def test_anti_windup_lifts_theta_to_delta_below_the_largest() -> None:
    stream = several(Max(anti_windup=1.0), starts=(0.0, 0.0))
    for _ in range(2):
        stream.predict((0.0, 1.0))
        stream.update(0.5)
    assert stream.theta == pytest.approx((-0.2, -1.0))
    for _ in range(3):
        stream.predict((0.0, 1.0))
        stream.update(0.5)
    assert stream.theta == pytest.approx((-0.5, -1.5))
    own = stream._state.risks[1]
    assert own.lifts == 3
    assert own.lifted == pytest.approx(-1.5 + 2.5)
    certificate = stream.certificate().risks[1]
    assert certificate.identity == pytest.approx(certificate.mean, abs=1e-12)


def test_one_risk_runs_the_same_alone_and_as_one_of_a_tuple() -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-2.0, 2.0))
    alone = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    tuple_of_one = sp.Stream(sp.Controller(sp.sets.Widen(), (risk,)))
    twice = sp.Stream(sp.Controller(sp.sets.Widen(), [risk, risk]))
    for y in (9.0, 0.5, 9.0, 9.0, 9.0, 9.0, 9.0, 0.5) * 4:
        shown = {stream.predict((0.0, 1.0)) for stream in (alone, tuple_of_one, twice)}
        assert len(shown) == 1
        assert (alone.update(y),) == (tuple_of_one.update(y),) == twice.update(y)[:1]
    assert (alone.theta, alone.theta) == (tuple_of_one.theta,) * 2 == twice.theta


def test_the_losses_of_all_risks_are_taken_before_any_theta_moves() -> None:
    def fails(shown: Any, y: Any) -> float:
        if y == 13.0:
            raise ArithmeticError("thirteen")
        return 0.0 if shown.contains(y) else 1.0

    risks = [
        sp.Risk(loss, 0.1, sp.steps.Fixed(1.0))
        for loss in (sp.losses.Miscoverage(), sp.losses.Custom(fails))
    ]
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risks))
    stream.predict((0.0, 1.0))
    before = stream.content()
    with pytest.raises(ArithmeticError):
        stream.update(13.0)
    assert stream.content() == before
    assert stream.update(12.0) == (1.0, 1.0)
