"""Score windows: a brute-force window, adaptive conformal inference as its authors wrote it, and
everything a stream does with a memory.
"""

import copy
import itertools
import math
import pickle
from fractions import Fraction
from math import ceil, inf, nan, nextafter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.errors import InputError
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.sets import (
    Cumulative,
    Interval,
    Lower,
    Multilabel,
    Nested,
    QuantileScale,
    Scale,
    ScoreWindow,
    Threshold,
    TwoSided,
    Widen,
)
from tests.laws.adversary import adversaries
from tests.laws.late import play
from tests.laws.ledger import Ledger
from tests.laws.parts import SCORES, risks

eighths = st.integers(-40, 40).map(lambda k: k / 8)
scores = st.lists(st.sampled_from([0.0, 1.0, 1.0, -2.0]) | eighths, max_size=40)
shares = st.integers(-80, 20).map(lambda k: k / 64) | st.floats(-1.2, 0.2)
lams = shares | st.sampled_from([0.0, -1.0, inf, -inf])


def nearly_whole(value: Fraction) -> bool:
    """Whether rounding can decide about the rank."""
    return value.denominator != 1 and abs(value - round(value)) < Fraction(1, 10**12)


def reach(past: list[float], lam: float) -> float:
    """The ⌈(1 + λ)(n + 1)⌉-th smallest of the past scores; ±inf beyond the ends."""
    if lam in (inf, -inf):
        return lam
    rank = ceil((1 + Fraction(lam)) * (len(past) + 1))
    if rank < 1:
        return -inf
    return inf if rank > len(past) else sorted(past)[rank - 1]


def decided(past: list[float], lam: float) -> bool:
    return lam in (inf, -inf) or not nearly_whole((1 + Fraction(lam)) * (len(past) + 1))


@given(scores, st.integers(1, 40), lams, eighths)
def test_the_set_is_every_y_up_to_that_score(
    past: list[float], size: int, lam: float, y: float
) -> None:
    family = ScoreWindow(size=size).bind(past)
    past = past[-size:]
    assert family.memory == tuple(past)
    if decided(past, lam):
        limit = reach(past, lam)
        assert family.at((-1.0, 2.0), lam) == Widen().at((-1.0, 2.0), limit)
        assert family.at((-1.0, 2.0), lam).contains(y) == (max(-1.0 - y, y - 2.0) <= limit > -inf)


@given(scores, lams, eighths)
def test_y_is_in_exactly_from_its_critical_value_on(
    past: list[float], lam: float, y: float
) -> None:
    family = ScoreWindow(size=50).bind(past)
    prediction, score = (-1.0, 2.0), max(-1.0 - y, y - 2.0)
    critical = family.critical(prediction, y)
    wanted = Fraction(sum(each < score for each in past), len(past) + 1) - 1
    assert abs(Fraction(critical) - wanted) <= Fraction(1, 2**52)
    if len(past) + 1 in (1, 2, 4, 8, 16, 32):  # where nothing is rounded: open at that very share
        assert critical == nextafter(float(wanted), inf)
    for at in (lam, critical, nextafter(critical, -inf), nextafter(critical, inf), -inf, inf):
        assert family.at(prediction, at).contains(y) == (at >= critical)
    assert -1.0 < critical < 0.0


@given(scores, lams, lams)
def test_a_larger_lam_gives_a_larger_set(past: list[float], first: float, second: float) -> None:
    family = ScoreWindow(size=50).bind(past)
    small, large = (family.at((0.0, 1.0), lam) for lam in sorted((first, second)))
    assert small.empty or large.lower <= small.lower <= small.upper <= large.upper


@given(
    st.sampled_from([Threshold(), Cumulative(), Multilabel(), Scale(), Lower(), QuantileScale()]),
    st.integers(0, 2**32 - 1),
    shares,
)
def test_every_family_can_give_the_scores(family: Any, seed: int, lam: float) -> None:
    rng = Random(seed)
    window = ScoreWindow(family, 15)
    bound, past = window.bind(), []

    def row() -> tuple[Any, Any]:
        marks = sorted(rng.choices(range(9), k=2))
        p = [marks[0] / 8, (marks[1] - marks[0]) / 8, (8 - marks[1]) / 8]
        y = rng.randint(-16, 16) / 8
        match family:
            case Multilabel():
                return p, tuple(k for k in range(4) if rng.random() < 0.5)
            case Threshold() | Cumulative():
                return p, rng.randint(0, 3)
            case Scale():
                return (0.0, 0.5, 2.0), y
            case QuantileScale():
                return (lambda level: 4.0 * level - 2.0), y
            case _:
                return rng.randint(-8, 8) / 8, y

    for _ in range(rng.choice([3, 15, 40])):
        prediction, y = row()
        reading, label = window.read(prediction), window.label(y)
        if decided(past, lam):
            limit = reach(past, lam)
            shown = bound.at(reading, lam)
            assert shown == family.at(reading, limit)
            assert shown.contains(label) == (lam >= bound.critical(reading, label))
        bound.observe(bound.weigh(reading, label))
        past = [*past, family.critical(reading, label)][-15:]
    assert bound.memory == tuple(past)


# Adaptive conformal inference


class Aci:
    """Gibbs and Candès 2021: α_t, the empirical quantile of the last scores, nothing clipped."""

    def __init__(self, alpha: float, gamma: float, size: int) -> None:
        self.target, self.gamma, self.size = alpha, gamma, size
        self.alpha = alpha
        self.past: list[float] = []

    def limit(self) -> float:
        if self.alpha <= 0.0:
            return inf
        if self.alpha >= 1.0:
            return -inf
        return reach(self.past, -self.alpha)

    def learn(self, score: float, limit: float) -> float:
        error = 0.0 if score <= limit else 1.0
        self.alpha = self.alpha + self.gamma * (self.target - error)
        self.past = [*self.past, score][-self.size :]
        return error


@given(
    st.lists(eighths, min_size=1, max_size=80),
    st.sampled_from([0.9, 0.75, 0.5]),
    st.sampled_from([0.005, 0.25, 1.5]),
    st.sampled_from([1, 3, 20, 500]),
)
def test_aci_is_the_loop_of_its_authors(
    labels: list[float], coverage: float, gamma: float, size: int
) -> None:
    controller = sp.published.aci(coverage, gamma=gamma, size=size)
    level = round(1.0 - coverage, 12)
    stream, loop = sp.Stream(controller), Aci(level, gamma, size)
    for y in labels:
        if not decided(loop.past, -loop.alpha):
            return
        limit = loop.limit()
        shown = stream.predict(0.5)
        wanted = Interval(0.5 - limit, 0.5 + limit) if limit > -inf else Interval(inf, -inf)
        assert shown == wanted
        assert stream.update(y) == loop.learn(abs(y - 0.5), limit)
        assert stream.theta == -loop.alpha


def test_theta_is_not_clipped() -> None:
    stream = sp.Stream(sp.published.aci(0.5, gamma=2.0, size=5))
    seen = []
    for y in (0.0, 9.0, 0.0, 9.0, 99.0, 0.0, 0.0, 999.0):
        stream.predict(0.0)
        stream.update(y)
        seen.append(stream.theta)
    assert min(seen) < -1.0
    assert max(seen) > 0.0
    (risk,) = stream.certificate().risks
    assert abs(risk.identity - risk.mean) < 1e-12


# Labels as they come


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 4, 12]))
def test_the_window_learns_in_the_order_of_the_labels(seed: int, size: int) -> None:
    rng = Random(seed)
    risk = sp.Risk(Miscoverage(), 0.25, sp.steps.Fixed(0.125))
    stream = sp.Stream(sp.Controller(ScoreWindow(size=size), risk), missing="skip")
    past: list[float] = []
    waiting: dict[int, tuple[float, Interval]] = {}
    theta = -0.25
    for serial in range(60):
        lam = inf if theta > 0.0 else -inf if theta < -1.0 else theta
        point = rng.randint(-8, 8) / 8
        shown = stream.predict(point, id=serial)
        if decided(past, lam):
            assert shown == Widen().at((point, point), reach(past, lam))
        waiting[serial] = point, shown
        while waiting and rng.random() < 0.6:
            id = rng.choice(list(waiting))
            point, held = waiting.pop(id)
            if rng.random() < 0.2:
                assert stream.update(nan, id) is None
                continue
            y = rng.randint(-24, 24) / 8
            loss = stream.update(y, id)
            assert loss == float(not held.lower <= y <= held.upper)
            past = [*past, abs(y - point)][-size:]
            theta += 0.125 * (loss - 0.25)
            assert stream.theta == theta
            assert stream.state.sets.memory == tuple(past)


def rows(count: int, seed: int = 0) -> list[tuple[tuple[float, float], float]]:
    rng = np.random.default_rng(seed)
    lower, y = rng.normal(size=count), rng.normal(scale=2.0, size=count)
    return [
        ((low, low + 1.0), label) for low, label in zip(lower.tolist(), y.tolist(), strict=True)
    ]


def run(stream: sp.Stream, steps: Any) -> list[Any]:
    found = []
    for prediction, y in steps:
        shown = stream.predict(prediction)
        found.append((tuple(shown), stream.update(y), stream.theta))
    return found


def window_stream(size: int = 20, **options: Any) -> sp.Stream:
    risk = sp.Risk(Miscoverage(), 0.2, sp.steps.Fixed(0.05))
    return sp.Stream(sp.Controller(ScoreWindow(size=size), risk), **options)


@pytest.mark.parametrize("at", [0, 1, 7, 19, 20, 55])
@pytest.mark.parametrize("how", ["save", "pickle", "deepcopy", "state"])
def test_a_window_goes_on_to_the_bit(at: int, how: str, tmp_path: Path) -> None:
    steps = rows(90)
    whole, stream = run(window_stream(), steps), window_stream()
    run(stream, steps[:at])
    if how == "save":
        stream.save(tmp_path / "stream")
        other = sp.Stream.load(tmp_path / "stream")
    elif how == "pickle":
        other = pickle.loads(pickle.dumps(stream))
    elif how == "deepcopy":
        other = copy.deepcopy(stream)
    else:
        other = sp.Stream(stream.controller, state=stream.state)
    held = stream.state.sets.memory
    assert run(other, steps[at:]) == whole[at:]
    assert stream.state.sets.memory == held  # nothing is shared
    assert run(stream, steps[at:]) == whole[at:]


# Tapes


def tape_of(steps: Any, ids: Any = None) -> sp.Tape:
    lower, upper = (np.array([step[0][side] for step in steps]) for side in (0, 1))
    return sp.Tape.from_arrays((lower, upper), np.array([y for _, y in steps]), series=ids)


def test_a_replay_is_the_live_stream_to_the_bit() -> None:
    steps = rows(300)
    for place in (0, 3, 50, 51, 299):
        steps[place] = (steps[place][0], nan)
    stream = window_stream(missing="skip")
    lower, upper, losses, thetas = [], [], [], []
    for prediction, y in steps:
        thetas.append(stream.theta)
        shown = stream.predict(prediction)
        loss = stream.update(y)
        lower.append(shown.lower)
        upper.append(shown.upper)
        losses.append(nan if loss is None else loss)
    trace = sp.replay(stream.controller, tape_of(steps))
    assert trace.lower.tolist() == lower
    assert trace.upper.tolist() == upper
    assert np.array_equal(trace.losses[0], losses, equal_nan=True)
    assert trace.theta[0].tolist() == thetas
    assert trace.state.sets.memory == stream.state.sets.memory
    assert trace.state.risks[0].theta == stream.theta
    assert trace.state.missing == 5


# The guarantee


@settings(max_examples=40)
@given(st.sampled_from(SCORES), st.data(), adversaries(), st.integers(1, 40))
def test_several_risks_share_a_window(
    family: Any, data: Any, adversary: tuple[str, int], steps: int
) -> None:
    held = [
        data.draw(risks(loss, (-1.0, 0.0))) for loss in (Miscoverage(), MiscoverageCounter(cap=2.0))
    ]
    taken = itertools.count(1)

    def check(ledger: Ledger) -> None:
        ledger.hold_each()  # and a window takes one score a label, not one a risk
        assert len(ledger.stream.state.sets.memory) == min(next(taken), 7)

    play(sp.Controller(ScoreWindow(family, 7), held), adversary, steps, check)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size must be a whole number of at least 1, got 0"),
        ({"size": 2.5}, "size must be a whole number of at least 1, got 2.5"),
        ({"scores": Widen}, "scores must be a family of sets, got <class"),
        ({"scores": 3.0}, "scores must be a family of sets, got 3.0"),
        ({"scores": ScoreWindow()}, "scores must be a family without a window, got ScoreWindow"),
        ({"scores": TwoSided()}, "scores must be a family without several members, got TwoSided"),
        ({"scores": Nested()}, "scores must be a family without several members, got Nested"),
        (
            {"scores": Cumulative(randomised=True)},
            "scores must be a family without chances, got Cumulative",
        ),
    ],
)
def test_a_wrong_window_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ScoreWindow(**options)


def test_scores_of_minus_infinity_are_in_from_the_first_rank_on() -> None:
    family = ScoreWindow(Scale(), 5).bind()
    for y in (5.0, 5.0, 6.0):
        family.observe(family.weigh((5.0, 0.0, 0.0), y))  # 0/0 is −inf, 1/0 is +inf
    critical = family.critical((5.0, 0.0, 0.0), 5.0)
    for lam in (critical, -0.9, -0.5, -0.1):
        assert family.at((5.0, 0.0, 0.0), lam).contains(5.0)
    assert not family.at((5.0, 0.0, 0.0), nextafter(critical, -inf)).contains(5.0)
    assert math.isfinite(critical)
