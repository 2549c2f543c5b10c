"""Streams as lines of JSON: backups of a whole store, and streams that move to another one.

The first line says what it is, with the settings of a whole store. Then every stream has a line,
followed by the parts of its arrays, its predictions and its alarms. The last line counts the lines
and has their checksum, so a file that is cut or damaged is refused.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from json import loads
from typing import Any
from zlib import crc32

from setpoint._state_file import from_text
from setpoint.alarms import Alarm
from setpoint.controller import Controller
from setpoint.decisions import Terms
from setpoint.errors import DataError, SetpointError, StateError
from setpoint.store.database import Change, Database, Part, Row, Saved
from setpoint.store.events import described, id_from, name_of, quoted
from setpoint.store.gated import held_from, living
from setpoint.store.live import losses_of
from setpoint.store.stored import encode

_KIND, _VERSION = "setpoint streams", 1
_SOME = 1000  # rows that are read or written at once
_MOST = 1 << 62
_ENDS = (None, "answered", "missing", "dropped", "expired", "deferred", "unaudited")


def write(database: Database, names: Iterable[str] | None = None) -> Iterator[bytes]:
    """The lines of some streams, or of the whole store, as they are at one moment."""
    total = check = 0
    with database.reading():
        for content in _contents(database, names):
            line = encode(content).encode()
            total, check = total + 1, crc32(line, check)
            yield line + b"\n"
    yield encode({"lines": total, "crc": check}).encode() + b"\n"


def _contents(database: Database, names: Iterable[str] | None) -> Iterator[dict[str, Any]]:
    whole = names is None
    settings = {"settings": database.settings()} if whole else {}
    yield {"kind": _KIND, "version": _VERSION, **settings}
    for name in database.names() if names is None else names:
        saved = database.load(name, claim=False)
        if saved is None:
            raise StateError(f"there is no stream {quoted(name)}")
        fields = ("controller", "first", "state", "overview", "predictions")
        yield {"stream": name, **{field: getattr(saved, field) for field in fields}}
        for part in saved.parts:
            yield {"part": part}
        after = -1
        while rows := database.history(name, after, _SOME):
            for row in rows:
                yield {"row": row}
            after = rows[-1].number
        for notice in reversed(database.alarms(_MOST, name)):
            yield {"alarm": notice.alarm, "made": notice.made}


def read(
    database: Database, lines: Iterable[bytes], settings: dict[str, Any], name: str | None = None,
    *, whole: bool = False,
) -> list[str]:  # fmt: skip
    """Writes streams from lines into the batch that is open; their names.

    `settings` are those of the store, unless the lines are a `whole` one and bring them along.
    `name` is what a single stream is to be called.
    """
    taken = list[str]()
    source = _checked(lines)
    first = next(source, {})
    if first.get("kind") != _KIND or first.get("version") != _VERSION:
        raise DataError(f"the first line must say {_KIND!r}, version {_VERSION}: it is no export")
    if whole:
        if "settings" not in first:
            raise DataError("these are single streams: import them; a whole store is restored")
        database.set(first["settings"])
        settings = settings | {key: loads(text) for key, text in first["settings"].items()}
    stream: _Arriving | None = None
    try:
        for content in source:
            if "stream" in content:
                if stream is not None:
                    stream.end()
                if name is not None and taken:
                    raise DataError("the lines have several streams: a name can be given to one")
                stream = _Arriving(database, settings, content, name)
                taken.append(stream.change.name)
            elif stream is None:
                raise DataError("a stream must come first")
            else:
                stream.take(content)
        if stream is not None:
            stream.end()
    except SetpointError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(f"the export is damaged: {error!r}") from error
    return taken


class _Arriving:
    """A stream whose lines come in: written as they come, and tried out when it is whole."""

    def __init__(
        self,
        database: Database,
        settings: dict[str, Any],
        content: dict[str, Any],
        name: str | None,
    ) -> None:
        self.database, self.settings = database, settings
        self.name = name_of(content["stream"] if name is None else name)
        if database.load(self.name, claim=False) is not None:
            raise StateError(
                f"there is a stream {quoted(self.name)} already: give another name, or delete it"
            )
        self.held = held_from(content["controller"])
        live = living(self.name, self.held, settings, None)
        self.change = Change(
            self.name, live.begins, True, content["controller"], content["state"],
            content["overview"], content["predictions"], 0.0, first=content["first"],
        )  # fmt: skip
        self.rows, self.waiting = list[Row](), list[Row]()
        self.saved = Saved(
            self.change.controller, self.change.first, self.change.state, self.change.overview,
            self.change.predictions, self.change.epoch, self.waiting, [],
        )  # fmt: skip

    def take(self, content: dict[str, Any]) -> None:
        """Takes in a line."""
        if "part" in content:
            self.saved.parts.append(Part._make(content["part"]))
        elif "row" in content:
            self.rows.append(row := _row(content["row"], self.held))
            if row.ended is None:
                self.waiting.append(row)
            if len(self.rows) >= _SOME:
                self._write()
        else:
            if {*loads(content["alarm"])} != {*Alarm._fields} or type(content["made"]) is not float:
                raise ValueError(f"no alarm is {content['alarm']}")
            self._write(alarms=[content["alarm"]], time=content["made"])

    def _write(self, **values: Any) -> None:
        self.database.write([self.change._replace(made=self.rows, **values)])
        self.change, self.rows = self.change._replace(new=False), []

    def end(self) -> None:
        """Writes the rest; a stream that could not go on is refused.

        Its overview is worked out again: lists of streams rely on it.
        """
        live = living(self.name, self.held, self.settings, self.saved)
        live.time = float(loads(self.saved.overview)["at"])
        self.change = self.change._replace(overview=live.change().overview)
        self._write(parts=self.saved.parts)


def _row(values: list[Any], held: Controller | Terms) -> Row:
    """A prediction that can be read again."""
    row, gate = Row._make(values), isinstance(held, Terms)
    risks = len(held.names) if isinstance(held, Terms) else len(held.risks)
    shown = None if gate else from_text(row.receipt)[2]
    _ = described(shown), id_from(row.id), loads(row.y or "0")
    losses = losses_of(row, risks)
    kinds = [type(value) for value in (row.number, row.made, row.closed or 0.0, row.covered or 0)]
    if (
        kinds != [int, float, float, int]
        or row.ended not in _ENDS
        or any(len(each) != risks for each in losses)
        or not all(isinstance(part, float | int | None) for each in losses for part in each)
    ):
        raise ValueError(f"prediction {row.number} cannot be read")
    return row


def _checked(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """What the lines say, but for the last one, which must fit them."""
    total = check = 0
    for line in lines:
        try:
            content = loads(line)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise DataError(f"line {total + 1:,} is no JSON object: the export is damaged")
        if "crc" in content:
            if content != {"lines": total, "crc": check}:
                raise DataError("the lines do not fit their checksum: the export is damaged")
            return
        yield content
        total, check = total + 1, crc32(line.strip(), check)
    raise DataError(f"the lines end after {total:,}, before the last one: the export is cut")


@contextmanager
def lines_of(lines: Iterable[bytes] | str | os.PathLike[str]) -> Iterator[Iterable[bytes]]:
    """The lines of a file, or those that are given."""
    if isinstance(lines, str | os.PathLike):
        with open(lines, "rb") as file:
            yield file
    else:
        yield lines
