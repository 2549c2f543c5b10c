"""The page as a file: self-contained, escaped, written whole; its libraries are optional."""

import gzip
import json
import re
import subprocess
import sys
from base64 import b64decode
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import setpoint as sp
from setpoint import Tape, Trace, replay, report
from setpoint.report import words
from setpoint.report.numbers import Numbers


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


def figures(text: str) -> str:
    """The figures of a page as JSON."""
    (found,) = re.findall(r'id="figures">(.*?)</script>', text)
    return gzip.decompress(b64decode(found)).decode()


@pytest.mark.parametrize("name", ["single", "several", "labelled", "hostile", "bands", "panel"])
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
    toml = unescape(re.findall(r"<pre[^>]*>(.*?)</pre>", text, re.S)[-1])
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
    assert path.stat().st_size < 1_500_000


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    script = """
import sys
sys.modules["plotly"] = None
import setpoint as sp
from setpoint import report
tape = sp.Tape.from_arrays({"lower": [0.0], "upper": [1.0]}, [0.5])
risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.1))
trace = sp.replay(sp.Controller(sp.sets.Widen(), risk), tape)
report.metrics(trace)
try:
    report.lengths(trace)
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip() == "this needs plotly: pip install 'setpoint[plots]'"


def test_plots_are_groups_with_names_because_there_are_buttons_in_them(
    single: Trace, tmp_path: Path
) -> None:
    text = report.write(single, tmp_path / "page.html").read_text(encoding="utf-8")
    found = Elements(text).found
    plots = [each for tag, each in found if tag == "div" and each.get("class") == "plot"]
    assert len(plots) == 7
    ids = {each.get("id") for _, each in found}
    for each in plots:
        assert (each["role"], bool(each["aria-label"])) == ("group", True)
    for tag, each in found:
        if tag in ("figure", "section"):
            assert set((each.get("aria-labelledby") or "").split()) <= ids
        if tag == "figure":
            assert (each["role"], each["aria-describedby"] in ids) == ("group", True)
    assert not [each for _, each in found if each.get("role") == "img"]


def test_the_table_of_windows_says_what_happened_there(single: Trace, tmp_path: Path) -> None:
    for window in (100, 400):
        found = report.metrics(single, window=window)
        path = report.write(single, tmp_path / "page.html", metrics=found)
        text = path.read_text(encoding="utf-8")
        listed = len(found["risks"][0]["windows"])
        assert f"The {listed} stretches of {window} labels furthest from a coverage of 90 %" in text
        assert f"Worst {window} labels: coverage off by" in text
        worst = found["risks"][0]["windows"][0]
        rows = np.arange(worst["start"], worst["stop"] + 1)
        tape = single.tape
        missed = [row for row in rows if tape.y[row] == tape.y[row] and not single.covered[row]]
        above = sum(tape.y[row] > single.upper[row] for row in missed)
        assert (worst["misses"], worst["above"]) == (len(missed), above)
        assert worst["below"] == len(missed) - above
        off = {row: max(tape.y[row] - single.upper[row], single.lower[row] - tape.y[row])
               for row in missed}  # fmt: skip
        row = max(off, key=lambda row: off[row])
        assert worst["largest"]["row"] == row
        assert worst["largest"]["y"] == tape.y[row]
        time = str(tape.time[row].astype("datetime64[m]")).replace("T", " ")
        assert f"(row {row:,}, {time})" in text
        assert f"{len(missed)} misses, {worst['longest_streak']} in a row at the most" in text


def sections(text: str) -> list[str]:
    return re.findall(r"<h2[^>]*>(.*?)</h2>", text)


def test_sections_that_would_be_empty_are_left_out(tmp_path: Path) -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.01), bounds=(-1, 1))
    controller = sp.Controller(sp.sets.Widen(), risk)
    ends = {"lower": [0.0] * 30, "upper": [9.0] * 30}
    told = {}
    for name, y in (("held", [1.0] * 30), ("blind", [np.nan] * 30), ("missed", [99.0] * 30)):
        path = report.write(replay(controller, Tape.from_arrays(ends, y)), tmp_path / "a.html")
        told[name] = sections(path.read_text(encoding="utf-8"))
    useful, lately = "Are the intervals of use?", "Coverage of the last 30 labels"
    first, times = "Intervals and misses", "Worst times"
    every = [lately, "Widths over time"]
    behind = ["Certificate", "Configuration"]
    assert told["missed"] == told["held"] == [first, useful, times, *every, *behind]
    assert told["blind"] == [first, useful, every[1], *behind]


def test_the_page_of_a_job_says_how_it_was_made_and_how_to_do_it_again(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from setpoint import jobs

    random = np.random.default_rng(1)
    lines = [f"-1,1,{y:.3f}" for y in random.normal(size=400)]
    file = tmp_path / "a & b.csv"
    file.write_text("\n".join(["low,high,<y>", *lines]))
    found = jobs.calibrate(file, sp.Columns("<y>", lower="low", upper="high"))
    made = found.write(tmp_path / "out")
    text = made["report.html"].read_text(encoding="utf-8")
    assert "How it was made" in sections(text)
    (shown,) = re.findall(r'<pre[^>]* id="repeat">(.*?)</pre>', text, re.S)
    assert unescape(shown) == found.job.repeat
    for part in ("a & b.csv", "--target '<y>'", "--lower low", "--upper high", "--coverage 0.9"):
        assert part in unescape(shown)
    assert embedded(text, "metrics") == found.metrics()


def test_a_page_says_why_a_guarantee_that_holds_is_not_green(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=900)
    wrong = np.where(np.arange(900) < 600, 0.0, 1e6)  # the model of the second series diverges
    forecast = np.tile(y, 3) + 0.3 * rng.normal(size=2_700)
    forecast[900:1_800] += wrong * rng.normal(size=900)
    tape = Tape.from_arrays(
        {"prediction": forecast}, np.tile(y, 3), series=np.repeat([1, 2, 3], 900)
    )
    trace = replay(sp.intervals(coverage=0.9), tape)
    text = report.write(trace, tmp_path / "page.html").read_text("utf-8")
    assert "guaranteed: not too many misses</span>, but the intervals are poor" in text
    assert "the models of 1 of 3 series diverged" in text
    rows = re.findall(r"<tr><td>(\d)</td><td class=\"(\w+)\"", text)
    assert rows[0][0] == "2"  # with the most trouble, and drawn
    assert rows[1][1] == rows[2][1] == "good"
    assert "This is series 2. The band is" in figures(text)


def test_a_page_leads_with_coverage_and_a_budget_in_misses(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    y = random.normal(3.0, 1.0, 400)
    lines = [f"-1.6,1.6,{label:.4f}" for label in y]
    file = tmp_path / "a.csv"
    file.write_text("\n".join(["low,high,load", *lines]))
    outcome = sp.jobs.calibrate(file, sp.Columns("load", lower="low", upper="high"))
    text = outcome.write(tmp_path / "out")["report.html"].read_text("utf-8")
    covered = (
        f"{100 * outcome.trace.coverage:.2f} % of 400 actual values lay inside their intervals; "
        "the target is 90 %. There can never be more than 10.9 misses beyond the 10 % allowed"
    )
    assert covered in unescape(text).replace("\N{NO-BREAK SPACE}", " ")
    begins = [
        "Intervals and misses",
        "Before and after",
        "Are the intervals of use?",
        "Worst times",
    ]
    assert sections(text)[:4] == begins
    assert f">{100 * outcome.before.trace.coverage:.2f}\N{NO-BREAK SPACE}%</data>" in text
    learnt = outcome.metrics()["learnt"]
    assert learnt["bias"] == pytest.approx(3.0, abs=0.5)
    assert f"<li>Actual values lie {learnt['bias']:+.4g} from the forecast.</li>" in text
    why = dict(outcome.metrics()["why"])
    assert list(why) == ["forecast", "moved by", "errors", "account", "interval"]
    assert f"<dd>{why['moved by']}</dd>" in unescape(text)
    assert '\\"name\\":\\"load\\"' in figures(text)
    assert '\\"name\\":\\"90 % interval\\"' in figures(text)
    assert "coverage of 90 %" in text


def test_levels_and_groups_have_tables_of_their_own(bands: Trace, panel: Trace) -> None:
    found = report.metrics(bands)
    calibration, scores = found["calibration"], bands.calibration()
    assert scores is not None
    assert calibration["levels"] == [0.025, 0.25, 0.75, 0.975]
    names = ("lower_95", "lower_50", "upper_50", "upper_95")
    below = [np.mean(bands.tape.y <= bands.ends[name]) for name in names]
    assert calibration["shares"] == pytest.approx(below)
    assert calibration["labels"] == 600
    assert sum(calibration["pit"]) == 599  # the first row has no finite quantile
    assert (calibration["crps"], calibration["wql"]) == (scores.crps, scores.wql)
    groups = found["held_groups"]
    assert groups["count"] == 4
    used = [own["account"] / own["bound"] for own in groups["nearest"]]
    assert used == sorted(used, reverse=True)
    assert len(used) == 8  # of each group both levels
    hour = next(
        own for own in groups["nearest"] if own["group"] == "hour=2" and own["asked"] == 0.5
    )
    rows = np.arange(600) % 3 == 2
    inside = (bands.ends["lower_50"] <= bands.tape.y) & (bands.tape.y <= bands.ends["upper_50"])
    assert hour["coverage"] == pytest.approx(np.mean(inside[rows]))
    of_panel = report.metrics(panel)["held_groups"]
    assert {own["series"] for own in of_panel["nearest"]} == {"a", "b"}
    text = words.text(Numbers.read(report.metrics(panel) | {"job": {"name": "panel"}}), None)
    assert "of 2 groups those nearest to their limit:" in text
    assert "a, rain: coverage " in text


def test_a_fan_is_drawn_level_by_level(bands: Trace) -> None:
    names = [curve.name for curve in report.intervals(bands).data if curve.showlegend]
    assert names[:2] == ["95 %", "50 %"]
