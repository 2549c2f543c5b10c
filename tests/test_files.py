"""Files appear whole or not at all, survive a crash, and errors say what to do."""

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from setpoint._files import make_folder, put, whole
from setpoint.errors import SetpointError, WriteError


def test_text_and_bytes_are_written_and_replace_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert put(path, "naïve λ") == path
    assert path.read_text(encoding="utf-8") == "naïve λ"
    put(str(path), b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert os.listdir(tmp_path) == ["file"]


def test_a_block_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = put(tmp_path / "file", "old")

    def fail() -> None:
        with whole(path) as file:
            file.write(b"half of the ne")
            assert len(os.listdir(tmp_path)) == 2
            raise KeyError("own")

    with pytest.raises(KeyError, match="own"):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_every_refusal_names_the_path_the_reason_and_what_to_do(tmp_path: Path) -> None:
    plain = put(tmp_path / "plain", "")
    cases = [
        (tmp_path / "no" / "file", r"No such file or directory; make the folder .*/no first"),
        (plain / "file", r"Not a directory; .*/plain is no folder"),
        (tmp_path, r"Is a directory; it is a folder: name a file"),
        (Path("/dev/null"), r"a device or a pipe is not replaced by a file"),
    ]
    for path, match in cases:
        with pytest.raises(SetpointError, match=match) as caught:
            put(path, "text")
        assert str(caught.value).startswith(f"{path} cannot be written: ")
        assert isinstance(caught.value, OSError)
        assert caught.value.filename == str(path)
        assert caught.value.errno
    assert os.listdir(tmp_path) == ["plain"]


def test_the_error_survives_a_journey_between_processes(tmp_path: Path) -> None:
    with pytest.raises(WriteError) as caught:
        put(tmp_path / "no" / "file", "")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.errno) == (str(caught.value), caught.value.errno)


def test_long_names_are_written_too(tmp_path: Path) -> None:
    put(tmp_path / ("n" * 255), "x")
    assert os.listdir(tmp_path) == ["n" * 255]
    with pytest.raises(WriteError, match="choose a shorter name"):
        put(tmp_path / ("n" * 256), "x")


def test_folders_are_made_with_those_above(tmp_path: Path) -> None:
    assert make_folder(tmp_path / "a" / "b").is_dir()
    assert make_folder(tmp_path / "a" / "b").is_dir()
    put(tmp_path / "file", "")
    with pytest.raises(WriteError, match=r"file/c cannot be written: Not a directory"):
        make_folder(tmp_path / "file" / "c")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = put(tmp_path / "file", "old")
    script = """
import resource, signal, sys
from setpoint._files import put
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
put(sys.argv[1], bytes(5000))
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True)
    assert "cannot be written: File too large; raise the limit" in done.stderr
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_writer_killed_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = put(tmp_path / "file", "a" * 100_000)
    script = """
import sys
from setpoint._files import put
print("ready", flush=True)
while True:
    for letter in "ab":
        put(sys.argv[1], letter * 100_000)
"""
    for wait in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            for _ in range(50 * wait):
                path.stat()
            process.send_signal(signal.SIGKILL)
        assert path.read_text() in ("a" * 100_000, "b" * 100_000)
