"""The paper's claims about its tabular experiments, each with the rule that decides it here.

A rule compares methods on one data set and one seed: a margin for each comparison, positive where
the claim holds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from setpoint_paper.tabular.methods import STRETCHES

__all__ = ["CLAIMS", "Ask", "Claim", "Shown"]

_IDEAL_MSL, _LEVEL_MC, _NOMINAL = 10.0 / 9.0, 1.0 / 9.0, 0.9

_ALIKE = 0.25
"""Points of ΔCoverage within which methods are alike: under half of what chance alone makes."""

_GREAT, _WELL = 5.0, 2.0
"""Percent of pinball loss that are called a great effect, and within which a choice does well."""


class Ask(Protocol):
    """A metric of a method under control of a risk, of one data set and seed.

    `by` is a selection of γ other than that of the setting.
    """

    def __call__(
        self, method: str, metric: str, risk: str = "coverage", by: str | None = None
    ) -> float: ...


class Shown(NamedTuple):
    """The numbers that stand beside a verdict: a metric of some methods under control of a risk.

    `by` is a selection of γ other than that of the setting.
    """

    methods: tuple[str, ...]
    metric: str
    risk: str = "coverage"
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, where it stands, and by how much it holds for a seed.

    `margins` has a margin for each comparison, by the name of what is compared with; `unit` is
    theirs. `shown` are the numbers compared. One that `selects` compares selections of γ, so
    the choice of one does not bear on it.
    """

    where: str
    text: str
    rule: str
    margins: Callable[[Ask], dict[str, float]]
    unit: str
    shown: Shown
    selects: bool = False


def _narrower(
    ask: Ask, one: str, *others: str, risk: str = "coverage", metric: str = "length"
) -> dict[str, float]:
    """By how many percent a method's intervals are shorter than those of each other."""
    own = ask(one, metric, risk)
    return {other: 100.0 * (1.0 - own / ask(other, metric, risk)) for other in others}


def _nearer(
    ask: Ask,
    metric: str,
    ideal: float,
    one: str,
    *others: str,
    risk: str = "coverage",
    size: float = 1.0,
) -> dict[str, float]:
    """By how much a method is nearer to an ideal than each other, times a size."""
    own = abs(ask(one, metric, risk) - ideal)
    return {other: size * (abs(ask(other, metric, risk) - ideal) - own) for other in others}


def _within(
    ask: Ask,
    metric: str,
    ideal: float,
    most: float,
    risk: str,
    *methods: str,
    size: float = 1.0,
) -> dict[str, float]:
    """By how much each method is nearer to an ideal than `most`, times a size."""
    return {each: size * (most - abs(ask(each, metric, risk) - ideal)) for each in methods}


def _alike(ask: Ask, one: str, *others: str, risk: str) -> dict[str, float]:
    """How far the differences in ΔCoverage are from ±`_ALIKE` points, on both sides."""
    apart = {
        other: 100.0 * (ask(one, "delta", risk) - ask(other, "delta", risk)) for other in others
    }
    return {f"above {other}": _ALIKE - each for other, each in apart.items()} | {
        f"below {other}": _ALIKE + each for other, each in apart.items()
    }


def _sooner(ask: Ask) -> dict[str, float]:
    return {
        f"{steady} to {slow}": 100.0 * (ask(slow, "early") - ask(steady, "early"))
        for steady in _STEADY
        for slow in ("score", "error")
    }


def _beyond(one: float, best: float) -> float:
    return 100.0 * (one / best - 1.0)


def _mended(ask: Ask, by: str) -> dict[str, float]:
    """What stretching takes from the cost of an extreme γ, in percent of the loss."""
    none, error = (
        _beyond(ask(each, "pinball", by=by), ask(each, "pinball", by="test"))
        for each in ("none", "error")
    )
    return {"": none - error}


def _improper(by: str, told: str, more: str = "") -> Claim:
    """The claim of the conclusion, for one end of the step sizes tried."""
    return Claim(
        "5",
        f"stretching overcomes a step size that is too {told}",
        f"what the {by} γ tried adds to the pinball loss of the best without stretching, less what "
        f"it adds with error adaptive stretching{more}",
        lambda ask: _mended(ask, by),
        "%",
        Shown(("none", "error"), "pinball", by=by),
        selects=True,
    )


_FULL = "; a full set is as long as the range of all labels seen until then"
_REST = ("none", "exponential", "score")
_STEADY = ("none", "exponential")
_THREE = ("error", "none", "cal")
_RISKS = ("coverage", "mc")


def _stretchings(risk: str) -> tuple[Claim, ...]:
    """The claims of the study of stretchings that are made under control of either risk."""
    under = {"coverage": "", "mc": "under control of MC "}[risk]
    return (
        Claim(
            "D.1.1",
            f"{under}score and error adaptive are narrower than none and exponential",
            "how much shorter each of the two is than each of the others",
            lambda ask: {
                f"{one} to {other}": margin
                for one in ("score", "error")
                for other, margin in _narrower(ask, one, *_STEADY, risk=risk).items()
            },
            "%",
            Shown(STRETCHES, "scaled_length", risk),
        ),
        Claim(
            "D.1.1",
            f"{under}error adaptive gives the shortest intervals of the four",
            "how much shorter than each of the others",
            lambda ask: _narrower(ask, "error", *_REST, risk=risk),
            "%",
            Shown(STRETCHES, "scaled_length", risk),
        ),
        Claim(
            "D.1.1",
            f"{under}error adaptive has the MSL nearest to the ideal of the four",
            "how much nearer MSL is to 10/9 than that of each of the others",
            lambda ask: _nearer(ask, "msl", _IDEAL_MSL, "error", *_REST, risk=risk),
            "of MSL",
            Shown(STRETCHES, "msl", risk),
        ),
        Claim(
            "D.1.1",
            f"{under}error adaptive is like the others in ΔCoverage",
            f"{_ALIKE:g} points, less than half of what independent misses make, less the distance "
            "from each of the others, above and below",
            lambda ask: _alike(ask, "error", *_REST, risk=risk),
            "points",
            Shown(STRETCHES, "delta", risk),
        ),
    )


CLAIMS = (
    Claim(
        "4.1.2",
        "Rolling RC attains 90 % coverage, without stretching and with error adaptive stretching",
        "0.5 points less the distance of each from 90 %",
        lambda ask: _within(
            ask, "coverage", _NOMINAL, 0.005, "coverage", "none", "error", size=100.0
        ),
        "points",
        Shown(("none", "error"), "coverage"),
    ),
    Claim(
        "4.1.2",
        "error adaptive stretching gives narrower intervals than none",
        "how much shorter",
        lambda ask: _narrower(ask, "error", "none"),
        "%",
        Shown(("error", "none"), "scaled_length"),
    ),
    Claim(
        "4.1.2",
        "error adaptive stretching gives better conditional coverage than none",
        "how much nearer MSL is to 10/9",
        lambda ask: _nearer(ask, "msl", _IDEAL_MSL, "error", "none"),
        "of MSL",
        Shown(("error", "none"), "msl"),
    ),
    Claim(
        "4.1.3, D.1.2",
        "calibration with cal attains 90 % coverage too",
        "0.5 points less its distance from 90 %",
        lambda ask: _within(ask, "coverage", _NOMINAL, 0.005, "coverage", "cal", size=100.0),
        "points",
        Shown(("cal",), "coverage"),
    ),
    Claim(
        "4.1.3",
        "error adaptive gives the narrowest intervals, before none and calibration with cal",
        f"how much shorter than each of the two{_FULL}",
        lambda ask: _narrower(ask, "error", "none", "cal"),
        "%",
        Shown(_THREE, "scaled_length"),
    ),
    Claim(
        "4.1.3",
        "error adaptive has the best conditional coverage, before none and calibration with cal",
        "how much nearer MSL is to 10/9 than that of each of the two",
        lambda ask: _nearer(ask, "msl", _IDEAL_MSL, "error", "none", "cal"),
        "of MSL",
        Shown(_THREE, "msl"),
    ),
    Claim(
        "4.1.3",
        "even without stretching Rolling RC has narrower intervals than calibration with cal",
        f"how much shorter{_FULL}",
        lambda ask: _narrower(ask, "none", "cal"),
        "%",
        Shown(("none", "cal"), "scaled_length"),
    ),
    Claim(
        "4.1.3",
        "calibration with cal has longer intervals even without its full sets (our check)",
        "how much shorter the intervals are that have a length",
        lambda ask: _narrower(ask, "none", "cal", metric="finite_length"),
        "%",
        Shown(("none", "cal"), "finite_length"),
    ),
    Claim(
        "4.1.3",
        "even without stretching Rolling RC has better conditional coverage than with cal",
        "how much nearer MSL is to 10/9",
        lambda ask: _nearer(ask, "msl", _IDEAL_MSL, "none", "cal"),
        "of MSL",
        Shown(("none", "cal"), "msl"),
    ),
    Claim(
        "D.1.2",
        "error adaptive has the best MC, before none and calibration with cal",
        "how much nearer MC is to 1/9 than that of each of the two",
        lambda ask: _nearer(ask, "mc", _LEVEL_MC, "error", "none", "cal"),
        "of MC",
        Shown(_THREE, "mc"),
    ),
    Claim(
        "D.1.2",
        "even without stretching Rolling RC has a better MC than calibration with cal",
        "how much nearer MC is to 1/9",
        lambda ask: _nearer(ask, "mc", _LEVEL_MC, "none", "cal"),
        "of MC",
        Shown(("none", "cal"), "mc"),
    ),
    Claim(
        "D.1.2",
        "error adaptive has the best ΔCoverage, before none and calibration with cal",
        "how much smaller than that of each of the two",
        lambda ask: _nearer(ask, "delta", 0.0, "error", "none", "cal", size=100.0),
        "points",
        Shown(_THREE, "delta"),
    ),
    Claim(
        "D.1.2",
        "even without stretching Rolling RC has a better ΔCoverage than calibration with cal",
        "how much smaller",
        lambda ask: _nearer(ask, "delta", 0.0, "none", "cal", size=100.0),
        "points",
        Shown(("none", "cal"), "delta"),
    ),
    Claim(
        "4.1.4",
        "control of coverage alone leaves MC above 1/9",
        "MC of none and of error adaptive, less 1/9",
        lambda ask: {each: ask(each, "mc") - _LEVEL_MC for each in ("none", "error")},
        "of MC",
        Shown(("none", "error"), "mc"),
    ),
    Claim(
        "4.1.4",
        "MC is held when it is what is controlled",
        "0.002 less the distance of MC from 1/9, of every stretching",
        lambda ask: _within(ask, "mc", _LEVEL_MC, 0.002, "mc", *STRETCHES),
        "of MC",
        Shown(STRETCHES, "mc", "mc"),
    ),
    Claim(
        "4.1.4",
        "control of MC gives valid coverage",
        "the coverage of every stretching, less 8/9",
        lambda ask: {each: 100.0 * (ask(each, "coverage", "mc") - 8.0 / 9.0) for each in STRETCHES},
        "points",
        Shown(STRETCHES, "coverage", "mc"),
    ),
    Claim(
        "E.2",
        "MC does not get too high in practice, so it needs no cap",
        "39 misses in a row, where their code cuts it, less the longest streak of every stretching",
        lambda ask: {each: 39.0 - ask(each, "longest", "mc") for each in STRETCHES},
        "misses",
        Shown(STRETCHES, "longest", "mc"),
    ),
    Claim(
        "C.3.1",
        "a bound of 9999 on θ is never reached",
        "9999 less the largest |θ| of every stretching, under both risks",
        lambda ask: {
            f"{each}, {risk}": 9999.0 - ask(each, "farthest", risk)
            for each in STRETCHES
            for risk in _RISKS
        },
        "of θ",
        Shown(STRETCHES, "farthest", "mc"),
    ),
    Claim(
        "C.4",
        "choosing β wisely greatly affects the performance",
        "how much larger the pinball loss is on the rows tuned on with the median of the β tried "
        f"than with the best, less {_GREAT:g} %",
        lambda ask: {each: 100.0 * ask(each, "blind") - _GREAT for each in ("score", "error")},
        "%",
        Shown(("score", "error"), "blind"),
    ),
    Claim(
        "C.1.3",
        "to choose γ by a validation set works well",
        f"{_WELL:g} % less what the pinball loss with γ and β tuned on earlier rows is beyond that "
        "with γ by the rows judged",
        lambda ask: {
            each: _WELL - _beyond(ask(each, "pinball", by="tuned"), ask(each, "pinball", by="test"))
            for each in STRETCHES
        },
        "%",
        Shown(STRETCHES, "pinball"),
        selects=True,
    ),
    _improper("smallest", "small"),
    _improper("largest", "large (our check)", "; the paper speaks of delays, so of a small one"),
    *_stretchings("coverage"),
    Claim(
        "D.1.1",
        "under control of coverage error adaptive has the MC nearest to 1/9 of the four",
        "how much nearer MC is to 1/9 than that of each of the others",
        lambda ask: _nearer(ask, "mc", _LEVEL_MC, "error", *_REST),
        "of MC",
        Shown(STRETCHES, "mc"),
    ),
    Claim(
        "D.1.1",
        "under control of MC error adaptive has the coverage nearest to 90 % of the four",
        "how much nearer coverage is to 90 % than that of each of the others",
        lambda ask: _nearer(ask, "coverage", _NOMINAL, "error", *_REST, risk="mc", size=100.0),
        "points",
        Shown(STRETCHES, "coverage", "mc"),
    ),
    *_stretchings("mc"),
    Claim(
        "D.1.1",
        "none and exponential converge faster to the level",
        "over the first 1000 steps, how much nearer to its level the risk of each of the two is "
        "than that of score and of error adaptive",
        _sooner,
        "points",
        Shown(STRETCHES, "early"),
    ),
)
