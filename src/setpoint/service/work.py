"""The one thread that writes: what has arrived is taken in together and committed once."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from queue import Empty, SimpleQueue
from typing import Any

from setpoint.errors import SetpointError, TakenOver, WriteError
from setpoint.store import Store

_BATCH = 5_000  # events in one transaction, more only if one request brings them
_ATTEMPTS = 5
_PATIENCE, _LONGEST = 0.5, 0.005  # of a transaction, and in seconds: how long to wait for more


class Busy(SetpointError):
    """More events wait than the service takes on."""


class _Task:
    """What one request asks for: events for a stream, or a call."""

    __slots__ = ("answer", "call", "error", "events", "future", "stream")

    def __init__(self, stream: str, events: Sequence[Any], call: Callable[[], Any] | None) -> None:
        self.stream, self.events, self.call = stream, events, call
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.answer: Any = None
        self.error: BaseException | None = None


class Worker:
    """Takes in events for many requests at once, in a thread of its own.

    While a transaction is written to the disk, the next one gathers. So a lone request is answered
    at once, and a flood of them shares its commits.

    Parameters
    ----------
    store
        Where the events go.
    most
        How many events may wait; one more is refused as `Busy`.
    seen
        Called in the event loop with the tasks of a transaction, after its commit: the stream, the
        events and their answers.
    """

    def __init__(
        self, store: Store, most: int, seen: Callable[[str, Sequence[Any], Any], None]
    ) -> None:
        self.store, self.most, self.seen = store, most, seen
        self.waiting = 0  # events that were not answered yet
        self.batches = self.events = 0
        self.seconds = 0.0  # spent in transactions
        self.failed = -inf  # when the database last refused to write
        self._gathered: list[_Task] = []
        self._queue: SimpleQueue[list[_Task] | None] = SimpleQueue()
        self._closing = self._ended = False
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="setpoint-worker", daemon=True)
        self._thread.start()

    async def apply(self, events: Sequence[Any], stream: str) -> list[dict[str, Any]]:
        """The answers to events, once they are committed."""
        return await self._put(_Task(stream, events, None), len(events))

    async def call(self, function: Callable[[], Any]) -> Any:
        """What a function returns that uses the store, between two transactions."""
        return await self._put(_Task("", (), function), 1)

    async def _put(self, task: _Task, size: int) -> Any:
        if self._closing:
            raise Busy("the service is stopping: send this again in a moment")
        if self.waiting and self.waiting + size > self.most:
            raise Busy(
                f"{self.waiting:,} events wait, and {self.most:,} may: send this again in a moment"
            )
        self.waiting += size
        try:
            if not self._gathered:
                self._loop.call_soon(self._hand)
            self._gathered.append(task)
            return await task.future
        finally:
            self.waiting -= size

    def _hand(self) -> None:
        """Wakes the thread once for all that came in one turn of the event loop."""
        self._queue.put(self._gathered)
        self._gathered = []

    def close(self) -> None:
        """Finishes what waits, then ends the thread; not to be called in the event loop."""
        self._closing = True
        self._loop.call_soon_threadsafe(self._queue.put, None)
        self._thread.join()

    def _run(self) -> None:
        tasks: deque[_Task] = deque()
        answered, patience = 0, 0.0
        while True:
            self._gather(tasks, answered, patience)
            if not tasks:
                return
            began = time.monotonic()
            part = [tasks.popleft()]
            size = len(part[0].events)
            while tasks and part[0].call is tasks[0].call is None and size < _BATCH:
                size += len(tasks[0].events)
                part.append(tasks.popleft())
            self._work(part, size)
            answered = len(part)
            patience = min(_PATIENCE * (time.monotonic() - began), _LONGEST)

    def _gather(self, tasks: deque[_Task], answered: int, patience: float) -> None:
        """Takes what has arrived, and waits a little for those who were answered last.

        Most of them have more to send. One commit for them and for those who came meanwhile takes
        half the time of one commit for each. Who is alone does not wait.
        """
        while not self._queue.empty():
            self._take(tasks)
        likely, until = len(tasks) + answered, time.monotonic() + patience
        if not tasks and not self._ended:
            self._take(tasks)
        while answered > 1 and len(tasks) < likely and not self._ended:
            pause = until - time.monotonic()
            if pause <= 0.0:
                return
            self._take(tasks, pause)

    def _take(self, tasks: deque[_Task], seconds: float | None = None) -> None:
        with suppress(Empty):
            arrived = self._queue.get(timeout=seconds)
            self._ended |= arrived is None
            tasks.extend(arrived or ())

    def _work(self, tasks: list[_Task], size: int) -> None:
        """Does some tasks in one transaction, or one by one where they fail together."""
        began = time.perf_counter()
        try:
            if tasks[0].call is not None:
                tasks[0].answer = tasks[0].call()
            else:
                answers = self._committed([(task.stream, task.events) for task in tasks])
                for task, answer in zip(tasks, answers, strict=True):
                    task.answer = answer
        except BaseException as error:
            if len(tasks) > 1 and not isinstance(error, WriteError):
                for task in tasks:  # nothing was taken in: one of them is to blame
                    self._work([task], len(task.events))
                return
            for task in tasks:
                task.error = error
            if isinstance(error, WriteError):
                self.failed = time.monotonic()
        else:
            self.batches += 1
            self.events += size
        self.seconds += time.perf_counter() - began
        self._loop.call_soon_threadsafe(self._deliver, tasks)

    def _committed(self, groups: list[tuple[str, Sequence[Any]]]) -> list[list[dict[str, Any]]]:
        """Goes on where another worker was faster to begin a stream."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self.store.apply_groups(groups)
            except TakenOver:
                continue
        return self.store.apply_groups(groups)

    def _deliver(self, tasks: list[_Task]) -> None:
        for task in tasks:
            waits = not task.future.done()  # unless its client has gone
            if task.error is not None:
                if waits:
                    task.future.set_exception(task.error)
                continue
            if waits:
                task.future.set_result(task.answer)
            if task.call is None:
                self.seen(task.stream, task.events, task.answer)
