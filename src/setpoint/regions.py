"""Regions of an image: which pixels a loss judges.

A region answers one question, `index(shape)`: how to choose its pixels from an array or a tensor of
that shape, as a tuple of slices or as a boolean array. Any frozen dataclass that does so is one.
"""

from dataclasses import dataclass
from hashlib import blake2b
from math import floor
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from setpoint._check import number, positive
from setpoint.errors import InputError

__all__ = ["Centre", "Mask", "Whole"]

Shape = tuple[int, ...]


@runtime_checkable
class Region(Protocol):
    """What a loss asks of a region."""

    def index(self, shape: Shape) -> Any: ...


@dataclass(frozen=True, slots=True)
class Whole:
    """Every pixel.

    >>> Whole().index((2, 3))
    (slice(None, None, None), slice(None, None, None))
    """

    def index(self, shape: Shape) -> tuple[slice, ...]:
        """The index of every pixel."""
        return (slice(None),) * len(shape)


@dataclass(frozen=True, slots=True)
class Centre:
    """The middlemost window, as a share of each side; at least one pixel.

    The sides are the last two axes of a frame, rounded to whole pixels; a window that cannot be in
    the very middle lies half a pixel up or to the left.

    Parameters
    ----------
    height, width
        The share of each side, by default the paper's 50 × 50 pixels of 448 × 448.
    within
        The part of the frame whose middle it is: where it begins and ends, from the top and from
        the left, as shares of the frame. For padded frames.

    Examples
    --------
    >>> Centre().index((448, 448))
    (slice(199, 249, None), slice(199, 249, None))
    >>> Centre(within=(260 / 448, 1.0, 0.0, 1.0)).index((448, 448))
    (slice(329, 379, None), slice(199, 249, None))
    """

    height: float = 50 / 448
    width: float = 50 / 448
    within: tuple[float, float, float, float] = (0.0, 1.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        for name in ("height", "width"):
            share = positive(getattr(self, name), name)
            if share > 1.0:
                raise InputError(f"{name} is a share of the side, at most 1, got {share:g}")
            object.__setattr__(self, name, share)
        try:
            top, bottom, left, right = (number(share, "within") for share in self.within)
        except (TypeError, ValueError):
            raise InputError(f"within must be four shares, got {self.within!r}") from None
        if not (0.0 <= top < bottom <= 1.0 and 0.0 <= left < right <= 1.0):
            raise InputError(
                "within must begin before it ends, from the top and from the left, in [0, 1], got "
                f"{self.within}"
            )
        object.__setattr__(self, "within", (top, bottom, left, right))

    def index(self, shape: Shape) -> tuple[slice, ...]:
        """The index of the window in a frame of this shape."""
        if len(shape) < 2:
            raise InputError(f"the centre needs a frame with height and width, got shape {shape}")
        rows = _middle(shape[-2], self.height, *self.within[:2])
        columns = _middle(shape[-1], self.width, *self.within[2:])
        return (*(slice(None),) * (len(shape) - 2), rows, columns)


def _middle(length: int, share: float, begin: float, end: float) -> slice:
    """The middle `share` of a side, of the part of it from `begin` to `end`."""
    first, last = floor(begin * length + 0.5), floor(end * length + 0.5)
    size = max(min(floor(share * length + 0.5), last - first), 1)
    start = min(max((first + last - size) // 2, 0), length - size)
    return slice(start, start + size)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Mask:
    """The pixels that are true in a mask of one fixed shape; compared by content.

    `mask` is a boolean array, or its rows as text, `"."` for false and `"#"` for true, as a spec
    has them.

    >>> import numpy as np
    >>> road = Mask(np.array([[False, True], [True, True]]))
    >>> road == Mask((".#", "##")), road.rows
    (True, ('.#', '##'))
    >>> road.index((4, 4))
    Traceback (most recent call last):
    setpoint.errors.InputError: a mask of shape (2, 2) chooses no pixels of a frame of shape (4, 4)
    """

    mask: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        values: Any = self.mask.detach().cpu() if hasattr(self.mask, "detach") else self.mask
        rows = values if isinstance(values, tuple | list) else ()
        if rows and all(isinstance(row, str) and not row.strip(".#") for row in rows):
            if len({len(row) for row in rows}) > 1:
                raise InputError(f"the rows of a mask must have one length, got {rows!r}")
            values = [[pixel == "#" for pixel in row] for row in rows]
        try:
            mask = np.array(np.asarray(values), order="C")
        except ValueError:
            raise InputError(f"a mask must be a boolean array, got {self.mask!r}") from None
        if mask.dtype != np.bool_ or mask.ndim < 2:
            raise InputError(
                "a mask must be a boolean array with height and width, got "
                f"{mask.dtype} of shape {mask.shape}"
            )
        mask.flags.writeable = False
        object.__setattr__(self, "mask", mask)

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows as text; for a mask with two axes."""
        if self.mask.ndim != 2:
            raise InputError(f"a mask of shape {self.mask.shape} cannot be written as rows of text")
        return tuple("".join(".#"[pixel] for pixel in row) for row in self.mask.tolist())

    def index(self, shape: Shape) -> npt.NDArray[np.bool_]:
        """The mask, for a frame of its own shape."""
        if tuple(shape) != self.mask.shape:
            raise InputError(
                f"a mask of shape {self.mask.shape} chooses no pixels of a frame of shape "
                f"{tuple(shape)}"
            )
        return self.mask

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mask):
            return NotImplemented
        return np.array_equal(self.mask, other.mask)

    def __hash__(self) -> int:
        return hash((self.mask.shape, self.mask.tobytes()))

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.mask.shape))
        content = blake2b(np.packbits(self.mask).tobytes(), digest_size=8).hexdigest()
        return f"Mask(<{np.count_nonzero(self.mask):,} pixels of {shape}, content {content}>)"
