"""A fleet of paths: a live stream for each series, asked and answered together."""

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from setpoint import _state_file, spec
from setpoint._check import whole
from setpoint.bulk.fleet import Fleet
from setpoint.bulk.states import States
from setpoint.controller import Controller
from setpoint.errors import AmbiguousReceipt, InputError, UnknownReceipt
from setpoint.guarantee import Certificate
from setpoint.receipts import checked_id, checked_ids
from setpoint.recursion import RiskState
from setpoint.state import Id, State
from setpoint.stream import Stream

Array = np.ndarray[Any, Any]


class PathFleet(Fleet):
    """What `Fleet` makes of a controller of paths; each series is a `Stream`.

    `predict` takes a row of forecasts for each series, or lower and upper ends, and gives a
    `sets.Path` for each; `update` takes the labels of one `step`, or a row of those of all steps.
    """

    def __init__(
        self, controller: Controller, streams: int | Iterable[Id], *, max_pending: int = 1_000
    ) -> None:
        self._controller = controller
        self._limit = whole(max_pending, "max_pending", 1)
        self._by_id: dict[Id, Stream] = {}
        self._serial = 0
        several = isinstance(streams, Iterable)
        self.add(streams if several else range(whole(streams, "streams", 0)))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the streams, in the order of the arrays."""
        return tuple(self._by_id)

    def add(self, ids: Iterable[Id], states: Sequence[State] | States | None = None) -> None:
        """Adds streams at the end, at the beginning of their lives or in given states."""
        new = checked_ids(ids)
        if len({*new, *self._by_id}) < len(new) + len(self):
            raise InputError(f"every stream needs an id of its own, got {new!r} beside {self.ids}")
        begun: Any = [None] * len(new) if states is None else states
        begun = [begun[id] for id in new] if isinstance(begun, Mapping) else begun
        options: Any = {"max_pending": self._limit, "missing": "skip"}
        made = [
            Stream(self._controller, state=state, **options)
            for _, state in zip(new, begun, strict=True)
        ]
        self._by_id |= zip(new, made, strict=True)

    def retire(self, ids: Iterable[Id]) -> Mapping[Hashable, State]:
        """Takes streams out and hands back their states; what they awaited is given up."""
        gone = dict(self._chosen(ids))
        for id, stream in gone.items():
            for waits in list(stream.pending):
                stream.drop(waits)
            del self._by_id[id]
        return {id: stream.state for id, stream in gone.items()}

    def _chosen(self, ids: Iterable[Id] | None) -> list[tuple[Id, Stream]]:
        """Streams by their ids, all of them by default."""
        listed = list(self._by_id) if ids is None else checked_ids(ids)
        if strange := [id for id in listed if id not in self._by_id]:
            raise InputError(f"the fleet has no stream {strange[0]!r}")
        if len(set(listed)) < len(listed):
            raise InputError("a call takes each stream once, and some id came twice")
        return [(id, self._by_id[id]) for id in listed]

    def predict(
        self,
        prediction: Any,
        ids: Iterable[Id] | None = None,
        *,
        batch: Id | None = None,
        groups: Iterable[Iterable[Id] | None] | None = None,
        features: Any = None,
    ) -> Any:
        """The sets of all streams, or of those in `ids`; they wait for labels under `batch`.

        A prediction has a row of forecasts for each stream, or `lower` and `upper` by name, each
        with such rows.
        """
        streams, rows = self._chosen(ids), _rows_of(prediction, features)
        name = self._serial if batch is None else checked_id(batch, "the id of a batch")
        if name in self.pending:
            raise InputError(f"a batch already waits under the id {name!r}")
        given = [None] * len(streams) if groups is None else list(groups)
        for what, values in (("predictions", rows), ("tuples of groups", given)):
            if len(values) != len(streams):
                raise InputError(f"got {len(streams):,} streams and {len(values):,} {what}")
        before = [stream.snapshot() for _, stream in streams]
        try:
            shown = [
                stream.predict(row, id=name, groups=own)
                for (_, stream), row, own in zip(streams, rows, given, strict=True)
            ]
        except BaseException:
            for (_, stream), past in zip(streams, before, strict=True):
                stream.revert(past)
            raise
        if isinstance(name, int):
            self._serial = max(self._serial, name + 1)
        return shown

    def peek(self, prediction: Any, ids: Iterable[Id], *, features: Any = None) -> Any:
        """The sets that `predict` would show; nothing waits for a label, and nothing changes."""
        pairs = zip(self._chosen(ids), _rows_of(prediction, features), strict=True)
        return [stream.peek(row) for (_, stream), row in pairs]

    def update(
        self,
        y: Any,
        ids: Iterable[Id] | None = None,
        *,
        batch: Id | None = None,
        late: bool = False,
        step: int | None = None,
    ) -> Array:
        """Takes in labels and returns their losses, a row for each risk, NaN where nothing is said.

        `y` has a label of the `step` for each stream that waits, or a row of labels for all steps.
        With `late` those that are NaN go on waiting.
        """
        if isinstance(y, Mapping):
            if ids is not None:
                raise InputError("labels by id need no ids beside them")
            ids, y = list(y), list(y.values())
        name, labels = self._batch(batch), list(y)
        streams, sets = self._chosen(self.pending[name] if ids is None else ids), self._sets
        if len(labels) != len(streams):
            raise InputError(f"got {len(labels):,} labels for {len(streams):,} streams that wait")
        answers = []
        for place, ((id, stream), label) in enumerate(zip(streams, labels, strict=True)):
            if name not in stream.pending:
                raise UnknownReceipt(f"stream {id!r} awaits no label in batch {name!r}")
            heard = sets.heard(stream.receipt(name).heard, label, step)  # refuses bad ones
            if not late or any(heard.values[h] == heard.values[h] for h in heard.new):
                answers.append((place, stream, np.nan if label is None else label))
        losses = np.full((len(self._controller.risks), len(streams)), np.nan)
        for place, stream, label in answers:
            losses[:, place] = stream.update(label, id=name, step=step)  # None is NaN
        return _by_risk(losses)

    def run(self, *_: Any, **__: Any) -> Any:
        """Paths over a tape are run by `setpoint.replay_paths`."""
        raise InputError("a fleet of paths runs no arrays: use setpoint.replay_paths")

    def drop(self, batch: Id | None = None, ids: Iterable[Id] | None = None) -> None:
        """Gives up what still waits in a batch, or what the streams in `ids` await in it."""
        name = self._batch(batch)
        for _, stream in self._chosen(self.pending[name] if ids is None else ids):
            if name in stream.pending:
                stream.drop(name)

    def _batch(self, batch: Id | None) -> Id:
        """The batch that is meant: the only one where none is named."""
        waiting = self.pending
        if batch is None:
            if len(waiting) != 1:
                kind = AmbiguousReceipt if waiting else UnknownReceipt
                raise kind(f"{len(waiting):,} batches wait for labels: say which by batch=…")
            return next(iter(waiting))
        name = checked_id(batch, "the id of a batch")
        if name not in waiting:
            raise UnknownReceipt(f"no batch waits under the id {name!r}; it may be answered")
        return name

    @property
    def pending(self) -> dict[Id, tuple[Id, ...]]:
        """The ids of the streams that await a label, by batch."""
        waiting: dict[Id, list[Id]] = {}
        for id, stream in self._by_id.items():
            for name in stream.pending:
                waiting.setdefault(name, []).append(id)
        return {name: tuple(ids) for name, ids in waiting.items()}

    @property
    def _sets(self) -> Any:
        return self._controller.sets

    @property
    def theta(self) -> Array:
        """θ of each stream; one row for each risk if there are several."""
        return self._of_risks(lambda risk: risk.theta)

    @property
    def means(self) -> Array:
        """The mean loss of each stream, NaN without labels; one row for each risk."""
        return self._of_risks(lambda risk: risk.total / risk.judged if risk.judged else np.nan)

    def _of_risks(self, number: Callable[[RiskState], float]) -> Array:
        risks = [map(number, stream.state.risks) for stream in self._by_id.values()]
        return _by_risk(np.array([*map(list, risks)]).T)

    def state(self, id: Id) -> State:
        """The state of one stream, as a `Stream` can go on from."""
        return self._chosen([id])[0][1].state

    def certificate(self, id: Id) -> Certificate:
        """What is guaranteed of one stream."""
        return self._chosen([id])[0][1].certificate()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything the fleet needs to go on to one file, whole or not at all."""
        content = {
            "controller": spec.to_dict(self._controller), "max_pending": self._limit,
            "serial": self._serial, "ids": list(self._by_id),
            "paths": [stream.content() for stream in self._by_id.values()],
        }  # fmt: skip
        _state_file.write(path, "fleet", content)

    def restored(self, content: Mapping[str, Any]) -> "PathFleet":
        """The fleet with the streams that were saved."""
        self._serial = content["serial"]
        for stream, saved in zip(self._by_id.values(), content["paths"], strict=True):
            stream.restore(saved)
        return self

    def __copy__(self) -> "PathFleet":
        return deepcopy(self)


def _rows_of(prediction: Any, features: Any) -> list[Any]:
    """A prediction for each stream."""
    if features is not None:
        raise InputError("a path takes no features")
    if not isinstance(prediction, Mapping):
        return list(prediction)
    columns = zip(*prediction.values(), strict=True)
    return [dict(zip(prediction, values, strict=True)) for values in columns]


def _by_risk(numbers: Array) -> Array:
    return numbers if len(numbers) != 1 else numbers[0]
