"""The streams of one bucket, and their packed form: all its states in one block of bytes.

Nothing here knows an engine. Two letters, the version, a header in JSON, then plain arrays.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from setpoint.bulk.groups import Pairs
from setpoint.bulk.layout import Annexes, Layout
from setpoint.bulk.states import States
from setpoint.controller import Controller
from setpoint.errors import StateError

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]

VERSION = 1
"""The version of the packed form, its third byte."""

UPGRADES: dict[int, Callable[[dict[str, Any], Arrays], tuple[dict[str, Any], Arrays]]] = {}
"""How the header and arrays of a version become those of the next; none is old yet.

A bucket of an older version is read through all that follow, and written anew when rows touch it.
"""

_MAGIC = b"sp"


class Receipts(NamedTuple):
    """What waits in a bucket, as arrays: whose it is, its id and time, and what was shown.

    Ends and λ have a column for each member. `which` has the groups of its row, counted among those
    of its key, −1 for none, and `group_habit` the habits in each.
    """

    place: Array
    id: Array
    time: Array
    lower: Array
    upper: Array
    lam: Array
    leader: Array
    habit: Array
    reading: Array
    base: Array
    which: Array
    group_habit: Array


class Grouped(NamedTuple):
    """The groups of keys, key after key: their names as bytes, and their risks."""

    place: Array
    name: Array
    risks: Array


class Ids(NamedTuple):
    """Ids by key, each with a time and a number: the label, or whether it expired.

    Of several labels y has a row for each id.
    """

    place: Array
    id: Array
    time: Array
    y: Array


Table = TypeVar("Table", bound=Receipts | Ids | Grouped)
NAME = 120
"""How many bytes the name of a group may have."""


def taken(table: Table, which: Array) -> Table:
    """Some of what waits."""
    return type(table)(*(array[which] for array in table))


def joined(table: Table, other: Table) -> Table:
    """What waits in two tables, the second behind the first."""
    pairs = zip(table, other, strict=True)
    return type(table)(*(np.concatenate(pair) for pair in pairs))


def record(table: Receipts | Ids | Grouped) -> np.dtype[Any]:
    """One row of a table, but for whose it is."""
    columns = list(table._asdict().items())[1:]
    return np.dtype([(name, array.dtype, array.shape[1:]) for name, array in columns])


@dataclass
class Bucket:
    """The streams of a bucket, unpacked.

    Parameters
    ----------
    keys
        The keys, whole numbers or texts.
    vectors
        Their states, one row for each: see `bulk.layout`.
    annexes
        What else the corrections of some of them have learnt: see `bulk.layout`.
    last
        The time of the last prediction of each.
    clock
        The largest time that came.
    waiting
        Predictions without a label.
    early
        Labels without a prediction.
    closed
        Ids that may come again and are to change nothing; `y` is 1 where no label came in time.
    groups
        The groups that rows of the keys have named.
    """

    keys: Array
    vectors: Array
    annexes: Annexes
    last: Array
    clock: int
    waiting: Receipts
    early: Ids
    closed: Ids
    groups: Grouped

    @classmethod
    def empty(cls, layout: Layout, groups: int, labels: tuple[int, ...] = ()) -> "Bucket":
        """A bucket without keys: rows of so many groups, and labels of a shape."""
        numbers, floats, risks = np.empty(0, np.int64), np.empty(0), len(layout.risks)
        ends = np.empty((0, layout.rules.members))
        waiting = Receipts(
            numbers, numbers, numbers, ends, ends, ends, numbers, np.empty((0, risks)),
            np.empty((0, layout.family)), np.empty((0, layout.base)),
            np.empty((0, groups), np.int64), np.empty((0, groups, risks)),
        )  # fmt: skip
        closed = Ids(numbers, numbers, numbers, floats)
        early = closed._replace(y=np.empty((0, *labels)))
        own = np.empty((0, len(layout.group_fields)))
        return cls(
            numbers, np.empty((0, layout.size)), Annexes(0, layout.annex), numbers,
            int(np.iinfo(np.int64).min), waiting, early, closed,
            Grouped(numbers, np.empty(0, f"S{NAME}"), own),
        )  # fmt: skip

    def states(self, controller: Controller) -> States:
        """The states of all keys, each made when it is asked for."""
        place, names, risks = self.groups
        pairs = Pairs(place, [name.decode() for name in names.tolist()], risks, {})
        groups = pairs if len(place) else None
        return States(controller, self.keys.tolist(), self.vectors, self.annexes, groups)

    @property
    def _tables(self) -> tuple[Any, ...]:
        return self.waiting, self.early, self.closed, self.groups

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """States, annexes, what waits, is early and is closed: by key, and where each key's end."""
        count = len(self.keys)
        vectors = np.ascontiguousarray(self.vectors).view(np.int64)
        numbers = np.hstack([vectors, self.last[:, None]])
        yield numbers.reshape(-1), numbers.shape[1] * np.arange(count + 1)
        has = self.annexes.slots >= 0
        pool = self.annexes.pool[self.annexes.slots[has]]
        yield pool.reshape(-1), np.append(0, np.cumsum(pool.shape[1] * has))
        for table in self._tables:
            rows = taken(table, np.argsort(table.place, kind="stable"))
            records = np.empty(len(rows.place), record(table))
            for name in records.dtype.names or ():
                records[name] = getattr(rows, name)
            yield records, np.append(0, np.cumsum(np.bincount(rows.place, minlength=count)))

    def joined(
        self, keys: Array, clock: int, states: Sequence[bytes], annexes: Sequence[bytes],
        *tables: Any,
    ) -> "Bucket":  # fmt: skip
        """The bucket with other keys, of which `blocks` gave the bytes."""
        numbers = np.frombuffer(b"".join(states), np.int64).reshape(len(keys), -1)
        vectors = np.ascontiguousarray(numbers[:, :-1]).view(np.float64)
        added = Annexes(len(keys), self.annexes.pool.shape[1])
        for row, block in enumerate(annexes):
            added.put(row, np.frombuffer(block, np.float64).tolist())
        both: list[Any] = []
        for table, blocks in zip(self._tables, tables, strict=True):
            records = np.frombuffer(b"".join(blocks), record(table))
            counts = [len(block) // records.dtype.itemsize for block in blocks]
            place = np.repeat(len(self.keys) + np.arange(len(keys)), counts)
            columns = (records[name] for name in records.dtype.names or ())
            both.append(joined(table, type(table)(place, *columns)))
        stored = self.keys if len(self.keys) else self.keys.astype(keys.dtype)
        return Bucket(
            np.append(stored, keys), np.vstack([self.vectors, vectors]),
            self.annexes.joined(added), np.append(self.last, numbers[:, -1]),
            max(self.clock, clock), *both,
        )  # fmt: skip

    def without(self, gone: Array) -> "Bucket":
        """The bucket without the keys in some places."""
        if not len(gone):
            return self
        keep = np.ones(len(self.keys), bool)
        keep[gone] = False
        place = np.cumsum(keep) - 1

        def moved(table: Any) -> Any:
            part = taken(table, keep[table.place])
            return part._replace(place=place[part.place])

        return Bucket(
            self.keys[keep], self.vectors[keep], self.annexes.taken(np.flatnonzero(keep)),
            self.last[keep], self.clock, *map(moved, self._tables),
        )  # fmt: skip


def pack(bucket: Bucket, header: Mapping[str, Any]) -> bytes:
    """A bucket as bytes, with what the header says of it."""
    parts: dict[str, Array] = {"keys": bucket.keys}
    if bucket.keys.dtype == object:
        words = [key.encode() for key in bucket.keys.tolist()]
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        parts = {"words": np.frombuffer(b"".join(words), np.uint8), "lengths": lengths}
    parts |= {"last": bucket.last, **_folded(bucket)}
    if bucket.annexes.used[0]:
        parts |= {"slots": bucket.annexes.slots}
        parts |= {"annexes": bucket.annexes.pool[: bucket.annexes.used[0]]}
    for name in ("waiting", "early", "closed", "groups"):
        table = getattr(bucket, name)
        if len(table.place):
            parts |= {f"{name}.{part}": array for part, array in table._asdict().items()}
    return container({**header, "clock": bucket.clock}, parts)


def container(header: Mapping[str, Any], parts: Mapping[str, Array]) -> bytes:
    """A header and arrays by name as bytes."""
    arrays = [(name, array.dtype.str, array.shape) for name, array in parts.items()]
    whole = {**header, "arrays": arrays}
    text = json.dumps(whole, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    head = _MAGIC + bytes([VERSION, 0]) + len(text).to_bytes(4, "little") + text
    bodies: list[Any] = [head]
    for array in parts.values():  # views, not copies: buckets are large
        bodies += [np.ascontiguousarray(array).reshape(-1).view(np.uint8).data]
        bodies += [b"\0" * (-array.nbytes % 8)]
    return b"".join(bodies)


def _folded(bucket: Bucket) -> dict[str, Array]:
    """The numbers in which keys differ; of the others, which are many, the one of all."""
    vectors = np.ascontiguousarray(bucket.vectors)
    bits = vectors.view(np.int64)
    differ = (bits != bits[:1]).any(axis=0)
    return {"first": vectors[:1], "differ": differ, "vectors": vectors[:, differ]}


def _unfolded(arrays: Mapping[str, Array], keys: int) -> Array:
    first, differ = arrays["first"], arrays["differ"]
    whole = np.empty((keys, len(differ)))
    whole[:, differ], whole[:, ~differ] = arrays["vectors"], first[:, ~differ]
    return whole


def header_of(blob: bytes) -> dict[str, Any]:
    """What some bytes say of themselves."""
    return contents(blob)[0]


def contents(blob: bytes) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays in some bytes, as this version has them."""
    if blob[:2] != _MAGIC:
        raise StateError("these bytes are not the state of a bucket")
    if blob[2] > VERSION or any(old not in UPGRADES for old in range(blob[2], VERSION)):
        raise StateError(
            f"the state of a bucket has version {blob[2]}, this setpoint reads version {VERSION}"
        )
    start = 8 + int.from_bytes(blob[4:8], "little")
    try:
        header: dict[str, Any] = json.loads(bytes(blob[8:start]))
        arrays: Arrays = {}
        for name, kind, shape in header["arrays"]:
            arrays[name] = np.frombuffer(blob, kind, int(np.prod(shape)), start).reshape(shape)
            start += arrays[name].nbytes + -arrays[name].nbytes % 8
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(f"the state of a bucket is damaged: {error}") from error
    for old in range(blob[2], VERSION):
        header, arrays = UPGRADES[old](header, arrays)
    return header, arrays


def unpack(blob: bytes, empty: Bucket) -> tuple[Bucket, dict[str, Any]]:
    """The bucket and the header in some bytes; `empty` has what is not there."""
    header, arrays = contents(blob)

    def table(name: str, absent: Any) -> Any:
        parts = (arrays[f"{name}.{part}"] for part in absent._fields)
        return type(absent)(*parts) if f"{name}.place" in arrays else absent

    try:
        keys = arrays["keys"] if "keys" in arrays else _texts(arrays["words"], arrays["lengths"])
        annexes = Annexes(len(keys), empty.annexes.pool.shape[1])
        if "slots" in arrays:
            annexes = Annexes.restored(
                arrays["annexes"], arrays["slots"], len(keys), annexes.pool.shape[1]
            )
        bucket = Bucket(
            keys, _unfolded(arrays, len(keys)), annexes, arrays["last"], header["clock"],
            table("waiting", empty.waiting), table("early", empty.early),
            table("closed", empty.closed), table("groups", empty.groups),
        )  # fmt: skip
    except (ValueError, KeyError) as error:
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
