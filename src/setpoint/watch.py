"""What the guarantee costs: the price of the sets, the model's own error, and alarms on them.

Coverage is held by design, so a dying model does not show in it. Two needs are compared with a
reference, which is made once a stream has settled in and stays until somebody acknowledges:

    sets     how far y lay from the middle of the set: what the user pays for
    model    how far y lay from the forecast: a correction may have repaired the sets
    world    how far y lies from the label before it: what a naive forecast would need

A need counts against the model only as far as the world does not explain it. Labels are summed up
in blocks of four, and with each block the running means of the costs move:

    dearer   the sets cost more, beside the world, than 3.2, 1.8 or 1.3 times the reference, on the
             mean of about 20, 100 or 500 labels
    model    the same of the model's own error
    world    the model's error alone is 8, 4 or 3 times what it was, and the world explains it
    cheaper  the sets cost 1/2.5 or 1/1.6 of the reference on the mean of 100 or 500 labels

Labels that are late by d overlap: means are 1 + d/12 times as long, and the reference takes longer.
For sets of classes the need is the rank of y, for images the critical λ, and the world is always 1.
`take` and `begin` are pure functions of floats, live and compiled; the memory has a fixed size, and
nothing in it ever feeds back.

`evidence` is an e-detector on the share of large errors. Its promise is about probability, apart
from the guarantee of the stream; `called` uses it to hold the share of false calls in a panel.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

Numbers = Any
"""Floats that can be written to: a list in plain Python, an array in compiled code."""

KINDS = ("dearer", "model", "world", "cheaper")
"""What an alarm can say of a stream, in the order in which they lie in a memory."""

BLOCK = 4.0
"""How many labels are summed up before the running means move."""
_SETTLE, _REFERENCE, _MEMORY, _CLIP = 200.0, 500.0, 200.0, 10.0
MOST = 1e300
"""Above it nothing is watched: a sum of such numbers would not be a number."""
_BETS, _SPANS = 3, 4

NOW = 10
"""How many numbers move with every label: the first of a memory."""
# The numbers of the present block: labels left, the last label, sums of moves, widths, needs,
# errors and large errors, and what a need, an error and a move count at most.
# The others move with a block.
(
    LABELS, PHASE, COUNT, LATE, WORLD, STORM, WIDTH, SETS, MODEL, MOVES, WIDE, FIRST, STRETCH,
    LARGE, UP, UP_MODEL, RAW, DOWN, SINCE, BEGAN, SUMS, WEALTH,
) = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 17, 20, 23, 25, 29, 33, 37)  # fmt: skip
"""Where they lie: counts; running means of how many wait, of moves, slow and fast, and of widths;
the reference (needs, errors, moves, widths, its first label); the ladders; since when they have
been above, and at which label each alarm began, 0 where there is none; the sums and the wealth of
the bets."""
SIZE = NOW + WEALTH + _BETS * _SPANS
"""How many numbers a memory has."""


def begin() -> list[float]:
    """The memory of a stream without labels.

    >>> len(begin()) == SIZE
    True
    """
    memory = [BLOCK, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, MOST, MOST, 0.0] + [0.0] * (SIZE - NOW)
    for place in range(NOW + UP, NOW + SINCE):
        memory[place] = 1.0
    memory[NOW + STRETCH] = 1.0
    return memory


def acknowledged(memory: Sequence[float]) -> list[float]:
    """The memory once a change is known: the next labels make another reference."""
    fresh, old = begin(), list(memory)
    fresh[1] = old[1]
    for place in (LABELS, LATE, WORLD, STORM, WIDTH):
        fresh[NOW + place] = old[NOW + place]
    fresh[9] = old[9]
    return fresh


def take(
    now: tuple[float, ...], held: Numbers, need: float, error: float, y: float, width: float,
    others: float,
) -> tuple[float, ...]:  # fmt: skip
    """Takes in a label: the first numbers of the memory; the others, `held`, move with a block.

    `others` is how many predictions wait beside the one that is answered.
    """
    left, last, moves, widths, needs, errors, large, top, top_error, top_move = now
    move = y - last
    move = move if move > 0.0 else -move
    moves += move if move < top_move else top_move
    needs += need if need < top else top
    errors += error if error < top_error else top_error
    widths += width
    if error > held[LARGE]:
        large += 1.0
    if left > 1.0:
        return (left - 1.0, y, moves, widths, needs, errors, large, top, top_error, top_move)
    top, top_error, top_move = _turn(held, moves, widths, needs, errors, large, others)
    return (BLOCK, y, 0.0, 0.0, 0.0, 0.0, 0.0, top, top_error, top_move)


def _turn(
    held: Numbers, moves: float, widths: float, needs: float, errors: float, large: float,
    others: float,
) -> tuple[float, float, float]:  # fmt: skip
    """Moves everything at the end of a block; what a need, an error and a move count at most."""
    share = 1.0 / BLOCK
    moves, widths, needs, errors = moves * share, widths * share, needs * share, errors * share
    held[LABELS] += BLOCK
    held[COUNT] += BLOCK
    first = BLOCK / held[LABELS]
    held[LATE] += (first if first > 0.02 else 0.02) * (others - held[LATE])
    late, count = held[LATE], held[COUNT]
    rate = BLOCK / (_MEMORY + 2.0 * late)
    if held[LABELS] > BLOCK:  # the first block has no label before it
        held[WORLD] += (first if first > rate else rate) * (moves - held[WORLD])
        fast = BLOCK / (20.0 * held[STRETCH])
        held[STORM] += (first if first > fast else fast) * (moves - held[STORM])
    held[WIDTH] += (first if first > 0.01 * BLOCK else 0.01 * BLOCK) * (widths - held[WIDTH])
    if held[PHASE] < 2.0:
        if held[PHASE] == 0.0 and count >= _SETTLE + 2.0 * late:
            held[PHASE], held[COUNT], held[FIRST] = 1.0, 0.0, held[LABELS] + 1.0
            # What came while it settled in only says how much one label may count.
            return _most(held, 1.0)
        mean = BLOCK / count
        held[SETS] += mean * (needs - held[SETS])
        held[MODEL] += mean * (errors - held[MODEL])
        held[MOVES] += mean * (held[WORLD] - held[MOVES])
        held[WIDE] += mean * (widths - held[WIDE])
        # The error that one in ten exceeds, by steps that grow smaller.
        step = 4.0 * held[MODEL] * mean
        step = step if step < 0.2 * held[MODEL] else 0.2 * held[MODEL]
        held[LARGE] += step * (large - 0.1 * BLOCK)
        held[LARGE] = held[LARGE] if held[LARGE] > 0.0 else 0.0
        size = 10.0 * late
        if held[PHASE] == 1.0 and count >= (size if size > _REFERENCE else _REFERENCE):
            held[PHASE], held[COUNT] = 2.0, 0.0
            held[STRETCH] = 1.0 + float(int(late / 12.0))
            least = 1e-3 * held[WIDE] if held[WIDE] > 0.0 else 1e-300
            held[SETS] = held[SETS] if held[SETS] > least else least
            held[MODEL] = held[MODEL] if held[MODEL] > least else least
        return _most(held, 1.0)
    world = held[WORLD] / held[MOVES] if held[MOVES] > 0.0 else 1.0
    storm = held[STORM] / held[MOVES] if held[MOVES] > 0.0 else 1.0
    harder = world if world > 1.0 else 1.0
    harder = storm if storm > harder else harder
    easier = world if world < 1.0 else 1.0
    easier = easier if easier > 0.01 else 0.01
    needs, errors = _below(needs / held[SETS], 1e100), _below(errors / held[MODEL], 1e100)
    span = held[STRETCH]
    _climb(held, 0, UP, needs / harder, span, 3.2, 1.8, 1.3, 1.1)
    _climb(held, 1, UP_MODEL, errors / harder, span, 3.2, 1.8, 1.3, 1.1)
    _climb(held, 2, RAW, errors, span, 8.0, 4.0, 3.0, 1.5)
    # The world is to blame where it explains most of it, else the model is.
    most = world if world > storm else storm
    if held[BEGAN + 2] == held[LABELS] and most <= 0.7 * held[RAW + 1]:
        held[BEGAN + 2] = 0.0
        if held[BEGAN + 1] == 0.0:
            held[BEGAN + 1], held[SINCE + 1] = held[LABELS], held[SINCE + 2]
    _fall(held, needs / easier, span)
    _bet(held, large, span)
    return _most(held, harder)


def _below(cost: float, most: float) -> float:
    """The cost, at most `most`: what grows without end would end as no number."""
    return cost if cost < most else most


def _most(held: Numbers, harder: float) -> tuple[float, float, float]:
    """What a need, an error and a move of the next block count at most."""
    top, top_error = _CLIP * held[SETS] * harder, _CLIP * held[MODEL] * harder
    top_move = 2.0 * _CLIP * held[WORLD]
    return (
        _below(top, MOST) if top > 0.0 else MOST,
        _below(top_error, MOST) if top_error > 0.0 else MOST,
        _below(top_move, MOST) if top_move > 0.0 else MOST,
    )


def _climb(
    held: Numbers, kind: int, at: int, cost: float, span: float, short: float, middle: float,
    long: float, healthy: float,
) -> None:  # fmt: skip
    """Moves the means of a cost; its alarm begins above a limit, and ends where it is well."""
    held[at] += BLOCK / (20.0 * span) * (cost - held[at])
    held[at + 1] += BLOCK / (100.0 * span) * (cost - held[at + 1])
    held[at + 2] += BLOCK / (500.0 * span) * (cost - held[at + 2])
    above = (held[at] > short) | (held[at + 1] > middle) | (held[at + 2] > long)
    if held[BEGAN + kind] == 0.0:
        if held[at + 1] <= 1.0:
            held[SINCE + kind] = held[LABELS]
        if above:
            held[BEGAN + kind] = held[LABELS]
    elif held[at + 1] <= healthy and not above:
        held[BEGAN + kind] = 0.0


def _fall(held: Numbers, thrift: float, span: float) -> None:
    """Moves the two means of what became cheaper."""
    held[DOWN] += BLOCK / (100.0 * span) * (thrift - held[DOWN])
    held[DOWN + 1] += BLOCK / (500.0 * span) * (thrift - held[DOWN + 1])
    if held[BEGAN + 3] == 0.0:
        if held[DOWN] >= 1.0:
            held[SINCE + 3] = held[LABELS]
        if (held[DOWN] < 0.4) | (held[DOWN + 1] < 0.625):
            held[BEGAN + 3] = held[LABELS]
    elif held[DOWN] >= 0.9:
        held[BEGAN + 3] = 0.0


def _bet(held: Numbers, large: float, stretch: float) -> None:
    """Bets against: of 8, 32, 128 or 512 labels at most a share have a large error."""
    for place in range(_SPANS):
        span = 8.0 * 4.0**place * stretch
        held[SUMS + place] += large
        if held[COUNT] % span == 0.0:
            allowed = (0.35, 0.27, 0.22, 0.18)[place]
            lean = held[SUMS + place] / span / allowed - 1.0
            held[SUMS + place] = 0.0
            for bet in range(_BETS):
                at = WEALTH + _BETS * place + bet
                wealth = held[at] if held[at] > 1.0 else 1.0
                wealth *= 1.0 + (0.25, 0.5, 0.9)[bet] * lean
                held[at] = wealth if wealth < 1e100 else 1e100


# What is read of a memory.


class Price(NamedTuple):
    """What a stream costs now, beside its reference; None while that is made.

    The reference is made of the labels `first` to `last`, of `labels` so far.
    """

    sets: float  # how many times as wide or large the sets of about the last 100 labels are
    model: float  # how many times as large the model's own errors
    world: float  # how many times as restless the labels
    first: int
    last: int
    labels: int

    def __str__(self) -> str:
        reference = f"labels {self.first:,}–{self.last:,}"
        return (
            f"{self.sets:.2g} × the reference ({reference}); the model's errors {self.model:.2g} "
            f"×, movement of the actual values {self.world:.2g} ×"
        )


def price_of(memory: Sequence[float]) -> Price | None:
    """What a stream costs now; None before there is a reference, and where nothing is watched."""
    if not len(memory) or memory[NOW + PHASE] < 2.0:
        return None
    held = memory[NOW:]
    sets = held[WIDTH] / held[WIDE] if held[WIDE] > 0.0 else 1.0
    world = held[WORLD] / held[MOVES] if held[MOVES] > 0.0 else 1.0
    labels, first, since = int(held[LABELS]), int(held[FIRST]), int(held[COUNT])
    return Price(sets, float(held[RAW + 1]), float(world), first, labels - since, labels)


def lasting(memory: Sequence[float]) -> dict[str, tuple[int, int]]:
    """The alarms that last: at which label each began, and since which one it has been so."""
    if len(memory) == 0:
        return {}
    began, since = NOW + BEGAN, NOW + SINCE
    return {
        kind: (int(memory[began + place]), int(memory[since + place]) + 1)
        for place, kind in enumerate(KINDS)
        if memory[began + place] > 0.0
    }


def evidence(memory: Sequence[float]) -> float:
    """How much speaks against the model: an e-value for the labels since the reference.

    If of every 8, 32, 128 and 512 labels no more than 35, 27, 22 and 18 % are expected to have
    errors as only one in ten had in the reference, whatever came before, then its mean is at most
    1, and it exceeds 1/p with a chance of at most p.
    """
    if len(memory) == 0 or memory[NOW + PHASE] < 2.0 or memory[NOW + COUNT] <= 0.0:
        return 0.0
    held, total = memory[NOW:], 0.0
    for place in range(_SPANS):
        row = held[WEALTH + _BETS * place : WEALTH + _BETS * (place + 1)]
        span = 8.0 * 4.0**place * held[STRETCH]
        total += span * sum(row) / _BETS
    return float(total / _SPANS / held[COUNT])


def called(values: Sequence[float], share: float = 0.1) -> list[bool]:
    """Which streams of a panel to call someone for, from their `evidence`: e-BH.

    At any one time the expected share of streams that are called although their model is as it was
    is at most `share`, however the streams depend on one another.

    >>> called([0.5, 80.0, 2.0, 45.0])
    [False, True, False, True]
    """
    count, most = len(values), 0
    for place, value in enumerate(sorted(values, reverse=True), 1):
        if value * place * share >= count:
            most = place
    limit = count / (share * most) if most else float("inf")
    return [value >= limit for value in values]
