"""Whole jobs on files, as the command line does them: run, calibrate, tune, report, inspect, demo.

A job reads a file, does its work and returns an `Outcome`, which prints itself and writes its
files. Files of rows need the extra `data`.
"""

from setpoint.jobs.calibrate import calibrate
from setpoint.jobs.demo import demo
from setpoint.jobs.folders import report
from setpoint.jobs.inspect import hand_over, inspect, streams
from setpoint.jobs.outcome import Outcome
from setpoint.jobs.run import MODELS, run
from setpoint.jobs.tune import tune

__all__ = [
    "MODELS", "Outcome", "calibrate", "demo", "hand_over", "inspect", "report", "run", "streams",
    "tune",
]  # fmt: skip
