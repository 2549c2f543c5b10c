"""Gates on Spark: what a gate for each key would have done on a table of requests."""

from collections.abc import Callable
from typing import Any

from setpoint.decisions import Replay, Terms, replay
from setpoint.decisions.log import log
from setpoint.errors import InputError
from setpoint.tape import Columns
from setpoint.tape.columns import several

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
        tape = log(frame[score].to_numpy(), given, **late)
        return rows(frame, replay(terms, tape, **options))

    return df.groupBy(*keys).applyInPandas(run, schema)
