"""The service itself: an ASGI application in front of a store."""

import asyncio
import logging
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Router

from setpoint import errors, presets, spec
from setpoint.errors import InputError, SetpointError, UnknownStream
from setpoint.service import api
from setpoint.service.api import Operation
from setpoint.service.tokens import Tokens
from setpoint.service.watch import Metrics, Webhooks, trouble
from setpoint.service.work import Busy, Worker
from setpoint.store import Store
from setpoint.store.events import Unread, name_of, quoted
from setpoint.store.lines import array, event, line

__all__ = ["Limits", "Refusal", "Service", "serve"]

_STATUS: dict[type[Exception], int] = {
    Busy: 429,
    errors.UnknownReceipt: 404,
    errors.UnknownStream: 404,
    errors.AnsweredReceipt: 409,
    errors.AmbiguousReceipt: 409,
    errors.ExpiredReceipt: 410,
    errors.PendingFull: 409,
    errors.WriteError: 503,
    errors.TakenOver: 503,
    errors.StateError: 409,
    errors.LossError: 422,
    errors.SpecError: 422,
    InputError: 422,
}
_JSON, _LINES = b"application/json", b"application/x-ndjson"
_PLAIN_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}  # fmt: skip
_FILES = {"/": "page.html", "/page.js": "page.js", "/page.css": "page.css"}
_ONE = "/v1/streams/"
_FAILED = 5.0  # for so many seconds after a write that failed it is not ready
_LONG = 0.05  # seconds of the processor for a list of all streams
_SHARED = 1000  # events that a page may be behind; the oldest are then left out
_encode = msgspec.json.Encoder(enc_hook=str).encode
_log = logging.getLogger("setpoint")
_Answering = Callable[[Request], Awaitable[Response]]


class Limits(msgspec.Struct, frozen=True):
    """What the service takes on: bytes of a body, events in a batch, events that wait, streams
    with metrics of their own, and pages that look on.
    """

    body: int = 8 << 20
    batch: int = 10_000
    waiting: int = 20_000
    metrics: int = 200
    pages: int = 100


class Refusal(Exception):
    """A request that is refused: its status, and why."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}


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
    hooks
        Gives who is told of alarms.
    """

    def __init__(
        self, opened: Callable[[], Store], tokens: Tokens, limits: Limits,
        hooks: Callable[[Store], Webhooks | None] = lambda _: None,
    ) -> None:  # fmt: skip
        self.opened, self.tokens, self.limits, self.hooks = opened, tokens, limits, hooks
        self.stopping: Callable[[], bool] = lambda: False
        self.metrics = Metrics(self._rows, limits.metrics)
        self.pages: dict[str, set[asyncio.Queue[bytes]]] = {}
        self.followers = 0
        self._kept: list[dict[str, Any]] = []
        self._fresh = 0.0  # until when they are
        self._threads = ThreadPoolExecutor(1, "setpoint-reader")
        self._places: dict[str, dict[str, tuple[Operation, _Answering]]] = {}
        for operation, answer in (*self.operations(), *self._pages()):
            methods = self._places.setdefault(operation.path, {})
            methods[operation.method] = operation, answer
            for status in (429, 500, 503):  # the first one is to be seen as an increase
                self.metrics.answered(operation.name, status, 0)
            if operation.method == "GET":
                methods["HEAD"] = operation, answer
        self._router = Router(lifespan=self._life)

    @asynccontextmanager
    async def _life(self, _: Any) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        self.store = await loop.run_in_executor(self._threads, self.opened)
        self.reader = await loop.run_in_executor(self._threads, self.opened)
        self.worker = Worker(self.store, self.limits.waiting, self._seen)
        self.metrics.worker = self.worker
        webhooks, telling = self.hooks(self.reader), None
        if webhooks is not None:
            telling = asyncio.create_task(webhooks.run(self._look))
        yield
        if telling is not None:
            telling.cancel()
        await loop.run_in_executor(None, self.worker.close)
        self._threads.shutdown()
        self.store.close()
        self.reader.close()

    # A request, from its path to its answer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request, as ASGI has it."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        response = await self._answer(Request(scope, receive))
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        began, name = time.perf_counter(), "none"
        try:
            operation, answer = self._place(request.scope)
            name = operation.name
            self._admit(dict(request.scope["headers"]), operation)
            response = await answer(request)
            self.metrics.took(name, time.perf_counter() - began)
        except Refusal as error:
            response = _problem(error.status, error.detail, "Refused", error.headers)
        except SetpointError as error:
            response = _problem(_status(type(error)), str(error)[:1000], type(error).__name__)
        except ClientDisconnect:
            response = Response(status_code=400)
        except Exception:
            _log.exception("a request failed")
            response = _problem(500, "something went wrong; the log has more", "Error")
        self.metrics.answered(name, response.status_code)
        return response

    def _place(self, scope: Any) -> tuple[Operation, _Answering]:
        """What is asked for; a name in the path may hold a slash, written as %2F."""
        path = scope["raw_path"].decode("latin-1")
        if path.startswith(_ONE):
            name, slash, rest = path[len(_ONE) :].partition("/")
            scope["path_params"] = {"name": name}
            path = f"{_ONE}{{name}}{slash}{rest}" if name else ""
        methods = self._places.get(path)
        if methods is None:
            raise Refusal(404, "there is nothing at this path: see /openapi.json")
        if scope["method"] not in methods:
            allowed = ", ".join(methods)
            raise Refusal(405, f"this path knows {allowed}", {"allow": allowed})
        return methods[scope["method"]]

    def _admit(self, headers: dict[bytes, bytes], operation: Operation) -> None:
        """Refuses those who may not, before anything of the request is read."""
        if self.tokens and operation.scope:
            kind, _, secret = headers.get(b"authorization", b"").partition(b" ")
            allowed = self.tokens.allows(secret, operation.scope)
            if kind.lower() != b"bearer" or allowed is None:
                raise Refusal(401, "this needs a bearer token that the service knows")
            if not allowed:
                raise Refusal(403, f"this needs a token with the scope {operation.scope}")
        elif not self.tokens and not _loopback(headers.get(b"host", b"").decode("latin-1")):
            raise Refusal(403, "without tokens only localhost is served")  # a page of elsewhere
        if operation.body is not None:
            kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if kind != _JSON and not (operation.lines and kind == _LINES):
                known = "application/json" + " or application/x-ndjson" * operation.lines
                raise Refusal(
                    415, f"the content type must be {known}, got {kind.decode('latin-1')!r}"
                )

    # Operations: what can be asked, by whom

    def operations(self) -> list[tuple[Operation, _Answering]]:
        """Everything that can be asked, and what answers it."""
        one, all_ = "/v1/streams/{name}", "/v1/streams"
        events = list[api.Event], list[api.Answer]
        text = "text/plain"
        return [
            (Operation("predict", "POST", f"{one}/predict", "write", "The set for a prediction",
                       api.Prediction, api.Answer), partial(self.single, "prediction")),
            (Operation("label", "POST", f"{one}/label", "write", "The loss of a label",
                       api.Label, api.Answer), partial(self.single, "y")),
            (Operation("health", "GET", "/health", "", "Whether the service is up", None,
                       api.Health), self.health),
            (Operation("ready", "GET", "/ready", "", "Whether it can take events in", None,
                       api.Health), self.ready),
            (Operation("metrics", "GET", "/metrics", "read", "Metrics for Prometheus",
                       kind=text), self.scrape),
            (Operation("streams", "GET", all_, "read", "Streams, those in trouble first", None,
                       list[api.Summary], query={"search": "", "limit": 100}), self.streams),
            (Operation("alarms", "GET", "/v1/alarms", "read", "The last alarms", None,
                       list[api.Alarm], query={"limit": 100}), self.alarms),
            (Operation("events", "POST", "/v1/events", "write", "Events of many streams",
                       *events, lines=True), self.events),
            (Operation("create", "PUT", one, "admin", "Begins a stream", api.New,
                       api.Summary), self.create),
            (Operation("show", "GET", one, "read", "How a stream does", None,
                       api.Summary), self.show),
            (Operation("change", "PATCH", one, "admin", "Changes what a stream holds",
                       api.Alteration, api.Summary), self.change),
            (Operation("drop", "POST", f"{one}/drop", "write", "Gives a prediction up",
                       api.Drop, api.Answer), partial(self.single, "drop")),
            (Operation("stream_events", "POST", f"{one}/events", "write", "Events of a stream",
                       *events, lines=True), self.events),
            (Operation("certificate", "GET", f"{one}/certificate", "read",
                       "What is guaranteed", None, api.Certificate), self.certificate),
            (Operation("history", "GET", f"{one}/history", "read",
                       "Predictions after a number; the last ones if it is below zero", None,
                       list[api.Past], query={"after": -1, "limit": 100}), self.history),
            (Operation("live", "GET", f"{one}/live", "read", "Events as they come",
                       kind="text/event-stream"), self.live),
        ]  # fmt: skip

    def _pages(self) -> Iterator[tuple[Operation, _Answering]]:
        document = _encode(api.document([operation for operation, _ in self.operations()]))
        openapi = Operation("openapi", "GET", "/openapi.json", "", "This document")
        yield openapi, partial(self._fixed, document)
        for path, file in _FILES.items():
            place = Path(__file__).parent / file
            yield Operation("page", "GET", path, "", "The live page"), partial(self._file, place)

    # Events

    async def single(self, verb: str, request: Request) -> Response:
        """One prediction, label or drop."""
        value = event(await self._body(request))
        if type(value) is Unread:
            raise Refusal(400, value.reason)
        needs = () if verb == "drop" else (verb,)
        known = ("id", *needs, *(["groups"] if verb == "prediction" else []))
        if type(value) is not dict or not value.keys() <= set(known):
            raise Refusal(422, f"the body must be an object with {', '.join(known)}")
        if verb == "drop":
            value["drop"] = True
        elif verb not in value:
            raise Refusal(422, f"the body needs {verb}")
        (answer,) = await self.worker.apply([value], _name(request))
        if "error" in answer:
            kind = getattr(errors, answer["kind"])
            return _problem(_status(kind), answer["error"], answer["kind"])
        return _Json(line(answer))

    async def events(self, request: Request) -> Response:
        """Many events, as a list or as lines; answers in the same order, in the same form."""
        body = await self._body(request)
        lines = dict(request.scope["headers"])[b"content-type"].lower().startswith(_LINES)
        parts = [part for part in body.split(b"\n") if part.strip()] if lines else array(body)
        if isinstance(parts, Unread):
            raise Refusal(400, parts.reason)
        if len(parts) > self.limits.batch:
            raise Refusal(413, f"a batch may have {self.limits.batch:,} events, got {len(parts):,}")
        events: list[Any] = list(map(event, parts)) if lines else parts
        name = _name(request) if "path_params" in request.scope else ""
        for one in events:
            if isinstance(one, dict) and name and one.get("stream", name) != name:
                raise Refusal(422, "an event of this batch names another stream: use /v1/events")
        if not name:
            events = [_named(one) for one in events]
        answers = await self.worker.apply(events, name) if events else []
        if lines:
            return _Json(b"".join([line(answer) + b"\n" for answer in answers]), _LINES)
        return _Json(line(answers))

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

    async def create(self, request: Request) -> Response:
        """Begins a stream, or finds that it is there already."""
        from setpoint.jobs.job import check_work  # not at the start: it brings much along

        asked = self._read(await self._body(request), api.New)
        name = _name(request)
        if (asked.preset is None) == (asked.toml is None):
            raise Refusal(422, "a stream needs a preset or toml, one of them")
        if asked.toml is not None:
            controller = spec.from_toml(asked.toml)
        elif asked.preset == "label_sets":
            controller = presets.label_sets(asked.coverage)
        else:
            controller = presets.intervals(asked.coverage)
        check_work(controller, "the service")
        await self.worker.call(partial(self.store.stream, name, controller))
        return await self.show(request)

    async def change(self, request: Request) -> Response:
        """Changes a level, a step rule or bounds, or forgets what was learnt of the model.

        After a change the certificate begins a new segment.
        """
        asked, name = self._read(await self._body(request), api.Alteration), _name(request)
        step = None
        if asked.step is not None:
            options = {key: value for key, value in asked.step.items() if key != "part"}
            step = spec.make("steps", str(asked.step.get("part")), options)
        await self._known(name)
        options = {"level": asked.level, "bounds": asked.bounds, "step": step}
        options |= {"risk": asked.risk, "reset": asked.reset}
        await self.worker.call(lambda: self.store.stream(name).change(**options))
        return await self.show(request)

    async def streams(self, request: Request) -> Response:
        """Streams by trouble; `search` is a part of the name."""
        search, limit = request.query_params.get("search", "").lower(), self._whole(request)
        rows = await self._look(self._rows)
        return _Json(_encode([row for row in rows if search in row["name"].lower()][:limit]))

    async def show(self, request: Request) -> Response:
        """How one stream does, with the summary that a person reads."""
        name = _name(request)
        row = await self._known(name)
        stream = await self._look(self.reader.read, name)
        text = spec.to_toml(stream.controller)
        summary = await self._look(self.reader.summary, name)
        told = {"text": str(summary), **summary.as_dict()}
        return _Json(_encode({**row, "controller": text, "summary": told}))

    async def certificate(self, request: Request) -> Response:
        """What is guaranteed of a stream."""
        certificate = (await self._look(self.reader.read, _name(request))).certificate()
        return _Json(_encode({"text": str(certificate), **certificate.as_dict()}))

    async def history(self, request: Request) -> Response:
        """Predictions of a stream, each with what became of it."""
        name, limit = _name(request), self._whole(request)
        after = self._whole(request, "after", -1, -1)
        row = await self._known(name)
        if after < 0:
            after = row["predictions"] - limit - 1
        rows = await self._look(lambda: list(self.reader.history(name, after, limit)))
        return _Json(_encode(rows))

    async def alarms(self, request: Request) -> Response:
        """The last alarms, the newest first."""
        return _Json(_encode(await self._look(self.reader.alarms, self._whole(request))))

    async def live(self, request: Request) -> Response:
        """Events of a stream as they come, as server-sent events."""
        name = _name(request)
        await self._known(name)
        if self.followers >= self.limits.pages:
            raise Refusal(429, f"{self.followers} pages look on, as many as may")
        told: Any = iter(()) if request.method == "HEAD" else self._follow(name)
        return StreamingResponse(told, 200, _HEADERS, "text/event-stream")

    async def _follow(self, name: str) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes] = asyncio.Queue(_SHARED)
        self.pages.setdefault(name, set()).add(queue)
        self.followers += 1
        try:
            yield b": begins\n\n"
            quiet = 0
            while not self.stopping():
                try:
                    yield b"data: " + await asyncio.wait_for(queue.get(), 1.0) + b"\n\n"
                    quiet = 0
                except TimeoutError:
                    quiet += 1
                    if quiet % 15 == 0:
                        yield b": quiet\n\n"
        finally:
            self.followers -= 1
            self.pages[name].discard(queue)
            if not self.pages[name]:
                del self.pages[name]

    # The service itself

    async def health(self, _: Request) -> Response:
        """It answers, so it is up."""
        return _Json(_encode(api.Health("ok")))

    async def ready(self, _: Request) -> Response:
        """Whether events can be taken in now, as far as the last seconds tell."""
        status: Any = "stopping" if self.stopping() else "ok"
        try:
            await asyncio.wait_for(self._look(self.reader.alarms, 1), 5.0)
        except (SetpointError, TimeoutError):
            status = "no database"
        if time.monotonic() < self.worker.failed + _FAILED:
            status = "no database"
        return _Json(_encode(api.Health(status)), status=200 if status == "ok" else 503)

    async def scrape(self, _: Request) -> Response:
        """Metrics in the words of Prometheus."""
        text = await self._look(self.metrics.text)
        return _Json(text, b"text/plain; version=0.0.4; charset=utf-8")

    def _rows(self, name: str | None = None) -> list[dict[str, Any]]:
        """An overview of every stream or one, those in trouble first.

        Where there are many streams it serves everyone who asks for a while: ten times as long as
        it took, so that pages that look on leave the processor to the events.
        """
        if name is None and time.monotonic() < self._fresh:
            return self._kept
        began, rows = time.thread_time(), []
        for other, row in self.reader.overviews(name).items():
            del row["recent"], row["known"]
            rows.append({"name": other, **row, "trouble": trouble(row)})
        rows.sort(key=lambda row: (-row["trouble"], row["name"]))
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
        return _Json(content)

    async def _file(self, path: Path, _: Request) -> Response:
        return FileResponse(path, headers=_HEADERS)

    # What comes in

    async def _body(self, request: Request) -> bytes:
        left, chunks, more = self.limits.body, [], True
        while more:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            chunks.append(message.get("body", b""))
            more = message.get("more_body", False)
            left -= len(chunks[-1])
            if left < 0:
                raise Refusal(413, f"a body may have {self.limits.body:,} bytes")
        return b"".join(chunks)

    def _read(self, body: bytes, kind: Any) -> Any:
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.ValidationError as error:
            raise Refusal(422, f"the body does not fit: {error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Refusal(400, f"not JSON: {error}") from None

    def _whole(
        self, request: Request, name: str = "limit", usual: int = 100, least: int = 1
    ) -> int:
        text = request.query_params.get(name, str(usual))
        try:
            value = int(text) if len(text) < 19 else -2
        except ValueError:
            value = least - 1
        if value < least or (name == "limit" and value > 10_000):
            raise Refusal(422, f"{name} must be a whole number from {least}, got {text[:50]!r}")
        return value


def serve(
    service: Service, host: str, port: int, began: Callable[[int], None] = lambda _: None
) -> None:
    """Answers on a port until it is told to stop, then finishes what has begun.

    `began` is called with the port once it is open; port 0 takes a free one.
    """
    if not service.tokens and not _loopback(f"{host}:0"):
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


class _Json(Response):
    """A response whose content is bytes already, with the headers of every response."""

    def __init__(
        self, content: bytes, kind: bytes = _JSON, status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.status_code, self.body, self.background = status, content, None
        self.raw_headers = [
            (b"content-length", b"%d" % len(content)), (b"content-type", kind), *_PLAIN_HEADERS,
        ]  # fmt: skip
        if headers:
            self.raw_headers += [(name.encode(), value.encode()) for name, value in headers.items()]


def _problem(
    status: int, detail: str, kind: str, headers: dict[str, str] | None = None
) -> Response:
    problem = api.Problem(f"urn:setpoint:{kind}", kind, status, detail)
    headers = dict(headers or {})
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    elif status in (429, 503):
        headers["retry-after"] = "1"
    return _Json(_encode(problem), b"application/problem+json", status, headers)


def _name(request: Request) -> str:
    return _decoded(request.scope["path_params"]["name"])


@lru_cache(10_000)
def _decoded(name: str) -> str:
    try:
        return name_of(unquote(name, errors="strict"))
    except UnicodeDecodeError:
        raise Refusal(400, "the name of a stream must be text in UTF-8") from None


def _named(one: Any) -> Any:
    """An event that names its stream, or why it cannot be taken in."""
    if isinstance(one, dict) and one.get("stream") in (None, ""):
        return Unread("an event must name its stream here")
    return one


def _status(kind: type[Exception]) -> int:
    return next((_STATUS[base] for base in kind.__mro__ if base in _STATUS), 500)


@lru_cache
def _loopback(host: str) -> bool:
    """Whether a Host header names this machine by itself."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    try:
        return name == "localhost" or ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
