"""The paper's own depth experiment, for those who have KITTI and a network such as LeReS.

The drives and their order, depth filled by colourisation, the crop, the offline epochs under
random changes, the online steps and the split are the paper's. The network is the caller's: a
function that makes it, and a file of weights. Everything slow is kept in the folder of tapes and
goes on where it was stopped: filled depth maps, the network after each epoch and every `STRIDE`
frames, its maps, the frames reduced to critical values.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from setpoint._check import choice, positive, whole
from setpoint._files import make_folder, put
from setpoint._files import whole as whole_file
from setpoint.errors import InputError, SetpointError
from setpoint.images import (
    TVL1,
    Constant,
    Line,
    PreviousResiduals,
    RegisteredResiduals,
    ResidualMagnitude,
    SpreadModel,
)
from setpoint_paper.datasets import kitti
from setpoint_paper.datasets.augment import Crop, Jitter
from setpoint_paper.datasets.clips import Frame, Split
from setpoint_paper.datasets.frames import Frames as Video
from setpoint_paper.depth.report import brief, report, write_csv
from setpoint_paper.depth.runs import GEOMETRIES, METHODS, Row, judge
from setpoint_paper.depth.tapes import Frames, reduced, store, stored
from setpoint_paper.models import StoredPredictions, TorchDepth
from setpoint_paper.work import folder_of, say, screen

__all__ = ["STRIDE", "Marks", "Trial", "made", "reproduce_kitti"]

STRIDE = 200
"""Online frames between two checkpoints of the network."""

_HEURISTICS = ("constant", "magnitude", "previous", "registered", "registered_paper")


@dataclass(frozen=True, slots=True)
class Marks:
    """Where the parts of the video end; by default the paper's.

    Parameters
    ----------
    taught
        The frames the network is taught offline.
    warm
        Up to here it runs online and the heuristics fill their windows.
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
    seed
        Of the network's first weights, the random changes and the known pixels.
    epochs
        How often the offline part is gone through.
    learning_rate
        Of Adam, where the function gives a bare network; it rises over the first 500 frames.
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
    seed: int = 0
    epochs: int = 60
    learning_rate: float = 1e-4
    side: int = 448
    marks: Marks = field(default_factory=Marks)

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
            view=Crop(side=self.side, jitter=Jitter()), fill=True, cache=cache / "kitti-filled",
        )  # fmt: skip
        if len(found) < self.marks.frames:
            raise InputError(
                f"the marks need {self.marks.frames:,} frames, {self.folder} has {len(found):,}"
            )
        return found

    def path(self, cache: Path, name: str) -> Path:
        """A file of this trial, named by all that could change it."""
        content = asdict(self)
        if self.weights is not None:
            content["weights"] = hashlib.sha256(Path(self.weights).read_bytes()).hexdigest()
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
        return cache / f"kitti-seed{self.seed}-{digest}-{name}"

    def network(self, *, residual: bool = False) -> TorchDepth:
        """The network with its weights; that of residuals is made by the same function."""
        torch.manual_seed(self.seed + 1_000 * residual)
        module, _, function = self.model.partition(":")
        try:
            maker = getattr(import_module(module), function)
        except (ImportError, AttributeError) as error:
            raise InputError(f"model must name a function that makes a network: {error}") from error
        given = maker()
        if isinstance(given, TorchDepth) and not residual:
            model = given
        else:
            bare = given.module if isinstance(given, TorchDepth) else given
            device = "cuda" if torch.cuda.is_available() else "cpu"
            adam = torch.optim.Adam(bare.to(device).parameters(), lr=self.learning_rate)
            rising = torch.optim.lr_scheduler.LinearLR(adam, 0.1, total_iters=500)
            loss = "absolute" if residual else "aligned"
            model = TorchDepth(bare, adam, loss=loss, scheduler=rising, zero=residual)
        if self.weights is not None:
            model.load_weights(self.weights, self.key)
        return model


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


def made(trial: Trial, heuristic: str, cache: Path) -> Frames:
    """The frames of a trial under a heuristic: read if they are finished, else made."""
    choice(heuristic, "a heuristic", _HEURISTICS)
    path = trial.path(make_folder(cache), f"{heuristic}.npz")
    found = stored(path)
    if found is not None:
        return found
    video, marks = trial.video(cache), trial.marks
    rows = _padding(video)
    maps = _maps(trial, video, rows, cache)
    parts: dict[str, Callable[[], Any]] = {
        "constant": Constant,
        "magnitude": lambda: ResidualMagnitude(
            StoredPredictions(_sizes(trial, video, rows, maps, cache))
        ),
        "previous": PreviousResiduals,
        "registered": RegisteredResiduals,
        "registered_paper": lambda: RegisteredResiduals(register=TVL1(), follow="each"),
    }
    rescale = None if heuristic == "constant" else Line()
    model = SpreadModel(
        StoredPredictions(maps), parts[heuristic](), seed=trial.seed, rescale=rescale
    )
    kept, extra = reduced(_Judged(video, rows), marks.parts, marks.taught, model, reach=2.0)
    return store(kept, extra, path)


def _maps(trial: Trial, video: Video, rows: int, cache: Path) -> np.ndarray:
    """The network's map of every online frame, without padding, before its truth is seen."""
    return _through(trial, video, rows, cache, "maps", trial.network(), None)


def _sizes(trial: Trial, video: Video, rows: int, maps: np.ndarray, cache: Path) -> np.ndarray:
    """What a second network says of the size of the first one's residuals.

    It is taught online alone: the residuals of the offline part are those of frames the first
    network was fitted on, and too small.
    """
    return _through(trial, video, rows, cache, "sizes", trial.network(residual=True), maps)


def _through(
    trial: Trial,
    video: Video,
    rows: int,
    cache: Path,
    name: str,
    model: TorchDepth,
    maps: np.ndarray | None,
) -> np.ndarray:
    """A network goes through the video: epochs offline, then frame by frame, resumed if stopped."""
    path, marks = trial.path(cache, f"{name}.npy"), trial.marks
    if path.is_file():
        return np.asarray(np.load(path, allow_pickle=False, mmap_mode="r"))
    saved, epoch, done = path.with_suffix(".model"), 0, []
    progress = path.with_suffix(".part.npz")
    if progress.is_file() and saved.is_file():
        try:
            with np.load(progress, allow_pickle=False) as held:
                epoch, done = int(held["epoch"]), list(held["maps"])
            model.load(saved)
        except (OSError, SetpointError, ValueError, EOFError):
            epoch, done = 0, []
            model = trial.network(residual=maps is not None)

    def aside(epoch: int) -> None:
        # The network last: maps without it are those of an older one, and are made again.
        saved.unlink(missing_ok=True)
        with whole_file(progress) as file:
            np.savez(file, epoch=np.array(epoch), maps=np.array(done, np.float32))
        model.save(saved)

    if maps is None:
        offline = video[: marks.taught]
        for number in range(epoch, trial.epochs):
            order = np.random.default_rng((trial.seed, number)).permutation(marks.taught)
            views = offline.training(number)
            model.fit(views[int(place)][:2] for place in order)
            epoch = number + 1
            aside(epoch)
    online = video.training(trial.epochs)
    for number in range(marks.taught + len(done), marks.frames):
        frame = video[number]
        done.append(np.asarray(model.predict(frame.rgb))[rows:])
        if maps is None:
            model.learn(*online[number][:2])
        else:
            model.learn(frame.rgb, _residual(maps[number - marks.taught], frame.depth, rows))
        if len(done) % STRIDE == 0:
            aside(epoch)
    with whole_file(path) as file:
        np.save(file, np.array(done, np.float32))
    for each in (saved, progress):
        each.unlink(missing_ok=True)
    return np.asarray(np.load(path, allow_pickle=False, mmap_mode="r"))


def _residual(estimate: np.ndarray, truth: np.ndarray, rows: int) -> np.ndarray:
    """The size of a residual once the estimate has the best scale and shift; NaN in padding."""
    known = np.isfinite(truth[rows:])
    made = np.full(truth.shape, np.nan, np.float32)
    if known.sum() >= 2:
        slope, shift = np.polyfit(estimate[known], truth[rows:][known], 1)
        made[rows:] = np.abs(slope * estimate + shift - truth[rows:])
    return made


def reproduce_kitti(
    *,
    folder: str | os.PathLike[str],
    model: str,
    annotated: str | os.PathLike[str] | None = None,
    weights: str | os.PathLike[str] | None = None,
    key: str | None = None,
    heuristics: Sequence[str] = _HEURISTICS,
    seeds: int = 10,
    epochs: int = 60,
    learning_rate: float = 1e-4,
    side: int = 448,
    marks: Marks | None = None,
    out: str | os.PathLike[str] = "results",
    cache: str | os.PathLike[str] | None = None,
) -> tuple[Row, ...]:
    """Runs the paper's protocol on KITTI with a network of the caller's; writes `depth-kitti.md`.

    See `Trial` for the parameters.
    """
    place, target, console = folder_of(cache), make_folder(out), screen()
    rows: list[Row] = []
    asked = [choice(each, "a heuristic", _HEURISTICS) for each in heuristics]
    for seed in range(whole(seeds, "seeds", 1)):
        trial = Trial(
            os.fspath(folder), None if annotated is None else os.fspath(annotated), model,
            None if weights is None else os.fspath(weights), key, seed, epochs, learning_rate,
            side, Marks() if marks is None else marks,
        )  # fmt: skip
        for heuristic in asked:
            frames = made(trial, heuristic, place)
            names = ("kitti", "LiDAR", heuristic, seed)
            rows += [
                judge(frames, method, names, geometry)[0]
                for method in METHODS
                for geometry in GEOMETRIES
            ]
            say(console, f"seed {seed}, {heuristic}: done")
    write_csv(rows, target / "depth-kitti.csv")
    command = f"setpoint-paper depth --kitti {folder} --model {model} --seeds {seeds}"
    note = {"kitti": f"the paper's drives, filled LiDAR depth, network {model}"}
    page = put(target / "depth-kitti.md", report(rows, command, note, quick=False))
    say(console, f"{brief(rows)}\n\nEverything: {page}")
    return tuple(rows)
