"""Notebooks as pages: each script of `notebooks/` is run in Jupyter and shown with what came out.

The build of the site calls `pages`. A cell that fails, or that prints a warning, stops the build.
"""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "notebooks"

STYLE = """
%config InlineBackend.figure_formats = ["svg"]
import matplotlib
from cycler import cycler
grey = "#7b8a8d"
matplotlib.rcParams |= {name: grey for name in (
    "text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")}
matplotlib.rcParams |= {"axes.spines.top": False, "axes.spines.right": False,
    "legend.frameon": False, "figure.facecolor": "none", "axes.facecolor": "none",
    "svg.hashsalt": "setpoint",
    "axes.prop_cycle": cycler(color=["#2b93a0", "#d2703a", "#8a6fb0"])}
"""
"""The first cell, not shown: pictures that can be read on a light page and on a dark one."""


def scripts() -> list[Path]:
    """Every notebook in the order of the gallery; they are Python files with cells."""
    gallery = FOLDER.with_name("gallery.md").read_text("utf-8")
    return [FOLDER / name for name in re.findall(r"\(notebooks/(\w+\.py)\)", gallery)]


def title(path: Path) -> str:
    """What a notebook is called: its first heading."""
    found = re.search(r"^# # (.+)$", path.read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{path.name} has no heading")
    return found[1]


def pages() -> Iterator[tuple[str, str | bytes]]:
    """The files that each notebook becomes: a page, its pictures, and a notebook to download."""
    import nbformat

    for path in scripts():
        notebook = executed(path)
        text, pictures = shown(notebook, path.stem)
        yield f"notebooks/{path.stem}.md", text
        yield from ((f"notebooks/{name}", picture) for name, picture in pictures.items())
        yield f"notebooks/{path.stem}.ipynb", nbformat.writes(notebook)


def executed(path: Path) -> Any:
    """A notebook after a run in a folder of its own."""
    import jupytext
    import nbformat
    from nbclient import NotebookClient

    notebook = jupytext.read(path)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(STYLE))
    with tempfile.TemporaryDirectory() as folder:
        where = {"metadata": {"path": folder}}
        NotebookClient(
            notebook, kernel_name="python3", timeout=600, startup_timeout=600, resources=where,
            extra_arguments=["--log-level=ERROR"],
        ).execute()  # fmt: skip
    del notebook.cells[0]
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
        for output in cell.get("outputs", ()):
            if output.get("name") == "stderr" or output.output_type == "error":
                raise ValueError(f"{path.name} warns: {output.get('text') or output.evalue}")
    return notebook


def shown(notebook: Any, name: str) -> tuple[str, dict[str, bytes]]:
    """The page of a notebook that was run, and its pictures by their names."""
    parts, pictures = [], {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/svg+xml" in data:
                picture = f"{name}-{len(pictures) + 1}.svg"
                pictures[picture] = data["image/svg+xml"].encode()
                parts.append(f"![What the cell above draws]({picture})")
            elif "text/html" in data:
                html = re.sub(r"<style.*?</style>|\n\s*", "", data["text/html"], flags=re.DOTALL)
                html = re.sub(r"<table[^>]*>", "<table>", html)
                parts.append(f'<div class="output">{html}</div>')
            else:
                text = output.get("text") or data.get("text/plain", "")
                parts.append(f"```text {{.output}}\n{text.rstrip()}\n```")
    heading, _, rest = "\n\n".join(parts).partition("\n")
    link = f"[Download this notebook]({name}.ipynb). What it printed and drew came out of a run."
    return f"{heading}\n\n{link}\n{rest}\n", pictures
