"""The tracked scale of residuals: by an independent sum, at the beginning, and after calm."""

import copy
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError, LabelError
from setpoint.models import Fading, OnlineModel, Recent, Residuals, ResidualScale


class Mean:
    """A model that predicts the mean of its labels."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def predict(self, x: Any) -> float:
        return self.total / self.count if self.count else 0.0

    def learn(self, x: Any, y: float) -> None:
        self.total += y
        self.count += 1


RESIDUALS = np.random.default_rng(3).normal(0.5, 2.0, size=300).tolist()


@pytest.mark.parametrize("half_life", [0.5, 10.0, 1e6])
def test_a_fading_scale_is_the_weighted_mean_of_absolute_residuals(half_life: float) -> None:
    residuals = Residuals(Fading(half_life), floor=0.0)
    for count, residual in enumerate(RESIDUALS, start=1):
        residuals.add(residual)
        ages = range(count - 1, -1, -1)
        weights = [0.5 ** (age / half_life) for age in ages]
        wanted = sum(w * abs(r) for w, r in zip(weights, RESIDUALS[:count], strict=True)) / sum(
            weights
        )
        assert residuals.scales == pytest.approx((wanted, wanted), rel=1e-12)


def test_a_recent_scale_is_the_mean_of_the_last_absolute_residuals() -> None:
    residuals = Residuals(Recent(7), floor=0.0)
    for count, residual in enumerate(RESIDUALS, start=1):
        residuals.add(residual)
        last = np.abs(RESIDUALS[:count][-7:])
        assert residuals.scales == pytest.approx((last.mean(), last.mean()), rel=1e-14)


def test_an_outlier_leaves_a_window_without_a_trace() -> None:
    residuals = Residuals(Recent(2), floor=0.0)
    for residual in (1e20, 0.1, 0.3):
        residuals.add(residual)
    assert residuals.scales == (0.2, 0.2)


@pytest.mark.parametrize("memory", [Fading(20.0), Recent(50)])
def test_two_sides_average_to_the_one_scale(memory: Any) -> None:
    one, two = Residuals(memory, floor=0.0), Residuals(memory, sides=2, floor=0.0)
    for residual in RESIDUALS:
        one.add(residual)
        two.add(residual)
        assert sum(two.scales) / 2.0 == pytest.approx(one.scales[0])
    low, high = two.scales
    assert high > 1.2 * low  # the residuals lean upwards


def test_before_a_residual_differs_from_zero_the_scale_is_the_start() -> None:
    residuals = Residuals(start=3.0)
    assert residuals.spread(5.0) == (5.0, 3.0, 3.0)
    residuals.add(0.0)
    assert residuals.spread(5.0) == (5.0, 3.0, 3.0)
    residuals.add(2.0)
    assert residuals.scales[0] == pytest.approx(1.0, rel=0.01)


def test_calm_does_not_take_the_scale_below_its_floor() -> None:
    residuals = Residuals(Recent(10), sides=2, floor=0.05)
    residuals.add(-4.0)
    for _ in range(19):
        residuals.add(0.0)
    assert residuals.scales == pytest.approx((0.05 * 4.0 / 20,) * 2)
    shown = sp.sets.Scale()
    assert math.isfinite(shown.critical(shown.read(residuals.spread(0.0)), 7.0))


def test_a_point_model_becomes_an_online_model_that_holds_its_risk() -> None:
    random = np.random.default_rng(0)
    model = ResidualScale(Mean(), Fading(25.0))
    assert isinstance(model, OnlineModel)
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.1), start=2.0, bounds=(0.0, 20.0))
    stream = sp.Stream(sp.Controller(sp.sets.Scale(), risk))
    lengths = []
    for t in range(4000):
        y = 100.0 + (1.0 if t // 500 % 2 == 0 else 10.0) * random.normal()
        lengths.append(stream.predict(model.predict(None)).length)
        stream.update(y)
        model.learn(None, y)
    (held,) = stream.certificate().risks
    assert held.within
    assert held.mean == pytest.approx(0.1, abs=0.01)
    calm, wild = np.median(lengths[2250:2500]), np.median(lengths[2750:3000])
    assert 5.0 < wild / calm < 20.0  # the scale follows the noise, ten times larger


def seen(residuals: Residuals) -> tuple[int, tuple[float, float]]:
    return residuals.count, residuals.scales


def test_the_residual_is_taken_before_the_model_learns() -> None:
    model = ResidualScale(Mean(), Recent(10), floor=0.0)
    model.learn(None, 4.0)  # predicted 0
    model.learn(None, 6.0)  # predicted 4
    assert model.predict(None) == (5.0, 3.0, 3.0)


def test_predicting_changes_nothing_and_a_missing_label_is_not_learnt() -> None:
    model = ResidualScale(Mean())
    model.learn(None, 4.0)
    before = copy.deepcopy(seen(model.residuals))
    model.predict(None)
    model.learn(None, float("nan"))
    model.learn(None, None)
    assert seen(model.residuals) == before
    assert model.model.count == 1


class Fussy(Mean):
    """A model that refuses some labels."""

    def learn(self, x: Any, y: float) -> None:
        if y > 100.0:
            raise InputError("too much")
        super().learn(x, y)


def test_a_label_that_is_refused_moves_neither_the_scale_nor_the_model() -> None:
    model = ResidualScale(Fussy())
    model.learn(None, 3.0)
    before = seen(model.residuals)
    with pytest.raises(InputError, match="too much"):
        model.learn(None, 1000.0)
    with pytest.raises(LabelError, match="a label must be a number, got 'high'"):
        model.learn(None, "high")
    assert seen(model.residuals) == before
    assert model.model.count == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Fading(0.0), "half_life must be greater than 0, got 0.0"),
        (lambda: Recent(0), "size must be a whole number of at least 1, got 0"),
        (lambda: Residuals("ewm"), "memory must be Fading.* got 'ewm'"),
        (lambda: Residuals(sides=3), "sides must be 1 or 2, got 3"),
        (lambda: Residuals(start=-1.0), "start must be greater than 0, got -1.0"),
        (lambda: Residuals(floor=2.0), "floor must be a share from 0 to 1, got 2.0"),
        (lambda: ResidualScale(object()), r"must have predict\(x\) and learn\(x, y\)"),
        (lambda: Residuals().add(float("inf")), "a residual must be finite, got inf"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("library", ["sklearn", "river", "torch"])
def test_a_missing_library_is_named_with_its_extra(library: str) -> None:
    script = f"import sys; sys.modules[{library!r}] = None; import setpoint.models.{library}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"pip install 'setpoint[{library}]'" in done.stderr


def test_a_frame_without_pandas_names_its_extra() -> None:
    script = (
        "import sys; sys.modules['pandas'] = None;"
        "from setpoint.interop import to_frame; to_frame([(0.0, 1.0)])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'setpoint[data]'" in done.stderr
