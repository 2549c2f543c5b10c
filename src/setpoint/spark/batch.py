"""A batch of rows on its way through a bucket: what becomes of each, and in which order."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint.bulk.compile import loops
from setpoint.bulk.groups import NO_GROUPS, Active, check_risks
from setpoint.bulk.labels import (
    LabelSets,
    check_places,
    critical_values,
    names_in,
    probabilities,
    unknown,
)
from setpoint.bulk.layout import EVERY_ROW, OPEN, Annexes, layout_of, params_of
from setpoint.bulk.replay import check_bases, check_promises, joint
from setpoint.bulk.states import first_unsound, refusal, rows_of
from setpoint.bulk.trace import ends_of
from setpoint.bulk.watching import costs_of, given, look
from setpoint.controller import Controller
from setpoint.errors import InputError, LabelError, PredictionError
from setpoint.plan import TWO_SIDED, plan
from setpoint.receipts import checked_groups
from setpoint.sets.family import Arranges, Codes
from setpoint.spark.buckets import (
    NAME,
    Bucket,
    Grouped,
    Ids,
    Receipts,
    joined,
    matches,
    taken,
)
from setpoint.state import COUNTS, flat

if TYPE_CHECKING:
    from setpoint.spark.work import Work

Array = np.ndarray[Any, Any]

STATUSES = ("shown", "answered", "early", "late", "duplicate", "expired", "unknown")
"""What became of a row, in the order of the numbers that stand for it.

A prediction is shown. A label answers a prediction, or is early and waits for one. What is late, a
duplicate, expired or unknown changed nothing.
"""
_SHOWN, _ANSWERED, _EARLY, _LATE, _DUPLICATE, _EXPIRED, _UNKNOWN = range(len(STATUSES))

_GIVEN_UP, _MISSING = (1 + COUNTS.index(name) for name in ("expired", "missing"))
_LABEL, _ASK, _DROP = range(3)  # the order of events at one time
NEVER = int(np.iinfo(np.int64).min)
"""The time of the last prediction of a key that had none."""


class Batch:
    """A batch of rows on its way through a bucket."""

    def __init__(self, work: "Work", bucket: Bucket, columns: Mapping[str, Any]) -> None:
        self.work, self.bucket, self.layout = work, bucket, work.layout
        self.time = np.asarray(columns["time"], np.int64)
        self.y = np.asarray(columns["y"], np.float64)
        form = form_of(work.controller, columns)
        read = [np.asarray(columns[name], np.float64) for name in form]
        self.columns: tuple[Array, ...] = tuple(read)
        reader = work.controller.reader
        known = reader.features if isinstance(reader, Codes) else ()
        if self.layout.classes is None and (form != reader.columns or known):
            self.columns = reader.arranged(form, read)
        self.given, self.named = columns.get("id"), columns.get("groups")
        count = len(self.time)
        ids = np.zeros(count) if self.given is None else np.asarray(self.given)
        self.id: Array = ids.astype(np.int64)
        if self.given is not None and work.expire is None:
            raise InputError("where rows have ids, expire must say how long a prediction waits")
        if self.given is None and work.late == "accept":
            raise InputError("late='accept' needs ids: without them an old row may count twice")
        self.asks = np.ones(count, bool)
        if self.given is not None:
            ends = [column for name, column in zip(form, read, strict=True) if name not in known]
            self.asks = ~np.logical_and.reduce([np.isnan(column) for column in ends])
        self.labelled = ~unknown(self.y)
        self._check(columns["key"])
        self.place = self._places(columns["key"])

    def _check(self, keys: Any) -> None:
        """Raises the error of the first row that no stream could take."""
        layout, controller = self.layout, self.work.controller
        asking = tuple(column[self.asks] for column in self.columns)
        if layout.classes is not None:
            asked = np.flatnonzero(self.asks)
            p = probabilities(controller, asking, lambda row: f"key {keys[asked[row]]}")
            self.columns = tuple(column.copy() for column in self.columns)
            for column, read in zip(self.columns, p.T, strict=True):
                column[asked] = read
            check_places(controller, self.y, lambda row: f"key {keys[row]}")
            return
        wrong = first_unsound(layout, rows_of(asking))
        if wrong is not None:
            row = int(np.flatnonzero(self.asks)[wrong])
            raise PredictionError(f"key {keys[row]}: {refusal(controller, asking, wrong)}")
        low, high = controller.sets.support  # type: ignore[attr-defined]
        bad = np.isinf(self.y) | (self.y < low) | (self.y > high)
        if bad.any():
            row = int(bad.argmax())
            raise LabelError(
                f"key {keys[row]}: a label must be finite and lie in [{low}, {high}], "
                f"got {self.y[row]}"
            )

    def _places(self, keys: Any) -> Array:
        """The place of each row's key in the bucket; new keys get one, at the end."""
        import pandas as pd

        old, work = self.bucket, self.work
        column = np.asarray(keys)
        column = column.astype(np.int64 if column.dtype.kind in "iu" else object, copy=False)
        stored = old.keys if len(old.keys) else old.keys.astype(column.dtype)
        if stored.dtype != column.dtype:
            raise InputError(
                f"the keys of the state are {_kind(stored)}, got {_kind(column)}: {column[0]!r}"
            )
        codes, uniques = pd.factorize(column)
        found = pd.Index(stored).get_indexer(pd.Index(uniques))
        if work.idle is not None:
            first = np.full(len(uniques), np.iinfo(np.int64).max)
            np.minimum.at(first, codes, self.time)
            known, last = found >= 0, old.last[found] if len(old.last) else found
            known &= (last == NEVER) | (last >= first - work.idle)
            gone = np.setdiff1d(found[found >= 0], found[known])
            found[~known] = -1
            self.bucket = old = old.without(gone)
            stored = old.keys if len(old.keys) else old.keys.astype(column.dtype)
            found[known] = pd.Index(stored).get_indexer(pd.Index(uniques[known]))
        new = found < 0
        found[new] = len(old.keys) + np.arange(new.sum())
        self.keys, self.vectors, self.annexes = stored, old.vectors, old.annexes
        if new.any():
            begun = Annexes(int(new.sum()), work.layout.annex)
            begun.begin(work.layout.born(np.repeat(work.begin, new.sum(), axis=0)))
            self.annexes = old.annexes.joined(begun)
            self.keys = np.concatenate([stored, uniques[new]])
            self.vectors = np.vstack([old.vectors, np.repeat(work.begin, new.sum(), axis=0)])
        self.last = np.append(old.last, np.full(new.sum(), NEVER))
        self.clock = max([old.clock, *([int(self.time.max())] if len(self.time) else [])])
        places: Array = found[codes]
        return places

    # Which rows count

    def sort_out(self) -> None:
        """Decides what becomes of each row, and in which order the events run."""
        work, old, waiting = self.work, self.bucket, self.bucket.waiting
        count, held = len(self.time), len(waiting.id)
        self.status = np.full(count, _SHOWN, np.int8)
        order = np.lexsort((self.id, self.time, self.place))
        if self._doubled(order):  # a batch that runs again must choose the same row
            told = (*self.columns, *np.atleast_2d(self.y.T), self.id, self.time, self.place)
            if self.named is not None:
                told = np.unique(np.asarray(self.named), return_inverse=True)[1], *told
            order = np.lexsort(told)
        asking = order[self.asks[order]]
        self._refuse(asking)
        asking = asking[self.status[asking] == _SHOWN]
        self.slot = np.full(count, -1)
        self.slot[asking] = held + np.arange(len(asking))
        made = np.concatenate([waiting.time, self.time[asking]])
        owner = np.concatenate([waiting.place, self.place[asking]])
        self.owner, self.made = owner, made
        self.slot_id = np.concatenate([waiting.id, self.id[asking]])
        # A label that comes with its prediction runs right after it.
        direct = asking if self.given is None else asking[self.labelled[asking]]
        slots, labels = [self.slot[direct]], [self.y[direct]]
        times, ranks, rows = [self.time[direct]], [np.full(len(direct), _ASK)], [direct]
        self.open = np.ones(len(owner), bool)
        self.open[slots[0]] = False
        self.early_left = np.zeros(0, bool)
        if self.given is not None:
            found = matches(owner, self.slot_id, old.early.place, old.early.id)
            self.early_left = found < 0
            answers = np.flatnonzero(found >= 0)
            answers = answers[self.open[found[answers]]]
            in_time = old.early.time[answers] - made[found[answers]] <= (work.expire or 0)
            answers = answers[in_time]
            came_first = found[answers]
            self.open[came_first] = False
            alone, here = self._answers(order)
            self.open[here] = False
            self.slot[alone] = here
            for slot, known, y, row in (
                (came_first, old.early.time[answers], old.early.y[answers],
                 asking[came_first - held]),
                (here, self.time[alone], self.y[alone], alone),
            ):  # fmt: skip
                slots.append(slot)
                labels.append(y)
                times.append(np.maximum(known, made[slot]))
                ranks.append(np.where((known <= made[slot]) & (slot >= held), _ASK, _LABEL))
                rows.append(row)
        # What waited too long is given up at its time, if its key has a later event.
        drops = np.empty(0, np.int64)
        if work.expire is not None:
            ends = np.full(len(self.keys), NEVER)
            np.maximum.at(ends, self.place, self.time)
            late = self.open & (made + work.expire < ends[owner])
            drops = np.flatnonzero(late)
            slots.append(drops)
            labels.append(np.full((len(drops), *work.labels), np.nan))
            times.append(made[drops] + work.expire)
            ranks.append(np.full(len(drops), _DROP))
            rows.append(np.full(len(drops), -1))
        self._order(asking, slots, labels, times, ranks, rows)
        self.open[drops] = False
        self.dropped = drops

    def _doubled(self, order: Array) -> bool:
        """Whether some rows tell of the same key, time and id."""
        names = [self.place, self.time] if self.given is None else [self.place, self.time, self.id]
        again = [np.diff(name[order]) == 0 for name in names]
        return bool(np.logical_and.reduce(again).any())

    def _refuse(self, asking: Array) -> None:
        """Marks the predictions that are late, or came before."""
        last = self.last[self.place[asking]]
        time, status = self.time[asking], np.full(len(asking), _SHOWN, np.int8)
        if self.work.late == "refuse":
            status[time < last] = _LATE
        if self.given is None:
            again = np.zeros(len(asking), bool)
            again[1:] = (np.diff(time) == 0) & (np.diff(self.place[asking]) == 0)
            again |= time == last
        else:
            place, id, old = self.place[asking], self.id[asking], self.bucket
            known = np.concatenate([old.waiting.place, old.closed.place])
            known_id = np.concatenate([old.waiting.id, old.closed.id])
            again = matches(known, known_id, place, id) >= 0
            again |= matches(place, id, place, id) != np.arange(len(asking))
        status[again] = _DUPLICATE
        self.status[asking] = status

    def _answers(self, order: Array) -> tuple[Array, Array]:
        """The labels that came apart and are first to answer a slot, and these slots."""
        old, work = self.bucket, self.work
        alone = order[~self.asks[order]]
        place, id = self.place[alone], self.id[alone]
        slot = matches(self.owner, self.slot_id, place, id)
        found = np.maximum(slot, 0)
        status = np.full(len(alone), _ANSWERED, np.int8)
        if len(self.owner):
            too_late = self.time[alone] - self.made[found] > (work.expire or 0)
            status[too_late] = _EXPIRED
            first = matches(place[~too_late], id[~too_late], place, id)
            first = np.flatnonzero(~too_late)[np.maximum(first, 0)] if (~too_late).any() else first
            again = ~self.open[found] | (first != np.arange(len(alone)))
            status[~too_late & again] = _DUPLICATE
        unseen = slot < 0
        closed = matches(old.closed.place, old.closed.id, place, id)
        before = matches(old.early.place, old.early.id, place, id) >= 0
        before |= matches(place, id, place, id) != np.arange(len(alone))
        status[unseen] = np.where(before[unseen], _DUPLICATE, _EARLY)
        over = np.flatnonzero(unseen & (closed >= 0))
        ended = taken(old.closed, closed[over])
        too_late = (ended.y > 0) | (self.time[alone[over]] - ended.time > (work.expire or 0))
        status[over] = np.where(too_late, _EXPIRED, _DUPLICATE)
        status[unseen & ~self.labelled[alone]] = _UNKNOWN
        self.status[alone] = status
        answers = status == _ANSWERED
        return alone[answers], slot[answers]

    def _order(self, asking: Array, *answers: list[Array]) -> None:
        """Puts predictions, labels and what is given up in the order in which they run."""
        slot, y, time, rank, row = (np.concatenate(parts) for parts in answers)
        mine = self.slot[asking]
        slots = np.concatenate([mine, slot])
        asks = np.arange(len(slots)) < len(mine)
        times = np.concatenate([self.time[asking], time])
        ranks = np.concatenate([np.full(len(mine), _ASK), rank])
        order = np.lexsort((~asks, slots, ranks, times, self.owner[slots]))
        self.asked, self.slots = asks[order], slots[order]
        blank = np.full((len(mine), *self.work.labels), np.nan)
        self.labels = np.concatenate([blank, y])[order]
        self.rows = np.concatenate([asking, row])[order]

    # The recursion

    def run(self) -> None:
        """Runs the events."""
        work, layout, waiting = self.work, self.layout, self.bucket.waiting
        held, count, risks = len(waiting.id), len(self.owner), len(self.layout.risks)
        new = count - held
        blank = np.empty((layout.rules.members, new))
        self.lower, self.upper, self.lam = (
            np.hstack([old.T, blank]) for old in (waiting.lower, waiting.upper, waiting.lam)
        )
        self.leader = np.append(waiting.leader, np.zeros(new, np.int64))
        self.habit = np.vstack([waiting.habit, np.zeros((new, risks))])
        self.reading = np.vstack([waiting.reading, np.empty((new, layout.family))])
        self.base = np.vstack([waiting.base, np.empty((new, layout.base))])
        y = np.full((count, *work.labels), np.nan)
        y[self.slots[~self.asked]] = self.labels[~self.asked]
        rows = np.zeros((count, layout.columns))
        asked = self.slots[self.asked]
        for place, column in enumerate(self.columns):
            rows[asked, place] = column[self.rows[self.asked]]
        # Events lie by key; those of a key are a run of their own.
        owners, events = self.owner[self.slots], np.where(self.asked, self.slots, ~self.slots)
        begins = np.flatnonzero(np.append(True, np.diff(owners) != 0)[: len(owners)])
        bounds, streams = np.append(begins, len(owners)), owners[begins]
        params, stage = params_of(work.controller)
        run, vectors = loops(layout, len(events)), np.ascontiguousarray(self.vectors)
        opened = vectors[streams, OPEN]
        if layout.base:
            annexes = self.annexes
            annexes.room(len(streams))
            run.correct(
                stage, vectors, streams, bounds, events, rows, y, self.base, EVERY_ROW,
                self.reading, annexes.pool, annexes.slots, annexes.used,
            )  # fmt: skip
            check_bases(self.reading[asked])
        else:
            sets: Any = work.controller.sets
            fresh = rows[asked]
            self.reading[asked] = fresh if layout.classes is None else sets.by_class(fresh)
        labels = y
        if layout.classes is not None:
            y = critical_values(work.controller, self.reading, y)
        losses = np.full((risks, count), np.nan)
        self._name_groups()
        active = NO_GROUPS
        if self.which.size:
            active = Active.of(work.controller, self.groups.risks, self._rows_of_groups())
            active = active._replace(habits=self.group_habit.reshape(-1, risks))
        run.run(
            params, vectors, streams, bounds, events, self.reading, y, False, self.lower,
            self.upper, self.lam, self.leader, self.habit, np.empty((risks, count)), losses,
            *active,
        )  # fmt: skip
        check_risks(work.controller, self.groups.risks)
        if layout.watch:
            ends, values = joint(layout, self.lower, self.upper), None
            if layout.classes is not None:
                values = self.reading
            model = given(work.controller, layout, self.reading, self.base)
            costs = costs_of(work.controller, ends, self.lam[-1], values, model, labels)
            look(vectors, layout.watch_at, streams, bounds, events, opened, costs)
        self.vectors = vectors
        if len(self.dropped):  # given up is not the same as missing
            gone = np.bincount(self.owner[self.dropped], minlength=len(self.keys))
            vectors[:, _MISSING] -= gone
            vectors[:, _GIVEN_UP] += gone
        check_promises(work.controller, losses, self.lam, vectors)
        self.losses = losses[:, self.slots]

    def _name_groups(self) -> None:
        """The groups of what waits and of what is asked; new ones begin behind their key's."""
        held, waiting, known = len(self.bucket.waiting.id), self.bucket.waiting, self.bucket.groups
        new, width, risks = len(self.owner) - held, self.work.groups, len(self.layout.risks)
        self.which = np.vstack([waiting.which, np.full((new, width), -1)])
        self.group_habit = np.concatenate([waiting.group_habit, np.zeros((new, width, risks))])
        self.groups = known._replace(risks=known.risks.copy())
        if self.named is None or not width:
            return
        ordinal: dict[tuple[int, bytes], int] = {}
        counts: dict[int, int] = {}
        for pair in zip(known.place.tolist(), known.name.tolist(), strict=True):
            ordinal[pair] = counts.get(pair[0], 0)
            counts[pair[0]] = ordinal[pair] + 1
        read: dict[Any, list[bytes]] = {}
        begun: list[tuple[int, bytes]] = []
        asked = zip(self.slots[self.asked].tolist(), self.rows[self.asked].tolist(), strict=True)
        for slot, row in asked:
            text, owner = self.named[row], int(self.owner[slot])
            if text not in read:
                read[text] = _group_names(text, width)
            for k, name in enumerate(read[text]):
                pair = owner, name
                if pair not in ordinal:
                    ordinal[pair] = counts.get(owner, 0)
                    counts[owner] = ordinal[pair] + 1
                    begun.append(pair)
                self.which[slot, k] = ordinal[pair]
        if begun:
            first = np.array([flat(plan(self.work.controller).groups.begun)])
            more = Grouped(
                np.array([place for place, _ in begun], np.int64),
                np.array([name for _, name in begun], known.name.dtype),
                np.repeat(first, len(begun), axis=0),
            )
            every = joined(self.groups, more)
            self.groups = taken(every, np.argsort(every.place, kind="stable"))

    def _rows_of_groups(self) -> Array:
        """The rows of the groups of each slot, −1 for none."""
        first = np.searchsorted(self.groups.place, self.owner)
        return np.where(self.which >= 0, first[:, None] + self.which, -1)

    # What is left

    def left(self) -> Bucket:
        """The bucket after the batch."""
        work, old = self.work, self.bucket
        shown = np.flatnonzero(self.asks & (self.status == _SHOWN))
        np.maximum.at(self.last, self.place[shown], self.time[shown])
        waits = self.open.copy()
        if work.expire is not None:
            gone = waits & (self.made + work.expire < self.clock)
            given_up = gone.astype(np.float64)
            given_up[self.dropped] = 1.0
            np.add.at(self.vectors[:, _GIVEN_UP], self.owner[gone], 1.0)
            self.layout.give_up(self.vectors, self.owner[gone], self.lam[:, gone])
            rows = self._rows_of_groups()[gone]
            self.layout.give_up_in(self.groups.risks, rows, self.lam[:, gone])
            waits &= ~gone
        receipts = Receipts(
            self.owner, self.slot_id, self.made, self.lower.T, self.upper.T, self.lam.T,
            self.leader, self.habit, self.reading, self.base, self.which, self.group_habit,
        )  # fmt: skip
        bucket = replace(
            old, keys=self.keys, vectors=self.vectors, annexes=self.annexes, last=self.last,
            clock=self.clock, waiting=taken(receipts, waits), groups=self.groups,
        )  # fmt: skip
        if self.given is not None and work.expire is not None:
            early = np.flatnonzero(self.status == _EARLY)
            labels = Ids(self.place[early], self.id[early], self.time[early], self.y[early])
            both = joined(taken(old.early, self.early_left), labels)
            bucket.early = taken(both, both.time + work.expire >= self.clock)
            over = np.flatnonzero(~waits)
            ended = Ids(self.owner[over], self.slot_id[over], self.made[over], given_up[over])
            both = joined(old.closed, ended)
            # What was given up is known for as long again, for the labels that come too late.
            until = np.where(both.y > 0, self.clock - work.expire, self.clock)
            known = (both.time >= self.last[both.place]) | (both.time + work.expire >= until)
            bucket.closed = taken(both, known)
        if work.idle is not None:
            bucket = bucket.without(
                np.flatnonzero((bucket.last != NEVER) & (bucket.last < self.clock - work.idle))
            )
        return bucket.without(self._strays(bucket))

    def _strays(self, bucket: Bucket) -> Array:
        """The keys that only labels made, none of which waits any more."""
        strays = np.setdiff1d(np.flatnonzero(bucket.last == NEVER), bucket.early.place)
        bits, begun = bucket.vectors[strays].view(np.int64), self.work.begin.view(np.int64)
        alone: Array = strays[(bits == begun).all(axis=1)]
        return alone

    def outputs(self) -> dict[str, Array]:
        """What became of each row: its set, and its loss where its label counted."""
        seen = self.slot >= 0
        losses = np.full((len(self.losses), len(self.time)), np.nan)
        mine = ~self.asked & (self.rows >= 0)
        losses[:, self.rows[mine]] = self.losses[:, mine]
        y = self.y.copy()  # with the labels that came before their predictions
        y[self.rows[mine]] = self.labels[mine]
        found: dict[str, Array] = {"lam": self.lam.max(axis=0)}
        made = self.time.copy()
        made[seen] = self.made[self.slot[seen]]
        told = {"loss": losses, "made": made, "status": self.status}
        if self.layout.classes is not None:
            sets = LabelSets(self.work.controller.sets, self.reading, found["lam"])
            kinds, which = np.unique(sets.mask, axis=0, return_inverse=True)
            texts = [
                json.dumps([n for n, is_in in zip(names, row, strict=True) if is_in])
                for names in [list(map(str, sets.classes))]
                for row in kinds.tolist()
            ]
            found |= {"size": sets.sizes, "labels": np.array(texts, object)[which.ravel()]}
            if self.work.labels:
                inside = np.zeros_like(y, bool)
                inside[seen] = sets.mask[self.slot[seen]]
                told["missed"] = ((y > 0.0) & ~inside).sum(axis=1).astype(np.float64)
                y = y.sum(axis=1)
        else:
            found["lower"], found["upper"] = joint(self.layout, self.lower, self.upper)
        for name, (member, side) in ends_of(self.work.controller).items():
            found[name] = (self.lower, self.upper)[side][member]
        outputs = {}
        for name, values in found.items():
            blank = None if values.dtype == object else np.nan
            outputs[name] = np.full(len(seen), blank, None if blank is None else np.float64)
            outputs[name][seen] = values[self.slot[seen]]
        return {**outputs, "y": y, **told}


def _group_names(text: Any, most: int) -> list[bytes]:
    """The names of groups in a list in JSON, as bytes."""
    return coded_names(checked_groups(json.loads(text)), most)


def coded_names(names: tuple[Any, ...], most: int) -> list[bytes]:
    if len(names) > most:
        raise InputError(f"a row may belong to {most} groups here, got {names}")
    coded = [str(name).encode() for name in names]
    for name in coded:
        if len(name) > NAME or not name or name.endswith(b"\0"):
            raise InputError(
                f"the name of a group may have 1 to {NAME} bytes, got {name.decode()!r}"
            )
    return coded


def form_of(controller: Controller, names: Iterable[str]) -> tuple[str, ...]:
    """The names among these in which the family takes predictions."""
    layout = layout_of(controller)  # says what is not scalar
    if plan(controller).at_once:
        raise InputError(TWO_SIDED)
    sets: Any = controller.reader
    known = set(names)
    if layout.classes is not None:
        if not layout.classes or names_in(sets) is None:
            raise InputError(
                "keyed streams of label sets need the names of their classes, as in "
                "label_sets(sets=sets.Threshold(classes=…))"
            )
        return tuple(map(str, names_in(sets) or ()))
    forms = sets.forms if isinstance(sets, Arranges) else (tuple(sets.columns),)
    for form in forms:
        if set(form) <= known:
            return tuple(form)
    wanted = " or ".join(", ".join(form) for form in forms)
    raise InputError(
        f"{type(sets).__name__} needs the columns {wanted}, got {', '.join(known) or 'none'}"
    )


def _kind(keys: Array) -> str:
    return "texts" if keys.dtype == object else "whole numbers"
