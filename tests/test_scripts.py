"""The demo and the benchmarks run from their command line and say what they should."""

import importlib
import json
import runpy
from pathlib import Path

import pytest

from benchmarks import KNOWN, live
from benchmarks.__main__ import main as benchmark

ROOT = Path(__file__).resolve().parents[1]


def test_the_demo_ends_with_a_certificate_that_holds(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "1. Miscoverage at level 0.1: guaranteed" in printed
    assert "at most 24 awaited at once; 0 not observed" in printed


@pytest.mark.parametrize("name", KNOWN)
def test_every_known_benchmark_can_be_called(name: str) -> None:
    assert callable(importlib.import_module(f"benchmarks.{name}").main)


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["live", "live"]])
def test_a_wrong_benchmark_is_answered_with_the_right_names(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert benchmark(arguments) == 2
    printed = capsys.readouterr().err
    assert all(name in printed for name in [*arguments, *KNOWN])


def test_the_live_benchmark_prints_ratios_and_one_json_object(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live, "STEPS", 300)
    monkeypatch.setattr(live, "REPEATS", 1)
    monkeypatch.setattr(live, "STARTS", 1)
    assert benchmark(["live"]) == 0
    *table, last = capsys.readouterr().out.splitlines()
    found = json.loads(last)
    assert set(found["stretching"]) == set(live.RIVALS)
    for name, times in found["stretching"].items():
        assert times["times_loop"] > 0.0
        assert any(line.startswith(name) for line in table)
