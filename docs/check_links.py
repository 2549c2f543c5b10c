"""The links of a built site: `python docs/check_links.py site` prints the dead ones.

Every link to a page, a place in a page, a picture, a style or a script must lead to a file of the
site. A page may name other sites in its text; it must not load anything from them.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}


class Page(HTMLParser):
    """What a page links to and loads, and the places in it that others may link to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[tuple[bool, str]] = []
        self.places = {"", "__top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.places |= {value for name in ("id", "name") if (value := found.get(name))}
        for name in ("href", "src"):
            if value := found.get(name):
                named = tag == "link" and found.get("rel") in ("canonical", "next", "prev")
                self.links.append(((tag, name) in LOADS and not named, value))


def dead(site: Path) -> list[str]:
    """One line for each link that leads nowhere, and for each thing loaded from another host."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for loads, link in page.links:
            parts = urlsplit(link)
            if parts.scheme == "data" or ((parts.scheme or parts.netloc) and not loads):
                continue
            where = f"{path.relative_to(site)}: {link}"
            if parts.scheme or parts.netloc:
                found.append(f"{where} is loaded from another host")
                continue
            way = unquote(parts.path)
            there = (site / way.lstrip("/") if way.startswith("/") else path.parent / way).resolve()
            there = path if not way else there / "index.html" if there.is_dir() else there
            if not there.is_file():
                found.append(f"{where} leads to no file")
            elif there in pages and unquote(parts.fragment) not in pages[there].places:
                found.append(f"{where} leads to no place in its page")
    return found


if __name__ == "__main__":
    lines = dead(Path(sys.argv[1]).resolve())
    print(*lines, sep="\n")
    sys.exit(bool(lines))
