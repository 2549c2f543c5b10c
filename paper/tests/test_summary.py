"""The one page: every claim of the paper in its order, from stored results."""

from pathlib import Path

import pytest

from paper.tests.test_depth_experiment import as_printed
from paper.tests.test_tabular_results import made
from setpoint.errors import DataError
from setpoint_paper.depth.claims import CLAIMS as DEPTH
from setpoint_paper.depth.report import write_csv
from setpoint_paper.summary import ORDER, _place, summary, write_summary
from setpoint_paper.tabular.claims import CLAIMS
from setpoint_paper.tabular.results import store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    results = tmp_path / "results"
    store(made(seeds=2), results, "tabular-printed")
    write_csv(as_printed(), results / "depth.csv")
    lines = ["stream,method,family,pace,unbalanced"]
    lines += [f"yeast,controlled,{name},1,{value}" for name, value in
              (("Threshold", 0.08), ("Cumulative", 0.03))]  # fmt: skip
    (results / "classification.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return results


def test_every_claim_stands_on_the_page_in_the_order_of_the_paper(folder: Path) -> None:
    path = write_summary(folder)
    assert path == folder.parent / "README.md"
    text = path.read_text("utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("|")]
    claims = [row[3].strip() for row in rows]
    for claim in (*CLAIMS, *DEPTH):
        assert claim.text in claims
    assert "threshold sets have unbalanced coverage, cumulative sets are better" in claims
    sections = [row[2].strip() for row in rows if row[3].strip() in {c.text for c in CLAIMS}]
    assert [_place(each) for each in sections] == sorted(_place(each) for each in sections)
    assert all(_place(claim.where) < len(ORDER) for claim in (*CLAIMS, *DEPTH))
    assert max(map(len, text.splitlines())) < 190
    assert "so far, with 2 seeds" in text
    # By its number each claim has its margins, with an interval each.
    (number,) = [row[1].strip() for row in rows if row[3].strip() == CLAIMS[1].text]
    details = text.partition(f"**{number}. Error adaptive stretching gives narrower")[2]
    details = " ".join(details.partition(f"**{int(number) + 1}. ")[0].split())
    assert "The margin: how much shorter." in details
    assert "With γ by test, so far, with 2 seeds: does not hold here (0 of 2)." in details
    assert details.count("[−") >= 4
    assert "## What the printed numbers hide" in text


def test_a_page_needs_results(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no results"):
        summary(tmp_path)
