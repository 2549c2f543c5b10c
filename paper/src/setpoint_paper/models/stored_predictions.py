"""Depth maps that were predicted beforehand, replayed in their order."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from setpoint.errors import InputError


class StoredPredictions:
    """Maps (T, H, W) known already: `predict` gives the one at `position`, `learn` goes on.

    >>> model = StoredPredictions(np.arange(8.0).reshape(2, 2, 2))
    >>> model.learn(None, None)
    >>> model.predict(None).max(), model.position
    (np.float32(7.0), 1)
    """

    def __init__(self, frames: np.ndarray | Sequence[np.ndarray]) -> None:
        self._frames = frames
        self.position = 0

    def predict(self, x: Any) -> np.ndarray:
        """The map of the present frame, (H, W) in float32."""
        if self.position == len(self._frames):
            raise InputError(f"the {len(self._frames)} stored predictions are used up")
        return np.asarray(self._frames[self.position]).astype(np.float32)

    def learn(self, x: Any, y: Any) -> None:
        """Goes on to the next frame."""
        self.position += 1
