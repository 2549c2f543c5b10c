"""Decisions: act on a request or defer it, with a budget of errors."""

from setpoint.decisions.live import Gate, Gates
from setpoint.decisions.log import Replay, replay
from setpoint.decisions.terms import Terms

__all__ = ["Gate", "Gates", "Replay", "Terms", "replay"]
