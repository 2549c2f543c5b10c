"""The protocol on one tape, against loops written out by hand."""

from dataclasses import replace
from math import exp, inf, isnan

import numpy as np
import pytest

from setpoint.errors import InputError
from setpoint.tape import Tape
from setpoint_paper.tabular.authors import CODED, Coded, run
from setpoint_paper.tabular.measures import Judge
from setpoint_paper.tabular.methods import (
    CLIPPED,
    LEVELS,
    METHODS,
    Protocol,
    clipped_cal,
    controller,
)
from setpoint_paper.tabular.protocol import calibrate, step_sizes

SMALL = Protocol(begin=150, tuned=400, gammas=(0.05, 0.3), budget=4, window=40)


@pytest.fixture(scope="module")
def tape():
    random = np.random.default_rng(5)
    loud = np.where(np.arange(1000) // 250 % 2 == 1, 3.0, 1.0)
    centre = 50.0 + 10.0 * np.sin(np.arange(1000) / 30.0)
    y = centre + 4.0 * loud * random.standard_normal(1000)
    return Tape.from_arrays([centre - 5.0, centre + 5.0], y, group=np.arange(1000) // 24 % 7)


@pytest.fixture(scope="module")
def rows(tape):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SETPOINT_PLAIN", "1")
        return calibrate(tape, "made", 7, SMALL)


def taken(rows, **options):
    (found,) = [row for row in rows if all(getattr(row, k) == v for k, v in options.items())]
    return found


def pinball(low, high, y):
    def one(end, level):
        return level * (y - end) if y > end else (1.0 - level) * (end - y)

    return (one(low, 0.05) + one(high, 0.95)) / 2.0


def told(found):
    """Coverage, MC and MSL of a list of hits."""
    counter, counters, streaks = 0, [], []
    for hit in found:
        if hit and counter:
            streaks.append(counter)
        counter = 0 if hit else counter + 1
        counters.append(counter)
    streaks += [counter] if counter else []
    return sum(found) / len(found), sum(counters) / len(found), sum(streaks) / len(streaks)


def by_hand(tape, row, widen):
    """One run written out: `widen(t, theta, score)` says by how much, and hears of each score."""
    first = tape.y[: SMALL.begin]
    centre, spread = float(first.mean()), float(first.std())
    lower, upper, y = ((np.asarray(c) - centre) / spread for c in (*tape.prediction, tape.y))
    level, counter = LEVELS[row.risk], 0
    theta = -level if row.method.startswith("cal") else 0.0
    hits, losses, balls, lengths, lams = [], [], [], [], []
    for t in range(SMALL.begin, len(y)):
        lam, learn = widen(theta)
        lams.append(lam)
        low, high = lower[t] - lam, upper[t] + lam
        if lam == inf:
            low, high = y[:t].min(), y[:t].max()
        hit = lam == inf or low <= y[t] <= high
        counter = 0 if hit else counter + 1
        loss = counter if row.risk == "mc" else float(not hit)
        learn(max(lower[t] - y[t], y[t] - upper[t]), lam, loss - level)
        theta += row.gamma * (loss - level)
        hits.append(bool(hit))
        losses.append(loss)
        balls.append(spread * pinball(low, high, y[t]))
        lengths.append(spread * max(high - low, 0.0))
    cut = SMALL.tuned - SMALL.begin
    finite = [length for length, lam in zip(lengths[cut:], lams[cut:], strict=True) if lam < inf]
    coverage, mc, msl = told(hits[cut:])
    return {
        "tuning": sum(balls[:cut]) / cut,
        "pinball": sum(balls[cut:]) / len(balls[cut:]),
        "coverage": coverage,
        "mc": mc,
        "msl": msl,
        "length": sum(lengths[cut:]) / len(lengths[cut:]),
        "finite_length": sum(finite) / len(finite),
        "full": 1.0 - len(finite) / len(lengths[cut:]),
        "mean": sum(losses) / len(losses),
    }


def agree(row, expected):
    assert {name: getattr(row, name) for name in expected} == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("risk", list(LEVELS))
@pytest.mark.parametrize("gamma", SMALL.gammas)
def test_no_stretching_is_the_loop_by_hand(tape, rows, risk, gamma):
    row = taken(rows, risk=risk, method="none", gamma=gamma)
    agree(row, by_hand(tape, row, lambda theta: (theta, lambda *_: None)))


@pytest.mark.parametrize("risk", list(LEVELS))
@pytest.mark.parametrize("method", ["error", "score", "error_exponential", "score_exponential"])
def test_adaptive_stretching_is_the_loop_by_hand(tape, rows, risk, method):
    row = taken(rows, risk=risk, method=method, gamma=0.3)
    clip = float(np.abs(np.diff(tape.y[SMALL.begin : SMALL.tuned])).mean())
    clip /= float(tape.y[: SMALL.begin].std())
    memory = [0.0]

    def learn(score, lam, excess):
        growth = exp(row.beta_loss * abs(excess)) if method.startswith("error") else 1.0
        memory[0] = min(max(memory[0] + row.beta_score * growth * score, -clip), clip)

    def stretched(theta):
        bent = method not in ("error", "score")
        inner = np.sign(theta) * (exp(abs(theta)) - 1.0) if bent else theta
        return float(inner) + memory[0], learn

    agree(row, by_hand(tape, row, stretched))
    assert 0.01 <= row.beta_score <= 0.4
    if method.startswith("error"):
        assert 0.01 <= row.beta_loss <= 0.2
    else:
        assert isnan(row.beta_loss)


@pytest.mark.parametrize("risk", list(LEVELS))
@pytest.mark.parametrize("method", list(CODED))
def test_the_authors_code_is_the_loop_by_hand(tape, rows, risk, method):
    """From the rows judged on, θ = 0, the nearer end of sets that may have crossed."""
    row, coded = taken(rows, risk=risk, method=method, gamma=0.3), CODED[method]
    first = tape.y[: SMALL.begin]
    centre, spread = float(first.mean()), float(first.std())
    lower, upper, y = ((np.asarray(c) - centre) / spread for c in (*tape.prediction, tape.y))
    clip = float(np.abs(np.diff(y[SMALL.begin : SMALL.tuned])).mean())
    theta = memory = 0.0
    streak, hits, balls, lengths = 0, [], [], []
    for t in range(SMALL.tuned, len(y)):
        inner = theta
        if coded.exponential:
            inner = exp(theta) - 1.0 if theta > 0.0 else 1.0 - exp(-theta)
        low, high = lower[t] - inner - memory, upper[t] + inner + memory
        hit = low <= y[t] <= high
        streak = 0 if hit else min(streak + 1, 39)
        excess = (streak if risk == "mc" else float(not hit)) - LEVELS[risk]
        theta += row.gamma * excess
        if coded.adaptive:
            moved = row.beta_score * min(abs(low - y[t]), abs(high - y[t])) * np.sign(excess)
            if coded.adaptive == "error":
                moved *= exp(row.beta_loss * abs(excess))
            memory = min(max(memory + moved, -clip), clip)
        hits.append(bool(hit))
        balls.append(spread * pinball(low, high, y[t]))
        lengths.append(spread * max(high - low, 0.0))
    coverage, mc, msl = told(hits)
    agree(
        row,
        {
            "pinball": sum(balls) / len(balls),
            "coverage": coverage,
            "mc": mc,
            "msl": msl,
            "length": sum(lengths) / len(lengths),
        },
    )
    assert (row.within, row.steps) == (False, len(hits))
    if coded.adaptive:
        assert 0.01 <= row.beta_score <= 0.4
        assert row.beta_loss <= 2.0


def test_the_authors_form_searches_beta_of_the_loss_in_their_wider_range(rows):
    """[0.1, 2.0] in their code, [0.1, 0.2] in the paper: the search does go beyond 0.2."""
    assert max(row.beta_loss for row in rows if row.method == "error_coded") > 0.2


def test_ends_that_crossed_are_kept_as_in_their_code(monkeypatch):
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    # A hit shrinks the next set so far that its ends cross; it misses every label.
    tape = Tape.from_arrays([np.full(40, -0.2), np.full(40, 0.2)], np.full(40, 0.05))
    shown = run(Coded("score"), tape, "coverage", 3.0, (0.3, 0.0), 1.0)
    first = int(np.argmax(shown.lower > shown.upper))
    assert shown.lower[first] > shown.upper[first]
    assert not shown.covered[first]


def test_a_compiled_loop_of_their_code_is_the_plain_one(tape, monkeypatch):
    asked = (CODED["error_exponential_coded"], tape, "mc", 0.1, (0.2, 0.7), 0.5)
    fast = run(*asked)
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    plain = run(*asked)
    assert np.allclose(fast.theta, plain.theta, rtol=1e-12)
    assert np.allclose(fast.upper, plain.upper, rtol=1e-12)


def test_streaks_and_groups_are_measured(tape, rows):
    """Of a step so small that the intervals stay the model's own."""
    (row,) = step_sizes(tape, (1e-12,), 0, SMALL)
    lower, upper = (np.asarray(column) for column in tape.prediction)
    hits = ((lower <= tape.y) & (tape.y <= upper))[SMALL.tuned :]
    coverage, mc, msl = told(hits.tolist())
    assert (row.coverage, row.mc, row.msl) == pytest.approx((coverage, mc, msl))
    assert row.length == pytest.approx(10.0)
    assert row.longest == max(len(p) for p in "".join("01"[int(h)] for h in hits).split("1"))
    for key, groups in (("delta_modulo", np.arange(600) % 7), ("delta", tape.group[SMALL.tuned :])):
        away = [abs(hits[groups == day].mean() - 0.9) for day in range(7)]
        assert getattr(row, key) == pytest.approx(sum(away) / 7)
    assert 0.0 < row.floor < 0.05


@pytest.mark.parametrize("risk", list(LEVELS))
def test_calibration_with_cal_is_the_loop_by_hand(tape, rows, risk):
    row = taken(rows, risk=risk, method="cal", gamma=0.05)
    scores = []

    def widen(theta):
        past = sorted(scores[-40:])
        rank = sum(below / (len(past) + 1) - 1.0 < theta for below in range(len(past) + 1))
        assert rank > 0
        lam = inf if rank > len(past) else past[rank - 1]
        return lam, lambda score, *_: scores.append(score)

    agree(row, by_hand(tape, row, widen))
    assert row.full > 0.0


@pytest.mark.parametrize("gamma", SMALL.gammas)
def test_the_authors_form_of_cal_is_the_loop_by_hand(tape, rows, gamma):
    row = taken(rows, method=CLIPPED, gamma=gamma)
    scores = []

    def widen(theta):
        past = scores[-40:]
        share = min(1.0, max(0.0, 1.0 + theta + 1.0 / len(past))) if past else 0.0
        lam = float(np.quantile(past, share)) if past else 0.0
        return lam, lambda score, *_: scores.append(score)

    agree(row, by_hand(tape, row, widen))
    assert (row.risk, row.full, row.guarded, row.within) == ("coverage", 0.0, 0, False)
    assert row.gap < 1e-12
    assert isnan(row.low)
    assert isnan(row.high)


def test_the_authors_form_of_cal_never_shows_a_full_set_where_the_unclipped_one_does():
    y = np.arange(60.0) ** 2  # scores grow for ever: every label but the first is missed
    tape = Tape.from_arrays([y * 0.0, y * 0.0], y)
    run = clipped_cal(tape, 0.5, 20)
    assert run.covered.tolist() == [True] + [False] * 59
    assert np.isfinite(run.upper).all()
    assert run.upper[-1] == y[-2]
    assert run.theta[-1] > 0.0


def test_every_run_keeps_its_promises(rows):
    ran = [row for row in rows if row.method in METHODS]
    assert len(ran) == len(LEVELS) * len(METHODS) * len(SMALL.gammas)
    assert sum(row.method == CLIPPED for row in rows) == len(SMALL.gammas)
    assert sum(row.method in CODED for row in rows) == 2 * len(CODED) * len(SMALL.gammas)
    for row in ran:
        assert row.within
        assert row.gap < 1e-12
        assert row.low <= row.mean - LEVELS[row.risk] <= row.high
        assert row.coverage >= 1.0 - row.mc - 1e-12


def test_at_full_length_the_certificate_says_something():
    told = Protocol()
    for method in METHODS:
        for risk, level in LEVELS.items():
            (one,) = controller(method, risk, min(told.gammas), told, 0.5).risks
            low, high = one.bounds or (-1.0, 0.0)
            assert (high - low) / (min(told.gammas) * 15_000) < level


def test_nothing_after_the_tuned_rows_chooses_anything(tape, rows, monkeypatch):
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    y = tape.y.copy()
    y[SMALL.tuned :] = 500.0 - 3.0 * y[SMALL.tuned :]
    other = calibrate(Tape.from_arrays(tape.prediction, y, group=tape.group), "made", 7, SMALL)

    def choices(found):
        names = ("method", "risk", "gamma", "beta_score", "beta_loss", "tuning")
        return [[str(getattr(row, name)) for name in names] for row in found]

    assert choices(other) == choices(rows)
    assert [row.pinball for row in other] != [row.pinball for row in rows]


def test_units_of_y_change_lengths_and_nothing_else(tape, rows, monkeypatch):
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    # Powers of two keep every rounding as it was.
    columns = [1024.0 * np.asarray(column) for column in tape.prediction]
    large = calibrate(
        Tape.from_arrays(columns, 1024.0 * tape.y, group=tape.group), "made", 7, SMALL
    )
    for small, big in zip(rows, large, strict=True):
        assert big.length == 1024.0 * small.length
        assert big.tuning == 1024.0 * small.tuning
        assert (big.coverage, big.mc, big.msl) == (small.coverage, small.mc, small.msl)


def test_full_and_empty_sets_have_a_length():
    lower, upper, y = (
        [9.0, 9.0, 0.0, 2.0, 4.0],
        [9.0, 9.0, 1.0, 4.0, 8.0],
        [3.0, 1.0, 4.0, 0.0, 5.0],
    )
    judge = Judge(Tape.from_arrays([lower, upper], y), "made", 0, Protocol(2, 4, scale_rows=4))
    tape = judge.part
    spread, centre = judge.scale.spread, judge.scale.centre
    ends = judge.finite(np.array([-inf, inf, 0.1]), np.array([inf, -inf, 0.2]))
    low, high = (centre + spread * end for end in ends)
    # The full set reaches over the labels before it; the empty one is the middle of 2 and 4.
    assert low[:2].tolist() == pytest.approx([1.0, 3.0])
    assert high[:2].tolist() == pytest.approx([3.0, 3.0])
    assert (ends[0][2], ends[1][2], len(tape)) == (0.1, 0.2, 3)


def test_a_larger_step_makes_longer_intervals_and_shorter_streaks(tape, monkeypatch):
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    small, large = step_sizes(tape, (0.01, 3.0), 0, SMALL)
    assert large.length > small.length
    assert large.msl < small.msl


def test_the_unit_of_theta_can_be_that_of_more_rows(tape, monkeypatch):
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    usual, wide = (
        step_sizes(tape, (0.1,), 0, each) for each in (SMALL, replace(SMALL, scale_rows=400))
    )
    factor = float(tape.y[:400].std() / tape.y[:150].std())
    assert abs(factor - 1.0) > 0.01
    # The same step in the unit of y, but for the bounds, which are never reached.
    (same,) = step_sizes(tape, (0.1 * factor,), 0, SMALL)
    assert wide[0].length == pytest.approx(same.length, rel=1e-9)
    assert wide[0].length != pytest.approx(usual[0].length, rel=1e-6)


def test_what_cannot_run_is_refused(tape):
    with pytest.raises(InputError, match="judges rows after 8000, the tape has 1000"):
        calibrate(tape, "made", 0)
