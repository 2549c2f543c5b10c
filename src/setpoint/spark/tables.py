"""Tables of many keys: backtests of streams and of gates."""

from dataclasses import replace
from typing import Any

from setpoint.controller import Controller
from setpoint.decisions import Replay, Terms, replay
from setpoint.errors import InputError
from setpoint.spark.rows import Rows
from setpoint.spark.state import key_schema, key_table, named
from setpoint.spark.stream import work_of
from setpoint.tape import Columns
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


# Gates

_LIMITS = (
    "limit string, requests bigint, acted bigint, per_request double, per_action double, "
    "account double, bound double, pending bigint, price double, alarms string"
)


def gate(
    df: Frame, terms: Terms, columns: Columns, *, keys: bool = False, deferred: bool = False,
    seed: int = 0,
) -> Frame:  # fmt: skip
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
    keys
        Whether to return one row for each key and limit instead, as it stands at the end:
        `account` is its errors above what was asked and `bound` what is guaranteed, `price`
        how many times as many requests an action costs as in a healthy past, NaN until that is
        known, and `alarms` those about the price that last.
    deferred, seed
        As for `decisions.replay`.
    """
    if columns.series is None or columns.time is None or columns.point is None:
        raise InputError("a table of requests needs series, time and point, which is the score")
    limits = list(terms.names) if len(terms.names) > 1 else [columns.target]
    if missing := sorted({*limits} - {*df.columns}):
        raise InputError(f"the table has no column {', '.join(map(repr, missing))}")
    key, time, score = several(columns.series), str(columns.time), str(columns.point)
    late = {"delay": columns.delay} if columns.delay else {}
    fields = [*df.dtypes, ("act", "boolean"), ("audit", "boolean"), ("reason", "string")]
    if keys:
        fields = [field for field in df.dtypes if field[0] in key]
    schema = ", ".join(
        [*(f"`{name}` {kind}" for name, kind in fields), *([_LIMITS] if keys else [])]
    )

    def run(frame: Any) -> Any:
        frame = frame.sort_values(time, kind="stable").reset_index(drop=True)
        wrong = {name: frame[name].astype("float64").to_numpy() for name in limits}
        given: Any = wrong if len(limits) > 1 else wrong[limits[0]]
        scores = frame[score].to_numpy()
        done = replay(terms, scores, given, **late, deferred=deferred, seed=seed)
        if keys:
            return _ends(frame[list(key)].iloc[0].to_dict(), done)
        return frame.assign(act=done.act, audit=done.audit, reason=done.reason.tolist())

    return df.groupBy(*key).applyInPandas(run, schema)


def _ends(key: dict[str, Any], done: Replay) -> Any:
    import pandas as pd

    certificate, cost = done.certificate(), done.price()
    return pd.DataFrame([
        {
            **key, "limit": one.name, "requests": certificate.requests,
            "acted": certificate.acted, "per_request": one.per_request,
            "per_action": one.per_action, "account": one.account, "bound": one.bound.since_start,
            "pending": certificate.pending,
            "price": float("nan") if cost is None else cost.times,
            "alarms": ",".join(done.alarms()),
        }
        for one in certificate.limits
    ])  # fmt: skip
