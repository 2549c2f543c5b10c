"""One θ for each group of rows (season, site, class), beside a marginal one for all of them."""

import os
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from setpoint import _state_file
from setpoint._check import choice, whole
from setpoint.controller import Controller, begin
from setpoint.errors import (
    AmbiguousReceipt,
    InputError,
    PendingFull,
    SetpointError,
    StateError,
    UnknownReceipt,
)
from setpoint.guarantee import Certificate, RiskCertificate, pooled
from setpoint.plan import plan
from setpoint.receipts import Id, checked_id, labelled
from setpoint.steps import Accounts
from setpoint.stream import Stream
from setpoint.summary import ManySummary, summarise_many

__all__ = ["GroupCertificate", "Groups"]


@dataclass(frozen=True, slots=True)
class GroupCertificate:
    """What is guaranteed of the sets that were shown: in every group, and in all together.

    Parameters
    ----------
    together
        One certificate for each risk, of every shown set. A group's total excess is bounded, so
        that of all groups is bounded by the sum.
    groups
        The certificate of each group, of the sets shown to it.
    marginal
        That of the marginal θ, of the sets it would have shown to everyone.
    """

    together: tuple[RiskCertificate, ...]
    groups: Mapping[Id, Certificate]
    marginal: Certificate

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists and finite numbers, with the verdicts."""
        return {
            "together": [risk.as_dict() for risk in self.together],
            "groups": {key: held.as_dict() for key, held in self.groups.items()},
            "marginal": self.marginal.as_dict(),
        }

    def __str__(self) -> str:
        lines = [f"certificate: {len(self.groups):,} group{'s' * (len(self.groups) != 1)}"]
        for place, risk in enumerate(self.together):
            lines += ["", f"  {risk.name} at level {risk.level:g}, all groups: {risk.verdict}"]
            words = risk.words()
            lines += [f"     {name:<12}{sentence}" for name, sentence in words.items()]
            if "budget" not in words and (risk.lower, risk.upper) != (None, None):
                low = "" if risk.lower is None else f"{risk.lower:+.4g} ≤ "
                high = "" if risk.upper is None else f" ≤ {risk.upper:+.4g}"
                lines.append(f"     bound       {low}mean − level{high}, for every stream")
            for key, held in self.groups.items():
                own = held.risks[place]
                mean = f"{own.mean:.4g}" if own.judged else "–"
                lines.append(f"     {key!r}: {mean} over {own.judged:,} labels ({own.verdict})")
            own = self.marginal.risks[place]
            mean = f"{own.mean:.4g}" if own.judged else "–"
            lines.append(
                f"     the marginal θ, on sets of its own: {mean} over {own.judged:,} labels "
                f"({own.verdict})"
            )
        return "\n".join(lines)


class Groups:
    """A controller at work on rows that belong to groups, each group with a θ of its own.

    A row is shown the set of its group's θ, so the risk is held in every group, and with it over
    all. The marginal θ learns beside them from every row, on the sets it would have shown; a group
    seen for the first time begins where the marginal θ is, and with an account of its own, at 0.

    Parameters
    ----------
    controller
        What to hold in every group, and how.
    most
        How many groups there may be.
    max_pending, missing
        As for `Stream`.

    Examples
    --------
    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-20, 20))
    >>> groups = sp.Groups(sp.Controller(sp.sets.Widen(), risk))
    >>> groups.predict((10.0, 14.0), group="north")
    Interval(10.0, 14.0)
    >>> groups.update(15.0)
    1.0
    >>> groups.predict((10.0, 14.0), group="north", id="n2")
    Interval(9.55, 14.45)
    >>> groups.predict((10.0, 14.0), group="south", id="s1")  # begins at the marginal θ
    Interval(9.55, 14.45)
    >>> groups.update(14.0, id="n2"), groups.update(18.0, id="s1")
    (0.0, 1.0)
    >>> {key: round(stream.theta, 2) for key, stream in groups.streams.items()}
    {'north': 0.4, 'south': 0.9}
    """

    def __init__(
        self,
        controller: Controller,
        *,
        most: int = 10_000,
        max_pending: int = 10_000,
        missing: str = "raise",
    ) -> None:
        if plan(controller).at_once:
            raise InputError(
                "a two-sided account needs every label before the next prediction, and those of "
                "other groups come between: leave out two_sided"
            )
        self._most = whole(most, "most", 1)
        self._limit = whole(max_pending, "max_pending", 1)
        self._missing = choice(missing, "missing", ("raise", "skip"))
        self._marginal = Stream(controller, max_pending=self._limit, missing=self._missing)
        self._streams: dict[Id, Stream] = {}
        self._where: dict[Id, Id] = {}
        self._serial = 0

    @property
    def controller(self) -> Controller:
        """What is held, and how."""
        return self._marginal.controller

    @property
    def streams(self) -> Mapping[Id, Stream]:
        """The stream of each group, to look at."""
        return MappingProxyType(self._streams)

    @property
    def marginal(self) -> Stream:
        """The stream of the marginal θ, to look at."""
        return self._marginal

    @property
    def pending(self) -> dict[Id, Id]:
        """The ids that wait for a label, oldest first, with the group of each."""
        return dict(self._where)

    def predict(self, prediction: Any, group: Id, id: Id | None = None) -> Any:
        """The set for a row of a group; it waits for its label under `id` or a generated number."""
        key = checked_id(group, "a group")
        name = self._serial if id is None else checked_id(id)
        if name in self._where:
            raise InputError(f"a prediction already waits under the id {name!r}")
        if len(self._where) >= self._limit:
            raise PendingFull(
                f"{len(self._where):,} predictions wait for their labels, as many as max_pending "
                "allows; answer or drop some"
            )
        stream = self._streams.get(key) or self._begun(key)
        self._marginal.peek(prediction)  # what can fail there fails before anything changes
        shown = stream.predict(prediction, name)
        self._marginal.predict(prediction, name)
        self._streams[key] = stream
        self._where[name] = key
        self._serial = max(self._serial, name if isinstance(name, int) else 0) + 1
        return shown

    def _begun(self, key: Id) -> Stream:
        """A new group: it begins where the marginal θ is, its account at 0."""
        if len(self._streams) >= self._most:
            raise InputError(f"there may be at most {self._most:,} groups, {key!r} is one more")
        state, first = self._marginal.state, self.controller.init()
        for place, (begun, risk) in enumerate(zip(first.risks, self.controller.risks, strict=True)):
            state.put(place, step=begun.step, loss=begun.loss)
            if isinstance(risk.step, Accounts):  # what others lost is not its debt
                state.put(place, theta=begun.theta)
        begin(self.controller, state)
        inside = zip(state.risks, self.controller.bounds, strict=True)
        state.fresh = all(low <= own.theta <= high for own, (low, high) in inside)
        return Stream(self.controller, max_pending=self._limit, missing=self._missing, state=state)

    def update(self, y: Any, id: Id | None = None) -> Any:
        """Takes in a label and returns the loss of the set that was shown."""
        name, key = self._find(id)
        own = self._streams[key]
        self._marginal.rehearse(y, name)
        value = own.update(y, name)
        self._marginal.update(y, name)
        del self._where[name]
        return value

    def update_many(self, labels: Mapping[Id, Any] | Iterable[tuple[Id, Any]]) -> dict[Id, Any]:
        """Takes in several labels by id, in the order given: all of them, or none."""
        pairs = labelled(labels)
        streams = [self._marginal, *{self._streams[self._find(id)[1]] for id, _ in pairs}]
        before, where = [stream.snapshot() for stream in streams], dict(self._where)
        try:
            return {id: self.update(y, id) for id, y in pairs}
        except BaseException:
            for stream, earlier in zip(streams, before, strict=True):
                stream.revert(earlier)
            self._where = where
            raise

    def peek(self, prediction: Any, group: Id) -> Any:
        """The set `predict` would show now, without waiting for a label."""
        key = checked_id(group, "a group")
        return (self._streams.get(key) or self._begun(key)).peek(prediction)

    def drop(self, id: Id | None = None) -> None:
        """Gives up a prediction whose label will not come."""
        name, key = self._find(id)
        self._marginal.drop(name)
        self._streams[key].drop(name)
        del self._where[name]

    def _find(self, id: Id | None) -> tuple[Id, Id]:
        if id is None:
            if len(self._where) == 1:
                return next(iter(self._where.items()))
            if not self._where:
                raise UnknownReceipt("no prediction waits for a label: call predict first")
            raise AmbiguousReceipt(
                f"{len(self._where):,} predictions wait for their labels: say which by "
                "update(y, id=…)"
            )
        name = checked_id(id)
        if name not in self._where:
            self._marginal.receipt(name)  # says whether it was answered, given up or never there
        return name, self._where[name]

    def certificate(self) -> GroupCertificate:
        """What is guaranteed in each group, over all of them, and of the marginal θ."""
        groups = {key: stream.certificate() for key, stream in self._streams.items()}
        return GroupCertificate(
            tuple(map(pooled, zip(*(held.risks for held in groups.values()), strict=True))),
            MappingProxyType(groups),
            self._marginal.certificate(),
        )

    def summary(self) -> ManySummary:
        """How all groups are doing together, and those with the highest risk; print it.

        `groups.streams[key].summary()` has more of one group.
        """
        risks = [stream.state.risks[0] for stream in self._streams.values()]
        judged, totals = [risk.judged for risk in risks], [risk.total for risk in risks]
        ids, pending = list(self._streams), len(self._where)
        return summarise_many(self.controller, ids, judged, totals, pending)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes every group and what waits to one file, whole or not at all."""
        content = {
            **self._marginal.header(),
            "most": self._most,
            "max_pending": self._limit,
            "missing": self._missing,
            "marginal": self._marginal.content(),
            "streams": [(key, stream.content()) for key, stream in self._streams.items()],
            "where": list(self._where.items()),
            "serial": self._serial,
        }
        _state_file.write(path, "groups", content)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, controller: Controller | None = None
    ) -> "Groups":
        """The groups saved at `path`, to the bit.

        `controller` is needed only where a part of it could not be written down.
        """
        content = _state_file.read(path, "groups")
        try:
            made = cls(
                _state_file.matching_controller(content, controller),
                most=content["most"],
                max_pending=content["max_pending"],
                missing=content["missing"],
            )
            made._marginal.restore(content["marginal"])
            for key, held in content["streams"]:
                made._streams[key] = Stream.restored(made.controller, held)
            made._where = dict(content["where"])
            made._serial = content["serial"]
        except SetpointError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise StateError(f"{os.fspath(path)} is damaged: {error!r}") from error
        return made

    def __copy__(self) -> "Groups":
        return deepcopy(self)

    def __repr__(self) -> str:
        return f"<Groups of {self.controller!r}: {len(self._streams):,}>"
