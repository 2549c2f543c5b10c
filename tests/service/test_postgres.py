"""A store on a real PostgreSQL: the same answers, one owner at a time, whatever is cut."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

import setpoint as sp
from setpoint.errors import StateError, TakenOver, UnknownStream, WriteError
from setpoint.store import database
from setpoint.store.postgres import PostgreSQL
from tests.postgres import Server
from tests.stored import CONTROLLER, events, reference, same

psycopg = pytest.importorskip("psycopg", reason="needs psycopg: pip install 'setpoint[postgres]'")
pytestmark = pytest.mark.service


def errors(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [answer for answer in answers if "error" in answer]


@pytest.mark.parametrize("numbered", [False, True])
def test_it_answers_as_sqlite_does_to_the_bit(address: str, numbered: bool, tmp_path: Any) -> None:
    sent = events(100, numbered=numbered)
    with sp.Store(tmp_path, CONTROLLER) as sqlite:
        for start in range(0, len(sent), 30):
            with sp.Store(address, CONTROLLER if start == 0 else None) as store:
                part = sent[start : start + 30]
                assert store.apply(part) == sqlite.apply(part)
    with sp.Store(address) as store:
        same(store, reference(sent))
        assert all(answer["repeated"] for answer in store.apply(sent))
        same(store, reference(sent))
    with pytest.raises(StateError, match="another controller"):
        sp.Store(address, sp.intervals())


def test_names_and_ids_may_be_any_text(address: str) -> None:
    names = ["<b>", "a/b", "ä'\"\\", "🙂" * 200]
    with sp.Store(address, CONTROLLER) as store:
        sent = [{"stream": name, "id": name, "prediction": [0, 1]} for name in names]
        sent += [{"stream": "a", "id": "\0", "prediction": [0, 1]}]
        world = random.Random(1)  # what cannot be packed takes the most room in an index
        long = "".join(chr(world.randrange(0x10000, 0x20000)) for _ in range(200))
        numbers = [world.randrange(10**890) for _ in range(2)] + [world.randrange(10**690)]
        sent += [{"stream": "a", "id": id, "prediction": [0, 1]} for id in (long, numbers)]
        assert not errors(store.apply(sent))
        assert sorted(store.names) == sorted([*names, "a"])
        (refused,) = store.apply([{"stream": "a\0", "id": 1, "prediction": [0, 1]}])
        assert "whole characters" in refused["error"]


def test_a_stream_belongs_to_who_used_it_last(address: str) -> None:
    sent = events(40)
    with sp.Store(address, CONTROLLER) as first, sp.Store(address) as second:
        first.apply(sent[:20])
        second.apply(sent[20:30])
        with pytest.raises(TakenOver):
            first.apply(sent[30:])
        same(first, reference(sent[:30]))
    with (
        sp.Store(address, takes_back=True) as first,
        sp.Store(address, takes_back=True) as second,
    ):
        for number, event in enumerate(sent[30:]):
            assert not errors((first if number % 2 else second).apply([event]))
        same(first, reference(sent))


def test_workers_that_race_with_the_same_events_count_each_once(address: str) -> None:
    """Every worker sends every event, at the same moment; for one of them it is fresh."""
    sent, workers = events(200), 4
    sp.Store(address, CONTROLLER).close()
    gate = threading.Barrier(workers, timeout=60)

    def work(_: int) -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = []
        with sp.Store(address, takes_back=True) as store:
            for start in range(0, len(sent), 5):
                gate.wait()
                while len(answers) == start:
                    with suppress(TakenOver):  # another was faster to begin a stream
                        answers += store.apply(sent[start : start + 5])
        return answers

    with ThreadPoolExecutor(workers) as pool:
        told = list(pool.map(work, range(workers)))
    for event, answers in zip(sent, zip(*told, strict=True), strict=True):
        assert not errors(list(answers))
        assert sum("repeated" not in answer for answer in answers) == 1, event
    fresh = [sum("repeated" not in answer for answer in answers) for answers in told]
    assert max(fresh) < len(sent), "only one of them was ever first"
    with sp.Store(address) as store:
        same(store, reference(sent))


def test_a_stalled_worker_cannot_write_and_does_not_block_the_others(address: str) -> None:
    sent = events(30)
    stalled = PostgreSQL(address, stall=1.0)
    with sp.Store(stalled, CONTROLLER) as first, sp.Store(address, takes_back=True) as second:
        first.apply(sent[:10])
        commit, waiting = stalled.commit, threading.Event()

        def late(changes: Any) -> None:
            waiting.set()
            time.sleep(2.5)
            commit(changes)

        stalled.commit = late  # type: ignore[method-assign]
        told: list[BaseException] = []

        def stall() -> None:
            try:
                first.apply(sent[10:20])
            except WriteError as error:
                told.append(error)

        thread = threading.Thread(target=stall)
        thread.start()
        waiting.wait()
        assert not errors(second.apply(sent[10:20]))  # waits until the stalled one is cut off
        thread.join()
        assert "send what was not answered again" in str(told[0])
        stalled.commit = commit  # type: ignore[method-assign]
        with pytest.raises(TakenOver):
            first.apply(sent[10:20])
        assert not errors(second.apply(sent[20:]))
        same(second, reference(sent))


def test_a_stream_that_others_write_to_can_be_deleted_and_a_store_restored(
    address: str, tmp_path: Any
) -> None:
    """The one that writes may have died meanwhile: its batch may be committed all the same."""
    sent = events(20)
    with sp.Store(address, CONTROLLER, takes_back=True) as writer, sp.Store(address) as other:
        writer.apply(sent[:10])
        other.export_streams(tmp_path / "backup")
        for number, work in enumerate((
            lambda: other.delete("a"), lambda: sp.Store.restore(address, tmp_path / "backup"),
        )):  # fmt: skip
            write, written, others = writer._database.write, threading.Event(), list[Any]()

            def late(
                changes: Any, write: Any = write, written: Any = written, others: Any = others
            ) -> None:
                write(changes)
                written.set()
                while not others:  # until the other one waits for this one, or is through
                    others += other_waits(address)
                    time.sleep(0.01)

            writer._database.write = late  # type: ignore[method-assign]
            with ThreadPoolExecutor(1) as pool:
                name = {"stream": "a", "id": f"late {number}"}
                batch = pool.submit(writer.apply, [{**name, "prediction": [0, 1]}])
                written.wait(30)
                threading.Timer(5.0, others.append, [True]).start()
                work()
                assert not errors(batch.result())
            writer._database.write = write  # type: ignore[method-assign]
            assert other.check() == []
            assert ("a" in other.names) == (number == 1)
        same(other, reference(sent[:10]))


def other_waits(address: str) -> list[Any]:
    """Who waits for a lock."""
    with psycopg.connect(address) as connection:
        query = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return connection.execute(query).fetchall()


def test_cut_connections_and_restarts_lose_nothing(server: Server, address: str) -> None:
    sent, done = events(60), 0
    with sp.Store(address, CONTROLLER) as store:
        while done < len(sent):
            if done == 20:
                server.cut()
            if done == 40:
                server.stop()
                server.start()
            assert not errors(store.apply(sent[done : done + 5]))  # connects again by itself
            done += 5
        same(store, reference(sent))
        find = store._database.find

        def cut(name: str, ids: Any) -> Any:
            server.cut()
            return find(name, ids)

        store._database.find = cut  # type: ignore[method-assign]
        with pytest.raises(WriteError):  # cut in the middle of a batch: nothing of it is taken in
            store.apply([{"stream": "a", "id": "new", "prediction": [0, 1]}])
        store._database.find = find  # type: ignore[method-assign]
        same(store, reference(sent))
        assert all("repeated" in answer for answer in store.apply(sent))
        write = store._database.write

        def late(changes: Any) -> None:
            write(changes)
            server.cut()

        store._database.write = late  # type: ignore[method-assign]
        with pytest.raises(WriteError):  # all is written, and lost before the commit
            store.apply([{"stream": "a", "id": "new", "prediction": [0, 1]}])
        store._database.write = write  # type: ignore[method-assign]
        assert (
            "repeated" not in store.apply([{"stream": "a", "id": "new", "prediction": [0, 1]}])[0]
        )


def test_a_database_that_is_not_there_is_told_without_its_password() -> None:
    began = time.monotonic()
    with pytest.raises(WriteError, match="the database cannot be used") as told:
        PostgreSQL("postgresql://u:secret@127.0.0.1:1/x", patience=0.3)
    assert "secret" not in str(told.value)
    assert time.monotonic() - began < 10


def test_services_that_start_at_once_make_the_tables_once(server: Server) -> None:
    for number in range(3):
        address = server.new(f"race{number}")
        gate = threading.Barrier(4, timeout=60)

        def opened(_: int, address: str = address, gate: threading.Barrier = gate) -> list[str]:
            gate.wait()
            with sp.Store(address, CONTROLLER) as store:
                return store.names

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(opened, range(4))) == [[]] * 4


def test_a_later_migration_is_made_once_and_an_older_setpoint_then_refuses_the_database(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sp.Store(address, CONTROLLER) as store:
        store.apply(events(20))
    note = "ALTER TABLE streams ADD COLUMN seen INTEGER, ADD COLUMN weight REAL"
    more = database.Migration("of tomorrow", note, lambda ask: ask("UPDATE streams SET seen = 1"))
    with monkeypatch.context() as patched:
        patched.setattr(database, "MIGRATIONS", (*database.MIGRATIONS, more))
        for _ in range(2):
            with sp.Store(address) as store:
                assert store.check() == []
                assert store.read("b").theta == reference(events(20))["b"].theta
    with pytest.raises(StateError, match="changed by a newer setpoint"):
        sp.Store(address)


def test_streams_go_from_one_database_to_the_other_and_back(address: str, tmp_path: Any) -> None:
    sent = events(60)
    with sp.Store(tmp_path / "a", CONTROLLER, window=20, tolerance=0.1, history=99) as lite:
        lite.apply(sent[:80])
        lite.stream("season", sp.intervals(0.9, period=400))
        lite.apply([{"id": n, "prediction": 1.0, "y": 1.0 + n % 3} for n in range(50)], "season")
        whole = list(lite.lines())
        lite.export_streams(tmp_path / "backup")
    with sp.Store(address, takes_back=True) as owner:
        owner.stream("old", CONTROLLER).predict((0, 1), 1)
        sp.Store.restore(address, tmp_path / "backup")
        with pytest.raises(UnknownStream):  # what was there before is gone, for its owner too
            owner.stream("old")
        assert list(owner.lines()) == whole
        assert owner.check() == []
        assert not errors(owner.apply(sent[80:]))
        owner.rename("season", "spring")
        with pytest.raises(StateError, match="already"):
            owner.rename("spring", "a")
        assert owner.forget("spring", [0, 1, 2]) == 3
        owner.delete("spring")
        same(owner, reference(sent))
        owner.export_streams(tmp_path / "again")
    assert sp.Store.restore(tmp_path / "b", tmp_path / "again") is None
    with sp.Store(tmp_path / "b") as lite:
        same(lite, reference(sent))
        assert lite._settings["history"] == 99
