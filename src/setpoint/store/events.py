"""Events from outside, checked, and answers in JSON's own types."""

import json
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii
from math import inf, isfinite
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from setpoint.errors import InputError
from setpoint.parts import Capability
from setpoint.sets import Bands, Interval, LabelSet, Levels
from setpoint.sets.paths import Path
from setpoint.sets.wrapping import SidedInterval
from setpoint.state import Id

_VERBS = ("prediction", "y", "score", "wrong", "loss", "drop", "certificate")
_BESIDE = ("groups", "features")
_KEYS = ("stream", "id", *_VERBS, *_BESIDE, "step")
_FLAGS = ("drop", "certificate")
_ALLOWED = frozenset(_KEYS)
_PLAIN = frozenset((float, int))
_LONGEST, _MOST_BITS, _MOST_TEXT, _SMALL = 200, 3000, 2500, 1 << 63
_MOST_GROUPS = 1000


class Unread(NamedTuple):
    """What stands for an event that could not be read, why, and what was sent if that is known."""

    reason: str
    sent: Any = None


def checked(event: Any, stream: str = "") -> tuple[str, Id | None]:
    """The stream and the id of an event that makes sense; `stream` if it names none."""
    if isinstance(event, Unread):
        raise InputError(event.reason)
    if type(event) is not dict and not isinstance(event, Mapping):
        raise InputError(
            f"an event must be an object with {', '.join(_VERBS)}, got {quoted(event)}"
        )
    if not event.keys() <= _ALLOWED:
        strange = next(key for key in event if key not in _ALLOWED)
        raise InputError(f"an event may have {', '.join(_KEYS)}, got {quoted(strange)}")
    if not event.keys().isdisjoint(_FLAGS):
        for key in _FLAGS:
            if key in event and not isinstance(event[key], bool):
                raise InputError(f"{key} must be true or false, got {quoted(event[key])}")
    if not (
        not event.keys().isdisjoint(_VERBS[:5]) or event.get("drop") or event.get("certificate")
    ):
        raise InputError(f"an event needs one of {', '.join(_VERBS)}, got {quoted(event)}")
    if "prediction" not in event and not event.keys().isdisjoint(_BESIDE):
        raise InputError(f"groups and features go with a prediction, got {quoted(event)}")
    if "step" in event and ("y" not in event or "prediction" in event):
        raise InputError(f"step goes with the y of one step of a path, got {quoted(event)}")
    name, id = event.get("stream"), event.get("id")
    return stream if name is None else name_of(name), None if id is None else id_of(id)


def name_of(value: Any) -> str:
    """The name of a stream: text, or a whole number as text."""
    name = str(_id(value, "the name of a stream"))
    if name in (".", ".."):
        raise InputError(f"the name of a stream must not be . or .., got {name}: no path holds it")
    if "\0" in name:
        raise InputError(f"the name of a stream must be whole characters, got {quoted(value)}")
    return name


def id_of(value: Any) -> Id:
    """An id: text, a whole number, or a list of them, which is a tuple in Python."""
    if type(value) is not list and type(value) is not tuple:
        return _id(value, "an id")
    if not value:
        raise InputError("an id that is a list must have a part, got []")
    id = tuple([_id(part, "a part of an id") for part in value])
    if len(id_text(id)) > _MOST_TEXT:  # PostgreSQL has no room for more in an index
        raise InputError(f"an id may have {_MOST_TEXT:,} characters as JSON, got {quoted(value)}")
    return id


def groups_of(value: Any) -> tuple[Id, ...] | None:
    """The groups that a row belongs to: a list of ids; None if it names none."""
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise InputError(f'groups must be a list of names, such as ["rain"], got {quoted(value)}')
    if len(value) > _MOST_GROUPS:
        raise InputError(f"a row may belong to {_MOST_GROUPS:,} groups, got {len(value):,}")
    return tuple(map(id_of, value))


def _id(value: Any, what: str) -> int | str:
    kind = type(value)
    if kind is int and -_SMALL < value < _SMALL:
        return value  # type: ignore[no-any-return]
    if isinstance(value, str):
        _text(value, what)
        if len(value) > _LONGEST:
            raise InputError(
                f"{what} may have {_LONGEST:,} characters, got {len(value):,}: {quoted(value)}"
            )
        return str(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        if (whole := int(value)).bit_length() > _MOST_BITS:
            raise InputError(f"{what} that is a number may have 900 digits, got a longer one")
        return whole
    raise InputError(f"{what} must be a whole number or text, got {quoted(value)}")


def _text(value: str, what: str) -> str:
    """Refuses text with half a character, which no answer could hold."""
    if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
        raise InputError(f"{what} must be whole characters, got {quoted(value)}")
    return value


def id_text(id: Id) -> str:
    """An id as JSON: 7 and "7" differ, and a number may be of any size.

    >>> id_text((3, "north"))
    '[3, "north"]'
    """
    if isinstance(id, tuple):
        return f"[{', '.join(map(id_text, id))}]"
    return encode_basestring_ascii(id) if isinstance(id, str) else str(id)


def id_from(text: str) -> Id:
    """The id that `id_text` wrote."""
    id = json.loads(text)
    return tuple(id) if isinstance(id, list) else id


def plain(value: Any, what: str, *, flags: bool = False) -> Any:
    """A prediction or a label in JSON's own types; `flags` says whether it may hold true."""
    kind = type(value)
    if kind is float or kind is int or value is None or (kind is bool and flags):
        return value
    if kind is str:
        return _text(value, what)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [v if type(v) in _PLAIN else plain(v, what, flags=flags) for v in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), what, flags=True)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {_text(key, what): plain(each, what, flags=flags) for key, each in value.items()}
    raise InputError(f"{what} must be made of numbers, text and lists, got {quoted(value)}")


def label_of(y: Any) -> Any:
    """A label in JSON's own types."""
    if isinstance(y, bool):
        raise InputError(f"y must be a number, text or a list, got {quoted(y)}")
    return plain(y, "a label", flags=True)


def refused(error: Exception) -> dict[str, str]:
    """What is answered to an event that was refused."""
    if isinstance(error, RecursionError):
        error = InputError("an event must be made of numbers, text and short lists, got deep ones")
    message = str(error)
    short = message if len(message) <= 1000 else f"{message[:999]}…"
    return {"error": short, "kind": type(error).__name__}


def described(shown: Any) -> dict[str, Any]:
    """A set in JSON's own types: an end that is open is null, and so are those of an empty set."""
    if isinstance(shown, Bands):
        found = described(shown.interval)
        known = {f"{p:g}": q if isfinite(q) else None for p, q in shown.quantiles.items()}
        return {**found, "quantiles": known}
    if isinstance(shown, (Interval, SidedInterval)):
        lower, upper = shown.lower, shown.upper
        if -inf < lower <= upper < inf:
            return {"lower": lower, "upper": upper}
        answer: dict[str, Any] = {
            "lower": lower if isfinite(lower) else None,
            "upper": upper if isfinite(upper) else None,
        }
        full = lower == -inf and upper == inf
    elif isinstance(shown, Path):
        return _path(shown)
    elif isinstance(shown, LabelSet):
        answer, full = {"labels": list(shown.labels)}, shown.full
    elif isinstance(shown, Levels):
        return {"sets": [described(part) for part in shown.parts]}
    else:
        return {"set": str(shown)}
    if shown.empty:
        answer["empty"] = True
    elif full:
        answer["full"] = True
    return answer


def _path(shown: Path) -> dict[str, Any]:
    """The band and the intervals of a path; of several levels `levels` has those within it."""
    ends = {"lower": shown.lower, "upper": shown.upper}
    answer: dict[str, Any] = {
        name: [end if isfinite(end) else None for end in values.tolist()]
        for name, values in ends.items()
    }
    if shown.total:
        answer["total"] = {str(steps): described(part) for steps, part in shown.total.items()}
    for kind in ("maximum", "minimum"):
        if (part := getattr(shown, kind)) is not None:
            answer[kind] = described(part)
    if shown.inner:
        answer["levels"] = {f"{path.coverage:g}": _path(path) for path in shown.inner}
    if {None} == {*answer["lower"], *answer["upper"]}:
        answer["full"] = True
    return answer


@runtime_checkable
class Contains(Protocol, metaclass=Capability):
    """A set that says what lies in it."""

    def contains(self, y: Any) -> bool: ...


def flag(value: int | None) -> bool | None:
    """A flag as the database keeps it."""
    return None if value is None else bool(value)


def quoted(value: Any) -> str:
    """A value as JSON, cut to a length that can be read."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = "a number" if isinstance(value, int) else f"a value of {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:199]}…"
