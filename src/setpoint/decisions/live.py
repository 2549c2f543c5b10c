"""A gate at work: requests in, decisions out, labels in, now, late, or for a sample only."""

import os
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict
from hashlib import blake2b
from math import inf
from typing import Any, NamedTuple

import numpy as np

from setpoint import _state_file
from setpoint._check import finite
from setpoint._html import table
from setpoint.alarms import Alarm, Episodes
from setpoint.decisions._machine import PLAIN, SMALL, Rules, compiled, rules
from setpoint.decisions._rule import (
    ACTED,
    AUDITED,
    BUDGET,
    CHANCE,
    PENDING,
    REQUESTS,
    WAITING,
    Z,
    block,
    renew,
    size,
)
from setpoint.decisions.certificate import Counts, GateCertificate, certify
from setpoint.decisions.terms import Terms
from setpoint.errors import (
    AmbiguousReceipt,
    AnsweredReceipt,
    ExpiredReceipt,
    InputError,
    ReceiptError,
    StateError,
    UnknownReceipt,
)
from setpoint.receipts import checked_id
from setpoint.state import Id

_REMEMBERED = 10_000
"""How many settled decisions, and how many deferred ones, are remembered by their ids."""
_RECENT = 1000
_REASONS = {PENDING: "pending", BUDGET: "budget"}


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
    """A decision that waits for a label, or has had one: what is needed of it then."""

    score: float
    code: int
    z: float
    chances: tuple[float, ...]
    ended: str = ""


class Gate:
    """Acts on a request or defers it to a person, so that errors keep to a budget.

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
        As for `Stream`: told when the budget shuts the gate ("full"), or when the mean loss of the
        last `window` requests lies more than `tolerance` above what was asked.

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
        "_coins", "_counts", "_hook", "_memory", "_numbers", "_open", "_recent", "_rules",
        "_secret", "_serial", "_settled", "_state", "_terms", "_view", "_watch",
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
        self._terms = terms
        secret = secrets.token_bytes(32) if secret is None else secret
        secret = secret.encode() if isinstance(secret, str) else secret
        self._secret = blake2b(secret, digest_size=32).digest()
        self._memory = np.zeros(size(len(terms.names)))
        self._counts, self._serial = Counts(), 0
        self._open: dict[Id, _Row] = {}
        self._settled: dict[Id, _Row] = {}
        self._recent: deque[int] = deque(maxlen=_RECENT)
        self._hook, self._watch = on_alarm, None
        self._run(np.array(terms.numbers))
        self._rules.begin(self._numbers, self._state)
        if on_alarm is not None:
            self._watch = Episodes(terms.shares, window, tolerance, one_sided=True)

    def _run(self, numbers: Any) -> None:
        """Runs the rule in plain Python, or as machine code where that has been asked for."""
        self._rules: Rules
        memory: Any = self._memory
        self._view: Any = memoryview(memory)  # numbers of Python's own
        self._state: Any
        if compiled(float(self._memory[REQUESTS])):
            self._rules, self._numbers, self._state = rules(), numbers, self._memory
        else:
            self._rules, self._numbers = PLAIN, tuple(numbers.tolist())
            self._state = self._view

    # A decision

    def decide(self, score: float, id: Id | None = None) -> Decision:
        """Acts on a request or defers it; a higher score is surer.

        The label comes under `id`, or under the number in the decision. A request that was decided
        before is answered as before.
        """
        score = score if type(score) is float and -inf < score < inf else finite(score, "score")
        if id is None:
            id, row = self._serial, None
        else:
            id = id if type(id) is str else checked_id(id)
            row = self._open.get(id) or self._settled.get(id)
        if row is not None:
            if row.score != score:
                raise InputError(
                    f"the request {id!r} was decided by the score {row.score:g}, got {score:g}: "
                    "use an id once"
                )
            return decision_of(id, row.code)
        terms, view, counts = self._terms, self._view, self._counts
        coin = terms.audits == 1.0 or self._coin(id)
        code = self._rules.decide(self._numbers, self._state, score, coin)
        if len(terms.names) == 1:
            chances: tuple[float, ...] = (view[block(0) + CHANCE],)
        else:
            chances = tuple(view[block(j) + CHANCE] for j in range(len(terms.names)))
        row = _Row(score, code, view[Z], chances)
        if id == self._serial or (type(id) is int and id > self._serial):
            self._serial = id + 1
        self._recent.append(code)
        if code == ACTED:
            counts.acted += 1
            self._close(id, row, "unaudited")
        else:
            if code == AUDITED:
                counts.acted += 1
                counts.audited += 1
            self._open[id] = row
            if len(self._open) > _REMEMBERED + view[WAITING]:
                self._forget()
        if self._watch is not None and code != AUDITED:
            self._look(code == BUDGET, (0.0,) * len(chances))
        if view[REQUESTS] == SMALL:
            self._run(np.array(terms.numbers))
        return decision_of(id, code)

    def _coin(self, id: Id) -> bool:
        """Whether an action is audited: by chance, and always the same for an id."""
        digest = blake2b(repr(id).encode(), digest_size=8, key=self._secret).digest()
        return int.from_bytes(digest, "big") < self._terms.audits * 2.0**64

    def update(self, wrong: Any = None, id: Id | None = None, *, loss: Any = None) -> None:
        """Takes in whether an action was wrong, or its loss from 0 to 1; late and in any order.

        Of a deferred request it says whether acting would have been wrong: it teaches and costs
        nothing. Of an action that no coin drew it changes nothing. With several limits a mapping
        has a value for each. Without an id it is about the only action that waits.
        """
        losses = self._terms.losses(wrong, loss)
        id, row = self._find(id)
        counts, numbers = self._counts, self._numbers
        if row.code == AUDITED:
            self._rules.answer(numbers, self._state, row.z, row.chances, losses)
            counts.judged += 1
        elif row.code == ACTED:
            counts.complaints += 1
        else:
            self._rules.teach(numbers, self._state, row.z, losses)
            counts.deferred += 1
        self._close(id, row, "answered")
        if self._watch is not None and row.code == AUDITED:
            self._look(False, losses)

    def drop(self, id: Id | None = None) -> None:
        """Says that a label will not come: an action that waits for it counts as wrong."""
        id, row = self._find(id)
        if row.code == ACTED:
            raise InputError(f"no label is wanted of the request {id!r}: no coin drew it")
        if row.code == AUDITED:
            self._rules.lose(self._numbers, self._state, row.chances)
            self._counts.dropped += 1
        self._close(id, row, "dropped")
        if self._watch is not None and row.code == AUDITED:
            self._look(False, (1.0,) * len(row.chances))

    def change(self, terms: Terms) -> GateCertificate:
        """Holds other terms from now on; the certificate of those that end.

        What was learnt of the scores stays. The account begins again: actions that wait for their
        labels count as its first requests.

        >>> import setpoint as sp
        >>> gate = sp.gate(errors=0.05)
        >>> before = gate.change(sp.decisions.Terms(errors=0.02))
        >>> gate.terms.asked
        ('errors ≤ 2 % of requests',)
        """
        if terms.names != self._terms.names:
            raise InputError(
                f"a gate keeps its limits, {', '.join(self._terms.names)}; got "
                f"{', '.join(terms.names)}: begin another gate"
            )
        waiting = int(self._memory[WAITING])
        if waiting and terms.audits != self._terms.audits:
            raise InputError(
                f"audits can be changed from {self._terms.audits:g} to {terms.audits:g} once no "
                f"action waits for its label; {waiting:,} do: answer or drop them first"
            )
        certificate, numbers = self.certificate(), np.array(terms.numbers)
        self._terms, self._counts = terms, Counts(acted=waiting, audited=waiting)
        renew(numbers, self._memory)
        self._run(numbers)
        if self._watch is not None:
            self._watch.begin(terms.shares)
        return certificate

    def _find(self, id: Id | None) -> tuple[Id, _Row]:
        """The decision that a label is about."""
        if id is None:
            waits = [name for name, row in self._open.items() if row.code == AUDITED]
            if len(waits) != 1:
                error = AmbiguousReceipt if waits else UnknownReceipt
                raise error(f"{len(waits):,} actions wait for their labels: say which by its id")
            id = waits[0]
        id = id if type(id) is str else checked_id(id)
        row = self._open.get(id) or self._settled.get(id)
        if row is None:
            raise UnknownReceipt(f"no decision is known under the id {id!r}")
        if row.ended not in ("", "unaudited"):
            raise self._ended(id, row)
        return id, row

    def _ended(self, id: Id, row: _Row) -> ReceiptError:
        if row.ended == "answered":
            return AnsweredReceipt(f"the request {id!r} already has its label")
        return ExpiredReceipt(f"the request {id!r} was given up ({row.ended})")

    def _close(self, id: Id, row: _Row, how: str) -> None:
        self._open.pop(id, None)
        self._settled[id] = row._replace(ended=how)
        if len(self._settled) > _REMEMBERED:
            del self._settled[next(iter(self._settled))]

    def _forget(self) -> None:
        """Gives up the oldest deferred request: its label could only teach."""
        oldest = next(id for id, row in self._open.items() if row.code != AUDITED)
        self._close(oldest, self._open[oldest], "forgotten")

    def _look(self, shut: bool, losses: tuple[float, ...]) -> None:
        p, watch = self._terms.audits, self._watch
        if watch is not None:
            hook = (lambda _: None) if self._hook is None else self._hook
            watch.look(inf if shut else 0.0, [loss / p for loss in losses], hook)

    # What it knows

    @property
    def terms(self) -> Terms:
        """What the gate holds."""
        return self._terms

    @property
    def pending(self) -> tuple[Id, ...]:
        """The actions that wait for their labels, oldest first."""
        return tuple(id for id, row in self._open.items() if row.code == AUDITED)

    @property
    def state(self) -> np.ndarray[Any, Any]:
        """A copy of what the rule remembers."""
        return self._memory.copy()

    def row(self, id: Id) -> Any:
        """What is kept of a decision: its score, its code, and what its label needs."""
        row = self._open.get(id) or self._settled[id]
        return row[:4]

    def recall(self, id: Id, row: Any, ended: str = "") -> None:
        """Gives back a settled decision that was kept elsewhere."""
        self._settled.setdefault(id, _row((*row, ended)))

    @property
    def open_ids(self) -> Any:
        """The decisions whose labels are awaited, or would teach."""
        return self._open.keys()

    def shares(self, last: int) -> float | None:
        """The share of the last requests, up to 1,000, that were acted on."""
        codes = list(self._recent)[-last:]
        return sum(code >= ACTED for code in codes) / len(codes) if codes else None

    @property
    def alarmed(self) -> str:
        """The alarm that lasts: "window", "full", or none."""
        watch = self._watch
        if watch is None:
            return ""
        return "window" if any(watch.alarmed) else "full" if watch.saturation["full"] else ""

    def certificate(self) -> GateCertificate:
        """What is guaranteed of the actions, and what came out."""
        return certify(self._terms, self._memory, Counts(**asdict(self._counts)))

    def summary(self) -> "GateSummary":
        """How the gate is doing; print it."""
        codes, certificate = self._recent, self.certificate()
        shares = {
            "acted": sum(code >= ACTED for code in codes), "score": codes.count(0),
            "budget": codes.count(BUDGET), "pending": codes.count(PENDING),
        }  # fmt: skip
        return GateSummary(certificate, len(codes), shares)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def replay(self, scores: Any, wrong: Any, **options: Any) -> Any:
        """What a new gate of these terms would have done on a log: see `decisions.replay`."""
        from setpoint.decisions.log import replay

        return replay(self._terms, scores, wrong, **options)

    # Saved and loaded

    def content(self) -> dict[str, Any]:
        """Everything but the seed of the coins, as plain values."""
        return {
            "terms": self._terms.as_dict(), "state": self._memory.copy(), "serial": self._serial,
            "counts": asdict(self._counts), "recent": list(self._recent),
            "open": [(id, tuple(row)) for id, row in self._open.items()],
            "settled": [(id, tuple(row)) for id, row in self._settled.items()],
            "watch": None if self._watch is None else self._watch.content(),
        }  # fmt: skip

    def restore(self, content: Mapping[str, Any]) -> None:
        """Takes over what `content` gave, whole or not at all."""
        terms = Terms(**content["terms"])
        memory = np.array(content["state"], float)
        if memory.shape != (size(len(terms.names)),) or not np.isfinite(memory).all():
            raise StateError("the state of the gate does not fit its terms")
        rows = [{_id(id): _row(row) for id, row in content[part]} for part in ("open", "settled")]
        waits = sum(row.code == AUDITED for row in rows[0].values())
        if waits != memory[WAITING]:
            raise StateError(f"{waits:,} of {memory[WAITING]:,.0f} actions that wait are there")
        counts, watch = Counts(**content["counts"]), content["watch"]
        watched = None if watch is None else Episodes.restore(terms.shares, watch, one_sided=True)
        self._terms, self._memory, self._counts = terms, memory, counts
        (self._open, self._settled), self._serial = rows, int(content["serial"])
        self._recent = deque(content["recent"], maxlen=_RECENT)
        self._watch = watched
        self._run(np.array(terms.numbers))

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
        return f"<Gate of {self._terms!r} after {int(self._memory[REQUESTS]):,} requests>"


def _row(values: Any) -> _Row:
    score, code, z, chances, *ended = values
    return _Row(float(score), int(code), float(z), tuple(chances), *ended)


def _id(id: Any) -> Id:
    return tuple(id) if isinstance(id, list) else id


def decision_of(id: Id, code: int) -> Decision:
    """A decision from its code."""
    return Decision(id, code >= ACTED, code == AUDITED, _REASONS.get(code, "score"))


class GateSummary(NamedTuple):
    """How a gate is doing: its certificate, and how the last requests were decided."""

    certificate: GateCertificate
    recent: int
    decided: dict[str, int]

    def lines(self) -> list[tuple[str, str]]:
        """What there is to say, and its names."""
        all_, n = self.certificate, max(self.recent, 1)
        requests, acted = max(all_.requests, 1), all_.counts.acted
        last = f"{self.decided['acted'] / n:.1%} of the last {self.recent:,}"
        said = [("acted on", f"{acted:,} of {all_.requests:,} ({acted / requests:.1%}); {last}")]
        for one in all_.limits:
            name = "errors" if one.name == "errors" else one.name
            estimate = "about " if all_.terms.audits < 1.0 else ""
            asked = one.asked.removeprefix("errors ")
            rates = f"{one.per_request:.2%} of requests, {one.per_action:.1%} of actions"
            said.append((name, f"{estimate}{rates}; asked {asked}"))
        shut = [
            f"{self.decided[why] / n:.1%} by {words}"
            for why, words in (("budget", "the budget"), ("pending", "labels that wait"))
            if self.decided[why]
        ]
        said.append(("pending", f"{all_.pending:,} actions wait for their labels"))
        return [*said, ("deferred", ", ".join(shut))] if shut else said

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {**self.certificate.as_dict(), "recent": self.recent, "decided": self.decided}

    def __str__(self) -> str:
        return "\n".join(f"{name:<12}{text}" for name, text in self.lines())

    def _repr_html_(self) -> str:
        return table(self.lines())


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
    """A gate before two models: act with the cheap one, or defer to the dear one.

    An error is an answer of the cheap model that is wrong where the dear one is right. An audit
    calls the dear model as well, in the shadow.

    >>> import setpoint as sp
    >>> router = sp.route(errors=0.05, audits=0.1, secret="for this example")
    >>> choice = router.decide(score=0.8, id="question 1")
    >>> choice.act, choice.audit  # ask the cheap model; no shadow call is wanted
    (True, False)
    """
    return gate(errors, audits, sure=sure, secret=secret)
