"""Stretching functions: values worked by hand for each formula and reading."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError
from setpoint.stretches import (
    ErrorAdaptive,
    Exponential,
    Identity,
    ScoreAdaptive,
    clip_bounds,
    error_paper,
    shifted_identity,
)

NAN = math.nan


def phi(stretch: Any, theta: float, memory: tuple[float, ...] | None = None) -> float:
    value: float = stretch.phi(stretch.params, stretch.init() if memory is None else memory, theta)
    return value


def moved(stretch: Any, memory: float, excess: float, score: float, lam: float) -> float:
    (value,) = stretch.move(stretch.params, (memory,), excess, score, lam)
    return float(value)


@pytest.mark.parametrize("theta", [-3.0, 0.0, 2.5, 1e300])
def test_identity_is_theta(theta: float) -> None:
    assert phi(Identity(), theta) == Identity().inverse(theta) == theta
    assert Identity().init() == ()
    assert Identity().move is None


@pytest.mark.parametrize(
    ("theta", "lam"),
    [(0.0, 0.0), (1.0, math.e - 1.0), (-1.0, 1.0 - math.e), (-2.0, 1.0 - math.e**2)],
)
def test_exponential_is_sign_times_e_to_the_size_minus_one(theta: float, lam: float) -> None:
    assert phi(Exponential(), theta) == pytest.approx(lam)
    assert Exponential().inverse(lam) == pytest.approx(theta, abs=1e-7)


def test_exponents_are_clamped_at_709() -> None:
    largest = math.expm1(709.0)
    assert [phi(Exponential(), theta) for theta in (709.0, 710.0, 1e300)] == [largest] * 3
    assert [phi(Exponential(), theta) for theta in (-709.0, -710.0, -1e300)] == [-largest] * 3
    assert Exponential().inverse(math.inf) == 709.0
    assert Exponential().inverse(-math.inf) == -709.0
    assert Exponential().inverse(1.7e308) == 709.0


def test_an_adaptive_stretch_adds_its_memory() -> None:
    plain = ScoreAdaptive(0.1, -1.0, 1.0)
    grown = ErrorAdaptive(0.1, 0.2, -1.0, 1.0, Exponential())
    assert phi(plain, 2.0, (0.5,)) == 2.5
    assert phi(grown, 1.0, (0.5,)) == pytest.approx(math.e - 0.5)
    assert plain.inverse(2.5, (0.5,)) == 2.0
    assert grown.inverse(math.e - 0.5, (0.5,)) == pytest.approx(1.0)
    assert plain.init() == grown.init() == (0.0,)


# memory ← clip(memory + β·s): the paper, with the plus sign


@pytest.mark.parametrize(
    ("memory", "score", "wanted"),
    [(0.0, 2.0, 0.2), (0.0, -2.0, -0.2), (0.5, 2.0, 0.7), (0.95, 2.0, 1.0), (-0.9, -5.0, -1.0)],
)
def test_score_adaptive_as_the_paper_reads(memory: float, score: float, wanted: float) -> None:
    stretch = ScoreAdaptive(0.1, -1.0, 1.0)
    for excess, lam in ((0.9, 0.0), (-0.1, 3.0), (0.0, -1.0)):
        assert moved(stretch, memory, excess, score, lam) == pytest.approx(wanted)


def test_a_miss_widens_the_next_set() -> None:
    """The printed minus would shrink it; see docs/paper-map.md."""
    for stretch in (ScoreAdaptive(0.1, -1.0, 1.0), ErrorAdaptive(0.1, 0.1, -1.0, 1.0)):
        assert moved(stretch, 0.0, 0.9, 2.0, 0.0) > 0.0
        assert moved(stretch, 0.0, -0.1, -2.0, 0.0) < 0.0


# memory ← clip(memory + β·sign(l − r)·|s − λ|): the authors' code


@pytest.mark.parametrize(
    ("memory", "excess", "score", "lam", "wanted"),
    [
        (0.0, 0.9, 2.0, 0.5, 0.15),
        (0.0, -0.1, 2.0, 0.5, -0.15),
        (0.0, -0.1, -2.0, 0.5, -0.25),
        (0.3, 0.0, 2.0, 0.5, 0.3),
        (0.9, 0.9, 5.0, 0.0, 1.0),
        (-0.9, -0.1, 5.0, 0.0, -1.0),
    ],
)
def test_score_adaptive_as_the_authors_read(
    memory: float, excess: float, score: float, lam: float, wanted: float
) -> None:
    stretch = ScoreAdaptive(0.1, -1.0, 1.0, reading="authors")
    assert moved(stretch, memory, excess, score, lam) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("memory", "excess", "score", "wanted"),
    [
        (0.0, 0.9, 2.0, 0.1 * 2.0 * math.exp(0.3 * 0.9)),
        (0.0, -0.1, -2.0, -0.1 * 2.0 * math.exp(0.3 * 0.1)),
        (0.2, 0.0, 1.0, 0.3),
        (0.9, 0.9, 2.0, 1.0),
    ],
)
def test_error_adaptive_as_the_paper_reads(
    memory: float, excess: float, score: float, wanted: float
) -> None:
    stretch = ErrorAdaptive(0.1, 0.3, -1.0, 1.0, reading="paper")
    assert moved(stretch, memory, excess, score, 7.0) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("memory", "excess", "score", "lam", "wanted"),
    [
        (0.0, 0.9, 2.0, 0.5, 0.1 * math.exp(0.3 * 0.9) * 1.5),
        (0.0, -0.1, 2.0, 0.5, -0.1 * math.exp(0.3 * 0.1) * 1.5),
        (0.3, 0.0, 2.0, 0.5, 0.3),
    ],
)
def test_error_adaptive_as_the_authors_read(
    memory: float, excess: float, score: float, lam: float, wanted: float
) -> None:
    stretch = ErrorAdaptive(0.1, 0.3, -1.0, 1.0, reading="authors")
    assert moved(stretch, memory, excess, score, lam) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("memory", "excess", "score", "lam", "wanted"),
    [
        (0.2, 0.9, 2.0, 0.5, 0.2 + 0.1 * math.expm1(0.3 * 0.9) * 1.5),
        (0.0, -0.1, 0.2, 0.5, -0.1 * math.expm1(0.3 * 0.1) * 0.3),
        (0.3, 0.0, math.inf, 0.5, 0.3),
    ],
)
def test_error_adaptive_as_the_authors_later_code_reads(
    memory: float, excess: float, score: float, lam: float, wanted: float
) -> None:
    stretch = ErrorAdaptive(0.1, 0.3, -1.0, 1.0, reading="later")
    assert moved(stretch, memory, excess, score, lam) == pytest.approx(wanted)
    with pytest.raises(InputError, match="reading must be one of"):
        ScoreAdaptive(0.1, -1.0, 1.0, reading="later")


def test_a_huge_excess_does_not_overflow() -> None:
    for reading in ("paper", "authors", "later"):
        stretch = ErrorAdaptive(0.1, 100.0, -1.0, 1.0, reading=reading)
        assert moved(stretch, 0.0, 1e6, 2.0, 0.0) == 1.0
        assert moved(stretch, 0.0, -1e6, -2.0, 0.0) == -1.0


def test_clip_bounds_are_the_mean_absolute_step_of_y() -> None:
    assert clip_bounds([1.0, 2.0, 4.0]) == (-1.5, 1.5)
    assert clip_bounds(np.array([1, 2, 4])) == (-1.5, 1.5)
    assert clip_bounds([1.0, NAN, 4.0, 6.0, NAN]) == (-2.0, 2.0)
    assert clip_bounds([3.0, 3.0]) == (0.0, 0.0)


@pytest.mark.parametrize("y", [[], [1.0], [1.0, NAN], [NAN, NAN, NAN]])
def test_clip_bounds_need_two_consecutive_labels(y: list[float]) -> None:
    with pytest.raises(InputError, match=f"two consecutive labels, got {len(y)} values"):
        clip_bounds(y)


@pytest.mark.parametrize("y", [["1", "2"], ["a", "b"], [1.0, math.inf], [None, 1.0, 2.0]])
def test_clip_bounds_refuse_text_and_infinities(y: list[Any]) -> None:
    with pytest.raises(InputError):
        clip_bounds(y)


# At work


def learned(stretch: Any, labels: list[float], bounds: Any = (-20.0, 20.0)) -> sp.Stream:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=bounds)
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk, stretch))
    for y in labels:
        stream.predict((0.0, 1.0))
        stream.update(y)
    return stream


def test_the_memory_moves_once_a_label_with_the_score_and_the_lambda_shown() -> None:
    stream = learned(ErrorAdaptive(0.1, 0.3, -1.0, 1.0), [3.0, 0.5])
    first = 0.1 * 2.0 * math.exp(0.3 * 0.9)
    second = first - 0.1 * abs(-0.5 - (0.45 + first)) * math.exp(0.3 * 0.1)
    assert stream._state.stretch == (pytest.approx(second),)
    assert stream.lam == pytest.approx(0.45 - 0.05 + second)


def test_the_memory_does_not_move_on_a_saturated_step() -> None:
    stream = learned(ScoreAdaptive(0.1, -1.0, 1.0), [3.0] * 3, bounds=(-1.0, 1.0))
    assert stream.theta == pytest.approx(1.35)
    before = stream._state.stretch
    stream.predict((0.0, 1.0))
    stream.update(50.0)
    assert stream.certificate().full == 1
    assert stream._state.stretch == before


@dataclass(frozen=True)
class Printed:
    """Error adaptive stretching with the minus that the paper prints."""

    params = (0.1, 0.2, -2.0, 2.0)
    phi = staticmethod(shifted_identity)
    scored = True

    @staticmethod
    def move(params: Any, memory: Any, excess: float, score: float, lam: float) -> Any:
        return error_paper((-params[0], *params[1:]), memory, excess, score, lam)

    def init(self) -> tuple[float, ...]:
        return (0.0,)

    def inverse(self, lam: float, memory: tuple[float, ...] = (0.0,)) -> float:
        return lam - memory[0]


def test_the_printed_minus_triples_what_the_worst_rows_are_off_by() -> None:
    def worst(stretch: Any, seed: int) -> float:
        """How far the misses of 250 rows in a row are from 10 %, where the noise switches."""
        rng, rows = np.random.default_rng(seed), np.arange(6000)
        y = rng.normal(size=6000) * np.where(rows // 500 % 2, 3.0, 1.0)
        risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-100.0, 100.0))
        stream, losses = sp.Stream(sp.Controller(sp.sets.Widen(), risk, stretch)), []
        for label in y:
            stream.predict((-1.64, 1.64))
            losses.append(stream.update(label))
        return float(abs(np.convolve(losses, np.full(250, 1 / 250), "valid") - 0.1).max())

    plus = ErrorAdaptive(0.1, 0.2, -2.0, 2.0, reading="paper")
    points = [
        100.0 * np.mean([worst(stretch, seed) for seed in range(3)])
        for stretch in (plus, Identity(), Printed())
    ]
    assert points == pytest.approx([16.0, 21.0, 45.5], abs=1.0)  # as docs/paper-map.md has them


def test_the_default_start_is_where_the_familys_lambda_is() -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5))
    controller = sp.Controller(sp.sets.Scale(), risk, Exponential())
    assert controller.starts == (pytest.approx(math.log(2.0)),)
    assert sp.Stream(controller).lam == pytest.approx(1.0)


def test_with_several_risks_the_memory_follows_the_leading_one() -> None:
    stretch = ErrorAdaptive(0.1, 0.3, -1.0, 1.0, reading="authors")
    risks = [
        sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), start=1.0),
        sp.Risk(sp.losses.MiscoverageCounter(), 0.9, sp.steps.Fixed(0.5), start=0.0),
    ]
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risks, stretch))
    stream.predict((0.0, 1.0))
    assert stream.update(4.0) == (1.0, 1.0)  # s = 3, λ = 1, the first leads: excess 0.9
    assert stream._state.stretch == (pytest.approx(0.1 * math.exp(0.3 * 0.9) * 2.0),)
