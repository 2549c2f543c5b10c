"""Numbers in the pages: each comes from a command that the page names, and the cheap ones agree."""

import re
import runpy
from pathlib import Path

import pytest

from benchmarks import KNOWN
from comparison.__main__ import PARTS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RESULTS = ROOT / "comparison" / "results"
MEASURED = re.compile(r"(?<![\w.-])\d[\d.,]* ?(?:µs|ns|ms|[MG]B|MB/s|rows/s|m \|)")
COMMAND = re.compile(
    r"python -m benchmarks (?P<benchmark>\w+)|python (?P<script>(?:docs|examples)/[\w/]+\.py)"
    r"|setpoint-paper (?P<experiment>\w+)|`make (?P<target>[a-z-]+)"
    r"|python -m comparison (?P<compared>[a-z]\w+)"
)


def table(page: Path, first: str) -> dict[tuple[str, str], dict[str, float]]:
    """A table of a results page: its numbers by group and rule, the first one with this heading."""
    text = page.read_text("utf-8").partition(first)[2].lstrip("\n")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    names, _, *rows = lines[: next(place for place, line in enumerate(lines) if line == [""])]
    found = {}
    for row in rows:
        cells = dict(zip(names, row, strict=True))
        numbers = {name: float(cell) for name, cell in cells.items() if re.match(r"[\d.]+$", cell)}
        found[row[0].partition(" (")[0], row[1]] = numbers
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    paper = (ROOT / "paper" / "src" / "setpoint_paper" / "cli.py").read_text("utf-8")
    experiments = set(re.findall(r"^def (\w+)\(", paper, re.MULTILINE))
    for found in COMMAND.finditer(page.read_text("utf-8")):
        name, word = found.lastgroup, found[found.lastgroup or 0]
        if name == "script":
            assert (ROOT / word).is_file(), word
        else:
            known = {"benchmark": set(KNOWN), "experiment": experiments, "target": targets}
            known["compared"] = {*PARTS, "all"}
            assert word in known[name or ""], found[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_with_measurements_names_the_command_that_prints_them(page: Path) -> None:
    text = page.read_text("utf-8")
    measured = MEASURED.findall(re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.M | re.S))
    tested = {"report.md": "test_report_page.py"}  # sizes of a page, held by a test
    if measured and page.name not in tested:
        assert COMMAND.search(text), measured


def test_the_tables_on_late_labels_are_those_that_the_command_wrote() -> None:
    told, written = (
        path.read_text("utf-8") for path in (ROOT / "docs/horizons.md", RESULTS / "late.md")
    )
    after = told.partition("python -m comparison late")[2]
    tables = re.findall(r"(?:^\|.*\n)+", after, re.MULTILINE)
    assert len(tables) == 5
    assert [each for each in tables if each not in written] == []


def test_the_comparison_page_opens_with_the_published_numbers() -> None:
    pictures = runpy.run_path(str(ROOT / "docs" / "pictures.py"))
    assert pictures["table"]() in (ROOT / "docs" / "comparison.md").read_text("utf-8")
    for theme in pictures["COLOURS"]:
        drawn = ROOT / "docs" / "images" / f"rules-{theme}.svg"
        assert drawn.read_text("utf-8") == pictures["rules"](theme), "run docs/pictures.py"


def test_the_advice_rests_on_what_the_comparison_measured() -> None:
    page = (ROOT / "docs" / "choose.md").read_text("utf-8")
    rules = table(RESULTS / "comparison.md", "## The default beside the best published rule\n")
    steps = {
        rule: numbers
        for (rule, _), numbers in table(
            RESULTS / "comparison.md",
            "Ratios are the default's over that rule's, on all streams.\n",
        ).items()
    }
    score, width = "Winkler / best", "width / best"

    def both(rule: str, column: str, labels: str) -> str:
        halves = (f"development, {labels}", f"validation, {labels}")
        return " and ".join(f"{rules[half, rule][column]:.2f}" for half in halves)

    at_once, late = "labels at once", "late labels"
    default = both("default", score, at_once)
    said = [
        f"({default} of the best)",
        f"{both('default, period', score, at_once)} instead of {default}",
        f"{both('default, centre kept', score, at_once)} instead of {default}",
        f"width {both('default, steadiness 0.1', width, at_once)} instead of "
        f"{both('default', width, at_once)}",
        f"its Winkler score is {both('default', score, late)} of the best",
        *(
            words.format(steps[rule]["Winkler ×"])
            for rule, words in (
                ("fixed γ, untuned", "is {:.2f} times that of an untuned"),
                ("fixed γ, hindsight", "and {:.2f} times that of the γ chosen in hindsight"),
            )
        ),
    ]
    assert [words for words in said if words not in page] == []
