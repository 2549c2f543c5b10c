"""Any torch network of depth as an online model of video.

A frame x is a colour image (H, W, 3) of uint8; a label y is a map (H, W) in metres, NaN where depth
is not known. `setpoint.models.torch.Online` with `Map` takes other images and other labels; this
one also resizes, learns again from frames of the past, and goes on from a file to the bit.
"""

# mypy: allow-subclassing-any, allow-untyped-calls

import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from setpoint._check import choice, positive, whole
from setpoint._files import put
from setpoint.errors import InputError, LabelError, PredictionError, StateError

_KIND = "setpoint torch depth 3"


@dataclass(frozen=True, slots=True)
class Preprocess:
    """What a network wants to see: colours in [0, 1] less `mean`, over `std`, at its own size.

    Parameters
    ----------
    mean, std
        Of red, green and blue; those of ImageNet, which most networks were trained with.
    size
        The height and width the image is resized to; None for its own.
    multiple
        The sides are rounded up to a multiple of this.

    Examples
    --------
    >>> Preprocess(size=(448, 448)).target(375, 1242)
    (448, 448)
    >>> Preprocess().target(375, 1242)
    (384, 1248)
    """

    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)
    size: tuple[int, int] | None = None
    multiple: int = 32

    def target(self, height: int, width: int) -> tuple[int, int]:
        """The size at which an image of this size is shown to the network."""
        if self.size is not None:
            height, width = self.size
        step = self.multiple
        return -(-height // step) * step, -(-width // step) * step

    def apply(self, frames: Tensor) -> Tensor:
        """Images (n, 3, H, W) of uint8 as the network wants them."""
        mean, std = (
            torch.tensor(held, device=frames.device).view(1, 3, 1, 1)
            for held in (self.mean, self.std)
        )
        shown = (frames.float() / 255.0 - mean) / std
        return _resized(shown, self.target(frames.shape[-2], frames.shape[-1]))


class TorchDepth:
    """A torch network of depth that is taught frame by frame, or frozen.

    `predict` runs in evaluation mode, without gradients, and resizes the network's map back to the
    frame. `learn` takes gradient steps on the newest frame and some of the past, each part of the
    network in the mode it was left in. NaN pixels are left out, a frame without a known pixel
    moves nothing.

    Parameters
    ----------
    module
        Maps images (n, 3, H, W) to depth of shape (n, 1, H, W) or (n, H, W).
    optimiser
        A `torch.optim` optimiser of the module's parameters; None for a frozen network.
    loss
        "absolute", the error in metres, or "aligned", the error in standard deviations of the
        label, once scale and shift of the map are fitted to it, for networks that know depth only
        up to these.
    preprocess
        What the network wants to see.
    steps
        Gradient steps a frame.
    scheduler
        A scheduler of the optimiser, which takes a step after each frame that was learnt.
    residuals
        Whether labels are residuals, whose sizes are learnt and may be 0, and not depth.
    clip
        The largest norm of all gradients together, to which larger ones are cut; None cuts none.
    replay, memory
        How many frames of the past each step sees beside the newest, drawn from how many.
    seed
        Of these draws and of the order of `fit`.
    begin
        Called once with the known numbers of the first labels, before the first step.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> network = torch.nn.Conv2d(3, 1, 3, padding=1)
    >>> model = TorchDepth(network, preprocess=Preprocess(size=(64, 64)))
    >>> model.predict(np.zeros((48, 80, 3), dtype=np.uint8)).shape
    (48, 80)
    """

    def __init__(
        self,
        module: Any,
        optimiser: Any = None,
        *,
        loss: str = "absolute",
        preprocess: Preprocess | None = None,
        steps: int = 1,
        scheduler: Any = None,
        residuals: bool = False,
        clip: float | None = None,
        replay: int = 0,
        memory: int = 0,
        seed: int = 0,
        begin: Callable[[Tensor], None] | None = None,
    ) -> None:
        if not isinstance(module, torch.nn.Module):
            raise InputError(f"module must be a torch.nn.Module, got {module!r}")
        if whole(replay, "replay", 0) > whole(memory, "memory", 0):
            raise InputError(f"replay must be at most memory = {memory}, got replay = {replay}")
        self.module, self.optimiser = module, optimiser
        self.preprocess = Preprocess() if preprocess is None else preprocess
        self._loss = _LOSSES[choice(loss, "loss", tuple(_LOSSES))]
        self._steps = whole(steps, "steps", 1)
        self._scheduler = scheduler
        self._clip = None if clip is None else positive(clip, "clip")
        self._residuals, self._replay, self._begin = residuals, replay, begin
        self._memory: deque[tuple[Tensor, Tensor]] = deque(maxlen=memory)
        self._generator = torch.Generator().manual_seed(seed)
        self._begun = False

    def predict(self, x: np.ndarray) -> np.ndarray:
        """The network's depth at the size of the frame, (H, W) in float32."""
        frame = _image(x)
        modes = [(each, each.training) for each in self.module.modules()]
        self.module.eval()
        try:
            with torch.no_grad():
                found = self._maps([frame])[0]
        finally:
            for each, training in modes:  # one by one: train(…) would put all parts into one mode
                each.training = training
        return found.float().cpu().numpy()

    def learn(self, x: np.ndarray, y: np.ndarray) -> None:
        """Takes gradient steps on the frame; a network without an optimiser stays as it is."""
        frame, known = self._pair(x, y)
        if self.optimiser is None or known.isnan().all():
            return
        self._start(known)
        past = [each for each in self._memory if each[0].shape == frame.shape]
        for _ in range(self._steps):
            chosen = torch.randperm(len(past), generator=self._generator)[: self._replay]
            self._descend([(frame, known), *(past[place] for place in chosen.tolist())])
        self._memory.append((frame, known))
        if self._scheduler is not None:
            self._scheduler.step()

    def fit(self, rgb: Any, labels: Any, *, epochs: int = 10) -> list[float]:
        """Learns known frames beforehand, in an order drawn for each epoch; each epoch's loss.

        Parameters
        ----------
        rgb, labels
            Frames (T, H, W, 3) and their labels (T, H, W), four a step; half of them, drawn for
            each step, are mirrored left to right.
        epochs
            How often the network sees all of them.
        """
        whole(epochs, "epochs", 0)
        pairs = [self._pair(x, y) for x, y in zip(rgb, labels, strict=True)]
        pairs = [pair for pair in pairs if not pair[1].isnan().all()]
        if not pairs:
            return []
        self._start(torch.stack([known for _, known in pairs]))
        told = []
        for _ in range(epochs):
            order = torch.randperm(len(pairs), generator=self._generator).tolist()
            total = 0.0
            for first in range(0, len(order), _BATCH):
                chosen = [pairs[place] for place in order[first : first + _BATCH]]
                turned = torch.rand(len(chosen), generator=self._generator) < 0.5
                chosen = [
                    (x.flip(-1), y.flip(-1)) if turn else (x, y)
                    for (x, y), turn in zip(chosen, turned.tolist(), strict=True)
                ]
                total += self._descend(chosen) * len(chosen)
            told.append(total / len(pairs))
        if self._memory.maxlen:
            self._memory.extend(pairs[-self._memory.maxlen :])
        return told

    def _pair(self, x: np.ndarray, y: np.ndarray) -> tuple[Tensor, Tensor]:
        """A frame and its label as tensors of their own."""
        frame = _image(x)
        known = torch.from_numpy(np.array(np.abs(y) if self._residuals else y, np.float32))
        if known.shape != frame.shape[1:]:
            raise LabelError(
                f"a label must be a map of the frame's shape {tuple(frame.shape[1:])}, got the "
                f"shape {tuple(known.shape)}"
            )
        wrong = known[known.isinf() | (known < 0.0) | ((known == 0.0) & (not self._residuals))]
        if len(wrong):
            least = "at least 0" if self._residuals else "greater than 0"
            raise LabelError(f"a label must be finite and {least}, or NaN, got {wrong[0]:g}")
        return frame, known

    def _start(self, known: Tensor) -> None:
        if self._begin is not None and not self._begun:
            self._begin(known[~known.isnan()])
        self._begun = True

    def _descend(self, pairs: list[tuple[Tensor, Tensor]]) -> float:
        """One step down the loss of some frames of one size."""
        found = self._maps([x for x, _ in pairs])
        truth = torch.stack([y.to(found.device) for _, y in pairs])
        self.optimiser.zero_grad()
        loss = self._loss(found, truth)
        loss.backward()
        if self._clip is not None:
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), self._clip)
        self.optimiser.step()
        return float(loss.detach())

    def for_residuals(self, optimiser: Any = None, *, clip: float | None = None) -> "TorchDepth":
        """This network as a model of residuals: the loss is "absolute", and a label may be 0.

        What it is shown stays as it is. Its optimiser, scheduler and clip do too, unless another
        optimiser is given, with a clip of its own and without a scheduler.
        """
        scheduler = None
        if optimiser is None:
            optimiser, scheduler, clip = self.optimiser, self._scheduler, self._clip
        return TorchDepth(
            self.module, optimiser, preprocess=self.preprocess, steps=self._steps,
            scheduler=scheduler, residuals=True, clip=clip,
        )  # fmt: skip

    def redraw(self, beginnings: Iterable[str]) -> None:
        """Gives some weights random values again, as torch first draws those of such a layer.

        Parameters
        ----------
        beginnings
            Of the names of weights, up to a dot: "decoder.outconv" means all in that part. A layer
            is drawn as a whole, its bias with its weights.
        """
        names = [name for name, _ in self.module.named_parameters()]
        for beginning in beginnings:
            layers = dict.fromkeys(
                name.rpartition(".")[0] for name in names if f"{name}.".startswith(f"{beginning}.")
            )
            if not layers:
                raise InputError(
                    f"no weights of the network begin with {beginning!r}; the last of its "
                    f"{len(names)} are {', '.join(names[-3:])}"
                )
            for layer in layers:
                part: Any = self.module.get_submodule(layer)
                if not callable(getattr(part, "reset_parameters", None)):
                    raise InputError(
                        f"the weights of {layer or type(part).__name__!r} cannot be drawn again: "
                        "it has no reset_parameters"
                    )
                part.reset_parameters()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all that the next steps depend on to a file of plain tensors.

        What the module draws at random (dropout) comes from torch's own generator, which is the
        caller's to keep.
        """
        content = {
            "format": _KIND,
            "module": dict(self.module.state_dict()),
            "taught": [each.state_dict() for each in self._taught()],
            "generator": self._generator.get_state(),
            "memory": [list(pair) for pair in self._memory],
            "begun": self._begun,
        }
        buffer = BytesIO()
        torch.save(content, buffer)
        put(path, buffer.getvalue())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Goes on from what `save` wrote, with a module and an optimiser of the same make."""
        data = Path(path).read_bytes()
        try:
            content = torch.load(BytesIO(data), map_location="cpu", weights_only=True)
            if content["format"] != _KIND:
                raise ValueError(f"its format is {content['format']!r}")
            self.module.load_state_dict(content["module"])
            for each, state in zip(self._taught(), content["taught"], strict=True):
                each.load_state_dict(state)
            self._generator.set_state(content["generator"])
            pairs = [(frame, known) for frame, known in content["memory"]]
            self._begun = content["begun"]
        except Exception as error:  # damage shows itself in many ways
            raise StateError(
                f"{os.fspath(path)} is damaged, or of another network: {error}"
            ) from error
        self._memory.clear()
        self._memory.extend(pairs)

    def _taught(self) -> list[Any]:
        return [each for each in (self.optimiser, self._scheduler) if each is not None]

    def load_weights(self, path: str | os.PathLike[str], key: str | None = None) -> None:
        """Takes the weights in a local file, written by `torch.save`.

        Names may have a prefix the module's own do not have ("module." of a parallel run,
        "depth_model." of a part). Only plain tensors are read, nothing in the file is executed.

        Parameters
        ----------
        path
            The file.
        key
            Where the weights are, if the file holds more: "depth_model" in those of LeReS. Without
            it they are the file itself, or its "state_dict".
        """
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
        except FileNotFoundError:
            raise InputError(f"{os.fspath(path)} must be a file of weights, it is absent") from None
        except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
            raise StateError(
                f"{os.fspath(path)} must hold plain tensors written by torch.save: it is damaged, "
                "or it holds objects that could run code and are not read"
            ) from error
        wanted = self.module.state_dict()
        for name in (key,) if key is not None else (None, "state_dict"):
            held = content if name is None else content.get(name, {})
            fitting = _matched(held, wanted)
            if fitting is not None:
                self.module.load_state_dict(fitting)
                return
        raise StateError(
            f"{os.fspath(path)} does not fit the module, which has {len(wanted)} tensors "
            f"({', '.join(list(wanted)[:3])}, …): {'' if key is None else f'at {key!r} '}it holds "
            f"{', '.join(map(str, list(held)[:3])) or 'none'}"
        )

    def _maps(self, frames: list[Tensor]) -> Tensor:
        """Depth (n, H, W) at the size of the frames."""
        shown = torch.stack(frames)
        like = next(self.module.parameters(), None)
        if like is not None:
            shown = shown.to(like.device)
        found = self.module(self.preprocess.apply(shown))
        if isinstance(found, Tensor) and found.ndim == 4 and found.shape[1] == 1:
            found = found[:, 0]
        if not isinstance(found, Tensor) or found.ndim != 3 or len(found) != len(frames):
            got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise PredictionError(
                f"the module must give depth of shape (n, 1, H, W) or (n, H, W), got {got}"
            )
        return _resized(found[:, None], tuple(frames[0].shape[1:]))[:, 0]


_BATCH = 4


def _image(x: np.ndarray) -> Tensor:
    """A frame as a tensor (3, H, W) of its own."""
    if x.dtype != np.uint8 or x.ndim != 3 or x.shape[2] != 3:
        raise InputError(
            f"x must be an image of shape (H, W, 3) and of type uint8, got the shape {x.shape} and "
            f"the type {x.dtype}"
        )
    return torch.from_numpy(np.moveaxis(x, 2, 0).copy())


def _resized(maps: Tensor, size: tuple[int, ...]) -> Tensor:
    if tuple(maps.shape[-2:]) == tuple(size):
        return maps
    return functional.interpolate(maps, size=list(size), mode="bilinear", align_corners=False)


# Losses


def _absolute(found: Tensor, truth: Tensor) -> Tensor:
    known = ~truth.isnan()
    return (found[known] - truth[known]).abs().mean()


def _aligned(found: Tensor, truth: Tensor) -> Tensor:
    """The mean over frames of `_of_frame`: scale and shift are those of a frame."""
    known = ~truth.isnan()
    frames = zip(found, truth, known, strict=True)
    return torch.stack([_of_frame(one[at], y[at]) for one, y, at in frames]).mean()


def _of_frame(found: Tensor, known: Tensor) -> Tensor:
    """The absolute error after the best scale and shift, in standard deviations of the label.

    A network without a unit must not learn faster in feet than in metres. Where the best scale is
    not above 0, it is the one that gives the map the label's standard deviation.
    """
    values, apart = found.detach(), known - known.mean()
    spread = (values - values.mean()).square().sum()
    slope = ((values - values.mean()) * apart).sum() / spread.clamp_min(1e-12)
    unit, own = (_deviation(each) for each in (known, values))
    scale = torch.where(slope > 0.0, slope, unit / own)
    return (scale * found + (known.mean() - scale * values.mean()) - known).abs().mean() / unit


def _deviation(values: Tensor) -> Tensor:
    """The standard deviation; 1 where all values are the same."""
    deviation = values.std(correction=0)
    return torch.where(deviation > 1e-6, deviation, torch.ones_like(deviation))


_LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "absolute": _absolute,
    "aligned": _aligned,
}


# Weights in files of others


def _matched(found: Any, wanted: dict[str, Tensor]) -> dict[str, Tensor] | None:
    """The tensors under the names the module has for them, if some prefix makes all fit."""
    needed = [name for name in wanted if not name.endswith("num_batches_tracked")]
    for name in found if isinstance(found, Mapping) and needed else ():
        extra = name.removesuffix(needed[0])
        held = {each: found.get(f"{extra}{each}") for each in needed}
        if all(getattr(one, "shape", None) == wanted[each].shape for each, one in held.items()):
            # Counts of batches are absent in old files, and nothing but momentum=None reads them.
            return {each: found.get(f"{extra}{each}", wanted[each]) for each in wanted}
    return None
