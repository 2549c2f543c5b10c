"""The paper's own depth experiment, for those who have KITTI and a network such as LeReS.

The drives and their order, depth filled by colourisation, the crop, the offline epochs under
random changes, the online steps and the split are the paper's; optimiser and learning rates are
those of the authors' code. The network is the caller's: a function that makes it, and a file of
weights. Everything slow is kept in the folder of tapes and goes on where it was stopped: filled
depth maps, the networks after each epoch and every 200 frames, their maps, the frames reduced
to critical values.
"""

import hashlib
import json
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from setpoint._check import choice, positive, whole
from setpoint._files import make_folder
from setpoint.errors import InputError
from setpoint.images import SpreadModel, fit
from setpoint.images.model import known_pixels
from setpoint_paper.datasets import kitti
from setpoint_paper.datasets.augment import Augmentation, Crop
from setpoint_paper.datasets.clips import Frame, Split
from setpoint_paper.datasets.frames import Frames as Video
from setpoint_paper.depth import online
from setpoint_paper.depth.experiment import run
from setpoint_paper.depth.maps import HEURISTICS
from setpoint_paper.depth.runs import Row
from setpoint_paper.depth.tapes import GEOMETRIES
from setpoint_paper.models import StoredPredictions, TorchDepth
from setpoint_paper.work import folder_of

_RISE, _FALLS = 500, (30_000, 120_000, 200_000)
"""The steps in which the learning rate rises, and those after which it is a tenth of before."""

_CLIP = 10.0
"""The largest norm of the gradients of a step."""


def _factor(step: int) -> float:
    """What the authors' code multiplies the learning rate by: 1/3 rising to 1, then tenths."""
    risen = min(step / _RISE, 1.0)
    return ((1.0 - risen) / 3.0 + risen) * 0.1 ** bisect_right(_FALLS, step)


def _sgd(module: torch.nn.Module, rate: float) -> torch.optim.SGD:
    """The authors' optimiser."""
    return torch.optim.SGD(module.parameters(), rate, momentum=0.9, weight_decay=5e-4)


@dataclass(frozen=True, slots=True)
class Marks:
    """Where the parts of the video end; by default the paper's.

    Parameters
    ----------
    taught
        The frames the networks are taught offline; they run online from here.
    warm
        Up to here the heuristics fill their windows, and θ and the safeguard get their start.
        Calibration begins here; the text has it begin at `taught`.
    tuned
        Up to here γ is tuned.
    frames
        Up to here is judged.
    """

    taught: int = 6_000
    warm: int = 7_000
    tuned: int = 8_000
    frames: int = 10_000

    def __post_init__(self) -> None:
        marks = (self.taught, self.warm, self.tuned, self.frames)
        for mark in marks:
            whole(mark, "a mark", 1)
        if list(marks) != sorted(set(marks)):
            raise InputError(f"marks must rise, got {marks}")

    @property
    def parts(self) -> Split:
        """The three ranges of frames."""
        return Split(range(self.warm), range(self.warm, self.tuned), range(self.tuned, self.frames))


@dataclass(frozen=True, slots=True)
class Trial:
    """One seed of the experiment.

    Parameters
    ----------
    folder, annotated
        Where the drives and their annotated depth maps are; see `datasets.kitti`.
    model
        "module:function": what it gives, called without arguments, is the network, or a
        `TorchDepth` around it with a loss, an optimiser and a scheduler of its own.
    weights, key
        A file of weights and where they are in it; None leaves the network as it was made.
    fresh
        Beginnings of the names of weights, up to a dot, that are random at first in the network of
        residuals: "decoder_modules.outconv.adapt_conv.3" is what the paper means in LeReS.
    seed
        Of the networks' first weights, the random changes and the known pixels.
    epochs
        How often the offline part is gone through.
    learning_rate
        Of SGD, where the function gives a bare network. A third of it is where that of the depth
        network begins, and where that of the network of residuals stays.
    side
        Height and width of what the network sees.
    marks
        Where the parts end.
    """

    folder: str
    annotated: str | None
    model: str
    weights: str | None = None
    key: str | None = None
    fresh: tuple[str, ...] = ()
    seed: int = 0
    epochs: int = 60
    learning_rate: float = 1e-3
    side: int = 448
    marks: Marks = field(default_factory=Marks)

    clip, label = "KITTI", "run"

    def __post_init__(self) -> None:
        whole(self.seed, "seed", 0)
        whole(self.epochs, "epochs", 0)
        positive(self.learning_rate, "learning_rate")
        if self.model.count(":") != 1:
            raise InputError(f"model must be module:function, got {self.model!r}")

    def video(self, cache: Path) -> Video:
        """The frames as the network sees them in testing, depth filled."""
        found = kitti(
            self.folder, annotated=self.annotated, frames=self.marks.frames, seed=self.seed,
            view=Crop(self.side, jitter=True), fill=True, cache=cache / "kitti-filled",
        )  # fmt: skip
        if len(found) < self.marks.frames:
            raise InputError(
                f"the marks need {self.marks.frames:,} frames, {self.folder} has {len(found):,}"
            )
        return found

    def name(self, what: str) -> str:
        """What something of this trial is called, after all that could change it."""
        content = asdict(self)
        if self.weights is not None:
            content["weights"] = hashlib.sha256(Path(self.weights).read_bytes()).hexdigest()
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
        return f"kitti-seed{self.seed}-{digest}-{what}"

    def prepare(self, heuristics: Sequence[str], cache: Path) -> None:
        """Teaches the network, and that of residuals beside it where one of these needs it."""
        self._run(cache, sizes="magnitude" in heuristics)

    def tape_name(self, heuristic: str) -> str:
        return self.name(heuristic)

    def frames(self, cache: Path) -> "_Judged":
        """The frames without the rows of padding."""
        video = self.video(cache)
        return _Judged(video, _padding(video))

    def parts(self, cache: Path) -> tuple[Split, int]:
        return self.marks.parts, self.marks.taught

    def maps(self, heuristic: str, cache: Path) -> np.ndarray:
        """The depth network's maps, without padding."""
        made: np.ndarray = self._run(cache, sizes=heuristic == "magnitude")[0]
        return made

    def magnitude(self, model: Callable[[Any], SpreadModel], cache: Path) -> StoredPredictions:
        """How large the second network, taught in the same steps, expects residuals to be."""
        return StoredPredictions(self._run(cache, sizes=True)[1])

    def _run(self, cache: Path, *, sizes: bool) -> np.ndarray:
        """The maps of one network or of both; those of one may be taken from a run of both."""
        alone, both = (cache / self.name(f"{name}.npy") for name in ("maps", "both"))
        path = both if sizes or both.is_file() else alone
        if not path.is_file():
            video = self.video(cache)
            _run(self, video, _padding(video), sizes, path)
        return np.asarray(np.load(path, allow_pickle=False, mmap_mode="r"))

    def network(self, *, residual: bool = False) -> TorchDepth:
        """The network with its weights; that of residuals is made by the same function."""
        torch.manual_seed(self.seed + 1_000 * residual)
        module, _, function = self.model.partition(":")
        try:
            maker = getattr(import_module(module), function)
        except (ImportError, AttributeError) as error:
            raise InputError(f"model must name a function that makes a network: {error}") from error
        network = maker()
        own = isinstance(network, TorchDepth) and network.optimiser is not None
        model = network if isinstance(network, TorchDepth) else self._taught(network)
        if self.weights is not None:
            model.load_weights(self.weights, self.key)
        if not residual:
            return model
        model.redraw(self.fresh)
        if own:
            return model.for_residuals()
        # The authors never step the scheduler of this network: its rate stays the first one.
        first = _sgd(model.module, self.learning_rate * _factor(0))
        return model.for_residuals(first, clip=_CLIP)

    def _taught(self, network: Any) -> TorchDepth:
        """A bare network of depth, taught as the authors teach theirs."""
        if not isinstance(network, torch.nn.Module):
            raise InputError(f"{self.model} must give a torch.nn.Module, got {network!r}")
        network.to("cuda" if torch.cuda.is_available() else "cpu")
        optimiser = _sgd(network, self.learning_rate)
        rate = torch.optim.lr_scheduler.LambdaLR(optimiser, _factor)
        return TorchDepth(network, optimiser, loss="aligned", scheduler=rate, clip=_CLIP)


class _Judged:
    """The frames without the rows of padding: that is where anything is judged."""

    def __init__(self, video: Video, rows: int) -> None:
        self._video, self._rows = video, rows

    def __getitem__(self, number: int) -> Frame:
        frame = self._video[number]
        return Frame(frame.rgb[self._rows :], frame.depth[self._rows :])


def _padding(video: Video) -> int:
    """How many rows on top of every frame are padding."""
    return int(np.argmax(np.isfinite(video[0].depth).any(axis=1)))


def _run(trial: Trial, video: Video, rows: int, sizes: bool, path: Path) -> None:
    """One network or both go through the video: epochs offline, then frame by frame."""
    marks, view = trial.marks, Augmentation(trial.side)
    height, width = video[0].depth.shape
    taught, later = video[: marks.taught], video.training(trial.epochs, view)

    def make() -> list[TorchDepth]:
        return [trial.network(residual=residual) for residual in (False, True)[: 1 + sizes]]

    def offline(networks: online.Networks, epoch: int) -> None:
        views = taught.training(epoch, view)
        for place in np.random.default_rng((trial.seed, epoch)).permutation(marks.taught).tolist():
            _teach(networks, views[place], (trial.seed, epoch, place))

    def step(networks: online.Networks, number: int) -> list[np.ndarray]:
        place = marks.taught + number
        rgb = video[place].rgb
        shown = [network.predict(rgb)[rows:] for network in networks]
        _teach(networks, later[place], (trial.seed, trial.epochs, place))
        return shown

    shape = (1 + sizes, marks.frames - marks.taught, height - rows, width)
    online.run(make, path, shape, trial.epochs, offline, step)


def _teach(networks: Sequence[TorchDepth], view: Frame, seed: tuple[int, int, int]) -> None:
    """A step of every network on one view; the second learns what the first was wrong by before."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(int(rng.integers(2**63)))  # dropout is the same in a run that was stopped
    depth, *others = networks
    residual: Any = _residual(depth.predict(view.rgb), view.depth, rng) if others else None
    depth.learn(view.rgb, view.depth)
    for other in others:
        other.learn(view.rgb, residual)


def _residual(estimate: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The size of residuals, once known pixels give scale and shift to the estimate."""
    line = fit(estimate, known_pixels(truth, rng=rng))
    made: np.ndarray = np.abs(line(estimate) - truth)
    return made


def reproduce_kitti(
    trial: Trial,
    *,
    heuristics: Sequence[str] = HEURISTICS,
    seeds: int = 10,
    out: str | os.PathLike[str] = "results",
    cache: str | os.PathLike[str] | None = None,
) -> tuple[Row, ...]:
    """Runs the paper's protocol on KITTI with a network of the caller's, for several seeds.

    Writes `depth-kitti.csv` after each seed and figures at the end. Rows of the same trial that
    stand in `out` are kept where their tape is not at hand.
    """
    place, stem = folder_of(cache), make_folder(out) / "depth-kitti"
    asked = [choice(each, "a heuristic", HEURISTICS) for each in heuristics]
    trials = [replace(trial, seed=seed) for seed in range(whole(seeds, "seeds", 1))]
    print(f"A seed, of {seeds}: {work(trial, asked, trial.frames(place)[0])}.")
    return run(trials, asked, stem, place)


def work(trial: Trial, heuristics: Sequence[str], frame: Frame) -> str:
    """What a seed costs: steps of the networks, and what stays on disk before compression."""
    marks, networks = trial.marks, 1 + ("magnitude" in heuristics)
    steps = trial.epochs * marks.taught + marks.frames - marks.taught
    shape = frame.depth.shape
    pixels = frame.depth.size
    judged = pixels + sum(frame.depth[each.index(shape)].size for each in GEOMETRIES.values())
    maps = 4 * networks * (marks.frames - marks.taught) * pixels
    tape = 4 * (marks.frames - marks.warm) * judged
    size = maps + len(heuristics) * tape
    return (
        f"{steps:,} steps of {'each of two networks' if networks > 1 else 'one network'}, "
        f"{size / 1e9:.1f} GB of maps and critical values on disk before compression"
    )
