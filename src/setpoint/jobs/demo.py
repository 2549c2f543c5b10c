"""A year and a half of hourly electricity demand, forecast by a model that learns as it goes.

The world does not hold still: seasons, a trend, a heat wave, a recalibrated sensor, weeks that are
calm and weeks that are not, and for eight weeks a meter that reports only once a day. The model is
a linear quantile regression that sees the calendar, the temperature, and the demand a day and a
week ago; it takes one gradient step for each label. Its 90 % intervals are shown twice: as they
are, and held at their level by setpoint. All of it is made by formula, and needs numpy alone.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint._files import staged
from setpoint.bulk.replay import replay
from setpoint.jobs.job import Job
from setpoint.jobs.outcome import Outcome
from setpoint.jobs.result import Result
from setpoint.presets import intervals
from setpoint.tape import Columns, Tape

Floats = NDArray[np.float64]

LEVEL = 0.1
TITLE, MODEL = "Hourly electricity demand", "linear quantiles"
DAY, WEEK = 24, 7 * 24
WEEKS = 78
BURN_IN = 8 * WEEK  # the model learns alone, then the stream begins
HEAT_WAVE = range(54 * WEEK, 56 * WEEK)
RECALIBRATED = 67 * WEEK
ONCE_A_DAY = range(40 * WEEK, 48 * WEEK)
FIRST = np.datetime64("2024-01-01T00", "h")


class World(NamedTuple):
    """Hourly demand in GW, the temperature in °C, and which hours are volatile."""

    demand: Floats
    temperature: Floats
    volatile: NDArray[np.bool_]

    @property
    def time(self) -> Any:
        """The hours, from a Monday on."""
        return FIRST + np.arange(len(self.demand))


def world(seed: int = 0) -> World:
    """The drifting stream."""
    random = np.random.default_rng(seed)
    hour = np.arange(WEEKS * WEEK)
    clock = 2 * np.pi * (hour % DAY) / DAY
    year = 2 * np.pi * hour / (365.25 * DAY)

    temperature = 15 + 9 * np.cos(year - 3.4) + 4 * np.sin(clock - 2.4)
    temperature += _autoregressive(0.98, 0.45 * random.standard_normal(len(hour)))
    temperature[HEAT_WAVE] += 9

    weekend = hour // DAY % 7 >= 5
    demand = 38 + 6 * np.sin(clock - 2.0) + 2.5 * np.sin(2 * clock - 0.6)
    demand -= 4.5 * weekend * (1 + 0.3 * np.sin(clock))
    demand += 0.25 * np.maximum(12 - temperature, 0)  # heating
    demand += 0.02 * np.maximum(temperature - 20, 0) ** 2  # cooling
    demand += 0.04 * hour / WEEK  # more of everything, every week

    volatile = hour // WEEK % 9 >= 6
    volatile[HEAT_WAVE] = True
    spread = np.where(volatile, 1.5, 0.5)
    demand += _autoregressive(0.6, spread * random.standard_normal(len(hour)))
    demand[RECALIBRATED:] += 5
    return World(demand, temperature, volatile)


def _autoregressive(share: float, noise: Floats) -> Floats:
    """Noise that remembers a share of its last value."""
    value, values = 0.0, []
    for shock in noise.tolist():
        value = share * value + shock
        values.append(value)
    return np.array(values)


def _features(known: World) -> Floats:
    """What the model sees of each hour; the demand a day ago is known even when labels are late."""
    hour = np.arange(len(known.demand))
    clock = 2 * np.pi * (hour % DAY) / DAY
    weekend = (hour // DAY % 7 >= 5).astype(float)
    warmth = (known.temperature - 15) / 10
    scaled = (known.demand - 38) / 8
    columns = [
        np.ones(len(hour)),
        *(np.sin(clock), np.cos(clock), np.sin(2 * clock), np.cos(2 * clock)),
        *(weekend, weekend * np.sin(clock), weekend * np.cos(clock)),
        *(warmth, warmth**2),
        *(np.concatenate([np.zeros(lag), scaled[:-lag]]) for lag in (DAY, WEEK)),
    ]
    return np.column_stack(columns)


def _model(made: World) -> tuple[Floats, Any]:
    """The ends of a model for every hour, and when its label is known.

    They are two quantiles, linear in what the model sees, moved by one step along the slope of
    the pinball loss for each label (AdaGrad).
    """
    x, y = _features(made), made.demand.tolist()
    levels = np.array([[LEVEL / 2], [1 - LEVEL / 2]])
    weights, squares = np.zeros((2, x.shape[1])), np.full((2, x.shape[1]), 1e-8)
    weights[:, 0] = 33.0, 43.0  # a guess of the range, where a model must start somewhere
    ends, known, waiting = np.empty((len(y), 2)), made.time.copy(), []
    for hour in range(len(y)):
        ends[hour] = weights @ x[hour]
        waiting.append(hour)
        if hour in ONCE_A_DAY and hour % DAY != DAY - 1:
            continue  # the meter is silent until midnight
        known[waiting] = made.time[hour] + 1
        for late in waiting:
            above = (y[late] > weights @ x[late])[:, None]
            step = np.where(above, levels, levels - 1) * x[late]
            squares += step * step
            weights += 0.3 * step / np.sqrt(squares)
        waiting.clear()
    return ends, known


@dataclass(frozen=True, eq=False, repr=False)
class Demo(Result):
    """The demonstration when it is over: the world, the model's quantiles, and the outcome."""

    world: World
    quantiles: Floats
    outcome: Outcome
    rows: None = None
    folder: ClassVar[str] = "setpoint"

    def metrics(self) -> dict[str, Any]:
        """Every number of the outcome."""
        return self.outcome.metrics()

    def __str__(self) -> str:
        return str(self.outcome)

    def _put(self, stage: staged, report: bool) -> None:
        """The files of the outcome, and the stream as a CSV to calibrate oneself."""
        columns = (self.world.temperature, *self.quantiles.T, self.world.demand)
        numbers = np.round(np.column_stack(columns), 3).tolist()
        times = np.datetime_as_string(self.world.time, unit="s").tolist()
        lines = ["time,temperature,lower,upper,demand"]
        for time, row in zip(times, numbers, strict=True):
            lines.append(f"{time.replace('T', ' ')},{','.join(map(str, row))}")
        text = "".join(f"{line}\n" for line in lines)
        (stage / "demand.csv").write_text(text, "utf-8")
        self.outcome._put(stage, report)


def demo(seed: int = 0) -> Demo:
    """Runs the model alone for eight weeks, then with setpoint; some labels come late."""
    made = world(seed)
    ends, known = _model(made)
    live = slice(BURN_IN, None)
    tape = Tape.from_arrays(
        {"lower": ends[live, 0], "upper": ends[live, 1]}, made.demand[live],
        time=made.time[live], known=known[live],
        group=np.where(made.volatile[live], "volatile week", "calm week"),
    )  # fmt: skip
    coverage = 1.0 - LEVEL
    trace = replay(intervals(coverage, support=(0.0, np.inf)), tape)
    columns = Columns("demand", "lower", "upper", time="time")
    job = Job("demo", None, columns, coverage, title=TITLE, model=MODEL)
    return Demo(made, ends, Outcome(job, trace, burn_in=BURN_IN))
