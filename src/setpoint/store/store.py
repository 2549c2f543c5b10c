"""The store itself: streams in memory, batches of events, and what is written of them."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from json import JSONEncoder, loads
from math import isfinite
from typing import Any

from setpoint import errors, spec
from setpoint._check import choice, is_missing, whole
from setpoint._state_file import from_text, to_text
from setpoint.controller import Controller
from setpoint.errors import InputError, SetpointError, StateError, TakenOver
from setpoint.guarantee import Certificate
from setpoint.receipts import Id
from setpoint.store.database import Change, Database, Row, SQLite
from setpoint.store.events import Contains, checked, described, id_text, name_of, plain, quoted
from setpoint.stream import Stream

__all__ = ["Store", "StoredStream"]

_STREAM = {"max_pending": 10_000, "overflow": "refuse", "missing": "skip"}
_SETTINGS = {**_STREAM, "history": 1_000_000}
_encode = JSONEncoder(check_circular=False).encode


class _Live:
    """A stream in memory, and what the present batch has done to it."""

    def __init__(
        self, name: str, epoch: int, stream: Stream, settings: Mapping[str, Any],
        predictions: int, serial: int, numbers: dict[Id, int],
    ) -> None:  # fmt: skip
        self.name, self.epoch, self.stream, self.settings = name, epoch, stream, settings
        self.skips = settings["missing"] == "skip"
        self.predictions, self.numbers = predictions, numbers  # of the rows that wait
        self.serial = serial  # above every number that was an id
        self.forgotten = 0
        self.settle()

    def settle(self) -> None:
        """Begins a batch."""
        self.dirty, self.begun = False, self.predictions
        self.stored: dict[str, Row] = {}
        self.changed: dict[str, Row] = {}
        self.steps: list[tuple[Callable[..., Any], Id | None, Any]] = []

    # What an event does: the id, what is to be answered, and whether it was so before.

    def predict(self, id: Id | None, prediction: Any) -> tuple[Id, Any, bool]:
        text = "" if id is None else id_text(id)
        row = self.row(text)
        if row is not None and id is not None:
            before, _, shown, _, _ = from_text(row.receipt)
            if before != prediction:
                raise InputError(f"another prediction was made under the id {text}: use an id once")
            return id, shown, True
        full = len(self.numbers) >= self.settings["max_pending"]
        receipt = self.stream.issue(prediction, id)
        self._moved(_Live.predict, id, prediction)
        if full:
            self._end(next(iter(self.numbers)), "expired")
        text = text or id_text(receipt.id)
        self.changed[text] = Row(
            self.predictions, text, to_text((prediction, *receipt[1:])), time.time()
        )
        self.numbers[receipt.id] = self.predictions
        self.predictions += 1
        return receipt.id, receipt.shown, False

    def update(self, id: Id | None, y: Any) -> tuple[Id, tuple[Any, bool | None], bool]:
        if (row := self.closed(id)) is not None and id is not None:
            return id, _updated(row, y), True
        name, _, shown, _, _ = self.stream.receipt(id)
        covered, missing = None, self.skips and is_missing(y)
        if not missing and isinstance(
            shown, Contains
        ):  # asked first: whatever it raises, θ has not moved
            covered = bool(shown.contains(self.stream.controller.sets.label(y)))
        loss = self.stream.update(y, name)
        self._moved(_Live.update, id, y)
        self._end(name, "missing" if missing else "answered", _json(y), _json(loss), covered)
        return name, (loss, covered), False

    def drop(self, id: Id | None, _: None = None) -> tuple[Id, None, bool]:
        if (row := self.closed(id)) is not None and id is not None:
            if row.y is not None:
                raise errors.AnsweredReceipt(f"the prediction under {row.id} already has its label")
            return id, None, True
        name = self.stream.receipt(id).id
        self.stream.drop(name)
        self._moved(_Live.drop, id, None)
        self._end(name, "dropped")
        return name, None, False

    def row(self, text: str) -> Row | None:
        return self.changed.get(text) or self.stored.get(text)

    def closed(self, id: Id | None) -> Row | None:
        return None if id is None or id in self.numbers else self.row(id_text(id))

    def _moved(self, step: Callable[..., Any], id: Id | None, value: Any) -> None:
        self.steps.append((step, id, value))
        self.dirty = True

    def _end(
        self, id: Id, how: str, y: str | None = None, loss: str | None = None,
        covered: bool | None = None,
    ) -> None:  # fmt: skip
        text, number = id_text(id), self.numbers.pop(id)
        row = self.row(text)
        begun = (number, text, "", 0.0) if row is None else row[:4]
        self.changed[text] = Row(*begun, y, loss, covered, how, time.time())

    def change(self) -> Change:
        """What is to be written of the batch."""
        self.stream.hand_over()  # the database remembers what is closed
        content = self.stream.content()
        content["last"] = None
        content["receipts"] |= {"waiting": [], "alone": False}
        self.serial = content["receipts"]["serial"]
        rows = self.changed.values()
        history = self.settings["history"]
        forget = self.predictions - history - 1
        if forget - self.forgotten >= min(1000, history):
            self.forgotten = forget
        else:
            forget = -1
        return Change(
            self.name, self.epoch, spec.to_toml(self.stream.controller) if not self.epoch else "",
            to_text(content), self.predictions,
            [row for row in rows if row.number >= self.begun],
            [row for row in rows if row.number < self.begun], forget,
        )  # fmt: skip


class Store:
    """Many streams in one database, each event counted once whatever crashes.

    An event is a dict: `{"id": …, "prediction": …}` asks for a set, `{"id": …, "y": …}` brings a
    label, both together do one after the other; `{"id": …, "drop": true}` gives a prediction up
    and `{"certificate": true}` asks what is guaranteed. `stream` names the stream, "" if it is
    left out.

    Ids make events safe to repeat, as one must after a crash for those that were not answered: an
    event that was taken in before changes nothing and is answered as the first time, with
    `repeated`; another prediction or label under its id is an error. So an id is used once.
    Without ids labels must follow their predictions, and repeating is not safe.

    A stream belongs to the process that used it last. One that was overtaken gets `TakenOver` and
    changes nothing.

    Parameters
    ----------
    path
        A file for SQLite, which is made if there is none; a folder, for its streams.sqlite; or
        another `Database`.
    controller
        What to hold in streams that are new; kept in the store.
    max_pending, overflow, missing
        As for `Stream`, with `missing="skip"` by default. They hold for all streams, are kept in
        the store and may be changed when it is opened.
    history
        How many predictions of each stream are kept once they are closed, by default the last
        million. As long as it is kept, an id is known. Kept in the store too.

    Examples
    --------
    >>> import setpoint as sp
    >>> from tempfile import TemporaryDirectory
    >>> risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-20, 20))
    >>> controller = sp.Controller(sp.sets.Widen(), risk)
    >>> with TemporaryDirectory() as folder:
    ...     with sp.Store(f"{folder}/demand.sqlite", controller) as store:
    ...         shown = store.apply([{"id": "monday", "prediction": [10, 14]}])
    ...     with sp.Store(f"{folder}/demand.sqlite") as store:  # another process, later
    ...         loss = store.stream().update(15, "monday")
    >>> shown, loss
    ([{'id': 'monday', 'lower': 10.0, 'upper': 14.0}], 1.0)
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Database,
        controller: Controller | None = None,
        *,
        max_pending: int | None = None,
        overflow: str | None = None,
        missing: str | None = None,
        history: int | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "controller": None if controller is None else _toml(controller),
            "max_pending": max_pending and whole(max_pending, "max_pending", 1),
            "overflow": overflow and choice(overflow, "overflow", ("refuse", "expire")),
            "missing": missing and choice(missing, "missing", ("raise", "skip")),
            "history": history and whole(history, "history", 1),
        }
        given = {name: value for name, value in given.items() if value is not None}
        self._database = path if isinstance(path, Database) else SQLite(path)
        self._pid, self._turn, self._opened = os.getpid(), threading.RLock(), True
        self._live: dict[str, _Live] = {}
        self._batch: dict[str, _Live] = {}
        self._epochs: dict[str, int] = {}
        try:
            saved = {name: loads(text) for name, text in self._database.settings().items()}
            if controller is not None and "controller" in saved:
                _same("the store", spec.from_toml(saved["controller"]), controller)
                del given["controller"]
            self._settings: dict[str, Any] = {**_SETTINGS, **saved, **given}
            if given:
                self._database.set({name: _encode(value) for name, value in given.items()})
        except BaseException:
            self._database.close()
            raise

    # Events

    def apply(self, events: Iterable[Any], stream: str = "") -> list[dict[str, Any]]:
        """Takes in events in order, in one transaction, and answers each once it is committed.

        An event that cannot be taken in changes nothing and is answered by its error; the others go
        on. `stream` is that of events that name none.
        """
        with self._transaction():
            todo = [self._prepared(event, stream) for event in events]
            for live in self._batch.values():
                rows = self._database.find(live.name, live.stored) if live.stored else []
                live.stored = {row.id: row for row in rows}
            return [self._answer(*each) for each in todo]

    def _prepared(self, event: Any, stream: str) -> tuple[Any, str, Id | None, Exception | None]:
        """An event, its stream, its id and its error; notes in the stream which row it needs."""
        try:
            name, id = checked(event, stream)
            live = self._begun(name, new="prediction" in event)
            if id is None or (isinstance(id, int) and id >= live.serial):
                return event, name, id, None
            if "prediction" in event or id not in live.numbers:
                live.stored[id_text(id)] = _WANTED
        except TakenOver:
            raise
        except SetpointError as error:
            return event, "", None, error
        return event, name, id, None

    def _answer(self, event: Any, name: str, id: Id | None, refusal: Any) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        if isinstance(event, Mapping):
            answer = {key: event[key] for key in ("stream", "id") if key in event}
        if refusal is not None:
            return {**answer, "error": _short(refusal)}
        live, named = self._batch[name], dict(answer)
        steps, repeated = len(live.steps), False
        try:
            if "prediction" in event:
                id, shown, repeated = live.predict(id, plain(event["prediction"], "a prediction"))
                answer["id"] = id
                answer |= described(shown)
            if "y" in event:
                id, (loss, covered), repeated = live.update(id, _label(event["y"]))
                answer["id"], answer["loss"] = id, list(loss) if type(loss) is tuple else loss
                if covered is not None:
                    answer["covered"] = covered
            if event.get("drop"):
                id, _, repeated = live.drop(id)
                answer["id"], answer["dropped"] = id, True
            if event.get("certificate"):
                answer["certificate"] = live.stream.certificate().as_dict()
            if repeated:
                answer["repeated"] = True
            return answer
        except (SetpointError, RecursionError) as error:
            if len(live.steps) > steps:
                self._undo(live, steps)
            return {**named, "error": _short(error)}

    def _undo(self, live: _Live, steps: int) -> None:
        """Brings a stream back to where it was after some steps of the batch."""
        before = self._loaded(live.name) or self._new(live.name, live.stream.controller)
        before.stored = live.stored
        for step, id, value in live.steps[:steps]:
            step(before, id, value)
        self._live[live.name] = self._batch[live.name] = before

    # Streams

    def stream(self, name: str = "", controller: Controller | None = None) -> "StoredStream":
        """A stream by name, from now on this process's; it begins if it is new."""
        name = name_of(name)
        with self._transaction():
            self._live.pop(name, None)
            self._epochs.pop(name, None)
            live = self._begun(name, new=True, controller=controller)
            if controller is not None:
                _same(f"the stream {quoted(name)}", live.stream.controller, controller)
            live.dirty = live.epoch == 0
        return StoredStream(self, name)

    @property
    def names(self) -> list[str]:
        """The streams, in the order in which they began."""
        with self._used():
            return self._database.names()

    def read(self, name: str = "") -> Stream:
        """A stream as it is in the database, to look at; its owner goes on."""
        with self._used():
            live = self._loaded(name, look=True)
        if live is None:
            raise _unknown(name)
        return live.stream

    def history(self, name: str = "", after: int = -1) -> Iterator[dict[str, Any]]:
        """The predictions of a stream that are kept, from the one after a number on."""
        while True:
            with self._used():
                rows = self._database.history(name, after, 1000)
            for row in rows:
                prediction, _, shown, lam, _ = from_text(row.receipt)
                yield {
                    "number": row.number, "id": loads(row.id), "prediction": prediction,
                    "shown": described(shown), "lam": lam, "y": row.y and loads(row.y),
                    "loss": row.loss and loads(row.loss), "covered": _flag(row.covered),
                    "ended": row.ended, "made": row.made, "closed": row.closed,
                }  # fmt: skip
            if not rows:
                return
            after = rows[-1].number

    def _begun(self, name: str, *, new: bool, controller: Controller | None = None) -> _Live:
        """A stream at work in this batch."""
        live = self._batch.get(name)
        if live is None:
            live = self._live.get(name) or self._loaded(name)
            if live is None:
                if not new:
                    raise _unknown(name)
                live = self._new(name, controller)
            self._live[name] = self._batch[name] = live
        return live

    def _new(self, name: str, controller: Controller | None) -> _Live:
        if controller is not None:
            _toml(controller)
        elif "controller" in self._settings:
            controller = spec.from_toml(self._settings["controller"])
        else:
            raise StateError(f"there is no stream {quoted(name)} yet: give a controller to begin")
        stream = Stream(controller, **{name: self._settings[name] for name in _STREAM})
        return _Live(name, 0, stream, self._settings, 0, 0, {})

    def _loaded(self, name: str, *, look: bool = False) -> _Live | None:
        """A stream from the database; it is claimed unless it is this process's already."""
        saved = self._database.load(name, claim=not look and name not in self._epochs)
        if saved is None:
            return None
        if not look and self._epochs.setdefault(name, saved.epoch) != saved.epoch:
            raise TakenOver(name)
        try:
            content, settings = from_text(saved.state), self._settings
            numbers: dict[Id, int] = {loads(row.id): row.number for row in saved.waiting}
            receipts = [from_text(row.receipt)[1:] for row in saved.waiting]
            content["missing"] = settings["missing"]
            content["receipts"] |= {
                "max_pending": settings["max_pending"], "overflow": settings["overflow"],
                "waiting": [(id, *rest) for id, rest in zip(numbers, receipts, strict=True)],
            }  # fmt: skip
            stream = Stream.restored(spec.from_toml(saved.controller), content)
            serial = content["receipts"]["serial"]
        except (SetpointError, KeyError, TypeError, ValueError) as error:
            raise StateError(f"the stream {quoted(name)} is damaged: {error}") from error
        return _Live(name, saved.epoch, stream, settings, saved.predictions, serial, numbers)

    # Batches

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A batch that is committed whole; if that fails, its streams are as they were before."""
        with self._used():
            self._batch = {}
            try:
                yield
                lives = [live for live in self._batch.values() if live.dirty]
                if lives:
                    self._database.commit([live.change() for live in lives])
            except BaseException as error:
                refused = isinstance(error, SetpointError)  # anything else may come in mid-step
                for name, live in list(self._live.items()):
                    if live.dirty or not refused:
                        del self._live[name]
                raise
            for live in lives:
                self._epochs[live.name] = live.epoch = live.epoch or 1
            for name, live in self._batch.items():
                live.settle()
                if not live.epoch:  # its first prediction was refused
                    del self._live[name]

    @contextmanager
    def _used(self) -> Iterator[None]:
        if os.getpid() != self._pid:
            raise StateError(
                f"the store was opened by process {self._pid}, and process {os.getpid()} was "
                "forked from it: open it again here"
            )
        with self._turn:
            if not self._opened:
                raise StateError("the store is closed")
            yield

    def close(self) -> None:
        """Lets the database go; everything acknowledged is there already."""
        if self._opened and os.getpid() == self._pid:
            self._database.close()
        self._opened = False

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class StoredStream:
    """One stream of a store, made by `Store.stream`: as a `Stream`, committed before it returns."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self.name = store, name

    @contextmanager
    def _live(self, id: Id | None = None) -> Iterator[_Live]:
        with self._store._transaction():
            live = self._store._begun(self.name, new=False)
            if id is not None:
                rows = self._store._database.find(self.name, [id_text(id)])
                live.stored = {row.id: row for row in rows}
            yield live

    def predict(self, prediction: Any, id: Id | None = None) -> Any:
        """The set for a prediction; it waits for its label under `id`, or a generated number."""
        with self._live(id) as live:
            return live.predict(id, plain(prediction, "a prediction"))[1]

    def update(self, y: Any, id: Id | None = None) -> Any:
        """Takes in a label and returns its loss: a tuple if there are several risks."""
        with self._live(id) as live:
            return live.update(id, _label(y))[1][0]

    def drop(self, id: Id | None = None) -> None:
        """Gives up a prediction whose label will not come."""
        with self._live(id) as live:
            live.drop(id)

    def apply(self, events: Iterable[Any]) -> list[dict[str, Any]]:
        """As `Store.apply`, for events that name no other stream."""
        return self._store.apply(events, self.name)

    def certificate(self) -> Certificate:
        """What is guaranteed of this stream, and whether the premises hold."""
        with self._live() as live:
            return live.stream.certificate()


_WANTED = Row(-1, "", "", 0.0)


def _updated(row: Row, y: Any) -> tuple[Any, bool | None]:
    """What was answered to the label of a prediction that is closed."""
    if row.y is None or row.loss is None:
        raise errors.ExpiredReceipt(f"the prediction under {row.id} was given up ({row.ended})")
    before, loss = loads(row.y), loads(row.loss)
    if before != y and not (is_missing(before) and is_missing(y)):
        raise InputError(f"the id {row.id} already has the label {row.y}, got {quoted(y)}")
    return tuple(loss) if isinstance(loss, list) else loss, _flag(row.covered)


def _label(y: Any) -> Any:
    if isinstance(y, bool):
        raise InputError(f"y must be a number, text or a list, got {quoted(y)}")
    return plain(y, "a label", flags=True)


def _json(value: Any) -> str:
    return repr(value) if type(value) is float and isfinite(value) else _encode(value)


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _short(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "an event must be made of numbers, text and short lists, got deep ones"
    message = str(error)
    return message if len(message) <= 1000 else f"{message[:999]}…"


def _unknown(name: str) -> errors.UnknownReceipt:
    what = f"there is no stream {quoted(name)}" if name else "no prediction was made yet"
    return errors.UnknownReceipt(what)


def _toml(controller: Controller) -> str:
    try:
        return spec.to_toml(controller)
    except errors.SpecError as error:
        raise StateError(f"a store keeps its controller as text, and {error}") from error


def _same(what: str, before: Controller, controller: Controller) -> None:
    """Refuses another controller, and says in which line it differs first."""
    if before == controller:
        return
    pairs = zip(*(_toml(each).splitlines() for each in (before, controller)), strict=False)
    mine, other = next((pair for pair in pairs if pair[0] != pair[1]), ("more", "less"))
    raise StateError(
        f"{what} belongs to another controller: it has {mine!r}, the controller given has "
        f"{other!r}; leave the controller out, or begin another"
    )
