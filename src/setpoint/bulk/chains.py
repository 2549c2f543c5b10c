"""Chains of small functions, through which loops reach the numbers of risks and members.

Each link handles one number, row or risk and hands the rest on, so that one text serves one risk
and ten, in plain Python and as machine code.
"""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar

from numpy import float32, float64

from setpoint.recursion import show

F = TypeVar("F", bound=Callable[..., Any])


class Wrap(Protocol):
    """What a compiler wants done with a function."""

    def __call__(self, function: F, /) -> F: ...


class Access(NamedTuple):
    """How loops reach the numbers of a row: what differs between plain and compiled code.

    `reader(at, size)` makes a function of an array and the number of a row that gives a tuple,
    `writer(at, size)` one of a row and a tuple that puts it there. Parts of a row are sliced.
    """

    reader: Any
    writer: Any


def written_out(mark: Wrap) -> Access:
    """Access for compiled code: numbers are named one by one, so that they stay in registers."""

    def chained(one: Any, six: Any, nothing: Any, at: int, size: int) -> Any:
        made, end = None, at + size
        while end > at:
            link, count = (one, 1) if (end - at) % 6 else (six, 6)
            end -= count
            made = mark(link(end, made))
        return mark(nothing) if made is None else made

    return Access(
        lambda at, size: chained(_one_read, _six_read, _nothing_read, at, size),
        lambda at, size: chained(_one_put, _six_put, _nothing_put, at, size),
    )


def _nothing_read(_z: Any, _s: int) -> Any:
    return ()


def _nothing_put(_row: Any, _values: Any) -> None:
    pass


def _one_read(at: int, rest: Any) -> Any:
    def read(z: Any, s: int) -> Any:
        if rest is None:
            return (z[s][at],)
        return (z[s][at],) + rest(z, s)  # noqa: RUF005

    return read


def _six_read(at: int, rest: Any) -> Any:
    def read(z: Any, s: int) -> Any:
        row = z[s]
        six = row[at], row[at + 1], row[at + 2], row[at + 3], row[at + 4], row[at + 5]
        if rest is None:
            return six
        return six + rest(z, s)

    return read


def _one_put(at: int, rest: Any) -> Any:
    def put(row: Any, values: Any) -> None:
        row[at] = values[0]
        if rest is not None:
            rest(row, values[1:])

    return put


def _six_put(at: int, rest: Any) -> Any:
    def put(row: Any, values: Any) -> None:
        row[at], row[at + 1], row[at + 2] = values[0], values[1], values[2]
        row[at + 3], row[at + 4], row[at + 5] = values[3], values[4], values[5]
        if rest is not None:
            rest(row, values[6:])

    return put


def gathered(each: Iterable[Any], mark: Wrap) -> Any:
    """A function that calls some others with its arguments, and gives their answers in a tuple."""
    chain: Any = None
    for one in reversed([*each]):
        chain = mark(_gathering(mark(one), chain))
    return chain


def _gathering(one: Any, rest: Any) -> Any:
    def gather(*of: Any) -> Any:
        if rest is None:
            return (one(*of),)
        return (one(*of),) + rest(*of)  # noqa: RUF005

    return gather


def in_turn(each: Iterable[Any], mark: Wrap) -> Any:
    """A function that calls some others with its arguments, one after the other."""
    chain: Any = None
    for one in reversed([*each]):
        chain = mark(_calling(mark(one), chain))
    return chain


def _calling(one: Any, rest: Any) -> Any:
    def call(*of: Any) -> None:
        one(*of)
        if rest is not None:
            rest(*of)

    return call


# Links: each is about the number, the risk or the member in its place.


def reading(own: Any, loss: Any, step: Any) -> Any:
    """A risk from a vector, or its numbers from a row of them."""
    return lambda z, s: own(z, s) + (loss(z, s), step(z, s))  # noqa: RUF005


def writing(place: int, own: Any, loss: Any, step: Any) -> Any:
    """A risk into a vector."""

    def write(row: Any, risks: Any) -> None:
        own(row, risks[place])
        loss(row, risks[place][7])
        step(row, risks[place][8])

    return write


def putting_book(place: int, step: Any) -> Any:
    """The memory of a step into a row."""
    return lambda row, books: step(row, books[place])


def putting_step(place: int, step: Any) -> Any:
    """The same, of a risk."""
    return lambda row, risks: step(row, risks[place][8])


def cutting(place: int) -> Any:
    """A part of a row of an array."""
    return lambda out, first, last: out[place][first:last]


def getting(place: int) -> Any:
    """A number of a column of rows."""
    return lambda rows, i: rows[place][i]


def putting(place: int) -> Any:
    """A number into a column of rows."""

    def put(rows: Any, i: int, numbers: Any) -> None:
        rows[place][i] = numbers[place]

    return put


def putting_theta(place: int) -> Any:
    """θ into a column of rows."""

    def put(rows: Any, i: int, risks: Any) -> None:
        rows[place][i] = risks[place][0]

    return put


def totalling(place: int) -> Any:
    """The sum of a risk's losses, added to a row."""

    def total(row: Any, risks: Any) -> None:
        row[place] += risks[place][4]

    return total


def noting(place: int, member: int) -> Any:
    """What promises are held against: least and largest loss, and those on full and empty sets."""

    def note(extremes: Any, j: int, values: Any, lams: Any) -> None:
        value, row, lam = values[place], extremes[j][place], lams[member]
        news = (value < row[0]) | (value > row[1]) | (value != value)
        if news | (lam == inf) | (lam == -inf):
            row[0] = value if value < row[0] else row[0]
            row[1] = value if value > row[1] else row[1]
            row[6] += 0.0 if value == value else 1.0
            if lam == inf:
                row[2] = value if value < row[2] else row[2]
                row[3] = value if value > row[3] else row[3]
            if lam == -inf:
                row[4] = value if value < row[4] else row[4]
                row[5] = value if value > row[5] else row[5]

    return note


def showing(ends: Any, rest: Any) -> Any:
    """The ends of each member by itself."""

    def shown(base: Any, lams: Any, support: Any) -> Any:
        lower, upper = show(ends(base, lams[0]), lams[0], support[0], support[1])
        if rest is None:
            return (lower,), (upper,)
        lowers, uppers = rest(base, lams[1:], support)
        return (lower,) + lowers, (upper,) + uppers  # noqa: RUF005

    return shown


def narrowing(rest: Any) -> Any:
    """Ends in float32, those of the support rounded outwards."""

    def narrowed(lowers: Any, uppers: Any, support: Any) -> Any:
        lower, upper = lowers[0], uppers[0]
        lower = support[2] if lower <= support[0] else float64(float32(lower))
        upper = support[3] if upper >= support[1] else float64(float32(upper))
        if rest is None:
            return (lower,), (upper,)
        below, above = rest(lowers[1:], uppers[1:], support)
        return (lower,) + below, (upper,) + above  # noqa: RUF005

    return narrowed


def missing(place: int) -> Any:
    """Whether a member missed a label."""
    return lambda lowers, uppers, y: not ((lowers[place] <= y) & (y <= uppers[place]))


# Labels of a row: one number, or of several labels a row of critical values, NaN for those that
# are not true, and last how many are. Numbers that nobody knows are NaN.


def _one_unknown(y: Any) -> bool:
    return bool(y != y)


def _one(y: Any) -> Any:
    return y


def _several_unknown(y: Any) -> bool:
    return bool(y[len(y) - 1] != y[len(y) - 1])


def _how_many(y: Any) -> Any:
    return y[len(y) - 1]


of_one, of_several = (_one_unknown, _one), (_several_unknown, _how_many)
"""Whether labels are unknown, and the one number that stands for them."""


def left_out(_lowers: Any, uppers: Any, y: Any) -> Any:
    """How many of several labels a set missed, and how many there are."""
    missed, last = 0.0, len(y) - 1
    for k in range(last):
        missed += 1.0 if y[k] > uppers[0] else 0.0
    if (y[last] == 0.0) & (uppers[0] == -inf):
        missed = 1.0  # the empty set misses also what has no labels
    return ((missed, y[last]),)


def any_left_out(misses: Any) -> bool:
    return bool(misses[0][0] > 0.0)


def teaching(learn: Any) -> Any:
    """Learns from several labels, of which a row has 1 for the true ones."""

    def teach(params: Any, memory: Any, table: Any, annex: Any, base: Any, y: Any) -> Any:
        for k in range(len(y)):
            if y[k] > 0.0:
                memory = learn(params, memory, table, annex, base, float64(k))
        return memory

    return teach


def flag(place: int) -> Any:
    """A number as what it is said of."""
    return lambda numbers: numbers[place] > 0.0


def among(values: Any, wanted: float) -> float:
    """1 if some number is among others."""
    for value in values:
        if value == wanted:
            return 1.0
    return 0.0
