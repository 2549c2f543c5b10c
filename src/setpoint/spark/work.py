"""The work on buckets of keyed streams: a controller, and rules for what comes late or twice."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from setpoint import spec
from setpoint._check import choice, whole
from setpoint.bulk.layout import Layout, layout_of
from setpoint.controller import Controller
from setpoint.errors import StateError
from setpoint.plan import plan
from setpoint.spark.batch import Batch, coded_names
from setpoint.spark.buckets import Bucket, pack, record, unpack
from setpoint.state import State, flat

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Keyed:
    """What is done with every bucket: a controller, and the rules for what comes late or twice.

    Parameters
    ----------
    controller
        What each key holds.
    buckets
        How many buckets there are; kept in each, so that another number is refused.
    late
        What becomes of a prediction that is older than the last one of its key: "refuse", or
        "accept" it as the newest, which needs ids.
    expire
        How long a prediction waits for its label, in units of time; needed where rows have ids.
    idle
        A key without a prediction for longer than this is forgotten.
    about
        What keys and times are, kept in each bucket; another is refused.
    groups
        How many groups a row may belong to.
    """

    controller: Controller
    buckets: int = 1
    late: str = "refuse"
    expire: int | None = None
    idle: int | None = None
    about: str = ""
    groups: int = 0

    def __post_init__(self) -> None:
        whole(self.buckets, "buckets", 1)
        choice(self.late, "late", ("refuse", "accept"))
        for name in ("expire", "idle"):
            if getattr(self, name) is not None:
                whole(getattr(self, name), name, 1)
        self.check()

    def check(self) -> None:
        """Raises an error where the controller or an option is not for this kind of work."""
        raise NotImplementedError

    @property
    def fields(self) -> str:
        """What a state is made of, kept in each bucket."""
        raise NotImplementedError

    @cached_property
    def header(self) -> dict[str, Any]:
        """What a bucket is compared with before it is used."""
        return {
            "controller": spec.to_toml(self.controller), "buckets": self.buckets,
            "about": self.about, "fields": self.fields,
        }  # fmt: skip

    def pack(self, bucket: Any) -> bytes:
        """A bucket as bytes."""
        raise NotImplementedError

    def unpack(self, blob: bytes | None) -> Any:
        """The bucket in some bytes, if it is of this work; None is an empty one."""
        raise NotImplementedError

    def step(self, bucket: Any, columns: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """As `step_many`, with a bucket that is unpacked, and not to be used again."""
        raise NotImplementedError

    def replayed(self, columns: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """A table from its first row on, in a bucket of its own."""
        return self.step(self.unpack(None), columns)

    def step_many(
        self, blob: bytes | None, columns: Mapping[str, Any]
    ) -> tuple[bytes, dict[str, Any]]:
        """Takes a bucket over a batch of rows; returns its bytes, and what became of each row.

        Parameters
        ----------
        blob
            The bucket as the last call left it, None before the first.
        columns
            `key`, `time` (whole numbers), the columns of the prediction, `y`, and `id` where
            labels may come apart: a row without prediction is then a label, one without y waits
            for it, and one without either says that no label will come. Without ids, key and time
            say which row is meant, and a row without y has no label. Of several labels y has a row
            of 0 and 1 for the classes, NaN where there is none. `groups`, where there are any,
            has the names of the groups of each row as a list in JSON. Of a path a row is a `step`,
            and comes back once all of its forecasts are there.
        """
        bucket, outputs = self.step(self.unpack(blob), columns)
        return self.pack(bucket), outputs


class Work(Keyed):
    """The work on streams that run compiled, all of a bucket at once.

    Examples
    --------
    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.Miscoverage(), level=0.1, step=sp.steps.Fixed(0.5))
    >>> work = Work(sp.Controller(sp.sets.Widen(), risk))
    >>> rows = {"key": [7, 7], "time": [2, 1], "lower": [0.0] * 2, "upper": [1.0] * 2}
    >>> blob, outputs = work.step_many(None, {**rows, "y": [0.5, 3.0]})
    >>> outputs["upper"], outputs["loss"]
    (array([1.45, 1.  ]), array([[0., 1.]]))
    >>> work.unpack(blob).last
    array([2])
    """

    def check(self) -> None:
        """Raises an error where the controller or an option is not for this kind of work."""
        made = plan(self.controller)  # says what is missing
        if self.groups:
            made.groups.check()
        layout_of(self.controller)

    @property
    def fields(self) -> str:
        """The names of the numbers of a state."""
        return ",".join(self.layout.fields)

    @property
    def layout(self) -> Layout:
        """Where the numbers of a state lie."""
        return layout_of(self.controller)

    @property
    def labels(self) -> tuple[int, ...]:
        """The shape of the labels of a row: of several one number for each class."""
        layout = self.layout
        return (layout.classes or 0,) if layout.rules.several else ()

    @cached_property
    def begin(self) -> Array:
        """The numbers of a stream at the beginning of its life."""
        return np.array([self.layout.pack(self.controller.init())])

    def pack(self, bucket: Bucket) -> bytes:
        """A bucket as bytes."""
        return pack(bucket, self.header)

    def unpack(self, blob: bytes | None) -> Bucket:
        """The bucket in some bytes, if it is of this work; None is an empty one."""
        empty = Bucket.empty(self.layout, self.groups, self.labels)
        if blob is None:
            return empty
        bucket, header = unpack(blob, empty)
        check_header(header, self.header)
        return bucket

    def group_block(self, state: State) -> bytes:
        """The groups of a state as `Bucket.joined` takes them."""
        empty = self.unpack(None).groups
        records = np.zeros(len(state.groups), record(empty))
        for place, (name, risks) in enumerate(state.groups.items()):
            (coded,) = coded_names((name,), 1)
            records[place] = coded, flat(risks)
        return records.tobytes()

    def step(self, bucket: Bucket, columns: Mapping[str, Any]) -> tuple[Bucket, dict[str, Array]]:
        """As `step_many`, with a bucket that is unpacked, and not to be used again."""
        batch = Batch(self, bucket, columns)
        batch.sort_out()
        batch.run()
        return batch.left(), batch.outputs()


def check_header(header: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raises an error where a state was written for another number of buckets or controller."""
    if header["buckets"] != wanted["buckets"]:
        raise StateError(
            f"the state was written with {header['buckets']:,} buckets, got "
            f"{wanted['buckets']:,}: the number is fixed when a query begins"
        )
    given = [each["controller"] for each in (header, wanted)]
    if given[0] != given[1] and spec.from_toml(given[0]) != spec.from_toml(given[1]):
        texts = (text.splitlines() for text in given)
        pairs = (pair for pair in zip(*texts, strict=False) if pair[0] != pair[1])
        mine, other = next(pairs, ("more", "less"))
        raise StateError(
            f"the state belongs to another controller: it has {mine!r}, the controller given has "
            f"{other!r}"
        )
    if header["about"] != wanted["about"]:
        raise StateError(
            f"the state was written for the columns {header['about']}, got {wanted['about']}"
        )
    if header["fields"] != wanted["fields"]:
        raise StateError("the state was written by a setpoint with other rules")
