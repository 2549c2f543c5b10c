"""A small network of depth, and what goes in and out of any network of images."""

# mypy: allow-subclassing-any, allow-untyped-calls

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from setpoint.errors import InputError, LabelError

__all__ = ["Small", "Trunk", "answer", "colours", "device_of", "image", "label"]

_SLOPE = 0.1
_GROUPS = 4
_FARTHEST = 8.0
"""Logarithms of depth stay this close to that of the typical one: a factor of 3000 either way."""


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


class Small(nn.Module):
    """Depth in metres, or sizes of residuals, from a `Trunk` and a typical size.

    The first labels set the typical size, by `begin`, so that metres need no scaling. A new network
    says that size everywhere.

    Parameters
    ----------
    channels
        The channels of each stage; each halves the image.
    residuals
        Sizes of residuals, at least 0, instead of depth, always above 0.
    """

    def __init__(self, channels: tuple[int, ...], residuals: bool = False) -> None:
        super().__init__()
        self.trunk, self.residuals = Trunk(channels), residuals
        self.level: Tensor
        self.register_buffer("level", torch.tensor(1.0, dtype=torch.float64))

    def begin(self, known: Tensor) -> None:
        """Takes the typical size from the first labels that are known."""
        if self.residuals:
            size = max(float(known.mean()), float(torch.finfo(torch.float32).tiny))
        else:
            size = float(known.median())
        self.level.fill_(size)

    def forward(self, rgb: Tensor) -> Tensor:
        """Maps (n, H, W) for images (n, 3, H, W) in [0, 1]."""
        numbers: Tensor = self.trunk(rgb)
        level = float(self.level)
        if self.residuals:  # softplus(0) = log 2
            return (level / float(np.log(2.0))) * functional.softplus(numbers)
        return level * numbers.clamp(-_FARTHEST, _FARTHEST).exp()


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
    """A colour image as a tensor (3, H, W) of its own: uint8, or float32 in [0, 1].

    Colours may come first or last; where both sides are 3, they are last. A tensor stays on its
    device.
    """
    given = isinstance(x, Tensor)
    held: Any = x.detach() if given else np.asarray(x)
    shape = tuple(held.shape)
    real = held.is_floating_point() if given else held.dtype.kind == "f"
    byte = held.dtype == (torch.uint8 if given else np.uint8)
    if not (real or byte) or len(shape) != 3 or 3 not in shape[::2] or 0 in shape:
        raise InputError(
            "x must be an image of shape (H, W, 3) or (3, H, W) and of type uint8 or of floats in "
            f"[0, 1], got the shape {shape} and the type {held.dtype}"
        )
    if not given:
        held = torch.from_numpy(np.array(held, np.float32 if real else np.uint8, order="C"))
    if shape[2] == 3:
        held = held.permute(2, 0, 1)
    kind = torch.float32 if real else torch.uint8
    made: Tensor = held.to(kind, copy=True, memory_format=torch.contiguous_format)
    if real:
        low, high = (float(each) for each in made.aminmax())
        if not (low >= 0.0 and high <= 1.0):
            raise InputError(
                f"an image of floats must lie within [0, 1], got values from {low:g} to {high:g}"
            )
    return made


def colours(frames: Tensor) -> Tensor:
    """Images of uint8, or of floats in [0, 1], as float32 in [0, 1]."""
    return frames.float() / 255.0 if frames.dtype == torch.uint8 else frames.float()


def answer(found: Tensor, x: Any) -> Any:
    """A map as the frame was given: a tensor on its device, else a numpy array."""
    found = found.float()
    return found.to(x.device) if isinstance(x, Tensor) else found.cpu().numpy()


def label(y: Any, shape: tuple[int, int], what: str, least: float) -> Tensor:
    """A map (H, W) as a float32 tensor of its own, NaN where it is not known."""
    if np.ma.isMaskedArray(y):
        y = np.ma.filled(np.ma.asarray(y, dtype=np.float32), np.nan)
    given = isinstance(y, Tensor)
    held: Any = y.detach() if given else np.asarray(y)
    if given:
        numbers = held.dtype != torch.bool and not held.is_complex()
    else:
        numbers = held.dtype.kind in "fiu"
    if tuple(held.shape) != shape or not numbers:
        raise LabelError(
            f"{what} must be a map of numbers of the frame's shape {shape}, got the shape "
            f"{tuple(held.shape)} and the type {held.dtype}"
        )
    values: Tensor
    if given:
        values = held.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
    else:
        values = torch.from_numpy(np.array(held, np.float32, order="C"))
    wrong = values[(values < least) | values.isinf()]
    if len(wrong):
        bound = "greater than 0" if least > 0.0 else "at least 0"
        raise LabelError(f"{what} must be finite and {bound}, or NaN, got {float(wrong[0]):g}")
    return values
