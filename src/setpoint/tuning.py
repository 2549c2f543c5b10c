"""Choosing step sizes and stretch options by replaying a tape under many of them.

tuned = setpoint.tune(controller, tape, {"gamma": search.GAMMAS}, search.Pinball())
tuned.best           the controller to use
tuned.table          everything that was tried
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import product
from math import inf, isfinite
from typing import Any

import numpy as np

from setpoint._check import whole
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.replaying import Sweep, sweep
from setpoint.search import LogUniform, Pinball, Uniform
from setpoint.tape import Tape

__all__ = ["Tuned", "tune"]

Array = np.ndarray[Any, Any]


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
        What was tried: the values of each option, in the order of the table.
    objective
        What was made small.
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

    def rows(self) -> list[dict[str, float]]:
        """Everything tried, best first: its options, its objective, its metrics."""
        order = np.argsort(self.objective, kind="stable")
        return [
            {
                **{name: float(values[i]) for name, values in self.options.items()},
                "objective": float(self.objective[i]),
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
        names = [*self.options, "objective", "risk", "coverage", "mean_length", "msl"]
        shown = self.rows()[:10]
        lines = [f"{len(self):,} controllers tried, best first"]
        lines.append("  ".join(f"{name:>12}" for name in names))
        lines += ["  ".join(f"{row[name]:12.5g}" for name in names) for row in shown]
        return "\n".join(lines)

    __repr__ = __str__


def tune(
    controller: Controller,
    tape: Tape,
    space: Mapping[str, Sequence[float] | Uniform | LogUniform],
    objective: Callable[[Controller, Mapping[str, float]], float] | None = None,
    *,
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
        "stretch.score", or for short "gamma" for the step sizes of all risks and "score", "loss",
        "low", "high" for the stretch, with the values to try or a range to draw from.
    objective
        What to make small, called with a controller and its metrics; `search.Pinball()` by default.
    budget
        How many settings to try if there is a range in the space; grids are tried whole.
    seed
        Where the low-discrepancy sequence begins: the same seed gives the same result.
    confidence_level
        The nominal coverage behind pinball; by default what the controller aims at.
    progress
        Whether to show how far a long search is, by default if someone watches.

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
    wanted: Callable[[Controller, Mapping[str, float]], float] = objective or Pinball()
    names = list(space)
    settings = _settings(space, whole(budget, "budget", 1), whole(seed, "seed", 0))
    controllers = [
        _with(controller, dict(zip(names, setting, strict=True))) for setting in settings
    ]
    table = _swept(controllers, tape, confidence_level, progress)
    values = np.array(
        [float(wanted(each, table.row(index))) for index, each in enumerate(controllers)]
    )
    values[np.isnan(values)] = inf
    index = int(np.argmin(values)) if len(values) and isfinite(values.min()) else None
    return Tuned(
        controller if index is None else controllers[index],
        index,
        {name: np.array([setting[i] for setting in settings]) for i, name in enumerate(names)},
        values,
        table,
    )


def _settings(
    space: Mapping[str, Sequence[float] | Uniform | LogUniform], budget: int, seed: int
) -> list[tuple[Any, ...]]:
    """The settings to try: the whole grid, or `budget` points spread evenly over the space."""
    if not space:
        raise InputError("the space is empty: name at least one option to try")
    choices: list[Any] = []
    for name, values in space.items():
        if isinstance(values, Uniform | LogUniform):
            choices.append(values)
            continue
        try:
            listed = list(values)
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
    "score": "stretch.score",
    "loss": "stretch.loss",
    "low": "stretch.low",
    "high": "stretch.high",
}


def _with(controller: Controller, options: Mapping[str, Any]) -> Controller:
    """The controller with some options changed."""
    for name, value in options.items():
        if name == "gamma":
            for index in range(len(controller.risks)):
                controller = _replaced(
                    controller, ["risks", str(index), "step", "gamma"], value, name
                )
        else:
            controller = _replaced(controller, _SHORT.get(name, name).split("."), value, name)
    return controller


def _replaced(part: Any, path: Sequence[str], value: Any, name: str) -> Any:
    """The part with the option at `path` changed."""
    head, *rest = path
    if isinstance(part, tuple):
        if not head.isdigit() or int(head) >= len(part):
            raise InputError(f"{name}: {head!r} must be an index from 0 to {len(part) - 1}")
        place = int(head)
        inner = _replaced(part[place], rest, value, name) if rest else value
        return (*part[:place], inner, *part[place + 1 :])
    allowed = [field.name for field in fields(part)] if is_dataclass(part) else []
    if head not in allowed:
        raise InputError(
            f"{name}: {type(part).__name__} has no option {head!r}; it has {', '.join(allowed)}"
        )
    inner = _replaced(getattr(part, head), rest, value, name) if rest else value
    return replace(part, **{head: inner})


def _swept(
    controllers: Sequence[Controller],
    tape: Tape,
    confidence_level: float | None,
    progress: bool | None,
) -> Sweep:
    """A sweep in pieces, so that someone who watches sees it move."""
    watched = sys.stderr.isatty() if progress is None else progress
    size = 256 if watched else max(len(controllers), 1)
    began, columns = time.monotonic(), []
    for start in range(0, len(controllers), size):
        part = sweep(controllers[start : start + size], tape, confidence_level=confidence_level)
        columns.append(part.columns)
        done = min(start + size, len(controllers))
        if watched and (progress or time.monotonic() - began > 1.0):
            end = "\n" if done == len(controllers) else ""
            print(f"\r{done:,} of {len(controllers):,} controllers", end=end, file=sys.stderr)
    joined = {name: np.concatenate([part[name] for part in columns]) for name in columns[0]}
    return Sweep(tuple(controllers), joined)
