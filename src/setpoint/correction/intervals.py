"""A correction for intervals and points: it learns what is wrong with a forecast.

What is learnt, and how, is in `setpoint.correction.rules`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, inf, log, nan
from typing import Any, NamedTuple

import numpy as np

from setpoint._check import finite, number, positive, whole
from setpoint.correction import fans, rules
from setpoint.correction.explanation import Part
from setpoint.correction.rules import HITS, Base, Memory, base_size, table_at
from setpoint.correction.seasons import CANDIDATES, SCOUT, phases
from setpoint.correction.tables import CELL, KNOTS, TABLE
from setpoint.errors import InputError, PredictionError
from setpoint.predictions import Row, Spread
from setpoint.sets.family import names_of
from setpoint.sets.fan import Fan
from setpoint.sets.intervals import Scale, Widen

Floats = tuple[float, ...]


class Learnt(NamedTuple):
    """What a correction knows now, for people; lengths are in units of y.

    `labels` counts those it has learnt from. `bias` is the error it expects, y minus the middle of
    the forecast, by which it moves the centre. `scale` is the size of the rest that is expected
    next, and `usual` its mean. `below` and `above` are how far its own ends lie from its own
    centre, before the account widens or narrows them. `given` is the share of the ends as they were
    given in what is shown, from 0 to 1. `period` is the season in rows, 0 without one, and `season`
    how far the mean errors of its phases lie apart: their mean distance from their mean. `least`
    and `most` are the ends of the support that it found, None where it found none.
    """

    labels: int
    bias: float
    scale: float
    usual: float
    below: float
    above: float
    given: float
    period: int
    season: float
    least: float | None
    most: float | None


class Effect(NamedTuple):
    """What was learnt of a feature.

    At each of the `values` where labels were seen, `bias` is how far the feature moves what is
    expected of y, and `size` by which factor it changes the size of errors; `labels` is how many
    were seen there. A category's values are its own.
    """

    name: str
    values: tuple[Any, ...]
    bias: Floats
    size: Floats
    labels: Floats

    @property
    def largest(self) -> int:
        """Where errors are largest against the usual; if nowhere by a tenth, where smallest."""
        few = max(_FEW, 0.02 * sum(self.labels))
        seen = [place for place, labels in enumerate(self.labels) if labels >= few] or [0]
        place = max(seen, key=lambda place: self.size[place])
        return place if self.size[place] >= 1.1 else min(seen, key=lambda place: self.size[place])

    @property
    def tells(self) -> bool:
        """Whether the size of errors depends on it by a tenth at least."""
        seen = bool(self.values) and max(self.labels) >= _FEW
        return seen and abs(self.size[self.largest] - 1.0) >= 0.1

    def __str__(self) -> str:
        if not self.values or max(self.labels) < _FEW:
            return f"{self.name} has told nothing yet"
        place = self.largest
        share = abs(self.size[place] - 1.0)
        where = self.values[place]
        where = f"about {where:.2g}" if isinstance(where, float) else where
        if share < 0.01:
            return f"errors do not depend on {self.name}"
        kind = "larger" if self.size[place] > 1.0 else "smaller"
        return f"errors are {100.0 * share:.0f} % {kind} where {self.name} is {where}"


@dataclass(frozen=True, slots=True)
class Intervals:
    """Learns a centre and two half-widths from past errors, for `sets.Multiplied`.

    It takes `Quantiles` or any pair (lower, upper), a point forecast, and `Spread`, which is read
    as the ends centre − low and centre + high. It needs no past data and has no unit: y, the
    forecast and the features may be in any. The centre may leave the one that was given, because
    the rule forecasts the forecast's error; with `recentre=False` it stays. Ends that cross are
    taken the other way round, and a centre outside the support of y is moved to its end, so that
    the set at a finite λ is never empty. `learnt(state)` says what it has learnt, and
    `effects(state)` what it has learnt of each feature.

    Parameters
    ----------
    level
        The share of actual values that both ends together may miss at λ = 0.
    recentre
        Whether the centre may move with the expected error. Without it the interval keeps the
        given centre, though not always in its middle, and is much wider on a biased or drifting
        forecast.
    period
        The season in rows, 24 for hourly data with a daily one; 0 is none. By default it is found
        among 7, 12, 24, 48, 96, 144 and 168, or none is used. Rows are counted from 0; where some
        can be missing, say the place of each in time, in steps of time: `predictions.Row` live, a
        column `phase` in tapes and arrays.
    features
        The names of what is known of each row when it is predicted, such as the hour or the
        temperature: numbers in any unit, NaN where one is missing. A feature that tells nothing
        costs next to nothing.
    categories
        For features that are no quantities: the name of the feature, then its values, at most 17.
        A value that is not among them counts as missing.
    learns_support
        Whether an end that at least five labels hit exactly and none passed cuts the intervals.
    grid
        1 where actual values are whole numbers: intervals then end on whole numbers. 0 is none.
    prior
        What new streams know, as `prior_of` takes it from others; by default nothing.
    coverage, quantile
        Several levels at once, for a `sets.Fan` of the same: each end learns its own tail. The
        given ends are then those of `level`.

    Examples
    --------
    >>> stage = Intervals()
    >>> params, base = (*stage.params, -inf, inf), [0.0] * stage.base
    >>> memory, table = stage.init()
    >>> row = stage.read((10.0, 14.0))
    >>> memory = stage.predict(params, memory, table, [], row, 0.0, base)
    >>> base[:3]  # nothing is known yet: the ends as they were given
    [12.0, 2.0, 2.0]
    >>> for y in (15.0, 15.5, 14.5, 15.2):  # the forecast is 3 too low
    ...     memory = stage.predict(params, memory, table, [], row, 0.0, base)
    ...     memory = stage.learn(params, memory, table, [], base, y)
    >>> memory = stage.predict(params, memory, table, [], row, 0.0, base)
    >>> round(base[0], 1)
    14.1
    """

    level: float = 0.1
    recentre: bool = True
    period: int | None = None
    features: tuple[str, ...] = ()
    categories: tuple[tuple[Any, ...], ...] = ()
    learns_support: bool = True
    grid: float = 0.0
    prior: tuple[float, ...] = ()
    coverage: tuple[float, ...] = ()
    quantile: tuple[float, ...] = ()
    _fan: Fan | None = field(default=None, init=False, repr=False, compare=False)

    sound = staticmethod(rules.sound)

    def __post_init__(self) -> None:
        level = positive(self.level, "Intervals.level")
        if level >= 1.0:
            raise InputError(f"Intervals.level must lie between 0 and 1, got {level}")
        object.__setattr__(self, "level", level)
        if self.period is not None:
            object.__setattr__(self, "period", whole(self.period, "Intervals.period", 0))
            if self.period == 1 or self.period > _LONGEST:
                raise InputError(
                    f"Intervals.period must be 0 or lie between 2 and {_LONGEST:,}, "
                    f"got {self.period}"
                )
        self._check_features()
        grid = finite(self.grid, "Intervals.grid")
        if grid < 0.0:
            raise InputError(f"Intervals.grid must be at least 0, got {grid}")
        object.__setattr__(self, "grid", grid)
        prior = tuple(finite(value, "Intervals.prior") for value in self.prior)
        if prior and (len(prior) != _PRIOR or min(_unitless(prior)) <= 0.0):
            raise InputError(
                "Intervals.prior must be empty or what `Intervals.prior_of` returns, "
                f"got {len(prior)} numbers"
            )
        object.__setattr__(self, "prior", prior)
        if self.coverage or self.quantile:
            fan = Fan(self.coverage, self.quantile)
            object.__setattr__(self, "_fan", fan)
            object.__setattr__(self, "coverage", fan.coverage)
            object.__setattr__(self, "quantile", fan.quantile)

    @property
    def gives(self) -> tuple[str, ...]:
        """The numbers that the family of sets reads."""
        return _GIVES if self._fan is None else self._fan.columns

    @property
    def predict(self) -> Any:
        """The rule that makes a base."""
        return rules.predict if self._fan is None else fans.predict

    @property
    def learn(self) -> Any:
        """The rule that learns from a label."""
        return rules.learn if self._fan is None else fans.learn

    def _check_features(self) -> None:
        listed: Any = self.features
        if isinstance(listed, str) or not all(isinstance(name, str) for name in listed):
            raise InputError(f"Intervals.features must be a list of names, got {listed!r}")
        names = tuple(listed)
        object.__setattr__(self, "features", names)
        taken = {"lower", "upper", "point", "phase", "y", *_SPREAD.columns} & set(names)
        if taken or len(set(names)) < len(names):
            raise InputError(
                f"features need names of their own, each once, and not {sorted(taken) or 'twice'}, "
                f"got {list(names)}"
            )
        categories: Any = self.categories
        if isinstance(categories, Mapping):
            categories = [(name, *values) for name, values in categories.items()]
        listed = tuple(tuple(values) for values in categories)
        for name, *values in listed:
            if name not in names:
                raise InputError(f"the category {name!r} is not among the features {list(names)}")
            if not 1 <= len(values) <= KNOTS or len(set(values)) < len(values):
                raise InputError(
                    f"the category {name!r} needs 1 to {KNOTS} different values, got {values}"
                )
        object.__setattr__(self, "categories", listed)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the numbers in a prediction."""
        return ("lower", "upper", "phase", *self.features)

    @property
    def params(self) -> Floats:
        """The numbers of the rules, before the support of y."""
        listed = {values[0] for values in self.categories}
        return (
            self.level, float(self.recentre), float(self.learns_support), self.grid,
            -1.0 if self.period is None else float(self.period), float(len(self.features)),
            *(float(name in listed) for name in self.features), *self._tails,
        )  # fmt: skip

    @property
    def _tails(self) -> Floats:
        """Of several levels how many there are, whether in pairs, and the tails with their side."""
        if self._fan is None:
            return ()
        fan = self._fan
        signed = [-p if side < 0 else p for p, side in zip(fan.tails, fan.order, strict=True)]
        return (float(fan.members), float(fan.pairs), *signed)

    @property
    def begins(self) -> int:
        """Where in a base the numbers that the family of sets reads begin."""
        return 0 if self._fan is None else base_size(len(self.features), self.params[4])

    @property
    def base(self) -> int:
        """The number of values in a base."""
        own = base_size(len(self.features), self.params[4])
        return own if self._fan is None else own + fans.size_of(self._fan.members, self._fan.pairs)

    @property
    def annex(self) -> int:
        """The size of the tables of seasons, once there are any."""
        return phases(self.params[4])

    def init(self) -> tuple[Floats, list[float]]:
        """Nothing is known; the tails are those of errors that fall off exponentially."""
        tail, count = -log(self.level), len(self.features)
        sums, weights, scales, _, scouts = table_at(count)
        looks = SCOUT * len(CANDIDATES) + 1 if self.period is None else 0
        table = [0.0] * (scouts + looks)
        memory = Memory(width=tail, low_tail=tail, high_tail=tail, born=float(bool(self.period)))
        if self.prior:
            own, core = self.prior[: len(Memory._fields)], self.prior[len(Memory._fields) :]
            memory = Memory(*own)._replace(born=memory.born)
            table[:6] = core[:6]
            for at, part in ((sums, core[6:9]), (weights, core[9:12]), (scales, core[12:])):
                table[at : at + 3] = part
        if self._fan is not None:
            tails = [p for p in self._fan.tails for _ in range(1 + self._fan.pairs)]
            own_tails = [-log(2.0 * p) for p in tails]
            table += [*own_tails, *(own - tail for own in own_tails), *(0.0 for _ in tails)]
        return tuple(memory), table

    def prior_of(self, states: Iterable[Any], weight: float = 10.0) -> Floats:
        """The unit-free median of other streams' states, for `prior`.

        It counts as many labels as `weight` says. What the first error is worth, the width of the
        first forecast tells; of one without a width, how large errors were against forecasts.
        """
        sums, weights, scales, _, _ = table_at(len(self.features))
        numbers = np.array([
            [
                *state.memory, *state.table[:6], *state.table[sums : sums + 3],
                *state.table[weights : weights + 3], *state.table[scales : scales + 3],
            ]
            for state in states
        ])  # fmt: skip
        known = Memory(*numbers.T[: len(Memory._fields)]) if len(numbers) else None
        useful = known is not None and (known.labels > 1) & (known.size > 0)
        if not np.any(useful):
            raise InputError(
                "a prior needs states of streams that saw labels and errors, got "
                f"{len(numbers):,} states and none of them"
            )
        numbers = numbers[useful]
        size = numbers[:, Memory._fields.index("size")].copy()
        middles = np.abs(numbers[:, Memory._fields.index("middle")])
        relative = np.median(size[middles > 0.0] / middles[middles > 0.0]) if middles.any() else 0.0
        for place, name in enumerate(Memory._fields):
            numbers[:, place] /= size ** (name in _LENGTHS)
        first = len(Memory._fields)
        numbers[:, first : first + 9] /= (size * size)[:, None]
        middle = np.median(numbers, axis=0).tolist()
        start = Memory(*middle[:first])
        fresh = Memory()
        own = start._replace(
            **{name: getattr(fresh, name) for name in _OF_ITS_OWN},
            head=positive(weight, "weight"), error=start.mean, size=1.0, recent_size=1.0,
            width=start.width or -log(self.level), relative=float(relative),
        )  # fmt: skip
        return (*own, *middle[first:])

    def learnt(self, state: Any) -> Learnt:
        """Returns what a state has learnt, such as `stream.state`.

        `bias` and what follows hold for a next forecast that has not moved and is as wide as usual.

        >>> import setpoint as sp
        >>> stream = sp.Stream(sp.intervals())
        >>> for y in (15.0, 15.5, 14.5, 15.2):  # the forecast is 3 too low
        ...     _ = stream.predict((10.0, 14.0)), stream.update(y)
        >>> learnt = stream.controller.correction.learnt(stream.state)
        >>> learnt.labels, round(learnt.bias, 1)
        (4, 2.9)
        """
        known = Memory(*state.memory)
        row = (
            known.middle - known.width, known.middle + known.width, *[nan] * (len(self.columns) - 2)
        )  # fmt: skip
        params, numbers = (*self.params, -inf, inf), [0.0] * self.base
        self.predict(params, state.memory, state.table, state.annex, row, 0.0, numbers)
        base = Base(*numbers[: len(Base._fields)])
        period, errors = self._season(known, state.annex)
        mean = sum(errors) / len(errors) if errors else 0.0
        return Learnt(
            labels=int(known.labels),
            bias=base.expected,
            scale=base.scale,
            usual=known.size,
            below=base.scale * known.low_tail,
            above=base.scale * known.high_tail,
            # A point forecast gives no width that could count.
            given=1.0 - 1.0 / (1.0 + exp(50.0 * known.regret)) if known.width > 0.0 else 0.0,
            period=period,
            season=sum(abs(e - mean) for e in errors) / len(errors) if errors else 0.0,
            least=base.least if base.cut in (1.0, 3.0) else None,
            most=base.most if base.cut > 1.0 else None,
        )

    def _season(self, known: Memory, annex: Any) -> tuple[int, list[float]]:
        """The period in use, and the mean error of each phase that was seen."""
        if self.period is not None:
            start, period = 0, self.period
        else:
            which = int(known.season)
            start = 2 * sum(CANDIDATES[: max(which - 1, 0)])
            period = CANDIDATES[which - 1] if which else 0
        cells = annex[start : start + 2 * period]
        return period, [e for e, size in zip(cells[::2], cells[1::2], strict=True) if size > 0.0]

    def effects(self, state: Any) -> tuple[Effect, ...]:
        """The effects learnt for the forecast's own level and for each feature.

        >>> import setpoint as sp
        >>> stream = sp.Stream(sp.intervals(features=["rain"], categories={"rain": ["no", "yes"]}))
        >>> for t in range(400):
        ...     rain = "yes" if t % 3 == 0 else "no"
        ...     _ = stream.predict((9.0, 11.0), features={"rain": rain})
        ...     _ = stream.update(10.0 + (3.0 if rain == "yes" else 1.0) * (-1) ** t)
        >>> print(stream.controller.correction.effects(stream.state)[1])
        errors are 82 % larger where rain is yes
        """
        known, table = Memory(*state.memory), state.table
        _, weights, scales, tables, _ = table_at(len(self.features))
        values = {name: options for name, *options in self.categories}
        told = []
        for i, name in enumerate(("forecast", *self.features)):
            at, listed = tables + TABLE * i, values.get(name)
            cells = [table[at + 3 + CELL * k : at + 3 + CELL * (k + 1)] for k in range(KNOTS)]
            knots = listed or [table[at] + table[at + 1] * (k - 8) / 4.0 for k in range(KNOTS)]
            seen = [(v, *cell) for v, cell in zip(knots, cells, strict=False) if cell[2] > 0.0]
            weight, power = table[weights + 3 + i], table[scales + 3 + i]
            size = known.size
            told.append(Effect(
                name,
                tuple(value for value, *_ in seen),
                tuple(weight * error for _, error, _, _ in seen),
                tuple(
                    exp(power * (length - size) / (length + size)) if length + size > 0.0 else 1.0
                    for _, _, length, _ in seen
                ),
                tuple(labels for *_, labels in seen),
            ))  # fmt: skip
        return tuple(told)

    def parts(self, state: Any, base: Sequence[float]) -> tuple[Part, ...]:
        """The effect of each known thing on a prediction, with the weights of a state."""
        known, table, count = Memory(*state.memory), state.table, len(self.features)
        _, weights, scales, _, _ = table_at(count)
        n, first = 5 + count, len(Base._fields)
        moves = [table[weights + i] * base[first + i] for i in range(n)]
        widens = [exp(table[scales + i] * base[first + n + i]) for i in range(n)]
        told = [
            Part("recent errors", None, sum(moves[:3]), widens[0] * widens[2]),
            Part("the given width", None, 0.0, widens[1]),
            Part("the forecast's level", None, moves[3], widens[3]),
        ]
        values = base[first + 2 * n : first + 2 * n + count]
        listed = {name: options for name, *options in self.categories}
        for i, (name, value) in enumerate(zip(self.features, values, strict=True)):
            words = listed.get(name)
            shown = value if words is None else words[int(value)] if value == value else "unknown"
            told.append(Part(name, shown, moves[4 + i], widens[4 + i]))
        period, _ = self._season(known, state.annex)
        if period:
            phase = int(base[Base._fields.index("time")]) % period
            told.append(Part(f"season of {period} rows, phase", phase, moves[-1], widens[-1]))
        return tuple(told)

    def read(self, prediction: Any) -> Floats:
        """The prediction as its ends, within ±1e150, its place in time, and its features."""
        kind = type(prediction)
        if (kind is tuple or kind is list) and len(prediction) == 2 and not self.features:
            lower, upper = prediction
            plain = type(lower) is float and type(upper) is float
            if plain and -1e150 < lower < 1e150 and -1e150 < upper < 1e150:
                return lower, upper, nan
        phase: Any = nan
        features: Any = None
        if kind is Row:
            prediction, phase, features = (
                prediction.prediction,
                prediction.phase,
                prediction.features,
            )
            phase = nan if phase is None else phase
        elif kind is tuple and len(prediction) == 3:
            raise PredictionError(
                f"three numbers can mean two things, got {prediction}: say Spread(centre, low, "
                "high), or Row((lower, upper), phase=…)"
            )
        names = names_of(prediction)
        if "phase" in names:
            phase, names = prediction["phase"], names - {"phase"}
        inside = names & set(self.features)
        if inside:
            if features is not None:
                raise PredictionError(f"features come once, got {sorted(inside)} twice")
            features = {name: prediction[name] for name in inside}
        if names_of(prediction):
            names -= inside
            prediction = {name: prediction[name] for name in names}
            prediction = prediction["point"] if names == {"point"} else prediction
        if type(prediction) is Spread or names_of(prediction) == set(_SPREAD.columns):
            centre, low, high = _SPREAD.read(prediction)
            ends = centre - low, centre + high
        else:
            ends = _ENDS.read(prediction)
        phase = number(phase, "a phase", PredictionError)
        row = (*ends, phase, *self._features(features))
        if not rules.sound(row):
            if -1e150 < ends[0] < 1e150 and -1e150 < ends[1] < 1e150:
                raise PredictionError(f"a phase must be a whole number within ±1e9, got {phase}")
            raise PredictionError(f"a prediction must lie within ±1e150, got {ends}")
        return row

    def _features(self, features: Any) -> Floats:
        """The numbers of the features, from a mapping or in order."""
        names = self.features
        if features is None or len(features) == 0:
            if names:
                raise PredictionError(
                    f"the features {', '.join(names)} are needed: give NaN where one is not known"
                )
            return ()
        if not names:
            raise PredictionError(
                f"features need intervals(features=[…]) with their names, got {features!r}"
            )
        keys = names_of(features)
        if keys and keys != set(names):
            raise PredictionError(
                f"the features are {', '.join(names)}, got {', '.join(map(str, sorted(keys)))}"
            )
        values = [features[name] for name in names] if keys else list(features)
        if len(values) != len(names):
            raise PredictionError(f"the features are {', '.join(names)}, got {len(values)} values")
        coded = self.coded
        return tuple(
            float(coded[name].get(value, nan)) if name in coded
            else nan if value is None
            else number(value, f"the feature {name}", PredictionError)
            for name, value in zip(names, values, strict=True)
        )  # fmt: skip

    @property
    def coded(self) -> dict[str, dict[Any, int]]:
        """The place of each value of a category."""
        return {
            name: {value: place for place, value in enumerate(values)}
            for name, *values in self.categories
        }

    def forecast(self, base: Sequence[float]) -> float:
        """The middle as the model gave it, before it was corrected."""
        return base[7]

    @property
    def forms(self) -> tuple[tuple[str, ...], ...]:
        """The names of the columns in which predictions come; a phase may be left out."""
        kinds: tuple[tuple[str, ...], ...] = (_ENDS.columns, _SPREAD.columns, ("point",))
        phased = tuple((*kind, "phase", *self.features) for kind in kinds)
        return (*phased, *((*kind, *self.features) for kind in kinds))

    def arranged(self, names: tuple[str, ...], columns: Sequence[Any]) -> tuple[Any, ...]:
        """Arrays in one of the forms as `columns` names them; a phase that is not there is NaN."""
        by_name = dict(zip(names, columns, strict=True))
        if "centre" in by_name:
            centre = by_name["centre"]
            ends = (centre - by_name["low"], centre + by_name["high"])
        else:
            ends = by_name.get("lower", columns[0]), by_name.get("upper", columns[0])
        phase = by_name.get("phase", np.full(ends[0].shape, nan))
        known = tuple(self._column(name, by_name[name]) for name in self.features)
        return (*ends, phase.astype(ends[0].dtype, copy=False), *known)

    def _column(self, name: str, column: Any) -> Any:
        """A column of a feature as numbers: the places of a category's values, or NaN."""
        coded, column = self.coded.get(name), np.asarray(column)
        if coded is None:
            if column.dtype.kind not in "fiub":
                raise PredictionError(
                    f"the feature {name} must be numbers, got {column.dtype}: name its values in "
                    f"categories={{{name!r}: […]}}"
                )
            return column
        codes = np.full(column.shape, nan)
        for value, place in coded.items():
            codes[column == value] = place
        return codes


_ENDS, _SPREAD = Widen(), Scale()
_GIVES = ("centre", "low", "high", "least", "most", "cut", "grid")
_LENGTHS = {"error", "mean", "middle", "size", "recent_size", "width", "movement"}
"""The numbers of a memory that are in the unit of y."""
_OF_ITS_OWN = (
    "born", "waiting", "time", "labels", "middle", "season", "errors", "surprises", "lowest",
    "highest", "low_hits", "high_hits",
)  # fmt: skip
"""The numbers of a memory that a stream has from its own rows only."""
_PRIOR = len(Memory._fields) + 15
_LONGEST = 1_000_000
_FEW = HITS


def _unitless(prior: Floats) -> tuple[float, ...]:
    """What must be positive in a prior."""
    memory = Memory(*prior[: len(Memory._fields)])
    return memory.head, memory.size, memory.recent_size, memory.width, memory.movement
