"""Whether sets are of use: against a baseline row by row, and in words."""

import math

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError
from setpoint.metrics import Use, label_usefulness, usefulness
from setpoint.metrics.usefulness import of_streams

INF = math.inf


def random_walk(size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.cumsum(rng.normal(size=size) * 0.1) + rng.normal(size=size)
    return y, np.concatenate([[0.0], y])[:size]


def by_hand(lower, upper, y, middle, asked, window, delay):
    """Score, width and share of one stream, one row after the other."""
    widths = plain = scores = plain_scores = rows = 0.0
    span, tail = max(y) - min(y), 2.0 / (1.0 - asked)
    for t in range(len(y)):
        if t < 30 + delay:
            continue
        first = t - (t - 30 - delay) % 25 - delay
        past = sorted(abs(y[i] - middle[i]) for i in range(max(first - window, 0), max(first, 0)))
        if len(past) < 30:
            continue
        radius = past[min(math.ceil(asked * (len(past) + 1)), len(past)) - 1]
        width = span if math.isinf(upper[t] - lower[t]) else upper[t] - lower[t]
        rows += 1
        widths += width
        plain += 2.0 * radius
        scores += width + tail * max(lower[t] - y[t], y[t] - upper[t], 0.0)
        plain_scores += 2.0 * radius + tail * max(abs(y[t] - middle[t]) - radius, 0.0)
    return scores / plain_scores, widths / plain, widths / rows / span, rows


@pytest.mark.parametrize("delay", [0, 40])
@pytest.mark.parametrize("asked", [0.8, 0.9])
def test_the_numbers_are_those_of_a_loop_over_the_rows(asked, delay):
    y, middle = random_walk(700)
    rng = np.random.default_rng(1)
    lower = y - rng.normal(1.0, 1.0, 700)
    upper = np.maximum(lower, y + rng.normal(1.0, 1.0, 700))
    lower[500], upper[500] = -INF, INF
    verdict = usefulness(lower, upper, y, middle, coverage=asked, window=200, delay=delay)
    score, width, share, rows = by_hand(lower, upper, y, middle, asked, 200, delay)
    assert verdict.score == pytest.approx(score, rel=1e-12)
    assert verdict.width == pytest.approx(width, rel=1e-12)
    assert verdict.share == pytest.approx(share, rel=1e-12)
    assert (verdict.rows, verdict.full) == (rows, pytest.approx(1.0 / rows))


def test_each_stream_gets_what_it_would_get_alone_and_counts_by_its_rows():
    sizes = (400, 90, 20, 0, 250)
    parts = [random_walk(size, seed) for seed, size in enumerate(sizes)]
    y, middle = (np.concatenate(column) for column in zip(*parts, strict=True))
    y[10] = math.nan
    offsets = np.cumsum([0, *sizes])
    lower, upper = np.nan_to_num(y) - 1.0, np.nan_to_num(y) + 1.0
    streams = of_streams(lower, upper, y, middle, offsets=offsets)
    for place in range(len(sizes)):
        here = slice(offsets[place], offsets[place + 1])
        alone = usefulness(lower[here], upper[here], y[here], middle[here])
        np.testing.assert_equal(streams.verdict(place).as_dict(), alone.as_dict())
    together = usefulness(lower, upper, y, middle, offsets=offsets)
    known = streams.rows > 0
    scores, widths = (
        np.sort(np.repeat(values[known], streams.rows[known]))
        for values in (streams.score, streams.width)
    )
    assert together.score == scores[(len(scores) - 1) // 2]
    assert together.width == pytest.approx(widths.mean())
    assert together.rows == streams.rows.sum()


def test_the_verdict_does_not_depend_on_the_unit_of_y():
    y, middle = random_walk(600)
    plain = usefulness(y - 1.0, y + 1.5, y, middle)
    for factor in (2.0**-30, 2.0**30):
        scaled = usefulness(*(factor * part for part in (y - 1.0, y + 1.5, y, middle)))
        assert scaled == plain


def test_the_default_is_useful_on_a_forecast_that_is_biased_and_drifts():
    y, middle = random_walk(3000)
    forecast = middle + np.linspace(0.0, 5.0, 3000)
    trace = sp.replay(sp.intervals(coverage=0.9), sp.Tape.from_arrays(
        {"lower": forecast, "upper": forecast}, y))  # fmt: skip
    verdict = usefulness(trace.lower, trace.upper, y, forecast)
    assert verdict.use is Use.USEFUL
    assert verdict.score < 0.9
    assert verdict.diverged is None


def test_wide_sets_are_poor_and_sets_wider_than_y_or_mostly_full_useless():
    y, middle = random_walk(600)
    span = y.max() - y.min()
    assert usefulness(middle - 0.45 * span, middle + 0.45 * span, y, middle).use is Use.POOR
    assert usefulness(middle - 0.6 * span, middle + 0.6 * span, y, middle).use is Use.USELESS
    lower, upper = middle - 2.0, middle + 2.0
    lower[::10], upper[::10] = -INF, INF
    tenth = usefulness(lower, upper, y, middle)
    assert (tenth.use, round(tenth.full, 2)) == (Use.POOR, 0.1)
    assert "10.0 % of them are full" in str(tenth)
    whole = usefulness(np.full(600, -INF), np.full(600, INF), y, middle)
    assert whole.use is Use.USELESS
    lower[::10], upper[::10] = INF, -INF
    assert "10.0 % of them are empty" in str(usefulness(lower, upper, y, middle))


def test_a_model_that_diverges_is_named_with_its_row_and_a_steady_offset_is_not():
    y, middle = random_walk(1500)
    wild = middle.copy()
    signs = np.where(np.arange(500) % 2, 1.0, -1.0)
    wild[1000:] = signs * 1.05 ** np.arange(500)
    trace = sp.replay(sp.intervals(coverage=0.9), sp.Tape.from_arrays(
        {"lower": wild, "upper": wild}, y))  # fmt: skip
    verdict = usefulness(trace.lower, trace.upper, y, wild)
    assert verdict.use in (Use.POOR, Use.USELESS)
    assert 1000 <= verdict.diverged < 1300
    assert f"the model diverged: from about row {verdict.diverged:,} on" in str(verdict)
    shifted = usefulness(y - 2.0, y + 2.0, y, middle + 1e6)
    assert shifted.diverged is None


def test_too_few_labels_and_a_world_that_never_moves_have_their_own_words():
    y, middle = random_walk(29)
    early = usefulness(y - 1.0, y + 1.0, y, middle)
    assert early.use is Use.TOO_EARLY
    assert early.as_dict()["score"] is None
    nothing = usefulness([], [], [])
    assert (nothing.use, nothing.rows) == (Use.TOO_EARLY, 0)
    still = np.full(200, 3.0)
    assert str(usefulness(still, still, still, still)) == "useful: y and the forecast never move"


def test_without_a_forecast_the_baseline_is_the_last_label():
    y, _ = random_walk(500)
    last = np.concatenate([y[:1], y[:-1]])
    assert usefulness(y - 1, y + 1, y) == usefulness(y - 1, y + 1, y, last)


def test_sets_of_labels_are_held_against_the_frequent_labels():
    labels = np.array([0.0] * 80 + [1.0] * 15 + [2.0] * 5)
    useful = label_usefulness(np.ones(100), labels, 3)
    assert useful.share == pytest.approx(0.5)  # labels 0 and 1 cover 95 %, label 0 alone 80 %
    assert str(useful) == (
        "useful: over 100 labels a set contains 1.00 of 3 classes on average; without a model 2 "
        "would do"
    )
    assert label_usefulness(np.full(100, 2.0), labels, 3).use is Use.USELESS
    assert label_usefulness(np.full(100, 1.9), labels, 3).use is Use.POOR
    assert label_usefulness(np.ones(10), labels[:10], 3).use is Use.TOO_EARLY


def test_wrong_input_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="coverage must lie strictly between 0 and 1"):
        usefulness([0.0], [1.0], [0.5], coverage=1.0)
    with pytest.raises(InputError, match="middle must have one value for each of the 1 steps"):
        usefulness([0.0], [1.0], [0.5], [0.0, 1.0])
    with pytest.raises(InputError, match="delay must be a whole number of at least 0, got -1"):
        usefulness([0.0], [1.0], [0.5], delay=-1)


def test_a_trace_says_whether_its_sets_were_of_use_under_the_delay_of_its_labels():
    y, middle = random_walk(600)
    tape = sp.Tape.from_arrays({"prediction": middle}, y)
    for late in (0, 48):
        trace = sp.replay(sp.intervals(coverage=0.9), tape.late(late))
        assert trace.usefulness() == usefulness(trace.lower, trace.upper, y, middle, delay=late)
    known = np.arange(600.0) + 1.5 + 47.0 * (np.arange(600) % 5 == 0)
    irregular = sp.Tape.from_arrays({"prediction": middle}, y, time=np.arange(600.0), known=known)
    trace = sp.replay(sp.intervals(coverage=0.9), irregular)
    most = max(trace.state.peak - 1, 1)
    verdict = trace.usefulness()
    assert 0 < verdict.rows <= usefulness(trace.lower, trace.upper, y, middle, delay=most).rows


def test_a_trace_of_spreads_is_held_against_its_centre_and_one_of_labels_against_the_frequent():
    y, middle = random_walk(400)
    one = np.ones(400)
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(0.0, 9.0))
    tape = sp.Tape.from_arrays({"centre": middle, "low": one, "high": 2 * one}, y)
    trace = sp.replay(sp.Controller(sp.sets.Scale(), risk), tape)
    assert trace.usefulness() == usefulness(trace.lower, trace.upper, y, middle)
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.full(4, 0.3), 300)
    labels = np.array([rng.choice(4, p=row) for row in p], dtype=float)
    trace = sp.replay(
        sp.label_sets(coverage=0.9), sp.Tape.from_arrays(p, labels, names=list("abcd"))
    )
    verdict = trace.usefulness()
    assert verdict == label_usefulness([len(shown) for shown in trace.shown], labels, 4)
    assert verdict.use is Use.USEFUL


def test_one_useless_stream_of_a_few_takes_the_green_away():
    y, middle = random_walk(600)
    wide = np.where(np.arange(600) < 400, 1.7, 1e6)
    streams = of_streams(middle - wide, middle + wide, y, middle, offsets=[0, 200, 400, 600])
    assert streams.trouble.tolist() == [0, 0, 2]
    verdict = streams.together()
    assert verdict.use is Use.POOR  # the others are of use, and are told of
    assert verdict.share == np.median(streams.share)
    assert verdict.words.endswith("the intervals of 1 of 3 series are useless")
    assert streams.verdict(1).use is Use.USEFUL
    many = np.concatenate([np.zeros(199), [1]])
    y, middle = np.tile(y[:100], 200), np.tile(middle[:100], 200)
    wide = np.repeat(np.where(many, 3.0 * np.ptp(y), 1.7), 100)
    verdict = usefulness(middle - wide, middle + wide, y, middle, offsets=np.arange(0, 20_001, 100))
    assert verdict.use is Use.EVEN  # it is said, and one of 200 does not decide
    assert verdict.words.endswith("the intervals of 1 of 200 series are useless")
