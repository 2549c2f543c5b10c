"""A client of the service: a few calls, and retries that are safe because ids are.

>>> from setpoint.client import Client
>>> client = Client("http://localhost:8000", token="…")  # doctest: +SKIP
>>> client.create("demand", coverage=0.9)  # doctest: +SKIP
>>> client.predict("demand", [10, 14])  # doctest: +SKIP
{'id': '0b6e…', 'lower': 10.0, 'upper': 14.0}
"""

import asyncio
import random
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from json import dumps
from math import isinf
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx

from setpoint.errors import InputError, SetpointError

__all__ = ["AsyncClient", "Client", "ServiceError"]

Id = int | str | Sequence[int | str]
_AGAIN = (429, 502, 503, 504)


class ServiceError(SetpointError):
    """A request the service refused: the message, the `status` and the `kind` of error."""

    def __init__(self, response: httpx.Response) -> None:
        problem: Any = {}
        if response.headers.get("content-type", "").startswith("application/problem+json"):
            problem = response.json()
        super().__init__(problem.get("detail", f"the service answered {response.status_code}"))
        self.status, self.kind = response.status_code, str(problem.get("title", ""))


_Flow = Generator[httpx.Request | float, Any, Any]


class _Requests:
    """What to send for each call, and when again; both clients send it, each in its own way."""

    _http: Any

    def __init__(self, url: str, token: str | None, attempts: int, timeout: float) -> None:
        self._attempts = attempts
        self._options: dict[str, Any] = {
            "base_url": url, "timeout": timeout,
            "headers": {} if token is None else {"authorization": f"Bearer {token}"},
        }  # fmt: skip

    def _send(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        raise NotImplementedError

    def _flow(self, method: str, path: str, body: Any = None, **options: Any) -> _Flow:
        """Gives a request to send, then a pause in seconds, until there is an answer to return.

        Pauses get longer each time, and by chance.
        """
        request, lost = self._http.build_request(method, path, json=body, **options), False
        for attempt in range(self._attempts):
            last = attempt == self._attempts - 1
            try:
                response = yield request
            except httpx.TransportError:
                if last:
                    raise
                lost = True
            else:
                if response.status_code == 404 and method == "DELETE" and lost:
                    return {}  # by the attempt before, whose answer was lost
                if last or response.status_code not in _AGAIN:
                    return _answer(response)
            yield random.uniform(0.5, 1.0) * min(0.1 * 2**attempt, 5.0)

    def create(
        self, name: str, *, preset: str | None = None, coverage: float | Sequence[float] = 0.9,
        support: tuple[float, float] | None = None, period: int | None = None,
        controller: str | None = None, gate: Mapping[str, Any] | None = None,
        features: Sequence[str] = (), guarded: Sequence[float] = (), horizon: int | None = None,
        totals: Sequence[int] = (), maximum: bool = False, minimum: bool = False,
        every: int | None = None,
    ) -> Any:  # fmt: skip
        """Begins a stream from a preset ("intervals", "label_sets" or "paths"), a controller as
        TOML, or a gate.

        `support` is the range of the actual values, such as (0, inf), `period` their season in
        rows, `features` what is known of a row, and `guarded` the levels with a guarantee of their
        own. A path has a `horizon`, and may have `totals`, `maximum`, `minimum` and `every`, as
        for `setpoint.paths`. A stream that began so is found, whatever was changed since. `gate`
        has the terms of a gate, such as {"errors": 0.05, "audits": 0.1}.
        """
        body: dict[str, Any] = {
            "support": support and [None if isinf(end) else end for end in support],
            "period": period, "features": list(features), "guarded": list(guarded),
            "horizon": horizon, "totals": list(totals), "maximum": maximum, "minimum": minimum,
            "every": every, "controller": controller, "gate": gate and dict(gate),
        }  # fmt: skip
        body = {key: v for key, v in body.items() if v is not None and v is not False and v != []}
        if gate is None and controller is None:
            body["preset"] = preset or ("intervals" if horizon is None else "paths")
            body["coverage"] = coverage if isinstance(coverage, float | int) else list(coverage)
        return self._send("PUT", _stream(name), body)

    def predict(
        self, name: str, prediction: Any, id: Id | None = None,
        groups: Sequence[Id] | None = None, *, features: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """The set for a prediction, with the id that its label needs; `groups` names its row's."""
        body = {"id": uuid4().hex if id is None else id, "prediction": prediction}
        body |= {} if groups is None else {"groups": list(groups)}
        body |= {} if features is None else {"features": features}
        return self._send("POST", f"{_stream(name)}/predict", body)

    def decide(self, name: str, score: float, id: Id | None = None) -> Any:
        """Whether a gate acts on a request, and whether it asks for its label (`audit`)."""
        body = {"id": uuid4().hex if id is None else id, "score": score}
        return self._send("POST", f"{_stream(name)}/decide", body)

    def label(
        self, name: str, y: Any = None, id: Id | None = None, *, step: int | None = None,
        wrong: Any = None, loss: Any = None,
    ) -> Any:  # fmt: skip
        """The loss of the label of the prediction under an id.

        Of a path `step` says which step y is of, from 1. Of a request to a gate say `wrong`, or a
        `loss` from 0 to 1, in place of y.
        """
        given = {"wrong": wrong, "loss": loss}
        given = {key: value for key, value in given.items() if value is not None} or {"y": y}
        if id is None:
            raise InputError("a label needs the id of its prediction")
        given |= {} if step is None else {"step": step}
        return self._send("POST", f"{_stream(name)}/label", {"id": id, **given})

    def drop(self, name: str, id: Id) -> Any:
        """Gives up the prediction under an id."""
        return self._send("POST", f"{_stream(name)}/drop", {"id": id})

    def events(self, events: Iterable[Mapping[str, Any]], name: str | None = None) -> Any:
        """The answers to many events, of one stream or of those that they name.

        A prediction without an id gets one, so that all of them can be sent again.
        """
        sent = [
            {"id": uuid4().hex, **event} if {"prediction", "score"} & event.keys() else dict(event)
            for event in events
        ]
        for event in sent:
            if event.get("id") is None and not event.get("certificate"):
                raise InputError(f"a label needs the id of its prediction, got {event!r}")
        path = "/v1/events" if name is None else f"{_stream(name)}/events"
        return self._send("POST", path, sent)

    def change(
        self, name: str, *, risk: int = 0, level: float | None = None,
        bounds: tuple[float, float] | None = None, step: dict[str, Any] | None = None,
        gate: dict[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """Changes what a stream holds from now on; of a gate all its terms."""
        body = {"risk": risk, "level": level, "bounds": bounds, "step": step, "gate": gate}
        return self._send("PATCH", _stream(name), body)

    def reset(self, name: str) -> Any:
        """Forgets what a stream has learnt of its model, because another one takes its place."""
        return self._send("PATCH", _stream(name), {"reset": True})

    def acknowledge(self, name: str) -> Any:
        """Takes what a stream costs from now on as its reference, and ends its alarms about it."""
        return self._send("PATCH", _stream(name), {"acknowledge": True})

    def rename(self, name: str, to: str) -> Any:
        """Gives a stream another name."""
        return self._send("PATCH", _stream(name), {"name": to})

    def delete(self, name: str) -> Any:
        """Deletes a stream and all that is known of it."""
        return self._send("DELETE", _stream(name))

    def forget(
        self, name: str, ids: Iterable[Id] | None = None, *, before: float | None = None
    ) -> Any:
        """Deletes closed predictions: under some ids, closed before a time, or all."""
        body = {"ids": None if ids is None else list(ids), "before": before}
        return self._send("POST", f"{_stream(name)}/forget", body)

    def export_stream(self, name: str) -> Any:
        """A stream with all that is known of it, as lines of JSON in bytes."""
        return self._send("GET", f"{_stream(name)}/export")

    def import_stream(self, name: str, lines: bytes) -> Any:
        """Takes in a stream that was exported, under a name that is free."""
        headers = {"content-type": "application/x-ndjson"}
        path = f"{_stream(name)}/import"
        return self._send("POST", path, content=lines, headers=headers)

    def streams(self, search: str = "", limit: int = 100, offset: int = 0) -> Any:
        """Streams, those in trouble first."""
        query = {"search": search, "limit": limit, "offset": offset}
        return self._send("GET", "/v1/streams", params=query)

    def show(self, name: str) -> Any:
        """Returns how a stream is doing."""
        return self._send("GET", _stream(name))

    def explain(self, name: str, id: Id | None = None) -> Any:
        """Why an interval that waits is as it is, by default the last one."""
        query = {} if id is None else {"id": id if isinstance(id, str) else dumps(id)}
        return self._send("GET", f"{_stream(name)}/explain", params=query)

    def certificate(self, name: str) -> Any:
        """What is guaranteed for a stream."""
        return self._send("GET", f"{_stream(name)}/certificate")

    def history(self, name: str, after: int = -1, limit: int = 100) -> Any:
        """Predictions after a number, or the last ones."""
        query = {"after": after, "limit": limit}
        return self._send("GET", f"{_stream(name)}/history", params=query)

    def alarms(self, limit: int = 100) -> Any:
        """The last alarms."""
        return self._send("GET", "/v1/alarms", params={"limit": limit})


class Client(_Requests):
    """Asks a service, and asks again where it was not answered.

    Parameters
    ----------
    url
        Where the service answers, as in http://localhost:8000.
    token
        A token that it knows.
    attempts
        How often to try. A request that was taken in before is answered as the first time.
    timeout
        How many seconds to wait for an answer.
    """

    def __init__(
        self, url: str, token: str | None = None, *, attempts: int = 6, timeout: float = 10.0
    ) -> None:
        super().__init__(url, token, attempts, timeout)
        self._http = httpx.Client(**self._options)

    def _send(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        flow = self._flow(method, path, body, **options)
        step = next(flow)
        while True:
            try:
                if isinstance(step, float):
                    time.sleep(step)
                    step = next(flow)
                else:
                    step = flow.send(self._http.send(step))
            except httpx.TransportError as error:
                step = flow.throw(error)
            except StopIteration as end:
                return end.value

    def close(self) -> None:
        """Lets the connections go."""
        self._http.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class AsyncClient(_Requests):
    """As `Client`, with calls to be awaited.

    Parameters
    ----------
    url, token, attempts, timeout
        As for `Client`.
    """

    def __init__(
        self, url: str, token: str | None = None, *, attempts: int = 6, timeout: float = 10.0
    ) -> None:
        super().__init__(url, token, attempts, timeout)
        self._http = httpx.AsyncClient(**self._options)

    async def _send(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        flow = self._flow(method, path, body, **options)
        step = next(flow)
        while True:
            try:
                if isinstance(step, float):
                    await asyncio.sleep(step)
                    step = next(flow)
                else:
                    step = flow.send(await self._http.send(step))
            except httpx.TransportError as error:
                step = flow.throw(error)
            except StopIteration as end:
                return end.value

    async def close(self) -> None:
        """Lets the connections go."""
        await self._http.aclose()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


def _stream(name: str) -> str:
    return f"/v1/streams/{quote(name, safe='')}"


def _answer(response: httpx.Response) -> Any:
    if response.is_error:
        raise ServiceError(response)
    if response.headers.get("content-type", "").startswith("application/x-ndjson"):
        return response.content
    return response.json()
