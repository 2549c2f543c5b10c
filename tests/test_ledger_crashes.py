"""A ledger after crashes: what was answered is there, nothing is there twice."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import setpoint as sp
from setpoint.errors import StateError
from tests.ledgers import CONTROLLER, events, reference, same


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
@pytest.mark.parametrize("batch", [1, 37, 60])
def test_a_full_disk_closes_the_ledger_and_loses_nothing_answered(
    tmp_path: Path, batch: int
) -> None:
    script = """
import json, resource, signal, sys
import setpoint as sp
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
ledger = sp.Ledger(sys.argv[1], sp.spec.from_toml(sys.argv[2]))
made, batch = json.loads(sys.stdin.read()), int(sys.argv[3])
for start in range(0, len(made), batch):
    try:
        answers = ledger.handle(made[start : start + batch])
    except OSError as error:
        print("full", error)
        break
    print("answered\\n" * len(answers), end="")
"""
    made = events(1000)
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), sp.spec.to_toml(CONTROLLER), str(batch)],
        input=json.dumps(made), capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = done.stdout.split("\n")
    answered = lines.count("answered")
    assert lines[answered] == (
        f"full {tmp_path} cannot be written: File too large; raise the limit on the size of files, "
        "or choose another disk"
    )
    assert answered > 100
    with sp.Ledger(tmp_path) as ledger:
        same(ledger, reference(made[:answered]))


def test_what_a_killed_writer_left_beside_is_removed(tmp_path: Path) -> None:
    sp.Ledger(tmp_path, CONTROLLER).close()
    for name in (".streams-1.zip.ab12cd34.tmp", ".options.json.0123456789ab"):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / ".mine").write_bytes(b"")
    sp.Ledger(tmp_path).close()
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == [".mine"]


def test_an_interruption_within_an_event_closes_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = events(10)
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        ledger.handle(made[:5])

        def interrupted(*_: Any) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr("setpoint.ledger._book.Book.learn", interrupted)
            with pytest.raises(KeyboardInterrupt):
                ledger.handle(made[5:])
        with pytest.raises(StateError, match="is closed"):
            ledger.handle(made[5:])
    with sp.Ledger(tmp_path) as ledger:
        assert not any("error" in answer for answer in ledger.handle(made))
        same(ledger, reference(made))


STEPS = """
import json, os, signal, sys
import setpoint as sp

folder, toml = sys.argv[1:]
made = json.loads(sys.stdin.read())


def work(path, answered=None):
    for start in range(0, len(made), 6):
        # Every time under another option, which is a change of the folder too.
        with sp.Ledger(path, sp.spec.from_toml(toml), max_pending=100 + start) as ledger:
            answers = ledger.handle(made[start : start + 6])
            if answered is not None:
                os.write(answered, b"." * len(answers))
            ledger.checkpoint()


work(f"{folder}/first")  # imports everything, which opens files too
point = 0
while True:
    point += 1
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            break
        continue
    answered = os.open(f"{folder}/{point}.answered", os.O_CREAT | os.O_WRONLY)
    left = point

    def step(name, args=()):
        global left
        if name in ("open", "os.rename", "os.remove", "os.truncate", "fsync"):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    os.fsync = lambda file: step("fsync")  # a killed process leaves its files as they are
    sys.addaudithook(step)
    work(f"{folder}/{point}", answered)
    os._exit(0)
print(point)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_crash_before_any_step_of_writing_loses_nothing(tmp_path: Path) -> None:
    made = events(9)
    done = subprocess.run(
        [sys.executable, "-c", STEPS, str(tmp_path), sp.spec.to_toml(CONTROLLER)],
        input=json.dumps(made), capture_output=True, text=True, check=True,
    )  # fmt: skip
    points = int(done.stdout)
    assert points > 40
    whole = reference(made)
    for point in range(1, points + 1):
        answered = (tmp_path / f"{point}.answered").stat().st_size
        with sp.Ledger(tmp_path / str(point), CONTROLLER) as ledger:
            sent = ledger.handle(made[:answered])
            assert all("repeated" in answer for answer in sent), f"lost at step {point}"
            assert not any("error" in answer for answer in ledger.handle(made[answered:]))
            same(ledger, whole)
    assert answered == len(made)


def lines(made: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in made).encode()


SERVER = """
import sys
import setpoint as sp

controller = sp.spec.from_toml(open(sys.argv[2]).read())
with sp.Ledger(sys.argv[1], controller, every=300) as ledger:
    ledger.serve(sys.stdin.buffer, sys.stdout.buffer)
"""


@pytest.mark.parametrize(("command", "most"), [("cli", 5), ("script", 10)])
def test_nothing_answered_is_lost_and_nothing_taken_in_twice_however_often_it_is_killed(
    tmp_path: Path, command: str, most: int
) -> None:
    made = events(3000, seed=9, numbered=command == "cli")
    state, config = str(tmp_path / "state"), str(tmp_path / "controller.toml")
    (tmp_path / "controller.toml").write_text(sp.spec.to_toml(CONTROLLER))
    words = ["-c", SERVER, state, config]
    if command == "cli":
        words = ["-m", "setpoint.cli", "stream", "--state", state, "--config", config]
        words += ["--every", "300"]
    world, sent, kills = random.Random(4), 0, 0
    while True:
        with subprocess.Popen(
            [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            if kills == most:
                out, _ = process.communicate(lines(made[sent:]))
                answers = [json.loads(line) for line in out.splitlines()]
                assert not any("error" in answer for answer in answers)
                sent += len(answers)
                break
            process.stdin.write(lines(made[sent : sent + 900]))
            # Answers may be read or lie in the pipe when it dies: only those read count.
            for _ in range(world.randrange(200)):
                answer = json.loads(process.stdout.readline())
                assert "error" not in answer, answer
                sent += 1
            time.sleep(world.random() * 0.02)
            process.send_signal(signal.SIGKILL)
            kills += 1
    assert sent == len(made)
    with sp.Ledger(tmp_path / "state") as ledger:
        same(ledger, reference(made))
