"""Keyed streams on Spark: a million of them, each with a state and a certificate of its own."""

from setpoint.spark.state import listener, read_state, states
from setpoint.spark.stream import METRICS, SETTINGS, calibrate_stream
from setpoint.spark.tables import backtest, gate
from setpoint.tape import Columns

__all__ = [
    "METRICS", "SETTINGS", "Columns", "backtest", "calibrate_stream", "gate", "listener",
    "read_state", "states",
]  # fmt: skip
