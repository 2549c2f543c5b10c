"""Which column of a data frame is what, and how rows go to Python and back.

PySpark hands the rows of a group to a stateful function one by one, as objects. So rows are packed
before they are shuffled: all of a bucket in one value of bytes.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, reduce
from operator import and_, or_
from typing import Any

import numpy as np

from setpoint._check import whole
from setpoint._rules import has_several
from setpoint.bulk.trace import ends_of
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.sets.family import ByClass, InParts
from setpoint.spark.batch import STATUSES, form_of
from setpoint.tape import Columns
from setpoint.tape.columns import several

Array = np.ndarray[Any, Any]
Frame = Any
Kinds = tuple[tuple[str, str], ...]

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_WHOLE, "float", "double", "decimal")
_TIMES = ("timestamp", "timestamp_ntz", "date")
_NAMES = ("lower", "upper", "labels", "size", "lam", "loss", "covered", "made", "status")
KEY_TABLE = (
    "group string, risk int, level double, theta double, judged bigint, mean double, "
    "account double, bound double, certificate string, pending bigint, missing bigint, "
    "expired bigint, full bigint, empty bigint, price double, price_model double, world double, "
    "alarms string, evidence double, last bigint"
)
"""The columns of `read_state` behind those of the key."""
_NTZ = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
_UNKNOWN = re.compile(r"interval|variant|void|geo|map<(?!string)")  # to JSON, as Spark reads it
_PIECE = 2**24
"""How many bytes of rows are packed at once."""


@dataclass(frozen=True)
class Rows:
    """Which column of a data frame is what, and how it goes to Python and back.

    In Python keys are whole numbers or texts: keys of other types, and of several columns, become
    JSON. Times are whole numbers: microseconds, days, or what they were. Columns have their types
    beside their names. Of several labels `truth` has a column for each class, called `y_CLASS`
    where `y` is the name of the label. `rest` are the caller's other columns: they go along as
    JSON.
    """

    key: Kinds
    time: tuple[str, str]
    y: str
    id: tuple[str, str] | None
    prediction: Kinds
    risks: int
    levels: tuple[str, ...] = ()
    groups: Kinds = ()
    classes: tuple[str, ...] = ()
    truth: tuple[str, ...] = ()
    step: str | None = None
    rest: Kinds = ()

    @classmethod
    def of(cls, df: Frame, controller: Controller, columns: Columns) -> "Rows":
        """The columns of a data frame; raises an error where one is not there or of no use."""
        if not isinstance(controller, Controller):
            raise InputError(f"calibration needs a Controller, got {controller!r}")
        types, point, time = dict(df.dtypes), columns.point, columns.time
        ends = {"lower": point or columns.lower, "upper": point or columns.upper}
        ends["phase"] = columns.phase
        given = {name: column for name, column in ends.items() if column is not None}
        given |= dict(zip(("centre", "low", "high"), columns.prediction, strict=False))
        given |= {name: name for name in columns.features}
        paths = isinstance(controller.sets, InParts)
        if paths and columns.horizon is None:
            raise InputError("paths need the column of the horizon: which step a row is")
        form = ("lower", "upper") if paths else form_of(controller, given)
        classes = form if isinstance(controller.sets, ByClass) else ()
        if classes:
            own = columns.probabilities or classes
            if len(own) != len(classes):
                raise InputError(f"there are {len(classes)} classes, {classes}, got columns {own}")
            given = dict(zip(classes, own, strict=True))
        elif set(given) != set(form):
            raise InputError(f"give one kind of prediction, {', '.join(form)}, got {given}")
        if columns.series is None or time is None:
            raise InputError("keyed streams need the columns of the series and of the time")
        keys, y, id = several(columns.series), columns.target, columns.id
        names = (*keys, time) if id is None else (*keys, time, id)
        step = columns.horizon if paths else None
        if paths and id is not None:
            raise InputError("a path is known by its key and its time: leave out id")
        names = names if step is None else (*names, step)
        if not keys or len({*names, y}) < len(names) + 1:
            raise InputError(
                f"series, time, id and target must be different columns, got {(*names, y)}"
            )
        truth = tuple([f"{y}_{name}" for name in form]) if has_several(controller.sets) else ()
        by = columns.groups
        if len(set(by)) < len(by):
            raise InputError(f"groups must be different columns, got {by}")
        for name in (*names, *(truth or (y,)), *given.values(), *by):
            if name not in types:
                raise InputError(f"there is no column {name!r}; there are {', '.join(types)}")
        of_keys = [column.split()[0] for column in KEY_TABLE.split(", ")]
        sets: Any = controller.sets
        others = tuple(sets.places)[2:] if paths else tuple(ends_of(controller))
        results = {*_NAMES, *others}
        for name in (*names, y):
            if name.lower() in (*results, *(of_keys if name in keys else ())):
                raise InputError(f"a column called {name!r} is in the results: rename yours")
        taken = {name.lower() for name in (*results, *loss_names(len(controller.risks)), *names, y)}
        rest = [name for name in types if name.lower() not in taken]
        _check_types(types, (*given.values(), *(() if truth else (y,))), _NUMBERS, "numbers")
        _check_types(types, truth, (*_NUMBERS, "boolean"), "numbers or booleans")
        _check_types(types, names[-1:] if paths else (), _WHOLE, "whole numbers")
        _check_types(types, (time,), (*_TIMES, *_WHOLE), "timestamps, dates or whole numbers")
        simple = (*_NUMBERS, *_TIMES, "string", "boolean", "binary", "char", "varchar")
        _check_types(types, [name for name in names if name != time], simple, "plain values")
        _check_types(types, by, simple, "plain values")
        return cls(
            tuple((name, types[name]) for name in keys), (time, types[time]), y,
            None if id is None else (id, types[id]),
            tuple((name, given[name]) for name in form), len(controller.risks), others,
            tuple((name, types[name]) for name in by), classes, truth, step,
            tuple((name, types[name]) for name in rest if not _UNKNOWN.search(types[name])),
        )  # fmt: skip

    def check_labels(self, labels: Frame) -> None:
        """Raises an error where labels that come apart would not find their predictions."""
        types = {**dict.fromkeys(self.labels.values(), "nothing"), **dict(labels.dtypes)}
        for name, kind in (*self.key, self.time, *([] if self.id is None else [self.id])):
            if types.get(name) != kind:
                raise InputError(
                    f"the column {name!r} of labels must be of type {kind}, as that of "
                    f"predictions, got {types.get(name, 'nothing')}"
                )
        _check_types(types, self.labels.values(), (*_NUMBERS, "boolean"), "numbers")
        if not labels.isStreaming:
            raise InputError("labels must be a streaming data frame, as predictions are")

    @property
    def labels(self) -> dict[str, str]:
        """The columns of labels, by the names that they have in Python."""
        return {f"y{place}": name for place, name in enumerate(self.truth)} or {"y": self.y}

    @property
    def text(self) -> str:
        """What the state depends on: the types of keys, times and ids, and the groups."""
        about = {"key": self.key, "time": self.time, "id": self.id and self.id[1]}
        about |= {"step": self.step} if self.step else {}
        return json.dumps(about | ({"groups": self.groups} if self.groups else {}))

    @property
    def is_whole(self) -> bool:
        """Whether keys are whole numbers in Python."""
        return _is_whole(self.key)

    @cached_property
    def fields(self) -> dict[str, str]:
        """What a row is in Python, with types; an id that is no number is there as one, and so."""
        fields = {"key": "bigint" if self.is_whole else "string", "time": "bigint"}
        if self.id is not None:
            fields["id"] = "bigint"
            fields |= {} if _is_whole((self.id,)) else {"id_text": "string"}
        fields |= {"step": "bigint"} if self.step else {}
        fields |= {"groups": "string"} if self.groups else {}
        fields |= {"rest": "string"} if self.rest else {}
        numbers = [*(f"p{place}" for place in range(len(self.prediction))), *self.labels]
        return fields | dict.fromkeys(numbers, "double")

    @property
    def texts(self) -> list[str]:
        """What goes to Python as text."""
        return [name for name, kind in self.fields.items() if kind == "string"]

    @property
    def record(self) -> np.dtype[Any]:
        """A row as it is packed; of a text, the number of its bytes."""
        kinds = {name: "<f8" if kind == "double" else "<i8" for name, kind in self.fields.items()}
        return np.dtype(list(kinds.items()))

    @property
    def answers(self) -> dict[str, str]:
        """What comes back from Python, with types."""
        id = "id_text" if "id_text" in self.fields else "id"
        names = [name for name in ("key", "time", id, "step", "rest") if name in self.fields]
        answers = {name: self.fields[name] for name in names}
        numbers = [name for name in ("y", *self.ends, "lam") if name != "labels"]
        answers |= dict.fromkeys([*numbers, *(("missed",) if self.truth else ())], "double")
        answers |= {"labels": "string"} if self.classes else {}
        answers |= {} if self.id is None else {"made": "bigint"}
        losses = [f"loss{risk}" for risk in range(self.risks)]
        return answers | {"status": "tinyint"} | dict.fromkeys(losses, "double")

    @property
    def schema(self) -> str:
        """`answers` in words of SQL."""
        return ", ".join(f"{name} {kind}" for name, kind in self.answers.items())

    @property
    def ends(self) -> tuple[str, ...]:
        """The columns of the ends: of what counts, and of each nested set; those of label sets."""
        return ("labels", "size") if self.classes else ("lower", "upper", *self.levels)

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

    def events(self, df: Frame, *, labels: bool = False) -> Frame:
        """Rows as Python takes them; of labels that come apart, without a prediction."""
        from pyspark.sql import functions as fn

        made: dict[str, Any] = {"key": _coded(self.key), "time": self.whole_time()}
        if self.step is not None:
            made["step"] = fn.col(f"`{self.step}`")
        if self.id is not None:
            id = fn.col(f"`{self.id[0]}`")
            made |= {"id": fn.xxhash64(id) if "id_text" in self.fields else id}
            made["id_text"] = _coded((self.id,))
        made["groups"] = fn.lit("[]") if labels else _group_list(self.groups)
        made["rest"] = fn.lit("")
        if self.rest and not labels:
            rest = fn.struct(*(fn.col(f"`{name}`") for name, _ in self.rest))
            made["rest"] = fn.to_json(rest, _JSON)
        for place, (_, name) in enumerate(self.prediction):
            made[f"p{place}"] = fn.lit(None) if labels else fn.col(f"`{name}`")
        made |= {own: fn.col(f"`{name}`") for own, name in self.labels.items()}
        columns = [made[name].cast(kind).alias(name) for name, kind in self.fields.items()]
        return df.select(*columns)

    def code(self) -> Any:
        """The key as one column, null if any part of it is."""
        return _coded(self.key)

    def whole_time(self, column: str | None = None) -> Any:
        """A time as a whole number."""
        from pyspark.sql import functions as fn

        name, kind = f"`{column or self.time[0]}`", self.time[1]
        if kind == "timestamp_ntz":
            # Not `timestampdiff`, which would go through the zone of the session.
            return fn.expr(
                f"unix_date(cast({name} as date)) * 86400000000L + hour({name}) * 3600000000L "
                f"+ minute({name}) * 60000000L "
                f"+ cast(extract(second from {name}) * 1000000 as bigint)"
            )
        how = {"timestamp": fn.unix_micros, "date": fn.unix_date}.get(kind)
        return fn.col(name).cast("bigint") if how is None else how(fn.col(name)).cast("bigint")

    def checked(self, events: Frame) -> Frame:
        """The events; one that no stream could take fails, before anything is shuffled."""
        from pyspark.sql import functions as fn

        key = fn.col("key")
        columns = [fn.col(f"p{place}") for place in range(len(self.prediction))]
        given = ", ".join(dict.fromkeys(column for _, column in self.prediction))
        nothing = reduce(and_, [column.isNull() for column in columns])
        some = reduce(or_, [column.isNull() for column in columns])
        reasons = {
            f"{', '.join(name for name, _ in self.key)} must not be null in a key": key.isNull(),
            f"{self.time[0]} must not be null": fn.col("time").isNull(),
            f"{given} must not be NaN": reduce(or_, [fn.isnan(column) for column in columns]),
        }
        for own, name in self.labels.items():
            reasons[f"{name} must be finite"] = fn.abs(fn.col(own)) == fn.lit(float("inf"))
        if self.step is not None:
            reasons[f"{self.step} must not be null"] = fn.col("step").isNull()
            reasons[f"{given} must be null together"] = some & ~nothing
        elif self.id is None:
            reasons[f"{given} must not be null"] = some
        else:
            # Not the number that stands for a text: the hash of null is a number too.
            id = fn.col("id_text" if "id_text" in self.fields else "id")
            reasons[f"{self.id[0]} must not be null"] = id.isNull()
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

    def packed(self, events: Frame, buckets: int) -> Any:
        """Checked events by bucket, all rows of a piece of a partition in one value of bytes."""
        texts = "".join(f", {name} binary" for name in self.texts)
        rows = self.placed(self.checked(events), buckets)
        return rows.mapInArrow(self._pieces, f"bucket int, rows binary{texts}").groupBy("bucket")

    def _pieces(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        parts, size = [], 0
        for batch in batches:
            parts.append(batch)
            size += batch.nbytes
            if size >= _PIECE:
                yield self._piece(pa.Table.from_batches(parts))
                parts, size = [], 0
        if size:
            yield self._piece(pa.Table.from_batches(parts))

    def _piece(self, table: Any) -> Any:
        import pyarrow as pa

        bucket = table["bucket"].to_numpy()
        order = np.argsort(bucket, kind="stable")
        numbers, starts = np.unique(bucket[order], return_index=True)
        ends = np.append(starts, len(order))
        records, columns = np.empty(len(order), self.record), {}
        for name in self.record.names or ():
            if name not in self.texts:
                records[name] = table[name].to_numpy()[order]
                continue
            text = table[name].combine_chunks().cast(pa.large_binary()).take(order)
            offsets = np.frombuffer(text.buffers()[1], np.int64, len(order) + 1)
            records[name] = np.diff(offsets)
            columns[name] = binaries(text.buffers()[2] or b"", offsets[ends])
        columns = {"bucket": pa.array(numbers), "rows": grouped(records, ends), **columns}
        return pa.RecordBatch.from_pydict(columns)

    def unpacked(self, frame: Any) -> dict[str, Array]:
        """The events in the pieces of a bucket, by column."""
        import pyarrow as pa

        records = np.frombuffer(b"".join(frame["rows"]), self.record)
        columns = {name: np.ascontiguousarray(records[name]) for name in self.record.names or ()}
        for name in self.texts:
            ends = np.append(0, np.cumsum(columns[name]))
            buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(frame[name]))]
            text = pa.Array.from_buffers(pa.large_string(), len(records), buffers)
            columns[name] = text.to_numpy(zero_copy_only=False)
        return columns

    def columns(self, events: Mapping[str, Array]) -> dict[str, Array]:
        """Events by the names that `Work.step_many` has for their columns."""
        named = {name: events[f"p{place}"] for place, (name, _) in enumerate(self.prediction)}
        names: tuple[str, ...] = ("key", "time", "id", "groups", "step")
        if self.step:
            names = (*names, "rest")  # such rows may come back later
        y = np.stack([events[name] for name in self.labels], axis=1)
        named["y"] = y if self.truth else y[:, 0]
        return named | {name: events[name] for name in names if name in self.fields}

    def answer(self, events: Mapping[str, Array], outputs: Mapping[str, Any]) -> Any:
        """What became of events, as `schema` has it."""
        import pandas as pd

        losses = {f"loss{risk}": losses for risk, losses in enumerate(outputs["loss"])}
        told = {**events, **outputs, **losses}  # of paths every row comes back when it is whole
        return pd.DataFrame({name: told[name] for name in self.answers}, copy=False)

    # From Python

    def key_columns(self) -> list[Any]:
        """The columns of the key as they were."""
        return _decoded("key", self.key)

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

        y, id = fn.col("y"), "id_text" if "id_text" in self.fields else "id"
        ends = [fn.col(name) for name in self.ends]
        if self.classes:
            labels = fn.from_json("labels", "array<string>")
            name = fn.element_at(fn.array(*map(fn.lit, self.classes)), y.cast("int") + 1)
            inside = fn.array_contains(labels, name)
            inside = fn.col("missed") == 0.0 if self.truth else inside
            ends, there = [labels.alias("labels"), ends[1]], ends[1]
        else:
            there, inside = ends[0], (ends[0] <= y) & (y <= ends[1])
        status = fn.element_at(fn.array(*map(fn.lit, STATUSES)), fn.col("status").cast("int") + 1)
        judged = y.isNotNull() & there.isNotNull()
        losses = [fn.col(f"loss{risk}") for risk in range(self.risks)]
        kinds = ", ".join(f"`{name}` {kind}" for name, kind in self.rest)
        rest = fn.from_json("rest", kinds, _JSON) if self.rest else None
        return out.select(
            *self.key_columns(),
            self.time_column("time", self.time[0]),
            *([] if self.id is None else _decoded(id, (self.id,))),
            *([] if self.step is None else [fn.col("step").alias(self.step)]),
            *(rest[name].alias(name) for name, _ in self.rest if rest is not None),
            *ends, fn.col("lam"), y.alias(self.y), fn.when(judged, inside).alias("covered"),
            *(loss.alias(name) for loss, name in zip(losses, loss_names(self.risks), strict=True)),
            self.time_column("time" if self.id is None else "made", "made"),
            status.alias("status"),
        )  # fmt: skip


def loss_names(risks: int) -> list[str]:
    """What the losses of some risks are called in the results."""
    return ["loss"] if risks == 1 else [f"loss_{risk}" for risk in range(risks)]


def grouped(records: Array, ends: Array) -> Any:
    """Rows of numbers as one value of bytes for each group, which begin and end where `ends` say.

    >>> [len(group) for group in grouped(np.arange(5.0), np.array([0, 2, 2, 5])).to_pylist()]
    [16, 0, 24]
    """
    return binaries(np.ascontiguousarray(records).view(np.uint8), ends * records.dtype.itemsize)


def binaries(data: Any, ends: Array) -> Any:
    """A column of bytes, cut out of all of them."""
    import pyarrow as pa

    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, buffers)


def _is_whole(columns: Kinds) -> bool:
    return len(columns) == 1 and columns[0][1] in _WHOLE


def _coded(columns: Kinds) -> Any:
    """Columns as one whole number or text, null if any of them is."""
    from pyspark.sql import functions as fn

    values = [fn.col(f"`{name}`") for name, _ in columns]
    if _is_whole(columns):
        return values[0].cast("bigint")
    if len(columns) == 1 and columns[0][1] == "string":
        return values[0]
    how = {"binary": fn.base64, "timestamp": fn.unix_micros}
    pairs = zip(values, (how.get(kind) for _, kind in columns), strict=True)
    texts = [(value if code is None else code(value)).cast("string") for value, code in pairs]
    known = reduce(and_, [value.isNotNull() for value in values])
    return fn.when(known, fn.to_json(fn.array(*texts)))


def _group_list(columns: Kinds) -> Any:
    """The groups that columns name, as a list in JSON: as `sp.replay` names them."""
    from pyspark.sql import functions as fn

    names = []
    for name, kind in columns:
        value, text = fn.col(f"`{name}`"), fn.col(f"`{name}`").cast("string")
        if kind == "boolean":
            names.append(fn.when(value, fn.lit(name)))
            continue
        if kind in ("float", "double"):
            whole = fn.abs(value) < fn.lit(2.0**53)
            whole &= value == fn.floor(value)
            text = fn.when(whole, value.cast("bigint").cast("string")).otherwise(text)
            text = fn.when(~fn.isnan(value), text)
        text = fn.when(text != "", text)
        names.append(fn.concat(fn.lit(f"{name}="), text))
    return fn.to_json(fn.array_compact(fn.array(*names)))


def _decoded(name: str, columns: Kinds) -> list[Any]:
    """The columns that were made one, as they were."""
    from pyspark.sql import functions as fn

    if _is_whole(columns) or (len(columns) == 1 and columns[0][1] == "string"):
        return [fn.col(name).cast(columns[0][1]).alias(columns[0][0])]
    texts = fn.from_json(fn.col(name), "array<string>")
    how = {"binary": fn.unbase64, "timestamp": lambda t: fn.timestamp_micros(t.cast("bigint"))}
    return [
        how.get(kind, lambda text, kind=kind: text.cast(kind))(texts[place]).alias(column)
        for place, (column, kind) in enumerate(columns)
    ]


def _check_types(
    types: Mapping[str, str], names: Iterable[str], allowed: Sequence[str], what: str
) -> None:
    for name in names:
        if types[name].partition("(")[0] not in allowed:
            raise InputError(f"the column {name!r} must hold {what}, got {types[name]}")
