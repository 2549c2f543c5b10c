"""Requests and responses: who may ask, how much may be sent, and answers as bytes."""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from setpoint import errors
from setpoint.errors import InputError, SetpointError
from setpoint.service.api import Operation, Problem
from setpoint.service.tokens import Tokens
from setpoint.service.work import Busy
from setpoint.store.events import name_of
from setpoint.store.lines import line

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
JSON = b"application/json"
"""The content type of JSON."""
LINES = b"application/x-ndjson"
"""The content type of lines of JSON."""
_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Json(Response):
    """A response whose content is bytes already, with the headers of every response."""

    def __init__(
        self, content: bytes, kind: bytes = JSON, status: int = 200,
        headers: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.status_code, self.body, self.background = status, content, None
        self.raw_headers = [
            (b"content-length", b"%d" % len(content)), (b"content-type", kind), *_HEADERS,
        ]  # fmt: skip
        if headers:
            self.raw_headers += [(name.encode(), value.encode()) for name, value in headers.items()]


def encoded(value: Any) -> bytes:
    """A value as JSON; numbers that are too long for most readers too."""
    try:
        return _encode(value)
    except (OverflowError, UnicodeEncodeError):
        return line(msgspec.to_builtins(value, enc_hook=str))


def problem(error: Exception) -> Response:
    """Why a request is refused, as RFC 9457 has it."""
    if isinstance(error, HTTPException):
        return _problem(error.status_code, "Refused", error.detail, error.headers)
    if isinstance(error, SetpointError):
        return refused(type(error).__name__, str(error)[:1000], status_of(type(error)))
    if isinstance(error, RecursionError):
        return _problem(422, "InputError", "the body is nested too deep")
    if isinstance(error, ClientDisconnect):
        return _problem(400, "Refused", "the client has gone")
    return _problem(500, "Error", "something went wrong; the log has more")


def refused(kind: str, detail: str, status: int | None = None) -> Response:
    """What is answered to an event that the store refused with a kind of error."""
    return _problem(status or status_of(getattr(errors, kind)), kind, detail)


def _problem(
    status: int, kind: str, detail: str, headers: Mapping[str, str] | None = None
) -> Response:
    headers = dict(headers or {})
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    elif status in (429, 503):
        headers["retry-after"] = "1"
    content = encoded(Problem(f"urn:setpoint:{kind}", kind, status, detail))
    return Json(content, b"application/problem+json", status, headers)


def refusal(status: int, detail: str) -> HTTPException:
    """The error that refuses a request with a status, and says why."""
    return HTTPException(status, detail)


def status_of(kind: type[Exception]) -> int:
    """The status that an error is answered with."""
    return next((_STATUS[base] for base in kind.__mro__ if base in _STATUS), 500)


# Who may


def admit(request: Request, operation: Operation, tokens: Tokens) -> None:
    """Refuses those who may not, before anything of the request is read."""
    if tokens and operation.scope:
        kind, _, secret = header(request, b"authorization").partition(b" ")
        allowed = tokens.allows(secret, operation.scope)
        if kind.lower() != b"bearer" or allowed is None:
            raise refusal(401, "this needs a bearer token that the service knows")
        if not allowed:
            raise refusal(403, f"this needs a token with the scope {operation.scope}")
    elif not tokens and not is_loopback(header(request, b"host").decode("latin-1")):
        raise refusal(403, "without tokens only localhost is served")  # a page of elsewhere
    if operation.body is not None:
        kind = header(request, b"content-type").partition(b";")[0].strip().lower()
        if kind not in operation.kinds:
            known = " or ".join([kind.decode() for kind in operation.kinds])
            got = kind.decode("latin-1")
            raise refusal(415, f"the content type must be {known}, got {got!r}")


def header(request: Request, name: bytes) -> bytes:
    """A header that may come once; nothing if it does not."""
    values = [value for key, value in request.scope["headers"] if key == name]
    if len(values) > 1:
        raise refusal(400, f"the header {name.decode()} must come once, got {len(values)} of them")
    return values[0] if values else b""


@lru_cache
def is_loopback(host: str) -> bool:
    """Whether a Host header names this machine by itself."""
    name = host if host.endswith("]") else host.rsplit(":", 1)[0]
    if name.lower() == "localhost":
        return True
    try:
        address = ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


# What comes in


async def chunks_of(request: Request, most: int) -> Any:
    """The parts of a body as they come, up to so many bytes."""
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        more = message.get("more_body", False)
        most -= len(chunk)
        if most < 0:
            raise refusal(413, "the body is too large")
        yield chunk


async def body_of(request: Request, most: int) -> bytes:
    """The body of a request."""
    return b"".join([chunk async for chunk in chunks_of(request, most)])


def read(body: bytes, kind: Any) -> Any:
    """A body as one of the structs of `api`."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise refusal(422, f"the body does not fit: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise refusal(400, f"not JSON: {error}") from None


def name_in(request: Request) -> str:
    """The stream that a path names."""
    return _decoded(request.path_params["name"])


@lru_cache(10_000)
def _decoded(name: str) -> str:
    try:
        return name_of(unquote(name, errors="strict"))
    except UnicodeDecodeError:
        raise refusal(400, "the name of a stream must be text in UTF-8") from None


def whole_in(request: Request, name: str, usual: int, least: int, most: int = 1 << 62) -> int:
    """A whole number of the query."""
    text = request.query_params.get(name, str(usual))
    try:
        value = int(text) if len(text) < 19 else least - 1
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        end = "" if most == 1 << 62 else f" to {most:,}"
        raise refusal(422, f"{name} must be a whole number from {least}{end}, got {text[:50]!r}")
    return value
