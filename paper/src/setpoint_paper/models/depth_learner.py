"""How a depth network learns: steps on the newest frame and on recent ones, from one seed."""

# mypy: allow-subclassing-any, allow-untyped-calls

import os
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from setpoint._check import positive, whole
from setpoint._files import put
from setpoint.errors import InputError, SetpointError, StateError
from setpoint_paper.models.depth_trunk import Trunk, answer, colours, device_of, image, label

__all__ = ["DepthSettings", "Goal", "Learner", "read", "write"]

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class DepthSettings:
    """Shape and training of a depth network.

    Parameters
    ----------
    channels
        The channels of each stage; each halves the image.
    learning_rate
        Of Adam.
    steps
        Gradient steps a frame.
    replay
        How many frames of the past each step sees beside the newest.
    memory
        How many frames of the past are kept to draw these from.
    seed
        Of the first weights and of every draw.
    device
        "auto" (the GPU where there is one), "cpu", "cuda", …

    Examples
    --------
    >>> DepthSettings(channels=(8, 16)).replay
    1
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
        whole(self.steps, "steps", 1)
        whole(self.replay, "replay", 0)
        whole(self.memory, "memory", 0)
        whole(self.seed, "seed", 0)
        if self.replay > self.memory:
            raise InputError(
                f"replay must be at most memory = {self.memory}, got replay = {self.replay}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """What the numbers of a trunk mean, and which loss teaches them.

    Parameters
    ----------
    kind, what
        The names of the model and of its labels, for files and messages.
    least
        The least a label may be, in metres.
    level
        The typical size of a tensor of labels.
    read
        The map in metres, of the trunk's numbers and the typical size.
    loss
        A loss for each pixel, of a map and its label, both in metres.
    """

    kind: str
    what: str
    least: float
    level: Callable[[Tensor], float]
    read: Callable[[Tensor, float], Tensor]
    loss: Callable[[Tensor, Tensor], Tensor]


class Learner:
    """A trunk, its optimiser, and the frames it remembers.

    Its first label sets the typical size of what it says, so that metres need no scaling.
    """

    def __init__(self, settings: DepthSettings, goal: Goal) -> None:
        self.settings, self.goal = settings, goal
        self.device = device_of(settings.device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.trunk = Trunk(settings.channels).to(self.device)
        self.optimiser = torch.optim.Adam(self.trunk.parameters(), lr=settings.learning_rate)
        self.generator = torch.Generator().manual_seed(settings.seed)
        self.memory: deque[tuple[Tensor, Tensor]] = deque(maxlen=settings.memory)
        self.level: float | None = None
        self.frames = 0

    def predict(self, x: Any) -> Any:
        """The map of one frame, in float32."""
        with torch.no_grad():
            found = self._maps([image(x)])[0]
        return answer(found, x)

    def learn(self, x: Any, y: Any) -> None:
        """Steps on this frame and on some of the past; without a known pixel nothing moves."""
        frame, known = self._pair(x, y)
        if known.isnan().all():
            return
        self._set_level(known)
        past = [each for each in self.memory if each[0].shape == frame.shape]
        for _ in range(self.settings.steps):
            chosen = torch.randperm(len(past), generator=self.generator)[: self.settings.replay]
            batch = [(frame, known), *(past[place] for place in chosen.tolist())]
            self._descend(batch)
        self.memory.append((frame, known))
        self.frames += 1

    def check(self, x: Any, y: Any) -> None:
        """Raises what `learn` would raise, and learns nothing."""
        self._pair(x, y)

    def fit(self, rgb: Any, labels: Any, epochs: int, batch: int, flip: bool) -> list[float]:
        """Goes through known frames several times, in an order drawn anew; each epoch's loss."""
        whole(epochs, "epochs", 0)
        whole(batch, "batch", 1)
        if len(rgb) != len(labels):
            raise InputError(
                f"rgb and {self.goal.what} must have as many frames, got {len(rgb)} and "
                f"{len(labels)}"
            )
        pairs = [self._pair(x, y) for x, y in zip(rgb, labels, strict=True)]
        pairs = [pair for pair in pairs if not pair[1].isnan().all()]
        if not pairs:
            return []
        if len({pair[0].shape for pair in pairs}) > 1:
            raise InputError("the frames a network is fitted on must be of one size")
        self._set_level(torch.stack([known for _, known in pairs]))
        told = []
        for _ in range(epochs):
            order = torch.randperm(len(pairs), generator=self.generator).tolist()
            total = 0.0
            for first in range(0, len(order), batch):
                chosen = [pairs[place] for place in order[first : first + batch]]
                if flip:
                    turned = torch.rand(len(chosen), generator=self.generator) < 0.5
                    chosen = [
                        (x.flip(-1), y.flip(-1)) if turn else (x, y)
                        for (x, y), turn in zip(chosen, turned.tolist(), strict=True)
                    ]
                total += self._descend(chosen) * len(chosen)
            told.append(total / len(pairs))
        if self.settings.memory:
            self.memory.extend(pairs[-self.settings.memory :])
        return told

    def _pair(self, x: Any, y: Any) -> tuple[Tensor, Tensor]:
        frame = image(x)
        shape = (frame.shape[1], frame.shape[2])
        return frame, label(y, shape, self.goal.what, self.goal.least)

    def _set_level(self, known: Tensor) -> None:
        if self.level is None:
            self.level = self.goal.level(known[~known.isnan()])

    def _maps(self, frames: list[Tensor]) -> Tensor:
        # One by one: of the frames remembered some may be of bytes, others of floats.
        numbers = self.trunk(torch.stack([colours(each.to(self.device)) for each in frames]))
        return self.goal.read(numbers, 1.0 if self.level is None else self.level)

    def _descend(self, pairs: list[tuple[Tensor, Tensor]]) -> float:
        """One step down the mean loss of the known pixels."""
        known = torch.stack([y.to(self.device) for _, y in pairs])
        valid = ~known.isnan()
        found = self._maps([x for x, _ in pairs])
        loss = self.goal.loss(found[valid], known[valid]).mean()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        return float(loss.detach())

    # State

    def save(self, path: str | os.PathLike[str], options: dict[str, Any]) -> None:
        """Writes everything that the next steps depend on; it reads with `weights_only`."""
        content = {
            "settings": asdict(self.settings),
            "options": options,
            "trunk": {name: each.cpu() for name, each in self.trunk.state_dict().items()},
            "optimiser": self.optimiser.state_dict(),
            "generator": self.generator.get_state(),
            "memory": [list(pair) for pair in self.memory],
            "level": self.level,
            "frames": self.frames,
        }
        write(path, self.goal.kind, content)

    def restore(self, content: dict[str, Any], path: str | os.PathLike[str]) -> None:
        """Goes on from what `read` found."""
        try:
            self.trunk.load_state_dict(content["trunk"])
            self.optimiser.load_state_dict(content["optimiser"])
            self.generator.set_state(content["generator"])
            self.memory.extend((frame, known) for frame, known in content["memory"])
            self.level, self.frames = content["level"], content["frames"]
        except SetpointError:
            raise
        except Exception as error:  # damage shows itself in many ways
            raise StateError(f"{os.fspath(path)} is damaged: {error!r}") from error

    def become(self, other: "Learner") -> None:
        """Takes over everything another one learnt."""
        self.trunk.load_state_dict(other.trunk.state_dict())
        # Tensors of an optimiser are taken over as they are, so they are written and read.
        buffer = BytesIO()
        torch.save(other.optimiser.state_dict(), buffer)
        buffer.seek(0)
        self.optimiser.load_state_dict(torch.load(buffer, weights_only=True))
        self.generator.set_state(other.generator.get_state())
        self.memory.extend(other.memory)
        self.level, self.frames = other.level, other.frames


def write(path: str | os.PathLike[str], kind: str, content: dict[str, Any]) -> None:
    """Puts the state of a network into a file that `read` knows by its kind."""
    buffer = BytesIO()
    torch.save({"format": f"setpoint {kind}", "version": _FORMAT, **content}, buffer)
    put(path, buffer.getvalue())


def read(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """The content of a saved network, or an error that says what is wrong with the file."""
    data = Path(path).read_bytes()
    try:
        content = torch.load(BytesIO(data), map_location="cpu", weights_only=True)
        found, version = content["format"], content["version"]
    except Exception as error:
        raise StateError(f"{os.fspath(path)} is damaged or not a saved network") from error
    if found != f"setpoint {kind}":
        raise StateError(f"{os.fspath(path)} must hold a setpoint {kind}, it holds {found!r}")
    if version != _FORMAT:
        raise StateError(f"{os.fspath(path)} must be of version {_FORMAT}, it has {version!r}")
    return dict(content)
