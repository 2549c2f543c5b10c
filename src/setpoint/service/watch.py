"""What others see of the service: metrics, trouble and alarms, and its log."""

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from setpoint._check import choice
from setpoint.service.work import Worker
from setpoint.watch import KINDS, called

_log = logging.getLogger("setpoint.service")
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_STREAM = {  # of each stream: what a metric says, and what its series are told apart by
    "predictions": ("Predictions so far", ""),
    "labels": ("Labels so far", ""),
    "pending": ("Predictions whose label is out", ""),
    "asked": ("The coverage that is asked for", ""),
    "width": ("The mean width or size of the last sets", ""),
    "trouble": ("0 where all is well, 1 and more where someone should look", ""),
    "oldest_seconds": ("Age of the oldest prediction that waits", ""),
    "alarm": ("1 while an alarm lasts", "kind"),
    "coverage": ("Coverage of the last labels", "window"),
    "acted": ("Share of the last requests that a gate acted on", "window"),
    "saturated": ("Sets that the safeguard chose", "set"),
    "called": ("1 where the model has become worse, and among many streams stands out", ""),
    "price": ("How many times as large sets, or as rare actions of a gate, as in a healthy past",
              ""),
    "price_model": ("The same of the model's own errors", ""),
    "world": ("The same of the restlessness of the actual values", ""),
    "level": ("The level that is asked for", "risk"),
    "mean_loss": ("The mean loss of all labels", "risk"),
    "account": ("The sum of loss minus level", "risk"),
    "bound": ("What the guarantee lets the account reach", "risk"),
}  # fmt: skip
_FEW = 20  # streams of which each may call for itself
_RISK = {"levels": "level", "losses": "mean_loss", "accounts": "account", "bounds": "bound"}


def trouble(row: dict[str, Any]) -> float:
    """How badly a stream needs someone to look, from its overview: 0 is well.

    A guarantee that is broken counts most, then an alarm that lasts, then how much of its limit an
    account has used and how much dearer than usual the sets or the model have become.

    >>> trouble({"alarm": "", "status": ["guaranteed"], "accounts": [2.0], "bounds": [10.0]})
    0.2
    >>> calm = {"alarm": "", "status": ["guaranteed"], "accounts": [2.0], "bounds": [10.0]}
    >>> trouble({**calm, "price": [1.2, 1.5, 1.0], "alarms": {"cheaper": 800}})
    0.5
    """
    alarm = {"": 0.0, "window": 2.0}.get(row["alarm"], 1.0)
    kinds = row.get("alarms") or {}
    dear = 2.0 if "dearer" in kinds else 1.0 if kinds.keys() & {"model", "world", "silence"} else 0
    broken = 4.0 if "broken" in row["status"] else 0.0
    shares = [
        max(0.0, account / limit)
        for account, limit in zip(row["accounts"], row["bounds"], strict=True)
        if limit
    ]
    price = row.get("price") or [1.0]
    return max(alarm, dear) + broken + min(max([*shares, max(price[:2]) - 1.0, 0.0]), 0.99)


def panel(rows: list[dict[str, Any]], now: float | None = None) -> None:
    """Completes the overviews of all streams, and sorts them: trouble first, then by price.

    Labels are silent where the oldest prediction waits ten times as long as usual, and a minute.
    Of more than 20 streams only those are `called` whose evidence stands out among all of them.
    """
    now = time.time() if now is None else now
    values = called([row.get("evidence") or 0.0 for row in rows])
    for row, stands_out in zip(rows, values, strict=True):
        row["alarms"] = dict(row.get("alarms") or {})
        age = 0.0 if row["oldest"] is None else now - row["oldest"]
        if row.get("lag") is not None and age > 60.0 + 10.0 * row["lag"]:
            row["alarms"]["silence"] = int(row["labels"])
        pages = row["alarms"].keys() & {"dearer", "model"}
        row["called"] = bool(pages) and (stands_out or len(rows) <= _FEW)
        row["trouble"] = trouble(row)
    rows.sort(key=lambda row: (-row["trouble"], -max((row.get("price") or [1.0])[:2]), row["name"]))


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
        pending = sum(row["pending"] for row in rows)
        yield GaugeMetricFamily("setpoint_pending", "Predictions in wait, of all", pending)
        alarmed = sum(bool(row["alarm"] or row["alarms"]) for row in rows)
        yield GaugeMetricFamily("setpoint_streams_alarmed", "Streams in an alarm", alarmed)
        yield from _of_streams(rows[: self.most])


@lru_cache(10_000)
def _child(metric: Any, *labels: Any) -> Any:
    """A series of a metric: looking one up takes longer than counting."""
    return metric.labels(*labels)


def _of_streams(rows: list[dict[str, Any]]) -> Iterator[Metric]:
    """The metrics of streams, from their overviews."""
    now = time.time()
    families: dict[str, Any] = {}
    for name, (what, label) in _STREAM.items():
        kind = CounterMetricFamily if name == "saturated" else GaugeMetricFamily
        labels = ["stream", *([label] if label else [])]
        families[name] = kind(f"setpoint_stream_{name}", what, labels=labels)
    for row in rows:
        for name, told_apart, value in _values(row, now):
            if value is not None:
                families[name].add_metric([row["name"], *told_apart], value)
    yield from families.values()


def _values(row: dict[str, Any], now: float) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """The metrics of one stream: which, what tells it apart, and its value if there is one."""
    for name in ("predictions", "labels", "pending", "asked", "width", "trouble", "called"):
        yield name, (), row.get(name)
    yield "oldest_seconds", (), 0.0 if row["oldest"] is None else max(0.0, now - row["oldest"])
    for kind in ("window", "full", "empty"):
        yield "alarm", (kind,), float(row["alarm"] == kind)
    for kind in (*KINDS, "silence"):
        yield "alarm", (kind,), float(kind in row["alarms"])
    for name in ("coverage", "acted"):
        for window, share in zip(("100", "1000"), row.get(name) or (None, None), strict=True):
            yield name, (window,), share
    for kind in ("full", "empty"):
        yield "saturated", (kind,), row[kind]
    for name, value in zip(("price", "price_model", "world"), row.get("price") or (), strict=False):
        yield name, (), value
    for key, name in _RISK.items():
        for risk, value in enumerate(row[key]):
            yield name, (str(risk),), value


@lru_cache(1)
def _tracer() -> Any:
    """What makes spans, where OpenTelemetry is installed; else None."""
    try:
        import opentelemetry.propagate as propagate
        import opentelemetry.trace as trace
    except ImportError:
        return None
    return trace.get_tracer("setpoint"), propagate.extract, trace.SpanKind.SERVER


def span(
    operation: str, headers: Mapping[str, str], seconds: float, fields: Mapping[str, Any]
) -> None:
    """Notes a request as a span of OpenTelemetry, below the caller's own; nothing without it."""
    if (made := _tracer()) is None:
        return
    tracer, extract, server = made
    end = time.time_ns()
    told = {f"setpoint.{name}": value for name, value in fields.items() if value is not None}
    one = tracer.start_span(
        f"setpoint {operation}", extract(headers), server, told,
        start_time=end - int(1e9 * seconds),
    )  # fmt: skip
    one.end(end)


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
