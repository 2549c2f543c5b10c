"""Losses: values worked by hand, and what they declare."""

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.errors import InputError
from setpoint.losses import (
    CentreFailure,
    Custom,
    Declaration,
    F1Shortfall,
    FalseNegatives,
    FalsePositives,
    ImageMiscoverage,
    Miscoverage,
    MiscoverageCounter,
    SetSize,
    declaration,
    fits,
)
from setpoint.sets import (
    Interval,
    LabelSet,
    Multilabel,
    PixelScale,
    PixelThreshold,
    ScoreWindow,
    Threshold,
    Widen,
)

INF = math.inf
SHOWN, FULL, EMPTY = Interval(1.0, 3.0), Interval(-INF, INF), Interval(INF, -INF)


def counted(counter: MiscoverageCounter, labels: list[float]) -> list[float]:
    memory, values = counter.init(), []
    for y in labels:
        value, memory = counter.update(memory, SHOWN, y)
        values.append(value)
    return values


def test_miscoverage_is_one_for_a_miss() -> None:
    loss = Miscoverage()
    assert [loss(SHOWN, y) for y in (0.9, 1.0, 2.0, 3.0, 3.1)] == [1.0, 0.0, 0.0, 0.0, 1.0]
    assert loss(FULL, 1e300) == 0.0
    assert loss(EMPTY, 0.0) == 1.0


def test_the_counter_counts_misses_in_a_row() -> None:
    labels = [5.0, 5.0, 2.0, 5.0, 5.0, 5.0, 2.0, 2.0, 5.0]
    assert counted(MiscoverageCounter(), labels) == [1, 2, 0, 1, 2, 3, 0, 0, 1]
    assert counted(MiscoverageCounter(cap=2), labels) == [1, 2, 0, 1, 2, 2, 0, 0, 1]
    assert counted(MiscoverageCounter(cap=1), labels) == [1, 1, 0, 1, 1, 1, 0, 0, 1]


@given(st.lists(st.booleans(), max_size=50), st.integers(1, 5))
def test_a_capped_counter_is_the_counter_cut_at_its_cap(misses: list[bool], cap: int) -> None:
    labels = [9.0 if missed else 2.0 for missed in misses]
    free = counted(MiscoverageCounter(), labels)
    assert counted(MiscoverageCounter(cap), labels) == [min(value, cap) for value in free]


@given(st.lists(st.booleans(), min_size=1, max_size=50))
def test_the_counter_is_never_below_miscoverage(misses: list[bool]) -> None:
    labels = [9.0 if missed else 2.0 for missed in misses]
    pairs = zip(counted(MiscoverageCounter(), labels), labels, strict=True)
    assert all(value >= Miscoverage()(SHOWN, y) for value, y in pairs)


def test_what_the_built_in_losses_declare() -> None:
    assert declaration(Miscoverage()) == Declaration(
        0.0, 1.0, 0.0, 1.0, False, noun=("miss", "misses")
    )
    assert declaration(MiscoverageCounter()) == Declaration(0.0, INF, 0.0, 1.0, False)
    assert declaration(MiscoverageCounter(cap=5)) == Declaration(0.0, 5.0, 0.0, 1.0, False)


def test_a_loss_that_declares_nothing_is_told_how() -> None:
    with pytest.raises(InputError, match=r"losses.Custom\(function, low=…, high=…\)"):
        declaration(lambda shown, y: 0.0)

    class Half:
        low = 0.0

        def __call__(self, shown: Any, y: Any) -> float:
            return 0.0

    with pytest.raises(InputError, match="and Half does not"):
        declaration(Half())


# Losses at work in a stream


def run(risk: sp.Risk, steps: list[tuple[Any, float]]) -> tuple[sp.Stream, list[Any]]:
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    values = []
    for prediction, y in steps:
        stream.predict(prediction)
        values.append(stream.update(y))
    return stream, values


def test_a_stateless_loss_of_the_users_moves_theta_by_its_excess() -> None:
    loss = Custom(lambda shown, y: min(max(y - shown.upper, 0.0) / 10.0, 1.0))
    stream, values = run(
        sp.Risk(loss, 0.1, sp.steps.Fixed(2.0)), [((0.0, 1.0), 6.0), ((0.0, 1.0), -5.0)]
    )
    assert values == [0.5, 0.0]
    assert stream.theta == pytest.approx(0.0 + 2.0 * 0.4 - 2.0 * 0.1)


@dataclass(frozen=True)
class Fading:
    """A user's loss with memory."""

    share: float
    low, high, full, empty = 0.0, 1.0, 1.0, 0.0

    def init(self) -> tuple[float, ...]:
        return (0.0,)

    def update(
        self, memory: tuple[float, ...], shown: Any, y: Any
    ) -> tuple[float, tuple[float, ...]]:
        value = self.share * memory[0] + (1.0 - self.share) * (0.0 if shown.contains(y) else 1.0)
        return value, (value,)


def test_a_users_loss_with_memory_carries_it_from_label_to_label() -> None:
    stream, values = run(
        sp.Risk(Fading(0.5), 0.5, sp.steps.Fixed(1e-9)), [((0.0, 1.0), y) for y in (9, 9, 0.5, 9)]
    )
    assert values == [0.5, 0.75, 0.375, 0.6875]
    assert stream.state.risks[0].loss == (0.6875,)


def test_a_loss_that_grows_with_the_set_is_held_from_above() -> None:
    size = Custom(lambda shown, y: min(shown.length / 10.0, 1.0), grows=True)
    risk = sp.Risk(size, 0.5, sp.steps.Fixed(1.0), bounds=(-20.0, 20.0))
    stream, values = run(risk, [((0.0, 1.0), 0.5)] * 300)
    assert values[0] == 0.1
    assert stream.theta == pytest.approx(2.0, abs=1e-6)  # 1 + 2λ = 5
    certificate = stream.certificate().risks[0]
    assert certificate.identity == pytest.approx(certificate.mean)
    assert certificate.verdict in (
        "guaranteed on both sides",
        "guaranteed: not too many misses",
    ) or "nothing" in (certificate.verdict)


def test_a_step_with_nothing_to_judge_is_skipped_and_counted() -> None:
    loss = Custom(lambda shown, y: None if y < 0 else 0.5)
    stream, values = run(
        sp.Risk(loss, 0.1, sp.steps.Fixed(1.0)), [((0.0, 1.0), y) for y in (-1.0, 1.0, -1.0)]
    )
    assert values == [None, 0.5, None]
    assert stream.theta == pytest.approx(0.4)
    certificate = stream.certificate().risks[0]
    assert (certificate.judged, certificate.unjudged, certificate.mean) == (1, 2, 0.5)
    assert not stream.pending


def test_a_step_with_nothing_to_judge_counts_as_zero_if_asked() -> None:
    loss = Custom(lambda shown, y: None if y < 0 else 0.5)
    risk = sp.Risk(loss, 0.1, sp.steps.Fixed(1.0), unjudged="zero")
    stream, values = run(risk, [((0.0, 1.0), y) for y in (-1.0, 1.0)])
    assert values == [0.0, 0.5]
    assert stream.theta == pytest.approx(-0.1 + 0.4)
    with pytest.raises(InputError, match="needs 0 in the range"):
        sp.Risk(Custom(max, 1.0, 2.0), 1.5, unjudged="zero")


def test_the_memory_of_a_loss_waits_out_a_step_with_nothing_to_judge() -> None:
    @dataclass(frozen=True)
    class Count:
        low, high, full, empty = 0.0, 100.0, 100.0, 0.0

        def init(self) -> tuple[float, ...]:
            return (0.0,)

        def update(self, memory: Any, shown: Any, y: Any) -> Any:
            return (None if y < 0 else memory[0]), (memory[0] + 1.0,)

    steps = [((0.0, 1.0), y) for y in (1.0, -1.0, 1.0)]
    stream, values = run(sp.Risk(Count(), 1.0, sp.steps.Fixed(0.1)), steps)
    assert values == [0.0, None, 1.0]
    assert stream.state.risks[0].loss == (2.0,)


# Sets of labels


WEATHER = ("fog", "hail", "rain", "wind")
several = st.sets(st.sampled_from([*WEATHER, "snow"])).map(tuple)
quarters = st.lists(st.integers(0, 4).map(lambda k: k / 4), min_size=4, max_size=4)


def weather(p: list[float], lam: float) -> tuple[Any, set[str]]:
    """The set at λ, and what is in it of all labels, "snow" being one that is not named."""
    family = Multilabel(WEATHER)
    shown = family.at(family.read(p), lam)
    chances = {**dict(zip(WEATHER, p, strict=True)), "snow": 0.0}
    return shown, {name for name, each in chances.items() if each >= -lam}


lams = st.integers(-6, 1).map(lambda k: k / 4) | st.sampled_from([INF, -INF])


@given(quarters, lams, several)
def test_losses_of_labels_are_what_they_say(p: list[float], lam: float, y: tuple[str, ...]) -> None:
    shown, held = weather(p, lam)
    true, wrong = set(y), set(WEATHER) - set(y)
    missed = None if not true else len(true - held) / len(true)
    assert FalseNegatives()(shown, y) == (None if missed is None else pytest.approx(missed))
    let_in = len(wrong & held) / len(wrong) if wrong else None
    assert FalsePositives()(shown, y) == (None if let_in is None else pytest.approx(let_in))
    assert SetSize()(shown, y) == len(held - {"snow"}) / 4
    # What is in the set: the classes in it, and of those not named the ones asked about.
    named = held - {"snow"} | (held & true)
    total = len(named) + len(true)
    f1 = None if not total else pytest.approx(1.0 - 2.0 * len(named & true) / total)
    assert F1Shortfall()(shown, y) == f1


@given(quarters, several.filter(len), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]))
def test_the_critical_value_of_false_negatives_is_the_smallest_lambda_that_keeps_the_level(
    p: list[float], y: tuple[str, ...], level: float
) -> None:
    family = Multilabel(WEATHER)
    values = family.criticals(family.read(p), y)
    critical = FalseNegatives().critical(values, level)
    tried = sorted({-INF, *values})
    kept = [lam for lam in tried if FalseNegatives()(weather(p, lam)[0], y) <= level]
    assert critical == kept[0]


def test_one_label_is_judged_as_well_as_several() -> None:
    shown = Threshold(WEATHER).at(Threshold(WEATHER).read([0.5, 0.25, 0.25, 0.0]), -0.25)
    assert [FalseNegatives()(shown, y) for y in ("fog", "wind", "snow")] == [0.0, 1.0, 1.0]
    assert [FalsePositives()(shown, y) for y in ("fog", "wind")] == [2 / 3, 1.0]
    assert FalsePositives()(shown, "snow") == 0.75
    assert [SetSize()(shown, y) for y in ("fog", "snow")] == [0.75, 0.75]
    assert F1Shortfall()(shown, "fog") == 0.5


def test_nothing_to_judge_is_none() -> None:
    family = Multilabel(WEATHER)
    shown = family.at(family.read([0.5] * 4), -0.75)
    assert FalseNegatives()(shown, ()) is None
    assert FalsePositives()(shown, WEATHER) is None
    assert F1Shortfall()(shown, ()) is None
    assert FalsePositives()(shown, ()) == 0.0
    nothing = Threshold().at(Threshold().read({}), -0.5)
    assert SetSize()(nothing, "fog") is None
    assert FalsePositives()(nothing, "fog") is None
    assert F1Shortfall()(family.at(family.read([0.5] * 4), -0.5), ()) == 1.0


def test_what_the_losses_of_labels_declare() -> None:
    labels = {"judges": LabelSet}
    found = {"judges": sp.sets.family.Selection}
    assert declaration(FalseNegatives()) == Declaration(0.0, 1.0, 0.0, 1.0, False, **found)
    assert declaration(FalsePositives()) == Declaration(0.0, 1.0, 1.0, 0.0, True, **labels)
    assert declaration(SetSize()) == Declaration(0.0, 1.0, 1.0, 0.0, True, **labels)
    assert declaration(F1Shortfall()) == Declaration(0.0, 1.0, 1.0, 1.0, False, False, **labels)
    assert declaration(Miscoverage()).monotone


@pytest.mark.parametrize(
    ("family", "loss", "why"),
    [
        (Widen(), SetSize(), "SetSize judges LabelSet, and Widen shows Interval"),
        (Widen(), FalseNegatives(), "FalseNegatives judges Selection, and Widen shows Interval"),
        (Widen(), CentreFailure(), "CentreFailure judges Pixels, and Widen shows Interval"),
        (ScoreWindow(), SetSize(), "SetSize judges LabelSet, and ScoreWindow shows Interval"),
        (Multilabel(), ImageMiscoverage(), "ImageMiscoverage judges Pixels, and Multilabel shows"),
        (Threshold(), SetSize(), None),
        (ScoreWindow(Threshold()), SetSize(), None),
        (PixelScale(), CentreFailure(), None),
        (PixelThreshold(), ImageMiscoverage(), None),
        (PixelThreshold(), FalseNegatives(), None),
        (PixelScale(), FalseNegatives(), "FalseNegatives judges Selection, and PixelScale shows"),
        (Widen(), Miscoverage(), None),
        (Widen(), Custom(max), None),
    ],
)
def test_a_loss_says_whether_it_can_judge_the_sets_of_a_family(
    family: Any, loss: Any, why: str | None
) -> None:
    sentence = fits(family, loss)
    assert sentence is None if why is None else str(sentence).startswith(why)
    if why is not None:
        with pytest.raises(InputError, match=why):
            sp.Controller(family, sp.Risk(loss, 0.1, sp.steps.Fixed(0.1)))


def test_what_a_loss_judges_is_a_class() -> None:
    class Wrong:
        low, high, judges = 0.0, 1.0, "intervals"

        def __call__(self, shown: Any, y: Any) -> float:
            return 0.0

    with pytest.raises(InputError, match=r"Wrong\.judges must be a class of sets"):
        declaration(Wrong())


@pytest.mark.parametrize("cap", [None, 5.0, 100.0])
@pytest.mark.parametrize("level", [0.0, 0.1, 1 / 9, 0.7])
@pytest.mark.parametrize("room", [0.0, 1.0, 27.2, 800.0, INF])
def test_the_counter_is_at_most_what_its_room_allows(
    cap: float | None, level: float, room: float
) -> None:
    most = MiscoverageCounter(cap).most(level, room)
    streak, total = 0.0, -level  # the hit before the streak came at the lower bound
    while total <= room + 1e-9 and streak < 200 and (cap is None or streak < cap):
        streak += 1.0
        total += streak - level
    assert most == (INF if streak == 200 else streak)


def test_set_size_is_held_from_above_and_below() -> None:
    risk = sp.Risk(SetSize(), 0.5, sp.steps.Fixed(0.05))
    stream = sp.Stream(sp.Controller(Threshold(), risk))
    sizes = []
    for step in range(400):
        stream.predict([0.4, 0.3, 0.2, 0.1])
        sizes.append(stream.update(step % 4))
    assert sum(sizes) / 400 == pytest.approx(0.5, abs=0.06)
    (claim,) = stream.certificate().risks
    assert claim.verdict == "guaranteed on both sides"
    assert claim.lower <= claim.mean - 0.5 <= claim.upper
