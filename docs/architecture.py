"""The table of the house: every package and module with its files, lines and purpose.

`python docs/architecture.py` prints it and writes it into docs/architecture.md; a test compares.
A sentence is the first of a docstring. Lines are those of Python files, to the nearest hundred, so
that the table does not change with every line that does.
"""

import ast
import tomllib
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
HOUSE = ROOT / "src" / "setpoint"
PAGE = Path(__file__).with_suffix(".md")
BEGIN, END = "<!-- made by python docs/architecture.py -->", "<!-- end -->"


def layers() -> dict[str, int]:
    """The layer of each package and module, 0 the highest, as the import contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return {
        name.strip(" ()"): place for place, line in enumerate(contract) for name in line.split("|")
    }


def files_of(name: str) -> list[Path]:
    """The Python files of a package, or the one of a module."""
    folder = HOUSE / name
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def lines_of(files: list[Path]) -> int:
    """How many lines the files have."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in files)


def sentence_of(path: Path) -> str:
    """The first paragraph of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def rows() -> list[tuple[str, int, int, str]]:
    """Name, files, lines and sentence of each package and module, the highest layer first."""
    places = layers()
    names = [
        path.stem
        for path in sorted(HOUSE.iterdir())
        if (path / "__init__.py").exists() or (path.suffix == ".py" and path.stem != "__init__")
    ]
    table = []
    for name in sorted(names, key=lambda name: (places.get(name, -1), name)):
        files = files_of(name)
        head = HOUSE / name / "__init__.py" if (HOUSE / name).is_dir() else files[0]
        shown = f"{name}/" if head.name == "__init__.py" else f"{name}.py"
        table.append((shown, len(files), lines_of(files), sentence_of(head)))
    return table


def printed() -> str:
    """The table in Markdown."""
    lines = ["| where | files | lines | what |", "|---|--:|--:|---|"]
    table = [*rows(), ("`setpoint`, all of it", *_total(), sentence_of(HOUSE / "__init__.py"))]
    for name, files, count, sentence in table:
        shown = name if name.startswith("`") else f"`{name}`"
        lines.append(f"| {shown} | {files} | {max(round(count, -2), 100):,} | {sentence} |")
    return "\n".join(lines)


def _total() -> tuple[int, int]:
    files = sorted(HOUSE.rglob("*.py"))
    return len(files), lines_of(files)


def exported() -> dict[str, list[str]]:
    """What each face of the library exports: its `__all__`, by the path of its file."""
    found = {}
    for path in sorted(HOUSE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else ()
            if any(isinstance(each, ast.Name) and each.id == "__all__" for each in targets):
                found[path.relative_to(HOUSE).as_posix()] = list(ast.literal_eval(node.value))
    return found


def names() -> tuple[int, int]:
    """How many classes, functions and constants are exported, and how many modules hold them.

    What a face takes over from another (`sp.Tape` is `tape.Tape`) is one name.
    """
    faces = exported()
    top = faces.pop("__init__.py")
    inner = {name for face in faces.values() for name in face}
    modules = [name for name in top if (HOUSE / name).is_dir() or (HOUSE / f"{name}.py").exists()]
    own = [name for name in top if name not in inner and name not in modules]
    return sum(map(len, faces.values())) + len(own), len(faces)


def main() -> None:
    """Prints the table with the sizes of files, and writes it into the page."""
    table, sizes = printed(), [lines_of([path]) for path in HOUSE.rglob("*.py")]
    print(table)
    print(f"\na file has {median(sizes):.0f} lines in the middle, and {max(sizes)} at most")
    print("{} names are exported, by {} packages and modules".format(*names()))
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
