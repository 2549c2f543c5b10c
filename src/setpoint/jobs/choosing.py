"""Choosing a controller from the first rows of a file: start, bounds, stretching and step size.

The burn-in is replayed under a grid of step sizes. What is made small is the pinball loss of λ as
a forecast of the critical values, which for intervals ranks as the Winkler score does, and which
sets of every kind have.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from setpoint import spec
from setpoint._check import choice, finite, interval, positive
from setpoint.bulk.replay import nominal, replay
from setpoint.burn_in import burn_in
from setpoint.controller import Controller, Risk
from setpoint.errors import InputError
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.metrics import msl
from setpoint.steps import Fixed
from setpoint.stretches import ErrorAdaptive, Exponential, Identity
from setpoint.tape import Tape

__all__ = ["RISKS", "Choice", "Goal", "choose", "table"]

Array = np.ndarray[Any, Any]

RISKS = ("coverage", "mc")
"""What can be held by name."""

FOLLOWS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""The step sizes tried, as a share of the interquartile range of the critical values.

A burn-in that is calm would have them smaller still, and the world does not stay calm."""

_USUAL = 0.05
_NEAR = 1.02
"""Of all choices this close to the best, the one that follows the world fastest is taken."""
_MOST = 5_000
"""How many rows the choice looks at."""
_CAP = 20
_TIGHT = 0.2
"""How near to the level, as a share of it, the certificate is to be."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What to hold.

    Parameters
    ----------
    risk
        "coverage" holds the share of labels missed at `level`; "mc" holds the mean number of
        misses in a row at level / (1 − level), what it is where misses are independent.
    level
        The share of labels that may be missed.
    support
        Where y can lie; intervals are cut to it.
    gamma
        The step size; by default the burn-in chooses it.

    Examples
    --------
    >>> Goal("mc", 0.1).made().level
    0.11111111111111112
    """

    risk: str = "coverage"
    level: float = 0.1
    support: tuple[float, float] | None = None
    gamma: float | None = None

    def __post_init__(self) -> None:
        choice(self.risk, "risk", RISKS)
        level = finite(self.level, "level")
        if not 0.0 < level < 1.0:
            raise InputError(
                f"level must lie between 0 and 1, both excluded, got {level:g}: it is the share of "
                "labels that may be missed, 0.1 for 90 % coverage"
            )
        object.__setattr__(self, "level", level)
        if self.support is not None:
            object.__setattr__(self, "support", interval(self.support, "support"))
        if self.gamma is not None:
            object.__setattr__(self, "gamma", positive(self.gamma, "gamma"))

    def plain(self) -> dict[str, Any]:
        """What is asked, by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def made(self) -> Risk:
        """The risk, with everything else left open."""
        if self.risk == "mc":
            return Risk(MiscoverageCounter(cap=_CAP), self.level / (1.0 - self.level))
        return Risk(Miscoverage(), self.level)

    def family(self, kind: Any) -> Any:
        """A family of intervals of this kind, with the support."""
        return kind() if self.support is None else kind(support=self.support)


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What a burn-in chose.

    Parameters
    ----------
    controller
        The controller to use.
    tried
        What was tried, best first: the stretch, γ, and what came out on the rows looked at.
    rows
        How many rows that were.
    """

    controller: Controller
    tried: tuple[dict[str, Any], ...] = ()
    rows: int = 0

    def toml(self) -> str:
        """The controller as text."""
        return spec.to_toml(self.controller)


def choose(
    sets: Any,
    goal: Goal,
    tape: Tape,
    labels: int,
    *,
    gammas: Sequence[float] = (),
    most: int = _MOST,
) -> Choice:
    """A controller for a family, from a burn-in.

    Parameters
    ----------
    sets
        The family.
    goal
        What to hold.
    tape
        The burn-in; of a long one the last rows of each stream count.
    labels
        How many labels a stream will have. Bounds are wide, as far as the certificate then still
        says something: a fifth of the level, if y keeps to its range.
    gammas
        The step sizes to try; by default some around the usual one. The smallest pinball loss
        decides among those given, and among the usual ones the fastest that is near it.
    most
        How many rows to look at.
    """
    seen = _last(tape, most)
    past = _predictions(seen)
    outcomes = _labels(sets, seen.y)
    observed = int((~np.isnan(seen.y)).sum())
    if observed < 10:
        raise InputError(
            f"a burn-in needs at least 10 rows with a label, got {observed}: give a longer file, "
            "a longer burn-in, or a controller"
        )
    criticals = _criticals(sets, past, outcomes)
    candidates = []
    for stretch in _stretches(sets):
        ready = burn_in(Controller(sets, goal.made(), stretch), past, outcomes, follow=_USUAL)
        (risk,) = ready.risks
        usual: Any = risk.step
        given = [goal.gamma] if goal.gamma is not None else [positive(g, "gamma") for g in gammas]
        for gamma in given or [usual.gamma * follow / _USUAL for follow in FOLLOWS]:
            held = replace(risk, step=Fixed(gamma))
            candidates.append(replace(ready, risks=(held,)))
    tried = table(candidates, seen, criticals)
    taken = tried[0]
    if not gammas:
        near = [row for row in tried if row["objective"] <= _NEAR * taken["objective"]]
        taken = max(near, key=lambda row: row["gamma"])  # of equals the first, which is better
    chosen = _bounded(taken["controller"], goal, labels)
    rows = tuple(
        {**{k: v for k, v in row.items() if k != "controller"}, "chosen": row is taken}
        for row in tried
    )
    return Choice(chosen, rows, len(seen))


def table(
    controllers: Sequence[Controller], tape: Tape, criticals: Array | None = None
) -> list[dict[str, Any]]:
    """Controllers side by side on a tape, best first."""
    if criticals is None:
        sets = controllers[0].sets
        criticals = _criticals(sets, _predictions(tape), _labels(sets, tape.y))
    rows = []
    for controller in controllers:
        trace = replay(controller, tape)
        hits = np.where(trace.observed, trace.covered, np.nan)
        step: Any = controller.risks[0].step
        rows.append(
            {
                "stretch": _name(controller.stretch),
                "gamma": step.gamma if isinstance(step, Fixed) else None,
                "objective": _pinball(trace.lam, criticals, nominal(controller)),
                "risk": float(np.nanmean(trace.losses[0])),
                "coverage": trace.coverage,
                "msl": msl(hits),
                "controller": controller,
            }
        )
    return sorted(rows, key=lambda row: row["objective"])


def _name(stretch: Any) -> str:
    inner = getattr(stretch, "inner", None)
    name = type(stretch).__name__
    return name if inner in (None, Identity()) else f"{name}, {type(inner).__name__} inside"


def _pinball(lam: Array, criticals: Array, confidence_level: float) -> float:
    """The pinball loss of λ as the quantile of the critical values that coverage asks for."""
    known = np.isfinite(criticals)
    s = criticals[known]
    far = 10.0 * float(np.abs(s).max()) if len(s) else 1.0
    gap = s - np.clip(lam[known], -far, far)
    tilted = np.maximum(confidence_level * gap, (confidence_level - 1.0) * gap)
    return float(tilted.mean()) if len(s) else float("nan")


def _stretches(sets: Any) -> tuple[Any, ...]:
    if sets.bounds() is not None:  # λ is a probability or a share: there is nothing to stretch
        return (Identity(),)
    if type(sets).__name__ == "Scale":  # λ is near 1 whatever the units of y
        inner = Exponential()
        return (inner, ErrorAdaptive(0.1, 0.2, inner=inner))
    return (Identity(), ErrorAdaptive(0.1, 0.2))


def _bounded(controller: Controller, goal: Goal, labels: int) -> Controller:
    """Bounds as wide as 100 times the range of y, and narrower for a short stream.

    The constant of the guarantee is about M/γ: over T labels it is within a fifth of the level
    where M is at most γ·T·level/5. Below the range of y itself there is no use in going.
    """
    (risk,) = controller.risks
    inner = getattr(controller.stretch, "inner", controller.stretch)
    if controller.sets.bounds() is not None or not isinstance(inner, Identity):
        return controller
    step: Any = risk.step
    assert risk.bounds is not None
    widest = risk.bounds[1]
    start = risk.start or 0.0
    wanted = _TIGHT * goal.level * step.gamma * labels
    high = min(max(wanted, widest / 100.0, 2.0 * abs(start)), widest)
    return replace(controller, risks=(replace(risk, bounds=(-high, high)),))


def _last(tape: Tape, most: int) -> Tape:
    """The last rows of a tape, of one stream or of the first ones together."""
    if len(tape.streams) == 1:
        return tape[max(0, len(tape) - most) :]
    return tape[:most] if len(tape) > most else tape


def _predictions(tape: Tape) -> list[Any]:
    columns = [np.asarray(column).tolist() for column in tape.prediction]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _labels(sets: Any, y: Array) -> list[Any]:
    taped = getattr(sets, "taped", None)
    return [v if taped is None or v != v else taped(v) for v in y.tolist()]


def _criticals(sets: Any, past: Sequence[Any], outcomes: Sequence[Any]) -> Array:
    """The critical value of each label, NaN where there is none."""
    made = np.full(len(past), np.nan)
    for place, (prediction, label) in enumerate(zip(past, outcomes, strict=True)):
        if label == label:
            value = float(sets.critical(sets.read(prediction), sets.label(label)))
            made[place] = value if isfinite(value) else np.nan
    return made
