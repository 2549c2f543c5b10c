"""Events from lines of JSON, as many at a time as have arrived."""

import codecs
import json
from collections.abc import Iterator
from typing import Any, BinaryIO

__all__ = ["Unread", "arrivals"]

_CHUNK, _LONGEST = 1 << 16, 1 << 20
_DECODER = json.JSONDecoder()


class Unread(str):
    """Why a line is no event."""

    __slots__ = ()


def _event(line: bytes) -> Any:
    """What a line says, or an `Unread`."""
    try:
        return _DECODER.decode(line.decode())
    except json.JSONDecodeError as error:
        return Unread(f"not JSON: {error.msg} at character {error.pos + 1:,}")
    except UnicodeDecodeError as error:
        return Unread(f"not JSON: byte {error.start + 1:,} is no text in UTF-8")
    except ValueError:  # the only other: Python does not read numbers of thousands of digits
        return Unread("a whole number may have 4,300 digits")
    except RecursionError:
        return Unread("an event must be made of numbers, text and short lists, got deep ones")


_TOO_LONG = Unread(f"a line may have {_LONGEST:,} bytes")


def arrivals(source: BinaryIO) -> Iterator[tuple[list[int], list[Any], int]]:
    """The numbers of the lines that have arrived, their events, and how many lines there were.

    Blank lines are counted and have no event.
    """
    number, rest, long = 0, b"", False
    while True:
        chunk = source.read1(_CHUNK)  # type: ignore[attr-defined]
        *lines, rest = (rest + chunk).split(b"\n")
        if not chunk and (rest or long):
            lines, rest = [*lines, rest], b""
        numbers: list[int] = []
        events: list[Any] = []
        for line in lines:
            number += 1
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if long or len(line) > _LONGEST:
                events.append(_TOO_LONG)
            elif line.strip():
                events.append(_event(line))
            else:
                continue
            numbers.append(number)
            long = False
        if len(rest) > _LONGEST:
            rest, long = b"", True
        yield numbers, events, number
        if not chunk:
            return
