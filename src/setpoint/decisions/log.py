"""A gate over a log: what it would have done, beside what was done."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from setpoint.bulk.compile import compiled, plain
from setpoint.decisions.certificate import GateCertificate, GatePrice, alarming, certify, price
from setpoint.decisions.live import REASONS, fast
from setpoint.decisions.terms import Terms
from setpoint.errors import InputError
from setpoint.steps import gate as rule
from setpoint.steps.gate import ACTED, AUDITED, size
from setpoint.tape import Tape
from setpoint.tape.schedule import steady

Array = np.ndarray[Any, Any]
_WINDOW = 500
_play = plain(lambda _: rule.play)


class Outcome(NamedTuple):
    """What came of acting on some requests.

    Shares of all requests and of the actions, the most errors above what was asked at any time,
    and the largest share of errors among `window` requests in a row. Actions whose label is
    missing are counted as unknown, not as errors.
    """

    acted: float
    per_request: float
    per_action: float
    errors: float
    most_above: float
    worst_window: float
    window: int
    unknown: int


def outcome(
    act: Array, wrong: Array, share: float, window: int = _WINDOW, *, per_action: float = 0.0
) -> Outcome:
    """What came of actions, against errors asked as a share of requests, and of the actions.

    >>> outcome(np.array([1, 1, 0, 1]), np.array([0.0, 1.0, 1.0, 0.0]), 0.25, window=2).most_above
    0.5
    """
    act = np.asarray(act, bool)
    unknown = act & np.isnan(wrong)
    losses = np.where(act & ~unknown, wrong, 0.0)
    n, acted, total = max(len(act), 1), int(act.sum()), float(losses.sum())
    sums = np.concatenate(([0.0], np.cumsum(losses)))
    allowed = share * np.arange(1, len(sums)) + per_action * np.cumsum(act)
    above = float((sums[1:] - allowed).max(initial=0.0))
    width = min(window, n)
    worst = float((sums[width:] - sums[:-width]).max(initial=0.0)) / width
    known = max(acted - int(unknown.sum()), 1)
    return Outcome(
        acted / n, total / n, total / known, total, above, worst, width, int(unknown.sum())
    )


@dataclass(frozen=True, eq=False)
class Replay:
    """The decisions of a gate, or one for each series, on a log.

    `codes` says of each row what was decided, as `steps.gate` numbers it; `act`, `audit` and
    `reason` are read from it. Where there are several series, each has a state and a certificate.
    """

    terms: Terms
    tape: Tape
    codes: Array
    states: Array
    losses: Array

    @property
    def act(self) -> Array:
        """The rows that were acted on."""
        return np.asarray(self.codes >= ACTED)

    @property
    def audit(self) -> Array:
        """Of which rows the gate asked for the label."""
        return np.asarray(self.codes == AUDITED)

    @property
    def reason(self) -> Array:
        """Why each row was decided as it was: "score", "budget" or "pending"."""
        return np.array(REASONS)[self.codes]

    @cached_property
    def outcomes(self) -> dict[str, Outcome]:
        """The outcomes of the actions, by the name of each limit."""
        return self.beside(self.act)

    def beside(self, act: Any) -> dict[str, Outcome]:
        """The outcomes of other actions on the same rows, such as today's threshold."""
        named = zip(self.terms.names, self.losses.T, self.terms.allowed, strict=True)
        return {n: outcome(act, wrong, r, per_action=q) for n, wrong, (r, q) in named}

    def certificate(self, series: Any = None) -> GateCertificate:
        """The certificate of the gate at the end of the log, or of the one of a series."""
        return certify(self.terms, self._state(series))

    def price(self, series: Any = None) -> GatePrice | None:
        """The price of an action at the end of the log; None without a reference."""
        return price(self._state(series))

    def alarms(self, series: Any = None) -> tuple[str, ...]:
        """The alarms about the price that last at the end of the log: "dearer", "cheaper"."""
        return tuple(alarming(self._state(series)))

    def _state(self, series: Any) -> Array:
        """The state of the gate of a series, of the only one by default."""
        names = self.tape.streams
        series = names[0] if series is None and len(names) == 1 else series
        if series not in names:
            told = f"it has {len(names):,}, such as {names[0]!r}"
            raise InputError(f"the log has no series {series!r}: {told}")
        return self.states[names.index(series)]  # type: ignore[no-any-return]


def replay(
    terms: Terms, scores: Any, wrong: Any = None, *, deferred: bool = False, seed: int = 0,
    **options: Any,
) -> Replay:  # fmt: skip
    """Runs a gate on a log, one for each series if there are several.

    Parameters
    ----------
    terms
        What it holds.
    scores, wrong
        The score of each row, and what acting would have cost: one value a row, NaN where it is
        not known, or a mapping with the values of several limits. Or a `Tape` whose first column
        is the score and whose y, or whose extras by the names of the limits, say what was wrong.
        A row that lacks one of several has no label.
    deferred
        Whether the labels of deferred requests come too, and teach.
    seed
        Of the coins, which nobody can have seen.
    options
        `delay`, `known`, `time` and `series`, as for `Tape`.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> scores = random.random(2000)
    >>> wrong = random.random(2000) > scores
    >>> gone = replay(Terms(0.05), scores, wrong, delay=20)
    >>> above = gone.outcomes["errors"].most_above
    >>> above <= gone.certificate().limits[0].bound.since_start
    True
    """
    tape = scores
    if not isinstance(scores, Tape):
        several = wrong if isinstance(wrong, Mapping) else {}
        tape = Tape.from_arrays(
            [np.asarray(scores, float)], next(iter(several.values())) if several else wrong,
            names=("score",), extras={n: np.asarray(v, float) for n, v in several.items()},
            **options,
        )  # fmt: skip
    if len(terms.names) > 1 and not set(terms.names) <= set(tape.extras):
        raise InputError(
            f"wrong must have a column for each of {', '.join(terms.names)}, got "
            f"{', '.join(tape.extras) or 'one'}"
        )
    columns: Any = [tape.extras[name] for name in terms.names] if len(terms.names) > 1 else [tape.y]
    losses: Array = np.column_stack(columns).astype(float)
    losses[np.isnan(losses).any(axis=1)] = np.nan
    if not np.isfinite(np.asarray(tape.prediction[0])).all():
        raise InputError("every row needs a finite score: leave such rows out")
    if ((losses < 0.0) | (losses > 1.0)).any():
        raise InputError(
            "wrong must hold 0 and 1, or losses from 0 to 1, got "
            f"{float(losses[(losses < 0.0) | (losses > 1.0)][0]):g}"
        )
    order, offsets = tape.segments
    count, limits = len(offsets) - 1, len(terms.names)
    late = tape.schedule or steady(np.zeros(count, np.int64), offsets)
    events = late.events(offsets) if len(late.upto) else np.zeros(0, np.int64)
    ours = np.ascontiguousarray(tape.by_stream(np.asarray(tape.prediction[0], float)))
    costs = np.ascontiguousarray(losses if order is None else losses[order])
    coins = tossed(len(tape), terms.audits, seed)
    play = fast().play if compiled(len(tape)) else _play
    numbers = np.array(terms.numbers)
    codes, states = np.zeros(len(tape), np.int8), np.zeros((count, size(limits)))
    zs, chances = np.zeros(late.slots), np.zeros((late.slots, limits))
    for at, (first, last) in enumerate(pairwise(offsets.tolist())):
        some = events[2 * first : 2 * last]
        some = np.where(some >= 0, some - first, some + first)
        rule.begin(numbers, states[at])
        play(
            numbers, states[at], ours[first:last], costs[first:last], some, int(late.delays[at]),
            deferred, coins[first:last], codes[first:last], zs, chances,
        )  # fmt: skip
    by_row = np.empty_like(codes)
    by_row[slice(None) if order is None else order] = codes
    return Replay(terms, tape, by_row, states, losses)


def tossed(rows: int, audits: float, seed: int) -> Array:
    """The coins of a replay: no numbers that `default_rng(seed)` gives, which a log may be made of.

    >>> numbers, coins = np.random.default_rng(0).random(9999), tossed(9999, 0.2, 0)
    >>> bool(abs(np.corrcoef(numbers, coins)[0, 1]) < 0.05)
    True
    """
    if audits == 1.0:
        return np.ones(rows, bool)
    return np.random.default_rng([seed, *b"coins of a gate"]).random(rows) < audits
