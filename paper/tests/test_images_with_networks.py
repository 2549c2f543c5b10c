"""The library's images with the paper's networks, stored predictions and view."""

import numpy as np

import setpoint as sp
from setpoint.images import ResidualMagnitude, SpreadModel
from setpoint.regions import Centre
from setpoint_paper.datasets import Crop, road
from setpoint_paper.models import DepthSettings, small_network


def test_networks_that_learn_online_run_in_the_loop() -> None:
    small = DepthSettings(channels=(8, 16))
    heuristic = ResidualMagnitude(small_network(small, residuals=True))
    model = SpreadModel(small_network(small), heuristic, known=50)
    risk = sp.Risk(sp.losses.ImageMiscoverage(), 0.2, sp.steps.Fixed(0.5), bounds=(-9.0, 9.0))
    stream = sp.Stream(sp.Controller(sp.sets.PixelScale(), risk, sp.stretches.Exponential()))
    for rgb, depth, _ in road(8, height=24, width=32):
        before = heuristic.predict(rgb, depth)
        assert np.array_equal(*before)  # both sides alike
        spread = model.predict(rgb, depth)
        stream.predict(spread)
        assert 0.0 <= stream.update(depth) <= 1.0
        model.learn(rgb, depth)
        assert model.facts.infinite == 0.0
    assert not np.array_equal(before[0], heuristic.predict(rgb, depth)[0])  # it learnt


def test_the_centre_of_the_papers_view_lies_below_its_padding() -> None:
    crop, rng = Crop(), np.random.default_rng(0)
    rgb = np.zeros((375, 1242, 3), dtype=np.uint8)
    _, depth = crop.apply(rgb, np.full((375, 1242), 12.0, dtype=np.float32), rng)
    family = sp.sets.PixelScale()
    valid = np.isfinite(depth)
    spread = (np.full(depth.shape, 12.5), np.ones(depth.shape), np.ones(depth.shape), valid)
    shown, y = family.at(family.read(spread), 1.0), family.label(depth)
    assert sp.losses.CentreFailure()(shown, y) is None  # all padding: nothing to judge
    below = Centre(within=(260 / 448, 1.0, 0.0, 1.0))
    assert shown.count(y, below) == (0, 2500)
    assert sp.losses.CentreFailure(region=below)(shown, y) == 0.0
    controller = sp.Controller(
        family,
        sp.Risk(
            sp.losses.CentreFailure(region=below), 0.1, sp.steps.Fixed(0.5), bounds=(-6.0, 6.0)
        ),
    )
    assert sp.spec.from_toml(sp.spec.to_toml(controller)) == controller
