"""The paper's claims about its tabular experiments, each with the rule that decides it here.

A rule is a margin, positive where the claim holds, of one data set and one seed. The margins of the
seeds, which share the data and differ in the model's initialisation, have a mean and a 95 %
confidence interval. A data set is decided where that interval does not hold 0. A claim *holds* if
it does on every data set, *holds partly* if on some, is *undecided* if no data set is decided, and
else *does not hold here*.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from setpoint_paper.pages import Verdict, decided
from setpoint_paper.tabular.measures import Row
from setpoint_paper.tabular.methods import STRETCHES
from setpoint_paper.tabular.results import ENOUGH, Results

__all__ = ["CLAIMS", "SETTINGS", "Claim", "Setting", "decide", "so_far", "study_verdicts"]

_IDEAL_MSL, _LEVEL_MC, _NOMINAL = 10.0 / 9.0, 1.0 / 9.0, 0.9


class _Ask(Protocol):
    """A metric of a method under control of a risk, of one data set and seed."""

    def __call__(self, method: str, metric: str, risk: str = "coverage") -> float: ...


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, where it stands, and by how much it holds for a seed.

    `unit` is that of the margin.
    """

    where: str
    text: str
    rule: str
    margin: Callable[[_Ask], float]
    unit: str


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
        return f"{name}_coded" if self.coded else name


SETTINGS = (
    Setting("Ours", "ours", "tuned", coded=False),
    Setting("With γ by test", "γ by test", "test", coded=False),
    Setting("Their code, γ by test", "their code, γ by test", "test", coded=True),
    Setting("Their code, γ tuned", "their code, γ tuned", "tuned", coded=True),
)
"""As the text says; the same with γ by the rows judged; the authors' older code, with γ as behind
the printed numbers and as the text says."""


def _narrower(ask: _Ask, one: str, *others: str) -> float:
    """By how many percent a method's intervals are shorter than the shortest of the others."""
    least = min(ask(other, "length") for other in others)
    return 100.0 * (1.0 - ask(one, "length") / least)


def _nearer(
    ask: _Ask, metric: str, ideal: float, one: str, *others: str, risk: str = "coverage"
) -> float:
    """By how much a method is nearer to an ideal than the nearest of the others."""
    away = min(abs(ask(other, metric, risk) - ideal) for other in others)
    return away - abs(ask(one, metric, risk) - ideal)


def _within(ask: _Ask, metric: str, ideal: float, most: float, risk: str, *methods: str) -> float:
    """By how much the farthest of some methods is nearer to an ideal than `most`."""
    return most - max(abs(ask(each, metric, risk) - ideal) for each in methods)


_FULL = "; a full set is as long as the range of all labels seen until then"
_REST = ("none", "exponential", "score")
_STEADY = ("none", "exponential")
_RISKS = ("coverage", "mc")

CLAIMS = (
    Claim(
        "4.1.2",
        "Rolling RC attains 90 % coverage, without stretching and with error adaptive stretching",
        "0.5 points less the larger distance of the two from 90 %",
        lambda ask: 100.0 * _within(ask, "coverage", _NOMINAL, 0.005, "coverage", "none", "error"),
        "points",
    ),
    Claim(
        "4.1.2",
        "error adaptive stretching gives narrower intervals than none",
        "how much shorter",
        lambda ask: _narrower(ask, "error", "none"),
        "%",
    ),
    Claim(
        "4.1.2",
        "error adaptive stretching gives better conditional coverage than none",
        "how much nearer MSL is to 10/9",
        lambda ask: _nearer(ask, "msl", _IDEAL_MSL, "error", "none"),
        "of MSL",
    ),
    Claim(
        "4.1.3, D.1.2",
        "calibration with cal attains 90 % coverage too",
        "0.5 points less its distance from 90 %",
        lambda ask: 100.0 * _within(ask, "coverage", _NOMINAL, 0.005, "coverage", "cal"),
        "points",
    ),
    Claim(
        "4.1.3",
        "error adaptive gives the narrowest intervals, before none and calibration with cal",
        f"how much shorter than the shorter of the two{_FULL}",
        lambda ask: _narrower(ask, "error", "none", "cal"),
        "%",
    ),
    Claim(
        "4.1.3",
        "error adaptive has the best conditional coverage, before none and calibration with cal",
        "how much nearer MSL is to 10/9 than the nearer of the two",
        lambda ask: _nearer(ask, "msl", _IDEAL_MSL, "error", "none", "cal"),
        "of MSL",
    ),
    Claim(
        "4.1.3",
        "even without stretching Rolling RC has narrower intervals than calibration with cal",
        f"how much shorter{_FULL}",
        lambda ask: _narrower(ask, "none", "cal"),
        "%",
    ),
    Claim(
        "4.1.3",
        "even without stretching Rolling RC has better conditional coverage than with cal",
        "how much nearer MSL is to 10/9",
        lambda ask: _nearer(ask, "msl", _IDEAL_MSL, "none", "cal"),
        "of MSL",
    ),
    Claim(
        "D.1.2",
        "error adaptive has the best MC, before none and calibration with cal",
        "how much nearer MC is to 1/9 than the nearer of the two",
        lambda ask: _nearer(ask, "mc", _LEVEL_MC, "error", "none", "cal"),
        "of MC",
    ),
    Claim(
        "D.1.2",
        "even without stretching Rolling RC has a better MC than calibration with cal",
        "how much nearer MC is to 1/9",
        lambda ask: _nearer(ask, "mc", _LEVEL_MC, "none", "cal"),
        "of MC",
    ),
    Claim(
        "D.1.2",
        "error adaptive has the best ΔCoverage, before none and calibration with cal",
        "how much smaller than the smaller of the two",
        lambda ask: 100.0 * _nearer(ask, "delta", 0.0, "error", "none", "cal"),
        "points",
    ),
    Claim(
        "D.1.2",
        "even without stretching Rolling RC has a better ΔCoverage than calibration with cal",
        "how much smaller",
        lambda ask: 100.0 * _nearer(ask, "delta", 0.0, "none", "cal"),
        "points",
    ),
    Claim(
        "4.1.4",
        "control of coverage alone leaves MC above 1/9",
        "the smaller MC of none and error adaptive, less 1/9",
        lambda ask: min(ask(m, "mc") for m in ("none", "error")) - _LEVEL_MC,
        "of MC",
    ),
    Claim(
        "4.1.4",
        "MC is held when it is what is controlled",
        "0.002 less the largest distance of MC from 1/9, of every stretching",
        lambda ask: _within(ask, "mc", _LEVEL_MC, 0.002, "mc", *STRETCHES),
        "of MC",
    ),
    Claim(
        "4.1.4",
        "control of MC gives valid coverage",
        "the least coverage of every stretching, less 8/9",
        lambda ask: 100.0 * (min(ask(m, "coverage", "mc") for m in STRETCHES) - 8.0 / 9.0),
        "points",
    ),
    Claim(
        "E.2",
        "MC does not get too high in practice, so it needs no cap",
        "39 misses in a row, where their code cuts it, less the longest streak of any stretching",
        lambda ask: 39.0 - max(ask(m, "longest", "mc") for m in STRETCHES),
        "misses",
    ),
    Claim(
        "C.3.1",
        "a bound of 9999 on θ is never reached",
        "9999 less the largest |θ| of any stretching, under both risks",
        lambda ask: 9999.0 - max(ask(m, "farthest", r) for m in STRETCHES for r in _RISKS),
        "of θ",
    ),
    Claim(
        "D.1.1",
        "score and error adaptive give narrower intervals than none and exponential",
        "how much shorter the longer of the two is than the shorter of the others",
        lambda ask: min(_narrower(ask, each, *_STEADY) for each in ("score", "error")),
        "%",
    ),
    Claim(
        "D.1.1",
        "error adaptive gives the shortest intervals of the four",
        "how much shorter than the shortest of the others",
        lambda ask: _narrower(ask, "error", *_REST),
        "%",
    ),
    Claim(
        "D.1.1",
        "error adaptive has the MSL nearest to the ideal of the four",
        "how much nearer MSL is to 10/9",
        lambda ask: _nearer(ask, "msl", _IDEAL_MSL, "error", *_REST),
        "of MSL",
    ),
    Claim(
        "D.1.1",
        "under control of coverage error adaptive has the MC nearest to 1/9 of the four",
        "how much nearer MC is to 1/9",
        lambda ask: _nearer(ask, "mc", _LEVEL_MC, "error", *_REST),
        "of MC",
    ),
    Claim(
        "D.1.1",
        "under control of MC error adaptive has the coverage nearest to 90 % of the four",
        "how much nearer coverage is to 90 %",
        lambda ask: 100.0 * _nearer(ask, "coverage", _NOMINAL, "error", *_REST, risk="mc"),
        "points",
    ),
    Claim(
        "D.1.1",
        "error adaptive is like the others in ΔCoverage",
        "that of none and one noise floor, less that of error adaptive",
        lambda ask: 100.0 * (ask("none", "delta") + ask("none", "floor") - ask("error", "delta")),
        "points",
    ),
    Claim(
        "D.1.1",
        "none and exponential converge faster to the level",
        "over the first 1000 steps, how much nearer to its level the risk of the farther of the "
        "two is than that of the nearer of score and error adaptive",
        lambda ask: (
            100.0
            * (
                min(ask(m, "early") for m in ("score", "error"))
                - max(ask(m, "early") for m in _STEADY)
            )
        ),
        "points",
    ),
)


def decide(results: Results, setting: Setting) -> list[Verdict]:
    """Every claim in one setting, on the data sets where all it asks for ran."""
    verdicts = []
    for claim in CLAIMS:
        margins = {}
        for dataset in results.datasets:
            seeds = dict.fromkeys(row.seed for row in results.rows if row.dataset == dataset)
            found = [_margin(results, setting, claim, dataset, seed) for seed in seeds]
            known = [margin for margin in found if margin is not None]
            if known:
                margins[results.called(dataset)] = known
        verdicts.append(decided(claim.text, claim.where, claim.rule, setting.name, margins))
    return verdicts


def _margin(
    results: Results, setting: Setting, claim: Claim, dataset: str, seed: int
) -> float | None:
    """The margin of a claim for one seed; None where something it asks for did not run."""

    def ask(method: str, metric: str, risk: str = "coverage") -> float:
        return results.by_seed(dataset, setting.method(method), metric, risk, setting.by)[seed]

    try:
        margin = claim.margin(ask)
    except KeyError:
        return None
    return margin if margin == margin else None


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
    """The claims about γ, on the synthetic stream; a margin a stream."""
    gammas = sorted({row.gamma for row in study})
    if len(gammas) < 2:
        return []
    seeds = dict.fromkeys(row.seed for row in study)

    def at(seed: int, metric: str) -> list[float]:
        found = {row.gamma: float(getattr(row, metric)) for row in study if row.seed == seed}
        return [found[gamma] for gamma in gammas]

    streaks = [at(seed, "msl") for seed in seeds]
    lengths = [at(seed, "length") for seed in seeds]
    rules = (
        (
            "a larger γ makes streaks of misses shorter",
            "MSL at the smallest γ less that at the largest",
            [each[0] - each[-1] for each in streaks],
        ),
        (
            "a larger γ costs longer intervals",
            "the length at the largest γ over the longest of the others, less 1, in %",
            [100.0 * (each[-1] / max(each[:-1]) - 1.0) for each in lengths],
        ),
        (
            "the largest γ has an MSL of 1",
            "1.01 less MSL at the largest γ",
            [1.01 - each[-1] for each in streaks],
        ),
    )
    return [
        decided(text, "C.3.3", rule, "ours", {"synthetic": values}) for text, rule, values in rules
    ]
