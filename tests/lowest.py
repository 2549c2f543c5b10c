"""Versions of other libraries to try: `python -m tests.lowest random 7 fast data` prints them.

For the core and the extras that are named: the `lowest` versions that pyproject.toml allows, the
`newest`, or `random` ones in between, drawn from a seed. A drawn version is the newest that pip
may take, so that what pip finds still fits together.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from random import Random

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


def chosen(versions: str, seed: int, extras: list[str]) -> list[str]:
    """One requirement for each library."""
    bounds = lowest(extras)
    if versions == "lowest":
        return bounds
    if versions not in ("random", "newest"):
        raise ValueError(f"versions must be lowest, random or newest, got {versions!r}")
    pairs = [bound.split("==") for bound in bounds]
    if versions == "newest":
        return [f"{name}>={least}" for name, least in pairs]
    rng = Random(seed)
    return [
        f"{name}>={least},<={rng.choice([v for v in released(name) if parts(v) >= parts(least)])}"
        for name, least in pairs
    ]


def released(name: str) -> list[str]:
    """Every released version of a library that pip would take here."""
    command = [sys.executable, "-m", "pip", "index", "versions", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (line,) = re.findall(r"Available versions: (.*)", done.stdout)
    return [version for version in line.split(", ") if re.fullmatch(r"[\d.]+", version)]


if __name__ == "__main__":
    print(*chosen(sys.argv[1], int(sys.argv[2]), sys.argv[3:]), sep="\n")
