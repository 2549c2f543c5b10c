"""The paper's claims about its tabular experiments, each with the rule that decides it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from math import isnan
from typing import Any

from setpoint_paper.claims.engine import Claim, Margins, Outcome, Rule, Verdict, decide, told
from setpoint_paper.claims.engine import log_percent as log
from setpoint_paper.statistics import Estimate, two_deviations
from setpoint_paper.tabular.methods import STRETCHES
from setpoint_paper.tabular.printed import COVERAGE, PRINTED, printed_reading
from setpoint_paper.tabular.results import COLUMNS, Column, Results

_MSL, _MC, _COVERAGE = 10.0 / 9.0, 1.0 / 9.0, 0.9
_JUDGED = 12_000
_PAIR, _THREE = ("none", "error"), ("error", "none", "cal")
_REST, _STEADY = ("none", "exponential", "score"), ("none", "exponential")
_DELTA, _TEXT, _UNCODED = (frozenset({name}) for name in ("delta", "text", "uncoded"))
_SHORTEST = tuple(("error", other) for other in _REST)
_PARAMETERS = ("beta_score", "beta_loss", "beta_low", "beta_high")


def _attains(*methods: str, risk: str = "coverage") -> Rule:
    """A mean loss attains its level: within the tolerance for it, beyond the limit against it."""

    def margins(name: str) -> Callable[[Any], Margins]:
        return lambda ask: {
            each: 100.0 * (ask(each, name, risk) - ask(each, "off", risk)) for each in methods
        }

    return margins("tolerance"), margins("limit")


def _shorter(*pairs: tuple[str, str], risk: str = "coverage", metric: str = "length") -> Any:
    """How much shorter the first of each pair is, in log %."""

    def margins(ask: Any) -> Margins:
        return {
            f"{one} to {other}" if len(pairs) > 1 else other: log(
                ask(other, metric, risk), ask(one, metric, risk)
            )
            for one, other in pairs
        }

    return margins


def _nearer(metric: str, ideal: float, *methods: str, risk: str = "coverage", size: float = 1.0):  # type: ignore[no-untyped-def]
    """By how much the first method is nearer to an ideal than each other."""

    def margins(ask: Any) -> Margins:
        own, *others = (abs(ask(each, metric, risk) - ideal) for each in methods)
        return {name: size * (other - own) for name, other in zip(methods[1:], others, strict=True)}

    return margins


def _alike(risk: str) -> Callable[[Any], Margins]:
    """Half of what chance makes of ΔCoverage, less the difference, above and below."""

    def margins(ask: Any) -> Margins:
        own, half = ask("error", "delta", risk), ask("error", "floor", risk) / 2.0
        apart = {each: own - ask(each, "delta", risk) for each in _REST}
        return {f"above {each}": 100.0 * (half - gap) for each, gap in apart.items()} | {
            f"below {each}": 100.0 * (half + gap) for each, gap in apart.items()
        }

    return margins


def _mended(by: str) -> Callable[[Any], Margins]:
    """What stretching takes from the cost of an extreme γ, in log % of the pinball loss."""

    def margins(ask: Any) -> Margins:
        none, error = (
            log(ask(each, "pinball", by=by), ask(each, "pinball", by="test")) for each in _PAIR
        )
        return {"": none - error}

    return margins


def _sooner(ask: Any) -> Margins:
    return {
        f"{steady} to {slow}": 100.0 * (ask(slow, "early") - ask(steady, "early"))
        for steady in _STEADY
        for slow in ("score", "error")
    }


def _narrow(risk: str) -> Callable[[Any], Margins]:
    pairs = ((one, other) for one in ("score", "error") for other in _STEADY)
    return _shorter(*pairs, risk=risk)  # type: ignore[no-any-return]


CLAIMS = told("tabular", {
    "4.1.2a": _attains(*_PAIR),
    "4.1.2b": _shorter(("error", "none")),
    "4.1.2c": _nearer("msl", _MSL, "error", "none"),
    "4.1.3a": _attains("cal"),
    "4.1.3b": _shorter(("error", "none"), ("error", "cal")),
    "4.1.3c": _nearer("msl", _MSL, *_THREE),
    "4.1.3d": _shorter(("none", "cal")),
    "4.1.3e": _nearer("msl", _MSL, "none", "cal"),
    "4.1.4a": lambda ask: {each: ask(each, "mc") - _MC for each in _PAIR},
    "4.1.4b": _attains(*_PAIR, risk="mc"),
    "4.1.4c": lambda ask: {each: 100.0 * (ask(each, "coverage", "mc") - 8.0 / 9.0)
                           for each in _PAIR},
    "5a": _mended("smallest"),
    "C.1.3a": lambda ask: {each: 2.0 - log(ask(each, "pinball", by="tuned"),
                                           ask(each, "pinball", by="test"))
                           for each in STRETCHES},
    "C.3.1a": lambda ask: {f"{each}, {risk}": 9999.0 - ask(each, "reached", risk)
                           for each in STRETCHES for risk in ("coverage", "mc")},
    "C.4a": lambda ask: {"": max(ask("ranges", each) for each in _PARAMETERS) - 5.0},
    "D.1.1a": _narrow("coverage"),
    "D.1.1b": _shorter(*_SHORTEST),
    "D.1.1c": _nearer("msl", _MSL, "error", *_REST),
    "D.1.1d": _alike("coverage"),
    "D.1.1e": _nearer("mc", _MC, "error", *_REST),
    "D.1.1f": _narrow("mc"),
    "D.1.1g": _shorter(*_SHORTEST, risk="mc"),
    "D.1.1h": _nearer("msl", _MSL, "error", *_REST, risk="mc"),
    "D.1.1i": _alike("mc"),
    "D.1.1j": _nearer("coverage", _COVERAGE, "error", *_REST, risk="mc", size=100.0),
    "D.1.1k": _sooner,
    "D.1.2a": _nearer("mc", _MC, *_THREE),
    "D.1.2b": _nearer("mc", _MC, "none", "cal"),
    "D.1.2c": _nearer("delta", 0.0, *_THREE, size=100.0),
    "D.1.2d": _nearer("delta", 0.0, "none", "cal", size=100.0),
    "E.2a": lambda ask: {each: 39.0 - ask(each, "longest", "mc") for each in STRETCHES},
    "own 1": _shorter(("none", "cal"), metric="finite_length"),
    "own 6": _shorter(("error", "cal"), metric="finite_length"),
    "own 2": _mended("largest"),
    "own 3": lambda ask: {"plus": ask("ranges", "minus"),
                          "none": ask("ranges", "minus") + log(ask("error", "pinball"),
                                                               ask("none", "pinball"))},
    "own 4": lambda ask: {"": log(ask("error", "pinball", by="tuned"),
                                  ask("error_coded!", "pinball", by="tuned"))},
})  # fmt: skip


def verdict(claim: Claim, column: Column, results: Results, **options: bool) -> Verdict:
    """A claim in a column, on every data set; no place where the column does not concern it."""
    beside = column is COLUMNS[3] and claim.options != _DELTA
    wrong = claim.options == _TEXT and column is not COLUMNS[0]
    if beside or wrong or (claim.options == _UNCODED and column.coded):
        return Verdict({})
    return decide(
        claim, results.datasets,
        lambda dataset: sorted({r.seed for r in results.rows if r.dataset == dataset}),
        lambda dataset, seed: column.ask(results, dataset, seed), **options,
    )  # fmt: skip


# By print


def by_print(claim: Claim) -> Verdict:
    """A claim by the printed numbers alone, give or take what can be read off a figure."""
    found = {}
    for dataset in PRINTED:
        margins = _printed_margins(claim, dataset)
        if not margins:
            continue
        worst = min(margins, key=lambda rival: margins[rival].low)
        lost = [rival for rival, each in margins.items() if each.high < 0.0]
        state = "against" if lost else "for" if margins[worst].low > 0.0 else "open"
        found[dataset] = Outcome(state, worst, margins[worst])
    return Verdict(found)


def _printed_margins(claim: Claim, dataset: str) -> dict[str, Estimate]:
    """The margins by what was printed; none where a number was not.

    Each number read moves them by so much; all of them together at the most by the sum.
    """
    read: dict[tuple[str, ...], float] = {}
    moved: tuple[tuple[str, ...], int] | None = None

    def ask(method: str, metric: str, risk: str = "coverage", by: str = "") -> float:
        asked = method, "scaled_length" if metric == "length" else metric, risk, by
        value, error = printed_reading(dataset, *asked[:3], by or None)
        if risk == "coverage" and metric in ("tolerance", "off"):
            low, high = (abs(float(end) / 100.0 - _COVERAGE) for end in COVERAGE.split(" to "))
            value, error = two_deviations(1.0 - _COVERAGE, _JUDGED), 0.0
            if metric == "off":
                value, error = max(low, high) / 2.0, max(low, high) / 2.0
        if isnan(value):
            raise KeyError(method)
        read[asked] = error
        return value + error * (moved[1] if moved is not None and moved[0] == asked else 0)

    try:
        usual = claim.margins(ask)
        half = dict.fromkeys(usual, 0.0)
        for asked in [each for each, error in read.items() if error]:
            ends = []
            for side in (-1, 1):
                moved = asked, side
                ends.append(claim.margins(ask))
            for rival in half:
                half[rival] += max(abs(end[rival] - usual[rival]) for end in ends)
    except (KeyError, ValueError):
        return {}
    return {
        rival: Estimate(mean, mean - half[rival], mean + half[rival], 1)
        for rival, mean in usual.items()
    }


# The study of γ


def _steps(found: Mapping[float, float]) -> Iterator[tuple[str, float, float]]:
    for one, two in pairwise(sorted(found)):
        yield f"{one:g} to {two:g}", found[one], found[two]


STUDY = told("study", {
    "C.3.3a": lambda ask: {name: one - two for name, one, two in _steps(ask("msl"))
                           if one > 1.0 + 1e-9},
    "C.3.3b": lambda ask: {name: log(two, one) for name, one, two in _steps(ask("length"))},
    "C.3.3c": lambda ask: {f"{each:g}": 19.0 / 18.0 - ask("msl")[each]
                           for each in (0.35, max(ask("msl")))},
})  # fmt: skip


def study(claim: Claim, results: Results, **options: bool) -> Verdict:
    """A claim about γ, over streams of the synthetic data; margins that a stream lacks are left."""

    def asked(_: str, seed: int) -> Callable[[str], dict[float, float]]:
        return lambda metric: {
            row.gamma: float(getattr(row, metric)) for row in results.study if row.seed == seed
        }

    seeds = sorted({row.seed for row in results.study})
    if len({row.gamma for row in results.study}) < 2:
        return Verdict({})
    common = set.intersection(*(set(claim.margins(asked("", seed))) for seed in seeds))

    def shared(ask: Any) -> Margins:
        return {name: value for name, value in claim.margins(ask).items() if name in common}

    return decide(replace(claim, margins=shared), ("synthetic",), lambda _: seeds, asked, **options)
