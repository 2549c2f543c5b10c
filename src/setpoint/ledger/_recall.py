"""What was answered last, so that an event sent again is answered as it was the first time."""

import json
from itertools import islice
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from setpoint.ledger._words import described
from setpoint.receipts import Id, Receipt

__all__ = ["Answered", "Recall", "brief"]

_MOST = 10_000
_LARGE = 200
"""How many numbers or characters make a prediction or a label large."""
_LONGEST = 2_000


class Answered(NamedTuple):
    """A prediction that is closed: what it was in brief, the set shown, the label, the answer."""

    prediction: Any
    shown: dict[str, Any]
    y: Any
    said: dict[str, Any]


class Recall:
    """The last 10,000 predictions that were closed, in all streams of a ledger together.

    One that takes more than 2,000 characters of JSON is not kept, so this needs 20 MB at most, and
    5 MB where a prediction is an interval.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[tuple[str, Id], Answered | tuple[Receipt, Any, dict[str, Any]]] = {}

    def add(self, name: str, receipt: Receipt, y: Any, said: dict[str, Any]) -> None:
        """Keeps what a stream answered to a prediction and to its label."""
        held = self._held
        if _large(receipt.prediction) or _large(y):
            answered = _answered(receipt, y, said)
            if len(json.dumps(answered)) > _LONGEST:
                return
            held[name, receipt.id] = answered
        else:
            held[name, receipt.id] = (receipt, y, said)
        if len(held) >= _MOST + _MOST // 10:  # many at once: finding the first of a dict takes time
            for key in list(islice(held, _MOST // 10)):
                del held[key]

    def get(self, name: str, id: Id) -> Answered | None:
        """What was answered under an id of a stream, None if that is not known any more."""
        found = self._held.get((name, id))
        return found if found is None or isinstance(found, Answered) else _answered(*found)

    def content(self) -> list[Any]:
        """Everything it keeps, as lines of JSON."""
        return [json.dumps((*key, *(self.get(*key) or ()))) for key in self._held]

    @classmethod
    def restored(cls, content: list[Any]) -> "Recall":
        """What `content` gave."""
        made = cls()
        for line in content:
            name, id, *answered = json.loads(line)
            made._held[name, id] = Answered(*answered)
        return made


def brief(reading: Any) -> Any:
    """A prediction as a receipt holds it, short and plain, to be compared with another."""
    if reading is None or isinstance(reading, bool | int | float | str):
        return reading
    if isinstance(reading, tuple):
        return [brief(each) for each in reading]
    if isinstance(reading, np.ndarray):
        return f"{reading.dtype} {reading.shape} {crc32(reading.tobytes()):08x}"
    return type(reading).__name__


def _answered(receipt: Receipt, y: Any, said: dict[str, Any]) -> Answered:
    return Answered(brief(receipt.prediction), described(receipt.shown), y, said)


def _large(value: Any) -> bool:
    if type(value) is float:
        return False
    if isinstance(value, np.ndarray):
        return bool(value.size > _LARGE)
    if isinstance(value, tuple) and len(value) <= _LARGE:
        return any(map(_large, value))
    return hasattr(value, "__len__") and len(value) > _LARGE
