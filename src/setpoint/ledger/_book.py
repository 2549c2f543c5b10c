"""The streams of a ledger in memory, with the ids they have closed and what was answered last."""

from typing import Any

import numpy as np

from setpoint.controller import Controller
from setpoint.errors import ReceiptError, UnknownReceipt
from setpoint.ledger._ids import ClosedIds
from setpoint.ledger._recall import Recall
from setpoint.ledger._words import quoted
from setpoint.receipts import Id, Receipt
from setpoint.stream import Stream

__all__ = ["Book"]


class Book:
    """What events do to streams, the first time and again when a log is read.

    Parameters
    ----------
    controller
        What to hold in every stream.
    options
        Those of every stream that is new.
    """

    def __init__(self, controller: Controller, options: dict[str, Any]) -> None:
        self.controller, self.options = controller, options
        self.streams: dict[str, Stream] = {}
        self.recall = Recall()
        self._closed: dict[str, ClosedIds] = {}
        self._unsettled: dict[str, int] = {}

    # Events

    def issue(self, name: str, id: Id | None, prediction: Any) -> Receipt:
        """Makes a prediction in a stream, which begins with it if it is new."""
        stream = self.streams.get(name)
        if stream is None:
            stream = Stream(self.controller, **self.options)
        receipt = stream.issue(prediction, id)
        if name not in self.streams:
            self._open(name, stream, ClosedIds())
        self._closed[name].issue(receipt.id)
        self._settle(name)  # to make room, the stream may have given up another
        return receipt

    def learn(self, name: str, receipt: Receipt, y: Any) -> dict[str, Any]:
        """Brings the label of a prediction that waits; what is to be said of it."""
        stream = self.streams[name]
        said: dict[str, Any] = {"loss": stream.update(y, receipt.id)}
        info = stream.info
        if info is not None and info.id == receipt.id and hasattr(info.shown, "contains"):
            said["covered"] = bool(info.shown.contains(info.y))
        self.recall.add(name, receipt, y, said)
        self._settle(name)
        return said

    def give_up(self, name: str, receipt: Receipt) -> dict[str, Any]:
        """Drops a prediction that waits; what is to be said of it."""
        self.streams[name].drop(receipt.id)
        said = {"dropped": True}
        self.recall.add(name, receipt, None, said)
        self._settle(name)
        return said

    def again(self, name: str, id: Id, verb: str, value: Any) -> None:
        """Does what an event of the log did."""
        if verb == "prediction":
            self.issue(name, id, value)
        elif verb == "y":
            self.learn(name, self.streams[name].receipt(id), value)
        else:
            self.give_up(name, self.streams[name].receipt(id))

    def change(self, options: dict[str, Any]) -> None:
        """Gives every stream other options, those that are there and those to come."""
        if options != self.options:
            self.options = options
            for name, stream in self.streams.items():
                held = {**stream.content(), **options}
                self.streams[name] = Stream.restored(self.controller, held)

    # What it knows

    def stream(self, name: str) -> Stream:
        """A stream by its name."""
        found = self.streams.get(name)
        if found is None:
            raise UnknownReceipt(
                f"there is no stream {quoted(name)}" if name else "no prediction was made yet"
            )
        return found

    def waiting(self, name: str, id: Id) -> Receipt | None:
        """What waits under an id of a stream."""
        try:
            return self.stream(name).receipt(id)
        except ReceiptError:
            return None

    def how(self, name: str, id: Id) -> str | None:
        """How an id of a stream ended, None if it waits or is new."""
        stream = self.streams.get(name)
        if stream is None:
            return None
        how = stream.closed(id)
        if how is None or how == "closed":
            how = self._closed[name].how(id) or how
        # What has waited long may lie below the numbers that count as closed.
        return None if how is None or self.waiting(name, id) is not None else how

    # Closed ids, and everything as plain values

    def _open(self, name: str, stream: Stream, closed: ClosedIds) -> None:
        self.streams[name], self._closed[name], self._unsettled[name] = stream, closed, 0

    def _settle(self, name: str) -> None:
        """Takes over the ids that a stream has closed, many at a time."""
        count = self._unsettled[name] + 1
        if count >= self._closed[name].batch:
            self._closed[name].add(self.streams[name].hand_over())
            count = 0
        self._unsettled[name] = count

    def content(self) -> dict[str, Any]:
        """Everything as plain values, the closed ids of all streams in one array."""
        for name, stream in self.streams.items():
            self._closed[name].add(stream.hand_over())
            self._unsettled[name] = 0
        closed = [held.packed() for held in self._closed.values()]
        return {
            "streams": [(name, stream.content()) for name, stream in self.streams.items()],
            "closed": np.concatenate([*closed, np.empty(0, np.uint64)]),
            "closed_lengths": np.array([len(held) for held in closed], np.int64),
            "answered": self.recall.content(),
        }

    def restore(self, content: dict[str, Any]) -> None:
        """Takes over what `content` gave, or a ledger of format 1 wrote."""
        ends = np.cumsum(content.get("closed_lengths", ())).astype(np.int64)[:-1]
        packed = np.split(content["closed"], ends) if "closed" in content else None
        for place, (name, held) in enumerate(content["streams"]):
            stream = Stream.restored(self.controller, {**held, **self.options})
            if packed is None:
                closed = ClosedIds(top=held["serial"])
                closed.add(stream.hand_over())
            else:
                closed = ClosedIds.unpacked(packed[place])
            self._open(name, stream, closed)
        self.recall = Recall.restored(content.get("answered", []))
