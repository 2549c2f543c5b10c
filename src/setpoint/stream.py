"""One live stream: predictions out, labels in, now or late, and the state in between."""

import operator
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import wraps
from math import inf
from types import new_class
from typing import Any, NamedTuple

import numpy as np

from setpoint import _store, spec
from setpoint._check import choice, interval, is_missing, whole
from setpoint._inline import Specialised, specialise
from setpoint.alarms import Alarm, Watch
from setpoint.controller import (
    Controller,
    Law,
    RiskState,
    State,
    aim,
    aim_each,
    aim_several,
    laws_of,
    learn,
    learn_each,
    learn_several,
    matching,
)
from setpoint.errors import (
    AmbiguousReceipt,
    AnsweredReceipt,
    ExpiredReceipt,
    InputError,
    PendingFull,
    ReceiptError,
    SetpointError,
    SpecError,
    StateError,
    UnknownReceipt,
)
from setpoint.guarantee import Certificate, certify

__all__ = ["Id", "Info", "Receipt", "Stream", "checked_id", "matching_controller"]

Id = int | str

_MOST_EARLIER = 100
"""How many segments before the last change a certificate remembers."""

_REMEMBERED = 10_000
"""How many closed ids are remembered, to tell a second label from an unknown id."""


class Receipt(NamedTuple):
    """A prediction that waits for its label: under which id, what was shown, and why."""

    id: Id
    prediction: Any
    shown: Any
    lam: Any


class Info(NamedTuple):
    """What the last label told; for people and metrics, it never feeds back.

    `losses` holds one loss for each risk, None where there was nothing to judge; `lam` is a tuple
    where each risk has a set of its own.
    """

    id: Id
    shown: Any
    lam: Any
    y: Any
    losses: tuple[float | None, ...]

    @property
    def saturated(self) -> str | None:
        """ "full" or "empty" if the safeguard chose the set, or one of several."""
        lams = self.lam if isinstance(self.lam, tuple) else (self.lam,)
        return "full" if inf in lams else "empty" if -inf in lams else None


class Stream:
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
        Called with an `Alarm` when the safeguard begins to act, or when the mean loss of the last
        `window` labels moves further than `tolerance` from its level. Without a tolerance the
        limit is the guarantee's own, which only a broken premise can exceed. It is called after
        the label is taken in, and what it raises reaches the caller.
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
        "__weakref__",
        "_closed",
        "_controller",
        "_draws",
        "_earlier",
        "_forgetful",
        "_given",
        "_hook",
        "_last",
        "_law",
        "_laws",
        "_limit",
        "_lock",
        "_open",
        "_overflow",
        "_own",
        "_pending",
        "_serial",
        "_sets",
        "_single",
        "_skips",
        "_split",
        "_state",
        "_watch",
        "_watched",
    )  # fmt: skip

    def __init_subclass__(cls, *, made_to_measure: bool = False) -> None:
        if not made_to_measure:
            raise TypeError("a Stream cannot be subclassed: wrap it, or write a part of your own")

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
            raise InputError(f"a stream runs a Controller, got {controller!r}")
        if on_alarm is not None and not callable(on_alarm):
            raise InputError(f"on_alarm must be callable, got {on_alarm!r}")
        self._limit = whole(max_pending, "max_pending", 1)
        self._overflow = choice(overflow, "overflow", ("refuse", "expire"))
        self._skips = choice(missing, "missing", ("raise", "skip")) == "skip"
        self._hook = on_alarm
        self._lock = threading.RLock() if shared else None
        self._state = controller.init() if state is None else matching(controller, state)
        # Nothing waits: None. One waits under a generated id: its receipt. Else (): see _pending.
        self._open: tuple[Any, ...] | None = None
        self._pending: dict[Id, tuple[Any, ...]] = {}
        self._serial = 0
        self._given: int | None = None
        self._forgetful = False
        self._closed: dict[Id, str] = {}
        self._earlier: list[dict[str, Any]] = []
        self._last: tuple[Any, ...] | None = None
        self._watch: Watch | None = None
        self._watched = on_alarm is not None
        if on_alarm is None and not (window is None and tolerance is None):
            raise InputError("window and tolerance need on_alarm, a function to call")
        self._adopt(controller, laws_of(controller, self._state))
        if on_alarm is not None:
            levels = [risk.level for risk in controller.risks]
            self._watch = Watch(levels, window, tolerance)
            self._watch.limits = self._limits(self._watch)

    def _adopt(self, controller: Controller, laws: tuple[Law, ...]) -> None:
        """Looks up once what every step needs of a controller."""
        self._controller = controller
        self._sets: Any = controller.sets if self._state.sets is None else self._state.sets
        self._laws = laws
        self._law = self._laws[0]
        self._single = len(self._laws) == 1
        self._split = hasattr(controller.sets, "sides")
        self._draws = bool(getattr(controller.sets, "draws", False))
        self._own = self._state.risks[0]
        self.__class__ = _class_for(self)

    # A step

    def predict(self, prediction: Any, id: Id | None = None) -> Any:
        """The set for a prediction; it waits for its label under `id`, or a generated number."""
        reading = self._sets.read(prediction)
        if self._draws:
            reading = self._sets.draw(reading, self._serial if id is None else checked_id(id))
        lam: Any
        if self._single:
            lam = aim(self._law, self._own, self._state.stretch)
            leader = 0
        elif self._split:
            lam, leader = aim_each(self._laws, self._state), 0
        else:
            lam, leader = aim_several(self._laws, self._controller.combine, self._state)
        shown = self._sets.at(reading, lam)
        receipt = (self._serial, reading, shown, lam, leader)
        if id is None and self._open is None:
            self._open = receipt
        else:
            self._queue(receipt, id)
        self._serial += 1
        return shown

    def update(self, y: Any, id: Id | None = None) -> Any:
        """Takes in a label and returns its loss: a tuple if there are several risks.

        Without an id it answers the only prediction that waits.
        """
        receipt = self._open
        if id is not None or not receipt:
            id, receipt = self._find(id)
        if self._skips and is_missing(y):
            return self._give_up(receipt[0] if id is None else id, "missing")
        label = self._sets.label(y)
        _, reading, shown, lam, leader = receipt
        state = self._state
        value: Any
        if self._single:
            value = learn(self._law, self._own, state, reading, shown, lam, label)
        elif self._split:
            value = learn_each(self._laws, self._sets, state, reading, shown, label)
        else:
            combine = self._controller.combine
            value = learn_several(self._laws, combine, state, reading, shown, lam, leader, label)
        if id is None:
            self._open = None
        else:
            self._close(id, "answered")
        self._last = (id, receipt, label, value)
        if self._watched:
            self._look()
        return value

    def issue(self, prediction: Any, id: Id | None = None) -> Receipt:
        """As `predict`, but returns the receipt, with the id to answer and the λ behind the set."""
        serial = self._serial
        self.predict(prediction, id)
        id = serial if id is None else checked_id(id)
        return self._receipt(id, self._waiting()[id])

    def peek(self, prediction: Any, ahead: int = 0) -> Any:
        """The set `predict` would show now, without waiting for a label.

        `ahead` says how many predictions come before it, which only the chance of a randomised
        family depends on.
        """
        return self._sets.at(self.read(prediction, self._serial + ahead), self.lam)

    def read(self, prediction: Any, id: Id) -> Any:
        """A prediction as its receipt would hold it, to compare it with one that waits."""
        reading = self._sets.read(prediction)
        return self._sets.draw(reading, id) if self._draws else reading

    def update_many(self, labels: Mapping[Id, Any] | Iterable[tuple[Id, Any]]) -> dict[Id, Any]:
        """Takes in several labels by id, in the order given: all of them, or none."""
        try:
            pairs = [(id, y) for id, y in (labels.items() if hasattr(labels, "items") else labels)]
        except (TypeError, ValueError):
            raise InputError(
                f"labels must be a mapping or pairs of (id, y), got {labels!r}"
            ) from None
        seen: set[Id] = set()
        for id, y in pairs:
            found, _ = self._find(id)
            if found in seen:
                raise AnsweredReceipt(f"update_many got two labels for the id {id!r}")
            seen.add(found)
            if not (self._skips and is_missing(y)):
                self._sets.label(y)
        before, last = self._state.copy(), self._last
        watched = None if self._watch is None else self._watch.content()
        losses: dict[Id, Any] = {}
        held = dict(self._find(id) for id, _ in pairs)
        hook = self._hook
        alarms: list[Alarm] = []
        self._hook = alarms.append
        try:
            for id, y in pairs:
                losses[id] = self.update(y, id)
        except BaseException:
            self._hook = hook
            waiting = self._waiting()
            answered = {id: each for id, each in held.items() if id not in waiting}
            if answered:
                self._take_back(before, last, watched, answered)
            raise
        self._hook = hook
        if hook is not None:
            for alarm in alarms:
                hook(alarm)
        return losses

    def _take_back(
        self,
        state: State,
        last: tuple[Any, ...] | None,
        watched: dict[str, Any] | None,
        answered: dict[Id, tuple[Any, ...]],
    ) -> None:
        """Undoes the first labels of several, after one that could not be taken in."""
        self._state, self._last = state, last
        self._adopt(self._controller, laws_of(self._controller, state))
        if watched is not None:
            self._watch = Watch.restore([risk.level for risk in self._controller.risks], watched)
        waiting = {**self._waiting(), **answered}
        self._pending = dict(sorted(waiting.items(), key=lambda each: each[1][0]))
        self._open = ()
        for id in answered:
            self._closed.pop(id, None)

    def drop(self, id: Id | None = None) -> None:
        """Gives up a prediction whose label will not come."""
        receipt = self._open
        if id is not None or not receipt:
            id, receipt = self._find(id)
        self._give_up(receipt[0] if id is None else id, "dropped")

    # What waits

    def _queue(self, receipt: tuple[Any, ...], id: Id | None) -> None:
        """Lets a receipt wait beside others, or under a given id."""
        waiting = self._waiting()
        if id is None:
            id = receipt[0]
        elif type(id) is not str:
            id = checked_id(id)
        if id in waiting:
            raise InputError(f"a prediction already waits under the id {id!r}")
        if len(waiting) >= self._limit:
            self._make_room()
            waiting = self._waiting()
        self._pending = waiting
        self._open = ()
        waiting[id] = receipt
        if id != receipt[0]:
            if self._given is None:
                self._given = receipt[0]
            self._closed.pop(id, None)
            if type(id) is int and id > self._serial:
                self._serial = id
        if len(waiting) > self._state.peak:
            self._state.peak = len(waiting)

    def _make_room(self) -> None:
        """Lets the oldest receipt go, if that is what the stream was told."""
        waiting = self._waiting()
        if self._overflow == "refuse":
            raise PendingFull(
                f"{len(waiting):,} predictions wait for their labels, as many as max_pending "
                'allows; answer or drop some, or let the oldest go with overflow="expire"'
            )
        self._give_up(next(iter(waiting)), "expired")

    def _waiting(self) -> dict[Id, tuple[Any, ...]]:
        """Every receipt that waits, oldest first."""
        return {self._open[0]: self._open} if self._open else self._pending

    def _find(self, id: Id | None) -> tuple[Id, tuple[Any, ...]]:
        """The receipt that waits under an id, or the only one."""
        waiting = self._waiting()
        if id is None:
            if len(waiting) == 1:
                return next(iter(waiting.items()))
            if not waiting:
                raise UnknownReceipt("no prediction waits for a label: call predict first")
            raise AmbiguousReceipt(
                f"{len(waiting):,} predictions wait for their labels: say which by update(y, id=…)"
            )
        id = id if type(id) is str else checked_id(id)
        receipt = waiting.get(id)
        if receipt is None:
            raise self._absent(id)
        return id, receipt

    def closed(self, id: Id) -> str | None:
        """How the prediction under an id ended: "answered", "missing", "dropped" or "expired".

        "closed" if it ended in one of these ways long ago; None if it waits, if there was none, or
        if the id was one of its user's and is forgotten. The last 10,000 are remembered.
        """
        id = id if type(id) is str else checked_id(id)
        if id in self._waiting():
            return None
        return self._closed.get(id) or self._generated(id)

    def _generated(self, id: Id) -> str | None:
        """How a prediction under a generated id ended that is in no list."""
        generated = self._serial if self._given is None else self._given
        if isinstance(id, int) and 0 <= id < generated:
            return "closed" if self._forgetful else "answered"
        return None

    def hand_over(self) -> dict[Id, str]:
        """How the predictions under the ids remembered ended; the stream forgets them.

        For those who keep a memory of their own, which is to be asked from then on.
        """
        handed, self._closed = self._closed, {}
        self._forgetful |= any(how != "answered" for how in handed.values())
        return handed

    def _absent(self, id: Id) -> ReceiptError:
        """Why nothing waits under an id."""
        how = self._closed.get(id) or self._generated(id)
        if how is None:
            return UnknownReceipt(f"no prediction waits under the id {id!r}")
        if how == "closed":
            return UnknownReceipt(f"the prediction {id!r} was answered or given up long ago")
        if how == "answered":
            return AnsweredReceipt(f"the prediction under the id {id!r} already has its label")
        return ExpiredReceipt(f"the prediction under the id {id!r} was given up ({how})")

    def _close(self, id: Id, how: str) -> None:
        """Forgets a receipt, but remembers for a while that there was one."""
        if self._open:
            self._open = None
        else:
            del self._pending[id]
            if not self._pending:
                self._open = None
        if self._given is not None or how != "answered":
            self._closed[id] = how
            if len(self._closed) > _REMEMBERED:
                oldest = next(iter(self._closed))
                self._forgetful |= self._closed.pop(oldest) != "answered"

    def _give_up(self, id: Id, how: str) -> None:
        self._close(id, how)
        setattr(self._state, how, getattr(self._state, how) + 1)

    def _receipt(self, id: Id, held: tuple[Any, ...]) -> Receipt:
        _, reading, shown, lam, _ = held
        return Receipt(id, reading, shown, lam)

    def receipt(self, id: Id | None = None) -> Receipt:
        """What waits under an id, or the only one; if none waits, the error of `update`."""
        return self._receipt(*self._find(id))

    @property
    def pending(self) -> dict[Id, Receipt]:
        """What waits for a label, oldest first."""
        return {id: self._receipt(id, held) for id, held in self._waiting().items()}

    # What it knows

    @property
    def controller(self) -> Controller:
        """What the stream holds, and how."""
        return self._controller

    @property
    def state(self) -> State:
        """A copy of all that survives a step, what waits for labels apart."""
        return self._state.copy()

    @property
    def theta(self) -> Any:
        """θ now; a tuple if there are several risks."""
        thetas = tuple(own.theta for own in self._state.risks)
        return thetas[0] if self._single else thetas

    @property
    def lam(self) -> Any:
        """The λ of the next prediction: +inf means the full set, −inf the empty one.

        A tuple where each risk has a set of its own.
        """
        if self._single:
            return aim(self._law, self._own, self._state.stretch)
        if self._split:
            return aim_each(self._laws, self._state)
        return aim_several(self._laws, self._controller.combine, self._state)[0]

    @property
    def info(self) -> Info | None:
        """What the last label told, None before the first."""
        if self._last is None:
            return None
        id, receipt, label, value = self._last
        serial, _, shown, lam, _ = receipt
        losses = (value,) if self._single else value
        return Info(serial if id is None else id, shown, lam, label, losses)

    def certificate(self) -> Certificate:
        """What is guaranteed of this stream, and whether the premises hold."""
        return certify(
            self._controller, self._state, waiting=len(self._waiting()), earlier=self._earlier
        )

    # Its life

    def change(
        self,
        *,
        risk: int = 0,
        level: float | None = None,
        step: Any = None,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        """Changes the level, the step rule or the bounds of a risk from now on.

        θ and every memory go on; the certificate begins a new segment, and keeps the earlier ones.
        """
        risks = list(self._controller.risks)
        if whole(risk, "risk", 0) >= len(risks):
            raise InputError(f"risk must be an index from 0 to {len(risks) - 1}, got {risk!r}")
        if level is None and step is None and bounds is None:
            raise InputError("change needs a level, a step or bounds")
        old, own = risks[risk], self._state.risks[risk]
        start = self._controller.starts[risk]
        low, high = self._controller.bounds[risk] if bounds is None else interval(bounds, "bounds")
        risks[risk] = replace(
            old,
            level=old.level if level is None else level,
            step=old.step if step is None else step,
            bounds=old.bounds if bounds is None else bounds,
            start=old.start if low <= start <= high else min(max(start, low), high),
        )
        controller = replace(self._controller, risks=tuple(risks))
        laws = laws_of(controller, self._state)
        memory = own.step if step is None else laws[risk].first_step_memory()
        earlier = certify(self._controller, self._state, waiting=len(self._waiting())).as_dict()
        del earlier["earlier"]
        self._adopt(controller, laws)
        self._earlier = [*self._earlier, earlier][-_MOST_EARLIER:]
        own.step = memory
        self._state.begin(len(self._waiting()), controller.terms)
        if self._watch is not None:
            self._watch.begin([each.level for each in risks])
            self._watch.limits = self._limits(self._watch)

    def _limits(self, watch: Watch) -> tuple[float | None, ...]:
        """What the mean of a window should not exceed: the tolerance, or the guarantee's own."""
        if watch.window is None or watch.tolerance is not None:
            return (watch.tolerance,) * len(self._laws)
        constants = [risk.window for risk in self.certificate().risks]
        return tuple(None if c is None else c / watch.window for c in constants)

    def _look(self) -> None:
        info, watch, hook = self.info, self._watch, self._hook
        if info is not None and watch is not None and hook is not None:
            if watch.peak != self._state.peak:  # the guarantee's limit grows with the delay
                watch.peak = self._state.peak
                watch.limits = self._limits(watch)
            saturated = {"full": inf, "empty": -inf}.get(info.saturated or "", 0.0)
            watch.look(saturated, info.losses, hook)

    # Saved and loaded

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything the stream needs to go on to one file, whole or not at all."""
        _store.write(path, "stream", {**self._header(), **self._content()})

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        controller: Controller | None = None,
        on_alarm: Callable[[Alarm], Any] | None = None,
        shared: bool = False,
    ) -> "Stream":
        """The stream saved at `path`, to the bit.

        `controller` is needed only where a part of it could not be written down, such as a
        function; `on_alarm` and `shared` are not saved.
        """
        content = _store.read(path, "stream")
        try:
            held = matching_controller(content, controller)
            return cls.restored(held, content, on_alarm=on_alarm, shared=shared)
        except SetpointError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise StateError(f"{os.fspath(path)} is damaged: {error!r}") from error

    @classmethod
    def restored(
        cls,
        controller: Controller,
        content: dict[str, Any],
        *,
        on_alarm: Callable[[Alarm], Any] | None = None,
        shared: bool = False,
    ) -> "Stream":
        """The stream that gave `content`, under the controller it had."""
        stream = cls(
            controller,
            max_pending=content["max_pending"],
            overflow=content["overflow"],
            missing=content["missing"],
            on_alarm=on_alarm,
            shared=shared,
        )
        stream._restore(content)
        return stream

    def content(self) -> dict[str, Any]:
        """Everything but the controller that the stream needs to go on, as plain values."""
        return self._content()

    def _header(self) -> dict[str, Any]:
        try:
            described = spec.to_dict(self._controller)
        except SpecError:
            described = None
        return {"controller": described, "repr": _address_free(self._controller)}

    def _content(self) -> dict[str, Any]:
        """The state as plain values, sharing nothing with the stream."""
        state = self._state
        return {
            "max_pending": self._limit,
            "overflow": self._overflow,
            "missing": "skip" if self._skips else "raise",
            "risks": [_slots(own) for own in state.risks],
            "counts": {
                name: each for name, each in _slots(state).items() if name not in ("risks", "sets")
            },
            "family": None if state.sets is None else np.array(state.sets.memory),
            "serial": self._serial,
            "given": self._given,
            "forgetful": self._forgetful,
            "receipts": [(id, *held) for id, held in self._waiting().items()],
            "queued": self._open == (),
            "closed": list(self._closed.items()),
            "last": self._last,
            "earlier": deepcopy(self._earlier),
            "watch": None if self._watch is None else self._watch.content(),
        }

    def _restore(self, content: dict[str, Any]) -> None:
        """Takes over a state that `_content` gave."""
        self._limit = content["max_pending"]
        self._overflow = content["overflow"]
        self._skips = content["missing"] == "skip"
        for own, saved in zip(self._state.risks, content["risks"], strict=True):
            for name, value in saved.items():
                setattr(own, name, value)
        for name, value in content["counts"].items():
            setattr(self._state, name, value)
        if self._state.sets is not None:
            memory = content["family"].tolist()
            self._state.sets = self._controller.sets.bind(memory)  # type: ignore[attr-defined]
        self._adopt(self._controller, laws_of(self._controller, self._state))
        self._serial, self._given = content["serial"], content["given"]
        self._forgetful = content["forgetful"]
        receipts = {id: tuple(held) for id, *held in content["receipts"]}
        self._pending, self._open = {}, None
        if content["queued"]:
            self._pending, self._open = receipts, ()
        elif receipts:
            self._open = next(iter(receipts.values()))
        self._closed = dict(content["closed"])
        self._last = content["last"]
        self._earlier = list(content["earlier"])
        if content["watch"] is not None:
            levels = [risk.level for risk in self._controller.risks]
            self._watch = Watch.restore(levels, content["watch"])

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (self._controller, self._hook, self._lock is not None, self._content())

    def __repr__(self) -> str:
        return f"<Stream of {self._controller!r} at θ = {self.theta}>"


def _revive(controller: Controller, hook: Any, shared: bool, content: dict[str, Any]) -> Stream:
    """A copy of a stream, for `copy` and `pickle`."""
    return Stream.restored(controller, deepcopy(content), on_alarm=hook, shared=shared)


def _slots(record: RiskState | State) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__slots__}


def checked_id(id: Any, what: str = "an id") -> Id:
    """An id as a plain int or str."""
    if isinstance(id, str):
        return str(id)
    try:
        if not isinstance(id, bool):
            return operator.index(id)
    except TypeError:
        pass
    raise InputError(f"{what} must be a whole number or a string, got {id!r}")


def _address_free(controller: Controller) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(controller))


def matching_controller(content: dict[str, Any], given: Controller | None) -> Controller:
    """The controller of a saved state: the saved one, or the one given if it is the same."""
    if given is None:
        if content["controller"] is None:
            raise StateError(
                "the controller of this state has a part that could not be written down; give it "
                f"again by load(path, controller=…): {content['repr']}"
            )
        return spec.from_dict(content["controller"])
    if _address_free(given) != content["repr"]:
        raise StateError(
            f"the state belongs to {content['repr']}, the controller given is "
            f"{_address_free(given)}"
        )
    return given


# Classes made to measure: a step with everything decided and written out.


_MOST_CLASSES = 64
_classes: dict[Any, list[tuple[tuple[Specialised, ...], type[Stream]]]] = {}


def _class_for(stream: Stream) -> type[Stream]:
    """A class whose step is written for controllers like this stream's."""
    known = {
        "self._sets": stream._sets,
        "self._law": stream._law,
        "self._single": stream._single,
        "self._split": stream._split,
        "self._draws": stream._draws,
        "self._watched": stream._watched,
        "self._skips": stream._skips,
    }
    shared = stream._lock is not None
    kind = getattr(stream._sets, "shows", None)
    made = _classes.setdefault((type(stream._sets), kind, shared), [])
    for steps, cls in made:
        if all(step.fits(known) for step in steps):
            return cls
    kinds = {"shown": kind} if isinstance(kind, type) else {}
    steps = tuple(
        specialise(method, known, kinds)
        for method in (Stream.__dict__["predict"], Stream.__dict__["update"])
    )
    methods: dict[str, Any] = {step.function.__name__: step.function for step in steps}
    if shared:
        methods["_unlocked"] = {**Stream.__dict__, **methods}
        methods |= {name: _locked(name) for name in _LOCKED}
    methods |= {"__slots__": (), "__doc__": Stream.__doc__, "__module__": Stream.__module__}
    cls = new_class(
        "Stream", (Stream,), {"made_to_measure": True}, lambda body: body.update(methods)
    )
    made.append((steps, cls))
    del made[:-_MOST_CLASSES]
    return cls


_LOCKED = (
    "predict", "update", "issue", "peek", "update_many", "drop", "change", "certificate", "save",
    "pending", "state", "theta", "lam", "info", "__reduce__", "read", "closed", "hand_over",
    "receipt", "content",
)  # fmt: skip


def _locked(name: str) -> Any:
    """A method or property that waits for its turn, and then is what it has become meanwhile."""
    original = Stream.__dict__[name]

    def turn(self: Any, *args: Any, **options: Any) -> Any:
        with self._lock:
            method = type(self)._unlocked[name]
            if isinstance(method, property):
                return method.fget(self)  # type: ignore[misc]
            return method(self, *args, **options)

    return property(turn) if isinstance(original, property) else wraps(original)(turn)
