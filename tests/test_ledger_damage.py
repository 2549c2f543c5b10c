"""A ledger whose files were damaged, taken away or written by an earlier version: all is told."""

import json
import random
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

import setpoint as sp
from setpoint import _store
from setpoint.errors import StateError
from setpoint.jobs import inspect
from setpoint.ledger._log import Log
from tests.ledgers import CONTROLLER, events, reference, same


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


def unwritten(path: Path, before: dict[str, sp.Stream]) -> None:
    """A ledger whose last batch was never answered opens without a word."""
    with sp.Ledger(path) as ledger:
        same(ledger, before)
    assert not list(path.glob("damaged-*"))


def lost(path: Path, before: dict[str, sp.Stream], damaged: bytes) -> None:
    """A ledger whose last batch may have been answered says so and keeps its bytes."""
    told = r"log-0+\.jsonl is damaged after event 6: .* may have been answered .* send it again"
    with pytest.warns(RuntimeWarning, match=told), sp.Ledger(path) as ledger:
        same(ledger, before)
    (aside,) = path.glob("damaged-*")
    assert aside.name == f"damaged-log-{0:020d}.jsonl"
    assert aside.read_bytes() == damaged
    aside.unlink()


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
        if rubbish == "zeros":
            unwritten(tmp_path, before)
        else:
            lost(tmp_path, before, damaged[start:])


def test_several_damaged_ends_of_one_log_are_all_kept(tmp_path: Path) -> None:
    made = events(8)[:9]
    *_, start, _ = batches(tmp_path, made, 3)
    log = tmp_path / f"log-{0:020d}.jsonl"
    ends = []
    for _ in range(3):
        damaged = log.read_bytes()[:-3] + b"?" * (len(ends) + 1) + b"]\n"
        log.write_bytes(damaged)
        ends.append(damaged[start:])
        with pytest.warns(RuntimeWarning, match="send it again"):
            sp.Ledger(tmp_path).close()
        with sp.Ledger(tmp_path) as ledger:  # what was told once is not told again
            ledger.handle(made[-3:])
            same(ledger, reference(made))
    kept = [f"damaged-{log.stem}{number}.jsonl" for number in ("", "-1", "-2")]
    assert [(tmp_path / name).read_bytes() for name in kept] == ends


def test_a_log_that_is_missing_is_told(tmp_path: Path) -> None:
    made = events(60)[:100]
    thrice(tmp_path / "whole", made)
    batches(tmp_path / "first", made, 20)
    sp.Ledger(tmp_path / "empty", CONTROLLER).close()
    for name, gone, number in [
        ("whole", "log-*80.jsonl", 80),
        ("whole", "log-*", 60),
        ("first", "log-*", 0),
        ("empty", "log-*", 0),
    ]:
        folder = tmp_path / "copy"
        shutil.copytree(tmp_path / name, folder)
        for path in folder.glob(gone):
            path.unlink()
        told = (
            rf"{folder}/log-{number:020d}.jsonl is missing, and with it the events after {number}:"
        )
        for _ in range(2):
            with pytest.raises(StateError, match=told):
                sp.Ledger(folder, CONTROLLER)
        with pytest.raises(StateError, match=told):
            inspect(folder)
        shutil.rmtree(folder)


def test_inspecting_names_the_folder_and_leaves_what_is_damaged_there(tmp_path: Path) -> None:
    made = events(8)[:9]
    batches(tmp_path, made, 3)
    log = tmp_path / f"log-{0:020d}.jsonl"
    written = log.read_bytes()
    log.write_bytes(written[:-2] + b"?\n")
    with pytest.warns(RuntimeWarning, match=rf"^{log} is damaged after event 6: "):
        found = inspect(tmp_path)
    assert found.certificates.keys() == reference(made[:-3]).keys()
    assert not list(tmp_path.glob("damaged-*"))
    log.write_bytes(b"?" + written[1:])
    with pytest.raises(StateError, match=rf"^{log} is damaged in line 1, and events after it"):
        inspect(tmp_path)


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
    newest, (*_, before, _) = max(tmp_path.glob("streams-*")), sorted(tmp_path.glob("log-*"))
    newest.write_bytes(b"")
    before.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(StateError, match=r"begins after event 80, and those after 60 are mis"):
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
    strange = ({"controller": 3}, {"earlier": [[1, {}]]}, {"earlier": 3})
    for text in ("", "[]", "{}", '{"format": 2}', *(json.dumps({**held, **s}) for s in strange)):
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
    streams = {name: each.content() for name, each in reference(made[:after]).items()}
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


@pytest.mark.parametrize("logged", [False, True])
def test_a_folder_of_format_2_that_does_not_hold_its_controller_twice_goes_on(
    tmp_path: Path, logged: bool
) -> None:
    made = events(20)[:20] if logged else []
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        ledger.handle(made)
    options, log = tmp_path / "options.json", tmp_path / f"log-{0:020d}.jsonl"
    held = json.loads(options.read_text())
    options.write_text(json.dumps({key: held[key] for key in held if key != "controller"}))
    if not logged:  # as it was left by a process killed before it made its first log
        log.unlink()
    with sp.Ledger(tmp_path) as ledger:
        same(ledger, reference(made))
    assert json.loads(options.read_text()) == held


def test_a_log_of_format_1_may_be_torn_too(tmp_path: Path) -> None:
    made = events(20)
    old_folder(tmp_path / "old", made, 0)
    log = tmp_path / "old" / f"log-{0:020d}.jsonl"
    log.write_bytes(log.read_bytes()[:-3])
    with sp.Ledger(tmp_path / "old") as ledger:
        same(ledger, reference(made[:-1]))
    old_folder(tmp_path / "other", made, 0)
    log = tmp_path / "other" / f"log-{0:020d}.jsonl"
    written = log.read_bytes()
    log.write_bytes(written.replace(b"prediction", b"predictiom", 1))
    with pytest.raises(StateError, match="is damaged in line 1, and events after it"):
        sp.Ledger(tmp_path / "other")
    log.write_bytes(written[:-2] + b"?\n")
    told = pytest.warns(RuntimeWarning, match=f"is damaged after event {len(made) - 1}: what was")
    with told, sp.Ledger(tmp_path / "other") as ledger:
        same(ledger, reference(made[:-1]))


def test_the_command_line_tells_damage_in_one_sentence_of_its_own(tmp_path: Path) -> None:
    pytest.importorskip("typer")
    made = events(20)
    thrice(tmp_path, made[:21])
    (path,) = tmp_path.glob("streams-*")
    path.write_bytes(b"")
    done = subprocess.run(
        [sys.executable, "-m", "setpoint.cli", "stream", "--state", str(tmp_path)],
        input=json.dumps(made[0]), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["repeated"]
    (told,) = done.stderr.splitlines()
    assert re.fullmatch(rf"setpoint: note: {path} is damaged .*; nothing is lost: .*", told)
