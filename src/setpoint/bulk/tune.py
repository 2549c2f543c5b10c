"""Choosing step sizes and stretch options by replaying a tape under many of them."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import product
from math import inf
from typing import Any

import numpy as np

from setpoint._check import number, whole
from setpoint.bulk.replay import replay
from setpoint.bulk.search import LogUniform, Measures, Narrowest, Objective, Pinball, Uniform
from setpoint.bulk.states import Start
from setpoint.bulk.sweep import Sweep, sweep
from setpoint.controller import Controller, Risk
from setpoint.errors import InputError
from setpoint.sets import LabelSet
from setpoint.sets.family import Shows
from setpoint.steps import Fixed
from setpoint.tape import Tape

Array = np.ndarray[Any, Any]
Choice = Iterable[Any] | Uniform | LogUniform


class TuneNotice(UserWarning):
    """A search found nothing that its objective accepts."""


@dataclass(frozen=True, eq=False, repr=False)
class Tuned:
    """The result of a search.

    Parameters
    ----------
    best
        The controller with the smallest objective; the one given if every one was rejected.
    index
        Its place in the table, None if every one was rejected.
    options
        What was tried: the values of each option, in the order of the table. Numbers are an array
        of them, anything else (bounds, whole parts) an array of objects.
    objective
        What was made small; a row for each controller where it is several numbers.
    table
        The metrics of every controller tried.
    """

    best: Controller
    index: int | None
    options: dict[str, Array]
    objective: Array
    table: Sweep

    def __len__(self) -> int:
        return len(self.objective)

    def rows(self) -> list[dict[str, Any]]:
        """Everything tried, best first: its options, its objective, its metrics."""
        options = {name: values.tolist() for name, values in self.options.items()}
        objective = self.objective.tolist()
        return [
            {
                **{name: values[i] for name, values in options.items()},
                "objective": tuple(objective[i]) if self.objective.ndim > 1 else objective[i],
                **self.table.row(i),
            }
            for i in _best_first(self.objective).tolist()
        ]

    def __str__(self) -> str:
        usual = ("risk", "coverage", "mean_length", "msl")
        metrics = [name for name in usual if name in self.table.columns] or [*self.table.columns]
        names = [*self.options, "objective", *metrics]
        rows = [[_printed(row[name]) for name in names] for row in self.rows()[:10]]
        widths = [max(12, *map(len, column)) for column in zip(names, *rows, strict=True)]
        lines = [
            "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
            for cells in (names, *rows)
        ]
        return "\n".join([f"{len(self):,} controllers tried, best first", *lines])

    __repr__ = __str__


def _printed(value: Any) -> str:
    """A number in few digits, a pair of them, or a part as it prints."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_printed, value))})"
    is_number = isinstance(value, float | int) and not isinstance(value, bool)
    return f"{value:.5g}" if is_number else repr(value)


def _best_first(objective: Array) -> Array:
    """The places of controllers by their objective; of several numbers the first that differs."""
    keys = objective[:, None] if objective.ndim == 1 else objective
    order: Array = np.lexsort(keys.T[::-1])
    return order


def tune(
    controller: Controller,
    tape: Tape,
    space: Mapping[str, Choice] | Sequence[Controller],
    objective: Objective | None = None,
    *,
    state: Start = None,
    delay: int | None = None,
    trials: int = 256,
    seed: int = 0,
    coverage: float | None = None,
) -> Tuned:
    """Replays a tape under many settings of a controller and returns the best.

    Parameters
    ----------
    controller
        Where to start from; what the space does not name stays as it is.
    tape
        The validation part only: what is tuned on must not be tested on.
    space
        What to try: the path of an option, such as "risks.0.step.gamma" or "stretch.score", with
        the values to try or a range to draw from. "gamma" and "bounds" are for short those of all
        risks, "score", "loss", "low" and "high" those of the stretch. A value is whatever the
        option takes, a whole part too. Or a list of the controllers themselves.
    objective
        What to make small: a function of a controller and its metrics, see `search.Objective`. By
        default `search.Pinball()`, for label sets `search.Narrowest(0.005)`. If every controller is
        rejected, a `TuneNotice` says so, and the one given is the best. Where all show some
        infinite set, `search.Pinball()` compares the share of full sets, then the loss of others.
    state
        Where every setting goes on from, as in `replay`.
    delay
        How many rows late labels become known, in place of what the tape says.
    trials
        How many settings to try if there is a range in the space; grids are tried whole.
    seed
        Where the low-discrepancy sequence begins: the same seed gives the same result.
    coverage
        The nominal coverage behind pinball; by default what the controller aims at.

    Examples
    --------
    >>> import setpoint as sp
    >>> tape = sp.Tape.from_arrays(
    ...     {"lower": [0.0] * 6, "upper": [1.0] * 6}, [2.0, 0.5, 3.0, 0.5, 2.5, 0.5]
    ... )
    >>> risk = sp.Risk(sp.losses.Miscoverage(), level=0.1, step=sp.steps.Fixed(0.1))
    >>> tuned = sp.tune(sp.Controller(sp.sets.Widen(), risk), tape, {"gamma": [0.1, 1.0, 9.0]})
    >>> tuned.best.risks[0].step
    Fixed(gamma=1.0)

    References
    ----------
    Feldman et al. 2023, appendices C.1.3 and C.4: the hyper-parameters' tuning.
    """
    if objective is None:
        labels = isinstance(controller.sets, Shows) and controller.sets.shows is LabelSet
        objective = Narrowest(0.005) if labels else Pinball()
    tape = tape if delay is None else tape.late(delay)
    whole(trials, "trials", 1)
    whole(seed, "seed", 0)
    options: dict[str, Array] = {}
    if isinstance(space, Mapping):
        settings = [
            dict(zip(space, setting, strict=True)) for setting in _settings(space, trials, seed)
        ]
        controllers = [with_options(controller, setting) for setting in settings]
        options = {name: _column([setting[name] for setting in settings]) for name in space}
    else:
        controllers = list(space)
    if isinstance(objective, Measures):
        rows = [objective.measure(replay(tried, tape, state)) for tried in controllers]
        columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        table = Sweep(tuple(controllers), columns)
    else:
        table = sweep(controllers, tape, state=state, coverage=coverage)
    values = np.array(
        [_numbers(objective(tried, table.row(i))) for i, tried in enumerate(controllers)]
    )
    values[np.isnan(values)] = inf
    if isinstance(objective, Pinball) and not (values < inf).any():
        # Some sets of every controller are infinite, as the first around a point forecast is.
        values = np.stack([table.columns[name] for name in ("full", "finite_pinball")], axis=1)
        values[np.isnan(values).any(axis=1)] = inf
    best = int(_best_first(values)[0])
    if values[best].flat[0] < inf:
        return Tuned(controllers[best], best, options, values, table)
    warnings.warn(
        f"the objective {objective!r} rejects all of {len(values):,} controllers (it is +inf or "
        "NaN), so the one given stays the best",
        TuneNotice,
        stacklevel=2,
    )
    return Tuned(controller, None, options, values, table)


def _numbers(objective: Any) -> Any:
    """One number, or several, in floats."""
    if isinstance(objective, tuple):
        return [number(value, "the objective") for value in objective]
    return number(objective, "the objective")


def _column(values: list[Any]) -> Array:
    """Numbers as an array of them, anything else as an array of objects."""
    plain = (int, float, np.integer, np.floating)
    if all(isinstance(value, plain) and not isinstance(value, bool) for value in values):
        return np.array(values, dtype=np.float64)
    return np.fromiter(values, dtype=object, count=len(values))


def _settings(space: Mapping[str, Choice], trials: int, seed: int) -> list[tuple[Any, ...]]:
    """The settings to try: the whole grid, or `trials` points spread evenly over the space."""
    if not space:
        raise InputError("the space is empty: name at least one option to try")
    choices: list[Any] = []
    for name, values in space.items():
        if isinstance(values, Uniform | LogUniform):
            choices.append(values)
            continue
        try:
            listed = [] if isinstance(values, str) else list(values)
        except TypeError:
            listed = []
        if not listed:
            raise InputError(f"{name} needs values to try or a range, got {values!r}")
        choices.append(listed)
    if all(isinstance(choice, list) for choice in choices):
        return list(product(*choices))
    return [
        tuple(
            choice[min(int(share * len(choice)), len(choice) - 1)]
            if isinstance(choice, list)
            else choice.at(share)
            for choice, share in zip(choices, point, strict=True)
        )
        for point in _spread(trials, len(choices), seed)
    ]


def _spread(count: int, dimensions: int, seed: int) -> Array:
    """Points that fill the unit cube evenly: the additive recurrence of the generalised golden
    ratio (Roberts 2018), shifted by the seed."""
    ratio = 2.0
    for _ in range(64):
        ratio = (1.0 + ratio) ** (1.0 / (dimensions + 1))
    steps = ratio ** -np.arange(1.0, dimensions + 1.0)
    start = np.random.default_rng(seed).random(dimensions)
    points: Array = (start + np.arange(1, count + 1)[:, None] * steps) % 1.0
    return points


_SHORT = {
    "gamma": "risks.*.step.gamma",
    "bounds": "risks.*.bounds",
    "score": "stretch.score",
    "loss": "stretch.loss",
    "low": "stretch.low",
    "high": "stretch.high",
}


def with_options(controller: Controller, options: Mapping[str, Any]) -> Controller:
    """The controller with some options changed, all those of one part together.

    Options are named as in the space of `tune`. A whole part is exchanged before its options are.
    """
    changes: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, value in options.items():
        path = _SHORT.get(name, name)
        for place in range(len(controller.risks) if "*" in path else 1):
            *part, option = path.replace("*", str(place)).split(".")
            changes.setdefault(tuple(part), {})[option] = value
    for path_of_part in sorted(changes, key=len):
        controller = _changed(controller, path_of_part, changes[path_of_part])
    return controller


def _changed(part: Any, path: tuple[str, ...], changes: Mapping[str, Any]) -> Any:
    """A part with the options changed of the part inside it that a path leads to."""
    first = path[0] if path else next(iter(changes))
    if isinstance(part, tuple) and not is_dataclass(part):
        if not first.isdigit() or int(first) >= len(part):
            raise InputError(f"{first!r} must be an index from 0 to {len(part) - 1}")
        inner = _changed(part[int(first)], path[1:], changes) if path else changes[first]
        return (*part[: int(first)], inner, *part[int(first) + 1 :])
    known = [option.name for option in fields(part)] if is_dataclass(part) else []
    for option in path[:1] or changes:
        if option not in known:
            raise InputError(
                f"{option}: {type(part).__name__} has no option {option!r}; "
                f"it has {', '.join(known) or 'none'}"
            )
    if not path:
        return replace(part, **changes)
    inner = getattr(part, first)
    if isinstance(part, Risk) and path == ("step",) and inner is None and set(changes) == {"gamma"}:
        return replace(part, step=Fixed(changes["gamma"]))
    return replace(part, **{first: _changed(inner, path[1:], changes)})
