"""Where files are looked for, how they are fetched and kept, and what is said when they are not."""

import gzip
import hashlib
import http.server
import io
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from setpoint.errors import AbsentFile, DataError
from setpoint_paper import datasets
from setpoint_paper.datasets import files
from setpoint_paper.datasets.files import fetch, find
from setpoint_paper.datasets.sources import SOURCES, File, Source

WIND = "dt,MW\n2011-01-01 00:00:00,581\n2011-01-01 00:15:00,582.5\n"


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No folder is named, and the cache is an empty one."""
    monkeypatch.delenv("SETPOINT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "setpoint"


def zipped(how: int = zipfile.ZIP_DEFLATED, **members: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", how) as packed:
        for name, data in members.items():
            packed.writestr(name.replace("__", "."), data)
    return held.getvalue()


# Stored, so that a digit can be changed in place
FLIPPED = zipped(zipfile.ZIP_STORED, wind_power__csv=WIND.encode()).replace(b"582.5", b"589.5")


@pytest.mark.parametrize("below", ["", "wind"])
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("wind_power.csv", WIND.encode()),
        ("wind_power.csv", b"\xef\xbb\xbf" + WIND.replace("\n", "\r\n").encode()),
        ("wind_power.csv.gz", gzip.compress(WIND.encode(), mtime=0)),
        ("wind_power.csv.zip", zipped(wind_power__csv=WIND.encode())),
        ("wind_power.csv.zip", zipped(WIND_POWER__CSV=WIND.encode(), other__csv=b"a,b\n")),
    ],
)
def test_a_file_is_found_in_every_form(tmp_path: Path, below: str, name: str, data: bytes) -> None:
    (tmp_path / below).mkdir(exist_ok=True)
    (tmp_path / below / name).write_bytes(data)
    assert datasets.wind(folder=tmp_path, rows=1).y.tolist() == [582.5]


def test_the_folder_of_the_environment_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, power in (("named", "600"), ("given", "700")):
        (tmp_path / place).mkdir()
        text = WIND.replace("582.5", power)
        (tmp_path / place / "wind_power.csv").write_text(text, encoding="utf-8")
    monkeypatch.setenv("SETPOINT_DATA", str(tmp_path / "named"))
    assert datasets.wind(rows=1).y.tolist() == [600.0]
    assert datasets.wind(rows=1, folder=tmp_path / "given").y.tolist() == [700.0]


def test_an_absent_file_is_told_with_where_to_get_it_and_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(AbsentFile) as caught:
        datasets.energy(folder=tmp_path)
    assert str(caught.value) == (
        f"the file 'energydata_complete.csv' of the data set energy is not in {tmp_path}: get it "
        f"from https://archive.ics.uci.edu/dataset/374 and put it in {tmp_path / 'energy'}, as it "
        "is, gzipped or zipped"
    )


def test_without_a_folder_the_message_names_the_variable(nowhere: Path) -> None:
    with pytest.raises(AbsentFile) as caught:
        datasets.traffic(download=False)
    assert str(caught.value) == (
        "the file 'Metro_Interstate_Traffic_Volume.csv' of the data set traffic is not in the "
        "folder that SETPOINT_DATA names (not set) and is not in the cache: get it from "
        "https://archive.ics.uci.edu/dataset/492 and put it in a folder traffic whose parent "
        "folder SETPOINT_DATA names, as it is, gzipped or zipped"
    )


def test_the_name_that_git_gives_is_known() -> None:
    # `printf 'hello\n' | git hash-object --stdin`
    assert files._blob(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"


@pytest.mark.parametrize("name", datasets.NAMES)
def test_every_absent_set_says_where_to_get_it(name: str, tmp_path: Path) -> None:
    if name == "synthetic":
        assert len(datasets.load(name, folder=tmp_path, rows=10)) == 10
        return
    with pytest.raises(AbsentFile, match=SOURCES[name].page):
        datasets.load(name, folder=tmp_path)


def test_a_folder_that_is_none_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(DataError, match="folder must name a folder of data files, got"):
        datasets.power(folder=missing)
    with pytest.raises(DataError, match="folder must name a folder of data files, got ''"):
        datasets.power(folder="")
    monkeypatch.setenv("SETPOINT_DATA", str(missing))
    with pytest.raises(DataError, match="variable SETPOINT_DATA must name a folder of data files"):
        datasets.power()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "wind_power.csv.gz",
            gzip.compress(WIND.encode() * 99, mtime=0)[:-20],
            "is damaged: EOFError",
        ),
        (
            "wind_power.csv.gz",
            gzip.compress(WIND.encode(), mtime=0)[:12] + b"x" * 40,
            "is damaged: ",
        ),
        ("wind_power.csv.zip", zipped(wind_power__csv=WIND.encode())[:-30], "is damaged: BadZip"),
        ("wind_power.csv.zip", zipped(other__csv=WIND.encode()), "holds no file named 'wind_power"),
        ("wind_power.csv.zip", FLIPPED, "is damaged: BadZipFile: Bad CRC-32"),
        ("wind_power.csv", b"\n <!DOCTYPE html><html>", "it holds a web page instead of data"),
        ("wind_power.csv", WIND.encode() + b"\xff\xfe", "is no UTF-8"),
        ("wind_power.csv", b"", "must have the columns 'dt', 'MW', got ''"),
    ],
)
def test_a_damaged_file_is_one_clear_error(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        datasets.wind(folder=tmp_path, rows=1)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


# Fetching, from a server of this machine


class Server:
    """A web server that serves `content` at every path and counts what it is asked for."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.asked: list[str] = []
        outer = self

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                self.send_response(200 if outer.content else 404)
                self.send_header("Content-Length", str(len(outer.content)))
                self.end_headers()
                self.wfile.write(outer.content)

            def log_message(self, *args: object) -> None:
                """Says nothing."""

        self.served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.served.server_address[1]}"
        self.thread = threading.Thread(target=self.served.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.served.shutdown()
        self.served.server_close()
        self.thread.join()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    running = Server(zipped(inner__csv=WIND.encode()))
    yield running
    running.close()


def source_at(url: str, served: str | None = None) -> Source:
    file = File(("inner.csv",), 2, f"{url}/some+container.zip", served=served)
    return Source("made_up", "https://example.org/page", "none", (file,))


@pytest.mark.skipif(sys.platform != "linux", reason="the cache is moved by XDG_CACHE_HOME")
class TestFetching:
    def test_what_is_fetched_is_put_where_loaders_look(
        self, server: Server, nowhere: Path, tmp_path: Path
    ) -> None:
        name = files._blob(server.content)
        url = f"{server.url}/some+container.zip"
        file = File(("inner.csv",), 2, url, blob=name)
        # The second cannot be had without an account, and may stand for the first.
        source = Source("made_up", "https://example.org", "none", (file, File(("b.csv",), 1)))
        (path,) = fetch(source, tmp_path / "data")
        assert path == tmp_path / "data" / "made_up" / "some+container.zip"
        found = find(source, file, tmp_path / "data", False)
        assert (found.text, found.known) == (WIND, True)

    def test_a_file_that_git_calls_otherwise_is_no_use(
        self, server: Server, nowhere: Path, tmp_path: Path
    ) -> None:
        file = File(("inner.csv",), 2, f"{server.url}/other.zip", blob="0" * 40)
        source = Source("made_up", "https://example.org", "none", (file,))
        with pytest.raises(AbsentFile, match="it is not the file that git calls 000"):
            fetch(source, tmp_path / "data")
        assert not (tmp_path / "data").exists()

    def test_a_file_is_fetched_once_then_kept(self, server: Server, nowhere: Path) -> None:
        source = source_at(server.url)
        kept = nowhere / "made_up" / "some+container.zip"
        found = find(source, source.files[0], None, True)
        assert (found.text, found.path) == (WIND, kept)
        assert server.asked == ["/some+container.zip"]
        record = kept.with_name(kept.name + ".sha256").read_text()
        assert record == hashlib.sha256(server.content).hexdigest()
        assert find(source, source.files[0], None, False).text == WIND
        assert len(server.asked) == 1

    def test_a_kept_file_that_has_changed_is_fetched_anew(
        self, server: Server, nowhere: Path
    ) -> None:
        source = source_at(server.url)
        path = find(source, source.files[0], None, True).path
        path.write_bytes(server.content[:-9])
        with pytest.raises(AbsentFile, match="is not in the cache"):
            find(source, source.files[0], None, False)
        assert find(source, source.files[0], None, True).text == WIND
        assert path.read_bytes() == server.content
        assert len(server.asked) == 2
        path.write_bytes(b"spoilt")
        server.content = zipped(inner__csv=WIND.replace("581", "999").encode())
        assert "999" in find(source, source.files[0], None, True).text  # the source has moved on

    def test_what_is_served_must_have_the_digest_that_is_known(
        self, server: Server, nowhere: Path
    ) -> None:
        good = source_at(server.url, served=hashlib.sha256(server.content).hexdigest())
        assert find(good, good.files[0], None, True).text == WIND
        (nowhere / "made_up" / "some+container.zip").unlink()
        bad = source_at(server.url, served="0" * 64)
        with pytest.raises(AbsentFile, match="could not be downloaded from http://127"):
            find(bad, bad.files[0], None, True)
        assert not (nowhere / "made_up" / "some+container.zip").exists()

    @pytest.mark.parametrize(
        ("content", "told"),
        [(b"<html>sign in first</html>", "a web page instead of data"), (b"", "404")],
    )
    def test_what_is_no_file_is_told_in_one_sentence_and_not_kept(
        self, server: Server, nowhere: Path, content: bytes, told: str
    ) -> None:
        server.content = content
        source = source_at(server.url)
        with pytest.raises(AbsentFile, match=told) as caught:
            find(source, source.files[0], None, True)
        assert "get it from https://example.org/page" in str(caught.value)
        assert f"{server.url}/some+container.zip" in str(caught.value)
        assert not (nowhere / "made_up" / "some+container.zip").exists()
        server.content = zipped(inner__csv=WIND.encode())
        assert find(source, source.files[0], None, True).text == WIND

    def test_a_folder_given_is_the_only_place_looked_at(
        self, server: Server, nowhere: Path, tmp_path: Path
    ) -> None:
        source = source_at(server.url)
        with pytest.raises(AbsentFile, match="is not in"):
            find(source, source.files[0], tmp_path, True)
        assert server.asked == []
