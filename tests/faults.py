"""Faults, each against a reference that knows every acknowledged event.

`python -m tests.faults [--kills N] [--seed N] [SCENE …]` runs the scenes and prints what happened.
In each a client sends events in order, goes on until all of them are acknowledged, and sends what
was not answered again. In the end θ of every stream is that of a plain stream to the bit, nothing
that was acknowledged is missing, and nothing is there twice.
"""

import argparse
import os
import random
import resource
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

import setpoint as sp
from setpoint.service.app import Limits, Service, serve
from setpoint.service.tokens import Tokens
from setpoint.store.lines import serve as serve_lines
from tests import postgres
from tests.mutations import attack
from tests.serving import Serving
from tests.stored import CONTROLLER, events, reference, same

__all__ = ["main"]

Sent = list[dict[str, Any]]
_MOST = 12  # events in a batch, and one more


def opened(where: str) -> sp.Store:
    return sp.Store(where, CONTROLLER, takes_back=True, window=50, tolerance=0.3)


@contextmanager
def child(work: Callable[[], None]) -> Iterator[int]:
    """A process that does some work until it is killed."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
            work()
            status = 0
        finally:
            os._exit(status)
    try:
        yield pid
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def killer(pid: int, seconds: float) -> int:
    """A process that kills another after some time."""
    other = os.fork()
    if other == 0:
        time.sleep(seconds)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os._exit(0)
    return other


def service(where: str, port: int, store: Callable[[], sp.Store] | None = None) -> None:
    serve(Service(store or (lambda: opened(where)), Tokens([]), Limits()), "127.0.0.1", port)


def up(client: httpx.Client) -> bool:
    """Waits until a service answers."""
    for _ in range(600):
        with suppress(httpx.TransportError):
            if client.get("/health").status_code == 200:
                return True
        time.sleep(0.02)
    return False


class Client:
    """Sends events in order; knows how many were acknowledged, and sends those again at times.

    `twice` is how often it sends everything two times more, as if no answer had come.
    """

    def __init__(self, sent: Sent, seed: int, twice: float = 0.2) -> None:
        self.sent, self.done, self.world, self.last = sent, 0, random.Random(seed), 0
        self.twice = twice

    @property
    def finished(self) -> bool:
        return self.done >= len(self.sent)

    def step(self, send: Callable[[Sent], list[dict[str, Any]]]) -> None:
        """One batch, and sometimes the one before it once more."""
        if self.done and self.world.random() < 0.3:
            for answer in send(self.sent[self.last : self.done]):
                assert answer.get("repeated"), f"lost: {answer}"
        part = self.sent[self.done : self.done + self.world.randrange(1, _MOST)]
        answers = send(part)
        assert not [a for a in answers if "error" in a], [a for a in answers if "error" in a][:1]
        self.last, self.done = self.done, self.done + len(part)
        if self.world.random() < self.twice:
            first = [_said(answer) for answer in answers]
            for again in (send(part), send(part)):
                assert [_said(answer) for answer in again] == first
                assert all(answer["repeated"] for answer in again)

    def end(self) -> None:
        """Leaves out what was never sent."""
        self.sent = self.sent[: self.done + _MOST]


def _said(answer: dict[str, Any]) -> dict[str, Any]:
    """What is the same each time an event is answered."""
    once = ("repeated", "alarms", "line")
    return {key: value for key, value in answer.items() if key not in once}


def over(client: httpx.Client) -> Callable[[Sent], list[dict[str, Any]]]:
    def send(part: Sent) -> list[dict[str, Any]]:
        answer = client.post("/v1/events", json=part)
        if answer.status_code in (429, 503):
            raise httpx.TransportError("busy")
        assert answer.status_code == 200, answer.text
        return list(answer.json())

    return send


def check(where: str, sent: Sent) -> None:
    with sp.Store(where) as store:
        same(store, reference(sent))


# Scenes: each gives how often something went wrong


def service_kills(where: str, kills: int, seed: int, twice: float = 0.2) -> int:
    """kill -9 of the service at random moments."""
    sender, count = Client(events(200 * kills + 300, seed), seed, twice), 0
    port, world = postgres.free_port(), random.Random(seed)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        while not sender.finished:
            with child(lambda: service(where, port)) as pid:
                assert up(client), "the service did not start"
                other = killer(pid, world.random() * 0.15) if count < kills else None
                try:
                    while not sender.finished:
                        sender.step(over(client))
                except httpx.TransportError:
                    assert other is not None
                    count += 1
                    if count == kills:
                        sender.end()
                if other is not None:
                    os.waitpid(other, 0)
    assert count == kills, "all events were sent before the last kill"
    check(where, sender.sent)
    return count


def stream_kills(where: str, kills: int, seed: int) -> int:
    """kill -9 of a process that reads lines, at random moments."""
    sender, count, world = Client(events(200 * kills + 300, seed), seed), 0, random.Random(seed)
    while not sender.finished:
        ours, theirs = os.pipe(), os.pipe()

        def work(ours: Any = ours, theirs: Any = theirs) -> None:
            os.close(ours[1]), os.close(theirs[0])
            with opened(where) as store, open(ours[0], "rb") as a, open(theirs[1], "wb") as b:
                serve_lines(store, a, b)

        with child(work) as pid:
            os.close(ours[0]), os.close(theirs[1])
            with open(ours[1], "wb", buffering=0) as sink, open(theirs[0], "rb") as source:
                other = killer(pid, 0.02 + world.random() * 0.15) if count < kills else None
                try:
                    while not sender.finished:
                        sender.step(lambda part, a=sink, b=source: _lines(part, a, b))
                except (BrokenPipeError, EOFError):
                    assert other is not None
                    count += 1
                    if count == kills:
                        sender.end()
                if other is not None:
                    os.waitpid(other, 0)
    assert count == kills, "all events were sent before the last kill"
    check(where, sender.sent)
    return count


def _lines(part: Sent, sink: Any, source: Any) -> list[dict[str, Any]]:
    import json

    sink.write("".join(json.dumps(event) + "\n" for event in part).encode())
    answers = []
    for _ in part:
        line = source.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        answers.append(json.loads(line))
    return answers


def every_write(seed: int, fresh: Callable[[], str]) -> int:
    """kill -9 before and after every statement, each time in a database of its own."""
    sent, count = events(10, seed), 0
    while True:
        place, told = fresh(), os.pipe()

        def work(place: str = place, told: Any = told, point: int = count + 1) -> None:
            store = opened(place)
            _dying(store._database, point)
            for start in range(0, len(sent), 4):
                os.write(told[1], b"." * len(store.apply(sent[start : start + 4])))
            os.write(told[1], b"!")

        with child(work) as pid:
            os.close(told[1])
            os.waitpid(pid, 0)
            with open(told[0], "rb") as source:
                answered = source.read()
        done = answered.count(b".")
        with opened(place) as store:
            known = store.apply(sent[:done])
            assert all(answer["repeated"] for answer in known), f"lost at moment {count + 1}"
            assert not [a for a in store.apply(sent[done:]) if "error" in a]
            same(store, reference(sent))
        if answered.endswith(b"!"):
            return count
        count += 1


def _dying(database: Any, point: int) -> None:
    """Lets a process die before or after a statement."""
    left = [point]

    def moment() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*values: Any, **options: Any) -> Any:
            moment()
            result = method(*values, **options)
            moment()
            return result

        return run

    for name in ("_ask", "_each", "_open", "_end"):
        setattr(database, name, counted(getattr(database, name)))


def database_faults(server: postgres.Server, where: str, faults: int, seed: int, kinds: str) -> int:
    """PostgreSQL cut, restarted or killed while a service works."""
    sender, port = Client(events(150 * faults + 200, seed), seed), postgres.free_port()
    count, world = 0, random.Random(seed)
    with (
        child(lambda: service(where, port)),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        assert up(client)
        while not sender.finished:
            if count < faults and world.random() < 0.3:
                count += 1
                other = os.fork()
                if other == 0:
                    time.sleep(world.random() * 0.05)
                    with suppress(BaseException):
                        if kinds == "cut" and count % 5:
                            server.cut()
                        else:
                            server.stop() if kinds == "cut" else server.kill()
                            server.start()
                    os._exit(0)
                _again(sender, client)
                os.waitpid(other, 0)
                if count == faults:
                    sender.end()
            _again(sender, client)
    assert count == faults
    check(where, sender.sent)
    return count


def _again(sender: Client, client: httpx.Client) -> None:
    for _ in range(200):
        try:
            sender.step(over(client))
            return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("the service did not recover")


def two_workers(where: str, rounds: int, seed: int) -> int:
    """Two services that both believe they own the streams; every batch goes to both at once."""
    sent, ports = events(20 * rounds, seed), [postgres.free_port() for _ in "12"]
    count, done, world = 0, 0, random.Random(seed)
    with (
        child(lambda: service(where, ports[0])),
        child(lambda: service(where, ports[1])),
        httpx.Client(base_url=f"http://127.0.0.1:{ports[0]}", timeout=60) as first,
        httpx.Client(base_url=f"http://127.0.0.1:{ports[1]}", timeout=60) as second,
        ThreadPoolExecutor(2) as pool,
    ):
        assert up(first)
        assert up(second)
        while done < len(sent):
            part = sent[done : done + world.randrange(1, 12)]
            told = pool.map(lambda client, part=part: over(client)(part), (first, second))
            for pair in zip(*told, strict=True):
                assert not [answer for answer in pair if "error" in answer]
                assert sum("repeated" in answer for answer in pair) == 1, "twice, or lost"
            count, done = count + 1, done + len(part)
    check(where, sent)
    return count


def disk_full(where: str, rounds: int, seed: int) -> int:
    """A disk that is full for a while; the service says so, and goes on when there is room."""
    sender, port, count = Client(events(20 * rounds, seed), seed), postgres.free_port(), 0
    with sp.Store(where, CONTROLLER):
        pass
    limits = [90_000 + 40_000 * number for number in range(rounds)]

    def work(limit: int) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        service(where, port)

    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for limit in [*limits, 1 << 40]:
            with child(lambda limit=limit: work(limit)):
                if not up(client):
                    continue
                for _ in range(200):
                    if sender.finished:
                        break
                    try:
                        sender.step(over(client))
                    except httpx.TransportError:
                        count += 1
                        assert client.get("/ready").status_code == 503
                        break
                while limit == 1 << 40 and not sender.finished:
                    sender.step(over(client))
    assert count > 0, "the disk was never full"
    check(where, sender.sent)
    return count


def clock_moved(where: str, rounds: int, seed: int) -> int:
    """A clock that jumps by days, forth and back."""
    folder = Path(__file__).parent
    path = os.pathsep.join([str(folder / "moved_clock"), os.environ.get("PYTHONPATH", "")])
    sender = Client(events(20 * rounds, seed), seed)
    config = Path(f"{where}.toml")
    config.write_text(sp.spec.to_toml(CONTROLLER))
    words = ("--store", where, "--controller", str(config), "--window", "50")
    with (
        Serving(*words, environment={"PYTHONPATH": path}) as serving,
        httpx.Client(base_url=serving.url, timeout=60) as client,
    ):
        while not sender.finished:
            sender.step(over(client))
    check(where, sender.sent)
    with sp.Store(where) as store:
        made = [row["made"] for row in store.history("a")]
        assert made != sorted(made), "the clock did not move"
    return rounds


def restored(where: str, kills: int, seed: int) -> int:
    """kill -9 of a process at work, and the last backup put back over what it left."""
    sent, world = events(60 * kills, seed), random.Random(seed)
    done, copy = 0, f"{tempfile.gettempdir()}/{os.getpid()}.backup"
    Path(copy).unlink(missing_ok=True)
    for _ in range(kills):
        taken = done + world.randrange(1, 40)

        def work(done: int = done, taken: int = taken) -> None:
            with opened(where) as store:
                assert not [a for a in store.apply(sent[done:taken]) if "error" in a]
                store.export_streams(copy)
                for event in sent[taken:]:
                    store.apply([event])

        with child(work) as pid:
            before = Path(copy).stat().st_mtime_ns if done else 0
            while not Path(copy).exists() or Path(copy).stat().st_mtime_ns == before:
                time.sleep(0.005)
            time.sleep(world.random() * 0.1)
            os.kill(pid, signal.SIGKILL)
        sp.Store.restore(where, copy)
        done = taken
        check(where, sent[:done])
        with sp.Store(where) as store:
            assert store.check() == []
    return kills


def many_streams(where: str, streams: int, seed: int) -> int:
    """Thousands of streams over HTTP, killed on the way; lists, metrics and pages stay quick."""
    names = [f"meter {number}" for number in range(streams)]
    sent = [{"stream": name, "id": 1, "prediction": [-1.0, 1.0]} for name in names]
    sent += [
        {"stream": name, "id": 1, "y": 0.5 * (number % 5)} for number, name in enumerate(names)
    ]
    port, done = postgres.free_port(), 0
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
        for end in (len(sent) // 3, len(sent) // 2, len(sent)):
            with child(lambda: service(where, port)) as pid:
                assert up(client), "the service did not start"
                while done < end:
                    answers = over(client)(sent[done : done + 1000])
                    assert not [a for a in answers if "error" in a], answers[0]
                    done += 1000
                if end == len(sent):
                    seconds = _looks(client, streams)
                    assert max(seconds.values()) < 10.0, seconds
                os.kill(pid, signal.SIGKILL)
    with sp.Store(where) as store:
        rows = store.overviews()
        assert len(rows) == streams
        assert {row["labels"] for row in rows.values()} == {1}
    return streams


def _looks(client: httpx.Client, streams: int) -> dict[str, float]:
    """How long it takes to look at many streams, in seconds; every one is in a list."""
    seconds, listed = {}, set()
    for offset in range(0, streams, 10_000):
        began = time.monotonic()
        answer = client.get("/v1/streams", params={"limit": 10_000, "offset": offset})
        seconds[f"list {offset}"] = time.monotonic() - began
        listed |= {row["name"] for row in answer.json()}
    assert len(listed) == streams
    for path in ("/metrics", "/v1/streams?search=77", "/v1/streams/meter%207", "/health"):
        began = time.monotonic()
        assert client.get(path).status_code == 200
        seconds[path] = time.monotonic() - began
    return seconds


def slow_reader(where: str, rounds: int, seed: int) -> int:
    """Live pages that never read what they are sent, and others that go at once."""
    sender, port = Client(events(200 * rounds, seed), seed, 0.0), postgres.free_port()
    request = b"GET /v1/streams/a/live HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with (
        child(lambda: service(where, port)) as pid,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
        ExitStack() as pages,
    ):
        assert up(client)
        sender.step(over(client))
        for _ in range(rounds):
            with socket.create_connection(("127.0.0.1", port)) as gone:
                gone.sendall(request)
            page = pages.enter_context(socket.create_connection(("127.0.0.1", port)))
            page.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            page.sendall(request)
        first = _memory(pid)
        while not sender.finished:
            sender.step(over(client))
        long = [{"stream": "a", "id": f"l{n}", "prediction": [0.0] * 2} for n in range(9000)]
        for start in range(0, len(long), 1000):
            over(client)(long[start : start + 1000])
        assert client.get("/health", timeout=5).status_code == 200
        grown = _memory(pid) - first
        assert grown < 200 << 20, f"{grown >> 20} MB for {rounds} pages"
    return rounds


def _memory(pid: int) -> int:
    """The bytes in memory of a process, where Linux tells; 0 elsewhere."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    return 0


def mutated_requests(where: str, requests: int, seed: int) -> int:
    """Requests that are nearly right: none breaks anything, and each has an answer in words."""
    port = postgres.free_port()
    with child(lambda: service(where, port)):
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            assert up(client)
        statuses = attack(f"http://127.0.0.1:{port}", requests, seed)
    assert sum(statuses.values()) == requests
    with sp.Store(where) as store:
        assert store.check() == []
    return requests


def main(words: list[str]) -> int:
    """Runs the scenes; 0 if nothing was lost or doubled."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="kill -9, in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("scenes", nargs="*", help="by default all of them")
    options = parser.parse_args(words)
    each, seed = -(-options.kills // 4), options.seed  # four scenes kill
    with tempfile.TemporaryDirectory() as folder, _server() as server:
        numbers = iter(range(10**9))

        def file() -> str:
            return f"{folder}/{next(numbers)}.sqlite"

        def base() -> str:
            assert server is not None
            return server.new(f"faults{next(numbers)}")

        small = max(each // 5, 5)
        scenes: dict[str, Callable[[], int]] = {
            "disk full": lambda: disk_full(file(), 8, seed),
            "everything sent three times": lambda: service_kills(file(), small, seed, 1.0),
            "clock moved": lambda: clock_moved(file(), small, seed),
            "pages that do not read": lambda: slow_reader(file(), 40, seed),
            "mutated requests": lambda: mutated_requests(file(), 10_000, seed),
        }
        if server is not None:
            for name, how in (("PostgreSQL cut and restarted", "cut"), ("PostgreSQL killed", "")):
                scenes[name] = lambda how=how: database_faults(server, base(), small, seed, how)
        places = {"SQLite": file} if server is None else {"SQLite": file, "PostgreSQL": base}
        for kind, place in places.items():
            each_of: dict[str, Callable[[], int]] = {
                "service killed": lambda place=place: service_kills(place(), each, seed),
                "stream killed": lambda place=place: stream_kills(place(), each, seed),
                "two workers": lambda place=place: two_workers(place(), small, seed),
                "killed and restored": lambda place=place: restored(place(), small, seed),
                "10,000 streams over HTTP": lambda place=place: many_streams(place(), 10_000, seed),
                # The last: a server of a hundred databases is slow to start again.
                "killed at every write": lambda place=place: every_write(seed, place),
            }
            scenes |= {f"{name}, {kind}": scene for name, scene in each_of.items()}
        for name, scene in scenes.items():
            if options.scenes and not any(word in name for word in options.scenes):
                continue
            began = time.monotonic()
            count = scene()
            print(f"{name:<36}{count:>6} times, nothing lost, nothing twice, θ equal to the bit "
                  f"({time.monotonic() - began:.0f} s)", flush=True)  # fmt: skip
    return 0


@contextmanager
def _server() -> Iterator[postgres.Server | None]:
    if postgres.binaries() is None:
        print("no PostgreSQL on this machine: its scenes are left out")
        yield None
        return
    with postgres.running() as server:
        yield server


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
