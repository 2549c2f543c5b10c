"""Runs a benchmark by its name."""

import sys
from importlib import import_module

from benchmarks import KNOWN


def main(arguments: list[str]) -> int:
    """Runs the benchmark that the only argument names; returns the exit status."""
    if len(arguments) == 1 and arguments[0] in KNOWN:
        import_module(f"benchmarks.{arguments[0]}").main()
        return 0
    wrong = f"unknown benchmark {' '.join(arguments)!r}; " if arguments else ""
    print(f"{wrong}usage: python -m benchmarks NAME, where NAME is one of", file=sys.stderr)
    for name, what in KNOWN.items():
        print(f"  {name:<8} {what}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
