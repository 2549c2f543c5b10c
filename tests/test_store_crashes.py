"""A store after crashes: what was answered is there, nothing is there twice."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import setpoint as sp
from tests.stored import CONTROLLER, events, reference, same

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs signals and fork")

ROOT = Path(__file__).parents[1]


def test_a_crash_before_or_after_any_statement_loses_nothing(tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="needs starlette: pip install 'setpoint[service]'")
    from tests.faults import every_write

    numbers = count()
    assert every_write(1, lambda: str(tmp_path / f"{next(numbers)}.sqlite")) > 60


def test_a_log_cut_at_any_write_holds_what_was_answered_before_it(tmp_path: Path) -> None:
    """Between two checkpoints SQLite only appends to its log, so a crash leaves a part of it."""
    sent, sizes = events(12), [0]
    log, copy = tmp_path / "streams.sqlite-wal", tmp_path / "copy"
    copy.mkdir()
    with sp.Store(tmp_path, CONTROLLER) as store:
        begun = log.stat().st_size
        for start in range(0, len(sent), 5):
            store.apply(sent[start : start + 5])
            sizes.append(log.stat().st_size)
        lengths = {*range(begun, sizes[-1], 1021), *sizes[1:]}
        for length in sorted(lengths):
            shutil.copy(tmp_path / "streams.sqlite", copy)
            (copy / log.name).write_bytes(log.read_bytes()[:length])
            batches = max(number for number, size in enumerate(sizes) if size <= length)
            with sp.Store(copy) as cut:
                same(cut, reference(sent[: 5 * batches]))
                assert not any("error" in answer for answer in cut.apply(sent[5 * batches :]))
                same(cut, reference(sent))


def test_a_full_disk_loses_nothing_answered(tmp_path: Path) -> None:
    import resource

    sent = events(3000)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        answered = os.open(tmp_path / "answered", os.O_CREAT | os.O_WRONLY)
        store, told = sp.Store(tmp_path, CONTROLLER), ""
        try:
            for start in range(0, len(sent), 37):
                os.write(answered, b"." * len(store.apply(sent[start : start + 37])))
        except sp.errors.WriteError as error:
            told = str(error)
        (tmp_path / "told").write_text(told)
        os._exit(0)
    os.waitpid(child, 0)
    assert "streams.sqlite cannot be used: " in (tmp_path / "told").read_text()
    answered = (tmp_path / "answered").stat().st_size
    assert answered > 100
    with sp.Store(tmp_path) as store:
        same(store, reference(sent[:answered]))


@pytest.mark.parametrize("numbered", [False, True])
def test_nothing_is_lost_or_counted_twice_however_often_it_is_killed(
    tmp_path: Path, numbered: bool
) -> None:
    """Sends events to `setpoint stream`, which is killed again and again."""
    pytest.importorskip("typer")
    sent = events(2000, 9, numbered=numbered)
    state, config = tmp_path / "state.sqlite", tmp_path / "controller.toml"
    config.write_text(sp.spec.to_toml(CONTROLLER))
    words = ["-m", "setpoint.cli", "stream", "--store", str(state), "--controller", str(config)]
    world, done = random.Random(9), 0

    def lines(part: list[dict[str, Any]]) -> bytes:
        return "".join(json.dumps(event) + "\n" for event in part).encode()

    for left in range(4, -1, -1):
        with subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            if left == 0:
                out, _ = process.communicate(lines(sent[done:]))
                answers = [json.loads(line) for line in out.splitlines()]
                assert not any("error" in answer for answer in answers)
                done += len(answers)
                break
            process.stdin.write(lines(sent[done : done + 900]))
            # Answers may be read or lie in the pipe when it dies: only those read count.
            for _ in range(world.randrange(200)):
                if done == len(sent):
                    break
                answer = json.loads(process.stdout.readline())
                assert "error" not in answer, answer
                done += 1
            time.sleep(world.random() * 0.02)
            process.send_signal(signal.SIGKILL)
    assert done == len(sent)
    with sp.Store(state) as store:
        same(store, reference(sent))
