"""What a release rests on: types that reach users, the oldest libraries, what is tried."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import setpoint as sp
from tests.lowest import chosen, lowest
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


def test_the_newest_versions_are_any_that_are_new_enough() -> None:
    assert all(">=" in line for line in chosen("newest", 0, ["fast"]))
    with pytest.raises(ValueError, match="lowest, random or newest, got 'oldest'"):
        chosen("oldest", 0, [])


def test_the_conda_recipe_says_what_the_package_says() -> None:
    yaml = pytest.importorskip("yaml")
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needs = [f"python {project['requires-python']}", *project["dependencies"]]
    assert [line.replace(" ", "") for line in recipe["requirements"]["run"]] == [
        line.replace(" ", "") for line in needs
    ]
    assert recipe["context"]["version"] == sp.__version__
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["about"]["license"] == project["license"]
    (script,) = [f"{name} = {where}" for name, where in project["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == [script]


def test_every_extra_for_users_is_tried_or_said_to_be_heavy() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(project["optional-dependencies"]) - {"all"} == (set(STEPS) - {""}) | HEAVY
