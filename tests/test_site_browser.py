"""The built site in a real browser: it is quiet, searches, turns dark, fits a phone, asks nobody.

`make site-test` runs this on what `make docs` built. It needs Chromium, its driver and selenium.
"""

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.browser import CHROMIUM, DRIVER, emulate, running, wait

selenium = pytest.importorskip("selenium", reason="needs selenium to drive a browser")

SITE = Path(__file__).resolve().parents[1] / "site"

pytestmark = [
    pytest.mark.site,
    pytest.mark.skipif(CHROMIUM is None or DRIVER is None, reason="needs chromium and its driver"),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="needs the site: make docs"),
]

PAGES = [
    "index.html", "tutorial.html", "choose.html", "api/sets.html", "paper/index.html",
    "beside.html", "gallery.html", "notebooks/forty_series.html",
]  # fmt: skip


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that writes no log."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the built site."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with running(tmp_path_factory.mktemp("profile")) as driver:
        driver.get("about:blank")  # the browser's own first page loads much
        yield driver


def show(browser: Any, address: str, *, dark: bool = False, width: int = 1280) -> None:
    """Opens a page in the light and at the width asked for."""
    emulate(browser, dark=dark, width=width)
    browser.get(address)
    wait(browser, "return document.readyState === 'complete'")


def brightness(browser: Any, part: str) -> float:
    """The mean of the red, green and blue of a colour of the page, from 0 to 255."""
    script = f"return getComputedStyle(document.body).{part}.match(/[0-9.]+/g).slice(0, 3)"
    return sum(map(float, browser.execute_script(script))) / 3


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_quiet_and_asks_no_other_host(browser: Any, site: str, page: str) -> None:
    browser.get_log("performance"), browser.get_log("browser")
    show(browser, site + page)
    asked = [
        message["params"]["request"]["url"]
        for entry in browser.get_log("performance")
        if (message := json.loads(entry["message"])["message"])["method"]
        == "Network.requestWillBeSent"
    ]
    assert asked
    assert [url for url in asked if not url.startswith((site, "data:"))] == []
    assert [entry["message"] for entry in browser.get_log("browser")] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_a_phone(browser: Any, site: str, page: str) -> None:
    show(browser, site + page, width=390)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_day_and_night_can_be_read_and_have_pictures_of_their_own(browser: Any, site: str) -> None:
    for dark in (False, True):
        show(browser, site + "index.html", dark=dark)
        paper, ink = brightness(browser, "backgroundColor"), brightness(browser, "color")
        assert (paper < 60 < 180 < ink) if dark else (ink < 60 < 180 < paper)
        shown = browser.execute_script(
            "return [...document.querySelectorAll('article img')]"
            ".filter(each => each.offsetWidth > 0 && each.naturalWidth > 0).map(each => each.src)"
        )
        assert [name.rpartition("/")[2] for name in shown] == [
            f"home-{'dark' if dark else 'light'}.svg#only-{'dark' if dark else 'light'}"
        ]


def test_the_search_finds_a_name_of_the_api(browser: Any, site: str) -> None:
    show(browser, site + "index.html")
    box = browser.find_element("css selector", "input[name=query]")
    browser.execute_script("document.querySelector('#__search').click()")
    wait(browser, "return document.querySelector('input[name=query]').offsetWidth > 0")
    box.send_keys("anti_windup")
    found = wait(
        browser,
        "const links = [...document.querySelectorAll('.md-search-result__link')].map(e => e.href);"
        "return links.length ? links : null",
    )
    assert any("several-risks.html" in link or "/api/" in link for link in found)


def test_names_in_a_page_lead_to_the_api_and_prompts_are_not_copied(
    browser: Any, site: str
) -> None:
    show(browser, site + "several-risks.html")
    script = "return [...document.querySelectorAll('article a')].map(e => e.getAttribute('href'))"
    assert "api/combine.html#setpoint.combine.Mean" in browser.execute_script(script)
    copied = browser.execute_script(
        "const code = document.querySelector('article pre code');"
        "code.setAttribute('data-md-copying', ''); const text = code.innerText;"
        "code.removeAttribute('data-md-copying'); return text"
    )
    assert copied.startswith("import random\nimport setpoint as sp\ndef shortage(shown, y):\n")
    assert ">>>" not in copied
    assert "Interval(-1.6, 1.6)" not in copied


def test_a_notebook_shows_what_it_printed_and_drew_and_can_be_downloaded(
    browser: Any, site: str
) -> None:
    show(browser, site + "notebooks/forty_series.html")
    text = browser.execute_script("return document.querySelector('article').innerText")
    assert "all shops 90.0%" in text
    assert browser.execute_script("return document.querySelectorAll('.output table').length") == 2
    drawn = "const [img] = document.querySelectorAll('article img'); return img.naturalWidth"
    assert wait(browser, drawn) > 300
    link = browser.execute_script("return document.querySelector('article p a').href")
    notebook = json.loads((SITE / link.removeprefix(site)).read_text("utf-8"))
    kinds = {
        output["output_type"] for cell in notebook["cells"] for output in cell.get("outputs", ())
    }
    assert notebook["nbformat"] == 4
    assert kinds == {"stream", "execute_result", "display_data"}
