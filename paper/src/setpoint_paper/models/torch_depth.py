"""Any torch depth network as an online model, with its own weights from a local file."""

# mypy: allow-subclassing-any, allow-untyped-calls

import os
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from setpoint._check import finite, positive, whole
from setpoint.errors import InputError, PredictionError, StateError
from setpoint_paper.models.depth_learner import read, write
from setpoint_paper.models.depth_trunk import answer, colours, image, label

__all__ = ["Preprocess", "TorchDepth"]

_KIND = "torch depth"


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
    frame. With an optimiser `learn` takes gradient steps on the newest frame, each part of the
    network in the mode it was left in; without one nothing is learnt. NaN pixels are left out, a
    frame without a known pixel moves nothing.

    Parameters
    ----------
    module
        Maps images (1, 3, H, W) to depth of shape (1, 1, H, W), (1, H, W) or (H, W), or to a
        dictionary or a sequence that has it.
    optimiser
        A `torch.optim` optimiser of the module's parameters; None for a frozen network.
    loss
        "absolute", the error in metres; "aligned", that error in standard deviations of the label,
        once scale and shift of the map are fitted to it, for networks that know depth only up to
        these; or a function of three maps (H, W) that gives one number: the network's, the label,
        and where the label is known. Elsewhere it is 0, for a NaN would spread to every gradient.
        Losses of gradients and of normals see where pixels lie.
    preprocess
        What the network wants to see.
    output
        Where depth is if the module gives a dictionary (a key) or a sequence (a place).
    steps
        Gradient steps a frame.
    scheduler
        A scheduler of the optimiser, which takes a step after each frame that was learnt.
    zero
        Whether a label may be exactly 0, as a residual may and depth may not.
    clip
        The largest norm of all gradients together, to which larger ones are cut; None cuts none.

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
        zero: bool = False,
        clip: float | None = None,
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
                f"loss must be 'absolute', 'aligned' or a function of three maps, got {loss!r}"
            )
        self.module, self.optimiser = module, optimiser
        self.preprocess = Preprocess() if preprocess is None else preprocess
        self._loss = loss if callable(loss) else _LOSSES[loss]
        self._output = output
        self._steps = whole(steps, "steps", 1)
        if scheduler is not None and getattr(scheduler, "optimizer", None) is not optimiser:
            raise InputError(f"scheduler must be one of the optimiser, got {scheduler!r}")
        self._scheduler = scheduler
        self._clip = None if clip is None else positive(clip, "clip")
        self._what, self._least = "depth", float(np.finfo(np.float32).tiny)
        if zero:
            self._what, self._least = "a residual", 0.0

    def predict(self, x: Any) -> Any:
        """The network's depth at the size of the frame, (H, W) in float32."""
        frame = image(x)
        modes = [(each, each.training) for each in self.module.modules()]
        self.module.eval()
        try:
            with torch.no_grad():
                found = self._map(frame)
        finally:
            for each, training in modes:  # one by one: train(…) would put all parts into one mode
                each.training = training
        return answer(found, x)

    def learn(self, x: Any, y: Any) -> None:
        """Takes gradient steps on the frame; a network without an optimiser stays as it is."""
        frame, known = self._pair(x, y)
        if self.optimiser is None or known.isnan().all():
            return
        for _ in range(self._steps):
            found = self._map(frame)
            truth = known.to(found.device)
            self.optimiser.zero_grad()
            self._loss(found, truth.nan_to_num(0.0), ~truth.isnan()).backward()
            if self._clip is not None:
                torch.nn.utils.clip_grad_norm_(self.module.parameters(), self._clip)
            self.optimiser.step()
        if self._scheduler is not None:
            self._scheduler.step()

    def check(self, x: Any, y: Any) -> None:
        """Raises what `learn` would raise, and learns nothing."""
        self._pair(x, y)

    def _pair(self, x: Any, y: Any) -> tuple[Tensor, Tensor]:
        frame = image(x)
        return frame, label(y, (frame.shape[1], frame.shape[2]), self._what, self._least)

    def fit(self, frames: Iterable[tuple[Any, Any]]) -> int:
        """Learns frames beforehand, one after the other; how many there were.

        An epoch of training: give the frames in the order and under the changes wanted, such as
        those of `Frames.training(epoch)`.
        """
        count = 0
        for x, y in frames:
            self.learn(x, y)
            count += 1
        return count

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
            steps=self._steps, scheduler=scheduler, zero=True, clip=clip,
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
        """Writes the weights and the state of the optimiser to a file of plain tensors.

        What the module draws at random (dropout) comes from torch's own generator, which is the
        caller's to keep.
        """
        taught = self.optimiser
        content = {
            "module": dict(self.module.state_dict()),
            "taught_by": None if taught is None else type(taught).__name__,
            "optimiser": None if taught is None else taught.state_dict(),
            "scheduler": None if self._scheduler is None else self._scheduler.state_dict(),
        }
        write(path, _KIND, content)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Goes on from what `save` wrote, with a module and an optimiser of the same make.

        A frozen network takes the weights alone. A file that does not fit changes nothing.
        """
        content = read(path, _KIND)
        found, wanted = content["module"], self.module.state_dict()
        if found.keys() != wanted.keys() or any(
            getattr(found[name], "shape", None) != getattr(each, "shape", None)
            for name, each in wanted.items()
        ):
            raise StateError(_unmatched(path, found, None, wanted))
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
        for found in _states(content, key):
            matched = _matched(found, wanted)
            if matched is not None:
                self.module.load_state_dict(matched)
                return
        raise StateError(_unmatched(path, content, key, wanted))

    def _map(self, frame: Tensor) -> Tensor:
        """Depth at the size of the frame."""
        like = next(self.module.parameters(), None)
        shown = frame.unsqueeze(0)
        shown = self.preprocess.apply(shown if like is None else shown.to(like.device))
        given = self.module(shown if like is None else shown.to(like.dtype))
        found = self._chosen(given)
        while found.ndim > 2 and len(found) == 1:
            found = found[0]
        if found.ndim != 2:
            raise PredictionError(
                "the module must give depth of shape (1, 1, H, W), (1, H, W) or (H, W), got the "
                f"shape {tuple(self._chosen(given).shape)}"
            )
        return _resized(found[None, None], tuple(frame.shape[1:]))[0, 0]

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


_LOSSES: dict[Any, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "absolute": _absolute,
    "aligned": _aligned,
}


# Weights of others


def _states(content: Any, key: str | None) -> list[dict[str, Tensor]]:
    """Every table of named tensors in a file, at most two steps deep."""
    if not isinstance(content, Mapping):
        return []
    if key is not None:
        content = {key: content.get(key)}
    found = []
    for each in (content, *content.values()):
        if isinstance(each, Mapping):
            tensors = {
                name: value
                for name, value in each.items()
                if isinstance(name, str) and isinstance(value, Tensor)
            }
            found += [tensors] if tensors else []
    return found


def _matched(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> dict[str, Tensor] | None:
    """The tensors under the names the module has for them, if some prefix makes all fit."""
    needed = [name for name in wanted if not name.endswith("num_batches_tracked")]
    if not needed:
        return None
    first = needed[0]
    ways: list[tuple[str, str]] = [
        (name.removesuffix(first), "") for name in found if name.endswith(first)
    ]
    parts = first.split(".")
    ways += [("", ".".join(parts[:count]) + ".") for count in range(1, len(parts))]
    ways += [("module.", added) for _, added in ways if added]
    for extra, lacking in ways:
        names = {name: extra + name.removeprefix(lacking) for name in wanted}
        if all(
            names[name] in found and found[names[name]].shape == wanted[name].shape
            for name in needed
        ):
            # Counts of batches are absent in old files, and nothing but momentum=None reads them.
            return {name: found.get(names[name], wanted[name]) for name in wanted}
    return None


def _unmatched(
    path: str | os.PathLike[str], content: Any, key: str | None, wanted: dict[str, Tensor]
) -> str:
    states = _states(content, key)
    if not states:
        where = "" if key is None else f" at {key!r}"
        held = list(content) if isinstance(content, Mapping) else type(content).__name__
        return f"{os.fspath(path)} has no named tensors{where}, it holds {held}"
    _, names = max((len(each), list(each)) for each in states)
    return (
        f"{os.fspath(path)} does not fit the module, which has {len(wanted)} tensors "
        f"({', '.join(list(wanted)[:3])}, …) where the file has {len(names)} "
        f"({', '.join(names[:3])}, …) or other shapes"
    )
