"""One stream of a store: in memory while it is used, and as its callers see it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from json import JSONEncoder, loads
from math import inf
from secrets import randbits
from typing import TYPE_CHECKING, Any, TypeVar

from setpoint._state_file import from_text
from setpoint.correction import Explanation
from setpoint.decisions import Terms
from setpoint.decisions.live import Decision
from setpoint.errors import AnsweredReceipt, SetpointError, StateError
from setpoint.receipts import checked_groups
from setpoint.sets.family import named
from setpoint.state import Id
from setpoint.store.database import Change, Part, Row, Saved
from setpoint.store.events import groups_of, id_of, id_text, label_of, plain, quoted
from setpoint.watch import KINDS, evidence, lasting

if TYPE_CHECKING:
    from setpoint.store.store import Store


encode = JSONEncoder(check_circular=False).encode
"""A value as JSON."""
GONE = ("dropped", "expired")
"""How a row has ended that waits no more and had no label."""
COSTS_NOTHING = ("deferred", "unaudited")
"""How the row of a gate has ended whose label may still come: it teaches, or is a complaint."""
_ROW_BYTES = 200  # of a row, beside its receipt and its id in two indexes
_LAG = 0.05
"""The weight of the last one in the means of lags and of bytes."""
T = TypeVar("T")


class Kept:
    """A stream or a gate in memory, and what the present batch has done to it.

    Parameters
    ----------
    name, settings
        Those of the stream; the settings are those of its store.
    toml
        What it holds, as text.
    """

    stream: Any
    what = "stream"

    def __init__(self, name: str, settings: Mapping[str, Any], toml: str) -> None:
        self.name, self.settings, self.epoch = name, settings, 0
        self.begins = randbits(48)  # the epoch if it is new: no stream of this name had it before
        self.toml = self.first = toml
        self.time = 0.0  # of the batch
        self.predictions = self.serial = self.forgotten = 0  # serial: above every number as an id
        self.waiting: dict[Id, tuple[Row, Any]] = {}  # oldest first, each with its set
        self.unread = 0  # how many wait that were not read
        self.lag: float | None = None  # seconds from a prediction to its label
        self.bytes = 400.0  # of a prediction in the database, about
        self.settle()

    def restore(self, saved: Saved) -> None:
        """Goes on where a saved stream was."""
        try:
            content, overview = loads(saved.state), loads(saved.overview)
            pending = overview["pending"]
            if saved.waiting is None:
                self.unread = pending
            elif len(saved.waiting) != pending:
                rows = f"{len(saved.waiting):,} of {pending:,}"
                raise StateError(f"{rows} predictions that wait are there")
            self.resume(content, overview, saved)
            self.first, self.lag = saved.first, overview["lag"]
            self.bytes = overview["bytes"]
        except (SetpointError, KeyError, TypeError, ValueError) as error:
            told = f"the {self.what} {quoted(self.name)} is damaged: {error}"
            raise StateError(told) from error
        self.epoch, self.predictions = saved.epoch, saved.predictions

    def resume(self, content: Any, overview: dict[str, Any], saved: Saved) -> None:
        """Takes over what `written` gave."""
        raise NotImplementedError

    def settle(self) -> None:
        """Begins a batch."""
        self.dirty, self.begun = False, self.predictions
        self.undone = False  # whether an event was refused after its first step
        self.stored: dict[Id, Row] = {}
        self.changed: dict[Id, Row] = {}
        self.alarms: list[str] = []
        self.steps: list[tuple[Any, ...]] = []  # a method, and what it was called with

    def alarm(self, alarm: Any) -> None:
        """Notes an alarm."""
        self.alarms.append(encode(alarm._asdict()))

    def row(self, id: Id) -> Row | None:
        """What is known of an id in this batch."""
        waits = self.waiting.get(id)
        return waits[0] if waits else self.changed.get(id) or self.stored.get(id)

    def begin(self, id: Id, receipt: str) -> Row:
        """A new row."""
        row = Row(self.predictions, id_text(id), receipt, self.time)
        self.predictions += 1
        self.bytes += _LAG * (len(receipt) + 2 * len(row.id) + _ROW_BYTES - self.bytes)
        return row

    def came(self, row: Row) -> None:
        """Counts after how long a label came."""
        lag = self.time - row.made
        self.lag = lag if self.lag is None else self.lag + _LAG * (lag - self.lag)

    def did(self, *step: Any) -> None:
        """Notes a step of the batch: a method, and what it was called with."""
        self.steps.append(step)
        self.dirty = True

    def follow(self, live: Any) -> None:
        """Takes the place of what was at work in this batch, to do some of its steps again."""
        self.stored, self.time = live.stored, live.time

    def acknowledge(self) -> None:
        """Takes what a set or an action costs from now on as the new reference."""
        self.stream.acknowledge()
        self.dirty = True

    def verbs(self, event: Mapping[str, Any], id: Id | None) -> tuple[Id | None, Any, bool]:
        """Does what only this kind takes: the id, the answer, and whether it was so before."""
        raise NotImplementedError

    def about(self, id: Id | None) -> tuple[Id, Row]:
        """The id and the row of a prediction, of the only one that waits without an id."""
        raise NotImplementedError

    def drop(self, id: Id | None) -> tuple[Id, bool]:
        """Gives up what waits; the id, and whether that was so before."""
        id, row = self.about(id)
        if row.ended in GONE:
            return id, True
        if row.ended in COSTS_NOTHING:
            self.stream.recall(id, from_text(row.receipt))
        elif row.ended is not None:
            raise AnsweredReceipt(f"the prediction under {row.id} already has its label")
        self.stream.drop(id)
        self.did(type(self).drop, id)
        self.end(id, row, "dropped")
        return id, False

    def end(
        self, id: Id, row: Row, how: str, y: str | None = None, loss: str | None = None,
        covered: bool | None = None,
    ) -> None:  # fmt: skip
        """Closes a prediction; what is known of its label stays."""
        row = row._replace(ended=how, closed=self.time)
        if y is not None:
            row = row._replace(y=y, loss=loss, covered=None if covered is None else int(covered))
        self.waiting.pop(id, None)
        self.changed[id] = row

    def do(self, event: Mapping[str, Any], id: Id | None) -> dict[str, Any]:
        """Does what an event asks for; what is answered."""
        id, answer, repeated = self.verbs(event, id)
        if event.get("drop"):
            id, repeated = self.drop(id)
            answer |= {"id": id, "dropped": True}
        if event.get("certificate"):
            answer["certificate"] = self.stream.certificate().as_dict()
        if repeated:
            answer["repeated"] = True
        return answer

    def attempt(self, work: Callable[[], T]) -> T:
        """What the steps of one event give; if one fails, none of them was done."""
        before = {k: copy(v) if isinstance(v, dict | list) else v for k, v in vars(self).items()}
        try:
            return self.stream.attempt(work)  # type: ignore[no-any-return]
        except BaseException:
            vars(self).update(before)
            raise

    def written(self) -> tuple[str, dict[str, Any], list[Part], list[str]]:
        """The state and overview of now, parts of arrays that changed, and arrays begun again."""
        raise NotImplementedError

    def certificate(self) -> Any:
        """What is guaranteed, also where what waits was not read."""
        return self.stream.certificate()

    def overview(
        self, watch: Mapping[str, Any] | None, memory: Sequence[float], kinds: Iterable[str] = KINDS
    ) -> dict[str, Any]:
        """What a list says of every stream: counts, times, and the alarms that last."""
        alarm = ""
        if watch is not None:
            acting = [kind for kind, left in watch["saturation"].items() if left]
            alarm = "window" if any(watch["alarmed"]) else "".join(acting[:1])
        return {
            "predictions": self.predictions, "pending": len(self.waiting),
            "oldest": next((row.made for row, _ in self.waiting.values()), None), "at": self.time,
            "lag": self.lag, "alarm": alarm, "evidence": evidence(memory),
            "alarms": {k: since for k, (_, since) in lasting(memory).items() if k in kinds},
            "bytes": self.bytes,
        }  # fmt: skip

    def change(self, room: float = inf) -> Change:
        """What is to be written of the batch; the history may take so many bytes."""
        self.stream.hand_over()  # the database remembers what is closed
        state, overview, parts, cleared = self.written()
        rows, history = self.changed.values(), self.settings["history"]
        history = max(min(history, int(min(room / self.bytes, history))), 1)
        forget = self.predictions - history - 1
        if forget - self.forgotten >= min(1000, history):
            self.forgotten = forget
        else:
            forget = -1
        return Change(
            self.name, self.epoch or self.begins, not self.epoch, self.toml, state,
            encode(overview), self.predictions, self.time,
            [row for row in rows if row.number >= self.begun],
            [row for row in rows if row.number < self.begun], forget, parts, cleared, self.alarms,
            self.first,
        )  # fmt: skip


class Stored:
    """What a store has by a name: each call is committed before it returns."""

    def __init__(self, store: "Store", name: str) -> None:
        self._store, self.name = store, name

    @contextmanager
    def _live(self, id: Id | None = None) -> Iterator[Any]:
        with self._store._transaction([self.name]):
            live = self._store._begun(self.name, new=False)
            if id is not None:
                self._store._fill(live, [id_of(id)])
            yield live

    def drop(self, id: Id | None = None) -> None:
        """Gives up a prediction or an action whose label will not come."""
        with self._live(id) as live:
            live.drop(id)

    def acknowledge(self) -> None:
        """As `Stream.acknowledge`: a change of price is known, and is to stay."""
        with self._live() as live:
            live.acknowledge()

    def apply(self, events: Iterable[Any]) -> list[dict[str, Any]]:
        """As `Store.apply`, for events that name no other stream."""
        return self._store.apply(events, self.name)

    def certificate(self) -> Any:
        """What is guaranteed, and whether the premises hold."""
        with self._live() as live:
            return live.certificate()


class StoredStream(Stored):
    """One stream of a store, made by `Store.stream`: as a `Stream`, committed before it returns."""

    def predict(
        self,
        prediction: Any,
        id: Id | None = None,
        groups: Iterable[Id] | None = None,
        *,
        features: Mapping[str, Any] | None = None,
    ) -> Any:
        """The set for a prediction; it waits for its label under `id`, or a generated number.

        `groups` and `features` are those of `Stream.predict`.
        """
        if features is not None:
            prediction = named(prediction, features)
        names = None if groups is None else groups_of(checked_groups(groups))
        with self._live(id) as live:
            return live.predict(id, plain(prediction, "a prediction"), names)[1]

    def update(self, y: Any, id: Id | None = None, *, step: int | None = None) -> Any:
        """Takes in a label and returns its loss: a tuple if there are several risks.

        Of a path `step` says which step it is of, as for `Stream.update`.
        """
        with self._live(id) as live:
            return live.update(id, label_of(y), step)[1][0]

    def change(
        self,
        *,
        risk: int = 0,
        level: float | None = None,
        step: Any = None,
        bounds: tuple[float, float] | None = None,
        reset: bool = False,
    ) -> bool:
        """As `Stream.change`; False if everything is so already, and then nothing changes.

        With `reset` it does what `Stream.reset` does before that, and both or neither.
        """
        options = {"level": level, "step": step, "bounds": bounds}
        given = {name: value for name, value in options.items() if value is not None}
        with self._live() as live:
            if given or not reset:
                modified = live.modify(risk, given)
            if reset:
                live.reset()
            return reset or modified

    def explain(self, id: Id | None = None) -> Explanation:
        """As `Stream.explain`: why an interval that waits for its label is as it is."""
        explained: Explanation = self._store.read(self.name).explain(id)
        return explained

    def reset(self) -> None:
        """As `Stream.reset`: forgets what was learnt of a model that another one replaces."""
        with self._live() as live:
            live.reset()


class StoredGate(Stored):
    """One gate of a store, made by `Store.stream`: each call is committed before it returns."""

    def decide(self, score: float, id: Id | None = None) -> Decision:
        """As `Gate.decide`."""
        with self._live(id) as live:
            return live.decide(id, score)[0]  # type: ignore[no-any-return]

    def update(self, wrong: Any = None, id: Id | None = None, *, loss: Any = None) -> None:
        """As `Gate.update`."""
        with self._live(id) as live:
            live.update(id, (wrong, loss))

    def change(self, terms: Terms) -> bool:
        """As `Gate.change`; False if it holds these terms already, and then nothing changes."""
        with self._live() as live:
            return live.modify(terms)  # type: ignore[no-any-return]
