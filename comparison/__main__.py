"""The command `python -m comparison`: rules, late labels, label sets, gates, alarms, forecasts."""

import argparse
import sys
from importlib import import_module
from pathlib import Path

from comparison import RESULTS
from setpoint.errors import SetpointError

PARTS = {
    "rules": ("experiment", "reproduce", ("streams", "jobs", "quick")),
    "late": ("late", "late", ("streams", "jobs")),
    "account": ("account", "account", ("streams", "jobs")),
    "levels": ("levels", "levels", ("jobs",)),
    "classes": ("classes", "classes", ("jobs",)),
    "gates": ("gates", "gates", ("streams",)),
    "watch": ("watch", "watch", ("streams",)),
    "forecasts": ("forecasts", "forecasts", ()),
    "rivals": ("forecasts", "rivals", ()),
}
"""The module and function of each part, and the options that it takes."""


def main(arguments: list[str]) -> int:
    """Runs what the arguments ask for; returns the exit status."""
    parser = argparse.ArgumentParser("python -m comparison", description=__doc__)
    parser.add_argument(
        "what", nargs="?", choices=(*PARTS, "all"), default="rules",
        help="rules: every rule of the library beside its default; late: forecasts of several "
        "rows ahead, whose actual values come late; account: late labels that come unevenly, and "
        "an outage; levels: several levels, paths and groups; classes: label sets; gates: "
        "decisions; watch: alarms on models that die, beside detectors of river; forecasts: the "
        "next 24 rows of five data sets; rivals: the same beside other libraries; all of them "
        "(default: rules)",
    )  # fmt: skip
    parser.add_argument("--streams", type=Path, metavar="FILE", help="an npz file of streams")
    parser.add_argument("--jobs", type=int, help="how many processes (default: 1)")
    parser.add_argument(
        "--quick", action="store_true", default=None, help="a few short streams, in a minute"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"default: {RESULTS.name}/ here")
    asked = parser.parse_args(arguments)
    given = {name: getattr(asked, name) for name in ("streams", "jobs", "quick")}
    given = {name: value for name, value in given.items() if value is not None}
    chosen = list(PARTS) if asked.what == "all" else [asked.what]
    for name in given:
        if name != "jobs" and (asked.what == "all" or name not in PARTS[asked.what][2]):
            parser.error(f"--{name} does not go with {asked.what}")
    try:
        for part in chosen:
            module, function, options = PARTS[part]
            run = getattr(import_module(f"comparison.{module}"), function)
            run(out=asked.out, **{name: given[name] for name in options if name in given})
    except (SetpointError, OSError) as error:
        print(f"comparison: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
