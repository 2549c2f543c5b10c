"""The service at work: requests a second beside a bare echo, batches beside the store itself.

`python -m benchmarks service` measures, in one run on this machine: events a second of the store
and of `setpoint stream` on SQLite, with the memory as it goes; over HTTP, batches of 100 and single
requests, the latter beside an endpoint of the same server that only returns what it was sent; the
latency at half of the highest load; the processor time of each, which a busy machine disturbs
less; and four workers on PostgreSQL. SETPOINT_EVENTS makes it smaller or larger.
"""

import json
import multiprocessing
import os
import selectors
import socket
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import setpoint as sp
from benchmarks.cli import _CONTROLLER, lines, stream
from benchmarks.store import stored
from setpoint.service.app import Limits, Service, serve
from setpoint.service.tokens import Tokens
from tests import postgres

EVENTS = int(os.environ.get("SETPOINT_EVENTS", 1_000_000))
_CONNECTIONS = 64


def echo(port: int) -> None:
    """The same server with an endpoint that reads JSON and returns it."""
    import msgspec
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def answer(request: Request) -> Response:
        value = msgspec.json.decode(await request.body())
        return Response(msgspec.json.encode(value), media_type="application/json")

    app = Starlette(
        routes=[
            Route(f"/v1/streams/{{name}}/{verb}", answer, methods=["POST"])
            for verb in ("predict", "label")
        ]
    )
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)


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
        watch = selectors.DefaultSelector()
        idle, begun, took = [], {}, []
        for _ in range(_CONNECTIONS):
            one = socket.create_connection(("127.0.0.1", self.port))
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            watch.register(one, selectors.EVENT_READ, bytearray())
            idle.append(one)
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
                data += one.recv(1 << 16)
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
        for key in list(watch.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
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
    """Requests a second of the echo and of the service, single and in batches."""
    results: dict[str, Any] = {}

    def measure(name: str, worker: Any, load: Load, rate: float | None = None) -> None:
        before = _processor(worker.pid)
        results[name] = load.run(seconds, rate)
        spent = _processor(worker.pid) - before
        results[name]["cpu_us"] = 1e6 * spent / (seconds * results[name]["per_second"])

    port = postgres.free_port()
    worker = process(echo, port)
    load = Load(port, _single)
    load.run(0.5)
    measure("echo", worker, load)
    worker.terminate()
    port = postgres.free_port()
    worker = process(service, port, f"{folder}/single.sqlite")
    load = Load(port, _single)
    load.run(0.5)
    measure("single", worker, load)
    measure("half", worker, load, results["single"]["per_second"] / 2)
    measure("batches", worker, Load(port, _hundred, 10_000_000))
    worker.terminate()
    worker.join()
    return results


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
    seconds = max(1.0, min(10.0, EVENTS / 100_000))
    with TemporaryDirectory() as folder:
        own = stored(Path(folder) / "store.sqlite", EVENTS, 1)
        piped = stream(Path(folder), EVENTS, 1)
        asked = http(Path(folder), seconds)
    memory = ", ".join(f"{value / 1e6:.0f}" for value in piped["memory_after"].values())
    rate, single = own["events_per_second"], asked["single"]["per_second"]
    batches = 100 * asked["batches"]["per_second"]
    print(f"{EVENTS:,} events on SQLite, all on the disk")
    print(f"  the store, batches of 1,000    {rate:>10,.0f} events a second")
    print(f"  setpoint stream                {piped['lines_per_second']:>10,.0f} lines a second")
    print(f"                                 memory {memory} MB as it goes")
    print(f"over HTTP, {_CONNECTIONS} connections")
    share = 100 * batches / rate
    print(
        f"  batches of 100                 {batches:>10,.0f} events a second, {share:.0f} % of it"
    )
    print(
        f"  a bare echo                    {asked['echo']['per_second']:>10,.0f} requests a second"
    )
    share = 100 * single / asked["echo"]["per_second"]
    print(
        f"  predict and label, one by one  {single:>10,.0f} requests a second, {share:.0f} % of it"
    )
    spent = {name: asked[name]["cpu_us"] for name in ("echo", "single", "batches")}
    share = 100 * spent["echo"] / spent["single"]
    print(
        f"  processor time                 {spent['echo']:.0f} µs an echo, {spent['single']:.0f} "
        f"µs a request ({share:.0f} %), {spent['batches'] / 100:.1f} µs an event of a batch"
    )
    half = asked["half"]
    print(
        f"  at half of that load           p50 {half['p50_ms']:.1f} ms, p99 {half['p99_ms']:.1f} ms"
    )
    shared: dict[int, float] = {}
    if postgres.binaries() is None:
        print("no PostgreSQL on this machine")
    else:
        with postgres.running() as server:
            for number in (1, 4):
                count = max(EVENTS // 5, 20_000)
                shared[number] = workers(server.new(f"of{number}"), count, number)
                name = f"PostgreSQL, workers: {number}"
                print(f"  {name:<31}{shared[number]:>10,.0f} events a second")
    print(json.dumps({"store": own, "stream": piped, "http": asked, "postgres": shared}))


if __name__ == "__main__":
    main()
