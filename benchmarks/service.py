"""The service at work: requests a second beside a bare echo, batches beside the store itself.

`python -m benchmarks service` measures, in one run on this machine, within a few minutes: a million
events through `setpoint stream` on SQLite, with the memory as it goes; how soon `setpoint serve`
answers; over HTTP, batches of 100 beside the store's own rate, and single requests beside an
endpoint of the same server that only returns what it was sent; the latency at half of the highest
load; and one and four workers on PostgreSQL. The processor time of each stands beside it, which a
busy machine disturbs less. SETPOINT_EVENTS makes it smaller or larger.
"""

import json
import multiprocessing
import os
import resource
import selectors
import socket
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any
from urllib.request import urlopen

import setpoint as sp
from benchmarks.cli import _CONTROLLER, lines, stream
from benchmarks.store import stored
from setpoint.service.app import Limits, Service, serve
from setpoint.service.tokens import Tokens
from tests import postgres
from tests.serving import Serving

EVENTS = int(os.environ.get("SETPOINT_EVENTS", 1_000_000))
_CONNECTIONS = 64


def echo(port: int) -> None:
    """The same server, uvicorn as it comes, with an endpoint that reads JSON and returns it."""
    import msgspec
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def answer(request: Request) -> Response:
        value = msgspec.json.decode(await request.body())
        return Response(msgspec.json.encode(value), media_type="application/json")

    place = "/v1/streams/{name}/{verb}"
    app = Starlette(routes=[Route(place, answer, methods=["POST"])])
    uvicorn.run(
        app, host="127.0.0.1", port=port, log_level="error", access_log=False, timeout_keep_alive=30
    )


def service(port: int, path: str) -> None:
    """The service, as `setpoint serve` starts it."""

    def opened() -> sp.Store:
        return sp.Store(path, _CONTROLLER, takes_back=True, window=250, tolerance=0.1)

    serve(Service(opened, Tokens([]), Limits()), "127.0.0.1", port)


class Load:
    """Requests over many connections at once, from one process."""

    def __init__(
        self, port: int, request: Callable[[int], tuple[bytes, bytes]], first: int = 0
    ) -> None:
        self.port, self.request, self.wrong = port, request, 0
        self.turns = first  # two turns belong together, and go over one connection
        self.second: dict[Any, int] = {}
        self.sockets: list[socket.socket] = []

    def _next(self, one: Any) -> bytes:
        turn = self.second.pop(one, None)
        if turn is None:
            turn, self.second[one] = self.turns, self.turns + 1
            self.turns += 2 if self.request is _single else 8
        path, body = self.request(turn)
        head = b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        return (head + b"content-length: %d\r\n\r\n%b") % (path, len(body), body)

    def run(self, seconds: float, rate: float | None = None) -> dict[str, Any]:
        """Requests a second for some time, and their latencies; `rate` keeps to a given load."""
        while len(self.sockets) < _CONNECTIONS:
            self.sockets.append(socket.create_connection(("127.0.0.1", self.port)))
            self.sockets[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        watch = selectors.DefaultSelector()
        idle, begun, took = list(self.sockets), {}, []
        for one in idle:
            watch.register(one, selectors.EVENT_READ, bytearray())
        start = time.perf_counter()
        due, now = start, start
        while now < start + seconds or begun:
            now = time.perf_counter()
            while idle and now < start + seconds and (rate is None or due <= now):
                one = idle.pop()
                begun[one] = due if rate else now
                due += 1.0 / rate if rate else 0.0
                one.sendall(self._next(one))
            pause = 1.0 if rate is None else max(0.0, min(due - time.perf_counter(), 0.05))
            for key, _ in watch.select(pause if begun or rate else 0.0):
                one: Any = key.fileobj
                data: bytearray = key.data
                part = one.recv(1 << 16)
                if not part:
                    raise SystemExit("the server closed a connection")
                data += part
                head = data.find(b"\r\n\r\n")
                if head < 0:
                    continue
                place = data.find(b"content-length: ")
                length = int(data[place + 16 : data.find(b"\r\n", place)])
                if len(data) < head + 4 + length:
                    continue
                self.wrong += not data.startswith(b"HTTP/1.1 200") or b'"error"' in data
                data.clear()
                took.append(time.perf_counter() - begun.pop(one))
                idle.append(one)
        watch.close()
        took.sort()
        return {
            "per_second": len(took) / seconds, "wrong": self.wrong,
            "p50_ms": 1e3 * took[len(took) // 2], "p99_ms": 1e3 * took[int(0.99 * len(took))],
        }  # fmt: skip


def _single(turn: int) -> tuple[bytes, bytes]:
    """A prediction, then its label."""
    if turn % 2:
        return b"/v1/streams/a/label", b'{"id": %d, "y": 0.5}' % (turn // 2)
    return b"/v1/streams/a/predict", b'{"id": %d, "prediction": [-1.6, 1.6]}' % (turn // 2)


def _hundred(turn: int) -> tuple[bytes, bytes]:
    """Fifty predictions, then their labels."""
    ids = range(25 * (turn // 2), 25 * (turn // 2) + 100)
    text = '{"id": %d, "prediction": [-1.6, 1.6]}' if turn % 2 == 0 else '{"id": %d, "y": 0.5}'
    return b"/v1/streams/a/events", ("[" + ",".join(text % id for id in ids) + "]").encode()


def process(function: Callable[..., None], *values: Any) -> Any:
    """A process of its own, once it answers on its port."""
    worker = multiprocessing.get_context("spawn").Process(target=function, args=values, daemon=True)
    worker.start()
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", values[0]), 1).close()
            return worker
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the server did not start")


def http(folder: Path, seconds: float) -> dict[str, Any]:
    """Requests a second of the echo and of the service, single and in batches.

    The echo and the service are measured in turn, several times, so that a machine that slows
    down does so for both.
    """
    results: dict[str, Any] = {}
    ports = [postgres.free_port() for _ in "12"]
    workers = [process(echo, ports[0]), process(service, ports[1], f"{folder}/http.sqlite")]
    loads = [Load(port, _single) for port in ports]

    def measure(name: str, place: int, load: Load, rate: float | None = None) -> None:
        before = _processor(workers[place].pid)
        result = load.run(seconds / 3, rate)
        spent = _processor(workers[place].pid) - before
        result["cpu_us"] = 3e6 * spent / (seconds * result["per_second"])
        results.setdefault(name, []).append(result)

    for load in loads:
        load.run(0.5)
    for _ in range(3):
        measure("echo", 0, loads[0])
        measure("single", 1, loads[1])
    rate = median(results["single"], "per_second") / 2
    many = Load(ports[1], _hundred, 10_000_000)
    for _ in range(3):
        measure("half", 1, loads[1], rate)
        measure("batches", 1, many)
    for worker in workers:
        worker.terminate()
        worker.join()
    assert not any(result["wrong"] for runs in results.values() for result in runs)
    return {
        name: {key: median(runs, key) for key in runs[0] if key != "wrong"}
        for name, runs in results.items()
    }


def median(results: list[dict[str, float]], key: str) -> float:
    """The one in the middle of several results."""
    return sorted(result[key] for result in results)[len(results) // 2]


def start(folder: Path) -> dict[str, float]:
    """How soon `setpoint serve` answers after its start, and the processor time that it takes."""
    took, spent = [], []
    for number in range(3):
        began = time.perf_counter()
        with Serving("--store", f"{folder}/start{number}.sqlite") as serving:
            urlopen(f"{serving.url}/ready").close()
            took.append(time.perf_counter() - began)
            spent.append(_processor(serving.process.pid))
    return {"seconds": min(took), "cpu_seconds": min(spent)}


def _processor(pid: int) -> float:
    """The seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _work(address: str, name: str, count: int, began: Any) -> None:
    batches, batch = [], []
    for line in lines(count, 1):
        batch.append({**json.loads(line), "stream": name})
        if len(batch) == 500:
            batches.append(batch)
            batch = []
    with sp.Store(address, takes_back=True) as store:
        began.wait()
        for batch in batches:
            store.apply(batch)


def workers(address: str, count: int, number: int) -> float:
    """Events a second of several processes on one PostgreSQL, each with a stream of its own."""
    sp.Store(address, _CONTROLLER).close()
    context = multiprocessing.get_context("spawn")
    began = context.Barrier(number + 1)
    every = [
        context.Process(target=_work, args=(address, f"{number} {n}", count // number, began))
        for n in range(number)
    ]
    for one in every:
        one.start()
    began.wait()
    start = time.perf_counter()
    for one in every:
        one.join()
    return count / (time.perf_counter() - start)


def main() -> None:
    """Measures, and prints a table and one line of JSON."""
    seconds = max(1.5, min(12.0, EVENTS / 80_000))
    with TemporaryDirectory() as folder:
        own = stored(Path(folder) / "store.sqlite", max(EVENTS // 4, 20_000), 1)
        before = _children()
        piped = stream(Path(folder), EVENTS, 1)
        piped["cpu_us"] = 1e6 * (_children() - before) / EVENTS
        began = start(Path(folder))
        asked = http(Path(folder), seconds)
    rate, echoes = own["events_per_second"], asked["echo"]
    memory = ", ".join(f"{value / 1e6:.0f}" for value in piped["memory_after"].values())
    _row("the store, batches of 1,000", rate, "events", own["cpu_us"], "")
    _row("setpoint stream", piped["lines_per_second"], "lines", piped["cpu_us"], "")
    print(f"  memory as {EVENTS:,} lines go      {memory} MB")
    print(f"  setpoint serve answers after   {began['seconds']:10.2f} s, "
          f"{began['cpu_seconds']:.2f} s of processor time")  # fmt: skip
    print(f"over HTTP, {_CONNECTIONS} connections")
    batches, cpu = 100 * asked["batches"]["per_second"], asked["batches"]["cpu_us"] / 100
    _row("batches of 100", batches, "events", cpu, _share("the store", batches / rate, own, cpu))
    _row("a bare echo", echoes["per_second"], "requests", echoes["cpu_us"], "")
    single, cpu = asked["single"]["per_second"], asked["single"]["cpu_us"]
    share = _share("the echo", single / echoes["per_second"], echoes, cpu)
    _row("predict and label, one by one", single, "requests", cpu, share)
    half = asked["half"]
    print(f"  at half of that load           p50 {half['p50_ms']:.1f} ms, p99 {half['p99_ms']:.1f}"
          f" ms; fsync of this disk {1e3 * _fsync():.1f} ms")  # fmt: skip
    shared: dict[int, float] = {}
    if postgres.binaries() is None:
        print("no PostgreSQL on this machine")
    else:
        with postgres.running() as server:
            for number in (1, 4):
                count = max(EVENTS // 8, 20_000)
                shared[number] = workers(server.new(f"of{number}"), count, number)
                print(f"  PostgreSQL, {number} of them at work   {shared[number]:>10,.0f} events a "
                      f"second, {100 * shared[number] / rate:.0f} % of SQLite")  # fmt: skip
    print(json.dumps({"store": own, "stream": piped, "start": began, "http": asked,
                      "postgres": shared}))  # fmt: skip


def _row(name: str, rate: float, of: str, cpu: float, share: str) -> None:
    print(f"  {name:<31}{rate:>10,.0f} {of} a second, {cpu:.1f} µs of processor time{share}")


def _share(what: str, rate: float, other: dict[str, float], cpu: float) -> str:
    """Ratios to something: of the rate, and of the processor time."""
    return f"; {100 * rate:.0f} % of {what}, {100 * other['cpu_us'] / cpu:.0f} % by processor"


def _children() -> float:
    """The seconds of processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _fsync() -> float:
    """The seconds that one small write to the disk takes here, the median of some."""
    took = []
    with NamedTemporaryFile(buffering=0) as file:
        for _ in range(51):
            begin = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            took.append(time.perf_counter() - begin)
    return sorted(took)[25]


if __name__ == "__main__":
    main()
