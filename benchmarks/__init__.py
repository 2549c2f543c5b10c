"""Benchmarks: `python -m benchmarks NAME`, each beside a rival measured in the same run.

A benchmark is a module of this package with a `main()` that prints its tables and, as its last
line, one JSON object. Give it a line in `KNOWN` and it can be called by name.
"""

KNOWN = {
    "targets": "what users wait for beside its targets, and the cost of a unit at n, 4n, 16n",
    "live": "one live step, predict and update, beside the same recursion written by hand",
    "bulk": "replay beside C, fleets beside a memory copy, sweeps, rolling windows, memory",
    "cli": "rows per second of calibrate, lines per second of stream, memory",
    "panel": "calibrate on 100,000 series of 100 rows, beside reading the file",
    "store": "events per second and memory of a store: one stream, a hundred, through a pipe",
    "service": "events per second over HTTP beside the store, requests beside an echo, PostgreSQL",
    "spark": "keyed streams on Spark, rows per second of processor time, beside one machine",
    "images": "intervals of a 448 × 448 frame and both losses, beside plain numpy and torch",
    "labels": "one live step with sets of 10 and of 1000 classes, beside plain numpy",
    "risks": "two risks on one interval, by the default and by the paper's rule, on five data sets",
    "lstm": "one online step of the quantile LSTM beside a straightforward way to compute it",
}
"""The name of each benchmark, and what it measures."""
