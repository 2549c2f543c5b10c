"""Models of depth: maps in metres from colour images, learnt frame by frame.

A frame x is a colour image (H, W, 3) or (3, H, W), of uint8 or of floats in [0, 1]; a label y is a
map (H, W) in metres with NaN where depth is not known. Both may be numpy arrays or torch tensors: a
map comes back as the frame was given, for a tensor on its device, with the same numbers.
"""

import os
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from setpoint._check import choice
from setpoint.errors import InputError
from setpoint_paper.models.depth_learner import DepthSettings, Goal, Learner, read

__all__ = ["OnlineDepth", "ResidualNetwork"]

_FARTHEST = 8.0
"""Logarithms of depth stay this close to that of the typical one: a factor of 3000 to each side."""


def _depths(numbers: Tensor, level: float) -> Tensor:
    return level * numbers.clamp(-_FARTHEST, _FARTHEST).exp()


def _log_error(found: Tensor, known: Tensor) -> Tensor:
    return (found.log() - known.log()).abs()


def _error(found: Tensor, known: Tensor) -> Tensor:
    return (found - known).abs()


def _squared(found: Tensor, known: Tensor) -> Tensor:
    return (found - known).square()


def _middle(known: Tensor) -> float:
    return float(known.median())


def _sizes(numbers: Tensor, level: float) -> Tensor:
    # softplus(0) = log 2: a new network says the typical size everywhere.
    return (level / float(np.log(2.0))) * functional.softplus(numbers)


def _mean(known: Tensor) -> float:
    return max(float(known.mean()), float(torch.finfo(torch.float32).tiny))


_DEPTH_LOSSES = {"log": _log_error, "metres": _error}
_SIZE_LOSSES = {"absolute": _error, "squared": _squared}


class _Network:
    """What the networks have in common: a learner, and a life on disk."""

    _kind: ClassVar[str]
    _loss: str
    _learner: Learner

    def __init__(self, settings: DepthSettings | None, *, loss: str) -> None:
        raise NotImplementedError

    @property
    def settings(self) -> DepthSettings:
        """Shape and training."""
        return self._learner.settings

    @property
    def device(self) -> str:
        """Where the network is."""
        return str(self._learner.device)

    @property
    def frames(self) -> int:
        """How many frames `learn` took in."""
        return self._learner.frames

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the whole state to a file of plain tensors, from which `load` goes on."""
        self._learner.save(path, {"loss": self._loss})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The network that `save` wrote."""
        content = read(path, cls._kind)
        model = cls(DepthSettings(**content["settings"]), **content["options"])
        model._learner.restore(content, path)
        return model

    def copy(self) -> Self:
        """Another network that has learnt the same and goes its own way."""
        made = type(self)(self.settings, loss=self._loss)
        made._learner.become(self._learner)
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings!r}, loss={self._loss!r})"


class OnlineDepth(_Network):
    """A small convolutional network that learns depth while the camera runs.

    An encoder and a decoder with skips, small enough for one core of a laptop at 208 × 64 or
    128 × 96, on the GPU where there is one. Images of any size are padded inside. `predict` is
    pure. `learn` takes Adam steps on the newest frame and a few of the past; pixels that are NaN
    are left out, a frame without a known pixel moves nothing. `fit` goes through known frames
    beforehand. Before the first label the depth is 1 m everywhere; that label's median sets the
    typical depth the network starts from.

    Equal seeds give equal results on one machine with one thread (`torch.set_num_threads(1)`),
    whatever else draws in the process; a GPU may sum in another order each time.

    Parameters
    ----------
    settings
        Shape and training.
    loss
        "metres", the absolute error; or "log", that of the logarithm, for which an error of 10 %
        weighs the same near and far.

    Examples
    --------
    >>> model = OnlineDepth(DepthSettings(channels=(8, 16), device="cpu"))
    >>> x = np.zeros((24, 30, 3), dtype=np.uint8)
    >>> y = np.full((24, 30), 12.0)
    >>> model.learn(x, y)
    >>> model.predict(x).shape
    (24, 30)
    >>> bool(abs(model.predict(x) - 12.0).max() < 0.5)
    True
    """

    _kind = "online depth"

    def __init__(self, settings: DepthSettings | None = None, *, loss: str = "metres") -> None:
        self._loss = choice(loss, "loss", tuple(_DEPTH_LOSSES))
        tiny = float(np.finfo(np.float32).tiny)
        goal = Goal(self._kind, "depth", tiny, _middle, _depths, _DEPTH_LOSSES[loss])
        self._learner = Learner(_held(settings), goal)

    def predict(self, x: Any) -> Any:
        """Depth in metres, (H, W) in float32, always above 0."""
        return self._learner.predict(x)

    def learn(self, x: Any, y: Any) -> None:
        """Takes in a frame with its depth in metres."""
        self._learner.learn(x, y)

    def check(self, x: Any, y: Any) -> None:
        """Raises what `learn` would raise, and learns nothing."""
        self._learner.check(x, y)

    def fit(
        self, rgb: Any, depth: Any, *, epochs: int = 10, batch: int = 4, flip: bool = True
    ) -> list[float]:
        """Learns known frames beforehand; the mean loss of each epoch.

        Parameters
        ----------
        rgb, depth
            Frames (T, H, W, 3) or (T, 3, H, W) and their depth (T, H, W).
        epochs
            How often all of them are gone through, each time in another order.
        batch
            Frames a step.
        flip
            Whether half of the frames, drawn anew each time, are mirrored left to right.
        """
        return self._learner.fit(rgb, depth, epochs, batch, flip)


class ResidualNetwork(_Network):
    """How large the residual of a depth model will be at each pixel, learnt beside the model.

    The network of `OnlineDepth`, with an output that is at least 0, taught by the residuals seen:
    their absolute values are taken here.

    Parameters
    ----------
    settings
        Shape and training.
    loss
        "absolute" (the loss of the authors' code, whose best answer is the median of the residual)
        or "squared" (the loss of the paper's text: its mean).

    Examples
    --------
    >>> network = ResidualNetwork(DepthSettings(channels=(8, 16), device="cpu"))
    >>> x = np.zeros((24, 30, 3), dtype=np.uint8)
    >>> network.learn(x, np.full((24, 30), -2.0))
    >>> bool(abs(network.predict(x) - 2.0).max() < 0.2)
    True

    References
    ----------
    Feldman, Ringel, Bates, Romano: Achieving Risk Control in Online Learning Settings, TMLR 2023,
    appendix "Magnitude of the Residual".
    """

    _kind = "residual network"

    def __init__(self, settings: DepthSettings | None = None, *, loss: str = "absolute") -> None:
        self._loss = choice(loss, "loss", tuple(_SIZE_LOSSES))
        goal = Goal(self._kind, "a residual", 0.0, _mean, _sizes, _SIZE_LOSSES[loss])
        self._learner = Learner(_held(settings), goal)

    def predict(self, x: Any) -> Any:
        """The size of the residual in metres, (H, W) in float32, at least 0."""
        return self._learner.predict(x)

    def learn(self, x: Any, residual: Any) -> None:
        """Takes in a frame with the residual of its estimate, NaN where it is not known."""
        self._learner.learn(x, _magnitude(residual))

    def check(self, x: Any, residual: Any) -> None:
        """Raises what `learn` would raise, and learns nothing."""
        self._learner.check(x, _magnitude(residual))

    def fit(
        self, rgb: Any, residuals: Any, *, epochs: int = 10, batch: int = 4, flip: bool = True
    ) -> list[float]:
        """Learns known frames with their residuals beforehand, as `OnlineDepth.fit` does."""
        sizes = [_magnitude(residual) for residual in residuals]
        return self._learner.fit(rgb, sizes, epochs, batch, flip)


def _held(settings: DepthSettings | None) -> DepthSettings:
    if settings is not None and not isinstance(settings, DepthSettings):
        raise InputError(f"settings must be DepthSettings, got {settings!r}")
    return DepthSettings() if settings is None else settings


def _magnitude(residual: Any) -> Any:
    if isinstance(residual, Tensor):
        return residual.abs()
    return np.ma.abs(residual) if np.ma.isMaskedArray(residual) else np.abs(residual)
