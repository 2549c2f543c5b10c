"""Buckets without Spark: the numbers of live streams and `replay`, whatever the batches are."""

import json
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.bulk.layout import layout_of
from setpoint.errors import InputError, LabelError, PredictionError, StateError
from setpoint.spark import buckets
from setpoint.spark.batch import NEVER, STATUSES
from setpoint.spark.buckets import VERSION
from setpoint.spark.state import key_table
from setpoint.spark.work import Work

pytestmark = pytest.mark.spark
PAPER = sp.Controller(
    sp.sets.Widen(),
    sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-20.0, 20.0)),
    sp.stretches.ErrorAdaptive(score=0.1, loss=0.1, low=-1.0, high=1.0),
)
TWO = sp.Controller(
    sp.sets.Widen(),
    (
        sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-20, 20)),
        sp.Risk(sp.losses.MiscoverageCounter(cap=5), 0.2, sp.steps.Fixed(0.05), bounds=(-20, 20)),
    ),
    combine=sp.combine.Max(anti_windup=1.0),
)
CONTROLLERS = {
    "paper": PAPER, "default": sp.intervals(), "season": sp.intervals(period=5), "two risks": TWO,
}  # fmt: skip
KEYS, STEPS = 13, 60

Columns = dict[str, Any]


def table(seed: int = 0, kind: str = "number") -> Columns:
    """Rows of several keys in the order of time, some without a label; skewed, one has most."""
    random = np.random.default_rng(seed)
    time, key = np.divmod(np.arange(KEYS * STEPS), KEYS)
    y = random.normal(size=len(time)) * (1.0 + time / 20.0)
    centre = random.normal(size=len(time))
    y[random.random(len(y)) < 0.05] = np.nan
    names = np.array([f"meter {k} é" for k in range(KEYS)], object)
    rows = slice(None) if kind != "skewed" else (key == 0) | (time % 20 == 0)
    columns = {"time": time, "lower": centre - 1.0, "upper": centre + 1.0, "y": y}
    return taken({"key": names[key] if kind == "text" else key, **columns}, rows)


def taken(columns: Columns, rows: Any) -> Columns:
    return {name: np.asarray(values)[rows] for name, values in columns.items()}


def batches(columns: Columns, every: int, seed: int = 1) -> Iterator[Any]:
    """The rows of each span of time, out of order."""
    random = np.random.default_rng(seed)
    for start in range(0, int(columns["time"].max()) + 1, every):
        rows = np.flatnonzero((columns["time"] >= start) & (columns["time"] < start + every))
        yield random.permutation(rows)


def run(work: Work, columns: Columns, every: int) -> tuple[bytes, Columns]:
    """All batches, each from the bytes that the last one left; outputs in the order of rows."""
    blob, outputs = None, {}
    count = len(columns["time"])
    for rows in batches(columns, every):
        blob, found = work.step_many(blob, taken(columns, rows))
        for name, values in found.items():
            shape = (*values.shape[:-1], count)
            outputs.setdefault(name, np.full(shape, -9, values.dtype))[..., rows] = values
    assert blob is not None
    return blob, outputs


def plain(controller: sp.Controller, state: Any) -> list[float]:
    """All numbers of a state."""
    return layout_of(controller).pack(state)


def states(work: Work, blob: bytes) -> dict[Any, list[float]]:
    """The numbers of every state in a bucket."""
    found = work.unpack(blob).states(work.controller)
    return {key: plain(work.controller, state) for key, state in found.items()}


def same(first: Any, second: Any) -> bool:
    return np.array_equal(np.asarray(first), np.asarray(second), equal_nan=True)


@pytest.mark.parametrize("kind", ["number", "text", "skewed"])
@pytest.mark.parametrize("every", [1, 7, STEPS])
@pytest.mark.parametrize("name", CONTROLLERS)
def test_rows_with_labels_give_what_replay_gives_to_the_bit(
    name: str, every: int, kind: str
) -> None:
    columns, work = table(kind=kind), Work(CONTROLLERS[name])
    blob, outputs = run(work, columns, every)
    prediction = {end: columns[end] for end in ("lower", "upper")}
    trace = sp.replay(
        work.controller, sp.Tape.from_arrays(prediction, columns["y"], series=columns["key"])
    )
    for end in ("lower", "upper", "lam"):
        assert same(outputs[end], getattr(trace, end)), end
    assert same(outputs["loss"], trace.losses)
    found = states(work, blob)
    assert set(found) == set(trace.states)
    assert found == {key: plain(work.controller, trace.states[key]) for key in found}


def annexes(found: Any) -> dict[Any, list[float]]:
    return {key: state.annex for key, state in found.items()}


@pytest.mark.parametrize("period", [None, 5])
def test_features_and_seasons_are_those_of_a_replay(period: int | None) -> None:
    random, columns = np.random.default_rng(4), table()
    count = len(columns["time"])
    columns["y"] += 6.0 * (columns["time"] % 7 == 0)  # a season that is found
    columns["x"] = np.where(random.random(count) < 0.1, np.nan, random.normal(size=count))
    columns["sky"] = random.integers(0, 3, count).astype(float)
    known = {"features": ["x", "sky"], "categories": {"sky": [1.0, 2.0]}}
    work = Work(sp.intervals(period=period, **known))  # type: ignore[arg-type]
    blob, outputs = run(work, columns, 7)
    tape = sp.Tape.from_arrays(
        {end: columns[end] for end in ("lower", "upper")}, columns["y"], series=columns["key"],
        extras={name: columns[name] for name in ("x", "sky")},
    )  # fmt: skip
    trace = sp.replay(work.controller, tape)
    for end in ("lower", "upper", "lam"):
        assert same(outputs[end], getattr(trace, end)), end
    bucket = work.unpack(blob)
    assert annexes(bucket.states(work.controller)) == annexes(trace.states)
    assert any(annexes(trace.states).values())
    # Some keys go to another bucket, by their bytes, and some are forgotten.
    blocks = [
        [part.tobytes() for part in np.split(records, bounds)[1:-1]]
        for records, bounds in bucket.blocks()
    ]
    empty = work.unpack(None)
    again = empty.joined(bucket.keys, bucket.clock, *blocks)
    assert annexes(again.states(work.controller)) == annexes(trace.states)
    rest = again.without(np.arange(0, KEYS, 2)).states(work.controller)
    assert annexes(rest) == {key: trace.states[key].annex for key in rest}


def events(seed: int = 3) -> Columns:
    """Predictions, and apart from them their labels, some at once, some late and some never."""
    random = np.random.default_rng(seed)
    rows = table(seed)
    count = len(rows["time"])
    known = rows["time"] + random.integers(0, 9, count)
    at_once = random.random(count) < 0.2
    apart = ~at_once & ~np.isnan(rows["y"])
    nothing = np.full(apart.sum(), np.nan)
    ids = np.arange(count) * 1_000_003 % 999_983
    return {
        "key": np.append(rows["key"], rows["key"][apart]),
        "time": np.append(rows["time"], known[apart]),
        "lower": np.append(rows["lower"], nothing),
        "upper": np.append(rows["upper"], nothing),
        "y": np.append(np.where(at_once, rows["y"], np.nan), rows["y"][apart]),
        "id": np.append(ids, ids[apart]),
    }  # fmt: skip


def live(work: Work, columns: Columns) -> tuple[dict[int, sp.Stream], Columns]:
    """What one `Stream` for each key gives, event after event."""
    asks = ~np.isnan(columns["lower"])
    made = {int(i): int(t) for i, t in zip(columns["id"][asks], columns["time"][asks], strict=True)}
    first = {int(i): n for n, i in enumerate(columns["id"][asks])}
    after = np.array([
        not ask and time <= made[int(id)]
        for ask, time, id in zip(asks, columns["time"], columns["id"], strict=True)
    ])  # fmt: skip
    place = np.array([first[int(id)] for id in columns["id"]])
    order = np.lexsort((after, np.where(asks | after, columns["id"], place), asks | after,
                        columns["time"]))  # fmt: skip
    streams: dict[int, sp.Stream] = {}
    outputs = {name: np.full(len(asks), np.nan) for name in ("lower", "upper", "loss")}
    dropped: set[int] = set()
    for row in order.tolist():
        key, id, time = (int(columns[name][row]) for name in ("key", "id", "time"))
        stream = streams.setdefault(key, sp.Stream(work.controller))
        for waits in list(stream.pending):
            if time > made[waits] + work.expire:
                stream._give_up(waits, "expired")
                dropped.add(waits)
        if asks[row]:
            groups = json.loads(columns["groups"][row]) if "groups" in columns else None
            shown = stream.predict((columns["lower"][row], columns["upper"][row]), id, groups)
        elif id in dropped:
            continue
        else:
            shown = stream.receipt(id).shown
        outputs["lower"][row], outputs["upper"][row] = shown.lower, shown.upper
        if not np.isnan(columns["y"][row]):
            outputs["loss"][row] = stream.update(columns["y"][row], id)
    return streams, outputs


@pytest.mark.parametrize("groups", [0, 2])
@pytest.mark.parametrize("every", [1, 4, STEPS + 10])
@pytest.mark.parametrize("name", ["paper", "default"])
def test_late_labels_and_groups_give_what_live_streams_give_to_the_bit(
    name: str, every: int, groups: int
) -> None:
    columns = grouped(events()) if groups else events()
    work = Work(CONTROLLERS[name], expire=6, groups=groups)
    blob, outputs = run(work, columns, every)
    streams, expected = live(work, columns)
    for end in ("lower", "upper"):
        assert same(outputs[end], expected[end]), end
    assert same(outputs["loss"][0], expected["loss"])
    bucket = work.unpack(blob)
    found = bucket.states(work.controller)
    for key, stream in streams.items():
        for waits in list(stream.pending):  # the clock of a bucket is that of all its keys
            if bucket.clock > _made(columns, waits) + 6:
                stream._give_up(waits, "expired")
        assert plain(work.controller, found[key]) == plain(work.controller, stream.state)
        assert found[key].groups == stream.state.groups
        place = bucket.keys.tolist().index(key)
        assert set(bucket.waiting.id[bucket.waiting.place == place]) == set(stream.pending)
    expired = outputs["status"] == STATUSES.index("expired")
    assert expired.sum() > 10
    assert np.isnan(outputs["lower"][expired]).all()
    keyed = key_table(work, bucket)
    whole = keyed[keyed["group"].isna()]
    assert len(whole) == len(bucket.keys)
    assert (len(whole) < len(keyed)) is bool(groups)


@pytest.mark.parametrize("groups", [0, 2])
def test_keys_of_one_bucket_become_those_of_others_with_all_that_waits(groups: int) -> None:
    columns = grouped(events()) if groups else events()
    work, half = Work(PAPER, expire=9, groups=groups), columns["time"] < 30
    bucket = work.unpack(run(work, taken(columns, half), 7)[0])
    parts = [work.unpack(None), work.unpack(None)]
    blocks = [
        [records[start:end].tobytes() for start, end in pairwise(ends)]
        for records, ends in bucket.blocks()
    ]
    for place, key in enumerate(bucket.keys):
        part = parts[key % 2].joined(np.array([key]), bucket.clock, *([b[place]] for b in blocks))
        parts[key % 2] = part
    assert sum(len(part.waiting.id) for part in parts) == len(bucket.waiting.id) > 0
    whole = work.step(bucket, taken(columns, ~half))[0].states(PAPER)
    for number, part in enumerate(parts):
        mine = ~half & (columns["key"] % 2 == number)
        for key, state in work.step(part, taken(columns, mine))[0].states(PAPER).items():
            assert plain(PAPER, state) == plain(PAPER, whole[key])
            assert state.groups == whole[key].groups


def test_a_state_begins_a_bucket_with_its_groups() -> None:
    columns, work = grouped(events()), Work(PAPER, expire=9, groups=2)
    state = work.unpack(run(work, columns, 7)[0]).states(PAPER)[0]
    again = work.unpack(None).joined(
        np.array([1]), 0, [np.array(work.layout.pack(state)).tobytes() + b"\0" * 8], [b""], [b""],
        [b""], [b""], [work.group_block(state)],
    )  # fmt: skip
    assert again.states(PAPER)[1].groups == state.groups != {}


def test_a_key_that_is_forgotten_takes_its_groups_along() -> None:
    work = Work(PAPER, idle=5, groups=1)
    row = {"lower": [0.0], "upper": [1.0], "y": [3.0]}
    blob, _ = work.step_many(None, {"key": [1], "time": [1], "groups": ['["a"]'], **row})
    blob, _ = work.step_many(blob, {"key": [2], "time": [2], "groups": ['["b"]'], **row})
    blob, _ = work.step_many(blob, {"key": [2], "time": [7], "groups": ['["c"]'], **row})
    bucket = work.unpack(blob)
    assert bucket.keys.tolist() == [2]
    assert set(bucket.states(PAPER)[2].groups) == {"b", "c"}


@pytest.mark.parametrize(
    ("names", "told"),
    [('["a", "b"]', "may belong to 1 groups"), (f'["{"x" * 121}"]', "1 to 120 bytes")],
)
def test_groups_that_do_not_fit_are_refused(names: str, told: str) -> None:
    work = Work(PAPER, groups=1)
    row = {"key": [1], "time": [1], "lower": [0.0], "upper": [1.0], "y": [3.0], "groups": [names]}
    with pytest.raises(InputError, match=told):
        work.step_many(None, row)


def grouped(columns: Columns) -> Columns:
    """Rows in none, one or two of a few groups."""
    rng, names = np.random.default_rng(8), ["rain", "hour=8", "hour=9"]
    chosen = [
        json.dumps(rng.choice(names, rng.integers(0, 3), replace=False).tolist())
        for _ in columns["time"]
    ]
    return {**columns, "groups": np.array(chosen, object)}


def _made(columns: Columns, id: int) -> int:
    return int(columns["time"][(columns["id"] == id) & ~np.isnan(columns["lower"])][0])


def test_a_label_that_comes_before_its_prediction_waits_for_it() -> None:
    work = Work(PAPER, expire=100)
    ask = {"key": [1], "id": [5], "time": [10], "lower": [0.0], "upper": [1.0], "y": [np.nan]}
    label = {**ask, "time": [9], "lower": [np.nan], "upper": [np.nan], "y": [3.0]}
    blob, outputs = work.step_many(None, label)
    assert STATUSES[outputs["status"][0]] == "early"
    blob, _ = work.step_many(blob, label)  # twice
    blob, outputs = work.step_many(blob, ask)
    bucket = work.unpack(blob)
    assert len(bucket.early.id) == len(bucket.waiting.id) == 0
    stream = sp.Stream(PAPER)
    stream.predict((0.0, 1.0))
    stream.update(3.0)
    assert states(work, blob)[1] == plain(PAPER, stream.state)
    assert STATUSES[outputs["status"][0]] == "shown"
    assert (outputs["y"][0], outputs["loss"][0, 0]) == (3.0, 1.0)


def test_a_key_that_only_stray_labels_made_is_forgotten_with_them() -> None:
    work = Work(PAPER, expire=5)
    stray = {"key": [1], "id": [5], "time": [10], "lower": [np.nan], "upper": [np.nan], "y": [3.0]}
    blob, _ = work.step_many(None, stray)
    assert work.unpack(blob).keys.tolist() == [1]
    ask = {**stray, "key": [2], "time": [20], "lower": [0.0], "upper": [1.0]}
    bucket = work.unpack(work.step_many(blob, ask)[0])
    assert bucket.keys.tolist() == [2]
    given = work.unpack(work.step_many(None, {**ask, "key": [3], "time": [9]})[0])
    given.last = np.array([NEVER])  # a state to begin with, that had no prediction here
    assert work.step(given, ask)[0].keys.tolist() == [3, 2]
    for key in (1, "one"):
        blob, outputs = work.step_many(None, {**stray, "key": [key], "y": [np.nan]})
        assert STATUSES[outputs["status"][0]] == "unknown"
        assert len(work.unpack(blob).keys) == 0
        assert work.unpack(work.step_many(blob, {**ask, "key": [key]})[0]).keys.tolist() == [key]


def test_a_label_that_came_first_runs_at_its_own_time_and_expires_by_it() -> None:
    rows = {"key": [1, 1], "id": [5, 6], "time": [10, 12], "lower": [0.0] * 2, "upper": [1.0] * 2}
    rows["y"] = [np.nan] * 2
    label = {"key": [1], "id": [5], "time": [15], "lower": [np.nan], "upper": [np.nan], "y": [3.0]}
    work = Work(PAPER, expire=5)
    blob, outputs = work.step_many(work.step_many(None, label)[0], rows)
    stream = sp.Stream(PAPER)
    shown = [stream.predict((0.0, 1.0), id) for id in (5, 6)]
    assert outputs["upper"].tolist() == [each.upper for each in shown]
    stream.update(3.0, 5)
    assert states(work, blob)[1] == plain(PAPER, stream.state)
    assert same(outputs["loss"][0], [1.0, np.nan])
    assert same(outputs["y"], [3.0, np.nan])
    work = Work(PAPER, expire=4)
    blob, outputs = work.step_many(work.step_many(None, label)[0], rows)
    bucket = work.unpack(blob)
    assert np.isnan(outputs["loss"]).all()
    assert (bucket.waiting.id.tolist(), bucket.early.id.tolist()) == ([6], [])
    assert bucket.states(PAPER)[1].expired == 1


def test_labels_that_become_known_late_give_what_replay_gives_to_the_bit() -> None:
    columns, delay = table(), 5
    nothing = np.full(len(columns["time"]), np.nan)
    label = {"time": columns["time"] + delay, "lower": nothing, "upper": nothing}
    both = [{**columns, "y": nothing}, {**columns, **label}]  # some say that none will come
    rows = {name: np.concatenate([part[name] for part in both]) for name in columns}
    rows["id"] = np.concatenate([columns["time"]] * 2)
    prediction = {end: columns[end] for end in ("lower", "upper")}
    known = {"time": columns["time"], "known": label["time"]}
    for controller in CONTROLLERS.values():
        work = Work(controller, expire=50)
        blob, outputs = run(work, rows, 7)
        tape = sp.Tape.from_arrays(prediction, columns["y"], series=columns["key"], **known)
        trace = sp.replay(controller, tape)
        assert same(outputs["upper"][: len(nothing)], trace.upper)
        assert same(outputs["loss"][:, len(nothing) :], trace.losses)
        found = states(work, blob)
        assert found == {key: plain(controller, trace.states[key]) for key in found}


@pytest.mark.parametrize("late", ["refuse", "accept"])
@pytest.mark.parametrize("every", [1, 5, STEPS + 10])
def test_duplicates_by_id_change_nothing(every: int, late: str) -> None:
    columns, work = events(), Work(PAPER, expire=100, late=late)
    blob, _ = run(work, columns, every)
    again, doubled = None, []
    for rows in batches(columns, every):
        again, _ = work.step_many(again, taken(columns, np.concatenate([rows, rows[::2]])))
        again, repeated = work.step_many(again, taken(columns, rows))
        doubled.append(repeated["status"])
    assert {STATUSES[code] for code in np.concatenate(doubled)} == {"duplicate"}
    assert states(work, again) == states(work, blob)
    assert same(np.sort(work.unpack(again).waiting.id), np.sort(work.unpack(blob).waiting.id))


@pytest.mark.parametrize("late", ["refuse", "accept"])
def test_a_label_that_comes_again_or_too_late_is_known_as_such(late: str) -> None:
    work = Work(PAPER, expire=5, late=late)

    def rows(time: int, ids: list[int], y: float = np.nan, end: float = np.nan) -> Columns:
        many = {"lower": end, "upper": end, "y": y, "key": 1, "time": time}
        return {**{name: np.full(len(ids), value) for name, value in many.items()}, "id": ids}

    def statuses(blob: bytes | None, columns: Columns) -> tuple[bytes, list[str]]:
        blob, outputs = work.step_many(blob, columns)
        return blob, [STATUSES[code] for code in outputs["status"]]

    blob, _ = statuses(None, rows(10, [5, 6], end=0.0))
    blob, _ = statuses(blob, rows(12, [7], end=0.0))
    blob, found = statuses(blob, rows(13, [5], y=3.0))
    assert found == ["answered"]
    blob, found = statuses(blob, rows(14, [5, 9], y=3.0))
    assert found == ["duplicate", "early"]
    blob, _ = statuses(blob, rows(16, [8], end=0.0))  # now 6 is given up
    blob, found = statuses(blob, rows(15, [6], y=3.0))
    assert found == ["expired"]
    blob, found = statuses(blob, rows(17, [6], y=3.0))
    assert found == ["expired"]
    blob, found = statuses(blob, rows(17, [6, 7], end=0.0))
    assert found == ["duplicate", "duplicate"]
    assert work.unpack(blob).early.id.tolist() == [9]
    blob, _ = statuses(blob, rows(40, [10], y=1.0, end=0.0))
    bucket = work.unpack(blob)
    assert bucket.closed.id.tolist() == [10]  # nothing is known for ever


def test_without_ids_a_key_has_one_row_for_each_time() -> None:
    columns, work = table(), Work(PAPER)
    blob, _ = run(work, columns, 5)
    again = None
    for rows in batches(columns, 5):
        again, _ = work.step_many(again, taken(columns, np.concatenate([rows, rows[::3]])))
        again, outputs = work.step_many(again, taken(columns, rows))
        assert {STATUSES[code] for code in outputs["status"]} <= {"duplicate", "late"}
    assert states(work, again) == states(work, blob)


def test_an_old_row_is_refused_or_taken_as_the_newest() -> None:
    columns = table()
    columns["id"] = columns["time"]
    first, last = columns["time"] >= 30, columns["time"] < 30
    for late, status in (("refuse", "late"), ("accept", "shown")):
        work = Work(PAPER, late=late, expire=100)
        blob, _ = work.step_many(None, taken(columns, first))
        before = states(work, blob)
        blob, outputs = work.step_many(blob, taken(columns, last))
        assert {STATUSES[code] for code in outputs["status"]} == {status}
        after = states(work, blob)
        assert all((after[key] == before[key]) == (late == "refuse") for key in after)
        assert np.isnan(outputs["lower"]).all() == (late == "refuse")
        assert set(work.unpack(blob).last) == {STEPS - 1}


def test_a_key_that_was_silent_too_long_begins_anew() -> None:
    columns, work = table(), Work(PAPER, idle=10)
    silent = (columns["key"] == 3) & (columns["time"] >= 20) & (columns["time"] < 40)
    blob, _ = run(work, taken(columns, ~silent), 5)
    rest = columns["time"] >= 40
    expected = sp.replay(
        PAPER,
        sp.Tape.from_arrays(
            {end: columns[end][rest] for end in ("lower", "upper")},
            columns["y"][rest],
            series=columns["key"][rest],
        ),
    )
    assert states(work, blob)[3] == plain(PAPER, expected.states[3])
    assert states(work, blob)[4] != plain(PAPER, expected.states[4])
    part = work.step_many(None, taken(columns, columns["time"] < 20))[0]
    part = work.step_many(part, taken(columns, ~silent & (columns["time"] == 31)))[0]
    assert 3 not in work.unpack(part).keys


def test_a_bucket_is_the_same_bytes_after_unpacking() -> None:
    for columns, work in ((table(kind="text"), Work(PAPER)), (events(), Work(PAPER, expire=9))):
        blob = run(work, columns, 7)[0]
        assert work.pack(work.unpack(blob)) == blob


def test_another_controller_version_or_number_of_buckets_is_refused() -> None:
    blob, _ = run(Work(PAPER, 8), table(), 30)
    risk = sp.Risk(sp.losses.Miscoverage(), 0.2, sp.steps.Fixed(0.05), bounds=(-20.0, 20.0))
    other = sp.Controller(PAPER.sets, risk, PAPER.stretch)
    with pytest.raises(StateError, match=r"another controller: it has 'level = 0.1'"):
        Work(other, 8).step_many(blob, table())
    with pytest.raises(StateError, match="written with 8 buckets, got 16"):
        Work(PAPER, 16).step_many(blob, table())
    with pytest.raises(StateError, match=f"version 9, this setpoint reads version {VERSION}"):
        Work(PAPER, 8).step_many(blob[:2] + b"\x09" + blob[3:], table())
    with pytest.raises(StateError, match="not the state of a bucket"):
        Work(PAPER, 8).step_many(zlib.compress(blob), table())
    with pytest.raises(StateError, match="damaged"):
        Work(PAPER, 8).step_many(blob[: len(blob) // 2], table())


def test_a_controller_that_was_written_in_fewer_words_is_the_same() -> None:
    work, columns = Work(PAPER, 8), table()
    work.header["controller"] = work.header["controller"].replace('unjudged = "skip"\n', "")
    assert work.header != Work(PAPER, 8).header
    blob, _ = run(work, columns, 30)
    assert states(Work(PAPER, 8), blob) == states(work, blob)


def test_a_bucket_of_an_older_version_is_read_through_those_that_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns, work = table(), Work(PAPER, 8)
    blob, _ = run(work, taken(columns, columns["time"] < 30), 30)
    later = taken(columns, columns["time"] >= 30)
    expected, _ = work.step_many(blob, later)

    def upgrade(header: Any, arrays: Any) -> Any:
        return header, {**arrays, "last": arrays["last"] + 0}

    monkeypatch.setattr(buckets, "VERSION", VERSION + 1)
    with pytest.raises(StateError, match=f"has version {VERSION}, this setpoint reads version"):
        work.step_many(blob, later)
    monkeypatch.setitem(buckets.UPGRADES, VERSION, upgrade)
    again, _ = work.step_many(blob, later)
    assert again[2] == VERSION + 1
    assert states(work, again) == states(work, expected)


@pytest.mark.parametrize(
    ("columns", "work"), [(events(), Work(PAPER, expire=100)), (table(), Work(PAPER))]
)
def test_of_rows_that_contradict_each_other_the_same_one_counts_however_they_come(
    columns: Columns, work: Work
) -> None:
    other = {**columns, "y": columns["y"] + 1.0, "lower": columns["lower"] - 0.5}
    both = {name: np.concatenate([columns[name], other[name]]) for name in columns}
    orders = (np.random.default_rng(seed).permutation(len(both["time"])) for seed in range(3))
    first, *rest = (states(work, work.step_many(None, taken(both, order))[0]) for order in orders)
    assert all(state == first for state in rest)


@pytest.mark.parametrize(
    ("column", "value", "error", "words"),
    [
        ("lower", np.nan, PredictionError, "key 2: .* got"),
        ("y", np.inf, LabelError, r"key 2: a label must be finite .* got inf"),
    ],
)
def test_bad_numbers_are_refused_by_their_key(
    column: str, value: float, error: type[Exception], words: str
) -> None:
    columns = table()
    columns[column][2] = value
    with pytest.raises(error, match=words):
        Work(PAPER).step_many(None, columns)


def test_options_are_checked() -> None:
    with pytest.raises(InputError, match="late must be"):
        Work(PAPER, late="maybe")
    with pytest.raises(InputError, match="expire must say how long"):
        Work(PAPER).step_many(None, events())
    with pytest.raises(InputError, match="late='accept' needs ids"):
        Work(PAPER, late="accept").step_many(None, table())
    with pytest.raises(InputError, match="not a scalar rule"):
        Work(sp.label_sets(sets=sp.sets.Multilabel(), risk=sp.Risk(sp.losses.SetSize(), 0.1)))
    blob, _ = run(Work(PAPER), table(), 30)
    with pytest.raises(InputError, match="keys of the state are whole numbers, got texts"):
        Work(PAPER).step_many(blob, table(kind="text"))


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("family", [sp.sets.Threshold, sp.sets.Cumulative, sp.sets.Multilabel])
def test_label_sets_by_bucket_are_those_of_replay(family: Any, every: int) -> None:
    names = ("cat", "dog", "owl", "fox")
    several = family is sp.sets.Multilabel
    risk = sp.Risk(sp.losses.FalseNegatives(), 0.1) if several else None
    random, controller = np.random.default_rng(3), sp.label_sets(sets=family(names), risk=risk)
    time, key = np.divmod(np.arange(KEYS * STEPS), KEYS)
    p = random.dirichlet(np.ones(4), len(time))
    y = (p.cumsum(axis=1) < random.random((len(p), 1))).sum(axis=1).clip(max=3).astype(float)
    y = (random.random(p.shape) < p).astype(float) if several else y
    y[random.random(len(y)) < 0.05] = np.nan
    columns = {"key": key, "time": time, "y": y, **dict(zip(names, p.T, strict=True))}
    work = Work(controller)
    blob, outputs = run(work, columns, every)
    tape = sp.Tape.from_arrays(dict(zip(names, p.T, strict=True)), y, series=key)
    trace = sp.replay(controller, tape)
    assert outputs["lam"].tolist() == trace.lam.tolist()
    np.testing.assert_array_equal(outputs["loss"], trace.losses)
    for text, size, shown in zip(outputs["labels"], outputs["size"], trace.shown, strict=True):
        assert (set(json.loads(text)), size) == (set(shown), len(shown))
    bucket, layout = work.unpack(blob), layout_of(controller)
    for place, name in enumerate(bucket.keys.tolist()):
        assert bucket.vectors[place].tolist() == layout.pack(trace.states[name])
    four = {"y": np.full_like(y[:1], 4.0)}
    for wrong, error in ((four, LabelError), ({"cat": [2.0]}, PredictionError)):
        with pytest.raises(error, match="key 0: "):
            Work(controller).step_many(None, taken(columns, [0]) | wrong)
    with pytest.raises(InputError, match="need the names of their classes"):
        Work(sp.label_sets()).step_many(None, columns)


def test_paths_in_a_bucket_are_live_streams(tmp_path: Any) -> None:
    """Forecasts and labels in small batches, out of order and repeated; as a live stream."""
    from setpoint.spark.paths import PathWork

    rng, controller = np.random.default_rng(2), sp.paths(3, [0.5, 0.9], totals=[3], every=1)
    work, blob, live = PathWork(controller), None, sp.Stream(controller)
    columns = ("key", "time", "step", "lower", "upper", "y")
    seen: dict[tuple[int, int], float] = {}
    for t in range(25):
        forecast, half = rng.normal(size=3), 1.0
        y = rng.normal(size=3)
        told = [(t + 1 - step, step, y[step - 1]) for step in (1, 2, 3) if t + 1 >= step]
        labels = [("a", time, step, np.nan, np.nan, v) for time, step, v in told if time < t]
        now = [("a", t, step, forecast[step - 1] - half, forecast[step - 1] + half,
                told[0][2] if step == 1 else np.nan) for step in (3, 1, 2)]  # fmt: skip
        batches = [labels, now[:1], now[1:]] if t % 2 else [[*now, *labels]]
        for batch in batches:
            rows = dict(zip(columns, map(list, zip(*batch, strict=True)), strict=True))
            if not batch:
                continue
            blob, out = work.step_many(blob, rows)
            _, repeated = work.step_many(blob, rows)
            assert not np.isin(repeated["status"], (0, 1)).any()
            for place in np.flatnonzero(out["lower"] == out["lower"]).tolist():
                key = int(out["time"][place]), int(out["step"][place])
                seen[key] = float(out["upper"][place])
        for time, step, value in sorted(told[1:]):
            live.update(value, id=time, step=step)
        shown = live.predict(np.column_stack([forecast - half, forecast + half]), id=t)
        live.update(told[0][2], id=t, step=1)
        assert [seen[t, step] for step in (1, 2, 3)] == shown.upper.tolist()
    bucket = work.unpack(blob)
    assert bucket.states(controller)["a"].table == live.state.table
    assert bucket.states(controller)["a"].position == live.state.position
    assert len(bucket.waiting.place) == len(live.pending) == 2
    with pytest.raises(sp.errors.StateError, match="another controller"):
        PathWork(sp.paths(3)).unpack(blob)
