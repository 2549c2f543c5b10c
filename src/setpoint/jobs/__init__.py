"""Whole jobs on files, as the commands do them: forecast, calibrate, gate.

A job reads a file, does its work and returns an `Outcome`, which prints itself and writes its
files. Files of rows need the extra `data`.
"""

from setpoint.jobs.calibrate import calibrate
from setpoint.jobs.demo import demo
from setpoint.jobs.gate import gate
from setpoint.jobs.inspect import hand_over, inspect, streams
from setpoint.jobs.outcome import Outcome

__all__ = [
    "Outcome", "calibrate", "demo", "gate", "hand_over", "inspect", "streams",
]  # fmt: skip
