"""The one page: every claim of the paper in its order, from stored results."""

from dataclasses import replace
from pathlib import Path

import pytest

from paper.tests.test_depth_experiment import as_printed
from paper.tests.test_tabular_results import made
from setpoint.errors import DataError
from setpoint_paper.depth.claims import CLAIMS as DEPTH
from setpoint_paper.depth.runs import GEOMETRIES, read_csv, write_csv
from setpoint_paper.depth.verdicts import cases
from setpoint_paper.summary import ORDER, _place, summary, write_summary
from setpoint_paper.tabular.claims import CLAIMS
from setpoint_paper.tabular.printed import COLUMNS, printed
from setpoint_paper.tabular.results import Results, load, store
from setpoint_paper.tabular.tables import report

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    results = tmp_path / "results"
    begun = made(seeds=2)
    usual = [row for row in begun.rows if (row.method, row.risk) == ("none_coded", "coverage")]
    other = [
        replace(row, method=f"{row.method}; printed, padded by means", pinball=0.9 * row.pinball)
        for row in usual
    ]
    about = begun.about | {"cost": [5.0, 0.01], "scale_rows": 8_000}
    store(Results((*begun.rows, *other), begun.study, about), results, "tabular-printed")
    rows = [replace(row, geometry=each) for each in GEOMETRIES for row in as_printed()]
    write_csv(rows, results / "depth.csv")
    lines = [
        "stream,method,family,pace,unbalanced,balance_gain,balance_low,balance_high,"
        "risk,level,bound,certificate",
        "yeast,controlled,Multilabel,1,,,,,0.106,0.1,0.03,holds",
    ]
    lines += [f"gas,controlled,{values}" for values in
              ("Threshold,1,0.08,5.0,1.0,9.0", "Cumulative,1,0.03,,,")]  # fmt: skip
    lines += [f"outdoor,controlled,{values}" for values in
              ("Threshold,1,0.04,1.0,-2.0,3.0", "Cumulative,1,0.03,,,")]  # fmt: skip
    (results / "classification.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return results


def test_every_claim_stands_on_the_page_in_the_order_of_the_paper(folder: Path) -> None:
    path = write_summary(folder, folder.parent / "claims.md")
    assert path == folder.parent / "claims.md"
    text = path.read_text("utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("|")]
    claims = [row[3].strip() for row in rows if len(row) == 9]
    for claim in (*CLAIMS, *DEPTH):
        assert claim.text in claims
    assert "threshold sets have unbalanced coverage, cumulative sets are better" in claims
    (cost,) = [row for row in rows if "additional computational cost" in row[3]]
    assert [cell.strip() for cell in cost[4:6]] == ["–", "holds"]
    assert "*By their code* it takes 0.20 % (10.0 µs of 5.0 ms)." in " ".join(text.split())
    assert "the false negative rate can be controlled" in claims
    assert "| yeast | 10.60 | 10 | 3.00 | holds | 0.4 |" in " ".join(text.split())
    assert "holds partly (1 of 2, undecided outdoor)" in text
    assert "| gas | 8.0, 3.0 | 5 [1, 9] |" in " ".join(text.split())
    sections = [row[2].strip() for row in rows if row[3].strip() in {c.text for c in CLAIMS}]
    assert [_place(each) for each in sections] == sorted(_place(each) for each in sections)
    assert all(_place(claim.where) < len(ORDER) for claim in (*CLAIMS, *DEPTH))
    assert "*By their code* rests on 2 of the paper's 20 seeds so far." in " ".join(text.split())
    # By its number each claim has a table: printed and own numbers, and margins with intervals.
    (number,) = [row[1].strip() for row in rows if row[3].strip() == CLAIMS[1].text]
    details = text.partition(f"**{number}. Error adaptive stretching gives narrower")[2]
    details = " ".join(details.partition(f"**{int(number) + 1}. ")[0].split())
    assert "The margin: how much shorter. In the table: scaled length: error, none." in details
    assert "*By their code*: does not hold here (0 of 2)." in details
    assert "| power | 0.960, 1.014 | 0.975, 0.845 | −15.4 [−20.4, −10.4] |" in details
    assert "| wind (stand-in) | 0.965, 1.005 (other data) |" in details
    assert "[tabular](" not in text  # by the text nothing ran
    hidden = " ".join(text.partition("## What the printed numbers hide")[2].split())
    assert (
        "With rows of means instead the loss of none changes by, in %, of 2 seeds each: "
        "power −10 [−10, −10]; " in hidden
    )
    assert "the loss of none changes" in hidden.partition("**Batch and scaling.**")[0]
    assert "the text's and the authors': road (network) 17.0 and 17.0" in hidden
    assert "a small network of our own: road (network). Of these" in " ".join(text.split())


def test_a_page_lies_in_its_folder_and_overwrites_nothing_beside_it(folder: Path) -> None:
    beside = folder.parent / "README.md"
    beside.write_text("mine", "utf-8")
    text = " ".join(write_summary(folder).read_text("utf-8").split())
    assert "[depth](depth.md)" in text
    assert "](results/" not in text
    assert "the linear model" not in text
    assert beside.read_text("utf-8") == "mine"
    assert "[depth](results/depth.md)" in summary(folder, folder.parent)


def test_where_no_network_has_run_the_linear_model_stands_for_both_protocols(
    tmp_path: Path,
) -> None:
    store(made(seeds=1), tmp_path, "tabular-linear")
    text = summary(tmp_path)
    assert "the linear model stands for the network" in " ".join(text.split())
    narrower = next(line for line in text.splitlines() if "narrower intervals than none" in line)
    *_, by_text, by_code, seeds, _ = (cell.strip() for cell in narrower.split("|"))
    assert "–" not in (by_text, by_code)
    assert seeds == "1, 1"
    assert "[tabular-linear](tabular-linear.md)" in text
    assert "tabular-printed.md" not in text


def test_the_page_that_is_told_of_is_that_of_the_results_beside_it() -> None:
    assert (DOCS / "README.md").read_text("utf-8") == summary(DOCS / "results", DOCS)


@pytest.mark.parametrize("stem", ["tabular", "tabular-printed", "tabular-linear"])
def test_a_page_of_the_tabular_experiments_is_that_of_its_results(stem: str) -> None:
    page = (DOCS / "results" / f"{stem}.md").read_text("utf-8")
    assert page.partition("\n## Figures")[0] == report(load(DOCS / "results", stem))


def test_the_page_of_depth_has_the_verdicts_of_its_rows() -> None:
    page = (DOCS / "results" / "depth.md").read_text("utf-8")
    found = [case for _, each in cases(read_csv(DOCS / "results" / "depth.csv")) for case in each]
    assert len(found) > 30
    for case in found:
        assert f"    - {case}: **{case.verdict}**." in page


@pytest.mark.parametrize(("by", "near"), [("printed", 0.01), ("test", 0.02)])
def test_their_code_has_the_printed_losses_within_two_percent(by: str, near: float) -> None:
    results = load(DOCS / "results", "tabular-printed")
    own = [dataset for dataset in results.datasets if not results.stands_in(dataset)]
    assert own == ["power", "energy", "traffic", "prices"]
    for dataset in own:
        assert results.seeds(dataset) == 20
        for method in COLUMNS:
            mean = results.mean(dataset, f"{method}_coded", "pinball", by=by)
            assert mean == pytest.approx(printed(dataset, method).pinball, rel=near)


def test_a_page_needs_results(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no results"):
        summary(tmp_path)
