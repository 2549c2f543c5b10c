"""Keyed streams on Spark: a million of them, each with a state and a certificate of its own."""

from setpoint.spark.state import listener, read_state, states, total
from setpoint.spark.stream import METRICS, SETTINGS, calibrate_stream
from setpoint.spark.tables import (
    backtest,
    gate,
    gate_ends,
    sample,
    tune,
    usefulness,
    verdict,
)
from setpoint.tape import Columns

__all__ = [
    "METRICS", "SETTINGS", "Columns", "backtest", "calibrate_stream", "gate", "gate_ends",
    "listener", "read_state", "sample", "states", "total", "tune", "usefulness", "verdict",
]  # fmt: skip
