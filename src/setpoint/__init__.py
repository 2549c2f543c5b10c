"""setpoint keeps the risk of any online model at the level its user sets."""

from setpoint import (
    combine,
    errors,
    guarantee,
    losses,
    metrics,
    predictions,
    search,
    sets,
    spec,
    steps,
    stretches,
)
from setpoint.alarms import Alarm
from setpoint.burn_in import burn_in
from setpoint.controller import Controller, Risk
from setpoint.fleet import Fleet
from setpoint.guarantee import Certificate
from setpoint.replay import Trace, replay, sweep
from setpoint.stream import Info, Receipt, Stream
from setpoint.tape import Tape
from setpoint.tune import Tuned, tune

__version__ = "0.1.0"

__all__ = [
    "Alarm",
    "Certificate",
    "Controller",
    "Fleet",
    "Info",
    "Receipt",
    "Risk",
    "Stream",
    "Tape",
    "Trace",
    "Tuned",
    "burn_in",
    "combine",
    "errors",
    "guarantee",
    "losses",
    "metrics",
    "predictions",
    "replay",
    "search",
    "sets",
    "spec",
    "steps",
    "stretches",
    "sweep",
    "tune",
]
