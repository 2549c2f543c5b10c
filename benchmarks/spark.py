"""Keyed streams on Spark: rows for each second of processor time of the whole process tree.

Wall time says little on a busy machine, so every figure counts the processor time of
Python, the JVM and its Python workers. The start of a query and its first batches, which start the
workers and compile, are left out.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import setpoint as sp
from setpoint import spark as keyed

PAPER = sp.Controller(
    sp.sets.Widen(),
    sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-20.0, 20.0)),
)
KEYS = int(os.environ.get("SETPOINT_KEYS", 1_000_000))
"""The largest number of keys; fewer make it shorter."""
RULES = {"paper's rule": PAPER, "sp.intervals": sp.intervals()}
SCHEMA = "key bigint, time bigint, id bigint, lower double, upper double, y double"
COLUMNS = keyed.Columns("y", "lower", "upper", series="key", time="time")


def session(**settings: str) -> Any:
    """A local session of two cores."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]")
    usual = {
        "spark.driver.memory": "3g", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "4",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    }  # fmt: skip
    for name, value in {**usual, **keyed.SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


_SEEN: dict[tuple[int, str], int] = {}
"""The ticks of every process of the tree, by its number and start, when it was seen last."""


def processor_time() -> float:
    """Seconds of processor time of this process and all below it, as long as they were seen.

    A parent is not asked for its ended children: those of one that was killed would be lost.
    """
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        number = int(path.parent.name)
        parents[number], ticks[number, fields[19]] = int(fields[1]), sum(map(int, fields[11:13]))
    tree = {os.getpid(), *(number for number, _ in _SEEN.keys() & ticks.keys())}
    while more := {number for number, parent in parents.items() if parent in tree} - tree:
        tree |= more
    _SEEN.update({name: count for name, count in ticks.items() if name[0] in tree})
    return sum(_SEEN.values()) / os.sysconf("SC_CLK_TCK")


def rows(keys: np.ndarray, time: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Forecasts and labels."""
    random = np.random.default_rng(seed)
    centre = random.normal(size=len(keys))
    y = centre + random.normal(size=len(keys)) * 2.0
    ids = np.arange(len(keys)) + seed * 10_000_000
    return {
        "key": keys, "time": time, "id": ids, "lower": centre - 1.0, "upper": centre + 1.0, "y": y
    }  # fmt: skip


def write(folder: Path, number: int, columns: dict[str, np.ndarray]) -> int:
    """One file of a batch; files are read in the order of their times."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number:04}.parquet"
    nulls = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    pq.write_table(pa.table(nulls), path)
    os.utime(path, (1_000_000 + number, 1_000_000 + number))
    return len(columns["key"])


def dense(keys: int, each: int, batch: int) -> dict[str, np.ndarray]:
    """`each` rows of every key."""
    time, key = np.divmod(np.arange(keys * each), keys)
    order = np.random.default_rng(batch).permutation(keys * each)
    return rows(key[order], time[order] + batch * each, batch)


def sparse(keys: int, share: float, batch: int) -> dict[str, np.ndarray]:
    """A row of every key in the first batch, of a few in the others."""
    count = keys if batch == 0 else int(keys * share)
    key = np.random.default_rng(batch).permutation(keys)[:count]
    return rows(key, np.full(count, batch), batch)


def delayed(keys: int, delay: int, batch: int) -> dict[str, np.ndarray]:
    """A prediction of every key at each of 12 times, and the label of the one `delay` before."""
    parts, nothing = [], np.full(keys, np.nan)
    for hour in range(batch * 12, batch * 12 + 12):
        made = rows(np.arange(keys), np.full(keys, hour), hour)
        made |= {"id": np.full(keys, hour), "y": nothing}
        label = rows(np.arange(keys), np.full(keys, hour), hour + 10**6)
        label |= {"id": np.full(keys, hour - delay), "lower": nothing, "upper": nothing}
        parts += [made] if hour < delay else [made, label]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def stream(
    spark: Any, query: Any, make: Any, batches: int, *, warm: int = 2
) -> tuple[float, float, float]:
    """Rows per second of processor time, bytes of state, seconds of wall time a batch."""
    with scratch() as folder:
        counts = [write(folder / "in", number, make(number)) for number in range(warm + batches)]
        source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        checkpoint = str(folder / "checkpoint")
        out = query(source.parquet(str(folder / "in")), checkpoint=checkpoint)
        writer = out.writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", checkpoint)
        running = writer.start(str(folder / "out"))
        before, begin = at_commit(running, folder, warm - 1)
        after, end = at_commit(running, folder, warm + batches - 1)
        running.awaitTermination()
        values = spark.read.format("statestore").option("stateVarName", "bucket").load(checkpoint)
        size = values.selectExpr("sum(length(value.blob))").first()
        return sum(counts[warm:]) / (after - before), size[0], (end - begin) / batches


class OneKey:
    """The obvious way: a group for each key, the paper's rule by hand, and its state as text."""

    def init(self, handle: Any) -> None:
        self._state = handle.getValueState("bucket", "blob STRING")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802
        import pandas as pd

        before, frame = self._state.get(), pd.concat(rows).sort_values("time")
        theta, shown = float(before[0]) if before else 0.0, []
        columns = [frame[name].tolist() for name in ("time", "lower", "upper", "y")]
        for at, lower, upper, y in zip(*columns, strict=True):
            ends = lower - theta, upper + theta
            loss = float(not ends[0] <= y <= ends[1])
            theta += 0.05 * (loss - 0.1)
            shown.append((key[0], at, *ends, loss))
        self._state.update((repr(theta),))
        yield pd.DataFrame(shown, columns=["key", "time", "lower", "upper", "loss"])

    def close(self) -> None:
        """Nothing is held between batches."""


def one_group_each(frame: Any, checkpoint: str) -> Any:  # noqa: ARG001
    """A query of a group for each key."""
    schema = "key bigint, time bigint, lower double, upper double, loss double"
    groups = frame.groupBy("key")
    return groups.transformWithStateInPandas(OneKey(), schema, "Append", "None")


def at_commit(query: Any, folder: Path, batch: int) -> tuple[float, float]:
    """The processor time and the time of day when a batch is committed."""
    while not (folder / "checkpoint" / "commits" / str(batch)).exists():
        if not query.isActive:
            query.awaitTermination()
        processor_time()
        time.sleep(0.2)
    return processor_time(), time.monotonic()


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for a while."""
    folder = Path(tempfile.mkdtemp(prefix="setpoint-spark-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def table(spark: Any, controller: sp.Controller, keys: int, each: int) -> float:
    """Rows per second of processor time of a backtest."""
    with scratch() as folder:
        count = write(folder / "in", 0, dense(keys, each, 0))
        rows = spark.read.schema(SCHEMA).parquet(str(folder / "in"))
        out = keyed.backtest(rows, controller, COLUMNS, buckets=buckets_of(keys))
        before = 0.0
        for _ in range(2):  # the first starts the workers
            before = processor_time()
            out.write.format("noop").mode("overwrite").save()
        return count / (processor_time() - before)


def one_machine(controller: sp.Controller, keys: int, steps: int = 8) -> tuple[float, float]:
    """Rows per second of a `Fleet`, and of `Work.step_many` on one bucket, in this process."""
    random = np.random.default_rng(0)
    centre = random.normal(size=(steps, keys))
    y = centre + random.normal(size=centre.shape) * 2.0
    fleet, rates = sp.Fleet(controller, keys), []
    for _ in range(2):
        begin = time.process_time()
        fleet.run((centre - 1.0, centre + 1.0), y)
        rates.append(centre.size / (time.process_time() - begin))
    work, blob = keyed.Work(controller), None
    key = np.arange(min(keys, 4000))
    for step in range(6):
        columns = rows(key, np.full(len(key), step), step)
        begin = time.process_time()
        blob, _ = work.step_many(blob, {name: columns[name] for name in columns if name != "id"})
    return rates[-1], len(key) / (time.process_time() - begin)


def buckets_of(keys: int) -> int:
    return max(4, keys // 16_000)


class Report:
    """Prints a line for each figure, and at the end all of them as JSON."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        print(f"{'':<44}{'keys':>10}{'rows/CPU-s':>12}{'bytes/key':>11}{'s/batch':>9}", flush=True)

    def __call__(
        self, name: str, keys: int, rate: float, size: float | None = None, wall: float = 0.0
    ) -> None:
        each = None if size is None else size / keys
        self.lines.append({"what": name, "keys": keys, "rate": rate, "bytes": each, "wall": wall})
        more = "" if each is None else f"{each:>11,.0f}{wall:>9.1f}"
        print(f"{name:<44}{keys:>10,}{rate:>12,.0f}{more}", flush=True)


def billion(lines: list[dict[str, Any]], keys: int = 10**9, seconds: int = 3600) -> Iterator[str]:
    """What a row of each of so many keys every hour asks for, by the figures of the largest run."""
    for rule in RULES:
        of_rule = [line for line in lines if line["what"] == f"stream, {rule}"]
        largest = max(of_rule, key=lambda line: line["keys"])
        state = keys * largest["bytes"] / 1e9
        cores = 1.5 * keys / seconds / largest["rate"]
        yield (
            f"{keys:,} keys, a row each in {seconds:,} s, {rule}: {cores:.1f} cores, "
            f"{keys // 16_000:,} buckets, {state:,.0f} GB of state, rewritten at "
            f"{state * 1e3 / seconds:,.0f} MB/s, {keys * 40 / 1e9:,.0f} GB shuffled at "
            f"{keys * 40 / 1e6 / seconds:,.0f} MB/s"
        )


def main() -> None:
    """Prints every figure, each beside one machine's in the same run."""
    spark, report = session(), Report()

    def measure(name: str, keys: int, make: Any, batches: int, warm: int = 2, **more: Any) -> None:
        options = {"columns": COLUMNS, "buckets": buckets_of(keys), **more}
        query = partial(keyed.calibrate_stream, controller=controller, **options)
        report(f"{name}, {rule}", keys, *stream(spark, query, make, batches, warm=warm))

    try:
        for rule, controller in RULES.items():
            fleet, work = one_machine(controller, min(KEYS, 100_000))
            report(f"one machine: Fleet.run, {rule}", min(KEYS, 100_000), fleet)
            report(f"one machine: Work.step_many, {rule}", 4000, work)
            for keys, each in ((10_000, 20), (100_000, 4), (1_000_000, 1)):
                if keys <= KEYS:
                    measure("stream", keys, partial(dense, keys, each), 4)
                    report(f"backtest, {rule}", keys, table(spark, controller, keys, max(each, 2)))
            measure("stream, 1 % of keys a batch", KEYS, partial(sparse, KEYS, 0.01), 4)
            keys, columns = min(KEYS, 20_000), replace(COLUMNS, id="id")
            late = partial(delayed, keys, 48)
            name, more = "stream, labels 48 rows late", {"columns": columns, "buckets": 16}
            measure(name, keys, late, 2, warm=5, expire=96, **more)
        figures = stream(spark, one_group_each, partial(dense, 10_000, 20), 1, warm=1)
        report("stream, one group for each key, paper's rule", 10_000, *figures)
    finally:
        spark.stop()
    print(*billion(report.lines), sep="\n")
    print(json.dumps({"spark": report.lines}))
