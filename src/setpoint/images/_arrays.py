"""What numpy arrays and torch tensors are asked alike, on whatever device they are."""

import sys
from typing import Any

import numpy as np

from setpoint.errors import InputError

__all__ = ["copied", "host", "image", "like", "mean", "same", "space"]


def space(values: Any) -> Any:
    """The module that works on these values: torch for a tensor, else numpy."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(values, torch.Tensor) else np


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


def host(values: Any) -> np.ndarray[Any, Any]:
    """The values as a numpy array in the memory of the host."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def like(values: Any, other: Any) -> Any:
    """The values as an array or a tensor of the other's kind, on its device."""
    xp = space(other)
    return host(values) if xp is np else xp.as_tensor(values, device=other.device)


def mean(values: Any, where: Any) -> float:
    """The mean over some pixels as a Python float; NaN over none."""
    count = int(where.sum())
    if not count:
        return float("nan")
    xp = space(values)
    return float(xp.where(where, values, 0.0).sum(dtype=xp.float64)) / count


def copied(values: Any) -> Any:
    """Values that nobody else changes."""
    return np.array(values) if space(values) is np else values.detach().clone()


def same(one: Any, other: Any) -> bool:
    """Whether two arrays or tensors hold the same numbers."""
    xp = space(one)
    if xp is not space(other):
        return False
    return np.array_equal(one, other) if xp is np else bool(xp.equal(one, other))
