"""The page in a real browser: it draws, it zooms, it is quiet, and one can read it day and night.

Needs Chromium with its driver, and selenium; skipped where one of them is absent.
"""

import base64
import json
import math
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import Trace, report
from tests.browser import CHROMIUM, DRIVER, running

selenium = pytest.importorskip("selenium", reason="needs selenium to drive a browser")

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver on the path"
    ),
]

PLOTS = {
    "single": ["intervals", "windows-0", "lengths", "price",
               "groups-weekday", "groups-hour", "groups-size"],
    "several": ["intervals", "windows-0", "lengths", "groups-group", "groups-size"],
    "labelled": ["intervals", "windows-0", "lengths", "groups-size"],
}  # fmt: skip
"""A price needs 700 rows."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with running(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def pages(
    tmp_path_factory: pytest.TempPathFactory, single: Trace, several: Trace, labelled: Trace
) -> Path:
    """A folder with a page and a metrics file of each trace."""
    folder = tmp_path_factory.mktemp("pages")
    for name, trace in (("single", single), ("several", several), ("labelled", labelled)):
        found = report.metrics(trace)
        (folder / f"{name}.json").write_text(json.dumps(found), "utf-8")
        report.write(trace, folder / f"{name}.html", title=name, metrics=found)
    return folder


def show(
    browser: Any, path: Path, *, dark: bool = False, width: int = 1200, anew: bool = False
) -> None:
    """Opens a page, unless it is open already: then it must follow the light and the width."""
    from selenium.webdriver.support.ui import WebDriverWait

    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    if anew or browser.current_url != path.as_uri():
        browser.get(path.as_uri())
        WebDriverWait(browser, 60).until(
            lambda _: browser.execute_script("return document.documentElement.dataset.drawn")
        )


def asked(browser: Any) -> list[str]:
    """The addresses the browser has asked for since the last time."""
    events = [json.loads(each["message"])["message"] for each in browser.get_log("performance")]
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]


@pytest.mark.parametrize("name", ["single", "several", "labelled"])
def test_the_page_draws_everything_and_stays_quiet(browser: Any, pages: Path, name: str) -> None:
    asked(browser)
    browser.get_log("browser")
    show(browser, pages / f"{name}.html", anew=True)
    drawn = browser.execute_script(
        """return [...document.querySelectorAll(".plot")].map(plot => {
             const box = plot.querySelector(".main-svg").getBoundingClientRect();
             const marks = plot.querySelectorAll(
               ".scatterlayer path, .barlayer path, .scatterlayer .point");
             return [plot.id, box.width, box.height, marks.length];
           });"""
    )
    assert [id for id, *_ in drawn] == PLOTS[name]
    for id, wide, high, marks in drawn:
        assert wide > 500, id
        assert high > 250, id
        assert marks > 0, id
    assert [each for each in browser.get_log("browser") if each["level"] != "INFO"] == []
    assert {url for url in asked(browser) if not url.startswith(("data:", "blob:"))} == {
        (pages / f"{name}.html").as_uri()
    }


def read(text: str) -> float:
    """The number that a person reads."""
    plain = text.replace(",", "").replace("−", "-").replace(" points", "%")
    return float(plain.removesuffix("%")) / (100.0 if plain.endswith("%") else 1.0)


def looked_up(found: Any, name: str) -> Any:
    for part in name.split("."):
        found = found[int(part)] if isinstance(found, list) else found[part]
    return found


@pytest.mark.parametrize("name", ["single", "several", "labelled"])
def test_the_numbers_are_those_of_the_metrics_file(browser: Any, pages: Path, name: str) -> None:
    show(browser, pages / f"{name}.html")
    found = json.loads((pages / f"{name}.json").read_text(encoding="utf-8"))
    shown = browser.execute_script(
        """return [...document.querySelectorAll("[data-metric]")].map(
             each => [each.dataset.metric, each.getAttribute("value"), each.textContent]);"""
    )
    names = {metric for metric, *_ in shown}
    assert {"risks.0.asked", "risks.0.coverage", "risks.0.coverage_low", "risks.0.verdict"} <= names
    assert {"coverage", "longest_streak", "risks.0.worst_window"} <= names
    assert {"median_length", "usefulness.width"} & names
    for metric, value, text in shown:
        expected = looked_up(found, metric)
        if value is None:
            assert text == expected
        else:
            assert json.loads(value) == expected
            assert read(text) == pytest.approx(expected, rel=5e-3, abs=6e-5)


def x_range(browser: Any, plot: str) -> list[Any]:
    got = browser.execute_script(
        "const axis = document.getElementById(arguments[0])._fullLayout.xaxis;"
        "return axis.range.map(each => axis.r2l(each));",
        plot,
    )
    return list(got)


@pytest.mark.parametrize("plot", ["windows-0", "intervals"])
def test_dragging_zooms_and_a_button_goes_back(browser: Any, pages: Path, plot: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By

    show(browser, pages / "single.html")
    area = browser.find_element(By.CSS_SELECTOR, f"#{plot} .nsewdrag")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", area)
    before = x_range(browser, plot)
    ActionChains(browser).move_to_element(area).click_and_hold().pause(0.1).move_by_offset(
        80, 0
    ).move_by_offset(80, 0).pause(0.1).release().perform()
    after = x_range(browser, plot)
    assert before[0] < after[0] < after[1] < before[1]
    assert after[1] - after[0] < 0.5 * (before[1] - before[0])
    browser.execute_script(
        "document.querySelector(`#${arguments[0]} [data-title='Reset axes']`).click()", plot
    )
    assert x_range(browser, plot) == pytest.approx(before)


def test_the_vertical_axis_fits_what_is_seen(browser: Any, tmp_path: Path) -> None:
    rows = 3_000
    ends = np.linspace(0.0, 1e4, rows)
    y = ends + np.random.default_rng(0).normal(size=rows)
    trace = sp.replay(sp.intervals(0.9), sp.Tape.from_arrays({"point": ends}, y))
    show(browser, report.write(trace, tmp_path / "a.html"))

    def high() -> float:
        axis = "return document.getElementById('intervals')._fullLayout.yaxis.range[1]"
        return float(browser.execute_script(axis))

    move = "Plotly.relayout('intervals', {'xaxis.range': arguments[0]})"
    for first, last in ((100, 200), (2_000, 2_100)):
        browser.execute_script(move, [first, last])
        assert ends[last] < high() < ends[last] + 100.0


def test_choosing_a_stream_redraws_the_figures(browser: Any, pages: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    show(browser, pages / "several.html")

    found = json.loads((pages / "several.json").read_text(encoding="utf-8"))
    series = found["worst_streams"]
    choice = Select(browser.find_element(By.ID, "stream"))
    assert len(choice.options) == 3
    choice.select_by_index(2)
    captions = [browser.find_element(By.ID, f"{plot}-caption").text for plot in PLOTS["several"]]
    of = [caption.startswith(f"This is series {series[2]['id']}.") for caption in captions]
    assert of == [True, True, True, False, False]  # groups are of all series


def test_names_that_are_markup_are_shown_letter_for_letter(
    browser: Any, hostile: Trace, tmp_path: Path
) -> None:
    title = '<a href="https://example.org">title</a>'
    show(browser, report.write(hostile, tmp_path / "hostile.html", title=title))
    live, texts = browser.execute_script(
        """const all = kind => [...document.querySelectorAll(kind)];
           const plots = all(".plot text").map(each => each.textContent);
           return [all("main a[href], svg a, .plot b, main img, [onerror]").length, plots];"""
    )
    assert live == 0
    assert {'<a href="https://example.org">link</a>', "<b>bold</b>"} <= set(texts)
    assert "<img src=x onerror=alert(1)>" in texts
    assert browser.title == title


# Read by day, by night, on a phone, on paper


def luminance(colour: str) -> float:
    red, green, blue = (int(part) / 255.0 for part in re.findall(r"[\d]+", colour)[:3])
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(ink: str, paper: str) -> float:
    light, dark = sorted((luminance(ink), luminance(paper)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def colours(browser: Any) -> tuple[str, list[tuple[str, str]]]:
    """The colour of the paper, and of every kind of text on it."""
    paper, inks = browser.execute_script(
        """const of = (what, name) => getComputedStyle(what)[name];
           const words = ["p", "h1", "h2", "dt", "dd", "dd.verdict", "figcaption", "td", "pre"];
           const marks = [".xtick text", ".ytick text", ".legendtext", ".gtitle, .ytitle"];
           const all = (kinds, name) => kinds.flatMap(kind =>
             [...document.querySelectorAll(kind)].map(each => [kind, of(each, name)]));
           const found = [...all(words, "color"), ...all(marks, "fill")];
           return [of(document.body, "backgroundColor"), found];"""
    )
    return paper, [tuple(each) for each in inks]


def readable(browser: Any) -> tuple[str, list[tuple[str, str]]]:
    """The colours once the plots are drawn anew, which takes a busy machine a moment."""
    until = time.monotonic() + 20.0
    while True:
        paper, inks = colours(browser)
        dim = [ink for _, ink in inks if contrast(ink, paper) < 4.5]
        if not dim or time.monotonic() > until:
            return paper, inks
        time.sleep(0.1)


def test_one_can_read_it_by_day_and_by_night(browser: Any, pages: Path, tmp_path: Path) -> None:
    papers, shots = [], []
    # Opened by day; the night falls while it is open; opened by night.
    for dark, anew in ((False, True), (True, False), (True, True)):
        show(browser, pages / "single.html", dark=dark, anew=anew)
        paper, inks = readable(browser)
        assert len({kind for kind, _ in inks}) >= 11
        for kind, ink in inks:
            assert contrast(ink, paper) >= 4.5, (kind, ink, paper)
        background = browser.execute_script(
            "return getComputedStyle(document.querySelector('.plot .main-svg')).backgroundColor"
        )
        assert background == paper, "a plot has the colour of the page"
        papers.append(luminance(paper))
        shots.append(browser.get_screenshot_as_png())
    assert papers[0] > 0.9
    assert papers[1] == papers[2] < 0.05
    assert shots[0] != shots[2]


@pytest.mark.parametrize("name", ["single", "several"])
def test_nothing_sticks_out_on_a_phone(browser: Any, pages: Path, name: str) -> None:
    from selenium.common.exceptions import TimeoutException
    from selenium.webdriver.support.ui import WebDriverWait

    def measured() -> tuple[int, int, float]:
        wide, there, plots = browser.execute_script(
            """const page = document.documentElement;
               const plots = [...document.querySelectorAll(".main-svg")];
               return [page.scrollWidth, page.clientWidth,
                       plots.map(each => each.getBoundingClientRect().right)];"""
        )
        return wide, there, max(plots, default=math.inf)

    def settled(_: Any) -> bool:
        wide, there, right = measured()
        return wide == there <= 360 and right <= there

    show(browser, pages / f"{name}.html", width=360, anew=True)
    with suppress(TimeoutException):  # a busy machine takes a moment; what is wrong is told below
        WebDriverWait(browser, 5).until(settled)
    wide, there, right = measured()
    assert wide == there <= 360
    assert right <= there


def test_on_a_phone_no_button_lies_on_a_legend_and_no_words_beside_the_page(
    browser: Any, pages: Path
) -> None:
    show(browser, pages / "several.html", width=390, anew=True)
    over, cut = browser.execute_script(
        """const box = each => each.getBoundingClientRect();
           const apart = (a, b) => a.right <= b.left || b.right <= a.left ||
                                   a.bottom <= b.top || b.bottom <= a.top;
           const over = [];
           for (const plot of document.querySelectorAll(".plot")) {
             const others = [...plot.querySelectorAll(".legend, .gtitle")];
             const heading = plot.closest("section").querySelector("h2");
             for (const button of plot.querySelectorAll(".modebar-btn"))
               for (const other of [...others, heading])
                 if (!apart(box(button), box(other))) over.push(plot.id);
           }
           const words = [...document.querySelectorAll("p, h2, figcaption")];
           return [over, words.filter(each => box(each).right > innerWidth).length];"""
    )
    assert over == []
    assert cut == 0
    assert browser.execute_script("return document.querySelectorAll('.legend').length") > 2


def test_on_a_phone_the_tables_that_matter_need_no_scrolling(
    browser: Any, tmp_path_factory: pytest.TempPathFactory, several: Trace
) -> None:
    folder = tmp_path_factory.mktemp("phone")
    numbers = report.metrics(several, before=several)
    numbers["before"] |= {"name": "rolling quantile", "words": "The same."}
    page = report.write(several, folder / "a.html", metrics=numbers)
    show(browser, page, width=390, anew=True)
    right = browser.execute_script(
        """const tables = ["before-said", "windows-said-0"].map(
             id => document.querySelector(`[aria-labelledby="${id}"]`));
           return tables.map(table => Math.max(...[...table.querySelectorAll("td")].map(
             cell => cell.getBoundingClientRect().right)));"""
    )
    assert max(right) <= 390


def test_it_prints_in_ink_on_white_paper(browser: Any, pages: Path) -> None:
    show(browser, pages / "single.html", dark=True)
    printed, shown = (
        browser.execute_script(
            """window.dispatchEvent(new Event(arguments[0]));
               const layout = document.getElementById("windows-0")._fullLayout;
               return [layout.paper_bgcolor, layout.width];""",
            event,
        )
        for event in ("beforeprint", "afterprint")
    )
    assert luminance_of_hex(printed[0]) > 0.9
    assert printed[1] <= 700, "as wide as a sheet of paper"
    assert luminance_of_hex(shown[0]) < 0.05
    assert shown[1] > 900
    made = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(made["data"]).startswith(b"%PDF")


def luminance_of_hex(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return luminance("rgb({}, {}, {})".format(*parts))
