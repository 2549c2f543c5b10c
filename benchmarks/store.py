"""The store at work: events per second and memory, beside the same streams without a store.

`python -m benchmarks store` takes in a million events of one stream, then of a hundred, in batches
of a thousand, all on the disk; then the same number of lines through `setpoint stream`. Each rate
is given beside that of plain streams in the same run. SETPOINT_EVENTS makes it smaller or larger.

The log of files that the store replaced took in 19,300 lines a second of one stream and 8,000 of a
hundred through a pipe, on a machine with two busy cores.
"""

import json
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import setpoint as sp
from benchmarks.cli import _CONTROLLER, _memory, lines, stream

EVENTS = int(os.environ.get("SETPOINT_EVENTS", 1_000_000))
_BATCH = 1000


def plain(events: list[dict[str, Any]]) -> float:
    """Events per second of streams in memory."""
    streams: dict[str, sp.Stream] = {}
    begin = time.perf_counter()
    for event in events:
        name = event.get("stream", "")
        if name not in streams:
            streams[name] = sp.Stream(_CONTROLLER)
        if "y" in event:
            streams[name].update(event["y"], event["id"])
        else:
            streams[name].predict(event["prediction"], event["id"])
    return len(events) / (time.perf_counter() - begin)


def stored(path: Path, count: int, streams: int) -> dict[str, Any]:
    """Events per second of a store, the memory as it goes, and the size of its file."""
    memory, took, spent, sample = [], 0.0, 0.0, []
    with sp.Store(path, _CONTROLLER) as store:
        batch: list[dict[str, Any]] = []
        for number, line in enumerate(lines(count, streams), 1):
            batch.append(json.loads(line))
            if len(batch) == _BATCH or number == count:
                begin, before = time.perf_counter(), time.process_time()
                answers = store.apply(batch)
                took += time.perf_counter() - begin
                spent += time.process_time() - before
                assert not any("error" in answer for answer in answers)
                sample += batch if len(sample) < 50_000 else []
                batch = []
            if number % max(count // 4, 1) == 0:
                memory.append(_memory(os.getpid()))
    rate, without = count / took, plain(sample)
    return {
        "streams": streams, "events_per_second": rate, "share_of_plain": rate / without,
        "cpu_us": 1e6 * spent / count, "memory": memory, "file_bytes": path.stat().st_size,
    }  # fmt: skip


def main() -> None:
    """Measures and prints a table and one line of JSON."""
    results = []
    for streams in (1, 100):
        with TemporaryDirectory() as folder:
            result = stored(Path(folder) / "streams.sqlite", EVENTS, streams)
            piped = stream(Path(folder), EVENTS, streams)
        results.append({**result, "piped": piped})
        megabytes = ", ".join(f"{used / 1e6:.0f}" for used in result["memory"])
        print(f"{EVENTS:,} events, {streams} streams, batches of {_BATCH:,}, all on the disk")
        print(
            f"  {result['events_per_second']:,.0f} events a second, "
            f"{100 * result['share_of_plain']:.0f} % of plain streams"
        )
        print(
            f"  memory {megabytes} MB after each quarter; file {result['file_bytes'] / 1e6:.0f} MB"
        )
        print(f"  {piped['lines_per_second']:,.0f} lines a second through setpoint stream")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
