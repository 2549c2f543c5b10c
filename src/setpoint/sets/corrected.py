"""Intervals that learn from the forecast's own errors: centre ∓ half·e^λ.

What is learnt, and how, is in `setpoint.sets.correction`. It cannot cost anything in the
guarantee, which speaks of the account of losses alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, inf, log, nan
from typing import Any, NamedTuple

import numpy as np

from setpoint._check import finite, number, positive, whole
from setpoint.errors import InputError, PredictionError
from setpoint.parts import ours
from setpoint.predictions import Phased, Spread
from setpoint.sets import correction
from setpoint.sets.correction import Further, Memory, Reading
from setpoint.sets.intervals import _LINE, Scale, Widen, _Ends, scale_sound

__all__ = [
    "Corrected", "Learnt", "Multiplied", "corrected", "corrected_critical", "ends_sound",
    "row_sound",
]  # fmt: skip

Floats = tuple[float, ...]


class Learnt(NamedTuple):
    """What a learning family knows now, for people; lengths are in units of y.

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


def corrected(reading: Floats, lam: float) -> tuple[float, float]:
    """Ends of [centre − left·e^λ, centre + right·e^λ]."""
    centre, left, right = reading[0], reading[1], reading[2]
    factor = exp(lam if lam < 700.0 else 700.0)
    lower = centre - left * factor if left < inf else -inf
    upper = centre + right * factor if right < inf else inf
    return lower, upper


def corrected_critical(reading: Floats, y: float) -> float:
    """The λ at which an end reaches y; −inf at the centre, +inf where no λ reaches it."""
    distance = y - reading[0]
    reach = reading[2] if distance > 0.0 else reading[1]
    distance = distance if distance > 0.0 else -distance
    if distance == 0.0:
        return -inf
    if reach <= 0.0:
        return inf
    ratio = distance / reach
    if ratio <= 0.0:
        return -inf
    lam = log(ratio)
    return lam + 1e-15 * (2.0 + abs(lam))  # so that rounding does not leave y outside


def ends_sound(columns: Floats) -> bool:
    """Whether the two ends are numbers whose squares are still numbers."""
    return (-1e150 < columns[0] < 1e150) & (-1e150 < columns[1] < 1e150)


def row_sound(columns: Floats) -> bool:
    """Whether the ends are such numbers and the phase is a whole number, or NaN for the next."""
    phase = columns[2]
    return ends_sound(columns) & ((phase != phase) | ((-1e9 < phase < 1e9) & (phase % 1.0 == 0.0)))


@ours
@dataclass(frozen=True, slots=True)
class Corrected(_Ends):
    """Intervals from a forecast and from what its past errors teach: [c − h·e^λ, c + h·e^λ].

    It takes `Quantiles` or any pair (lower, upper), a point forecast, and `Spread`, which is read
    as the ends centre − low and centre + high. It needs no past data and has no unit: y and the
    forecast may be in any. The interval may leave the centre that was given, because the family
    forecasts the forecast's error; with `recentre=False` it always holds that centre.
    Ends that cross are taken the other way round, and a centre outside the support is moved to its
    end, so the set at a finite λ is never empty. `learnt(state)` says what it has learnt.

    Parameters
    ----------
    level
        The share of labels that both ends together may miss at λ = 0.
    recentre
        Whether the centre may move with the expected error. Without it the interval holds the
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
    support
        The values y can take: the full set. Intervals are cut to it, and a label outside it is an
        error.
    slow, medium, fast
        The rates of its averages. All rates begin as 1/n.
    prior
        What new streams know, as `prior_of` takes it from others; by default nothing. It serves
        forecasts with a width.
    ridge, wild, step, far, trust
        The other numbers of its rules, without unit; see `setpoint.sets.correction`.

    Examples
    --------
    >>> family = Corrected()
    >>> reading = family.prepare(family.params, family.init(), (10.0, 14.0))
    >>> family.at(reading, 0.0)
    Interval(10.0, 14.0)
    >>> memory = family.init()
    >>> for y in (15.0, 15.5, 14.5, 15.2):  # the forecast is 3 too low
    ...     reading = family.prepare(family.params, memory, (10.0, 14.0))
    ...     memory = family.observe(family.params, memory, reading, y)
    >>> reading = family.prepare(family.params, memory, (10.0, 14.0))
    >>> round(Reading(*reading).centre, 1)
    14.1
    """

    support: tuple[float, float] = _LINE
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

    cell = (0.0, 0.0, 0.0)
    ends = staticmethod(corrected)
    score = staticmethod(corrected_critical)
    heed = staticmethod(correction.heed)
    phase = staticmethod(correction.phase)
    turn = staticmethod(correction.turn)

    def __post_init__(self) -> None:
        _Ends.__post_init__(self)
        level = positive(self.level, "Corrected.level")
        if level >= 1.0:
            raise InputError(f"Corrected.level must lie between 0 and 1, got {level}")
        object.__setattr__(self, "level", level)
        if whole(self.means, "Corrected.means", 1) > 2:
            raise InputError(f"Corrected.means must be 1 or 2, got {self.means}")
        object.__setattr__(self, "period", whole(self.period, "Corrected.period", 0))
        if self.period == 1 or self.period > _LONGEST:
            raise InputError(
                f"Corrected.period must be 0 or lie between 2 and {_LONGEST:,}, got {self.period}"
            )
        for name in ("slow", "medium", "fast", "ridge", "wild", "step", "far"):
            object.__setattr__(self, name, positive(getattr(self, name), f"Corrected.{name}"))
        object.__setattr__(self, "trust", finite(self.trust, "Corrected.trust"))
        prior = tuple(finite(value, "Corrected.prior") for value in self.prior)
        if prior and (len(prior) != len(Memory._fields) or min(_unitless(prior)) <= 0.0):
            raise InputError(
                "Corrected.prior must be empty or what `Corrected.prior_of` returns, "
                f"got {len(prior)} numbers"
            )
        object.__setattr__(self, "prior", prior)

    @property
    def _further(self) -> bool:
        """Whether there is more to remember than an error regression on three features needs."""
        return self.means == 2 or self.period > 0

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the numbers in a prediction."""
        return ("lower", "upper", "phase") if self.period else ("lower", "upper")

    @property
    def sound(self) -> Any:
        """Whether the numbers are a prediction."""
        return row_sound if self.period else ends_sound

    @property
    def prepare(self) -> Any:
        """The rule that makes the reading of a row."""
        if self.period:
            return correction.prepare_seasonal
        return correction.prepare_further if self._further else correction.prepare

    @property
    def observe(self) -> Any:
        """The rule that learns from a label."""
        return correction.observe_further if self._further else correction.observe

    @property
    def params(self) -> Floats:
        first = (
            self.level, float(self.means == 2), float(self.recentre), self.slow, self.medium,
            self.fast, self.ridge, self.wild, self.step, self.trust, self.far, *self.support,
        )  # fmt: skip
        return (*first, float(self.period)) if self._further else first

    def init(self) -> Floats:
        """Nothing is known; the tails are those of errors that fall off exponentially.

        With a season the cell of a phase is not here but in a table, and begins as `cell`.
        """
        tail = -log(self.level)
        first = self.prior or tuple(Memory(width=tail, low_tail=tail, high_tail=tail))
        if not self._further:
            return first
        return first + tuple(Further())[: -len(self.cell) if self.period else None]

    def prior_of(self, states: Iterable[Any], weight: float = 10.0) -> Floats:
        """What states of other streams have in common, for `prior`: their median, without unit.

        It counts as many labels as `weight` says. Streams of point forecasts have none: what the
        first error is worth, only a given width can tell.
        """
        memories = np.array([state.family[: len(Memory._fields)] for state in states])
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
        >>> learnt = stream.controller.sets.learnt(stream.state)
        >>> learnt.labels, round(learnt.bias, 1)
        (4, 3.0)
        """
        memory, cells = state.family, state.cells
        known = Memory(*memory[:30])
        row = (known.middle - known.width, known.middle + known.width, nan)
        if self.period:
            memory += cells[int(self.phase(self.params, memory, row))]
        reading = Reading(*self.prepare(self.params, memory, row))
        share = 1.0 / (1.0 + exp(self.trust * known.regret)) if self.trust > 0.0 else 1.0
        errors = [error for error, _, labels in cells if labels]
        mean = sum(errors) / len(errors) if errors else 0.0
        return Learnt(
            labels=int(known.labels),
            bias=reading.expected,
            scale=reading.scale,
            below=reading.scale * known.low_tail,
            above=reading.scale * known.high_tail,
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
        elif self.period and "phase" in _names(prediction):
            phase = prediction["phase"]
            prediction = {name: prediction[name] for name in _names(prediction) - {"phase"}}
        if type(prediction) is Spread or _names(prediction) == set(_SPREAD.columns):
            centre, low, high = _SPREAD.read(prediction)
            ends = centre - low, centre + high
        else:
            ends = _ENDS.read(prediction)
        if not ends_sound(ends):
            raise PredictionError(f"a prediction must lie within ±1e150, got {ends}")
        phase = number(phase, "a phase", PredictionError)
        if not self.period:
            if phase == phase:
                raise PredictionError(f"a phase needs Corrected(period=…), got {phase}")
            return ends
        row = (*ends, phase)
        if not row_sound(row):
            raise PredictionError(f"a phase must be a whole number within ±1e9, got {phase}")
        return row

    def forecast(self, prediction: Floats) -> float:
        """The middle as the model gave it, before it was corrected."""
        return prediction[3]

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


@ours
@dataclass(frozen=True, slots=True)
class Multiplied(_Ends):
    """Sets that another rule made, made longer or shorter: [centre − low·e^λ, centre + high·e^λ].

    It takes a pair (lower, upper), whose centre is its middle, or `Spread`. With `steps.Account`
    and `stretches.Barrier` it puts a budget around any other rule; `presets.around` is that.

    Parameters
    ----------
    support
        As for `Widen`.

    Examples
    --------
    >>> Multiplied().at(Multiplied().read((10.0, 14.0)), 0.0)
    Interval(10.0, 14.0)
    """

    columns = ("centre", "low", "high")
    ends = staticmethod(corrected)
    score = staticmethod(corrected_critical)
    sound = staticmethod(scale_sound)
    forms = (("lower", "upper"), columns)

    def read(self, prediction: Any) -> Floats:
        """The prediction as its centre and its two sides."""
        three = isinstance(prediction, Sequence | np.ndarray) and np.shape(prediction) == (3,)
        if three or _names(prediction) == set(_SPREAD.columns):
            return _SPREAD.read(prediction)
        lower, upper = _ENDS.read(prediction)
        half = 0.5 * abs(upper - lower)
        return _SPREAD.read((0.5 * (lower + upper), half, half))

    def arranged(self, names: tuple[str, ...], columns: Sequence[Any]) -> tuple[Any, ...]:
        """Arrays in one of the forms as `columns` names them."""
        if names == self.columns:
            return tuple(columns)
        lower, upper = columns
        half = 0.5 * np.abs(upper - lower)
        return 0.5 * (lower + upper), half, half


_ENDS, _SPREAD = Widen(), Scale()
_POWERS = {
    **dict.fromkeys(("error", "mean", "middle", "size", "recent_size", "width", "movement"), 1),
    **dict.fromkeys(("w0", "w1", "w2", "k0", "k1", "k2"), 0),
}
"""With which power of the unit of y the numbers of a memory go, where it is not 0, or 2 for a sum
of squares."""
_LONGEST = 1_000_000


def _unitless(prior: Floats) -> tuple[float, ...]:
    """What must be positive in a prior."""
    memory = Memory(*prior)
    return memory.head, memory.size, memory.recent_size, memory.width, memory.movement


def _names(prediction: Any) -> set[Any]:
    """The names in a prediction that is a mapping or the row of a frame."""
    return set(prediction.keys()) if hasattr(prediction, "keys") else set()
