"""Registration as the paper has it: TV-L1, and flows of estimates and truths by themselves."""

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint._check import whole
from setpoint.images.heuristics import FLOOR, fits, grey, mean_sides, needed, residual, warp
from setpoint.sets.frames import image


@dataclass(frozen=True, slots=True)
class TVL1:
    """Total variation with L1, by scikit-image: what the paper used.

    Its answer depends on the scale of the images, which scikit-image leaves as they are. Here both
    are scaled by the same range, from their least value to their greatest, and nothing is cut.

    Parameters
    ----------
    num_iter, num_warp
        As scikit-image has them; the paper's authors took 2 and 1, far below its defaults.
    scale
        The range of the images is brought to [0, scale]: 10 as the paper's depth has.

    References
    ----------
    Zach, Pock and Bischof 2007; Feldman et al. 2023, appendix B.2.4.
    """

    num_iter: int = 2
    num_warp: int = 1
    scale: float = 10.0

    def flow(self, moving: Any, fixed: Any) -> np.ndarray:
        """Where each pixel of `fixed` is found in `moving`."""
        start, goal = (np.float32(self.scale) * each for each in grey(moving, fixed, ends=0.0))
        tvl1 = needed("skimage.registration", "scikit-image").optical_flow_tvl1
        flow = tvl1(goal, start, num_iter=self.num_iter, num_warp=self.num_warp)
        return np.ascontiguousarray(np.moveaxis(flow, 0, -1), dtype=np.float32)


@dataclass(eq=False)
class EachRegistered:
    """The mean residual of the last frames, their estimates and truths each moved by its own flow.

    All of the window are moved again at each frame, to the frame before the one that is predicted.

    Parameters
    ----------
    window
        How many frames, the paper's p.
    register
        What finds the flow: `TVL1()` or `images.DIS()`.
    floor
        The least uncertainty, as a share of the frame's mean; 0 for none.

    References
    ----------
    Feldman et al. 2023, appendix B.2.4: correcting pixel displacements with image registration.
    """

    window: int = 5
    register: Any = TVL1()
    floor: float = FLOOR

    def __post_init__(self) -> None:
        self._pairs: deque[Any] = deque(maxlen=whole(self.window, "window", 1))

    def predict(self, x: Any, estimate: Any) -> tuple[Any, Any]:
        """The mean residual below and above, at least the floor."""
        return mean_sides([residual(*pair) for pair in self._pairs], estimate, self.floor)

    def learn(self, x: Any, estimate: Any, truth: Any) -> None:
        """Moves what is remembered to this frame and remembers it."""
        newest = image(estimate, "the estimate"), image(truth, "the truth")
        if self._pairs and not fits(self._pairs[0][0], newest[0]):
            self._pairs.clear()
        flow = self.register.flow
        moved = [
            (warp(old, flow(old, estimate)), warp(seen, flow(seen, truth)))
            for old, seen in list(self._pairs)[max(len(self._pairs) - self.window + 1, 0) :]
        ]
        self._pairs.clear()
        self._pairs.extend([*moved, newest])
