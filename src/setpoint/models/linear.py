"""A light linear quantile model that learns online and needs numpy only."""

import os
from dataclasses import asdict, dataclass
from math import pi, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

from setpoint import _state_file
from setpoint._check import finite, positive, whole
from setpoint.errors import InputError, LabelError
from setpoint.predictions import Quantiles

_BLOCK = 16
"""Rows between two refits of the centre, once there are that many."""

_FAR = 4.0
"""Standardised features count as at most this far from their mean when the ends are set."""

_RECENT, _USUAL = 20.0, 200.0
"""Half-lives, in rows, of the two running means of the absolute residual."""


def ridge(
    moments: np.ndarray, prior: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The ridge regression whose weighted sums of products are given, or several at once.

    Constant features do no harm.

    Parameters
    ----------
    moments
        Σ w·r·rᵀ over rows r = (1, features, label), (…, d + 2, d + 2).
    prior
        The penalty, as a number of rows that say "no effect".

    Returns
    -------
    The slopes, the intercept, the mean of each feature, and one over its standard deviation.
    """
    total = moments[..., :1, 0]
    mean = moments[..., 0, 1:] / total
    spread = moments[..., 1:, 1:] / total[..., None] - mean[..., None] * mean[..., None, :]
    squares = moments.diagonal(axis1=-2, axis2=-1)[..., 1:-1] / total
    variance = spread.diagonal(axis1=-2, axis2=-1)[..., :-1]
    # What rounding leaves of a constant feature is no variance.
    varies = variance > np.maximum(1e-10 * squares, 1e-280)
    inverse = np.where(varies, 1.0 / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
    matrix = spread[..., :-1, :-1] * inverse[..., None] * inverse[..., None, :]
    place = np.arange(matrix.shape[-1])
    matrix[..., place, place] += np.asarray(prior)[..., None] / total
    aim = spread[..., :-1, -1:] * inverse[..., None]
    slopes = inverse * np.linalg.solve(matrix, aim)[..., 0]
    intercept = mean[..., -1] - (slopes * mean[..., :-1]).sum(axis=-1)
    return slopes, intercept, mean[..., :-1], inverse


@dataclass(frozen=True, slots=True)
class LinearSettings:
    """The options of a linear quantile model; the defaults suit any unit and scale.

    Parameters
    ----------
    levels
        The two quantile levels.
    lags
        How many past labels are features beside x.
    half_life
        After how many rows an observation weighs half in the fit of the centre.
    step
        The length of AdaGrad's steps for the ends, in units of the usual residual.
    prior
        The ridge penalty of the centre, as a number of rows that say "no effect".
    """

    levels: tuple[float, float] = (0.05, 0.95)
    lags: int = 3
    half_life: float = 2000.0
    step: float = 0.2
    prior: float = 10.0

    def __post_init__(self) -> None:
        levels = tuple(float(level) for level in self.levels)
        if len(levels) != 2 or not 0.0 < levels[0] < levels[1] < 1.0:
            raise InputError(f"levels must be a pair with 0 < lower < upper < 1, got {self.levels}")
        object.__setattr__(self, "levels", levels)
        whole(self.lags, "lags", 0)
        for name in ("half_life", "step", "prior"):
            positive(getattr(self, name), name)


class LinearQuantiles:
    """Quantiles of y that are linear in x and in the last labels, learned online.

    The centre is a ridge regression on exponentially weighted rows, solved anew every few rows
    from its moments, so collinear or constant features do no harm. The ends lie around it at a
    distance linear in the features and in the recent size of the residuals; AdaGrad moves them
    along the slope of the pinball loss, in units of the usual residual. Features are standardised
    by the same running moments, so nothing needs to be scaled beforehand.

    A step costs some tens of microseconds, and grows with the square of the number of features.
    Before the first label the prediction is (0, 0).

    Parameters
    ----------
    settings
        How it learns.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> model = LinearQuantiles()
    >>> for x in random.uniform(0.0, 1.0, 4000):
    ...     model.learn([x], 10.0 * x + random.normal(0.0, 1.0 + x))
    >>> lower, upper = model.predict([0.5])  # the true ones: 2.53 and 7.47
    >>> 2.0 < lower < 3.0 and 7.0 < upper < 8.0
    True
    """

    def __init__(self, settings: LinearSettings | None = None) -> None:
        self._settings = settings = LinearSettings() if settings is None else settings
        self._levels = np.array(settings.levels)
        self._decay = 0.5 ** (1.0 / settings.half_life)
        self._weights = self._decay ** np.arange(_BLOCK - 1.0, -1.0, -1.0)
        self._fast, self._slow = (1.0 - 0.5 ** (1.0 / life) for life in (_RECENT, _USUAL))
        self._state: dict[str, Any] = {}
        self._steps = 0

    @property
    def settings(self) -> LinearSettings:
        """The settings of the model."""
        return self._settings

    @property
    def steps(self) -> int:
        """The number of rows learnt."""
        return self._steps

    def __repr__(self) -> str:
        return f"LinearQuantiles({self._settings!r})"

    def _begin(self, x: np.ndarray, y: float) -> None:
        """Room for what is learned; the first row is the origin that rows are measured from."""
        size = len(x) + self._settings.lags
        # What a normal residual would need, in units of its mean absolute value.
        normal = [sqrt(pi / 2.0) * NormalDist().inv_cdf(level) for level in self._levels]
        ends = np.zeros((2, size + 2))
        ends[:, 0] = normal
        rows = np.zeros((_BLOCK, size + 2))
        rows[:, 0] = 1.0
        self._state = {
            "origin": x.copy(),
            "label": y,
            "past": np.zeros(self._settings.lags),
            "low": 0.0,
            "high": 0.0,
            "moments": np.zeros((size + 2, size + 2)),
            "rows": rows,
            "waiting": 0,
            "slopes": np.zeros(size),
            "intercept": 0.0,
            "mean": np.zeros(size),
            "inverse": np.zeros(size),
            "ends": ends,
            "squares": np.full((2, size + 2), 1e-12),
            "usual": 0.0,
            "recent": 0.0,
        }

    # A step

    def predict(self, x: Any) -> Quantiles:
        """The quantiles of the next y. Nothing moves."""
        row = self._read(x)
        if not self._steps:
            return Quantiles(0.0, 0.0)
        state = self._state
        inputs = self._inputs(row)
        centre = self._centre(inputs) + state["label"]
        first, second = (state["ends"] @ self._shape(inputs)).tolist()
        usual = state["usual"]
        return Quantiles(centre + usual * min(first, second), centre + usual * max(first, second))

    def learn(self, x: Any, y: Any) -> None:
        """Takes in a row with its label."""
        row, label = self._read(x), finite(y, "y", LabelError)
        if not self._steps:
            self._begin(row, label)
        state = self._state
        label -= state["label"]
        inputs = self._inputs(row)
        residual = label - self._centre(inputs)
        self._move_ends(self._shape(inputs), residual)

        self._steps += 1
        size, first = abs(residual), 1.0 / self._steps
        state["usual"] += max(self._slow, first) * (size - state["usual"])
        state["recent"] += max(self._fast, first) * (size - state["recent"])
        state["low"], state["high"] = min(state["low"], label), max(state["high"], label)
        state["rows"][state["waiting"], 1:] = (*inputs, label)
        state["waiting"] += 1
        state["past"] = np.concatenate(((label,), state["past"]))[: self._settings.lags]
        if state["waiting"] == _BLOCK or self._steps in (2, 4, 8):
            self._refit()

    def _read(self, x: Any) -> np.ndarray:
        row = np.asarray(x, dtype=np.float64)
        if row.ndim != 1:
            raise InputError(f"x must have the shape (d,), got {row.shape}")
        if self._steps and len(row) != len(self._state["origin"]):
            raise InputError(f"x must have {len(self._state['origin'])} features, got {len(row)}")
        if not np.isfinite(row).all():
            raise InputError(f"x must be finite, got {x!r}")
        return row

    def _inputs(self, row: np.ndarray) -> np.ndarray:
        return np.concatenate((row - self._state["origin"], self._state["past"]))

    def _centre(self, inputs: np.ndarray) -> float:
        """The fitted mean, never further outside the labels seen than half their range."""
        state = self._state
        low, high = state["low"], state["high"]
        around = 0.5 * (high - low)
        fitted = state["intercept"] + float(state["slopes"] @ inputs)
        return float(min(max(fitted, low - around), high + around))

    def _shape(self, inputs: np.ndarray) -> np.ndarray:
        """What the ends are linear in: 1, how unusual residuals are of late, the features."""
        state = self._state
        usual = state["usual"]
        unusual = min(state["recent"] / usual, _FAR) if usual > 0.0 else 1.0
        far = (inputs - state["mean"]) * state["inverse"]
        np.minimum(np.maximum(far, -_FAR, out=far), _FAR, out=far)
        return np.concatenate(((1.0, unusual), far / sqrt(len(inputs) or 1)))

    def _move_ends(self, shape: np.ndarray, residual: float) -> None:
        state = self._state
        usual = state["usual"]
        if not usual > 0.0:
            return
        ends, squares = state["ends"], state["squares"]
        over = residual / usual <= ends @ shape
        slope = (over - self._levels)[:, None] * shape
        squares += slope * slope
        ends -= self._settings.step * slope / np.sqrt(squares)

    def _refit(self) -> None:
        """Takes the waiting rows into the moments, and solves for the centre."""
        state = self._state
        count, moments = state["waiting"], state["moments"]
        rows = state["rows"][:count]
        moments *= self._decay**count
        moments += (rows * self._weights[-count:, None]).T @ rows
        state["waiting"] = 0
        slopes, intercept, mean, inverse = ridge(moments, self._settings.prior)
        state["slopes"], state["mean"], state["inverse"] = slopes, mean, inverse
        state["intercept"] = float(intercept)

    # State

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the whole state to a file, from which `load` goes on to the bit."""
        content = {"settings": asdict(self._settings), "steps": self._steps, "state": self._state}
        _state_file.write(path, "linear quantile model", content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "LinearQuantiles":
        """The model that `save` wrote."""
        content = _state_file.read(path, "linear quantile model")
        with _state_file.intact(path):
            model = cls(LinearSettings(**content["settings"]))
            model._steps = int(content["steps"])
            model._state = {
                name: value.copy() if isinstance(value, np.ndarray) else value
                for name, value in content["state"].items()
            }
            return model
