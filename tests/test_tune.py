"""Tuning: what is tried, what is best, how points are spread, what is said when it goes wrong."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from math import inf, isclose, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.bulk import search
from setpoint.bulk.tune import TuneNotice, _spread
from setpoint.errors import InputError
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.sets import Widen


def risk_of(loss: Any = None, level: float = 0.1, gamma: float = 0.1) -> sp.Risk:
    return sp.Risk(loss or Miscoverage(), level, sp.steps.Fixed(gamma), bounds=(-50.0, 50.0))


ONE = sp.Controller(Widen(), risk_of())
TWO = sp.Controller(Widen(), (risk_of(), risk_of(MiscoverageCounter(cap=3.0), 0.3)))
ADAPTIVE = sp.Controller(Widen(), risk_of(), sp.stretches.ErrorAdaptive(0.1, 0.1, -1.0, 1.0))


@pytest.fixture(scope="module")
def tape() -> sp.Tape:
    """Intervals that are too narrow for noise that comes in waves."""
    rng = np.random.default_rng(0)
    rows = 400
    centre = np.cumsum(rng.normal(size=rows))
    wild = 1.0 + 2.0 * (np.sin(np.arange(rows) / 30.0) > 0.0)
    return sp.Tape.from_arrays([centre - 1.0, centre + 1.0], centre + wild * rng.normal(size=rows))


# Grids


def test_a_grid_is_tried_whole_and_in_order(tape: sp.Tape) -> None:
    space = {"risks.0.step.gamma": [0.05, 0.5], "risks.1.step.gamma": [0.1, 0.2, 0.4]}
    tuned = sp.tune(TWO, tape, space)
    tried = list(product(*space.values()))
    assert len(tuned) == 6
    assert list(zip(*(tuned.options[name].tolist() for name in space), strict=True)) == tried
    for controller, gammas in zip(tuned.table.controllers, tried, strict=True):
        assert tuple(risk.step.gamma for risk in controller.risks) == gammas


def test_the_best_is_the_smallest_objective_and_the_first_of_equals(tape: sp.Tape) -> None:
    tuned = sp.tune(ONE, tape, {"gamma": [0.02, 0.2, 0.2, 2.0]})
    wanted = [sp.replay(each, tape).summary().pinball for each in tuned.table.controllers]
    assert tuned.objective.tolist() == pytest.approx(wanted, rel=1e-12)
    assert tuned.index == int(np.argmin(wanted))
    assert tuned.best == tuned.table.controllers[tuned.index]
    assert tuned.best.risks[0].step.gamma == tuned.options["gamma"][tuned.index]
    equal = sp.tune(ONE, tape, {"gamma": [0.3, 0.1, 0.2]}, lambda controller, found: 1.0)
    assert equal.index == 0


def test_options_have_short_names(tape: sp.Tape) -> None:
    space = {"gamma": [0.3], "score": [0.2], "loss": [0.15], "low": [-2.0], "high": [3.0]}
    best = sp.tune(ADAPTIVE, tape, space).best
    assert best.stretch == sp.stretches.ErrorAdaptive(0.2, 0.15, -2.0, 3.0)
    assert best.risks[0].step == sp.steps.Fixed(0.3)


def test_any_option_is_reached_by_its_path(tape: sp.Tape) -> None:
    space = {
        "risks.1.level": [0.2],
        "risks.0.start": [1.0],
        "risks.1.loss.cap": [5.0],
        "combine.anti_windup": [2.0],
    }
    best = sp.tune(TWO, tape, space).best
    assert best.risks[1].level == 0.2
    assert best.risks[0].start == 1.0
    assert best.risks[1].loss == MiscoverageCounter(cap=5.0)
    assert best.combine.anti_windup == 2.0


def test_bounds_are_tuned_as_pairs_and_the_table_shows_them(tape: sp.Tape) -> None:
    bounds = [(-1.0, 1.0), (-5.0, 5.0), (-50.0, 50.0)]
    tuned = sp.tune(ONE, tape, {"risks.0.bounds": bounds, "gamma": [0.1, 0.5]})
    assert tuned.best.risks[0].bounds in bounds
    assert [each.risks[0].bounds for each in tuned.table.controllers] == [
        pair for pair in bounds for _ in range(2)
    ]
    rows = tuned.rows()
    assert tuple(rows[0]["risks.0.bounds"]) == tuned.best.risks[0].bounds
    assert "risks.0.bounds" in str(tuned)


def test_rows_come_best_first_with_everything_known(tape: sp.Tape) -> None:
    tuned = sp.tune(ONE, tape, {"gamma": [0.01, 1.0, 0.1, 5.0]})
    rows = tuned.rows()
    objectives = [row["objective"] for row in rows]
    assert objectives == sorted(objectives)
    assert rows[0]["gamma"] == tuned.best.risks[0].step.gamma
    assert set(rows[0]) == {"gamma", "objective", *tuned.table.columns}
    place = tuned.options["gamma"].tolist().index(rows[2]["gamma"])
    assert rows[2]["coverage"] == tuned.table.columns["coverage"][place]


def test_a_search_prints_its_ten_best(tape: sp.Tape) -> None:
    text = str(sp.tune(ONE, tape, {"gamma": np.linspace(0.01, 1.0, 14).tolist()}))
    lines = text.splitlines()
    assert lines[0] == "14 controllers tried, best first"
    assert lines[1].split() == ["gamma", "objective", "risk", "coverage", "mean_length", "msl"]
    assert len(lines) == 12


# Objectives


def found_of(**metrics: float) -> Mapping[str, float]:
    return {"risk0": 0.1, "risk1": 0.3, "mean_length": 4.0, "msl": 1.5, "coverage": 0.9, **metrics}


def test_the_narrowest_is_the_length_where_every_risk_is_held() -> None:
    narrowest = search.Narrowest(0.01)
    assert narrowest(TWO, found_of(risk0=0.109, risk1=0.31)) == 4.0
    assert narrowest(TWO, found_of(risk0=0.111)) == inf
    assert narrowest(TWO, found_of(risk1=0.32)) == inf
    assert narrowest(TWO, found_of(risk0=0.0, risk1=0.0)) == 4.0
    each = search.Narrowest((0.0, 0.1))
    assert each(TWO, found_of(risk1=0.39)) == 4.0
    assert each(TWO, found_of(risk0=0.11)) == inf
    with pytest.raises(InputError, match="2 tolerances for 1 risks"):
        each(ONE, found_of())


def test_any_function_of_the_controller_and_its_metrics_is_an_objective(tape: sp.Tape) -> None:
    seen = []

    def nearest(controller: sp.Controller, found: Mapping[str, float]) -> float:
        seen.append((controller, dict(found)))
        return abs(found["coverage"] - 0.8)

    tuned = sp.tune(ONE, tape, {"gamma": [0.01, 0.1, 1.0]}, nearest)
    assert [controller for controller, _ in seen] == list(tuned.table.controllers)
    assert seen[1][1] == tuned.table.row(1)
    assert tuned.objective.tolist() == [abs(found["coverage"] - 0.8) for _, found in seen]


def test_where_everything_is_rejected_the_given_controller_stays(tape: sp.Tape) -> None:
    for objective in (lambda controller, found: inf, lambda controller, found: nan):
        with pytest.warns(TuneNotice, match="rejects all of 2 controllers"):
            tuned = sp.tune(ONE, tape, {"gamma": [0.1, 0.2]}, objective)
        assert tuned.best is ONE
        assert tuned.index is None
        assert tuned.objective.tolist() == [inf, inf]
        assert len(tuned.rows()) == 2
        assert "inf" in str(tuned)


def test_an_objective_may_be_minus_infinity(tape: sp.Tape) -> None:
    """The logarithm of a length of 0, say: nothing is smaller."""

    def objective(controller: sp.Controller, found: Mapping[str, float]) -> float:
        return -inf if controller.risks[0].step.gamma == 0.2 else 0.0

    assert sp.tune(ONE, tape, {"gamma": [0.1, 0.2]}, objective).index == 1


def test_controllers_may_be_listed_in_place_of_a_space(tape: sp.Tape) -> None:
    tried = [replace(ONE, risks=(risk_of(gamma=gamma),)) for gamma in (0.02, 0.2, 2.0)]
    listed, grid = sp.tune(ONE, tape, tried), sp.tune(ONE, tape, {"gamma": [0.02, 0.2, 2.0]})
    assert listed.best == grid.best
    assert listed.objective.tolist() == grid.objective.tolist()
    assert listed.options == {}


def test_an_objective_may_measure_the_trace_and_rank_by_several_numbers(tape: sp.Tape) -> None:
    """The narrowest of those that hold from a row on; the nearest to it where none holds."""
    gammas = [0.001, 0.02, 0.2, 2.0]
    for allowed in (0.05, -0.2):
        tuned = sp.tune(ONE, tape, {"gamma": gammas}, search.Holding((allowed,), 100))
        ranks = []
        for controller in tuned.table.controllers:
            trace = sp.replay(controller, tape)
            lengths = (trace.upper - trace.lower)[100:]
            finite = lengths[np.isfinite(lengths)]
            excess = max(trace.losses[0, 100:].mean() - 0.1 - allowed, 0.0)
            ranks.append((excess, 1.0 - len(finite) / len(lengths), finite.mean()))
        assert tuned.index == ranks.index(min(ranks))
        assert tuned.objective[tuned.index].tolist() == pytest.approx(min(ranks))
        assert tuned.rows()[0]["objective"] == pytest.approx(min(ranks))
        assert "objective" in str(tuned)


# Ranges


def test_a_range_is_searched_with_the_budget(tape: sp.Tape) -> None:
    space = {"gamma": search.LogUniform(0.01, 10.0), "score": search.BETA_SCORE, "loss": [0.1, 0.2]}
    tuned = sp.tune(ADAPTIVE, tape, space, trials=30)
    assert len(tuned) == 30
    assert ((tuned.options["gamma"] >= 0.01) & (tuned.options["gamma"] <= 10.0)).all()
    assert ((tuned.options["score"] >= 0.01) & (tuned.options["score"] <= 0.4)).all()
    assert set(tuned.options["loss"].tolist()) == {0.1, 0.2}
    assert abs(tuned.options["loss"].tolist().count(0.1) - 15) <= 2
    below = (tuned.options["gamma"] < 0.316).sum()  # half of three orders of magnitude
    assert abs(int(below) - 15) <= 2
    assert len(sp.tune(ADAPTIVE, tape, {"loss": [0.1, 0.2]}, trials=30)) == 2


def test_the_same_seed_gives_the_same_search_and_another_one_another(tape: sp.Tape) -> None:
    space = {"gamma": search.LogUniform(0.01, 10.0)}
    first, again, other = (sp.tune(ONE, tape, space, trials=8, seed=seed) for seed in (3, 3, 4))
    assert first.options["gamma"].tolist() == again.options["gamma"].tolist()
    assert first.objective.tolist() == again.objective.tolist()
    assert first.best == again.best
    assert first.options["gamma"].tolist() != other.options["gamma"].tolist()


def test_ranges_go_from_end_to_end() -> None:
    uniform, log_uniform = search.Uniform(2.0, 6.0), search.LogUniform(0.01, 100.0)
    assert [uniform.at(share) for share in (0.0, 0.25, 1.0)] == [2.0, 3.0, 6.0]
    assert [log_uniform.at(share) for share in (0.0, 0.5, 1.0)] == pytest.approx([0.01, 1.0, 100.0])


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        (search.Uniform, 1.0, 1.0),
        (search.Uniform, 2.0, 1.0),
        (search.Uniform, nan, 1.0),
        (search.Uniform, 0.0, inf),
        (search.Uniform, "0", 1.0),
        (search.LogUniform, 0.0, 1.0),
        (search.LogUniform, -1.0, 1.0),
        (search.LogUniform, 1.0, 0.1),
    ],
)
def test_a_range_that_is_none_is_refused(kind: Any, low: Any, high: Any) -> None:
    with pytest.raises(InputError):
        kind(low, high)


def test_the_grids_and_ranges_are_the_papers() -> None:
    assert search.GAMMAS == (0.025, 0.03, 0.05, 0.09, 0.1, 0.15, 0.2, 0.35)
    assert (search.BETA_SCORE.low, search.BETA_SCORE.high) == (0.01, 0.4)
    assert (search.BETA_LOSS.low, search.BETA_LOSS.high) == (0.1, 0.2)


def discrepancy(points: Any) -> float:
    """Warnock's formula for the root mean square of the star discrepancy."""
    count, dimensions = points.shape
    first = 3.0**-dimensions
    second = 2.0 ** (1 - dimensions) / count * np.prod(1.0 - points**2, axis=1).sum()
    pairs = np.prod(1.0 - np.maximum(points[:, None], points[None]), axis=2).sum()
    return float(np.sqrt(first - second + pairs / count**2))


def test_the_discrepancy_of_a_regular_grid_is_known() -> None:
    """Centred points in one dimension: 1/(√12·n)."""
    points = (np.arange(10)[:, None] + 0.5) / 10
    assert isclose(discrepancy(points), 1.0 / (12**0.5 * 10))


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("count", [32, 256])
def test_points_cover_the_cube_better_than_random_ones(dimensions: int, count: int) -> None:
    spread = [discrepancy(_spread(count, dimensions, seed)) for seed in range(5)]
    rng = np.random.default_rng(0)
    random = [discrepancy(rng.random((count, dimensions))) for _ in range(20)]
    assert np.mean(spread) < (0.8 if count < 100 else 0.7) * np.mean(random)


@given(st.integers(1, 200), st.integers(1, 8), st.integers(0, 2**31))
def test_points_lie_in_the_cube_and_a_longer_search_begins_like_a_shorter(
    count: int, dimensions: int, seed: int
) -> None:
    points = _spread(count, dimensions, seed)
    assert points.shape == (count, dimensions)
    assert ((points >= 0.0) & (points < 1.0)).all()
    assert np.array_equal(_spread(count + 7, dimensions, seed)[:count], points)


# What is said when it goes wrong


@pytest.mark.parametrize(
    ("space", "told"),
    [
        ({"gama": [0.1]}, r"gama: Controller has no option 'gama'; it has sets, risks, stretch"),
        ({"risks.0.step.gama": [0.1]}, r"Fixed has no option 'gama'; it has gamma"),
        ({"risks.2.level": [0.1]}, r"'2' must be an index from 0 to 1"),
        ({"risks.first.level": [0.1]}, r"'first' must be an index from 0 to 1"),
        ({"risks.-1.level": [0.1]}, r"'-1' must be an index from 0 to 1"),
        ({"score": [0.1]}, r"score: Identity has no option 'score'"),
        ({"stretch.score.deep": [0.1]}, r"Identity has no option 'score'"),
        ({"risks.0.level.deep": [0.1]}, r"float has no option 'deep'"),
        ({}, r"the space is empty"),
        ({"gamma": []}, r"gamma needs values to try or a range, got \[\]"),
        ({"gamma": 0.1}, r"gamma needs values to try or a range, got 0.1"),
        ({"gamma": None}, r"gamma needs values to try or a range, got None"),
        ({"gamma": [0.1, -0.1]}, r"gamma must be greater than 0, got -0.1"),
        ({"risks.0.level": [7.0]}, r"level must lie in the range"),
        ({"gamma": [0.1], "risks.0.bounds": [(1.0, 0.0)]}, r"bounds must have low < high"),
    ],
)
def test_a_space_that_fits_no_controller_is_refused_in_words(
    space: Any, told: str, tape: sp.Tape
) -> None:
    with pytest.raises(InputError, match=told):
        sp.tune(TWO, tape, space)


def test_a_risk_without_a_step_rule_gets_the_step_sizes_that_are_tried(tape: sp.Tape) -> None:
    bare = sp.Controller(Widen(), replace(risk_of(), step=None))
    for name in ("gamma", "risks.0.step.gamma"):
        tuned = sp.tune(bare, tape, {name: [0.1, 0.2]})
        assert [each.risks[0].step for each in tuned.table.controllers] == [
            sp.steps.Fixed(0.1),
            sp.steps.Fixed(0.2),
        ]
    with pytest.raises(InputError, match="no step rule yet"):
        sp.tune(bare, tape, {"risks.0.start": [0.1, 0.2]})


def test_options_of_one_part_are_changed_together(tape: sp.Tape) -> None:
    """Alone, each of these would make a part that cannot be."""
    unclipped = replace(ADAPTIVE, stretch=sp.stretches.ErrorAdaptive(0.1, 0.1))
    tuned = sp.tune(unclipped, tape, {"low": [-2.0, -1.0], "high": [3.0]})
    assert tuned.table.controllers[1].stretch == sp.stretches.ErrorAdaptive(0.1, 0.1, -1.0, 3.0)
    moved = sp.tune(ONE, tape, {"risks.0.start": [70.0], "risks.0.bounds": [(60.0, 80.0)]})
    assert moved.best.risks[0].bounds == (60.0, 80.0)


def test_a_part_and_its_options_are_tuned_in_one_space(tape: sp.Tape) -> None:
    parts = [sp.stretches.ScoreAdaptive(0.1, -1.0, 1.0), ADAPTIVE.stretch]
    tuned = sp.tune(ONE, tape, {"stretch.score": [0.2, 0.3], "stretch": parts})
    assert [each.stretch for each in tuned.table.controllers] == [
        replace(part, score=score) for score in (0.2, 0.3) for part in parts
    ]


def test_an_objective_that_is_no_number_is_named(tape: sp.Tape) -> None:
    with pytest.raises(InputError, match="the objective must be a number, got None"):
        sp.tune(ONE, tape, {"gamma": [0.1]}, lambda controller, found: None)


def test_an_empty_tape_rejects_everything() -> None:
    with pytest.warns(TuneNotice, match="the one given stays"):
        tuned = sp.tune(ONE, sp.Tape.from_arrays([[], []], []), {"gamma": [0.1, 0.2]})
    assert tuned.index is None
    assert tuned.best is ONE
