"""One live stream: predictions out, labels in, now or late, and the state in between."""

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial, wraps
from inspect import getattr_static
from math import inf, nan
from typing import Any, TypeVar

from setpoint import _state_file, spec
from setpoint._check import choice, is_missing, one_by_one, whole
from setpoint._recent import Recent
from setpoint.alarms import Alarm, Episodes
from setpoint.controller import Controller, begin, changed, described, matching, memory_of
from setpoint.errors import AnsweredReceipt, InputError, SpecError, StateError
from setpoint.guarantee import certify
from setpoint.plan import MOST_GROUPS, TWO_SIDED, begun, plan
from setpoint.receipts import Info, Receipt, Receipts, checked_groups, checked_id, labelled
from setpoint.sets.family import with_features
from setpoint.state import Id, State
from setpoint.steps.claims import Accounts
from setpoint.summary import View
from setpoint.watch import LABELS, LATE, acknowledged

T = TypeVar("T")

_MOST_EARLIER = 100
"""How many segments before the last change a certificate remembers."""


class Stream(View):
    """A controller at work on one stream.

    Every `predict` opens a receipt under an id, given or generated; `update` answers it, at once
    or later, in any order, and takes the loss on the set that was shown. Predicting never moves
    θ. After any error the stream is as it was before the call.

    A stream belongs to one thread at a time. With `shared=True` its calls lock one another out,
    and any number of threads may use it.

    Parameters
    ----------
    controller
        What to hold, and how.
    max_pending
        How many predictions may wait for their label at once.
    overflow
        What happens to one more: "refuse" raises `PendingFull`, "expire" drops the oldest.
    missing
        What a NaN label or None does: "raise", or "skip", which closes its prediction unjudged.
    on_alarm
        Called with an `Alarm` when the model's errors or the price of the sets have grown, when
        labels stop coming, when the safeguard begins to act, or when the mean loss of the last
        `window` labels moves further than `tolerance` (or the guarantee allows) from its level:
        once an episode. The label is taken in before, and what the hook raises reaches the caller.
    window, tolerance
        See `on_alarm`.
    shared
        Whether several threads use the stream.
    state
        Where to go on from, such as the state a replay ended in; by default the beginning.

    Examples
    --------
    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.Miscoverage(), level=0.1, step=sp.steps.Fixed(0.5))
    >>> stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    >>> stream.predict((10.0, 14.0))
    Interval(10.0, 14.0)
    >>> stream.update(15.0)
    1.0
    >>> stream.predict((10.0, 14.0), id="tomorrow")
    Interval(9.55, 14.45)
    >>> stream.update(14.2, id="tomorrow")
    0.0
    """

    __slots__ = (
        "__weakref__", "_controller", "_earlier", "_hook", "_last", "_plan", "_receipts", "_recent",
        "_sets", "_skips", "_state", "_watch",
    )  # fmt: skip

    def __new__(cls, *_: Any, shared: bool = False, **__: Any) -> "Stream":
        made: Stream = super().__new__(_Shared if shared else cls)
        return made

    def __init__(
        self,
        controller: Controller,
        *,
        max_pending: int = 10_000,
        overflow: str = "refuse",
        missing: str = "raise",
        on_alarm: Callable[[Alarm], Any] | None = None,
        window: int | None = None,
        tolerance: float | None = None,
        shared: bool = False,
        state: State | None = None,
    ) -> None:
        if not isinstance(controller, Controller):
            raise InputError(
                "a stream runs a Controller, such as setpoint.intervals(coverage=0.9); got "
                f"{controller!r}"
            )
        if on_alarm is not None and not callable(on_alarm):
            raise InputError(f"on_alarm must be callable, got {on_alarm!r}")
        if on_alarm is None and not (window is None and tolerance is None):
            raise InputError("window and tolerance need on_alarm, a function to call")
        limit = whole(max_pending, "max_pending", 1)
        self._receipts = Receipts(limit, choice(overflow, "overflow", ("refuse", "expire")))
        self._skips = choice(missing, "missing", ("raise", "skip")) == "skip"
        self._hook = on_alarm
        self._state = begun(controller) if state is None else matching(controller, state)
        self._earlier: list[dict[str, Any]] = []
        self._last: tuple[Any, ...] | None = None
        self._recent = Recent.of(controller)
        self._watch: Episodes | None = None
        self._adopt(controller)
        if on_alarm is not None:
            levels = [risk.level for risk in controller.risks]
            self._watch = Episodes(levels, window, tolerance)
            self._watch.limits = self._limits(self._watch)

    def _adopt(self, controller: Controller) -> None:
        """Looks up once what every step needs of a controller."""
        self._controller, self._plan = controller, plan(controller)
        self._sets: Any = controller.sets if self._state.sets is None else self._state.sets

    # A step

    def predict(
        self,
        prediction: Any,
        id: Id | None = None,
        groups: Iterable[Id] | None = None,
        *,
        features: Any = None,
    ) -> Any:
        """The set for a prediction; it waits for its label under `id`, or a generated number.

        `groups` names the groups that its row belongs to, such as ("hour=8", "rain"), in each of
        which the risks are held too. `features` are what is known of this row, by name or in
        order, for a controller that asks for them: `intervals(features=[…])`.
        """
        if features is not None:
            prediction = with_features(prediction, features)
        receipts, state, made = self._receipts, self._state, self._plan
        name = receipts.serial if id is None else id if type(id) is str else checked_id(id)
        position, others, oldest, moved, names = state.position, 0, None, None, None
        alone = receipts.only is None and not receipts.several
        if not alone:
            oldest, others = receipts.admit(name), min(len(receipts), receipts.limit - 1)
            if made.at_once and others:
                raise InputError(TWO_SIDED)
            if oldest is not None:
                moved = {group: state.groups[group] for group, _ in oldest.groups}
                position = made.give_up(position, oldest.lam, oldest.groups, moved)
        if groups is not None:
            names = checked_groups(groups)
            moved = self._standing(names, moved or {})
        position, memory, receipt = made.ask(
            state, self._sets, made.read(prediction), name, others, position, names, moved
        )
        if alone and id is None:
            receipts.only = receipt
        else:
            if oldest is not None:
                receipts.close(oldest.id, "expired")
                state.expired += 1
            receipts.queue(Receipt(*receipt))
        receipts.serial += 1
        state.position, state.memory = position, memory
        if moved:
            state.groups.update(moved)
        if others >= state.peak:
            state.peak = others + 1
        watch = self._watch
        if watch is not None and (others >= 20 or watch.silent) and state.watch is not None:
            self._await(watch, state.watch[1])
        return receipt[2]

    def _standing(self, names: tuple[Id, ...], moved: dict[Id, Any]) -> dict[Id, Any]:
        """Where the risks of groups stand, as far as they have begun; some may have moved."""
        known = self._state.groups
        self._plan.groups.check()
        standing = {name: known[name] for name in names if name in known} | moved
        if len(known) + sum(name not in known for name in names) > MOST_GROUPS:
            raise InputError(f"a stream holds at most {MOST_GROUPS:,} groups, {names} has one more")
        return standing

    def update(self, y: Any, id: Id | None = None, *, step: int | None = None) -> Any:
        """Takes in a label and returns its loss: a tuple if there are several risks.

        Without an id it answers the only prediction that waits. Of a path y is the label of one
        `step`, from 1, or those of all steps that have none yet. The loss is None until judged.
        """
        receipts, state = self._receipts, self._state
        receipt: Any = receipts.only
        if id is not None or receipt is None:
            receipt = receipts.find(id)
        name, reading, shown, lam, leader, habits, groups, heard = receipt
        if self._skips and step is None and is_missing(y):
            self._last = None
            return self._give_up(name, "missing")
        partly = self._plan.rules.partly
        if partly:
            label = self._sets.heard(heard, y, step)
        elif step is None:
            label = self._sets.label(y)
        else:
            raise InputError(f"step is for paths, as setpoint.paths() makes, got {step!r}")
        teaches = not receipts.former or name not in receipts.former
        values = self._plan.take_in(
            state, reading, shown, label, lam, leader, habits, groups, teaches,
            len(receipts.several) - 1.0 if receipts.several else 0.0,
        )  # fmt: skip
        if partly and not label.complete:
            waiting = Receipt(*receipt)._replace(heard=tuple(label[:2]))
            receipts.keep(waiting._replace(lam=label.left(shown, lam)))
        elif receipts.only is not None and receipts.given is None and teaches:
            receipts.only = None
        else:
            receipts.close(name, "answered")
        losses = tuple([None if loss != loss else loss for loss in values])
        if partly and losses.count(None) == len(losses):
            return None
        self._last = name, shown, lam, label.values if partly else label, losses
        made = self._plan
        if made.plain:
            point = nan if made.forecast is None else made.forecast(reading)
            self._recent.add(shown, values, label, point, len(receipts.several))
        else:
            self._recent.add(None, values, None, nan, 0)
        if self._watch is not None:
            self._look(self._watch)
        return losses[0] if len(losses) == 1 else losses

    def issue(
        self,
        prediction: Any,
        id: Id | None = None,
        groups: Iterable[Id] | None = None,
        *,
        features: Any = None,
    ) -> Receipt:
        """As `predict`, but returns the receipt, with the id to answer and the λ behind the set."""
        self.predict(prediction, id, groups, features=features)
        return next(reversed(self._receipts.waiting.values()))

    def peek(
        self,
        prediction: Any,
        ahead: int = 0,
        groups: Iterable[Id] | None = None,
        *,
        features: Any = None,
    ) -> Any:
        """The set `predict` would show after `ahead` more predictions; nothing changes."""
        if features is not None:
            prediction = with_features(prediction, features)
        names = None if groups is None else checked_groups(groups)
        return self._asked(prediction, self._receipts.serial + ahead, names)[2]

    def read(self, prediction: Any, id: Id) -> Any:
        """A prediction as its receipt would hold it, to compare it with one that waits."""
        return self._asked(prediction, id, None)[1]

    def _asked(self, prediction: Any, name: Id, names: tuple[Id, ...] | None) -> tuple[Any, ...]:
        """The receipt that a prediction would have."""
        made, state = self._plan, self._state
        state = state.copy() if made.rules.partly else state  # asking moves what paths remember
        moved = None if names is None else self._standing(names, {})
        reading = made.read(prediction)
        return made.ask(state, self._sets, reading, name, 0, state.position, names, moved)[2]

    def update_many(self, labels: Mapping[Id, Any] | Iterable[tuple[Id, Any]]) -> dict[Id, Any]:
        """Takes in several labels by id, in the order given: all of them, or none."""
        pairs = labelled(labels)
        seen: set[Id] = set()
        for id, y in pairs:
            name = self._receipts.find(id).id
            if name in seen:
                raise AnsweredReceipt(f"update_many got two labels for the id {id!r}")
            seen.add(name)
            if not (self._skips and is_missing(y)):
                self._sets.label(y)
        return self.attempt(lambda: {id: self.update(y, id) for id, y in pairs})

    def predict_many(
        self,
        predictions: Iterable[Any],
        ids: Iterable[Id] | None = None,
        groups: Iterable[Iterable[Id] | None] | None = None,
    ) -> list[Any]:
        """The sets for several predictions, as `predict` gives them in turn: all of them, or none.

        They may be the rows of a data frame. `ids` and `groups` have those of each.
        """
        listed = one_by_one(predictions)
        names = [None] * len(listed) if ids is None else list(ids)
        rows = [None] * len(listed) if groups is None else list(groups)
        for what, given in (("ids", names), ("tuples of groups", rows)):
            if len(given) != len(listed):
                raise InputError(f"got {len(listed):,} predictions and {len(given):,} {what}")
        each = zip(listed, names, rows, strict=True)
        return self.attempt(lambda: [self.predict(*row) for row in each])

    def attempt(self, work: Callable[[], T]) -> T:
        """Runs several calls as one: if any fails, none has happened."""
        before = self.snapshot()
        hook, alarms = self._hook, list[Alarm]()
        self._hook = alarms.append if hook is not None else None
        try:
            result = work()
        except BaseException:
            self.revert(before)
            raise
        finally:
            self._hook = hook
        for alarm in alarms:
            hook(alarm)  # type: ignore[misc]
        return result

    def snapshot(self) -> tuple[Any, ...]:
        """A snapshot for `revert`."""
        watched = None if self._watch is None else self._watch.content()
        state, receipts = self._state.copy(), self._receipts.copy()
        return state, receipts, self._last, self._recent.copy(), watched

    def revert(self, before: tuple[Any, ...]) -> None:
        """Makes the stream what it was when the snapshot was taken."""
        self._state, self._receipts, self._last, self._recent, watched = before
        self._adopt(self._controller)
        if watched is not None:
            self._watch = self._watch_of(watched)

    def drop(self, id: Id | None = None) -> None:
        """Gives up a prediction whose label will not come."""
        self._give_up(self._receipts.find(id).id, "dropped")

    def _give_up(self, id: Id, how: str) -> None:
        state, receipt = self._state, self._receipts.find(id)
        state.position = self._plan.give_up(
            state.position, receipt.lam, receipt.groups, state.groups
        )
        self._receipts.close(id, how)
        setattr(state, how, getattr(state, how) + 1)

    # What waits

    def receipt(self, id: Id | None = None) -> Receipt:
        """The waiting receipt under an id, or the only one; else the error of `update`."""
        return self._receipts.find(id)

    @property
    def pending(self) -> dict[Id, Receipt]:
        """The receipts that wait for a label, oldest first."""
        return dict(self._receipts.waiting)

    def closed(self, id: Id) -> str | None:
        """How the prediction under an id ended: "answered", "missing", "dropped" or "expired".

        "closed" if that was long ago; None if it waits, was never made, or is forgotten: the last
        5,000 ids of a user are remembered.
        """
        return self._receipts.ended(id)

    def hand_over(self) -> dict[Id, str]:
        """Returns how every remembered prediction ended, and forgets them.

        It forgets `recent` too. For those who keep a memory of their own.
        """
        self._recent.clear()
        return self._receipts.hand_over()

    # Its life

    def plot(self) -> Any:
        """A plotly figure of the last labels and their sets; it needs the extra `plots`."""
        from setpoint.report import plot

        return plot(self)

    def change(
        self,
        *,
        risk: int = 0,
        level: float | None = None,
        step: Any = None,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        """Changes a risk's level, step rule or bounds, also for waiting predictions.

        θ and every memory go on; the certificate begins a new segment, and keeps the earlier ones.
        """
        waiting = len(self._receipts)
        controller = changed(self._controller, risk, level, step, bounds, waiting=waiting)
        earlier = certify(self._controller, self._state, waiting=waiting).as_dict()
        del earlier["earlier"]
        self._adopt(controller)
        self._earlier = [*self._earlier, earlier][-_MOST_EARLIER:]
        if step is not None and not isinstance(step, Accounts):
            self._state.put(risk, step=memory_of(step))
            for name, held in self._state.groups.items():
                other = (*held[risk][:8], memory_of(step))
                self._state.groups[name] = (*held[:risk], other, *held[risk + 1 :])
        begin(controller, self._state, waiting)
        if self._watch is not None:
            self._watch.begin([other.level for other in controller.risks])
            self._watch.limits = self._limits(self._watch)

    def reset(self) -> None:
        """Forgets what was learnt of the model, because another one takes its place.

        The correction, the memory of the stretch and a window of scores begin anew; θ, the account
        and the certificate go on. What waits is still judged and counted, and teaches nothing.
        """
        state, first = self._state, begun(self._controller)
        state.learns(first.memory, first.table, first.annex)
        state.sets = first.sets
        state.position = state.position[0], first.position[1]
        self._receipts.former = frozenset(self._receipts.waiting)
        self.acknowledge()
        self._adopt(self._controller)

    def acknowledge(self) -> None:
        """Takes what the sets cost from now on as the new reference, and ends its alarms.

        `reset` and `change` do the same. About 700 labels later the price is known again.
        """
        if self._state.watch is not None:
            self._state.watched = acknowledged(self._state.watched)

    def _limits(self, watch: Episodes) -> tuple[float | None, ...]:
        """What the mean of a window should not exceed: the tolerance, or the guarantee's own."""
        if watch.window is None or watch.tolerance is not None:
            return (watch.tolerance,) * len(self._controller.risks)
        constants = [risk.window for risk in self.certificate().risks]
        return tuple(None if c is None else c / watch.window for c in constants)

    def _look(self, watch: Episodes) -> None:
        info, hook = self.info, _nobody if self._hook is None else self._hook
        if info is None:
            return
        saturated = {"full": inf, "empty": -inf}.get(info.saturated or "", 0.0)
        grows = watch.window is not None and watch.tolerance is None
        watch.cost(self._state.watch, hook, self._say)
        watch.look(saturated, info.losses, hook, (lambda: self._limits(watch)) if grows else None)

    def _await(self, watch: Episodes, held: list[float]) -> None:
        """Calls for someone where labels have stopped coming."""
        if held[LABELS] > 0.0:
            hook = _nobody if self._hook is None else self._hook
            watch.await_labels(self._receipts.several, held[LATE], hook)

    def _watch_of(self, content: dict[str, Any]) -> Episodes:
        return Episodes.restore([risk.level for risk in self._controller.risks], content)

    # Saved and loaded

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything the stream needs to go on to one file, whole or not at all."""
        _state_file.write(path, "stream", {**self.header(), **self.content()})

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        controller: Controller | None = None,
        on_alarm: Callable[[Alarm], Any] | None = None,
        shared: bool = False,
    ) -> "Stream":
        """The stream saved at `path`, to the bit; `on_alarm` and `shared` are not saved.

        `controller` is needed only where a part of it could not be written down.
        """
        content = _state_file.read(path, "stream")
        with _state_file.intact(path):
            controller = _state_file.matching_controller(content, controller)
            return cls.restored(controller, content, on_alarm=on_alarm, shared=shared)

    @classmethod
    def restored(
        cls,
        controller: Controller,
        content: dict[str, Any],
        *,
        on_alarm: Callable[[Alarm], Any] | None = None,
        shared: bool = False,
    ) -> "Stream":
        """Rebuilds a stream from `content`, with the same controller."""
        stream = cls(controller, on_alarm=on_alarm, shared=shared)
        stream.restore(content)
        return stream

    def header(self) -> dict[str, Any]:
        """The controller as plain values, as far as it can be written down."""
        try:
            plain = spec.to_dict(self._controller)
        except SpecError:
            plain = None
        return {"controller": plain, "repr": described(self._controller)}

    def content(self, *, waiting: bool = True) -> dict[str, Any]:
        """Everything but the controller that the stream needs to go on, as plain values of its own.

        What waits may be left out, where it is kept elsewhere.
        """
        return {
            **_state_file.content_of(self._state),
            "missing": "skip" if self._skips else "raise",
            "receipts": self._receipts.content(waiting=waiting),
            "last": self._last,
            "earlier": deepcopy(self._earlier),
            "watch": None if self._watch is None else self._watch.content(),
        }

    def restore(self, content: dict[str, Any]) -> None:
        """Loads `content`, completely or not at all."""
        state = _state_file.state_of(self._controller, content)
        receipts = Receipts.restored(content["receipts"])
        for receipt in receipts.waiting.values():
            if not all(group in state.groups for group, _ in receipt.groups):
                raise StateError(f"the prediction {receipt.id!r} waits in a group that is unknown")
        last = content["last"]
        watch = None if content["watch"] is None else self._watch_of(content["watch"])
        self._skips = content["missing"] == "skip"
        self._state, self._receipts, self._watch = state, receipts, watch
        self._last = None if last is None else tuple(Info(*last))
        self._earlier = list(content["earlier"])
        self._recent.clear()
        self._adopt(self._controller)

    def __reduce__(self) -> tuple[Any, ...]:
        revive = partial(Stream.restored, on_alarm=self._hook, shared=isinstance(self, _Shared))
        return revive, (self._controller, deepcopy(self.content()))

    def __repr__(self) -> str:
        return f"<Stream of {self._controller!r} at θ = {self.theta}>"


def _nobody(alarm: Alarm) -> None:
    """Stands for a hook where a stream was loaded without one: its watch goes on."""


_all: "weakref.WeakSet[Any]" = weakref.WeakSet()


def _shared(kind: Any, *names: str) -> Any:
    """A class whose methods and properties of these names lock one another out."""

    class Shared(kind):  # type: ignore[misc]
        """One with a lock around every call."""

        __slots__ = ("_lock",)

        def __init__(self, *arguments: Any, **options: Any) -> None:
            self._lock = threading.RLock()
            _all.add(self)
            super().__init__(*arguments, **options)

    for name in names:
        setattr(Shared, name, _locked(getattr_static(kind, name)))
    return Shared


def _locked(original: Any) -> Any:
    """A method or a property under the lock of its object."""
    call: Any = original.fget if isinstance(original, property) else original

    @wraps(call)
    def turn(self: Any, *arguments: Any, **options: Any) -> Any:
        with self._lock:
            return call(self, *arguments, **options)

    return property(turn) if isinstance(original, property) else turn


def _unlock() -> None:
    """The thread that held a lock does not exist in a forked child."""
    for each in _all:
        each._lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_unlock)


_Shared = _shared(
    Stream,
    "predict", "update", "issue", "peek", "read", "update_many", "predict_many", "attempt", "drop",
    "receipt", "pending", "closed", "hand_over", "state", "theta", "lam", "info", "certificate",
    "recent", "summary", "coverage", "price", "alarms", "acknowledge", "change", "reset", "content",
    "restore", "snapshot", "revert", "save", "header", "to_frame", "plot", "_repr_html_",
    "__reduce__", "__repr__",
)  # fmt: skip
