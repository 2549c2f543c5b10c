"""Certificates as values and in words: what is guaranteed for a stream, and what was observed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from math import ceil, exp, inf, isfinite, log
from types import MappingProxyType
from typing import Any, NamedTuple

from setpoint._check import plain
from setpoint._html import preformatted
from setpoint.state import Id
from setpoint.steps.claims import Premise


class Status(StrEnum):
    """The state of a guarantee. Code decides on it; `RiskCertificate.verdict` is for people."""

    HOLDS = "guaranteed on both sides"
    HOLDS_FROM_ABOVE = "guaranteed: not too many misses"
    BEST_EFFORT = "best effort"
    SAYS_NOTHING_YET = "says nothing yet"
    NO_LABEL_YET = "no label yet"
    NO_GUARANTEE = "no guarantee"
    MEASURED = "measured, not guaranteed"
    BROKEN = "broken"


_SIDES = {"both": "more or less than", "upper": "above", "lower": "below"}
"""Where a bound on windows lies, in words."""


class Bound(NamedTuple):
    """The most that Σ(l − r) can be, for every stream; None where nothing is guaranteed.

    Since the segment began; from now on, as long as no more labels wait than usual; on any window.
    """

    since_start: float | None
    from_now: float | None
    window: float | None


@dataclass(frozen=True, slots=True)
class RiskCertificate:
    """What is guaranteed for one risk, and what was observed.

    Bounds are None where nothing is guaranteed, and a mean is NaN before the first label.
    """

    name: str  # its loss
    level: float  # what the mean loss is driven to
    judged: int  # labels
    unjudged: int  # labels at which there was nothing to judge
    mean: float  # loss
    identity: float | None  # the mean computed from θ alone, r ± (θ_{T+1} − θ_1 − lifts)/(γT)
    lower: float | None  # bounds on mean − level at this T, for every stream
    upper: float | None
    constant_lower: float | None  # the same bounds times T
    constant_upper: float | None
    window: float | None  # Σ(l − r) stays within ± this on every window
    window_sided: str  # "both", or "upper" or "lower" if only that side of a window is bounded
    growth: float  # the constants grow with T to this power
    spread: float  # the range of the loss: a wider bound says nothing
    theta: float  # now
    first: float  # θ when the segment began
    lifts: int  # how often its floor or anti-windup raised θ
    lifted: float  # and how far in all
    rounding: float  # how far rounding may take the mean beyond its bound
    premises: tuple[Premise, ...]  # what the bounds rest on
    unit: tuple[str, str]  # what one of the loss and several are called
    counted: bool = False  # whether the constants are printed as counts in that unit
    asked: float | None = None  # the coverage asked for, where the mean loss is the share missed
    from_now: float | None = None  # what Σ(l − r) of an account will not exceed from now on …
    habit: float = 0.0  # … as long as no more others wait when a set is made
    worst: float | None = None  # the account if all that waits should miss
    measured: bool = False  # whether nothing is meant to be guaranteed

    @property
    def account(self) -> float:
        """Σ(l − r) as it presses: θ of an account, which goes on through segments and lifts."""
        return self.theta if self.counted else self.excess

    @property
    def bound(self) -> Bound:
        """What is guaranteed about Σ(l − r), for every stream."""
        now = self.constant_upper if self.from_now is None else self.from_now
        return Bound(self.constant_upper, now, self.window)

    @property
    def coverage(self) -> float | None:
        """The share of labels in their sets, where the loss tells it; NaN before the first."""
        return None if self.asked is None else 1.0 - self.mean

    @property
    def excess(self) -> float:
        """Σ(l − r) since the segment began."""
        return (self.mean - self.level) * self.judged if self.judged else 0.0

    @property
    def within(self) -> bool:
        """Whether the mean lies within its bounds, up to rounding."""
        slack = 1e-9 * max(1.0, self.spread if isfinite(self.spread) else 1.0) + self.rounding
        excess = self.mean - self.level
        return not self.judged or (
            (self.upper is None or excess <= self.upper + slack)
            and (self.lower is None or excess >= self.lower - slack)
        )

    def as_dict(self, since: str = "the start") -> dict[str, Any]:
        """Everything as plain dicts, lists and finite numbers, with the verdict."""
        return {
            **plain({k: v for k, v in asdict(self).items() if k != "measured"}),
            "premises": [asdict(premise) for premise in self.premises],
            "unit": list(self.unit),
            "coverage": plain(self.coverage),
            "excess": self.excess,
            "account": plain(self.account),
            "bound": self.bound._asdict(),
            "status": self.status.value,
            "verdict": self.verdict,
            "words": list(self.words(since).values()),
        }

    def words(self, since: str = "the start") -> dict[str, str]:
        """Sentences for people: the result and, if it is a count, the guarantee.

        `since` says when the segment began.
        """
        said = {}
        level, labels = f"{self.level:.4g} a label", _counted(self.judged, "label")
        if self.asked is not None:
            level = _percent(self.level)
        if self.judged and self.asked is not None:
            inside = f"{_percent(1.0 - self.mean, 1)} of the actual values inside"
            said["coverage"] = f"{inside}; asked {_percent(self.asked)} ({labels})"
        elif self.judged:
            away = f"{self.mean - self.level:+.2g} from the level"
            said["mean loss"] = f"{self.mean:.6g} over {labels} ({away})"
        most, least = self.constant_upper, self.constant_lower
        if not self.counted or (most is None and least is None):
            return said
        ends = [f"at most {most:.4g} {self.unit[1]} above {level}"] if most is not None else []
        if least is not None:
            ends.append(f"at most {-least:.4g} below {'it' if ends else level}")
        said["budget"] = f"{' and '.join(ends)} at any time since {since} (now {self.excess:+.1f})"
        if self.judged and self.status is not Status.SAYS_NOTHING_YET:
            said["budget"] += f": {self._shares()} of {labels}"
        said |= self._waiting(most, level)
        if self.window is not None:
            limit = _SIDES[self.window_sided]
            said["any window"] = f"at most {self.window:.4g} {self.unit[1]} {limit} {level}"
        return said

    def _waiting(self, most: float | None, level: str) -> dict[str, str]:
        """What labels that wait, or have waited, make of a budget."""
        said, unit = {}, self.unit[1]
        if self.from_now is not None and most is not None and self.from_now < most - 1e-9:
            others = "no other prediction is open"
            if self.habit > 0.5:
                others = f"at most {self.habit:.0f} other predictions are open"
            bound = f"at most {self.from_now:.4g} {unit} above {level}"
            said["from now on"] = f"{bound}, as long as {others}"
        if self.worst is not None and self.worst > self.theta + 1e-9:
            worst = self.worst - self.first - self.lifted
            said["waiting"] = f"{worst:+.1f} {unit} if every open prediction misses"
        return said

    def _shares(self) -> str:
        """The constants as a share of the labels so far."""
        ends = [abs(end) for end in (self.upper, self.lower) if end is not None]
        if self.asked is not None:
            return " and ".join(f"{100.0 * end:.2g} %" for end in ends)
        return " and ".join(f"{end:.2g} for each" for end in ends)

    def steps_until(self, tolerance: float) -> int | None:
        """The number of labels after which the guarantee is within `tolerance` of the level."""
        constants = [c for c in (self.constant_lower, self.constant_upper) if c is not None]
        if not constants or self.growth >= 1.0 or (self.growth > 0.0 and not self.judged):
            return None
        steps = max(abs(c) for c in constants) / tolerance
        if self.growth > 0.0:  # C·(t/T)^p / t = tolerance
            power = log(steps / self.judged**self.growth) / (1.0 - self.growth)
            steps = exp(power) if power < 700.0 else inf
        return max(1, ceil(steps)) if isfinite(steps) else None

    @property
    def status(self) -> Status:
        """The state of the guarantee."""
        if self.measured:
            return Status.MEASURED
        if self.constant_lower is None and self.constant_upper is None:
            return Status.NO_GUARANTEE
        decisive = self.lower if self.upper is None else self.upper
        if decisive is None:
            return Status.NO_LABEL_YET
        if not self.within:
            return Status.BROKEN
        if abs(decisive) >= self.spread:
            return Status.SAYS_NOTHING_YET
        if self.upper is None:
            return Status.BEST_EFFORT
        return Status.HOLDS if self.lower is not None else Status.HOLDS_FROM_ABOVE

    @property
    def verdict(self) -> str:
        """The state of the guarantee in a sentence."""
        status = self.status
        if status is Status.NO_GUARANTEE:
            failed = [p.text for p in self.premises if not p.holds and p.needed != "note"]
            return "no guarantee, because a premise fails: " + "; ".join(failed)
        if status in (Status.NO_LABEL_YET, Status.SAYS_NOTHING_YET):
            steps = self.steps_until(0.01)
            return str(status) if steps is None else f"{status}; within 0.01 after {steps:,} labels"
        if status is Status.BROKEN:
            return "BROKEN: the mean is outside its bound, so some premise is not true"
        if status is Status.BEST_EFFORT:
            failed = [p.text for p in self.premises if not p.holds and p.needed == "note"]
            said = "best effort: bounded from below only"
            return f"{said}, and a premise fails: {'; '.join(failed)}" if failed else said
        if status is Status.HOLDS_FROM_ABOVE and self.unit[1] != "misses":
            return "guaranteed: not too much loss"
        return str(status)


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is guaranteed for a stream; print it, or call `as_dict()`.

    The guarantee speaks of the observed labels only.
    """

    risks: tuple[RiskCertificate, ...]
    full: int  # labels judged on a full set that the safeguard chose, or one of several such sets
    empty: int
    missing: int  # predictions without a label: it was missing,
    dropped: int  # given up,
    expired: int  # dropped as the oldest,
    pending: int  # or is still awaited
    most_pending: int  # the most labels awaited at once (P)
    earlier: tuple[dict[str, Any], ...] = ()  # the certificates of segments before the last change
    groups: "GroupCertificates" = field(default_factory=lambda: GroupCertificates())

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists and finite numbers, with the verdicts.

        What is not a finite number, such as a mean of nothing, is None: JSON has no other word. Of
        groups it has how many there are, and the ten nearest to their limits.
        """
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        plain["earlier"] = list(self.earlier)
        plain["risks"] = [risk.as_dict(self._since) for risk in self.risks]
        near = []
        for name, risk in self.groups.nearest():
            group = list(name) if isinstance(name, tuple) else name
            near.append({"group": group, **risk.as_dict(self._since)})
        plain["groups"] = {"count": len(self.groups), "nearest": near}
        return plain

    def summary(self) -> str:
        """One line per risk: the observed mean, the target, the state of the guarantee.

        The text of the whole certificate is `str(certificate)`.
        """
        lines = []
        for risk in self.risks:
            words = next(iter(risk.words(self._since).values()), "no label yet")
            lines.append(f"{risk.name}: {words}; {risk.verdict}")
        return "\n".join([*lines, *self.groups.lines(1)])

    @property
    def _since(self) -> str:
        return "the last change" if self.earlier else "the start"

    def _repr_html_(self) -> str:
        return preformatted(self)

    def __str__(self) -> str:
        lines = [f"certificate: {_counted(len(self.risks), 'risk')}"]
        if self.earlier:
            lines[0] += f", segment {len(self.earlier) + 1} (the last change began it)"
        for number, risk in enumerate(self.risks, 1):
            lines += ["", *_risk_lines(number, risk, self._since)]
        lines += ["", f"  safeguard   full set {self.full:,} times, empty set {self.empty:,} times"]
        unseen = self.missing + self.dropped + self.expired + self.pending
        lines.append(
            f"  labels      at most {self.most_pending:,} awaited at once; {unseen:,} not observed "
            f"({self.missing:,} missing, {self.dropped:,} dropped, {self.expired:,} expired, "
            f"{self.pending:,} awaited)"
        )
        if unseen:
            lines.append("              the guarantee speaks of the observed labels only")
        if self.groups:
            many = _counted(len(self.groups), "group")
            lines += ["", f"  {many}, not too many in each; the nearest to its limit first:"]
            lines += [f"     {line}" for line in self.groups.lines()]
        return "\n".join(lines)


class GroupCertificates(Mapping[Id, tuple[RiskCertificate, ...]]):
    """What is guaranteed in each group of rows: the certificates of its risks, by its name.

    Each is made when it is asked for.
    """

    def __init__(
        self,
        groups: Mapping[Id, Any] = MappingProxyType({}),
        certified: Callable[[Any], tuple[RiskCertificate, ...]] = tuple,
    ) -> None:
        self._groups, self._certified = dict(groups), certified
        self._made: dict[Id, tuple[RiskCertificate, ...]] = {}

    def __getitem__(self, name: Id) -> tuple[RiskCertificate, ...]:
        if name not in self._made:
            self._made[name] = self._certified(self._groups[name])
        return self._made[name]

    def __iter__(self) -> Iterator[Id]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def __repr__(self) -> str:
        return f"<the certificates of {_counted(len(self), 'group')}>"

    def nearest(self, most: int = 10) -> list[tuple[Id, RiskCertificate]]:
        """Names and risks, those whose Σ(l − r) is the largest part of its bound first."""
        pairs = [(name, own) for name, risks in self.items() for own in risks if not own.measured]
        return sorted(pairs, key=lambda pair: -used(pair[1]))[:most]

    def lines(self, most: int = 10) -> list[str]:
        """A line for each of the nearest, and how many more there are."""
        ranked = self.nearest(sum(map(len, self.values())))
        near, every = ranked[:most], len(ranked)
        lines = [_group_line(name, risk, every > len(self)) for name, risk in near]
        more = every - len(lines)
        return [*lines, f"and {more:,} more, further from theirs"] if more and most > 1 else lines


def used(risk: RiskCertificate) -> float:
    """What part of its bound the excess of a risk is."""
    most = risk.constant_upper
    if risk.status is Status.BROKEN:
        return inf
    return risk.excess / most if most else -inf if risk.excess <= 0.0 else risk.excess


def _group_line(name: Id, risk: RiskCertificate, several: bool) -> str:
    """What is guaranteed for one risk in a group, as a count and as a share of its labels."""
    level = _percent(risk.level) if risk.asked is not None else f"{risk.level:.4g} a label"
    which = name if isinstance(name, str) and name.isprintable() else repr(name)
    which = f"{which}, {risk.name}" if several else which
    labels, most = _counted(risk.judged, "label"), risk.constant_upper
    if most is None:
        return f"{which}: {risk.excess:+.1f} {risk.unit[1]} from {level}, {labels}; {risk.verdict}"
    share = f"which says nothing yet of {labels}"
    if risk.status not in (Status.NO_LABEL_YET, Status.SAYS_NOTHING_YET):
        share = f"{risk._shares()} of {labels}"
    broken = f"; {risk.verdict}" if risk.status is Status.BROKEN else ""
    return (
        f"{which}: at most {most:.4g} {risk.unit[1]} above {level}, {share}, now "
        f"{risk.excess:+.1f}{broken}"
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _percent(share: float, digits: int | None = None) -> str:
    """A share as people write it."""
    return f"{100.0 * share:.6g} %" if digits is None else f"{100.0 * share:.{digits}f} %"


def _risk_lines(number: int, risk: RiskCertificate, since: str) -> list[str]:
    words, said = risk.words(since), list[tuple[str, str]]()
    lines = [f"  {number}. {risk.name} at level {risk.level:g}: {risk.verdict}"]
    lines += [f"     {name:<12}{sentence}" for name, sentence in words.items()]
    if risk.measured:
        return lines
    if risk.unjudged:
        labels = _counted(risk.unjudged, "label")
        said.append(("unjudged", f"at {labels} there was nothing to judge"))
    if risk.identity is not None and risk.judged:
        gap = f"differs by {abs(risk.identity - risk.mean):.1g}"
        said.append(("check", f"computed from θ alone: {risk.identity:.6g}, {gap}"))
    if risk.judged and "budget" not in words and (risk.lower, risk.upper) != (None, None):
        low = "" if risk.lower is None else f"{risk.lower:+.4g} ≤ "
        high = "" if risk.upper is None else f" ≤ {risk.upper:+.4g}"
        said.append(("bound", f"{low}mean − level{high}, for every stream"))
    if risk.window is not None and "any window" not in words:
        limits = {"both": "within ±{:.6g}", "upper": "at most {:.6g}", "lower": "at least -{:.6g}"}
        limit = limits[risk.window_sided].format(risk.window)
        text = "the sum of (loss − level) over any labels in a row is"
        said.append(("any window", f"{text} {limit}"))
    if risk.lifts:
        what = "the floor" if risk.counted else "anti-windup"
        times = "once" if risk.lifts == 1 else f"{risk.lifts:,} times"
        said.append((what, f"raised θ {times}, by {risk.lifted:.4g} in all"))
    first, theta = (
        0.0 if risk.counted and abs(value) < 1e-9 else value for value in (risk.first, risk.theta)
    )  # a count is not told by its rounding
    said.append(("θ", f"from {first:.6g} to {theta:.6g}"))
    lines += [f"     {name:<12}{sentence}" for name, sentence in said]
    return lines + [f"     {'✓' if p.holds else '✗'} {p.text}" for p in risk.premises]
