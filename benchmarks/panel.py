"""Many short series: `setpoint calibrate --id` beside the time of reading the file.

`python -m benchmarks panel` makes 100,000 series of 100 rows as Parquet and as CSV, and says in
seconds of the processor what reading takes and what the whole job does, with its report.
SETPOINT_SERIES makes it smaller or larger.
"""

import json
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

SERIES = int(os.environ.get("SETPOINT_SERIES", 100_000))
_ROWS = 100


def make(path: Path, series: int) -> Path:
    """A file of series whose scales differ by up to a million."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    random = np.random.default_rng(0)
    scale = 10.0 ** random.uniform(-3.0, 3.0, (series, 1))
    middle = scale * np.sin(np.arange(_ROWS) / 5.0)
    y = middle + scale * random.standard_normal((series, _ROWS))
    columns = {"low": middle - scale, "high": middle + scale, "y": y}
    names = np.repeat([f"s{place:06d}" for place in range(series)], _ROWS)
    steps = np.tile(np.arange(_ROWS), series)
    numbers = {name: np.round(values.ravel(), 6) for name, values in columns.items()}
    table = pa.table({"id": names, "t": steps, **numbers})
    (parquet.write_table if path.suffix == ".parquet" else csv.write_csv)(table, path)
    return path


def main() -> None:
    from setpoint.jobs import Columns, calibrate
    from setpoint.jobs.rows import read

    columns = Columns("y", lower="low", upper="high", id="id", time="t")
    found = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        calibrate(make(folder / "first.csv", 20), columns).write(folder / "first")  # compiles
        for suffix in (".parquet", ".csv"):
            path = make(folder / f"panel{suffix}", SERIES)
            began = time.process_time()
            read(path)
            reading = time.process_time() - began
            outcome = calibrate(path, columns)
            outcome.write(folder / suffix[1:])
            whole = time.process_time() - began - reading
            found[suffix[1:]] = {"reading": reading, "whole": whole, "times": whole / reading}
            print(f"{suffix}: reading {reading:.1f} s, all of it {whole:.1f} s, "
                  f"× {whole / reading:.1f}")  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main()
