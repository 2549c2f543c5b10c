"""The pages tell the truth: names import, tests exist, links lead somewhere, nothing is missing."""

import ast
import importlib
import inspect
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import setpoint

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
PAPER_PAGES = [ROOT / "paper" / "README.md", *sorted((ROOT / "paper" / "docs").rglob("*.md"))]
COMPARED = sorted((ROOT / "comparison" / "results").glob("*.md"))
NAMING_PAGES = [
    page for page in PAGES if page.name not in ("CHANGELOG.md", "why.md", "paper-map.md")
]
PAPER_MAP = ROOT / "docs" / "paper-map.md"
HOOKS = runpy.run_path(str(ROOT / "docs" / "hooks.py"))
MADE = {
    *HOOKS["api"](),
    *(
        f"gallery/{name}.html"
        for name in runpy.run_path(str(ROOT / "docs" / "pictures.py"))["REPORTS"]
    ),
}
"""Pages that the build of the site makes."""

CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


# The paper map


def rows() -> Iterator[tuple[str, str, str]]:
    """What, code and tests of every row of every table of the paper map."""
    for line in read(PAPER_MAP).splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) < 3 or cells[0] == "paper" or set(cells[0]) <= set("-: "):
            continue
        yield cells[0], cells[1], cells[2]


def found(dotted: str) -> Any:
    """What a dotted name below `setpoint`, or one that begins with `setpoint_paper`, stands for."""
    place = "setpoint_paper" if dotted.startswith("setpoint_paper.") else "setpoint"
    value: Any = importlib.import_module(place)
    for part in dotted.removeprefix(f"{place}.").split("."):
        place += f".{part}"
        if isinstance(value, ModuleType) and not hasattr(value, part):
            importlib.import_module(place)
        fields = getattr(value, "__dataclass_fields__", {}) if isinstance(value, type) else {}
        value = fields[part] if part in fields else getattr(value, part)
    return value


def names_of_tests() -> set[str]:
    return {
        node.name
        for folder in (ROOT / "tests", ROOT / "paper" / "tests")
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(read(path)))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def test_the_paper_map_has_rows_with_names_and_tests() -> None:
    every = list(rows())
    assert len(every) > 30
    assert sum(bool(CODE.search(code)) for _, code, _ in every) > 20
    assert sum("`test_" in tests for _, _, tests in every) > 20


@pytest.mark.parametrize(
    ("dotted", "what"),
    sorted({(name, what) for what, code, _ in rows() for name in CODE.findall(code)}),
)
def test_every_name_of_the_paper_map_is_in_the_code(dotted: str, what: str) -> None:
    try:
        found(dotted)
    except (AttributeError, ImportError, KeyError) as error:
        pytest.fail(f"the paper map names {dotted!r} for {what!r}, and {error}")


def test_every_test_of_the_paper_map_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", read(PAPER_MAP)))
    named |= {name for _, _, tests in rows() for name in CODE.findall(tests)}
    assert sorted(named - names_of_tests()) == []


# Public names


def public_names() -> Iterator[tuple[str, str]]:
    """(where, name) of everything a user is meant to find."""
    modules = {name: getattr(setpoint, name) for name in setpoint.__all__}
    modules["testing"] = importlib.import_module("setpoint.testing")
    for name, value in modules.items():
        yield "setpoint", name
        if isinstance(value, ModuleType):
            yield from ((f"setpoint.{name}", inner) for inner in value.__all__)
    for name, _ in inspect.getmembers(setpoint.Stream):
        if not name.startswith("_"):
            yield "setpoint.Stream", name


def written_code(pages: list[Path]) -> str:
    """Everything set as code in the pages that name things."""
    text = "\n".join(map(read, pages))
    fences = FENCE.findall(text)
    return "\n".join([*fences, *CODE.findall(FENCE.sub("", text))])


def test_every_public_name_is_in_the_pages() -> None:
    words = set(re.findall(r"\w+", written_code(NAMING_PAGES)))
    missing = sorted({f"{where}.{name}" for where, name in public_names() if name not in words})
    assert missing == [], f"in none of {[page.name for page in NAMING_PAGES]}: {missing}"


@pytest.mark.parametrize("page", NAMING_PAGES, ids=lambda page: page.name)
def test_every_dotted_name_of_a_page_is_in_the_code(page: Path) -> None:
    dead = []
    for name in re.findall(r"`(?:sp\.|setpoint\.)?((?:\w+\.)+\w+)", FENCE.sub("", read(page))):
        top, *_, last = name.split(".")
        if top in setpoint.__all__ and last not in ("py", "html", "json"):  # those are files
            try:
                found(name)
            except (AttributeError, ImportError, KeyError) as error:
                module = f"setpoint.{name.rpartition('.')[0]}"
                absent = isinstance(error, ImportError) and last in HOOKS["exported"](module)
                dead += [] if absent else [name]  # its library is not here, but it is
    assert dead == []


@pytest.mark.parametrize("package", ["datasets", "models"])
def test_every_name_of_the_papers_packages_is_in_its_pages(package: str) -> None:
    names = importlib.import_module(f"setpoint_paper.{package}").__all__
    assert set(names) <= set(re.findall(r"\w+", written_code(PAPER_PAGES)))


# Links


@pytest.mark.parametrize("page", [*PAGES, *PAPER_PAGES, *COMPARED], ids=lambda page: page.name)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    dead = []
    for link in LINK.findall(FENCE.sub("", read(page))):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link) or target in MADE:
            continue
        there = (page.parent / target).resolve() if target else page
        here = there.suffix == ".md" and anchor
        if not there.exists() or (here and anchor not in anchors(there)):
            dead.append(link)
    assert dead == []


def anchors(page: Path) -> set[str]:
    """The anchors that headings of a page make."""
    headings = re.findall(r"^#+ +(.+)$", FENCE.sub("", read(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


# Why: statements, proofs and their tests

WHY = ROOT / "docs" / "why.md"
STATEMENT = re.compile(r"^> \*\*(.+)\*\*$((?:\n>.*)*)((?s:.*?))(?=^> \*\*|\Z)", re.MULTILINE)
SAID = re.compile(r"^> \*(Premises|Printed as|Tests)\*: (.+)$", re.MULTILINE)


def test_every_statement_of_why_has_premises_a_proof_and_law_tests_that_exist() -> None:
    statements, known = STATEMENT.findall(read(WHY)), names_of_tests()
    assert len(statements) >= 20
    for title, box, rest in statements:
        said = dict(SAID.findall(box))
        assert list(said) == ["Premises", "Printed as", "Tests"], title
        tests = set(CODE.findall(said["Tests"]))
        assert tests, title
        assert sorted(tests - known) == [], title
        assert "Proof.*" in rest, title


def test_everything_that_a_certificate_prints_leads_to_its_statement() -> None:
    page = read(WHY)
    table = page.partition("### What a certificate prints")[2].partition("\n## ")[0]
    led = {place.replace("-", " ") for place in re.findall(r"\]\(#([\w-]+)\)", table)}
    headings = re.findall(r"^(#+ .+|> \*\*.+\*\*)$", page, re.MULTILINE)
    boxed, above = set(), ""
    for line in headings:
        if line.startswith("#"):
            above = re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace("-", " ")
        else:
            boxed.add(above)
    assert led - boxed == {"separate sets two sides nested levels groups"}  # it has three
    words = table.replace("Bound", "bound")
    for certificate in certificates():
        named = re.findall(r"^     ([a-z][a-z ]*?)  +\S", str(certificate), re.MULTILINE)
        told = {"coverage", "mean loss", "unjudged", "the floor"}  # counted, not claimed
        assert set(named) - told
        assert [name for name in set(named) - told if name not in words] == []


def certificates() -> Iterator[Any]:
    """Of an account after an outage with labels that wait, and of the paper's rule."""
    account = setpoint.Stream(setpoint.intervals())
    risk = setpoint.Risk(setpoint.losses.Miscoverage(), 0.1, setpoint.steps.Fixed(0.5))
    fixed = setpoint.Stream(setpoint.Controller(setpoint.sets.Threshold(), risk))
    for row in range(50):
        account.predict((0.0, 1.0), id=row)
    account.update_many(dict.fromkeys(range(40), 9.0))
    for row in range(400):
        account.predict((0.0, 1.0), id=100 + row)
        account.update(0.5, id=100 + row)
        fixed.predict([0.6, 0.4])
        fixed.update(0)
    yield account.certificate()
    yield fixed.certificate()
