"""Depth maps that were predicted beforehand, replayed in their order."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setpoint.errors import InputError

__all__ = ["StoredPredictions"]


class StoredPredictions:
    """A model whose predictions are known already, one for each frame in the order of time.

    `predict` gives the map at the present position and moves nothing; `learn` goes on to the next.
    What they are given is not read: the maps belong to the frames by their order alone.

    Parameters
    ----------
    frames
        The maps, (T, H, W), or a list of maps of any sizes; NaN where a map says nothing.
    position
        The place of the first map to be shown.

    Examples
    --------
    >>> model = StoredPredictions(np.arange(8.0).reshape(2, 2, 2))
    >>> model.predict(None)
    array([[0., 1.],
           [2., 3.]], dtype=float32)
    >>> model.learn(None, None)
    >>> model.predict(None).max()
    np.float32(7.0)
    >>> model.position, len(model)
    (1, 2)
    """

    def __init__(self, frames: ArrayLike | list[Any], position: int = 0) -> None:
        try:
            held = [np.asarray(frame) for frame in frames]  # type: ignore[union-attr]
        except TypeError:
            raise InputError(f"frames must be maps in the order of time, got {frames!r}") from None
        for number, frame in enumerate(held):
            if frame.ndim != 2 or frame.dtype.kind not in "fiu" or not frame.size:
                raise InputError(
                    f"a frame must be a map of numbers of shape (H, W), frame {number} has the "
                    f"shape {frame.shape} and the type {frame.dtype}"
                )
        self._frames = held
        self.seek(position)

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def position(self) -> int:
        """How many maps were gone through."""
        return self._position

    def seek(self, position: int) -> None:
        """Goes to a place, from 0 to the number of maps."""
        if isinstance(position, bool) or not isinstance(position, int | np.integer):
            raise InputError(f"position must be a whole number, got {position!r}")
        if not 0 <= position <= len(self):
            raise InputError(f"position must lie within 0 and {len(self)}, got {position}")
        self._position = int(position)

    def predict(self, x: Any) -> np.ndarray:
        """The map of the present frame, (H, W) in float32."""
        self._check_end()
        return self._frames[self._position].astype(np.float32)

    def learn(self, x: Any, y: Any) -> None:
        """Goes on to the next frame."""
        self._check_end()
        self._position += 1

    def _check_end(self) -> None:
        if self._position == len(self):
            raise InputError(
                f"the {len(self)} stored predictions are used up: a stream may have as many frames"
            )

    def __repr__(self) -> str:
        return f"StoredPredictions({len(self)} frames, position={self._position})"
