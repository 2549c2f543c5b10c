"""The paper's claims about its tabular experiments, each with the rule that decides it here.

A rule compares methods on one data set and one seed: a margin for each comparison, positive where
the claim holds. The margins of the seeds, which share the data and differ in the model's
initialisation, have a mean and a 95 % confidence interval. A claim holds on a data set where every
interval lies above 0, and fails where one lies below. It *holds* if it does on every data set,
*holds partly* if on some, is *undecided* if no data set is decided, and else *does not hold here*.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import isnan, nan
from statistics import median
from typing import NamedTuple, Protocol

from setpoint_paper.pages import Verdict, decided
from setpoint_paper.tabular.measures import Row
from setpoint_paper.tabular.methods import STRETCHES
from setpoint_paper.tabular.printed import COVERAGE, printed_metric
from setpoint_paper.tabular.results import ENOUGH, Results

__all__ = [
    "CLAIMS",
    "SETTINGS",
    "Claim",
    "Setting",
    "Shown",
    "decide",
    "heading",
    "numbers",
    "printed_numbers",
    "so_far",
    "study_verdicts",
]

_IDEAL_MSL, _LEVEL_MC, _NOMINAL = 10.0 / 9.0, 1.0 / 9.0, 0.9

_ALIKE = 0.25
"""Points of ΔCoverage within which methods are alike: under half of what chance alone makes."""

_GREAT = 5.0
"""Percent of pinball loss that are called a great effect."""


class _Ask(Protocol):
    """A metric of a method under control of a risk, of one data set and seed."""

    def __call__(self, method: str, metric: str, risk: str = "coverage") -> float: ...


class Shown(NamedTuple):
    """The numbers that stand beside a verdict: a metric of some methods under control of a risk."""

    methods: tuple[str, ...]
    metric: str
    risk: str = "coverage"


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, where it stands, and by how much it holds for a seed.

    `margins` has a margin for each comparison, by the name of what is compared with; `unit` is
    theirs. `shown` are the numbers compared.
    """

    where: str
    text: str
    rule: str
    margins: Callable[[_Ask], dict[str, float]]
    unit: str
    shown: Shown


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
    Setting("By the text", "by the text", "tuned", coded=False),
    Setting("By the text, γ by test", "by the text, γ by test", "test", coded=False),
    Setting("By their code", "by their code", "test", coded=True),
    Setting("By their code, γ tuned", "by their code, γ tuned", "tuned", coded=True),
)
"""The methods of the text with γ tuned as it says, and by the rows judged; the authors' older code
with γ by the rows judged, as behind the printed numbers, and tuned."""


def _narrower(
    ask: _Ask, one: str, *others: str, risk: str = "coverage", metric: str = "length"
) -> dict[str, float]:
    """By how many percent a method's intervals are shorter than those of each other."""
    own = ask(one, metric, risk)
    return {other: 100.0 * (1.0 - own / ask(other, metric, risk)) for other in others}


def _nearer(
    ask: _Ask,
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
    ask: _Ask,
    metric: str,
    ideal: float,
    most: float,
    risk: str,
    *methods: str,
    size: float = 1.0,
) -> dict[str, float]:
    """By how much each method is nearer to an ideal than `most`, times a size."""
    return {each: size * (most - abs(ask(each, metric, risk) - ideal)) for each in methods}


def _alike(ask: _Ask, one: str, *others: str, risk: str) -> dict[str, float]:
    """How far the differences in ΔCoverage are from ±`_ALIKE` points, on both sides."""
    apart = {
        other: 100.0 * (ask(one, "delta", risk) - ask(other, "delta", risk)) for other in others
    }
    return {f"above {other}": _ALIKE - each for other, each in apart.items()} | {
        f"below {other}": _ALIKE + each for other, each in apart.items()
    }


def _sooner(ask: _Ask) -> dict[str, float]:
    return {
        f"{steady} to {slow}": 100.0 * (ask(slow, "early") - ask(steady, "early"))
        for steady in _STEADY
        for slow in ("score", "error")
    }


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
        "the same where the full sets of calibration with cal are left out",
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


def decide(results: Results, setting: Setting) -> list[Verdict]:
    """Every claim in one setting, on the data sets where all it asks for ran."""
    verdicts = []
    for claim in CLAIMS:
        margins = {}
        for dataset in results.datasets:
            seeds = dict.fromkeys(row.seed for row in results.rows if row.dataset == dataset)
            found = [_margins(results, setting, claim, dataset, seed) for seed in seeds]
            if any(found):
                margins[results.called(dataset)] = [each for each in found if each]
        verdicts.append(decided(claim.text, claim.where, claim.rule, setting.name, margins))
    return verdicts


def _margins(
    results: Results, setting: Setting, claim: Claim, dataset: str, seed: int
) -> dict[str, float]:
    """The margins of a claim for one seed; none where something it asks for did not run."""

    def ask(method: str, metric: str, risk: str = "coverage") -> float:
        return results.by_seed(dataset, setting.method(method), metric, risk, setting.by)[seed]

    try:
        margins = claim.margins(ask)
    except KeyError:
        return {}
    return margins if all(margin == margin for margin in margins.values()) else {}


_FORMS = {
    "coverage": (100.0, 2), "delta": (100.0, 2), "early": (100.0, 2), "blind": (100.0, 1),
    "msl": (1.0, 3), "mc": (1.0, 4), "scaled_length": (1.0, 3), "finite_length": (1.0, 3),
    "longest": (1.0, 0), "farthest": (1.0, 1),
}  # fmt: skip
_TOLD = {
    "coverage": "coverage in %", "delta": "ΔCoverage by weekday in points",
    "msl": "MSL", "mc": "MC",
    "early": "distance of the first 1000 steps from the level in points",
    "blind": "pinball loss with the median β beyond that with the best, in %",
    "scaled_length": "scaled length", "finite_length": "length without full sets",
    "longest": "longest streak of misses", "farthest": "largest |θ|",
}  # fmt: skip
_SHORT = {"cal": "with cal"}


def heading(claim: Claim) -> str:
    """What the numbers of a claim are, and of which methods, in their order."""
    names, metric, risk = claim.shown
    methods = ", ".join(_SHORT.get(name, name) for name in names)
    return f"{_TOLD[metric]}{' under control of MC' if risk == 'mc' else ''}: {methods}"


def numbers(results: Results, claim: Claim, setting: Setting, dataset: str) -> str:
    """The numbers that a claim compares, medians over seeds; a dash if nothing ran."""
    methods, metric, risk = claim.shown
    names = [setting.method(method) for method in methods]
    if not all(results.chosen(dataset, name, risk, setting.by) for name in names):
        return "–"
    values = [results.values(dataset, name, metric, risk, setting.by) for name in names]
    known = [[value for value in each if not isnan(value)] for each in values]
    return _told(metric, [median(each) if each else nan for each in known])


def printed_numbers(claim: Claim, dataset: str) -> str:
    """What the authors printed of the same; a dash if nothing."""
    methods, metric, risk = claim.shown
    if (metric, risk) == ("coverage", "coverage"):
        return COVERAGE
    return _told(metric, [printed_metric(dataset, method, metric, risk) for method in methods])


def _told(metric: str, values: list[float]) -> str:
    if all(map(isnan, values)):
        return "–"
    size, places = _FORMS[metric]
    return ", ".join("–" if isnan(each) else f"{size * each:,.{places}f}" for each in values)


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
    """The claims about γ, on the synthetic stream; margins for each stream."""
    gammas = sorted({row.gamma for row in study})
    if len(gammas) < 2:
        return []
    seeds = dict.fromkeys(row.seed for row in study)

    def at(seed: int, metric: str) -> dict[float, float]:
        return {row.gamma: float(getattr(row, metric)) for row in study if row.seed == seed}

    steps = {f"{one:g} to {two:g}": (one, two) for one, two in pairwise(gammas)}
    above = {row.gamma for row in study if row.msl > 1.0}

    def falls(found: dict[float, float]) -> dict[str, float]:
        return {name: found[one] - found[two] for name, (one, two) in steps.items() if one in above}

    def grows(found: dict[float, float]) -> dict[str, float]:
        return {name: 100.0 * (found[two] / found[one] - 1.0) for name, (one, two) in steps.items()}

    largest = gammas[-1]
    rules = (
        (
            "a larger γ makes streaks of misses shorter",
            "how much MSL falls from each γ to the next, until it is 1",
            [falls(at(seed, "msl")) for seed in seeds],
        ),
        (
            "a larger γ costs longer intervals",
            "how much the length grows from each γ to the next, in %",
            [grows(at(seed, "length")) for seed in seeds],
        ),
        (
            "the largest γ has an MSL of 1",
            "1.01 less MSL at the largest γ",
            [{"": 1.01 - at(seed, "msl")[largest]} for seed in seeds],
        ),
    )
    return [
        decided(text, "C.3.3", rule, "by the text", {"synthetic": margins})
        for text, rule, margins in rules
    ]
