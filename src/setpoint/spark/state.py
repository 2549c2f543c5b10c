"""What a query knows: the state of every key as a table, as states, in a fleet or a store."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from setpoint import spec
from setpoint.controller import Controller
from setpoint.errors import StateError
from setpoint.guarantee import certify
from setpoint.spark.batch import STATUSES
from setpoint.spark.paths import PathBucket
from setpoint.spark.rows import KEY_TABLE, Rows
from setpoint.spark.stream import METRICS, first_header, state_rows, work_of
from setpoint.state import COUNTS, State
from setpoint.watch import evidence, lasting, price_of

Frame = Any

_DROPPED = 1 + COUNTS.index("dropped")


def read_state(spark: Any, checkpoint: str) -> Frame:
    """The state of every key in the checkpoint of a query, one row for each key and risk.

    And one for each of its groups and risk, where `group` is the name of the group, else null.
    `account` is the sum of (loss − level), `bound` what is guaranteed for it, `certificate` whether
    the guarantee holds, `pending` how many labels are awaited, `last` the time of the last
    prediction. `price` is how many times as wide the intervals are as in a healthy past,
    `price_model` and `world` the same of the model's own errors and of how restless the actual
    values are, NaN until that is known; `alarms` names those about the price that last, and
    `evidence` is what `watch.called` takes to call for few streams of a large panel in vain.

    Parameters
    ----------
    spark
        A session.
    checkpoint
        The checkpoint of a query, which may be running: the last batch that ended is read.
    """
    work, rows = _work(spark, checkpoint)

    def tables(frames: Iterator[Any]) -> Iterator[Any]:
        for frame in frames:
            for blob in frame["blob"]:
                yield key_table(work, work.unpack(bytes(blob)))

    table = state_rows(spark, checkpoint).mapInPandas(tables, key_schema(rows))
    return named(rows, table)


def _work(spark: Any, checkpoint: str) -> tuple[Any, Rows]:
    """What a checkpoint says that its buckets are."""
    import json

    header = first_header(spark, checkpoint)
    if header is None:
        raise StateError(f"there is no state in {checkpoint}: no batch has ended yet")
    about = json.loads(header["about"])
    controller = spec.from_toml(header["controller"])
    key = tuple((name, kind) for name, kind in about["key"])
    rows = Rows(key, tuple(about["time"]), "y", None, (), len(controller.risks))
    groups = len(about.get("groups", ()))
    return work_of(controller, header["buckets"], about=header["about"], groups=groups), rows


def key_schema(rows: Rows) -> str:
    """The columns of `key_table`."""
    return f"key {'bigint' if rows.is_whole else 'string'}, {KEY_TABLE}"


def named(rows: Rows, table: Frame) -> Frame:
    """A table of keys with the names and types of the user."""
    from pyspark.sql import functions as fn

    never = fn.col("last") == fn.lit(np.iinfo(np.int64).min)
    last = fn.when(~never, rows.time_column("last", "last")).alias("last")
    others = [name for name in table.columns if name not in ("key", "last")]
    return table.select(*rows.key_columns(), *others, last)


def key_table(work: Any, bucket: Any) -> Any:
    """One row for each key and risk of a bucket."""
    import pandas as pd

    waiting = np.bincount(bucket.waiting.place, minlength=len(bucket.keys)).tolist()
    listed = []
    for place, (key, state) in enumerate(bucket.states(work.controller).items()):
        certificate = certify(work.controller, state, waiting=waiting[place])
        price, kinds = price_of(state.watched), ",".join(lasting(state.watched))
        costs = (np.nan,) * 3 if price is None else (price.sets, price.model, price.world)
        every = [(None, certificate.risks), *certificate.groups.items()]
        for group, number, risk in [(g, n, r) for g, risks in every for n, r in enumerate(risks)]:
            account, most = risk.excess, risk.constant_upper
            listed.append((
                key, group, number, risk.level, risk.theta, risk.judged, risk.mean, account,
                np.nan if most is None else most, str(risk.status), waiting[place], state.missing,
                state.expired, state.full, state.empty, *costs, kinds, evidence(state.watched),
                int(bucket.last[place]),
            ))  # fmt: skip
    parts = f"key x, {KEY_TABLE}".split(", ")
    return pd.DataFrame(listed, columns=[part.split()[0] for part in parts])


def states(
    spark: Any, checkpoint: str, *, drop: bool = False
) -> tuple[Controller, dict[Any, State]]:
    """The controller of a query and the state of every key, on this machine.

    A key of several columns is a tuple. `fleet.add(states, list(states.values()))` puts them into
    a fleet, and `store.stream(str(key), controller, state=state)` one of them into a store.

    Parameters
    ----------
    spark, checkpoint
        As for `read_state`.
    drop
        A state is without the predictions that wait for labels, so a query that awaits some is
        refused. With `drop` they are given up and counted as dropped, as by `Fleet.retire`.
    """
    work, rows = _work(spark, checkpoint)
    keyed: dict[Any, State] = {}
    pending = 0
    for row in state_rows(spark, checkpoint).toLocalIterator():
        bucket = work.unpack(bytes(row.blob))
        waiting = np.bincount(bucket.waiting.place, minlength=len(bucket.keys))
        pending += int(waiting.sum())
        if isinstance(bucket, PathBucket):
            bucket.give_up()
        else:
            bucket.vectors[:, _DROPPED] += waiting
            work.layout.give_up_all(bucket.vectors)
            bucket.groups = bucket.groups._replace(risks=bucket.groups.risks.copy())
            work.layout.give_up_all_in(bucket.groups.risks)
        keyed.update(bucket.states(work.controller))
    if pending and not drop:
        raise StateError(
            f"{pending:,} predictions in {checkpoint} wait for labels, and states are without "
            "them: give them up with drop=True, or begin another query with initial=checkpoint"
        )
    if not rows.is_whole and (len(rows.key) > 1 or rows.key[0][1] != "string"):
        table = spark.createDataFrame([(key,) for key in keyed], "key string")
        keys = [tuple(row) for row in table.select(*rows.key_columns()).collect()]
        plain = [key if len(key) > 1 else key[0] for key in keys]
        keyed = dict(zip(plain, keyed.values(), strict=True))
    return work.controller, keyed


def listener(registry: Any = None) -> Any:
    """A listener of queries that keeps the service's metrics: `spark.streams.addListener(…)`.

    A query stands where a stream of the service does, as the sum of its keys.

    Parameters
    ----------
    registry
        A registry of `prometheus_client`, the usual one by default.
    """
    from prometheus_client import REGISTRY, Counter, Gauge
    from pyspark.sql.streaming import StreamingQueryListener

    where = REGISTRY if registry is None else registry

    def metric(kind: Any, name: str, what: str, *labels: str) -> Any:
        return kind(f"setpoint_{name}", what, labels, registry=where)

    predictions = metric(Gauge, "stream_predictions", "Predictions so far", "stream")
    labels = metric(Gauge, "stream_labels", "Labels so far", "stream")
    width = metric(Gauge, "stream_width", "The mean width of the last intervals", "stream")
    coverage = metric(
        Gauge, "stream_coverage", "Coverage of the last labels", "stream", "window"
    )  # fmt: skip
    mean = metric(Gauge, "stream_mean_loss", "The mean loss of all labels", "stream", "risk")
    saturated = metric(
        Counter, "stream_saturated", "Sets that the safeguard chose", "stream", "set"
    )  # fmt: skip
    events = metric(Counter, "events", "Events taken in")
    refused = metric(Counter, "events_refused", "Events that changed nothing")
    batches = metric(Counter, "transactions", "Batches")
    seconds = metric(Counter, "transaction_seconds", "Seconds spent in batches")
    sums: dict[tuple[str, str], float] = {}

    class Progress(StreamingQueryListener):  # type: ignore[misc]
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            pass

        onQueryIdle = onQueryTerminated = onQueryStarted  # noqa: N815

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            progress = event.progress
            if (observed := progress.observedMetrics.get(METRICS)) is None:
                return
            query, counts = progress.name or str(progress.id), observed.asDict()
            for name, value in counts.items():
                sums[query, name] = sums.get((query, name), 0.0) + value
            predictions.labels(query).inc(counts["shown"])
            labels.labels(query).inc(counts["judged"])
            if counts["finite"]:
                width.labels(query).set(counts["width"] / counts["finite"])
            if counts["judged"]:
                covered = 1.0 - counts["missed"] / counts["judged"]
                coverage.labels(query, "batch").set(covered)
            losses = [name for name in counts if name.startswith("loss")]
            for risk, name in enumerate(losses if sums[query, "judged"] else ()):
                mean.labels(query, str(risk)).set(sums[query, name] / sums[query, "judged"])
            for kind in ("full", "empty"):
                saturated.labels(query, kind).inc(counts[kind])
            events.inc(sum(counts[name] for name in STATUSES))
            refused.inc(sum(counts[name] for name in STATUSES[3:]))
            batches.inc()
            seconds.inc(progress.batchDuration / 1000.0)

    return Progress()
