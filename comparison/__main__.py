"""The command `python -m comparison`: rules, late labels, levels, gates, alarms."""

import argparse
import sys
from pathlib import Path

from comparison import RESULTS
from comparison.experiment import reproduce
from comparison.gates import gates
from comparison.late import late
from comparison.levels import levels
from setpoint.errors import SetpointError


def main(arguments: list[str]) -> int:
    """Runs what the arguments ask for; returns the exit status."""
    parser = argparse.ArgumentParser("python -m comparison", description=__doc__)
    parser.add_argument(
        "what", nargs="?", choices=("rules", "late", "levels", "gates", "watch"), default="rules",
        help="rules: every rule of the library beside its default; late: forecasts of several "
        "rows ahead, whose actual values come late; levels: several levels, paths and groups; "
        "gates: decisions; watch: alarms on models that die, beside detectors of river (default: "
        "rules)",
    )  # fmt: skip
    parser.add_argument("--streams", type=Path, metavar="FILE", help="an npz file of streams")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes (default: 1)")
    parser.add_argument("--quick", action="store_true", help="a few short streams, in a minute")
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"default: {RESULTS.name}/ here")
    asked = parser.parse_args(arguments)
    if asked.what != "rules" and asked.quick:
        parser.error(f"--quick goes with rules, not with {asked.what}")
    try:
        if asked.what == "watch":
            from comparison.watch import watch  # it needs river

            watch(streams=asked.streams, out=asked.out)
        elif asked.what == "gates":
            gates(streams=asked.streams, out=asked.out)
        elif asked.what == "levels":
            levels(jobs=asked.jobs, out=asked.out)
        elif asked.what == "late":
            late(streams=asked.streams, jobs=asked.jobs, out=asked.out)
        else:
            reproduce(streams=asked.streams, jobs=asked.jobs, quick=asked.quick, out=asked.out)
    except (SetpointError, OSError) as error:
        print(f"comparison: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
