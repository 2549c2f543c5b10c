"""The rule of a gate: the rank of a score, the chance of an error, a bar, and an account.

It acts only where even a wrong action keeps the account S within its room. With p the chance of an
audit, r and q the errors allowed per request and per action, and a = 1 − p(r + q) what an action
can cost, W actions waiting for their label and E errors expected among them, a decision asks:

    h, m   the habit: W and E now, or what is left of the most there were, whichever is more
    B      K + 2m + h·a: what is guaranteed for this habit
    L      what is guaranteed now: B, or what is left of an earlier, larger B, paid back slowly
    D      the debt, at most L − B: the part of S that does not press yet
    act    only if S − D + a ≤ K + 2m + (h − W)a

so V = S + aW, the account if all that waits is wrong, never exceeds L: an action has V + a ≤ D + B,
a deferral lowers V by pr and L by half of that, a label moves what an action may cost from W into
S, and a lift to the floor leaves V ≤ aW. `docs/why.md` has the proof.

The watch of `setpoint.watch` runs along: an action costs the requests since the one before it.

Everything is a function of floats over one array, in plain Python and as machine code.
"""

from math import exp, log
from typing import Any

from setpoint import watch
from setpoint.steps.account import repaid
from setpoint.watch import NOW, take

# What a decision was: deferred for its score, the budget or what waits; or acted, or audited too.
SCORE, BUDGET, PENDING, ACTED, AUDITED = range(5)

# The head of the state: counts since the terms began, of actions that waited then too; what waits,
# its habit, the scores and labels ever, the rank of the last score, the requests since the last
# action, how many waited when the last label came; the scores; the watch.
(REQUESTS, ACTIONS, DRAWN, JUDGED, DROPPED, TAUGHT, COMPLAINTS,
 WAITING, _OTHERS, SCORES, LABELS, Z, GAP, USUAL, _RING) = range(15)  # fmt: skip
RING = 128
PRICE = _RING + RING
HEAD = PRICE + watch.SIZE
# One block for each limit: the account and its book, the bar, the level of errors; then the bins.
(S, BAR, LEVEL, EXPECTED, HABIT, BOUND, DEBT, LAST, SPENT, LIFTED, MOST, WIDEST,
 CHANCE, _BINS) = range(14)  # fmt: skip
BINS = 16
_SIZE = _BINS + 2 * BINS
# The numbers: chance of an audit, most that may wait, δ of a sure gate (0 if it is none), limits;
# then r, q and K of each.
_P, _CAP, _DELTA, _LIMITS, _FIRST = range(5)

FLOOR, _GAIN, _EASE, _SHARE, _HEALS = 10.0, 0.15, 5.0, 2.0, 50.0
_STEP, _TRUST, _MEMORY, _SLOWEST = 0.02, 10.0, 100.0, 0.005
_PROBATION, _PER_LABEL = 50.0, 4.0
_KAPPAS = 8
_LOWEST = -2.0
"""Of a bar: with the account at its floor every rank passes, and from here it comes back."""


def block(limit: int) -> int:
    """Where the block of a limit begins."""
    return HEAD + limit * _SIZE


def size(limits: int) -> int:
    """How many numbers a state has."""
    return HEAD + limits * _SIZE


def begin(numbers: Any, state: Any) -> None:
    """The state before the first request: a bar that lets 20r pass, or half, or 5r if more."""
    for i, value in enumerate(watch.begin()):
        state[PRICE + i] = value
    for j in range(int(numbers[_LIMITS])):
        at, o = block(j), _FIRST + 3 * j
        level = numbers[o] + numbers[o + 1]
        first = min(max(min(20.0 * level, 0.5), 5.0 * level), 0.9)
        state[at + LEVEL] = log(level / (1.0 - level))
        state[at + BAR] = log((1.0 - first) / first) / 1.7
        state[at + BOUND] = numbers[o + 2]
        state[at + MOST] = numbers[o + 2]


def renew(numbers: Any, state: Any) -> None:
    """Other terms: the account begins again with what waits, and what was learnt stays."""
    waiting, p = state[WAITING], numbers[_P]
    acknowledge(state)
    for place in range(COMPLAINTS + 1):
        state[place] = waiting if place <= DRAWN else 0.0
    state[_OTHERS] = max(state[_OTHERS], waiting)
    for j in range(int(numbers[_LIMITS])):
        at, o = block(j), _FIRST + 3 * j
        for place in (S, DEBT, LAST, SPENT, LIFTED):
            state[at + place] = 0.0
        rise = _counts(numbers, 0.0, 1.0) - p * (numbers[o] + numbers[o + 1])
        state[at + WIDEST] = m = state[at + HABIT]
        state[at + BOUND] = state[at + MOST] = numbers[o + 2] + _SHARE * m + state[_OTHERS] * rise


def acknowledge(state: Any) -> None:
    """Takes what the gate does from now on as the reference of its price."""
    for i, value in enumerate(watch.acknowledged(state[PRICE:HEAD].tolist())):
        state[PRICE + i] = value


def most_errors(spent: float, p: float, delta: float) -> float:
    """With probability 1 − δ over the coins, at every time at once: no more errors than this.

    `spent` is the sum of the audited losses, each audited with the chance p.
    """
    least, kappa = 1e300, 0.75
    for _ in range(_KAPPAS):
        cost = -log(1.0 - kappa) * spent + log(_KAPPAS / delta)
        least = min(least, cost / -log(1.0 - kappa * p))
        kappa *= 0.5
    return least


def _counts(numbers: Any, spent: float, loss: float) -> float:
    """What an audited loss adds to the account: itself, or p times what it adds to the bound."""
    delta, p = numbers[_DELTA], numbers[_P]
    if delta == 0.0:
        return loss
    counted: float = p * (most_errors(spent + loss, p, delta) - most_errors(spent, p, delta))
    return counted


def _place(state: Any, score: float) -> float:
    """The log odds of the rank of a score among the last ones: 0 in the middle, 3 near the top."""
    k = int(state[SCORES])
    k = k if k < RING else RING
    if k < 5:
        return 0.0
    below = 0
    for i in range(_RING, _RING + k):
        other = state[i]
        if other < score:
            below += 2
        elif other == score:
            below += 1
    rank = (0.5 * below + 0.5) / (k + 1.0)
    return log(rank / (1.0 - rank)) / 1.7


def _shape(state: Any, at: int, z: float) -> float:
    """The log of how much likelier an error is here than the rank alone says."""
    x = min(max((z + 3.0) / 6.0 * (BINS - 1), 0.0), BINS - 1.0)
    i = min(int(x), BINS - 2)
    part, o = x - i, at + _BINS + i
    low = log((state[o + BINS] + _TRUST) / (state[o] + _TRUST))
    high = log((state[o + 1 + BINS] + _TRUST) / (state[o + 1] + _TRUST))
    return low + part * (high - low)


def _sigmoid(x: float) -> float:
    x = min(max(x, -12.0), 12.0)
    return 1.0 / (1.0 + exp(-x))


def _habit(now: float, last: float, others: float) -> float:
    """What was usual lately: the most, forgotten over as many requests as labels take to come."""
    last += (now - last) / (100.0 + _HEALS * others)
    return now if now > last else last


def _moved(numbers: Any, state: Any, j: int, allowed: float, loss: float, counted: float) -> None:
    """Moves the bar by a loss and the account by what is counted for it, less what was allowed.

    At the floor the account only forgets; the bar stays where the account can still turn it.
    """
    at, m, others = block(j), state[block(j) + HABIT], state[_OTHERS]
    o = _FIRST + 3 * j
    usual = numbers[_P] * (numbers[o] + numbers[o + 1])
    pace = max(_STEP, 1.0 / (1.0 + usual * state[REQUESTS] + 0.5 * others))
    bar = state[at + BAR] + pace / (1.0 + m / _EASE) * (loss - allowed)
    state[at + BAR] = bar if bar > _LOWEST else _LOWEST
    moved, least = state[at + S] + counted - allowed, -(FLOOR + m)
    if moved < least:
        state[at + LIFTED] += least - moved
        moved = least
    state[at + S] = moved


def _opens(numbers: Any, state: Any, j: int, z: float) -> int:
    """Whether one limit lets an action pass: ACTED, or why not."""
    at, o = block(j), _FIRST + 3 * j
    p, r, allowed, limit = numbers[_P], numbers[o], numbers[o] + numbers[o + 1], numbers[o + 2]
    waiting, account = state[WAITING], state[at + S]
    c = _shape(state, at, z)
    state[at + CHANCE] = _sigmoid(state[at + LEVEL] - z + c)
    h = state[_OTHERS]
    m = _habit(state[at + EXPECTED], state[at + HABIT], h)
    state[at + HABIT], state[at + WIDEST] = m, max(state[at + WIDEST], m)
    rise = _counts(numbers, state[at + SPENT], 1.0) - p * allowed
    kept = limit + _SHARE * m
    needed, pay = kept + h * rise, 0.5 * p * r
    gain, near = _GAIN / (1.0 + m / _EASE), account + rise * waiting + kept
    bound, debt = repaid(
        account, state[at + BOUND], state[at + DEBT], needed, near, state[at + LAST], gain, pay
    )
    state[at + BOUND], state[at + MOST] = bound, max(state[at + MOST], needed)
    state[at + LAST], state[at + DEBT] = gain, debt
    pressing = account - debt
    likely = pressing + state[at + EXPECTED] - p * allowed * waiting
    part = likely / kept if likely > 0.0 else 0.0
    if pressing + rise > kept + (h - waiting) * rise or part >= 1.0:
        return BUDGET
    if z - c < state[at + BAR] + gain * likely / (1.0 - part * part):
        return SCORE
    return ACTED


def decide(numbers: Any, state: Any, score: float, coin: bool) -> int:
    """Acts or defers; the coin says whether an action is audited. Every limit must let it pass."""
    limits, z = int(numbers[_LIMITS]), _place(state, score)
    state[Z] = z
    state[_OTHERS] = _habit(state[WAITING], state[_OTHERS], state[_OTHERS])
    code = ACTED
    for j in range(limits):
        one = _opens(numbers, state, j, z)
        if one != ACTED and code != BUDGET:
            code = one
    if state[WAITING] >= min(numbers[_CAP], _PROBATION + _PER_LABEL * state[LABELS]):
        code = PENDING
    state[_RING + int(state[SCORES]) % RING] = score
    state[SCORES] += 1.0
    state[REQUESTS] += 1.0
    _watched(state, code == ACTED)
    if code == ACTED:
        state[ACTIONS] += 1.0
    if code == ACTED and coin:
        state[DRAWN] += 1.0
        state[WAITING] += 1.0
        for j in range(limits):
            at = block(j)
            state[at + EXPECTED] += state[at + CHANCE]
        return AUDITED
    for j in range(limits):
        o = _FIRST + 3 * j
        allowed = numbers[o] + numbers[o + 1] if code == ACTED else numbers[o]
        _moved(numbers, state, j, numbers[_P] * allowed, 0.0, 0.0)
    return code


def _watched(state: Any, acts: bool) -> None:
    """Takes a request into the watch.

    Where no action comes for ten times as many requests as usual, that counts as one.
    """
    state[GAP] += 1.0
    gap, held = state[GAP], state[PRICE + NOW : HEAD]
    if not acts and (held[watch.PHASE] < 2.0 or gap < 10.0 * held[watch.SETS]):
        return
    state[GAP], now = 0.0, PRICE
    first = (
        state[now], state[now + 1], state[now + 2], state[now + 3], state[now + 4],
        state[now + 5], state[now + 6], state[now + 7], state[now + 8], state[now + 9],
    )  # fmt: skip
    moved = take(first, held, gap, gap, 0.0, gap, state[USUAL])
    for i in range(NOW):
        state[PRICE + i] = moved[i]


def answer(numbers: Any, state: Any, z: float, chances: Any, losses: Any) -> None:
    """Takes in what an audited action cost by each limit, and learns from it."""
    state[LABELS] += 1.0
    state[JUDGED] += 1.0
    for j in range(int(numbers[_LIMITS])):
        _settle(numbers, state, j, chances[j], losses[j])
        _teach(state, j, z, losses[j])
    _close(numbers, state)


def lose(numbers: Any, state: Any, chances: Any) -> None:
    """The label of an audited action will not come: it counts as wrong, and teaches nothing."""
    state[DROPPED] += 1.0
    for j in range(int(numbers[_LIMITS])):
        _settle(numbers, state, j, chances[j], 1.0)
    _close(numbers, state)


def teach(numbers: Any, state: Any, z: float, losses: Any) -> None:
    """Learns from the label of a deferred request: what an action would have cost."""
    state[LABELS] += 1.0
    state[TAUGHT] += 1.0
    for j in range(int(numbers[_LIMITS])):
        _teach(state, j, z, losses[j])


def _settle(numbers: Any, state: Any, j: int, chance: float, loss: float) -> None:
    at, o = block(j), _FIRST + 3 * j
    counted = _counts(numbers, state[at + SPENT], loss)
    state[at + SPENT] += loss
    state[at + EXPECTED] -= chance
    _moved(numbers, state, j, numbers[_P] * (numbers[o] + numbers[o + 1]), loss, counted)


def _close(numbers: Any, state: Any) -> None:
    """One action waits no more; where none does, what rounding has left of it goes."""
    state[WAITING] -= 1.0
    state[USUAL] = state[WAITING]
    if state[WAITING] == 0.0:
        for j in range(int(numbers[_LIMITS])):
            state[block(j) + EXPECTED] = 0.0


def _teach(state: Any, j: int, z: float, loss: float) -> None:
    """Learns from a loss how likely errors are, in all and at this rank."""
    at = block(j)
    chance = _sigmoid(state[at + LEVEL] - z)
    rate = max(1.0 / (state[LABELS] + 20.0), _SLOWEST)
    state[at + LEVEL] += rate * (loss - chance) / (chance * (1.0 - chance) + 0.02)
    x = min(max((z + 3.0) / 6.0 * (BINS - 1), 0.0), BINS - 1.0)
    i = min(int(x), BINS - 2)
    part = x - i
    for k in range(2):
        o = at + _BINS + i + k
        share = part if k else 1.0 - part
        state[o] += share * chance
        state[o + BINS] += share * loss
        total = state[o] + state[o + BINS]
        if total > _MEMORY:
            state[o] *= _MEMORY / total
            state[o + BINS] *= _MEMORY / total


def play(
    numbers: Any, state: Any, scores: Any, losses: Any, events: Any, delay: int, deferred: bool,
    coins: Any, codes: Any, zs: Any, chances: Any,
) -> None:  # fmt: skip
    """Decides on recorded scores: event e ≥ 0 asks row e, e < 0 brings the label of row ~e.

    Without events every label is `delay` rows late. A label that is NaN never comes. Labels of
    deferred rows teach where `deferred` says so. What a row needs when its label comes lies in
    `zs` and `chances`, whose length is a power of two.
    """
    rows, limits, slots = len(scores), int(numbers[_LIMITS]), len(zs) - 1
    steps = len(events) if len(events) else 2 * (rows + delay)
    for step in range(steps):
        if len(events):
            event = events[step]
        else:
            t = step // 2
            event = t if step % 2 == 0 else delay - t - 1
            if (step % 2 == 0 and t >= rows) or (step % 2 == 1 and t < delay):
                continue
        if event >= 0:
            codes[event] = decide(numbers, state, scores[event], coins[event])
            slot = event & slots
            zs[slot] = state[Z]
            for j in range(limits):
                chances[slot][j] = state[block(j) + CHANCE]
            continue
        row = -1 - event
        slot, known = row & slots, losses[row][0] == losses[row][0]
        if codes[row] == AUDITED:
            if known:
                answer(numbers, state, zs[slot], chances[slot], losses[row])
            else:
                lose(numbers, state, chances[slot])
        elif deferred and known and codes[row] != ACTED:
            teach(numbers, state, zs[slot], losses[row])
