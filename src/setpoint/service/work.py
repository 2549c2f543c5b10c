"""The one thread that writes: what has arrived is taken in together and committed once."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from setpoint.errors import SetpointError, TakenOver, WriteError
from setpoint.store import Store

__all__ = ["Busy", "Worker"]

_BATCH = 5_000  # events in one transaction, more only if one request brings them
_ATTEMPTS = 5


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
        self._queue: list[_Task] = []
        self._turn, self._closing = threading.Condition(), False
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
            with self._turn:
                self._queue.append(task)
                self._turn.notify()
            return await asyncio.shield(task.future)
        finally:
            self.waiting -= size

    def close(self) -> None:
        """Finishes what waits, then ends the thread."""
        with self._turn:
            self._closing = True
            self._turn.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._turn:
                while not self._queue:
                    if self._closing:
                        return
                    self._turn.wait()
                tasks, self._queue = self._queue, []
            while tasks:
                part, size = [tasks.pop(0)], 0
                if part[0].call is None:
                    size = len(part[0].events)
                    while tasks and tasks[0].call is None and size < _BATCH:
                        size += len(tasks[0].events)
                        part.append(tasks.pop(0))
                self._work(part, size)

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
            if task.error is not None:
                if not task.future.cancelled():
                    task.future.set_exception(task.error)
                    task.future.exception()  # whether or not anybody still waits
                continue
            if not task.future.cancelled():
                task.future.set_result(task.answer)
            if task.call is None:
                self.seen(task.stream, task.events, task.answer)
