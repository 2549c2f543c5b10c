"""A ledger after crashes and damage: what was answered is there, nothing is there twice."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

import setpoint as sp
from setpoint import _store
from setpoint.errors import StateError
from setpoint.ledger._log import Log
from tests.ledgers import CONTROLLER, events, reference, same

# Damage


def batches(path: Path, made: list[dict[str, Any]], size: int) -> list[int]:
    """A ledger that took in events in batches; how long its log was after each."""
    ends = []
    with sp.Ledger(path, CONTROLLER) as ledger:
        for start in range(0, len(made), size):
            ledger.handle(made[start : start + size])
            ends.append((path / f"log-{0:020d}.jsonl").stat().st_size)
    return ends


def test_a_log_cut_at_any_byte_of_the_last_batch_ends_before_it(tmp_path: Path) -> None:
    made = events(8)[:9]
    *_, start, end = batches(tmp_path, made, 3)
    log = tmp_path / f"log-{0:020d}.jsonl"
    written = log.read_bytes()
    before, whole = reference(made[:-3]), reference(made)
    for length in range(start, end):
        log.write_bytes(written[:length])
        with sp.Ledger(tmp_path) as ledger:
            same(ledger, before)
            assert log.stat().st_size == start
            assert not any("repeated" in answer for answer in ledger.handle(made[-3:]))
            same(ledger, whole)
        assert log.read_bytes() == written


@pytest.mark.parametrize("rubbish", ["flipped", "zeros", "random"])
def test_damage_anywhere_in_the_last_batch_is_seen_and_cut_off(
    tmp_path: Path, rubbish: str
) -> None:
    made, world = events(8)[:9], random.Random(3)
    *_, start, end = batches(tmp_path, made, 3)
    log = tmp_path / f"log-{0:020d}.jsonl"
    written = log.read_bytes()
    before = reference(made[:-3])
    for place in range(start, end):
        damaged = bytearray(written)
        if rubbish == "flipped":
            damaged[place] ^= 1 << world.randrange(8)
        elif rubbish == "zeros":  # blocks that were allotted and never written
            damaged[place:] = bytes(end - place)
        else:
            damaged[place : place + 20] = world.randbytes(min(20, end - place))
        log.write_bytes(damaged)
        with sp.Ledger(tmp_path) as ledger:
            same(ledger, before)


def test_damage_before_the_last_batch_is_told_with_file_and_line(tmp_path: Path) -> None:
    made = events(8)[:15]
    first, second, _ = batches(tmp_path, made, 5)
    log = tmp_path / f"log-{0:020d}.jsonl"
    written = log.read_bytes()
    for place in range(0, second, 7):
        damaged = bytearray(written)
        damaged[place] ^= 4
        log.write_bytes(damaged)
        line = 1 if place < first else 3
        with pytest.raises(StateError, match=rf"{log} is damaged in line {line}, and events after"):
            sp.Ledger(tmp_path)
        assert log.read_bytes() == damaged  # nothing is cut off
    log.write_bytes(written)
    log.rename(tmp_path / f"log-{5:020d}.jsonl")
    with pytest.raises(StateError, match=r"begins after event 5, and those after 0 are missing"):
        sp.Ledger(tmp_path)


def thrice(path: Path, made: list[dict[str, Any]]) -> None:
    """A ledger written whole several times, with events after the last time."""
    with sp.Ledger(path, CONTROLLER) as ledger:
        for start in range(0, len(made), 20):
            ledger.handle(made[start : start + 20])
            if start + 20 < len(made):
                ledger.checkpoint()


def damages(data: bytes, world: random.Random) -> list[bytes]:
    """What may become of a file."""
    made = [b"", data[:1], data[: len(data) // 2], data[:-1], bytes(len(data)), b"no zip"]
    for _ in range(10):
        place = world.randrange(len(data) - 40)
        made.append(data[:place] + world.randbytes(40) + data[place + 40 :])
    return made


def test_a_damaged_file_of_streams_is_replaced_by_the_one_before_and_the_logs(
    tmp_path: Path,
) -> None:
    made = events(60)[:100]
    thrice(tmp_path / "whole", made)
    one_before, newest = sorted((tmp_path / "whole").glob("streams-*"))
    for number, damage in enumerate(damages(newest.read_bytes(), random.Random(5))):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "whole", folder)
        (folder / newest.name).write_bytes(damage)
        with pytest.warns(RuntimeWarning, match=rf"{newest.name} is damaged .*nothing is lost"):
            ledger = sp.Ledger(folder)
        with ledger:
            same(ledger, reference(made))
            again = ledger.handle(made)
            assert all("repeated" in answer for answer in again)
            ledger.checkpoint()
        assert (folder / f"damaged-{newest.name}").read_bytes() == damage
        with sp.Ledger(folder) as ledger:
            same(ledger, reference(made))
        (folder / max(folder.glob("streams-*")).name).write_bytes(b"")
        assert (folder / one_before.name).exists()  # the damaged one is not one of the last two
        with pytest.warns(RuntimeWarning, match="nothing is lost"):
            sp.Ledger(folder).close()


def test_if_both_files_of_streams_are_damaged_that_is_told(tmp_path: Path) -> None:
    made = events(60)[:100]
    thrice(tmp_path, made)
    for path in tmp_path.glob("streams-*"):
        path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(StateError, match=r"is damaged .*; nothing before it is left: restore"):
        sp.Ledger(tmp_path)


def test_a_log_that_does_not_lead_to_where_a_damaged_file_was_is_told(tmp_path: Path) -> None:
    made = events(60)[:100]
    thrice(tmp_path, made)
    newest, log = max(tmp_path.glob("streams-*")), max(tmp_path.glob("log-*"))
    newest.write_bytes(b"")
    log.unlink()
    before = max(tmp_path.glob("log-*"))
    before.write_bytes(before.read_bytes()[:-1])
    for _ in range(2):
        with pytest.raises(StateError, match=r"the logs before it end with event 60 of 80: rest"):
            sp.Ledger(tmp_path)


@pytest.mark.parametrize("event", [("c", "p1", "y", 1.0), ("a", "p999", "y", 1.0), ("a", 1)])
def test_a_log_that_does_not_fit_its_streams_is_told(
    tmp_path: Path, event: tuple[Any, ...]
) -> None:
    made = events(60)[:100]
    thrice(tmp_path, made)
    path = max(tmp_path.glob("log-*"))
    log = Log(path, path.stat().st_size)
    log.append(101, [event])
    log.close()
    with pytest.raises(StateError, match=rf"{path} does not fit .* in the batch of event 101: "):
        sp.Ledger(tmp_path)


def test_the_first_file_of_streams_may_be_damaged_as_long_as_the_first_log_is_there(
    tmp_path: Path,
) -> None:
    made = events(20)
    thrice(tmp_path, made[:21])
    (path,) = tmp_path.glob("streams-*")
    path.write_bytes(b"")
    with pytest.warns(RuntimeWarning, match="nothing is lost"), sp.Ledger(tmp_path) as ledger:
        same(ledger, reference(made[:21]))


def test_options_that_are_damaged_or_of_a_later_version_are_told(tmp_path: Path) -> None:
    sp.Ledger(tmp_path, CONTROLLER).close()
    options = tmp_path / "options.json"
    held = json.loads(options.read_text())
    for text in ("", "[]", "{}", '{"format": 2}'):
        options.write_text(text)
        with pytest.raises(StateError, match=r"options.json is damaged .*: write it again, as in"):
            sp.Ledger(tmp_path)
    options.write_text(json.dumps({**held, "format": 3}))
    with pytest.raises(StateError, match="has format 3; this setpoint reads up to 2: update"):
        sp.Ledger(tmp_path)


def old_folder(path: Path, made: list[dict[str, Any]], after: int) -> None:
    """A folder as format 1 was: closed ids in the streams, a check sum for each event."""
    path.mkdir()
    (path / "controller.toml").write_text(sp.spec.to_toml(CONTROLLER))
    options = {"max_pending": 10_000, "overflow": "refuse", "missing": "skip"}
    (path / "options.json").write_text(json.dumps(options))
    streams = {name: each._content() for name, each in reference(made[:after]).items()}
    if after:
        content = {
            "streams": [(name, {**each, "missing": "skip"}) for name, each in streams.items()]
        }
        _store.write(path / f"streams-{after:020d}.zip", "ledger", content)
    with open(path / f"log-{after:020d}.jsonl", "wb") as log:
        for serial, event in enumerate(made[after:], after + 1):
            verb = "prediction" if "prediction" in event else "y"
            text = json.dumps([serial, event["stream"], event["id"], verb, event[verb]]).encode()
            log.write(b"%08x %s\n" % (zlib.crc32(text), text))


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("after", [0, 70])
def test_a_folder_of_format_1_goes_on_as_format_2(
    tmp_path: Path, after: int, numbered: bool
) -> None:
    made = events(100, numbered=numbered)
    old_folder(tmp_path / "old", made[:-40], after)
    for part in (made[-40:-20], made[-20:]):
        with sp.Ledger(tmp_path / "old", CONTROLLER) as ledger:
            assert all("repeated" in answer for answer in ledger.handle(made[:-40]))
            assert not any({"repeated", "error"} & set(each) for each in ledger.handle(part))
    with sp.Ledger(tmp_path / "old") as ledger:
        same(ledger, reference(made))
    assert json.loads((tmp_path / "old" / "options.json").read_text())["format"] == 2


def test_a_log_of_format_1_may_be_torn_too(tmp_path: Path) -> None:
    made = events(20)
    old_folder(tmp_path / "old", made, 0)
    log = tmp_path / "old" / f"log-{0:020d}.jsonl"
    log.write_bytes(log.read_bytes()[:-3])
    with sp.Ledger(tmp_path / "old") as ledger:
        same(ledger, reference(made[:-1]))
    old_folder(tmp_path / "other", made, 0)
    log = tmp_path / "other" / f"log-{0:020d}.jsonl"
    log.write_bytes(log.read_bytes().replace(b"prediction", b"predictiom", 1))
    with pytest.raises(StateError, match="is damaged in line 1, and events after it"):
        sp.Ledger(tmp_path / "other")


# Crashes


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
    with sp.Ledger(path, sp.spec.from_toml(toml)) as ledger:
        for start in range(0, len(made), 6):
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
