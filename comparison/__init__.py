"""Every rule of the library beside its default, on the same streams: `python -m comparison`.

A rule is a line in `rules.RULES`; the numbers of every rule on every stream are in
`results/comparison.csv`.
"""

import os
from pathlib import Path

__all__ = ["RESULTS", "command", "keep"]

RESULTS = Path(__file__).parent / "results"
"""Where the results lie."""


def command(part: str, streams: str | os.PathLike[str] | None, out: str | os.PathLike[str]) -> str:
    """The command that makes the page of a part again."""
    words = [f"python -m comparison {part}"]
    if streams is not None:
        words.append(f"--streams {Path(streams).name}")
    if Path(out) != RESULTS:
        words.append(f"--out {Path(out).as_posix()}")
    return " ".join(words)


def keep(text: str, out: str | os.PathLike[str], name: str) -> str:
    """Stores a page in a folder and prints it."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    print(text)
    return text
