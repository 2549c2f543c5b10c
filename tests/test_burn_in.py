"""A burn-in: what it chooses, worked by hand, and what it leaves alone."""

import math
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError
from setpoint.regions import Whole

NAN = math.nan
LABELS = [1.0, -2.0, 3.0, -4.0, 5.0]
POINTS = [(0.0, 0.0)] * 5  # critical values 1, 2, 3, 4, 5


def controller(
    family: Any = None, stretch: Any = None, loss: Any = None, **options: Any
) -> sp.Controller:
    risk = sp.Risk(loss or sp.losses.Miscoverage(), **{"level": 0.25, **options})
    return sp.Controller(family or sp.sets.Widen(), risk, stretch)


def gamma(risk: sp.Risk) -> float:
    assert isinstance(risk.step, sp.steps.Fixed)
    return risk.step.gamma


def test_bounds_start_and_step_are_chosen_from_the_past() -> None:
    ready = sp.burn_in(controller(), POINTS, LABELS)
    risk = ready.risks[0]
    assert risk.bounds == (-900.0, 900.0)  # 100 × the range of y
    assert risk.start == 4.0  # one miss in five
    assert gamma(risk) == pytest.approx(0.1)  # 5 % of 4 − 2
    sp.Stream(ready)


def test_reach_and_follow_scale_what_is_chosen() -> None:
    risk = sp.burn_in(controller(), POINTS, LABELS, reach=2.0, follow=1.0).risks[0]
    assert risk.bounds == (-18.0, 18.0)
    assert gamma(risk) == pytest.approx(2.0)


@pytest.mark.parametrize("level", [0.0, 0.2, 0.4, 0.5, 0.8, 1.0])
def test_the_start_is_the_smallest_that_would_have_kept_the_level(level: float) -> None:
    start = sp.burn_in(controller(level=level), POINTS, LABELS).risks[0].start
    wanted = min(lam for lam in range(1, 6) if sum(s > lam for s in range(1, 6)) / 5 <= level)
    assert start == wanted


def test_exponential_stretching_maps_what_is_chosen() -> None:
    risk = sp.burn_in(controller(stretch=sp.stretches.Exponential()), POINTS, LABELS).risks[0]
    assert risk.bounds == pytest.approx((-math.log(901.0), math.log(901.0)))
    assert risk.start == pytest.approx(math.log(5.0))
    assert gamma(risk) == pytest.approx(math.log(5.1) - math.log(5.0))


@pytest.mark.parametrize("reading", ["paper", "authors"])
def test_clip_bounds_are_chosen_if_left_open(reading: str) -> None:
    for stretch in (
        sp.stretches.ScoreAdaptive(0.1, reading=reading),
        sp.stretches.ErrorAdaptive(0.1, 0.1, reading=reading),
    ):
        ready = sp.burn_in(controller(stretch=stretch), POINTS, LABELS)
        assert (ready.stretch.low, ready.stretch.high) == (-6.0, 6.0)  # type: ignore[attr-defined]
        sp.Stream(ready)


def test_scale_is_measured_in_its_own_units() -> None:
    spreads = [(0.0, 1.0, 3.0)] * 5  # critical values 1/3, 2, 1, 4, 5/3; a unit is 2 of y
    stretch = sp.stretches.ScoreAdaptive(0.1)
    ready = sp.burn_in(controller(sp.sets.Scale(), stretch), spreads, LABELS)
    assert ready.risks[0].bounds == (-450.0, 450.0)
    assert ready.risks[0].start == 2.0
    assert gamma(ready.risks[0]) == pytest.approx(0.05)
    assert (ready.stretch.low, ready.stretch.high) == (-3.0, 3.0)  # type: ignore[attr-defined]


def test_what_is_stated_is_kept() -> None:
    stretch = sp.stretches.ScoreAdaptive(0.1, -0.5, 0.5)
    stated = controller(stretch=stretch, start=1.5, bounds=(-7.0, 7.0), step=sp.steps.Fixed(0.3))
    assert sp.burn_in(stated, POINTS, LABELS) == stated


def test_a_start_is_moved_into_stated_bounds() -> None:
    assert sp.burn_in(controller(bounds=(-1.0, 1.0)), POINTS, LABELS).risks[0].start == 1.0


def test_missing_labels_are_left_out() -> None:
    y = [1.0, NAN, -2.0, None, 3.0, -4.0, np.float64(NAN), 5.0]
    assert sp.burn_in(controller(), [(0.0, 0.0)] * 8, y) == sp.burn_in(controller(), POINTS, LABELS)


@pytest.mark.parametrize("y", [[], [1.0], [NAN, 1.0, NAN]])
def test_two_labelled_steps_are_needed(y: list[float]) -> None:
    with pytest.raises(InputError, match=r"at least 2 labelled steps, got \d"):
        sp.burn_in(controller(), [(0.0, 0.0)] * len(y), y)


def test_a_bad_row_is_refused_in_words() -> None:
    with pytest.raises(sp.errors.PredictionError, match="NaN"):
        sp.burn_in(controller(), [(NAN, 0.0)] * 5, LABELS)
    with pytest.raises(sp.errors.LabelError, match="got 'a'"):
        sp.burn_in(controller(), POINTS, ["a"] * 5)


def test_constant_labels_are_measured_by_their_critical_values() -> None:
    risk = sp.burn_in(controller(), [(0.0, 1.0)] * 3, [4.0] * 3).risks[0]
    assert risk.bounds == (-300.0, 300.0)
    assert risk.start == 3.0
    assert gamma(risk) == pytest.approx(0.15)
    still = sp.burn_in(controller(), [(4.0, 4.0)] * 3, [4.0] * 3).risks[0]
    assert still.bounds == (-100.0, 100.0)
    sp.Stream(sp.burn_in(controller(), [(4.0, 4.0)] * 3, [4.0] * 3))


def test_every_risk_is_filled_in() -> None:
    risks = [
        sp.Risk(sp.losses.Miscoverage(), 0.25),
        sp.Risk(sp.losses.MiscoverageCounter(cap=3), 0.4, sp.steps.Fixed(0.3)),
    ]
    ready = sp.burn_in(sp.Controller(sp.sets.Widen(), risks), POINTS, LABELS)
    assert [risk.bounds for risk in ready.risks] == [(-900.0, 900.0)] * 2
    assert ready.risks[1].step == sp.steps.Fixed(0.3)
    # λ = 3 misses the last two in a row: 1 + 2 over five steps is 0.6; λ = 4 misses one: 0.2.
    assert ready.risks[1].start == 4.0


def test_a_growing_loss_starts_at_the_largest_set_it_allows() -> None:
    size = sp.losses.Custom(lambda shown, y: min(shown.length / 10.0, 1.0), grows=True)
    risk = sp.burn_in(controller(loss=size, level=0.65), POINTS, LABELS).risks[0]
    assert risk.start == 3.0  # 2λ/10 ≤ 0.65


# Families of every kind


def shares(family: Any, loss: Any = None, level: float = 0.4) -> sp.Controller:
    return sp.Controller(family, sp.Risk(loss or sp.losses.Miscoverage(), level))


PROBABILITIES = [
    [0.5, 0.3, 0.2],
    [0.6, 0.3, 0.1],
    [0.2, 0.2, 0.6],
    [0.1, 0.8, 0.1],
    [0.4, 0.4, 0.2],
]
CLASSES = [0, 1, 2, 1, 2]  # probabilities .5, .3, .6, .8, .2


def test_a_label_family_keeps_its_bounds_and_starts_where_the_level_was_kept() -> None:
    ready = sp.burn_in(shares(sp.sets.Threshold()), PROBABILITIES, CLASSES)
    (risk,) = ready.risks
    assert risk.bounds is None
    assert ready.bounds == ((-1.0, 0.0),)
    assert risk.start == -0.5  # two of five are less likely
    assert gamma(risk) == pytest.approx(0.05 * (-0.3 - -0.6))
    sp.Stream(ready)


def test_a_randomised_family_draws_by_the_number_of_the_row() -> None:
    family = sp.sets.Cumulative(randomised=True, seed=4)
    ready = sp.burn_in(shares(family), PROBABILITIES, CLASSES)
    readings = [family.draw(family.read(p), row) for row, p in enumerate(PROBABILITIES)]
    found = sorted(family.critical(r, y) for r, y in zip(readings, CLASSES, strict=True))
    assert ready.risks[0].start == found[2]
    sp.Stream(ready)


def test_rows_without_a_label_do_not_decide() -> None:
    family, rows = (
        sp.sets.Multilabel(),
        [[0.9, 0.2], [0.8, 0.1], [0.7, 0.3], [0.4, 0.2], [0.3, 0.1]],
    )
    y = [[0], [], [], [], [1]]
    (risk,) = sp.burn_in(shares(family, sp.losses.FalseNegatives(), 0.3), rows, y).risks
    assert risk.start == -0.1
    assert 0.0 < gamma(risk) < 1.0
    nothing = sp.burn_in(shares(family, sp.losses.FalseNegatives(), 0.3), rows, [[]] * 5)
    assert nothing.starts == (-0.3,)
    assert 0.0 < gamma(nothing.risks[0]) < 10.0
    sp.Stream(nothing)


def test_clip_bounds_of_shares_are_shares() -> None:
    stretch = sp.stretches.ScoreAdaptive(0.1)
    for family, rows, y in (
        (sp.sets.Threshold(), PROBABILITIES, CLASSES),
        (sp.sets.Multilabel(), PROBABILITIES, [[0], [], [1, 2], [], [2]]),
        (sp.sets.ScoreWindow(), POINTS, LABELS),
        (sp.sets.QuantileScale((0.0, 0.5, 1.0)), [[-9.0, 0.0, 9.0]] * 5, LABELS),
    ):
        risk = sp.Risk(sp.losses.Miscoverage(), 0.4)
        ready = sp.burn_in(sp.Controller(family, risk, stretch), rows, y)
        assert -3.0 <= ready.stretch.low < ready.stretch.high <= 3.0  # type: ignore[attr-defined]
        sp.Stream(ready)


def test_a_window_starts_at_the_level() -> None:
    for family in (sp.sets.ScoreWindow(), sp.sets.ScoreWindow(sp.sets.Scale(), 3)):
        rows = POINTS if family == sp.sets.ScoreWindow() else [(0.0, 1.0, 2.0)] * 5
        ready = sp.burn_in(shares(family, level=0.25), rows, LABELS)
        assert ready.starts == (-0.25,)
        assert 0.0 < gamma(ready.risks[0]) <= 0.05
        sp.Stream(ready)


def test_each_side_is_filled_in_by_itself() -> None:
    rows = [(-1.0, 2.0)] * 5
    risks = [sp.Risk(sp.losses.Miscoverage(), level) for level in (0.4, 0.2)]
    ready = sp.burn_in(sp.Controller(sp.sets.TwoSided(), risks), rows, LABELS)
    for index, family in enumerate((sp.sets.Lower(), sp.sets.Upper())):
        own = sp.burn_in(sp.Controller(family, risks[index]), [row[index] for row in rows], LABELS)
        assert ready.risks[index] == own.risks[0]
    assert ready.risks[0].start == -2.0  # −1 − y is −2, 1, −4, 3, −6: two above
    assert ready.risks[1].start == 1.0  # y − 2 is −1, −4, 1, −6, 3: one above
    sp.Stream(ready)


# Images


def frames_of(count: int, shape: tuple[int, int] = (4, 8)) -> tuple[list[Any], list[Any]]:
    """Frames whose label lies k/32 above its centre at the k-th pixel, in a new order each time."""
    rng = np.random.default_rng(3)
    one = np.ones(shape)
    rows, labels = [], []
    for step in range(count):
        centre = np.full(shape, float(step % 5))
        above = rng.permutation(np.arange(1, one.size + 1)).reshape(shape) / one.size
        rows.append((centre, 0.5 * one, 0.5 * one))
        labels.append(centre + above)
    return rows, labels


def test_a_burn_in_of_images_starts_where_past_frames_would_have_kept_the_level() -> None:
    rows, y = frames_of(10)
    open_risk = sp.Risk(sp.losses.ImageMiscoverage(), 0.25)
    ready = sp.burn_in(sp.Controller(sp.sets.PixelScale(), open_risk), rows, y)
    (risk,) = ready.risks
    assert risk.start == 2.0 * 24 / 32  # 24 of 32 pixels lie at most 24/32 above
    span = (5.0 - 1 / 32) / 0.5  # y from 1/32 to 5, in units of the scales
    assert risk.bounds == pytest.approx((-100.0 * span, 100.0 * span))
    stream = sp.Stream(ready)
    stream.predict(rows[0])
    assert stream.update(y[0]) == 0.25


@pytest.mark.parametrize("stretch", [None, sp.stretches.Exponential()])
def test_a_burn_in_of_two_risks_of_images(stretch: Any) -> None:
    rows, y = frames_of(10)
    y[3] = np.full((4, 8), np.nan)  # nothing to judge
    losses = (sp.losses.ImageMiscoverage(), sp.losses.CentreFailure(0.6, Whole()))
    risks = [sp.Risk(loss, 0.2) for loss in losses]
    ready = sp.burn_in(sp.Controller(sp.sets.PixelScale(), risks, stretch), rows, y)
    image, middle = (ready.stretch.phi((), (), risk.start) for risk in ready.risks)
    assert image == pytest.approx(2.0 * 26 / 32)  # 26/32 ≥ 0.8 > 25/32
    assert middle == pytest.approx(2.0 * 20 / 32)  # 20/32 > 0.6 ≥ 19/32
    assert all(risk.step.gamma > 0.0 for risk in ready.risks)


def test_clip_bounds_of_images_are_their_mean_change() -> None:
    one = np.ones((2, 2))
    y = [one, 3.0 * one, np.ones((3, 3)), np.array([[2.0, np.nan], [2.0, 2.0]]), 2.5 * one]
    rows = [tuple(np.ones(each.shape) for _ in range(3)) for each in y]
    stretch = sp.stretches.ScoreAdaptive(0.1)
    risk = sp.Risk(sp.losses.ImageMiscoverage(), 0.2)
    ready = sp.burn_in(sp.Controller(sp.sets.PixelScale(), risk, stretch), rows, y)
    assert (ready.stretch.low, ready.stretch.high) == (-1.25, 1.25)  # (2 + 0.5)/2, unit 1
    with pytest.raises(InputError, match="two consecutive frames of one size"):
        sp.burn_in(sp.Controller(sp.sets.PixelScale(), risk, stretch), rows[1:3], y[1:3])


def test_critical_values_that_differ_by_rounding_alone_still_give_a_step() -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1)
    ends = [(-1e-16 * k, 1e-16 * k) for k in range(8)]
    found = sp.burn_in(sp.Controller(sp.sets.Widen(), risk), ends, [1.0, 2.0] * 4)
    assert found.risks[0].step.gamma > 0.0
    same = [(1.0, 1.0 + 2e-16 * k) for k in range(8)]
    found = sp.burn_in(sp.Controller(sp.sets.Widen(), risk), same, [5.0] * 8)
    assert found.risks[0].step.gamma > 0.0
