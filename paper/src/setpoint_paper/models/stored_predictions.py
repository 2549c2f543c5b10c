"""Depth maps that were predicted beforehand, replayed in their order."""

from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setpoint.errors import InputError
from setpoint.sets.frames import copied, same

__all__ = ["StoredPredictions"]


class StoredPredictions:
    """A model whose predictions are known already, one for each frame in the order of time.

    Where x is the number of a frame (a whole number, from 0), `predict` gives the map of that
    number, so labels may come late, in any order, or never. With any other x the maps belong to the
    frames by their order alone: `predict` gives the map at the present position, as often as it is
    asked for the same frame, and `learn` goes on to the next. Another frame before that label is an
    error. Frames that hold the same numbers count as the same one, and so does `None`.

    Parameters
    ----------
    frames
        The maps, (T, H, W), or a list of maps of any sizes; NaN where a map says nothing. They are
        not copied.
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
    >>> model.predict(0).max()
    np.float32(3.0)
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
        self._asked: tuple[Any] | None = None  # no frame since the last label
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
        self._position, self._asked = int(position), None

    def predict(self, x: Any) -> np.ndarray:
        """The map of the frame of this number, or of the present one, (H, W) in float32."""
        place = self._place(x)
        if place is None:
            place = self._present(x)
            self._asked = (copied(x),)
        return self._frames[place].astype(np.float32)

    def learn(self, x: Any, y: Any) -> None:
        """Goes on to the frame after this one; a number never leads back."""
        place = self._place(x)
        reached = (self._present(x) if place is None else place) + 1
        if reached > self._position:
            self._position, self._asked = reached, None

    def _place(self, x: Any) -> int | None:
        """The number of a frame, or None if x is something else."""
        sides: tuple[int, ...] = getattr(x, "shape", ())
        if sides or isinstance(x, bool) or not hasattr(x, "__index__"):
            return None
        try:
            place = index(x)
        except TypeError:  # an array without sides has the method, whatever it holds
            return None
        if not 0 <= place < len(self):
            raise InputError(
                f"the number of a frame must lie within 0 and {len(self) - 1}, got {place}"
            )
        return place

    def _present(self, x: Any) -> int:
        """The present position, if x may be the frame there."""
        if self._position == len(self):
            raise InputError(
                f"the {len(self)} stored predictions are used up: a stream may have as many frames"
            )
        if self._asked is not None and not _same(self._asked[0], x):
            raise InputError(
                f"x is another frame than frame {self._position}, which was predicted and not yet "
                "learnt: where labels come late or are missing, pass the numbers of the frames, "
                f"from 0 to {len(self) - 1}, as x"
            )
        return self._position

    def __repr__(self) -> str:
        return f"StoredPredictions({len(self)} frames, position={self._position})"


def _same(kept: Any, x: Any) -> bool:
    """Whether x is the frame that was kept; lists of numbers are compared too."""
    if same(kept, x):
        return True
    try:
        return type(kept) is type(x) and not hasattr(kept, "shape") and bool(kept == x)
    except (ValueError, RuntimeError):  # collections of arrays do not say whether they are equal
        return False
