"""Streams on disk: what was acknowledged survives a crash, and nothing is taken in twice.

A ledger is a folder. Every event that changes something is appended to a log and forced to the
disk before it is answered; now and then all streams are written whole, and the log begins anew.
After a crash the streams are read and the rest of the log is applied again, to the bit.

    controller.toml       what is held, and how
    options.json          how many may wait, and what a missing label does
    streams-<n>.zip       every stream after event n
    log-<n>.jsonl         the events after n, each with its check sum
"""

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from math import inf, isfinite
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, BinaryIO

import numpy as np

from setpoint import _store, spec
from setpoint._check import choice, whole
from setpoint.controller import Controller
from setpoint.errors import (
    AnsweredReceipt,
    ExpiredReceipt,
    InputError,
    SetpointError,
    SpecError,
    StateError,
    UnknownReceipt,
)
from setpoint.stream import Id, Stream, checked_id

__all__ = ["Ledger"]

_KEYS = ("stream", "id", "prediction", "y", "drop", "certificate")
_VERBS = ("prediction", "y", "drop", "certificate")
_ONLY = ""
"""The name of the stream of events that name none."""
_DEFAULTS = {"max_pending": 10_000, "overflow": "refuse", "missing": "skip"}
_CHUNK, _LONGEST = 1 << 16, 1 << 20


class Ledger:
    """Many streams under one controller, kept on disk.

    An event is a dict: `{"id": …, "prediction": …}` asks for a set, `{"id": …, "y": …}` brings a
    label, both together do one after the other; `{"id": …, "drop": true}` gives a prediction up
    and `{"certificate": true}` asks what is guaranteed. `stream` names the stream; without it
    there is only one.

    Ids make events safe to repeat, as one must after a crash for those that were not answered: an
    event that was taken in before changes nothing and is answered with `repeated`, a prediction
    that still waits with the set that was shown. So an id is used once; each stream remembers the
    last 10,000 it has closed, so repeat what was not answered, not everything. Without ids labels
    must follow their predictions, and repeating is not safe.

    Parameters
    ----------
    path
        The folder; it is made if there is none.
    controller
        What to hold in every stream. It may be left out once the folder exists.
    max_pending, overflow, missing
        As for `Stream`, with `missing="skip"` by default. They belong to the folder as the
        controller does: once it exists they may be left out, and others are refused.
    every
        After how many events all streams are written whole and the log begins anew.

    Examples
    --------
    >>> import setpoint as sp
    >>> from tempfile import TemporaryDirectory
    >>> risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-20, 20))
    >>> controller = sp.Controller(sp.sets.Widen(), risk)
    >>> with TemporaryDirectory() as folder:
    ...     with sp.Ledger(folder, controller) as ledger:
    ...         shown = ledger.handle([{"id": "monday", "prediction": [10, 14]}])
    ...     with sp.Ledger(folder) as ledger:  # another process, later
    ...         told = ledger.handle([{"id": "monday", "y": 15}])
    >>> shown
    [{'id': 'monday', 'lower': 10.0, 'upper': 14.0}]
    >>> told
    [{'id': 'monday', 'loss': 1.0, 'covered': False}]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        controller: Controller | None = None,
        *,
        max_pending: int | None = None,
        overflow: str | None = None,
        missing: str | None = None,
        every: int = 100_000,
    ) -> None:
        self._path = Path(path)
        self._every = whole(every, "every", 1)
        given: dict[str, Any] = {}
        if max_pending is not None:
            given["max_pending"] = whole(max_pending, "max_pending", 1)
        if overflow is not None:
            given["overflow"] = choice(overflow, "overflow", ("refuse", "expire"))
        if missing is not None:
            given["missing"] = choice(missing, "missing", ("raise", "skip"))
        if controller is None and not (self._path / "controller.toml").exists():
            raise StateError(f"{self._path} holds no ledger yet: give the controller to begin with")
        self._path.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self._path / "lock")
        self._log: IO[bytes] | None = None
        try:
            self._controller = self._agreed(controller)
            self._options = self._agreed_options(given)
            self._streams: dict[str, Stream] = {}
            self._serial = self._begun = 0
            self._recover()
        except BaseException:
            self.close()
            raise

    # Events

    def handle(self, events: Iterable[Any]) -> list[dict[str, Any]]:
        """Takes in events in order and answers each; what changed is on the disk when it returns.

        An event that cannot be taken in is answered by its error, and the others go on.
        """
        if self._log is None:
            raise StateError(f"the ledger {self._path} is closed")
        answers: list[dict[str, Any]] = []
        records: list[bytes] = []
        try:
            answers.extend(self._answer(event, records) for event in events)
        finally:  # whatever stopped it, what was taken in is written down
            if records:
                self._append(records)
        if self._serial - self._begun >= self._every:
            self._write_whole()
        return answers

    def _answer(self, event: Any, records: list[bytes]) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        try:
            if isinstance(event, _Unread):
                raise InputError(event)
            name, id = _read(event)
            answer |= {key: event[key] for key in ("stream", "id") if key in event}
            if "prediction" in event:
                answer |= self._predict(name, id, event["prediction"], records)
            if "y" in event:
                answer |= self._update(name, answer.get("id"), event["y"], records)
            if event.get("drop"):
                answer |= self._drop(name, answer.get("id"), records)
            if event.get("certificate"):
                answer["certificate"] = self._known(name).certificate().as_dict()
        except SetpointError as error:
            answer["error"] = str(error)
        except RecursionError:
            answer["error"] = (
                "an event must be made of numbers, text and short lists, got deep ones"
            )
        return answer

    def _predict(
        self, name: str, id: Id | None, prediction: Any, records: list[bytes]
    ) -> dict[str, Any]:
        stream = self._streams.get(name)
        if stream is None:
            stream = Stream(self._controller, **self._options)
        held = None if id is None else stream._waiting().get(id)
        if id is not None and held is None and stream._was_closed(id):
            return {"id": id, "repeated": True}
        if id is not None and held is not None:
            _, reading, shown, _, _ = held
            if not _same(stream._read(prediction, id), reading):
                raise InputError(f"another prediction already waits under the id {id!r}")
            return {"id": id, **_described(shown), "repeated": True}
        written = _plain(prediction)
        receipt = stream.issue(written, id)
        self._streams[name] = stream
        self._note(records, name, receipt.id, "prediction", written)
        return {"id": receipt.id, **_described(receipt.shown)}

    def _update(self, name: str, id: Id | None, y: Any, records: list[bytes]) -> dict[str, Any]:
        stream = self._known(name)
        if id is None:
            id, _ = stream._find(None)
        written = _plain(y)
        try:
            loss = stream.update(written, id)
        except AnsweredReceipt:
            return {"id": id, "repeated": True}
        self._note(records, name, id, "y", written)
        told: dict[str, Any] = {"id": id, "loss": loss}
        info = stream.info
        if info is not None and info.id == id and hasattr(info.shown, "contains"):
            told["covered"] = bool(info.shown.contains(info.y))
        return told

    def _drop(self, name: str, id: Id | None, records: list[bytes]) -> dict[str, Any]:
        stream = self._known(name)
        if id is None:
            id, _ = stream._find(None)
        try:
            stream.drop(id)
        except ExpiredReceipt:
            return {"id": id, "repeated": True}
        self._note(records, name, id, "drop", True)
        return {"id": id, "dropped": True}

    def _known(self, name: str) -> Stream:
        if name not in self._streams:
            raise UnknownReceipt(
                f"there is no stream {name!r}" if name else "no prediction was made yet"
            )
        return self._streams[name]

    def serve(self, source: BinaryIO, sink: BinaryIO) -> int:
        """Answers JSON Lines with JSON Lines until the source ends; the number of lines read.

        Whatever has arrived is taken in together and forced to the disk once, so a single line is
        answered at once and a flood of them is not slowed by the disk. Every answer has the number
        of its `line`. A line that is no event is answered by its error.
        """
        number, rest, long = 0, b"", False
        while True:
            chunk = source.read1(_CHUNK)  # type: ignore[attr-defined]
            *lines, rest = (rest + chunk).split(b"\n")
            if not chunk and rest:
                lines, rest = [*lines, rest], b""
            told: list[dict[str, Any]] = []
            read: list[Any] = []
            for line in lines:
                number += 1
                event = _Unread(f"a line may have {_LONGEST:,} bytes") if long else _event(line)
                long = False
                if event is not None:
                    told.append({"line": number})
                    read.append(event)
            if len(rest) > _LONGEST:
                rest, long = b"", True
            answers = self.handle(read)
            out = [json.dumps({**line, **a}) for line, a in zip(told, answers, strict=True)]
            if out:
                sink.write(("\n".join(out) + "\n").encode())
                sink.flush()
            if not chunk:
                return number

    @property
    def controller(self) -> Controller:
        """What is held in every stream, and how."""
        return self._controller

    @property
    def streams(self) -> Mapping[str, Stream]:
        """The streams by name, to look at."""
        return MappingProxyType(self._streams)

    # On disk

    def _agreed(self, given: Controller | None) -> Controller:
        """The controller of the folder, which must be the one given."""
        file = self._path / "controller.toml"
        try:
            text = None if given is None else spec.to_toml(given)
        except SpecError as error:
            raise StateError(f"a ledger keeps its controller as text, and {error}") from error
        if not file.exists():
            assert given is not None
            assert text is not None
            _store.replace_file(file, text.encode())
            return given
        held = spec.from_toml(file.read_text(encoding="utf-8"))
        if given is not None and held != given:
            raise StateError(f"{self._path} belongs to {held!r}, the controller given is {given!r}")
        return held

    def _agreed_options(self, given: dict[str, Any]) -> dict[str, Any]:
        """The options of the folder, which must be those given: its log is read under them."""
        file = self._path / "options.json"
        if not file.exists():
            made = {**_DEFAULTS, **given}
            _store.replace_file(file, json.dumps(made).encode())
            return made
        held: dict[str, Any] = json.loads(file.read_bytes())
        for name, value in given.items():
            if held[name] != value:
                raise StateError(f"{self._path} has {name} = {held[name]!r}, given is {value!r}")
        return held

    def _recover(self) -> None:
        """Reads the streams and applies what came after; a record cut short was never answered."""
        whole_ones = sorted(_numbered(self._path, "streams-", ".zip"))
        if whole_ones:
            self._begun = self._serial = whole_ones[-1]
            content = _store.read(self._path / f"streams-{self._begun:020d}.zip", "ledger")
            for name, held in content["streams"]:
                stream = self._streams[name] = Stream(self._controller)
                stream._restore(held)
        path = self._path / f"log-{self._begun:020d}.jsonl"
        end = 0
        if path.exists():
            for record, after in _records(path):
                serial, name, id, verb, value = record
                if serial != self._serial + 1:
                    raise StateError(f"{path} is damaged: event {serial} after {self._serial}")
                self._again(name, id, verb, value)
                self._serial, end = serial, after
        # Unbuffered: a write that failed must leave nothing that closing would write after all.
        self._log = open(path, "ab", buffering=0)  # noqa: SIM115
        self._log.truncate(end)
        _sync_folder(self._path)
        self._forget()

    def _again(self, name: str, id: Id, verb: str, value: Any) -> None:
        """Applies an event of the log."""
        if verb == "prediction":
            if name not in self._streams:
                self._streams[name] = Stream(self._controller, **self._options)
            self._streams[name].predict(value, id)
        elif verb == "y":
            self._streams[name].update(value, id)
        else:
            self._streams[name].drop(id)

    def _note(self, records: list[bytes], name: str, id: Id, verb: str, value: Any) -> None:
        """Writes down an event that changed something."""
        self._serial += 1
        text = json.dumps([self._serial, name, id, verb, value]).encode()
        records.append(b"%08x %s\n" % (zlib.crc32(text), text))

    def _append(self, records: list[bytes]) -> None:
        """Forces records to the disk; if that fails, the ledger is closed as it was before them."""
        assert self._log is not None
        end = os.fstat(self._log.fileno()).st_size
        left = memoryview(b"".join(records))
        try:
            while left:
                left = left[self._log.write(left) :]
            os.fsync(self._log.fileno())
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._log.fileno(), end)
            self.close()
            raise

    def _write_whole(self) -> None:
        """Writes every stream whole and begins a new log."""
        name = f"{self._serial:020d}"
        content = {"streams": [(key, each._content()) for key, each in self._streams.items()]}
        assert self._log is not None
        try:
            fresh = open(self._path / f"log-{name}.jsonl", "ab", buffering=0)  # noqa: SIM115
            _store.write(self._path / f"streams-{name}.zip", "ledger", content)
            _sync_folder(self._path)
        except BaseException:  # which of the two logs counts is for the next opening to find out
            self.close()
            raise
        self._log.close()
        self._log, self._begun = fresh, self._serial
        self._forget()

    def _forget(self) -> None:
        """Removes what the last whole writing has made superfluous."""
        for prefix, suffix in (("streams-", ".zip"), ("log-", ".jsonl")):
            for number in _numbered(self._path, prefix, suffix):
                if number < self._begun:
                    (self._path / f"{prefix}{number:020d}{suffix}").unlink(missing_ok=True)

    def close(self) -> None:
        """Lets the folder go; everything acknowledged is on the disk already."""
        if self._log is not None:
            with suppress(OSError):
                self._log.close()
            self._log = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Ledger {self._path} of {len(self._streams):,} streams, event {self._serial:,}>"


class _Unread(str):
    """Why a line is no event."""

    __slots__ = ()


def _event(line: bytes) -> Any:
    """What a line says; None if it is blank."""
    if not line.strip():
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        return _Unread(f"not JSON: {error}")


def _read(event: Any) -> tuple[str, Id | None]:
    """The stream and the id of an event that makes sense."""
    if not isinstance(event, dict):
        raise InputError(f"an event must be an object with {', '.join(_VERBS)}, got {event!r}")
    strange = [key for key in event if key not in _KEYS]
    if strange:
        raise InputError(f"an event may have {', '.join(_KEYS)}, got {strange[0]!r}")
    if not any(key in event for key in _VERBS):
        raise InputError(f"an event needs one of {', '.join(_VERBS)}, got {event!r}")
    name = event.get("stream", _ONLY)
    if not isinstance(name, str):
        name = str(checked_id(name, "a stream"))
    id = event.get("id")
    return name, None if id is None else checked_id(id)


def _described(shown: Any) -> dict[str, Any]:
    """A set in JSON's own words: an end that is open is null, and so are those of an empty set."""
    if hasattr(shown, "parts") and not hasattr(shown, "lower"):
        return {"sets": [_described(part) for part in shown.parts]}
    told: dict[str, Any] = {}
    if hasattr(shown, "lower"):
        ends = (("lower", shown.lower), ("upper", shown.upper))
        told = {name: end if isfinite(end) else None for name, end in ends}
        full = shown.lower == -inf and shown.upper == inf
    else:
        told = {"labels": list(shown.labels)}
        full = shown.full
    return {**told, **({"empty": True} if shown.empty else {"full": True} if full else {})}


def _same(left: Any, right: Any) -> bool:
    """Whether two readings are equal, arrays included."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return bool(np.array_equal(left, right))
    return bool(left == right)


def _plain(value: Any) -> Any:
    """A prediction or a label in JSON's own types, as it is applied again after a crash."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(each) for key, each in value.items()}
    raise InputError(f"an event must be made of numbers, text, lists and objects, got {value!r}")


def _records(path: Path) -> Iterator[tuple[list[Any], int]]:
    """The records of a log and where each ends, up to the first one that was cut short."""
    end = 0
    with open(path, "rb") as file:
        for line in file:
            sum_, _, text = line.rstrip(b"\n").partition(b" ")
            if not line.endswith(b"\n") or b"%08x" % zlib.crc32(text) != sum_:
                if file.read(1):
                    raise StateError(f"{path} is damaged at byte {end:,}, and goes on after it")
                return
            end += len(line)
            yield json.loads(text), end


def _numbered(folder: Path, prefix: str, suffix: str) -> list[int]:
    """The numbers in the names of files of one kind."""
    names = [path.name[len(prefix) : -len(suffix)] for path in folder.glob(f"{prefix}*{suffix}")]
    return [int(name) for name in names if name.isdigit()]


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # not every system can sync a folder
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _locked(path: Path) -> IO[bytes] | None:
    """A lock that the system lets go when the process ends; None where there are no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    file = open(path, "ab")  # noqa: SIM115
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise StateError(f"another process works on the ledger {path.parent}") from None
    return file
