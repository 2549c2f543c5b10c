"""Whole jobs on files, as the commands do them: run, forecast, calibrate, tune, report.

A job reads a file, does its work and returns an `Outcome`, which prints itself and writes its
files. Files of rows need the extra `data`.
"""

from setpoint.jobs.calibrate import calibrate
from setpoint.jobs.demo import demo
from setpoint.jobs.folders import Reported, report, retrace
from setpoint.jobs.forecast import Forecast, forecast
from setpoint.jobs.inspect import Inspected, hand_over, inspect, streams
from setpoint.jobs.job import Job
from setpoint.jobs.outcome import Outcome
from setpoint.jobs.run import MODELS, run
from setpoint.jobs.tune import Choice, TunedFile, tune
from setpoint.tape import Columns

__all__ = [
    "MODELS",
    "Choice",
    "Columns",
    "Forecast",
    "Inspected",
    "Job",
    "Outcome",
    "Reported",
    "TunedFile",
    "calibrate",
    "demo",
    "forecast",
    "hand_over",
    "inspect",
    "report",
    "retrace",
    "run",
    "streams",
    "tune",
]
