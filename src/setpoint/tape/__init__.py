"""Tapes: a model's predictions with their labels, recorded once and replayed at will."""

from setpoint.tape.columns import Ragged
from setpoint.tape.recorder import Recorder
from setpoint.tape.tape import Segments, Tape, TapeNotice

__all__ = ["Ragged", "Recorder", "Segments", "Tape", "TapeNotice"]
