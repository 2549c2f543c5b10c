"""The ledger: what was answered survives any crash, nothing is taken in twice, bad events pass."""

import io
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

RISK = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-20.0, 20.0))
CONTROLLER = sp.Controller(
    sp.sets.Widen(), RISK, sp.stretches.ErrorAdaptive(0.1, 0.2, low=-1.0, high=1.0)
)


def events(count: int, seed: int = 1, *, numbered: bool = False) -> list[dict[str, Any]]:
    """Predictions and labels of several streams, some late, in one sequence."""
    ids = {"a": 0, "b": 0}
    world = random.Random(seed)
    made, waiting = [], []
    for number in range(count):
        name = world.choice("ab")
        id = ids[name] if numbered else f"p{number}"
        ids[name] += 1
        made.append({"stream": name, "id": id, "prediction": [-1.0, 1.0 + number % 3]})
        waiting.append({"stream": name, "id": id, "y": world.gauss(0.0, 2.0)})
        while waiting and world.random() < 0.6:
            made.append(waiting.pop(world.randrange(len(waiting))))
    return made + waiting


def reference(made: list[dict[str, Any]]) -> dict[str, sp.Stream]:
    """The same events through plain streams."""
    streams: dict[str, sp.Stream] = {}
    for event in made:
        stream = streams.setdefault(event["stream"], sp.Stream(CONTROLLER))
        if "prediction" in event:
            stream.predict(event["prediction"], event["id"])
        else:
            stream.update(event["y"], event["id"])
    return streams


def same(ledger: sp.Ledger, streams: dict[str, sp.Stream]) -> None:
    assert set(ledger.streams) == set(streams)
    for name, stream in streams.items():
        held = ledger.streams[name]
        assert held.theta == stream.theta
        assert held.state.stretch == stream.state.stretch
        assert str(held.certificate()) == str(stream.certificate())
        assert list(held.pending) == list(stream.pending)


@pytest.mark.parametrize("every", [1, 7, 100_000])
def test_a_ledger_goes_on_where_it_was_however_often_it_is_opened(
    tmp_path: Path, every: int
) -> None:
    made = events(150)
    for start in range(0, len(made), 40):
        with sp.Ledger(tmp_path, CONTROLLER if start == 0 else None, every=every) as ledger:
            for answer in ledger.handle(made[start : start + 40]):
                assert "error" not in answer
                assert "repeated" not in answer
    with sp.Ledger(tmp_path) as ledger:
        same(ledger, reference(made))
    assert len(list(tmp_path.glob("log-*"))) == 1
    assert len(list(tmp_path.glob("streams-*"))) <= 1


@pytest.mark.parametrize("numbered", [False, True])
def test_events_sent_again_change_nothing_and_say_so(tmp_path: Path, numbered: bool) -> None:
    made = events(60, numbered=numbered)
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        first = ledger.handle(made)
        again = ledger.handle(made)
        same(ledger, reference(made))
    assert not any("repeated" in answer for answer in first)
    assert all(answer["repeated"] for answer in again)


def test_a_prediction_that_still_waits_is_answered_with_the_set_that_was_shown(
    tmp_path: Path,
) -> None:
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        (shown,) = ledger.handle([{"id": 1, "prediction": [10, 14]}])
        ledger.handle([{"id": 2, "prediction": [10, 14]}, {"id": 2, "y": 99}])
        (again,) = ledger.handle([{"id": 1, "prediction": [10, 14]}])
        (other,) = ledger.handle([{"id": 1, "prediction": [10, 15]}])
    assert again == {**shown, "repeated": True}
    assert "another prediction already waits under the id 1" in other["error"]


def test_a_record_cut_short_was_never_answered_and_is_left_out(tmp_path: Path) -> None:
    made = events(30)
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        ledger.handle(made)
    (log,) = tmp_path.glob("log-*")
    written = log.read_bytes()
    lines = written.splitlines(keepends=True)
    for cut in (1, 5, len(lines[-1]) - 1):
        log.write_bytes(written[:-cut])
        with sp.Ledger(tmp_path) as ledger:
            same(ledger, reference(made[:-1]))
            (answer,) = ledger.handle(made[-1:])
            assert "repeated" not in answer
            same(ledger, reference(made))


def test_damage_within_the_log_is_told(tmp_path: Path) -> None:
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        ledger.handle(events(10))
    (log,) = tmp_path.glob("log-*")
    written = bytearray(log.read_bytes())
    written[20] ^= 1
    log.write_bytes(written)
    with pytest.raises(StateError, match="is damaged at byte 0, and goes on after it"):
        sp.Ledger(tmp_path)


def test_a_crash_between_writing_whole_and_the_new_log_loses_nothing(tmp_path: Path) -> None:
    made = events(40)
    with sp.Ledger(tmp_path, CONTROLLER, every=len(made)) as ledger:
        ledger.handle(made[:-1])
        old = {path.name: path.read_bytes() for path in tmp_path.glob("log-*")}
        ledger.handle(made[-1:])  # writes whole, begins a new log, forgets the old one
    for path in tmp_path.glob("log-*"):
        path.unlink()
    for name, content in old.items():
        (tmp_path / name).write_bytes(content)
    with sp.Ledger(tmp_path) as ledger:
        same(ledger, reference(made))


def test_bad_events_are_answered_and_the_others_go_on(tmp_path: Path) -> None:
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        answers = ledger.handle(
            [
                {"id": 1, "prediction": [0, 1]},
                {"id": 2, "prediction": "text"},
                {"id": 3, "prediction": [0, float("nan")]},
                {"id": 9, "y": 1.0},
                {"stream": "none", "id": 1, "y": 1.0},
                {"id": 1, "y": "text"},
                {"id": 1.5, "prediction": [0, 1]},
                {"id": 1},
                {"id": 1, "lable": 3},
                ["no", "object"],
                {"id": 4, "prediction": [0, {1}]},
                {"id": 1, "y": 0.5},
            ]
        )
        with sp.Ledger(tmp_path / "other", CONTROLLER) as other:
            other.handle([{"id": 1, "prediction": [0, 1]}, {"id": 1, "y": 0.5}])
            assert ledger.streams[""].theta == other.streams[""].theta
    assert [("error" in answer) for answer in answers] == [False] + [True] * 10 + [False]
    assert "an event may have stream, id, prediction, y, drop, certificate" in answers[8]["error"]
    assert "there is no stream 'none'" in answers[4]["error"]


def test_one_event_may_predict_and_bring_the_label(tmp_path: Path) -> None:
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        (answer,) = ledger.handle([{"prediction": 3.0, "y": 3.5}])
        (asked,) = ledger.handle([{"certificate": True}])
    assert answer == {"id": 0, "lower": 3.0, "upper": 3.0, "loss": 1.0, "covered": False}
    assert asked["certificate"]["risks"][0]["judged"] == 1


def test_open_ends_and_label_sets_are_told_in_json(tmp_path: Path) -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5))
    labels = sp.Controller(sp.sets.Threshold(), risk)
    sides = sp.Controller(sp.sets.Upper(), risk)
    with sp.Ledger(tmp_path / "labels", labels) as ledger:
        told = ledger.handle(
            [{"id": 1, "prediction": {"no": 0.8, "yes": 0.2}}, {"id": 1, "y": "maybe"}]
        )
        told += ledger.handle([{"id": 2, "prediction": {"no": 0.8, "yes": 0.2}}])
    with sp.Ledger(tmp_path / "sides", sides) as ledger:
        told += ledger.handle([{"id": 1, "prediction": 5.0}])
    assert told[0] == {"id": 1, "labels": ["no", "yes"]}
    assert told[1] == {"id": 1, "loss": 1.0, "covered": False}
    assert told[2] == {"id": 2, "labels": ["no", "yes"], "full": True}
    assert told[3] == {"id": 1, "lower": None, "upper": 5.0}
    json.dumps(told, allow_nan=False)


def test_missing_labels_and_given_up_predictions_are_remembered(tmp_path: Path) -> None:
    with sp.Ledger(tmp_path, CONTROLLER, missing="skip") as ledger:
        made = [{"id": n, "prediction": [0, 1]} for n in range(3)]
        made += [{"id": 0, "y": None}, {"id": 1, "drop": True}]
        assert not any("error" in answer for answer in ledger.handle(made))
        assert ledger.handle([{"id": 1, "drop": True}]) == [{"id": 1, "repeated": True}]
    with sp.Ledger(tmp_path) as ledger:
        stream = ledger.streams[""]
        assert (stream.state.missing, stream.state.dropped) == (1, 1)
        assert list(stream.pending) == [2]


def test_a_folder_keeps_its_options_and_is_read_under_them(tmp_path: Path) -> None:
    with sp.Ledger(tmp_path, CONTROLLER, max_pending=2, overflow="expire") as ledger:
        ledger.handle([{"id": n, "prediction": [0, 1]} for n in range(6)])
        ledger.handle([{"id": 5, "y": None}])
    with sp.Ledger(tmp_path) as ledger:
        stream = ledger.streams[""]
        assert list(stream.pending) == [4]
        assert (stream.state.expired, stream.state.missing) == (4, 1)
    with pytest.raises(StateError, match="has max_pending = 2, given is 3"):
        sp.Ledger(tmp_path, max_pending=3)


def test_a_folder_belongs_to_one_controller_and_one_process(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="holds no ledger yet"):
        sp.Ledger(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        with pytest.raises(StateError, match="another process works on the ledger"):
            sp.Ledger(tmp_path)
        ledger.handle([{"id": 1, "prediction": [0, 1]}])
    with pytest.raises(StateError, match="the controller given is"):
        sp.Ledger(tmp_path, sp.Controller(sp.sets.Widen(), RISK))
    with pytest.raises(StateError, match="is closed"):
        ledger.handle([{"id": 2, "prediction": [0, 1]}])
    custom = sp.Controller(sp.sets.Widen(), sp.Risk(sp.losses.Custom(lambda s, y: 0.0), 0.1))
    with pytest.raises(StateError, match="a ledger keeps its controller as text"):
        sp.Ledger(tmp_path / "custom", custom)


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
        print("full", error.errno)
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
    assert lines[answered].startswith("full")
    assert answered > 100
    with sp.Ledger(tmp_path) as ledger:
        same(ledger, reference(made[:answered]))


def test_lines_are_answered_with_their_numbers_and_bad_ones_pass(tmp_path: Path) -> None:
    lines = [
        b'{"id": 1, "prediction": [0, 1]}',
        b"",
        b"{no json",
        b"[" * 100_000,
        b'{"id": 2, "prediction": "' + b"x" * 2_000_000 + b'"}',
        b"\xff\xfe",
        b'{"id": 3, "prediction": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"id": 1, "y": 0.5}',  # the last line needs no end
    ]
    sink = io.BytesIO()
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        assert ledger.serve(io.BufferedReader(io.BytesIO(b"\n".join(lines))), sink) == 8
    answers = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [answer["line"] for answer in answers] == [1, 3, 4, 5, 6, 7, 8]
    assert [("error" in answer) for answer in answers] == [False, *[True] * 5, False]
    assert "not JSON" in answers[1]["error"]
    assert "1,048,576 bytes" in answers[3]["error"]


@pytest.mark.parametrize("numbered", [False, True])
def test_nothing_answered_is_lost_and_nothing_taken_in_twice_however_often_it_is_killed(
    tmp_path: Path, numbered: bool
) -> None:
    made = events(3000, seed=9, numbered=numbered)
    command = [sys.executable, "-m", "setpoint.cli", "stream", "--state", str(tmp_path / "state")]
    (tmp_path / "controller.toml").write_text(sp.spec.to_toml(CONTROLLER))
    command += ["--config", str(tmp_path / "controller.toml"), "--every", "500"]
    world, sent, kills = random.Random(4), 0, 0
    while sent < len(made):
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            batch = made[sent : sent + 900]
            process.stdin.write("".join(json.dumps(each) + "\n" for each in batch).encode())
            if kills < 8:
                # Answers may be read or lie in the pipe when it dies: only those read count.
                for _ in range(world.randrange(200)):
                    answer = json.loads(process.stdout.readline())
                    assert "error" not in answer, answer
                    sent += 1
                time.sleep(world.random() * 0.02)
                process.send_signal(signal.SIGKILL)
                kills += 1
            else:
                process.stdin.close()
                for line in process.stdout:
                    assert "error" not in json.loads(line), line
                    sent += 1
    assert kills == 8
    with sp.Ledger(tmp_path / "state") as ledger:
        same(ledger, reference(made))
    assert os.listdir(tmp_path / "state")
