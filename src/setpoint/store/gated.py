"""A gate in memory while it is stored, in the place of a stream."""

from collections.abc import Mapping
from json import loads
from typing import Any

from setpoint import errors, spec
from setpoint._state_file import from_text, to_text
from setpoint.alarms import Episodes
from setpoint.controller import Controller
from setpoint.decisions import Gate, Terms
from setpoint.decisions.certificate import GateSummary
from setpoint.decisions.live import Decision, decision_of
from setpoint.errors import InputError
from setpoint.state import Id
from setpoint.steps.gate import ACTED, AUDITED, HEAD, PRICE, S, block
from setpoint.store.database import Part, Row, Saved
from setpoint.store.events import id_from, id_text, quoted
from setpoint.store.live import Live, share
from setpoint.store.stored import COSTS_NOTHING, Kept, encode

_KEPT = ("terms", "state", "serial", "recent", "watch")


def held_from(text: str) -> Controller | Terms:
    """What a stored stream holds, from the text that is kept of it."""
    return Terms.from_toml(text) if is_gate(text) else spec.from_toml(text)


def is_gate(text: str) -> bool:
    """Whether the text that is kept of a stream has the terms of a gate."""
    return text.lstrip().startswith("[gate]")


def living(
    name: str, held: Controller | Terms, settings: Mapping[str, Any], saved: Saved | None
) -> Any:
    """A stream or a gate at work in a store."""
    kind = LiveGate if isinstance(held, Terms) else Live
    return kind(name, held, settings, saved)  # type: ignore[arg-type]


class LiveGate(Kept):
    """A gate in memory, and what the present batch has done to it.

    Only actions that wait for their labels are rows that wait. The seed of the coins is a new one
    each time: what was decided is known from its row.
    """

    what = "gate"

    def __init__(
        self, name: str, terms: Terms, settings: Mapping[str, Any], saved: Saved | None
    ) -> None:
        super().__init__(name, settings, terms.to_toml())
        window, tolerance = settings["window"] or None, settings["tolerance"]
        self.watch = {"window": window, "tolerance": tolerance} if window and tolerance else {}
        self.stream = Gate(terms, on_alarm=self.alarm, **self.watch)
        self.stream.hand_over()
        if saved is not None:
            self.restore(saved)
        self.settle()

    def resume(self, content: Any, overview: dict[str, Any], saved: Saved) -> None:
        """Takes over what `written` gave."""
        self.waiting = {id_from(row.id): (row, None) for row in saved.waiting or ()}
        rows = [(id, *from_text(row.receipt)) for id, (row, _) in self.waiting.items()]
        kept, watch = {"window": None, "tolerance": None} | self.watch, content["watch"]
        if (watch["window"], watch["tolerance"]) != (kept["window"], kept["tolerance"]):
            watch = Episodes(self.stream.terms.shares, **kept).content()
        self.stream.restore({**content, "open": rows, "past": [], "watch": watch})
        self.serial = content["serial"]

    def follow(self, live: Any) -> None:
        """Tosses the same coins once more."""
        super().follow(live)
        self.stream.share_coins(live.stream)

    # What an event does

    def decide(self, id: Id | None, score: Any) -> tuple[Decision, bool]:
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
        self.did(LiveGate.decide, id, score)
        id = decision.id
        kept = self.stream.row(id)
        row = self.begin(id, to_text(kept))
        if kept[1] == AUDITED:
            self.waiting[id] = row, None
        else:
            how = "unaudited" if kept[1] == ACTED else "deferred"
            row = row._replace(ended=how, closed=self.time)
        self.changed[id] = row
        return decision, False

    def update(self, id: Id | None, given: Any) -> tuple[Id, bool]:
        """Takes in a label; the id, and whether it was there before."""
        id, row = self.about(id)
        losses = list(self.stream.terms.losses(*given))
        if row.ended is None:
            self.came(row)
        elif row.ended in COSTS_NOTHING:
            self.stream.recall(id, from_text(row.receipt))
        elif row.y is None or loads(row.y) != losses:
            raise errors.AnsweredReceipt(f"the request {row.id} is closed ({row.ended})")
        else:
            return id, True
        self.stream.update(given[0], id, loss=given[1])
        self.did(LiveGate.update, id, given)
        self.end(id, row, "answered", encode(losses), encode(losses))
        return id, False

    def modify(self, terms: Terms) -> bool:
        """Holds other terms; False if it holds them already."""
        if terms == self.stream.terms:
            return False
        self.stream.change(terms)
        self.toml, self.dirty = terms.to_toml(), True
        return True

    def verbs(self, event: Mapping[str, Any], id: Id | None) -> tuple[Id | None, Any, bool]:
        """Decides, and takes in a label."""
        answer: dict[str, Any] = {}
        repeated = False
        if strange := {"prediction", "y", "groups", "features"} & event.keys():
            raise InputError(f"a gate takes score, wrong, loss and drop, got {min(strange)}")
        if "score" in event:
            decision, repeated = self.decide(id, event["score"])
            id, answer = decision.id, decision._asdict()
        if "wrong" in event or "loss" in event:
            id, repeated = self.update(id, (event.get("wrong"), event.get("loss")))
            answer |= {"id": id, "taken": True}
        return id, answer, repeated

    def about(self, id: Id | None) -> tuple[Id, Row]:
        """The id and the row of a request, of the only one that waits without an id."""
        if id is None:
            if len(self.waiting) != 1:
                raise InputError("say by its id which request this is about")
            id = next(iter(self.waiting))
        row = self.row(id)
        if row is None:
            raise errors.UnknownReceipt(f"no decision is known under the id {id_text(id)}")
        return id, row

    # What is written

    def written(self) -> tuple[str, dict[str, Any], list[Part], list[str]]:
        """The state and the overview of now."""
        content = self.stream.content()
        state = {name: content[name] for name in _KEPT}
        state["state"] = content["state"].tolist()
        self.serial = content["serial"]
        return encode(state), self._overview(content), [], []

    def summary(self, rows: list[Row]) -> GateSummary:
        """How the gate is doing; it needs no rows."""
        return self.stream.summary()  # type: ignore[no-any-return]

    def past(self, row: Row) -> dict[str, Any]:
        """What the history says of a request."""
        score, code, *_ = from_text(row.receipt)
        shown = decision_of(id_from(row.id), code)._asdict()
        return {"prediction": score, "groups": [], "shown": shown, "lam": None}

    def _overview(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """What a list of streams says of this one."""
        gate, certificate = self.stream, self.stream.certificate()
        state, limits, costs = content["state"], certificate.limits, gate.price
        codes, known = content["recent"], len(content["recent"])
        bits = int("".join(["01"[code >= str(ACTED)] for code in codes]) or "0", 2)
        return {
            **self.overview(content["watch"], state[PRICE:HEAD].tolist(), ("dearer", "cheaper")),
            "labels": certificate.judged, "levels": list(gate.terms.shares), "asked": None,
            "losses": [one.per_request if certificate.requests else None for one in limits],
            "accounts": [one.account for one in limits],
            "bounds": [one.bound.since_start for one in limits],
            "status": [certificate.status] * len(limits),
            "theta": [float(state[block(j) + S]) for j in range(len(limits))],
            "full": 0, "empty": 0, "coverage": [None, None], "recent": f"{bits:x}", "known": known,
            "width": None, "acted": [share(bits, min(known, n)) for n in (100, 1000)],
            "price": None if costs is None else [costs.times],
        }  # fmt: skip
