"""The account that the self-adjusting presets keep: θ is S = Σ(l − r), with a floor and a room.

Labels that wait may all miss, so room is kept for them. When a set is made:

    h     the habit: how many others wait, or do so on average, whichever is more
    B     K + σh + (h + 1)a, where a label raises S by at most a: what is guaranteed for a habit h
    V     S + aW: the account if all W sets that wait and are not full should miss
    L     what is guaranteed now: B, or what is left of an earlier, larger B, paid back by ρ a set
    D     the debt: the part of S that does not press yet, so that λ does not jump when h falls
    full  if X = S − D reaches the room K + σh + (h − W)a

and V ≤ L + ρu at every time, where u counts the full sets made since the last one that was not
full, less the labels of full sets since then. For a set that is not full has V + a < D + B ≤ L. A
full set leaves V as it is and lowers L by at most ρ; its label lowers V by 2ρ at least. A label of
another set moves what it may cost from W into S. Dropping one lowers V. A lift to the floor leaves
V ≤ aW ≤ B. `docs/why.md` tells it slowly.
"""

from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from setpoint._check import number, positive
from setpoint.errors import InputError
from setpoint.steps.claims import Claim, Memory, Premise, Within, bound, make_positive

_RATE = 0.01  # at which the mean number of those that wait follows
_MOST = 50.0 / 0.15  # gains: a set is full where λ would be larger, 50 for the default gain


class Book(NamedTuple):
    """What an account remembers besides S."""

    waiting: float = 0.0  # open predictions
    exposed: float = 0.0  # those with a set that is not full
    settled: float = 0.0  # u
    recent: float = 0.0  # the excess of recent labels
    mean: float = 0.0  # how many others waited
    bound: float = 0.0  # L
    debt: float = 0.0  # D
    habit: float = 0.0  # of the last set
    most: float = 0.0  # the largest bound since the segment began
    widest: float = 0.0  # and the largest habit


def ask(params: Memory, theta: float, book: Memory) -> tuple[Memory, float, float]:
    """The book when a set is asked for, how hard S presses for a larger set, and the habit."""
    limit, share, gain, ease, ahead, wall, _, two_sided, dead, rise, pace = params
    waiting, exposed, settled, recent, mean, bound, debt, last, most, widest = book
    last = gain / (1.0 + last / ease) if last > 0.0 else gain
    mean += _RATE * (waiting - mean)
    habit = waiting if waiting > mean else mean
    kept = limit + share * habit
    needed = kept + (habit + 1.0) * rise
    gain = gain / (1.0 + habit / ease) if habit > 0.0 else gain
    near = theta + rise * exposed + kept
    bound, debt = repaid(theta, bound, debt, needed, near, last, gain, pace)
    pressing, room = theta - debt, kept + (habit - exposed) * rise
    part = pressing / room if pressing > 0.0 else 0.0
    part *= part
    part = part * part if wall > 2.0 else part
    part = part * part if wall > 4.0 else part
    left = 1.0 - part
    press = gain * (pressing + ahead * habit * recent) / (left if left > 0.0 else 1.0)
    press -= dead * gain
    press = inf if (pressing >= room) | (press > _MOST * params[2]) else press
    press = -inf if (two_sided > 0.0) & (pressing <= -room) else press
    most = needed if needed > most else most
    widest = habit if habit > widest else widest
    book = (waiting, exposed, settled, recent, mean, bound, debt, habit, most, widest)
    return book, press, habit


def repaid(
    account: float, bound: float, debt: float, needed: float, near: float, last: float, gain: float,
    pace: float,
) -> tuple[float, float]:  # fmt: skip
    """L and D one set later: both are paid back, and D grows where the gain has.

    `needed` is B, `near` what L need not exceed, `last` the gain of the set before.
    """
    paid = bound - pace
    paid = near if near < paid else paid
    bound = needed if needed > paid else paid
    pressing = account - debt
    if (gain > last) & (pressing > 0.0):
        debt = account - pressing * last / gain
    debt -= pace
    debt = bound - needed if debt > bound - needed else debt
    debt = account if debt > account else debt
    return bound, debt if debt > 0.0 else 0.0


def opened(book: Memory, full: bool) -> Memory:
    """The book once the set is shown."""
    exposed, settled = (book[1], book[2] + 1.0) if full else (book[1] + 1.0, 0.0)
    return (book[0] + 1.0, exposed, settled) + book[3:]  # noqa: RUF005


def settled(book: Memory, excess: float, full: bool, habit: float) -> Memory:
    """The book once the label of a set is judged; the habit is that of its set."""
    exposed, settled = book[1] if full else book[1] - 1.0, book[2]
    settled = settled - 1.0 if full & (settled > 0.0) else settled
    recent = book[3] + (excess - book[3]) / (1.0 + habit)
    return (book[0] - 1.0, exposed, settled, recent) + book[4:]  # noqa: RUF005


def dropped(book: Memory, full: bool) -> Memory:
    """The book once a prediction is given up, or there is nothing to judge."""
    return (book[0] - 1.0, book[1] if full else book[1] - 1.0) + book[2:]  # noqa: RUF005


def begun(params: Memory, theta: float, book: Memory) -> Memory:
    """The book where a segment begins: what is guaranteed starts from V and the habit of now.

    Where the account is beyond a limit that was lowered, the excess is a debt, paid back set by
    set: the full set until it is paid would serve nobody.
    """
    waiting, exposed, _, recent, mean, _, debt, habit, _, widest = book
    usual = max(waiting, mean, habit)
    kept = params[0] + params[1] * usual
    if (theta - debt >= kept) & (params[7] == 0.0):
        debt = theta - 0.75 * kept
    bound = max(theta + params[9] * exposed, debt + _needed(params, usual))
    widest = widest if waiting > 0.0 else 0.0
    return waiting, exposed, 0.0, recent, mean, bound, debt, habit, bound, widest


def _needed(params: Memory, habit: float) -> float:
    """B: what is guaranteed for a habit."""
    return params[0] + params[1] * habit + (habit + 1.0) * params[9]


def account(
    params: Memory, theta: float, memory: Memory, excess: float, critical: float
) -> tuple[float, Memory]:
    """θ + (l − r): the account of the loss above the level."""
    return theta + excess, memory


def least(params: Memory, habit: float) -> float:
    """−(F + h): thrift beyond it is forgotten."""
    return -(params[6] + habit)


@dataclass(frozen=True, slots=True)
class Account:
    """θ is the account itself, S ← S + (l − r), and the sets widen as it fills.

    λ = g·S/(1 − (S/K)⁸) while nothing waits, and the full set from S = K on, so that Σ(l − r) ≤
    K + (l_max − r) at every time, whatever the data, the model and the units. With a habit of h
    others waiting the limit is K + σh, the gain g/(1 + h/2), and S is taken as it would be if those
    that wait miss as the recent ones did. After an outage of labels everything is soon as before.

    λ is the logarithm of a factor for `sets.Multiplied`; of other families it is in units of y, and
    so is `gain`.

    Parameters
    ----------
    limit
        K: how much loss above the level is allowed before the full set is shown.
    gain
        g: how fast the sets widen with the account. Smaller is narrower and less steady.
    share
        σ: how much the limit grows with every prediction that waits.
    ease
        The gain is halved when this many others wait.
    ahead
        How many times those that wait are expected to miss as the recent ones did.
    wall
        2, 4 or 8: how late and how steeply sets widen near the limit.
    floor
        F: S is lifted to −(F + h) where it falls below, so that old thrift does not pay for new
        losses, and the bound holds on every window with F + h added.
    two_sided
        Whether the empty set is shown from S = −K on. Nothing is forgotten then, and labels must
        come before the next prediction.
    dead
        In a group λ is lowered by this many gains: many groups together hardly widen a set.

    Examples
    --------
    >>> step = Account()
    >>> step.rule(step.params, 2.0, step.init(), 0.9, 0.0)[0]
    2.9
    >>> [round(step.press(s, rise=0.9), 3) for s in (-2.0, 0.0, 5.0, 9.0, 10.0)]
    [-0.3, 0.0, 0.753, 2.37, inf]
    >>> claim = step.claim(Within(low=-inf, high=inf, start=0.0, fall=-0.1, rise=0.9), (0.0,), 0)
    >>> claim.upper, claim.window[1]
    (10.9, 20.9)
    """

    limit: float = 10.0
    gain: float = 0.15
    share: float = 4.0
    ease: float = 2.0
    ahead: float = 4.0
    wall: int = 8
    floor: float | None = None
    two_sided: bool = False
    dead: float = 2.0

    rule = staticmethod(account)
    ask = staticmethod(ask)
    opened = staticmethod(opened)
    settled = staticmethod(settled)
    dropped = staticmethod(dropped)
    begun = staticmethod(begun)
    least = staticmethod(least)

    def __post_init__(self) -> None:
        make_positive(self, "limit", "gain", "ease")
        make_positive(self, "share", "ahead", "dead", zero=True)
        if self.wall not in (2, 4, 8):
            raise InputError(f"Account.wall must be 2, 4 or 8, got {self.wall!r}")
        if self.floor is not None:
            if self.two_sided:
                raise InputError(f"a two-sided account has no floor, got {self.floor}")
            floor = number(self.floor, "Account.floor")
            floor = floor if floor == inf else positive(floor, "Account.floor")
            object.__setattr__(self, "floor", floor)

    @property
    def params(self) -> Memory:
        floor = inf if self.two_sided else self.limit if self.floor is None else self.floor
        options = self.limit, self.share, self.gain, self.ease, self.ahead
        return (*options, float(self.wall), floor, 1.0 if self.two_sided else 0.0, 0.0)

    @property
    def group_params(self) -> Memory:
        """The numbers of the account of a group."""
        return (*self.params[:-1], self.dead)

    def init(self) -> Memory:
        """Nothing waits."""
        return tuple(Book())

    def press(self, account: float, rise: float, waiting: int = 0) -> float:
        """The account's pressure for a larger set: λ, if no stretch changes it."""
        book = Book(waiting=waiting, exposed=waiting, most=account, bound=account)
        return ask((*self.params, rise, 0.0), account, book)[1]

    def claim(self, within: Within, memory: Memory, T: int) -> Claim:
        """What the book says: no more than the largest bound since the segment began."""
        book = Book(*memory) if len(memory) > 1 else Book()
        limit, floor, rise, start = self.limit, self.params[6], within.rise, within.start
        most = max(book.most, limit + rise)
        now = min(max(book.bound + within.pace * book.settled, limit + rise), most)
        deepest = min(-(floor + book.widest), start)
        low = -(limit - within.fall) if self.two_sided else None
        low = None if low is None else min(low, start)
        return Claim(
            lower=None if low is None else low - start,
            upper=bound(most - start),
            window=(None if low is None else low - most, bound(most - (low or deepest))),
            window_needs_lower=floor == inf,
            identity=within.theta - start - within.lifted,
            reach=(deepest if low is None else low, most),
            counted=True,
            bounded=True,
            now=bound(now - start),
            worst=within.theta + rise * book.exposed,
            habit=book.habit,
            premises=(Premise("θ is the account Σ(loss − level) itself", True),),
        )
