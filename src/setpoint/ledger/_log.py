"""The log of a ledger: events in batches with check sums, on the disk before they are answered.

A batch is a line `batch <first event> <events> <bytes> <check sum>` and a line of JSON. The last
one may be torn by a crash; it was never answered then, and is cut off. If it is damaged in another
way it may have been answered: it is cut off too, but told and kept aside. Damage before the last
batch does not come from a crash, and is an error.
"""

import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from setpoint._files import sync_folder, writing
from setpoint.errors import StateError

__all__ = ["Batch", "Log", "batches", "damaged_end"]

_HEAD = re.compile(rb"(batch (\d+) (\d+) (\d+)) ([0-9a-f]{8})\n")
_LONGEST_HEAD = 100
_OLD = re.compile(rb"[0-9a-f]{8} \[")
"""How a log of format 1 begins: there every event had its own check sum."""


class Batch(NamedTuple):
    """Events that were forced to the disk together, and where their bytes end."""

    first: int
    events: list[Any]
    end: int


class Log:
    """A log that is open for more events.

    Parameters
    ----------
    path
        Its file; made if there is none.
    end
        How many bytes of it count; the rest is cut off.
    """

    def __init__(self, path: Path, end: int) -> None:
        self.path, self.size = path, end
        with writing(path.parent):
            # Unbuffered: a write that failed must leave nothing that closing would write after all.
            self._file: IO[bytes] = open(path, "ab", buffering=0)  # noqa: SIM115
            try:
                if os.fstat(self._file.fileno()).st_size != end:
                    self._file.truncate(end)
                    os.fsync(self._file.fileno())
            except BaseException:
                self.close()
                raise
        sync_folder(path.parent)

    def append(self, first: int, events: list[Any]) -> None:
        """Forces a batch to the disk; if that fails, the file is cut back to what it was."""
        body = json.dumps(events).encode() + b"\n"
        head = b"batch %d %d %d" % (first, len(events), len(body))
        data = b"%s %08x\n%s" % (head, zlib.crc32(body, zlib.crc32(head)), body)
        left = memoryview(data)
        try:
            with writing(self.path.parent):
                while left:
                    left = left[self._file.write(left) :]
                os.fsync(self._file.fileno())
        except BaseException:
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), self.size)
            raise
        self.size += len(data)

    def close(self) -> None:
        """Lets the file go."""
        with suppress(OSError):
            self._file.close()


def batches(path: Path, *, last: bool) -> Iterator[Batch]:
    """The batches of a log in order.

    `last` says that nothing comes after this log, so that a batch at its end may be torn.
    """
    with open(path, "rb") as file:
        if _OLD.match(file.read(10)):
            file.seek(0)
            yield from _old_batches(file, path, last)
            return
        file.seek(0)
        end, line = 0, 1
        while head := file.readline(_LONGEST_HEAD):
            found = _body(file, head)
            if found is None:
                if not last or _goes_on(file, end + 1):
                    raise StateError(
                        f"{path} is damaged in line {line:,}, and events after it were answered: "
                        "restore the folder from a copy"
                    )
                return
            first, body = found
            end, line = file.tell(), line + 2
            yield Batch(first, json.loads(body), end)


def damaged_end(path: Path, end: int) -> bytes:
    """What comes after the last good batch of a log, if it is more than a write cut short.

    A write that was cut short ends without a line's end or in the middle of its first line's
    promise, and where blocks were allotted and never written, in zeros.
    """
    if not path.exists():
        return b""
    with open(path, "rb") as file:
        old = _OLD.match(file.read(10))
        file.seek(end)
        left = file.read()
    head, newline, body = left.partition(b"\n")
    found = None if old else _HEAD.fullmatch(head + newline)
    if found is None:
        return left if newline else b""
    whole = len(body) >= int(found[4]) and not body.endswith(b"\0")
    return left if whole or b"\n" in body else b""


def _body(file: IO[bytes], head: bytes) -> tuple[int, bytes] | None:
    """The number of the first event of a batch, and its events; None if it is damaged."""
    found = _HEAD.fullmatch(head)
    if found is None:
        return None
    left = os.fstat(file.fileno()).st_size - file.tell()
    body = file.read(min(int(found[4]), left))
    if zlib.crc32(body, zlib.crc32(found[1])) != int(found[5], 16):
        return None
    return int(found[2]), body


def _goes_on(file: IO[bytes], start: int) -> bool:
    """Whether a batch begins after a damaged one, which then was on the disk and answered."""
    file.seek(start)
    return any(_HEAD.fullmatch(line) for line in file)


def _old_batches(file: IO[bytes], path: Path, last: bool) -> Iterator[Batch]:
    """The events of a log of format 1, each as a batch of its own."""
    end = 0
    for line, record in enumerate(file, 1):
        check, _, text = record.rstrip(b"\n").partition(b" ")
        if not record.endswith(b"\n") or b"%08x" % zlib.crc32(text) != check:
            if not last or file.read(1):
                raise StateError(
                    f"{path} is damaged in line {line:,}, and events after it were answered: "
                    "restore the folder from a copy"
                )
            return
        end += len(record)
        first, *event = json.loads(text)
        yield Batch(first, [event], end)
