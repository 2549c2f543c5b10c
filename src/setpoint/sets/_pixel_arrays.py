"""What pixel families are given: arrays and tensors, checked once and made plain.

Whatever was a tensor stays one, on its device and without its graph; everything else becomes a
numpy array. Values are single or double precision: single if that holds them exactly.
"""

from types import ModuleType
from typing import Any

import numpy as np

from setpoint.errors import InputError, LabelError

__all__ = ["beside", "chosen", "is_tensor", "label_parts", "mask_of", "plane", "same_kind", "space"]


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


def plane(value: Any, what: str, error: type[InputError], *, copy: bool) -> Any:
    """Numbers for each pixel, as an array or tensor that is contiguous and in real precision."""
    found = _tensor(value, what, error, copy) if is_tensor(value) else None
    if found is None:
        found = _array(value, what, error, copy)
    if found.ndim < 2:
        raise error(f"{what} must be a frame with height and width, got {_told(value)}")
    return found


def _tensor(value: Any, what: str, error: type[InputError], copy: bool) -> Any:
    torch = space(value)
    held = value.detach()
    if held.is_complex():
        raise error(f"{what} must be real numbers, got a tensor of {held.dtype}")
    if held.dtype not in (torch.float32, torch.float64):
        small = held.dtype.is_floating_point or held.dtype.itemsize <= 2
        return held.to(torch.float32 if small else torch.float64).contiguous()
    packed = held.contiguous()
    return packed.clone() if copy and packed.data_ptr() == held.data_ptr() else packed


def _array(value: Any, what: str, error: type[InputError], copy: bool) -> Any:
    try:
        held = np.asarray(value)
    except ValueError:
        held = np.asarray(None)
    if held.dtype.kind not in "biuf":
        raise error(f"{what} must be numbers for each pixel, got {_told(value)}")
    small = held.dtype.itemsize <= (4 if held.dtype.kind == "f" else 2)
    return np.array(held, np.float32 if small else np.float64, order="C", copy=copy or None)


def _told(value: Any) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None:
        return f"{dtype} of shape {tuple(shape)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def mask_of(value: Any, what: str, error: type[InputError], *, copy: bool) -> Any:
    """A boolean mask of pixels."""
    if is_tensor(value):
        held = value.detach()
        if held.dtype is not space(held).bool:
            raise error(f"{what} must be a boolean mask, got {_told(value)}")
        packed = held.contiguous()
        return packed.clone() if copy and packed.data_ptr() == held.data_ptr() else packed
    held = np.asarray(value)
    if held.dtype != np.bool_:
        raise error(f"{what} must be a boolean mask, got {_told(value)}")
    return np.array(held, order="C", copy=copy or None)


def same_kind(parts: dict[str, Any], error: type[InputError]) -> None:
    """One clear error if the parts of a frame differ in shape, or in where they are."""
    kinds = {name: _kind(part) for name, part in parts.items()}
    if len({kind[0] for kind in kinds.values()}) > 1:
        shapes = ", ".join(f"{name} {kind[0]}" for name, kind in kinds.items())
        raise error(f"a frame must have one shape, got {shapes}")
    if len({kind[1] for kind in kinds.values()}) > 1:
        places = ", ".join(f"{name} in {kind[1]}" for name, kind in kinds.items())
        raise error(f"a frame must be all numpy, or all torch on one device, got {places}")


def _kind(part: Any) -> tuple[tuple[int, ...], str]:
    return tuple(part.shape), f"torch on {part.device}" if is_tensor(part) else "numpy"


def label_parts(y: Any) -> tuple[Any, Any]:
    """A label as its values and the mask of the pixels to judge, None for all."""
    if isinstance(y, np.ma.MaskedArray):
        return y.data, ~np.ma.getmaskarray(y)
    if isinstance(y, tuple):
        if len(y) != 2:
            raise LabelError(f"a label must be a frame or a pair (values, valid), got {_told(y)}")
        return y
    return y, None


def beside(frame: Any, label: Any) -> Any:
    """A label of the frame's shape, brought to where the frame is."""
    if label.shape != frame.shape and tuple(label.shape) != tuple(frame.shape):
        raise LabelError(
            f"a label must have the shape of its prediction, {tuple(frame.shape)}, got "
            f"{tuple(label.shape)}"
        )
    if is_tensor(frame):
        if not is_tensor(label) and not label.flags.writeable:
            label = label.copy()  # a tensor could be written to
        return space(frame).as_tensor(label, device=frame.device)
    return label.cpu().numpy() if is_tensor(label) else label


def chosen(frame: Any, index: Any) -> Any:
    """The pixels of a region: a view of a window, or a row of the pixels of a mask."""
    if is_tensor(frame) and not isinstance(index, tuple):
        index = space(frame).as_tensor(np.array(index), device=frame.device)
    return frame[index]
