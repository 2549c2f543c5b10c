"""Controllers to begin with: known by a name, or filled in from past predictions and labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import inf
from typing import Any

from setpoint._check import confidence
from setpoint._past import burn_in, find_period
from setpoint.controller import Controller, Risk
from setpoint.correction import Intervals, Labels
from setpoint.correction.paths import Paths as PathsCorrection
from setpoint.errors import InputError
from setpoint.losses import Calms, FalseNegatives, Miscoverage, Misses
from setpoint.sets import Cumulative, Family, Multilabel, Multiplied, Paths, ScoreWindow, Threshold
from setpoint.sets.family import Classed
from setpoint.sets.fan import Fan, rising
from setpoint.state import State
from setpoint.steps import Account, Measure
from setpoint.stretches import Tracking

__all__ = [
    "around", "burn_in", "find_period", "intervals", "label_sets", "quantiles",
    "start_from",
]  # fmt: skip


def miss_level(coverage: float) -> float:
    """The share of labels that may be missed, 1 − coverage, as people write it.

    >>> miss_level(0.9)
    0.1
    """
    share = confidence(coverage, "coverage")
    rounded = round(1.0 - share, 12)
    return rounded if 0.0 < rounded < 1.0 else 1.0 - share


def intervals(
    coverage: float | Iterable[float] = 0.9,
    *,
    guarded: Iterable[float] | None = None,
    risk: Risk | Sequence[Risk] | None = None,
    recentre: bool = True,
    period: int | None = None,
    features: Iterable[str] = (),
    categories: Mapping[str, Iterable[Any]] | None = None,
    support: tuple[float, float] | str | None = "learnt",
    whole_numbers: bool = False,
    limit: float = 10.0,
    steadiness: float = 0.15,
    two_sided: bool = False,
) -> Controller:
    """Intervals that adjust themselves: no step size, no bounds, no units, no past data.

    A correction learns the forecast's own errors, and a budget keeps the losses:
    with coverage 0.9 there are never more than 10.9 misses beyond the 10 % allowed.

    Parameters
    ----------
    coverage
        The share of labels that the intervals are to hold, or several: then every prediction shows
        `Bands`, intervals within each other.
    guarded
        Of several levels those that are guaranteed, each by a budget of its own; by default all.
    risk
        Another loss and level to hold instead of coverage, or several.
    recentre
        Whether intervals may leave the centre of the forecast.
    period
        The season in rows, such as 24; 0 is none. By default one is found, or none is used.
    features, categories
        What is known of each row when it is predicted, by name, and the values of those that are no
        quantities: see `correction.Intervals` and `docs/features.md`.
    support
        The values that y can take, such as (0, inf): the full set. By default an end that at least
        five actual values hit and none passed cuts the intervals, and never the unlimited ones;
        None leaves them as they are.
    whole_numbers
        Whether y is a count: intervals then end on whole numbers.
    limit
        How much loss above the level is allowed before the full set is shown.
    steadiness
        How fast the sets widen with the account; smaller is narrower and less steady.
    two_sided
        Whether to keep the coverage from above too: nothing is forgotten, sets may be empty, and
        labels must come before the next prediction.

    Examples
    --------
    >>> import setpoint as sp
    >>> stream = sp.Stream(sp.intervals(coverage=0.9))
    >>> stream.predict((10.0, 14.0))
    Interval(10.0, 14.0)
    >>> stream.update(15.0)
    1.0
    >>> stream = sp.Stream(sp.intervals(coverage=[0.5, 0.9]))
    >>> stream.predict((10.0, 14.0))[0.9]
    Interval(10.0, 14.0)
    """
    account = Account(limit, steadiness, two_sided=two_sided)
    line, options = _learning(support, recentre, period, features, categories, whole_numbers)
    if isinstance(coverage, Iterable):
        if risk is not None:
            raise InputError(f"several levels hold coverage, got coverage={coverage} and a risk")
        return _fanned(Fan(tuple(coverage), (), _levels(guarded), line), account, options)
    if guarded is not None:
        raise InputError(f"guarded is for several levels, got coverage={coverage!r}")
    budget = _budget(risk, miss_level(coverage), account)
    loss, level = budget[0].loss, miss_level(coverage)
    shape = loss.missed(budget[0].level) if isinstance(loss, Misses) else level
    return Controller(Multiplied(line), budget, correction=Intervals(shape, **options))


def quantiles(
    levels: Iterable[float],
    *,
    guarded: Iterable[float] | None = None,
    recentre: bool = True,
    period: int | None = None,
    features: Iterable[str] = (),
    categories: Mapping[str, Iterable[Any]] | None = None,
    support: tuple[float, float] | str | None = "learnt",
    whole_numbers: bool = False,
    limit: float = 10.0,
    steadiness: float = 0.15,
) -> Controller:
    """Quantiles that adjust themselves and never cross: `Bands`, and with them a distribution.

    A guarded quantile has its own budget: at 0.95 there are never more than 10.9 actual values
    above it beyond the 5 % allowed. Quantiles below 0.5 are guarded from below.

    Parameters
    ----------
    levels
        Such as [0.05, 0.5, 0.95], or [0.95, 0.99] for service levels.
    guarded
        The levels that are guaranteed; by default all. The others are predicted, and measured.
    recentre, period, features, categories, support, whole_numbers, limit, steadiness
        As for `intervals`. Forecasts are the same too: a point, or the two ends of an interval that
        reaches as far as the outermost quantile.

    Examples
    --------
    >>> import setpoint as sp
    >>> stream = sp.Stream(sp.quantiles([0.05, 0.5, 0.95], guarded=[0.95]))
    >>> shown = stream.predict((10.0, 14.0))
    >>> shown[0.5], shown[0.95]
    (12.0, 14.0)
    >>> stream.update(15.0)  # the loss of each level, guarded ones first
    (1.0, 0.0, 1.0)
    """
    line, options = _learning(support, recentre, period, features, categories, whole_numbers)
    fan = Fan((), rising(levels, "levels"), _levels(guarded), line)
    return _fanned(fan, Account(limit, steadiness), options)


def _learning(
    support: Any, recentre: bool, period: int | None, features: Iterable[str], categories: Any,
    whole_numbers: bool,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """The values y can take, and the options of the correction, of what a preset was given."""
    if isinstance(support, str) and support != "learnt":
        raise InputError(f'support must be a pair of numbers, "learnt" or None, got {support!r}')
    options = {
        "recentre": recentre, "period": period, "learns_support": support == "learnt",
        "grid": float(whole_numbers), "features": features, "categories": categories or (),
    }  # fmt: skip
    return (-inf, inf) if support is None or isinstance(support, str) else support, options


def _levels(guarded: Iterable[float] | None) -> tuple[float, ...]:
    """The guarded levels of a fan; none given are all."""
    if guarded is None:
        return ()
    levels = rising(guarded, "guarded")
    if not levels:
        raise InputError("guarded must name at least one level, or be left out for all, got none")
    return levels


def _fanned(fan: Fan, account: Account, options: Mapping[str, Any]) -> Controller:
    """A controller of several levels with an account for each that is guarded."""
    share = 2.0 if fan.pairs else 1.0
    each = list(enumerate(zip(fan.free, fan.tails, strict=True)))
    risks = [
        Risk(Miscoverage(), round(share * tail, 12), Measure() if free else account, 0.0, member=k)
        for k, (free, tail) in sorted(each, key=lambda each: (each[1], -each[0]))
    ]  # the widest guarded one first
    stage = Intervals(fan.widest, coverage=fan.coverage, quantile=fan.quantile, **options)
    return Controller(fan, risks, correction=stage)


def around(coverage: float = 0.9, *, limit: float = 20.0, steadiness: float = 0.15) -> Controller:
    """A budget around the sets of any other rule: hand its intervals over as predictions.

    They are made longer or shorter about their middle: there are never more than 20.9 misses
    beyond the allowance.

    >>> import setpoint as sp
    >>> stream = sp.Stream(sp.presets.around(0.9))
    >>> stream.predict((10.0, 14.0))  # as another rule shows it
    Interval(10.0, 14.0)
    """
    budget = _budget(None, miss_level(coverage), Account(limit, steadiness))
    return Controller(Multiplied(), budget)


def start_from(
    controller: Controller,
    states: State | Iterable[State] | Mapping[Any, State],
    weight: float = 10.0,
) -> Controller:
    """A copy of the controller whose new streams start with what others have learnt.

    It helps short series whose forecasts have a width. Scales stay each stream's own, and what is
    guaranteed stays as it is.

    Parameters
    ----------
    controller
        One with a correction, such as `intervals()`.
    states
        Those of other streams under such a controller: `trace.states`, or a few of a fleet.
    weight
        How many labels the start counts.

    Examples
    --------
    >>> import setpoint as sp
    >>> import numpy as np
    >>> rng, days = np.random.default_rng(0), np.repeat(np.arange(40), 50)
    >>> scale = 10.0 ** rng.uniform(-3, 3, 40)[days]
    >>> forecast = {"lower": -scale, "upper": scale}
    >>> past = sp.Tape.from_arrays(forecast, scale * (1.0 + rng.normal(size=2000)), series=days)
    >>> trace = sp.replay(sp.intervals(), past)
    >>> stream = sp.Stream(sp.start_from(sp.intervals(), trace.states))
    >>> interval = stream.predict((-5.0, 5.0))  # forecasts of this kind are too low
    >>> bool(interval.upper > 10.0)
    True
    """
    stage = controller.correction
    if not isinstance(stage, Intervals):
        raise InputError(f"a start needs a controller with correction.Intervals, got {stage!r}")
    if isinstance(states, State):
        states = [states]
    values = list(states.values() if isinstance(states, Mapping) else states)
    for state in values:
        if state.terms != controller.terms:
            raise InputError(
                "a start needs states under the same controller, and these were made by one with "
                "other parts or levels"
            )
    some = values[:: -(-len(values) // 2000) or 1]
    return replace(controller, correction=replace(stage, prior=stage.prior_of(some, weight)))


def paths(
    horizon: int,
    coverage: float | Sequence[float] = 0.9,
    *,
    totals: int | Iterable[int] = (),
    maximum: bool = False,
    minimum: bool = False,
    every: int | None = None,
    period: int | None = None,
    support: tuple[float, float] | None = None,
    limit: float = 10.0,
) -> Controller:
    """Self-adjusting bands for whole paths, such as tomorrow's 24 hours.

    A path is missed if one of its steps lies outside. With coverage 0.9 there are never more than
    10.9 missed paths beyond the allowance, while none waits; the same goes for each total, the
    maximum and the minimum.

    Parameters
    ----------
    horizon
        The steps of a path.
    coverage
        The share of paths that lie wholly inside, and of totals and extremes inside theirs, or
        several, as in [0.5, 0.9]: sets that lie within each other.
    totals
        Of how many first steps a total is shown, such as (6, 24).
    maximum, minimum
        Whether the largest value of a path has an interval, and the smallest.
    every
        How many steps pass from one path to the next, by default the horizon.
    period
        A season in steps that is longer than a path, 168 for hours of a week; 0 is none. By default
        it is seven paths.
    support
        The values that every step can take, such as (0, inf).
    limit
        As for `intervals`, for each account.

    Examples
    --------
    >>> import setpoint as sp
    >>> stream = sp.Stream(sp.paths(3, totals=[3], maximum=True))
    >>> band = stream.predict([(9.0, 11.0), (10.0, 12.0), (11.0, 13.0)], id="monday")
    >>> stream.update(10.0, id="monday", step=1), stream.update(11.5, id="monday", step=2)
    (None, None)
    >>> stream.update(11.0, id="monday", step=3)  # the path, its total, its maximum
    (0.0, 0.0, 0.0)
    """
    steps: Any = (totals,) if isinstance(totals, int) else totals
    several = rising(coverage, "coverage") if isinstance(coverage, Iterable) else ()
    line = (-inf, inf) if support is None else support
    sets = Paths(horizon, tuple(steps), maximum, minimum, line, several)
    listed: Any = several or (coverage,)
    levels = [miss_level(own) for own in listed]
    usual = min(min(levels, key=lambda level: abs(level - 0.1)), 0.4)  # of the steps, for all
    gains = (0.08, *(0.15 for _ in sets.functionals))
    risks = [
        Risk(Miscoverage(), level, Account(limit, gain), 0.0, member=place)
        for place, (level, gain) in enumerate(product(levels, gains))
    ]
    return Controller(sets, risks, correction=PathsCorrection(usual, every, period))


def label_sets(
    coverage: float = 0.9,
    *,
    sets: Family | None = None,
    risk: Risk | Sequence[Risk] | None = None,
    limit: float = 10.0,
    steadiness: float | None = None,
    never_empty: bool = False,
) -> Controller:
    """Label sets that adjust themselves: no step size, no past data, no number of classes.

    A correction learns how far the probabilities can be believed, and which classes are missed too
    often; a budget keeps the losses, as for `intervals`. Other sets with one λ, images too, have
    `stretches.Tracking` in place of the correction.

    Parameters
    ----------
    coverage
        The share of labels that the sets are to hold.
    sets
        The family, by default `sets.Threshold()`, or `sets.Multilabel()` where the risk is
        `losses.FalseNegatives`. Name it to name the classes, and for images.
    risk, limit, steadiness
        As for `intervals`. By default 0.4 where scores are ranked, 0.15 for other sets.
    never_empty
        Whether every set has a label: the likeliest, once the probabilities are corrected. What is
        guaranteed stays: more labels never make more misses.

    Examples
    --------
    >>> import setpoint as sp
    >>> stream = sp.Stream(sp.label_sets(coverage=0.9))
    >>> len(stream.predict([0.7, 0.2, 0.1]))
    3
    """
    budget = _budget(risk, miss_level(coverage), Account())
    losses = [held.loss for held in budget]
    family: Any = sets
    if sets is None:
        several = any(isinstance(loss, FalseNegatives) for loss in losses)
        family = Multilabel() if several else Threshold()
    if never_empty:
        family = _never_empty(family)
    ranked = isinstance(family, Classed) and all(
        isinstance(loss, Misses) or (isinstance(loss, Calms) and family.several) for loss in losses
    )
    gain = (0.4 if ranked else 0.15) if steadiness is None else steadiness
    account = Account(limit, gain, share=2.0, ease=5.0, ahead=2.0, wall=2)
    budget = tuple([replace(held, step=account) for held in budget])
    if not ranked:
        return Controller(family, budget, Tracking())
    loss, level = losses[0], budget[0].level
    level = loss.missed(level) if isinstance(loss, Misses) else level
    return Controller(family, budget, correction=Labels(level, family.several))


def _never_empty(family: Any) -> Any:
    """A family of labels with the likeliest one in every set."""
    if isinstance(family, ScoreWindow):
        return replace(family, scores=_never_empty(family.scores))
    if not isinstance(family, Threshold | Cumulative | Multilabel):
        raise InputError(f"never_empty is for families of labels, got {family!r}")
    return replace(family, never_empty=True)


def _budget(risk: Risk | Sequence[Risk] | None, level: float, account: Account) -> tuple[Risk, ...]:
    """Risks whose θ is the account of their losses."""
    given: Any = Risk(Miscoverage(), level) if risk is None else risk
    risks = (given,) if isinstance(given, Risk) else given
    if not (isinstance(risks, Sequence) and risks and all(isinstance(r, Risk) for r in risks)):
        raise InputError(f"risk must be a Risk or several, got {risk!r}")
    for held in risks:
        if held.bounds is not None:
            raise InputError(
                f"a budget has bounds of its own, got a risk with bounds={held.bounds}: leave them "
                "out, and say limit="
            )
    return tuple(replace(held, step=account, start=0.0) for held in risks)
