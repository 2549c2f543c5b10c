"""Metrics: values worked by hand, slow loops beside fast code, and arrays beside the stream."""

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint.metrics as sm
from setpoint.errors import InputError
from setpoint.metrics.summaries import size_summary

INF, NAN = math.inf, math.nan

FIRST = [1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1]  # the two sequences of the paper's appendix
SECOND = [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0]  # printed as 15 steps at 80 %: it has 12, at 75 %

# Eighths add up exactly, so tests of equality test the rule and not the rounding.
eighths = st.integers(-80, 80).map(lambda k: k / 8)
labels = st.one_of(eighths, st.just(NAN))
intervals = st.one_of(
    st.tuples(eighths, eighths),  # crossed ones included
    st.sampled_from([(-INF, INF), (INF, -INF), (0.0, INF), (-INF, 0.0), (INF, INF), (-INF, -INF)]),
)
keys = st.sampled_from(["mon", "tue", 3, None, NAN])
losses = st.one_of(st.none(), st.floats(-1e3, 1e3), st.just(NAN))
steps = st.lists(st.tuples(intervals, labels, losses, keys), max_size=60)
hits = st.lists(st.sampled_from([0.0, 1.0, NAN]), max_size=60)
levels = st.floats(0.0, 1.0)


def same(left: float | None, right: float | None, tolerance: float = 1e-9) -> bool:
    if left is None or right is None:
        return left is right
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return math.isclose(left, right, rel_tol=tolerance, abs_tol=tolerance)


def without_nan(values: list[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


def slow_streaks(covered: list[float]) -> list[int]:
    word = "".join("m" if hit == 0.0 else "." for hit in without_nan(covered))
    return [len(streak) for streak in word.split(".") if streak]


def slow_pinball(end: float, y: float, tau: float) -> float:
    if y >= end:
        return tau * (y - end) if tau else 0.0
    return (1 - tau) * (end - y) if tau < 1 else 0.0


def winkler(lower: object, upper: object, y: object, nominal: float) -> float:
    return sm.summary(lower, upper, y, 0.1, coverage=nominal).winkler


def correlation(covered: object, lengths: object) -> float:
    return sm.summaries.size_summary(lengths, covered, 0.1).correlation


def longest_streak(covered: list[float]) -> int:
    return sm.summaries.size_summary(np.ones(len(covered)), covered, 0.1).longest_streak


def window_errors(
    losses: object, level: float, window: int, offsets: object = None
) -> tuple[float, float, int | None]:
    """The worst window, the root mean square and where the worst begins."""
    ones = np.ones(len(losses))
    table = sm.summaries.size_summary(
        ones, ones, level, losses=losses, window=window, coverage=0.9, offsets=offsets
    )
    return table.worst_window, table.rms_window, table.worst_window_start


# Worked by hand


def test_the_first_sequence_of_the_paper_has_msl_one_and_a_half() -> None:
    assert sm.msl(FIRST) == 1.5
    assert sm.mc(FIRST) == pytest.approx(4 / 15)
    assert sm.miscoverage_counter(FIRST).tolist() == [0] * 6 + [1, 0, 1, 2] + [0] * 5
    assert sm.streaks(FIRST).tolist() == [1, 2]
    assert np.mean(FIRST) == 0.8


def test_the_second_sequence_of_the_paper_has_msl_three_though_the_end_cuts_it() -> None:
    assert sm.msl(SECOND) == 3.0
    assert sm.mc(SECOND) == (1 + 2 + 3) / 12
    assert longest_streak(SECOND) == 3
    assert np.mean(SECOND) == 0.75


def test_a_stream_without_a_miss_has_msl_zero() -> None:
    assert sm.msl([1, 1, 1]) == 0.0
    assert sm.msl([]) == 0.0
    assert longest_streak([1, 1, 1]) == 0
    assert sm.streaks([]).tolist() == []


def test_a_streak_goes_on_across_a_step_that_was_not_observed() -> None:
    assert sm.streaks([1, 0, NAN, 0, 1]).tolist() == [2]
    assert sm.msl([NAN, 0, NAN]) == 1.0


def test_a_miss_at_confidence_one_costs_winkler_everything_and_a_hit_only_the_length() -> None:
    assert winkler([0], [1], [0.5], 1.0) == 1.0
    assert winkler([0], [1], [2.0], 1.0) == INF
    assert sm.pinball([-INF], [INF], [0.0], 1.0) == 0.0


def test_pinball_is_the_average_of_the_two_ends() -> None:
    inside = (0.05 * 1 + 0.05 * 2) / 2
    above = (0.05 * 5 + 0.95 * 2) / 2
    assert sm.pinball([2], [5], [3], 0.9) == pytest.approx(inside)
    assert sm.pinball([2], [5], [7], 0.9) == pytest.approx(above)
    assert sm.pinball([2, 2, 2], [5, 5, 5], [3, 7, NAN], 0.9) == pytest.approx((inside + above) / 2)


def test_lengths_are_never_negative() -> None:
    lower, upper = [0, 3, INF, -INF, 1, INF, 0], [2, 1, -INF, INF, 1, INF, INF]
    got = sm.lengths(lower, upper)
    assert got.tolist() == [2, 0, 0, INF, 0, 0, INF]
    table = sm.summary(lower, upper, np.zeros(7), 0.1)
    assert table.median_length == 0.0
    assert sm.summaries.size_summary([1.0, INF], [1, 1], 0.1).median_length == INF
    assert sm.summaries.size_summary([INF, INF], [1, 1], 0.1).median_length == INF
    assert table.full == pytest.approx(1 / 7)
    assert table.empty == pytest.approx(3 / 7)


def test_lengths_that_overflow_are_infinite_and_warn_of_nothing() -> None:
    assert sm.lengths([-1e308], [1e308]).tolist() == [INF]
    assert sm.summary([0, 0], [1.5e308, 1.5e308], [1, 1], 0.1).mean_length == INF
    assert math.isnan(correlation([0, 1, 1], [1e200, 2e200, 5e200]))


def test_delta_coverage_is_the_mean_distance_of_the_groups_from_nominal() -> None:
    got = sm.delta_coverage([1, 1, 0, 1, 0, NAN], ["a", "a", "b", "b", None, "c"], 0.9)
    assert got.coverage == {"a": 1.0, "b": 0.5}
    assert got.sizes == {"a": 2, "b": 2}
    assert got.delta == pytest.approx((0.1 + 0.4) / 2)


def test_the_noise_floor_of_the_papers_weekdays_is_what_it_reported() -> None:
    assert 100 * sm.noise_floor([1714] * 7, 0.9) == pytest.approx(0.578, abs=5e-4)


def test_correlation_is_zero_where_nothing_varies_and_leaves_infinite_lengths_out() -> None:
    assert correlation([], []) == 0.0
    assert correlation([1], [2.0]) == 0.0
    assert correlation([1, 1], [1.0, 2.0]) == 0.0
    assert correlation([0, 1, 1], [0.1, 0.1, 0.1]) == 0.0
    assert correlation([0, 1, 1], [1.0, 2.0, INF]) == pytest.approx(1.0)
    assert correlation([0, 1, NAN], [1.0, 2.0, -0.0]) == pytest.approx(1.0)


# De Moivre beside brute force


@given(st.integers(1, 40), st.floats(0.0, 1.0))
def test_the_noise_floor_is_the_mean_absolute_deviation_of_the_binomial(n: int, p: float) -> None:
    slow = math.fsum(
        math.comb(n, k) * p**k * (1 - p) ** (n - k) * abs(k / n - p) for k in range(n + 1)
    )
    assert sm.noise_floor([n], p) == pytest.approx(slow, rel=1e-9, abs=1e-12)


# Slow loops beside fast code


@given(hits)
def test_the_counter_is_the_papers_recursion(covered: list[float]) -> None:
    counter, slow = 0, []
    for hit in covered:
        if not math.isnan(hit):
            counter = 0 if hit else counter + 1
        slow.append(NAN if math.isnan(hit) else float(counter))
    np.testing.assert_array_equal(sm.miscoverage_counter(covered), slow)
    assert same(sm.mc(covered), float(np.mean(without_nan(slow))) if without_nan(slow) else NAN)


@given(hits)
def test_streaks_are_the_runs_of_misses(covered: list[float]) -> None:
    slow = slow_streaks(covered)
    assert sm.streaks(covered).tolist() == slow
    assert sm.msl(covered) == pytest.approx(sum(slow) / len(slow) if slow else 0.0)
    assert longest_streak(covered) == max(slow, default=0)


@given(hits)
def test_the_mean_counter_is_never_below_miscoverage(covered: list[float]) -> None:
    seen = without_nan(covered)
    if seen:
        assert sm.mc(covered) >= 1.0 - sum(seen) / len(seen) - 1e-12


@given(st.lists(st.tuples(intervals, labels), max_size=40), levels)
def test_interval_metrics_are_those_of_a_loop(
    rows: list[tuple[tuple[float, float], float]], nominal: float
) -> None:
    lower, upper = [ends[0] for ends, _ in rows], [ends[1] for ends, _ in rows]
    y = [label for _, label in rows]
    tail = (1.0 - nominal) / 2
    inside, balls, scores = [], [], []
    for (low, high), label in rows:
        if math.isnan(label):
            continue
        inside.append(low <= label <= high)
        balls.append((slow_pinball(low, label, tail) + slow_pinball(-high, -label, tail)) / 2)
        score = high - low if high > low else 0.0
        for miss in (low - label, label - high):
            if miss > 0:
                score += miss * 2 / (1.0 - nominal) if nominal < 1.0 else INF
        scores.append(score)
    n = len(inside)
    assert same(sm.coverage(lower, upper, y), sum(inside) / n if n else NAN)
    assert same(sm.pinball(lower, upper, y, nominal), sum(balls) / n if n else NAN)
    assert same(winkler(lower, upper, y, nominal), sum(scores) / n if n else NAN)
    assert sm.lengths(lower, upper).tolist() == [
        high - low if high > low else 0.0 for (low, high), _ in rows
    ]


@given(
    st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(NAN)), max_size=60),
    st.floats(-10, 10),
    st.integers(1, 70),
)
def test_window_errors_are_those_of_a_loop(values: list[float], level: float, window: int) -> None:
    kept = [(step, value) for step, value in enumerate(values) if not math.isnan(value)]
    width = min(window, len(kept))
    slow = {
        kept[i][0]: abs(math.fsum(value for _, value in kept[i : i + width]) / width - level)
        for i in range(len(kept) - width + 1)
        if kept
    }
    worst, rms, start = window_errors(values, level, window)
    if not slow:
        assert math.isnan(worst)
        assert math.isnan(rms)
        assert start is None
        return
    scale = 1e-9 * max(1.0, *map(abs, without_nan(values)))
    assert start is not None
    assert worst == pytest.approx(max(slow.values()), rel=1e-9, abs=scale)
    assert slow[start] == pytest.approx(worst, rel=1e-9, abs=scale)  # a tie may move it
    mean_square = sum(error**2 for error in slow.values()) / len(slow)
    assert rms == pytest.approx(math.sqrt(mean_square), rel=1e-9, abs=scale)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 100)), min_size=2, max_size=50))
def test_correlation_is_numpys(rows: list[tuple[bool, int]]) -> None:
    covered, size = [hit for hit, _ in rows], [length / 8 for _, length in rows]
    if len(set(covered)) > 1 and len(set(size)) > 1:
        want = float(np.corrcoef(np.array(covered, float), size)[0, 1])
        assert correlation(covered, size) == pytest.approx(want, abs=1e-9)
    else:
        assert correlation(covered, size) == 0.0


# The stream beside the arrays


sizes = st.one_of(st.integers(0, 20).map(float), st.just(INF))


@given(steps, st.lists(st.integers(0, 60), max_size=8), st.integers(1, 20))
def test_streaks_and_windows_end_where_their_stream_does(
    rows: list[tuple[tuple[float, float], float, float | None, object]],
    cuts: list[int],
    window: int,
) -> None:
    lower, upper = [row[0][0] for row in rows], [row[0][1] for row in rows]
    y = [row[1] for row in rows]
    offsets = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    got = sm.summary(lower, upper, y, 0.2, window=window, offsets=offsets)
    streams = [slice(first, last) for first, last in pairwise(offsets)]
    hit = sm.covered(lower, upper, y)
    runs = [length for stream in streams for length in slow_streaks(hit[stream].tolist())]
    assert (got.streaks, got.longest_streak) == (len(runs), max(runs, default=0))
    counters = without_nan([c for s in streams for c in sm.miscoverage_counter(hit[s]).tolist()])
    assert same(got.mc, sum(counters) / len(counters) if counters else NAN)
    alone = [(s.start, window_errors(1.0 - hit[s], 0.2, window)) for s in streams]
    alone = [(first, errors) for first, errors in alone if errors[2] is not None]
    assert same(got.worst_window, max((worst for _, (worst, _, _) in alone), default=NAN))
    assert got.worst_window_start in [
        *(first + start for first, (worst, _, start) in alone if same(worst, got.worst_window)),
        *([] if alone else [None]),
    ]


# True quantiles, by simulation


@pytest.mark.parametrize("alpha", [0.1, 0.3])
def test_independent_misses_reach_the_papers_msl_and_mc(alpha: float) -> None:
    covered = np.random.default_rng(3).random(200_000) >= alpha
    assert sm.msl(covered) == pytest.approx(1 / (1 - alpha), rel=0.02)
    assert sm.mc(covered) == pytest.approx(alpha / (1 - alpha), rel=0.03)


# What comes from outside


def test_a_summary_prints_every_number_on_a_line_of_its_own() -> None:
    got = sm.summary([0, -INF], [1, INF], [0.5, 2.0], 0.1)
    lines = str(got).splitlines()
    finite = [name for name, value in got.as_dict().items() if value != INF]
    assert [line.split()[0] for line in lines[:-1]] == finite
    assert lines[-1].startswith("infinite, because a set has no limits: mean_length, ")
    assert list(got.as_dict()) == [field.name for field in dataclasses.fields(sm.Summary)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sm.coverage([0], [1, 2], [0]), "upper must have one value for each of the 1"),
        (lambda: sm.coverage([0], [1], [0, 1]), "y must have one value for each of the 1 steps"),
        (lambda: sm.coverage([[0]], [[1]], [[0]]), r"one dimension.*got shape \(1, 1\)"),
        (lambda: sm.coverage(["0"], [1], [0]), "lower must hold numbers, got values of type <U1"),
        (lambda: sm.coverage([object()], [1], [0]), "lower must be a column of numbers"),
        (lambda: sm.coverage([0, [1]], [1, 1], [0, 0]), "lower must be a column of numbers"),
        (lambda: sm.coverage([0, NAN], [1, 1], [0, 0]), "lower must be .* got nan at step 1"),
        (lambda: sm.coverage([0], [1], [INF]), "y must be finite, or NaN .* got inf at step 0"),
        (lambda: sm.risk([0, INF]), "losses must be finite, or NaN .* got inf at step 1"),
        (lambda: sm.msl([1, 0.5]), r"covered must be 0, 1, or NaN .* got 0\.5 at step 1"),
        (
            lambda: size_summary([1, -1], [1, 1], 0.1),
            "size must be 0 or more, got -1.0",
        ),
        (lambda: sm.pinball([0], [1], [0], 90), r"coverage .* 0 and 1, got 90\.0"),
        (lambda: winkler([0], [1], [0], NAN), "coverage .* 0 and 1, got nan"),
        (lambda: sm.noise_floor([0], 0.9), "a group size must be a whole number of at least 1"),
        (lambda: sm.noise_floor([2.5], 0.9), r"a group size must be a whole number.*got 2\.5"),
        (lambda: sm.noise_floor(7, 0.9), "sizes must be a column"),
        (lambda: sm.noise_floor([7], 9), r"nominal must lie between 0 and 1, got 9\.0"),
        (lambda: sm.delta_coverage([1], ["a", "b"], 0.9), "one key for each of the 1 steps, got 2"),
        (lambda: sm.delta_coverage([1], 3, 0.9), "groups must hold one key a step, got 3"),
        (lambda: sm.delta_coverage([1], [[]], 0.9), "a group must be hashable.*got unhashable"),
        (lambda: window_errors([1], 0.1, 0), "window must be a whole number of at least 1"),
        (lambda: window_errors([1], 0.1, 2.0), r"window must be a whole number.*got 2\.0"),
        (lambda: window_errors([1], 0.1, True), "window must be a whole number.*got True"),
        (lambda: window_errors([1], INF, 2), "level must be finite, got inf"),
        (lambda: sm.summary([0], [1], [0], 0.1, support=(1, 0)), "support must have low < high"),
        (lambda: size_summary([1], [1], 0.1, full=[NAN]), "full must be 0 or 1, got nan"),
        (lambda: size_summary([NAN], [1], 0.1), "size must be 0 or more, got nan"),
        (lambda: window_errors([1], 0.1, 1, offsets=[0, 2]), "rise from 0 to the 1 steps"),
        (lambda: sm.summary([0], [1], [0], 0.1, offsets=[0.0, 1.0]), "offsets must be whole"),
        (lambda: sm.summary([0], [1], [0], "0.1"), "level must be a number, got '0.1'"),
        (
            lambda: sm.summary([0], [1], [0], 0.1, window=-3),
            "window must be a whole number of at least 1, got -3",
        ),
        (
            lambda: sm.summary([0], [1], [0], 0.1, coverage=1.5),
            "coverage must lie between",
        ),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_allowed(call: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_a_stream_of_no_step_has_a_summary() -> None:
    got = sm.summary([], [], [], 0.1)
    assert (got.steps, got.missing, got.msl, got.longest_streak, got.correlation) == (0, 0, 0, 0, 0)
    assert math.isnan(got.risk)
    assert got.worst_window_start is None


def test_a_level_that_is_no_fraction_needs_a_confidence_level() -> None:
    with pytest.raises(InputError, match=r"got level=-0\.5"):
        sm.summary([0], [1], [0], -0.5)
    got = sm.summary([0], [1], [0], 2.0, losses=[5.0], coverage=0.9)
    assert (got.risk, got.worst_window, got.asked) == (5.0, 3.0, 0.9)
