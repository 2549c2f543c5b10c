"""Queries that are killed: after they go on, every row is there once, with the numbers of `replay`.

A query runs in a process of its own. The test looks at the files of its checkpoint and kills the
whole tree, JVM and Python workers, at chosen moments between the offset, the state, the sink and
the commit of a batch.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from tests.spark import queries
from tests.spark.queries import BATCHES, CONTROLLER, KEYS, STEPS, table, write_batches

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]  # PySpark's own, on pandas 3

ROOT = Path(__file__).resolve().parents[2]


def below(root: int) -> dict[int, str]:
    """The processes below one, and what each was started as."""
    parents, names = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
            names[int(path.parent.name)] = (path.parent / "cmdline").read_text()
        except OSError:
            continue
    tree = {root}
    while more := {number for number, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return {number: names[number] for number in tree - {root} if number in names}


def started(folder: Path, master: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.spark.queries", str(folder), master]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=ROOT, stdout=quiet, stderr=quiet)


def kill(query: subprocess.Popen[bytes]) -> None:
    """Kills a query and everything that it started."""
    for number in [query.pid, *below(query.pid)]:
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            continue
    query.wait()


def wait(query: subprocess.Popen[bytes], moment: Callable[[], bool], seconds: float = 600) -> bool:
    """Waits for a moment; False if the query ended before."""
    until = time.monotonic() + seconds
    while not moment():
        if query.poll() is not None:
            return False
        assert time.monotonic() < until, "the query took too long"
        time.sleep(0.002)
    return True


def offset(folder: Path, batch: int) -> bool:
    return (folder / "checkpoint" / "offsets" / str(batch)).exists()


def state(folder: Path, batch: int, partition: int) -> bool:
    """Whether a partition has committed the state after a batch."""
    where = folder / "checkpoint" / "state" / "0" / str(partition)
    return any(where.glob(f"{batch + 1}*.changelog")) or any(where.glob(f"{batch + 1}*.zip"))


def sink(folder: Path, batch: int) -> bool:
    return (folder / "out" / "_spark_metadata" / str(batch)).exists()


def commit(folder: Path, batch: int) -> bool:
    return (folder / "checkpoint" / "commits" / str(batch)).exists()


MOMENTS: dict[str, Callable[[Path], bool]] = {
    "before anything": lambda folder: (folder / "checkpoint" / "metadata").exists(),
    "first offset": lambda folder: offset(folder, 0),
    "first state": lambda folder: state(folder, 0, 0),
    "last state of the first batch": lambda folder: state(folder, 0, 2),
    "first sink": lambda folder: sink(folder, 0),
    "first commit": lambda folder: commit(folder, 0),
    "second offset": lambda folder: offset(folder, 1),
    "a state of the second batch": lambda folder: state(folder, 1, 1),
    "last state of the third batch": lambda folder: state(folder, 2, 2),
    "last sink": lambda folder: sink(folder, BATCHES - 1),
}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    write_batches(tmp_path / "in", table())
    return tmp_path


def assert_whole(folder: Path) -> None:
    """Every row is there once, with the numbers of one machine."""
    spark = queries.session()
    found = spark.read.parquet(str(folder / "out")).toPandas()
    found = found.sort_values(["hour", "meter"], ignore_index=True)
    columns = table()
    assert len(found) == KEYS * STEPS
    prediction = {"lower": columns["low"], "upper": columns["high"]}
    tape = sp.Tape.from_arrays(prediction, columns["use"], series=columns["meter"])
    trace = sp.replay(CONTROLLER, tape)
    assert np.array_equal(found["meter"], columns["meter"])
    assert np.array_equal(found["lower"], trace.lower)
    assert np.array_equal(found["upper"], trace.upper)
    losses = np.asarray(found["loss"], float)
    assert np.array_equal(losses, trace.losses[0], equal_nan=True)


def test_a_query_killed_at_every_moment_of_a_batch_loses_and_doubles_nothing(rows: Path) -> None:
    kills, between = 0, 0
    for moment in MOMENTS.values():
        query = started(rows, "local[1]")
        try:
            if wait(query, lambda moment=moment: moment(rows)):
                kills += 1
                batch = max((n for n in range(BATCHES) if state(rows, n, 0)), default=-1)
                kill(query)
                between += batch >= 0 and not sink(rows, batch)
        finally:
            kill(query)
    assert kills >= 10
    assert between >= 1, "no kill fell between the state and the sink of a batch"
    last = started(rows, "local[1]")
    assert last.wait() == 0
    assert_whole(rows)


def test_a_query_that_loses_an_executor_goes_on(rows: Path) -> None:
    query = started(rows, "local-cluster[2,1,1024]")
    try:
        assert wait(query, lambda: state(rows, 0, 0))
        executors = [n for n, name in below(query.pid).items() if "CoarseGrainedExecutor" in name]
        assert executors
        os.kill(executors[0], signal.SIGKILL)
        assert query.wait(600) == 0
    finally:
        kill(query)
    assert_whole(rows)


def test_a_batch_that_runs_again_gives_the_same_rows(rows: Path) -> None:
    from setpoint import spark as keyed

    spark, written = queries.session(), dict[int, list[Any]]()

    def take(frame: Any, batch: int) -> None:
        pairs = frame.select("meter", "hour", "lower", "upper", "loss").collect()
        written.setdefault(batch, []).append(sorted(map(str, pairs)))

    for _ in range(2):
        frame = queries.source(spark, rows / "in")
        out = keyed.calibrate_stream(
            frame, CONTROLLER, queries.COLUMNS, buckets=8, checkpoint=str(rows / "checkpoint")
        )
        queries.start(out.writeStream.foreachBatch(take), rows / "checkpoint")
        last = max(written)
        for path in (rows / "checkpoint" / "commits").glob(f"*{last}*"):
            path.unlink()
    assert last == BATCHES - 1
    assert len(written[last]) == 2
    assert written[last][0] == written[last][1]
    shutil.rmtree(rows / "checkpoint")
