"""The screenshots of the site: `python docs/screenshots.py`, after `make docs`.

Home, comparison, a report, the report of a panel and the live page of a service, each as a desktop,
a phone and a dark room show them. They go to `images/screens/`, and pages show some of them.
"""

import math
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from tests.browser import emulate, running, wait  # noqa: E402
from tests.serving import Serving  # noqa: E402

SCREENS = DOCS / "images" / "screens"
SITE = DOCS.parent / "site"
PAGES = {
    "home": "index.html", "comparison": "comparison.html", "report": "gallery/drifting.html",
    "panel": "gallery/forty.html",
}  # fmt: skip
VIEWS: dict[str, dict[str, Any]] = {
    "desktop": {}, "dark": {"dark": True}, "phone": {"width": 390},
}  # fmt: skip
HOURS = 1500


def shoot(browser: Any, name: str, address: str) -> None:
    """One page in every view."""
    for view, options in VIEWS.items():
        emulate(browser, height=844, **options)
        browser.get(address)
        wait(browser, "return document.readyState === 'complete'")
        wait(
            browser,
            "return document.fonts.status === 'loaded' && !document.querySelector('.loading')",
        )
        browser.save_screenshot(str(SCREENS / f"{name}-{view}.png"))
        small(SCREENS / f"{name}-{view}.png")


def small(path: Path) -> None:
    """The same picture in 64 colours, which a repository can carry."""
    from PIL import Image

    with Image.open(path) as picture:
        picture.convert("RGB").quantize(64).save(path, optimize=True)


def service(serving: Serving) -> None:
    """Five streams behind HTTP; the model of one of them breaks."""
    world = random.Random(2)
    with serving.client() as client:
        for name in ("berlin", "madrid", "oslo", "rome", "vienna"):
            client.create(name)
            events = []
            for hour in range(HOURS):
                truth = level = 40.0 + 6.0 * math.sin(hour / 24.0 * math.tau)
                if name == "oslo" and hour > HOURS - 200:
                    level = 40.0  # its model forgets the day
                y = truth + world.gauss(0.0, 1.0)
                events.append({"id": hour, "prediction": [level - 1.6, level + 1.6], "y": y})
            client.events(events, name)
            client.predict(name, [38.4, 41.6], "waits")


def main() -> None:
    """Takes all screenshots."""
    SCREENS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "profile") as browser:
        for name, page in PAGES.items():
            shoot(browser, name, (SITE / page).as_uri())
        with Serving("--store", str(Path(folder) / "streams.sqlite")) as serving:
            service(serving)
            shoot(browser, "live", serving.url)


if __name__ == "__main__":
    main()
