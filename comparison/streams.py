"""The streams that rules are compared on: forecasts of public data, and synthetic shifts.

Each of six stretches of public data is forecast in six cheap ways, and in four of them a day ahead
too; all of them know only labels that are known by then. A file of other streams can take their
place.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import pi
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import InputError
from setpoint.models import LinearQuantiles
from setpoint_paper.datasets import Dataset, load

__all__ = ["BURN_IN", "Series", "ahead", "made", "read", "write"]

Floats = NDArray[np.float64]

BURN_IN = 200
"""The first rows of every stream, from which published rules take their constants."""
_WARM, _ROWS = 2_000, 6_000
_DATA = (
    ("power", 0, 144, "dev"),
    ("traffic", 0, 24, "dev"),
    ("wind", 0, 96, "dev"),
    ("energy", 0, 144, "val"),
    ("prices", 0, 24, "val"),
    ("wind", 120_000, 96, "val"),
)
"""Data set, first row, rows in a day, half."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Intervals that a model gave, and what came.

    Parameters
    ----------
    name
        The data and the forecaster.
    split
        "dev", the development half, or "val", the validation half.
    kind
        What kind of forecast it is: "good", "stale", "synthetic" and so on.
    lower, upper, y
        One row a step.
    delay
        How many labels are still unknown, the newest, when a set is shown.
    period
        Rows in a season, 0 if there is none.
    delays
        How many rows late each label is, where that varies.
    """

    name: str
    split: str
    kind: str
    lower: Floats
    upper: Floats
    y: Floats
    delay: int = 0
    period: int = 0
    delays: NDArray[np.int64] | None = None

    @property
    def point(self) -> Floats:
        """The middle of each interval."""
        return 0.5 * (self.lower + self.upper)


def read(path: str | os.PathLike[str]) -> list[Series]:
    """The streams of an npz file: `meta`, and `0_lo`, `0_hi`, `0_y`, `1_lo`, … for each line of it.

    A line of `meta` is "name|split|kind|delay", "name|split|delay|period" or, as written here,
    "name|split|kind|delay|period".
    """
    with np.load(path) as file:
        if "meta" not in file:
            raise InputError(f"{path} must hold an array 'meta', got {', '.join(file.files)}")
        return [
            _series(str(line), file[f"{place}_lo"], file[f"{place}_hi"], file[f"{place}_y"])
            for place, line in enumerate(file["meta"])
        ]


def _series(line: str, lower: Floats, upper: Floats, y: Floats) -> Series:
    name, split, *rest = line.split("|")
    if rest[0].isdigit():  # delay and period, no kind
        rest = ["late", *rest]
    kind, delay, period = (*rest, "0")[:3]
    return Series(name, split, kind, lower, upper, y, int(delay), int(period))


def write(series: Iterable[Series], path: Path) -> None:
    """Writes streams as `read` reads them."""
    arrays: dict[str, Any] = {}
    meta = []
    for place, one in enumerate(series):
        meta.append(f"{one.name}|{one.split}|{one.kind}|{one.delay}|{one.period}")
        arrays |= {f"{place}_lo": one.lower, f"{place}_hi": one.upper, f"{place}_y": one.y}
    arrays["meta"] = np.array(meta)
    np.savez_compressed(path, **arrays)


def made(*, quick: bool = False) -> Iterator[Series]:
    """All streams; a few short ones if `quick`."""
    rows = 1_000 if quick else _ROWS
    for name, first, day, split in _DATA[1:2] if quick else _DATA:
        data = _stretch(name, first, _WARM + rows)
        place = f"{name}.late" if first else name
        yield from _forecast(data, place, split, day, 1, quick)
        yield from _forecast(data, place, split, day, day, quick)
    for split, seed in (("dev", 100), ("val", 900)):
        yield from _synthetic(split, seed, 1_000 if quick else 5_000, quick)


def ahead(name: str, steps: int) -> Iterator[Series]:
    """The forecasts of a data set, by its name, made so many rows ahead."""
    first, day, split = next((a, b, c) for data, a, b, c in _DATA if data == name)
    yield from _forecast(_stretch(name, first, _WARM + _ROWS), name, split, day, steps, False)


# Public data


def _stretch(name: str, first: int, count: int) -> Dataset:
    """Rows of a data set; of rows with the same time only the first."""
    data = load(name, rows=first + 2 * count)
    assert data.time is not None
    new = np.concatenate([[True], np.diff(data.time).astype(np.int64) > 0])
    kept = np.flatnonzero(new)[first : first + count]
    return Dataset(
        name, data.x[kept], data.y[kept], data.features, data.target, time=data.time[kept]
    )


def _forecast(
    data: Dataset, name: str, split: str, day: int, ahead: int, quick: bool
) -> Iterator[Series]:
    """The forecasts of a stretch of data, made `ahead` rows ahead."""
    y, judged = data.y, slice(_WARM, None)
    last, yesterday = _lagged(y, ahead), _lagged(y, day)
    calendar = _calendar(data)
    x = np.column_stack([calendar, *(_lagged(y, ahead + back) for back in range(3)), yesterday])
    learnt = _online(x, y, ahead)
    wave = 1.5 * np.std(y[ahead:_WARM] - y[: _WARM - ahead]) * np.sin(np.arange(len(y)) / 700.0)
    points = {
        "seasonal": yesterday,
        "good": learnt,
        "stale": _stale(np.column_stack([calendar, data.x]), y),
    }
    if ahead == 1:
        points |= {"persistence": last, "biased": learnt + wave}
    if quick:
        points = {kind: points[kind] for kind in ("seasonal", "good")}
    for kind, point in points.items():
        half = _half(point[judged], y[judged]) if kind in ("good", "biased", "persistence") else 0.0
        ends = point[judged] - half, point[judged] + half
        yield _named(name, split, kind, ends, y[judged], day, ahead)
    if not quick:
        yield _named(name, split, "quantiles", _quantiles(x, y, ahead), y[judged], day, ahead)


def _named(
    name: str, split: str, kind: str, ends: tuple[Floats, Floats], y: Floats, day: int, ahead: int
) -> Series:
    when = "" if ahead == 1 else ".day-ahead"
    return Series(f"{name}.{kind}{when}", split, kind, *ends, y, ahead - 1, day)


def _lagged(y: Floats, rows: int) -> Floats:
    """The label so many rows before."""
    return np.concatenate([np.full(rows, y[0]), y[:-rows]])


def _calendar(data: Dataset) -> Floats:
    """The hour of the day as two waves, and whether it is a weekend."""
    assert data.time is not None
    seconds = (data.time - data.time.astype("datetime64[D]")).astype(np.int64)
    angle = 2.0 * pi * seconds / 86_400.0
    waves = [wave(times * angle) for times in (1, 2) for wave in (np.sin, np.cos)]
    return np.column_stack([*waves, data.weekday >= 5])


def _scaled(x: Floats, y: Floats) -> tuple[Floats, Floats, float, float]:
    """Features and labels in units of the first rows, with an intercept."""
    x = (x - x[:_WARM].mean(axis=0)) / (x[:_WARM].std(axis=0) + 1e-9)
    middle, unit = float(y[:_WARM].mean()), float(y[:_WARM].std()) + 1e-9
    return np.column_stack([x, np.ones(len(x))]), (y - middle) / unit, middle, unit


def _online(x: Floats, y: Floats, ahead: int) -> Floats:
    """Recursive least squares that forgets, and learns each row when its label is known."""
    x, z, middle, unit = _scaled(x, y)
    spread, weights, point = np.eye(x.shape[1]), np.zeros(x.shape[1]), np.zeros(len(y))
    for row in range(len(y)):
        known = row - ahead
        if known >= 0:
            features = x[known]
            gain = spread @ features
            gain /= 0.9995 + features @ gain
            weights += gain * (z[known] - weights @ features)
            spread = (spread - np.outer(gain, features @ spread)) / 0.9995
        point[row] = weights @ x[row]
    return point * unit + middle


def _stale(x: Floats, y: Floats) -> Floats:
    """A ridge regression on the first rows, never fitted again."""
    x, z, middle, unit = _scaled(x, y)
    past = x[:_WARM]
    weights = np.linalg.solve(past.T @ past + np.eye(x.shape[1]), past.T @ z[:_WARM])
    return (x @ weights) * unit + middle


def _quantiles(x: Floats, y: Floats, ahead: int) -> tuple[Floats, Floats]:
    """The library's online linear quantiles."""
    model, ends = LinearQuantiles(), np.empty((2, len(y)))
    for row in range(len(y)):
        if row >= ahead:
            model.learn(x[row - ahead], float(y[row - ahead]))
        ends[:, row] = model.predict(x[row])
    return ends[0, _WARM:], ends[1, _WARM:]


def _half(point: Floats, y: Floats) -> float:
    """The half width that would have covered 90 % of the burn-in."""
    return float(np.quantile(np.abs(y - point)[:BURN_IN], 0.9))


# Synthetic shifts


def _synthetic(split: str, seed: int, rows: int, quick: bool) -> Iterator[Series]:
    """Streams of known law: forecast 0 with a width that is wrong, or right only at first."""
    time, factor = np.arange(rows), 1.0 if split == "dev" else 1.5

    def noise(place: int) -> np.random.Generator:
        return np.random.default_rng(seed + place)

    def blocks(values: Floats, length: int) -> Floats:
        return np.repeat(values, length)[:rows]

    many = rows // 400 + 1
    walk = noise(0)
    spiky = noise(1)
    informative = np.exp(0.8 * np.sin(time / 5.0) + 0.5 * noise(2).standard_normal(rows))
    streams: dict[str, tuple[Floats | float, Any]] = {
        "normal": (1.3, factor * noise(3).standard_normal(rows)),
        "heavy tails": (0.0, noise(4).standard_t(2.5, rows)),
        "skewed": (1.0, noise(5).exponential(size=rows) - 1.0),
        "jumps": (1.0, blocks(3.0 * noise(6).standard_normal(many), 400) + _normal(7, seed, rows)),
        "variance switches": (
            1.6, blocks(np.where(np.arange(many) % 2, 5.0, 1.0), 400) * _normal(8, seed, rows)
        ),
        "drift": (
            1.0,
            3.0 * np.sin(time / (400.0 * factor))
            + np.exp(np.sin(time / (900.0 * factor))) * _normal(9, seed, rows),
        ),
        "trend": (1.6, 0.01 * factor * time + _normal(10, seed, rows)),
        "random walk": (
            2.0, np.cumsum(0.3 * walk.standard_normal(rows)) + walk.standard_normal(rows)
        ),
        "outliers": (
            1.5,
            _autoregressive(spiky.standard_normal(rows))
            + np.where(spiky.random(rows) < 0.01, 30.0 * spiky.standard_normal(rows), 0.0),
        ),
        "informative widths": (0.7 * informative, informative * factor * _normal(11, seed, rows)),
        "misleading widths": (np.exp(0.6 * _normal(12, seed, rows)), _normal(13, seed, rows)),
        "two levels": (
            0.0,
            np.where(time // 50 % 2, 6.0, 1.0)
            * np.where(noise(14).random(rows) < 0.5, 1.0, -1.0)
            * (1.0 + 0.01 * _normal(15, seed, rows)),
        ),
        "counts": (2.0, noise(16).poisson(3.0 + 2.0 * np.sin(time / 100.0)) - 3.0),
        "season": (
            1.6, 2.0 * np.sin(2.0 * pi * time / (48 if split == "dev" else 24))
            + _normal(17, seed, rows),
        ),
    }  # fmt: skip
    names = ("heavy tails", "jumps") if quick else tuple(streams)
    for name in names:
        half, y = streams[name]
        half = np.broadcast_to(np.asarray(half, np.float64), y.shape)
        period = (48 if split == "dev" else 24) if name == "season" else 0
        yield Series(name, split, "synthetic", -half, +half, y.astype(np.float64), 0, period)
    late = 2.0 * np.sin(time / 300.0) + np.exp(0.5 * np.sin(time / 700.0)) * _normal(18, seed, rows)
    one = np.ones(rows)
    yield Series("drift, 20 late", split, "synthetic", -one, one, late, 20)


def _normal(place: int, seed: int, rows: int) -> Floats:
    return np.random.default_rng(seed + place).standard_normal(rows)


def _autoregressive(shocks: Floats) -> Floats:
    """Each value is 0.7 of the one before, and a shock."""
    values, last = np.empty(len(shocks)), 0.0
    for row, shock in enumerate(shocks.tolist()):
        values[row] = last = 0.7 * last + shock
    return values


# Whole paths


def hourly(steps: int) -> Iterator[tuple[str, Floats, Floats]]:
    """Forecasts of the next hours at every hour, and what came; one row for each origin.

    A ridge regression for each step on the last day, the week before and the hour; and the mean of
    the same hour yesterday and a week before.
    """
    for name, first, day, _ in _DATA:
        if name == "energy" or (name == "wind" and not first):  # too short; one stretch will do
            continue
        per = day // 24
        place = f"{name}.late" if first else name
        data = _stretch(name, first, (_WARM + 8_000) * per)
        count = len(data.y) // per
        y = data.y[: count * per].reshape(count, per).mean(axis=1)
        hour = np.arange(count) % 24
        origins = np.arange(200, count - steps)
        ahead = origins[:, None] + np.arange(steps)
        angle = 2.0 * pi * hour[origins] / 24.0
        x = np.column_stack([
            y[origins[:, None] - 1 - np.arange(24)], y[ahead - 168],
            *(wave(times * angle) for times in (1, 2) for wave in (np.sin, np.cos)),
        ])  # fmt: skip
        early = origins < _WARM - steps
        middle, unit = x[early].mean(axis=0), x[early].std(axis=0) + 1e-9
        x, target = np.column_stack([(x - middle) / unit, np.ones(len(x))]), y[ahead]
        past = x[early]
        ridge = past.T @ past + 30.0 * np.eye(x.shape[1])
        weights = np.linalg.solve(ridge, past.T @ target[early])
        later = origins >= _WARM
        seasonal = 0.5 * (y[ahead - 24 * (1 + np.arange(steps) // 24)] + y[ahead - 168])
        yield f"{place}.ridge", (x @ weights)[later], target[later]
        yield f"{place}.seasonal", seasonal[later], target[later]
