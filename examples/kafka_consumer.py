"""Intervals for a Kafka topic: forecasts and actual values in, intervals out, nothing twice.

Topic `events` has JSON objects, as `Store.apply` takes them: a forecast
`{"stream": "north", "id": "2026-05-01T10", "prediction": [10, 14]}`, and later the actual value
`{"stream": "north", "id": "2026-05-01T10", "y": 12.5}`. Every answer goes to `intervals`, under the
stream's name as key.

The order is what makes it safe: the store commits a batch, the answers are sent, and only then is
the batch committed to Kafka. If the process dies in between, Kafka delivers the batch again. The
store knows its ids and answers as it did the first time; nothing is counted twice. An event
that cannot be taken in is answered by its error, and the others go on.

Run it with `python examples/kafka_consumer.py localhost:9092 streams.db`. It needs
`confluent-kafka`.
"""

import json
import sys
from typing import Any

import setpoint as sp


def take_in(store: sp.Store, consumer: Any, producer: Any, most: int = 1000) -> int:
    """One batch: from the topic into the store, its answers out, then the offsets. How many."""
    messages = [m for m in consumer.consume(most, timeout=1.0) if m.error() is None]
    if not messages:
        return 0
    events = [_event(message.value()) for message in messages]
    for event, answer in zip(events, store.apply(events), strict=True):
        name = event.get("stream", "") if isinstance(event, dict) else ""
        producer.produce("intervals", key=name, value=json.dumps(answer))
    if producer.flush(30.0):
        raise TimeoutError("the answers did not reach Kafka; the batch will be delivered again")
    consumer.commit(asynchronous=False)
    return len(messages)


def _event(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        return {"error": f"not JSON: {error}"}  # refused by the store, with the keys it takes


def main(servers: str, path: str) -> None:
    from confluent_kafka import Consumer, Producer

    settings = {"bootstrap.servers": servers}
    consumer = Consumer({**settings, "group.id": "setpoint", "enable.auto.commit": False})
    producer = Producer({**settings, "enable.idempotence": True})
    consumer.subscribe(["events"])
    with sp.Store(path, sp.intervals(coverage=0.9)) as store:
        while True:
            take_in(store, consumer, producer)


if __name__ == "__main__":
    main(*sys.argv[1:])
