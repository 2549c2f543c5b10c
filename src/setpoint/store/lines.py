"""Events from lines of JSON as they arrive, and their answers as lines."""

import codecs
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

from setpoint.errors import InputError
from setpoint.store import Store
from setpoint.store.events import Unread

try:  # several times as fast, and needed for nothing else
    from msgspec.json import Decoder, Encoder

    _quick: Any = Decoder().decode
    _encode: Any = Encoder().encode
except ImportError:
    _quick = _encode = None

_LONGEST, _CHUNK = 1 << 20, 1 << 18
_text = json.JSONEncoder(check_circular=False, separators=(",", ":")).encode


def serve(store: Store, source: BinaryIO, sink: BinaryIO) -> None:
    """Answers JSON Lines with JSON Lines until the source ends.

    Whatever has arrived is taken in together and committed once, so a single line is answered at
    once and a flood of them is not slowed by the disk. Every answer has the number of its `line`.
    A line that is no event is answered by its error.
    """
    for numbers, events in _arrivals(source):
        if not events:
            continue
        answers = zip(numbers, store.apply(events), strict=True)
        lines = [b'{"line":%d,%b\n' % (number, line(answer)[1:]) for number, answer in answers]
        sink.write(b"".join(lines))
        sink.flush()


def line(answer: dict[str, Any] | list[dict[str, Any]]) -> bytes:
    """An answer as JSON, or a list of them."""
    if _encode is not None:
        try:
            return bytes(_encode(answer))
        except (OverflowError, UnicodeEncodeError):  # a long number, or half a character
            pass
    return _text(answer).encode()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object, each of whose keys comes once."""
    value = dict(pairs)
    if len(value) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise InputError(f"an object must have each key once, got {json.dumps(twice)} twice")
    return value


_decode = json.JSONDecoder(object_pairs_hook=_once).decode


def event(line: bytes) -> Any:
    """What a line says, or why it is no event.

    >>> event(b'{"id": 1, "y": 2, "y": 3}').reason
    'an object must have each key once, got "y" twice'
    """
    value = _quickly(line)
    # With as many colons as keys none came twice.
    return value if type(value) is dict and line.count(b":") == len(value) else _exactly(line)


def array(body: bytes) -> list[Any] | Unread:
    """What a list of events says, or why it is none.

    >>> array(b'[{"id": 1, "y": 2}]')
    [{'id': 1, 'y': 2}]
    """
    value = _quickly(body)
    keys = [len(one) for one in value if type(one) is dict] if type(value) is list else [-1]
    if body.count(b":") != sum(keys):
        value = _exactly(body)
    return (
        value if isinstance(value, list | Unread) else Unread("the body must be a list of events")
    )


def _quickly(text: bytes) -> Any:
    """What a text says; None where only `_exactly` knows: it may hold NaN, or be no JSON."""
    if _quick is None:
        return None
    try:
        return _quick(text)
    except (ValueError, RecursionError):
        return None


def _exactly(line: bytes) -> Any:
    """What a text says, as the standard library reads it, with each key once."""
    try:
        return _decode(line.decode())
    except json.JSONDecodeError as error:
        return Unread(f"not JSON: {error.msg} at character {error.pos + 1:,}")
    except UnicodeDecodeError as error:
        return Unread(f"not JSON: byte {error.start + 1:,} is no text in UTF-8")
    except InputError as error:
        return Unread(str(error))
    except ValueError:  # the only other: Python does not read numbers of thousands of digits
        return Unread("a whole number may have 4,300 digits")
    except RecursionError:
        return Unread("an event must be made of numbers, text and short lists, got deep ones")


def _arrivals(source: BinaryIO) -> Iterator[tuple[list[int], list[Any]]]:
    """The numbers of the lines that have arrived, and their events; blank lines have none."""
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
                events.append(Unread(f"a line may have {_LONGEST:,} bytes"))
            elif line.strip():
                events.append(event(line))
            else:
                continue
            numbers.append(number)
            long = False
        if len(rest) > _LONGEST:
            rest, long = b"", True
        yield numbers, events
        if not chunk:
            return
