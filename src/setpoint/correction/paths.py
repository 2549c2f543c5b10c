"""A correction for whole paths: what past errors teach of every step, of the path and its totals.

A path is H forecasts that were made at once. The rules are those of `correction.Intervals`, one
memory for each of these numbers:

    steps     each step of the path, its ends at the account's rest
    path      log M, where M is how far the step that was worst lay from its centre, in half-widths:
              the path lies wholly inside `centre ± q·half` exactly when M ≤ q
    numbers   each total, maximum or minimum: an ordinary interval, given the ends of the steps

Of several levels each has a path and numbers of its own; the steps are theirs together.

Where paths do not overlap, a step has few labels: one a path. Then the steps share what they learn
(`shared`): of the step's mean error, the last error beyond it, its mean lately and the season, a
ridge regression with moments pooled over neighbouring steps says what to expect, and how large the
rest is. The steps are given the forecast that is corrected so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np

from setpoint._check import positive, whole
from setpoint.correction import compiled, rules
from setpoint.correction.intervals import Intervals
from setpoint.errors import InputError, StateError
from setpoint.sets.paths import FAR, Functional, worst
from setpoint.sets.paths import Paths as Family

Array = np.ndarray[Any, Any]
Floats = tuple[float, ...]

_STEPWISE, _MEAN, _LATELY, _SIZE, _SEASON = 0.02, 0.1, 0.15, 0.02, 0.1
_RIDGE, _SHARED, _NEAR, _WIDE, _WILD = 0.1, 2.0, 0.7, 2.3, 15.0


class Base(NamedTuple):
    """What the family reads of a path, and what its labels will be learnt against.

    `steps` has a base of `correction.Intervals` for each step, one row each; `members` has that of
    log M and one for each total, maximum and minimum, level after level. `ready` says that every
    step has a finite half. `seen` and `shift` are what the steps share: what the regression looked
    at, and the error that it expected. `season` is the phase of the first step.
    """

    steps: Array
    members: tuple[Floats, ...]
    ready: bool
    seen: Array
    shift: Array
    phase: int


class Part:
    """What is remembered of one number: memory, table and annex of `correction.Intervals`."""

    __slots__ = ("annex", "memory", "table")

    def __init__(self, memory: Floats, table: list[float], annex: list[float]) -> None:
        self.memory, self.table, self.annex = memory, table, annex

    def based(self, stage: "_Stage", row: Floats, waiting: float) -> list[float]:
        """The base of a row."""
        base = [0.0] * stage.size
        self.memory = rules.predict(
            stage.params, self.memory, self.table, self.annex, row, waiting, base
        )
        return base

    def taught(self, stage: "_Stage", base: Sequence[float], y: float) -> None:
        """Learns from a label."""
        self.memory = rules.learn(stage.params, self.memory, self.table, self.annex, base, y)
        if stage.annex and self.memory[0] > 0.0 and not self.annex:
            self.annex = [0.0] * stage.annex


class _Stage(NamedTuple):
    """The numbers of one kind of part."""

    params: Floats
    size: int
    annex: int
    first: tuple[Floats, list[float]]

    @classmethod
    def of(cls, part: Intervals, support: tuple[float, float]) -> "_Stage":
        return cls((*part.params, *support), part.base, part.annex, part.init())

    def part(self) -> Part:
        """What is remembered at the beginning."""
        memory, table = self.first
        return Part(memory, list(table), [0.0] * self.annex if memory[0] > 0.0 else [])


class Learning:
    """What is remembered of paths: of each step, of log M and the numbers, and of all steps.

    `memories`, `tables` and `annexes` have a row for each step, as `correction.Intervals` keeps
    them; `parts` has the same of log M and of each number. `sums` has for each step the products
    of what the regression looked at, with each other and with the error; `means`, `sizes` and
    `labels` are those of each step's errors, `season` the mean error of each phase in sizes of its
    step. `newest` is the last error beyond the mean of its step, and its mean.
    """

    __slots__ = (
        "annexes", "labels", "means", "memories", "newest", "parts", "season", "sizes", "sums",
        "tables",
    )  # fmt: skip

    def __init__(
        self, horizon: int, step: "_Stage", others: Sequence["_Stage"], season: int
    ) -> None:
        memory, table = step.first
        self.memories = np.tile(np.array(memory), (horizon, 1))
        self.tables = np.tile(np.array(table), (horizon, 1))
        self.annexes = np.zeros((horizon, step.annex))
        self.parts = [stage.part() for stage in others]
        self.sums = np.zeros((horizon, 5, 4))
        self.means, self.sizes, self.labels = (np.zeros(horizon) for _ in range(3))
        self.season, self.newest = np.zeros(season), np.zeros(2)

    def copy(self) -> "Learning":
        """One that shares nothing with this one."""
        twin = Learning.__new__(Learning)
        twin.parts = [Part(part.memory, list(part.table), list(part.annex)) for part in self.parts]
        for name in _ARRAYS:
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def content(self) -> dict[str, Any]:
        """Everything as arrays, sharing nothing."""
        parts = {
            f"{name}{place}": np.array(getattr(part, name))
            for place, part in enumerate(self.parts)
            for name in Part.__slots__
            if name != "annex" or part.annex
        }
        return {name: getattr(self, name).copy() for name in _ARRAYS} | parts

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Learning):
            return NotImplemented
        mine, its = self.content(), other.content()
        return mine.keys() == its.keys() and all(np.array_equal(mine[n], its[n]) for n in mine)

    __hash__ = None  # type: ignore[assignment]

    def restore(self, content: Any, room: Sequence[int]) -> "Learning":
        """Takes over what was saved; `room` is how long the annex of each part is, once it is."""
        if not isinstance(content, Mapping):
            raise StateError("the state has nothing that paths could go on from")
        wanted, given = self.content(), dict(content)
        for place, part in enumerate(self.parts):
            wanted.pop(f"annex{place}", None)
            annex = np.asarray(given.pop(f"annex{place}", ()), np.float64)
            if annex.shape not in ((0,), (room[place],)) or not np.isfinite(annex).all():
                raise StateError("the tables of seasons in a state of paths have another size")
            part.annex = annex.tolist()
        if given.keys() != wanted.keys() or any(
            np.shape(given[name]) != wanted[name].shape or not np.isfinite(given[name]).all()
            for name in wanted
        ):
            raise StateError("a state of paths must have the finite numbers that its rules ask")
        for name in _ARRAYS:
            setattr(self, name, np.array(given[name], np.float64))
        for place, part in enumerate(self.parts):
            part.memory = tuple(given[f"memory{place}"].tolist())
            part.table = given[f"table{place}"].tolist()
        return self


_ARRAYS = tuple(name for name in Learning.__slots__ if name != "parts")


def _loops(stamp: str) -> tuple[Any, Any]:
    """The rules for every step of a path, as closures over what says which rules these are."""

    def ask(
        params: Floats, memories: Any, tables: Any, annexes: Any, rows: Any, ahead: Any, bases: Any
    ) -> None:
        """The base of each step."""
        stamp  # noqa: B018
        for h in range(len(memories)):
            memory = rules.predict(
                params, _held(memories[h]), tables[h], annexes[h], rows[h], ahead[h], bases[h]
            )
            _put(memories[h], memory)

    def tell(
        params: Floats, memories: Any, tables: Any, annexes: Any, bases: Any, steps: Any,
        values: Any,
    ) -> None:  # fmt: skip
        """Lets some steps learn from their labels."""
        stamp  # noqa: B018
        for i in range(len(steps)):
            h = steps[i]
            memory = rules.learn(
                params, _held(memories[h]), tables[h], annexes[h], bases[h], values[i]
            )
            _put(memories[h], memory)

    return ask, tell


def _held(row: Any) -> Any:
    """The numbers of a memory, which machine code wants named."""
    return (
        row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8], row[9], row[10],
        row[11], row[12], row[13], row[14], row[15], row[16], row[17], row[18], row[19], row[20],
        row[21], row[22], row[23], row[24],
    )  # fmt: skip


def _put(row: Any, memory: Floats) -> None:
    for place in range(len(memory)):
        row[place] = memory[place]


def _plainly(loop: Any) -> Any:
    """A loop over views of Python's own numbers, which are faster than numpy's."""

    def run(params: Floats, *arrays: Any) -> None:
        with np.errstate(all="ignore"):
            views = ([memoryview(row) for row in a] if a.ndim > 1 else a.tolist() for a in arrays)
            loop(params, *views)

    return run


_PLAIN = compiled.Fast(*map(_plainly, _loops("")))


def _now(stage: "_Stage", labels: int = 0) -> compiled.Fast:
    """Both loops, as machine code once a process has learnt from many labels."""

    def make() -> compiled.Fast:
        compiled.callable_by_machine_code(_held, _put)
        fast = compiled.machine_code(*_loops(compiled.digest()))
        memory, table = stage.first
        own = np.array([memory]), np.array([table]), np.zeros((1, stage.annex))
        bases, one = np.zeros((1, stage.size)), np.zeros(1)
        fast.predict(stage.params, *own, np.zeros((1, 3)), one, bases)
        fast.learn(stage.params, *own, bases, np.zeros(1, int), one)
        return fast

    key = "paths", len(stage.params)
    return compiled.one_more(key, make, float(labels)) or _PLAIN


class _Rules(NamedTuple):
    """What the rules ask of a correction and its family, looked up once."""

    family: Family
    every: int
    stage: _Stage
    members: tuple[tuple[_Stage, Functional | None], ...]
    shares: bool
    season: int
    pool: Array
    near: Array


def predict(
    made: _Rules, memory: Floats, table: Learning, reading: tuple[Any, ...], waiting: float
) -> tuple[Floats, tuple[Any, ...]]:
    """The base of a path: of every step, of log M, and of every total, maximum and minimum."""
    lower, upper, phase = reading
    family, every = made.family, made.every
    horizon = family.horizon
    place = memory[0] if phase != phase else phase
    row = float(place // every)
    late = (horizon - 1) // every
    seen, shift = np.zeros((0, 4)), np.zeros(0)
    given = lower, upper
    if made.shares:
        seen, shift, size = _expected(made, table, int(place))
        middle = 0.5 * (np.array(lower) + np.array(upper)) + shift
        given = (middle - _WIDE * size).tolist(), (middle + _WIDE * size).tolist()
    steps, rows = np.zeros((horizon, made.stage.size)), np.empty((horizon, 3))
    rows[:, 0], rows[:, 1], rows[:, 2] = given[0], given[1], row
    others = np.maximum(0.0, waiting - late + np.arange(horizon) // every)
    ask = _now(made.stage).predict
    ask(made.stage.params, table.memories, table.tables, table.annexes, rows, others, steps)
    ready = bool(np.isfinite(steps[:, 1:3]).all())
    ends = _ends(steps[:, :7]) if ready else (lower, upper)
    bases = []
    for part, (stage, functional) in zip(table.parts, made.members, strict=True):
        number, ahead = (0.0, 0.0, row), waiting
        if functional is not None:
            ahead = max(0.0, waiting - late + (functional.steps - 1) // every)
            number = functional.of(ends[0]), functional.of(ends[1]), row
        bases.append(tuple(part.based(stage, number, ahead)))
    base = Base(steps, tuple(bases), ready, seen, shift, int(place))
    return (place + every,), tuple(base)


def learn(
    made: _Rules, memory: Floats, table: Learning, base: tuple[Any, ...], heard: Any
) -> Floats:
    """What is remembered after labels of some steps; `heard` is `sets.paths.Heard`."""
    known = Base(*base)
    values = heard.values
    steps = [h for h in heard.new if values[h] == values[h]]
    if made.shares:
        for h in steps:
            _share(table, known, h, values[h])
    if steps:
        labels = np.array([values[h] for h in steps])
        _now(made.stage, len(steps)).learn(
            made.stage.params, table.memories, table.tables, table.annexes, known.steps,
            np.array(steps), labels,
        )  # fmt: skip
    far = nan
    if known.ready and heard.complete:
        far = min(max(worst(known.steps[:, :7].tolist(), values), -FAR), FAR)
    for part, base_, (stage, functional) in zip(
        table.parts, known.members, made.members, strict=True
    ):
        number = far
        if functional is not None:
            number = functional.of(values) if heard.ends(functional.steps) else nan
        if number == number:
            part.taught(stage, base_, number)
    return memory


def _expected(made: _Rules, table: Learning, place: int) -> tuple[Array, Array, Array]:
    """What the regression looks at, the error it expects and the size of the rest, by step."""
    horizon = made.family.horizon
    seen = np.zeros((horizon, 4))
    seen[:, 0], seen[:, 1], seen[:, 2] = table.means, table.newest[0], table.newest[1]
    if len(table.season):
        phases = (place + np.arange(horizon)) % len(table.season)
        seen[:, 3] = table.season[phases] * table.sizes
    heard = made.near * (table.labels > 0.0)
    total = heard.sum(1)
    size = np.divide(heard @ table.sizes, total, out=np.zeros(horizon), where=total > 0.0)
    shift, some = np.zeros(horizon), size > 0.0
    if some.any():
        sums = (made.pool @ table.sums.reshape(horizon, 20)).reshape(horizon, 5, 4)[some]
        sums = sums / (size[some] ** 2)[:, None, None]
        with np.errstate(all="ignore"):
            weights = _solved(sums[:, :4] + _RIDGE * np.eye(4), sums[:, 4])
            moved = (weights * seen[some]).sum(1)
        shift[some] = np.where(np.abs(moved) < 1e150, moved, 0.0)
    return seen, shift, size


def _solved(products: Array, errors: Array) -> Array:
    """The weights of a ridge regression of each step; none where it is lost to rounding."""
    try:
        return np.asarray(np.linalg.solve(products, errors[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        return np.zeros_like(errors)


def _share(table: Learning, known: Base, h: int, y: float) -> None:
    """What the steps share, after a label of one of them."""
    base = known.steps[h]
    shift, seen = float(known.shift[h]), known.seen[h]
    error = y - float(base[7]) + shift  # the middle that the step was given is corrected already
    if not -1e150 < error < 1e150:
        return
    table.labels[h] += 1.0
    first = 1.0 / table.labels[h]
    rest, size = error - shift, table.sizes[h]
    if size > 0.0:
        rest = min(max(rest, -_WILD * size), _WILD * size)
        error = shift + rest
    rate = max(_STEPWISE, first)
    table.sums[h, :4] += rate * (np.outer(seen, seen) - table.sums[h, :4])
    table.sums[h, 4] += rate * (seen * error - table.sums[h, 4])
    table.sizes[h] += max(_SIZE, first) * (abs(rest) - size)
    table.newest[0] = error - table.means[h]
    table.newest[1] += _LATELY * (table.newest[0] - table.newest[1])
    if len(table.season) and table.sizes[h] > 0.0:
        phase = (known.phase + h) % len(table.season)
        told = min(max(error / table.sizes[h], -4.0), 4.0)
        table.season[phase] += _SEASON * (told - table.season[phase])
    table.means[h] += max(_MEAN, 1.0 / (table.labels[h] + 1.0)) * (error - table.means[h])


def _ends(steps: Array) -> tuple[list[float], list[float]]:
    """The ends of each step at the account's rest, cut where labels end."""
    lower, upper, cut = steps[:, 0] - steps[:, 1], steps[:, 0] + steps[:, 2], steps[:, 5]
    lower = np.where((cut == 1.0) | (cut == 3.0), np.maximum(lower, steps[:, 3]), lower)
    upper = np.where(cut > 1.0, np.minimum(upper, steps[:, 4]), upper)
    return lower.tolist(), upper.tolist()


@dataclass(frozen=True, slots=True)
class Paths:
    """What past errors teach of a path of forecasts, for `sets.Paths`.

    It needs no past data and has no unit. A stream keeps about a hundred numbers for each step.

    Parameters
    ----------
    level
        The share of paths, and of each total, maximum and minimum, that may be missed at λ = 0;
        where the family has several levels, that of the steps that they share.
    every
        How many steps pass from one origin to the next; by default the horizon, and then paths
        follow each other. Where they do not overlap, the steps share what they learn.
    period
        A season in steps that is longer than a path, 168 for hours of a week; 0 is none. By default
        it is seven paths. Only steps that share what they learn have it.
    """

    level: float = 0.1
    every: int | None = None
    period: int | None = None

    gives = ("steps", "members")

    def __post_init__(self) -> None:
        level = positive(self.level, "Paths.level")
        if level >= 0.5:
            raise InputError(f"Paths.level must lie between 0 and 0.5, got {level}")
        object.__setattr__(self, "level", level)
        if self.every is not None:
            object.__setattr__(self, "every", whole(self.every, "Paths.every", 1))
        if self.period is not None:
            period = whole(self.period, "Paths.period", 0)
            if period == 1 or period > _LONGEST:
                raise InputError(f"Paths.period must be 0 or 2 to {_LONGEST:,}, got {period}")
            object.__setattr__(self, "period", period)

    @property
    def params(self) -> Floats:
        """Its options as numbers, −1 for those that are left to it."""
        given = (self.every, self.period)
        return (self.level, *(-1.0 if option is None else float(option) for option in given))

    def rules(self, sets: Any) -> tuple[Any, Any]:
        """`predict` and `learn` for the paths of a family."""
        made = _made(self, sets)
        return partial(predict, made), partial(learn, made)

    def init(self) -> Floats:
        """The place of the first path in time, in steps."""
        return (0.0,)

    def given(self, base: tuple[Any, ...]) -> tuple[Any, Any, float]:
        """The forecasts as they were read, as far as a price needs them: each step's middle."""
        known = Base(*base)
        middle = known.steps[:, 7]
        middle = middle - known.shift if len(known.shift) else middle
        return middle, middle, nan

    def kept(self, sets: Any, content: Any = None) -> Learning:
        """What is remembered: nothing yet, or what was saved."""
        made = _made(self, sets)
        others = [stage for stage, _ in made.members]
        learning = Learning(sets.horizon, made.stage, others, made.season)
        return learning if content is None else learning.restore(content, [s.annex for s in others])


@lru_cache(maxsize=64)
def _made(part: Paths, sets: Family) -> _Rules:
    horizon, level = sets.horizon, part.level
    every = horizon if part.every is None else part.every
    shares = every >= horizon
    apart = np.arange(horizon)[:, None] - np.arange(horizon)
    kernels = [np.exp(-0.5 * (apart / width) ** 2) for width in (_SHARED, _NEAR)]
    pool, near = (k / k.sum(1, keepdims=True) for k in kernels)
    season = 7 * horizon if part.period is None else part.period
    members: list[tuple[_Stage, Functional | None]] = []
    for tail in [round(1.0 - own, 12) for own in sets.coverage] or [level]:
        path = Intervals(min(2.0 * tail, _CALM), period=0, learns_support=False)
        members.append((_Stage.of(path, (-inf, inf)), None))
        members += [(_Stage.of(Intervals(tail), f.support(sets.support)), f)
                    for f in sets.functionals]  # fmt: skip
    return _Rules(
        sets, every, _Stage.of(Intervals(level, period=0), sets.support), tuple(members), shares,
        season if shares else 0, np.where(pool > 1e-4, pool, 0.0),
        np.where(near > 1e-4, near, 0.0),
    )  # fmt: skip


_LONGEST = 1_000_000
_CALM = 0.98
"""The largest level of log M, of which only the upper end is used: about its median."""
