"""The table of the page that sets code side by side, made by running that code.

`python docs/beside.py` writes it into docs/beside.md. A task whose library is not installed keeps
its row. A test compares.
"""

import ast
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).with_suffix(".md")
BLOCK = re.compile(r"^```python(?: title=\"(.+?)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (\d+)\. .*$", re.MULTILINE)
HEAD = "| | | *setpoint* | *alone* | *setpoint* | *alone* | *setpoint* | *alone* |\n"
NEEDS = {
    "scikit-learn": "sklearn", "River": "river", "MAPIE": "mapie", "StatsForecast": "statsforecast",
    "darts": "darts", "sktime": "sktime", "skforecast": "skforecast",
}  # fmt: skip
"""What is imported under the name that a block has as its title."""


@dataclass(frozen=True)
class Task:
    """A part of the page: its number and name, what comes before the blocks, and both blocks."""

    number: int
    name: str
    data: str
    blocks: dict[str, str]

    @property
    def host(self) -> str:
        """The library that does the task alone."""
        return next(title for title in self.blocks if title != "setpoint")

    @property
    def missing(self) -> list[str]:
        """The libraries that this task needs and that are not installed."""
        known = [NEEDS[self.host]] if self.host in NEEDS else []
        return [name for name in (*known, "pandas") if find_spec(name) is None]

    def measured(self) -> str:
        """Its row of the table."""
        ours, theirs = (self.run(self.blocks[title]) for title in ("setpoint", self.host))
        lines = [counted(self.blocks[title]) for title in ("setpoint", self.host)]
        cells = [f"{lines[0]} | {lines[1]}"]
        cells += [f"{100.0 * a:.1f} | {100.0 * b:.1f}" for a, b in [(ours[0], theirs[0])]]
        cells += [f"{a:.3g} | {b:.3g}" for a, b in [(ours[1], theirs[1])]]
        place = re.sub(r"[^\w\- ]", "", f"{self.number}. {self.name}".lower()).replace(" ", "-")
        linked = f"{self.number}. [{self.name}](#{place})"
        return f"| {linked} | {self.host} | {' | '.join(cells)} |"

    def run(self, block: str) -> tuple[float, float]:
        """Coverage and mean width of what a block showed, over the last rows of its task."""
        told: dict[str, Any] = {}
        exec(compile(self.data, f"task {self.number}", "exec"), told)
        exec(compile(block, f"task {self.number}", "exec"), told)
        truth = np.asarray(told["truth"])[-told["last"] :]
        if "mask" in told:
            mask = np.asarray(told["mask"])[-len(truth) :]
            return float(mask[np.arange(len(truth)), truth].mean()), float(mask.sum(axis=1).mean())
        lower, upper = (np.asarray(told[end])[-len(truth) :] for end in ("lower", "upper"))
        width = (upper - lower)[np.isfinite(upper - lower)]
        return float(np.mean((lower <= truth) & (truth <= upper))), float(width.mean())


def counted(block: str) -> int:
    """The lines of a block, one for each statement however it is broken, without imports."""
    nodes = ast.walk(ast.parse(block))
    return sum(
        isinstance(n, ast.stmt) and not isinstance(n, ast.Import | ast.ImportFrom) for n in nodes
    )


def tasks() -> list[Task]:
    """Every task of the page."""
    first, *parts = re.split(r"^## (?=\d+\. )", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    ((_, common),) = BLOCK.findall(first)
    found = []
    for part in parts:
        heading = part.partition("\n")[0]
        number, _, name = heading.partition(". ")
        blocks = BLOCK.findall(part)
        own = "".join(code for title, code in blocks if not title)
        titled = {title: code for title, code in blocks if title}
        found.append(Task(int(number), name, common + own, titled))
    return found


def rows() -> dict[int, str]:
    """The rows of the table as they stand, by the number of their task."""
    return {int(found[1]): found[0] for found in ROW.finditer(PAGE.read_text("utf-8"))}


def main() -> None:
    """Measures every task whose libraries are here, and writes the table."""
    text, table = PAGE.read_text("utf-8"), rows()
    for task in tasks():
        if not task.missing:
            table[task.number] = task.measured()
            print(table[task.number], flush=True)
    text = re.sub(r"^\| \d+\. .*\n", "", text, flags=re.MULTILINE)
    lines = "".join(f"{table[number]}\n" for number in sorted(table))
    PAGE.write_text(text.replace(HEAD, HEAD + lines), "utf-8")


if __name__ == "__main__":
    main()
