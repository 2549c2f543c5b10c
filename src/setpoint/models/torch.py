"""A torch module and its optimiser as an online model (extra `torch`).

The head says what the module's output means and which loss teaches it: `Point` for one number,
`Pinball` for two quantiles, `Softmax` for the scores of classes; from image to image, `Map` for a
number a pixel and `Mask` for the pixels of an object.
"""

# mypy: allow-subclassing-any, allow-untyped-calls

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from setpoint._check import finite, is_missing, number, positive, whole
from setpoint.errors import InputError, LabelError, PredictionError, StateError
from setpoint.parts import Capability
from setpoint.predictions import Probabilities, Quantiles
from setpoint.sets import PixelThreshold, Threshold
from setpoint.sets.frames import true_image

try:
    import torch
    from torch import Tensor
    from torch.nn import functional
except ImportError as error:
    raise ImportError("this needs torch: pip install 'setpoint[torch]'") from error

__all__ = ["Map", "Mask", "Online", "Pinball", "Point", "Softmax"]


@runtime_checkable
class Head(Protocol):
    """What `Online` asks of a head.

    `prediction` gives what a family reads of the output for one row, `target` a label as a number,
    a list of numbers or a tensor (None if it teaches nothing), `loss` that of several rows.
    """

    def prediction(self, output: Tensor) -> Any: ...

    def target(self, y: Any) -> Any: ...

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor: ...


@runtime_checkable
class Frames(Protocol, metaclass=Capability):
    """A head whose rows are images: `features(x)` is an image as a module takes it."""

    def features(self, x: Any) -> Tensor: ...


class _Number:
    """What the heads for labels that are one number share."""

    __slots__ = ()

    def target(self, y: Any) -> float:
        return finite(y, "a label", LabelError)


@dataclass(frozen=True, slots=True)
class Point(_Number):
    """One number a row, taught by the squared error; for `setpoint.intervals` and `sets.Widen`."""

    def prediction(self, output: Tensor) -> float:
        """The number."""
        return _numbers(output, 1)[0]

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean squared error."""
        return functional.mse_loss(_table(outputs, 1).squeeze(1), targets)


@dataclass(frozen=True, slots=True)
class Pinball(_Number):
    """A lower and an upper quantile a row, taught by the pinball loss.

    Its predictions are `Quantiles`, for `setpoint.intervals` and `setpoint.sets.Widen`.

    Parameters
    ----------
    lower, upper
        The levels of the quantiles.
    """

    lower: float = 0.05
    upper: float = 0.95

    def __post_init__(self) -> None:
        if not 0.0 < number(self.lower, "lower") < number(self.upper, "upper") < 1.0:
            raise InputError(
                f"levels must rise strictly between 0 and 1, got {(self.lower, self.upper)}"
            )

    def prediction(self, output: Tensor) -> Quantiles:
        """The two quantiles."""
        return Quantiles(*_numbers(output, 2))

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean over rows of the two pinball losses together."""
        above = targets.unsqueeze(1) - _table(outputs, 2)
        shares = above.new_tensor((self.lower, self.upper))
        return torch.maximum(shares * above, (shares - 1.0) * above).sum(1).mean()


@dataclass(frozen=True, slots=True)
class Softmax:
    """A score for each class, taught by the cross entropy.

    Its predictions are `Probabilities`, for `setpoint.label_sets`, `sets.Threshold` and
    `sets.Cumulative`.

    Parameters
    ----------
    classes
        The labels in the order of the scores, or their number, where they are the numbers from 0.
    """

    classes: Sequence[Any] | int

    def __post_init__(self) -> None:
        names: Any = self.classes
        if isinstance(names, int | np.integer) or names is None:
            names = range(whole(names, "classes", 1))
        # The names as the family keeps them, so that both take and refuse the same.
        object.__setattr__(self, "classes", Threshold(names).classes)

    @property
    def _names(self) -> tuple[Any, ...]:
        names: Any = self.classes
        return tuple(names)

    def prediction(self, output: Tensor) -> Probabilities:
        """The probabilities."""
        scores = _numbers(output, len(self._names))
        p = torch.softmax(torch.tensor(scores, dtype=torch.float64), 0)
        return Probabilities(p.tolist(), self._names)

    def target(self, y: Any) -> int:
        """The label's place."""
        label = Threshold().label(y)
        if label not in self._names:
            raise LabelError(f"a label must be one of {list(self._names)}, got {label!r}")
        return self._names.index(label)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean cross entropy."""
        scores = _table(outputs, len(self._names))
        # Written out: torch's own starts its threads for the smallest batch, and waits for them.
        chosen = scores.gather(1, targets.unsqueeze(1)).squeeze(1)
        return (torch.logsumexp(scores, dim=1) - chosen).mean()


class _Images:
    """What the heads from image to image share."""

    __slots__ = ()

    def features(self, x: Any) -> Tensor:
        """An image with its colours first; of bytes, from 0 to 1."""
        frame = _row(x)
        if frame.ndim == 2:
            frame = frame.unsqueeze(0)
        elif frame.ndim == 3 and frame.shape[-1] in (1, 3, 4) and frame.shape[0] not in (1, 3, 4):
            frame = frame.movedim(-1, 0)
        if frame.ndim != 3:
            shape = tuple(frame.shape)
            raise InputError(f"x must be an image, with colours first or last, got {shape}")
        return frame / 255.0 if frame.dtype == torch.uint8 else frame

    def _known(self, y: Any) -> Tensor | None:
        """A label as a tensor of its own; None without a known pixel."""
        frame = true_image(y, "y")
        own = frame.clone() if isinstance(frame, Tensor) else torch.tensor(frame)
        return own if bool(own.isfinite().any()) else None


def _maps(outputs: Tensor) -> Tensor:
    """The maps of several images, (rows, height, width)."""
    maps = outputs.squeeze(1) if outputs.ndim == 4 and outputs.shape[1] == 1 else outputs
    if maps.ndim != 3:
        shape = tuple(outputs.shape[1:])
        raise PredictionError(f"the head takes one map an image, the module gave the shape {shape}")
    return maps


def _known(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs and labels of the pixels whose label is known."""
    maps, known = _maps(outputs), targets.isfinite()
    if maps.shape != targets.shape:
        wanted, got = tuple(maps.shape[1:]), tuple(targets.shape[1:])
        raise LabelError(f"a label must have the shape of the module's map, {wanted}, got {got}")
    return maps[known], targets[known]


@dataclass(frozen=True, slots=True)
class Map(_Images):
    """A number for each pixel, taught by the absolute error over the pixels that are known.

    Its predictions are tensors (height, width), for `setpoint.images.SpreadModel`. y is an image,
    NaN where nothing is known, a pair (values, valid) or a masked array.

    >>> known = Map().target([[1.0, float("nan")]])
    >>> Map().loss(torch.tensor([[[3.0, 9.0]]]), known.unsqueeze(0)).item()
    2.0
    """

    def prediction(self, output: Tensor) -> Tensor:
        """The map."""
        return _maps(output.unsqueeze(0))[0].clone()

    def target(self, y: Any) -> Tensor | None:
        """The label as a tensor, NaN where it is not known; None without a known pixel."""
        return self._known(y)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean absolute error of the known pixels."""
        estimates, truths = _known(outputs, targets)
        return (estimates - truths).abs().mean()


@dataclass(frozen=True, slots=True)
class Mask(_Images):
    """A score for each pixel of an object, taught by the binary cross entropy.

    Its predictions are scores from 0 to 1 as tensors (height, width), for
    `setpoint.sets.PixelThreshold`; y is what that family takes.

    Parameters
    ----------
    weight
        How much more a pixel of the object counts than one outside it: objects are small.

    Examples
    --------
    >>> Mask().prediction(torch.zeros(1, 1, 2))
    tensor([[0.5000, 0.5000]])
    """

    weight: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", positive(self.weight, "weight"))

    def prediction(self, output: Tensor) -> Tensor:
        """The scores."""
        return torch.sigmoid(_maps(output.unsqueeze(0))[0].clone())

    def target(self, y: Any) -> Tensor | None:
        """1 in the object, 0 outside, NaN where nothing is known; None if nothing is."""
        PixelThreshold().label(y)  # refuses what is not a mask
        return self._known(y)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean binary cross entropy of the known pixels."""
        scores, mask = _known(outputs, targets)
        weight = scores.new_tensor(self.weight)
        return functional.binary_cross_entropy_with_logits(scores, mask, pos_weight=weight)


class Online:
    """A torch module that learns one row at a time.

    `predict` runs in evaluation mode, without gradients, and changes nothing; `learn` takes
    gradient steps on the last rows, each part of the module in the mode it was left in. The module
    stays on its device and in its precision. A label that is missing is not learnt; a row that is
    refused leaves everything as it was.

    A row of features is anything that becomes a tensor, a row of a data frame included. Whole
    numbers stay whole where the module has an embedding, else they become floats.

    Parameters
    ----------
    module
        Maps features (rows, …) to outputs (rows, …).
    optimiser
        A `torch.optim` optimiser of the module's parameters.
    head
        What the output means: `Point()`, `Pinball(lower, upper)`, `Softmax(classes)`, `Map()` or
        `Mask()`, or one of your own.
    rows
        How many of the last rows each step sees.
    steps
        How many steps each label is worth.

    Examples
    --------
    >>> import setpoint as sp
    >>> _ = torch.manual_seed(0)
    >>> module = torch.nn.Linear(2, 2)
    >>> model = Online(module, torch.optim.Adam(module.parameters(), lr=0.02), Pinball(0.05, 0.95))
    >>> stream = sp.Stream(sp.intervals(coverage=0.9))
    >>> for x, y in zip(torch.randn(1000, 2), torch.randn(1000)):
    ...     interval = stream.predict(model.predict(x))
    ...     loss = stream.update(y)
    ...     model.learn(x, y)
    >>> round(stream.coverage, 2)
    0.9
    """

    def __init__(
        self, module: Any, optimiser: Any, head: Head, *, rows: int = 1, steps: int = 1
    ) -> None:
        if not isinstance(module, torch.nn.Module):
            raise InputError(f"module must be a torch.nn.Module, got {module!r}")
        if not isinstance(optimiser, torch.optim.Optimizer):
            raise InputError(f"optimiser must be a torch.optim.Optimizer, got {optimiser!r}")
        if isinstance(head, type) or not isinstance(head, Head):
            raise InputError(
                f"head must be Point(), Pinball(…), Softmax(…), Map() or Mask(), got {head!r}"
            )
        self.module, self.optimiser, self.head = module, optimiser, head
        self._rows: deque[tuple[Tensor, Any]] = deque(maxlen=whole(rows, "rows", 1))
        self._steps = whole(steps, "steps", 1)

    def predict(self, x: Any) -> Any:
        """The head's prediction for one row of features."""
        row = self._features(x).unsqueeze(0)
        modes = [(part, part.training) for part in self.module.modules()]
        self.module.eval()
        try:
            with torch.inference_mode():
                output = self._outputs(row)
        finally:
            for part, training in modes:  # one by one: train(…) would put all parts into one mode
                part.training = training
        return self.head.prediction(output[0])

    def learn(self, x: Any, y: Any) -> None:
        """Takes gradient steps on the last rows, this one included."""
        if is_missing(y):
            return
        target = self.head.target(y)
        if target is None:
            return
        latest = (self._features(x).detach().clone(), target)
        batch = deque([*self._rows, latest], maxlen=self._rows.maxlen)
        rows = _stacked([row for row, _ in batch])
        targets = _stacked([each for _, each in batch]).to(rows.device)
        if targets.is_floating_point():
            targets = targets.to(next(self.module.parameters(), rows).dtype)
        # A forward pass moves the running means of a normalisation, even if its loss then fails.
        buffers = [(buffer, buffer.clone()) for buffer in self.module.buffers()]
        try:
            self._descend(rows, targets)
        except BaseException:
            with torch.no_grad():
                for buffer, value in buffers:
                    buffer.copy_(value)
            raise
        for _ in range(self._steps - 1):
            self._descend(rows, targets)
        self._rows = batch

    def _descend(self, rows: Tensor, targets: Tensor) -> None:
        """One step down the loss."""
        self.optimiser.zero_grad()
        self.head.loss(self._outputs(rows), targets).backward()
        self.optimiser.step()

    def _outputs(self, rows: Tensor) -> Tensor:
        """What the module gives for several rows."""
        outputs = self.module(rows)
        if not isinstance(outputs, Tensor) or outputs.ndim == 0 or len(outputs) != len(rows):
            got = getattr(outputs, "shape", None)
            raise PredictionError(
                f"the module must give a tensor with an output for each of {len(rows)} rows, got "
                f"{type(outputs).__name__ if got is None else f'the shape {tuple(got)}'}"
            )
        return outputs

    def state_dict(self) -> dict[str, Any]:
        """Everything learnt, for `torch.save`: it loads with `weights_only=True`."""
        module, optimiser = self.module.state_dict(), self.optimiser.state_dict()
        return {"module": module, "optimiser": optimiser, "rows": list(self._rows)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave, with the same module, optimiser and options."""
        expected = {"module", "optimiser", "rows"}
        if set(state) != expected:
            raise StateError(f"a state must hold {sorted(expected)}, got {sorted(state)}")
        self.module.load_state_dict(state["module"])
        self.optimiser.load_state_dict(state["optimiser"])
        rows = [(self._features(row), target) for row, target in state["rows"]]
        self._rows = deque(rows, maxlen=self._rows.maxlen)

    def _features(self, x: Any) -> Tensor:
        """A row where the module is, in its precision."""
        head: Any = self.head
        row = head.features(x) if isinstance(head, Frames) else _row(x)
        like = next(self.module.parameters(), None)
        if like is None:
            return row
        tables = torch.nn.Embedding | torch.nn.EmbeddingBag
        places = any(isinstance(part, tables) for part in self.module.modules())
        stays = row.is_complex() or (places and not row.is_floating_point())
        return row.to(like.device, row.dtype if stays else like.dtype)

    def __repr__(self) -> str:
        return f"Online({self.module!r}, {type(self.optimiser).__name__}, {self.head!r})"


def _numbers(output: Tensor, count: int) -> list[float]:
    """The numbers of one row of output."""
    numbers: list[float] = _table(output.unsqueeze(0), count)[0].tolist()
    return numbers


def _table(outputs: Tensor, count: int) -> Tensor:
    """The outputs for several rows, a row of numbers for each."""
    if outputs[0].numel() != count:
        raise PredictionError(
            f"the head takes {count} number{'s' if count > 1 else ''} a row, the module gave "
            f"an output of shape {tuple(outputs[0].shape)}"
        )
    return outputs.reshape(len(outputs), -1)


def _stacked(parts: list[Any]) -> Tensor:
    """Rows or labels as one tensor."""
    if not isinstance(parts[0], Tensor):
        return torch.tensor(parts)
    return torch.stack([part.to(parts[-1].device) for part in parts])


def _row(x: Any) -> Tensor:
    """A row of features as a tensor, of its own or as it is, whole numbers whole."""
    if isinstance(x, Tensor):
        return x
    try:
        array = np.array(x.to_numpy() if hasattr(x, "to_numpy") else x)
        if array.dtype.kind == "O":  # a row of a frame whose columns differ in type
            array = array.astype(np.float64)
        return torch.from_numpy(array)
    except (TypeError, ValueError):
        raise InputError(f"x must be one row of numbers, got {x!r}") from None
