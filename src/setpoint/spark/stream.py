"""Structured streams of many keys: predictions and labels in, sets and losses out.

Rows go to hash buckets; each bucket is one state of Spark's store and one call of `Work.step_many`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from setpoint._check import whole
from setpoint.bulk.vectors import pack_rest
from setpoint.controller import Controller, State, matching
from setpoint.errors import InputError
from setpoint.spark.buckets import header_of
from setpoint.spark.work import NEVER, STATUSES, Work, check_header, form_of

__all__ = [
    "METRICS",
    "SETTINGS",
    "Processor",
    "Rows",
    "calibrate_stream",
    "first_header",
    "state_rows",
]

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

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_WHOLE, "float", "double", "decimal")
_TIMES = ("timestamp", "timestamp_ntz", "date")
_NAMES = ("lower", "upper", "lam", "loss", "covered", "made", "status")
_NTZ = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


def calibrate_stream(
    df: Frame,
    controller: Controller,
    *,
    key: str | Sequence[str],
    time: str,
    y: str,
    lower: str | None = None,
    upper: str | None = None,
    point: str | None = None,
    spread: Sequence[str] = (),
    phase: str | None = None,
    id: str | None = None,
    labels: Frame = None,
    buckets: int = 256,
    late: str = "refuse",
    expire: timedelta | int | None = None,
    idle: timedelta | int | None = None,
    checkpoint: str | None = None,
    initial: Mapping[Any, State] | Frame = None,
) -> Frame:
    """The sets and losses of a streaming data frame, each key held by itself.

    Every row comes back with its key, time and id, the set that was shown (`lower`, `upper`,
    `lam`), `y`, `covered`, `loss`, `made` (the time of its prediction) and `status`, one of
    `STATUSES`. A row that is late, a duplicate, expired or unknown changed nothing and has no set.

    Parameters
    ----------
    df
        A streaming data frame of rows, or of predictions and labels as they come.
    controller
        Any that a `Fleet` runs.
    key
        The column, or columns, that say which series a row belongs to.
    time
        When it was: a timestamp, a date or a whole number. In a batch, rows run in its order.
    y
        The column of labels. Without `id`, null says that there is none.
    lower, upper, point, spread
        The columns of the prediction, as in `jobs.Columns`.
    phase
        The column of the phase, for families with a season.
    id
        Which prediction of its key a row is about. With it labels may come apart from their
        predictions: a row without prediction is a label, one without y waits for it, and one
        without either says that no label will come.
    labels
        Another streaming data frame with the columns of key, time, id and y, if labels are there.
    buckets
        How many buckets keys are spread over. Fixed when a query begins.
    late
        What becomes of a prediction older than the last one of its key: "refuse" or "accept".
    expire
        How long a prediction waits for its label; needed with `id`. A time span where time is a
        timestamp, else a whole number in its units.
    idle
        A key without a prediction for longer than this is forgotten.
    checkpoint
        The checkpoint that the query will have. What is fixed is kept in it, and another
        controller or number of buckets is refused here, before the query starts.
    initial
        States to begin with, by key, or a table of `read_state(…, numbers=True)`; used by the
        first batch of a new checkpoint only.
    """
    rows = Rows.of(
        df, controller, key=key, time=time, y=y, lower=lower, upper=upper, point=point,
        spread=spread, phase=phase, id=id,
    )  # fmt: skip
    if not df.isStreaming:
        raise InputError("calibrate_stream takes a streaming data frame; for tables use backtest")
    if id is not None and expire is None:
        raise InputError("with id, expire must say how long a prediction waits for its label")
    if id is None and labels is not None:
        raise InputError("labels apart from predictions need id, which says what they are about")
    work = Work(
        controller, buckets, late, rows.span(expire, "expire"), rows.span(idle, "idle"), rows.text
    )
    spark = df.sparkSession
    header = None if checkpoint is None else first_header(spark, checkpoint)
    if header is not None:
        check_header(header, work.header)
    events = rows.events(df) if labels is None else rows.events(df).union(rows.labels(labels))
    begin = None
    if initial is not None:
        begin = rows.placed(_initial(spark, rows, work, initial), buckets).groupBy("bucket")
    out = rows.placed(rows.checked(events), buckets).groupBy("bucket")
    out = out.transformWithStateInPandas(
        Processor(work, rows), rows.schema, "Append", "None", begin
    )
    return rows.results(out).observe(METRICS, *_counts(rows))


@dataclass(frozen=True)
class Rows:
    """Which column of a data frame is what, and how it goes to Python and back.

    In Python keys are whole numbers or texts: keys of other types, and of several columns, become
    JSON. Times are whole numbers: microseconds, days, or what they were. `id` and `key` have their
    types beside their names.
    """

    key: tuple[tuple[str, str], ...]
    time: tuple[str, str]
    y: str
    id: tuple[str, str] | None
    prediction: tuple[tuple[str, str], ...]
    risks: int

    @classmethod
    def of(
        cls,
        df: Frame,
        controller: Controller,
        *,
        key: str | Sequence[str],
        time: str,
        y: str,
        lower: str | None,
        upper: str | None,
        point: str | None,
        spread: Sequence[str],
        phase: str | None,
        id: str | None,
    ) -> "Rows":
        """The columns of a data frame; raises an error where one is not there or of no use."""
        if not isinstance(controller, Controller):
            raise InputError(f"calibration needs a Controller, got {controller!r}")
        types = dict(df.dtypes)
        ends = {"lower": point or lower, "upper": point or upper, "phase": phase}
        given = {name: column for name, column in ends.items() if column is not None}
        given |= dict(zip(("centre", "low", "high"), spread, strict=False))
        form = form_of(controller, given)
        if set(given) != set(form) or (point and (lower or upper)):
            raise InputError(f"give one kind of prediction, {', '.join(form)}, got {given}")
        keys = (key,) if isinstance(key, str) else tuple(key)
        names = (*keys, time) if id is None else (*keys, time, id)
        if not keys or len({*names, y}) < len(names) + 1:
            raise InputError(f"key, time, id and y must be different columns, got {(*names, y)}")
        for name in (*names, y, *given.values()):
            if name not in types:
                raise InputError(f"there is no column {name!r}; there are {', '.join(types)}")
        for name in (*names, y):
            if name in _NAMES:
                raise InputError(f"a column called {name!r} is in the results: rename yours")
        _check_types(types, (y, *given.values()), _NUMBERS, "numbers")
        _check_types(types, (time,), (*_TIMES, *_WHOLE), "timestamps, dates or whole numbers")
        simple = (*_NUMBERS, *_TIMES, "string", "boolean", "binary", "char", "varchar")
        _check_types(types, [name for name in names if name != time], simple, "plain values")
        return cls(
            tuple((name, types[name]) for name in keys),
            (time, types[time]),
            y,
            None if id is None else (id, types[id]),
            tuple((name, given[name]) for name in form),
            len(controller.risks),
        )

    @property
    def text(self) -> str:
        """What the state depends on: the types of keys, times and ids."""
        return json.dumps({"key": self.key, "time": self.time, "id": self.id and self.id[1]})

    @property
    def is_whole(self) -> bool:
        """Whether keys are whole numbers in Python."""
        return len(self.key) == 1 and self.key[0][1] in _WHOLE

    @property
    def coded(self) -> bool:
        """Whether ids go to Python as themselves and, beside it, as whole numbers."""
        return self.id is not None and self.id[1] not in _WHOLE

    @property
    def schema(self) -> str:
        """What comes back from Python."""
        id = "" if self.id is None else f", id {self.id[1] if self.coded else 'bigint'}"
        losses = "".join(f", loss{risk} double" for risk in range(self.risks))
        return (
            f"key {'bigint' if self.is_whole else 'string'}, time bigint{id}, y double, "
            f"lower double, upper double, lam double, made bigint, status tinyint{losses}"
        )

    def span(self, value: Any, name: str) -> int | None:
        """A length of time in the units of Python."""
        if value is None:
            return None
        if not self.time[1].startswith("timestamp"):
            return whole(value, name, 1)
        if not isinstance(value, timedelta):
            raise InputError(f"{name} must be a timedelta, as time is a timestamp; got {value!r}")
        return whole(value // timedelta(microseconds=1), name, 1)

    # To Python

    def events(self, df: Frame) -> Frame:
        """Rows as Python takes them."""
        from pyspark.sql import functions as fn

        columns = [fn.col(f"`{column}`").cast("double") for _, column in self.prediction]
        return self._plain(df, [*columns, fn.col(f"`{self.y}`").cast("double")])

    def labels(self, df: Frame) -> Frame:
        """Labels that come apart, as Python takes them."""
        from pyspark.sql import functions as fn

        absent = [fn.lit(None).cast("double") for _ in self.prediction]
        return self._plain(df, [*absent, fn.col(f"`{self.y}`").cast("double")])

    def _plain(self, df: Frame, values: list[Any]) -> Frame:
        from pyspark.sql import functions as fn

        names = [*(f"p{place}" for place in range(len(self.prediction))), "y"]
        columns = [self.code().alias("key"), self.whole_time().alias("time")]
        columns += [value.alias(name) for name, value in zip(names, values, strict=True)]
        if self.id is not None:
            id = fn.col(f"`{self.id[0]}`")
            columns += [id.alias("id")] if self.coded else [id.cast("bigint").alias("id")]
            columns += [fn.xxhash64(id).alias("code")] if self.coded else []
        return df.select(*columns)

    def code(self) -> Any:
        """The key as one column, null if any part of it is."""
        from pyspark.sql import functions as fn

        columns = [fn.col(f"`{name}`") for name, _ in self.key]
        if self.is_whole:
            return columns[0].cast("bigint")
        if len(columns) == 1 and self.key[0][1] == "string":
            return columns[0]
        texts = [
            fn.base64(column) if kind == "binary" else column.cast("string")
            for column, (_, kind) in zip(columns, self.key, strict=True)
        ]
        known = fn.lit(True)
        for column in columns:
            known = known & column.isNotNull()
        return fn.when(known, fn.to_json(fn.array(*texts)))

    def whole_time(self, column: str | None = None) -> Any:
        """A time as a whole number."""
        from pyspark.sql import functions as fn

        name, kind = f"`{column or self.time[0]}`", self.time[1]
        if kind == "timestamp_ntz":
            return fn.expr(f"timestampdiff(MICROSECOND, {_NTZ}, {name})")
        how = {"timestamp": fn.unix_micros, "date": fn.unix_date}.get(kind)
        return fn.col(name).cast("bigint") if how is None else how(fn.col(name)).cast("bigint")

    def checked(self, events: Frame) -> Frame:
        """The events; one that no stream could take fails, before anything is shuffled."""
        from functools import reduce
        from operator import and_, or_

        from pyspark.sql import functions as fn

        key, y = fn.col("key"), fn.col("y")
        columns = [fn.col(f"p{place}") for place in range(len(self.prediction))]
        given = ", ".join(dict.fromkeys(column for _, column in self.prediction))
        nothing = reduce(and_, [column.isNull() for column in columns])
        some = reduce(or_, [column.isNull() for column in columns])
        reasons = {
            f"{', '.join(name for name, _ in self.key)} must not be null in a key": key.isNull(),
            f"{self.time[0]} must not be null": fn.col("time").isNull(),
            f"{given} must not be NaN": reduce(or_, [fn.isnan(column) for column in columns]),
            f"{self.y} must be finite": fn.abs(y) == fn.lit(float("inf")),
        }
        if self.id is None:
            reasons[f"{given} must not be null"] = some
        else:
            reasons[f"{self.id[0]} must not be null"] = fn.col("id").isNull()
            reasons[f"{given} must be null together"] = some & ~nothing
        wrong: Any = fn
        for reason, is_so in reasons.items():
            told = fn.concat(fn.lit("setpoint: key "), key.cast("string"), fn.lit(f": {reason}"))
            told = fn.coalesce(told, fn.lit(f"setpoint: {reason}"))
            wrong = wrong.when(is_so, fn.raise_error(told))
        return events.withColumn("key", wrong.otherwise(key))

    def placed(self, frame: Frame, buckets: int) -> Frame:
        """Rows with the bucket of their key."""
        from pyspark.sql import functions as fn

        return frame.withColumn("bucket", fn.pmod(fn.xxhash64("key"), fn.lit(buckets)).cast("int"))

    def columns(self, frame: Any) -> dict[str, Any]:
        """The columns of a frame of Python, for `Work.step_many`."""
        named = {name: frame[f"p{place}"] for place, (name, _) in enumerate(self.prediction)}
        named |= {name: frame[name] for name in ("key", "time", "y")}
        if self.id is not None:
            named["id"] = frame["code" if self.coded else "id"]
        return {name: values.to_numpy() for name, values in named.items()}

    def answer(self, frame: Any, outputs: Mapping[str, Any]) -> Any:
        """What became of a frame, as `schema` has it."""
        import pandas as pd

        names = ["key", "time", "y"] if self.id is None else ["key", "time", "id", "y"]
        results = {name: frame[name].to_numpy() for name in names}
        results |= {name: outputs[name] for name in ("lower", "upper", "lam", "made", "status")}
        results |= {f"loss{risk}": losses for risk, losses in enumerate(outputs["loss"])}
        return pd.DataFrame(results)

    # From Python

    def key_columns(self) -> list[Any]:
        """The columns of the key as they were."""
        from pyspark.sql import functions as fn

        key = fn.col("key")
        if self.is_whole or (len(self.key) == 1 and self.key[0][1] == "string"):
            return [key.cast(self.key[0][1]).alias(self.key[0][0])]
        texts = fn.from_json(key, "array<string>")
        return [
            (fn.unbase64(texts[place]) if kind == "binary" else texts[place].cast(kind)).alias(name)
            for place, (name, kind) in enumerate(self.key)
        ]

    def time_column(self, name: str, alias: str) -> Any:
        """A time as it was."""
        from pyspark.sql import functions as fn

        kind = self.time[1]
        if kind == "timestamp_ntz":
            return fn.expr(f"timestampadd(MICROSECOND, {name}, {_NTZ})").alias(alias)
        how = {"timestamp": fn.timestamp_micros, "date": fn.date_from_unix_date}.get(kind)
        column = fn.col(name)
        back = (
            column.cast(kind)
            if how is None
            else how(column.cast("int" if kind == "date" else "bigint"))
        )
        return back.alias(alias)

    def results(self, out: Frame) -> Frame:
        """What came back from Python, with the names and types of the user."""
        from pyspark.sql import functions as fn

        y, lower, upper = (fn.col(name) for name in ("y", "lower", "upper"))
        status = fn.element_at(fn.array(*map(fn.lit, STATUSES)), fn.col("status").cast("int") + 1)
        judged = y.isNotNull() & lower.isNotNull()
        losses = [fn.col(f"loss{risk}") for risk in range(self.risks)]
        names = ["loss"] if self.risks == 1 else [f"loss_{risk}" for risk in range(self.risks)]
        return out.select(
            *self.key_columns(),
            self.time_column("time", self.time[0]),
            *([] if self.id is None else [fn.col("id").cast(self.id[1]).alias(self.id[0])]),
            lower, upper, fn.col("lam"), y.alias(self.y),
            fn.when(judged, (lower <= y) & (y <= upper)).alias("covered"),
            *(loss.alias(name) for loss, name in zip(losses, names, strict=True)),
            self.time_column("made", "made"),
            status.alias("status"),
        )  # fmt: skip


def _check_types(
    types: Mapping[str, str], names: Iterable[str], allowed: Sequence[str], what: str
) -> None:
    for name in names:
        if types[name].partition("(")[0] not in allowed:
            raise InputError(f"the column {name!r} must hold {what}, got {types[name]}")


class Processor:
    """What Spark calls with the rows of a bucket: a `StatefulProcessor` of PySpark."""

    def __init__(self, work: Work, rows: Rows) -> None:
        self.work, self.rows = work, rows

    def init(self, handle: Any) -> None:
        """Asks for the state of a bucket: one value of bytes."""
        self._state = handle.getValueState("bucket", "blob BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802
        """Takes a bucket over a batch."""
        import pandas as pd

        frames = list(rows)
        frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
        before = self._state.get()
        blob, outputs = self.work.step_many(before and bytes(before[0]), self.rows.columns(frame))
        self._state.update((blob,))
        yield self.rows.answer(frame, outputs)

    def handleInitialState(self, key: Any, frame: Any, timerValues: Any) -> None:  # noqa: N802
        """Begins a bucket with given states."""
        before = self._state.get()
        bucket = self.work.unpack(before and bytes(before[0]))
        keys = frame["key"].to_numpy()
        keys = keys.astype(np.int64 if self.rows.is_whole else object)
        stored = bucket.keys if len(bucket.keys) else bucket.keys.astype(keys.dtype)
        bucket.keys = np.append(stored, keys)
        bucket.vectors, bucket.rest = (
            np.hstack([old, np.array(frame[name].tolist(), np.float64).reshape(-1, len(old)).T])
            for name, old in (("vectors", bucket.vectors), ("rest", bucket.rest))
        )
        bucket.last = np.append(bucket.last, frame["last"].to_numpy().astype(np.int64))
        self._state.update((self.work.pack(bucket),))

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

    loss = fn.col("loss" if rows.risks == 1 else "loss_0")
    status, width = fn.col("status"), fn.col("upper") - fn.col("lower")
    finite = (status == "shown") & (fn.abs(width) < float("inf"))
    return [
        *(fn.count_if(status == name).alias(name) for name in STATUSES),
        fn.count(loss).alias("judged"),
        fn.coalesce(fn.sum(loss), fn.lit(0.0)).alias("loss"),
        fn.count_if(~fn.col("covered")).alias("missed"),
        fn.count_if(fn.col("lam") == float("inf")).alias("full"),
        fn.count_if(fn.col("lam") == -float("inf")).alias("empty"),
        fn.count_if(finite).alias("finite"),
        fn.coalesce(fn.sum(fn.when(finite, width)), fn.lit(0.0)).alias("width"),
    ]


def _initial(spark: Any, rows: Rows, work: Work, initial: Any) -> Frame:
    """The states to begin with, one row for each key."""
    from pyspark.sql import functions as fn

    if not isinstance(initial, Mapping):
        last = fn.coalesce(rows.whole_time("last"), fn.lit(NEVER)).alias("last")
        numbers = [fn.col("vectors"), fn.col("rest")]
        return initial.where("risk = 0").select(rows.code().alias("key"), *numbers, last)
    listed = []
    for key, state in initial.items():
        fitted = matching(work.controller, state)
        packed = work.layout.pack(fitted), pack_rest(fitted)
        parts = key if isinstance(key, tuple) else (key,)
        listed.append((*parts, *([float(v) for v in numbers] for numbers in packed), NEVER))
    keys = "".join(f"`{name}` {kind}, " for name, kind in rows.key)
    schema = f"{keys}vectors array<double>, rest array<double>, last bigint"
    frame = spark.createDataFrame(listed, schema)
    return frame.select(rows.code().alias("key"), "vectors", "rest", "last")


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
