"""Tapes: a model's predictions with their labels, recorded once and replayed at will."""

from setpoint.tape.columns import Columns, Ragged
from setpoint.tape.recorder import Recorder
from setpoint.tape.tape import Tape, TapeNotice

__all__ = ["Columns", "Ragged", "Recorder", "Tape", "TapeNotice"]
