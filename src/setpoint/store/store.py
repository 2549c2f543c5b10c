"""The store itself: streams in memory, batches of events, and what is written of them."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from json import loads
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setpoint import errors
from setpoint._check import choice, positive, whole
from setpoint._files import whole as whole_file
from setpoint._recent import RECENT
from setpoint.controller import Controller
from setpoint.decisions import Terms
from setpoint.decisions.certificate import GateSummary
from setpoint.errors import InputError, SetpointError, StateError, TakenOver, WriteError
from setpoint.state import Id, State
from setpoint.store import copies
from setpoint.store.database import Database, Notice, Row
from setpoint.store.events import (
    Unread,
    checked,
    flag,
    id_from,
    id_of,
    id_text,
    name_of,
    quoted,
    refused,
)
from setpoint.store.gated import held_from, is_gate, living
from setpoint.store.live import Live, check_same, toml_of
from setpoint.store.sqlite import SQLite, check_alone, file_of, swap
from setpoint.store.stored import StoredGate, StoredStream, encode
from setpoint.stream import Stream
from setpoint.summary import StreamSummary

_SETTINGS = {
    "max_pending": 10_000, "overflow": "refuse", "missing": "skip", "history": 1_000_000,
    "history_bytes": 10 << 30, "window": None, "tolerance": None,
}  # fmt: skip
_CHECKS: dict[str, Callable[[Any], Any]] = {
    "max_pending": lambda given: whole(given, "max_pending", 1),
    "overflow": lambda given: choice(given, "overflow", ("refuse", "expire")),
    "missing": lambda given: choice(given, "missing", ("raise", "skip")),
    "history": lambda given: whole(given, "history", 1),
    "history_bytes": lambda given: whole(given, "history_bytes", 1),
    "window": lambda given: whole(given, "window", 1),
    "tolerance": lambda given: positive(given, "tolerance"),
}
_MOST_LIVE = 10_000  # streams in memory


class Store:
    """Many streams in one database; each event counts once, even after a crash.

    An event is a dict: `{"id": …, "prediction": …}` asks for a set, in the `groups` of its row if
    it names some, `{"id": …, "y": …}` brings a label, of a path with the `step` that it is of,
    both together do one after the other;
    `{"id": …, "drop": true}` gives a prediction up and `{"certificate": true}` asks what is
    guaranteed. `stream` names the stream, "" if it is left out.

    Ids make events safe to repeat, as one must after a crash for those that were not answered: an
    event that was taken in before changes nothing and is answered as the first time, with
    `repeated`; another prediction or label under its id is an error. So an id is used once.
    Without ids labels must follow their predictions, and repeating is not safe.

    A stream belongs to the process that used it last. One that was overtaken gets `TakenOver` and
    changes nothing, unless it may take the stream back.

    Parameters
    ----------
    path
        A file for SQLite, which is made if there is none; a folder, for its streams.sqlite; an
        address such as postgresql://…; or another `Database`.
    controller
        What to hold in streams that are new; kept in the store.
    max_pending, overflow, missing
        As for `Stream`, with `missing="skip"` by default. They hold for all streams, are kept in
        the store and may be changed when it is opened.
    history
        How many predictions of each stream are kept once they are closed, by default the last
        million. As long as it is kept, an id is known. Kept in the store too.
    history_bytes
        About how many bytes the history of all streams may take, each the same share of them; by
        default 10 GB. Kept too.
    window, tolerance
        As for `Stream`: which alarms to note in the store, and in the answer to the label that
        begins one; without a window none. Kept too.
    takes_back
        Whether a stream that another process has taken over is taken back where it is needed.

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
        controller: Controller | Terms | None = None,
        *,
        max_pending: int | None = None,
        overflow: str | None = None,
        missing: str | None = None,
        history: int | None = None,
        history_bytes: int | None = None,
        window: int | None = None,
        tolerance: float | None = None,
        takes_back: bool = False,
    ) -> None:
        options = {
            "max_pending": max_pending, "overflow": overflow, "missing": missing,
            "history": history, "history_bytes": history_bytes, "window": window,
            "tolerance": tolerance,
        }  # fmt: skip
        given: dict[str, Any] = {
            name: _CHECKS[name](value) for name, value in options.items() if value is not None
        }
        if controller is not None:
            given["controller"] = toml_of(controller)
        self._database = path if isinstance(path, Database) else _database(path)
        self._takes_back = takes_back
        self._pid, self._turn, self._opened = os.getpid(), threading.RLock(), True
        self._live: dict[str, Any] = {}  # each a `Live` or a `LiveGate`
        self._batch: dict[str, Any] = {}
        self._claims: list[str] = []
        self._now = 0.0
        self._epochs: dict[str, int] = {}
        self._count = 1  # of streams
        try:
            saved = {name: loads(text) for name, text in self._database.settings().items()}
            if controller is not None and "controller" in saved:
                check_same("the store", held_from(saved["controller"]), controller)
                del given["controller"]
            self._settings: dict[str, Any] = {**_SETTINGS, **saved, **given}
            if given:
                self._database.set({name: encode(value) for name, value in given.items()})
        except BaseException:
            self._database.close()
            raise

    # Events

    def apply(self, events: Iterable[Any], stream: str = "") -> list[dict[str, Any]]:
        """Processes events in order, in one transaction, and answers after the commit.

        An event that cannot be taken in changes nothing and is answered by its error, and by the
        `kind` of error in one word; the others go on. `stream` is that of events that name none.
        """
        return self.apply_groups([(stream, events)])[0]

    def apply_groups(
        self, groups: Iterable[tuple[str, Iterable[Any]]]
    ) -> list[list[dict[str, Any]]]:
        """Like `apply`, for several batches, each with a default stream.

        All of them are one transaction.
        """
        todo: list[tuple[Any, str, Id | None, Exception | None]] = []
        ends = []
        for stream, events in groups:
            for event in events:
                try:
                    todo.append((event, *checked(event, stream), None))
                except SetpointError as error:
                    todo.append((event, "", None, error))
            ends.append(len(todo))
        with self._transaction({name for _, name, _, error in todo if error is None}):
            self._find(todo)
            answers = [self._answer(*each) for each in todo]
        return [answers[start:end] for start, end in pairwise([0, *ends])]

    def _find(self, todo: list[tuple[Any, str, Id | None, Exception | None]]) -> None:
        """Gets the streams of some events, and the rows that they need."""
        for place, (event, name, id, refusal) in enumerate(todo):
            if refusal is not None:
                continue
            live = self._batch.get(name)
            if live is None:
                try:
                    live = self._begun(name, new="prediction" in event or "score" in event)
                except (TakenOver, WriteError):  # the batch fails as a whole
                    raise
                except SetpointError as error:
                    todo[place] = event, "", None, error
                    continue
            if id is None or (type(id) is int and id >= live.serial):
                continue
            if id not in live.waiting:
                live.stored[id] = _WANTED
        for live in self._batch.values():
            if live.stored:
                self._fill(live, live.stored)

    def _fill(self, live: Any, ids: Iterable[Id]) -> None:
        """Gets what the database knows of some ids."""
        rows = self._database.find(live.name, map(id_text, ids))
        live.stored = {id_from(row.id): row for row in rows}

    def _answer(self, event: Any, name: str, id: Id | None, refusal: Any) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        sent = event.sent if isinstance(event, Unread) else event
        if type(sent) is dict or isinstance(sent, Mapping):
            answer = {key: sent[key] for key in ("stream", "id") if key in sent}
        if refusal is not None:
            return answer | refused(refusal)
        live = self._batch[name]
        steps, noted = len(live.steps), len(live.alarms)
        try:
            if live.undone and len(event.keys() - {"stream", "id"}) > 1:
                done = live.attempt(lambda: live.do(event, id))
            else:
                done = live.do(event, id)
        except (SetpointError, RecursionError) as error:
            if len(live.steps) > steps:
                self._undo(live, steps)
            return answer | refused(error)
        if len(live.alarms) > noted:
            done["alarms"] = list(map(loads, live.alarms[noted:]))
        return answer | done

    def _undo(self, live: Any, steps: int) -> None:
        """Brings a stream back to where it was after some steps of the batch.

        That takes as long as the batch, so from then on such steps are attempted.
        """
        before = self._loaded(live.name) or self._new(live.name, held_from(live.toml))
        before.follow(live)
        for step, *arguments in live.steps[:steps]:
            step(before, *arguments)
        before.undone = True
        self._live[live.name] = self._batch[live.name] = before

    # Streams

    def stream(
        self,
        name: str = "",
        controller: Controller | Terms | None = None,
        *,
        state: State | None = None,
    ) -> Any:
        """Opens a stream for this process; creates it, in `state`, if it is new.

        A controller is for a new stream; with the terms of a gate it is a gate, with the calls of
        one (`decisions.Terms`). One that has begun must have the same one, or have begun
        with it: what was changed since stays.

        >>> from tempfile import TemporaryDirectory
        >>> import setpoint as sp
        >>> past = sp.Stream(sp.intervals())
        >>> _ = past.predict((1.0, 2.0)), past.update(1.5)
        >>> with TemporaryDirectory() as folder, Store(folder, sp.intervals()) as store:
        ...     store.stream("north", state=past.state).certificate().risks[0].judged
        1
        """
        name = name_of(name)
        with self._transaction([name], anew=True):
            live = self._begun(name, new=True, controller=controller)
            if state is not None:
                if live.epoch or not isinstance(live, Live):
                    raise InputError(
                        f"the stream {quoted(name)} has a state: one is given to a new stream only"
                    )
                past = Stream(live.stream.controller, state=state).content()
                names = ("risks", "counts", "table", "annex", "window", "groups", "group_risks")
                parts = {part: past[part] for part in (*names, "price")}
                live.stream.restore({**live.stream.content(), **parts})
            if controller is not None and held_from(live.first) != controller:
                check_same(f"the stream {quoted(name)}", held_from(live.toml), controller)
            live.dirty = live.epoch == 0
        return StoredStream(self, name) if isinstance(live, Live) else StoredGate(self, name)

    @property
    def names(self) -> list[str]:
        """The stream names, oldest first; those created in one batch by name."""
        with self._used():
            return self._database.names()

    def read(self, name: str = "") -> Any:
        """A read-only copy of a stream or gate; its owner is not disturbed."""
        return self._look(name).stream

    def held(self, name: str = "") -> str:
        """A stream's controller, as TOML."""
        return str(self._look(name, waiting=False).toml)

    def certificate(self, name: str = "") -> Any:
        """What is guaranteed for a stream, and whether the premises hold."""
        return self._look(name, waiting=False).certificate()

    def summary(self, name: str = "") -> StreamSummary | GateSummary:
        """The summary of a stream, with the width and usefulness of its last stored sets."""
        with self._used():
            live = self._look(name, waiting=False)
            return live.summary(self._database.answered(name, RECENT))  # type: ignore[no-any-return]

    def history(
        self, name: str = "", after: int = -1, most: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """The stored predictions of a stream, after a given number."""
        left = inf if most is None else most
        while left > 0:
            with self._used():
                rows = self._database.history(name, after, int(min(left, 1000)))
                live: Any = self._look(name, waiting=False) if rows else None
            for row in rows:
                yield {
                    "number": row.number, "id": id_from(row.id), **live.past(row),
                    "y": row.y and loads(row.y), "loss": row.loss and loads(row.loss),
                    "covered": flag(row.covered), "ended": row.ended, "made": row.made,
                    "closed": row.closed,
                }  # fmt: skip
            if not rows:
                return
            after, left = rows[-1].number, left - len(rows)

    def overviews(self, name: str | None = None) -> dict[str, dict[str, Any]]:
        """An overview of each stream, or of one, whichever process owns it."""
        with self._used():
            return {name: loads(text) for name, text in self._database.overviews(name)}

    def alarms(self, most: int = 100) -> list[dict[str, Any]]:
        """The last alarms of all streams, the newest first."""
        with self._used():
            return list(map(_alarm, self._database.alarms(most)))

    # Whole streams

    def rename(self, name: str, to: str) -> None:
        """Gives a stream another name; its predictions and alarms go with it."""
        with self._used():
            if not self._database.rename(name, name_of(to)):
                raise _unknown(name)
            self._let_go(name)

    def delete(self, name: str) -> None:
        """Deletes a stream and all that is known of it."""
        with self._used():
            if not self._database.delete(name):
                raise _unknown(name)
            self._let_go(name)

    def forget(
        self, name: str = "", ids: Iterable[Id] | None = None, *, before: float | None = None
    ) -> int:
        """Deletes closed predictions of a stream, and says how many; what was learnt stays.

        By default all of them, or those under some ids, or those closed before a time in seconds
        since 1970. An id that is forgotten would be counted again if its events were sent again.
        """
        with self._used():
            stream = self.read(name)
            listed = None if ids is None else [id_of(id) for id in ids]
            if waits := [id for id in listed or () if id in stream.pending]:
                raise InputError(
                    f"the prediction under {id_text(waits[0])} waits for its label: drop it first"
                )
            texts = None if listed is None else [id_text(id) for id in listed]
            return self._database.erase(name, texts, before)

    def export_streams(
        self, path: str | os.PathLike[str], names: Iterable[str] | None = None
    ) -> None:
        """Writes streams to a file, as they are at one moment; without names the whole store.

        The file has lines of JSON, whichever database the store is in; `import_streams` reads it,
        and of a whole store `restore`.
        """
        with self._used(), whole_file(path) as file:
            file.writelines(self.lines(names))

    def lines(self, names: Iterable[str] | None = None) -> Iterator[bytes]:
        """The lines that `export_streams` writes."""
        with self._used():
            yield from copies.write(self._database, names)

    def import_streams(
        self, lines: Iterable[bytes] | str | os.PathLike[str], name: str | None = None
    ) -> list[str]:
        """Imports streams from a file or its lines, all or none; returns their names.

        `name` is what a single stream is to be called here. A name that is taken is an error.
        """
        with copies.lines_of(lines) as source:
            return self._take_in(source, name)

    @classmethod
    def restore(
        cls,
        where: str | os.PathLike[str],
        lines: Iterable[bytes] | str | os.PathLike[str],
    ) -> Path | None:
        """Makes a store what it was when the whole of it was exported.

        Nobody may be using the store. A SQLite file is replaced in one step, its log with it; the
        earlier file is kept beside it, and its path is returned.
        """
        target = file_of(where)
        with copies.lines_of(lines) as source:
            if target is None:
                with cls(where) as store:
                    store._take_in(source, whole=True)
                return None
            if target.exists():
                check_alone(target)
            with TemporaryDirectory(prefix=".restoring", dir=target.parent) as folder:
                fresh = Path(folder) / target.name
                with cls(fresh) as store:
                    store._take_in(source, whole=True)
                return swap(fresh, target)

    def _take_in(
        self, lines: Iterable[bytes], name: str | None = None, *, whole: bool = False
    ) -> list[str]:
        """Writes streams from lines in one transaction; a whole store in the place of all."""
        with self._used():
            self._database.begin([])
            try:
                if whole:
                    self._database.wipe()
                taken = copies.read(self._database, lines, self._settings, name, whole=whole)
                self._database.commit([])
            except BaseException:
                self._database.rollback()
                raise
            return taken

    def check(self) -> list[str]:
        """Reads everything and returns a list of problems, empty if there are none."""
        with self._used():
            found = self._database.check()
            for name in self._database.names():
                try:
                    self.read(name)
                    for _ in self.history(name):
                        pass
                    self.overviews(name)
                except SetpointError as error:
                    found.append(str(error))
            return found

    def _let_go(self, name: str) -> None:
        self._live.pop(name, None)
        self._epochs.pop(name, None)

    def _begun(self, name: str, *, new: bool, controller: Controller | Terms | None = None) -> Any:
        """A stream at work in this batch."""
        live = self._batch.get(name)
        if live is None:
            live = self._live.pop(name, None) or self._loaded(name)
            if live is None:
                if not new:
                    raise _unknown(name)
                live = self._new(name, controller)
            live.time = self._now
            self._live[name] = self._batch[name] = live
        return live

    def _new(self, name: str, controller: Controller | Terms | None) -> Any:
        if controller is not None:
            toml_of(controller)
        elif "controller" in self._settings:
            controller = held_from(self._settings["controller"])
        else:
            raise _unknown(name, "; give a controller to begin")
        return living(name, controller, self._settings, None)

    def _loaded(self, name: str) -> Any:
        """A stream from the database; it is claimed unless it is this process's already."""
        claim = name not in self._epochs
        saved = self._database.load(name, claim=claim)
        if saved is None:
            return None
        if claim:
            self._epochs[name] = saved.epoch
            self._claims.append(name)
        return living(name, held_from(saved.controller), self._settings, saved)

    def _look(self, name: str, *, waiting: bool = True) -> Any:
        """A stream to look at; what waits for labels may be left out, where that is a stream."""
        with self._used():
            saved = self._database.load(name, claim=False, waiting=waiting)
            if saved is not None and saved.waiting is None and is_gate(saved.controller):
                saved = self._database.load(name, claim=False)
        if saved is None:
            raise _unknown(name)
        return living(name, held_from(saved.controller), self._settings, saved)

    # Batches

    @contextmanager
    def _transaction(self, names: Iterable[str], *, anew: bool = False) -> Iterator[None]:
        """A batch that is committed whole; if that fails, its streams are as they were before."""
        with self._used():
            self._batch, self._claims, self._now = {}, [], time.time()
            epochs = self._database.begin(names)
            try:
                self._check(names, epochs, anew)
                yield
                lives = [live for live in self._batch.values() if live.dirty]
                if lives or self._claims:
                    room = self._settings["history_bytes"] / self._count
                    self._database.commit([live.change(room) for live in lives])
                else:
                    self._database.rollback()
            except BaseException as error:
                refused = isinstance(error, SetpointError)  # anything else may come in mid-step
                for name, live in list(self._live.items()):
                    if live.dirty or not refused or name in self._claims:
                        del self._live[name]
                for name in self._claims:
                    del self._epochs[name]
                self._database.rollback()
                raise
            if self._claims or any(not live.epoch for live in lives):
                self._count = max(1, self._database.count())
            for live in lives:
                self._epochs[live.name] = live.epoch = live.epoch or live.begins
            for name, live in self._batch.items():
                live.settle()
                if not live.epoch:  # its first prediction was refused
                    del self._live[name]
            while len(self._live) > _MOST_LIVE:
                del self._live[next(iter(self._live))]

    def _check(self, names: Iterable[str], epochs: Mapping[str, int], anew: bool) -> None:
        """Forgets streams that another process has used since, or refuses to go on."""
        for name in names:
            if anew or self._epochs.get(name) != epochs.get(name):
                self._live.pop(name, None)
                before = self._epochs.pop(name, None)
                if before is not None and not (anew or self._takes_back):
                    self._epochs[name] = before
                    raise TakenOver(name)

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
        """Closes the database; everything acknowledged is already stored."""
        if self._opened and os.getpid() == self._pid:
            self._database.close()
        self._opened = False

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


_WANTED = Row(-1, "", "", 0.0)


def _alarm(notice: Notice) -> dict[str, Any]:
    about = {"number": notice.key, "stream": notice.stream, "at": notice.made}
    return about | loads(notice.alarm)


def _unknown(name: str, advice: str = "") -> errors.UnknownStream:
    what = f"there is no stream {quoted(name)}" if name else "no prediction was made yet"
    return errors.UnknownStream(f"{what}{advice}")


def _database(where: str | os.PathLike[str]) -> Database:
    if file_of(where) is None:
        from setpoint.store.postgres import PostgreSQL

        return PostgreSQL(str(where))
    return SQLite(where)
