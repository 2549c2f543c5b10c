"""The first visit of a new user: from the front page of the site to intervals for an own file.

`python -m tests.new_user` does what the front page says, word for word, with a file that the
project has never seen: German dates, decimal commas, a day without a label. Only the names of the
file and of its columns are changed, as a user would. First on the command line, then in the
notebook that the page leads to. It prints how long each took; `make release-check` does so in an
empty environment, and counts the installation.
"""

import csv
import json
import math
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
FILE, TIME, FORECAST, TARGET = "Umsatz 2024.csv", "Tag", "Prognose", "Umsatz"
ROWS = 500
NAMES = {"sales.csv": FILE, "day": TIME, "forecast": FORECAST, "sales": TARGET}
"""What stands on the page, and what the user has."""


def write_file(folder: Path) -> None:
    """The user's file: a level that rises, a forecast that does not know it."""
    world = random.Random(20)
    with (folder / FILE).open("w", encoding="utf-8") as file:
        file.write(f"{TIME};Filiale;{FORECAST};{TARGET}\n")
        for row in range(ROWS):
            day = date(2024, 1, 1) + timedelta(days=row)
            usual = 900.0 + 150.0 * math.sin(2.0 * math.pi * row / 7.0)
            label = f"{usual * (1.0 + row / 1_000.0) + world.gauss(0.0, 60.0):.2f}"
            numbers = f"{usual:.2f};{'' if row == 321 else label}".replace(".", ",")
            file.write(f"{day:%d.%m.%Y};Nord;{numbers}\n")


def commands() -> list[list[str]]:
    """The commands of the front page for an own file, with the user's names."""
    page = (DOCS / "index.md").read_text("utf-8").partition("## Your own file")[2]
    block = re.search(r"```sh\n(.*?)```", page, re.DOTALL)
    assert block is not None
    lines = [shlex.split(line, comments=True) for line in block[1].splitlines()]
    return [
        [*line[:2], *(NAMES.get(word, word) for word in line[2:])]
        for line in lines
        if line[0] == "setpoint"
    ]


def on_the_command_line(folder: Path, python: str = sys.executable) -> list[str]:
    """What each command of the page printed; its results lie in the folder."""
    write_file(folder)
    printed = []
    for _, *words in commands():
        told = subprocess.run(
            [python, "-m", "setpoint.cli", *words],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert told.returncode == 0, told.stdout + told.stderr
        printed.append(told.stdout)
    return printed


def a_day_ahead(folder: Path, python: str = sys.executable) -> list[dict[str, Any]]:
    """Own forecasts of a day ahead: first as they are, then with the delay that is said."""
    world, level, hours = random.Random(7), [0.0], range(24 * 90)
    for _ in hours:
        level.append(level[-1] + world.gauss(0.0, 1.0))
    lines = ["hour,day_ahead,load"]
    for hour in hours:
        when = datetime(2024, 1, 1) + timedelta(hours=hour)
        lines.append(f"{when:%Y-%m-%d %H:%M},{level[max(hour - 24, 0)]:.3f},{level[hour]:.3f}")
    (folder / "load.csv").write_text("\n".join(lines))
    words = ["calibrate", "load.csv", "--target", "load", "--point", "day_ahead", "--no-report"]
    told = []
    for more in ([], ["--delay", "23"]):
        command = [python, "-m", "setpoint.cli", *words, *more]
        for kind in ([], ["--json"]):
            done = subprocess.run(
                [*command, *kind], cwd=folder, capture_output=True, text=True, check=True
            )
            told.append({"text": done.stdout} if not kind else json.loads(done.stdout))
    return told


def in_a_notebook(folder: Path, python: str = sys.executable) -> str:
    """What the notebook of the page printed, with the names of its first cell changed."""
    write_file(folder)
    page = (DOCS / "index.md").read_text("utf-8")
    link = re.search(r"\]\((notebooks/\w+\.py)\)", page)
    assert link is not None
    text = (DOCS / link[1]).read_text("utf-8")
    cell = f'''FILE = "{FILE}"
TIME, FORECAST, TARGET = "{TIME}", "{FORECAST}", "{TARGET}"
READ = {{"sep": ";", "decimal": ",", "parse_dates": ["{TIME}"], "dayfirst": True}}
'''
    text, changed = re.subn(r"^FILE = .*?^READ = [^\n]*\n", lambda _: cell, text, flags=re.M | re.S)
    assert changed == 1
    (folder / "own.py").write_text(text, "utf-8")
    told = subprocess.run(
        [python, "-W", "error", "own.py"],
        cwd=folder, env={**os.environ, "MPLBACKEND": "agg"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stdout + told.stderr
    return told.stdout


def inside(path: Path, delimiter: str = ",", decimal: str = ".") -> float:
    """The share of the labels of a written file that lie between its new ends."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=delimiter))

    def number(text: str) -> float:
        return float(text.replace(decimal, "."))

    judged = [row for row in rows if row[TARGET] and row["lower"] and row["upper"]]
    hits = [number(row["lower"]) <= number(row[TARGET]) <= number(row["upper"]) for row in judged]
    return sum(hits) / len(hits)


def main(prepare: Callable[[Path], str] = lambda _: sys.executable) -> None:
    """Makes both visits and prints how long they took; `prepare` gives the Python of a folder."""
    for visit in (on_the_command_line, in_a_notebook):
        with tempfile.TemporaryDirectory() as name:
            clock, before = perf_counter(), os.times()
            visit(Path(name), prepare(Path(name)))
            took, after = perf_counter() - clock, os.times()
            work = sum(after[2:4]) - sum(before[2:4])  # of the processes that were started
            way = visit.__name__.replace("_", " ")
            print(f"a new user {way}: {took:.0f} s, {work:.0f} s of a processor", flush=True)


if __name__ == "__main__":
    main()
