"""Tapes of the online models, made once: kept by the content of their recipe, resumed if stopped.

A tape is the slow part of an experiment, and no calibrator changes it. Its file is named by a
digest of the model's settings and of the data, so that whatever could change it makes another
file. While it is made, model and predictions are put aside every `STRIDE` rows; whoever asks for
the same tape later goes on from there, to the bit.
"""

import hashlib
import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._check import choice, whole
from setpoint.errors import SetpointError
from setpoint.models import LinearQuantiles, LinearSettings, run
from setpoint.tape import Tape
from setpoint_paper.datasets import Dataset, load, synthetic
from setpoint_paper.models.lstm import CHOSEN, LSTMSettings, QuantileLSTM
from setpoint_paper.work import Checkpoints, each, one_thread

DATASETS = ("power", "energy", "traffic", "prices", "wind")
"""The paper's real streams; the one that may be a stand-in is last."""

MODELS = ("lstm", "linear")
ROWS = 20_000
STRIDE = 1_000
_ARITHMETIC = 2
"""Raised when a model of the same settings gives other numbers: it makes older tapes unknown."""

_CLASSES: dict[str, Any] = {"lstm": QuantileLSTM, "linear": LinearQuantiles}


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a tape is made of: a data set, a model and its settings.

    Parameters
    ----------
    dataset
        One of `DATASETS`, or "synthetic".
    model
        "lstm", the paper's quantile LSTM with the settings its authors chose, or "linear".
    seed
        Of the LSTM, and of the synthetic stream; the linear model is not random.
    batch
        The most recent rows the LSTM learns from at each step.
    rows
        How many rows of the data set, at most.
    settings
        Instead of the chosen ones; their seed, batch, scale_rows and raw_zeros are those here.
    scale_rows
        How many rows the LSTM's x and y are standardised by, at most; the linear model needs none.
    raw_zeros
        How many rows of raw zeros the LSTM finds before the first row; the authors' code has 4.

    Examples
    --------
    >>> Recipe("synthetic", "lstm", seed=3).model_settings().seed
    3
    """

    dataset: str
    model: str = "lstm"
    seed: int = 0
    batch: int = 512
    rows: int = ROWS
    settings: LSTMSettings | None = None
    scale_rows: int = 5_000
    raw_zeros: int = 0

    def __post_init__(self) -> None:
        choice(self.dataset, "a data set", (*DATASETS, "synthetic"))
        choice(self.model, "model", MODELS)
        whole(self.seed, "seed", 0)
        whole(self.batch, "batch", 1)
        whole(self.rows, "rows", 1)
        whole(self.scale_rows, "scale_rows", 1)
        whole(self.raw_zeros, "raw_zeros", 0)

    def data(self) -> Dataset:
        """The rows."""
        return _data(self.dataset, self.rows, self.seed if self.dataset == "synthetic" else 0)

    def model_settings(self) -> LSTMSettings | LinearSettings:
        """The settings of the model."""
        if self.model == "linear":
            return LinearSettings()
        chosen = CHOSEN[self.dataset] if self.settings is None else self.settings
        return replace(
            chosen,
            seed=self.seed,
            batch=self.batch,
            scale_rows=self.scale_rows,
            raw_zeros=self.raw_zeros,
        )

    def digest(self) -> str:
        """Sixteen hexadecimal digits that stand for the settings and every number of the data."""
        data = self.data()
        content = {
            "arithmetic": _ARITHMETIC,
            "model": self.model,
            "settings": asdict(self.model_settings()),
            "shape": data.x.shape,
        }
        known = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
        known.update(np.ascontiguousarray(data.x).tobytes())
        known.update(np.ascontiguousarray(data.y).tobytes())
        return known.hexdigest()[:16]

    @property
    def name(self) -> str:
        """What the tape is called: by its data set, model, seed and digest."""
        seed = f"-seed{self.seed}" if self.model == "lstm" else ""
        return f"{self.dataset}-{self.model}{seed}-{self.digest()}"

    def path(self, cache: Path) -> Path:
        """The file of the finished tape."""
        return cache / f"{self.name}.npz"


@lru_cache(maxsize=32)
def _data(dataset: str, rows: int, seed: int) -> Dataset:
    if dataset == "synthetic":
        return synthetic(rows, seed=seed)
    return load(dataset, rows=rows)[:rows]


def read(recipe: Recipe, cache: Path) -> Tape | None:
    """The finished tape, None if there is none yet."""
    path = recipe.path(cache)
    return Tape.read(path) if path.is_file() else None


def make(recipe: Recipe, cache: Path, stride: int = STRIDE) -> Tape:
    """The tape of a recipe: read if it is finished, else made, from where it was left.

    Predictions of row t are made before y_t is seen. The group of a row is its weekday, or the
    synthetic stream's own group.
    """
    found = read(recipe, cache)
    if found is not None:
        return found
    path = recipe.path(cache)
    reached, data = Checkpoints(path), recipe.data()
    model, done = _resumed(recipe, reached)
    with one_thread() if recipe.model == "lstm" else nullcontext():
        while len(done) < len(data):
            rows = slice(len(done), min(len(done) + whole(stride, "stride", 1), len(data)))
            done = np.concatenate([done, run(model, data.x[rows], data.y[rows])])
            if len(done) < len(data):
                with reached.put(len(done)) as step:
                    model.save(step / "model")
                    np.save(step / "done.npy", done)
    tape = Tape.from_arrays(
        {"lower": done[:, 0], "upper": done[:, 1]},
        data.y,
        group=data.group if data.time is None else data.weekday,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    tape.write(path)
    reached.clear()
    return tape


def _resumed(recipe: Recipe, reached: Checkpoints) -> tuple[Any, np.ndarray]:
    """The model and the predictions so far, from the latest checkpoint that can be read."""
    kind = _CLASSES[recipe.model]
    for step in reached:
        try:
            return kind.load(step / "model"), np.load(step / "done.npy", allow_pickle=False)
        except (SetpointError, OSError, ValueError, EOFError):
            continue  # damaged: an older one, or the beginning, will do
    data, settings = recipe.data(), recipe.model_settings()
    if recipe.model == "linear":
        return kind(settings), np.empty((0, 2))
    model = kind(data.x.shape[1], settings)
    model.fit_scale(data.x, data.y)
    return model, np.empty((0, 2))


def make_all(recipes: Sequence[Recipe], cache: Path, jobs: int = 1) -> None:
    """Every tape that is missing, in their order, `jobs` at a time."""
    missing = [recipe for recipe in recipes if not recipe.path(cache).is_file()]
    each(_made, [(recipe, cache) for recipe in missing], whole(jobs, "jobs", 1), "tapes")


def _made(recipe: Recipe, cache: Path) -> None:
    make(recipe, cache)
