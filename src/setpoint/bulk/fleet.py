"""Many streams at once: one controller, one array call for all of them.

Every stream has its own θ and its own certificate; they share the controller. Predictions and
labels come as arrays with one entry for each stream.
"""

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from importlib import import_module
from typing import Any

import numpy as np

from setpoint import _state_file, spec
from setpoint._check import whole
from setpoint._rules import by_class, scalar
from setpoint.bulk import arrays
from setpoint.bulk.arrays import Array, Intervals, fixed
from setpoint.bulk.groups import Named, in_time, tuples_of
from setpoint.bulk.labels import (
    LabelSets,
    critical_values,
    layout_at,
    unknown,
)
from setpoint.bulk.layout import OPEN, Annexes, Layout
from setpoint.bulk.replay import check_lams, check_promises
from setpoint.bulk.states import States
from setpoint.bulk.vectors import Vectors
from setpoint.controller import Controller
from setpoint.errors import (
    AmbiguousReceipt,
    AnsweredReceipt,
    InputError,
    LabelError,
    PendingFull,
    StateError,
    UnknownReceipt,
)
from setpoint.guarantee import Certificate, certify
from setpoint.plan import TWO_SIDED, plan
from setpoint.receipts import Batch, checked_id, checked_ids
from setpoint.sets.family import InParts
from setpoint.state import COUNTS, Id, State
from setpoint.tape.schedule import timed

_DROPPED = 1 + COUNTS.index("dropped")


class Fleet:
    """Runs one controller on many streams.

    Of paths it shows a `sets.Path` for each stream, and `update` takes the labels of a `step`.

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

    def __new__(cls, controller: Any = None, *_: Any, **__: Any) -> "Fleet":
        if isinstance(controller, Controller) and isinstance(controller.sets, InParts):
            cls = import_module("setpoint.bulk.paths").PathFleet
        return super().__new__(cls)

    def __init__(
        self, controller: Controller, streams: int | Iterable[Id], *, max_pending: int = 1_000
    ) -> None:
        if isinstance(controller, Controller):
            plan(controller)  # says what is missing
        if not (scalar(controller) or by_class(controller)):
            raise InputError(
                "a fleet needs a controller made of scalar rules (families of intervals or of "
                "label sets, losses of coverage); run one Stream for each series of "
                f"{controller!r}"
            )
        self._controller = controller
        self._streams = Vectors(controller)
        self._limit = whole(max_pending, "max_pending", 1)
        self._ids: list[Id] = []
        self._places: dict[Id, int] = {}
        self._groups = Named(controller)
        self._waiting: dict[Id, Batch] = {}
        self._serial = 0
        number = isinstance(streams, np.ndarray) and streams.ndim == 0
        listed = isinstance(streams, Iterable) and not number
        self.add(streams if listed else range(whole(streams, "streams", 0)))  # type: ignore[arg-type]

    # The streams

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def _layout(self) -> Layout:
        return self._streams.layout

    @property
    def controller(self) -> Controller:
        """The controller of every stream."""
        return self._controller

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the streams, in the order of the arrays."""
        return tuple(self._ids)

    def add(self, ids: Iterable[Id], states: Sequence[State] | States | None = None) -> None:
        """Appends streams, either new or resumed from given states."""
        new = checked_ids(ids)
        taken = [id for id in new if id in self._places]
        if taken or len(set(new)) < len(new):
            raise InputError(f"every stream needs an id of its own, got {taken or new!r} again")
        groups = self._streams.add(new, states)
        self._places.update((id, place) for place, id in enumerate(new, len(self._ids)))
        self._ids += new
        self._groups.add(groups)

    def retire(self, ids: Iterable[Id]) -> Mapping[Hashable, State]:
        """Removes streams and returns their states; their waiting predictions are dropped.

        Each state is made when it is asked for, by the id of its stream.
        """
        gone = checked_ids(ids)
        leaving = self._rows(gone)
        vectors = self._streams.array
        vectors[leaving, _DROPPED] += vectors[leaving, OPEN]
        pairs, rows = self._groups.leave(gone)
        states = self._streams.states(gone, leaving, pairs)
        keep = np.ones(len(self), dtype=bool)
        keep[leaving] = False
        new_place = np.cumsum(keep) - 1
        new_place[leaving] = -1
        self._streams.keep(np.flatnonzero(keep))
        self._ids = [id for id, kept in zip(self._ids, keep.tolist(), strict=True) if kept]
        self._places = {id: place for place, id in enumerate(self._ids)}
        for batch in self._waiting.values():
            batch.rows = np.where(batch.rows < 0, -1, new_place[batch.rows])
            batch.open &= batch.rows >= 0
            batch.which = rows[batch.which]
        self._waiting = {name: held for name, held in self._waiting.items() if held.open.any()}
        return states

    def _rows(self, ids: Iterable[Id] | None) -> Array:
        """The places of streams in the arrays."""
        if ids is None:
            return self._streams.everyone
        try:
            rows = np.array([self._places[id] for id in checked_ids(ids)], dtype=np.int64)
        except KeyError as error:
            raise InputError(f"the fleet has no stream {error.args[0]!r}") from None
        if len(np.unique(rows)) < len(rows):
            raise InputError("a call takes each stream once, and some id came twice")
        return fixed(rows)

    # A step

    def predict(
        self,
        prediction: Any,
        ids: Iterable[Id] | None = None,
        *,
        batch: Id | None = None,
        groups: Iterable[Iterable[Id] | None] | None = None,
        features: Mapping[str, Any] | None = None,
    ) -> Any:
        """The sets of all streams, or of those in `ids`; they wait for labels under `batch`.

        Parameters
        ----------
        prediction
            The columns of the family, one entry for each stream: a tuple of arrays, a mapping or a
            data frame with their names, or one array with these columns; or point forecasts. For
            label sets a row of probabilities for each stream, or a column for each class.
        ids
            Which streams; all of them by default.
        batch
            An id for this call, a generated number by default.
        groups
            For each stream the groups that its row belongs to, such as [("rain",), ()], in each of
            which the risks of the stream are held too. A group begins when it is first named.
        features
            What is known of each stream now, one array for each feature of the controller.

        It gives `Intervals`, of nested sets with one row of ends for each, the smallest first; of
        families of label sets it gives `bulk.LabelSets`.
        """
        rows = self._rows(ids)
        columns = self._streams.columns(prediction, features, (len(rows),))
        name = self._serial if batch is None else checked_id(batch, "the id of a batch")
        if name in self._waiting:
            raise InputError(f"a batch already waits under the id {name!r}")
        if len(self._waiting) >= self._limit:
            raise PendingFull(
                f"{len(self._waiting):,} batches wait for labels, as many as max_pending allows; "
                "answer or drop some"
            )
        if plan(self._controller).at_once and self._streams.array[rows, OPEN].any():
            raise InputError(TWO_SIDED)
        given = self._streams.read(columns, self._named(rows))
        count, layout = len(rows), self._layout
        names = None if groups is None else tuples_of(groups, count)
        which, begun = self._groups.named(self._ids, rows, names)
        sets = layout.rules.members, count
        held = Batch(
            rows, given, np.empty((count, layout.base)), np.empty(sets), np.empty(sets),
            np.empty(sets), np.zeros(count, np.int64), np.zeros((count, len(layout.risks))),
            np.ones(count, dtype=bool), which, np.zeros((which.size, len(layout.risks))),
        )  # fmt: skip
        wide = (layout.classes,) if layout.rules.several else ()
        none = np.empty((count, *wide)), np.empty((len(layout.risks), count))
        narrow = bool(columns[0].dtype == np.float32)
        with self._streams.undone(rows):
            touched, moved = self._streams.move(
                held, np.arange(count), *none, narrow, begun.risks, self._named(rows)
            )
            check_lams(held.lam)
        self._groups.adopt(begun, touched, moved)
        shown: Any = self._streams.shown(held.lower, held.upper, columns[0].dtype)
        if layout.classes is not None:
            shown = LabelSets(self._controller.sets, fixed(held.reading), fixed(held.lam[0]))
        if not count:
            return shown
        self._waiting[name] = held
        if isinstance(name, int):
            self._serial = max(self._serial, name + 1)
        return shown

    def _named(self, rows: Array) -> Callable[[int], str]:
        """What a message calls the stream in a place."""

        def name(place: int) -> str:
            row = int(rows[place])
            return f"stream {self._ids[row]!r}" if row >= 0 else "a stream that was retired"

        return name

    def peek(
        self, prediction: Any, ids: Iterable[Id], *, features: Mapping[str, Any] | None = None
    ) -> Any:
        """The sets that `predict` would show; nothing waits for a label, and nothing changes."""
        rows, serial = self._rows(ids), self._serial
        before = self._streams.array[rows].copy()
        shown = self.predict(prediction, ids, batch=serial, features=features)
        self._waiting.pop(serial, None)
        self._streams.array[rows] = before
        self._serial = serial
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
            One label for each prediction of the batch, NaN where there is none now, or for each of
            `ids`; or a mapping from ids to labels. Of several labels each is a row of 0 and 1.
        ids
            The streams that `y` is about; all others of the batch go on waiting.
        batch
            Which batch; it may be left out if only one waits.
        late
            Whether predictions without a label go on waiting, or are closed as not observed.
        """
        name, whole_batch = self._find(batch)
        if isinstance(y, Mapping):
            if ids is not None:
                raise InputError("labels by id need no ids beside them")
            ids, y = list(y), list(y.values())
        places = None if ids is None else self._places_in(name, whole_batch, ids)
        labels = arrays.numbers(y, "the labels", LabelError).astype(np.float64)
        count = len(whole_batch.rows) if places is None else len(places)
        wide = labels.shape[1:] if self._layout.rules.several else ()
        if labels.shape != (count, *wide) or wide not in ((), (self._layout.classes,)):
            raise LabelError(
                f"the batch has {count:,} predictions, got labels of shape {labels.shape}"
                if places is None
                else f"got labels of shape {labels.shape} for {count:,} ids"
            )
        everyone = places is None
        places = np.arange(count) if places is None else places
        open_ones = whole_batch.open[places]
        self._refuse_label(name, whole_batch.rows[places], open_ones, labels)
        seen = ~unknown(labels)
        closed = open_ones & (seen | (not late))
        answered = places[closed]
        losses = np.full((len(self._layout.risks), len(whole_batch.rows)), np.nan)
        known = np.full((len(whole_batch.rows), *labels.shape[1:]), np.nan)
        known[places] = labels
        judged = known
        if self._layout.classes is not None:
            judged = critical_values(self._controller, whole_batch.reading, known)
        streams, rows = self._streams, whole_batch.rows[answered]
        with streams.undone(rows):
            touched, moved = streams.move(
                whole_batch, ~answered, judged, losses, False, self._groups.risks, self._named(rows)
            )
            lams = whole_batch.lam[:, answered]
            check_promises(self._controller, losses[:, answered], lams, streams.array, rows)
        streams.learn(whole_batch, answered, known)
        self._groups.risks[touched] = moved
        whole_batch.open[answered] = False
        if not whole_batch.open.any():
            del self._waiting[name]
        losses = losses if everyone else losses[:, places]
        return losses if len(losses) > 1 else losses[0]

    def run(
        self,
        prediction: Any,
        y: Any,
        *,
        delay: Any = 0,
        known: Any = None,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
    ) -> Any:
        """Runs many steps in one pass, as `predict` and `update` would.

        Parameters
        ----------
        prediction, y, features
            As for `predict` and `update`, with an axis of time before that of the streams.
        delay
            How many rows late labels become known, one number or one for each stream.
        known
            Or the row before whose sets each label becomes known, an array of the shape of `y`.
        groups
            Columns by name as for `sp.replay`, each an array of the shape of `y`.
        """
        if self._waiting:
            raise AmbiguousReceipt(
                f"{len(self._waiting):,} batches wait: answer or drop them before run"
            )
        numbers = arrays.numbers(y, "the labels", LabelError)
        labels = self._layout.classes is not None
        shape = numbers.shape[:2] if labels else (0, len(self))
        columns = self._streams.columns(prediction, features, shape)
        dtype = columns[0].dtype
        rules = self._layout.rules
        wanted = columns[0].shape[: 3 if rules.several else 2]
        if numbers.shape != wanted or numbers.shape[1] != len(self):
            raise LabelError(f"labels must have shape {wanted}, got {numbers.shape}")
        times = numbers.shape[:2]
        shape = (rules.members, *times) if rules.order and rules.members > 1 else times
        if labels:  # critical values and λ, of which sets are made
            lower, upper = np.empty((*times, self._layout.family)), np.empty(times)
        else:
            lower, upper = np.empty(shape, dtype), np.empty(shape, dtype)
        schedule, name = timed(delay, known, times), self._named(self._rows(None))
        if schedule is not None and plan(self._controller).at_once:
            raise InputError(TWO_SIDED)
        for row in range(len(numbers)):
            self._streams.read(tuple(column[row] for column in columns), name)
            self._streams.check_labels(numbers[row], name)
        held, which = None, np.empty((0, 0))
        if groups is not None:
            before = {self._places[id]: self._groups.of(id) for id in self._groups.rows}
            held, which = in_time(self._controller, groups, times, before)
        self._streams.run(columns, numbers, lower, upper, schedule, held, which)
        if held is not None:
            self._groups.take([self._ids[place] for place in held.stream.tolist()], held)
        return LabelSets(self._controller.sets, lower, upper) if labels else Intervals(lower, upper)

    def drop(self, batch: Id | None = None, ids: Iterable[Id] | None = None) -> None:
        """Gives up what still waits in a batch, or what the streams in `ids` await in it."""
        name, held = self._find(batch)
        places = np.arange(len(held.rows)) if ids is None else self._places_in(name, held, ids)
        vectors, gone = self._streams.array, places[held.open[places]]
        vectors[held.rows[gone], _DROPPED] += 1.0
        self._layout.give_up(vectors, held.rows[gone], held.lam[:, gone])
        self._layout.give_up_in(self._groups.risks, held.which[gone], held.lam[:, gone])
        held.open[gone] = False
        if not held.open.any():
            del self._waiting[name]

    # What comes from outside

    def _refuse_label(self, name: Id, rows: Array, waits: Array, labels: Array) -> None:
        """Raises the error of the first label that is none, or that nothing waits for."""
        self._streams.check_labels(labels, self._named(rows))
        wrong = ~waits & ~unknown(labels)
        if not wrong.any():
            return
        place = int(wrong.argmax())
        who = self._named(rows)(place)
        if rows[place] < 0:
            raise UnknownReceipt(f"{who} awaits no label in batch {name!r}")
        raise AnsweredReceipt(f"{who} already has its label in batch {name!r}")

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
        rows = self._rows(listed)
        if held.rows is self._streams.everyone:
            return rows
        place_of = np.full(len(self), -1)
        alive = np.flatnonzero(held.rows >= 0)
        place_of[held.rows[alive]] = alive
        places: Array = place_of[rows]
        if (places < 0).any():
            id = listed[int((places < 0).argmax())]
            raise UnknownReceipt(f"stream {id!r} has no prediction in batch {name!r}")
        return places

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
        return self._streams.theta

    @property
    def means(self) -> Array:
        """The mean loss of each stream, NaN without labels; one row for each risk."""
        return self._streams.means

    def state(self, id: Id) -> State:
        """The state of one stream, from which a `Stream` can continue."""
        rows = self._rows([id])
        annexes = self._streams.annexes.taken(rows)
        state = States(self._controller, [0], self._streams.array[rows], annexes)[0]
        state.groups = self._groups.of(self._ids[rows[0]])
        return state

    def certificate(self, id: Id) -> Certificate:
        """The certificate of one stream."""
        (place,) = self._rows([id])
        waiting = int(self._streams.array[place, OPEN])
        return certify(self._controller, self.state(id), waiting=waiting)

    # Saved and loaded

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything the fleet needs to go on to one file, whole or not at all."""
        annexes = self._streams.annexes
        _state_file.write(
            path,
            "fleet",
            {
                "controller": spec.to_dict(self._controller),
                "max_pending": self._limit,
                "ids": self._ids,
                "fields": self._layout.fields,
                "vectors": self._streams.array,
                "annexes": annexes.pool[: annexes.used[0]],
                "slots": annexes.slots,
                **self._groups.content(),
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
        with _state_file.intact(path):
            controller, limit = spec.from_dict(content["controller"]), content["max_pending"]
            fleet = cls(controller, content["ids"], max_pending=limit)
            if isinstance(controller.sets, InParts):
                restored: Fleet = fleet.restored(content)  # type: ignore[attr-defined]
                return restored
            fleet._streams.make_room(layout_at(fleet._controller, len(content["fields"])).classes)
            if content["fields"] != fleet._layout.fields:
                raise StateError(f"{os.fspath(path)} was written by a setpoint with other rules")
            _state_file.check_columns(fleet._layout.fields, content["vectors"].T, len(fleet))
            fleet._streams.array = np.array(content["vectors"], np.float64, order="C")
            fleet._groups.restore(content["groups"], content["group_risks"], fleet._places)
            fleet._streams.annexes = Annexes.restored(
                content["annexes"], content["slots"], len(fleet), fleet._layout.annex
            )
            fleet._serial = content["serial"]
            for name, *parts in content["waiting"]:
                fleet._waiting[name] = fleet._restored(Batch(*parts))
            return fleet

    def _restored(self, held: Batch) -> Batch:
        """A batch as `predict` leaves it: the same types of arrays run the same machine code."""
        everyone = self._rows(None)
        held.rows = everyone if np.array_equal(held.rows, everyone) else fixed(held.rows)
        for name in Batch.__slots__[1:]:
            setattr(held, name, np.array(getattr(held, name)))  # arrays that can be written to
        self._groups.check(held.which, held.group_habit)
        return held

    def __copy__(self) -> "Fleet":
        waiting = {name: copy(held) for name, held in self._waiting.items()}
        for held in waiting.values():
            held.open = held.open.copy()  # nothing is ever written into the other arrays
        return deepcopy(self, {id(self._waiting): waiting})

    def __repr__(self) -> str:
        return f"<Fleet of {len(self):,} streams of {self._controller!r}>"
