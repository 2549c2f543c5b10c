"""Every controller made of scalar rules, rows that are hard for it, and all the ways to run it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, product
from math import inf, isfinite, nan
from typing import Any, NamedTuple

import numpy as np

import setpoint as sp
from setpoint.bulk import replay as replaying
from setpoint.bulk import sweep as sweeping
from setpoint.bulk.states import Begin
from setpoint.combine import Max, Mean
from setpoint.correction.classes import Classes
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.recursion import RiskState
from setpoint.sets import Scale, Widen
from setpoint.state import State
from setpoint.stretches import ErrorAdaptive, Exponential, Identity, ScoreAdaptive
from tests.laws.adversary import Adversary

# Parts

REAL = (-inf, inf)
CUT = (-2.0, 3.0)
LOSSES = {"M": Miscoverage(), "C": MiscoverageCounter(), "K": MiscoverageCounter(cap=2.0)}
INNERS = {"identity": Identity(), "exponential": Exponential()}
MOVES = ("still", "score paper", "score authors", "error paper", "error authors")


def stretch_of(inner: str, move: str) -> Any:
    """One of the ten stretches."""
    if move == "still":
        return INNERS[inner]
    kind, reading = move.split()
    options = {"low": -0.7, "high": 0.9, "inner": INNERS[inner], "reading": reading}
    if kind == "score":
        return ScoreAdaptive(0.3, **options)
    return ErrorAdaptive(0.3, 0.4, **options)


def has_exp(stretch: Any) -> bool:
    """Whether machine code may differ from Python in the last bit."""
    return (
        isinstance(stretch, Exponential)
        or isinstance(getattr(stretch, "inner", None), Exponential)
        or (isinstance(stretch, ErrorAdaptive) and stretch.loss > 0.0)
    )


def controller_of(
    family: Any, support: tuple[float, float], stretch: Any, losses: str, combine: Any = None
) -> sp.Controller:
    """A controller whose θ's leave their narrow bounds on both sides within a few steps.

    `losses` has one letter of `LOSSES` for each risk. No two risks have a number in common.
    """
    middle = 0.0 if family is Widen else 0.75
    risks = [
        sp.Risk(
            LOSSES[letter],
            level=(0.4, 0.55, 0.3)[i],
            step=sp.steps.Fixed((0.4, 0.25, 0.55)[i]),
            start=middle + (0.1, -0.05, 0.2)[i],
            bounds=(middle - (0.5, 0.35, 0.6)[i], middle + (0.6, 0.5, 0.55)[i]),
        )
        for i, letter in enumerate(losses)
    ]
    return sp.Controller(family(support=support), risks, stretch, combine)


class Row(NamedTuple):
    """The parts of one controller, by name."""

    family: str
    support: str
    inner: str
    move: str
    count: int
    first: str
    merge: str
    lifts: str
    empty_if: str

    def controller(self, letters: str | None = None) -> sp.Controller:
        """The controller; `letters` names other losses with the same rules."""
        several = {"M": ("M", "MC", "MCM"), "C": ("C", "CM", "CMC")}[self.first]
        kind = {"max": Max, "mean": Mean}[self.merge]
        delta = 0.3 if self.lifts == "lifts" else None
        return controller_of(
            {"widen": Widen, "scale": Scale}[self.family],
            {"real": REAL, "cut": CUT}[self.support],
            stretch_of(self.inner, self.move),
            letters or several[self.count - 1],
            kind(anti_windup=delta, empty_if=self.empty_if),
        )

    def meetings(self, count: int) -> set[Any]:
        """Every `count` parts that meet here; with one risk nothing is combined."""
        told = list(zip(self._fields, self, strict=True))
        return set(combinations(told if self.count > 1 else told[:6], count))

    def __str__(self) -> str:
        parts = [self.family, self.support, self.inner, self.move, f"{self.count} {self.first}"]
        parts += [self.merge, self.lifts, self.empty_if] if self.count > 1 else []
        return ", ".join(parts)


ROWS = [
    Row(*values)
    for values in product(
        ("widen", "scale"), ("real", "cut"), INNERS, MOVES, (1, 2, 3), "MC",
        ("max", "mean"), ("slack", "lifts"), ("every", "some"),
    )
]  # fmt: skip


def covering(rows: Sequence[Row], count: int) -> list[Row]:
    """Few of the rows in which every `count` parts that can meet do, chosen greedily."""
    met = {row: row.meetings(count) for row in rows}
    left, chosen = set().union(*met.values()), []
    while left:
        chosen.append(max(rows, key=lambda row: len(met[row] & left)))
        left -= met[chosen[-1]]
    return chosen


# Rows of data


class Run(NamedTuple):
    """What a run showed and where it ended: arrays over time, one row a risk where there are."""

    lower: Any
    upper: Any
    lam: Any
    theta: Any
    losses: Any
    state: State


def plain(tape: sp.Tape) -> list[tuple[tuple[float, ...], float]]:
    """The rows of a tape as live streams take them."""
    columns = [column.astype(np.float64).tolist() for column in tape.prediction]
    labels = tape.y.astype(np.float64).tolist()
    return list(zip(zip(*columns, strict=True), labels, strict=True))


def live(
    controller: sp.Controller,
    rows: Iterable[tuple[tuple[float, ...], Any]],
    state: State | None = None,
) -> tuple[Run, list[float]]:
    """A live stream over the rows; a label may be a function of (stream, shown)."""
    stream = sp.Stream(controller, missing="skip", state=state)
    count = len(controller.risks)
    told: list[list[Any]] = [[], [], [], [], []]
    labels = []
    for prediction, label in rows:
        theta = stream.theta if count > 1 else (stream.theta,)
        lam = stream.lam
        shown = stream.predict(prediction)
        y = label(stream, shown) if callable(label) else label
        got = stream.update(y)
        value = (nan,) * count if got is None else got if count > 1 else (got,)
        for column, each in zip(told, (shown.lower, shown.upper, lam, theta, value), strict=True):
            column.append(each)
        labels.append(y)
    lower, upper, lam, theta, losses = (np.array(each, dtype=np.float64) for each in told)
    return Run(
        lower, upper, lam, theta.reshape(-1, count).T, losses.reshape(-1, count).T, stream.state
    ), labels


class Foe:
    """Hard predictions, and labels picked after seeing the set.

    It raises every θ until the full set is shown and then lowers it until the empty one is, with
    labels on the very ends and one ulp outside them (unless `ties` is False), and now and then
    none at all.
    """

    def __init__(self, controller: sp.Controller, seed: int, *, ties: bool, missing: float) -> None:
        self.adversary = Adversary(controller, "random", seed)
        self.rng = self.adversary.rng
        self.up = True
        self.ties, self.missing = ties, missing

    def rows(self, count: int) -> list[tuple[tuple[float, ...], Any]]:
        return [(self.adversary.prediction(), self.label) for _ in range(count)]

    def label(self, stream: sp.Stream, shown: Any) -> float:
        if stream.info is not None and self.rng.random() < self.missing:
            return nan
        lam = next(iter(stream.pending.values())).lam
        if lam in (inf, -inf) and self.rng.random() < 0.6:
            self.up = lam < 0.0
        # The float next to an infinite end is no label that a mean could be taken of.
        labels = [y for y in self.adversary._candidates(shown) if abs(y) < 1e301]
        if not self.ties:
            ends = [end for end in shown if isfinite(end)]
            labels = [y for y in labels if all(_apart(y, end) for end in ends)]
        wanted = [y for y in labels if shown.contains(y) is not self.up]
        return self.rng.choice(wanted or labels)


def _apart(y: float, end: float) -> bool:
    return abs(y - end) > 1e-6 * max(1.0, abs(y), abs(end))


def play(
    controller: sp.Controller, rows: int, seed: int, *, ties: bool = True, missing: float = 0.1
) -> tuple[sp.Tape, Run]:
    """A live run against the foe, and the tape of what it was given."""
    played = Foe(controller, seed, ties=ties, missing=missing).rows(rows)
    run, labels = live(controller, played)
    return tape_of([prediction for prediction, _ in played], labels), run


def tape_of(predictions: Sequence[tuple[float, ...]], labels: Sequence[float]) -> sp.Tape:
    columns = [np.array(column) for column in zip(*predictions, strict=True)]
    return sp.Tape.from_arrays(columns, np.array(labels))


# The ways to run


def replayed(controller: sp.Controller, tape: sp.Tape, state: State | None = None) -> Run:
    """The loop `along`, as machine code or as plain text."""
    begin = Begin(controller, tape, state)
    return as_run(replaying._scalar(controller, tape, begin))


def as_run(trace: sp.Trace) -> Run:
    return Run(trace.lower, trace.upper, trace.lam, trace.theta, trace.losses, trace.state)


def side_by_side(tapes: Sequence[sp.Tape]) -> tuple[tuple[Any, ...], Any]:
    """Tapes of equal length as the columns of a fleet."""
    columns = zip(*(tape.prediction for tape in tapes), strict=True)
    return (
        tuple(np.stack(column, axis=1) for column in columns),
        np.stack([tape.y for tape in tapes], axis=1),
    )


class FleetRun(NamedTuple):
    """What each stream of a fleet showed and lost, and where it ended."""

    lower: Any
    upper: Any
    losses: Any
    fleet: sp.Fleet


def fleet_at_once(controller: sp.Controller, tapes: Sequence[sp.Tape]) -> FleetRun:
    """The loop `fleet`."""
    fleet = sp.Fleet(controller, len(tapes))
    columns, y = side_by_side(tapes)
    lower, upper = fleet.run(columns, y)
    return FleetRun(lower, upper, None, fleet)


def fleet_by_calls(controller: sp.Controller, tapes: Sequence[sp.Tape]) -> FleetRun:
    """The loops `aim_row` and `learn_row`, for all streams at even times. At odd times
    streams come in an order of their own, in two calls that are answered the other way round.
    """
    fleet = sp.Fleet(controller, [f"s{i}" for i in range(len(tapes))])
    columns, y = side_by_side(tapes)
    every = list(range(len(tapes)))
    shape = (len(y), len(tapes))
    dtype = np.result_type(*columns)
    lower, upper = np.empty(shape, dtype), np.empty(shape, dtype)
    losses = np.empty((len(y), len(controller.risks), len(tapes)))
    for t in range(len(y)):
        if t % 2 == 0:
            lower[t], upper[t] = fleet.predict(tuple(column[t] for column in columns))
            losses[t] = fleet.update(y[t])
            continue
        calls = {"last": every[:0:-1], "first": every[:1]}
        for name, part in calls.items():
            prediction = tuple(column[t, part] for column in columns)
            shown = fleet.predict(prediction, [fleet.ids[i] for i in part], batch=name)
            lower[t, part], upper[t, part] = shown
        for name, part in reversed(calls.items()):
            losses[t][:, part] = fleet.update(y[t, part], batch=name)
    return FleetRun(lower, upper, losses, fleet)


FLEETS = (fleet_at_once, fleet_by_calls)


def swept(controllers: Sequence[sp.Controller], tape: sp.Tape) -> dict[str, Any]:
    """The loop `sweep`, as machine code or as plain text."""
    return sweeping._side_by_side(controllers, tape)


def slower(controller: sp.Controller) -> sp.Controller:
    """The controller with other numbers everywhere and the same rules."""
    risks = [
        replace(
            risk,
            step=sp.steps.Fixed(risk.step.gamma * 0.6),
            level=risk.level * 0.7,
            bounds=(risk.bounds[0] - 0.25, risk.bounds[1] + 0.1),
        )
        for risk in controller.risks
    ]
    return replace(controller, risks=tuple(risks))


# What must be equal


def close(a: Any, b: Any, *, exact: bool) -> bool:
    """Equal to the bit, or up to the last bits of an exponential."""
    if exact:
        return bool(np.array_equal(a, b, equal_nan=True))
    return bool(np.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True))


_KEPT = ("arrays", "own_table", "own_annex")
"""How a state keeps the table and the annex."""


def numbers_of(state: State) -> dict[str, Any]:
    """Every slot of a state but the price (`test_watch.py`), by name; of windows, the memory."""
    named = [name for name in State.__slots__ if name not in (*_KEPT, "position", "watch")]
    told = {name: getattr(state, name) for name in (*named, "table", "annex", "stretch")}
    told["sets"] = () if state.sets is None else state.sets.memory
    for i, own in enumerate(state.risks):
        told |= {f"{name}{i}": getattr(own, name) for name in RiskState._fields}
    return told


def assert_same_state(got: State, wanted: State, *, exact: bool) -> None:
    """Every slot agrees: θ, memories, counts, sums, lifts."""
    left, right = numbers_of(got), numbers_of(wanted)
    for name, value in right.items():
        if name in ("terms", "groups") or isinstance(value, int | Classes):
            assert left[name] == value, name
        else:
            assert close(left[name], value, exact=exact), (name, left[name], value)


def assert_same_run(got: Run, wanted: Run, *, exact: bool) -> None:
    """Both showed, lost and ended in the same."""
    for name in ("lower", "upper", "lam", "theta", "losses"):
        assert close(getattr(got, name), getattr(wanted, name), exact=exact), name
    assert_same_state(got.state, wanted.state, exact=exact)


def assert_same_fleet(got: FleetRun, wanted: Sequence[Run], *, exact: bool) -> None:
    """Each stream of a fleet is as it would be alone."""
    for i, (id, run) in enumerate(zip(got.fleet.ids, wanted, strict=True)):
        assert close(got.lower[:, i], run.lower, exact=exact)
        assert close(got.upper[:, i], run.upper, exact=exact)
        if got.losses is not None:
            assert close(got.losses[:, :, i].T, run.losses, exact=exact)
        assert_same_state(got.fleet.state(id), run.state, exact=exact)


SWEPT = (
    "steps", "risk", "coverage", "mean_length", "mean_finite_length", "full", "empty", "mc", "msl",
    "longest_streak", "pinball", "winkler",
)  # fmt: skip


def assert_same_metrics(got: dict[str, float], trace: sp.Trace) -> None:
    """A sweep says of a controller what the summary of its trace says."""
    wanted = trace.summary().as_dict()
    for name in SWEPT:
        assert np.isclose(got[name], wanted[name], rtol=1e-12, atol=1e-15, equal_nan=True), (
            name, got[name], wanted[name],
        )  # fmt: skip
    for i, losses in enumerate(trace.losses):
        told = losses[~np.isnan(losses)]
        assert np.isclose(got[f"risk{i}"], told.mean() if len(told) else nan, equal_nan=True), i


def cuts(length: int) -> list[tuple[int, int]]:
    """A few consecutive pieces that make up a tape, an empty one among them."""
    return list(pairwise([0, 0, 1, length // 3, length // 3, length - 1, length]))
