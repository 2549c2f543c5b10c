"""A gate in memory while it is stored, in the place of a stream."""

import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from json import loads
from secrets import randbits
from typing import Any, TypeVar

from setpoint import errors, spec
from setpoint._state_file import from_text, to_text
from setpoint.controller import Controller
from setpoint.decisions import Gate, Terms
from setpoint.decisions._rule import ACTED, REQUESTS, S, block
from setpoint.decisions.certificate import GateCertificate
from setpoint.decisions.live import Decision, decision_of
from setpoint.errors import InputError, SetpointError, StateError
from setpoint.state import Id
from setpoint.store.database import Change, Row, Saved
from setpoint.store.events import id_from, id_of, id_text, quoted
from setpoint.store.live import Live, encode

T = TypeVar("T")
_RECENT = 1000
_SECRET = os.environ.get("SETPOINT_GATE_SECRET", "").encode() or secrets.token_bytes(32)
"""The seed of coins of this process: it is in no database."""
_COUNTS = ("terms", "state", "serial", "counts", "recent", "watch")


def held_from(text: str) -> Controller | Terms:
    """What a stored stream holds, from the text that is kept of it."""
    return Terms.from_toml(text) if text.lstrip().startswith("[gate]") else spec.from_toml(text)


def living(
    name: str, held: Controller | Terms, settings: Mapping[str, Any], saved: Saved | None
) -> Any:
    """A stream or a gate at work in a store."""
    kind = LiveGate if isinstance(held, Terms) else Live
    return kind(name, held, settings, saved)  # type: ignore[arg-type]


class StoredGate:
    """One gate of a store, made by `Store.stream`: each call is committed before it returns."""

    def __init__(self, store: Any, name: str) -> None:
        self._store, self.name = store, name

    def apply(self, events: Iterable[Any]) -> list[dict[str, Any]]:
        """As `Store.apply`, for events that name no other gate."""
        return self._store.apply(events, self.name)  # type: ignore[no-any-return]

    def _one(self, id: Id | None, **event: Any) -> dict[str, Any]:
        with self._store._transaction([self.name]):
            live = self._store._begun(self.name, new=False)
            if id is not None:
                self._store._fill(live, [id_of(id)])
            return live.do(event, id)  # type: ignore[no-any-return]

    def decide(self, score: float, id: Id | None = None) -> Decision:
        """As `Gate.decide`."""
        answer = self._one(id, score=score)
        return Decision(*(answer[name] for name in Decision._fields))

    def update(self, wrong: Any = None, id: Id | None = None, *, loss: Any = None) -> None:
        """As `Gate.update`."""
        self._one(id, wrong=wrong, loss=loss)

    def drop(self, id: Id | None = None) -> None:
        """As `Gate.drop`."""
        self._one(id, drop=True)

    def change(self, terms: Terms | None = None, **_: Any) -> bool:
        """As `Gate.change`; False if it holds these terms already, and then nothing changes."""
        if terms is None:
            raise InputError('a gate is changed by all its terms, as in {"gate": {"errors": 0.05}}')
        with self._store._transaction([self.name]):
            return self._store._begun(self.name, new=False).modify(terms)  # type: ignore[no-any-return]

    def acknowledge(self) -> None:
        """A gate has no reference that a price is told by."""
        raise InputError("a gate has nothing to acknowledge: its alarms end by themselves")

    def certificate(self) -> GateCertificate:
        """As `Gate.certificate`."""
        return self._store.read(self.name).certificate()  # type: ignore[no-any-return]


class LiveGate:
    """A gate in memory, and what the present batch has done to it: see `Live`.

    An action that waits for its label, and a deferred request that may teach, are rows that wait.
    """

    def __init__(
        self, name: str, terms: Terms, settings: Mapping[str, Any], saved: Saved | None
    ) -> None:
        self.name, self.settings, self.epoch = name, settings, 0
        self.begins = randbits(48)
        self.toml = self.first = terms.to_toml()
        self.time = 0.0
        self.predictions = self.serial = self.forgotten = 0
        self.waiting: dict[Id, tuple[Row, Any]] = {}
        self.alarms: list[str] = []
        window, tolerance = settings["window"], settings["tolerance"]
        watch: dict[str, Any] = {}
        if window and tolerance:
            watch = {"on_alarm": self._alarm, "window": window, "tolerance": tolerance}
        secret = _SECRET + b"\0" + name.encode()
        self.stream = Gate(terms, secret=secret, **watch)
        if saved is not None:
            self._restore(saved)
        self.settle()

    def _restore(self, saved: Saved) -> None:
        try:
            content = loads(saved.state)
            self.waiting = {id_from(row.id): (row, None) for row in saved.waiting}
            content["open"] = [
                (id, from_text(row.receipt)) for id, (row, _) in self.waiting.items()
            ]
            content["settled"] = []
            fresh = self.stream.content()["watch"]
            if fresh is None or content["watch"] is None:
                content["watch"] = fresh
            self.stream.restore(content)
        except (SetpointError, KeyError, TypeError, ValueError) as error:
            raise StateError(f"the gate {quoted(self.name)} is damaged: {error}") from error
        self.first, self.serial = saved.first, content["serial"]
        self.epoch, self.predictions = saved.epoch, saved.predictions

    def _alarm(self, alarm: Any) -> None:
        self.alarms.append(encode(alarm._asdict()))

    def settle(self) -> None:
        """Begins a batch."""
        self.dirty, self.begun, self.undone = False, self.predictions, False
        self.stored: dict[Id, Row] = {}
        self.changed: dict[Id, Row] = {}
        self.alarms = []
        self.steps: list[tuple[Any, ...]] = []

    # What an event does

    def decide(self, id: Id | None, score: Any) -> tuple[Any, bool]:
        """A decision, and whether it was made before."""
        if id is not None and (row := self.row(id)) is not None:
            known, code, *_ = from_text(row.receipt)
            if score != known:
                raise InputError(
                    f"the request {row.id} was decided by the score {known:g}, got "
                    f"{quoted(score)}: use an id once"
                )
            return decision_of(id, code), True
        decision = self.stream.decide(score, id)
        self.steps.append((LiveGate.decide, id, score))
        self.dirty, id = True, decision.id
        kept = self.stream.row(id)
        quiet = kept[1] == ACTED
        row = Row(self.predictions, id_text(id), to_text(tuple(kept)), self.time)
        if quiet:
            row = row._replace(ended="unaudited", closed=self.time)
        else:
            self.waiting[id] = row, None
        self.changed[id] = row
        self.predictions += 1
        if len(self.waiting) > 10_000:  # the gate gave up the oldest deferred requests
            for old in self.waiting.keys() - self.stream.open_ids:
                self._end(old, "expired")
        return decision, False

    def update(self, id: Id | None, given: Any) -> tuple[Id, bool]:
        """Takes in a label; the id, and whether it was there before."""
        id, row = self._known(id)
        losses = list(self.stream.terms.losses(*given))
        if row.ended not in (None, "unaudited"):
            if row.y is None or loads(row.y) != losses:
                raise errors.AnsweredReceipt(f"the request {row.id} is closed ({row.ended})")
            return id, True
        if row.ended == "unaudited":
            self.stream.recall(id, from_text(row.receipt), "unaudited")
        self.stream.update(given[0], id, loss=given[1])
        self.steps.append((LiveGate.update, id, given))
        self.dirty = True
        self._end(id, "answered", encode(losses))
        return id, False

    def drop(self, id: Id | None) -> tuple[Id, bool]:
        """Says that a label will not come."""
        id, row = self._known(id)
        if row.ended == "dropped":
            return id, True
        if row.ended is not None:
            raise errors.AnsweredReceipt(f"the request {row.id} is closed ({row.ended})")
        self.stream.drop(id)
        self.steps.append((LiveGate.drop, id))
        self.dirty = True
        self._end(id, "dropped")
        return id, False

    def modify(self, terms: Terms) -> bool:
        """Holds other terms; False if it holds them already."""
        if terms == self.stream.terms:
            return False
        self.stream.change(terms)
        self.toml, self.dirty = terms.to_toml(), True
        return True

    def do(self, event: Mapping[str, Any], id: Id | None) -> dict[str, Any]:
        """Does what an event asks for; what is answered."""
        answer: dict[str, Any] = {}
        repeated = False
        if strange := {"prediction", "y", "groups", "features"} & event.keys():
            raise InputError(f"a gate takes score, wrong, loss and drop, got {min(strange)}")
        if "score" in event:
            decision, repeated = self.decide(id, event["score"])
            id = decision.id
            answer = dict(decision._asdict())
        if "wrong" in event or "loss" in event:
            id, repeated = self.update(id, (event.get("wrong"), event.get("loss")))
            answer |= {"id": id, "taken": True}
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
        content = self.stream.content()
        try:
            return work()
        except BaseException:
            vars(self).update(before)
            self.stream.restore(content)
            raise

    def row(self, id: Id) -> Row | None:
        """What is known of an id in this batch."""
        waits = self.waiting.get(id)
        return waits[0] if waits else self.changed.get(id) or self.stored.get(id)

    def _known(self, id: Id | None) -> tuple[Id, Row]:
        if id is None:
            (id,) = self.stream.pending if len(self.stream.pending) == 1 else (None,)
            if id is None:
                raise InputError("say by its id which request this is about")
        row = self.row(id)
        if row is None:
            raise errors.UnknownReceipt(f"no decision is known under the id {id_text(id)}")
        return id, row

    def _end(self, id: Id, how: str, y: str | None = None) -> None:
        row: Any = self.waiting.pop(id)[0] if id in self.waiting else self.row(id)
        self.changed[id] = row._replace(y=y, loss=y, ended=how, closed=self.time)

    # What is written

    def change(self) -> Change:
        """What is to be written of the batch."""
        content = self.stream.content()
        state = {name: content[name] for name in _COUNTS}
        state["state"] = content["state"].tolist()
        self.serial = content["serial"]
        rows, history = self.changed.values(), self.settings["history"]
        forget = self.predictions - history - 1
        if forget - self.forgotten >= min(1000, history):
            self.forgotten = forget
        else:
            forget = -1
        return Change(
            self.name, self.epoch or self.begins, not self.epoch, self.toml, encode(state),
            encode(self._overview()), self.predictions, self.time,
            [row for row in rows if row.number >= self.begun],
            [row for row in rows if row.number < self.begun], forget, alarms=self.alarms,
            first=self.first,
        )  # fmt: skip

    def _overview(self) -> dict[str, Any]:
        """What a list of streams says of this one."""
        gate, certificate = self.stream, self.stream.certificate()
        state, limits = gate.state.tolist(), certificate.limits
        early = certificate.status == "says nothing yet"
        waiting = [row.made for row, _ in self.waiting.values()]
        shares = gate.shares(100), gate.shares(_RECENT)
        return {
            "predictions": self.predictions, "pending": certificate.pending,
            "oldest": min(waiting, default=None), "at": self.time,
            "labels": certificate.counts.judged, "levels": list(gate.terms.shares), "asked": None,
            "losses": [one.per_request if state[REQUESTS] else None for one in limits],
            "accounts": [one.account for one in limits],
            "bounds": [one.bound.since_start for one in limits],
            "status": ["says nothing yet" if early else "guaranteed"] * len(limits),
            "theta": [state[block(j) + S] for j in range(len(limits))],
            "full": 0, "empty": 0, "coverage": [None, None], "recent": "0", "known": 0,
            "width": None, "alarm": gate.alarmed, "acted": list(shares),
        }  # fmt: skip


def past(row: Row) -> dict[str, Any]:
    """What the history of a gate says of a request."""
    score, code, *_ = from_text(row.receipt)
    shown = decision_of(id_from(row.id), code)._asdict()
    return {"prediction": score, "groups": [], "shown": shown, "lam": None}
