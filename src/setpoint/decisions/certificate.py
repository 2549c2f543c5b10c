"""The certificate of a gate: what holds for every stream, and what only probably."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from setpoint._html import preformatted
from setpoint.decisions.terms import Terms
from setpoint.steps.gate import (
    BOUND,
    LIFTED,
    MOST,
    REQUESTS,
    SPENT,
    WAITING,
    WIDEST,
    S,
    block,
    most_errors,
)

_FLOOR = 10.0


@dataclass(slots=True)
class Counts:
    """What a gate has counted: of actions, of labels, and of labels that never came."""

    acted: int = 0
    audited: int = 0
    judged: int = 0
    dropped: int = 0
    deferred: int = 0
    complaints: int = 0


class Bound(NamedTuple):
    """The most errors above what was asked, for every stream (Theorem A).

    Since the start; from now on, as long as no more labels wait than lately; on any window, None
    for a sure gate; and if every action that waits is wrong.
    """

    since_start: float
    from_now: float
    window: float | None
    worst: float


class Probable(NamedTuple):
    """The most errors there are, at every time at once, with a probability over the coins."""

    errors: float
    per_request: float
    per_action: float
    probability: float


@dataclass(frozen=True, slots=True)
class LimitCertificate:
    """What is guaranteed of one limit, and what came out.

    `errors` counts the wrong actions: with audits it is their estimate, audited errors by the
    chance of an audit. `account` is that number less what was allowed, over what is settled.
    """

    name: str
    asked: str
    errors: float
    per_request: float
    per_action: float
    account: float
    bound: Bound
    probable: Probable | None


@dataclass(frozen=True, slots=True)
class GateCertificate:
    """What is guaranteed of a gate's actions; print it."""

    terms: Terms
    requests: int
    counts: Counts
    pending: int
    limits: tuple[LimitCertificate, ...]
    premises: tuple[str, ...]

    @property
    def status(self) -> str:
        """ "guaranteed", or "says nothing yet" while the bound allows every request to be wrong."""
        early = any(limit.bound.since_start >= self.requests for limit in self.limits)
        return "says nothing yet" if early else "guaranteed"

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        limits = [
            {
                **{k: getattr(one, k) for k in ("name", "asked", "errors", "account")},
                "per_request": one.per_request, "per_action": one.per_action,
                "bound": one.bound._asdict(),
                "probable": None if one.probable is None else one.probable._asdict(),
            }
            for one in self.limits
        ]  # fmt: skip
        return {
            "status": self.status, "terms": self.terms.as_dict(), "requests": self.requests,
            "pending": self.pending, **asdict(self.counts), "limits": limits,
            "premises": list(self.premises),
        }  # fmt: skip

    def __str__(self) -> str:
        counts, n, several = self.counts, max(self.requests, 1), len(self.limits) > 1
        lines = [
            ("requests", f"{self.requests:,}; acted on {counts.acted:,} ({counts.acted / n:.1%})")
        ]
        for one in self.limits:
            lines += self._of(one, f" {one.name}" if several else "")
        labels = f"{self.pending:,} actions wait for theirs"
        if counts.dropped:
            labels += f"; {counts.dropped:,} never came and count as wrong"
        if counts.complaints:
            labels += f"; {counts.complaints:,} of actions that no coin drew are not counted"
        lines += [("labels", labels), ("premises", "; ".join(self.premises))]
        each = [f"{one.asked}{f' ({one.name})' if several else ''}" for one in self.limits]
        return "\n".join(
            [f"gate: {' and '.join(each)}", *(f"  {name:<22}{text}" for name, text in lines)]
        )

    def _of(self, one: LimitCertificate, name: str) -> list[tuple[str, str]]:
        """The lines of one limit."""
        terms, bound = self.terms, one.bound
        rates = f"{one.per_request:.2%} of requests, {one.per_action:.1%} of actions"
        window = "" if bound.window is None else f"; on any window {bound.window:.1f}"
        said = (
            f"at no time more than {bound.since_start:.1f} above what was asked (now "
            f"{one.account:+.1f}); from now on {bound.from_now:.1f}{window}"
        )
        if terms.audits == 1.0:
            return [(f"errors{name}", f"{one.errors:,.6g} = {rates}"), ("for every stream", said)]
        drawn = f"{self.counts.audited:,} actions, chance {terms.audits:g}"
        lines = [(f"audited{name}", drawn), ("estimate", f"{one.errors:,.0f} errors = {rates}")]
        if terms.sure is None:
            lines.append(("for every stream", f"the estimate is {said}"))
        else:
            lines.append((f"with {terms.sure:.3g}", f"the true errors are {said}"))
        if one.probable is not None:
            least, of_requests, of_actions, sure = one.probable
            lines.append(
                ("probably", f"at most {least:,.0f} errors = {of_requests:.2%} of requests, "
                 f"{of_actions:.1%} of actions, with probability {sure:.3g} over the gate's own "
                 "coins, at all times at once")
            )  # fmt: skip
        return lines

    def _repr_html_(self) -> str:
        return preformatted(self)


def certify(terms: Terms, state: Any, counts: Counts, probability: float = 0.95) -> GateCertificate:
    """The certificate of a gate from its state and what it has counted."""
    state = np.asarray(state).tolist()
    p, requests, waiting = terms.audits, int(state[REQUESTS]), int(state[WAITING])
    delta = terms.doubt or 1.0 - probability
    limits = []
    for j, (name, asked) in enumerate(zip(terms.names, terms.asked, strict=True)):
        at, (r, q) = block(j), terms.allowed[j]
        spent = state[at + SPENT]
        first = p * most_errors(0.0, p, delta) if terms.sure is not None else 0.0
        rise = _rise(terms, spent) - p * (r + q)
        window = None if terms.sure is not None else state[at + MOST] + _FLOOR + state[at + WIDEST]
        account = state[at + S] - state[at + LIFTED]
        bound = Bound(
            (state[at + MOST] + first) / p,
            (state[at + BOUND] + first) / p,
            None if window is None else window / p,
            (account + rise * waiting + first) / p,
        )
        errors, n, acted = spent / p, max(requests, 1), max(counts.acted, 1)
        probable = None
        if p < 1.0:
            least = min(most_errors(spent + waiting, p, delta), float(counts.acted))
            probable = Probable(least, least / n, least / acted, 1.0 - delta)
        limits.append(
            LimitCertificate(
                name, asked, errors, errors / n, errors / acted, (account + first) / p, bound,
                probable,
            )
        )  # fmt: skip
    return GateCertificate(terms, requests, counts, waiting, tuple(limits), _premises(terms))


def _rise(terms: Terms, spent: float) -> float:
    """What one more audited error adds to the account."""
    if terms.sure is None:
        return 1.0
    p, delta = terms.audits, terms.doubt
    return p * (most_errors(spent + 1.0, p, delta) - most_errors(spent, p, delta))


def _premises(terms: Terms) -> tuple[str, ...]:
    """What the bounds rest on, for people to check."""
    said = ["a deferred request costs nothing", "the label is right"]
    if terms.audits < 1.0:
        said += [
            "every action that a coin draws is judged, or dropped and counted as wrong",
            "the loss does not depend on the coin: an audit prevents no error, and a reviewer "
            "judges as if there were none",
            "nobody sees a coin before the action, or asks twice for one",
        ]
    return tuple(said)
