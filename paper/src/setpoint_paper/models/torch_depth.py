"""Any torch network of depth as an online model.

A frame x is a colour image (H, W, 3) or (3, H, W), of uint8 or of floats in [0, 1]; a label y is a
map (H, W) in metres with NaN where depth is not known. Both may be numpy arrays or torch tensors: a
map comes back as the frame was given, for a tensor on its device, with the same numbers.
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

from setpoint._check import finite, positive, whole
from setpoint._files import put
from setpoint.errors import InputError, PredictionError, StateError
from setpoint_paper.models.depth_trunk import answer, colours, image, label
from setpoint_paper.models.weights import matched, states, unmatched

__all__ = ["Preprocess", "TorchDepth"]

_KIND, _VERSION = "setpoint torch depth", 2


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

    def __post_init__(self) -> None:
        for name, check in (("mean", finite), ("std", positive)):
            held = tuple(check(each, name) for each in getattr(self, name))
            if len(held) != 3:
                raise InputError(f"{name} must have three numbers, got {getattr(self, name)!r}")
            object.__setattr__(self, name, held)
        whole(self.multiple, "multiple", 1)
        if self.size is not None:
            size = tuple(whole(each, "a side of size", 1) for each in self.size)
            if len(size) != 2:
                raise InputError(f"size must be a pair (height, width), got {self.size!r}")
            object.__setattr__(self, "size", size)

    def target(self, height: int, width: int) -> tuple[int, int]:
        """The size at which an image of this size is shown to the network."""
        if self.size is not None:
            height, width = self.size
        step = self.multiple
        return -(-height // step) * step, -(-width // step) * step

    def apply(self, frames: Tensor) -> Tensor:
        """Images (n, 3, H, W), of uint8 or in [0, 1], as the network wants them."""
        mean, std = (
            torch.tensor(held, device=frames.device).view(1, 3, 1, 1)
            for held in (self.mean, self.std)
        )
        shown = (colours(frames) - mean) / std
        return _resized(shown, self.target(frames.shape[-2], frames.shape[-1]))


class TorchDepth:
    """A torch network of depth, plugged in as it is: frozen, or taught frame by frame.

    `predict` runs in evaluation mode, without gradients, and resizes the network's map back to the
    frame. With an optimiser `learn` takes gradient steps on the newest frame and some of the past,
    each part of the network in the mode it was left in; without one nothing is learnt. NaN pixels
    are left out, a frame without a known pixel moves nothing.

    Parameters
    ----------
    module
        Maps images (n, 3, H, W) to depth of shape (n, 1, H, W) or (n, H, W), or to a dictionary or
        a sequence that has it; of one image also (H, W).
    optimiser
        A `torch.optim` optimiser of the module's parameters; None for a frozen network.
    loss
        "absolute", the error in metres; "squared"; "aligned", the error in standard deviations of
        the label, once scale and shift of the map are fitted to it, for networks that know depth
        only up to these; or a function of three maps (H, W) that gives one number: the network's,
        the label, and where the label is known. Elsewhere it is 0, for a NaN would spread to every
        gradient.
    preprocess
        What the network wants to see.
    output
        Where depth is if the module gives a dictionary (a key) or a sequence (a place).
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
        loss: str | Callable[[Tensor, Tensor, Tensor], Tensor] = "absolute",
        preprocess: Preprocess | None = None,
        output: str | int | None = None,
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
        if optimiser is not None and not isinstance(optimiser, torch.optim.Optimizer):
            raise InputError(
                f"optimiser must be a torch.optim.Optimizer, or None to learn nothing, "
                f"got {optimiser!r}"
            )
        if not callable(loss) and loss not in _LOSSES:
            raise InputError(
                f"loss must be one of {', '.join(_LOSSES)} or a function of three maps, "
                f"got {loss!r}"
            )
        if whole(replay, "replay", 0) > whole(memory, "memory", 0):
            raise InputError(f"replay must be at most memory = {memory}, got replay = {replay}")
        if scheduler is not None and getattr(scheduler, "optimizer", None) is not optimiser:
            raise InputError(f"scheduler must be one of the optimiser, got {scheduler!r}")
        self.module, self.optimiser = module, optimiser
        self.preprocess = Preprocess() if preprocess is None else preprocess
        self._loss = loss if callable(loss) else _LOSSES[loss]
        self._output = output
        self._steps = whole(steps, "steps", 1)
        self._scheduler = scheduler
        self._clip = None if clip is None else positive(clip, "clip")
        self._residuals, self._replay, self._begin = residuals, replay, begin
        self._memory: deque[tuple[Tensor, Tensor]] = deque(maxlen=memory)
        self._generator = torch.Generator().manual_seed(seed)
        self._begun = False

    def predict(self, x: Any) -> Any:
        """The network's depth at the size of the frame, (H, W) in float32."""
        frame = image(x)
        modes = [(each, each.training) for each in self.module.modules()]
        self.module.eval()
        try:
            with torch.no_grad():
                found = self._maps([frame])[0]
        finally:
            for each, training in modes:  # one by one: train(…) would put all parts into one mode
                each.training = training
        return answer(found, x)

    def learn(self, x: Any, y: Any) -> None:
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

    def check(self, x: Any, y: Any) -> None:
        """Raises what `learn` would raise, and learns nothing."""
        self._pair(x, y)

    def fit(
        self, rgb: Any, labels: Any, *, epochs: int = 10, batch: int = 4, flip: bool = True
    ) -> list[float]:
        """Learns known frames beforehand, in an order drawn for each epoch; each epoch's loss.

        Parameters
        ----------
        rgb, labels
            Frames (T, H, W, 3) or (T, 3, H, W) of one size and their labels (T, H, W).
        epochs, batch
            How often the network sees all of them, and frames a step.
        flip
            Whether half of the frames, drawn for each step, are mirrored left to right.
        """
        whole(epochs, "epochs", 0)
        whole(batch, "batch", 1)
        if len(rgb) != len(labels):
            raise InputError(f"rgb has {len(rgb)} frames, labels {len(labels)}: they must agree")
        pairs = [self._pair(x, y) for x, y in zip(rgb, labels, strict=True)]
        pairs = [pair for pair in pairs if not pair[1].isnan().all()]
        if not pairs:
            return []
        if len({pair[0].shape for pair in pairs}) > 1:
            raise InputError("the frames a network is fitted on must be of one size")
        self._start(torch.stack([known for _, known in pairs]))
        told = []
        for _ in range(epochs):
            order = torch.randperm(len(pairs), generator=self._generator).tolist()
            total = 0.0
            for first in range(0, len(order), batch):
                chosen = [pairs[place] for place in order[first : first + batch]]
                if flip:
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

    def _pair(self, x: Any, y: Any) -> tuple[Tensor, Tensor]:
        frame = image(x)
        shape = (frame.shape[1], frame.shape[2])
        if self._residuals:
            return frame, label(_size(y), shape, "a residual", 0.0)
        return frame, label(y, shape, "depth", float(np.finfo(np.float32).tiny))

    def _start(self, known: Tensor) -> None:
        if self._begin is not None and not self._begun:
            self._begin(known[~known.isnan()])
        self._begun = True

    def _descend(self, pairs: list[tuple[Tensor, Tensor]]) -> float:
        """One step down the loss of some frames of one size."""
        found = self._maps([x for x, _ in pairs])
        truth = torch.stack([y.to(found.device) for _, y in pairs])
        valid = ~truth.isnan()
        assert self.optimiser is not None  # who has none learns nothing
        self.optimiser.zero_grad()
        if self._loss in _ALL_AT_ONCE:
            loss = self._loss(found, truth.nan_to_num(0.0), valid)
        else:
            each = zip(found, truth.nan_to_num(0.0), valid, strict=True)
            loss = torch.stack([self._loss(*maps) for maps in each]).mean()
        loss.backward()
        if self._clip is not None:
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), self._clip)
        self.optimiser.step()
        return float(loss.detach())

    def for_residuals(self, optimiser: Any = None, *, clip: float | None = None) -> "TorchDepth":
        """This network as a model of residuals: the loss is "absolute", and a label may be 0.

        What it is shown and where its map is stay as they are. Its optimiser, scheduler and clip
        do too, unless another optimiser is given, with a clip of its own and without a scheduler.
        """
        if optimiser is None and clip is not None:
            raise InputError(f"clip goes with an optimiser, got clip={clip} and no optimiser")
        scheduler = None
        if optimiser is None:
            optimiser, scheduler, clip = self.optimiser, self._scheduler, self._clip
        return TorchDepth(
            self.module, optimiser, preprocess=self.preprocess, output=self._output,
            steps=self._steps, scheduler=scheduler, residuals=True, clip=clip,
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
        taught = self.optimiser
        content = {
            "module": dict(self.module.state_dict()),
            "taught_by": None if taught is None else type(taught).__name__,
            "optimiser": None if taught is None else taught.state_dict(),
            "scheduler": None if self._scheduler is None else self._scheduler.state_dict(),
            "generator": self._generator.get_state(),
            "memory": [list(pair) for pair in self._memory],
            "begun": self._begun,
        }
        buffer = BytesIO()
        torch.save({"format": _KIND, "version": _VERSION, **content}, buffer)
        put(path, buffer.getvalue())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Goes on from what `save` wrote, with a module and an optimiser of the same make.

        A frozen network takes the weights alone. A file that does not fit changes nothing.
        """
        content = _read(path)
        found, wanted = content["module"], self.module.state_dict()
        if found.keys() != wanted.keys() or any(
            getattr(found[name], "shape", None) != getattr(each, "shape", None)
            for name, each in wanted.items()
        ):
            raise StateError(unmatched(path, found, None, wanted))
        if self.optimiser is not None:
            name = type(self.optimiser).__name__
            if content["taught_by"] != name:
                raise StateError(
                    f"{os.fspath(path)} must be of a model with the optimiser {name}, it is of one "
                    f"with {content['taught_by'] or 'none'}"
                )
            try:
                self.optimiser.load_state_dict(content["optimiser"])
            except ValueError as error:
                raise StateError(
                    f"{os.fspath(path)} has an optimiser of other parameters: {error}"
                ) from error
        if self._scheduler is not None:
            if content.get("scheduler") is None:
                raise StateError(f"{os.fspath(path)} must be of a model with a scheduler")
            self._scheduler.load_state_dict(content["scheduler"])
        self._generator.set_state(content["generator"])
        self._memory.clear()
        self._memory.extend((frame, known) for frame, known in content["memory"])
        self._begun = content["begun"]
        self.module.load_state_dict(found)

    def load_weights(self, path: str | os.PathLike[str], key: str | None = None) -> None:
        """Takes the weights in a local file, written by `torch.save`.

        Names may have a prefix the module's own do not have ("module." of a parallel run,
        "depth_model." of a part), or lack one. Only plain tensors are read, nothing in the file is
        executed.

        Parameters
        ----------
        path
            The file.
        key
            Where the weights are, if the file holds more: "depth_model" in those of LeReS. Without
            it every entry of the file is tried.
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
        for found in states(content, key):
            fitting = matched(found, wanted)
            if fitting is not None:
                self.module.load_state_dict(fitting)
                return
        raise StateError(unmatched(path, content, key, wanted))

    def _maps(self, frames: list[Tensor]) -> Tensor:
        """Depth (n, H, W) at the size of the frames."""
        like = next(self.module.parameters(), None)
        # One by one: of the frames remembered some may be of bytes, others of floats.
        shown = torch.stack(
            [colours(each if like is None else each.to(like.device)) for each in frames]
        )
        shown = self.preprocess.apply(shown)
        given = self._chosen(self.module(shown if like is None else shown.to(like.dtype)))
        found, size = given, (len(frames), 1)
        if found.ndim == 4 and tuple(found.shape[:2]) == size:
            found = found[:, 0]
        elif found.ndim == 2 and len(frames) == 1:
            found = found[None]
        if found.ndim != 3 or len(found) != len(frames):
            raise PredictionError(
                "the module must give depth of shape (n, 1, H, W), (n, H, W) or, of one image, "
                f"(H, W), got the shape {tuple(given.shape)}"
            )
        return _resized(found[:, None], tuple(frames[0].shape[1:]))[:, 0]

    def _chosen(self, given: Any) -> Tensor:
        """The tensor of depth in what the module gave."""
        found = given
        if self._output is not None and not isinstance(given, Tensor):
            try:
                found = given[self._output]
            except (KeyError, IndexError, TypeError):
                raise PredictionError(
                    f"the module's output has nothing at {self._output!r}, it is {_told(given)}"
                ) from None
        elif isinstance(given, Mapping) and len(given) == 1:
            (found,) = given.values()
        if not isinstance(found, Tensor):
            raise PredictionError(
                f"the module must give a tensor of depth, or `output` must say where it is, got "
                f"{_told(found)}"
            )
        return found

    def __repr__(self) -> str:
        taught = "frozen" if self.optimiser is None else type(self.optimiser).__name__
        return f"TorchDepth({type(self.module).__name__}, {taught}, {self.preprocess!r})"


def _told(given: Any) -> str:
    if isinstance(given, Mapping):
        return f"a dictionary of {', '.join(map(repr, given))}"
    return f"a {type(given).__name__}"


def _resized(maps: Tensor, size: tuple[int, ...]) -> Tensor:
    if tuple(maps.shape[-2:]) == tuple(size):
        return maps
    return functional.interpolate(maps, size=list(size), mode="bilinear", align_corners=False)


def _absolute(found: Tensor, known: Tensor, valid: Tensor) -> Tensor:
    return (found[valid] - known[valid]).abs().mean()


def _deviation(values: Tensor) -> Tensor:
    """The standard deviation; 1 where all values are the same."""
    deviation = values.std(correction=0)
    return torch.where(deviation > 1e-6, deviation, torch.ones_like(deviation))


def _aligned(found: Tensor, known: Tensor, valid: Tensor) -> Tensor:
    """The absolute error after the best scale and shift, in standard deviations of the label.

    A network without a unit must not learn faster in feet than in metres. Where the best scale is
    not above 0, it is the one that gives the map the label's standard deviation.
    """
    found, known = found[valid], known[valid]
    values, apart = found.detach(), known - known.mean()
    spread = (values - values.mean()).square().sum()
    slope = ((values - values.mean()) * apart).sum() / spread.clamp_min(1e-12)
    unit, own = (_deviation(each) for each in (known, values))
    scale = torch.where(slope > 0.0, slope, unit / own)
    return (scale * found + (known.mean() - scale * values.mean()) - known).abs().mean() / unit


def _squared(found: Tensor, known: Tensor, valid: Tensor) -> Tensor:
    return (found[valid] - known[valid]).square().mean()


_LOSSES: dict[Any, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "absolute": _absolute,
    "squared": _squared,
    "aligned": _aligned,
}
_ALL_AT_ONCE = (_absolute, _squared)
"""The losses that weigh every known pixel of a batch alike."""


def _size(residual: Any) -> Any:
    if isinstance(residual, Tensor):
        return residual.abs()
    return np.ma.abs(residual) if np.ma.isMaskedArray(residual) else np.abs(residual)


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a saved network, or an error that says what is wrong with the file."""
    data = Path(path).read_bytes()
    try:
        content = torch.load(BytesIO(data), map_location="cpu", weights_only=True)
        found, version = content["format"], content["version"]
    except Exception as error:
        raise StateError(f"{os.fspath(path)} is damaged or not a saved network") from error
    if (found, version) != (_KIND, _VERSION):
        raise StateError(
            f"{os.fspath(path)} must hold a {_KIND} of version {_VERSION}, it holds {found!r} of "
            f"version {version!r}"
        )
    return dict(content)
