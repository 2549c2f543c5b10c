"""Traces to report on: one stream with dates, several streams, label sets."""

import numpy as np
import pytest

import setpoint as sp
from setpoint import Tape, Trace, replay

GAMMA, BOUND = 0.05, 10.0


def intervals(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ends and labels of a stream whose noise doubles on the way; some labels are missing."""
    world = np.random.default_rng(seed)
    mean = 10.0 + 4.0 * np.sin(np.arange(rows) / 15.0)
    y = mean + world.normal(size=rows) * np.where(np.arange(rows) > rows // 2, 2.0, 1.0)
    y[world.random(rows) < 0.02] = np.nan
    return mean - 1.2, mean + 1.2, y


def risk(level: float = 0.1) -> sp.Risk:
    step = sp.steps.Fixed(GAMMA)
    return sp.Risk(sp.losses.Miscoverage(), level, step, bounds=(-BOUND, BOUND))


@pytest.fixture(scope="session")
def single() -> Trace:
    lower, upper, y = intervals(3_000, seed=1)
    time = np.datetime64("2021-03-01T00:00") + np.arange(3_000) * np.timedelta64(1, "h")
    tape = Tape.from_arrays({"lower": lower, "upper": upper}, y, time=time)
    stretch = sp.stretches.Exponential()
    return replay(sp.Controller(sp.sets.Widen(), risk(), stretch=stretch), tape)


@pytest.fixture(scope="session")
def several() -> Trace:
    """Three streams, row by row in turn, with hostile names."""
    parts = [intervals(600, seed) for seed in range(3)]
    lower, upper, y = (np.stack(each, axis=1).ravel() for each in zip(*parts, strict=True))
    id = np.tile(["north", "</script><b>", "south & west"], 600)
    tape = Tape.from_arrays(
        {"lower": lower, "upper": upper}, y, series=id, group=np.arange(1_800) % 7 // 3
    )
    return replay(sp.Controller(sp.sets.Widen(), risk()), tape)


@pytest.fixture(scope="session")
def labelled() -> Trace:
    world = np.random.default_rng(5)
    raw = np.exp(1.5 * world.normal(size=(500, 4)))
    share = raw / raw.sum(axis=1, keepdims=True)
    y = np.array([world.choice(4, p=row) for row in share], dtype=np.float64)
    tape = Tape.from_arrays({f"p{k}": share[:, k] for k in range(4)}, y)
    own = sp.Risk(sp.losses.Miscoverage(), 0.2, sp.steps.Fixed(0.02))
    return replay(sp.Controller(sp.sets.Threshold(), own), tape)


@pytest.fixture(scope="session")
def hostile() -> Trace:
    """Streams, groups and a loss whose names are markup, formulas and templates."""
    names = ['<a href="https://example.org">link</a>', "<b>bold</b>", "$x^{2}$ %{meta.caption}"]
    lower, upper, y = intervals(900, seed=8)
    tape = Tape.from_arrays(
        {"lower": lower, "upper": upper},
        y,
        series=np.tile(names, 300),
        group=np.repeat([*names, "<img src=x onerror=alert(1)>"], 225),
    )
    loss = type("<i>$Loss$</i>", (), {"low": 0.0, "high": 1.0, "__call__": _missed})()
    step = sp.steps.Fixed(GAMMA)
    own = sp.Risk(loss, 0.1, step, bounds=(-BOUND, BOUND))
    return replay(sp.Controller(sp.sets.Widen(), [risk(), own]), tape)


def _missed(self: object, shown: sp.sets.Interval, y: float) -> float:
    return float(not shown.contains(y))


def _in_groups(controller: sp.Controller, series: list[str], groups: tuple[str, ...]) -> Trace:
    world, rows = np.random.default_rng(7), np.arange(600)
    tape = Tape.from_arrays(
        {"point": np.sin(rows / 9.0)},
        np.sin(rows / 9.0) + world.normal(size=600),
        series=np.array(series)[rows % len(series)],
        extras={"hour": rows % 3, "rain": world.random(600) < 0.3},
    )
    return replay(controller, tape, groups=groups)


@pytest.fixture(scope="session")
def bands() -> Trace:
    """One stream of two levels, which are held in groups that overlap, too."""
    return _in_groups(sp.intervals([0.5, 0.95]), ["a"], ("hour", "rain"))


@pytest.fixture(scope="session")
def panel() -> Trace:
    """Two streams with a group each."""
    return _in_groups(sp.intervals(0.9), ["a", "b"], ("rain",))
