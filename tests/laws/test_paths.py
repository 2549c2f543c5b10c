"""Paths keep every account within its bound, whatever comes, is missing or never comes."""

from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.steps.account import Book
from tests.laws.mixtures import play_path


@pytest.mark.parametrize("chunk", range(3))
def test_every_account_stays_within_its_bound(chunk: int) -> None:
    for seed in range(chunk * 6, (chunk + 1) * 6):
        play_path(seed)


def test_a_missing_step_that_is_counted_as_open_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law above can fail: here a path with a missing step never closes its exposure."""

    def wrong(self: Any, shown: Any, lam: Any) -> Any:
        judged = zip(self.outcomes(shown, lam), lam, strict=True)
        return tuple([lam if o is None or o != o else nan for o, lam in judged])

    monkeypatch.setattr(sp.sets.paths.Heard, "left", wrong)
    with pytest.raises((AssertionError, sp.errors.SetpointError)):
        [play_path(seed) for seed in range(6)]


def test_a_path_is_a_miss_at_its_first_label_outside() -> None:
    stream = sp.Stream(sp.paths(3, totals=[3]))
    for t in range(30):
        stream.predict([0.0, 0.0, 0.0], id=t)
        stream.update([(-1.0) ** t, 1.0, -1.0], id=t)
    stream.predict([0.0, 0.0, 0.0], id="x")
    assert stream.update(1e6, id="x", step=2) == (1.0, None)
    books = [Book(*risk.step) for risk in stream.state.risks]
    assert [book.waiting for book in books] == [0.0, 1.0]
    assert stream.update(0.0, id="x", step=1) is None
    assert stream.update(nan, id="x", step=3) is None  # no total, and the path is closed
    assert not stream.pending
    assert [Book(*risk.step).waiting for risk in stream.state.risks] == [0.0, 0.0]
    assert stream.state.risks[1].unjudged == 1.0


@pytest.mark.parametrize("every", [1, 3, 8])
@pytest.mark.parametrize("given", ["point", "ends"])
def test_live_and_replay_are_the_same_to_the_bit(every: int, given: str) -> None:
    rng, horizon, count = np.random.default_rng(every), 8, 60
    forecast = rng.normal(size=(count, horizon)) + 50.0
    half = 1.0 + rng.random((count, horizon)) if given == "ends" else np.zeros((count, horizon))
    y = forecast + rng.normal(size=(count, horizon)).cumsum(axis=1)
    y[rng.random(y.shape) < 0.1] = nan
    steps, origins = np.tile(np.arange(1, horizon + 1), count), np.repeat(np.arange(count), horizon)
    columns = {"lower": (forecast - half).ravel(), "upper": (forecast + half).ravel()}
    tape = sp.Tape.from_arrays(columns, y.ravel(), horizon=steps, time=origins)
    coverage = [0.5, 0.9] if every == 3 else 0.9
    controller = sp.paths(horizon, coverage, totals=[3], maximum=True, minimum=True, every=every)
    trace, stream = sp.replay_paths(controller, tape), sp.Stream(controller)
    for t in range(count + horizon):
        for moment in range((t - 1) * every, t * every):  # each label for every path that has it
            for o in list(stream.pending):
                if moment - o * every < horizon:
                    stream.update(y[o, moment - o * every], id=o, step=moment - o * every + 1)
        if t < count:
            pairs = np.column_stack([forecast[t] - half[t], forecast[t] + half[t]])
            shown = stream.predict(pairs, id=t)
            assert (shown.lower == trace.lower[t]).all()
            assert (shown.upper == trace.upper[t]).all()
            for part, (low, high) in zip(shown.parts, trace.ends, strict=True):
                assert (low[t] == part.lower).all()
                assert (high[t] == part.upper).all()
    assert not stream.pending
    assert stream.state.position == trace.states[None].position
    assert stream.state.table == trace.states[None].table


def test_a_stream_saved_between_two_steps_goes_on_as_if_nothing_was(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    stream = sp.Stream(sp.paths(4, totals=[2], every=2))
    for t in range(40):
        stream.predict(rng.normal(size=4), id=t)
        if t:
            stream.update(rng.normal(size=4), id=t - 1)
    stream.update(0.5, id=39, step=1)
    stream.save(tmp_path / "paths.sp")
    twin = sp.Stream.load(tmp_path / "paths.sp")
    assert twin.receipt(39).heard[1] == stream.receipt(39).heard[1] == (True, False, False, False)
    for t in range(40, 50):
        forecast, y = rng.normal(size=4), rng.normal(size=4)
        mine, its = (s.predict(forecast, id=t) for s in (stream, twin))
        assert (mine.upper == its.upper).all()
        assert mine.total == its.total
        labels = [nan, *y[1:]] if t == 40 else y
        assert stream.update(labels, id=t - 1) == twin.update(labels, id=t - 1)
    assert stream.state.table == twin.state.table


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda s: s.predict([1.0, 2.0]), "a path must be 3 numbers"),
        (lambda s: s.predict([1.0, nan, 2.0]), "finite"),
        (lambda s: s.update([1.0, 2.0], id="a"), "needs 3 labels"),
        (lambda s: s.update(1.0, id="a", step=4), "step must lie between 1 and 3"),
        (lambda s: s.update(2.0, id="a", step=1), "step 1 already has its label"),
        (lambda s: s.update(inf, id="a", step=2), "finite"),
        (lambda s: s.update(-1.0, id="a", step=2), "support"),
    ],
)
def test_peeking_and_wrong_input_change_nothing(wrong: Any, words: str) -> None:
    stream = sp.Stream(sp.paths(3, totals=[3], support=(0.0, inf)))
    stream.predict([1.0, 2.0, 3.0], id="a")
    stream.update(1.0, id="a", step=1)
    before = stream.state
    stream.peek([5.0, 6.0, 7.0])
    with pytest.raises(sp.errors.SetpointError, match=words):
        wrong(stream)
    assert stream.state.table == before.table
    assert stream.state.position == before.position


def events_of(seed: int, count: int = 40) -> list[dict[str, Any]]:
    """Paths of four steps, overlapping, with labels in any order, missing ones and drops."""
    rng, events, open_ = np.random.default_rng(seed), list[dict[str, Any]](), dict[int, list[int]]()
    for t in range(count):
        events.append({"id": t, "prediction": (10.0 + rng.normal(size=4)).tolist()})
        open_[t] = list(rng.permutation(4) + 1)
        for id in list(open_):
            for _ in range(int(rng.integers(3))):
                if not open_.get(id):
                    break
                y = None if rng.random() < 0.1 else float(10.0 + 2.0 * rng.normal())
                rest = open_[id]
                if rng.random() < 0.05:
                    events.append({"id": id, "drop": True})
                    rest.clear()
                elif rng.random() < 0.2:
                    told = [y if step in rest else None for step in range(1, 5)]
                    events.append({"id": id, "y": told})
                    rest.clear()
                else:
                    events.append({"id": id, "y": y, "step": int(rest.pop())})
                if not rest:
                    del open_[id]
    return events


def played(stream: sp.Stream, events: list[dict[str, Any]]) -> list[Any]:
    """What a live stream says to events."""
    answers: list[Any] = []
    for event in events:
        if "prediction" in event:
            shown = stream.predict(event["prediction"], id=event["id"])
            low = shown.total[4].lower if shown.total else None
            answers.append(([*shown.lower], [*shown.upper], low))
        elif "y" in event:
            answers.append(stream.update(event["y"], id=event["id"], step=event.get("step")))
        else:
            answers.append(stream.drop(event["id"]))
    return answers


@pytest.mark.parametrize(
    ("coverage", "beside"),
    [(0.9, {"totals": [2, 4], "maximum": True}), ([0.5, 0.9], {"totals": [2, 4]}), (0.9, {})],
)
def test_a_store_that_is_opened_again_shows_what_a_live_stream_shows(
    tmp_path: Path, coverage: Any, beside: dict[str, Any]
) -> None:
    controller = sp.paths(4, coverage, every=2, **beside)
    events, answers = events_of(3), list[dict[str, Any]]()
    for begin in range(0, len(events), 7):
        with sp.Store(tmp_path, controller) as store:
            some = events[begin : begin + 7]
            answers += (first := store.apply(some))
            again = store.apply(some)  # as after a crash
            for one, two in zip(first, again, strict=True):
                assert two == one | {"repeated": True}
    live = sp.Stream(controller)
    for event, answer, expected in zip(events, answers, played(live, events), strict=True):
        if "prediction" in event:
            ends = [[-inf if end is None else end for end in answer["lower"]],
                    [inf if end is None else end for end in answer["upper"]]]  # fmt: skip
            assert tuple(ends) == expected[:2]
            if beside:
                low = answer["total"]["4"]["lower"]
                assert (-inf if low is None else low) == expected[2]
        elif "y" in event:
            assert answer["loss"] == (list(expected) if type(expected) is tuple else expected)
    with sp.Store(tmp_path) as store:
        kept, past = store.read(), [*store.history()]
        assert kept.state.position == live.state.position
        assert kept.state.table == live.state.table
        assert kept.pending.keys() == live.pending.keys()
        assert [row["shown"]["lower"] for row in past] == [
            answer["lower"] for answer in answers if "lower" in answer
        ]
        told, stored = next(event for event in events if "step" in event), store.stream()
        with pytest.raises(sp.errors.InputError, match="already has the label"):
            stored.update(1e9, told["id"], step=told["step"])
        copied = [*store.lines([""])]
        assert not store.check()
        assert "budget" in str(store.summary())
    with sp.Store(tmp_path / "other") as other:
        other.import_streams(copied)
        assert other.read().state.table == live.state.table


def test_a_fleet_of_paths_is_a_stream_for_each_series(tmp_path: Path) -> None:
    rng, controller = np.random.default_rng(8), sp.paths(3, totals=[3], every=1)
    names = ["north", "south"]
    fleet = sp.Fleet(controller, names)
    streams = {name: sp.Stream(controller) for name in names}
    for t in range(30):
        lower = rng.normal(size=(2, 3))
        upper = lower + rng.random(2)[:, None]
        shown = fleet.predict({"lower": lower, "upper": upper}, batch=t)
        for place, stream in enumerate(streams.values()):
            own = stream.predict({"lower": lower[place], "upper": upper[place]}, id=t)
            assert (own.upper == shown[place].upper).all()
            assert own.total == shown[place].total
        for step in range(1, 4):
            if (made := t + 1 - step) >= 0:
                y = rng.normal(size=2)
                losses = fleet.update(y, batch=made, step=step)
                for place, stream in enumerate(streams.values()):
                    loss = stream.update(y[place], id=made, step=step) or (nan, nan)
                    told = [nan if each is None else each for each in loss]
                    assert np.array_equal(losses[:, place], told, equal_nan=True)
        if t == 20:
            fleet.save(tmp_path / "fleet.sp")
            fleet = sp.Fleet.load(tmp_path / "fleet.sp")
    assert fleet.pending == {28: ("north", "south"), 29: ("north", "south")}
    assert fleet.theta.shape == fleet.means.shape == (2, 2)
    for name, stream in streams.items():
        assert fleet.state(name).table == stream.state.table
        assert fleet.certificate(name).risks[0].account == stream.certificate().risks[0].account
    before = fleet.state("north").position
    with pytest.raises(sp.errors.SetpointError, match="finite"):
        fleet.update([1.0, inf], batch=28, step=3)
    with pytest.raises(sp.errors.SetpointError, match="must be 3 numbers"):
        fleet.predict([[1.0, 2.0, 3.0], [1.0]])
    assert fleet.state("north").position == before
    assert fleet.update({"south": nan}, batch=28, step=3, late=True).shape == (2, 1)
    assert fleet.pending[28] == ("north", "south")
    assert fleet.retire(["south"]).keys() == {"south"}
    assert fleet.ids == ("north",)


def test_other_modes_say_what_runs_paths() -> None:
    controller = sp.paths(2)
    tape = sp.Tape.from_arrays({"point": [1.0, 2.0]}, [1.0, 2.0])
    with pytest.raises(sp.errors.InputError, match="replay_paths"):
        sp.replay(controller, tape)
    with pytest.raises(sp.errors.InputError, match="horizon for each row"):
        sp.replay_paths(controller, tape)
    with pytest.raises(sp.errors.InputError, match="is for controllers of paths"):
        sp.replay_paths(sp.intervals(), tape)
    stream = sp.Stream(sp.intervals())
    stream.predict(1.0)
    with pytest.raises(sp.errors.InputError, match="step is for paths"):
        stream.update(1.0, step=1)


def test_numbers_by_hand() -> None:
    """Without a correction the band is the ends as given, and a total adds them."""
    sets = sp.sets.Paths(3, totals=(2,), maximum=True, minimum=True, support=(0.0, 100.0))
    reading = sets.read({"lower": [1.0, 2.0, 3.0], "upper": [3.0, 6.0, 5.0]})
    path = sets.at(reading, (np.log(2.0), 0.0, 0.0, inf))
    assert path.lower == pytest.approx([0.0, 0.0, 2.0])  # centre 2 ∓ 2·1, 4 ∓ 2·2, 4 ∓ 2·1
    assert path.upper == pytest.approx([4.0, 8.0, 6.0])
    assert path.total[2] == sp.sets.Interval(3.0, 9.0)
    assert path.maximum == sp.sets.Interval(3.0, 6.0)
    assert path.minimum == sp.sets.Interval(0.0, 100.0)
    assert sets.critical(reading, (2.0, 8.0, 4.0)) == pytest.approx(np.log(2.0))
