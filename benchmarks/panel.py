"""Many short series: `setpoint calibrate --series` beside the time of reading the file.

`python -m benchmarks panel` makes 100,000 series of 100 rows as Parquet and as CSV, and says in
seconds of the processor what reading takes, by setpoint and by pandas, and what the job does: the
sets of every row, and then the metrics, the rows and the report on disk.
SETPOINT_SERIES makes it smaller or larger.
"""

import json
import os
import time
from itertools import pairwise
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
    import pandas

    from setpoint.jobs import calibrate
    from setpoint.tape import Columns
    from setpoint.tape.rows import read

    columns = Columns("y", lower="low", upper="high", series="id", time="t")
    found = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        calibrate(make(folder / "first.csv", 20), columns).write(folder / "first")  # compiles
        for suffix in (".parquet", ".csv"):
            path = make(folder / f"panel{suffix}", SERIES)
            marks = [time.process_time()]
            read(path)
            marks.append(time.process_time())
            (pandas.read_parquet if suffix == ".parquet" else pandas.read_csv)(path)
            marks.append(time.process_time())
            outcome = calibrate(path, columns)
            marks.append(time.process_time())
            outcome.write(folder / suffix[1:])
            marks.append(time.process_time())
            reading, by_pandas, sets, written = (b - a for a, b in pairwise(marks))
            found[suffix[1:]] = {
                "reading": reading, "pandas": by_pandas, "sets": sets, "written": written,
                "sets / reading": sets / reading, "sets / pandas": sets / by_pandas,
                "all / reading": (sets + written) / reading,
                "all / pandas": (sets + written) / by_pandas,
            }  # fmt: skip
            print(f"{suffix}: reading {reading:.1f} s, pandas {by_pandas:.1f} s, sets {sets:.1f} s "
                  f"(× {sets / reading:.1f}, × {sets / by_pandas:.1f}), metrics, rows and report "
                  f"{written:.1f} s (all × {(sets + written) / reading:.1f}, "
                  f"× {(sets + written) / by_pandas:.1f})")  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main()
