"""Label families against their definitions, written out class by class in exact fractions."""

from fractions import Fraction
from itertools import pairwise
from math import inf, nextafter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.losses import (
    F1Shortfall,
    FalseNegatives,
    Miscoverage,
)
from setpoint.predictions import Probabilities
from setpoint.sets import Cumulative, Multilabel, Threshold
from tests.laws.adversary import Adversary, adversaries
from tests.laws.late import play
from tests.laws.ledger import Ledger
from tests.laws.parts import LABELS, risks

UNKNOWN = 40
"""A label that no prediction here names."""


@st.composite
def probabilities(draw: Any) -> list[float]:
    """Probabilities in 64ths, whose sums no float rounds: zeros, ties and certainty are common."""
    marks = sorted(
        draw(st.lists(st.integers(0, 8).map(lambda k: 8 * k) | st.integers(0, 64), max_size=6))
    )
    return [(b - a) / 64 for a, b in pairwise([0, *marks, 64])]


several = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0.0, 1.0), max_size=6)
lams = st.integers(-160, 40).map(lambda k: k / 128) | st.sampled_from([inf, -inf, 0.0, -1.0])


def around(values: Any) -> list[float]:
    """The numbers, and the floats next to each."""
    return [each for s in values for each in (nextafter(s, -inf), s, nextafter(s, inf))]


def threshold(p: list[float], lam: float) -> set[int]:
    """{k : p_k ≥ −λ}, where a label that is not named has probability 0."""
    chance = {**dict(enumerate(p)), UNKNOWN: 0.0}
    return {k for k, each in chance.items() if each >= -lam}


def cumulative(
    p: list[float], lam: float, u: float | None = None, penalty: float = 0.0, free: int = 0
) -> set[int]:
    """The classes in order of (−p, index) whose mass before, with what is added to it, is below
    1 + λ; with a chance u, whose mass up to u of their own is at most 1 + λ.
    """
    if lam in (inf, -inf):
        return {*range(len(p)), UNKNOWN} if lam > 0 else set()
    order = sorted(range(len(p)), key=lambda k: (-p[k], k))
    found, before, budget = set(), Fraction(0), 1 + Fraction(lam)
    for rank, k in enumerate([*order, UNKNOWN], 1):
        own = Fraction(p[k]) if k != UNKNOWN else Fraction(0)
        late = before + Fraction(penalty) * max(rank - free, 0)
        if late < budget if u is None or k == UNKNOWN else late + Fraction(u) * own <= budget:
            found.add(k)
        before += own
    return found


def hold(family: Any, prediction: Any, count: int, wanted: Any, lam: float) -> None:
    """The set at λ is the one wanted, and so it is next to every critical value."""
    reading = family.read(prediction)
    labels = [*range(count), UNKNOWN]
    criticals = {k: family.critical(reading, k) for k in labels}
    before: set[int] = set()
    for at in sorted([lam, -inf, inf, *around(criticals.values())]):
        shown = family.at(reading, at)
        held = {k for k in labels if shown.contains(k)}
        assert held == wanted(at)
        assert held == {k for k in labels if at >= criticals[k] and at > -inf}
        assert before <= held
        assert set(shown.labels) == set(shown) == held - {UNKNOWN}
        assert np.flatnonzero(shown.mask).tolist() == sorted(held - {UNKNOWN})
        assert shown.size == len(shown) == len(held - {UNKNOWN})
        assert shown.full == (len(held) == count + 1)
        assert shown.empty == (not held) == (not shown)
        assert [criticals[k] for k in shown] == sorted(criticals[k] for k in shown)
        before = held
    assert family.at(reading, inf).full
    assert family.at(reading, -inf).empty


@given(probabilities(), lams)
def test_threshold_is_every_class_that_is_likely_enough(p: list[float], lam: float) -> None:
    hold(Threshold(), p, len(p), lambda at: threshold(p, at), lam)
    for k, each in enumerate(p):
        assert Threshold().critical(Threshold().read(p), k) == -each


@given(several, lams)
def test_multilabel_is_every_label_that_is_likely_enough(p: list[float], lam: float) -> None:
    family = Multilabel()
    reading = family.read(p)
    for at in (lam, *around([-each for each in p])):
        wanted, shown = threshold(p, at), family.at(reading, at)
        assert set(shown.labels) == wanted - {UNKNOWN}
        for y in ((), (UNKNOWN,), tuple(range(len(p))), tuple(range(0, len(p), 2))):
            assert shown.contains(y) == (set(y) <= wanted and at > -inf)
            assert shown.contains(y) == (at >= family.critical(reading, y))
            assert family.criticals(reading, y) == [-p[k] if k < len(p) else 0.0 for k in y]


@given(probabilities(), lams)
def test_cumulative_is_the_smallest_prefix_with_enough_mass(p: list[float], lam: float) -> None:
    hold(Cumulative(), p, len(p), lambda at: cumulative(p, at), lam)
    order = sorted(range(len(p)), key=lambda k: (-p[k], k))
    shown = Cumulative().at(Cumulative().read(p), lam)
    if -1.0 < lam <= 0.0:
        # No prefix that is shorter has enough, and this one has.
        size = shown.size
        assert sum(p[k] for k in order[:size]) >= 1.0 + lam > sum(p[k] for k in order[: size - 1])
        assert shown.labels == tuple(order[:size])


@settings(max_examples=60)
@given(probabilities(), lams, st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_randomised_cumulative_lets_the_last_class_in_by_its_chance(
    p: list[float], lam: float, u: float
) -> None:
    family = Cumulative(randomised=True)
    hold(family, Probabilities(p, u=u), len(p), lambda at: cumulative(p, at, u), lam)


@settings(max_examples=60)
@given(
    probabilities(),
    lams,
    st.sampled_from([0.125, 0.5, 2.0]),
    st.integers(0, 4),
    st.sampled_from([None, 0.0, 0.5]),
)
def test_regularised_cumulative_puts_off_the_classes_after_the_free_ones(
    p: list[float], lam: float, penalty: float, free: int, u: float | None
) -> None:
    family = Cumulative(len(p), u is not None, 0, penalty, free)
    hold(
        family,
        Probabilities(p, u=u),
        len(p),
        lambda at: cumulative(p, at, u, penalty, free),
        lam,
    )
    low, high = family.bounds()
    assert (low, high) == (-1.0, penalty * max(len(p) - free, 0))
    shown = family.at(family.read(Probabilities(p, u=u)), nextafter(high, inf))
    assert shown.size == len(p)


@settings(max_examples=40)
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8), lams)
def test_rounding_does_not_part_the_set_from_its_critical_values(
    weights: list[float], lam: float
) -> None:
    total = sum(weights)
    p = [each / total for each in weights] if total > 1e-300 else [1.0, *weights[1:]]
    for family in (Threshold(), Cumulative(), Cumulative(len(p), penalty=0.1)):
        reading = family.read(p)
        criticals = [family.critical(reading, k) for k in (*range(len(p)), UNKNOWN)]
        for at in (lam, *around(criticals)):
            shown = family.at(reading, at)
            held = [shown.contains(k) for k in (*range(len(p)), UNKNOWN)]
            assert held == [s <= at for s in criticals]
        if not isinstance(family, Threshold):
            order = sorted(range(len(p)), key=lambda k: (-p[k], k))
            assert sorted(criticals) == [criticals[k] for k in (*order, -1)]


# Names


@settings(max_examples=60)
@given(probabilities().filter(lambda p: len(p) < 6), lams, st.permutations("abcdef"))
def test_names_are_only_names(p: list[float], lam: float, letters: list[str]) -> None:
    names = tuple(letters[: len(p)])
    for plain, named in (
        (Threshold(), Threshold(names)),
        (Cumulative(), Cumulative(names)),
        (Multilabel(), Multilabel(names)),
    ):
        wanted = plain.at(plain.read(p), lam)
        mapping = dict(zip(names, p, strict=True))
        for family, prediction in (
            (named, p),
            (named, np.array(p)),
            (named, mapping),
            (named, dict(reversed(mapping.items()))),
            (plain, mapping),
            (plain, Probabilities(p, classes=names)),
            (named, Probabilities(p)),
        ):
            shown = family.at(family.read(prediction), lam)
            assert shown.labels == tuple(names[k] for k in wanted.labels)
            assert shown.contains("never seen") == wanted.contains(UNKNOWN)
            assert (shown.full, shown.empty) == (wanted.full, wanted.empty)


# Chances


def test_a_chance_belongs_to_a_seed_and_an_id() -> None:
    family = Cumulative(randomised=True, seed=3)
    found = [family.chance(id) for id in range(2000)]
    assert all(0.0 <= u < 1.0 for u in found)
    assert [family.chance(id) for id in range(2000)] == found
    assert len(set(found)) == 2000
    assert abs(np.mean(found) - 0.5) < 0.03
    assert abs(np.var(found) - 1 / 12) < 0.01
    other = Cumulative(randomised=True, seed=4)
    assert other.chance(0) != family.chance(0)
    assert family.chance("0") != family.chance(0)


@settings(max_examples=40)
@given(probabilities(), st.integers(0, 10**9) | st.text(max_size=5))
def test_asking_twice_gives_the_same_set(p: list[float], id: int | str) -> None:
    risk = sp.Risk(Miscoverage(), 0.5, sp.steps.Fixed(0.01))
    family = Cumulative(randomised=True)
    stream, twin = (sp.Stream(sp.Controller(family, risk)) for _ in range(2))
    shown = stream.predict(p, id=id)
    assert shown == twin.predict(p, id=id)
    assert shown == family.at(family.draw(family.read(p), id), stream.lam)
    assert stream.pending[id].shown == shown


# The recursion


@settings(max_examples=40)
@given(
    st.sampled_from(["threshold", "cumulative", "randomised"]),
    st.lists(st.tuples(probabilities(), st.integers(0, 7)), min_size=1, max_size=40),
    st.sampled_from([0.05, 0.3]),
    st.sampled_from([0.125, 0.5, 1.0]),
)
def test_a_stream_is_the_plain_loop(
    kind: str, rows: list[tuple[list[float], int]], level: float, gamma: float
) -> None:
    family = Threshold() if kind == "threshold" else Cumulative(randomised=kind == "randomised")
    stream = sp.Stream(sp.Controller(family, sp.Risk(Miscoverage(), level, sp.steps.Fixed(gamma))))
    theta = -level
    for serial, (p, y) in enumerate(rows):
        label = y if y < len(p) else UNKNOWN
        lam = inf if theta > 0.0 else -inf if theta < -1.0 else theta
        if kind == "threshold":
            held = threshold(p, lam)
        elif kind == "cumulative" or lam in (inf, -inf):
            held = cumulative(p, lam)
        else:
            u = family.chance(serial)
            held = {
                k
                for k in (*range(len(p)), UNKNOWN)
                if family.at(family.read(Probabilities(p, u=u)), lam).contains(k)
            }
        shown = stream.predict(Probabilities(p) if serial % 2 else p)
        assert {k for k in (*range(len(p)), UNKNOWN) if k in shown} == held
        loss = float(label not in held)
        assert stream.update(label) == loss
        theta += gamma * (loss - level)
        assert stream.theta == theta


# The guarantee


@settings(max_examples=40)
@given(st.sampled_from(LABELS), st.data(), adversaries(), st.integers(1, 40))
def test_several_risks_of_labels_are_held_from_above(
    family: Any, data: Any, adversary: tuple[str, int], steps: int
) -> None:
    losses = (Miscoverage(), FalseNegatives())
    held = [data.draw(risks(loss, (-1.0, 0.0))) for loss in losses]
    play(sp.Controller(family, held), adversary, steps, Ledger.hold_each)


@settings(max_examples=40)
@given(st.sampled_from(LABELS), st.data(), adversaries())
def test_f1_is_claimed_from_below_only_and_that_is_true(
    family: Any, data: Any, adversary: tuple[str, int]
) -> None:
    level = data.draw(st.sampled_from([0.1, 0.5, 1.0]))
    risk = data.draw(risks(F1Shortfall(), (-1.0, -0.25), level))
    (claim,) = play(sp.Controller(family, risk), adversary, 40).certificate.risks
    assert (claim.upper is None) == (level < 1.0)
    assert all(premise.holds for premise in claim.premises) == (level == 1.0)
    assert "no guarantee" in claim.verdict or claim.constant_lower is not None


@settings(max_examples=40)
@given(adversaries(), st.integers(1, 80))
def test_false_negatives_hold_whatever_rows_have_nothing_to_judge(
    adversary: tuple[str, int], steps: int
) -> None:
    risk = sp.Risk(FalseNegatives(), 0.1, sp.steps.Fixed(0.25))
    stream = sp.Stream(sp.Controller(Multilabel(), risk))
    player, ledger = Adversary(stream.controller, *adversary), Ledger(stream)
    nothing = 0
    for step in range(steps):
        shown = stream.predict(player.prediction())
        y = () if step % 3 == 0 else player.label(stream, shown)
        nothing += not y
        ledger.note(stream.update(y))
        ledger.hold_one()
    ledger.hold_windows()
    (claim,) = stream.certificate().risks
    assert (claim.unjudged, claim.judged) == (nothing, steps - nothing)
    if claim.judged:
        assert abs(claim.identity - claim.mean) <= 1e-9


@settings(max_examples=40)
@given(st.data(), adversaries(), st.sampled_from([0.1, 0.4]))
def test_the_stretch_is_told_the_lambda_that_would_have_kept_the_level(
    data: Any, adversary: tuple[str, int], level: float
) -> None:
    """Score adaptive stretching of false negatives, against the loop written out."""
    stretch = sp.stretches.ScoreAdaptive(0.5, -0.3, 0.3)
    risk = sp.Risk(FalseNegatives(), level, sp.steps.Fixed(0.05))
    stream = sp.Stream(sp.Controller(Multilabel(), risk, stretch))
    player, offset, theta = Adversary(stream.controller, *adversary), 0.0, -level
    for _ in range(30):
        p = [data.draw(st.integers(0, 8)) / 8 for _ in range(3)]
        shown = stream.predict(p)
        y = player.label(stream, shown)
        lam = inf if theta > 0.0 else -inf if theta < -1.0 else theta + offset
        assert stream.info is None or stream.pending[next(iter(stream.pending))].lam == lam
        value = stream.update(y)
        if not y:
            assert value is None
            continue
        scores = [-p[k] if k < 3 else 0.0 for k in y]
        missed = sum(s > lam for s in scores)
        assert value == 1.0 - (len(y) - missed) / len(y)
        if lam not in (inf, -inf):
            enough = [s for s in sorted(scores) if sum(t > s for t in scores) / len(y) <= level]
            offset = min(max(offset + 0.5 * enough[0], -0.3), 0.3)
        theta += 0.05 * (value - level)
        assert stream.theta == theta
