"""Paths of many keys: a live stream for each, and what has come of paths that are not whole yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from setpoint._state_file import from_text, to_text
from setpoint.bulk.paths import replay_paths
from setpoint.controller import Controller
from setpoint.errors import AnsweredReceipt, InputError, SetpointError
from setpoint.sets.paths import Path
from setpoint.spark.batch import NEVER, STATUSES
from setpoint.spark.buckets import container, contents
from setpoint.spark.work import Keyed, check_header
from setpoint.state import State
from setpoint.stream import Stream
from setpoint.tape import Tape

Array = np.ndarray[Any, Any]
_SHOWN, _ANSWERED, _EARLY, _LATE, _DUPLICATE, _EXPIRED, _UNKNOWN = range(len(STATUSES))


@dataclass
class PathBucket:
    """The streams of a bucket.

    `gathered` has by key and time what has come of paths of which a forecast is missing: of each
    step its ends and its label. `clock` is the largest time that came.
    """

    streams: dict[Any, Stream] = field(default_factory=dict)
    gathered: dict[Any, dict[int, dict[int, list[Any]]]] = field(default_factory=dict)
    latest: dict[Any, int] = field(default_factory=dict)
    clock: int = NEVER

    @property
    def last(self) -> Array:
        """The time of the last path of each key."""
        return np.array([self.latest.get(key, NEVER) for key in self.streams], np.int64)

    @property
    def waiting(self) -> Any:
        """The place of the key of each path that awaits labels."""
        counts = [len(stream.pending) for stream in self.streams.values()]
        return SimpleNamespace(place=np.repeat(np.arange(len(counts)), counts))

    @property
    def keys(self) -> list[Any]:
        """The keys."""
        return list(self.streams)

    def states(self, controller: Controller) -> dict[Any, State]:
        """The states of all keys."""
        return {key: stream.state for key, stream in self.streams.items()}

    def give_up(self) -> None:
        """Drops what waits."""
        for stream in self.streams.values():
            for time in list(stream.pending):
                stream.drop(time)


class PathWork(Keyed):
    """The work on paths: a row is a step of a path, and time when the path was made.

    A late path is refused, a key is never forgotten, and there are no groups.
    """

    @property
    def fields(self) -> str:
        """A state is that of a live stream."""
        return "paths"

    def check(self) -> None:
        """Raises an error where an option is not for paths."""
        if self.late != "refuse" or self.idle is not None or self.groups:
            raise InputError("paths take no late='accept', idle or groups on Spark")

    @cached_property
    def ends(self) -> tuple[str, ...]:
        """What the ends of a path are called in columns, those of the band first."""
        sets: Any = self.controller.sets
        return tuple(sets.places)

    def pack(self, bucket: PathBucket) -> bytes:
        """A bucket as bytes."""
        streams = [(key, s.content(), bucket.latest[key]) for key, s in bucket.streams.items()]
        text = to_text((streams, bucket.gathered))
        arrays = {"text": np.frombuffer(text.encode(), np.uint8)}
        return container({**self.header, "clock": bucket.clock}, arrays)

    def unpack(self, blob: bytes | None) -> PathBucket:
        """The bucket in some bytes, if it is of this work; None is an empty one."""
        if blob is None:
            return PathBucket()
        header, arrays = contents(blob)
        check_header(header, self.header)
        listed, gathered = from_text(arrays["text"].tobytes().decode())
        bucket = PathBucket(gathered=gathered, clock=header["clock"])
        for key, content, last in listed:
            bucket.streams[key], bucket.latest[key] = self._stream(), last
            bucket.streams[key].restore(content)
        return bucket

    def _stream(self) -> Stream:
        return Stream(self.controller, overflow="expire")

    def step(
        self, bucket: PathBucket, columns: Mapping[str, Any]
    ) -> tuple[PathBucket, dict[str, Any]]:
        """As `step_many`, with a bucket that is unpacked, and not to be used again."""
        names = "key", "time", "step", "lower", "upper", "y"
        given = [np.asarray(columns[name]).tolist() for name in names]
        given.append(columns.get("rest", [""] * len(given[0])))
        rows = list(zip(*given, strict=True))
        by_key: dict[Any, list[Any]] = {}
        for key, *row in rows:
            by_key.setdefault(key, []).append(row)
        made = list[dict[str, Any]]()
        for key, own in by_key.items():
            stream = bucket.streams.setdefault(key, self._stream())
            bucket.latest.setdefault(key, NEVER)
            keyed = _Key(self, key, stream, bucket.gathered.setdefault(key, {}), bucket.latest[key])
            try:
                keyed.run(sorted(own, key=lambda row: row[:2]))
            except SetpointError as error:
                raise type(error)(f"key {key}: {error}") from None
            bucket.latest[key] = keyed.last
            made += keyed.out.values()
        bucket.clock = max([bucket.clock, *(row[1] for row in rows)])
        if self.expire is not None:
            self._expire(bucket)
        return bucket, self._outputs(made)

    def _expire(self, bucket: PathBucket) -> None:
        oldest = bucket.clock - (self.expire or 0)
        for key, stream in bucket.streams.items():
            for time in [time for time in stream.pending if int(time) < oldest]:  # type: ignore[arg-type]
                stream.drop(time)
            gathered = bucket.gathered[key]
            for time in [time for time in gathered if time < oldest]:
                del gathered[time]

    def _outputs(self, made: list[dict[str, Any]]) -> dict[str, Any]:
        """Rows as columns: NaN where a row has nothing."""
        names = ("y", "lam", *self.ends)
        columns: dict[str, Any] = {
            name: np.array([row.get(name, np.nan) for row in made], float) for name in names
        }
        risks = len(self.controller.risks)
        losses = [row.get("loss", (np.nan,) * risks) for row in made]
        columns["loss"] = np.array(losses, float).reshape(len(made), risks).T
        kind = [row["key"] for row in made]
        columns["key"] = np.array(kind, object if kind and isinstance(kind[0], str) else np.int64)
        columns["rest"] = np.array([row.get("rest", "") for row in made], object)
        for name, type_ in (("time", np.int64), ("step", np.int64), ("status", np.int8)):
            columns[name] = np.array([row[name] for row in made], type_)
        return columns

    def replayed(self, columns: Mapping[str, Any]) -> tuple[PathBucket, dict[str, Any]]:
        """A table as `replay_paths` runs it: each label is known when its step is over."""
        given = {name: np.asarray(columns[name]) for name in ("lower", "upper")}
        keys = np.asarray(columns["key"])
        order = np.lexsort((np.asarray(columns["step"]), np.asarray(columns["time"]), keys))
        tape = Tape.from_arrays(
            {name: column[order] for name, column in given.items()},
            np.asarray(columns["y"])[order], series=keys[order],
            horizon=np.asarray(columns["step"])[order], time=np.asarray(columns["time"])[order],
            extras={"rest": np.asarray(columns.get("rest", keys.astype(str)), object)[order]},
        )  # fmt: skip
        trace, bucket = replay_paths(self.controller, tape), PathBucket()
        for key, state in trace.states.items():
            bucket.streams[key] = Stream(self.controller, state=state)
        rows, steps = trace.rows.ravel(), trace.rows.shape[1]
        for key, time in zip(np.asarray(tape.series)[rows], np.asarray(tape.time)[rows],
                             strict=True):  # fmt: skip
            bucket.latest[key] = max(bucket.latest.get(key, NEVER), int(time))
        out = {"key": np.asarray(tape.series)[rows], "time": np.asarray(tape.time)[rows]}
        out |= {"step": np.asarray(tape.horizon)[rows], "y": np.asarray(tape.y)[rows]}
        out["rest"] = np.asarray(tape.extras["rest"])[rows]
        sets: Any = self.controller.sets
        for name, (member, side) in sets.places.items():
            values = trace.ends[member][side]
            out[name] = values.ravel() if values.ndim > 1 else np.repeat(values, steps)
        out["lam"] = np.repeat(trace.lam[sets.band], steps)
        out["loss"] = np.full((len(trace.losses), len(rows)), np.nan)
        out["loss"][:, steps - 1 :: steps] = trace.losses
        return bucket, out | {"status": np.full(len(rows), _SHOWN, np.int8)}


class _Key:
    """The rows of one key in a batch: labels of paths that wait first, then forecasts."""

    def __init__(
        self, work: PathWork, key: Any, stream: Stream, gathered: dict[int, Any], last: int
    ) -> None:
        self.work, self.key, self.stream, self.gathered = work, key, stream, gathered
        self.sets: Any = work.controller.sets
        self.last = last
        self.out: dict[tuple[int, int], dict[str, Any]] = {}

    def run(self, rows: list[Any]) -> None:
        """Takes in rows in the order of time."""
        later = []
        for time, step, lower, upper, y, rest in rows:
            if lower == lower:
                self._forecast(time, step, lower, upper, rest)
            if y == y or lower != lower:
                if self._known(time):
                    self._label(time, step, y, rest)
                else:
                    later.append((time, step, y, rest))
        for time in sorted(self.gathered):
            steps = self.gathered[time]
            if sum(row[0] is not None for row in steps.values()) == self.sets.horizon:
                self._show(time, self.gathered.pop(time))
        for time, step, y, rest in later:
            if self._known(time):
                self._label(time, step, y)
            elif time > self.last:
                self._slot(time, step)[3:] = y, True
                self._tell(time, step, _EARLY, y=y, rest=rest)
            else:
                self._tell(time, step, _UNKNOWN, y=y, rest=rest)

    def _known(self, time: int) -> bool:
        return time in self.stream.pending or self.stream.closed(time) is not None

    def _slot(self, time: int, step: int) -> list[Any]:
        """What has come of a step: its ends and the caller's columns, then its label."""
        steps: dict[int, list[Any]] = self.gathered.setdefault(time, {})
        return steps.setdefault(step, [None, None, "", None, False])

    def _tell(self, time: int, step: int, status: int, **what: Any) -> None:
        """Says what became of a row; what was shown of it stays."""
        row = self.out.setdefault((time, step), {"status": status})
        row |= {"key": self.key, "time": time, "step": step, **what}

    def _forecast(self, time: int, step: int, lower: float, upper: float, rest: str) -> None:
        if not 1 <= step <= self.sets.horizon:
            raise InputError(f"a horizon must lie between 1 and {self.sets.horizon}, got {step}")
        before = self.gathered.get(time, {}).get(step, [None])
        if self._known(time) or before[0] is not None:
            self._tell(time, step, _DUPLICATE, rest=rest)
        elif time <= self.last:
            self._tell(time, step, _LATE, rest=rest)
        else:
            self._slot(time, step)[:3] = lower, upper, rest

    def _show(self, time: int, rows: dict[int, list[Any]]) -> None:
        steps = range(1, self.sets.horizon + 1)
        given = {"lower": [rows[s][0] for s in steps], "upper": [rows[s][1] for s in steps]}
        shown, self.last = self.stream.predict(given, id=time), time
        for step in steps:
            self._tell(time, step, _SHOWN, rest=rows[step][2], **self._ends(shown, time, step))
        for step, (*_, y, told) in rows.items():
            if told:
                self._label(time, step, y)

    def _ends(self, shown: Path, time: int, step: int) -> dict[str, float]:
        lam = self.stream.receipt(time).lam[self.sets.band]
        return {"lam": lam, **self.sets.row(shown, step)}

    def _label(self, time: int, step: int, y: float, rest: str | None = None) -> None:
        told: dict[str, Any] = {"y": y} if rest is None else {"y": y, "rest": rest}
        how = self.stream.closed(time)
        if how is not None:
            self._tell(time, step, _DUPLICATE if how == "answered" else _EXPIRED, **told)
            return
        shown = self.stream.receipt(time).shown
        ends = self._ends(shown, time, step) if 1 <= step <= self.sets.horizon else {}
        try:
            loss = self.stream.update(y, id=time, step=step)
        except AnsweredReceipt:
            self._tell(time, step, _DUPLICATE, **told)
            return
        if losses := [np.nan if each is None else each for each in loss or ()]:
            told["loss"] = losses
        self._tell(time, step, _ANSWERED, **ends, **told)
