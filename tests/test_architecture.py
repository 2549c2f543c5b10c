"""The page of the architecture tells the truth: its table is the tree, its walks can be taken."""

import importlib
import inspect
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest

import setpoint as sp

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
HOUSE = runpy.run_path(str(ROOT / "docs" / "architecture.py"))
REMEDY = "run `python docs/architecture.py`"


def cells(table: str) -> dict[str, tuple[int, int, str]]:
    """Files, lines and sentence of each row."""
    rows = re.findall(r"^\| (`.*) \| (\d+) \| ([\d,]+) \| (.*) \|$", table, re.MULTILINE)
    return {
        name: (int(files), int(lines.replace(",", "")), sentence)
        for name, files, lines, sentence in rows
    }


def test_the_table_of_the_house_is_the_tree() -> None:
    page, tree = cells(PAGE), cells(HOUSE["printed"]())
    assert list(page) == list(tree), REMEDY
    for name, (files, lines, sentence) in tree.items():
        assert page[name][0] == files, f"{name} has {files} files: {REMEDY}"
        assert page[name][2] == sentence, f"{name} says {sentence!r}: {REMEDY}"
        assert abs(page[name][1] - lines) <= 200, f"{name} has some {lines:,} lines: {REMEDY}"


def test_every_file_of_the_house_tells_its_purpose_in_its_first_line() -> None:
    files = sorted((ROOT / "src" / "setpoint").rglob("*.py"))
    assert [path.name for path in files if not HOUSE["sentence_of"](path)] == []


def test_every_file_that_the_page_names_exists() -> None:
    files = re.findall(r"`([\w/]+\.(?:py|html|css|js))`", PAGE.replace("`report.html`", ""))
    assert [name for name in files if not (ROOT / "src" / "setpoint" / name).exists()] == []


class Hop(NamedTuple):
    """A line of a walk: the file, the function, its code, the line it is indented under."""

    file: str
    name: str
    code: CodeType
    parent: "Hop | None"
    seen: bool


def code_of(file: str, name: str) -> CodeType:
    value: Any = importlib.import_module("setpoint." + file.removesuffix(".py").replace("/", "."))
    for part in name.split("."):
        value = getattr(value, part)
    value = value.fget if isinstance(value, property) else value
    code: CodeType = inspect.unwrap(value).__code__
    return code


def walk(heading: str) -> list[Hop]:
    """The hops below a heading of the page, each with the one above it."""
    text = PAGE.split(f"### {heading}\n")[1].split("\n#")[0]
    hops: list[Hop] = []
    above: list[tuple[int, Hop]] = []
    for line in re.findall(r"^ *- .*$", text, re.MULTILINE):
        match = re.match(r"( *)- `([\w/]+\.py)` `([\w.]+)` (.+)", line)
        assert match, f"a hop is a file, a function and what it does: {line!r}"
        depth, file, name = len(match[1]), match[2], match[3]
        above = [(place, hop) for place, hop in above if place < depth]
        parent = above[-1][1] if above else None
        hop = Hop(file, name, code_of(file, name), parent, "(as machine code)" not in line)
        hops.append(hop)
        above.append((depth, hop))
    return hops


def calls(work: Callable[[], object]) -> list[tuple[CodeType, tuple[CodeType, ...]]]:
    """Every call of the library's functions, with the functions that were at work then."""
    record: list[tuple[CodeType, tuple[CodeType, ...]]] = []
    stack: list[CodeType] = []
    house = str(ROOT / "src" / "setpoint")

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if code.co_filename.startswith(house):
            if event == "call":
                record.append((code, tuple(stack)))
                stack.append(code)
            elif event == "return" and stack:
                stack.pop()

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return record


def layer(file: str) -> int:
    place: int = HOUSE["layers"]()[file.split("/")[0].removesuffix(".py")]
    return place


def live(_: Path) -> None:
    stretch = sp.stretches.ErrorAdaptive(0.1, 0.1, low=-1.0, high=1.0)
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-9.0, 9.0))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk, stretch))
    stream.predict((1.0, 2.0), id="monday")
    stream.update(1.5, id="monday")


def calibrate(folder: Path) -> None:
    pytest.importorskip("plotly")
    testing = pytest.importorskip("typer.testing")
    from setpoint.cli import app

    lines = [f"-1,1,{y:.3f}" for y in np.random.default_rng(0).normal(size=600)]
    (folder / "forecasts.csv").write_text("\n".join(["low,high,demand", *lines]))
    options = ["--lower", "low", "--upper", "high", "--target", "demand"]
    file, out = str(folder / "forecasts.csv"), str(folder / "out")
    result = testing.CliRunner().invoke(app, ["calibrate", file, *options, "--out", out])
    assert result.exit_code == 0, result.output
    assert (folder / "out" / "report.html").exists()


def tune(_: Path) -> None:
    y = np.random.default_rng(0).normal(size=300)
    tape = sp.Tape.from_arrays({"lower": np.full(300, -1.0), "upper": np.full(300, 1.0)}, y)
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-9.0, 9.0))
    sp.tune(sp.Controller(sp.sets.Widen(), risk), tape, {"gamma": [0.01, 0.1]})


WALKS = {
    "One datum, live": live,
    "One row of a CSV, to report.html": calibrate,
    "One tape through tune": tune,
}


@pytest.mark.parametrize("heading", WALKS)
def test_a_walk_is_what_happens_and_never_goes_back_up(heading: str, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    hops = walk(heading)
    for hop in hops:
        if hop.parent is not None:
            assert layer(hop.file) >= layer(hop.parent.file), f"{hop.file} is above its caller"
    record = iter(calls(lambda: WALKS[heading](tmp_path)))
    for hop in hops:
        if hop.seen:
            found = any(happened(hop, code, stack) for code, stack in record)
            assert found, f"{hop.file} {hop.name} is not called here, or not in this order"


def happened(hop: Hop, code: CodeType, stack: tuple[CodeType, ...]) -> bool:
    """Whether a call is that of a hop, with all hops above it at work."""
    return code is hop.code and all(above.code in stack for above in ancestors(hop))


def ancestors(hop: Hop) -> Iterator[Hop]:
    while hop.parent is not None:
        hop = hop.parent
        yield hop
