"""Many streams at once: one controller, one array call for all of them.

Every stream has its own θ and its own certificate; they share the controller. Predictions and
labels come as arrays with one entry for each stream.
"""

import os
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from setpoint import _kernels, _store, spec
from setpoint._check import whole
from setpoint._layout import layout_of, scalar
from setpoint.controller import Controller, State, matching
from setpoint.errors import (
    AmbiguousReceipt,
    AnsweredReceipt,
    InputError,
    LabelError,
    PendingFull,
    PredictionError,
    StateError,
    UnknownReceipt,
)
from setpoint.guarantee import Certificate, certify

__all__ = ["Fleet", "Intervals"]

Array = np.ndarray[Any, Any]
Id = int | str


class Intervals(NamedTuple):
    """The ends of many intervals; an empty one has lower = +inf and upper = −inf."""

    lower: Array
    upper: Array

    @property
    def lengths(self) -> Array:
        """upper − lower, 0 for an empty interval."""
        with np.errstate(invalid="ignore"):
            return np.where(self.lower < self.upper, self.upper - self.lower, 0.0)


@dataclass(slots=True)
class _Batch:
    """The predictions of one call that wait for labels."""

    rows: Array
    columns: tuple[Array, ...]
    lower: Array
    upper: Array
    lam: Array
    leader: Array
    open: Array


class Fleet:
    """A controller at work on many streams.

    `predict` opens a batch of predictions under an id, given or generated; `update` answers it.
    A NaN label says that there is none now: by default the prediction is closed as not observed,
    with `late=True` it goes on waiting. θ is kept in float64 whatever the data are.

    Parameters
    ----------
    controller
        Made of scalar rules: see `setpoint.Stream` for any other.
    streams
        How many streams, or their ids (whole numbers or strings).
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
        if not scalar(controller):
            raise InputError(
                "a fleet needs a controller made of scalar rules (interval families, losses of "
                f"coverage, fixed steps); run one Stream for each series of {controller!r}"
            )
        self._controller = controller
        self._layout = layout_of(controller)
        self._params = np.array(self._layout.params_of(controller))
        self._limit = whole(max_pending, "max_pending", 1)
        self._ids: list[Id] = []
        self._everyone = np.arange(0)
        self._places: dict[Id, int] = {}
        self._vectors = np.empty((len(self._layout.fields), 0))
        self._first = np.empty((len(controller.risks), 0))
        self._peak = np.empty(0, dtype=np.int64)
        self._dropped = np.empty(0, dtype=np.int64)
        self._waiting: dict[Id, _Batch] = {}
        self._serial = 0
        self.add(range(whole(streams, "streams", 0)) if isinstance(streams, int) else streams)

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

    def add(self, ids: Iterable[Id], states: Sequence[State] | None = None) -> None:
        """Adds streams at the end, at the beginning of their lives or in given states."""
        new = list(ids)
        for id in new:
            if isinstance(id, bool) or not isinstance(id, int | str):
                raise InputError(
                    f"the id of a stream must be a whole number or a string, got {id!r}"
                )
        taken = [id for id in new if id in self._places]
        if taken or len(set(new)) < len(new):
            raise InputError(f"every stream needs an id of its own, got {taken or new!r} again")
        if states is not None and len(states) != len(new):
            raise InputError(f"got {len(states)} states for {len(new)} streams")
        if states is None:
            given, repeats = [self._controller.init()], len(new)
        else:
            given, repeats = [matching(self._controller, state) for state in states], 1

        def joined(old: Array, values: list[Any]) -> Array:
            shape = (len(given), *old.shape[:-1])
            added = np.repeat(np.array(values, old.dtype).reshape(shape), repeats, axis=0)
            return np.ascontiguousarray(np.concatenate([old, added.T], axis=-1))

        self._vectors = joined(self._vectors, [self._layout.pack(state) for state in given])
        self._first = joined(self._first, [[own.first for own in s.risks] for s in given])
        self._peak = joined(self._peak, [state.peak for state in given])
        self._dropped = joined(self._dropped, [state.dropped + state.expired for state in given])
        for place, id in enumerate(new, len(self._ids)):
            self._places[id] = place
        self._ids += new

    def retire(self, ids: Iterable[Id]) -> dict[Id, State]:
        """Takes streams out and hands back their states; what they awaited is given up."""
        gone = list(ids)
        states = {id: self.state(id) for id in gone}
        leaving = self._rows(gone)
        keep = np.ones(len(self), dtype=bool)
        keep[leaving] = False
        new_place = np.cumsum(keep) - 1
        self._vectors = np.ascontiguousarray(self._vectors[:, keep])
        self._everyone = np.arange(0)
        self._first = np.ascontiguousarray(self._first[:, keep])
        self._peak, self._dropped = self._peak[keep], self._dropped[keep]
        for batch in self._waiting.values():
            batch.open &= keep[batch.rows]
            batch.rows = np.where(keep[batch.rows], new_place[batch.rows], 0)
        self._sweep_out()
        self._ids = [id for id, kept in zip(self._ids, keep, strict=True) if kept]
        self._places = {id: place for place, id in enumerate(self._ids)}
        return states

    def _rows(self, ids: Iterable[Id] | None) -> Array:
        if ids is None:
            if len(self._everyone) != len(self):
                self._everyone = np.arange(len(self))
            return self._everyone
        try:
            rows = np.array([self._places[id] for id in ids], dtype=np.int64)
        except KeyError as error:
            raise UnknownReceipt(f"the fleet has no stream {error.args[0]!r}") from None
        if len(np.unique(rows)) < len(rows):
            raise InputError("a call takes each stream once, and some id came twice")
        return rows

    # A step

    def predict(
        self, prediction: Any, ids: Iterable[Id] | None = None, *, batch: Id | None = None
    ) -> Intervals:
        """The sets of all streams, or of those in `ids`; they wait for labels under `batch`.

        Parameters
        ----------
        prediction
            A tuple of arrays (lower, upper) or (centre, low, high), one entry for each stream; an
            array of point forecasts for `sets.Widen`.
        ids
            Which streams; all of them by default.
        batch
            An id for this call, a generated number by default.
        """
        rows = self._rows(ids)
        columns = self._columns(prediction, len(rows), 1)
        name = self._serial if batch is None else batch
        if isinstance(name, bool) or not isinstance(name, int | str):
            raise InputError(f"batch must be a whole number or a string, got {name!r}")
        if name in self._waiting:
            raise InputError(f"a batch already waits under the id {name!r}")
        if len(self._waiting) >= self._limit:
            raise PendingFull(
                f"{len(self._waiting):,} batches wait for labels, as many as max_pending allows; "
                "answer or drop some"
            )
        dtype = np.result_type(*(column.dtype for column in columns))
        lower, upper, lam = (
            np.empty(len(rows), dtype),
            np.empty(len(rows), dtype),
            np.empty(len(rows)),
        )
        leader = np.zeros(len(rows) if self._layout.risks > 1 else 0, dtype=np.int64)
        name_of = "aim" if ids is None else "aim_rows"
        kernel = _kernels.kernel(self._layout, name_of, narrow=dtype == np.float32)
        kernel(self._params, self._vectors, rows, *columns, lower, upper, lam, leader)
        held = tuple(column.copy() for column in columns) if self._layout.moves else ()
        waits = np.ones(len(rows), dtype=bool)
        for shown in (lower, upper):
            shown.flags.writeable = False  # the losses will be taken on what was shown
        self._waiting[name] = _Batch(rows, held, lower, upper, lam, leader, waits)
        if isinstance(name, int):
            self._serial = max(self._serial, name) + 1
        if len(self._waiting) > 1:
            self._peak = np.maximum(self._peak, self._awaited())
        return Intervals(lower, upper)

    def update(self, y: Any, *, batch: Id | None = None, late: bool = False) -> Array:
        """Takes in labels and returns their losses, NaN where there was no label.

        Parameters
        ----------
        y
            One label for each prediction of the batch, in its order; NaN where there is none now.
        batch
            Which batch; it may be left out if only one waits.
        late
            Whether predictions without a label go on waiting, instead of being closed as not
            observed.
        """
        name, held = self._find(batch)
        labels = np.array(_numbers(y, "the labels", LabelError), dtype=np.float64)
        if labels.shape != held.rows.shape:
            raise LabelError(
                f"the batch has {len(held.rows):,} predictions, got labels of shape {labels.shape}"
            )
        self._check(labels)
        again = ~held.open & (labels == labels)
        if again.any():
            row = int(held.rows[again.argmax()])
            raise AnsweredReceipt(
                f"stream {self._ids[row]!r} already has its label in batch {name!r}"
            )
        losses = np.empty((self._layout.risks, len(labels)))
        whole_fleet = held.rows is self._everyone
        columns = held.columns or (held.lower,) * len(self._layout.columns)
        kernel = _kernels.kernel(self._layout, "learn" if whole_fleet else "learn_rows")
        kernel(
            self._params, self._vectors, held.rows, *columns, labels, held.lower, held.upper,
            held.lam, held.leader, losses,
        )  # fmt: skip
        held.open &= labels != labels
        if not late:
            self._vectors[self._layout.fields.index("missing"), held.rows[held.open]] += 1.0
            held.open[:] = False
        self._sweep_out()
        return losses if self._layout.risks > 1 else losses[0]

    def run(self, prediction: Any, y: Any) -> Intervals:
        """Many steps at once: arrays with one row for each time and one column for each stream.

        It does what `predict` and `update` do row after row, in one pass over the memory.
        """
        if self._waiting:
            raise AmbiguousReceipt(
                f"{len(self._waiting):,} batches wait: answer or drop them before run"
            )
        columns = self._columns(prediction, len(self), 2)
        labels = _numbers(y, "the labels", LabelError)
        if labels.shape != columns[0].shape:
            raise LabelError(f"labels must have shape {columns[0].shape}, got {labels.shape}")
        self._check(labels)
        dtype = np.result_type(*(column.dtype for column in columns))
        lower, upper = np.empty(labels.shape, dtype), np.empty(labels.shape, dtype)
        kernel = _kernels.kernel(self._layout, "fleet", narrow=dtype == np.float32)
        kernel(self._params, self._vectors, *columns, labels, lower, upper)
        return Intervals(lower, upper)

    def drop(self, batch: Id | None = None) -> None:
        """Gives up what still waits in a batch."""
        _, held = self._find(batch)
        self._dropped[held.rows[held.open]] += 1
        held.open[:] = False
        self._sweep_out()

    def _columns(self, prediction: Any, streams: int, dimensions: int) -> tuple[Array, ...]:
        wanted = self._layout.columns
        point = wanted == ("lower", "upper") and getattr(prediction, "ndim", None) == dimensions
        given = (prediction, prediction) if point else prediction
        if not isinstance(given, tuple | list) or len(given) != len(wanted):
            raise PredictionError(f"a prediction must be the arrays ({', '.join(wanted)})")
        columns = tuple(
            _numbers(column, f"the column {name}", PredictionError)
            for name, column in zip(wanted, given, strict=True)
        )
        for name, column in zip(wanted, columns, strict=True):
            if (
                column.ndim != dimensions
                or column.shape[-1] != streams
                or (column.shape != columns[0].shape)
            ):
                shape = f"({streams:,},)" if dimensions == 1 else f"(steps, {streams:,})"
                raise PredictionError(
                    f"the column {name} must have shape {shape}, got {column.shape}"
                )
        with np.errstate(invalid="ignore"):
            if wanted[0] == "centre":
                fine = np.isfinite(columns[0])
                for column in columns[1:]:
                    fine &= (column >= 0.0) & (column < inf)
                rule = "a finite centre and finite uncertainties of at least 0"
            else:
                fine, rule = ~np.isnan(columns[0] + columns[1]), "no NaN"
                fine |= np.isinf(columns[0]) & np.isinf(columns[1])
        if not fine.all():
            place = np.unravel_index(int((~fine).argmax()), fine.shape)
            got = ", ".join(str(column[place]) for column in columns)
            stream = self._ids[place[-1]] if streams == len(self) else place[-1]
            raise PredictionError(
                f"a prediction must have {rule}, got ({got}) for stream {stream!r}"
            )
        return columns

    def _check(self, labels: Array) -> None:
        low, high = self._controller.sets.support  # type: ignore[attr-defined]
        bad = np.isinf(labels)
        if (low, high) != (-inf, inf):
            bad |= (labels < low) | (labels > high)
        if bad.any():
            got = labels[np.unravel_index(int(bad.argmax()), bad.shape)]
            raise LabelError(f"a label must be finite and lie in [{low}, {high}], got {got}")

    # What waits

    def _find(self, batch: Id | None) -> tuple[Id, _Batch]:
        if batch is None and len(self._waiting) == 1:
            return next(iter(self._waiting.items()))
        if batch is None:
            if self._waiting:
                raise AmbiguousReceipt(
                    f"{len(self._waiting):,} batches wait for labels: say which by batch=…"
                )
            raise UnknownReceipt("no batch waits for labels: call predict first")
        if batch not in self._waiting:
            raise UnknownReceipt(f"no batch waits under the id {batch!r}; it may be answered")
        return batch, self._waiting[batch]

    def _sweep_out(self) -> None:
        """Forgets the batches in which nothing waits."""
        self._waiting = {name: held for name, held in self._waiting.items() if held.open.any()}

    def _awaited(self) -> Array:
        """How many labels each stream awaits."""
        counts = np.zeros(len(self), dtype=np.int64)
        for held in self._waiting.values():
            counts[held.rows[held.open]] += 1
        return counts

    @property
    def pending(self) -> dict[Id, tuple[Id, ...]]:
        """The ids of the streams that await a label, by batch."""
        return {
            name: tuple(self._ids[row] for row in held.rows[held.open])
            for name, held in self._waiting.items()
        }

    # What it knows

    def _field(self, name: str) -> Array:
        return np.array(self._vectors[self._layout.fields.index(name)])

    @property
    def theta(self) -> Array:
        """θ of each stream; one row for each risk if there are several."""
        thetas = np.array([self._field(f"theta{i}") for i in range(self._layout.risks)])
        return thetas if self._layout.risks > 1 else np.asarray(thetas[0])

    @property
    def means(self) -> Array:
        """The mean loss of each stream, NaN without labels; one row for each risk."""
        totals = np.array([self._field(f"total{i}") for i in range(self._layout.risks)])
        judged = self._field("judged")
        means = np.divide(totals, judged, out=np.full_like(totals, np.nan), where=judged > 0)
        return means if self._layout.risks > 1 else np.asarray(means[0])

    def state(self, id: Id) -> State:
        """The state of one stream, as a `Stream` can go on from."""
        (place,) = self._rows([id])
        state = self._layout.unpack(self._vectors[:, place], self._controller.init())
        for own, first in zip(state.risks, self._first[:, place], strict=True):
            own.first = float(first)
        state.peak, state.dropped = int(self._peak[place]), int(self._dropped[place])
        return state

    def certificate(self, id: Hashable) -> Certificate:
        """What is guaranteed of one stream."""
        (place,) = self._rows([id])  # type: ignore[list-item]
        return certify(
            self._controller, self.state(self._ids[place]), waiting=int(self._awaited()[place])
        )

    # Saved and loaded

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything the fleet needs to go on to one file, whole or not at all."""
        _store.write(
            path,
            "fleet",
            {
                "controller": spec.to_dict(self._controller),
                "max_pending": self._limit,
                "ids": self._ids,
                "fields": self._layout.fields,
                "vectors": self._vectors,
                "first": self._first,
                "peak": self._peak,
                "dropped": self._dropped,
                "serial": self._serial,
                "waiting": [
                    (name, *(getattr(held, each) for each in _Batch.__slots__))
                    for name, held in self._waiting.items()
                ],
            },
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Fleet":
        """The fleet saved at `path`, to the bit."""
        content = _store.read(path, "fleet")
        try:
            fleet = cls(
                spec.from_dict(content["controller"]),
                content["ids"],
                max_pending=content["max_pending"],
            )
            if content["fields"] != fleet._layout.fields:
                raise StateError(f"{os.fspath(path)} was written by a setpoint with other rules")
            fleet._vectors, fleet._first = content["vectors"], content["first"]
            fleet._peak, fleet._dropped = content["peak"], content["dropped"]
            fleet._serial = content["serial"]
            fleet._waiting = {name: _Batch(*parts) for name, *parts in content["waiting"]}
        except (KeyError, TypeError) as error:
            raise StateError(f"{os.fspath(path)} is damaged: {error!r}") from error
        return fleet

    def __repr__(self) -> str:
        return f"<Fleet of {len(self):,} streams of {self._controller!r}>"


def _numbers(values: Any, name: str, error: type[InputError]) -> Array:
    """An array of floats; float32 stays as it is."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise error(f"{name} must be numbers, got an array of {array.dtype}")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
