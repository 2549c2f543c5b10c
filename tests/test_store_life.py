"""The life of stored streams: upgraded, moved, renamed, deleted, backed up; and damaged files."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

import setpoint as sp
from setpoint._state_file import to_text
from setpoint.errors import (
    DataError,
    InputError,
    LabelError,
    SetpointError,
    StateError,
    TakenOver,
    WriteError,
)
from setpoint.store import database
from tests.stored import CONTROLLER, RISK, events, reference, same

ROOT = Path(__file__).parents[1]
OLD = ROOT / "tests/data/store_1.sql"
MIGRATIONS = database.MIGRATIONS
SEASON = sp.intervals(0.8, period=168)


def old(path: Path) -> Path:
    """A store as this release writes it: those that follow must read it."""
    with closing(sqlite3.connect(path)) as lite:
        lite.executescript(OLD.read_text("utf-8"))
    return path


def season(count: int) -> list[dict[str, Any]]:
    return [
        {"stream": "season", "id": n, "prediction": float(n % 7), "y": 3.0 + n % 5}
        for n in range(count)
    ]


def columns(path: Path) -> dict[str, list[str]]:
    with closing(sqlite3.connect(path)) as lite:
        tables = lite.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {
            name: sorted(row[1] for row in lite.execute(f"PRAGMA table_info({name})"))
            for (name,) in tables
        }


# Migrations


def test_a_store_of_this_release_goes_on_to_the_bit(tmp_path: Path) -> None:
    sent = events(40)
    path = old(tmp_path / "old.sqlite")
    with sp.Store(path) as store:
        streams = reference(sent[:70])
        streams["a"].change(level=0.2)
        assert len(store.alarms()) > 0
        assert store._settings["history"] == 500
        assert store.check() == []
        assert not [answer for answer in store.apply(sent[70:]) if "error" in answer]
        whole = reference(sent[:70])
        whole["a"].change(level=0.2)
        for event in sent[70:]:
            stream = whole[event["stream"]]
            if "prediction" in event:
                stream.predict(event["prediction"], event["id"])
            else:
                stream.update(event["y"], event["id"])
        for name in "ab":
            assert store.read(name).theta == whole[name].theta
            assert str(store.read(name).certificate()) == str(whole[name].certificate())
    sp.Store(tmp_path / "new.sqlite").close()
    assert columns(path) == columns(tmp_path / "new.sqlite")


def later(compute: Any = lambda ask: ask("UPDATE streams SET note = name", [])) -> Any:
    """The migrations of a version that is to come."""
    note = "ALTER TABLE streams ADD COLUMN note TEXT NOT NULL DEFAULT ''"
    return *MIGRATIONS, database.Migration("notes", note, compute)


def test_a_migration_that_fails_leaves_the_store_as_it_was_and_is_made_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = old(tmp_path / "old.sqlite")

    def broken(_: Any) -> None:
        raise OSError("the power went")

    def had() -> list[str]:
        with closing(sqlite3.connect(path)) as lite:
            return [name for (name,) in lite.execute("SELECT name FROM migrations ORDER BY rowid")]

    monkeypatch.setattr(database, "MIGRATIONS", later(broken))
    with pytest.raises(OSError, match="the power went"):
        sp.Store(path)
    assert had() == ["tables"]
    assert "note" not in columns(path)["streams"]
    monkeypatch.setattr(database, "MIGRATIONS", later())
    with sp.Store(path) as store:
        assert store.check() == []
        assert store.names == ["a", "b"]
    assert had() == ["tables", "notes"]
    with closing(sqlite3.connect(path)) as lite:
        assert lite.execute("SELECT note FROM streams ORDER BY key").fetchall() == [("a",), ("b",)]


def test_threads_that_open_an_old_store_at_once_upgrade_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = old(tmp_path / "old.sqlite")
    monkeypatch.setattr(database, "MIGRATIONS", later())

    def opened(_: int) -> list[str]:
        with sp.Store(path) as store:
            return store.names

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(opened, range(4))) == [["a", "b"]] * 4


# Damage


def test_no_flipped_bit_is_believed(tmp_path: Path) -> None:
    """Every file with flipped bits is refused in words, or holds what it held."""
    world = random.Random(3)
    with sp.Store(tmp_path / "sound", CONTROLLER) as store:
        store.apply(events(60)[:90])
        store.stream("season", SEASON)
        store.apply(season(40))
        held = {name: seen(store, name) for name in store.names}
    sound = (tmp_path / "sound").read_bytes()
    refused = 0
    for number in range(200):
        data = bytearray(sound)
        for _ in range(1 if number % 2 else 20):
            data[world.randrange(100, len(data))] ^= 1 << world.randrange(8)
        path = tmp_path / "flipped"
        for end in ("", "-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
        path.write_bytes(data)
        try:
            with sp.Store(path) as store:
                store.overviews()
                for name in store.names:
                    if name in held:  # under another name nothing is taken for another stream
                        state, history = seen(store, name)
                        assert state == held[name][0]
                        # A damaged page can hide rows that are closed; no row is another.
                        assert all(row in held[name][1] for row in history)
        except SetpointError:
            refused += 1
    assert refused > 50


def seen(store: sp.Store, name: str) -> Any:
    return to_text(store.read(name).content()), list(store.history(name))


def test_check_finds_what_is_damaged(tmp_path: Path) -> None:
    with sp.Store(tmp_path / "a", CONTROLLER) as store:
        store.apply(events(30))
        assert store.check() == []
    with closing(sqlite3.connect(tmp_path / "a")) as lite, lite:
        lite.execute("UPDATE predictions SET y = '7.5' WHERE stream = 1 AND number = 3")
    with sp.Store(tmp_path / "a") as store:
        (told,) = store.check()
        assert "prediction 3 does not fit its checksum; restore a backup" in told
        with pytest.raises(StateError, match="checksum"):
            list(store.history(store.names[0]))
    with closing(sqlite3.connect(tmp_path / "a")) as lite, lite:
        lite.execute("DELETE FROM predictions WHERE ended IS NULL")
    with sp.Store(tmp_path / "b", CONTROLLER) as store:
        store.apply([{"id": 1, "prediction": [0, 1]}])
    with closing(sqlite3.connect(tmp_path / "b")) as lite, lite:
        lite.execute("DELETE FROM predictions")
    with sp.Store(tmp_path / "b") as store, pytest.raises(StateError, match="0 of 1 predictions"):
        store.read()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not let go of open files")
@pytest.mark.parametrize("end", ["", "-wal"])
def test_a_store_whose_file_was_deleted_takes_nothing_in(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.sqlite"
    with sp.Store(path, CONTROLLER) as store:
        store.apply([{"id": 1, "prediction": [0, 1]}])
        Path(f"{path}{end}").unlink()
        for _ in range(2):
            with pytest.raises(WriteError, match="was deleted or replaced while it was in use"):
                store.apply([{"id": 2, "prediction": [0, 1]}])
            with pytest.raises(WriteError):
                store.read()


# What is written


@pytest.mark.parametrize("period", [168, 8760])
def test_a_large_season_goes_through_the_database_to_the_bit(tmp_path: Path, period: int) -> None:
    controller = sp.intervals(0.9, period=period)
    plain, world = sp.Stream(controller), random.Random(1)
    for number in range(200):
        forecast, y = world.gauss(0, 1), world.gauss(0, 2)
        plain.predict(forecast, number)
        plain.update(y, number)
        with (
            sp.Store(tmp_path / "a", controller)
            if number % 20 == 0
            else sp.Store(tmp_path / "a") as s
        ):
            s.apply([{"id": number, "prediction": forecast, "y": y}])
            if number == 150:
                s.stream().reset()
                plain.reset()
    with sp.Store(tmp_path / "a") as store:
        assert to_text(store.read().content()["table"]) == to_text(plain.content()["table"])
        assert store.read().theta == plain.theta


def test_a_commit_writes_what_changed_and_not_the_whole_season(tmp_path: Path) -> None:
    """What a batch adds to the log does not grow with the season."""
    sizes = []
    for period in (2000, 20_000):
        path = tmp_path / f"{period}"
        with sp.Store(path, sp.intervals(0.9, period=period)) as store:
            store.apply([{"id": -1, "prediction": 1.0, "y": 1.5}])
            log = Path(f"{path}-wal")
            before = log.stat().st_size
            for number in range(5):
                store.apply([{"id": number, "prediction": 1.0, "y": 1.5}])
            sizes.append(log.stat().st_size - before)
    assert sizes[1] < 1.2 * sizes[0]
    assert max(sizes) < 5 * 200_000


def test_an_array_that_changes_its_shape_is_written_again(tmp_path: Path) -> None:
    from setpoint.store.live import Live

    with sp.Store(tmp_path / "a", SEASON) as store:
        store.apply(season(20))
        live: Live = store._live["season"]
        first = live.stream.content()
        live._parts(first)
        assert first["annex"]["parts"] == len(live.rows_of["annex"]) > 0
        parts, cleared = live._parts({"annex": np.ones((600, 3))})
        assert cleared == ["annex"]
        assert [part.number for part in parts] == list(range(8))
        parts, cleared = live._parts({"annex": None})
        assert (parts, cleared) == ([], ["annex"])


# Moved, renamed, deleted, forgotten


def test_a_stream_moves_to_another_store_and_goes_on(tmp_path: Path) -> None:
    sent = events(40)
    with sp.Store(tmp_path / "one", CONTROLLER, window=20, tolerance=0.1) as one:
        one.apply(sent[:50])
        one.stream("season", SEASON)
        one.apply(season(30))
        one.export_streams(tmp_path / "a.jsonl", ["a", "season"])
        history = list(one.history("a"))
        alarms = [alarm for alarm in one.alarms() if alarm["stream"] in ("a", "season")]
    with sp.Store(tmp_path / "two", CONTROLLER) as two:
        two.apply([{"stream": "b", "id": 1, "prediction": [0, 1]}])
        assert two.import_streams(tmp_path / "a.jsonl") == ["a", "season"]
        with pytest.raises(StateError, match='there is a stream "a" already'):
            two.import_streams(tmp_path / "a.jsonl")
        assert list(two.history("a")) == history
        key = ("stream", "at", "kind", "step")
        assert [[a[k] for k in key] for a in two.alarms() if a["stream"] != "b"] == [
            [a[k] for k in key] for a in alarms
        ]
        mine = [event for event in sent[50:] if event["stream"] == "a"]
        assert not [answer for answer in two.apply(mine) if "error" in answer]
        assert all(answer["repeated"] for answer in two.apply(season(30)))
        assert two.read("a").theta == reference(sent)["a"].theta
        two.apply(season(60)[30:])
        two.export_streams(tmp_path / "one.jsonl", ["season"])
        assert two.import_streams(tmp_path / "one.jsonl", "spring") == ["spring"]
        assert two.read("spring").theta == two.read("season").theta
        with pytest.raises(DataError, match="a name can be given to one"):
            two.import_streams(tmp_path / "a.jsonl", "autumn")
        assert "autumn" not in two.names
        assert two.check() == []
        with pytest.raises(StateError, match="there is no stream"):
            two.export_streams(tmp_path / "none.jsonl", ["none"])
        assert not (tmp_path / "none.jsonl").exists()


def test_an_export_that_is_cut_or_damaged_is_refused_whole(tmp_path: Path) -> None:
    with sp.Store(tmp_path / "one", CONTROLLER) as store:
        store.apply(events(20))
        lines = list(store.lines())
    world = random.Random(2)
    with sp.Store(tmp_path / "two", CONTROLLER) as store:
        for number in range(60):
            bad = list(lines)
            if number % 3 == 0:
                bad = bad[: world.randrange(len(bad))]
            elif number % 3 == 1:
                del bad[world.randrange(len(bad))]
            else:
                place = world.randrange(len(bad))
                data = bytearray(bad[place])
                data[world.randrange(len(data) - 1)] ^= 1 << world.randrange(7)
                bad[place] = bytes(data)
            with pytest.raises(SetpointError):
                store.import_streams(bad)
            assert store.names == []
        assert store.import_streams(lines) == ["a", "b"]
        same(store, reference(events(20)))


def forged(lines: list[bytes], world: random.Random) -> list[bytes]:
    """Lines in which one value is another, with a checksum that fits."""
    contents = [json.loads(line) for line in lines[:-1]]
    content = contents[world.randrange(len(contents))]
    field = world.choice(list(content))
    value: Any = world.choice(["", None, -7, 1.5, "x", [], {}, "{}", "[]", 10**400, "\ud800"])
    inner = content[field]
    if isinstance(inner, list) and inner and world.random() < 0.8:
        inner[world.randrange(len(inner))] = value
    elif field in ("overview", "state") and world.random() < 0.8:
        part = json.loads(inner)
        part[world.choice(list(part))] = value
        content[field] = json.dumps(part)
    else:
        content[field] = value
    made = [json.dumps(content).encode() for content in contents]
    check = 0
    for line in made:
        check = crc32(line, check)
    return [*made, json.dumps({"lines": len(made), "crc": check}).encode()]


def test_a_forged_export_is_refused_or_can_be_looked_at_like_any_other(tmp_path: Path) -> None:
    with sp.Store(tmp_path / "one", CONTROLLER, window=20, tolerance=0.1) as store:
        store.apply(events(20))
        store.stream("season", SEASON)
        store.apply(season(10))
        lines, world, taken = list(store.lines()), random.Random(4), 0
    with sp.Store(tmp_path / "two", CONTROLLER) as store:
        for _ in range(300):
            try:
                store.import_streams(forged(lines, world))
            except SetpointError:
                assert store.names == []
                continue
            taken += 1
            for name in store.names:
                list(store.history(name)), store.read(name).certificate()
                with suppress(SetpointError):
                    store.summary(name)
                store.apply([{"stream": name, "id": "new", "prediction": [0, 1], "y": 0.5}])
            assert all(type(row["at"]) is float for row in store.overviews().values())
            store.alarms(), list(store.lines())
            for name in store.names:
                store.delete(name)
    assert 0 < taken < 200


def test_a_stream_can_be_renamed_and_deleted_and_begin_again(tmp_path: Path) -> None:
    sent = events(30)
    with sp.Store(tmp_path, CONTROLLER, takes_back=True) as store, sp.Store(tmp_path) as other:
        store.apply(sent)
        other.stream("b")
        store.rename("a", "ä/b")
        assert sorted(store.names) == ["b", "ä/b"]
        assert store.read("ä/b").theta == reference(sent)["a"].theta
        with pytest.raises(StateError, match="there is a stream 'b' already"):
            store.rename("ä/b", "b")
        for call in (store.delete, lambda name: store.rename(name, "c")):
            with pytest.raises(sp.errors.UnknownStream):
                call("a")
        store.delete("b")
        store.apply([{"stream": "b", "id": "p1", "prediction": [0, 1]}])
        # Who had the deleted stream does not go on with it under its name.
        with pytest.raises(TakenOver):
            other.apply([{"stream": "b", "id": "new", "prediction": [0, 1]}])
        assert [row["id"] for row in store.history("b")] == ["p1"]
        assert store.read("b").state.risks[0].judged == 0
        assert store.check() == []


def test_history_is_forgotten_by_id_by_age_and_whole(tmp_path: Path) -> None:
    secret = "a-very-private-id"
    with sp.Store(tmp_path / "a", CONTROLLER) as store:
        for number in range(40):
            store.apply([{"id": f"p{number}", "prediction": [0, 1], "y": 0.5}])
        store.apply([{"id": secret, "prediction": [0, 1]}, {"id": "late", "prediction": [0, 1]}])
        theta = store.read().theta
        with pytest.raises(InputError, match="waits for its label: drop it first"):
            store.forget("", [secret])
        store.apply([{"id": secret, "drop": True}])
        assert store.forget("", [secret, "unknown"]) == 1
        assert secret not in [row["id"] for row in store.history()]
        closed = [row["closed"] for row in store.history() if row["closed"] is not None]
        assert store.forget("", before=closed[10]) == sum(at < closed[10] for at in closed)
        assert store.forget() > 20
        assert [row["id"] for row in store.history()] == ["late"]
        assert store.read().theta == theta
        assert list(store.read().pending) == ["late"]
        files = [path.read_bytes() for path in tmp_path.iterdir()]
        assert not any(secret.encode() in data for data in files), "it is still in a file"
        with pytest.raises(sp.errors.UnknownStream):
            store.forget("none")
        assert store.check() == []


def test_the_controller_that_a_stream_began_with_is_accepted_whatever_was_changed(
    tmp_path: Path,
) -> None:
    with sp.Store(tmp_path) as store:
        store.stream("a", CONTROLLER).change(level=0.2)
    other = replace(CONTROLLER, risks=(replace(RISK, level=0.3),))
    with sp.Store(tmp_path) as store:
        store.stream("a", CONTROLLER)
        assert store.read("a").controller.risks[0].level == 0.2
        store.stream("a", store.read("a").controller)
        with pytest.raises(StateError, match="another controller"):
            store.stream("a", other)


@pytest.mark.parametrize("risk", [1, -1, "0", None])
def test_a_change_of_no_risk_is_refused_with_a_sentence(tmp_path: Path, risk: Any) -> None:
    with sp.Store(tmp_path) as store:
        stream = store.stream("a", CONTROLLER)
        with pytest.raises(InputError, match=r"risk must be (a whole number|an index from 0 to 0)"):
            stream.change(risk=risk, level=0.2)


# Backups


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals and fork")
def test_a_backup_comes_back_after_a_kill_whatever_the_log_holds(tmp_path: Path) -> None:
    """Copying a file over another with its log left the later state, or a damaged one."""
    sent, path = events(60), tmp_path / "streams.sqlite"
    world = random.Random(5)
    for number in range(12):
        done = world.randrange(10, len(sent) - 10)
        for file in tmp_path.iterdir():
            file.unlink()
        child = os.fork()
        if child == 0:
            store = sp.Store(path, CONTROLLER, history=77)
            store.apply(sent[:done])
            store.export_streams(tmp_path / "backup")
            for event in sent[done:]:
                store.apply([event])
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        if number % 3 == 1:
            path.unlink()  # the log alone is left
        elif number % 3 == 2:
            path.write_bytes(b"damaged" * 1000)
        kept = sp.Store.restore(path, tmp_path / "backup")
        assert (kept is None) == (number % 3 == 1)
        with sp.Store(path) as store:
            same(store, reference(sent[:done]))
            assert store.check() == []
            assert not [answer for answer in store.apply(sent[done:]) if "error" in answer]
            same(store, reference(sent))
            assert store._settings["history"] == 77
        if number % 3 == 0 and kept is not None:
            with sp.Store(kept) as store:  # what was restored over is not lost
                same(store, reference(sent))


def test_a_store_in_use_is_not_restored_over(tmp_path: Path) -> None:
    with sp.Store(tmp_path / "a", CONTROLLER) as store:
        store.apply(events(10))
        store.export_streams(tmp_path / "backup")
        with pytest.raises(WriteError, match="is in use: stop the service"):
            sp.Store.restore(tmp_path / "a", tmp_path / "backup")
        same(store, reference(events(10)))
        store.export_streams(tmp_path / "one", ["a"])
    with pytest.raises(DataError, match="these are single streams: import them"):
        sp.Store.restore(tmp_path / "a", tmp_path / "one")
    with sp.Store(tmp_path / "a") as store:
        same(store, reference(events(10)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "backup", "one"]


# Ids and labels


def test_a_model_is_replaced_while_predictions_under_ids_of_every_kind_wait(tmp_path: Path) -> None:
    ids: list[Any] = [7, "seven", (7, "seven")]
    plain = sp.Stream(sp.intervals())
    with sp.Store(tmp_path, sp.intervals()) as store:
        stream = store.stream()
        for each in (stream, plain):
            for id in ids:
                each.predict(1.0, id)
            each.reset()
    with sp.Store(tmp_path) as store:
        assert store.check() == []
        for id in ids:
            assert store.stream().update(2.0, id) == plain.update(2.0, id)
        assert to_text(store.read().content()["table"]) == to_text(plain.content()["table"])


def test_half_a_character_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    half = "\ud800"
    controller = sp.label_sets(0.9)
    with sp.Store(tmp_path, controller) as store:
        sent: list[dict[str, Any]] = [
            {"id": half, "prediction": {"a": 1.0}}, {"id": [1, half], "prediction": {"a": 1.0}},
            {"id": 1, "prediction": {half: 1.0}}, {"stream": half, "id": 1, "prediction": {"a": 1}},
        ]  # fmt: skip
        for answer in store.apply(sent):
            assert "must be whole characters" in answer["error"]
        store.apply([{"id": 1, "prediction": {"a": 1.0}}])
        (answer,) = store.apply([{"id": 1, "y": half}])
        assert "must be whole characters" in answer["error"]


@pytest.mark.parametrize("named", [False, True])
def test_a_class_that_the_prediction_does_not_name_is_refused(tmp_path: Path, named: bool) -> None:
    prediction: Any = {"no": 0.8, "yes": 0.2} if named else [0.8, 0.2]
    with sp.Store(tmp_path, sp.label_sets(0.9)) as store:
        store.apply([{"id": 1, "prediction": prediction}])
        theta = store.read().theta
        for y in ["cat", 7] if named else [2, 7]:
            (answer,) = store.apply([{"id": 1, "y": y}])
            classes = '"no", "yes"' if named else "0, 1"
            assert answer["error"] == f"y must be one of the classes {classes}, got {json.dumps(y)}"
            assert answer["kind"] == LabelError.__name__
        assert store.read().theta == theta
        assert "error" not in store.apply([{"id": 1, "y": "yes" if named else 1}])[0]


# Threads and processes on one stream


def test_threads_share_a_store_and_count_each_event_once(tmp_path: Path) -> None:
    with sp.Store(tmp_path, CONTROLLER) as store:
        stream = store.stream("a")

        def work(number: int) -> None:
            for n in range(20):
                id = f"{number} {n}"
                stream.predict((0.0, 1.0), id)
                stream.update(0.5 + number, id)

        threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        state = store.read("a").state.risks[0]
        assert (state.judged, len(list(store.history("a")))) == (80, 80)
        identity = state.first + 0.05 * (state.total - 0.1 * state.judged)
        assert state.theta == pytest.approx(identity)


PROCESS = """
import sys
import setpoint as sp
from setpoint.errors import TakenOver
fresh = 0
with sp.Store(sys.argv[1], takes_back=True) as store:
    for n in range(40):
        for event in ({"prediction": [0, 1]}, {"y": 0.1 * n}):
            (answer,) = store.apply([{"id": n, **event}], "a")
            assert "error" not in answer, answer
            fresh += "repeated" not in answer
print(fresh)
"""


def test_processes_share_a_stream_and_count_each_event_once(tmp_path: Path) -> None:
    """Each sends the same events; what one has taken in, the others are answered as before."""
    path = tmp_path / "a.sqlite"
    with sp.Store(path, CONTROLLER) as store:
        store.stream("a")
    command = [sys.executable, "-c", PROCESS, str(path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    fresh = [int(process.communicate()[0]) for process in running]
    assert sum(fresh) == 80
    plain = sp.Stream(CONTROLLER)
    for n in range(40):
        plain.predict((0, 1), n)
        plain.update(0.1 * n, n)
    with sp.Store(path) as store:
        same(store, {"a": plain})
