"""Queries to test, and a program that runs one: `python -m tests.spark.queries FOLDER MASTER`."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import setpoint as sp
from setpoint import spark as keyed

KEYS, STEPS, BATCHES = 40, 48, 4
CONTROLLER = sp.intervals()
SCHEMA = (
    "meter bigint, name string, hour timestamp, number bigint, low double, high double, use double"
)
COLUMNS = keyed.Columns("use", "low", "high", series="meter", time="hour")


def session(master: str = "local[2]") -> Any:
    """A small session."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("setpoint")
    settings = {
        "spark.driver.memory": "1g", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "3",
        # Short runs: what makes long ones fast only costs here.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.session.timeZone": "UTC", **keyed.SETTINGS,
    }  # fmt: skip
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def table(seed: int = 0) -> dict[str, Any]:
    """Rows of all keys in the order of time; a few labels are not there."""
    random = np.random.default_rng(seed)
    time, key = np.divmod(np.arange(KEYS * STEPS), KEYS)
    centre = random.normal(size=len(time))
    y = centre + random.normal(size=len(time)) * (1.0 + time / 16.0)
    y[random.random(len(y)) < 0.03] = np.nan
    return {
        "meter": key, "name": np.array([f"plant/{k}" for k in key]),
        "hour": np.datetime64("2024-01-01", "us") + time * np.timedelta64(3600, "s"),
        "number": time, "low": centre - 1.0, "high": centre + 1.0, "use": y,
    }  # fmt: skip


def taken(columns: dict[str, Any], rows: Any) -> dict[str, Any]:
    return {name: values[rows] for name, values in columns.items()}


def write(folder: Path, number: int, columns: dict[str, Any]) -> None:
    """A file of a batch; NaN is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    types = {"hour": pa.timestamp("us", "UTC")}
    arrays = {
        name: pa.array(values, types.get(name), from_pandas=True)
        for name, values in columns.items()
    }
    path = folder / f"{number}.parquet"
    pq.write_table(pa.table(arrays), path)
    os.utime(path, (1_000_000 + number,) * 2)


def write_batches(folder: Path, columns: dict[str, Any]) -> None:
    """One file for each span of time, its rows out of order."""
    hours = (columns["hour"] - np.datetime64("2024-01-01")) // np.timedelta64(3600, "s")
    part = hours * BATCHES // STEPS
    for number in range(BATCHES):
        rows = np.flatnonzero(part == number)
        write(folder, number, taken(columns, np.random.default_rng(number).permutation(rows)))


def source(spark: Any, folder: Path, schema: str = SCHEMA) -> Any:
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder))


def run(out: Any, folder: Path, name: str = "") -> Any:
    """Runs a query over what there is, to files."""
    writer = out.writeStream.format("parquet").option("path", str(folder / f"out{name}"))
    return start(writer, folder / f"checkpoint{name}")


def start(writer: Any, checkpoint: Path) -> Any:
    """Starts a query, and waits until it took what there is.

    PySpark gives a worker ten seconds to start, too few on a busy machine: then it goes on.
    """
    from pyspark.errors import StreamingQueryException

    writer = writer.trigger(availableNow=True).option("checkpointLocation", str(checkpoint))
    for left in reversed(range(5)):
        query = writer.start()
        try:
            query.awaitTermination()
            return query
        except StreamingQueryException as error:
            if not left or "failed to connect back" not in str(error):
                raise
    return None


def main(folder: Path, master: str) -> None:
    spark = session(master)
    frame = source(spark, folder / "in")
    out = keyed.calibrate_stream(
        frame, CONTROLLER, COLUMNS, buckets=8, checkpoint=str(folder / "checkpoint")
    )
    run(out, folder)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
