"""A process that takes in events and is killed before every statement that its database runs.

`python -m tests.crashes FOLDER` reads events from standard input, and for each statement forks a
child that dies there. What a child was told is noted in FOLDER/<number>.answered. It prints how
many children there were; the last one was not killed.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import setpoint as sp
from setpoint.store import SQLite
from tests.stored import CONTROLLER


class Killing(SQLite):
    """A database in whose process only so many statements are run."""

    left = 0

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._database.set_trace_callback(self._step)

    def _step(self, statement: str) -> None:
        Killing.left -= 1
        if Killing.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def work(path: Path, sent: list[dict[str, Any]], answered: int) -> None:
    """Sends events in batches, each to the store opened anew."""
    for start in range(0, len(sent), 6):
        with sp.Store(Killing(path), CONTROLLER) as store:
            os.write(answered, b"." * len(store.apply(sent[start : start + 6])))


def main(folder: Path) -> int:
    sent, point = json.loads(sys.stdin.read()), 0
    while True:
        point += 1
        child = os.fork()
        if child == 0:
            Killing.left = point
            answered = os.open(folder / f"{point}.answered", os.O_CREAT | os.O_WRONLY)
            work(folder / f"{point}.db", sent, answered)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            print(point)
            return os.WEXITSTATUS(status)


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
