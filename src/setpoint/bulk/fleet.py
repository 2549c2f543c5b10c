"""Many streams at once: one controller, one array call for all of them.

Every stream has its own θ and its own certificate; they share the controller. Predictions and
labels come as arrays with one entry for each stream.
"""

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from typing import Any

import numpy as np

from setpoint import _state_file, spec
from setpoint._check import whole
from setpoint.bulk import arrays
from setpoint.bulk.arrays import Array, Intervals, fixed, inputs
from setpoint.bulk.blocks import blocks, check_losses, schedule_of
from setpoint.bulk.compile import compiled, kernel
from setpoint.bulk.states import States, first_unsound, refusal
from setpoint.bulk.vectors import PEAK, REST, layout_of, pack_rest, params_of, rest_fields, scalar
from setpoint.controller import Controller, State, matching
from setpoint.errors import (
    AmbiguousReceipt,
    AnsweredReceipt,
    InputError,
    LabelError,
    PendingFull,
    PredictionError,
    SetpointError,
    StateError,
    UnknownReceipt,
)
from setpoint.guarantee import Certificate, certify
from setpoint.laws import Law, check_thetas
from setpoint.parts import trusted
from setpoint.receipts import Batch, Id, checked_id, checked_ids

__all__ = ["Batch", "Fleet", "Intervals"]


# Where the counts lie that change between steps, in the numbers of `pack_rest`.
_DROPPED = REST.index("dropped") - len(REST)


class Fleet:
    """A controller at work on many streams.

    `predict` opens a batch of predictions under an id, given or generated; `update` answers it,
    as a whole or for some streams by their ids. A NaN label says that there is none now: by
    default the prediction is closed as not observed, with `late=True` it goes on waiting. θ is
    kept in float64 whatever the data are. A call that raises leaves the fleet as it was.

    Parameters
    ----------
    controller
        Made of scalar rules: see `setpoint.Stream` for any other.
    streams
        How many streams, or their ids: whole numbers, strings or tuples.
    max_pending
        How many batches may wait for labels at once.

    Examples
    --------
    >>> import numpy as np
    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.Miscoverage(), level=0.1, step=sp.steps.Fixed(0.5))
    >>> fleet = sp.Fleet(sp.Controller(sp.sets.Widen(), risk), ["north", "south"])
    >>> fleet.predict((np.array([10.0, 20.0]), np.array([14.0, 24.0]))).upper
    array([14., 24.])
    >>> fleet.update(np.array([15.0, np.nan]))
    array([ 1., nan])
    >>> fleet.theta
    array([0.45, 0.  ])

    References
    ----------
    Feldman et al. 2023, Algorithm 1, once for each stream.
    """

    def __init__(
        self, controller: Controller, streams: int | Iterable[Id], *, max_pending: int = 1_000
    ) -> None:
        for place, risk in enumerate(controller.risks):
            if risk.step is None:
                Law(controller, place)  # says what is missing
        if not scalar(controller):
            raise InputError(
                "a fleet needs a controller made of scalar rules (interval families, losses of "
                f"coverage, fixed steps); run one Stream for each series of {controller!r}"
            )
        self._controller = controller
        self._layout = layout_of(controller)
        self._params = params_of(controller)
        self._limit = whole(max_pending, "max_pending", 1)
        self._ids: list[Id] = []
        self._everyone = fixed(np.arange(0))
        self._places: dict[Id, int] = {}
        self._vectors = np.empty((len(self._layout.fields), 0))
        self._rest = np.empty((len(pack_rest(controller.init())), 0))
        self._waiting: dict[Id, Batch] = {}
        self._awaits: Array | None = None
        self._retired: list[Id] = []
        self._serial = 0
        # A user's rule may raise half way, and a user's loss break its promise; ours do not.
        self._doubted = {
            place: Law(controller, place)
            for place, doubted in enumerate(self._layout.doubted)
            if doubted
        }
        parts = (controller.sets, controller.stretch, controller.combine)
        self._trusted = all(trusted(part) for part in parts) and all(
            trusted(risk.loss) and trusted(risk.step) for risk in controller.risks
        )
        number = isinstance(streams, np.ndarray) and streams.ndim == 0
        listed = isinstance(streams, Iterable) and not number
        self.add(streams if listed else range(whole(streams, "streams", 0)))  # type: ignore[arg-type]

    # The streams

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def controller(self) -> Controller:
        """What every stream holds, and how."""
        return self._controller

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the streams, in the order of the arrays."""
        return tuple(self._ids)

    def add(self, ids: Iterable[Id], states: Sequence[State] | States | None = None) -> None:
        """Adds streams at the end, at the beginning of their lives or in given states."""
        new = checked_ids(ids)
        taken = [id for id in new if id in self._places]
        if taken or len(set(new)) < len(new):
            raise InputError(f"every stream needs an id of its own, got {taken or new!r} again")
        given, repeats = [self._controller.init()], len(new)
        if states is not None and not isinstance(states, States):
            given, repeats = [matching(self._controller, state) for state in states], 1
            if len(given) != len(new):
                raise InputError(f"got {len(given)} states for {len(new)} streams")
        packed: Any = [*map(self._layout.pack, given)], [*map(pack_rest, given)]
        if isinstance(states, States):
            packed, repeats = states.packed(self._controller, new), 1

        def joined(old: Array, values: Any) -> Array:
            added = np.array(values, np.float64).reshape(-1, len(old))
            both = np.concatenate([old, np.repeat(added, repeats, axis=0).T], axis=1)
            return np.ascontiguousarray(both)

        vectors, self._rest = map(joined, (self._vectors, self._rest), packed)
        check_thetas(self._controller, vectors[list(self._layout.position.theta)])
        self._vectors = vectors
        self._places.update((id, place) for place, id in enumerate(new, len(self._ids)))
        self._ids += new
        self._awaits = None

    def retire(self, ids: Iterable[Id]) -> Mapping[Hashable, State]:
        """Takes streams out and hands back their states; what they awaited is given up.

        Each state is made when it is asked for, by the id of its stream.
        """
        gone = checked_ids(ids)
        leaving = self._rows(gone)
        self._rest[_DROPPED, leaving] += self._awaited()[leaving]
        states = States(self._controller, gone, self._vectors[:, leaving], self._rest[:, leaving])
        keep = np.ones(len(self), dtype=bool)
        keep[leaving] = False
        new_place = np.cumsum(keep) - 1
        if self._waiting:
            new_place[leaving] = -1 - len(self._retired) - np.arange(len(gone))
            self._retired += gone
        self._vectors = np.ascontiguousarray(self._vectors[:, keep])
        self._rest = np.ascontiguousarray(self._rest[:, keep])
        self._ids = [id for id, kept in zip(self._ids, keep.tolist(), strict=True) if kept]
        self._places = {id: place for place, id in enumerate(self._ids)}
        self._everyone, self._awaits = fixed(np.arange(len(self))), None
        for batch in self._waiting.values():
            there = np.maximum(batch.rows, 0)
            batch.rows = np.where(batch.rows < 0, batch.rows, new_place[there])
            batch.open &= batch.rows >= 0
        self._sweep_out()
        return states

    def _rows(self, ids: Iterable[Id] | None) -> Array:
        """The places of streams in the arrays."""
        if ids is None:
            if len(self._everyone) != len(self):
                self._everyone = fixed(np.arange(len(self)))
            return self._everyone
        try:
            rows = np.array([self._places[id] for id in checked_ids(ids)], dtype=np.int64)
        except KeyError as error:
            raise InputError(f"the fleet has no stream {error.args[0]!r}") from None
        if len(np.unique(rows)) < len(rows):
            raise InputError("a call takes each stream once, and some id came twice")
        return fixed(rows)

    def _name(self, row: int) -> Id:
        """The id of the stream in a row of a batch, retired or not."""
        return self._ids[row] if row >= 0 else self._retired[-1 - row]

    # A step

    def predict(
        self, prediction: Any, ids: Iterable[Id] | None = None, *, batch: Id | None = None
    ) -> Intervals:
        """The sets of all streams, or of those in `ids`; they wait for labels under `batch`.

        Parameters
        ----------
        prediction
            The columns (lower, upper) or (centre, low, high), one entry for each stream: a tuple
            of arrays, a mapping or a data frame with these names, or one array with these
            columns. For `sets.Widen` an array of point forecasts will do.
        ids
            Which streams; all of them by default.
        batch
            An id for this call, a generated number by default.
        """
        rows = self._rows(ids)
        columns = arrays.prediction_columns(prediction, self._controller.sets, len(rows), 1)
        name = self._serial if batch is None else checked_id(batch, "the id of a batch")
        if name in self._waiting:
            raise InputError(f"a batch already waits under the id {name!r}")
        if len(self._waiting) >= self._limit:
            raise PendingFull(
                f"{len(self._waiting):,} batches wait for labels, as many as max_pending allows; "
                "answer or drop some"
            )
        dtype = columns[0].dtype
        lower, upper = np.empty(len(rows), dtype), np.empty(len(rows), dtype)
        lam, leader = np.empty(len(rows)), np.zeros(len(rows), dtype=np.int64)
        reading = np.empty((len(self._layout.readings), len(rows)))
        told = np.zeros(2, dtype=np.int64)
        rules = self._layout.rules
        in_place = (self._trusted and compiled()) or not (rules.heeds or rules.turns)
        vectors = self._vectors if in_place else self._vectors.copy()
        others = self._awaited()[rows].astype(np.float64) if rules.heeds else np.empty(0)
        run = kernel(self._layout, "aim_row", narrow=dtype == np.float32)
        run(
            self._params, vectors, rows, others, columns, reading, lower, upper, lam, leader, told
        )  # fmt: skip
        if told[0]:
            self._refuse_prediction(rows, columns)
        self._vectors = vectors
        shown = Intervals(fixed(lower), fixed(upper))  # the losses will be taken on them
        if not len(rows):
            return shown
        waits = np.ones(len(rows), dtype=bool)
        self._waiting[name] = Batch(rows, reading, *shown, lam, leader, waits)
        if isinstance(name, int):
            self._serial = max(self._serial, name + 1)
        if self._awaits is not None:
            self._awaits[rows] += 1
        if len(self._waiting) > 1:
            np.maximum(self._rest[PEAK], self._awaited(), out=self._rest[PEAK])
        return shown

    def update(
        self,
        y: Any,
        ids: Iterable[Id] | None = None,
        *,
        batch: Id | None = None,
        late: bool = False,
    ) -> Array:
        """Takes in labels and returns their losses, NaN where there was no label.

        Parameters
        ----------
        y
            One label for each prediction of the batch, in its order; NaN where there is none now.
            With `ids`, one for each of them; a mapping from ids to labels says both at once.
        ids
            The streams that `y` is about; all others of the batch go on waiting.
        batch
            Which batch; it may be left out if only one waits.
        late
            Whether predictions without a label go on waiting, instead of being closed as not
            observed.
        """
        name, whole_batch = self._find(batch)
        if isinstance(y, Mapping):
            if ids is not None:
                raise InputError("labels by id need no ids beside them")
            ids, y = list(y), list(y.values())
        places = None if ids is None else self._places_in(name, whole_batch, ids)
        held = whole_batch if places is None else whole_batch.taken(places)
        labels = inputs([arrays.numbers(y, "the labels", LabelError)], np.dtype(np.float64))[0]
        if labels.shape != held.rows.shape:
            raise LabelError(
                f"the batch has {len(held.rows):,} predictions, got labels of shape {labels.shape}"
                if places is None
                else f"got labels of shape {labels.shape} for {len(held.rows):,} ids"
            )
        rows = held.rows if held.rows is self._everyone else fixed(np.maximum(held.rows, 0))
        losses = np.empty((self._layout.risks, len(labels)))
        told = np.zeros(2, dtype=np.int64)
        in_place = self._trusted and compiled()
        vectors = self._vectors if in_place else self._vectors.copy()
        waits = held.open.copy()
        kernel(self._layout, "learn_row")(
            self._params, vectors, rows, held.reading, labels, bool(late), waits, held.lower,
            held.upper, held.lam, held.leader, losses, told,
        )  # fmt: skip
        if told[0]:
            self._refuse_label(name, held, labels)
        if self._doubted:
            seen = labels == labels
            check_losses(self._doubted, losses[:, seen], held.lam[seen])
        check_thetas(self._controller, vectors[list(self._layout.position.theta)])
        self._vectors = vectors
        closed = held.open if not told[1] else held.open & ~waits
        self._close(name, whole_batch, places, closed)
        return losses if self._layout.risks > 1 else losses[0]

    def run(
        self,
        prediction: Any,
        y: Any,
        *,
        delay: Any = 0,
        known: Any = None,
        out: tuple[Array, Array] | None = None,
    ) -> Intervals:
        """Many steps at once: arrays with one row for each time and one column for each stream.

        It does what `predict` and `update` do row after row, in one pass over the memory.

        Parameters
        ----------
        prediction
            As for `predict`, with an axis of time before that of the streams.
        y
            The labels; NaN where there is none.
        delay
            How many rows late labels become known, one number or one for each stream. Those that
            are not known before the last row are taken in after it.
        known
            Or the row before whose sets each label becomes known, an array of the shape of `y`.
        out
            Two arrays for the ends, which saves making new ones: contiguous, of the shape of `y`
            and the type of the predictions, apart from both. If the call raises, what they hold
            means nothing.
        """
        if self._waiting:
            raise AmbiguousReceipt(
                f"{len(self._waiting):,} batches wait: answer or drop them before run"
            )
        columns = arrays.prediction_columns(prediction, self._controller.sets, len(self), 2)
        dtype = columns[0].dtype
        numbers = arrays.numbers(y, "the labels", LabelError)
        if numbers.shape != columns[0].shape:
            raise LabelError(f"labels must have shape {columns[0].shape}, got {numbers.shape}")
        narrow = dtype == numbers.dtype == np.float32
        (labels,) = inputs([numbers], dtype if narrow else np.dtype(np.float64))
        if out is None:
            lower, upper = np.empty(labels.shape, dtype), np.empty(labels.shape, dtype)
        else:
            lower, upper = arrays.outputs(out, labels.shape, dtype, (*columns, labels))
        schedule = schedule_of(delay, known, labels.shape)
        if self._doubted or schedule is not None:
            self._run_blocks(columns, labels, lower, upper, schedule)
            return Intervals(lower, upper)
        told = np.zeros(2, dtype=np.int64)
        vectors = self._vectors.copy()
        run = kernel(self._layout, "fleet", narrow=dtype == np.float32)
        run(self._params, vectors, columns, labels, lower, upper, told)
        if told[0]:
            row = int(told[0]) - 1
            self._refuse_prediction(self._rows(None), tuple(column[row] for column in columns))
            self._refuse_number(self._rows(None), labels[row])
        check_thetas(self._controller, vectors[list(self._layout.position.theta)])
        self._vectors = vectors
        return Intervals(lower, upper)

    def _run_blocks(self, columns: Any, labels: Array, lower: Array, upper: Array, at: Any) -> None:
        """The same stream after stream: labels may come late, and losses are checked."""
        everyone = self._rows(None)
        place = first_unsound(self._layout, [column.ravel() for column in columns])
        if place is not None:
            row = place // len(self)
            self._refuse_prediction(everyone, tuple(column[row] for column in columns))
        self._refuse_number(np.tile(everyone, len(labels)), labels.ravel())
        vectors, rest = self._vectors.copy(), self._rest.copy()
        job = self._layout, self._params, vectors, rest[PEAK], columns, labels, at
        for part, block in blocks(*job):
            lower[:, part], upper[:, part] = block.lower.T, block.upper.T
            check_losses(self._doubted, block.losses, block.lam)
        check_thetas(self._controller, vectors[list(self._layout.position.theta)])
        self._vectors, self._rest = vectors, rest

    def drop(self, batch: Id | None = None, ids: Iterable[Id] | None = None) -> None:
        """Gives up what still waits in a batch, or what the streams in `ids` await in it."""
        name, held = self._find(batch)
        places = None if ids is None else self._places_in(name, held, ids)
        part = held if places is None else held.taken(places)
        self._rest[_DROPPED, part.rows[part.open]] += 1
        self._close(name, held, places, part.open)

    # What comes from outside

    def _refuse_prediction(self, rows: Array, columns: tuple[Array, ...]) -> None:
        """Raises the error of the first prediction that is none."""
        place = first_unsound(self._layout, columns)
        if place is not None:
            raise PredictionError(
                f"{refusal(self._controller, columns, place)} for stream "
                f"{self._name(int(rows[place]))!r}"
            )

    def _refuse_number(self, rows: Array, labels: Array) -> None:
        """Raises the error of the first number that is no label."""
        low, high = self._controller.sets.support  # type: ignore[attr-defined]
        bad = np.isinf(labels) | (labels < low) | (labels > high)
        if bad.any():
            place = int(bad.argmax())
            raise LabelError(
                f"a label must be finite and lie in [{low}, {high}], got {labels[place]} "
                f"for stream {self._name(int(rows[place]))!r}"
            )

    def _refuse_label(self, name: Id, held: Batch, labels: Array) -> None:
        """Raises the error of the first label that is none, or that nothing waits for."""
        self._refuse_number(held.rows, labels)
        row = int(held.rows[int((~held.open & (labels == labels)).argmax())])
        if row < 0:
            raise UnknownReceipt(
                f"stream {self._name(row)!r} was retired and awaits no label in batch {name!r}"
            )
        raise AnsweredReceipt(f"stream {self._name(row)!r} already has its label in batch {name!r}")

    # What waits

    def _find(self, batch: Id | None) -> tuple[Id, Batch]:
        if batch is None and len(self._waiting) == 1:
            return next(iter(self._waiting.items()))
        if batch is None:
            if self._waiting:
                raise AmbiguousReceipt(
                    f"{len(self._waiting):,} batches wait for labels: say which by batch=…"
                )
            raise UnknownReceipt("no batch waits for labels: call predict first")
        name = checked_id(batch, "the id of a batch")
        if name not in self._waiting:
            raise UnknownReceipt(f"no batch waits under the id {name!r}; it may be answered")
        return name, self._waiting[name]

    def _places_in(self, name: Id, held: Batch, ids: Iterable[Id]) -> Array:
        """Where the predictions of some streams lie in a batch."""
        listed = checked_ids(ids)
        for id in listed:
            if id not in self._places and id in self._retired:
                raise UnknownReceipt(
                    f"stream {id!r} was retired and awaits no label in batch {name!r}"
                )
        rows = self._rows(listed)
        if held.rows is self._everyone:
            return rows
        place_of = np.full(len(self), -1)
        alive = np.flatnonzero(held.rows >= 0)
        place_of[held.rows[alive]] = alive
        places: Array = place_of[rows]
        if (places < 0).any():
            id = listed[int((places < 0).argmax())]
            raise UnknownReceipt(f"stream {id!r} has no prediction in batch {name!r}")
        return places

    def _close(self, name: Id, held: Batch, places: Array | None, closed: Array) -> None:
        """Takes what is no longer awaited out of a batch, and the batch out if nothing waits."""
        if self._awaits is not None:
            rows = held.rows if places is None else held.rows[places]
            self._awaits[rows[closed]] -= 1
        if places is None:
            held.open &= ~closed
        else:
            held.open[places[closed]] = False
        if not held.open.any():
            del self._waiting[name]

    def _sweep_out(self) -> None:
        """Forgets the batches in which nothing waits, and who is retired and in none that do."""
        self._waiting = {name: held for name, held in self._waiting.items() if held.open.any()}
        batches = self._waiting.values()
        rows = [np.empty(0, np.int64), *(held.rows[held.rows < 0] for held in batches)]
        named = np.unique(np.concatenate(rows))
        self._retired = [self._retired[-1 - row] for row in named.tolist()]
        for held in batches:
            gone = held.rows < 0
            if gone.any():
                held.rows[gone] = -1 - np.searchsorted(named, held.rows[gone])

    def _awaited(self) -> Array:
        """How many labels each stream awaits; counted anew only after streams came or went."""
        if self._awaits is None:
            self._awaits = np.zeros(len(self), dtype=np.int64)
            for held in self._waiting.values():
                self._awaits[held.rows[held.open]] += 1
        return self._awaits

    @property
    def pending(self) -> dict[Id, tuple[Id, ...]]:
        """The ids of the streams that await a label, by batch."""
        return {
            name: tuple(self._ids[row] for row in held.rows[held.open].tolist())
            for name, held in self._waiting.items()
        }

    # What it knows

    @property
    def theta(self) -> Array:
        """θ of each stream; one row for each risk if there are several."""
        thetas = self._vectors[list(self._layout.position.theta)]
        return thetas if self._layout.risks > 1 else np.asarray(thetas[0])

    @property
    def means(self) -> Array:
        """The mean loss of each stream, NaN without labels; one row for each risk."""
        totals = self._vectors[list(self._layout.position.total)]
        judged = self._vectors[self._layout.counters.judged]
        means = np.divide(totals, judged, out=np.full_like(totals, np.nan), where=judged > 0)
        return means if self._layout.risks > 1 else np.asarray(means[0])

    def state(self, id: Id) -> State:
        """The state of one stream, as a `Stream` can go on from."""
        rows = self._rows([id])
        return States(self._controller, [0], self._vectors[:, rows], self._rest[:, rows])[0]

    def certificate(self, id: Id) -> Certificate:
        """What is guaranteed of one stream."""
        (place,) = self._rows([id])
        return certify(self._controller, self.state(id), waiting=int(self._awaited()[place]))

    # Saved and loaded

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything the fleet needs to go on to one file, whole or not at all."""
        _state_file.write(
            path,
            "fleet",
            {
                "controller": spec.to_dict(self._controller),
                "max_pending": self._limit,
                "ids": self._ids,
                "fields": self._layout.fields,
                "vectors": self._vectors,
                "rest": self._rest,
                "retired": self._retired,
                "serial": self._serial,
                "waiting": [
                    (name, *(getattr(held, each) for each in Batch.__slots__))
                    for name, held in self._waiting.items()
                ],
            },
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Fleet":
        """The fleet saved at `path`, to the bit."""
        content = _state_file.read(path, "fleet")
        try:
            fleet = cls(
                spec.from_dict(content["controller"]),
                content["ids"],
                max_pending=content["max_pending"],
            )
            if content["fields"] != fleet._layout.fields:
                raise StateError(f"{os.fspath(path)} was written by a setpoint with other rules")
            names = fleet._layout.fields, rest_fields(fleet._layout.risks)
            for fields, numbers in zip(names, (content["vectors"], content["rest"]), strict=True):
                _state_file.check_columns(fields, numbers, len(fleet))
            fleet._vectors, fleet._rest = (
                np.array(content[each], np.float64, order="C") for each in ("vectors", "rest")
            )
            fleet._serial, fleet._retired = content["serial"], content["retired"]
            for name, *parts in content["waiting"]:
                fleet._waiting[name] = fleet._restored(Batch(*parts))
        except SetpointError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise StateError(f"{os.fspath(path)} is damaged: {error!r}") from error
        return fleet

    def _restored(self, held: Batch) -> Batch:
        """A batch as `predict` leaves it: the same types of arrays run the same machine code."""
        everyone = self._rows(None)
        held.rows = everyone if np.array_equal(held.rows, everyone) else fixed(held.rows)
        held.lower, held.upper = fixed(held.lower), fixed(held.upper)
        return held

    def __copy__(self) -> "Fleet":
        waiting = {name: copy(held) for name, held in self._waiting.items()}
        for held in waiting.values():
            held.open = held.open.copy()  # nothing is ever written into the other arrays
        return deepcopy(self, {id(self._waiting): waiting})

    def __repr__(self) -> str:
        return f"<Fleet of {len(self):,} streams of {self._controller!r}>"
