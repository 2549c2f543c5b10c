"""The page as a file: self-contained, escaped, written whole; its libraries are optional."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import setpoint as sp
from setpoint import Tape, Trace, replay, report


class Elements(HTMLParser):
    """Every element with its attributes, and whether each is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def embedded(text: str, id: str) -> object:
    (found,) = re.findall(rf'<script type="application/json" id="{id}">(.*?)</script>', text, re.S)
    return json.loads(found)


@pytest.mark.parametrize("name", ["single", "several", "labelled"])
def test_the_page_holds_everything_and_its_numbers(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    trace = request.getfixturevalue(name)
    found = report.metrics(trace)
    path = report.write(trace, tmp_path / "page.html", title="A <title> & more", metrics=found)
    text = path.read_text(encoding="utf-8")
    elements = Elements(text)
    assert not elements.open, "every element is closed, none by a name in the data"
    assert not [each for _, each in elements.found if "src" in each or "href" in each]
    assert "<h1>A &lt;title&gt; &amp; more</h1>" in text
    assert embedded(text, "metrics") == found
    assert text.count("<h1>") == 1
    ids = [each["id"] for _, each in elements.found if "id" in each]
    assert len(ids) == len(set(ids))
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_the_configuration_on_the_page_repeats_the_trace(single: Trace, tmp_path: Path) -> None:
    text = report.write(single, tmp_path / "page.html").read_text(encoding="utf-8")
    toml = re.findall(r"<pre[^>]*>(.*?)</pre>", text, re.S)[-1].replace("&quot;", '"')
    again = replay(sp.spec.from_toml(toml), single.tape)
    assert np.array_equal(again.lower, single.lower)
    assert str(single.certificate()).splitlines()[2] in text


def test_a_controller_that_no_file_can_name_is_printed(tmp_path: Path) -> None:
    loss = sp.losses.Custom(lambda shown, y: float(y > shown.upper), low=0.0, high=1.0)
    risk = sp.Risk(loss, 0.1, sp.steps.Fixed(0.1), bounds=(-9, 9))
    tape = Tape.from_arrays({"lower": [0.0] * 9, "upper": [1.0] * 9}, [0.5] * 8 + [3.0])
    trace = replay(sp.Controller(sp.sets.Widen(), risk), tape)
    text = report.write(trace, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "this is how Python prints it" in text
    assert "Controller(" in text


def test_a_million_rows_are_a_page_of_a_few_megabytes(tmp_path: Path) -> None:
    rows = 1_000_000
    world = np.random.default_rng(4)
    time = np.datetime64("1999-01-01T00:00:00") + np.arange(rows) * np.timedelta64(1, "s")
    tape = Tape.from_arrays(
        {"lower": np.full(rows, -1.0), "upper": np.full(rows, 1.0)},
        world.normal(size=rows),
        time=time,
    )
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-9, 9))
    trace = replay(sp.Controller(sp.sets.Widen(), risk), tape)
    path = report.write(trace, tmp_path / "page.html")
    assert path.stat().st_size < 8_000_000


def test_a_page_that_cannot_be_written_leaves_nothing(single: Trace, tmp_path: Path) -> None:
    there = tmp_path / "page.html"
    there.mkdir()
    with pytest.raises(OSError, match=r"page\.html"):
        report.write(single, there)
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize(
    ("absent", "call"),
    [("plotly", "report.theta(trace)"), ("matplotlib", "report.png(trace, 'never.png')")],
)
def test_what_is_missing_is_named(absent: str, call: str, tmp_path: Path) -> None:
    script = f"""
import sys
sys.modules[{absent!r}] = None
import setpoint as sp
from setpoint import report
tape = sp.Tape.from_arrays({{"lower": [0.0], "upper": [1.0]}}, [0.5])
risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.1))
trace = sp.replay(sp.Controller(sp.sets.Widen(), risk), tape)
report.metrics(trace)
try:
    {call}
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == f"this needs {absent}: pip install 'setpoint[plots]'"
