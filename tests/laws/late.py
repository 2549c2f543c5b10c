"""Labels as they really come: at once, late, out of order, missing, given up, expired."""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from hypothesis import strategies as st

import setpoint as sp
from tests.laws.adversary import Adversary
from tests.laws.ledger import Ledger


class Habit(NamedTuple):
    """How labels come: how many predictions may wait, in which order they are answered, how often
    one is given up or has no label, and what happens to one prediction too many.
    """

    waiting: int
    order: str
    given_up: float
    overflow: str


def habits() -> st.SearchStrategy[Habit]:
    """Any habit with a handful of predictions waiting."""
    return st.builds(
        Habit,
        st.integers(1, 6),
        st.sampled_from(["any", "newest", "oldest", "bursts"]),
        st.sampled_from([0.0, 0.0, 0.1, 0.4]),
        st.sampled_from(["refuse", "expire"]),
    )


class Event(NamedTuple):
    """What happened to which prediction: what was shown, its label and what that cost."""

    what: str
    id: Any
    shown: Any = None
    y: Any = None
    losses: Any = None


class Clerk:
    """Issues predictions and hands over labels by the habit, one event at a time.

    It keeps what was shown under every id, as a user would.
    """

    def __init__(self, stream: sp.Stream, adversary: Adversary, habit: Habit, seed: int) -> None:
        self.stream = stream
        self.adversary = adversary
        self.habit = habit
        self.rng = Random(seed)
        self.shown: dict[Any, Any] = {}
        self.filling = True
        self.named = 0

    def event(self) -> Event:
        """The next thing that happens."""
        waiting = list(self.shown)
        if self._predicts(len(waiting)):
            id = self._issue()
            return Event("predict", id, self.shown[id])
        id = self._choose(waiting)
        shown = self.shown.pop(id)
        if self.rng.random() < self.habit.given_up:
            if self.rng.random() < 0.5:
                self.stream.drop(id)
                return Event("drop", id, shown)
            self.stream.update(float("nan"), id)
            return Event("missing", id, shown)
        y = self.adversary.label(self.stream, shown)
        losses = self.stream.update(y, None if self._plain(waiting) else id)
        return Event("update", id, shown, y, losses)

    def _plain(self, waiting: list[Any]) -> bool:
        return len(waiting) == 1 and self.rng.random() < 0.5

    def _predicts(self, waiting: int) -> bool:
        limit = self.habit.waiting
        if waiting == 0:
            self.filling = True
            return True
        if waiting >= limit:
            self.filling = False
            return self.habit.overflow == "expire" and self.rng.random() < 0.3
        return self.filling if self.habit.order == "bursts" else self.rng.random() < 0.5

    def _issue(self) -> Any:
        id = None
        if self.rng.random() < 0.3:
            self.named += 1
            id = f"given {self.named}"
        receipt = self.stream.issue(self.adversary.prediction(), id)
        if len(self.shown) == self.habit.waiting:
            del self.shown[next(iter(self.shown))]  # expired
        self.shown[receipt.id] = receipt.shown
        return receipt.id

    def _choose(self, waiting: list[Any]) -> Any:
        if self.habit.order == "newest":
            return waiting[-1]
        return waiting[0] if self.habit.order == "oldest" else self.rng.choice(waiting)


def delayed(controller: sp.Controller, habit: Habit) -> sp.Stream:
    """A stream that allows what the habit asks for."""
    return sp.Stream(controller, max_pending=habit.waiting, overflow=habit.overflow, missing="skip")


def play(
    controller: sp.Controller,
    adversary: tuple[str, int],
    steps: int,
    check: Callable[[Ledger], None] = Ledger.hold,
) -> Ledger:
    """A stream whose labels come at once; `check` is called with the ledger after every label."""
    stream = sp.Stream(controller)
    player, ledger = Adversary(controller, *adversary), Ledger(stream)
    for _ in range(steps):
        shown = stream.predict(player.prediction())
        ledger.note(stream.update(player.label(stream, shown)))
        check(ledger)
    ledger.hold_windows()
    return ledger


def play_late(
    controller: sp.Controller,
    adversary: tuple[str, int],
    habit: Habit,
    events: int,
    check: Callable[[Ledger], None] = Ledger.hold,
) -> Ledger:
    """A stream of late labels; `check` is called with the ledger after every label."""
    stream = delayed(controller, habit)
    clerk = Clerk(stream, Adversary(controller, *adversary), habit, adversary[1])
    ledger = Ledger(stream)
    for _ in range(events):
        event = clerk.event()
        ledger.waited()
        if event.what == "update":
            ledger.note(event.losses)
            check(ledger)
    ledger.hold_windows()
    return ledger
