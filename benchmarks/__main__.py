"""Runs a benchmark by its name, or all of them, and keeps what they found in one file."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import KNOWN


def main(arguments: list[str]) -> int:
    """Runs the benchmarks that the arguments name; returns the exit status."""
    name, *rest = arguments or [""]
    file = Path(rest[1]) if len(rest) == 2 and rest[0] == "--json" else None
    if not rest and name in KNOWN:
        import_module(f"benchmarks.{name}").main()
        return 0
    if name in (*KNOWN, "all") and (file is not None or not rest):
        failed = [each for each in (KNOWN if name == "all" else [name]) if not _kept(each, file)]
        print(f"failed: {', '.join(failed)}" if failed else "all ran", file=sys.stderr)
        return 1 if failed else 0
    wrong = f"unknown benchmark {' '.join(arguments)!r}; " if arguments else ""
    usage = "usage: python -m benchmarks NAME [--json FILE], where NAME is all or one of"
    print(wrong + usage, file=sys.stderr)
    for known, what in KNOWN.items():
        print(f"  {known:<8} {what}", file=sys.stderr)
    return 2


def _kept(name: str, file: Path | None) -> bool:
    """Runs a benchmark in a process of its own and keeps its last line under its name."""
    command = [sys.executable, "-m", "benchmarks", name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        last = ""
        for line in process.stdout or ():
            print(line, end="", flush=True)
            last = line
    try:
        found = json.loads(last)
    except ValueError:
        return False
    if file is not None:
        every: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps({**every, name: found}, indent=1, ensure_ascii=False) + "\n")
    return process.returncode == 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
