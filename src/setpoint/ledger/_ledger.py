"""The ledger itself: events in, answers out, and when everything is written whole."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from setpoint._check import choice, whole
from setpoint.controller import Controller
from setpoint.errors import SetpointError, StateError
from setpoint.ledger._book import Book
from setpoint.ledger._desk import Desk
from setpoint.ledger._folder import FORMAT, Folder
from setpoint.ledger._lines import arrivals
from setpoint.ledger._log import Log
from setpoint.ledger._words import quoted
from setpoint.stream import Stream

__all__ = ["Ledger"]


class Ledger:
    """Many streams under one controller, kept on disk.

    An event is a dict: `{"id": …, "prediction": …}` asks for a set, `{"id": …, "y": …}` brings a
    label, both together do one after the other; `{"id": …, "drop": true}` gives a prediction up
    and `{"certificate": true}` asks what is guaranteed. `stream` names the stream; without it
    there is only one.

    Ids make events safe to repeat, as one must after a crash for those that were not answered: an
    event that was taken in before changes nothing and is answered with `repeated`, and as it was
    the first time if it is one of the last 10,000; another prediction or label under its id is an
    error. So an id is used once. Whole numbers that follow one another, or at least always rise,
    are remembered for ever, and of all other ids the last million of each stream, in 16 MB at
    most. Without ids labels must follow their predictions, and repeating is not safe.

    Parameters
    ----------
    path
        The folder; it is made if there is none.
    controller
        What to hold in every stream. It may be left out once the folder exists.
    max_pending, overflow, missing
        As for `Stream`, with `missing="skip"` by default. They belong to the folder: once it
        exists they may be left out, and others hold for all that comes after.
    every
        All streams are written whole, and the log begins anew, after so many events at least, and
        not before the log is as large as what was last written whole.

    Examples
    --------
    >>> import setpoint as sp
    >>> from tempfile import TemporaryDirectory
    >>> risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-20, 20))
    >>> controller = sp.Controller(sp.sets.Widen(), risk)
    >>> with TemporaryDirectory() as folder:
    ...     with sp.Ledger(folder, controller) as ledger:
    ...         shown = ledger.handle([{"id": "monday", "prediction": [10, 14]}])
    ...     with sp.Ledger(folder) as ledger:  # another process, later
    ...         told = ledger.handle([{"id": "monday", "y": 15}])
    >>> shown
    [{'id': 'monday', 'lower': 10.0, 'upper': 14.0}]
    >>> told
    [{'id': 'monday', 'loss': 1.0, 'covered': False}]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        controller: Controller | None = None,
        *,
        max_pending: int | None = None,
        overflow: str | None = None,
        missing: str | None = None,
        every: int = 100_000,
    ) -> None:
        self._every = whole(every, "every", 1)
        given: dict[str, Any] = {}
        if max_pending is not None:
            given["max_pending"] = whole(max_pending, "max_pending", 1)
        if overflow is not None:
            given["overflow"] = choice(overflow, "overflow", ("refuse", "expire"))
        if missing is not None:
            given["missing"] = choice(missing, "missing", ("raise", "skip"))
        self._folder = Folder(Path(path), controller, given)
        self._book = Book(self._folder.controller, self._folder.options)
        self._desk = Desk(self._book)
        self._log: Log | None = None
        self._torn = False
        try:
            self._recover()
            self._renew({**self._folder.options, **given})
        except BaseException:
            self.close()
            raise

    # Events

    def handle(self, events: Iterable[Any]) -> list[dict[str, Any]]:
        """Takes in events in order and answers each; what changed is on the disk when it returns.

        An event that cannot be taken in is answered by its error, and the others go on.
        """
        log = self._opened()
        answers: list[dict[str, Any]] = []
        records: list[Any] = []
        try:
            for event in events:
                self._torn = True  # until it returns, a stream may know what is not written down
                answers.append(self._desk.answer(event, records))
                self._torn = False
        finally:  # whatever stopped it, what was taken in is written down
            if records:
                self._append(log, records)
            if self._torn:
                self.close()
        if self._serial - self._begun >= self._every and log.size >= self._size:
            self.checkpoint()
        return answers

    def serve(self, source: BinaryIO, sink: BinaryIO) -> int:
        """Answers JSON Lines with JSON Lines until the source ends; the number of lines read.

        Whatever has arrived is taken in together and forced to the disk once, so a single line is
        answered at once and a flood of them is not slowed by the disk. Every answer has the number
        of its `line`. A line that is no event is answered by its error.
        """
        count = 0
        for numbers, events, so_far in arrivals(source):
            count = so_far
            pairs = zip(numbers, self.handle(events), strict=True)
            lines = [json.dumps({"line": number, **answer}) for number, answer in pairs]
            if lines:
                sink.write(("\n".join(lines) + "\n").encode())
                sink.flush()
        return count

    @property
    def controller(self) -> Controller:
        """What is held in every stream, and how."""
        return self._folder.controller

    @property
    def streams(self) -> Mapping[str, Stream]:
        """The streams by name, to look at."""
        return MappingProxyType(self._book.streams)

    # On disk

    def _recover(self) -> None:
        """Reads the streams and applies what came after; a batch cut short was never answered."""
        self._begun, content = self._folder.newest()
        self._book.change(self._folder.options_after(self._begun))
        if content is not None:
            self._book.restore(content)
        self._serial, last, end = self._begun, None, 0
        for path, batch in self._folder.events(self._begun):
            self._book.change(self._folder.options_after(self._serial))
            try:
                for event in batch.events:
                    self._book.again(*event)
            except (SetpointError, KeyError, TypeError) as error:
                raise StateError(
                    f"{path} does not fit the streams before it, in the batch of event "
                    f"{batch.first:,}: {error}; restore the folder from a copy"
                ) from error
            self._serial += len(batch.events)
            last, end = path, batch.end
        self._book.change(self._folder.options)
        self._size = self._folder.size(self._begun)
        self._log = self._folder.resumed(self._begun, last, end, self._serial)
        self._folder.arrived()
        if self._folder.format != FORMAT:
            self.checkpoint()
        self._folder.settle()

    def _renew(self, options: dict[str, Any]) -> None:
        """Goes on under other options, if they are others."""
        if options == self._folder.options:
            return
        most = options["max_pending"]
        for name, stream in self._book.streams.items():
            if len(stream.pending) > most:
                raise StateError(
                    f"{len(stream.pending):,} predictions wait in {self._folder.path}"
                    f"{f', stream {quoted(name)}' if name else ''}, and max_pending = {most:,} is "
                    "less: answer or drop some first, or give a larger one"
                )
        self.checkpoint()  # the log that ends here can lose nothing any more
        self._folder.change(self._serial, options)
        self._book.change(options)

    def _append(self, log: Log, records: list[Any]) -> None:
        """Forces events to the disk; if that fails, the ledger is closed as it was before them."""
        try:
            log.append(self._serial + 1, records)
        except BaseException:
            self.close()
            raise
        self._serial += len(records)

    def checkpoint(self) -> None:
        """Writes every stream whole and begins a new log; the last two writings are kept."""
        log = self._opened()
        try:
            self._log, self._size = self._folder.written(self._serial, self._book.content())
        except BaseException:  # which of the two logs counts is for the next opening to find out
            self.close()
            raise
        log.close()
        self._begun = self._serial

    def _opened(self) -> Log:
        if self._log is None:
            raise StateError(f"the ledger {self._folder.path} is closed")
        return self._log

    def close(self) -> None:
        """Lets the folder go; everything acknowledged is on the disk already."""
        if self._log is not None:
            self._log.close()
            self._log = None
        self._folder.release()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where, count = self._folder.path, len(self._book.streams)
        return f"<Ledger {where} of {count:,} streams, event {self._serial:,}>"
