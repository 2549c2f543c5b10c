"""Keyed streams on Spark: a million of them, each with a state and a certificate of its own."""

from setpoint.spark.stream import METRICS, SETTINGS, calibrate_stream
from setpoint.spark.work import STATUSES, Work

__all__ = ["METRICS", "SETTINGS", "STATUSES", "Work", "calibrate_stream"]
