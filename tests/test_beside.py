"""Code side by side: every block of the page runs, and the table says what came out."""

import re
import runpy
import warnings
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
beside = runpy.run_path(str(ROOT / "docs" / "beside.py"))
TASKS = beside["tasks"]()


def numbers(row: str) -> list[float]:
    """Lines, coverages and widths of a row of the table."""
    return [float(cell) for cell in re.findall(r"(?<=\| )[\d.]+(?= \|)", row)]


def test_there_are_ten_tasks_each_with_two_blocks_and_a_row() -> None:
    assert [task.number for task in TASKS] == list(range(1, 11)) == sorted(beside["rows"]())
    for task in TASKS:
        assert len(task.blocks) == 2
        assert "setpoint" in task.blocks
        ours, theirs = numbers(beside["rows"]()[task.number])[:2]
        assert (ours, theirs) == tuple(
            beside["counted"](task.blocks[title]) for title in ("setpoint", task.host)
        )


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.number}-{task.host}")
def test_the_blocks_of_a_task_do_what_its_row_says(task: Any) -> None:
    if task.missing:
        pytest.skip(f"needs {', '.join(task.missing)}; python docs/beside.py measures it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what other libraries warn of is theirs
        measured, said = numbers(task.measured()), numbers(beside["rows"]()[task.number])
    assert len(said) == len(measured) == 6
    assert measured[2:4] == pytest.approx(said[2:4], abs=1.0)  # points of coverage
    assert measured[4:] == pytest.approx(said[4:], rel=0.05)
    assert abs(measured[2] - 90.0) < 1.5
