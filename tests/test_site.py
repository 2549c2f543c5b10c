"""The site before it is built: a whole API and navigation, pictures that are up to date."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def load(name: str) -> ModuleType:
    """A script of the folder docs."""
    found = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    return module


hooks = load("hooks")
cells, check_links, pictures = hooks.cells, load("check_links"), load("pictures")


# The API


def test_no_public_name_is_undocumented() -> None:
    assert len(hooks.homes()) > 200
    assert [place for place in hooks.homes() if not hooks.words(place)] == []


def test_every_public_name_of_every_public_module_is_in_the_api_once() -> None:
    shown = [
        line.removeprefix("::: ")
        for page in hooks.api().values()
        for line in page.splitlines()
        if line.startswith("::: ")
    ]
    assert sorted(shown) == sorted(hooks.homes().values())
    headings = " ".join(hooks.api().values())
    faces = [module for module in hooks.modules() if hooks.exported(module)]
    assert all(f"# {module} {{#{module}}}" in headings for module in faces)
    for module in hooks.modules():
        for name in hooks.exported(module):
            assert hooks.links()[f"{module}.{name}"] in {*shown, *hooks.modules()}


def test_a_name_is_shown_where_it_is_shortest() -> None:
    assert hooks.homes()["setpoint.controller.Risk"] == "setpoint.Risk"
    assert hooks.homes()["setpoint.sets.intervals.Widen"] == "setpoint.sets.Widen"
    assert hooks.links()["sp.sets.Widen"] == hooks.links()["sets.Widen"] == "setpoint.sets.Widen"
    assert hooks.links()["setpoint.search.Pinball"] == "setpoint.bulk.search.Pinball"


# Pages and pictures


def test_every_page_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    pages = [page.name for page in DOCS.glob("*.md")] + list(hooks.elsewhere())
    assert {path.name for path in cells.scripts()} == {
        path.name for path in DOCS.glob("notebooks/*.py")
    }
    assert [page for page in pages if f": {page}\n" not in text] == []


def test_every_example_has_a_page_in_the_gallery() -> None:
    gallery = (DOCS / "gallery.md").read_text("utf-8")
    for path in (ROOT / "examples").rglob("*.py"):
        assert f"(../{path.relative_to(ROOT).as_posix()})" in gallery
        assert hooks.example(path).startswith("# ")


@pytest.mark.parametrize("theme", list(pictures.COLOURS))
def test_the_picture_of_the_home_page_is_what_its_command_makes(theme: str) -> None:
    path = DOCS / "images" / f"home-{theme}.svg"
    assert path.read_text("utf-8") == pictures.home(theme), "run `python docs/pictures.py`"


# Links


def test_dead_links_and_what_comes_from_elsewhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "style.css").touch()
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="style.css"><a id="here" href="sub/page.html#there">ok</a>'
        '<a href="https://example.org">named</a><a href="#here">ok</a><a href="sub/">ok</a>'
    )
    (tmp_path / "sub" / "index.html").write_text('<a href="../index.html">ok</a>')
    page = tmp_path / "sub" / "page.html"
    page.write_text('<h2 id="there">x</h2>')
    assert check_links.dead(tmp_path) == []
    page.write_text(
        '<h2 id="gone">x</h2><a href="no.html">x</a><img src="no.png">'
        '<script src="https://example.org/x.js"></script><a href="#no">x</a>'
    )
    assert check_links.dead(tmp_path) == [
        "index.html: sub/page.html#there leads to no place in its page",
        "sub/page.html: no.html leads to no file",
        "sub/page.html: no.png leads to no file",
        "sub/page.html: https://example.org/x.js is loaded from another host",
        "sub/page.html: #no leads to no place in its page",
    ]
