"""Verdicts on the paper's claims about its tabular experiments.

The margins of the seeds, which share the data and differ in the model's initialisation, have a mean
and a 95 % confidence interval. A claim holds on a data set where every interval lies above 0, and
fails where one lies below. `pages.Verdict` says what it is called then.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import isnan, nan
from statistics import fmean, median

from setpoint_paper.pages import Interval, Margin, Verdict, decided, weighed
from setpoint_paper.tabular.claims import CLAIMS, Claim
from setpoint_paper.tabular.measures import Row
from setpoint_paper.tabular.printed import COVERAGE, PRINTED, printed_reading
from setpoint_paper.tabular.results import ENOUGH, Results

__all__ = [
    "CODE",
    "TEXT",
    "Setting",
    "decide",
    "decide_printed",
    "heading",
    "judged_by",
    "numbers",
    "printed_numbers",
    "settings",
    "so_far",
    "study_verdicts",
]


@dataclass(frozen=True, slots=True)
class Setting:
    """A way of choosing γ and a form of the methods to judge the claims by.

    `name` begins a sentence; a `main` one is as its protocol is meant; days may be told by their
    index modulo 7, as in the authors' code.
    """

    name: str
    by: str
    coded: bool
    main: bool = False
    modulo: bool = False

    @property
    def short(self) -> str:
        """The name in a table."""
        return self.name[0].lower() + self.name[1:]

    def method(self, name: str) -> str:
        """The method that stands for a name of the paper."""
        return f"{name}_coded" if self.coded else name

    def metric(self, name: str) -> str:
        """The metric that stands for a name of the paper."""
        return "delta_modulo" if self.modulo and name == "delta" else name


TEXT = Setting("By the text", "tuned", coded=False, main=True)
_TEXT_BY_TEST = Setting("By the text, γ by test", "test", coded=False)

CODE = Setting("By their code", "printed", coded=True, main=True, modulo=True)
_AS_PRINTED = (
    CODE,
    Setting("By their code, γ by test", "test", coded=True, modulo=True),
    Setting("By their code, γ tuned", "tuned", coded=True, modulo=True),
)
_TRAINED_OTHERWISE = (
    Setting("Their code here, γ by test", "test", coded=True, main=True, modulo=True),
    Setting("Their code here, γ tuned", "tuned", coded=True, modulo=True),
)
_BY_WEEKDAY = Setting("By their code, but by weekday", "printed", coded=True)


def settings(results: Results) -> tuple[Setting, ...]:
    """The ways to judge by, on a page of results.

    The methods of the text with γ tuned as it says, and by the rows judged; the authors' older code
    with the printed γ, by the rows judged, which is how it was chosen, and tuned. No γ is printed
    for another training than theirs.
    """
    return (TEXT, _TEXT_BY_TEST, *(_AS_PRINTED if results.as_printed else _TRAINED_OTHERWISE))


def judged_by(results: Results) -> tuple[Setting, ...]:
    """The settings that claims are judged by: as printed, those about days by weekday too."""
    return (*settings(results), *((_BY_WEEKDAY,) if results.as_printed else ()))


def _concerns(setting: Setting, claim: Claim) -> bool:
    """Whether a claim is judged in a setting: not where another one says the same of it."""
    if setting is _BY_WEEKDAY:
        return claim.shown.metric == "delta"
    return setting.main or not claim.selects


def decide_printed() -> list[Verdict]:
    """Every claim by the printed numbers alone, give or take what can be read off a figure."""
    verdicts = []
    for claim in CLAIMS:
        found = {}
        for dataset in PRINTED:
            margins = _printed_margins(claim, dataset)
            found[dataset] = [
                Margin(rival if len(margins) > 1 else "", each, against=each.ends[1] < 0.0)
                for rival, each in margins.items()
            ]
        known = {dataset: each for dataset, each in found.items() if each}
        verdicts.append(weighed(claim.text, claim.where, claim.rule, "By print", known))
    return verdicts


def _printed_margins(claim: Claim, dataset: str) -> dict[str, Interval]:
    """The margins of a claim by what was printed of a data set; none where a number was not.

    Each number read moves them by so much; all of them together at the most by the sum.
    """
    read: dict[tuple[str, str, str, str | None], float] = {}
    moved: tuple[tuple[str, str, str, str | None], int] | None = None

    def ask(method: str, metric: str, risk: str = "coverage", by: str | None = None) -> float:
        shown = "scaled_length" if metric == "length" else metric
        asked = method, shown, risk, by
        value, error = printed_reading(dataset, *asked)
        read[asked] = error
        return value + error * (moved[1] if moved is not None and moved[0] == asked else 0)

    usual = _known(claim.margins(ask))
    half = dict.fromkeys(usual, 0.0)
    for asked in [each for each, error in read.items() if error and usual]:
        ends = []
        for side in (-1, 1):
            moved = asked, side
            ends.append(claim.margins(ask))
        for rival in half:
            half[rival] += max(abs(end[rival] - usual[rival]) for end in ends)
    return {
        rival: Interval(mean, mean - half[rival], mean + half[rival], 1)
        for rival, mean in usual.items()
    }


def _known(margins: dict[str, float]) -> dict[str, float]:
    """Margins, if all of them are numbers; none if one is not."""
    return {} if any(map(isnan, margins.values())) else margins


def decide(results: Results, setting: Setting) -> list[Verdict]:
    """Every claim in one setting, on the data sets where all it asks for ran.

    Those that select γ themselves are judged once by the text and once by the code.
    """
    verdicts = []
    for claim in CLAIMS:
        margins = {}
        for dataset in results.datasets if _concerns(setting, claim) else ():
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

    def ask(method: str, metric: str, risk: str = "coverage", by: str | None = None) -> float:
        asked = setting.method(method), setting.metric(metric), risk, by or setting.by
        return results.by_seed(dataset, *asked)[seed]

    try:
        return _known(claim.margins(ask))
    except KeyError:
        return {}


_FORMS = {
    "coverage": (100.0, ".2f"), "delta": (100.0, ".2f"), "delta_modulo": (100.0, ".2f"),
    "early": (100.0, ".2f"), "blind": (100.0, ".1f"), "msl": (1.0, ".3f"), "mc": (1.0, ".4f"),
    "scaled_length": (1.0, ".3f"), "finite_length": (1.0, ",.4g"), "pinball": (1.0, "#.4g"),
    "longest": (1.0, ".0f"), "farthest": (1.0, ",.1f"),
}  # fmt: skip
_TOLD = {
    "coverage": "coverage in %", "pinball": "pinball loss",
    "delta": "ΔCoverage in points (by weekday; by their code, by index modulo 7)",
    "msl": "MSL", "mc": "MC",
    "early": "distance of the first 1000 steps from the level in points",
    "blind": "pinball loss with the median β beyond that with the best, in %",
    "scaled_length": "scaled length", "finite_length": "length without full sets",
    "longest": "longest streak of misses", "farthest": "largest |θ|",
}  # fmt: skip
_SHORT = {"cal": "with cal"}


def heading(claim: Claim) -> str:
    """What the numbers of a claim are, and of which methods, in their order."""
    names, metric, risk, by = claim.shown
    methods = ", ".join(_SHORT.get(name, name) for name in names)
    told = f"{_TOLD[metric]}{' under control of MC' if risk == 'mc' else ''}"
    return f"{told}{f' with the {by} γ' if by else ''}: {methods}"


def numbers(results: Results, claim: Claim, setting: Setting, dataset: str) -> str:
    """The numbers that a claim compares, over seeds; a dash if nothing ran.

    They are medians and, of pinball losses, means, like those printed.
    """
    methods, metric, risk, own = claim.shown
    by = own or setting.by
    metric, names = setting.metric(metric), [setting.method(method) for method in methods]
    if not all(results.chosen(dataset, name, risk, by) for name in names):
        return "–"
    values = [results.values(dataset, name, metric, risk, by) for name in names]
    known = [[value for value in each if not isnan(value)] for each in values]
    average = fmean if metric == "pinball" else median
    return _told(metric, [average(each) if each else nan for each in known])


def printed_numbers(claim: Claim, dataset: str) -> str:
    """What the authors printed of the same; a dash if nothing."""
    methods, metric, risk, by = claim.shown
    if (metric, risk) == ("coverage", "coverage"):
        return COVERAGE
    read = [printed_reading(dataset, method, metric, risk, by) for method in methods]
    return _told(metric, [value for value, _ in read])


def _told(metric: str, values: list[float]) -> str:
    if all(map(isnan, values)):
        return "–"
    size, form = _FORMS[metric]
    return ", ".join("–" if isnan(each) else f"{size * each:{form}}" for each in values)


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
