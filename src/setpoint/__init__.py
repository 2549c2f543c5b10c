"""setpoint keeps the risk of any online model at the level its user sets."""

from setpoint import (
    combine,
    errors,
    guarantee,
    losses,
    metrics,
    predictions,
    sets,
    spec,
    steps,
    stretches,
)
from setpoint.alarms import Alarm
from setpoint.burn_in import burn_in
from setpoint.controller import Controller, Risk
from setpoint.guarantee import Certificate
from setpoint.stream import Info, Receipt, Stream

__version__ = "0.1.0"

__all__ = [
    "Alarm",
    "Certificate",
    "Controller",
    "Info",
    "Receipt",
    "Risk",
    "Stream",
    "burn_in",
    "combine",
    "errors",
    "guarantee",
    "losses",
    "metrics",
    "predictions",
    "sets",
    "spec",
    "steps",
    "stretches",
]
