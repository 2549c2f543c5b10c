"""The command line at work: rows per second of `calibrate`, lines per second of `stream`.

`python -m benchmarks cli` makes a file of 10 million predictions, calibrates it as `setpoint
calibrate` does and says where the time goes; then it sends a million lines through `setpoint
stream` twice, of one stream and of a hundred, and watches its memory. SETPOINT_ROWS and
SETPOINT_LINES make either smaller or larger.
"""

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import setpoint as sp

ROWS = int(os.environ.get("SETPOINT_ROWS", 10_000_000))
LINES = int(os.environ.get("SETPOINT_LINES", 1_000_000))
_BLOCK = 1 << 20

_CONTROLLER = sp.intervals()


def make(path: Path, rows: int) -> int:
    """A file of predictions and labels whose noise drifts; its size in bytes."""
    import pyarrow as pa
    from pyarrow import csv

    random = np.random.default_rng(0)
    first = np.datetime64("2000-01-01", "s")
    kinds = [
        ("time", pa.timestamp("s")),
        *((n, pa.float64()) for n in ("lower", "upper", "demand")),
    ]
    schema = pa.schema(kinds)
    with csv.CSVWriter(path, schema) as writer:
        for start in range(0, rows, _BLOCK):
            step = np.arange(start, min(start + _BLOCK, rows))
            centre = 40.0 + 8.0 * np.sin(step / 300.0)
            noise = (1.0 + np.sin(step / 200_000.0) ** 2) * random.standard_normal(len(step))
            ends = (centre - 1.6, centre + 1.6, centre + noise)
            columns = [first + 60 * step, *(np.round(each, 3) for each in ends)]
            writer.write(pa.table(columns, schema=schema))
    return path.stat().st_size


def calibrate(folder: Path, rows: int) -> dict[str, Any]:
    """The phases of `setpoint calibrate`, and the whole command as a process of its own."""
    from setpoint.jobs.calibrate import calibrate as calibrate_file
    from setpoint.tape import Columns

    path = folder / "forecast.csv"
    size = make(path, rows)
    options = {"target": "demand", "lower": "lower", "upper": "upper", "time": "time"}
    columns = Columns(**options)
    took: dict[str, float] = {}

    def timed(name: str, begin: float) -> float:
        now = time.perf_counter()
        took[name] = now - begin
        return now

    warm = folder / "warm.csv"
    make(warm, 2_000)
    calibrate_file(warm, columns)  # compiled, or taken from the cache, before the clock
    began = now = time.perf_counter()
    found = calibrate_file(path, columns)
    now = timed("reading and calibrating", now)
    found.metrics()
    now = timed("measuring", now)
    found.write(folder / "out", report=False)
    now = timed("writing", now)
    whole = now - began
    coverage = found.trace.coverage
    del found

    command = [sys.executable, "-m", "setpoint.cli", "calibrate", str(path), "--no-report"]
    command += ["--out", str(folder / "again")]
    command += [word for name, value in options.items() for word in (f"--{name}", value)]
    begin = time.perf_counter()
    subprocess.run(command, check=True)
    process = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return {
        "rows": rows,
        "bytes": size,
        "seconds": took,
        "rows_per_second": rows / whole,
        "share": {name: seconds / whole for name, seconds in took.items()},
        "coverage": coverage,
        "process_seconds": process,
        "process_rows_per_second": rows / process,
        "process_peak_bytes": peak,
    }


def lines(count: int, streams: int = 1) -> Iterator[bytes]:
    """Predictions and labels as JSON Lines, some labels late, of one stream or of many in turn."""
    random = np.random.default_rng(1)
    noise = random.standard_normal(count).round(3).tolist()
    waiting: list[bytes] = []
    made = 0
    for number, y in enumerate(noise):
        name = b'"id": "p%d"' % number
        if streams > 1:
            name = b'"stream": "s%d", "id": "p%d"' % (number % streams, number)
        yield b'{%s, "prediction": [-1.6, 1.6]}\n' % name
        waiting.append(name)
        made += 1
        while waiting and (len(waiting) > 20 or number % 7 == 0) and made < count:
            yield b'{%s, "y": %s}\n' % (waiting.pop(0), str(y).encode())
            made += 1
        if made >= count:
            return


def stream(folder: Path, count: int, streams: int = 1) -> dict[str, Any]:
    """Lines per second through a pipe, and the memory of the process as it goes."""
    config = folder / "controller.toml"
    config.write_text(sp.spec.to_toml(_CONTROLLER), encoding="utf-8")
    command = [sys.executable, "-m", "setpoint.cli", "stream"]
    command += ["--store", str(folder / "store.sqlite"), "--controller", str(config)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        sink, source = server.stdin, server.stdout
        first = b'{"prediction": [0, 1], "id": "first"}\n{"id": "first", "y": 0.5}\n'
        sink.write(first)
        sink.flush()
        source.readline()
        source.readline()
        # The log is written whole every 100,000 events: memory is looked at from there on.
        marks = sorted({count // 4, count // 2, 3 * count // 4, 99 * count // 100})
        seen: dict[int, int] = {}
        errors = 0

        def send() -> None:
            batch = []
            for line in lines(count, streams):
                batch.append(line)
                if len(batch) == 500:
                    sink.write(b"".join(batch))
                    batch.clear()
            sink.write(b"".join(batch))
            sink.close()

        sender = threading.Thread(target=send)
        start = _memory(server.pid)
        begin = time.perf_counter()
        sender.start()
        for number, answer in enumerate(source, 1):
            errors += b'"error"' in answer
            if number in marks:
                seen[number] = _memory(server.pid)
        took = time.perf_counter() - begin
        sender.join()
    return {
        "lines": count,
        "streams": streams,
        "seconds": took,
        "lines_per_second": count / took,
        "errors": errors,
        "memory_at_start": start,
        "memory_after": {str(number): held for number, held in seen.items()},
    }


def _memory(pid: int) -> int:
    """The resident memory of a process in bytes; 0 where the system does not tell."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith("VmRSS:"):
            return 1024 * int(line.split()[1])
    return 0


def main() -> None:
    """Measures both and prints a table and one line of JSON."""
    with TemporaryDirectory() as held:
        found = calibrate(Path(held), ROWS)
        print(f"setpoint calibrate, {found['rows']:,} rows of CSV, {found['bytes'] / 1e6:,.0f} MB")
        for name, seconds in found["seconds"].items():
            speed = f"{found['rows'] / seconds:>14,.0f} rows a second"
            print(f"  {name:<12}{seconds:>9.2f} s{100 * found['share'][name]:>7.0f} %{speed}")
        whole = sum(found["seconds"].values())
        speed = f"{found['rows_per_second']:>14,.0f} rows a second"
        print(f"  {'together':<12}{whole:>9.2f} s{'':>9}{speed}")
        print(
            f"  as a command, without the page: {found['process_seconds']:.1f} s, "
            f"{found['process_rows_per_second']:,.0f} rows a second, "
            f"{found['process_peak_bytes'] / 1e9:.1f} GB at most; coverage {found['coverage']:.4f}"
        )
    lives = []
    for streams in (1, 100):
        with TemporaryDirectory() as held:
            live = stream(Path(held), LINES, streams)
        lives.append(live)
        many = "one stream" if streams == 1 else f"{streams} streams"
        print(f"setpoint stream, {live['lines']:,} lines through a pipe, all on the disk, {many}")
        print(f"  {live['lines_per_second']:,.0f} lines a second, {live['errors']} errors")
        print(f"  memory {live['memory_at_start'] / 1e6:.0f} MB at the start")
        for number, used in live["memory_after"].items():
            print(f"         {used / 1e6:.0f} MB after {int(number):,} lines")
    print(json.dumps({"calibrate": found, "stream": lives}))


if __name__ == "__main__":
    main()
