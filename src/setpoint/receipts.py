"""What waits for a label: receipts by id, and how those that no longer wait ended."""

import operator
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import numpy as np

from setpoint.errors import (
    AmbiguousReceipt,
    AnsweredReceipt,
    ExpiredReceipt,
    InputError,
    PendingFull,
    ReceiptError,
    UnknownReceipt,
)
from setpoint.state import Id

Array = np.ndarray[Any, Any]

_REMEMBERED = 5_000
"""How many closed ids are remembered at least, to tell a second label from an unknown id."""


class Receipt(NamedTuple):
    """A prediction that waits for its label: under which id, what was shown, and why.

    `prediction` is as its family read it, `lam` the λ of the set (a tuple where each risk has its
    own; NaN of one that is judged), `leader` the risk that asked for the largest, `habits` how many
    others each account expected to wait. `groups` has the groups of its row, each with habits of
    its own, `heard` what is known of a path whose labels come step by step.
    """

    id: Id
    prediction: Any
    shown: Any
    lam: Any
    leader: int = 0
    habits: tuple[float, ...] = (0.0,)
    groups: tuple[tuple[Id, tuple[float, ...]], ...] = ()
    heard: tuple[Any, ...] = ()


@dataclass(slots=True)
class Batch:
    """The receipts of one call of a fleet, as arrays: one entry for each prediction.

    `rows` are the places of the streams, −1 of one that was retired; `reading` is what the family
    reads, `base` what the correction will learn against, and `open` says what still waits. `which`
    has the groups of each, −1 for none, and `group_habit` a row for each place in it.
    """

    rows: Array
    reading: Array
    base: Array
    lower: Array
    upper: Array
    lam: Array
    leader: Array
    habit: Array
    open: Array
    which: Array
    group_habit: Array


class Info(NamedTuple):
    """What happened at the last label, for display; it never influences the stream.

    `losses` holds one loss for each risk, None where there was nothing to judge; `lam` is a tuple
    where each risk has its own set.
    """

    id: Id
    shown: Any
    lam: Any
    y: Any
    losses: tuple[float | None, ...]

    @property
    def saturated(self) -> str | None:
        """ "full" or "empty" if the safeguard chose the set, or one of several."""
        lams = self.lam if isinstance(self.lam, tuple) else (self.lam,)
        return "full" if inf in lams else "empty" if -inf in lams else None


def checked_id(id: Any, what: str = "an id") -> Id:
    """An id as a plain int or str, or a tuple of them.

    >>> checked_id((np.int64(3), "north"))
    (3, 'north')
    """
    if type(id) is int or type(id) is str:
        return id
    if isinstance(id, str):
        return str(id)
    if isinstance(id, tuple) and id and not any(isinstance(part, tuple) for part in id):
        return tuple([checked_id(part, f"a part of {what}") for part in id])  # type: ignore[misc]
    try:
        if not isinstance(id, bool):
            return operator.index(id)
    except TypeError:
        pass
    raise InputError(f"{what} must be a whole number, a string or a tuple of them, got {id!r}")


def checked_groups(groups: Any) -> tuple[Id, ...]:
    """The groups that a row belongs to, each named once.

    >>> checked_groups(["rain", np.int64(8)])
    ('rain', 8)
    """
    if isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
        raise InputError(
            f'the groups of a row must come in a tuple or a list, such as ("rain",), got {groups!r}'
        )
    names = tuple([n if type(n) is str else checked_id(n, "a group") for n in groups])
    if len(names) > 1 and len(set(names)) < len(names):
        raise InputError(f"a row belongs to a group once, got {names}")
    return names


def labelled(labels: Any) -> list[tuple[Id, Any]]:
    """Labels by id, as a mapping or as pairs, in a list of pairs."""
    try:
        items: Any = getattr(labels, "items", None)  # a mapping, or a Series of pandas
        return [(id, y) for id, y in (items() if callable(items) else labels)]
    except (TypeError, ValueError):
        raise InputError(f"labels must be a mapping or pairs of (id, y), got {labels!r}") from None


def checked_ids(ids: Any) -> list[Id]:
    """The ids of streams in a list."""
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise InputError(f"ids of streams must come in a list or an array, got {ids!r}")
    listed = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    return [id if type(id) in (int, str) else checked_id(id, "the id of a stream") for id in listed]


class Receipts:
    """The receipts of one stream, oldest first; `limit` and `overflow` are those of `Stream`.

    `only` has the fields of one that waits alone under a generated id; else `several` holds what
    waits. `former` are the ids of those whose model has been replaced: their labels teach nothing.
    How the last ones ended is in `closed`, and before in `older`, which is forgotten as a whole.
    """

    __slots__ = (
        "closed", "forgetful", "former", "given", "limit", "older", "only", "overflow", "serial",
        "several",
    )  # fmt: skip

    def __init__(self, limit: int, overflow: str) -> None:
        self.limit, self.overflow = limit, overflow
        self.only: tuple[Any, ...] | None = None
        self.several: dict[Id, Receipt] = {}
        self.serial = 0
        self.given: int | None = None  # the serial number at which the first given id came
        self.forgetful = False
        self.closed: dict[Id, str] = {}
        self.older: dict[Id, str] = {}
        self.former: frozenset[Id] = frozenset()

    def __len__(self) -> int:
        return len(self.several) if self.only is None else 1

    @property
    def waiting(self) -> dict[Id, Receipt]:
        """Every receipt by id, oldest first."""
        return self.several if self.only is None else {self.only[0]: Receipt(*self.only)}

    def admit(self, id: Id) -> Receipt | None:
        """Raises if one more cannot wait under an id; the oldest if it must go for it."""
        if id in self.waiting:
            raise InputError(f"a prediction already waits under the id {id!r}")
        if len(self) < self.limit:
            return None
        if self.overflow == "refuse":
            raise PendingFull(
                f"{len(self):,} predictions wait for their labels, as many as max_pending "
                'allows; answer or drop some, or let the oldest go with overflow="expire"'
            )
        return next(iter(self.waiting.values()))

    def queue(self, receipt: Receipt) -> None:
        """Lets a receipt wait beside others, or under a given id, once it is admitted."""
        id = receipt.id
        self.several, self.only = self.waiting, None
        self.several[id] = receipt
        if id != self.serial:
            if self.given is None:
                self.given = self.serial
            self.closed.pop(id, None)
            self.older.pop(id, None)
            if isinstance(id, int) and id > self.serial:
                self.serial = id

    def find(self, id: Id | None) -> Receipt:
        """The receipt under an id, or the only one."""
        waiting = self.waiting
        if id is None:
            if len(waiting) == 1:
                return next(iter(waiting.values()))
            if not waiting:
                raise UnknownReceipt("no prediction waits for a label: call predict first")
            raise AmbiguousReceipt(
                f"{len(waiting):,} predictions wait for their labels: give the id of one"
            )
        id = id if type(id) is str else checked_id(id)
        receipt = waiting.get(id)
        if receipt is None:
            raise self._absent(id)
        return receipt

    def keep(self, receipt: Receipt) -> None:
        """Puts a receipt of which more is known in its place."""
        if self.only is None:
            self.several[receipt.id] = receipt
        else:
            self.only = tuple(receipt)

    def close(self, id: Id, how: str) -> None:
        """Forgets a receipt, but remembers for a while that there was one."""
        if self.only is None:
            del self.several[id]
        self.only = None
        if self.former:
            self.former -= {id}
        if self.given is not None or how != "answered":
            self.closed[id] = how
            if len(self.closed) > _REMEMBERED:
                self.forgetful |= any(how != "answered" for how in self.older.values())
                self.older, self.closed = self.closed, {}

    def copy(self) -> "Receipts":
        """The same receipts, in dictionaries of their own."""
        twin = copy(self)
        twin.several, twin.closed = dict(self.several), dict(self.closed)
        twin.older = dict(self.older)
        return twin

    def ended(self, id: Id) -> str | None:
        """How the prediction under an id ended; None if it waits or nothing is known of it."""
        id = id if type(id) is str else checked_id(id)
        if id in self.waiting:
            return None
        generated = self.serial if self.given is None else self.given
        how = self.closed.get(id) or self.older.get(id)
        if how is None and isinstance(id, int) and 0 <= id < generated:
            return "closed" if self.forgetful else "answered"
        return how

    def hand_over(self) -> dict[Id, str]:
        """How the predictions under the remembered ids ended; they are forgotten here."""
        closed, self.closed, self.older = {**self.older, **self.closed}, {}, {}
        self.forgetful |= any(how != "answered" for how in closed.values())
        return closed

    def _absent(self, id: Id) -> ReceiptError:
        """Why nothing waits under an id."""
        how = self.ended(id)
        if how is None:
            return UnknownReceipt(f"no prediction waits under the id {id!r}")
        if how == "closed":
            return UnknownReceipt(f"the prediction {id!r} was answered or given up long ago")
        if how == "answered":
            return AnsweredReceipt(
                f"the prediction under the id {id!r} already has its label, which was counted and "
                "learnt from: a restated value cannot take its place"
            )
        return ExpiredReceipt(f"the prediction under the id {id!r} was given up ({how})")

    def content(self, *, waiting: bool = True) -> dict[str, Any]:
        """Everything as plain values, sharing nothing; what waits may be left out."""
        return {
            "max_pending": self.limit,
            "overflow": self.overflow,
            "serial": self.serial,
            "given": self.given,
            "forgetful": self.forgetful,
            "waiting": [tuple(receipt) for receipt in self.waiting.values()] if waiting else [],
            "alone": waiting and self.only is not None,
            "closed": list(self.closed.items()),
            "older": list(self.older.items()),
            "former": list(self.former),
        }

    @classmethod
    def restored(cls, content: dict[str, Any]) -> "Receipts":
        """The receipts whose content was saved."""
        receipts = cls(content["max_pending"], content["overflow"])
        receipts.serial, receipts.given = content["serial"], content["given"]
        receipts.forgetful, receipts.older = content["forgetful"], dict(content["older"])
        receipts.closed = dict(content["closed"])
        receipts.former = frozenset(content["former"])
        waiting = [Receipt(*fields) for fields in content["waiting"]]
        if content["alone"]:
            (receipts.only,) = waiting
        else:
            receipts.several = {receipt.id: receipt for receipt in waiting}
        return receipts
