"""Seasons in a learning family: the equations, one answer in every mode, and what can be read."""

from math import inf, log, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.correction import Intervals
from setpoint.errors import InputError, PredictionError
from setpoint.predictions import Phased, Quantiles, Spread

P = 7


def world(seed: int, rows: int = 500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forecasts that miss a season in the error and in its size; a fifth of the labels is wild."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    middle = np.cumsum(rng.normal(size=rows))
    season = 2.0 * np.sin(2 * np.pi * t / P) + (t // 200 % 2)
    size = 0.3 + (t % P == 3) + 5.0 * (rng.random(rows) < 0.01)
    y = middle + season + size * rng.standard_t(4, rows)
    half = np.exp(rng.normal(size=rows) * 0.3)
    return middle - half, middle + half, y


def by_hand(world: Any, phases: Any, means: int, r: float = 0.1) -> np.ndarray:
    """The rule with a season written out in the order of its equations, with matrices."""
    lower, upper, y = world
    slow, medium, fast, ridge, wild, step, far, trust = 0.007, 0.15, 0.3, 0.1, 15, 0.05, 4, 50
    con = lambda a, b: (a - b) / (a + b) if a + b > 0 else 0.0  # noqa: E731
    quick, slower = (fast, medium / 3) if means == 2 else (medium, 1.0)
    count = 3 + means
    A, B, w, k = np.zeros((count, count)), np.zeros(count), np.zeros(count), np.zeros(4)
    table, sizes, labels = np.zeros(P), np.zeros(P), np.zeros(P)
    qa = qb = -log(r)
    n, S, e1, m, M, ml, hm, dm, Aa, Ab, R = 1.0, *[0.0] * 10
    ss = sf = (upper[0] - lower[0]) / 2 / -log(r)
    ends = []
    for t, p in enumerate(phases):
        mid, h = (lower[t] + upper[t]) / 2, (upper[t] - lower[t]) / 2
        dx = mid - ml if t else 0.0
        base = [m - M, M] if means == 2 else [m]
        x = np.array([e1 - m, dx, *base, table[p] - base[-1]])
        c, D = float(w @ x), abs(dx) + ss
        hm, dm = (hm, dm) if t else (h, D)
        f = np.array([con(sf, ss), con(h, hm), con(D, dm), con(sizes[p], ss) if labels[p] else 0])
        s = ss * np.exp(k @ f)
        own, given = (c - s * qa, c + s * qb), (-h - s * Aa, h + s * Ab)
        v = 1 / (1 + np.exp(trust * R))
        low, high = (v * a + (1 - v) * b for a, b in zip(own, given, strict=True))
        u = 0.15 * S / (1 - (max(S, 0) / 10) ** 8) if S < 10 else np.inf
        centre, half = mid + (low + high) / 2, np.exp(u) * max((high - low) / 2, 0)
        ends.append((centre - half, centre + half))
        if y[t] != y[t]:
            continue
        S = max(S + (not ends[-1][0] <= y[t] <= ends[-1][1]) - r, -10.0)
        e = y[t] - mid
        n += 1
        b = 1 / n
        beta = max(slow, b)
        rho, jump, cap = e - c, e - e1, wild * max(s, sf, ss)
        clip = lambda value, cap=cap: min(max(value, -cap), cap)  # noqa: E731
        e = c + clip(rho) if abs(rho) <= abs(jump) else e1 + clip(jump)
        rho = clip(rho)
        pin = lambda a, b, e=e: r / 2 * (b - a) + max(a - e, e - b, 0)  # noqa: E731
        R += slow * (min(max((pin(*own) - pin(*given)) / s, -2), 2) - R)
        Ab += beta * ((e > given[1]) - r / 2)
        Aa += beta * ((e < given[0]) - r / 2)
        z = rho / s
        qb, qa = qb + beta * ((z > qb) - r / 2), qa + beta * ((-z > qa) - r / 2)
        k = np.clip(k + step * (min(abs(z), wild) - 1) * f, -2, 2)
        omega = min(1.0, far * s / abs(rho)) if rho else 1.0
        A += beta * (omega * np.outer(x, x) - A)
        B += beta * (omega * x * e - B)
        w = np.linalg.solve(A + ridge * ss * ss * np.eye(count), B)
        rho = abs(rho)
        sf, ss = sf + max(fast, b) * (rho - sf), ss + beta * (rho - ss)
        hm, dm = hm + beta * (h - hm), dm + beta * (D - dm)
        m, M = m + max(quick, b) * (e - m), M + max(slower, b) * (e - M)
        e1, ml = e, mid
        labels[p] += 1
        table[p] += max(0.2, 1 / (labels[p] + 1)) * (e - table[p])
        sizes[p] += max(0.2, 1 / labels[p]) * (rho - sizes[p])
    return np.array(ends)


@pytest.mark.parametrize("means", [1, 2])
def test_seasonal_sets_are_those_of_the_equations(means: int) -> None:
    lower, upper, y = world(means)
    y[50:60] = nan
    ends = by_hand((lower, upper, y), np.arange(len(y)) % P, means)
    tape = sp.Tape.from_arrays({"lower": lower, "upper": upper}, y)
    trace = sp.replay(sp.intervals(period=P, means=means), tape)
    near = 1e-9 * np.mean(ends[:, 1] - ends[:, 0])
    assert np.abs(trace.lower - ends[:, 0]).max() <= near
    assert np.abs(trace.upper - ends[:, 1]).max() <= near


def test_a_season_pays_and_a_wrong_one_costs_little() -> None:
    lower, upper, y = world(4, 2000)
    tape = sp.Tape.from_arrays({"lower": lower, "upper": upper}, y)
    traces = {period: sp.replay(sp.intervals(period=period), tape) for period in (0, P, 24)}
    widths = {period: np.mean(trace.upper - trace.lower) for period, trace in traces.items()}
    assert widths[P] < 0.8 * widths[0]
    assert widths[24] < 1.03 * widths[0]
    assert all(abs(trace.coverage - 0.9) < 0.01 for trace in traces.values())


def gaps(rows: int) -> np.ndarray:
    """Phases of rows of which some are missing, counted from any day."""
    kept = np.random.default_rng(0).random(2 * rows) < 0.8
    return np.flatnonzero(kept)[:rows] + 1000.0


def hold_every_way(tmp_path: Path, **options: Any) -> None:
    """Live, replayed, swept and in a fleet, saved and resumed: the same sets, memory and cells."""
    controller = sp.intervals(**options)
    lower, upper, y = world(3, 120)
    y[40:45] = nan
    phase = gaps(120)
    tape = sp.Tape.from_arrays({"lower": lower, "upper": upper, "phase": phase}, y)
    trace = sp.replay(controller, tape)
    stream = sp.Stream(controller, missing="skip")
    rows = zip(lower.tolist(), upper.tolist(), phase.tolist(), y.tolist(), strict=True)
    for t, (low, high, given, label) in enumerate(rows):
        prediction = Phased((low, high), given)
        peeked = stream.peek(prediction)
        interval = stream.predict(prediction)
        assert peeked == interval
        assert tuple(interval) == (trace.lower[t], trace.upper[t])
        if t == 66:
            stream.save(tmp_path / "stream")
            stream = sp.Stream.load(tmp_path / "stream")
        stream.update(label)
    fleet = sp.Fleet(controller, 2)
    both = lambda column: np.stack([column, column[::-1]], axis=1)  # noqa: E731
    columns = {"lower": both(lower), "upper": both(upper), "phase": both(phase)}
    first = fleet.run({name: column[:50] for name, column in columns.items()}, both(y)[:50])
    fleet.save(tmp_path / "fleet")
    fleet = sp.Fleet.load(tmp_path / "fleet")
    assert (first.lower[:, 0] == trace.lower[:50]).all()
    for t in range(50, 120):
        shown = fleet.predict(tuple(column[t] for column in columns.values()))
        assert shown.upper[0] == trace.upper[t]
        fleet.update(both(y)[t])
    for state in (stream.state, fleet.state(0)):
        assert (state.memory, state.table) == (trace.state.memory, trace.state.table)
    resumed = sp.replay(controller, tape[30:], sp.replay(controller, tape[:30]).state)
    assert resumed.state.table == trace.state.table
    for begin in (None, controller.init()):
        swept = sp.sweep([controller, controller], tape, state=begin).columns["mean_length"]
        assert swept == pytest.approx([np.mean((trace.upper - trace.lower)[y == y])] * 2, rel=1e-12)


@pytest.mark.parametrize("options", [{"period": 7}, {"period": 24, "means": 2}], ids=str)
def test_a_season_is_the_same_in_every_mode(
    options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    hold_every_way(tmp_path, **options)


@pytest.mark.slow
def test_a_season_is_the_same_in_every_mode_compiled(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    hold_every_way(tmp_path, period=7)
    hold_late_labels()


def hold_late_labels() -> None:
    """A late label goes into the cell of the row it belongs to."""
    controller = sp.intervals(period=P)
    lower, upper, y = world(5, 80)
    phase = gaps(80)
    columns = {"lower": lower, "upper": upper, "phase": phase}
    trace = sp.replay(controller, sp.Tape.from_arrays(columns, y, delay=9))
    stream, fleet = sp.Stream(controller), sp.Fleet(controller, 1)
    for t in range(80):
        if t >= 10:
            stream.update(float(y[t - 10]), id=t - 10)
            fleet.update(y[t - 10 : t - 9], batch=t - 10)
        interval = stream.predict(Phased((float(lower[t]), float(upper[t])), phase[t]), id=t)
        shown = fleet.predict(
            {name: column[t : t + 1] for name, column in columns.items()}, batch=t
        )
        assert tuple(interval) == (shown.lower[0], shown.upper[0])
        assert tuple(interval) == (trace.lower[t], trace.upper[t])
    assert stream.state.table == fleet.state(0).table
    counts = [cell[2] for cell in stream.state.table]
    assert counts == [np.sum(phase[:70] % P == p) for p in range(P)]


def test_late_labels_go_into_the_cell_of_their_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    hold_late_labels()


def test_rows_are_counted_when_they_are_shown_and_not_when_they_are_peeked_at() -> None:
    stream = sp.Stream(sp.intervals(period=3))
    for _ in range(4):
        stream.peek((0.0, 1.0))
        stream.predict((0.0, 1.0))
        stream.update(0.5)
    assert [cell[2] for cell in stream.state.table] == [2.0, 1.0, 1.0]
    stream.predict(Phased((0.0, 1.0), 2))  # the next row would be that of phase 1
    with pytest.raises(PredictionError):
        stream.predict(Phased((0.0, nan), 2))
    stream.update(0.5)
    stream.predict((0.0, 1.0))
    stream.update(0.5)
    assert [cell[2] for cell in stream.state.table] == [3.0, 1.0, 2.0]


# What it takes


@pytest.mark.parametrize(
    ("prediction", "row"),
    [
        (Phased((1.0, 3.0), 5), (1.0, 3.0, 5.0)),
        (Phased(2.0, 5), (2.0, 2.0, 5.0)),
        (Phased(Spread(2.0, 1.0, 0.5), -1), (1.0, 2.5, -1.0)),
        ({"lower": 1.0, "upper": 3.0, "phase": 5}, (1.0, 3.0, 5.0)),
        ({"centre": 2.0, "low": 1.0, "high": 0.5, "phase": 5}, (1.0, 2.5, 5.0)),
    ],
    ids=str,
)
def test_a_prediction_may_say_its_phase(prediction: Any, row: Any) -> None:
    assert Intervals(period=24).read(prediction) == row


def test_a_spread_is_read_as_its_ends() -> None:
    family = Intervals()
    for spread in (Spread(12.0, 1.5, 2.0), {"low": 1.5, "centre": 12.0, "high": 2}):
        assert family.read(spread) == family.read(Quantiles(10.5, 14.0)) == (10.5, 14.0)
    rng = np.random.default_rng(0)
    centre, low, high = rng.normal(size=50), rng.random(50), rng.random(50)
    y = centre + rng.normal(size=50)
    spread = {"high": high, "centre": centre, "low": low}
    ends = {"lower": centre - low, "upper": centre + high}
    for period in (0, 5):
        controller = sp.intervals(period=period)
        traces = [sp.replay(controller, sp.Tape.from_arrays(form, y)) for form in (spread, ends)]
        assert (traces[0].lower == traces[1].lower).all()
        fleet = sp.Fleet(controller, 50)
        assert (fleet.predict(spread).upper == sp.Fleet(controller, 50).predict(ends).upper).all()


@pytest.mark.parametrize(
    ("period", "prediction", "message"),
    [
        (0, Phased((0.0, 1.0), 3), r"a phase needs intervals\(period=…\), got 3.0"),
        (7, Phased((0.0, 1.0), 0.5), "a phase must be a whole number within ±1e9, got 0.5"),
        (7, Phased((0.0, 1.0), inf), "a phase must be a whole number"),
        (7, Phased((0.0, 1.0), "noon"), "a phase must be a number, got 'noon'"),
        (0, (1.0, 2.0, 3.0), "three numbers can mean two things"),
        (7, (1.0, 2.0, 3.0), "three numbers can mean two things"),
        (0, Spread(0.0, -1.0, 1.0), "finite uncertainties of at least 0"),
    ],
    ids=str,
)
def test_what_is_no_phase_and_no_spread_is_refused(
    period: int, prediction: Any, message: str
) -> None:
    with pytest.raises(PredictionError, match=message):
        sp.Stream(sp.intervals(period=period)).predict(prediction)


def test_a_wrong_phase_in_arrays_is_refused_with_its_row_and_nothing_moves() -> None:
    controller, zeros = sp.intervals(period=4), np.zeros(3)
    columns = {"lower": zeros, "upper": zeros + 1.0, "phase": np.array([0.0, 0.5, 1.0])}
    with pytest.raises(PredictionError, match="row 1: a phase must be a whole number"):
        sp.replay(controller, sp.Tape.from_arrays(columns, zeros))
    fleet = sp.Fleet(controller, ["a", "b", "c"])
    before = fleet.state("a").memory
    with pytest.raises(PredictionError, match=r"whole number within ±1e9, got 0\.5 for stream 'b'"):
        fleet.predict(columns)
    assert fleet.state("a").memory == before
    for period in (1, -1, 10**7):
        with pytest.raises(InputError, match="period"):
            sp.intervals(period=period)


def test_phases_do_not_change_the_type_of_a_fleet() -> None:
    fleet = sp.Fleet(sp.intervals(period=4), 2)
    low, high = np.zeros(2, np.float32), np.ones(2, np.float32)
    assert fleet.predict({"lower": low, "upper": high, "phase": np.array([1, 2])}).lower.dtype == (
        np.float32
    )


# What it has learnt


def test_what_was_learnt_can_be_read_in_units_of_y() -> None:
    rng = np.random.default_rng(0)
    unit = 1e-3
    stream = sp.Stream(sp.intervals(period=4))
    first = stream.controller.correction.learnt(stream.state)  # type: ignore[attr-defined]
    assert (first.labels, first.bias, first.given, first.season) == (0, 0.0, 0.5, 0.0)
    seen = []
    for t in range(1_600):
        stream.predict((-0.1 * unit, 0.1 * unit))
        stream.update(unit * (5.0 + (3.0 if t % 4 == 1 else -1.0) + rng.normal()))
        if t >= 400 and t % 4 == 3:  # the next row has phase 0
            seen.append(stream.controller.correction.learnt(stream.state))  # type: ignore[attr-defined]
    learnt = seen[-1]
    assert (learnt.labels, learnt.period) == (1_600, 4)

    def mean(name: str) -> float:
        return float(np.mean([getattr(each, name) for each in seen])) / unit

    assert mean("bias") == pytest.approx(4.0, abs=0.15)
    assert mean("scale") == pytest.approx(np.sqrt(2 / np.pi), abs=0.1)  # a mean absolute value
    assert mean("season") == pytest.approx(1.5, abs=0.1)
    # Each tail has the noise, 1.64, and what the bias wobbles.
    assert 1.64 < mean("below") < 2.0
    assert 1.64 < mean("above") < 2.4
    assert learnt.given < 0.01  # the given interval is far too narrow


def test_ends_that_are_right_as_given_are_trusted() -> None:
    rng = np.random.default_rng(1)
    scale = np.exp(rng.normal(size=3000))
    y = rng.normal(size=3000) * scale
    stream, given = sp.Stream(sp.intervals()), []
    for end, label in zip(1.645 * scale, y, strict=True):
        stream.predict((-end, end))
        stream.update(label)
        given.append(stream.controller.correction.learnt(stream.state).given)  # type: ignore[attr-defined]
    assert min(given[1000:]) > 0.55  # 0.5 is no opinion
    assert np.mean(given[1000:]) > 0.75
