"""The small networks of the experiments: depth, or sizes of residuals, learnt from scratch."""

from dataclasses import dataclass

import torch

from setpoint._check import positive, whole
from setpoint.errors import InputError
from setpoint_paper.models.depth_trunk import Small, device_of
from setpoint_paper.models.torch_depth import Preprocess, TorchDepth

__all__ = ["DepthSettings", "small_network"]


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
    device
        "auto" (the GPU where there is one), "cpu", "cuda", …
    """

    channels: tuple[int, ...] = (16, 32, 64)
    learning_rate: float = 1e-3
    steps: int = 1
    replay: int = 1
    memory: int = 64
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        channels = tuple(whole(each, "a number of channels", 1) for each in self.channels)
        if not channels:
            raise InputError("channels must have at least one stage, got ()")
        object.__setattr__(self, "channels", channels)
        positive(self.learning_rate, "learning_rate")
        whole(self.seed, "seed", 0)


def small_network(
    settings: DepthSettings | None = None, *, residuals: bool = False, loss: str = "absolute"
) -> TorchDepth:
    """A small convolutional network that learns depth, or sizes of residuals, as the camera runs.

    An encoder and a decoder with skips, small enough for one core of a laptop at 208 × 64 or
    128 × 96. Equal seeds give equal results on one machine with one thread, whatever else draws in
    the process; a GPU may sum in another order each time.

    Parameters
    ----------
    settings
        Shape and training.
    residuals
        Sizes of residuals instead of depth: the paper's "magnitude of the residual".
    loss
        "absolute", that of the authors' code, or "squared", that of the paper's text.

    Examples
    --------
    >>> import numpy as np
    >>> model = small_network(DepthSettings(channels=(8, 16), device="cpu"))
    >>> x = np.zeros((24, 30, 3), dtype=np.uint8)
    >>> model.learn(x, np.full((24, 30), 12.0))
    >>> bool(abs(model.predict(x) - 12.0).max() < 0.5)
    True
    """
    held = DepthSettings() if settings is None else settings
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(held.seed)
        module = Small(held.channels, residuals).to(device_of(held.device))
    return TorchDepth(
        module, torch.optim.Adam(module.parameters(), lr=held.learning_rate), loss=loss,
        preprocess=Preprocess((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), multiple=1), steps=held.steps,
        residuals=residuals, replay=held.replay, memory=held.memory, seed=held.seed,
        begin=module.begin,
    )  # fmt: skip
