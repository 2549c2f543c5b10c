"""Running an online model over a file: it predicts each row, then learns it; setpoint holds it."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from setpoint.controller import Controller
from setpoint.errors import DataError, InputError
from setpoint.jobs.calibrate import calibrated
from setpoint.jobs.columns import Columns, Features, check_keys, tape_of, unused
from setpoint.jobs.columns import features as features_of
from setpoint.jobs.job import Config, Goal, Job, check_work
from setpoint.jobs.outcome import Outcome
from setpoint.jobs.rows import Rows, read
from setpoint.models import LinearQuantiles, LinearSettings
from setpoint.tape import Tape

__all__ = ["MODELS", "run"]

Array = np.ndarray[Any, Any]
Progress = Callable[[int, int], None]

MODELS = {
    "linear": "linear quantile regression on the features and the last labels (numpy)",
    "last": "the last label (numpy)",
    "river": "River's linear regression on scaled features (extra river)",
    "forest": "River's adaptive random forest (extra river)",
}
"""The models that can be called by name."""

_EVERY = 200
"""How many rows a step of progress is."""
_LEAST = 20
"""How many labels a model needs."""
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
    controller: Controller | str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Forecasts a column of a file row by row, and holds the risk of the intervals.

    Every row is predicted before its label is seen, and learnt afterwards; every series has a
    model of its own.

    Parameters
    ----------
    target
        The column to forecast. Where it is empty, the row is predicted and not learnt.
    model
        One of `MODELS`.
    features, without
        The columns a model sees, or those it does not; by default every one it can use.
    path, goal, burn_in, controller
        As for `calibrate`.
    time, id, group
        As in `Columns`.
    progress
        Called with the rows done and their number.
    """
    goal = Goal() if goal is None else goal
    if model not in MODELS:
        raise InputError(f"model must be one of {', '.join(MODELS)}, got {model!r}")
    check_keys(target, id, time)
    config = Config.read(controller)
    if config is not None:  # the level is also that of the model's own quantiles
        config.check_goal(goal, ("risk", "support", "gamma", "rule"))
        check_work(config.controller, "run", one_set=True)
    rows = read(path)
    y = _target(rows, target)
    dates = [] if time is not None else [name for name in rows.dates if name != target]
    time = dates[0] if len(dates) == 1 else time
    keys: dict[str, Any] = {"id": id, "time": time, "group": group}
    tape, notes = tape_of(rows, {"prediction": np.zeros(len(y))}, y, keys)
    seen = features_of(rows, tape, target, time=time, id=id, only=features, without=without)
    ends = model == "linear"
    predictions = _forecast(model, seen.values, tape, goal.level, 2 if ends else 1, progress)
    names = ("lower", "upper") if ends else ("prediction",)
    tape = tape.with_prediction(dict(zip(names, predictions.T, strict=True)))
    called = unused(names, rows.names, ("predicted_",))
    if ends:
        columns = Columns(target, called["lower"], called["upper"], **keys)
    else:
        columns = Columns(target, point=called["prediction"], **keys)
    job = Job(
        "run", rows.path, columns, goal, config, burn_in, model, tuple(features), tuple(without)
    )
    family = columns.family(rows, goal.support)
    notes = (*_seen_notes(seen, time), *notes)
    return calibrated(job, rows, tape, family, warm_up=1 / 3, features=seen.columns, notes=notes)


def _target(rows: Rows, target: str) -> Array:
    rows.column(target, "--target")
    if rows.is_text(target):
        words = [word for word in rows.table[target][:5].to_pylist() if word]
        raise DataError(
            f"run forecasts numbers, and --target {target!r} of {rows.path} holds text such as "
            f"{', '.join(map(repr, dict.fromkeys(words)))}: name a column of numbers, or give the "
            "probabilities of a classifier to `setpoint calibrate --probabilities`"
        )
    y = rows.labels(target)
    known = int((~np.isnan(y)).sum())
    if known < _LEAST:
        raise DataError(
            f"run needs at least {_LEAST} rows with a label, and --target {target!r} of "
            f"{rows.path} is empty in {'all' if not known else len(y) - known} of its "
            f"{len(y):,} rows"
        )
    return y


def _seen_notes(seen: Features, time: str | None) -> list[str]:
    names = list(seen.columns)
    if len(names) > _LISTED:
        names = [*names[: _LISTED - 1], f"… and {len(names) - _LISTED + 1} more"]
    notes = [
        f"the model sees {', '.join(names)}; leave out by --without what is not known in time"
        if names
        else "the model sees the last labels only"
    ]
    if time is None:
        notes.append("no time was named or found: the rows are taken in the order of the file")
    if seen.left_out:
        reasons = [f"{name!r} {why}" for name, why in seen.left_out.items()]
        notes.append(f"left out: {'; '.join(reasons)}")
    return notes


# Models


def _forecast(
    name: str, x: Array, tape: Tape, level: float, width: int, progress: Progress | None
) -> Array:
    """The predictions of every row of a tape, each made before its label was learnt."""
    predictions = np.empty((len(tape), width))
    done = 0
    for stream in tape.streams:
        learner = _model(name, level, x.shape[1])
        rows = tape.rows(stream)
        for row, features, y in zip(rows.tolist(), x[rows], tape.y[rows].tolist(), strict=True):
            predictions[row] = learner.predict(features)
            if y == y:
                learner.learn(features, y)
            done += 1
            if progress is not None and (done % _EVERY == 0 or done == len(tape)):
                progress(done, len(tape))
    return predictions


def _model(name: str, level: float, size: int) -> Any:
    """A new model by its name."""
    if name == "linear":
        return LinearQuantiles(LinearSettings(levels=(level / 2.0, 1.0 - level / 2.0)))
    return _Last() if name == "last" else _River(name, size)


class _Last:
    """The last label."""

    label = 0.0

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
        forecast = float(self.model.predict_one(dict(zip(self.names, x.tolist(), strict=True))))
        return forecast if np.isfinite(forecast) else 0.0

    def learn(self, x: Array, y: float) -> None:
        self.model.learn_one(dict(zip(self.names, x.tolist(), strict=True)), y)
