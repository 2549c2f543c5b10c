"""Events and answers in JSON's own words, and errors that a client can read."""

import json
import re
from collections.abc import Iterator, Mapping
from math import inf, isfinite
from typing import Any

from setpoint.errors import InputError
from setpoint.ledger._lines import Unread
from setpoint.receipts import Id

__all__ = ["described", "plain", "quoted", "read", "told"]

_KEYS = ("stream", "id", "prediction", "y", "drop", "certificate")
_VERBS = ("prediction", "y", "drop", "certificate")
_ALLOWED, _FLAGS = frozenset(_KEYS), frozenset(("drop", "certificate"))
_ECHOED = 200
"""How many characters of a value an error shows."""
_LONGEST_ERROR = 1000
_LONGEST_NAME = 1000
_LARGEST_ID = 2**63 - 1
_MOST_BITS = 1023
_REWORDED = (
    (re.compile(r"(?<=got )(?:None|-?nan|-?inf)\b"), lambda found: _as_json(found[0])),
    (re.compile(r"(?<=got )\([-+.,\w ]*\)"), lambda found: _as_json(f"[{found[0][1:-1]}]")),
    (re.compile(r"; Stream\(.*$"), ""),
    (re.compile(r"by update\(y, id=…\)"), "by its id"),
    (re.compile("call predict first"), "send a prediction first"),
)
"""What only a program in Python would understand."""


def read(event: Any) -> tuple[str, Id | None]:
    """The stream and the id of an event that makes sense; a stream without a name is "" here."""
    if isinstance(event, Unread):
        raise InputError(event)
    if not isinstance(event, dict):
        raise InputError(
            f"an event must be an object with {', '.join(_VERBS)}, got {quoted(event)}"
        )
    if not event.keys() <= _ALLOWED:
        strange = next(key for key in event if key not in _ALLOWED)
        raise InputError(f"an event may have {', '.join(_KEYS)}, got {quoted(strange)}")
    for key in _FLAGS & event.keys():
        if not isinstance(event[key], bool):
            raise InputError(f"{key} must be true or false, got {quoted(event[key])}")
    if not ("prediction" in event or "y" in event or event.get("drop") or event.get("certificate")):
        raise InputError(f"an event needs one of {', '.join(_VERBS)}, got {quoted(event)}")
    if isinstance(event.get("y"), bool):
        raise InputError(f"y must be a number, text or a list, got {quoted(event['y'])}")
    name = _name(event.get("stream"), "the name of a stream")
    return "" if name is None else str(name), _name(event.get("id"), "an id")


def _name(value: Any, what: str) -> Id | None:
    """An id or the name of a stream; None if there is none."""
    if value is None:
        return None
    if type(value) is int and -_LARGEST_ID <= value <= _LARGEST_ID:
        return value
    if isinstance(value, str):
        if len(value) > _LONGEST_NAME:
            raise InputError(
                f"{what} may have {_LONGEST_NAME:,} characters, got {len(value):,}: {quoted(value)}"
            )
        return str(value)
    index = None if isinstance(value, bool) else getattr(value, "__index__", None)
    if index is None:
        raise InputError(f"{what} must be a whole number or text, got {quoted(value)}")
    number = int(index())
    if abs(number) > _LARGEST_ID:
        raise InputError(
            f"{what} must lie between -{_LARGEST_ID} and {_LARGEST_ID} if it is a number, got "
            f"{quoted(number)}: longer ones are written as text"
        )
    return number


def plain(value: Any) -> Any:
    """A prediction or a label in JSON's own types, as it is applied again after a crash."""
    if value is None or isinstance(value, (float, str)):
        return value
    if isinstance(value, int):
        if value.bit_length() > _MOST_BITS:
            raise InputError(f"a number must be below 1e308, got {quoted(value)}")
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(each) for key, each in value.items()}
    raise InputError(
        f"an event must be made of numbers, text, lists and objects, got {quoted(value)}"
    )


def described(shown: Any) -> dict[str, Any]:
    """A set in JSON's own words: an end that is open is null, and so are those of an empty set."""
    if hasattr(shown, "parts") and not hasattr(shown, "lower"):
        return {"sets": [described(part) for part in shown.parts]}
    said: dict[str, Any] = {}
    if hasattr(shown, "lower"):
        ends = (("lower", shown.lower), ("upper", shown.upper))
        said = {name: end if isfinite(end) else None for name, end in ends}
        full = shown.lower == -inf and shown.upper == inf
    else:
        said = {"labels": list(shown.labels)}
        full = shown.full
    if shown.empty:
        said["empty"] = True
    elif full:
        said["full"] = True
    return said


def quoted(value: Any) -> str:
    """A value as JSON writes it, cut to a length that can be read."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a value of {type(value).__name__}" if not isinstance(value, int) else "a number"
    return _cut(text, _ECHOED)


def told(error: Exception, event: Any) -> str:
    """The message of an error, with the event's values as JSON writes them and not at length."""
    message = str(error)
    if isinstance(event, Mapping):
        for value in _values(event):
            shown = _shown(value)
            if shown is not None and shown in message:
                message = message.replace(shown, quoted(value))
    for pattern, said in _REWORDED:
        message = pattern.sub(said, message)
    return _cut(message, _LONGEST_ERROR)


def _values(event: Mapping[str, Any]) -> Iterator[Any]:
    """The values of an event and what is directly in them, the outer ones first."""
    yield from event.values()
    for value in event.values():
        if isinstance(value, Mapping):
            yield from (list(value.values()), list(value))
            yield from value.values()
        elif isinstance(value, list | tuple):
            yield from value[:_ECHOED]


def _shown(value: Any) -> str | None:
    """How Python writes a value, if JSON writes it in another way or it is long."""
    if isinstance(value, Mapping | list | tuple):
        return repr(value)
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, int) and abs(value) > _LARGEST_ID:
        return repr(value) if value.bit_length() < 14_000 else None
    return None


def _as_json(text: str) -> str:
    """Numbers, or a list of them, that Python wrote."""
    for word, said in (("None", "null"), ("nan", "NaN"), ("inf", "Infinity"), (",]", "]")):
        text = text.replace(word, said)
    return text


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
