"""Choosing a controller from the first rows of a file, and trying that choice on the rest.

The rows are replayed under a grid of step sizes and stretches. The pinball loss of λ as a forecast
of the critical values is made small.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setpoint import spec
from setpoint._check import finite, positive
from setpoint._files import put
from setpoint._html import amount
from setpoint.bulk import search
from setpoint.bulk.replay import replay
from setpoint.bulk.tune import tune as tune_tape
from setpoint.bulk.tune import with_options
from setpoint.controller import Controller, Risk
from setpoint.errors import DataError, InputError
from setpoint.jobs.columns import family_of, read_tape, timed
from setpoint.jobs.job import Goal
from setpoint.jobs.times import known_part
from setpoint.losses import Miscoverage
from setpoint.metrics import Summary
from setpoint.presets import burn_in
from setpoint.sets import LabelSet
from setpoint.sets.family import Shows, Taped
from setpoint.steps.claims import Accounts
from setpoint.stretches import ErrorAdaptive, Exponential, Identity
from setpoint.tape import Columns, Tape
from setpoint.tape.rows import read

Array = np.ndarray[Any, Any]

FOLLOWS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""The step sizes tried, as a share of the interquartile range of the critical values.

A burn-in that is calm would have them smaller still, and the world does not stay calm."""
_USUAL = 0.05
_NEAR = 1.02
"""Of all choices this close to the best, the one that follows the world fastest is taken."""
_TIGHT = 0.2
"""How near to the level, as a share of it, the certificate is to be."""
_LEAST = 10
"""How many labels a choice needs."""
_MOST = 20_000
"""How many rows a search looks at."""


class Tried(NamedTuple):
    """One of the settings of a choice, and what came out on the rows looked at."""

    stretch: str
    gamma: float
    objective: float
    risk: float
    coverage: float
    msl: float
    chosen: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What a burn-in chose: a controller, and what was tried on how many rows, best first."""

    controller: Controller
    tried: tuple[Tried, ...] = ()
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
    """A controller for a family, from a burn-in of which the last `most` rows count.

    `labels` is how many a stream will have: bounds are wide, as far as the certificate then still
    says something. The smallest pinball loss decides among the step sizes given, and among the
    usual ones the fastest that is near it.
    """
    seen = tape[max(0, len(tape) - most) :] if len(tape.streams) == 1 else tape[:most]
    predictions, outcomes = rows_of(seen, sets)
    observed = int((~np.isnan(seen.y)).sum())
    if observed < _LEAST:
        raise InputError(
            f"a burn-in needs at least {_LEAST} rows with a label, got {observed}: give a longer "
            "file, a longer burn-in, or a controller"
        )
    criticals = np.array(
        [
            nan if y != y else sets.critical(sets.read(prediction), sets.label(y))
            for prediction, y in zip(predictions, outcomes, strict=True)
        ],
        np.float64,
    )
    criticals[np.isinf(criticals)] = nan
    if np.isnan(criticals).all():
        raise DataError(
            f"the {len(seen):,} rows of the burn-in have infinite ends, and nothing can be chosen "
            "from them: leave such rows out, or take a larger share of the file"
        )
    asked = [positive(gamma, "gamma") for gamma in gammas]
    names, candidates = [], []
    for name, stretch in _stretches(sets, goal.level):
        open_ = Controller(sets, Risk(Miscoverage(), goal.level), stretch)
        ready = burn_in(open_, predictions, outcomes, follow=_USUAL)
        usual: Any = ready.risks[0].step
        for gamma in asked or [usual.gamma * follow / _USUAL for follow in _follows(seen)]:
            names.append((name, gamma))
            candidates.append(with_options(ready, {"gamma": gamma}))
    tuned = tune_tape(candidates[0], seen, candidates, search.Tracking(criticals), progress=False)
    order = np.argsort(tuned.objective, kind="stable")
    near = order[tuned.objective[order] <= _NEAR * tuned.objective[order[0]]]
    taken = int(order[0]) if gammas else max(near.tolist(), key=lambda i: names[i][1])
    metrics = [tuned.table.columns[name] for name in ("pinball", "risk", "coverage", "msl")]
    tried = [Tried(*names[i], *(float(metric[i]) for metric in metrics)) for i in order.tolist()]
    tried = [row._replace(chosen=i == taken) for row, i in zip(tried, order.tolist(), strict=True)]
    chosen = _bounded(candidates[taken], goal, names[taken][1], labels)
    return Choice(chosen, tuple(tried), len(seen))


def _follows(tape: Tape) -> list[float]:
    """The step sizes to try; under late labels also smaller ones, down to one label's share."""
    slots = 1 if tape.schedule is None else tape.schedule.slots
    return sorted({share / wait for share in FOLLOWS for wait in (1.0, slots**0.5, float(slots))})


def _is_factor(sets: Any, level: float) -> bool:
    """Whether λ multiplies, and is near 1 whatever the units of y."""
    return bool(sets.bounds() is None and sets.start(level) > 0.0)


def _stretches(sets: Any, level: float) -> list[tuple[str, Any]]:
    if sets.bounds() is not None:  # λ is a probability or a share: there is nothing to stretch
        return [("Identity", Identity())]
    if _is_factor(sets, level):
        inner = Exponential()
        adaptive = ErrorAdaptive(0.1, 0.2, inner=inner)
        return [("Exponential", inner), ("ErrorAdaptive, Exponential inside", adaptive)]
    return [("Identity", Identity()), ("ErrorAdaptive", ErrorAdaptive(0.1, 0.2))]


def _bounded(controller: Controller, goal: Goal, gamma: float, labels: int) -> Controller:
    """Bounds as wide as 100 times the range of y, and narrower for a short stream.

    The constant of the guarantee is about M/γ: over T labels it is within a fifth of the level
    where M is at most γ·T·level/5. Below the range of y itself there is no use in going.
    """
    (risk,) = controller.risks
    if risk.bounds is None or _is_factor(controller.sets, goal.level):
        return controller
    widest = risk.bounds[1]
    wanted = _TIGHT * goal.level * gamma * labels
    high = min(max(wanted, widest / 100.0, 2.0 * abs(risk.start or 0.0)), widest)
    return replace(controller, risks=(replace(risk, bounds=(-high, high)),))


def scale_notes(tape: Tape, controller: Controller) -> tuple[str, ...]:
    """A warning where one step size in units of y serves series of unlike scale."""
    sets, unlike = controller.sets, 10.0
    adjusts = isinstance(controller.risks[0].step, Accounts)
    if adjusts or _is_factor(sets, controller.risks[0].level):
        return ()
    lengths = np.diff(tape.segments.offsets)
    begins, y = tape.segments.offsets[:-1][lengths > 0], tape.by_stream(tape.y)
    spans = np.fmax.reduceat(y, begins) - np.fmin.reduceat(y, begins)
    spans = spans[spans > 0.0]
    if sets.bounds() is not None or len(spans) < 2 or spans.max() < unlike * spans.min():
        return ()
    return (
        "one step size in units of the target serves all series, and their ranges differ by a "
        f"factor of {amount(float(spans.max() / spans.min()))}: only sets that adjust themselves, "
        "which `calibrate` makes unless told otherwise, have a scale for each series",
    )


def rows_of(tape: Tape, sets: Any) -> tuple[list[Any], list[Any]]:
    """The predictions and labels of a tape, as a live stream is given them."""
    columns = [np.asarray(column).tolist() for column in tape.prediction]
    predictions = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    labels = tape.y.tolist()
    if isinstance(sets, Taped):
        labels = [y if y != y else sets.taped(y) for y in labels]
    return predictions, labels


# On a file


@dataclass(frozen=True, slots=True, eq=False)
class TunedFile:
    """What a search on a file chose, and how it does on the `later` rows, not looked at."""

    name: str
    choice: Choice
    later: Summary
    notes: tuple[str, ...] = ()

    @property
    def measure(self) -> str:
        """What tells how large a set is: its length, or the size of a set of labels."""
        sets = self.choice.controller.sets
        return "size" if isinstance(sets, Shows) and sets.shows is LabelSet else "length"

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain values; what is not a finite number is None."""
        return {
            "name": self.name,
            "rows": self.choice.rows,
            "tried": [finite_or_none(row._asdict()) for row in self.choice.tried],
            "later": finite_or_none(self.later.as_dict()),
            "controller": self.choice.toml(),
            "notes": list(self.notes),
        }

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Writes the controller as TOML, whole or not at all."""
        return put(path, self.choice.toml())

    def __str__(self) -> str:
        lines = [f"{self.name}: tried on {self.choice.rows:,} rows, best first", ""]
        lines.append(
            f"  {'stretch':<32}{'γ':>12}{'pinball':>12}{'risk':>9}{'coverage':>10}{'MSL':>7}"
        )
        for row in self.choice.tried:
            mark = "→" if row.chosen else " "
            lines.append(
                f"{mark} {row.stretch:<32}{row.gamma:>12.4g}{row.objective:>12.5g}"
                f"{row.risk:>9.4f}{row.coverage:>10.4f}{row.msl:>7.2f}"
            )
        later = self.later
        lines += [
            "",
            f"→ chosen; on the {later.steps:,} labels after these rows: risk {later.risk:.4f}, "
            f"coverage {later.coverage:.4f}, MSL {later.msl:.2f}, "
            f"{self.measure} {later.mean_finite_length:.4g}",
            "",
            self.choice.toml().rstrip(),
            "",
            *(f"note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)


def tune(
    source: Any,
    columns: Columns,
    coverage: float | Sequence[float] | None = None,
    *,
    support: tuple[float, float] | None = None,
    share: float = 0.5,
    gammas: Sequence[float] = (),
) -> TunedFile:
    """Tries step sizes and stretchings on the first part of a file, and the best on the rest.

    Parameters
    ----------
    source, columns, coverage, support
        As for `calibrate`.
    share
        How much of each series is the first part; of a long one its last 20,000 rows count.
    gammas
        The step sizes to try.
    """
    goal = Goal(coverage, support)
    goal.check_one("tune")
    if not 0.0 < finite(share, "share") < 1.0:
        raise InputError(f"share must lie between 0 and 1, both excluded, got {share:g}")
    rows = read(source)
    columns, time_notes = timed(rows, columns)
    tape, notes = read_tape(rows, columns)
    lengths = np.diff(tape.segments.offsets)
    counts = (share * lengths).astype(np.int64)
    first, rest = known_part(tape, counts), tape.split(counts)[1]
    labels = int(np.median(np.diff(rest.segments.offsets)))
    family = family_of(columns, rows, goal.support)
    choice = choose(family, goal, first, labels, gammas=gammas)
    summary = replay(choice.controller, rest).summary()
    notes = (*time_notes, *notes, *scale_notes(tape, choice.controller))
    return TunedFile(rows.path.name, choice, summary, notes)


def finite_or_none(row: dict[str, Any]) -> dict[str, Any]:
    """Numbers that are not finite as None: JSON has no other word."""
    return {
        name: None if isinstance(value, float) and not -inf < value < inf else value
        for name, value in row.items()
    }
