"""Seasons in a learning family: the equations, one answer in every mode, and what can be read."""

from math import inf, log, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.correction import Intervals
from setpoint.errors import InputError, PredictionError
from setpoint.predictions import Quantiles, Row, Spread

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


class ByHand:
    """The rule written out in the order of its equations, with matrices; nothing waits."""

    slow, medium, fast, ridge, wild, step, far, trust = 0.007, 0.15, 0.3, 0.1, 15, 0.05, 4, 50
    periods = (7, 12, 24, 48, 96, 144, 168)

    def __init__(self, features: int, period: int | None, r: float = 0.1) -> None:
        n = 5 + features
        self.r, self.period, self.features = r, period, features
        self.A, self.B, self.w, self.k = np.zeros((n, n)), np.zeros(n), np.zeros(n), np.zeros(n)
        self.qa = self.qb = -log(r)
        self.n, self.S = 0.0, 0.0
        self.e1 = self.m = self.ml = self.Aa = self.Ab = self.R = 0.0
        self.places = np.zeros((features + 1, 3))  # mean, spread, seen
        self.cells = np.zeros((features + 1, 17, 3))
        self.tables = {P: np.zeros((P, 2)) for P in ([period] if period else self.periods)}
        self.fit = np.zeros((7, 4))
        self.born, self.pick, self.ee, self.ss2, self.weight = 0, None, 1.0, 1.0, 0.0

    def at(self, i: int, value: float) -> float | None:
        if value != value:
            return None
        mean, spread, _ = self.places[i]
        return float(
            (np.clip((value - mean) / spread if spread > 0 else 0.0, -1.999, 1.999) + 2) * 4
        )

    def cell(self, i: int, value: float) -> tuple[float, float]:
        place = self.at(i, value)
        if place is None:
            return 0.0, 0.0
        knot, error, size = int(place), 0.0, 0.0
        for q, part in ((0, 1 - place + knot), (1, place - knot)):
            if part > 0:
                c, t, seen = self.cells[i, knot + q]
                error += part * c if seen else 0.0
                size += part * (t if seen else self.ss)
        return error, con(size, self.ss)

    def told(self, period: int, time: int) -> tuple[float, float]:
        error, size = self.tables[period][time % period]
        return (error, con(size, self.ss)) if size > 0 else (0.0, 0.0)

    def predict(self, lower: float, upper: float, x: Any, time: int) -> tuple[float, float]:
        mid, h = (lower + upper) / 2, (upper - lower) / 2
        if self.n == 0:
            self.ss = self.sf = h / -log(self.r)
            self.hm, self.dm, dx = h, self.ss, 0.0
        else:
            dx = mid - self.ml
        D = abs(dx) + self.ss
        values = [mid, *x]
        cells = [self.cell(i, value) for i, value in enumerate(values)]
        if self.period:
            self.seen = {self.period: self.told(self.period, time)}
            season = self.seen[self.period]
        else:
            none = (0.0, 0.0)
            self.seen = {p: self.told(p, time) if self.born else none for p in self.periods}
            season = self.seen.get(self.pick, none)  # type: ignore[arg-type]
        first = self.e1 - self.m, dx, self.m
        X = np.array([*first, *(c for c, _ in cells), season[0]])
        F = np.array([con(self.sf, self.ss), con(h, self.hm), con(D, self.dm),
                      *(f for _, f in cells), season[1]])  # fmt: skip
        c, s = float(self.w @ X), self.ss * np.exp(np.clip(self.k @ F, -20, 20))
        own = c - s * self.qa, c + s * self.qb
        given = -max(h + s * self.Aa, h / 10), max(h + s * self.Ab, h / 10)
        v = 1 / (1 + np.exp(self.trust * self.R))
        low, high = (v * a + (1 - v) * b for a, b in zip(own, given, strict=True))
        S = self.S
        u = 0.15 * S / (1 - (max(S, 0) / 10) ** 8) if S < 10 else np.inf
        centre, half = mid + (low + high) / 2, max((high - low) / 2, 0)
        ends = centre - half * np.exp(u), centre + half * np.exp(u)
        self.shown = ends, mid, h, D, X, F, c, s, own, given, values, time, self.m
        return ends

    def update(self, y: float) -> None:
        ends, mid, h, D, X, F, c, s, own, given, values, time, mean = self.shown
        r = self.r
        self.S = max(self.S + (not ends[0] <= y <= ends[1]) - r, -10.0)
        self.n += 1
        b = 1 / (self.n + 1)
        beta, e = max(self.slow, b), y - mid
        rho, jump, cap = e - c, e - self.e1, self.wild * max(s, self.sf, self.ss)
        near, jump = c + np.clip(rho, -cap, cap), self.e1 + np.clip(jump, -cap, cap)
        e = near if abs(rho) <= abs(e - self.e1) else jump
        rho = np.clip(rho, -cap, cap)
        pin = lambda a, b: r / 2 * (b - a) + max(a - e, e - b, 0)  # noqa: E731
        self.R += self.slow * (np.clip((pin(*own) - pin(*given)) / s, -2, 2) - self.R)
        self.Ab += beta * ((e > given[1]) - r / 2)
        self.Aa += beta * ((e < given[0]) - r / 2)
        z = rho / s
        self.qb += beta * ((z > self.qb) - r / 2)
        self.qa += beta * ((-z > self.qa) - r / 2)
        self.k = np.clip(self.k + self.step * (min(abs(z), self.wild) - 1) * F, -2, 2)
        omega = min(1.0, self.far * s / abs(rho)) if rho else 1.0
        self.A += beta * (omega * np.outer(X, X) - self.A)
        self.B += beta * (omega * X * e - self.B)
        diagonal = self.ridge * self.ss**2 * np.array([1.0] * 3 + [2.0] * (len(X) - 3))
        M = self.A + np.diag(diagonal)
        w = self.w  # a round of Gauss and Seidel, the first three together
        w[:3] = np.linalg.solve(M[:3, :3], self.B[:3] - M[:3, 3:] @ w[3:])
        for i in range(3, len(w)):
            w[i] += (self.B[i] - M[i] @ w) / M[i, i]
        rest, distance = rho, abs(rho)
        self.learn_season(e - mean, distance, beta, time)
        self.sf += max(self.fast, b) * (distance - self.sf)
        self.ss += beta * (distance - self.ss)
        self.hm, self.dm = self.hm + beta * (h - self.hm), self.dm + beta * (D - self.dm)
        for i, value in enumerate(values):
            if value == value:
                self.learn_cell(i, value, rest + self.w[3 + i] * X[3 + i], distance)
        self.m += max(self.medium, b) * (e - self.m)
        self.e1, self.ml = e, mid

    def learn_cell(self, i: int, value: float, rest: float, distance: float) -> None:
        place = self.places[i]
        place[2] += 1
        rate = max(0.002, 1 / place[2])
        place[0] += rate * (value - place[0])
        place[1] += rate * (abs(value - place[0]) - place[1])
        at = self.at(i, value)
        knot = int(at)  # type: ignore[arg-type]
        for q, part in ((0, 1 - at + knot), (1, at - knot)):  # type: ignore[operator]
            if part > 0:
                cell = self.cells[i, knot + q]
                if cell[2] == 0:
                    cell[:2] = 0, self.ss
                cell[2] += part
                pace = part * max(0.02, 1 / (cell[2] + 1))
                cell[0] += pace * (rest - cell[0])
                cell[1] += pace * (distance - cell[1])

    def learn_season(self, error: float, distance: float, beta: float, time: int) -> None:
        if self.period == 0:
            return
        if self.period is None:
            e, s = np.clip(error / self.ss, -4, 4), min(distance / self.ss - 1, 3)
            self.ee += beta * (e * e - self.ee)
            self.ss2 += beta * (s * s - self.ss2)
            if not self.born:
                self.weight += 1
                for row, P in zip(self.fit, self.periods, strict=True):
                    quarter = 4 * (time % P) // P
                    sign = 1 if quarter < 2 else -1
                    row[quarter % 2] += sign * e
                    row[2 + quarter % 2] += sign * s
                weight = self.weight
                if weight >= 640:
                    self.fit, self.weight = 0.8 * self.fit, 0.8 * weight
                squares = self.fit**2
                loud = (squares[:, 0] + squares[:, 1] > 6 * weight * self.ee) | (
                    squares[:, 2] + squares[:, 3] > 6 * weight * self.ss2
                )
                if self.n % 8 == 0 and (loud & (self.n > np.array(self.periods))).any():
                    self.born, self.fit = 1, np.zeros((7, 4))
                return
            worth = {}
            for row, (P, (told, contrast)) in zip(self.fit, self.seen.items(), strict=True):
                told = np.clip(told / self.ss, -4, 4)
                row += beta * (np.array([told * e, told**2, contrast * s, contrast**2]) - row)
                a, c = max(row[0], 0), max(row[2], 0)
                if self.born > 2 * P:
                    worth[P] = a * a / ((row[1] + 1e-3) * self.ee)
                    worth[P] += c * c / ((row[3] + 1e-3) * self.ss2)
                    worth[P] *= 1.2 if self.pick == P else 1.0
            best, most = None, 0.0
            for P, value in worth.items():  # a multiple of a season is one too
                best, most = (P, value) if value > 1.1 * most else (best, most)
            self.pick = best if most > 0.02 else None if most < 0.01 else self.pick
        labels = self.n if self.period else self.born
        for P, table in self.tables.items():
            visits, cell = (labels - 1) // P + 1, table[time % P]
            cell[0] += max(0.2, 1 / (visits + 1)) * (error - cell[0])
            cell[1] += (max(0.2, 1 / visits) if cell[1] > 0 else 1.0) * (distance - cell[1])
        self.born += 1


def con(a: float, b: float) -> float:
    return (a - b) / (a + b) if a + b > 0 else 0.0


@pytest.mark.parametrize(
    ("features", "period"), [(0, 0), (0, P), (0, None), (2, None), (2, P)], ids=str
)
def test_sets_are_those_of_the_equations(features: int, period: int | None) -> None:
    lower, upper, y = world(features + 1)
    y[50:60] = nan
    x = np.random.default_rng(5).normal(size=(len(y), features)).cumsum(axis=0)
    x[::9] = nan
    hand, ends = ByHand(features, period), []
    for t in range(len(y)):
        ends.append(hand.predict(lower[t], upper[t], x[t], t))
        if y[t] == y[t]:
            hand.update(y[t])
    names = [f"x{i}" for i in range(features)]
    known = dict(zip(names, x.T, strict=True))
    controller = sp.intervals(period=period, features=names, support=None)
    tape = sp.Tape.from_arrays({"lower": lower, "upper": upper}, y, extras=known)
    trace = sp.replay(controller, tape)
    near = 1e-8 * np.mean(np.diff(ends, axis=1))
    assert np.abs(trace.lower - np.array(ends)[:, 0]).max() <= near
    assert np.abs(trace.upper - np.array(ends)[:, 1]).max() <= near
    if period is None:
        assert hand.born > 300
        assert trace.state.memory[0] == hand.born
        assert hand.pick is not None


def test_a_season_pays_and_a_wrong_one_costs_little() -> None:
    lower, upper, y = world(4, 2000)
    tape = sp.Tape.from_arrays({"lower": lower, "upper": upper}, y)
    traces = {period: sp.replay(sp.intervals(period=period), tape) for period in (0, P, 24)}
    widths = {period: np.mean(trace.upper - trace.lower) for period, trace in traces.items()}
    assert widths[P] < 0.8 * widths[0]
    found = sp.replay(sp.intervals(), tape)
    assert np.mean(found.upper - found.lower) < 0.85 * widths[0]
    assert sp.intervals().correction.learnt(found.state).period == P  # type: ignore[union-attr]
    assert widths[24] < 1.03 * widths[0]
    assert all(abs(trace.coverage - 0.9) < 0.01 for trace in traces.values())


def gaps(rows: int) -> np.ndarray:
    """Phases of rows of which some are missing, counted from any day."""
    kept = np.random.default_rng(0).random(2 * rows) < 0.8
    return np.flatnonzero(kept)[:rows] + 1000.0


def known(rows: int) -> dict[str, np.ndarray]:
    """Features of rows: a number, of which some are missing, and a word."""
    rng = np.random.default_rng(8)
    x, sky = rng.normal(size=rows).cumsum(), rng.choice(["rain", "sun", "snow"], rows)
    x[::7] = nan
    return {"x": x, "sky": sky}


FEATURES: Any = {"features": ["x", "sky"], "categories": {"sky": ["sun", "rain"]}}


def hold_every_way(tmp_path: Path, rows: int = 120, **options: Any) -> None:
    """Live, replayed, swept and in a fleet, saved and resumed: the same sets, memory and cells."""
    controller = sp.intervals(**options)
    lower, upper, y = world(3, rows)
    y[40:45] = nan
    phase, extras = gaps(rows), known(rows) if "features" in options else {}
    tape = sp.Tape.from_arrays({"lower": lower, "upper": upper, "phase": phase}, y, extras=extras)
    trace = sp.replay(controller, tape)
    stream = sp.Stream(controller, missing="skip")
    for t in range(rows):
        prediction = Row((float(lower[t]), float(upper[t])), float(phase[t]))
        features = {name: column.tolist()[t] for name, column in extras.items()} or None
        peeked = stream.peek(prediction, features=features)
        interval = stream.predict(prediction, features=features)
        assert peeked == interval
        assert tuple(interval) == (trace.lower[t], trace.upper[t])
        if t == 66:
            stream.save(tmp_path / "stream")
            stream = sp.Stream.load(tmp_path / "stream")
        stream.update(float(y[t]))
    fleet = sp.Fleet(controller, 2)
    both = lambda column: np.stack([column, column[::-1]], axis=1)  # noqa: E731
    columns = {"lower": both(lower), "upper": both(upper), "phase": both(phase)}
    more = {name: both(column) for name, column in extras.items()}
    first = fleet.run(
        {name: column[:50] for name, column in columns.items()}, both(y)[:50],
        features={name: column[:50] for name, column in more.items()} or None,
    )  # fmt: skip
    fleet.save(tmp_path / "fleet")
    fleet = sp.Fleet.load(tmp_path / "fleet")
    assert (first.lower[:, 0] == trace.lower[:50]).all()
    for t in range(50, rows):
        shown = fleet.predict(
            tuple(column[t] for column in columns.values()),
            features={name: column[t] for name, column in more.items()} or None,
        )
        assert shown.upper[0] == trace.upper[t]
        fleet.update(both(y)[t])
    for state in (stream.state, fleet.state(0)):
        assert content(state) == content(trace.state)
    resumed = sp.replay(controller, tape[30:], sp.replay(controller, tape[:30]).state)
    assert content(resumed.state) == content(trace.state)
    for begin in (None, controller.init()):
        swept = sp.sweep([controller, controller], tape, state=begin).columns["mean_length"]
        assert swept == pytest.approx([np.mean((trace.upper - trace.lower)[y == y])] * 2, rel=1e-12)


def content(state: sp.State) -> Any:
    return state.memory, state.table, state.annex


@pytest.mark.parametrize(
    "options",
    [{"rows": 400}, {"period": 7}, {"period": 24, "recentre": False}, {"rows": 400, **FEATURES}],
    ids=["found", "7", "24 on centre", "features"],
)
def test_a_season_is_the_same_in_every_mode(
    options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    hold_every_way(tmp_path, **options)


@pytest.mark.slow
def test_a_season_is_the_same_in_every_mode_compiled(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    hold_every_way(tmp_path, period=7)
    hold_every_way(tmp_path, rows=400, **FEATURES)


def outage(rows: int) -> np.ndarray:
    """The row before which each label is known: some rows late, and once none for long."""
    late = np.random.default_rng(2).integers(0, 9, rows)
    known = np.arange(rows) + 1 + late
    known[150:180] = 190
    return known


def hold_outages(tmp_path: Path, **options: Any) -> None:
    """With late labels and an outage: live, replayed, in a fleet, in a store, in buckets."""
    controller, rows = sp.intervals(**options), 400
    lower, upper, y = world(6, rows)
    y[::17] = nan
    at, extras = outage(rows), known(rows) if "features" in options else {}
    tape = sp.Tape.from_arrays(
        {"lower": lower, "upper": upper}, y, time=np.arange(rows), known=at, extras=extras
    )
    trace = sp.replay(controller, tape)
    fleet = sp.Fleet(controller, 1)
    one = lambda column: np.asarray(column)[:, None]  # noqa: E731
    shown = fleet.run(
        (one(lower), one(upper)), one(y), known=one(at),
        features={name: one(column) for name, column in extras.items()} or None,
    )  # fmt: skip
    assert (shown.lower[:, 0] == trace.lower).all()
    stream, order = sp.Stream(controller, missing="skip"), np.lexsort((np.arange(rows), at))
    ready, done = at[order], 0
    store = sp.Store(tmp_path / "streams.sqlite")
    stored = store.stream("a", controller)
    for t in range(rows):
        if t == 250:  # what is stored is all there is
            store.close()
            store = sp.Store(tmp_path / "streams.sqlite")
            stored = store.stream("a")
        while done < rows and ready[done] <= t:
            row = int(order[done])
            stream.update(float(y[row]), id=row)
            if y[row] == y[row]:
                stored.update(float(y[row]), id=row)
            else:
                stored.drop(id=row)
            done += 1
        features = {name: column.tolist()[t] for name, column in extras.items()} or None
        ends = float(lower[t]), float(upper[t])
        interval = stream.predict(ends, id=t, features=features)
        assert tuple(interval) == (trace.lower[t], trace.upper[t])
        assert stored.predict(ends, id=t, features=features) == interval
    store.close()
    assert len(stream.state.annex) > 0
    misses = np.where(trace.observed, ~trace.covered - 0.1, 0.0)[np.lexsort((np.arange(rows), at))]
    bound = trace.certificate().risks[0].constant_upper
    assert bound is not None
    assert np.cumsum(misses).max() <= bound


@pytest.mark.parametrize("options", [{}, {"period": 7}, FEATURES], ids=["found", "7", "features"])
def test_late_labels_and_outages_are_the_same_in_every_mode(
    options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    hold_outages(tmp_path, **options)


# What it takes


@pytest.mark.parametrize(
    ("prediction", "row"),
    [
        (Row((1.0, 3.0), 5), (1.0, 3.0, 5.0)),
        (Row(2.0, 5), (2.0, 2.0, 5.0)),
        (Row(Spread(2.0, 1.0, 0.5), -1), (1.0, 2.5, -1.0)),
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
        assert family.read(spread)[:2] == family.read(Quantiles(10.5, 14.0))[:2] == (10.5, 14.0)
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
        (7, Row((0.0, 1.0), 0.5), "a phase must be a whole number within ±1e9, got 0.5"),
        (7, Row((0.0, 1.0), inf), "a phase must be a whole number"),
        (7, Row((0.0, 1.0), "noon"), "a phase must be a number, got 'noon'"),
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
