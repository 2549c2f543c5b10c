"""From a folder of Parquet to a running query: every meter's forecasts, held at 90 % coverage.

    python examples/spark/meters.py FOLDER

makes a week of forecasts of 2,000 meters in FOLDER/forecasts, a file for each day, and runs a query
over them: sets to FOLDER/sets, its checkpoint in FOLDER/checkpoint. Start it again with more files
and it goes on where it was. Needs Java 17 and `pip install 'setpoint[spark]'`.
"""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import setpoint as sp

METERS, DAYS = 2_000, 7


def write_forecasts(folder: Path) -> None:
    """Forecasts whose errors grow in mid-week, and what came out; a file for each day."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for day in range(DAYS):
        hour, meter = np.divmod(np.arange(24 * METERS), METERS)
        forecast = 10.0 + 3.0 * np.sin(hour / 24.0 * 2.0 * np.pi) + meter % 5
        error = random.normal(size=len(hour)) * (1.0 if day < 3 else 2.5)
        start = np.datetime64("2024-01-01", "us") + np.timedelta64(day, "D")
        times = pa.array(start + hour * np.timedelta64(3600, "s"), pa.timestamp("us", "UTC"))
        columns = {
            "meter": pa.array([f"meter-{number:05}" for number in meter]), "hour": times,
            "low": forecast - 1.0, "high": forecast + 1.0, "use": forecast + error,
        }  # fmt: skip
        pq.write_table(pa.table(columns), folder / f"day-{day}.parquet")


def session() -> Any:
    """A local session with the settings that a query needs."""
    from pyspark.sql import SparkSession

    from setpoint.spark import SETTINGS

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers take this Python too
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "4")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main(folder: Path) -> None:
    """Writes the forecasts if there are none, runs a query, and looks at its state."""
    from setpoint.spark import calibrate_stream, read_state
    from setpoint.tape import Columns

    if not (folder / "forecasts").exists():
        write_forecasts(folder / "forecasts")
    spark = session()
    schema = "meter string, hour timestamp, low double, high double, use double"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    checkpoint = str(folder / "checkpoint")
    sets = calibrate_stream(
        rows.parquet(str(folder / "forecasts")),
        sp.intervals(coverage=0.9),
        Columns("use", "low", "high", series="meter", time="hour"),
        buckets=16,
        checkpoint=checkpoint,
    )
    query = sets.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    query = query.trigger(availableNow=True).start(str(folder / "sets"))
    query.awaitTermination()
    state = read_state(spark, checkpoint)
    state.selectExpr("sum(judged) AS judged", "max(account) AS worst").show()
    state.orderBy("account", ascending=False).show(5)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
