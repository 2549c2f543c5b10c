"""The rules that are compared, each as a function of a stream that gives the ends of its sets.

The library's default runs from the first row. A published rule takes its constants and its first θ
from the burn-in, as its authors do, and runs from there. *Two-sided* means one rule for each end,
at half the level.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import ceil, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

import setpoint as sp
from comparison.measures import LEVEL, measure
from comparison.streams import BURN_IN, Series

__all__ = ["GAMMAS", "RULES", "Rule", "expected_scores", "fixed"]

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]
Make = Callable[[Floats], tuple[Any, tuple[float, ...] | None]]

GAMMAS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""The step sizes to choose from, as shares of the range of the scores in the burn-in."""
_SCORES = 300


class Rule(NamedTuple):
    """A rule by its name.

    `kind` is "ours", "published", "hindsight" (it has seen the rows it is judged on) or "budget"
    (a published rule whose sets are shown through the budget). `ends` gives the lower and the
    upper end of the set of each row after the burn-in.
    """

    name: str
    kind: str
    ends: Callable[[Series], Ends]


def _shown(
    controller: sp.Controller, columns: Mapping[str, Floats], series: Series, state: Any = None
) -> Ends:
    """The ends of the sets that a controller shows on the last rows of a stream."""
    rows = slice(-len(next(iter(columns.values()))), None)
    y, late = series.y[rows], series.delay if series.delays is None else series.delays[rows]
    trace = sp.replay(controller, sp.Tape.from_arrays(columns, y, delay=late), state)
    return trace.lower, trace.upper


# Ours


def _default(series: Series, *, seasonal: bool = False, **options: Any) -> Ends:
    if seasonal and series.period:
        options["period"] = series.period
    controller = sp.intervals(1.0 - LEVEL, **options)
    columns = {"lower": series.lower, "upper": series.upper}
    lower, upper = _shown(controller, columns, series)
    return lower[BURN_IN:], upper[BURN_IN:]


# Published


class _Side(NamedTuple):
    """One end, or both: the columns of its intervals, whose other end is infinite, and scores."""

    columns: dict[str, Floats]
    scores: Floats
    level: float


def _sides(series: Series, two_sided: bool) -> list[_Side]:
    lower, upper, y = series.lower, series.upper, series.y
    below, above = lower - y, y - upper
    if not two_sided:
        return [_Side({"lower": lower, "upper": upper}, np.maximum(below, above), LEVEL)]
    nothing = np.full(len(y), inf)
    return [
        _Side({"lower": lower, "upper": nothing}, below, LEVEL / 2.0),
        _Side({"lower": -nothing, "upper": upper}, above, LEVEL / 2.0),
    ]


def _tracked(series: Series, make: Make, two_sided: bool = False) -> Ends:
    """A step rule on the scores; `make` gives it, and its first memory, from past scores."""
    lower, upper = np.full((2, len(series.y) - BURN_IN), inf)
    lower = -lower
    for side in _sides(series, two_sided):
        past = side.scores[:BURN_IN]
        step, memory = make(past)
        start = float(np.quantile(past, 1.0 - side.level, method="higher"))
        risk = sp.Risk(sp.losses.Miscoverage(), side.level, step, start=start)
        controller = sp.Controller(sp.sets.Widen(), risk)
        state = controller.init()
        if memory is not None:
            state.put(0, step=memory)
        columns = {name: column[BURN_IN:] for name, column in side.columns.items()}
        ends = _shown(controller, columns, series, state)
        lower, upper = np.maximum(lower, ends[0]), np.minimum(upper, ends[1])
    return lower, upper


def _range(scores: Floats) -> float:
    """Their range; 1 if they are all the same."""
    return float(np.ptp(scores)) or 1.0


def _size(value: float) -> float:
    """A scale that is not 0."""
    return float(value) or 1.0


def _fixed(share: float) -> Make:
    return lambda past: (sp.steps.Fixed(share * _range(past)), None)


def _decaying(floor: float) -> Make:
    return lambda past: (sp.published.Decaying(_range(past), floor=floor), None)


def _scale_free(past: Floats) -> tuple[Any, None]:
    return sp.published.SFOGD(_size(np.abs(past).max())), None


def _betting(past: Floats) -> tuple[Any, None]:
    return sp.published.CoinBetting(_size(np.median(np.abs(past)))), None


def _mixture(past: Floats) -> tuple[Any, None]:
    return sp.published.DtACI(_range(past)), None


def _control(past: Floats, integral: float | None = None) -> tuple[Any, tuple[float, ...]]:
    """PI control; the last scores of the burn-in are its first ones."""
    step = sp.published.PI(2.0 * _range(past) if integral is None else integral)
    return step, (0.0, 0.0, 0.0, 0.0, 100.0, *past[-100:].tolist())


def _error_quantified(sharpness: float | None, level: float) -> Make:
    def make(past: Floats) -> tuple[Any, tuple[float, ...]]:
        typical = float(np.abs(past - np.quantile(past, 1.0 - level, method="higher")).mean())
        memory = (0.0, 0.0, 50.0, typical, *past[-100:].tolist())
        return sp.published.ECI(sharpness=sharpness), memory

    return make


def _control_of_residuals(series: Series) -> Ends:
    """PID: the ends are moved by the scores that are expected, PI control does the rest."""
    moved, gains = [], []
    for side in _sides(series, True):
        moved.append(expected_scores(side.scores, series.delay))
        gains.append(2.0 * _range(side.scores[:BURN_IN]))
    there = replace(series, lower=series.lower - moved[0], upper=series.upper + moved[1])
    gain = iter(gains)
    return _tracked(there, lambda past: _control(past, next(gain)), True)


def expected_scores(scores: Floats, delay: int) -> Floats:
    """The theta forecast of each score from those known: smoothed, and half of their trend.

    The rate of the smoothing is that with the least squared error so far.
    """
    rates = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99)
    count = len(scores)
    ahead = delay + 1
    known = scores[: count - ahead]
    levels = np.array(
        [lfilter([a], [1.0, a - 1.0], known, zi=[(1.0 - a) * scores[0]])[0] for a in rates]
    )
    before = np.column_stack([np.full(len(rates), scores[0]), levels[:, :-1]])
    squares = np.cumsum(np.square(known - before), axis=1)
    chosen = squares.argmin(axis=0)
    places = np.arange(len(known))
    n, time = places + 1.0, places.astype(np.float64)
    sums = [np.cumsum(values) for values in (time, known, time * known, time * time)]
    spread = n * sums[3] - sums[0] * sums[0]
    slope = np.divide(n * sums[2] - sums[0] * sums[1], spread, out=np.zeros(len(n)), where=n > 10)
    rate = np.array(rates)[chosen]
    cast = levels[chosen, places] + 0.5 * slope * (1.0 / rate + delay)
    return np.concatenate([np.full(ahead, scores[0]), cast])


def _given(series: Series) -> Ends:
    return series.lower[BURN_IN:], series.upper[BURN_IN:]


def _split(series: Series) -> Ends:
    """Split conformal prediction: one quantile of the scores of the burn-in, never changed."""
    (side,) = _sides(series, False)
    margin = np.sort(side.scores[:BURN_IN])[ceil((1.0 - LEVEL) * (BURN_IN + 1)) - 1]
    return series.lower[BURN_IN:] - margin, series.upper[BURN_IN:] + margin


def _window(series: Series, gamma: float) -> Ends:
    """Adaptive conformal inference on the last scores; with γ of nearly 0, their quantile."""
    (side,) = _sides(series, False)
    controller = sp.published.aci(1.0 - LEVEL, gamma=gamma, size=_SCORES)
    state = controller.init()
    state.sets = controller.sets.bind(side.scores[:BURN_IN])  # type: ignore[attr-defined]
    columns = {name: column[BURN_IN:] for name, column in side.columns.items()}
    return _shown(controller, columns, series, state)


def _burnt_in(series: Series, stretch: Any) -> Ends:
    """The paper's rule with all that `burn_in` chooses: start, γ, bounds, clip bounds."""
    (side,) = _sides(series, False)
    risk = sp.Risk(sp.losses.Miscoverage(), LEVEL)
    past = list(zip(series.lower[:BURN_IN], series.upper[:BURN_IN], strict=True))
    controller = sp.burn_in(
        sp.Controller(sp.sets.Widen(), risk, stretch), past, series.y[:BURN_IN].tolist()
    )
    columns = {name: column[BURN_IN:] for name, column in side.columns.items()}
    return _shown(controller, columns, series)


def fixed(series: Series, two_sided: bool, past: bool, chosen_for: Series | None = None) -> Ends:
    """A fixed γ of `GAMMAS`: the best on the burn-in (`past`) or on the rows that are judged.

    With `chosen_for` it is the best on that stream, the same rows with other delays, say.
    """
    tried = {share: _tracked(series, _fixed(share), two_sided) for share in GAMMAS}
    if not past:
        y, point, judged = series.y[BURN_IN:], series.point[BURN_IN:], tried
        if chosen_for is not None:
            judged = {share: _tracked(chosen_for, _fixed(share), two_sided) for share in GAMMAS}
        return tried[min(judged, key=lambda share: _winkler(judged[share], y, point))]
    # The burn-in as a stream of its own: its first half gives start and range, the second judges.
    rows = BURN_IN // 2
    scores = {share: _on_burn_in(series, share, rows, two_sided) for share in GAMMAS}
    return tried[min(scores, key=lambda share: scores[share])]


def _on_burn_in(series: Series, share: float, rows: int, two_sided: bool) -> float:
    """The Winkler score of a fixed γ on the second half of the burn-in."""
    y = series.y[rows:BURN_IN]
    ends = []
    for side in _sides(series, two_sided):
        past = side.scores[:rows]
        gamma = share * _range(side.scores[:BURN_IN])
        theta = float(np.quantile(past, 1.0 - side.level, method="higher"))
        thetas = np.empty(BURN_IN - rows)
        for row, score in enumerate(side.scores[rows:BURN_IN].tolist()):
            thetas[row] = theta
            theta += gamma * ((score > theta) - side.level)
        ends.append(thetas)
    lower, upper = series.lower[rows:BURN_IN] - ends[0], series.upper[rows:BURN_IN] + ends[-1]
    return _winkler((lower, upper), y, series.point[rows:BURN_IN])


def _winkler(ends: Ends, y: Floats, point: Floats) -> float:
    return measure(ends[0], ends[1], y, point)[0].winkler


# The budget around a rule


def _budget(series: Series, ends: Callable[[Series], Ends]) -> Ends:
    """The sets of a rule, shown through the budget; its infinite ends are the farthest finite."""
    lower, upper = ends(series)
    largest = 1e12 * (1.0 + float(np.abs(series.y).max()))
    lower, upper = np.clip(lower, -largest, largest), np.clip(upper, -largest, largest)
    half = np.maximum(0.5 * (upper - lower), 0.0)
    columns = {"centre": 0.5 * (lower + upper), "low": half, "high": half}
    return _shown(sp.presets.around(1.0 - LEVEL), columns, series)


_PUBLISHED: dict[str, Callable[[Series], Ends]] = {
    "as given": _given,
    "split conformal": _split,
    "last 300 scores": partial(_window, gamma=1e-9),
    "ACI, γ = 0.005": partial(_window, gamma=0.005),
    "ACI, γ = 0.05": partial(_window, gamma=0.05),
    "fixed γ, untuned": partial(_burnt_in, stretch=sp.stretches.Identity()),
    "fixed γ, 0.5 % of range": partial(_tracked, make=_fixed(0.005)),
    "fixed γ, 5 % of range": partial(_tracked, make=_fixed(0.05)),
    "fixed γ, tuned on burn-in": partial(fixed, two_sided=False, past=True),
    "score adaptive": partial(_burnt_in, stretch=sp.stretches.ScoreAdaptive(0.1)),
    "error adaptive, paper": partial(
        _burnt_in, stretch=sp.stretches.ErrorAdaptive(0.1, 0.1, reading="paper")
    ),
    "error adaptive, authors": partial(
        _burnt_in, stretch=sp.stretches.ErrorAdaptive(0.1, 0.1, reading="authors")
    ),
    "decaying": partial(_tracked, make=_decaying(0.0)),
    "decaying, floor": partial(_tracked, make=_decaying(0.01)),
    "SF-OGD": partial(_tracked, make=_scale_free),
    "betting": partial(_tracked, make=_betting),
    "DtACI": partial(_tracked, make=_mixture),
    "DtACI, two-sided": partial(_tracked, make=_mixture, two_sided=True),
    "ECI": partial(_tracked, make=_error_quantified(1.0, LEVEL)),
    "ECI, two-sided": partial(_tracked, make=_error_quantified(None, LEVEL / 2), two_sided=True),
    "PI": partial(_tracked, make=_control),
    "PI, two-sided": partial(_tracked, make=_control, two_sided=True),
    "PID, two-sided": _control_of_residuals,
}

RULES: tuple[Rule, ...] = (
    Rule("default", "ours", _default),
    Rule("default, period", "ours", partial(_default, seasonal=True)),
    Rule("default, steadiness 0.1", "ours", partial(_default, steadiness=0.1)),
    Rule("default, centre kept", "ours", partial(_default, recentre=False)),
    *(Rule(name, "published", ends) for name, ends in _PUBLISHED.items()),
    Rule("fixed γ, hindsight", "hindsight", partial(fixed, two_sided=False, past=False)),
    Rule("fixed γ, two-sided, hindsight", "hindsight", partial(fixed, two_sided=True, past=False)),
    *(
        Rule(f"budget around {name}", "budget", partial(_budget, ends=_PUBLISHED[name]))
        for name in (
            "fixed γ, 0.5 % of range", "SF-OGD", "DtACI, two-sided", "PI, two-sided",
            "PID, two-sided",
        )
    ),
)  # fmt: skip
"""Every rule, ours first."""
