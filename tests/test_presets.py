"""Presets: what they are made of, and what they refuse."""

import re
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError, PredictionError
from setpoint.published import aci
from setpoint.sets import Cumulative, Interval, Scale, ScoreWindow, Widen


def test_aci_has_the_defaults_of_its_authors() -> None:
    (risk,) = aci().risks
    assert aci().sets == ScoreWindow(Widen(), 500)
    assert risk.loss == sp.losses.Miscoverage()
    assert risk.level == pytest.approx(0.1)
    assert risk.step == sp.steps.Fixed(0.005)
    assert aci().starts == (-risk.level,)
    assert aci().bounds == ((-1.0, 0.0),)
    assert aci().stretch == sp.stretches.Identity()


def test_aci_takes_any_scores_step_and_size() -> None:
    controller = aci(0.8, scores=Scale(), gamma=0.02, size=50)
    assert controller.sets == ScoreWindow(Scale(), 50)
    assert controller.risks[0].step == sp.steps.Fixed(0.02)
    assert controller.risks[0].level == pytest.approx(0.2)
    labels = sp.Stream(aci(0.8, scores=Cumulative()))
    assert labels.predict([0.5, 0.5]).full


def test_aci_by_hand() -> None:
    stream = sp.Stream(aci(0.5, gamma=0.25, size=3))
    seen = []
    for point, y in ((0.0, 1.0), (0.0, 3.0), (1.0, 1.5), (1.0, 9.0), (0.0, 0.0)):
        seen.append(stream.predict(point))
        stream.update(y)
    assert seen == [
        Interval(-float("inf"), float("inf")),  # α = .5, no scores
        Interval(-1.0, 1.0),  # α = .625: ⌈.375 · 2⌉ = 1st of (1)
        Interval(-2.0, 4.0),  # α = .5: ⌈.5 · 3⌉ = 2nd of (1, 3)
        Interval(0.0, 2.0),  # α = .625: ⌈.375 · 4⌉ = 2nd of (.5, 1, 3)
        Interval(-3.0, 3.0),  # α = .5: 2nd of (.5, 3, 8)
    ]
    assert stream.theta == -0.625


def test_aci_is_written_down_and_comes_back() -> None:
    controller = aci(0.95, scores=Widen((0.0, 1e300)), size=20)
    assert sp.spec.from_toml(sp.spec.to_toml(controller)) == controller


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coverage": 0.0}, "coverage must lie strictly between 0 and 1, got 0.0"),
        ({"coverage": 1.0}, "coverage must lie strictly between 0 and 1, got 1.0"),
        ({"coverage": 90}, "coverage must lie strictly between 0 and 1, got 90.0"),
        ({"coverage": "0.9"}, "coverage must be a number, got '0.9'"),
        ({"gamma": 0.0}, "gamma must be greater than 0, got 0.0"),
        ({"size": 0}, "size must be a whole number of at least 1, got 0"),
        ({"scores": 5}, "scores must be a family of sets, got 5"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        aci(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("preset", [sp.intervals, sp.label_sets])
@pytest.mark.parametrize("coverage", [1.5, 0.0, float("nan")])
def test_a_coverage_outside_its_range_is_refused_by_its_own_name(
    preset: Any, coverage: float
) -> None:
    with pytest.raises(InputError, match="coverage must"):
        preset(coverage=coverage)


def _season(period: int, rows: int) -> np.ndarray:
    return np.sin(2 * np.pi * np.arange(rows) / period)


@pytest.mark.parametrize("seed", range(5))
def test_a_period_is_found_where_there_is_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = 24 * 7 * 8
    hours, noise = np.arange(rows), rng.normal(size=rows)
    walk, trend = np.cumsum(rng.normal(size=rows)), 0.01 * hours
    daily, weekend = _season(24, rows), (hours // 24 % 7 >= 5).astype(float)
    assert sp.presets.find_period(daily + noise) == 24
    assert sp.presets.find_period(daily + 0.5 * noise + trend) == 24
    assert sp.presets.find_period(5.0 * daily + 0.2 * walk) == 24
    assert sp.presets.find_period(daily - 2.0 * weekend + 0.3 * noise) == 168
    assert sp.presets.find_period(_season(7, 200) + 0.5 * rng.normal(size=200)) == 7
    gappy = daily + 0.5 * noise
    gappy[rng.random(rows) < 0.2] = np.nan
    assert sp.presets.find_period(gappy) == 24
    assert sp.presets.find_period(_season(9, 500) + 0.3 * noise[:500], range(2, 60)) == 9
    for nothing in (noise, walk, np.cumsum(walk), trend, np.zeros(rows), noise[:10], []):
        assert sp.presets.find_period(nothing) == 0
    with pytest.raises(InputError, match="infinite"):
        sp.presets.find_period([1.0, np.inf])


def test_a_budget_holds_several_risks_and_refuses_bounds_of_their_own():
    miss = sp.Risk(sp.losses.Miscoverage(), 0.2)
    streak = sp.Risk(sp.losses.MiscoverageCounter(cap=5.0), 0.3)
    controller = sp.intervals(risk=[miss, streak])
    assert [risk.level for risk in controller.risks] == [0.2, 0.3]
    assert all(isinstance(risk.step, sp.steps.Account) for risk in controller.risks)
    assert controller.correction.level == pytest.approx(
        0.2
    )  # the shape follows the share of misses
    with pytest.raises(
        InputError, match=r"bounds of its own, got a risk with bounds=\(-3.0, 3.0\)"
    ):
        sp.intervals(risk=sp.Risk(sp.losses.Miscoverage(), 0.1, bounds=(-3.0, 3.0)))
    for wrong in (3, [], [sp.losses.Miscoverage()]):
        got = re.escape(repr(wrong))
        with pytest.raises(InputError, match=f"risk must be a Risk or several, got {got}"):
            sp.intervals(risk=wrong)  # type: ignore[arg-type]


def test_a_budget_around_the_sets_of_another_rule_keeps_their_misses_below_its_limit():
    rng = np.random.default_rng(0)
    stream, total, most = sp.Stream(sp.presets.around(0.9)), 0.0, 0.0
    for _ in range(1_000):
        stream.predict((-0.1, 0.1))  # a rule whose sets are far too short
        total += stream.update(float(rng.normal())) - 0.1
        most = max(most, total)
    assert most <= 20.9
    columns = {"lower": np.full(50, -1.0), "upper": np.full(50, 3.0)}
    trace = sp.replay(sp.presets.around(0.9), sp.Tape.from_arrays(columns, np.ones(50)))
    assert (trace.lower[0], trace.upper[0]) == (-1.0, 3.0)
    assert (trace.upper - trace.lower < 4.0)[1:].all()


def test_three_numbers_are_refused_because_they_can_mean_two_things():
    for controller in (sp.intervals(), sp.intervals(period=7)):
        with pytest.raises(PredictionError, match="three numbers can mean two things"):
            sp.Stream(controller).predict((2.0, 1.0, 1.0))
