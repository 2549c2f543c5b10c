"""What sets cost: the same in every mode, called for when a model dies, never fed back."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.watch import (
    BEGAN,
    KINDS,
    NOW,
    begin,
    called,
    evidence,
    lasting,
    price_of,
    take,
)

RNG = np.random.default_rng(5)
ROWS, DEATH = 2400, 1200
RISK = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-30.0, 30.0))
CONTROLLERS = {
    "default": sp.intervals(),
    "paper": sp.Controller(sp.sets.Widen(), RISK),
    "centred": sp.Controller(sp.sets.Scale(), replace(RISK, start=1.0)),
    "two sides": sp.Controller(
        sp.sets.TwoSided(), [replace(RISK, level=0.05), replace(RISK, level=0.04)]
    ),
    "fan": sp.intervals(coverage=[0.5, 0.9]),
    "levels": sp.Controller(
        sp.sets.Nested(sp.sets.Widen(), 2), [replace(RISK, level=0.2), replace(RISK, level=0.1)]
    ),
}


def died(times: float = 6.0, rows: int = ROWS, seed: int = 0) -> tuple[Any, Any]:
    """Forecasts whose errors grow at row 1200, and the labels: a random walk."""
    rng = np.random.default_rng(seed)
    y = np.cumsum(rng.normal(size=rows))
    grown = np.where(np.arange(rows) < DEATH, 1.0, times)
    return y + grown * rng.normal(size=rows), y


def rows_of(name: str, forecast: Any) -> Any:
    if name == "centred":
        return {
            "centre": forecast,
            "low": np.ones(len(forecast)),
            "high": np.full(len(forecast), 2.0),
        }
    return {"lower": forecast - 0.5, "upper": forecast + 1.0}


def live(
    controller: sp.Controller, columns: Any, y: Any, late: int, whole: bool = False, **options: Any
) -> sp.Stream:
    stream = sp.Stream(controller, **options)
    rows = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    for t in range(len(y) + late):
        if t < len(y):
            stream.predict(np.array(rows[t]) if whole else rows[t], id=t)
        if t >= late:
            label = y[t - late]
            stream.update(int(label) if whole else float(label), id=t - late)
    return stream


@pytest.mark.parametrize("late", [0, 13])
@pytest.mark.parametrize("name", CONTROLLERS)
def test_live_replay_and_fleet_keep_the_same_price_to_the_bit(
    name: str, late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller, (forecast, y) = CONTROLLERS[name], died(rows=1500)
    columns = rows_of(name, forecast)
    stream = live(controller, columns, y, late)
    tape = sp.Tape.from_arrays(columns, y)
    expected = stream.state.watched
    assert price_of(expected) is not None
    assert expected[NOW + BEGAN + KINDS.index("model")] > 0
    assert sp.replay(controller, tape, delay=late).state.watched == expected
    fleet = sp.Fleet(controller, ["a", "b"])
    twice = [np.stack([column, column], 1) for column in columns.values()]
    fleet.run(tuple(twice), np.stack([y, y], 1), delay=late)
    assert fleet.state("b").watched == expected
    if not late and name in ("default", "two sides"):
        fleet = sp.Fleet(controller, 2)
        for row in range(len(y)):
            fleet.predict(tuple(column[row] for column in twice))
            fleet.update(np.array([y[row], np.nan]))
        assert fleet.state(0).watched == expected
        assert fleet.state(1).watched == controller.init().watched  # it had no label
    monkeypatch.setenv("SETPOINT_PLAIN", "0")
    if name == "default":
        assert sp.replay(controller, tape, delay=late).state.watched == expected


def test_it_never_changes_a_set_and_can_be_switched_off() -> None:
    columns, y = rows_of("default", died()[0]), died()[1]
    tape = sp.Tape.from_arrays(columns, y)
    off = replace(sp.intervals(), watch=False)
    on, without = sp.replay(sp.intervals(), tape), sp.replay(off, tape)
    assert np.array_equal(on.lower, without.lower)
    assert np.array_equal(on.theta, without.theta)
    assert without.state.watched == []
    assert sp.Stream(off, state=on.state).price is None
    assert sp.spec.from_toml(sp.spec.to_toml(off)) == off
    assert sp.spec.from_dict(sp.spec.to_dict(off)).watch is False
    assert "watch" not in sp.spec.to_dict(sp.intervals())
    with pytest.raises(sp.errors.InputError, match="watch must be True or False, got 1"):
        sp.Controller(sp.sets.Widen(), RISK, watch=1)


def test_a_dead_model_calls_though_coverage_is_held(tmp_path: Path) -> None:
    alarms: list[Any] = []
    forecast, y = died(8.0)
    stream = live(sp.intervals(), rows_of("default", forecast), y, 0, on_alarm=alarms.append)
    first = next(alarm for alarm in alarms if alarm.kind == "model")
    assert DEATH < first.step < DEATH + 60
    assert abs(first.since - DEATH) < 40
    for words in ("your model's errors are", "since label 1,", "covered", "guarantee still holds"):
        assert words in str(first)
    assert len([alarm for alarm in alarms if alarm.kind == "model"]) == 1  # once an episode
    assert "model" in stream.alarms
    assert stream.price is not None
    assert stream.price.model > 4
    stream.save(tmp_path / "stream.zip")
    again = sp.Stream.load(tmp_path / "stream.zip")
    assert again.state.watched == stream.state.watched
    assert again.alarms == stream.alarms
    stream.acknowledge()
    assert stream.alarms == {}
    assert stream.price is None
    for _row in range(800):
        stream.predict(0.0)
        stream.update(float(8.0 * RNG.normal()))
    assert stream.price is not None
    assert 0.5 < stream.price.model < 2.0


def test_a_restless_world_is_not_called_a_bad_model() -> None:
    rng, rows = np.random.default_rng(3), 2600
    restless = np.where(np.arange(rows) < DEATH, 1.0, 12.0)
    y = np.cumsum(restless * rng.normal(size=rows))
    forecast = np.concatenate([[0.0], y[:-1]])  # a naive forecast
    kinds: set[str] = set()
    tape = rows_of("default", forecast)
    live(sp.intervals(), tape, y, 0, on_alarm=lambda alarm: kinds.add(alarm.kind))
    assert "world" in kinds
    assert not kinds & {"dearer", "model"}


def test_a_better_model_is_said_once() -> None:
    alarms: list[Any] = []
    forecast, y = died(0.1)
    live(sp.intervals(), rows_of("default", forecast), y, 0, on_alarm=alarms.append)
    assert [a.kind for a in alarms if a.kind in KINDS] == ["cheaper"]


def test_labels_that_stop_coming_call_once() -> None:
    alarms: list[Any] = []
    stream = sp.Stream(sp.intervals(), on_alarm=alarms.append)
    for row in range(40):
        stream.predict(1.0, id=row)
        stream.update(1.5, id=row)
    for row in range(40, 90):
        stream.predict(1.0, id=row)
    assert [alarm.kind for alarm in alarms] == ["silence"]
    assert "predictions wait for their actual values" in str(alarms[0])
    assert "; the oldest is 40: " in str(alarms[0])
    for row in range(40, 90):
        stream.update(1.5, id=row)
    for row in range(90, 290):  # labels come again, and then stop again
        stream.predict(1.0, id=row)
        if row < 120:
            stream.update(1.5, id=row)
    assert [alarm.kind for alarm in alarms] == ["silence", "silence"]


def test_one_wild_label_calls_nobody_and_blinds_nobody() -> None:
    alarms: list[Any] = []
    forecast, y = died(8.0)
    y[[50, 400, 900]] = 1e12
    columns = rows_of("default", forecast)
    live(sp.intervals(), columns, y, 0, on_alarm=alarms.append)
    kinds = [(alarm.kind, alarm.step) for alarm in alarms if alarm.kind in KINDS]
    assert kinds
    assert all(step > DEATH for _, step in kinds)


@pytest.mark.parametrize("late", [0, 5])
@pytest.mark.parametrize("controller", [sp.label_sets(), sp.label_sets(never_empty=True)])
def test_label_sets_keep_the_same_price_however_they_run(
    controller: sp.Controller, late: int
) -> None:
    rng, rows = np.random.default_rng(8), 900
    y = rng.integers(3, size=rows)
    p = np.exp(rng.normal(size=(rows, 3)) + 2.0 * (y[:, None] == np.arange(3)))
    p /= p.sum(axis=1, keepdims=True)
    columns = {str(k): p[:, k] for k in range(3)}
    stream = live(controller, columns, y, late, whole=True)
    expected = stream.state.watched
    assert stream.price is not None
    trace = sp.replay(controller, sp.Tape.from_arrays(columns, y), delay=late)
    assert trace.state.watched == expected
    if not late:
        fleet = sp.Fleet(controller, 1)
        for row in range(rows):
            fleet.predict(p[row][None])
            fleet.update(y[row][None].astype(float))
        assert fleet.state(0).watched == expected


@pytest.mark.parametrize("classes", [2, 10])
def test_label_sets_are_watched_by_the_rank_of_the_true_class(classes: int) -> None:
    rng, alarms = np.random.default_rng(4), list[Any]()
    stream = sp.Stream(sp.label_sets(), on_alarm=alarms.append)
    for row in range(1500):
        true = int(rng.integers(classes))
        logits = rng.normal(size=classes)
        logits[true] += 3.0 if row < DEATH else 0.0
        p = np.exp(logits) / np.exp(logits).sum()
        stream.predict(p)
        stream.update(true)
    kinds = {alarm.kind: alarm.step for alarm in alarms if alarm.kind in KINDS}
    assert "model" in kinds
    assert min(kinds.values()) > DEATH
    assert stream.price is not None
    assert stream.price.world == 1.0


@pytest.mark.parametrize("every", [1, 4])
def test_paths_are_watched_however_their_labels_come(every: int) -> None:
    """A path counts once all of it is known; its model is watched where the band is repaired."""
    rng, alarms, horizon = np.random.default_rng(6), list[Any](), 4
    controller = sp.paths(horizon, totals=[horizon], every=every)
    world = np.cumsum(rng.normal(size=every * 1500 + horizon))
    stream, whole = sp.Stream(controller, on_alarm=alarms.append), sp.Stream(controller)
    died = 1100
    for row in range(1500):
        y = world[every * row : every * row + horizon]
        error = rng.normal(size=horizon) + (0.0 if row < died else 9.0)
        for one in (stream, whole):
            one.predict((y + error).tolist(), id=row)
        whole.update(y.tolist(), id=row)
        for step in (2, 1, 4, 3):
            stream.update(float(y[step - 1]), id=row, step=step)
    kinds = {alarm.kind: alarm.step for alarm in alarms if alarm.kind in KINDS}
    assert "model" in kinds
    assert min(kinds.values()) > died
    assert stream.price is not None
    assert stream.price.model > 2.0
    assert "model" in whole.alarms
    assert sp.Stream(controller, state=stream.state).price == stream.price


def test_images_are_watched_by_what_their_pixels_needed() -> None:
    rng, alarms = np.random.default_rng(4), list[Any]()
    risk = sp.Risk(sp.losses.ImageMiscoverage(), 0.2, sp.steps.Fixed(0.05), bounds=(-50.0, 50.0))
    stream = sp.Stream(sp.Controller(sp.sets.PixelScale(), risk), on_alarm=alarms.append)
    frame = np.ones((4, 5))
    for row in range(1300):
        stream.predict((0.0 * frame, frame, frame))
        stream.update((1.0 if row < DEATH else 6.0) * rng.normal(size=frame.shape))
    kinds = {alarm.kind: alarm.step for alarm in alarms if alarm.kind in KINDS}
    assert kinds
    assert min(kinds.values()) > DEATH


def test_evidence_against_a_healthy_model_is_one_on_the_mean_at_most() -> None:
    values = []
    for seed in range(150):
        forecast, y = died(1.0, rows=1400, seed=seed)
        state = sp.replay(CONTROLLERS["paper"], sp.Tape.from_arrays(rows_of("", forecast), y)).state
        values.append(evidence(state.watched))
    assert np.mean(values) < 1.0
    assert not any(called(values))


def test_a_panel_calls_for_the_dead_ones_and_few_others() -> None:
    values, dead = [], 12
    for seed in range(60):
        forecast, y = died(5.0 if seed < dead else 1.0, rows=1500, seed=seed)
        state = sp.replay(CONTROLLERS["paper"], sp.Tape.from_arrays(rows_of("", forecast), y)).state
        values.append(evidence(state.watched))
    calls = called(values)
    assert sum(calls[:dead]) == dead
    assert sum(calls[dead:]) <= 1


def test_a_state_that_is_no_price_is_refused() -> None:
    stream = sp.Stream(sp.intervals())
    for price in ([1.0], [float("nan")] * len(stream.state.watched)):
        content = {**stream.content(), "price": price}
        with pytest.raises(sp.errors.StateError, match="price"):
            sp.Stream.restored(stream.controller, content)
    older = sp.Stream.restored(stream.controller, {**stream.content(), "price": None})
    assert older.state.watched == begin()  # what was not watched before is from now on
    assert lasting([]) == {}
    assert evidence([]) == 0.0


EXTREMES = (0.0, 1e-320, 1.0, 5.0, 1e299, 9.9e299)


@pytest.mark.parametrize("calm", [None, 0.0, 1e-310, 1.0])
def test_no_finite_cost_makes_a_memory_that_is_not_finite(calm: float | None) -> None:
    rng = np.random.default_rng(0)
    now, held = tuple(begin()[:NOW]), begin()[NOW:]
    for row in range(1600):
        costs = np.where(rng.random(4) < 0.5, 10.0 ** rng.uniform(-300, 308, 4), 1.7e308)
        costs = np.where(rng.random(4) < 0.5, rng.choice(EXTREMES, 4), costs)
        if calm is not None and row < 1200:
            costs[:] = calm
        need, error, y, width = costs.tolist()
        y = -y if rng.random() < 0.5 else y
        now = take(now, held, need, error, y, min(width, 9.9e299), float(rng.integers(50)))
    assert np.isfinite([*now, *held]).all()
