"""A correction for intervals and points: it learns what is wrong with a forecast.

What is learnt, and how, is in `setpoint.correction.rules`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, inf, log, nan
from typing import Any, NamedTuple

import numpy as np

from setpoint._check import finite, number, positive, whole
from setpoint.correction import rules
from setpoint.correction.rules import Base, Further, Memory
from setpoint.errors import InputError, PredictionError
from setpoint.predictions import Phased, Spread
from setpoint.sets.family import names_of
from setpoint.sets.intervals import Scale, Widen

__all__ = ["Intervals", "Learnt"]

Floats = tuple[float, ...]


class Learnt(NamedTuple):
    """What a correction knows now, for people; lengths are in units of y.

    `labels` counts those it has learnt from. `bias` is the error it expects, y minus the middle of
    the forecast, by which it moves the centre. `scale` is the mean size of the rest. `below` and
    `above` are how far its own ends lie from its own centre, before the account widens or narrows
    them. `given` is the share of the ends as they were given in what is shown, from 0 to 1.
    `period` is the season in rows, 0 without one, and `season` how far the mean errors of its
    phases lie apart: their mean distance from their mean.
    """

    labels: int
    bias: float
    scale: float
    below: float
    above: float
    given: float
    period: int
    season: float


@dataclass(frozen=True, slots=True)
class Intervals:
    """What past errors of a forecast teach: a centre and two sides for `sets.Multiplied`.

    It takes `Quantiles` or any pair (lower, upper), a point forecast, and `Spread`, which is read
    as the ends centre − low and centre + high. It needs no past data and has no unit: y and the
    forecast may be in any. The centre may leave the one that was given, because the rule forecasts
    the forecast's error; with `recentre=False` it stays. Ends that cross are taken the other way
    round, and a centre outside the support of y is moved to its end, so that the set at a finite λ
    is never empty. `learnt(state)` says what it has learnt.

    Parameters
    ----------
    level
        The share of actual values that both ends together may miss at λ = 0.
    recentre
        Whether the centre may move with the expected error. Without it the interval keeps the
        given centre, though not always in its middle, and is much wider on a biased or drifting
        forecast.
    means
        How many averages of the error the regression sees, 1 or 2. Two are a little narrower and
        a little slower.
    period
        The season in rows, 24 for hourly data with a daily one; 0 is none.
        `presets.find_period` finds one in past errors. Rows are counted from 0; where some can be
        missing, say the phase of each: `predictions.Phased` live, a column `phase` in tapes and
        arrays.
    slow, medium, fast
        The rates of its averages. All rates begin as 1/n.
    prior
        What new streams know, as `prior_of` takes it from others; by default nothing. It serves
        forecasts with a width.
    ridge, wild, step, far, trust
        The other numbers of its rules, without unit; see `setpoint.correction.rules`.

    Examples
    --------
    >>> stage = Intervals()
    >>> params, memory = (*stage.params, -inf, inf), stage.init()
    >>> memory, base = stage.predict(params, memory, [], (10.0, 14.0), 0.0)
    >>> base[:3]  # nothing is known yet: the ends as they were given
    (12.0, 2.0, 2.0)
    >>> for y in (15.0, 15.5, 14.5, 15.2):  # the forecast is 3 too low
    ...     memory, base = stage.predict(params, memory, [], (10.0, 14.0), 0.0)
    ...     memory = stage.learn(params, memory, [], base, y)
    >>> memory, base = stage.predict(params, memory, [], (10.0, 14.0), 0.0)
    >>> round(Base(*base).centre, 1)
    14.1
    """

    level: float = 0.1
    recentre: bool = True
    means: int = 1
    period: int = 0
    slow: float = 0.007
    medium: float = 0.15
    fast: float = 0.3
    ridge: float = 0.1
    wild: float = 15.0
    step: float = 0.05
    trust: float = 50.0
    far: float = 4.0
    prior: tuple[float, ...] = ()

    gives = ("centre", "low", "high")

    def __post_init__(self) -> None:
        level = positive(self.level, "Intervals.level")
        if level >= 1.0:
            raise InputError(f"Intervals.level must lie between 0 and 1, got {level}")
        object.__setattr__(self, "level", level)
        if whole(self.means, "Intervals.means", 1) > 2:
            raise InputError(f"Intervals.means must be 1 or 2, got {self.means}")
        object.__setattr__(self, "period", whole(self.period, "Intervals.period", 0))
        if self.period == 1 or self.period > _LONGEST:
            raise InputError(
                f"Intervals.period must be 0 or lie between 2 and {_LONGEST:,}, got {self.period}"
            )
        for name in ("slow", "medium", "fast", "ridge", "wild", "step", "far"):
            object.__setattr__(self, name, positive(getattr(self, name), f"Intervals.{name}"))
        object.__setattr__(self, "trust", finite(self.trust, "Intervals.trust"))
        prior = tuple(finite(value, "Intervals.prior") for value in self.prior)
        if prior and (len(prior) != len(Memory._fields) or min(_unitless(prior)) <= 0.0):
            raise InputError(
                "Intervals.prior must be empty or what `Intervals.prior_of` returns, "
                f"got {len(prior)} numbers"
            )
        object.__setattr__(self, "prior", prior)

    @property
    def _further(self) -> bool:
        """Whether there is more to remember than an error regression on three features needs."""
        return self.means == 2 or self.period > 0

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the numbers in a prediction."""
        return ("lower", "upper", "phase") if self.period else ("lower", "upper")

    @property
    def sound(self) -> Any:
        """Whether the numbers are a prediction."""
        return rules.row_sound if self.period else rules.ends_sound

    @property
    def predict(self) -> Any:
        """The rule that makes the base of a row."""
        if self.period:
            return rules.predict_seasonal
        return rules.predict_further if self._further else rules.predict

    @property
    def learn(self) -> Any:
        """The rule that learns from a label."""
        if self.period:
            return rules.learn_seasonal
        return rules.learn_further if self._further else rules.learn

    @property
    def params(self) -> Floats:
        """The numbers of the rules, before the support of y."""
        return (
            self.level, float(self.means == 2), float(self.recentre), self.slow, self.medium,
            self.fast, self.ridge, self.wild, self.step, self.trust, self.far, float(self.period),
        )  # fmt: skip

    def init(self) -> Floats:
        """Nothing is known; the tails are those of errors that fall off exponentially."""
        tail = -log(self.level)
        first = self.prior or tuple(Memory(width=tail, low_tail=tail, high_tail=tail))
        if not self._further:
            return first
        return first + tuple(Further())[: -_CELL if self.period else None]

    @property
    def table(self) -> tuple[int, int]:
        """The rows and columns of its table: a cell for each phase of the season."""
        return self.period, _CELL

    def prior_of(self, states: Iterable[Any], weight: float = 10.0) -> Floats:
        """What states of other streams have in common, for `prior`: their median, without unit.

        It counts as many labels as `weight` says. Streams of point forecasts have none: what the
        first error is worth, only a given width can tell.
        """
        memories = np.array([state.memory[: len(Memory._fields)] for state in states])
        known = Memory(*memories.T) if len(memories) else None
        useful = known is not None and (known.labels > 0) & (known.size > 0) & (known.width > 0)
        if not np.any(useful):
            raise InputError(
                "a prior needs states of streams that saw labels of forecasts with a width, got "
                f"{len(memories):,} states and none of them"
            )
        memories = memories[useful]
        size = memories[:, Memory._fields.index("size")].copy()
        for place, name in enumerate(Memory._fields):
            memories[:, place] /= size ** _POWERS.get(name, 2 if name[1:].isdigit() else 0)
        middle = Memory(*np.median(memories, axis=0).tolist())
        return tuple(middle._replace(
            waiting=0.0, labels=0.0, head=positive(weight, "weight"), middle=0.0,
            error=middle.mean, size=1.0, recent_size=1.0,
        ))  # fmt: skip

    def learnt(self, state: Any) -> Learnt:
        """What is known in a state, such as `stream.state`.

        `bias` and what follows hold for a next forecast that has not moved and is as wide as usual.

        >>> import setpoint as sp
        >>> stream = sp.Stream(sp.intervals())
        >>> for y in (15.0, 15.5, 14.5, 15.2):  # the forecast is 3 too low
        ...     _ = stream.predict((10.0, 14.0)), stream.update(y)
        >>> learnt = stream.controller.correction.learnt(stream.state)
        >>> learnt.labels, round(learnt.bias, 1)
        (4, 3.0)
        """
        known = Memory(*state.memory[:30])
        row = (known.middle - known.width, known.middle + known.width, nan)
        params = (*self.params, -inf, inf)
        _, numbers = self.predict(params, state.memory, state.table, row, 0.0)
        base = Base(*numbers)
        share = 1.0 / (1.0 + exp(self.trust * known.regret)) if self.trust > 0.0 else 1.0
        errors = [error for error, _, labels in state.table if labels]
        mean = sum(errors) / len(errors) if errors else 0.0
        return Learnt(
            labels=int(known.labels),
            bias=base.expected,
            scale=base.scale,
            below=base.scale * known.low_tail,
            above=base.scale * known.high_tail,
            given=1.0 - share,
            period=self.period,
            season=sum(abs(e - mean) for e in errors) / len(errors) if errors else 0.0,
        )

    def read(self, prediction: Any) -> Floats:
        """The prediction as its ends, within ±1e150, and its phase if there is a season."""
        kind = type(prediction)
        if (kind is tuple or kind is list) and len(prediction) == 2:
            lower, upper = prediction
            plain = type(lower) is float and type(upper) is float
            if plain and -1e150 < lower < 1e150 and -1e150 < upper < 1e150:
                return (lower, upper, nan) if self.period else (lower, upper)
        phase: Any = nan
        if type(prediction) is Phased:
            prediction, phase = prediction.prediction, prediction.phase
        elif type(prediction) is tuple and len(prediction) == 3:
            raise PredictionError(
                f"three numbers can mean two things, got {prediction}: say Spread(centre, low, "
                "high), or Phased((lower, upper), phase) where there is a period"
            )
        elif self.period and "phase" in names_of(prediction):
            phase = prediction["phase"]
            prediction = {name: prediction[name] for name in names_of(prediction) - {"phase"}}
        if type(prediction) is Spread or names_of(prediction) == set(_SPREAD.columns):
            centre, low, high = _SPREAD.read(prediction)
            ends = centre - low, centre + high
        else:
            ends = _ENDS.read(prediction)
        if not rules.ends_sound(ends):
            raise PredictionError(f"a prediction must lie within ±1e150, got {ends}")
        phase = number(phase, "a phase", PredictionError)
        if not self.period:
            if phase == phase:
                raise PredictionError(f"a phase needs intervals(period=…), got {phase}")
            return ends
        row = (*ends, phase)
        if not rules.row_sound(row):
            raise PredictionError(f"a phase must be a whole number within ±1e9, got {phase}")
        return row

    def forecast(self, base: Floats) -> float:
        """The middle as the model gave it, before it was corrected."""
        return base[3]

    @property
    def forms(self) -> tuple[tuple[str, ...], ...]:
        """The names of the columns in which predictions come; a phase may be left out."""
        forms = (_ENDS.columns, _SPREAD.columns)
        if not self.period:
            return forms
        phased = tuple((*form, "phase") for form in (*forms, ("point",)))
        return (*phased, *forms)

    def arranged(self, names: tuple[str, ...], columns: Sequence[Any]) -> tuple[Any, ...]:
        """Arrays in one of the forms as `columns` names them; a phase that is not there is NaN."""
        by_name = dict(zip(names, columns, strict=True))
        if "centre" in by_name:
            centre = by_name["centre"]
            ends = (centre - by_name["low"], centre + by_name["high"])
        else:
            ends = by_name.get("lower", columns[0]), by_name.get("upper", columns[0])
        if not self.period:
            return ends
        phase = by_name.get("phase", np.full(ends[0].shape, nan))
        return (*ends, phase.astype(ends[0].dtype, copy=False))


_ENDS, _SPREAD = Widen(), Scale()
_POWERS = {
    **dict.fromkeys(("error", "mean", "middle", "size", "recent_size", "width", "movement"), 1),
    **dict.fromkeys(("w0", "w1", "w2", "k0", "k1", "k2"), 0),
}
"""With which power of the unit of y the numbers of a memory go, where it is not 0, or 2 for a sum
of squares."""
_LONGEST = 1_000_000
_CELL = 3


def _unitless(prior: Floats) -> tuple[float, ...]:
    """What must be positive in a prior."""
    memory = Memory(*prior)
    return memory.head, memory.size, memory.recent_size, memory.width, memory.movement
