"""Risks of images: no adversary that chooses frames and labels leaves a bound of the theorems."""

from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.combine import Max, Mean
from setpoint.losses import CentreFailure, ImageMiscoverage
from setpoint.regions import Centre, Whole
from setpoint.sets import PixelScale, PixelThreshold
from setpoint.steps import Fixed
from setpoint.stretches import ErrorAdaptive, Exponential, Identity, ScoreAdaptive
from tests.laws.adversary import POLICIES
from tests.laws.ledger import Ledger

STRETCHES = (
    Identity(),
    Exponential(),
    ScoreAdaptive(0.2, -1.0, 1.0),
    ErrorAdaptive(0.2, 0.5, -1.0, 1.0, Exponential(), "authors"),
)


class Painter:
    """Plays against one stream: it paints a prediction, sees the set, and then paints y.

    Frames change their size, have scales of zero, and pixels, or all of them, that are not valid.
    """

    def __init__(self, controller: sp.Controller, policy: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.controller, self.policy = controller, policy
        self.index = int(self.rng.integers(len(controller.risks)))
        self.mood = "down" if policy == "down" else "up"

    def prediction(self) -> Any:
        rng = self.rng
        shape = tuple(rng.integers(1, 5, 2))
        valid = rng.random(shape) < rng.choice([0.0, 0.5, 1.0], p=[0.05, 0.35, 0.6])
        if isinstance(self.controller.sets, PixelThreshold):
            return rng.choice([0.0, 0.3, 0.5, 1.0], shape), valid
        scales = [rng.choice([0.0, 0.5, 2.0], shape) for _ in range(2)]
        return rng.normal(size=shape).astype(rng.choice(["f4", "f8"])), *scales, valid

    def label(self, stream: sp.Stream, shown: Any) -> Any:
        """The y that serves the policy best, now that the set is known."""
        candidates = self._candidates(shown)
        mood = self._mood(stream)
        if mood == "random":
            return candidates[int(self.rng.integers(len(candidates)))]
        risk = self.controller.risks[self.index]

        def excess(y: Any) -> float:
            value = risk.loss(shown, self.controller.sets.label(y))
            return 0.0 if value is None else value - risk.level

        return (max if mood == "up" else min)(candidates, key=excess)

    def _mood(self, stream: sp.Stream) -> str:
        theta = stream.theta if isinstance(stream.theta, tuple) else (stream.theta,)
        low, high = self.controller.bounds[self.index]
        if self.policy == "swing":
            if theta[self.index] > high:
                self.mood = "down"
            elif theta[self.index] < low:
                self.mood = "up"
        elif self.policy == "runs" and self.rng.random() < 0.1:
            self.mood = str(self.rng.choice(["up", "down", "random"]))
            self.index = int(self.rng.integers(len(self.controller.risks)))
        return "random" if self.policy == "random" else self.mood

    def _candidates(self, shown: Any) -> list[Any]:
        rng, shape = self.rng, shown.shape
        some = rng.random(shape) < rng.random()
        if isinstance(self.controller.sets, PixelThreshold):
            return [shown.mask, ~shown.mask, some, np.ones(shape, bool), np.zeros(shape, bool)]
        lower, upper = (np.nan_to_num(np.asarray(end, float), posinf=9.0) for end in shown.ends)
        far = np.full(shape, 1e6)
        near = np.clip(np.where(some, lower, upper), -1e300, 1e300)
        return [
            near,
            np.where(some, near, far),
            np.where(lower <= upper, near, nan),
            np.where(some, near, np.nextafter(np.clip(upper, -1e300, 1e300), inf)),
            far,
            np.where(some, rng.normal(size=shape), nan),
            np.full(shape, nan),
        ]


def play(controller: sp.Controller, policy: str, seed: int, steps: int) -> Ledger:
    """Every law held at every time of a stream that the painter chooses."""
    stream = sp.Stream(controller)
    painter, ledger = Painter(controller, policy, seed), Ledger(stream)
    for _ in range(steps):
        shown = stream.predict(painter.prediction())
        ledger.note(stream.update(painter.label(stream, shown)))
        ledger.hold_each()
        if len(controller.risks) == 1:
            ledger.hold_range()
    ledger.hold_windows()
    return ledger


@st.composite
def image_risks(draw: st.DrawFn, loss: Any) -> sp.Risk:
    gamma = draw(st.sampled_from([0.01, 0.3, 2.0]))
    level = draw(st.sampled_from([0.1, 0.2, 0.5]))
    return sp.Risk(loss, level, Fixed(gamma), start=0.0, bounds=(-1.5, draw(st.floats(1.5, 1.9))))


regions = st.sampled_from([Whole(), Centre(), Centre(0.5, 0.75)])
painters = st.tuples(st.sampled_from(POLICIES), st.integers(0, 2**32 - 1))
losses = st.one_of(
    st.builds(ImageMiscoverage, regions),
    st.builds(CentreFailure, st.sampled_from([0.0, 0.4, 0.6]), regions),
)


few = settings(max_examples=40)  # a frame costs more than a number


@few
@given(st.data(), losses, st.sampled_from(STRETCHES), painters, st.integers(1, 60))
def test_one_risk_of_images_stays_within_its_bounds_at_every_time_and_on_every_window(
    data: st.DataObject, loss: Any, stretch: Any, painter: tuple[str, int], steps: int
) -> None:
    risk = data.draw(image_risks(loss))
    ledger = play(sp.Controller(PixelScale(), risk, stretch), *painter, steps)
    (held,) = ledger.stream.certificate().risks
    (low, high), gamma = ledger.reach(0), risk.step.gamma
    assert held.window == pytest.approx((high - low) / gamma, rel=1e-12)
    assert max(ledger.extremes(0)) <= (high - low) / gamma + 2.0 * ledger.rounding(0)


@few
@given(losses, st.sampled_from([0.01, 0.3]), painters, st.integers(1, 60))
def test_a_segmentation_stays_within_its_bounds(
    loss: Any, gamma: float, painter: tuple[str, int], steps: int
) -> None:
    play(sp.Controller(PixelThreshold(), sp.Risk(loss, 0.1, Fixed(gamma))), *painter, steps)


@few
@given(
    st.data(),
    st.sampled_from(STRETCHES),
    st.sampled_from([Max(anti_windup=0.5), Max(anti_windup=2.0), Mean(anti_windup=0.5)]),
    painters,
    st.integers(1, 60),
)
def test_two_risks_of_images_with_anti_windup_stay_below_their_bounds_on_every_window(
    data: st.DataObject, stretch: Any, combine: Any, painter: tuple[str, int], steps: int
) -> None:
    risks = [
        data.draw(image_risks(ImageMiscoverage(data.draw(regions)))),
        data.draw(image_risks(CentreFailure(0.6, data.draw(regions)))),
    ]
    ledger = play(sp.Controller(PixelScale(), risks, stretch, combine), *painter, steps)
    lowest = min(ledger.reach(index)[0] for index in range(2))
    for index, risk in enumerate(risks):
        constant = (ledger.reach(index)[1] - lowest + combine.anti_windup) / risk.step.gamma
        assert ledger.extremes(index)[0] <= constant + 2.0 * ledger.rounding(index)


@few
@given(st.data(), painters, st.integers(1, 60))
def test_two_risks_of_images_with_max_stay_below_their_bounds_from_the_start(
    data: st.DataObject, painter: tuple[str, int], steps: int
) -> None:
    risks = [data.draw(image_risks(loss)) for loss in (ImageMiscoverage(), CentreFailure())]
    play(sp.Controller(PixelScale(), risks, Exponential()), *painter, steps)


def test_the_painter_reaches_the_safeguard_on_both_sides() -> None:
    found = []
    for policy in POLICIES:
        risk = sp.Risk(ImageMiscoverage(), 0.2, Fixed(0.3), start=0.0, bounds=(-1.5, 1.5))
        ledger = play(sp.Controller(PixelScale(), risk), policy, 1, 150)
        found.append(ledger.certificate)
    assert any(each.full for each in found)
    assert any(each.empty for each in found)
    assert all(each.risks[0].unjudged for each in found)
