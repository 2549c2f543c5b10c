"""The paper's tabular streams: five real ones with the paper's features, and the synthetic one.

To the features of each source come the day, month, year, hour, minute and day of the week
(Monday 0). Every loader of a real stream takes the same options:

    folder     where the files are; else the folder that SETPOINT_DATA names, else a download
    rows       read at most so many rows from the start; None reads all and checks their number
    download   whether a file that is not at hand may be fetched
"""

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from setpoint._check import whole
from setpoint.errors import DataError
from setpoint_paper.datasets.files import Folder, Found, find, find_first
from setpoint_paper.datasets.sources import SOURCES
from setpoint_paper.datasets.tables import numbers, rows_to_read, table, times
from setpoint_paper.datasets.values import Dataset, calendar

_POWER = (
    "DateTime", "Temperature", "Humidity", "Wind Speed", "general diffuse flows", "diffuse flows",
    "Zone 1 Power Consumption", "Zone 2  Power Consumption", "Zone 3  Power Consumption",
)  # fmt: skip
_ENERGY = (
    "date", "Appliances", "lights",
    *(f"{what}{room}" for room in range(1, 10) for what in ("T", "RH_")),
    "T_out", "Press_mm_hg", "RH_out", "Windspeed", "Visibility", "Tdewpoint", "rv1", "rv2",
)  # fmt: skip
_TRAFFIC = (
    "holiday", "temp", "rain_1h", "snow_1h", "clouds_all", "weather_main", "weather_description",
    "date_time", "traffic_volume",
)  # fmt: skip
_PRICES = (
    "Date", "Spot", "hour",
    *(f"dow_{day}" for day in range(7)),
    *(f"lag_{hours}_{hour}" for hours in (24, 168) for hour in range(24)),
    "conso",
)  # fmt: skip
# From clear sky to snow: the authors' order, so that the codes carry some meaning.
_WEATHER = (
    "Clear", "Haze", "Mist", "Fog", "Clouds", "Smoke", "Drizzle", "Rain", "Squall",
    "Thunderstorm", "Snow",
)  # fmt: skip


def power(*, folder: Folder = None, rows: int | None = None, download: bool = True) -> Dataset:
    """Power consumption of zone 1 of Tetouan city, every 10 minutes of 2017.

    The features are the weather and the calendar; the consumption of the other two zones at the
    same moment is left out, as in the paper.
    """
    source = SOURCES["power"]
    found = find(source, source.files[0], folder, download)
    columns = table(found, _POWER, rows_to_read(rows))
    time = times(found, columns, "DateTime", "%m/%d/%Y %H:%M")
    return _dataset(
        "power", found, time, _POWER[1:6], numbers(found, columns, _POWER[1:6]),
        "Zone 1 Power Consumption", numbers(found, columns, _POWER[6:7])[:, 0], "kW",
    )  # fmt: skip


def energy(*, folder: Folder = None, rows: int | None = None, download: bool = True) -> Dataset:
    """Energy use of the appliances in a house, every 10 minutes, January to May 2016."""
    source = SOURCES["energy"]
    found = find(source, source.files[0], folder, download)
    columns = table(found, _ENERGY, rows_to_read(rows))
    time = times(found, columns, "date")
    return _dataset(
        "energy", found, time, _ENERGY[2:], numbers(found, columns, _ENERGY[2:]),
        "Appliances", numbers(found, columns, ("Appliances",))[:, 0], "Wh",
    )  # fmt: skip


def traffic(*, folder: Folder = None, rows: int | None = None, download: bool = True) -> Dataset:
    """Vehicles an hour on Interstate 94 westbound, Minneapolis to St Paul, 2012 to 2018.

    `holiday` and `weather_description` are coded 0, 1, … in the order in which their values first
    come in the file ("None" is a value of `holiday`, and only the first hour of a holiday has its
    name); `weather_main` from 0, Clear, to 10, Snow. The minute is left out, being always 0. Some
    hours come more than once, with other weather, and some are missing: the order and the rows of
    the file are kept.
    """
    source = SOURCES["traffic"]
    found = find(source, source.files[0], folder, download)
    columns = table(found, _TRAFFIC, rows_to_read(rows))
    time = times(found, columns, "date_time")
    unknown = sorted(set(columns["weather_main"]) - set(_WEATHER))
    if unknown:
        raise DataError(
            f"{found.path} is damaged: column 'weather_main' must hold one of "
            f"{', '.join(_WEATHER)}, got {unknown[0]!r}"
        )
    x = np.column_stack(
        [
            _codes(columns["holiday"]),
            numbers(found, columns, _TRAFFIC[1:5]),
            _codes(columns["weather_main"], _WEATHER),
            _codes(columns["weather_description"]),
        ]
    )
    return _dataset(
        "traffic", found, time, _TRAFFIC[:7], x,
        "traffic_volume", numbers(found, columns, ("traffic_volume",))[:, 0], "vehicles/h",
        without=("minute",),
    )  # fmt: skip


def wind(*, folder: Folder = None, rows: int | None = None, download: bool = True) -> Dataset:
    """Wind power fed into the grid, every 15 minutes: the calendar now, the power at the next row.

    The paper's file is wind_power.csv, of the 50Hertz zone. A folder may hold a stand-in for it,
    the Amprion zone from 2011 to 2017 in the same form; it is read where the paper's file is not
    beside it, and `note` then says so. Where the folder that SETPOINT_DATA names has neither, the
    paper's file is downloaded from beside the authors' code; no address serves the stand-in.
    """
    source = SOURCES["wind"]
    found = find_first(source, source.files, folder, download)
    columns = table(found, ("dt", "MW"), rows_to_read(rows, lead=1))
    time = times(found, columns, "dt")
    stand_in = found.file is not source.files[0]
    return _dataset(
        "wind", found, time, (), np.empty((len(time), 0)),
        "MW", numbers(found, columns, ("MW",))[:, 0], "MW",
        lead=1, note="a stand-in: Amprion zone, not the paper's 50Hertz zone" if stand_in else "",
    )  # fmt: skip


def prices(*, folder: Folder = None, rows: int | None = None, download: bool = True) -> Dataset:
    """French electricity spot prices, hourly, 2016 to 2019: features now, the price an hour later.

    The features are the weekday as seven flags, the prices of the day before and of the week
    before, the forecast consumption, and the calendar without the minute, which is always 0.
    """
    source = SOURCES["prices"]
    found = find(source, source.files[0], folder, download)
    columns = table(found, _PRICES, rows_to_read(rows, lead=1))
    time = times(found, columns, "Date")
    return _dataset(
        "prices", found, time, _PRICES[3:], numbers(found, columns, _PRICES[3:]),
        "Spot", numbers(found, columns, ("Spot",))[:, 0], "EUR/MWh",
        without=("minute",), lead=1,
    )  # fmt: skip


def synthetic(steps: int = 20_000, *, length: float = 500.0, seed: int = 0) -> Dataset:
    """The synthetic stream of the paper's appendix C.6.1: groups quiet and loud by turns.

    Group i lasts mᵢ ~ N(length, 100) steps and has its own weights βᵢ, uniform and summing to
    one, and its own ωᵢ: 1 in the odd groups, N(20, 10) in the even ones, 10 being the variance.
    With X_t uniform on (0, 1)⁵ and ε_t standard normal,

        Y_t = ½ Y_{t−1} + ω²|βᵀX_t| + 2 sin(2 X_{t,1} ε_t),   Y_0 = 1.

    Random numbers are drawn in this order: the lengths one by one, then β, ω, X and ε.

    Parameters
    ----------
    steps
        How many rows.
    length
        Mean length of a group.
    seed
        Of all that is drawn.

    Examples
    --------
    >>> data = synthetic(2_000, length=400, seed=1)
    >>> data.group[0], data.group[-1]
    (np.int64(1), np.int64(5))
    >>> quiet, loud = data.y[data.group == 1], data.y[data.group == 2]
    >>> bool(quiet.max() < 10 < loud.mean())
    True

    References
    ----------
    Feldman et al., Achieving risk control in online learning settings, TMLR 2023: appendix C.6.1.
    """
    whole(steps, "steps", 1)
    generator = np.random.default_rng(whole(seed, "seed", 0))
    lengths: list[int] = []
    while sum(lengths) < steps:
        lengths.append(max(1, round(generator.normal(length, 10.0))))
    group = np.repeat(np.arange(1, len(lengths) + 1, dtype=np.int64), lengths)[:steps]
    weights = generator.uniform(size=(len(lengths), 5))
    weights /= weights.sum(axis=1, keepdims=True)
    loud = generator.normal(20.0, sqrt(10.0), len(lengths))
    omega = np.where(np.arange(len(lengths)) % 2 == 1, loud, 1.0)
    x = generator.uniform(size=(steps, 5))
    pushed = omega[group - 1] ** 2 * np.abs(np.einsum("ij,ij->i", weights[group - 1], x))
    pushed += 2.0 * np.sin(2.0 * x[:, 0] * generator.standard_normal(steps))
    y = np.empty(steps)
    last = 1.0
    for step, push in enumerate(pushed.tolist()):
        y[step] = last = 0.5 * last + push
    names = tuple(f"X{place}" for place in range(1, 6))
    return Dataset("synthetic", x, y, names, "Y", group=group)


def _dataset(
    name: str,
    found: Found,
    time: NDArray[np.datetime64],
    features: tuple[str, ...],
    x: NDArray[np.float64],
    target: str,
    y: NDArray[np.float64],
    unit: str,
    without: tuple[str, ...] = (),
    lead: int = 0,
    note: str = "",
) -> Dataset:
    """A data set with calendar fields, y taken `lead` rows ahead of x."""
    added, fields = calendar(time, without)
    ready = len(y) - lead
    return Dataset(
        name,
        np.column_stack([x, fields])[:ready],
        y[lead:],
        (*features, *added),
        target,
        unit,
        time[:ready],
        note="; ".join(filter(None, (note, found.note))),
    )


def _codes(values: Sequence[str], order: Sequence[str] | None = None) -> NDArray[np.float64]:
    """The place of each value in an order, by default that of first appearance."""
    places = {value: place for place, value in enumerate(order or dict.fromkeys(values))}
    return np.array([places[value] for value in values], dtype=np.float64)
