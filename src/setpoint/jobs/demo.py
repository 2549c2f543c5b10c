"""A year and a half of hourly electricity demand, forecast by a model that learns as it goes.

The world does not hold still: seasons, a trend, a heat wave, a recalibrated sensor, weeks that are
calm and weeks that are not, and for eight weeks a meter that reports only once a day. The model is
a linear quantile regression that sees the calendar, the temperature, and the demand a day and a
week ago; it takes one gradient step for each label. Its 90 % intervals are shown twice: as they
are, and held at their level by setpoint. All of it is made by formula, and needs numpy alone.
"""

import csv
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint import metrics
from setpoint.bulk.trace import Trace
from setpoint.jobs.job import Goal, Job
from setpoint.jobs.outcome import Outcome
from setpoint.predictions import Quantiles
from setpoint.presets import intervals
from setpoint.stream import Stream
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
WINDOW = 250
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


class LinearModel:
    """Two quantiles, linear in x, by online gradient steps on the pinball loss (AdaGrad)."""

    def __init__(self, size: int, levels: tuple[float, float], rate: float = 0.3) -> None:
        self.levels = np.array(levels)
        self.weights = np.zeros((2, size))
        self.weights[:, 0] = 33.0, 43.0  # a guess of the range, where a model must start somewhere
        self.squares = np.full((2, size), 1e-8)
        self.rate = rate

    def predict(self, x: Floats) -> Quantiles:
        """The two quantiles."""
        lower, upper = (self.weights @ x).tolist()
        return Quantiles(lower, upper)

    def learn(self, x: Floats, y: float) -> None:
        """One step along the slope of the pinball loss."""
        above = y > self.weights @ x
        step = np.outer(np.where(above, self.levels, self.levels - 1), x)
        self.squares += step * step
        self.weights += self.rate * step / np.sqrt(self.squares)


@dataclass(frozen=True, slots=True, eq=False)
class Demo:
    """The demonstration when it is over: the world, the model's quantiles, and the outcome."""

    world: World
    quantiles: Floats
    outcome: Outcome

    def write(self, folder: str | os.PathLike[str], *, report: bool = True) -> dict[str, Path]:
        """Writes the report, the numbers, and the stream as a CSV to calibrate oneself."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("time", "temperature", "lower", "upper", "demand"))
        times = np.datetime_as_string(self.world.time, unit="s").tolist()
        columns = (self.world.temperature, *self.quantiles.T, self.world.demand)
        numbers = (np.round(column, 3).tolist() for column in columns)
        writer.writerows(zip((t.replace("T", " ") for t in times), *numbers, strict=True))
        return self.outcome.write(folder, report=report, more={"demand.csv": text.getvalue()})

    def __str__(self) -> str:
        trace = self.outcome.trace
        ends = {
            "the model alone": tuple(map(np.asarray, trace.tape.prediction)),
            "with setpoint": (trace.lower, trace.upper),
        }
        lines = [
            f"Coverage of the last {WINDOW} hours, one sign a week, 5 points a sign; "
            "▇ is 90 ± 2.5 %",
        ]
        for name, (lower, upper) in ends.items():
            hits = metrics.covered(lower, upper, trace.tape.y)
            lines.append(f"  {name:<16}{_sparkline(_rolling(hits), 0.625, 0.05)}")
        lines.append(f"  {'':<16}{_events(self.world)}")
        lines.append(f"Mean length of the last {WINDOW} hours, 1 GW a sign; ▁ is below 3 GW")
        for name, (lower, upper) in ends.items():
            lengths = metrics.lengths(lower, upper)
            lines.append(f"  {name:<16}{_sparkline(_rolling(lengths), 3.0, 1.0)}")
        signs = "v volatile, d labels once a day, D both, H heat wave, S the sensor is recalibrated"
        return "\n".join([str(self.outcome), "", *lines, f"  {signs}"])


def demo(seed: int = 0) -> Demo:
    """The model alone for eight weeks, then the stream with its late labels."""
    known = world(seed)
    x, y = _features(known), known.demand.tolist()
    model = LinearModel(x.shape[1], (LEVEL / 2, 1 - LEVEL / 2))
    predictions: list[Quantiles] = []
    for hour in range(BURN_IN):
        predictions.append(model.predict(x[hour]))
        model.learn(x[hour], y[hour])

    controller = intervals(1.0 - LEVEL, support=(0.0, np.inf))
    stream = Stream(controller)
    theta, lam, lower, upper, losses = np.full((5, len(y) - BURN_IN), np.nan)
    waiting: list[int] = []
    for hour in range(BURN_IN, len(y)):
        predictions.append(model.predict(x[hour]))
        row = hour - BURN_IN
        theta[row] = stream.theta
        receipt = stream.issue(predictions[-1], id=hour)
        lam[row], (lower[row], upper[row]) = receipt.lam, receipt.shown
        waiting.append(hour)
        if hour in ONCE_A_DAY and hour % DAY != DAY - 1:
            continue  # the meter is silent until midnight
        for late in waiting:
            losses[late - BURN_IN] = stream.update(y[late], id=late)
            model.learn(x[late], y[late])
        waiting.clear()

    ends = np.array(predictions)
    tape = Tape.from_arrays(
        {"lower": ends[BURN_IN:, 0], "upper": ends[BURN_IN:, 1]},
        known.demand[BURN_IN:],
        time=known.time[BURN_IN:],
        group=np.where(known.volatile[BURN_IN:], "volatile week", "calm week"),
    )
    trace = Trace(
        controller, tape, lower, upper, None, lam, losses == 0.0, theta[None], losses[None],
        {None: stream.state},
    )  # fmt: skip
    columns = Columns("demand", "lower", "upper", time="time")
    goal = Goal(1.0 - LEVEL)
    job = Job("demo", columns=columns, goal=goal, seed=seed, model=MODEL, title=TITLE)
    alone = tuple(ends[BURN_IN:].T)
    outcome = Outcome(job, trace, alone, burn_in=BURN_IN, burn_in_each=BURN_IN)
    return Demo(known, ends, outcome)


def _rolling(values: Floats) -> Floats:
    """The mean of the last `WINDOW` values at the end of each week."""
    ends = range(WEEK, len(values) + 1, WEEK)
    return np.array([values[max(0, end - WINDOW) : end].mean() for end in ends])


def _sparkline(values: Floats, low: float, step: float) -> str:
    """One sign a value: ▁ below `low`, and one sign higher for each `step` above it."""
    places = np.clip(1 + (values - low) // step, 0, 7).astype(int)
    return "".join("▁▂▃▄▅▆▇█"[place] for place in places)


def _events(known: World) -> str:
    """One sign a week for what happens in it."""
    signs = []
    for first in range(BURN_IN, len(known.demand), WEEK):
        if first == RECALIBRATED:
            signs.append("S")
        elif first in HEAT_WAVE:
            signs.append("H")
        elif first in ONCE_A_DAY:
            signs.append("D" if known.volatile[first] else "d")
        else:
            signs.append("v" if known.volatile[first] else "·")
    return "".join(signs)
