"""What the site has beyond the pages of this folder; `make docs` builds it, mkdocs calls this.

The API is made from the `__all__` of every public module, read from the sources. Notebooks are run.
The paper's pages, the changelog and the examples are taken from where they lie. Links between files
of the repository become links of the site, and a name set as code leads to its place in the API.
"""

import ast
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))
import cells  # noqa: E402
import pictures  # noqa: E402
from check_links import dead  # noqa: E402

ROOT = DOCS.parent
SOURCES = ROOT / "src"

NAME = re.compile(r"(<a\b.*?</a>|<pre\b.*?</pre>|<h\d\b.*?</h\d>)|<code>([^<]+)</code>", re.DOTALL)
LINK = re.compile(r"(\]\()([^)\s#]+)?(#[^)\s]*)?(\))")
PICTURE = re.compile(r"\]\(([^)\s:]+\.(?:png|svg|csv))\)")
FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<code>.*?)^(?P=indent)```", re.M | re.S)


# The API, read from the sources


@cache
def sources() -> dict[str, ast.Module]:
    """Every module, with its text as a tree."""
    found = {}
    for path in sorted((SOURCES / "setpoint").rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found[".".join(parts)] = ast.parse(path.read_text("utf-8"))
    return found


@cache
def modules() -> dict[str, ast.Module]:
    """Every public module."""
    return {name: tree for name, tree in sources().items() if "._" not in name}


def exported(module: str) -> list[str]:
    """The `__all__` of a module."""
    for node in modules()[module].body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(each, ast.Name) and each.id == "__all__" for each in targets):
            return list(ast.literal_eval(node.value))  # type: ignore[attr-defined]
    return []


def origin(module: str, name: str) -> str:
    """Where a name of a module is written: the module itself, or the one it is imported from."""
    for node in ast.walk(sources()[module]):
        if isinstance(node, ast.ImportFrom) and node.module in sources():
            for each in node.names:
                if (each.asname or each.name) == name:
                    inner = f"{node.module}.{each.name}"
                    return inner if inner in modules() else origin(node.module, each.name)
    return f"{module}.{name}"


def words(place: str) -> str:
    """The docstring of what is written at a place: a class, a function or a constant."""
    module, _, name = place.rpartition(".")
    body = sources()[module].body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name == name:
                return ast.get_docstring(node) or ""
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(each, ast.Name) and each.id == name for each in targets):
                told = after.value if isinstance(after, ast.Expr) else None
                return str(told.value) if isinstance(told, ast.Constant) else ""
    raise ValueError(f"{place} is exported and written nowhere")


@cache
def homes() -> dict[str, str]:
    """Every public name by the place where it is written: the shortest name it is reached by."""
    found: dict[str, str] = {}
    for module in sorted(modules(), key=lambda each: (each.count("."), each)):
        for name in exported(module):
            place, shown = origin(module, name), f"{module}.{name}"
            if place not in modules():  # jobs.calibrate is also a module
                found.setdefault(place, place if shown in modules() else shown)
    return found


@cache
def links() -> dict[str, str]:
    """Whatever a public name or module may be called in code, and where the API has it."""
    found = {}
    for module in modules():
        found[module] = module
        for name in exported(module):
            place = origin(module, name)
            found[f"{module}.{name}"] = place if place in modules() else homes()[place]
            if place in modules() and place != f"{module}.{name}":  # setpoint.search
                for inner in exported(place):
                    found[f"{module}.{name}.{inner}"] = homes()[origin(place, inner)]
    short = {each.removeprefix("setpoint."): home for each, home in found.items() if "." in each}
    return {**{f"sp.{each}": home for each, home in short.items()}, **short, **found}


def api() -> dict[str, str]:
    """The pages of the API: a page for `setpoint` and for each module and package below it."""
    pages = {"api/index.md": _page("setpoint", [])}
    faces = [each for each in modules() if exported(each)]
    for top in dict.fromkeys(".".join(each.split(".")[:2]) for each in faces if "." in each):
        inner = [each for each in faces if each.startswith(f"{top}.")]
        pages[f"api/{top.partition('.')[2]}.md"] = _page(top, inner)
    return pages


def _page(top: str, inner: list[str]) -> str:
    lines = []
    for module in (top, *inner):
        names = exported(module)
        homes_of = {
            name: (home, homes().get(home)) for name in names for home in [origin(module, name)]
        }
        own = [
            name for name, (place, home) in homes_of.items() if home in (place, f"{module}.{name}")
        ]
        text = ast.get_docstring(modules()[module]) or ""
        text = re.sub(r"(?<=\n\n)(>>> .*?)(?=\n\n|\Z)", r"```pycon\n\1\n```", text, flags=re.S)
        lines += [f"{'#' if module == top else '##'} {module} {{#{module}}}", "", text, ""]
        elsewhere = [name for name in names if name not in own]
        if module == top and elsewhere:
            listed = ", ".join(f"[`{name}`][{links()[f'{module}.{name}']}]" for name in elsewhere)
            lines += [f"Elsewhere in this reference: {listed}.", ""]
        if len(own) > 3:
            lines += ["| name | what |", "|---|---|"]
            for name in own:
                first = words(origin(module, name)).partition("\n\n")[0].replace("\n", " ")
                lines += [f"| [`{name}`][{homes_of[name][1]}] | {first.replace('|', '&#124;')} |"]
            lines += [""]
        level = 2 if module == top else 3
        for name in own:
            lines += [f"::: {homes_of[name][1]}", f"    options: {{heading_level: {level}}}", ""]
    return "\n".join(lines)


def contents() -> list[Any]:
    """The pages of the API as a part of the navigation."""
    pages = {page: page.removeprefix("api/").removesuffix(".md") for page in api()}
    return ["api/index.md", *({name: page} for page, name in pages.items() if name != "index")]


# Files from elsewhere in the repository


def elsewhere() -> dict[str, Path]:
    """Pages of the site that lie outside this folder, by their place in the site."""
    found = {"changelog.md": ROOT / "CHANGELOG.md", "contributing.md": ROOT / "CONTRIBUTING.md"}
    found["conduct.md"] = ROOT / "CODE_OF_CONDUCT.md"
    found["security.md"] = ROOT / "SECURITY.md"
    found["paper/project.md"] = ROOT / "paper" / "README.md"
    for path in sorted((ROOT / "paper" / "docs").rglob("*.md")):
        place = path.relative_to(ROOT / "paper" / "docs").as_posix()
        found[f"paper/{place}"] = path
    for path in sorted((ROOT / "comparison" / "results").glob("*.md")):
        found[f"comparison/{path.name}"] = path
    return found


@cache
def _places() -> dict[Path, str]:
    """The place in the site of every file that has one."""
    found = {path.resolve(): place for place, path in elsewhere().items()}
    found |= {path: path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*") if path.is_file()}
    found |= {path: f"examples/{path.stem}.md" for path in _examples()}
    found |= {path: f"notebooks/{path.stem}.md" for path in cells.scripts()}
    return found | {ROOT / "README.md": "index.md"}


def _examples() -> list[Path]:
    return sorted((ROOT / "examples").rglob("*.py"))


def example(path: Path) -> str:
    """The page of an example: what its docstring says, then the whole script."""
    text = path.read_text("utf-8")
    words = ast.get_docstring(ast.parse(text)) or ""
    title, _, rest = words.partition("\n")
    place = path.relative_to(ROOT).as_posix()
    return f'# {title.rstrip(".")}\n\n{rest.strip()}\n\n```python title="{place}"\n{text}```\n'


def reports() -> Iterator[tuple[str, bytes]]:
    """The reports of the gallery, made by the library from streams whose law is known."""
    with tempfile.TemporaryDirectory() as folder:
        for name, write in pictures.REPORTS.items():
            path = Path(folder) / f"{name}.html"
            write(path)
            yield f"gallery/{name}.html", path.read_bytes()


# What mkdocs calls


def on_config(config: Any) -> Any:
    """Puts the notebooks and the pages of the API into the navigation."""
    found = [{cells.title(path): f"notebooks/{path.stem}.md"} for path in cells.scripts()]
    for part in config.nav:
        if "API" in part:
            part["API"] = contents()
        if "Gallery" in part:
            part["Gallery"] += found
    if os.environ.get("SITE_VERSIONS"):  # published beside other versions, by mike
        config.extra["version"] = {"provider": "mike"}
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds what lies outside this folder."""
    from mkdocs.structure.files import File

    def add(place: str, content: str | bytes) -> None:
        files.append(File.generated(config, place, content=content))

    for place, text in api().items():
        add(place, text)
    for place, path in elsewhere().items():
        text = path.read_text("utf-8")
        add(place, text)
        for link in dict.fromkeys(PICTURE.findall(text)):
            picture = (path.parent / link).resolve()
            add(f"{PurePosixPath(place).parent}/{link}", picture.read_bytes())
    for path in _examples():
        add(f"examples/{path.stem}.md", example(path))
    for place, page in (*reports(), *cells.pages()):
        add(place, page)
    for place in ("LICENSE", "CITATION.cff"):
        add(place, (ROOT / place).read_bytes())
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Links between files become links between pages; a session is coloured as one."""
    place = page.file.src_uri
    home = elsewhere().get(place, DOCS / place)

    def moved(found: re.Match[str]) -> str:
        target, anchor = found[2], found[3] or ""
        if target is None or re.match(r"[a-z]+:", target):
            return found[0]
        there = _places().get((home.parent / target).resolve())
        if there is None:
            beside = (home.parent / target).resolve()
            there = beside.relative_to(ROOT).as_posix() if beside.is_file() else None
            if there is None or files.get_file_from_path(there) is None:
                return found[0]  # a file of the site itself, or one that mkdocs warns of
        return f"]({os.path.relpath(there, PurePosixPath(place).parent)}{anchor})"

    def coloured(found: re.Match[str]) -> str:
        if found["kind"] == "python" and found["code"].lstrip().startswith(">>>"):
            return f"{found['indent']}```pycon\n{found['code'].rstrip()}\n{found['indent']}```"
        return found[0]

    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(moved, markdown[end : fence.start()]), coloured(fence)]
        end = fence.end()
    return "".join([*parts, LINK.sub(moved, markdown[end:])])


def on_page_content(html: str, **_: Any) -> str:
    """A name set as code leads to its place in the API."""

    def linked(found: re.Match[str]) -> str:
        if found[1]:
            return found[0]
        name = found[2].partition("(")[0]
        home = links().get(name)
        if home is None and name.count("."):
            owner, _, last = name.rpartition(".")  # an attribute of a class
            home = f"{links()[owner]}.{last}" if owner in links() else None
        if home is None:
            return found[0]
        return f'<autoref optional identifier="{home}">{found[0]}</autoref>'

    return NAME.sub(linked, html)


def on_post_build(config: Any) -> None:
    """No link of the site is dead, and nothing is asked of another host."""
    from mkdocs.exceptions import PluginError

    found = dead(Path(config.site_dir))
    if found:
        raise PluginError("\n".join([f"{len(found)} dead links", *found[:50]]))
