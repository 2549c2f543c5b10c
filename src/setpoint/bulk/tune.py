"""Choosing step sizes and stretch options by replaying a tape under many of them.

tuned = setpoint.tune(controller, tape, {"gamma": search.GAMMAS}, search.Pinball())
tuned.best           the controller to use
tuned.table          everything that was tried
"""

import sys
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
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

__all__ = ["TuneNotice", "Tuned", "tune", "with_options"]

Array = np.ndarray[Any, Any]
Choice = Iterable[Any] | Uniform | LogUniform


class TuneNotice(UserWarning):
    """A search found nothing that its objective accepts."""


@dataclass(frozen=True, eq=False, repr=False)
class Tuned:
    """What a search found.

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
        order = _best_first(self.objective)
        options = {name: values.tolist() for name, values in self.options.items()}
        return [
            {
                **{name: values[i] for name, values in options.items()},
                "objective": _plain(self.objective[i]),
                **self.table.row(int(i)),
            }
            for i in order
        ]

    def frontier(self, x: str = "mean_length", y: str = "msl") -> dict[str, Array]:
        """The controllers that no other beats in both of two metrics, in order of the first.

        Returns the two columns and `index`, the places in the table: ready to plot.
        """
        for name in (x, y):
            if name not in self.table.columns:
                known = ", ".join(self.table.columns)
                raise InputError(f"a frontier needs metrics among {known}, got {name!r}")
        first, second = self.table.columns[x], self.table.columns[y]
        order = np.lexsort((second, first))
        order = order[np.isfinite(first[order]) & np.isfinite(second[order])]
        lowest = np.minimum.accumulate(second[order]) if len(order) else second[:0]
        keep = np.ones(len(order), dtype=bool)
        keep[1:] = second[order][1:] < lowest[:-1]
        index = order[keep]
        return {x: first[index], y: second[index], "index": index}

    def __str__(self) -> str:
        shown = ("risk", "coverage", "mean_length", "msl")
        own = [name for name in shown if name in self.table.columns] or [*self.table.columns]
        names = [*self.options, "objective", *own]
        rows = [[_told(row[name]) for name in names] for row in self.rows()[:10]]
        widths = [max(12, *map(len, column)) for column in zip(names, *rows, strict=True)]
        lines = [
            "  ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
            for cells in (names, *rows)
        ]
        return "\n".join([f"{len(self):,} controllers tried, best first", *lines])

    __repr__ = __str__


def _told(value: Any) -> str:
    """A number in few digits, a pair of them, or a part as it prints."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_told, value))})"
    is_number = isinstance(value, float | int) and not isinstance(value, bool)
    return f"{value:.5g}" if is_number else repr(value)


def _best_first(objective: Array) -> Array:
    """The places of controllers by their objective; of several numbers the first that differs."""
    keys = objective[:, None] if objective.ndim == 1 else objective
    order: Array = np.lexsort(keys.T[::-1])
    return order


def _plain(value: Any) -> Any:
    """One number, or several."""
    return tuple(value.tolist()) if value.ndim else float(value)


def tune(
    controller: Controller,
    tape: Tape,
    space: Mapping[str, Choice] | Sequence[Controller],
    objective: Objective | None = None,
    *,
    state: Start = None,
    budget: int = 256,
    seed: int = 0,
    confidence_level: float | None = None,
    progress: bool | None = None,
) -> Tuned:
    """Replays a tape under many settings of a controller and returns the best.

    Parameters
    ----------
    controller
        Where to start from; what the space does not name stays as it is.
    tape
        The validation part only: what is tuned on must not be tested on.
    space
        What to try: the path of an option, such as "risks.0.step.gamma", "risks.1.bounds" or
        "stretch.score", or for short "gamma" and "bounds" for the step sizes and bounds of all
        risks and "score", "loss", "low", "high" for the stretch, with the values to try or a
        range to draw from. A value may be whatever the option takes: a number, a pair, None, or
        a whole part, as in {"stretch": [Identity(), Exponential()]}. A risk without a step rule
        gets a fixed one with the γ that is tried. Or a list of the controllers themselves.
    objective
        What to make small, called with a controller and its metrics, or with those it measures
        itself (`search.Measures`). By default `search.Pinball()`, for label sets
        `search.Narrowest(0.005)`. It is a number, or several of which the first that differs
        decides. +inf and NaN reject a controller. If every one is rejected, a `TuneNotice` says
        so, and the controller given is the best.
    state
        Where every setting goes on from, as in `replay`. A score window needs one: while it fills,
        its sets are infinite, and so is their pinball loss.
    budget
        How many settings to try if there is a range in the space; grids are tried whole.
    seed
        Where the low-discrepancy sequence begins: the same seed gives the same result.
    confidence_level
        The nominal coverage behind pinball; by default what the controller aims at.
    progress
        Whether to show how far a long search is on stderr, by default if someone watches.

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
    Feldman et al. 2023, appendix C: the hyper-parameters' tuning.
    """
    goal: Objective = _usual(controller) if objective is None else objective
    whole(budget, "budget", 1)
    whole(seed, "seed", 0)
    options: dict[str, Array] = {}
    if isinstance(space, Mapping):
        names, settings = list(space), _settings(space, budget, seed)
        controllers = [
            with_options(controller, dict(zip(names, setting, strict=True))) for setting in settings
        ]
        options = {name: _column([row[i] for row in settings]) for i, name in enumerate(names)}
    else:
        controllers = list(space)
    told = _Progress(len(controllers), progress)
    if isinstance(goal, Measures):
        table = _measured(controllers, tape, goal, state, told)
    else:
        table = sweep(controllers, tape, state=state, confidence_level=confidence_level, told=told)
    values = np.array(
        [_numbers(goal(each, table.row(place))) for place, each in enumerate(controllers)]
    )
    values[np.isnan(values)] = inf
    first = values if values.ndim == 1 else values[:, 0]
    index = int(_best_first(values)[0]) if first.min() < inf else None
    if index is None:
        warnings.warn(
            f"the objective {goal!r} rejects all of {len(values):,} controllers (it is +inf or "
            "NaN), so the one given stays the best",
            TuneNotice,
            stacklevel=2,
        )
    best = controller if index is None else controllers[index]
    return Tuned(best, index, options, values, table)


def _numbers(objective: Any) -> Any:
    """One number, or several, in floats."""
    if isinstance(objective, tuple):
        return [number(value, "the objective") for value in objective]
    return number(objective, "the objective")


def _measured(
    controllers: Sequence[Controller],
    tape: Tape,
    objective: Measures,
    state: Start,
    told: "_Progress",
) -> Sweep:
    """The metrics that an objective measures itself, one trace after the other."""
    rows = []
    for done, controller in enumerate(controllers, 1):
        rows.append(objective.measure(replay(controller, tape, state)))
        told(done)
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return Sweep(tuple(controllers), columns)


def _usual(controller: Controller) -> Objective:
    """What is made small if nobody says: the pinball loss, or the size of sets without ends."""
    sets = controller.sets
    labels = isinstance(sets, Shows) and sets.shows is LabelSet
    return Narrowest(0.005) if labels else Pinball()


def _column(values: list[Any]) -> Array:
    """Numbers as an array of them, anything else as an array of objects."""
    plain = (int, float, np.integer, np.floating)
    if all(isinstance(value, plain) and not isinstance(value, bool) for value in values):
        return np.array(values, dtype=np.float64)
    return np.fromiter(values, dtype=object, count=len(values))


def _settings(space: Mapping[str, Choice], budget: int, seed: int) -> list[tuple[Any, ...]]:
    """The settings to try: the whole grid, or `budget` points spread evenly over the space."""
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
        for point in _spread(budget, len(choices), seed)
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


@dataclass(slots=True)
class _Change:
    """What becomes of a part: another in its place, or other options, or both in this order."""

    name: str
    whole: tuple[Any, ...] = ()
    options: dict[str, "_Change"] = field(default_factory=dict)


def with_options(controller: Controller, options: Mapping[str, Any]) -> Controller:
    """The controller with some options changed, all those of one part together.

    Options are named as in the space of `tune`.
    """
    change = _Change("")
    for name, value in options.items():
        path = _SHORT.get(name, name)
        places = [str(i) for i in range(len(controller.risks))] if "*" in path else [""]
        for place in places:
            inner = change
            for step in path.replace("*", place).split("."):
                inner = inner.options.setdefault(step, _Change(name))
            inner.whole = (value,)
    changed: Controller = _changed(controller, change)
    return changed


def _changed(part: Any, change: _Change) -> Any:
    """The part after a change of it or of its options."""
    made = change.whole[0] if change.whole else part
    if not change.options:
        return made
    if isinstance(made, tuple) and not hasattr(made, "_fields"):
        items = list(made)
        for place, inner in change.options.items():
            if not place.isdigit() or int(place) >= len(items):
                raise InputError(
                    f"{inner.name}: {place!r} must be an index from 0 to {len(items) - 1}"
                )
            items[int(place)] = _changed(items[int(place)], inner)
        return tuple(items)
    allowed = [option.name for option in fields(made)] if is_dataclass(made) else []
    for option, inner in change.options.items():
        if option not in allowed:
            raise InputError(
                f"{inner.name}: {type(made).__name__} has no option {option!r}; "
                f"it has {', '.join(allowed) or 'none'}"
            )
    return replace(
        made, **{option: _option(made, option, inner) for option, inner in change.options.items()}
    )


def _option(part: Any, option: str, change: _Change) -> Any:
    held = getattr(part, option)
    missing = isinstance(part, Risk) and option == "step" and held is None and not change.whole
    if missing and set(change.options) == {"gamma"}:
        return Fixed(*change.options["gamma"].whole)
    return _changed(held, change)


class _Progress:
    """Shows on stderr how many controllers are done."""

    def __init__(self, count: int, wanted: bool | None) -> None:
        self.count, self.wanted = count, wanted
        self.watched = sys.stderr.isatty() if wanted is None else wanted
        self.began, self.last = time.monotonic(), -inf

    def __call__(self, done: int) -> None:
        now, finished = time.monotonic(), done == self.count
        due = finished or done % 256 == 0 or now - self.last > 0.2
        if self.watched and due and (self.wanted or now - self.began > 1.0):
            end = "\n" if finished else ""
            print(f"\r{done:,} of {self.count:,} controllers", end=end, file=sys.stderr, flush=True)
            self.last = now
