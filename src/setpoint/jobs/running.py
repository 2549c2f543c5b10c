"""Running an online model over a file: it predicts each row, then learns it; setpoint holds it."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setpoint import sets
from setpoint.errors import DataError, InputError
from setpoint.jobs import files
from setpoint.jobs.calibrating import calibrated, check_goal
from setpoint.jobs.choosing import Goal
from setpoint.jobs.columns import unused
from setpoint.jobs.features import Features, find, time_column
from setpoint.jobs.outcome import Outcome
from setpoint.jobs.repeating import Given, beside, read_controller
from setpoint.jobs.taping import taped
from setpoint.models.linear import LinearQuantiles, LinearSettings
from setpoint.models.residual import ResidualScale

__all__ = ["MODELS", "forecast", "model", "run"]

Array = np.ndarray[Any, Any]
Progress = Callable[[int, int], None]

MODELS = {
    "linear": "linear quantile regression on the features and the last labels (numpy)",
    "last": "the last label, with the usual size of a change (numpy)",
    "river": "River's linear regression on scaled features (extra river)",
    "forest": "River's adaptive random forest (extra river)",
}
"""The models that can be called by name."""

_TOLD = 200
_LEAST = 20
_LISTED = 12


def run(
    path: str | os.PathLike[str],
    target: str,
    goal: Goal | None = None,
    *,
    model: str = "linear",
    time: str | None = None,
    id: str | None = None,
    group: str | None = None,
    features: Sequence[str] = (),
    without: Sequence[str] = (),
    burn_in: int | None = None,
    controller: Given = None,
    progress: Progress | None = None,
) -> Outcome:
    """Forecasts a column of a file row by row, and holds the risk of the intervals.

    Every row is predicted before its label is seen, and learnt afterwards; every series has a
    model of its own.

    Parameters
    ----------
    path
        A .csv, .parquet or .jsonl file, or one of these packed by gzip.
    target
        The column to forecast. Where it is empty, the row is predicted and not learnt.
    goal
        What to hold; coverage of 90 % by default.
    model
        One of `MODELS`.
    time
        The column of times; by default the only one that holds dates.
    id, group
        Which series a row belongs to; a key for coverage by group.
    features, without
        The columns a model sees, or those it does not; by default every one it can use.
    burn_in
        How many rows of each series are the model's own; by default a tenth, from 50 to 1,000.
    controller
        What to use instead of choosing, or the TOML file that holds it.
    progress
        Called with the rows done and their number.
    """
    goal = Goal() if goal is None else goal
    if model not in MODELS:
        raise InputError(f"model must be one of {', '.join(MODELS)}, got {model!r}")
    given = read_controller(controller)
    if given is not None:  # the level is also that of the model's own quantiles
        check_goal(goal, ("risk", "support", "gamma"))
    rows = files.read(path)
    y = _target(rows, target)
    if time is None:
        time = time_column(rows)
    tape, order, notes = taped(rows, {"prediction": np.zeros(len(y))}, y, id, time, group)
    codes = None if id is None else rows.keys(id, "--id")[1]
    seen = find(
        rows, target, time=time, id=id, only=features, without=without, codes=codes, order=order
    )
    x = seen.values if order is None else seen.values[order]
    names, ends = forecast(model, x, tape.y, goal.level, tape.segments, progress)
    prediction = dict(zip(names, ends.T, strict=True))
    tape, order, _ = taped(rows, {n: _back(h, order) for n, h in prediction.items()}, y, id, time,
                           group)  # fmt: skip
    family = goal.family(sets.Widen if names == ("lower", "upper") else sets.Scale)
    name, called = Path(path).name, unused(names, rows.names, ("predicted_",))
    job = {
        "command": "run",
        "name": name[: -len(rows.suffix)],
        "file": name,
        "columns": {
            k: v for k, v in (("target", target), ("id", id), ("time", time), ("group", group)) if v
        },
        "prediction": called,
        "model": model,
        "features": list(seen.columns),
        "asked": {
            "target": target, "time": time, "id": id, "group": group, "model": model,
            "features": tuple(features), "without": tuple(without), **goal.plain(),
            "config": beside(controller),
        },
    }  # fmt: skip
    more = {called[each]: column for each, column in prediction.items()}
    return calibrated(
        rows, tape, order, family, goal, job, burn_in, given,
        warm_up=1 / 3, more=more, notes=(*_told(seen, time), *notes),
    )  # fmt: skip


def _back(values: Array, order: Array | None) -> Array:
    if order is None:
        return values
    made = np.empty_like(values)
    made[order] = values
    return made


def _target(rows: files.Rows, target: str) -> Array:
    rows.column(target, "--target")
    if rows.is_text(target):
        words = [word for word in rows.table[target][:5].to_pylist() if word]
        raise DataError(
            f"run forecasts numbers, and --target {target!r} of {rows.path} holds text such as "
            f"{', '.join(map(repr, dict.fromkeys(words)))}: name a column of numbers, or give the "
            "probabilities of a classifier to `setpoint calibrate --probabilities`"
        )
    y = rows.numbers(target, "--target")
    y = np.where(np.isinf(y), np.nan, y)
    known = int((~np.isnan(y)).sum())
    if known < _LEAST:
        raise DataError(
            f"run needs at least {_LEAST} rows with a label, and --target {target!r} of "
            f"{rows.path} is empty in {'all' if not known else len(y) - known} of its "
            f"{len(y):,} rows"
        )
    return y


def _told(seen: Features, time: str | None) -> list[str]:
    names = list(seen.columns)
    if len(names) > _LISTED:
        names = [*names[: _LISTED - 1], f"… and {len(names) - _LISTED + 1} more"]
    said = [
        f"the model sees {', '.join(names)}; leave out by --without what is not known in time"
        if names
        else "the model sees the last labels only"
    ]
    if time is None:
        said.append("no time was named or found: the rows are taken in the order of the file")
    if seen.left_out:
        reasons = [f"{name!r} {why}" for name, why in seen.left_out.items()]
        said.append(f"left out: {'; '.join(reasons)}")
    return said


# Models


def forecast(
    name: str,
    x: Array,
    y: Array,
    level: float,
    segments: Any,
    progress: Progress | None = None,
) -> tuple[tuple[str, ...], Array]:
    """The predictions of every row, each made before its label was learnt, and their names."""
    order, offsets = segments
    rows = np.arange(len(y)) if order is None else order
    names = ("lower", "upper") if name == "linear" else ("centre", "low", "high")
    made = np.empty((len(y), len(names)))
    done = 0
    for start, count in zip(offsets[:-1], np.diff(offsets), strict=True):
        own = rows[start : start + count]
        learner = model(name, level, x.shape[1])
        labels = y[own].tolist()
        for place, row, label in zip(own.tolist(), x[own], labels, strict=True):
            made[place] = learner.predict(row)
            if label == label:
                learner.learn(row, label)
            done += 1
            if progress is not None and (done % _TOLD == 0 or done == len(y)):
                progress(done, len(y))
    return names, made


def model(name: str, level: float, features: int) -> Any:
    """A new model by its name."""
    if name == "linear":
        return LinearQuantiles(LinearSettings(levels=(level / 2.0, 1.0 - level / 2.0)))
    return ResidualScale(_Last() if name == "last" else _River(name, features))


class _Last:
    """The last label."""

    def __init__(self) -> None:
        self.label = 0.0

    def predict(self, x: Any) -> float:
        return self.label

    def learn(self, x: Any, y: float) -> None:
        self.label = y


class _River:
    """A River regressor with the features by their numbers."""

    def __init__(self, name: str, size: int) -> None:
        try:
            from river import forest, linear_model, optim, preprocessing
        except ImportError as error:
            raise InputError(
                f"the model {name} needs River: pip install 'setpoint[river]'"
            ) from error
        if name == "forest":
            self.model: Any = forest.ARFRegressor(n_models=5, seed=1)
        else:
            linear = linear_model.LinearRegression(optim.SGD(0.005), intercept_lr=0.05)
            scaled: Any = preprocessing.StandardScaler() | linear
            self.model = preprocessing.TargetStandardScaler(scaled)
        self.names = range(size)

    def predict(self, x: Array) -> float:
        found = float(self.model.predict_one(dict(zip(self.names, x.tolist(), strict=True))))
        return found if np.isfinite(found) else 0.0

    def learn(self, x: Array, y: float) -> None:
        self.model.learn_one(dict(zip(self.names, x.tolist(), strict=True)), y)
