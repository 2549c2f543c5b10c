"""The streams of one bucket, and their packed form: all its states in one block of bytes.

Nothing here knows an engine. Two letters, the version, a header in JSON, then plain arrays.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from setpoint.bulk.states import States
from setpoint.controller import Controller
from setpoint.errors import StateError

__all__ = ["VERSION", "Bucket", "Ids", "Receipts", "header_of", "matches", "pack", "unpack"]

Array = np.ndarray[Any, Any]

VERSION = 1
"""The version of the packed form, its third byte."""

_MAGIC = b"sp"


class Receipts(NamedTuple):
    """What waits in a bucket, as arrays: whose it is, its id and time, and what was shown."""

    place: Array
    id: Array
    time: Array
    lower: Array
    upper: Array
    lam: Array
    leader: Array
    reading: Array

    def taken(self, which: Array) -> "Receipts":
        """Some of them."""
        return Receipts(*(array[..., which] for array in self))


class Ids(NamedTuple):
    """Ids by key; with a label where it came before its prediction."""

    place: Array
    id: Array
    time: Array
    y: Array

    def taken(self, which: Array) -> "Ids":
        """Some of them."""
        return Ids(*(array[which] for array in self))

    def joined(self, place: Array, id: Array, time: Array, y: Array) -> "Ids":
        """These and others."""
        both = zip(self, (place, id, time, y), strict=True)
        return Ids(*(np.append(mine, other) for mine, other in both))


@dataclass
class Bucket:
    """The streams of a bucket, unpacked.

    Parameters
    ----------
    keys
        The keys, whole numbers or texts.
    vectors, rest
        Their states, one column for each: see `bulk.vectors`.
    last
        The time of the last prediction of each.
    clock
        The largest time that came.
    waiting
        Predictions without a label.
    early
        Labels without a prediction.
    closed
        Ids that may come again and are to change nothing.
    """

    keys: Array
    vectors: Array
    rest: Array
    last: Array
    clock: int
    waiting: Receipts
    early: Ids
    closed: Ids

    @classmethod
    def empty(cls, vectors: Array, rest: Array, readings: int) -> "Bucket":
        """A bucket without keys; the arrays tell how many numbers a state has."""
        numbers, floats = np.empty(0, np.int64), np.empty(0)
        reading = np.empty((readings, 0))
        waiting = Receipts(numbers, numbers, numbers, floats, floats, floats, numbers, reading)
        ids = Ids(numbers, numbers, numbers, floats)
        least = int(np.iinfo(np.int64).min)
        return cls(numbers, vectors[:, :0], rest[:, :0], numbers, least, waiting, ids, ids)

    def states(self, controller: Controller) -> States:
        """The states of all keys, each made when it is asked for."""
        return States(controller, self.keys.tolist(), self.vectors, self.rest)

    def without(self, gone: Array) -> "Bucket":
        """The bucket without the keys in some places."""
        if not len(gone):
            return self
        keep = np.ones(len(self.keys), bool)
        keep[gone] = False
        place = np.cumsum(keep) - 1

        def moved(table: Any) -> Any:
            part = table.taken(keep[table.place])
            return part._replace(place=place[part.place])

        return Bucket(
            self.keys[keep], self.vectors[:, keep], self.rest[:, keep], self.last[keep],
            self.clock, moved(self.waiting), moved(self.early), moved(self.closed),
        )  # fmt: skip


def pack(bucket: Bucket, header: Mapping[str, Any]) -> bytes:
    """A bucket as bytes, with what the header says of it."""
    parts: dict[str, Array] = {"keys": bucket.keys}
    if bucket.keys.dtype == object:
        words = [key.encode() for key in bucket.keys.tolist()]
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        parts = {"words": np.frombuffer(b"".join(words), np.uint8), "lengths": lengths}
    parts |= {"last": bucket.last, **_folded("vectors", bucket), **_folded("rest", bucket)}
    for name in ("waiting", "early", "closed"):
        table = getattr(bucket, name)
        if len(table.id):
            parts |= {f"{name}.{part}": array for part, array in table._asdict().items()}
    arrays = [(name, array.dtype.str, array.shape) for name, array in parts.items()]
    whole = {**header, "clock": bucket.clock, "arrays": arrays}
    text = json.dumps(whole, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    head = _MAGIC + bytes([VERSION, 0]) + len(text).to_bytes(4, "little") + text
    bodies = [array.tobytes() for array in parts.values()]
    return b"".join([head, *(body + b"\0" * (-len(body) % 8) for body in bodies)])


def _folded(name: str, bucket: Bucket) -> dict[str, Array]:
    """The rows in which keys differ; of the others, which are many, the one number."""
    whole = getattr(bucket, name)
    bits = np.ascontiguousarray(whole).view(np.int64)
    differ = (bits != bits[:, :1]).any(axis=1)
    return {f"{name}.first": whole[:, :1], f"{name}.rows": differ, name: whole[differ]}


def _unfolded(name: str, arrays: Mapping[str, Array], keys: int) -> Array:
    whole = np.repeat(arrays[f"{name}.first"], keys, axis=1)
    whole[arrays[f"{name}.rows"]] = arrays[name]
    return whole


def header_of(blob: bytes) -> dict[str, Any]:
    """What some bytes say of themselves before their arrays."""
    if blob[:2] != _MAGIC:
        raise StateError("these bytes are not the state of a bucket")
    if blob[2] != VERSION:
        raise StateError(
            f"the state of a bucket has version {blob[2]}, this setpoint reads version {VERSION}: "
            "read it with the setpoint that wrote it, and begin a query from what it read"
        )
    header: dict[str, Any] = json.loads(bytes(blob[8 : _body(blob)]))
    return header


def _body(blob: bytes) -> int:
    return 8 + int.from_bytes(blob[4:8], "little")


def unpack(blob: bytes, empty: Bucket) -> tuple[Bucket, dict[str, Any]]:
    """The bucket and the header in some bytes; `empty` has what is not there."""
    header, start = header_of(blob), _body(blob)
    try:
        arrays = {}
        for name, kind, shape in header["arrays"]:
            arrays[name] = np.frombuffer(blob, kind, int(np.prod(shape)), start).reshape(shape)
            start += arrays[name].nbytes + -arrays[name].nbytes % 8
        keys = arrays["keys"] if "keys" in arrays else _texts(arrays["words"], arrays["lengths"])

        def table(name: str, absent: Any) -> Any:
            parts = (arrays[f"{name}.{part}"] for part in absent._fields)
            return type(absent)(*parts) if f"{name}.id" in arrays else absent

        bucket = Bucket(
            keys, _unfolded("vectors", arrays, len(keys)), _unfolded("rest", arrays, len(keys)),
            arrays["last"], header["clock"],
            table("waiting", empty.waiting), table("early", empty.early),
            table("closed", empty.closed),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(f"the state of a bucket is damaged: {error}") from error
    return bucket, header


def _texts(words: Array, lengths: Array) -> Array:
    ends, text = np.cumsum(lengths).tolist(), words.tobytes()
    pieces = zip([0, *ends], ends, strict=False)
    return np.array([text[start:end].decode() for start, end in pieces], object)


def matches(places: Array, ids: Array, place: Array, id: Array) -> Array:
    """Where each (place, id) lies first among others, −1 where it does not.

    >>> matches(np.array([0, 0, 1]), np.array([5, 6, 5]), np.array([1, 0, 1]), np.array([5, 6, 7]))
    array([ 2,  1, -1])
    """
    if not len(places) or not len(place):
        return np.full(len(place), -1)
    both, name = np.concatenate([places, place]), np.concatenate([ids, id])
    order = np.lexsort((name, both))
    begins = np.ones(len(order), bool)
    begins[1:] = (np.diff(both[order]) != 0) | (np.diff(name[order]) != 0)
    first = order[np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))]
    found = np.empty(len(order), np.int64)
    found[order] = np.where(first < len(places), first, -1)
    return found[len(places) :]
