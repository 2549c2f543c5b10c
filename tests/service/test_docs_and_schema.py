"""The page about the service is true, and the document of its operations keeps its word."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

httpx = pytest.importorskip("httpx", reason="needs httpx: pip install 'setpoint[service]'")
pytest.importorskip("starlette", reason="needs starlette: pip install 'setpoint[service]'")

from tests.mutations import attack  # noqa: E402
from tests.serving import Serving  # noqa: E402

pytestmark = pytest.mark.service

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/service.md").read_text("utf-8")


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    (tmp_path / "forecasts").mkdir()
    words = ("--forecasts", str(tmp_path / "forecasts"))
    with Serving("--store", str(tmp_path / "streams.sqlite"), *words) as serving:
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
    written = set(re.findall(r"`((?:GET|PUT|POST|PATCH|DELETE) /[^`]*)`", PAGE))
    assert written == known


def test_schemathesis_finds_nothing(serving: Serving, tmp_path: Path) -> None:
    pytest.importorskip("schemathesis", reason="needs schemathesis")
    with serving.client() as client:
        client.create("a")
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{serving.url}/openapi.json",
        "--checks", "not_a_server_error,status_code_conformance,content_type_conformance,"
        "response_schema_conformance", "--exclude-path-regex", "/(live|import)$",
        "--max-examples", "40", "--seed", "7", "--no-color",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=900)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_ten_thousand_mutated_requests_break_nothing(serving: Serving) -> None:
    statuses = attack(serving.url, 10_000, 0)
    assert sum(statuses.values()) == 10_000
    assert statuses[200] > 500
    assert len(statuses) > 5
    status, said = serving.stop()
    assert status == 0
    assert "Traceback" not in said, said[-2000:]
