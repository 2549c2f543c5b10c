"""What users wait for: each target beside today's figure and a peer or limit of the same run.

`python -m benchmarks targets` prints a table: seconds of the processor, the smallest of repeats,
with the default rule and ids that are no serial numbers. Then what one unit costs at n, 4n and 16n
units. SETPOINT_ROWS is how many rows the two large files have; at less than 10,000,000 their
seconds are scaled to that.
"""

import gc
import json
import os
import platform
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np

import setpoint as sp
from benchmarks import images, live, panel
from benchmarks.bulk import by_turns, controller_of
from setpoint.bulk.compile import compiled
from setpoint.bulk.vectors import Vectors

ROWS = int(os.environ.get("SETPOINT_ROWS", 10_000_000))
STREAMS = 100_000
_WHOLE = 10_000_000
PAPER = controller_of(sp.stretches.Identity())
DEFAULT = sp.intervals()


@dataclass
class Figure:
    """One target: what was measured beside it, and why it is missed where it is."""

    name: str
    unit: str
    target: float
    value: float
    peer: str = ""
    peer_value: float | None = None
    why: str = ""

    @property
    def met(self) -> bool:
        return self.value <= self.target


def per_step(*runs: Callable[[], Any], steps: int, repeats: int = 7) -> list[float]:
    """µs of CPU time a step of several rivals, by turns."""
    gc.collect()
    gc.disable()
    try:
        return [seconds / steps * 1e6 for seconds in by_turns(*runs, repeats=repeats)]
    finally:
        gc.enable()


def text_ids(controller: sp.Controller, rows: list[live.Row]) -> None:
    """Steps under ids of one's own."""
    stream = sp.Stream(controller)
    for place, (prediction, y) in enumerate(rows):
        stream.predict(prediction, f"order {place}")
        stream.update(y, f"order {place}")


def steps() -> list[Figure]:
    """Live steps, predict and update."""
    rows = live.stream_of_rows()
    shortfall = sp.Risk(sp.losses.Miscoverage(), 0.2, sp.steps.Fixed(0.05), bounds=(-20.0, 20.0))
    two = sp.Controller(sp.sets.Widen(), [PAPER.risks[0], shortfall])
    paper, hand, pair, named = per_step(
        lambda: live.run(sp.Stream(PAPER), rows),
        lambda: live.run(live.Identity(), rows),
        lambda: live.run(sp.Stream(two), rows),
        lambda: text_ids(PAPER, rows),
        steps=len(rows),
    )
    plain, few = per_step(
        lambda: live.adjusting(rows, fast=False),
        lambda: live.run(live.Identity(), rows),
        steps=len(rows), repeats=2,
    )  # fmt: skip
    watched = "the watch of the price is 2 µs of it"
    figures = [
        Figure("a live step, the paper's rule", "µs", 2.5, paper, "a class by hand", hand, watched),
        Figure("the same, two risks", "µs", 8.0, pair, "one risk", paper, watched),
        Figure("the same, ids of text, 20,000 of them", "µs", 8.2, named, "generated ids", paper),
        Figure("a live step, the default, plain Python", "µs", 25.0, plain, "a class by hand", few,
               "it learns bias, scale, tails and a table of 17 knots in each step"),
    ]  # fmt: skip
    if compiled():
        (fast,) = per_step(lambda: live.adjusting(rows, fast=True), steps=len(rows), repeats=3)
        figures.append(
            Figure("a live step, the default, extra `fast`", "µs", 8.0, fast, "plain Python", plain)
        )
    return figures


def small() -> list[Figure]:
    """What is made and read between steps."""
    stream, random = sp.Stream(DEFAULT), np.random.default_rng(0)
    for y in random.normal(size=600).tolist():
        stream.predict((-1.6, 1.6))
        stream.update(y)

    def many(call: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: [call() for _ in range(100)]

    made, hand, summary, certificate = per_step(
        many(lambda: sp.Stream(DEFAULT)), many(live.Identity), many(stream.summary),
        many(stream.certificate), steps=100,
    )  # fmt: skip
    return [
        Figure("`Stream()` of a controller used before", "µs", 15.0, made, "a class by hand", hand),
        Figure("`summary()`", "µs", 200.0, summary, "`certificate()` alone", certificate),
        Figure("memory of a stream after 10,000 labels", "KB", 20.0, _held(DEFAULT, (-1.6, 1.6)),
               "its state in a fleet", Vectors(DEFAULT).layout.size * 8 / 1e3),
        Figure("the same, sets of 1,000 classes", "KB", 40.0,
               _held(sp.label_sets(), np.full(1_000, 1e-3), labels=500)),
    ]  # fmt: skip


def _held(controller: sp.Controller, prediction: Any, labels: int = 10_000) -> float:
    """KB that a stream holds after some labels."""
    numbers = range(labels) if type(prediction) is not tuple else np.sin(np.arange(labels)).tolist()
    sp.Stream(controller).predict(prediction)
    gc.collect()
    tracemalloc.start()
    stream = sp.Stream(controller)
    for y in numbers:
        stream.predict(prediction)
        stream.update(y)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held / 1e3


def fleet() -> list[Figure]:
    """`predict` and `update` of many streams, beside the loops they run, called once each."""
    random = np.random.default_rng(0)
    ends = np.full(STREAMS, -1.6), np.full(STREAMS, 1.6)
    y = random.normal(size=(4, STREAMS))
    working = sp.Fleet(DEFAULT, STREAMS)

    def pair() -> None:
        working.predict(ends)
        working.update(y[0])

    bare = _bare(ends, y[0])
    took, limit = (seconds / STREAMS * 1e9 for seconds in by_turns(pair, bare, repeats=5))
    return [
        Figure("`Fleet` of 100,000: predict + update", "ns", 1.5 * limit, took,
               "1.5 × the same loops, called once", limit),
    ]  # fmt: skip


def _bare(ends: tuple[np.ndarray, ...], y: np.ndarray) -> Callable[[], Any]:
    """The loops of the default over the same states, with nothing checked and nothing kept."""
    held = Vectors(DEFAULT)
    held.add(list(range(STREAMS)), None)
    layout, made = held.layout, held._loops(10**9)
    rows = np.stack([*ends, np.full(STREAMS, np.nan)], axis=1)[:, : layout.columns]
    streams, bounds = np.arange(STREAMS), np.arange(STREAMS + 1)
    kept, out = np.empty((STREAMS, layout.base)), np.empty((STREAMS, layout.family))
    lower, upper, lam, theta, loss = np.empty((5, 1, STREAMS))
    leaders, habits = np.empty(STREAMS, np.int64), np.zeros((STREAMS, 1))
    annexes = held.annexes
    annexes.room(STREAMS)

    def run() -> None:
        for events in (streams, ~streams):
            made.correct(
                held.stage, held.array, streams, bounds, events, rows, y, kept, (1 << 62) - 1, out,
                annexes.pool, annexes.slots, annexes.used,
            )  # fmt: skip
            made.run(
                held.params, held.array, streams, bounds, events, out, y, False, lower, upper, lam,
                leaders, habits, theta, loss, None, None, None, None,
            )  # fmt: skip

    return run


def several() -> list[Figure]:
    """Replays of four levels, and of rows in 20 groups each, beside one level without groups."""
    rows, random = 100_000, np.random.default_rng(0)
    codes = {f"group {k}": random.integers(0, 24, rows) for k in range(20)}
    tape = sp.Tape.from_arrays({"point": np.zeros(rows)}, random.normal(size=rows), extras=codes)
    four = sp.intervals(coverage=[0.5, 0.8, 0.9, 0.95])
    one, levels, first, twenty = by_turns(
        lambda: sp.replay(DEFAULT, tape),
        lambda: sp.replay(four, tape),
        lambda: sp.replay(DEFAULT, tape, groups=["group 0"]),
        lambda: sp.replay(DEFAULT, tape, groups=list(codes)),
        repeats=4,
    )
    unit = 1e9 / rows
    each = (twenty - first) / 19.0 * unit
    return [
        Figure("a row of four levels, beside one level", "×", 1.8, levels / one, "one level, ns",
               one * unit, "eight ends learn a tail and a shift each, and four accounts are kept"),
        Figure("a row in 20 groups, beside none", "×", 2.0, twenty / one, "each group, ns", each,
               "an account is read and written when it is asked and when it is answered"),
    ]  # fmt: skip


def frames() -> list[Figure]:
    """A frame of 448 × 448 through a stream, beside plain numpy."""
    clip = images.clip()
    tasks = images.stream(clip, True), lambda: images.plain(clip), images.parts(clip)
    shared, numpy, parts = per_step(*tasks, steps=len(clip), repeats=15)
    why = f"its sets and losses alone take {parts:.0f}"
    return [Figure("a frame of 448 × 448 live", "µs", 350.0, shared, "plain numpy", numpy, why)]


_FIRST = """
import resource, numpy as np{more}
print(resource.getrusage(resource.RUSAGE_SELF).ru_utime)
"""
_REPLAY = """, setpoint as sp
y = np.sin(np.arange(1000.0)); tape = sp.Tape.from_arrays({"point": 0.9 * y}, y)
sp.replay(sp.intervals(), tape)"""
_CALIBRATE = """, sys
from setpoint.jobs import calibrate
from setpoint.tape import Columns
from pathlib import Path
calibrate(Path(sys.argv[1]), Columns("y", point="x")).write(Path(sys.argv[2]))"""


def first() -> list[Figure]:
    """The first work of a process, with all that it imports."""

    def cpu(more: str, *arguments: str) -> float:
        command = [sys.executable, "-c", _FIRST.replace("{more}", more), *arguments]
        texts = [
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
            for _ in range(3)
        ]
        return min(map(float, texts))

    with TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        y = np.sin(np.arange(1000.0))
        lines = [f"{0.9 * a:.4f},{a:.4f}" for a in y.tolist()]
        file.write_text("\n".join(["x,y", *lines]))
        bare = cpu("")
        return [
            Figure("a first `sp.replay` of 1,000 rows", "s", 1.0, cpu(_REPLAY), "import numpy",
                   bare),
            Figure("a first `setpoint calibrate` of 1,000 rows", "s", 3.0,
                   cpu(_CALIBRATE, str(file), f"{folder}/out"), "import numpy", bare),
        ]  # fmt: skip


def files() -> list[Figure]:
    """Large Parquet files: one series, and 100,000 series of 100 rows; seconds for 10 M rows."""
    import pandas

    from setpoint.jobs import calibrate
    from setpoint.tape import Columns
    from setpoint.tape.rows import read

    figures, times = [], _WHOLE / ROWS
    with TemporaryDirectory() as name:
        folder = Path(name)
        series = panel.make(folder / "panel.parquet", ROWS // 100)
        table = pandas.read_parquet(series)
        table.assign(id="one", t=np.arange(len(table))).to_parquet(folder / "one.parquet")
        for what, path in (("one series", folder / "one.parquet"), ("100 rows a series", series)):
            columns = Columns("y", lower="low", upper="high", series="id", time="t")
            marks = [process_time()]
            read(path)
            marks.append(process_time())
            calibrate(path, columns).write(folder / "out" / path.stem)
            marks.append(process_time())
            _rolling(path, what == "one series")
            marks.append(process_time())
            reading, job, rival = (times * (b - a) for a, b in pairwise(marks))
            figures.append(
                Figure(f"`calibrate`, 10 M rows of Parquet, {what}", "s", 10.0, job,
                       "a rolling quantile of pandas", rival,
                       f"reading them takes {reading:.1f}; the rest is sets, metrics and report")
            )  # fmt: skip
    return figures


def _rolling(path: Path, one: bool) -> None:
    """What a script would do: the quantile of the last 300 errors of each series."""
    import pandas

    table = pandas.read_parquet(path)
    errors = (table["y"] - (table["low"] + table["high"]) / 2).abs()
    grouped = errors if one else errors.groupby(table["id"])
    grouped.rolling(300, min_periods=30).quantile(0.9)


def forecasts() -> list[Figure]:
    """Forecasts of 24 rows to come: of one long series, and of 500 of 500 rows."""
    import pandas

    rng = np.random.default_rng(0)
    long = 10.0 * np.sin(np.arange(50_000) * np.pi / 12) + 0.1 * rng.normal(size=50_000).cumsum()
    short = rng.normal(size=(500, 500)).cumsum(axis=1) + np.sin(np.arange(500) * np.pi / 3.5)
    panel_of = {"y": short.ravel(), "series": np.repeat(np.arange(500), 500)}
    cases = [
        ("one series of 50,000 rows", 60.0, {"y": long + rng.normal(size=50_000)}, None),
        ("500 series of 500 rows", 120.0, panel_of, "series"),
    ]
    figures = []
    for name, target, columns, series in cases:
        began = process_time()
        sp.forecast(pandas.DataFrame(columns), "y", steps=24, series=series)
        took = process_time() - began
        figures.append(Figure(f"`forecast` of 24 rows, {name}", "s", target, took))
    return figures


def stores() -> list[Figure]:
    """A store: a batch over 500 streams, and what is asked of one with 9,000 that wait."""
    random = np.random.default_rng(0)
    with TemporaryDirectory() as folder, sp.Store(Path(folder) / "s.sqlite", DEFAULT) as store:
        number = 0

        def batch(streams: int = 500, events: int = 1000) -> list[dict[str, Any]]:
            nonlocal number
            listed = []
            for place in range(events // 2):
                number += 1
                about = {"stream": f"s{place % streams}", "id": f"order {number}"}
                listed += [{**about, "prediction": [-1.6, 1.6]}, {**about, "y": random.normal()}]
            return listed

        def taken(events: list[dict[str, Any]]) -> float:
            began = process_time()
            store.apply(events)
            return (process_time() - began) / len(events) * 1e6

        for _ in range(3):
            store.apply(batch())
        spread, together = (min(taken(batch(n)) for _ in range(5)) for n in (500, 1))
        waits = {"stream": "waits", "prediction": [-1.6, 1.6]}
        store.apply([{**waits, "id": f"w{place}"} for place in range(9000)])
        named = sp.Store.summary, sp.Store.read
        summary, certificate = per_step(
            lambda: named[0](store, "waits"), lambda: named[1](store, "waits").certificate(),
            steps=1, repeats=3,
        )  # fmt: skip
    return [
        Figure("a store, 1,000 events over 500 streams, each", "µs", 30.0, spread,
               "on one stream", together, "each stream that was touched is written once a batch"),
        Figure("`Store.summary`, 9,000 waiting", "ms", 5.0, summary / 1e3),
        Figure("a stored certificate, 9,000 waiting", "ms", 5.0, certificate / 1e3),
    ]  # fmt: skip


def scaling() -> dict[str, list[float]]:
    """What one unit costs at n, 4n and 16n units."""
    random, sizes = np.random.default_rng(0), (1, 4, 16)
    y = random.normal(size=160_000)
    tape = sp.Tape.from_arrays({"point": np.zeros(len(y))}, y)
    rows = live.stream_of_rows()[:16_000]
    tried = [sp.intervals(limit=5.0 + k / 10) for k in range(160)]

    def pair(count: int) -> Callable[[], Any]:
        working = sp.Fleet(DEFAULT, count)
        zeros = np.zeros(count)

        def run() -> None:
            working.predict(zeros)
            working.update(y[:count])

        return run

    def unit(count: int, run: Callable[[], Any]) -> float:
        return by_turns(run, repeats=2)[0] / count * 1e9

    return {
        "live steps, n = 1,000, ns": [
            unit(1000 * k, lambda k=k: text_ids(PAPER, rows[: 1000 * k])) for k in sizes
        ],
        "rows of a replay, n = 10,000, ns": [
            unit(10_000 * k, lambda k=k: sp.replay(DEFAULT, tape[: 10_000 * k])) for k in sizes
        ],
        "streams of a fleet, n = 6,000, ns": [unit(6_000 * k, pair(6_000 * k)) for k in sizes],
        "controllers of a sweep of 1,000 rows, n = 10, ns": [
            unit(10 * k, lambda k=k: sp.sweep(tried[: 10 * k], tape[:1000])) for k in sizes
        ],
    }  # fmt: skip


def main() -> None:
    """Measures, prints a table, and one JSON object in the last line."""
    figures: list[Figure] = []
    print(f"{'':48}{'':>4}{'target':>10}{'today':>10}  beside")
    for measure in (steps, several, small, fleet, frames, first, forecasts, stores, files):
        try:
            more = measure()
        except ModuleNotFoundError as absent:
            print(f"left out, {absent.name} is not installed: {measure.__doc__}")
            continue
        for each in more:
            rival = "" if each.peer_value is None else f"{each.peer} {each.peer_value:.3g}"
            verdict = "" if each.met else "  missed"
            cells = f"{each.target:10.3g}{each.value:10.3g}  {rival}{verdict}"
            print(f"{each.name:48}{each.unit:>4}{cells}", flush=True)
        figures += more
    units = scaling()
    print(f"\n{'one unit at':52}{'n':>10}{'4n':>10}{'16n':>10}")
    for name, costs in units.items():
        print(f"{name:52}" + "".join(f"{cost:10.3g}" for cost in costs))
    about = f"Python {platform.python_version()}, numpy {np.__version__}, {os.cpu_count()} cores"
    listed = [{**asdict(each), "met": each.met} for each in figures]
    told = {"benchmark": "targets", "about": about, "load": round(os.getloadavg()[0], 1)}
    print(json.dumps({**told, "rows": ROWS, "targets": listed, "scaling": units}))
