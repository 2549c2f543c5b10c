"""Gates on Spark: what a gate for each key would have done on a table of requests."""

from typing import Any

from setpoint.decisions import Terms, replay
from setpoint.decisions.log import log
from setpoint.errors import InputError
from setpoint.tape import Columns
from setpoint.tape.columns import several

_REASONS = ("score", "budget", "pending", "score", "score")


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
    deferred, seed
        As for `decisions.replay`.
    """
    if columns.series is None or columns.time is None or columns.point is None:
        raise InputError("a table of requests needs series, time and point, which is the score")
    if len(terms.names) > 1:
        raise InputError("a table has one column of errors: give one share")
    keys, time, score = list(several(columns.series)), str(columns.time), str(columns.point)
    late = {"delay": columns.delay} if columns.delay else {}

    def run(frame: Any) -> Any:
        frame = frame.sort_values(time, kind="stable").reset_index(drop=True)
        wrong = frame[columns.target].astype("float64").to_numpy()
        tape = log(frame[score].to_numpy(), wrong, **late)
        done = replay(terms, tape, deferred=deferred, seed=seed)
        reasons = [_REASONS[code] for code in done.codes.tolist()]
        return frame.assign(act=done.act, audit=done.audit, reason=reasons)

    fields = [f"`{name}` {kind}" for name, kind in df.dtypes]
    schema = ", ".join([*fields, "act boolean", "audit boolean", "reason string"])
    return df.groupBy(*keys).applyInPandas(run, schema)
