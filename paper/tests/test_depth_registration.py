"""Registration as the paper has it."""

import numpy as np
import pytest

from setpoint.images import DIS, warp
from setpoint_paper.depth.registration import TVL1, EachRegistered

pytest.importorskip("cv2")
pytest.importorskip("skimage")


def scene(shift: float) -> np.ndarray:
    """A smooth relief in metres, seen `shift` pixels further right."""
    rows, columns = np.mgrid[0:48, 0:64].astype(np.float64)
    waves = np.sin((columns - shift) / 5.0) * np.cos(rows / 6.0)
    return (20.0 + 8.0 * waves + 0.1 * rows).astype(np.float32)


@pytest.mark.parametrize("method", [TVL1(), TVL1(10, 5)])
def test_registration_finds_a_shift(method: TVL1) -> None:
    moving, fixed, inside = scene(0.0), scene(1.0), np.s_[8:-8, 10:-10]
    moved = warp(moving, method.flow(moving, fixed))
    before, after = (np.abs(each - fixed)[inside].mean() for each in (moving, moved))
    assert after < 0.7 * before


def test_the_papers_way_registers_estimates_and_truths_by_themselves() -> None:
    method, window = DIS("fast"), 3
    heuristic = EachRegistered(window, method, floor=0.0)
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for t in range(5):
        truth = scene(1.5 * t)
        estimate = (1.1 * scene(1.5 * t + 0.5)).astype(np.float32)
        moved = [
            (warp(e, method.flow(e, estimate)), warp(y, method.flow(y, truth))) for e, y in pairs
        ]
        pairs = [*moved, (estimate, truth)][-window:]
        heuristic.learn(None, estimate, truth)
    low, high = heuristic.predict(None, estimate)
    assert np.allclose(low, np.mean([np.maximum(e - y, 0) for e, y in pairs], axis=0), atol=1e-5)
    assert np.allclose(high, np.mean([np.maximum(y - e, 0) for e, y in pairs], axis=0), atol=1e-5)
