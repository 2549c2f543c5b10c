"""What others see of the service: metrics, trouble, alarms to webhooks, and its log."""

import asyncio
import hmac
import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from setpoint._check import choice
from setpoint.errors import InputError
from setpoint.service.work import Worker
from setpoint.store import Store

_log = logging.getLogger("setpoint.service")
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_OLD = 86_400.0  # nobody wants to be told of an alarm after so many seconds
_STREAM = {  # of each stream: the name of a metric, what it says, and where it stands
    "predictions": "Predictions so far",
    "labels": "Labels so far",
    "waiting": "Predictions that wait for their label",
    "asked": "The coverage that is asked for",
    "width": "The mean width of the last intervals",
    "trouble": "0 where all is well, 1 and more where someone should look",
}
_RISK = {  # of each risk of a stream
    "levels": ("level", "The level that is asked for"),
    "losses": ("mean_loss", "The mean loss of all labels"),
    "accounts": ("account", "The sum of loss minus level"),
    "limits": ("account_limit", "What the guarantee lets the account reach"),
}


def trouble(row: dict[str, Any]) -> float:
    """How badly a stream needs someone to look, from its overview: 0 is well.

    An alarm that lasts or a guarantee that is broken counts most, then how much of its limit an
    account has used.

    >>> trouble({"alarm": "", "status": ["holds"], "accounts": [2.0], "limits": [10.0]})
    0.2
    """
    alarm = {"": 0.0, "window": 2.0}.get(row["alarm"], 1.0)
    broken = 4.0 if "broken" in row["status"] else 0.0
    shares = [
        max(0.0, account / limit)
        for account, limit in zip(row["accounts"], row["limits"], strict=True)
        if limit
    ]
    return alarm + broken + min(max(shares, default=0.0), 1.0)


class Metrics:
    """What Prometheus asks for: of the service, and of the streams that are worst off.

    Parameters
    ----------
    rows
        Gives an overview of each stream, the worst first.
    most
        How many streams have metrics of their own; of the others only the sum is told.
    """

    def __init__(self, rows: Callable[[], list[dict[str, Any]]], most: int) -> None:
        self.rows, self.most = rows, most
        self.worker: Worker | None = None
        self.registry = CollectorRegistry()
        self._took = Histogram(
            "setpoint_request_seconds", "How long requests took", ["operation"],
            registry=self.registry, buckets=_BUCKETS,
        )  # fmt: skip
        self._answered = Counter(
            "setpoint_answers", "Answers by their status", ["operation", "status"],
            registry=self.registry,
        )  # fmt: skip
        self._refused = Counter(
            "setpoint_events_refused", "Events answered by an error", registry=self.registry
        )
        self.registry.register(self)

    def begin(self, operation: str) -> None:
        """Lets the series of an operation begin at 0, so that its first fault is an increase."""
        for status in (429, 500, 503):
            self._answered.labels(operation, status)

    def answered(self, operation: str, status: int, seconds: float | None) -> None:
        """Notes an answer by its status, and how long it took where it was no refusal."""
        _child(self._answered, operation, status).inc()
        if seconds is not None:
            _child(self._took, operation).observe(seconds)

    def count(self, answers: Iterable[dict[str, Any]]) -> None:
        """Notes which events were refused."""
        for answer in answers:
            if "error" in answer:
                self._refused.inc()

    def text(self) -> bytes:
        """Everything, in the words of Prometheus."""
        return generate_latest(self.registry)

    def describe(self) -> list[Metric]:
        """Nothing: the registry asks when it is scraped."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics of now; the registry asks for them."""
        worker = self.worker
        if worker is not None:
            yield CounterMetricFamily("setpoint_events", "Events taken in", worker.events)
            yield CounterMetricFamily("setpoint_transactions", "Commits", worker.batches)
            seconds = "Seconds spent in transactions"
            yield CounterMetricFamily("setpoint_transaction_seconds", seconds, worker.seconds)
            yield GaugeMetricFamily("setpoint_queue", "Events that wait their turn", worker.waiting)
        rows = self.rows()
        yield GaugeMetricFamily("setpoint_streams", "Streams in the store", len(rows))
        waiting = sum(row["waiting"] for row in rows)
        yield GaugeMetricFamily("setpoint_waiting", "Predictions that wait, of all", waiting)
        alarmed = sum(bool(row["alarm"]) for row in rows)
        yield GaugeMetricFamily("setpoint_streams_alarmed", "Streams in an alarm", alarmed)
        yield from _of_streams(rows[: self.most])


@lru_cache(10_000)
def _child(metric: Any, *labels: Any) -> Any:
    """A series of a metric: looking one up takes longer than counting."""
    return metric.labels(*labels)


def _of_streams(rows: list[dict[str, Any]]) -> Iterator[Metric]:
    now = time.time()
    for key, what in _STREAM.items():
        family = GaugeMetricFamily(f"setpoint_stream_{key}", what, labels=["stream"])
        for row in rows:
            if row[key] is not None:
                family.add_metric([row["name"]], row[key])
        yield family
    age = GaugeMetricFamily(
        "setpoint_stream_oldest_seconds", "Age of the oldest prediction that waits",
        labels=["stream"],
    )  # fmt: skip
    alarm = GaugeMetricFamily(
        "setpoint_stream_alarm", "1 while an alarm lasts", labels=["stream", "kind"]
    )
    coverage = GaugeMetricFamily(
        "setpoint_stream_coverage", "Coverage of the last labels", labels=["stream", "window"]
    )
    saturated = CounterMetricFamily(
        "setpoint_stream_saturated", "Sets that the safeguard chose", labels=["stream", "set"]
    )
    for row in rows:
        oldest = 0.0 if row["oldest"] is None else max(0.0, now - row["oldest"])
        age.add_metric([row["name"]], oldest)
        for kind in ("window", "full", "empty"):
            alarm.add_metric([row["name"], kind], float(row["alarm"] == kind))
        for window, share in zip(("100", "1000"), row["coverage"], strict=True):
            if share is not None:
                coverage.add_metric([row["name"], window], share)
        for kind in ("full", "empty"):
            saturated.add_metric([row["name"], kind], row[kind])
    yield from (age, alarm, coverage, saturated)
    for key, (name, what) in _RISK.items():
        family = GaugeMetricFamily(f"setpoint_stream_{name}", what, labels=["stream", "risk"])
        for row in rows:
            for risk, value in enumerate(row[key]):
                if value is not None:
                    family.add_metric([row["name"], str(risk)], value)
        yield family


class _Lines(logging.Formatter):
    """The log as lines of JSON: what happened, and the fields that came with it."""

    _USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        said = {
            "at": record.created, "level": record.levelname.lower(), "logger": record.name,
            "message": record.getMessage(),
        }  # fmt: skip
        fields = vars(record).items()
        said |= {name: value for name, value in fields if name not in self._USUAL}
        if record.exc_info:
            said["trace"] = self.formatException(record.exc_info)
        return json.dumps(said, default=str)


def log_lines(level: str) -> None:
    """Writes the log of the service to standard error, as lines of JSON, from a level on."""
    choice(level, "log", ("debug", "info", "warning", "error"))
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines())
    log = logging.getLogger("setpoint")
    log.handlers, log.propagate = [handler], False
    log.setLevel(level.upper())


def check_addresses(addresses: list[str]) -> None:
    """Refuses addresses that no alarm can be sent to; as they may hold secrets, by their place."""
    import httpx  # for those who have webhooks

    for place, address in enumerate(addresses, 1):
        try:
            url = httpx.URL(address)
            sound = url.scheme in ("http", "https") and url.host and (url.port or 1) < 1 << 16
        except httpx.InvalidURL:
            sound = False
        if not sound:
            raise InputError(
                f"--webhook number {place} must be an address as https://host:443/path"
            )


class Webhooks:
    """Tells addresses of alarms, one an episode, signed.

    An alarm is noted in the store with the label that began it, so it is told after a crash too.
    `X-Setpoint-Signature` is sha256= and the HMAC-SHA256 of the body, and `X-Setpoint-Delivery`
    the number of the alarm, the same if it must be told again.

    Parameters
    ----------
    store
        Where alarms are noted.
    addresses
        Where to send them.
    secret
        The key of the signature.
    seconds
        How often to look.
    """

    def __init__(
        self, store: Store, addresses: list[str], secret: str, seconds: float = 1.0
    ) -> None:
        self.store, self.addresses, self.secret, self.seconds = store, addresses, secret, seconds

    async def run(self, look: Callable[..., Any]) -> None:
        """Tells alarms until it is cancelled; `look` runs what uses the store."""
        import httpx

        left: dict[int, dict[str, Any]] = {}  # alarms that somebody is still to hear
        queues: list[list[dict[str, Any]]] = [[] for _ in self.addresses]
        async with httpx.AsyncClient(timeout=10.0) as client, asyncio.TaskGroup() as tasks:
            for address, queue in zip(self.addresses, queues, strict=True):
                tasks.create_task(self._serve(client, address, queue))
            while True:
                try:
                    for alarm in await look(self.store.untold):
                        fresh = time.time() - alarm["at"] < _OLD
                        if left.setdefault(alarm["number"], alarm) is alarm and fresh:
                            for queue in queues:
                                queue.append(alarm)
                    waiting = {alarm["number"] for queue in queues for alarm in queue}
                    if heard := left.keys() - waiting:
                        await look(self.store.told, [left[number] for number in heard])
                        left = {number: left[number] for number in waiting}
                except Exception as error:  # the next look may do better
                    _log.warning("alarms wait: %s", error)
                await asyncio.sleep(self.seconds)

    async def _serve(self, client: Any, address: str, queue: list[dict[str, Any]]) -> None:
        """Tells one address what is in its queue, so that one that hangs holds up no other."""
        pause = self.seconds
        while True:
            if queue and await self._tell(client, address, queue[0]):
                del queue[0]
                pause = self.seconds
                continue
            pause = min(2.0 * pause, 30.0) if queue else self.seconds
            await asyncio.sleep(pause)

    async def _tell(self, client: Any, address: str, alarm: dict[str, Any]) -> bool:
        """Whether an address has heard of an alarm, or never will."""
        body = json.dumps(alarm).encode()
        signature = hmac.new(self.secret.encode(), body, sha256).hexdigest()
        headers = {
            "content-type": "application/json",
            "x-setpoint-delivery": str(alarm["number"]),
            "x-setpoint-signature": f"sha256={signature}",
        }
        try:
            response = await client.post(address, content=body, headers=headers)
        except Exception as error:  # whatever it is, the other addresses go on
            _log.warning(
                "alarm %d could not be told: %s", alarm["number"], type(error).__name__,
                extra={"alarm": alarm["number"], "stream": alarm["stream"]},
            )  # fmt: skip
            return False
        if response.is_success:
            return True
        lasting = response.is_client_error and response.status_code not in (408, 429)
        _log.warning(
            "alarm %d was answered with status %d by %s and is %s",
            alarm["number"], response.status_code, response.url.host,
            "not told there again" if lasting else "told again later",
            extra={"alarm": alarm["number"], "stream": alarm["stream"]},
        )  # fmt: skip
        return bool(lasting)
