"""The service itself: an ASGI application in front of a store."""

import asyncio
import logging
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

import msgspec
import uvicorn
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route, Router

from setpoint import spec
from setpoint.decisions import Gate
from setpoint.decisions.certificate import GateCertificate
from setpoint.errors import InputError, SetpointError, UnknownStream
from setpoint.service import api, wire
from setpoint.service.api import Operation
from setpoint.service.tokens import Tokens
from setpoint.service.watch import Metrics, panel, span
from setpoint.service.wire import Json, encoded, name_in, refusal
from setpoint.service.work import Worker
from setpoint.store import Store
from setpoint.store.events import Unread, id_text, name_of, quoted
from setpoint.store.lines import array, event, line
from setpoint.store.stored import StoredGate

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}  # fmt: skip
_FILES = {"/": "page.html", "/page.js": "page.js", "/page.css": "page.css"}
_FAILED = 5.0  # for so many seconds after a write that failed it is not ready
_LONG = 0.05  # seconds of the processor for a list of all streams
_SHARED = 1000  # events that a page may be behind; the oldest are then left out
_HUNDRED = (1 << 100) - 1
_VERBS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # what it needs, and may have
    "prediction": (("prediction",), ("groups", "features")), "score": (("score",), ()),
    "y": (("y", "wrong", "loss"), ("step",)), "drop": ((), ()),
}  # fmt: skip
_log = logging.getLogger("setpoint.service")
_Answering = Callable[[Request], Awaitable[Any]]
_Methods = dict[str, tuple[Operation, _Answering]]


class Limits(msgspec.Struct, frozen=True):
    """What the service takes on: bytes of a body, events in a batch, events that wait, streams
    with metrics of their own, pages that look on, and bytes of a stream that is imported.
    """

    body: int = 8 << 20
    batch: int = 10_000
    waiting: int = 20_000
    metrics: int = 200
    pages: int = 100
    imported: int = 256 << 20

    @classmethod
    def of(cls, named: Mapping[str, int]) -> "Limits":
        """The usual limits but for those that are named."""
        strange = [name for name in named if name not in cls.__struct_fields__]
        if strange:
            known = ", ".join(cls.__struct_fields__)
            raise InputError(f"limits are {known}; got {strange[0]!r}")
        return cls(**named)


class Service:
    """Streams behind HTTP, as an ASGI application.

    Parameters
    ----------
    opened
        Opens the store: once to write, once more to read.
    tokens
        Who may do what; without any, everyone may do everything, and only loopback is served.
    limits
        What it takes on.
    forecasts
        A folder with saved forecasts to serve.
    """

    def __init__(
        self, opened: Callable[[], Store], tokens: Tokens, limits: Limits,
        forecasts: Path | None = None,
    ) -> None:  # fmt: skip
        self.opened, self.tokens, self.limits = opened, tokens, limits
        self.forecasts = None
        if forecasts is not None:
            from setpoint.service.forecasts import Forecasts  # brings models along

            self.forecasts = Forecasts(forecasts, limits.body)
        self.stopping: Callable[[], bool] = lambda: False
        self.metrics = Metrics(self._rows, limits.metrics)
        self.pages: dict[str, set[asyncio.Queue[bytes]]] = {}
        self.followers = 0
        self._kept: list[dict[str, Any]] = []
        self._fresh = 0.0  # until when they are
        self._threads = ThreadPoolExecutor(1, "setpoint-reader")
        places: dict[str, _Methods] = {}
        for operation, answer in (*self.operations(), *self._pages()):
            self.metrics.begin(operation.name)
            places.setdefault(operation.path, {})[operation.method] = operation, answer
        routes = [Route(path, _Place(self, methods)) for path, methods in places.items()]
        self._router = Router(
            routes, redirect_slashes=False, default=_Place(self, {}), lifespan=self._life
        )

    @asynccontextmanager
    async def _life(self, _: Any) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        self.store = await loop.run_in_executor(self._threads, self.opened)
        self.reader = await loop.run_in_executor(self._threads, self.opened)
        self.worker = Worker(self.store, self.limits.waiting, self._seen)
        self.metrics.worker = self.worker
        yield
        await loop.run_in_executor(None, self.worker.close)
        self._threads.shutdown()
        self.store.close()
        self.reader.close()

    # A request, from its path to its answer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request, as ASGI has it; a name in the path may hold a slash, as %2F."""
        if scope["type"] == "http":
            scope["path"] = scope["raw_path"].decode("latin-1")
        await self._router(scope, receive, send)

    async def answer(self, request: Request, methods: _Methods) -> Response:
        """The response to a request, one of the methods that its path knows."""
        began, operation, error = time.perf_counter(), None, ""
        try:
            operation, answer = _chosen(request, methods)
            wire.admit(request, operation, self.tokens)
            value = await answer(request)
            response = value if isinstance(value, Response) else Json(encoded(value))
        except (HTTPException, SetpointError, ClientDisconnect, RecursionError) as refused:
            response, error = wire.problem(refused), type(refused).__name__
        except Exception as failed:
            _log.exception("a request failed")
            response, error = wire.problem(failed), type(failed).__name__
        name = "none" if operation is None else operation.name
        seconds = time.perf_counter() - began
        self.metrics.answered(name, response.status_code, None if error else seconds)
        fields = {"operation": name, "status": response.status_code, "kind": error or None,
                  "stream": request.path_params.get("name")}  # fmt: skip
        span(name, request.headers, seconds, fields)
        if _log.isEnabledFor(logging.INFO):
            _log.info("request", extra={**fields, "seconds": seconds})
        return response

    # Operations: what can be asked, by whom

    def operations(self) -> list[tuple[Operation, _Answering]]:
        """Everything that can be asked, and what answers it."""
        one, all_ = "/v1/streams/{name}", "/v1/streams"
        events = list[api.Event], list[api.Answer]
        text, both = "text/plain", (wire.JSON, wire.LINES)
        return [
            (Operation("predict", "POST", f"{one}/predict", "write", "The set for a prediction",
                       api.Prediction, api.Answer), partial(self.single, "prediction")),
            (Operation("decide", "POST", f"{one}/decide", "write", "Whether to act on a request",
                       api.Request, api.Answer), partial(self.single, "score")),
            (Operation("label", "POST", f"{one}/label", "write", "The loss of a label",
                       api.Label, api.Answer), partial(self.single, "y")),
            (Operation("health", "GET", "/health", "", "Whether the service is up", None,
                       api.Health), self.health),
            (Operation("ready", "GET", "/ready", "", "Whether it can take events in", None,
                       api.Health), self.ready),
            (Operation("metrics", "GET", "/metrics", "read", "Metrics for Prometheus",
                       kind=text), self.scrape),
            (Operation("streams", "GET", all_, "read", "Streams, those in trouble first", None,
                       list[api.Summary], query={"search": "", "limit": 100, "offset": 0}),
             self.streams),
            (Operation("alarms", "GET", "/v1/alarms", "read", "The last alarms", None,
                       list[api.Alarm], query={"limit": 100}), self.alarms),
            (Operation("events", "POST", "/v1/events", "write", "Events of many streams",
                       *events, kinds=both), self.events),
            (Operation("create", "PUT", one, "admin", "Begins a stream", api.New,
                       api.Summary), self.create),
            (Operation("show", "GET", one, "read", "How a stream does", None,
                       api.Summary), self.show),
            (Operation("change", "PATCH", one, "admin", "Changes what a stream holds",
                       api.Alteration, api.Summary), self.change),
            (Operation("delete", "DELETE", one, "admin", "Deletes a stream and all of it", None,
                       api.Deleted), self.delete),
            (Operation("forget", "POST", f"{one}/forget", "admin",
                       "Deletes closed predictions: some ids, those before a time, or all",
                       api.Forget, api.Forgotten), self.forget),
            (Operation("export", "GET", f"{one}/export", "read", "A stream with all of it",
                       kind="application/x-ndjson"), self.export),
            (Operation("import", "POST", f"{one}/import", "admin", "Takes in an exported stream",
                       bytes, api.Summary, kinds=(wire.LINES,)), self.take_in),
            (Operation("drop", "POST", f"{one}/drop", "write", "Gives a prediction up",
                       api.Drop, api.Answer), partial(self.single, "drop")),
            (Operation("stream_events", "POST", f"{one}/events", "write", "Events of a stream",
                       *events, kinds=both), self.events),
            (Operation("certificate", "GET", f"{one}/certificate", "read",
                       "What is guaranteed", None, api.Certificate), self.certificate),
            (Operation("explain", "GET", f"{one}/explain", "read",
                       "Why the last interval that waits is as it is, or the one under an id", None,
                       api.Explanation, query={"id": ""}), self.explain),
            (Operation("history", "GET", f"{one}/history", "read",
                       "Predictions after a number; the last ones if it is below zero", None,
                       list[api.Past], query={"after": -1, "limit": 100}), self.history),
            (Operation("live", "GET", f"{one}/live", "read", "Events as they come",
                       kind="text/event-stream"), self.live),
            *(self.forecasts.operations() if self.forecasts else []),
        ]  # fmt: skip

    def _pages(self) -> Iterator[tuple[Operation, _Answering]]:
        document = encoded(api.document([operation for operation, _ in self.operations()]))
        openapi = Operation("openapi", "GET", "/openapi.json", "", "This document")
        yield openapi, partial(self._fixed, document)
        for path, file in _FILES.items():
            place = Path(__file__).parent / file
            yield Operation("page", "GET", path, "", "The live page"), partial(self._file, place)

    # Events

    async def single(self, verb: str, request: Request) -> Response:
        """One prediction, label or drop."""
        value = event(await wire.body_of(request, self.limits.body))
        if type(value) is Unread:
            raise refusal(400, value.reason)
        needs, beside = _VERBS[verb]
        known = ("id", *needs, *beside)
        if type(value) is not dict or not value.keys() <= set(known):
            raise refusal(422, f"the body must be an object with {', '.join(known)}")
        if verb == "drop":
            value["drop"] = True
        elif value.keys().isdisjoint(needs):
            raise refusal(422, f"the body needs {' or '.join(needs)}")
        (answer,) = await self.worker.apply([value], name_in(request))
        if "error" in answer:
            return wire.refused(answer["kind"], answer["error"])
        return Json(line(answer))

    async def events(self, request: Request) -> Response:
        """Many events, as a list or as lines; answers in the same order, in the same form."""
        body = await wire.body_of(request, self.limits.body)
        lines = wire.header(request, b"content-type").lower().startswith(wire.LINES)
        parts = [part for part in body.split(b"\n") if part.strip()] if lines else array(body)
        if isinstance(parts, Unread):
            raise refusal(400, parts.reason)
        if len(parts) > self.limits.batch:
            raise refusal(413, f"a batch may have {self.limits.batch:,} events, got {len(parts):,}")
        name = name_in(request) if request.path_params else ""
        events = [_named(one, name) for one in (map(event, parts) if lines else parts)]
        answers = await self.worker.apply(events, name) if events else []
        if lines:
            return Json(b"".join([line(answer) + b"\n" for answer in answers]), wire.LINES)
        return Json(line(answers))

    def _seen(self, stream: str, events: Sequence[Any], answers: list[dict[str, Any]]) -> None:
        """Shows the pages that look on what was taken in."""
        self.metrics.count(answers)
        if not self.pages:
            return
        for sent, answer in zip(events, answers, strict=True):
            queues = self.pages.get(str(answer.get("stream", stream)))
            if queues and "error" not in answer and isinstance(sent, dict):
                text = line({"event": sent, "answer": answer, "at": time.time()})
                for queue in queues:
                    if queue.full():
                        queue.get_nowait()
                    queue.put_nowait(text)

    # Streams

    async def create(self, request: Request) -> api.Summary:
        """Begins a stream, or finds that it began so."""
        asked = wire.read(await wire.body_of(request, self.limits.body), api.New)
        controller = api.held_of(asked)
        await self.worker.call(partial(self.store.stream, name_in(request), controller))
        return await self._shown(name_in(request))

    async def change(self, request: Request) -> api.Summary:
        """Changes a level, a step rule or bounds, forgets what was learnt of the model, renames.

        After a change of what is held the certificate begins a new segment.
        """
        asked = wire.read(await wire.body_of(request, self.limits.body), api.Alteration)
        name, step = name_in(request), None
        if asked.step is not None:
            options = {key: value for key, value in asked.step.items() if key != "part"}
            step = spec.make("steps", str(asked.step.get("part")), options)
        await self._known(name)
        await self.worker.call(partial(self._alter, name, asked, step))
        return await self._shown(asked.name or name)

    def _alter(self, name: str, asked: api.Alteration, step: Any) -> None:
        """Changes a stream or a gate, in the thread that writes."""
        options = {"level": asked.level, "bounds": asked.bounds, "step": step}
        given = asked.reset or any(value is not None for value in options.values())
        kept = self.store.stream(name)
        if asked.name is not None and name_of(asked.name) in {*self.store.names, ""} - {name}:
            raise refusal(409, f"the name {quoted(asked.name)} is taken, or empty")
        if isinstance(kept, StoredGate):
            if given:
                raise refusal(422, "a gate is changed by all its terms, in gate, and nothing else")
            if asked.gate is not None:
                kept.change(api.terms_of(asked.gate))
            elif not (asked.acknowledge or asked.name is not None):
                told = 'a gate is changed by all its terms, as in {"gate": {"errors": 0.05}}'
                raise refusal(422, told)
        elif asked.gate is not None:
            raise refusal(422, f"{quoted(name)} is no gate: change its level, bounds or step")
        elif given or not (asked.acknowledge or asked.name is not None):
            kept.change(risk=asked.risk, reset=asked.reset, **options)
        if asked.acknowledge:
            kept.acknowledge()
        if asked.name not in (None, name):
            self.store.rename(name, asked.name)

    async def delete(self, request: Request) -> api.Deleted:
        """Deletes a stream, its predictions and its alarms."""
        name = name_in(request)
        await self.worker.call(partial(self.store.delete, name))
        return api.Deleted(name)

    async def forget(self, request: Request) -> api.Forgotten:
        """Deletes predictions that are closed; what was learnt of them stays."""
        asked = wire.read(await wire.body_of(request, self.limits.body), api.Forget)
        forget = partial(self.store.forget, name_in(request), asked.ids, before=asked.before)
        return api.Forgotten(await self.worker.call(forget))

    async def export(self, request: Request) -> Response:
        """A stream as lines, from a connection of its own: it may take long."""
        name = name_in(request)
        await self._known(name)
        file = SpooledTemporaryFile(self.limits.body)  # noqa: SIM115 - closed when all is sent

        def write() -> None:
            with self.opened() as store:
                file.writelines(store.lines([name]))
            file.seek(0)

        def content() -> Iterator[bytes]:
            with file:
                while chunk := file.read(1 << 18):
                    yield chunk

        await asyncio.get_running_loop().run_in_executor(None, write)
        return StreamingResponse(content(), 200, _HEADERS, wire.LINES.decode())

    async def take_in(self, request: Request) -> api.Summary:
        """Takes in a stream that was exported, under the name in the path."""
        name = name_in(request)
        with SpooledTemporaryFile(self.limits.body) as file:
            async for chunk in wire.chunks_of(request, self.limits.imported):
                file.write(chunk)
            file.seek(0)
            await self.worker.call(lambda: self.store.import_streams(file, name))
        return await self._shown(name)

    async def streams(self, request: Request) -> list[api.Summary]:
        """Streams by trouble; `search` is a part of the name."""
        search = request.query_params.get("search", "").lower()
        limit = wire.whole_in(request, "limit", 100, 1, 10_000)
        offset = wire.whole_in(request, "offset", 0, 0)
        rows = await self._look(self._rows)
        fits = [row for row in rows if search in row["name"].lower()]
        return [_summary(row) for row in fits[offset : offset + limit]]

    async def show(self, request: Request) -> api.Summary:
        """How one stream does, with the summary that a person reads."""
        return await self._shown(name_in(request))

    async def _shown(self, name: str) -> api.Summary:
        row = await self._known(name)
        row["controller"] = await self._look(self.reader.held, name)
        summary = await self._look(self.reader.summary, name)
        row["summary"] = {"text": str(summary), **summary.as_dict()}
        return _summary(row)

    async def certificate(self, request: Request) -> api.Certificate:
        """What is guaranteed for a stream."""
        certificate = await self._look(self.reader.certificate, name_in(request))
        if isinstance(certificate, GateCertificate):
            return api.Certificate(str(certificate), gate=certificate.as_dict())
        return api.Certificate(str(certificate), **certificate.as_dict())

    async def explain(self, request: Request) -> api.Explanation:
        """Why an interval that waits for its actual value is as it is."""
        stream = await self._look(self.reader.read, name_in(request))
        if isinstance(stream, Gate):
            raise refusal(422, "a gate shows no intervals to explain")
        asked = request.query_params.get("id", "")
        ids = [id for id in stream.pending if asked in ("", str(id), id_text(id))]
        if not ids:
            raise refusal(404, f"no prediction waits{f' under {asked}' if asked else ''}")
        why = stream.explain(ids[-1])
        return api.Explanation(ids[-1], why.lines(), why.as_dict())

    async def history(self, request: Request) -> list[api.Past]:
        """Predictions of a stream, each with what became of it."""
        name, limit = name_in(request), wire.whole_in(request, "limit", 100, 1, 10_000)
        after = wire.whole_in(request, "after", -1, -1)
        row = await self._known(name)
        if after < 0:
            after = row["predictions"] - limit - 1
        rows = await self._look(lambda: list(self.reader.history(name, after, limit)))
        return [api.Past(**past) for past in rows]

    async def alarms(self, request: Request) -> list[api.Alarm]:
        """The last alarms, the newest first."""
        most = wire.whole_in(request, "limit", 100, 1, 10_000)
        return [api.Alarm(**alarm) for alarm in await self._look(self.reader.alarms, most)]

    async def live(self, request: Request) -> Response:
        """Events of a stream as they come, as server-sent events."""
        name = name_in(request)
        await self._known(name)
        if request.method == "HEAD":
            return StreamingResponse(iter(()), 200, _HEADERS, "text/event-stream")
        if self.followers >= self.limits.pages:  # nothing is awaited until its place is taken
            raise refusal(429, f"{self.followers} pages look on, as many as may")
        return _Page(self, name)

    # The service itself

    async def health(self, _: Request) -> api.Health:
        """It answers, so it is up."""
        return api.Health("ok")

    async def ready(self, _: Request) -> Response:
        """Whether events can be taken in now, as far as the last seconds tell."""
        status: Any = "stopping" if self.stopping() else "ok"
        try:
            await asyncio.wait_for(self._look(self.reader.alarms, 1), 5.0)
        except (SetpointError, TimeoutError):
            status = "no database"
        if time.monotonic() < self.worker.failed + _FAILED:
            status = "no database"
        return Json(encoded(api.Health(status)), status=200 if status == "ok" else 503)

    async def scrape(self, _: Request) -> Response:
        """Metrics in the words of Prometheus."""
        text = await self._look(self.metrics.text)
        return Json(text, b"text/plain; version=0.0.4; charset=utf-8")

    def _rows(self, name: str | None = None) -> list[dict[str, Any]]:
        """An overview of every stream or one, those in trouble first.

        Where there are many streams it serves everyone who asks for a while: ten times as long as
        it took, so that pages that look on leave the processor to the events.
        """
        if name is None and time.monotonic() < self._fresh:
            return self._kept
        began, rows = time.thread_time(), []
        for other, row in self.reader.overviews(name).items():
            row["labels"] = int(row["labels"])
            rows.append({"name": other, **row})
        panel(rows)
        took = time.thread_time() - began
        if took > _LONG and name is None:
            self._kept, self._fresh = rows, time.monotonic() + 10.0 * took
        return rows

    async def _known(self, name: str) -> dict[str, Any]:
        """The overview of a stream that exists."""
        rows = await self._look(self._rows, name)
        if not rows:
            raise UnknownStream(f"there is no stream {quoted(name)}")
        return dict(rows[0])

    async def _look(self, function: Callable[..., Any], *values: Any) -> Any:
        """What a function returns that only reads, in a thread of its own."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *values)

    async def _fixed(self, content: bytes, _: Request) -> Response:
        return Json(content)

    async def _file(self, path: Path, _: Request) -> Response:
        return FileResponse(path, headers=_HEADERS)


class _Place:
    """What is at a path, for the router; {} is nothing."""

    def __init__(self, service: Service, methods: _Methods) -> None:
        self.service = service
        self.methods = {"HEAD": methods["GET"], **methods} if "GET" in methods else methods

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        response = await self.service.answer(Request(scope, receive), self.methods)
        await response(scope, receive, send)


def _chosen(request: Request, methods: _Methods) -> tuple[Operation, _Answering]:
    if not methods:
        raise refusal(404, "there is nothing at this path: see /openapi.json")
    if request.method not in methods:
        allowed = ", ".join(methods)
        raise HTTPException(405, f"this path knows {allowed}", {"allow": allowed})
    return methods[request.method]


class _Page(StreamingResponse):
    """A page that looks on: it has its place from the moment it is made until it goes."""

    def __init__(self, service: Service, name: str) -> None:
        super().__init__(self._events(), 200, _HEADERS, "text/event-stream")
        self.service, self.name = service, name
        self.queue: asyncio.Queue[bytes] = asyncio.Queue(_SHARED)
        service.pages.setdefault(name, set()).add(self.queue)
        service.followers += 1

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Sends events until the page goes."""
        service, pages = self.service, self.service.pages[self.name]
        try:
            await super().__call__(scope, receive, send)
        finally:
            service.followers -= 1
            pages.discard(self.queue)
            if not pages:
                service.pages.pop(self.name, None)

    async def _events(self) -> AsyncIterator[bytes]:
        yield b": begins\n\n"
        quiet = 0
        while not self.service.stopping():
            try:
                yield b"data: " + await asyncio.wait_for(self.queue.get(), 1.0) + b"\n\n"
                quiet = 0
            except TimeoutError:
                quiet += 1
                if quiet % 15 == 0:
                    yield b": quiet\n\n"


def serve(
    service: Service, host: str, port: int, began: Callable[[int], None] = lambda _: None
) -> None:
    """Answers on a port until it is told to stop, then finishes what has begun.

    `began` is called with the port once it is open; port 0 takes a free one.
    """
    if not service.tokens and not wire.is_loopback(f"{host}:0"):
        raise InputError(
            f"without tokens the service answers on this machine only, got --host {host}: give "
            "--tokens FILE or SETPOINT_TOKENS"
        )
    service.opened().close()  # a store that cannot be opened is told before the port is
    config = uvicorn.Config(
        service, host, port, log_level="warning", access_log=False, server_header=False,
        proxy_headers=False, timeout_graceful_shutdown=20, timeout_keep_alive=30, ws="none",
    )  # fmt: skip
    server = uvicorn.Server(config)
    service.stopping = lambda: server.should_exit

    def stop(*_: Any) -> None:
        server.should_exit = True

    for kind in (signal.SIGTERM, signal.SIGINT):  # the server raises them again once it has ended
        signal.signal(kind, stop)
    listener = config.bind_socket()
    listener.listen(2048)
    began(listener.getsockname()[1])
    server.run([listener])


def _summary(row: dict[str, Any]) -> api.Summary:
    """An overview as it is answered, with the coverage of each hundred of the last labels."""
    bits, known = int(row["recent"], 16), row["known"]
    shares = [
        ((bits >> start) & _HUNDRED).bit_count() / min(100, known - start)
        for start in range(0, known, 100)
    ]
    return msgspec.convert({**row, "past": shares[::-1]}, api.Summary)


def _named(one: Any, name: str) -> Any:
    """An event whose stream is known, or why it cannot be taken in."""
    if not isinstance(one, dict):
        return one
    if not name and one.get("stream") in (None, ""):
        return Unread("an event must name its stream here", one)
    if name and one.get("stream", name) != name:
        return Unread(f"an event here must be of {quoted(name)}: use /v1/events", one)
    return one
