"""A service in a process of its own, as `setpoint serve` starts it."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from setpoint.client import Client

__all__ = ["Serving"]

ROOT = Path(__file__).parents[1]


class Serving:
    """`setpoint serve` on a free port, with some options."""

    def __init__(
        self, *words: str, environment: dict[str, str] | None = None, port: int = 0
    ) -> None:
        command = [sys.executable, "-m", "setpoint.cli", "serve", "--port", str(port), *words]
        began = time.monotonic()
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        found = re.search(r"answers on (.*):(\d+)", said)
        assert found, said + self.process.communicate()[1]
        self.port = int(found[2])
        self.url = f"http://127.0.0.1:{self.port}"
        self.seconds = time.monotonic() - began

    def client(self, token: str | None = None, **options: Any) -> Client:
        return Client(self.url, token, **options)

    def kill(self) -> None:
        """Ends it at once, as a crash would."""
        self.process.kill()
        self.process.wait()
        self._close()

    def stop(self) -> tuple[int, str]:
        """Asks it to end; its exit status and what it said on standard error."""
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said

    def _close(self) -> None:
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> "Serving":
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.kill()
        self._close()
