"""A PostgreSQL server of the tests' own, from the machine's binaries, on a free port."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["Server", "binaries", "running"]


def binaries() -> Path | None:
    """The folder of PostgreSQL's programs; Debian keeps them off the path."""
    folders = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    known = shutil.which("initdb")
    folders += [Path(known).parent] if known else []
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Server:
    """A cluster that can be started, stopped at once, and asked to cut its connections."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.folder, self.port = binaries(), folder, free_port()
        # PostgreSQL refuses to run as root, so there another user runs it.
        self.prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self.prefix:
            shutil.chown(folder, "postgres")
        self._run("initdb", "-D", f"{folder}/data", "-U", "setpoint", "-A", "trust", "-N")
        self.start()
        self.new("setpoint")

    def _run(self, program: str, *words: str) -> None:
        command = [*self.prefix, f"{self.bin}/{program}", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder}"
        options += " -c max_connections=50 -c shared_buffers=64MB"
        words = ("-D", f"{self.folder}/data", "-l", f"{self.folder}/log", "-o", options)
        self._run("pg_ctl", *words, "-w", "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stops it: "immediate" is a crash."""
        with suppress(AssertionError):
            self._run("pg_ctl", "-D", f"{self.folder}/data", "-m", mode, "-w", "stop")

    def kill(self) -> None:
        """kill -9 of the server and of every process that it has."""
        first = int(Path(f"{self.folder}/data/postmaster.pid").read_text().split()[0])
        told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(first)], capture_output=True)
        for process in (first, *map(int, told.stdout.split())):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for _ in range(100):  # until the last one is gone
            if not Path(f"/proc/{first}").exists():
                break
            time.sleep(0.05)

    def url(self, database: str = "setpoint") -> str:
        return f"postgresql://setpoint@127.0.0.1:{self.port}/{database}"

    def new(self, database: str) -> str:
        """Makes an empty database."""
        self.ask(f'CREATE DATABASE "{database}"')
        return self.url(database)

    def cut(self) -> None:
        """Cuts every connection but its own."""
        self.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'setpoint'"
        )

    def ask(self, statement: str) -> None:
        import psycopg

        for _ in range(50):
            try:
                with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
                    connection.execute(statement)  # type: ignore[call-overload]
                return
            except psycopg.OperationalError:
                time.sleep(0.1)
        raise AssertionError(f"the server did not answer: {statement}")


@contextmanager
def running() -> Iterator[Server]:
    """A server for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder))
        try:
            yield server
        finally:
            server.stop()
