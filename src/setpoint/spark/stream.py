"""Structured streams of many keys: predictions and labels in, sets and losses out.

Rows go to hash buckets; each bucket is one state of Spark's store and one call of `Work.step_many`.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import numpy as np

from setpoint.bulk.fleet import Fleet
from setpoint.controller import Controller, matching
from setpoint.errors import InputError, StateError
from setpoint.sets.family import InParts
from setpoint.spark.batch import NEVER, STATUSES
from setpoint.spark.buckets import header_of
from setpoint.spark.paths import PathWork
from setpoint.spark.rows import Rows, grouped, loss_names
from setpoint.spark.work import Work, check_header
from setpoint.state import State
from setpoint.stream import Stream
from setpoint.tape import Columns

Frame = Any
METRICS = "setpoint"
"""The name under which the counts of a batch lie in the progress of a query."""

SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""What a session needs before a query starts: RocksDB, and checkpoints of what changed."""

_BLOCKS = ("state", "annex", "waiting", "early", "closed", "groups")


def calibrate_stream(
    df: Frame,
    controller: Controller,
    columns: Columns,
    *,
    checkpoint: str,
    labels: Frame = None,
    buckets: int = 256,
    late: str = "refuse",
    expire: timedelta | int | None = None,
    idle: timedelta | int | None = None,
    initial: str | Fleet | Mapping[Any, State | Stream] | None = None,
) -> Frame:
    """The sets and losses of a streaming data frame, each key held by itself.

    Of paths a row is one step, `horizon` says which, and time when the path was made: rows come
    back once all forecasts of a path are there, and labels find it by key, time and horizon.

    Every row comes back with its columns, the set that was shown (`lower`, `upper`, `lam`),
    `covered`, `loss`, `made` (the time of its prediction) and `status`, one of `STATUSES`. A
    column of yours with one of these names gives way. A row that is late, a duplicate, expired or
    unknown changed nothing and has no set.

    Parameters
    ----------
    df
        A streaming data frame of rows, or of predictions and labels as they come.
    controller
        Any that a `Fleet` runs.
    columns
        Which column is what.
    checkpoint
        The checkpoint that the query will have. What is fixed is kept in it, and another
        controller or number of buckets is refused here, before the query starts.
    labels
        Another streaming data frame with the columns of key, time, id and y, if labels are there.
    buckets
        How many buckets keys are spread over. Fixed when a query begins.
    late
        What becomes of a prediction older than the last one of its key: "refuse", or, with `id`,
        "accept" as the newest.
    expire
        How long a prediction waits for its label; needed with `id`. A time span where time is a
        timestamp, else a whole number in its units.
    idle
        A key without a prediction for longer than this is forgotten.
    initial
        Where to begin: the checkpoint of another query, with all that waits there, a fleet, or
        states or streams by key; used by the first batch of a new checkpoint only.
    """
    rows = Rows.of(df, controller, columns)
    if not df.isStreaming:
        raise InputError("calibrate_stream takes a streaming data frame; for tables use backtest")
    if columns.known is not None:
        raise InputError("known is for tables: in a stream labels come by themselves, with id")
    if columns.id is not None and expire is None:
        raise InputError("with id, expire must say how long a prediction waits for its label")
    if columns.id is None and labels is not None and rows.step is None:
        raise InputError("labels apart from predictions need id, which says what they are about")
    if labels is not None:
        rows.check_labels(labels)
    if columns.id is None and late == "accept":
        raise InputError("late='accept' needs id: without it a row that comes again counts twice")
    work = work_of(
        controller, buckets, late, rows.span(expire, "expire"), rows.span(idle, "idle"), rows.text,
        len(rows.groups),
    )  # fmt: skip
    spark = df.sparkSession
    header = first_header(spark, checkpoint)
    if header is not None:
        check_header(header, work.header)
    events = rows.events(df)
    if labels is not None:
        events = events.union(rows.events(labels, labels=True))
    begin = None
    if initial is not None and rows.step is not None:
        raise InputError("paths begin anew: leave out initial")
    if initial is not None:
        begin = rows.placed(_initial(spark, rows, work, initial), buckets).groupBy("bucket")
    out = rows.packed(events, buckets).transformWithStateInPandas(
        Processor(work, rows), rows.schema, "Append", "None", begin
    )
    return rows.results(out).observe(METRICS, *_counts(rows))


def work_of(controller: Controller, *options: Any, **named: Any) -> Any:
    """The work that a controller needs: that of paths, or that of what a fleet runs compiled."""
    kind = PathWork if isinstance(controller.sets, InParts) else Work
    return kind(controller, *options, **named)


class Processor:
    """What Spark calls with the rows of a bucket: a `StatefulProcessor` of PySpark."""

    def __init__(self, work: Any, rows: Rows) -> None:
        self.work, self.rows = work, rows

    def init(self, handle: Any) -> None:
        """Asks for the state of a bucket: one value of bytes."""
        self._state = handle.getValueState("bucket", "blob BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802
        """Takes a bucket over a batch."""
        import pandas as pd

        frames, before = list(rows), self._state.get()
        events = self.rows.unpacked(frames[0] if len(frames) == 1 else pd.concat(frames))
        blob, outputs = self.work.step_many(before and bytes(before[0]), self.rows.columns(events))
        self._state.update((blob,))
        yield self.rows.answer(events, outputs)

    def handleInitialState(self, key: Any, frame: Any, timerValues: Any) -> None:  # noqa: N802
        """Begins a bucket with given streams."""
        before = self._state.get()
        bucket = self.work.unpack(before and bytes(before[0]))
        keys = frame["key"].to_numpy().astype(np.int64 if self.rows.is_whole else object)
        clock, blocks = int(frame["clock"].max()), (frame[name].tolist() for name in _BLOCKS)
        self._state.update((self.work.pack(bucket.joined(keys, clock, *blocks)),))

    def handleExpiredTimer(  # noqa: N802
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Any]:
        """There are no timers."""
        return iter(())

    def close(self) -> None:
        """Nothing is held between batches."""


def _counts(rows: Rows) -> list[Any]:
    """What is counted of a batch, for `listener`."""
    from pyspark.sql import functions as fn

    names = loss_names(rows.risks)
    sums = [fn.coalesce(fn.sum(name), fn.lit(0.0)) for name in names]
    status = fn.col("status")
    width = fn.col("size") if rows.classes else fn.col("upper") - fn.col("lower")
    judged = fn.col(names[0]).isNotNull()
    finite = (status == "shown") & (fn.abs(width) < float("inf"))
    return [
        *(fn.count_if(status == name).alias(name) for name in STATUSES),
        fn.count(names[0]).alias("judged"),
        *(loss.alias(f"loss{risk}") for risk, loss in enumerate(sums)),
        fn.count_if(~fn.col("covered")).alias("missed"),
        fn.count_if(judged & (fn.col("lam") == float("inf"))).alias("full"),
        fn.count_if(judged & (fn.col("lam") == -float("inf"))).alias("empty"),
        fn.count_if(finite).alias("finite"),
        fn.coalesce(fn.sum(fn.when(finite, width)), fn.lit(0.0)).alias("width"),
    ]


def _initial(spark: Any, rows: Rows, work: Work, initial: Any) -> Frame:
    """The streams to begin with, one row of bytes for each key."""
    schema = f"clock bigint, {', '.join(f'{name} binary' for name in _BLOCKS)}"
    if isinstance(initial, str):
        header = first_header(spark, initial)
        if header is None:
            raise StateError(f"there is no state in {initial}: no batch has ended yet")
        check_header({**header, "buckets": work.buckets}, work.header)
        source = Work(work.controller, header["buckets"], about=work.about, groups=work.groups)

        def keys(batches: Iterable[Any]) -> Iterator[Any]:
            import pyarrow as pa

            for batch in batches:
                for blob in batch["blob"]:
                    bucket = source.unpack(blob.as_py())
                    blocks = [grouped(*block) for block in bucket.blocks()]
                    clock = np.full(len(bucket.keys), bucket.clock)
                    parts = [pa.array(bucket.keys), pa.array(clock), *blocks]
                    yield pa.RecordBatch.from_arrays(parts, ["key", "clock", *_BLOCKS])

        kind = "bigint" if rows.is_whole else "string"
        return state_rows(spark, initial).mapInArrow(keys, f"key {kind}, {schema}")
    if isinstance(initial, Fleet):
        _refuse_waiting("fleet", sum(map(len, initial.pending.values())))
        initial = {key: initial.state(key) for key in initial.ids}
    if not isinstance(initial, Mapping):
        raise InputError(f"initial must be a checkpoint, a Fleet or states by key, got {initial!r}")
    listed = []
    for key, state in initial.items():
        if isinstance(state, Stream):
            _refuse_waiting(f"stream {key!r}", len(state.pending))
        fitted = matching(work.controller, state.state if isinstance(state, Stream) else state)
        numbers = np.array(work.layout.pack(fitted), "<f8")
        block = numbers.tobytes() + NEVER.to_bytes(8, "little", signed=True)
        parts = key if isinstance(key, tuple) else (key,)
        annex = np.array(fitted.annex, "<f8").tobytes()
        listed.append((*parts, NEVER, block, annex, b"", b"", b"", work.group_block(fitted)))
    names = "".join(f"`{name}` {kind}, " for name, kind in rows.key)
    frame = spark.createDataFrame(listed, names + schema)
    return frame.select(rows.code().alias("key"), "clock", *_BLOCKS)


def _refuse_waiting(what: str, waiting: int) -> None:
    if waiting:
        raise InputError(
            f"the {what} awaits {waiting:,} labels, and a query cannot take over predictions "
            "without times: answer or drop them before"
        )


def state_rows(spark: Any, checkpoint: str) -> Frame:
    """The buckets of a checkpoint as Spark's store has them: a column `blob` of bytes."""
    reader = spark.read.format("statestore").option("stateVarName", "bucket")
    return reader.load(checkpoint).select("value.blob")


def first_header(spark: Any, checkpoint: str) -> dict[str, Any] | None:
    """What the first bucket of a checkpoint says of itself; None if there is none yet."""
    from pyspark.errors import PySparkException

    try:
        first = state_rows(spark, checkpoint).head(1)
    except PySparkException as error:
        if (error.getCondition() or "").startswith(("STDS", "PATH_NOT_FOUND")):
            return None
        raise
    return header_of(bytes(first[0].blob)) if first else None
