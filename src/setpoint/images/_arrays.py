"""What numpy arrays and torch tensors are asked alike, on whatever device they are."""

from typing import Any

import numpy as np

from setpoint.errors import InputError, LabelError
from setpoint.sets._pixel_arrays import label_parts, mask_of, space

__all__ = ["copied", "host", "image", "like", "mask", "mean", "same", "space", "true"]


def image(values: Any, name: str) -> Any:
    """One image of numbers with two sides, as it is if it is an array or a tensor of floats."""
    made = values
    if space(values) is np:
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(values.astype(np.result_type(values, np.float32)), np.nan)
        made = np.asarray(values)
        if made.dtype.kind in "biu":
            made = made.astype(np.float32 if made.dtype.itemsize <= 2 else np.float64)
        wrong = made.dtype.kind != "f"
    else:
        if not made.dtype.is_floating_point:
            made = made.float()
        made, wrong = made.detach(), False
    if wrong or made.ndim != 2:
        raise InputError(
            f"{name} must be an image of numbers of shape (height, width), got "
            f"{getattr(values, 'dtype', type(values).__name__)} of shape {tuple(made.shape)}"
        )
    return made


def true(values: Any, name: str) -> Any:
    """An image of true values, NaN where invalid: also from a pair (values, valid)."""
    if not isinstance(values, tuple):
        return image(values, name)
    held, valid = label_parts(values)
    made = image(held, name)
    usable = mask(valid, f"the valid of {name}", made, LabelError)
    return space(made).where(usable, made, float("nan"))


def mask(values: Any, name: str, frame: Any, error: type[InputError] = InputError) -> Any:
    """A boolean mask of the frame's shape, brought to where the frame is."""
    held = mask_of(values, name, error, copy=False)
    if tuple(held.shape) != tuple(frame.shape):
        raise error(
            f"{name} must have the shape of its frame, {tuple(frame.shape)}, got "
            f"{tuple(held.shape)}"
        )
    return like(held, frame)


def host(values: Any) -> np.ndarray[Any, Any]:
    """The values as a numpy array in the memory of the host."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def like(values: Any, other: Any) -> Any:
    """The values as an array or a tensor of the other's kind, on its device."""
    xp = space(other)
    if xp is np:
        return host(values)
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        values = values.copy()  # a tensor could be written to
    return xp.as_tensor(values, device=other.device)


def mean(values: Any, where: Any) -> float:
    """The mean over some pixels as a Python float; NaN over none."""
    count = int(where.sum())
    if not count:
        return float("nan")
    xp = space(values)
    return float(xp.where(where, values, 0.0).sum(dtype=xp.float64)) / count


def copied(values: Any) -> Any:
    """Values that nobody else changes; what is not one array or tensor stays itself."""
    if space(values) is not np:
        return values.detach().clone()
    return values.copy() if _plain(values) else values


def same(one: Any, other: Any) -> bool:
    """Whether two arrays or tensors hold the same numbers; other things, whether they are one.

    Numbers and strings, such as the number of a frame, are the same if they are equal."""
    if one is other:
        return True
    if isinstance(one, int | float | str | np.generic):
        return type(one) is type(other) and bool(one == other)
    xp = space(one)
    if xp is not space(other) or (xp is np and not (_plain(one) and _plain(other))):
        return False
    kinds = [
        (tuple(each.shape), each.dtype, getattr(each, "device", None)) for each in (one, other)
    ]
    # A number that differs from itself is NaN, which is the same as another NaN here.
    return kinds[0] == kinds[1] and bool(((one == other) | ((one != one) & (other != other))).all())


def _plain(values: Any) -> bool:
    """Whether it is one array, of numbers and not of other things."""
    return isinstance(values, np.ndarray) and not values.dtype.hasobject
