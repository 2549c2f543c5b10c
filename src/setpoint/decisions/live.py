"""A gate at work: requests in, decisions out, labels in, now, late, or for a sample only."""

import os
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import cache
from hashlib import blake2b
from math import inf
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from setpoint import _state_file, errors
from setpoint._check import finite, one_by_one
from setpoint._html import percent
from setpoint.alarms import Alarm, Episodes
from setpoint.bulk.compile import SMALL, called, compiled
from setpoint.decisions.certificate import (
    GateCertificate,
    GatePrice,
    GateSummary,
    alarming,
    certify,
    price,
)
from setpoint.decisions.terms import Terms
from setpoint.errors import InputError, StateError
from setpoint.receipts import checked_id
from setpoint.state import Id
from setpoint.steps import gate as rule
from setpoint.steps.gate import ACTED, AUDITED, BUDGET, HEAD, PRICE, block, size
from setpoint.watch import BLOCK, LATE, NOW

_REMEMBERED = 10_000
"""How many decisions are remembered once they are settled, or if their labels cost nothing."""
_RECENT = 1000
_SILENT = "actions wait for their labels", "each may be one error more than was asked"
REASONS = ("score", "budget", "pending", "score", "score")
"""Why it was decided so, by the code of a decision."""
T = TypeVar("T")


@cache
def fast() -> Any:
    """The functions of the rule as machine code."""
    names = ("decide", "answer", "lose", "teach", "play")
    return SimpleNamespace(**{name: called(getattr(rule, name)) for name in names})


class Decision(NamedTuple):
    """What a gate decided: true where it acts.

    `audit` asks for the label of this action, which is wanted for every one without audits.
    `reason` is "score", "budget" where nothing may be acted on until errors have been paid off, or
    "pending" where too many actions wait for their labels.
    """

    id: Id
    act: bool
    audit: bool
    reason: str

    def __bool__(self) -> bool:
        return self.act


class _Row(NamedTuple):
    """A decision: what is needed of it when its label comes, and how it ended."""

    score: float
    code: int
    z: float
    chances: tuple[float, ...]
    ended: str = ""


class Gate:
    """Acts on a request or defers it to a person, so that errors stay within a budget.

    `gate` makes one. The bound holds for every stream of scores and errors: nothing is assumed of
    the score, which only decides how many requests can be acted on. A gate belongs to one thread
    at a time; after an error it is as it was before the call.

    Parameters
    ----------
    terms
        What to hold.
    secret
        The seed of the coins, where several processes shall toss the same; by default a random
        one. It is in no state, file or printout.
    on_alarm, window, tolerance
        As for `Stream`: called when the gate acts on much less ("dearer") or more ("cheaper") than
        it did, labels stop coming ("silence"), the budget shuts the gate ("full"), or the mean
        loss of the last `window` requests lies more than `tolerance` above what was asked.

    Examples
    --------
    >>> import setpoint as sp
    >>> gate = sp.gate(errors=0.05)
    >>> decision = gate.decide(score=0.93, id="req-17")
    >>> decision.act, decision.reason
    (True, 'score')
    >>> gate.update(wrong=False, id="req-17")
    >>> gate.certificate().limits[0].bound.since_start
    10.0
    """

    __slots__ = (
        "_chances", "_hook", "_memory", "_numbers", "_open", "_past", "_recent",
        "_remembered", "_rules", "_secret", "_serial", "_state", "_terms", "_view", "_watch",
    )  # fmt: skip

    def __init__(
        self,
        terms: Terms,
        *,
        secret: str | bytes | None = None,
        on_alarm: Callable[[Alarm], Any] | None = None,
        window: int | None = None,
        tolerance: float | None = None,
    ) -> None:
        if (window is None) != (tolerance is None) or (window is not None and on_alarm is None):
            raise InputError(
                "window, tolerance and on_alarm go together: how many requests to look at, how far "
                "above what was asked, and a function to call"
            )
        secret = secrets.token_bytes(32) if secret is None else _bytes(secret)
        self._secret = blake2b(secret, digest_size=32).digest()
        self._serial, self._remembered = 0, _REMEMBERED
        self._open: dict[Id, _Row] = {}  # actions that wait for their labels
        self._past: dict[Id, _Row] = {}  # those that have ended, or whose labels cost nothing
        self._recent: deque[int] = deque(maxlen=_RECENT)
        self._hook: Callable[[Alarm], Any] = on_alarm or (lambda _: None)
        self._watch: Episodes | None = None
        memory = np.zeros(size(len(terms.names)))
        rule.begin(terms.numbers, memory)
        self._run(terms, memory)
        if on_alarm is not None:
            self._watch = Episodes(terms.shares, window, tolerance, one_sided=True)

    def _run(self, terms: Terms, memory: Any) -> None:
        """Holds terms from a state on, in plain Python, or as machine code where that pays."""
        self._terms = terms
        self._memory: np.ndarray[Any, Any] = memory
        self._chances = [block(j) + rule.CHANCE for j in range(len(terms.names))]
        self._view: Any = memoryview(memory)  # numbers of Python's own
        quick = compiled(float(memory[rule.REQUESTS]))
        held: Any = (rule, terms.numbers, self._view)
        held = (fast(), np.array(terms.numbers), memory) if quick else held
        self._rules, self._numbers, self._state = held

    # A decision

    def decide(self, score: float, id: Id | None = None) -> Decision:
        """Acts on a request or defers it; a higher score is surer.

        The label comes under `id`, or under the number in the decision. A request that was decided
        before is answered as before.
        """
        score = score if type(score) is float and -inf < score < inf else finite(score, "score")
        if id is None:
            id = self._serial
        else:
            id = id if type(id) is str else checked_id(id)
            row = self._open.get(id) or self._past.get(id)
            if row is not None:
                if row.score != score:
                    raise InputError(
                        f"the request {id!r} was decided by the score {row.score:g}, got "
                        f"{score:g}: use an id once"
                    )
                return decision_of(id, row.code)
        view = self._view
        coin = self._terms.audits == 1.0 or self._coin(id)
        code = self._rules.decide(self._numbers, self._state, score, coin)
        row = _Row(score, code, view[rule.Z], tuple([view[at] for at in self._chances]))
        if id == self._serial or (type(id) is int and id > self._serial):
            self._serial = id + 1
        self._recent.append(code)
        if code == AUDITED:
            self._open[id] = row
        else:
            self._remember(id, row)
        if self._watch is not None:
            self._observe(self._watch, code)
        if view[rule.REQUESTS] == SMALL:
            self._run(self._terms, self._memory)
        return decision_of(id, code)

    def _coin(self, id: Id) -> bool:
        """Whether an action is audited: by chance, and the same for an id while it is remembered.

        Later it is tossed again, or whoever has seen it could use the id of a coin of their liking.
        """
        toss = repr((id, self._view[rule.SCORES] // self._remembered)).encode()
        digest = blake2b(toss, digest_size=8, key=self._secret).digest()
        return int.from_bytes(digest, "big") < self._terms.audits * 2.0**64

    def update(self, wrong: Any = None, id: Id | None = None, *, loss: Any = None) -> None:
        """Takes in whether an action was wrong, or its loss from 0 to 1; late and in any order.

        Of a deferred request it says whether acting would have been wrong: it teaches and costs
        nothing. Of an action that no coin drew it changes nothing. With several limits a mapping
        has a value for each. Without an id it is about the only action that waits.
        """
        losses = self._terms.losses(wrong, loss)
        id, row = self._find(id)
        if row.code == AUDITED:
            self._rules.answer(self._numbers, self._state, row.z, row.chances, losses)
        elif row.code == ACTED:
            self._view[rule.COMPLAINTS] += 1.0
        else:
            self._rules.teach(self._numbers, self._state, row.z, losses)
        self._close(id, row, "answered", losses)

    def drop(self, id: Id | None = None) -> None:
        """Says that a label will not come: an action that waits for it counts as wrong."""
        id, row = self._find(id)
        if row.code == ACTED:
            raise InputError(f"no label is wanted of the request {id!r}: no coin drew it")
        if row.code == AUDITED:
            self._rules.lose(self._numbers, self._state, row.chances)
        self._close(id, row, "dropped", (1.0,) * len(row.chances))

    def change(self, terms: Terms) -> GateCertificate:
        """Holds other terms from now on; the certificate of those that end.

        What was learnt of the scores stays. The account begins again: actions that wait for their
        labels count as its first requests. So does the reference of the price.
        """
        if terms.names != self._terms.names:
            raise InputError(
                f"a gate keeps its limits, {', '.join(self._terms.names)}; got "
                f"{', '.join(terms.names)}: begin another gate"
            )
        waiting = len(self._open)
        if waiting and terms.audits != self._terms.audits:
            raise InputError(
                f"audits can be changed from {self._terms.audits:g} to {terms.audits:g} once no "
                f"action waits for its label; {waiting:,} do: answer or drop them first"
            )
        certificate = self.certificate()
        rule.renew(terms.numbers, self._memory)
        self._run(terms, self._memory)
        if self._watch is not None:
            self._watch.begin(terms.shares)
        return certificate

    def _find(self, id: Id | None) -> tuple[Id, _Row]:
        """The decision that a label is about."""
        if id is None:
            if len(self._open) != 1:
                kind = errors.AmbiguousReceipt if self._open else errors.UnknownReceipt
                raise kind(
                    f"{len(self._open):,} actions wait for their labels: say which by its id"
                )
            id = next(iter(self._open))
        id = id if type(id) is str else checked_id(id)
        row = self._open.get(id) or self._past.get(id)
        if row is None:
            raise errors.UnknownReceipt(f"no decision is known under the id {id!r}")
        if row.ended == "answered":
            raise errors.AnsweredReceipt(f"the request {id!r} already has its label")
        if row.ended:
            raise errors.ExpiredReceipt(f"the request {id!r} was given up")
        return id, row

    def _remember(self, id: Id, row: _Row) -> None:
        self._past[id] = row
        if len(self._past) > self._remembered:
            del self._past[next(iter(self._past))]

    def _close(self, id: Id, row: _Row, how: str, losses: tuple[float, ...]) -> None:
        del (self._open if row.code == AUDITED else self._past)[id]
        self._remember(id, row._replace(ended=how))
        if self._watch is not None and row.code == AUDITED:
            p = self._terms.audits
            self._watch.look(0.0, [loss / p for loss in losses], self._hook)

    def _observe(self, watch: Episodes, code: int) -> None:
        """Calls the hook for what has begun with a request."""
        view = self._view
        if code == AUDITED and view[rule.LABELS]:
            usual = max(view[rule.USUAL], view[PRICE + NOW + LATE])
            watch.await_labels(self._open, usual, self._hook, _SILENT)
        elif code != AUDITED:
            watch.look(inf if code == BUDGET else 0.0, (0.0,) * len(self._chances), self._hook)
        if view[rule.GAP] == 0.0 and view[PRICE] == BLOCK:
            watch.cost((view[PRICE : PRICE + NOW], view[PRICE + NOW : HEAD]), self._hook, self._say)

    def _say(self, kind: str, since: int) -> str:
        """An alarm about the price in words; none for what a gate knows nothing of."""
        now = self.price
        if now is None or kind not in ("dearer", "cheaper"):
            return ""
        what = "less" if kind == "dearer" else "more"
        rates = ", ".join(percent(one.per_request) for one in self.certificate().limits)
        end = "" if kind == "dearer" else "; acknowledge it to make this the reference"
        return (
            f"the gate acts on {what} than it did since action {since:,}: on "
            f"{percent(now.share, 1)} of the requests, {percent(now.usual, 1)} before{end}; "
            f"errors are {rates} of the requests and the guarantee still holds"
        )

    # What it knows

    @property
    def terms(self) -> Terms:
        """The terms of the gate."""
        return self._terms

    @property
    def pending(self) -> tuple[Id, ...]:
        """The actions that wait for their labels, oldest first."""
        return tuple(self._open)

    @property
    def state(self) -> np.ndarray[Any, Any]:
        """A copy of what the rule remembers."""
        return self._memory.copy()

    @property
    def price(self) -> GatePrice | None:
        """The requests per action now, relative to a healthy past; None while unknown."""
        return price(self._memory)

    @property
    def alarms(self) -> dict[str, str]:
        """The alarms about the price that last, by kind, in words."""
        return {kind: self._say(kind, since) for kind, (_, since) in alarming(self._memory).items()}

    def acknowledge(self) -> None:
        """Takes what an action costs from now on as the new reference, and ends its alarms."""
        rule.acknowledge(self._memory)

    def certificate(self) -> GateCertificate:
        """What is guaranteed for the actions, and what was observed."""
        return certify(self._terms, self._memory)

    def summary(self) -> "GateSummary":
        """The summary of the gate; print it."""
        codes = self._recent
        shares = {"acted": sum(code >= ACTED for code in codes)}
        shares |= {why: codes.count(code) for code, why in enumerate(REASONS[:ACTED])}
        return GateSummary(self.certificate(), len(codes), shares, self.price, self.alarms)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def replay(self, scores: Any, wrong: Any, **options: Any) -> Any:
        """Runs a new gate with these terms on a log: see `decisions.replay`."""
        from setpoint.decisions.log import replay

        return replay(self._terms, scores, wrong, **options)

    # For those who keep a memory of their own

    def attempt(self, work: Callable[[], T]) -> T:
        """Runs several calls as one: if any fails, none has happened."""
        before = self.content()
        try:
            return work()
        except BaseException:
            self.restore(before)
            raise

    def row(self, id: Id) -> tuple[Any, ...]:
        """The stored row of a decision whose label may still arrive."""
        return (self._open.get(id) or self._past[id])[:4]

    def recall(self, id: Id, row: Iterable[Any]) -> None:
        """Gives back a decision that was kept elsewhere."""
        self._past.setdefault(id, _Row(*row))

    def share_coins(self, other: "Gate") -> None:
        """Tosses the coins of another gate, in whose place it is."""
        self._secret = other._secret

    def hand_over(self) -> None:
        """Forgets all decisions but the actions that wait for their labels: others answer twice."""
        self._past.clear()
        self._remembered = 1

    # Saved and loaded

    def content(self) -> dict[str, Any]:
        """Everything but the seed of the coins, as plain values."""
        return {
            "terms": self._terms.as_dict(), "state": self._memory.copy(), "serial": self._serial,
            "recent": "".join(map(str, self._recent)),
            "open": [(id, *row) for id, row in self._open.items()],
            "past": [(id, *row) for id, row in self._past.items()],
            "watch": None if self._watch is None else self._watch.content(),
        }  # fmt: skip

    def restore(self, content: Mapping[str, Any]) -> None:
        """Takes over what `content` gave, whole or not at all."""
        terms = Terms(**content["terms"])
        memory = np.array(content["state"], float)
        if memory.shape != (size(len(terms.names)),) or not np.isfinite(memory).all():
            raise StateError("the state of the gate does not fit its terms")
        opened, past = ({id: _Row(*row) for id, *row in content[n]} for n in ("open", "past"))
        if len(opened) != memory[rule.WAITING]:
            rows = f"{len(opened):,} of {memory[rule.WAITING]:,.0f}"
            raise StateError(f"{rows} actions that wait are there")
        watch = content["watch"]
        watched = None if watch is None else Episodes.restore(terms.shares, watch, one_sided=True)
        self._open, self._past, self._serial = opened, past, int(content["serial"])
        self._recent = deque(map(int, content["recent"]), maxlen=_RECENT)
        self._watch = watched
        self._run(terms, memory)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything but the seed of the coins to one file, whole or not at all."""
        _state_file.write(path, "gate", self.content())

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        secret: str | bytes | None = None,
        on_alarm: Callable[[Alarm], Any] | None = None,
    ) -> "Gate":
        """The gate saved at `path`; it tosses new coins unless it gets the secret it had."""
        content = _state_file.read(path, "gate")
        with _state_file.intact(path):
            return cls.restored(content, secret=secret, on_alarm=on_alarm)

    @classmethod
    def restored(
        cls,
        content: Mapping[str, Any],
        *,
        secret: str | bytes | None = None,
        on_alarm: Callable[[Alarm], Any] | None = None,
    ) -> "Gate":
        """The gate that gave `content`."""
        made = cls(Terms(**content["terms"]), secret=secret, on_alarm=on_alarm)
        made.restore(content)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Gate.restored, (deepcopy(self.content()),)

    def __repr__(self) -> str:
        return f"<Gate of {self._terms!r} after {int(self._memory[rule.REQUESTS]):,} requests>"


def _bytes(secret: Any) -> bytes:
    """A secret as bytes."""
    if not isinstance(secret, str | bytes):
        raise InputError(f"secret must be text or bytes, got {secret!r}")
    return secret.encode() if isinstance(secret, str) else secret


def decision_of(id: Id, code: int) -> Decision:
    """A decision from its code."""
    return Decision(id, code >= ACTED, code == AUDITED, REASONS[code])


class Gates(dict[Id, Gate]):
    """One gate per name, all with the same terms, created on first use.

    Each keeps a budget of its own, so no customer pays for the errors of another.

    Parameters
    ----------
    terms
        What each holds: `Terms`, or a gate to begin others like it.
    secret
        As for `Gate`; every gate mixes its name into it.
    """

    def __init__(self, terms: Terms | Gate, *, secret: str | bytes | None = None) -> None:
        super().__init__()
        self.terms = terms.terms if isinstance(terms, Gate) else terms
        self._secret = None if secret is None else _bytes(secret)

    def __missing__(self, name: Id) -> Gate:
        name = checked_id(name, "the name of a gate")
        self[name] = begun = Gate(self.terms, secret=self._secret_of(name))
        return begun

    def _secret_of(self, name: Id) -> bytes | None:
        return None if self._secret is None else self._secret + repr(name).encode()

    def decide(
        self, names: Iterable[Id], scores: Any, ids: Iterable[Id] | None = None
    ) -> list[Decision]:
        """Decides on a request for each name, in the order given."""
        listed, rows = list(names), [finite(score, "score") for score in one_by_one(scores)]
        keys: list[Id | None] = [None] * len(listed) if ids is None else list(ids)
        if not len(listed) == len(rows) == len(keys):
            raise InputError(
                f"got {len(listed):,} names, {len(rows):,} scores and {len(keys):,} ids"
            )
        each = zip(listed, rows, keys, strict=True)
        return [self[name].decide(score, id) for name, score, id in each]

    def certificates(self) -> dict[Id, GateCertificate]:
        """The certificate of each gate."""
        return {name: gate.certificate() for name, gate in self.items()}

    def worst(self, most: int = 10) -> list[tuple[Id, GateCertificate]]:
        """The gates that have used most of their budget, with their certificates."""

        def used(pair: tuple[Id, GateCertificate]) -> float:
            return max(one.account / one.bound.since_start for one in pair[1].limits)

        return sorted(self.certificates().items(), key=used, reverse=True)[:most]

    def content(self) -> dict[str, Any]:
        """Everything but the seed of the coins, as plain values."""
        rows = [(name, gate.content()) for name, gate in self.items()]
        return {"terms": self.terms.as_dict(), "gates": rows}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes every gate to one file, whole or not at all; no seed of coins is in it."""
        _state_file.write(path, "gates", self.content())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, secret: str | bytes | None = None) -> "Gates":
        """The gates saved at `path`."""
        content = _state_file.read(path, "gates")
        with _state_file.intact(path):
            return cls.restored(content, secret=secret)

    @classmethod
    def restored(cls, content: Mapping[str, Any], *, secret: str | bytes | None = None) -> "Gates":
        """The gates that gave `content`."""
        gates = cls(Terms(**content["terms"]), secret=secret)
        for name, state in content["gates"]:
            gates[name] = Gate.restored(state, secret=gates._secret_of(name))
        return gates

    def __reduce__(self) -> tuple[Any, ...]:
        return Gates.restored, (deepcopy(self.content()),)

    def __repr__(self) -> str:
        return f"<{len(self):,} gates of {self.terms!r}>"


def gate(
    errors: float | Mapping[str, float] = 0.05,
    audits: float = 1.0,
    max_pending: int | None = None,
    *,
    per: str = "request",
    spare: float = 0.002,
    sure: float | None = None,
    limit: float = 10.0,
    secret: str | bytes | None = None,
    on_alarm: Callable[[Alarm], Any] | None = None,
    window: int | None = None,
    tolerance: float | None = None,
) -> Gate:
    """A gate: it acts on requests, or defers them, within a budget of errors.

    The options are those of `Terms` and `Gate`.

    >>> import setpoint as sp
    >>> gate = sp.gate(errors={"wrong": 0.05, "unsafe": 0.01}, audits=0.2)
    >>> gate.terms.asked
    ('errors ≤ 5 % of requests', 'errors ≤ 1 % of requests')
    """
    terms = Terms(errors, audits, max_pending, per, spare, sure, limit)
    return Gate(terms, secret=secret, on_alarm=on_alarm, window=window, tolerance=tolerance)


def route(
    errors: float = 0.05,
    audits: float = 0.1,
    *,
    sure: float | None = None,
    secret: str | bytes | None = None,
) -> Gate:
    """A gate in front of two models: use the cheap one, or defer to the expensive one.

    An error is a wrong answer of the cheap model to a request that the expensive one gets right.
    An audit calls the expensive model too, in the shadow.
    """
    return gate(errors, audits, sure=sure, secret=secret)
