"""The page about the service is true, and the document of its operations keeps its word."""

import json
import random
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

httpx = pytest.importorskip("httpx", reason="needs httpx: pip install 'setpoint[service]'")
pytest.importorskip("starlette", reason="needs starlette: pip install 'setpoint[service]'")

from tests.serving import Serving  # noqa: E402

pytestmark = pytest.mark.service

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/service.md").read_text("utf-8")


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    with Serving("--store", str(tmp_path / "streams.sqlite")) as serving:
        yield serving


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_five_lines_of_the_page_work(serving: Serving) -> None:
    block = PAGE.split("<!-- five lines -->")[1].split("```")[1].removeprefix("sh\n")
    lines = block.strip().splitlines()
    assert len(lines) == 5
    answers = []
    for line in lines:
        command = line.replace("localhost:8000", f"127.0.0.1:{serving.port}")
        done = subprocess.run(f"{command} -sS -f", shell=True, capture_output=True, check=True)
        answers.append(json.loads(done.stdout))
    made, shown, label, certificate, summary = answers
    assert made["levels"] == [0.1]
    assert shown == {"id": "monday", "lower": 10.0, "upper": 14.0}
    assert label == {"id": "monday", "loss": 0.0, "covered": True}
    assert certificate["risks"][0]["judged"] == summary["labels"] == 1


def test_the_python_of_the_page_works(serving: Serving) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(code.replace("localhost:8000", f"127.0.0.1:{serving.port}"), scope)
    assert scope["client"].show("demand")["labels"] == 1
    scope["client"].close()


def test_the_page_names_every_operation_and_no_other(serving: Serving) -> None:
    document = httpx.get(f"{serving.url}/openapi.json").json()
    known = {
        f"{method.upper()} {path.replace('{name}', 'NAME')}"
        for path, operations in document["paths"].items()
        for method in operations
    }
    written = set(re.findall(r"`((?:GET|PUT|POST|PATCH) /[^`]*)`", PAGE))
    assert written == known


def test_schemathesis_finds_nothing(serving: Serving, tmp_path: Path) -> None:
    pytest.importorskip("schemathesis", reason="needs schemathesis")
    with serving.client() as client:
        client.create("a")
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{serving.url}/openapi.json",
        "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,"
        "response_schema_conformance", "--exclude-path-regex", "/live$", "--max-examples", "40",
        "--seed", "7", "--no-color",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=900)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


PARTS: list[Any] = [
    b'{"id": 1, "prediction": [0, 1]}', b'{"id": "x", "y": 0.5}', b'{"id": 1, "drop": true}',
    b'[{"stream": "a", "id": 2, "prediction": [0, 1]}, {"stream": "a", "id": 2, "y": 1}]',
    b'{"preset": "intervals", "coverage": 0.9}', b'{"level": 0.2, "risk": 0}',
    b'{"toml": "[sets]\\npart = \\"Widen\\"\\n[[risks]]\\nlevel = 0.1\\n"}',
]  # fmt: skip
PATHS = [
    "/v1/streams/a/predict", "/v1/streams/a/label", "/v1/streams/a/drop", "/v1/streams/a/events",
    "/v1/events", "/v1/streams/a", "/v1/streams", "/v1/streams/a/history?after=0&limit=5",
    "/v1/streams/a/certificate", "/metrics", "/", "/ready", "/v1/alarms",
]  # fmt: skip
SMALL = ["nan", "1e999", "-1", "null", "[]", "{}", '"\\ud800"', "9" * 400, "true", '""', "\x00"]


def mutated(world: random.Random) -> tuple[str, str, bytes, dict[str, str]]:
    """A request that is nearly right."""
    body = bytearray(world.choice(PARTS))
    for _ in range(world.randrange(4)):
        place = world.randrange(len(body) + 1)
        match world.randrange(4):
            case 0:
                body[place : place + world.randrange(8)] = b""
            case 1:
                body[place:place] = world.choice(SMALL).encode()
            case 2:
                body[place:place] = world.randbytes(world.randrange(1, 5))
            case 3:
                body[place : place + 1] = body[place : place + 9] * world.randrange(1, 4)
    path = world.choice(PATHS)
    if world.random() < 0.3:
        place = world.randrange(1, len(path) + 1)
        path = (
            path[:place]
            + world.choice(["%2F", "%00", "%ff", "..", "//", "?", "%", "%C3%A9"])
            + path[place:]
        )
    kind = world.choice(["application/json"] * 6 + ["application/x-ndjson", "text/plain"])
    method = world.choice(["POST"] * 6 + ["PUT", "PATCH", "GET", "DELETE", "HEAD"])
    return method, path, bytes(body), {"content-type": kind}


def test_ten_thousand_mutated_requests_break_nothing(serving: Serving) -> None:
    with serving.client() as client:
        client.create("a")
    statuses: dict[int, int] = {}
    wrong: list[Any] = []

    def send(seed: int) -> None:
        world = random.Random(seed)
        with httpx.Client(timeout=60) as client:
            for _ in range(2500):
                method, path, body, headers = mutated(world)
                url = httpx.URL(serving.url).copy_with(raw_path=path.encode("utf-8"))
                try:
                    answer = client.request(method, url, content=body, headers=headers)
                except httpx.RemoteProtocolError:  # so wrong that the connection is closed
                    statuses[0] = statuses.get(0, 0) + 1
                    continue
                statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
                if answer.status_code >= 500 or "Traceback" in answer.text:
                    wrong.append((method, path, body, answer.text[:300]))

    threads = [threading.Thread(target=send, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]
    assert sum(statuses.values()) == 10_000
    assert statuses[200] > 500
    assert len(statuses) > 5
    status, said = serving.stop()
    assert status == 0
    assert "Traceback" not in said, said[-2000:]
