"""Groups of rows that overlap: in each of them no adversary takes an account beyond its bound."""

import copy
import json
from math import inf, nan
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest

import setpoint as sp
from setpoint import _state_file, jobs
from setpoint import stream as streams
from setpoint.combine import Max, Mean
from setpoint.errors import InputError, PredictionError, StateError
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.sets import Multiplied, Nested, TwoSided, Widen
from setpoint.spark.work import Work
from setpoint.steps import Account, Fixed
from setpoint.tape import Ragged
from tests.laws.parts import Relapse

GROUPS = ("rain", "hour=8", ("shop", 3), 7)


def controllers() -> dict[str, sp.Controller]:
    risk = sp.Risk
    fixed = {"step": Fixed(0.5), "bounds": (-3.0, 3.0)}
    small = Account(limit=2.0, share=1.0, gain=0.5, dead=1.0)
    return {
        "intervals": sp.intervals(),
        "two accounts": sp.Controller(
            Multiplied(), [risk(Miscoverage(), 0.1, small), risk(Miscoverage(), 0.3, Account())]
        ),
        "paper": sp.Controller(Widen(), risk(Miscoverage(), 0.1, **fixed)),
        "two risks": sp.Controller(
            Widen(),
            [risk(Miscoverage(), 0.1, **fixed), risk(MiscoverageCounter(cap=3.0), 0.4, **fixed)],
        ),
        "sides": sp.Controller(TwoSided(), [risk(Miscoverage(), 0.05, small)] * 2),
        "levels": sp.Controller(
            Nested(Multiplied(), 2), [risk(Miscoverage(), r, Account()) for r in (0.4, 0.1)]
        ),
        "memory": sp.Controller(Widen(), risk(Relapse(), 0.1, small)),
    }


def tape_of(controller: sp.Controller, rows: int, seed: int, delay: Any) -> Any:
    rng = np.random.default_rng(seed)
    centre = rng.normal(0.0, 5.0, rows)
    y = centre + rng.normal(0.0, 1.0, rows) * rng.choice([0.5, 3.0], rows)
    y[rng.random(rows) < 0.05] = nan
    names = controller.reader.columns
    given = {"lower": centre - 1.0, "upper": centre + 1.0}
    if controller.correction is not None:
        given = {"prediction": centre}
    elif "lower" not in names:
        given = {"centre": centre, "low": np.ones(rows), "high": np.ones(rows)}
    ids = rng.choice(["a", "b"], rows)
    columns = {
        "hour": rng.integers(0, 4, rows),
        "rain": rng.random(rows) < 0.2,
        "shop": np.array([None if each < 0.5 else "N" for each in rng.random(rows)], object),
    }
    return sp.Tape.from_arrays(given, y, series=ids, delay=delay, extras=columns)


def named(tape: sp.Tape, row: int) -> tuple[str, ...]:
    hour, rain, shop = (tape.extras[name][row] for name in ("hour", "rain", "shop"))
    return (f"hour={hour}", *(["rain"] if rain else []), *([f"shop={shop}"] if shop else []))


@pytest.mark.parametrize("plain", ["1", "0"])
@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("name", ["intervals", "two accounts", "paper", "two risks", "levels"])
def test_a_replay_shows_what_live_streams_show(
    name: str, delay: int, plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = controllers()[name]
    if plain == "0" and name not in ("intervals", "two risks", "levels"):
        pytest.skip("one account, several risks and several members are compiled: it takes seconds")
    monkeypatch.setenv("SETPOINT_PLAIN", plain)
    tape = tape_of(controller, 300, 5, delay)
    trace = sp.replay(controller, tape, groups=["hour", "rain", "shop"])
    for id in tape.streams:
        rows = tape.rows(id).tolist()
        stream = sp.Stream(controller, missing="skip")
        for place, row in enumerate(rows):
            if place > delay:
                known = rows[place - 1 - delay]
                stream.update(tape.y[known], id=known)
            given = [float(column[row]) for column in tape.prediction]
            forecast = given[0] if len(given) == 1 else tuple(given)
            shown = stream.predict(forecast, id=row, groups=named(tape, row))
            parts = shown.parts if hasattr(shown, "parts") else [shown]
            assert [part.lower for part in parts] == trace.levels.lower[:, row].tolist()
            assert [part.upper for part in parts] == trace.levels.upper[:, row].tolist()
        for row in list(stream.pending):
            stream.update(tape.y[row], id=row)
        assert trace.states[id].position == stream.state.position
        assert trace.states[id].groups == stream.state.groups
        assert trace.certificate(id).groups == stream.certificate().groups


def test_a_replay_goes_on_where_another_ended() -> None:
    controller = sp.intervals()
    tape = tape_of(controller, 400, 8, 0)
    options = {"groups": ["hour", "rain", "shop"]}
    first, rest = tape.split(100)
    whole, begun = sp.replay(controller, tape, **options), sp.replay(controller, first, **options)
    for states in (begun.states, {id: begun.states[id] for id in first.streams}):
        again = sp.replay(controller, rest, states, **options)
        for id in tape.streams:
            assert again.states[id].groups == whole.states[id].groups
            assert again.lower[rest.rows(id)].tolist() == whole.lower[tape.rows(id)][100:].tolist()
        still = sp.replay(controller, rest, states)  # no row is in a group: they stay as they were
        assert still.states["a"].groups == begun.states["a"].groups


def test_a_family_that_is_not_scalar_holds_groups_too() -> None:
    risk = sp.Risk(Miscoverage(), 0.1, Account())
    controller = sp.Controller(sp.sets.Threshold(), risk)
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), 200)
    y = np.array([rng.choice(3, p=each) for each in p], float)
    rain = rng.random(200) < 0.3
    tape = sp.Tape.from_arrays(
        {"p": Ragged(p.ravel(), 3 * np.arange(201))}, y, extras={"rain": rain}
    )
    trace = sp.replay(controller, tape, groups="rain")
    stream = sp.Stream(controller)
    for row in range(200):
        groups = ("rain",) if rain[row] else ()
        assert stream.predict(p[row], groups=groups) == trace.shown[row]
        stream.update(int(y[row]))
    assert trace.state.groups == stream.state.groups


def test_no_group_at_all_is_the_stream_without_groups() -> None:
    for name, controller in controllers().items():
        rng, streams = Random(name), [sp.Stream(controller) for _ in range(2)]
        for _ in range(80):
            forecast, y = (0.0, 1.0), rng.gauss(0.5, 2.0)
            shown = streams[0].predict(forecast), streams[1].predict(forecast, groups=())
            assert shown[0] == shown[1]
            assert streams[0].update(y) == streams[1].update(y)
        assert streams[0].state.position == streams[1].state.position


def test_the_set_is_the_largest_that_a_group_of_the_row_asks_for() -> None:
    """By hand: the paper's rule in each group, and the largest θ of all that judge the row."""
    controller, rng = controllers()["paper"], Random(4)
    stream, thetas = sp.Stream(controller), {None: 0.0}
    for _ in range(500):
        active = (None, *rng.sample(GROUPS, rng.randrange(4)))
        own = [thetas.setdefault(name, 0.0) for name in active]
        shown = stream.predict((-1.0, 1.0), groups=active[1:])
        full, empty = any(each > 3.0 for each in own), all(each < -3.0 for each in own)
        if full or empty:
            assert (shown.upper == inf, shown.upper == -inf) == (full, empty)
        else:
            assert shown.upper == 1.0 + max(own)
        y = rng.choice([0.0, 2.0, 6.0])
        loss = stream.update(y)
        for name in active:
            thetas[name] += 0.5 * (loss - 0.1)
    for name in GROUPS:
        assert stream.state.groups[name][0][0] == pytest.approx(thetas[name], abs=1e-12)


# Fleets


def fleet_rows(seed: int, steps: int = 60, streams: int = 3) -> Any:
    rng = np.random.default_rng(seed)
    centre = rng.normal(0.0, 5.0, (steps, streams))
    y = centre + rng.normal(0.0, 1.0, centre.shape) * rng.choice([0.5, 3.0], centre.shape)
    y[rng.random(y.shape) < 0.05] = nan
    return centre, y, rng.integers(0, 3, y.shape), rng.random(y.shape) < 0.3


def of_row(hour: Any, rain: Any) -> tuple[str, ...]:
    return (f"hour={hour}", *(["rain"] if rain else []))


def test_streams_of_a_fleet_come_and_go_with_their_groups() -> None:
    controller = sp.intervals()
    centre, y, hour, rain = fleet_rows(2)
    fleet = sp.Fleet(controller, list("abc"))
    lives = {id: sp.Stream(controller, missing="skip") for id in "abc"}
    for t in range(40):
        if t == 20:
            fleet.predict(centre[t], batch="waits", groups=[("rain",)] * 3)
            lives["c"].predict(centre[t, 2], id="waits", groups=("rain",))
            left = fleet.retire(["b"])
            assert left["b"].groups == left["b"].copy().groups
            assert all(risk[8][:2] == (0.0, 0.0) for (risk,) in left["b"].groups.values())
            fleet.update({"c": 9.0}, batch="waits")
            lives["c"].update(9.0, id="waits")
            fleet.drop("waits")
            fleet.add(["b", "d"], [left["b"], controller.init()])
            assert fleet.state("b").groups == left["b"].groups
            assert fleet.state("d").groups == {}
        row = {id: "abc".find(id) for id in fleet.ids}
        groups = [of_row(hour[t, s], rain[t, s]) for s in row.values()]
        fleet.predict(np.array([centre[t, s] for s in row.values()]), groups=groups)
        fleet.update(np.array([y[t, s] for s in row.values()]))
        lives["c"].predict(centre[t, 2], groups=of_row(hour[t, 2], rain[t, 2]))
        lives["c"].update(y[t, 2])
    assert fleet.state("c").groups == lives["c"].state.groups
    again = sp.Fleet(controller, [])
    again.add(["c"], fleet.retire(["c"]))
    assert again.state("c").groups == lives["c"].state.groups


def test_a_refused_call_leaves_the_groups_of_a_fleet_as_they_were() -> None:
    fleet = sp.Fleet(sp.intervals(), ["a", "b"])
    fleet.predict(np.zeros(2), batch="x", groups=[("rain",), None])
    before = fleet.state("a").groups
    for wrong, told in (
        ([("dry",), (1.5,)], "a group must be a whole number, a string"),
        ([("dry", "dry"), ()], "a row belongs to a group once"),
        ([("dry",)], "a tuple for each of 2 streams, got 1"),
        ("ab", "groups must have a tuple for each stream"),
        (["rain", "dry"], "must come in a tuple or a list"),
    ):
        with pytest.raises(InputError, match=told):
            fleet.predict(np.zeros(2), groups=wrong)
    with pytest.raises(PredictionError):
        fleet.predict(np.array([0.0, nan]), groups=[("new",), ("new",)])
    assert fleet.state("a").groups == before
    assert fleet.state("b").groups == {}


def test_a_store_with_many_groups_is_opened_again_to_the_bit(tmp_path: Any) -> None:
    """So many that their numbers are written in parts, and more of them come."""
    live = sp.Stream(sp.intervals())
    for row in range(90):
        with sp.Store(tmp_path / "a.sqlite", sp.intervals()) as store:
            names = [f"day={row}", f"hour={row % 3}"]
            live.predict((0.0, 1.0), id=row, groups=names)
            live.update(float(row % 4), id=row)
            event = {"id": row, "prediction": [0.0, 1.0], "groups": names, "y": float(row % 4)}
            store.apply([event])
            assert store.read().state.groups == live.state.groups
            assert store.check() == []


def test_groups_and_features_go_beside_each_other(tmp_path: Any) -> None:
    controller, rng = sp.intervals(features=["hour"]), np.random.default_rng(5)
    steps, ids = 80, ["a", "b"]
    hour = rng.integers(0, 24, (steps, 2)).astype(float)
    rain, y = rng.random((steps, 2)) < 0.3, rng.normal(0.0, 1.0 + hour / 4.0)
    given = np.zeros((steps, 2))
    wanted = {id: np.empty((steps, 2)) for id in ids}
    live = {id: sp.Stream(controller) for id in ids}
    fleet, ran = sp.Fleet(controller, ids), sp.Fleet(controller, ids)
    with sp.Store(tmp_path / "a.sqlite", controller) as store:
        for t in range(steps):
            named = [("rain",) if wet else () for wet in rain[t]]
            for place, id in enumerate(ids):
                known = {"hour": hour[t, place]}
                peeked = live[id].peek(0.0, groups=named[place], features=known)
                shown = live[id].predict(0.0, groups=named[place], features=known)
                assert shown == peeked
                assert shown == store.stream(id).predict(
                    0.0, id=t, groups=named[place], features=known
                )
                wanted[id][t] = tuple(shown)
                live[id].update(y[t, place])
                store.stream(id).update(y[t, place], id=t)
            sets = fleet.predict(given[t], groups=named, features={"hour": hour[t]})
            fleet.update(y[t])
            assert np.array_equal(sets.lower, [wanted[id][t][0] for id in ids])
    sets = ran.run(given, y, groups={"rain": rain}, features={"hour": hour})
    assert np.array_equal(sets.upper, np.stack([wanted[id][:, 1] for id in ids], axis=1))
    for place, id in enumerate(ids):
        tape = sp.Tape.from_arrays(
            {"point": given[:, place]}, y[:, place],
            extras={"hour": hour[:, place], "rain": rain[:, place]},
        )  # fmt: skip
        trace = sp.replay(controller, tape, groups="rain")
        assert np.array_equal(trace.lower, wanted[id][:, 0])
        for state in (trace.state, fleet.state(id), ran.state(id)):
            assert state.groups == live[id].state.groups
            assert (state.memory, state.table) == (live[id].state.memory, live[id].state.table)
            assert state.annex == live[id].state.annex


def test_a_store_refuses_groups_that_make_no_sense(tmp_path: Any) -> None:
    with sp.Store(tmp_path / "a.sqlite", sp.intervals()) as store:
        store.apply([{"id": 1, "prediction": [0.0, 1.0], "groups": ["rain"]}])
        before = store.read().state.groups
        for event, told in (
            ({"id": 1, "prediction": [0.0, 1.0]}, "another prediction was made under the id 1"),
            ({"id": 1, "prediction": [0.0, 1.0], "groups": ["dry"]}, "another prediction"),
            ({"id": 2, "prediction": [0.0, 1.0], "groups": "rain"}, "groups must be a list"),
            ({"id": 2, "prediction": [0.0, 1.0], "groups": [1.5]}, "must be a whole number or"),
            ({"id": 2, "prediction": [0.0, 1.0], "groups": ["a", "a"]}, "to a group once"),
            ({"id": 2, "prediction": [0.0, 1.0], "groups": ["x" * 300]}, "200 characters"),
            ({"id": 2, "prediction": [0.0, 1.0], "groups": list(range(1001))}, "1,000 groups"),
            ({"id": 1, "y": 0.5, "groups": ["rain"]}, "features go with a prediction"),
            # The second step fails, so the first is undone.
            ({"id": 2, "prediction": [0.0, 1.0], "groups": ["new"], "y": "no"}, "label"),
        ):
            (answer,) = store.apply([event])
            assert told in answer["error"]
            assert store.read().state.groups == before
        assert [row["groups"] for row in store.history()] == [["rain"]]


def test_an_edited_fleet_with_groups_is_not_loaded(tmp_path: Any) -> None:
    fleet = sp.Fleet(sp.intervals(), ["a", "b"])
    fleet.predict(np.zeros(2), groups=[("rain",), ()])
    fleet.save(tmp_path / "fleet")
    right = _state_file.read(tmp_path / "fleet", "fleet")
    edits = {
        "must be in 1 groups": lambda content: content["waiting"][0][-2].__setitem__((0, 0), 5),
        "must have a row each": lambda content: content["groups"][0][2].__setitem__(0, 7),
        "judged0 must be a whole": lambda content: content["group_risks"].__setitem__((0, 2), -1.0),
    }
    for told, edit in edits.items():
        content = copy.deepcopy(right)
        edit(content)
        _state_file.write(tmp_path / "wrong", "fleet", content)
        with pytest.raises(StateError, match=told):
            sp.Fleet.load(tmp_path / "wrong")
    _state_file.write(tmp_path / "right", "fleet", right)
    assert sp.Fleet.load(tmp_path / "right").state("a").groups == fleet.state("a").groups


def test_an_edited_stream_with_groups_is_not_loaded() -> None:
    stream = sp.Stream(sp.intervals())
    stream.predict(1.0, id="x", groups=("rain",))
    for told, edit in {
        "waits in a group that is unknown": {"groups": ["dry"]},
        "different names": {"groups": ["rain", "rain"], "group_risks": np.zeros((2, 18))},
        "theta0 must be a finite": {"group_risks": np.full((1, 18), nan)},
    }.items():
        with pytest.raises(StateError, match=told):
            sp.Stream.restored(stream.controller, {**stream.content(), **edit})


def test_bad_groups_are_refused_in_words_and_change_nothing() -> None:
    stream = sp.Stream(sp.intervals())
    stream.predict(1.0, groups=("rain",))
    before = stream.state
    for groups, told in (
        ("rain", r'must come in a tuple or a list, such as \("rain",\), got \'rain\''),
        (7, "must come in a tuple or a list"),
        ((1.5,), "a group must be a whole number, a string or a tuple of them, got 1.5"),
        (("a", "a"), "a row belongs to a group once"),
    ):
        for call in (stream.predict, stream.peek, stream.issue):
            with pytest.raises(InputError, match=told):
                call(1.0, groups=groups)
        with pytest.raises(InputError, match=told):
            stream.predict_many([1.0, 2.0], groups=[("fine",), groups])
        assert stream.state.groups == before.groups
    with pytest.raises(InputError, match="got 2 predictions and 1 tuples of groups"):
        stream.predict_many([1.0, 2.0], groups=[("fine",)])
    tape = sp.Tape.from_arrays({"prediction": [1.0, 2.0]}, [1.0, 2.0], extras={"a": [1, 2]})
    for by, told in (
        ("b", "the tape has no column 'b' for groups; it has a"),
        ({"a": [1]}, "'a' must say of 2 rows which group they are in, it has 1"),
        ({"a": [("x",), ("x",)], "b": [("x",), None]}, "row 0 belongs to a group twice"),
        ({"a": np.zeros((2, 2))}, "one value a row"),
    ):
        with pytest.raises(InputError, match=told):
            sp.replay(sp.intervals(), tape, groups=by)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"combine": Mean(anti_windup=9.0)}, "Mean takes the middle of what risks ask for"),
        ({"combine": Max(empty_if="some")}, "are about the risks of all rows together"),
        ({"combine": Max(anti_windup=9.0)}, "are about the risks of all rows together"),
    ],
)
def test_what_cannot_be_held_in_a_group_is_refused(options: Any, told: str) -> None:
    risk = sp.Risk(Miscoverage(), 0.1, Fixed(0.5), bounds=(-3.0, 3.0))
    controller = sp.Controller(Widen(), [risk, risk], **options)
    ends = {"lower": [0.0], "upper": [1.0]}
    tape = sp.Tape.from_arrays(ends, [0.5])
    for call in (
        lambda: sp.Stream(controller).predict((0.0, 1.0), groups=("rain",)),
        lambda: sp.Fleet(controller, 1).predict([[0.0], [1.0]], groups=[("rain",)]),
        lambda: sp.replay(controller, tape, groups={"rain": [True]}),
        lambda: Work(controller, groups=1),
    ):
        with pytest.raises(InputError, match=told):
            call()


def test_one_group_for_too_many_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_GROUPS", 2)
    stream = sp.Stream(sp.intervals())
    stream.predict(1.0, groups=("a", "b"), id=1)
    stream.predict(1.0, groups=("a",), id=2)
    with pytest.raises(InputError, match="at most 2 groups"):
        stream.predict(1.0, groups=("a", "c"))
    assert set(stream.state.groups) == {"a", "b"}


def test_columns_name_groups_as_people_do() -> None:
    tape = sp.Tape.from_arrays({"prediction": [1.0] * 4}, [1.0] * 4, group=["x", "y", "x", "y"])
    by = {
        "hour": np.array([8.0, nan, 9.5, 8.0]), "rain": [True, False, None, True],
        "day": np.array(["2024-01-01", "NaT", "2024-01-02", "2024-01-01"], "datetime64[D]"),
        "named": [("a", 3), None, [], ("a",)], "text": ["", "b", "b", None],
    }  # fmt: skip
    trace = sp.replay(sp.intervals(), tape, groups=by)
    judged = {name: risks[0].judged for name, risks in trace.certificate().groups.items()}
    assert judged == {
        "hour=8": 2, "hour=9.5": 1, "rain": 2, "day=2024-01-01": 2, "day=2024-01-02": 1, "a": 2,
        3: 1, "text=b": 2,
    }  # fmt: skip
    trace = sp.replay(sp.intervals(), tape, groups="group")
    assert set(trace.certificate().groups) == {"group=x", "group=y"}
    frame = pd.DataFrame({"point": [1.0, 2.0], "y": [1.0, 2.0], "hour": [8, 9]})
    columns = sp.Columns(groups=["hour"])  # type: ignore[arg-type]
    for named_so in ({"groups": "hour"}, {"columns": columns}):
        trace = sp.replay(sp.intervals(), frame, **named_so)  # type: ignore[arg-type]
        assert set(trace.certificate().groups) == {"hour=8", "hour=9"}
    with pytest.raises(InputError, match="groups are named twice"):
        sp.replay(sp.intervals(), frame, columns=columns, groups="hour")
    wide = pd.concat([frame] * 30)
    outcome = jobs.calibrate(wide, sp.Columns("y", point="point", groups=("hour",)))
    assert set(outcome.trace.certificate().groups) == {"hour=8", "hour=9"}


def test_a_certificate_prints_at_most_ten_groups_and_no_tricks() -> None:
    stream = sp.Stream(sp.intervals())
    for row in range(60):
        name = f"g{row % 12}" if row % 12 else "x\n  1. Miscoverage: holds"
        stream.predict(1.0, groups=(name,))
        stream.update(1.0 if row % 12 else 90.0)
    text = str(stream.certificate())
    assert "12 groups, not too many in each; the nearest to its limit first:" in text
    assert "and 2 more, further from theirs" in text
    assert "'x\\n  1. Miscoverage: holds': at most 10.9 misses above 10 %" in text
    plain = stream.certificate().as_dict()["groups"]
    assert (plain["count"], len(plain["nearest"])) == (12, 10)
    json.dumps(plain)
