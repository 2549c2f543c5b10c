"""Where each data set comes from: pages, addresses, file names, licences, sizes."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from setpoint_paper.rows import listed


@dataclass(frozen=True, slots=True)
class File:
    """One file of a data set.

    `names` are the names it may have, the usual one first. `url` is where it, or the container
    it lies in, is served; None where no address that we know serves it. `served` is the
    SHA-256 of what the address serves, where it is known; `blob` the name git gives to it, a SHA-1;
    `text` the SHA-256 of the unpacked file this library was tested with, line ends as \\n.
    """

    names: tuple[str, ...]
    rows: int
    url: str | None = None
    served: str | None = None
    text: str | None = None
    blob: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A data set's origin: the page to get it from, its licence, its files, and other places."""

    name: str
    page: str
    licence: str
    files: tuple[File, ...]
    elsewhere: str = ""


def container_of(url: str) -> str:
    """The name under which an address serves a file or its container."""
    return url.rpartition("/")[2]


def _told() -> Iterator[Source]:
    """What `sources.csv` says; a file's page is that of the line above where it has none."""
    for name, lines in groupby(listed("datasets/sources.csv"), key=itemgetter("source")):
        first, *others = lines
        files = tuple(
            File(
                tuple(line["names"].split("|")), int(line["rows"]),
                *(line[key] or None for key in ("url", "served", "text", "blob")),
            )
            for line in (first, *others)
            if line["names"]
        )  # fmt: skip
        yield Source(name, first["page"], first["licence"], files, first["elsewhere"])


_ALL = {source.name: source for source in _told()}

DEPTH_SOURCES = {name: _ALL.pop(name) for name in ("kitti_clip", "kitchen_clip", "kitti")}
"""The clips are reduced copies of what their pages offer, which no address serves; KITTI's drives
and annotated depth maps come after registration, file by file."""

SOURCES = _ALL
"""Of wind the first file is taken, the paper's own before the stand-in, which is from amprion.net,
its licence not known; the page needs an account, and the authors keep the same file beside their
code. MULAN serves yeast as a .rar, which Python cannot read: River's copy is fetched instead."""
