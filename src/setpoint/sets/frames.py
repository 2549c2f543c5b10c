"""Frames: what numpy arrays and torch tensors are asked alike, checked once and made plain.

Whatever was a tensor stays one, on its device and without its graph; everything else becomes a
numpy array. Values are single or double precision: single if that holds them exactly.
"""

from types import ModuleType
from typing import Any

import numpy as np

from setpoint.errors import InputError, LabelError

Frame = Any
"""A numpy array or a torch tensor."""


def is_tensor(value: Any) -> bool:
    """Whether a value is a torch tensor, told without importing torch."""
    return type(value) is not np.ndarray and hasattr(value, "detach") and hasattr(value, "device")


def space(value: Any) -> Any:
    """The module whose functions work on a value: torch or numpy."""
    if not is_tensor(value):
        return np
    import torch

    torch_module: ModuleType = torch
    return torch_module


# What a family of pixels is given.


def plane(value: Any, what: str, error: type[InputError], *, copy: bool) -> Frame:
    """Numbers for each pixel, as an array or tensor that is contiguous and in real precision."""
    frame = (_tensor if is_tensor(value) else _array)(value, what, error, copy)
    if frame.ndim < 2:
        raise error(f"{what} must be a frame with height and width, got {_described(value)}")
    return frame


def _tensor(value: Any, what: str, error: type[InputError], copy: bool) -> Any:
    torch, tensor = space(value), value.detach()
    if tensor.is_complex():
        raise error(f"{what} must be real numbers, got a tensor of {tensor.dtype}")
    if tensor.dtype not in (torch.float32, torch.float64):
        small = tensor.dtype.is_floating_point or tensor.dtype.itemsize <= 2
        return tensor.to(torch.float32 if small else torch.float64).contiguous()
    return _packed(tensor, copy)


def _packed(tensor: Any, copy: bool) -> Any:
    packed = tensor.contiguous()
    return packed.clone() if copy and packed.data_ptr() == tensor.data_ptr() else packed


def _array(value: Any, what: str, error: type[InputError], copy: bool) -> Any:
    array = _as_array(value)
    if array.dtype.kind not in "biuf":
        raise error(f"{what} must be numbers for each pixel, got {_described(value)}")
    small = array.dtype.itemsize <= (4 if array.dtype.kind == "f" else 2)
    return np.array(array, np.float32 if small else np.float64, order="C", copy=copy or None)


def _as_array(value: Any) -> np.ndarray[Any, Any]:
    """The value as an array; one without numbers for rows of different lengths."""
    try:
        return np.asarray(value)
    except ValueError:
        return np.asarray(None)


def _described(value: Any) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None:
        return f"{dtype} of shape {tuple(shape)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def is_mask(value: Any) -> bool:
    """Whether a value holds true or false for each pixel."""
    frame = value if is_tensor(value) else _as_array(value)
    return bool(frame.dtype == space(frame).bool) and frame.ndim >= 2


def mask_of(value: Any, what: str, error: type[InputError], *, copy: bool) -> Frame:
    """A boolean mask of pixels."""
    frame = value.detach() if is_tensor(value) else _as_array(value)
    if frame.dtype != space(frame).bool:
        raise error(f"{what} must be a boolean mask, got {_described(value)}")
    return (
        _packed(frame, copy) if is_tensor(frame) else np.array(frame, order="C", copy=copy or None)
    )


def same_kind(parts: dict[str, Any], error: type[InputError]) -> None:
    """One clear error if the parts of a frame differ in shape, or in where they are."""
    shapes = {name: tuple(part.shape) for name, part in parts.items()}
    if len(set(shapes.values())) > 1:
        listed = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise error(f"a frame must have one shape, got {listed}")
    places = {n: f"torch on {p.device}" if is_tensor(p) else "numpy" for n, p in parts.items()}
    if len(set(places.values())) > 1:
        listed = ", ".join(f"{name} in {place}" for name, place in places.items())
        raise error(f"a frame must be all numpy, or all torch on one device, got {listed}")


def label_parts(y: Any) -> tuple[Any, Any]:
    """A label as its values and the mask of the pixels to judge, None for all."""
    if isinstance(y, np.ma.MaskedArray):
        return y.data, ~np.ma.getmaskarray(y)
    if isinstance(y, tuple):
        if len(y) != 2:
            raise LabelError(
                f"a label must be a frame or a pair (values, valid), got {_described(y)}"
            )
        return y
    return y, None


# Frames beside each other.


def host(values: Any) -> np.ndarray[Any, Any]:
    """The values as a numpy array in the memory of the host."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def like(values: Any, other: Any) -> Frame:
    """The values as an array or a tensor of the other's kind, on its device."""
    if not is_tensor(other):
        return host(values)
    if isinstance(values, np.ndarray) and not values.flags.writeable:
        values = values.copy()  # a tensor could be written to
    return space(other).as_tensor(values, device=other.device)


def beside(frame: Frame, label: Frame) -> Frame:
    """A label of the frame's shape, brought to where the frame is."""
    if label.shape != frame.shape and tuple(label.shape) != tuple(frame.shape):
        raise LabelError(
            f"a label must have the shape of its prediction, {tuple(frame.shape)}, got "
            f"{tuple(label.shape)}"
        )
    return like(label, frame)


def chosen(frame: Frame, index: Any) -> Frame:
    """The pixels of a region: a view of a window, or a row of the pixels of a mask."""
    if is_tensor(frame) and not isinstance(index, tuple):
        index = space(frame).as_tensor(np.array(index), device=frame.device)
    return frame[index]


def mean(values: Frame, where: Frame) -> float:
    """The mean over some pixels as a Python float; NaN over none."""
    count = int(where.sum())
    if not count:
        return float("nan")
    xp = space(values)
    return float(xp.where(where, values, 0.0).sum(dtype=xp.float64)) / count


# Images: frames with two sides.


def image(values: Any, name: str) -> Frame:
    """One image of numbers with two sides; masked pixels are NaN."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.result_type(values, np.float32)), np.nan)
    frame = plane(values, name, InputError, copy=False)
    if frame.ndim != 2:
        raise InputError(f"{name} must have the shape (height, width), got {_described(values)}")
    return frame


def true_image(values: Any, name: str) -> Frame:
    """An image of true values, NaN where invalid: also from a pair (values, valid)."""
    if not isinstance(values, tuple):
        return image(values, name)
    numbers, valid = label_parts(values)
    frame = image(numbers, name)
    usable = mask_like(valid, f"the valid of {name}", frame, LabelError)
    return space(frame).where(usable, frame, float("nan"))


def mask_like(values: Any, name: str, frame: Frame, error: type[InputError] = InputError) -> Frame:
    """A boolean mask of the frame's shape, brought to where the frame is."""
    mask = mask_of(values, name, error, copy=False)
    if tuple(mask.shape) != tuple(frame.shape):
        raise error(
            f"{name} must have the shape of its frame, {tuple(frame.shape)}, got "
            f"{tuple(mask.shape)}"
        )
    return like(mask, frame)


def copied(values: Any) -> Any:
    """Values that nobody else changes; what is not one array or tensor stays itself."""
    if is_tensor(values):
        return values.detach().clone()
    return values.copy() if _is_numbers(values) else values


def same(one: Any, other: Any) -> bool:
    """Whether two arrays, tensors, numbers or strings are equal; other things, if they are one."""
    if one is other:
        return True
    if isinstance(one, int | float | str | np.generic):
        return type(one) is type(other) and bool(one == other)
    tensors = is_tensor(one)
    if tensors is not is_tensor(other) or not (
        tensors or (_is_numbers(one) and _is_numbers(other))
    ):
        return False
    kinds = [(tuple(f.shape), f.dtype, getattr(f, "device", None)) for f in (one, other)]
    # A number that differs from itself is NaN, which is the same as another NaN here.
    return kinds[0] == kinds[1] and bool(((one == other) | ((one != one) & (other != other))).all())


def _is_numbers(values: Any) -> bool:
    """Whether it is one array, of numbers and not of other things."""
    return isinstance(values, np.ndarray) and not values.dtype.hasobject
