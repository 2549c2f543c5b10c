"""A torch module and its optimiser as an online model (extra `torch`).

The head says what the module's output means and which loss teaches it: `Point` for one number,
`Pinball` for quantiles, `Softmax` for the scores of classes.
"""

# mypy: allow-subclassing-any, allow-untyped-calls

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, Protocol

from setpoint._check import finite, is_missing, positive, whole
from setpoint.errors import InputError, PredictionError, StateError
from setpoint.predictions import Probabilities, Quantiles

try:
    import torch
    from torch import Tensor
    from torch.nn import functional
except ImportError as error:
    raise ImportError("this needs torch: pip install 'setpoint[torch]'") from error

__all__ = ["Head", "Online", "Pinball", "Point", "Softmax"]


class Head(Protocol):
    """What `Online` asks of a head."""

    def prediction(self, output: Tensor) -> Any:
        """What a family reads, from the output for one row."""

    def target(self, y: Any) -> Any:
        """A label as a number."""

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of several rows."""


@dataclass(frozen=True, slots=True)
class Point:
    """One number a row, taught by the squared error.

    Its predictions are plain floats: for `setpoint.sets.Widen`, or in a `ResidualScale` for
    `setpoint.sets.Scale`.
    """

    def prediction(self, output: Tensor) -> float:
        """The number."""
        return _numbers(output, 1)[0]

    def target(self, y: Any) -> float:
        """The label as a finite float."""
        return finite(y, "a label")

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean squared error."""
        return functional.mse_loss(outputs.reshape(len(targets)), targets)


@dataclass(frozen=True, slots=True)
class Pinball:
    """A lower and an upper quantile a row, taught by the pinball loss.

    Its predictions are `Quantiles`, for `setpoint.sets.Widen`.

    Parameters
    ----------
    lower, upper
        The levels of the quantiles.
    """

    lower: float = 0.05
    upper: float = 0.95

    def __post_init__(self) -> None:
        lower, upper = finite(self.lower, "lower"), finite(self.upper, "upper")
        if not 0.0 < lower < upper < 1.0:
            raise InputError(f"levels must satisfy 0 < lower < upper < 1, got {lower} and {upper}")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    def prediction(self, output: Tensor) -> Quantiles:
        """The two quantiles."""
        return Quantiles(*_numbers(output, 2))

    def target(self, y: Any) -> float:
        """The label as a finite float."""
        return finite(y, "a label")

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean over rows of the two pinball losses together."""
        above = targets.unsqueeze(1) - outputs.reshape(len(targets), 2)
        levels = above.new_tensor([self.lower, self.upper])
        return torch.maximum(levels * above, (levels - 1.0) * above).sum(1).mean()


@dataclass(frozen=True, slots=True)
class Softmax:
    """A score for each class, taught by the cross entropy.

    Its predictions are `Probabilities`, for `setpoint.sets.Threshold` and
    `setpoint.sets.Cumulative`.

    Parameters
    ----------
    classes
        The labels in the order of the scores; without them the labels are the numbers from 0.
    """

    classes: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        if self.classes is None:
            return
        if isinstance(self.classes, str) or not isinstance(self.classes, Sequence):
            raise InputError(f"classes must be the labels in order, got {self.classes!r}")
        classes = tuple(self.classes)
        if len(set(classes)) != len(classes):
            raise InputError(f"classes must differ, got {classes}")
        object.__setattr__(self, "classes", classes)

    def prediction(self, output: Tensor) -> Probabilities:
        """The probabilities."""
        scores = _numbers(output, None if self.classes is None else len(self.classes))
        highest = max(scores)
        weights = [exp(score - highest) for score in scores]
        total = sum(weights)
        return Probabilities([weight / total for weight in weights], self.classes)

    def target(self, y: Any) -> int:
        """The label's place."""
        label = y.item() if hasattr(y, "item") else y
        if self.classes is None:
            return whole(int(label) if label == int(label) else label, "a label", 0)
        if label not in self.classes:
            raise InputError(f"a label must be one of {list(self.classes)}, got {label!r}")
        return self.classes.index(label)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The mean cross entropy."""
        # Written out: torch's own starts its threads for the smallest batch, and waits for them.
        chosen = outputs.gather(1, targets.unsqueeze(1)).squeeze(1)
        return (torch.logsumexp(outputs, dim=1) - chosen).mean()


class Online:
    """A torch module that learns one row at a time.

    `predict` runs in evaluation mode, without gradients, and changes nothing; `learn` takes
    gradient steps on the last rows in training mode. The module stays on its device and in its
    precision. A label that is missing is not learnt.

    Parameters
    ----------
    module
        Maps features (rows, …) to outputs (rows, …).
    optimiser
        A `torch.optim` optimiser of the module's parameters.
    head
        What the output means: `Point()`, `Pinball(lower, upper)` or `Softmax(classes)`.
    loss
        A loss of (outputs, targets) instead of the head's own.
    scheduler
        A learning-rate scheduler, stepped after each label.
    rows
        How many of the last rows each step sees.
    steps
        How many steps each label is worth.
    clip
        The largest norm of the gradient.

    Examples
    --------
    >>> import setpoint as sp
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> module = torch.nn.Linear(2, 2)
    >>> optimiser = torch.optim.Adam(module.parameters(), lr=0.02)
    >>> model = Online(module, optimiser, Pinball(0.05, 0.95))
    >>> risk = sp.Risk(sp.losses.Miscoverage(), level=0.1, step=sp.steps.Fixed(0.05))
    >>> stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    >>> losses = []
    >>> for x, y in zip(torch.randn(1000, 2), torch.randn(1000)):
    ...     interval = stream.predict(model.predict(x))
    ...     losses.append(stream.update(y))
    ...     model.learn(x, y)
    >>> round(sum(losses) / len(losses), 2)
    0.1
    """

    def __init__(
        self,
        module: Any,
        optimiser: Any,
        head: Head,
        *,
        loss: Callable[[Tensor, Tensor], Tensor] | None = None,
        scheduler: Any = None,
        rows: int = 1,
        steps: int = 1,
        clip: float | None = None,
    ) -> None:
        if not isinstance(module, torch.nn.Module):
            raise InputError(f"module must be a torch.nn.Module, got {module!r}")
        if not isinstance(optimiser, torch.optim.Optimizer):
            raise InputError(f"optimiser must be a torch.optim.Optimizer, got {optimiser!r}")
        if isinstance(head, type) or not hasattr(head, "prediction"):
            raise InputError(f"head must be Point(), Pinball(…) or Softmax(…), got {head!r}")
        if scheduler is not None and not hasattr(scheduler, "step"):
            raise InputError(f"scheduler must be a learning-rate scheduler, got {scheduler!r}")
        self.module = module
        self.optimiser = optimiser
        self.head = head
        self.scheduler = scheduler
        self._loss = head.loss if loss is None else loss
        self._rows: deque[tuple[Tensor, float | int]] = deque(maxlen=whole(rows, "rows", 1))
        self._steps = whole(steps, "steps", 1)
        self._clip = None if clip is None else positive(clip, "clip")

    def predict(self, x: Any) -> Any:
        """The head's prediction for one row of features."""
        row = self._features(x).unsqueeze(0)
        training = self.module.training
        self.module.eval()
        try:
            with torch.inference_mode():
                output = self.module(row)
        finally:
            self.module.train(training)
        return self.head.prediction(output[0])

    def learn(self, x: Any, y: Any) -> None:
        """Takes gradient steps on the last rows, this one included."""
        if is_missing(y):
            return
        self._rows.append((self._features(x).detach().clone(), self.head.target(y)))
        rows = torch.stack([row for row, _ in self._rows])
        targets = torch.tensor([target for _, target in self._rows], device=rows.device)
        if targets.is_floating_point():
            targets = targets.to(rows.dtype)
        training = self.module.training
        self.module.train()
        try:
            for _ in range(self._steps):
                self.optimiser.zero_grad()
                self._loss(self.module(rows), targets).backward()
                if self._clip is not None:
                    torch.nn.utils.clip_grad_norm_(self.module.parameters(), self._clip)
                self.optimiser.step()
        finally:
            self.module.train(training)
        if self.scheduler is not None:
            self.scheduler.step()

    def state_dict(self) -> dict[str, Any]:
        """Everything learnt, for `torch.save`: it loads with `weights_only=True`."""
        return {
            "module": self.module.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "rows": [(row, target) for row, target in self._rows],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave, with the same module, optimiser and options."""
        expected = {"module", "optimiser", "scheduler", "rows"}
        if set(state) != expected:
            raise StateError(f"a state must hold {sorted(expected)}, got {sorted(state)}")
        if (state["scheduler"] is None) != (self.scheduler is None):
            raise StateError("the state was saved with a scheduler and loaded without, or reversed")
        self.module.load_state_dict(state["module"])
        self.optimiser.load_state_dict(state["optimiser"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        rows = [(self._features(row), target) for row, target in state["rows"]]
        self._rows = deque(rows, maxlen=self._rows.maxlen)

    def _features(self, x: Any) -> Tensor:
        """A row where the module is, in its precision; whole numbers stay whole."""
        row = torch.as_tensor(x)
        like = next(self.module.parameters(), None)
        if like is None:
            return row
        return row.to(like.device, like.dtype if row.is_floating_point() else row.dtype)

    def __repr__(self) -> str:
        return f"Online({self.module!r}, {type(self.optimiser).__name__}, {self.head!r})"


def _numbers(output: Tensor, count: int | None) -> list[float]:
    """The numbers of one row of output."""
    found: list[float] = output.reshape(-1).tolist()
    if count is not None and len(found) != count:
        raise PredictionError(
            f"the head takes {count} number{'s' if count > 1 else ''} a row, the module gave "
            f"an output of shape {tuple(output.shape)}"
        )
    return found
