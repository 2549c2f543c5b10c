"""The paper's claims about its tabular experiments, each with the rule that decides it here.

A rule speaks of one data set, by medians over seeds. A claim *holds* if its rule does on every
data set, *holds partly* if on some, and else *does not hold here*.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from setpoint_paper.pages import Verdict
from setpoint_paper.tabular.measures import Row
from setpoint_paper.tabular.methods import STRETCHES
from setpoint_paper.tabular.results import ENOUGH, Results

__all__ = [
    "CLAIMS",
    "SETTINGS",
    "Claim",
    "Setting",
    "decide",
    "so_far",
    "study_verdicts",
]

_IDEAL_MSL, _LEVEL_MC, _NOMINAL = 10.0 / 9.0, 1.0 / 9.0, 0.9


class _Ask(Protocol):
    """The median over seeds of a metric of a method under control of a risk."""

    def __call__(self, method: str, metric: str, risk: str = "coverage") -> float: ...


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, where it stands, and when it holds on a data set."""

    where: str
    text: str
    rule: str
    holds: Callable[[_Ask], bool]


@dataclass(frozen=True, slots=True)
class Setting:
    """A way of choosing γ and a form of the methods to judge the claims by.

    `name` begins a sentence, `short` stands in a table.
    """

    name: str
    short: str
    by: str
    coded: bool

    def method(self, name: str) -> str:
        """The method that stands for a name of the paper."""
        return f"{name}_coded" if self.coded and name in ("score", "error", "cal") else name


SETTINGS = (
    Setting("Ours", "ours", "tuned", coded=False),
    Setting("With γ by test", "γ by test", "test", coded=False),
    Setting("With γ by test and the authors' code", "γ by test, their code", "test", coded=True),
)


def _nearest(ask: _Ask, metric: str, ideal: float, methods: tuple[str, ...], risk: str) -> str:
    return min(methods, key=lambda name: abs(ask(name, metric, risk) - ideal))


def _shortest(ask: _Ask, methods: tuple[str, ...]) -> str:
    return min(methods, key=lambda name: ask(name, "length"))


def _far(ask: _Ask, method: str) -> float:
    """How far the streaks are from those of true quantiles."""
    return abs(ask(method, "msl") - _IDEAL_MSL)


_THREE = ("cal", "none", "error")
_FULL = "; a full set is as long as the range of all labels seen until then"

CLAIMS = (
    Claim(
        "4.1.2",
        "Rolling RC attains 90 % coverage, without stretching and with error adaptive stretching",
        "coverage within 0.5 points of 90 % for both",
        lambda ask: all(abs(ask(m, "coverage") - _NOMINAL) <= 0.005 for m in ("none", "error")),
    ),
    Claim(
        "4.1.2",
        "error adaptive stretching gives narrower intervals than none",
        "smaller length",
        lambda ask: ask("error", "length") < ask("none", "length"),
    ),
    Claim(
        "4.1.2",
        "error adaptive stretching gives better conditional coverage than none",
        "MSL nearer to 10/9",
        lambda ask: _far(ask, "error") < _far(ask, "none"),
    ),
    Claim(
        "4.1.3",
        "error adaptive gives the narrowest intervals, before none and calibration with cal",
        f"smallest length of the three{_FULL}",
        lambda ask: _shortest(ask, _THREE) == "error",
    ),
    Claim(
        "4.1.3",
        "error adaptive has the best conditional coverage, before none and calibration with cal",
        "MSL nearest to 10/9 of the three",
        lambda ask: _nearest(ask, "msl", _IDEAL_MSL, _THREE, "coverage") == "error",
    ),
    Claim(
        "4.1.3",
        "even without stretching Rolling RC is better than calibration with cal",
        f"smaller length and MSL nearer to 10/9{_FULL}",
        lambda ask: (
            ask("none", "length") < ask("cal", "length") and _far(ask, "none") < _far(ask, "cal")
        ),
    ),
    Claim(
        "4.1.4",
        "control of coverage alone leaves MC above 1/9",
        "MC above 1/9 with none and with error adaptive",
        lambda ask: all(ask(m, "mc") > _LEVEL_MC for m in ("none", "error")),
    ),
    Claim(
        "4.1.4",
        "MC is held when it is what is controlled",
        "MC within 0.002 of 1/9 for every stretching",
        lambda ask: all(abs(ask(m, "mc", "mc") - _LEVEL_MC) <= 0.002 for m in STRETCHES),
    ),
    Claim(
        "4.1.4",
        "control of MC gives valid coverage",
        "coverage at least 8/9 for every stretching",
        lambda ask: all(ask(m, "coverage", "mc") >= 8.0 / 9.0 for m in STRETCHES),
    ),
    Claim(
        "ablation",
        "score and error adaptive give narrower intervals than none and exponential",
        "each of the two shorter than each of the others",
        lambda ask: (
            max(ask(m, "length") for m in ("score", "error"))
            < min(ask(m, "length") for m in ("none", "exponential"))
        ),
    ),
    Claim(
        "ablation",
        "error adaptive gives the shortest intervals of the four",
        "smallest length",
        lambda ask: _shortest(ask, STRETCHES) == "error",
    ),
    Claim(
        "ablation",
        "error adaptive has the MSL nearest to the ideal of the four",
        "MSL nearest to 10/9",
        lambda ask: _nearest(ask, "msl", _IDEAL_MSL, STRETCHES, "coverage") == "error",
    ),
    Claim(
        "ablation",
        "under control of coverage error adaptive has the MC nearest to 1/9 of the four",
        "MC nearest to 1/9",
        lambda ask: _nearest(ask, "mc", _LEVEL_MC, STRETCHES, "coverage") == "error",
    ),
    Claim(
        "ablation",
        "under control of MC error adaptive has the coverage nearest to 90 % of the four",
        "coverage nearest to 90 %",
        lambda ask: _nearest(ask, "coverage", _NOMINAL, STRETCHES, "mc") == "error",
    ),
    Claim(
        "ablation",
        "error adaptive is like the others in ΔCoverage",
        "ΔCoverage no more than one noise floor above that of none",
        lambda ask: ask("error", "delta") <= ask("none", "delta") + ask("none", "floor"),
    ),
    Claim(
        "ablation",
        "none and exponential converge faster to the level",
        "over the first 1000 steps, risk nearer to its level than that of score and error adaptive",
        lambda ask: (
            max(ask(m, "early") for m in ("none", "exponential"))
            < min(ask(m, "early") for m in ("score", "error"))
        ),
    ),
)


def decide(results: Results, setting: Setting) -> list[Verdict]:
    """Every claim in one setting."""
    verdicts = []
    for claim in CLAIMS:
        held: list[str] = []
        failed: list[str] = []
        for dataset in results.datasets:

            def ask(method: str, metric: str, risk: str = "coverage", at: str = dataset) -> float:
                return results.median(at, setting.method(method), metric, risk, setting.by)

            (held if claim.holds(ask) else failed).append(results.called(dataset))
        verdicts.append(
            Verdict(claim.text, claim.where, claim.rule, setting.name, tuple(held), tuple(failed))
        )
    return verdicts


def so_far(results: Results, rows: tuple[Row, ...] | None = None) -> str:
    """ "so far, with k seeds", if there are few; nothing of a model that has no seeds."""
    counts = {results.seeds(dataset) for dataset in results.datasets}
    if rows is not None:
        counts = {len({row.seed for row in rows})}
    if not results.random or not counts or min(counts) >= ENOUGH:
        return ""
    told = " to ".join(f"{count}" for count in sorted({min(counts), max(counts)}))
    return f"so far, with {told} seed{'' if max(counts) == 1 else 's'}"


def study_verdicts(study: tuple[Row, ...]) -> list[Verdict]:
    """The claims about γ, on the synthetic stream."""
    gammas = sorted({row.gamma for row in study})
    if len(gammas) < 2:
        return []

    def at(metric: str) -> list[float]:
        return [
            median(float(getattr(row, metric)) for row in study if row.gamma == gamma)
            for gamma in gammas
        ]

    streaks, lengths = at("msl"), at("length")
    decided = (
        (
            "a larger γ makes streaks of misses shorter",
            "MSL falls from the smallest γ to the largest",
            streaks[-1] < streaks[0],
        ),
        (
            "a larger γ costs longer intervals",
            "no γ has longer intervals than the largest",
            lengths[-1] == max(lengths),
        ),
        ("the largest γ has an MSL of 1", "MSL at most 1.01", streaks[-1] <= 1.01),
    )
    here = ("synthetic",)
    return [
        Verdict(text, "γ study", rule, "ours", here if held else (), () if held else here)
        for text, rule, held in decided
    ]
