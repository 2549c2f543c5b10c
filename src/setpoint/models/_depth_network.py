"""The trunk of the depth networks, and what goes in and out of it."""

# mypy: allow-subclassing-any, allow-untyped-calls

from itertools import pairwise
from typing import Any

import numpy as np

from setpoint.errors import InputError, LabelError

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ImportError as error:
    raise ImportError("this needs torch: pip install 'setpoint[torch]'") from error

__all__ = ["Trunk", "device_of", "image", "label"]

_SLOPE = 0.1
_GROUPS = 4


class Trunk(nn.Module):
    """One number a pixel from a colour image of any size: an encoder and a decoder with skips.

    Each stage of the encoder halves the image, each of the decoder doubles it and joins what the
    encoder saw at that size. Beside the colours it sees where a pixel lies, since depth goes with
    height in most scenes, and convolutions alone cannot tell.
    """

    def __init__(self, channels: tuple[int, ...]) -> None:
        super().__init__()
        self.multiple = 2 ** len(channels)
        ways = pairwise((5, *channels))
        self.down = nn.ModuleList([_down(before, after) for before, after in ways])
        back = channels[::-1]
        self.up = nn.ModuleList([_up(deep + skip, skip) for deep, skip in pairwise(back)])
        self.head = nn.Sequential(*_convolution(channels[0], channels[0]), _last(channels[0]))

    def forward(self, rgb: Tensor) -> Tensor:
        """Numbers (n, H, W) for images (n, 3, H, W) in [0, 1]."""
        height, width = rgb.shape[-2:]
        rows = torch.linspace(-1.0, 1.0, height, device=rgb.device).view(1, 1, height, 1)
        columns = torch.linspace(-1.0, 1.0, width, device=rgb.device).view(1, 1, 1, width)
        where = [each.expand(len(rgb), 1, height, width) for each in (rows, columns)]
        known = torch.cat([2.0 * rgb - 1.0, *where], dim=1)
        short = (-width % self.multiple, -height % self.multiple)
        known = functional.pad(known, (0, short[0], 0, short[1]), mode="replicate")
        seen = []
        for stage in self.down:
            known = stage(known)
            seen.append(known)
        for stage, skip in zip(self.up, seen[-2::-1], strict=True):
            known = stage(torch.cat([functional.interpolate(known, scale_factor=2.0), skip], dim=1))
        found = functional.interpolate(self.head(known), scale_factor=2.0, mode="bilinear")
        return found[:, 0, :height, :width]


def _convolution(before: int, after: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(before, after, 3, stride, 1), nn.LeakyReLU(_SLOPE)]


def _down(before: int, after: int) -> nn.Module:
    first, bend = _convolution(before, after, 2)
    groups = _GROUPS if after % _GROUPS == 0 else 1
    return nn.Sequential(first, nn.GroupNorm(groups, after), bend, *_convolution(after, after))


def _up(before: int, after: int) -> nn.Module:
    return nn.Sequential(*_convolution(before, after))


def _last(before: int) -> nn.Module:
    """The last convolution; it begins at zero, so a new network says the same everywhere."""
    made = nn.Conv2d(before, 1, 3, padding=1)
    nn.init.zeros_(made.weight)
    assert made.bias is not None
    nn.init.zeros_(made.bias)
    return made


def device_of(device: str) -> torch.device:
    """The device of a name; "auto" is the GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError):
        raise InputError(
            f'device must be "auto", "cpu" or a device torch has here, got {device!r}'
        ) from None
    return found


def image(x: Any) -> Tensor:
    """A frame (H, W, 3) of uint8 as a tensor (3, H, W) of uint8 of its own."""
    frame = x.detach().cpu().numpy() if isinstance(x, Tensor) else np.asarray(x)
    if frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8 or not frame.size:
        raise InputError(
            f"x must be an image of shape (H, W, 3) and type uint8, got the shape {frame.shape} "
            f"and the type {frame.dtype}"
        )
    return torch.from_numpy(frame.transpose(2, 0, 1).copy())


def label(y: Any, shape: tuple[int, int], what: str, least: float) -> Tensor:
    """A map (H, W) as a float32 tensor of its own, NaN where it is not known."""
    if np.ma.isMaskedArray(y):
        y = np.ma.filled(np.ma.asarray(y, dtype=np.float32), np.nan)
    held = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    if held.shape != shape or held.dtype.kind not in "fiu":
        raise LabelError(
            f"{what} must be a map of numbers of the frame's shape {shape}, got the shape "
            f"{held.shape} and the type {held.dtype}"
        )
    values = held.astype(np.float32)
    wrong = values[(values < least) | np.isinf(values)]
    if wrong.size:
        bound = "greater than 0" if least > 0.0 else "at least 0"
        raise LabelError(f"{what} must be finite and {bound}, or NaN, got {wrong[0]}")
    return torch.from_numpy(values)
