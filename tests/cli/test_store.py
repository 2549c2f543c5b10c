"""The commands `setpoint store …` on a real store."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import setpoint as sp
from tests.stored import CONTROLLER, events, reference, same

pytest.importorskip("typer", reason="needs typer: pip install 'setpoint[cli]'")


def store(*words: object, status: int = 0) -> str:
    """What `setpoint store …` prints; its error, where it ends with one."""
    command = [sys.executable, "-m", "setpoint.cli", "store", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr if status else done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals and fork")
def test_a_store_is_backed_up_killed_restored_and_checked(tmp_path: Path) -> None:
    sent, path, copy = events(30), tmp_path / "a.sqlite", tmp_path / "backup"
    child = os.fork()
    if child == 0:
        opened = sp.Store(path, CONTROLLER)
        opened.apply(sent[:30])
        store("backup", path, copy)  # while it is in use
        opened.apply(sent[30:])
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert Path(f"{path}-wal").exists()
    assert "restored" in store("restore", path, copy)
    assert store("check", path) == "2 streams are sound\n"
    with sp.Store(path) as opened:
        same(opened, reference(sent[:30]))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE streams SET state = replace(state, '0', '1') WHERE name = 'a'")
    told = store("check", path, status=1)
    assert "is damaged:\n" in told
    assert "the stream 'a' does not fit its checksum" in told


def test_streams_are_listed_exported_imported_renamed_forgotten_and_deleted(tmp_path: Path) -> None:
    path, other, file = tmp_path / "a.sqlite", tmp_path / "b.sqlite", tmp_path / "streams"
    with sp.Store(path, CONTROLLER) as opened:
        opened.apply(events(30))
    listed = store("list", path).splitlines()
    assert [line.split()[-1] for line in listed] == ["stream", "a", "b"]
    assert set(json.loads(store("list", path, "--json"))) == {"a", "b"}
    store("export", path, file, "--stream", "a")
    assert store("import", other, file, "--name", "c") == "imported c\n"
    assert "already" in store("import", other, file, "--name", "c", status=1)
    store("rename", other, "c", "d")
    assert "forgot" in store("forget", other, "d", "--days", "1")
    with sp.Store(other) as opened:
        assert opened.names == ["d"]
        assert opened.read("d").theta == reference(events(30))["a"].theta
        assert len(list(opened.history("d"))) > 3
        first = next(opened.history("d"))["id"]
    assert store("forget", other, "d", "--id", first) == "forgot 1 predictions\n"
    with sp.Store(other) as opened:
        sent = ({"id": id, "prediction": [0, 1], "y": 0.5} for id in (7, "7", [7, "x"], True))
        opened.apply(sent, "d")
    words = ("--id", "7", "--id", '[7, "x"]', "--id", "true")  # a number or a list, too
    assert store("forget", other, "d", *words) == "forgot 3 predictions\n"
    assert "--days" in store("forget", other, "d", "--days", "-5", status=2)
    store("forget", other, "d")
    with sp.Store(other) as opened:
        assert not [row for row in opened.history("d") if row["ended"]]
    store("delete", other, "d", status=1)  # nobody said yes
    store("delete", other, "d", "--yes")
    assert "there is no stream" in store("delete", other, "d", "--yes", status=1)


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    for words in (["list"], ["check"], ["backup", tmp_path / "x"], ["delete", "a", "--yes"]):
        first, *rest = words
        told = store(first, tmp_path / "none", *rest, status=1)
        assert told == f"setpoint: there is no store at {tmp_path}/none\n"
    assert not list(tmp_path.iterdir())
