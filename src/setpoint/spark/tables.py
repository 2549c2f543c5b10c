"""Tables of many keys: backtests, usefulness, gates, and controllers tuned on a sample of keys."""

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from setpoint._check import whole
from setpoint.bulk.sweep import Sweep
from setpoint.bulk.tune import Tuned, with_options
from setpoint.bulk.tune import tune as tune_tape
from setpoint.controller import Controller
from setpoint.decisions import Replay, Terms, replay
from setpoint.errors import InputError
from setpoint.metrics.usefulness import Streams, Usefulness, of_streams
from setpoint.spark.rows import Rows
from setpoint.spark.state import key_schema, key_table, named
from setpoint.spark.stream import work_of
from setpoint.tape import Columns, Tape
from setpoint.tape.columns import several

Frame = Any
_ROW = "setpoint_row"
_FOREVER, _AFTER_ALL = 2**62, 2**61


def backtest(
    df: Frame, controller: Controller, columns: Columns, *, keys: bool = False, buckets: int = 256
) -> Frame:
    """What a stream of the rows of a table would have given, in the order of time.

    Parameters
    ----------
    df
        A table.
    controller, columns
        As for `calibrate_stream`.
    keys
        Whether to return one row for each key, as `read_state` has it, instead of the rows.
    buckets
        How many buckets keys are spread over. The rows of one bucket are in memory at once.
    """
    from pyspark.sql import functions as fn

    rows, known = _rows_of_table(df, controller, columns), columns.known
    rows, events = (rows, rows.events(df)) if known is None else _by_known(df, rows, known)
    expire = None if known is None else _FOREVER
    work = work_of(controller, buckets, "refuse", expire, groups=len(rows.groups))

    def run(frame: Any) -> Any:
        events = rows.unpacked(frame)
        bucket, outputs = work.replayed(rows.columns(events))
        return key_table(work, bucket) if keys else rows.answer(events, outputs)

    groups = rows.packed(events, buckets)
    if keys:
        return named(rows, groups.applyInPandas(run, key_schema(rows)))
    out = groups.applyInPandas(run, rows.schema)
    if known is None:
        return rows.results(out)
    out = out.withColumn("time", fn.nullif("time", fn.lit(_AFTER_ALL)))
    return rows.results(out).drop(_ROW)


def _rows_of_table(df: Frame, controller: Controller, columns: Columns) -> Rows:
    rows, known = Rows.of(df, controller, columns), columns.known
    if rows.step is not None and known is not None:
        raise InputError(
            "the label of a step of a path is known when the step is over: leave out known"
        )
    if df.isStreaming:
        raise InputError("a table is needed; for streaming data frames use calibrate_stream")
    if columns.id is not None:
        raise InputError("id is for streams: in a table known says when each label became known")
    (time, kind), types = rows.time, dict(df.dtypes)
    if known is not None and types.get(known) != kind:
        raise InputError(
            f"the column {known!r} must be of the type of {time!r}, {kind}, got {types.get(known)}"
        )
    return rows


def _by_known(df: Frame, rows: Rows, known: str) -> tuple[Rows, Frame]:
    """Predictions at their times, and labels at the times at which they became known."""
    from pyspark.sql import functions as fn

    rows = replace(rows, id=(_ROW, "bigint"))
    numbered = df.withColumn(_ROW, rows.whole_time())
    later = replace(rows, time=(known, rows.time[1])).events(numbered, labels=True)
    later = later.withColumn("time", fn.coalesce("time", fn.lit(_AFTER_ALL)))
    blank = dict.fromkeys(rows.labels.values(), fn.lit(None).cast("double"))
    return rows, rows.events(numbered.withColumns(blank)).union(later)


def usefulness(
    table: Frame,
    columns: Columns,
    *,
    confidence_level: float = 0.9,
    buckets: int = 256,
) -> Frame:
    """How useful the sets of each key were: `metrics.usefulness` on the results of a query.

    Parameters
    ----------
    table
        What `backtest` returned or a query wrote.
    columns
        As in the call that made it; series, time and target are used. Rows are taken in the
        order in which their sets were made.
    confidence_level
        The coverage that was asked for.
    buckets
        How many buckets keys are spread over.
    """
    from pyspark.sql import functions as fn

    types, time, y = dict(table.dtypes), str(columns.time), columns.target
    keys = several(columns.series or ())
    rows = Rows(tuple((n, types[n]) for n in keys), (time, types[time]), y, None, (), 1)
    judged = table.where(fn.col("covered").isNotNull())
    ends = [fn.col(name) for name in ("made", "lower", "upper")]
    plain = judged.select(rows.code().alias("key"), *ends, fn.col(f"`{y}`").alias("y"))

    def verdicts(frame: Any) -> Any:
        import pandas as pd

        frame = frame.sort_values(["key", "made"], kind="stable")
        keys, starts = np.unique(frame["key"].to_numpy(), return_index=True)
        lower, upper, label = (frame[name].to_numpy() for name in ("lower", "upper", "y"))
        found = of_streams(
            lower, upper, label, confidence_level=confidence_level,
            offsets=np.append(starts, len(frame)),
        )  # fmt: skip
        uses = [str(found.verdict(place).use) for place in range(len(keys))]
        return pd.DataFrame({"key": keys, "use": uses, **found._asdict()})

    kind = "bigint" if rows.is_whole else "string"
    schema = (
        f"key {kind}, use string, score double, width double, share double, full double, "
        "empty double, rows bigint, diverged bigint"
    )
    out = rows.placed(plain, buckets).groupBy("bucket").applyInPandas(verdicts, schema)
    return out.select(*rows.key_columns(), *out.columns[1:])


def verdict(table: Frame) -> Usefulness:
    """How useful the sets of all keys were together, from the table of `usefulness`."""
    frame = table.select(*Streams._fields).toPandas()
    return Streams(*(frame[name].to_numpy() for name in Streams._fields)).together()


def sample(
    df: Frame, controller: Controller, columns: Columns, *, keys: int = 200, seed: int = 0
) -> Tape:
    """All rows of some keys of a table as a tape; the same seed takes the same keys.

    Where columns name groups, they are in the tape: `sp.replay(…, groups="groups")`.
    """
    from pyspark.sql import functions as fn

    rows = _rows_of_table(df, controller, columns)
    events = rows.checked(rows.events(df, known=columns.known))
    names = events.select("key").distinct().orderBy(fn.xxhash64("key", fn.lit(seed)), "key")
    chosen = events.join(fn.broadcast(names.limit(whole(keys, "keys", 1))), "key")
    frame = chosen.toPandas().sort_values(["key", "time"], kind="stable")
    arrays = rows.columns({name: frame[name].to_numpy() for name in frame})
    prediction = {name: arrays[name] for name, _ in rows.prediction}
    return Tape.from_arrays(
        prediction, arrays["y"], series=arrays["key"], time=arrays["time"],
        known=None if columns.known is None else frame["known"].to_numpy(),
        extras={"groups": _tuples(frame["groups"])} if rows.groups else None,
    )  # fmt: skip


def _tuples(texts: Any) -> Any:
    """Lists in JSON as tuples, one for each row."""
    cells = np.empty(len(texts), object)
    cells[:] = [tuple(json.loads(text)) for text in texts]
    return cells


def tune(
    tape: Tape,
    controller: Controller,
    space: Mapping[str, Sequence[Any]] | Sequence[Controller],
    objective: Any = None,
    *,
    spark: Any = None,
    parts: int = 8,
) -> Tuned:
    """`setpoint.tune` over a grid, in parts that run at once.

    Parameters
    ----------
    tape
        A `sample` of a table.
    controller, space, objective
        As for `setpoint.tune`; a space has the values to try, or the controllers themselves.
    spark
        A session, whose workers try the parts; without one joblib does, with the backend that
        `joblib.parallel_config` names.
    parts
        How many parts the grid is cut into.
    """
    choices = space if isinstance(space, Mapping) else {}
    settings = [dict(zip(choices, each, strict=True)) for each in product(*choices.values())]
    controllers = (
        [with_options(controller, setting) for setting in settings]
        if isinstance(space, Mapping)
        else list(space)
    )
    cuts = [part for part in np.array_split(np.arange(len(controllers)), parts) if len(part)]

    def tried(part: Any) -> tuple[Any, Any]:
        tuned = tune_tape(
            controller, tape, [controllers[i] for i in part], objective, progress=False
        )
        return tuned.objective, tuned.table.columns

    if spark is None:
        from joblib import Parallel, delayed

        results = Parallel(n_jobs=-1)(delayed(tried)(part) for part in cuts)
    else:
        import pandas as pd

        def try_all(frames: Iterable[Any]) -> Iterator[Any]:
            for frame in frames:
                listed = [pickle.dumps(tried(cuts[part])) for part in frame["part"]]
                yield pd.DataFrame({"part": frame["part"], "result": listed})

        grid = spark.createDataFrame([(part,) for part in range(len(cuts))], "part int")
        grid = grid.repartitionByRange(len(cuts), "part")
        rows = grid.mapInPandas(try_all, "part int, result binary").orderBy("part").collect()
        results = [pickle.loads(row.result) for row in rows]
    values = np.concatenate([values for values, _ in results])
    columns = {name: np.concatenate([c[name] for _, c in results]) for name in results[0][1]}
    table = Sweep(tuple(controllers), columns)
    options = {name: np.array([each[name] for each in settings], object) for name in choices}
    best = int(np.lexsort(np.atleast_2d(values.T)[::-1])[0])
    if values[best].flat[0] < np.inf:
        return Tuned(controllers[best], best, options, values, table)
    return Tuned(controller, None, options, values, table)


# Gates

_REASONS = ("score", "budget", "pending", "score", "score")
_TABLE = (
    "limit string, requests bigint, acted bigint, per_request double, per_action double, "
    "account double, most double, pending bigint, price double, alarms string"
)


def gate(df: Any, terms: Terms, columns: Columns, *, deferred: bool = False, seed: int = 0) -> Any:
    """The rows of a table with what a gate of its key would have decided, in the order of time.

    Parameters
    ----------
    df
        A table, with a row for each request.
    terms
        What each gate holds.
    columns
        `series` names the key, `time` the order, `point` the score and `target` whether acting was
        wrong, 0 or 1; empty where it is not known. `delay` says how many rows late labels come.
        Of several limits the columns by their names say it, and `target` is not read.
    deferred, seed
        As for `decisions.replay`.
    """

    def rows(frame: Any, done: Replay) -> Any:
        reasons = [_REASONS[code] for code in done.codes.tolist()]
        return frame.assign(act=done.act, audit=done.audit, reason=reasons)

    fields = [f"`{name}` {kind}" for name, kind in df.dtypes]
    schema = ", ".join([*fields, "act boolean", "audit boolean", "reason string"])
    return _by_key(df, terms, columns, rows, schema, deferred=deferred, seed=seed)


def gate_ends(
    df: Any, terms: Terms, columns: Columns, *, deferred: bool = False, seed: int = 0
) -> Any:
    """How the gate of each key stands at the end of a table: one row for each key and limit.

    `account` is its errors above what was asked and `most` what is guaranteed of that; `price` how
    many times as many requests an action costs as in a healthy past, NaN until that is known, and
    `alarms` those about the price that last. The parameters are those of `gate`.
    """
    keys = list(several(columns.series or ()))

    def rows(frame: Any, done: Replay) -> Any:
        certificate, cost = done.certificate(), done.price()
        ends = [
            {
                **{key: frame[key].iloc[0] for key in keys}, "limit": one.name,
                "requests": certificate.requests, "acted": certificate.counts.acted,
                "per_request": one.per_request, "per_action": one.per_action,
                "account": one.account, "most": one.bound.since_start,
                "pending": certificate.pending,
                "price": float("nan") if cost is None else cost.times,
                "alarms": ",".join(done.alarms()),
            }
            for one in certificate.limits
        ]  # fmt: skip
        return type(frame)(ends)

    kinds = dict(df.dtypes)
    schema = ", ".join([*(f"`{key}` {kinds[key]}" for key in keys if key in kinds), _TABLE])
    return _by_key(df, terms, columns, rows, schema, deferred=deferred, seed=seed)


def _by_key(
    df: Any, terms: Terms, columns: Columns, rows: Callable[[Any, Replay], Any], schema: str,
    **options: Any,
) -> Any:  # fmt: skip
    """A table of what `rows` makes of the rows of each key and of its replay."""
    if columns.series is None or columns.time is None or columns.point is None:
        raise InputError("a table of requests needs series, time and point, which is the score")
    limits = list(terms.names) if len(terms.names) > 1 else [columns.target]
    if missing := sorted({*limits} - {*df.columns}):
        raise InputError(f"the table has no column {', '.join(map(repr, missing))}")
    keys, time, score = list(several(columns.series)), str(columns.time), str(columns.point)
    late = {"delay": columns.delay} if columns.delay else {}

    def run(frame: Any) -> Any:
        frame = frame.sort_values(time, kind="stable").reset_index(drop=True)
        wrong = {name: frame[name].astype("float64").to_numpy() for name in limits}
        given: Any = wrong if len(limits) > 1 else wrong[limits[0]]
        return rows(frame, replay(terms, frame[score].to_numpy(), given, **late, **options))

    return df.groupBy(*keys).applyInPandas(run, schema)
