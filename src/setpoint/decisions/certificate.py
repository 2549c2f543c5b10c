"""What a gate guarantees for every stream and what only probably, what it costs, how it does."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from setpoint._html import percent, preformatted
from setpoint.decisions.terms import Terms
from setpoint.steps import gate as rule
from setpoint.steps.gate import HEAD, PRICE, block, most_errors
from setpoint.summary import Lines
from setpoint.watch import NOW, WIDE, WIDTH, lasting, price_of


@dataclass(frozen=True, slots=True)
class Bound:
    """The most errors above what was asked, for every stream (Theorem C of docs/why.md).

    Since the start; from now on, as long as no more labels wait than lately; on any window, None
    for a sure gate; and if every action that waits is wrong.
    """

    since_start: float
    from_now: float
    window: float | None
    worst: float


@dataclass(frozen=True, slots=True)
class Probable:
    """The most errors there are, at every time at once, with a probability over the coins."""

    errors: float
    per_request: float
    per_action: float
    probability: float


@dataclass(frozen=True, slots=True)
class LimitCertificate:
    """What is guaranteed for one limit, and what was observed.

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
    """What is guaranteed for a gate's actions; print it.

    Of the requests it counts actions, labels by what they were of, and labels that never came.
    """

    terms: Terms
    requests: int
    acted: int
    audited: int
    judged: int
    dropped: int
    deferred: int
    complaints: int
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
        return {"status": self.status, **asdict(self)}

    def __str__(self) -> str:
        n, several = max(self.requests, 1), len(self.limits) > 1
        acted = f"acted on {self.acted:,} ({percent(self.acted / n, 1)})"
        lines = [("requests", f"{self.requests:,}; {acted}")]
        for one in self.limits:
            lines += self._of(one, f" {one.name}" if several else "")
        labels = f"{self.pending:,} actions wait for theirs"
        if self.dropped:
            labels += f"; {self.dropped:,} never came and count as wrong"
        if self.complaints:
            labels += f"; {self.complaints:,} of actions that no coin drew are not counted"
        lines += [("labels", labels), ("premises", "; ".join(self.premises))]
        each = [f"{one.asked}{f' ({one.name})' if several else ''}" for one in self.limits]
        return "\n".join(
            [f"gate: {' and '.join(each)}", *(f"  {name:<22}{text}" for name, text in lines)]
        )

    def _of(self, one: LimitCertificate, name: str) -> list[tuple[str, str]]:
        """The lines of one limit."""
        terms, bound = self.terms, one.bound
        window = "" if bound.window is None else f"; on any window {bound.window:,.1f}"
        said = (
            f"at no time more than {bound.since_start:,.1f} above what you allow (now "
            f"{one.account:+,.1f}); from now on {bound.from_now:,.1f}{window}"
        )
        if terms.audits == 1.0:
            return [(f"errors{name}", f"{one.errors:,.9g} = {_rates(one)}"), ("guaranteed", said)]
        drawn = f"{self.audited:,} actions, chance {terms.audits:g}"
        lines = [
            (f"audited{name}", drawn),
            ("estimate", f"{one.errors:,.0f} errors = {_rates(one)}"),
        ]
        if terms.sure is None:
            lines.append(("guaranteed", f"the estimate is {said}"))
        else:
            lines.append((f"with {terms.sure:.3g}", f"the true errors are {said}"))
        if (most := one.probable) is not None:
            said = f"at most {most.errors:,.0f} errors = {_rates(most)}, with probability "
            said += f"{most.probability:.3g} over the gate's own coins, at all times at once"
            lines.append(("probably", said))
        return lines

    def _repr_html_(self) -> str:
        return preformatted(self)


def _rates(one: LimitCertificate | Probable) -> str:
    return f"{percent(one.per_request)} of requests, {percent(one.per_action, 1)} of actions"


def certify(terms: Terms, state: Any) -> GateCertificate:
    """The certificate of a gate from its state."""
    state = np.asarray(state).tolist()
    counts: Any = [int(count) for count in state[rule.REQUESTS : rule.WAITING + 1]]
    requests, actions, *_, waiting = counts
    p = terms.audits
    delta = 1.0 - (terms.sure or _SURE)
    n, acted, limits = max(requests, 1), max(actions, 1), list[LimitCertificate]()
    for j, (name, asked) in enumerate(zip(terms.names, terms.asked, strict=True)):
        at, (r, q) = block(j), terms.allowed[j]
        spent, most = state[at + rule.SPENT], state[at + rule.MOST]
        first, rise, window = 0.0, 1.0, None
        if terms.sure is None:
            window = (most + rule.FLOOR + state[at + rule.WIDEST]) / p
        else:  # an audited error adds p times what it adds to the probable bound
            first = p * most_errors(0.0, p, delta)
            rise = p * (most_errors(spent + 1.0, p, delta) - most_errors(spent, p, delta))
        rise -= p * (r + q)
        account = state[at + rule.S] - state[at + rule.LIFTED] + first
        bound = Bound(
            (most + first) / p, (state[at + rule.BOUND] + first) / p, window,
            (account + rise * waiting) / p,
        )  # fmt: skip
        errors, probable = spent / p, None
        if p < 1.0:
            least = min(most_errors(spent + waiting, p, delta), float(actions))
            probable = Probable(least, least / n, least / acted, 1.0 - delta)
        limits.append(
            LimitCertificate(
                name, asked, errors, errors / n, errors / acted, account / p, bound, probable
            )
        )
    premises = _PREMISES[: 2 if p == 1.0 else None]
    fields: list[Any] = [terms, *counts, tuple(limits), premises]
    return GateCertificate(*fields)


_SURE = 0.95
"""The probability of what is said of the true errors, where a gate does not ask for another."""
_PREMISES = (
    "a deferred request costs nothing",
    "the label is right",
    "every action that a coin draws is judged, or dropped and counted as wrong",
    "the loss does not depend on the coin: an audit prevents no error, and a reviewer judges as if "
    "there were none",
    "nobody sees a coin before the action, or asks twice for one",
)
"""What the bounds rest on, for people to check; all but the first two are about audits."""


class GatePrice(NamedTuple):
    """The requests per action now, relative to a healthy past.

    `times` is how many times as many as then: 2 where the gate acts on half as much. `share` and
    `usual` are the shares acted on, now and then; the reference are the actions `first` to `last`,
    of `actions` so far. Now are about the last 100 actions.
    """

    times: float
    share: float
    usual: float
    first: int
    last: int
    actions: int

    def __str__(self) -> str:
        reference = f"actions {self.first:,}–{self.last:,}"
        return (
            f"acts on {percent(self.share, 1)} of the requests, {percent(self.usual, 1)} in the "
            "reference "
            f"({reference}): {self.times:.2g} × the requests for an action"
        )


def price(state: Any) -> GatePrice | None:
    """What an action costs by the state of a gate; None before there is a reference."""
    memory = state[PRICE:HEAD].tolist()
    made = price_of(memory)
    if made is None:
        return None
    share, usual = 1.0 / memory[NOW + WIDTH], 1.0 / memory[NOW + WIDE]
    return GatePrice(made.sets, share, usual, made.first, made.last, made.labels)


def alarming(state: Any) -> dict[str, tuple[int, int]]:
    """The alarms about the price that last: see `watch.lasting`."""
    kinds = lasting(state[PRICE:HEAD])
    return {kind: kinds[kind] for kind in ("dearer", "cheaper") if kind in kinds}


@dataclass(frozen=True, slots=True, repr=False)
class GateSummary(Lines):
    """How a gate is doing: its certificate, how the last requests were decided, and its price."""

    certificate: GateCertificate
    recent: int
    decided: dict[str, int]
    price: GatePrice | None
    alarms: dict[str, str]

    def lines(self) -> list[tuple[str, str]]:
        """The lines to print, with their names."""
        all_, n = self.certificate, max(self.recent, 1)
        requests, acted = max(all_.requests, 1), all_.acted
        last = f"{percent(self.decided['acted'] / n, 1)} of the last {self.recent:,}"
        share = percent(acted / requests, 1)
        said = [("acted on", f"{acted:,} of {all_.requests:,} ({share}); {last}")]
        for one in all_.limits:
            estimate = "about " if all_.terms.audits < 1.0 else ""
            asked = one.asked.removeprefix("errors ")
            said.append((one.name, f"{estimate}{_rates(one)}; asked {asked}"))
        shut = [
            f"{percent(self.decided[why] / n, 1)} by {words}"
            for why, words in (("budget", "the budget"), ("pending", "labels that wait"))
            if self.decided[why]
        ]
        said.append(("pending", f"{all_.pending:,} actions wait for their labels"))
        said += [("deferred", ", ".join(shut))] if shut else []
        said += [] if self.price is None else [("price", str(self.price))]
        return [*said, *(("alarm", words) for words in self.alarms.values())]

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        price = None if self.price is None else self.price._asdict()
        counted = {"recent": self.recent, "decided": self.decided}
        return {**self.certificate.as_dict(), **counted, "price": price, "alarms": self.alarms}

    def __repr__(self) -> str:
        return str(self)
