"""The oldest libraries that pyproject.toml allows: `python -m tests.lowest fast data` prints them.

`>=` becomes `==`, for the core and for the extras that are named.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def lowest(extras: list[str]) -> list[str]:
    """One requirement for each library, at its oldest version; of several the newest of these."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    known = project["optional-dependencies"]
    found: dict[str, str] = {}
    for line in [*project["dependencies"], *(line for extra in extras for line in known[extra])]:
        name, _, version = line.partition(">=")
        number = re.match(r"[\d.]+", version)
        if number is None:
            raise ValueError(f"a requirement must name its oldest version by >=, got {line!r}")
        found[name] = max(found.get(name, "0"), number[0], key=parts)
    return [f"{name}=={version}" for name, version in found.items()]


def parts(version: str) -> tuple[int, ...]:
    """A version as numbers, to compare."""
    return tuple(map(int, version.split(".")))


if __name__ == "__main__":
    print(*lowest(sys.argv[1:]), sep="\n")
