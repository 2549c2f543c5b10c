"""What a running stream looks like now: a few lines for a terminal or a notebook."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from math import inf, nan
from typing import Any

import numpy as np

from setpoint._check import plain
from setpoint._html import amount, table
from setpoint._recent import Label, Recent
from setpoint.alarms import words
from setpoint.certificate import GroupCertificates, Status
from setpoint.controller import Controller
from setpoint.correction import Explains
from setpoint.correction.explanation import Explanation, factor_of
from setpoint.correction.rules import Base
from setpoint.errors import InputError
from setpoint.guarantee import Certificate, RiskCertificate, asked_of, certify
from setpoint.metrics.arrays import Calibration, calibration
from setpoint.metrics.usefulness import Use, Usefulness, usefulness
from setpoint.plan import Plan
from setpoint.receipts import Info, Receipts
from setpoint.sets import Fan, Interval
from setpoint.sets.family import Priced, Supports, whole_of
from setpoint.state import Id, State
from setpoint.watch import Price, evidence, lasting, price_of

_SAID = {
    "bias": "actual values lie {:+.4g} from the forecast",
    "scale": "errors are about {:.4g}",
    "below": "ends lie {:.4g} below",
    "above": "{:.4g} above",
    "given": "the width that the model gave counts for {:.0%}",
    "sharpness": "probabilities are taken to the power {:.2f}",
    "model": "as the model gave them they count for {:.0%}",
    "balance": "offsets of classes lie {:.2f} apart",
    "period": "the season has {:,} rows",
    "season": "it moves actual values by about {:.4g}",
    "least": "no actual value lies below {:.6g}",
    "most": "no actual value lies above {:.6g}",
}
"""What a correction has learnt, in words; other names stand for themselves."""


class Lines:
    """Lines of a name and a text, printed in a terminal and in a notebook."""

    __slots__ = ()

    def lines(self) -> list[tuple[str, str]]:
        """The lines to print, with their names."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(f"{name:<12}{text}" for name, text in self.lines())

    def _repr_html_(self) -> str:
        return table(self.lines())


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class StreamSummary(Lines):
    """How a stream is doing. It prints itself, in a terminal and in a notebook.

    What is recent is about the last labels since the stream was made or loaded, at most 250.
    """

    risks: tuple[RiskCertificate, ...]  # the certificate of each risk
    pending: int  # predictions that wait for their label
    recent: int  # last labels
    recent_risks: tuple[float, ...]  # the mean loss of each risk over them, NaN if none was judged
    width: float | None  # their mean width or size, infinite ones left out; None without one
    full: float  # the share of their sets that were full: without limits, or with every class
    learnt: Mapping[str, Any]  # what the correction has learnt, by name
    controller: Controller
    rows: np.ndarray[Any, Any]  # the last labels as numbers
    measure: str = "width"  # of intervals, or the "size" of sets of labels
    groups: GroupCertificates = field(default_factory=GroupCertificates)
    price: Price | None = None  # what sets and model cost now, beside a healthy past; None at first
    alarms: Mapping[str, str] = field(default_factory=dict)  # those about the price, by kind
    chance: float | None = None  # the most that such errors can have if the model is as it was

    @property
    def labels(self) -> int:
        """The number of labels judged, since the start or the last change."""
        return self.risks[0].judged

    @property
    def coverage(self) -> float | None:
        """The share of labels in their sets; None where the first risk is about something else."""
        return self.risks[0].coverage

    @property
    def usefulness(self) -> Usefulness | None:
        """Whether the intervals of the last labels were of use; None for other sets and losses.

        Beside a rolling quantile of the forecast's errors.
        """
        return _usefulness(self.controller, self.rows)

    @property
    def calibration(self) -> Calibration | None:
        """The calibration of several quantiles over the last labels; None for other sets."""
        return _calibration(self.controller, self.rows)

    @property
    def recent_coverage(self) -> float | None:
        """The same over the last labels."""
        return None if self.risks[0].asked is None else 1.0 - self.recent_risks[0]

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain values; what is not a finite number is None."""
        first, use, scores, price = self.risks[0], self.usefulness, self.calibration, self.price
        numbers = {
            "labels": self.labels,
            "pending": self.pending,
            "coverage": self.coverage,
            "asked": first.asked,
            "risk": first.mean,
            "level": first.level,
            "recent": self.recent,
            "recent_coverage": self.recent_coverage,
            "recent_risk": self.recent_risks[0],
            "width": self.width,
            "full": self.full,
            "account": first.account,
            "bound": first.constant_upper if first.counted else None,
            "learnt": self.learnt,
            "usefulness": use and use.as_dict(),
            "groups": len(self.groups),
            "worst_group": next(iter(self.groups.lines(1)), None),
            "crps": scores and scores.crps,
            "wql": scores and scores.wql,
            "price": price and price.sets,
            "price_model": price and price.model,
            "world": price and price.world,
            "alarms": dict(self.alarms),
        }
        values: dict[str, Any] = plain(numbers)
        return values

    def lines(self) -> list[tuple[str, str]]:
        """The lines to print, with their names."""
        lines = [("labels", f"{self.labels:,} seen, {self.pending:,} awaited")]
        for risk, recent in zip(self.risks, self.recent_risks, strict=True):
            if len(self.risks) > 1:
                lines.append(("risk", f"{risk.name} at level {risk.level:g}"))
            if risk.judged:
                lines.append(_came_out(risk, recent, self.recent))
            lines.append(_held(risk))
        lines += [("worst group", line) for line in self.groups.lines(1)]
        if self.width is not None and self.recent:
            width = "infinite" if self.width != self.width else amount(self.width)
            full = f", {100.0 * self.full:.1f} % of them full" if self.full else ""
            lines.append((f"mean {self.measure}", f"{width} over the last {self.recent}{full}"))
        if (scores := self.calibration) is not None and scores.labels:
            text = f"CRPS {scores.crps:.4g}, weighted quantile loss {scores.wql:.4g}"
            lines.append(("quantiles", f"{text} over the last {self.recent}"))
        if self.price is not None:
            lines.append(("price", str(self.price)))
        lines += [("alarm", words) for words in self.alarms.values()]
        if self.chance is not None and self.chance < 0.1:
            text = (
                f"if the model were as it was, errors like these had a chance of {self.chance:.2g}"
            )
            lines.append(("odds", f"{text} at most (about probability, no part of the guarantee)"))
        if (use := self.usefulness) is not None and use.use is not Use.TOO_EARLY:
            lines.append(("useful?", f"{use.use} (the last {self.recent} labels): {use.words}"))
        if told(self.learnt):
            lines.append(("learnt", ", ".join(told(self.learnt).values())))
        return lines

    def __repr__(self) -> str:
        return str(self)


def told(learnt: Mapping[str, Any]) -> dict[str, str]:
    """What a correction has learnt, in words by its names; nothing before the first label.

    >>> list(told({"labels": 8, "bias": -0.5, "given": 0.25, "period": 0}).values())
    ['actual values lie -0.5 from the forecast', 'the width that the model gave counts for 25 %']
    """
    if not learnt.get("labels", 1):
        return {}
    left_out = {"labels", "usual", "features"}
    left_out |= set() if learnt.get("period", 1) else {"period", "season"}
    left_out |= set() if learnt.get("given", 1.0) else {"given"}
    left_out |= {name for name in ("least", "most") if learnt.get(name) is None}
    names = [name for name in learnt if name not in left_out]
    said = {name: _SAID.get(name, f"{name} {{:.4g}}").format(learnt[name]) for name in names}
    said = {name: words.replace("%", " %") for name, words in said.items()}
    return said | {f"features.{i}": words for i, words in enumerate(learnt.get("features", ()))}


def _came_out(risk: RiskCertificate, recent: float, count: int) -> tuple[str, str]:
    """What came out of one risk, over all labels and the last ones."""
    if risk.asked is None:
        last = f", {recent:.4g} of the last {count}" if count else ""
        return "mean loss", f"{risk.mean:.4g}{last}; asked {risk.level:.4g}"
    last = f", {100.0 * (1.0 - recent):.1f} % of the last {count}" if count else ""
    return "coverage", f"{100.0 * (1.0 - risk.mean):.1f} %{last}; asked {100.0 * risk.asked:.6g} %"


def _held(risk: RiskCertificate) -> tuple[str, str]:
    """What is guaranteed for one risk."""
    if not risk.counted or risk.constant_upper is None:
        return "guarantee", str(risk.status)
    text = f"{risk.excess:+.1f} {risk.unit[1]} above what you allow"
    most = f"never more than {risk.constant_upper:+.4g}"
    if risk.status in (Status.HOLDS, Status.HOLDS_FROM_ABOVE):
        return "budget", f"{text}; guaranteed {most}"
    return "budget", f"{text}; {most}: {risk.status}"


def summarise(
    controller: Controller, state: State, *, waiting: int, recent: Recent,
    alarms: Mapping[str, str] | None = None,
) -> StreamSummary:  # fmt: skip
    """The summary of a stream from its state, its last rows and the alarms that last."""
    rows = recent.table()
    columns = [column[~np.isnan(column)] for column in rows[:, 7 : 7 + len(controller.risks)].T]
    means = [float(losses.mean()) if losses.size else nan for losses in columns]
    sizes = rows[:, 2][~np.isnan(rows[:, 2])]
    finite = sizes[np.isfinite(sizes)]
    labels = bool(sizes.size) and bool(np.isnan(rows[:, 0]).all())
    certificate = certify(controller, state, waiting=waiting)
    return StreamSummary(
        risks=certificate.risks,
        pending=waiting,
        recent=len(recent),
        recent_risks=tuple(means),
        width=None if not sizes.size else float(finite.mean()) if finite.size else nan,
        full=float(rows[:, 6].sum()) / sizes.size if sizes.size else 0.0,
        measure="size" if labels else "width",
        learnt=learnt_in(controller, state),
        controller=controller,
        rows=rows,
        groups=certificate.groups,
        price=price_of(state.watched),
        alarms=alarms or {},
        chance=1.0 / value if (value := evidence(state.watched)) > 1.0 else None,
    )


def _calibration(controller: Controller, rows: np.ndarray[Any, Any]) -> Calibration | None:
    """What came out of the last bands."""
    rows = rows[~np.isnan(rows[:, 3])]
    if not isinstance(controller.sets, Fan) or not len(rows):
        return None
    ends = rows[:, 7 + len(controller.risks) :]
    return calibration(controller.sets.taus, ends, rows[:, 3])


def _usefulness(controller: Controller, rows: np.ndarray[Any, Any]) -> Usefulness | None:
    """Whether the last intervals were of use, against the latest errors that were known."""
    sets: Any = controller.sets
    asked = sets.hull if isinstance(sets, Fan) else asked_of(controller.risks[0])
    rows = rows[~np.isnan(rows[:, 3])]
    if asked is None or not len(rows):
        return None
    return usefulness(
        rows[:, 0],
        rows[:, 1],
        rows[:, 3],
        None if np.isnan(rows[:, 4]).any() else rows[:, 4],
        coverage=asked,
        support=sets.support if isinstance(sets, Supports) else (-inf, inf),
        delay=int(np.median(rows[:, 5])),
    )


def learnt_in(controller: Controller, state: State) -> dict[str, Any]:
    """What the correction has learnt in a state, by name; nothing without one.

    `features` has a sentence for each feature that tells something.
    """
    stage: Any = controller.correction
    if not isinstance(stage, Explains):
        return {}
    told = [str(effect) for effect in stage.effects(state)[1:] if effect.tells]
    known = dict(stage.learnt(state)._asdict())
    return {**known, "features": told} if told else known


class View:
    """What a stream knows, to be read."""

    __slots__ = ()

    _controller: Controller
    _state: State
    _plan: Plan
    _receipts: Receipts
    _recent: Recent
    _earlier: list[dict[str, Any]]
    _last: tuple[Any, ...] | None

    @property
    def controller(self) -> Controller:
        """The controller of the stream."""
        return self._controller

    @property
    def state(self) -> State:
        """A copy of all that survives a step, what waits for labels apart."""
        return self._state.copy()

    @property
    def theta(self) -> Any:
        """θ now; a tuple if there are several risks."""
        thetas = tuple([risk[0] for risk in self._state.position[0]])
        return thetas[0] if len(thetas) == 1 else thetas

    @property
    def lam(self) -> Any:
        """The λ of the next prediction, if none must expire for it: +inf means the full set.

        A tuple where each risk has its own set.
        """
        return self._plan.aim(self._plan.numbers, self._state.position)[1]

    @property
    def info(self) -> Info | None:
        """The `Info` of the last label; None before the first and after a skipped one."""
        return None if self._last is None else Info(*self._last)

    def certificate(self) -> Certificate:
        """What is guaranteed for this stream, and whether the premises hold."""
        waiting = len(self._receipts)
        return certify(self._controller, self._state, waiting=waiting, earlier=self._earlier)

    def explain(self, id: Id | None = None) -> Explanation:
        """Why the interval of a prediction that waits is as it is; print it.

        >>> import setpoint as sp
        >>> stream = sp.Stream(sp.intervals(features=["hour"]))
        >>> for t in range(300):
        ...     _ = stream.predict((9.0, 11.0), features=[t % 24])
        ...     _ = stream.update(12.0 + (0.5 if t % 24 < 12 else 2.0) * (-1) ** t)
        >>> interval = stream.predict((9.0, 11.0), features={"hour": 20})
        >>> why = stream.explain()
        >>> why.forecast, round(why.moved), why.size > why.usual
        (10.0, 2, True)
        """
        stage: Any = self._controller.correction
        if not isinstance(stage, Explains):
            raise InputError("only intervals with a correction are explained, as intervals() makes")
        receipt, state = self._receipts.find(id), self._state
        if not isinstance(receipt.shown, Interval):
            raise InputError(f"one interval is explained, and several were shown: {receipt.shown}")
        base = Base(*receipt.prediction[: len(Base._fields)])
        known, parts = stage.learnt(state), stage.parts(state, receipt.prediction)
        return Explanation(
            receipt.id, base.middle, receipt.shown.lower, receipt.shown.upper, base.centre,
            base.expected, parts, base.expected - sum(part.moves for part in parts), base.scale,
            known.usual, known.given, factor_of(receipt.lam), state.risks[0].theta,
        )  # fmt: skip

    @property
    def price(self) -> Price | None:
        """The price of its sets and model, relative to a healthy past; None while unknown.

        >>> import random
        >>> import setpoint as sp
        >>> stream, world = sp.Stream(sp.intervals()), random.Random(1)
        >>> for row in range(1200):
        ...     _ = stream.predict((9.0, 11.0))
        ...     _ = stream.update(10.0 + world.gauss(0.0, 1.0 if row < 1000 else 3.0))
        >>> price = stream.price
        >>> price.model > 2.0, price.first, price.last
        (True, 201, 700)
        """
        return price_of(self._state.watched)

    @property
    def alarms(self) -> dict[str, str]:
        """The alarms about the price that last, by kind, in words."""
        kinds = lasting(self._state.watched)
        return {kind: self._say(kind, since) for kind, (_, since) in kinds.items()}

    @property
    def recent(self) -> tuple[Label, ...]:
        """Up to 250 last labels since it was made or loaded: each with its loss, ends and size."""
        return tuple(self._recent)

    def summary(self) -> StreamSummary:
        """How the stream is doing: coverage, width, account, and what was learnt; print it."""
        waiting = len(self._receipts)
        return summarise(
            self._controller, self._state, waiting=waiting, recent=self._recent, alarms=self.alarms
        )

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def to_frame(self) -> Any:
        """A pandas frame of up to 250 last labels: each with its loss, ends and size."""
        return import_module("pandas").DataFrame(self.recent, columns=list(Label._fields))

    @property
    def coverage(self) -> float | None:
        """The share of labels in their sets; None where the first risk is about something else."""
        return self.certificate().risks[0].coverage

    def _say(self, kind: str, since: int) -> str:
        """An alarm about the price in words."""
        price, intervals = self.price, not isinstance(whole_of(self._controller.sets), Priced)
        if price is None:
            return ""
        return words(kind, price, f"label {since:,}", self._held(), intervals=intervals)

    def _held(self) -> str:
        """What has become of the guarantee, in words."""
        risk = self.certificate().risks[0]
        covered = f"mean loss is {risk.mean:.4g}"
        if risk.coverage is not None:
            covered = f"{100.0 * risk.coverage:.1f} % of the actual values are covered"
        still = "the guarantee still holds" if risk.within else f"guarantee: {risk.status}"
        return f"{covered} and {still}"
