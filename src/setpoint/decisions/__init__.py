"""Decisions: act on a request or defer it, with a budget of errors."""

from setpoint.decisions.certificate import GateCertificate
from setpoint.decisions.gates import Gates
from setpoint.decisions.live import Decision, Gate, gate, route
from setpoint.decisions.log import Replay, log, outcome, replay
from setpoint.decisions.terms import Terms

__all__ = [
    "Decision", "Gate", "GateCertificate", "Gates", "Replay", "Terms", "gate", "log", "outcome",
    "replay", "route",
]  # fmt: skip
