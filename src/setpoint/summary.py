"""What a running stream looks like now: a few lines for a terminal or a notebook."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from setpoint._html import amount, table
from setpoint._recent import Recent
from setpoint.certificate import GroupCertificates, Status
from setpoint.controller import Controller
from setpoint.correction import Explains
from setpoint.guarantee import RiskCertificate, asked_of, certify
from setpoint.metrics.quantiles import Calibration, calibration
from setpoint.metrics.usefulness import Use, Usefulness, usefulness
from setpoint.sets import Fan
from setpoint.sets.family import Supports
from setpoint.state import State
from setpoint.watch import Price, evidence, price_of

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
        """What there is to say, and its names."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(f"{name:<12}{text}" for name, text in self.lines())

    def _repr_html_(self) -> str:
        return table(self.lines())


@dataclass(frozen=True, slots=True, repr=False)
class StreamSummary(Lines):
    """How a stream is doing. It prints itself, in a terminal and in a notebook.

    Parameters
    ----------
    risks
        The certificate of each risk.
    pending
        How many predictions wait for their label.
    recent
        How many of the last labels the next three are about: at most 250, since the stream was
        made or loaded.
    recent_risks
        The mean loss of each risk over them; NaN where there was nothing to judge.
    width
        The mean width or size of their sets, infinite ones left out; None where they have none.
    full
        The share of them that were full: without limits, or with every class.
    learnt
        What the correction has learnt, by name; empty without one.
    usefulness
        Whether the intervals of these last labels were of use, beside a rolling quantile of the
        forecast's errors; None for other sets and other losses.
    measure
        What `width` is: the "width" of intervals, the "size" of sets of labels.
    groups
        What is guaranteed in each group of rows that was named.
    calibration
        What came out of several quantiles over these last labels; None for other sets.
    price, alarms
        What the sets and the model cost now, beside a healthy past, and the alarms about it that
        last, by kind; None until there is such a past.
    chance
        The most that the chance of such errors can be if the model is as it was: a statement about
        probability, which no guarantee rests on.
    """

    risks: tuple[RiskCertificate, ...]
    pending: int
    recent: int
    recent_risks: tuple[float, ...]
    width: float | None
    full: float
    learnt: Mapping[str, Any]
    usefulness: Usefulness | None
    measure: str = "width"
    groups: GroupCertificates = field(default_factory=GroupCertificates)
    calibration: Calibration | None = None
    price: Price | None = None
    alarms: Mapping[str, str] = field(default_factory=dict)
    chance: float | None = None

    @property
    def labels(self) -> int:
        """How many labels were judged, since the start or the last change."""
        return self.risks[0].judged

    @property
    def coverage(self) -> float | None:
        """The share of labels in their sets; None where the first risk is about something else."""
        return self.risks[0].coverage

    @property
    def recent_coverage(self) -> float | None:
        """The same over the last labels."""
        return None if self.risks[0].asked is None else 1.0 - self.recent_risks[0]

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain values; what is not a finite number is None."""
        numbers = {
            "labels": self.labels,
            "pending": self.pending,
            "coverage": self.coverage,
            "asked": self.risks[0].asked,
            "risk": self.risks[0].mean,
            "level": self.risks[0].level,
            "recent": self.recent,
            "recent_coverage": self.recent_coverage,
            "recent_risk": self.recent_risks[0],
            "width": self.width,
            "full": self.full,
            "excess": self.risks[0].excess,
            "budget": self.risks[0].constant_upper if self.risks[0].counted else None,
            "learnt": {name: _plain(value) for name, value in self.learnt.items()},
            "usefulness": None if self.usefulness is None else self.usefulness.as_dict(),
            "groups": len(self.groups),
            "worst_group": next(iter(self.groups.lines(1)), None),
            "crps": None if self.calibration is None else self.calibration.crps,
            "wql": None if self.calibration is None else self.calibration.wql,
            "price": None if self.price is None else self.price.sets,
            "price_model": None if self.price is None else self.price.model,
            "world": None if self.price is None else self.price.world,
            "alarms": dict(self.alarms),
        }
        return {name: _plain(value) for name, value in numbers.items()}

    def lines(self) -> list[tuple[str, str]]:
        """What there is to say, and its names."""
        lines = [("labels", f"{self.labels:,} seen, {self.pending:,} awaited")]
        for risk, recent in zip(self.risks, self.recent_risks, strict=True):
            if len(self.risks) > 1:
                lines.append(("risk", f"{risk.name} at level {risk.level:g}"))
            if risk.judged:
                lines.append(_came_out(risk, recent, self.recent))
            if risk.counted and risk.constant_upper is not None:
                text = f"{risk.excess:+.1f} {risk.unit[1]} against what was asked"
                most = f"never more than {risk.constant_upper:+.4g}"
                sure = risk.status in (Status.HOLDS, Status.HOLDS_FROM_ABOVE)
                lines.append(
                    (
                        "budget",
                        f"{text}; {'guaranteed ' if sure else ''}{most}"
                        f"{'' if sure else f': {risk.status}'}",
                    )
                )
            else:
                lines.append(("guarantee", str(risk.status)))
        lines += [("worst group", line) for line in self.groups.lines(1)]
        if self.width is not None and self.recent:
            width = "infinite" if self.width != self.width else amount(self.width)
            full = f", {100.0 * self.full:.1f} % of them full" if self.full else ""
            lines.append((f"mean {self.measure}", f"{width} over the last {self.recent}{full}"))
        if self.calibration is not None and self.calibration.labels:
            scores = self.calibration
            text = f"CRPS {scores.crps:.4g}, weighted quantile loss {scores.wql:.4g}"
            lines.append(("quantiles", f"{text} over the last {self.recent}"))
        if self.price is not None:
            lines.append(("price", str(self.price)))
        lines += [("alarm", words) for words in self.alarms.values()]
        if self.chance is not None and self.chance < 0.1:
            words = (
                f"if the model were as it was, errors like these had a chance of {self.chance:.2g}"
            )
            lines.append(("odds", f"{words} at most (about probability, no part of the guarantee)"))
        if self.usefulness is not None and self.usefulness.use is not Use.TOO_EARLY:
            use = self.usefulness
            lines.append(("of use?", f"{use.use} (the last {self.recent} labels): {use.words}"))
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
    left_out |= {"period", "season"} if not learnt.get("period", 1) else set()
    left_out |= set() if learnt.get("given", 1.0) else {"given"}
    ends = ("least", "most")
    left_out |= {name for name in ends if learnt.get(name) is None}
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


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value


def summarise(
    controller: Controller, state: State, *, waiting: int, recent: Recent,
    alarms: Mapping[str, str] | None = None,
) -> StreamSummary:  # fmt: skip
    """The summary of a stream from its state, its last rows and the alarms that last."""
    rows = recent.table()
    judged = ~np.isnan(rows[:, 7 : 7 + len(controller.risks)])
    means = [
        float(losses[seen].mean()) if seen.any() else nan
        for losses, seen in zip(rows[:, 7 : 7 + len(controller.risks)].T, judged.T, strict=True)
    ]
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
        usefulness=_usefulness(controller, rows),
        groups=certificate.groups,
        calibration=_calibration(controller, rows),
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
        confidence_level=asked,
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
