"""What a release rests on: types that reach users, the oldest libraries, what is tried."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.lowest import lowest
from tests.release import HEAVY, STEPS

ROOT = Path(__file__).resolve().parents[1]


def test_a_typed_client_is_checked_strictly(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    client = tmp_path / "client.py"
    client.write_text((ROOT / "tests" / "typed_client.py").read_text("utf-8"), "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", tmp_path]
    done = subprocess.run(
        [*command, client], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_oldest_version_is_taken_and_of_two_the_newer() -> None:
    assert lowest([])[0].startswith("numpy==")
    assert "pandas==2.2" in lowest(["data", "spark"])
    assert "pandas==2.1" in lowest(["data"])


def test_every_extra_for_users_is_tried_or_said_to_be_heavy() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    ours = {"all", "docs", "lint", "release", "service-test", "test"}
    assert set(project["optional-dependencies"]) - ours == (set(STEPS) - {""}) | HEAVY
