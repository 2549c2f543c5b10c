"""The small networks of the experiments: depth, or sizes of residuals, learnt from scratch."""

# mypy: allow-subclassing-any, allow-untyped-calls

from dataclasses import dataclass
from itertools import pairwise
from math import log

import torch
from torch import Tensor, nn
from torch.nn import functional

from setpoint_paper.models.torch_depth import Preprocess, TorchDepth

_SLOPE, _GROUPS = 0.1, 4
_FARTHEST = 8.0
"""Logarithms of depth stay this close to that of the typical one: a factor of 3000 either way."""


@dataclass(frozen=True, slots=True)
class DepthSettings:
    """Shape and training of a small network.

    Parameters
    ----------
    channels
        The channels of each stage; each halves the image.
    learning_rate
        Of Adam.
    steps, replay, memory
        Gradient steps a frame, and the frames of the past; see `TorchDepth`.
    seed
        Of the first weights and of every draw.
    """

    channels: tuple[int, ...] = (16, 32, 64)
    learning_rate: float = 1e-3
    steps: int = 1
    replay: int = 1
    memory: int = 64
    seed: int = 0


def small_network(settings: DepthSettings | None = None, *, residuals: bool = False) -> TorchDepth:
    """A small convolutional network that learns depth, or sizes of residuals, as the camera runs.

    Small enough for one core of a laptop at 208 × 64 or 128 × 96. Equal seeds give equal results on
    one machine with one thread, whatever else draws in the process.

    Parameters
    ----------
    settings
        Shape and training.
    residuals
        Sizes of residuals instead of depth: the paper's "magnitude of the residual".

    Examples
    --------
    >>> import numpy as np
    >>> model = small_network(DepthSettings(channels=(8, 16)))
    >>> x = np.zeros((24, 30, 3), dtype=np.uint8)
    >>> model.learn(x, np.full((24, 30), 12.0))
    >>> bool(abs(model.predict(x) - 12.0).max() < 0.5)
    True
    """
    held = DepthSettings() if settings is None else settings
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(held.seed)
        module = _Small(held.channels, residuals)
    return TorchDepth(
        module, torch.optim.Adam(module.parameters(), lr=held.learning_rate),
        preprocess=Preprocess((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), multiple=1), steps=held.steps,
        residuals=residuals, replay=held.replay, memory=held.memory, seed=held.seed,
        begin=module.begin,
    )  # fmt: skip


class _Small(nn.Module):
    """Depth in metres, or sizes of residuals, from a `_Trunk` and a typical size.

    The first labels set the typical size, by `begin`, so that metres need no scaling. A new network
    says that size everywhere.
    """

    def __init__(self, channels: tuple[int, ...], residuals: bool) -> None:
        super().__init__()
        self.trunk, self.residuals = _Trunk(channels), residuals
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
            return (level / log(2.0)) * functional.softplus(numbers)
        return level * numbers.clamp(-_FARTHEST, _FARTHEST).exp()


class _Trunk(nn.Module):
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
        self.up = nn.ModuleList(
            [nn.Sequential(*_convolution(deep + skip, skip)) for deep, skip in pairwise(back)]
        )
        first = _convolution(channels[0], channels[0])
        self.head = nn.Sequential(*first, nn.Conv2d(channels[0], 1, 3, padding=1))
        for part in self.head[-1].parameters():  # so a new network says the same everywhere
            nn.init.zeros_(part)

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
