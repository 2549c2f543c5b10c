"""The paper's quantile LSTM, trained online, with the settings its authors chose."""

import os
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from setpoint import _state_file
from setpoint._check import finite, positive, whole
from setpoint.errors import InputError, LabelError, SetpointError, StateError
from setpoint.models.online import rows_and_labels
from setpoint.predictions import Quantiles
from setpoint_paper.models.lstm_network import Network


@dataclass(frozen=True, slots=True)
class LSTMSettings:
    """The shape of a quantile LSTM and how it is trained; by default as in the paper.

    Parameters
    ----------
    hidden
        Units of the LSTM, f2.
    before
        Hidden layers of f1, which reads a past row; a last linear layer leads to `hidden`.
    after
        Layers of f3, which reads the LSTM's last output and the new x; the last one is linear.
    learning_rate
        Of Adam, which takes one step each time a row is learned.
    batch
        How many of the most recent rows that step is taken on: 512 in the paper, 256 in its
        authors' code.
    window
        How many past rows of x and y the LSTM reads, the paper's k.
    dropout
        The share of units left out at random while learning; held to a multiple of 1/65536.
    levels
        The two quantile levels that `predict` gives.
    scale_rows
        How many rows, at most, x and y are standardised by; the paper took 8000, which includes
        rows it tuned on.
    raw_zeros
        How many rows that are zero before they are standardised stand before the first row and are
        learned from while they are in the batch. 0 is sound; the authors' older code, behind the
        printed numbers, has 4: a year of 0 is thousands of standard deviations from its mean.
    seed
        Of the first parameters and the dropout.
    double
        Whether to compute in float64: slower, and only tests of equality need it.
    """

    hidden: int = 128
    before: tuple[int, ...] = (32, 64)
    after: tuple[int, ...] = (64, 32)
    learning_rate: float = 1e-4
    batch: int = 512
    window: int = 3
    dropout: float = 0.1
    levels: tuple[float, float] = (0.05, 0.95)
    scale_rows: int = 5000
    raw_zeros: int = 0
    seed: int = 0
    double: bool = False

    def __post_init__(self) -> None:
        for name in ("hidden", "batch", "window", "scale_rows"):
            whole(getattr(self, name), name, 1)
        for name in ("raw_zeros", "seed"):
            whole(getattr(self, name), name, 0)
        for name in ("before", "after"):
            layers = tuple(whole(size, f"a layer of {name}", 1) for size in getattr(self, name))
            object.__setattr__(self, name, layers)
        if not self.after:
            raise InputError("after must have at least one layer, got ()")
        positive(self.learning_rate, "learning_rate")
        if not 0.0 <= finite(self.dropout, "dropout") < 1.0:
            raise InputError(f"dropout must lie in [0, 1), got {self.dropout}")
        levels = tuple(float(level) for level in self.levels)
        if len(levels) != 2 or not 0.0 < levels[0] < levels[1] < 1.0:
            raise InputError(f"levels must be a pair with 0 < lower < upper < 1, got {self.levels}")
        object.__setattr__(self, "levels", levels)


CHOSEN = {
    "energy": LSTMSettings(),
    "power": LSTMSettings(before=(32,), after=(32,), learning_rate=5e-4),
    "prices": LSTMSettings(hidden=64, before=(32, 64, 128)),
    "synthetic": LSTMSettings(hidden=64, after=(32,), learning_rate=5e-4),
    "traffic": LSTMSettings(),
    "wind": LSTMSettings(after=(32,)),
}
"""The settings the paper's authors chose for each of their streams."""

TABLE: dict[str, tuple[Any, ...]] = {
    "before": ((32,), (32, 64), (32, 64, 128)),
    "hidden": (64, 128),
    "after": ((32,), (64, 32)),
    "learning_rate": (1e-4, 5e-4),
}
"""The options the paper searched (its table of hyper-parameters)."""


class Scaling(NamedTuple):
    """The shift and scale that standardise x and y: (value − centre) / spread."""

    x_centre: np.ndarray
    x_spread: np.ndarray
    y_centre: float
    y_spread: float

    @classmethod
    def fit(cls, x: ArrayLike, y: ArrayLike) -> "Scaling":
        """Mean and standard deviation of rows; what never varies is shifted but not scaled."""
        rows, labels = rows_and_labels(x, y)
        if not len(rows):
            raise InputError("a scaling needs at least one row, got none")
        both = np.column_stack([rows, labels])
        if not np.isfinite(both).all():
            raise InputError("the rows a scaling is fitted on must be finite")
        # Rounding can leave a constant column a spread of 1e-17: compare its ends instead.
        spread = np.where(both.max(axis=0) > both.min(axis=0), both.std(axis=0), 1.0)
        centre = both.mean(axis=0)
        return cls(centre[:-1], spread[:-1], float(centre[-1]), float(spread[-1]))


class QuantileLSTM:
    """Quantiles of y given x and the last rows, by an LSTM that learns online.

    The paper's network (its appendix C.1.1). f1 maps each of the last k rows (x, y); the LSTM f2
    sums them up; f3 joins its last output with the new x; f4 gives the quantile at the level it is
    fed. As in the authors' code the level enters f4 alone, so the rest runs once for all levels.
    `predict` uses rows before the new one only. `learn` takes one Adam step on the pinball loss of
    the most recent `batch` rows. Before the first rows there are rows of zeros, the mean once x and
    y are standardised; `raw_zeros` puts others between.

    **Scaling.** x and y should be standardised. Give `fit_scale` rows that are known beforehand;
    without it the model takes x and y as they are, and standardising them is up to the caller. The
    paper fits the scaling on the stream's own first rows, which are then not judged.

    **Dropout.** Masks of f1 are drawn once per row and step, not once per window that holds the
    row; masks of f1 and f3 are shared by the levels. Each mask has the law it should, but those of
    neighbouring windows and of both levels are the same draw, which makes the gradient a little
    noisier than with independent masks.

    **Reproducibility.** A model draws from its own generator: equal seeds give equal results on
    one machine, whatever else runs in the process. torch may sum in another order with another
    number of threads or on another machine. The number of threads is the caller's choice; one
    thread (`torch.set_num_threads(1)`) and several processes are the best use of several cores.

    Parameters
    ----------
    features
        The number of features in x.
    settings
        Shape and training.

    How x and y are standardised is its `scaling`, and `steps` says how many rows it has learnt.

    Examples
    --------
    >>> settings = LSTMSettings(hidden=8, before=(8,), after=(8,), batch=32)
    >>> model = QuantileLSTM(1, settings)
    >>> x = np.linspace(0.0, 1.0, 50)[:, None]
    >>> y = np.sin(9.0 * x[:, 0])
    >>> model.fit_scale(x, y)
    >>> from setpoint.models import run
    >>> run(model, x, y).shape
    (50, 2)
    >>> model.steps
    50
    """

    def __init__(self, features: int, settings: LSTMSettings | None = None) -> None:
        self.features = whole(features, "features", 0)
        self.settings = held = LSTMSettings() if settings is None else settings
        self._network = Network(self.features, held)
        self.scaling = Scaling(np.zeros(self.features), np.ones(self.features), 0.0, 1.0)
        self.steps = 0
        # Rows are appended; when the room is used up the last ones move to its beginning.
        self._kept = held.window + max(held.batch, held.raw_zeros)
        number = np.float64 if held.double else np.float32
        self._rows = np.zeros((4 * self._kept, self.features + 1), dtype=number)
        self._tensor = torch.from_numpy(self._rows)
        self._end = held.window + held.raw_zeros
        levels = np.array(held.levels, dtype=np.float64)[:, None]
        self._levels = torch.from_numpy(levels).to(self._network.dtype)

    def fit_scale(self, x: ArrayLike, y: ArrayLike) -> None:
        """Standardises by the first `scale_rows` of the rows given; before the first `learn`."""
        rows, labels = rows_and_labels(x, y)
        if rows.shape[1] != self.features:
            raise InputError(f"x must have {self.features} features, got {rows.shape[1]}")
        if self.steps:
            raise InputError(
                f"the scaling must be fitted before the first row is learned, "
                f"{self.steps} were learned already"
            )
        count = self.settings.scale_rows
        self.scaling = known = Scaling.fit(rows[:count], labels[:count])
        before = self._rows[self.settings.window : self._end]
        before[:, :-1] = -known.x_centre / known.x_spread
        before[:, -1] = -known.y_centre / known.y_spread

    # A step

    def predict(self, x: Any) -> Quantiles:
        """The quantiles of the next y at `levels`. Nothing moves; the two may cross."""
        scaling, window, end = self.scaling, self.settings.window, self._end
        row = (self._read(x) - scaling.x_centre) / scaling.x_spread
        found = self._network.quantiles(
            self._tensor[end - window : end],
            torch.from_numpy(row).to(self._network.dtype),
            self._levels[:, 0],
        )
        values = found.numpy().astype(np.float64) * scaling.y_spread + scaling.y_centre
        return Quantiles(*values.tolist())

    def learn(self, x: Any, y: Any) -> None:
        """Takes in a row with its label, then one Adam step on the most recent rows."""
        scaling, held = self.scaling, self.settings
        row, label = self._read(x), finite(y, "y", LabelError)
        if self._end == len(self._rows):
            self._rows[: self._kept] = self._rows[-self._kept :]
            self._end = self._kept
        new = self._rows[self._end]
        new[:-1] = (row - scaling.x_centre) / scaling.x_spread
        new[-1] = (label - scaling.y_centre) / scaling.y_spread
        self._end += 1
        self.steps += 1
        batch = min(self.steps + held.raw_zeros, held.batch)
        rows = self._tensor[self._end - batch - held.window : self._end]
        self._network.learn(rows, self._levels)

    def _read(self, x: Any) -> np.ndarray:
        row = np.asarray(x, dtype=np.float64)
        if row.shape != (self.features,):
            raise InputError(f"x must have the shape ({self.features},), got {row.shape}")
        if not np.isfinite(row).all():
            raise InputError(f"x must be finite, got {x!r}")
        return row

    # State

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the whole state to a file, from which `load` goes on to the bit."""
        content = {
            "settings": asdict(self.settings),
            "features": self.features,
            "scaling": self.scaling._asdict(),
            "steps": self.steps,
            "rows": self._rows[max(self._end - self._kept, 0) : self._end].copy(),
            "network": self._network.state(),
        }
        _state_file.write(path, "quantile LSTM", content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "QuantileLSTM":
        """The model that `save` wrote."""
        content = _state_file.read(path, "quantile LSTM")
        try:
            model = cls(content["features"], LSTMSettings(**content["settings"]))
            model.scaling = Scaling(**content["scaling"])
            model.steps = content["steps"]
            rows = content["rows"]
            model._rows[: len(rows)] = rows
            model._end = len(rows)
            model._network.restore(content["network"])
        except SetpointError:
            raise
        except Exception as error:  # damage shows itself in many ways
            raise StateError(f"{os.fspath(path)} is damaged: {error!r}") from error
        return model
