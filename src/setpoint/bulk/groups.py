"""The groups that rows belong to, and the risks of groups as rows of an array."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from setpoint._check import is_missing
from setpoint._state_file import check_columns
from setpoint.bulk.layout import group_params_of, layout_of
from setpoint.controller import Controller, given_up
from setpoint.errors import InputError, LossError, StateError
from setpoint.plan import MOST_GROUPS, plan
from setpoint.receipts import checked_groups
from setpoint.state import Id, flat, risks_like
from setpoint.tape import Tape
from setpoint.tape.columns import several

Array = np.ndarray[Any, Any]
By = str | Sequence[str] | Mapping[str, Any]
"""Where the groups of rows stand: columns by name, or the columns themselves."""


class Active(NamedTuple):
    """Groups as loops take them; all None where there are none.

    `risks` has a row for each group, `which` the groups of each row of predictions, −1 for none,
    `habits` a row for each place in `which`.
    """

    params: Array | None
    risks: Array | None
    which: Array | None
    habits: Array | None

    @classmethod
    def of(cls, controller: Controller, risks: Array, which: Array) -> "Active":
        """The groups of rows that were not asked yet."""
        habits = np.zeros((which.size, len(controller.risks)))
        return cls(group_params_of(controller), risks, which, habits)


NO_GROUPS = Active(None, None, None, None)
"""What loops take where no row belongs to a group."""


class Membership(NamedTuple):
    """The names of groups, and the places among them of those that each row belongs to, or −1.

    `codes` has a row for each of the most groups that a row of the tape may have.
    """

    names: list[Id]
    codes: Array

    def of(self, row: int) -> tuple[Id, ...]:
        """The groups of a row."""
        return tuple([self.names[code] for code in self.codes[:, row].tolist() if code >= 0])


def columns_by(tape: Tape, groups: By) -> Mapping[str, Any]:
    """The columns that say which groups the rows of a tape belong to."""
    if isinstance(groups, Mapping):
        return groups
    columns = {**tape.extras, **({} if tape.group is None else {"group": tape.group})}
    for name in (named := several(groups)):
        if name not in columns:
            there = ", ".join(map(str, columns)) or "none beside predictions and labels"
            raise InputError(f"the tape has no column {name!r} for groups; it has {there}")
    return {name: columns[name] for name in named}


def membership(controller: Controller, groups: Mapping[str, Any], count: int) -> Membership:
    """The groups of each row, from the columns that name them.

    A row with 8 in the column hour belongs to the group "hour=8", one with True in the column rain
    to the group "rain", one with a tuple to the groups that it names, and one with nothing to none.
    """
    plan(controller).groups.check()
    names: dict[Id, int] = {}
    parts, shared = [np.empty((0, count), np.int64)], False
    for column, values in groups.items():
        cells = _cells(column, values)
        if len(cells) != count:
            raise InputError(
                f"{column!r} must say of {count:,} rows which group they are in, it has "
                f"{len(cells):,}"
            )
        kinds, codes = _distinct(cells)
        known = {place: _names(column, kind) for place, kind in kinds.items()}
        width = max(map(len, known.values()), default=0)
        table, others = np.full((width, max(known, default=-1) + 1), -1, np.int64), len(names)
        for place, own in known.items():
            shared |= any(names.get(name, others) < others for name in own)
            table[: len(own), place] = [names.setdefault(name, len(names)) for name in own]
        parts.append(table.take(codes, axis=1))
    every = np.vstack(parts)
    if shared:
        ordered = np.sort(every, axis=0)
        again = ((ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)).any(axis=0)
        if again.any():
            row = int(again.argmax())
            raise InputError(f"row {row} belongs to a group twice: {', '.join(groups)} name it")
    return Membership(list(names), every)


def _cells(column: str, values: Any) -> Array:
    cells = values if isinstance(values, np.ndarray) else None
    if cells is None:
        listed = list(values)
        cells = np.empty(len(listed), object)
        cells[:] = listed
    if cells.ndim != 1:
        raise InputError(f"{column} must have one value a row, got shape {cells.shape}")
    return cells


def _distinct(cells: Array) -> tuple[dict[int, Any], Array]:
    """The different values of a column by code, and the code of each row."""
    if cells.dtype.kind in "bui" and len(cells):
        low, high = int(cells.min()), int(cells.max())
        if high - low <= 2 * len(cells) + 1000 and high < 1 << 62:
            codes = cells.astype(np.int64, copy=False) - low
            there = np.zeros(high - low + 1, bool)
            there[codes] = True
            places = np.flatnonzero(there)
            values = (places + low).astype(cells.dtype).tolist()
            return dict(zip(places.tolist(), values, strict=True)), codes
    if cells.dtype != object:
        kinds, codes = np.unique(cells, return_inverse=True)
        listed = kinds.tolist() if cells.dtype.kind != "M" else list(kinds)
        return dict(enumerate(listed)), codes.reshape(-1)
    found: dict[Any, int] = {}
    codes = np.empty(len(cells), np.int64)
    for row, cell in enumerate(cells.tolist()):
        if isinstance(cell, list | np.ndarray):
            cell = tuple(cell)
        elif not isinstance(cell, tuple | str) and is_missing(cell):
            cell = None
        # True is no 1 here, and 1 no 1.0.
        codes[row] = found.setdefault((type(cell), cell), len(found))
    return {code: cell for (_, cell), code in found.items()}, codes


def _names(column: str, cell: Any) -> tuple[Id, ...]:
    """The groups that a value in a column names."""
    if isinstance(cell, tuple):
        return checked_groups(cell)
    if isinstance(cell, bool | np.bool_):
        return (column,) if cell else ()
    if cell is None or (not isinstance(cell, str) and (is_missing(cell) or cell != cell)):
        return ()
    if cell == "":
        return ()
    whole = isinstance(cell, float | np.floating) and isfinite(cell) and cell == int(cell)
    return (f"{column}={int(cell) if whole else cell}",)


class Pairs(NamedTuple):
    """The groups of many streams: whose each is, its name, and its risks, one row for each.

    They lie stream after stream; `before` are the groups that streams began with.
    """

    stream: Array
    names: list[Id]
    risks: Array
    before: Mapping[int, Mapping[Id, Any]]

    @classmethod
    def named(
        cls, controller: Controller, held: Membership, offsets: Array,
        before: Mapping[int, Mapping[Id, Any]],
    ) -> tuple["Pairs", Array]:  # fmt: skip
        """The groups that rows of streams one after the other name; which of them, by row."""
        codes = held.codes
        streams, count = len(offsets) - 1, len(held.names) + 1  # one more for no group
        if streams == 1:  # each name is some row's
            which, known = np.ascontiguousarray(codes.T), np.arange(1, count)
            return cls._begun(controller, held.names, known, count, before), which
        keys = codes + 1 + count * np.repeat(np.arange(streams), np.diff(offsets))
        if streams * count <= 2 * keys.size + 1000:
            there = np.zeros((streams, count), bool)
            there.reshape(-1)[keys] = True
            there[:, 0] = False
            known, place = np.flatnonzero(there), np.cumsum(there) - 1
            place.reshape(streams, count)[:, 0] = -1
            which = np.ascontiguousarray(place[keys].T)
        else:
            active = codes >= 0
            known, places = np.unique(keys[active], return_inverse=True)
            which = np.full(codes.shape, -1, np.int64)
            which[active] = places.reshape(-1)
            which = np.ascontiguousarray(which.T)
        return cls._begun(controller, held.names, known, count, before), which

    @classmethod
    def _begun(
        cls, controller: Controller, every: list[Id], known: Array, count: int,
        before: Mapping[int, Mapping[Id, Any]],
    ) -> "Pairs":  # fmt: skip
        owner, code = known // count, known % count - 1
        if len(owner) and (most := int(np.bincount(owner).max())) > MOST_GROUPS:
            raise InputError(f"a stream holds at most {MOST_GROUPS:,} groups, got {most:,}")
        names = [every[place] for place in code.tolist()]
        risks = np.repeat([flat(plan(controller).groups.begun)], len(known), axis=0)
        for row, (own, name) in enumerate(zip(owner.tolist(), names, strict=True)):
            if name in before.get(own, ()):
                risks[row] = flat(before[own][name])
        return cls(owner, names, risks, before)

    def of(self, controller: Controller, stream: int) -> dict[Id, Any]:
        """The risks of the groups of a stream by name."""
        first, last = np.searchsorted(self.stream, [stream, stream + 1])
        begun, rows = plan(controller).groups.begun, self.risks[first:last].tolist()
        own = [risks_like(begun, row) for row in rows]
        return {
            **self.before.get(stream, {}),
            **dict(zip(self.names[first:last], own, strict=True)),
        }


class _Begun(NamedTuple):
    """Risks with those of groups that are named for the first time, and whose these are."""

    risks: Array
    new: dict[Id, dict[Id, int]]


class Named:
    """The groups of the streams of a fleet: their rows by stream and name, and their risks."""

    def __init__(self, controller: Controller) -> None:
        self.controller, self.rows = controller, dict[Id, dict[Id, int]]()
        self.risks = np.empty((0, len(layout_of(controller).group_fields)))

    def of(self, id: Id) -> dict[Id, Any]:
        """The risks of the groups of a stream by name."""
        begun, rows = plan(self.controller).groups.begun, self.rows.get(id, {})
        return {name: risks_like(begun, self.risks[row].tolist()) for name, row in rows.items()}

    def add(self, groups: Mapping[Id, Mapping[Id, Any]]) -> None:
        """Takes over the groups of new streams; nothing waits in them."""
        more: list[list[float]] = []
        for id, held in groups.items():
            if held:
                first = len(self.risks) + len(more)
                self.rows[id] = {name: first + k for k, name in enumerate(held)}
                more += [flat(given_up(self.controller, risks)) for risks in held.values()]
        if more:
            self.risks = np.vstack([self.risks, np.array(more)])

    def leave(self, gone: Sequence[Id]) -> tuple[Pairs | None, Array]:
        """The groups of streams that are taken out, and where the rows of the others are now."""
        keep = np.ones(len(self.risks) + 1, dtype=bool)  # the last is no group, −1
        held = {
            place: {name: given_up(self.controller, r) for name, r in self.of(id).items()}
            for place, id in enumerate(gone)
            if id in self.rows
        }
        for id in gone:
            keep[list(self.rows.pop(id, {}).values())] = False
        new = np.where(keep, np.cumsum(keep) - 1, -1)
        new[-1] = -1
        if held:
            self.risks = self.risks[keep[:-1]]
            for own in self.rows.values():
                own.update((name, int(new[row])) for name, row in own.items())
        return (Pairs(np.empty(0, np.int64), [], self.risks[:0], held) if held else None), new

    def named(
        self, ids: Sequence[Id], streams: Array, groups: Sequence[tuple[Id, ...]] | None
    ) -> tuple[Array, _Begun]:
        """The rows of the groups that each of some streams names, −1 for none."""
        if groups is None:
            return np.empty((len(streams), 0), np.int64), _Begun(self.risks, {})
        plan(self.controller).groups.check()
        which = np.full((len(streams), max(map(len, groups), default=0)), -1, np.int64)
        new: dict[Id, dict[Id, int]] = {}
        count = len(self.risks)
        for place, (stream, names) in enumerate(zip(streams.tolist(), groups, strict=True)):
            id = ids[stream]
            known = self.rows.get(id, {})
            for k, name in enumerate(names):
                at = known.get(name)
                if at is None:
                    at = new.setdefault(id, {})[name] = count
                    count += 1
                which[place, k] = at
            if len(known) + len(new.get(id, ())) > MOST_GROUPS:
                raise InputError(f"a stream holds at most {MOST_GROUPS:,} groups, {id!r} has more")
        begun = np.array([flat(plan(self.controller).groups.begun)])
        more = np.repeat(begun, count - len(self.risks), axis=0)
        return which, _Begun(np.vstack([self.risks, more]) if len(more) else self.risks, new)

    def adopt(self, begun: _Begun, touched: Array, moved: Array) -> None:
        """Takes over new groups, and the risks of those that moved."""
        self.risks = begun.risks
        self.risks[touched] = moved
        for id, rows in begun.new.items():
            self.rows.setdefault(id, {}).update(rows)

    def take(self, ids: Sequence[Id], held: Pairs) -> None:
        """Takes over the groups that a run moved; `ids` has the stream of each."""
        pairs = [(id, name) for id, name in zip(ids, held.names, strict=True)]
        count = len(self.risks)
        for id, name in pairs:
            own = self.rows.setdefault(id, {})
            if name not in own:
                own[name] = count
                count += 1
        self.risks = np.vstack(
            [self.risks, np.empty((count - len(self.risks), self.risks.shape[1]))]
        )
        self.risks[[self.rows[id][name] for id, name in pairs]] = held.risks

    def content(self) -> dict[str, Any]:
        """Everything as plain values."""
        rows = [(id, list(own), list(own.values())) for id, own in self.rows.items()]
        return {"groups": rows, "group_risks": self.risks}

    def restore(self, groups: Any, risks: Array, streams: Mapping[Id, int]) -> None:
        """Groups as they were saved, each with a row of its own."""
        check_columns(layout_of(self.controller).group_fields, risks.T, len(risks), "group")
        rows = sorted(row for _, _, own in groups for row in own)
        if rows != list(range(len(risks))) or any(id not in streams for id, _, _ in groups):
            raise StateError(
                f"{len(risks):,} groups must have a row each, of a stream of the fleet"
            )
        self.rows = {id: dict(zip(names, own, strict=True)) for id, names, own in groups}
        self.risks = np.array(risks, np.float64, order="C")

    def check(self, which: Array, habits: Array) -> None:
        """Raises where what waits is said to be in a group that is not there."""
        fits = which.ndim == 2 and which.dtype.kind == "i" and habits.dtype.kind == "f"
        fits = fits and habits.shape == (which.size, len(self.controller.risks))
        if not fits or (which.size and not -1 <= which.min() <= which.max() < len(self.risks)):
            raise StateError(f"what waits must be in {len(self.risks):,} groups, got {which!r}")


def in_time(
    controller: Controller, groups: Mapping[str, Any], shape: tuple[int, ...],
    before: Mapping[int, Mapping[Id, Any]],
) -> tuple[Pairs, Array]:  # fmt: skip
    """The groups that the rows of a time-major tape name; which of them, stream after stream."""
    turned = {}
    for name, values in groups.items():
        cells = np.asarray(values)
        if cells.shape != shape:
            raise InputError(f"{name!r} must have the shape of y, {shape}, got {cells.shape}")
        turned[name] = cells.T.ravel()
    steps, streams = shape
    held = membership(controller, turned, steps * streams)
    return Pairs.named(controller, held, np.arange(streams + 1) * steps, before)


def check_risks(controller: Controller, risks: Array) -> None:
    """Raises the error of a loss or a step rule that broke its promise in a group."""
    made, at = plan(controller), 0
    for promise, begun in zip(made.promises, made.groups.begun, strict=True):
        theta, judged, unjudged, total = (risks[:, at + place] for place in (0, 2, 3, 4))
        slack = 1e-6 * (1.0 + np.abs(total))
        low, high = promise.declared.low, promise.declared.high
        if unjudged.any():
            raise LossError(f"{promise.name} promises a number, got nan")
        if not np.isfinite(theta).all():
            bad = theta[~np.isfinite(theta)][0]
            raise InputError(f"the θ of {promise.step} must be finite, got {bad}")
        with np.errstate(invalid="ignore"):
            wrong = (judged > 0) & (
                (total < low * judged - slack) | (total > high * judged + slack)
            )
        if wrong.any():
            worst = int(wrong.argmax())
            raise LossError(
                f"{promise.name} promises a loss in [{low:g}, {high:g}], and those of a group, "
                f"{int(judged[worst]):,}, add up to {total[worst]:g}"
            )
        at += len(flat(begun))


def tuples_of(groups: Iterable[Any], count: int) -> list[tuple[Id, ...]]:
    """The groups of each stream of a call; None for a stream that is in none."""
    if isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
        raise InputError(
            f'groups must have a tuple for each stream, such as [("rain",), ()], got {groups!r}'
        )
    listed = [() if own is None else checked_groups(own) for own in groups]
    if len(listed) != count:
        raise InputError(
            f"groups must have a tuple for each of {count:,} streams, got {len(listed):,}"
        )
    return listed
