"""Keyed streams on Spark: rows for each second of processor time of the whole process tree.

Wall time says little on a busy machine, so every figure counts the processor time of
Python, the JVM and its Python workers. The first batch of a query, which starts the workers and
compiles, is left out.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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
RULES = {"paper's rule": PAPER, "sp.intervals": sp.intervals()}
SCHEMA = "key bigint, time bigint, id bigint, lower double, upper double, y double"
COLUMNS: dict[str, Any] = {
    "key": "key",
    "time": "time",
    "y": "y",
    "lower": "lower",
    "upper": "upper",
}


def session(**settings: str) -> Any:
    """A local session of two cores."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]")
    usual = {
        "spark.driver.memory": "3g", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "4",
    }  # fmt: skip
    for name, value in {**usual, **keyed.SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def processor_time() -> float:
    """Seconds of processor time of this process and all below it, ended ones included."""
    total, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        number = int(path.parent.name)
        parents[number], total[number] = int(fields[1]), sum(map(int, fields[11:15]))
    tree = {os.getpid()}
    while more := {number for number, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return sum(total.get(number, 0) for number in tree) / os.sysconf("SC_CLK_TCK")


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
    parts = []
    for time in range(batch * 12, batch * 12 + 12):
        made, before = (
            rows(np.arange(keys), np.full(keys, time), seed)
            for seed in (time, time - delay + 10**6)
        )
        made = {**made, "id": np.full(keys, time), "y": np.full(keys, np.nan)}
        nothing = np.full(keys, np.nan)
        label = {**before, "id": np.full(keys, time - delay), "lower": nothing, "upper": nothing}
        parts += [made] if time < delay else [made, label]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def stream(
    spark: Any, controller: sp.Controller, make: Any, batches: int, *, warm: int = 1, **options: Any
) -> tuple[float, float, float]:
    """Rows per second of processor time, bytes of state a key, seconds of wall time a batch."""
    with scratch() as folder:
        for number in range(warm):
            write(folder / "in", number, make(number))

        def run() -> Any:
            source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
            frame = source.parquet(str(folder / "in"))
            out = keyed.calibrate_stream(frame, controller, **{**COLUMNS, **options})
            query = out.writeStream.format("parquet").trigger(availableNow=True)
            query = query.option("checkpointLocation", str(folder / "checkpoint"))
            query = query.start(str(folder / "out"))
            query.awaitTermination()
            return query

        run()
        count = sum(write(folder / "in", n, make(n)) for n in range(warm, warm + batches))
        before = processor_time()
        query = run()
        spent = processor_time() - before
        wall = [progress["batchDuration"] for progress in query.recentProgress]
        blobs = spark.read.format("statestore").option("stateVarName", "bucket")
        from pyspark.sql import functions as fn

        size = blobs.load(str(folder / "checkpoint")).select(fn.sum(fn.length("value.blob")))
        return count / spent, size.first()[0], float(np.median(wall)) / 1000.0


@contextmanager
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="setpoint-spark-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def report(name: str, keys: int, figures: tuple[float, float, float]) -> None:
    rate, size, wall = figures
    print(f"{name:<44}{keys:>10,}{rate:>14,.0f}{size / keys:>10,.0f}{wall:>10.1f}", flush=True)


def main() -> None:
    spark = session()
    head = ("", "keys", "rows/CPU-s", "bytes/key", "s/batch")
    print(f"{head[0]:<44}{head[1]:>10}{head[2]:>14}{head[3]:>10}{head[4]:>10}")
    try:
        for rule, controller in RULES.items():
            for keys, each in ((10_000, 20), (100_000, 4), (1_000_000, 1)):
                make = partial(dense, keys, each)
                figures = stream(spark, controller, make, 3, buckets=max(16, keys // 4000))
                report(f"stream, {rule}", keys, figures)
    finally:
        spark.stop()
