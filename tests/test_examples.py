"""Examples for other systems: what they promise."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import setpoint as sp

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


class Topic:
    """A topic as a consumer and a producer see it: what is not committed comes again."""

    def __init__(self, events: list[Any]) -> None:
        self.waiting = [e if isinstance(e, bytes) else json.dumps(e).encode() for e in events]
        self.taken: list[bytes] = []
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.dies = False

    def consume(self, most: int, timeout: float) -> list[Any]:
        self.taken = self.waiting[:most]

        class Message:
            def __init__(self, value: bytes) -> None:
                self.value, self.error = lambda: value, lambda: None

        return [Message(value) for value in self.taken]

    def produce(self, topic: str, key: str, value: str) -> None:
        self.sent.append((key, json.loads(value)))

    def flush(self, timeout: float) -> int:
        return int(self.dies)

    def commit(self, asynchronous: bool) -> None:
        self.waiting = self.waiting[len(self.taken) :]


def test_a_batch_that_kafka_delivers_twice_counts_once(tmp_path: Path) -> None:
    take_in = runpy.run_path(str(EXAMPLES / "kafka_consumer.py"))["take_in"]
    events = [{"stream": "a", "id": n, "prediction": [10, 14]} for n in range(5)]
    topic = Topic([*events, b"{", {"stream": "a", "id": 3, "y": 15.0}])
    with sp.Store(tmp_path, sp.intervals(coverage=0.9)) as store:
        topic.dies = True
        with pytest.raises(TimeoutError, match="delivered again"):
            take_in(store, topic, topic)
        topic.dies, first = False, topic.sent
        topic.sent = []
        assert take_in(store, topic, topic) == 7
        assert [answer.get("lower") for _, answer in topic.sent] == [
            answer.get("lower") for _, answer in first
        ]
        assert "error" in topic.sent[5][1]
        assert take_in(store, topic, topic) == 0
        (risk,) = store.read("a").certificate().risks
        assert (risk.judged, risk.mean) == (1, 1.0)


@pytest.mark.parametrize(
    ("library", "example", "lines"),
    [
        ("mlflow", "mlflow_intervals", [r"lower", r"1\. Miscoverage at level 0\.1"]),
        (
            "sklearn",
            "sklearn_drift",
            [
                r"^all +rows +1000–5000 +\S+%, length +\S+ +(89\.\d|90\.\d)%",
                r"1\. Miscoverage at level 0\.1: guaranteed",
            ],
        ),
        (
            "river",
            "river_delays",
            [r"^setpoint +(89\.\d|90\.\d)%", r"1\. Miscoverage at level 0\.1: guaranteed"],
        ),
        (
            "torch",
            "torch_quantiles",
            [
                r"1\. Miscoverage at level 0\.1: guaranteed",
                r"2\. MiscoverageCounter at level 0\.111111: guaranteed",
            ],
        ),
    ],
)
def test_an_example_of_a_library_prints_what_it_promises(
    library: str, example: str, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(library)
    runpy.run_path(str(EXAMPLES / f"{example}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    for line in lines:
        assert re.search(line, printed, re.MULTILINE)
