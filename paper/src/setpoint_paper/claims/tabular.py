"""The paper's claims about its tabular experiments, each with the rule that decides it."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from math import isnan
from typing import Any

from setpoint_paper.claims.engine import Claim, Margins, Outcome, Verdict, decide
from setpoint_paper.claims.engine import log_percent as log
from setpoint_paper.statistics import Estimate, two_deviations
from setpoint_paper.tabular.methods import OURS, STRETCHES
from setpoint_paper.tabular.printed import COVERAGE, PRINTED, printed_reading
from setpoint_paper.tabular.results import COLUMNS, Column, Results

__all__ = ["CLAIMS", "STUDY", "by_print", "study", "verdict"]

_MSL, _MC, _COVERAGE = 10.0 / 9.0, 1.0 / 9.0, 0.9
_GREAT, _WELL, _JUDGED = 5.0, 2.0, 12_000
_PAIR, _THREE = ("none", "error"), ("error", "none", "cal")
_REST, _STEADY = ("none", "exponential", "score"), ("none", "exponential")
_DELTA, _TEXT, _UNCODED = (frozenset({name}) for name in ("delta", "text", "uncoded"))
_PARAMETERS = ("beta_score", "beta_loss", "beta_low", "beta_high")


def _attains(*methods: str, risk: str = "coverage") -> dict[str, Any]:
    """The rule of a claim that a mean loss attains its level."""

    def margins(name: str) -> Callable[[Any], Margins]:
        return lambda ask: {
            each: 100.0 * (ask(each, name, risk) - ask(each, "off", risk)) for each in methods
        }

    return {
        "rule": "the tolerance less the distance of the mean loss of the whole run from its level",
        "margins": margins("tolerance"),
        "against": margins("limit"),
        "unit": "points",
    }


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


def _pinball_of(one: str, other: str) -> Callable[[Any], Margins]:
    return lambda ask: {"": log(ask(other, "pinball"), ask(one, "pinball"))}


def _stretchings(letters: str, risk: str) -> Iterator[Claim]:
    """The claims of the study of stretchings that are made under control of either risk."""
    under = {"coverage": "", "mc": "under control of MC "}[risk]
    kept = {"coverage": "", "mc": ", MC held"}[risk]
    narrow, short, streak, alike = (f"D.1.1{letter}" for letter in letters)
    yield Claim(
        narrow, f"{under}score and error adaptive are narrower than none and exponential",
        f"adaptive narrower{kept}", "how much shorter each of the two is than each of the others",
        _shorter(*((one, other) for one in ("score", "error") for other in _STEADY), risk=risk),
        "log %",
    )  # fmt: skip
    yield Claim(
        short, f"{under}error adaptive gives the shortest intervals of the four",
        f"error adaptive shortest{kept}", "how much shorter than each of the others",
        _shorter(*(("error", other) for other in _REST), risk=risk), "log %",
    )  # fmt: skip
    yield Claim(
        streak, f"{under}error adaptive has the MSL nearest to the ideal of the four",
        f"its MSL nearest to 10/9{kept}", "how much nearer MSL is to 10/9 than each other's",
        _nearer("msl", _MSL, "error", *_REST, risk=risk), "of MSL",
    )  # fmt: skip
    yield Claim(
        alike, f"{under}error adaptive is like the others in ΔCoverage",
        f"like the others in ΔCoverage{kept}",
        "half of what independent misses make, less the distance from each other, either way",
        _alike(risk), "points", options=_DELTA,
    )  # fmt: skip


CLAIMS = (
    Claim(
        "4.1.2a", "Rolling RC attains 90 % coverage, without and with error adaptive stretching",
        "90 % attained", **_attains(*_PAIR),
    ),
    Claim(
        "4.1.2b", "error adaptive stretching gives narrower intervals than none",
        "error adaptive narrower than none", "how much shorter", _shorter(("error", "none")),
        "log %",
    ),
    Claim(
        "4.1.2c", "error adaptive stretching gives better conditional coverage than none",
        "its conditional coverage better", "how much nearer MSL is to 10/9",
        _nearer("msl", _MSL, "error", "none"), "of MSL",
    ),
    Claim("4.1.3a", "calibration with cal attains 90 % coverage too", "90 % attained with cal",
          **_attains("cal")),
    Claim(
        "4.1.3b", "error adaptive gives the narrowest intervals, before none and with cal",
        "error adaptive narrowest of three",
        "how much shorter than each of the two; a full set is as long as all labels seen reach",
        _shorter(("error", "none"), ("error", "cal")), "log %",
    ),
    Claim(
        "4.1.3c", "error adaptive has the best conditional coverage, before none and with cal",
        "its conditional coverage best of three",
        "how much nearer MSL is to 10/9 than each of the two",
        _nearer("msl", _MSL, *_THREE), "of MSL",
    ),
    Claim(
        "4.1.3d", "even without stretching Rolling RC has narrower intervals than with cal",
        "none narrower than with cal", "how much shorter", _shorter(("none", "cal")), "log %",
    ),
    Claim(
        "4.1.3e", "even without stretching it has better conditional coverage than with cal",
        "none better in MSL than with cal", "how much nearer MSL is to 10/9",
        _nearer("msl", _MSL, "none", "cal"), "of MSL",
    ),
    Claim(
        "4.1.4a", "control of coverage alone leaves MC above 1/9",
        "MC above 1/9 if not controlled", "MC of none and of error adaptive, less 1/9",
        lambda ask: {each: ask(each, "mc") - _MC for each in _PAIR}, "of MC",
    ),
    Claim("4.1.4b", "MC is held when it is what is controlled", "MC held when controlled",
          **_attains(*_PAIR, risk="mc")),
    Claim(
        "4.1.4c", "control of MC gives valid coverage", "MC control covers",
        "coverage less 8/9, which an MC of 1/9 leaves at least",
        lambda ask: {each: 100.0 * (ask(each, "coverage", "mc") - 8.0 / 9.0) for each in _PAIR},
        "points",
    ),
    Claim(
        "5a", "stretching overcomes a step size that is too small", "stretching mends a small γ",
        "what the smallest γ tried adds to the pinball loss of the best without stretching, less "
        "what it adds with error adaptive stretching",
        _mended("smallest"), "log %",
    ),
    Claim(
        "C.1.3a", "to choose γ by a validation set works well", "γ by a validation set",
        f"{_WELL:g} log % less what γ and β tuned on earlier rows lose to the best γ",
        lambda ask: {
            each: _WELL - log(ask(each, "pinball", by="tuned"), ask(each, "pinball", by="test"))
            for each in STRETCHES
        },
        "log %",
    ),
    Claim(
        "C.3.1a", "a bound of 9999 on θ is never reached", "θ never at 9999",
        "9999 less the largest size of θ, under both risks; a seed whose safeguard acted is "
        "left out",
        lambda ask: {
            f"{each}, {risk}": 9999.0 - ask(each, "reached", risk)
            for each in STRETCHES
            for risk in ("coverage", "mc")
        },
        "of θ",
    ),
    Claim(
        "C.4a", "choosing the four β wisely greatly affects the performance",
        "the four β matter greatly",
        f"the largest of four ranges of the pinball loss less {_GREAT:g}: β_score and β_loss over "
        "the paper's ranges, each clip bound from a tenth to ten times the paper's",
        lambda ask: {"": max(ask("ranges", each) for each in _PARAMETERS) - _GREAT}, "log %",
        options=_TEXT,
    ),
    *_stretchings("abcd", "coverage"),
    Claim(
        "D.1.1e", "under control of coverage error adaptive has the MC nearest to 1/9 of the four",
        "its MC nearest to 1/9", "how much nearer MC is to 1/9 than each other's",
        _nearer("mc", _MC, "error", *_REST), "of MC",
    ),
    *_stretchings("fghi", "mc"),
    Claim(
        "D.1.1j", "under control of MC error adaptive has the coverage nearest to 90 %",
        "its coverage nearest to 90 %, MC held",
        "how much nearer coverage is to 90 % than each other's",
        _nearer("coverage", _COVERAGE, "error", *_REST, risk="mc", size=100.0), "points",
    ),
    Claim(
        "D.1.1k", "none and exponential converge faster to the level", "none, exponential sooner",
        "over the first 1,000 steps, how much nearer to its level each is than each adaptive one",
        _sooner, "points",
    ),
    Claim(
        "D.1.2a", "error adaptive has the best MC, before none and with cal",
        "its MC best of three", "how much nearer MC is to 1/9 than each of the two",
        _nearer("mc", _MC, *_THREE), "of MC",
    ),
    Claim(
        "D.1.2b", "even without stretching Rolling RC has a better MC than with cal",
        "none better in MC than with cal", "how much nearer MC is to 1/9",
        _nearer("mc", _MC, "none", "cal"), "of MC",
    ),
    Claim(
        "D.1.2c", "error adaptive has the best ΔCoverage, before none and with cal",
        "its ΔCoverage best of three", "how much smaller than each of the two",
        _nearer("delta", 0.0, *_THREE, size=100.0), "points", options=_DELTA,
    ),
    Claim(
        "D.1.2d", "even without stretching Rolling RC has a better ΔCoverage than with cal",
        "none better in ΔCoverage than with cal", "how much smaller",
        _nearer("delta", 0.0, "none", "cal", size=100.0), "points", options=_DELTA,
    ),
    Claim(
        "E.2a", "MC does not get too high in practice, so it needs no cap", "MC needs no cap",
        "39 misses in a row, where their code cuts MC, less the longest streak",
        lambda ask: {each: 39.0 - ask(each, "longest", "mc") for each in STRETCHES}, "misses",
    ),
    Claim(
        "own 1", "calibration with cal has longer intervals even without its full sets",
        "cal longer without full sets", "how much shorter the intervals of none with a length are",
        _shorter(("none", "cal"), metric="finite_length"), "log %", own=True,
    ),
    Claim(
        "own 2", "stretching overcomes a step size that is too large", "stretching mends a large γ",
        "as 5a, with the largest γ tried; the paper speaks of delays, so of a small one",
        _mended("largest"), "log %", own=True,
    ),
    Claim(
        "own 3", "the printed minus of the error adaptive update has a higher loss than the plus",
        "the printed minus fails", "pinball loss with the minus over that with the plus",
        lambda ask: {"": ask("ranges", "minus")}, "log %",
        own=True, options=_TEXT,
    ),
    Claim(
        "own 4", "the authors' form of error adaptive stretching has a lower loss than the text's",
        "the authors' form is better", "pinball loss, both with γ tuned: how much lower",
        lambda ask: {"": log(ask("error", "pinball", by="tuned"),
                             ask("error_coded!", "pinball", by="tuned"))},
        "log %", own=True, options=_UNCODED,
    ),
    Claim(
        "own 5", "our self-adjusting default has a lower loss than error adaptive with γ tuned",
        "our default is better", "pinball loss: how much lower", _pinball_of(OURS, "error"),
        "log %", own=True, options=_UNCODED,
    ),
)  # fmt: skip


def verdict(claim: Claim, column: Column, results: Results, *, judged: bool = True) -> Verdict:
    """A claim in a column, on every data set; no place where the column does not concern it."""
    beside = column is COLUMNS[3] and claim.options != _DELTA
    wrong = claim.options == _TEXT and column is not COLUMNS[0]
    if beside or wrong or (claim.options == _UNCODED and column.coded):
        return Verdict({})
    return decide(
        claim, results.datasets,
        lambda dataset: sorted({r.seed for r in results.rows if r.dataset == dataset}),
        lambda dataset, seed: column.ask(results, dataset, seed), judged=judged,
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


STUDY = (
    Claim(
        "C.3.3a", "a larger γ makes streaks of misses shorter", "a larger γ, shorter streaks",
        "how much MSL falls from each γ to the next, until it is 1",
        lambda ask: {
            name: one - two for name, one, two in _steps(ask("msl")) if one > 1.0 + 1e-9
        },
        "of MSL",
    ),
    Claim(
        "C.3.3b", "a larger γ costs longer intervals", "a larger γ, longer intervals",
        "how much the length grows from each γ to the next",
        lambda ask: {name: log(two, one) for name, one, two in _steps(ask("length"))}, "log %",
    ),
    Claim(
        "C.3.3c", "the largest γ has an MSL of 1", "the largest γ, MSL of 1",
        "19/18, the middle between 1 and the ideal, less MSL at the largest γ",
        lambda ask: {"": 19.0 / 18.0 - ask("msl")[max(ask("msl"))]}, "of MSL",
    ),
)  # fmt: skip


def study(claim: Claim, results: Results, *, judged: bool = True) -> Verdict:
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

    return decide(
        Claim(claim.id, claim.text, claim.short, claim.rule, shared, claim.unit), ("synthetic",),
        lambda _: seeds, asked, judged=judged,
    )  # fmt: skip
